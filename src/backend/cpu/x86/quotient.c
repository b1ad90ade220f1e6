/* quotient.c - quotients by one divisor from its reciprocal (native/quotient.c). */
#include "backend/cpu/x86/x86_arith.h"

enum { EXPONENT = 23, BIAS = 127 }; /* of f32 */

static uint32_t power_of_two(int exponent) { return (uint32_t)(BIAS + exponent) << EXPONENT; }

/* If a float is within these bounds and a quotient within its own, the exponent of their product is far from underflow,
 * as is that of the product's last bit and that of the reciprocal. */
enum { LEAST_DIVISOR = -40, GREATEST_DIVISOR = 125 };

/* Sets `reg` to all ones, which is a NaN, where a divisor is out of bounds. */
static void refuse(x86_emit *e, unsigned reg, unsigned divisor) {
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  uint32_t least = power_of_two(LEAST_DIVISOR), more = power_of_two(GREATEST_DIVISOR) - least;
  hg_x86_v(e, X86_vpandd, s2, divisor, hg_x86_constant(e, INT32_MAX, 0));
  hg_x86_v(e, X86_vpsubd, s2, s2, hg_x86_constant(e, least, 0));
  if (e->width == 2) {
    hg_x86_vi(e, X86_vpcmpud, 1, s2, hg_x86_constant(e, more, 0), 6); /* above */
    hg_x86_vk(e, X86_vpternlogd, reg, reg, x86_reg(reg), 0xff, 1, 0);
    return;
  }
  hg_x86_v(e, X86_vpminud, s3, s2, hg_x86_constant(e, more, 0));
  hg_x86_v(e, X86_vpcmpeqd, s3, s3, x86_reg(s2));
  hg_x86_v(e, X86_vpcmpeqd, s2, s2, x86_reg(s2));
  hg_x86_v(e, X86_vpxord, s3, s3, x86_reg(s2));
  hg_x86_v(e, X86_vpord, reg, reg, x86_reg(s3));
}

/* In one vector: a quarter of the time of a division in all lanes is enough. */
int hg_x86_reciprocal(x86_emit *e) {
  int is_uniform = native_location_of(e->b, e->insn->d)->is_uniform;
  unsigned one = hg_x86_scratch(e, 1);
  X86_EACH(e, c, p) {
    unsigned divisor = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    unsigned left = hg_x86_rm_reg(e, hg_x86_constant(e, power_of_two(0), 0), 0, one);
    if (is_uniform) {
      hg_x86_x(e, X86_vdivps, one, left, x86_reg(divisor));
      hg_x86_v(e, X86_vpbroadcastd, one, 0, x86_reg(one));
    } else hg_x86_v(e, X86_vdivps, one, left, x86_reg(divisor));
    refuse(e, one, divisor);
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    if (to != one) hg_x86_v(e, X86_vmove, to, 0, x86_reg(one));
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

/* Jumps to `rare` unless 2^-63 <= |q| < 2^64 in all lanes: that is, unless the upper two bits of the exponent
 * differ. */
static void check_exponents(x86_emit *e, unsigned q, uint32_t rare) {
  unsigned sum = hg_x86_scratch(e, 3);
  hg_x86_v(e, X86_vpaddd, sum, q, hg_x86_constant(e, UINT32_C(1) << 29, 0));
  if (e->width == 2) {
    hg_x86_v(e, X86_vptestnmd, 1, sum, hg_x86_constant(e, UINT32_C(1) << 30, 0));
    hg_x86_k(e, X86_kortestw, 1, 0, 1);
    hg_x86_jump_if(&e->a, X86_NOT_EQUAL, rare);
    return;
  }
  hg_x86_vi(e, X86_vpslld_imm, 0, sum, x86_reg(sum), 1);
  hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg(sum));
  hg_x86_alu_imm(&e->a, X86_CMP, 0, x86_reg(X86_RAX), 0xff);
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, rare);
}

static int is_register(x86_rm rm, unsigned reg) { return !rm.is_memory && rm.reg == reg; }

int hg_x86_quotient(x86_emit *e) {
  const uint32_t *s = e->insn->s;
  unsigned q = hg_x86_scratch(e, 1);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, s[0], c, p, hg_x86_scratch(e, 0));
    x86_rm divisor = hg_x86_source(e, s[1], c, p, hg_x86_scratch(e, 2));
    hg_x86_v(e, X86_vmulps, q, a, hg_x86_source(e, s[2], c, p, hg_x86_scratch(e, 3)));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    check_exponents(e, q, hg_x86_rare_division(e, to, a, divisor)); /* only numbers pass */
    x86_rm reciprocal = hg_x86_source(e, s[2], c, p, hg_x86_scratch(e, 3));
    int is_needed = is_register(divisor, to) || is_register(reciprocal, to);
    unsigned rest = is_needed ? hg_x86_scratch(e, 0) : to;
    if (rest != a) hg_x86_v(e, X86_vmove, rest, 0, x86_reg(a));
    hg_x86_v(e, X86_vfnmadd231ps, rest, q, divisor);
    hg_x86_v(e, X86_vfmadd132ps, rest, q, reciprocal);
    if (rest != to) hg_x86_v(e, X86_vmove, to, 0, x86_reg(rest));
    hg_x86_slow_back(e);
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}
