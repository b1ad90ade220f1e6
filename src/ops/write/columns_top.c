/* columns_top.c - long columns on a processor: the top bits of their elements' numbers are folded first, all along
 * memory.
 *
 * Order F begins with elements that are half a column apart, then a quarter: where a block has some columns and goes
 * over their elements in that order (columns.c), each round reads pieces of a few hundred bytes wherever they lie, and
 * nothing foresees the next ones. What the caches hold is read so in little time; what they do not is read in one pass,
 * as a map reads several inputs: a lane folds elements that are an eighth of the column apart, and the lanes' results,
 * an eighth as much, are columns again, whose order goes on where this ends. */
#include "ops/write/row_group.h"
#include "ops/graph/ops_tuning.h"

#include "base/error.h"

#include <string.h>

/* Lanes of a column. */
static uint64_t lanes_of(const row_group *g) {
  uint64_t lanes = 1;
  while (lanes * OPS_TOP_ELEMENTS < g->columns) lanes *= 2;
  return lanes;
}

int ops_columns_top_can(const row_group *g) {
  if (g->group->plan->for_gpu || g->columns <= OPS_TOP_COLUMNS || g->columns > OPS_CHUNK) return 0;
  if (g->columns % lanes_of(g) != 0) return 0;
  if (!ops_columns_lie_apart(g) || g->stage_count != 2 || ops_row_has_full_results(g)) return 0;
  if (g->terms.space.rank != g->row_rank + 1 || g->row_rank + 2 > HG_MAX_RANK) return 0;
  if (g->reduction_count > ROWS_MOST_PARTS || g->terms.variable_count == OPS_MAX_VARIABLES) return 0;
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (row_is_place(&g->reductions[i])) return 0;
  uint64_t lanes = g->rows * lanes_of(g);
  return lanes <= INT32_MAX && lanes * OPS_TOP_ELEMENTS * ops_row_element_bytes(g) >= OPS_TOP_BYTES;
}

/* Coordinate `row_rank`, the column's, becomes two: the lane's place in it comes first, in front of the row's
 * coordinates, and takes single steps; what a lane folds takes `lanes` each. */
static ops_form moved(const row_group *g, const ops_form *form, uint64_t lanes) {
  ops_form to = {.constant = form->constant};
  memcpy(&to.factor[1], &form->factor[0], (OPS_MAX_VARIABLES - 1) * sizeof to.factor[0]);
  to.factor[0] = form->factor[g->row_rank];
  to.factor[g->row_rank + 1] *= (int64_t)lanes;
  return to;
}

static void mark(const row_group *g, uint8_t *is_needed, term_id id) {
  const ops_term *term = ops_term_at(&g->terms, id);
  if (is_needed[id]) return;
  is_needed[id] = 1;
  for (uint32_t i = 0; i < term->input_count; i++) mark(g, is_needed, term->input[i]);
}

/* The terms of `g` that its reductions read, at their new places; the others are nobody's. */
static hg_status copy_terms(row_group *top, const row_group *g, uint64_t lanes) {
  uint8_t is_needed[OPS_MAX_TERMS + 1] = {0};
  ops_terms *t = &top->terms;
  for (uint32_t i = 0; i < g->reduction_count; i++) mark(g, is_needed, g->reductions[i].input);
  if (hg_array_append(&g->group->plan->allocator, &t->terms, g->terms.terms.data, g->terms.terms.count) == NULL)
    return hg_fail_memory("a group that reduces", g->terms.terms.count);
  t->variable_count = g->terms.variable_count + 1;
  for (uint32_t k = g->terms.space.rank; k < g->terms.variable_count; k++) {
    t->derived[k + 1] = g->terms.derived[k];
    t->derived[k + 1].of = moved(g, &g->terms.derived[k].of, lanes);
  }
  for (term_id id = 1; id <= t->terms.count; id++) {
    ops_term *term = ops_term_at(t, id);
    if (!is_needed[id]) *term = (ops_term){.kind = TERM_CONSTANT, .type = term->type};
    term->form = moved(g, &term->form, lanes);
    term->varies = term->varies << 1 | (term->varies >> g->row_rank & 1);
  }
  return HG_OK;
}

/* A reduction's result, which is stored to a storage by the lane's number. */
static hg_status add_result(row_group *top, uint32_t i, uint32_t storage) {
  row_reduction *r = &top->reductions[i];
  const ops_term bound = {.kind = TERM_BOUND, .type = r->type, .value = r->value, .form = top->row_number,
                          .varies = (1u << top->row_rank) - 1};
  if (top->terms.terms.count == OPS_MAX_TERMS) return hg_fail(HG_UNSUPPORTED, "more terms than fit");
  if (hg_array_append(&top->group->plan->allocator, &top->terms.terms, &bound, 1) == NULL)
    return hg_fail_memory("a group that reduces", sizeof bound);
  r->bound = (term_id)top->terms.terms.count;
  top->results[top->result_count++] = (row_result){.value = r->value, .storage = storage, .type = r->type,
                                                   .term = r->bound, .address = top->row_number};
  return HG_OK;
}

static hg_status begin_group(row_group *top, const row_group *g, const row_between *between) {
  uint64_t lanes = lanes_of(g);
  ops_shape space = {.rank = g->terms.space.rank + 1};
  memset(top, 0, sizeof *top);
  space.size[0] = lanes;
  memcpy(&space.size[1], g->terms.space.size, g->row_rank * sizeof space.size[0]);
  space.size[g->row_rank + 1] = g->columns / lanes;
  top->group = g->group;
  ops_terms_begin(&top->terms, g->group, &space);
  top->rows = g->rows * lanes, top->columns = g->columns / lanes;
  top->row_rank = g->row_rank + 1;
  top->between = between;
  top->row_number = moved(g, &g->row_number, lanes);
  top->row_number.factor[0] = (int64_t)g->rows;
  HG_TRY(copy_terms(top, g, lanes));
  top->reduction_count = g->reduction_count;
  memcpy(top->reductions, g->reductions, sizeof top->reductions);
  for (uint32_t i = 0; i < g->reduction_count; i++) HG_TRY(add_result(top, i, between->storage[i]));
  return ops_row_group_finish(top, top->row_rank);
}

static hg_status write_top(row_group *top, const row_group *g, const row_parts *parts) {
  row_between between;
  ops_layout layout;
  memset(&between, 0, sizeof between);
  memcpy(between.storage, parts->values, sizeof between.storage);
  HG_TRY(begin_group(top, g, &between));
  if (!ops_rows_held_layout(top, &layout) || layout.lanes != 1)
    return hg_fail(HG_UNSUPPORTED, "long columns of many values");
  return ops_rows_held(top);
}

hg_status ops_columns_top(row_group *g, row_parts *parts) {
  const hg_allocator *allocator = &g->group->plan->allocator;
  uint64_t lanes = lanes_of(g);
  row_group *top = hg_allocate(allocator, 1, sizeof *top);
  if (top == NULL) return hg_fail_memory("a group that reduces", sizeof *top);
  hg_status status = HG_OK;
  for (uint32_t i = 0; i < g->reduction_count && status == HG_OK; i++)
    status = ops_add_temporary(g->group->plan, g->reductions[i].type, g->rows * lanes, &parts->values[i]);
  if (status == HG_OK) status = write_top(top, g, parts);
  ops_row_group_end(top);
  hg_release(allocator, top);
  parts->count = lanes;
  parts->is_across = 1;
  return status;
}
