/* map.c - programs with one lane for each element of a shape: pointwise groups over any views. */
#include "ops/write/row_moves.h"

#include "ops/graph/infer.h"
#include "ops/graph/ops_tuning.h"

#include <string.h>

static void coordinates_of_lane(ops_code *code) {
  const ops_shape *space = &code->terms->space;
  if (space->rank <= 1) {
    code->variable[0] = ATLAS_REG_LANE;
    return;
  }
  ops_split_range(code, ops_lane_index(code), 0, space->rank);
}

/* If more than one coordinate is left, something lies at other elements than the lanes', and each lane would divide its
 * number. Indices that vary along the row belong to each lane in any case. */
static uint32_t lanes_of_rows(const ops_terms *t) {
  uint32_t last = t->space.rank - 1, lanes = ops_row_blocks_lanes(t, &t->space);
  if (lanes == 0) return 0;
  for (uint32_t id = 1; id <= t->terms.count; id++) {
    const ops_term *term = ops_term_at(t, id);
    if (term->kind == TERM_GATHER && (ops_term_at(t, term->input[0])->varies >> last & 1) != 0) return 0;
  }
  return lanes;
}

/* The lane's number as a form of the space's coordinates. */
static ops_form lane_form(const ops_shape *space) {
  ops_form form = {.constant = 0};
  int64_t stride = 1;
  for (uint32_t j = space->rank; j-- > 0; stride *= (int64_t)space->size[j]) form.factor[j] = stride;
  return form;
}

/* ---- joined arrays ----------------------------------------------------------------------------------------------- */

static int is_choice(const ops_terms *t, const ops_term *term) {
  if (term->kind != TERM_POINTWISE || term->op != ATLAS_OP_sel) return 0;
  const ops_term *condition = ops_term_at(t, term->input[0]);
  while (condition->kind == TERM_POINTWISE && condition->op == ATLAS_OP_pand)
    condition = ops_term_at(t, condition->input[1]);
  return condition->kind == TERM_RANGE;
}

/* 1 if lanes side by side mostly agree on a condition: whether an element is within a part. */
static int agrees(const ops_terms *t, term_id condition) {
  const ops_term *term = ops_term_at(t, condition);
  uint32_t last = t->space.rank - 1;
  uint64_t size = t->space.size[last];
  if (term->kind == TERM_POINTWISE && term->op == ATLAS_OP_pand)
    return agrees(t, term->input[0]) && agrees(t, term->input[1]);
  if (term->kind != TERM_RANGE || size < OPS_PARTS_ROW) return 0;
  for (uint32_t i = t->space.rank; i < t->variable_count; i++)
    if (term->form.factor[i] != 0) return 0;
  return ops_magnitude(term->form.factor[last]) <= 1;
}

/* 1 if code for each way through the choices is little. */
static int has_few_ways(const ops_terms *t) {
  uint64_t seen = 0, most = t->terms.count;
  if (t->group->plan->for_gpu || t->space.rank == 0 || most >= 64) return 0;
  for (uint32_t id = 1; id <= t->terms.count && most <= OPS_PARTS_TERMS; id++) {
    const ops_term *term = ops_term_at(t, id);
    if (!is_choice(t, term) || (seen >> term->input[0] & 1) != 0) continue;
    seen |= UINT64_C(1) << term->input[0];
    most *= 2;
  }
  return seen != 0 && most <= OPS_PARTS_TERMS;
}

/* The first condition on the way to a value on which lanes agree and that is not known; 0: there is none. *is_inside
 * becomes 0 if there is another one that is not known. */
static term_id next_choice(const ops_code *code, term_id id, uint64_t *seen, int *is_inside) {
  const ops_term *term = ops_term_at(code->terms, id);
  if (*seen >> id & 1) return 0;
  *seen |= UINT64_C(1) << id;
  int is_one = is_choice(code->terms, term);
  if (is_one && ops_is_known(code, term->input[0]))
    return next_choice(code, term->input[2 - (code->holds >> term->input[0] & 1)], seen, is_inside);
  if (is_one && agrees(code->terms, term->input[0])) return term->input[0];
  *is_inside &= !is_one;
  term_id found = 0;
  for (uint32_t i = 0; i < term->input_count && found == 0; i++)
    found = next_choice(code, term->input[i], seen, is_inside);
  return found;
}

/* Where parts of joined arrays meet, few lanes disagree: each part has its own code, which reads nothing else. */
static void store_parts(ops_code *code, const term_id *roots, const ops_form *places) {
  uint64_t seen = 0;
  int is_inside = 1;
  term_id next = 0;
  for (uint32_t i = 0; i < code->terms->group->result_count && next == 0; i++)
    next = next_choice(code, roots[i], &seen, &is_inside);
  if (next == 0) {
    code->is_inside = is_inside;
    ops_store_results(code, roots, places);
    code->is_inside = 0;
    return;
  }
  uint32_t other = atlas_builder_label(code->builder, NULL);
  uint16_t holds = ops_value(code, next);
  atlas_emit(code->builder, ATLAS_OP_set_ne, ATLAS_u32, 3, atlas_pred(0), atlas_reg(holds), atlas_bits(0));
  atlas_emit_branch(code->builder, 0, 1, other);
  code->is_known |= UINT64_C(1) << next, code->holds |= UINT64_C(1) << next;
  store_parts(code, roots, places);
  atlas_emit(code->builder, ATLAS_OP_exit, ATLAS_NONE, 0);
  atlas_builder_place(code->builder, other);
  ops_forget_all(code);
  code->holds &= ~(UINT64_C(1) << next);
  store_parts(code, roots, places);
  code->is_known &= ~(UINT64_C(1) << next);
}
/* ---- neighbours on a GPU ----------------------------------------------------------------------------------------- */

/* How many neighbours along the last coordinate a lane of a GPU computes: then it divides its number once for all of
 * them, and reads and writes them at once; of random words it computes four by one counter. More than one only if
 * coordinates are divided at all, or words drawn, and if everything that
 * varies along the last one steps through memory one by one; not if something is read at the lane's own number, whose
 * place a result may take. */
static uint32_t neighbours(ops_code *code, const ops_form *places) {
  const ops_terms *t = code->terms;
  const ops_group *group = t->group;
  uint32_t last = t->space.rank - 1, bytes = 1;
  int is_drawn = 0;
  if (!group->plan->for_gpu || t->space.rank == 0) return 1;
  for (uint32_t id = 1; id <= t->terms.count; id++) is_drawn |= ops_term_at(t, id)->kind == TERM_RANDOM;
  if (t->space.rank < 2 && !is_drawn) return 1;
  for (uint32_t id = 1; id <= t->terms.count; id++) {
    const ops_term *term = ops_term_at(t, id);
    if (term->kind != TERM_LOAD && term->kind != TERM_GATHER) continue;
    if (term->form.factor[last] != 0 && term->form.factor[last] != 1) return 1;
    if (term->kind == TERM_LOAD && ops_is_at_lane(code, &term->form)) return 1;
    if (term->kind == TERM_GATHER && (ops_term_at(t, term->input[0])->varies >> last & 1) != 0) return 1;
    uint32_t own = atlas_bytes((atlas_type)term->type);
    if (term->form.factor[last] == 1 && own > bytes) bytes = own;
  }
  for (uint32_t i = 0; i < group->result_count; i++) {
    uint32_t own = atlas_bytes((atlas_type)ops_at(group->computation, group->results[i])->type);
    if (places[i].factor[last] != 1) return 1;
    if (own > bytes) bytes = own;
  }
  uint32_t wide = OPS_MAP_BYTES / bytes;
  while (wide > 1 && (t->space.size[last] % wide != 0 || wide * t->terms.count > OPS_MAP_TERMS ||
                      !ops_neighbours_fit(code, last, wide)))
    wide /= 2;
  return wide;
}

/* A lane has `wide` neighbours along the last coordinate, from that in its register on. */
static void write_neighbours(ops_code *code, const term_id *roots, const ops_form *places, uint32_t wide) {
  const ops_shape *space = &code->terms->space;
  uint32_t last = space->rank - 1;
  uint16_t column = ops_register(code), row = ops_register(code), lane = ops_lane_index(code), number = lane;
  if (last > 0) {
    atlas_operand size = ops_scalar_of(code, code->index_type, space->size[last] / wide);
    atlas_emit(code->builder, ATLAS_OP_rem, code->index_type, 3, atlas_reg(column), atlas_reg(lane), size);
    atlas_emit(code->builder, ATLAS_OP_div, code->index_type, 3, atlas_reg(row), atlas_reg(lane), size);
    number = column;
  }
  atlas_emit(code->builder, ATLAS_OP_mul, code->index_type, 3, atlas_reg(column), atlas_reg(number),
             atlas_int_const(code->index_type, wide));
  code->step->lanes = ops_count(space) / wide;
  code->variable[last] = column;
  ops_split_range(code, row, 0, last);
  code->displaced = last, code->neighbours = wide;
  for (uint32_t i = 0; i < wide; i++) {
    code->displacement = i;
    ops_forget(code, 1u << last);
    ops_store_results(code, roots, places);
  }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void write_results(ops_code *code, const term_id *roots, const ops_form *places) {
  const ops_shape *space = &code->terms->space;
  ops_form lane = lane_form(space);
  uint32_t row = 0, wide;
  code->lane_form = &lane;
  wide = neighbours(code, places);
  code->lane_form = NULL;
  if (wide > 1) {
    write_neighbours(code, roots, places, wide);
    return;
  }
  term_id tiled = ops_tiled_load(code->terms, &row);
  if (tiled != 0) {
    ops_store_tiles(code, roots, places, tiled, row);
    return;
  }
  code->lane_form = &lane;
  code->step->lanes = ops_count(space);
  uint32_t lanes = lanes_of_rows(code->terms);
  if (lanes != 0) {
    uint64_t size = space->size[space->rank - 1];
    uint64_t rows = space->size[space->rank - 2];
    ops_row_blocks begun = ops_row_blocks_begin(code, ops_count(space) / size / rows, rows, size, lanes);
    code->variable[space->rank - 1] = begun.column, code->variable[space->rank - 2] = begun.row;
    ops_split_range(code, begun.group, 0, space->rank - 2); /* the grid has numbered the others */
  } else coordinates_of_lane(code);
  if (has_few_ways(code->terms)) {
    if (code->variable[0] == ATLAS_REG_LANE) code->variable[0] = ops_lane_index(code); /* before the ways part */
    store_parts(code, roots, places);
  } else ops_store_results(code, roots, places);
  code->lane_form = NULL;
}

/* Computes `count` terms and writes them to their storages. */
static hg_status write_program(ops_terms *terms, ops_step *step, const char *name, uint32_t count,
                               const term_id *roots, ops_form *places) {
  ops_form *more[OPS_MAX_BINDINGS];
  uint32_t boundary = 0;
  for (uint32_t i = 0; i < count; i++) more[i] = &places[i];
  ops_collapse(terms, more, count, &boundary);
  ops_code code;
  HG_TRY(ops_code_begin(&code, terms, step, name));
  write_results(&code, roots, places);
  return ops_code_end(&code);
}

static const ops_storage *storage_of(const ops_group *group, value_id value) {
  return (const ops_storage *)group->plan->storages.data + (group->storage_of[value - 1] - 1);
}

/* A result under the shape in which it is computed: if it is dense, elements have the same numbers. */
static value_id unshaped(const ops_group *group, value_id value) {
  if (!ops_is_dense(storage_of(group, value))) return value;
  for (;;) {
    const ops_node *node = ops_at(group->computation, value);
    if (node->kind != OPS_RESHAPE) return value;
    value_id input = node->input[0];
    if (group->storage_of[input - 1] != 0 && ops_is_dense(storage_of(group, input))) return value;
    value = input;
  }
}

/* The shape in which the results are computed, if it is one for all; else their own shape. */
static const ops_shape *shape_of(const ops_group *group) {
  const hg_computation *c = group->computation;
  const ops_shape *shape = &ops_at(c, unshaped(group, group->results[0]))->shape;
  for (uint32_t i = 1; i < group->result_count; i++)
    if (!ops_same_shape(&ops_at(c, unshaped(group, group->results[i]))->shape, shape))
      return &ops_at(c, group->results[0])->shape;
  return shape;
}

static hg_status write_map(const ops_group *group, ops_step *step, ops_terms *terms) {
  enum { MOST = OPS_MAX_BINDINGS };
  term_id roots[MOST];
  ops_form identity[HG_MAX_RANK] = {{.constant = 0}}, places[MOST];
  if (group->result_count > MOST) return hg_fail(HG_UNSUPPORTED, "a launch with more than %d results", MOST);
  ops_identity(&terms->space, identity);
  ops_form lane = lane_form(&terms->space);
  for (uint32_t i = 0; i < group->result_count; i++) {
    value_id value = group->results[i];
    int is_shaped = !ops_same_shape(&ops_at(group->computation, value)->shape, &terms->space);
    HG_TRY(ops_term_of(terms, is_shaped ? unshaped(group, value) : value, identity, &roots[i]));
    places[i] = is_shaped ? lane : ops_address(storage_of(group, value), identity);
  }
  HG_TRY(write_program(terms, step, "map", group->result_count, roots, places));
  hg_rows rows[HG_MOST_COPIES];
  uint32_t storage = group->storage_of[group->results[0] - 1] - 1;
  int is_rows = group->result_count == 1 && (ops_find_taken(terms, roots[0], storage, &places[0], rows) ||
                                             ops_find_copied(terms, roots[0], storage, &places[0], rows) != 0);
  return is_rows ? ops_tell_rows(group->plan, rows, step) : HG_OK;
}

hg_status ops_write_map(const ops_group *group) {
  ops_terms terms;
  ops_step *step = ops_new_step(group->plan);
  if (step == NULL) return HG_OUT_OF_MEMORY;
  ops_terms_begin(&terms, group, shape_of(group));
  hg_status status = write_map(group, step, &terms);
  ops_terms_release(&terms);
  step->kind = "map";
  step->reads_first = group->result_count == 1;
  return status;
}

/* Writes the box alone, to the storage that already holds the rest. */
static hg_status write_box(const ops_group *group, ops_step *step, ops_terms *terms) {
  const ops_node *node = ops_at(group->computation, group->results[0]);
  ops_form identity[HG_MAX_RANK] = {{.constant = 0}}, at[HG_MAX_RANK] = {{.constant = 0}}, place;
  term_id root;
  ops_identity(&terms->space, identity);
  for (uint32_t d = 0; d < node->shape.rank; d++) {
    at[d].constant = node->view.start[d];
    at[d].factor[d] = node->view.step[d];
  }
  HG_TRY(ops_term_of(terms, node->input[1], identity, &root));
  place = ops_address(storage_of(group, group->results[0]), at);
  return write_program(terms, step, "update", 1, &root, &place);
}

hg_status ops_write_update(const ops_group *group) {
  const ops_node *node = ops_at(group->computation, group->results[0]);
  if (!ops_is_blank(group->computation, node) &&
      group->storage_of[node->input[0] - 1] != group->storage_of[group->results[0] - 1])
    return ops_write_map(group);
  const ops_shape *box = &ops_at(group->computation, node->input[1])->shape;
  ops_terms terms;
  ops_step *step = ops_new_step(group->plan);
  if (step == NULL) return HG_OUT_OF_MEMORY;
  ops_terms_begin(&terms, group, box);
  hg_status status = write_box(group, step, &terms);
  ops_terms_release(&terms);
  step->kind = "update";
  step->box_elements = ops_count(box);
  return status;
}

hg_status ops_write_copy(ops_plan *plan, uint32_t from, uint32_t to) {
  ops_step *step = ops_new_step(plan);
  if (step == NULL) return HG_OUT_OF_MEMORY;
  const ops_storage *storages = plan->storages.data;
  hg_computation copied; /* of one input, which is its output */
  memset(&copied, 0, sizeof copied);
  ops_node node = {.kind = OPS_INPUT, .type = storages[from].type, .shape = storages[from].shape};
  copied.nodes = (hg_array){.data = &node, .count = 1, .capacity = 1, .element_size = sizeof node};
  uint32_t storage_of[1] = {to + 1};
  value_id results[1] = {1};
  ops_group group = {
      .computation = &copied, .plan = plan, .storage_of = storage_of, .results = results, .result_count = 1};
  ops_form identity[HG_MAX_RANK] = {{.constant = 0}}, place;
  ops_terms terms;
  ops_terms_begin(&terms, &group, &node.shape);
  ops_identity(&terms.space, identity);
  place = ops_address(&storages[to], identity);
  storage_of[0] = from + 1;
  term_id root = 0;
  hg_status status = ops_term_of(&terms, 1, identity, &root);
  storage_of[0] = to + 1;
  if (status == HG_OK) status = write_program(&terms, step, "copy", 1, &root, &place);
  ops_terms_release(&terms);
  step->kind = "copy";
  return status;
}
