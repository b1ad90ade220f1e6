/* cpu_emit.h - what the CPU backend makes of programs, to look at. */
#ifndef HG_CPU_EMIT_H
#define HG_CPU_EMIT_H

#include "backend/backend.h"

extern const hg_emit_target hg_cpu_emit_targets[];

#endif
