/* arm64_asm.h - writes A64 instructions: those of arm64_asm.def, and a few general ones for loops, addresses and calls.
 * Code is a list of words, placed at any multiple of 16. */
#ifndef HG_ARM64_ASM_H
#define HG_ARM64_ASM_H

#include "base/memory.h"

typedef enum a64_op {
#define A64(id, mnemonic, word, form) A64_##id,
#include "backend/cpu/arm64/arm64_asm.def"
#undef A64
  A64_OP_COUNT
} a64_op;

typedef enum a64_memory_op {
#define A64_MEMORY(id, mnemonic, word, log2) A64_##id,
#include "backend/cpu/arm64/arm64_memory.def"
#undef A64_MEMORY
  A64_MEMORY_OP_COUNT
} a64_memory_op;

enum { A64_X16 = 16, A64_FP = 29, A64_LR = 30, A64_SP = 31, A64_ZR = 31 }; /* 31 is SP or ZR, by instruction */
enum { A64_8B, A64_16B, A64_32B, A64_64B };                                /* sizes: log2 of an element's bytes */

typedef enum a64_condition {
  A64_EQ, A64_NE, A64_HS, A64_LO, A64_MI, A64_PL, A64_VS, A64_VC, A64_HI, A64_LS, A64_GE, A64_LT, A64_GT, A64_LE
} a64_condition;

typedef struct a64_literal {
  uint64_t bits[2];
} a64_literal;

typedef struct a64_asm {
  hg_allocator allocator;
  uint32_t *words;
  size_t count, capacity;
  hg_array labels;   /* uint32_t: the word that a label stands before; UINT32_MAX: not placed yet */
  hg_array fixups;   /* words that name a label, or a literal */
  hg_array literals; /* a64_literal */
  uint8_t no_memory; /* an allocation failed: the code is incomplete */
  uint8_t too_far;   /* a branch or literal is out of reach (1 MiB, 32 KiB for bit tests): the code is wrong */
} a64_asm;

void hg_a64_begin(a64_asm *a, const hg_allocator *allocator);
void hg_a64_finish(a64_asm *a); /* places the literals after the code and resolves labels */
void hg_a64_release(a64_asm *a);

/* ---- rows of the tables ------------------------------------------------------------------------------------------ */

void hg_a64(a64_asm *a, a64_op op, unsigned size, unsigned d, unsigned n, unsigned m); /* m: 0 if it has none */
void hg_a64_shift(a64_asm *a, a64_op op, unsigned size, unsigned d, unsigned n, unsigned count);

/* Any offset. Changes X16 if the instruction cannot encode the offset. */
void hg_a64_memory(a64_asm *a, a64_memory_op op, unsigned t, unsigned base, int64_t offset);
/* [base + (index << log2 of the access size)], or [base + index] */
void hg_a64_indexed(a64_asm *a, a64_memory_op op, unsigned t, unsigned base, unsigned index, int is_scaled);

/* Exclusive access to the word, or 64 bits, at [base]. The store happens, with 0 in w `failed`, if nothing wrote there
 * since the load. */
void hg_a64_load_exclusive(a64_asm *a, int is_64, unsigned t, unsigned base);
void hg_a64_store_exclusive(a64_asm *a, int is_64, unsigned failed, unsigned t, unsigned base);

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

void hg_a64_move_vector(a64_asm *a, unsigned d, unsigned n);
void hg_a64_dup(a64_asm *a, unsigned size, unsigned d, unsigned general);                /* to all elements */
void hg_a64_dup_lane(a64_asm *a, unsigned size, unsigned d, unsigned n, unsigned lane);
void hg_a64_insert(a64_asm *a, unsigned size, unsigned d, unsigned lane, unsigned general);
void hg_a64_insert_lane(a64_asm *a, unsigned size, unsigned d, unsigned lane, unsigned n, unsigned from);
void hg_a64_extract(a64_asm *a, unsigned size, unsigned general, unsigned n, unsigned lane); /* zero-extended */
void hg_a64_extract_signed(a64_asm *a, unsigned size, unsigned general, unsigned n, unsigned lane);
void hg_a64_load_lane(a64_asm *a, unsigned size, unsigned d, unsigned lane,
                      unsigned base); /* ld1 {d.T}[lane], [base] */
void hg_a64_store_lane(a64_asm *a, unsigned size, unsigned d, unsigned lane, unsigned base);
void hg_a64_load_all(a64_asm *a, unsigned size, unsigned d, unsigned base); /* ld1r */
void hg_a64_fcvtl(a64_asm *a, unsigned to, int upper, unsigned d,
                  unsigned n); /* f32 or f64 (size 2, 3) from half its size */
void hg_a64_fcvtn(a64_asm *a, unsigned to, int upper, unsigned d, unsigned n); /* f16 or f32 (size 1, 2) */
void hg_a64_fcvtxn(a64_asm *a, int upper, unsigned d, unsigned n); /* f64 to f32, to odd: may be rounded again */
void hg_a64_to_float(a64_asm *a, int is_signed, unsigned d, unsigned x); /* scalar f32 from 64 bits */

/* All elements get `bits`: one or two instructions or, if neither can, a literal. */
void hg_a64_constant(a64_asm *a, unsigned size, unsigned d, uint64_t bits);
void hg_a64_constant_vector(a64_asm *a, unsigned d, const uint64_t bits[2]);

/* ---- general registers ------------------------------------------------------------------------------------------- */

void hg_a64_move(a64_asm *a, unsigned d, unsigned n); /* not SP */
void hg_a64_move_imm(a64_asm *a, unsigned d, uint64_t value);
void hg_a64_add_imm(a64_asm *a, unsigned d, unsigned n, int64_t value); /* any value; may change X16; SP allowed */
void hg_a64_compare_imm(a64_asm *a, unsigned n, uint32_t value);        /* below 4096 */
void hg_a64_add_shifted(a64_asm *a, unsigned d, unsigned n, unsigned m, unsigned shift); /* d = n + (m << shift) */
void hg_a64_madd(a64_asm *a, unsigned d, unsigned n, unsigned m, unsigned add); /* d = add + n * m */
void hg_a64_msub(a64_asm *a, unsigned d, unsigned n, unsigned m, unsigned from);
void hg_a64_lsl(a64_asm *a, unsigned d, unsigned n, unsigned count);
void hg_a64_lsr(a64_asm *a, unsigned d, unsigned n, unsigned count);
void hg_a64_select(a64_asm *a, unsigned d, unsigned n, unsigned m, a64_condition condition); /* d = condition ? n : m */

/* Two X registers, or two Q registers, at [base + offset]: a multiple of their size between -64 and 63 times it. */
void hg_a64_load_pair(a64_asm *a, int is_vector, unsigned t, unsigned t2, unsigned base, int offset);
void hg_a64_store_pair(a64_asm *a, int is_vector, unsigned t, unsigned t2, unsigned base, int offset);

/* ---- control ----------------------------------------------------------------------------------------------------- */

/* Labels are numbers. A jump may precede the placement of its label. */
uint32_t hg_a64_new_label(a64_asm *a);
void hg_a64_place(a64_asm *a, uint32_t label);
void hg_a64_jump(a64_asm *a, uint32_t label);
void hg_a64_jump_if(a64_asm *a, a64_condition condition, uint32_t label);
void hg_a64_jump_zero(a64_asm *a, unsigned x, uint32_t label);
void hg_a64_jump_not_zero(a64_asm *a, unsigned x, uint32_t label);
void hg_a64_jump_bit(a64_asm *a, int set, unsigned x, unsigned bit, uint32_t label);
void hg_a64_call(a64_asm *a, uint32_t label);
void hg_a64_call_register(a64_asm *a, unsigned x);
void hg_a64_return(a64_asm *a);

void hg_a64_word(a64_asm *a, uint32_t word);

#endif
