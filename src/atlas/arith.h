/* arith.h - the pure instructions on values: what `add.f16` of two bit patterns is. */
#ifndef HG_ATLAS_ARITH_H
#define HG_ATLAS_ARITH_H

#include "atlas/value.h"

/* One arithmetic, logic or floating-point primitive (not set.*, cvt, sel, predicates, memory or functions). Operands
 * that the instruction does not have are ignored. */
uint64_t atlas_arith(uint32_t op, atlas_type type, uint64_t a, uint64_t b, uint64_t c);

/* The value that atom.* stores in place of `old`; atom.cas stores b if `old` is a, else `old`. */
uint64_t atlas_update(uint32_t op, atlas_type type, uint64_t old, uint64_t a, uint64_t b);

/* The operation of atlas_arith that reduce.* and scan.* combine two values with. */
uint16_t atlas_combining_op(uint32_t op);

/* set.*: 0 or 1. */
int atlas_compare(uint32_t op, atlas_type type, uint64_t a, uint64_t b);

/* index + displacement, exactly; where the sum is no int64_t, the nearest one (which is out of bounds everywhere). */
int64_t atlas_index_sum(atlas_type type, uint64_t index, int64_t displacement);

#endif
