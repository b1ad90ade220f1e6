/* ops_tuning.h - the constants of tuning.def: OPS_<id>. */
#ifndef HG_OPS_TUNING_H
#define HG_OPS_TUNING_H

enum {
#define TUNED(id, value, unit, depends, measured) OPS_##id = value,
#include "ops/graph/tuning.def"
#undef TUNED
};

#endif
