/* ptx_tuning.h - the constants of tuning.def: PTX_<id>. */
#ifndef HG_PTX_TUNING_H
#define HG_PTX_TUNING_H

enum {
#define TUNED(id, value, unit, depends, measured) PTX_##id = value,
#include "backend/cuda/ptx/tuning.def"
#undef TUNED
};

#endif
