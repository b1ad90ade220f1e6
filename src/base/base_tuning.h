/* base_tuning.h - the constants of tuning.def: HG_<id>. */
#ifndef HG_BASE_TUNING_H
#define HG_BASE_TUNING_H

enum {
#define TUNED(id, value, unit, depends, measured) HG_##id = value,
#include "base/tuning.def"
#undef TUNED
};

#endif
