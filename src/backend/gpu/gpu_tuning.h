/* gpu_tuning.h - the constants of tuning.def: GPU_<id>. */
#ifndef HG_GPU_TUNING_H
#define HG_GPU_TUNING_H

enum {
#define TUNED(id, value, unit, depends, measured) GPU_##id = value,
#include "backend/gpu/tuning.def"
#undef TUNED
};

#endif
