/* vmap.c - hg_vmap: what is computed of one example, for all examples. They lie along an axis in front. */
#include "ops/graph/replay.h"

#include "atlas/value.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Its lists, with the new axis in front. */
static void move_lists(ops_node *node, uint32_t input_rank) {
  uint32_t rank = node->shape.rank - 1;
  memmove(node->view.axis + 1, node->view.axis, rank * sizeof *node->view.axis);
  memmove(node->view.step + 1, node->view.step, rank * sizeof *node->view.step);
  memmove(node->view.start + 1, node->view.start, input_rank * sizeof *node->view.start);
  node->view.axis[0] = 0;
  node->view.step[0] = 1;
  node->view.start[0] = 0;
  for (uint32_t i = 1; i <= rank; i++)
    if (node->view.axis[i] >= 0) node->view.axis[i]++;
}

/* The same along axes that are one further. */
static value_id batch_each(const ops_replay *r, const ops_node *node) {
  hg_computation *c = r->c;
  const uint32_t has = ops_kind_of(node)->has;
  ops_node made = *node;
  for (uint32_t i = 0; i < node->input_count; i++)
    if ((made.input[i] = ops_for_each(r, node->input[i])) == 0) return 0;
  if (!ops_batch_shape(r, &node->shape, &made.shape)) return 0;
  if ((has & OPS_ALONG) != 0) made.axis++;
  if ((has & OPS_OVER) != 0) made.axes <<= 1;
  if (ops_kind_is(node, OPS_BY_NUMBER)) made.index++; /* faults name the axis as it was given */
  if ((has & (OPS_AXES | OPS_STEPS | OPS_STARTS)) != 0) move_lists(&made, ops_at(c, node->input[0])->shape.rank);
  if (node->kind == OPS_VIEW) return ops_view_of(c, made.input[0], &made.view, &made.shape);
  if (node->kind == OPS_RESHAPE && node->axes == 0) return ops_reshape(c, made.input[0], &made.shape);
  return node->kind == OPS_SCATTER ? ops_scatter(c, &made) : ops_add(c, &made);
}

static value_id reshaped(hg_computation *c, value_id value, uint64_t batch, uint64_t rows, uint64_t columns) {
  return ops_reshape(c, value, &(ops_shape){.rank = 3, .size = {batch, rows, columns}});
}

/* Of one matrix for all examples the rows of all of them are one matrix; else their batches are one. */
static value_id batch_contract(const ops_replay *r, const ops_node *node) {
  hg_computation *c = r->c;
  uint64_t batch = node->shape.size[0], m = node->shape.size[1], n = node->shape.size[2];
  uint64_t k = ops_at(c, node->input[0])->shape.size[2], all = r->count * batch;
  ops_shape shape;
  ops_node made = *node;
  if (!ops_batch_shape(r, &node->shape, &shape)) return 0;
  if (batch == 1 && r->of[node->input[1]] == 0) {
    made.input[0] = reshaped(c, ops_for_each(r, node->input[0]), 1, r->count * m, k);
    made.shape.size[1] = r->count * m;
  } else {
    made.input[0] = reshaped(c, ops_for_each(r, node->input[0]), all, m, k);
    made.input[1] = reshaped(c, ops_for_each(r, node->input[1]), all, k, n);
    made.shape.size[0] = all;
  }
  return ops_reshape(c, ops_add(c, &made), &shape);
}

/* Around it each example has a number of its own. */
static value_id batch_pad(const ops_replay *r, const ops_node *node) {
  hg_computation *c = r->c;
  ops_node made = *node, inside = *node;
  made.input[0] = ops_for_each(r, node->input[0]);
  if (made.input[0] == 0 || !ops_batch_shape(r, &node->shape, &made.shape)) return 0;
  move_lists(&made, ops_at(c, node->input[0])->shape.rank);
  if (r->of[node->input[1]] == 0) return ops_add(c, &made);
  ops_shape shape = made.shape, small = ops_at(c, made.input[0])->shape;
  ops_shape numbers = {.rank = shape.rank, .size = {r->count}};
  for (uint32_t i = 1; i < shape.rank; i++) numbers.size[i] = 1;
  made.input[1] = ops_constant(c, (atlas_type)node->type, 0);
  inside = made;
  inside.type = ATLAS_bool;
  inside.input[0] = ops_full(c, ATLAS_bool, 1, &small);
  inside.input[1] = ops_constant(c, ATLAS_bool, 0);
  value_id around = ops_broadcast(c, ops_reshape(c, r->of[node->input[1]], &numbers), &shape);
  return ops_pointwise(c, ATLAS_OP_sel, (value_id[]){ops_add(c, &inside), ops_add(c, &made), around}, 3);
}

static value_id batch_result(const ops_replay *r, const ops_node *node) {
  return ops_result_of(r->c, r->of[node->input[0]], node->index, (atlas_type)node->type);
}

/* The rows of all examples are those of a matrix. */
static value_id batch_select(const ops_replay *r, const ops_node *node) {
  hg_computation *c = r->c;
  uint64_t rows = node->shape.rank == 2 ? r->count * node->shape.size[0] : r->count;
  ops_shape shape;
  ops_node made = *node;
  if (!ops_batch_shape(r, &node->shape, &shape)) return 0;
  made.shape = (ops_shape){.rank = 2, .size = {rows, shape.size[shape.rank - 1]}};
  for (uint32_t i = 0; i < 3; i++) {
    value_id all = ops_for_each(r, node->input[i]);
    if (all == 0) return 0;
    ops_shape matrix = {.rank = 2, .size = {rows, ops_count(&ops_at(c, all)->shape) / rows}};
    made.input[i] = ops_reshape(c, all, &matrix);
  }
  return ops_reshape(c, ops_add(c, &made), &shape);
}

/* ---- random words ------------------------------------------------------------------------------------------------ */

/* Philox 4x32-10, as random_words.c has it, where each example has a key of its own. */
static value_id with(hg_computation *c, atlas_op op, value_id value, uint64_t bits) {
  if (value == 0) return 0;
  const ops_node *node = ops_at(c, value);
  atlas_type type = op == ATLAS_OP_shr ? ATLAS_u32 : (atlas_type)node->type;
  ops_shape shape = node->shape;
  return ops_pointwise(c, op, (value_id[]){value, ops_full(c, type, bits, &shape)}, 2);
}

static value_id xor_of(hg_computation *c, value_id a, value_id b, value_id key) {
  return ops_binary(c, ATLAS_OP_xor, ops_binary(c, ATLAS_OP_xor, a, b), key);
}

/* One number of each example, along all words. */
static value_id along_words(const ops_replay *r, value_id value, const ops_shape *words) {
  ops_view view = {.axis = {0, -1}, .step = {1, 0}, .start = {0}};
  return ops_view_of(r->c, ops_for_each(r, value), &view, words);
}

/* Word number `number` of each example's sequence. */
static value_id word_of(const ops_replay *r, const ops_node *node, value_id number, const ops_shape *words) {
  hg_computation *c = r->c;
  value_id key = along_words(r, node->input[0], words), counter = along_words(r, node->input[1], words);
  if (key == 0 || counter == 0 || number == 0) return 0;
  counter = ops_binary(c, ATLAS_OP_add, with(c, ATLAS_OP_shr, number, 2), counter);
  value_id zero = ops_full(c, ATLAS_u32, 0, words);
  value_id high = with(c, ATLAS_OP_shr, counter, 32);
  value_id x[4] = {ops_cast(c, counter, ATLAS_u32), ops_cast(c, high, ATLAS_u32), zero, zero};
  value_id k[2] = {ops_cast(c, key, ATLAS_u32), ops_cast(c, with(c, ATLAS_OP_shr, key, 32), ATLAS_u32)};
  for (int round = 0; round < 10; round++) {
    value_id first = xor_of(c, with(c, ATLAS_OP_mulhi, x[2], 0xCD9E8D57u), x[1], k[0]);
    value_id third = xor_of(c, with(c, ATLAS_OP_mulhi, x[0], 0xD2511F53u), x[3], k[1]);
    x[1] = with(c, ATLAS_OP_mul, x[2], 0xCD9E8D57u);
    x[3] = with(c, ATLAS_OP_mul, x[0], 0xD2511F53u);
    x[0] = first, x[2] = third;
    k[0] = with(c, ATLAS_OP_add, k[0], 0x9E3779B9u);
    k[1] = with(c, ATLAS_OP_add, k[1], 0xBB67AE85u);
  }
  value_id place = with(c, ATLAS_OP_and, number, 3), word = x[3];
  for (uint32_t i = 0; i < 3; i++)
    word = ops_pointwise(c, ATLAS_OP_sel, (value_id[]){with(c, ATLAS_OP_set_eq, place, i), x[i], word}, 3);
  return word;
}

/* The fraction of a word, or of a long one, that the node is. */
static value_id fraction_of(hg_computation *c, value_id word, const ops_node *node) {
  if (word == 0) return 0;
  int is_long = node->type == ATLAS_f64;
  value_id top = with(c, ATLAS_OP_shr, word, (is_long ? 11u : 8u) + (node->reduce == OPS_INSIDE));
  if (node->reduce == OPS_INSIDE) top = ops_binary(c, ATLAS_OP_add, top, top);
  if (node->reduce != OPS_BELOW_ONE) top = with(c, ATLAS_OP_add, top, 1);
  top = ops_cast(c, top, (atlas_type)node->type);
  return with(c, ATLAS_OP_mul, top, atlas_round_f64((atlas_type)node->type, is_long ? 0x1p-53 : 0x1p-24));
}

static value_id batch_random(const ops_replay *r, const ops_node *node) {
  hg_computation *c = r->c;
  ops_shape shape, words = {.rank = 2, .size = {r->count, ops_count(&node->shape)}};
  if (!ops_batch_shape(r, &node->shape, &shape)) return 0;
  value_id number = ops_cast(c, ops_coordinate(c, &words, 1), ATLAS_u64);
  if (node->axis != 0) number = with(c, ATLAS_OP_shr, number, node->axis);
  if (node->axes != 1) number = with(c, ATLAS_OP_mul, number, node->axes);
  if (node->bits != 0) number = with(c, ATLAS_OP_add, number, node->bits);
  value_id word = word_of(r, node, number, &words);
  if (node->type == ATLAS_f64)
    word = ops_long_word(c, word, word_of(r, node, with(c, ATLAS_OP_add, number, 1), &words));
  return ops_reshape(c, node->type == ATLAS_u32 ? word : fraction_of(c, word, node), &shape);
}

#define batch_none NULL
static value_id (*const rules[OPS_NODE_KINDS])(const ops_replay *r, const ops_node *node) = {
#define OPS_NODE_KIND(id, name, inputs, results, work, passes, is, has, term, flow, launch, batch) \
  [OPS_##id] = batch_##batch,
#include "ops/graph/kinds.def"
#undef OPS_NODE_KIND
};
#undef batch_none

static value_id make(const ops_replay *r, const ops_node *node) { return rules[node->kind](r, node); }

/* ---- all of it --------------------------------------------------------------------------------------------------- */

hg_value hg_computation_example(hg_computation *computation, const hg_tensor *like) {
  hg_computation *c = computation;
  if (c == NULL || c->status != HG_OK) return 0;
  if (like == NULL || like->rank > HG_MAX_RANK || atlas_bytes((atlas_type)like->type) == 0)
    return ops_failed(c, HG_INVALID_ARGUMENT, "hg_computation_example: 'like' is no tensor");
  ops_node node = {.kind = OPS_EXAMPLE, .type = (uint8_t)like->type, .index = (uint32_t)c->nodes.count};
  node.shape.rank = like->rank;
  memcpy(node.shape.size, like->shape, sizeof node.shape.size);
  return ops_add(c, &node);
}

/* The cotangents of fences become those of all examples. */
static void make_cotangents(ops_replay *r) {
  hg_computation *c = r->c;
  for (uint32_t id = 1; id <= c->fences.count; id++) {
    ops_fence fence = *ops_fence_at(c, id);
    for (uint32_t i = 0; fence.is_custom && i < fence.value_count; i++) {
      value_id value = ops_fenced(c, &fence)[fence.input_count + 2 * fence.value_count + i];
      ops_shape shape;
      if (value > r->last || !ops_batch_shape(r, &ops_at(c, value)->shape, &shape)) continue;
      hg_tensor like = hg_tensor_of(NULL, (atlas_type)ops_at(c, value)->type, shape.rank, shape.size);
      r->of[value] = hg_computation_example(c, &like);
    }
  }
}

static int is_batch_of(const ops_replay *r, value_id batch, value_id example) {
  ops_shape shape;
  if (!ops_is_value(r->c, batch) || !ops_is_value(r->c, example)) return 0;
  if (!ops_batch_shape(r, &ops_at(r->c, example)->shape, &shape)) return 0;
  if (ops_at(r->c, batch)->type != ops_at(r->c, example)->type) return 0;
  return ops_same_shape(&shape, &ops_at(r->c, batch)->shape);
}

/* What nobody reads and whose numbers are looked at, is that of all examples. */
static void move_checks(const ops_replay *r) {
  value_id *checks = r->c->checks.data;
  for (size_t i = 0; i < r->c->checks.count; i++)
    if (checks[i] <= r->last && r->of[checks[i]] != 0) checks[i] = r->of[checks[i]];
}

static value_id of_nothing(const ops_replay *r, value_id value) {
  ops_shape shape;
  if (!ops_batch_shape(r, &ops_at(r->c, value)->shape, &shape)) return 0;
  return ops_full(r->c, (atlas_type)ops_at(r->c, value)->type, 0, &shape);
}

hg_status hg_vmap(hg_computation *computation, uint64_t count, const hg_value *examples, const hg_value *batches,
                  size_t example_count, hg_value *values, size_t value_count) {
  hg_computation *c = computation;
  value_id last = 0;
  HG_TRY(hg_computation_status(c));
  if ((example_count > 0 && (examples == NULL || batches == NULL)) || (value_count > 0 && values == NULL))
    return hg_fail(HG_INVALID_ARGUMENT, "hg_vmap: a list is NULL");
  for (size_t i = 0; i < value_count; i++) {
    if (!ops_is_value(c, values[i]))
      ops_failed(c, HG_INVALID_ARGUMENT, "hg_vmap: value %zu is none of this computation", i);
    if (values[i] > last) last = values[i];
  }
  ops_replay r;
  if (c->status != HG_OK || !ops_replay_begin(&r, c, last)) return hg_computation_status(c);
  r.count = count, r.is_batch = 1, r.make = make;
  for (size_t i = 0; i < example_count && c->status == HG_OK; i++) {
    if (!is_batch_of(&r, batches[i], examples[i]))
      ops_failed(c, HG_INVALID_ARGUMENT, "hg_vmap: batch %zu is not %llu examples of that shape and type", i,
                 (unsigned long long)count);
    else if (examples[i] <= last) r.of[examples[i]] = batches[i];
  }
  make_cotangents(&r);
  if (count > 0) ops_replay_run(&r);
  for (size_t i = 0; i < value_count && c->status == HG_OK; i++)
    values[i] = count > 0 ? ops_for_each(&r, values[i]) : of_nothing(&r, values[i]);
  if (count > 0) move_checks(&r);
  ops_replay_end(&r);
  return hg_computation_status(c);
}
