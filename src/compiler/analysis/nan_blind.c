/* nan_blind.c - whether the bits of a NaN that a bitcast reads are observable, followed through its block.
 *
 * An exponential function takes an integer from the bits of a number and builds a power of two from it, which it
 * multiplies with something computed from that same number. If that number is NaN so is the product, whatever the
 * integer was. So, assuming that the operand of the bitcast is a NaN, each value is in one of three states: it does not
 * depend on the operand; it is a NaN, by arithmetic on the operand; or it may be anything, since it depends on the
 * bits. Arithmetic on a NaN and anything gives a NaN. The bits are not observable if no value that may be anything is
 * stored, is an index, decides a branch, or leaves the block, except by an edge that is not taken if the operand is a
 * NaN. A further bitcast of such a NaN reads canonical bits, or is judged by itself: it, too, is blind only if nothing
 * but NaNs depends on its bits. */
#include "compiler/analysis/nan_bits.h"

#include "atlas/tables.h"
#include "base/error.h"

#include <string.h>

enum { UNTOUCHED, A_NAN, ANYTHING };
enum { WINDOW = 96 }; /* how many values before the bitcast, and behind it, are followed */

typedef struct walker {
  const ssa_unit *unit;
  uint32_t *uses;  /* per value */
  uint32_t *line;  /* the values of the current block */
  uint32_t *place; /* per value of the block: its position in `line` */
  uint8_t *state;  /* per value */
  uint32_t count;  /* of line */
  uint32_t open;   /* how many uses of values that may be anything remain */
  const ssa_block *block;
  uint32_t number; /* of the block */
  hg_range *range; /* per value; NULL: whatever leaves the block is observable */
} walker;

static const ssa_insn *insn_at(const walker *w, uint32_t value) { return ssa_insn_at(w->unit, value); }
/* 1 if a NaN operand gives a NaN. */
static int propagates_nan(const ssa_insn *insn) {
  if (!atlas_is_wide_float((atlas_type)insn->type)) return 0;
  switch (insn->op) {
  case ATLAS_OP_add:
  case ATLAS_OP_sub:
  case ATLAS_OP_mul:
  case ATLAS_OP_div:
  case ATLAS_OP_fma:
  case ATLAS_OP_min:
  case ATLAS_OP_max:
  case ATLAS_OP_sqrt: return 1;
  case ATLAS_OP_cvt: return atlas_is_wide_float((atlas_type)insn->type2);
  default: return 0;
  }
}

static int has(const walker *w, uint32_t value, unsigned from, uint8_t state) {
  for (unsigned i = from; i < insn_at(w, value)->arg_count; i++)
    if (w->state[ssa_args_of(w->unit, value)[i]] == state) return 1;
  return 0;
}

static uint8_t state_of(const walker *w, uint32_t value) {
  const ssa_insn *insn = insn_at(w, value);
  int some_nan = has(w, value, 0, A_NAN);
  if (some_nan && propagates_nan(insn)) return A_NAN;
  if (some_nan && atlas_is_comparison(insn->op) && atlas_is_wide_float((atlas_type)insn->type2))
    return UNTOUCHED; /* the result is the same for every NaN */
  int is_choice = insn->op == ATLAS_OP_sel && has(w, value, 1, A_NAN);
  if (is_choice && !has(w, value, 1, UNTOUCHED) && !has(w, value, 1, ANYTHING)) return A_NAN;
  return has(w, value, 0, ANYTHING) ? ANYTHING : UNTOUCHED;
}

static int may_be_anything(const ssa_insn *insn) {
  return insn->op < SSA_DELETED && (atlas_op_flags(insn->op) & (ATLAS_PURE | ATLAS_LOAD)) == ATLAS_PURE;
}

/* Counts the uses of values that may be anything by phis behind the edge that is taken if the block's condition
 * holds. */
static uint32_t uses_on_edge(const walker *w) {
  uint32_t to = w->block->successor[0], uses = 0;
  const ssa_block *block = ssa_block_at(w->unit, to);
  for (uint32_t phi = block->first_phi; phi != SSA_NONE; phi = insn_at(w, phi)->next)
    for (uint32_t i = 0; i < insn_at(w, phi)->arg_count; i++)
      uses += ((const uint32_t *)block->predecessors.data)[i] == w->number &&
              w->state[ssa_args_of(w->unit, phi)[i]] == ANYTHING;
  return uses;
}

/* 1 if the uses that remain at the end of the block are where the operand is a number. */
static int leaves_as_number(const walker *w, uint32_t bitcast) {
  const ssa_block *block = w->block;
  if (w->range == NULL || insn_at(w, bitcast)->type2 != ATLAS_f32 || w->place[bitcast] + WINDOW < w->count) return 0;
  if (block->end != SSA_BRANCH || block->successor[0] == block->successor[1]) return 0;
  if (w->state[block->condition] == ANYTHING || w->open != uses_on_edge(w)) return 0;
  return hg_is_number_where(w->unit, w->range, block->condition, ssa_args_of(w->unit, bitcast)[0]);
}

/* 1 if the last use of everything that depends on the bits comes within WINDOW values, and no use shows the bits. */
static int is_contained(walker *w, uint32_t from, uint32_t bitcast) {
  uint32_t end = w->place[bitcast] + WINDOW < w->count ? w->place[bitcast] + WINDOW : w->count;
  for (uint32_t at = from; at < end; at++) {
    uint32_t value = w->line[at];
    const ssa_insn *insn = insn_at(w, value);
    uint8_t state = value == bitcast ? ANYTHING : state_of(w, value);
    for (uint32_t i = 0; i < insn->arg_count; i++) w->open -= w->state[ssa_args_of(w->unit, value)[i]] == ANYTHING;
    if (state == ANYTHING && !may_be_anything(insn)) return 0;
    w->state[value] = state;
    if (state == ANYTHING) w->open += w->uses[value];
    if (at >= w->place[bitcast] && w->open == 0) return 1;
  }
  return leaves_as_number(w, bitcast);
}

static int is_blind(walker *w, uint32_t bitcast) {
  uint32_t of = ssa_args_of(w->unit, bitcast)[0], here = w->place[bitcast];
  uint32_t from = here > WINDOW ? here - WINDOW : 0;
  w->open = 0;
  w->state[of] = A_NAN;
  for (uint32_t at = from; at < here; at++) /* no value before the operand depends on it */
    if (w->line[at] == of) from = at + 1;
  int is = is_contained(w, from, bitcast);
  for (uint32_t at = from; at < w->count && at < here + WINDOW; at++) w->state[w->line[at]] = UNTOUCHED;
  w->state[of] = UNTOUCHED;
  return is;
}

static void count_uses(const walker *w, uint32_t value) {
  for (uint32_t i = 0; i < insn_at(w, value)->arg_count; i++) w->uses[ssa_args_of(w->unit, value)[i]]++;
}

static void count_all_uses(const walker *w, const ssa_order *order) {
  for (uint32_t k = 0; k < order->count; k++) {
    const ssa_block *block = ssa_block_at(w->unit, order->block[k]);
    for (uint32_t v = block->first_phi; v != SSA_NONE; v = insn_at(w, v)->next) count_uses(w, v);
    for (uint32_t v = block->first_effect; v != SSA_NONE; v = insn_at(w, v)->next) count_uses(w, v);
    if (block->condition != SSA_NONE) w->uses[block->condition]++;
  }
}

static void scan_block(walker *w, uint32_t number, uint8_t *blind) {
  const ssa_block *block = ssa_block_at(w->unit, number);
  w->block = block;
  w->number = number;
  w->count = 0;
  for (uint32_t v = block->first_effect; v != SSA_NONE; v = insn_at(w, v)->next) {
    w->place[v] = w->count;
    w->line[w->count++] = v;
  }
  for (uint32_t at = 0; at < w->count; at++) {
    const ssa_insn *insn = insn_at(w, w->line[at]);
    if (insn->op == ATLAS_OP_bitcast && atlas_is_wide_float((atlas_type)insn->type2))
      blind[w->line[at]] = (uint8_t)(insn->bits != 0 || is_blind(w, w->line[at]));
  }
}

hg_status hg_find_nan_blind(const ssa_unit *unit, const ssa_order *order, hg_range *range, uint8_t *blind) {
  uint64_t values = unit->insns.count;
  walker w = {.unit = unit, .range = range, .uses = hg_allocate(&unit->allocator, values, 3 * sizeof(uint32_t) + 1)};
  if (w.uses == NULL) return hg_fail_memory("uses of values", values * (3 * sizeof(uint32_t) + 1));
  w.line = w.uses + values;
  w.place = w.line + values;
  w.state = (uint8_t *)(w.place + values);
  memset(blind, 0, values);
  count_all_uses(&w, order);
  for (uint32_t k = 0; k < order->count; k++) scan_block(&w, order->block[k], blind);
  hg_release(&unit->allocator, w.uses);
  return HG_OK;
}
