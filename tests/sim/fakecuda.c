/* fakecuda.c - a double of libcuda for tests: the same functions, device memory that is host memory, kernels run by an
 * interpreter of their PTX (ptx_machine.c). It is stricter than the driver:
 *
 *   - Work given to a stream is done when somebody waits for it, not before, so a missing wait shows; what other
 *     streams were given before is not, but for what the stream was told to wait for. Host memory that is not pinned is
 *     read at once, as the driver does.
 *   - Device addresses are no addresses of the host: touching one from the host faults.
 *   - Every handle and range is checked. What does not hold is a violation: fakecuda_violation says what the first was,
 *     and it is printed.
 *   - fakecuda_live counts what has not been given back.
 *
 * Environment, read at each call:
 *   FAKECUDA_FAIL        "NAME:N=ERROR ...": the N-th call from now on of the function (0: every call) gives that
 *                        error; one that ruins a context does so. A changed value starts counting again.
 *   FAKECUDA_DEVICES     how many GPUs there are (1)
 *   FAKECUDA_MEMORY      bytes of each (1 GiB)
 *   FAKECUDA_DRIVER      version of the driver (13000)
 *   FAKECUDA_MODE        compute mode (0)
 *   FAKECUDA_CAPABILITY  compute capability (90)
 *   FAKECUDA_POOLS       0: no memory pools
 *   FAKECUDA_PROCESSORS  multiprocessors of each (4)
 *   FAKECUDA_DUMP        a file to which the text of every kernel is appended
 *   FAKECUDA_LOADED      a file that is made when the library is loaded
 *
 * Here are its objects, errors on demand, devices and contexts; streams, memory and kernels have files of their own. */
#define _GNU_SOURCE
#include "fake.h"
#include "thread_local.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static const char *const kind_name[KIND_COUNT] = {"context", "stream", "event", "device memory", "pinned memory",
                                                  "memory pool", "link", "module", "function",
                                                  "graph", "executable graph"};

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
fake_state fake;
_Thread_local object *fake_current;

static int context_users[MAX_DEVICES], lost, excused, refusals;
static pid_t started_in;
static char violation[256];
static unsigned fail_calls[64];
static ALIGNED_THREAD_LOCAL object *below[8];
static _Thread_local int depth;

void fake_blame(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (violation[0] == '\0') {
    vsnprintf(violation, sizeof violation, format, arguments);
    fprintf(stderr, "fakecuda: %s\n", violation);
  }
  va_end(arguments);
}

uint64_t fake_setting(const char *name, uint64_t otherwise) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? strtoull(value, NULL, 0) : otherwise;
}

object *fake_add(object_kind kind, size_t byte_count) {
  object *o = calloc(1, sizeof *o);
  if (o == NULL) abort();
  o->kind = kind;
  o->device = fake_current != NULL ? fake_current->device : 0;
  o->byte_count = byte_count;
  if (byte_count > 0) {
    o->bytes = aligned_alloc(256, (byte_count + 255) / 256 * 256);
    if (o->bytes == NULL) abort();
    memset(o->bytes, 0xa5, byte_count); /* what memory holds before it is written is not to be relied on */
  }
  o->next = fake.objects;
  fake.objects = o;
  return o;
}

/* The living are looked through at every call: the dead lie elsewhere. */
void fake_bury(object *o) {
  object **at = &fake.objects;
  free(o->bytes);
  o->bytes = NULL;
  o->dead = 1;
  while (*at != NULL && *at != o) at = &(*at)->next;
  if (*at == NULL) return; /* it lies there already */
  *at = o->next;
  o->next = fake.buried;
  fake.buried = o;
}

int fake_is_live(const object *o, object_kind kind, const char *caller) {
  for (const object *i = fake.objects; i != NULL; i = i->next) {
    if (i != o || i->kind != kind || i->dead) continue;
    if (kind != CONTEXT && kind != EVENT && fake_current != NULL && i->device != fake_current->device)
      fake_blame("%s: a %s of GPU %d while GPU %d is current", caller, kind_name[kind], i->device,
                 fake_current->device);
    return 1;
  }
  fake_blame("%s: not a live %s", caller, kind_name[kind]);
  return 0;
}

uint8_t *fake_reach_in(cuda_address address, size_t byte_count, const char *caller, int device, int pending) {
  uint8_t *first = (uint8_t *)(uintptr_t)(address & ~DEVICE_BIT);
  for (object *o = fake.objects; o != NULL && (address & DEVICE_BIT) != 0; o = o->next)
    if (o->kind == MEMORY && o->device == device && (!o->dead || (pending && o->bytes != NULL)) && first >= o->bytes &&
        first <= o->bytes + o->byte_count && byte_count <= (size_t)(o->bytes + o->byte_count - first)) {
      if (pending && o->unborn) fake_blame("%s: 0x%llx is used before its stream has allocated it", caller, address);
      return first;
    }
  fake_blame("%s: %zu bytes at 0x%llx are no memory of GPU %d", caller, byte_count, address, device);
  return NULL;
}

uint8_t *fake_reach(cuda_address address, size_t byte_count, const char *caller) {
  return fake_reach_in(address, byte_count, caller, fake_current->device, 0);
}

object *fake_pinned_at(const void *memory) {
  for (object *o = fake.objects; o != NULL; o = o->next)
    if (o->kind == PINNED && !o->dead && (const uint8_t *)memory >= o->bytes &&
        (const uint8_t *)memory < o->bytes + o->byte_count)
      return o;
  return NULL;
}

/* ---- errors on demand -------------------------------------------------------------------------------------------- */

static int fail_demanded(const char *caller) {
  const char *wanted = getenv("FAKECUDA_FAIL");
  if (wanted == NULL) wanted = "";
  if (strncmp(wanted, fake.fail_setting, sizeof fake.fail_setting - 1) != 0) {
    snprintf(fake.fail_setting, sizeof fake.fail_setting, "%s", wanted);
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

int fake_sticky(void) { return fake_current != NULL ? fake.sticky_error[fake_current->device] : CUDA_OK; }

/* Who cannot give something back because the driver fails leaves it to the end of the context. */
static int demanded(const char *caller) {
  int error = fail_demanded(caller);
  if (error == CUDA_OK) return error;
  refusals++;
  if (poisons(error) && fake_current != NULL) fake.sticky_error[fake_current->device] = error;
  if (fake_sticky() != CUDA_OK || strstr(caller, "Free") != NULL || strstr(caller, "Destroy") != NULL ||
      strstr(caller, "Unload") != NULL || strstr(caller, "Ctx") != NULL)
    excused = 1;
  return error;
}

/* Callers are told apart by their name's address. */
static struct {
  const char *function;
  unsigned count;
} calls[128];

static void count_call(const char *caller) {
  size_t i = 0;
  while (calls[i].function != NULL && calls[i].function != caller) i++;
  calls[i].function = caller;
  calls[i].count++;
}

/* What every function but the first few begins with. */
int fake_begin(const char *caller, int needs_context) {
  count_call(caller);
  if (started_in == 0 || started_in != getpid()) return 3; /* NOT_INITIALIZED */
  int error = demanded(caller);
  if (error != CUDA_OK) return error;
  if (!needs_context) return CUDA_OK;
  if (fake_current == NULL || !fake_is_live(fake_current, CONTEXT, caller)) {
    fake_blame("%s: called without a current context", caller);
    return 201;
  }
  return fake_sticky();
}

/* ---- the driver and its devices ---------------------------------------------------------------------------------- */

__attribute__((constructor)) static void note_loading(void) {
  const char *path = getenv("FAKECUDA_LOADED");
  FILE *file = path != NULL ? fopen(path, "a") : NULL;
  if (file != NULL) fclose(file);
}

int cuInit(unsigned flags) {
  pthread_mutex_lock(&fake_lock);
  int error = demanded(__func__);
  if (error != CUDA_OK) LEAVE(error);
  EXPECT(flags == 0);
  if (started_in != 0 && started_in != getpid()) LEAVE(3);
  if (fake_setting("FAKECUDA_DEVICES", 1) == 0) LEAVE(CUDA_NO_DEVICE);
  started_in = getpid();
  LEAVE(CUDA_OK);
}

int cuDriverGetVersion(int *version) {
  *version = (int)fake_setting("FAKECUDA_DRIVER", 13000);
  return CUDA_OK;
}

int cuDeviceGetCount(int *count) {
  ENTER(0);
  *count = (int)fake_setting("FAKECUDA_DEVICES", 1);
  LEAVE(CUDA_OK);
}

int cuDeviceGet(int *device, int ordinal) {
  ENTER(0);
  EXPECT(ordinal >= 0 && ordinal < (int)fake_setting("FAKECUDA_DEVICES", 1));
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
  *bytes = fake_setting("FAKECUDA_MEMORY", 1 << 30);
  LEAVE(CUDA_OK);
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER(0);
  (void)device;
  int capability = (int)fake_setting("FAKECUDA_CAPABILITY", 90);
  switch (attribute) {
  case CUDA_DEVICE_MULTIPROCESSORS: *value = (int)fake_setting("FAKECUDA_PROCESSORS", 4); break;
  case CUDA_DEVICE_COMPUTE_MODE: *value = (int)fake_setting("FAKECUDA_MODE", 0); break;
  case CUDA_DEVICE_CAPABILITY_MAJOR: *value = capability / 10; break;
  case CUDA_DEVICE_CAPABILITY_MINOR: *value = capability % 10; break;
  case CUDA_DEVICE_SHARED_BYTES: *value = (int)fake_setting("FAKECUDA_SHARED", 227 << 10); break;
  case CUDA_DEVICE_MULTIPROCESSOR_SHARED_BYTES: *value = 228 << 10; break;
  case CUDA_DEVICE_CACHE_BYTES: *value = (int)fake_setting("FAKECUDA_CACHE_BYTES", 1 << 20); break;
  case CUDA_DEVICE_MEMORY_POOLS: *value = (int)fake_setting("FAKECUDA_POOLS", 1); break;
  default: *value = 1; break;
  }
  LEAVE(CUDA_OK);
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

int cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER(0);
  EXPECT(device >= 0 && device < (int)fake_setting("FAKECUDA_DEVICES", 1) && device < MAX_DEVICES);
  if (context_users[device]++ == 0) {
    fake.primary[device] = fake_add(CONTEXT, 0);
    fake.primary[device]->device = device;
    fake.standard[device] = fake_add(STREAM, 0);
    fake.standard[device]->device = device;
  }
  *context = fake.primary[device];
  LEAVE(CUDA_OK);
}

/* What is still alive in a context that ends is lost. */
int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER(0);
  EXPECT(device >= 0 && device < MAX_DEVICES && context_users[device] > 0);
  if (--context_users[device] > 0) LEAVE(CUDA_OK);
  fake_wait_for(NULL, fake.work_given);
  fake_bury(fake.primary[device]);
  fake_bury(fake.standard[device]);
  for (object *o = fake.objects, *next; o != NULL; o = next) {
    next = o->next;
    if (o->device != device) continue;
    if (!o->dead) {
      if (!excused && o->kind != FUNCTION && ++lost == 1) fprintf(stderr, "fakecuda: lost: %s\n", kind_name[o->kind]);
      if (o->kind == MODULE) ptx_release(o->program);
      fake_free_captured(o);
    }
    fake_forget_spares(o);
    fake_bury(o);
  }
  for (object **at = &fake.buried; *at != NULL;) {
    object *o = *at;
    if (o->device != device) {
      at = &o->next;
      continue;
    }
    *at = o->next;
    free(o);
  }
  fake.primary[device] = NULL;
  fake.sticky_error[device] = excused = 0;
  fake.live_bytes[device] = 0;
  LEAVE(CUDA_OK);
}

int cuCtxGetCurrent(void **context) {
  ENTER(0);
  *context = fake_current;
  LEAVE(CUDA_OK);
}

int cuCtxPushCurrent_v2(void *context) {
  ENTER(0);
  EXPECT_LIVE(context, CONTEXT);
  EXPECT(depth < 8);
  below[depth++] = fake_current;
  fake_current = context;
  LEAVE(CUDA_OK);
}

int cuCtxPopCurrent_v2(void **context) {
  ENTER(0);
  EXPECT(depth > 0);
  *context = fake_current;
  fake_current = below[--depth];
  LEAVE(CUDA_OK);
}

/* ---- for the tests ----------------------------------------------------------------------------------------------- */

int fakecuda_live(void) {
  pthread_mutex_lock(&fake_lock);
  int count = lost;
  lost = 0;
  for (const object *o = fake.objects; o != NULL; o = o->next)
    count += !o->dead && o->kind != FUNCTION && o != fake.standard[o->device];
  pthread_mutex_unlock(&fake_lock);
  return count;
}

uint64_t fakecuda_mapped(void) {
  pthread_mutex_lock(&fake_lock);
  uint64_t bytes = fake.mapped_bytes;
  pthread_mutex_unlock(&fake_lock);
  return bytes;
}

unsigned fakecuda_calls(const char *function) {
  unsigned count = 0;
  pthread_mutex_lock(&fake_lock);
  for (size_t i = 0; calls[i].function != NULL; i++)
    if (strcmp(calls[i].function, function) == 0) count = calls[i].count;
  pthread_mutex_unlock(&fake_lock);
  return count;
}

int fakecuda_refusals(void) {
  int count = refusals;
  refusals = 0;
  return count;
}

const char *fakecuda_violation(void) { return violation; }

void fakecuda_forgive(void) { violation[0] = '\0'; }
