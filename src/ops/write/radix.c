/* radix.c - sorts rows by the digits of their keys, the lowest first (least significant digit radix sort; Knuth, "The
 * Art of Computer Programming", volume 3, 5.2.5), each stably.
 *
 * A word is an element's key and, below it, its index in the row, as in sort.c. A pass moves the words of a row from
 * one storage to another, in the order of one digit. Blocks have parts of a row, one after the other:
 *
 *   radix_count    each block counts its part's digits
 *   radix_prefix   counts become the sums of those of earlier blocks; the totals of groups of blocks likewise, and the
 *                  row's totals the sums of those of smaller digits
 *   radix_move     a word goes to the sum of what is smaller, of its digit in earlier blocks and in earlier rounds of
 *                  its own, and its rank in the round
 *
 * A row that one block has takes radix_move alone, which counts first. The first pass reads keys where the others read
 * words, the last one writes the elements. */
#include "ops/write/sort.h"

enum {
  DIGIT_BITS = 8,
  DIGITS = 1 << DIGIT_BITS, /* also the lanes of a block: a lane has a digit's counts */
  STRIDE = 8, GROUP = 64 /* blocks whose counts a lane reads at once; blocks of a group */
};

typedef struct radix {
  const sort *s;
  uint32_t passes, rounds;      /* digits of a key; words of a lane */
  uint64_t blocks, groups;      /* of a row; with what fills it up to whole strides, or groups */
  uint32_t words[2], counts, sums, totals; /* storages. sums: of groups; counts itself if there is one */
} radix;

typedef struct part { /* of a row, that a block has */
  sort_launch l;
  uint16_t first; /* i64: the lane's first column */
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
  uint16_t block = ops_launch_index(&l->code, ATLAS_COORD_BLOCK_X), rest = sort_fresh(l);
  l->row = sort_fresh(l), l->column = sort_fresh(l);
  p->first = sort_fresh(l), p->at = sort_fresh(l);
  split_block(l, r->blocks, block, l->row, rest);
  at_lane(l, p->at, block, DIGITS);
  at_lane(l, p->first, rest, (uint64_t)r->rounds * DIGITS);
}

/* The word of the lane in this round, u64, and IS_THERE. */
static uint16_t word_of_round(part *p, const radix *r, uint32_t pass, uint16_t round) {
  sort_launch *l = &p->l;
  uint16_t offset = sort_fresh(l);
  sort_emit(l, ATLAS_OP_mul, ATLAS_u32, offset, round, atlas_bits(DIGITS));
  sort_convert(l, ATLAS_i64, offset, ATLAS_u32, offset);
  sort_emit(l, ATLAS_OP_add, ATLAS_i64, l->column, p->first, atlas_reg(offset));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_THERE), atlas_reg(l->column),
             sort_scalar(l, r->s->size));
  sort_emit(l, ATLAS_OP_min, ATLAS_i64, l->column, l->column, sort_scalar(l, r->s->size - 1));
  if (pass == 0) return ops_sort_word(l);
  uint16_t word = sort_fresh(l), at = sort_fresh(l);
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(at), atlas_reg(l->row), sort_scalar(l, r->s->size),
             atlas_reg(l->column));
  atlas_emit(l->b, ATLAS_OP_ldg, ATLAS_u64, 2, atlas_reg(word),
             atlas_mem_reg(ops_buffer_of(&l->code, r->words[pass % 2]), at, 0));
  return word;
}

static uint16_t digit_of(sort_launch *l, uint16_t word, uint32_t pass) {
  uint16_t digit = sort_fresh(l);
  sort_emit(l, ATLAS_OP_shr, ATLAS_u64, digit, word, atlas_bits(KEY_BITS + pass * DIGIT_BITS));
  sort_convert(l, ATLAS_u32, digit, ATLAS_u64, digit);
  sort_emit(l, ATLAS_OP_and, ATLAS_u32, digit, digit, atlas_bits(DIGITS - 1));
  return digit;
}

static uint32_t begin_rounds(sort_launch *l, uint16_t *round) {
  uint32_t again = atlas_builder_label(l->b, NULL);
  *round = sort_fresh(l);
  emit_constant(l, *round, 0);
  atlas_builder_place(l->b, again);
  return again;
}

static void end_rounds(part *p, const radix *r, uint16_t round, uint32_t again) {
  sort_launch *l = &p->l;
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, round, round, atlas_bits(1));
  ops_branch_if(l->b, ATLAS_OP_set_lt, ATLAS_u32, atlas_reg(round), atlas_bits(r->rounds), again);
  ops_forget_all(&l->code);
}

/* ---- the launches of a pass -------------------------------------------------------------------------------------- */

/* The count of the lane's digit in the block's part. */
static uint16_t count_digits(part *p, const radix *r, uint32_t pass) {
  sort_launch *l = &p->l;
  uint16_t counts = atlas_builder_shared(l->b, "counts", ATLAS_u32, DIGITS), round, count = sort_fresh(l);
  uint32_t again = begin_rounds(l, &round);
  uint16_t digit = digit_of(l, word_of_round(p, r, pass, round), pass);
  atlas_emit(l->b, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(count), atlas_pred(IS_THERE), atlas_bits(1), atlas_bits(0));
  atlas_emit(l->b, ATLAS_OP_atom_add, ATLAS_u32, 3, atlas_discard(), atlas_mem_reg(counts, digit, 0), atlas_reg(count));
  end_rounds(p, r, round, again);
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(count), atlas_mem_reg(counts, ATLAS_REG_BLOCK_LANE, 0));
  return count;
}

static hg_status write_count(const radix *r, uint32_t pass) {
  const uint32_t read[] = {pass == 0 ? SORT_NONE : r->words[pass % 2], SORT_NONE}, written[] = {r->counts, SORT_NONE};
  part p;
  sort_launch *l = &p.l;
  hg_status status = ops_sort_begin(l, r->s, pass == 0 ? READS_KEYS : 0, read, written, "radix_count");
  if (status == HG_OK) {
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
    uint32_t again = begin_rounds(&l, &round);
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

/* Stores the word in the other storage, at a column of its row, i64; or its element. */
static void put_word(part *p, const radix *r, uint32_t pass, uint16_t word, uint16_t column) {
  sort_launch *l = &p->l;
  uint16_t at = sort_fresh(l);
  if (pass == r->passes - 1) {
    sort_emit(l, ATLAS_OP_and, ATLAS_u64, at, word, ops_scalar_of(&l->code, ATLAS_u64, UINT32_MAX));
    sort_convert(l, ATLAS_i64, at, ATLAS_u64, at);
    atlas_emit(l->b, ATLAS_OP_mov, ATLAS_i64, 2, atlas_reg(l->column), atlas_reg(column));
    ops_sort_put(l, at);
    return;
  }
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(at), atlas_reg(l->row), sort_scalar(l, r->s->size),
             atlas_reg(column));
  uint32_t absent = atlas_builder_label(l->b, NULL);
  atlas_emit_branch(l->b, IS_THERE, 1, absent);
  atlas_emit(l->b, ATLAS_OP_stg, ATLAS_u64, 2, atlas_mem_reg(ops_buffer_of(&l->code, r->words[(pass + 1) % 2]), at, 0),
             atlas_reg(word));
  atlas_builder_place(l->b, absent);
}

/* Lanes without a word have the greatest digit, and come last: what is ranked behind them has no word either. */
static void move_round(part *p, const radix *r, uint32_t pass, uint16_t round, uint16_t now, uint16_t sums) {
  sort_launch *l = &p->l;
  uint16_t word = word_of_round(p, r, pass, round), digit = digit_of(l, word, pass);
  uint16_t rank = sort_fresh(l), sum = sort_fresh(l), column = sort_fresh(l), own = sort_fresh(l);
  atlas_emit(l->b, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(digit), atlas_pred(IS_THERE), atlas_reg(digit),
             atlas_bits(DIGITS - 1));
  atlas_emit(l->b, ATLAS_OP_rank, ATLAS_u32, 4, atlas_reg(rank), atlas_reg(digit), atlas_mem(now, 0),
             atlas_bits(DIGIT_BITS));
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(sum), atlas_mem_reg(sums, digit, 0));
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, sum, sum, atlas_reg(rank));
  sort_convert(l, ATLAS_i64, column, ATLAS_u32, sum);
  put_word(p, r, pass, word, column);
  atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(sum), atlas_mem_reg(sums, ATLAS_REG_BLOCK_LANE, 0));
  atlas_emit(l->b, ATLAS_OP_lds, ATLAS_u32, 2, atlas_reg(own), atlas_mem_reg(now, ATLAS_REG_BLOCK_LANE, 0));
  sort_emit(l, ATLAS_OP_add, ATLAS_u32, sum, sum, atlas_reg(own));
  atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u32, 2, atlas_mem_reg(sums, ATLAS_REG_BLOCK_LANE, 0), atlas_reg(sum));
}

static hg_status write_move(const radix *r, uint32_t pass) {
  int is_first = pass == 0, is_last = pass == r->passes - 1;
  const uint32_t read[] = {is_first ? r->counts : r->words[pass % 2], r->counts, r->totals, r->sums, SORT_NONE};
  const uint32_t words[] = {is_first ? SORT_NONE : read[0], SORT_NONE};
  const uint32_t written[] = {is_last ? SORT_NONE : r->words[(pass + 1) % 2], SORT_NONE};
  part p;
  sort_launch *l = &p.l;
  uint32_t uses = (is_first ? READS_KEYS : 0) | (is_last ? WRITES_RESULTS : 0);
  hg_status status = ops_sort_begin(l, r->s, uses, r->blocks > 1 ? read : words, written, "radix_move");
  if (status == HG_OK) {
    uint16_t now = atlas_builder_shared(l->b, "now", ATLAS_u32, DIGITS), round;
    uint16_t sums = atlas_builder_shared(l->b, "sums", ATLAS_u32, DIGITS);
    begin_part(&p, r);
    uint16_t sum = r->blocks > 1 ? stored_sum(&p, r) : own_sum(&p, r, pass);
    atlas_emit(l->b, ATLAS_OP_sts, ATLAS_u32, 2, atlas_mem_reg(sums, ATLAS_REG_BLOCK_LANE, 0), atlas_reg(sum));
    uint32_t again = begin_rounds(l, &round);
    move_round(&p, r, pass, round, now, sums);
    end_rounds(&p, r, round, again);
  }
  return ops_code_end_all(&l->code, &l->terms, status);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static uint64_t parts_of(uint64_t count, uint64_t size) { return (count + size - 1) / size; }
static uint64_t up_to(uint64_t count, uint64_t multiple) { return parts_of(count, multiple) * multiple; }

/* The words of a row are spread evenly over its blocks. */
static void choose_blocks(radix *r, uint64_t most_rounds) {
  r->blocks = parts_of(r->s->size, most_rounds * DIGITS);
  if (r->blocks > GROUP * STRIDE) r->blocks = up_to(r->blocks, GROUP * STRIDE);
  else if (r->blocks > GROUP) r->blocks = up_to(r->blocks, GROUP);
  else if (r->blocks > STRIDE) r->blocks = up_to(r->blocks, STRIDE);
  r->groups = r->blocks > GROUP ? r->blocks / GROUP : 1;
  r->rounds = (uint32_t)parts_of(r->s->size, r->blocks * DIGITS);
}

static hg_status choose(radix *r) {
  const sort *s = r->s;
  ops_plan *plan = s->group->plan;
  uint64_t words = s->rows * s->size;
  r->passes = (uint32_t)parts_of(s->node->bits, DIGIT_BITS);
  choose_blocks(r, plan->for_gpu ? OPS_RADIX_ROUNDS_GPU : OPS_RADIX_ROUNDS);
  for (uint32_t k = 1; k < r->passes && k < 3; k++) HG_TRY(ops_add_temporary(plan, ATLAS_u64, words, &r->words[k % 2]));
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
