/* make.c - what makers share: refusing, arguments, axes, common types and shapes. */
#include "ops/graph/compute.h"

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

ops_item ops_unsigned_item(uint64_t value) {
  ops_item item = ops_integer_item((int64_t)value);
  item.number = (double)value;
  return item;
}

int ops_is_unsigned(const ops_item *number) {
  return number->is_integer && number->number >= 0x1p63 && number->number <= 0x1p64;
}

int ops_is_beyond(const ops_item *number) {
  return number->is_integer && (number->number < -0x1p63 || number->number > 0x1p64);
}

ops_item ops_real_item(double value) { return (ops_item){.kind = OPS_ITEM_NUMBER, .number = value}; }

int ops_holds(atlas_type type, int64_t value) {
  if (type == ATLAS_bool) return value == 0 || value == 1;
  if (!atlas_is_integer(type) || (value < 0 && atlas_kind(type) == ATLAS_KIND_UINT)) return 0;
  return (int64_t)atlas_convert(ATLAS_i64, type, atlas_convert(type, ATLAS_i64, (uint64_t)value)) == value;
}

int ops_is_whole(double value) {
  return value >= -0x1p62 && value <= 0x1p62 && (double)(int64_t)value == value;
}

static int is_list(ops_word preset) {
  return preset.length > 0 && (preset.text[0] == '[' || ops_word_is(preset, "all"));
}

/* 1 if a default has a point or an exponent, or is infinite: then the argument is a real number. */
int ops_is_real(ops_word preset) {
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
  if (ops_is_real(preset)) {
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
  return ops_is_real(preset) ? "a number" : "one integer";
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
  if (ops_is_real(preset)) return 1;
  if (!item->is_integer) return 0;
  int64_t value = item->integers[0];
  if (ops_choice_count(preset) > 1) return value >= 0 && value < ops_choice_count(preset);
  if (atlas_type_lookup_name(preset.text, preset.length) != ATLAS_NONE) return value > 0 && value < ATLAS_TYPE_COUNT;
  return 1;
}

/* ---- axes, types, shapes ----------------------------------------------------------------------------------------- */

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
                 atlas_is_integer(type) && atlas_is_integer(next) ? "i64" : "f32");
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
  ops_shape own = *shape; /* `shape` may belong to a node, which moves when another is added */
  return ops_broadcast(c, ops_constant(c, type, bits), &own);
}
