/* key.c - a computation as bytes: what is reachable from its outputs and updates, numbered in the order in which a walk
 * meets it. So neither the order in which it was built nor unused nodes count. Names count, since errors mention them.
 *
 * Computations are equal if their bytes are; the hash only finds candidates, so it need not be a slow one. */
#include "ops/run/executable.h"

#include "base/bytes.h"

/* Bytes that are no part of the structure: a constant that is not 0, or sizes with strides and starts. */
typedef struct hole {
  size_t first, byte_count;
  uint64_t constant; /* its bits; 0: sizes */
} hole;

/* A walk without recursion, since graphs may be arbitrarily deep. */
typedef struct walk {
  const hg_allocator *allocator;
  const hg_computation *c;
  uint32_t *numbers; /* by node: 1 + number; 0: not met */
  uint32_t count;
  hg_array stack;    /* value_id */
  hg_array holes;    /* hole */
  ops_key *key;
} walk;

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const uint8_t *bytes, size_t byte_count) {
  uint64_t rest = 0;
  size_t words = byte_count / sizeof rest;
  memcpy(&rest, bytes + words * sizeof rest, byte_count % sizeof rest);
  return hg_hash_mix(hg_hash_words(bytes, words), rest);
}

/* Hashes the bytes; those outside of the holes; the sizes; and the constants. */
static void hash_key(walk *w) {
  const hole *holes = w->holes.data;
  ops_key *key = w->key;
  const uint8_t *bytes = key->bytes.data;
  size_t at = 0;
  for (size_t i = 0; i < w->holes.count; at = holes[i].first + holes[i].byte_count, i++) {
    key->structure = hg_hash_mix(key->structure, hash_of(bytes + at, holes[i].first - at));
    uint64_t sizes = hash_of(bytes + holes[i].first, holes[i].byte_count);
    if (holes[i].constant != 0) key->constants = hg_hash_mix(key->constants, holes[i].constant);
    else key->sizes = hg_hash_mix(key->sizes, sizes);
  }
  key->structure = hg_hash_mix(key->structure, hash_of(bytes + at, key->bytes.count - at));
  key->hash = hash_of(bytes, key->bytes.count);
}

static hg_status put_hole(walk *w, size_t first, size_t byte_count, uint64_t constant) {
  hole added = {.first = first, .byte_count = byte_count, .constant = constant};
  if (byte_count == 0 || hg_array_append(w->allocator, &w->holes, &added, 1) != NULL) return HG_OK;
  return hg_fail_memory("the key of a computation", w->holes.count * sizeof added);
}

static uint8_t *room(walk *w, size_t bytes) {
  hg_array *to = &w->key->bytes;
  if (to->capacity - to->count < bytes || to->data == NULL) {
    uint64_t wanted = 2 * (uint64_t)to->capacity;
    if (!hg_array_reserve(w->allocator, to, wanted < to->count + bytes + 256 ? to->count + bytes + 256 : wanted))
      return NULL;
  }
  uint8_t *at = (uint8_t *)to->data + to->count;
  to->count += bytes;
  return at;
}

static hg_status put(walk *w, const void *bytes, size_t byte_count) {
  uint8_t *at = room(w, byte_count);
  if (at == NULL) return hg_fail_memory("the key of a computation", w->key->bytes.count);
  if (byte_count > 0) memcpy(at, bytes, byte_count);
  return HG_OK;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

enum { NODE_BYTES = 64 + 4 * HG_MAX_RANK * (int)sizeof(uint64_t) }; /* no node takes more */

static uint8_t *add(uint8_t *at, const void *bytes, size_t byte_count) {
  memcpy(at, bytes, byte_count);
  return at + byte_count;
}

static hg_status put_node(walk *w, const ops_node *node) {
  uint8_t *first = room(w, NODE_BYTES);
  if (first == NULL) return hg_fail_memory("the key of a computation", w->key->bytes.count);
  uint8_t has =
      (uint8_t)(node->input_count | (node->axes != 0) << 4 | (node->index != 0) << 5 | (node->bits != 0) << 6);
  uint8_t head[8] = {node->kind,        node->type, has,          node->reduce,
                     (uint8_t)node->op, (uint8_t)(node->op >> 8), node->bounds, node->axis};
  uint32_t rank = node->shape.rank;
  uint8_t *at = add(first, head, sizeof head), *sizes = NULL;
  for (uint32_t i = 0; i < node->input_count; i++)
    at = add(at, &w->numbers[node->input[i] - 1], sizeof w->numbers[0]);
  if (node->axes != 0) at = add(at, &node->axes, sizeof node->axes);
  if (node->index != 0) at = add(at, &node->index, sizeof node->index);
  const uint8_t *bytes = w->key->bytes.data;
  if (node->kind == OPS_CONSTANT && node->bits != 0)
    HG_TRY(put_hole(w, (size_t)(at - bytes), sizeof node->bits, node->bits));
  if (node->bits != 0) at = add(at, &node->bits, sizeof node->bits);
  if (!ops_kind_is(node, OPS_SHAPE_FOLLOWS)) {
    *at++ = (uint8_t)rank;
    sizes = at;
    at = add(at, node->shape.size, rank * sizeof node->shape.size[0]);
  }
  uint32_t lists = ops_kind_of(node)->has;
  if ((lists & OPS_AXES) != 0) at = add(at, node->view.axis, rank * sizeof node->view.axis[0]);
  if ((lists & OPS_STEPS) != 0) at = add(at, node->view.step, rank * sizeof node->view.step[0]);
  if ((lists & OPS_STARTS) != 0)
    at = add(at, node->view.start, ops_at(w->c, node->input[0])->shape.rank * sizeof node->view.start[0]);
  w->key->bytes.count -= NODE_BYTES - (size_t)(at - first);
  return sizes != NULL ? put_hole(w, (size_t)(sizes - bytes), (size_t)(at - sizes), 0) : HG_OK;
}

/* The operation's name counts, since a fault of an index mentions it. */
static hg_status put_operation(walk *w, value_id value) {
  const ops_call *call = ops_call_of(w->c, value);
  uint16_t op = call != NULL ? call->op : 0;
  return put(w, &op, sizeof op);
}

static hg_status push(walk *w, value_id value) {
  if (hg_array_push(w->allocator, &w->stack, value)) return HG_OK;
  return hg_fail_memory("the key of a computation", w->stack.count * sizeof value);
}

/* A node is written when everything that it reads has a number; until then it stays on the stack. */
static hg_status put_value(walk *w, value_id root) {
  HG_TRY(push(w, root));
  while (w->stack.count > 0) {
    value_id value = ((const value_id *)w->stack.data)[w->stack.count - 1];
    const ops_node *node = ops_at(w->c, value);
    int waits = 0;
    if (w->numbers[value - 1] == 0)
      for (uint32_t i = node->input_count; i-- > 0;)
        if (w->numbers[node->input[i] - 1] == 0) {
          HG_TRY(push(w, node->input[i]));
          waits = 1;
        }
    if (waits) continue;
    w->stack.count--;
    if (w->numbers[value - 1] != 0) continue;
    HG_TRY(put_node(w, node));
    if (ops_is_guarded(node)) HG_TRY(put_operation(w, value));
    w->numbers[value - 1] = ++w->count;
  }
  return put(w, &w->numbers[root - 1], sizeof w->numbers[0]);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* The stride of a dimension with one element is ignored. */
static hg_status put_tensor(walk *w, const char *name, const hg_tensor *like) {
  uint32_t head[2] = {like->type, like->rank};
  int64_t stride[HG_MAX_RANK];
  for (uint32_t d = 0; d < like->rank; d++) stride[d] = like->shape[d] > 1 ? like->stride[d] : 0;
  HG_TRY(put(w, head, sizeof head));
  HG_TRY(put_hole(w, w->key->bytes.count, like->rank * (sizeof like->shape[0] + sizeof stride[0]), 0));
  HG_TRY(put(w, like->shape, like->rank * sizeof like->shape[0]));
  HG_TRY(put(w, stride, like->rank * sizeof stride[0]));
  return put(w, name, strlen(name) + 1);
}

static hg_status put_all(walk *w, uint32_t flags) {
  const ops_input *inputs = w->c->inputs.data;
  const ops_output *outputs = w->c->outputs.data;
  uint32_t head[4] = {flags, (uint32_t)w->c->inputs.count, (uint32_t)w->c->outputs.count, (uint32_t)w->c->checks.count};
  HG_TRY(put(w, head, sizeof head));
  for (size_t i = 0; i < w->c->inputs.count; i++) HG_TRY(put_tensor(w, inputs[i].name, &inputs[i].like));
  for (size_t i = 0; i < w->c->outputs.count; i++) {
    HG_TRY(put_tensor(w, outputs[i].name, &outputs[i].like));
    HG_TRY(put_value(w, outputs[i].value));
  }
  for (uint32_t i = 0; i < w->c->inputs.count; i++) {
    if (inputs[i].update == 0) continue;
    HG_TRY(put(w, &i, sizeof i));
    HG_TRY(put_value(w, inputs[i].update));
  }
  for (size_t i = 0; i < w->c->checks.count; i++) HG_TRY(put_value(w, ((const value_id *)w->c->checks.data)[i]));
  return HG_OK;
}

hg_status ops_key_of(const hg_allocator *allocator, const hg_computation *computation, uint32_t flags, ops_key *key) {
  walk w = {.allocator = allocator, .c = computation, .key = key, .stack = {.element_size = sizeof(value_id)},
            .holes = {.element_size = sizeof(hole)}};
  memset(key, 0, sizeof *key);
  key->bytes.element_size = 1;
  w.numbers = hg_allocate(allocator, computation->nodes.count, sizeof *w.numbers);
  hg_status status = w.numbers != NULL ? put_all(&w, flags)
                                       : hg_fail_memory("the key of a computation", computation->nodes.count);
  hg_release(allocator, w.numbers);
  hg_array_release(allocator, &w.stack);
  if (status == HG_OK) hash_key(&w);
  else hg_array_release(allocator, &key->bytes);
  hg_array_release(allocator, &w.holes);
  return status;
}
