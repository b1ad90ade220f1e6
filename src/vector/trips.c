/* trips.c - a bound for a loop's trip count: somewhere on every way around it an induction variable is compared with a
 * loop invariant, and one side of that branch leaves the loop. Where the variable starts, and what the limit is, may be
 * unknown: a 32-bit counter that goes up or down by one has 2^32 values. */
#include "vector/trips.h"

#include "atlas/arith.h"
#include "compiler/schedule.h"
#include "hologram/hologram.h"

typedef struct counter {
  atlas_type type;
  int is_shifted;       /* 1: shifted right by `step`, zeros coming in; 0: step is added, modulo 2^width */
  int starts_somewhere; /* 1: start is not known */
  uint64_t start, step;
} counter;

typedef struct limit {
  int is_unknown;      /* 1: between low and high, where has_range; else bits */
  int has_range;
  uint64_t bits, low, high; /* bits of the type */
} limit;

static int is_constant(const vector_lowering *l, uint32_t value) { return vector_ssa_insn(l, value)->op == SSA_CONST; }

/* value = from + constant or, with no sign, from >> constant. */
static int read_step(const vector_lowering *l, uint32_t value, uint32_t from, counter *c) {
  const ssa_insn *insn = vector_ssa_insn(l, value);
  const uint32_t *args = ssa_args_of(l->unit, value);
  c->is_shifted = insn->op == ATLAS_OP_shr && atlas_kind(c->type) == ATLAS_KIND_UINT;
  if ((insn->op != ATLAS_OP_add && !c->is_shifted) || args[0] != from || !is_constant(l, args[1])) return 0;
  c->step = vector_ssa_insn(l, args[1])->bits;
  if (c->is_shifted) c->step %= atlas_type_bits(c->type);
  return c->step != 0;
}

/* phi(start, phi + constant) in the header of a loop with one latch. */
static int read_counter(const vector_lowering *l, uint32_t header, uint32_t phi, counter *c) {
  const ssa_insn *insn = vector_ssa_insn(l, phi);
  if (insn->op != SSA_PHI || insn->block != header || insn->arg_count != 2) return 0;
  if (insn->type == SSA_PREDICATE || !atlas_is_integer((atlas_type)insn->type)) return 0;
  const uint32_t *args = ssa_args_of(l->unit, phi);
  c->type = (atlas_type)insn->type;
  int next = read_step(l, args[1], phi, c);
  if (!next && !read_step(l, args[0], phi, c)) return 0;
  c->starts_somewhere = !is_constant(l, args[!next]);
  c->start = vector_ssa_insn(l, args[!next])->bits;
  return 1;
}

static int is_signed(const counter *c) { return atlas_kind(c->type) == ATLAS_KIND_SINT; }

/* The counter as numbers, when all are far from the ends of 64 bits: of a start and a limit that are not known, those
 * between which it takes longest. */
static int as_numbers(const counter *c, limit end, int goes_up, int64_t *start, int64_t *step, int64_t *bound) {
  const uint64_t far = UINT64_C(1) << 62;
  uint64_t mask = atlas_mask(c->type), lowest = is_signed(c) ? mask - (mask >> 1) : 0;
  uint64_t from = c->start, to = end.bits;
  uint32_t unused = 64 - atlas_type_bits(c->type);
  if (c->starts_somewhere) from = goes_up ? lowest : lowest + mask;
  if (end.is_unknown) to = goes_up ? lowest + mask : lowest;
  if (end.is_unknown && end.has_range) to = goes_up ? end.high : end.low;
  *step = (int64_t)(c->step << unused) >> unused;
  *start = is_signed(c) ? (int64_t)(from << unused) >> unused : (int64_t)from;
  *bound = is_signed(c) ? (int64_t)(to << unused) >> unused : (int64_t)to;
  uint64_t a = (uint64_t)(*start < 0 ? -(*start + 1) : *start), b = (uint64_t)(*bound < 0 ? -(*bound + 1) : *bound);
  uint64_t s = (uint64_t)(*step < 0 ? -(*step + 1) : *step);
  return a < far && b < far && s < far && (is_signed(c) || (*start >= 0 && *bound >= 0)) && *step != 0;
}

/* The loop is left at one value, or at any other (which is no matter: the first comparison will do). */
static uint64_t looks_for_value(const counter *c, limit end, int leaves_at_it) {
  uint64_t mask = atlas_mask(c->type), there = end.bits - c->start;
  if (!leaves_at_it || (c->step != 1 && c->step != mask) || mask > UINT64_MAX / 4) return 0;
  if (c->starts_somewhere || end.is_unknown) return mask + 1;
  return ((c->step == 1 ? there : 0 - there) & mask) + 1;
}

/* How often the counter can be seen before the comparison first says `leaves_when`; 0: not known. `left`: the counter
 * is the comparison's first operand. */
static uint64_t looks(const counter *c, uint16_t op, limit end, int left, int leaves_when) {
  int64_t start, step, bound, last;
  uint64_t mask = atlas_mask(c->type);
  if (c->is_shifted) { /* it comes to 0 and stays there */
    uint64_t a = left ? 0 : end.bits, b = left ? end.bits : 0;
    if (end.is_unknown || atlas_compare(op, c->type, a, b) != leaves_when) return 0;
    return atlas_type_bits(c->type) / c->step + 2;
  }
  if (op == ATLAS_OP_set_eq) return looks_for_value(c, end, leaves_when);
  /* It goes on while counter < bound (or <=, or the other way around): as a last value going up, or down. */
  int goes_up = left != leaves_when, strict = (op == ATLAS_OP_set_lt) != leaves_when;
  if (op != ATLAS_OP_set_lt && op != ATLAS_OP_set_le) return 0;
  if (!as_numbers(c, end, goes_up, &start, &step, &bound) || goes_up != (step > 0)) return 0;
  last = goes_up ? bound - strict : bound + strict;
  uint64_t span = goes_up ? (last < start ? 0 : (uint64_t)(last - start) / (uint64_t)step + 1)
                          : (last > start ? 0 : (uint64_t)(start - last) / (uint64_t)-step + 1);
  int64_t reached = last + step; /* where it stops at the latest: must be a number of the type */
  int64_t high = (int64_t)(is_signed(c) ? mask >> 1 : mask > INT64_MAX ? INT64_MAX : mask);
  int64_t low = is_signed(c) ? -high - 1 : 0;
  return reached > high || reached < low ? 0 : span + 1;
}

/* What a comparison in the loop has beside the counter: 0 if it may change from round to round. */
static int read_limit(const vector_lowering *l, uint32_t header, uint32_t value, limit *end) {
  const ssa_insn *insn = vector_ssa_insn(l, value);
  hg_range range = l->analysis.range[value];
  *end = (limit){.is_unknown = insn->op != SSA_CONST, .bits = insn->bits, .has_range = range.exact,
                 .low = (uint64_t)range.low, .high = (uint64_t)range.high};
  return hg_is_leaf(insn) || !vector_in_loop(&l->order, header, insn->block);
}

/* 1 if `value` is what the counter is in the next round. */
static int is_step_of(const vector_lowering *l, uint32_t phi, uint32_t value) {
  return ssa_args_of(l->unit, phi)[0] == value || ssa_args_of(l->unit, phi)[1] == value;
}

static uint64_t trips_of_branch(const vector_lowering *l, uint32_t header, uint32_t b) {
  const ssa_block *block = ssa_block_at(l->unit, b);
  int inside[2];
  counter c = {0};
  if (block->end != SSA_BRANCH) return 0;
  for (int s = 0; s < 2; s++) inside[s] = vector_in_loop(&l->order, header, block->successor[s]);
  const ssa_insn *compare = vector_ssa_insn(l, block->condition);
  if (inside[0] == inside[1] || !atlas_is_comparison(compare->op)) return 0;
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t seen = ssa_args_of(l->unit, block->condition)[side],
             other = ssa_args_of(l->unit, block->condition)[1 - side];
    int is_phi = vector_ssa_insn(l, seen)->op == SSA_PHI;
    limit end;
    if (!is_phi && vector_ssa_insn(l, seen)->arg_count == 0) continue;
    uint32_t phi = is_phi ? seen : ssa_args_of(l->unit, seen)[0];
    if (!read_limit(l, header, other, &end) || !read_counter(l, header, phi, &c) || c.type != compare->type2) continue;
    if (!is_phi && !is_step_of(l, phi, seen)) continue;
    if (!is_phi && !c.is_shifted) c.start = (c.start + c.step) & atlas_mask(c.type);
    return looks(&c, compare->op, end, side == 0, !inside[0]);
  }
  return 0;
}

/* The greatest trip count of a loop, each time it is entered; 0: not known. */
static uint64_t trips(const vector_lowering *l, uint32_t header) {
  uint32_t latch = SSA_NONE;
  uint64_t fewest = 0;
  const hg_array *from = &ssa_block_at(l->unit, header)->predecessors;
  for (size_t i = 0; i < from->count; i++) {
    uint32_t p = ((const uint32_t *)from->data)[i];
    if (l->order.place[p] < l->order.place[header]) continue;
    if (latch != SSA_NONE) return 0;
    latch = p;
  }
  for (uint32_t b = latch;; b = l->dominance.dominator[b]) { /* blocks on every way around */
    uint64_t found = l->order.loop[b] == header ? trips_of_branch(l, header, b) : 0;
    if (found != 0 && (fewest == 0 || found < fewest)) fewest = found;
    if (b == header) return fewest;
  }
}

/* A bound above the default step limit is of no use: lanes are counted. */
static uint64_t if_useful(uint64_t steps) { return steps > HG_DEFAULT_STEP_LIMIT ? UINT64_MAX : steps; }

uint64_t hg_vector_most_steps(const vector_lowering *l) {
  uint64_t sum = 0;
  for (uint32_t k = 0; k < l->order.count; k++) {
    uint32_t b = l->order.block[k];
    if (l->order.loop[b] != b || ssa_block_at(l->unit, b)->library) continue;
    uint64_t product = 1;
    for (uint32_t h = b; h != SSA_NONE; h = l->order.parent[h]) {
      uint64_t n = trips(l, h);
      if (n == 0 || n > (UINT64_C(1) << 62) / product) return UINT64_MAX;
      product *= n;
    }
    if (sum > (UINT64_C(1) << 62) - product) return UINT64_MAX;
    sum += product;
  }
  return if_useful(sum);
}
