/* gradient_flow.c - adds cotangents to values, and evaluates the rules that produce them. */
#include "ops/graph/gradient.h"

static const ops_node *at(const ops_gradient *g, value_id value) { return ops_at(g->c, value); }

/* ---- flowing ----------------------------------------------------------------------------------------------------- */

/* A cotangent of something broadcast from `shape` is summed over the repeated axes. */
static value_id sum_to(hg_computation *c, value_id value, const ops_shape *shape) {
  if (value == 0) return 0;
  ops_shape own = ops_at(c, value)->shape;
  if (own.rank < shape->rank) return ops_broadcast(c, value, shape); /* a constant of a rule */
  uint32_t missing = own.rank - shape->rank, axes = 0;
  for (uint32_t i = 0; i < own.rank; i++)
    if (i < missing || (own.size[i] != shape->size[i - missing] && shape->size[i - missing] == 1)) axes |= 1u << i;
  if (axes != 0) value = ops_sum(c, value, axes, 1);
  ops_shape kept = value != 0 ? ops_at(c, value)->shape : own;
  if (value != 0 && ops_count(&kept) != ops_count(shape)) return ops_broadcast(c, value, shape);
  return ops_reshape(c, value, shape);
}

void ops_flow(ops_gradient *g, value_id to, value_id amount) {
  if (to == 0 || amount == 0 || to > g->value || g->depends[to] == 0) return;
  atlas_type type = (atlas_type)at(g, to)->type;
  if (!atlas_is_float(type)) return;
  ops_shape shape = at(g, to)->shape;
  amount = ops_cast(g->c, sum_to(g->c, amount, &shape), type);
  if (amount == 0) return;
  g->adjoint[to] = g->adjoint[to] == 0 ? amount : ops_binary(g->c, ATLAS_OP_add, g->adjoint[to], amount);
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static ops_word word_of(const char *text) { return (ops_word){text, strlen(text)}; }

static void name_inputs(ops_formula *f, const ops_rule *rule) {
  static const char *const plain[] = {"x", "v", "w", "u"};
  const char *names = rule->row != NULL ? rule->row->inputs : "";
  ops_input_spec spec;
  for (uint32_t i = 0; i < rule->input_count; i++) {
    ops_word name = rule->row != NULL && ops_next_input(&names, &spec) ? spec.name : word_of(plain[i & 3]);
    ops_formula_input(f, name, rule->inputs[i], 1);
  }
}

static void name_arguments(ops_formula *f, const ops_rule *rule) {
  const char *names = rule->row != NULL ? rule->row->arguments : "";
  ops_argument_spec spec;
  for (uint32_t i = 0; rule->arguments != NULL && ops_next_argument(&names, &spec); i++)
    ops_set_name(f, f->text, spec.name, rule->arguments[i], ATLAS_NONE);
  if (rule->arguments == NULL) ops_set_name(f, f->text, word_of("axes"), rule->axes, ATLAS_NONE);
}

static int is_zero(const hg_computation *c, value_id value) {
  const ops_node *node = ops_at(c, value);
  while (node->kind == OPS_VIEW || node->kind == OPS_RESHAPE) node = ops_at(c, node->input[0]);
  return node->kind == OPS_CONSTANT && node->bits == 0;
}

int ops_apply_rule(ops_gradient *g, const ops_rule *rule, uint32_t wanted, value_id *results) {
  ops_formula f;
  memset(results, 0, OPS_MAX_RESULTS * sizeof *results);
  ops_formula_begin(&f, g->c, rule->text);
  f.row = rule->row;
  f.is_wide = 1;
  f.nesting = 1;
  name_inputs(&f, rule);
  name_arguments(&f, rule);
  ops_formula_input(&f, word_of("y"), rule->y, 1);
  ops_formula_input(&f, word_of("g"), rule->g, 1);
  f.parsed = rule->parsed;
  uint32_t count = f.parsed.count > 0 ? ops_formula_finish(&f, wanted, results) : ops_formula_read(&f, wanted, results);
  for (uint32_t i = 0; i < count; i++)
    if (results[i] != 0 && is_zero(g->c, results[i])) results[i] = 0;
  return count > 0;
}
