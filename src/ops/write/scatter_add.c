/* scatter_add.c - adds at indices, or multiplies: old op F(the contributions in increasing order of their sources).
 *
 * A lane for each column of the index makes lists of each destination's sources, by two passes along the axis. A GPU
 * has too few columns for that, and makes them as scatter_lists.c says; there whole chunks of long lists are folded
 * first, with lanes of their own. Then a lane for each destination folds its list
 * by a binary counter: in chunks of 4096, values in bit-reversed order of their numbers, and chunks in the same way, in
 * chunks of chunks. If there are fewer sources than destinations, the result is set to the base first, and the lanes
 * belong to sources: the first source of a list folds it; but not if a CPU itself adds up whole rows. Columns are
 * counted along the axes along which the index varies: an index for whole rows has one. */
#include "ops/graph/ops_tuning.h"
#include "ops/write/fold.h"
#include "ops/write/row_moves.h"
#include "ops/write/scatter.h"

#include <string.h>

/* ---- adding: lists of each place's sources ----------------------------------------------------------------------- */

static uint32_t begin_run(scatter_launch *l) {
  uint32_t next = atlas_builder_label(l->code.builder, NULL);
  atlas_emit(l->code.builder, ATLAS_OP_movi, ATLAS_i64, 2, atlas_reg(l->code.variable[l->s->axis]),
             atlas_int_const(ATLAS_i64, 0));
  ops_forget(&l->code, 1u << l->s->axis);
  atlas_builder_place(l->code.builder, next);
  return next;
}

static void end_run(scatter_launch *l, uint32_t next) {
  uint16_t j = l->code.variable[l->s->axis];
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, j, atlas_reg(j), atlas_int_const(ATLAS_i64, 1));
  ops_branch_if(l->code.builder, ATLAS_OP_set_lt, ATLAS_i64, atlas_reg(j), ops_scatter_scalar(l, l->s->sources), next);
}

/* The position (i64) of a list's entry, given where the list begins and the entry's number. */
static uint16_t in_list(scatter_launch *l, uint16_t list, uint16_t number) {
  uint16_t at = ops_register(&l->code);
  atlas_emit2(l->code.builder, ATLAS_OP_cvt, ATLAS_i64, l->s->number, atlas_reg(at), atlas_reg(number));
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, at, atlas_reg(at), atlas_reg(list));
  return at;
}

/* The first pass counts. The second gives a destination its part of the list when it first meets it, from 1 on, and
 * counts again. An index out of range is a fault, and its number is written where the next part begins, or where nobody
 * reads. */
static void list_sources(scatter_launch *l) {
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  ops_form place = ops_scatter_in_column(l->s, l->s->places, l->s->rank),
           column = ops_scatter_in_column(l->s, l->s->sources, OPS_MAX_VARIABLES);
  uint16_t count = ops_register(code), first = ops_register(code), free_part = ops_register(code);
  uint16_t list = ops_scatter_number(l, &column);
  uint32_t next = begin_run(l);
  ops_scatter_find(l);
  uint16_t at = ops_scatter_checked(l, &place);
  ops_scatter_load(l, COUNTED, count, at);
  ops_scatter_emit(l, ATLAS_OP_add, l->s->number, count, atlas_reg(count), atlas_bits(1));
  ops_scatter_store(l, COUNTED, at, count);
  end_run(l, next);
  atlas_emit(b, ATLAS_OP_movi, l->s->number, 2, atlas_reg(free_part), atlas_bits(1));
  next = begin_run(l);
  ops_scatter_find(l);
  at = ops_scatter_checked(l, &place);
  uint32_t is_known = atlas_builder_label(b, NULL);
  ops_scatter_load(l, COUNTED, count, at);
  ops_scatter_load(l, BEGUN, first, at);
  ops_branch_if(b, ATLAS_OP_set_ne, l->s->number, atlas_reg(first), atlas_bits(0), is_known);
  atlas_emit(b, ATLAS_OP_mov, l->s->number, 2, atlas_reg(first), atlas_reg(free_part));
  ops_scatter_store(l, BEGUN, at, first);
  ops_scatter_emit(l, ATLAS_OP_add, l->s->number, free_part, atlas_reg(free_part), atlas_reg(count));
  atlas_emit(b, ATLAS_OP_movi, l->s->number, 2, atlas_reg(count), atlas_bits(0));
  atlas_builder_place(b, is_known);
  ops_scatter_emit(l, ATLAS_OP_add, l->s->number, first, atlas_reg(first), atlas_reg(count));
  uint16_t slot = in_list(l, list, first), own = ops_scatter_own_number(l);
  atlas_emit(b, ATLAS_OP_stg, l->s->number, 2, atlas_mem_reg(ops_buffer_of(code, l->s->kept[LISTED]), slot, -1),
             atlas_reg(own));
  ops_scatter_emit(l, ATLAS_OP_add, l->s->number, count, atlas_reg(count), atlas_bits(1));
  ops_scatter_store(l, COUNTED, at, count);
  end_run(l, next);
}

static int lists_rows(const scatter_launch *l, hg_rows *out) {
  const scatter *s = l->s;
  ops_listed listed = {.index = l->index, .axis = s->axis, .bounds = (ops_bounds)s->node->bounds,
                       .sources = s->sources, .places = s->places, .counted = s->kept[COUNTED],
                       .begun = s->kept[BEGUN], .listed = s->kept[LISTED]};
  return s->columns == 1 && s->number == ATLAS_u32 && ops_find_listed(&l->terms, &listed, out);
}

static hg_status write_lists(const scatter *s) {
  enum { PLACES = 1u << COUNTED | 1u << BEGUN };
  HG_TRY(ops_scatter_zeros(s, PLACES, s->columns * s->places));
  return ops_scatter_launch(s, &(scatter_work){.name = "scatter_lists", .shape = &s->from, .other = s->places,
                                               .inputs = OF_INDEX, .reads = PLACES, .writes = PLACES | 1u << LISTED,
                                               .axes = s->key, .write = list_sources, .find_rows = lists_rows});
}

/* ---- adding: sums ------------------------------------------------------------------------------------------------ */

static ops_fold fold_of(scatter_launch *l) {
  const ops_node *node = l->s->node;
  return ops_fold_of(&l->code, (ops_reduce)(node->reduce - 1), (atlas_type)node->type);
}

/* A loop over the numbers 0 to count - 1 in bit-reversed order, and a binary counter of their values. */
typedef struct counter {
  uint16_t memory;            /* i64: where the first level lies in the temporary LEVELS */
  uint16_t count, bits;       /* u32: the count, at most 4096; the least power of two that is not below it */
  uint16_t turn, number, sum; /* u32: the loop's number; its bits reversed; of the values' type */
  uint32_t next, absent;      /* labels: of the next turn; behind the value of a number that is not below the count */
} counter;

/* The distance between a level and the one below. */
static uint64_t level_stride(const scatter *s) {
  uint64_t stride = 1;
  for (uint32_t i = s->axis + 1; i < s->rank; i++) stride *= s->from.size[i];
  return stride;
}

/* Puts `sum` into the counter; after the last turn, `sum` is everything. */
static void end_turn(scatter_launch *l, counter *c, atlas_type type) {
  atlas_builder *b = l->code.builder;
  uint16_t rest = ops_register(&l->code), level = ops_register(&l->code), bit = ops_register(&l->code);
  uint16_t kept = ops_register(&l->code);
  uint32_t carry = atlas_builder_label(b, NULL), put = atlas_builder_label(b, NULL);
  atlas_operand memory = atlas_mem_reg(ops_buffer_of(&l->code, l->s->kept[LEVELS]), level, 0);
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(rest), atlas_reg(c->turn));
  atlas_emit(b, ATLAS_OP_mov, ATLAS_i64, 2, atlas_reg(level), atlas_reg(c->memory));
  atlas_builder_place(b, carry);
  ops_scatter_emit(l, ATLAS_OP_and, ATLAS_u32, bit, atlas_reg(rest), atlas_bits(1));
  ops_branch_if(b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(bit), atlas_bits(0), put);
  atlas_emit(b, ATLAS_OP_ldg, type, 2, atlas_reg(kept), memory);
  ops_scatter_emit(l, fold_of(l).op, type, c->sum, atlas_reg(kept), atlas_reg(c->sum));
  ops_scatter_emit(l, ATLAS_OP_shr, ATLAS_u32, rest, atlas_reg(rest), atlas_bits(1));
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, level, atlas_reg(level), ops_scatter_scalar(l, level_stride(l->s)));
  atlas_emit_branch(b, -1, 0, carry);
  atlas_builder_place(b, put);
  atlas_emit(b, ATLAS_OP_stg, type, 2, memory, atlas_reg(c->sum));
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_u32, c->turn, atlas_reg(c->turn), atlas_bits(1));
  ops_scatter_emit(l, ATLAS_OP_sub, ATLAS_u32, bit, atlas_bits(32), atlas_reg(c->bits));
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(rest), atlas_bits(1));
  ops_scatter_emit(l, ATLAS_OP_shl, ATLAS_u32, rest, atlas_reg(rest), atlas_reg(bit));
  atlas_emit(b, ATLAS_OP_set_lt, ATLAS_u32, 3, atlas_pred(IS_MORE), atlas_reg(c->turn), atlas_reg(rest));
  atlas_emit_branch(b, IS_MORE, 0, c->next);
}

/* Loads the value of the source that stands in the list at `at` (i64). `along`: the coordinate that is a source's
 * number. */
static void listed_value(scatter_launch *l, uint32_t along, uint16_t at, uint16_t to) {
  ops_code *code = &l->code;
  uint16_t number = ops_register(code);
  ops_scatter_load(l, LISTED, number, at);
  atlas_emit2(code->builder, ATLAS_OP_cvt, ATLAS_i64, l->s->number, atlas_reg(code->variable[along]),
              atlas_reg(number));
  ops_forget_all(code);
  atlas_emit(code->builder, ATLAS_OP_mov, (atlas_type)l->s->node->type, 2, atlas_reg(to),
             atlas_reg(ops_value(code, l->source)));
  ops_forget_all(code); /* the value has not been computed behind a branch */
}

/* A list whose last entry is read again for absent ones. */
typedef struct few {
  scatter_launch *l;
  ops_fold fold;
  uint32_t along;
  uint16_t list, last; /* where it begins; the number of its last value */
} few;

static uint16_t value_of_few(void *context, uint32_t number) {
  few *f = context;
  scatter_launch *l = f->l;
  ops_code *code = &l->code;
  uint16_t value = ops_register(code);
  uint16_t at = ops_register(code);
  ops_scatter_emit(l, ATLAS_OP_min, l->s->number, at, atlas_reg(f->last), atlas_bits(number));
  listed_value(l, f->along, in_list(l, f->list, at), value);
  atlas_emit(code->builder, ATLAS_OP_set_eq, l->s->number, 3, atlas_pred(IS_THERE), atlas_reg(at), atlas_bits(number));
  return ops_fold_where(&f->fold, IS_THERE, value);
}

/* F of up to OPS_SCATTER_IN_REGISTERS values. */
static void sum_few(scatter_launch *l, uint32_t along, uint16_t count, uint16_t list, uint16_t sum) {
  few f = {l, fold_of(l), along, list, ops_register(&l->code)};
  ops_scatter_emit(l, ATLAS_OP_sub, l->s->number, f.last, atlas_reg(count), atlas_bits(1));
  uint16_t all = ops_fold_leaves(&f.fold, 0, 1, OPS_SCATTER_IN_REGISTERS, value_of_few, &f);
  atlas_emit(l->code.builder, ATLAS_OP_mov, (atlas_type)f.fold.type, 2, atlas_reg(sum), atlas_reg(all));
}

/* Finds where the levels of the counters lie: those of values in the list's own range, those of chunks behind them, and
 * so on. A list of more than OPS_SCATTER_IN_REGISTERS values never has so many levels that they reach beyond its range:
 * if they would, a counter has one turn and nobody reads its level. */
static void find_levels(scatter_launch *l, uint16_t count, uint16_t list, uint16_t memory[MOST_DEPTH]) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  ops_form place;
  memset(&place, 0, sizeof place);
  int64_t stride = 1;
  for (uint32_t i = s->rank; i-- > 0; stride *= (int64_t)s->from.size[i])
    if (i != s->axis) place.factor[i] = stride;
  uint16_t behind = ops_register(code), column = OPS_NO_REGISTER;
  memory[0] = ops_scatter_number(l, &place);
  ops_form first =
      ops_scatter_in_column(s, s->sources, OPS_MAX_VARIABLES); /* the lists of columns lie one behind another */
  column = ops_scatter_number(l, &first);
  ops_scatter_emit(l, ATLAS_OP_sub, ATLAS_i64, column, atlas_reg(list), atlas_reg(column));
  atlas_operand of_level = ops_scatter_scalar(l, level_stride(s));
  atlas_emit(code->builder, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(memory[0]), atlas_reg(column), of_level,
             atlas_reg(memory[0]));
  for (uint32_t k = 1; k < s->depth; k++) {
    memory[k] = ops_register(code);
    ops_scatter_emit(l, ATLAS_OP_sub, s->number, behind, atlas_reg(count), atlas_bits(1));
    ops_scatter_emit(l, ATLAS_OP_min, s->number, behind, atlas_reg(behind), atlas_bits(k * (CHUNK_BITS + 1)));
    atlas_emit2(code->builder, ATLAS_OP_cvt, ATLAS_i64, s->number, atlas_reg(memory[k]), atlas_reg(behind));
    atlas_emit(code->builder, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(memory[k]), atlas_reg(memory[k]), of_level,
               atlas_reg(memory[0]));
  }
}

static uint16_t converted(scatter_launch *l, atlas_type to, atlas_type from, uint16_t reg) {
  if (to == from) return reg;
  uint16_t own = ops_register(&l->code);
  atlas_emit2(l->code.builder, ATLAS_OP_cvt, to, from, atlas_reg(own), atlas_reg(reg));
  return own;
}

/* Begins a loop over the numbers below the count. For one that is not below it, the sum is the identity (of sums
 * of floats -0), else what is computed up to the label `absent`. */
static counter begin_counter(scatter_launch *l, uint16_t memory, uint16_t count) {
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  counter c = {.memory = memory, .count = count};
  c.bits = ops_register(code), c.turn = ops_register(code), c.number = ops_register(code), c.sum = ops_register(code);
  c.next = atlas_builder_label(b, NULL), c.absent = atlas_builder_label(b, NULL);
  ops_scatter_emit(l, ATLAS_OP_sub, ATLAS_u32, c.bits, atlas_reg(count), atlas_bits(1));
  atlas_emit(b, ATLAS_OP_clz, ATLAS_u32, 2, atlas_reg(c.bits),
             atlas_reg(c.bits)); /* 32 - bits: the shift after reversing */
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(c.turn), atlas_bits(0));
  atlas_builder_place(b, c.next);
  atlas_emit(b, ATLAS_OP_brev, ATLAS_u32, 2, atlas_reg(c.number), atlas_reg(c.turn));
  ops_scatter_emit(l, ATLAS_OP_shr, ATLAS_u32, c.number, atlas_reg(c.number), atlas_reg(c.bits));
  ops_fold fold = fold_of(l);
  atlas_emit(b, ATLAS_OP_movi, (atlas_type)fold.type, 2, atlas_reg(c.sum), atlas_bits(fold.identity));
  atlas_emit(b, ATLAS_OP_set_lt, ATLAS_u32, 3, atlas_pred(IS_THERE), atlas_reg(c.number), atlas_reg(count));
  atlas_emit_branch(b, IS_THERE, 1, c.absent);
  return c;
}

/* A counter of parts of 2^bits values, out of `span`. For the current part it sets `start`, where the part begins, and
 * `span`, how many values it has. */
static counter count_parts(scatter_launch *l, uint16_t memory, uint32_t bits, uint16_t *start, uint16_t *span) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  uint16_t parts = ops_register(code), own = ops_register(code), begins = ops_register(code);
  ops_scatter_emit(l, ATLAS_OP_add, s->number, parts, atlas_reg(*span), atlas_bits((UINT64_C(1) << bits) - 1));
  ops_scatter_emit(l, ATLAS_OP_shr, s->number, parts, atlas_reg(parts), atlas_bits(bits));
  counter c = begin_counter(l, memory, converted(l, ATLAS_u32, s->number, parts));
  ops_scatter_emit(l, ATLAS_OP_shl, s->number, begins, atlas_reg(converted(l, s->number, ATLAS_u32, c.number)),
                   atlas_bits(bits));
  ops_scatter_emit(l, ATLAS_OP_sub, s->number, own, atlas_reg(*span), atlas_reg(begins));
  ops_scatter_emit(l, ATLAS_OP_min, s->number, own, atlas_reg(own), atlas_bits(UINT64_C(1) << bits));
  if (*start != OPS_NO_REGISTER)
    ops_scatter_emit(l, ATLAS_OP_add, s->number, begins, atlas_reg(begins), atlas_reg(*start));
  *start = begins, *span = own;
  return c;
}

/* Of a whole chunk of a list, whose counter leaves its sum in the level above its own. */
static void sum_chunk(scatter_launch *l) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  ops_form window = ops_scatter_in_column(s, s->windows, s->axis);
  ops_form column = ops_scatter_in_column(s, s->sources, OPS_MAX_VARIABLES);
  uint16_t first = ops_register(code), count = ops_register(code), memory[MOST_DEPTH] = {0};
  uint32_t none = atlas_builder_label(b, NULL);
  column.constant = -1;
  ops_scatter_load(l, CHUNKS, first, ops_scatter_number(l, &window));
  ops_branch_if(b, ATLAS_OP_set_eq, s->number, atlas_reg(first), atlas_bits(0), none);
  uint16_t list = in_list(l, ops_scatter_number(l, &column), first);
  atlas_emit(b, ATLAS_OP_movi, s->number, 2, atlas_reg(count), atlas_bits(OPS_CHUNK));
  find_levels(l, count, list, memory);
  counter c = begin_counter(l, memory[0], converted(l, ATLAS_u32, s->number, count));
  listed_value(l, s->rank, in_list(l, list, converted(l, s->number, ATLAS_u32, c.number)), c.sum);
  atlas_builder_place(b, c.absent);
  end_turn(l, &c, (atlas_type)s->node->type);
  atlas_builder_place(b, none);
}

/* A lane for each column of each window. */
static hg_status sum_chunks(const scatter *s) {
  if (s->windows == 0) return HG_OK;
  ops_shape windows = s->from;
  windows.size[s->axis] = s->windows;
  return ops_scatter_launch(s, &(scatter_work){.name = "scatter_chunks", .shape = &windows, .other = s->sources,
                                               .inputs = OF_SOURCE,
                                               .reads = 1u << CHUNKS | 1u << LISTED | 1u << LEVELS,
                                               .writes = 1u << LEVELS, .axes = ALL_AXES, .by_rows = 1,
                                               .write = sum_chunk});
}

/* The sum of the list's chunk that begins with the value number `start`. */
static void load_chunk(scatter_launch *l, uint16_t memory, uint16_t start, uint16_t sum) {
  uint16_t at = ops_register(&l->code);
  atlas_emit2(l->code.builder, ATLAS_OP_cvt, ATLAS_i64, l->s->number, atlas_reg(at), atlas_reg(start));
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, at, atlas_reg(at), atlas_int_const(ATLAS_i64, CHUNK_BITS));
  atlas_emit(l->code.builder, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(at), atlas_reg(at),
             ops_scatter_scalar(l, level_stride(l->s)), atlas_reg(memory));
  atlas_emit(l->code.builder, ATLAS_OP_ldg, (atlas_type)l->s->node->type, 2, atlas_reg(sum),
             atlas_mem_reg(ops_buffer_of(&l->code, l->s->kept[LEVELS]), at, 0));
}

/* Counters within counters: of values in a chunk, of chunks in a chunk of chunks, and so on. */
static void sum_many(scatter_launch *l, uint32_t along, uint16_t count, uint16_t list, uint16_t sum) {
  const scatter *s = l->s;
  atlas_builder *b = l->code.builder;
  atlas_type type = (atlas_type)s->node->type;
  uint16_t memory[MOST_DEPTH] = {0}, start = OPS_NO_REGISTER, span = count;
  counter c[MOST_DEPTH] = {{.memory = 0}};
  find_levels(l, count, list, memory);
  for (uint32_t k = s->depth; k-- > 1;) c[k] = count_parts(l, memory[k], k * CHUNK_BITS, &start, &span);
  uint32_t is_known = atlas_builder_label(b, NULL);
  if (s->windows != 0) {
    uint32_t is_part = atlas_builder_label(b, NULL);
    ops_branch_if(b, ATLAS_OP_set_ne, s->number, atlas_reg(span), atlas_bits(OPS_CHUNK), is_part);
    load_chunk(l, memory[0], start, c[1].sum);
    atlas_emit_branch(b, -1, 0, is_known);
    atlas_builder_place(b, is_part);
  }
  c[0] = count_parts(l, memory[0], 0, &start, &span);
  listed_value(l, along, in_list(l, list, start), c[0].sum);
  for (uint32_t k = 0; k < s->depth; k++) {
    if (k > 0) atlas_emit(b, ATLAS_OP_mov, type, 2, atlas_reg(c[k].sum), atlas_reg(c[k - 1].sum));
    if (k == 1) atlas_builder_place(b, is_known);
    atlas_builder_place(b, c[k].absent);
    end_turn(l, &c[k], type);
  }
  atlas_emit(b, ATLAS_OP_mov, type, 2, atlas_reg(sum), atlas_reg(c[s->depth - 1].sum));
}

/* F of the listed sources' values, in `sum`. If all lanes of a block have one list, the case of a single value diverges
 * for none. */
static void sum_listed(scatter_launch *l, uint32_t along, uint16_t count, uint16_t list, uint16_t sum) {
  atlas_builder *b = l->code.builder;
  uint32_t many = atlas_builder_label(b, NULL), done = atlas_builder_label(b, NULL);
  if (l->code.step->block[0] != 0) {
    uint32_t several = atlas_builder_label(b, NULL);
    ops_branch_if(b, ATLAS_OP_set_ne, l->s->number, atlas_reg(count), atlas_bits(1), several);
    listed_value(l, along, list, sum);
    atlas_emit_branch(b, -1, 0, done);
    atlas_builder_place(b, several);
  }
  ops_branch_if(b, ATLAS_OP_set_lt, l->s->number, atlas_bits(OPS_SCATTER_IN_REGISTERS), atlas_reg(count), many);
  sum_few(l, along, count, list, sum);
  atlas_emit_branch(b, -1, 0, done);
  atlas_builder_place(b, many);
  ops_forget_all(&l->code);
  sum_many(l, along, count, list, sum);
  atlas_builder_place(b, done);
  ops_forget_all(&l->code);
}

/* Where the list of the destination `at` begins, of the column whose lists begin at `list`. */
static uint16_t begun_list(scatter_launch *l, uint16_t list, uint16_t at) {
  uint16_t first = ops_register(&l->code);
  ops_scatter_load(l, BEGUN, first, at);
  uint16_t begun = in_list(l, list, first);
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, begun, atlas_reg(begun), atlas_int_const(ATLAS_i64, -1));
  return begun;
}

static void add_to_base(scatter_launch *l) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  atlas_type type = (atlas_type)s->node->type;
  ops_form place = ops_scatter_in_column(s, s->places, s->axis),
           column = ops_scatter_in_column(s, s->sources, OPS_MAX_VARIABLES);
  uint16_t at = ops_scatter_number(l, &place), list = ops_scatter_number(l, &column);
  uint16_t count = ops_register(code), sum = ops_register(code), result = ops_register(code);
  ops_scatter_load(l, COUNTED, count, at);
  list = begun_list(l, list, at);
  atlas_emit(code->builder, ATLAS_OP_mov, type, 2, atlas_reg(result), atlas_reg(ops_value(code, l->base)));
  uint32_t none = atlas_builder_label(code->builder, NULL);
  ops_branch_if(code->builder, ATLAS_OP_set_eq, s->number, atlas_reg(count), atlas_bits(0), none);
  sum_listed(l, s->rank, count, list, sum);
  ops_scatter_emit(l, fold_of(l).op, type, result, atlas_reg(result), atlas_reg(sum));
  atlas_builder_place(code->builder, none);
  ops_forget_all(code);
  ops_form target = ops_scatter_target(l, l->own);
  ops_store(code, s->out, &target, type, result);
}

/* 1 if a destination's sum is one of whole rows. */
static int adds_rows(const scatter_launch *l, hg_rows *out) {
  const scatter *s = l->s;
  ops_form place = ops_scatter_target(l, l->own);
  ops_added added = {.shape = &s->to, .axis = s->axis, .sources = s->sources, .base = l->base, .source = l->source,
                     .storage = s->out, .place = &place, .counted = s->kept[COUNTED], .begun = s->kept[BEGUN],
                     .listed = s->kept[LISTED]};
  if (s->node->reduce != 1 + OPS_SUM) return 0;
  return s->columns == 1 && s->number == ATLAS_u32 && ops_find_added(&l->terms, &added, out);
}

/* A lane for each source, which computes the sum if the source is the first of its destination's list. The result is
 * the base already. */
static void add_from_first(scatter_launch *l) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  atlas_type type = (atlas_type)s->node->type;
  ops_form place = ops_scatter_in_column(s, s->places, s->rank),
           column = ops_scatter_in_column(s, s->sources, OPS_MAX_VARIABLES);
  uint32_t none = atlas_builder_label(b, NULL);
  ops_scatter_find(l);
  atlas_emit_branch(b, IS_THERE, 1, none);
  uint16_t at = ops_scatter_number(l, &place), list = begun_list(l, ops_scatter_number(l, &column), at);
  uint16_t count = ops_register(code), first = ops_register(code), sum = ops_register(code);
  ops_scatter_load(l, LISTED, first, list);
  uint16_t own = ops_scatter_own_number(l);
  ops_branch_if(b, ATLAS_OP_set_ne, s->number, atlas_reg(own), atlas_reg(first), none);
  ops_scatter_load(l, COUNTED, count, at);
  ops_forget_all(code);
  sum_listed(l, s->axis, count, list, sum);
  ops_scatter_emit(l, fold_of(l).op, type, sum, atlas_reg(ops_value(code, l->base)), atlas_reg(sum));
  ops_form target = ops_scatter_target(l, l->other);
  ops_store(code, s->out, &target, type, sum);
  atlas_builder_place(b, none);
}

/* Finds the coordinates, except the axis, along which the index varies. */
static hg_status find_columns(scatter *s) {
  ops_terms terms;
  ops_form identity[HG_MAX_RANK] = {{.constant = 0}};
  term_id index;
  ops_terms_begin(&terms, s->group, &s->from);
  ops_identity(&s->from, identity);
  hg_status status = ops_term_of(&terms, s->node->input[1], identity, &index);
  s->columns = 1;
  if (status == HG_OK) s->key = ops_term_at(&terms, index)->varies & ~(1u << s->axis) & ((1u << s->rank) - 1);
  for (uint32_t i = 0; i < s->rank; i++)
    if ((s->key >> i & 1) != 0) s->columns *= s->from.size[i];
  ops_terms_release(&terms);
  return status;
}

/* 1 if there are so few lanes that they would wait for memory, source by source. */
static int has_few_columns(const scatter *s) {
  return s->group->plan->for_gpu && s->sources > OPS_SCATTER_FEW;
}

hg_status ops_scatter_add(scatter *s) {
  if (s->sources == 0) return ops_scatter_base(s);
  HG_TRY(find_columns(s));
  HG_TRY(ops_scatter_keep(s, COUNTED, s->number, s->columns * s->places));
  HG_TRY(ops_scatter_keep(s, BEGUN, s->number, s->columns * s->places));
  HG_TRY(ops_scatter_keep(s, LISTED, s->number, s->columns * s->sources));
  HG_TRY(ops_scatter_keep(s, LEVELS, (atlas_type)s->node->type, ops_count(&s->from)));
  HG_TRY(has_few_columns(s) ? ops_scatter_lists(s) : write_lists(s));
  HG_TRY(sum_chunks(s));
  scatter_work sums = {.name = "scatter_sums", .shape = &s->to, .other = s->sources, .inputs = OF_BASE | OF_SOURCE,
                       .reads = 1u << COUNTED | 1u << BEGUN | 1u << LISTED | 1u << LEVELS, .writes = 1u << LEVELS,
                       .axes = ALL_AXES, .by_rows = 1, .write = add_to_base, .find_rows = adds_rows};
  if (s->sources >= s->places || (s->columns == 1 && !s->group->plan->for_gpu)) {
    HG_TRY(ops_scatter_launch(s, &sums));
    hg_array *made = &s->group->plan->made;
    if (s->sources >= s->places || ((const ops_step *)made->data)[made->count - 1].rows != NULL) return HG_OK;
    ops_drop_steps(s->group->plan, made->count - 1);
  }
  HG_TRY(ops_scatter_base(s));
  sums.shape = &s->from, sums.other = s->places, sums.inputs |= OF_INDEX, sums.write = add_from_first;
  sums.find_rows = NULL;
  return ops_scatter_launch(s, &sums);
}
