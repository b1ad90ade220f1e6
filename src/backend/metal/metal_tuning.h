/* metal_tuning.h - the constants of tuning.def: METAL_<id>. */
#ifndef HG_METAL_TUNING_H
#define HG_METAL_TUNING_H

enum {
#define TUNED(id, value, unit, depends, measured) METAL_##id = value,
#include "backend/metal/tuning.def"
#undef TUNED
};

#endif
