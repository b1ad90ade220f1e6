/* every_input.c - runs every unary f32 function, and every conversion from f32, on all 2^32 inputs, on each engine
 * asked for, and compares the bits with the same function text translated to C (atlas2c.py), a second reading of the
 * ISA that shares no code with the library. Work is dealt out to processes in slices of inputs. */
#define _GNU_SOURCE /* setenv, MAP_ANONYMOUS */
#include "functions_text.h"

#include <hologram/hologram.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLICE = 1 << 20, MAX_ENGINES = 16, MAX_FUNCTIONS = 64, MAX_PROCESSES = 256, SHOWN = 5 };

typedef struct function {
  const char *op;
  const char *text; /* the instruction, NULL: op.f32 */
  float (*f)(float);
  void (*convert)(const float *x, void *y); /* SLICE of them; NULL: f it is */
  const char *type; /* of results, NULL: f32 */
  size_t bytes;
} function;

/* ---- primitives have no text of their own: what translated text calls, or what is written here, is the reading --- */

#define PRIMITIVE(op) \
  static float fn_##op(float a) { return op##_f32(a); }
PRIMITIVE(sqrt) PRIMITIVE(recip) PRIMITIVE(floor) PRIMITIVE(ceil) PRIMITIVE(trunc) PRIMITIVE(round) PRIMITIVE(neg)
PRIMITIVE(abs) PRIMITIVE(sign) PRIMITIVE(relu)

/* To a format of fewer bits: units are 2^least and their multiples. */
static uint32_t narrowed(float a, int fraction, int least, uint32_t infinity) {
  double size = __builtin_fabs(a);
  int unit = (int)(BITCAST(uint32_t, float, a) >> 23 & 255) - 127 - fraction;
  if (a - a != 0) return infinity;
  if (unit < least) unit = least;
  uint32_t units = (uint32_t)__builtin_rint(size * BITCAST(double, uint64_t, (uint64_t)(1023 - unit) << 52));
  uint32_t bits = units + ((uint32_t)(unit - least) << fraction);
  return bits < infinity ? bits : infinity;
}

static uint32_t f16_of(float a) {
  return a != a ? 0x7e00 : narrowed(a, 10, -24, 0x7c00) | (__builtin_signbit(a) ? 0x8000 : 0);
}

static uint32_t bf16_of(float a) {
  return a != a ? 0x7fc0 : narrowed(a, 7, -133, 0x7f80) | (__builtin_signbit(a) ? 0x8000 : 0);
}

static uint32_t f8e4m3_of(float a) { /* has no infinity: what would be one is NaN, which has no sign */
  uint32_t bits = a != a ? 0x7f : narrowed(a, 3, -9, 0x7f);
  return bits == 0x7f ? bits : bits | (__builtin_signbit(a) ? 0x80 : 0);
}

static uint32_t f8e5m2_of(float a) {
  return a != a ? 0x7e : narrowed(a, 2, -16, 0x7c) | (__builtin_signbit(a) ? 0x80 : 0);
}

#define CONVERSIONS(X)                                                                                      \
  X(i8, int8_t, to_i8(a)) X(i16, int16_t, to_i16(a)) X(i32, int32_t, to_i32(a)) X(i64, int64_t, to_i64(a))  \
  X(u8, uint8_t, to_u8(a)) X(u16, uint16_t, to_u16(a)) X(u32, uint32_t, to_u32(a)) X(u64, uint64_t, to_u64(a)) \
  X(f16, uint16_t, f16_of(a)) X(bf16, uint16_t, bf16_of(a)) X(f64, double, canon_f64((double)a))            \
  X(f8e4m3, uint8_t, f8e4m3_of(a)) X(f8e5m2, uint8_t, f8e5m2_of(a)) X(bool, uint8_t, a != 0)

#define CONVERSION(t, T, result)                        \
  static void convert_##t(const float *x, void *y) {    \
    for (uint32_t i = 0; i < SLICE; i++) {              \
      float a = x[i];                                   \
      ((T *)y)[i] = (T)(result);                        \
    }                                                   \
  }
CONVERSIONS(CONVERSION)

#define PRIMITIVE_ROW(op) {#op, NULL, fn_##op, NULL, NULL, sizeof(float)},
#define CONVERSION_ROW(t, T, result) {"cvt." #t, "cvt." #t ".f32", NULL, convert_##t, #t, sizeof(T)},
static const function primitives[] = {
    PRIMITIVE_ROW(sqrt) PRIMITIVE_ROW(recip) PRIMITIVE_ROW(floor) PRIMITIVE_ROW(ceil) PRIMITIVE_ROW(trunc)
    PRIMITIVE_ROW(round) PRIMITIVE_ROW(neg) PRIMITIVE_ROW(abs) PRIMITIVE_ROW(sign) PRIMITIVE_ROW(relu)
    CONVERSIONS(CONVERSION_ROW)};
enum { PRIMITIVE_COUNT = sizeof primitives / sizeof primitives[0] };

/* ---- the work ---------------------------------------------------------------------------------------------------- */

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
      out[count++] = (function){.op = atlas_functions[i].op, .f = atlas_functions[i].f32, .bytes = sizeof(float)};
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

static void open_contender(contender *c, const char *engine, const function *f) {
  const char *op = f->text != NULL ? f->text : f->op, *type = f->type != NULL ? f->type : "f32";
  char text[256];
  int size = snprintf(text, sizeof text,
                      ".buffer x f32 in\n.buffer y %s out\nldg.f32 r0, [x + lane]\n%s%s r0, r0\n"
                      "stg.%s [y + lane], r0\nexit\n",
                      type, op, f->text != NULL ? "" : ".f32", type);
  hg_executor_desc desc = {.size = sizeof desc};
  choose_engine(engine, &desc);
  need(hg_executor_create(&desc, &c->executor), engine);
  atlas_program *program = NULL;
  need(atlas_parse(NULL, text, (size_t)size, NULL, &program), op);
  need(hg_kernel_create(c->executor, program, &c->kernel), op);
  atlas_program_release(program);
  need(hg_buffer_create(c->executor, NULL, SLICE * sizeof(float), &c->x), "a buffer");
  need(hg_buffer_create(c->executor, NULL, SLICE * f->bytes, &c->y), "a buffer");
}

static void close_contender(contender *c) {
  hg_buffer_release(c->x);
  hg_buffer_release(c->y);
  hg_kernel_release(c->kernel);
  hg_executor_release(c->executor);
}

static void run_contender(contender *c, const float *inputs, void *outputs, const char *engine) {
  hg_binding bindings[] = {{.name = "x", .buffer = c->x}, {.name = "y", .buffer = c->y}};
  hg_launch_desc launch = {.lanes = SLICE, .bindings = bindings, .binding_count = 2};
  hg_launch_report report = {.size = sizeof report};
  need(hg_buffer_write(c->x, 0, inputs, SLICE * sizeof *inputs), "copying inputs");
  need(hg_launch(c->kernel, &launch, &report), "a launch");
  need(hg_buffer_read(c->y, 0, outputs, hg_buffer_size(c->y)), "copying results");
  const char *expected = strncmp(engine, "interp", 6) == 0 ? "reference" : engine;
  if (strcmp(engine, "cuda") != 0 && strncmp(report.engine, expected, strcspn(expected, "/")) != 0) {
    fprintf(stderr, "every_input: asked for %s, %s ran\n", engine, report.engine);
    exit(1);
  }
}

static unsigned long long element(const uint8_t *bytes, size_t size) {
  unsigned long long bits = 0;
  memcpy(&bits, bytes, size); /* little-endian, as every machine with these engines */
  return bits;
}

static void compare(const function *f, const char *engine, const float *x, const uint8_t *want, const uint8_t *got,
                    _Atomic uint64_t *compared, _Atomic uint64_t *differ) {
  *compared += SLICE;
  if (memcmp(want, got, SLICE * f->bytes) == 0) return;
  for (size_t i = 0; i < SLICE; i++) {
    const uint8_t *w = want + i * f->bytes, *g = got + i * f->bytes;
    if (memcmp(w, g, f->bytes) != 0 && (*differ)++ < SHOWN)
      printf("%s on %s: %08x gives %0*llx, the text says %0*llx\n", f->op, engine, BITCAST(uint32_t, float, x[i]),
             (int)f->bytes * 2, element(g, f->bytes), (int)f->bytes * 2, element(w, f->bytes));
  }
}

static void expect(const function *f, const float *x, void *want) {
  if (f->convert != NULL) f->convert(x, want);
  else
    for (uint32_t i = 0; i < SLICE; i++) ((float *)want)[i] = f->f(x[i]);
}

static void work(const options *o, const function *functions, int count, int process, tally *t) {
  static float x[SLICE];
  static _Alignas(64) uint8_t want[SLICE * sizeof(double)], got[SLICE * sizeof(double)];
  contender contenders[MAX_ENGINES];
  setenv("HOLOGRAM_NUM_THREADS", "1", 1);
  for (int k = 0; k < count; k++) {
    if (process == 0) fprintf(stderr, "%d of %d: %s\n", k + 1, count, functions[k].op);
    for (int e = 0; e < o->engine_count; e++) open_contender(&contenders[e], o->engines[e], &functions[k]);
    for (uint64_t slice = (uint64_t)process; slice < slices_of(o); slice += (uint64_t)o->processes) {
      for (uint32_t i = 0; i < SLICE; i++) /* past the last one some inputs come again */
        x[i] = BITCAST(float, uint32_t, (uint32_t)((slice * SLICE + i) * o->step));
      expect(&functions[k], x, want);
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
