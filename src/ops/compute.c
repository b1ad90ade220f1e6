/* compute.c - hg_compute: a call is checked against its row, its arguments get their defaults, and the row's maker adds
 * the nodes. */
#include "ops/compute.h"

#include "atlas/number.h"
#include "atlas/value.h"

#include <stdarg.h>
#include <stdio.h>

value_id ops_refuse(const ops_request *request, hg_status status, const char *format, ...) {
  char sentence[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  return ops_failed(request->c, status, "%s: %s", request->row->name, sentence);
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

ops_item ops_integer_item(int64_t value) {
  return (ops_item){.kind = OPS_ITEM_NUMBER, .is_integer = 1, .count = 1, .number = (double)value, .integers = {value}};
}

ops_item ops_real_item(double value) { return (ops_item){.kind = OPS_ITEM_NUMBER, .number = value}; }

static int is_list(ops_word preset) {
  return preset.length > 0 && (preset.text[0] == '[' || ops_word_is(preset, "all"));
}

/* A number that has a point or an exponent, or is infinite: the argument is a real number. */
static int is_real(ops_word preset) {
  if (atlas_type_lookup_name(preset.text, preset.length) != ATLAS_NONE) return 0;
  for (size_t i = 0; i < preset.length; i++)
    if (preset.text[i] == '.') return 1;
  ops_word last = {preset.text + preset.length - (preset.length < 3 ? preset.length : 3), preset.length < 3 ? 0 : 3};
  return ops_word_is(last, "inf") || ops_word_is(last, "nan");
}

static ops_item list_preset(ops_word preset) {
  ops_item list = {.kind = OPS_ITEM_LIST, .is_all = preset.text[0] != '['};
  for (size_t i = 1; !list.is_all && i + 1 < preset.length;) {
    size_t end = i;
    while (end + 1 < preset.length && preset.text[end] != ',') end++;
    uint64_t bits = 0;
    atlas_number_parse(ATLAS_i64, preset.text + i, end - i, &bits);
    list.integers[list.count++] = (int64_t)bits;
    i = end + 1;
  }
  return list;
}

ops_item ops_preset(ops_word preset) {
  uint64_t bits = 0;
  if (ops_word_is(preset, "end")) return (ops_item){.kind = OPS_ITEM_ABSENT};
  if (is_list(preset)) return list_preset(preset);
  if (ops_choice_count(preset) > 1) return ops_integer_item(0);
  atlas_type type = atlas_type_lookup_name(preset.text, preset.length);
  if (type != ATLAS_NONE) return ops_integer_item((int64_t)type);
  if (is_real(preset)) {
    atlas_number_parse(ATLAS_f64, preset.text, preset.length, &bits);
    return ops_real_item(atlas_as_f64(bits));
  }
  atlas_number_parse(ATLAS_i64, preset.text, preset.length, &bits);
  return ops_integer_item((int64_t)bits);
}

const char *ops_argument_wish(ops_word preset) {
  if (is_list(preset)) return "integers";
  if (ops_choice_count(preset) > 1) return "one of its words, by number";
  if (atlas_type_lookup_name(preset.text, preset.length) != ATLAS_NONE) return "a type";
  return is_real(preset) ? "a number" : "one integer";
}

int ops_fit_argument(ops_word preset, ops_item *item) {
  int is_number = item->kind == OPS_ITEM_NUMBER;
  if (is_list(preset)) {
    if (is_number && item->is_integer)
      *item = (ops_item){.kind = OPS_ITEM_LIST, .count = 1, .integers = {item->integers[0]}};
    return item->kind == OPS_ITEM_LIST;
  }
  if (item->kind == OPS_ITEM_LIST && item->count == 1 && !item->is_all) *item = ops_integer_item(item->integers[0]);
  if (item->kind != OPS_ITEM_NUMBER) return 0;
  if (is_real(preset)) return 1;
  if (!item->is_integer) return 0;
  int64_t value = item->integers[0];
  if (ops_choice_count(preset) > 1) return value >= 0 && value < ops_choice_count(preset);
  if (atlas_type_lookup_name(preset.text, preset.length) != ATLAS_NONE) return value > 0 && value < ATLAS_TYPE_COUNT;
  return 1;
}

static ops_item item_of(const hg_argument *argument, ops_word preset) {
  if (argument->count > HG_MAX_RANK) return (ops_item){.kind = OPS_ITEM_PACK}; /* fits nowhere */
  if (argument->count > 0) {
    ops_item list = {.kind = OPS_ITEM_LIST, .count = argument->count};
    memcpy(list.integers, argument->integers, sizeof list.integers);
    return list;
  }
  if (!is_real(preset)) { /* an integer that was given as a number */
    double value = argument->number;
    if (value >= -0x1p62 && value <= 0x1p62 && (double)(int64_t)value == value) return ops_integer_item((int64_t)value);
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

static int check_input(const ops_request *request, const ops_input_spec *spec, size_t index, value_id value) {
  hg_computation *c = request->c;
  char *name = (char[HG_WORD_BYTES]){0};
  hg_clip(spec->name.text, spec->name.length, name, HG_WORD_BYTES);
  if (value == 0 && spec->is_optional) return 1;
  if (value == 0) return ops_refuse(request, HG_INVALID_ARGUMENT, "its input '%s' is missing", name), 0;
  if (!ops_is_value(c, value))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s: %u is no value of this computation", name, (unsigned)value), 0;
  atlas_type type = (atlas_type)ops_at(c, value)->type;
  ops_word types = ops_types_part(request->row->types, index);
  if (ops_type_is_of(type, types.text, types.length)) return 1;
  int wants_bool = types.length == 4 && memcmp(types.text, "bool", 4) == 0;
  int wants_integer = types.length == 7 && memcmp(types.text, "integer", 7) == 0;
  ops_refuse(request, HG_INVALID_ARGUMENT, "%s is %s; it takes %s: cast(%s, %s) makes it one", name, OPS_TEXT(c, value),
             HG_WORD(types.text, types.length), name, wants_bool ? "bool" : wants_integer ? "i32" : "f32");
  return 0;
}

/* Fills in absent ones behind those that are given. */
static int take_inputs(ops_request *request, const value_id *inputs, size_t count, value_id own[HG_MAX_RANK]) {
  const char *at = request->row->inputs;
  ops_input_spec spec;
  size_t known = 0;
  request->inputs = own;
  while (ops_next_input(&at, &spec)) {
    if (spec.is_variadic) {
      for (size_t i = known; i < count; i++)
        if (!check_input(request, &spec, i, inputs[i])) return 0;
      if (count == known) return ops_refuse(request, HG_INVALID_ARGUMENT, "it takes at least one input"), 0;
      request->inputs = inputs;
      known = count;
      break;
    }
    own[known] = known < count ? inputs[known] : 0;
    if (!check_input(request, &spec, known, own[known])) return 0;
    known++;
  }
  request->input_count = (uint32_t)known;
  if (count <= known) return 1;
  ops_refuse(request, HG_INVALID_ARGUMENT, "%zu inputs are given, of %zu (%s)", count, known, request->row->inputs);
  return 0;
}

/* ---- what makers share ------------------------------------------------------------------------------------------- */

int ops_axis_of(const ops_request *request, const ops_item *axis, uint32_t rank) {
  int found = ops_axis(axis->integers[0], rank);
  if (found >= 0) return found;
  ops_refuse(request, HG_INVALID_ARGUMENT, "there is no axis %lld of a tensor of rank %u", (long long)axis->integers[0],
             (unsigned)rank);
  return -1;
}

int ops_axes_of(const ops_request *request, const ops_item *axes, uint32_t rank, uint32_t *bits) {
  *bits = axes->is_all ? (1u << rank) - 1 : 0;
  for (uint32_t i = 0; i < axes->count; i++) {
    ops_item axis = ops_integer_item(axes->integers[i]);
    int found = ops_axis_of(request, &axis, rank);
    if (found < 0) return 0;
    if ((*bits >> found & 1) != 0)
      return ops_refuse(request, HG_INVALID_ARGUMENT, "axis %d is named twice", found), 0;
    *bits |= 1u << found;
  }
  return 1;
}

int ops_agree_types(const ops_request *request, value_id *values, uint32_t count) {
  hg_computation *c = request->c;
  atlas_type type = (atlas_type)ops_at(c, values[0])->type;
  for (uint32_t i = 1; i < count; i++) {
    atlas_type next = (atlas_type)ops_at(c, values[i])->type, both = ops_promote(type, next);
    if (both == ATLAS_NONE) {
      ops_refuse(request, HG_INVALID_ARGUMENT, "%s and %s: %s; cast one of them, as in cast(x, %s)",
                 OPS_TEXT(c, values[0]), OPS_TEXT(c, values[i]), ops_promote_rule(type, next),
                 atlas_type_name(atlas_is_float(next) ? next : type));
      return 0;
    }
    type = both;
  }
  for (uint32_t i = 0; i < count; i++)
    if ((values[i] = ops_cast(c, values[i], type)) == 0) return 0;
  return 1;
}

int ops_agree_shapes(const ops_request *request, value_id *values, uint32_t count) {
  hg_computation *c = request->c;
  ops_shape shape = ops_at(c, values[0])->shape;
  for (uint32_t i = 1; i < count; i++)
    if (!ops_broadcast_shapes(&shape, &ops_at(c, values[i])->shape, &shape)) {
      ops_refuse(request, HG_INVALID_ARGUMENT,
                 "%s and %s do not broadcast: counted from the last axis, sizes must be equal or one of them 1",
                 OPS_TEXT(c, values[0]), OPS_TEXT(c, values[i]));
      return 0;
    }
  if (!ops_is_countable(&shape))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "a result of shape %s has more than 2^40 elements",
                      OPS_SHAPE(&shape)),
           0;
  for (uint32_t i = 0; i < count; i++)
    if ((values[i] = ops_broadcast(c, values[i], &shape)) == 0) return 0;
  return 1;
}

value_id ops_binary(hg_computation *c, atlas_op op, value_id a, value_id b) {
  return ops_pointwise(c, op, (value_id[]){a, b}, 2);
}

value_id ops_unary(hg_computation *c, atlas_op op, value_id a) { return ops_pointwise(c, op, &a, 1); }

value_id ops_full(hg_computation *c, atlas_type type, uint64_t bits, const ops_shape *shape) {
  ops_shape own = *shape; /* of a node, maybe, which moves when one is added */
  return ops_broadcast(c, ops_constant(c, type, bits), &own);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

uint32_t ops_make(const ops_request *request, value_id *results) {
  static value_id (*const makers[])(const ops_request *) = {
      [OPS_KIND_pointwise] = ops_make_pointwise, [OPS_KIND_view] = ops_make_view,
      [OPS_KIND_reduce] = ops_make_reduce,       [OPS_KIND_contract] = ops_make_contract,
      [OPS_KIND_gather] = ops_make_gather,       [OPS_KIND_random] = ops_make_random,
      [OPS_KIND_join] = ops_make_join,           [OPS_KIND_create] = ops_make_create};
  if (request->row->kind == OPS_KIND_formula) return ops_make_formula(request, results);
  results[0] = makers[request->row->kind](request);
  return results[0] != 0;
}

/* What the user called, and what has a gradient of its own wherever it was called, is remembered. */
static int record(const ops_request *request, const value_id *results, uint32_t count, uint32_t first_node) {
  hg_computation *c = request->c;
  const ops_row *row = request->row;
  if (request->depth > 0 && (row->kind != OPS_KIND_formula || row->gradient[0] == '\0')) return 1;
  ops_call call = {.op = row->op, .result_count = (uint8_t)count, .depth = request->depth, .first_node = first_node};
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
  if (!take_inputs(request, inputs, count, own)) return 0;
  uint32_t made = ops_make(request, results);
  return made > 0 && record(request, results, made, first_node) ? made : 0;
}

static uint32_t compute(hg_computation *c, hg_op op, const hg_value *inputs, size_t input_count,
                        const hg_argument *arguments, size_t argument_count, value_id *results) {
  if (c->status != HG_OK) return 0;
  ops_request request = {.c = c, .row = ops_row_of((uint32_t)op)};
  if (request.row == NULL)
    return ops_failed(c, HG_INVALID_ARGUMENT, "hg_compute: there is no operation %#x", (unsigned)op);
  if ((inputs == NULL && input_count > 0) || (arguments == NULL && argument_count > 0))
    return ops_refuse(&request, HG_INVALID_ARGUMENT, "'%s' is NULL", inputs == NULL ? "inputs" : "arguments");
  if (!take_arguments(&request, arguments, argument_count)) return 0;
  return ops_call_row(&request, inputs, input_count, results);
}

hg_value hg_compute(hg_computation *computation, hg_op op, const hg_value *inputs, size_t input_count,
                    const hg_argument *arguments, size_t argument_count) {
  value_id results[OPS_MAX_RESULTS];
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
