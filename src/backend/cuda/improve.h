/* improve.h - kernels that run what the driver compiled quickly until threads of the device have compiled them in full.
 *
 * With few of its optimisations the driver's compiler takes three quarters of the time for a long text, and launches do
 * not wait for a compilation on another thread (driver 580 beside an H200: the slowest launch meanwhile took 0.1 ms).
 * So a long text is compiled twice: at once with few, and with all of them by a thread, whose code takes the place of
 * the first from the next launch on. Both come from one canonical program, so they have the same bits and the same
 * faults.
 *
 * What costs most comes first: that which has been launched most, and whose text is longest. A call that compiles does
 * not wait for the threads: meanwhile they begin nothing, and the second and further ones only when no call has
 * compiled for a while. */
#ifndef HG_CUDA_IMPROVE_H
#define HG_CUDA_IMPROVE_H

#include "backend/cuda/device.h"

/* One variant of a kernel that is to be compiled in full. */
struct cuda_improvement {
  cuda_improvement *next;
  void *kernel;
  uint64_t (*cost)(const cuda_improvement *job); /* what waiting for it costs, beside others; the kernel is there */
  void (*make)(cuda_device *d, cuda_improvement *job); /* with the context current; a failure leaves what there is */
  void (*give_up)(cuda_improvement *job); /* it is not made: nobody is to wait for it */
  void (*release)(cuda_improvement *job);
  uint8_t is_last; /* set while it is made: the kernel has been released, and `kernel_end` is due */
  void (*kernel_end)(cuda_device *d, void *kernel);
};

/* Of a device that is being opened; 0: it has no threads for it, and all is compiled in full at once. */
int hg_cuda_improvers_open(cuda_device *d);
/* After all kernels have been released; waits for what is being made. */
void hg_cuda_improvers_close(cuda_device *d);

/* A thread will make it; where there is none, it is made now. The context is current. */
void hg_cuda_improve_later(cuda_device *d, cuda_improvement *job);
/* What is left of a kernel is made when this returns. The context is current. */
void hg_cuda_improve_now(cuda_device *d, void *kernel);
/* A kernel is being released: what is left of it is not made. 1: a thread is making a part of it, and kernel_end is
 * called behind that; the caller must not touch the kernel any more. */
int hg_cuda_improve_no_more(cuda_device *d, void *kernel);

/* Around a compilation that a call waits for. */
void hg_cuda_improve_pause(cuda_device *d);
void hg_cuda_improve_go_on(cuda_device *d);

#endif
