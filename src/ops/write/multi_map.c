/* multi_map.c - several maps, each over its own space, as one launch.
 *
 * The launch's lanes are those of the maps one after another; a map's lanes begin where those of the map before it end.
 * A lane has neighbours along a map's last coordinate, as many as an access takes: it reads all of their inputs, then
 * writes them. The rest at the end of a one-dimensional map has a lane for each element. Elements that all lanes of a
 * map read are read before anything else: otherwise their checks would stand between the neighbours' accesses. */
#include "ops/write/expression.h"
#include "ops/graph/ops_tuning.h"

enum { IS_ELSEWHERE = 1 };

/* An element that all lanes of a map read. */
typedef struct held {
  uint32_t storage;
  int64_t number;
  uint16_t reg;
} held;

typedef struct joined {
  const ops_group *group; /* the current map */
  ops_terms terms;
  ops_code code;
  term_id roots[OPS_MAX_BINDINGS];
  ops_form places[OPS_MAX_BINDINGS];
  uint16_t rest;    /* the lane's number, less the lanes of the maps before */
  uint64_t lanes;   /* of everything written so far */
  held held[OPS_MAX_BINDINGS];
  uint32_t held_count;
} joined;

/* A part of a map: lanes with that many neighbours each, which begin at an element. */
typedef struct part {
  uint64_t lanes, first;
  uint32_t width;
} part;

static hg_status find_terms(joined *j) {
  const ops_group *group = j->group;
  ops_form identity[HG_MAX_RANK] = {{.constant = 0}}, *more[OPS_MAX_BINDINGS];
  if (group->result_count > OPS_MAX_BINDINGS)
    return hg_fail(HG_UNSUPPORTED, "a launch with more than %d results", OPS_MAX_BINDINGS);
  ops_identity(&j->terms.space, identity);
  for (uint32_t i = 0; i < group->result_count; i++) {
    uint32_t storage = group->storage_of[group->results[i] - 1] - 1;
    HG_TRY(ops_term_of(&j->terms, group->results[i], identity, &j->roots[i]));
    j->places[i] = ops_address((const ops_storage *)group->plan->storages.data + storage, identity);
    more[i] = &j->places[i];
  }
  uint32_t boundary = 0;
  ops_collapse(&j->terms, more, group->result_count, &boundary);
  return HG_OK;
}

/* Computes the coordinates of a lane's first element. */
static void set_coordinates(joined *j, const part *own) {
  ops_code *code = &j->code;
  const ops_shape *space = &j->terms.space;
  if (space->rank == 0) return;
  atlas_type type = code->index_type;
  uint32_t last = space->rank - 1;
  uint16_t rest = ops_register(code);
  if (type == ATLAS_u32) atlas_emit(code->builder, ATLAS_OP_mov, type, 2, atlas_reg(rest), atlas_reg(j->rest));
  else atlas_emit2(code->builder, ATLAS_OP_cvt, type, ATLAS_u32, atlas_reg(rest), atlas_reg(j->rest));
  for (uint32_t d = last; d > 0; d--) {
    atlas_operand size = ops_scalar_of(code, type, space->size[d] / (d == last ? own->width : 1));
    code->variable[d] = ops_register(code);
    atlas_emit(code->builder, ATLAS_OP_rem, type, 3, atlas_reg(code->variable[d]), atlas_reg(rest), size);
    atlas_emit(code->builder, ATLAS_OP_div, type, 3, atlas_reg(rest), atlas_reg(rest), size);
  }
  code->variable[0] = rest;
  uint16_t along = code->variable[last];
  if (own->width > 1)
    atlas_emit(code->builder, ATLAS_OP_mul, type, 3, atlas_reg(along), atlas_reg(along),
               atlas_int_const(type, own->width));
  if (own->first > 0)
    atlas_emit(code->builder, ATLAS_OP_add, type, 3, atlas_reg(along), atlas_reg(along),
               ops_scalar_of(code, type, own->first));
  code->displaced = last;
}

static void write_elements(joined *j, uint32_t width) {
  ops_code *code = &j->code;
  uint16_t values[OPS_MAX_BINDINGS][OPS_JOINED_AT_ONCE];
  uint32_t count = j->group->result_count, along = j->terms.space.rank == 0 ? 0 : 1u << (j->terms.space.rank - 1);
  for (uint32_t w = 0; w < width; w++) {
    code->displacement = w;
    ops_forget(code, along);
    for (uint32_t i = 0; i < count && code->status == HG_OK; i++) values[i][w] = ops_value(code, j->roots[i]);
  }
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t w = 0; w < width && code->status == HG_OK; w++) {
      value_id result = j->group->results[i];
      code->displacement = w;
      ops_forget(code, along);
      ops_store(code, j->group->storage_of[result - 1] - 1, &j->places[i],
                (atlas_type)ops_at(j->group->computation, result)->type, values[i][w]);
    }
  code->displacement = 0;
}

static int is_held(const ops_term *term) { return term->kind == TERM_LOAD && ops_is_constant(&term->form); }

static int is_that(const ops_term *term, const held *one) {
  return is_held(term) && term->storage == one->storage && term->form.constant == one->number;
}

/* Marks everything of the current map as not computed, except what is held. */
static hg_status begin_again(joined *j) {
  ops_code *code = &j->code;
  HG_TRY(ops_code_again(code));
  for (uint32_t i = 0; i < j->held_count; i++)
    for (uint32_t id = 1; id <= j->terms.terms.count; id++)
      if (is_that(ops_term_at(&j->terms, id), &j->held[i])) code->registers[id] = j->held[i].reg;
  return HG_OK;
}

static void hold_elements(joined *j) {
  for (uint32_t id = 1; id <= j->terms.terms.count && j->code.status == HG_OK; id++) {
    const ops_term *term = ops_term_at(&j->terms, id);
    if (!is_held(term) || j->code.registers[id] != OPS_NO_REGISTER) continue;
    if (j->held_count == OPS_MAX_BINDINGS) return;
    j->held[j->held_count++] =
        (held){.storage = term->storage, .number = term->form.constant, .reg = ops_value(&j->code, id)};
  }
}

static hg_status write_part(joined *j, const part *own, int is_last) {
  ops_code *code = &j->code;
  HG_TRY(begin_again(j));
  uint32_t next = is_last ? 0 : atlas_builder_label(code->builder, NULL);
  atlas_operand lanes = ops_scalar_of(code, ATLAS_u32, own->lanes);
  if (!is_last) {
    ops_branch_if(code->builder, ATLAS_OP_set_ge, ATLAS_u32, atlas_reg(j->rest), lanes, next);
  }
  set_coordinates(j, own);
  write_elements(j, own->width);
  j->lanes += own->lanes;
  if (is_last) return code->status;
  atlas_emit(code->builder, ATLAS_OP_exit, ATLAS_NONE, 0);
  atlas_builder_place(code->builder, next);
  atlas_emit(code->builder, ATLAS_OP_sub, ATLAS_u32, 3, atlas_reg(j->rest), atlas_reg(j->rest), lanes);
  return code->status;
}

static hg_status write_parts(joined *j, int is_last) {
  const ops_shape *space = &j->terms.space;
  uint64_t count = ops_count(space), left = 0;
  part own = {.lanes = count, .width = 1};
  if (space->rank > 0) {
    uint64_t size = space->size[space->rank - 1];
    if (space->rank == 1 && size >= OPS_JOINED_AT_ONCE) left = size % OPS_JOINED_AT_ONCE;
    if ((size - left) % OPS_JOINED_AT_ONCE == 0)
      own = (part){.lanes = (count - left) / OPS_JOINED_AT_ONCE, .width = OPS_JOINED_AT_ONCE};
  }
  HG_TRY(write_part(j, &own, is_last && left == 0));
  if (left == 0) return HG_OK;
  return write_part(j, &(part){.lanes = left, .first = count - left, .width = 1}, is_last);
}

static hg_status begin_all(joined *j, ops_step *step) {
  HG_TRY(ops_code_begin(&j->code, &j->terms, step, "maps"));
  j->rest = ops_register(&j->code);
  atlas_emit2(j->code.builder, ATLAS_OP_cvt, ATLAS_u32, ATLAS_u64, atlas_reg(j->rest), atlas_reg(ATLAS_REG_LANE));
  return HG_OK;
}

/* First what all lanes read, for each map; then the maps. */
static hg_status write_map(joined *j, ops_step *step, int is_first, int is_held, int is_last) {
  HG_TRY(find_terms(j));
  if (is_first) HG_TRY(begin_all(j, step));
  if (is_held) return write_parts(j, is_last);
  HG_TRY(begin_again(j));
  hold_elements(j);
  return j->code.status;
}

hg_status ops_write_maps(const ops_group *groups, uint32_t count) {
  const hg_allocator *allocator = &groups[0].plan->allocator;
  ops_step *step = ops_new_step(groups[0].plan);
  if (step == NULL) return HG_OUT_OF_MEMORY;
  joined *j = hg_allocate(allocator, 1, sizeof *j);
  if (j == NULL) return hg_fail_memory("a launch of several maps", sizeof *j);
  hg_status status = HG_OK;
  for (uint32_t i = 0; i < 2 * count && status == HG_OK; i++) {
    if (i > 0) ops_terms_release(&j->terms);
    j->group = &groups[i % count];
    ops_terms_begin(&j->terms, j->group, &ops_at(j->group->computation, j->group->results[0])->shape);
    status = write_map(j, step, i == 0, i >= count, i + 1 == 2 * count);
  }
  if (status == HG_OK) status = ops_code_end(&j->code);
  else if (j->code.builder != NULL) ops_code_drop(&j->code);
  ops_terms_release(&j->terms);
  step->kind = "map";
  step->lanes = j->lanes;
  hg_release(allocator, j);
  return status;
}
