/* wait.c - waits that answer Ctrl-C: bounded waits for a stream, with checks for Python's signals in between.
 *
 * A call without a stream cannot be interrupted. So large work on the CPU, and programs on any device, go to a queue of
 * the library if the main thread submits them, because only that thread handles signals. If a handler raises, the work
 * goes on by itself; foreign memory that it uses is held until it is over. Calls that compile, or submit many launches,
 * check signals by hgpy_ask, and end early. */
#include "hgpy.h"

#include <time.h>

enum {
  SPIN_NS = 20000,         /* spins before it sleeps: most work is done soon */
  MOST_PAUSE_US = 5000,    /* a pause is a fraction of the time waited so far */
  PART = 32,
  LOOK_NS = 20000000,      /* between checks for signals */
};

/* Abandoned work: its queue, and the foreign memory that it uses. */
typedef struct left {
  struct left *next;
  hgpy_device *device;
  hg_stream *stream;
  uint32_t count;
  hgpy_storage *storages[];
} left;

static left *all_left;
static unsigned long main_thread;
static PyThread_type_lock never; /* locked for good: waiting for it sleeps until a signal comes */

void hgpy_set_main_thread(unsigned long thread) { main_thread = thread; }

/* Any thread may be the first to import the package. Without `threading` there is hardly another. */
static unsigned long find_main_thread(void) {
  PyObject *modules = PyImport_GetModuleDict(), *threading = PyDict_GetItemString(modules, "threading");
  PyObject *thread = threading != NULL ? PyObject_CallMethod(threading, "main_thread", NULL) : NULL;
  PyObject *ident = thread != NULL ? PyObject_GetAttrString(thread, "ident") : NULL;
  unsigned long found = ident != NULL ? PyLong_AsUnsignedLong(ident) : 0;
  Py_XDECREF(thread), Py_XDECREF(ident);
  if (ident != NULL && !PyErr_Occurred()) return found;
  PyErr_Clear();
  return PyThread_get_thread_ident();
}

bool hgpy_wait_prepare(void) {
  main_thread = find_main_thread();
  never = PyThread_allocate_lock();
  return never != NULL && PyThread_acquire_lock(never, 0) != 0;
}

static int64_t nanoseconds(void) {
  struct timespec now;
  if (timespec_get(&now, TIME_UTC) != TIME_UTC) return 0;
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool is_main_thread(void) { return PyThread_get_thread_ident() == main_thread; }

int hgpy_ask(void *unused) {
  (void)unused;
  if (!is_main_thread()) return 0;
  PyGILState_STATE before = PyGILState_Ensure();
  int raised = PyErr_CheckSignals() < 0;
  PyGILState_Release(before);
  return raised;
}

void hgpy_pause(int64_t microseconds) {
  Py_BEGIN_ALLOW_THREADS
  (void)PyThread_acquire_lock_timed(never, microseconds, 1);
  Py_END_ALLOW_THREADS
}

/* Without the GIL; false when it is time to check for signals. */
static bool pause_for(hg_stream *stream, int64_t begun, int64_t look, hg_status *status) {
  for (;;) {
    *status = hg_stream_query(stream);
    int64_t now = nanoseconds(), waited = now - begun;
    if (*status != HG_BUSY) return true;
    if (now < begun || now >= look) return false; /* clocks may be changed */
    if (waited < SPIN_NS) continue;
    int64_t pause = waited / (1000 * PART);
    if (PyThread_acquire_lock_timed(never, pause < MOST_PAUSE_US ? pause : MOST_PAUSE_US, 1) == PY_LOCK_INTR)
      return false;
  }
}

/* Until the stream is idle; false: a signal handler has raised. */
static bool await_idle(hg_stream *stream) {
  hg_status status = HG_BUSY;
  int64_t begun = nanoseconds();
  for (bool is_over = false; !is_over;) {
    int64_t look = nanoseconds() + LOOK_NS;
    HGPY_BEGIN_CALL
    is_over = pause_for(stream, begun, look, &status);
    HGPY_END_CALL
    if (!is_over && PyErr_CheckSignals() < 0) return false;
  }
  return true;
}

bool hgpy_stream_wait(hg_stream *stream) {
  hg_status status;
  if (is_main_thread() && !await_idle(stream)) return false;
  HGPY_BEGIN_CALL
  status = hg_stream_wait(stream, NULL);
  HGPY_END_CALL
  return hgpy_ok(status);
}

/* The caller references the device: another thread may close its executor meanwhile. */
bool hgpy_device_wait(hgpy_device *device) {
  hgpy_device_retain(device);
  bool is_good = device->stream == NULL || hgpy_stream_wait(device->stream);
  if (is_good) hgpy_release_reached(device);
  hgpy_device_release(device);
  return is_good;
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

static void let_go(left *l) {
  hg_stream_release(l->stream);
  for (uint32_t i = 0; i < l->count; i++) hgpy_storage_release(l->storages[i]);
  hgpy_device_release(l->device);
  PyMem_Free(l);
}

static void let_go_of_what_is_over(void) {
  for (left **at = &all_left; *at != NULL;) {
    left *l = *at;
    if (hg_stream_query(l->stream) == HG_BUSY) {
      at = &l->next;
      continue;
    }
    *at = l->next;
    let_go(l);
  }
}

hg_stream *hgpy_queue_take(hgpy_device *device) {
  if (all_left != NULL) let_go_of_what_is_over();
  if (!is_main_thread()) return NULL;
  hg_stream *queue = device->queue;
  device->queue = NULL; /* a signal handler may compute, too: it gets another queue */
  if (queue == NULL && hg_stream_create(device->executor, NULL, &queue) != HG_OK) return NULL;
  hgpy_enter();
  return queue;
}

static void put_back(hgpy_device *device, hg_stream *queue) {
  if (device->queue != NULL) hg_stream_release(queue);
  else device->queue = queue;
}

static bool leave(hgpy_device *device, hg_stream *queue, hgpy_storage *const *storages, uint32_t count) {
  left *l = PyMem_Malloc(sizeof *l + count * sizeof(hgpy_storage *));
  if (l == NULL) return false;
  if (hgpy_order_behind(device, queue) != HG_OK) return PyMem_Free(l), false;
  *l = (left){.next = all_left, .device = hgpy_device_retain(device), .stream = queue, .count = count};
  for (uint32_t i = 0; i < count; i++) l->storages[i] = hgpy_storage_retain(storages[i]);
  all_left = l;
  return true;
}

bool hgpy_queue_wait(hgpy_device *device, hg_stream *queue, hg_status given, hgpy_storage *const *storages,
                     uint32_t count) {
  bool is_good = hgpy_ok(given), is_idle = is_good && await_idle(queue);
  bool is_interrupted = given == HG_CANCELLED || (is_good && !is_idle);
  hgpy_leave();
  if (is_interrupted && leave(device, queue, storages, count)) return false;
  hg_status status = hg_stream_wait(queue, NULL); /* also for work submitted before a failure */
  if (is_idle) is_good = hgpy_ok(status);
  put_back(device, queue);
  return is_good && is_idle;
}
