/* test_transforms.c - hg_vmap, hg_checkpoint and hg_custom_gradient: what values become, what their gradients are, and
 * what is refused. */
#include "ops/graph/compute.h"

#include "check.h"

#include <stdlib.h>

static hg_computation *c;

static void begin(void) {
  hg_computation_release(c);
  c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
}

static hg_tensor like(atlas_type type, uint32_t rank, uint64_t a, uint64_t b) {
  return hg_tensor_of(NULL, type, rank, (uint64_t[]){a, b});
}

static hg_value input(uint32_t rank, uint64_t a, uint64_t b) {
  hg_tensor form = like(ATLAS_f32, rank, a, b);
  return hg_computation_input(c, "x", &form);
}

static hg_value example(uint32_t rank, uint64_t a, uint64_t b) {
  hg_tensor form = like(ATLAS_f32, rank, a, b);
  return hg_computation_example(c, &form);
}

static hg_value formula(const char *text, hg_value x, hg_value w) {
  return hg_compute_formula(c, text, (const char *const[]){"x", "w"}, (hg_value[]){x, w}, 2);
}

#define REFUSED(call, text)                    \
  do {                                         \
    CHECK_EQ_U64(call, HG_INVALID_ARGUMENT);   \
    CHECK_STR(hg_last_error(), text);          \
    begin();                                   \
  } while (0)

/* ---- vmap -------------------------------------------------------------------------------------------------------- */

/* What is made of one example is, of all of them, the node that the same formula makes with its axes one further. */
static void test_nodes_of_all(void) {
  static const struct {
    const char *one, *all;
  } cases[] = {
      {"exp(x) + w", "exp(x) + w"},
      {"sum(x, 1) * 2", "sum(x, 2) * 2"},
      {"flip(x, 0)", "flip(x, 1)"},
      {"concatenate(x, x, axis=1)", "concatenate(x, x, axis=2)"},
      {"cumulative_sum(x, 0)", "cumulative_sum(x, 1)"},
      {"softmax(x, 1)", "softmax(x, 2)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    begin();
    hg_tensor form = hg_tensor_of(NULL, ATLAS_f32, 3, (uint64_t[]){5, 4, 3});
    hg_value x = hg_computation_input(c, "all", &form), one = example(2, 4, 3), w = input(1, 3, 0);
    hg_value value = formula(cases[i].one, one, w);
    CHECK_EQ_U64(hg_vmap(c, 5, &one, &x, 1, &value, 1), HG_OK);
    CHECK_EQ_U64(value, formula(cases[i].all, x, w));
  }
}

static void test_what_does_not_depend_is_repeated(void) {
  begin();
  hg_value x = input(1, 5, 0), one = example(0, 0, 0), values[2] = {input(1, 3, 0), one};
  CHECK_EQ_U64(hg_vmap(c, 5, &one, &x, 1, values, 2), HG_OK);
  CHECK_STR(OPS_TEXT(c, values[0]), "f32[5, 3]");
  CHECK_EQ_U64(values[1], x);
  begin();
  x = input(1, 0, 0), one = example(0, 0, 0), values[0] = formula("exp(x)", one, one);
  CHECK_EQ_U64(hg_vmap(c, 0, &one, &x, 1, values, 1), HG_OK);
  CHECK_STR(OPS_TEXT(c, values[0]), "f32[0]");
}

static void test_refused_batches(void) {
  begin();
  hg_value x = input(2, 5, 3), one = example(1, 3, 0), value = one, none = 0;
  REFUSED(hg_vmap(c, 4, &one, &x, 1, &value, 1), "hg_vmap: batch 0 is not 4 examples of that shape and type");
  x = input(2, 5, 3), one = example(1, 3, 0);
  REFUSED(hg_vmap(c, 5, &one, &x, 1, &none, 1), "hg_vmap: value 0 is none of this computation");
  CHECK_EQ_U64(hg_vmap(c, 5, NULL, &x, 1, &value, 1), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_vmap(NULL, 5, &one, &x, 1, &value, 1), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_computation_example(c, NULL), 0);
  REFUSED(hg_computation_status(c), "hg_computation_example: 'like' is no tensor");
}

/* ---- fences ------------------------------------------------------------------------------------------------------ */

static hg_value gradient_of(hg_value value, hg_value by) {
  hg_value sum = hg_compute(c, HG_OP_sum, &value, 1, NULL, 0), gradient = 0;
  CHECK_EQ_U64(hg_gradient(c, sum, 0, &by, 1, &gradient), HG_OK);
  return gradient;
}

/* How many nodes of an instruction a value is made of. */
static uint32_t count_of(hg_value value, atlas_op op) {
  uint32_t count = 0;
  uint8_t is[512] = {0};
  is[value] = 1;
  for (hg_value v = value; v > 0; v--) {
    if (!is[v]) continue;
    const ops_node *node = ops_at(c, v);
    count += node->kind == OPS_POINTWISE && node->op == op;
    for (uint32_t i = 0; i < node->input_count; i++) is[node->input[i]] = 1;
  }
  return count;
}

static void test_computed_again(void) {
  begin();
  hg_value x = input(1, 7, 0), w = input(1, 7, 0);
  hg_value value = formula("exp(tanh(x)) * w", x, w), inputs[2] = {x, w};
  CHECK_EQ_U64(hg_checkpoint(c, inputs, 2, &value, 1), HG_OK);
  hg_value gradient = gradient_of(value, x);
  CHECK_EQ_U64(count_of(gradient, ATLAS_OP_tanh), 1); /* again, and not what the value is made of */
  CHECK_EQ_U64(count_of(formula("x + w", value, gradient), ATLAS_OP_tanh), 2);
}

static void test_custom(void) {
  begin();
  hg_value x = input(1, 7, 0), w = input(1, 7, 0), cotangent = example(1, 7, 0);
  hg_value value = formula("exp(x)", x, x), by[2] = {formula("x * 3", cotangent, x), 0}, inputs[2] = {x, w};
  CHECK_EQ_U64(hg_custom_gradient(c, inputs, 2, &cotangent, by, &value, 1), HG_OK);
  value = formula("x * w", value, w);
  hg_value gradient = gradient_of(value, x);
  CHECK_STR(OPS_TEXT(c, gradient), "f32[7]");
  CHECK_EQ_U64(count_of(gradient, ATLAS_OP_exp), 0); /* which the value's own one would have */
  CHECK(count_of(gradient, ATLAS_OP_mul) > 0);
  CHECK_EQ_U64(hg_custom_gradient(c, inputs, 2, NULL, by, &value, 1), HG_INVALID_ARGUMENT);
  hg_value other = 9999;
  CHECK_EQ_U64(hg_checkpoint(c, &other, 1, &value, 1), HG_INVALID_ARGUMENT);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t allocations_left;

static void *scarce_allocate(void *user, size_t size) {
  (void)user;
  return allocations_left > 0 && allocations_left-- ? malloc(size) : NULL;
}

static void scarce_release(void *user, void *memory) {
  (void)user;
  free(memory);
}

/* Gradients of a batch behind a checkpoint with a custom gradient in it. */
static hg_status all_of_it(void) {
  hg_value x = input(2, 5, 7), w = input(1, 7, 0), one = example(1, 7, 0), cotangent = example(1, 7, 0);
  hg_value inner = formula("exp(x)", one, w), by = formula("x * w", cotangent, w), by_x = 0;
  hg_custom_gradient(c, &one, 1, &cotangent, &by, &inner, 1);
  hg_value value = formula("softmax(x * w)", inner, w);
  hg_checkpoint(c, (hg_value[]){one, w}, 2, &value, 1);
  hg_vmap(c, 5, &one, &x, 1, &value, 1);
  hg_value sum = hg_compute(c, HG_OP_sum, &value, 1, NULL, 0);
  hg_gradient(c, sum, 0, &x, 1, &by_x);
  return hg_computation_status(c);
}

static void test_without_memory(void) {
  hg_allocator scarce = {.size = sizeof scarce, .allocate = scarce_allocate, .release = scarce_release};
  int is_done = 0;
  for (size_t limit = 0; !is_done && limit < 2000; limit++) {
    hg_computation_release(c);
    c = NULL;
    allocations_left = limit;
    if (hg_computation_create(&scarce, &c) != HG_OK) continue;
    hg_status status = all_of_it();
    is_done = status == HG_OK;
    CHECK(is_done || status == HG_OUT_OF_MEMORY);
  }
  CHECK(is_done);
}

int main(void) {
  test_without_memory();
  test_nodes_of_all();
  test_what_does_not_depend_is_repeated();
  test_refused_batches();
  test_computed_again();
  test_custom();
  hg_computation_release(c);
  return check_report();
}
