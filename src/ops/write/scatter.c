/* scatter.c - tensors into which elements are put at indices, or combined with what is there.
 *
 * Putting: if several sources have one destination the last one remains. Each source notes its number + 1 at its
 * destination, where the largest remains (atomically, so that any order gives the same result), and the source that
 * finds its own number writes.
 *
 * Adding and multiplying: see scatter_add.c; the smallest or largest: scatter_extremes.c. */
#include "ops/write/row_moves.h"
#include "ops/write/scatter.h"

#include <string.h>

/* ---- what launches share ----------------------------------------------------------------------------------------- */

hg_status ops_scatter_keep(scatter *s, uint32_t k, atlas_type type, uint64_t count) {
  return ops_add_temporary(s->group->plan, (uint8_t)type, count, &s->kept[k]);
}

void ops_scatter_emit(scatter_launch *l, atlas_op op, atlas_type type, uint16_t to, atlas_operand a, atlas_operand b) {
  atlas_emit(l->code.builder, op, type, 3, atlas_reg(to), a, b);
}

atlas_operand ops_scatter_scalar(scatter_launch *l, uint64_t value) {
  return ops_scalar_of(&l->code, ATLAS_i64, value);
}

uint16_t ops_scatter_number(scatter_launch *l, const ops_form *form) {
  atlas_operand value = ops_form_value(&l->code, form);
  uint16_t to = ops_register(&l->code);
  atlas_emit(l->code.builder, ATLAS_OP_mov, ATLAS_i64, 2, atlas_reg(to), value);
  return to;
}

/* Puts the current source's index, as the destination's number, into the last coordinate's register; IS_THERE says
 * whether the destination exists. */
void ops_scatter_find(scatter_launch *l) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  uint16_t place = code->variable[s->rank], other = ops_register(code);
  atlas_type type = (atlas_type)ops_at(s->group->computation, s->node->input[1])->type;
  uint16_t value = ops_value(code, l->index);
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
}

/* The address of a destination, or one that faults if there is none. */
uint16_t ops_scatter_checked(scatter_launch *l, const ops_form *form) {
  uint16_t at = ops_scatter_number(l, form);
  atlas_emit(l->code.builder, ATLAS_OP_sel, ATLAS_i64, 4, atlas_reg(at), atlas_pred(IS_THERE), atlas_reg(at),
             atlas_int_const(ATLAS_i64, INT64_MAX));
  return at;
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

uint16_t ops_scatter_own_number(scatter_launch *l) {
  uint16_t own = ops_register(&l->code);
  atlas_emit2(l->code.builder, ATLAS_OP_cvt, l->s->number, ATLAS_i64, atlas_reg(own),
              atlas_reg(l->code.variable[l->s->axis]));
  return own;
}

void ops_scatter_load(scatter_launch *l, uint32_t k, uint16_t to, uint16_t at) {
  atlas_emit(l->code.builder, ATLAS_OP_ldg, l->s->number, 2, atlas_reg(to),
             atlas_mem_reg(ops_buffer_of(&l->code, l->s->kept[k]), at, 0));
}

void ops_scatter_store(scatter_launch *l, uint32_t k, uint16_t at, uint16_t value) {
  atlas_emit(l->code.builder, ATLAS_OP_stg, l->s->number, 2,
             atlas_mem_reg(ops_buffer_of(&l->code, l->s->kept[k]), at, 0), atlas_reg(value));
}

/* ---- a launch ---------------------------------------------------------------------------------------------------- */

/* Adds terms for the requested inputs: at the current element for those of its shape, at the other number for the
 * others. */
static hg_status add_terms(scatter_launch *l, const scatter_work *w) {
  const scatter *s = l->s;
  term_id *terms[] = {&l->base, &l->index, &l->source};
  for (uint32_t i = 0; i < 3; i++) {
    int is_own = w->shape == (i == 0 ? &s->to : &s->from);
    if (w->inputs >> i & 1) HG_TRY(ops_term_of(&l->terms, s->node->input[i], is_own ? l->own : l->other, terms[i]));
  }
  for (uint32_t k = 0; k < MOST_KEPT; k++)
    if (w->reads >> k & 1) HG_TRY(ops_reads(&l->terms, s->kept[k]));
  return HG_OK;
}

/* Splits the launch into a lane for each element along the axes, by rows if possible. Returns how many lanes; 0: it
 * consists of blocks. */
static uint64_t split(scatter_launch *l, const scatter_work *w) {
  const ops_shape *shape = w->shape;
  uint32_t last = shape->rank - 1, block = w->by_rows ? ops_row_blocks_lanes(&l->terms, shape) : 0;
  uint32_t axes = w->axes & ((1u << shape->rank) - 1);
  uint64_t lanes = 1;
  if (last == l->s->axis || (l->s->key >> last & 1) != 0) block = 0;
  if (block != 0) axes &= ~(1u << last);
  for (uint32_t i = 0; i < shape->rank; i++) lanes *= axes >> i & 1 ? shape->size[i] : 1;
  if (block == 0) {
    ops_split(&l->code, shape, axes, shape->rank + 1, lanes, atlas_reg(ATLAS_REG_LANE), ATLAS_u64);
    return lanes;
  }
  ops_row_blocks begun = ops_row_blocks_begin(&l->code, 1, lanes, shape->size[last], block);
  l->code.variable[last] = begun.column;
  ops_split(&l->code, shape, axes, shape->rank + 1, lanes, atlas_reg(begun.row), ATLAS_i64);
  return 0;
}

/* A lane may go through all sources twice, or fold them all. */
static hg_status write_program(scatter_launch *l, const scatter_work *w) {
  enum { BACK_EDGES = 8 /* the most for a source */ };
  const scatter *s = l->s;
  HG_TRY(ops_code_begin_step(&l->code, &l->terms, w->name, "scatter"));
  ops_step *step = l->code.step;
  l->code.index_type = ATLAS_i64;
  for (uint32_t k = 0; k < MOST_KEPT; k++)
    if (w->writes >> k & 1) l->code.partials[l->code.partial_count++] = s->kept[k];
  step->lanes = w->lanes != 0 ? w->lanes : split(l, w);
  if (s->sources > HG_DEFAULT_STEP_LIMIT / BACK_EDGES) step->step_limit = BACK_EDGES * s->sources;
  w->write(l);
  HG_TRY(ops_code_end(&l->code));
  hg_rows rows;
  return w->find_rows != NULL && w->find_rows(l, &rows) ? ops_tell_rows(s->group->plan, &rows, step) : HG_OK;
}

hg_status ops_scatter_launch(const scatter *s, const scatter_work *work) {
  scatter_launch l;
  ops_shape space = *work->shape;
  memset(&l, 0, sizeof l);
  l.s = s;
  space.size[space.rank++] = work->other;
  ops_terms_begin(&l.terms, s->group, &space);
  for (uint32_t i = 0; i < s->rank; i++) {
    l.own[i].factor[i] = 1;
    l.other[i].factor[i == s->axis ? s->rank : i] = 1;
  }
  hg_status status = add_terms(&l, work);
  if (status == HG_OK) status = write_program(&l, work);
  ops_terms_release(&l.terms);
  return status;
}

static void write_zeros(scatter_launch *l) {
  uint16_t zero = ops_register(&l->code);
  atlas_emit(l->code.builder, ATLAS_OP_movi, l->s->number, 2, atlas_reg(zero), atlas_bits(0));
  for (uint32_t i = 0; i < l->code.partial_count; i++)
    atlas_emit(l->code.builder, ATLAS_OP_stg, l->s->number, 2,
               atlas_mem_lane(ops_buffer_of(&l->code, l->code.partials[i]), 0), atlas_reg(zero));
}

hg_status ops_scatter_zeros(const scatter *s, uint32_t kept, uint64_t count) {
  ops_shape all = {.rank = 1, .size = {count}};
  return ops_scatter_launch(s, &(scatter_work){.name = "scatter_zeros", .shape = &all, .other = 1, .writes = kept,
                                               .lanes = count, .write = write_zeros});
}

/* ---- putting in -------------------------------------------------------------------------------------------------- */

enum { NOTED = COUNTED };

ops_form ops_scatter_dense(const scatter *s, uint32_t axis_coordinate) {
  ops_form form;
  memset(&form, 0, sizeof form);
  int64_t stride = 1;
  for (uint32_t i = s->rank; i-- > 0; stride *= (int64_t)s->to.size[i])
    form.factor[i == s->axis ? axis_coordinate : i] = stride;
  return form;
}

/* The result's place: the axis by its own coordinate, or by the other one. */
ops_form ops_scatter_target(const scatter_launch *l, const ops_form *index) {
  return ops_address((const ops_storage *)l->s->group->plan->storages.data + l->s->out, index);
}

static void write_base(scatter_launch *l) {
  const scatter *s = l->s;
  ops_form place = ops_scatter_target(l, l->own), number = ops_scatter_dense(s, s->axis);
  l->code.lane_form = &number;
  ops_store(&l->code, s->out, &place, (atlas_type)s->node->type, ops_value(&l->code, l->base));
  if (!s->node->reduce) {
    uint16_t zero = ops_register(&l->code);
    atlas_emit(l->code.builder, ATLAS_OP_movi, s->number, 2, atlas_reg(zero), atlas_bits(0));
    ops_store(&l->code, s->kept[NOTED], &number, s->number, zero);
  }
  l->code.lane_form = NULL;
}

/* The result becomes the base, and with putting nothing is noted yet. */
hg_status ops_scatter_base(const scatter *s) {
  return ops_scatter_launch(s, &(scatter_work){.name = "scatter_base", .shape = &s->to, .other = 1, .inputs = OF_BASE,
                                               .writes = s->node->reduce ? 0 : 1u << NOTED, .axes = ALL_AXES,
                                               .write = write_base});
}

/* Where the source's destination notes numbers; *own: the source's number, counted from 1. */
static atlas_operand find_noted(scatter_launch *l, uint16_t *own) {
  const scatter *s = l->s;
  ops_scatter_find(l);
  ops_form number = ops_scatter_dense(s, s->rank);
  uint16_t at = ops_scatter_checked(l, &number);
  *own = ops_scatter_own_number(l);
  ops_scatter_emit(l, ATLAS_OP_add, s->number, *own, atlas_reg(*own), atlas_bits(1));
  return atlas_mem_reg(ops_buffer_of(&l->code, s->kept[NOTED]), at, 0);
}

static void note(scatter_launch *l) {
  uint16_t own;
  atlas_operand memory = find_noted(l, &own);
  atlas_emit(l->code.builder, ATLAS_OP_atom_max, l->s->number, 3, (atlas_operand){0}, memory, atlas_reg(own));
}

static void put_last(scatter_launch *l) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  uint16_t own;
  atlas_operand memory = find_noted(l, &own);
  uint16_t value = ops_value(code, l->source), noted = ops_register(code);
  uint32_t done = atlas_builder_label(code->builder, NULL);
  ops_form place = ops_scatter_target(l, l->other);
  atlas_emit(code->builder, ATLAS_OP_ldg, s->number, 2, atlas_reg(noted), memory);
  ops_branch_if(code->builder, ATLAS_OP_set_ne, s->number, atlas_reg(noted), atlas_reg(own), done);
  ops_store(code, s->out, &place, (atlas_type)s->node->type, value);
  atlas_builder_place(code->builder, done);
}

/* Two passes over the sources: the first notes numbers, the second writes where a source finds its own. */
static hg_status put_in(scatter *s) {
  HG_TRY(ops_scatter_keep(s, NOTED, s->number, ops_count(&s->to)));
  HG_TRY(ops_scatter_base(s));
  scatter_work work = {.name = "scatter_order", .shape = &s->from, .other = s->places, .inputs = OF_INDEX,
                       .reads = 1u << NOTED, .writes = 1u << NOTED, .axes = ALL_AXES, .write = note};
  HG_TRY(ops_scatter_launch(s, &work));
  work.name = "scatter", work.inputs |= OF_SOURCE, work.writes = 0, work.write = put_last;
  return ops_scatter_launch(s, &work);
}

/* ---- all of it ------------------------------------------------------------------------------------------ */

/* Sums round counts up to whole chunks of chunks. */
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
  if (s.node->reduce == 0) return put_in(&s);
  if (ops_scatter_is_counted(&s)) return ops_scatter_counts(&s);
  return s.node->reduce > 1 + OPS_PRODUCT ? ops_scatter_extremes(&s) : ops_scatter_add(&s);
}
