/* targets.h - the processors that machine code can be written for. */
#ifndef HG_CPU_TARGETS_H
#define HG_CPU_TARGETS_H

#include "backend/cpu/native/native.h"

extern const native_target hg_native_avx512, hg_native_avx2, hg_native_neon;

/* The target where the tile engine would use `isa`; NULL: none. */
const native_target *hg_native_target(cpu_isa isa);

#endif
