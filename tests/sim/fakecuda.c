/* fakecuda.c - a double of libcuda for tests: the same functions, device memory that is host memory, kernels run by an
 * interpreter of their PTX (ptx_machine.c). It is stricter than the driver:
 *
 *   - Work given to a stream is done when somebody waits for it, not before, so a missing wait shows; what other
 * streams were given before is not, but for what the stream was told to wait for. Host memory that is not pinned is
 * read at once, as the driver does.
 *   - Device addresses are no addresses of the host: touching one from the host faults.
 *   - Every handle and range is checked. What does not hold is a violation: fakecuda_violation says what the first was,
 * and it is printed.
 *   - fakecuda_live counts what has not been given back.
 *
 * Environment, read at each call:
 *   FAKECUDA_FAIL        "NAME:N=ERROR ...": the N-th call from now on of the function (0: every call) gives that
 * error; one that ruins a context does so. A changed value starts counting again. FAKECUDA_DEVICES     how many GPUs
 * there are (1)           FAKECUDA_MEMORY  bytes of each (1 GiB) FAKECUDA_DRIVER      version of the driver (13000)
 * FAKECUDA_MODE    compute mode (0) FAKECUDA_CAPABILITY  compute capability (90)               FAKECUDA_POOLS   0: no
 * memory pools FAKECUDA_DUMP        a file to which the text of every kernel is appended */
#define _GNU_SOURCE
#include "fakecuda.h"

#include "backend/cuda/driver.h"
#include "ptx_machine.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYMBOL(name, parameters) __attribute__((visibility("default"))) int name parameters;
#define SYMBOL_OPTIONAL SYMBOL
#include "backend/cuda/symbols.def"
#undef SYMBOL_OPTIONAL
#undef SYMBOL

enum { MAX_PARAMETER_BYTES = 4352, MAX_DEVICES = 4 };
#define DEVICE_BIT (UINT64_C(1) << 62)

/* ---- objects ----------------------------------------------------------------------------------------------------- */

typedef enum object_kind {
  CONTEXT,
  STREAM,
  EVENT,
  MEMORY,
  PINNED,
  POOL,
  LINK,
  MODULE,
  FUNCTION,
  GRAPH,
  EXECUTABLE,
  KIND_COUNT
} object_kind;
static const char *const kind_name[KIND_COUNT] = {"context", "stream", "event", "device memory", "pinned memory",
                                                  "memory pool", "link", "module", "function",
                                                  "graph", "executable graph"};

typedef struct object {
  struct object *next;
  object_kind kind;
  int device;          /* whose context it belongs to */
  int dead;            /* given back; the shell stays while there is a context, so that no new handle is like it */
  uint8_t *bytes;      /* of memory, pinned memory, the text of a link or an image */
  size_t byte_count;
  struct object *pool; /* of memory */
  struct object *module;
  uint64_t spare;      /* of a pool: bytes freed and kept */
  int unborn;          /* of memory from a pool: its stream has not come to the allocation */
  struct object *stream;     /* of an event: where it was recorded last, and behind which work */
  uint64_t recorded;
  int untimed;
  double time;               /* when that was reached */
  struct work *captured, **last_captured; /* of a stream that captures (the latter not NULL), and of graphs */
  ptx_module *program;
  char name[128];
  int *log_options;
  void **log_values;
  unsigned log_count;
} object;

/* Work that a stream has been given. */
typedef struct work {
  struct work *next;
  enum { COPY, FILL, RUN, ALLOCATE, FREE, WAIT, RECORD } kind;
  uint64_t number;
  object *stream;
  uint8_t *to;
  const uint8_t *from;
  uint8_t *held; /* a copy of unpinned host memory */
  size_t byte_count, value_bytes;
  uint32_t value;
  size_t rows, pitch;     /* of a fill: rows of byte_count bytes */
  object *function;       /* or the memory that is allocated or freed, or the event, or the stream waited for */
  uint64_t wait_number;   /* up to there */
  uint32_t grid[3], block[3], shared_bytes;
  uint8_t parameters[MAX_PARAMETER_BYTES];
} work;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object *objects;
static work *first_work, **last_work = &first_work;
static uint64_t work_given, live_bytes[MAX_DEVICES];
static double clock_now;
static int sticky_error, context_users[MAX_DEVICES], lost, excused, refusals, running_on;
static pid_t started_in;
static object *primary[MAX_DEVICES];
static char violation[256], fail_setting[256];
static unsigned fail_calls[64];
static _Thread_local object *current;
static _Thread_local object *below[8];
static _Thread_local int depth;

static void blame(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (violation[0] == '\0') {
    vsnprintf(violation, sizeof violation, format, arguments);
    fprintf(stderr, "fakecuda: %s\n", violation);
  }
  va_end(arguments);
}

static uint64_t setting(const char *name, uint64_t otherwise) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? strtoull(value, NULL, 0) : otherwise;
}

static object *add(object_kind kind, size_t byte_count) {
  object *o = calloc(1, sizeof *o);
  if (o == NULL) abort();
  o->kind = kind;
  o->device = current != NULL ? current->device : 0;
  o->byte_count = byte_count;
  if (byte_count > 0) {
    o->bytes = aligned_alloc(256, (byte_count + 255) / 256 * 256);
    if (o->bytes == NULL) abort();
    memset(o->bytes, 0xa5, byte_count); /* what memory holds before it is written is not to be relied on */
  }
  o->next = objects;
  objects = o;
  return o;
}

static void bury(object *o) {
  free(o->bytes);
  o->bytes = NULL;
  o->dead = 1;
}

static int is_live(const object *o, object_kind kind, const char *caller) {
  for (const object *i = objects; i != NULL; i = i->next) {
    if (i != o || i->kind != kind || i->dead) continue;
    if (kind != CONTEXT && kind != EVENT && current != NULL && i->device != current->device)
      blame("%s: a %s of GPU %d while GPU %d is current", caller, kind_name[kind], i->device, current->device);
    return 1;
  }
  blame("%s: not a live %s", caller, kind_name[kind]);
  return 0;
}

/* The host's bytes behind a range of a device's memory; NULL, and a violation, where there are none. Work that is
 * pending may still touch what is freed behind it. */
static uint8_t *reach_in(cuda_address address, size_t byte_count, const char *caller, int device, int pending) {
  uint8_t *first = (uint8_t *)(uintptr_t)(address & ~DEVICE_BIT);
  for (object *o = objects; o != NULL && (address & DEVICE_BIT) != 0; o = o->next)
    if (o->kind == MEMORY && o->device == device && (!o->dead || (pending && o->bytes != NULL)) && first >= o->bytes &&
        first <= o->bytes + o->byte_count && byte_count <= (size_t)(o->bytes + o->byte_count - first)) {
      if (pending && o->unborn) blame("%s: 0x%llx is used before its stream has allocated it", caller, address);
      return first;
    }
  blame("%s: %zu bytes at 0x%llx are no memory of GPU %d", caller, byte_count, address, device);
  return NULL;
}

static uint8_t *reach(cuda_address address, size_t byte_count, const char *caller) {
  return reach_in(address, byte_count, caller, current->device, 0);
}

static object *pinned_at(const void *memory) {
  for (object *o = objects; o != NULL; o = o->next)
    if (o->kind == PINNED && !o->dead && (const uint8_t *)memory >= o->bytes &&
        (const uint8_t *)memory < o->bytes + o->byte_count)
      return o;
  return NULL;
}

/* What a kernel may touch: device memory, and pinned memory at its own address. */
static uint8_t *kernel_reach(void *user, uint64_t address, size_t byte_count) {
  (void)user;
  if ((address & DEVICE_BIT) != 0) return reach_in(address, byte_count, "a kernel", running_on, 1);
  const object *o = pinned_at((void *)(uintptr_t)address);
  if (o != NULL && byte_count <= (size_t)(o->bytes + o->byte_count - (uint8_t *)(uintptr_t)address))
    return (uint8_t *)(uintptr_t)address;
  blame("a kernel: %zu bytes at 0x%llx are no memory", byte_count, (unsigned long long)address);
  return NULL;
}

/* ---- errors on demand -------------------------------------------------------------------------------------------- */

static int fail_demanded(const char *caller) {
  const char *wanted = getenv("FAKECUDA_FAIL");
  if (wanted == NULL) wanted = "";
  if (strncmp(wanted, fail_setting, sizeof fail_setting - 1) != 0) {
    snprintf(fail_setting, sizeof fail_setting, "%s", wanted);
    memset(fail_calls, 0, sizeof fail_calls);
  }
  size_t length = strlen(caller);
  const char *at = wanted;
  for (unsigned i = 0; i < 64 && *at != '\0'; i++) {
    at += strspn(at, " ");
    char *end = NULL;
    if (strncmp(at, caller, length) == 0 && at[length] == ':') {
      unsigned long number = strtoul(at + length + 1, &end, 10);
      fail_calls[i]++;
      if (*end == '=' && (number == 0 || number == fail_calls[i])) return atoi(end + 1);
    }
    at += strcspn(at, " ");
  }
  return CUDA_OK;
}

static int poisons(int error) {
  switch (error) {
#define CUDA_ERROR(number, name, status, poisons, sentence) \
  case number: return poisons;
#include "backend/cuda/errors.def"
#undef CUDA_ERROR
  default: return 0;
  }
}

/* Who cannot give something back because the driver fails leaves it to the end of the context. */
static int demanded(const char *caller) {
  int error = fail_demanded(caller);
  if (error == CUDA_OK) return error;
  refusals++;
  if (poisons(error)) sticky_error = error;
  if (sticky_error != CUDA_OK || strstr(caller, "Free") != NULL || strstr(caller, "Destroy") != NULL ||
      strstr(caller, "Unload") != NULL || strstr(caller, "Ctx") != NULL)
    excused = 1;
  return error;
}

/* What every function but the first few begins with. */
static int begin(const char *caller, int needs_context) {
  if (started_in == 0 || started_in != getpid()) return 3; /* NOT_INITIALIZED */
  int error = demanded(caller);
  if (error != CUDA_OK) return error;
  if (!needs_context) return CUDA_OK;
  if (current == NULL || !is_live(current, CONTEXT, caller)) {
    blame("%s: called without a current context", caller);
    return 201;
  }
  return sticky_error;
}

#define ENTER(needs_context)                            \
  do {                                                  \
    pthread_mutex_lock(&lock);                          \
    int begin_error = begin(__func__, needs_context);   \
    if (begin_error != CUDA_OK) LEAVE(begin_error);     \
  } while (0)
#define LEAVE(result)             \
  do {                            \
    int leave_result = (result);  \
    pthread_mutex_unlock(&lock);  \
    return leave_result;          \
  } while (0)
#define EXPECT(condition)                                  \
  do {                                                     \
    if (!(condition)) {                                    \
      blame("%s: not true: %s", __func__, #condition);     \
      LEAVE(1);                                            \
    }                                                      \
  } while (0)
#define EXPECT_LIVE(o, kind)                                       \
  do {                                                             \
    if (!is_live((object *)(o), kind, __func__)) LEAVE(400);       \
  } while (0)

/* ---- streams ----------------------------------------------------------------------------------------------------- */

/* Appends to what the stream has been given or, while it captures, to its graph. */
static work *give(void *stream) {
  object *s = stream;
  work *w = calloc(1, sizeof *w);
  if (w == NULL) abort();
  w->stream = s;
  w->rows = 1;
  w->number = ++work_given;
  work ***last = s->last_captured != NULL ? &s->last_captured : &last_work;
  **last = w;
  *last = &w->next;
  return w;
}

static void run_kernel(const work *w) {
  char why[200];
  if (sticky_error != CUDA_OK) return;
  running_on = w->function->device;
  const ptx_launch launch = {.grid = {w->grid[0], w->grid[1], w->grid[2]},
                             .block = {w->block[0], w->block[1], w->block[2]},
                             .shared_bytes = w->shared_bytes,
                             .parameters = w->parameters,
                             .reach = kernel_reach};
  if (w->function->dead) blame("kernel %s: its module was unloaded before it ran", w->function->name);
  else if (!ptx_run(w->function->module->program, w->function->name, &launch, why, sizeof why))
    blame("kernel %s: %s", w->function->name, why);
  else return;
  sticky_error = 700;
}

/* Memory of the device is there when work comes to it; other addresses are the host's. */
static void touch(const uint8_t *first, size_t byte_count) {
  for (object *o = objects; o != NULL; o = o->next) {
    if (o->kind != MEMORY || o->bytes == NULL || first < o->bytes || first >= o->bytes + o->byte_count) continue;
    (void)reach_in((cuda_address)(uintptr_t)first | DEVICE_BIT, byte_count, "a copy or fill", o->device, 1);
    return;
  }
}

static void do_work(work *w) {
  const uint8_t *from = w->held != NULL ? w->held : w->from;
  switch (w->kind) {
  case COPY:
    touch(w->to, w->byte_count);
    touch(from, w->byte_count);
    memcpy(w->to, from, w->byte_count);
    break;
  case FILL:
    touch(w->to, w->byte_count);
    for (size_t row = 0; row < w->rows; row++)
      for (size_t i = 0; i < w->byte_count; i += w->value_bytes)
        memcpy(w->to + row * w->pitch + i, &w->value, w->value_bytes);
    break;
  case RUN: run_kernel(w); break;
  case ALLOCATE: w->function->unborn = 0; break;
  case FREE: bury(w->function); break;
  case RECORD: w->function->time = ++clock_now; break;
  case WAIT: break;
  }
  free(w->held);
}

static work **find_work(const object *stream, uint64_t number) {
  work **at = &first_work;
  while (*at != NULL && ((stream != NULL && (*at)->stream != stream) || (*at)->number > number)) at = &(*at)->next;
  return *at != NULL ? at : NULL;
}

/* Does a stream's work (NULL: that of all) up to a number, and what it waits for. */
static void wait_for(const object *stream, uint64_t number) {
  work **at;
  while ((at = find_work(stream, number)) != NULL) {
    work *w = *at;
    if (w->kind == WAIT) {
      wait_for(w->function, w->wait_number);
      at = find_work(stream, number); /* what lies before it may be gone */
    }
    *at = w->next;
    if (last_work == &w->next) last_work = at;
    do_work(w);
    free(w);
  }
}

#define EXPECT_NO_CAPTURE(stream) EXPECT(((object *)(stream))->last_captured == NULL)

int cuStreamCreate(void **stream, unsigned flags) {
  ENTER(1);
  EXPECT(flags == CUDA_STREAM_NON_BLOCKING);
  *stream = add(STREAM, 0);
  LEAVE(CUDA_OK);
}

/* What it was given is done some time. */
int cuStreamDestroy_v2(void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  EXPECT_NO_CAPTURE(stream);
  wait_for(stream, work_given);
  bury(stream);
  LEAVE(CUDA_OK);
}

int cuStreamSynchronize(void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  EXPECT_NO_CAPTURE(stream);
  wait_for(stream, work_given);
  LEAVE(sticky_error);
}

/* Not done until somebody waits. */
int cuStreamQuery(void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  EXPECT_NO_CAPTURE(stream);
  LEAVE(find_work(stream, work_given) != NULL ? CUDA_NOT_READY : sticky_error);
}

int cuStreamGetCtx(void *stream, void **context) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  *context = primary[((const object *)stream)->device];
  LEAVE(CUDA_OK);
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  EXPECT_LIVE(event, EVENT);
  EXPECT_NO_CAPTURE(stream); /* of an event that is not captured itself */
  EXPECT(flags == 0);
  object *e = event;
  if (e->stream == NULL) LEAVE(CUDA_OK);
  work *w = give(stream);
  w->kind = WAIT;
  w->function = e->stream;
  w->wait_number = e->recorded;
  LEAVE(CUDA_OK);
}

int cuEventCreate(void **event, unsigned flags) {
  ENTER(1);
  EXPECT((flags & ~(unsigned)CUDA_EVENT_DISABLE_TIMING) == 0);
  object *e = add(EVENT, 0);
  e->untimed = flags != 0;
  *event = e;
  LEAVE(CUDA_OK);
}

int cuEventDestroy_v2(void *event) {
  ENTER(1);
  EXPECT_LIVE(event, EVENT);
  bury(event);
  LEAVE(CUDA_OK);
}

int cuEventRecord(void *event, void *stream) {
  ENTER(1);
  EXPECT_LIVE(event, EVENT);
  EXPECT_LIVE(stream, STREAM);
  EXPECT_NO_CAPTURE(stream);
  object *e = event;
  work *w = give(stream);
  w->kind = RECORD;
  w->function = e;
  e->stream = stream;
  e->recorded = w->number;
  LEAVE(CUDA_OK);
}

int cuEventSynchronize(void *event) {
  ENTER(1);
  EXPECT_LIVE(event, EVENT);
  const object *e = event;
  if (e->stream != NULL) wait_for(e->stream, e->recorded);
  LEAVE(sticky_error);
}

int cuEventQuery(void *event) {
  ENTER(1);
  EXPECT_LIVE(event, EVENT);
  const object *e = event;
  LEAVE(e->stream != NULL && find_work(e->stream, e->recorded) != NULL ? CUDA_NOT_READY : sticky_error);
}

/* The clock counts what is reached. */
int cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  ENTER(1);
  EXPECT_LIVE(from, EVENT);
  EXPECT_LIVE(to, EVENT);
  const object *a = from, *b = to;
  EXPECT(!a->untimed && !b->untimed);
  if (a->stream == NULL || b->stream == NULL) LEAVE(400);
  if (find_work(a->stream, a->recorded) != NULL || find_work(b->stream, b->recorded) != NULL) LEAVE(CUDA_NOT_READY);
  *milliseconds = (float)(b->time - a->time);
  LEAVE(sticky_error);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

int cuStreamIsCapturing(void *stream, int *status) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  *status = ((object *)stream)->last_captured != NULL;
  LEAVE(CUDA_OK);
}

int cuStreamBeginCapture_v2(void *stream, int mode) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  EXPECT_NO_CAPTURE(stream);
  EXPECT(mode == CUDA_CAPTURE_RELAXED);
  object *s = stream;
  s->last_captured = &s->captured;
  LEAVE(CUDA_OK);
}

static void free_captured(object *o) {
  while (o->captured != NULL) {
    work *w = o->captured;
    o->captured = w->next;
    free(w->held);
    free(w);
  }
}

/* The capture is over even where no graph comes of it. */
int cuStreamEndCapture(void *stream, void **graph) {
  pthread_mutex_lock(&lock);
  object *s = stream;
  int error = begin(__func__, 1);
  if (error != CUDA_OK) {
    s->last_captured = NULL;
    free_captured(s);
    LEAVE(error);
  }
  EXPECT_LIVE(stream, STREAM);
  EXPECT(s->last_captured != NULL);
  object *o = add(GRAPH, 0);
  o->captured = s->captured;
  s->captured = NULL;
  s->last_captured = NULL;
  *graph = o;
  LEAVE(CUDA_OK);
}

static work *copy_of(const work *w) {
  work *copy = malloc(sizeof *copy);
  if (copy == NULL) abort();
  *copy = *w;
  copy->next = NULL;
  return copy;
}

int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  ENTER(1);
  EXPECT_LIVE(graph, GRAPH);
  EXPECT(flags == 0);
  object *o = add(EXECUTABLE, 0);
  work **last = &o->captured;
  for (const work *w = ((object *)graph)->captured; w != NULL; w = w->next, last = &(*last)->next) *last = copy_of(w);
  *executable = o;
  LEAVE(CUDA_OK);
}

int cuGraphDestroy(void *graph) {
  ENTER(1);
  EXPECT_LIVE(graph, GRAPH);
  free_captured(graph);
  bury(graph);
  LEAVE(CUDA_OK);
}

int cuGraphExecDestroy(void *executable) {
  ENTER(1);
  EXPECT_LIVE(executable, EXECUTABLE);
  free_captured(executable);
  bury(executable);
  LEAVE(CUDA_OK);
}

int cuGraphLaunch(void *executable, void *stream) {
  ENTER(1);
  EXPECT_LIVE(executable, EXECUTABLE);
  EXPECT_LIVE(stream, STREAM);
  EXPECT_NO_CAPTURE(stream);
  for (const work *w = ((object *)executable)->captured; w != NULL; w = w->next) {
    work *given = give(stream), *next = given->next;
    uint64_t number = given->number;
    *given = *w;
    given->next = next;
    given->number = number;
    given->stream = stream;
  }
  LEAVE(CUDA_OK);
}

/* ---- the driver and its devices ---------------------------------------------------------------------------------- */

int cuInit(unsigned flags) {
  pthread_mutex_lock(&lock);
  int error = demanded(__func__);
  if (error != CUDA_OK) LEAVE(error);
  EXPECT(flags == 0);
  if (started_in != 0 && started_in != getpid()) LEAVE(3);
  if (setting("FAKECUDA_DEVICES", 1) == 0) LEAVE(CUDA_NO_DEVICE);
  started_in = getpid();
  LEAVE(CUDA_OK);
}

int cuDriverGetVersion(int *version) {
  *version = (int)setting("FAKECUDA_DRIVER", 13000);
  return CUDA_OK;
}

int cuDeviceGetCount(int *count) {
  ENTER(0);
  *count = (int)setting("FAKECUDA_DEVICES", 1);
  LEAVE(CUDA_OK);
}

int cuDeviceGet(int *device, int ordinal) {
  ENTER(0);
  EXPECT(ordinal >= 0 && ordinal < (int)setting("FAKECUDA_DEVICES", 1));
  *device = ordinal;
  LEAVE(CUDA_OK);
}

int cuDeviceGetName(char *name, int name_bytes, int device) {
  ENTER(0);
  snprintf(name, (size_t)name_bytes, "Fake GPU %d", device);
  LEAVE(CUDA_OK);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  ENTER(0);
  (void)device;
  *bytes = setting("FAKECUDA_MEMORY", 1 << 30);
  LEAVE(CUDA_OK);
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER(0);
  (void)device;
  int capability = (int)setting("FAKECUDA_CAPABILITY", 90);
  switch (attribute) {
  case CUDA_DEVICE_MULTIPROCESSORS: *value = 4; break;
  case CUDA_DEVICE_COMPUTE_MODE: *value = (int)setting("FAKECUDA_MODE", 0); break;
  case CUDA_DEVICE_CAPABILITY_MAJOR: *value = capability / 10; break;
  case CUDA_DEVICE_CAPABILITY_MINOR: *value = capability % 10; break;
  case CUDA_DEVICE_MEMORY_POOLS: *value = (int)setting("FAKECUDA_POOLS", 1); break;
  default: *value = 1; break;
  }
  LEAVE(CUDA_OK);
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

int cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER(0);
  EXPECT(device >= 0 && device < (int)setting("FAKECUDA_DEVICES", 1) && device < MAX_DEVICES);
  if (context_users[device]++ == 0) {
    primary[device] = add(CONTEXT, 0);
    primary[device]->device = device;
  }
  *context = primary[device];
  LEAVE(CUDA_OK);
}

/* What is still alive in a context that ends is lost. */
int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER(0);
  EXPECT(device >= 0 && device < MAX_DEVICES && context_users[device] > 0);
  if (--context_users[device] > 0) LEAVE(CUDA_OK);
  wait_for(NULL, work_given);
  bury(primary[device]);
  for (object **at = &objects; *at != NULL;) {
    object *o = *at;
    if (o->device != device) {
      at = &o->next;
      continue;
    }
    if (!o->dead) {
      if (!excused && o->kind != FUNCTION && ++lost == 1) fprintf(stderr, "fakecuda: lost: %s\n", kind_name[o->kind]);
      if (o->kind == MODULE) ptx_release(o->program);
      free_captured(o);
      bury(o);
    }
    *at = o->next;
    free(o);
  }
  primary[device] = NULL;
  sticky_error = excused = 0;
  live_bytes[device] = 0;
  LEAVE(CUDA_OK);
}

int cuCtxGetCurrent(void **context) {
  ENTER(0);
  *context = current;
  LEAVE(CUDA_OK);
}

int cuCtxPushCurrent_v2(void *context) {
  ENTER(0);
  EXPECT_LIVE(context, CONTEXT);
  EXPECT(depth < 8);
  below[depth++] = current;
  current = context;
  LEAVE(CUDA_OK);
}

int cuCtxPopCurrent_v2(void **context) {
  ENTER(0);
  EXPECT(depth > 0);
  *context = current;
  current = below[--depth];
  LEAVE(CUDA_OK);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static uint64_t spare_bytes(void) {
  uint64_t sum = 0;
  for (const object *o = objects; o != NULL; o = o->next)
    if (o->kind == POOL && !o->dead && o->device == current->device) sum += o->spare;
  return sum;
}

static int take(cuda_address *address, size_t byte_count, object *pool, void *stream) {
  if (pool != NULL && pool->spare >= byte_count) pool->spare -= byte_count;
  else if (live_bytes[current->device] + spare_bytes() + byte_count > setting("FAKECUDA_MEMORY", 1 << 30))
    return CUDA_OUT_OF_MEMORY;
  object *o = add(MEMORY, byte_count);
  o->pool = pool;
  if (stream != NULL) {
    work *w = give(stream);
    w->kind = ALLOCATE;
    w->function = o;
    o->unborn = 1;
  }
  live_bytes[current->device] += byte_count;
  *address = (cuda_address)(uintptr_t)o->bytes | DEVICE_BIT;
  return CUDA_OK;
}

/* The bytes live on until the stream's work before has been done, or, without one, all work has. */
static int give_back(cuda_address address, void *stream, const char *caller) {
  int pooled = stream != NULL;
  for (object *o = objects; o != NULL; o = o->next) {
    if (o->kind != MEMORY || o->dead || ((cuda_address)(uintptr_t)o->bytes | DEVICE_BIT) != address) continue;
    if ((o->pool != NULL) != pooled) break;
    live_bytes[o->device] -= o->byte_count;
    if (pooled) o->pool->spare += o->byte_count;
    o->dead = 1;
    if (stream == NULL) {
      wait_for(NULL, work_given);
      bury(o);
      return CUDA_OK;
    }
    work *w = give(stream);
    w->kind = FREE;
    w->function = o;
    return CUDA_OK;
  }
  blame("%s: 0x%llx is no such allocation", caller, address);
  return 1;
}

int cuMemAlloc_v2(cuda_address *address, size_t bytes) {
  ENTER(1);
  EXPECT(bytes > 0);
  LEAVE(take(address, bytes, NULL, NULL));
}

int cuMemFree_v2(cuda_address address) {
  ENTER(1);
  LEAVE(give_back(address, NULL, __func__));
}

int cuMemGetInfo_v2(size_t *bytes_free, size_t *bytes_total) {
  ENTER(1);
  *bytes_total = setting("FAKECUDA_MEMORY", 1 << 30);
  *bytes_free = *bytes_total - live_bytes[current->device] - spare_bytes();
  LEAVE(CUDA_OK);
}

int cuMemPoolCreate(void **pool, const cuda_pool_properties *properties) {
  ENTER(1);
  EXPECT(properties->allocation_type == 1 && properties->location_type == 1 &&
         properties->location_id == current->device);
  EXPECT(sizeof *properties == 88 && setting("FAKECUDA_POOLS", 1) != 0);
  *pool = add(POOL, 0);
  LEAVE(CUDA_OK);
}

int cuMemPoolDestroy(void *pool) {
  ENTER(1);
  EXPECT_LIVE(pool, POOL);
  bury(pool);
  LEAVE(CUDA_OK);
}

int cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
  ENTER(1);
  EXPECT_LIVE(pool, POOL);
  EXPECT(attribute == CUDA_POOL_RELEASE_THRESHOLD && value != NULL);
  LEAVE(CUDA_OK);
}

int cuMemPoolSetAccess(void *pool, const cuda_access *access, size_t count) {
  ENTER(1);
  EXPECT(sizeof *access == 12 && count == 1 && access->location_type == 1 && access->flags == 3);
  EXPECT(access->location_id == current->device && pool != NULL && ((object *)pool)->kind == POOL);
  LEAVE(CUDA_OK);
}

int cuMemPoolTrimTo(void *pool, size_t bytes_kept) {
  ENTER(1);
  EXPECT_LIVE(pool, POOL);
  if (((object *)pool)->spare > bytes_kept) ((object *)pool)->spare = bytes_kept;
  LEAVE(CUDA_OK);
}

int cuMemAllocFromPoolAsync(cuda_address *address, size_t bytes, void *pool, void *stream) {
  ENTER(1);
  EXPECT_LIVE(pool, POOL);
  EXPECT_LIVE(stream, STREAM);
  EXPECT(bytes > 0);
  EXPECT_NO_CAPTURE(stream);
  LEAVE(take(address, bytes, pool, stream));
}

int cuMemFreeAsync(cuda_address address, void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  EXPECT_NO_CAPTURE(stream);
  LEAVE(give_back(address, stream, __func__));
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  ENTER(1);
  EXPECT(bytes > 0 && (flags & ~7u) == 0);
  *memory = add(PINNED, bytes)->bytes;
  LEAVE(CUDA_OK);
}

int cuMemFreeHost(void *memory) {
  ENTER(1);
  object *o = pinned_at(memory);
  EXPECT(o != NULL && o->bytes == memory);
  wait_for(NULL, work_given);
  bury(o);
  LEAVE(CUDA_OK);
}

int cuMemHostGetDevicePointer_v2(cuda_address *address, void *memory, unsigned flags) {
  ENTER(1);
  EXPECT(flags == 0 && pinned_at(memory) != NULL);
  *address = (cuda_address)(uintptr_t)memory;
  LEAVE(CUDA_OK);
}

static const object *memory_at(cuda_address pointer) {
  const uint8_t *at = (const uint8_t *)(uintptr_t)(pointer & ~DEVICE_BIT);
  for (const object *o = objects; o != NULL && (pointer & DEVICE_BIT) != 0; o = o->next)
    if (o->kind == MEMORY && !o->dead && at >= o->bytes && at < o->bytes + o->byte_count) return o;
  return NULL;
}

int cuPointerGetAttributes(unsigned count, int *attributes, void **values, cuda_address pointer) {
  ENTER(1);
  EXPECT(count == 1);
  int attribute = attributes[0];
  void *value = values[0];
  const object *pinned = pinned_at((void *)(uintptr_t)pointer), *memory = memory_at(pointer);
  const object *found = memory != NULL ? memory : pinned;
  if (found == NULL) { /* as the driver says of memory that it does not know */
    memset(value, 0, sizeof(unsigned));
    LEAVE(CUDA_OK);
  }
  switch (attribute) {
  case CUDA_POINTER_CONTEXT: *(void **)value = primary[found->device]; break;
  case CUDA_POINTER_MEMORY_TYPE: *(unsigned *)value = memory != NULL ? CUDA_MEMORY_DEVICE : CUDA_MEMORY_HOST; break;
  case CUDA_POINTER_DEVICE: *(int *)value = found->device; break;
  case CUDA_POINTER_RANGE_START:
    *(cuda_address *)value = (cuda_address)(uintptr_t)found->bytes | (memory != NULL ? DEVICE_BIT : 0);
    break;
  case CUDA_POINTER_RANGE_BYTES: *(size_t *)value = found->byte_count; break;
  default: EXPECT(attribute == CUDA_POINTER_MEMORY_TYPE);
  }
  LEAVE(CUDA_OK);
}

int cuDeviceCanAccessPeer(int *can, int device, int peer) {
  ENTER(0);
  EXPECT(device != peer && device < MAX_DEVICES && peer < MAX_DEVICES);
  *can = 1;
  LEAVE(CUDA_OK);
}

int cuCtxEnablePeerAccess(void *peer_context, unsigned flags) {
  ENTER(1);
  EXPECT_LIVE(peer_context, CONTEXT);
  EXPECT(flags == 0 && peer_context != current);
  LEAVE(CUDA_OK);
}

/* ---- copies and fills -------------------------------------------------------------------------------------------- */

int cuMemcpyHtoDAsync_v2(cuda_address destination, const void *source, size_t bytes, void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  uint8_t *to = reach(destination, bytes, __func__);
  if (to == NULL) LEAVE(1);
  if (pinned_at(source) == NULL) EXPECT_NO_CAPTURE(stream);
  work *w = give(stream);
  w->kind = COPY;
  w->to = to;
  w->from = source;
  w->byte_count = bytes;
  if (pinned_at(source) == NULL && bytes > 0) {
    w->held = malloc(bytes);
    if (w->held == NULL) abort();
    memcpy(w->held, source, bytes);
  }
  LEAVE(CUDA_OK);
}

int cuMemcpyDtoHAsync_v2(void *destination, cuda_address source, size_t bytes, void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  const uint8_t *from = reach(source, bytes, __func__);
  if (from == NULL) LEAVE(1);
  if (pinned_at(destination) == NULL) EXPECT_NO_CAPTURE(stream);
  work *w = give(stream);
  w->kind = COPY;
  w->to = destination;
  w->from = from;
  w->byte_count = bytes;
  LEAVE(CUDA_OK);
}

int cuMemcpyDtoDAsync_v2(cuda_address destination, cuda_address source, size_t bytes, void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  uint8_t *to = reach(destination, bytes, __func__);
  const uint8_t *from = reach(source, bytes, __func__);
  if (to == NULL || from == NULL) LEAVE(1);
  EXPECT(to + bytes <= from || from + bytes <= to);
  work *w = give(stream);
  w->kind = COPY;
  w->to = to;
  w->from = from;
  w->byte_count = bytes;
  LEAVE(CUDA_OK);
}

int cuMemcpyPeerAsync(cuda_address destination, void *destination_context, cuda_address source, void *source_context,
                      size_t bytes, void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  EXPECT_LIVE(destination_context, CONTEXT);
  EXPECT_LIVE(source_context, CONTEXT);
  uint8_t *to = reach_in(destination, bytes, __func__, ((object *)destination_context)->device, 0);
  const uint8_t *from = reach_in(source, bytes, __func__, ((object *)source_context)->device, 0);
  if (to == NULL || from == NULL) LEAVE(1);
  work *w = give(stream);
  w->kind = COPY;
  w->to = to;
  w->from = from;
  w->byte_count = bytes;
  LEAVE(CUDA_OK);
}

typedef struct rectangle {
  size_t pitch, count, rows; /* of elements */
} rectangle;

static int fill_rows(cuda_address destination, uint32_t value, size_t value_bytes, rectangle r, void *stream,
                     const char *caller) {
  size_t byte_count = r.rows > 0 ? (r.rows - 1) * r.pitch + r.count * value_bytes : 0;
  uint8_t *to = reach(destination, byte_count, caller);
  if (to == NULL) return 1;
  if (destination % value_bytes != 0 || r.pitch % value_bytes != 0)
    blame("%s: address 0x%llx or pitch %zu is not aligned", caller, destination, r.pitch);
  if (r.rows > 1 && r.pitch < r.count * value_bytes) blame("%s: rows overlap", caller);
  work *w = give(stream);
  w->kind = FILL;
  w->to = to;
  w->value = value;
  w->value_bytes = value_bytes;
  w->byte_count = r.count * value_bytes;
  w->rows = r.rows;
  w->pitch = r.pitch;
  return CUDA_OK;
}

static int fill(cuda_address destination, uint32_t value, size_t value_bytes, size_t count, void *stream,
                const char *caller) {
  return fill_rows(destination, value, value_bytes, (rectangle){0, count, 1}, stream, caller);
}

int cuMemsetD2D8Async(cuda_address destination, size_t pitch, unsigned char value, size_t width, size_t height,
                      void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  LEAVE(fill_rows(destination, value, 1, (rectangle){pitch, width, height}, stream, __func__));
}

int cuMemsetD2D16Async(cuda_address destination, size_t pitch, unsigned short value, size_t width, size_t height,
                       void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  LEAVE(fill_rows(destination, value, 2, (rectangle){pitch, width, height}, stream, __func__));
}

int cuMemsetD2D32Async(cuda_address destination, size_t pitch, unsigned value, size_t width, size_t height,
                       void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  LEAVE(fill_rows(destination, value, 4, (rectangle){pitch, width, height}, stream, __func__));
}

int cuMemsetD8Async(cuda_address destination, unsigned char value, size_t count, void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  LEAVE(fill(destination, value, 1, count, stream, __func__));
}

int cuMemsetD16Async(cuda_address destination, unsigned short value, size_t count, void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  LEAVE(fill(destination, value, 2, count, stream, __func__));
}

int cuMemsetD32Async(cuda_address destination, unsigned value, size_t count, void *stream) {
  ENTER(1);
  EXPECT_LIVE(stream, STREAM);
  LEAVE(fill(destination, value, 4, count, stream, __func__));
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* The fake image of a kernel is its PTX behind a magic word. */
static const char magic[] = "FAKECUBIN";

static void say(const object *link, const char *message) {
  char *log = NULL;
  size_t log_bytes = 0;
  for (unsigned i = 0; i < link->log_count; i++) {
    if (link->log_options[i] == CUDA_JIT_ERROR_LOG) log = link->log_values[i];
    if (link->log_options[i] == CUDA_JIT_ERROR_LOG_BYTES) log_bytes = (size_t)(uintptr_t)link->log_values[i];
  }
  if (log != NULL && log_bytes > 0) snprintf(log, log_bytes, "%s", message);
}

int cuLinkCreate_v2(unsigned option_count, int *options, void **values, void **state) {
  ENTER(1);
  object *o = add(LINK, 0);
  o->log_options = options;
  o->log_values = values;
  o->log_count = option_count;
  *state = o;
  LEAVE(CUDA_OK);
}

int cuLinkAddData_v2(void *state, int type, void *data, size_t bytes, const char *name, unsigned option_count,
                     int *options, void **values) {
  (void)name;
  (void)options;
  (void)values;
  pthread_mutex_lock(&lock);
  int error = begin(__func__, 1);
  if (error != CUDA_OK) {
    say(state, "line 7: a fault on demand");
    LEAVE(error);
  }
  EXPECT_LIVE(state, LINK);
  EXPECT(type == CUDA_JIT_INPUT_PTX && option_count == 0);
  EXPECT(bytes > 0 && ((const char *)data)[bytes - 1] == '\0' && memchr(data, 0, bytes) == (char *)data + bytes - 1);
  object *o = state;
  o->byte_count = sizeof magic + bytes;
  o->bytes = malloc(o->byte_count);
  if (o->bytes == NULL) abort();
  memcpy(o->bytes, magic, sizeof magic);
  memcpy(o->bytes + sizeof magic, data, bytes);
  char why[200];
  FILE *dump = getenv("FAKECUDA_DUMP") != NULL ? fopen(getenv("FAKECUDA_DUMP"), "a") : NULL;
  if (dump != NULL) {
    fprintf(dump, "%s\n", (const char *)data);
    fclose(dump);
  }
  ptx_module *module = ptx_parse(data, why, sizeof why);
  if (module == NULL) {
    say(o, why);
    LEAVE(218);
  }
  ptx_release(module);
  LEAVE(CUDA_OK);
}

int cuLinkComplete(void *state, void **image, size_t *bytes) {
  ENTER(1);
  EXPECT_LIVE(state, LINK);
  object *o = state;
  EXPECT(o->bytes != NULL);
  *image = o->bytes;
  *bytes = o->byte_count;
  LEAVE(CUDA_OK);
}

int cuLinkDestroy(void *state) {
  ENTER(1);
  EXPECT_LIVE(state, LINK);
  bury(state);
  LEAVE(CUDA_OK);
}

/* An image, or the text itself. */
int cuModuleLoadData(void **module, const void *image) {
  ENTER(1);
  const char *text = image;
  if (strncmp(text, magic, sizeof magic) == 0) text += sizeof magic;
  else if (strncmp(text, ".version", strlen(".version")) != 0) LEAVE(200);
  char why[200];
  ptx_module *program = ptx_parse(text, why, sizeof why);
  if (program == NULL) LEAVE(200);
  object *o = add(MODULE, 0);
  o->program = program;
  *module = o;
  LEAVE(CUDA_OK);
}

int cuModuleUnload(void *module) {
  ENTER(1);
  EXPECT_LIVE(module, MODULE);
  if (fail_setting[0] != '\0') wait_for(NULL, work_given); /* nobody can wait where waiting fails on demand */
  object *o = module;
  for (object *i = objects; i != NULL; i = i->next)
    if (i->kind == FUNCTION && i->module == o) bury(i);
  ptx_release(o->program);
  bury(o);
  LEAVE(CUDA_OK);
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  ENTER(1);
  EXPECT_LIVE(module, MODULE);
  if (ptx_parameter_bytes(((object *)module)->program, name) == 0) LEAVE(500);
  object *o = add(FUNCTION, 0);
  o->module = module;
  snprintf(o->name, sizeof o->name, "%s", name);
  *function = o;
  LEAVE(CUDA_OK);
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters,
                   void **extra) {
  ENTER(1);
  EXPECT_LIVE(function, FUNCTION);
  EXPECT_LIVE(stream, STREAM);
  EXPECT(grid_x > 0 && grid_y > 0 && grid_z > 0 && grid_x <= INT32_MAX && grid_y <= 65535 && grid_z <= 65535);
  EXPECT(block_x > 0 && block_y > 0 && block_z > 0 && block_z <= 64 && block_x * block_y * block_z <= 1024);
  EXPECT(shared_bytes <= 48 << 10 && extra == NULL);
  object *o = function;
  work *w = give(stream);
  w->kind = RUN;
  w->function = o;
  memcpy(w->grid, (unsigned[]){grid_x, grid_y, grid_z}, sizeof w->grid);
  memcpy(w->block, (unsigned[]){block_x, block_y, block_z}, sizeof w->block);
  w->shared_bytes = shared_bytes;
  ptx_gather_parameters(o->module->program, o->name, parameters, w->parameters, sizeof w->parameters);
  LEAVE(CUDA_OK);
}

/* ---- for the tests ----------------------------------------------------------------------------------------------- */

int fakecuda_live(void) {
  pthread_mutex_lock(&lock);
  int count = lost;
  lost = 0;
  for (const object *o = objects; o != NULL; o = o->next) count += !o->dead && o->kind != FUNCTION;
  pthread_mutex_unlock(&lock);
  return count;
}

int fakecuda_refusals(void) {
  int count = refusals;
  refusals = 0;
  return count;
}

const char *fakecuda_violation(void) { return violation; }

void fakecuda_forgive(void) { violation[0] = '\0'; }
