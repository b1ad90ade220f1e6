/* targets.h - the processors that machine code can be written for. */
#ifndef HG_CPU_TARGETS_H
#define HG_CPU_TARGETS_H

#include "backend/cpu/native/native.h"

/* The first three use what the processor has beyond their names; the others never do, so that tests run what older
 * processors get. */
extern const native_target hg_native_avx512, hg_native_avx2, hg_native_neon;
extern const native_target hg_native_least_avx512, hg_native_least_avx2, hg_native_least_neon;

/* The target where the tile engine would use `isa`; NULL: none. */
const native_target *hg_native_target(cpu_isa isa);
const native_target *hg_native_least_target(cpu_isa isa);

#endif
