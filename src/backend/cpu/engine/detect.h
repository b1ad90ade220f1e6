/* detect.h - which instruction sets this machine and the user allow. */
#ifndef HG_ENGINE_DETECT_H
#define HG_ENGINE_DETECT_H

#include "backend/cpu/engine/kernels.h"
#include "hologram/base.h"

typedef enum cpu_isa {
  CPU_ISA_BASELINE,
  CPU_ISA_AVX2,
  CPU_ISA_AVX512
} cpu_isa; /* each includes those before it */

/* The best that the processor has and the operating system saves on a switch. */
cpu_isa hg_cpu_isa_best(void);

/* "avx512", "avx2"; of the baseline "sse2", "neon" or "portable". */
const char *hg_cpu_isa_name(cpu_isa isa);

/* The best that HOLOGRAM_CPU_ISA allows. HG_INVALID_ARGUMENT for an unknown name, HG_UNSUPPORTED for an instruction set
 * that this machine lacks. */
hg_status hg_cpu_isa_choose(cpu_isa *isa);

const cpu_kernels *hg_cpu_kernels(cpu_isa isa);

#endif
