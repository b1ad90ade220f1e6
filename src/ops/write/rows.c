/* rows.c - reductions along one set of axes become programs: which way suits which rows. */
#include "ops/write/row_group.h"
#include "ops/graph/ops_tuning.h"

#include <string.h>

static int has_few_rows(const row_group *g) {
  return g->rows < (g->group->plan->for_gpu ? OPS_FEW_ROWS_GPU : OPS_FEW_ROWS_PROCESSOR);
}

/* Blocks that are spread fill a GPU by fewer rows. */
static int has_few_blocks(const row_group *g, const ops_layout *layout) {
  return has_few_rows(g) && (layout->chunks == 0 || g->rows * layout->chunks < OPS_FEW_CHUNKS_GPU);
}

static hg_status write_rows(row_group *g);

/* The step that is being written; other steps come behind it. */
static ops_step *last_step(const row_group *g) {
  const hg_array *made = &g->group->plan->made;
  return (ops_step *)made->data + made->count - 1;
}

typedef hg_status parts_writer(row_group *g, ops_step *step, row_parts *parts);

/* The last step for parts of rows, and the steps that fold those. */
static hg_status write_parts(row_group *g, parts_writer *write) {
  row_parts parts;
  size_t own = g->group->plan->made.count - 1;
  memset(&parts, 0, sizeof parts);
  HG_TRY(write(g, last_step(g), &parts));
  if (parts.count == 0) return HG_OK;
  row_group *rest = hg_allocate(&g->group->plan->allocator, 1, sizeof *rest);
  if (rest == NULL) return hg_fail_memory("a group that reduces", sizeof *rest);
  hg_status status = ops_row_group_of_parts(rest, g, &parts);
  if (status == HG_OK) status = write_rows(rest);
  ops_row_group_end(rest);
  hg_release(&g->group->plan->allocator, rest);
  if (status != HG_UNSUPPORTED) return status;
  ops_drop_steps(g->group->plan, own); /* another way may do it */
  return ops_new_step(g->group->plan) != NULL ? status : HG_OUT_OF_MEMORY;
}

/* Each stage in a launch of its own, or two, is quicker where rows are neither held nor lie side by side in cache, and
 * where few blocks would have all of the work. Loops that store are slow on a processor. */
static int has_stages_apart(const row_group *g, int is_held) {
  if ((!ops_row_has_full_results(g) && g->stage_count == 2) || g->reduction_count == 0 || g->rows == 0) return 0;
  if (g->reduction_count > ROWS_MOST_PARTS) return 0;
  if (ops_columns_lie_apart(g)) return g->columns > OPS_CHUNK || !g->group->plan->for_gpu;
  if (g->columns <= OPS_CHUNK) return 0;
  return (is_held ? g->rows < OPS_FEW_ROWS_HELD : has_few_rows(g)) ||
         (!is_held && (g->group->plan->for_gpu || !ops_rows_loop_can(g)));
}

static hg_status add_between(const row_group *g, row_between *between) {
  ops_plan *plan = g->group->plan;
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    uint8_t type = ops_at(g->group->computation, g->reductions[i].value)->type;
    HG_TRY(ops_add_temporary(plan, type, g->rows, &between->storage[i]));
  }
  return HG_OK;
}

static hg_status write_stage(row_group *own, const row_group *g, uint32_t stage, const row_between *between) {
  HG_TRY(ops_row_group_of_stage(own, g, stage, between));
  if (stage + 1 < g->stage_count) return write_rows(own);
  for (int full = 0; full < 2; full++) {
    int wanted = 0;
    for (uint32_t i = 0; i < own->result_count; i++) wanted |= own->results[i].is_full == full;
    if (!wanted) continue;
    ops_step *step = ops_new_step(g->group->plan);
    if (step == NULL) return HG_OUT_OF_MEMORY;
    int by_chunks = full && !ops_columns_lie_apart(g) && ops_rows_behind_can(own);
    HG_TRY(by_chunks ? ops_rows_behind(own, step) : ops_rows_map(own, step, full));
  }
  return HG_OK;
}

static hg_status write_stages(row_group *g) {
  const hg_allocator *allocator = &g->group->plan->allocator;
  row_between between;
  memset(&between, 0, sizeof between);
  row_group *own = hg_allocate(allocator, 1, sizeof *own);
  if (own == NULL) return hg_fail_memory("a group that reduces", sizeof *own);
  hg_status status = add_between(g, &between);
  for (uint32_t stage = 0; stage < g->stage_count && status == HG_OK; stage++) {
    status = write_stage(own, g, stage, &between);
    ops_row_group_end(own);
  }
  hg_release(allocator, own);
  return status;
}

/* What one way cannot do, for want of registers, another one can. */
static hg_status write_rows(row_group *g) {
  ops_layout layout;
  hg_status status = HG_UNSUPPORTED;
  int fits = ops_rows_held_layout(g, &layout), loops = ops_rows_loop_pays(g);
  if (ops_new_step(g->group->plan) == NULL) return HG_OUT_OF_MEMORY;
  if (fits && layout.lanes == 1) status = ops_rows_held(g, last_step(g), &layout);
  if (status == HG_UNSUPPORTED && !fits && ops_rows_shared_can(g)) status = ops_rows_shared(g, last_step(g));
  if (status == HG_UNSUPPORTED && has_stages_apart(g, fits)) return write_stages(g);
  if (status == HG_UNSUPPORTED && ops_columns_top_can(g)) status = write_parts(g, ops_columns_top);
  if (status == HG_UNSUPPORTED && ops_columns_can(g)) status = write_parts(g, ops_columns_write);
  if (status == HG_UNSUPPORTED && has_few_blocks(g, &layout) && ops_rows_parts_can(g))
    return write_parts(g, ops_rows_parts);
  if (status == HG_UNSUPPORTED && loops) status = ops_rows_loop(g, last_step(g));
  if (status == HG_UNSUPPORTED && fits && layout.lanes > 1) status = ops_rows_held(g, last_step(g), &layout);
  if (status == HG_UNSUPPORTED && ops_rows_loop_can(g)) status = ops_rows_loop(g, last_step(g));
  if (status == HG_UNSUPPORTED && ops_rows_parts_can(g)) status = write_parts(g, ops_rows_parts);
  if (status != HG_UNSUPPORTED) return status;
  return hg_fail(HG_UNSUPPORTED, "reductions in one launch: rows of %llu elements", (unsigned long long)g->columns);
}

hg_status ops_write_rows(const ops_group *group) {
  row_group *g = hg_allocate(&group->plan->allocator, 1, sizeof *g);
  if (g == NULL) return hg_fail_memory("a group that reduces", sizeof *g);
  hg_status status = ops_row_group_begin(g, group);
  if (status == HG_OK) status = write_rows(g);
  ops_row_group_end(g);
  hg_release(&group->plan->allocator, g);
  return status;
}
