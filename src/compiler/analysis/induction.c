/* induction.c - what each way through a loop adds to a phi of its header. */
#include "compiler/analysis/induction.h"

#include "atlas/tables.h"

enum { MOST_DEPTH = 6 }; /* of the sums that form a step */

typedef struct source {
  const ssa_unit *unit;
  const ssa_order *order;
  const hg_range *of;
} source;

static const ssa_insn *insn_at(const source *g, uint32_t value) { return ssa_insn_at(g->unit, value); }

/* A step is a signed number of its width, between the least and the greatest: adding 2^bits - 1 is subtracting 1. */
static hg_range as_step(const ssa_insn *insn, hg_range r) {
  unsigned bits = atlas_type_bits((atlas_type)insn->type);
  if (bits == 64 || r.low < INT64_C(1) << (bits - 1)) return r;
  return (hg_range){.low = r.low - (INT64_C(1) << bits), .high = r.high - (INT64_C(1) << bits)};
}

hg_range hg_range_of_numbers(uint16_t op, hg_range a, hg_range b) {
  const ssa_insn insn = {.op = op, .type = ATLAS_i64};
  a.exact = b.exact = 1;
  return hg_range_of_integer_op(&insn, (hg_range[]){a, b});
}

/* 1 if the value is, on every path through the loop, the phi plus numbers whose sum has a known range. */
static int read_step(const source *g, uint32_t value, uint32_t phi, unsigned depth, hg_range *step) {
  const ssa_insn *insn = insn_at(g, value);
  const uint32_t *args = ssa_args_of(g->unit, value);
  *step = (hg_range){.exact = 1};
  if (value == phi) return 1;
  if (depth == 0 || insn->arg_count < 2) return 0;
  for (uint32_t i = 0; i < 2 && (insn->op == ATLAS_OP_add || (insn->op == ATLAS_OP_sub && i == 0)); i++) {
    if (!read_step(g, args[i], phi, depth - 1, step)) continue;
    *step = hg_range_of_numbers(insn->op, *step, as_step(insn_at(g, args[1 - i]), g->of[args[1 - i]]));
    return 1;
  }
  hg_range other;
  if (insn->op != ATLAS_OP_sel || !read_step(g, args[1], phi, depth - 1, step) ||
      !read_step(g, args[2], phi, depth - 1, &other))
    return 0;
  *step = hg_range_join(ATLAS_i64, *step, other);
  return 1;
}

hg_edge hg_edge_of(const ssa_unit *unit, const ssa_order *order, uint32_t phi, uint32_t i, uint32_t *from,
                   uint32_t *side) {
  uint32_t to = ssa_insn_at(unit, phi)->block;
  *from = ((const uint32_t *)ssa_block_at(unit, to)->predecessors.data)[i];
  if (order->position[*from] == SSA_NONE) return HG_EDGE_UNREACHABLE;
  *side = ssa_block_at(unit, *from)->successor[0] != to || order->edge[2 * (size_t)*from] != i;
  return order->position[*from] >= order->position[to] ? HG_EDGE_COMES_BACK : HG_EDGE_ENTERS;
}

int hg_read_induction(const ssa_unit *unit, const ssa_order *order, const hg_range *of, uint32_t phi,
                      hg_induction *out) {
  const source g = {unit, order, of};
  const ssa_insn *insn = ssa_insn_at(unit, phi);
  const uint32_t *args = ssa_args_of(unit, phi);
  uint32_t entries = 0, latches = 0, from, side;
  if (insn->type == SSA_PREDICATE || !atlas_is_integer((atlas_type)insn->type)) return 0;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    hg_range found = of[args[i]];
    hg_edge edge = hg_edge_of(unit, order, phi, i, &from, &side);
    if (edge == HG_EDGE_UNREACHABLE) continue;
    if (edge == HG_EDGE_ENTERS) {
      out->start = entries++ == 0 ? found : hg_range_join(insn->type, out->start, found);
      continue;
    }
    if (!read_step(&g, args[i], phi, MOST_DEPTH, &found)) return 0;
    out->step = latches++ == 0 ? found : hg_range_join(ATLAS_i64, out->step, found);
  }
  return entries > 0 && latches > 0;
}
