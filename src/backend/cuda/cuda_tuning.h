/* cuda_tuning.h - the constants of tuning.def: CUDA_<id>. */
#ifndef HG_CUDA_TUNING_H
#define HG_CUDA_TUNING_H

enum {
#define TUNED(id, value, unit, depends, measured) CUDA_##id = value,
#include "backend/cuda/tuning.def"
#undef TUNED
};

#endif
