/* nvtx.h - ranges for profilers: which of the library's calls a thread is in, told to a tool that speaks NVTX. */
#ifndef HG_CUDA_NVTX_H
#define HG_CUDA_NVTX_H

#include <stdint.h>

typedef struct hg_nvtx hg_nvtx;

/* The tool that the environment named when this was first called; NULL: none. It stays for the life of the process. */
const hg_nvtx *hg_nvtx_open(void);

/* Begins a range of this thread, "`verb` `name`", and ends the last one. Name: NULL for none. The tool may show the
 * amount beside it; 0: nothing to show. */
void hg_nvtx_push(const hg_nvtx *tool, const char *verb, const char *name, uint64_t amount);
void hg_nvtx_pop(const hg_nvtx *tool);

#endif
