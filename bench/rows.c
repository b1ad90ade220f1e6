/* rows.c - operations over rows and columns of a matrix: how many bytes a second, beside a copy.
 *
 *   bench_rows [--cpu] [--elements LOG2] [--explain] [OPERATION:TYPE:COLUMNS...]
 *
 * Each row: what, type, shape, microseconds (the least of several samples), TB/s of what must be read and written, and
 * the share of the rate at which the same run copies a tensor of this type. --explain: which launches it takes. To add
 * an operation, add a row to `operations`. */
#include "hologram/ops.h"

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 5, MOST_OUTPUTS = 2, SAMPLES = 6, FILL = 1 << 24 };

/* Inputs by letter: x, y matrices; r a value a column, c one a row, t a class a row. */
typedef struct operation {
  const char *name, *inputs, *formula[MOST_OUTPUTS];
  int has_gradient; /* the second output is the gradient of the first by x */
} operation;

static const operation operations[] = {
    {"copy", "x", {"x * 1.5"}, 0},
    {"chain", "xyr", {"tanh((x * y + r) * 0.5) - minimum(x, y)", "maximum((x * y + r) * 0.5, y * 0.25) + x"}, 0},
    {"softmax", "x", {"softmax(x)"}, 0},
    {"log_softmax", "x", {"log_softmax(x)"}, 0},
    {"layer_norm", "x", {"layer_norm(x)"}, 0},
    {"layer_norm_affine", "xrr", {"layer_norm(x, r, s)"}, 0},
    {"rms_norm", "x", {"rms_norm(x)"}, 0},
    {"sum", "x", {"sum(x, -1, keep=0)"}, 0},
    {"max", "x", {"max(x, -1, keep=0)"}, 0},
    {"argmax", "x", {"argmax(x, -1, keep=0)"}, 0},
    {"var", "x", {"var(x, -1)"}, 0},
    {"logsumexp", "x", {"logsumexp(x, -1)"}, 0},
    {"all_sum", "x", {"sum(x, all, keep=0)"}, 0},
    {"all_max", "x", {"max(x, all, keep=0)"}, 0},
    {"all_argmax", "x", {"argmax(x, all, keep=0)"}, 0},
    {"column_sum", "x", {"sum(x, 0, keep=0)"}, 0},
    {"column_max", "x", {"max(x, 0, keep=0)"}, 0},
    {"column_argmax", "x", {"argmax(x, 0, keep=0)"}, 0},
    {"column_var", "x", {"var(x, 0)"}, 0},
    {"column_softmax", "x", {"softmax(x, 0)"}, 0},
    {"cross_entropy", "xt", {"cross_entropy(x, t)"}, 0},
    {"cross_entropy_grad", "xt", {"cross_entropy(x, t)"}, 1},
    {"matvec", "xr", {"matvec(x, r)"}, 0},
    {"vecmat", "xc", {"matmul(c, x)"}, 0},
};

static const char *const usual[] = {
    "softmax:f32:64",
    "softmax:f32:100",
    "softmax:f32:1000",
    "softmax:f32:1024",
    "softmax:f32:4096",
    "softmax:f32:16384",
    "softmax:f32:50257",
    "softmax:f32:131072",
    "log_softmax:f32:4096",
    "layer_norm:f32:1024",
    "layer_norm:f32:4096",
    "layer_norm:f32:16384",
    "layer_norm:f32:131072",
    "rms_norm:f32:4096",
    "var:f32:1024",
    "var:f32:16384",
    "sum:f32:64",
    "sum:f32:100",
    "sum:f32:256",
    "sum:f32:512",
    "sum:f32:4096",
    "sum:f32:131072",
    "max:f32:4096",
    "argmax:f32:4096",
    "all_sum:f32:4096",
    "all_argmax:f32:4096",
    "column_sum:f32:16",
    "column_sum:f32:1024",
    "column_sum:f32:65536",
    "column_sum:f32:4194304",
    "column_max:f32:1024",
    "column_argmax:f32:1024",
    "column_softmax:f32:65536",
    "column_var:f32:65536",
    "softmax:bf16:1024",
    "softmax:bf16:4096",
    "softmax:bf16:16384",
    "layer_norm:bf16:1024",
    "layer_norm:bf16:4096",
    "layer_norm:bf16:16384",
    "sum:bf16:1024",
    "cross_entropy_grad:f32:50257",
    "chain:f32:4096",
    "matvec:f32:16384",
    "vecmat:f32:16384",
};

typedef struct bench {
  hg_executor *executor;
  hg_stream *stream;
  uint64_t elements;
  int explains;
  hg_buffer *full[2], *results[MOST_OUTPUTS], *narrow, *classes;
  atlas_type filled; /* the type of what lies in them */
  double copied[32]; /* TB/s, by type */
} bench;

static void check(hg_status status, const char *what) {
  if (status == HG_OK) return;
  fprintf(stderr, "bench_rows: %s: %s\n", what, hg_last_error());
  exit(1);
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Numbers in (-4, 4), drawn anew each. */
static float draw(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return ((float)(*state >> 40) + 0.5f) * (8.0f / 16777216.0f) - 4.0f;
}

static void fill_buffer(hg_buffer *buffer, uint64_t bytes, const void *pattern, uint64_t length) {
  for (uint64_t at = 0; at < bytes; at += length)
    check(hg_buffer_write(buffer, at, pattern, bytes - at < length ? bytes - at : length), "a buffer's values");
}

static void fill(bench *b, atlas_type type) {
  if (b->filled == type) return;
  float *values = malloc(FILL * sizeof *values);
  uint64_t state = 1, size = atlas_type_bits(type) / 8;
  if (values == NULL) exit(1);
  for (uint32_t i = 0; i < FILL; i++) values[i] = draw(&state);
  if (type == ATLAS_bf16)
    for (uint32_t i = 0; i < FILL; i++) memcpy((uint16_t *)(void *)values + i, (char *)&values[i] + 2, 2);
  for (int i = 0; i < 2; i++) fill_buffer(b->full[i], b->elements * size, values, FILL * size);
  fill_buffer(b->narrow, b->elements / 4 * size, values, FILL * size);
  free(values);
  b->filled = type;
}

/* ---- one case ---------------------------------------------------------------------------------------------------- */

typedef struct measured {
  hg_tensor inputs[MOST_INPUTS], outputs[MOST_OUTPUTS];
  uint32_t input_count, output_count;
  hg_executable *executable;
  uint64_t bytes;
} measured;

static uint64_t bytes_of(const hg_tensor *t) {
  return hg_tensor_count(t) * (atlas_type_bits((atlas_type)t->type) / 8);
}

static hg_tensor input_tensor(const bench *b, char letter, atlas_type type, uint64_t rows, uint64_t columns,
                              int which) {
  if (letter == 'x' || letter == 'y')
    return hg_tensor_of(b->full[letter == 'y'], type, 2, (uint64_t[]){rows, columns});
  if (letter == 't') return hg_tensor_of(b->classes, ATLAS_i64, 1, &rows);
  hg_tensor narrow = hg_tensor_of(b->narrow, type, 1, letter == 'r' ? &columns : &rows);
  narrow.offset = which ? (int64_t)(b->elements / 8) : 0;
  return narrow;
}

static void build(bench *b, measured *m, const operation *o, atlas_type type, uint64_t rows, uint64_t columns) {
  hg_computation *c = NULL;
  const char *names[MOST_INPUTS];
  char letters[MOST_INPUTS][2];
  hg_value values[MOST_INPUTS];
  check(hg_computation_create(NULL, &c), o->name);
  for (const char *at = o->inputs; *at != '\0'; at++) {
    uint32_t i = m->input_count++;
    int is_second = i > 0 && at[-1] == *at;
    letters[i][0] = is_second ? 's' : *at, letters[i][1] = '\0';
    names[i] = letters[i];
    m->inputs[i] = input_tensor(b, *at, type, rows, columns, is_second);
    values[i] = hg_computation_input(c, names[i], &m->inputs[i]);
    m->bytes += bytes_of(&m->inputs[i]);
  }
  hg_value results[MOST_OUTPUTS] = {0};
  for (; m->output_count < MOST_OUTPUTS && o->formula[m->output_count] != NULL; m->output_count++)
    results[m->output_count] = hg_compute_formula(c, o->formula[m->output_count], names, values, m->input_count);
  if (o->has_gradient) check(hg_gradient(c, results[0], 0, values, 1, &results[m->output_count++]), o->name);
  for (uint32_t i = 0; i < m->output_count; i++) {
    hg_tensor *t = &m->outputs[i];
    check(hg_computation_output(c, i == 0 ? "a" : "b", results[i], NULL), o->name);
    check(hg_computation_describe(c, results[i], t), o->name);
    *t = hg_tensor_of(b->results[i], (atlas_type)t->type, t->rank, t->shape);
    m->bytes += bytes_of(t);
  }
  check(hg_compile(b->executor, c, NULL, &m->executable), o->name);
  hg_computation_release(c);
}

static double run_times(bench *b, measured *m, uint32_t count) {
  uint64_t start = hg_time_ns();
  for (uint32_t i = 0; i < count; i++)
    check(hg_run(m->executable, m->inputs, m->input_count, m->outputs, m->output_count, b->stream, NULL), "a run");
  check(hg_stream_wait(b->stream, NULL), "a run");
  return (double)(hg_time_ns() - start) / count;
}

static void explain(const measured *m) {
  char *text = NULL;
  size_t length = 0;
  check(hg_executable_report(m->executable, NULL, 0, &text, &length), "a report");
  printf("%.*s\n", (int)length, text);
  atlas_memory_release(NULL, text);
}

/* The least nanoseconds of a run, and its bytes. */
static double measure(bench *b, const operation *o, atlas_type type, uint64_t rows, uint64_t columns, uint64_t *bytes) {
  measured m;
  memset(&m, 0, sizeof m);
  fill(b, type);
  build(b, &m, o, type, rows, columns);
  if (b->explains) explain(&m);
  run_times(b, &m, 1);
  double best = run_times(b, &m, 1);
  uint32_t count = best < 3e6 ? (uint32_t)(3e6 / best) + 1 : 1;
  for (int i = 0; i < SAMPLES; i++) {
    double each = run_times(b, &m, count);
    if (each < best) best = each;
  }
  hg_executable_release(m.executable);
  *bytes = m.bytes;
  return best;
}

static void run_case(bench *b, const char *text) {
  char name[32], type_name[16];
  unsigned long long columns = 0;
  uint64_t bytes = 0;
  const operation *o = NULL;
  if (sscanf(text, "%31[^:]:%15[^:]:%llu", name, type_name, &columns) == 3)
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
      if (strcmp(operations[i].name, name) == 0) o = &operations[i];
  atlas_type type = o == NULL ? ATLAS_NONE : atlas_type_from_name(type_name);
  if ((type != ATLAS_f32 && type != ATLAS_bf16) || columns == 0 || columns > b->elements) {
    fprintf(stderr, "bench_rows: %s is no OPERATION:f32|bf16:COLUMNS\n", text);
    exit(2);
  }
  if (b->copied[type] == 0) {
    double copy = measure(b, &operations[0], type, b->elements / 1024, 1024, &bytes);
    b->copied[type] = (double)bytes / copy / 1000;
  }
  uint64_t rows = b->elements / columns;
  double ns = measure(b, o, type, rows, columns, &bytes), rate = (double)bytes / ns / 1000;
  printf("%-18s %-4s %9llu x %-9llu %10.1f us %7.3f TB/s %6.1f%%\n", name, type_name, (unsigned long long)rows, columns,
         ns / 1000, rate, 100 * rate / b->copied[type]);
  fflush(stdout);
}

static void open_bench(bench *b, int on_cpu) {
  hg_executor_desc desc = {.backend = on_cpu ? HG_BACKEND_CPU : HG_BACKEND_CUDA};
  check(hg_executor_create(&desc, &b->executor), "an executor");
  check(hg_stream_create(b->executor, NULL, &b->stream), "a stream");
  uint64_t bytes = b->elements * sizeof(float);
  for (int i = 0; i < 2; i++) {
    check(hg_buffer_create(b->executor, NULL, bytes, &b->full[i]), "memory");
    check(hg_buffer_create(b->executor, NULL, bytes, &b->results[i]), "memory");
  }
  check(hg_buffer_create(b->executor, NULL, bytes / 4, &b->narrow), "memory");
  check(hg_buffer_create(b->executor, NULL, bytes / 4, &b->classes), "memory"); /* all of them the first */
}

static void close_bench(bench *b) {
  for (int i = 0; i < 2; i++) {
    hg_buffer_release(b->full[i]);
    hg_buffer_release(b->results[i]);
  }
  hg_buffer_release(b->narrow);
  hg_buffer_release(b->classes);
  hg_stream_release(b->stream);
  hg_executor_release(b->executor);
}

int main(int argc, char **argv) {
  static bench b = {.elements = UINT64_C(1) << 28};
  int first = 1, on_cpu = 0;
  for (; first < argc && strncmp(argv[first], "--", 2) == 0; first++) {
    if (strcmp(argv[first], "--cpu") == 0) on_cpu = 1;
    else if (strcmp(argv[first], "--explain") == 0) b.explains = 1;
    else if (strcmp(argv[first], "--elements") == 0 && first + 1 < argc)
      b.elements = UINT64_C(1) << strtoul(argv[++first], NULL, 10) % 40;
    else {
      fprintf(stderr, "usage: bench_rows [--cpu] [--elements LOG2] [--explain] [OPERATION:TYPE:COLUMNS...]\n");
      return 2;
    }
  }
  open_bench(&b, on_cpu);
  for (int i = first; i < argc; i++) run_case(&b, argv[i]);
  for (size_t i = 0; first == argc && i < sizeof usual / sizeof usual[0]; i++) run_case(&b, usual[i]);
  close_bench(&b);
  return 0;
}
