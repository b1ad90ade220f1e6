/* top.c - the first k elements of rows in the order of their keys, without sorting the rows.
 *
 * An element's rank is how many come before it: those with a greater key, and those with the same key and a smaller
 * index. A block that holds a row, or several, counts the rank of each element (Knuth, "The Art of Computer
 * Programming", volume 3, 5.2), and the elements of rank below k are the results in their order.
 *
 * Of a longer row each lane first keeps the best of its own elements. The k-th best of these is a bound: k elements are
 * at least that good. Those that reach it come together in slots of shared memory, and their ranks are counted. They
 * are in k lanes; if these have more of them than there are slots, the k-th best of those in slots is a better bound,
 * with which the row is read again. A long row is in parts, whose first k are the elements of another such launch. */
#include "ops/write/sort.h"

enum { AHEAD = IS_MORE + 1, SAME, EARLIER /* predicates, behind those of sort.h */ };

/* A launch: where elements are read and where the first of them go. */
typedef struct top_level {
  const sort *s;
  atlas_type key;
  uint64_t count, parts;            /* of a row */
  uint32_t k, lanes, row_lanes;     /* of a block; of a row of it */
  uint32_t slots;                   /* elements of a block in shared memory */
  uint32_t keys, indices;           /* storages that are read; the first launch reads the node's inputs */
  uint32_t next_keys, next_indices; /* storages that are written, but by the last launch, which has one part */
  int is_first;
} top_level;

typedef struct top_block {
  sort_launch l;
  const top_level *t;
  uint16_t keys, indices, taken, bound_key, bound_index; /* symbols in shared memory */
  uint16_t column;               /* i64: of the current element */
  uint16_t part, first, end;     /* i64: of the row; the lane's first column, and the end of the part */
  uint16_t best_key, best_index; /* the lane's, then the bound */
} top_block;

static uint16_t numbered(sort_launch *l, uint32_t value) {
  uint16_t made = sort_fresh(l);
  atlas_emit(l->b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(made), atlas_bits(value));
  return made;
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* The address of a column of the row in storages of an earlier launch. */
static uint16_t address_of(top_block *p, uint16_t column) {
  uint16_t at = sort_fresh(&p->l);
  atlas_emit(p->l.b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(at), atlas_reg(p->l.row), sort_scalar(&p->l, p->t->count),
             atlas_reg(column));
  return at;
}

/* The key and the index of the element at the column. */
static void read_element(top_block *p, uint16_t *key, uint16_t *index) {
  sort_launch *l = &p->l;
  const top_level *t = p->t;
  if (t->is_first) {
    *key = ops_sort_key(l, ops_sort_element(l, p->column)), *index = sort_fresh(l);
    sort_convert(l, ATLAS_u32, *index, ATLAS_i64, p->column);
    return;
  }
  uint16_t at = address_of(p, p->column);
  *key = sort_fresh(l), *index = sort_fresh(l);
  atlas_emit(l->b, ATLAS_OP_ldg, t->key, 2, atlas_reg(*key), atlas_mem_reg(ops_buffer_of(&l->code, t->keys), at, 0));
  atlas_emit(l->b, ATLAS_OP_ldg, ATLAS_u32, 2, atlas_reg(*index),
             atlas_mem_reg(ops_buffer_of(&l->code, t->indices), at, 0));
}

static void put_in_slot(top_block *p, uint16_t slot, uint16_t key, uint16_t index) {
  atlas_emit(p->l.b, ATLAS_OP_sts, p->t->key, 2, atlas_mem_reg(p->keys, slot, 0), atlas_reg(key));
  atlas_emit(p->l.b, ATLAS_OP_sts, ATLAS_u32, 2, atlas_mem_reg(p->indices, slot, 0), atlas_reg(index));
}

/* AHEAD: the first comes before the second. */
static void compare(top_block *p, uint16_t key, uint16_t index, uint16_t than_key, uint16_t than_index) {
  atlas_builder *b = p->l.b;
  atlas_emit(b, ATLAS_OP_set_gt, p->t->key, 3, atlas_pred(AHEAD), atlas_reg(key), atlas_reg(than_key));
  atlas_emit(b, ATLAS_OP_set_eq, p->t->key, 3, atlas_pred(SAME), atlas_reg(key), atlas_reg(than_key));
  atlas_emit(b, ATLAS_OP_set_lt, ATLAS_u32, 3, atlas_pred(EARLIER), atlas_reg(index), atlas_reg(than_index));
  atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(SAME), atlas_pred(SAME), atlas_pred(EARLIER));
  atlas_emit(b, ATLAS_OP_por, ATLAS_NONE, 3, atlas_pred(AHEAD), atlas_pred(AHEAD), atlas_pred(SAME));
}

/* How many of `count` slots, from `base` on, hold elements that come before this one. */
static uint16_t rank_of(top_block *p, uint16_t key, uint16_t index, uint16_t base, atlas_operand count) {
  sort_launch *l = &p->l;
  uint16_t rank = numbered(l, 0), at = numbered(l, 0), end = sort_fresh(l);
  uint16_t other_key = sort_fresh(l), other_index = sort_fresh(l), more = sort_fresh(l);
  uint32_t again = atlas_builder_label(l->b, NULL);
  if (base != OPS_NO_REGISTER) atlas_emit(l->b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(at), atlas_reg(base));
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, end, at, count);
  atlas_builder_place(l->b, again);
  atlas_emit(l->b, ATLAS_OP_lds, p->t->key, 2, atlas_reg(other_key), atlas_mem_reg(p->keys, at, 0));
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(other_index), atlas_mem_reg(p->indices, at, 0));
  compare(p, other_key, other_index, key, index);
  atlas_emit(l->b, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(more), atlas_pred(AHEAD), atlas_bits(1), atlas_bits(0));
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, rank, rank, atlas_reg(more));
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, at, at, atlas_bits(1));
  ops_branch_if(l->b, ATLAS_OP_set_lt, ATLAS_u32, atlas_reg(at), atlas_reg(end), again);
  return rank;
}

/* Stores an element that IS_THERE if its rank is below k: as a result, or for the next launch. */
static void put_ranked(top_block *p, uint16_t key, uint16_t index, uint16_t rank) {
  sort_launch *l = &p->l;
  const top_level *t = p->t;
  uint16_t column = sort_fresh(l), at = sort_fresh(l);
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_u32, 3, atlas_pred(AHEAD), atlas_reg(rank), atlas_bits(t->k));
  atlas_emit(l->b, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(IS_THERE), atlas_pred(IS_THERE), atlas_pred(AHEAD));
  sort_convert(l, ATLAS_i64, column, ATLAS_u32, rank);
  if (t->parts == 1) {
    sort_emit(l, ATLAS_OP_min, ATLAS_u32, at, index, ops_scalar_of(&l->code, ATLAS_u32, t->s->size - 1));
    uint16_t element = t->s->values != 0 ? ops_sort_element(l, sort_widened(l, at)) : at;
    ops_sort_put(l, element, at, column);
    return;
  }
  uint32_t absent = atlas_builder_label(l->b, NULL);
  atlas_emit_branch(l->b, IS_THERE, 1, absent);
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(at), atlas_reg(l->row), sort_scalar(l, t->parts),
             atlas_reg(p->part));
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(at), atlas_reg(at), sort_scalar(l, t->k), atlas_reg(column));
  atlas_emit(l->b, ATLAS_OP_stg, t->key, 2, atlas_mem_reg(ops_buffer_of(&l->code, t->next_keys), at, 0),
             atlas_reg(key));
  atlas_emit(l->b, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem_reg(ops_buffer_of(&l->code, t->next_indices), at, 0),
             atlas_reg(index));
  atlas_builder_place(l->b, absent);
}

static uint32_t bits_of(uint32_t power) {
  uint32_t bits = 0;
  while (power >> bits > 1) bits++;
  return bits;
}

/* ---- short rows: a lane for each element ------------------------------------------------------------------------- */

static void write_short_rows(top_block *p) {
  sort_launch *l = &p->l;
  const top_level *t = p->t;
  uint32_t rows = t->lanes / t->row_lanes;
  ops_launch_blocks(&l->code, (t->s->rows + rows - 1) / rows, 1, 1, t->lanes);
  uint16_t lane = ops_index_of(&l->code, ATLAS_REG_BLOCK_LANE), key, index, base = OPS_NO_REGISTER;
  l->row = ops_launch_index(&l->code, ATLAS_COORD_BLOCK_X), p->column = sort_fresh(l);
  sort_emit(l, ATLAS_OP_and, ATLAS_i64, p->column, lane, sort_scalar(l, t->row_lanes - 1));
  if (rows > 1) {
    uint16_t first = l->row;
    l->row = sort_fresh(l), base = sort_fresh(l);
    sort_emit(l, ATLAS_OP_shr, ATLAS_i64, l->row, lane, atlas_bits(bits_of(t->row_lanes)));
    atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(l->row), atlas_reg(first), sort_scalar(l, rows),
               atlas_reg(l->row));
    sort_emit(l, ATLAS_OP_and, ATLAS_u32, base, ATLAS_REG_BLOCK_LANE, atlas_bits(~(t->row_lanes - 1)));
  }
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_MORE), atlas_reg(l->row), sort_scalar(l, t->s->rows));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_THERE), atlas_reg(p->column), sort_scalar(l, t->count));
  atlas_emit(l->b, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(IS_THERE), atlas_pred(IS_THERE), atlas_pred(IS_MORE));
  sort_emit(l, ATLAS_OP_min, ATLAS_i64, l->row, l->row, sort_scalar(l, t->s->rows - 1));
  sort_emit(l, ATLAS_OP_min, ATLAS_i64, p->column, p->column, sort_scalar(l, t->count - 1));
  read_element(p, &key, &index);
  put_in_slot(p, ATLAS_REG_BLOCK_LANE, key, index);
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  put_ranked(p, key, index, rank_of(p, key, index, base, atlas_bits((uint32_t)t->count)));
}

/* ---- long rows --------------------------------------------------------------------------------------------------- */

/* The block's row, and the lane's columns of a part of it. Parts are equal, but for an element. */
static void begin_part(top_block *p) {
  sort_launch *l = &p->l;
  const top_level *t = p->t;
  ops_launch_blocks(&l->code, t->s->rows * t->parts, 1, 1, t->lanes);
  uint16_t block = ops_launch_index(&l->code, ATLAS_COORD_BLOCK_X), lane = ops_index_of(&l->code, ATLAS_REG_BLOCK_LANE);
  l->row = sort_fresh(l), p->column = sort_fresh(l);
  p->part = sort_fresh(l), p->first = sort_fresh(l), p->end = sort_fresh(l);
  sort_emit(l, ATLAS_OP_div, ATLAS_i64, l->row, block, sort_scalar(l, t->parts));
  sort_emit(l, ATLAS_OP_rem, ATLAS_i64, p->part, block, sort_scalar(l, t->parts));
  sort_emit(l, ATLAS_OP_mul, ATLAS_i64, p->first, p->part, sort_scalar(l, t->count));
  sort_emit(l, ATLAS_OP_add, ATLAS_i64, p->end, p->first, sort_scalar(l, t->count));
  sort_emit(l, ATLAS_OP_div, ATLAS_i64, p->end, p->end, sort_scalar(l, t->parts));
  sort_emit(l, ATLAS_OP_div, ATLAS_i64, p->first, p->first, sort_scalar(l, t->parts));
  sort_emit(l, ATLAS_OP_add, ATLAS_i64, p->first, p->first, atlas_reg(lane));
}

/* Does something with each of the lane's elements, the last one first. */
static void go_over(top_block *p, void (*visit)(top_block *)) {
  sort_launch *l = &p->l;
  const top_level *t = p->t;
  uint64_t least = t->count / t->parts, rounds = least / t->lanes;
  if (least % t->lanes != 0 || t->count % t->parts != 0) {
    uint32_t absent = atlas_builder_label(l->b, NULL);
    sort_emit(l, ATLAS_OP_add, ATLAS_i64, p->column, p->first, sort_scalar(l, rounds * t->lanes));
    ops_branch_unless(l->b, ATLAS_OP_set_lt, ATLAS_i64, atlas_reg(p->column), atlas_reg(p->end), absent);
    visit(p);
    atlas_builder_place(l->b, absent);
    ops_forget_all(&l->code);
  }
  if (rounds == 0) return;
  uint16_t left = numbered(l, (uint32_t)rounds);
  uint32_t again = atlas_builder_label(l->b, NULL);
  sort_emit(l, ATLAS_OP_add, ATLAS_i64, p->column, p->first, sort_scalar(l, (rounds - 1) * t->lanes));
  atlas_builder_place(l->b, again);
  visit(p);
  sort_emit(l, ATLAS_OP_sub, ATLAS_i64, p->column, p->column, sort_scalar(l, t->lanes));
  sort_emit(l, ATLAS_OP_sub, ATLAS_u32, left, left, atlas_bits(1));
  ops_branch_if(l->b, ATLAS_OP_set_ne, ATLAS_u32, atlas_reg(left), atlas_bits(0), again);
  ops_forget_all(&l->code);
}

/* Of equal keys the one that is visited last has the smallest index. */
static void keep_best(top_block *p) {
  uint16_t key, index;
  read_element(p, &key, &index);
  atlas_emit(p->l.b, ATLAS_OP_set_ge, p->t->key, 3, atlas_pred(AHEAD), atlas_reg(key), atlas_reg(p->best_key));
  atlas_emit(p->l.b, ATLAS_OP_sel, p->t->key, 4, atlas_reg(p->best_key), atlas_pred(AHEAD), atlas_reg(key),
             atlas_reg(p->best_key));
  atlas_emit(p->l.b, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(p->best_index), atlas_pred(AHEAD), atlas_reg(index),
             atlas_reg(p->best_index));
}

/* 1: more elements may reach a bound than there are slots. */
static int may_overflow(const top_level *t) {
  return (t->count / t->parts / t->lanes + 1) * t->k > t->slots;
}

/* Puts the element into a slot if it reaches the bound and there is one. Which slot does not matter. */
static void take_if_good(top_block *p) {
  sort_launch *l = &p->l;
  uint16_t key, index, slot = sort_fresh(l);
  uint32_t worse = atlas_builder_label(l->b, NULL);
  read_element(p, &key, &index);
  ops_branch_if(l->b, ATLAS_OP_set_lt, p->t->key, atlas_reg(key), atlas_reg(p->best_key), worse);
  compare(p, p->best_key, p->best_index, key, index);
  atlas_emit_branch(l->b, AHEAD, 0, worse);
  atlas_emit(l->b, ATLAS_OP_atom_add, ATLAS_u32, 3, atlas_reg(slot), atlas_mem(p->taken, 0), atlas_bits(1));
  if (may_overflow(p->t))
    ops_branch_if(l->b, ATLAS_OP_set_ge, ATLAS_u32, atlas_reg(slot), atlas_bits(p->t->slots), worse);
  put_in_slot(p, slot, key, index);
  atlas_builder_place(l->b, worse);
}

/* The element of rank k - 1 is the bound. */
static void put_bound(top_block *p, uint16_t key, uint16_t index, uint16_t rank) {
  sort_launch *l = &p->l;
  uint32_t other = atlas_builder_label(l->b, NULL);
  ops_branch_unless(l->b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(rank), atlas_bits(p->t->k - 1), other);
  atlas_emit(l->b, ATLAS_OP_sts, p->t->key, 2, atlas_mem(p->bound_key, 0), atlas_reg(key));
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u32, 2, atlas_mem(p->bound_index, 0), atlas_reg(index));
  atlas_builder_place(l->b, other);
}

static void read_bound(top_block *p) {
  sort_launch *l = &p->l;
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  atlas_emit(l->b, ATLAS_OP_lds, p->t->key, 2, atlas_reg(p->best_key), atlas_mem(p->bound_key, 0));
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(p->best_index), atlas_mem(p->bound_index, 0));
}

/* The k-th best of what the lanes have. One that has nothing comes behind all others. */
static void find_bound(top_block *p) {
  sort_launch *l = &p->l;
  p->best_key = sort_fresh(l);
  atlas_emit(l->b, ATLAS_OP_movi, p->t->key, 2, atlas_reg(p->best_key), atlas_bits(0));
  p->best_index = numbered(l, UINT32_MAX);
  go_over(p, keep_best);
  put_in_slot(p, ATLAS_REG_BLOCK_LANE, p->best_key, p->best_index);
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  uint16_t rank = rank_of(p, p->best_key, p->best_index, OPS_NO_REGISTER, atlas_bits(p->t->lanes));
  put_bound(p, p->best_key, p->best_index, rank);
  read_bound(p);
}

/* Puts what is in the first `count` slots where its rank says, as many at a time as there are lanes. */
static void rank_slots(top_block *p, uint16_t count, void (*put)(top_block *, uint16_t, uint16_t, uint16_t)) {
  sort_launch *l = &p->l;
  uint16_t slot = sort_fresh(l), begun = numbered(l, 0), key = sort_fresh(l), index = sort_fresh(l);
  uint32_t again = atlas_builder_label(l->b, NULL);
  atlas_builder_place(l->b, again);
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, slot, begun, atlas_reg(ATLAS_REG_BLOCK_LANE));
  atlas_emit(l->b, ATLAS_OP_lds, p->t->key, 2, atlas_reg(key), atlas_mem_reg(p->keys, slot, 0));
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(index), atlas_mem_reg(p->indices, slot, 0));
  uint16_t rank = rank_of(p, key, index, OPS_NO_REGISTER, atlas_reg(count));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_u32, 3, atlas_pred(IS_THERE), atlas_reg(slot), atlas_reg(count));
  put(p, key, index, rank);
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, begun, begun, atlas_bits(p->t->lanes));
  ops_branch_if(l->b, ATLAS_OP_set_lt, ATLAS_u32, atlas_reg(begun), atlas_reg(count), again);
  ops_forget_all(&l->code);
}

/* Fills the slots; returns how many. While there are too few of them, with better and better bounds. */
static uint16_t fill_slots(top_block *p) {
  sort_launch *l = &p->l;
  uint16_t count = sort_fresh(l);
  uint32_t again = atlas_builder_label(l->b, NULL);
  atlas_builder_place(l->b, again);
  go_over(p, take_if_good);
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(count), atlas_mem(p->taken, 0));
  if (!may_overflow(p->t)) return count;
  uint32_t fit = atlas_builder_label(l->b, NULL);
  atlas_emit(l->b, ATLAS_OP_reduce_max, ATLAS_u32, 2, atlas_reg(count), atlas_reg(count));
  ops_branch_unless(l->b, ATLAS_OP_set_gt, ATLAS_u32, atlas_reg(count), atlas_bits(p->t->slots), fit);
  rank_slots(p, numbered(l, p->t->slots), put_bound);
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u32, 2, atlas_mem(p->taken, 0), atlas_reg(numbered(l, 0)));
  read_bound(p);
  ops_branch_if(l->b, ATLAS_OP_set_gt, ATLAS_u32, atlas_reg(count), atlas_bits(p->t->slots), again);
  atlas_builder_place(l->b, fit);
  return count;
}

static void write_long_rows(top_block *p) {
  sort_launch *l = &p->l;
  p->taken = atlas_builder_shared(l->b, "taken", ATLAS_u32, 1);
  p->bound_key = atlas_builder_shared(l->b, "bound_key", p->t->key, 1);
  p->bound_index = atlas_builder_shared(l->b, "bound_index", ATLAS_u32, 1);
  begin_part(p);
  find_bound(p);
  rank_slots(p, fill_slots(p), put_ranked);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static uint32_t power_from(uint64_t least) {
  uint32_t power = 1;
  while (power < least) power *= 2;
  return power;
}

static void choose(top_level *t, int for_gpu) {
  uint32_t least = for_gpu ? OPS_TOPK_LANES_GPU : OPS_TOPK_LANES;
  t->parts = 1;
  if (t->count <= OPS_TOPK_SHORT) {
    t->row_lanes = power_from(t->count);
    t->lanes = t->slots = t->row_lanes > least ? t->row_lanes : least;
    return;
  }
  t->lanes = power_from(2 * (uint64_t)t->k);
  if (t->lanes < least) t->lanes = least;
  t->slots = t->lanes > OPS_TOPK_SLOTS ? t->lanes : OPS_TOPK_SLOTS;
  uint64_t blocks = for_gpu ? OPS_TOPK_BLOCKS_GPU : OPS_TOPK_BLOCKS;
  uint64_t rounds = t->s->rows * t->count / (blocks * t->lanes);
  if (rounds < OPS_TOPK_LEAST_ROUNDS) rounds = OPS_TOPK_LEAST_ROUNDS;
  t->parts = (t->count + rounds * t->lanes - 1) / (rounds * t->lanes);
}

static hg_status write_level(const top_level *t) {
  const uint32_t none[] = {SORT_NONE}, read[] = {t->keys, t->indices, SORT_NONE};
  const uint32_t written[] = {t->next_keys, t->next_indices, SORT_NONE};
  int is_last = t->parts == 1;
  top_block p = {.t = t};
  sort_launch *l = &p.l;
  int reads_input = t->is_first || (is_last && t->s->values != 0);
  hg_status status = ops_sort_begin(l, t->s, reads_input, t->is_first ? none : read, is_last ? none : written, "top");
  if (status == HG_OK) {
    p.keys = atlas_builder_shared(l->b, "keys", t->key, t->slots);
    p.indices = atlas_builder_shared(l->b, "indices", ATLAS_u32, t->slots);
    (t->count <= OPS_TOPK_SHORT ? write_short_rows : write_long_rows)(&p);
  }
  return ops_code_end_all(&l->code, &l->terms, status);
}

hg_status ops_write_top(const ops_group *group) {
  sort s = ops_sort_of(group);
  s.is_reversed = s.node->bits == 0; /* what is wanted first has the greatest key */
  top_level t = {.s = &s, .key = sort_key_type(&s), .count = s.size,
                 .k = (uint32_t)s.node->shape.size[s.axis], .is_first = 1};
  for (;;) {
    choose(&t, group->plan->for_gpu);
    uint64_t kept = s.rows * t.parts * t.k;
    if (t.parts > 1) HG_TRY(ops_add_temporary(group->plan, (uint8_t)t.key, kept, &t.next_keys));
    if (t.parts > 1) HG_TRY(ops_add_temporary(group->plan, ATLAS_u32, kept, &t.next_indices));
    HG_TRY(write_level(&t));
    if (t.parts == 1) return HG_OK;
    t.keys = t.next_keys, t.indices = t.next_indices, t.count = t.parts * t.k, t.is_first = 0;
  }
}
