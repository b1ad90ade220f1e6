/* rows.c - turns reductions along one set of axes into programs: chooses the layout (layouts.def). */
#include "ops/write/row_block.h"
#include "ops/write/row_moves.h"

#include <string.h>

static int has_few_rows(const row_group *g) {
  return g->rows < (g->group->plan->for_gpu ? OPS_FEW_ROWS_GPU : OPS_FEW_ROWS_PROCESSOR);
}

static int choose_lane(const row_group *g, ops_layout *layout) {
  return ops_choose_held(g, layout) && layout->lanes == 1;
}

/* Blocks that are spread need fewer rows to fill a GPU. */
static int choose_few_rows(const row_group *g, ops_layout *layout) {
  (void)ops_choose_held(g, layout);
  if (!has_few_rows(g) || (layout->chunks > 0 && g->rows * layout->chunks >= OPS_FEW_CHUNKS_GPU)) return 0;
  return ops_choose_parts(g, layout);
}

/* 1 if each stage in a launch of its own (or two) is faster: when rows are neither held nor neighbours in cache, and
 * when few blocks would do all of the work. Loops that store are slow on a CPU. */
static int choose_stages(const row_group *g, ops_layout *layout) {
  if ((!ops_row_has_full_results(g) && g->stage_count == 2) || g->reduction_count == 0 || g->rows == 0) return 0;
  if (g->reduction_count > ROWS_MOST_PARTS) return 0;
  if (ops_columns_lie_apart(g)) return g->columns > OPS_CHUNK || !g->group->plan->for_gpu;
  if (g->columns <= OPS_CHUNK) return 0;
  if (ops_choose_held(g, layout)) return g->rows < OPS_FEW_ROWS_HELD;
  return has_few_rows(g) || g->group->plan->for_gpu || !ops_choose_loop(g, layout);
}

static hg_status write_rows(row_group *g);

static hg_status add_between(row_group *g) {
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    row_reduction *r = &g->reductions[i];
    uint8_t type = ops_at(g->group->computation, r->value)->type;
    HG_TRY(ops_add_temporary(g->group->plan, type, g->rows, &r->between));
  }
  return HG_OK;
}

/* Writes the stages from `first` on, before `end`. */
static hg_status write_some(row_group *own, const row_group *g, uint32_t first, uint32_t end) {
  HG_TRY(ops_row_group_of_stages(own, g, first, end));
  if (end < g->stage_count) return write_rows(own);
  for (int full = 0; full < 2; full++) {
    int wanted = 0;
    for (uint32_t i = 0; i < own->result_count; i++) wanted |= own->results[i].is_full == full;
    if (!wanted) continue;
    ops_layout layout = {.lanes = 1};
    int by_chunks = full && !ops_columns_lie_apart(g) && ops_choose_behind(own, &layout);
    row_writer write = by_chunks ? ops_write_behind : full ? ops_write_elements : ops_write_singles;
    HG_TRY(ops_block_write(own, "behind_rows", &layout, write, NULL));
  }
  return HG_OK;
}

/* How many stages the first launch has: on a GPU all but the last one, which has rows as results, if a block holds what
 * they reduce. */
static hg_status count_together(row_group *own, const row_group *g, uint32_t *count) {
  ops_layout layout;
  *count = 1;
  if (!g->group->plan->for_gpu || !ops_row_has_full_results(g) || g->stage_count < 3) return HG_OK;
  hg_status status = ops_row_group_of_stages(own, g, 0, g->stage_count - 1);
  if (status == HG_OK && (ops_choose_shared(own, &layout) || !choose_stages(own, &layout))) *count = g->stage_count - 1;
  ops_row_group_end(own);
  return status;
}

static hg_status write_stages(row_group *g) {
  const hg_allocator *allocator = &g->group->plan->allocator;
  row_group *own = hg_allocate(allocator, 1, sizeof *own);
  if (own == NULL) return hg_fail_memory("a group that reduces", sizeof *own);
  hg_status status = add_between(g);
  uint32_t first = 0, end = 1;
  if (status == HG_OK) status = count_together(own, g, &end);
  for (; first < g->stage_count && status == HG_OK; first = end++) {
    status = write_some(own, g, first, end);
    ops_row_group_end(own);
  }
  hg_release(allocator, own);
  return status;
}

/* Adds the steps that fold parts of rows. */
static hg_status fold_parts(const row_group *g, const row_parts *parts) {
  row_group *rest = hg_allocate(&g->group->plan->allocator, 1, sizeof *rest);
  if (rest == NULL) return hg_fail_memory("a group that reduces", sizeof *rest);
  hg_status status = ops_row_group_of_parts(rest, g, parts);
  if (status == HG_OK) status = write_rows(rest);
  ops_row_group_end(rest);
  hg_release(&g->group->plan->allocator, rest);
  return status;
}

typedef struct row_layout {
  const char *name;
  int (*choose)(const row_group *g, ops_layout *layout);
  row_writer write; /* NULL: each stage is written by itself */
} row_layout;

static const row_layout layouts[] = {
#define OPS_LAYOUT(id, name, choose, write, places, measured) {name, choose, write},
#include "ops/write/layouts.def"
#undef OPS_LAYOUT
};

static hg_status write_block(row_group *g, const row_layout *by, const ops_layout *layout, row_parts *parts) {
  ops_plan *plan = g->group->plan;
  hg_rows rows;
  HG_TRY(ops_block_write(g, by->name, layout, by->write, parts));
  if (!ops_find_extremes(g, layout, parts, &rows)) return HG_OK;
  return ops_tell_rows(plan, &rows, (ops_step *)plan->made.data + plan->made.count - 1);
}

/* Chunks that the layout leaves out have a launch of their own. */
static hg_status write_chunks(row_group *g, const row_layout *by, ops_layout *layout, row_parts *parts) {
  uint64_t chunks = ops_chunks(g->columns);
  memset(parts, 0, sizeof *parts);
  HG_TRY(write_block(g, by, layout, parts));
  if (layout->chunk_blocks == 0 || layout->chunk_blocks >= chunks) return HG_OK;
  layout->first_chunk = layout->chunk_blocks;
  layout->chunk_blocks = chunks - layout->first_chunk;
  return write_block(g, by, layout, parts);
}

/* The place of an extreme: chunks have their extremes only, at the speed of max; the first chunk that has the row's is
 * found as the place among them, and gone over again. */
static hg_status write_search(row_group *g, const row_layout *by, ops_layout *layout) {
  row_reduction *r = &g->reductions[0];
  const row_reduction own = *r;
  int is_stage = g->is_stage;
  uint8_t type = ops_at(g->group->computation, r->value)->type;
  row_parts parts;
  term_id number;
  r->reduce = own.reduce == OPS_ARGMAX ? OPS_MAX : OPS_MIN;
  hg_status status = write_chunks(g, by, layout, &parts);
  *r = own;
  HG_TRY(status);
  HG_TRY(ops_add_temporary(g->group->plan, type, g->rows, &r->between));
  parts.has_no_places = g->is_stage = 1;
  status = fold_parts(g, &parts);
  g->is_stage = is_stage;
  HG_TRY(status);
  HG_TRY(ops_load_of(&g->terms, r->between, (atlas_type)type, &g->row_number, &number));
  layout->first_chunk = layout->chunk_blocks = 0;
  return ops_block_write(g, "search", layout, ops_write_search, NULL);
}

static hg_status write_by(row_group *g, const row_layout *by, ops_layout *layout) {
  row_parts parts;
  if (by->write == NULL) return write_stages(g);
  if (by->write == ops_write_parts && ops_row_searches_chunk(g)) return write_search(g, by, layout);
  HG_TRY(write_chunks(g, by, layout, &parts));
  return parts.count > 0 ? fold_parts(g, &parts) : HG_OK;
}

static hg_status write_rows(row_group *g) {
  ops_plan *plan = g->group->plan;
  for (uint32_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    size_t made = plan->made.count;
    ops_layout layout;
    if (!layouts[i].choose(g, &layout)) continue;
    hg_status status = write_by(g, &layouts[i], &layout);
    if (status != HG_UNSUPPORTED || g->chunk != OPS_CHUNK) return status; /* the others know no other chunks */
    ops_drop_steps(plan, made);
  }
  return hg_fail(HG_UNSUPPORTED, "reductions in one launch: rows of %llu elements", (unsigned long long)g->columns);
}

hg_status ops_write_rows(const ops_group *group) {
  row_group *g = hg_allocate_unset(&group->plan->allocator, 1, sizeof *g);
  if (g == NULL) return hg_fail_memory("a group that reduces", sizeof *g);
  hg_status status = ops_row_group_begin(g, group);
  if (status == HG_OK) status = write_rows(g);
  ops_row_group_end(g);
  hg_release(&group->plan->allocator, g);
  return status;
}
