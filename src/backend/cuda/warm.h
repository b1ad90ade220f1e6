/* warm.h - fetches what the first compilation of a process would wait for, while the driver makes a context. */
#ifndef HG_CUDA_WARM_H
#define HG_CUDA_WARM_H

/* Begins to fetch in a thread. 1: the caller is to release it; 0: there is nothing to do, as in all calls of a process
 * but the first. */
int hg_cuda_warm_begin(void);

/* Waits for that and gives the heap what it fetched, before a compilation; a second call does nothing. */
void hg_cuda_warm_finish(void);
void hg_cuda_warm_release(void);

#endif
