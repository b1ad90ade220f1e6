/* test_cuda_improve.c - the threads of a CUDA device that compile in full: what they take first, that they work side by
 * side, that they leave the driver to calls which wait for it, and the end of a kernel that several of them are at. On
 * the double of libcuda, with jobs of the tests' own. */
#define _GNU_SOURCE
#include "backend/cuda/improve.h"
#include "runtime/runtime.h"

#include "streams.h"

#include <stdatomic.h>
#include <unistd.h>

enum { MOST_JOBS = 8 };

typedef struct own_job {
  cuda_improvement job; /* first */
  uint64_t cost;
  int number, meets; /* meets: it goes on when so many are being made */
} own_job;

static struct {
  atomic_int begun, done, released, ended, holds;
  int order[MOST_JOBS];
} seen;

static own_job jobs[MOST_JOBS];
static int kernels[MOST_JOBS];

static uint64_t cost_of(const cuda_improvement *job) { return ((const own_job *)job)->cost; }

static void make_own(cuda_device *d, cuda_improvement *job) {
  const own_job *own = (const own_job *)job;
  (void)d;
  seen.order[atomic_fetch_add(&seen.begun, 1)] = own->number;
  while (atomic_load(&seen.begun) < own->meets || atomic_load(&seen.holds)) usleep(100);
  atomic_fetch_add(&seen.done, 1);
}

/* Nothing waits for them. */
static void give_up_own(cuda_improvement *job) { (void)job; }

static void release_own(cuda_improvement *job) {
  (void)job;
  atomic_fetch_add(&seen.released, 1);
}

static void end_kernel(cuda_device *d, void *kernel) {
  (void)d;
  CHECK(kernel == &kernels[0]);
  atomic_fetch_add(&seen.ended, 1);
}

static cuda_device *begin(void) {
  memset(&seen, 0, sizeof seen);
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  return executor->device;
}

static void end(void) {
  hg_executor_release(executor);
  CHECK_CLEAN();
}

static void queue(cuda_device *d, int number, int kernel, uint64_t cost, int meets) {
  jobs[number] = (own_job){.job = {.kernel = &kernels[kernel], .cost = cost_of, .make = make_own,
                                   .give_up = give_up_own, .release = release_own, .kernel_end = end_kernel},
                           .cost = cost, .number = number, .meets = meets};
  hg_cuda_improve_later(d, &jobs[number].job);
}

static void wait_for(atomic_int *count, int wanted) {
  while (atomic_load(count) < wanted) usleep(100);
}

/* Nothing begins while a call compiles; then what costs most does, and of equals what came first. */
static void test_order(void) {
  static const uint64_t costs[] = {2, 7, 1, 7, 0};
  static const int expected[] = {1, 3, 0, 2, 4};
  cuda_device *d = begin();
  hg_cuda_improve_pause(d);
  hg_cuda_improve_pause(d);
  for (int i = 0; i < 5; i++) queue(d, i, i, costs[i], 0);
  usleep(10000);
  hg_cuda_improve_go_on(d);
  usleep(10000);
  CHECK_EQ_U64(atomic_load(&seen.begun), 0);
  hg_cuda_improve_go_on(d);
  wait_for(&seen.released, 5);
  for (int i = 0; i < 5; i++) CHECK_EQ_U64(seen.order[i], expected[i]);
  end();
}

/* Each goes on when all are being made. */
static void test_side_by_side(void) {
  cuda_device *d = begin();
  for (int i = 0; i < CUDA_IMPROVERS; i++) queue(d, i, i, 1, CUDA_IMPROVERS);
  wait_for(&seen.released, CUDA_IMPROVERS);
  end();
}

/* A call that wants a kernel's code makes what waits by itself, and waits for what is being made. */
static void test_now(void) {
  cuda_device *d = begin();
  hg_cuda_improve_pause(d);
  queue(d, 0, 0, 1, 0);
  queue(d, 1, 1, 9, 0);
  queue(d, 2, 0, 1, 0);
  hg_cuda_improve_now(d, &kernels[0]);
  CHECK(atomic_load(&seen.done) == 2 && seen.order[0] == 0 && seen.order[1] == 2);
  hg_cuda_improve_go_on(d);
  hg_cuda_improve_now(d, &kernels[1]);
  CHECK_EQ_U64(atomic_load(&seen.done), 3);
  wait_for(&seen.released, 3);
  end();
}

/* Two threads are at a kernel that is released, and a third part waits: the last of the two ends it. */
static void test_end_of_a_kernel(void) {
  cuda_device *d = begin();
  atomic_store(&seen.holds, 1);
  queue(d, 0, 0, 1, 2);
  queue(d, 1, 0, 1, 2);
  wait_for(&seen.begun, 2);
  hg_cuda_improve_pause(d);
  queue(d, 2, 0, 1, 0);
  CHECK_EQ_U64(hg_cuda_improve_no_more(d, &kernels[0]), 1);
  CHECK_EQ_U64(atomic_load(&seen.released), 1);
  CHECK_EQ_U64(hg_cuda_improve_no_more(d, &kernels[1]), 0);
  hg_cuda_improve_go_on(d);
  atomic_store(&seen.holds, 0);
  wait_for(&seen.released, 3);
  CHECK(atomic_load(&seen.done) == 2 && atomic_load(&seen.ended) == 1);
  end();
}

int main(void) {
  if (!begin_on_fake_gpu()) return check_report();
  set("HOLOGRAM_NUM_THREADS", "4");
  for (int i = 0; i < 3; i++) {
    test_order();
    test_side_by_side();
    test_now();
    test_end_of_a_kernel();
  }
  return check_report();
}
