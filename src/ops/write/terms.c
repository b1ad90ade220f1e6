/* terms.c - turns nodes at an index into terms, and their indices into forms. See expression.h. */
#include "ops/write/expression.h"

#include <string.h>

/* A node at an index (a form for each dimension, from seen_at[first] on) that has become a term. */
typedef struct seen_node {
  value_id value;
  term_id term;
  uint32_t first;
} seen_node;

void ops_terms_begin(ops_terms *t, const ops_group *group, const ops_shape *space) {
  memset(t, 0, sizeof *t);
  t->group = group;
  t->space = *space;
  t->variable_count = space->rank;
  t->terms.element_size = sizeof(ops_term);
  t->seen.element_size = sizeof(seen_node);
  t->seen_at.element_size = sizeof(ops_form);
}

void ops_terms_release(ops_terms *t) {
  const hg_allocator *allocator = &t->group->plan->allocator;
  hg_array_release(allocator, &t->terms);
  hg_array_release(allocator, &t->seen);
  hg_array_release(allocator, &t->seen_at);
  for (uint32_t i = 0; i < OPS_MAX_TERM_DEPTH / OPS_INDEX_LEVELS; i++) hg_release(allocator, t->indices[i]);
}

/* A zeroed index for the current node, next to those of the nodes that contain its term; NULL: out of memory, which is
 * a failure. On the stack, indices could exceed what a thread has. */
static ops_form *index_room(ops_terms *t) {
  enum { PIECE = OPS_INDEX_LEVELS * HG_MAX_RANK };
  uint32_t level = t->depth - 1;
  ops_form **piece = &t->indices[level / OPS_INDEX_LEVELS];
  if (*piece == NULL) *piece = hg_allocate_unset(&t->group->plan->allocator, PIECE, sizeof **piece);
  if (*piece == NULL) {
    (void)hg_fail_memory("the terms of a launch", PIECE * sizeof **piece);
    return NULL;
  }
  return memset(*piece + (size_t)(level % OPS_INDEX_LEVELS) * HG_MAX_RANK, 0, HG_MAX_RANK * sizeof **piece);
}

void ops_identity(const ops_shape *space, ops_form *index) {
  memset(index, 0, space->rank * sizeof *index);
  for (uint32_t i = 0; i < space->rank; i++) index[i].factor[i] = 1;
}

/* ---- forms ------------------------------------------------------------------------------------------------------- */

static void add_multiple(ops_form *sum, const ops_form *form, int64_t times) {
  sum->constant += times * form->constant;
  for (uint32_t i = 0; i < OPS_MAX_VARIABLES; i++) sum->factor[i] += times * form->factor[i];
}

ops_form ops_address(const ops_storage *storage, const ops_form *index) {
  ops_form form = {.constant = -storage->lowest};
  for (uint32_t d = 0; d < storage->shape.rank; d++) add_multiple(&form, &index[d], storage->stride[d]);
  return form;
}

static ops_form dense(const ops_shape *shape, const ops_form *index) {
  ops_form form = {.constant = 0};
  int64_t stride = 1;
  for (uint32_t d = shape->rank; d-- > 0; stride *= (int64_t)shape->size[d]) add_multiple(&form, &index[d], stride);
  return form;
}

int ops_is_constant(const ops_form *form) {
  for (uint32_t i = 0; i < OPS_MAX_VARIABLES; i++)
    if (form->factor[i] != 0) return 0;
  return 1;
}

uint32_t ops_varies(const ops_terms *t, const ops_form *form) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < t->variable_count; i++) {
    if (form->factor[i] == 0) continue;
    bits |= i < t->space.rank ? 1u << i : ops_varies(t, &t->derived[i].of);
  }
  return bits;
}

/* 1 if the form is one whole coordinate of that size: its values are 0 .. size - 1, so it is its own remainder. */
static int is_below(const ops_terms *t, const ops_form *form, uint64_t size) {
  uint64_t largest = 0;
  if (form->constant < 0) return 0;
  largest = (uint64_t)form->constant;
  for (uint32_t i = 0; i < t->variable_count; i++) {
    if (form->factor[i] == 0) continue;
    if (form->factor[i] < 0 || i >= t->space.rank) return 0;
    largest += (uint64_t)form->factor[i] * (t->space.size[i] - (t->space.size[i] != 0));
  }
  return largest < size;
}

/* A derived variable as a form; equal ones are one variable. */
static hg_status derive(ops_terms *t, ops_derived_kind kind, const ops_form *of, uint64_t size, ops_form *out) {
  uint32_t found = t->space.rank;
  for (; found < t->variable_count; found++)
    if (t->derived[found].kind == kind && t->derived[found].size == size &&
        memcmp(&t->derived[found].of, of, sizeof *of) == 0)
      break;
  if (found == OPS_MAX_VARIABLES) return hg_fail(HG_UNSUPPORTED, "more than %d index variables", OPS_MAX_VARIABLES);
  if (found == t->variable_count) {
    t->derived[found] = (ops_derived){.of = *of, .size = size, .kind = (uint8_t)kind};
    t->variable_count++;
  }
  *out = (ops_form){.constant = 0};
  out->factor[found] = 1;
  return HG_OK;
}

/* quotient * divisor + remainder = form, as forms. Splits off multiples of the divisor without a division. */
static hg_status divide(ops_terms *t, const ops_form *form, uint64_t divisor, ops_form *quotient, ops_form *remainder) {
  if (divisor == 0) { /* of a tensor without elements: nobody uses it */
    *quotient = *remainder = (ops_form){.constant = 0};
    return HG_OK;
  }
  ops_form whole = {.constant = 0}, rest = {.constant = 0};
  int64_t by = (int64_t)divisor;
  int is_exact = form->constant >= 0;
  for (uint32_t i = 0; i < t->variable_count; i++) {
    if (form->factor[i] < 0) is_exact = 0;
    if (form->factor[i] % by == 0) whole.factor[i] = form->factor[i] / by;
    else rest.factor[i] = form->factor[i];
  }
  whole.constant = form->constant / by;
  rest.constant = form->constant % by;
  if (is_exact && is_below(t, &rest, divisor)) {
    *quotient = whole, *remainder = rest;
    return HG_OK;
  }
  HG_TRY(derive(t, OPS_QUOTIENT, form, divisor, quotient));
  return derive(t, OPS_REMAINDER, form, divisor, remainder);
}

/* Derived variables come behind those that they are of. */
void ops_rejoin(const ops_terms *t, ops_form *form) {
  for (uint32_t v = t->variable_count; v-- > t->space.rank;) {
    const ops_derived *quotient = &t->derived[v];
    if (form->factor[v] == 0 || quotient->kind != OPS_QUOTIENT) continue;
    for (uint32_t u = t->space.rank; u < t->variable_count; u++) {
      const ops_derived *rest = &t->derived[u];
      int64_t times = form->factor[u];
      if (rest->kind != OPS_REMAINDER || rest->size != quotient->size ||
          times * (int64_t)rest->size != form->factor[v] ||
          memcmp(&rest->of, &quotient->of, sizeof rest->of) != 0)
        continue;
      form->factor[u] = form->factor[v] = 0;
      add_multiple(form, &quotient->of, times);
      break;
    }
  }
}

/* Clamps a form to 0 .. size - 1. */
static hg_status clamp(ops_terms *t, ops_form *form, uint64_t size) {
  int is_positive = form->constant >= 0;
  for (uint32_t i = 0; i < t->variable_count; i++) is_positive &= form->factor[i] >= 0;
  if (is_positive && is_below(t, form, size)) return HG_OK;
  ops_form of = *form;
  return derive(t, OPS_CLAMPED, &of, size, form);
}

/* ---- reshapes ---------------------------------------------------------------------------------------------------- */

/* Both shapes are cut into groups of dimensions with equal products, from the last on; within a group the number in C
 * order is divided by the sizes. */
hg_status ops_reshaped(ops_terms *t, const ops_shape *from, const ops_shape *to, const ops_form *index,
                       ops_form *out) {
  uint32_t i = from->rank, o = to->rank;
  while (i > 0) {
    uint32_t first = i - 1, first_to = o;
    uint64_t have = from->size[first], sum = 1;
    ops_form number = {.constant = 0};
    int64_t stride = 1;
    for (;;) { /* until both groups have the same product */
      if (have == sum) break;
      if (have < sum) {
        if (first == 0) break;
        have *= from->size[--first];
      } else {
        if (first_to == 0) break;
        first_to--;
        add_multiple(&number, &index[first_to], stride);
        stride *= (int64_t)to->size[first_to];
        sum *= to->size[first_to];
      }
    }
    ops_rejoin(t, &number);
    for (uint32_t d = i; d-- > first;) {
      if (d == first || ops_is_constant(&number)) out[d] = number;
      else {
        ops_form quotient = {.constant = 0};
        HG_TRY(divide(t, &number, from->size[d], &quotient, &out[d]));
        number = quotient;
        continue;
      }
      if (d != first) { /* the number is known */
        int64_t known = number.constant, size = (int64_t)from->size[d];
        out[d].constant = size == 0 ? 0 : known % size;
        number.constant = size == 0 ? 0 : known / size;
      }
    }
    i = first;
    o = first_to;
  }
  return HG_OK;
}

/* ---- terms ------------------------------------------------------------------------------------------------------- */

static int equal_terms(const ops_term *a, const ops_term *b) {
  return a->kind == b->kind && a->type == b->type && a->op == b->op && a->storage == b->storage &&
         a->bounds == b->bounds && a->bits == b->bits && a->stride == b->stride && a->extent == b->extent &&
         memcmp(a->input, b->input, sizeof a->input) == 0 && (a->kind != TERM_BOUND || a->value == b->value) &&
         memcmp(&a->form, &b->form, sizeof a->form) == 0;
}

static hg_status add_term(ops_terms *t, ops_term *term, term_id *out) {
  ops_rejoin(t, &term->form);
  term->varies = ops_varies(t, &term->form);
  for (uint32_t i = 0; i < term->input_count; i++) term->varies |= ops_term_at(t, term->input[i])->varies;
  for (uint32_t id = (uint32_t)t->terms.count; id > 0; id--)
    if (equal_terms(ops_term_at(t, id), term)) {
      *out = id;
      return HG_OK;
    }
  if (t->terms.count >= OPS_MAX_TERMS) return hg_fail(HG_UNSUPPORTED, "more than %d values in a launch", OPS_MAX_TERMS);
  if (hg_array_append(&t->group->plan->allocator, &t->terms, term, 1) == NULL)
    return hg_fail_memory("the terms of a launch", sizeof *term);
  *out = (term_id)t->terms.count;
  return HG_OK;
}

hg_status ops_load_of(ops_terms *t, uint32_t storage, atlas_type type, const ops_form *form, term_id *out) {
  ops_term term;
  memset(&term, 0, sizeof term);
  term.kind = TERM_LOAD;
  term.type = (uint8_t)type;
  term.storage = storage;
  term.form = *form;
  return add_term(t, &term, out);
}

hg_status ops_reads(ops_terms *t, uint32_t storage) {
  const ops_form zero = {.constant = 0};
  const ops_storage *of = (const ops_storage *)t->group->plan->storages.data + storage;
  term_id unused;
  return ops_load_of(t, storage, (atlas_type)of->type, &zero, &unused);
}

/* 1 if its elements are consecutive, in C order. */
int ops_is_dense(const ops_storage *storage) {
  int64_t stride = 1;
  for (uint32_t d = storage->shape.rank; d-- > 0; stride *= (int64_t)storage->shape.size[d])
    if (storage->shape.size[d] != 1 && storage->stride[d] != stride) return 0;
  return 1;
}

static int is_in_group(const ops_group *group, value_id value) {
  uint32_t low = 0, high = group->node_count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (group->nodes[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low < group->node_count && group->nodes[low] == value;
}

/* 1 if the group only reads the value. */
static int is_loaded(const ops_group *group, value_id value) {
  return group->storage_of[value - 1] != 0 && !is_in_group(group, value);
}

/* The index of the only element of a value without axes. */
static const ops_form nowhere[HG_MAX_RANK];

/* A value under another shape: if it is dense, its place is the same number in that shape. */
static hg_status term_reshape(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term,
                              term_id *out) {
  (void)term;
  const ops_group *group = t->group;
  value_id from = node->input[0];
  while (!is_loaded(group, from) && ops_at(group->computation, from)->kind == OPS_RESHAPE)
    from = ops_at(group->computation, from)->input[0];
  if (is_loaded(group, from)) {
    uint32_t number = group->storage_of[from - 1] - 1;
    const ops_storage *storage = (const ops_storage *)group->plan->storages.data + number;
    ops_form place = dense(&node->shape, index);
    if (ops_is_dense(storage)) return ops_load_of(t, number, (atlas_type)node->type, &place, out);
  }
  ops_form *inner = index_room(t);
  if (inner == NULL) return HG_OUT_OF_MEMORY;
  HG_TRY(ops_reshaped(t, &ops_at(group->computation, node->input[0])->shape, &node->shape, index, inner));
  return ops_term_of(t, node->input[0], inner, out);
}

static void view_index(const ops_node *node, uint32_t input_rank, const ops_form *index, ops_form *inner) {
  for (uint32_t d = 0; d < input_rank; d++) inner[d].constant = node->view.start[d];
  for (uint32_t j = 0; j < node->shape.rank; j++)
    if (node->view.axis[j] >= 0) add_multiple(&inner[node->view.axis[j]], &index[j], node->view.step[j]);
}

/* The distance between elements along an axis of what a gather takes from, which may be stored as the value that it
 * repeats. */
static int64_t taken_stride(const ops_node *source, int is_repeated, const ops_storage *memory, uint32_t d) {
  int axis = is_repeated ? source->view.axis[d] : (int)d;
  return axis < 0 ? 0 : memory->stride[axis];
}

/* Input 0 of a gather: at the index, except along `axis`, where input 1, which has the result's shape, gives it. */
static hg_status term_gather(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term,
                             term_id *out) {
  const ops_node *source = ops_at(t->group->computation, node->input[0]);
  int is_repeated = t->group->storage_of[node->input[0] - 1] == 0;
  value_id from = is_repeated ? ops_taken_from(t->group->computation, node) : node->input[0];
  uint32_t storage = t->group->storage_of[from - 1];
  if (storage == 0) return hg_fail(HG_UNSUPPORTED, "a gather from what no storage holds");
  term->kind = TERM_GATHER;
  term->storage = storage - 1;
  term->bounds = node->bounds;
  const ops_storage *memory = (const ops_storage *)t->group->plan->storages.data + term->storage;
  term->form.constant = -memory->lowest;
  for (uint32_t d = 0; d < source->shape.rank; d++)
    if (d != node->axis) add_multiple(&term->form, &index[d], taken_stride(source, is_repeated, memory, d));
  term->stride = taken_stride(source, is_repeated, memory, node->axis);
  term->extent = source->shape.size[node->axis];
  term->input_count = 1;
  HG_TRY(ops_term_of(t, node->input[1], index, &term->input[0]));
  return add_term(t, term, out);
}

/* condition ? a : b as a term that stands for `value`. */
static void selects(ops_term *term, term_id condition, term_id a, term_id b) {
  term->kind = TERM_POINTWISE;
  term->op = ATLAS_OP_sel;
  term->input_count = 3;
  term->input[0] = condition, term->input[1] = a, term->input[2] = b;
}

static hg_status range_term(ops_terms *t, const ops_form *form, uint64_t extent, term_id *out) {
  ops_term term;
  memset(&term, 0, sizeof term);
  term.kind = TERM_RANGE;
  term.type = ATLAS_bool;
  term.form = *form;
  term.extent = extent;
  return add_term(t, &term, out);
}

/* Reads both sides, each within its bounds, and selects one. */
static hg_status term_concatenate(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term,
                                  term_id *out) {
  const ops_shape *first = &ops_at(t->group->computation, node->input[0])->shape;
  uint32_t axis = node->axis;
  term_id condition = 0, sides[2] = {0};
  HG_TRY(range_term(t, &index[axis], first->size[axis], &condition));
  for (uint32_t side = 0; side < 2; side++) {
    ops_form *inner = index_room(t);
    if (inner == NULL) return HG_OUT_OF_MEMORY;
    memcpy(inner, index, node->shape.rank * sizeof *inner);
    if (side == 1) inner[axis].constant -= (int64_t)first->size[axis];
    uint64_t size = side == 0 ? first->size[axis] : node->shape.size[axis] - first->size[axis];
    HG_TRY(clamp(t, &inner[axis], size));
    HG_TRY(ops_term_of(t, node->input[side], inner, &sides[side]));
  }
  selects(term, condition, sides[0], sides[1]);
  return add_term(t, term, out);
}

/* The conjunction of both conditions; 0: there is none yet. */
static hg_status and_term(ops_terms *t, term_id next, term_id *condition) {
  if (*condition == 0) return *condition = next, HG_OK;
  ops_term both;
  memset(&both, 0, sizeof both);
  both.kind = TERM_POINTWISE, both.op = ATLAS_OP_pand, both.type = ATLAS_bool, both.input_count = 2;
  both.input[0] = *condition, both.input[1] = next;
  return add_term(t, &both, condition);
}

static hg_status term_pad(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term, term_id *out) {
  const ops_shape *within = &ops_at(t->group->computation, node->input[0])->shape;
  ops_form *inner = index_room(t);
  if (inner == NULL) return HG_OUT_OF_MEMORY;
  term_id condition = 0, value = 0, padding = 0;
  memcpy(inner, index, node->shape.rank * sizeof *inner);
  for (uint32_t d = 0; d < node->shape.rank; d++) {
    if (within->size[d] == node->shape.size[d]) continue;
    inner[d].constant -= node->view.start[d];
    term_id along = 0;
    HG_TRY(range_term(t, &inner[d], within->size[d], &along));
    HG_TRY(clamp(t, &inner[d], within->size[d]));
    HG_TRY(and_term(t, along, &condition));
  }
  HG_TRY(ops_term_of(t, node->input[0], inner, &value));
  HG_TRY(ops_term_of(t, node->input[1], nowhere, &padding));
  if (condition == 0) {
    *out = value;
    return HG_OK;
  }
  selects(term, condition, value, padding);
  return add_term(t, term, out);
}

/* The source's number along an axis, and whether it exists, from the number in the whole. What is divided is never
 * negative, since some steps are added before. */
static hg_status step_back(ops_terms *t, const ops_node *node, uint32_t d, ops_form *index, term_id *condition) {
  int64_t start = node->view.start[d], step = node->view.step[d], steps = (start + step - 1) / step;
  ops_form rest;
  term_id is_whole = 0;
  index->constant -= start;
  if (step == 1) return HG_OK;
  index->constant += steps * step;
  ops_form of = *index;
  HG_TRY(divide(t, &of, (uint64_t)step, index, &rest));
  index->constant -= steps;
  HG_TRY(range_term(t, &rest, 1, &is_whole));
  return and_term(t, is_whole, condition);
}

static hg_status term_update(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term,
                             term_id *out) {
  const ops_shape *box = &ops_at(t->group->computation, node->input[1])->shape;
  ops_form *inner = index_room(t);
  if (inner == NULL) return HG_OUT_OF_MEMORY;
  term_id condition = 0, along = 0, value = 0, base = 0;
  memcpy(inner, index, node->shape.rank * sizeof *inner);
  for (uint32_t d = 0; d < node->shape.rank; d++) {
    if (box->size[d] == node->shape.size[d]) continue;
    HG_TRY(step_back(t, node, d, &inner[d], &condition));
    HG_TRY(range_term(t, &inner[d], box->size[d], &along));
    HG_TRY(and_term(t, along, &condition));
    HG_TRY(clamp(t, &inner[d], box->size[d]));
  }
  HG_TRY(ops_term_of(t, node->input[1], inner, &value));
  HG_TRY(ops_term_of(t, node->input[0], index, &base));
  selects(term, condition, value, base);
  return add_term(t, term, out);
}

static hg_status term_view(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term, term_id *out) {
  ops_form *inner = index_room(t);
  (void)term;
  if (inner == NULL) return HG_OUT_OF_MEMORY;
  view_index(node, ops_at(t->group->computation, node->input[0])->shape.rank, index, inner);
  return ops_term_of(t, node->input[0], inner, out);
}

static hg_status term_constant(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term,
                               term_id *out) {
  (void)index;
  term->kind = TERM_CONSTANT;
  term->bits = node->bits;
  return add_term(t, term, out);
}

static hg_status term_coordinate(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term,
                                 term_id *out) {
  term->kind = TERM_COORDINATE;
  term->form = index[node->axis];
  return add_term(t, term, out);
}

static hg_status term_pointwise(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term,
                                term_id *out) {
  term->kind = TERM_POINTWISE;
  term->op = node->op;
  term->input_count = node->input_count;
  for (uint32_t i = 0; i < node->input_count; i++) HG_TRY(ops_term_of(t, node->input[i], index, &term->input[i]));
  return add_term(t, term, out);
}

static hg_status term_random(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term, term_id *out) {
  ops_form place = dense(&node->shape, index), rest;
  term->kind = TERM_RANDOM;
  term->bits = node->reduce;
  if (node->axis != 0) HG_TRY(divide(t, &place, UINT64_C(1) << node->axis, &place, &rest));
  term->form.constant = (int64_t)node->bits;
  add_multiple(&term->form, &place, node->axes);
  term->input_count = 2;
  for (uint32_t i = 0; i < 2; i++) HG_TRY(ops_term_of(t, node->input[i], nowhere, &term->input[i]));
  return add_term(t, term, out);
}

static hg_status term_bound(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term, term_id *out) {
  term->kind = TERM_BOUND;
  term->form = dense(&node->shape, index);
  return add_term(t, term, out);
}

static hg_status load_term(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term, term_id *out) {
  (void)node;
  term->kind = TERM_LOAD;
  term->storage = t->group->storage_of[term->value - 1] - 1;
  term->form = ops_address((const ops_storage *)t->group->plan->storages.data + term->storage, index);
  return add_term(t, term, out);
}

/* They are called through pointers, so that a term within terms uses only its own kind's stack. */
typedef hg_status (*maker)(ops_terms *t, const ops_node *node, const ops_form *index, ops_term *term, term_id *out);
#define term_none NULL
static const maker makers[OPS_NODE_KINDS] = {
#define OPS_NODE_KIND(id, name, inputs, results, work, passes, is, has, term, flow, launch, batch) \
  [OPS_##id] = term_##term,
#include "ops/graph/kinds.def"
#undef OPS_NODE_KIND
};
#undef term_none

/* Without this, a node that is read several times, by nodes that are read several times, would be visited once for each
 * path. */
static term_id seen_before(const ops_terms *t, value_id value, const ops_form *index, uint32_t rank) {
  const seen_node *seen = t->seen.data;
  const ops_form *forms = t->seen_at.data;
  for (size_t i = t->seen.count; i-- > 0;)
    if (seen[i].value == value && (rank == 0 || memcmp(forms + seen[i].first, index, rank * sizeof *index) == 0))
      return seen[i].term;
  return 0;
}

static hg_status remember(ops_terms *t, value_id value, const ops_form *index, uint32_t rank, term_id term) {
  const hg_allocator *allocator = &t->group->plan->allocator;
  seen_node seen = {.value = value, .term = term, .first = (uint32_t)t->seen_at.count};
  if ((rank > 0 && hg_array_append(allocator, &t->seen_at, index, rank) == NULL) ||
      hg_array_append(allocator, &t->seen, &seen, 1) == NULL)
    return hg_fail_memory("the terms of a launch", sizeof seen);
  return HG_OK;
}

hg_status ops_term_of(ops_terms *t, value_id value, const ops_form *index, term_id *out) {
  const ops_node *node = ops_at(t->group->computation, value);
  ops_term term;
  memset(&term, 0, sizeof term);
  term.type = node->type;
  term.value = value;
  maker make = is_loaded(t->group, value) ? load_term : makers[node->kind];
  if (make == NULL) return hg_fail(HG_UNSUPPORTED, "node kind %d within a launch", node->kind);
  if (make == load_term) return make(t, node, index, &term, out);
  uint32_t rank = node->shape.rank;
  int is_kept = node->input_count > 1;
  if (is_kept && (*out = seen_before(t, value, index, rank)) != 0) return HG_OK;
  if (++t->depth > OPS_MAX_TERM_DEPTH)
    return hg_fail(HG_UNSUPPORTED, "more than %d values in a launch, one made of the other", OPS_MAX_TERM_DEPTH);
  hg_status status = make(t, node, index, &term, out);
  t->depth--;
  return status == HG_OK && is_kept ? remember(t, value, index, rank, *out) : status;
}

/* ---- the space --------------------------------------------------------------------------------------------------- */

/* 1 if the next coordinate's factor times `size` is this one's, so that both can be merged. */
static int joins(const ops_form *form, uint32_t j, uint64_t size) {
  return form->factor[j] == form->factor[j + 1] * (int64_t)size;
}

static int all_join(const ops_terms *t, ops_form **more, uint32_t more_count, uint32_t j) {
  uint64_t size = t->space.size[j + 1];
  for (uint32_t id = 1; id <= t->terms.count; id++)
    if (!joins(&ops_term_at(t, id)->form, j, size)) return 0;
  for (uint32_t i = t->space.rank; i < t->variable_count; i++)
    if (!joins(&t->derived[i].of, j, size)) return 0;
  for (uint32_t i = 0; i < more_count; i++)
    if (!joins(more[i], j, size)) return 0;
  return 1;
}

static void remove_factor(ops_form *form, uint32_t j, uint32_t count) {
  memmove(&form->factor[j], &form->factor[j + 1], (count - j - 1) * sizeof form->factor[0]);
  form->factor[count - 1] = 0;
}

/* Removes coordinate j: j + 1 has absorbed it, or it has one value. */
static void remove_coordinate(ops_terms *t, ops_form **more, uint32_t more_count, uint32_t j) {
  uint32_t count = t->variable_count;
  for (uint32_t id = 1; id <= t->terms.count; id++) {
    ops_term *term = ops_term_at(t, id);
    remove_factor(&term->form, j, count);
    uint32_t below = (1u << j) - 1;
    uint32_t joined = term->varies >> j & 1; /* what varied along it varies along the next one, which absorbed it */
    term->varies = (term->varies & below) | (term->varies >> 1 & ~below) | joined << j;
  }
  for (uint32_t i = t->space.rank; i < count; i++) remove_factor(&t->derived[i].of, j, count);
  for (uint32_t i = 0; i < more_count; i++) remove_factor(more[i], j, count);
  memmove(&t->derived[j], &t->derived[j + 1], (count - j - 1) * sizeof t->derived[0]);
  memmove(&t->space.size[j], &t->space.size[j + 1], (t->space.rank - j - 1) * sizeof t->space.size[0]);
  t->space.rank--;
  t->variable_count--;
}

void ops_collapse(ops_terms *t, ops_form **more, uint32_t more_count, uint32_t *boundary) {
  t->seen.count = t->seen_at.count = 0; /* they refer to other coordinates */
  for (uint32_t j = 0; j < t->space.rank;) { /* a coordinate that is always 0 */
    if (t->space.size[j] != 1) {
      j++;
      continue;
    }
    for (uint32_t id = 1; id <= t->terms.count; id++) ops_term_at(t, id)->varies &= ~(1u << j);
    remove_coordinate(t, more, more_count, j);
    *boundary -= j < *boundary;
  }
  for (uint32_t j = 0; j + 1 < t->space.rank;) {
    if (j + 1 == *boundary || !all_join(t, more, more_count, j)) {
      j++;
      continue;
    }
    t->space.size[j + 1] *= t->space.size[j];
    remove_coordinate(t, more, more_count, j);
    *boundary -= j < *boundary;
  }
}
