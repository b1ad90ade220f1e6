/* fp.h - the floating-point environment that the numerics contract asks for: round to nearest, gradual underflow, no
 * trap, whatever the caller's thread has set.
 *
 *   hg_fp_state callers = hg_fp_enter();
 *   ... arithmetic ...
 *   hg_fp_leave(callers);                 // control and flags are as they were
 *
 * A few nanoseconds, where fegetenv and fesetenv take about a hundred: they also store and reload the x87, which no
 * arithmetic of the library uses on x86-64. */
#ifndef HG_BASE_FP_H
#define HG_BASE_FP_H

#include <stdint.h>

#if defined(__x86_64__) || defined(_M_X64)
#  include <xmmintrin.h>

enum {
  HG_FP_DEFAULT_MXCSR = 0x1f80, /* all exceptions masked, round to nearest, neither FTZ nor DAZ */
  HG_FP_MXCSR_FLAGS = 0x3f      /* sticky, without effect on results */
};

typedef uint32_t hg_fp_state;

static inline hg_fp_state hg_fp_enter(void) {
  hg_fp_state callers = _mm_getcsr();
  if ((callers | HG_FP_MXCSR_FLAGS) != (HG_FP_DEFAULT_MXCSR | HG_FP_MXCSR_FLAGS)) _mm_setcsr(HG_FP_DEFAULT_MXCSR);
  return callers;
}

static inline void hg_fp_leave(hg_fp_state callers) {
  if (_mm_getcsr() != callers) _mm_setcsr(callers);
}

#elif defined(__aarch64__) && defined(__GNUC__)

typedef struct hg_fp_state {
  uint64_t control, status;
} hg_fp_state;

static inline hg_fp_state hg_fp_enter(void) {
  hg_fp_state callers;
  __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(callers.control), "=r"(callers.status) : : "memory");
  if (callers.control != 0) __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)) : "memory");
  return callers;
}

static inline void hg_fp_leave(hg_fp_state callers) {
  if (callers.control != 0) __asm__ volatile("msr fpcr, %0" : : "r"(callers.control) : "memory");
  __asm__ volatile("msr fpsr, %0" : : "r"(callers.status) : "memory");
}

#else
#  include <fenv.h>

typedef fenv_t hg_fp_state;

static inline hg_fp_state hg_fp_enter(void) {
  hg_fp_state callers;
  fegetenv(&callers);
  fesetenv(FE_DFL_ENV);
  return callers;
}

static inline void hg_fp_leave(hg_fp_state callers) { fesetenv(&callers); }

#endif
#endif
