/* select.c - elements where a mask holds, in their order.
 *
 * A block has OPS_SELECT_PART neighbouring elements of a row, one a lane. How many hold in the parts before it has been
 * summed (the node's input 2), so that a lane's element goes to that sum plus the number of lanes before it whose
 * elements hold. What is left of the result is not written.
 *
 * All conditions are those of lanes: on a processor a block is straight-line code. */
#include "ops/write/expression.h"

#include <string.h>

enum { ROW, PART, LANE, IS_THERE = 0 /* a predicate */ };

typedef struct selection {
  const ops_node *node;
  ops_terms terms;
  ops_code code;
  atlas_builder *b;
  uint64_t elements, size; /* of a row; of a row of the result */
  uint32_t storage;
  atlas_type index; /* of places */
  term_id value, mask, before, count; /* before: how many hold in the parts before; count: in the row */
} selection;

/* 1 if 32 bits do not hold all places. */
static int is_large(const selection *s, const ops_shape *space) {
  const ops_plan *plan = ops_look_at_storages(s->terms.group->plan);
  return plan->has_large || plan->has_negative || ops_count(space) > INT32_MAX;
}

static hg_status begin(selection *s, const ops_group *group) {
  value_id result = group->results[0];
  s->node = ops_at(group->computation, result);
  s->storage = group->storage_of[result - 1] - 1;
  uint32_t rank = s->node->shape.rank;
  s->size = s->node->shape.size[rank - 1];
  s->elements = ops_at(group->computation, s->node->input[1])->shape.size[rank - 1];
  uint64_t parts = (s->elements + OPS_SELECT_PART - 1) / OPS_SELECT_PART;
  ops_shape space = {.rank = 3, .size = {rank == 2 ? s->node->shape.size[0] : 1, parts, OPS_SELECT_PART}};
  ops_form own[2] = {{.factor = {[ROW] = 1}}, {.factor = {[PART] = OPS_SELECT_PART, [LANE] = 1}}};
  ops_form part[2] = {own[0], {.factor = {[PART] = 1}}}, last[2] = {own[0], {.constant = (int64_t)parts}};
  uint32_t first = 2 - rank; /* of a vector there is no row */
  ops_terms_begin(&s->terms, group, &space);
  HG_TRY(ops_term_of(&s->terms, s->node->input[0], own + first, &s->value));
  HG_TRY(ops_term_of(&s->terms, s->node->input[1], own + first, &s->mask));
  HG_TRY(ops_term_of(&s->terms, s->node->input[2], part + first, &s->before));
  HG_TRY(ops_term_of(&s->terms, s->node->input[2], last + first, &s->count));
  HG_TRY(ops_code_begin_step(&s->code, &s->terms, "select", "select"));
  s->b = s->code.builder;
  s->index = is_large(s, &space) ? ATLAS_i64 : ATLAS_u32;
  s->code.index_type = s->index;
  if (space.size[0] * parts > INT32_MAX)
    return hg_fail(HG_UNSUPPORTED, "a selection of %llu elements takes more than %d blocks of a launch; select parts",
                   (unsigned long long)(space.size[0] * s->elements), INT32_MAX);
  ops_launch_blocks(&s->code, space.size[0] * parts, 1, 1, OPS_SELECT_PART);
  return HG_OK;
}

static atlas_operand scalar(selection *s, uint64_t value) { return ops_scalar_of(&s->code, s->index, value); }

static uint16_t emit(selection *s, atlas_op op, atlas_type type, atlas_operand a, atlas_operand b) {
  uint16_t to = ops_register(&s->code);
  atlas_emit(s->b, op, type, 3, atlas_reg(to), a, b);
  return to;
}

static uint16_t converted(selection *s, atlas_type to_type, atlas_type type, uint16_t from) {
  if (to_type == type) return from;
  uint16_t to = ops_register(&s->code);
  atlas_emit2(s->b, ATLAS_OP_cvt, to_type, type, atlas_reg(to), atlas_reg(from));
  return to;
}

/* A new register with a lane's own value of a type, 0 so far. */
static uint16_t zero_of(selection *s, atlas_type type) {
  uint16_t to = ops_register(&s->code);
  atlas_emit(s->b, ATLAS_OP_movi, type, 2, atlas_reg(to), atlas_bits(0));
  return to;
}

static void find_place(selection *s) {
  uint16_t *at = s->code.variable, block = ops_launch_index(&s->code, ATLAS_COORD_BLOCK_X);
  uint64_t rows = s->terms.space.size[0], parts = s->terms.space.size[1];
  at[PART] = block, at[LANE] = ops_index_of(&s->code, ATLAS_REG_BLOCK_LANE);
  at[ROW] = rows == 1 ? zero_of(s, s->index) : emit(s, ATLAS_OP_div, s->index, atlas_reg(block), scalar(s, parts));
  if (rows > 1) at[PART] = emit(s, ATLAS_OP_rem, s->index, atlas_reg(block), scalar(s, parts));
}

/* The lane's element, and whether it is to be taken: u32. */
static uint16_t read_element(selection *s, uint16_t value, atlas_type type) {
  const uint16_t *at = s->code.variable;
  uint32_t absent = atlas_builder_label(s->b, NULL);
  uint16_t holds = zero_of(s, ATLAS_u32), place = ops_register(&s->code);
  atlas_emit(s->b, ATLAS_OP_mad, s->index, 4, atlas_reg(place), atlas_reg(at[PART]), scalar(s, OPS_SELECT_PART),
             atlas_reg(at[LANE]));
  if (s->elements % OPS_SELECT_PART != 0)
    ops_branch_unless(s->b, ATLAS_OP_set_lt, s->index, atlas_reg(place), scalar(s, s->elements), absent);
  atlas_emit(s->b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(holds), atlas_reg(ops_value(&s->code, s->mask)));
  atlas_emit(s->b, ATLAS_OP_mov, type, 2, atlas_reg(value), atlas_reg(ops_value(&s->code, s->value)));
  atlas_builder_place(s->b, absent);
  ops_forget_all(&s->code);
  return holds;
}

/* Stores a value at a place of the row of the result. */
static void put(selection *s, uint16_t place, uint16_t value) {
  const ops_form own[2] = {{.factor = {[ROW] = 1}}, {.factor = {[LANE] = 1}}};
  const ops_storage *storage = (const ops_storage *)s->terms.group->plan->storages.data + s->storage;
  ops_form address = ops_address(storage, own + 2 - s->node->shape.rank);
  uint16_t lane = s->code.variable[LANE];
  s->code.variable[LANE] = place;
  ops_store(&s->code, s->storage, &address, (atlas_type)s->node->type, value);
  s->code.variable[LANE] = lane;
  ops_forget(&s->code, 1u << LANE);
}

static void put_elements(selection *s, uint16_t value, uint16_t holds) {
  uint32_t done = atlas_builder_label(s->b, NULL);
  uint16_t rank = ops_register(&s->code), before = ops_value(&s->code, s->before);
  atlas_operand size = ops_scalar_of(&s->code, ATLAS_i64, s->size);
  uint16_t room = emit(s, ATLAS_OP_sub, ATLAS_i64, size, atlas_reg(before));
  room = emit(s, ATLAS_OP_max, ATLAS_i64, atlas_reg(room), atlas_int_const(ATLAS_i64, 0));
  room = emit(s, ATLAS_OP_min, ATLAS_i64, atlas_reg(room), atlas_int_const(ATLAS_i64, OPS_SELECT_PART));
  room = converted(s, ATLAS_u32, ATLAS_i64, room);
  atlas_emit(s->b, ATLAS_OP_scan_excl, ATLAS_u32, 2, atlas_reg(rank), atlas_reg(holds));
  uint16_t to = emit(s, ATLAS_OP_add, s->index, atlas_reg(converted(s, s->index, ATLAS_u32, rank)),
                     atlas_reg(converted(s, s->index, ATLAS_i64, before)));
  ops_branch_if(s->b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(holds), atlas_bits(0), done);
  ops_branch_unless(s->b, ATLAS_OP_set_lt, ATLAS_u32, atlas_reg(rank), atlas_reg(room), done);
  put(s, to, value);
  atlas_builder_place(s->b, done);
}

/* If fewer elements hold than the caller says, a block's first lane stores beyond the end, which is a fault. */
static void check_count(selection *s, uint16_t value) {
  uint32_t done = atlas_builder_label(s->b, NULL);
  uint16_t count = ops_value(&s->code, s->count), end = ops_register(&s->code);
  uint64_t all = ops_count(&s->node->shape);
  atlas_emit(s->b, ATLAS_OP_mov, s->index, 2, atlas_reg(end), scalar(s, all));
  ops_branch_unless(s->b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(ATLAS_REG_BLOCK_LANE), atlas_bits(0), done);
  ops_branch_unless(s->b, ATLAS_OP_set_lt, ATLAS_i64, atlas_reg(count), ops_scalar_of(&s->code, ATLAS_i64, s->size),
                    done);
  put(s, end, value);
  atlas_builder_place(s->b, done);
}

hg_status ops_write_select(const ops_group *group) {
  selection s;
  memset(&s, 0, sizeof s);
  hg_status status = begin(&s, group);
  if (status == HG_OK) {
    atlas_type type = s.node->type == ATLAS_bool ? ATLAS_u32 : (atlas_type)s.node->type;
    uint16_t value = zero_of(&s, type);
    find_place(&s);
    uint16_t holds = read_element(&s, value, type);
    put_elements(&s, value, holds);
    if (s.node->reduce != 0) check_count(&s, value);
  }
  return ops_code_end_all(&s.code, &s.terms, status);
}
