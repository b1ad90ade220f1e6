/* build.c - from a graph to a computation and its executable. */
#include "graph.h"

#include <stdio.h>

static hg_value value_of(const hgpy_node *node, const hg_value *values) {
  return node != NULL ? values[node->number] : 0;
}

static hg_value add_scalar(hg_computation *c, const hgpy_node *node, bool is_general) {
  if (is_general) return hg_computation_input(c, "number", &node->tensor);
  atlas_type type = (atlas_type)node->tensor.type;
  return node->is_integer ? hg_computation_integer(c, type, node->value.integer)
                          : hg_computation_number(c, type, node->value.real);
}

/* The node's argument: the number of values, of inputs and, for vmap, of examples. */
static hg_status add_transform(hg_computation *c, const hgpy_node *node, const hg_value *inputs, hg_value *results) {
  const int64_t *counts = node->arguments[0].integers;
  size_t value_count = (size_t)counts[0], count = (size_t)counts[1];
  const hg_value *own = inputs + value_count;
  memcpy(results, inputs, value_count * sizeof *results);
  switch (node->row) {
  case HGPY_VMAP: return hg_vmap(c, (uint64_t)counts[2], own, own + count, count, results, value_count);
  case HGPY_CHECKPOINT: return hg_checkpoint(c, own, count, results, value_count);
  default: return hg_custom_gradient(c, own, count, own + count, own + count + value_count, results, value_count);
  }
}

/* Adds all results of a node that has several: they start at `first` in `many`. */
static hg_status add_many(const graph *g, hg_computation *c, const hgpy_node *node, const hg_value *values,
                          hg_value *results, uint32_t result_count) {
  hg_value few[64] = {0}, *inputs = few;
  (void)g;
  if (node->input_count > 64) inputs = PyMem_Malloc(node->input_count * sizeof *inputs);
  if (inputs == NULL) return HG_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < node->input_count; i++) inputs[i] = value_of(node->inputs[i], values);
  hg_status status;
  if (node->kind == HGPY_TRANSFORM) {
    status = add_transform(c, node, inputs, results);
  } else if (node->kind == HGPY_GRADIENT) {
    uint32_t beside = node->argument_count > 0 ? (uint32_t)node->arguments[0].integers[0] : 0;
    uint32_t count = node->input_count - 2 - beside;
    results[0] = inputs[0];
    memcpy(results + 1 + count, inputs + 2 + count, beside * sizeof *results);
    status = hg_gradient(c, inputs[0], inputs[1], inputs + 2, count, results + 1);
  } else {
    status = hg_computation_numerics(c, node->numerics);
    if (status == HG_OK)
      status = hg_compute_all(c, hgpy_row_op(node->row), inputs, node->input_count, node->arguments,
                              node->argument_count, results, result_count);
  }
  if (inputs != few) PyMem_Free(inputs);
  return status;
}

static uint32_t results_of(const hgpy_node *node) {
  if (node->kind == HGPY_GRADIENT) return node->input_count - 1;
  if (node->kind == HGPY_TRANSFORM) return (uint32_t)node->arguments[0].integers[0];
  hg_op_info info = {.size = sizeof info};
  return hg_op_query(node->row, &info) == HG_OK ? info.output_count : 1;
}

static hg_status add_call(const graph *g, hg_computation *c, const hgpy_node *node, hg_value *values, hg_value **many) {
  hgpy_kind kind = hgpy_kind_in(g, node);
  uint32_t number = node->number;
  if (kind == HGPY_RESULT) {
    values[number] = many[node->inputs[0]->number][node->result];
    return HG_OK;
  }
  if (kind == HGPY_EXAMPLE) {
    values[number] = hg_computation_example(c, &node->tensor);
    return hg_computation_status(c);
  }
  if (kind == HGPY_MANY || kind == HGPY_GRADIENT || kind == HGPY_TRANSFORM) {
    uint32_t count = results_of(node);
    many[number] = PyMem_Malloc((count + 1) * sizeof(hg_value));
    if (many[number] == NULL) return HG_OUT_OF_MEMORY;
    return add_many(g, c, node, values, many[number], count);
  }
  return add_many(g, c, node, values, &values[number], 1);
}

/* Adds leaves that read another leaf's input. If a gradient must distinguish the two, the leaf is that input + -0,
 * which has the same bits. */
static hg_status add_aliases(const graph *g, hg_computation *c, hg_value *values) {
  bool *is_apart = PyMem_Calloc(g->leaves.count + 1, sizeof *is_apart);
  if (is_apart == NULL || !hgpy_find_apart(g, is_apart)) return PyMem_Free(is_apart), HG_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < g->leaves.count; i++) {
    if (hgpy_has_input(g, i)) continue;
    const hgpy_node *leaf = g->leaves.nodes[i];
    hg_value input = values[g->leaves.nodes[g->input_of[i]]->number];
    if (is_apart[i]) {
      hg_value zero = hg_computation_number(c, (atlas_type)leaf->tensor.type, -0.0);
      input = hg_compute(c, HG_OP_add, (hg_value[]){input, zero}, 2, NULL, 0);
    }
    values[leaf->number] = input;
  }
  PyMem_Free(is_apart);
  return HG_OK;
}

/* Inputs are the leaves in order, then the numbers if these are inputs. */
static hg_status add_leaves(const graph *g, hg_computation *c, hg_value *values, bool is_general) {
  for (uint32_t i = 0; i < g->leaves.count; i++) {
    if (!hgpy_has_input(g, i)) continue;
    char name[16];
    snprintf(name, sizeof name, "x%u", (unsigned)i);
    values[g->leaves.nodes[i]->number] = hg_computation_input(c, name, &g->leaves.nodes[i]->tensor);
  }
  for (uint32_t i = 0; i < g->scalars.count; i++)
    values[g->scalars.nodes[i]->number] = add_scalar(c, g->scalars.nodes[i], is_general);
  if (g->alias_count > 0 && add_aliases(g, c, values) != HG_OK) return HG_OUT_OF_MEMORY;
  return hg_computation_status(c);
}

static hg_status add_nodes(const graph *g, hg_computation *c, hg_value *values, hg_value **many, const hg_tensor *into,
                           bool is_general) {
  hg_status status = add_leaves(g, c, values, is_general);
  for (uint32_t i = 0; i < g->order.count && status == HG_OK; i++) {
    const hgpy_node *node = g->order.nodes[i];
    if (values[i] == 0 && many[i] == NULL) status = add_call(g, c, node, values, many);
  }
  for (uint32_t i = 0; i < g->results.count && status == HG_OK; i++) {
    char name[16];
    uint32_t home = hgpy_home_of(g, i);
    hg_value value = values[g->results.nodes[i]->number];
    snprintf(name, sizeof name, "y%u", (unsigned)i);
    status = home == HGPY_NONE ? hg_computation_output(c, name, value, into)
                               : hg_computation_update(c, values[g->leaves.nodes[home]->number], value);
  }
  return status;
}

/* A computation of the graph; NULL: raised. */
static hg_computation *build(const graph *g, const hg_tensor *into, bool is_general) {
  hg_computation *c = NULL;
  hg_value *values = PyMem_Calloc(g->order.count + 1, sizeof *values);
  hg_value **many = PyMem_Calloc(g->order.count + 1, sizeof *many);
  hg_status status = HG_OUT_OF_MEMORY;
  bool has_memory = values != NULL && many != NULL;
  if (has_memory) status = hg_computation_create(NULL, &c);
  if (status == HG_OK) status = add_nodes(g, c, values, many, into, is_general);
  for (uint32_t i = 0; many != NULL && i < g->order.count; i++) PyMem_Free(many[i]);
  PyMem_Free(many);
  PyMem_Free(values);
  if (status == HG_OK) return c;
  if (has_memory) hgpy_raise(status);
  else PyErr_NoMemory();
  hg_computation_release(c);
  return NULL;
}

hg_executable *hgpy_compile_graph(const graph *g, const hg_tensor *into, bool is_general) {
  hg_executable *executable = NULL;
  hg_computation *c = build(g, into, is_general);
  if (c == NULL) return NULL;
  hg_executor *executor = g->device->executor;
  hg_status status;
  if (!hgpy_find_vendor(g->device)) { /* this lets other threads run */
    hg_computation_release(c);
    return NULL;
  }
  HGPY_BEGIN_CALL
  status = hg_compile(executor, c, NULL, &executable);
  hg_computation_release(c);
  HGPY_END_CALL
  return hgpy_ok(status) ? executable : NULL;
}
