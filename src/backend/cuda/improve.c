/* improve.c - the threads of a device that compile kernels in full. They are started as work comes, and end when there
 * is none left. They hold no reference: a kernel's release removes its queued work, or leaves the kernel to a thread;
 * the device's end joins them. */
#include "backend/cuda/improve.h"
#include "backend/cuda/cuda_tuning.h"

#include "base/at_exit.h"
#include "base/threads.h"

/* ---- the queue --------------------------------------------------------------------------------------------------- */

static void append_locked(cuda_improvers *m, cuda_improvement *job) {
  cuda_improvement **link = &m->first;
  while (*link != NULL) link = &(*link)->next;
  job->next = NULL;
  *link = job;
}

static cuda_improvement *unlink_locked(cuda_improvement **link) {
  cuda_improvement *job = *link;
  if (job != NULL) *link = job->next;
  return job;
}

/* The first of that kernel; NULL: there is none. */
static cuda_improvement *take_of_locked(cuda_improvers *m, const void *kernel) {
  cuda_improvement **link = &m->first;
  while (*link != NULL && (*link)->kernel != kernel) link = &(*link)->next;
  return unlink_locked(link);
}

/* The most expensive one, the first of equals; NULL: there is none. */
static cuda_improvement *take_dearest_locked(cuda_improvers *m) {
  cuda_improvement **dearest = &m->first;
  uint64_t most = 0;
  for (cuda_improvement **link = &m->first; *link != NULL; link = &(*link)->next) {
    uint64_t cost = (*link)->cost(*link);
    if (cost > most) most = cost, dearest = link;
  }
  return unlink_locked(dearest);
}

static cuda_improvement *take_of(cuda_improvers *m, const void *kernel) {
  hg_mutex_lock(&m->mutex);
  cuda_improvement *job = take_of_locked(m, kernel);
  hg_mutex_unlock(&m->mutex);
  return job;
}

static void make(cuda_device *d, cuda_improvement *job) {
  job->make(d, job);
  job->release(job);
}

/* ---- the threads ------------------------------------------------------------------------------------------------- */

static hg_status make_entered(cuda_device *d, cuda_improvement *job) {
  int mode = CUDA_CAPTURE_RELAXED; /* captures of other threads do not restrict this one */
  if (d->driver.cuThreadExchangeStreamCaptureMode != NULL) (void)d->driver.cuThreadExchangeStreamCaptureMode(&mode);
  CUDA_RUN(d, (job->make(d, job), HG_OK));
}

static int is_at_locked(const cuda_improvers *m, const void *kernel) {
  for (int i = 0; i < CUDA_IMPROVERS; i++)
    if (m->each[i].at != NULL && m->each[i].at->kernel == kernel) return 1;
  return 0;
}

/* 1: the caller must end the kernel. */
static int leave(cuda_improvers *m, cuda_improver *own) {
  hg_mutex_lock(&m->mutex);
  const cuda_improvement *job = own->at;
  own->at = NULL;
  int is_due = job->is_last && !is_at_locked(m, job->kernel);
  atomic_fetch_add(&m->made, 1);
  hg_mutex_unlock(&m->mutex);
  hg_wake(&m->made);
  return is_due;
}

/* Makes nothing while the process ends; a kernel that ends then is left to the process. */
static void serve(cuda_device *d, cuda_improver *own, cuda_improvement *job) {
  int is_alive = hg_exit_hold();
  if (!is_alive || make_entered(d, job) != HG_OK) job->give_up(job);
  int is_due = leave(&d->improvers, own);
  if (is_alive && is_due) job->kernel_end(d, job->kernel);
  if (is_alive) hg_exit_let();
  job->release(job);
}

static int must_pause(const cuda_improvers *m, const cuda_improver *own) {
  if (atomic_load(&m->callers) > 0) return 1;
  return own != &m->each[0] && hg_time_ns() - atomic_load(&m->quiet_since) < CUDA_QUIET_NS;
}

/* NULL: nothing is left. */
static cuda_improvement *next_locked(cuda_improvers *m, cuda_improver *own) {
  while (m->first != NULL && must_pause(m, own)) {
    hg_mutex_unlock(&m->mutex);
    hg_sleep(CUDA_LOOK_NS);
    hg_mutex_lock(&m->mutex);
  }
  return take_dearest_locked(m);
}

static void run(void *user) {
  cuda_improver *own = user;
  cuda_device *d = own->device;
  cuda_improvers *m = &d->improvers;
  hg_mutex_lock(&m->mutex);
  while ((own->at = next_locked(m, own)) != NULL) {
    cuda_improvement *job = own->at;
    hg_mutex_unlock(&m->mutex);
    serve(d, own, job);
    hg_mutex_lock(&m->mutex);
  }
  own->state = CUDA_IMPROVER_ENDED;
  hg_mutex_unlock(&m->mutex);
}

/* The new thread first locks the queue, so that its handle is stored before it can end. */
static void start_locked(cuda_device *d, cuda_improver *own) {
  if (own->state == CUDA_IMPROVER_ENDED) hg_thread_join(&own->thread);
  own->state = CUDA_IMPROVER_NONE;
  own->device = d;
  if (hg_exit_watch() && hg_thread_start(&own->thread, run, own) == 0) own->state = CUDA_IMPROVER_RUNS;
}

/* Starts another thread if there is room for it. 0: none runs. */
static int start_one_locked(cuda_device *d) {
  cuda_improvers *m = &d->improvers;
  uint32_t running = 0, limit = hg_thread_limit() < CUDA_IMPROVERS ? hg_thread_limit() : CUDA_IMPROVERS;
  cuda_improver *idle = NULL;
  for (int i = CUDA_IMPROVERS; i-- > 0;) {
    if (m->each[i].state == CUDA_IMPROVER_RUNS) running++;
    else idle = &m->each[i];
  }
  if (running < limit && idle != NULL) {
    start_locked(d, idle);
    running += idle->state == CUDA_IMPROVER_RUNS;
  }
  return running > 0;
}

/* ---- functions for other files ----------------------------------------------------------------------------------- */

void hg_cuda_improve_later(cuda_device *d, cuda_improvement *job) {
  cuda_improvers *m = &d->improvers;
  hg_mutex_lock(&m->mutex);
  append_locked(m, job);
  int has_thread = start_one_locked(d);
  if (!has_thread) (void)take_of_locked(m, job->kernel);
  hg_mutex_unlock(&m->mutex);
  if (!has_thread) make(d, job);
}

static int is_at(cuda_improvers *m, const void *kernel, uint32_t *made) {
  hg_mutex_lock(&m->mutex);
  int is_being_made = is_at_locked(m, kernel);
  *made = atomic_load(&m->made);
  hg_mutex_unlock(&m->mutex);
  return is_being_made;
}

void hg_cuda_improve_now(cuda_device *d, void *kernel) {
  uint32_t made = 0;
  for (cuda_improvement *job; (job = take_of(&d->improvers, kernel)) != NULL;) make(d, job);
  while (is_at(&d->improvers, kernel, &made)) hg_wait(&d->improvers.made, made);
}

/* In a child of fork there are no threads, and one of them may have held the lock. */
int hg_cuda_improve_no_more(cuda_device *d, void *kernel) {
  cuda_improvers *m = &d->improvers;
  int is_child = d->process != hg_process_id(), is_being_made = 0;
  if (!is_child) hg_mutex_lock(&m->mutex);
  for (cuda_improvement *job; (job = take_of_locked(m, kernel)) != NULL;) job->release(job);
  for (int i = 0; i < CUDA_IMPROVERS && !is_child; i++) {
    cuda_improvement *at = m->each[i].at;
    if (at == NULL || at->kernel != kernel) continue;
    at->is_last = 1;
    is_being_made = 1;
  }
  if (!is_child) hg_mutex_unlock(&m->mutex);
  return is_being_made;
}

void hg_cuda_improve_pause(cuda_device *d) { atomic_fetch_add(&d->improvers.callers, 1); }

void hg_cuda_improve_go_on(cuda_device *d) {
  atomic_store(&d->improvers.quiet_since, hg_time_ns());
  atomic_fetch_sub(&d->improvers.callers, 1);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

int hg_cuda_improvers_open(cuda_device *d) { return hg_mutex_init(&d->improvers.mutex) == 0; }

static int must_be_joined(cuda_improvers *m, const cuda_improver *one) {
  hg_mutex_lock(&m->mutex);
  int was_started = one->state != CUDA_IMPROVER_NONE;
  hg_mutex_unlock(&m->mutex);
  return was_started;
}

void hg_cuda_improvers_close(cuda_device *d) {
  cuda_improvers *m = &d->improvers;
  for (int i = 0; i < CUDA_IMPROVERS && d->process == hg_process_id(); i++)
    if (must_be_joined(m, &m->each[i])) hg_thread_join(&m->each[i].thread);
  hg_mutex_destroy(&m->mutex);
}
