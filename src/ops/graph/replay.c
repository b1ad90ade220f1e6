/* replay.c - nodes that are made once more, with the calls that they were made for and the fences among them. */
#include "ops/graph/replay.h"

int ops_replay_begin(ops_replay *r, hg_computation *c, value_id last) {
  *r = (ops_replay){.c = c, .last = last};
  r->of = hg_allocate(&c->allocator, (uint64_t)last + 2, sizeof *r->of);
  r->before = hg_allocate(&c->allocator, (uint64_t)last + 2, sizeof *r->before);
  if (r->of != NULL && r->before != NULL) return 1;
  ops_replay_end(r);
  ops_failed(c, HG_OUT_OF_MEMORY, "no memory to make %u values again", (unsigned)last);
  return 0;
}

void ops_replay_end(ops_replay *r) {
  hg_release(&r->c->allocator, r->of);
  hg_release(&r->c->allocator, r->before);
  r->of = NULL, r->before = NULL;
}

static value_id became(const ops_replay *r, value_id value) {
  return value != 0 && value <= r->last && r->of[value] != 0 ? r->of[value] : value;
}

int ops_batch_shape(const ops_replay *r, const ops_shape *shape, ops_shape *out) {
  *out = (ops_shape){.rank = shape->rank + 1, .size = {r->count}};
  if (shape->rank == HG_MAX_RANK)
    return ops_failed(r->c, HG_UNSUPPORTED,
                      "vmap: each example makes a %s, and all of them would have more than %d axes", OPS_SHAPE(shape),
                      HG_MAX_RANK),
           0;
  memcpy(out->size + 1, shape->size, shape->rank * sizeof *shape->size);
  if (ops_is_countable(out)) return 1;
  return ops_failed(r->c, HG_INVALID_ARGUMENT, "vmap: %s has more than 2^40 elements", OPS_SHAPE(out)), 0;
}

value_id ops_for_each(const ops_replay *r, value_id value) {
  ops_shape shape;
  if (value == 0) return 0;
  if (value <= r->last && r->of[value] != 0) return r->of[value];
  return ops_batch_shape(r, &ops_at(r->c, value)->shape, &shape) ? ops_broadcast(r->c, value, &shape) : 0;
}

value_id ops_became(const ops_replay *r, value_id value) {
  return r->is_batch ? ops_for_each(r, value) : became(r, value);
}

/* ---- fences ------------------------------------------------------------------------------------------------------ */

/* The fence of values that have become others; the lists of the old one stay where they are. */
static void make_fence(ops_replay *r, uint32_t id) {
  hg_computation *c = r->c;
  ops_fence fence = *ops_fence_at(c, id);
  uint32_t inputs = fence.input_count, values = fence.value_count;
  uint32_t count = ops_fence_room(&fence);
  for (uint32_t i = 0; i < values; i++) { /* what has not become another stays with the old fence */
    value_id raw = ops_fenced(c, &fence)[inputs + i];
    value_id own = ops_fenced(c, &fence)[inputs + values + i];
    if (became(r, raw) == raw || own > r->last) continue;
    r->of[own] = ops_add_fence(c, r->of[raw], 0, (uint32_t)c->fences.count + 1, i);
  }
  ops_fence made = fence;
  made.first = (uint32_t)c->fenced.count;
  for (uint32_t i = 0; i < count; i++) {
    value_id old = ops_fenced(c, &fence)[i], now = became(r, old);
    int is_value = i >= inputs && i < inputs + 2 * values;
    if (is_value && now == old) now = 0;
    if (i >= inputs + 2 * values && old != 0) now = ops_became(r, old);
    if (hg_array_append(&c->allocator, &c->fenced, &now, 1) == NULL)
      ops_failed(c, HG_OUT_OF_MEMORY, "no memory for a fence");
  }
  if (hg_array_append(&c->allocator, &c->fences, &made, 1) == NULL)
    ops_failed(c, HG_OUT_OF_MEMORY, "no memory for a fence");
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Axes of an argument, an axis further; 0: there are none. */
static int move_axes(const ops_row *row, ops_item *arguments, uint32_t rank) {
  const char *names = row->arguments;
  ops_argument_spec spec;
  for (uint32_t i = 0; ops_next_argument(&names, &spec); i++) {
    ops_item *item = &arguments[i];
    if (!ops_word_is(spec.name, "axes") && !ops_word_is(spec.name, "axis")) continue;
    if (item->is_all && rank == 0) return 0;
    for (uint32_t k = 0; item->is_all && k < rank; k++) item->integers[k] = k;
    if (item->is_all) item->count = rank, item->is_all = 0;
    for (uint32_t k = 0; k < HG_MAX_RANK; k++)
      if (item->integers[k] >= 0) item->integers[k]++;
    if (item->kind == OPS_ITEM_NUMBER) item->number = (double)item->integers[0];
  }
  return 1;
}

/* Whether the row's own gradient is that of the call of what its inputs have become: of a batch their axes lie beside
 * each other from the last one on. */
static int keeps_rule(const ops_replay *r, const ops_call *call) {
  uint32_t rank = 0;
  if (!r->is_batch) return 1;
  if (call->input_count == 0 || became(r, call->inputs[0]) == call->inputs[0]) return 0;
  for (uint32_t i = 0; i < call->input_count; i++)
    if (call->inputs[i] != 0 && ops_at(r->c, call->inputs[i])->shape.rank > rank)
      rank = ops_at(r->c, call->inputs[i])->shape.rank;
  for (uint32_t i = 0; i < call->input_count; i++)
    if (became(r, call->inputs[i]) != call->inputs[i] && ops_at(r->c, call->inputs[i])->shape.rank < rank) return 0;
  return 1;
}

static void make_call(const ops_replay *r, ops_call call) {
  hg_computation *c = r->c;
  const ops_row *row = ops_row_of(call.op);
  ops_item arguments[OPS_MAX_ARGUMENTS] = {0};
  uint32_t count = ops_argument_count(row);
  if (count > 0)
    memcpy(arguments, (const ops_item *)c->arguments.data + call.first_argument, count * sizeof *arguments);
  int is_one = keeps_rule(r, &call);
  if (is_one && r->is_batch) is_one = move_axes(row, arguments, ops_at(c, call.inputs[0])->shape.rank);
  call.first_node = r->before[call.first_node + 1];
  call.end_node = r->before[call.end_node + 1];
  for (uint32_t i = 0; i < call.input_count; i++) call.inputs[i] = became(r, call.inputs[i]);
  for (uint32_t i = 0; i < call.result_count; i++) call.results[i] = became(r, call.results[i]);
  if (!is_one) call.result_count = 0; /* a name, and no more */
  call.first_argument = (uint32_t)c->arguments.count;
  if ((count > 0 && hg_array_append(&c->allocator, &c->arguments, arguments, count) == NULL) ||
      hg_array_append(&c->allocator, &c->calls, &call, 1) == NULL)
    ops_failed(c, HG_OUT_OF_MEMORY, "no memory for %zu calls of a computation", c->calls.count);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static value_id make_again(const ops_replay *r, const ops_node *node) {
  ops_node copy = *node;
  for (uint32_t i = 0; i < copy.input_count; i++) copy.input[i] = became(r, node->input[i]);
  return ops_add(r->c, &copy);
}

void ops_replay_run(ops_replay *r) {
  hg_computation *c = r->c;
  size_t call_count = c->calls.count;
  uint8_t numerics = c->numerics;
  for (value_id value = 1; value <= r->last && c->status == HG_OK; value++) {
    ops_node node = *ops_at(c, value); /* a copy: nodes move when some are added */
    int is_other = 0;
    r->before[value] = (uint32_t)c->nodes.count;
    for (uint32_t i = 0; i < node.input_count; i++) is_other |= r->of[node.input[i]] != 0;
    if (!is_other || r->of[value] != 0 || (r->is_again != NULL && r->is_again[value] != 1)) continue;
    if (ops_is_fence(&node) && ops_fence_at(c, (uint32_t)node.bits)->value_count > 0)
      make_fence(r, (uint32_t)node.bits);
    else r->of[value] = r->make != NULL ? r->make(r, &node) : make_again(r, &node);
  }
  r->before[r->last + 1] = (uint32_t)c->nodes.count;
  for (size_t i = 0; i < call_count && c->status == HG_OK; i++) {
    const ops_call *call = (const ops_call *)c->calls.data + i;
    value_id result = call->results[0];
    if (call->end_node > r->last || call->result_count == 0 || result > r->last) continue;
    if (r->of[result] != 0) make_call(r, *call);
  }
  c->numerics = numerics;
}
