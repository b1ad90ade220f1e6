/* row_group.c - what is known of a group that reduces. See row_group.h. */
#include "ops/write/row_group.h"

#include "atlas/value.h"

#include <string.h>

/* ---- the space ------------------------------------------------------------------------------------------------- */

typedef struct space_map {
  ops_shape space;
  uint32_t place[HG_MAX_RANK]; /* by dimension of `full`: its coordinate */
  uint32_t kept;               /* coordinates of the row */
} space_map;

static space_map map_space(const ops_shape *full, uint32_t axes) {
  space_map map = {.kept = 0};
  for (uint32_t d = 0; d < full->rank; d++)
    if ((axes >> d & 1) == 0) map.place[d] = map.kept++;
  uint32_t next = map.kept;
  for (uint32_t d = 0; d < full->rank; d++)
    if (axes >> d & 1) map.place[d] = next++;
  map.space.rank = full->rank;
  for (uint32_t d = 0; d < full->rank; d++) map.space.size[map.place[d]] = full->size[d];
  return map;
}

/* The index of a value of this shape, whose dimensions are those of `of` (at the coordinates `place`), except for
 * dimensions of one element. 0: the shapes do not match. */
static int match(const ops_shape *shape, const ops_shape *of, const uint32_t *place, ops_form *index) {
  uint32_t next = 0;
  memset(index, 0, HG_MAX_RANK * sizeof *index);
  for (uint32_t d = 0; d < shape->rank; d++) {
    if (shape->size[d] == 1) continue;
    while (next < of->rank && of->size[next] == 1) next++;
    if (next == of->rank || of->size[next] != shape->size[d]) return 0;
    index[d].factor[place[next++]] = 1;
  }
  while (next < of->rank && of->size[next] == 1) next++;
  return next == of->rank;
}

static int match_row(const row_group *g, const ops_shape *shape, const space_map *map, ops_form *index) {
  ops_shape kept = {.rank = 0};
  uint32_t place[HG_MAX_RANK];
  for (uint32_t d = 0; d < g->full.rank; d++)
    if ((g->axes >> d & 1) == 0) {
      place[kept.rank] = map->place[d];
      kept.size[kept.rank++] = g->full.size[d];
    }
  return match(shape, &kept, place, index);
}

static int same_shape(const ops_shape *a, const ops_shape *b) {
  return a->rank == b->rank && memcmp(a->size, b->size, a->rank * sizeof a->size[0]) == 0;
}

static hg_status unsupported(const char *why) { return hg_fail(HG_UNSUPPORTED, "reductions in one launch: %s", why); }

static void index_of_full(const row_group *g, const space_map *map, ops_form *index) {
  memset(index, 0, HG_MAX_RANK * sizeof *index);
  for (uint32_t d = 0; d < g->full.rank; d++) index[d].factor[map->place[d]] = 1;
}

static hg_status add_reductions(row_group *g, const space_map *map) {
  const hg_computation *c = g->group->computation;
  ops_form index[HG_MAX_RANK];
  index_of_full(g, map, index);
  for (uint32_t i = 0; i < g->group->node_count; i++) {
    const ops_node *node = ops_at(c, g->group->nodes[i]);
    if (node->kind != OPS_REDUCE) continue;
    if (node->axes != g->axes || !same_shape(&ops_at(c, node->input[0])->shape, &g->full))
      return unsupported("of several shapes");
    if (g->reduction_count == ROWS_MOST_REDUCTIONS) return unsupported("too many");
    row_reduction *r = &g->reductions[g->reduction_count++];
    r->value = g->group->nodes[i];
    r->reduce = (ops_reduce)node->reduce;
    r->type = ops_at(c, node->input[0])->type;
    HG_TRY(ops_term_of(&g->terms, node->input[0], index, &r->input));
  }
  return HG_OK;
}

static hg_status add_results(row_group *g, const space_map *map) {
  const hg_computation *c = g->group->computation;
  ops_form index[HG_MAX_RANK];
  for (uint32_t i = 0; i < g->group->result_count; i++) {
    if (g->result_count == ROWS_MOST_RESULTS) return unsupported("too many results");
    row_result *r = &g->results[g->result_count++];
    const ops_node *node = ops_at(c, g->group->results[i]);
    r->value = g->group->results[i];
    r->storage = g->group->storage_of[r->value - 1] - 1;
    r->type = node->type;
    if (!match_row(g, &node->shape, map, index)) {
      if (!match(&node->shape, &g->full, map->place, index)) return unsupported("a result of another shape");
      r->is_full = 1;
    }
    HG_TRY(ops_term_of(&g->terms, r->value, index, &r->term));
    r->address = ops_address((const ops_storage *)g->group->plan->storages.data + r->storage, index);
  }
  return HG_OK;
}

/* Two terms are one if they differ only in the factor of a coordinate that has one value. */
static void replace_term(row_group *g, term_id from, term_id to) {
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    ops_term *term = ops_term_at(&g->terms, id);
    for (uint32_t i = 0; i < term->input_count; i++)
      if (term->input[i] == from) term->input[i] = to;
  }
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (g->reductions[i].input == from) g->reductions[i].input = to;
  for (uint32_t i = 0; i < g->result_count; i++)
    if (g->results[i].term == from) g->results[i].term = to;
  ops_term_at(&g->terms, from)->kind = TERM_CONSTANT; /* nothing reads it any more */
}

/* Finds where others read a reduction: at their own row. */
static hg_status find_bounds(row_group *g) {
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    if (term->kind != TERM_BOUND) continue;
    for (uint32_t d = 0; d < OPS_MAX_VARIABLES; d++)
      if (term->form.factor[d] != g->row_number.factor[d] && (d >= g->terms.space.rank || g->terms.space.size[d] != 1))
        return unsupported("one is read in another row");
    if (term->form.constant != 0) return unsupported("one is read in another row");
    uint32_t i = 0;
    while (i < g->reduction_count && g->reductions[i].value != term->value) i++;
    if (i == g->reduction_count) return unsupported("beside a contraction");
    if (g->reductions[i].bound != 0) replace_term(g, id, g->reductions[i].bound);
    else g->reductions[i].bound = id;
  }
  return HG_OK;
}

/* ---- stages ---------------------------------------------------------------------------------------------------- */

static void find_stages(row_group *g) {
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    uint8_t stage = 0;
    for (uint32_t i = 0; i < term->input_count; i++)
      if (g->stage[term->input[i]] > stage) stage = g->stage[term->input[i]];
    for (uint32_t i = 0; i < g->reduction_count; i++)
      if (g->reductions[i].bound == id) stage = (uint8_t)(g->stage[g->reductions[i].input] + 1);
    g->stage[id] = stage;
  }
  g->stage_count = 1;
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    row_reduction *r = &g->reductions[i];
    r->stage = g->stage[r->input];
    if (r->stage + 2 > g->stage_count) g->stage_count = r->stage + 2;
  }
  for (uint32_t i = 0; i < g->result_count; i++) g->results[i].stage = g->stage[g->results[i].term];
}

/* Follows what a stage needs: notes what it computes, and marks as held what an earlier stage has computed. */
static void visit(row_group *g, uint8_t *computed_in, term_id id, uint32_t stage) {
  const ops_term *term = ops_term_at(&g->terms, id);
  if (!varies_by_column(g, id) || term->kind == TERM_CONSTANT) return;
  if (computed_in[id] != 0) {
    if (computed_in[id] == stage + 1 && g->last_use[id] == 0) return;
    if (g->last_use[id] == 0) {
      if (g->held_count < sizeof g->held / sizeof g->held[0]) g->held[g->held_count++] = id;
      else return; /* it is computed again */
    }
    if (g->last_use[id] < stage) g->last_use[id] = (uint8_t)stage;
    return;
  }
  computed_in[id] = (uint8_t)(stage + 1);
  for (uint32_t i = 0; i < term->input_count; i++) visit(g, computed_in, term->input[i], stage);
}

static void find_held(row_group *g) {
  uint8_t computed_in[OPS_MAX_TERMS + 1] = {0};
  uint32_t words[ROWS_MOST_STAGES + 1] = {0};
  for (uint32_t stage = 0; stage < g->stage_count; stage++) {
    for (uint32_t i = 0; i < g->reduction_count; i++)
      if (g->reductions[i].stage == stage) visit(g, computed_in, g->reductions[i].input, stage);
    for (uint32_t i = 0; i < g->result_count; i++)
      if (g->results[i].is_full && g->results[i].stage == stage) visit(g, computed_in, g->results[i].term, stage);
  }
  for (uint32_t i = 0; i < g->reduction_count;
       i++) { /* an index is searched for among the values once the extreme is known */
    const row_reduction *r = &g->reductions[i];
    if (!row_is_place(r)) continue;
    uint32_t at = 0;
    while (at < g->held_count && g->held[at] != r->input) at++;
    if (at < g->held_count || g->held_count == sizeof g->held / sizeof g->held[0]) continue;
    g->held[g->held_count++] = r->input;
    g->last_use[r->input] = (uint8_t)r->stage;
  }
  for (uint32_t i = 0; i < g->held_count; i++) {
    uint32_t size = atlas_type_bits((atlas_type)ops_term_at(&g->terms, g->held[i])->type) == 64 ? 2 : 1;
    for (uint32_t s = computed_in[g->held[i]] - 1u; s < g->last_use[g->held[i]] && s < ROWS_MOST_STAGES; s++)
      words[s] += size;
  }
  for (uint32_t s = 0; s < ROWS_MOST_STAGES; s++)
    if (words[s] > g->most_held) g->most_held = words[s];
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static void form_row_number(row_group *g, const space_map *map) {
  int64_t stride = 1;
  for (uint32_t d = g->full.rank; d-- > 0;) {
    if (g->axes >> d & 1) continue;
    g->row_number.factor[map->place[d]] = stride;
    stride *= (int64_t)g->full.size[d];
  }
}

/* Called when a group has all of its terms; `kept` coordinates come before the column's. */
static hg_status finish(row_group *g, uint32_t kept) {
  HG_TRY(find_bounds(g));
  ops_form *more[ROWS_MOST_RESULTS + 1];
  uint32_t count = 0;
  more[count++] = &g->row_number;
  for (uint32_t i = 0; i < g->result_count; i++) more[count++] = &g->results[i].address;
  g->row_rank = kept;
  ops_collapse(&g->terms, more, count, &g->row_rank);
  find_stages(g);
  if (g->stage_count > ROWS_MOST_STAGES) return unsupported("too many, one after the other");
  find_held(g);
  return HG_OK;
}

/* Begins a group of rows of the elements of `full`, or of parts of rows. */
static space_map begin_group(row_group *g, const ops_group *group, const ops_shape *full, uint32_t axes,
                             const row_parts *parts) {
  space_map map = map_space(full, axes);
  memset(g, 0, sizeof *g);
  g->group = group;
  g->full = *full, g->axes = axes;
  g->rows = g->columns = 1;
  g->chunk = parts != NULL && parts->chunk != 0 ? parts->chunk : OPS_CHUNK;
  for (uint32_t d = 0; d < full->rank; d++) *(axes >> d & 1 ? &g->columns : &g->rows) *= full->size[d];
  if (parts != NULL) {
    g->columns = parts->count;
    map.space.rank = map.kept + 1;
    map.space.size[map.kept] = parts->count;
  }
  ops_terms_begin(&g->terms, group, &map.space);
  form_row_number(g, &map);
  return map;
}

hg_status ops_row_group_begin(row_group *g, const ops_group *group) {
  const hg_computation *c = group->computation;
  const ops_shape none = {.rank = 0};
  uint32_t first = 0;
  while (first < group->node_count && ops_at(c, group->nodes[first])->kind != OPS_REDUCE) first++;
  if (first == group->node_count) {
    begin_group(g, group, &none, 0, NULL);
    return unsupported("there is none");
  }
  const ops_node *node = ops_at(c, group->nodes[first]);
  space_map map = begin_group(g, group, &ops_at(c, node->input[0])->shape, node->axes, NULL);
  HG_TRY(add_reductions(g, &map));
  HG_TRY(add_results(g, &map));
  return finish(g, map.kept);
}

/* The results of a stage are those of its reductions. */
static hg_status add_between(row_group *g, const space_map *map) {
  const hg_computation *c = g->group->computation;
  ops_form index[HG_MAX_RANK];
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    row_result *r = &g->results[g->result_count++];
    const ops_node *node = ops_at(c, g->reductions[i].value);
    if (!match_row(g, &node->shape, map, index)) return unsupported("a result of another shape");
    r->value = g->reductions[i].value;
    r->storage = g->reductions[i].between;
    r->type = node->type;
    HG_TRY(ops_term_of(&g->terms, r->value, index, &r->term));
    r->address = g->row_number;
  }
  return HG_OK;
}

/* Reads results of stages before `first` from storages, by the row's number. */
static hg_status read_between(row_group *g, const row_group *whole, uint32_t first) {
  HG_TRY(find_bounds(g));
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    if (g->reductions[i].bound == 0 || whole->reductions[i].stage >= first) continue;
    ops_term *term = ops_term_at(&g->terms, g->reductions[i].bound);
    term->kind = TERM_LOAD;
    term->storage = g->reductions[i].between;
  }
  return HG_OK;
}

/* Adds the same reduction, with nothing else known of it. */
static row_reduction *add_same(row_group *g, const row_reduction *of) {
  row_reduction *r = &g->reductions[g->reduction_count++];
  *r = (row_reduction){.value = of->value, .reduce = of->reduce, .type = of->type, .between = of->between};
  return r;
}

hg_status ops_row_group_of_stages(row_group *g, const row_group *whole, uint32_t first, uint32_t end) {
  int is_last = end == whole->stage_count;
  space_map map = begin_group(g, whole->group, &whole->full, whole->axes, NULL);
  ops_form index[HG_MAX_RANK];
  index_of_full(g, &map, index);
  row_reduction own[ROWS_MOST_REDUCTIONS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < whole->reduction_count; i++) {
    row_reduction *r = add_same(g, &whole->reductions[i]);
    if (whole->reductions[i].stage < first || whole->reductions[i].stage >= end) continue;
    HG_TRY(ops_term_of(&g->terms, ops_at(g->group->computation, r->value)->input[0], index, &r->input));
    own[count++] = *r;
  }
  if (is_last) HG_TRY(add_results(g, &map));
  HG_TRY(read_between(g, whole, first));
  memcpy(g->reductions, own, count * sizeof own[0]);
  g->reduction_count = count;
  g->is_stage = !is_last;
  if (!is_last) HG_TRY(add_between(g, &map));
  return finish(g, map.kept);
}

hg_status ops_row_group_of_parts(row_group *g, const row_group *whole, const row_parts *parts) {
  space_map map = begin_group(g, whole->group, &whole->full, whole->axes, parts);
  ops_form form = g->row_number;
  for (uint32_t i = 0; i < map.kept && !parts->is_across; i++) form.factor[i] *= (int64_t)parts->count;
  form.factor[map.kept] = parts->is_across ? (int64_t)g->rows : 1;
  for (uint32_t i = 0; i < whole->reduction_count; i++) {
    row_reduction *r = add_same(g, &whole->reductions[i]);
    HG_TRY(ops_load_of(&g->terms, parts->values[i], (atlas_type)r->type, &form, &r->input));
    if (row_is_place(r) && !parts->has_no_places)
      HG_TRY(ops_load_of(&g->terms, parts->places[i], ATLAS_i64, &form, &r->place));
  }
  g->is_stage = whole->is_stage;
  HG_TRY(g->is_stage ? add_between(g, &map) : add_results(g, &map));
  return finish(g, map.kept);
}

void ops_row_group_end(row_group *g) { ops_terms_release(&g->terms); }

int ops_row_has_full_results(const row_group *g) {
  for (uint32_t i = 0; i < g->result_count; i++)
    if (g->results[i].is_full) return 1;
  return 0;
}

/* ---- how memory lies ------------------------------------------------------------------------------------------- */

/* Loads of elements that are not neighbours are not joined, so they allow any number. */
static uint32_t allows(const ops_form *form, uint32_t along, uint32_t most) {
  if (form->factor[along] != 1) return most;
  for (uint32_t i = 0; i < OPS_MAX_VARIABLES; i++)
    while (i != along && form->factor[i] % (int64_t)most != 0) most /= 2;
  while (form->constant % (int64_t)most != 0) most /= 2;
  return most;
}

uint32_t ops_row_neighbours_along(const row_group *g, uint32_t along, uint32_t most) {
  while (g->terms.space.size[along] % most != 0) most /= 2;
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    if (term->kind == TERM_LOAD) most = allows(&term->form, along, most);
  }
  return most;
}

uint32_t ops_row_neighbours(const row_group *g, uint32_t most) {
  uint32_t column = g->row_rank, has_neighbours = 0;
  if (g->terms.space.rank != column + 1) return 1;
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    has_neighbours |= term->kind == TERM_LOAD && term->form.factor[column] == 1;
  }
  for (uint32_t i = 0; i < g->result_count; i++) most = allows(&g->results[i].address, column, most);
  return has_neighbours ? ops_row_neighbours_along(g, column, most) : 1;
}

int ops_row_has_weights(const row_group *g) {
  for (uint32_t id = 1; id <= g->terms.terms.count; id++)
    if (ops_term_at(&g->terms, id)->kind == TERM_LOAD && varies_by_column(g, id) &&
        (ops_term_at(&g->terms, id)->varies & ~column_bits(g)) == 0)
      return 1;
  return 0;
}

uint32_t ops_row_element_bytes(const row_group *g) {
  uint32_t bytes = 1;
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    uint32_t own = atlas_type_bits((atlas_type)term->type) / 8;
    if (term->kind == TERM_LOAD && varies_by_column(g, id) && (term->varies & ~column_bits(g)) != 0 && own > bytes)
      bytes = own;
  }
  return bytes;
}
