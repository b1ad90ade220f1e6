/* unroll.c - loops over memory that run several iterations at a time: which ones do, and how many.
 *
 *   for (i = first; i < end; i += step) { ... x[base + i] ... }      becomes
 *   bound = the least of end, x's length - base, ... , less (times - 1) * step
 *   for (i = first; i < bound and so many steps are left; i += times * step) { times iterations, their loads in front }
 *   for (; i < end; i += step) { ... x[base + i], checked ... }
 *
 * One comparison serves all accesses of these iterations. It holds only where the program gets to each of them and none
 * of them faults, so faults, the step limit and results are those of the program. What is done at once is what nothing
 * can tell from one after the other: loads of memory that the loop does not write are moved in front; all others keep
 * their places, and what may fault keeps its check.
 *
 * A loop is taken where it is left at its head alone, by a comparison of an integer that grows; where it holds no other
 * loop, barrier or collective; and where it loads from a buffer by an unsigned index that grows likewise. */
#include "backend/gpu/unroll.h"

#include "compiler/aliasing.h"
#include "compiler/simplify.h"
#include "ir/ssa_walk.h"

#include <string.h>

enum {
  MOST_INSTRUCTIONS = 96, /* of an iteration */
  MOST_LOOPS = 32,        /* of a program */
  MOST_DEPTH = 6,         /* of additions between an integer that grows and an index */
  USUAL_TIMES = 4,
  BUDGET = 128,           /* instructions of more iterations than that */
  LEAST_BYTES = 16, MOST_BYTES = 32 /* that a lane has under way */
};

/* ---- values of the loop ------------------------------------------------------------------------------------------ */

#define insn_at gpu_unroll_insn
#define arg_of gpu_unroll_arg

static int is_in_loop(const gpu_unroller *u, uint32_t block) {
  if (block == u->loop.header) return 1;
  for (uint32_t i = 0; i < u->loop.block_count; i++)
    if (u->loop.block[i] == block) return 1;
  return 0;
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

static uint32_t root_within(const gpu_unroller *u, uint32_t value, int depth) {
  const ssa_insn *insn = insn_at(u, value);
  uint32_t changing = SSA_NONE, changes = 0;
  if (insn->op == SSA_PHI) return hg_gpu_step_of(u, value) != SSA_NONE ? value : SSA_NONE;
  if ((insn->op != ATLAS_OP_add && insn->op != ATLAS_OP_mad) || !atlas_is_integer((atlas_type)insn->type) || depth == 0)
    return SSA_NONE;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    if (hg_gpu_is_invariant(u, arg_of(u, value, i))) continue;
    changing = i;
    changes++;
  }
  if (changes != 1 || (insn->op == ATLAS_OP_mad && changing != 2)) return SSA_NONE;
  return root_within(u, arg_of(u, value, changing), depth - 1);
}

uint32_t hg_gpu_root_of(const gpu_unroller *u, uint32_t value) { return root_within(u, value, MOST_DEPTH); }

/* ---- which loops ------------------------------------------------------------------------------------------------- */

/* The blocks from which the latch is reached without passing the head. Blocks that were added are another loop's. */
static int collect_blocks(gpu_unroller *u) {
  gpu_loop *loop = &u->loop;
  uint8_t seen[GPU_MOST_LOOP_BLOCKS] = {0};
  const ssa_order *order = &u->g->order;
  uint32_t from = order->position[loop->header], to = order->position[loop->latch];
  loop->block_count = 0;
  if (loop->latch == loop->header || to < from || to - from > GPU_MOST_LOOP_BLOCKS) return 0;
  for (uint32_t k = to; k > from; k--) { /* backwards, so that successors come first */
    uint32_t b = order->block[k];
    const ssa_block *block = ssa_block_at(u->unit, b);
    int inside = b == loop->latch, all = block->end == SSA_JUMP || block->end == SSA_BRANCH;
    for (int s = 0; all && s < (block->end == SSA_BRANCH ? 2 : 1); s++) {
      uint32_t at = block->successor[s] < u->blocks ? order->position[block->successor[s]] : SSA_NONE;
      int is_inside = at != SSA_NONE && at > k && at <= to && seen[at - from - 1];
      inside |= is_inside;
      all &= is_inside || (b == loop->latch && block->end == SSA_JUMP && block->successor[0] == loop->header);
    }
    if (inside && !all) return 0;
    seen[k - from - 1] = (uint8_t)inside;
  }
  for (uint32_t k = from + 1; k <= to; k++)
    if (seen[k - from - 1]) loop->block[loop->block_count++] = order->block[k];
  return 1;
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

/* Each iteration has an element of its own, if all its accesses are of that one. */
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
  else if (is_swept) u->loop.bytes += gpu_bytes(u->g, value);
  if (is_store && (!is_swept || !ssa_dominates(&u->g->order, insn_at(u, value)->block, u->loop.latch)))
    u->loop.keeps[alias] = 1;
  if (!is_store) u->loop.loaded[alias] = 1;
}

/* Stores of what is loaded, too, are late only where each iteration has its own element. */
static void find_late(gpu_unroller *u) {
  for (size_t l = 0; l < sizeof u->loop.keeps; l++) u->loop.keeps[l] |= u->loop.loaded[l] && u->loop.shares[l];
}

static int may_repeat(gpu_unroller *u) {
  u->loop.instructions = u->loop.bytes = 0;
  memset(u->loop.stored, 0, sizeof u->loop.stored);
  memset(u->loop.keeps, 0, sizeof u->loop.keeps);
  memset(u->loop.shares, 0, sizeof u->loop.shares);
  memset(u->loop.loaded, 0, sizeof u->loop.loaded);
  memset(u->loop.only, 0xff, sizeof u->loop.only);
  for (uint32_t i = 0; i < u->loop.block_count; i++)
    for (uint32_t e = ssa_block_at(u->unit, u->loop.block[i])->first_effect; e != SSA_NONE; e = insn_at(u, e)->next) {
      if (++u->loop.instructions > MOST_INSTRUCTIONS) return 0;
      if (hg_is_pure(insn_at(u, e))) continue;
      if (!(gpu_flags(u->g, e) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) return 0;
      note_access(u, e);
    }
  find_late(u);
  return u->loop.bytes > 0;
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
  /* which is the last number that is not above the end is asked of constant steps only */
  int is_less = (test->op == ATLAS_OP_set_lt) == (u->loop.side == 0);
  const ssa_insn *step = insn_at(u, hg_gpu_step_of(u, root));
  return is_less || (step->op == SSA_CONST && step->bits > 0) ? x : SSA_NONE;
}

/* A block that was added is part of another loop. */
static int is_back_edge(const gpu_unroller *u, uint32_t from, uint32_t header) {
  return from < u->blocks && ssa_dominates(&u->g->order, header, from);
}

static int find_loop(gpu_unroller *u, uint32_t header) {
  gpu_loop *loop = &u->loop;
  const ssa_block *head = ssa_block_at(u->unit, header);
  const uint32_t *from = head->predecessors.data;
  loop->header = header;
  if (head->library || head->end != SSA_BRANCH || head->predecessors.count != 2) return 0;
  int back = is_back_edge(u, from[1], header);
  if (back == is_back_edge(u, from[0], header)) return 0;
  loop->latch = from[back];
  loop->entry = from[1 - back];
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

/* ---- what is gone over again ------------------------------------------------------------------------------------- */

static int is_same_step(const gpu_unroller *u, uint32_t a, uint32_t b) {
  const ssa_insn *x = insn_at(u, a), *y = insn_at(u, b);
  return a == b || (x->op == SSA_CONST && y->op == SSA_CONST && x->bits == y->bits);
}

static void note_sweep(gpu_unroller *u, uint32_t loop, uint32_t value) {
  uint32_t phi = hg_gpu_root_of(u, arg_of(u, value, 0)), symbol = insn_at(u, value)->symbol;
  uint32_t start = arg_of(u, phi, 1 - hg_gpu_latch_side(u)), step = hg_gpu_step_of(u, phi);
  for (uint32_t i = 0; i < u->passages; i++)
    if (u->passage[i].symbol == symbol && u->passage[i].loop != loop && u->passage[i].start == start &&
        is_same_step(u, u->passage[i].step, step))
      u->g->swept_again[symbol / 64] |= UINT64_C(1) << symbol % 64;
  if (u->passages == GPU_MOST_PASSAGES) return;
  u->passage[u->passages++] = (gpu_passage){.symbol = symbol, .loop = loop, .start = start, .step = step};
}

static void note_sweeps(gpu_unroller *u, uint32_t loop) {
  for (uint32_t i = 0; i < u->loop.block_count; i++)
    for (uint32_t e = ssa_block_at(u->unit, u->loop.block[i])->first_effect; e != SSA_NONE; e = insn_at(u, e)->next)
      if (hg_gpu_is_swept(u, e)) note_sweep(u, loop, e);
}

/* ---- how many iterations ----------------------------------------------------------------------------------------- */

/* As many as have enough bytes under way, and no more than that takes. */
static uint32_t choose_times(const gpu_unroller *u) {
  uint32_t n = USUAL_TIMES;
  while (n > 1 && n * u->loop.bytes > MOST_BYTES) n /= 2;
  while (n < GPU_MOST_TIMES && n * u->loop.bytes < LEAST_BYTES && 2 * n * u->loop.instructions <= BUDGET) n *= 2;
  return n;
}

static void forget(const gpu_unroller *u, uint32_t block) {
  for (uint32_t copy = 0; copy < GPU_MOST_TIMES; copy++) {
    uint32_t *map = u->map + (size_t)copy * u->values;
    for (uint32_t v = ssa_block_at(u->unit, block)->first_phi; v != SSA_NONE; v = insn_at(u, v)->next)
      if (v < u->values) map[v] = SSA_NONE;
    for (uint32_t v = ssa_block_at(u->unit, block)->first_effect; v != SSA_NONE; v = insn_at(u, v)->next)
      if (v < u->values) map[v] = SSA_NONE;
  }
}

void hg_gpu_forget_copies(const gpu_unroller *u) {
  for (uint32_t i = 0; i < u->loop.block_count; i++) forget(u, u->loop.block[i]);
  forget(u, u->loop.header);
}

static hg_status take_loop(gpu_unroller *u) {
  uint64_t words = (uint64_t)GPU_MOST_TIMES * u->values + u->blocks;
  if (u->map == NULL) {
    u->map = hg_allocate(u->g->allocator, words, sizeof *u->map);
    if (u->map == NULL) return hg_fail_memory("the loops of a kernel", words * sizeof *u->map);
    memset(u->map, 0xff, words * sizeof *u->map);
    u->copy_of = u->map + (size_t)GPU_MOST_TIMES * u->values;
  }
  uint32_t times = choose_times(u);
  hg_gpu_put_in_front(u, times, times < USUAL_TIMES ? times : USUAL_TIMES);
  return u->failed ? hg_fail_memory("the loops of a kernel", words * sizeof *u->map) : HG_OK;
}

hg_status hg_gpu_unroll(gpu_plan *g) {
  gpu_unroller u = {.g = g, .unit = g->unit, .values = (uint32_t)g->unit->insns.count,
                    .blocks = (uint32_t)g->unit->blocks.count};
  ir_ssa_resolve_all(g->unit);
  hg_status status = ir_ssa_order_build(g->unit, &g->order);
  uint32_t loops = 0;
  hg_alias_groups(g->program, g->unit, u.alias);
  for (uint32_t k = 0; k < g->order.count && status == HG_OK && loops < MOST_LOOPS; k++) {
    if (!find_loop(&u, g->order.block[k])) continue;
    note_sweeps(&u, loops++);
    status = take_loop(&u);
  }
  hg_release(g->allocator, u.map);
  ir_ssa_order_release(g->unit, &g->order);
  g->order = (ssa_order){.count = 0};
  return status;
}
