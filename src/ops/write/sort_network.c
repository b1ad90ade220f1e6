/* sort_network.c - sorts short rows with a network of comparisons (Batcher, "Sorting networks and their applications",
 * 1968), in shared memory; a block has one row, or several.
 *
 * A word is an element's key and, below it, its index in the row: words differ, so the order is unique and equal keys
 * keep their order. A row is filled up to a power of two with the largest words. Runs of `width` words are merged two
 * at a time: the first comparison is with the word at the mirrored position of both runs, each further one with the
 * word half as far away; the smaller word always goes to the lower position. Then the elements are read at their
 * indices. */
#include "ops/write/sort.h"

enum { HALVES = 2 /* words of a lane in a tile */, KEY_BITS = 32 /* of a word that has its index as well */ };

/* A launch of the network. */
typedef struct tiles {
  sort_launch l;
  uint32_t row_bits, bits;  /* a row has at most 2^row_bits words, a tile 2^bits */
  uint16_t tile, places;    /* symbols: words; of 64-bit keys their indices */
  uint16_t column;          /* i64: of the current word; at most the last one */
  uint16_t element[HALVES]; /* the numbers of the lane's words in the tile, u32 */
} tiles;

/* ---- a tile in shared memory ------------------------------------------------------------------------------------- */

static void begin_tile(tiles *t) {
  sort_launch *l = &t->l;
  uint32_t words = 1u << t->bits, lanes = words / HALVES;
  ops_launch_blocks(&l->code, ((l->s->rows << t->row_bits) + words - 1) / words, 1, 1, lanes);
  t->tile = atlas_builder_shared(l->b, "tile", ATLAS_u64, words);
  if (sort_is_wide(l->s)) t->places = atlas_builder_shared(l->b, "places", ATLAS_u32, words);
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
             sort_scalar(l, UINT64_C(1) << t->bits), atlas_reg(own));
  return number;
}

/* Row and column of a word; IS_THERE says whether the element exists; if not, those of another element. */
static void find_element(tiles *t, uint32_t half) {
  sort_launch *l = &t->l;
  const sort *s = l->s;
  uint16_t number = number_of(t, half);
  l->row = sort_fresh(l), t->column = sort_fresh(l);
  sort_emit(l, ATLAS_OP_shr, ATLAS_i64, l->row, number, atlas_bits(t->row_bits));
  sort_emit(l, ATLAS_OP_and, ATLAS_i64, t->column, number, sort_scalar(l, (UINT64_C(1) << t->row_bits) - 1));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_MORE), atlas_reg(l->row), sort_scalar(l, s->rows));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_THERE), atlas_reg(t->column), sort_scalar(l, s->size));
  atlas_emit(l->b, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(IS_THERE), atlas_pred(IS_THERE), atlas_pred(IS_MORE));
  sort_emit(l, ATLAS_OP_min, ATLAS_i64, l->row, l->row, sort_scalar(l, s->rows - 1));
  sort_emit(l, ATLAS_OP_min, ATLAS_i64, t->column, t->column, sort_scalar(l, s->size - 1));
}

/* The word of an element, u64: its key above its index; of a 64-bit key that alone. */
static uint16_t word_of(tiles *t, uint16_t element) {
  sort_launch *l = &t->l;
  uint16_t key = ops_sort_key(l, element), word = sort_fresh(l), place = sort_fresh(l);
  if (sort_is_wide(l->s)) return key;
  sort_convert(l, ATLAS_u64, word, ATLAS_u32, key);
  sort_emit(l, ATLAS_OP_shl, ATLAS_u64, word, word, atlas_bits(KEY_BITS));
  sort_convert(l, ATLAS_u64, place, ATLAS_i64, t->column);
  sort_emit(l, ATLAS_OP_or, ATLAS_u64, word, word, atlas_reg(place));
  return word;
}

/* Words that are not there are the largest; of those with the same key they are the last ones. */
static void read_words(tiles *t) {
  sort_launch *l = &t->l;
  for (uint32_t h = 0; h < HALVES; h++) {
    find_element(t, h);
    uint16_t word = word_of(t, ops_sort_element(l, t->column)), place = sort_fresh(l);
    atlas_emit(l->b, ATLAS_OP_sel, ATLAS_u64, 4, atlas_reg(word), atlas_pred(IS_THERE), atlas_reg(word),
               ops_scalar_of(&l->code, ATLAS_u64, UINT64_MAX));
    atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u64, 2, atlas_mem_reg(t->tile, t->element[h], 0), atlas_reg(word));
    if (!sort_is_wide(l->s)) continue;
    sort_convert(l, ATLAS_u32, place, ATLAS_i64, t->column);
    atlas_emit(l->b, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(place), atlas_pred(IS_THERE), atlas_reg(place),
               atlas_bits(UINT32_MAX));
    atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u32, 2, atlas_mem_reg(t->places, t->element[h], 0), atlas_reg(place));
  }
}

/* The index that the word has, u32; at most the last one of the row. */
static uint16_t place_of(tiles *t, uint32_t half) {
  sort_launch *l = &t->l;
  uint16_t place = sort_fresh(l), word = sort_fresh(l);
  if (sort_is_wide(l->s)) {
    atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(place), atlas_mem_reg(t->places, t->element[half], 0));
  } else {
    atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u64, 2, atlas_reg(word), atlas_mem_reg(t->tile, t->element[half], 0));
    sort_emit(l, ATLAS_OP_and, ATLAS_u64, word, word, ops_scalar_of(&l->code, ATLAS_u64, UINT32_MAX));
    sort_convert(l, ATLAS_u32, place, ATLAS_u64, word);
  }
  sort_emit(l, ATLAS_OP_min, ATLAS_u32, place, place, ops_scalar_of(&l->code, ATLAS_u32, l->s->size - 1));
  return place;
}

/* Stores the element at each index. A word without an element reads another one. */
static void write_results(tiles *t) {
  sort_launch *l = &t->l;
  for (uint32_t h = 0; h < HALVES; h++) {
    uint16_t place = place_of(t, h);
    find_element(t, h);
    uint16_t element = l->s->values != 0 ? ops_sort_element(l, sort_widened(l, place)) : place;
    ops_sort_put(l, element, place, t->column);
  }
}

/* a and b, u64 words at `low` and `high`: the smaller one goes to `low`. */
static void order_words(tiles *t, uint16_t low, uint16_t a, uint16_t high, uint16_t b) {
  sort_launch *l = &t->l;
  uint16_t room = sort_fresh(l);
  sort_emit(l, ATLAS_OP_min, ATLAS_u64, room, a, atlas_reg(b));
  sort_emit(l, ATLAS_OP_max, ATLAS_u64, b, a, atlas_reg(b));
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u64, 2, atlas_mem_reg(t->tile, low, 0), atlas_reg(room));
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u64, 2, atlas_mem_reg(t->tile, high, 0), atlas_reg(b));
}

/* The same of keys; their indices go with them, and decide between equal ones. */
static void order_pairs(tiles *t, uint16_t low, uint16_t a, uint16_t high, uint16_t b) {
  sort_launch *l = &t->l;
  uint16_t of_a = sort_fresh(l), of_b = sort_fresh(l), room = sort_fresh(l);
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(of_a), atlas_mem_reg(t->places, low, 0));
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(of_b), atlas_mem_reg(t->places, high, 0));
  atlas_emit(l->b, ATLAS_OP_set_eq, ATLAS_u64, 3, atlas_pred(IS_SAME), atlas_reg(a), atlas_reg(b));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_u32, 3, atlas_pred(IS_MORE), atlas_reg(of_b), atlas_reg(of_a));
  atlas_emit(l->b, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(IS_SAME), atlas_pred(IS_SAME), atlas_pred(IS_MORE));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_u64, 3, atlas_pred(IS_MORE), atlas_reg(b), atlas_reg(a));
  atlas_emit(l->b, ATLAS_OP_por, ATLAS_NONE, 3, atlas_pred(IS_MORE), atlas_pred(IS_MORE), atlas_pred(IS_SAME));
  atlas_emit(l->b, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(room), atlas_pred(IS_MORE), atlas_reg(of_b), atlas_reg(of_a));
  atlas_emit(l->b, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(of_b), atlas_pred(IS_MORE), atlas_reg(of_a), atlas_reg(of_b));
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u32, 2, atlas_mem_reg(t->places, low, 0), atlas_reg(room));
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u32, 2, atlas_mem_reg(t->places, high, 0), atlas_reg(of_b));
  order_words(t, low, a, high, b);
}

/* Compares words `step` apart (in the first step of a merge at mirrored positions) until they are neighbours. The
 * smaller one goes to the lower position. */
static void merge_steps(tiles *t, uint16_t step, uint16_t partner) {
  sort_launch *l = &t->l;
  uint16_t low = sort_fresh(l), high = sort_fresh(l), a = sort_fresh(l), b = sort_fresh(l);
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
  if (sort_is_wide(l->s)) order_pairs(t, low, a, high, b);
  else order_words(t, low, a, high, b);
  sort_emit(l, ATLAS_OP_shr, ATLAS_u32, step, step, atlas_bits(1));
  atlas_emit(l->b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(partner), atlas_reg(step));
  ops_branch_if(l->b, ATLAS_OP_set_ne, ATLAS_u32, atlas_reg(step), atlas_bits(0), next);
}

/* Turns runs of one word into runs of a row. */
static void sort_tiles(tiles *t) {
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
  ops_branch_if(l->b, ATLAS_OP_set_lt, ATLAS_u32, atlas_reg(width), atlas_bits(1u << t->row_bits), next);
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
}

static uint32_t bits_for(uint64_t count) {
  uint32_t bits = 0;
  while (UINT64_C(1) << bits < count) bits++;
  return bits;
}

hg_status ops_write_sort_network(const sort *s, uint32_t row_bits) {
  static const uint32_t none[] = {SORT_NONE};
  tiles t = {.row_bits = row_bits};
  uint32_t all = bits_for(s->rows << row_bits), bits = row_bits < OPS_SORT_FEW_BITS ? OPS_SORT_FEW_BITS : row_bits;
  t.bits = bits < all ? bits : all;
  hg_status status = ops_sort_begin(&t.l, s, 1, none, none, "sort_network");
  if (status == HG_OK) {
    begin_tile(&t);
    read_words(&t);
    sort_tiles(&t);
    write_results(&t);
  }
  return ops_code_end_all(&t.l.code, &t.l.terms, status);
}
