/* cache_fill.c - `hologram cache fill`: the common operations, compiled in full for each GPU of this machine.
 *
 * A kernel depends on what an operation does, on types, and on some lengths: element-wise ones on none, those of rows
 * on the rows' length and not on their number, products on the length that they sum over and a little on the others. */
#include "cli/cache_fill.h"

#include "cli/cli.h"

#include "hologram/hologram.h"
#include "hologram/ops.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* ---- what is common ---------------------------------------------------------------------------------------------- */

enum { ROWS = 8192, ELEMENTS = 1 << 20, MOST_INPUTS = 3 };

static const uint8_t types[] = {ATLAS_f32, ATLAS_bf16, ATLAS_f16};
static const uint64_t lengths[] = {256, 512, 768, 1024, 2048, 3072, 4096};

/* The shapes of inputs, for rows of some length. */
typedef enum form {
  VECTOR,      /* so many elements, whatever the length */
  VECTORS,     /* two of them */
  MATRIX,      /* ROWS by the length */
  WITH_ROW,    /* and a row of parameters */
  WITH_ROWS,   /* and two */
  SQUARES,     /* two matrices of the length by itself */
  LAYER        /* ROWS by the length, a square, a row */
} form;

typedef enum axes { ALL_AXES, LAST_AXIS, FIRST_AXIS } axes;

typedef struct common {
  hg_op op;
  form form;
  axes axes; /* of reductions; ALL_AXES: as the operation has it */
} common;

typedef struct group {
  const char *name;
  const common *rows;
  size_t count;
  int has_lengths;
} group;

static const common maps[] = {
    {HG_OP_add, VECTORS, ALL_AXES},     {HG_OP_sub, VECTORS, ALL_AXES},      {HG_OP_mul, VECTORS, ALL_AXES},
    {HG_OP_div, VECTORS, ALL_AXES},     {HG_OP_maximum, VECTORS, ALL_AXES},  {HG_OP_minimum, VECTORS, ALL_AXES},
    {HG_OP_add, WITH_ROW, ALL_AXES},    {HG_OP_mul, WITH_ROW, ALL_AXES},     {HG_OP_abs, VECTOR, ALL_AXES},
    {HG_OP_neg, VECTOR, ALL_AXES},      {HG_OP_square, VECTOR, ALL_AXES},    {HG_OP_sqrt, VECTOR, ALL_AXES},
    {HG_OP_rsqrt, VECTOR, ALL_AXES},    {HG_OP_exp, VECTOR, ALL_AXES},       {HG_OP_log, VECTOR, ALL_AXES},
    {HG_OP_sin, VECTOR, ALL_AXES},      {HG_OP_cos, VECTOR, ALL_AXES},       {HG_OP_tanh, VECTOR, ALL_AXES},
    {HG_OP_sigmoid, VECTOR, ALL_AXES},  {HG_OP_relu, VECTOR, ALL_AXES},      {HG_OP_gelu, VECTOR, ALL_AXES},
    {HG_OP_gelu_tanh, VECTOR, ALL_AXES}, {HG_OP_silu, VECTOR, ALL_AXES},     {HG_OP_erf, VECTOR, ALL_AXES}};

static const common sums[] = {{HG_OP_sum, VECTOR, ALL_AXES}, {HG_OP_mean, VECTOR, ALL_AXES},
                              {HG_OP_max, VECTOR, ALL_AXES}, {HG_OP_min, VECTOR, ALL_AXES}};

static const common rows[] = {
    {HG_OP_softmax, MATRIX, ALL_AXES},       {HG_OP_log_softmax, MATRIX, ALL_AXES},
    {HG_OP_layer_norm, WITH_ROWS, ALL_AXES}, {HG_OP_rms_norm, WITH_ROW, ALL_AXES},
    {HG_OP_sum, MATRIX, LAST_AXIS},          {HG_OP_mean, MATRIX, LAST_AXIS},
    {HG_OP_max, MATRIX, LAST_AXIS},          {HG_OP_argmax, MATRIX, LAST_AXIS},
    {HG_OP_sum, MATRIX, FIRST_AXIS}};

static const common products[] = {{HG_OP_matmul, SQUARES, ALL_AXES}, {HG_OP_linear, LAYER, ALL_AXES}};

#define GROUP(rows, has_lengths) rows, sizeof(rows) / sizeof(rows)[0], has_lengths
static const group groups[] = {{"element-wise", GROUP(maps, 0)},
                               {"reductions of all", GROUP(sums, 0)},
                               {"rows and columns", GROUP(rows, 1)},
                               {"products", GROUP(products, 1)}};
enum { GROUP_COUNT = sizeof groups / sizeof groups[0] };

static hg_tensor vector_of(uint32_t type, uint64_t count) {
  return hg_tensor_of(NULL, (atlas_type)type, 1, (uint64_t[]){count});
}

static hg_tensor matrix_of(uint32_t type, uint64_t row_count, uint64_t length) {
  return hg_tensor_of(NULL, (atlas_type)type, 2, (uint64_t[]){row_count, length});
}

static size_t inputs_of(form of, uint32_t type, uint64_t length, hg_tensor *inputs) {
  for (size_t i = 0; i < MOST_INPUTS; i++)
    inputs[i] = vector_of(type, of == VECTOR || of == VECTORS ? ELEMENTS : length);
  if (of != VECTOR && of != VECTORS) inputs[0] = matrix_of(type, of == SQUARES ? length : ROWS, length);
  if (of == SQUARES || of == LAYER) inputs[1] = matrix_of(type, length, length);
  return of == VECTOR || of == MATRIX ? 1 : of == WITH_ROWS || of == LAYER ? 3 : 2;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

typedef struct filling {
  int json;
  time_t end; /* when it is over */
  int is_over;
  hg_executor_desc desc; /* of executors on the device */
  hg_executor *executor;
  uint64_t computations, kernels;
} filling;

static int ask(void *user) {
  filling *f = user;
  f->is_over |= time(NULL) >= f->end;
  return f->is_over;
}

static hg_status describe(hg_computation *c, const common *row, uint32_t type, uint64_t length) {
  hg_tensor inputs[MOST_INPUTS];
  hg_value values[MOST_INPUTS];
  size_t count = inputs_of(row->form, type, length, inputs);
  hg_argument along = {.count = 1, .integers = {row->axes == FIRST_AXIS ? 0 : -1}};
  for (size_t i = 0; i < count; i++) values[i] = hg_computation_input(c, NULL, &inputs[i]);
  hg_value result = hg_compute(c, row->op, values, count, &along, row->axes != ALL_AXES);
  return hg_computation_output(c, NULL, result, NULL);
}

static hg_status fill_one(filling *f, const common *row, uint32_t type, uint64_t length) {
  hg_computation *computation = NULL;
  hg_executable *executable = NULL;
  uint64_t kernels = 0;
  if (ask(f)) return HG_CANCELLED;
  hg_status status = hg_computation_create(NULL, &computation);
  if (status == HG_OK) status = describe(computation, row, type, length);
  if (status == HG_OK) status = hg_compile(f->executor, computation, NULL, &executable);
  if (status == HG_OK) status = hg_executable_warm(executable, &kernels);
  hg_executable_release(executable);
  hg_computation_release(computation);
  f->computations += status == HG_OK;
  f->kernels += kernels;
  return status;
}

static hg_status fill_length(filling *f, const group *g, uint64_t length) {
  hg_status status = hg_executor_create(&f->desc, &f->executor);
  if (status != HG_OK) return status;
  for (size_t t = 0; t < sizeof types && status == HG_OK; t++)
    for (size_t r = 0; r < g->count && status == HG_OK; r++) status = fill_one(f, &g->rows[r], types[t], length);
  hg_executor_release(f->executor);
  return status;
}

/* Each length has an executor of its own: one that has seen several compiles what depends on them as scalars, but most
 * users have one length. */
static hg_status fill_group(filling *f, const group *g) {
  size_t length_count = g->has_lengths ? sizeof lengths / sizeof lengths[0] : 1;
  hg_status status = HG_OK;
  for (size_t n = 0; n < length_count && status == HG_OK; n++) status = fill_length(f, g, lengths[n]);
  return status;
}

/* ---- what is said ------------------------------------------------------------------------------------------------ */

static void count_file(void *user, const hg_cache_file *file) {
  uint64_t *counts = user;
  counts[0] += file->state == HG_CACHE_OK;
  counts[1] += file->byte_count;
}

static void say_group(const filling *f, const group *g, uint64_t computations, uint64_t kernels) {
  if (f->json)
    printf("%s{\"name\":\"%s\",\"computations\":%" PRIu64 ",\"kernels\":%" PRIu64 "}", g != groups ? "," : "", g->name,
           computations, kernels);
  else printf("  %-20s %4" PRIu64 " computations, %4" PRIu64 " kernels\n", g->name, computations, kernels);
  fflush(stdout); /* the next group takes a while */
}

static hg_status fill_groups(filling *f) {
  hg_status status = HG_OK;
  for (size_t g = 0; g < GROUP_COUNT && status == HG_OK; g++) {
    uint64_t computations = f->computations, kernels = f->kernels;
    status = fill_group(f, &groups[g]);
    if (status == HG_OK || f->computations > computations)
      say_group(f, &groups[g], f->computations - computations, f->kernels - kernels);
  }
  return status;
}

static hg_status fill_device(filling *f, hg_executor *executor) {
  hg_executor_info info = {.size = sizeof info};
  hg_status status = hg_executor_query(executor, &info);
  if (status != HG_OK) return status;
  if (f->json) {
    printf("{\"backend\":\"%s\",\"device\":", info.backend_name);
    cli_json_string(stdout, info.device_name);
    printf(",\"groups\":[");
  } else
    printf("%s: %s\n", info.backend_name, info.device_name);
  f->computations = f->kernels = 0;
  status = fill_groups(f);
  if (f->json)
    printf("],\"computations\":%" PRIu64 ",\"kernels\":%" PRIu64 "}", f->computations, f->kernels);
  return status;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

/* The first device must open; there are no more behind one that does not. */
static hg_status fill_backend(filling *f, const hg_backend_info *backend, uint64_t *device_count) {
  hg_status status = HG_OK;
  for (uint32_t number = 0; status == HG_OK; number++) {
    hg_executor *executor = NULL; /* holds the device */
    f->desc = (hg_executor_desc){
        .size = sizeof f->desc, .backend = backend->id, .device = number, .ask = ask, .ask_user = f};
    status = hg_executor_create(&f->desc, &executor);
    if (status == HG_UNSUPPORTED && number > 0) return HG_OK;
    if (status != HG_OK) return status;
    if (f->json && *device_count > 0) printf(",");
    ++*device_count;
    status = fill_device(f, executor);
    hg_executor_release(executor);
  }
  return status;
}

/* The CPU's kernels take less time than a file. */
static hg_status fill_all(filling *f, uint64_t *device_count) {
  hg_backend_info backend = {.size = sizeof backend};
  hg_status status = HG_OK;
  for (size_t i = 0; status == HG_OK && hg_backend_query(i, &backend) == HG_OK; i++)
    if (backend.available && backend.id != HG_BACKEND_CPU) status = fill_backend(f, &backend, device_count);
  return status;
}

static void say_all(const filling *f, const char *folder, uint64_t device_count, const uint64_t *before,
                    const uint64_t *after, int is_complete) {
  uint64_t files = after[0] > before[0] ? after[0] - before[0] : 0;
  if (f->json) {
    printf("],\"new_entries\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"complete\":%s}\n", files, after[1],
           is_complete ? "true" : "false");
    return;
  }
  if (device_count == 0) printf("there is no GPU here; the kernels of CPUs are not kept on disk\n");
  if (f->is_over) printf("the time is over: the rest is left out\n");
  printf("%" PRIu64 " new entr%s, %" PRIu64 " bytes in %s\n", files, files == 1 ? "y" : "ies", after[1], folder);
}

int cli_cache_fill(const char *folder, uint64_t seconds, int json) {
  filling f = {.json = json, .end = time(NULL) + (time_t)seconds};
  uint64_t device_count = 0, before[2] = {0}, after[2] = {0};
  if (json) printf(",\"devices\":[");
  (void)hg_cache_visit(0, count_file, before);
  hg_status status = fill_all(&f, &device_count);
  (void)hg_cache_visit(0, count_file, after);
  int has_ended = status == HG_CANCELLED && f.is_over;
  say_all(&f, folder, device_count, before, after, status == HG_OK);
  return status == HG_OK || has_ended ? CLI_OK : cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
}
