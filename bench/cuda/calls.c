/* calls.c - many calls in a row from C, for bench/cuda: what a program in C pays for a launch. */
#include "hologram/hologram.h"

#include <time.h>

typedef hg_status launch_function(hg_kernel *kernel, const hg_launch_desc *desc, hg_launch_report *report);
typedef int driver_function(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters,
                            void **extra);
uint64_t time_launches(launch_function *launch, hg_kernel *kernel, const hg_launch_desc *desc, uint64_t count,
                       int *status);
uint64_t time_graphs(int (*launch)(void *graph, void *stream), void *graph, void *stream, uint64_t count, int *status);
uint64_t time_driver_launches(driver_function *launch, int (*wait)(void *stream), void *function, void *stream,
                              void **parameters, uint64_t count, int *result);

static uint64_t now(void) {
  struct timespec t;
  (void)timespec_get(&t, TIME_UTC);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Nanoseconds of `count` calls of hg_launch; *status is that of the first that failed. */
uint64_t time_launches(launch_function *launch, hg_kernel *kernel, const hg_launch_desc *desc, uint64_t count,
                       int *status) {
  uint64_t start = now();
  *status = HG_OK;
  for (uint64_t i = 0; i < count && *status == HG_OK; i++) *status = (int)launch(kernel, desc, NULL);
  return now() - start;
}

/* The same of hg_graph_launch. */
uint64_t time_graphs(int (*launch)(void *graph, void *stream), void *graph, void *stream, uint64_t count, int *status) {
  uint64_t start = now();
  *status = HG_OK;
  for (uint64_t i = 0; i < count && *status == HG_OK; i++) *status = launch(graph, stream);
  return now() - start;
}

/* The same of cuLaunchKernel, with one block of 32 threads; with a `wait` (cuStreamSynchronize) after each. */
uint64_t time_driver_launches(driver_function *launch, int (*wait)(void *stream), void *function, void *stream,
                              void **parameters, uint64_t count, int *result) {
  uint64_t start = now();
  *result = 0;
  for (uint64_t i = 0; i < count && *result == 0; i++) {
    *result = launch(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
    if (*result == 0 && wait != NULL) *result = wait(stream);
  }
  return now() - start;
}
