/* scatter.c - tensors with elements put in at numbers, or added there.
 *
 * Putting in: of several sources for one place the last stays. Each source notes its number + 1 at its place, the
 * largest stays noted (atomically, so that any order gives the same), and the source that finds its own writes.
 *
 * Adding: old + F(the contributions in increasing order of their sources). A lane for each column of the index makes
 * lists of the sources of each place, by two runs along the axis; then a lane for each place folds them by a binary
 * counter: in chunks of 4096, values in bit-reversed order of their numbers, and the chunks in the same way. Columns
 * are counted along the axes that the index varies along: of an index for whole rows there is one. */
#include "ops/expression.h"

#include <string.h>

enum { CHUNK_BITS = 12, IS_THERE = 1, IS_MORE = 2 };

typedef struct scatter {
  const ops_group *group;
  const ops_node *node;
  uint32_t rank, axis, out;  /* out: the result's storage */
  ops_shape from, to;        /* of the sources and of the result */
  uint64_t sources, places;  /* along the axis */
  uint32_t key;              /* coordinates, but the axis, that the index varies along */
  uint64_t columns;          /* how many of them together */
  uint32_t kept[3];          /* temporaries: noted; or counted, begun and listed */
} scatter;

/* One launch. Coordinates: the shape's, then one for the other number along the axis. */
typedef struct launch {
  const scatter *s;
  ops_terms terms;
  ops_code code;
  ops_form own[HG_MAX_RANK], other[HG_MAX_RANK]; /* the axis by its own coordinate, by the last one */
} launch;

/* ---- what launches share ----------------------------------------------------------------------------------------- */

static hg_status begin(launch *l, const scatter *s, const ops_shape *shape, uint64_t other) {
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

static hg_status keep(const scatter *s, atlas_type type, uint64_t count, uint32_t *storage) {
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
static hg_status open_kept(launch *l, uint32_t storage, int is_read) {
  term_id unused;
  ops_form zero;
  memset(&zero, 0, sizeof zero);
  const ops_storage *kept = (const ops_storage *)l->s->group->plan->storages.data + storage;
  return is_read ? ops_load_of(&l->terms, storage, (atlas_type)kept->type, &zero, &unused) : HG_OK;
}

static hg_status begin_code(launch *l, ops_step *step, const char *name) {
  HG_TRY(ops_code_begin(&l->code, &l->terms, step, name));
  l->code.index_type = ATLAS_i64;
  return HG_OK;
}

static void write_kept(launch *l, uint32_t storage) { l->code.partials[l->code.partial_count++] = storage; }

static void emit(launch *l, atlas_op op, atlas_type type, uint16_t to, atlas_operand a, atlas_operand b) {
  atlas_emit(l->code.builder, op, type, 3, atlas_reg(to), a, b);
}

static atlas_operand scalar(launch *l, uint64_t value) { return ops_scalar_of(&l->code, ATLAS_i64, value); }

/* The lane's number as coordinates of these axes (bits), the last one fastest; registers for the others. */
static void split_lane(launch *l, const ops_shape *shape, uint32_t axes) {
  uint16_t rest = ops_register(&l->code);
  atlas_emit2(l->code.builder, ATLAS_OP_cvt, ATLAS_i64, ATLAS_u64, atlas_reg(rest), atlas_reg(ATLAS_REG_LANE));
  for (uint32_t i = shape->rank + 1; i-- > 0;) {
    uint16_t own = ops_register(&l->code);
    l->code.variable[i] = own;
    if (i == shape->rank || (axes >> i & 1) == 0) {
      atlas_emit(l->code.builder, ATLAS_OP_movi, ATLAS_i64, 2, atlas_reg(own), atlas_int_const(ATLAS_i64, 0));
      continue;
    }
    emit(l, ATLAS_OP_rem, ATLAS_i64, own, atlas_reg(rest), scalar(l, shape->size[i]));
    emit(l, ATLAS_OP_div, ATLAS_i64, rest, atlas_reg(rest), scalar(l, shape->size[i]));
  }
  ops_register_free(&l->code, rest);
}

static uint16_t form_register(launch *l, const ops_form *form) {
  int owned;
  atlas_operand value = ops_form_value(&l->code, form, &owned);
  uint16_t to = ops_register(&l->code);
  atlas_emit(l->code.builder, ATLAS_OP_mov, ATLAS_i64, 2, atlas_reg(to), value);
  if (owned) ops_register_free(&l->code, value.reg);
  return to;
}

/* The index at the source in hand, as the number of its place in the last coordinate's register; IS_THERE says whether
 * there is such a place. */
static void find_place(launch *l, term_id index) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  uint16_t place = code->variable[s->rank], other = ops_register(code);
  atlas_type type = (atlas_type)ops_at(s->group->computation, s->node->input[1])->type;
  uint16_t value = ops_value(code, index);
  if (type == ATLAS_i64) atlas_emit(code->builder, ATLAS_OP_mov, ATLAS_i64, 2, atlas_reg(place), atlas_reg(value));
  else atlas_emit2(code->builder, ATLAS_OP_cvt, ATLAS_i64, type, atlas_reg(place), atlas_reg(value));
  if (s->node->bounds == OPS_WRAP) {
    emit(l, ATLAS_OP_add, ATLAS_i64, other, atlas_reg(place), scalar(l, s->places));
    atlas_emit(code->builder, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_THERE), atlas_reg(place),
               atlas_int_const(ATLAS_i64, 0));
    atlas_emit(code->builder, ATLAS_OP_sel, ATLAS_i64, 4, atlas_reg(place), atlas_pred(IS_THERE), atlas_reg(other),
               atlas_reg(place));
  }
  if (s->node->bounds == OPS_CLAMP) {
    emit(l, ATLAS_OP_min, ATLAS_i64, place, atlas_reg(place), scalar(l, s->places - 1));
    emit(l, ATLAS_OP_max, ATLAS_i64, place, atlas_reg(place), atlas_int_const(ATLAS_i64, 0));
  }
  atlas_emit2(code->builder, ATLAS_OP_bitcast, ATLAS_u64, ATLAS_i64, atlas_reg(other), atlas_reg(place));
  atlas_emit(code->builder, ATLAS_OP_set_lt, ATLAS_u64, 3, atlas_pred(IS_THERE), atlas_reg(other),
             ops_scalar_of(code, ATLAS_u64, s->places));
  ops_register_free(code, other);
}

/* An address of a place, or one that faults where there is no such place. */
static uint16_t checked(launch *l, const ops_form *form) {
  uint16_t at = form_register(l, form);
  atlas_emit(l->code.builder, ATLAS_OP_sel, ATLAS_i64, 4, atlas_reg(at), atlas_pred(IS_THERE), atlas_reg(at),
             atlas_int_const(ATLAS_i64, INT64_MAX));
  return at;
}

static void finish(launch *l, ops_step *step, hg_status *status, uint64_t lanes) {
  hg_status ended = ops_code_end(&l->code);
  if (*status == HG_OK) *status = ended;
  step->kind = "scatter";
  step->lanes = lanes;
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

/* The result is the base, and nothing is noted. */
static hg_status write_base(const scatter *s, ops_step *step) {
  launch l;
  term_id base;
  HG_TRY(begin(&l, s, &s->to, 1));
  hg_status status = ops_term_of(&l.terms, s->node->input[0], l.own, &base);
  if (status == HG_OK) status = begin_code(&l, step, "scatter_base");
  if (status == HG_OK) {
    write_kept(&l, s->kept[0]);
    ops_want(&l.code, base);
    split_lane(&l, &s->to, UINT32_MAX);
    const ops_storage *out = (const ops_storage *)s->group->plan->storages.data + s->out;
    ops_form place = ops_address(out, l.own), number = dense(s, s->axis);
    ops_store(&l.code, s->out, &place, (atlas_type)s->node->type, ops_value(&l.code, base));
    uint16_t at = form_register(&l, &number), zero = ops_register(&l.code);
    atlas_emit(l.code.builder, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(zero), atlas_bits(0));
    atlas_emit(l.code.builder, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem_reg(ops_buffer_of(&l.code, s->kept[0]), at, 0),
               atlas_reg(zero));
    finish(&l, step, &status, ops_count(&s->to));
  }
  ops_terms_release(&l.terms);
  return status;
}

/* A lane for each source: it notes its number, or (is_last) writes where it finds it. */
static hg_status write_sources(const scatter *s, ops_step *step, int is_last) {
  launch l;
  term_id index, source = 0;
  HG_TRY(begin(&l, s, &s->from, s->places));
  hg_status status = ops_term_of(&l.terms, s->node->input[1], l.own, &index);
  if (status == HG_OK && is_last) status = ops_term_of(&l.terms, s->node->input[2], l.own, &source);
  if (status == HG_OK) status = open_kept(&l, s->kept[0], 1);
  if (status == HG_OK) status = begin_code(&l, step, is_last ? "scatter" : "scatter_order");
  if (status == HG_OK) {
    ops_code *code = &l.code;
    if (!is_last) write_kept(&l, s->kept[0]);
    ops_want(code, index);
    if (is_last) ops_want(code, source);
    split_lane(&l, &s->from, UINT32_MAX);
    find_place(&l, index);
    ops_form number = dense(s, s->rank);
    uint16_t at = checked(&l, &number), own = ops_register(code), noted = ops_register(code);
    atlas_emit2(code->builder, ATLAS_OP_cvt, ATLAS_u32, ATLAS_i64, atlas_reg(own), atlas_reg(code->variable[s->axis]));
    emit(&l, ATLAS_OP_add, ATLAS_u32, own, atlas_reg(own), atlas_bits(1));
    atlas_operand memory = atlas_mem_reg(ops_buffer_of(code, s->kept[0]), at, 0);
    if (!is_last) {
      atlas_emit(code->builder, ATLAS_OP_atom_max, ATLAS_u32, 3, (atlas_operand){0}, memory, atlas_reg(own));
    } else {
      uint16_t value = ops_value(code, source);
      uint32_t done = atlas_builder_label(code->builder, NULL);
      ops_form place = ops_address((const ops_storage *)s->group->plan->storages.data + s->out, l.other);
      atlas_emit(code->builder, ATLAS_OP_ldg, ATLAS_u32, 2, atlas_reg(noted), memory);
      atlas_emit(code->builder, ATLAS_OP_set_ne, ATLAS_u32, 3, atlas_pred(IS_MORE), atlas_reg(noted), atlas_reg(own));
      atlas_emit_branch(code->builder, IS_MORE, 0, done);
      ops_store(code, s->out, &place, (atlas_type)s->node->type, value);
      atlas_builder_place(code->builder, done);
    }
    finish(&l, step, &status, ops_count(&s->from));
  }
  ops_terms_release(&l.terms);
  return status;
}

static hg_status put_in(scatter *s, ops_step *steps) {
  HG_TRY(keep(s, ATLAS_u32, ops_count(&s->to), &s->kept[0]));
  HG_TRY(write_base(s, &steps[0]));
  HG_TRY(write_sources(s, &steps[1], 0));
  return write_sources(s, &steps[2], 1);
}

/* ---- adding: lists of each place's sources ----------------------------------------------------------------------- */

enum { COUNTED, BEGUN, LISTED };

/* column * size + a coordinate. */
static ops_form in_column(const scatter *s, uint64_t size, uint32_t coordinate) {
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

static hg_status write_zeros(const scatter *s, ops_step *step) {
  launch l;
  ops_shape all = {.rank = 1, .size = {s->columns * s->places}};
  HG_TRY(begin(&l, s, &all, 1));
  hg_status status = begin_code(&l, step, "scatter_zeros");
  if (status == HG_OK) {
    uint16_t at = ops_register(&l.code), zero = ops_register(&l.code);
    atlas_emit2(l.code.builder, ATLAS_OP_cvt, ATLAS_i64, ATLAS_u64, atlas_reg(at), atlas_reg(ATLAS_REG_LANE));
    atlas_emit(l.code.builder, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(zero), atlas_bits(0));
    for (uint32_t k = COUNTED; k <= BEGUN; k++) {
      write_kept(&l, s->kept[k]);
      atlas_emit(l.code.builder, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem_reg(ops_buffer_of(&l.code, s->kept[k]), at, 0),
                 atlas_reg(zero));
    }
    finish(&l, step, &status, s->columns * s->places);
  }
  ops_terms_release(&l.terms);
  return status;
}

static uint32_t begin_run(launch *l) {
  uint32_t next = atlas_builder_label(l->code.builder, NULL);
  atlas_emit(l->code.builder, ATLAS_OP_movi, ATLAS_i64, 2, atlas_reg(l->code.variable[l->s->axis]),
             atlas_int_const(ATLAS_i64, 0));
  ops_forget(&l->code, 1u << l->s->axis);
  atlas_builder_place(l->code.builder, next);
  return next;
}

static void end_run(launch *l, uint32_t next) {
  uint16_t j = l->code.variable[l->s->axis];
  emit(l, ATLAS_OP_add, ATLAS_i64, j, atlas_reg(j), atlas_int_const(ATLAS_i64, 1));
  atlas_emit(l->code.builder, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_MORE), atlas_reg(j),
             scalar(l, l->s->sources));
  atlas_emit_branch(l->code.builder, IS_MORE, 0, next);
}

static void load_kept(launch *l, uint32_t k, uint16_t to, uint16_t at) {
  atlas_emit(l->code.builder, ATLAS_OP_ldg, ATLAS_u32, 2, atlas_reg(to),
             atlas_mem_reg(ops_buffer_of(&l->code, l->s->kept[k]), at, 0));
}

static void store_kept(launch *l, uint32_t k, uint16_t at, uint16_t value) {
  atlas_emit(l->code.builder, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem_reg(ops_buffer_of(&l->code, l->s->kept[k]), at, 0),
             atlas_reg(value));
}

/* The first run counts. The second gives a place its part of the list when it meets it, from 1 on, and counts again. An
 * index out of range is a fault, and its number stands where the next part begins, or in nobody's. */
static void list_sources(launch *l, term_id index) {
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  ops_form place = in_column(l->s, l->s->places, l->s->rank),
           column = in_column(l->s, l->s->sources, OPS_MAX_VARIABLES);
  uint16_t count = ops_register(code), first = ops_register(code), free_part = ops_register(code),
           own = ops_register(code);
  uint16_t list = form_register(l, &column);
  uint32_t next = begin_run(l);
  find_place(l, index);
  uint16_t at = checked(l, &place);
  load_kept(l, COUNTED, count, at);
  emit(l, ATLAS_OP_add, ATLAS_u32, count, atlas_reg(count), atlas_bits(1));
  store_kept(l, COUNTED, at, count);
  ops_register_free(code, at);
  end_run(l, next);
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(free_part), atlas_bits(1));
  next = begin_run(l);
  find_place(l, index);
  at = checked(l, &place);
  uint32_t is_known = atlas_builder_label(b, NULL);
  load_kept(l, COUNTED, count, at);
  load_kept(l, BEGUN, first, at);
  atlas_emit(b, ATLAS_OP_set_ne, ATLAS_u32, 3, atlas_pred(IS_MORE), atlas_reg(first), atlas_bits(0));
  atlas_emit_branch(b, IS_MORE, 0, is_known);
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(first), atlas_reg(free_part));
  store_kept(l, BEGUN, at, first);
  emit(l, ATLAS_OP_add, ATLAS_u32, free_part, atlas_reg(free_part), atlas_reg(count));
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(count), atlas_bits(0));
  atlas_builder_place(b, is_known);
  uint16_t slot = ops_register(code);
  emit(l, ATLAS_OP_add, ATLAS_u32, first, atlas_reg(first), atlas_reg(count));
  atlas_emit2(b, ATLAS_OP_cvt, ATLAS_i64, ATLAS_u32, atlas_reg(slot), atlas_reg(first));
  emit(l, ATLAS_OP_add, ATLAS_i64, slot, atlas_reg(slot), atlas_reg(list));
  atlas_emit2(b, ATLAS_OP_cvt, ATLAS_u32, ATLAS_i64, atlas_reg(own), atlas_reg(code->variable[l->s->axis]));
  atlas_emit(b, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem_reg(ops_buffer_of(code, l->s->kept[LISTED]), slot, -1),
             atlas_reg(own));
  emit(l, ATLAS_OP_add, ATLAS_u32, count, atlas_reg(count), atlas_bits(1));
  store_kept(l, COUNTED, at, count);
  end_run(l, next);
}

static hg_status write_lists(const scatter *s, ops_step *step) {
  launch l;
  term_id index;
  HG_TRY(begin(&l, s, &s->from, s->places));
  hg_status status = ops_term_of(&l.terms, s->node->input[1], l.own, &index);
  for (uint32_t k = COUNTED; k <= BEGUN && status == HG_OK; k++) status = open_kept(&l, s->kept[k], 1);
  if (status == HG_OK) status = begin_code(&l, step, "scatter_lists");
  if (status == HG_OK) {
    for (uint32_t k = COUNTED; k <= LISTED; k++) write_kept(&l, s->kept[k]);
    ops_want(&l.code, index);
    split_lane(&l, &s->from, s->key);
    list_sources(&l, index);
    finish(&l, step, &status, s->columns);
  }
  ops_terms_release(&l.terms);
  return status;
}

/* ---- adding: sums ------------------------------------------------------------------------------------------------ */

/* A loop over numbers of 0 to count - 1 in bit-reversed order, and a binary counter of what they come to. */
typedef struct counter {
  uint16_t memory;            /* the local array of the levels */
  uint16_t count, bits;       /* u32: how many; the power of two at or above it */
  uint16_t turn, number, sum; /* u32: of the loop; its bits reversed; the type's */
  uint32_t next;
} counter;

static counter begin_counter(launch *l, const char *name, atlas_type type, uint16_t count) {
  ops_code *code = &l->code;
  counter c = {.memory = atlas_builder_local(code->builder, name, type, CHUNK_BITS + 1), .count = count};
  c.bits = ops_register(code), c.turn = ops_register(code), c.number = ops_register(code), c.sum = ops_register(code);
  c.next = atlas_builder_label(code->builder, NULL);
  return c;
}

static void first_turn(launch *l, counter *c) {
  atlas_builder *b = l->code.builder;
  emit(l, ATLAS_OP_sub, ATLAS_u32, c->bits, atlas_reg(c->count), atlas_bits(1));
  atlas_emit(b, ATLAS_OP_clz, ATLAS_u32, 2, atlas_reg(c->bits),
             atlas_reg(c->bits)); /* 32 - bits: how far numbers go down */
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(c->turn), atlas_bits(0));
  atlas_builder_place(b, c->next);
  atlas_emit(b, ATLAS_OP_brev, ATLAS_u32, 2, atlas_reg(c->number), atlas_reg(c->turn));
  emit(l, ATLAS_OP_shr, ATLAS_u32, c->number, atlas_reg(c->number), atlas_reg(c->bits));
}

/* sum goes into the counter; when all turns are done, it is all of them. */
static void end_turn(launch *l, counter *c, atlas_type type) {
  atlas_builder *b = l->code.builder;
  uint16_t rest = ops_register(&l->code), level = ops_register(&l->code), bit = ops_register(&l->code);
  uint16_t kept = ops_register(&l->code);
  uint32_t carry = atlas_builder_label(b, NULL), put = atlas_builder_label(b, NULL);
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(rest), atlas_reg(c->turn));
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(level), atlas_bits(0));
  atlas_builder_place(b, carry);
  emit(l, ATLAS_OP_and, ATLAS_u32, bit, atlas_reg(rest), atlas_bits(1));
  atlas_emit(b, ATLAS_OP_set_eq, ATLAS_u32, 3, atlas_pred(IS_MORE), atlas_reg(bit), atlas_bits(0));
  atlas_emit_branch(b, IS_MORE, 0, put);
  atlas_emit(b, ATLAS_OP_ldl, type, 2, atlas_reg(kept), atlas_mem_reg(c->memory, level, 0));
  emit(l, ATLAS_OP_add, type, c->sum, atlas_reg(kept), atlas_reg(c->sum));
  emit(l, ATLAS_OP_shr, ATLAS_u32, rest, atlas_reg(rest), atlas_bits(1));
  emit(l, ATLAS_OP_add, ATLAS_u32, level, atlas_reg(level), atlas_bits(1));
  atlas_emit_branch(b, -1, 0, carry);
  atlas_builder_place(b, put);
  atlas_emit(b, ATLAS_OP_stl, type, 2, atlas_mem_reg(c->memory, level, 0), atlas_reg(c->sum));
  emit(l, ATLAS_OP_add, ATLAS_u32, c->turn, atlas_reg(c->turn), atlas_bits(1));
  emit(l, ATLAS_OP_sub, ATLAS_u32, bit, atlas_bits(32), atlas_reg(c->bits));
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(rest), atlas_bits(1));
  emit(l, ATLAS_OP_shl, ATLAS_u32, rest, atlas_reg(rest), atlas_reg(bit));
  atlas_emit(b, ATLAS_OP_set_lt, ATLAS_u32, 3, atlas_pred(IS_MORE), atlas_reg(c->turn), atlas_reg(rest));
  atlas_emit_branch(b, IS_MORE, 0, c->next);
  ops_register_free(&l->code, rest);
  ops_register_free(&l->code, level);
  ops_register_free(&l->code, bit);
  ops_register_free(&l->code, kept);
}

/* The sum is the identity (-0 of floats) where the number is beyond the count; else what comes up to the label. */
static uint32_t if_there(launch *l, counter *c, atlas_type type) {
  atlas_builder *b = l->code.builder;
  uint32_t absent = atlas_builder_label(b, NULL);
  uint64_t identity = atlas_is_float(type) ? UINT64_C(1) << (8 * atlas_bytes(type) - 1) : 0;
  atlas_emit(b, ATLAS_OP_movi, type, 2, atlas_reg(c->sum), atlas_bits(identity));
  atlas_emit(b, ATLAS_OP_set_lt, ATLAS_u32, 3, atlas_pred(IS_THERE), atlas_reg(c->number), atlas_reg(c->count));
  atlas_emit_branch(b, IS_THERE, 1, absent);
  return absent;
}

/* F of the listed sources' values, in sum. */
static void sum_listed(launch *l, term_id source, uint16_t count, uint16_t list, uint16_t sum) {
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  atlas_type type = (atlas_type)l->s->node->type;
  uint16_t chunks = ops_register(code), own = ops_register(code), start = ops_register(code), at = ops_register(code);
  emit(l, ATLAS_OP_add, ATLAS_u32, chunks, atlas_reg(count), atlas_bits((1u << CHUNK_BITS) - 1));
  emit(l, ATLAS_OP_shr, ATLAS_u32, chunks, atlas_reg(chunks), atlas_bits(CHUNK_BITS));
  counter outer = begin_counter(l, "chunks", type, chunks), inner = begin_counter(l, "values", type, own);
  first_turn(l, &outer);
  uint32_t no_chunk = if_there(l, &outer, type);
  emit(l, ATLAS_OP_shl, ATLAS_u32, start, atlas_reg(outer.number), atlas_bits(CHUNK_BITS));
  emit(l, ATLAS_OP_sub, ATLAS_u32, own, atlas_reg(count), atlas_reg(start));
  emit(l, ATLAS_OP_min, ATLAS_u32, own, atlas_reg(own), atlas_bits(1u << CHUNK_BITS));
  first_turn(l, &inner);
  uint32_t no_value = if_there(l, &inner, type);
  emit(l, ATLAS_OP_add, ATLAS_u32, at, atlas_reg(inner.number), atlas_reg(start));
  uint16_t wide = ops_register(code), j = code->variable[l->s->rank];
  atlas_emit2(b, ATLAS_OP_cvt, ATLAS_i64, ATLAS_u32, atlas_reg(wide), atlas_reg(at));
  emit(l, ATLAS_OP_add, ATLAS_i64, wide, atlas_reg(wide), atlas_reg(list));
  load_kept(l, LISTED, at, wide);
  atlas_emit2(b, ATLAS_OP_cvt, ATLAS_i64, ATLAS_u32, atlas_reg(j), atlas_reg(at));
  ops_forget(code, UINT32_MAX);
  atlas_emit(b, ATLAS_OP_mov, type, 2, atlas_reg(inner.sum), atlas_reg(ops_value(code, source)));
  ops_forget(code, UINT32_MAX); /* the value is not there behind the branch */
  atlas_builder_place(b, no_value);
  end_turn(l, &inner, type);
  atlas_emit(b, ATLAS_OP_mov, type, 2, atlas_reg(outer.sum), atlas_reg(inner.sum));
  atlas_builder_place(b, no_chunk);
  end_turn(l, &outer, type);
  atlas_emit(b, ATLAS_OP_mov, type, 2, atlas_reg(sum), atlas_reg(outer.sum));
}

static void add_to_base(launch *l, term_id base, term_id source) {
  const scatter *s = l->s;
  ops_code *code = &l->code;
  atlas_type type = (atlas_type)s->node->type;
  ops_form place = in_column(s, s->places, s->axis), column = in_column(s, s->sources, OPS_MAX_VARIABLES);
  uint16_t at = form_register(l, &place), list = form_register(l, &column), wide = ops_register(code);
  uint16_t count = ops_register(code), first = ops_register(code), sum = ops_register(code),
           result = ops_register(code);
  load_kept(l, COUNTED, count, at);
  load_kept(l, BEGUN, first, at);
  atlas_emit2(code->builder, ATLAS_OP_cvt, ATLAS_i64, ATLAS_u32, atlas_reg(wide), atlas_reg(first));
  emit(l, ATLAS_OP_add, ATLAS_i64, list, atlas_reg(list), atlas_reg(wide));
  emit(l, ATLAS_OP_add, ATLAS_i64, list, atlas_reg(list), atlas_int_const(ATLAS_i64, -1));
  atlas_emit(code->builder, ATLAS_OP_mov, type, 2, atlas_reg(result), atlas_reg(ops_value(code, base)));
  uint32_t none = atlas_builder_label(code->builder, NULL);
  atlas_emit(code->builder, ATLAS_OP_set_eq, ATLAS_u32, 3, atlas_pred(IS_MORE), atlas_reg(count), atlas_bits(0));
  atlas_emit_branch(code->builder, IS_MORE, 0, none);
  sum_listed(l, source, count, list, sum);
  emit(l, ATLAS_OP_add, type, result, atlas_reg(result), atlas_reg(sum));
  atlas_builder_place(code->builder, none);
  ops_forget(code, UINT32_MAX);
  ops_form target = ops_address((const ops_storage *)s->group->plan->storages.data + s->out, l->own);
  ops_store(code, s->out, &target, type, result);
}

static hg_status write_sums(const scatter *s, ops_step *step) {
  launch l;
  term_id base, source;
  HG_TRY(begin(&l, s, &s->to, s->sources));
  hg_status status = ops_term_of(&l.terms, s->node->input[0], l.own, &base);
  if (status == HG_OK) status = ops_term_of(&l.terms, s->node->input[2], l.other, &source);
  for (uint32_t k = COUNTED; k <= LISTED && status == HG_OK; k++) status = open_kept(&l, s->kept[k], 1);
  if (status == HG_OK) status = begin_code(&l, step, "scatter_sums");
  if (status == HG_OK) {
    split_lane(&l, &s->to, UINT32_MAX);
    add_to_base(&l, base, source);
    finish(&l, step, &status, ops_count(&s->to));
  }
  ops_terms_release(&l.terms);
  return status;
}

/* Which coordinates the index varies along, but the axis. */
static hg_status find_columns(scatter *s) {
  launch l;
  term_id index;
  HG_TRY(begin(&l, s, &s->from, 1));
  hg_status status = ops_term_of(&l.terms, s->node->input[1], l.own, &index);
  s->columns = 1;
  if (status == HG_OK) s->key = ops_term_at(&l.terms, index)->varies & ~(1u << s->axis) & ((1u << s->rank) - 1);
  for (uint32_t i = 0; i < s->rank; i++)
    if ((s->key >> i & 1) != 0) s->columns *= s->from.size[i];
  ops_terms_release(&l.terms);
  return status;
}

static hg_status add_in(scatter *s, ops_step *steps) {
  HG_TRY(find_columns(s));
  HG_TRY(keep(s, ATLAS_u32, s->columns * s->places, &s->kept[COUNTED]));
  HG_TRY(keep(s, ATLAS_u32, s->columns * s->places, &s->kept[BEGUN]));
  HG_TRY(keep(s, ATLAS_u32, s->columns * s->sources, &s->kept[LISTED]));
  HG_TRY(write_zeros(s, &steps[0]));
  HG_TRY(write_lists(s, &steps[1]));
  return write_sums(s, &steps[2]);
}

hg_status ops_write_scatter(const ops_group *group, ops_step *steps) {
  scatter s;
  memset(&s, 0, sizeof s);
  s.group = group;
  s.node = ops_at(group->computation, group->results[0]);
  s.rank = s.node->shape.rank, s.axis = s.node->axis;
  s.out = group->storage_of[group->results[0] - 1] - 1;
  s.to = s.node->shape;
  s.from = ops_at(group->computation, s.node->input[1])->shape;
  s.sources = s.from.size[s.axis], s.places = s.to.size[s.axis];
  if (s.rank == HG_MAX_RANK || s.sources > UINT64_C(1) << 2 * CHUNK_BITS)
    return hg_fail(HG_UNSUPPORTED,
                   "%llu elements along an axis, at numbers, of a tensor of rank %u: at most 2^24, and rank %d",
                   (unsigned long long)s.sources, (unsigned)s.rank, HG_MAX_RANK - 1);
  return s.node->reduce ? add_in(&s, steps) : put_in(&s, steps);
}
