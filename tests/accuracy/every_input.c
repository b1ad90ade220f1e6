/* every_input.c - runs every unary function of f32, and every conversion from it, on all 2^32 inputs, and those of f16
 * and bf16 on all 65536, on each engine asked for, and compares the bits with the same function text translated to C
 * (atlas2c.py), a second reading of the ISA that shares no code with the library, or, which is faster, the engines with
 * the first of them. Work is dealt out to processes in slices of inputs. */
#define _GNU_SOURCE /* setenv, MAP_ANONYMOUS */
#include "functions_text.h"

#include <hologram/hologram.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLICE = 1 << 20, MAX_ENGINES = 16, MAX_SUBJECTS = 192, MAX_PROCESSES = 256, SHOWN = 5 };

/* ---- the formats that functions read ----------------------------------------------------------------------------- */

/* Units of a narrow format are 2^least and their multiples; bits at and above `infinity` are no finite number. */
static uint32_t narrowed(float a, int fraction, int least, uint32_t infinity) {
  double size = __builtin_fabs(a);
  int unit = (int)(BITCAST(uint32_t, float, a) >> 23 & 255) - 127 - fraction;
  if (a - a != 0) return infinity;
  if (unit < least) unit = least;
  uint32_t units = (uint32_t)__builtin_rint(size * BITCAST(double, uint64_t, (uint64_t)(1023 - unit) << 52));
  uint32_t bits = units + ((uint32_t)(unit - least) << fraction);
  return bits < infinity ? bits : infinity;
}

static float widened(uint32_t bits, int fraction, int least, uint32_t infinity) {
  uint32_t size = bits & 0x7fff, exponent = size >> fraction, units = size & ((1u << fraction) - 1);
  if (size > infinity) return F32_BITS(0x7fc00000u);
  if (exponent > 0) units |= 1u << fraction;
  int unit = least + (exponent > 0 ? (int)exponent - 1 : 0);
  double a = size == infinity ? INFINITY : units * BITCAST(double, uint64_t, (uint64_t)(1023 + unit) << 52);
  return (float)(bits & 0x8000 ? -a : a);
}

static uint32_t f32_of(float a) { return BITCAST(uint32_t, float, a); }

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

static float from_f32(uint32_t bits) { return F32_BITS(bits); }
static float from_f16(uint32_t bits) { return widened(bits, 10, -24, 0x7c00); }
static float from_bf16(uint32_t bits) { return widened(bits, 7, -133, 0x7f80); }

typedef struct format {
  const char *name;
  size_t bytes;
  float (*value)(uint32_t bits);
  uint32_t (*bits)(float value); /* rounded once */
} format;

static const format formats[] = {
    {"f32", 4, from_f32, f32_of}, {"f16", 2, from_f16, f16_of}, {"bf16", 2, from_bf16, bf16_of}};
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0] };

static uint64_t inputs_of(const format *from) { return UINT64_C(1) << 8 * from->bytes; }

/* ---- functions: primitives have no text of their own, so what translated text calls, or what stands here, is read  */

typedef struct function {
  const char *op;
  float (*f)(float);
  uint32_t (*on_bits)(uint32_t bits, uint32_t sign);          /* if not NULL */
  void (*convert)(const float *x, void *y, uint32_t count);   /* if not NULL */
  const char *type;                                           /* of its results, and their size */
  size_t bytes;
} function;

#define PRIMITIVE(op) \
  static float fn_##op(float a) { return op##_f32(a); }
PRIMITIVE(sqrt) PRIMITIVE(recip) PRIMITIVE(floor) PRIMITIVE(ceil) PRIMITIVE(trunc) PRIMITIVE(round) PRIMITIVE(sign)
PRIMITIVE(relu)

static uint32_t neg_bits(uint32_t bits, uint32_t sign) { return bits ^ sign; }
static uint32_t abs_bits(uint32_t bits, uint32_t sign) { return bits & ~sign; }

#define CONVERSIONS(X)                                                                                         \
  X(i8, int8_t, to_i8(a)) X(i16, int16_t, to_i16(a)) X(i32, int32_t, to_i32(a)) X(i64, int64_t, to_i64(a))     \
  X(u8, uint8_t, to_u8(a)) X(u16, uint16_t, to_u16(a)) X(u32, uint32_t, to_u32(a)) X(u64, uint64_t, to_u64(a)) \
  X(f16, uint16_t, f16_of(a)) X(bf16, uint16_t, bf16_of(a)) X(f32, float, a) X(f64, double, canon_f64((double)a)) \
  X(f8e4m3, uint8_t, f8e4m3_of(a)) X(f8e5m2, uint8_t, f8e5m2_of(a)) X(bool, uint8_t, a != 0)

#define CONVERSION(t, T, result)                                        \
  static void convert_##t(const float *x, void *y, uint32_t count) {    \
    for (uint32_t i = 0; i < count; i++) {                              \
      float a = x[i];                                                   \
      ((T *)y)[i] = (T)(result);                                        \
    }                                                                   \
  }
CONVERSIONS(CONVERSION)

#define PRIMITIVE_ROW(name) {.op = #name, .f = fn_##name},
#define CONVERSION_ROW(t, T, result) {.op = "cvt." #t, .convert = convert_##t, .type = #t, .bytes = sizeof(T)},
static const function primitives[] = {
    PRIMITIVE_ROW(sqrt) PRIMITIVE_ROW(recip) PRIMITIVE_ROW(floor) PRIMITIVE_ROW(ceil) PRIMITIVE_ROW(trunc)
    PRIMITIVE_ROW(round) PRIMITIVE_ROW(sign) PRIMITIVE_ROW(relu)
    {.op = "neg", .on_bits = neg_bits}, {.op = "abs", .on_bits = abs_bits}, CONVERSIONS(CONVERSION_ROW)};
enum { PRIMITIVE_COUNT = sizeof primitives / sizeof primitives[0] };

/* A function of a format. */
typedef struct subject {
  function f;
  const format *from;
  char name[24];
} subject;

static void expect(const subject *s, const uint32_t *bits, uint32_t count, void *want) {
  static float x[SLICE];
  const function *f = &s->f;
  for (uint32_t i = 0; i < count; i++) x[i] = s->from->value(bits[i]);
  if (f->convert != NULL) {
    f->convert(x, want, count);
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    uint32_t y = f->on_bits != NULL ? f->on_bits(bits[i], 1u << (8 * s->from->bytes - 1)) : s->from->bits(f->f(x[i]));
    memcpy((uint8_t *)want + i * s->from->bytes, &y, s->from->bytes); /* little-endian, as all machines with engines */
  }
}

/* ---- the work ---------------------------------------------------------------------------------------------------- */

typedef struct options {
  const char *only;
  const char *engines[MAX_ENGINES], *types[FORMAT_COUNT];
  int engine_count, type_count;
  int processes;
  uint64_t step; /* every step-th of the inputs of f32 */
  int by_first;  /* the engines are compared with the first of them, not with the text */
} options;

/* Shared among the processes: inputs compared and inputs that differ, and what the processes have yet to do. */
typedef struct tally {
  _Atomic uint64_t compared[MAX_SUBJECTS][MAX_ENGINES], differ[MAX_SUBJECTS][MAX_ENGINES];
  _Atomic int at_work[MAX_SUBJECTS];
} tally;

typedef struct contender {
  hg_kernel *kernel;
  hg_buffer *x, *y;
} contender;

static uint64_t step_of(const options *o, const subject *s) { return s->from->bytes == 4 ? o->step : 1; }

static uint32_t slice_of(const subject *s) {
  return inputs_of(s->from) < SLICE ? (uint32_t)inputs_of(s->from) : SLICE;
}

static uint64_t slices_of(const options *o, const subject *s) {
  uint64_t slice_inputs = slice_of(s) * step_of(o, s);
  return (inputs_of(s->from) + slice_inputs - 1) / slice_inputs;
}

static int is_wanted(const options *o, const char *type) {
  for (int i = 0; i < o->type_count; i++)
    if (strcmp(o->types[i], type) == 0) return 1;
  return o->type_count == 0;
}

static void add_subject(const options *o, function f, const format *from, subject *out, int *count) {
  if (o->only != NULL && strcmp(o->only, f.op) != 0) return;
  if (f.type != NULL && strcmp(f.type, from->name) == 0) return;
  subject *s = &out[(*count)++];
  if (f.type == NULL) f.type = from->name, f.bytes = from->bytes;
  *s = (subject){.f = f, .from = from};
  snprintf(s->name, sizeof s->name, "%s.%s", f.op, from->name);
}

static int list_subjects(const options *o, subject *out) {
  int count = 0;
  for (int t = 0; t < FORMAT_COUNT; t++) {
    if (!is_wanted(o, formats[t].name)) continue;
    for (size_t i = 0; i < sizeof atlas_functions / sizeof *atlas_functions; i++)
      if (atlas_functions[i].f32 != NULL)
        add_subject(o, (function){.op = atlas_functions[i].op, .f = atlas_functions[i].f32}, &formats[t], out, &count);
    for (int i = 0; i < PRIMITIVE_COUNT; i++) add_subject(o, primitives[i], &formats[t], out, &count);
  }
  return count;
}

static void need(hg_status status, const char *what) {
  if (status == HG_OK) return;
  fprintf(stderr, "every_input: %s: %s\n", what, hg_last_error());
  exit(1);
}

/* "native", "native/avx2", "tile/baseline", "interp"; or a backend, "cuda", "metal" */
static void choose_engine(const char *name, hg_executor_desc *desc) {
  char engine[32] = "";
  const char *slash = strchr(name, '/');
  snprintf(engine, sizeof engine, "%.*s", slash != NULL ? (int)(slash - name) : 31, name);
  if (hg_backend_by_name(engine, &desc->backend) != HG_OK) desc->backend = HG_BACKEND_CPU;
  setenv("HOLOGRAM_CPU_ENGINE", engine, 1);
  if (slash != NULL) setenv("HOLOGRAM_CPU_ISA", slash + 1, 1);
  else unsetenv("HOLOGRAM_CPU_ISA");
}

static hg_executor *open_executor(const char *engine) {
  hg_executor_desc desc = {.size = sizeof desc};
  hg_executor *executor = NULL;
  choose_engine(engine, &desc);
  need(hg_executor_create(&desc, &executor), engine);
  return executor;
}

static void open_contender(contender *c, hg_executor *executor, const subject *s) {
  char text[256];
  int size = snprintf(text, sizeof text,
                      ".buffer x %s in\n.buffer y %s out\nldg.%s r0, [x + lane]\n%s r0, r0\nstg.%s [y + lane], r0\n"
                      "exit\n",
                      s->from->name, s->f.type, s->from->name, s->name, s->f.type);
  atlas_program *program = NULL;
  need(atlas_parse(NULL, text, (size_t)size, NULL, &program), s->name);
  need(hg_kernel_create(executor, program, &c->kernel), s->name);
  atlas_program_release(program);
  need(hg_buffer_create(executor, NULL, slice_of(s) * s->from->bytes, &c->x), "a buffer");
  need(hg_buffer_create(executor, NULL, slice_of(s) * s->f.bytes, &c->y), "a buffer");
}

static void close_contender(contender *c) {
  hg_buffer_release(c->x);
  hg_buffer_release(c->y);
  hg_kernel_release(c->kernel);
}

static void run_contender(contender *c, const void *inputs, uint32_t count, void *outputs, const char *engine) {
  hg_binding bindings[] = {{.name = "x", .buffer = c->x}, {.name = "y", .buffer = c->y}};
  hg_launch_desc launch = {.lanes = count, .bindings = bindings, .binding_count = 2};
  hg_launch_report report = {.size = sizeof report};
  need(hg_buffer_write(c->x, 0, inputs, hg_buffer_size(c->x)), "copying inputs");
  need(hg_launch(c->kernel, &launch, &report), "a launch");
  need(hg_buffer_read(c->y, 0, outputs, hg_buffer_size(c->y)), "copying results");
  const char *expected = strncmp(engine, "interp", 6) == 0 ? "reference" : engine;
  if (strcmp(report.backend, "cpu") == 0 ? strncmp(report.engine, expected, strcspn(expected, "/")) != 0
                                         : strcmp(report.backend, engine) != 0) {
    fprintf(stderr, "every_input: asked for %s, %s (%s) ran\n", engine, report.backend, report.engine);
    exit(1);
  }
}

static unsigned long long element(const uint8_t *bytes, size_t size) {
  unsigned long long bits = 0;
  memcpy(&bits, bytes, size);
  return bits;
}

static void compare(const subject *s, const char *engine, const uint32_t *x, const uint8_t *want, const uint8_t *got,
                    _Atomic uint64_t *compared, _Atomic uint64_t *differ) {
  size_t count = slice_of(s), bytes = s->f.bytes;
  *compared += count;
  if (memcmp(want, got, count * bytes) == 0) return;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *w = want + i * bytes, *g = got + i * bytes;
    if (memcmp(w, g, bytes) != 0 && (*differ)++ < SHOWN)
      printf("%s on %s: %0*x gives %0*llx, expected %0*llx\n", s->name, engine, (int)s->from->bytes * 2, x[i],
             (int)bytes * 2, element(g, bytes), (int)bytes * 2, element(w, bytes));
  }
  fflush(stdout);
}

/* As the format has them, in place of 32 bits each. */
static void pack(const subject *s, const uint32_t *x, uint8_t *packed) {
  for (uint32_t i = 0; i < slice_of(s); i++) memcpy(packed + i * s->from->bytes, &x[i], s->from->bytes);
}

static int all_equal(const options *o, const subject *s, const tally *t, int k, int engine) {
  return t->differ[k][engine] == 0 && t->compared[k][engine] == slices_of(o, s) * slice_of(s);
}

/* By the process that ends a function last, so that a run that is cut off has said what it had found. */
static void print_subject(const options *o, const subject *s, const tally *t, int k) {
  char line[1024];
  size_t size = (size_t)snprintf(line, sizeof line, "%-14s", s->name);
  for (int e = o->by_first; e < o->engine_count && size < sizeof line; e++)
    size += (size_t)snprintf(line + size, sizeof line - size, "  %s: %llu of %llu differ", o->engines[e],
                             (unsigned long long)t->differ[k][e], (unsigned long long)t->compared[k][e]);
  printf("%s\n", line);
  fflush(stdout);
}

static void work(const options *o, const subject *subjects, int count, int process, tally *t) {
  static uint32_t x[SLICE];
  static _Alignas(64) uint8_t packed[SLICE * sizeof *x], want[SLICE * sizeof(double)], got[SLICE * sizeof(double)];
  contender contenders[MAX_ENGINES];
  hg_executor *executors[MAX_ENGINES];
  setenv("HOLOGRAM_NUM_THREADS", "1", 1);
  for (int e = 0; e < o->engine_count; e++) executors[e] = open_executor(o->engines[e]);
  for (int k = 0; k < count; k++) {
    const subject *s = &subjects[k];
    uint32_t lanes = slice_of(s);
    uint64_t first = (uint64_t)((process + k) % o->processes);
    int idle = first >= slices_of(o, s);
    for (int e = 0; e < o->engine_count && !idle; e++) open_contender(&contenders[e], executors[e], s);
    for (uint64_t slice = first; slice < slices_of(o, s); slice += (uint64_t)o->processes) {
      for (uint32_t i = 0; i < lanes; i++) /* past the last one some inputs come again */
        x[i] = (uint32_t)((slice * lanes + i) * step_of(o, s));
      pack(s, x, packed);
      if (o->by_first) run_contender(&contenders[0], packed, lanes, want, o->engines[0]);
      else expect(s, x, lanes, want);
      for (int e = o->by_first; e < o->engine_count; e++) {
        run_contender(&contenders[e], packed, lanes, got, o->engines[e]);
        compare(s, o->engines[e], x, want, got, &t->compared[k][e], &t->differ[k][e]);
      }
    }
    for (int e = 0; e < o->engine_count && !idle; e++) close_contender(&contenders[e]);
    if (--t->at_work[k] == 0) print_subject(o, s, t, k);
  }
  for (int e = 0; e < o->engine_count; e++) hg_executor_release(executors[e]);
  if (atlas_faults != 0) {
    printf("%lu table loads of the translated text were out of bounds\n", atlas_faults);
    exit(1);
  }
}

static int report(const options *o, const subject *subjects, int count, const tally *t, int lost) {
  int passed = 0, failed = lost;
  for (int k = 0; k < count; k++)
    for (int e = o->by_first; e < o->engine_count; e++) {
      if (all_equal(o, &subjects[k], t, k, e)) passed++;
      else failed++;
    }
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0 || passed == 0;
}

static int run(const options *o) {
  static subject subjects[MAX_SUBJECTS];
  int count = list_subjects(o, subjects), lost = 0;
  tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (t == MAP_FAILED) {
    perror("every_input: memory shared among the processes");
    return 1;
  }
  for (int k = 0; k < count; k++) t->at_work[k] = o->processes;
  for (int p = 0; p < o->processes; p++) {
    pid_t child = fork();
    if (child == 0) {
      work(o, subjects, count, p, t);
      exit(0);
    }
    if (child < 0) {
      perror("every_input: a process");
      lost++;
    }
  }
  for (int state; wait(&state) > 0;)
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) lost++;
  return report(o, subjects, count, t, lost);
}

static int split(char *list, const char **out, int most) {
  int count = 0;
  for (char *part = strtok(list, ","); part != NULL && count < most; part = strtok(NULL, ",")) out[count++] = part;
  return count;
}

int main(int argc, char **argv) {
  options o = {.engines = {"native", "tile"}, .engine_count = 2, .processes = 1, .step = 1};
  for (int i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (value != NULL && strcmp(argv[i], "--op") == 0) o.only = value;
    else if (value != NULL && strcmp(argv[i], "--engines") == 0)
      o.engine_count = split(argv[i + 1], o.engines, MAX_ENGINES);
    else if (value != NULL && strcmp(argv[i], "--types") == 0) o.type_count = split(argv[i + 1], o.types, FORMAT_COUNT);
    else if (value != NULL && strcmp(argv[i], "--processes") == 0) o.processes = atoi(value);
    else if (value != NULL && strcmp(argv[i], "--by") == 0) o.by_first = strcmp(value, "first") == 0;
    else if (value != NULL && strcmp(argv[i], "--step") == 0) o.step = strtoull(value, NULL, 0);
    else {
      fprintf(stderr,
              "usage: every_input [--op NAME] [--types f32,f16,bf16] [--engines native,tile/avx2,interp,cuda,metal]\n"
              "                   [--by text|first] [--processes P] [--step N]\n");
      return 2;
    }
  }
  if (o.processes < 1 || o.processes > MAX_PROCESSES) o.processes = 1;
  if (o.step < 1 || o.step > 1 << 24) o.step = 1;
  return run(&o);
}
