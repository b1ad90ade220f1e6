/* select.c - elements where a mask holds, in their order.
 *
 * A block has a few parts of OPS_SELECT_PART neighbouring elements of a row, one of each a lane. How many hold in the
 * parts before each has been summed (the node's input 2), so that a lane's element goes to that sum plus the number of
 * lanes before it whose elements hold in its part. One scan counts those of all parts: each has 8 bits, which hold 255
 * lanes. What is left of the result is not written.
 *
 * All conditions are those of lanes: on a processor a block is straight-line code. */
#include "ops/graph/ops_tuning.h"
#include "ops/write/expression.h"

#include <string.h>

enum { ROW, PART, LANE, COUNT_BITS = 8, MOST_PARTS = 4 };

typedef struct selection {
  const ops_node *node;
  ops_terms terms;
  ops_code code;
  atlas_builder *b;
  uint64_t elements, size; /* of a row; of a row of the result */
  uint64_t blocks;         /* of a row */
  uint32_t parts;          /* of a block */
  uint32_t storage;
  atlas_type index; /* of places */
  term_id value, mask, before; /* before: how many hold in the parts before */
  term_id start, count;        /* the same of the first part, and of all */
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
  ops_form none[2] = {own[0], {.constant = 0}};
  uint32_t first = 2 - rank; /* of a vector there is no row */
  ops_terms_begin(&s->terms, group, &space);
  HG_TRY(ops_term_of(&s->terms, s->node->input[0], own + first, &s->value));
  HG_TRY(ops_term_of(&s->terms, s->node->input[1], own + first, &s->mask));
  HG_TRY(ops_term_of(&s->terms, s->node->input[2], part + first, &s->before));
  HG_TRY(ops_term_of(&s->terms, s->node->input[2], last + first, &s->count));
  HG_TRY(ops_term_of(&s->terms, s->node->input[2], none + first, &s->start));
  HG_TRY(ops_code_begin_step(&s->code, &s->terms, "select", "select"));
  s->b = s->code.builder;
  uint64_t most = group->plan->for_gpu ? OPS_SELECT_PARTS_GPU : OPS_SELECT_PARTS;
  s->parts = 1;
  while (s->parts < most && s->parts < parts) s->parts++;
  s->blocks = (parts + s->parts - 1) / s->parts;
  s->index = is_large(s, &space) ? ATLAS_i64 : ATLAS_u32;
  s->code.index_type = s->index;
  if (space.size[0] * s->blocks > INT32_MAX)
    return hg_fail(HG_UNSUPPORTED, "a selection of %llu elements takes more than %d blocks of a launch; select parts",
                   (unsigned long long)(space.size[0] * s->elements), INT32_MAX);
  ops_launch_blocks(&s->code, space.size[0] * s->blocks, 1, 1, OPS_SELECT_PART);
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

/* The block's row, and its first part. */
static uint16_t find_place(selection *s) {
  uint16_t *at = s->code.variable, block = ops_launch_index(&s->code, ATLAS_COORD_BLOCK_X), first = block;
  uint64_t rows = s->terms.space.size[0];
  at[LANE] = ops_index_of(&s->code, ATLAS_REG_BLOCK_LANE);
  at[ROW] = rows == 1 ? zero_of(s, s->index) : emit(s, ATLAS_OP_div, s->index, atlas_reg(block), scalar(s, s->blocks));
  if (rows > 1) first = emit(s, ATLAS_OP_rem, s->index, atlas_reg(block), scalar(s, s->blocks));
  return s->parts == 1 ? first : emit(s, ATLAS_OP_mul, s->index, atlas_reg(first), scalar(s, s->parts));
}

/* Part k, or the end of the row. */
static void find_part(selection *s, uint16_t first, uint32_t k) {
  uint64_t parts = s->terms.space.size[1];
  uint16_t part = k == 0 ? first : emit(s, ATLAS_OP_add, s->index, atlas_reg(first), scalar(s, k));
  if (parts % s->parts != 0) part = emit(s, ATLAS_OP_min, s->index, atlas_reg(part), scalar(s, parts));
  ops_forget_all(&s->code);
  s->code.variable[PART] = part;
}

/* The lane's element, and whether it is to be taken: u32. */
static uint16_t read_element(selection *s, uint16_t value, atlas_type type) {
  const uint16_t *at = s->code.variable;
  uint32_t absent = atlas_builder_label(s->b, NULL);
  uint16_t holds = zero_of(s, ATLAS_u32), place = ops_register(&s->code);
  atlas_emit(s->b, ATLAS_OP_mad, s->index, 4, atlas_reg(place), atlas_reg(at[PART]), scalar(s, OPS_SELECT_PART),
             atlas_reg(at[LANE]));
  if (s->elements % (s->parts * OPS_SELECT_PART) != 0)
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

/* How many lanes before this one have an element that holds, of each part. */
static void rank_elements(selection *s, const uint16_t *holds, uint16_t *rank) {
  uint16_t all = holds[0], before = ops_register(&s->code);
  for (uint32_t k = 1; k < s->parts; k++) {
    uint16_t own = emit(s, ATLAS_OP_shl, ATLAS_u32, atlas_reg(holds[k]), atlas_bits(k * COUNT_BITS));
    all = emit(s, ATLAS_OP_or, ATLAS_u32, atlas_reg(all), atlas_reg(own));
  }
  atlas_emit(s->b, ATLAS_OP_scan_excl, ATLAS_u32, 2, atlas_reg(before), atlas_reg(all));
  rank[0] = before;
  for (uint32_t k = 0; k < s->parts && s->parts > 1; k++) {
    uint16_t own = emit(s, ATLAS_OP_shr, ATLAS_u32, atlas_reg(before), atlas_bits(k * COUNT_BITS));
    rank[k] = emit(s, ATLAS_OP_and, ATLAS_u32, atlas_reg(own), atlas_bits((1u << COUNT_BITS) - 1));
  }
}

static void put_element(selection *s, uint16_t value, uint16_t holds, uint16_t rank) {
  uint32_t done = atlas_builder_label(s->b, NULL);
  uint16_t before = ops_value(&s->code, s->before);
  atlas_operand size = ops_scalar_of(&s->code, ATLAS_i64, s->size);
  uint16_t room = emit(s, ATLAS_OP_sub, ATLAS_i64, size, atlas_reg(before));
  room = emit(s, ATLAS_OP_max, ATLAS_i64, atlas_reg(room), atlas_int_const(ATLAS_i64, 0));
  room = emit(s, ATLAS_OP_min, ATLAS_i64, atlas_reg(room), atlas_int_const(ATLAS_i64, OPS_SELECT_PART));
  room = converted(s, ATLAS_u32, ATLAS_i64, room);
  uint16_t to = emit(s, ATLAS_OP_add, s->index, atlas_reg(converted(s, s->index, ATLAS_u32, rank)),
                     atlas_reg(converted(s, s->index, ATLAS_i64, before)));
  ops_branch_if(s->b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(holds), atlas_bits(0), done);
  ops_branch_unless(s->b, ATLAS_OP_set_lt, ATLAS_u32, atlas_reg(rank), atlas_reg(room), done);
  put(s, to, value);
  atlas_builder_place(s->b, done);
}

/* Stores beyond the end, which is a fault. */
static void put_beyond(selection *s, uint16_t value) {
  uint16_t end = ops_register(&s->code);
  atlas_emit(s->b, ATLAS_OP_mov, s->index, 2, atlas_reg(end), scalar(s, ops_count(&s->node->shape)));
  put(s, end, value);
}

/* A fault if a part does not have as many elements that hold as the caller says: its last lane finds out. A part that
 * does not exist stands at the end of the row. */
static void check_part(selection *s, uint16_t value, uint16_t holds, uint16_t rank) {
  uint32_t done = atlas_builder_label(s->b, NULL);
  uint16_t part = s->code.variable[PART], before = ops_value(&s->code, s->before);
  uint16_t own = emit(s, ATLAS_OP_add, ATLAS_u32, atlas_reg(rank), atlas_reg(holds));
  uint16_t end = emit(s, ATLAS_OP_add, ATLAS_i64, atlas_reg(before),
                      atlas_reg(converted(s, ATLAS_i64, ATLAS_u32, own)));
  uint16_t next = emit(s, ATLAS_OP_add, s->index, atlas_reg(part), atlas_int_const(s->index, 1));
  next = emit(s, ATLAS_OP_min, s->index, atlas_reg(next), scalar(s, s->terms.space.size[1]));
  s->code.variable[PART] = next;
  ops_forget(&s->code, 1u << PART);
  uint16_t said = ops_value(&s->code, s->before);
  ops_branch_unless(s->b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(ATLAS_REG_BLOCK_LANE), atlas_bits(OPS_SELECT_PART - 1),
                    done);
  ops_branch_if(s->b, ATLAS_OP_set_eq, ATLAS_i64, atlas_reg(end), atlas_reg(said), done);
  put_beyond(s, value);
  atlas_builder_place(s->b, done);
  ops_forget_all(&s->code);
}

/* A fault if fewer elements hold than the caller says, or the first part is not said to begin at 0: a block's first
 * lane finds out. */
static void check_count(selection *s, uint16_t value) {
  uint32_t done = atlas_builder_label(s->b, NULL), wrong = atlas_builder_label(s->b, NULL);
  uint16_t count = ops_value(&s->code, s->count), start = ops_value(&s->code, s->start);
  ops_branch_unless(s->b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(ATLAS_REG_BLOCK_LANE), atlas_bits(0), done);
  ops_branch_if(s->b, ATLAS_OP_set_ne, ATLAS_i64, atlas_reg(start), atlas_int_const(ATLAS_i64, 0), wrong);
  ops_branch_unless(s->b, ATLAS_OP_set_lt, ATLAS_i64, atlas_reg(count), ops_scalar_of(&s->code, ATLAS_i64, s->size),
                    done);
  atlas_builder_place(s->b, wrong);
  put_beyond(s, value);
  atlas_builder_place(s->b, done);
}

hg_status ops_write_select(const ops_group *group) {
  selection s;
  memset(&s, 0, sizeof s);
  hg_status status = begin(&s, group);
  if (status == HG_OK) {
    atlas_type type = s.node->type == ATLAS_bool ? ATLAS_u32 : (atlas_type)s.node->type;
    uint16_t first = find_place(&s), value[MOST_PARTS] = {0}, holds[MOST_PARTS] = {0}, rank[MOST_PARTS] = {0};
    for (uint32_t k = 0; k < s.parts; k++) {
      find_part(&s, first, k);
      value[k] = zero_of(&s, type);
      holds[k] = read_element(&s, value[k], type);
    }
    rank_elements(&s, holds, rank);
    for (uint32_t k = 0; k < s.parts; k++) {
      find_part(&s, first, k);
      put_element(&s, value[k], holds[k], rank[k]);
      if (s.node->reduce != 0) check_part(&s, value[k], holds[k], rank[k]);
    }
    if (s.node->reduce != 0) check_count(&s, value[0]);
  }
  return ops_code_end_all(&s.code, &s.terms, status);
}
