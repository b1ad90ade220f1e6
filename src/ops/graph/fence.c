/* fence.c - values whose gradients are found in another way than through the nodes that they were computed by: by
 * computing them once more (hg_checkpoint), or as the user says (hg_custom_gradient). Others read them through
 * fences. */
#include "ops/graph/gradient.h"
#include "ops/graph/replay.h"

static value_id of_list(const ops_gradient *g, const ops_fence *fence, uint32_t i) {
  return ops_fenced(g->c, fence)[i];
}

/* ---- making them ------------------------------------------------------------------------------------------------- */

static uint32_t plain_fence(hg_computation *c) {
  ops_fence fence = {.value_count = 0};
  if (hg_array_append(&c->allocator, &c->fences, &fence, 1) != NULL) return (uint32_t)c->fences.count;
  return ops_failed(c, HG_OUT_OF_MEMORY, "no memory for a fence");
}

static int append(hg_computation *c, const hg_value *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (values[i] != 0 && !ops_is_value(c, values[i]))
      return ops_failed(c, HG_INVALID_ARGUMENT, "a fence: %u is no value of this computation", (unsigned)values[i]), 0;
  if (count == 0 || hg_array_append(&c->allocator, &c->fenced, values, count) != NULL) return 1;
  return ops_failed(c, HG_OUT_OF_MEMORY, "no memory for a fence"), 0;
}

static hg_status add(hg_computation *c, const hg_value *inputs, size_t input_count, const hg_value *cotangents,
                     const hg_value *gradients, hg_value *values, size_t value_count) {
  HG_TRY(hg_computation_status(c));
  if (input_count > UINT16_MAX || value_count > UINT16_MAX || (input_count > 0 && inputs == NULL) ||
      (value_count > 0 && values == NULL))
    return hg_fail(HG_INVALID_ARGUMENT, "a fence: a list is NULL, or too long");
  ops_fence fence = {.first = (uint32_t)c->fenced.count, .input_count = (uint32_t)input_count,
                     .value_count = (uint32_t)value_count, .is_custom = gradients != NULL};
  int ok = append(c, inputs, input_count) && append(c, values, value_count);
  for (size_t i = 0; ok && i < value_count; i++)
    ok = (values[i] = ops_add_fence(c, values[i], 0, (uint32_t)c->fences.count + 1, (uint32_t)i)) != 0;
  ok = ok && append(c, values, value_count);
  if (fence.is_custom) ok = ok && append(c, cotangents, value_count) && append(c, gradients, input_count);
  if (ok && hg_array_append(&c->allocator, &c->fences, &fence, 1) == NULL)
    ops_failed(c, HG_OUT_OF_MEMORY, "no memory for a fence");
  return hg_computation_status(c);
}

hg_status hg_checkpoint(hg_computation *computation, const hg_value *inputs, size_t input_count, hg_value *values,
                        size_t value_count) {
  return add(computation, inputs, input_count, NULL, NULL, values, value_count);
}

hg_status hg_custom_gradient(hg_computation *computation, const hg_value *inputs, size_t input_count,
                             const hg_value *cotangents, const hg_value *gradients, hg_value *values,
                             size_t value_count) {
  if (cotangents == NULL || gradients == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_custom_gradient: '%s' is NULL",
                   gradients == NULL ? "gradients" : "cotangents");
  return add(computation, inputs, input_count, cotangents, gradients, values, value_count);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

int ops_fence_depends(const ops_gradient *g, const ops_node *node) {
  if (!ops_is_fence(node)) return 0;
  const ops_fence *fence = ops_fence_at(g->c, (uint32_t)node->bits);
  int depends = 0;
  for (uint32_t i = 0; fence->is_custom && i < fence->input_count; i++) {
    value_id input = of_list(g, fence, i);
    depends |= input != 0 && input <= g->value && g->depends[input] != 0;
  }
  return depends;
}

/* The last of a fence's values that takes part: there the cotangents of all of them are complete. */
static value_id last_of(const ops_gradient *g, const ops_fence *fence) {
  value_id last = 0;
  for (uint32_t i = 0; i < fence->value_count; i++) {
    value_id value = of_list(g, fence, fence->input_count + fence->value_count + i);
    if (value <= g->value && value > last && g->depends[value] != 0) last = value;
  }
  return last;
}

static value_id cotangent_of(const ops_gradient *g, const ops_fence *fence, uint32_t i) {
  value_id value = of_list(g, fence, fence->input_count + fence->value_count + i);
  if (value == 0) return 0;
  if (value <= g->value && g->adjoint[value] != 0) return g->adjoint[value];
  ops_shape shape = ops_at(g->c, value)->shape;
  return ops_full(g->c, (atlas_type)ops_at(g->c, value)->type, 0, &shape);
}

/* As the user says, with the cotangents in the place of those that he was given. */
static void flow_custom(ops_gradient *g, const ops_fence *fence) {
  uint32_t cotangents = fence->input_count + 2 * fence->value_count, gradients = cotangents + fence->value_count;
  value_id last = 0;
  for (uint32_t i = cotangents; i < gradients + fence->input_count; i++)
    if (of_list(g, fence, i) > last) last = of_list(g, fence, i);
  ops_replay r;
  if (!ops_replay_begin(&r, g->c, last)) return;
  for (uint32_t i = 0; i < fence->value_count; i++) {
    value_id example = of_list(g, fence, cotangents + i);
    value_id amount = example != 0 ? cotangent_of(g, fence, i) : 0;
    if (example != 0 && amount == 0) { /* its value stays with another fence */
      ops_shape shape = ops_at(g->c, example)->shape;
      amount = ops_full(g->c, (atlas_type)ops_at(g->c, example)->type, 0, &shape);
    }
    if (example != 0) r.of[example] = amount;
  }
  ops_replay_run(&r);
  for (uint32_t i = 0; i < fence->input_count; i++)
    ops_flow(g, of_list(g, fence, i), ops_became(&r, of_list(g, fence, gradients + i)));
  ops_replay_end(&r);
}

/* The input behind a fence that waits for the cotangents: nothing is computed again before it is needed. */
static value_id behind_cotangents(ops_gradient *g, const ops_fence *fence, value_id input, uint32_t id,
                                  uint32_t index) {
  value_id result = 0;
  for (uint32_t i = 0; i < fence->value_count; i++) {
    value_id own = of_list(g, fence, fence->input_count + fence->value_count + i);
    if (own == 0 || own > g->value || g->adjoint[own] == 0) continue;
    result = ops_add_fence(g->c, result != 0 ? result : input, g->adjoint[own], id, index);
  }
  return result;
}

enum { APART, AGAIN, KEPT, NEEDED };

static void reach(uint8_t *is, value_id value) {
  if (value != 0 && is[value] == APART) is[value] = AGAIN;
}

/* By value up to `last`: AGAIN, it is computed once more; NEEDED, that begins with it. What others read, too, is kept:
 * in a loop it is the same for all steps, and its gradient is summed in the order that it has without a fence. */
static uint8_t *find_region(const ops_gradient *g, const ops_fence *fence, value_id last) {
  const hg_computation *c = g->c;
  const uint32_t inputs = fence->input_count, values = fence->value_count;
  value_id own = of_list(g, fence, inputs + values);
  uint64_t id = own != 0 ? ops_at(c, own)->bits : 0;
  uint8_t *is = hg_allocate(&c->allocator, (uint64_t)(last > g->value ? last : g->value) + 1, 1);
  if (is == NULL) return NULL;
  for (uint32_t i = 0; i < inputs; i++) is[of_list(g, fence, i)] = KEPT;
  for (uint32_t i = 0; i < values; i++)
    if (is[of_list(g, fence, inputs + i)] == APART) is[of_list(g, fence, inputs + i)] = AGAIN;
  is[0] = APART;
  for (value_id v = last; v > 0; v--) {
    const ops_node *node = ops_at(c, v);
    if (is[v] != AGAIN) continue;
    for (uint32_t i = 0; i < node->input_count; i++) reach(is, node->input[i]);
    const ops_fence *inner = ops_is_fence(node) ? ops_fence_at(c, (uint32_t)node->bits) : NULL;
    uint32_t end = inner != NULL && inner->is_custom ? ops_fence_room(inner) : 0;
    for (uint32_t i = end; inner != NULL && i > end - (end > 0 ? inner->input_count : 0); i--)
      reach(is, ops_fenced(c, inner)[i - 1]); /* what the user's gradients are made of */
  }
  for (value_id v = g->value; v > 0; v--) {
    const ops_node *node = ops_at(c, v);
    int is_other = is[v] != AGAIN && !(ops_is_fence(node) && node->bits == id);
    for (uint32_t i = 0; is_other && i < node->input_count; i++)
      if (is[node->input[i]] == AGAIN) is[node->input[i]] = KEPT;
  }
  for (value_id v = last; v > 0; v--)
    for (uint32_t i = 0; is[v] == AGAIN && i < ops_at(c, v)->input_count; i++)
      if (is[ops_at(c, v)->input[i]] == KEPT) is[ops_at(c, v)->input[i]] = NEEDED;
  return is;
}

/* Through the nodes of the values computed once more: behind fences they are other nodes, which need nothing that was
 * computed before. */
static void flow_again(ops_gradient *g, const ops_fence *fence) {
  hg_computation *c = g->c;
  uint32_t inputs = fence->input_count, values = fence->value_count, count = 0, wanted = 0, id = plain_fence(c);
  value_id last = 0;
  for (uint32_t i = 0; i < values; i++)
    if (of_list(g, fence, inputs + i) > last) last = of_list(g, fence, inputs + i);
  for (uint32_t i = 0; i < inputs; i++)
    if (of_list(g, fence, i) > last) last = of_list(g, fence, i);
  value_id *lists = hg_allocate(&c->allocator, 3 * (uint64_t)last + 2 * (uint64_t)values + 1, sizeof *lists);
  uint8_t *is = find_region(g, fence, last);
  ops_replay r = {.c = c};
  if (lists == NULL || is == NULL) ops_failed(c, HG_OUT_OF_MEMORY, "no memory for a fence");
  else if (ops_replay_begin(&r, c, last)) {
    value_id *by = lists, *own = by + last, *sums = own + last, *again = sums + last, *cotangents = again + values;
    for (uint32_t i = 0; i < values; i++) { /* of what is kept, since others read it, too */
      value_id value = of_list(g, fence, inputs + i);
      if (value != 0 && is[value] != AGAIN) ops_flow(g, value, cotangent_of(g, fence, i));
    }
    for (value_id v = 1; v <= last; v++) {
      if (is[v] != NEEDED) continue;
      r.of[v] = behind_cotangents(g, fence, v, id, v);
      if (v > g->value || g->depends[v] == 0 || !atlas_is_float((atlas_type)ops_at(c, v)->type)) continue;
      by[wanted] = v;
      own[wanted] = r.of[v];
      sums[wanted++] = g->adjoint[v];
    }
    r.is_again = is;
    ops_replay_run(&r);
    for (uint32_t i = 0; i < values; i++) {
      value_id value = of_list(g, fence, inputs + i);
      if (value == 0 || !atlas_is_float((atlas_type)ops_at(c, value)->type)) continue;
      if (is[value] != AGAIN) continue;
      again[count] = ops_became(&r, value);
      cotangents[count++] = cotangent_of(g, fence, i);
    }
    ops_gradients(c, again, cotangents, count, own, wanted, sums);
    for (uint32_t i = 0; i < wanted && c->status == HG_OK; i++) g->adjoint[by[i]] = sums[i];
  }
  ops_replay_end(&r);
  hg_release(&c->allocator, is);
  hg_release(&c->allocator, lists);
}

int ops_flow_fence(ops_gradient *g, value_id value) {
  const ops_node *node = ops_at(g->c, value);
  if (!ops_is_fence(node)) return 0;
  ops_fence fence = *ops_fence_at(g->c, (uint32_t)node->bits);
  if (fence.value_count == 0) return 0;
  int is_met = 0;
  for (uint32_t i = 0; i < fence.value_count; i++) {
    value_id own = of_list(g, &fence, fence.input_count + fence.value_count + i);
    is_met |= own != 0 && own <= g->value && g->adjoint[own] != 0;
  }
  if (!is_met || value != last_of(g, &fence)) return 1;
  if (fence.is_custom) flow_custom(g, &fence);
  else flow_again(g, &fence);
  return 1;
}
