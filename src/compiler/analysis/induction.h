/* induction.h - how a value changes from each iteration of a loop to the next. */
#ifndef HG_COMPILER_INDUCTION_H
#define HG_COMPILER_INDUCTION_H

#include "compiler/analysis/ranges.h"
#include "ir/ssa_order.h"

typedef enum hg_edge { HG_EDGE_ENTERS, HG_EDGE_COMES_BACK, HG_EDGE_UNREACHABLE } hg_edge;

/* The edge that argument i of the phi comes along: from the block *from, by its successor *side. */
hg_edge hg_edge_of(const ssa_unit *unit, const ssa_order *order, uint32_t phi, uint32_t i, uint32_t *from,
                   uint32_t *side);

typedef struct hg_induction {
  hg_range start; /* the range of the phi when the loop is entered */
  hg_range step; /* what each iteration adds, modulo 2^bits of the phi's type, as signed numbers of least magnitude */
} hg_induction;

/* 1 if the value is an integer phi of a loop's header to which every back edge brings a sum of itself and other
 * values. */
int hg_read_induction(const ssa_unit *unit, const ssa_order *order, const hg_range *of, uint32_t phi,
                      hg_induction *out);

/* An operation on 64-bit numbers: the whole type if it could wrap. */
hg_range hg_range_of_numbers(uint16_t op, hg_range a, hg_range b);

#endif
