/* contract.h - contractions on the CPU: blocked, packed, on several threads. The bits are those of backend.h. */
#ifndef HG_CPU_CONTRACT_H
#define HG_CPU_CONTRACT_H

#include "backend/backend.h"
#include "backend/cpu/engine/detect.h"

/* As hg_backend's. Instruction sets without fused multiply-add support only integers. */
uint64_t hg_cpu_contract_scratch(cpu_isa isa, const hg_contraction *contraction);
/* Uses up to `threads` threads; 0: as many as pay off, at most launch->most_threads. Ends early if the launch is
 * cancelled; NULL: no launch. */
void hg_cpu_contract(cpu_isa isa, const hg_contraction *contraction, uint32_t threads, const atlas_launch *launch);

#endif
