/* x86_arith.h - shared by the files that write arithmetic: arith.c (table, selection, moves), float.c, integer.c,
 * dot.c, bits.c, divide*.c, compare.c. */
#ifndef HG_X86_ARITH_H
#define HG_X86_ARITH_H

#include "backend/cpu/x86/emit_x86.h"

#include "atlas/value.h"
#include "compiler/machine_ops.h"

enum { X86_NOT_THERE = 0xffff }; /* in place of an instruction that the target does not have */

/* For every vector of the result. */
#define X86_EACH(e, c, p)                                         \
  for (uint32_t c = 0; c < hg_x86_copies(e, (e)->insn->d); c++)   \
    for (uint32_t p = 0; p < hg_x86_parts(e, (e)->insn->d); p++)

static inline int x86_is_narrow(uint8_t type) { return atlas_bytes((atlas_type)type) < 4; }

static inline int x86_can_write(const x86_emit *e, unsigned op) {
  return op != X86_NOT_THERE && (e->width == 2 || hg_x86_rows[op].has & X86_HAS_V);
}

/* Narrow integers are kept extended; this follows an operation that can leave their range. */
void hg_x86_extend(x86_emit *e, uint8_t type, unsigned reg);
/* A bit operation with one constant. */
void hg_x86_with_constant(x86_emit *e, unsigned op32, unsigned op64, uint64_t bits);

/* 1 if it has written the instruction; 0: this processor lacks an instruction for it. */
int hg_x86_fma(x86_emit *e);
int hg_x86_reciprocal(x86_emit *e); /* NATIVE_RECIPROCAL, NATIVE_QUOTIENT */
int hg_x86_quotient(x86_emit *e);
int hg_x86_square_root(x86_emit *e);
int hg_x86_round(x86_emit *e);
int hg_x86_extreme(x86_emit *e); /* floats: min, max */
int hg_x86_sign(x86_emit *e);
int hg_x86_flip_sign(x86_emit *e);
int hg_x86_clear_sign(x86_emit *e);
int hg_x86_copy_sign(x86_emit *e);
int hg_x86_canonical(x86_emit *e);
int hg_x86_multiply_long(x86_emit *e); /* AVX2: mul and mad of 64-bit integers */
int hg_x86_multiply_add(x86_emit *e);
int hg_x86_multiply_high(x86_emit *e);
int hg_x86_dot(x86_emit *e);
int hg_x86_negate(x86_emit *e);
int hg_x86_absolute(x86_emit *e);
int hg_x86_not(x86_emit *e);
int hg_x86_shift(x86_emit *e);
int hg_x86_integer_sign(x86_emit *e);
int hg_x86_long_extreme(x86_emit *e);   /* AVX2: min and max of 64-bit integers */
void hg_x86_divide_narrow(x86_emit *e); /* integers of 8 and 16 bits */
void hg_x86_divide(x86_emit *e);        /* of 32 bits, AVX-512 */
void hg_x86_divide_avx2(x86_emit *e);   /* the same, AVX2 */
void hg_x86_divide_long(x86_emit *e);   /* of 64 bits */
int hg_x86_class(x86_emit *e);
int hg_x86_bits(x86_emit *e);           /* popc, clz, ctz, brev */

#endif
