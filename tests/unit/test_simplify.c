/* test_simplify.c - every rule of simplify.c, in every type it holds for: the program with it and the program it should
 * become have one hash, and the reference machine gives both the same bits for values of all sorts. What looks like a
 * rule and is none has two hashes, and the machine shows an input that tells them apart. */
#include "check.h"

#include "atlas/interp.h"
#include "atlas/value.h"

#include <stdlib.h>

enum { VALUES = 16, LANES = VALUES * VALUES * VALUES, STEPS = 1000, TEXT_BYTES = 2048 };

enum {
  U8 = 1 << ATLAS_u8, I8 = 1 << ATLAS_i8, U16 = 1 << ATLAS_u16, I16 = 1 << ATLAS_i16,
  U32 = 1 << ATLAS_u32, I32 = 1 << ATLAS_i32, U64 = 1 << ATLAS_u64, I64 = 1 << ATLAS_i64,
  F16 = 1 << ATLAS_f16, BF16 = 1 << ATLAS_bf16, F32 = 1 << ATLAS_f32, F64 = 1 << ATLAS_f64,
  UNSIGNED = U8 | U16 | U32 | U64, SIGNED = I8 | I16 | I32 | I64, INT = UNSIGNED | SIGNED,
  FLOAT = F16 | BF16 | F32 | F64, NUM = INT | FLOAT
};

typedef enum relation { IS, IS_NOT } relation;

/* $ stands for the type. r0, r1, r2 are loaded, r3 is a loaded u32, p0 and p1 depend on it; r9 is stored. */
typedef struct row {
  uint32_t types;
  const char *one;
  relation relation;
  const char *other;
} row;

#define PICK "\nsel.$ r9, p9, #1, #0" /* shows a predicate */
#define TRUTH "set.eq.u32 p2, #0, #0\n"
#define LIE "set.eq.u32 p2, #0, #1\n"
#define ONES "not.$ r8, #0\n"
#define ARITHMETIC "add.$ r0, r0, r1\n" /* r0 is no NaN with a payload then */
#define CANON "mul.$ r9, r0, #1"
#define SELF "mov.$ r9, r0"

static const row integers[] = {
    {INT, "add.$ r9, r0, #0", IS, SELF},
    {INT, "add.$ r9, #0, r0", IS, SELF},
    {INT, "add.$ r9, r0, #1", IS_NOT, SELF},
    {INT, "add.$ r8, r0, #3\nadd.$ r9, r8, #4", IS, "add.$ r9, r0, #7"},
    {INT, "add.$ r8, r0, #100\nadd.$ r9, r8, #100", IS, "add.$ r8, #100, #100\nadd.$ r9, r8, r0"},
    {INT, "add.$ r8, r0, #3\nadd.$ r9, r8, #4", IS_NOT, "add.$ r9, r0, #8"},
    {INT, "sub.$ r9, r0, r0", IS, "movi.$ r9, #0"},
    {INT, "sub.$ r9, r0, #3", IS, "sub.$ r8, #0, #3\nadd.$ r9, r0, r8"},
    {INT, "sub.$ r9, #3, r0", IS_NOT, "sub.$ r9, r0, #3"},
    {INT, "sub.$ r9, r0, #0", IS, SELF},
    {INT, "sub.$ r9, #0, r0", IS_NOT, SELF},
    {INT, "mul.$ r9, r0, #0", IS, "movi.$ r9, #0"},
    {INT, "mul.$ r9, r0, #1", IS, SELF},
    {INT, "mul.$ r9, r0, #2", IS_NOT, SELF},
    {INT, "mulhi.$ r9, r0, #0", IS, "movi.$ r9, #0"},
    {INT, "mulhi.$ r9, r0, #1", IS_NOT, SELF},
    {INT, "div.$ r9, r0, #0", IS, "movi.$ r9, #0"},
    {INT, "div.$ r9, r0, #1", IS, SELF},
    {INT, "div.$ r9, #1, r0", IS_NOT, SELF},
    {INT, "div.$ r9, r0, r0", IS_NOT, "movi.$ r9, #1"}, /* 0 / 0 is 0 */
    {INT, "rem.$ r9, r0, #1", IS, "movi.$ r9, #0"},
    {INT, "rem.$ r9, r0, #0", IS, SELF},
    {INT, "rem.$ r9, r0, #2", IS_NOT, "and.$ r9, r0, #3"},
    {INT, "mad.$ r9, r0, #1, r1", IS, "add.$ r9, r0, r1"},
    {INT, "mad.$ r9, r0, #0, r1", IS, "mov.$ r9, r1"},
    {INT, "mad.$ r9, r0, r1, #0", IS, "mul.$ r9, r0, r1"},
    {INT, "mad.$ r9, #3, #4, r0", IS, "add.$ r9, r0, #12"},
    {INT, "mad.$ r9, r0, r1, #1", IS_NOT, "mul.$ r9, r0, r1"},
    {INT, "and.$ r9, r0, #0", IS, "movi.$ r9, #0"},
    {INT, "and.$ r9, r0, r0", IS, SELF},
    {INT, ONES "and.$ r9, r0, r8", IS, SELF},
    {INT, "and.$ r9, r0, #1", IS_NOT, SELF},
    {INT, "or.$ r9, r0, #0", IS, SELF},
    {INT, "or.$ r9, r0, r0", IS, SELF},
    {INT, ONES "or.$ r9, r0, r8", IS, ONES "mov.$ r9, r8"},
    {INT, "or.$ r9, r0, #1", IS_NOT, SELF},
    {INT, "xor.$ r9, r0, #0", IS, SELF},
    {INT, "xor.$ r9, r0, r0", IS, "movi.$ r9, #0"},
    {INT, ONES "xor.$ r9, r0, r8", IS_NOT, SELF},
    {INT, "shl.$ r9, r0, #0", IS, SELF},
    {INT, "shr.$ r9, r0, #0", IS, SELF},
    {INT, "shl.$ r9, r0, #67", IS, "shl.$ r9, r0, #3"},
    {INT, "shr.$ r9, r0, #67", IS, "shr.$ r9, r0, #3"},
    {INT, "shl.$ r9, r0, #64", IS, SELF},
    {INT, "shl.$ r9, r0, #1", IS_NOT, "shr.$ r9, r0, #1"},
    {INT, "shl.$ r8, r0, #1\nshr.$ r9, r8, #1", IS_NOT, SELF},
    {INT, "min.$ r9, r0, r0", IS, SELF},
    {INT, "max.$ r9, r0, r0", IS, SELF},
    {INT, "min.$ r9, r0, r1", IS_NOT, "max.$ r9, r0, r1"},
    {INT, "cvt.$.$ r9, r0", IS, SELF},
    {INT, "not.$ r8, r0\nnot.$ r9, r8", IS, SELF},
    {INT, "neg.$ r8, r0\nneg.$ r9, r8", IS, SELF},
    {INT, "neg.$ r8, r0\nnot.$ r9, r8", IS_NOT, SELF},
    {SIGNED, "abs.$ r8, r0\nabs.$ r9, r8", IS, "abs.$ r9, r0"},
    {SIGNED, "neg.$ r8, r0\nabs.$ r9, r8", IS, "abs.$ r9, r0"},
    {SIGNED, "abs.$ r8, r0\nneg.$ r9, r8", IS_NOT, "abs.$ r9, r0"},
    {SIGNED, "not.$ r8, r0\nabs.$ r9, r8", IS_NOT, "abs.$ r9, r0"},
};

static const row floats[] = {
    {FLOAT, "add.$ r9, r0, #-0", IS, CANON},
    {FLOAT, ARITHMETIC "add.$ r9, r0, #-0", IS, ARITHMETIC SELF},
    {FLOAT, "add.$ r9, r0, #-0", IS_NOT, SELF},
    {FLOAT, "add.$ r9, r0, #0", IS_NOT, CANON}, /* -0 + 0 is +0 */
    {FLOAT, ARITHMETIC "add.$ r9, r0, #0", IS_NOT, ARITHMETIC SELF},
    {FLOAT, "sub.$ r9, r0, #0", IS, CANON},
    {FLOAT, ARITHMETIC "sub.$ r9, r0, #0", IS, ARITHMETIC SELF},
    {FLOAT, "sub.$ r9, r0, #-0", IS_NOT, CANON},
    {FLOAT, "sub.$ r9, r0, #0", IS_NOT, SELF},
    {FLOAT, "sub.$ r9, #0, r0", IS_NOT, "neg.$ r9, r0"},
    {FLOAT, "sub.$ r9, #-0, r0", IS_NOT, "neg.$ r9, r0"}, /* a NaN */
    {FLOAT, "sub.$ r9, r0, r0", IS_NOT, "movi.$ r9, #0"},
    {FLOAT, "mul.$ r9, #1, r0", IS, CANON},
    {FLOAT, "mul.$ r8, r0, #1\nmul.$ r9, r8, #1", IS, CANON},
    {FLOAT, CANON, IS_NOT, SELF},
    {FLOAT, ARITHMETIC CANON, IS, ARITHMETIC SELF},
    {FLOAT, "neg.$ r0, r0\n" CANON, IS_NOT, "neg.$ r9, r0"},
    {FLOAT, "mul.$ r9, r0, #0", IS_NOT, "movi.$ r9, #0"},
    {FLOAT, "mul.$ r9, r0, #-1", IS_NOT, "neg.$ r9, r0"},
    {FLOAT, "div.$ r9, r0, #1", IS, CANON},
    {FLOAT, ARITHMETIC "div.$ r9, r0, #1", IS, ARITHMETIC SELF},
    {FLOAT, "div.$ r9, #1, r0", IS_NOT, CANON},
    {FLOAT, "div.$ r9, r0, r0", IS_NOT, "movi.$ r9, #1"},
    {FLOAT, "div.$ r9, r0, #3", IS_NOT, "div.$ r8, #1, #3\nmul.$ r9, r0, r8"},
    {FLOAT, "add.$ r8, r0, #0.1\nadd.$ r9, r8, #0.2", IS_NOT, "add.$ r8, #0.1, #0.2\nadd.$ r9, r0, r8"},
    {FLOAT, "mad.$ r9, r0, r1, r2", IS, "fma.$ r9, r0, r1, r2"},
    {FLOAT, "fma.$ r9, r0, r1, r2", IS_NOT, "mul.$ r8, r0, r1\nadd.$ r9, r8, r2"},
    {FLOAT, "fma.$ r9, r0, r1, #-0", IS, "mul.$ r9, r0, r1"},
    {FLOAT, "fma.$ r9, r0, r1, #0", IS_NOT, "mul.$ r9, r0, r1"},
    {FLOAT, "fma.$ r9, r0, #1, r1", IS, "add.$ r9, r0, r1"},
    {FLOAT, "fma.$ r9, #1, #3, r1", IS, "add.$ r9, r1, #3"},
    {FLOAT, "fma.$ r9, #3, #1, r1", IS, "add.$ r9, r1, #3"},
    {FLOAT, "fma.$ r9, r0, #0, r1", IS_NOT, "mov.$ r9, r1"},
    {FLOAT, "fma.$ r9, r0, #-1, r1", IS_NOT, "sub.$ r9, r0, r1"},
    {FLOAT, "min.$ r9, r0, r0", IS, CANON},
    {FLOAT, "max.$ r9, r0, r0", IS, CANON},
    {FLOAT, "min.$ r9, r0, r0", IS_NOT, SELF},
    {FLOAT, ARITHMETIC "max.$ r9, r0, r0", IS, ARITHMETIC SELF},
    {FLOAT, "copysign.$ r9, r0, r0", IS, SELF},
    {FLOAT, "copysign.$ r9, r0, r1", IS_NOT, SELF},
    {FLOAT, "relu.$ r9, r0", IS, "max.$ r9, r0, #0"},
    {FLOAT, "relu.$ r9, r0", IS_NOT, "max.$ r9, r0, #-0"},
    {FLOAT, "relu.$ r9, r0", IS_NOT, "set.lt.$ p9, r0, #0\nsel.$ r9, p9, #0, r0"},
    {FLOAT, "recip.$ r9, r0", IS, "div.$ r9, #1, r0"},
    {FLOAT, "neg.$ r8, r0\nneg.$ r9, r8", IS, SELF},
    {FLOAT, "abs.$ r8, r0\nabs.$ r9, r8", IS, "abs.$ r9, r0"},
    {FLOAT, "neg.$ r8, r0\nabs.$ r9, r8", IS, "abs.$ r9, r0"},
    {FLOAT, "abs.$ r8, r0\nneg.$ r9, r8", IS_NOT, "abs.$ r9, r0"},
    {FLOAT, "cvt.$.$ r9, r0", IS_NOT, SELF}, /* a NaN with a payload */
    {FLOAT, "bitcast.$.$ r9, r0", IS, SELF},
    {F32, "bitcast.u32.f32 r8, r0\nbitcast.f32.u32 r9, r8", IS, SELF},
    {F32, "bitcast.u32.f32 r8, r0\nbitcast.i32.u32 r8, r8\nbitcast.f32.i32 r9, r8", IS, SELF},
    {F64, "bitcast.u64.f64 r8, r0\nbitcast.f64.u64 r9, r8", IS, SELF},
    {F32, "cvt.f64.f32 r8, r0\ncvt.f32.f64 r9, r8", IS_NOT, SELF},
    {U32, "cvt.f64.u32 r8, r0\ncvt.u32.f64 r8, r8\nadd.u32 r9, r8, #1", IS_NOT, SELF},
    {U32, "cvt.f32.u32 r8, r0\ncvt.u32.f32 r9, r8", IS_NOT, SELF},
    {U32, "cvt.u16.u32 r8, r0\ncvt.u32.u16 r9, r8", IS_NOT, SELF},
    {U64, "not.u32 r8, r3\ncvt.u64.u32 r9, r8", IS_NOT, "not.u32 r8, r3\nbitcast.i32.u32 r8, r8\ncvt.u64.i32 r9, r8"},
};

static const row comparisons[] = {
    {NUM, "set.gt.$ p9, r0, r1" PICK, IS, "set.lt.$ p9, r1, r0" PICK},
    {NUM, "set.ge.$ p9, r0, r1" PICK, IS, "set.le.$ p9, r1, r0" PICK},
    {NUM, "set.ne.$ p9, r0, r1" PICK, IS, "set.eq.$ p8, r0, r1\npnot p9, p8" PICK},
    {FLOAT, "set.nan.$ p9, r0, r1" PICK, IS, "set.num.$ p8, r0, r1\npnot p9, p8" PICK},
    {INT, "set.le.$ p9, r0, r1" PICK, IS, "set.lt.$ p8, r1, r0\npnot p9, p8" PICK},
    {FLOAT, "set.le.$ p9, r0, r1" PICK, IS_NOT, "set.lt.$ p8, r1, r0\npnot p9, p8" PICK},
    {NUM, "set.lt.$ p9, r0, r0" PICK, IS, "movi.$ r9, #0"},
    {NUM, "set.gt.$ p9, r0, r0" PICK, IS, "movi.$ r9, #0"},
    {INT, "set.le.$ p9, r0, r0" PICK, IS, "movi.$ r9, #1"},
    {FLOAT, "set.le.$ p9, r0, r0" PICK, IS_NOT, "movi.$ r9, #1"},
    {INT, "set.eq.$ p9, r0, r0" PICK, IS, "movi.$ r9, #1"},
    {FLOAT, "set.eq.$ p9, r0, r0" PICK, IS, "set.num.$ p9, r0, r0" PICK},
    {FLOAT, "set.eq.$ p9, r0, r0" PICK, IS_NOT, "movi.$ r9, #1"},
    {UNSIGNED, "set.lt.$ p9, r0, #0" PICK, IS, "movi.$ r9, #0"},
    {SIGNED | FLOAT, "set.lt.$ p9, r0, #0" PICK, IS_NOT, "movi.$ r9, #0"},
    {UNSIGNED, "set.lt.$ p9, #0, r0" PICK, IS_NOT, "movi.$ r9, #1"},
    {NUM, "set.lt.$ p9, r0, r1" PICK, IS_NOT, "set.lt.$ p9, r1, r0" PICK},
    {NUM, "set.lt.$ p9, r0, r1" PICK, IS_NOT, "set.le.$ p9, r0, r1" PICK},
    {NUM, "set.eq.$ p9, r0, r1" PICK, IS, "set.eq.$ p9, r1, r0" PICK},
    {FLOAT, "set.num.$ p9, r0, r1" PICK, IS, "set.num.$ p9, r1, r0" PICK},
    {FLOAT, "set.num.$ p9, r0, #1" PICK, IS_NOT, "movi.$ r9, #1"},
};

static const row predicates[] = {
    {U32, "pnot p8, p0\npnot p9, p8" PICK, IS, "sel.$ r9, p0, #1, #0"},
    {U32, "pnot p9, p0" PICK, IS_NOT, "sel.$ r9, p0, #1, #0"},
    {U32, "pand p9, p0, p0" PICK, IS, "sel.$ r9, p0, #1, #0"},
    {U32, TRUTH "pand p9, p0, p2" PICK, IS, "sel.$ r9, p0, #1, #0"},
    {U32, LIE "pand p9, p0, p2" PICK, IS, "movi.$ r9, #0"},
    {U32, "por p9, p0, p0" PICK, IS, "sel.$ r9, p0, #1, #0"},
    {U32, TRUTH "por p9, p0, p2" PICK, IS, "movi.$ r9, #1"},
    {U32, LIE "por p9, p0, p2" PICK, IS, "sel.$ r9, p0, #1, #0"},
    {U32, "pxor p9, p0, p0" PICK, IS, "movi.$ r9, #0"},
    {U32, LIE "pxor p9, p0, p2" PICK, IS, "sel.$ r9, p0, #1, #0"},
    {U32, TRUTH "pxor p9, p0, p2" PICK, IS, "pnot p9, p0" PICK},
    {U32, "pand p9, p0, p1" PICK, IS, "pand p9, p1, p0" PICK},
    {U32, "pand p9, p0, p1" PICK, IS_NOT, "por p9, p0, p1" PICK},
    {U32, "pxor p9, p0, p1" PICK, IS_NOT, "por p9, p0, p1" PICK},
    {NUM, "sel.$ r9, p0, r0, r0", IS, SELF},
    {NUM, "sel.$ r9, p0, r0, r1", IS_NOT, "sel.$ r9, p0, r1, r0"},
    {NUM, TRUTH "sel.$ r9, p2, r0, r1", IS, SELF},
    {NUM, LIE "sel.$ r9, p2, r0, r1", IS, "mov.$ r9, r1"},
    {NUM, "pnot p9, p0\nsel.$ r9, p9, r0, r1", IS, "sel.$ r9, p0, r1, r0"},
    {FLOAT, "sel.$ r9, p0, #0, #-0", IS_NOT, "movi.$ r9, #0"},
    {FLOAT, "sel.$ r0, p0, r0, r1\n" CANON, IS_NOT, "sel.$ r9, p0, r0, r1"}, /* it chooses bits */
};

static const row operands[] = {
    {NUM, "add.$ r9, r0, r1", IS, "add.$ r9, r1, r0"},
    {NUM, "mul.$ r9, r0, r1", IS, "mul.$ r9, r1, r0"},
    {NUM, "min.$ r9, r0, r1", IS, "min.$ r9, r1, r0"},
    {NUM, "max.$ r9, r0, r1", IS, "max.$ r9, r1, r0"},
    {NUM, "mad.$ r9, r0, r1, r2", IS, "mad.$ r9, r1, r0, r2"},
    {NUM, "mad.$ r9, r0, r1, r2", IS_NOT, "mad.$ r9, r0, r2, r1"},
    {INT, "mulhi.$ r9, r0, r1", IS, "mulhi.$ r9, r1, r0"},
    {INT, "and.$ r9, r0, r1", IS, "and.$ r9, r1, r0"},
    {INT, "or.$ r9, r0, r1", IS, "or.$ r9, r1, r0"},
    {INT, "xor.$ r9, r0, r1", IS, "xor.$ r9, r1, r0"},
    {FLOAT, "fma.$ r9, r0, r1, r2", IS, "fma.$ r9, r1, r0, r2"},
    {NUM, "sub.$ r9, r0, r1", IS_NOT, "sub.$ r9, r1, r0"},
    {NUM, "div.$ r9, r0, r1", IS_NOT, "div.$ r9, r1, r0"},
    {INT, "rem.$ r9, r0, r1", IS_NOT, "rem.$ r9, r1, r0"},
    {FLOAT, "copysign.$ r9, r0, r1", IS_NOT, "copysign.$ r9, r1, r0"},
    {U32, "shl.u32 r9, r0, r3", IS_NOT, "shl.u32 r9, r3, r0"},
};

static const row others[] = {
    /* constants are folded by the machine's own operations */
    {NUM, "add.$ r8, #3, #4\nmul.$ r9, r8, #2", IS, "movi.$ r9, #14"},
    {NUM, "div.$ r9, #7, #2", IS_NOT, "movi.$ r9, #4"},
    {FLOAT, "div.$ r9, #1, #0", IS, "sub.$ r8, #0, #1\nneg.$ r8, r8\ndiv.$ r9, r8, #0"},
    {FLOAT, "div.$ r9, #0, #0", IS, "sqrt.$ r9, #-1"},
    {FLOAT, "exp.$ r9, #0", IS, "movi.$ r9, #1"},
    {F32, "cvt.f32.u32 r9, #16777217", IS, "movi.f32 r9, #16777216"},
    {F32, "bitcast.f32.u32 r9, #0x3f800000", IS, "movi.f32 r9, #1"},
    {F32, "bitcast.f32.u32 r9, #0x7fc00001", IS_NOT, "bitcast.f32.u32 r9, #0x7fc00000"},
    {NUM, "set.lt.$ p9, #3, #4" PICK, IS, "movi.$ r9, #1"},
    /* one name for a coordinate */
    {U32, "mov.u32 r9, r253", IS, "sreg.u32 r9, block.x"},
    {U32, "mov.u32 r9, r254", IS, "sreg.u32 r9, block_size.x"},
    {U32, "sreg.u32 r9, block.x", IS_NOT, "sreg.u32 r9, lane.x"},
    {U32, "mov.u32 r9, r252", IS_NOT, "cvt.u32.u64 r9, lane"},
    /* an index that is a constant joins the displacement, where the sum does not wrap */
    {NUM, "movi.u32 r8, #3\nldg.$ r9, [x + r8 + #2]", IS, "ldg.$ r9, [x + #5]"},
    {NUM, "movi.i32 r8, #-3\nldg.$ r9, [x + r8 + #8]", IS, "ldg.$ r9, [x + #5]"},
    {NUM, "movi.u32 r8, #0xfffffffd\nldg.$ r9, [x + r8 + #8]", IS_NOT, "ldg.$ r9, [x + #5]"},
    {NUM, "movi.u32 r8, #3\nldg.$ r9, [x + r8 + #2]", IS_NOT, "ldg.$ r9, [x + #4]"},
};

/* ---- values of all sorts ----------------------------------------------------------------------------------------- */

static uint64_t float_value(atlas_type type, uint32_t k) {
  static const double numbers[] = {0, 1, -1, 2, 3, -3, 0.5, 0.1, -0.3, 100};
  uint64_t sign = UINT64_C(1) << (atlas_type_bits(type) - 1), infinity = atlas_round_f64(type, 1e308 * 10);
  switch (k) {
  case 10: return sign;
  case 11: return infinity;
  case 12: return infinity | sign;
  case 13: return atlas_canonical_nan(type);
  case 14: return atlas_canonical_nan(type) | sign | 5; /* a payload */
  case 15: return 1;                                    /* subnormal */
  default: return atlas_round_f64(type, numbers[k]);
  }
}

static uint64_t integer_value(atlas_type type, uint32_t k) {
  uint64_t sign = UINT64_C(1) << (atlas_type_bits(type) - 1), mask = atlas_mask(type);
  uint64_t values[VALUES] = {0,        1,       2,    3,        mask,     mask - 1, sign,           sign - 1,
                             sign + 1, 5, 7, 10, 100, 0x5555555555555555, mask / 3 * 2, mask - 41};
  return values[k] & mask;
}

static void fill(uint8_t *memory, atlas_type type, uint32_t stride) {
  for (uint32_t lane = 0; lane < LANES; lane++) {
    uint32_t k = lane / stride % VALUES, bytes = atlas_bytes(type);
    uint64_t value = atlas_kind(type) == ATLAS_KIND_FLOAT ? float_value(type, k) : integer_value(type, k);
    for (uint32_t i = 0; i < bytes; i++) memory[(size_t)lane * bytes + i] = (uint8_t)(value >> 8 * i);
  }
}

/* ---- one row ----------------------------------------------------------------------------------------------------- */

typedef struct result {
  uint8_t hash[ATLAS_HASH_BYTES];
  uint8_t bytes[8 * LANES];
} result;

static atlas_program *parse(const char *body, const char *type) {
  static const char *const frame = ".buffer x $ in\n.buffer y $ in\n.buffer z $ in\n.buffer c u32 in\n.buffer o $ "
                                   "out\nldg.$ r0, [x + lane]\nldg.$ r1, "
                                   "[y + lane]\nldg.$ r2, [z + lane]\nldg.u32 r3, [c + lane]\nset.lt.u32 p0, r3, "
                                   "#3\nset.eq.u32 p1, r3, #2\n@\nstg.$ "
                                   "[o + lane], r9\nexit\n";
  char text[TEXT_BYTES];
  size_t at = 0;
  const char *outer = NULL;
  for (const char *from = frame; *from != '\0' || outer != NULL;) {
    if (*from == '\0') {
      from = outer + 1;
      outer = NULL;
    } else if (*from == '@') {
      outer = from;
      from = body;
    } else if (*from == '$') {
      at += (size_t)snprintf(text + at, sizeof text - at, "%s", type);
      from++;
    } else {
      text[at++] = *from++;
    }
  }
  atlas_program *program = NULL;
  if (!check_note(atlas_parse(NULL, text, at, "test", &program) == HG_OK))
    printf("%s\n%.*s", hg_last_error(), (int)at, text);
  return program;
}

static int evaluate(const char *body, atlas_type type, uint8_t *memory, result *out) {
  atlas_program *program = parse(body, atlas_type_name(type));
  if (program == NULL) return 0;
  uint64_t size = (uint64_t)atlas_bytes(type) * LANES;
  atlas_argument arguments[5] = {{.span = {memory, size}},
                                 {.span = {memory + size, size}},
                                 {.span = {memory + 2 * size, size}},
                                 {.span = {memory + 3 * size, 4 * LANES}},
                                 {.span = {out->bytes, size}}};
  atlas_launch launch = {.lanes = LANES, .arguments = arguments, .step_limit = STEPS};
  memset(out, 0, sizeof *out);
  int ok = check_note(atlas_program_hash(program, out->hash) == HG_OK) &&
           check_note(atlas_interpret(&program->allocator, program, &launch) == HG_OK);
  atlas_program_release(program);
  return ok;
}

static void check_row(const row *r, atlas_type type, uint8_t *memory, result out[2]) {
  if (!evaluate(r->one, type, memory, &out[0]) || !evaluate(r->other, type, memory, &out[1])) return;
  const char *wanted = r->relation == IS ? "the same" : "different", *name = atlas_type_name(type);
  if (!check_note((memcmp(out[0].hash, out[1].hash, ATLAS_HASH_BYTES) == 0) == (r->relation == IS)))
    printf("%s: the hashes should be %s:\n%s\n----\n%s\n\n", name, wanted, r->one, r->other);
  if (!check_note((memcmp(out[0].bytes, out[1].bytes, sizeof out[0].bytes) == 0) == (r->relation == IS)))
    printf("%s: the results should be %s:\n%s\n----\n%s\n\n", name, wanted, r->one, r->other);
}

static void check_rows(const row *rows, size_t count) {
  uint8_t *memory = malloc((size_t)4 * 8 * LANES);
  result *out = malloc(2 * sizeof *out);
  for (uint32_t type = 0; memory != NULL && out != NULL && type < 32; type++) {
    if (!((uint32_t)NUM >> type & 1)) continue;
    uint64_t size = (uint64_t)atlas_bytes((atlas_type)type) * LANES;
    for (uint32_t i = 0, stride = 1; i < 3; i++, stride *= VALUES) fill(memory + i * size, (atlas_type)type, stride);
    for (uint32_t lane = 0; lane < LANES; lane++) {
      uint32_t value = lane * 2654435761u >> 29;
      memcpy(memory + 3 * size + 4 * (size_t)lane, &value, 4);
    }
    for (size_t k = 0; k < count; k++)
      if (rows[k].types >> type & 1) check_row(&rows[k], (atlas_type)type, memory, out);
  }
  free(memory);
  free(out);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(rows)[0])

int main(void) {
  CHECK_ROWS(integers);
  CHECK_ROWS(floats);
  CHECK_ROWS(comparisons);
  CHECK_ROWS(predicates);
  CHECK_ROWS(operands);
  CHECK_ROWS(others);
  return check_report();
}
