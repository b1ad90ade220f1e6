/* expression.c - turns terms into instructions. See expression.h. */
#include "ops/write/expression.h"

#include "atlas/assemble.h"
#include "atlas/insn.h"
#include "atlas/value.h"

static void failed(ops_code *code, hg_status status) {
  if (code->status == HG_OK) code->status = status;
}

/* ---- registers --------------------------------------------------------------------------------------------------- */

uint16_t ops_register(ops_code *code) {
  if (code->next_register == ATLAS_GENERAL_REGISTERS) code->next_register = ATLAS_REG_LANE + 1;
  if (code->next_register < ATLAS_MOST_REGISTERS) return (uint16_t)code->next_register++;
  failed(code, hg_fail(HG_UNSUPPORTED, "a launch whose program has more than %d registers", ATLAS_MOST_REGISTERS));
  return 0;
}

uint16_t ops_index_of(ops_code *code, uint32_t reg) {
  uint16_t index = ops_register(code);
  atlas_emit2(code->builder, ATLAS_OP_cvt, code->index_type, ATLAS_u32, atlas_reg(index), atlas_reg(reg));
  return index;
}

uint16_t ops_lane_index(ops_code *code) {
  uint16_t index = ops_register(code);
  atlas_emit2(code->builder, ATLAS_OP_cvt, code->index_type, ATLAS_u64, atlas_reg(index), atlas_reg(ATLAS_REG_LANE));
  return index;
}

uint16_t ops_launch_index(ops_code *code, atlas_coord coord) {
  return ops_index_of(code, ops_launch_coordinate(code, coord));
}

uint16_t ops_launch_coordinate(ops_code *code, atlas_coord coord) {
  uint16_t to = ops_register(code);
  atlas_emit(code->builder, ATLAS_OP_sreg, ATLAS_u32, 2, atlas_reg(to), atlas_coordinate(coord));
  return to;
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static int is_written(const ops_code *code, uint32_t storage) {
  const ops_group *group = code->terms->group;
  for (uint32_t i = 0; i < group->result_count; i++)
    if (group->storage_of[group->results[i] - 1] == storage + 1) return 1;
  for (uint32_t i = 0; i < code->partial_count; i++)
    if (code->partials[i] == storage) return 1;
  return 0;
}

static int is_read(const ops_code *code, uint32_t storage) {
  for (uint32_t id = 1; id <= code->terms->terms.count; id++) {
    const ops_term *term = ops_term_at(code->terms, id);
    if ((term->kind == TERM_LOAD || term->kind == TERM_GATHER) && term->storage == storage) return 1;
  }
  return 0;
}

uint16_t ops_buffer_of(ops_code *code, uint32_t storage) {
  for (uint32_t i = 0; i < code->step->binding_count; i++)
    if (code->step->bindings[i].storage == storage) return (uint16_t)code->step->bindings[i].slot;
  if (code->step->binding_count == OPS_MAX_BINDINGS) {
    failed(code, hg_fail(HG_UNSUPPORTED, "a launch over more than %d tensors", OPS_MAX_BINDINGS));
    return 0;
  }
  const ops_storage *memory = (const ops_storage *)code->terms->group->plan->storages.data + storage;
  char name[16];
  atlas_name_by_number(name, 't', code->step->binding_count);
  int access = (is_read(code, storage) ? ATLAS_IN : 0) | (is_written(code, storage) ? ATLAS_OUT : 0);
  uint16_t slot = atlas_builder_buffer(code->builder, name, (atlas_type)memory->type, (atlas_access)access);
  code->step->bindings[code->step->binding_count++] = (ops_binding){.slot = slot, .storage = storage};
  return slot;
}

atlas_operand ops_scalar_of(ops_code *code, atlas_type type, uint64_t bits) {
  ops_step *step = code->step;
  bits &= atlas_mask(type);
  for (uint32_t i = 0; i < step->scalar_count; i++)
    if (step->scalars[i].type == type && step->scalars[i].bits == bits)
      return atlas_scalar((uint16_t)step->scalars[i].slot);
  if (step->scalar_count == OPS_MAX_SCALARS) {
    failed(code, hg_fail(HG_UNSUPPORTED, "a launch with more than %d sizes and strides", OPS_MAX_SCALARS));
    return atlas_bits(0);
  }
  char name[16];
  atlas_name_by_number(name, 's', step->scalar_count);
  uint16_t slot = atlas_builder_scalar(code->builder, name, type);
  step->scalars[step->scalar_count++] = (ops_scalar){.slot = slot, .type = (uint8_t)type, .bits = bits};
  return atlas_scalar(slot);
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

/* 1 if 32 bits suffice: no form, at any place of the space, nor any partial sum exceeds them. */
static int is_narrow(const ops_terms *t, const ops_form *form) {
  double least = (double)form->constant, most = least;
  double lengths[OPS_MAX_VARIABLES];
  for (uint32_t i = 0; i < t->variable_count; i++) {
    lengths[i] = i < t->space.rank ? (double)t->space.size[i] : 2147483648.0;
    if (i >= t->space.rank && t->derived[i].kind != OPS_QUOTIENT) lengths[i] = (double)t->derived[i].size;
    if (i >= t->space.rank && t->derived[i].kind == OPS_QUOTIENT) {
      lengths[i] = 1;
      for (uint32_t j = 0; j < t->space.rank; j++) lengths[i] *= (double)t->space.size[j];
      lengths[i] /= (double)t->derived[i].size;
    }
    double reach = (double)form->factor[i] * lengths[i];
    if (reach < 0) least += reach;
    else most += reach;
  }
  return least > -2147483648.0 && most < 2147483648.0;
}

static int is_negative(const ops_form *form) {
  if (form->constant < 0) return 1;
  for (uint32_t i = 0; i < OPS_MAX_VARIABLES; i++)
    if (form->factor[i] < 0) return 1;
  return 0;
}

/* u32 if it holds every index and partial sum, else i32, else i64. */
static atlas_type type_of_indices(const ops_terms *t) {
  double count = 1;
  int has_negative = 0;
  for (uint32_t i = 0; i < t->space.rank; i++) count *= (double)t->space.size[i];
  if (count >= 2147483648.0) return ATLAS_i64;
  for (uint32_t id = 1; id <= t->terms.count; id++) {
    if (!is_narrow(t, &ops_term_at(t, id)->form)) return ATLAS_i64;
    has_negative |= is_negative(&ops_term_at(t, id)->form);
  }
  for (uint32_t i = t->space.rank; i < t->variable_count; i++) {
    if (!is_narrow(t, &t->derived[i].of)) return ATLAS_i64;
    has_negative |= is_negative(&t->derived[i].of);
  }
  const ops_plan *plan = ops_look_at_storages(t->group->plan);
  if (plan->has_large) return ATLAS_i64;
  return has_negative || plan->has_negative ? ATLAS_i32 : ATLAS_u32;
}

/* Marks all terms as not computed. */
static hg_status begin_registers(ops_code *code) {
  const ops_terms *terms = code->terms;
  const hg_allocator *allocator = &terms->group->plan->allocator;
  code->index_type = type_of_indices(terms);
  for (uint32_t i = 0; i < OPS_MAX_VARIABLES; i++) code->variable[i] = OPS_NO_REGISTER;
  code->displaced = OPS_MAX_VARIABLES;
  code->displacement = 0;
  code->neighbours = 0;
  code->drawn.is_there = 0;
  hg_release(allocator, code->registers);
  code->registers = hg_allocate(allocator, terms->terms.count + 1, sizeof *code->registers);
  if (code->registers == NULL) return hg_fail_memory("the program of a launch", terms->terms.count);
  for (uint32_t id = 0; id <= terms->terms.count; id++) code->registers[id] = OPS_NO_REGISTER;
  return HG_OK;
}

hg_status ops_code_begin(ops_code *code, ops_terms *terms, ops_step *step, const char *name) {
  const hg_allocator *allocator = &terms->group->plan->allocator;
  memset(code, 0, sizeof *code);
  code->terms = terms;
  code->step = step;
  step->binding_count = step->scalar_count = 0;
  step->scalars = hg_allocate(allocator, OPS_MAX_SCALARS, sizeof *step->scalars);
  hg_status status = step->scalars == NULL ? hg_fail_memory("the program of a launch", OPS_MAX_SCALARS) : HG_OK;
  if (status == HG_OK) status = begin_registers(code);
  if (status == HG_OK) status = ops_begin_program(terms->group->plan, name, &code->builder);
  if (status != HG_OK) ops_code_drop(code);
  return status;
}

hg_status ops_code_begin_step(ops_code *code, ops_terms *terms, const char *name, const char *kind) {
  ops_step *step = ops_new_step(terms->group->plan);
  if (step == NULL) return HG_OUT_OF_MEMORY;
  step->kind = kind;
  return ops_code_begin(code, terms, step, name);
}

void ops_launch_blocks(ops_code *code, uint64_t x, uint64_t y, uint64_t z, uint32_t lanes) {
  ops_step *step = code->step;
  atlas_builder_block(code->builder, lanes, 1, 1);
  step->lanes = 0;
  step->grid[0] = (uint32_t)x, step->grid[1] = (uint32_t)y, step->grid[2] = (uint32_t)z;
  step->block[0] = lanes, step->block[1] = step->block[2] = 1;
}

hg_status ops_code_again(ops_code *code) { return code->status == HG_OK ? begin_registers(code) : code->status; }

hg_status ops_code_end_all(ops_code *code, ops_terms *terms, hg_status status) {
  hg_status ended = code->builder != NULL ? ops_code_end(code) : HG_OK;
  ops_terms_release(terms);
  return status != HG_OK ? status : ended;
}

void ops_code_drop(ops_code *code) {
  const hg_allocator *allocator = &code->terms->group->plan->allocator;
  atlas_builder_release(code->builder);
  hg_release(allocator, code->registers);
  hg_release(allocator, code->step->scalars);
  code->builder = NULL, code->registers = NULL, code->step->scalars = NULL;
}

hg_status ops_code_end(ops_code *code) {
  hg_status status = code->status;
  if (status == HG_OK) {
    atlas_emit(code->builder, ATLAS_OP_exit, ATLAS_NONE, 0);
    atlas_builder *builder = code->builder;
    code->builder = NULL;
    status = ops_finish_program(code->terms->group->plan, builder, code->step);
  }
  ops_scalar *scalars = code->step->scalars;
  if (status == HG_OK) code->step->scalars = NULL; /* the step owns them now */
  ops_code_drop(code);
  if (status == HG_OK) code->step->scalars = scalars;
  return status;
}

/* ---- forms ------------------------------------------------------------------------------------------------------- */

static atlas_operand index_number(ops_code *code, int64_t value) {
  return ops_scalar_of(code, code->index_type, (uint64_t)value);
}

static void emit2(ops_code *code, atlas_op op, uint16_t to, atlas_operand a, atlas_operand b) {
  atlas_emit(code->builder, op, code->index_type, 3, atlas_reg(to), a, b);
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* 1 if the displacement changes a derived variable by a number that is known. */
static int is_shifted(const ops_code *code, uint32_t i) {
  return i >= code->terms->space.rank && code->neighbours > 1 &&
         (ops_varies(code->terms, &code->terms->derived[i].of) >> code->displaced & 1) != 0;
}

static uint64_t unit_of_variable(const ops_code *code, uint32_t i) {
  if (i < code->terms->space.rank) return i == code->displaced && code->neighbours > 1 ? code->neighbours : 1;
  const ops_derived *derived = &code->terms->derived[i];
  if (derived->kind != OPS_QUOTIENT || (derived->of.constant != 0 && !is_shifted(code, i))) return 1;
  uint64_t unit = ops_unit_of(code, &derived->of);
  return unit % derived->size == 0 ? unit / derived->size : 1;
}

uint64_t ops_unit_of(const ops_code *code, const ops_form *form) {
  uint64_t unit = 0;
  for (uint32_t i = 0; i < code->terms->variable_count; i++)
    if (form->factor[i] != 0)
      unit = common_divisor((uint64_t)(form->factor[i] < 0 ? -form->factor[i] : form->factor[i]) *
                                unit_of_variable(code, i), unit);
  return unit;
}

int ops_neighbours_fit(ops_code *code, uint32_t coordinate, uint32_t neighbours) {
  code->displaced = coordinate, code->neighbours = neighbours;
  int fit = 1;
  for (uint32_t i = code->terms->space.rank; i < code->terms->variable_count; i++) {
    const ops_derived *derived = &code->terms->derived[i];
    if (is_shifted(code, i) && (derived->kind == OPS_CLAMPED || derived->size == 0 || derived->of.constant < 0 ||
                                ops_unit_of(code, &derived->of) % derived->size != 0))
      fit = 0;
  }
  code->displaced = OPS_MAX_VARIABLES, code->neighbours = 0;
  return fit;
}

/* What the writer's displacement adds to a variable, and with it to a form. */
static int64_t shift_of(const ops_code *code, uint32_t i) {
  if (i == code->displaced) return code->displacement;
  if (!is_shifted(code, i)) return 0;
  const ops_derived *derived = &code->terms->derived[i];
  int64_t known = ops_known_of(code, &derived->of), size = (int64_t)derived->size;
  return derived->kind == OPS_QUOTIENT ? known / size : known % size;
}

static int64_t displacement_of(const ops_code *code, const ops_form *form) {
  int64_t sum = 0;
  if (code->displaced >= OPS_MAX_VARIABLES) return 0;
  for (uint32_t i = 0; i < code->terms->variable_count; i++)
    if (form->factor[i] != 0) sum += form->factor[i] * shift_of(code, i);
  return sum;
}

int64_t ops_known_of(const ops_code *code, const ops_form *form) {
  return form->constant + displacement_of(code, form);
}

static atlas_operand sum_of(ops_code *code, const ops_form *form);

/* The register of a variable; a derived one is computed on its first use. Of one that is shifted by what is known the
 * rest: the quotient of a multiple of its size, as that of a remainder is 0. */
static atlas_operand variable(ops_code *code, uint32_t i) {
  if (code->variable[i] != OPS_NO_REGISTER) return atlas_reg(code->variable[i]);
  const ops_derived *derived = &code->terms->derived[i];
  atlas_operand of = is_shifted(code, i) ? sum_of(code, &derived->of) : ops_form_value(code, &derived->of);
  if (derived->kind == OPS_CLAMPED && code->is_inside) return of;
  uint16_t result = ops_register(code);
  int64_t size = (int64_t)derived->size;
  if (derived->kind == OPS_CLAMPED) {
    emit2(code, ATLAS_OP_min, result, of, index_number(code, size - 1));
    if (code->index_type != ATLAS_u32)
      emit2(code, ATLAS_OP_max, result, atlas_reg(result), atlas_int_const(code->index_type, 0));
  } else
    emit2(code, derived->kind == OPS_REMAINDER ? ATLAS_OP_rem : ATLAS_OP_div, result, of, index_number(code, size));
  code->variable[i] = result;
  return atlas_reg(result);
}

static int is_lane(const ops_code *code, uint32_t i) { return code->variable[i] == ATLAS_REG_LANE; }

/* A variable in the forms' type: the lane register is u64, and is narrowed unless it is used as the index itself. */
static atlas_operand variable_value(ops_code *code, uint32_t i) {
  if (!is_lane(code, i)) return variable(code, i);
  code->variable[i] = ops_lane_index(code);
  return atlas_reg(code->variable[i]);
}

/* The sum of the multiples of variables, without what is known; OPERAND_NONE if there are none. */
static atlas_operand sum_of(ops_code *code, const ops_form *form) {
  atlas_operand sum = {.kind = ATLAS_OPERAND_NONE};
  for (uint32_t i = 0; i < code->terms->variable_count; i++) {
    if (form->factor[i] == 0 || (is_shifted(code, i) && code->terms->derived[i].kind == OPS_REMAINDER)) continue;
    atlas_operand value = variable_value(code, i);
    if (sum.kind == ATLAS_OPERAND_NONE && form->factor[i] == 1) {
      sum = value;
      continue;
    }
    uint16_t result = ops_register(code);
    if (form->factor[i] == -1) /* no parameter: machine code reads reversed axes by whole vectors */
      emit2(code, ATLAS_OP_sub, result,
            sum.kind == ATLAS_OPERAND_NONE ? atlas_int_const(code->index_type, 0) : sum, value);
    else if (sum.kind == ATLAS_OPERAND_NONE)
      emit2(code, ATLAS_OP_mul, result, value, index_number(code, form->factor[i]));
    else if (form->factor[i] == 1) emit2(code, ATLAS_OP_add, result, sum, value);
    else
      atlas_emit(code->builder, ATLAS_OP_mad, code->index_type, 4, atlas_reg(result), value,
                 index_number(code, form->factor[i]), sum);
    sum = atlas_reg(result);
  }
  return sum;
}

uint16_t ops_unknown_of(ops_code *code, const ops_form *form) {
  atlas_operand sum = sum_of(code, form);
  uint16_t result = ops_register(code);
  if (sum.kind == ATLAS_OPERAND_NONE)
    atlas_emit(code->builder, ATLAS_OP_movi, ATLAS_u64, 2, atlas_reg(result), atlas_bits(0));
  else
    atlas_emit2(code->builder, code->index_type == ATLAS_i64 ? ATLAS_OP_bitcast : ATLAS_OP_cvt, ATLAS_u64,
                code->index_type, atlas_reg(result), sum);
  return result;
}

atlas_operand ops_form_value(ops_code *code, const ops_form *form) {
  atlas_operand sum = sum_of(code, form);
  int64_t constant = form->constant, displacement = displacement_of(code, form);
  if (sum.kind != ATLAS_OPERAND_NONE && constant == 0 && displacement == 0) return sum;
  uint16_t result = ops_register(code);
  if (sum.kind == ATLAS_OPERAND_NONE) {
    atlas_emit(code->builder, ATLAS_OP_mov, code->index_type, 2, atlas_reg(result),
               constant == 0 ? atlas_int_const(code->index_type, 0) : index_number(code, constant));
  } else if (constant != 0) emit2(code, ATLAS_OP_add, result, sum, index_number(code, constant));
  else atlas_emit(code->builder, ATLAS_OP_mov, code->index_type, 2, atlas_reg(result), sum);
  if (displacement != 0)
    emit2(code, ATLAS_OP_add, result, atlas_reg(result), atlas_int_const(code->index_type, displacement));
  return atlas_reg(result);
}

/* The factor of a dimension with one element is ignored. */
int ops_is_at_lane(const ops_code *code, const ops_form *form) {
  if (code->lane_form == NULL || form->constant != code->lane_form->constant) return 0;
  for (uint32_t i = 0; i < code->terms->variable_count; i++) {
    if (i < code->terms->space.rank && code->terms->space.size[i] == 1) continue;
    if (form->factor[i] != code->lane_form->factor[i]) return 0;
  }
  return 1;
}

atlas_operand ops_memory(ops_code *code, uint32_t storage, const ops_form *form) {
  uint16_t slot = ops_buffer_of(code, storage);
  int64_t displacement = displacement_of(code, form);
  if (ops_is_at_lane(code, form)) return atlas_mem_lane(slot, displacement);
  atlas_operand sum = sum_of(code, form);
  if (sum.kind == ATLAS_OPERAND_NONE && form->constant == 0) return atlas_mem(slot, displacement);
  if (sum.kind == ATLAS_OPERAND_NONE || form->constant != 0) {
    uint16_t result = ops_register(code);
    if (sum.kind == ATLAS_OPERAND_NONE)
      atlas_emit(code->builder, ATLAS_OP_mov, code->index_type, 2, atlas_reg(result),
                 index_number(code, form->constant));
    else emit2(code, ATLAS_OP_add, result, sum, index_number(code, form->constant));
    sum = atlas_reg(result);
  }
  return atlas_mem_reg(slot, atlas_register_of(&sum), displacement);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

void ops_forget(ops_code *code, uint32_t coordinates) {
  if (code->neighbours <= 1) code->drawn.is_there = 0;
  for (uint32_t id = 1; id <= code->terms->terms.count; id++)
    if ((ops_term_at(code->terms, id)->varies & coordinates) != 0) code->registers[id] = OPS_NO_REGISTER;
  for (uint32_t i = code->terms->space.rank; i < code->terms->variable_count; i++)
    if (code->variable[i] != OPS_NO_REGISTER &&
        (ops_varies(code->terms, &code->terms->derived[i].of) & coordinates) != 0)
      code->variable[i] = OPS_NO_REGISTER;
}

void ops_forget_all(ops_code *code) {
  code->drawn.is_there = 0;
  for (uint32_t id = 1; id <= code->terms->terms.count; id++) code->registers[id] = OPS_NO_REGISTER;
  for (uint32_t i = code->terms->space.rank; i < code->terms->variable_count; i++) code->variable[i] = OPS_NO_REGISTER;
}

enum { SCRATCH_PREDICATE = 15 };

/* A bool in a register is a u32, 0 or 1. */
static atlas_type held_as(atlas_type type) { return type == ATLAS_bool ? ATLAS_u32 : type; }

static void predicate_of(ops_code *code, uint32_t predicate, uint16_t reg) {
  atlas_emit(code->builder, ATLAS_OP_set_ne, ATLAS_u32, 3, atlas_pred(predicate), atlas_reg(reg),
             atlas_int_const(ATLAS_u32, 0));
}

static void number_of(ops_code *code, uint16_t reg, uint32_t predicate) {
  atlas_emit(code->builder, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(reg), atlas_pred(predicate),
             atlas_int_const(ATLAS_u32, 1), atlas_int_const(ATLAS_u32, 0));
}

static void load(ops_code *code, const ops_term *term, uint16_t to, atlas_operand memory) {
  atlas_emit(code->builder, ATLAS_OP_ldg, (atlas_type)term->type, 2, atlas_reg(to), memory);
  if (term->type == ATLAS_bool)
    atlas_emit2(code->builder, ATLAS_OP_cvt, ATLAS_u32, ATLAS_bool, atlas_reg(to), atlas_reg(to));
}

static void cast(ops_code *code, const ops_term *term, uint16_t to, atlas_operand from) {
  atlas_type type = (atlas_type)ops_term_at(code->terms, term->input[0])->type;
  if (term->type != ATLAS_bool) {
    atlas_emit2(code->builder, ATLAS_OP_cvt, (atlas_type)term->type, held_as(type), atlas_reg(to), from);
    return;
  }
  atlas_emit(code->builder, ATLAS_OP_set_ne, type, 3, atlas_pred(SCRATCH_PREDICATE), from, atlas_int_const(type, 0));
  number_of(code, to, SCRATCH_PREDICATE);
}

static void pointwise(ops_code *code, const ops_term *term, uint16_t to, const atlas_operand *in) {
  atlas_op op = (atlas_op)term->op;
  atlas_type type = term->input_count == 0 ? ATLAS_NONE : (atlas_type)ops_term_at(code->terms, term->input[0])->type;
  atlas_operand p = atlas_pred(SCRATCH_PREDICATE);
  switch (op) {
  case ATLAS_OP_cvt: cast(code, term, to, in[0]); return;
  case ATLAS_OP_bitcast:
    atlas_emit2(code->builder, op, (atlas_type)term->type, type, atlas_reg(to), in[0]);
    return;
  case ATLAS_OP_sel:
    predicate_of(code, SCRATCH_PREDICATE, atlas_register_of(&in[0]));
    atlas_emit(code->builder, op, held_as((atlas_type)term->type), 4, atlas_reg(to), p, in[1], in[2]);
    return;
  case ATLAS_OP_pand: op = ATLAS_OP_and; break; /* of 0 and 1 */
  case ATLAS_OP_por: op = ATLAS_OP_or; break;
  case ATLAS_OP_pxor: op = ATLAS_OP_xor; break;
  case ATLAS_OP_pnot:
    atlas_emit(code->builder, ATLAS_OP_xor, ATLAS_u32, 3, atlas_reg(to), in[0], atlas_int_const(ATLAS_u32, 1));
    return;
  default: break;
  }
  if (term->type == ATLAS_bool && type != ATLAS_bool) {
    atlas_emit(code->builder, op, type, 3, p, in[0], in[1]);
    number_of(code, to, SCRATCH_PREDICATE);
    return;
  }
  atlas_operand operands[4] = {atlas_reg(to)};
  for (uint32_t i = 0; i < term->input_count; i++) operands[i + 1] = in[i];
  atlas_emit_operands(code->builder, op, held_as((atlas_type)term->type), ATLAS_NONE, operands, term->input_count + 1u);
}

static void range(ops_code *code, const ops_term *term, uint16_t to) {
  atlas_operand value = ops_form_value(code, &term->form), p = atlas_pred(SCRATCH_PREDICATE);
  atlas_emit(code->builder, ATLAS_OP_set_lt, code->index_type, 3, p, value, index_number(code, (int64_t)term->extent));
  if (is_negative(&term->form)) {
    atlas_operand other = atlas_pred(SCRATCH_PREDICATE - 1);
    atlas_emit(code->builder, ATLAS_OP_set_ge, code->index_type, 3, other, value, atlas_int_const(code->index_type, 0));
    atlas_emit(code->builder, ATLAS_OP_pand, ATLAS_NONE, 3, p, p, other);
  }
  number_of(code, to, SCRATCH_PREDICATE);
}

/* An index beyond every storage, also with a form of that type added. */
#define NOWHERE_32 (UINT64_C(1) << 31)
#define NOWHERE_64 (UINT64_C(1) << 62)

/* An index out of range becomes the lane's own fault: it is replaced by an address that no storage has. What follows
 * from the index is computed apart from the rest, which may vary where the index does not. */
static void gather(ops_code *code, const ops_term *term, uint16_t to, uint16_t number) {
  atlas_type type = (atlas_type)ops_term_at(code->terms, term->input[0])->type;
  int64_t displacement = displacement_of(code, &term->form), all = code->displacement;
  code->displacement = 0; /* it belongs to the access, so that neighbours have one index */
  atlas_operand base = ops_form_value(code, &term->form), p = atlas_pred(SCRATCH_PREDICATE);
  code->displacement = all;
  atlas_operand extent = ops_scalar_of(code, ATLAS_i64, term->extent);
  uint16_t index = ops_register(code), other = ops_register(code);
  atlas_emit2(code->builder, type == ATLAS_i64 ? ATLAS_OP_bitcast : ATLAS_OP_cvt, ATLAS_i64, type, atlas_reg(index),
              atlas_reg(number));
  if (term->bounds == OPS_WRAP) {
    atlas_emit(code->builder, ATLAS_OP_add, ATLAS_i64, 3, atlas_reg(other), atlas_reg(index), extent);
    atlas_emit(code->builder, ATLAS_OP_set_lt, ATLAS_i64, 3, p, atlas_reg(index), atlas_int_const(ATLAS_i64, 0));
    atlas_emit(code->builder, ATLAS_OP_sel, ATLAS_i64, 4, atlas_reg(index), p, atlas_reg(other), atlas_reg(index));
  }
  if (term->bounds == OPS_CLAMP) {
    atlas_emit(code->builder, ATLAS_OP_add, ATLAS_i64, 3, atlas_reg(other), extent, atlas_int_const(ATLAS_i64, -1));
    atlas_emit(code->builder, ATLAS_OP_min, ATLAS_i64, 3, atlas_reg(index), atlas_reg(index), atlas_reg(other));
    atlas_emit(code->builder, ATLAS_OP_max, ATLAS_i64, 3, atlas_reg(index), atlas_reg(index),
               atlas_int_const(ATLAS_i64, 0));
  }
  atlas_type reach = code->index_type == ATLAS_u32 ? ATLAS_u32 : ATLAS_i64; /* no index is negative or exceeds 2^31 */
  uint16_t at = ops_register(code);
  if (reach == ATLAS_i64) atlas_emit(code->builder, ATLAS_OP_mov, reach, 2, atlas_reg(at), atlas_reg(index));
  else atlas_emit2(code->builder, ATLAS_OP_cvt, reach, ATLAS_i64, atlas_reg(at), atlas_reg(index));
  atlas_emit(code->builder, ATLAS_OP_mul, reach, 3, atlas_reg(at), atlas_reg(at),
             ops_scalar_of(code, reach, (uint64_t)term->stride));
  if (term->bounds != OPS_CLAMP) {
    atlas_emit2(code->builder, ATLAS_OP_bitcast, ATLAS_u64, ATLAS_i64, atlas_reg(other), atlas_reg(index));
    atlas_emit(code->builder, ATLAS_OP_set_lt, ATLAS_u64, 3, p, atlas_reg(other),
               ops_scalar_of(code, ATLAS_u64, term->extent));
    atlas_emit(code->builder, ATLAS_OP_sel, reach, 4, atlas_reg(at), p, atlas_reg(at),
               atlas_bits(reach == ATLAS_u32 ? NOWHERE_32 : NOWHERE_64));
  }
  if (reach != code->index_type)
    atlas_emit2(code->builder, ATLAS_OP_cvt, reach, code->index_type, atlas_reg(other), base);
  atlas_emit(code->builder, ATLAS_OP_add, reach, 3, atlas_reg(at), atlas_reg(at),
             reach != code->index_type ? atlas_reg(other) : base);
  load(code, term, to, atlas_mem_reg(ops_buffer_of(code, term->storage), at, displacement));
}

/* 1 if an input of a term can be part of the instruction: a constant, which needs no register. */
static int is_immediate(const ops_term *user, const ops_term *input, uint32_t place) {
  if (input->kind != TERM_CONSTANT || user->kind != TERM_POINTWISE || input->type == ATLAS_bool) return 0;
  if (atlas_kind((atlas_type)input->type) == ATLAS_KIND_STORAGE || user->op == ATLAS_OP_cvt) return 0;
  if (user->op == ATLAS_OP_bitcast || (user->op == ATLAS_OP_sel && place == 0)) return 0;
  return 1;
}

/* Constants that mean something to the compiler, whatever computation they stand in. */
static int is_plain(const ops_term *term) {
  atlas_type type = (atlas_type)term->type;
  double value;
  uint64_t bits = atlas_convert(ATLAS_f64, type, term->bits);
  memcpy(&value, &bits, sizeof value);
  return value == 0 || value == 0.5 || value == 1 || value == 2 || value == -1;
}

static int constant_varies(const ops_code *code, const ops_term *term) {
  return code->terms->group->plan->target.constants_vary && term->type != ATLAS_bool && !is_plain(term) &&
         code->step->scalar_count < OPS_MAX_SCALARS / 2;
}

/* A constant as an operand. Where other computations have another one, it is a scalar, so that the programs have the
 * same text. */
static atlas_operand constant_of(ops_code *code, const ops_term *term) {
  return constant_varies(code, term) ? ops_scalar_of(code, (atlas_type)term->type, term->bits) : atlas_bits(term->bits);
}

static void compute(ops_code *code, const ops_term *term, uint16_t to, const atlas_operand *in) {
  switch ((ops_term_kind)term->kind) {
  case TERM_CONSTANT:
    if (term->type == ATLAS_bool)
      atlas_emit(code->builder, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(to), atlas_bits(term->bits != 0));
    else if (atlas_kind((atlas_type)term->type) == ATLAS_KIND_STORAGE) {
      atlas_emit(code->builder, ATLAS_OP_movi, ATLAS_f32, 2, atlas_reg(to),
                 atlas_bits(atlas_convert(ATLAS_f32, (atlas_type)term->type, term->bits)));
      atlas_emit2(code->builder, ATLAS_OP_cvt, (atlas_type)term->type, ATLAS_f32, atlas_reg(to), atlas_reg(to));
    } else {
      atlas_op op = constant_varies(code, term) ? ATLAS_OP_mov : ATLAS_OP_movi;
      atlas_emit(code->builder, op, (atlas_type)term->type, 2, atlas_reg(to), constant_of(code, term));
    }
    return;
  case TERM_COORDINATE: {
    atlas_operand value = ops_form_value(code, &term->form);
    if (code->index_type == ATLAS_i64) atlas_emit(code->builder, ATLAS_OP_mov, ATLAS_i64, 2, atlas_reg(to), value);
    else atlas_emit2(code->builder, ATLAS_OP_cvt, ATLAS_i64, code->index_type, atlas_reg(to), value);
    return;
  }
  case TERM_RANGE: range(code, term, to); return;
  case TERM_LOAD: load(code, term, to, ops_memory(code, term->storage, &term->form)); return;
  case TERM_GATHER: gather(code, term, to, atlas_register_of(&in[0])); return;
  case TERM_POINTWISE: pointwise(code, term, to, in); return;
  case TERM_RANDOM:
    ops_draw(code, term, to, atlas_register_of(&in[0]), atlas_register_of(&in[1]));
    return;
  case TERM_BOUND:
    failed(code, hg_fail(HG_UNSUPPORTED, "a reduction's result is asked for before it is there"));
    return;
  }
}

uint16_t ops_value(ops_code *code, term_id id) {
  if (code->registers[id] != OPS_NO_REGISTER) return code->registers[id];
  if (code->status != HG_OK) return 0;
  const ops_term *term = ops_term_at(code->terms, id);
  atlas_operand in[3] = {{0}};
  if (term->input_count == 3 && ops_is_known(code, term->input[0]))
    return code->registers[id] = ops_value(code, term->input[2 - (code->holds >> term->input[0] & 1)]);
  for (uint32_t i = 0; i < term->input_count; i++) {
    const ops_term *input = ops_term_at(code->terms, term->input[i]);
    in[i] = is_immediate(term, input, i) ? constant_of(code, input) : atlas_reg(ops_value(code, term->input[i]));
  }
  uint16_t to = ops_register(code);
  compute(code, term, to, in);
  code->registers[id] = to;
  return to;
}

void ops_store(ops_code *code, uint32_t storage, const ops_form *form, atlas_type type, uint16_t reg) {
  uint16_t value = reg;
  atlas_operand memory = ops_memory(code, storage, form);
  if (type == ATLAS_bool) {
    value = ops_register(code);
    atlas_emit2(code->builder, ATLAS_OP_cvt, ATLAS_bool, ATLAS_u32, atlas_reg(value), atlas_reg(reg));
  }
  atlas_emit(code->builder, ATLAS_OP_stg, type, 2, memory, atlas_reg(value));
}

static void store_result(ops_code *code, uint32_t i, uint32_t storage, const term_id *roots, const ops_form *places) {
  const ops_group *group = code->terms->group;
  atlas_type type = (atlas_type)ops_at(group->computation, group->results[i])->type;
  ops_store(code, storage, &places[i], type, ops_value(code, roots[i]));
}

void ops_store_results(ops_code *code, const term_id *roots, const ops_form *places) {
  enum { OTHERS, COMPUTED, STORED, ROUNDS };
  const ops_group *group = code->terms->group;
  for (int round = OTHERS; round < ROUNDS; round++)
    for (uint32_t i = 0; i < group->result_count && code->status == HG_OK; i++) {
      uint32_t storage = group->storage_of[group->results[i] - 1] - 1;
      if (ops_is_over_input(group->plan, storage) != (round != OTHERS)) continue;
      if (round == COMPUTED) ops_value(code, roots[i]);
      else store_result(code, i, storage, roots, places);
    }
}
