/* ptx_text.h - PTX after parsing: shared by the parser (ptx_text.c) and the machine (ptx_state.h). */
#ifndef HG_TESTS_PTX_TEXT_H
#define HG_TESTS_PTX_TEXT_H

#include "ptx_machine.h"

#define PTX_NO_REGISTER UINT32_MAX

enum { PTX_NAME = 96, PTX_OPERANDS = 12, PTX_VECTOR = 4, PTX_DEPTH = 8 };

typedef enum ptx_type {
  T_NONE,
#define TYPE(name, bits, kind) T_##name,
#define TYPES                                                                                                     \
  TYPE(pred, 1, 'p') TYPE(b8, 8, 'u') TYPE(b16, 16, 'u') TYPE(b32, 32, 'u') TYPE(b64, 64, 'u') TYPE(u8, 8, 'u')   \
  TYPE(u16, 16, 'u') TYPE(u32, 32, 'u') TYPE(u64, 64, 'u') TYPE(s8, 8, 's') TYPE(s16, 16, 's') TYPE(s32, 32, 's') \
  TYPE(s64, 64, 's') TYPE(f16, 16, 'f') TYPE(bf16, 16, 'f') TYPE(f32, 32, 'f') TYPE(f64, 64, 'f')       \
  TYPE(f16x2, 32, 'x') TYPE(bf16x2, 32, 'x') TYPE(s16x2, 32, 'i')
  TYPES
#undef TYPE
  T_COUNT
} ptx_type;

extern const struct ptx_type_info {
  const char *name;
  unsigned bits;
  char kind;
} ptx_types[T_COUNT];

typedef enum ptx_op {
#define OPS                                                                                                       \
  OP(abs)                                                                                                         \
  OP(activemask) OP(add) OP(addc) OP(and) OP(atom) OP(bar) OP(barrier) OP(bfe) OP(bfi) OP(bfind) OP(bra) OP(brev) \
      OP(call) OP(clz) OP(copysign) OP(cp) OP(cvt) OP(cvta) OP(div) OP(dp4a) OP(exit) OP(fence) OP(fma) OP(ld)    \
          OP(lop3) OP(mad) OP(mapa) OP(max) OP(membar) OP(min) OP(mov) OP(mul) OP(neg) OP(not ) OP(or) OP(popc)   \
              OP(prmt) OP(rcp) OP(red) OP(rem) OP(ret) OP(selp) OP(set) OP(setp) OP(shf) OP(shfl) OP(shl) OP(shr) \
                  OP(sqrt) OP(st) OP(sub) OP(subc) OP(testp) OP(trap) OP(vote) OP(xor)
#define OP(name) OP_##name,
  OPS
#undef OP
  OP_COUNT
} ptx_op;

typedef enum ptx_space {
  SPACE_GENERIC,
  SPACE_GLOBAL,
  SPACE_SHARED,
  SPACE_PARAM,
  SPACE_CONST,
  SPACE_LOCAL,
  SPACE_CLUSTER, /* the shared memory of a cluster's blocks */
  SPACE_COUNT
} ptx_space;

/* Words between the dots of an instruction that choose what it does; each in at most one of these places. */
typedef struct ptx_words {
  char compare[8], logic[8], atomic[8];          /* set, setp; setp, bar.red; atom, red */
  char mode[8];                                  /* shfl, vote, testp, shf, bar, barrier.cluster */
  char round[8];                                 /* rn rz rm rp, rni rzi rmi rpi */
  uint8_t wide, high, low, saturate, carry, nan, wrap, by_size;
  ptx_space space;
  uint8_t vector; /* 1, 2, 4 */
} ptx_words;

typedef enum ptx_kind { O_NONE, O_REG, O_IMM, O_SPECIAL, O_ADDRESS, O_LABEL, O_VECTOR, O_SYMBOL, O_SINK } ptx_kind;

typedef struct ptx_operand {
  ptx_kind kind;
  uint8_t negated;      /* !p */
  uint8_t is_float;     /* an immediate written as a float: bits are those of an f32 (32) or f64 (64) */
  uint32_t reg[PTX_VECTOR];       /* of a vector: PTX_NO_REGISTER where it is a constant */
  uint64_t constant[PTX_VECTOR];
  uint8_t count;        /* of a vector */
  uint8_t base;         /* of an address: O_REG, O_SYMBOL or O_IMM */
  uint64_t bits;        /* immediate, displacement, number of a special register, label or function */
  uint32_t symbol;
} ptx_operand;

typedef struct ptx_insn {
  ptx_op op;
  ptx_type type, type2;
  ptx_words words;
  uint32_t guard; /* register + 1; 0: none */
  uint8_t guard_negated;
  ptx_operand operand[PTX_OPERANDS];
  uint8_t operand_count, result_count; /* of a call: how many operands are results */
  uint32_t line;
} ptx_insn;

/* A variable: of the module, or a parameter or shared array of a function. */
typedef struct ptx_symbol {
  char name[PTX_NAME];
  ptx_space space;
  size_t byte_count, offset; /* in its space */
  uint8_t *bytes;            /* of module variables; the machine gives them addresses */
  uint32_t reg;              /* of a function's register parameter: 1 + number */
} ptx_symbol;

typedef struct ptx_label {
  char name[PTX_NAME];
  uint32_t target;
} ptx_label;

typedef struct ptx_list {
  void *data;
  size_t count, capacity;
} ptx_list;

typedef struct ptx_function {
  char name[PTX_NAME];
  int is_entry;
  ptx_list registers;  /* char[PTX_NAME] */
  ptx_list symbols;    /* ptx_symbol: parameters, local and shared arrays */
  ptx_list labels, insns;
  ptx_list formals;    /* uint32_t: registers of results, then of arguments */
  size_t parameter_bytes, local_bytes;
  uint32_t cluster_blocks; /* 0: none are asked for */
  uint32_t *buckets;   /* registers by name */
  uint32_t bucket_count;
} ptx_function;

struct ptx_module {
  ptx_list functions, symbols; /* symbols: .const, .global, .shared of the module */
  size_t shared_bytes;         /* static, of all of it */
};

enum { PTX_CLUSTER_BLOCKS = 8 }; /* more only with a permission that nobody asks for */

const ptx_function *ptx_find(const ptx_module *module, const char *name);

/* Numbers of special registers. */
enum { SPECIAL_TID, SPECIAL_NTID = 3, SPECIAL_CTAID = 6, SPECIAL_NCTAID = 9, SPECIAL_CLUSTERID = 12,
       SPECIAL_LANEID = 15, SPECIAL_WARPID, SPECIAL_LANEMASK_LT, SPECIAL_LANEMASK_LE, SPECIAL_LANEMASK_GT,
       SPECIAL_LANEMASK_GE, SPECIAL_LANEMASK_EQ, SPECIAL_NWARPID, SPECIAL_SMID, SPECIAL_CLUSTER_RANK, SPECIAL_CLOCK };

#endif
