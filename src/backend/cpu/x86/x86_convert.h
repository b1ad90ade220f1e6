/* x86_convert.h - shared by the files that write conversions: convert.c (which pair is which code; 32 bits and less, 64
 * bits where AVX-512 has an instruction), convert_long.c (64 bits without one), convert_small.c (floats of 16 and 8
 * bits). */
#ifndef HG_X86_CONVERT_H
#define HG_X86_CONVERT_H

#include "backend/cpu/x86/x86_arith.h"

enum { /* immediates of vcmpps and vcmppd */
  X86_EQUAL_TO = 0, X86_UNORDERED = 3, X86_NOT_EQUAL_TO = 4, X86_NOT_LESS_EQUAL = 0x16, X86_AT_LEAST = 0x1d,
  X86_ORDERED = 7
};
enum { X86_TO_ZERO = 0x0b, X86_DOWN = 0x09 }; /* of vrndscaleps and vrndscalepd, without exceptions */

/* The half of a vector of 32-bit elements that belongs to a 64-bit part: in `scratch`, except part 0. */
static inline unsigned x86_half(x86_emit *e, unsigned from, uint32_t part, unsigned scratch) {
  if (part == 0) return from;
  hg_x86_vi(e, e->width == 2 ? X86_vextracti64x4 : X86_vextracti128, from, 0, x86_reg(scratch), 1);
  return scratch;
}

/* Concatenates two half vectors. */
static inline void x86_join(x86_emit *e, unsigned to, unsigned low, unsigned high) {
  hg_x86_vi(e, e->width == 2 ? X86_vinserti64x4 : X86_vinserti128, to, low, x86_reg(high), 1);
}

/* convert_long.c. `to` = the 64-bit integers of `from` as f64, rounded once; changes `other`, a third register. */
void hg_x86_long_to_f64(x86_emit *e, int is_signed, unsigned to, unsigned from, unsigned other);
/* `to` = integers that f64 can hold and that round to the same result to 51 bits or less as those of `from`; changes
 * `other` and k1. */
void hg_x86_long_to_odd(x86_emit *e, int is_signed, unsigned to, unsigned from, unsigned other);
/* scratch 0 = f64 numbers as 64-bit integers, with AVX2; of the scratch registers `from` may only be 1. */
void hg_x86_f64_to_long(x86_emit *e, int is_signed, unsigned from);

/* convert_small.c: converts between f32 and small floats, and to small floats from f64 and from integers of 32 and 64
 * bits. hg_x86_wide_to_small also converts 64-bit integers to f32. */
void hg_x86_f32_to_small(x86_emit *e, uint8_t type);
void hg_x86_small_to_f32(x86_emit *e, uint8_t type);
void hg_x86_wide_to_small(x86_emit *e, uint8_t type, uint8_t from);
/* NATIVE_ROUND. */
void hg_x86_round_to_small(x86_emit *e, uint8_t type);

#endif
