/* improve.h - kernels that run what the driver compiled quickly until a thread of the device has compiled them in full.
 *
 * Without its optimisations the driver's compiler takes half the time, and launches do not wait for a compilation on
 * another thread (driver 580 beside an H200: a softmax of three loops 26 ms instead of 60, a tiled product 105 instead
 * of 210; the slowest launch meanwhile took 0.1 ms). So a long text is compiled twice: at once without optimisations,
 * and with them by the thread, whose code takes the place of the first from the next launch on. Both come from one
 * canonical program, so they have the same bits and the same faults. */
#ifndef HG_CUDA_IMPROVE_H
#define HG_CUDA_IMPROVE_H

#include "backend/cuda/device.h"

/* One form of a kernel that is to be compiled in full. */
struct cuda_improvement {
  cuda_improvement *next;
  void *kernel;
  void (*make)(cuda_device *d, cuda_improvement *job); /* with the context current; a failure leaves what there is */
  void (*release)(cuda_improvement *job);
  uint8_t is_last; /* set while it is made: the kernel has been released, and `kernel_end` is due */
  void (*kernel_end)(cuda_device *d, void *kernel);
};

/* Of a device that is being opened; 0: it has no thread for it, and all is compiled in full at once. */
int hg_cuda_improver_open(cuda_device *d);
/* After all kernels have been released; waits for what is being made. */
void hg_cuda_improver_close(cuda_device *d);

/* The thread will make it; where there is none, it is made now. The context is current. */
void hg_cuda_improve_later(cuda_device *d, cuda_improvement *job);
/* What is left of a kernel is made when this returns. The context is current. */
void hg_cuda_improve_now(cuda_device *d, void *kernel);
/* A kernel is being released: what is left of it is not made. 1: the thread is making a part of it, and calls
 * kernel_end behind that; the caller must not touch the kernel any more. */
int hg_cuda_improve_no_more(cuda_device *d, void *kernel);

#endif
