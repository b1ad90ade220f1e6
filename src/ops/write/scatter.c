/* scatter.c - tensors with elements put in at numbers, or added there.
 *
 * Putting in: of several sources for one place the last stays. Each source notes its number + 1 at its place, the
 * largest stays noted (atomically, so that any order gives the same), and the source that finds its own writes.
 *
 * Adding: see scatter_add.c. */
#include "ops/write/scatter.h"

#include <string.h>

/* ---- what launches share ----------------------------------------------------------------------------------------- */

hg_status ops_scatter_begin(scatter_launch *l, const scatter *s, const ops_shape *shape, uint64_t other) {
  memset(l, 0, sizeof *l);
  l->s = s;
  ops_shape space = *shape;
  space.size[space.rank++] = other;
  ops_terms_begin(&l->terms, s->group, &space);
  for (uint32_t i = 0; i < s->rank; i++) {
    l->own[i].factor[i] = 1;
    l->other[i].factor[i == s->axis ? s->rank : i] = 1;
  }
  return HG_OK;
}

hg_status ops_scatter_keep(const scatter *s, atlas_type type, uint64_t count, uint32_t *storage) {
  ops_plan *plan = s->group->plan;
  ops_storage kept;
  memset(&kept, 0, sizeof kept);
  kept.kind = OPS_TEMPORARY;
  kept.type = (uint8_t)type;
  kept.shape = (ops_shape){.rank = 1, .size = {count}};
  kept.stride[0] = 1;
  kept.extent = (int64_t)count;
  *storage = (uint32_t)plan->storages.count;
  return hg_array_append(&plan->allocator, &plan->storages, &kept, 1) != NULL ? HG_OK
                                                                              : hg_fail_memory("a plan", sizeof kept);
}

/* The program may read and write what is kept. */
hg_status ops_scatter_open(scatter_launch *l, uint32_t storage, int is_read) {
  term_id unused;
  ops_form zero;
  memset(&zero, 0, sizeof zero);
  const ops_storage *kept = (const ops_storage *)l->s->group->plan->storages.data + storage;
  return is_read ? ops_load_of(&l->terms, storage, (atlas_type)kept->type, &zero, &unused) : HG_OK;
}

hg_status ops_scatter_code(scatter_launch *l, const char *name) {
  ops_step *step = ops_new_step(l->s->group->plan);
  if (step == NULL) return HG_OUT_OF_MEMORY;
  HG_TRY(ops_code_begin(&l->code, &l->terms, step, name));
  l->code.index_type = ATLAS_i64;
  return HG_OK;
}

void ops_scatter_writes(scatter_launch *l, uint32_t storage) { l->code.partials[l->code.partial_count++] = storage; }

void ops_scatter_emit(scatter_launch *l, atlas_op op, atlas_type type, uint16_t to, atlas_operand a, atlas_operand b) {
  atlas_emit(l->code.builder, op, type, 3, atlas_reg(to), a, b);
}

atlas_operand ops_scatter_scalar(scatter_launch *l, uint64_t value) {
  return ops_scalar_of(&l->code, ATLAS_i64, value);
}

/* The shape's coordinates, and the one for the other number. */
static void split(scatter_launch *l, const ops_shape *shape, uint32_t axes, uint64_t count, atlas_operand from,
                  atlas_type is) {
  ops_split(&l->code, shape, axes & ~(1u << shape->rank), shape->rank + 1, count, from, is);
}

/* The lane's number as coordinates of these axes (bits). */
void ops_scatter_split(scatter_launch *l, const ops_shape *shape, uint32_t axes) {
  uint64_t lanes = 1;
  for (uint32_t i = 0; i < shape->rank; i++) lanes *= axes >> i & 1 ? shape->size[i] : 1;
  split(l, shape, axes, lanes, atlas_reg(ATLAS_REG_LANE), ATLAS_u64);
}

/* A lane for each element; where the index is for whole rows, in blocks of a row. */
void ops_scatter_split_all(scatter_launch *l, const ops_shape *shape) {
  const scatter *s = l->s;
  uint32_t last = shape->rank - 1, lanes = ops_long_rows_lanes(&l->terms, shape);
  if (last == s->axis || (s->key >> last & 1) != 0 || lanes == 0) {
    ops_scatter_split(l, shape, UINT32_MAX);
    return;
  }
  uint64_t rows = ops_count(shape) / shape->size[last];
  ops_long_rows begun = ops_long_rows_begin(&l->code, rows, shape->size[last], lanes);
  l->code.variable[last] = begun.column;
  split(l, shape, ~(1u << last), rows, atlas_reg(begun.row), ATLAS_i64);
}

uint16_t ops_scatter_number(scatter_launch *l, const ops_form *form) {
  int owned;
  atlas_operand value = ops_form_value(&l->code, form, &owned);
  uint16_t to = ops_register(&l->code);
  atlas_emit(l->code.builder, ATLAS_OP_mov, ATLAS_i64, 2, atlas_reg(to), value);
  if (owned) ops_register_free(&l->code, value.reg);
  return to;
}

/* The index at the source in hand, as the number of its place in the last coordinate's register; IS_THERE says whether
 * there is such a place. */
void ops_scatter_find(scatter_launch *l, term_id index) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  uint16_t place = code->variable[s->rank], other = ops_register(code);
  atlas_type type = (atlas_type)ops_at(s->group->computation, s->node->input[1])->type;
  uint16_t value = ops_value(code, index);
  if (type == ATLAS_i64) atlas_emit(code->builder, ATLAS_OP_mov, ATLAS_i64, 2, atlas_reg(place), atlas_reg(value));
  else atlas_emit2(code->builder, ATLAS_OP_cvt, ATLAS_i64, type, atlas_reg(place), atlas_reg(value));
  if (s->node->bounds == OPS_WRAP) {
    ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, other, atlas_reg(place), ops_scatter_scalar(l, s->places));
    atlas_emit(code->builder, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_THERE), atlas_reg(place),
               atlas_int_const(ATLAS_i64, 0));
    atlas_emit(code->builder, ATLAS_OP_sel, ATLAS_i64, 4, atlas_reg(place), atlas_pred(IS_THERE), atlas_reg(other),
               atlas_reg(place));
  }
  if (s->node->bounds == OPS_CLAMP) {
    ops_scatter_emit(l, ATLAS_OP_min, ATLAS_i64, place, atlas_reg(place), ops_scatter_scalar(l, s->places - 1));
    ops_scatter_emit(l, ATLAS_OP_max, ATLAS_i64, place, atlas_reg(place), atlas_int_const(ATLAS_i64, 0));
  }
  atlas_emit2(code->builder, ATLAS_OP_bitcast, ATLAS_u64, ATLAS_i64, atlas_reg(other), atlas_reg(place));
  atlas_emit(code->builder, ATLAS_OP_set_lt, ATLAS_u64, 3, atlas_pred(IS_THERE), atlas_reg(other),
             ops_scalar_of(code, ATLAS_u64, s->places));
  ops_register_free(code, other);
}

/* An address of a place, or one that faults where there is no such place. */
uint16_t ops_scatter_checked(scatter_launch *l, const ops_form *form) {
  uint16_t at = ops_scatter_number(l, form);
  atlas_emit(l->code.builder, ATLAS_OP_sel, ATLAS_i64, 4, atlas_reg(at), atlas_pred(IS_THERE), atlas_reg(at),
             atlas_int_const(ATLAS_i64, INT64_MAX));
  return at;
}

/* A lane may go through all sources twice, or fold them all. */
void ops_scatter_end(scatter_launch *l, hg_status *status, uint64_t lanes) {
  enum { BACK_EDGES = 8 /* for a source, at most */ };
  ops_step *step = l->code.step;
  hg_status ended = ops_code_end(&l->code);
  if (*status == HG_OK) *status = ended;
  step->kind = "scatter";
  step->lanes = step->block[0] != 0 ? 0 : lanes;
  if (l->s->sources > HG_DEFAULT_STEP_LIMIT / BACK_EDGES) step->step_limit = BACK_EDGES * l->s->sources;
}

/* column * size + a coordinate. */
ops_form ops_scatter_in_column(const scatter *s, uint64_t size, uint32_t coordinate) {
  ops_form form;
  memset(&form, 0, sizeof form);
  int64_t stride = (int64_t)size;
  for (uint32_t i = s->rank; i-- > 0;) {
    if ((s->key >> i & 1) == 0) continue;
    form.factor[i] = stride;
    stride *= (int64_t)s->to.size[i];
  }
  if (coordinate < OPS_MAX_VARIABLES) form.factor[coordinate] = 1;
  return form;
}

void ops_scatter_load(scatter_launch *l, uint32_t k, uint16_t to, uint16_t at) {
  atlas_emit(l->code.builder, ATLAS_OP_ldg, l->s->number, 2, atlas_reg(to),
             atlas_mem_reg(ops_buffer_of(&l->code, l->s->kept[k]), at, 0));
}

void ops_scatter_store(scatter_launch *l, uint32_t k, uint16_t at, uint16_t value) {
  atlas_emit(l->code.builder, ATLAS_OP_stg, l->s->number, 2,
             atlas_mem_reg(ops_buffer_of(&l->code, l->s->kept[k]), at, 0), atlas_reg(value));
}

/* ---- putting in -------------------------------------------------------------------------------------------------- */

/* Number of a place among all, dense; the axis by a coordinate. */
static ops_form dense(const scatter *s, uint32_t axis_coordinate) {
  ops_form form;
  memset(&form, 0, sizeof form);
  int64_t stride = 1;
  for (uint32_t i = s->rank; i-- > 0; stride *= (int64_t)s->to.size[i])
    form.factor[i == s->axis ? axis_coordinate : i] = stride;
  return form;
}

/* The result is the base, and where sources are put in nothing is noted. */
hg_status ops_scatter_base(const scatter *s) {
  scatter_launch l;
  term_id base;
  HG_TRY(ops_scatter_begin(&l, s, &s->to, 1));
  hg_status status = ops_term_of(&l.terms, s->node->input[0], l.own, &base);
  if (status == HG_OK) status = ops_scatter_code(&l, "scatter_base");
  if (status == HG_OK) {
    const ops_storage *out = (const ops_storage *)s->group->plan->storages.data + s->out;
    ops_form place = ops_address(out, l.own), number = dense(s, s->axis);
    l.code.lane_form = &number;
    if (!s->node->reduce) ops_scatter_writes(&l, s->kept[0]);
    ops_want(&l.code, base);
    ops_scatter_split(&l, &s->to, UINT32_MAX);
    ops_store(&l.code, s->out, &place, (atlas_type)s->node->type, ops_value(&l.code, base));
    if (!s->node->reduce) {
      uint16_t zero = ops_register(&l.code), unused;
      atlas_emit(l.code.builder, ATLAS_OP_movi, s->number, 2, atlas_reg(zero), atlas_bits(0));
      atlas_emit(l.code.builder, ATLAS_OP_stg, s->number, 2, ops_memory(&l.code, s->kept[0], &number, &unused),
                 atlas_reg(zero));
    }
    ops_scatter_end(&l, &status, ops_count(&s->to));
  }
  ops_terms_release(&l.terms);
  return status;
}

/* A lane for each source: it notes its number, or (is_last) writes where it finds it. */
static hg_status write_sources(const scatter *s, int is_last) {
  scatter_launch l;
  term_id index, source = 0;
  HG_TRY(ops_scatter_begin(&l, s, &s->from, s->places));
  hg_status status = ops_term_of(&l.terms, s->node->input[1], l.own, &index);
  if (status == HG_OK && is_last) status = ops_term_of(&l.terms, s->node->input[2], l.own, &source);
  if (status == HG_OK) status = ops_scatter_open(&l, s->kept[0], 1);
  if (status == HG_OK) status = ops_scatter_code(&l, is_last ? "scatter" : "scatter_order");
  if (status == HG_OK) {
    ops_code *code = &l.code;
    if (!is_last) ops_scatter_writes(&l, s->kept[0]);
    ops_want(code, index);
    if (is_last) ops_want(code, source);
    ops_scatter_split(&l, &s->from, UINT32_MAX);
    ops_scatter_find(&l, index);
    ops_form number = dense(s, s->rank);
    uint16_t at = ops_scatter_checked(&l, &number), own = ops_register(code), noted = ops_register(code);
    atlas_emit2(code->builder, ATLAS_OP_cvt, s->number, ATLAS_i64, atlas_reg(own), atlas_reg(code->variable[s->axis]));
    ops_scatter_emit(&l, ATLAS_OP_add, s->number, own, atlas_reg(own), atlas_bits(1));
    atlas_operand memory = atlas_mem_reg(ops_buffer_of(code, s->kept[0]), at, 0);
    if (!is_last) {
      atlas_emit(code->builder, ATLAS_OP_atom_max, s->number, 3, (atlas_operand){0}, memory, atlas_reg(own));
    } else {
      uint16_t value = ops_value(code, source);
      uint32_t done = atlas_builder_label(code->builder, NULL);
      ops_form place = ops_address((const ops_storage *)s->group->plan->storages.data + s->out, l.other);
      atlas_emit(code->builder, ATLAS_OP_ldg, s->number, 2, atlas_reg(noted), memory);
      atlas_emit(code->builder, ATLAS_OP_set_ne, s->number, 3, atlas_pred(IS_MORE), atlas_reg(noted), atlas_reg(own));
      atlas_emit_branch(code->builder, IS_MORE, 0, done);
      ops_store(code, s->out, &place, (atlas_type)s->node->type, value);
      atlas_builder_place(code->builder, done);
    }
    ops_scatter_end(&l, &status, ops_count(&s->from));
  }
  ops_terms_release(&l.terms);
  return status;
}

static hg_status put_in(scatter *s) {
  HG_TRY(ops_scatter_keep(s, s->number, ops_count(&s->to), &s->kept[0]));
  HG_TRY(ops_scatter_base(s));
  HG_TRY(write_sources(s, 0));
  return write_sources(s, 1);
}

/* ---- all of it ------------------------------------------------------------------------------------------ */

/* Sums round numbers up to whole chunks of chunks. */
static void count_sources(scatter *s) {
  uint64_t most = s->node->reduce ? UINT32_MAX - (UINT64_C(1) << 2 * CHUNK_BITS) : UINT32_MAX;
  s->number = s->sources <= most ? ATLAS_u32 : ATLAS_u64;
  s->depth = 2;
  while (s->depth < MOST_DEPTH && s->sources > UINT64_C(1) << s->depth * CHUNK_BITS) s->depth++;
}

hg_status ops_write_scatter(const ops_group *group) {
  scatter s;
  memset(&s, 0, sizeof s);
  s.group = group;
  s.node = ops_at(group->computation, group->results[0]);
  s.rank = s.node->shape.rank, s.axis = s.node->axis;
  s.out = group->storage_of[group->results[0] - 1] - 1;
  s.to = s.node->shape;
  s.from = ops_at(group->computation, s.node->input[1])->shape;
  s.sources = s.from.size[s.axis], s.places = s.to.size[s.axis];
  count_sources(&s);
  return s.node->reduce ? ops_scatter_add(&s) : put_in(&s);
}
