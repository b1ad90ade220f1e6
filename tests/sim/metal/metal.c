/* metal.c - Metal's objects: the device, buffers, queues, command buffers, encoders. */
#define _GNU_SOURCE
#include "sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, GPU_ALIGNMENT = 64, UNTRACKED = 1 << 8, TRACKED = 2 << 8 };
enum { NOT_COMMITTED, COMMITTED = 2, COMPLETED = 4, FAILED = 5 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- buffers: two views of the same memory ----------------------------------------------------------------------- */

typedef struct buffer {
  sim_object object;
  size_t length, mapped;
  uint8_t *cpu, *gpu;           /* where the buffer begins */
  uint8_t *cpu_pages, *gpu_pages; /* NULL: it wraps memory that was there */
  int in_flight, running, is_watched; /* by the CPU, which keeps its view: untracked, or tracked by name */
} buffer;

static pthread_mutex_t views = PTHREAD_MUTEX_INITIALIZER;

static void count_view(buffer *b, int *count, int by, uint8_t *pages, int while_zero, int otherwise) {
  pthread_mutex_lock(&views);
  int before = *count;
  *count += by;
  if (pages != NULL && (before == 0) != (*count == 0)) mprotect(pages, b->mapped, *count == 0 ? while_zero : otherwise);
  pthread_mutex_unlock(&views);
}

static void take_from_cpu(buffer *b) {
  count_view(b, &b->in_flight, 1, b->is_watched ? NULL : b->cpu_pages, PROT_READ | PROT_WRITE, PROT_NONE);
}
static void give_to_cpu(buffer *b) {
  count_view(b, &b->in_flight, -1, b->is_watched ? NULL : b->cpu_pages, PROT_READ | PROT_WRITE, PROT_NONE);
}
static void give_to_gpu(buffer *b) { count_view(b, &b->running, 1, b->gpu_pages, PROT_NONE, PROT_READ | PROT_WRITE); }
static void take_from_gpu(buffer *b) {
  count_view(b, &b->running, -1, b->gpu_pages, PROT_NONE, PROT_READ | PROT_WRITE);
}

static void buffer_dealloc(void *o) {
  buffer *b = o;
  if (b->cpu_pages == NULL) return;
  munmap(b->cpu_pages, b->mapped);
  munmap(b->gpu_pages, b->mapped + PAGE);
}

static void *buffer_contents(buffer *b, sim_selector s) { return (void)s, b->cpu; }
static uint64_t buffer_address(buffer *b, sim_selector s) { return (void)s, (uint64_t)(uintptr_t)b->gpu; }
static const sim_method buffer_methods[] = {{"contents", (void *)buffer_contents, "^v@:"},
                                            {"gpuAddress", (void *)buffer_address, "Q@:"},
                                            {NULL, NULL, NULL}};
static const sim_class buffer_class = {NULL, "MTLBuffer", buffer_methods};

/* It ends where the page behind it is not there. */
static void *new_buffer(void *d, sim_selector s, sim_unsigned length, sim_unsigned options) {
  (void)d;
  (void)s;
  if (length == 0) sim_die("newBufferWithLength: of 0 bytes");
  if (options != 0 && options != UNTRACKED && options != TRACKED)
    sim_die("newBufferWithLength: with options other than shared memory");
  if (sim_fails(SIM_NO_BUFFER) || length > (sim_unsigned)1 << 34) return NULL;
  buffer *b = sim_make(&buffer_class, sizeof *b, buffer_dealloc);
  b->is_watched = options != 0;
  b->length = length;
  b->mapped = (length + PAGE - 1) / PAGE * PAGE;
  int file = memfd_create("metal", 0);
  if (file < 0 || ftruncate(file, (off_t)b->mapped) != 0) sim_die("no memory for a buffer of %lu bytes", length);
  b->cpu_pages = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  b->gpu_pages = mmap(NULL, b->mapped + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (b->cpu_pages == MAP_FAILED || b->gpu_pages == MAP_FAILED ||
      mmap(b->gpu_pages, b->mapped, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
    sim_die("no memory for a buffer of %lu bytes", length);
  close(file);
  size_t offset = b->mapped - (length + GPU_ALIGNMENT - 1) / GPU_ALIGNMENT * GPU_ALIGNMENT;
  b->cpu = b->cpu_pages + offset;
  b->gpu = b->gpu_pages + offset;
  return b;
}

static void *wrap_buffer(void *d, sim_selector s, void *memory, sim_unsigned length, sim_unsigned options,
                         void *block) {
  (void)d;
  (void)s;
  if (options != 0 || block != NULL) sim_die("newBufferWithBytesNoCopy: with options");
  if ((uintptr_t)memory % PAGE != 0 || length % PAGE != 0 || length == 0) return NULL;
  if (sim_fails(SIM_NO_BUFFER)) return NULL;
  buffer *b = sim_make(&buffer_class, sizeof *b, buffer_dealloc);
  b->length = length;
  b->cpu = b->gpu = memory;
  return b;
}

/* ---- queues and command buffers ---------------------------------------------------------------------------------- */

typedef struct command {
  struct command *next;
  sim_pipeline *pipeline;
  void *bytes[SIM_MOST_ARGUMENTS];
  uint64_t threads;
  uint32_t block;
} command;

typedef struct queue {
  sim_object object;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  struct commands *first, **last;
  int quits;
} queue;

typedef struct commands {
  sim_object object;
  queue *queue;
  struct commands *next;
  command *first, **last;
  buffer **used;
  size_t used_count;
  int state, has_open;
  void *error;
  double began, ended;
} commands;

static void commands_dealloc(void *o) {
  commands *c = o;
  while (c->first != NULL) {
    command *next = c->first->next;
    for (int i = 0; i < SIM_MOST_ARGUMENTS; i++) free(c->first->bytes[i]);
    sim_release(c->first->pipeline);
    free(c->first);
    c->first = next;
  }
  for (size_t i = 0; i < c->used_count; i++) sim_release(c->used[i]);
  free(c->used);
  sim_release(c->error);
  sim_release(c->queue);
}

static const char *execute(const commands *c) {
  const char *wrong = NULL;
  for (size_t i = 0; i < c->used_count; i++) give_to_gpu(c->used[i]);
  for (const command *x = c->first; x != NULL && wrong == NULL; x = x->next)
    wrong = sim_run(x->pipeline->kernel, x->bytes, x->threads, x->block);
  for (size_t i = 0; i < c->used_count; i++) take_from_gpu(c->used[i]);
  return wrong;
}

static void finish(commands *c, const char *wrong, long code) {
  c->ended = seconds();
  for (size_t i = 0; i < c->used_count; i++) give_to_cpu(c->used[i]);
  void *error =
      wrong != NULL ? sim_retain(sim_error(code, "Execution of the command buffer was aborted: %s", wrong)) : NULL;
  pthread_mutex_lock(&c->queue->mutex);
  c->error = error;
  __atomic_store_n(&c->state, error != NULL ? FAILED : COMPLETED, __ATOMIC_SEQ_CST);
  pthread_cond_broadcast(&c->queue->changed);
  pthread_mutex_unlock(&c->queue->mutex);
}

static commands *next_commands(queue *q) {
  pthread_mutex_lock(&q->mutex);
  while (q->first == NULL && !q->quits) pthread_cond_wait(&q->changed, &q->mutex);
  commands *c = q->first;
  if (c != NULL && (q->first = c->next) == NULL) q->last = &q->first;
  pthread_mutex_unlock(&q->mutex);
  return c;
}

static void *queue_main(void *user) {
  queue *q = user;
  sim_fibres_open();
  for (commands *c; (c = next_commands(q)) != NULL;) {
    void *pool = objc_autoreleasePoolPush();
    long code = 3;
    c->began = seconds();
    const char *wrong = NULL;
    if (sim_fails(SIM_REMOVED)) wrong = "the device was removed", code = 11;
    else if (sim_fails(SIM_TIMEOUT)) wrong = "the GPU timed out", code = 2;
    else wrong = execute(c);
    finish(c, wrong, code);
    objc_autoreleasePoolPop(pool);
    sim_release(c);
  }
  sim_fibres_close();
  return NULL;
}

/* The last one to let go of a queue may be its own thread. */
static void queue_dealloc(void *o) {
  queue *q = o;
  pthread_mutex_lock(&q->mutex);
  q->quits = 1;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->mutex);
  if (pthread_equal(pthread_self(), q->thread)) pthread_detach(q->thread);
  else pthread_join(q->thread, NULL);
}

static void *queue_commands(queue *q, sim_selector s);
static const sim_method queue_methods[] = {{"commandBuffer", (void *)queue_commands, "@@:"}, {NULL, NULL, NULL}};
static const sim_class queue_class = {NULL, "MTLCommandQueue", queue_methods};

static void *new_queue(void *d, sim_selector s) {
  (void)d;
  (void)s;
  if (sim_fails(SIM_NO_QUEUE)) return NULL;
  queue *q = sim_make(&queue_class, sizeof *q, queue_dealloc);
  pthread_mutex_init(&q->mutex, NULL);
  pthread_cond_init(&q->changed, NULL);
  q->last = &q->first;
  if (pthread_create(&q->thread, NULL, queue_main, q) != 0) sim_die("no thread for a queue");
  return q;
}

/* ---- encoders ---------------------------------------------------------------------------------------------------- */

typedef struct encoder {
  sim_object object;
  commands *commands;
  sim_pipeline *pipeline;
  void *bytes[SIM_MOST_ARGUMENTS];
  size_t sizes[SIM_MOST_ARGUMENTS];
  int has_ended;
} encoder;

static void encoder_dealloc(void *o) {
  encoder *e = o;
  if (!e->has_ended) sim_die("an encoder is released without endEncoding");
  for (int i = 0; i < SIM_MOST_ARGUMENTS; i++) free(e->bytes[i]);
  sim_release(e->pipeline);
  sim_release(e->commands);
}

static void check_open(const encoder *e, const char *what) {
  if (e->has_ended) sim_die("%s after endEncoding", what);
}

static void set_pipeline(encoder *e, sim_selector s, sim_pipeline *p) {
  check_open(e, s);
  sim_retain(p);
  sim_release(e->pipeline);
  e->pipeline = p;
}

static void set_bytes(encoder *e, sim_selector s, const void *bytes, sim_unsigned length, sim_unsigned index) {
  check_open(e, s);
  if (index >= SIM_MOST_ARGUMENTS) sim_die("setBytes: at index %lu", index);
  if (length == 0 || length > SIM_SET_BYTES) sim_die("setBytes: %lu bytes", length);
  free(e->bytes[index]);
  e->bytes[index] = memcpy(malloc(length), bytes, length);
  e->sizes[index] = length;
}

static void use_resource(encoder *e, sim_selector s, buffer *b, sim_unsigned usage) {
  check_open(e, s);
  commands *c = e->commands;
  if (usage != 3) sim_die("useResource: with a usage other than read and write");
  if (b == NULL || b->object.isa != &buffer_class) sim_die("useResource: of something that is no buffer");
  for (size_t i = 0; i < c->used_count; i++)
    if (c->used[i] == b) return;
  c->used = realloc(c->used, (c->used_count + 1) * sizeof(void *));
  c->used[c->used_count++] = sim_retain(b);
}

static void dispatch(encoder *e, sim_selector s, sim_size threads, sim_size block) {
  check_open(e, s);
  if (e->pipeline == NULL) sim_die("a dispatch without a pipeline");
  if (block.height != 1 || block.depth != 1 || threads.height != 1 || threads.depth != 1)
    sim_die("a dispatch of more dimensions");
  if (block.width == 0 || block.width > e->pipeline->most_threads)
    sim_die("a dispatch of blocks of %lu threads", block.width);
  if (threads.width == 0 || threads.width >> 32 != 0) sim_die("a dispatch of %lu threads", threads.width);
  command *x = calloc(1, sizeof *x);
  if (x == NULL) sim_die("no memory for a command");
  x->pipeline = sim_retain(e->pipeline);
  x->threads = threads.width;
  x->block = (uint32_t)block.width;
  for (int i = 0; i < SIM_MOST_ARGUMENTS; i++) {
    if (x->pipeline->kernel->uses[i] && e->bytes[i] == NULL)
      sim_die("a dispatch without buffer %d of kernel %s", i, x->pipeline->kernel->name);
    if (e->bytes[i] != NULL) x->bytes[i] = memcpy(malloc(e->sizes[i]), e->bytes[i], e->sizes[i]);
  }
  *e->commands->last = x;
  e->commands->last = &x->next;
}

static void memory_barrier(encoder *e, sim_selector s, sim_unsigned scope) {
  check_open(e, s);
  if (scope != 1) sim_die("memoryBarrierWithScope: of something other than buffers");
}

static void end_encoding(encoder *e, sim_selector s) {
  check_open(e, s);
  e->has_ended = 1;
  e->commands->has_open = 0;
}

static const sim_method encoder_methods[] = {
    {"setComputePipelineState:", (void *)set_pipeline, "v@:@"},
    {"setBytes:length:atIndex:", (void *)set_bytes, "v@:r^vQQ"},
    {"useResource:usage:", (void *)use_resource, "v@:@Q"},
    {"dispatchThreads:threadsPerThreadgroup:", (void *)dispatch, "v@:{?=QQQ}{?=QQQ}"},
    {"memoryBarrierWithScope:", (void *)memory_barrier, "v@:Q"},
    {"endEncoding", (void *)end_encoding, "v@:"},
    {NULL, NULL, NULL}};
static const sim_class encoder_class = {NULL, "MTLComputeCommandEncoder", encoder_methods};

/* ---- messages of command buffers --------------------------------------------------------------------------------- */

static void *new_encoder(commands *c, sim_selector s) {
  (void)s;
  if (c->has_open) sim_die("a second encoder while one is open");
  if (c->state != NOT_COMMITTED) sim_die("an encoder of a command buffer that is committed");
  if (sim_fails(SIM_NO_OBJECT)) return NULL;
  encoder *e = sim_make(&encoder_class, sizeof *e, encoder_dealloc);
  c->has_open = 1;
  e->commands = sim_retain(c);
  return sim_autorelease(e);
}

static void commit(commands *c, sim_selector s) {
  (void)s;
  if (c->has_open) sim_die("a commit with an open encoder");
  if (c->state != NOT_COMMITTED) sim_die("a second commit");
  for (size_t i = 0; i < c->used_count; i++) take_from_cpu(c->used[i]);
  sim_retain(c);
  pthread_mutex_lock(&c->queue->mutex);
  c->state = COMMITTED;
  *c->queue->last = c;
  c->queue->last = &c->next;
  pthread_cond_broadcast(&c->queue->changed);
  pthread_mutex_unlock(&c->queue->mutex);
}

static void wait_until_completed(commands *c, sim_selector s) {
  if (c->state == NOT_COMMITTED) sim_die("%s before commit", s);
  pthread_mutex_lock(&c->queue->mutex);
  while (c->state < COMPLETED) pthread_cond_wait(&c->queue->changed, &c->queue->mutex);
  pthread_mutex_unlock(&c->queue->mutex);
}

static sim_unsigned commands_state(commands *c, sim_selector s) {
  return (void)s, (sim_unsigned)__atomic_load_n(&c->state, __ATOMIC_SEQ_CST);
}
static void *commands_error(commands *c, sim_selector s) { return (void)s, c->error; }
static double commands_began(commands *c, sim_selector s) { return (void)s, c->began; }
static double commands_ended(commands *c, sim_selector s) { return (void)s, c->ended; }
static const sim_method commands_methods[] = {{"computeCommandEncoder", (void *)new_encoder, "@@:"},
                                              {"commit", (void *)commit, "v@:"},
                                              {"waitUntilCompleted", (void *)wait_until_completed, "v@:"},
                                              {"status", (void *)commands_state, "Q@:"},
                                              {"error", (void *)commands_error, "@@:"},
                                              {"GPUStartTime", (void *)commands_began, "d@:"},
                                              {"GPUEndTime", (void *)commands_ended, "d@:"},
                                              {NULL, NULL, NULL}};
static const sim_class commands_class = {NULL, "MTLCommandBuffer", commands_methods};

static void *queue_commands(queue *q, sim_selector s) {
  (void)s;
  if (sim_fails(SIM_NO_COMMANDS)) return NULL;
  commands *c = sim_make(&commands_class, sizeof *c, commands_dealloc);
  c->queue = sim_retain(q);
  c->last = &c->first;
  return sim_autorelease(c);
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

static void *device_name(void *d, sim_selector s) {
  (void)d;
  (void)s;
  return sim_autorelease(sim_string("Simulated Metal"));
}
static signed char device_family(void *d, sim_selector s, long family) {
  (void)d;
  (void)s;
  return (family >= 1001 && family <= 1007) || family == 5001;
}
static uint64_t device_memory(void *d, sim_selector s) { return (void)d, (void)s, (uint64_t)1 << 33; }
static sim_unsigned device_shared(void *d, sim_selector s) { return (void)d, (void)s, sim_threadgroup_bytes(); }

static const sim_method device_methods[] = {
    {"name", (void *)device_name, "@@:"},
    {"supportsFamily:", (void *)device_family, "B@:q"},
    {"recommendedMaxWorkingSetSize", (void *)device_memory, "Q@:"},
    {"maxThreadgroupMemoryLength", (void *)device_shared, "Q@:"},
    {"newCommandQueue", (void *)new_queue, "@@:"},
    {"newBufferWithLength:options:", (void *)new_buffer, "@@:QQ"},
    {"newBufferWithBytesNoCopy:length:options:deallocator:", (void *)wrap_buffer, "@@:^vQQ@?"},
    {"newLibraryWithSource:options:error:", (void *)sim_new_library, "@@:@@^@"},
    {"newComputePipelineStateWithDescriptor:options:reflection:error:", (void *)sim_new_pipeline, "@@:@Q^@^@"},
    {"newBinaryArchiveWithDescriptor:error:", (void *)sim_new_archive, "@@:@^@"},
    {NULL, NULL, NULL}};
static const sim_class device_class = {NULL, "MTLDevice", device_methods};

SIM_API void *MTLCreateSystemDefaultDevice(void) {
  return sim_fails(SIM_NO_DEVICE) ? NULL : sim_make(&device_class, sizeof(sim_object), NULL);
}
