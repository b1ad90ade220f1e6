/* test_stress.c - everything at once: eight threads launch different programs on executors that they share and on some
 * of their own, with and without streams, on every CPU engine; kernels are made and let go, and executors end, while
 * others work with them; the process forks in the middle. Every result is compared bit by bit with what the reference
 * machine gave before.
 *
 *   test_stress [SECONDS]   (./dev stress: a minute)
 *
 * What each thread does next is drawn from a seed of its own, so that runs differ in timing only. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "backend/cpu/engine/detect.h"
#include "base/os.h"
#include "environment.h"
#include "launching.h"

#include <stdatomic.h>
#include <stdlib.h>

#if !defined(_WIN32)
#  include <signal.h>
#  include <sys/wait.h>
#  include <unistd.h>
#endif

/* A sanitizer's malloc may be locked for ever in a process that is forked off while other threads allocate. */
#if defined(_WIN32) || SANITIZED
#  define CANNOT_FORK 1
#endif

enum {
  CALLERS = 8,
  SHARED = 4,       /* executors: one an engine, and one that is replaced again and again */
  WORDS = 20000,    /* of a buffer; the most lanes of a launch */
  FAULTY_LANE = 37,
  SIZES = 4,
  ROUND_MS = 300,   /* then all threads end and others start, on the next engine */
  FORK_EVERY = 97   /* things that the first thread does */
};

/* ---- programs: x in, y comes back, s is a number ----------------------------------------------------------------- */

typedef struct example {
  const char *text;
  hg_fault_kind fault;
} example;

static const example examples[] = {
    {".program gelu\n.buffer x f32 in\n.buffer y f32 inout\n.scalar s u32\ncvt.f32.u32 r1, s\nldg.f32 r0, [x + lane]\n"
     "gelu.f32 r0, r0\nadd.f32 r0, r0, r1\nstg.f32 [y + lane], r0\nexit\n",
     HG_FAULT_NONE},
    {".program sine\n.buffer x f32 in\n.buffer y f32 inout\n.scalar s u32\ncvt.f32.u32 r1, s\nldg.f32 r0, [x + lane]\n"
     "mul.f32 r0, r0, r1\nsin.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n",
     HG_FAULT_NONE},
    {".program leave\n.buffer x u32 in\n.buffer y u32 inout\n.scalar s u32\nldg.u32 r0, [x + lane]\nand.u32 r1, r0, "
     "#31\n"
     "again:\nset.lt.u32 p0, r1, s\n@p0 bra done\nsub.u32 r1, r1, #1\nand.u32 r2, r0, #1\nset.eq.u32 p1, r2, #0\n"
     "shr.u32 r0, r0, #1\n@p1 bra again\nxor.u32 r0, r0, #0xedb88320\nbra again\ndone:\nstg.u32 [y + lane], r0\nexit\n",
     HG_FAULT_NONE},
    {".program gather\n.buffer x u32 in\n.buffer y u32 inout\n.scalar s u32\nldg.u32 r0, [x + lane]\nmul.u32 r1, r0, "
     "s\n"
     "rem.u32 r1, r1, #20000\nldg.u32 r2, [x + r1]\ncvt.u64.u32 r3, r2\nadd.u64 r4, lane, #3\ndiv.u64 r3, r3, r4\n"
     "cvt.u32.u64 r3, r3\nadd.u32 r2, r2, r3\nstg.u32 [y + lane], r2\nexit\n",
     HG_FAULT_NONE},
    {".program counts\n.buffer x u32 in\n.buffer y u32 inout\n.scalar s u32\nldg.u32 r0, [x + lane]\nand.u32 r0, r0, "
     "#63\n"
     "atom.add.u32 _, [y + r0], s\natom.max.u32 _, [y + #64], r0\nexit\n",
     HG_FAULT_NONE},
    {".program blocks\n.block 64\n.buffer x f32 in\n.buffer y f32 inout\n.scalar s u32\n.shared part f32 64\n"
     "ldg.f32 r0, [x + lane]\nsts.f32 [part + blane], r0\nbar.sync\nreduce.add.f32 r1, r0\nscan.incl.f32 r2, r0\n"
     "xor.u32 r3, blane, #21\nlds.f32 r4, [part + r3]\nfma.f32 r1, r1, r2, r4\nstg.f32 [y + lane], r1\nexit\n",
     HG_FAULT_NONE},
    {".program narrow\n.buffer x f32 in\n.buffer y f32 inout\n.scalar s u32\ncvt.f16.u32 r1, s\nldg.f32 r0, [x + "
     "lane]\n"
     "cvt.f16.f32 r0, r0\nfma.f16 r0, r0, r1, r0\nexp.f16 r0, r0\ncvt.f32.f16 r2, r0\nstg.f32 [y + lane], r2\nexit\n",
     HG_FAULT_NONE},
    {".program faulty\n.buffer x u32 in\n.buffer y u32 inout\n.scalar s u32\nmov.u64 r1, lane\nset.ne.u64 p0, r1, #37\n"
     "@p0 bra fine\nadd.u64 r1, r1, #0x100000\nfine:\nldg.u32 r0, [x + r1]\nadd.u32 r0, r0, s\nstg.u32 [y + lane], r0\n"
     "exit\n",
     HG_FAULT_OUT_OF_BOUNDS},
};
enum { EXAMPLES = COUNT(examples) };

static const uint64_t sizes[SIZES] = {1, 100, 1500, WORDS}; /* the reference machine gets no more than 1500 lanes */
static const char *const engines[] = {"native", "tile", "interp"};
enum { ENGINES = COUNT(engines), REFERENCE = ENGINES - 1 };

static uint32_t input[WORDS];
static uint32_t *expected[EXAMPLES][SIZES]; /* s is scalar_of(the example) */
static atlas_program *programs[EXAMPLES];

static uint32_t scalar_of(uint32_t which) { return which + 3; }

static hg_fault_kind fault_of(uint32_t which, uint64_t lanes) {
  return lanes > FAULTY_LANE ? examples[which].fault : HG_FAULT_NONE;
}

/* ---- what the threads share -------------------------------------------------------------------------------------- */

/* An executor with all kernels, an input that everybody reads, and a stream for everybody. */
typedef struct place {
  hg_executor *executor;
  hg_kernel *kernels[EXAMPLES];
  hg_buffer *x;
  hg_stream *stream;
  uint64_t most_lanes;
} place;

typedef struct scene {
  place places[SHARED]; /* the last one only under the mutex */
  place cancelled;      /* whose work any thread may end */
  hg_mutex mutex;
  int engine;
  uint64_t end_ns;
  atomic_ulong launches, forks, replaced, ended;
} scene;

typedef struct caller {
  scene *scene;
  uint64_t random;
  uint32_t number;
  unsigned failures;
  hg_thread thread;
} caller;

static uint32_t draw(caller *c, uint32_t below) {
  c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(c->random >> 33) % below;
}

static int expect(caller *c, int condition, const char *what) {
  if (!condition && c->failures++ < 3) printf("thread %u: %s: %s\n", c->number, what, hg_last_error());
  return condition;
}
#define EXPECT(condition) expect(c, (condition), #condition)

static void close_place(place *p) {
  hg_executor_release(p->executor); /* the others keep it */
  for (uint32_t i = 0; i < EXAMPLES; i++) hg_kernel_release(p->kernels[i]);
  hg_buffer_release(p->x);
  hg_stream_release(p->stream);
  *p = (place){0};
}

/* On the engine that the environment says. */
static hg_status open_place(place *p, int engine) {
  hg_executor_desc desc = {.size = sizeof desc, .backend = HG_BACKEND_CPU};
  *p = (place){.most_lanes = engine == REFERENCE ? sizes[SIZES - 2] : WORDS};
  hg_status status = hg_executor_create(&desc, &p->executor);
  for (uint32_t i = 0; i < EXAMPLES && status == HG_OK; i++)
    status = hg_kernel_create(p->executor, programs[i], &p->kernels[i]);
  if (status == HG_OK) status = hg_buffer_create(p->executor, NULL, sizeof input, &p->x);
  if (status == HG_OK) status = hg_buffer_write(p->x, 0, input, sizeof input);
  if (status == HG_OK) status = hg_stream_create(p->executor, NULL, &p->stream);
  if (status != HG_OK) close_place(p);
  return status;
}

/* A place of one's own with what another one has. */
static place share_place(const place *p) {
  place copy = *p;
  hg_executor_retain(copy.executor);
  for (uint32_t i = 0; i < EXAMPLES; i++) hg_kernel_retain(copy.kernels[i]);
  hg_buffer_retain(copy.x);
  hg_stream_retain(copy.stream);
  return copy;
}

/* ---- what a thread does ------------------------------------------------------------------------------------------ */

typedef struct task {
  uint32_t which, size;
  uint64_t lanes;
  hg_binding bindings[2];
  hg_scalar scalar;
  hg_launch_desc launch;
  hg_buffer *y;
} task;

/* Something to launch at a place, with a result of its own. */
static int prepare(caller *c, const place *p, hg_buffer *x, task *t) {
  do *t = (task){.which = draw(c, EXAMPLES), .size = draw(c, SIZES)};
  while (sizes[t->size] > p->most_lanes);
  t->lanes = sizes[t->size];
  if (!EXPECT(hg_buffer_create(p->executor, NULL, sizeof input, &t->y) == HG_OK)) return 0;
  t->bindings[0] = (hg_binding){.name = "x", .buffer = x};
  t->bindings[1] = (hg_binding){.name = "y", .buffer = t->y};
  t->scalar = (hg_scalar){.name = "s", .type = ATLAS_u32, .bits = scalar_of(t->which)};
  t->launch = (hg_launch_desc){.size = sizeof t->launch, .lanes = t->lanes, .bindings = t->bindings,
                               .binding_count = 2, .scalars = &t->scalar, .scalar_count = 1};
  atomic_fetch_add(&c->scene->launches, 1);
  return 1;
}

static void check_result(caller *c, const task *t, const uint32_t *y) {
  const uint32_t *right = expected[t->which][t->size];
  for (uint32_t i = 0; i < WORDS; i++) {
    if (y[i] == right[i]) continue;
    c->failures++;
    printf("thread %u: program %u, %llu lanes: word %u is %08x, expected %08x\n", c->number, t->which,
           (unsigned long long)t->lanes, i, y[i], right[i]);
    return;
  }
}

static void check_fault(caller *c, const task *t, hg_status status, const hg_launch_report *report) {
  hg_fault_kind kind = fault_of(t->which, t->lanes);
  EXPECT(status == (kind == HG_FAULT_NONE ? HG_OK : HG_FAULT));
  EXPECT(report->fault.kind == kind && (kind == HG_FAULT_NONE || report->fault.lane == FAULTY_LANE));
}

static void launch_at_once(caller *c, const place *p) {
  static _Thread_local uint32_t y[WORDS];
  hg_launch_report report = {.size = sizeof report};
  task t;
  if (!prepare(c, p, p->x, &t)) return;
  hg_status status = hg_launch(p->kernels[t.which], &t.launch, &report);
  check_fault(c, &t, status, &report);
  if (EXPECT(hg_buffer_read(t.y, 0, y, sizeof y) == HG_OK)) check_result(c, &t, y);
  hg_buffer_release(t.y);
}

/* The stream is everybody's: others may have asked for the fault already, and read without it waits for the launch. */
static void launch_on_shared_stream(caller *c, const place *p) {
  static _Thread_local uint32_t y[WORDS];
  task t;
  if (!prepare(c, p, p->x, &t)) return;
  t.launch.stream = p->stream;
  EXPECT(hg_launch(p->kernels[t.which], &t.launch, NULL) == HG_OK);
  if (draw(c, 3) == 0) {
    hg_status status = hg_stream_wait(p->stream, NULL);
    EXPECT(status == HG_OK || status == HG_FAULT);
  }
  if (EXPECT(hg_buffer_read(t.y, 0, y, sizeof y) == HG_OK)) check_result(c, &t, y);
  hg_buffer_release(t.y);
}

/* A kernel of one's own, compiled now or, where others have the same one, shared; it is let go before it is ready at
 * times. */
static void make_kernel(caller *c, const place *p) {
  static _Thread_local uint32_t y[WORDS];
  hg_launch_report report = {.size = sizeof report};
  hg_kernel *kernel = NULL;
  task t;
  if (!prepare(c, p, p->x, &t)) return;
  int is_async = draw(c, 2) != 0, is_used = draw(c, 4) != 0;
  if (is_async) EXPECT(hg_kernel_create_async(p->executor, programs[t.which], &kernel, NULL) == HG_OK);
  else EXPECT(hg_kernel_create(p->executor, programs[t.which], &kernel) == HG_OK);
  if (is_used && kernel != NULL) {
    check_fault(c, &t, hg_launch(kernel, &t.launch, &report), &report);
    if (EXPECT(hg_buffer_read(t.y, 0, y, sizeof y) == HG_OK)) check_result(c, &t, y);
  }
  hg_kernel_release(kernel);
  hg_buffer_release(t.y);
}

/* Two streams of one's own: one brings the input and launches, the other, behind an event, takes the result away. */
static void launch_on_streams(caller *c, const place *p) {
  static _Thread_local uint32_t y[WORDS];
  hg_stream *first = NULL, *second = NULL;
  hg_event *event = NULL;
  hg_buffer *x = NULL;
  hg_launch_report report = {.size = sizeof report};
  task t = {0};
  if (EXPECT(hg_stream_create(p->executor, NULL, &first) == HG_OK) &&
      EXPECT(hg_stream_create(p->executor, NULL, &second) == HG_OK) &&
      EXPECT(hg_event_create(p->executor, NULL, &event) == HG_OK) &&
      EXPECT(hg_buffer_create(p->executor, NULL, sizeof input, &x) == HG_OK) && prepare(c, p, x, &t)) {
    t.launch.stream = first;
    EXPECT(hg_buffer_write_async(x, 0, input, sizeof input, first) == HG_OK);
    EXPECT(hg_launch(p->kernels[t.which], &t.launch, NULL) == HG_OK);
    EXPECT(hg_event_record(event, first) == HG_OK);
    EXPECT(hg_stream_wait_event(second, event) == HG_OK);
    EXPECT(hg_buffer_read_async(t.y, 0, y, sizeof y, second) == HG_OK);
    hg_buffer_release(x);
    EXPECT(hg_stream_wait(second, NULL) == HG_OK);
    check_result(c, &t, y);
    check_fault(c, &t, hg_stream_wait(first, &report), &report);
  }
  hg_buffer_release(t.y);
  hg_event_release(event);
  hg_stream_release(second);
  hg_stream_release(first);
}

/* Kernels and buffers are let go while their executor, which nobody else holds, still has work in a stream. */
static void own_executor(caller *c) {
  static _Thread_local uint32_t y[WORDS];
  place p;
  task t;
  if (!EXPECT(open_place(&p, c->scene->engine) == HG_OK)) return;
  launch_at_once(c, &p);
  launch_on_streams(c, &p);
  if (prepare(c, &p, p.x, &t)) {
    t.launch.stream = p.stream;
    EXPECT(hg_launch(p.kernels[t.which], &t.launch, NULL) == HG_OK);
    EXPECT(hg_buffer_read_async(t.y, 0, y, sizeof y, p.stream) == HG_OK);
    hg_buffer_release(t.y);
    close_place(&p); /* the last release of a stream waits for its work */
    check_result(c, &t, y);
  } else close_place(&p);
}

/* The place that is replaced again and again: whoever is last on an old one ends it. */
static void work_where_others_end(caller *c) {
  scene *s = c->scene;
  place fresh, mine;
  if (draw(c, 3) == 0 && EXPECT(open_place(&fresh, s->engine) == HG_OK)) {
    hg_mutex_lock(&s->mutex);
    mine = s->places[SHARED - 1];
    s->places[SHARED - 1] = fresh;
    hg_mutex_unlock(&s->mutex);
    close_place(&mine);
    atomic_fetch_add(&s->replaced, 1);
  }
  hg_mutex_lock(&s->mutex);
  mine = share_place(&s->places[SHARED - 1]);
  hg_mutex_unlock(&s->mutex);
  launch_at_once(c, &mine);
  launch_on_shared_stream(c, &mine);
  make_kernel(c, &mine);
  close_place(&mine);
}

/* Others cancel what is given here: it ends as such work does, or it is right; and so with a stream of one's own. */
static void work_where_others_cancel(caller *c) {
  static _Thread_local uint32_t y[WORDS];
  const place *p = &c->scene->cancelled;
  hg_launch_report report = {.size = sizeof report};
  hg_stream *stream = NULL;
  task t;
  if (draw(c, 3) == 0) EXPECT(hg_cancel(p->executor) == HG_OK);
  if (draw(c, 2) == 0) EXPECT(hg_stream_create(p->executor, NULL, &stream) == HG_OK);
  if (prepare(c, p, p->x, &t)) {
    t.launch.stream = stream;
    hg_status status = hg_launch(p->kernels[t.which], &t.launch, &report);
    if (stream != NULL && status == HG_OK) status = hg_stream_wait(stream, &report);
    if (status == HG_CANCELLED) atomic_fetch_add(&c->scene->ended, 1);
    else {
      check_fault(c, &t, status, &report);
      if (EXPECT(hg_buffer_read(t.y, 0, y, sizeof y) == HG_OK)) check_result(c, &t, y);
    }
    hg_buffer_release(t.y);
  }
  hg_stream_release(stream);
}

#if !defined(CANNOT_FORK)
/* The child has the place that was nobody else's, and makes one of its own. */
static void fork_with(caller *c, place *idle) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    sigset_t none; /* threads of hg_thread_start take no signals */
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    alarm(60);
    c->failures = 0;
    for (int i = 0; i < 3; i++) launch_at_once(c, idle);
    launch_on_streams(c, idle);
    own_executor(c);
    fflush(stdout);
    _exit(c->failures != 0);
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0) continue;
  EXPECT(child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  atomic_fetch_add(&c->scene->forks, 1);
}
#else
static void fork_with(caller *c, place *idle) {
  (void)c;
  (void)idle;
}
#endif

static void work(void *user) {
  caller *c = user;
  scene *s = c->scene;
  place idle = {0};
  if (c->number == 0) EXPECT(open_place(&idle, s->engine) == HG_OK);
  for (uint32_t turn = 0; hg_time_ns() < s->end_ns && c->failures == 0; turn++) {
    const place *p = &s->places[draw(c, SHARED - 1)];
    switch (draw(c, 12)) {
    case 0: own_executor(c); break;
    case 1:
    case 2: work_where_others_end(c); break;
    case 3: launch_on_streams(c, p); break;
    case 4: launch_on_shared_stream(c, p); break;
    case 5:
    case 6: make_kernel(c, p); break;
    case 7:
    case 8: work_where_others_cancel(c); break;
    default: launch_at_once(c, p); break;
    }
    if (c->number == 0 && turn % FORK_EVERY == 3) fork_with(c, &idle);
  }
  close_place(&idle);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

/* What every launch must give, from the reference machine, in one thread. */
static void make_expected(void) {
  place p;
  for (uint32_t i = 0; i < WORDS; i++) {
    uint32_t bits = i * 2654435761u;
    input[i] = (bits >> 9 & 0xbfffff) | 0x3f000000 | (bits & 0x80000000u); /* as f32: 0.5 to 4 */
  }
  for (uint32_t i = 0; i < EXAMPLES; i++) {
    CHECK_EQ_U64(atlas_parse(NULL, examples[i].text, strlen(examples[i].text), NULL, &programs[i]), HG_OK);
    if (programs[i] == NULL) printf("  %s\n", hg_last_error());
  }
  set("HOLOGRAM_CPU_ENGINE", engines[REFERENCE]);
  if (!check_note(open_place(&p, REFERENCE) == HG_OK)) exit(check_report());
  for (uint32_t i = 0; i < EXAMPLES * SIZES; i++) {
    uint32_t which = i / SIZES, size = i % SIZES;
    uint32_t *y = expected[which][size] = calloc(WORDS, sizeof *y);
    hg_buffer *result = NULL;
    CHECK_EQ_U64(hg_buffer_create(p.executor, NULL, sizeof input, &result), HG_OK);
    hg_binding bindings[] = {{.name = "x", .buffer = p.x}, {.name = "y", .buffer = result}};
    hg_scalar scalar = {.name = "s", .type = ATLAS_u32, .bits = scalar_of(which)};
    hg_launch_desc launch = {.lanes = sizes[size], .bindings = bindings, .binding_count = 2, .scalars = &scalar,
                             .scalar_count = 1};
    CHECK_EQ_U64(hg_launch(p.kernels[which], &launch, NULL),
                 fault_of(which, sizes[size]) == HG_FAULT_NONE ? HG_OK : HG_FAULT);
    CHECK_EQ_U64(hg_buffer_read(result, 0, y, sizeof input), HG_OK);
    hg_buffer_release(result);
  }
  close_place(&p);
}

static void run_round(scene *s, uint64_t number) {
  caller callers[CALLERS];
  s->engine = (int)(number % ENGINES);
  for (int e = 0; e < ENGINES; e++) {
    set("HOLOGRAM_CPU_ENGINE", engines[e]);
    CHECK_EQ_U64(open_place(&s->places[e], e), HG_OK);
  }
  set("HOLOGRAM_CPU_ENGINE", engines[s->engine]);
  CHECK_EQ_U64(open_place(&s->places[SHARED - 1], s->engine), HG_OK);
  CHECK_EQ_U64(open_place(&s->cancelled, s->engine), HG_OK);
  s->end_ns = hg_time_ns() + ROUND_MS * UINT64_C(1000000);
  for (uint32_t i = 0; i < CALLERS; i++) {
    callers[i] = (caller){.scene = s, .number = i, .random = number * CALLERS + i + 1};
    CHECK(hg_thread_start(&callers[i].thread, work, &callers[i]) == 0);
  }
  for (uint32_t i = 0; i < CALLERS; i++) {
    hg_thread_join(&callers[i].thread);
    CHECK_EQ_U64(callers[i].failures, 0);
  }
  for (int i = 0; i < SHARED; i++) close_place(&s->places[i]);
  close_place(&s->cancelled);
}

int main(int count, char **words) {
  static scene s;
  uint64_t seconds = count > 1 ? strtoull(words[1], NULL, 10) : 2;
  set("HOLOGRAM_NUM_THREADS", "4");
  if (hg_mutex_init(&s.mutex) != 0) return 1;
  make_expected();
  uint64_t end_ns = hg_time_ns() + seconds * UINT64_C(1000000000), rounds = 0;
  do run_round(&s, rounds++);
  while (check_failed == 0 && (hg_time_ns() < end_ns || rounds < ENGINES));
  printf("%llu rounds, %lu launches, %lu forks, %lu executors replaced, %lu launches cancelled\n",
         (unsigned long long)rounds, atomic_load(&s.launches), atomic_load(&s.forks), atomic_load(&s.replaced),
         atomic_load(&s.ended));
  for (uint32_t i = 0; i < EXAMPLES; i++) {
    atlas_program_release(programs[i]);
    for (uint32_t k = 0; k < SIZES; k++) free(expected[i][k]);
  }
  hg_mutex_destroy(&s.mutex);
  return check_report();
}
