/* row_moves.c - tells a device of a program that takes whole rows by index, adds rows up, or makes the lists for that
 * (hg_rows): the device may know a shorter way. */
#include "ops/write/row_moves.h"
#include "ops/graph/ops_tuning.h"

#include <string.h>

/* Finds rows whose elements are consecutive, ordered by all coordinates below `rank` except `axis`; `number` is the
 * coordinate that numbers the rows. */
static int finds_rows(const ops_shape *shape, uint32_t axis, uint32_t number, const ops_form *form, hg_rows_of *out) {
  int64_t dense = 1;
  if (form->constant < 0 || form->factor[number] < 0) return 0;
  for (uint32_t i = OPS_MAX_VARIABLES; i-- > 0;) {
    if (i == number) continue;
    if (i >= shape->rank || i == axis) {
      if (form->factor[i] != 0) return 0;
      continue;
    }
    if (shape->size[i] != 1 && form->factor[i] != dense) return 0;
    dense *= (int64_t)shape->size[i];
  }
  out->first = (uint64_t)form->constant;
  out->stride = (uint64_t)form->factor[number];
  return 1;
}

/* The same for the coordinates behind an outer one, if there is one (is_outer), which numbers groups of rows. */
static int finds_groups(const ops_shape *shape, uint32_t is_outer, const ops_form *form, hg_rows_of *out) {
  ops_form inner = *form;
  out->outer = is_outer ? (uint64_t)form->factor[0] : 0;
  if (is_outer) inner.factor[0] = 0;
  return form->factor[0] >= 0 && finds_rows(shape, is_outer, is_outer, &inner, out);
}

static int finds_load(const ops_shape *shape, uint32_t axis, uint32_t number, const ops_term *term, hg_rows_of *out) {
  out->slot = term->storage; /* until the program exists */
  return term->kind == TERM_LOAD && finds_rows(shape, axis, number, &term->form, out);
}

static void tell_bounds(ops_bounds bounds, const ops_term *index, hg_rows *out) {
  out->index_type = index->type;
  out->wraps = bounds == OPS_WRAP, out->clamps = bounds == OPS_CLAMP;
}

int ops_find_taken(const ops_terms *t, term_id root, uint32_t storage, const ops_form *place, hg_rows *out) {
  const ops_term *gather = ops_term_at(t, root);
  uint32_t is_outer = t->space.rank == 3;
  memset(out, 0, sizeof *out);
  if (t->group->plan->for_gpu || t->space.rank < 2 || t->space.rank > 3) return 0;
  if (gather->kind != TERM_GATHER || gather->stride < 0 || gather->type == ATLAS_bool) return 0;
  const ops_term *index = ops_term_at(t, gather->input[0]);
  ops_shape space = t->space, row = t->space; /* rows of elements, and rows with one index */
  out->kind = HG_ROWS_TAKEN;
  out->type = gather->type;
  out->groups = is_outer ? space.size[0] : 1, out->count = space.size[is_outer], out->length = space.size[is_outer + 1];
  if (is_outer) space.size[0] = row.size[0] = 1;
  row.rank--;
  out->extent = gather->extent, out->stride = (uint64_t)gather->stride;
  out->x.slot = gather->storage, out->y.slot = storage, out->index.slot = index->storage;
  tell_bounds((ops_bounds)gather->bounds, index, out);
  return out->length * atlas_bytes((atlas_type)out->type) >= OPS_ROW_MOVE_BYTES && index->kind == TERM_LOAD &&
         finds_groups(&row, is_outer, &index->form, &out->index) &&
         finds_groups(&space, is_outer, &gather->form, &out->x) && finds_groups(&space, is_outer, place, &out->y);
}

int ops_find_listed(const ops_terms *t, const ops_listed *l, hg_rows *out) {
  static const ops_shape none = {.rank = 0};
  const ops_term *index = ops_term_at(t, l->index);
  memset(out, 0, sizeof *out);
  out->kind = HG_ROWS_LISTED;
  out->type = ATLAS_u32;
  out->groups = 1;
  out->count = l->sources, out->extent = l->places;
  out->counted = l->counted, out->begun = l->begun, out->listed = l->listed;
  tell_bounds(l->bounds, index, out);
  return !t->group->plan->for_gpu && finds_load(&none, 0, l->axis, index, &out->index);
}

int ops_find_added(const ops_terms *t, const ops_added *a, hg_rows *out) {
  const ops_term *base = ops_term_at(t, a->base), *source = ops_term_at(t, a->source);
  memset(out, 0, sizeof *out);
  if (t->group->plan->for_gpu) return 0;
  out->kind = HG_ROWS_ADDED;
  out->groups = 1;
  out->type = source->type;
  out->count = a->shape->size[a->axis], out->extent = a->sources;
  out->length = 1;
  for (uint32_t i = 0; i < a->shape->rank; i++) out->length *= i == a->axis ? 1 : a->shape->size[i];
  out->y.slot = a->storage;
  out->counted = a->counted, out->begun = a->begun, out->listed = a->listed;
  if (base->kind == TERM_CONSTANT) {
    out->base.slot = UINT64_MAX;
    out->base_bits = base->bits & atlas_mask((atlas_type)out->type);
  } else if (!finds_load(a->shape, a->axis, a->axis, base, &out->base)) return 0;
  return finds_load(a->shape, a->axis, a->shape->rank, source, &out->x) &&
         finds_rows(a->shape, a->axis, a->axis, a->place, &out->y);
}

/* Finds the symbol of a storage in the step's program. */
static int finds_slot(const ops_step *step, uint64_t *slot) {
  if (*slot == UINT64_MAX) return 1;
  for (uint32_t i = 0; i < step->binding_count; i++) {
    if (step->bindings[i].storage != *slot) continue;
    *slot = step->bindings[i].slot;
    return 1;
  }
  return 0;
}

hg_status ops_tell_rows(const ops_plan *plan, const hg_rows *rows, ops_step *step) {
  hg_rows told = *rows;
  int has_index = told.kind != HG_ROWS_ADDED, has_lists = told.kind != HG_ROWS_TAKEN,
      has_rows = told.kind != HG_ROWS_LISTED;
  if (has_index && !finds_slot(step, &told.index.slot)) return HG_OK;
  if (has_rows && !(finds_slot(step, &told.x.slot) && finds_slot(step, &told.y.slot))) return HG_OK;
  if (!has_index && !finds_slot(step, &told.base.slot)) return HG_OK;
  uint64_t *lists[3] = {&told.counted, &told.begun, &told.listed};
  for (int i = 0; i < 3 && has_lists; i++)
    if (!finds_slot(step, lists[i])) return HG_OK;
  step->rows = hg_allocate(&plan->allocator, 1, sizeof told);
  if (step->rows == NULL) return hg_fail_memory("a launch", sizeof told);
  memcpy(step->rows, &told, sizeof told);
  return HG_OK;
}
