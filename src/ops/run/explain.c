/* explain.c - finds out which index was out of range. A program replaces a wrong index by an address that must fault,
 * so the fault itself does not tell. After a fault the indices of the run are computed again from its inputs; a run
 * without faults pays nothing for that. */
#include "ops/run/executable.h"

#include "atlas/value.h"
#include "ops/graph/table.h"

/* An index of a step that may be out of range. */
typedef struct guard {
  value_id index; /* the kept node with its numbers, in any order, each at least once */
  uint8_t bounds; /* ops_bounds */
  uint8_t axis;
  uint64_t length; /* the length of the indexed axis */
  const char *operation;
} guard;

struct ops_guards {
  hg_array list;  /* guard */
  hg_array nodes; /* ops_node: what the indices are computed from; the `index` of an input is its position in
                     `inputs` */
  hg_array inputs; /* uint32_t: places */
};

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

/* 1 if the view has each element of an input of that shape at least once. */
static int shows_all(const ops_node *node, const ops_shape *shape) {
  if (ops_count(&node->shape) == 0) return 0;
  for (uint32_t d = 0; d < shape->rank; d++) {
    uint32_t found = 0;
    if (shape->size[d] == 1) continue;
    for (uint32_t j = 0; j < node->shape.rank; j++) {
      if (node->view.axis[j] != (int)d) continue;
      int64_t step = node->view.step[j];
      if ((step != 1 && step != -1) || node->shape.size[j] != shape->size[d]) return 0;
      found++;
    }
    if (found != 1) return 0;
  }
  return 1;
}

/* A value with the same numbers in which no view repeats any: often the user's own. */
static value_id without_views(const hg_computation *c, value_id value) {
  for (;;) {
    const ops_node *node = ops_at(c, value);
    int is_view = node->kind == OPS_VIEW && shows_all(node, &ops_at(c, node->input[0])->shape);
    if (!is_view && node->kind != OPS_RESHAPE) return value;
    value = node->input[0];
  }
}

static const char *name_of_call(const ops_call *call) {
  const ops_row *row = call != NULL ? ops_row_of(call->op) : NULL;
  return row != NULL ? row->name : NULL;
}

static uint64_t length_of(const hg_computation *c, const ops_node *node) {
  return ops_at(c, node->input[0])->shape.size[node->axis];
}

/* The state of the search for indices. */
typedef struct search {
  const hg_allocator *allocator;
  ops_guards *guards;
  const hg_computation *c;
  uint32_t *marks;  /* by node: zero except during a walk */
  uint32_t *named;  /* by index value: the first node of a call that takes by it; 0: there is none */
  uint32_t *next;   /* by such a node: the next one */
  hg_array stack, met; /* value_id: of a walk; the named nodes that it has met */
  int has_named;
} search;

/* Lists the nodes of calls that take by an index, by index. */
static void list_named(search *s) {
  for (value_id v = (value_id)s->c->nodes.count; v > 0; v--) {
    const ops_node *node = ops_at(s->c, v);
    s->has_named |= ops_is_named(node);
    if (!ops_is_guarded(node) || name_of_call(ops_call_of(s->c, v)) == NULL) continue;
    uint32_t *list = &s->named[without_views(s->c, node->input[1]) - 1];
    s->next[v - 1] = *list;
    *list = v;
  }
}

/* A node of a gradient belongs to no call: it is named after the operation that uses the same index. */
static const char *operation_of(const search *s, value_id value) {
  const char *name = name_of_call(ops_call_of(s->c, value));
  const ops_node *node = ops_at(s->c, value);
  value_id v = name == NULL ? s->named[without_views(s->c, node->input[1]) - 1] : 0;
  while (v != 0 && length_of(s->c, ops_at(s->c, v)) != length_of(s->c, node)) v = s->next[v - 1];
  if (v != 0) name = name_of_call(ops_call_of(s->c, v));
  return name != NULL ? name : ops_kind_of(node)->name;
}

/* Marks everything that a marked node is computed from. */
static void mark_inputs(const ops_node *nodes, uint32_t count, uint32_t *marks) {
  for (uint32_t i = count; i-- > 0;)
    for (uint32_t k = 0; marks[i] != 0 && k < nodes[i].input_count; k++) marks[nodes[i].input[k] - 1] = 1;
}

/* The named nodes that a value is computed from, ascending; a node behind another one is left out, since that stands
 * for it. */
static hg_status find_named(search *s, value_id root) {
  s->met.count = 0;
  if (!s->has_named) return HG_OK;
  if (!hg_array_push(s->allocator, &s->stack, root)) return hg_fail_memory("an index", sizeof root);
  while (s->stack.count > 0) {
    value_id value = ((const value_id *)s->stack.data)[--s->stack.count];
    const ops_node *node = ops_at(s->c, value);
    if (s->marks[value - 1] == root) continue;
    s->marks[value - 1] = root;
    uint32_t inputs = ops_is_named(node) ? 0 : node->input_count;
    int ok = !ops_is_named(node) || hg_array_push(s->allocator, &s->met, value);
    for (uint32_t k = 0; k < inputs && ok; k++) ok = hg_array_push(s->allocator, &s->stack, node->input[k]);
    if (!ok) return hg_fail_memory("an index", s->stack.count);
  }
  value_id *met = s->met.data;
  for (size_t i = 1; i < s->met.count; i++)
    for (size_t k = i; k > 0 && met[k - 1] > met[k]; k--) {
      value_id other = met[k];
      met[k] = met[k - 1], met[k - 1] = other;
    }
  return HG_OK;
}

static hg_status add_guard(const hg_allocator *allocator, ops_guards *guards, const guard *one) {
  return hg_array_append(allocator, &guards->list, one, 1) != NULL ? HG_OK : hg_fail_memory("an index", sizeof *one);
}

static uint8_t axis_of(const ops_node *named) {
  uint8_t axis = 0;
  while (named->axes >> axis != 1) axis++;
  return axis;
}

/* Adds the guards of what an index is computed from, as far as that is named, and then the index's own. */
static hg_status add_guards(search *s, value_id value) {
  const hg_computation *c = s->c;
  const ops_node *node = ops_at(c, value);
  guard own = {.index = without_views(c, node->input[1]),
               .bounds = node->bounds,
               .axis = (uint8_t)(node->axis - node->index),
               .length = length_of(c, node),
               .operation = operation_of(s, value)};
  HG_TRY(find_named(s, node->input[1]));
  for (size_t i = 0; i < s->met.count; i++) {
    const ops_node *named = ops_at(c, ((const value_id *)s->met.data)[i]);
    guard part = {.index = without_views(c, named->input[0]),
                  .bounds = OPS_WRAP,
                  .axis = axis_of(named),
                  .length = named->bits,
                  .operation = own.operation};
    HG_TRY(add_guard(s->allocator, s->guards, &part));
  }
  return add_guard(s->allocator, s->guards, &own);
}

/* Returns its position among the kept inputs. */
static hg_status keep_input(const hg_allocator *allocator, ops_guards *guards, uint32_t *place) {
  const uint32_t *inputs = guards->inputs.data;
  uint32_t number = 0;
  while (number < guards->inputs.count && inputs[number] != *place) number++;
  if (number == guards->inputs.count && hg_array_append(allocator, &guards->inputs, place, 1) == NULL)
    return hg_fail_memory("the indices of an executable", (number + 1) * sizeof *inputs);
  *place = number;
  return HG_OK;
}

/* Keeps what the indices are computed from; numbers: by node of the computation, all zero. */
static hg_status keep_nodes(const hg_allocator *allocator, ops_guards *guards, const hg_computation *c,
                            uint32_t *numbers) {
  guard *list = guards->list.data;
  const ops_node *nodes = c->nodes.data;
  for (size_t g = 0; g < guards->list.count; g++) numbers[list[g].index - 1] = 1;
  mark_inputs(nodes, (uint32_t)c->nodes.count, numbers);
  for (uint32_t i = 0; i < c->nodes.count; i++) {
    if (numbers[i] == 0) continue;
    ops_node copy = nodes[i];
    for (uint32_t k = 0; k < copy.input_count; k++) copy.input[k] = numbers[copy.input[k] - 1];
    if (copy.kind == OPS_INPUT) HG_TRY(keep_input(allocator, guards, &copy.index));
    if (hg_array_append(allocator, &guards->nodes, &copy, 1) == NULL)
      return hg_fail_memory("the indices of an executable", guards->nodes.count * sizeof copy);
    numbers[i] = (uint32_t)guards->nodes.count;
  }
  for (size_t g = 0; g < guards->list.count; g++) list[g].index = numbers[list[g].index - 1];
  return HG_OK;
}

/* In the order of nodes, since none is computed from a later one. `is_run`: by node, all zero. */
static hg_status find_guards(search *s, const hg_executable *e, uint32_t *is_run) {
  const value_id *values = e->plan.values.data;
  const hg_computation *c = s->c;
  for (size_t i = 0; i < e->plan.values.count; i++)
    is_run[values[i] - 1] = (uint32_t)ops_is_guarded(ops_at(c, values[i]));
  list_named(s);
  for (uint32_t i = 0; i < c->nodes.count; i++)
    if (is_run[i] != 0) HG_TRY(add_guards(s, i + 1));
  memset(s->marks, 0, c->nodes.count * sizeof *s->marks);
  return keep_nodes(s->allocator, s->guards, c, s->marks);
}

static hg_status note_guards(hg_executable *e, const hg_computation *c) {
  const hg_allocator *allocator = &e->executor->allocator;
  uint64_t count = c->nodes.count;
  uint32_t *room = hg_allocate(allocator, 4 * count, sizeof *room);
  if (room == NULL) return hg_fail_memory("the indices of an executable", count * sizeof *room);
  search s = {.allocator = allocator, .guards = e->guards, .c = c, .marks = room};
  s.named = room + count, s.next = room + 2 * count;
  s.stack.element_size = s.met.element_size = sizeof(value_id);
  hg_status status = find_guards(&s, e, room + 3 * count);
  hg_array_release(allocator, &s.stack);
  hg_array_release(allocator, &s.met);
  hg_release(allocator, room);
  return status;
}

hg_status ops_note_guards(hg_executable *e, const hg_computation *c) {
  const hg_allocator *allocator = &e->executor->allocator;
  const value_id *values = e->plan.values.data;
  size_t i = 0;
  while (i < e->plan.values.count && !ops_is_guarded(ops_at(c, values[i]))) i++;
  if (i == e->plan.values.count) return HG_OK;
  e->guards = hg_allocate(allocator, 1, sizeof *e->guards);
  if (e->guards == NULL) return hg_fail_memory("the indices of an executable", sizeof *e->guards);
  e->guards->list.element_size = sizeof(guard);
  e->guards->nodes.element_size = sizeof(ops_node);
  e->guards->inputs.element_size = sizeof(uint32_t);
  return note_guards(e, c);
}

void ops_guards_release(hg_executable *e) {
  const hg_allocator *allocator = &e->executor->allocator;
  if (e->guards == NULL) return;
  hg_array_release(allocator, &e->guards->list);
  hg_array_release(allocator, &e->guards->nodes);
  hg_array_release(allocator, &e->guards->inputs);
  hg_release(allocator, e->guards);
  e->guards = NULL;
}

uint64_t ops_guards_bytes(const hg_executable *e) {
  const ops_guards *guards = e->guards;
  if (guards == NULL) return 0;
  return sizeof *guards + guards->list.count * sizeof(guard) + guards->nodes.count * sizeof(ops_node) +
         guards->inputs.count * sizeof(uint32_t);
}

static int is_among(const char *const *names, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0) return 1;
  return 0;
}

void ops_guards_names(const hg_executable *e, char *text, size_t text_bytes) {
  enum { MOST = 48 }; /* more do not fit into the text */
  const guard *list = e->guards != NULL ? e->guards->list.data : NULL;
  const char *told[MOST];
  uint32_t told_count = 0;
  size_t used = 0;
  text[0] = '\0';
  for (size_t g = 0; e->guards != NULL && g < e->guards->list.count && told_count < MOST; g++) {
    const char *name = list[g].operation;
    if (used + strlen(name) + sizeof ", " > text_bytes || is_among(told, told_count, name)) continue;
    int written = snprintf(text + used, text_bytes - used, "%s%s", used > 0 ? ", " : "", name);
    used += written > 0 ? (size_t)written : 0;
    told[told_count++] = name;
  }
}

/* ---- what a run was given ---------------------------------------------------------------------------------------- */

static uintptr_t first_byte(const ops_place *place, const hg_tensor *tensor) {
  uint64_t first = (uint64_t)(tensor->offset + place->lowest) * place->element_bytes;
  return (uintptr_t)tensor->buffer->storage->address + tensor->buffer->offset + first;
}

/* 1 if the run itself may have overwritten the input. */
static int is_overwritten(const hg_executable *e, const hg_tensor *inputs, const hg_tensor *outputs, uint32_t input) {
  const ops_place *own = &e->places[input];
  for (uint32_t p = 0; p < e->place_count && own->extent > 0; p++) {
    const ops_place *place = &e->places[p];
    if (!place->is_written || place->extent == 0) continue;
    uintptr_t begin = first_byte(own, &inputs[input]), end = begin + own->extent * own->element_bytes;
    uintptr_t at = first_byte(place, p < e->input_count ? &inputs[p] : &outputs[p - e->input_count]);
    if (at < end && begin < at + place->extent * place->element_bytes) return 1;
  }
  return 0;
}

uint32_t ops_guards_input_count(const hg_executable *e) { return (uint32_t)e->guards->inputs.count; }

uint32_t ops_guards_place(const hg_executable *e, uint32_t number) {
  return ((const uint32_t *)e->guards->inputs.data)[number];
}

void ops_guards_input(const hg_executable *e, uint32_t number, const hg_tensor *inputs, const hg_tensor *outputs,
                      hg_tensor *input) {
  uint32_t place = ops_guards_place(e, number);
  *input = inputs[place];
  if (is_overwritten(e, inputs, outputs, place)) input->type = ATLAS_NONE;
}

/* ---- computing an index once more -------------------------------------------------------------------------------- */

typedef struct look {
  const hg_executable *e;
  const hg_tensor *of_indices; /* by position of an input */
  const guard *of;
  hg_computation *computation;
  hg_tensor *used; /* the inputs of the computation that is run */
  uint32_t used_count;
  uint32_t *numbers; /* by kept node: its value in that computation */
  hg_tensor result;
  void *host; /* the elements of the result */
  uint64_t count;
} look;

static hg_status build(look *l) {
  const ops_node *nodes = l->e->guards->nodes.data;
  hg_computation *c = l->computation;
  l->numbers[l->of->index - 1] = 1;
  mark_inputs(nodes, l->of->index, l->numbers);
  for (uint32_t i = 0; i < l->of->index; i++) {
    if (l->numbers[i] == 0) continue;
    ops_node copy = nodes[i];
    for (uint32_t k = 0; k < copy.input_count; k++) copy.input[k] = l->numbers[copy.input[k] - 1];
    if (copy.kind != OPS_INPUT) {
      l->numbers[i] = ops_add(c, &copy);
    } else if (l->of_indices[copy.index].type == ATLAS_NONE) {
      return HG_NOT_FOUND;
    } else {
      l->used[l->used_count++] = l->of_indices[copy.index];
      l->numbers[i] = hg_computation_input(c, NULL, &l->of_indices[copy.index]);
    }
  }
  HG_TRY(hg_computation_status(c));
  return hg_computation_output(c, NULL, l->numbers[l->of->index - 1], NULL);
}

static hg_status compute(look *l) {
  hg_executor *executor = l->e->executor;
  hg_executable *e = NULL;
  hg_buffer_desc desc = {.size = sizeof desc, .flags = HG_BUFFER_UNINIT};
  HG_TRY(hg_computation_describe(l->computation, l->numbers[l->of->index - 1], &l->result));
  l->count = hg_tensor_count(&l->result);
  uint64_t bytes = l->count * atlas_bytes((atlas_type)l->result.type);
  l->host = hg_allocate_unset(&executor->allocator, bytes, 1);
  if (l->host == NULL) return hg_fail_memory("the numbers of an index", bytes);
  HG_TRY(hg_buffer_create(executor, &desc, bytes, &l->result.buffer));
  HG_TRY(ops_executable_create(executor, l->computation, OPS_UNASKED, NULL, &e));
  ops_guards_release(e); /* without guards, since earlier ones would have found its faults */
  hg_status status = ops_run(e, l->used, &l->result, NULL, atomic_load(&executor->cancels), NULL);
  hg_executable_release(e);
  return status == HG_OK ? hg_buffer_read(l->result.buffer, 0, l->host, bytes) : status;
}

static uint64_t element_of(const void *elements, uint32_t bytes, uint64_t at) {
  switch (bytes) {
  case 1: return ((const uint8_t *)elements)[at];
  case 2: return ((const uint16_t *)elements)[at];
  case 4: return ((const uint32_t *)elements)[at];
  default: return ((const uint64_t *)elements)[at];
  }
}

static int is_signed(atlas_type type) { return atlas_kind(type) == ATLAS_KIND_SINT; }

static int is_in_range(const guard *of, atlas_type type, uint64_t bits) {
  if (!is_signed(type)) return bits < of->length;
  int64_t number = (int64_t)atlas_convert(ATLAS_i64, type, bits);
  if (number >= 0) return (uint64_t)number < of->length;
  return of->bounds == OPS_WRAP && 0 - (uint64_t)number <= of->length;
}

/* HG_OK with the first wrong number; HG_NOT_FOUND: there is none. */
static hg_status find_wrong(look *l, uint64_t *bits) {
  const hg_allocator *allocator = &l->e->executor->allocator;
  uint64_t kept = l->e->guards->nodes.count;
  HG_TRY(hg_computation_create(allocator, &l->computation));
  l->used = hg_allocate_unset(allocator, l->e->guards->inputs.count, sizeof *l->used);
  l->numbers = hg_allocate(allocator, kept, sizeof *l->numbers);
  if (l->used == NULL || l->numbers == NULL) return hg_fail_memory("the indices of a run", kept);
  HG_TRY(build(l));
  HG_TRY(compute(l));
  atlas_type type = (atlas_type)l->result.type;
  for (uint64_t i = 0; i < l->count; i++) {
    *bits = element_of(l->host, atlas_bytes(type), i);
    if (is_in_range(l->of, type, *bits)) continue;
    int is_made = type == ATLAS_i64 && *bits == UINT64_C(1) << 63; /* a marker that one of several indices is wrong */
    return is_made ? HG_NOT_FOUND : HG_OK;
  }
  return HG_NOT_FOUND;
}

static void tell(const look *l, uint64_t bits, hg_fault *fault, char *text, size_t text_bytes) {
  atlas_type type = (atlas_type)l->result.type;
  char number[32];
  fault->number = (int64_t)atlas_convert(ATLAS_i64, type, bits);
  if (is_signed(type)) snprintf(number, sizeof number, "%lld", (long long)fault->number);
  else snprintf(number, sizeof number, "%llu", (unsigned long long)bits);
  if (!is_signed(type) && bits > INT64_MAX) fault->number = INT64_MAX;
  fault->length = l->of->length;
  fault->axis = l->of->axis;
  fault->has_number = 1;
  snprintf(text, text_bytes, "%s: index %s is out of range of axis %u, which has %llu elements", l->of->operation,
           number, (unsigned)fault->axis, (unsigned long long)fault->length);
}

int ops_explain(const hg_executable *e, const hg_tensor *of_indices, hg_fault *fault, char *text, size_t text_bytes) {
  const hg_allocator *allocator = &e->executor->allocator;
  const guard *list = e->guards->list.data;
  int is_told = 0;
  for (size_t g = 0; g < e->guards->list.count && !is_told; g++) {
    look l = {.e = e, .of_indices = of_indices, .of = &list[g]};
    uint64_t bits = 0;
    is_told = find_wrong(&l, &bits) == HG_OK;
    if (is_told) tell(&l, bits, fault, text, text_bytes);
    hg_computation_release(l.computation);
    hg_buffer_release(l.result.buffer);
    hg_release(allocator, l.used);
    hg_release(allocator, l.numbers);
    hg_release(allocator, l.host);
  }
  return is_told;
}
