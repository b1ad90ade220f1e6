/* every_input.c - runs every unary f32 function on all its 2^32 inputs, on each engine asked for, and compares the bits
 * with the same function text translated to C (atlas2c.py), a second reading of the ISA that shares no code with the
 * library. Work is dealt out to processes in slices of inputs. */
#define _GNU_SOURCE /* setenv, MAP_ANONYMOUS */
#include "functions_text.h"

#include <hologram/hologram.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLICE = 1 << 20, MAX_ENGINES = 16, MAX_FUNCTIONS = 64, MAX_PROCESSES = 256, SHOWN = 5 };

typedef float (*unary)(float);

typedef struct function {
  const char *op;
  unary f;
} function;

/* Primitives have no text of their own: the helper that translated text calls is the reading. */
#define PRIMITIVE(op) \
  static float fn_##op(float a) { return op##_f32(a); }
PRIMITIVE(sqrt) PRIMITIVE(floor) PRIMITIVE(ceil) PRIMITIVE(trunc) PRIMITIVE(round) PRIMITIVE(neg) PRIMITIVE(abs)

static const function primitives[] = {{"sqrt", fn_sqrt},   {"floor", fn_floor}, {"ceil", fn_ceil}, {"trunc", fn_trunc},
                                      {"round", fn_round}, {"neg", fn_neg},     {"abs", fn_abs}};
enum { PRIMITIVE_COUNT = sizeof primitives / sizeof primitives[0] };

typedef struct options {
  const char *only;
  const char *engines[MAX_ENGINES];
  int engine_count;
  int processes;
  uint64_t step; /* every step-th of the inputs */
} options;

/* Shared among the processes: inputs compared and inputs that differ. */
typedef struct tally {
  _Atomic uint64_t compared[MAX_FUNCTIONS][MAX_ENGINES], differ[MAX_FUNCTIONS][MAX_ENGINES];
} tally;

typedef struct contender {
  hg_executor *executor;
  hg_kernel *kernel;
  hg_buffer *x, *y;
} contender;

static uint64_t slices_of(const options *o) {
  uint64_t slice_bits = SLICE * o->step;
  return ((UINT64_C(1) << 32) + slice_bits - 1) / slice_bits;
}

static int list_functions(const options *o, function *out) {
  int count = 0;
  for (size_t i = 0; i < sizeof atlas_functions / sizeof *atlas_functions; i++)
    if (atlas_functions[i].f32 != NULL && (o->only == NULL || strcmp(o->only, atlas_functions[i].op) == 0))
      out[count++] = (function){atlas_functions[i].op, atlas_functions[i].f32};
  for (int i = 0; i < PRIMITIVE_COUNT; i++)
    if (o->only == NULL || strcmp(o->only, primitives[i].op) == 0) out[count++] = primitives[i];
  return count;
}

static void need(hg_status status, const char *what) {
  if (status == HG_OK) return;
  fprintf(stderr, "every_input: %s: %s\n", what, hg_last_error());
  exit(1);
}

/* "native", "native/avx2", "tile/baseline", "interp", "cuda" */
static void choose_engine(const char *name, hg_executor_desc *desc) {
  char engine[32] = "";
  const char *slash = strchr(name, '/');
  snprintf(engine, sizeof engine, "%.*s", slash != NULL ? (int)(slash - name) : 31, name);
  desc->backend = strcmp(engine, "cuda") == 0 ? HG_BACKEND_CUDA : HG_BACKEND_CPU;
  setenv("HOLOGRAM_CPU_ENGINE", engine, 1);
  if (slash != NULL) setenv("HOLOGRAM_CPU_ISA", slash + 1, 1);
  else unsetenv("HOLOGRAM_CPU_ISA");
}

static void open_contender(contender *c, const char *engine, const char *op) {
  char text[256];
  int size = snprintf(text, sizeof text,
                      ".buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\n%s.f32 r0, r0\n"
                      "stg.f32 [y + lane], r0\nexit\n",
                      op);
  hg_executor_desc desc = {.size = sizeof desc};
  choose_engine(engine, &desc);
  need(hg_executor_create(&desc, &c->executor), engine);
  atlas_program *program = NULL;
  need(atlas_parse(NULL, text, (size_t)size, NULL, &program), op);
  need(hg_kernel_create(c->executor, program, &c->kernel), op);
  atlas_program_release(program);
  need(hg_buffer_create(c->executor, NULL, SLICE * sizeof(float), &c->x), "a buffer");
  need(hg_buffer_create(c->executor, NULL, SLICE * sizeof(float), &c->y), "a buffer");
}

static void close_contender(contender *c) {
  hg_buffer_release(c->x);
  hg_buffer_release(c->y);
  hg_kernel_release(c->kernel);
  hg_executor_release(c->executor);
}

static void run_contender(contender *c, const uint32_t *inputs, uint32_t *outputs, const char *engine) {
  hg_binding bindings[] = {{.name = "x", .buffer = c->x}, {.name = "y", .buffer = c->y}};
  hg_launch_desc launch = {.lanes = SLICE, .bindings = bindings, .binding_count = 2};
  hg_launch_report report = {.size = sizeof report};
  need(hg_buffer_write(c->x, 0, inputs, SLICE * sizeof(float)), "copying inputs");
  need(hg_launch(c->kernel, &launch, &report), "a launch");
  need(hg_buffer_read(c->y, 0, outputs, SLICE * sizeof(float)), "copying results");
  const char *expected = strncmp(engine, "interp", 6) == 0 ? "reference" : engine;
  if (strcmp(engine, "cuda") != 0 && strncmp(report.engine, expected, strcspn(expected, "/")) != 0) {
    fprintf(stderr, "every_input: asked for %s, %s ran\n", engine, report.engine);
    exit(1);
  }
}

static void compare(const function *f, const char *engine, const uint32_t *x, const uint32_t *want, const uint32_t *got,
                    _Atomic uint64_t *compared, _Atomic uint64_t *differ) {
  for (int i = 0; i < SLICE; i++)
    if (want[i] != got[i] && (*differ)++ < SHOWN)
      printf("%s on %s: %08x gives %08x, the text says %08x\n", f->op, engine, x[i], got[i], want[i]);
  *compared += SLICE;
}

static void work(const options *o, const function *functions, int count, int process, tally *t) {
  static uint32_t x[SLICE], want[SLICE], got[SLICE];
  contender contenders[MAX_ENGINES];
  setenv("HOLOGRAM_NUM_THREADS", "1", 1);
  for (int k = 0; k < count; k++) {
    if (process == 0) fprintf(stderr, "%d of %d: %s\n", k + 1, count, functions[k].op);
    for (int e = 0; e < o->engine_count; e++) open_contender(&contenders[e], o->engines[e], functions[k].op);
    for (uint64_t slice = (uint64_t)process; slice < slices_of(o); slice += (uint64_t)o->processes) {
      for (uint32_t i = 0; i < SLICE; i++) {
        x[i] = (uint32_t)((slice * SLICE + i) * o->step); /* past the last one some inputs come again */
        want[i] = BITCAST(uint32_t, float, functions[k].f(BITCAST(float, uint32_t, x[i])));
      }
      for (int e = 0; e < o->engine_count; e++) {
        run_contender(&contenders[e], x, got, o->engines[e]);
        compare(&functions[k], o->engines[e], x, want, got, &t->compared[k][e], &t->differ[k][e]);
      }
    }
    for (int e = 0; e < o->engine_count; e++) close_contender(&contenders[e]);
  }
  if (atlas_faults != 0) {
    printf("%lu table loads of the translated text were out of bounds\n", atlas_faults);
    exit(1);
  }
}

static int report(const options *o, const function *functions, int count, tally *t, int lost) {
  int passed = 0, failed = lost;
  uint64_t inputs = slices_of(o) * SLICE;
  for (int k = 0; k < count; k++) {
    printf("%-10s", functions[k].op);
    for (int e = 0; e < o->engine_count; e++) {
      uint64_t differ = t->differ[k][e], compared = t->compared[k][e];
      if (differ == 0 && compared == inputs) passed++;
      else failed++;
      printf("  %s: %llu of %llu differ", o->engines[e], (unsigned long long)differ, (unsigned long long)compared);
    }
    printf("\n");
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0 || passed == 0;
}

static int run(const options *o) {
  function functions[MAX_FUNCTIONS];
  int count = list_functions(o, functions), lost = 0;
  tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (t == MAP_FAILED) {
    perror("every_input: memory shared among the processes");
    return 1;
  }
  for (int p = 0; p < o->processes; p++) {
    pid_t child = fork();
    if (child == 0) {
      work(o, functions, count, p, t);
      exit(0);
    }
    if (child < 0) {
      perror("every_input: a process");
      lost++;
    }
  }
  for (int state; wait(&state) > 0;)
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) lost++;
  return report(o, functions, count, t, lost);
}

static void split(char *list, options *o) {
  o->engine_count = 0;
  for (char *part = strtok(list, ","); part != NULL && o->engine_count < MAX_ENGINES; part = strtok(NULL, ","))
    o->engines[o->engine_count++] = part;
}

int main(int argc, char **argv) {
  options o = {.engines = {"native", "tile"}, .engine_count = 2, .processes = 1, .step = 1};
  for (int i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (value != NULL && strcmp(argv[i], "--op") == 0) o.only = value;
    else if (value != NULL && strcmp(argv[i], "--engines") == 0) split(argv[i + 1], &o);
    else if (value != NULL && strcmp(argv[i], "--processes") == 0) o.processes = atoi(value);
    else if (value != NULL && strcmp(argv[i], "--step") == 0) o.step = strtoull(value, NULL, 0);
    else {
      fprintf(stderr, "usage: every_input [--op NAME] [--engines native,native/avx2,tile,interp,cuda]\n"
                      "                   [--processes P] [--step N]\n");
      return 2;
    }
  }
  if (o.processes < 1 || o.processes > MAX_PROCESSES) o.processes = 1;
  if (o.step < 1 || o.step > 1 << 24) o.step = 1;
  return run(&o);
}
