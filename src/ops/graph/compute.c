/* compute.c - hg_compute: checks a call against its row, gives its arguments their defaults, and calls the row's maker,
 * which adds the nodes. */
#include "ops/graph/compute.h"

#include <stdio.h>

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static ops_item item_of(const hg_argument *argument, ops_word preset) {
  if (argument->count > HG_MAX_RANK) return (ops_item){.kind = OPS_ITEM_PACK}; /* fits no argument */
  if (argument->count == 1 && argument->has_number) { /* an integer beyond i64 */
    ops_item number = ops_integer_item(argument->integers[0]);
    number.number = argument->number;
    return number;
  }
  if (argument->count > 0) {
    ops_item list = {.kind = OPS_ITEM_LIST, .count = argument->count};
    memcpy(list.integers, argument->integers, sizeof list.integers);
    return list;
  }
  if (!ops_is_real(preset)) { /* an integer given as a number */
    double value = argument->number;
    if (ops_is_whole(value)) return ops_integer_item((int64_t)value);
  }
  return ops_real_item(argument->number);
}

static int take_arguments(ops_request *request, const hg_argument *arguments, size_t count) {
  const char *at = request->row->arguments;
  ops_argument_spec spec;
  size_t known = 0;
  while (ops_next_argument(&at, &spec)) {
    ops_item *item = &request->arguments[known];
    int is_given = known < count && (arguments[known].count > 0 || arguments[known].has_number);
    *item = is_given ? item_of(&arguments[known], spec.preset) : ops_preset(spec.preset);
    if (is_given && !ops_fit_argument(spec.preset, item)) {
      ops_refuse(request, HG_INVALID_ARGUMENT, "'%s' takes %s (%s)", HG_WORD(spec.name.text, spec.name.length),
                 ops_argument_wish(spec.preset), HG_WORD(spec.preset.text, spec.preset.length));
      return 0;
    }
    known++;
  }
  if (count > known) {
    ops_refuse(request, HG_INVALID_ARGUMENT, "%zu arguments are given, of %zu (%s)", count, known,
               request->row->arguments);
    return 0;
  }
  return 1;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static int check_value(const ops_request *request, const ops_input_spec *spec, size_t index, value_id value) {
  (void)index;
  if (value == 0 && spec->is_optional) return 1;
  char *name = (char[HG_WORD_BYTES]){0};
  hg_clip(spec->name.text, spec->name.length, name, HG_WORD_BYTES);
  if (value == 0) return ops_refuse(request, HG_INVALID_ARGUMENT, "its input '%s' is missing", name), 0;
  if (ops_is_value(request->c, value)) return 1;
  return ops_refuse(request, HG_INVALID_ARGUMENT, "%s: %u is no value of this computation", name, (unsigned)value), 0;
}

/* Says what to write instead if the row does not take the type. */
static void advise(ops_word types, const char *name, char *text, size_t bytes) {
  static const atlas_type kinds[] = {ATLAS_bool, ATLAS_i32, ATLAS_f32};
  size_t used = 0;
  text[0] = '\0';
  int is_all = ops_type_is_of(ATLAS_f32, types.text, types.length); /* a row for floats: its inputs are promoted to
                                                                       them */
  for (size_t i = is_all ? 2 : 0; i < 3 && used < bytes; i++)
    if (ops_type_is_of(kinds[i], types.text, types.length))
      used += (size_t)snprintf(text + used, bytes - used, "%scast(%s, %s)", used > 0 ? " or " : "", name,
                               atlas_type_name(kinds[i]));
}

static int check_type(const ops_request *request, const ops_input_spec *spec, size_t index, value_id value) {
  ops_word types = ops_types_part(request->row->types, index);
  if (value == 0 || ops_type_is_of((atlas_type)ops_at(request->c, value)->type, types.text, types.length)) return 1;
  char name[HG_WORD_BYTES], advice[3 * HG_WORD_BYTES];
  hg_clip(spec->name.text, spec->name.length, name, sizeof name);
  advise(types, name, advice, sizeof advice);
  ops_refuse(request, HG_INVALID_ARGUMENT, "%s is %s; it takes %s: %s makes it one", name, OPS_TEXT(request->c, value),
             HG_WORD(types.text, types.length), advice);
  return 0;
}

/* Pairs each input with its name; the last name may stand for many inputs. */
static int check_inputs(const ops_request *request,
                        int (*check)(const ops_request *, const ops_input_spec *, size_t, value_id)) {
  const char *at = request->row->inputs;
  ops_input_spec spec;
  for (uint32_t i = 0; ops_next_input(&at, &spec); i++) {
    do
      if (!check(request, &spec, i, request->inputs[i])) return 0;
    while (spec.is_variadic && ++i < request->input_count);
  }
  return 1;
}

/* Fills in absent inputs behind the given ones. */
static int place_inputs(ops_request *request, const value_id *inputs, size_t count, value_id own[HG_MAX_RANK],
                        int *is_variadic) {
  const char *at = request->row->inputs;
  ops_input_spec spec;
  size_t known = 0;
  request->inputs = own;
  *is_variadic = 0;
  while (ops_next_input(&at, &spec)) {
    if (spec.is_variadic) {
      if (count == known) return ops_refuse(request, HG_INVALID_ARGUMENT, "it takes at least one input"), 0;
      request->inputs = inputs;
      *is_variadic = 1;
      known = count;
      break;
    }
    own[known] = known < count ? inputs[known] : 0;
    known++;
  }
  request->input_count = (uint32_t)known;
  if (count <= known) return 1;
  ops_refuse(request, HG_INVALID_ARGUMENT, "%zu inputs are given, of %zu (%s)", count, known, request->row->inputs);
  return 0;
}

static int take_inputs(ops_request *request, const value_id *inputs, size_t count, value_id own[HG_MAX_RANK]) {
  int is_variadic;
  return place_inputs(request, inputs, count, own, &is_variadic) && check_inputs(request, check_value) &&
         ops_promote_inputs(request, is_variadic ? NULL : own) && check_inputs(request, check_type);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static uint32_t make(const ops_request *request, value_id *results) {
  static value_id (*const makers[])(const ops_request *) = {
      [OPS_KIND_pointwise] = ops_make_pointwise, [OPS_KIND_view] = ops_make_view,
      [OPS_KIND_reduce] = ops_make_reduce,       [OPS_KIND_contract] = ops_make_contract,
      [OPS_KIND_gather] = ops_make_gather,       [OPS_KIND_random] = ops_make_random,
      [OPS_KIND_join] = ops_make_join,           [OPS_KIND_create] = ops_make_create,
      [OPS_KIND_scan] = ops_make_scan,           [OPS_KIND_factor] = ops_make_factor,
      [OPS_KIND_select] = ops_make_select};
  if (request->row->kind == OPS_KIND_formula) return ops_make_formula(request, results);
  if (request->row->kind == OPS_KIND_sort) return ops_make_sort(request, results);
  results[0] = makers[request->row->kind](request);
  return results[0] != 0;
}

/* Remembers what the user called, and every call whose row has a gradient for all of it. */
static int record(const ops_request *request, const value_id *results, uint32_t count, uint32_t first_node) {
  hg_computation *c = request->c;
  const ops_row *row = request->row;
  if (request->depth > 0 && !ops_has_rule(row)) return 1;
  ops_call call = {.op = row->op, .result_count = (uint8_t)count, .depth = request->depth, .first_node = first_node,
                   .numerics = c->numerics};
  call.end_node = (uint32_t)c->nodes.count;
  call.first_argument = (uint32_t)c->arguments.count;
  call.input_count = (uint8_t)(request->input_count < HG_MAX_RANK ? request->input_count : HG_MAX_RANK);
  memcpy(call.inputs, request->inputs, call.input_count * sizeof *call.inputs);
  memcpy(call.results, results, count * sizeof *results);
  size_t argument_count = ops_argument_count(row);
  if ((argument_count == 0 ||
       hg_array_append(&c->allocator, &c->arguments, request->arguments, argument_count) != NULL) &&
      hg_array_append(&c->allocator, &c->calls, &call, 1) != NULL)
    return 1;
  ops_failed(c, HG_OUT_OF_MEMORY, "no memory for %zu calls of a computation", c->calls.count);
  return 0;
}

uint32_t ops_call_row(ops_request *request, const value_id *inputs, size_t count, value_id *results) {
  value_id own[HG_MAX_RANK] = {0};
  uint32_t first_node = (uint32_t)request->c->nodes.count;
  uint32_t made = take_inputs(request, inputs, count, own) ? make(request, results) : 0;
  if (made > 0 && !record(request, results, made, first_node)) made = 0;
  request->inputs = NULL; /* they pointed into this function's memory */
  return made;
}

static uint32_t compute(hg_computation *c, hg_op op, const hg_value *inputs, size_t input_count,
                        const hg_argument *arguments, size_t argument_count, value_id *results) {
  if (c->status != HG_OK) return 0;
  ops_request request = {.c = c, .row = ops_row_of((uint32_t)op), .is_users = 1};
  if (request.row == NULL)
    return ops_failed(c, HG_INVALID_ARGUMENT, "hg_compute: there is no operation %#x", (unsigned)op);
  if ((inputs == NULL && input_count > 0) || (arguments == NULL && argument_count > 0))
    return ops_refuse(&request, HG_INVALID_ARGUMENT, "'%s' is NULL", inputs == NULL ? "inputs" : "arguments");
  if (!take_arguments(&request, arguments, argument_count)) return 0;
  return ops_call_row(&request, inputs, input_count, results);
}

hg_value hg_compute(hg_computation *computation, hg_op op, const hg_value *inputs, size_t input_count,
                    const hg_argument *arguments, size_t argument_count) {
  value_id results[OPS_MAX_RESULTS] = {0};
  if (computation == NULL) return 0;
  uint32_t made = compute(computation, op, inputs, input_count, arguments, argument_count, results);
  return made > 0 ? results[0] : 0;
}

hg_status hg_compute_all(hg_computation *computation, hg_op op, const hg_value *inputs, size_t input_count,
                         const hg_argument *arguments, size_t argument_count, hg_value *results, size_t result_count) {
  value_id own[OPS_MAX_RESULTS];
  if (computation == NULL || (results == NULL && result_count > 0))
    return hg_fail(HG_INVALID_ARGUMENT, "hg_compute_all: '%s' is NULL",
                   computation == NULL ? "computation" : "results");
  if (result_count > 0) memset(results, 0, result_count * sizeof *results);
  uint32_t made = compute(computation, op, inputs, input_count, arguments, argument_count, own);
  if (made > 0 && result_count > made)
    ops_failed(computation, HG_INVALID_ARGUMENT, "%s: %zu results are asked for, of %u", ops_row_of((uint32_t)op)->name,
               result_count, (unsigned)made);
  HG_TRY(hg_computation_status(computation));
  if (result_count > 0) memcpy(results, own, result_count * sizeof *results);
  return HG_OK;
}
