/* arith.c - the code of each operation: arithmetic, logic, shifts and bit counts.
 *
 * Most operations have the same code for each vector of a value. A `piece_writer` writes it for one vector; d may be
 * the register of a source, and scratch 4 and 5 are free. */
#include "atlas/tables.h"
#include "atlas/value.h"
#include "backend/cpu/arm64/emit_neon.h"
#include "compiler/machine_ops.h"

#include <stddef.h>

typedef struct piece {
  unsigned d, s[3]; /* vector registers */
  unsigned size;    /* A64_32B, A64_64B */
  uint32_t copy, part;
  uint8_t type;
} piece;

typedef void (*piece_writer)(neon_emit *e, const piece *p);

static int is_signed(uint8_t type) { return atlas_kind((atlas_type)type) == ATLAS_KIND_SINT; }
static unsigned bits_of(uint8_t type) { return atlas_type_bits((atlas_type)type); }
static unsigned temporary(const neon_emit *e) { return hg_neon_scratch(e, 4); }
static unsigned temporary2(const neon_emit *e) { return hg_neon_scratch(e, 5); }

/* ---- one instruction each ---------------------------------------------------------------------------------------- */

typedef struct cell {
  int (*write)(neon_emit *e);                         /* 0: left to hg_native_help */
  uint32_t types, help;                               /* types that `write` handles; types that are always left to
                                                         hg_native_help */
  piece_writer up_to_32, of_64, real, half;           /* of `arithmetic`: integers of those widths, floats */
  a64_op signed_integer, unsigned_integer, of_floats; /* of write_simple */
  uint8_t keeps_narrow;                               /* extended sources give an extended result */
} cell;

static const cell cells[MACHINE_OP_COUNT];

static void write_simple(neon_emit *e, const piece *p) {
  const cell *c = &cells[hg_machine_op(e->insn->op)];
  int is_float = !atlas_is_integer((atlas_type)p->type);
  a64_op op = is_float ? c->of_floats : is_signed(p->type) ? c->signed_integer : c->unsigned_integer;
  hg_a64(&e->a, op, p->size, p->d, p->s[0], p->s[1]);
  if (!is_float && !c->keeps_narrow) hg_neon_narrow(e, p->type, p->d);
}

/* ---- element by element: what vectors cannot do ------------------------------------------------------------------ */

/* x0 = x0 op x1 (+ x2). */
static void general_op(neon_emit *e, uint8_t type) {
  a64_asm *a = &e->a;
  a64_op divide = is_signed(type) ? A64_sdiv : A64_udiv; /* x / 0 is 0; the least integer / -1 is itself */
  switch (e->insn->op) {
  case ATLAS_OP_mul: hg_a64(a, A64_mul_x, 0, 0, 0, 1); break;
  case ATLAS_OP_mad: hg_a64_madd(a, 0, 0, 1, 2); break;
  case ATLAS_OP_mulhi: hg_a64(a, is_signed(type) ? A64_smulh : A64_umulh, 0, 0, 0, 1); break;
  case ATLAS_OP_div: hg_a64(a, divide, 0, 0, 0, 1); break;
  case ATLAS_OP_rem:
    hg_a64(a, divide, 0, 2, 0, 1);
    hg_a64_msub(a, 0, 2, 1, 0);
    break;
  case ATLAS_OP_ctz: hg_a64(a, A64_rbit_x, 0, 0, 0, 0); /* fall through */
  case ATLAS_OP_clz: hg_a64(a, A64_clz_x, 0, 0, 0, 0); break;
  default: break; /* only these operations have write_elements in their cell */
  }
}

static void write_elements(neon_emit *e, const piece *p) {
  unsigned count = 2, last = p->size == A64_64B ? 2 : 4, result = temporary(e);
  if (e->insn->op == ATLAS_OP_mad) count = 3;
  if (e->insn->op == ATLAS_OP_clz || e->insn->op == ATLAS_OP_ctz) count = 1;
  for (unsigned i = 0; i < last; i++) {
    for (unsigned k = 0; k < count; k++)
      if (is_signed(p->type)) hg_a64_extract_signed(&e->a, p->size, k, p->s[k], i);
      else hg_a64_extract(&e->a, p->size, k, p->s[k], i);
    general_op(e, p->type);
    hg_a64_insert(&e->a, p->size, result, i, 0);
  }
  hg_a64_move_vector(&e->a, p->d, result);
  hg_neon_narrow(e, p->type, p->d);
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

static void write_mad(neon_emit *e, const piece *p) {
  hg_a64(&e->a, A64_mul, p->size, temporary(e), p->s[0], p->s[1]);
  hg_a64(&e->a, A64_add, p->size, p->d, temporary(e), p->s[2]);
  hg_neon_narrow(e, p->type, p->d);
}

static void write_mulhi(neon_emit *e, const piece *p) {
  unsigned low = temporary(e), high = temporary2(e), bits = bits_of(p->type);
  int sign = is_signed(p->type);
  if (bits < 32) { /* the product fits */
    hg_a64(&e->a, A64_mul, p->size, p->d, p->s[0], p->s[1]);
    hg_a64_shift(&e->a, sign ? A64_sshr : A64_ushr, p->size, p->d, p->d, bits);
    return;
  }
  hg_a64(&e->a, sign ? A64_smull : A64_umull, p->size, low, p->s[0], p->s[1]);
  hg_a64(&e->a, sign ? A64_smull2 : A64_umull2, p->size, high, p->s[0], p->s[1]);
  hg_a64(&e->a, A64_uzp2, p->size, p->d, low, high);
}

/* these in each byte */
enum { BYTES_64 = 0x40404040 };
#define BYTES_128 UINT64_C(0x80808080)

static unsigned bytes_of_128(neon_emit *e, unsigned to) {
  hg_a64_constant(&e->a, A64_32B, to, BYTES_128);
  return to;
}

/* c + the products, by SDOT and UDOT, whose bytes have one sign. u8 by i8: u - 128 is an i8 (u ^ 128), and 128 times
 * the other factor is added as twice 64 times it. */
static void write_dot_at_once(neon_emit *e, const piece *p) {
  unsigned sum = p->d == p->s[0] || p->d == p->s[1] ? temporary(e) : p->d, first = p->s[0];
  hg_a64_move_vector(&e->a, sum, p->s[2]);
  if (e->insn->op == ATLAS_OP_dot4_us) {
    first = temporary2(e);
    hg_a64_constant(&e->a, A64_32B, first, BYTES_64);
    hg_a64(&e->a, A64_sdot, 0, sum, first, p->s[1]);
    hg_a64(&e->a, A64_sdot, 0, sum, first, p->s[1]);
    hg_a64(&e->a, A64_eor, 0, first, p->s[0], bytes_of_128(e, first));
  }
  hg_a64(&e->a, e->insn->op == ATLAS_OP_dot4_uu ? A64_udot : A64_sdot, 0, sum, first, p->s[1]);
  hg_a64_move_vector(&e->a, p->d, sum);
}

/* Products of 16 bits, added in pairs twice. */
static void write_dot(neon_emit *e, const piece *p) {
  int is_unsigned = e->insn->op == ATLAS_OP_dot4_uu, is_mixed = e->insn->op == ATLAS_OP_dot4_us;
  unsigned low = temporary(e), high = temporary2(e), first = p->s[0];
  a64_op add_pairs = is_unsigned ? A64_uaddlp : A64_saddlp;
  if (e->has_dot) {
    write_dot_at_once(e, p);
    return;
  }
  if (is_mixed) {
    hg_a64(&e->a, A64_eor, 0, low, p->s[0], bytes_of_128(e, low));
    first = low;
  }
  hg_a64(&e->a, is_unsigned ? A64_umull2 : A64_smull2, A64_8B, high, first, p->s[1]);
  hg_a64(&e->a, is_unsigned ? A64_umull : A64_smull, A64_8B, low, first, p->s[1]);
  hg_a64(&e->a, add_pairs, A64_16B, low, low, 0);
  hg_a64(&e->a, add_pairs, A64_16B, high, high, 0);
  hg_a64(&e->a, A64_addp, A64_32B, low, low, high);
  if (is_mixed) {
    hg_a64(&e->a, A64_saddlp, A64_8B, high, p->s[1], 0);
    hg_a64(&e->a, A64_saddlp, A64_16B, high, high, 0);
    hg_a64_shift(&e->a, A64_shl, A64_32B, high, high, 7);
    hg_a64(&e->a, A64_add, A64_32B, low, low, high);
  }
  hg_a64(&e->a, A64_add, A64_32B, p->d, low, p->s[2]);
}

/* For 64-bit elements, which have no such instruction. */
static void write_min_max(neon_emit *e, const piece *p) {
  unsigned mask = temporary(e);
  int is_min = e->insn->op == ATLAS_OP_min;
  hg_a64(&e->a, is_signed(p->type) ? A64_cmgt : A64_cmhi, p->size, mask, p->s[is_min], p->s[!is_min]);
  hg_a64(&e->a, A64_bsl, 0, mask, p->s[0], p->s[1]);
  hg_a64_move_vector(&e->a, p->d, mask);
}

/* A comparison gives -1 for true. */
static void write_sign(neon_emit *e, const piece *p) {
  hg_a64(&e->a, A64_cmgt0, p->size, temporary(e), p->s[0], 0);
  hg_a64(&e->a, A64_cmlt0, p->size, p->d, p->s[0], 0);
  hg_a64(&e->a, A64_sub, p->size, p->d, p->d, temporary(e));
}

/* ---- shifts ------------------------------------------------------------------------------------------------------ */

static void write_constant_shift(neon_emit *e, const piece *p, unsigned count) {
  a64_op right = is_signed(p->type) ? A64_sshr : A64_ushr;
  if (count == 0) hg_a64_move_vector(&e->a, p->d, p->s[0]);
  else hg_a64_shift(&e->a, e->insn->op == ATLAS_OP_shl ? A64_shl : right, p->size, p->d, p->s[0], count);
}

/* Counts are 32-bit elements. A right shift is a left shift by a negative count. */
static void write_shift(neon_emit *e, const piece *p) {
  uint64_t bits;
  unsigned count = temporary(e), width = bits_of(p->type);
  int is_left = e->insn->op == ATLAS_OP_shl;
  if (hg_neon_constant_bits(e, e->insn->s[1], &bits)) write_constant_shift(e, p, (unsigned)bits & (width - 1));
  else {
    hg_a64_constant(&e->a, A64_32B, count, width - 1);
    hg_a64(&e->a, A64_and, 0, count, count, p->s[1]);
    if (p->size == A64_64B) hg_a64_shift(&e->a, p->part == 0 ? A64_ushll : A64_ushll2, A64_32B, count, count, 0);
    if (!is_left) hg_a64(&e->a, A64_neg, p->size, count, count, 0);
    hg_a64(&e->a, is_signed(p->type) ? A64_sshl : A64_ushl, p->size, p->d, p->s[0], count);
  }
  if (is_left) hg_neon_narrow(e, p->type, p->d);
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

/* The bits of a narrow type, zero-extended whatever its sign. */
static unsigned zero_extended(neon_emit *e, const piece *p, unsigned to) {
  if (!is_signed(p->type) || bits_of(p->type) >= 32) return p->s[0];
  hg_a64_constant(&e->a, A64_32B, to, (UINT64_C(1) << bits_of(p->type)) - 1);
  hg_a64(&e->a, A64_and, 0, to, to, p->s[0]);
  return to;
}

static void write_popc(neon_emit *e, const piece *p) {
  unsigned from = zero_extended(e, p, temporary(e));
  hg_a64(&e->a, A64_cnt, 0, p->d, from, 0);
  for (unsigned size = A64_8B; size < p->size; size++) hg_a64(&e->a, A64_uaddlp, size, p->d, p->d, 0);
}

static void write_clz(neon_emit *e, const piece *p) {
  unsigned from = zero_extended(e, p, temporary(e)), extra = 32 - bits_of(p->type);
  hg_a64(&e->a, A64_clz, p->size, p->d, from, 0);
  if (extra == 0) return;
  hg_a64_constant(&e->a, A64_32B, temporary(e), extra);
  hg_a64(&e->a, A64_sub, p->size, p->d, p->d, temporary(e));
}

static void reverse(neon_emit *e, unsigned d, unsigned from, unsigned size) {
  hg_a64(&e->a, A64_rbit, 0, d, from, 0);
  hg_a64(&e->a, size == A64_64B ? A64_rev64 : A64_rev32, A64_8B, d, d, 0);
}

/* A bit set above a narrow type ends the count. */
static void write_ctz(neon_emit *e, const piece *p) {
  unsigned from = p->s[0];
  if (bits_of(p->type) < 32) {
    hg_a64_constant(&e->a, A64_32B, temporary(e), UINT64_C(1) << bits_of(p->type));
    hg_a64(&e->a, A64_orr, 0, temporary(e), temporary(e), from);
    from = temporary(e);
  }
  reverse(e, p->d, from, p->size);
  hg_a64(&e->a, A64_clz, p->size, p->d, p->d, 0);
}

static void write_brev(neon_emit *e, const piece *p) {
  reverse(e, p->d, p->s[0], p->size);
  if (bits_of(p->type) < 32)
    hg_a64_shift(&e->a, is_signed(p->type) ? A64_sshr : A64_ushr, p->size, p->d, p->d, 32 - bits_of(p->type));
}

/* ---- floats ------------------------------------------------------------------------------------------------------ */

static uint64_t one_of(unsigned size) { return size == A64_64B ? UINT64_C(0x3ff0000000000000) : 0x3f800000; }

static void write_fma(neon_emit *e, const piece *p) {
  unsigned sum = p->d == p->s[0] || p->d == p->s[1] ? temporary(e) : p->d;
  if (p->d == p->s[2]) sum = p->d;
  hg_a64_move_vector(&e->a, sum, p->s[2]);
  hg_a64(&e->a, A64_fmla, p->size, sum, p->s[0], p->s[1]);
  hg_a64_move_vector(&e->a, p->d, sum);
}

/* (a > 0 ? 1 : +0) - (a < 0 ? 1 : +0), and a NaN as it is: x - x is +0. */
static void write_float_sign(neon_emit *e, const piece *p) {
  unsigned above = temporary(e), below = temporary2(e), one = hg_neon_scratch(e, 2), is_number = hg_neon_scratch(e, 1);
  hg_a64_constant(&e->a, p->size, one, one_of(p->size));
  hg_a64(&e->a, A64_fcmgt0, p->size, above, p->s[0], 0);
  hg_a64(&e->a, A64_fcmlt0, p->size, below, p->s[0], 0);
  hg_a64(&e->a, A64_and, 0, above, above, one);
  hg_a64(&e->a, A64_and, 0, below, below, one);
  hg_a64(&e->a, A64_fsub, p->size, above, above, below);
  hg_a64(&e->a, A64_fcmeq, p->size, is_number, p->s[0], p->s[0]);
  hg_a64(&e->a, A64_bsl, 0, is_number, above, p->s[0]);
  hg_a64_move_vector(&e->a, p->d, is_number);
}

/* The sign bit of a 16- to 64-bit type, in each element. */
static unsigned sign_bits(neon_emit *e, const piece *p) {
  hg_a64_constant(&e->a, p->size, temporary(e), UINT64_C(1) << (bits_of(p->type) - 1));
  return temporary(e);
}

static void write_copysign(neon_emit *e, const piece *p) {
  unsigned mask = sign_bits(e, p);
  hg_a64(&e->a, A64_bsl, 0, mask, p->s[1], p->s[0]);
  hg_a64_move_vector(&e->a, p->d, mask);
}

static void write_half_neg(neon_emit *e, const piece *p) {
  hg_a64(&e->a, A64_eor, 0, p->d, p->s[0], sign_bits(e, p));
}

static void write_half_abs(neon_emit *e, const piece *p) {
  hg_a64(&e->a, A64_bic, 0, p->d, p->s[0], sign_bits(e, p));
}

/* For f16 and bf16, by bits: the magnitude of a NaN is above that of infinity. */
static void write_half_canon(neon_emit *e, const piece *p) {
  unsigned nan = temporary(e), is_number = temporary2(e), magnitude = hg_neon_scratch(e, 1);
  uint64_t infinity = p->type == ATLAS_f16 ? 0x7c00 : 0x7f80;
  hg_a64_shift(&e->a, A64_shl, A64_32B, magnitude, p->s[0], 17);
  hg_a64_constant(&e->a, A64_32B, is_number, infinity << 17);
  hg_a64(&e->a, A64_cmhs, A64_32B, is_number, is_number, magnitude);
  hg_a64_constant(&e->a, A64_32B, nan, atlas_canonical_nan((atlas_type)p->type));
  hg_a64_move_vector(&e->a, p->d, p->s[0]);
  hg_a64(&e->a, A64_bif, 0, p->d, nan, is_number);
}

/* Not fminnm or fmaxnm, which do not treat a signalling NaN as missing. */
static void write_lesser_or_greater(neon_emit *e, const piece *p) {
  unsigned takes_first = temporary2(e), first = e->insn->op == VECTOR_LESSER;
  hg_a64(&e->a, A64_fcmgt, p->size, takes_first, p->s[first], p->s[!first]);
  if (p->d == p->s[1]) hg_a64(&e->a, A64_bit, 0, p->d, p->s[0], takes_first);
  else {
    hg_a64_move_vector(&e->a, p->d, p->s[0]);
    hg_a64(&e->a, A64_bif, 0, p->d, p->s[1], takes_first);
  }
}

static void write_canon(neon_emit *e, const piece *p) {
  uint32_t which = hg_neon_nan(e->b->vector, p->type);
  unsigned is_number = temporary2(e), nan = e->kept_in[which] != 0 ? e->kept_in[which] - 1u : temporary(e);
  if (nan == temporary(e)) hg_neon_invariant(e, which, nan);
  hg_a64(&e->a, A64_fcmeq, p->size, is_number, p->s[0], p->s[0]);
  hg_a64_move_vector(&e->a, p->d, p->s[0]);
  hg_a64(&e->a, A64_bif, 0, p->d, nan, is_number);
}

/* ---- what each operation becomes --------------------------------------------------------------------------------- */

static void write_pieces(neon_emit *e, piece_writer write) {
  const vector_insn *insn = e->insn;
  for (uint32_t c = 0; c < hg_neon_copies(e, insn->d); c++)
    for (uint32_t part = 0; part < hg_neon_parts(e, insn->d); part++) {
      piece p = {.size = hg_neon_size(e, insn->d), .copy = c, .part = part, .type = insn->type};
      for (unsigned k = 0; k < 3; k++)
        if (insn->s[k] != VECTOR_NONE) p.s[k] = hg_neon_source(e, insn->s[k], c, part, hg_neon_scratch(e, k));
      p.d = hg_neon_result_register(e, c, part);
      write(e, &p);
      hg_neon_set_result(e, c, part, p.d);
    }
}

static int arithmetic(neon_emit *e) {
  const cell *c = &cells[hg_machine_op(e->insn->op)];
  int is_float = !atlas_is_integer((atlas_type)e->insn->type);
  unsigned bits = bits_of(e->insn->type);
  if (is_float) write_pieces(e, bits == 16 ? c->half : c->real);
  else write_pieces(e, bits == 64 ? c->of_64 : c->up_to_32);
  return 1;
}

static int left_to_help(neon_emit *e) {
  (void)e;
  return 0;
}

/* A lane's accesses are in order, and workers do not synchronise within a launch. */
static int no_operation(neon_emit *e) {
  (void)e;
  return 1;
}

/* The group that contains the grid's lane 0 calls C. */
static int advance_phase(neon_emit *e) {
  hg_a64_jump_zero(&e->a, NEON_LANE, hg_neon_slow_path(e, NEON_ALL_COPIES));
  hg_neon_slow_back(e);
  return 1;
}

#define HELP(types) left_to_help, SET_NONE, types
#define BOTH(up_to_32, of_64, real) arithmetic, SET_INT_REAL, 0, up_to_32, of_64, real, NULL
#define INTEGER(up_to_32, of_64) arithmetic, SET_INT, 0, up_to_32, of_64, NULL, NULL
#define REAL(real) arithmetic, SET_REAL, 0, NULL, NULL, real, NULL
#define ALL_SIMPLE BOTH(write_simple, write_simple, write_simple)
#define INTEGER_SIMPLE INTEGER(write_simple, write_simple)
#define REAL_SIMPLE(op) REAL(write_simple), A64_OP_COUNT, A64_OP_COUNT, op
#define CELL_add ALL_SIMPLE, A64_add, A64_add, A64_fadd
#define CELL_sub ALL_SIMPLE, A64_sub, A64_sub, A64_fsub
#define CELL_mul BOTH(write_simple, write_elements, write_simple), A64_mul, A64_mul, A64_fmul
#define CELL_mulhi INTEGER(write_mulhi, write_elements)
#define CELL_div BOTH(write_elements, write_elements, write_simple), A64_OP_COUNT, A64_OP_COUNT, A64_fdiv
#define CELL_rem INTEGER(write_elements, write_elements)
#define CELL_mad INTEGER(write_mad, write_elements)
#define CELL_fma REAL(write_fma)
#define CELL_min BOTH(write_simple, write_min_max, write_simple), A64_smin, A64_umin, A64_fmin, 1
#define CELL_max BOTH(write_simple, write_min_max, write_simple), A64_smax, A64_umax, A64_fmax, 1
#define CELL_abs \
  arithmetic, SET_SIGNED, 0, write_simple, write_simple, write_simple, write_half_abs, A64_abs, A64_OP_COUNT, A64_fabs
#define CELL_neg \
  arithmetic, SET_NUM, 0, write_simple, write_simple, write_simple, write_half_neg, A64_neg, A64_neg, A64_fneg
#define CELL_sign arithmetic, SET_SINT_REAL, 0, write_sign, write_sign, write_float_sign, NULL
#define CELL_copysign arithmetic, SET_FLOAT, 0, NULL, NULL, write_copysign, write_copysign
#define CELL_dot4_ss arithmetic, SET_I32_U32, 0, write_dot
#define CELL_dot4_uu arithmetic, SET_I32_U32, 0, write_dot
#define CELL_dot4_us arithmetic, SET_I32_U32, 0, write_dot
#define CELL_and INTEGER_SIMPLE, A64_and, A64_and, A64_OP_COUNT, 1
#define CELL_or INTEGER_SIMPLE, A64_orr, A64_orr, A64_OP_COUNT, 1
#define CELL_xor INTEGER_SIMPLE, A64_eor, A64_eor, A64_OP_COUNT, 1
#define CELL_not INTEGER_SIMPLE, A64_not, A64_not, A64_OP_COUNT
#define CELL_shl INTEGER(write_shift, write_shift)
#define CELL_shr INTEGER(write_shift, write_shift)
#define CELL_popc INTEGER(write_popc, write_popc)
#define CELL_clz INTEGER(write_clz, write_elements)
#define CELL_ctz INTEGER(write_ctz, write_elements)
#define CELL_brev INTEGER(write_brev, write_brev)
#define CELL_sqrt REAL_SIMPLE(A64_fsqrt)
#define CELL_floor REAL_SIMPLE(A64_frintm)
#define CELL_ceil REAL_SIMPLE(A64_frintp)
#define CELL_trunc REAL_SIMPLE(A64_frintz)
#define CELL_round REAL_SIMPLE(A64_frintn)

#define KIND_ARITH(id, types) CELL_##id
#define KIND_COMPARE(id, types) hg_neon_compare, SET_##types, 0
#define KIND_LOGIC(id, types) hg_neon_logic, SET_##types, 0
#define KIND_SELECT(id, types) hg_neon_select, SET_##types, 0
#define KIND_CONVERT(id, types) hg_neon_convert, SET_##types, 0
#define KIND_CAST(id, types) hg_neon_bitcast, SET_##types, 0
#define KIND_PLACE(id, types) hg_neon_coordinate, SET_##types, 0
#define KIND_LOAD(id, types) hg_neon_memory, SET_##types, 0
#define KIND_STORE(id, types) hg_neon_memory, SET_##types, 0
#define KIND_ATOMIC(id, types) hg_neon_memory, SET_##types, 0
#define KIND_BLOCK(id, types) HELP(SET_##types)
#define KIND_CLASS(id, types) HELP(SET_##types)
#define KIND_ORDER(id, types) no_operation, SET_##types, 0
#define KIND_PHASE(id, types) advance_phase, SET_##types, 0

#define MACHINE(id, kind, types, narrow) [MACHINE_##id] = {.write = KIND_##kind(id, types)},
static const cell cells[MACHINE_OP_COUNT] = {
#include "compiler/machine_ops.def"
};
#define MACHINE(id, kind, types, narrow) MACHINE_HAS_CELL_OR_HELP(id, SET_##types, KIND_##kind(id, types))
#include "compiler/machine_ops.def"

int hg_neon_operation(neon_emit *e) {
  const cell *c = &cells[hg_machine_op(e->insn->op)];
  int is_help = e->insn->type < ATLAS_TYPE_COUNT && c->help >> e->insn->type & 1;
  return is_help ? 0 : c->write(e);
}

int hg_neon_vector_operation(neon_emit *e) {
  switch (e->insn->op) {
  case VECTOR_CANON: write_pieces(e, bits_of(e->insn->type) == 16 ? write_half_canon : write_canon); return 1;
  case VECTOR_LESSER:
  case VECTOR_GREATER: write_pieces(e, write_lesser_or_greater); return 1;
  default: return 0;
  }
}
