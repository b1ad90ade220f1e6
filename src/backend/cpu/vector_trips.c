/* vector_trips.c - a bound for a loop: somewhere on every way around it a counter that starts at a constant and changes
 * by a constant is compared with a constant, and one side of that branch leaves the loop. */
#include "backend/cpu/vector_trips.h"

#include "atlas/arith.h"

typedef struct counter {
  atlas_type type;
  uint64_t start, step; /* modulo 2^width */
} counter;

static const ssa_insn *insn_at(const vector_lowering *l, uint32_t value) { return ssa_insn_at(l->unit, value); }

static int is_constant(const vector_lowering *l, uint32_t value) { return insn_at(l, value)->op == SSA_CONST; }

/* phi(constant, phi + constant) in the header of a loop with one latch. */
static int read_counter(const vector_lowering *l, uint32_t header, uint32_t phi, counter *c) {
  const ssa_insn *insn = insn_at(l, phi);
  int starts = 0, steps = 0;
  if (insn->op != SSA_PHI || insn->block != header || insn->arg_count != 2) return 0;
  if (insn->type == SSA_PREDICATE || !atlas_is_integer((atlas_type)insn->type)) return 0;
  c->type = (atlas_type)insn->type;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t arg = ssa_args_of(l->unit, phi)[i];
    const uint32_t *args = ssa_args_of(l->unit, arg);
    if (is_constant(l, arg)) {
      c->start = insn_at(l, arg)->bits;
      starts++;
    } else if (insn_at(l, arg)->op == ATLAS_OP_add && args[0] == phi && is_constant(l, args[1])) {
      c->step = insn_at(l, args[1])->bits;
      steps++;
    }
  }
  return starts == 1 && steps == 1;
}

/* The counter as numbers, when it does not wrap on its way to `limit`. */
static int as_numbers(const counter *c, uint64_t limit, int64_t *start, int64_t *step, int64_t *bound) {
  const uint64_t far = UINT64_C(1) << 62;
  uint32_t width = atlas_type_bits(c->type), unused = 64 - width;
  int is_signed = atlas_kind(c->type) == ATLAS_KIND_SINT;
  *step = (int64_t)(c->step << unused) >> unused;
  *start = is_signed ? (int64_t)(c->start << unused) >> unused : (int64_t)c->start;
  *bound = is_signed ? (int64_t)(limit << unused) >> unused : (int64_t)limit;
  uint64_t a = (uint64_t)(*start < 0 ? -(*start + 1) : *start), b = (uint64_t)(*bound < 0 ? -(*bound + 1) : *bound);
  uint64_t s = (uint64_t)(*step < 0 ? -(*step + 1) : *step);
  return a < far && b < far && s < far && (is_signed || (*start >= 0 && *bound >= 0)) && *step != 0;
}

/* How often the counter can be seen before the comparison first says `leaves_when`; 0: not known. `left`: the counter
 * is the comparison's first operand. */
static uint64_t looks(const counter *c, uint16_t op, uint64_t limit, int left, int leaves_when) {
  int64_t start, step, bound, last;
  uint64_t mask = atlas_mask(c->type);
  if (op == ATLAS_OP_set_ne || op == ATLAS_OP_set_eq) {
    if (leaves_when != (op == ATLAS_OP_set_eq)) return 0; /* leaves at the first other value: no matter */
    if (c->step == 1) return ((limit - c->start) & mask) + 1;
    if (c->step == mask) return ((c->start - limit) & mask) + 1;
    return 0;
  }
  if ((op != ATLAS_OP_set_lt && op != ATLAS_OP_set_le) || !as_numbers(c, limit, &start, &step, &bound)) return 0;
  /* It goes on while counter < bound (or <=, or the other way around): as a last value going up, or down. */
  int goes_up = left != leaves_when, strict = (op == ATLAS_OP_set_lt) != leaves_when;
  if (goes_up != (step > 0)) return 0;
  last = goes_up ? bound - strict : bound + strict;
  uint64_t span = goes_up ? (last < start ? 0 : (uint64_t)(last - start) / (uint64_t)step + 1)
                          : (last > start ? 0 : (uint64_t)(start - last) / (uint64_t)-step + 1);
  int64_t reached = last + step; /* where it stops at the latest: must be a number of the type */
  int64_t high = (int64_t)(atlas_kind(c->type) == ATLAS_KIND_SINT ? mask >> 1 : mask > INT64_MAX ? INT64_MAX : mask);
  int64_t low = atlas_kind(c->type) == ATLAS_KIND_SINT ? -high - 1 : 0;
  return reached > high || reached < low ? 0 : span + 1;
}

static uint64_t trips_of_branch(const vector_lowering *l, uint32_t header, uint32_t b) {
  const ssa_block *block = ssa_block_at(l->unit, b);
  int inside[2];
  counter c = {0};
  if (block->end != SSA_BRANCH) return 0;
  for (int s = 0; s < 2; s++) inside[s] = vector_in_loop(&l->order, header, block->successor[s]);
  const ssa_insn *compare = insn_at(l, block->condition);
  if (inside[0] == inside[1] || !atlas_is_comparison(compare->op)) return 0;
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t seen = ssa_args_of(l->unit, block->condition)[side],
             other = ssa_args_of(l->unit, block->condition)[1 - side];
    const uint32_t *args = ssa_args_of(l->unit, seen);
    int is_next = insn_at(l, seen)->op == ATLAS_OP_add && is_constant(l, args[1]);
    if (!is_constant(l, other) || !read_counter(l, header, is_next ? args[0] : seen, &c)) continue;
    if (is_next && insn_at(l, args[1])->bits != c.step) continue;
    if (is_next) c.start = (c.start + c.step) & atlas_mask(c.type);
    return looks(&c, compare->op, insn_at(l, other)->bits, side == 0, !inside[0]);
  }
  return 0;
}

/* Most times that the loop's header runs each time the loop is entered; 0: not known. */
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
  return sum;
}
