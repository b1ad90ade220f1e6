/* unroll.c - loops over memory that run several iterations at a time.
 *
 *   for (i = first; i < end; i += step) { ... x[base + i] ... }      becomes
 *   for (...) {
 *     while (i + (TIMES - 1) * step < end, and all that TIMES iterations access is in bounds, and so many steps are
 * left) { TIMES iterations, their loads in front } if (!(i < end)) break; one iteration, each access checked
 *   }
 *
 * One test serves all accesses of TIMES iterations. It holds only where the program gets to each of them and none of
 * them faults, so faults, the step limit and results are those of the program. What is done at once is what nothing
 * can tell from one after the other: loads of memory that the loop does not write are moved in front; all others keep
 * their places.
 *
 * A loop is taken where it is left at its head alone, by a comparison of an integer that grows by a constant; where it
 * holds no other loop, no barrier, collective or atomic; and where each access to a buffer has an unsigned index that
 * grows likewise. */
#include "backend/gpu/plan.h"

#include "compiler/aliasing.h"
#include "compiler/simplify.h"
#include "ir/ssa_walk.h"

#include <string.h>

enum {
  TIMES = 4,
  MOST_INSTRUCTIONS = 96, /* of an iteration */
  MOST_BLOCKS = 16,
  MOST_LOOPS = 32,        /* of a program */
  MOST_STEP = 1 << 20,    /* that an integer grows by in an iteration */
  MOST_DEPTH = 6          /* of additions between that integer and an index */
};

typedef struct unroller {
  gpu_plan *g;
  ssa_unit *unit;
  uint32_t values, blocks;      /* before anything was added */
  uint32_t *map; /* TIMES + 1 times per value: what it is in each copy, the last: in the test; SSA_NONE */
  uint32_t *copy_of;            /* per block before, of the copy at hand */
  uint32_t alias[ATLAS_MAX_SYMBOLS + 2];
  uint8_t stored[ATLAS_MAX_SYMBOLS + 2]; /* per alias group: the loop writes it */
  uint32_t header, latch, body; /* blocks; body: the head's successor in the loop */
  int side;                     /* of the head's branch that stays in the loop */
  uint32_t block[MOST_BLOCKS], block_count; /* of the loop, but the head; in the order of the plan */
  uint32_t test;                /* the test so far, a predicate; SSA_NONE: nothing yet */
  int failed;                   /* out of memory */
} unroller;

/* ---- values of the loop ------------------------------------------------------------------------------------------ */

static const ssa_insn *insn_at(const unroller *u, uint32_t value) { return ssa_insn_at(u->unit, value); }
static uint32_t arg_of(const unroller *u, uint32_t value, uint32_t i) { return ssa_args_of(u->unit, value)[i]; }

static int is_in_loop(const unroller *u, uint32_t block) {
  if (block == u->header) return 1;
  for (uint32_t i = 0; i < u->block_count; i++)
    if (u->block[i] == block) return 1;
  return 0;
}

static int is_invariant(const unroller *u, uint32_t value) {
  return insn_at(u, value)->block == SSA_NONE || !is_in_loop(u, insn_at(u, value)->block);
}

/* Which operand of the head's phis comes from the latch. */
static uint32_t latch_side(const unroller *u) {
  return ((const uint32_t *)ssa_block_at(u->unit, u->header)->predecessors.data)[0] == u->latch ? 0 : 1;
}

/* What a phi of the head grows by in an iteration; 0: not by a constant. */
static uint64_t step_of(const unroller *u, uint32_t phi) {
  const ssa_insn *insn = insn_at(u, phi);
  if (insn->op != SSA_PHI || insn->block != u->header || !atlas_is_integer((atlas_type)insn->type)) return 0;
  uint32_t next = arg_of(u, phi, latch_side(u));
  if (insn_at(u, next)->op != ATLAS_OP_add) return 0;
  for (uint32_t i = 0; i < 2; i++) {
    const ssa_insn *other = insn_at(u, arg_of(u, next, 1 - i));
    if (arg_of(u, next, i) == phi && other->op == SSA_CONST && other->bits <= MOST_STEP) return other->bits;
  }
  return 0;
}

/* The value is such a phi plus what the loop does not change. */
static int grows(const unroller *u, uint32_t value, int depth) {
  const ssa_insn *insn = insn_at(u, value);
  if (insn->op == SSA_PHI) return step_of(u, value) != 0;
  if (insn->op != ATLAS_OP_add || is_invariant(u, value) || depth == 0) return 0;
  for (uint32_t i = 0; i < 2; i++)
    if (is_invariant(u, arg_of(u, value, 1 - i)) && grows(u, arg_of(u, value, i), depth - 1)) return 1;
  return 0;
}

/* ---- which loops ------------------------------------------------------------------------------------------------- */

/* The blocks from which the latch is reached without passing the head. */
static int collect_blocks(unroller *u) {
  uint8_t seen[MOST_BLOCKS] = {0};
  const ssa_order *order = &u->g->order;
  uint32_t from = order->position[u->header], to = order->position[u->latch];
  u->block_count = 0;
  if (u->latch == u->header || to < from || to - from > MOST_BLOCKS) return 0;
  for (uint32_t k = to; k > from; k--) { /* backwards, so that successors come first */
    uint32_t b = order->block[k];
    const ssa_block *block = ssa_block_at(u->unit, b);
    int inside = b == u->latch, all = block->end == SSA_JUMP || block->end == SSA_BRANCH;
    for (int s = 0; all && s < (block->end == SSA_BRANCH ? 2 : 1); s++) {
      uint32_t at = order->position[block->successor[s]];
      int is_inside = at > k && at <= to && seen[at - from - 1];
      inside |= is_inside;
      all &= is_inside || (b == u->latch && block->end == SSA_JUMP && block->successor[0] == u->header);
    }
    if (inside && !all) return 0;
    seen[k - from - 1] = (uint8_t)inside;
  }
  for (uint32_t k = from + 1; k <= to; k++)
    if (seen[k - from - 1]) u->block[u->block_count++] = order->block[k];
  return 1;
}

static int is_access(uint32_t flags) { return (flags & (ATLAS_LOAD | ATLAS_STORE)) != 0; }

/* Accesses to the program's buffers that grow, and look-ups in the function library's tables. */
static int may_repeat_access(const unroller *u, uint32_t value) {
  const ssa_insn *insn = insn_at(u, value);
  if (insn->symbol & SSA_LIBRARY) return 1;
  if (insn->mode != ATLAS_ADDRESS_INDEXED || insn->bits > MOST_STEP) return 0;
  uint8_t type = insn_at(u, arg_of(u, value, 0))->type;
  return gpu_symbol_of(u->g, insn)->kind == ATLAS_SYMBOL_BUFFER && (type == ATLAS_u32 || type == ATLAS_u64) &&
         grows(u, arg_of(u, value, 0), MOST_DEPTH);
}

/* Notes what the loop stores; *loads: of buffers. */
static int may_repeat(unroller *u, uint32_t *loads) {
  uint32_t count = 0;
  memset(u->stored, 0, sizeof u->stored);
  *loads = 0;
  for (uint32_t i = 0; i < u->block_count; i++)
    for (uint32_t e = ssa_block_at(u->unit, u->block[i])->first_effect; e != SSA_NONE; e = insn_at(u, e)->next) {
      uint32_t flags = gpu_flags(u->g, e);
      if (++count > MOST_INSTRUCTIONS) return 0;
      if (hg_is_pure(insn_at(u, e))) continue;
      if (flags & ATLAS_ATOMIC || !is_access(flags) || !may_repeat_access(u, e)) return 0;
      *loads += flags & ATLAS_LOAD && !(insn_at(u, e)->symbol & SSA_LIBRARY);
      if (flags & ATLAS_STORE) u->stored[u->alias[hg_location_of(u->g->program, insn_at(u, e))]] = 1;
    }
  return 1;
}

/* The side of the comparison that decides whether the loop goes on and that grows: it goes on while x < y or x <= y, or
 * is left once y < x or y <= x. SSA_NONE: it is no such comparison. */
static uint32_t compared(const unroller *u) {
  const ssa_block *head = ssa_block_at(u->unit, u->header);
  const ssa_insn *test = insn_at(u, head->condition);
  uint32_t at = u->side == 0 ? 0 : 1;
  if ((test->op != ATLAS_OP_set_lt && test->op != ATLAS_OP_set_le) || !atlas_is_integer((atlas_type)test->type2))
    return SSA_NONE;
  uint32_t x = arg_of(u, head->condition, at), y = arg_of(u, head->condition, 1 - at);
  return grows(u, x, MOST_DEPTH) && is_invariant(u, y) ? x : SSA_NONE;
}

/* A block that was added is the test of another loop. */
static int is_back_edge(const unroller *u, uint32_t from, uint32_t header) {
  return from < u->blocks && ssa_dominates(&u->g->order, header, from);
}

static int find_loop(unroller *u, uint32_t header) {
  const ssa_block *head = ssa_block_at(u->unit, header);
  const uint32_t *from = head->predecessors.data;
  uint32_t loads = 0;
  u->header = header;
  if (head->library || head->end != SSA_BRANCH || head->predecessors.count != 2) return 0;
  int back = is_back_edge(u, from[1], header);
  if (back == is_back_edge(u, from[0], header)) return 0;
  u->latch = from[back];
  if (!collect_blocks(u)) return 0;
  u->side = is_in_loop(u, head->successor[0]) ? 0 : 1;
  u->body = head->successor[u->side];
  if (u->body == header || !is_in_loop(u, u->body) || is_in_loop(u, head->successor[1 - u->side]) ||
      ssa_block_at(u->unit, u->body)->predecessors.count != 1)
    return 0;
  for (uint32_t e = head->first_effect; e != SSA_NONE; e = insn_at(u, e)->next)
    if (!hg_is_pure(insn_at(u, e))) return 0;
  return may_repeat(u, &loads) && loads > 0 && compared(u) != SSA_NONE;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static uint32_t *map_of(const unroller *u, uint32_t copy) { return u->map + (size_t)copy * u->values; }

static uint32_t add_in(unroller *u, uint32_t block, const ssa_insn *insn, const uint32_t *args, uint32_t count) {
  const ssa_insn copy = *insn;
  uint32_t value = u->failed ? SSA_NONE : ir_ssa_add(u->unit, &copy, count);
  if (value == SSA_NONE) {
    u->failed = 1;
    return 0;
  }
  for (uint32_t i = 0; i < count; i++) ssa_args_of(u->unit, value)[i] = args[i];
  if (block != SSA_NONE) ir_ssa_append_effect(u->unit, block, value);
  return value;
}

static uint32_t add_op(unroller *u, uint32_t block, uint16_t op, uint8_t type, uint8_t type2, uint32_t a, uint32_t b) {
  const ssa_insn insn = {.op = op, .type = type, .type2 = type2, .insn = SSA_NONE};
  return add_in(u, block, &insn, (uint32_t[]){a, b}, b == SSA_NONE ? 1 : 2);
}

static uint32_t constant(unroller *u, uint8_t type, uint64_t bits) {
  const ssa_insn insn = {.op = SSA_CONST, .type = type, .bits = bits, .insn = SSA_NONE};
  return add_in(u, SSA_NONE, &insn, NULL, 0);
}

/* A growing phi, so many iterations on. */
static uint32_t grown(unroller *u, uint32_t block, uint32_t phi, uint32_t times) {
  uint8_t type = insn_at(u, phi)->type;
  if (times == 0) return phi;
  return add_op(u, block, ATLAS_OP_add, type, 0, phi, constant(u, type, step_of(u, phi) * times));
}

/* The value in a copy; what the loop does not change is itself. */
static uint32_t mapped(const unroller *u, uint32_t copy, uint32_t value) {
  uint32_t now = value < u->values ? map_of(u, copy)[value] : SSA_NONE;
  return now != SSA_NONE ? now : value;
}

static uint32_t clone(unroller *u, uint32_t block, uint32_t copy, uint32_t value) {
  const ssa_insn *insn = insn_at(u, value);
  uint32_t args[2 * MOST_BLOCKS], count = insn->arg_count;
  for (uint32_t i = 0; i < count; i++) args[i] = mapped(u, copy, arg_of(u, value, i));
  return map_of(u, copy)[value] = add_in(u, block, insn, args, count);
}

/* A growing value in a copy, computed in a block before the others of the copy are. */
static uint32_t ahead(unroller *u, uint32_t block, uint32_t copy, uint32_t times, uint32_t value) {
  uint32_t *map = map_of(u, copy);
  if (is_invariant(u, value) || (times == 0 && insn_at(u, value)->block == u->header)) return value;
  if (map[value] != SSA_NONE) return map[value];
  if (insn_at(u, value)->op == SSA_PHI) return map[value] = grown(u, block, value, times);
  for (uint32_t i = 0; i < 2; i++) (void)ahead(u, block, copy, times, arg_of(u, value, i));
  return clone(u, block, copy, value);
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static void also(unroller *u, uint32_t predicate) {
  u->test = u->test == SSA_NONE
                ? predicate
                : add_op(u, u->header, ATLAS_OP_pand, SSA_PREDICATE, SSA_PREDICATE, u->test, predicate);
}

static uint32_t compare(unroller *u, uint16_t op, uint8_t type, uint32_t a, uint32_t b) {
  return add_op(u, u->header, op, SSA_PREDICATE, type, a, b);
}

/* It does not wrap between the first and the last iteration; the latter's. */
static uint32_t without_wrap(unroller *u, uint32_t value) {
  int is_known = map_of(u, TIMES)[value] != SSA_NONE;
  uint32_t last = ahead(u, u->header, TIMES, TIMES - 1, value);
  if (!is_known) also(u, compare(u, ATLAS_OP_set_le, insn_at(u, value)->type, ahead(u, u->header, 0, 0, value), last));
  return last;
}

static void test_access(unroller *u, uint32_t value) {
  const ssa_insn *insn = insn_at(u, value);
  const ssa_insn length = {.op = ATLAS_OP_len, .type = ATLAS_u64, .symbol = insn->symbol, .insn = SSA_NONE};
  uint64_t displacement = insn->bits;
  uint8_t type = insn_at(u, arg_of(u, value, 0))->type;
  uint32_t last = without_wrap(u, arg_of(u, value, 0));
  if (type == ATLAS_u32) last = add_op(u, u->header, ATLAS_OP_cvt, ATLAS_u64, ATLAS_u32, last, SSA_NONE);
  uint32_t extent = add_in(u, u->header, &length, NULL, 0);
  if (type == ATLAS_u64 || displacement == 0) also(u, compare(u, ATLAS_OP_set_lt, ATLAS_u64, last, extent));
  if (displacement == 0) return;
  last = add_op(u, u->header, ATLAS_OP_add, ATLAS_u64, 0, last, constant(u, ATLAS_u64, displacement));
  also(u, compare(u, ATLAS_OP_set_lt, ATLAS_u64, last, extent));
}

/* Of two accesses with one symbol and index the one with the larger displacement is enough. */
static int is_tested_by_other(const unroller *u, uint32_t value) {
  const ssa_insn *a = insn_at(u, value);
  for (uint32_t i = 0; i < u->block_count; i++)
    for (uint32_t e = ssa_block_at(u->unit, u->block[i])->first_effect; e != SSA_NONE; e = insn_at(u, e)->next) {
      const ssa_insn *b = insn_at(u, e);
      if (e == value || !is_access(gpu_flags(u->g, e)) || b->symbol != a->symbol ||
          arg_of(u, e, 0) != arg_of(u, value, 0))
        continue;
      if (b->bits > a->bits || (b->bits == a->bits && e < value)) return 1;
    }
  return 0;
}

static void write_test(unroller *u) {
  const ssa_block *head = ssa_block_at(u->unit, u->header);
  uint32_t condition = head->condition, at = u->side == 0 ? 0 : 1, args[2];
  const ssa_insn test = *insn_at(u, condition);
  args[at] = without_wrap(u, compared(u));
  args[1 - at] = arg_of(u, condition, 1 - at);
  uint32_t goes_on = add_in(u, u->header, &test, args, 2);
  also(u,
       u->side == 0 ? goes_on : add_op(u, u->header, ATLAS_OP_pnot, SSA_PREDICATE, SSA_PREDICATE, goes_on, SSA_NONE));
  for (uint32_t i = 0; i < u->block_count; i++)
    for (uint32_t e = ssa_block_at(u->unit, u->block[i])->first_effect; e != SSA_NONE; e = insn_at(u, e)->next)
      if (is_access(gpu_flags(u->g, e)) && !(insn_at(u, e)->symbol & SSA_LIBRARY) && !is_tested_by_other(u, e))
        test_access(u, e);
}

/* ---- the iterations ---------------------------------------------------------------------------------------------- */

static uint32_t add_block(unroller *u) {
  uint32_t block = u->failed ? SSA_NONE : ir_ssa_add_block(u->unit);
  if (block == SSA_NONE) u->failed = 1;
  return block == SSA_NONE ? 0 : block;
}

static void add_predecessor(unroller *u, uint32_t block, uint32_t from) {
  if (!hg_array_push(&u->unit->allocator, &ssa_block_at(u->unit, block)->predecessors, from)) u->failed = 1;
}

/* A copy of an access is in bounds: the test has asked. */
static void copy_effect(unroller *u, uint32_t block, uint32_t copy, uint32_t value) {
  uint32_t made = clone(u, block, copy, value);
  if (hg_is_pure(insn_at(u, value)) || insn_at(u, value)->symbol & SSA_LIBRARY) return;
  if (!hg_array_push(u->g->allocator, &u->g->proven, made)) u->failed = 1;
}

/* Loads that every iteration does, of memory that the loop does not write: of all iterations in front. */
static void load_ahead(unroller *u, uint32_t block) {
  for (uint32_t copy = 1; copy < TIMES; copy++)
    for (uint32_t e = ssa_block_at(u->unit, u->body)->first_effect; e != SSA_NONE; e = insn_at(u, e)->next) {
      if (!(gpu_flags(u->g, e) & ATLAS_LOAD) || insn_at(u, e)->symbol & SSA_LIBRARY ||
          u->stored[u->alias[hg_location_of(u->g->program, insn_at(u, e))]])
        continue;
      (void)ahead(u, block, copy, copy, arg_of(u, e, 0));
      copy_effect(u, block, copy, e);
    }
}

static void copy_list(unroller *u, uint32_t from, uint32_t to, uint32_t copy) {
  for (uint32_t e = ssa_block_at(u->unit, from)->first_effect; e != SSA_NONE && !u->failed; e = insn_at(u, e)->next)
    if (e < u->values && map_of(u, copy)[e] == SSA_NONE) copy_effect(u, to, copy, e); /* no part of the test */
}

/* What the head's phis and values are in an iteration; `to` is where it begins. */
static void begin_iteration(unroller *u, uint32_t to, uint32_t first, uint32_t copy) {
  if (copy == 0) return;
  for (uint32_t phi = ssa_block_at(u->unit, u->header)->first_phi; phi != SSA_NONE; phi = insn_at(u, phi)->next) {
    if (step_of(u, phi) != 0) (void)ahead(u, first, copy, copy, phi);
    else map_of(u, copy)[phi] = mapped(u, copy - 1, arg_of(u, phi, latch_side(u)));
  }
  copy_list(u, u->header, to, copy);
}

static void copy_phis(unroller *u, uint32_t block, uint32_t copy) {
  for (uint32_t phi = ssa_block_at(u->unit, block)->first_phi; phi != SSA_NONE; phi = insn_at(u, phi)->next) {
    uint32_t made = clone(u, SSA_NONE, copy, phi);
    if (!u->failed) ir_ssa_append_phi(u->unit, u->copy_of[block], made);
  }
}

/* But the latch's, whose copy is where the next iteration begins. */
static void copy_end(unroller *u, uint32_t block, uint32_t copy) {
  ssa_block *from = ssa_block_at(u->unit, block), *to = ssa_block_at(u->unit, u->copy_of[block]);
  if (block == u->latch) return;
  to->end = from->end;
  to->insn = from->insn;
  to->condition = from->condition == SSA_NONE ? SSA_NONE : mapped(u, copy, from->condition);
  for (int s = 0; s < (from->end == SSA_BRANCH ? 2 : 1); s++) to->successor[s] = u->copy_of[from->successor[s]];
}

/* One iteration, which begins in the block `at`; where it ends. */
static uint32_t copy_iteration(unroller *u, uint32_t at, uint32_t first, uint32_t copy) {
  begin_iteration(u, at, first, copy);
  for (uint32_t i = 0; i < u->block_count && !u->failed; i++)
    u->copy_of[u->block[i]] = u->block[i] == u->body ? at : add_block(u);
  for (uint32_t i = 0; i < u->block_count && !u->failed; i++) {
    uint32_t block = u->block[i];
    const hg_array *from = &ssa_block_at(u->unit, block)->predecessors;
    for (size_t k = 0; k < from->count && block != u->body; k++)
      add_predecessor(u, u->copy_of[block], u->copy_of[((const uint32_t *)from->data)[k]]);
    copy_phis(u, block, copy);
    copy_list(u, block, u->copy_of[block], copy);
  }
  for (uint32_t i = 0; i < u->block_count && !u->failed; i++) copy_end(u, u->block[i], copy);
  return u->copy_of[u->latch];
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* The phis of the head get a value from the last of the iterations, too. */
static void extend_phis(unroller *u) {
  for (uint32_t phi = ssa_block_at(u->unit, u->header)->first_phi; phi != SSA_NONE; phi = insn_at(u, phi)->next) {
    const uint32_t args[3] = {arg_of(u, phi, 0), arg_of(u, phi, 1),
                              mapped(u, TIMES - 1, arg_of(u, phi, latch_side(u)))};
    uint32_t first = (uint32_t)u->unit->args.count;
    if (hg_array_append(&u->unit->allocator, &u->unit->args, args, 3) == NULL) {
      u->failed = 1;
      return;
    }
    ssa_insn_at(u->unit, phi)->args = first;
    ssa_insn_at(u->unit, phi)->arg_count = 3;
  }
}

/* The head's old branch goes into a block of its own. */
static void move_branch(unroller *u, uint32_t to) {
  ssa_block *head = ssa_block_at(u->unit, u->header), *block = ssa_block_at(u->unit, to);
  block->end = SSA_BRANCH;
  block->condition = head->condition;
  block->insn = head->insn;
  for (int s = 0; s < 2; s++) {
    hg_array *from = &ssa_block_at(u->unit, head->successor[s])->predecessors;
    block->successor[s] = head->successor[s];
    for (size_t k = 0; k < from->count; k++)
      if (((uint32_t *)from->data)[k] == u->header) ((uint32_t *)from->data)[k] = to;
  }
  add_predecessor(u, to, u->header);
}

static void unroll(unroller *u) {
  u->test = SSA_NONE;
  write_test(u);
  uint32_t first = add_block(u), otherwise = add_block(u), last = first;
  if (u->failed) return;
  load_ahead(u, first);
  for (uint32_t copy = 0; copy < TIMES && !u->failed; copy++) last = copy_iteration(u, last, first, copy);
  if (u->failed) return;
  extend_phis(u);
  move_branch(u, otherwise);
  add_predecessor(u, first, u->header);
  add_predecessor(u, u->header, last);
  ssa_block *head = ssa_block_at(u->unit, u->header), *end = ssa_block_at(u->unit, last);
  head->condition = u->test;
  head->successor[0] = first;
  head->successor[1] = otherwise;
  end->end = SSA_JUMP;
  end->successor[0] = u->header;
  end->insn = ssa_block_at(u->unit, u->latch)->insn;
  const gpu_unrolled done = {.header = u->header, .last = last, .times = TIMES};
  if (hg_array_append(u->g->allocator, &u->g->unrolled, &done, 1) == NULL) u->failed = 1;
}

static void forget(const unroller *u, uint32_t block) {
  for (uint32_t copy = 0; copy <= TIMES; copy++) {
    for (uint32_t v = ssa_block_at(u->unit, block)->first_phi; v != SSA_NONE; v = insn_at(u, v)->next)
      if (v < u->values) map_of(u, copy)[v] = SSA_NONE;
    for (uint32_t v = ssa_block_at(u->unit, block)->first_effect; v != SSA_NONE; v = insn_at(u, v)->next)
      if (v < u->values) map_of(u, copy)[v] = SSA_NONE;
  }
}

static hg_status take_loop(unroller *u) {
  uint64_t words = (uint64_t)(TIMES + 1) * u->values + u->blocks;
  if (u->map == NULL) {
    u->map = hg_allocate(u->g->allocator, words, sizeof *u->map);
    if (u->map == NULL) return hg_fail_memory("the loops of a kernel", words * sizeof *u->map);
    memset(u->map, 0xff, words * sizeof *u->map);
    u->copy_of = u->map + (size_t)(TIMES + 1) * u->values;
  }
  unroll(u);
  for (uint32_t i = 0; i < u->block_count; i++) forget(u, u->block[i]);
  forget(u, u->header);
  return u->failed ? hg_fail_memory("the loops of a kernel", words * sizeof *u->map) : HG_OK;
}

hg_status hg_gpu_unroll(gpu_plan *g) {
  unroller u = {.g = g, .unit = g->unit, .values = (uint32_t)g->unit->insns.count,
                .blocks = (uint32_t)g->unit->blocks.count};
  ir_ssa_resolve_all(g->unit);
  hg_status status = ir_ssa_order_build(g->unit, &g->order);
  hg_alias_groups(g->program, g->unit, u.alias);
  for (uint32_t k = 0; k < g->order.count && status == HG_OK && g->unrolled.count < MOST_LOOPS; k++)
    if (find_loop(&u, g->order.block[k])) status = take_loop(&u);
  hg_release(g->allocator, u.map);
  ir_ssa_order_release(g->unit, &g->order);
  g->order = (ssa_order){.count = 0};
  return status;
}
