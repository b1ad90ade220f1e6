/* targets.c - which machine code this machine can run. */
#include "backend/cpu/targets.h"

const native_target *hg_native_target(cpu_isa isa) {
#if defined(__x86_64__) && !defined(_WIN32)
  if (isa == CPU_ISA_AVX512) return &hg_native_avx512;
  if (isa == CPU_ISA_AVX2) return &hg_native_avx2;
#elif defined(__aarch64__) && !defined(_WIN32)
  if (isa == CPU_ISA_BASELINE) return &hg_native_neon;
#endif
  (void)isa;
  return NULL;
}

const native_target *hg_native_least_target(cpu_isa isa) {
  const native_target *target = hg_native_target(isa);
  if (target == &hg_native_avx512) return &hg_native_least_avx512;
  if (target == &hg_native_avx2) return &hg_native_least_avx2;
  return target == &hg_native_neon ? &hg_native_least_neon : NULL;
}

const native_target *hg_native_lane_target(cpu_isa isa) {
  const native_target *target = hg_native_target(isa);
  return target == &hg_native_avx512 || target == &hg_native_avx2 ? &hg_native_x86_lanes : NULL;
}
