/* make_random.c - rows of the kind random: words of a Philox sequence, and numbers made from them. */
#include "ops/graph/compute.h"

#include "atlas/value.h"

#include <string.h>

static value_id number(hg_computation *c, atlas_type type, double value, const ops_shape *shape) {
  return ops_broadcast(c, ops_number(c, type, value), shape);
}

static ops_shape flat_shape(uint64_t rows, uint64_t columns) {
  return (ops_shape){.rank = columns == 0 ? 1u : 2u, .size = {rows, columns}};
}

/* Elements of a shape, in C order: words (u32), or fractions of a word (f32) or of two (f64). Each 2^shared elements
 * have `words` together; an element's are those from number `first` of them on. */
static value_id drawn(const ops_request *request, const ops_shape *shape, atlas_type type, ops_fraction which,
                      uint32_t shared, uint32_t words, uint32_t first) {
  hg_computation *c = request->c;
  value_id key = ops_cast(c, request->inputs[0], ATLAS_u64);
  value_id counter =
      request->inputs[1] == 0 ? ops_constant(c, ATLAS_u64, 0) : ops_cast(c, request->inputs[1], ATLAS_u64);
  if (key == 0 || counter == 0) return 0;
  return ops_add(c, &(ops_node){.kind = OPS_RANDOM, .type = (uint8_t)type, .input = {key, counter},
                                .reduce = (uint8_t)which, .axis = (uint8_t)shared, .axes = words, .bits = first,
                                .shape = *shape});
}

static value_id words(const ops_request *request, const ops_shape *shape) {
  return drawn(request, shape, ATLAS_u32, OPS_BELOW_ONE, 0, 1, 0);
}

/* Element i of a sequence takes word i, or for f64 words 2i and 2i + 1. */
static value_id fractions(const ops_request *request, const ops_shape *shape, atlas_type type, ops_fraction which) {
  return drawn(request, shape, type, which, 0, type == ATLAS_f64 ? 2 : 1, 0);
}

/* a << 32 | b */
value_id ops_long_word(hg_computation *c, value_id a, value_id b) {
  if (a == 0 || b == 0) return 0;
  value_id high = ops_cast(c, a, ATLAS_u64), low = ops_cast(c, b, ATLAS_u64);
  high = ops_binary(c, ATLAS_OP_shl, high, ops_full(c, ATLAS_u32, 32, &ops_at(c, a)->shape));
  return ops_binary(c, ATLAS_OP_or, high, low);
}

/* x * scale + shift; a step that changes nothing is left out. */
static value_id moved(hg_computation *c, value_id x, double scale, double shift) {
  if (x == 0) return 0;
  ops_shape shape = ops_at(c, x)->shape;
  atlas_type type = (atlas_type)ops_at(c, x)->type;
  if (!(scale < 1 || scale > 1) && !(shift < 0 || shift > 0)) return x;
  return ops_pointwise(c, ATLAS_OP_fma, (value_id[]){x, number(c, type, scale, &shape), number(c, type, shift, &shape)},
                       3);
}

/* The type of the numbers, and the type they are computed in: f32 for 16-bit floats. */
static int float_type(const ops_request *request, atlas_type *type, atlas_type *wide) {
  *type = (atlas_type)request->arguments[3].integers[0];
  *wide = *type == ATLAS_f64 ? ATLAS_f64 : ATLAS_f32;
  if (atlas_is_float(*type)) return 1;
  ops_refuse(request, HG_INVALID_ARGUMENT, "its numbers are floats, not %s: cast them", atlas_type_name(*type));
  return 0;
}

static double value_of(atlas_type type, uint64_t bits) {
  double value;
  uint64_t wide = atlas_convert(ATLAS_f64, type, bits);
  memcpy(&value, &wide, sizeof value);
  return value;
}

static uint64_t nearest(atlas_type type, double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return atlas_convert(type, ATLAS_f64, bits);
}

/* The bits of the type's greatest number below x, which is not -inf. */
static uint64_t below(atlas_type type, double x) {
  uint64_t bits = nearest(type, x), sign = 1ull << (atlas_type_bits(type) - 1);
  if (value_of(type, bits) >= x) bits = (bits & ~sign) == 0 ? sign | 1 : (bits & sign) != 0 ? bits + 1 : bits - 1;
  return bits;
}

/* Checks that there are numbers from low, rounded to the type, to below high. */
static int bounds_fit(const ops_request *request, atlas_type type, double low, double high) {
  double first = value_of(type, nearest(type, low)), end = value_of(type, nearest(type, high));
  if (!(low <= high) || first - first != 0 || end - end != 0)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "from %s to below %s: bounds are finite %s, the lower one first",
                      OPS_NUMBER(low), OPS_NUMBER(high), atlas_type_name(type)),
           0;
  if (low < high && value_of(type, below(type, high)) < first)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "there is no %s from %s to below %s: take a wider type",
                      atlas_type_name(type), OPS_NUMBER(low), OPS_NUMBER(high)),
           0;
  return 1;
}

/* unit * (high - low) + low. A width that the type does not have is halved, and the result doubled. */
static value_id spread(hg_computation *c, value_id unit, double low, double high) {
  if (unit == 0) return 0;
  atlas_type type = (atlas_type)ops_at(c, unit)->type;
  double width = value_of(type, nearest(type, high - low));
  if (width - width == 0) return moved(c, unit, high - low, low);
  value_id half = moved(c, unit, high / 2 - low / 2, low / 2);
  ops_shape shape = ops_at(c, unit)->shape;
  return ops_binary(c, ATLAS_OP_mul, half, number(c, type, 2, &shape));
}

static value_id uniform(const ops_request *request, const ops_shape *shape) {
  hg_computation *c = request->c;
  atlas_type type, wide;
  double low = request->arguments[1].number, high = request->arguments[2].number;
  if (!float_type(request, &type, &wide) || !bounds_fit(request, type, low, high)) return 0;
  value_id unit = fractions(request, shape, wide, OPS_BELOW_ONE);
  value_id result = spread(c, unit, low, high);
  if (result == 0 || low >= high || (result == unit && type == wide)) return ops_cast(c, result, type);
  value_id last = ops_full(c, type, below(type, high), shape); /* rounding may have given high */
  return ops_binary(c, ATLAS_OP_min, ops_cast(c, result, type), last);
}

/* Numbers in (0, 1), of which f16 and bf16 would round some to 1: then of f32. */
static value_id uniform_open(const ops_request *request, const ops_shape *shape) {
  atlas_type type = (atlas_type)request->arguments[1].integers[0];
  if (!atlas_is_float(type))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "its numbers are floats, not %s: cast them", atlas_type_name(type));
  return fractions(request, shape, type == ATLAS_f64 ? ATLAS_f64 : ATLAS_f32, OPS_INSIDE);
}

/* 1 in elements with an even number in C order. */
static value_id is_even(hg_computation *c, const ops_shape *shape) {
  uint64_t count = ops_count(shape), rows = count / 2 + count % 2;
  ops_shape pairs = flat_shape(rows, 2), all = flat_shape(2 * rows, 0), cut = flat_shape(count, 0);
  ops_view front = {.axis = {0}, .step = {1}, .start = {0}};
  value_id side = ops_reshape(c, ops_coordinate(c, &pairs, 1), &all);
  side = ops_reshape(c, ops_view_of(c, side, &front, &cut), shape);
  return ops_binary(c, ATLAS_OP_set_eq, side, ops_full(c, ATLAS_i64, 0, shape));
}

/* Box and Muller 1958: elements 2i and 2i + 1 are r cos and r sin of the angle 2 pi v with r = sqrt(-2 log u), where u
 * and v are fractions of words 2i and 2i + 1 (f64: of two words each), u above 0. */
static value_id normal(const ops_request *request, const ops_shape *shape) {
  hg_computation *c = request->c;
  atlas_type own, type;
  double mean = request->arguments[1].number, deviation = request->arguments[2].number;
  if (!float_type(request, &own, &type)) return 0;
  if (mean - mean != 0 || !(deviation >= 0) || deviation - deviation != 0)
    return ops_refuse(request, HG_INVALID_ARGUMENT,
                      "mean is %s and deviation %s: they are finite, the latter not below 0", OPS_NUMBER(mean),
                      OPS_NUMBER(deviation));
  uint32_t each = type == ATLAS_f64 ? 2 : 1;
  value_id u = drawn(request, shape, type, OPS_ABOVE_ZERO, 1, 2 * each, 0);
  value_id v = drawn(request, shape, type, OPS_BELOW_ONE, 1, 2 * each, each);
  value_id square = ops_binary(c, ATLAS_OP_mul, ops_unary(c, ATLAS_OP_log, u), number(c, type, -2, shape));
  value_id radius = ops_unary(c, ATLAS_OP_sqrt, square);
  value_id half_turns = ops_binary(c, ATLAS_OP_mul, v, number(c, type, 2, shape));
  value_id sides[3] = {is_even(c, shape), ops_unary(c, ATLAS_OP_cospi, half_turns),
                       ops_unary(c, ATLAS_OP_sinpi, half_turns)};
  value_id result = ops_binary(c, ATLAS_OP_mul, radius, ops_pointwise(c, ATLAS_OP_sel, sides, 3));
  return ops_cast(c, moved(c, result, deviation, mean), own);
}

/* The high half of word * range; for a range of more than 32 bits element i takes words 2i and 2i + 1. */
static value_id chosen_below(const ops_request *request, const ops_shape *shape, uint64_t range) {
  hg_computation *c = request->c;
  if (range <= UINT32_MAX) {
    value_id word = words(request, shape);
    return word == 0 ? 0 : ops_binary(c, ATLAS_OP_mulhi, word, ops_full(c, ATLAS_u32, range, shape));
  }
  value_id word = ops_long_word(c, drawn(request, shape, ATLAS_u32, OPS_BELOW_ONE, 0, 2, 0),
                                drawn(request, shape, ATLAS_u32, OPS_BELOW_ONE, 0, 2, 1));
  return word == 0 ? 0 : ops_binary(c, ATLAS_OP_mulhi, word, ops_full(c, ATLAS_u64, range, shape));
}

static value_id integers(const ops_request *request, const ops_shape *shape) {
  hg_computation *c = request->c;
  int64_t low = request->arguments[1].integers[0], high = request->arguments[2].integers[0];
  atlas_type type = (atlas_type)request->arguments[3].integers[0];
  uint64_t range = (uint64_t)high - (uint64_t)low;
  if (high <= low || range > INT64_MAX || !atlas_is_integer(type))
    return ops_refuse(request, HG_INVALID_ARGUMENT,
                      "integers from %lld to below %lld as %s: there must be 1 to 2^63 - 1 of them, of an integer type",
                      (long long)low, (long long)high, atlas_type_name(type));
  if (!ops_holds(type, low) || (type != ATLAS_u64 && !ops_holds(type, high - 1)))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "integers from %lld to below %lld are not all %s", (long long)low,
                      (long long)high, atlas_type_name(type));
  value_id chosen = chosen_below(request, shape, range);
  if (chosen == 0) return 0;
  chosen = ops_cast(c, chosen, ATLAS_i64);
  chosen = ops_binary(c, ATLAS_OP_add, chosen, ops_full(c, ATLAS_i64, (uint64_t)low, shape));
  return ops_cast(c, chosen, type);
}

value_id ops_make_random(const ops_request *request) {
  ops_shape shape;
  if (!ops_shape_of(request, &request->arguments[0], &shape)) return 0;
  for (uint32_t i = 0; i < 2; i++)
    if (request->inputs[i] != 0 && ops_at(request->c, request->inputs[i])->shape.rank != 0)
      return ops_refuse(request, HG_INVALID_ARGUMENT, "key and counter are one number each, not %s",
                        OPS_TEXT(request->c, request->inputs[i]));
  switch (request->row->op) {
    case HG_OP_uniform: return uniform(request, &shape);
    case HG_OP_uniform_open: return uniform_open(request, &shape);
    case HG_OP_normal: return normal(request, &shape);
    case HG_OP_integers: return integers(request, &shape);
    default: return words(request, &shape);
  }
}
