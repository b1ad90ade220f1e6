/* kernel_find.c - the kernel of each instruction. */
#include "atlas/tables.h"
#include "backend/cpu/engine/kernels.h"

/* An operation is two bytes: a group of ops.def (0: the operations of vector.h) and a number, below 32 for all that
 * have kernels. */
enum { GROUPS = 8, NUMBERS = 32 };
#define PLACE(op) [(op) >> 8][(op) & 0xff]

#define ATLAS_OP_VECTOR_AND VECTOR_AND
#define ATLAS_OP_VECTOR_ANDNOT VECTOR_ANDNOT
#define ATLAS_OP_VECTOR_OR VECTOR_OR
#define ATLAS_OP_VECTOR_CANON VECTOR_CANON
#define ATLAS_OP_VECTOR_LESSER VECTOR_LESSER
#define ATLAS_OP_VECTOR_GREATER VECTOR_GREATER

static const uint16_t row_kernels[GROUPS][NUMBERS][ATLAS_TYPE_COUNT] = {
#define KERNEL(shape, op, t) PLACE(ATLAS_OP_##op)[ATLAS_##t] = KERNEL_##op##_##t,
#define KERNEL_W(shape, op, bits)          \
  PLACE(ATLAS_OP_##op)                     \
  [ATLAS_i##bits] = KERNEL_##op##_u##bits, \
 PLACE(ATLAS_OP_##op)[ATLAS_u##bits] = KERNEL_##op##_u##bits,
#define KERNEL_B(shape, op, bits) /* by width */
#define KERNEL_P(shape, op) PLACE(ATLAS_OP_##op)[ATLAS_NONE] = KERNEL_##op,
#define CONVERT(to, from)
#define CONVERT_W(bits, from)
#include "backend/cpu/engine/kernels.def"
#undef KERNEL
#undef KERNEL_W
#undef KERNEL_P
#undef CONVERT
#undef CONVERT_W
};

static const uint16_t conversions[ATLAS_TYPE_COUNT][ATLAS_TYPE_COUNT] = {
#define KERNEL(shape, op, t)
#define KERNEL_W(shape, op, bits)
#define KERNEL_P(shape, op)
#define CONVERT(to, from) [ATLAS_##to][ATLAS_##from] = KERNEL_cvt_##to##_##from,
#define CONVERT_W(bits, from)                                  \
  [ATLAS_i##bits][ATLAS_##from] = KERNEL_cvt_w##bits##_##from, \
  [ATLAS_u##bits][ATLAS_##from] = KERNEL_cvt_w##bits##_##from,
#include "backend/cpu/engine/kernels.def"
};

uint32_t hg_kernel_convert(uint8_t to, uint8_t from) {
  return to < ATLAS_TYPE_COUNT && from < ATLAS_TYPE_COUNT ? conversions[to][from] : KERNEL_NONE;
}

/* Predicates are bytes. */
static uint32_t by_width(uint8_t type, uint32_t of_8, uint32_t of_16, uint32_t of_32, uint32_t of_64) {
  switch (type == SSA_PREDICATE ? 8 : atlas_type_bits((atlas_type)type)) {
  case 8: return of_8;
  case 16: return of_16;
  case 32: return of_32;
  default: return of_64;
  }
}

uint32_t hg_kernel_of(const vector_insn *insn) {
  uint8_t type = atlas_is_comparison(insn->op) ? insn->type2 : insn->type;
  switch (insn->op) {
  case ATLAS_OP_cvt: return hg_kernel_convert(insn->type, insn->type2);
  case ATLAS_OP_bitcast: return by_width(type, KERNEL_mov_8, KERNEL_mov_16, KERNEL_mov_32, KERNEL_mov_64);
  case ATLAS_OP_sel: return by_width(type, KERNEL_sel_8, KERNEL_sel_16, KERNEL_sel_32, KERNEL_sel_64);
  default: break;
  }
  if (type == SSA_PREDICATE) type = ATLAS_NONE;
  if (insn->op >> 8 >= GROUPS || (insn->op & 0xff) >= NUMBERS || type >= ATLAS_TYPE_COUNT) return KERNEL_NONE;
  return row_kernels[insn->op >> 8][insn->op & 0xff][type];
}
