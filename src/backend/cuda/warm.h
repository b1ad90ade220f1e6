/* warm.h - takes the page faults of a process's first compilation in advance, while the driver makes a context. */
#ifndef HG_CUDA_WARM_H
#define HG_CUDA_WARM_H

/* Starts a thread that touches heap memory. 1: the caller must release it; 0: nothing was started, as in every call but
 * a process's first. */
int hg_cuda_warm_begin(void);

/* Waits for the thread and frees its chunks to the heap, for a compilation; a second call does nothing. */
void hg_cuda_warm_finish(void);
void hg_cuda_warm_release(void);

#endif
