/* improve.c - the thread of a device that compiles kernels in full. It is started when there is something to do, and
 * ends when there is nothing left. It holds no reference: a kernel's end takes away what waits, or is left to the
 * thread, and the device's end joins it. */
#include "backend/cuda/improve.h"

#include "base/at_exit.h"

/* ---- the queue --------------------------------------------------------------------------------------------------- */

static void append_locked(cuda_improver *m, cuda_improvement *job) {
  cuda_improvement **link = &m->first;
  while (*link != NULL) link = &(*link)->next;
  job->next = NULL;
  *link = job;
}

/* The first one of that kernel, of any where it is NULL; NULL: there is none. */
static cuda_improvement *take_locked(cuda_improver *m, const void *kernel) {
  cuda_improvement **link = &m->first;
  while (*link != NULL && kernel != NULL && (*link)->kernel != kernel) link = &(*link)->next;
  cuda_improvement *job = *link;
  if (job != NULL) *link = job->next;
  return job;
}

static cuda_improvement *take(cuda_improver *m, const void *kernel) {
  hg_mutex_lock(&m->mutex);
  cuda_improvement *job = take_locked(m, kernel);
  hg_mutex_unlock(&m->mutex);
  return job;
}

static void make(cuda_device *d, cuda_improvement *job) {
  job->make(d, job);
  job->release(job);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static hg_status make_entered(cuda_device *d, cuda_improvement *job) {
  int mode = CUDA_CAPTURE_RELAXED; /* another thread's capture of a stream is none of this thread's */
  if (d->driver.cuThreadExchangeStreamCaptureMode != NULL) (void)d->driver.cuThreadExchangeStreamCaptureMode(&mode);
  CUDA_RUN(d, (job->make(d, job), HG_OK));
}

static void leave(cuda_improver *m) {
  hg_mutex_lock(&m->mutex);
  m->at = NULL;
  atomic_fetch_add(&m->made, 1);
  hg_mutex_unlock(&m->mutex);
  hg_wake(&m->made);
}

/* Nothing more is made while the process ends; a kernel that ends then goes with the process. */
static void serve(cuda_device *d, cuda_improvement *job) {
  int is_alive = hg_exit_hold();
  if (is_alive) (void)make_entered(d, job);
  leave(&d->improver);
  if (is_alive && job->is_last) job->kernel_end(d, job->kernel);
  if (is_alive) hg_exit_let();
  job->release(job);
}

static void run(void *user) {
  cuda_device *d = user;
  cuda_improver *m = &d->improver;
  hg_mutex_lock(&m->mutex);
  while ((m->at = take_locked(m, NULL)) != NULL) {
    cuda_improvement *job = m->at;
    hg_mutex_unlock(&m->mutex);
    serve(d, job);
    hg_mutex_lock(&m->mutex);
  }
  m->state = CUDA_IMPROVER_ENDED;
  hg_mutex_unlock(&m->mutex);
}

/* The new thread first locks the queue, so that its handle is stored before it can end. */
static int start_locked(cuda_device *d) {
  cuda_improver *m = &d->improver;
  if (m->state == CUDA_IMPROVER_RUNS) return 1;
  if (m->state == CUDA_IMPROVER_ENDED) hg_thread_join(&m->thread);
  m->state = CUDA_IMPROVER_NONE;
  if (hg_exit_watch() && hg_thread_start(&m->thread, run, d) == 0) m->state = CUDA_IMPROVER_RUNS;
  return m->state == CUDA_IMPROVER_RUNS;
}

/* ---- what the others ask for ------------------------------------------------------------------------------------- */

void hg_cuda_improve_later(cuda_device *d, cuda_improvement *job) {
  cuda_improver *m = &d->improver;
  hg_mutex_lock(&m->mutex);
  int has_thread = start_locked(d);
  if (has_thread) append_locked(m, job);
  hg_mutex_unlock(&m->mutex);
  if (!has_thread) make(d, job);
}

static int is_at(cuda_improver *m, const void *kernel, uint32_t *made) {
  hg_mutex_lock(&m->mutex);
  int is_being_made = m->at != NULL && m->at->kernel == kernel;
  *made = atomic_load(&m->made);
  hg_mutex_unlock(&m->mutex);
  return is_being_made;
}

void hg_cuda_improve_now(cuda_device *d, void *kernel) {
  uint32_t made = 0;
  for (cuda_improvement *job; (job = take(&d->improver, kernel)) != NULL;) make(d, job);
  while (is_at(&d->improver, kernel, &made)) hg_wait(&d->improver.made, made);
}

/* In a child of fork there is no thread, which may have held the lock. */
int hg_cuda_improve_no_more(cuda_device *d, void *kernel) {
  cuda_improver *m = &d->improver;
  int is_child = d->process != hg_process_id();
  if (!is_child) hg_mutex_lock(&m->mutex);
  for (cuda_improvement *job; (job = take_locked(m, kernel)) != NULL;) job->release(job);
  int is_being_made = !is_child && m->at != NULL && m->at->kernel == kernel;
  if (is_being_made) m->at->is_last = 1;
  if (!is_child) hg_mutex_unlock(&m->mutex);
  return is_being_made;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

int hg_cuda_improver_open(cuda_device *d) { return hg_mutex_init(&d->improver.mutex) == 0; }

void hg_cuda_improver_close(cuda_device *d) {
  cuda_improver *m = &d->improver;
  if (d->process == hg_process_id()) {
    hg_mutex_lock(&m->mutex);
    int was_started = m->state != CUDA_IMPROVER_NONE;
    hg_mutex_unlock(&m->mutex);
    if (was_started) hg_thread_join(&m->thread);
  }
  hg_mutex_destroy(&m->mutex);
}
