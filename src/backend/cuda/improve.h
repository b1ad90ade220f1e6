/* improve.h - kernels that run quickly compiled code until threads of the device have compiled them in full.
 *
 * With few optimisations, the driver's compiler takes three quarters of the time for a long text, and launches do not
 * wait for a compilation on another thread (driver 580 beside an H200: the slowest launch meanwhile took 0.1 ms). So a
 * long text is compiled twice: at once with few optimisations, and by a thread with all of them, whose code replaces
 * the first from the next launch on. Both come from one canonical program, so they have the same bits and the same
 * faults.
 *
 * The most expensive goes first: the most launches, and the longest text. A call that compiles does not wait for the
 * threads: meanwhile they begin nothing, and the second and further ones only when no call has compiled for a while. */
#ifndef HG_CUDA_IMPROVE_H
#define HG_CUDA_IMPROVE_H

#include "backend/cuda/device.h"

/* One variant of a kernel that is to be compiled in full. */
struct cuda_improvement {
  cuda_improvement *next;
  void *kernel;
  uint64_t (*cost)(const cuda_improvement *job); /* the cost of waiting for it, relative to others; the kernel exists */
  void (*make)(cuda_device *d, cuda_improvement *job); /* context current; a failure changes nothing */
  void (*give_up)(cuda_improvement *job); /* it will not be made: nobody may wait for it */
  void (*release)(cuda_improvement *job);
  uint8_t is_last; /* set while it is made, if the kernel is released meanwhile: `kernel_end` is due */
  void (*kernel_end)(cuda_device *d, void *kernel);
};

/* For a device that is being opened; 0: there will be no threads, and everything is compiled in full at once. */
int hg_cuda_improvers_open(cuda_device *d);
/* After all kernels have been released; waits for compilations under way. */
void hg_cuda_improvers_close(cuda_device *d);

/* Queues it for a thread; compiles it now if there is none. The context is current. */
void hg_cuda_improve_later(cuda_device *d, cuda_improvement *job);
/* Compiles all that is queued of a kernel. The context is current. */
void hg_cuda_improve_now(cuda_device *d, void *kernel);
/* For a kernel that is being released: drops what is queued of it. 1: a thread is compiling for it and will call
 * kernel_end; the caller must not touch the kernel any more. */
int hg_cuda_improve_no_more(cuda_device *d, void *kernel);

/* Around a compilation that a caller waits for. */
void hg_cuda_improve_pause(cuda_device *d);
void hg_cuda_improve_go_on(cuda_device *d);

#endif
