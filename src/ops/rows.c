/* rows.c - reductions along one set of axes become programs: which way suits which rows. */
#include "ops/row_group.h"

#include <string.h>

enum {
  FEW_ROWS_GPU = 512, /* blocks that fill a GPU */
  FEW_ROWS_PROCESSOR = 32
};

static int has_few_rows(const row_group *g) {
  return g->rows < (g->group->plan->for_gpu ? FEW_ROWS_GPU : FEW_ROWS_PROCESSOR);
}

static hg_status write_rows(row_group *g, ops_step *steps, uint32_t step_count);

static void drop_step(ops_step *step, const hg_allocator *allocator) {
  atlas_program_release(step->program);
  hg_release(allocator, step->scalars);
  memset(step, 0, sizeof *step);
}

/* A step for parts of rows, and the steps that fold those. */
static hg_status write_parts(row_group *g, ops_step *steps, uint32_t step_count, int across) {
  row_parts parts;
  memset(&parts, 0, sizeof parts);
  if (step_count < 2) return hg_fail(HG_UNSUPPORTED, "a reduction that takes more than %d launches", OPS_MOST_STEPS);
  HG_TRY(across ? columns_write(g, &steps[0], &parts) : rows_parts(g, &steps[0], &parts));
  if (parts.count == 0) return HG_OK;
  row_group *rest = hg_allocate(&g->group->plan->allocator, 1, sizeof *rest);
  if (rest == NULL) return hg_fail_memory("a group that reduces", sizeof *rest);
  hg_status status = row_group_of_parts(rest, g, &parts);
  if (status == HG_OK) status = write_rows(rest, steps + 1, step_count - 1);
  if (status != HG_OK) drop_step(&steps[0], &g->group->plan->allocator);
  row_group_end(rest);
  hg_release(&g->group->plan->allocator, rest);
  return status;
}

/* What one way cannot do, for want of registers, another one can. */
static hg_status write_rows(row_group *g, ops_step *steps, uint32_t step_count) {
  ops_layout layout;
  hg_status status = HG_UNSUPPORTED;
  int fits = rows_held_layout(g, &layout);
  if (fits && layout.lanes == 1) status = rows_held(g, &steps[0], &layout);
  if (status == HG_UNSUPPORTED && columns_must_part(g))
    return hg_fail(HG_UNSUPPORTED, "reductions in one launch: columns of %llu elements",
                   (unsigned long long)g->columns);
  if (status == HG_UNSUPPORTED && columns_can(g)) status = write_parts(g, steps, step_count, 1);
  if (status == HG_UNSUPPORTED && has_few_rows(g) && step_count > 1 && rows_parts_can(g))
    return write_parts(g, steps, step_count, 0);
  if (status == HG_UNSUPPORTED && fits && layout.lanes > 1) status = rows_held(g, &steps[0], &layout);
  if (status == HG_UNSUPPORTED && rows_loop_can(g)) status = rows_loop(g, &steps[0]);
  if (status == HG_UNSUPPORTED && rows_parts_can(g)) status = write_parts(g, steps, step_count, 0);
  if (status != HG_UNSUPPORTED) return status;
  return hg_fail(HG_UNSUPPORTED, "reductions in one launch: rows of %llu elements", (unsigned long long)g->columns);
}

hg_status ops_write_rows(const ops_group *group, ops_step *steps) {
  row_group *g = hg_allocate(&group->plan->allocator, 1, sizeof *g);
  if (g == NULL) return hg_fail_memory("a group that reduces", sizeof *g);
  hg_status status = row_group_begin(g, group);
  if (status == HG_OK) status = write_rows(g, steps, OPS_MOST_STEPS);
  row_group_end(g);
  hg_release(&group->plan->allocator, g);
  return status;
}
