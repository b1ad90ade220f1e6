/* scan_strides.c - combines the elements of a scan: strides 1, 2, 4, ..., and what came before a chunk. */
#include "ops/write/scan.h"

/* ---- strides ----------------------------------------------------------------------------------------------------- */

/* Strides within the unit; the first ones go through the tile. */
void ops_scan_unit(scan_launch *l) {
  const scan_level *v = l->level;
  uint32_t count = v->own, lanes = scan_lanes_of(v), step = scan_step_of(v);
  uint16_t left = scan_fresh(l);
  for (uint32_t w = 0; w < (l->s->has_segments ? count : lanes == 1); w++)
    scan_combine(l, scan_identity(l), l->element[w]); /* so that a single NaN is made canonical, too */
  for (uint32_t stride = 1; stride < lanes; stride *= 2) {
    if (stride > 1) scan_barrier(l);
    for (uint32_t w = 0; w < count; w++)
      atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem_reg(l->tile, l->at, (int64_t)w * lanes * step),
                 atlas_reg(l->element[w]));
    scan_barrier(l);
    for (uint32_t w = 0; w < count; w++) {
      int64_t from = ((int64_t)w * lanes - stride) * step;
      atlas_emit(l->b, ATLAS_OP_lds, l->s->type, 2, atlas_reg(left), atlas_mem_reg(l->tile, l->at, from));
      scan_combine_at(l, atlas_reg(left), w, scan_number(stride));
    }
  }
  for (uint32_t apart = 1; apart < count; apart *= 2)
    for (uint32_t w = count; w-- > apart;)
      scan_combine_at(l, atlas_reg(l->element[w - apart]), w, scan_number((int64_t)apart * lanes));
}

/* For lanes that have an element of each chunk. */
void ops_scan_chunks(scan_launch *l) {
  uint32_t count = l->level->own;
  uint16_t total[MOST_OWN];
  for (uint32_t w = 0; w < count; w++) {
    scan_combine(l, scan_identity(l), l->element[w]);
    atlas_emit(l->b, ATLAS_OP_scan_incl, l->s->type, 2, atlas_reg(l->element[w]), atlas_reg(l->element[w]));
  }
  if (count == 1) return;
  uint16_t totals = atlas_builder_shared(l->b, "totals", l->s->type, count);
  uint32_t others = atlas_builder_label(l->b, NULL);
  ops_branch_unless(l->b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(ATLAS_REG_BLOCK_LANE), atlas_bits(CHUNK - 1), others);
  for (uint32_t w = 0; w + 1 < count; w++)
    atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem(totals, w), atlas_reg(l->element[w]));
  atlas_builder_place(l->b, others);
  scan_barrier(l);
  for (uint32_t w = 0; w + 1 < count; w++) {
    total[w] = scan_fresh(l);
    atlas_emit(l->b, ATLAS_OP_lds, l->s->type, 2, atlas_reg(total[w]), atlas_mem(totals, w));
  }
  for (uint32_t apart = 1; apart + 1 < count; apart *= 2)
    for (uint32_t w = count - 1; w-- > apart;) scan_combine(l, atlas_reg(total[w - apart]), total[w]);
  for (uint32_t w = 0; w + 1 < count; w++) scan_combine(l, atlas_reg(total[w]), l->element[w + 1]);
}

/* Branches in all lanes except the last one of each unit. */
static uint32_t skip_but_last(scan_launch *l) {
  uint32_t others = atlas_builder_label(l->b, NULL);
  ops_branch_unless(l->b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(l->in_unit), atlas_bits(scan_lanes_of(l->level) - 1),
                    others);
  return others;
}

/* The number of the lane's element w in its chunk. */
static uint16_t number_of(scan_launch *l, uint32_t w) {
  uint16_t number = scan_fresh(l);
  scan_convert(l, ATLAS_i64, number, ATLAS_u32, l->in_unit);
  scan_emit(l, ATLAS_OP_add, ATLAS_i64, number, number, scan_number((int64_t)w << l->level->lane_bits));
  return number;
}

static void carry_on(scan_launch *l, atlas_operand carry) {
  for (uint32_t w = 0; w < l->level->own; w++) {
    uint16_t least = l->s->has_segments ? number_of(l, w) : 0;
    if (least != 0) scan_emit(l, ATLAS_OP_add, ATLAS_i64, least, least, scan_number(1));
    scan_combine_at(l, carry, w, atlas_reg(least));
  }
}

/* Of a chunk's total: how many chunks before it its segment has elements of. */
static uint16_t places_of_total(scan_launch *l) {
  uint32_t last = l->level->own - 1;
  uint16_t number = number_of(l, last), before = scan_fresh(l);
  scan_emit(l, ATLAS_OP_sub, ATLAS_i64, before, l->before[last], atlas_reg(number));
  scan_emit(l, ATLAS_OP_add, ATLAS_i64, before, before, scan_number(CHUNK - 1));
  scan_emit(l, ATLAS_OP_shr, ATLAS_i64, before, before, atlas_bits(CHUNK_BITS));
  return before;
}

static void combine_total(scan_launch *l, uint16_t left, uint16_t total, uint16_t before, uint32_t stride) {
  uint16_t both = l->s->has_segments ? scan_fresh(l) : total;
  l->fold.combine(&l->fold, both, atlas_reg(left), atlas_reg(total));
  if (both == total) return;
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_BEGUN), atlas_reg(before), scan_number(stride));
  atlas_emit(l->b, ATLAS_OP_sel, l->s->type, 4, atlas_reg(total), atlas_pred(IS_BEGUN), atlas_reg(total),
             atlas_reg(both));
}

/* Scans the totals of a line whose units are all in the block, by strides; before each line's totals stand as many
 * identities. */
void ops_scan_carry_in_block(scan_launch *l) {
  const scan_level *v = l->level;
  uint32_t of_line = 1u << v->line_bits;
  if (of_line == 1) return; /* or each lane has elements of all of them */
  uint16_t totals = atlas_builder_shared(l->b, "totals", l->s->type, 2u << v->unit_bits);
  uint16_t at = scan_fresh(l), total = scan_fresh(l), left = scan_fresh(l), line = scan_fresh(l);
  uint16_t last = l->element[v->own - 1], before = l->s->has_segments ? places_of_total(l) : 0;
  scan_emit(l, ATLAS_OP_shr, ATLAS_u32, at, ATLAS_REG_BLOCK_LANE, atlas_bits(v->lane_bits));
  scan_emit(l, ATLAS_OP_and, ATLAS_u32, line, at, atlas_bits(~(of_line - 1)));
  scan_emit(l, ATLAS_OP_add, ATLAS_u32, at, at, atlas_reg(line));
  atlas_emit(l->b, ATLAS_OP_mov, l->s->type, 2, atlas_reg(total), atlas_reg(last));
  atlas_emit(l->b, ATLAS_OP_movi, l->s->type, 2, atlas_reg(left), scan_identity(l));
  for (uint32_t stride = 1; stride <= of_line; stride *= 2) {
    uint32_t others = skip_but_last(l);
    if (stride == 1) atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem_reg(totals, at, 0), atlas_reg(left));
    atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem_reg(totals, at, of_line), atlas_reg(total));
    atlas_builder_place(l->b, others);
    scan_barrier(l);
    int64_t from = stride < of_line ? (int64_t)of_line - stride : (int64_t)of_line - 1;
    atlas_emit(l->b, ATLAS_OP_lds, l->s->type, 2, atlas_reg(left), atlas_mem_reg(totals, at, from));
    if (stride == of_line) break;
    combine_total(l, left, total, before, stride);
    scan_barrier(l);
  }
  carry_on(l, atlas_reg(left));
}

/* What came before the chunk, as an earlier launch has written it. */
static uint16_t carry_of(scan_launch *l) {
  uint16_t before = scan_fresh(l), carry = scan_fresh(l);
  atlas_operand step = l->s->is_inner ? atlas_int_const(ATLAS_i64, 1) : scan_scalar(l, l->s->lines);
  scan_emit(l, ATLAS_OP_sub, ATLAS_i64, before, l->unit, step);
  scan_emit(l, ATLAS_OP_max, ATLAS_i64, before, before, atlas_int_const(ATLAS_i64, 0));
  atlas_emit(l->b, ATLAS_OP_ldg, l->s->type, 2, atlas_reg(carry),
             atlas_mem_reg(ops_buffer_of(&l->code, l->totals), before, 0));
  atlas_emit(l->b, ATLAS_OP_set_gt, ATLAS_i64, 3, atlas_pred(IS_STORED), atlas_reg(l->chunk),
             atlas_int_const(ATLAS_i64, 0));
  atlas_emit(l->b, ATLAS_OP_sel, l->s->type, 4, atlas_reg(carry), atlas_pred(IS_STORED), atlas_reg(carry),
             scan_identity(l));
  return carry;
}

void ops_scan_carry_on(scan_launch *l) {
  carry_on(l, atlas_reg(carry_of(l)));
}

void ops_scan_write_total(scan_launch *l) {
  uint32_t absent = atlas_builder_label(l->b, NULL), others = skip_but_last(l);
  if (scan_has_rest(l->level)) atlas_emit_branch(l->b, IS_THERE, 1, absent);
  atlas_emit(l->b, ATLAS_OP_stg, l->s->type, 2, atlas_mem_reg(ops_buffer_of(&l->code, l->totals), l->unit, 0),
             atlas_reg(l->element[l->level->own - 1]));
  if (l->s->has_segments)
    atlas_emit(l->b, ATLAS_OP_stg, ATLAS_i64, 2, atlas_mem_reg(ops_buffer_of(&l->code, l->total_places), l->unit, 0),
               atlas_reg(places_of_total(l)));
  atlas_builder_place(l->b, absent);
  atlas_builder_place(l->b, others);
}

/* ---- a lane's own chunk ------------------------------------------------------------------------------------------ */

static int64_t in_column(const scan_level *v, uint32_t w) { return (int64_t)w << v->unit_bits; }

static void put(scan_launch *l, uint32_t w) {
  atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem_reg(l->tile, l->at, in_column(l->level, w)),
             atlas_reg(l->element[w]));
}

static void take(scan_launch *l, uint16_t to, int64_t w) {
  atlas_emit(l->b, ATLAS_OP_lds, l->s->type, 2, atlas_reg(to),
             atlas_mem_reg(l->tile, l->at, w * (int64_t)scan_units_of(l->level)));
}

static void begin_steps(scan_launch *l, uint32_t *next, uint16_t count, uint32_t steps, uint32_t from) {
  atlas_emit(l->b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(count), atlas_bits(steps));
  scan_emit(l, ATLAS_OP_add, ATLAS_u32, l->at, ATLAS_REG_BLOCK_LANE, atlas_bits((uint64_t)in_column(l->level, from)));
  *next = atlas_builder_label(l->b, NULL);
  atlas_builder_place(l->b, *next);
}

static void end_step(scan_launch *l, uint32_t next, uint16_t count, int is_down) {
  scan_emit(l, is_down ? ATLAS_OP_sub : ATLAS_OP_add, ATLAS_u32, l->at, l->at,
       atlas_bits((uint64_t)in_column(l->level, STEP)));
  scan_emit(l, ATLAS_OP_sub, ATLAS_u32, count, count, atlas_bits(1));
  ops_branch_if(l->b, ATLAS_OP_set_ne, ATLAS_u32, atlas_reg(count), atlas_bits(0), next);
}

/* Advances the step's elements along the axis. */
static void go_along(scan_launch *l, int64_t elements) {
  scan_emit(l, ATLAS_OP_add, ATLAS_i64, l->first, l->first, atlas_int_const(ATLAS_i64, elements));
  scan_emit(l, ATLAS_OP_sub, ATLAS_i64, l->left, l->left, atlas_int_const(ATLAS_i64, elements));
}

/* A stride below a step: before[0] and what follows hold the last elements of the step before. */
static void stride_in_step(scan_launch *l, uint32_t stride, const uint16_t *before) {
  uint16_t last[STEP];
  for (uint32_t w = 0; w < stride; w++) {
    last[w] = scan_fresh(l);
    atlas_emit(l->b, ATLAS_OP_mov, l->s->type, 2, atlas_reg(last[w]), atlas_reg(l->element[STEP - stride + w]));
  }
  for (uint32_t w = STEP; w-- > 0;)
    scan_combine(l, atlas_reg(w >= stride ? l->element[w - stride] : before[w]), l->element[w]);
  for (uint32_t w = 0; w < stride; w++)
    atlas_emit(l->b, ATLAS_OP_mov, l->s->type, 2, atlas_reg(before[w]), atlas_reg(last[w]));
}

/* The first element is combined with the identity, too. */
static void scan_steps(scan_launch *l, uint16_t count) {
  uint32_t next, steps = (1u << l->level->bits) / STEP;
  uint16_t before[STEP];
  for (uint32_t i = 0; i + 1 < STEP; i++) {
    before[i] = scan_fresh(l);
    atlas_emit(l->b, ATLAS_OP_movi, l->s->type, 2, atlas_reg(before[i]), scan_identity(l));
  }
  begin_steps(l, &next, count, steps, 0);
  for (uint32_t w = 0; w < STEP; w++) ops_scan_read(l, w);
  for (uint32_t stride = 1; stride < STEP; stride *= 2) stride_in_step(l, stride, before + stride - 1);
  for (uint32_t w = 0; w < STEP; w++) put(l, w);
  go_along(l, STEP);
  end_step(l, next, count, 0);
}

/* A stride of whole steps, from the last step to the first one that has another one that far before it. */
static void stride_of_steps(scan_launch *l, uint32_t stride, uint16_t count) {
  uint32_t next, all = 1u << l->level->bits;
  uint16_t left = scan_fresh(l);
  begin_steps(l, &next, count, (all - stride) / STEP, all - STEP);
  for (uint32_t w = 0; w < STEP; w++) {
    l->element[w] = scan_fresh(l);
    take(l, l->element[w], w);
    take(l, left, (int64_t)w - stride);
    scan_combine(l, atlas_reg(left), l->element[w]);
    put(l, w);
  }
  end_step(l, next, count, 1);
}

static void write_steps(scan_launch *l, uint16_t count, int goes_on) {
  uint32_t next, all = 1u << l->level->bits;
  uint16_t carry = goes_on ? carry_of(l) : 0;
  go_along(l, -(int64_t)all);
  begin_steps(l, &next, count, all / STEP, 0);
  for (uint32_t w = 0; w < STEP; w++) {
    l->element[w] = scan_fresh(l);
    take(l, l->element[w], w);
  }
  if (goes_on) carry_on(l, atlas_reg(carry));
  ops_scan_write(l);
  go_along(l, STEP);
  end_step(l, next, count, 0);
}

void ops_scan_columns(scan_launch *l, int what) {
  const scan_level *v = l->level;
  ops_scan_begin_columns(l);
  if (scan_is_input(v)) ops_scan_split_line(l);
  uint16_t count = scan_fresh(l);
  l->at = scan_fresh(l);
  scan_steps(l, count);
  for (uint32_t stride = STEP; stride < 1u << v->bits; stride *= 2) stride_of_steps(l, stride, count);
  if (what != TOTALS) {
    write_steps(l, count, what == SCANS_ON);
    return;
  }
  scan_emit(l, ATLAS_OP_add, ATLAS_u32, l->at, ATLAS_REG_BLOCK_LANE, atlas_bits(0));
  l->element[STEP - 1] = scan_fresh(l);
  take(l, l->element[STEP - 1], CHUNK - 1);
  ops_scan_write_total(l);
}
