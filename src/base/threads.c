/* threads.c - the pool of worker threads.
 *
 * Each worker has a mailbox, the word `state`. Only the thread that holds the pool posts jobs, and it may take back a
 * job that the worker has not begun, so that it never waits for a worker to wake up or to get a CPU:
 *
 *   IDLE -> POSTED -> RUNNING -> IDLE      the worker took the job
 *   IDLE -> POSTED -> IDLE                 the caller was quicker and took it back
 *   IDLE -> ASLEEP -> POSTED               nothing to do for a while; posting wakes
 *   RUNNING -> AWAITED -> IDLE             the caller sleeps until the worker is done
 *
 * The parts of a job are divided into equal shares, so that a job repeated over the same memory finds it in the same
 * cores' caches; a thread that is done with its own share steals parts of the others'. Posting and joining take about
 * six transfers of a cache line between two cores. */
#include "base/threads.h"
#include "base/base_tuning.h"

#include "base/fp.h"
#include "base/os.h"
#include "base/settings.h"

#include <stdalign.h>

enum { CACHE_LINE_BYTES = 64 };

enum { IDLE, ASLEEP, POSTED, RUNNING, AWAITED, QUIT };

/* A thread's share of the job and its mailbox, which the caller's own does not use. A job touches one cache line of it.
 */
typedef struct worker {
  alignas(CACHE_LINE_BYTES) atomic_uint state;
  uint32_t thread_count; /* of the job */
  uint32_t help_count;   /* of how many shares the thread runs parts: its own, and those it steals from */
  _Atomic uint64_t next; /* part of the share; at its end or a little above when all are begun */
  uint64_t end;
  hg_part *part;
  void *user;
  alignas(CACHE_LINE_BYTES) hg_thread thread;
  uint32_t kept_off; /* the CPU that it must not wake up on; HG_NO_CPU */
} worker;

/* One of the few mutable globals the design allows. `busy` guards what is not atomic. */
static struct {
  worker workers[HG_MAX_THREADS]; /* workers[0] is whoever calls */
  alignas(CACHE_LINE_BYTES) atomic_uint busy;
  uint32_t worker_count;          /* that run, without workers[0] */
  uint8_t refused;                /* the system gave no further thread */
  uint8_t handlers_set;
  alignas(CACHE_LINE_BYTES) atomic_uint limit; /* 0: not yet asked for */
  atomic_uint awake;                           /* workers that do not sleep */
  atomic_uint caller_cpu;                      /* of the last caller that woke or started a worker */
  _Atomic uint64_t missed_ns;                  /* work done by too few threads because workers slept */
} pool;

static int try_hold_pool(void) {
  return atomic_load_explicit(&pool.busy, memory_order_relaxed) == 0 &&
         atomic_exchange_explicit(&pool.busy, 1, memory_order_acquire) == 0;
}

static void let_pool_go(void) { atomic_store_explicit(&pool.busy, 0, memory_order_release); }

static int transition(atomic_uint *state, uint32_t from, uint32_t to) {
  return atomic_compare_exchange_strong_explicit(state, &from, to, memory_order_acq_rel, memory_order_acquire);
}

/* Waits until *state is not `value`, at most HG_WORKER_SPIN_NS; returns what it is then. */
static uint32_t spin_while(atomic_uint *state, uint32_t value) {
  uint64_t end = 0;
  for (uint32_t turn = 1;; turn++) {
    uint32_t seen = atomic_load_explicit(state, memory_order_acquire);
    if (seen != value) return seen;
    hg_spin_pause();
    if (turn % HG_CLOCK_EVERY != 0) continue;
    uint64_t now = hg_time_ns();
    if (end == 0) end = now + HG_WORKER_SPIN_NS;
    else if (now >= end) return value;
  }
}

static void sleep_while(atomic_uint *state, uint32_t value) {
  while (atomic_load_explicit(state, memory_order_acquire) == value) hg_wait(state, value);
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

/* Runs the share of thread `self`, then steals from the others. */
static void run_shares(uint32_t self) {
  uint32_t thread_count = pool.workers[self].thread_count;
  hg_part *part = pool.workers[self].part;
  void *user = pool.workers[self].user;
  for (uint32_t i = 0; i < pool.workers[self].help_count; i++) {
    worker *owner = &pool.workers[self + i < thread_count ? self + i : self + i - thread_count];
    uint64_t end = owner->end;
    while (atomic_load_explicit(&owner->next, memory_order_relaxed) < end) {
      uint64_t index = atomic_fetch_add_explicit(&owner->next, 1, memory_order_relaxed);
      if (index < end) part(user, index, self);
    }
  }
}

/* Schedulers like to run a woken thread on the CPU of its waker, where it waits for a tick, a thousand times the job,
 * because the waker goes on running. So a worker is kept off that CPU until it has woken up, or leaves it once it runs.
 */
static void leave_callers_cpu(void) {
  uint32_t callers = atomic_load_explicit(&pool.caller_cpu, memory_order_relaxed);
  if (callers != HG_NO_CPU && hg_current_cpu() == callers) hg_leave_cpu(callers);
}

static void note_callers_cpu(void) {
  atomic_store_explicit(&pool.caller_cpu, hg_current_cpu(), memory_order_relaxed);
}

/* 1: there is a job, which can no longer be taken back. 0: the worker must end. */
static int await_job(worker *self) {
  for (;;) {
    uint32_t state = spin_while(&self->state, IDLE);
    if (state == QUIT) return 0;
    if (state == POSTED && transition(&self->state, POSTED, RUNNING)) return 1;
    self->kept_off = HG_NO_CPU;
    if (state != IDLE || !transition(&self->state, IDLE, ASLEEP)) continue;
    atomic_fetch_sub_explicit(&pool.awake, 1, memory_order_relaxed);
    sleep_while(&self->state, ASLEEP);
    if (self->kept_off != HG_NO_CPU) hg_allow_cpu(self->kept_off);
    else leave_callers_cpu();
    atomic_fetch_add_explicit(&pool.awake, 1, memory_order_relaxed);
  }
}

static void work(void *user) {
  worker *self = user;
  leave_callers_cpu();
  hg_fp_enter(); /* a new thread inherits its creator's environment */
  while (await_job(self)) {
    run_shares((uint32_t)(self - pool.workers));
    if (atomic_exchange_explicit(&self->state, IDLE, memory_order_acq_rel) == AWAITED) hg_wake(&self->state);
  }
}

static void post(worker *w, uint32_t state) {
  if (atomic_load_explicit(&w->state, memory_order_acquire) == ASLEEP) { /* only a post can change that */
    uint32_t cpu = hg_current_cpu();
    if (hg_thread_keep_off(&w->thread, cpu)) w->kept_off = cpu;
  }
  if (atomic_exchange_explicit(&w->state, state, memory_order_acq_rel) != ASLEEP) return;
  note_callers_cpu();
  hg_wake(&w->state);
}

/* Takes the job back, or waits until the worker has finished it. */
static void join_worker(worker *w) {
  if (transition(&w->state, POSTED, IDLE))
    return; /* measured: looking first, to leave the line to the worker, is slower */
  if (spin_while(&w->state, RUNNING) == RUNNING && transition(&w->state, RUNNING, AWAITED))
    sleep_while(&w->state, AWAITED);
}

/* ---- the pool ---------------------------------------------------------------------------------------------------- */

/* In the only thread of a process just forked off: it has no workers, nor the thread that may have held the pool. */
static void start_afresh(void) {
  pool.worker_count = 0;
  pool.refused = 0;
  atomic_store(&pool.awake, 0);
  let_pool_go();
}

/* Ends the workers before their code may be unloaded. Where a job runs now, they stay: the process ends during the job.
 * The pool stays held, so that no new workers are started. */
static void end_workers(void) {
  if (!try_hold_pool()) return;
  for (uint32_t i = 1; i <= pool.worker_count; i++) post(&pool.workers[i], QUIT);
  for (uint32_t i = 1; i <= pool.worker_count; i++) hg_thread_join(&pool.workers[i].thread);
  pool.worker_count = 0;
}

/* With the pool held: starts workers up to thread_count - 1, and returns how many threads there are. */
static uint32_t ensure_workers(uint32_t thread_count) {
  if (!pool.handlers_set && !pool.refused) {
    pool.refused = hg_on_fork_and_exit(start_afresh, end_workers) != 0;
    pool.handlers_set = !pool.refused;
  }
  if (pool.worker_count + 1 < thread_count) note_callers_cpu();
  while (pool.worker_count + 1 < thread_count && !pool.refused) {
    worker *w = &pool.workers[pool.worker_count + 1];
    atomic_store_explicit(&w->state, IDLE, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool.awake, 1, memory_order_relaxed); /* first: it may soon fall asleep */
    pool.refused = hg_thread_start(&w->thread, work, w) != 0;
    if (pool.refused) atomic_fetch_sub_explicit(&pool.awake, 1, memory_order_relaxed);
    else pool.worker_count++;
  }
  return pool.worker_count + 1 < thread_count ? pool.worker_count + 1 : thread_count;
}

/* With the pool held. */
static void run_job(uint32_t thread_count, uint64_t part_count, hg_part *part, void *user) {
  uint64_t each = part_count / thread_count, left_over = part_count % thread_count, next = 0;
  for (uint32_t i = 0; i < thread_count; i++) { /* all shares before the first post: any thread may help with any */
    worker *w = &pool.workers[i];
    atomic_store_explicit(&w->next, next, memory_order_relaxed);
    w->end = next += each + (i < left_over);
    w->thread_count = thread_count;
    w->help_count = i == 0 || each > 1 ? thread_count : 1; /* of a part each, the caller takes those of the late */
    w->part = part;
    w->user = user;
  }
  for (uint32_t i = 1; i < thread_count; i++) post(&pool.workers[i], POSTED);
  run_shares(0);
  for (uint32_t i = 1; i < thread_count; i++) join_worker(&pool.workers[i]);
}

void hg_parallel(uint32_t max_threads, uint64_t part_count, hg_part *part, void *user) {
  uint32_t thread_count = max_threads < part_count ? max_threads : (uint32_t)part_count;
  if (thread_count > hg_thread_limit()) thread_count = hg_thread_limit();
  if (thread_count > 1 && try_hold_pool()) {
    thread_count = ensure_workers(thread_count);
    if (thread_count > 1) run_job(thread_count, part_count, part, user);
    let_pool_go();
    if (thread_count > 1) return;
  }
  for (uint64_t i = 0; i < part_count; i++) part(user, i, 0);
}

/* ---- how many threads -------------------------------------------------------------------------------------------- */

static hg_setting_state wanted_threads(uint64_t *count) {
  return hg_setting_number("HOLOGRAM_NUM_THREADS", 1, HG_MAX_THREADS, count);
}

uint32_t hg_thread_limit(void) {
  uint32_t limit = atomic_load_explicit(&pool.limit, memory_order_relaxed);
  if (limit > 0) return limit;
  uint64_t wanted = 0;
  if (wanted_threads(&wanted) != HG_SETTING_GIVEN) wanted = hg_hardware_threads();
  limit = wanted < HG_MAX_THREADS ? (uint32_t)wanted : HG_MAX_THREADS;
  atomic_store_explicit(&pool.limit, limit, memory_order_relaxed);
  return limit;
}

const char *hg_thread_remark(void) {
  uint64_t ignored = 0;
  return wanted_threads(&ignored) == HG_SETTING_BAD
             ? "HOLOGRAM_NUM_THREADS is not a number from 1 to 256 and is ignored"
             : NULL;
}

/* Waking a worker costs about as much as tens of microseconds of work: too much for one small job, but not for a series
 * of them. So the work of small jobs is added up, and workers are woken once that would have paid off. */
static uint32_t wake_for(uint64_t work_ns, uint32_t awake_threads) {
  uint64_t asleep_worth = work_ns / HG_ASLEEP_NS;
  if (asleep_worth > awake_threads) return asleep_worth < HG_MAX_THREADS ? (uint32_t)asleep_worth : HG_MAX_THREADS;
  uint64_t missed = atomic_fetch_add_explicit(&pool.missed_ns, work_ns, memory_order_relaxed) + work_ns;
  if (missed < (uint64_t)HG_ASLEEP_NS * (awake_threads + 1)) return awake_threads;
  atomic_store_explicit(&pool.missed_ns, 0, memory_order_relaxed);
  return 2 * awake_threads;
}

uint32_t hg_parallel_threads(uint64_t work_ns, uint32_t most_threads) {
  if (work_ns < 2 * HG_AWAKE_NS) return 1;
  uint32_t limit = hg_thread_limit_of(most_threads);
  uint32_t awake = 1 + atomic_load_explicit(&pool.awake, memory_order_relaxed);
  uint64_t worth = work_ns / HG_AWAKE_NS;
  uint32_t thread_count = worth < limit ? (uint32_t)worth : limit;
  if (thread_count <= awake) return thread_count;
  uint32_t woken = wake_for(work_ns, awake);
  return woken < thread_count ? woken : thread_count;
}
