/* x86_arith.h - what the files of arithmetic share: arith.c (rows, selection, moves), float.c,
 * integer.c, compare.c. */
#ifndef HG_X86_ARITH_H
#define HG_X86_ARITH_H

#include "backend/cpu/x86/emit_x86.h"

#include "atlas/value.h"

enum { X86_NOT_THERE = 0xffff }; /* in place of an instruction */

/* For every vector of the result. */
#define X86_EACH(e, c, p)                                         \
  for (uint32_t c = 0; c < hg_x86_copies(e, (e)->insn->d); c++)   \
    for (uint32_t p = 0; p < hg_x86_parts(e, (e)->insn->d); p++)

static inline int x86_is_narrow(uint8_t type) { return atlas_bytes((atlas_type)type) < 4; }

static inline int x86_can_write(const x86_emit *e, unsigned op) {
  return op != X86_NOT_THERE && (e->width == 2 || hg_x86_rows[op].has & X86_HAS_V);
}

/* Narrow integers are kept extended; an operation that can leave their range is followed by this. */
void hg_x86_extend(x86_emit *e, uint8_t type, unsigned reg);
/* A bit operation with one constant. */
void hg_x86_with_constant(x86_emit *e, unsigned op32, unsigned op64, uint64_t bits);

/* 1 if it has written the instruction. */
int hg_x86_float(x86_emit *e);
int hg_x86_integer(x86_emit *e);
int hg_x86_compare(x86_emit *e);

#endif
