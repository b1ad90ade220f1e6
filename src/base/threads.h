/* threads.h - the process's worker threads: one job, cut into parts, run by several of them at once.
 *
 *   static void add_part(void *user, uint64_t part, uint32_t worker);
 *   hg_parallel(hg_parallel_threads(work_ns, 0), part_count, add_part, &job);
 *
 * The workers are made when a first job needs them and serve every executor. They spin for a while after a job, so that
 * the next one starts within a microsecond, then sleep. A process forked off gets workers of its own.
 *
 * Results must not depend on which thread runs a part, nor on how many there are. */
#ifndef HG_BASE_THREADS_H
#define HG_BASE_THREADS_H

#include <stdint.h>

enum { HG_MAX_THREADS = 256 };

/* `worker` is less than the job's number of threads, and differs between parts that run at the same time. */
typedef void hg_part(void *user, uint64_t part, uint32_t worker);

/* Runs each part 0 .. part_count - 1 once, on the workers and the calling thread, and returns when all have run; what
 * they wrote is visible to the caller. It uses at most max_threads threads, and fewer where fewer are available: only
 * the caller's own within a part, and while another thread's job has the workers. Parts start in any order, ascending
 * within a thread's own share, and run with the default floating-point environment on workers, with the caller's on its
 * thread. A part reports failure through `user`, because the last error is per thread; it must not fork the process. */
void hg_parallel(uint32_t max_threads, uint64_t part_count, hg_part *part, void *user);

/* How many threads pay off for a job that takes one thread `work_ns`, at most so many (0: no bound); depends on whether
 * workers are awake. The call takes a few nanoseconds, because most answers are 1. */
uint32_t hg_parallel_threads(uint64_t work_ns, uint32_t most_threads);

/* The most threads a job may use: HOLOGRAM_NUM_THREADS, else the CPUs that the process may use. Found once. */
uint32_t hg_thread_limit(void);
/* The same, and at most `most`; 0: the caller sets no bound. */
static inline uint32_t hg_thread_limit_of(uint32_t most) {
  uint32_t limit = hg_thread_limit();
  return most != 0 && most < limit ? most : limit;
}

/* For a log: which setting is ignored and why; NULL: none. */
const char *hg_thread_remark(void);

#endif
