/* nvtx.h - ranges for profilers: tells an NVTX tool which library call a thread is in. */
#ifndef HG_CUDA_NVTX_H
#define HG_CUDA_NVTX_H

#include <stdint.h>

typedef struct hg_nvtx hg_nvtx;

/* The tool that the environment named at the first call; NULL: none. It stays for the life of the process. */
const hg_nvtx *hg_nvtx_open(void);

/* Begins a range of this thread, "`verb` `name`", and ends the last one. Name: NULL for none. The tool may show the
 * amount; 0: there is none. */
void hg_nvtx_push(const hg_nvtx *tool, const char *verb, const char *name, uint64_t amount);
void hg_nvtx_pop(const hg_nvtx *tool);

#endif
