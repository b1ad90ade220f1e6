/* targets.h - the processors that have emitters. */
#ifndef HG_CPU_TARGETS_H
#define HG_CPU_TARGETS_H

#include "backend/cpu/native/native.h"

/* The first three use everything that the processor has; the `least` ones nothing beyond their names, so that tests run
 * the code of older processors. */
extern const native_target hg_native_avx512, hg_native_avx2, hg_native_neon;
extern const native_target hg_native_x86_lanes;
extern const native_target hg_native_least_avx512, hg_native_least_avx2, hg_native_least_neon;

/* The target for machines on which the tile engine uses `isa`; NULL: none. */
const native_target *hg_native_target(cpu_isa isa);
const native_target *hg_native_least_target(cpu_isa isa);
const native_target *hg_native_lane_target(cpu_isa isa); /* for one lane after the other; NULL: none */

#endif
