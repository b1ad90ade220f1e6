/* computation.c - computations as objects: inputs, constants, outputs, updates, and the first error. */
#include "ops/graph/compute.h"

#include "atlas/value.h"
#include "ops/graph/ops_tuning.h"

hg_status hg_computation_create(const hg_allocator *allocator, hg_computation **out) {
  if (out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_computation_create: 'out' is NULL");
  *out = NULL;
  hg_allocator own;
  HG_TRY(hg_allocator_resolve(allocator, &own));
  size_t room = hg_arena_bytes(&own, OPS_COMPUTATION_BYTES);
  hg_computation *c = hg_allocate_unset(&own, sizeof *c + room, 1);
  if (c == NULL) return hg_fail_memory("a computation", sizeof *c + room);
  memset(c, 0, sizeof *c);
  hg_arena_begin(&c->arena, &own, c + 1, room);
  c->allocator = c->arena.allocator;
  c->nodes.element_size = sizeof(ops_node);
  c->calls.element_size = sizeof(ops_call);
  c->arguments.element_size = sizeof(ops_item);
  c->inputs.element_size = sizeof(ops_input);
  c->outputs.element_size = sizeof(ops_output);
  c->buckets.element_size = sizeof(uint32_t);
  c->fences.element_size = sizeof(ops_fence);
  c->fenced.element_size = sizeof(value_id);
  c->checks.element_size = sizeof(value_id);
  *out = c;
  return HG_OK;
}

void hg_computation_release(hg_computation *computation) {
  if (computation == NULL) return;
  hg_allocator allocator = computation->allocator;
  hg_array_release(&allocator, &computation->nodes);
  hg_array_release(&allocator, &computation->calls);
  hg_array_release(&allocator, &computation->arguments);
  hg_array_release(&allocator, &computation->inputs);
  hg_array_release(&allocator, &computation->outputs);
  hg_array_release(&allocator, &computation->buckets);
  hg_array_release(&allocator, &computation->fences);
  hg_array_release(&allocator, &computation->fenced);
  hg_array_release(&allocator, &computation->checks);
  hg_array_release(&allocator, &computation->parts);
  hg_array_release(&allocator, &computation->operators);
  hg_allocator behind = computation->arena.behind;
  hg_release(&behind, computation);
}

hg_status hg_computation_status(hg_computation *computation) {
  if (computation == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_computation_status: 'computation' is NULL");
  return computation->status == HG_OK ? HG_OK : hg_fail(computation->status, "%s", computation->sentence);
}

const char *ops_check_numerics(uint32_t flags) {
  if ((flags & HG_NUMERICS_TF32) == 0 || (flags & HG_NUMERICS_FAST) != 0) return NULL;
  return "HG_NUMERICS_TF32 without HG_NUMERICS_FAST: TF32 is a way of fast numerics; give both";
}

hg_status hg_computation_numerics(hg_computation *computation, uint32_t numerics) {
  if (computation == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_computation_numerics: 'computation' is NULL");
  HG_TRY(hg_computation_status(computation));
  const char *why = ops_check_numerics(numerics);
  if ((numerics & ~(uint32_t)(HG_NUMERICS_FAST | HG_NUMERICS_TF32)) != 0)
    ops_failed(computation, HG_INVALID_ARGUMENT,
               "hg_computation_numerics: 0x%x has a bit that names no numerics",
               (unsigned)numerics);
  else if (why != NULL) ops_failed(computation, HG_INVALID_ARGUMENT, "hg_computation_numerics: %s", why);
  else computation->numerics = (uint8_t)numerics;
  return computation->status;
}

int ops_is_value(const hg_computation *c, value_id value) { return value > 0 && value <= c->nodes.count; }

/* ---- inputs and constants ---------------------------------------------------------------------------------------- */

static void copy_name(const char *name, char copy[ATLAS_MAX_NAME + 1]) {
  hg_clip(name != NULL ? name : "", name != NULL ? strlen(name) : 0, copy, ATLAS_MAX_NAME + 1);
}

hg_value hg_computation_input(hg_computation *computation, const char *name, const hg_tensor *like) {
  hg_computation *c = computation;
  if (c == NULL || c->status != HG_OK) return 0;
  if (like == NULL) return ops_failed(c, HG_INVALID_ARGUMENT, "hg_computation_input: 'like' is NULL");
  if (like->rank > HG_MAX_RANK || atlas_bytes((atlas_type)like->type) == 0)
    return ops_failed(c, HG_INVALID_ARGUMENT,
                      "input '%s': its type is number %u and its rank %u; the highest rank is %d",
                      name != NULL ? name : "", (unsigned)like->type, (unsigned)like->rank, HG_MAX_RANK);
  ops_node node = {.kind = OPS_INPUT, .type = (uint8_t)like->type, .index = (uint32_t)c->inputs.count};
  node.shape.rank = like->rank;
  memcpy(node.shape.size, like->shape, sizeof node.shape.size);
  if (!ops_is_countable(&node.shape))
    return ops_failed(c, HG_INVALID_ARGUMENT, "input '%s': %s has more than 2^40 elements", name != NULL ? name : "",
                      OPS_SHAPE(&node.shape));
  ops_input input = {.like = *like, .value = ops_add(c, &node)};
  if (input.value == 0) return 0;
  input.like.buffer = NULL;
  input.like.offset = 0;
  copy_name(name, input.name);
  if (hg_array_append(&c->allocator, &c->inputs, &input, 1) == NULL)
    return ops_failed(c, HG_OUT_OF_MEMORY, "no memory for %zu inputs", c->inputs.count);
  return input.value;
}

hg_value hg_computation_number(hg_computation *computation, atlas_type type, double value) {
  hg_computation *c = computation;
  if (c == NULL || c->status != HG_OK) return 0;
  if (atlas_bytes(type) == 0)
    return ops_failed(c, HG_INVALID_ARGUMENT, "hg_computation_number: there is no type %d", (int)type);
  return ops_number(c, type, value);
}

hg_value hg_computation_integer(hg_computation *computation, atlas_type type, int64_t value) {
  hg_computation *c = computation;
  if (c == NULL || c->status != HG_OK) return 0;
  if (atlas_bytes(type) == 0)
    return ops_failed(c, HG_INVALID_ARGUMENT, "hg_computation_integer: there is no type %d", (int)type);
  return ops_constant(c, type, atlas_convert(type, ATLAS_i64, (uint64_t)value));
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static hg_status check(const char *function, hg_computation *c, hg_value value) {
  if (c == NULL) return hg_fail(HG_INVALID_ARGUMENT, "%s: 'computation' is NULL", function);
  HG_TRY(hg_computation_status(c));
  if (ops_is_value(c, value)) return HG_OK;
  ops_failed(c, HG_INVALID_ARGUMENT, "%s: %u is no value of this computation", function, (unsigned)value);
  return c->status;
}

static hg_tensor tensor_like(const ops_node *node) {
  return hg_tensor_of(NULL, (atlas_type)node->type, node->shape.rank, node->shape.size);
}

hg_status hg_computation_describe(hg_computation *computation, hg_value value, hg_tensor *out) {
  if (out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_computation_describe: 'out' is NULL");
  HG_TRY(check("hg_computation_describe", computation, value));
  *out = tensor_like(ops_at(computation, value));
  return HG_OK;
}

static int has_shape(const hg_tensor *tensor, const ops_node *node) {
  if (tensor->type != node->type || tensor->rank != node->shape.rank) return 0;
  for (uint32_t i = 0; i < node->shape.rank; i++)
    if (tensor->shape[i] != node->shape.size[i]) return 0;
  return 1;
}

hg_status hg_computation_output(hg_computation *computation, const char *name, hg_value value, const hg_tensor *like) {
  hg_computation *c = computation;
  HG_TRY(check("hg_computation_output", c, value));
  ops_output output = {.value = value, .like = tensor_like(ops_at(c, value))};
  copy_name(name, output.name);
  if (like != NULL && !has_shape(like, ops_at(c, value))) {
    ops_failed(c, HG_INVALID_ARGUMENT, "output '%s' is %s, which is not the type and shape of 'like'", output.name,
               OPS_TEXT(c, value));
    return c->status;
  }
  if (like != NULL) memcpy(output.like.stride, like->stride, sizeof like->stride);
  if (hg_array_append(&c->allocator, &c->outputs, &output, 1) == NULL)
    ops_failed(c, HG_OUT_OF_MEMORY, "no memory for %zu outputs", c->outputs.count);
  return c->status;
}

hg_status hg_computation_update(hg_computation *computation, hg_value input, hg_value value) {
  hg_computation *c = computation;
  HG_TRY(check("hg_computation_update", c, input));
  HG_TRY(check("hg_computation_update", c, value));
  const ops_node *from = ops_at(c, input), *to = ops_at(c, value);
  ops_input *entry = from->kind == OPS_INPUT ? (ops_input *)c->inputs.data + from->index : NULL;
  if (entry == NULL)
    ops_failed(c, HG_INVALID_ARGUMENT, "hg_computation_update: value %u is no input", (unsigned)input);
  else if (from->type != to->type || !ops_same_shape(&from->shape, &to->shape))
    ops_failed(c, HG_INVALID_ARGUMENT, "input '%s' is %s and cannot become %s", entry->name, OPS_TEXT(c, input),
               OPS_TEXT(c, value));
  else if (entry->update != 0)
    ops_failed(c, HG_INVALID_ARGUMENT, "input '%s' is updated twice", entry->name);
  else entry->update = value;
  return c->status;
}
