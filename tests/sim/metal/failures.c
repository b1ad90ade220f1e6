/* failures.c - failures that tests ask for. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[SIM_FAILURE_COUNT] = {
    [SIM_NO_DEVICE] = "device",     [SIM_NO_QUEUE] = "queue",       [SIM_NO_BUFFER] = "buffer",
    [SIM_NO_LIBRARY] = "library",   [SIM_NO_PIPELINE] = "pipeline", [SIM_NO_COMMANDS] = "commands",
    [SIM_REMOVED] = "removed",      [SIM_TIMEOUT] = "timeout",      [SIM_FEW_THREADS] = "threads",
    [SIM_NO_ARCHIVE] = "archive",   [SIM_NO_OBJECT] = "object",     [SIM_ANYTHING] = "anything",
};
static long left[SIM_FAILURE_COUNT];

long metal_sim_fail(const char *what, long n) {
  for (int i = 0; i < SIM_FAILURE_COUNT; i++)
    if (strcmp(names[i], what) == 0) return __atomic_exchange_n(&left[i], n, __ATOMIC_SEQ_CST);
  sim_die("there is no failure '%s'", what);
}

__attribute__((constructor)) static void from_environment(void) {
  const char *asked = getenv("SIMMETAL_FAIL"), *colon = asked != NULL ? strchr(asked, ':') : NULL;
  char what[32];
  if (colon == NULL || (size_t)(colon - asked) >= sizeof what) return;
  memcpy(what, asked, (size_t)(colon - asked));
  what[colon - asked] = '\0';
  metal_sim_fail(what, atol(colon + 1));
}

static int is_next(sim_failure failure) {
  if (__atomic_load_n(&left[failure], __ATOMIC_SEQ_CST) == 0) return 0;
  return __atomic_sub_fetch(&left[failure], 1, __ATOMIC_SEQ_CST) == 0;
}

int sim_fails(sim_failure failure) {
  int is_gpus = failure == SIM_REMOVED || failure == SIM_TIMEOUT;
  return is_next(failure) || (!is_gpus && is_next(SIM_ANYTHING));
}
