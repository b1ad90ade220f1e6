/* columns.c - reductions whose results lie side by side: a lane has some of them, and goes over what each is made of.
 *
 * A block has `lanes` times `wide` neighbouring results, and as many groups of such lanes as share the elements. Of the
 * index along the reduced axes (up to 4096, a chunk) the top bits are between the loads of a batch; those below number
 * the batches, which come in bit-reversed order, so that a binary counter folds them as they come; the lowest are the
 * groups, which fold last, in shared memory. Longer ones are parts, a chunk each, that a second launch folds. */
#include "ops/write/columns.h"
#include "ops/graph/ops_tuning.h"

#include "atlas/value.h"

#include <string.h>

static atlas_operand index_scalar(column_block *c, uint64_t value) {
  return ops_scalar_of(&c->code, c->code.index_type, value);
}

static void emit_index(column_block *c, atlas_op op, uint16_t to, atlas_operand a, atlas_operand b) {
  atlas_emit(c->code.builder, op, c->code.index_type, 3, atlas_reg(to), a, b);
}

static uint32_t lane_bits(const column_block *c) { return column_bits(c->g) | 1u << c->own; }

/* ---- elements -------------------------------------------------------------------------------------------------- */

static int may_be_absent(const column_block *c, uint32_t load) {
  if (c->tests_all) return 1;
  return load + 1 == c->loads && c->chunks == 1 && (uint64_t)c->loads * c->step != c->g->columns;
}

static void set_element(column_block *c, uint32_t load, uint32_t neighbour) {
  emit_index(c, ATLAS_OP_add, c->element, atlas_reg(c->row), atlas_bits((uint64_t)load * c->step));
  if (may_be_absent(c, load)) {
    atlas_emit(c->code.builder, ATLAS_OP_set_lt, c->code.index_type, 3, atlas_pred(ROW_IS_THERE), atlas_reg(c->element),
               index_scalar(c, c->g->columns));
    emit_index(c, ATLAS_OP_min, c->element, atlas_reg(c->element), index_scalar(c, c->g->columns - 1));
  }
  ops_row_set_column(c->g, &c->code, c->element, 0);
  c->code.displaced = c->own;
  c->code.displacement = neighbour;
}

static void set_results(column_block *c, uint32_t neighbour) {
  c->code.displaced = c->own;
  c->code.displacement = neighbour;
  for (uint32_t i = 0; i < c->g->reduction_count; i++) {
    const row_reduction *r = &c->g->reductions[i];
    if (r->bound != 0 && r->stage < c->stage) c->code.registers[r->bound] = c->results[i][neighbour].reg;
  }
}

static void forget(column_block *c) {
  ops_row_forget(c->g, &c->code);
  ops_forget(&c->code, lane_bits(c));
}

static ops_held value_at(column_block *c, term_id term, uint32_t load, uint32_t neighbour) {
  set_element(c, load, neighbour);
  set_results(c, neighbour);
  ops_held value = {ops_value(&c->code, term), 0};
  const ops_term *t = ops_term_at(&c->g->terms, term);
  if (t->kind != TERM_BOUND && (t->varies & lane_bits(c)) != 0) {
    value.is_own = 1;
    c->code.registers[term] = OPS_NO_REGISTER;
  }
  forget(c);
  return value;
}

static ops_held leaf(void *context, uint32_t load) {
  column_block *c = context;
  ops_held value = value_at(c, c->reduction->input, load, c->neighbour);
  if (!may_be_absent(c, load)) return value;
  ops_held there = value.is_own ? value : (ops_held){ops_register(&c->code), 1};
  atlas_emit(c->code.builder, ATLAS_OP_sel, (atlas_type)c->fold.type, 4, atlas_reg(there.reg), atlas_pred(ROW_IS_THERE),
             atlas_reg(value.reg), atlas_bits(c->fold.identity));
  return there;
}

/* What does not depend on the lane is computed in front of loops and branches. */
static void hoist(column_block *c) {
  const ops_terms *t = &c->g->terms;
  for (uint32_t i = t->space.rank; i < t->variable_count; i++) {
    ops_form form = {.constant = 0};
    int owned;
    form.factor[i] = 1;
    if ((ops_varies(t, &t->derived[i].of) & lane_bits(c)) == 0) ops_form_value(&c->code, &form, &owned);
  }
  for (uint32_t id = 1; id <= t->terms.count; id++) {
    const ops_term *term = ops_term_at(t, id);
    if ((term->varies & lane_bits(c)) == 0 && c->g->stage[id] == 0 && term->kind != TERM_BOUND) ops_value(&c->code, id);
  }
}

/* ---- one stage ------------------------------------------------------------------------------------------------- */

static int is_of_stage(const column_block *c, uint32_t i) { return c->g->reductions[i].stage == c->stage; }

static void begin_batches(column_block *c) {
  atlas_emit(c->code.builder, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(c->batch_number), atlas_bits(0));
}

/* The batch's first element: its number's bits reversed, times the groups, and the group. */
static void place_batch(column_block *c) {
  atlas_builder *b = c->code.builder;
  uint16_t at = ops_register(&c->code);
  if (c->levels > 0) {
    atlas_emit(b, ATLAS_OP_brev, ATLAS_u32, 2, atlas_reg(at), atlas_reg(c->batch_number));
    atlas_emit(b, ATLAS_OP_shr, ATLAS_u32, 3, atlas_reg(at), atlas_reg(at), atlas_bits(32 - c->levels));
  } else atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(at), atlas_reg(c->batch_number));
  atlas_emit2(b, ATLAS_OP_cvt, c->code.index_type, ATLAS_u32, atlas_reg(c->row), atlas_reg(at));
  ops_register_free(&c->code, at);
  if (c->groups > 1)
    atlas_emit(b, ATLAS_OP_mad, c->code.index_type, 4, atlas_reg(c->row), atlas_reg(c->row), atlas_bits(c->groups),
               atlas_reg(c->group));
  if (c->chunk != OPS_NO_REGISTER)
    atlas_emit(b, ATLAS_OP_mad, c->code.index_type, 4, atlas_reg(c->row), atlas_reg(c->chunk), atlas_bits(OPS_CHUNK),
               atlas_reg(c->row));
}

typedef struct stage_values {
  uint16_t counter[ROWS_MOST_REDUCTIONS][MOST_LEVELS][OPS_COLUMNS_WIDE]; /* level 0 alone where order does not matter */
  uint16_t sum[ROWS_MOST_REDUCTIONS][OPS_COLUMNS_WIDE];   /* what a batch comes to; of places the extreme so far */
  uint16_t place[ROWS_MOST_REDUCTIONS][OPS_COLUMNS_WIDE]; /* and where it stands */
  ops_fold fold[ROWS_MOST_REDUCTIONS];
} stage_values;

static void move(column_block *c, const stage_values *v, uint32_t i, uint16_t to, uint16_t from) {
  atlas_emit(c->code.builder, ATLAS_OP_mov, (atlas_type)v->fold[i].type, 2, atlas_reg(to), atlas_reg(from));
}

static int is_place(const column_block *c, uint32_t i) { return row_is_place(&c->g->reductions[i]); }

static atlas_type place_type(const column_block *c, uint32_t i) {
  return c->g->reductions[i].place != 0 ? ATLAS_i64 : c->code.index_type;
}

static void begin_stage(column_block *c, stage_values *v) {
  for (uint32_t i = 0; i < c->g->reduction_count; i++) {
    if (!is_of_stage(c, i)) continue;
    const row_reduction *r = &c->g->reductions[i];
    v->fold[i] = ops_fold_of(&c->code, r->reduce, (atlas_type)r->type);
    for (uint32_t w = 0; w < c->wide; w++) {
      v->sum[i][w] = ops_register(&c->code);
      if (is_place(c, i)) {
        atlas_type type = place_type(c, i);
        v->place[i][w] = ops_register(&c->code);
        atlas_emit(c->code.builder, ATLAS_OP_movi, (atlas_type)r->type, 2, atlas_reg(v->sum[i][w]),
                   atlas_bits(v->fold[i].identity));
        atlas_emit(c->code.builder, ATLAS_OP_movi, type, 2, atlas_reg(v->place[i][w]),
                   atlas_int_const(type, type == ATLAS_i64 ? INT64_MAX : INT32_MAX));
        continue;
      }
      for (uint32_t level = 0; level < c->levels && (level == 0 || v->fold[i].is_ordered); level++) {
        v->counter[i][level][w] = ops_register(&c->code);
        atlas_emit(c->code.builder, ATLAS_OP_movi, (atlas_type)r->type, 2, atlas_reg(v->counter[i][level][w]),
                   atlas_bits(v->fold[i].identity));
      }
    }
  }
}

/* Takes a value and its place where it is the better one: greater, the first NaN, or its equal further in front. They
 * come in any order. `there`: a predicate that must hold, or -1. */
static void keep_better(column_block *c, stage_values *v, uint32_t i, uint32_t w, uint16_t value, uint16_t place,
                        int there) {
  enum { EQUAL = 5, IN_FRONT = 6, KEPT_IS_NAN = 7 };
  atlas_builder *b = c->code.builder;
  const row_reduction *r = &c->g->reductions[i];
  atlas_type type = (atlas_type)r->type, index = place_type(c, i);
  atlas_operand better = atlas_pred(ROW_IS_FOUND), equal = atlas_pred(EQUAL), kept = atlas_reg(v->sum[i][w]);
  atlas_operand own = atlas_reg(value), at = atlas_reg(v->place[i][w]);
  atlas_emit(b, r->reduce == OPS_ARGMAX ? ATLAS_OP_set_gt : ATLAS_OP_set_lt, type, 3, better, own, kept);
  atlas_emit(b, ATLAS_OP_set_eq, type, 3, equal, own, kept);
  if (atlas_kind(type) == ATLAS_KIND_FLOAT) {
    atlas_operand nan = atlas_pred(ROW_IS_NAN), kept_nan = atlas_pred(KEPT_IS_NAN), both = atlas_pred(IN_FRONT);
    atlas_emit(b, ATLAS_OP_set_nan, type, 3, nan, own, own);
    atlas_emit(b, ATLAS_OP_set_nan, type, 3, kept_nan, kept, kept);
    atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, both, nan, kept_nan);
    atlas_emit(b, ATLAS_OP_por, ATLAS_NONE, 3, equal, equal, both);
    atlas_emit(b, ATLAS_OP_por, ATLAS_NONE, 3, better, better, nan);
    atlas_emit(b, ATLAS_OP_pnot, ATLAS_NONE, 2, kept_nan, kept_nan);
    atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, better, better, kept_nan);
  }
  atlas_emit(b, ATLAS_OP_set_lt, index, 3, atlas_pred(IN_FRONT), atlas_reg(place), at);
  atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, equal, equal, atlas_pred(IN_FRONT));
  atlas_emit(b, ATLAS_OP_por, ATLAS_NONE, 3, better, better, equal);
  if (there >= 0) atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, better, better, atlas_pred((uint32_t)there));
  atlas_emit(b, ATLAS_OP_sel, type, 4, kept, better, own, kept);
  atlas_emit(b, ATLAS_OP_sel, index, 4, at, better, atlas_reg(place), at);
}

static void find_places(column_block *c, stage_values *v, uint32_t i) {
  const row_reduction *r = &c->g->reductions[i];
  for (uint32_t load = 0; load < c->loads; load++)
    for (uint32_t w = 0; w < c->wide; w++) {
      ops_held known = {c->element, 0};
      if (r->place != 0) known = value_at(c, r->place, load, w);
      ops_held value = value_at(c, r->input, load, w);
      keep_better(c, v, i, w, value.reg, known.reg, may_be_absent(c, load) ? ROW_IS_THERE : -1);
      ops_give_back(&c->code, value);
      ops_give_back(&c->code, known);
    }
}

/* A batch is folded; the results go on in v->sum. */
static void fold_batch(column_block *c, stage_values *v) {
  place_batch(c);
  for (uint32_t i = 0; i < c->g->reduction_count; i++) {
    if (!is_of_stage(c, i)) continue;
    if (is_place(c, i)) {
      find_places(c, v, i);
      continue;
    }
    c->reduction = &c->g->reductions[i];
    c->fold = v->fold[i];
    for (c->neighbour = 0; c->neighbour < c->wide; c->neighbour++) {
      ops_held sum = ops_fold_leaves(&v->fold[i], 0, 1, c->loads, leaf, c);
      move(c, v, i, v->sum[i][c->neighbour], sum.reg);
      ops_give_back(&c->code, sum);
    }
  }
}

static void keep_sums(column_block *c, const stage_values *v, uint32_t level) {
  for (uint32_t i = 0; i < c->g->reduction_count; i++)
    for (uint32_t w = 0; is_of_stage(c, i) && !is_place(c, i) && w < c->wide; w++)
      move(c, v, i, v->counter[i][v->fold[i].is_ordered ? level : 0][w], v->sum[i][w]);
}

/* Adds a level of the counter, of reductions that are ordered or of those that are not. */
static void add_sums(column_block *c, const stage_values *v, uint32_t level, int ordered) {
  for (uint32_t i = 0; i < c->g->reduction_count; i++) {
    if (!is_of_stage(c, i) || is_place(c, i) || v->fold[i].is_ordered != ordered) continue;
    for (uint32_t w = 0; w < c->wide; w++)
      atlas_emit(c->code.builder, v->fold[i].op, (atlas_type)v->fold[i].type, 3, atlas_reg(v->sum[i][w]),
                 atlas_reg(v->counter[i][level][w]), atlas_reg(v->sum[i][w]));
  }
}

/* Puts the batch into the binary counter: it leaves the loop with all of them when all levels carry. Where order does
 * not matter, level 0 has everything so far: it is added first, and kept again wherever the counting ends. */
static void count_batch(column_block *c, stage_values *v, uint32_t next) {
  atlas_builder *b = c->code.builder;
  uint32_t counted = atlas_builder_label(b, NULL), folded = atlas_builder_label(b, NULL);
  uint16_t bit = ops_register(&c->code);
  add_sums(c, v, 0, 0);
  for (uint32_t level = 0; level < c->levels; level++) {
    uint32_t carry = atlas_builder_label(b, NULL);
    atlas_emit(b, ATLAS_OP_and, ATLAS_u32, 3, atlas_reg(bit), atlas_reg(c->batch_number), atlas_bits(1u << level));
    atlas_emit(b, ATLAS_OP_set_ne, ATLAS_u32, 3, atlas_pred(ROW_IS_FOUND), atlas_reg(bit), atlas_bits(0));
    atlas_emit_branch(b, ROW_IS_FOUND, 0, carry);
    keep_sums(c, v, level);
    atlas_emit_branch(b, -1, 0, counted);
    atlas_builder_place(b, carry);
    add_sums(c, v, level, 1);
  }
  atlas_emit_branch(b, -1, 0, folded);
  atlas_builder_place(b, counted);
  atlas_emit(b, ATLAS_OP_add, ATLAS_u32, 3, atlas_reg(c->batch_number), atlas_reg(c->batch_number), atlas_bits(1));
  atlas_emit_branch(b, -1, 0, next);
  atlas_builder_place(b, folded);
  ops_register_free(&c->code, bit);
}

static void fold_all_batches(column_block *c, stage_values *v) {
  begin_batches(c);
  uint32_t next = atlas_builder_label(c->code.builder, NULL);
  atlas_builder_place(c->code.builder, next);
  fold_batch(c, v);
  if (c->levels > 0) count_batch(c, v, next);
}

typedef struct group_parts {
  column_block *c;
  uint16_t shared, at;
  uint8_t type;
  uint32_t across, neighbour;
} group_parts;

static ops_held group_part(void *context, uint32_t group) {
  const group_parts *p = context;
  ops_held part = {ops_register(&p->c->code), 1};
  atlas_emit(p->c->code.builder, ATLAS_OP_lds, (atlas_type)p->type, 2, atlas_reg(part.reg),
             atlas_mem_reg(p->shared, p->at, (int64_t)group * p->across + p->neighbour));
  return part;
}

/* Where one stage is all and nothing but its results is asked for, each lane goes on with one of them: so all are
 * folded at once. */
static int spreads(const column_block *c) {
  for (uint32_t i = 0; i < c->g->result_count; i++)
    if (c->g->results[i].is_full) return 0;
  return c->g->stage_count == 2 && c->wide <= c->groups;
}

static void spread(column_block *c, uint16_t own) {
  ops_code *code = &c->code;
  uint32_t across = c->lanes * c->wide;
  uint16_t lane = ops_index_of(code, ATLAS_REG_BLOCK_LANE);
  emit_index(c, ATLAS_OP_div, c->group, atlas_reg(lane), atlas_bits(across));
  emit_index(c, ATLAS_OP_rem, own, atlas_reg(lane), atlas_bits(across));
  emit_index(c, ATLAS_OP_add, c->column, atlas_reg(c->block_column), atlas_reg(own));
  atlas_emit(code->builder, ATLAS_OP_set_lt, code->index_type, 3, atlas_pred(HAS_RESULTS), atlas_reg(c->column),
             index_scalar(c, c->inner));
  emit_index(c, ATLAS_OP_min, c->column, atlas_reg(c->column), index_scalar(c, c->inner - 1));
  ops_register_free(code, lane);
  c->wide = 1;
}

/* The group's own is there already, but where lanes have gone on with another column. */
static void places_of_groups(column_block *c, stage_values *v, uint32_t i, uint32_t w, uint16_t at, uint32_t across) {
  atlas_builder *b = c->code.builder;
  uint16_t value = ops_register(&c->code), place = ops_register(&c->code);
  for (uint32_t group = 0; group < c->groups; group++) {
    int64_t from = (int64_t)group * across + w;
    uint16_t to = group == 0 ? v->sum[i][w] : value, to_place = group == 0 ? v->place[i][w] : place;
    atlas_emit(b, ATLAS_OP_lds, (atlas_type)v->fold[i].type, 2, atlas_reg(to), atlas_mem_reg(c->shared[i], at, from));
    atlas_emit(b, ATLAS_OP_lds, place_type(c, i), 2, atlas_reg(to_place), atlas_mem_reg(c->shared_places[i], at, from));
    if (group > 0) keep_better(c, v, i, w, value, place, -1);
  }
  ops_register_free(&c->code, value);
  ops_register_free(&c->code, place);
}

/* Groups fold in shared memory; every lane has the results of its neighbours then, or one of its own. */
static void fold_groups(column_block *c, stage_values *v) {
  atlas_builder *b = c->code.builder;
  uint32_t across = c->lanes * c->wide;
  uint16_t own = ops_register(&c->code), at = ops_register(&c->code);
  emit_index(c, ATLAS_OP_mul, own, atlas_reg(c->lane), atlas_bits(c->wide));
  atlas_emit(b, ATLAS_OP_mad, c->code.index_type, 4, atlas_reg(at), atlas_reg(c->group), atlas_bits(across),
             atlas_reg(own));
  if (c->stage > 0) atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  for (uint32_t i = 0; i < c->g->reduction_count; i++)
    for (uint32_t w = 0; is_of_stage(c, i) && w < c->wide; w++) {
      atlas_emit(b, ATLAS_OP_sts, (atlas_type)v->fold[i].type, 2, atlas_mem_reg(c->shared[i], at, w),
                 atlas_reg(v->sum[i][w]));
      if (is_place(c, i))
        atlas_emit(b, ATLAS_OP_sts, place_type(c, i), 2, atlas_mem_reg(c->shared_places[i], at, w),
                   atlas_reg(v->place[i][w]));
    }
  atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  if (spreads(c)) spread(c, own);
  for (uint32_t i = 0; i < c->g->reduction_count; i++) {
    if (!is_of_stage(c, i)) continue;
    for (uint32_t w = 0; w < c->wide; w++) {
      if (is_place(c, i)) {
        places_of_groups(c, v, i, w, own, across);
        continue;
      }
      group_parts parts = {c, c->shared[i], own, v->fold[i].type, across, w};
      ops_held all = ops_fold_leaves(&v->fold[i], 0, 1, c->groups, group_part, &parts);
      move(c, v, i, v->sum[i][w], all.reg);
      ops_give_back(&c->code, all);
    }
  }
  ops_register_free(&c->code, own);
  ops_register_free(&c->code, at);
}

static void reduce_stage(column_block *c, stage_values *v) {
  atlas_builder *b = c->code.builder;
  begin_stage(c, v);
  c->tests_all = 0;
  if (c->chunk != OPS_NO_REGISTER && c->g->columns % OPS_CHUNK != 0) {
    uint32_t last = atlas_builder_label(b, NULL), done = atlas_builder_label(b, NULL);
    atlas_emit(b, ATLAS_OP_set_eq, c->code.index_type, 3, atlas_pred(ROW_IS_THERE), atlas_reg(c->chunk),
               index_scalar(c, c->chunks - 1));
    atlas_emit_branch(b, ROW_IS_THERE, 0, last);
    fold_all_batches(c, v);
    atlas_emit_branch(b, -1, 0, done);
    atlas_builder_place(b, last);
    c->tests_all = 1;
    fold_all_batches(c, v);
    atlas_builder_place(b, done);
  } else fold_all_batches(c, v);
  if (c->groups > 1) fold_groups(c, v);
  for (uint32_t i = 0; i < c->g->reduction_count; i++) {
    if (!is_of_stage(c, i)) continue;
    for (uint32_t w = 0; w < c->wide; w++) {
      uint16_t reg = is_place(c, i) && c->chunks == 1 ? v->place[i][w] : v->sum[i][w];
      atlas_type type = (atlas_type)ops_at(c->g->group->computation, c->g->reductions[i].value)->type;
      if (is_place(c, i) && place_type(c, i) != type)
        atlas_emit2(b, ATLAS_OP_cvt, type, place_type(c, i), atlas_reg(v->place[i][w]), atlas_reg(v->place[i][w]));
      c->results[i][w] = (ops_held){reg, 0};
    }
    if (is_place(c, i)) continue;
    for (uint32_t level = 0; level < c->levels && (level == 0 || v->fold[i].is_ordered); level++)
      for (uint32_t w = 0; w < c->wide; w++) ops_register_free(&c->code, v->counter[i][level][w]);
  }
}

/* ---- results --------------------------------------------------------------------------------------------------- */

/* Of all full results at a load and its neighbours: what may be computed by every lane, then the stores of those that
 * have them. */
static void store_load(column_block *c, uint32_t load) {
  atlas_builder *b = c->code.builder;
  row_store stores[ROWS_MOST_RESULTS * OPS_COLUMNS_WIDE];
  ops_held values[ROWS_MOST_RESULTS * OPS_COLUMNS_WIDE];
  uint32_t count = 0, absent = atlas_builder_label(b, NULL), predicate = HAS_RESULTS;
  for (uint32_t w = 0; w < c->wide; w++)
    for (uint32_t i = 0; i < c->g->result_count; i++) {
      const row_result *r = &c->g->results[i];
      if (!r->is_full) continue;
      values[count] = value_at(c, r->term, load, w);
      set_element(c, load, w);
      stores[count] = ops_row_store_begin(&c->code, r, values[count].reg);
      forget(c);
      count++;
    }
  if (may_be_absent(c, load)) {
    predicate = ROW_IS_FOUND;
    atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(predicate), atlas_pred(ROW_IS_THERE),
               atlas_pred(HAS_RESULTS));
  }
  if (!c->all_have_results || may_be_absent(c, load)) atlas_emit_branch(b, (int)predicate, 1, absent);
  for (uint32_t i = 0; i < count; i++) {
    ops_row_store_end(&c->code, &stores[i]);
    ops_give_back(&c->code, values[i]);
  }
  atlas_builder_place(b, absent);
}

/* Element after element: batches side by side, in a loop that counts down. */
static void store_full(column_block *c) {
  ops_code *code = &c->code;
  atlas_builder *b = code->builder;
  uint64_t each = (uint64_t)c->batch * c->groups, rounds = (c->g->columns + each - 1) / each;
  uint32_t next = atlas_builder_label(b, NULL);
  c->tests_all = c->g->columns % each != 0;
  c->loads = c->batch + 1; /* no last one that is tested */
  c->step = c->groups;
  atlas_emit(b, ATLAS_OP_mov, code->index_type, 2, atlas_reg(c->row), atlas_reg(c->group));
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(c->batch_number), ops_scalar_of(code, ATLAS_u32, rounds));
  atlas_builder_place(b, next);
  for (uint32_t load = 0; load < c->batch; load++) store_load(c, load);
  emit_index(c, ATLAS_OP_add, c->row, atlas_reg(c->row), atlas_bits(each));
  atlas_emit(b, ATLAS_OP_loop, ATLAS_NONE, 2, atlas_reg(c->batch_number), atlas_label_ref(next));
}

static void only_first_group(column_block *c, uint32_t done) {
  if (c->groups == 1) return;
  atlas_emit(c->code.builder, ATLAS_OP_set_ne, c->code.index_type, 3, atlas_pred(0), atlas_reg(c->group),
             atlas_bits(0));
  atlas_emit_branch(c->code.builder, 0, 0, done);
}

static void store_results(column_block *c) {
  uint32_t done = atlas_builder_label(c->code.builder, NULL), full = 0;
  for (uint32_t i = 0; i < c->g->result_count; i++) full += c->g->results[i].is_full;
  if (full > 0) store_full(c);
  if (full < c->g->result_count) {
    if (!c->all_have_results) atlas_emit_branch(c->code.builder, HAS_RESULTS, 1, done);
    only_first_group(c, done);
    for (uint32_t w = 0; w < c->wide; w++) {
      set_results(c, w);
      ops_row_put(c->g, &c->code);
      forget(c);
    }
  }
  atlas_builder_place(c->code.builder, done);
}

static void store_parts(column_block *c, const stage_values *v, const row_parts *parts) {
  atlas_builder *b = c->code.builder;
  uint32_t done = atlas_builder_label(b, NULL);
  int owned;
  if (!c->all_have_results) atlas_emit_branch(b, HAS_RESULTS, 1, done);
  only_first_group(c, done);
  c->code.displacement = 0;
  atlas_operand row = ops_form_value(&c->code, &c->g->row_number, &owned);
  uint16_t at = ops_register(&c->code);
  atlas_emit(b, ATLAS_OP_mad, c->code.index_type, 4, atlas_reg(at), atlas_reg(c->chunk), index_scalar(c, c->g->rows),
             row);
  for (uint32_t i = 0; i < c->g->reduction_count; i++)
    for (uint32_t w = 0; w < c->wide; w++) {
      atlas_emit(b, ATLAS_OP_stg, (atlas_type)c->g->reductions[i].type, 2,
                 atlas_mem_reg(ops_buffer_of(&c->code, parts->values[i]), at, w), atlas_reg(c->results[i][w].reg));
      if (is_place(c, i))
        atlas_emit(b, ATLAS_OP_stg, ATLAS_i64, 2, atlas_mem_reg(ops_buffer_of(&c->code, parts->places[i]), at, w),
                   atlas_reg(v->place[i][w]));
    }
  atlas_builder_place(b, done);
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

static void begin_block(column_block *c) {
  ops_code *code = &c->code;
  atlas_builder *b = code->builder;
  uint16_t block = ops_index_of(code, ATLAS_REG_BLOCK_INDEX), outer = ops_register(code);
  c->lane = ops_index_of(code, ATLAS_REG_BLOCK_LANE);
  c->group = ops_register(code);
  c->column = ops_register(code);
  emit_index(c, ATLAS_OP_div, c->group, atlas_reg(c->lane), atlas_bits(c->lanes));
  emit_index(c, ATLAS_OP_rem, c->lane, atlas_reg(c->lane), atlas_bits(c->lanes));
  if (c->own > 0) {
    emit_index(c, ATLAS_OP_div, outer, atlas_reg(block), index_scalar(c, c->tiles));
    emit_index(c, ATLAS_OP_rem, block, atlas_reg(block), index_scalar(c, c->tiles));
    ops_row_split(c->g, code, outer, 0, c->own);
  }
  c->block_column = block;
  emit_index(c, ATLAS_OP_mul, block, atlas_reg(block), atlas_bits((uint64_t)c->lanes * c->wide));
  atlas_emit(b, ATLAS_OP_mad, code->index_type, 4, atlas_reg(c->column), atlas_reg(c->lane), atlas_bits(c->wide),
             atlas_reg(block));
  atlas_emit(b, ATLAS_OP_set_lt, code->index_type, 3, atlas_pred(HAS_RESULTS), atlas_reg(c->column),
             index_scalar(c, c->inner));
  emit_index(c, ATLAS_OP_min, c->column, atlas_reg(c->column), index_scalar(c, c->inner - c->wide));
  code->variable[c->own] = c->column;
  c->batch_number = ops_register(code);
  c->row = ops_register(code);
  c->element = ops_register(code);
  if (c->chunk != OPS_NO_REGISTER) {
    uint16_t y = ops_register(code);
    atlas_emit(b, ATLAS_OP_sreg, ATLAS_u32, 2, atlas_reg(y), atlas_coordinate(ATLAS_COORD_BLOCK_Y));
    c->chunk = ops_index_of(code, y);
    ops_register_free(code, y);
  }
}

static hg_status add_storages(column_block *c, row_parts *parts) {
  ops_plan *plan = c->g->group->plan;
  parts->count = c->chunks;
  c->code.partial_count = 0; /* its results are the parts alone */
  parts->is_across = 1;
  for (uint32_t i = 0; i < c->g->reduction_count; i++) {
    HG_TRY(ops_row_add_parts(plan, &c->code, c->g->reductions[i].type, c->g->rows * c->chunks, &parts->values[i]));
    if (is_place(c, i)) HG_TRY(ops_row_add_parts(plan, &c->code, ATLAS_i64, c->g->rows * c->chunks, &parts->places[i]));
  }
  return HG_OK;
}

static void write_block(column_block *c, stage_values *v, row_parts *parts) {
  begin_block(c);
  hoist(c);
  for (uint32_t i = 0; i < c->g->reduction_count && c->groups > 1; i++) {
    c->shared[i] = atlas_builder_shared(c->code.builder, (char[]){'p', (char)('a' + i), '\0'},
                                        (atlas_type)c->g->reductions[i].type, c->lanes * c->wide * c->groups);
    if (is_place(c, i))
      c->shared_places[i] = atlas_builder_shared(c->code.builder, (char[]){'q', (char)('a' + i), '\0'},
                                                 place_type(c, i), c->lanes * c->wide * c->groups);
  }
  for (c->stage = 0; c->stage + 1 < c->g->stage_count; c->stage++) reduce_stage(c, v);
  if (c->chunks > 1) store_parts(c, v, parts);
  else store_results(c);
}

hg_status ops_columns_write(row_group *g, ops_step *step, row_parts *parts) {
  const hg_allocator *allocator = &g->group->plan->allocator;
  struct both {
    column_block block;
    stage_values values;
  } *both = hg_allocate(allocator, 1, sizeof *both);
  if (both == NULL) return hg_fail_memory("a block of columns", sizeof *both);
  column_block *c = &both->block;
  c->g = g;
  c->own = g->row_rank - 1;
  ops_columns_choose_shape(c);
  c->chunk = c->chunks > 1 ? 0 : OPS_NO_REGISTER;
  hg_status status = ops_row_code_begin(g, &c->code, step, "columns");
  if (status == HG_OK) {
    atlas_builder_block(c->code.builder, c->lanes * c->groups, 1, 1);
    if (c->chunks > 1) status = add_storages(c, parts);
    if (c->code.status == HG_OK) c->code.status = status;
    write_block(c, &both->values, parts);
    status = ops_code_end(&c->code);
  }
  step->grid[0] = (uint32_t)(c->tiles * (g->rows / c->inner)), step->grid[1] = (uint32_t)c->chunks, step->grid[2] = 1;
  step->block[0] = c->lanes * c->groups, step->block[1] = step->block[2] = 1;
  step->kind = "columns";
  hg_release(allocator, both);
  return status;
}
