/* cuda_emit.h - what the CUDA backend makes of programs, to look at. */
#ifndef HG_CUDA_EMIT_H
#define HG_CUDA_EMIT_H

#include "backend/backend.h"

extern const hg_emit_target hg_cuda_emit_targets[];

#endif
