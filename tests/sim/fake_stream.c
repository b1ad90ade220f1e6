/* fake_stream.c - the double of libcuda: streams, events and graphs, and the work that they were given. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static work *first_work, **last_work = &first_work;
static double clock_now;
static int running_on; /* the device of the kernel that runs */

/* What a kernel may touch: device memory, and pinned memory at its own address. */
static uint8_t *kernel_reach(void *user, uint64_t address, size_t byte_count) {
  (void)user;
  if ((address & DEVICE_BIT) != 0) return fake_reach_in(address, byte_count, "a kernel", running_on, 1);
  const object *o = fake_pinned_at((void *)(uintptr_t)address);
  if (o != NULL && byte_count <= (size_t)(o->bytes + o->byte_count - (uint8_t *)(uintptr_t)address))
    return (uint8_t *)(uintptr_t)address;
  fake_blame("a kernel: %zu bytes at 0x%llx are no memory", byte_count, (unsigned long long)address);
  return NULL;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

work *fake_give(void *stream) {
  object *s = stream;
  work *w = calloc(1, sizeof *w);
  if (w == NULL) abort();
  w->stream = s;
  w->rows = 1;
  w->number = ++fake.work_given;
  work ***last = s->last_captured != NULL ? &s->last_captured : &last_work;
  **last = w;
  *last = &w->next;
  return w;
}

static void run_kernel(const work *w) {
  char why[200];
  if (fake.sticky_error[w->function->device] != CUDA_OK) return;
  running_on = w->function->device;
  const ptx_launch launch = {.grid = {w->grid[0], w->grid[1], w->grid[2]},
                             .block = {w->block[0], w->block[1], w->block[2]},
                             .shared_bytes = w->shared_bytes,
                             .parameters = w->parameters,
                             .reach = kernel_reach};
  if (w->function->dead) fake_blame("kernel %s: its module was unloaded before it ran", w->function->name);
  else if (!ptx_run(w->function->module->program, w->function->name, &launch, why, sizeof why))
    fake_blame("kernel %s: %s", w->function->name, why);
  else return;
  fake.sticky_error[w->function->device] = 700;
}

/* Memory of the device is there when work comes to it; other addresses are the host's. */
static void touch(const uint8_t *first, size_t byte_count) {
  for (object *o = fake.objects; o != NULL; o = o->next) {
    if (o->kind != MEMORY || o->bytes == NULL || first < o->bytes || first >= o->bytes + o->byte_count) continue;
    (void)fake_reach_in((cuda_address)(uintptr_t)first | DEVICE_BIT, byte_count, "a copy or fill", o->device, 1);
    return;
  }
}

/* A value over and over: what is there is copied behind itself, which is much faster than value by value. */
static void fill_row(uint8_t *to, size_t byte_count, const work *w) {
  size_t done = w->value_bytes < byte_count ? w->value_bytes : byte_count;
  memcpy(to, &w->value, done);
  for (size_t more; done < byte_count; done += more) {
    more = done < byte_count - done ? done : byte_count - done;
    memcpy(to + done, to, more);
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
    for (size_t row = 0; row < w->rows; row++) fill_row(w->to + row * w->pitch, w->byte_count, w);
    break;
  case RUN: run_kernel(w); break;
  case CALL:
    running_on = w->stream->device;
    w->call(w->parameters);
    break;
  case ALLOCATE: w->function->unborn = 0; break;
  case FREE:
    if (w->function->unborn) fake_blame("memory is freed before its stream has allocated it");
    fake_bury(w->function);
    break;
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

int fake_is_done(const object *stream, uint64_t number) { return find_work(stream, number) == NULL; }

/* 0: there is none left. */
static int do_first(const object *stream, uint64_t number) {
  work **at = find_work(stream, number);
  if (at == NULL) return 0;
  work *w = *at;
  if (w->kind == WAIT) {
    fake_wait_for(w->function, w->wait_number);
    at = find_work(stream, number); /* what lies before it may be gone */
  }
  *at = w->next;
  if (last_work == &w->next) last_work = at;
  do_work(w);
  free(w);
  return 1;
}

void fake_wait_for(const object *stream, uint64_t number) {
  while (do_first(stream, number)) continue;
}

int fakecuda_give_call(void *stream, void (*call)(const void *parameters), const void *parameters, size_t byte_count) {
  ENTER(1);
  EXPECT_STREAM(stream);
  EXPECT(byte_count <= MAX_PARAMETER_BYTES);
  work *w = fake_give(stream);
  w->kind = CALL;
  w->call = call;
  memcpy(w->parameters, parameters, byte_count);
  LEAVE(CUDA_OK);
}

void *fakecuda_reach(uint64_t address, size_t byte_count) { return kernel_reach(NULL, address, byte_count); }

int cuStreamCreate(void **stream, unsigned flags) {
  ENTER(1);
  EXPECT(flags == CUDA_STREAM_NON_BLOCKING);
  *stream = fake_add(STREAM, 0);
  LEAVE(CUDA_OK);
}

/* What it was given is done some time. */
int cuStreamDestroy_v2(void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  EXPECT_NO_CAPTURE(stream);
  fake_wait_for(stream, fake.work_given);
  fake_bury(stream);
  LEAVE(CUDA_OK);
}

int cuStreamSynchronize(void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  EXPECT_NO_CAPTURE(stream);
  fake_wait_for(stream, fake.work_given);
  fake_trim_pools();
  LEAVE(fake_sticky());
}

static int64_t milliseconds(void) {
  struct timespec now = {0, 0};
  (void)timespec_get(&now, TIME_UTC);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Not done until somebody waits, or has asked often enough to be waiting. Then each question takes a while, in which
 * some of it is done. */
int cuStreamQuery(void *stream) {
  enum { MANY = 20, WHILE = 5 };
  ENTER(1);
  EXPECT_STREAM(stream);
  EXPECT_NO_CAPTURE(stream);
  object *s = stream;
  if (++s->questions >= MANY)
    for (int64_t begun = milliseconds(); do_first(stream, fake.work_given) && milliseconds() - begun < WHILE;) continue;
  int is_done = find_work(stream, fake.work_given) == NULL;
  if (is_done) s->questions = 0;
  LEAVE(is_done ? fake_sticky() : CUDA_NOT_READY);
}

int cuStreamGetCtx(void *stream, void **context) {
  ENTER(1);
  EXPECT_STREAM(stream);
  *context = fake.primary[((const object *)stream)->device];
  LEAVE(CUDA_OK);
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  ENTER(1);
  EXPECT_STREAM(stream);
  EXPECT_LIVE(event, EVENT);
  EXPECT_NO_CAPTURE(stream); /* of an event that is not captured itself */
  EXPECT(flags == 0);
  object *e = event;
  if (e->stream == NULL) LEAVE(CUDA_OK);
  work *w = fake_give(stream);
  w->kind = WAIT;
  w->function = e->stream;
  w->wait_number = e->recorded;
  LEAVE(CUDA_OK);
}

int cuEventCreate(void **event, unsigned flags) {
  ENTER(1);
  EXPECT((flags & ~(unsigned)CUDA_EVENT_DISABLE_TIMING) == 0);
  object *e = fake_add(EVENT, 0);
  e->untimed = flags != 0;
  *event = e;
  LEAVE(CUDA_OK);
}

int cuEventDestroy_v2(void *event) {
  ENTER(1);
  EXPECT_LIVE(event, EVENT);
  fake_bury(event);
  LEAVE(CUDA_OK);
}

int cuEventRecord(void *event, void *stream) {
  ENTER(1);
  EXPECT_LIVE(event, EVENT);
  EXPECT_STREAM(stream);
  EXPECT_NO_CAPTURE(stream);
  object *e = event;
  work *w = fake_give(stream);
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
  if (e->stream != NULL) fake_wait_for(e->stream, e->recorded);
  fake_trim_pools();
  LEAVE(fake_sticky());
}

int cuEventQuery(void *event) {
  ENTER(1);
  EXPECT_LIVE(event, EVENT);
  const object *e = event;
  LEAVE(e->stream != NULL && find_work(e->stream, e->recorded) != NULL ? CUDA_NOT_READY : fake_sticky());
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
  LEAVE(fake_sticky());
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

int cuStreamIsCapturing(void *stream, int *status) {
  ENTER(1);
  EXPECT_STREAM(stream);
  *status = ((object *)stream)->last_captured != NULL;
  LEAVE(CUDA_OK);
}

int cuThreadExchangeStreamCaptureMode(int *mode) {
  ENTER(0);
  EXPECT(*mode == CUDA_CAPTURE_RELAXED);
  *mode = 0;
  LEAVE(CUDA_OK);
}

int cuStreamBeginCapture_v2(void *stream, int mode) {
  ENTER(1);
  EXPECT_STREAM(stream);
  EXPECT_NO_CAPTURE(stream);
  EXPECT(mode == CUDA_CAPTURE_RELAXED);
  object *s = stream;
  s->last_captured = &s->captured;
  LEAVE(CUDA_OK);
}

void fake_free_captured(object *o) {
  while (o->captured != NULL) {
    work *w = o->captured;
    o->captured = w->next;
    free(w->held);
    free(w);
  }
}

/* The capture is over even where no graph comes of it. */
int cuStreamEndCapture(void *stream, void **graph) {
  pthread_mutex_lock(&fake_lock);
  object *s = stream;
  int error = fake_begin(__func__, 1);
  if (error != CUDA_OK) {
    s->last_captured = NULL;
    fake_free_captured(s);
    LEAVE(error);
  }
  EXPECT_STREAM(stream);
  EXPECT(s->last_captured != NULL);
  object *o = fake_add(GRAPH, 0);
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
  object *o = fake_add(EXECUTABLE, 0);
  work **last = &o->captured;
  for (const work *w = ((object *)graph)->captured; w != NULL; w = w->next, last = &(*last)->next) *last = copy_of(w);
  *executable = o;
  LEAVE(CUDA_OK);
}

int cuGraphDestroy(void *graph) {
  ENTER(1);
  EXPECT_LIVE(graph, GRAPH);
  fake_free_captured(graph);
  fake_bury(graph);
  LEAVE(CUDA_OK);
}

int cuGraphExecDestroy(void *executable) {
  ENTER(1);
  EXPECT_LIVE(executable, EXECUTABLE);
  fake_free_captured(executable);
  fake_bury(executable);
  LEAVE(CUDA_OK);
}

int cuGraphLaunch(void *executable, void *stream) {
  ENTER(1);
  EXPECT_LIVE(executable, EXECUTABLE);
  EXPECT_STREAM(stream);
  EXPECT_NO_CAPTURE(stream);
  for (const work *w = ((object *)executable)->captured; w != NULL; w = w->next) {
    work *given = fake_give(stream), *next = given->next;
    uint64_t number = given->number;
    *given = *w;
    given->next = next;
    given->number = number;
    given->stream = stream;
  }
  LEAVE(CUDA_OK);
}
