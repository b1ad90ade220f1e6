/* sort.c - sorts rows by keys with a network of comparisons (Batcher, "Sorting networks and their applications", 1968).
 *
 * A word is an element's key and, below it, its index in the row: words differ, so the order is unique and equal keys
 * keep their order. A row is filled up to a power of two with the largest words. Runs of `width` words are merged two
 * at a time: the first comparison is with the word at the mirrored position of both runs, each further one with the
 * word half as far away; the smaller word always goes to the lower position. Words that lie in one tile of a block are
 * compared in shared memory; words further apart in memory, a few levels a launch. The last launch reads the elements
 * at their indices. */
#include "ops/write/expression.h"
#include "ops/graph/ops_tuning.h"

#include <string.h>

enum { IS_THERE = 0, IS_MORE = 1, HALVES = 2 /* words of a lane in a tile */, KEY_BITS = 32 };

typedef struct sort {
  const ops_group *group;
  const ops_node *node;
  ops_shape shape;
  uint32_t axis, row_bits, tile_bits; /* a row has 2^row_bits words, a block 2^tile_bits */
  uint64_t size, rows;
  uint32_t words;          /* a storage: for rows that are longer than a tile */
  uint32_t values, places; /* 1 + storages of the results; 0: not wanted */
} sort;

/* One launch. Coordinates: those of the shape. */
typedef struct sort_launch {
  const sort *s;
  ops_terms terms;
  ops_code code;
  atlas_builder *b;
  term_id key, value;
  ops_form own[HG_MAX_RANK];
  uint16_t tile;               /* symbol */
  uint16_t element[HALVES];    /* in a tile: the numbers of the lane's words, u32 */
  uint16_t row, column;        /* i64: of the current word; at most the last ones */
} sort_launch;

static uint64_t words_of(const sort *s) { return s->rows << s->row_bits; }
static int is_one_tile(const sort *s) { return s->row_bits <= s->tile_bits; }

/* ---- a launch ---------------------------------------------------------------------------------------------------- */

enum { READS_KEYS = 1, READS_WORDS = 2, WRITES_WORDS = 4, WRITES_RESULTS = 8 };

static hg_status add_terms(sort_launch *l, uint32_t uses) {
  const sort *s = l->s;
  if ((uses & READS_KEYS) != 0) HG_TRY(ops_term_of(&l->terms, s->node->input[0], l->own, &l->key));
  if ((uses & WRITES_RESULTS) != 0 && s->values != 0)
    HG_TRY(ops_term_of(&l->terms, s->node->input[1], l->own, &l->value));
  return (uses & READS_WORDS) != 0 ? ops_reads(&l->terms, s->words) : HG_OK;
}

static hg_status begin(sort_launch *l, const sort *s, uint32_t uses, const char *name) {
  memset(l, 0, sizeof *l);
  l->s = s;
  ops_terms_begin(&l->terms, s->group, &s->shape);
  ops_identity(&s->shape, l->own);
  HG_TRY(add_terms(l, uses));
  HG_TRY(ops_code_begin_step(&l->code, &l->terms, name, "sort"));
  l->b = l->code.builder;
  l->code.index_type = ATLAS_i64;
  if ((uses & WRITES_WORDS) != 0) l->code.partials[l->code.partial_count++] = s->words;
  return HG_OK;
}

static uint16_t fresh(sort_launch *l) { return ops_register(&l->code); }

static void emit(sort_launch *l, atlas_op op, atlas_type type, uint16_t to, uint16_t a, atlas_operand b) {
  atlas_emit(l->b, op, type, 3, atlas_reg(to), atlas_reg(a), b);
}

static void convert(sort_launch *l, atlas_type to_type, uint16_t to, atlas_type from_type, uint16_t from) {
  atlas_emit2(l->b, atlas_bytes(to_type) == atlas_bytes(from_type) ? ATLAS_OP_bitcast : ATLAS_OP_cvt, to_type,
              from_type, atlas_reg(to), atlas_reg(from));
}

static atlas_operand scalar(sort_launch *l, uint64_t value) { return ops_scalar_of(&l->code, ATLAS_i64, value); }

/* Puts the smaller of two words into `least`, the larger one into `b`. */
static void compare(sort_launch *l, uint16_t a, uint16_t b, uint16_t least) {
  emit(l, ATLAS_OP_min, ATLAS_u64, least, a, atlas_reg(b));
  emit(l, ATLAS_OP_max, ATLAS_u64, b, a, atlas_reg(b));
}

/* Puts the smaller word into `low`, the larger one into `high`. */
static void exchange(sort_launch *l, uint16_t low, uint16_t high, uint16_t room) {
  compare(l, low, high, room);
  atlas_emit(l->b, ATLAS_OP_mov, ATLAS_u64, 2, atlas_reg(low), atlas_reg(room));
}

/* ---- a tile in shared memory ------------------------------------------------------------------------------------- */

static void begin_tile(sort_launch *l) {
  const sort *s = l->s;
  uint32_t lanes = (1u << s->tile_bits) / HALVES;
  ops_launch_blocks(&l->code, (words_of(s) + (1u << s->tile_bits) - 1) >> s->tile_bits, 1, 1, lanes);
  l->tile = atlas_builder_shared(l->b, "tile", ATLAS_u64, 1u << s->tile_bits);
  for (uint32_t h = 0; h < HALVES; h++) {
    l->element[h] = fresh(l);
    emit(l, ATLAS_OP_add, ATLAS_u32, l->element[h], ATLAS_REG_BLOCK_LANE, atlas_bits(h * lanes));
  }
}

/* The number of a word of the tile among all words, i64. */
static uint16_t number_of(sort_launch *l, uint32_t half) {
  uint16_t block = ops_launch_coordinate(&l->code, ATLAS_COORD_BLOCK_X), number = fresh(l), own = fresh(l);
  convert(l, ATLAS_i64, number, ATLAS_u32, block);
  convert(l, ATLAS_i64, own, ATLAS_u32, l->element[half]);
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(number), atlas_reg(number),
             scalar(l, UINT64_C(1) << l->s->tile_bits), atlas_reg(own));
  return number;
}

/* Row and column of a word; IS_THERE says whether the element exists; if not, those of another element. */
static void find_element(sort_launch *l, uint32_t half) {
  const sort *s = l->s;
  uint16_t number = number_of(l, half);
  l->row = fresh(l), l->column = fresh(l);
  emit(l, ATLAS_OP_shr, ATLAS_i64, l->row, number, atlas_bits(s->row_bits));
  emit(l, ATLAS_OP_and, ATLAS_i64, l->column, number, scalar(l, (UINT64_C(1) << s->row_bits) - 1));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_MORE), atlas_reg(l->row), scalar(l, s->rows));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_THERE), atlas_reg(l->column), scalar(l, s->size));
  atlas_emit(l->b, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(IS_THERE), atlas_pred(IS_THERE), atlas_pred(IS_MORE));
  emit(l, ATLAS_OP_min, ATLAS_i64, l->row, l->row, scalar(l, s->rows - 1));
  emit(l, ATLAS_OP_min, ATLAS_i64, l->column, l->column, scalar(l, s->size - 1));
}

/* Sets the coordinates of the row, and along the axis a register. */
static void set_coordinates(sort_launch *l, uint16_t along_axis) {
  const sort *s = l->s;
  for (uint32_t i = 0; i < s->shape.rank; i++) l->code.variable[i] = OPS_NO_REGISTER;
  l->code.variable[s->axis] = along_axis;
  ops_split(&l->code, &s->shape, ~(1u << s->axis), s->shape.rank, s->rows, atlas_reg(l->row), ATLAS_i64);
}

static void forget_element(sort_launch *l) {
  const sort *s = l->s;
  ops_forget(&l->code, (1u << s->shape.rank) - 1);
}

static void put_word(sort_launch *l, uint32_t half, uint16_t word) {
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u64, 2, atlas_mem_reg(l->tile, l->element[half], 0), atlas_reg(word));
}

static uint16_t word_of(sort_launch *l, uint32_t half) {
  uint16_t word = fresh(l);
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u64, 2, atlas_reg(word), atlas_mem_reg(l->tile, l->element[half], 0));
  return word;
}

static void read_keys(sort_launch *l) {
  for (uint32_t h = 0; h < HALVES; h++) {
    uint16_t word = fresh(l), place = fresh(l);
    find_element(l, h);
    set_coordinates(l, l->column);
    convert(l, ATLAS_u64, word, ATLAS_u32, ops_value(&l->code, l->key));
    emit(l, ATLAS_OP_shl, ATLAS_u64, word, word, atlas_bits(KEY_BITS));
    convert(l, ATLAS_u64, place, ATLAS_i64, l->column);
    emit(l, ATLAS_OP_or, ATLAS_u64, word, word, atlas_reg(place));
    atlas_emit(l->b, ATLAS_OP_sel, ATLAS_u64, 4, atlas_reg(word), atlas_pred(IS_THERE), atlas_reg(word),
               ops_scalar_of(&l->code, ATLAS_u64, UINT64_MAX));
    put_word(l, h, word);
    forget_element(l);
  }
}

static void read_words(sort_launch *l) {
  for (uint32_t h = 0; h < HALVES; h++) {
    uint16_t number = number_of(l, h), word = fresh(l);
    atlas_emit(l->b, ATLAS_OP_ldg, ATLAS_u64, 2, atlas_reg(word),
               atlas_mem_reg(ops_buffer_of(&l->code, l->s->words), number, 0));
    put_word(l, h, word);
  }
}

static void write_words(sort_launch *l) {
  for (uint32_t h = 0; h < HALVES; h++) {
    uint16_t number = number_of(l, h), word = word_of(l, h);
    atlas_emit(l->b, ATLAS_OP_stg, ATLAS_u64, 2, atlas_mem_reg(ops_buffer_of(&l->code, l->s->words), number, 0),
               atlas_reg(word));
  }
}

static void put_result(sort_launch *l, uint32_t storage, atlas_type type, uint16_t value) {
  ops_form address = ops_address((const ops_storage *)l->s->group->plan->storages.data + storage, l->own);
  ops_store(&l->code, storage, &address, type, value);
}

/* Stores the element at the index, and the index itself, at the column. A word without an element reads another one, so
 * that what all elements share is computed by all lanes. */
static void write_results(sort_launch *l) {
  const sort *s = l->s;
  atlas_type type = (atlas_type)s->node->type;
  for (uint32_t h = 0; h < HALVES; h++) {
    uint16_t place = word_of(l, h), value = fresh(l);
    uint32_t absent = atlas_builder_label(l->b, NULL);
    find_element(l, h);
    emit(l, ATLAS_OP_and, ATLAS_u64, place, place, ops_scalar_of(&l->code, ATLAS_u64, UINT32_MAX));
    convert(l, ATLAS_i64, place, ATLAS_u64, place);
    emit(l, ATLAS_OP_min, ATLAS_i64, place, place, scalar(l, s->size - 1));
    set_coordinates(l, place);
    if (l->value != 0)
      atlas_emit(l->b, ATLAS_OP_mov, type == ATLAS_bool ? ATLAS_u32 : type, 2, atlas_reg(value),
                 atlas_reg(ops_value(&l->code, l->value)));
    ops_forget(&l->code, 1u << s->axis);
    l->code.variable[s->axis] = l->column;
    atlas_emit_branch(l->b, IS_THERE, 1, absent);
    if (l->value != 0) put_result(l, s->values - 1, type, value);
    if (s->places != 0) put_result(l, s->places - 1, ATLAS_i64, place);
    atlas_builder_place(l->b, absent);
    forget_element(l);
  }
}

/* Compares words `step` apart (in the first step of a merge at mirrored positions) until they are neighbours. */
static void merge_steps(sort_launch *l, uint16_t step, uint16_t partner) {
  uint16_t low = fresh(l), high = fresh(l), a = fresh(l), b = fresh(l), room = fresh(l);
  uint32_t next = atlas_builder_label(l->b, NULL);
  atlas_builder_place(l->b, next);
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  emit(l, ATLAS_OP_sub, ATLAS_u32, high, step, atlas_bits(1));
  emit(l, ATLAS_OP_and, ATLAS_u32, high, high, atlas_reg(ATLAS_REG_BLOCK_LANE));
  emit(l, ATLAS_OP_shl, ATLAS_u32, low, ATLAS_REG_BLOCK_LANE, atlas_bits(1));
  emit(l, ATLAS_OP_sub, ATLAS_u32, low, low, atlas_reg(high));
  emit(l, ATLAS_OP_xor, ATLAS_u32, high, low, atlas_reg(partner));
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u64, 2, atlas_reg(a), atlas_mem_reg(l->tile, low, 0));
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u64, 2, atlas_reg(b), atlas_mem_reg(l->tile, high, 0));
  compare(l, a, b, room);
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u64, 2, atlas_mem_reg(l->tile, low, 0), atlas_reg(room));
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u64, 2, atlas_mem_reg(l->tile, high, 0), atlas_reg(b));
  emit(l, ATLAS_OP_shr, ATLAS_u32, step, step, atlas_bits(1));
  atlas_emit(l->b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(partner), atlas_reg(step));
  ops_branch_if(l->b, ATLAS_OP_set_ne, ATLAS_u32, atlas_reg(step), atlas_bits(0), next);
}

/* Turns runs of one word into runs of a row, or of the tile. */
static void sort_tile(sort_launch *l) {
  const sort *s = l->s;
  uint32_t bits = s->row_bits < s->tile_bits ? s->row_bits : s->tile_bits;
  uint16_t width = fresh(l), step = fresh(l), partner = fresh(l);
  uint32_t next = atlas_builder_label(l->b, NULL);
  atlas_emit(l->b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(width), atlas_bits(1));
  atlas_builder_place(l->b, next);
  atlas_emit(l->b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(step), atlas_reg(width));
  emit(l, ATLAS_OP_shl, ATLAS_u32, partner, width, atlas_bits(1));
  emit(l, ATLAS_OP_sub, ATLAS_u32, partner, partner, atlas_bits(1));
  merge_steps(l, step, partner);
  emit(l, ATLAS_OP_shl, ATLAS_u32, width, width, atlas_bits(1));
  ops_branch_if(l->b, ATLAS_OP_set_lt, ATLAS_u32, atlas_reg(width), atlas_bits(1u << bits), next);
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
}

/* The rest of a merge whose words now lie in one tile. */
static void merge_tile(sort_launch *l) {
  uint16_t step = fresh(l), partner = fresh(l);
  atlas_emit(l->b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(step), atlas_bits(1u << (l->s->tile_bits - 1)));
  atlas_emit(l->b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(partner), atlas_reg(step));
  merge_steps(l, step, partner);
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
}

static hg_status write_tiles(const sort *s, int is_first, int is_last) {
  sort_launch l;
  uint32_t uses = (is_first ? READS_KEYS : READS_WORDS) | (is_last ? WRITES_RESULTS : WRITES_WORDS);
  hg_status status = begin(&l, s, uses, is_first ? "sort_tiles" : "sort_merge");
  if (status == HG_OK) {
    begin_tile(&l);
    if (is_first) read_keys(&l);
    else read_words(&l);
    if (is_first) sort_tile(&l);
    else merge_tile(&l);
    if (is_last) write_results(&l);
    else write_words(&l);
  }
  return ops_code_end_all(&l.code, &l.terms, status);
}

/* ---- words that lie further apart -------------------------------------------------------------------------------- */

/* The positions of a lane's words: bits of k select distances of `least`, twice and four times that; the top bit the
 * mirrored position (is_mirrored). */
static void find_words(sort_launch *l, uint64_t least, uint32_t levels, int is_mirrored, uint16_t *at) {
  uint32_t count = 1u << levels;
  uint16_t lane = fresh(l), rest = fresh(l);
  atlas_emit2(l->b, ATLAS_OP_bitcast, ATLAS_i64, ATLAS_u64, atlas_reg(lane), atlas_reg(ATLAS_REG_LANE));
  at[0] = fresh(l);
  for (uint32_t k = 1; k < count; k++) at[k] = fresh(l);
  emit(l, ATLAS_OP_and, ATLAS_i64, rest, lane, scalar(l, least - 1));
  emit(l, ATLAS_OP_sub, ATLAS_i64, lane, lane, atlas_reg(rest));
  emit(l, ATLAS_OP_shl, ATLAS_i64, lane, lane, atlas_bits(levels));
  emit(l, ATLAS_OP_add, ATLAS_i64, at[0], lane, atlas_reg(rest));
  for (uint32_t k = 1; k < count; k++) {
    uint32_t top = 0;
    while (k >> top > 1) top++;
    uint64_t distance = least << top;
    if (is_mirrored && top == levels - 1) distance = 2 * distance - 1;
    emit(l, ATLAS_OP_xor, ATLAS_i64, at[k], at[k - (1u << top)], scalar(l, distance));
  }
}

/* Levels of a merge, of words from least << (levels - 1) apart down to `least`. */
static hg_status write_levels(const sort *s, uint64_t least, uint32_t levels, int is_mirrored) {
  sort_launch l;
  uint32_t count = 1u << levels;
  uint16_t at[1 << OPS_SORT_LEVELS] = {0}, word[1 << OPS_SORT_LEVELS] = {0};
  hg_status status = begin(&l, s, READS_WORDS | WRITES_WORDS, is_mirrored ? "sort_mirrored" : "sort_apart");
  if (status == HG_OK) {
    uint16_t buffer = ops_buffer_of(&l.code, s->words), room = fresh(&l);
    find_words(&l, least, levels, is_mirrored, at);
    for (uint32_t k = 0; k < count; k++) {
      word[k] = fresh(&l);
      atlas_emit(l.b, ATLAS_OP_ldg, ATLAS_u64, 2, atlas_reg(word[k]), atlas_mem_reg(buffer, at[k], 0));
    }
    for (uint32_t bit = count / 2; bit > 0; bit /= 2)
      for (uint32_t k = 0; k < count; k++) {
        if ((k & bit) != 0) continue;
        int is_turned = is_mirrored && bit != count / 2 && (k & count / 2) != 0; /* mirrored positions descend */
        exchange(&l, word[is_turned ? k | bit : k], word[is_turned ? k : k | bit], room);
      }
    for (uint32_t k = 0; k < count; k++)
      atlas_emit(l.b, ATLAS_OP_stg, ATLAS_u64, 2, atlas_mem_reg(buffer, at[k], 0), atlas_reg(word[k]));
    l.code.step->lanes = words_of(s) >> levels;
  }
  return ops_code_end_all(&l.code, &l.terms, status);
}

/* Merges runs of 2^bits words, longer than a tile, into runs of twice as many. */
static hg_status merge_runs(const sort *s, uint32_t bits) {
  uint32_t left = bits + 1 - s->tile_bits; /* levels before a tile contains the rest */
  for (int is_mirrored = 1; left > 0; is_mirrored = 0) {
    uint32_t levels = left < OPS_SORT_LEVELS ? left : OPS_SORT_LEVELS;
    left -= levels;
    HG_TRY(write_levels(s, UINT64_C(1) << (s->tile_bits + left), levels, is_mirrored));
  }
  return write_tiles(s, 0, bits + 1 == s->row_bits);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static uint32_t bits_for(uint64_t count) {
  uint32_t bits = 0;
  while (UINT64_C(1) << bits < count) bits++;
  return bits;
}

static void choose_tile(sort *s) {
  uint32_t all = bits_for(words_of(s));
  s->tile_bits = s->row_bits < OPS_SORT_FEW_BITS ? OPS_SORT_FEW_BITS : s->row_bits;
  if (s->tile_bits > OPS_SORT_TILE_BITS) s->tile_bits = OPS_SORT_TILE_BITS;
  if (s->tile_bits > all) s->tile_bits = all;
}

hg_status ops_write_sort(const ops_group *group) {
  value_id first = ops_first_result(group->computation, group->results[0]);
  sort s = {.group = group, .node = ops_at(group->computation, first)};
  s.shape = s.node->shape, s.axis = s.node->axis;
  s.size = s.shape.size[s.axis], s.rows = ops_count(&s.shape) / s.size;
  s.row_bits = bits_for(s.size);
  s.values = ops_storage_of_result(group, first, 0);
  s.places = ops_storage_of_result(group, first, 1);
  choose_tile(&s);
  if (is_one_tile(&s)) return write_tiles(&s, 1, 1);
  HG_TRY(ops_add_temporary(group->plan, ATLAS_u64, words_of(&s), &s.words));
  HG_TRY(write_tiles(&s, 1, 0));
  for (uint32_t bits = s.tile_bits; bits < s.row_bits; bits++) HG_TRY(merge_runs(&s, bits));
  return HG_OK;
}
