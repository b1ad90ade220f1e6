/* contract.h - contractions on the CPU: blocked, packed, on several threads. The bits are those of backend.h. */
#ifndef HG_CPU_CONTRACT_H
#define HG_CPU_CONTRACT_H

#include "backend/backend.h"
#include "backend/cpu/engine/detect.h"

/* As hg_backend's. Of an instruction set without fused multiply-add it has integers only. */
uint64_t hg_cpu_contract_scratch(cpu_isa isa, const hg_contraction *contraction);
/* By `threads` threads, if there are so many; 0: as many as pay off, at most launch->most_threads. Ends early where the
 * launch is cancelled. NULL: of no launch. */
void hg_cpu_contract(cpu_isa isa, const hg_contraction *contraction, uint32_t threads, const atlas_launch *launch);

#endif
