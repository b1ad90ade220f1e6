/* x86_asm.h - writes x86-64 instructions: vector instructions from the rows of x86_asm.def in EVEX or VEX form, and the
 * few general ones that loops, addresses and calls need. */
#ifndef HG_X86_ASM_H
#define HG_X86_ASM_H

#include "base/memory.h"

typedef enum x86_op {
#define X86(id, mnemonic, prefix, map, opcode, w, form, reg, rm, tuple, has) X86_##id,
#include "backend/cpu/x86/x86_asm.def"
#undef X86
  X86_OP_COUNT
} x86_op;

enum { X86_RAX, X86_RCX, X86_RDX, X86_RBX, X86_RSP, X86_RBP, X86_RSI, X86_RDI, X86_R8, X86_R9, X86_R10, X86_R11,
       X86_R12, X86_R13, X86_R14, X86_R15, X86_NO_INDEX = 0xff };

/* The meanings of x86_asm.def's columns; tests print instructions from them. */
enum { X86_P0, X86_P66, X86_PF3, X86_PF2 };
enum { X86_HAS_E = 1, X86_HAS_V = 2, X86_HAS_EV = 3 };
enum { X86_FORM_RVM, X86_FORM_RM, X86_FORM_MR, X86_FORM_RMV, X86_FORM_MVR, /* with an immediate: */ X86_FORM_VMI,
       X86_FORM_RVMI, X86_FORM_RMI, X86_FORM_MRI };
enum { X86_CLASS_V = 16, X86_CLASS_H, X86_CLASS_Q, X86_CLASS_X, X86_CLASS_K, X86_CLASS_G, /* extensions: */
       X86_CLASS_2 = 2, X86_CLASS_4 = 4, X86_CLASS_6 = 6 };
enum { X86_TUPLE_FULL, X86_TUPLE_MEM, X86_TUPLE_HALF, X86_TUPLE_HALF_B, X86_TUPLE_QUARTER, X86_TUPLE_SCALAR,
       X86_TUPLE_NONE };

typedef struct x86_row {
  const char *mnemonic;
  uint8_t prefix, map, opcode, w, form, reg_class, rm_class, tuple, has;
} x86_row;

extern const x86_row hg_x86_rows[X86_OP_COUNT];

/* A register, or [base + index * 2^scale + displacement]. Small enough to be passed by value in a general register. */
typedef struct x86_rm {
  unsigned is_memory : 1;
  unsigned reg : 8;       /* the register, or the base */
  unsigned index : 8;     /* general, or vector for gathers and scatters; X86_NO_INDEX */
  unsigned scale : 2;
  unsigned broadcast : 1; /* one element for all lanes; EVEX only */
  int32_t displacement;
} x86_rm;

static inline x86_rm x86_reg(unsigned reg) { return (x86_rm){.reg = (uint8_t)reg, .index = X86_NO_INDEX}; }
static inline x86_rm x86_at(unsigned base, int32_t displacement) {
  return (x86_rm){1, (uint8_t)base, X86_NO_INDEX, 0, 0, displacement};
}
static inline x86_rm x86_indexed(unsigned base, unsigned index, unsigned scale, int32_t displacement) {
  return (x86_rm){1, (uint8_t)base, (uint8_t)index, scale & 3, 0, displacement};
}

typedef struct x86_vector_insn {
  uint16_t op;      /* x86_op */
  uint8_t width;    /* 0: 128 bits, 1: 256, 2: 512 */
  uint8_t reg, vvvv;/* ModRM.reg and the second register, in the manual's terms; vvvv is 0 if the form has none */
  x86_rm rm;
  uint8_t immediate;
  uint8_t mask;     /* k register; 0: none. EVEX */
  uint8_t is_scalar;/* 1: of the lowest elements only; of the rows up to vfnmadd231ps, in VEX form */
  uint8_t zero;     /* 1: lanes outside the mask become 0, else they keep what the register had */
} x86_vector_insn;

typedef struct x86_label {
  uint32_t place;   /* UINT32_MAX: not yet known */
  uint32_t waiting; /* the last displacement that waits for it */
} x86_label;

typedef struct x86_asm {
  hg_allocator allocator;
  uint8_t *code;
  size_t count, capacity;
  hg_array labels;  /* x86_label */
  x86_vector_insn last; /* the last vector instruction that was written, */
  size_t last_start, last_end; /* and where it is */
  uint8_t evex;     /* 1: rows that have both forms are written as EVEX */
  uint8_t no_memory;/* an allocation failed: the code is not complete */
} x86_asm;

void hg_x86_begin(x86_asm *a, const hg_allocator *allocator, int evex);
void hg_x86_release(x86_asm *a);

void hg_x86_vector(x86_asm *a, const x86_vector_insn *insn);
/* Makes the last instruction write `reg` under the mask, if it wrote `was` in all lanes, with 64- or 32-bit elements,
 * and does not read it. 0: it is unchanged. */
int hg_x86_redirect(x86_asm *a, unsigned was, unsigned reg, unsigned mask, int is_64);

/* Labels are numbers. Jumps have rel32 displacements and may be written before their label is placed. */
uint32_t hg_x86_new_label(x86_asm *a);
void hg_x86_place(x86_asm *a, uint32_t label);
int hg_x86_is_jumped_to(const x86_asm *a, uint32_t label); /* 1 if a jump to it has been written */

typedef enum x86_condition {
  X86_BELOW = 2,
  X86_CARRY = 2,
  X86_ABOVE_EQUAL = 3,
  X86_EQUAL = 4,
  X86_NOT_EQUAL = 5,
  X86_BELOW_EQUAL = 6,
  X86_ABOVE = 7,
  X86_SIGN = 8,
  X86_NO_PARITY = 11,
  X86_LESS = 12,
  X86_GREATER_EQUAL = 13,
  X86_LESS_EQUAL = 14,
  X86_GREATER = 15
} x86_condition;
void hg_x86_jump(x86_asm *a, uint32_t label);
void hg_x86_jump_if(x86_asm *a, x86_condition condition, uint32_t label);
void hg_x86_call(x86_asm *a, uint32_t label);
void hg_x86_lea_label(x86_asm *a, unsigned reg, uint32_t label);

typedef enum x86_alu { X86_ADD = 0, X86_OR = 1, X86_AND = 4, X86_SUB = 5, X86_XOR = 6, X86_CMP = 7,
               X86_SBB = 3 } x86_alu;
void hg_x86_alu_rm(x86_asm *a, x86_alu op, int w, unsigned reg, x86_rm rm);       /* reg = reg op rm */
void hg_x86_alu_imm(x86_asm *a, x86_alu op, int w, x86_rm rm, int32_t immediate); /* rm = rm op immediate */

void hg_x86_divide_by(x86_asm *a, int w, x86_rm rm); /* unsigned: rdx:rax / rm = rax, the rest in rdx */
void hg_x86_multiply(x86_asm *a, int w, unsigned reg, x86_rm rm);                 /* reg = reg * rm, the low half */
void hg_x86_load(x86_asm *a, int w, unsigned reg, x86_rm rm);  /* w: 1 for 64 bits; 32 bits clear the upper half */
void hg_x86_store(x86_asm *a, int w, x86_rm rm, unsigned reg);
void hg_x86_load_sign32(x86_asm *a, unsigned reg, x86_rm rm);  /* 32 bits to 64 */
void hg_x86_load_narrow(x86_asm *a, unsigned bytes, int is_signed, unsigned reg,
                        x86_rm rm); /* 1 or 2 bytes to 32 bits */
void hg_x86_store_narrow(x86_asm *a, unsigned bytes, x86_rm rm, unsigned reg); /* 1 to 8 bytes of rax to rbx */
void hg_x86_move_imm(x86_asm *a, unsigned reg, uint32_t value);
void hg_x86_move_imm64(x86_asm *a, unsigned reg, uint64_t value);
void hg_x86_lea(x86_asm *a, unsigned reg, x86_rm rm);
void hg_x86_lea32(x86_asm *a, unsigned reg, x86_rm rm); /* 32 bits of it, zero-extended */
typedef enum x86_shift { X86_SHL = 4, X86_SHR = 5, X86_SAR = 7 } x86_shift;
void hg_x86_shift_imm(x86_asm *a, int w, x86_shift op, unsigned reg, unsigned count);
void hg_x86_shift_cl(x86_asm *a, int w, x86_shift op, unsigned reg); /* by cl, modulo the bits */
void hg_x86_test(x86_asm *a, int w, unsigned reg, unsigned other);
void hg_x86_tzcnt(x86_asm *a, int w, unsigned reg, x86_rm rm);
void hg_x86_lzcnt(x86_asm *a, int w, unsigned reg, x86_rm rm);
void hg_x86_bzhi(x86_asm *a, int w, unsigned reg, x86_rm rm, unsigned count);
void hg_x86_blsr(x86_asm *a, int w, unsigned reg, x86_rm rm); /* reg = rm without its lowest set bit */
void hg_x86_popcnt(x86_asm *a, int w, unsigned reg, x86_rm rm);
void hg_x86_move_if(x86_asm *a, x86_condition condition, int w, unsigned reg, x86_rm rm);
void hg_x86_exchange(x86_asm *a, unsigned reg, unsigned other);
void hg_x86_exchange_memory(x86_asm *a, int w, x86_rm rm, unsigned reg); /* always atomic */
/* On memory; atomic after hg_x86_lock. compare: if rm equals rax it gets reg, else rax gets rm; the zero flag tells
 * which. add_fetch: rm + reg, and reg gets the old rm. */
void hg_x86_alu_store(x86_asm *a, x86_alu op, int w, x86_rm rm, unsigned reg); /* rm = rm op reg */
void hg_x86_compare_exchange(x86_asm *a, int w, x86_rm rm, unsigned reg);
void hg_x86_add_fetch(x86_asm *a, int w, x86_rm rm, unsigned reg);
void hg_x86_lock(x86_asm *a);
void hg_x86_push(x86_asm *a, unsigned reg);
void hg_x86_pop(x86_asm *a, unsigned reg);
void hg_x86_call_rm(x86_asm *a, x86_rm rm);
void hg_x86_return(x86_asm *a);
void hg_x86_vzeroupper(x86_asm *a);
void hg_x86_prefetch(x86_asm *a, unsigned level, x86_rm rm); /* to the cache of level 1 to 3, and to those below it */
void hg_x86_prefetch_to_write(x86_asm *a, x86_rm rm);        /* to level 1, for writing by this processor */
void hg_x86_align(x86_asm *a, unsigned alignment, uint8_t filler);
void hg_x86_bytes(x86_asm *a, const void *bytes, size_t count);

#endif
