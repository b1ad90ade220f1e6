/* gradient.c - hg_gradient: cotangents flow from a value back to its inputs. */
#include "ops/graph/gradient.h"

static const ops_node *at(const ops_gradient *g, value_id value) { return ops_at(g->c, value); }

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* y and g with the axes that the result has dropped. */
static value_id with_axes(hg_computation *c, value_id value, const ops_row *row, const ops_item *arguments,
                          value_id x) {
  const char *names = row->arguments;
  ops_argument_spec spec;
  int keep = -1, axes = -1;
  for (int i = 0; ops_next_argument(&names, &spec); i++) {
    if (ops_word_is(spec.name, "keep")) keep = i;
    if (ops_word_is(spec.name, "axes")) axes = i;
  }
  if (keep < 0 || axes < 0 || arguments[keep].integers[0] != 0) return value;
  ops_shape shape = ops_at(c, x)->shape;
  for (uint32_t i = 0; i < shape.rank; i++) {
    int is_reduced = arguments[axes].is_all;
    for (uint32_t k = 0; k < arguments[axes].count; k++)
      is_reduced |= ops_axis(arguments[axes].integers[k], shape.rank) == (int)i;
    if (is_reduced) shape.size[i] = 1;
  }
  return ops_reshape(c, value, &shape);
}

static int is_input_of(const ops_call *call, value_id value) {
  for (uint32_t i = 0; i < call->input_count; i++)
    if (call->inputs[i] == value) return 1;
  return 0;
}

/* Finds the formulas with a gradient of their own, by their result; the first of equal ones. That gradient reads the
 * result as it was before its axes were dropped, so that value counts as a result, too: second gradients arrive
 * there. */
static void find_calls(ops_gradient *g) {
  for (uint32_t i = 0; i < g->c->calls.count; i++) {
    const ops_call *call = (const ops_call *)g->c->calls.data + i;
    const ops_row *row = ops_row_of(call->op);
    value_id result = call->results[0];
    if (!ops_has_rule(row) || strcmp(row->gradient, "none") == 0) continue;
    if (call->result_count != 1 || result > g->value || g->call[result] != 0) continue;
    if (is_input_of(call, result)) continue; /* the formula returns one of its inputs */
    g->call[result] = i + 1;
    const ops_item *arguments = g->c->arguments.data; /* NULL: no call has any */
    if (arguments != NULL) arguments += call->first_argument;
    value_id kept = with_axes(g->c, result, row, arguments, call->inputs[0]);
    if (kept != 0 && kept <= g->value && g->call[kept] == 0 && !is_input_of(call, kept)) g->call[kept] = i + 1;
  }
}

/* 1 if a value inside the call, behind its inputs, is among the requested ones: then the call cannot be a single
 * step. */
static int hides_what_is_asked(ops_gradient *g, const ops_call *call) {
  uint32_t count = 0, walk = ++g->walks;
  g->queue[count++] = call->results[0];
  for (uint32_t next = 0; next < count; next++) {
    const ops_node *node = at(g, g->queue[next]);
    if (next > 0 && g->depends[g->queue[next]] == 2) return 1;
    for (uint32_t i = 0; i < node->input_count; i++) {
      value_id input = node->input[i];
      if (g->depends[input] == 0 || g->walked[input] == walk || is_input_of(call, input)) continue;
      g->walked[input] = walk;
      g->queue[count++] = input;
    }
  }
  return 0;
}

static int flow_through_call(ops_gradient *g, value_id value, value_id amount) {
  ops_call call = ((const ops_call *)g->c->calls.data)[g->call[value] - 1];
  const ops_row *row = ops_row_of(call.op);
  if (hides_what_is_asked(g, &call)) return 0;
  ops_item arguments[OPS_MAX_ARGUMENTS];
  uint32_t argument_count = ops_argument_count(row), wanted = 0;
  if (argument_count > 0)
    memcpy(arguments, (const ops_item *)g->c->arguments.data + call.first_argument, argument_count * sizeof *arguments);
  for (uint32_t i = 0; i < call.input_count; i++) {
    value_id input = call.inputs[i];
    if (input != 0 && input <= g->value && g->depends[input] != 0) wanted |= 1u << i;
  }
  ops_rule rule = {.row = row,
                   .text = row->gradient,
                   .parsed = ops_row_gradient(row),
                   .inputs = call.inputs,
                   .input_count = call.input_count,
                   .arguments = arguments};
  rule.y = with_axes(g->c, value, row, arguments, call.inputs[0]);
  rule.g = with_axes(g->c, amount, row, arguments, call.inputs[0]);
  value_id results[OPS_MAX_RESULTS];
  g->c->numerics = call.numerics;
  if (ops_apply_rule(g, &rule, wanted, results))
    for (uint32_t i = 0; i < call.input_count; i++) ops_flow(g, call.inputs[i], results[i]);
  return 1;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static void find_dependent(ops_gradient *g, const value_id *wrt, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (wrt[i] <= g->value) g->depends[wrt[i]] = 2;
  for (value_id value = 1; value <= g->value; value++) {
    const ops_node *node = at(g, value);
    for (uint32_t i = 0; i < node->input_count; i++)
      if (g->depends[value] == 0 && g->depends[node->input[i]] != 0) g->depends[value] = 1;
    if (g->depends[value] == 0 && ops_fence_depends(g, node)) g->depends[value] = 1;
  }
}

static void walk(ops_gradient *g) {
  for (value_id value = g->value; value > 0 && g->c->status == HG_OK; value--) {
    value_id amount = g->adjoint[value];
    if (g->depends[value] != 0 && ops_flow_fence(g, value)) continue;
    if (amount == 0 || g->depends[value] == 0) continue;
    if (g->call[value] != 0 && flow_through_call(g, value, amount)) continue;
    ops_flow_through(g, value, amount);
  }
}

/* If one element is taken along an axis, its cotangent is added where the index matches, and nowhere if the index is
 * out of range: the gather itself faults, even if nobody reads its value. */
static void keep_checks(const ops_gradient *g) {
  for (value_id value = 1; value <= g->value && g->c->status == HG_OK; value++) {
    const ops_node *node = at(g, value);
    if (node->kind != OPS_GATHER || node->bounds == OPS_CLAMP || g->depends[value] == 0) continue;
    if (node->shape.size[node->axis] != 1) continue;
    if (hg_array_append(&g->c->allocator, &g->c->checks, &value, 1) == NULL)
      ops_failed(g->c, HG_OUT_OF_MEMORY, "no memory for the gradients of %u values", (unsigned)g->value);
  }
}

static value_id first_adjoint(hg_computation *c, value_id value, value_id cotangent) {
  ops_shape shape = ops_at(c, value)->shape;
  atlas_type type = (atlas_type)ops_at(c, value)->type;
  if (!atlas_is_float(type))
    return ops_failed(c, HG_INVALID_ARGUMENT, "hg_gradient: the value is %s; only floats have gradients",
                      OPS_TEXT(c, value));
  if (cotangent == 0 && ops_count(&shape) != 1)
    return ops_failed(c, HG_INVALID_ARGUMENT,
                      "hg_gradient: the value is %s: of more than one element a cotangent is needed",
                      OPS_TEXT(c, value));
  if (cotangent == 0) return ops_broadcast(c, ops_number(c, type, 1), &shape);
  if (ops_at(c, cotangent)->type != type || !ops_same_shape(&ops_at(c, cotangent)->shape, &shape))
    return ops_failed(c, HG_INVALID_ARGUMENT, "hg_gradient: the value is %s and its cotangent %s", OPS_TEXT(c, value),
                      OPS_TEXT(c, cotangent));
  return cotangent;
}

static void put_gradients(ops_gradient *g, const value_id *wrt, size_t count, const value_id *gradients) {
  for (size_t i = 0; i < count; i++)
    if (wrt[i] <= g->value) g->adjoint[wrt[i]] = gradients[i];
}

static void take_gradients(const ops_gradient *g, const value_id *wrt, size_t count, value_id *gradients) {
  for (size_t i = 0; i < count; i++)
    if (wrt[i] <= g->value) gradients[i] = g->adjoint[wrt[i]];
}

void ops_gradients(hg_computation *c, const value_id *values, const value_id *cotangents, size_t value_count,
                   const value_id *wrt, size_t count, value_id *gradients) {
  ops_gradient g = {.c = c};
  for (size_t i = 0; i < value_count; i++)
    if (values[i] > g.value) g.value = values[i];
  g.adjoint = hg_allocate(&c->allocator, (uint64_t)g.value + 1, sizeof *g.adjoint);
  g.depends = hg_allocate(&c->allocator, (uint64_t)g.value + 1, sizeof *g.depends);
  g.call = hg_allocate(&c->allocator, (uint64_t)g.value + 1, sizeof *g.call);
  g.walked = hg_allocate(&c->allocator, (uint64_t)g.value + 1, sizeof *g.walked);
  g.queue = hg_allocate(&c->allocator, (uint64_t)g.value + 1, sizeof *g.queue);
  if (g.adjoint == NULL || g.depends == NULL || g.call == NULL || g.walked == NULL || g.queue == NULL) {
    ops_failed(c, HG_OUT_OF_MEMORY, "no memory for the gradients of %u values", (unsigned)g.value);
  } else {
    find_dependent(&g, wrt, count);
    uint8_t numerics = c->numerics; /* of what is recorded; a gradient has those of what it is the gradient of */
    find_calls(&g);
    put_gradients(&g, wrt, count, gradients);
    for (size_t i = 0; i < value_count; i++) {
      value_id *adjoint = &g.adjoint[values[i]];
      *adjoint = *adjoint == 0 ? cotangents[i] : ops_binary(c, ATLAS_OP_add, *adjoint, cotangents[i]);
    }
    walk(&g);
    c->numerics = numerics;
    keep_checks(&g);
    take_gradients(&g, wrt, count, gradients);
  }
  hg_release(&c->allocator, g.adjoint);
  hg_release(&c->allocator, g.depends);
  hg_release(&c->allocator, g.call);
  hg_release(&c->allocator, g.walked);
  hg_release(&c->allocator, g.queue);
}

hg_status hg_gradient(hg_computation *computation, hg_value value, hg_value cotangent, const hg_value *wrt,
                      size_t count, hg_value *gradients) {
  hg_computation *c = computation;
  if (c == NULL || (count > 0 && (wrt == NULL || gradients == NULL)))
    return hg_fail(HG_INVALID_ARGUMENT, "hg_gradient: '%s' is NULL",
                   c == NULL     ? "computation"
                   : wrt == NULL ? "wrt"
                                 : "gradients");
  if (count > 0) memset(gradients, 0, count * sizeof *gradients);
  HG_TRY(hg_computation_status(c));
  int are_values = ops_is_value(c, value) && (cotangent == 0 || ops_is_value(c, cotangent));
  for (size_t i = 0; i < count; i++) are_values &= ops_is_value(c, wrt[i]);
  if (!are_values) ops_failed(c, HG_INVALID_ARGUMENT, "hg_gradient: one of them is no value of this computation");
  value_id first = are_values ? first_adjoint(c, value, cotangent) : 0;
  if (first == 0) return hg_computation_status(c);
  ops_gradients(c, &value, &first, 1, wrt, count, gradients);
  for (size_t i = 0; i < count && c->status == HG_OK; i++) {
    ops_shape shape = ops_at(c, wrt[i])->shape;
    if (gradients[i] == 0) gradients[i] = ops_full(c, (atlas_type)ops_at(c, wrt[i])->type, 0, &shape);
  }
  if (c->status != HG_OK && count > 0) memset(gradients, 0, count * sizeof *gradients);
  return hg_computation_status(c);
}
