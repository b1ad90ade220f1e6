/* row_moves.c - tells a device of a program that copies rows, takes them by index, adds them up, or makes the lists for
 * that (hg_rows): the device may know a shorter way. */
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

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* A part of the space, from `low` to below `high` along each coordinate. */
typedef struct box {
  int64_t low[HG_MAX_RANK], high[HG_MAX_RANK];
} box;

typedef struct copies {
  const ops_terms *t;
  uint32_t count, storage;
  uint8_t type;
  const ops_form *place;
  hg_rows *out;
  uint64_t pieces; /* elements side by side in x, and near each other in y */
} copies;

/* Writes a form by the space's coordinates, as it is in the box, and finds its least and greatest value there. 0 if it
 * is not linear. */
static int finds_range(const ops_terms *t, const box *b, ops_form *form, int64_t *least, int64_t *most) {
  for (uint32_t v = t->variable_count; v-- > t->space.rank;) {
    int64_t factor = form->factor[v];
    ops_form of = t->derived[v].of;
    if (factor == 0) continue;
    if (t->derived[v].kind != OPS_CLAMPED || !finds_range(t, b, &of, least, most)) return 0;
    if (*least < 0 || *most >= (int64_t)t->derived[v].size) return 0;
    form->factor[v] = 0;
    form->constant += factor * of.constant;
    for (uint32_t d = 0; d < t->space.rank; d++) form->factor[d] += factor * of.factor[d];
  }
  *least = *most = form->constant;
  for (uint32_t d = 0; d < t->space.rank; d++) {
    int64_t low = form->factor[d] * b->low[d], high = form->factor[d] * (b->high[d] - 1);
    *least += low < high ? low : high, *most += low < high ? high : low;
  }
  return 1;
}

/* Coordinates of a copy, outermost first: how many elements, and how far they are apart in x and in y. */
typedef struct extents {
  uint32_t count;
  uint64_t size[HG_MAX_RANK], x[HG_MAX_RANK], y[HG_MAX_RANK];
} extents;

/* Adds a copy of at most three coordinates. */
static int add_copy(copies *o, hg_rows_of x, hg_rows_of y, const extents *e) {
  uint32_t last = e->count - 1;
  if (o->count == HG_MOST_COPIES) return 0;
  hg_rows *r = &o->out[o->count++];
  memset(r, 0, sizeof *r);
  r->kind = HG_ROWS_COPIED;
  x.gap = e->x[last] - 1, y.gap = e->y[last] - 1;
  if (last > 0) x.stride = e->x[last - 1], y.stride = e->y[last - 1];
  if (last > 1) x.outer = e->x[0], y.outer = e->y[0];
  r->x = x, r->y = y;
  r->groups = last > 1 ? e->size[0] : 1, r->count = last > 0 ? e->size[last - 1] : 1, r->length = e->size[last];
  int is_one = x.gap == 0 && e->y[last] * atlas_bytes((atlas_type)o->type) <= OPS_ROW_MOVE_BYTES;
  o->pieces += r->groups * r->count * (is_one ? 1 : r->length);
  return 1;
}

/* Adds copies of the coordinates. Of four, the smaller of the outer ones has a copy for each of its values. One alone
 * becomes rows, which threads share, and what is left of it. */
static int add_copies(copies *o, hg_rows_of x, hg_rows_of y, const extents *e) {
  extents inner = *e;
  if (e->count > 4 || e->size[0] == 0) return e->size[0] == 0;
  if (e->count == 1 && e->size[0] > OPS_COPIED_ROW) {
    uint64_t rows = e->size[0] / OPS_COPIED_ROW, whole = rows * OPS_COPIED_ROW;
    extents cut = {2, {rows, OPS_COPIED_ROW}, {OPS_COPIED_ROW * e->x[0], e->x[0]}, {OPS_COPIED_ROW * e->y[0], e->y[0]}};
    if (!add_copy(o, x, y, &cut)) return 0;
    inner.size[0] -= whole;
    x.first += whole * e->x[0], y.first += whole * e->y[0];
    return add_copies(o, x, y, &inner);
  }
  if (e->count < 4) return add_copy(o, x, y, e);
  uint32_t each = e->size[1] < e->size[0];
  for (uint32_t i = each; i < 3; i++)
    inner.size[i] = e->size[i + 1], inner.x[i] = e->x[i + 1], inner.y[i] = e->y[i + 1];
  inner.count = 3;
  int is_done = 1;
  for (uint64_t i = 0; i < e->size[each] && is_done; i++, x.first += e->x[each], y.first += e->y[each])
    is_done = add_copy(o, x, y, &inner);
  return is_done;
}

static int add_box(copies *o, const ops_term *load, const box *b) {
  ops_form from = load->form, to = *o->place;
  extents e = {.count = 0};
  int64_t least, least_to, most;
  if (!finds_range(o->t, b, &from, &least, &most) || !finds_range(o->t, b, &to, &least_to, &most)) return 0;
  for (uint32_t d = 0; d < o->t->space.rank; d++) {
    uint64_t many = (uint64_t)(b->high[d] - b->low[d]), x = (uint64_t)from.factor[d], y = (uint64_t)to.factor[d];
    if (from.factor[d] < 0 || to.factor[d] < 0) return 0;
    if (many == 1) continue;
    if (x == 0 || y == 0) return 0;
    int is_one = e.count > 0 && e.x[e.count - 1] == many * x && e.y[e.count - 1] == many * y;
    uint32_t at = e.count - (uint32_t)is_one;
    e.size[at] = is_one ? e.size[at] * many : many, e.x[at] = x, e.y[at] = y;
    e.count = at + 1;
  }
  if (e.count == 0) e = (extents){1, {1}, {1}, {1}};
  hg_rows_of x = {.slot = load->storage, .first = (uint64_t)least};
  hg_rows_of y = {.slot = o->storage, .first = (uint64_t)least_to};
  return add_copies(o, x, y, &e);
}

/* Copies that write the term's values in a box. Where the term is a choice by a coordinate, the box is cut. */
static int finds_copies(copies *o, term_id id, box b) {
  const ops_term *term = ops_term_at(o->t, id);
  uint32_t d = 0;
  int64_t least, most;
  for (uint32_t i = 0; i < o->t->space.rank; i++)
    if (b.low[i] >= b.high[i]) return 1;
  if (term->kind == TERM_LOAD) return add_box(o, term, &b);
  if (term->kind != TERM_POINTWISE || term->op != ATLAS_OP_sel) return 0;
  const ops_term *range = ops_term_at(o->t, term->input[0]);
  ops_form form = range->form;
  if (range->kind != TERM_RANGE || !finds_range(o->t, &b, &form, &least, &most)) return 0;
  while (d + 1 < o->t->space.rank && form.factor[d] == 0) d++;
  int64_t begin = -form.constant, end = begin + (int64_t)range->extent, low = b.low[d], high = b.high[d];
  form.constant = 0, form.factor[d]--;
  for (uint32_t i = 0; i < o->t->space.rank; i++)
    if (form.factor[i] != 0) return 0; /* not a coordinate and a constant */
  begin = begin < low ? low : begin > high ? high : begin;
  end = end < begin ? begin : end > high ? high : end;
  b.high[d] = begin;
  if (!finds_copies(o, term->input[2], b)) return 0;
  b.low[d] = begin, b.high[d] = end;
  if (!finds_copies(o, term->input[1], b)) return 0;
  b.low[d] = end, b.high[d] = high;
  return finds_copies(o, term->input[2], b);
}

uint32_t ops_find_copied(const ops_terms *t, term_id root, uint32_t storage, const ops_form *place, hg_rows *out) {
  copies o = {.t = t, .storage = storage, .type = ops_term_at(t, root)->type, .place = place, .out = out};
  box all = {.low = {0}};
  if (t->group->plan->for_gpu || o.type == ATLAS_bool || t->space.rank == 0) return 0;
  for (uint32_t d = 0; d < t->space.rank; d++) all.high[d] = (int64_t)t->space.size[d];
  if (!finds_copies(&o, root, all) || o.pieces * OPS_COPIED_PIECE > 2 * ops_count(&t->space)) return 0;
  for (uint32_t i = 0; i < o.count; i++) out[i].type = o.type, out[i].more = o.count - 1 - i;
  return o.count;
}

/* ---- rows by number ---------------------------------------------------------------------------------------------- */

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

/* Finds all symbols that rows of this kind have. */
static int finds_slots(const ops_step *step, hg_rows *told) {
  int is_added = told->kind == HG_ROWS_ADDED, has_index = told->kind == HG_ROWS_TAKEN || told->kind == HG_ROWS_LISTED;
  if (has_index && !finds_slot(step, &told->index.slot)) return 0;
  if (told->kind != HG_ROWS_LISTED && !(finds_slot(step, &told->x.slot) && finds_slot(step, &told->y.slot))) return 0;
  if (is_added && !finds_slot(step, &told->base.slot)) return 0;
  return !(is_added || told->kind == HG_ROWS_LISTED) ||
         (finds_slot(step, &told->counted) && finds_slot(step, &told->begun) && finds_slot(step, &told->listed));
}

hg_status ops_tell_rows(const ops_plan *plan, const hg_rows *rows, ops_step *step) {
  uint64_t count = rows->more + UINT64_C(1);
  hg_rows *told = hg_allocate(ops_lasting(plan), count, sizeof *told);
  if (told == NULL) return hg_fail_memory("a launch", count * sizeof *told);
  memcpy(told, rows, count * sizeof *told);
  for (uint64_t i = 0; i < count; i++) {
    if (finds_slots(step, &told[i])) continue;
    hg_release(ops_lasting(plan), told);
    return HG_OK;
  }
  step->rows = told;
  return HG_OK;
}
