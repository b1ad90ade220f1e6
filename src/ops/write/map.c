/* map.c - programs with one lane for each element of a shape: pointwise groups over any views. */
#include "ops/write/row_moves.h"

#include "ops/graph/infer.h"

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

static void write_results(ops_code *code, const term_id *roots, const ops_form *places) {
  const ops_shape *space = &code->terms->space;
  ops_form lane = lane_form(space);
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
  ops_store_results(code, roots, places);
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
    if (node->kind != OPS_RESHAPE || group->storage_of[node->input[0] - 1] != 0) return value;
    value = node->input[0];
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
  hg_rows rows;
  uint32_t storage = group->storage_of[group->results[0] - 1] - 1;
  int is_taken = group->result_count == 1 && ops_find_taken(terms, roots[0], storage, &places[0], &rows);
  return is_taken ? ops_tell_rows(group->plan, &rows, step) : HG_OK;
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
