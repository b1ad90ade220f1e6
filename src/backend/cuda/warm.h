/* warm.h - fetches what the first compilation of a process would wait for, while the driver makes a context. */
#ifndef HG_CUDA_WARM_H
#define HG_CUDA_WARM_H

#include "base/memory.h"

typedef struct hg_cuda_warmth hg_cuda_warmth;

/* Begins to fetch in a thread. NULL where there is nothing to do: not the first call of the process, or no memory. */
hg_cuda_warmth *hg_cuda_warm_begin(const hg_allocator *allocator);

/* Waits for that and gives the heap what it fetched: before a compilation. A second call, or NULL, does nothing. */
void hg_cuda_warm_finish(hg_cuda_warmth *warmth);

/* The end of it; NULL is allowed. is_child: this is a child of fork, where the thread does not run. */
void hg_cuda_warm_release(const hg_allocator *allocator, hg_cuda_warmth *warmth, int is_child);

#endif
