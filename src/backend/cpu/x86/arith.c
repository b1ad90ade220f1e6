/* arith.c - the table of operations with the code of each; arithmetic that is one instruction, selection, moves. The
 * rest is in float.c, integer.c, dot.c, bits.c, divide.c and compare.c.
 *
 * A NaN may have any payload here: a VECTOR_CANON stands wherever the payload could be seen. */
#include "backend/cpu/x86/x86_arith.h"

/* ---- one instruction --------------------------------------------------------------------------------------------- */

enum { NOT_THERE = X86_NOT_THERE, COMMUTES = 1 };

typedef struct cell {
  int (*write)(x86_emit *e); /* 0: this processor lacks the instruction, so hg_native_help does the operation */
  uint32_t types, help;      /* types that `write` knows; those that are always left to hg_native_help */
  struct {
    uint16_t f32, f64, i32, i64, u32, u64;
  } instruction;
  uint8_t flags;
} cell;

static const cell cells[MACHINE_OP_COUNT];

static unsigned instruction_of(const cell *row, uint8_t type) {
  int is_64 = atlas_bytes((atlas_type)type) == 8;
  switch (atlas_kind((atlas_type)type)) {
  case ATLAS_KIND_FLOAT: return is_64 ? row->instruction.f64 : row->instruction.f32;
  case ATLAS_KIND_SINT: return is_64 ? row->instruction.i64 : row->instruction.i32;
  default: return is_64 ? row->instruction.u64 : row->instruction.u32;
  }
}

static void two_sources(x86_emit *e, unsigned op, int commutes) {
  const vector_insn *insn = e->insn;
  int is_64 = hg_x86_is_64(e, insn->d);
  X86_EACH(e, c, p) {
    x86_rm a = hg_x86_source(e, insn->s[0], c, p, hg_x86_scratch(e, 0));
    x86_rm b = hg_x86_source(e, insn->s[1], c, p, hg_x86_scratch(e, 1));
    if (commutes && a.is_memory) {
      x86_rm other = a;
      a = b;
      b = other;
    }
    unsigned left = hg_x86_rm_reg(e, a, is_64, hg_x86_scratch(e, 0));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, op, to, left, b);
    hg_x86_extend(e, insn->type, to);
    hg_x86_set_result(e, c, p, to);
  }
}

static int binary(x86_emit *e) {
  const cell *row = &cells[hg_machine_op(e->insn->op)];
  unsigned op = instruction_of(row, e->insn->type);
  if (!x86_can_write(e, op)) return 0;
  two_sources(e, op, row->flags & COMMUTES);
  return 1;
}

/* ---- selection, moves -------------------------------------------------------------------------------------------- */

static int select_op(x86_emit *e) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  X86_EACH(e, c, p) {
    unsigned mask_scratch = e->width == 2 ? 1 : hg_x86_scratch(e, 2);
    unsigned mask = hg_x86_predicate(e, e->insn->s[0], c, mask_scratch);
    if (is_64) mask = hg_x86_mask_part(e, mask, p, mask_scratch);
    unsigned no = hg_x86_source_reg(e, e->insn->s[2], c, p, hg_x86_scratch(e, 0));
    x86_rm yes = hg_x86_source(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    if (e->width == 2) hg_x86_vk(e, is_64 ? X86_vpblendmq : X86_vpblendmd, to, no, yes, 0, mask, 0);
    else hg_x86_vi(e, X86_vblendvps, to, no, yes, mask << 4);
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

static int write_move(x86_emit *e) {
  X86_EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0)));
    hg_x86_set_result(e, c, p, from);
  }
  return 1;
}

/* Reinterprets the bits as another type. Only narrow integers are stored in a different form. */
static int bit_cast(x86_emit *e) {
  X86_EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    unsigned to = from;
    if (x86_is_narrow(e->insn->type)) {
      to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
      unsigned bits = atlas_type_bits((atlas_type)e->insn->type);
      int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
      hg_x86_vi(e, X86_vpslld_imm, 0, to, x86_reg(from), 32 - bits);
      hg_x86_vi(e, is_signed ? X86_vpsrad_imm : X86_vpsrld_imm, 0, to, x86_reg(to), 32 - bits);
    }
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

/* ---- what each operation becomes --------------------------------------------------------------------------------- */

static int is_integer(const x86_emit *e) { return atlas_is_integer((atlas_type)e->insn->type); }

static int multiply(x86_emit *e) { return binary(e) || hg_x86_multiply_long(e); }
static int divide(x86_emit *e) {
  if (!is_integer(e)) return binary(e);
  if (hg_x86_is_64(e, e->insn->d)) hg_x86_divide_long(e);
  else if (x86_is_narrow(e->insn->type)) hg_x86_divide_narrow(e);
  else if (e->width == 2) hg_x86_divide(e);
  else hg_x86_divide_avx2(e);
  return 1;
}
static int extreme(x86_emit *e) { return is_integer(e) ? binary(e) || hg_x86_long_extreme(e) : hg_x86_extreme(e); }
static int sign(x86_emit *e) { return is_integer(e) ? hg_x86_integer_sign(e) : hg_x86_sign(e); }
static int absolute(x86_emit *e) { return is_integer(e) ? hg_x86_absolute(e) : hg_x86_clear_sign(e); }
static int negate(x86_emit *e) { return is_integer(e) ? hg_x86_negate(e) : hg_x86_flip_sign(e); }
static int access_memory(x86_emit *e) { return hg_x86_memory(e) || hg_x86_lanes(e); }
static int left_to_help(x86_emit *e) {
  (void)e;
  return 0;
}
/* No fence is needed: a lane's accesses are in order, and workers share no other memory. */
static int no_operation(x86_emit *e) {
  (void)e;
  return 1;
}

/* C code advances the phase, in the group with the grid's lane 0. */
static int advance_phase(x86_emit *e) {
  hg_x86_alu_imm(&e->a, X86_CMP, 1, x86_reg(X86_LANE), 0);
  hg_x86_jump_if(&e->a, X86_EQUAL, hg_x86_slow_path(e, X86_ALL_COPIES));
  hg_x86_slow_back(e);
  return 1;
}

static int and_op(x86_emit *e) { return hg_x86_is_table_index(e) ? write_move(e) : binary(e); }

#define HELP(types) left_to_help, SET_NONE, types
#define FLOATS(row) {row##ps, row##pd, NOT_THERE, NOT_THERE, NOT_THERE, NOT_THERE}
#define BITS(row) {NOT_THERE, NOT_THERE, row##d, row##q, row##d, row##q}
#define EACH_SIGN(row) {NOT_THERE, NOT_THERE, row##sd, row##sq, row##ud, row##uq}
#define CELL_add \
  binary, SET_INT_REAL, 0, {X86_vaddps, X86_vaddpd, X86_vpaddd, X86_vpaddq, X86_vpaddd, X86_vpaddq}, COMMUTES
#define CELL_sub binary, SET_INT_REAL, 0, {X86_vsubps, X86_vsubpd, X86_vpsubd, X86_vpsubq, X86_vpsubd, X86_vpsubq}, 0
#define CELL_mul \
  multiply, SET_INT_REAL, 0, {X86_vmulps, X86_vmulpd, X86_vpmulld, X86_vpmullq, X86_vpmulld, X86_vpmullq}, COMMUTES
#define CELL_mulhi hg_x86_multiply_high, SET_INT, 0
#define CELL_div divide, SET_INT_REAL, 0, FLOATS(X86_vdiv)
#define CELL_rem divide, SET_INT, 0
#define CELL_mad hg_x86_multiply_add, SET_INT, 0
#define CELL_fma hg_x86_fma, SET_REAL, 0
#define CELL_min extreme, SET_INT_REAL, 0, EACH_SIGN(X86_vpmin), COMMUTES
#define CELL_max extreme, SET_INT_REAL, 0, EACH_SIGN(X86_vpmax), COMMUTES
#define CELL_abs absolute, SET_SIGNED, 0
#define CELL_neg negate, SET_NUM, 0
#define CELL_sign sign, SET_SINT_REAL, 0
#define CELL_copysign hg_x86_copy_sign, SET_FLOAT, 0
#define CELL_dot4_ss hg_x86_dot, SET_I32_U32, 0
#define CELL_dot4_uu hg_x86_dot, SET_I32_U32, 0
#define CELL_dot4_us hg_x86_dot, SET_I32_U32, 0
#define CELL_and and_op, SET_INT, 0, BITS(X86_vpand), COMMUTES
#define CELL_or binary, SET_INT, 0, BITS(X86_vpor), COMMUTES
#define CELL_xor binary, SET_INT, 0, BITS(X86_vpxor), COMMUTES
#define CELL_not hg_x86_not, SET_INT, 0
#define CELL_shl hg_x86_shift, SET_INT, 0
#define CELL_shr hg_x86_shift, SET_INT, 0
#define CELL_popc hg_x86_bits, SET_INT, 0
#define CELL_clz hg_x86_bits, SET_INT, 0
#define CELL_ctz hg_x86_bits, SET_INT, 0
#define CELL_brev hg_x86_bits, SET_INT, 0
#define CELL_sqrt hg_x86_square_root, SET_REAL, 0
#define CELL_floor hg_x86_round, SET_REAL, 0
#define CELL_ceil hg_x86_round, SET_REAL, 0
#define CELL_trunc hg_x86_round, SET_REAL, 0
#define CELL_round hg_x86_round, SET_REAL, 0

#define KIND_ARITH(id, types) CELL_##id
#define KIND_COMPARE(id, types) hg_x86_compare, SET_##types, 0
#define KIND_LOGIC(id, types) hg_x86_logic, SET_##types, 0
#define KIND_SELECT(id, types) select_op, SET_##types, 0
#define KIND_CONVERT(id, types) hg_x86_convert, SET_##types, 0
#define KIND_CAST(id, types) bit_cast, SET_##types, 0
#define KIND_PLACE(id, types) hg_x86_coordinate, SET_##types, 0
#define KIND_LOAD(id, types) access_memory, SET_##types, 0
#define KIND_STORE(id, types) access_memory, SET_##types, 0
#define KIND_ATOMIC(id, types) hg_x86_atomic, SET_##types, 0
#define KIND_BLOCK(id, types) HELP(SET_##types)
#define KIND_CLASS(id, types) hg_x86_class, SET_##types, 0
#define KIND_ORDER(id, types) no_operation, SET_##types, 0
#define KIND_PHASE(id, types) advance_phase, SET_##types, 0

#define MACHINE(id, kind, types, narrow) [MACHINE_##id] = {.write = KIND_##kind(id, types)},
static const cell cells[MACHINE_OP_COUNT] = {
#include "compiler/machine_ops.def"
};
#define MACHINE(id, kind, types, narrow) MACHINE_HAS_CELL_OR_HELP(id, SET_##types, KIND_##kind(id, types))
#include "compiler/machine_ops.def"

int hg_x86_operation(x86_emit *e) {
  const cell *c = &cells[hg_machine_op(e->insn->op)];
  int is_help = e->insn->type < ATLAS_TYPE_COUNT && c->help >> e->insn->type & 1;
  return is_help ? 0 : c->write(e);
}

int hg_x86_vector_operation(x86_emit *e) {
  int is_64 = e->insn->type == ATLAS_f64;
  switch (e->insn->op) {
  case VECTOR_MOVE: return write_move(e);
  case VECTOR_CANON: return hg_x86_canonical(e);
  case VECTOR_LESSER: two_sources(e, is_64 ? X86_vminpd : X86_vminps, 0); return 1; /* NaN or equal values give the
                                                                                       second */
  case VECTOR_GREATER: two_sources(e, is_64 ? X86_vmaxpd : X86_vmaxps, 0); return 1;
  case NATIVE_RECIPROCAL: return hg_x86_reciprocal(e);
  case NATIVE_QUOTIENT: return hg_x86_quotient(e);
  default: return 0;
  }
}
