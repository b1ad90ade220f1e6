/* sort_digits.c - what a block does with the words of a tile for one digit: it counts and ranks them, says where each
 * goes, and brings them into the digit's order, in which equal ones keep theirs. */
#include "ops/write/sort.h"

void ops_tile_begin(sort_tile *t, sort_launch *l, uint32_t rounds, int is_ordered) {
  uint32_t words = rounds * SORT_DIGITS;
  *t = (sort_tile){.l = l, .rounds = rounds};
  t->windows = atlas_builder_shared(l->b, "counts", ATLAS_u32, words);
  if (!is_ordered) return;
  t->elements = atlas_builder_shared(l->b, "elements", l->s->moved, words);
  if (l->s->places != 0) t->places = atlas_builder_shared(l->b, "places", ATLAS_u32, words);
}

void ops_tile_columns(sort_tile *t, uint16_t first) {
  sort_launch *l = t->l;
  for (uint32_t k = 0; k < t->rounds; k++) {
    if (t->column[k] == 0) t->column[k] = sort_fresh(l);
    sort_emit(l, ATLAS_OP_add, ATLAS_u32, t->column[k], first, atlas_bits(k * SORT_DIGITS));
  }
}

void ops_tile_is_there(sort_tile *t, uint32_t round) {
  atlas_emit(t->l->b, ATLAS_OP_set_lt, ATLAS_u32, 3, atlas_pred(IS_THERE), atlas_reg(t->column[round]),
             ops_scalar_of(&t->l->code, ATLAS_u32, t->l->s->size));
}

uint16_t ops_sort_digit(sort_launch *l, uint16_t element, atlas_operand shift) {
  atlas_type type = sort_key_type(l->s);
  uint16_t digit = sort_fresh(l);
  sort_emit(l, ATLAS_OP_shr, type, digit, ops_sort_key(l, element), shift);
  if (type == ATLAS_u64) sort_emit(l, ATLAS_OP_and, type, digit, digit, atlas_bits(SORT_DIGITS - 1));
  if (type == ATLAS_u64) sort_convert(l, ATLAS_u32, digit, type, digit);
  else sort_emit(l, ATLAS_OP_and, ATLAS_u32, digit, digit, atlas_bits(SORT_DIGITS - 1));
  return digit;
}

void ops_tile_rank(sort_tile *t, atlas_operand shift) {
  sort_launch *l = t->l;
  for (uint32_t k = 0; k < t->rounds; k++) {
    t->digit[k] = ops_sort_digit(l, t->element[k], shift), t->rank[k] = sort_fresh(l);
    ops_tile_is_there(t, k);
    atlas_emit(l->b, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(t->digit[k]), atlas_pred(IS_THERE),
               atlas_reg(t->digit[k]), atlas_bits(SORT_DIGITS - 1));
  }
  for (uint32_t k = 0; k < t->rounds; k++)
    atlas_emit(l->b, ATLAS_OP_rank, ATLAS_u32, 4, atlas_reg(t->rank[k]), atlas_reg(t->digit[k]),
               atlas_mem(t->windows, k * SORT_DIGITS), atlas_bits(SORT_DIGIT_BITS));
}

static atlas_operand own_count(const sort_tile *t, uint32_t round) {
  return atlas_mem_reg(t->windows, ATLAS_REG_BLOCK_LANE, round * SORT_DIGITS);
}

static uint16_t load_count(sort_tile *t, uint32_t round) {
  uint16_t count = sort_fresh(t->l);
  atlas_emit(t->l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(count), own_count(t, round));
  return count;
}

void ops_tile_follow(sort_tile *t, uint16_t sum) {
  sort_launch *l = t->l;
  uint16_t count[SORT_MOST_ROUNDS];
  for (uint32_t k = 0; k < t->rounds; k++) count[k] = load_count(t, k);
  for (uint32_t k = 0; k < t->rounds; k++) {
    atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u32, 2, own_count(t, k), atlas_reg(sum));
    sort_emit(l, ATLAS_OP_add, ATLAS_u32, sum, sum, atlas_reg(count[k]));
  }
}

uint16_t ops_tile_inside(sort_tile *t, uint16_t *before) {
  sort_launch *l = t->l;
  uint16_t all = load_count(t, 0), sum = sort_fresh(l);
  for (uint32_t k = 1; k < t->rounds; k++) sort_emit(l, ATLAS_OP_add, ATLAS_u32, all, all, atlas_reg(load_count(t, k)));
  *before = sort_fresh(l);
  atlas_emit(l->b, ATLAS_OP_scan_excl, ATLAS_u32, 2, atlas_reg(*before), atlas_reg(all));
  atlas_emit(l->b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(sum), atlas_reg(*before));
  ops_tile_follow(t, sum);
  return all;
}

uint16_t ops_tile_target(sort_tile *t, uint32_t round) {
  uint16_t to = sort_fresh(t->l);
  atlas_emit(t->l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(to),
             atlas_mem_reg(t->windows, t->digit[round], round * SORT_DIGITS));
  sort_emit(t->l, ATLAS_OP_add, ATLAS_u32, to, to, atlas_reg(t->rank[round]));
  return to;
}

void ops_tile_order(sort_tile *t) {
  sort_launch *l = t->l;
  const sort *s = l->s;
  for (uint32_t k = 0; k < t->rounds; k++) {
    uint16_t to = ops_tile_target(t, k);
    sort_emit(l, ATLAS_OP_min, ATLAS_u32, to, to, atlas_bits(t->rounds * SORT_DIGITS - 1)); /* so it needs no check */
    atlas_emit(l->b, ATLAS_OP_sts, s->moved, 2, atlas_mem_reg(t->elements, to, 0), atlas_reg(t->element[k]));
    if (s->places != 0)
      atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u32, 2, atlas_mem_reg(t->places, to, 0), atlas_reg(t->place[k]));
  }
  sort_barrier(l);
  for (uint32_t k = 0; k < t->rounds; k++) {
    atlas_operand own = atlas_mem_reg(t->elements, ATLAS_REG_BLOCK_LANE, k * SORT_DIGITS);
    atlas_emit(l->b, ATLAS_OP_lds, s->moved, 2, atlas_reg(t->element[k]), own);
    own = atlas_mem_reg(t->places, ATLAS_REG_BLOCK_LANE, k * SORT_DIGITS);
    if (s->places != 0) atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(t->place[k]), own);
  }
}
