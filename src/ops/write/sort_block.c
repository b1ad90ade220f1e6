/* sort_block.c - sorts rows that a block holds, a block a row: by one digit after the other, the lowest first (radix.c
 * says why that sorts), in shared memory. */
#include "ops/write/sort.h"

static void read_row(sort_tile *t) {
  sort_launch *l = t->l;
  ops_tile_columns(t, ATLAS_REG_BLOCK_LANE);
  for (uint32_t k = 0; k < t->rounds; k++) {
    uint16_t column = sort_fresh(l);
    t->place[k] = sort_fresh(l);
    atlas_emit(l->b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(t->place[k]), atlas_reg(t->column[k]));
    sort_emit(l, ATLAS_OP_min, ATLAS_u32, column, t->column[k],
              ops_scalar_of(&l->code, ATLAS_u32, l->s->size - 1));
    t->element[k] = ops_sort_element(l, sort_widened(l, column));
  }
}

/* Words that are not there come last in each digit's order, so they stay where they are. */
static void sort_row(sort_tile *t) {
  sort_launch *l = t->l;
  uint32_t again = atlas_builder_label(l->b, NULL);
  uint16_t shift = sort_fresh(l), before;
  atlas_emit(l->b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(shift), atlas_bits(0));
  atlas_builder_place(l->b, again);
  ops_tile_rank(t, atlas_reg(shift));
  ops_tile_inside(t, &before);
  sort_barrier(l);
  ops_tile_order(t);
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, shift, shift, atlas_bits(SORT_DIGIT_BITS));
  ops_branch_if(l->b, ATLAS_OP_set_lt, ATLAS_u32, atlas_reg(shift), atlas_bits(l->s->key_bits), again);
  ops_forget_all(&l->code);
}

hg_status ops_write_sort_block(const sort *s) {
  static const uint32_t none[] = {SORT_NONE};
  sort_launch l;
  sort_tile t;
  hg_status status = ops_sort_begin(&l, s, 1, none, none, "sort_block");
  if (status == HG_OK) {
    ops_launch_blocks(&l.code, s->rows, 1, 1, SORT_DIGITS);
    l.row = ops_launch_index(&l.code, ATLAS_COORD_BLOCK_X);
    ops_tile_begin(&t, &l, (uint32_t)((s->size + SORT_DIGITS - 1) / SORT_DIGITS), 1);
    read_row(&t);
    sort_row(&t);
    for (uint32_t k = 0; k < t.rounds; k++) {
      ops_tile_is_there(&t, k);
      ops_sort_put(&l, t.element[k], t.place[k], sort_widened(&l, t.column[k]));
    }
  }
  return ops_code_end_all(&l.code, &l.terms, status);
}
