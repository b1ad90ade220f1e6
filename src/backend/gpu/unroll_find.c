/* unroll_find.c - finds the loops that may run several iterations at a time, and the values in them that grow. */
#include "backend/gpu/unroll.h"
#include "backend/gpu/gpu_tuning.h"

#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/effects.h"
#include "ir/ssa_walk.h"

#include <string.h>

/* ---- values of the loop ------------------------------------------------------------------------------------------ */

#define insn_at gpu_unroll_insn
#define arg_of gpu_unroll_arg

/* 1 if this loop is the innermost one around the block. A block that was added belongs to another loop. */
static int is_in_loop(const gpu_unroller *u, uint32_t block) {
  return block < u->blocks && u->loops.loop[block] == u->loop.header;
}

int hg_gpu_is_invariant(const gpu_unroller *u, uint32_t value) {
  return insn_at(u, value)->block == SSA_NONE || !is_in_loop(u, insn_at(u, value)->block);
}

uint32_t hg_gpu_latch_side(const gpu_unroller *u) {
  const uint32_t *from = ssa_block_at(u->unit, u->loop.header)->predecessors.data;
  return from[0] == u->loop.latch ? 0 : 1;
}

static int is_step(const gpu_unroller *u, uint32_t value) {
  const ssa_insn *insn = insn_at(u, value);
  uint64_t numbers = atlas_mask((atlas_type)insn->type);
  if (insn->op == SSA_CONST) return insn->bits <= GPU_MOST_STEP && insn->bits <= numbers / (4 * GPU_MOST_TIMES);
  return (insn->type == ATLAS_u32 || insn->type == ATLAS_u64) && hg_gpu_is_invariant(u, value);
}

uint32_t hg_gpu_step_of(const gpu_unroller *u, uint32_t phi) {
  const ssa_insn *insn = insn_at(u, phi);
  if (insn->op != SSA_PHI || insn->block != u->loop.header || !atlas_is_integer((atlas_type)insn->type))
    return SSA_NONE;
  uint32_t next = arg_of(u, phi, hg_gpu_latch_side(u));
  if (insn_at(u, next)->op != ATLAS_OP_add) return SSA_NONE;
  for (uint32_t i = 0; i < 2; i++)
    if (arg_of(u, next, i) == phi && is_step(u, arg_of(u, next, 1 - i))) return arg_of(u, next, 1 - i);
  return SSA_NONE;
}

static int is_term(const void *unroller, uint32_t value) { return hg_gpu_is_invariant(unroller, value); }

uint32_t hg_gpu_root_of(const gpu_unroller *u, uint32_t value) {
  hg_terms terms;
  uint32_t phi = hg_take_terms(u->unit, value, is_term, u, &terms);
  return hg_gpu_step_of(u, phi) != SSA_NONE ? phi : SSA_NONE;
}

/* ---- which loops ------------------------------------------------------------------------------------------------- */

/* 0: the loop is left elsewhere than at its header, or contains another loop. */
static int collect_blocks(gpu_unroller *u) {
  gpu_loop *loop = &u->loop;
  const ssa_order *order = &u->g->order;
  loop->block_count = 0;
  for (uint32_t k = order->position[loop->header] + 1; k <= order->position[loop->latch]; k++) {
    uint32_t b = order->block[k];
    const ssa_block *block = ssa_block_at(u->unit, b);
    if (!is_in_loop(u, b)) continue;
    if (block->end != SSA_JUMP && (block->end != SSA_BRANCH || b == loop->latch)) return 0;
    if (loop->block_count == GPU_MOST_LOOP_BLOCKS) return 0;
    for (int s = 0; s < (block->end == SSA_BRANCH ? 2 : 1); s++)
      if (!is_in_loop(u, block->successor[s])) return 0;
    loop->block[loop->block_count++] = b;
  }
  return loop->block_count > 0;
}

int hg_gpu_is_swept(const gpu_unroller *u, uint32_t value) {
  const ssa_insn *insn = insn_at(u, value);
  if (!(gpu_flags(u->g, value) & (ATLAS_LOAD | ATLAS_STORE)) || gpu_flags(u->g, value) & ATLAS_ATOMIC ||
      insn->symbol & SSA_LIBRARY || insn->mode != ATLAS_ADDRESS_INDEXED || insn->bits > GPU_MOST_STEP)
    return 0;
  uint8_t type = insn_at(u, arg_of(u, value, 0))->type;
  return gpu_symbol_of(u->g, insn)->kind == ATLAS_SYMBOL_BUFFER && (type == ATLAS_u32 || type == ATLAS_u64) &&
         !hg_gpu_is_invariant(u, arg_of(u, value, 0)) && hg_gpu_root_of(u, arg_of(u, value, 0)) != SSA_NONE;
}

static uint32_t alias_of(const gpu_unroller *u, uint32_t value) {
  return u->alias[hg_location_of(u->g->program, insn_at(u, value))];
}

int hg_gpu_is_late(const gpu_unroller *u, uint32_t value) {
  uint32_t flags = gpu_flags(u->g, value);
  return flags & ATLAS_STORE && !(flags & ATLAS_ATOMIC) && !u->loop.keeps[alias_of(u, value)];
}

int hg_gpu_is_early(const gpu_unroller *u, uint32_t value) {
  if (!(gpu_flags(u->g, value) & ATLAS_LOAD) || !hg_gpu_is_swept(u, value)) return 0;
  return !u->loop.stored[alias_of(u, value)] || !u->loop.shares[alias_of(u, value)];
}

/* 1 if each iteration has an element of its own, provided that all its accesses go to that element. */
static int is_of_own(const gpu_unroller *u, uint32_t value, uint32_t other) {
  const ssa_insn *a = insn_at(u, value), *b = insn_at(u, other);
  if (a->symbol != b->symbol || a->bits != b->bits || arg_of(u, value, 0) != arg_of(u, other, 0)) return 0;
  const ssa_insn *step = insn_at(u, hg_gpu_step_of(u, hg_gpu_root_of(u, arg_of(u, value, 0))));
  return step->op == SSA_CONST && step->bits > 0;
}

static void note_access(gpu_unroller *u, uint32_t value) {
  uint32_t flags = gpu_flags(u->g, value);
  int is_swept = hg_gpu_is_swept(u, value), is_store = (flags & (ATLAS_STORE | ATLAS_ATOMIC)) != 0;
  if (insn_at(u, value)->symbol & SSA_LIBRARY) return;
  uint32_t alias = alias_of(u, value);
  if (u->loop.only[alias] == SSA_NONE) u->loop.only[alias] = value;
  if (!is_swept || !is_of_own(u, value, u->loop.only[alias]) || (!is_store && u->loop.stored[alias]))
    u->loop.shares[alias] = 1;
  if (is_store) u->loop.stored[alias] = 1;
  else if (insn_at(u, value)->op == ATLAS_OP_ldg) u->loop.bytes += gpu_bytes(u->g, value);
  u->loop.sweeps |= is_swept && !is_store;
  if (is_store && (!is_swept || !ssa_dominates(&u->g->order, insn_at(u, value)->block, u->loop.latch)))
    u->loop.keeps[alias] = 1;
  if (!is_store) u->loop.loaded[alias] = 1;
}

/* Stores of something that is also loaded are late only if each iteration has an element of its own. */
static void find_late(gpu_unroller *u) {
  for (size_t l = 0; l < sizeof u->loop.keeps; l++) u->loop.keeps[l] |= u->loop.loaded[l] && u->loop.shares[l];
}

static int may_repeat(gpu_unroller *u) {
  for (uint32_t i = 0; i < u->loop.block_count; i++)
    for (uint32_t e = ssa_block_at(u->unit, u->loop.block[i])->first_effect; e != SSA_NONE; e = insn_at(u, e)->next) {
      if (++u->loop.instructions > GPU_MOST_ITERATION) return 0;
      if (hg_is_pure(insn_at(u, e))) continue;
      if (!(gpu_flags(u->g, e) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) return 0;
      note_access(u, e);
    }
  find_late(u);
  return u->loop.sweeps;
}

uint32_t hg_gpu_compared(const gpu_unroller *u) {
  const ssa_block *head = ssa_block_at(u->unit, u->loop.header);
  const ssa_insn *test = insn_at(u, head->condition);
  uint32_t at = u->loop.side == 0 ? 0 : 1;
  if ((test->op != ATLAS_OP_set_lt && test->op != ATLAS_OP_set_le) || !atlas_is_integer((atlas_type)test->type2))
    return SSA_NONE;
  uint32_t x = arg_of(u, head->condition, at), y = arg_of(u, head->condition, 1 - at), root = SSA_NONE;
  if (!hg_gpu_is_invariant(u, x) && hg_gpu_is_invariant(u, y)) root = hg_gpu_root_of(u, x);
  if (root == SSA_NONE) return SSA_NONE;
  /* x <= end is accepted for constant steps only, since end may be the type's greatest number */
  int is_less = (test->op == ATLAS_OP_set_lt) == (u->loop.side == 0);
  const ssa_insn *step = insn_at(u, hg_gpu_step_of(u, root));
  return is_less || (step->op == SSA_CONST && step->bits > 0) ? x : SSA_NONE;
}

int hg_gpu_find_loop(gpu_unroller *u, uint32_t header) {
  gpu_loop *loop = &u->loop;
  const ssa_block *head = ssa_block_at(u->unit, header);
  const uint32_t *from = head->predecessors.data;
  loop->header = header;
  if (!is_in_loop(u, header) || head->library || head->end != SSA_BRANCH || head->predecessors.count != 2) return 0;
  int back = is_in_loop(u, from[1]);
  if (back == is_in_loop(u, from[0])) return 0;
  *loop = (gpu_loop){.header = header, .latch = from[back], .entry = from[1 - back]};
  memset(loop->only, 0xff, sizeof loop->only);
  if (!collect_blocks(u)) return 0;
  loop->side = is_in_loop(u, head->successor[0]) ? 0 : 1;
  loop->body = head->successor[loop->side];
  if (loop->body == header || !is_in_loop(u, loop->body) || is_in_loop(u, head->successor[1 - loop->side]) ||
      ssa_block_at(u->unit, loop->body)->predecessors.count != 1)
    return 0;
  for (uint32_t e = head->first_effect; e != SSA_NONE; e = insn_at(u, e)->next)
    if (!hg_is_pure(insn_at(u, e))) return 0;
  return may_repeat(u) && hg_gpu_compared(u) != SSA_NONE;
}
