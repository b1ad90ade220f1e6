/* cpu_emit.h - the code that the CPU backend makes of programs, for `hologram emit`. */
#ifndef HG_CPU_EMIT_H
#define HG_CPU_EMIT_H

#include "backend/backend.h"

extern const hg_emit_target hg_cpu_emit_targets[];

#endif
