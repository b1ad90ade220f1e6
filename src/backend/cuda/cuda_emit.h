/* cuda_emit.h - the text that the CUDA backend makes of programs, for `hologram emit`. */
#ifndef HG_CUDA_EMIT_H
#define HG_CUDA_EMIT_H

#include "backend/backend.h"

extern const hg_emit_target hg_cuda_emit_targets[];

#endif
