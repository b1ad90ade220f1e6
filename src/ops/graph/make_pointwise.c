/* make_pointwise.c - rows of the kind pointwise: an instruction of the ISA over broadcast values of one type. */
#include "ops/graph/compute.h"

static atlas_type type_of(const hg_computation *c, value_id value) { return (atlas_type)ops_at(c, value)->type; }

/* Compares bools: the ISA compares numbers only. */
static value_id compare_bools(hg_computation *c, atlas_op op, value_id a, value_id b) {
  value_id differ = ops_binary(c, ATLAS_OP_pxor, a, b);
  return op == ATLAS_OP_set_eq ? ops_unary(c, ATLAS_OP_pnot, differ) : differ;
}

static int is_mixed_comparison(const ops_request *request) {
  if (strncmp(request->row->formula, "set.", 4) != 0) return 0;
  atlas_type a = type_of(request->c, request->inputs[0]), b = type_of(request->c, request->inputs[1]);
  return (atlas_is_integer(a) && atlas_is_float(b)) || (atlas_is_float(a) && atlas_is_integer(b));
}

/* The instruction on predicates that corresponds to one on integers. */
static atlas_op on_bools(atlas_op op) {
  switch (op) {
    case ATLAS_OP_and: return ATLAS_OP_pand;
    case ATLAS_OP_or: return ATLAS_OP_por;
    case ATLAS_OP_xor: return ATLAS_OP_pxor;
    case ATLAS_OP_not: return ATLAS_OP_pnot;
    default: return op;
  }
}

static int is_rounding(atlas_op op) {
  return op == ATLAS_OP_floor || op == ATLAS_OP_ceil || op == ATLAS_OP_trunc || op == ATLAS_OP_round;
}

static value_id unsigned_sign(hg_computation *c, value_id x) {
  value_id zero = ops_full(c, type_of(c, x), 0, &ops_at(c, x)->shape);
  value_id differs = ops_binary(c, ATLAS_OP_set_ne, x, zero);
  return ops_cast(c, differs, type_of(c, x));
}

static value_id select(const ops_request *request) {
  hg_computation *c = request->c;
  value_id values[3] = {request->inputs[0], request->inputs[1], request->inputs[2]};
  if (!ops_agree_types(request, values + 1, 2) || !ops_agree_shapes(request, values, 3)) return 0;
  return ops_pointwise(c, ATLAS_OP_sel, values, 3);
}

/* The count of a shift is u32, whatever is shifted. */
static value_id shift(const ops_request *request, atlas_op op) {
  hg_computation *c = request->c;
  value_id values[2] = {request->inputs[0], ops_cast(c, request->inputs[1], ATLAS_u32)};
  if (values[1] == 0 || !ops_agree_shapes(request, values, 2)) return 0;
  return ops_pointwise(c, op, values, 2);
}

static value_id cast(const ops_request *request) {
  return ops_cast(request->c, request->inputs[0], (atlas_type)request->arguments[0].integers[0]);
}

/* Reinterprets the bits of numbers as another type of the same width. */
static value_id read_as(hg_computation *c, value_id x, atlas_type type) {
  if (type_of(c, x) == type) return x;
  const ops_node *input = ops_at(c, x);
  if (input->kind == OPS_CONSTANT) return ops_constant(c, type, input->bits);
  return ops_add(c, &(ops_node){.kind = OPS_POINTWISE, .op = ATLAS_OP_bitcast, .type = (uint8_t)type, .input_count = 1,
                                .input = {x}, .shape = input->shape});
}

static value_id bitcast(const ops_request *request) {
  hg_computation *c = request->c;
  value_id x = request->inputs[0];
  atlas_type type = (atlas_type)request->arguments[0].integers[0], from = type_of(c, x);
  if (atlas_bytes(type) != atlas_bytes(from) || !atlas_op_has_type(ATLAS_OP_bitcast, type) ||
      !atlas_op_has_type(ATLAS_OP_bitcast, from))
    return ops_refuse(request, HG_INVALID_ARGUMENT,
                      "x is %s and cannot be read as %s: both must be numbers of one width", OPS_TEXT(c, x),
                      atlas_type_name(type));
  return read_as(c, x, type);
}

/* Applies the row's instruction to values of one type and shape. */
static value_id plain(const ops_request *request, atlas_op op) {
  hg_computation *c = request->c;
  value_id values[3] = {0};
  uint32_t count = request->input_count;
  memcpy(values, request->inputs, count * sizeof *values);
  if (is_mixed_comparison(request))
    return ops_agree_shapes(request, values, 2) ? ops_compare_kinds(c, op, values[0], values[1]) : 0;
  if (!ops_agree_types(request, values, count) || !ops_agree_shapes(request, values, count)) return 0;
  atlas_type type = type_of(c, values[0]);
  if (type == ATLAS_bool) {
    if (op == ATLAS_OP_set_eq || op == ATLAS_OP_set_ne) return compare_bools(c, op, values[0], values[1]);
    return ops_pointwise(c, on_bools(op), values, count);
  }
  if (atlas_is_integer(type) && is_rounding(op)) return values[0];
  if (atlas_is_integer(type) && op == ATLAS_OP_fmod) op = ATLAS_OP_rem;
  if (atlas_kind(type) == ATLAS_KIND_UINT && op == ATLAS_OP_abs) return values[0];
  if (atlas_kind(type) == ATLAS_KIND_UINT && op == ATLAS_OP_sign) return unsigned_sign(c, values[0]);
  if (atlas_op_lookup(op)->types != 0 && !atlas_op_has_type(op, type))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "there is none of %s", atlas_type_name(type));
  for (uint32_t i = 0; i < count; i++) /* words of four bytes are u32, whatever the sum's type is */
    if (atlas_op_lookup(op)->operands[1 + i] == 'c') values[i] = read_as(c, values[i], ATLAS_u32);
  return ops_pointwise(c, op, values, count);
}

value_id ops_before_widening(const hg_computation *c, value_id value) {
  const ops_node *node = ops_at(c, value);
  if (node->kind != OPS_POINTWISE || node->op != ATLAS_OP_cvt || node->type != ATLAS_f32) return value;
  atlas_type from = type_of(c, node->input[0]);
  return from == ATLAS_f16 || from == ATLAS_bf16 ? node->input[0] : value;
}

value_id ops_make_pointwise(const ops_request *request) {
  atlas_op op = atlas_op_from_name(request->row->formula);
  switch (op) {
    case ATLAS_OP_sel: return select(request);
    case ATLAS_OP_cvt: return cast(request);
    case ATLAS_OP_bitcast: return bitcast(request);
    case ATLAS_OP_shl:
    case ATLAS_OP_shr: return shift(request, op);
    default: return plain(request, op);
  }
}
