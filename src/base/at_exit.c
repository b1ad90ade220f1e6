/* at_exit.c - the process's exit waits for work of the library's own threads. */
#include "base/at_exit.h"

#include "base/os.h"

/* The process's, like its threads. */
static struct {
  atomic_flag has_handlers;
  atomic_uint refused;    /* the handlers could not be set: no threads */
  atomic_uint held;
  atomic_uint is_exiting;
} process = {.has_handlers = ATOMIC_FLAG_INIT};

static void forget_work(void) { atomic_store(&process.held, 0); }

static void wait_for_work(void) {
  atomic_store(&process.is_exiting, 1);
  for (uint32_t count; (count = atomic_load(&process.held)) > 0;) hg_wait(&process.held, count);
}

int hg_exit_watch(void) {
  if (!atomic_flag_test_and_set(&process.has_handlers))
    atomic_store(&process.refused, hg_on_fork_and_exit(forget_work, wait_for_work) != 0);
  return !atomic_load(&process.refused);
}

int hg_exit_hold(void) {
  atomic_fetch_add(&process.held, 1);
  if (!atomic_load(&process.is_exiting)) return 1;
  hg_exit_let();
  return 0;
}

void hg_exit_let(void) {
  atomic_fetch_sub(&process.held, 1);
  if (atomic_load(&process.is_exiting)) hg_wake(&process.held);
}
