/* inline.c - call inlining. An instruction is visited once per chain of calls that leads to it, so a node is a pair
 * (context, instruction), a context being a call and the context it was made in. */
#include "atlas/inline.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

typedef struct context {
  uint32_t parent;      /* IR_NONE: not called */
  uint32_t return_insn;
  uint32_t target;      /* first instruction of the callee */
  uint32_t depth;
} context;

typedef struct key {
  uint32_t context, insn;
  uint32_t node; /* IR_NONE until visited */
} key;

typedef struct inliner {
  atlas_program *program;
  hg_array contexts, keys, pending; /* context; key; uint32_t index of a key */
  uint32_t *slots;                  /* hash table of key indices + 1 */
  uint32_t slot_count;              /* a power of two */
  uint32_t *bad_insn;
} inliner;

static uint32_t hash_of(uint32_t context_index, uint32_t insn) {
  uint64_t mixed = ((uint64_t)context_index << 32 | insn) * UINT64_C(0x9e3779b97f4a7c15);
  return (uint32_t)(mixed >> 32);
}

static key *key_at(inliner *in, uint32_t index) { return (key *)in->keys.data + index; }

static hg_status grow_slots(inliner *in) {
  const hg_allocator *allocator = &in->program->allocator;
  uint32_t count = in->slot_count == 0 ? 64 : in->slot_count * 2;
  uint32_t *slots = hg_allocate(allocator, count, sizeof *slots);
  if (slots == NULL) return hg_fail_memory("inlining calls", (uint64_t)count * sizeof *slots);
  for (uint32_t k = 0; k < in->keys.count; k++) {
    uint32_t slot = hash_of(key_at(in, k)->context, key_at(in, k)->insn) & (count - 1);
    while (slots[slot] != 0) slot = (slot + 1) & (count - 1);
    slots[slot] = k + 1;
  }
  hg_release(allocator, in->slots);
  in->slots = slots;
  in->slot_count = count;
  return HG_OK;
}

/* The key of a pair; a new one is queued to be visited. */
static hg_status find_key(inliner *in, uint32_t context_index, uint32_t insn, uint32_t *out) {
  if (in->keys.count * 2 >= in->slot_count) HG_TRY(grow_slots(in));
  uint32_t slot = hash_of(context_index, insn) & (in->slot_count - 1);
  for (; in->slots[slot] != 0; slot = (slot + 1) & (in->slot_count - 1)) {
    const key *k = key_at(in, in->slots[slot] - 1);
    if (k->context == context_index && k->insn == insn) {
      *out = in->slots[slot] - 1;
      return HG_OK;
    }
  }
  key fresh = {context_index, insn, IR_NONE};
  *out = (uint32_t)in->keys.count;
  if (hg_array_append(&in->program->allocator, &in->keys, &fresh, 1) == NULL ||
      hg_array_append(&in->program->allocator, &in->pending, out, 1) == NULL)
    return hg_fail_memory("inlining calls", sizeof fresh);
  in->slots[slot] = *out + 1;
  return HG_OK;
}

/* The label that a call names, and where the call stands. */
static void add_call(const inliner *in, uint32_t insn, const char *word, char *text, size_t text_bytes) {
  const atlas_insn *call = atlas_insn_at(in->program, insn);
  const char *name = atlas_label_at(in->program, (size_t)call->operand[0].bits)->name;
  size_t used = strlen(text);
  snprintf(text + used, text_bytes - used, "%s '%s' (%s %u)", word, name, call->line != 0 ? "line" : "instruction",
           (unsigned)(call->line != 0 ? call->line : insn));
}

/* Fails because a call in context `last` calls the function of context `first` again: the message names the calls of
 * the cycle, of a long cycle the first and the last few. */
static hg_status recursive(const inliner *in, uint32_t first, uint32_t last, uint32_t insn) {
  enum { SHOWN = 2 }; /* at either end */
  const context *all = in->contexts.data;
  uint32_t caller[ATLAS_MAX_CALL_DEPTH], count = 0; /* the contexts of the cycle, the innermost first */
  for (uint32_t c = last; c != first; c = all[c].parent) caller[count++] = c;
  const atlas_insn *entered = atlas_insn_at(in->program, all[first].return_insn - 1);
  char cycle[600];
  snprintf(cycle, sizeof cycle, "'%s'", atlas_label_at(in->program, (size_t)entered->operand[0].bits)->name);
  for (uint32_t k = count; k-- > 0;) {
    if (k >= SHOWN && count - 1 - k >= SHOWN) continue;
    add_call(in, all[caller[k]].return_insn - 1, count > 2 * SHOWN && k == SHOWN - 1 ? " ... calls" : " calls", cycle,
             sizeof cycle);
  }
  add_call(in, insn, " calls", cycle, sizeof cycle);
  return hg_fail(HG_VERIFY, "the call is recursive: %s; calls are inlined and cannot recurse", cycle);
}

static hg_status enter_call(inliner *in, uint32_t context_index, uint32_t insn, uint32_t target, uint32_t *callee) {
  const context *all = in->contexts.data;
  if (all[context_index].depth == ATLAS_MAX_CALL_DEPTH)
    return hg_fail(HG_VERIFY, "calls nest deeper than %d", ATLAS_MAX_CALL_DEPTH);
  for (uint32_t c = context_index; c != IR_NONE; c = all[c].parent)
    if (all[c].parent != IR_NONE && all[c].target == target) return recursive(in, c, context_index, insn);
  context fresh = {context_index, insn + 1, target, all[context_index].depth + 1};
  *callee = (uint32_t)in->contexts.count;
  if (hg_array_append(&in->program->allocator, &in->contexts, &fresh, 1) == NULL)
    return hg_fail_memory("inlining calls", sizeof fresh);
  return HG_OK;
}

static uint32_t target_of(const inliner *in, const atlas_insn *insn, unsigned operand) {
  return atlas_label_at(in->program, (size_t)insn->operand[operand].bits)->target;
}

/* Successor `insn` in a context, as a key; running past the last instruction is an error. */
static hg_status find_successor(inliner *in, uint32_t context_index, uint32_t insn, uint32_t *out) {
  if (insn >= in->program->insns.count)
    return hg_fail(HG_VERIFY, "control runs past the end of the program; end every path with 'exit'");
  return find_key(in, context_index, insn, out);
}

/* Makes the node of a key; its successors are key indices for now. */
static hg_status visit(inliner *in, uint32_t key_index, int is_function) {
  uint32_t here = key_at(in, key_index)->insn, context_index = key_at(in, key_index)->context;
  const atlas_insn *insn = atlas_insn_at(in->program, here);
  ir_node node = {.insn = here, .next = IR_NONE, .taken = IR_NONE};
  *in->bad_insn = here;
  if (in->program->nodes.count == ATLAS_MAX_INSTRUCTIONS)
    return hg_fail(HG_VERIFY, "the program has more than %d instructions after inlining its calls",
                   ATLAS_MAX_INSTRUCTIONS);
  switch (insn->op) {
  case ATLAS_OP_exit: break;
  case ATLAS_OP_trap: node.flags = IR_NODE_ABORT; break;
  case ATLAS_OP_bra:
    if (insn->guard != 0) HG_TRY(find_successor(in, context_index, here + 1, &node.next));
    HG_TRY(find_successor(in, context_index, target_of(in, insn, 0), &node.taken));
    break;
  case ATLAS_OP_loop:
    HG_TRY(find_successor(in, context_index, here + 1, &node.next));
    HG_TRY(find_successor(in, context_index, target_of(in, insn, 1), &node.taken));
    break;
  case ATLAS_OP_call: {
    uint32_t callee = 0;
    HG_TRY(enter_call(in, context_index, here, target_of(in, insn, 0), &callee));
    HG_TRY(find_successor(in, callee, target_of(in, insn, 0), &node.next));
    break;
  }
  case ATLAS_OP_ret: {
    context caller = ((const context *)in->contexts.data)[context_index];
    if (caller.parent != IR_NONE) HG_TRY(find_successor(in, caller.parent, caller.return_insn, &node.next));
    else if (!is_function) return hg_fail(HG_VERIFY, "'ret' outside of a call; 'exit' ends a program");
    break;
  }
  default: HG_TRY(find_successor(in, context_index, here + 1, &node.next)); break;
  }
  key_at(in, key_index)->node = (uint32_t)in->program->nodes.count;
  if (hg_array_append(&in->program->allocator, &in->program->nodes, &node, 1) == NULL)
    return hg_fail_memory("inlining calls", sizeof node);
  return HG_OK;
}

static hg_status inline_from(inliner *in, uint32_t start, int is_function) {
  size_t first = in->program->nodes.count;
  context root = {IR_NONE, 0, start, 0};
  uint32_t key_index = 0;
  *in->bad_insn = start;
  if (hg_array_append(&in->program->allocator, &in->contexts, &root, 1) == NULL)
    return hg_fail_memory("inlining calls", sizeof root);
  HG_TRY(find_successor(in, 0, start, &key_index));
  while (in->pending.count > 0) {
    key_index = ((uint32_t *)in->pending.data)[--in->pending.count];
    /* Follow the fall-through, so that straight-line code gets consecutive nodes. */
    while (key_index != IR_NONE && key_at(in, key_index)->node == IR_NONE) {
      HG_TRY(visit(in, key_index, is_function));
      key_index = ((ir_node *)in->program->nodes.data)[in->program->nodes.count - 1].next;
    }
  }
  ir_node *nodes = in->program->nodes.data;
  for (size_t n = first; n < in->program->nodes.count; n++) {
    if (nodes[n].next != IR_NONE) nodes[n].next = key_at(in, nodes[n].next)->node;
    if (nodes[n].taken != IR_NONE) nodes[n].taken = key_at(in, nodes[n].taken)->node;
  }
  return HG_OK;
}

hg_status atlas_inline_calls(atlas_program *program, uint32_t start, int is_function, uint32_t *bad_insn) {
  inliner in = {.program = program, .bad_insn = bad_insn};
  in.contexts.element_size = sizeof(context);
  in.keys.element_size = sizeof(key);
  in.pending.element_size = sizeof(uint32_t);
  hg_status status = inline_from(&in, start, is_function);
  hg_release(&program->allocator, in.slots);
  hg_array_release(&program->allocator, &in.contexts);
  hg_array_release(&program->allocator, &in.keys);
  hg_array_release(&program->allocator, &in.pending);
  return status;
}
