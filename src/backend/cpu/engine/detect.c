/* detect.c - which instruction sets this machine and the user allow. */
#include "backend/cpu/engine/detect.h"

#include "base/error.h"
#include "base/os.h"

#include <string.h>

#if defined __x86_64__ || defined __i386__
#include <cpuid.h>

/* XCR0: the register states that the operating system saves. */
static uint64_t saved_states(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

cpu_isa hg_cpu_isa_best(void) {
  enum { FMA = 1 << 12, OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29 };                /* leaf 1, ecx */
  enum { AVX2 = 1 << 5, AVX512F = 1 << 16, AVX512DQ = 1 << 17, AVX512BW = 1 << 30 };       /* leaf 7, ebx */
  const uint32_t avx512vl = UINT32_C(1) << 31;
  enum { YMM_STATE = 0x06, ZMM_STATE = 0xe6 };
  uint32_t a, b, c, d;
  const uint32_t first = FMA | OSXSAVE | AVX | F16C, third = AVX512F | AVX512DQ | AVX512BW | avx512vl;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first) return CPU_ISA_BASELINE;
  uint64_t states = saved_states();
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & AVX2) || (states & YMM_STATE) != YMM_STATE)
    return CPU_ISA_BASELINE;
  return (b & third) == third && (states & ZMM_STATE) == ZMM_STATE ? CPU_ISA_AVX512 : CPU_ISA_AVX2;
}
#else
cpu_isa hg_cpu_isa_best(void) { return CPU_ISA_BASELINE; }
#endif

static const char *const names[] = {
#if defined __x86_64__ || defined __i386__
    "sse2",
#elif defined __aarch64__
    "neon",
#else
    "portable",
#endif
    "avx2", "avx512"};

const char *hg_cpu_isa_name(cpu_isa isa) { return names[isa]; }

hg_status hg_cpu_isa_choose(cpu_isa *isa) {
  char wanted[32];
  cpu_isa best = hg_cpu_isa_best();
  *isa = best;
  if (!hg_environment_is_set("HOLOGRAM_CPU_ISA")) return HG_OK;
  if (!hg_environment("HOLOGRAM_CPU_ISA", wanted, sizeof wanted)) memcpy(wanted, "(too long)", sizeof "(too long)");
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
    if (strcmp(wanted, names[i]) == 0) {
      if (i > (int)best)
        return hg_fail(HG_UNSUPPORTED, "HOLOGRAM_CPU_ISA is '%s'; this machine has '%s' at most", wanted, names[best]);
      *isa = (cpu_isa)i;
      return HG_OK;
    }
  return hg_fail(HG_INVALID_ARGUMENT, "HOLOGRAM_CPU_ISA is '%s'; expected 'avx512', 'avx2' or '%s'", wanted, names[0]);
}

const cpu_kernels *hg_cpu_kernels(cpu_isa isa) {
#if defined __x86_64__ || defined __i386__
  if (isa == CPU_ISA_AVX512) return &hg_kernels_avx512;
  if (isa == CPU_ISA_AVX2) return &hg_kernels_avx2;
#endif
  (void)isa;
  return &hg_kernels_baseline;
}
