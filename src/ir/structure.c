/* structure.c - structured control flow by the dominator tree: Ramsey, "Beyond Relooper: Recursive Translation of
 * Unstructured Control Flow to Structured Control Flow" (2022), without the recursion.
 *
 * The code of a block is followed by the translation of its terminator. A block with several incoming forward edges (a
 * merge) stands behind a construct that those edges break out of; the construct opens at the merge's immediate
 * dominator. Every other block is nested where its only forward edge is. */
#include "ir/structure.h"

#include "base/error.h"

#include <string.h>

/* Work still to be done, last first. EMIT writes an item; the others expand a block. */
typedef enum task_kind { TASK_TREE, TASK_CODE, TASK_BRANCH, TASK_EMIT } task_kind;

typedef struct task {
  uint8_t kind;
  uint8_t shape;       /* EMIT: ir_shape */
  uint32_t block;      /* what it is about; of a BLOCK item, the target that stands behind it */
  uint32_t from;       /* BRANCH: where the edge begins */
} task;

typedef struct builder {
  const ssa_unit *unit;
  const ssa_order *order;
  hg_array *items;
  hg_array tasks;      /* task */
  uint32_t *child, *sibling; /* the dominator tree, children in reverse postorder */
  uint8_t *is_merge, *is_loop;
  uint32_t *block_frame, *loop_frame; /* per block: how many constructs were open when its own was opened */
  uint32_t depth;      /* constructs open now */
} builder;

static hg_status out_of_memory(void) { return hg_fail_memory("structured control flow", 0); }

static hg_status push(builder *b, task_kind kind, ir_shape shape, uint32_t block, uint32_t from) {
  task t = {.kind = (uint8_t)kind, .shape = (uint8_t)shape, .block = block, .from = from};
  return hg_array_append(&b->unit->allocator, &b->tasks, &t, 1) != NULL ? HG_OK : out_of_memory();
}

static hg_status write(builder *b, ir_shape shape, uint32_t value) {
  ir_structure_item item = {shape, value};
  return hg_array_append(&b->unit->allocator, b->items, &item, 1) != NULL ? HG_OK : out_of_memory();
}

static int is_back_edge(const builder *b, uint32_t from, uint32_t to) {
  return b->order->position[to] <= b->order->position[from];
}

static void find_merges(builder *b) {
  for (uint32_t k = 0; k < b->order->count; k++) {
    uint32_t block = b->order->block[k], forward = 0;
    const hg_array *predecessors = &ssa_block_at(b->unit, block)->predecessors;
    for (size_t i = 0; i < predecessors->count; i++) {
      uint32_t from = ((const uint32_t *)predecessors->data)[i];
      if (b->order->position[from] == SSA_NONE) continue;
      if (is_back_edge(b, from, block)) b->is_loop[block] = 1;
      else forward++;
    }
    b->is_merge[block] = forward > 1;
  }
}

static void grow_tree(builder *b) {
  size_t bytes = b->unit->blocks.count * sizeof(uint32_t);
  memset(b->child, 0xff, bytes);
  memset(b->sibling, 0xff, bytes);
  for (uint32_t k = b->order->count; k-- > 1;) {
    uint32_t block = b->order->block[k], parent = b->order->dominator[block];
    b->sibling[block] = b->child[parent];
    b->child[parent] = block;
  }
}

/* The block with its dominator subtree. Tasks are a stack, so they are pushed from the end. A merge that comes later in
 * the order stands further out, since what comes before it may break to it. */
static hg_status expand_tree(builder *b, uint32_t block) {
  size_t first;
  if (b->is_loop[block]) HG_TRY(push(b, TASK_EMIT, IR_SHAPE_END, SSA_NONE, SSA_NONE));
  first = b->tasks.count;
  for (uint32_t c = b->child[block]; c != SSA_NONE; c = b->sibling[c]) { /* turned around below */
    if (!b->is_merge[c]) continue;
    HG_TRY(push(b, TASK_EMIT, IR_SHAPE_END, SSA_NONE, SSA_NONE));
    HG_TRY(push(b, TASK_TREE, IR_SHAPE_CODE, c, SSA_NONE));
  }
  task *tasks = b->tasks.data;
  for (size_t low = first, high = b->tasks.count; low + 1 < high; low++) {
    task swapped = tasks[low];
    tasks[low] = tasks[--high];
    tasks[high] = swapped;
  }
  HG_TRY(push(b, TASK_CODE, IR_SHAPE_CODE, block, SSA_NONE));
  for (uint32_t c = b->child[block]; c != SSA_NONE; c = b->sibling[c])
    if (b->is_merge[c]) HG_TRY(push(b, TASK_EMIT, IR_SHAPE_BLOCK, c, SSA_NONE));
  return b->is_loop[block] ? push(b, TASK_EMIT, IR_SHAPE_LOOP, block, SSA_NONE) : HG_OK;
}

static hg_status expand_code(builder *b, uint32_t block) {
  const ssa_block *code = ssa_block_at(b->unit, block);
  HG_TRY(write(b, IR_SHAPE_CODE, block));
  if (code->end == SSA_JUMP) return push(b, TASK_BRANCH, IR_SHAPE_CODE, code->successor[0], block);
  if (code->end != SSA_BRANCH) return write(b, IR_SHAPE_RETURN, 0);
  HG_TRY(push(b, TASK_EMIT, IR_SHAPE_END, SSA_NONE, SSA_NONE));
  HG_TRY(push(b, TASK_BRANCH, IR_SHAPE_CODE, code->successor[1], block));
  HG_TRY(push(b, TASK_EMIT, IR_SHAPE_ELSE, SSA_NONE, SSA_NONE));
  HG_TRY(push(b, TASK_BRANCH, IR_SHAPE_CODE, code->successor[0], block));
  return push(b, TASK_EMIT, IR_SHAPE_IF, SSA_NONE, SSA_NONE);
}

static hg_status expand_branch(builder *b, uint32_t from, uint32_t to) {
  if (is_back_edge(b, from, to)) return write(b, IR_SHAPE_CONTINUE, b->depth - 1 - b->loop_frame[to]);
  if (b->is_merge[to]) return write(b, IR_SHAPE_BREAK, b->depth - 1 - b->block_frame[to]);
  return push(b, TASK_TREE, IR_SHAPE_CODE, to, SSA_NONE);
}

static hg_status emit(builder *b, const task *t) {
  switch (t->shape) {
  case IR_SHAPE_BLOCK: b->block_frame[t->block] = b->depth++; break;
  case IR_SHAPE_LOOP: b->loop_frame[t->block] = b->depth++; break;
  case IR_SHAPE_IF: b->depth++; break;
  case IR_SHAPE_END: b->depth--; break;
  default: break;
  }
  return write(b, (ir_shape)t->shape, 0);
}

static hg_status build_shapes(builder *b) {
  HG_TRY(push(b, TASK_TREE, IR_SHAPE_CODE, b->order->block[0], SSA_NONE));
  while (b->tasks.count > 0) {
    task t = ((const task *)b->tasks.data)[--b->tasks.count];
    switch (t.kind) {
    case TASK_TREE: HG_TRY(expand_tree(b, t.block)); break;
    case TASK_CODE: HG_TRY(expand_code(b, t.block)); break;
    case TASK_BRANCH: HG_TRY(expand_branch(b, t.from, t.block)); break;
    default: HG_TRY(emit(b, &t)); break;
    }
  }
  return HG_OK;
}

hg_status ir_structure_build(const ssa_unit *unit, const ssa_order *order, hg_array *items) {
  builder b = {.unit = unit, .order = order, .items = items, .tasks = {.element_size = sizeof(task)}};
  size_t n = unit->blocks.count;
  b.child = hg_allocate(&unit->allocator, n, 4 * sizeof(uint32_t) + 2);
  if (b.child == NULL) return out_of_memory();
  b.sibling = b.child + n;
  b.block_frame = b.sibling + n;
  b.loop_frame = b.block_frame + n;
  b.is_merge = (uint8_t *)(b.loop_frame + n);
  b.is_loop = b.is_merge + n;
  find_merges(&b);
  grow_tree(&b);
  hg_status status = build_shapes(&b);
  hg_array_release(&unit->allocator, &b.tasks);
  hg_release(&unit->allocator, b.child);
  return status;
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

typedef struct checker {
  const ir_structure_item *items;
  uint32_t count;
  uint32_t *opened_by; /* per item: the innermost construct around it; SSA_NONE: none */
  uint32_t *end_of;    /* per opening item and ELSE: its END; of an IF with an ELSE also other_side */
  uint32_t *other_side;/* per IF: behind its ELSE, or its END */
} checker;

static int opens(ir_shape shape) { return shape == IR_SHAPE_BLOCK || shape == IR_SHAPE_LOOP || shape == IR_SHAPE_IF; }

/* 0 if constructs do not nest. */
static int match_constructs(checker *c) {
  uint32_t innermost = SSA_NONE;
  for (uint32_t i = 0; i < c->count; i++) {
    ir_shape shape = c->items[i].shape;
    c->opened_by[i] = innermost;
    if (opens(shape)) innermost = i;
    if (shape != IR_SHAPE_ELSE && shape != IR_SHAPE_END) continue;
    if (innermost == SSA_NONE) return 0;
    if (shape == IR_SHAPE_ELSE) {
      if (c->items[innermost].shape != IR_SHAPE_IF) return 0;
      c->other_side[innermost] = i + 1;
      continue;
    }
    c->end_of[innermost] = i;
    if (c->other_side[innermost] == 0) c->other_side[innermost] = i;
    innermost = c->opened_by[innermost];
  }
  return innermost == SSA_NONE;
}

/* The block that control reaches next from item `at`; `taken`: whether the first IF is. SSA_NONE: the lane ends; the
 * number of blocks or more: control runs off the list. */
static uint32_t next_block(const checker *c, uint32_t at, int taken) {
  for (uint32_t steps = 0; at < c->count && steps <= 4 * c->count; steps++) {
    const ir_structure_item *item = &c->items[at];
    uint32_t construct = c->opened_by[at];
    switch (item->shape) {
    case IR_SHAPE_CODE: return item->value;
    case IR_SHAPE_RETURN: return SSA_NONE;
    case IR_SHAPE_IF: at = taken ? at + 1 : c->other_side[at]; break;
    case IR_SHAPE_ELSE: at = c->end_of[construct]; break; /* the end of the true side */
    case IR_SHAPE_BREAK:
    case IR_SHAPE_CONTINUE:
      for (uint32_t out = item->value; out > 0 && construct != SSA_NONE; out--) construct = c->opened_by[construct];
      if (construct == SSA_NONE) return SSA_NONE - 1;
      at = item->shape == IR_SHAPE_BREAK ? c->end_of[construct] + 1 : construct + 1;
      break;
    default: at++; break;
    }
  }
  return SSA_NONE - 1;
}

static hg_status compare(const checker *c, const ssa_unit *unit, const ssa_order *order) {
  uint32_t seen = 0;
  if (next_block(c, 0, 1) != 0)
    return hg_fail(HG_INVALID_ARGUMENT, "internal: structured control flow does not start at the entry");
  for (uint32_t i = 0; i < c->count; i++) {
    if (c->items[i].shape != IR_SHAPE_CODE) continue;
    const ssa_block *block = ssa_block_at(unit, c->items[i].value);
    seen++;
    for (int side = 0; side < 2; side++)
      if (next_block(c, i + 1, side == 0) != (block->end == SSA_BRANCH ? block->successor[side] : block->successor[0]))
        return hg_fail(HG_INVALID_ARGUMENT,
                       "internal: structured control flow leaves block %u to another than its successor",
                       (unsigned)c->items[i].value);
  }
  if (seen != order->count)
    return hg_fail(HG_INVALID_ARGUMENT, "internal: structured control flow has %u of %u blocks", (unsigned)seen,
                   (unsigned)order->count);
  return HG_OK;
}

hg_status ir_structure_check(const ssa_unit *unit, const ssa_order *order, const hg_array *items) {
  checker c = {.items = items->data, .count = (uint32_t)items->count};
  c.opened_by = hg_allocate(&unit->allocator, c.count, 3 * sizeof(uint32_t));
  if (c.opened_by == NULL) return out_of_memory();
  c.end_of = c.opened_by + c.count;
  c.other_side = c.end_of + c.count;
  hg_status status = match_constructs(&c)
                         ? compare(&c, unit, order)
                         : hg_fail(HG_INVALID_ARGUMENT, "internal: structured control flow does not nest");
  hg_release(&unit->allocator, c.opened_by);
  return status;
}
