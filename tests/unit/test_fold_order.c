/* test_fold_order.c - reductions, fused with what is before and behind them, against order F as operations.md states
 * it: every length around the sizes at which programs change their shape, for all types and several layouts of memory.
 */
#include "ops/plan/plan_computation.h"

#include "atlas/arith.h"
#include "launching.h"
#include "shard.h"

#include <stdlib.h>

/* ---- the plain statement --------------------------------------------------------------------------------------- */

static uint64_t two(ops_reduce reduce, atlas_type type, uint64_t a, uint64_t b) {
  static const atlas_op ops[] = {ATLAS_OP_add, ATLAS_OP_mul, ATLAS_OP_min, ATLAS_OP_max};
  return atlas_arith(ops[reduce], type, a, b, 0);
}

/* Values up to 4096 fold by halves; longer sequences fold the results of chunks of 4096. Overwrites the values. */
static uint64_t fold(ops_reduce reduce, atlas_type type, uint64_t *values, size_t n) {
  if (n > 4096) {
    size_t chunks = 0;
    for (size_t i = 0; i < n; i += 4096) {
      uint64_t chunk = fold(reduce, type, values + i, n - i < 4096 ? n - i : 4096);
      values[chunks++] = chunk;
    }
    return fold(reduce, type, values, chunks);
  }
  size_t h = 1;
  while (h < n) h *= 2;
  for (h /= 2; h > 0; h /= 2)
    for (size_t i = 0; i < h && i + h < n; i++) values[i] = two(reduce, type, values[i], values[i + h]);
  return values[0];
}

static uint64_t place(ops_reduce reduce, atlas_type type, const uint64_t *values, size_t n) {
  size_t best = 0;
  for (size_t i = 0; i < n; i++) {
    int is_nan = atlas_compare(ATLAS_OP_set_nan, type, values[i], values[i]);
    if (is_nan) return i;
    if (atlas_compare(reduce == OPS_ARGMAX ? ATLAS_OP_set_gt : ATLAS_OP_set_lt, type, values[i], values[best]))
      best = i;
  }
  return best;
}

typedef struct array {
  uint64_t *values;
  ops_shape shape;
} array;

static void index_of(const ops_shape *shape, uint64_t number, uint64_t *index) {
  for (uint32_t d = shape->rank; d-- > 0; number /= shape->size[d]) index[d] = number % shape->size[d];
}

static uint64_t number_of(const ops_shape *shape, const uint64_t *index) {
  uint64_t number = 0;
  for (uint32_t d = 0; d < shape->rank; d++) number = number * shape->size[d] + index[d];
  return number;
}

static void evaluate_reduce(const ops_node *node, atlas_type type, const array *in, array *out) {
  uint64_t columns = 1, index[HG_MAX_RANK], count = ops_count(&in->shape), rows = ops_count(&out->shape);
  for (uint32_t d = 0; d < in->shape.rank; d++)
    if (node->axes >> d & 1) columns *= in->shape.size[d];
  uint64_t *row = malloc(columns * sizeof *row), *filled = calloc(rows, sizeof *filled);
  uint64_t *sorted = malloc(count * sizeof *sorted);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t at = 0;
    index_of(&in->shape, i, index);
    for (uint32_t d = 0; d < in->shape.rank; d++)
      if ((node->axes >> d & 1) == 0) at = at * in->shape.size[d] + index[d];
    sorted[at * columns + filled[at]++] = in->values[i];
  }
  for (uint64_t r = 0; r < rows; r++) {
    memcpy(row, sorted + r * columns, columns * sizeof *row);
    ops_reduce reduce = (ops_reduce)node->reduce;
    int is_place = reduce == OPS_ARGMIN || reduce == OPS_ARGMAX;
    out->values[r] = is_place ? place(reduce, type, row, columns) : fold(reduce, type, row, columns);
  }
  free(row);
  free(filled);
  free(sorted);
}

static void evaluate(const hg_computation *c, array *arrays) {
  for (uint32_t n = 0; n < c->nodes.count; n++) {
    const ops_node *node = ops_at(c, n + 1);
    array *out = &arrays[n];
    if (node->kind == OPS_INPUT) continue;
    uint64_t count = ops_count(&node->shape), index[HG_MAX_RANK], inner[HG_MAX_RANK];
    *out = (array){malloc((count + 1) * sizeof(uint64_t)), node->shape};
    const array *in = node->input_count == 0 ? NULL : &arrays[node->input[0] - 1];
    if (node->kind == OPS_REDUCE) {
      evaluate_reduce(node, (atlas_type)ops_at(c, node->input[0])->type, in, out);
      continue;
    }
    for (uint64_t i = 0; i < count; i++) {
      index_of(&node->shape, i, index);
      switch (node->kind) {
      case OPS_CONSTANT: out->values[i] = node->bits; break;
      case OPS_RESHAPE: out->values[i] = in->values[i]; break;
      case OPS_VIEW:
        for (uint32_t d = 0; d < in->shape.rank; d++) inner[d] = (uint64_t)node->view.start[d];
        for (uint32_t j = 0; j < node->shape.rank; j++)
          if (node->view.axis[j] >= 0) inner[node->view.axis[j]] += (uint64_t)node->view.step[j] * index[j];
        out->values[i] = in->values[number_of(&in->shape, inner)];
        break;
      default:
        if (node->op == ATLAS_OP_cvt)
          out->values[i] =
              atlas_convert((atlas_type)node->type, (atlas_type)ops_at(c, node->input[0])->type, in->values[i]);
        else
          out->values[i] = atlas_arith(node->op, (atlas_type)node->type, in->values[i],
                                       node->input_count > 1 ? arrays[node->input[1] - 1].values[i] : 0, 0);
      }
    }
  }
}

/* ---- what the plan computes ------------------------------------------------------------------------------------ */

static uint64_t element(const uint8_t *bytes, atlas_type type, uint64_t at) {
  uint64_t value = 0;
  uint32_t size = atlas_type_bits(type) / 8;
  memcpy(&value, bytes + at * size, size);
  return value;
}

static uint64_t random_state = 1;
static uint64_t draw(void) {
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return random_state >> 11;
}

static int has_specials; /* zeros of both signs, and now and then NaN */

static uint64_t some_value(atlas_type type) {
  uint64_t number = draw();
  switch (type) {
  case ATLAS_f16:
  case ATLAS_bf16:
  case ATLAS_f32:
  case ATLAS_f64:
    if (has_specials && draw() % 300 == 0) return atlas_canonical_nan(type);
    if (has_specials) return atlas_round_f64(type, (double)(number % 3) * 0.0 * (number % 5 < 2 ? -1 : 1));
    return atlas_round_f64(type, ((double)(number % 200001) - 100000) / 4096.0);
  default: return number & (atlas_type_bits(type) == 64 ? UINT64_MAX : (UINT64_C(1) << atlas_type_bits(type)) - 1);
  }
}

static void launch(const ops_plan *plan, const ops_step *step, hg_buffer *const *tensors, hg_buffer *workspace) {
  if (step->lanes == 0 && (step->grid[0] == 0 || step->grid[1] == 0 || step->grid[2] == 0)) return; /* nothing to do */
  hg_kernel *kernel = NULL;
  hg_binding bindings[OPS_MAX_BINDINGS];
  hg_scalar scalars[OPS_MAX_SCALARS];
  memset(bindings, 0, sizeof bindings);
  memset(scalars, 0, sizeof scalars);
  for (uint32_t i = 0; i < step->binding_count; i++) {
    const ops_storage *s = (const ops_storage *)plan->storages.data + step->bindings[i].storage;
    uint32_t bytes = atlas_type_bits((atlas_type)s->type) / 8;
    bindings[i].slot = step->bindings[i].slot;
    bindings[i].buffer = s->kind == OPS_TEMPORARY ? workspace : tensors[step->bindings[i].storage];
    bindings[i].offset = s->kind == OPS_TEMPORARY ? s->first_byte : 0;
    bindings[i].byte_count = (uint64_t)s->extent * bytes;
  }
  for (uint32_t i = 0; i < step->scalar_count; i++) {
    scalars[i].slot = step->scalars[i].slot;
    scalars[i].type = step->scalars[i].type;
    scalars[i].bits = step->scalars[i].bits;
  }
  hg_launch_desc desc = {.size = sizeof desc,
                         .lanes = step->lanes,
                         .bindings = bindings,
                         .binding_count = step->binding_count,
                         .scalars = scalars,
                         .scalar_count = step->scalar_count};
  for (int d = 0; d < 3; d++) desc.grid[d] = step->grid[d], desc.block[d] = step->block[d];
  if (step->lanes != 0) memset(desc.grid, 0, sizeof desc.grid), memset(desc.block, 0, sizeof desc.block);
  hg_status status = hg_kernel_create(executor, step->program, &kernel);
  hg_launch_report report = {.size = sizeof report};
  if (status == HG_OK) status = hg_launch(kernel, &desc, &report);
  CHECK_EQ_U64(status, HG_OK);
  if (status != HG_OK) {
    char *text = NULL;
    printf("  %s\n", hg_last_error());
    if (atlas_print(NULL, step->program, &text, NULL) == HG_OK) printf("%s\n", text);
    atlas_memory_release(NULL, text);
    exit(1);
  }
  hg_kernel_release(kernel);
}

static int shows_programs;

static void check_output(const hg_computation *c, const ops_output *output, const array *expected, hg_buffer *buffer,
                         const char *name) {
  const ops_node *node = ops_at(c, output->value);
  uint64_t count = ops_count(&node->shape), bytes = count * atlas_type_bits((atlas_type)node->type) / 8, wrong = 0;
  uint8_t *got = malloc(bytes + 1);
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, got, bytes), HG_OK);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t own = element(got, (atlas_type)node->type, i);
    if (own != expected->values[i] && wrong++ == 0)
      printf("  %s: element %llu of %llu is %llx, not %llx\n", name, (unsigned long long)i, (unsigned long long)count,
             (unsigned long long)own, (unsigned long long)expected->values[i]);
  }
  CHECK_EQ_U64(wrong, 0);
  free(got);
}

/* Plans, runs and compares all outputs of a computation; inputs are dense and random. */
static void try_for(hg_computation *c, uint8_t for_gpu, const char *name) {
  hg_allocator allocator = c->allocator;
  ops_plan plan;
  CHECK_EQ_U64(c->status, HG_OK);
  hg_status status = ops_plan_computation(&allocator, c, 0, &(ops_target){.for_gpu = for_gpu}, &plan);
  CHECK_EQ_U64(status, HG_OK);
  if (status != HG_OK) {
    printf("  %s: %s\n", name, hg_last_error());
    return;
  }
  array *arrays = calloc(c->nodes.count, sizeof *arrays);
  hg_buffer **tensors = calloc(plan.storages.count, sizeof(hg_buffer *)), *workspace;
  const ops_storage *storages = plan.storages.data;
  for (uint32_t i = 0; i < plan.storages.count; i++) {
    if (storages[i].kind == OPS_TEMPORARY) continue;
    uint64_t count = ops_count(&storages[i].shape);
    uint32_t size = atlas_type_bits((atlas_type)storages[i].type) / 8;
    uint8_t *bytes = calloc(count + 1, size);
    if (storages[i].kind == OPS_OF_INPUT) {
      const ops_input *input = (const ops_input *)c->inputs.data + storages[i].index;
      array *in = &arrays[input->value - 1];
      *in = (array){malloc((count + 1) * sizeof(uint64_t)), storages[i].shape};
      for (uint64_t k = 0; k < count; k++) {
        in->values[k] = some_value((atlas_type)storages[i].type);
        memcpy(bytes + k * size, &in->values[k], size);
      }
    }
    tensors[i] = buffer_of(count * size, bytes);
    free(bytes);
  }
  workspace = buffer_of(plan.workspace_bytes + 1, NULL);
  for (uint32_t s = 0; s < plan.steps.count; s++) {
    if (shows_programs) {
      char *text = NULL;
      if (atlas_print(NULL, ((const ops_step *)plan.steps.data)[s].program, &text, NULL) == HG_OK) printf("%s\n", text);
      atlas_memory_release(NULL, text);
    }
    launch(&plan, (const ops_step *)plan.steps.data + s, tensors, workspace);
  }
  evaluate(c, arrays);
  const ops_output *outputs = c->outputs.data;
  for (uint32_t i = 0; i < plan.storages.count; i++)
    if (storages[i].kind == OPS_OF_OUTPUT)
      check_output(c, &outputs[storages[i].index], &arrays[outputs[storages[i].index].value - 1], tensors[i], name);
  for (uint32_t i = 0; i < plan.storages.count; i++) hg_buffer_release(tensors[i]);
  for (uint32_t i = 0; i < c->nodes.count; i++) free(arrays[i].values);
  hg_buffer_release(workspace);
  free(tensors);
  free(arrays);
  ops_plan_release(&plan);
}

/* With the blocks that a processor likes, and with those of a GPU. */
static void try(hg_computation *c, const char *name) {
  if (!in_shard()) return;
  try_for(c, 0, name);
  try_for(c, 1, name);
}

/* ---- computations ---------------------------------------------------------------------------------------------- */

static hg_computation *begin(void) {
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  return c;
}

static value_id input(hg_computation *c, atlas_type type, uint32_t rank, const uint64_t *shape) {
  hg_tensor like = hg_tensor_of(NULL, type, rank, shape);
  char name[16];
  snprintf(name, sizeof name, "x%u", (unsigned)c->inputs.count);
  return hg_computation_input(c, name, &like);
}

static void output(hg_computation *c, value_id value) {
  char name[16];
  snprintf(name, sizeof name, "y%u", (unsigned)c->outputs.count);
  CHECK_EQ_U64(hg_computation_output(c, name, value, NULL), HG_OK);
}

static value_id pair(hg_computation *c, atlas_op op, value_id a, value_id b) {
  const ops_shape *shape = &ops_at(c, a)->shape;
  return ops_pointwise(c, op, (value_id[]){a, ops_broadcast(c, b, shape)}, 2);
}

static const char *called(const char *what, atlas_type type, uint64_t rows, uint64_t columns) {
  static char name[96];
  snprintf(name, sizeof name, "%s %s %llu x %llu", what, atlas_type_name(type), (unsigned long long)rows,
           (unsigned long long)columns);
  return name;
}

/* One reduction along the last axis, or the first. */
static void reduction(ops_reduce reduce, atlas_type type, uint64_t rows, uint64_t columns, int is_first) {
  static const char *names[] = {"sum", "product", "min", "max", "argmin", "argmax"};
  hg_computation *c = begin();
  value_id x = input(c, type, 2, is_first ? (uint64_t[]){columns, rows} : (uint64_t[]){rows, columns});
  if (reduce == OPS_PRODUCT && type == ATLAS_f32) /* near 1 */
    x = pair(c, ATLAS_OP_add, pair(c, ATLAS_OP_mul, x, ops_number(c, type, 0.001)), ops_number(c, type, 1));
  output(c, ops_reduce_over(c, reduce, x, is_first ? 1 : 2, 0));
  try(c, called(names[reduce], type, rows, columns));
  hg_computation_release(c);
}

/* Mean and centred squares, with weights: three stages, full rows and one value a row. */
static void norm(atlas_type type, uint64_t rows, uint64_t columns) {
  hg_computation *c = begin();
  value_id x = input(c, type, 2, (uint64_t[]){rows, columns}), w = input(c, type, 1, &columns);
  value_id wide = ops_cast(c, x, ATLAS_f32);
  value_id sum = ops_reduce_over(c, OPS_SUM, wide, 2, 1);
  value_id mean = pair(c, ATLAS_OP_mul, sum, ops_number(c, ATLAS_f32, 1.0 / (double)columns));
  value_id centred = pair(c, ATLAS_OP_sub, wide, mean);
  value_id squares = ops_reduce_over(c, OPS_SUM, pair(c, ATLAS_OP_mul, centred, centred), 2, 1);
  value_id scaled = pair(c, ATLAS_OP_div, centred, squares);
  output(c, ops_cast(c, pair(c, ATLAS_OP_mul, scaled, ops_cast(c, w, ATLAS_f32)), type));
  output(c, squares);
  try(c, called("norm", type, rows, columns));
  hg_computation_release(c);
}

/* A result that is the same in all columns, of a value that its row's reduction reads. */
static void constant(uint64_t rows, uint64_t columns) {
  hg_computation *c = begin();
  value_id x = ops_broadcast(c, ops_number(c, ATLAS_f32, 0.1), &(ops_shape){2, {rows, columns}});
  value_id sum = ops_reduce_over(c, OPS_SUM, x, 2, 1);
  output(c, sum);
  output(c, ops_reduce_over(c, OPS_SUM, pair(c, ATLAS_OP_sub, x, sum), 2, 0));
  output(c, x);
  try(c, called("constant", ATLAS_f32, rows, columns));
  hg_computation_release(c);
}

/* Reductions of one array along any axes, side by side in memory or not; some of several stages. */
static void axes(uint64_t a, uint64_t b, uint64_t d, uint32_t bits, ops_reduce reduce) {
  hg_computation *c = begin();
  value_id x = input(c, ATLAS_f32, 3, (uint64_t[]){a, b, d});
  value_id sum = ops_reduce_over(c, OPS_SUM, x, bits, 1), most = ops_reduce_over(c, reduce, x, bits, 1);
  value_id less = pair(c, ATLAS_OP_sub, x, most);
  output(c, sum);
  output(c, pair(c, ATLAS_OP_mul, less, sum));
  output(c, ops_reduce_over(c, OPS_SUM, pair(c, ATLAS_OP_mul, less, less), bits, 0));
  try(c, called("axes", ATLAS_f32, a * b, d));
  hg_computation_release(c);
  c = begin();
  x = input(c, ATLAS_bf16, 3, (uint64_t[]){a, b, d});
  output(c, ops_reduce_over(c, reduce, x, bits, 0));
  output(c, ops_reduce_over(c, OPS_SUM, ops_cast(c, x, ATLAS_f64), bits, 0));
  output(c, ops_reduce_over(c, reduce == OPS_MAX ? OPS_ARGMAX : OPS_ARGMIN, x, bits, 0));
  try(c, called("axes", ATLAS_bf16, a * b, d));
  hg_computation_release(c);
}

static const uint64_t lengths[] = {2,    3,    5,    16,   17,    63,    64,    65,    100,    128,
                                   255,  256,  257,  500,  1000,  1001,  1024,  2047,  4095,   4096,
                                   4097, 5000, 8192, 8193, 12288, 16384, 20000, 50257, 100000, 131072};

int main(int argc, char **argv) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  if (argc > 3) {
    shows_programs = 1;
    if (strcmp(argv[1], "norm") == 0) norm(ATLAS_f32, strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0));
    else
      reduction((ops_reduce)atoi(argv[1]), ATLAS_f32, strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0), argc > 4);
    return check_report();
  }
  for (size_t i = 0; i < COUNT(lengths); i++) {
    uint64_t n = lengths[i], rows = n > 4096 ? 2 : n > 512 ? 5 : 37;
    reduction(OPS_SUM, ATLAS_f32, rows, n, 0);
    reduction(OPS_SUM, ATLAS_f64, rows, n, 0);
    reduction(OPS_SUM, ATLAS_i64, rows, n, 0);
    reduction(OPS_PRODUCT, ATLAS_f32, rows, n, 0);
    reduction(OPS_MAX, ATLAS_f32, rows, n, 0);
    reduction(OPS_MIN, ATLAS_i32, rows, n, 0);
    reduction(OPS_MAX, ATLAS_bf16, rows, n, 0);
    reduction(OPS_ARGMAX, ATLAS_f32, rows, n, 0);
    reduction(OPS_ARGMIN, ATLAS_u32, rows, n, 0);
    reduction(OPS_SUM, ATLAS_f32, rows, n, 1);
    reduction(OPS_ARGMAX, ATLAS_f32, rows, n, 1);
    reduction(OPS_ARGMIN, ATLAS_i32, rows, n, 1);
    reduction(OPS_ARGMIN, ATLAS_f32, 1, n, 0);
    reduction(OPS_SUM, ATLAS_f32, 1, n, 0);
    norm(ATLAS_f32, rows, n);
    norm(ATLAS_bf16, rows, n);
    constant(rows, n);
  }
  norm(ATLAS_f32, 33, 70001); /* in loops over chunks */
  reduction(OPS_SUM, ATLAS_f32, 33, 70001, 0);
  reduction(OPS_ARGMAX, ATLAS_f32, 33, 70001, 0);
  reduction(OPS_SUM, ATLAS_f32, 0, 100, 0);
  reduction(OPS_SUM, ATLAS_f32, 0, 100, 1);
  norm(ATLAS_f32, 0, 5000);
  reduction(OPS_SUM, ATLAS_f32, 17000, 128, 1); /* more columns than a processor's caches hold: top bits */
  reduction(OPS_MAX, ATLAS_f32, 513, 4096, 1);
  reduction(OPS_PRODUCT, ATLAS_f64, 850, 1280, 1);
  reduction(OPS_SUM, ATLAS_f32, 300, 8192, 1);
  axes(2, 1024, 1100, 2, OPS_MAX);
  for (uint32_t bits = 1; bits < 8; bits++) {
    axes(3, 40, 100, bits, OPS_MAX);
    axes(130, 7, 36, bits, OPS_MIN);
    axes(5000, 3, 4, bits, OPS_MAX);
    axes(2, 257, 1, bits, OPS_MIN);
    axes(1, 300, 513, bits, OPS_MAX);
  }
  for (has_specials = 0; has_specials < 2; has_specials++)
    for (size_t i = 0; i < COUNT(lengths); i += 3)
      for (int is_first = 0; is_first < 2; is_first++) {
        reduction(OPS_ARGMAX, ATLAS_f32, 3, lengths[i], is_first);
        reduction(OPS_ARGMIN, ATLAS_bf16, 1, lengths[i], is_first);
        reduction(OPS_MIN, ATLAS_f64, 3, lengths[i], is_first);
        reduction(OPS_SUM, ATLAS_f32, 3, lengths[i], is_first);
      }
  hg_executor_release(executor);
  return check_report();
}
