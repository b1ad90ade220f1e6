/* divide.c - division by a number whose reciprocal is known; f32 quotients without a call.
 *
 * ptxas expands div.rn.f32 into some instructions for usual numbers and a function call for others. The first call in a
 * kernel takes the driver a fifth of its compile time for a softmax, and each further one costs some. So divisions that
 * seldom run are done in f64 instead, where no f32 is near the ends of the range.
 *
 * a / b: y approximates 1 / b within a twentieth of it, from the bits of b. y += y (e + e^2) with e = 1 - b y, twice,
 * cubes the relative error each time: 2^-38. Let q = a y and t = a - q b, which is exact: the product of 53 and 24 bits
 * agrees with a in the first 38 bits. q' = q + t y, before it is rounded, differs from a / b by a relative 2^-76. So if
 * a / b is an f64, it is found. Any other a / b lies on the same side of the midpoint m of two f32 as q' does: it
 * differs from m by a relative 2^-49 or more, since a - m b is a whole number of units of which m b has fewer than
 * 2^49. That holds for subnormal f32, too. So q' rounded to f32 is a / b rounded to f32. If a or b is 0, infinite or
 * NaN the result is a z, where z has the sign of b and is infinite for b = 0, 0 for infinite b, NaN for NaN and some
 * number for other b: the bits of infinity less those of b.
 *
 * tests/unit/test_shared_work.c tries numbers that are hard to round. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/value.h"

/* Divides `number` by `size`, given the largest number of the class over the size, or a little less: the high half of
 * the product is the quotient or one less, because number / size - number * reciprocal / 2^bits is in [0, 1). */
void hg_ptx_divide(ptx *p, ptx_class class, ptx_name number, ptx_name size, ptx_name reciprocal, ptx_name quotient,
                   ptx_name rest) {
  const char *suffix = class == PTX_64 ? ".u64" : ".u32";
  ptx_name product = hg_ptx_new(p, class), is_less = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, hg_ptx_join("mul.hi", suffix).text, quotient, number, reciprocal);
  PTX(p, hg_ptx_join("mul.lo", suffix).text, product, quotient, size);
  PTX(p, hg_ptx_join("sub", suffix).text, rest, number, product);
  PTX(p, hg_ptx_join("setp.ge", suffix).text, is_less, rest, size);
  hg_ptx_put(p, "\t@%s add%s %s, %s, 1;\n", is_less.text, suffix, quotient.text, quotient.text);
  hg_ptx_put(p, "\t@%s sub%s %s, %s, %s;\n", is_less.text, suffix, rest.text, rest.text, size.text);
}

/* ---- which ------------------------------------------------------------------------------------------------------- */

/* If a single division has to be a call, the function is in the kernel anyway, and calls are shorter. */
int hg_ptx_divides_rarely(const ptx *p) {
  if (!p->plan->info.observes_block) return 0;
  for (uint32_t k = 0; k < p->plan->order.count; k++) {
    uint32_t first = ssa_block_at(p->plan->unit, p->plan->order.block[k])->first_effect;
    for (uint32_t v = first; v != SSA_NONE; v = ptx_insn(p, v)->next) {
      const ssa_insn *insn = ptx_insn(p, v);
      if (insn->op == ATLAS_OP_div && insn->type == ATLAS_f32 && insn->bits != 1) return 0;
    }
  }
  return 1;
}

/* ---- in f64 ------------------------------------------------------------------------------------------------------ */

static ptx_name real(double number) { return hg_ptx_constant(ATLAS_f64, atlas_bits_of_f64(number)); }

static ptx_name widened(ptx *p, ptx_name a) {
  ptx_name d = hg_ptx_new(p, PTX_64);
  PTX(p, "cvt.f64.f32", d, a);
  return d;
}

/* 0 < |a| < infinity, and the predicate *also unless `also` is NULL. */
static void is_number(ptx *p, ptx_name test, ptx_name a, const ptx_name *also) {
  ptx_name size = hg_ptx_new(p, PTX_32), zero = hg_ptx_constant(ATLAS_f32, 0);
  PTX(p, "abs.f32", size, a);
  if (also != NULL) PTX(p, "setp.gt.and.f32", test, size, zero, *also);
  else PTX(p, "setp.gt.f32", test, size, zero);
  PTX(p, "setp.lt.and.f32", test, size, hg_ptx_name("0f7F800000"), test);
}

void hg_ptx_divide_rarely(ptx *p, ptx_name d, ptx_name a, ptx_name b) {
  enum { STEPS = 2 };
  ptx_name x = widened(p, a), by = widened(p, b), y = hg_ptx_new(p, PTX_64), e = hg_ptx_new(p, PTX_64),
           q = hg_ptx_new(p, PTX_64), z = hg_ptx_new(p, PTX_32), usual = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "sub.s64", y, hg_ptx_name("0x7FDE6238502484BA"), by);
  PTX(p, "neg.f64", by, by);
  for (int i = 0; i < STEPS; i++) {
    PTX(p, "fma.rn.f64", e, by, y, real(1));
    PTX(p, "fma.rn.f64", e, e, e, e);
    PTX(p, "fma.rn.f64", y, y, e, y);
  }
  PTX(p, "mul.rn.f64", q, x, y);
  PTX(p, "fma.rn.f64", e, q, by, x);
  PTX(p, "fma.rn.f64", q, e, y, q);
  PTX(p, "sub.s32", z, hg_ptx_name("0x7F800000"), b);
  PTX(p, "mul.rn.f32", z, a, z);
  is_number(p, usual, a, NULL);
  is_number(p, usual, b, &usual);
  PTX(p, "cvt.rn.f32.f64", d, q);
  PTX(p, "selp.b32", d, d, z, usual);
}
