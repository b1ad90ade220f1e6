/* radix.c - sorts rows by the digits of their keys, the lowest first (least significant digit radix sort; Knuth, "The
 * Art of Computer Programming", volume 3, 5.2.5), each stably.
 *
 * A word is an element and, if places are wanted, its index in the row; its key is computed wherever it is read. A pass
 * moves the words of a row from one storage to another, in the order of one digit. Blocks have parts of a row, one
 * after the other:
 *
 *   radix_count    each block counts its part's digits
 *   radix_prefix   counts become the sums of those of earlier blocks; the totals of groups of blocks likewise, and the
 *                  row's totals the sums of those of smaller digits
 *   radix_move     a word goes to the sum of what is smaller, of its digit in earlier blocks and in earlier tiles of
 *                  its own, and its rank in the tile
 *
 * A row that one block has takes radix_move alone, which counts first. The first pass reads the input, the last one
 * writes the results. On a GPU a block brings a tile's words into their order before it stores them, so that neighbours
 * go to neighbours. */
#include "ops/write/sort.h"

enum {
  DIGITS = SORT_DIGITS,
  STRIDE = 8, GROUP = 64 /* blocks whose counts a lane reads at once; blocks of a group */
};

enum { ELEMENTS, PLACES, PARTS };

typedef struct radix {
  const sort *s;
  uint32_t passes, tiles, at_once; /* digits of a key; tiles of a block, and their rounds */
  int is_ordered;                  /* a tile's words are brought into order */
  uint64_t blocks, groups;         /* of a row; with what fills it up to whole strides, or groups */
  uint32_t words[2][PARTS], counts, sums, totals; /* storages. sums: of groups; counts itself if there is one */
} radix;

typedef struct part { /* of a row, that a block has */
  sort_launch l;
  sort_tile t;
  uint16_t first; /* u32: the lane's first column */
  uint16_t at;    /* i64: of the lane's digit in counts */
} part;

static uint64_t per_group(const radix *r) { return r->blocks / r->groups; }

static void emit_constant(sort_launch *l, uint16_t to, uint64_t value) {
  atlas_emit(l->b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(to), atlas_bits(value));
}

/* to = a * factor + the lane's number, i64. */
static void at_lane(sort_launch *l, uint16_t to, uint16_t a, uint64_t factor) {
  uint16_t lane = ops_index_of(&l->code, ATLAS_REG_BLOCK_LANE);
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(to), atlas_reg(a), sort_scalar(l, factor), atlas_reg(lane));
}

/* Divides the block's number by how many a row has. */
static void split_block(sort_launch *l, uint64_t of_row, uint16_t block, uint16_t row, uint16_t rest) {
  sort_emit(l, ATLAS_OP_div, ATLAS_i64, row, block, sort_scalar(l, of_row));
  sort_emit(l, ATLAS_OP_rem, ATLAS_i64, rest, block, sort_scalar(l, of_row));
}

/* ---- parts of rows ----------------------------------------------------------------------------------------------- */

/* The block's row and columns. */
static void begin_part(part *p, const radix *r) {
  sort_launch *l = &p->l;
  ops_launch_blocks(&l->code, r->s->rows * r->blocks, 1, 1, DIGITS);
  uint16_t block = ops_launch_index(&l->code, ATLAS_COORD_BLOCK_X), rest = sort_fresh(l), first = sort_fresh(l);
  l->row = sort_fresh(l), p->first = sort_fresh(l), p->at = sort_fresh(l);
  split_block(l, r->blocks, block, l->row, rest);
  at_lane(l, p->at, block, DIGITS);
  at_lane(l, first, rest, (uint64_t)r->tiles * r->at_once * DIGITS);
  sort_convert(l, ATLAS_u32, p->first, ATLAS_i64, first);
}

/* The address of a column, u32, in the temporaries: the number of the word. */
static atlas_operand word_at(sort_launch *l, uint32_t storage, uint16_t column) {
  uint16_t at = sort_fresh(l);
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(at), atlas_reg(l->row), sort_scalar(l, l->s->size),
             atlas_reg(sort_widened(l, column)));
  return atlas_mem_reg(ops_buffer_of(&l->code, storage), at, 0);
}

/* The word of the lane in this round of the tile; if it is not there, the row's last one. */
static void read_word(part *p, const radix *r, uint32_t pass, uint32_t k, int reads_place) {
  sort_launch *l = &p->l;
  sort_tile *t = &p->t;
  uint16_t column = sort_fresh(l);
  sort_emit(l, ATLAS_OP_min, ATLAS_u32, column, t->column[k], ops_scalar_of(&l->code, ATLAS_u32, r->s->size - 1));
  if (pass == 0) {
    t->place[k] = column;
    t->element[k] = ops_sort_element(l, sort_widened(l, column));
    return;
  }
  const uint32_t *words = r->words[pass % 2];
  t->element[k] = sort_fresh(l), t->place[k] = sort_fresh(l);
  atlas_emit(l->b, ATLAS_OP_ldg, r->s->moved, 2, atlas_reg(t->element[k]), word_at(l, words[ELEMENTS], column));
  if (reads_place && r->s->places != 0)
    atlas_emit(l->b, ATLAS_OP_ldg, ATLAS_u32, 2, atlas_reg(t->place[k]), word_at(l, words[PLACES], column));
}

/* Begins the loop over tiles, each of whose lanes has words from `column` on. */
static uint32_t begin_tiles(part *p, const radix *r, uint16_t *tile) {
  sort_launch *l = &p->l;
  uint32_t again = atlas_builder_label(l->b, NULL);
  uint16_t column = sort_fresh(l);
  *tile = sort_fresh(l);
  emit_constant(l, *tile, 0);
  atlas_builder_place(l->b, again);
  sort_emit(l, ATLAS_OP_mul, ATLAS_u32, column, *tile, atlas_bits(r->at_once * DIGITS));
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, column, column, atlas_reg(p->first));
  ops_tile_columns(&p->t, column);
  return again;
}

static void end_tiles(part *p, const radix *r, uint16_t tile, uint32_t again) {
  sort_launch *l = &p->l;
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, tile, tile, atlas_bits(1));
  ops_branch_if(l->b, ATLAS_OP_set_lt, ATLAS_u32, atlas_reg(tile), atlas_bits(r->tiles), again);
  ops_forget_all(&l->code);
}

/* ---- the launches of a pass -------------------------------------------------------------------------------------- */

/* The count of the lane's digit in the block's part. */
static uint16_t count_digits(part *p, const radix *r, uint32_t pass) {
  sort_launch *l = &p->l;
  sort_tile *t = &p->t;
  uint16_t counts = atlas_builder_shared(l->b, "sums", ATLAS_u32, DIGITS), tile, count = sort_fresh(l);
  uint16_t digit[SORT_MOST_ROUNDS];
  uint32_t again = begin_tiles(p, r, &tile);
  for (uint32_t k = 0; k < r->at_once; k++) read_word(p, r, pass, k, 0);
  for (uint32_t k = 0; k < r->at_once; k++)
    digit[k] = ops_sort_digit(l, t->element[k], atlas_bits(pass * SORT_DIGIT_BITS));
  for (uint32_t k = 0; k < r->at_once; k++) {
    ops_tile_is_there(t, k);
    atlas_emit(l->b, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(count), atlas_pred(IS_THERE), atlas_bits(1), atlas_bits(0));
    atlas_emit(l->b, ATLAS_OP_atom_add, ATLAS_u32, 3, atlas_discard(), atlas_mem_reg(counts, digit[k], 0),
               atlas_reg(count));
  }
  end_tiles(p, r, tile, again);
  sort_barrier(l);
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(count), atlas_mem_reg(counts, ATLAS_REG_BLOCK_LANE, 0));
  return count;
}

static hg_status write_count(const radix *r, uint32_t pass) {
  const uint32_t read[] = {pass == 0 ? SORT_NONE : r->words[pass % 2][ELEMENTS], SORT_NONE};
  const uint32_t written[] = {r->counts, SORT_NONE};
  part p;
  sort_launch *l = &p.l;
  hg_status status = ops_sort_begin(l, r->s, pass == 0, read, written, "radix_count");
  if (status == HG_OK) {
    p.t = (sort_tile){.l = l, .rounds = r->at_once};
    begin_part(&p, r);
    uint16_t count = count_digits(&p, r, pass);
    atlas_emit(l->b, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem_reg(ops_buffer_of(&l->code, r->counts), p.at, 0),
               atlas_reg(count));
  }
  return ops_code_end_all(&l->code, &l->terms, status);
}

/* Of `lists` lists of `count` blocks: each count becomes the sum of those before, and the list's sum is stored; for
 * whole rows the sum of those of smaller digits. */
static hg_status write_prefix(const radix *r, uint32_t storage, uint64_t lists, uint64_t count, uint32_t into) {
  const uint32_t read[] = {storage, SORT_NONE}, written[] = {storage, into, SORT_NONE};
  uint32_t stride = count < STRIDE ? (uint32_t)count : STRIDE;
  sort_launch l;
  hg_status status = ops_sort_begin(&l, r->s, 0, read, written, "radix_prefix");
  if (status == HG_OK) {
    ops_launch_blocks(&l.code, lists, 1, 1, DIGITS);
    uint16_t list = ops_launch_index(&l.code, ATLAS_COORD_BLOCK_X), at = sort_fresh(&l), to = sort_fresh(&l);
    uint16_t sum = sort_fresh(&l), next[STRIDE], round, buffer = ops_buffer_of(&l.code, storage);
    at_lane(&l, at, list, count * DIGITS);
    at_lane(&l, to, list, DIGITS);
    emit_constant(&l, sum, 0);
    uint32_t again = atlas_builder_label(l.b, NULL);
    emit_constant(&l, round = sort_fresh(&l), 0);
    atlas_builder_place(l.b, again);
    for (uint32_t k = 0; k < stride; k++) {
      next[k] = sort_fresh(&l);
      atlas_emit(l.b, ATLAS_OP_ldg, ATLAS_u32, 2, atlas_reg(next[k]), atlas_mem_reg(buffer, at, k * DIGITS));
    }
    for (uint32_t k = 0; k < stride; k++) {
      atlas_emit(l.b, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem_reg(buffer, at, k * DIGITS), atlas_reg(sum));
      sort_emit(&l, ATLAS_OP_add, ATLAS_u32, sum, sum, atlas_reg(next[k]));
    }
    sort_emit(&l, ATLAS_OP_add, ATLAS_i64, at, at, sort_scalar(&l, (uint64_t)stride * DIGITS));
    sort_emit(&l, ATLAS_OP_add, ATLAS_u32, round, round, atlas_bits(1));
    ops_branch_if(l.b, ATLAS_OP_set_lt, ATLAS_u32, atlas_reg(round), atlas_bits(count / stride), again);
    if (into == r->totals) atlas_emit(l.b, ATLAS_OP_scan_excl, ATLAS_u32, 2, atlas_reg(sum), atlas_reg(sum));
    atlas_emit(l.b, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem_reg(ops_buffer_of(&l.code, into), to, 0), atlas_reg(sum));
  }
  return ops_code_end_all(&l.code, &l.terms, status);
}

/* Adds an element of a storage of sums to `sum`. */
static void add_from(sort_launch *l, uint32_t storage, uint16_t at, uint16_t sum) {
  uint16_t more = sort_fresh(l);
  atlas_emit(l->b, ATLAS_OP_ldg, ATLAS_u32, 2, atlas_reg(more), atlas_mem_reg(ops_buffer_of(&l->code, storage), at, 0));
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, sum, sum, atlas_reg(more));
}

/* Where the block's first word of the lane's digit goes: from what the other launches have stored. */
static uint16_t stored_sum(part *p, const radix *r) {
  sort_launch *l = &p->l;
  uint16_t at = sort_fresh(l), sum = sort_fresh(l), number = sort_fresh(l);
  emit_constant(l, sum, 0);
  add_from(l, r->counts, p->at, sum);
  at_lane(l, at, l->row, DIGITS);
  add_from(l, r->totals, at, sum);
  if (r->groups > 1) {
    uint16_t block = ops_launch_index(&l->code, ATLAS_COORD_BLOCK_X);
    sort_emit(l, ATLAS_OP_div, ATLAS_i64, number, block, sort_scalar(l, per_group(r)));
    at_lane(l, at, number, DIGITS);
    add_from(l, r->sums, at, sum);
  }
  return sum;
}

/* The same if the block has the row. */
static uint16_t own_sum(part *p, const radix *r, uint32_t pass) {
  uint16_t count = count_digits(p, r, pass);
  atlas_emit(p->l.b, ATLAS_OP_scan_excl, ATLAS_u32, 2, atlas_reg(count), atlas_reg(count));
  return count;
}

/* Stores the word of a round in the other storage, at a column of its row, u32; or in the results. */
static void put_word(part *p, const radix *r, uint32_t pass, uint32_t k, uint16_t column) {
  sort_launch *l = &p->l;
  const uint32_t *words = r->words[(pass + 1) % 2];
  ops_tile_is_there(&p->t, k);
  if (pass == r->passes - 1) {
    ops_sort_put(l, p->t.element[k], p->t.place[k], sort_widened(l, column));
    return;
  }
  uint32_t absent = atlas_builder_label(l->b, NULL);
  atlas_operand at = word_at(l, words[ELEMENTS], column);
  atlas_emit_branch(l->b, IS_THERE, 1, absent);
  atlas_emit(l->b, ATLAS_OP_stg, r->s->moved, 2, at, atlas_reg(p->t.element[k]));
  if (r->s->places != 0)
    atlas_emit(l->b, ATLAS_OP_stg, ATLAS_u32, 2, word_at(l, words[PLACES], column), atlas_reg(p->t.place[k]));
  atlas_builder_place(l->b, absent);
}

/* Stores the words of a tile in its order: a digit's go to neighbouring columns. `sum`: where the lane's digit goes. */
static void move_in_order(part *p, const radix *r, uint32_t pass, uint16_t bases, uint16_t sum) {
  sort_launch *l = &p->l;
  atlas_operand shift = atlas_bits(pass * SORT_DIGIT_BITS);
  uint16_t before, base = sort_fresh(l), count = ops_tile_inside(&p->t, &before);
  sort_emit(l, ATLAS_OP_sub, ATLAS_u32, base, sum, atlas_reg(before));
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u32, 2, atlas_mem_reg(bases, ATLAS_REG_BLOCK_LANE, 0), atlas_reg(base));
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, sum, sum, atlas_reg(count));
  sort_barrier(l);
  ops_tile_order(&p->t);
  for (uint32_t k = 0; k < r->at_once; k++) {
    uint16_t digit = ops_sort_digit(l, p->t.element[k], shift), column = sort_fresh(l);
    atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(column), atlas_mem_reg(bases, digit, 0));
    sort_emit(l, ATLAS_OP_add, ATLAS_u32, column, column, atlas_reg(ATLAS_REG_BLOCK_LANE));
    sort_emit(l, ATLAS_OP_add, ATLAS_u32, column, column, atlas_bits(k * DIGITS));
    put_word(p, r, pass, k, column);
  }
}

static void move_tile(part *p, const radix *r, uint32_t pass, uint16_t bases, uint16_t sum) {
  for (uint32_t k = 0; k < r->at_once; k++) read_word(p, r, pass, k, 1);
  ops_tile_rank(&p->t, atlas_bits(pass * SORT_DIGIT_BITS));
  if (r->is_ordered) {
    move_in_order(p, r, pass, bases, sum);
    return;
  }
  ops_tile_follow(&p->t, sum);
  sort_barrier(&p->l);
  for (uint32_t k = 0; k < r->at_once; k++) put_word(p, r, pass, k, ops_tile_target(&p->t, k));
}

/* Adds those that a launch of the pass uses of the storages with words. */
static void add_words(const radix *r, uint32_t *list, const uint32_t *words) {
  list[0] = words[ELEMENTS];
  list[1] = r->s->places != 0 ? words[PLACES] : SORT_NONE;
  list[2] = SORT_NONE;
}

static hg_status write_move(const radix *r, uint32_t pass) {
  enum { SUMS = 3 };
  int is_first = pass == 0, is_last = pass == r->passes - 1;
  uint32_t read[SUMS + PARTS + 1] = {SORT_NONE}, written[PARTS + 1] = {SORT_NONE}, *words = read;
  if (r->blocks > 1) {
    read[0] = r->counts, read[1] = r->totals, read[2] = r->sums, read[SUMS] = SORT_NONE;
    words += SUMS;
  }
  if (!is_first) add_words(r, words, r->words[pass % 2]);
  if (!is_last) add_words(r, written, r->words[(pass + 1) % 2]);
  part p;
  sort_launch *l = &p.l;
  hg_status status = ops_sort_begin(l, r->s, is_first, read, written, "radix_move");
  if (status == HG_OK) {
    uint16_t bases = r->is_ordered ? atlas_builder_shared(l->b, "bases", ATLAS_u32, DIGITS) : 0, tile;
    ops_tile_begin(&p.t, l, r->at_once, r->is_ordered);
    begin_part(&p, r);
    uint16_t sum = r->blocks > 1 ? stored_sum(&p, r) : own_sum(&p, r, pass);
    uint32_t again = begin_tiles(&p, r, &tile);
    move_tile(&p, r, pass, bases, sum);
    end_tiles(&p, r, tile, again);
  }
  return ops_code_end_all(&l->code, &l->terms, status);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static uint64_t parts_of(uint64_t count, uint64_t size) { return (count + size - 1) / size; }
static uint64_t up_to(uint64_t count, uint64_t multiple) { return parts_of(count, multiple) * multiple; }

/* The words of a row are spread evenly over its blocks. */
static void choose_blocks(radix *r, uint64_t most_rounds) {
  uint64_t tile = (uint64_t)r->at_once * DIGITS;
  r->blocks = parts_of(r->s->size, most_rounds * DIGITS);
  if (r->blocks > GROUP * STRIDE) r->blocks = up_to(r->blocks, GROUP * STRIDE);
  else if (r->blocks > GROUP) r->blocks = up_to(r->blocks, GROUP);
  else if (r->blocks > STRIDE) r->blocks = up_to(r->blocks, STRIDE);
  r->groups = r->blocks > GROUP ? r->blocks / GROUP : 1;
  r->tiles = (uint32_t)parts_of(r->s->size, r->blocks * tile);
}

static hg_status choose(radix *r) {
  const sort *s = r->s;
  ops_plan *plan = s->group->plan;
  uint64_t words = s->rows * s->size;
  r->passes = s->key_bits / SORT_DIGIT_BITS;
  r->is_ordered = plan->for_gpu;
  r->at_once = plan->for_gpu ? OPS_RADIX_AT_ONCE_GPU : OPS_RADIX_AT_ONCE;
  uint64_t on_gpu = sort_is_wide(s) && s->places != 0 ? OPS_RADIX_ROUNDS_WIDE_GPU : OPS_RADIX_ROUNDS_GPU;
  choose_blocks(r, plan->for_gpu ? on_gpu : OPS_RADIX_ROUNDS);
  for (uint32_t k = 1; k < r->passes && k < 3; k++) {
    HG_TRY(ops_add_temporary(plan, (uint8_t)s->moved, words, &r->words[k % 2][ELEMENTS]));
    if (s->places != 0) HG_TRY(ops_add_temporary(plan, ATLAS_u32, words, &r->words[k % 2][PLACES]));
  }
  if (r->blocks == 1) return HG_OK; /* the block has its counts by itself */
  HG_TRY(ops_add_temporary(plan, ATLAS_u32, s->rows * r->blocks * DIGITS, &r->counts));
  r->sums = r->counts;
  if (r->groups > 1) HG_TRY(ops_add_temporary(plan, ATLAS_u32, s->rows * r->groups * DIGITS, &r->sums));
  return ops_add_temporary(plan, ATLAS_u32, s->rows * DIGITS, &r->totals);
}

static hg_status write_sums(const radix *r, uint32_t pass) {
  uint64_t rows = r->s->rows;
  HG_TRY(write_count(r, pass));
  if (r->groups > 1) HG_TRY(write_prefix(r, r->counts, rows * r->groups, GROUP, r->sums));
  return write_prefix(r, r->sums, rows, r->groups > 1 ? r->groups : r->blocks, r->totals);
}

hg_status ops_write_radix(const sort *s) {
  radix r = {.s = s};
  HG_TRY(choose(&r));
  for (uint32_t pass = 0; pass < r.passes; pass++) {
    if (r.blocks > 1) HG_TRY(write_sums(&r, pass));
    HG_TRY(write_move(&r, pass));
  }
  return HG_OK;
}
