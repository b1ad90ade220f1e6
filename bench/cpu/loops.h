/* loops.h - what run.py calls: loops, limits and clocks. */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include <stdint.h>

/* The arguments of every loop; what `size` means is up to it. */
typedef struct loop_args {
  void *out;
  const void *a, *b, *c;
  uint64_t count; /* elements */
  uint64_t size;  /* columns of a matrix, width of a picture */
} loop_args;

typedef void loop(const loop_args *args, int threads);

/* Names as the programs have them; each gives the bits of its program. */
loop loop_add, loop_relu, loop_chain, loop_exp, loop_sigmoid, loop_gelu, loop_gelu_tanh, loop_softmax, loop_stencil,
    loop_mandelbrot, loop_block_sum, loop_histogram, loop_matmul, loop_softmax_held, loop_layer_norm,
    loop_cross_entropy, loop_row_sum, loop_column_sum, loop_search, loop_queens, loop_stencil7,
    loop_row_search, loop_sparse;

/* Mandelbrot by hand, of a width that 64 divides: four vectors of 16 pixels in step. Does nothing without AVX-512;
 * hand_available says so. */
loop hand_mandelbrot;
int hand_available(void);

/* Nanoseconds that `repeat` calls take. time_launches stops at a call that fails and tells its status. */
uint64_t time_loops(loop *f, const loop_args *args, int threads, uint64_t repeat);
uint64_t time_launches(int (*launch)(void *kernel, const void *desc, void *report), void *kernel, const void *desc,
                       uint64_t repeat, int *status);

/* Bytes a second, read and written, of y = a (triad 0) or y = a + s b (triad 1) by each of `threads` threads over
 * arrays of `bytes` bytes in all a thread; with plain or with streaming stores. The best of several runs. 0 where there
 * are no streaming stores or no memory. */
double memory_rate(int triad, int streaming, uint64_t bytes, int threads);

#endif
