/* guards.c - ranges at a place.
 *
 * A value's own range holds everywhere. At one place it is narrowed by the comparisons on the way there, and computed
 * again from its arguments' ranges at that place: in `if (k < n) t[row * n + k]` the index is in bounds although k
 * alone is not.
 *
 * The range of a buffer's length is unknown. A comparison on the way may say that an index is below it.
 *
 * A loop's phi is guessed and checked (widening): any bound that the iterations move first becomes the type's; the
 * range that then comes back must be kept by another iteration, wrapping included. A value without a guard of its own,
 * such as an address to which each iteration adds a step, is bounded by the number of iterations, known from the loop's
 * counter. All of this looks at each phi a constant number of times. */
#include "compiler/analysis/guards.h"

#include "atlas/tables.h"

enum {
  MOST_DEPTH = 6, /* of an expression; lower for phis, which are many */
  DEPTH_OF_ENTRY = 2,
  DEPTH_OF_ROUND = 4,
  MOST_WORK = 256 /* values and conditions examined for one range: graphs of `and` may have exponentially many paths */
};

static const ssa_insn *insn_at(const hg_guards *g, uint32_t value) { return ssa_insn_at(g->unit, value); }

static int is_integer(const ssa_insn *insn) {
  return insn->type != SSA_PREDICATE && atlas_is_integer((atlas_type)insn->type);
}

/* ---- guards ------------------------------------------------------------------------------------------------------ */

/* 1 if the block is entered only from its dominator: all other edges into it are back edges of its loop, so what the
 * dominator's branch has decided still holds. */
static int is_entered_by_dominator(const hg_guards *g, uint32_t block, uint32_t dominator) {
  const hg_array *from = &ssa_block_at(g->unit, block)->predecessors;
  uint32_t edges = 0;
  for (size_t i = 0; i < from->count; i++) {
    uint32_t p = ((const uint32_t *)from->data)[i];
    if (p == dominator) edges++;
    else if (g->order->position[p] == SSA_NONE || !ssa_dominates(g->order, block, p)) return 0;
  }
  return edges == 1;
}

void hg_guards_build(hg_guards *g) {
  for (uint32_t k = 0; k < g->order->count; k++) {
    uint32_t b = g->order->block[k], parent = g->order->dominator[b];
    const ssa_block *branch = ssa_block_at(g->unit, parent);
    hg_guarded *at = &g->at[b];
    *at =
        (hg_guarded){.counter = {.phi = SSA_NONE}, .most_rounds = UINT64_MAX, .condition = SSA_NONE, .above = SSA_NONE};
    if (k == 0) continue;
    at->above = g->at[parent].condition != SSA_NONE ? parent : g->at[parent].above;
    if (branch->end != SSA_BRANCH || !is_entered_by_dominator(g, b, parent)) continue;
    at->condition = branch->condition;
    at->holds = branch->successor[0] == b;
  }
}

/* ---- ranges at a place ------------------------------------------------------------------------------------------- */

static hg_range range_at(hg_guards *g, uint32_t value, unsigned depth);

static hg_range narrowed_by(hg_guards *g, uint32_t value, hg_range range, uint32_t condition, int holds) {
  const ssa_insn *insn = insn_at(g, condition);
  const uint32_t *args = ssa_args_of(g->unit, condition);
  if (g->work == 0) return range;
  g->work--;
  if (insn->op == ATLAS_OP_pnot) return narrowed_by(g, value, range, args[0], !holds);
  if (insn->op != (holds ? ATLAS_OP_pand : ATLAS_OP_por)) /* a true `and` means that both hold, a false `or` that
                                                             neither does */
    return hg_range_where(g->unit, g->of, value, range, condition, holds);
  return narrowed_by(g, value, narrowed_by(g, value, range, args[0], holds), args[1], holds);
}

/* Narrows a range by the branches on the way. */
static hg_range narrowed(hg_guards *g, uint32_t value, hg_range range) {
  const ssa_block *block = ssa_block_at(g->unit, g->block);
  if (g->side < 2 && block->end == SSA_BRANCH && block->successor[0] != block->successor[1])
    range = narrowed_by(g, value, range, block->condition, g->side == 0);
  for (uint32_t b = g->block; b != SSA_NONE && g->work > 0; b = g->at[b].above)
    if (g->at[b].condition != SSA_NONE) range = narrowed_by(g, value, range, g->at[b].condition, g->at[b].holds);
  return range;
}

/* The value's range after at most `most` iterations. */
static hg_range after(uint8_t type, const hg_induction *i, uint64_t most) {
  const hg_range count = {.low = 0, .high = most > INT32_MAX ? INT64_MAX : (int64_t)most, .exact = 1};
  hg_range moved = hg_range_of_numbers(ATLAS_OP_mul, count, i->step), all = hg_range_of_type(ATLAS_i64);
  if (moved.low == all.low) return hg_range_of_type(type);
  return hg_range_of_integer_op(&(ssa_insn){.op = ATLAS_OP_add, .type = type}, (hg_range[]){i->start, moved});
}

/* How often the loop has iterated when its counter is in this range. */
static uint64_t rounds_at(const hg_counter *c, hg_range now) {
  uint64_t way = c->goes_down ? (uint64_t)c->first - (uint64_t)now.low : (uint64_t)now.high - (uint64_t)c->first;
  if (c->goes_down ? now.low > c->first : now.high < c->first) return 0;
  return way / (uint64_t)c->step < c->most ? way / (uint64_t)c->step : c->most;
}

static int read_induction(const hg_guards *g, uint32_t phi, hg_induction *out) {
  return hg_read_induction(g->unit, g->order, g->of, phi, out);
}

/* A phi to which a loop has added its step as often as the loop's counter indicates here. */
static hg_range phi_at(hg_guards *g, uint32_t phi) {
  const hg_counter *c = &g->at[insn_at(g, phi)->block].counter;
  hg_induction i;
  if (c->phi == SSA_NONE || c->phi == phi || !read_induction(g, phi, &i)) return g->of[phi];
  return after(insn_at(g, phi)->type, &i, rounds_at(c, narrowed(g, c->phi, g->of[c->phi])));
}

static hg_range computed_at(hg_guards *g, uint32_t value, unsigned depth) {
  const ssa_insn *insn = insn_at(g, value);
  hg_range args[3];
  if (!(atlas_op_flags(insn->op) & ATLAS_PURE) || atlas_op_flags(insn->op) & ATLAS_LOAD || insn->arg_count == 0)
    return g->of[value];
  for (uint32_t i = 0; i < insn->arg_count && i < 3; i++)
    args[i] = range_at(g, ssa_args_of(g->unit, value)[i], depth - 1);
  return hg_range_of_integer_op(insn, args);
}

static hg_range range_at(hg_guards *g, uint32_t value, unsigned depth) {
  const ssa_insn *insn = insn_at(g, value);
  hg_range range = g->of[value];
  if (insn->op == SSA_CONST || g->work == 0) return range;
  g->work--;
  if (is_integer(insn) && depth > 0 && (!range.exact || range.low != range.high))
    range = hg_range_meet(range, insn->op == SSA_PHI ? phi_at(g, value) : computed_at(g, value, depth));
  return narrowed(g, value, range);
}

static hg_range range_to_depth(hg_guards *g, uint32_t value, unsigned depth) {
  g->work = MOST_WORK;
  return range_at(g, value, depth);
}

hg_range hg_guards_range(hg_guards *g, uint32_t value) { return range_to_depth(g, value, MOST_DEPTH); }

/* ---- lengths ----------------------------------------------------------------------------------------------------- */

enum { MOST_STEPS = 3 }; /* steps of i < n and n <= m and m <= len */

/* An index without conversions and constants that do not change its number; *added: what these constants add. */
static uint32_t base_of(hg_guards *g, uint32_t value, int64_t *added) {
  for (int look = 0; look < MOST_DEPTH; look++) {
    const ssa_insn *insn = insn_at(g, value);
    if ((insn->op != ATLAS_OP_cvt && insn->op != ATLAS_OP_add) || !is_integer(insn)) return value;
    uint32_t from = ssa_args_of(g->unit, value)[0];
    if (!is_integer(insn_at(g, from))) return value;
    hg_range x = range_at(g, from, DEPTH_OF_ENTRY), all = hg_range_of_type(insn->type), by = {.exact = 1};
    if (insn->op == ATLAS_OP_add) by = g->of[ssa_args_of(g->unit, value)[1]];
    if (insn->type == ATLAS_u64) all = hg_range_between(ATLAS_u64, 0, INT64_MAX);
    if (!x.exact || !by.exact || by.low != by.high || by.low > INT32_MAX || by.low < -INT32_MAX) return value;
    if (x.low < all.low - (by.low < 0 ? by.low : 0) || x.high > all.high - (by.low > 0 ? by.low : 0)) return value;
    *added += by.low;
    value = from;
  }
  return value;
}

static int is_at_most_length(hg_guards *g, uint32_t value, int64_t added, uint32_t buffer, unsigned steps);

/* 1 if the condition implies base + added <= len. */
static int bounds_by_length(hg_guards *g, uint32_t condition, int holds, uint32_t base, int64_t added, uint32_t buffer,
                            unsigned steps) {
  const ssa_insn *insn = insn_at(g, condition);
  const uint32_t *args = ssa_args_of(g->unit, condition);
  if (g->work == 0) return 0;
  g->work--;
  if (insn->op == ATLAS_OP_pnot) return bounds_by_length(g, args[0], !holds, base, added, buffer, steps);
  if (insn->op == (holds ? ATLAS_OP_pand : ATLAS_OP_por))
    return bounds_by_length(g, args[0], holds, base, added, buffer, steps) ||
           bounds_by_length(g, args[1], holds, base, added, buffer, steps);
  if (insn->op != ATLAS_OP_set_lt || !atlas_is_integer((atlas_type)insn->type2)) return 0;
  int64_t tested = 0; /* base + tested < the other; or at most the other, if the condition is that the other is not
                         below it */
  if (base_of(g, args[!holds], &tested) != base) return 0;
  return is_at_most_length(g, args[holds], added - tested - (holds != 0), buffer, steps - 1);
}

/* 1 if value + added <= len as exact numbers. */
static int is_at_most_length(hg_guards *g, uint32_t value, int64_t added, uint32_t buffer, unsigned steps) {
  uint32_t base = base_of(g, value, &added);
  const ssa_insn *insn = insn_at(g, base);
  const ssa_block *block = ssa_block_at(g->unit, g->block);
  if (insn->op == ATLAS_OP_len && insn->symbol == buffer) return added <= 0;
  if (steps == 0) return 0;
  if (insn->op == ATLAS_OP_min && is_integer(insn))
    for (uint32_t i = 0; i < 2; i++)
      if (is_at_most_length(g, ssa_args_of(g->unit, base)[i], added, buffer, steps - 1)) return 1;
  if (g->side < 2 && block->end == SSA_BRANCH && block->successor[0] != block->successor[1] &&
      bounds_by_length(g, block->condition, g->side == 0, base, added, buffer, steps))
    return 1;
  for (uint32_t b = g->block; b != SSA_NONE && g->work > 0; b = g->at[b].above)
    if (g->at[b].condition != SSA_NONE &&
        bounds_by_length(g, g->at[b].condition, g->at[b].holds, base, added, buffer, steps))
      return 1;
  return 0;
}

int hg_guards_is_below_length(hg_guards *g, uint32_t value, int64_t displacement, uint32_t buffer) {
  g->work = MOST_WORK;
  return is_at_most_length(g, value, displacement + 1, buffer, MOST_STEPS);
}

/* ---- phis -------------------------------------------------------------------------------------------------------- */

/* The join of what comes along the phi's edges of one kind. */
static hg_range coming(hg_guards *g, uint32_t phi, hg_edge edge) {
  const ssa_insn *insn = insn_at(g, phi);
  hg_range all = {.low = INT64_MAX, .high = INT64_MIN, .exact = 1};
  int count = 0;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    uint32_t from, side, arg = ssa_args_of(g->unit, phi)[i];
    if (hg_edge_of(g->unit, g->order, phi, i, &from, &side) != edge) continue;
    hg_guards_go_to(g, from, side);
    hg_range found = range_to_depth(g, arg, edge == HG_EDGE_ENTERS ? DEPTH_OF_ENTRY : DEPTH_OF_ROUND);
    all = count++ == 0 ? found : hg_range_join(insn->type, all, found);
  }
  return all;
}

static int has_back_edge(const hg_guards *g, uint32_t phi) {
  uint32_t from, side;
  for (uint32_t i = 0; i < insn_at(g, phi)->arg_count; i++)
    if (hg_edge_of(g->unit, g->order, phi, i, &from, &side) == HG_EDGE_COMES_BACK) return 1;
  return 0;
}

/* 1 if a phi that an iteration finds in `guess` comes back in `guess`; *next: the range in which it comes back. */
static int is_kept(hg_guards *g, uint32_t phi, hg_range guess, hg_range *next) {
  hg_range before = g->of[phi];
  g->of[phi] = guess;
  *next = coming(g, phi, HG_EDGE_COMES_BACK);
  g->of[phi] = before;
  return next->exact && (next->low > next->high || (next->low >= guess.low && next->high <= guess.high));
}

/* The range of an integer that a loop's iterations keep, if the integer enters in `start`; else the type's. */
static hg_range kept_range(hg_guards *g, uint32_t phi, hg_range start) {
  uint8_t type = insn_at(g, phi)->type;
  hg_range all = hg_range_of_type(type), wide = start, narrow = start, next;
  if (!start.exact || start.low > start.high || is_kept(g, phi, start, &next)) return start;
  if (type == ATLAS_u64) all = hg_range_between(type, 0, INT64_MAX); /* as far as an int64_t goes */
  if (!next.exact) next = all;
  int goes_down = next.low<start.low, goes_up = next.high> start.high;
  if (goes_down && goes_up) return hg_range_of_type(type);
  if (goes_down) wide.low = all.low;
  if (goes_up) wide.high = all.high;
  int keeps_wide = is_kept(g, phi, wide, &next);
  if (next.exact && goes_down && next.low < start.low) narrow.low = next.low;
  if (next.exact && goes_up && next.high > start.high) narrow.high = next.high;
  return is_kept(g, phi, narrow, &next) ? narrow : keeps_wide ? wide : hg_range_of_type(type);
}

/* The range of the phi when its loop iterates again, before the step. */
static hg_range going_round(hg_guards *g, uint32_t phi) {
  const ssa_insn *insn = insn_at(g, phi);
  hg_range all = {.low = INT64_MAX, .high = INT64_MIN, .exact = 1};
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    uint32_t from, side;
    if (hg_edge_of(g->unit, g->order, phi, i, &from, &side) != HG_EDGE_COMES_BACK) continue;
    hg_guards_go_to(g, from, side);
    g->work = MOST_WORK;
    all = hg_range_join(insn->type, all, narrowed(g, phi, g->of[phi]));
  }
  return all;
}

/* 1 if each step, from any number in this range, leads to another number without wrapping. */
static int stays_in_type(uint8_t type, hg_range from, hg_range step) {
  hg_range all = hg_range_of_type(type);
  if (type == ATLAS_u64) all.low = 0;
  return from.exact && (step.low > 0 ? from.high <= all.high - step.high : from.low >= all.low - step.low);
}

/* How many numbers at least `step` apart fit into this range; the first may be any of them. */
static uint64_t rounds_within(hg_range a, uint64_t step) {
  uint64_t most = a.low > a.high ? 0 : ((uint64_t)a.high - (uint64_t)a.low) / step;
  return most == UINT64_MAX ? most : most + 1;
}

/* Counts the loop's iterations by a phi of its header. `counter`: none of its steps wraps, not even the first. */
static void count_by(hg_guards *g, uint32_t phi, hg_counter *counter, uint64_t *most_rounds) {
  uint8_t type = insn_at(g, phi)->type;
  hg_induction i;
  *counter = (hg_counter){.phi = SSA_NONE, .most = UINT64_MAX};
  *most_rounds = UINT64_MAX;
  if (!read_induction(g, phi, &i) || i.step.low < -INT32_MAX || i.step.high > INT32_MAX) return;
  if (i.step.low <= 0 && i.step.high >= 0) return;
  hg_range range = g->of[phi], round = going_round(g, phi), back = coming(g, phi, HG_EDGE_COMES_BACK);
  int64_t step = i.step.low > 0 ? i.step.low : -i.step.high;
  if (back.exact && stays_in_type(type, hg_range_meet(back, round), i.step))
    *most_rounds = rounds_within(back, (uint64_t)step);
  if (!range.exact || !i.start.exact || !stays_in_type(type, round, i.step)) return;
  *counter = (hg_counter){.phi = phi,
                          .goes_down = i.step.high < 0,
                          .step = step,
                          .most = UINT64_MAX,
                          .first = i.step.high < 0 ? i.start.high : i.start.low};
  counter->most = rounds_at(counter, range);
  uint64_t by_rounds = rounds_at(counter, round) + (round.low <= round.high);
  if (by_rounds < counter->most) counter->most = by_rounds;
  if (counter->most < *most_rounds) *most_rounds = counter->most;
}

/* The phi of the header that allows the fewest iterations. Among equals the one of the last round, since a phi does not
 * bound itself. */
static void find_counter(hg_guards *g, uint32_t header) {
  hg_guarded *at = &g->at[header];
  hg_counter best = {.phi = SSA_NONE, .most = UINT64_MAX}, counter;
  uint64_t most_rounds;
  at->most_rounds = UINT64_MAX;
  for (uint32_t phi = ssa_block_at(g->unit, header)->first_phi; phi != SSA_NONE; phi = insn_at(g, phi)->next) {
    if (!is_integer(insn_at(g, phi))) continue;
    count_by(g, phi, &counter, &most_rounds);
    if (counter.phi != SSA_NONE && (counter.most < best.most || (counter.most == best.most && phi == at->counter.phi)))
      best = counter;
    if (most_rounds < at->most_rounds) at->most_rounds = most_rounds;
  }
  at->counter = best;
}

static int is_same(hg_range a, hg_range b) { return a.low == b.low && a.high == b.high && a.exact == b.exact; }

static void bound_by_counter(hg_guards *g, uint32_t header, int *changed) {
  const hg_counter *c = &g->at[header].counter;
  for (uint32_t phi = ssa_block_at(g->unit, header)->first_phi; phi != SSA_NONE; phi = insn_at(g, phi)->next) {
    hg_induction i;
    if (phi == c->phi || !read_induction(g, phi, &i)) continue;
    hg_range range = hg_range_meet(g->of[phi], after(insn_at(g, phi)->type, &i, c->most));
    if (!is_same(range, g->of[phi])) *changed = 1;
    g->of[phi] = range;
  }
}

void hg_guards_find_phi(hg_guards *g, uint32_t phi, int *changed) {
  const ssa_insn *insn = insn_at(g, phi);
  int in_loop = has_back_edge(g, phi);
  hg_range range = coming(g, phi, HG_EDGE_ENTERS);
  if (in_loop) {
    hg_range kept = is_integer(insn) ? kept_range(g, phi, range) : hg_range_of_type(insn->type);
    range = hg_range_meet(hg_range_join(insn->type, range, coming(g, phi, HG_EDGE_COMES_BACK)), kept);
  }
  g->of[phi] = range;
  if (!in_loop || insn->next != SSA_NONE) return;
  find_counter(g, insn->block);
  if (g->at[insn->block].counter.phi != SSA_NONE) bound_by_counter(g, insn->block, changed);
}
