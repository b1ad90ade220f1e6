/* formula_row.c - a formula from beginning to end: its names, its statements, its results; for rows of the table that
 * are formulas, and for users' formulas. */
#include "ops/graph/formula.h"

#include <stdio.h>

/* ---- names and types --------------------------------------------------------------------------------------------- */

void ops_formula_begin(ops_formula *f, hg_computation *c, const char *text) {
  f->c = c;
  f->text = text;
  f->type = ATLAS_NONE;
  f->rounded = ATLAS_NONE;
  f->name_count = 0;
  f->row = NULL;
  f->is_wide = 0;
  f->failed = 0;
  f->nesting = 0;
  c->parts.element_size = sizeof(ops_part);
  c->operators.element_size = sizeof(uint32_t);
  f->packs = (hg_array){.element_size = sizeof(value_id *)};
}

static int is_narrow(atlas_type type) { return type == ATLAS_f16 || type == ATLAS_bf16; }

/* f->rounded is still what the float inputs promote to. */
static value_id widen(ops_formula *f, value_id value) {
  atlas_type type = (atlas_type)ops_at(f->c, value)->type;
  if (atlas_is_float(type)) f->rounded = f->rounded == ATLAS_NONE ? type : ops_promote(f->rounded, type);
  return is_narrow(type) ? ops_cast(f->c, value, ATLAS_f32) : value;
}

void ops_formula_input(ops_formula *f, ops_word name, value_id value, int widens) {
  atlas_type type = value != 0 ? (atlas_type)ops_at(f->c, value)->type : ATLAS_NONE;
  ops_item item = value != 0 ? ops_value_item(widens ? widen(f, value) : value) : (ops_item){.kind = OPS_ITEM_ABSENT};
  if (value != 0 && item.value == 0) f->failed = 1;
  ops_set_name(f, f->text, name, item, type);
}

static void name_pack(ops_formula *f, ops_word name, const value_id *values, uint32_t count) {
  value_id *wide = hg_allocate(&f->c->allocator, count, sizeof *wide);
  if (wide == NULL || hg_array_append(&f->c->allocator, &f->packs, &wide, 1) == NULL) {
    hg_release(&f->c->allocator, wide);
    ops_failed(f->c, HG_OUT_OF_MEMORY, "no memory for %u inputs of a formula", (unsigned)count);
    f->failed = 1;
    return;
  }
  for (uint32_t i = 0; i < count; i++)
    if ((wide[i] = widen(f, values[i])) == 0) f->failed = 1;
  ops_set_name(f, f->text, name, (ops_item){.kind = OPS_ITEM_PACK, .count = count, .values = wide}, ATLAS_NONE);
}

static void settle_types(ops_formula *f) {
  f->type = f->rounded == ATLAS_f64 ? ATLAS_f64 : ATLAS_f32;
  f->promoted = f->rounded;
  if (!is_narrow(f->rounded) || f->is_wide) f->rounded = ATLAS_NONE;
}

/* ---- statements and results -------------------------------------------------------------------------------------- */

/* `as name` behind a result: the type that the input had. */
static atlas_type type_as(ops_formula *f, ops_word word) {
  const ops_name *name = ops_find_name(f, word);
  atlas_type type = name == NULL ? atlas_type_lookup_name(word.text, word.length) : name->type;
  if (name == NULL && type == ATLAS_NONE) ops_complain(f, word.text, "'as' stands before the name of an input or type");
  return type;
}

static value_id result_of(ops_formula *f, const char *at, const ops_item *item, atlas_type type) {
  value_id value = item->kind == OPS_ITEM_VALUE ? item->value : 0;
  if (item->kind == OPS_ITEM_NUMBER) value = ops_number_of(f, at, item, f->type);
  if (item->kind == OPS_ITEM_LIST || item->kind == OPS_ITEM_PACK) ops_complain(f, at, "a result is one tensor");
  if (value == 0) return 0;
  if (type != ATLAS_NONE) return ops_cast(f->c, value, type);
  int is_wider = f->type == ATLAS_f32 && ops_at(f->c, value)->type == ATLAS_f64;
  if (is_wider && f->row != NULL && !f->is_wide && f->promoted != ATLAS_NONE)
    return ops_cast(f->c, value, f->promoted);
  return f->rounded != ATLAS_NONE && ops_at(f->c, value)->type == ATLAS_f32 ? ops_cast(f->c, value, f->rounded) : value;
}

static value_id evaluate_result(ops_formula *f, uint32_t at) {
  uint32_t end = at + f->parsed.nodes[at].size;
  ops_item item = ops_evaluate(f, end);
  int is_typed = end + 1 < f->parsed.count && f->parsed.nodes[end + 1].kind == OPS_SYNTAX_AS;
  atlas_type type = !f->failed && is_typed ? type_as(f, ops_word_at(f, end + 1)) : ATLAS_NONE;
  value_id result = f->failed ? 0 : result_of(f, ops_text_at(f, at), &item, type);
  if (f->c->status != HG_OK) f->failed = 1;
  return result;
}

static void evaluate_statement(ops_formula *f, uint32_t at) {
  ops_word name = ops_word_at(f, at);
  ops_item item = ops_evaluate(f, at + f->parsed.nodes[at].size);
  if (!f->failed) ops_set_name(f, name.text, name, item, ATLAS_NONE);
}

uint32_t ops_formula_finish(ops_formula *f, uint32_t wanted, value_id *results) {
  uint32_t count = 0;
  settle_types(f);
  for (uint32_t at = 0; at < f->parsed.count && !f->failed; at++) {
    const ops_syntax *node = &f->parsed.nodes[at];
    if (node->kind == OPS_SYNTAX_AS) continue; /* the result before it has handled this node */
    if (node->kind == OPS_SYNTAX_SET) evaluate_statement(f, at);
    else {
      results[count] = wanted >> count & 1 ? evaluate_result(f, at) : 0;
      count++;
    }
    at += node->size;
  }
  for (size_t i = 0; i < f->packs.count; i++) hg_release(&f->c->allocator, ((value_id **)f->packs.data)[i]);
  hg_array_release(&f->c->allocator, &f->packs);
  return f->failed ? 0 : count;
}

static void refuse_text(ops_formula *f, const ops_syntax_error *error) {
  if (error->status == HG_PARSE) ops_complain(f, f->text + error->at, "%s", error->sentence);
  else ops_failed(f->c, HG_OUT_OF_MEMORY, "no memory to read a formula");
  f->failed = 1;
}

uint32_t ops_formula_read(ops_formula *f, uint32_t wanted, value_id *results) {
  ops_syntax_list list = {{.count = 0}, {.count = 0}};
  ops_syntax_error error;
  if (!f->failed && !ops_read_formula(&f->c->allocator, f->text, &list, &error)) refuse_text(f, &error);
  f->parsed = (ops_parsed){list.nodes.data, f->failed ? 0 : (uint32_t)list.nodes.count, list.numbers.data};
  uint32_t count = ops_formula_finish(f, wanted, results);
  ops_syntax_release(&f->c->allocator, &list);
  return count;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Puts "softmax(f32[2, 3]): " before the sentence of an operation inside the formula. */
static void wrap(const ops_request *request) {
  char prefix[400];
  size_t used = (size_t)snprintf(prefix, sizeof prefix, "%s(", request->row->name);
  for (uint32_t i = 0; i < request->input_count && i < 4 && used < sizeof prefix - 64; i++) {
    const char *text = request->inputs[i] != 0 ? OPS_TEXT(request->c, request->inputs[i]) : "-";
    used += (size_t)snprintf(prefix + used, sizeof prefix - used, i == 0 ? "%.60s" : ", %.60s", text);
  }
  if (used < sizeof prefix)
    snprintf(prefix + used, sizeof prefix - used, request->input_count > 4 ? ", ...): " : "): ");
  if (request->c->status != HG_OUT_OF_MEMORY) ops_wrap_failure(request->c, prefix);
}

static int set_names(ops_formula *f, const ops_request *request) {
  const char *at = request->row->inputs;
  ops_input_spec input;
  for (uint32_t i = 0; ops_next_input(&at, &input); i++) {
    if (input.is_variadic) name_pack(f, input.name, request->inputs + i, request->input_count - i);
    else
      ops_formula_input(f, input.name, request->inputs[i], !ops_word_is(ops_types_part(request->row->types, i), "any"));
  }
  at = request->row->arguments;
  ops_argument_spec argument;
  for (uint32_t i = 0; ops_next_argument(&at, &argument); i++)
    ops_set_name(f, f->text, argument.name, request->arguments[i], ATLAS_NONE);
  return !f->failed;
}

/* The position of an argument in its row; -1: there is none of that name. */
static int argument_number(const ops_row *row, const char *name) {
  const char *at = row->arguments;
  ops_argument_spec spec;
  for (int i = 0; ops_next_argument(&at, &spec); i++)
    if (ops_word_is(spec.name, name)) return i;
  return -1;
}

/* Inside a formula, reductions keep their axes; these are dropped here unless the call asks to keep them. */
static int drop_axes(const ops_request *request, value_id *results, uint32_t count) {
  int keep = argument_number(request->row, "keep"), axes = argument_number(request->row, "axes");
  if (keep < 0 || axes < 0 || request->arguments[keep].integers[0] != 0) return 1;
  uint32_t rank = ops_at(request->c, request->inputs[0])->shape.rank, bits;
  if (!ops_axes_of(request, &request->arguments[axes], rank, &bits)) return 0;
  for (uint32_t i = 0; i < count; i++) {
    const ops_shape *shape = &ops_at(request->c, results[i])->shape;
    ops_shape left = {.rank = 0};
    if (shape->rank != rank) continue;
    for (uint32_t k = 0; k < rank; k++)
      if ((bits >> k & 1) == 0) left.size[left.rank++] = shape->size[k];
    if ((results[i] = ops_reshape(request->c, results[i], &left)) == 0) return 0;
  }
  return 1;
}

uint32_t ops_make_formula(const ops_request *request, value_id *results) {
  ops_formula f;
  ops_formula_begin(&f, request->c, request->row->formula);
  f.row = request->row;
  f.nesting = request->depth;
  uint32_t count = 0;
  set_names(&f, request);
  f.parsed = ops_row_formula(request->row);
  count = ops_formula_finish(&f, UINT32_MAX, results);
  if (count > 0 && !drop_axes(request, results, count)) count = 0;
  if (request->c->status != HG_OK) {
    wrap(request);
    return 0;
  }
  return count;
}

hg_value hg_compute_formula(hg_computation *computation, const char *formula, const char *const *names,
                            const hg_value *values, size_t count) {
  hg_computation *c = computation;
  if (c == NULL || c->status != HG_OK) return 0;
  if (formula == NULL || (count > 0 && (names == NULL || values == NULL)))
    return ops_failed(c, HG_INVALID_ARGUMENT, "hg_compute_formula: '%s' is NULL",
                      formula == NULL ? "formula" : names == NULL ? "names" : "values");
  for (size_t i = 0; i < count; i++)
    if (names[i] == NULL || values[i] > c->nodes.count)
      return ops_failed(c, HG_INVALID_ARGUMENT,
                        "hg_compute_formula: names[%zu] is NULL or its value none of this computation", i);
  value_id results[OPS_MAX_RESULTS] = {0};
  ops_formula f;
  ops_formula_begin(&f, c, formula);
  for (size_t i = 0; i < count; i++) ops_formula_input(&f, (ops_word){names[i], strlen(names[i])}, values[i], 1);
  uint32_t made = ops_formula_read(&f, UINT32_MAX, results);
  if (made > 1) return ops_failed(c, HG_PARSE, "formula:1:1: %u results where one is wanted", (unsigned)made);
  if (made == 1 && results[0] == 0) return ops_failed(c, HG_PARSE, "formula:1:1: its result is not given");
  return made == 1 ? results[0] : 0;
}
