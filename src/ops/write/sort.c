/* sort.c - sorts rows by keys: rows that a block can hold with a network of comparisons (Batcher, "Sorting networks and
 * their applications", 1968), longer ones by digits (radix.c).
 *
 * A word is an element's key and, below it, its index in the row: words differ, so the order is unique and equal keys
 * keep their order. A row is filled up to a power of two with the largest words. Runs of `width` words are merged two
 * at a time: the first comparison is with the word at the mirrored position of both runs, each further one with the
 * word half as far away; the smaller word always goes to the lower position. Then the elements are read at their
 * indices. */
#include "ops/write/sort.h"

enum { HALVES = 2 /* words of a lane in a tile */ };

/* A launch of the network. */
typedef struct tiles {
  sort_launch l;
  uint16_t tile;            /* symbol */
  uint16_t element[HALVES]; /* the numbers of the lane's words in the tile, u32 */
} tiles;

static uint64_t words_of(const sort *s) { return s->rows << s->row_bits; }

/* ---- a tile in shared memory ------------------------------------------------------------------------------------- */

static void begin_tile(tiles *t) {
  sort_launch *l = &t->l;
  const sort *s = l->s;
  uint32_t lanes = (1u << s->tile_bits) / HALVES;
  ops_launch_blocks(&l->code, (words_of(s) + (1u << s->tile_bits) - 1) >> s->tile_bits, 1, 1, lanes);
  t->tile = atlas_builder_shared(l->b, "tile", ATLAS_u64, 1u << s->tile_bits);
  for (uint32_t h = 0; h < HALVES; h++) {
    t->element[h] = sort_fresh(l);
    sort_emit(l, ATLAS_OP_add, ATLAS_u32, t->element[h], ATLAS_REG_BLOCK_LANE, atlas_bits(h * lanes));
  }
}

/* The number of a word of the tile among all words, i64. */
static uint16_t number_of(tiles *t, uint32_t half) {
  sort_launch *l = &t->l;
  uint16_t block = ops_launch_coordinate(&l->code, ATLAS_COORD_BLOCK_X), number = sort_fresh(l), own = sort_fresh(l);
  sort_convert(l, ATLAS_i64, number, ATLAS_u32, block);
  sort_convert(l, ATLAS_i64, own, ATLAS_u32, t->element[half]);
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(number), atlas_reg(number),
             sort_scalar(l, UINT64_C(1) << l->s->tile_bits), atlas_reg(own));
  return number;
}

/* Row and column of a word; IS_THERE says whether the element exists; if not, those of another element. */
static void find_element(tiles *t, uint32_t half) {
  sort_launch *l = &t->l;
  const sort *s = l->s;
  uint16_t number = number_of(t, half);
  l->row = sort_fresh(l), l->column = sort_fresh(l);
  sort_emit(l, ATLAS_OP_shr, ATLAS_i64, l->row, number, atlas_bits(s->row_bits));
  sort_emit(l, ATLAS_OP_and, ATLAS_i64, l->column, number, sort_scalar(l, (UINT64_C(1) << s->row_bits) - 1));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_MORE), atlas_reg(l->row), sort_scalar(l, s->rows));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_THERE), atlas_reg(l->column), sort_scalar(l, s->size));
  atlas_emit(l->b, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(IS_THERE), atlas_pred(IS_THERE), atlas_pred(IS_MORE));
  sort_emit(l, ATLAS_OP_min, ATLAS_i64, l->row, l->row, sort_scalar(l, s->rows - 1));
  sort_emit(l, ATLAS_OP_min, ATLAS_i64, l->column, l->column, sort_scalar(l, s->size - 1));
}

static void read_keys(tiles *t) {
  sort_launch *l = &t->l;
  for (uint32_t h = 0; h < HALVES; h++) {
    find_element(t, h);
    uint16_t word = ops_sort_word(l);
    atlas_emit(l->b, ATLAS_OP_sel, ATLAS_u64, 4, atlas_reg(word), atlas_pred(IS_THERE), atlas_reg(word),
               ops_scalar_of(&l->code, ATLAS_u64, UINT64_MAX));
    atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u64, 2, atlas_mem_reg(t->tile, t->element[h], 0), atlas_reg(word));
  }
}

/* Stores the element at each index. A word without an element reads another one. */
static void write_results(tiles *t) {
  sort_launch *l = &t->l;
  for (uint32_t h = 0; h < HALVES; h++) {
    uint16_t place = sort_fresh(l);
    atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u64, 2, atlas_reg(place), atlas_mem_reg(t->tile, t->element[h], 0));
    find_element(t, h);
    sort_emit(l, ATLAS_OP_and, ATLAS_u64, place, place, ops_scalar_of(&l->code, ATLAS_u64, UINT32_MAX));
    sort_convert(l, ATLAS_i64, place, ATLAS_u64, place);
    sort_emit(l, ATLAS_OP_min, ATLAS_i64, place, place, sort_scalar(l, l->s->size - 1));
    ops_sort_put(l, place);
  }
}

/* Compares words `step` apart (in the first step of a merge at mirrored positions) until they are neighbours. The
 * smaller one goes to the lower position. */
static void merge_steps(tiles *t, uint16_t step, uint16_t partner) {
  sort_launch *l = &t->l;
  uint16_t low = sort_fresh(l), high = sort_fresh(l), a = sort_fresh(l), b = sort_fresh(l), room = sort_fresh(l);
  uint32_t next = atlas_builder_label(l->b, NULL);
  atlas_builder_place(l->b, next);
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  sort_emit(l, ATLAS_OP_sub, ATLAS_u32, high, step, atlas_bits(1));
  sort_emit(l, ATLAS_OP_and, ATLAS_u32, high, high, atlas_reg(ATLAS_REG_BLOCK_LANE));
  sort_emit(l, ATLAS_OP_shl, ATLAS_u32, low, ATLAS_REG_BLOCK_LANE, atlas_bits(1));
  sort_emit(l, ATLAS_OP_sub, ATLAS_u32, low, low, atlas_reg(high));
  sort_emit(l, ATLAS_OP_xor, ATLAS_u32, high, low, atlas_reg(partner));
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u64, 2, atlas_reg(a), atlas_mem_reg(t->tile, low, 0));
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u64, 2, atlas_reg(b), atlas_mem_reg(t->tile, high, 0));
  sort_emit(l, ATLAS_OP_min, ATLAS_u64, room, a, atlas_reg(b));
  sort_emit(l, ATLAS_OP_max, ATLAS_u64, b, a, atlas_reg(b));
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u64, 2, atlas_mem_reg(t->tile, low, 0), atlas_reg(room));
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u64, 2, atlas_mem_reg(t->tile, high, 0), atlas_reg(b));
  sort_emit(l, ATLAS_OP_shr, ATLAS_u32, step, step, atlas_bits(1));
  atlas_emit(l->b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(partner), atlas_reg(step));
  ops_branch_if(l->b, ATLAS_OP_set_ne, ATLAS_u32, atlas_reg(step), atlas_bits(0), next);
}

/* Turns runs of one word into runs of a row. */
static void sort_tile(tiles *t) {
  sort_launch *l = &t->l;
  uint16_t width = sort_fresh(l), step = sort_fresh(l), partner = sort_fresh(l);
  uint32_t next = atlas_builder_label(l->b, NULL);
  atlas_emit(l->b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(width), atlas_bits(1));
  atlas_builder_place(l->b, next);
  atlas_emit(l->b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(step), atlas_reg(width));
  sort_emit(l, ATLAS_OP_shl, ATLAS_u32, partner, width, atlas_bits(1));
  sort_emit(l, ATLAS_OP_sub, ATLAS_u32, partner, partner, atlas_bits(1));
  merge_steps(t, step, partner);
  sort_emit(l, ATLAS_OP_shl, ATLAS_u32, width, width, atlas_bits(1));
  ops_branch_if(l->b, ATLAS_OP_set_lt, ATLAS_u32, atlas_reg(width), atlas_bits(1u << l->s->row_bits), next);
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
}

static hg_status write_tiles(const sort *s) {
  static const uint32_t none[] = {SORT_NONE};
  tiles t;
  hg_status status = ops_sort_begin(&t.l, s, READS_KEYS | WRITES_RESULTS, none, none, "sort_tiles");
  if (status == HG_OK) {
    begin_tile(&t);
    read_keys(&t);
    sort_tile(&t);
    write_results(&t);
  }
  return ops_code_end_all(&t.l.code, &t.l.terms, status);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static uint32_t bits_for(uint64_t count) {
  uint32_t bits = 0;
  while (UINT64_C(1) << bits < count) bits++;
  return bits;
}

static uint32_t tile_bits(const sort *s) {
  uint32_t all = bits_for(words_of(s)), bits = s->row_bits < OPS_SORT_FEW_BITS ? OPS_SORT_FEW_BITS : s->row_bits;
  return bits < all ? bits : all;
}

hg_status ops_write_sort(const ops_group *group) {
  value_id first = ops_first_result(group->computation, group->results[0]);
  sort s = {.group = group, .node = ops_at(group->computation, first)};
  s.shape = s.node->shape, s.axis = s.node->axis;
  s.size = s.shape.size[s.axis], s.rows = ops_count(&s.shape) / s.size;
  s.row_bits = bits_for(s.size);
  s.values = ops_storage_of_result(group, first, 0);
  s.places = ops_storage_of_result(group, first, 1);
  if (s.row_bits > (group->plan->for_gpu ? OPS_SORT_TILE_BITS_GPU : OPS_SORT_TILE_BITS)) return ops_write_radix(&s);
  s.tile_bits = tile_bits(&s);
  return write_tiles(&s);
}
