/* promote.c - inputs of several kinds in one call: bool < integers < floats; the highest kind's type becomes the type
 * of all. Within a kind the makers find the common type (ops_agree_types). */
#include "ops/graph/compute.h"

#include <stdio.h>

static atlas_type type_of(const hg_computation *c, value_id value) { return (atlas_type)ops_at(c, value)->type; }

static int takes(ops_word types, atlas_type type) { return ops_type_is_of(type, types.text, types.length); }

static int is_same_word(ops_word a, ops_word b) {
  return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

/* Inputs of a call that get one type: those with the same words in the types column. */
typedef struct group {
  ops_word types;
  value_id lowest, highest; /* inputs of the lowest and of the highest kind */
  atlas_type type;          /* the common type of the highest kind's inputs; NONE: there is none */
} group;

static int is_in(const ops_request *request, const group *g, uint32_t index, value_id value) {
  return value != 0 && is_same_word(ops_types_part(request->row->types, index), g->types);
}

static group group_of(const ops_request *request, uint32_t first) {
  const hg_computation *c = request->c;
  group g = {.types = ops_types_part(request->row->types, first)};
  for (uint32_t i = first; i < request->input_count; i++) {
    value_id value = request->inputs[i];
    if (!is_in(request, &g, i, value)) continue;
    atlas_type type = type_of(c, value);
    int rank = ops_kind_rank(type), most = g.highest != 0 ? ops_kind_rank(type_of(c, g.highest)) : -1;
    if (g.lowest == 0 || rank < ops_kind_rank(type_of(c, g.lowest))) g.lowest = value;
    if (rank == most && g.type != ATLAS_NONE) g.type = ops_promote(g.type, type);
    if (rank > most) g.highest = value, g.type = type;
  }
  return g;
}

/* Notes the first mix of kinds, for hg_compile with HG_STRICT_TYPES. */
static void note_mix(const ops_request *request, const group *g) {
  hg_computation *c = request->c;
  if (!request->is_users || c->mix[0] != '\0' || g->lowest == 0) return;
  atlas_type low = type_of(c, g->lowest), high = type_of(c, g->highest);
  if (ops_kind_rank(low) == ops_kind_rank(high)) return;
  snprintf(c->mix, sizeof c->mix, "%s: %s meets %s, which is of another kind; cast it first, as in cast(x, %s)",
            request->row->name, OPS_TEXT(c, g->lowest), OPS_TEXT(c, g->highest), atlas_type_name(high));
}

static int is_comparison(const ops_row *row) {
  return row->kind == OPS_KIND_pointwise && strncmp(row->formula, "set.", 4) == 0;
}

/* Casts the group's inputs of lower kinds. Functions of floats turn integers and bools into f32; comparisons of
 * integers with floats change neither, since they are exact. */
static int promote_group(ops_request *request, const group *g, value_id *own) {
  hg_computation *c = request->c;
  atlas_type type = g->type;
  int is_of_floats = takes(g->types, ATLAS_f32) && !takes(g->types, ATLAS_i32);
  if (type != ATLAS_NONE && ops_kind_rank(type) < 2 && is_of_floats) type = ATLAS_f32;
  if (type == ATLAS_NONE || !takes(g->types, type) || takes(g->types, ATLAS_f8e4m3)) return 1;
  for (uint32_t i = 0; i < request->input_count; i++) {
    if (!is_in(request, g, i, own[i])) continue;
    int rank = ops_kind_rank(type_of(c, own[i]));
    if (rank >= ops_kind_rank(type) || (rank == 1 && is_comparison(request->row))) continue;
    if ((own[i] = ops_cast(c, own[i], type)) == 0) return 0;
  }
  return 1;
}

/* 1 if all inputs have one type, of floats: nothing changes it. */
static int are_floats_of_one_type(const ops_request *request) {
  atlas_type type = ATLAS_NONE;
  for (uint32_t i = 0; i < request->input_count; i++) {
    if (request->inputs[i] == 0) continue;
    if (type == ATLAS_NONE) type = type_of(request->c, request->inputs[i]);
    if (type != type_of(request->c, request->inputs[i]) || ops_kind_rank(type) != 2) return 0;
  }
  return 1;
}

int ops_promote_inputs(ops_request *request, value_id *own) {
  if (are_floats_of_one_type(request)) return 1;
  for (uint32_t i = 0; i < request->input_count; i++) {
    int is_new = request->inputs[i] != 0;
    for (uint32_t k = 0; k < i && is_new; k++)
      is_new = request->inputs[k] == 0 || !is_same_word(ops_types_part(request->row->types, i),
                                                        ops_types_part(request->row->types, k));
    if (!is_new) continue;
    group g = group_of(request, i);
    note_mix(request, &g);
    if (own != NULL && !promote_group(request, &g, own)) return 0;
  }
  return 1;
}
