/* schedule.c - global code motion (Click, "Global Code Motion, Global Value Numbering", 1995): hoisting out of loops
 * and sinking in one. Pure values cannot fault and have no order, so every place between arguments and uses gives the
 * same bits. */
#include "compiler/canon/schedule.h"

#include "base/error.h"
#include "compiler/analysis/effects.h"
#include "ir/ssa_walk.h"

#include <string.h>

typedef struct scheduler {
  ssa_unit *unit;
  ssa_order order;
  hg_array values;       /* walk order: arguments first */
  uint32_t *loop;        /* per block: the header of the innermost loop it is in; SSA_NONE */
  uint32_t *loop_depth;  /* per block */
  uint32_t *place;       /* per value: its block; SSA_NONE: no use placed yet */
  uint8_t *is_floating;  /* per value of the walk: pure, and to be placed */
  uint8_t *emitted;      /* per value */
  uint8_t *uses;         /* per value: 0, 1, or 2 for more */
  uint8_t *is_fold;      /* per value: see find_folds */
  uint32_t *start;       /* per block: first of its values in `queue`; block_count + 1 entries */
  uint32_t *queue;       /* values by block, in walk order */
  hg_array stack;
  int no_hoisting;       /* loop-invariant values stay in their loops */
  int folds_early;
} scheduler;

static void find_floating(scheduler *s) {
  const uint32_t *values = s->values.data;
  for (size_t k = 0; k < s->values.count; k++) {
    const ssa_insn *insn = ssa_insn_at(s->unit, values[k]);
    s->is_floating[values[k]] = insn->block == SSA_NONE && !hg_is_leaf(insn);
  }
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* Union-find: the header of the outermost loop that the block has been found in so far, or the block itself. */
static uint32_t outermost(uint32_t *joined, uint32_t block) {
  while (joined[block] != block) {
    joined[block] = joined[joined[block]]; /* halve the way for the next time */
    block = joined[block];
  }
  return block;
}

static hg_status push_into(scheduler *s, uint32_t header, const uint32_t *joined, uint32_t block) {
  if (block == header || joined[block] != block || !ssa_dominates(&s->order, header, block)) return HG_OK;
  return hg_array_push(&s->unit->allocator, &s->stack, block) ? HG_OK : hg_fail_memory("scheduling", sizeof block);
}

/* The natural loop of a header: all blocks that reach one of its back edges, inner loops represented by their headers.
 * The depth of a header is 1 if it has a back edge. */
static hg_status collect_loop(scheduler *s, uint32_t header, uint32_t *joined) {
  const hg_array *into = &ssa_block_at(s->unit, header)->predecessors;
  for (size_t i = 0; i < into->count; i++) {
    uint32_t p = ((const uint32_t *)into->data)[i];
    if (!ssa_dominates(&s->order, header, p)) continue;
    s->loop_depth[header] = 1;
    HG_TRY(push_into(s, header, joined, outermost(joined, p)));
  }
  while (s->stack.count > 0) {
    uint32_t b = ((uint32_t *)s->stack.data)[--s->stack.count];
    if (joined[b] != b) continue;
    joined[b] = s->loop[b] = header;
    into = &ssa_block_at(s->unit, b)->predecessors;
    for (size_t i = 0; i < into->count; i++)
      HG_TRY(push_into(s, header, joined, outermost(joined, ((const uint32_t *)into->data)[i])));
  }
  return HG_OK;
}

/* Inner loops first, so that each block goes into one loop, and each loop into the next. */
static hg_status find_loops(scheduler *s, uint32_t *joined) {
  memset(s->loop, 0xff, s->unit->blocks.count * sizeof *s->loop);
  for (uint32_t b = 0; b < s->unit->blocks.count; b++) joined[b] = b;
  for (uint32_t k = s->order.count; k-- > 0;) HG_TRY(collect_loop(s, s->order.block[k], joined));
  for (uint32_t k = 0; k < s->order.count; k++) {
    uint32_t b = s->order.block[k], around = s->loop[b];
    if (s->loop_depth[b] == 1) s->loop[b] = b;
    if (around != SSA_NONE) s->loop_depth[b] += s->loop_depth[around];
  }
  return HG_OK;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static uint32_t common_dominator(const scheduler *s, uint32_t a, uint32_t b) {
  if (a == SSA_NONE || ssa_dominates(&s->order, b, a)) return b;
  while (!ssa_dominates(&s->order, a, b)) a = s->order.dominator[a];
  return a;
}

static void note_use(scheduler *s, uint32_t value, uint32_t block) {
  if (s->is_floating[value]) s->place[value] = common_dominator(s, s->place[value], block);
}

/* Uses by phis, effects and branches; uses by floating values follow when those have their place. */
static void note_fixed_uses(scheduler *s) {
  for (uint32_t k = 0; k < s->order.count; k++) {
    uint32_t b = s->order.block[k];
    const ssa_block *block = ssa_block_at(s->unit, b);
    const uint32_t *predecessors = block->predecessors.data;
    for (uint32_t phi = block->first_phi; phi != SSA_NONE; phi = ssa_insn_at(s->unit, phi)->next)
      for (uint32_t i = 0; i < ssa_insn_at(s->unit, phi)->arg_count; i++)
        note_use(s, ssa_args_of(s->unit, phi)[i], predecessors[i]);
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = ssa_insn_at(s->unit, e)->next)
      for (uint32_t i = 0; i < ssa_insn_at(s->unit, e)->arg_count; i++) note_use(s, ssa_args_of(s->unit, e)[i], b);
    if (block->condition != SSA_NONE) note_use(s, block->condition, b);
  }
}

/* The lowest block of least loop depth on the dominator path from `late` up to `early`. Only the immediate dominators
 * of the headers around it are candidates: every other dominator is in the same loop as the block below it. */
static uint32_t hoist(const scheduler *s, uint32_t early, uint32_t late) {
  uint32_t best = late;
  for (uint32_t b = late; s->loop_depth[best] > 0 && !s->no_hoisting;) {
    b = s->order.dominator[s->loop[b]];
    if (!ssa_dominates(&s->order, early, b)) break;
    if (s->loop_depth[b] < s->loop_depth[best]) best = b;
  }
  return best;
}

static void count_use(scheduler *s, uint32_t value) { s->uses[value] = s->uses[value] == 0 ? 1 : 2; }

static void count_uses(scheduler *s) {
  const uint32_t *values = s->values.data;
  for (size_t k = 0; k < s->values.count; k++)
    for (uint32_t i = 0; i < ssa_insn_at(s->unit, values[k])->arg_count; i++)
      count_use(s, ssa_args_of(s->unit, values[k])[i]);
  for (uint32_t k = 0; k < s->order.count; k++)
    if (ssa_block_at(s->unit, s->order.block[k])->condition != SSA_NONE)
      count_use(s, ssa_block_at(s->unit, s->order.block[k])->condition);
}

/* 1 if the value dies in the fold that uses it. */
static int ends_here(const scheduler *s, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(s->unit, value);
  return s->uses[value] == 1 && !hg_is_leaf(insn) && (s->is_floating[value] ? s->is_fold[value] : insn->op == SSA_PHI);
}

/* Marks folds: trees of binary operations whose leaves are phis with one use. Each inner node frees two registers and
 * takes one, so it is computed early. */
static void find_folds(scheduler *s) {
  const uint32_t *values = s->values.data;
  count_uses(s);
  for (size_t k = 0; k < s->values.count; k++) {
    const ssa_insn *insn = ssa_insn_at(s->unit, values[k]);
    const uint32_t *args = ssa_args_of(s->unit, values[k]);
    s->is_fold[values[k]] = s->is_floating[values[k]] && insn->arg_count == 2 && insn->type != SSA_PREDICATE &&
                            ends_here(s, args[0]) && ends_here(s, args[1]);
  }
}

/* First finds each value's earliest block (`early`), arguments before users. Then, users before arguments, chooses the
 * best block between the earliest one and the uses. */
static void choose_places(scheduler *s, uint32_t *early) {
  const uint32_t *values = s->values.data;
  for (size_t k = 0; k < s->values.count; k++) {
    if (!s->is_floating[values[k]]) continue;
    uint32_t block = 0;
    for (uint32_t i = 0; i < ssa_insn_at(s->unit, values[k])->arg_count; i++) {
      uint32_t arg = ssa_args_of(s->unit, values[k])[i];
      uint32_t at = s->is_floating[arg]                                   ? early[arg]
                    : ssa_insn_at(s->unit, arg)->block == SSA_NONE ? 0
                                                                   : ssa_insn_at(s->unit, arg)->block;
      if (s->order.position[at] > s->order.position[block]) block = at;
    }
    early[values[k]] = block;
  }
  for (size_t k = s->values.count; k-- > 0;) {
    uint32_t value = values[k];
    if (!s->is_floating[value]) continue;
    uint32_t best = hoist(s, early[value], s->place[value]);
    if (s->is_fold[value] && s->loop[early[value]] == s->loop[best]) best = early[value];
    s->place[value] = best;
    for (uint32_t i = 0; i < ssa_insn_at(s->unit, value)->arg_count; i++)
      note_use(s, ssa_args_of(s->unit, value)[i], best);
  }
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static void sort_by_block(scheduler *s) {
  const uint32_t *values = s->values.data;
  uint32_t n = (uint32_t)s->unit->blocks.count, sum = 0;
  for (size_t k = 0; k < s->values.count; k++)
    if (s->is_floating[values[k]]) s->start[s->place[values[k]]]++;
  for (uint32_t b = 0; b <= n; b++) {
    sum += s->start[b];
    s->start[b] = sum;
  }
  for (size_t k = s->values.count; k-- > 0;)
    if (s->is_floating[values[k]]) s->queue[--s->start[s->place[values[k]]]] = values[k];
}

static int is_predicate(const scheduler *s, uint32_t value) {
  return ssa_insn_at(s->unit, value)->type == SSA_PREDICATE;
}

/* Which of several arguments to compute first. Predicates come last, because machines have few registers for them; of
 * those, the ones that need other predicates come first. */
static int urgency(const scheduler *s, uint32_t value) {
  if (!is_predicate(s, value)) return 2;
  const ssa_insn *insn = ssa_insn_at(s->unit, value);
  return insn->arg_count > 0 && is_predicate(s, ssa_args_of(s->unit, value)[0]);
}

/* Emits a value of this block after those of its arguments that are placed here too. */
static hg_status emit(scheduler *s, uint32_t value, uint32_t block) {
  s->stack.count = 0;
  if (!hg_array_push(&s->unit->allocator, &s->stack, value))
    return hg_fail_memory("scheduling", sizeof value);
  while (s->stack.count > 0) {
    uint32_t top = ((uint32_t *)s->stack.data)[s->stack.count - 1], waiting = SSA_NONE;
    for (uint32_t i = 0; i < ssa_insn_at(s->unit, top)->arg_count && !s->emitted[top]; i++) {
      uint32_t arg = ssa_args_of(s->unit, top)[i];
      if (!s->is_floating[arg] || s->emitted[arg] || s->place[arg] != block) continue;
      if (waiting == SSA_NONE || urgency(s, arg) > urgency(s, waiting)) waiting = arg;
    }
    if (waiting != SSA_NONE) {
      if (!hg_array_push(&s->unit->allocator, &s->stack, waiting))
        return hg_fail_memory("scheduling", sizeof value);
      continue;
    }
    s->stack.count--;
    if (s->emitted[top]) continue;
    s->emitted[top] = 1;
    if (s->is_floating[top]) ir_ssa_append_effect(s->unit, block, top);
  }
  return HG_OK;
}

static hg_status fill_block(scheduler *s, uint32_t b) {
  ssa_block *block = ssa_block_at(s->unit, b);
  uint32_t effect = block->first_effect;
  block->first_effect = block->last_effect = SSA_NONE;
  for (uint32_t next; effect != SSA_NONE; effect = next) {
    next = ssa_insn_at(s->unit, effect)->next;
    HG_TRY(emit(s, effect, b));
    ir_ssa_append_effect(s->unit, b, effect);
  }
  for (uint32_t k = s->start[b]; k < s->start[b + 1]; k++) /* for branches and other blocks */
    if (!is_predicate(s, s->queue[k])) HG_TRY(emit(s, s->queue[k], b));
  for (uint32_t k = s->start[b + 1]; k-- > s->start[b];) HG_TRY(emit(s, s->queue[k], b)); /* users before arguments */
  return HG_OK;
}

static hg_status schedule_unit(scheduler *s) {
  const hg_allocator *allocator = &s->unit->allocator;
  uint64_t values = s->unit->insns.count, blocks = s->unit->blocks.count;
  HG_TRY(ir_ssa_order_build(s->unit, &s->order));
  HG_TRY(ir_ssa_walk(s->unit, &s->order, &s->values));
  uint64_t words = 3 * values + 4 * blocks + 1;
  s->place = hg_allocate(allocator, words * sizeof(uint32_t) + 4 * values, 1);
  if (s->place == NULL) return hg_fail_memory("scheduling", words * sizeof(uint32_t) + 4 * values);
  uint32_t *early = s->place + values;
  s->queue = early + values;
  s->loop = s->queue + values;
  s->loop_depth = s->loop + blocks;
  s->start = s->loop_depth + blocks;
  s->emitted = (uint8_t *)(s->place + words);
  s->is_floating = s->emitted + values;
  s->uses = s->is_floating + values;
  s->is_fold = s->uses + values;
  find_floating(s);
  if (s->folds_early) find_folds(s);
  memset(s->place, 0xff, values * sizeof(uint32_t));
  HG_TRY(find_loops(s, s->start + blocks + 1));
  note_fixed_uses(s);
  choose_places(s, early);
  sort_by_block(s);
  for (uint32_t k = 0; k < s->order.count; k++) HG_TRY(fill_block(s, s->order.block[k]));
  return HG_OK;
}

static hg_status schedule(ssa_unit *unit, int no_hoisting, int folds_early) {
  scheduler s = {.unit = unit,
                 .values = {.element_size = sizeof(uint32_t)},
                 .stack = {.element_size = sizeof(uint32_t)},
                 .no_hoisting = no_hoisting,
                 .folds_early = folds_early};
  ir_ssa_resolve_all(unit);
  hg_status status = schedule_unit(&s);
  ir_ssa_order_release(unit, &s.order);
  hg_array_release(&unit->allocator, &s.values);
  hg_array_release(&unit->allocator, &s.stack);
  hg_release(&unit->allocator, s.place);
  return status;
}

hg_status hg_schedule(ssa_unit *unit) { return schedule(unit, 0, 0); }

hg_status hg_schedule_late(ssa_unit *unit) { return schedule(unit, 1, 0); }

hg_status hg_schedule_folds(ssa_unit *unit) { return schedule(unit, 0, 1); }

void hg_unschedule(ssa_unit *unit) {
  for (uint32_t b = 0; b < unit->blocks.count; b++) {
    ssa_block *block = ssa_block_at(unit, b);
    uint32_t effect = block->first_effect;
    block->first_effect = block->last_effect = SSA_NONE;
    for (uint32_t next; effect != SSA_NONE; effect = next) {
      next = ssa_insn_at(unit, effect)->next;
      if (hg_is_pure(ssa_insn_at(unit, effect))) {
        ssa_insn_at(unit, effect)->block = ssa_insn_at(unit, effect)->next = SSA_NONE;
        continue;
      }
      ir_ssa_append_effect(unit, b, effect);
    }
  }
}
