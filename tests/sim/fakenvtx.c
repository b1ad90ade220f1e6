/* fakenvtx.c - a profiler that speaks NVTX 3: the tool's side of the interface, which looks at all that it is given as
 * strictly as the interface allows, and writes down the ranges of each thread.
 *
 * FAKENVTX=refuse: does not start. FAKENVTX=deaf: wants to hear of no ranges. FAKENVTX=no-domain: makes no domains. */
#define _GNU_SOURCE
#include "thread_local.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAKENVTX_API __attribute__((visibility("default")))

typedef void (*function)(void);
typedef int (*modules_function)(int module, function ***table, unsigned *count);
typedef const void *(*exports_function)(uint32_t number);

FAKENVTX_API int InitializeInjectionNvtx2(exports_function exports);
FAKENVTX_API int fakenvtx_starts(void);
FAKENVTX_API const char *fakenvtx_take(void);

static atomic_int starts;
static char a_domain;
static void *domain;
static ALIGNED_THREAD_LOCAL char ranges[1 << 16], taken[sizeof ranges + 8];
static _Thread_local int depth;

/* How often it was started. */
int fakenvtx_starts(void) { return atomic_load(&starts); }

/* What this thread has done since it last asked: "launch saxpy=600(compile saxpy())", with "!" where it was wrong. */
const char *fakenvtx_take(void) {
  snprintf(taken, sizeof taken, "%s%s", ranges, depth != 0 ? "!open" : "");
  ranges[0] = '\0';
  return taken;
}

static void add(const char *text) {
  size_t used = strlen(ranges);
  snprintf(ranges + used, sizeof ranges - used, "%s", text);
}

/* ---- the application's calls ------------------------------------------------------------------------------------- */

static uint64_t number_at(const void *attributes, size_t offset, size_t size) {
  uint64_t number = 0;
  memcpy(&number, (const uint8_t *)attributes + offset, size);
  return number;
}

/* The attributes are nvtxEventAttributes_t: u16 version, its size; at 16 the payload's type, at 24 the payload; at 32
 * the message's type, at 40 the message. */
static int push(void *given, const void *attributes) {
  const char *message = (const char *)(uintptr_t)number_at(attributes, 40, sizeof message);
  char payload[32];
  if (given != domain) add("!domain");
  if (number_at(attributes, 0, 2) != 3 || number_at(attributes, 2, 2) != 48) add("!version");
  if (number_at(attributes, 32, 4) != 1) add("!message");
  add(message);
  snprintf(payload, sizeof payload, "=%llu", (unsigned long long)number_at(attributes, 24, 8));
  switch (number_at(attributes, 16, 4)) {
  case 0: break;
  case 1: add(payload); break;
  default: add("!payload"); break;
  }
  add("(");
  return depth++;
}

static int pop(void *given) {
  if (given != domain) add("!domain");
  if (depth == 0) add("!pop");
  add(")");
  return --depth;
}

static void *create(const char *name) {
  domain = &a_domain;
  if (strcmp(name, "hologram") != 0) add("!name");
  return domain;
}

/* ---- the start --------------------------------------------------------------------------------------------------- */

/* All modules are there with at least the slots that NVTX 3 began with; slots are empty, and their table ends. */
static int tables_are_right(modules_function modules) {
  static const unsigned counts[] = {0, 16, 9, 15, 7, 16, 7};
  function **table = NULL;
  unsigned count = 0;
  for (int module = 1; module <= 6; module++) {
    if (!modules(module, &table, &count) || count != counts[module] || table[0] != NULL || table[count] != NULL)
      return 0;
    for (unsigned i = 1; i < count; i++)
      if (table[i] == NULL || *table[i] != NULL) return 0;
    if (!modules(module, NULL, NULL)) return 0;
  }
  return !modules(0, &table, &count) && !modules(7, &table, &count);
}

static int version_is_right(exports_function exports) {
  struct {
    size_t size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t);
  } const *version = exports(3);
  if (version == NULL || version->size != sizeof *version || version->version != 3) return 0;
  version->set_tool_version(3);
  return 1;
}

int InitializeInjectionNvtx2(exports_function exports) {
  const char *mode = getenv("FAKENVTX") != NULL ? getenv("FAKENVTX") : "";
  struct {
    size_t size;
    modules_function modules;
  } const *callbacks = exports(1);
  function **table = NULL;
  atomic_fetch_add(&starts, 1);
  usleep(20000); /* others come while it starts */
  if (exports(0) != NULL || exports(2) != NULL || exports(4) != NULL || callbacks->size != sizeof *callbacks ||
      !tables_are_right(callbacks->modules) || !version_is_right(exports))
    return 0;
  (void)callbacks->modules(5, &table, NULL);
  if (strcmp(mode, "deaf") != 0) {
    *table[4] = (function)push;
    *table[5] = (function)pop;
  }
  if (strcmp(mode, "no-domain") != 0) *table[12] = (function)create;
  return strcmp(mode, "refuse") != 0;
}
