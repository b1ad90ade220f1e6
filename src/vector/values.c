/* values.c - values as vector instructions, and the analyses before that: where the bits of a NaN can be seen, which
 * values outlive their loop, and the strides of indices across lanes. */
#include "atlas/arith.h"
#include "compiler/compiler_tuning.h"
#include "atlas/value.h"
#include "base/error.h"
#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/effects.h"
#include "compiler/analysis/nan_bits.h"
#include "vector/lower.h"

#include <math.h>
#include <string.h>

static int is_access(const ssa_insn *insn) {
  return (atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != 0;
}

/* ---- NaN bits ---------------------------------------------------------------------------------------------------- */

static int may_be_other_nan(const ssa_insn *insn) { return hg_makes_other_nan(insn->op, insn->type, insn->type2); }

/* 1 if a bitcast is in no other loop, on one side of a branch after the block, so that fewer lanes reach it. */
static int is_on_a_side(const vector_lowering *l, const ssa_insn *insn, uint32_t block) {
  const ssa_block *to = ssa_block_at(l->unit, insn->block);
  if (insn->op != ATLAS_OP_bitcast || insn->block == block || to->predecessors.count != 1) return 0;
  return l->order.loop[insn->block] == l->order.loop[block] &&
         ssa_block_at(l->unit, ((const uint32_t *)to->predecessors.data)[0])->end == SSA_BRANCH;
}

/* 1 if `arg` is computed in a loop after which `value` shows it, or before a branch with `value` on one side: its NaNs
 * are made canonical at `value`, once, and not in each round, nor for lanes that do not reach `value`. */
static int is_cleaned_late(const vector_lowering *l, uint32_t value, unsigned i) {
  const ssa_insn *insn = vector_ssa_insn(l, value);
  uint32_t arg = ssa_args_of(l->unit, value)[i], made = vector_ssa_insn(l, arg)->block;
  if (made == SSA_NONE || hg_nan_use_of(insn->op, i) != HG_NAN_SHOWN) return 0;
  if (insn->op == ATLAS_OP_copysign || l->nan_blind[value]) return 0;
  if (is_on_a_side(l, insn, made)) return may_be_other_nan(vector_ssa_insn(l, arg));
  if (!(l->uses[arg] & VALUE_IS_COMPUTED)) return 0;
  uint32_t loop = l->order.loop[made];
  return loop != SSA_NONE && !vector_in_loop(&l->order, loop, insn->block);
}

static hg_nan_use nan_use(const void *lowering, uint32_t value, unsigned i) {
  const vector_lowering *l = lowering;
  return is_cleaned_late(l, value, i) ? HG_NAN_ALIKE : hg_nan_use_of(vector_ssa_insn(l, value)->op, i);
}

/* Optimistic: starts with every candidate, then removes those that depend on a value that is none. */
static int is_computed(const vector_lowering *l, uint32_t value, int first) {
  const ssa_insn *insn = vector_ssa_insn(l, value);
  const uint32_t *args = ssa_args_of(l->unit, value);
  if (!atlas_is_float((atlas_type)insn->type)) return 0;
  if (insn->op == SSA_CONST) return !isnan(atlas_to_f64((atlas_type)insn->type, insn->bits));
  if (insn->op != SSA_PHI && insn->op != ATLAS_OP_sel) return may_be_other_nan(insn);
  for (uint32_t i = insn->op == ATLAS_OP_sel; i < insn->arg_count && !first; i++)
    if (!(l->uses[args[i]] & VALUE_IS_COMPUTED)) return 0;
  return 1;
}

/* Without loops every value follows its operands, so one walk suffices. */
static int has_loops(const vector_lowering *l) {
  uint32_t k = 0;
  while (k < l->order.count && l->order.loop[l->order.block[k]] == SSA_NONE) k++;
  return k < l->order.count;
}

static void find_computed(vector_lowering *l) {
  if (!l->has_loops) return; /* only loops ask */
  for (int first = 1, changed = 1; changed; first = 0) {
    changed = first;
    for (uint32_t v = 0; v < l->unit->insns.count; v++) {
      int was = first || l->uses[v] & VALUE_IS_COMPUTED, is = was && is_computed(l, v, first);
      changed |= is != was;
      l->uses[v] = (uint8_t)((l->uses[v] & ~VALUE_IS_COMPUTED) | (is ? VALUE_IS_COMPUTED : 0));
    }
  }
}

/* ---- strides ----------------------------------------------------------------------------------------------------- */

static uint8_t stride_of_arg(const vector_lowering *l, uint32_t value, uint32_t i) {
  uint32_t arg = ssa_args_of(l->unit, value)[i];
  const ssa_insn *insn = vector_ssa_insn(l, arg);
  if (insn->op == SSA_SPECIAL)
    return insn->bits == ATLAS_REG_LANE || insn->bits == ATLAS_REG_BLOCK_LANE ? VECTOR_STRIDE_1 : VECTOR_STRIDE_0;
  if (hg_is_leaf(insn) || l->analysis.fact[arg].level < IR_LANE) return VECTOR_STRIDE_0;
  return l->stride[arg];
}

/* All lanes of a uniform block arrive by one edge if none of its predecessors diverges. */
static int comes_by_one_edge(const vector_lowering *l, uint32_t block) {
  const hg_array *from = &ssa_block_at(l->unit, block)->predecessors;
  if (!l->uniform[block]) return 0;
  for (size_t i = 0; i < from->count; i++) {
    uint32_t p = ((const uint32_t *)from->data)[i];
    if (!l->uniform[p] || hg_vector_diverges(l, p)) return 0;
  }
  return 1;
}

/* 1 if a phi's lanes may hold values of different rounds of a loop, which they have left one by one. */
static int comes_from_rounds(const vector_lowering *l, uint32_t phi) {
  const ssa_insn *insn = vector_ssa_insn(l, phi);
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    uint32_t from = ((const uint32_t *)ssa_block_at(l->unit, insn->block)->predecessors.data)[i];
    uint32_t made = vector_ssa_insn(l, ssa_args_of(l->unit, phi)[i])->block;
    for (uint32_t h = l->order.loop[from]; h != SSA_NONE && !vector_in_loop(&l->order, h, insn->block);
         h = l->order.parent[h])
      if (!l->uniform[h] && made != SSA_NONE && vector_in_loop(&l->order, h, made)) return 1;
  }
  return 0;
}

/* The same for the lanes of a header, in each round of a loop that they leave one by one. */
static int comes_by_one_edge_each_round(const vector_lowering *l, uint32_t phi) {
  uint32_t block = vector_ssa_insn(l, phi)->block;
  return !l->uniform[block] && l->order.loop[block] == block && l->latch[block] != SSA_NONE &&
         vector_ssa_insn(l, phi)->arg_count == 2 && !comes_from_rounds(l, phi);
}

/* In the `first` round, back edges are assumed to agree with the entering ones. After a divergent loop, lanes hold the
 * values with which they left. */
static uint8_t stride_of_phi(const vector_lowering *l, uint32_t phi, int first) {
  const ssa_insn *insn = vector_ssa_insn(l, phi);
  const uint32_t *from = ssa_block_at(l->unit, insn->block)->predecessors.data;
  int known = 0;
  uint8_t stride = VECTOR_STRIDE_OTHER;
  if (!vector_is_wide_integer(insn->type) || l->uses[phi] & VALUE_IS_KEPT) return VECTOR_STRIDE_OTHER;
  if (!comes_by_one_edge(l, insn->block) && !comes_by_one_edge_each_round(l, phi)) return VECTOR_STRIDE_OTHER;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    if (first && l->order.place[from[i]] >= l->order.place[insn->block]) continue;
    uint8_t s = stride_of_arg(l, phi, i);
    if (known && s != stride) return VECTOR_STRIDE_OTHER;
    stride = s;
    known = 1;
  }
  return stride;
}

/* 1 if a conversion's operand, which counts up, does not wrap between the lanes of a run that arrive here: its type has
 * enough numbers above it. */
static int counts_on(const vector_lowering *l, uint32_t value) {
  const ssa_insn *insn = vector_ssa_insn(l, value);
  int is_signed = atlas_kind((atlas_type)insn->type2) == ATLAS_KIND_SINT;
  const hg_range *range = &l->analysis.range[ssa_args_of(l->unit, value)[0]];
  if (insn->op != ATLAS_OP_cvt || (insn->type2 != ATLAS_u32 && insn->type2 != ATLAS_i32)) return 0;
  return range->exact && range->high <= (is_signed ? INT32_MAX : (int64_t)UINT32_MAX) - ATLAS_MAX_BLOCK_LANES;
}

static uint8_t stride_of_value(const vector_lowering *l, uint32_t value) {
  const ssa_insn *insn = vector_ssa_insn(l, value);
  if (insn->op == ATLAS_OP_sreg)
    return insn->bits == ATLAS_COORD_LANE_X || insn->bits == ATLAS_COORD_GLOBAL_X ? VECTOR_STRIDE_1 : VECTOR_STRIDE_0;
  if (!hg_is_pure(insn) || l->uses[value] & VALUE_IS_KEPT) return VECTOR_STRIDE_OTHER;
  uint8_t s[3] = {VECTOR_STRIDE_0, VECTOR_STRIDE_0, VECTOR_STRIDE_0}, most = VECTOR_STRIDE_0;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    uint8_t stride = stride_of_arg(l, value, i);
    if (stride > most) most = stride;
    if (i < 3) s[i] = stride;
  }
  if (most == VECTOR_STRIDE_0) return VECTOR_STRIDE_0;
  if (!vector_is_wide_integer(insn->type)) return VECTOR_STRIDE_OTHER;
  return counts_on(l, value) ? s[0] : vector_stride_of_result(insn->op, insn->type, insn->type2, s);
}

/* Optimistic: starts with assumptions for loops; failing ones become OTHER, to a fixed point. */
static void find_strides(vector_lowering *l) {
  memset(l->stride, VECTOR_STRIDE_OTHER, l->unit->insns.count);
  for (int round = 0, changed = 1; changed; round++) {
    changed = 0;
    for (uint32_t k = 0; k < l->order.count; k++) {
      const ssa_block *block = ssa_block_at(l->unit, l->order.block[k]);
      for (uint32_t v = block->first_phi; v != SSA_NONE; v = vector_ssa_insn(l, v)->next) {
        uint8_t stride = stride_of_phi(l, v, round == 0);
        changed |= stride != l->stride[v];
        if (round == 0 || stride != l->stride[v]) l->stride[v] = round == 0 ? stride : VECTOR_STRIDE_OTHER;
      }
      for (uint32_t v = block->first_effect; v != SSA_NONE; v = vector_ssa_insn(l, v)->next) {
        uint8_t stride = stride_of_value(l, v);
        changed |= stride != l->stride[v];
        l->stride[v] = stride;
      }
    }
    changed &= l->has_loops;
  }
}

/* ---- uniform values ---------------------------------------------------------------------------------------------- */

static int is_uniform_operand(const vector_lowering *l, uint32_t value) {
  const ssa_insn *insn = vector_ssa_insn(l, value);
  if (insn->op == SSA_SPECIAL)
    return l->is_one_lane || (insn->bits != ATLAS_REG_LANE && insn->bits != ATLAS_REG_BLOCK_LANE);
  return hg_is_leaf(insn) || (l->uses[value] & VALUE_IS_UNIFORM);
}

static int has_uniform_operands(const vector_lowering *l, uint32_t value) {
  for (uint32_t i = 0; i < vector_ssa_insn(l, value)->arg_count; i++)
    if (!is_uniform_operand(l, ssa_args_of(l->unit, value)[i])) return 0;
  return 1;
}

/* In a divergent loop the remaining lanes are in one round: a header's phi has the entering or the looping value,
 * uniform in them if both are. After the loop, lanes would have the values with which they left. */
static int is_alike_in_loop(const vector_lowering *l, uint32_t value) {
  const ssa_insn *insn = vector_ssa_insn(l, value);
  if (l->uses[value] & VALUE_IS_KEPT) return 0;
  if (insn->op != SSA_PHI) return hg_is_pure(insn) && (insn->arg_count > 0 || l->analysis.fact[value].level < IR_LANE);
  return comes_by_one_edge_each_round(l, value);
}

/* An engine may keep one element for all lanes only if any lane can compute it, ended ones included. So all operands
 * must be uniform, in blocks that all lanes reach together or in rounds of a loop. Results of collectives exist only in
 * the lanes that took part. Optimistic: starts with every candidate, then removes those that depend on a value that is
 * none. */
static void find_uniform(vector_lowering *l) {
  for (int round = 0, changed = 1; changed; round++) {
    changed = 0;
    for (uint32_t k = 0; k < l->order.count; k++) {
      uint32_t b = l->order.block[k];
      uint32_t lists[2] = {ssa_block_at(l->unit, b)->first_phi, ssa_block_at(l->unit, b)->first_effect};
      for (int list = 0; list < 2; list++)
        for (uint32_t v = lists[list]; v != SSA_NONE; v = vector_ssa_insn(l, v)->next) {
          int candidate =
              l->uniform[b] && l->analysis.fact[v].level < IR_LANE && !hg_is_block_op(vector_ssa_insn(l, v)->op);
          candidate |= !l->uniform[b] && is_alike_in_loop(l, v);
          int is = (round == 0 || l->uses[v] & VALUE_IS_UNIFORM) && candidate;
          if (is && (round > 0 || !l->has_loops)) is = has_uniform_operands(l, v);
          if (is && round > 0 && l->same[v] != SSA_NONE) is = (l->uses[l->same[v]] & VALUE_IS_UNIFORM) != 0;
          if (round > 0) changed |= is != ((l->uses[v] & VALUE_IS_UNIFORM) != 0);
          else changed |= l->has_loops || l->same[v] != SSA_NONE;
          l->uses[v] = (uint8_t)((l->uses[v] & ~VALUE_IS_UNIFORM) | (is ? VALUE_IS_UNIFORM : 0));
        }
    }
  }
}

/* ---- outliving loops --------------------------------------------------------------------------------------------- */

static void note_use(vector_lowering *l, uint32_t value, uint32_t in) {
  const ssa_insn *insn = vector_ssa_insn(l, value);
  l->uses[value] |= VALUE_IS_USED;
  if (insn->block == SSA_NONE) return;
  for (uint32_t h = l->order.loop[insn->block]; h != SSA_NONE && !vector_in_loop(&l->order, h, in);
       h = l->order.parent[h])
    if (!l->uniform[h]) l->uses[value] |= VALUE_IS_KEPT | (insn->op == SSA_PHI ? 0 : VALUE_OUTLIVES_LOOP);
}

static void note_uses(vector_lowering *l, uint32_t b) {
  const ssa_block *block = ssa_block_at(l->unit, b);
  for (uint32_t phi = block->first_phi; phi != SSA_NONE; phi = vector_ssa_insn(l, phi)->next)
    for (uint32_t i = 0; i < vector_ssa_insn(l, phi)->arg_count; i++)
      note_use(l, ssa_args_of(l->unit, phi)[i], ((const uint32_t *)block->predecessors.data)[i]);
  for (uint32_t e = block->first_effect; e != SSA_NONE; e = vector_ssa_insn(l, e)->next)
    for (uint32_t i = 0; i < vector_ssa_insn(l, e)->arg_count; i++) note_use(l, ssa_args_of(l->unit, e)[i], b);
  if (block->condition != SSA_NONE) note_use(l, block->condition, b);
}

/* ---- the analyses ------------------------------------------------------------------------------------------------ */

hg_status hg_vector_study(vector_lowering *l) {
  uint32_t group[ATLAS_MAX_SYMBOLS + 2];
  hg_alias_groups(l->program, l->unit, group);
  for (uint32_t at = 0; at < hg_location_count(l->program); at++)
    l->read_only[at] = (uint8_t)hg_is_read_only(l->program, group, at);
  l->has_loops = (uint8_t)has_loops(l);
  find_computed(l);
  HG_TRY(hg_find_nan_blind(l->unit, &l->dominance, l->analysis.range, l->nan_blind));
  HG_TRY(hg_find_nan_seen(l->unit, &l->dominance, l->nan_blind, nan_use, l, l->bits_seen));
  for (uint32_t k = 0; k < l->order.count; k++) note_uses(l, l->order.block[k]);
  find_strides(l);
  hg_vector_find_webs(l);
  find_uniform(l);
  return l->status;
}

static uint32_t access_flags(const vector_lowering *l, uint32_t value) {
  const ssa_insn *insn = vector_ssa_insn(l, value);
  uint32_t flags = l->read_only[hg_location_of(l->program, insn)] ? VECTOR_READ_ONLY : 0;
  /* not if only proven below a buffer's length, which may exceed the range of 32-bit indices */
  if (l->analysis.in_bounds[value] == HG_BELOW_EXTENT) flags |= VECTOR_IN_BOUNDS;
  if (atlas_op_flags(insn->op) & ATLAS_SPACE_LOCAL) return flags; /* lanes with one index access different locations */
  if (insn->mode == ATLAS_ADDRESS_UNIFORM || l->is_one_lane) return flags | VECTOR_SAME;
  if (insn->mode != ATLAS_ADDRESS_INDEXED) return flags;
  int counts_elements = !(atlas_op_flags(insn->op) & ATLAS_SPACE_POOL);
  uint32_t index = ssa_args_of(l->unit, value)[0];
  if (vector_ssa_insn(l, index)->op == SSA_SPECIAL && vector_ssa_insn(l, index)->bits == ATLAS_REG_LANE)
    return counts_elements ? flags | VECTOR_LANE : flags;
  if (hg_is_leaf(vector_ssa_insn(l, index)) ? vector_ssa_insn(l, index)->op != SSA_SPECIAL
                                            : l->analysis.fact[index].level < IR_LANE)
    return flags | VECTOR_SAME;
  return counts_elements && stride_of_arg(l, value, 0) == VECTOR_STRIDE_1 ? flags | VECTOR_CONTIGUOUS : flags;
}

static void note_environment(vector_lowering *l, const ssa_insn *insn) {
  l->out->has_block_ops |= (uint8_t)hg_is_block_op(insn->op);
  l->out->sees_coordinates |= insn->op == ATLAS_OP_sreg;
  l->out->counts_resonance |= insn->op == ATLAS_OP_res_accum;
  l->out->sees_blocks |=
      insn->op == ATLAS_OP_cls_get || (insn->op == ATLAS_OP_sreg && insn->bits == ATLAS_COORD_BLOCK_X);
  if (is_access(insn) && !(insn->symbol & SSA_LIBRARY) && insn->mode != ATLAS_ADDRESS_PHI) {
    uint8_t kind = atlas_symbol_at(l->program, insn->symbol)->kind;
    l->out->sees_shared |= kind == ATLAS_SYMBOL_SHARED || kind == ATLAS_SYMBOL_POOL;
    if (kind == ATLAS_SYMBOL_LOCAL) l->out->locals[insn->symbol / 64] |= UINT64_C(1) << insn->symbol % 64;
  }
  l->out->sees_shared |= insn->op == ATLAS_OP_pool_alloc || insn->op == ATLAS_OP_pool_free || insn->op == ATLAS_OP_rank;
}

static void note_locality(vector_lowering *l, const ssa_insn *insn, uint32_t flags) {
  uint32_t along_rows = VECTOR_LANE | VECTOR_CONTIGUOUS;
  if (insn->op == ATLAS_OP_sreg) l->out->needs_blocks |= insn->bits < ATLAS_COORD_BLOCK_SIZE_X;
  if (!is_access(insn) || insn->symbol & SSA_LIBRARY) return;
  if ((atlas_op_flags(insn->op) & (ATLAS_STORE | ATLAS_ATOMIC)) == 0) along_rows |= VECTOR_SAME;
  l->out->needs_blocks |= (flags & along_rows) == 0 || (atlas_op_flags(insn->op) & ATLAS_ATOMIC) != 0;
}

static void clean_operands(vector_lowering *l, uint32_t value, vector_insn *insn) {
  for (uint32_t i = 0; i < vector_ssa_insn(l, value)->arg_count && i < 4; i++) {
    uint32_t arg = ssa_args_of(l->unit, value)[i];
    if (!is_cleaned_late(l, value, i) || l->bits_seen[arg] || hg_is_never_nan(&l->analysis, arg)) continue;
    vector_insn canon = vector_insn_of(VECTOR_CANON, VECTOR_ALL);
    canon.type = vector_ssa_insn(l, arg)->type;
    canon.s[0] = insn->s[i];
    canon.d = insn->s[i] = hg_vector_new_reg(l, canon.type);
    hg_vector_emit(l, &canon);
  }
}

/* The register of a quotient of the same operands, if this straight piece of code has computed it before and it is
 * unchanged. */
static uint32_t quotient_of(const vector_lowering *l, const vector_insn *rem) {
  size_t count = l->out->insns.count;
  for (size_t i = count; i-- > 0 && count - i <= COMPILER_QUOTIENT_REACH;) {
    const vector_insn *insn = vector_insn_at(l->out, (uint32_t)i);
    if (insn->op == VECTOR_LABEL || insn->target != VECTOR_NONE) return VECTOR_NONE;
    if (insn->op == ATLAS_OP_div && insn->type == rem->type && insn->s[0] == rem->s[0] && insn->s[1] == rem->s[1]) {
      for (size_t k = i + 1; k < count; k++)
        if (vector_insn_at(l->out, (uint32_t)k)->d == insn->d) return VECTOR_NONE;
      return insn->d != rem->s[0] && insn->d != rem->s[1] ? insn->d : VECTOR_NONE;
    }
    if (insn->d == rem->s[0] || insn->d == rem->s[1]) return VECTOR_NONE;
  }
  return VECTOR_NONE;
}

/* If a quotient q of the same integers is at hand, the remainder is a - q b, without a second division. 1 if so. */
static int subtract_product(vector_lowering *l, const vector_insn *rem) {
  if (rem->op != ATLAS_OP_rem || !vector_is_wide_integer(rem->type) || rem->d == rem->s[0]) return 0;
  uint32_t quotient = quotient_of(l, rem);
  if (quotient == VECTOR_NONE) return 0;
  vector_insn insn = *rem;
  insn.op = ATLAS_OP_mul;
  insn.s[0] = quotient;
  insn.d = hg_vector_new_reg(l, rem->type);
  if (l->status != HG_OK) return 1;
  vector_reg_at(l->out, insn.d)->uniform = vector_reg_at(l->out, rem->d)->uniform;
  hg_vector_emit(l, &insn);
  insn.op = ATLAS_OP_sub;
  insn.s[0] = rem->s[0];
  insn.s[1] = insn.d;
  insn.d = rem->d;
  hg_vector_emit(l, &insn);
  return 1;
}

/* Types of at most 16 bits, whose values are all exact in f32. */
static int is_small(uint8_t type) { return atlas_type_bits((atlas_type)type) <= 16; }

static int is_small_float(uint8_t type) {
  return is_small(type) && type != ATLAS_bool && !atlas_is_integer((atlas_type)type);
}

/* 1 if a conversion goes through f32, which holds the source exactly, so that engines need fewer pairs: from small
 * floats to all but f32, and from small integers to small floats. */
static int goes_through_f32(const vector_insn *insn) {
  if (insn->op != ATLAS_OP_cvt || insn->type == ATLAS_f32 || !is_small(insn->type2)) return 0;
  return is_small_float(insn->type2) || is_small_float(insn->type);
}

/* Emits the first of two conversions; `insn` becomes the second. */
static void widen_source(vector_lowering *l, vector_insn *insn) {
  vector_insn widened = *insn;
  widened.type = ATLAS_f32;
  widened.flags = 0;
  widened.mask = VECTOR_ALL;
  widened.d = hg_vector_new_reg(l, ATLAS_f32);
  if (l->status != HG_OK) return;
  vector_reg_at(l->out, widened.d)->uniform = vector_reg_at(l->out, insn->d)->uniform;
  hg_vector_emit(l, &widened);
  insn->type2 = ATLAS_f32;
  insn->s[0] = widened.d;
}

void hg_vector_value(vector_lowering *l, uint32_t value) {
  const ssa_insn *from = vector_ssa_insn(l, value);
  vector_insn insn = vector_insn_of(from->op, hg_is_pure(from) ? VECTOR_ALL : l->mask);
  insn.type = from->type;
  insn.type2 = from->type2;
  insn.mode = from->mode;
  insn.phi_registers = from->phi_registers;
  insn.symbol = from->symbol;
  insn.insn = from->insn;
  insn.bits = from->bits;
  for (uint32_t i = 0; i < from->arg_count && i < 4; i++)
    insn.s[i] = hg_vector_reg_of(l, ssa_args_of(l->unit, value)[i]);
  clean_operands(l, value, &insn);
  if (is_access(from)) insn.flags = access_flags(l, value);
  note_locality(l, from, insn.flags);
  int has_result = from->type != ATLAS_NONE && !(atlas_op_flags(from->op) & ATLAS_STORE) &&
                   from->op != ATLAS_OP_phase_adv && from->op != ATLAS_OP_res_accum && from->op != ATLAS_OP_pool_free;
  if (atlas_op_flags(from->op) & ATLAS_ATOMIC && !(l->uses[value] & VALUE_IS_USED)) has_result = 0;
  if (has_result) insn.d = hg_vector_reg_of(l, value);
  uint32_t web = l->same[value];
  int is_kept = l->uses[value] & VALUE_OUTLIVES_LOOP || (web != SSA_NONE && l->uses[web] & VALUE_IS_KEPT);
  if (has_result && is_kept && l->mask != VECTOR_ALL) {
    insn.flags |= VECTOR_KEEP;
    insn.mask = l->mask;
  }
  note_environment(l, from);
  if (subtract_product(l, &insn)) return;
  if (goes_through_f32(&insn)) widen_source(l, &insn);
  hg_vector_emit(l, &insn);
  if (!may_be_other_nan(from) || !l->bits_seen[value] || hg_is_never_nan(&l->analysis, value)) return;
  vector_insn canon = vector_insn_of(VECTOR_CANON, insn.mask);
  canon.type = from->type;
  canon.d = canon.s[0] = insn.d;
  canon.flags = insn.flags & VECTOR_KEEP;
  hg_vector_emit(l, &canon);
}
