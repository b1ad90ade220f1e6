/* scatter_lists.c - makes lists of each destination's sources, in increasing order, with as many lanes as there are
 * sources.
 *
 * Sources are cut into parts along the axis, few enough for a counter for each destination and part. First they are
 * counted. Then a lane for each destination gives it a piece of the list, wherever there is room, and each of its parts
 * a piece of that. Sources take seats in their part's piece as they come, and then each finds its rank there by
 * counting the lower numbers. So the result depends on no order, except for where a destination's list begins, which
 * nobody sees. Where whole chunks of a list begin is noted, so that they are folded side by side (scatter_add.c). An
 * index out of range is a fault when it is counted, and in no list. */
#include "ops/write/scatter.h"
#include "ops/graph/ops_tuning.h"

#include <string.h>

enum { IS_FIRST = 3 };

/* Chooses the parts. The counters are for destination and part, and behind them one for each column: how much of its
 * list is taken. In the temporary where parts begin, each destination has one more entry, for where its last part
 * ends. */
static void choose_parts(scatter *s) {
  uint64_t most = 4 * s->columns * s->sources, last = s->sources - 1;
  if (most < OPS_SCATTER_COUNTERS) most = OPS_SCATTER_COUNTERS;
  s->part_bits = OPS_SCATTER_PART_BITS;
  while (s->columns * s->places * ((last >> s->part_bits) + 1) > most && last >> s->part_bits != 0) s->part_bits++;
  s->parts = (uint32_t)(last >> s->part_bits) + 1;
}

static uint64_t counters(const scatter *s) { return s->columns * s->places * s->parts; }

/* ---- a lane for each source -------------------------------------------------------------------------------------- */

/* The destination's number * `each` + the source's part. */
static uint16_t of_part(scatter_launch *l, uint64_t each) {
  const scatter *s = l->s;
  ops_form place = ops_scatter_in_column(s, s->places, s->rank);
  uint16_t at = ops_scatter_number(l, &place), part = ops_register(&l->code);
  ops_scatter_emit(l, ATLAS_OP_shr, ATLAS_i64, part, atlas_reg(l->code.variable[s->axis]), atlas_bits(s->part_bits));
  atlas_emit(l->code.builder, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(at), atlas_reg(at), ops_scatter_scalar(l, each),
             atlas_reg(part));
  return at;
}

static void add_to_counter(scatter_launch *l, uint16_t at, uint64_t what, atlas_operand old) {
  atlas_emit(l->code.builder, ATLAS_OP_atom_add, l->s->number, 3, old,
             atlas_mem_reg(ops_buffer_of(&l->code, l->s->kept[PART_COUNTED]), at, 0), atlas_bits(what));
}

/* Where the list of the source's column begins, less 1, since numbers in lists count from 1. */
static uint16_t before_list(scatter_launch *l) {
  ops_form column = ops_scatter_in_column(l->s, l->s->sources, OPS_MAX_VARIABLES);
  column.constant = -1;
  return ops_scatter_number(l, &column);
}

/* to = list + number, as an address. */
static void seat(scatter_launch *l, uint16_t to, uint16_t list, uint16_t number) {
  atlas_emit2(l->code.builder, ATLAS_OP_cvt, ATLAS_i64, l->s->number, atlas_reg(to), atlas_reg(number));
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, to, atlas_reg(to), atlas_reg(list));
}

static void count(scatter_launch *l) {
  ops_scatter_find(l);
  uint16_t at = of_part(l, l->s->parts);
  atlas_emit(l->code.builder, ATLAS_OP_sel, ATLAS_i64, 4, atlas_reg(at), atlas_pred(IS_THERE), atlas_reg(at),
             atlas_int_const(ATLAS_i64, INT64_MAX));
  add_to_counter(l, at, 1, (atlas_operand){0});
}

/* Begins what sources with a destination do, up to the label. */
static uint32_t begin_source(scatter_launch *l) {
  uint32_t none = atlas_builder_label(l->code.builder, NULL);
  ops_scatter_find(l);
  atlas_emit_branch(l->code.builder, IS_THERE, 1, none);
  return none;
}

/* Each source takes the last free seat. */
static void take_seat(scatter_launch *l) {
  uint32_t none = begin_source(l);
  uint16_t counter = of_part(l, l->s->parts), begins = of_part(l, l->s->parts + UINT64_C(1));
  uint16_t left = ops_register(&l->code), first = ops_register(&l->code), at = ops_register(&l->code);
  uint16_t list = before_list(l), own = ops_scatter_own_number(l);
  add_to_counter(l, counter, atlas_mask(l->s->number), atlas_reg(left));
  ops_scatter_load(l, PART_BEGUN, first, begins);
  ops_scatter_emit(l, ATLAS_OP_add, l->s->number, first, atlas_reg(first), atlas_reg(left));
  ops_scatter_emit(l, ATLAS_OP_sub, l->s->number, first, atlas_reg(first), atlas_bits(1));
  seat(l, at, list, first);
  ops_scatter_store(l, UNORDERED, at, own);
  atlas_builder_place(l->code.builder, none);
}

static void find_rank(scatter_launch *l) {
  uint32_t none = begin_source(l);
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  uint16_t begins = of_part(l, l->s->parts + UINT64_C(1)), list = before_list(l), own = ops_scatter_own_number(l);
  uint16_t turn = ops_register(code), end = ops_register(code), rank = ops_register(code), at = ops_register(code);
  uint16_t other = ops_register(code);
  ops_scatter_load(l, PART_BEGUN, rank, begins);
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, begins, atlas_reg(begins), atlas_int_const(ATLAS_i64, 1));
  ops_scatter_load(l, PART_BEGUN, end, begins);
  atlas_emit(b, ATLAS_OP_mov, l->s->number, 2, atlas_reg(turn), atlas_reg(rank));
  uint32_t next = atlas_builder_label(b, NULL);
  atlas_builder_place(b, next);
  seat(l, at, list, turn);
  ops_scatter_load(l, UNORDERED, other, at);
  atlas_emit(b, ATLAS_OP_set_lt, l->s->number, 3, atlas_pred(IS_FIRST), atlas_reg(other), atlas_reg(own));
  atlas_emit(b, ATLAS_OP_sel, l->s->number, 4, atlas_reg(other), atlas_pred(IS_FIRST), atlas_bits(1), atlas_bits(0));
  ops_scatter_emit(l, ATLAS_OP_add, l->s->number, rank, atlas_reg(rank), atlas_reg(other));
  ops_scatter_emit(l, ATLAS_OP_add, l->s->number, turn, atlas_reg(turn), atlas_bits(1));
  ops_branch_if(b, ATLAS_OP_set_lt, l->s->number, atlas_reg(turn), atlas_reg(end), next);
  seat(l, at, list, rank);
  ops_scatter_store(l, LISTED, at, own);
  atlas_builder_place(b, none);
}

/* ---- a lane for each place --------------------------------------------------------------------------------------- */

/* A loop over the parts of a destination: `own` counts its sources, `at` counts counters. */
static uint32_t begin_parts(scatter_launch *l, uint16_t at, uint16_t turn, uint16_t own, uint16_t counted) {
  atlas_builder *b = l->code.builder;
  uint32_t next = atlas_builder_label(b, NULL);
  ops_scatter_emit(l, ATLAS_OP_mul, ATLAS_i64, at, atlas_reg(own), ops_scatter_scalar(l, l->s->parts));
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(turn), ops_scalar_of(&l->code, ATLAS_u32, l->s->parts));
  atlas_builder_place(b, next);
  ops_scatter_load(l, PART_COUNTED, counted, at);
  return next;
}

static void end_parts(scatter_launch *l, uint32_t next, uint16_t at, uint16_t turn) {
  atlas_builder *b = l->code.builder;
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, at, atlas_reg(at), atlas_int_const(ATLAS_i64, 1));
  ops_scatter_emit(l, ATLAS_OP_sub, ATLAS_u32, turn, atlas_reg(turn), atlas_bits(1));
  ops_branch_if(b, ATLAS_OP_set_ne, ATLAS_u32, atlas_reg(turn), atlas_bits(0), next);
}

/* Notes where the list's whole chunks begin, from 1 on: in a window of a chunk's length there is at most one. */
static void note_chunks(scatter_launch *l, uint16_t first, uint16_t left) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  ops_form column = ops_scatter_in_column(s, s->windows, OPS_MAX_VARIABLES);
  uint16_t windows = ops_scatter_number(l, &column), begins = ops_register(code), window = ops_register(code);
  uint16_t at = ops_register(code);
  uint32_t next = atlas_builder_label(b, NULL), done = atlas_builder_label(b, NULL);
  atlas_emit(b, ATLAS_OP_mov, s->number, 2, atlas_reg(begins), atlas_reg(first));
  atlas_builder_place(b, next);
  ops_branch_if(b, ATLAS_OP_set_lt, s->number, atlas_reg(left), atlas_bits(1u << CHUNK_BITS), done);
  ops_scatter_emit(l, ATLAS_OP_sub, s->number, window, atlas_reg(begins), atlas_bits(1));
  ops_scatter_emit(l, ATLAS_OP_shr, s->number, window, atlas_reg(window), atlas_bits(CHUNK_BITS));
  seat(l, at, windows, window);
  ops_scatter_store(l, CHUNKS, at, begins);
  ops_scatter_emit(l, ATLAS_OP_add, s->number, begins, atlas_reg(begins), atlas_bits(1u << CHUNK_BITS));
  ops_scatter_emit(l, ATLAS_OP_sub, s->number, left, atlas_reg(left), atlas_bits(1u << CHUNK_BITS));
  atlas_emit_branch(b, -1, 0, next);
  atlas_builder_place(b, done);
}

static void give_pieces(scatter_launch *l) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  ops_form place = ops_scatter_in_column(s, s->places, s->axis);
  ops_form column = ops_scatter_in_column(s, 1, OPS_MAX_VARIABLES);
  column.constant = (int64_t)counters(s);
  uint16_t own = ops_scatter_number(l, &place), taken = ops_scatter_number(l, &column), at = ops_register(code);
  uint16_t turn = ops_register(code), counted = ops_register(code), all = ops_register(code);
  uint16_t first = ops_register(code), begins = ops_register(code);
  uint32_t none = atlas_builder_label(b, NULL);
  atlas_emit(b, ATLAS_OP_movi, s->number, 2, atlas_reg(all), atlas_bits(0));
  uint32_t next = begin_parts(l, at, turn, own, counted);
  ops_scatter_emit(l, ATLAS_OP_add, s->number, all, atlas_reg(all), atlas_reg(counted));
  end_parts(l, next, at, turn);
  ops_scatter_store(l, COUNTED, own, all);
  ops_branch_if(b, ATLAS_OP_set_eq, s->number, atlas_reg(all), atlas_bits(0), none);
  atlas_emit(b, ATLAS_OP_atom_add, s->number, 3, atlas_reg(first),
             atlas_mem_reg(ops_buffer_of(code, s->kept[PART_COUNTED]), taken, 0), atlas_reg(all));
  ops_scatter_emit(l, ATLAS_OP_add, s->number, first, atlas_reg(first), atlas_bits(1));
  ops_scatter_store(l, BEGUN, own, first);
  if (s->windows != 0) note_chunks(l, first, all);
  ops_scatter_emit(l, ATLAS_OP_mul, ATLAS_i64, begins, atlas_reg(own),
                   ops_scatter_scalar(l, s->parts + UINT64_C(1)));
  next = begin_parts(l, at, turn, own, counted);
  ops_scatter_store(l, PART_BEGUN, begins, first);
  ops_scatter_emit(l, ATLAS_OP_add, s->number, first, atlas_reg(first), atlas_reg(counted));
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, begins, atlas_reg(begins), atlas_int_const(ATLAS_i64, 1));
  end_parts(l, next, at, turn);
  ops_scatter_store(l, PART_BEGUN, begins, first);
  atlas_builder_place(b, none);
}

static hg_status write_sources(const scatter *s, const char *name, void (*write)(scatter_launch *l),
                               uint32_t reads, uint32_t writes) {
  return ops_scatter_launch(s, &(scatter_work){.name = name, .shape = &s->from, .other = s->places,
                                               .inputs = OF_INDEX, .reads = reads, .writes = writes,
                                               .axes = s->key | 1u << s->axis, .write = write});
}

hg_status ops_scatter_lists(scatter *s) {
  enum { COUNTS = 1u << PART_COUNTED, BEGINS = 1u << PART_BEGUN, SEATS = 1u << UNORDERED };
  choose_parts(s);
  HG_TRY(ops_scatter_keep(s, PART_COUNTED, s->number, counters(s) + s->columns));
  HG_TRY(ops_scatter_keep(s, PART_BEGUN, s->number, counters(s) + s->columns * s->places));
  HG_TRY(ops_scatter_keep(s, UNORDERED, s->number, s->columns * s->sources));
  HG_TRY(ops_scatter_zeros(s, COUNTS, counters(s) + s->columns));
  HG_TRY(write_sources(s, "scatter_count", count, COUNTS, COUNTS));
  if (s->sources >> CHUNK_BITS != 0) {
    s->windows = (s->sources >> CHUNK_BITS) + 1;
    HG_TRY(ops_scatter_keep(s, CHUNKS, s->number, s->columns * s->windows));
    HG_TRY(ops_scatter_zeros(s, 1u << CHUNKS, s->columns * s->windows));
  }
  scatter_work pieces = {.name = "scatter_pieces", .shape = &s->to, .other = 1, .reads = COUNTS,
                         .writes = 1u << COUNTED | 1u << BEGUN | COUNTS | BEGINS, .axes = s->key | 1u << s->axis,
                         .write = give_pieces};
  if (s->windows != 0) pieces.writes |= 1u << CHUNKS;
  HG_TRY(ops_scatter_launch(s, &pieces));
  HG_TRY(write_sources(s, "scatter_seats", take_seat, COUNTS | BEGINS, COUNTS | SEATS));
  return write_sources(s, "scatter_ranks", find_rank, BEGINS | SEATS, 1u << LISTED);
}
