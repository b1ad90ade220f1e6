/* nan_bits.h - where the bits of a NaN (its sign and payload) are observable.
 *
 * In the ISA, an arithmetic result that is NaN has the canonical bits. Machines produce other NaNs, which must be made
 * canonical only where the difference is observable. This file alone says where. */
#ifndef HG_COMPILER_NAN_BITS_H
#define HG_COMPILER_NAN_BITS_H

#include "atlas/tables.h"
#include "compiler/analysis/ranges.h"
#include "ir/ssa_order.h"

/* How an operation treats the bits of a NaN that it reads. */
typedef enum hg_nan_use {
  HG_NAN_ALIKE,  /* nothing: the result is the same for all NaNs */
  HG_NAN_PASSED, /* the result has the same bits, except perhaps the sign */
  HG_NAN_SHOWN   /* they become observable: in memory, in an integer, in other lanes, or as a number's sign */
} hg_nan_use;

/* For argument `arg` of an operation of the ISA, or of a phi. Inline, since it is asked of every argument. */
static inline hg_nan_use hg_nan_use_of(uint16_t op, unsigned arg) {
  switch (op) {
  case SSA_PHI:
  case ATLAS_OP_neg:
  case ATLAS_OP_abs: return HG_NAN_PASSED;
  case ATLAS_OP_sel: return arg == 0 ? HG_NAN_ALIKE : HG_NAN_PASSED;
  case ATLAS_OP_copysign: return arg == 0 ? HG_NAN_PASSED : HG_NAN_SHOWN; /* the sign of a NaN becomes that of a
                                                                             number */
  case ATLAS_OP_bitcast: return HG_NAN_SHOWN;
  default: break;
  }
  return atlas_op_flags(op) & (ATLAS_STORE | ATLAS_BLOCK) ? HG_NAN_SHOWN : HG_NAN_ALIKE;
}

/* 1 if a machine's instruction for this operation may produce a NaN with other bits than the canonical ones. */
int hg_makes_other_nan(uint16_t op, uint8_t type, uint8_t type2);

/* blind[value] becomes 1 for each bitcast from f32 or f64 whose bits are used although nothing observable depends on
 * which NaN was cast; 0 for all other values. `unit` is scheduled. `range`: as below, or NULL: bits that leave their
 * block count as observable even if a branch's comparisons guarantee a number. HG_OUT_OF_MEMORY. */
hg_status hg_find_nan_blind(const ssa_unit *unit, const ssa_order *order, hg_range *range, uint8_t *blind);

/* The same for each bitcast from f32 at a place where a branch's comparisons guarantee a number. `range`: per value
 * (analyse.h); it is changed during the call and restored. */
void hg_find_number_casts(const ssa_unit *unit, const ssa_order *order, hg_range *range, uint8_t *blind);

/* 1 if an f32 is a number wherever a condition holds. `range`: as above. */
int hg_is_number_where(const ssa_unit *unit, hg_range *range, uint32_t condition, uint32_t value);

/* 1 if argument i of a phi comes along an edge that is taken only if the argument is a number. */
int hg_comes_as_number(const ssa_unit *unit, uint32_t phi, uint32_t i);

/* An engine's answer for one use, in place of hg_nan_use_of. */
typedef hg_nan_use hg_nan_rule(const void *engine, uint32_t value, unsigned arg);

/* seen[value] becomes 1 for each float whose NaN bits are observable, by a use of its own or of a value that they
 * are passed to; 0 for all other values. `blind` is the result of hg_find_nan_blind. `rule` may be NULL.
 * HG_OUT_OF_MEMORY. */
hg_status hg_find_nan_seen(const ssa_unit *unit, const ssa_order *order, const uint8_t *blind, hg_nan_rule *rule,
                           const void *engine, uint8_t *seen);

#endif
