/* given.c - donated memory: results that are written in place of arguments (hg.jit(donate=...)).
 *
 * The result of a pair takes the donated memory if nobody else can see it: all its holders are leaves of this
 * computation, over the same elements. (A gradient uses an alias of an array, with the same memory, so there may be
 * two.) These leaves become one input, which the computation updates. If the memory cannot be reused, the result gets
 * its own; the donated array is gone all the same. */
#include "graph.h"

enum { SEVERAL_FORMS = HGPY_NONE - 1 };

static bool have_one_form(const hg_tensor *a, const hg_tensor *b) {
  if (a->type != b->type || a->rank != b->rank || a->offset != b->offset) return false;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->shape[d] != b->shape[d] || (a->shape[d] > 1 && a->stride[d] != b->stride[d])) return false;
  return true;
}

void hgpy_note_leaf(const graph *g, uint32_t leaf) {
  const hgpy_node *node = g->leaves.nodes[leaf];
  hgpy_storage *storage = node->storage;
  if (storage->epoch != g->epoch) {
    storage->epoch = g->epoch;
    storage->leaf_count = 0;
    storage->first_leaf = leaf;
    storage->home = HGPY_NONE;
  }
  if (!have_one_form(&node->tensor, &g->leaves.nodes[storage->first_leaf]->tensor)) storage->leaf_count = SEVERAL_FORMS;
  else if (storage->leaf_count != SEVERAL_FORMS) storage->leaf_count++;
}

/* 1 if the result has the leaf's form, and only the leaves see the memory. */
static bool can_hold(const hgpy_node *leaf, const hg_tensor *result) {
  const hgpy_storage *storage = leaf->storage;
  hg_tensor dense = hg_tensor_of(NULL, (atlas_type)result->type, result->rank, result->shape);
  return have_one_form(&leaf->tensor, &dense) && storage->references == storage->leaf_count && !storage->is_foreign &&
         !storage->is_read_only && storage->home == HGPY_NONE;
}

/* For each node of the walk, its index among leaves or results. NULL: raised. */
static uint32_t *find_places(const graph *g) {
  uint32_t *places = PyMem_Malloc((g->order.count + 1) * sizeof *places);
  if (places == NULL) return (uint32_t *)PyErr_NoMemory();
  for (uint32_t i = 0; i < g->order.count; i++) places[i] = HGPY_NONE;
  for (uint32_t i = 0; i < g->leaves.count; i++) places[g->leaves.nodes[i]->number] = i;
  for (uint32_t i = 0; i < g->results.count; i++) places[g->results.nodes[i]->number] = i;
  return places;
}

static void pair_up(graph *g, const uint32_t *places) {
  for (uint32_t i = 0; i < g->pair_count; i++) {
    const hgpy_node *given = g->pairs[i].given, *result = g->pairs[i].result;
    if (given->kind != HGPY_DATA || result->kind == HGPY_DATA) continue;
    if (given->epoch != g->epoch || result->epoch != g->epoch) continue; /* it is not part of the computation */
    uint32_t leaf = places[given->number], number = places[result->number];
    if (leaf == HGPY_NONE || number == HGPY_NONE || g->home_of[number] != HGPY_NONE) continue;
    if (!can_hold(given, &result->tensor)) continue;
    g->home_of[number] = leaf;
    given->storage->home = leaf;
    g->update_count++;
  }
}

/* Leaves with the same memory share one input. */
static bool join_leaves(graph *g) {
  for (uint32_t i = 0; i < g->leaves.count; i++) {
    uint32_t home = g->leaves.nodes[i]->storage->home;
    g->input_of[i] = home != HGPY_NONE ? home : i;
    g->alias_count += g->input_of[i] != i;
    g->readers_of[g->input_of[i]]++;
  }
  for (uint32_t i = 0, slot = 0; i < g->leaves.count; i++) g->slot_of[i] = g->input_of[i] == i ? slot++ : HGPY_NONE;
  uint64_t *at = hgpy_graph_room(g, 1 + g->update_count + g->alias_count);
  if (at == NULL) return false;
  *at++ = UINT64_MAX - g->update_count;
  for (uint32_t i = 0; i < g->results.count; i++)
    if (g->home_of[i] != HGPY_NONE) *at++ = i | (uint64_t)g->home_of[i] << 32;
  for (uint32_t i = 0; i < g->leaves.count; i++)
    if (g->input_of[i] != i) *at++ = i | (uint64_t)g->input_of[i] << 32;
  return true;
}

bool hgpy_find_homes(graph *g) {
  if (g->pair_count == 0) return true;
  uint32_t *places = find_places(g);
  if (places == NULL) return false;
  uint32_t *numbers = PyMem_Malloc((g->results.count + 3 * g->leaves.count + 1) * sizeof *numbers);
  if (numbers == NULL) {
    PyMem_Free(places);
    return PyErr_NoMemory(), false;
  }
  g->home_of = numbers;
  g->input_of = numbers + g->results.count;
  g->slot_of = g->input_of + g->leaves.count;
  g->readers_of = g->slot_of + g->leaves.count;
  memset(g->readers_of, 0, g->leaves.count * sizeof *g->readers_of);
  for (uint32_t i = 0; i < g->results.count; i++) g->home_of[i] = HGPY_NONE;
  pair_up(g, places);
  PyMem_Free(places);
  return join_leaves(g);
}

/* Marks what a gradient's value depends on, from the end backwards: inputs precede their readers. */
bool hgpy_find_apart(const graph *g, bool *is_apart) {
  bool *is_below = PyMem_Calloc(g->order.count + 1, sizeof *is_below);
  if (is_below == NULL) return false;
  for (uint32_t i = g->order.count; i-- > 0;) {
    const hgpy_node *node = g->order.nodes[i];
    bool is_gradient = node->kind == HGPY_GRADIENT;
    for (uint32_t k = 0; k < node->input_count; k++) {
      if (node->inputs[k] == NULL || node->inputs[k]->epoch != g->epoch) continue;
      if (is_below[i] || (is_gradient && k == 0)) is_below[node->inputs[k]->number] = true;
    }
  }
  for (uint32_t i = 0; i < g->leaves.count; i++)
    is_apart[i] = g->input_of[i] != i && is_below[g->leaves.nodes[g->input_of[i]]->number];
  PyMem_Free(is_below);
  return true;
}

bool hgpy_can_give_up(const graph *g) {
  for (uint32_t i = 0; i < g->results.count; i++) {
    uint32_t home = hgpy_home_of(g, i);
    if (home == HGPY_NONE || g->leaves.nodes[home]->storage->references == g->readers_of[home]) continue;
    PyErr_SetString(PyExc_ValueError, "another thread has begun to read an array that is given up here");
    return false;
  }
  return true;
}

static void go(hgpy_node *node) {
  if (node->kind != HGPY_DATA) return;
  node->kind = HGPY_GONE;
  hgpy_storage_release(node->storage);
  node->storage = NULL;
}

void hgpy_give_up(const graph *g) {
  for (uint32_t i = 0; i < g->pair_count; i++)
    if (g->pairs[i].result->kind != HGPY_DATA) go(g->pairs[i].given);
  for (uint32_t i = 0; g->pair_count > 0 && i < g->leaves.count; i++)
    if (!hgpy_has_input(g, i)) go(g->leaves.nodes[i]);
}
