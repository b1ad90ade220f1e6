/* clean_flow.c - control flow in its simplest form:
 *   - no branch on a constant or on a `not`, none whose two sides reach one block with the same phi arguments, and no
 * unreachable block;
 *   - no empty block that ends in a jump, with one exception: a branch whose two sides reach one block with different
 * phi arguments keeps an empty block on each side, so that it does not matter which of them the program wrote;
 *   - no jump to an empty block that ends the lane: the jumping block ends it itself; such a block that a branch leads
 * to has no other predecessor;
 *   - no jump to a block without other predecessors: the two are merged.
 *
 * An edge is (block, side). While a round rewrites edges, predecessors and phis stay as they were, and each edge
 * keeps its column, the number of its argument in the phis of its target; at the end of the round both are rebuilt in
 * order. So a round takes time linear in blocks and phi arguments, and rounds after the first are needed only where
 * something changed around a loop. */
#include "compiler/canon/passes.h"

#include "atlas/tables.h"
#include "base/error.h"

#include <string.h>

typedef struct cleaner {
  ssa_unit *unit;
  int again;         /* a rule has applied in this round */
  uint32_t *column;  /* two a block: the number of an edge's argument in the phis of its target */
  uint32_t *order;   /* reachable blocks in reverse postorder */
  uint32_t count;
  uint32_t *incoming;/* per block: how many edges lead to it */
  uint32_t *seen, *stack;
} cleaner;

static ssa_block *block_at(const cleaner *c, uint32_t b) { return ssa_block_at(c->unit, b); }

static uint32_t *column_of(const cleaner *c, uint32_t b, int side) {
  return c->column + 2 * (size_t)b + (unsigned)side;
}

static hg_status out_of_memory(void) { return hg_fail_memory("control flow", 0); }

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Reverse postorder of what the entry reaches; the true side of a branch first. */
static void find_order(cleaner *c) {
  uint32_t n = (uint32_t)c->unit->blocks.count, depth = 0, place = n;
  memset(c->seen, 0xff, n * sizeof *c->seen);
  memset(c->incoming, 0, n * sizeof *c->incoming);
  c->stack[depth++] = 0;
  c->seen[0] = 0;
  while (depth > 0) {
    uint32_t b = c->stack[depth - 1], step = c->seen[b]++;
    if (step == 2) {
      c->order[--place] = b;
      depth--;
      continue;
    }
    uint32_t successor = block_at(c, b)->successor[1 - step];
    if (successor == SSA_NONE) continue;
    c->incoming[successor]++;
    if (c->seen[successor] != SSA_NONE) continue;
    c->seen[successor] = 0;
    c->stack[depth++] = successor;
  }
  c->count = n - place;
  memmove(c->order, c->order + place, c->count * sizeof *c->order);
}

static void remove_unreachable(cleaner *c) {
  for (uint32_t b = 0; b < c->unit->blocks.count; b++) {
    if (c->seen[b] != SSA_NONE || block_at(c, b)->dead) continue;
    block_at(c, b)->dead = 1;
    block_at(c, b)->successor[0] = block_at(c, b)->successor[1] = SSA_NONE;
    c->again = 1;
  }
}

/* A block whose two sides lead to one block is listed twice among its predecessors: first for the true side. */
static void find_columns(cleaner *c) {
  memset(c->column, 0xff, 2 * c->unit->blocks.count * sizeof *c->column);
  for (uint32_t b = 0; b < c->unit->blocks.count; b++) {
    const hg_array *list = &block_at(c, b)->predecessors;
    for (uint32_t i = 0; i < list->count && !block_at(c, b)->dead; i++) {
      uint32_t from = ((const uint32_t *)list->data)[i];
      int first = block_at(c, from)->successor[0] == b && *column_of(c, from, 0) == SSA_NONE;
      *column_of(c, from, first ? 0 : 1) = i;
    }
  }
}

/* ---- one block --------------------------------------------------------------------------------------------------- */

static void set_edge(cleaner *c, uint32_t b, int side, uint32_t target, uint32_t column) {
  block_at(c, b)->successor[side] = target;
  *column_of(c, b, side) = column;
}

static void become_jump(cleaner *c, uint32_t b, int side) {
  ssa_block *block = block_at(c, b);
  set_edge(c, b, 0, block->successor[side], *column_of(c, b, side));
  set_edge(c, b, 1, SSA_NONE, SSA_NONE);
  block->end = SSA_JUMP;
  block->condition = SSA_NONE;
  c->again = 1;
}

static void become_end(cleaner *c, uint32_t b, uint32_t end) {
  ssa_block *block = block_at(c, b);
  const ssa_block *from = block_at(c, end);
  block->end = from->end;
  block->trap_code = from->trap_code;
  block->insn = from->insn;
  block->condition = SSA_NONE;
  set_edge(c, b, 0, SSA_NONE, SSA_NONE);
  set_edge(c, b, 1, SSA_NONE, SSA_NONE);
  c->again = 1;
}

static void decide_branch(cleaner *c, uint32_t b) {
  ssa_block *block = block_at(c, b);
  if (block->end != SSA_BRANCH) return;
  block->condition = ir_ssa_resolve(c->unit, block->condition);
  while (ssa_insn_at(c->unit, block->condition)->op == ATLAS_OP_pnot) {
    uint32_t target = block->successor[0], column = *column_of(c, b, 0);
    block->condition = ir_ssa_resolve(c->unit, ssa_args_of(c->unit, block->condition)[0]);
    set_edge(c, b, 0, block->successor[1], *column_of(c, b, 1));
    set_edge(c, b, 1, target, column);
    c->again = 1;
  }
  const ssa_insn *condition = ssa_insn_at(c->unit, block->condition);
  if (condition->op == SSA_CONST) become_jump(c, b, condition->bits ? 0 : 1);
}

static int is_empty(const ssa_block *block) { return block->first_phi == SSA_NONE && block->first_effect == SSA_NONE; }

static int is_empty_jump(const cleaner *c, uint32_t b) {
  const ssa_block *block = block_at(c, b);
  return b != 0 && block->end == SSA_JUMP && is_empty(block) && block->successor[0] != b && !block->usual;
}

/* An exit with a result (of a function) is not empty: which result it is depends on the way there. */
static int is_empty_end(const cleaner *c, uint32_t b) {
  const ssa_block *block = block_at(c, b);
  return block->end != SSA_JUMP && block->end != SSA_BRANCH && block->condition == SSA_NONE && is_empty(block);
}

/* Redirects an edge past empty blocks. In an endless loop of empty blocks the walk ends at the edge's own block. */
static void skip_empty_blocks(cleaner *c, uint32_t b, int side) {
  for (uint32_t e; (e = block_at(c, b)->successor[side]) != b && is_empty_jump(c, e);) {
    ir_ssa_pass_by(c->unit, e);
    ir_ssa_take_jump(c->unit, b, e);
    set_edge(c, b, side, block_at(c, e)->successor[0], *column_of(c, e, 0));
  }
}

static int has_same_arguments(const cleaner *c, uint32_t b) {
  for (uint32_t phi = block_at(c, block_at(c, b)->successor[0])->first_phi; phi != SSA_NONE;
       phi = ssa_insn_at(c->unit, phi)->next) {
    const uint32_t *args = ssa_args_of(c->unit, phi);
    if (ir_ssa_resolve(c->unit, args[*column_of(c, b, 0)]) != ir_ssa_resolve(c->unit, args[*column_of(c, b, 1)]))
      return 0;
  }
  return 1;
}

/* Splits an edge: the new block jumps to the target, or with `end` ends the lane as the target does. */
static hg_status insert_block(cleaner *c, uint32_t b, int side, int end) {
  uint32_t target = block_at(c, b)->successor[side], fresh = ir_ssa_add_block(c->unit);
  if (fresh == SSA_NONE) return out_of_memory();
  block_at(c, fresh)->end = end ? block_at(c, target)->end : SSA_JUMP;
  block_at(c, fresh)->trap_code = end ? block_at(c, target)->trap_code : 0;
  block_at(c, fresh)->insn = block_at(c, end ? target : b)->insn; /* it may close a loop: a step fault names it */
  set_edge(c, fresh, 0, end ? SSA_NONE : target, end ? SSA_NONE : *column_of(c, b, side));
  set_edge(c, fresh, 1, SSA_NONE, SSA_NONE);
  set_edge(c, b, side, fresh, SSA_NONE);
  c->incoming[fresh] = 1;
  return HG_OK;
}

/* Both sides reach one block with different phi arguments: each keeps its empty block or gets one. */
static hg_status keep_empty_sides(cleaner *c, uint32_t b, const uint32_t was[2]) {
  for (int s = 0; s < 2; s++) {
    uint32_t target = block_at(c, b)->successor[s], column = *column_of(c, b, s);
    if (was[s] != target && c->incoming[was[s]] == 1 && block_at(c, was[s])->successor[0] == target &&
        *column_of(c, was[s], 0) == column) {
      set_edge(c, b, s, was[s], SSA_NONE);
      continue;
    }
    HG_TRY(insert_block(c, b, s, 0));
    c->again = 1;
  }
  return HG_OK;
}

static hg_status clean_ends(cleaner *c, uint32_t b) {
  ssa_block *block = block_at(c, b);
  uint32_t first = block->successor[0], second = block->successor[1];
  int is_end[2] = {is_empty_end(c, first), second != SSA_NONE && is_empty_end(c, second)};
  int same_end = block->end == SSA_BRANCH && is_end[0] && is_end[1] &&
                 block_at(c, first)->end == block_at(c, second)->end &&
                 block_at(c, first)->trap_code == block_at(c, second)->trap_code;
  if (is_end[0] && (block->end == SSA_JUMP || same_end)) {
    become_end(c, b, first);
    return HG_OK;
  }
  for (int s = 0; s < 2; s++) {
    if (!is_end[s] || c->incoming[block_at(c, b)->successor[s]] == 1) continue;
    HG_TRY(insert_block(c, b, s, 1));
    c->again = 1;
  }
  return HG_OK;
}

static hg_status clean_block(cleaner *c, uint32_t b) {
  decide_branch(c, b);
  if (block_at(c, b)->successor[0] == SSA_NONE) return HG_OK;
  int branch = block_at(c, b)->end == SSA_BRANCH;
  uint32_t was[2] = {block_at(c, b)->successor[0], block_at(c, b)->successor[1]};
  for (int s = 0; s <= branch; s++) skip_empty_blocks(c, b, s);
  if (branch && block_at(c, b)->successor[0] == block_at(c, b)->successor[1]) {
    if (!has_same_arguments(c, b)) return keep_empty_sides(c, b, was);
    become_jump(c, b, 0);
  }
  for (int s = 0; s < 2; s++)
    c->again |= block_at(c, b)->end != SSA_JUMP || s == 0 ? block_at(c, b)->successor[s] != was[s] : 0;
  return clean_ends(c, b);
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

/* A block and its only successor, whose only predecessor it is, become one. */
static int join_successor(cleaner *c, uint32_t b) {
  ssa_block *block = block_at(c, b);
  if (block->end != SSA_JUMP) return 0;
  uint32_t n = block->successor[0];
  ssa_block *next = block_at(c, n);
  if (n == b || n == 0 || c->incoming[n] != 1) return 0;
  for (uint32_t phi = next->first_phi; phi != SSA_NONE; phi = ssa_insn_at(c->unit, phi)->next)
    ir_ssa_replace(c->unit, phi, ssa_args_of(c->unit, phi)[*column_of(c, b, 0)]);
  for (uint32_t e = next->first_effect, after; e != SSA_NONE; e = after) {
    after = ssa_insn_at(c->unit, e)->next;
    ir_ssa_append_effect(c->unit, b, e);
  }
  block->end = next->end;
  block->condition = next->condition;
  block->insn = next->insn;
  block->trap_code = next->trap_code;
  for (int s = 0; s < 2; s++) {
    set_edge(c, b, s, next->successor[s], *column_of(c, n, s));
    next->successor[s] = SSA_NONE;
  }
  next->dead = 1;
  next->first_phi = next->first_effect = next->last_effect = SSA_NONE;
  next->predecessors.count = 0;
  return 1;
}

/* The first block of a chain is merged with all that follow, so that each effect moves once. */
static void join_all(cleaner *c) {
  for (uint32_t k = 0; k < c->count; k++)
    while (!block_at(c, c->order[k])->dead && join_successor(c, c->order[k])) c->again = 1;
}

/* ---- rebuilding predecessors and phis ---------------------------------------------------------------------------- */

static hg_status rebuild_phi(cleaner *c, uint32_t phi, const uint32_t *columns, uint32_t count, uint32_t *scratch) {
  ssa_insn *insn = ssa_insn_at(c->unit, phi);
  for (uint32_t i = 0; i < count; i++) scratch[i] = ssa_args_of(c->unit, phi)[columns[i]];
  if (count > insn->arg_count) {
    insn->args = (uint32_t)c->unit->args.count;
    if (hg_array_append(&c->unit->allocator, &c->unit->args, NULL, count) == NULL) return out_of_memory();
  }
  insn->arg_count = count;
  memcpy(ssa_args_of(c->unit, phi), scratch, count * sizeof *scratch);
  return HG_OK;
}

/* `columns` holds for each block, from start[b] on, the columns its edges had. */
static hg_status rebuild_block(cleaner *c, uint32_t b, const uint32_t *columns, uint32_t *scratch) {
  uint32_t count = (uint32_t)block_at(c, b)->predecessors.count;
  for (uint32_t phi = block_at(c, b)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(c->unit, phi)->next)
    HG_TRY(rebuild_phi(c, phi, columns, count, scratch));
  return HG_OK;
}

static hg_status rebuild(cleaner *c) {
  uint32_t n = (uint32_t)c->unit->blocks.count, sum = 0;
  uint32_t *start = hg_allocate(&c->unit->allocator, 5 * (uint64_t)n + 1, sizeof *start);
  if (start == NULL) return out_of_memory();
  uint32_t *columns = start + n + 1, *scratch = columns + 2 * (size_t)n;
  hg_status status = HG_OK;
  for (uint32_t b = 0; b < n; b++) block_at(c, b)->predecessors.count = 0;
  for (uint32_t k = 0; k < c->count; k++)
    for (int s = 0; s < 2; s++) {
      uint32_t to = block_at(c, c->order[k])->dead ? SSA_NONE : block_at(c, c->order[k])->successor[s];
      if (to != SSA_NONE) start[to + 1]++;
    }
  for (uint32_t b = 0; b <= n; b++) sum = start[b] += sum;
  for (uint32_t k = 0; k < c->count && status == HG_OK; k++)
    for (int s = 0; s < 2 && status == HG_OK; s++) {
      uint32_t from = c->order[k], to = block_at(c, from)->dead ? SSA_NONE : block_at(c, from)->successor[s];
      if (to == SSA_NONE) continue;
      columns[start[to] + block_at(c, to)->predecessors.count] = *column_of(c, from, s);
      if (hg_array_append(&c->unit->allocator, &block_at(c, to)->predecessors, &from, 1) == NULL)
        status = out_of_memory();
    }
  for (uint32_t b = 0; b < n && status == HG_OK; b++)
    if (!block_at(c, b)->dead) status = rebuild_block(c, b, columns + start[b], scratch);
  hg_release(&c->unit->allocator, start);
  return status;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* In postorder, so that a block which becomes empty is so before its predecessors are cleaned. */
static hg_status clean_blocks(cleaner *c) {
  find_order(c);
  remove_unreachable(c);
  find_columns(c);
  for (uint32_t k = c->count; k-- > 0;) HG_TRY(clean_block(c, c->order[k]));
  if (c->again) find_order(c);
  remove_unreachable(c);
  join_all(c);
  return rebuild(c);
}

static hg_status run_round(ssa_unit *unit, int *again) {
  cleaner c = {.unit = unit};
  uint64_t room = 3 * (uint64_t)unit->blocks.count; /* a new block on each edge at most */
  c.column = hg_allocate_unset(&unit->allocator, 6 * room, sizeof(uint32_t));
  if (c.column == NULL) return out_of_memory();
  c.order = c.column + 2 * room;
  c.incoming = c.order + room;
  c.seen = c.incoming + room;
  c.stack = c.seen + room;
  hg_status status = clean_blocks(&c);
  *again = c.again;
  hg_release(&unit->allocator, c.column);
  return status;
}

hg_status hg_pass_clean_flow(const atlas_program *program, ssa_unit *unit, int *changed) {
  (void)program;
  for (int again = 1; again;) {
    HG_TRY(run_round(unit, &again));
    *changed |= again;
  }
  return HG_OK;
}
