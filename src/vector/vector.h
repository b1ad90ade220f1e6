/* vector.h - a program for engines that run many lanes at once: straight-line code over vector registers, with masks.
 *
 * A tile is the set of lanes that an engine runs together: a block if the program sees blocks, else any run of lanes.
 * Code is a list of instructions in an order in which every loop is contiguous; each basic block of the unit starts
 * with a LABEL. Divergent control becomes masks (registers of type SSA_PREDICATE): a lane that branches to a basic
 * block waits in that block's mask until the code gets there, so lanes reconverge at the first place where they can.
 * The code jumps over a block for which no lane waits. Basic blocks that all lanes of the tile reach together run under
 * VECTOR_ALL and branch by real jumps.
 *
 * In lanes outside its mask an instruction may compute anything; but memory, faults, atomics and counters see only
 * lanes of the mask, and with VECTOR_KEEP the lanes outside it keep the old value of d. VECTOR_ALL stands for the lanes
 * that the tile has and that have not ended by a TRAP or a STEP (which happens only if `loses_lanes` is set); past the
 * end of a last, partial tile nothing may be seen either.
 *
 * In each lane the instructions of a basic block execute in program order, so a lane's first fault is the first one
 * met. */
#ifndef HG_VECTOR_H
#define HG_VECTOR_H

#include "atlas/program.h"
#include "ir/ssa.h"

/* Operations other than the primitives of ops.def, whose codes (atlas_op) follow these. */
enum {
  VECTOR_REMOVED = 0, /* marked for hg_rewrite_remove; never left after a pass */
  VECTOR_LABEL = 1, /* target of jumps; bits: the unit's basic block, or SSA_NONE inside one */
  VECTOR_MOVE,      /* d = s0 in the lanes of the mask; the other lanes always keep d. Also for predicates */
  VECTOR_CLEAR,     /* d (predicate) = no lane */
  VECTOR_AND,       /* d = s0 & s1       predicates; VECTOR_ALL as a source: the lanes that the tile has */
  VECTOR_ANDNOT,    /* d = s0 & ~s1 */
  VECTOR_OR,        /* d = s0 | s1 */
  VECTOR_CANON,     /* d = s0, a NaN made canonical; type f16, bf16, f32, f64 */
  VECTOR_LESSER,    /* d = s0 < s1 ? s0 : s1, bit for bit; type f32, f64 */
  VECTOR_GREATER,   /* d = s0 > s1 ? s0 : s1 */
  VECTOR_JUMP,      /* to target */
  VECTOR_JUMP_NONE, /* to target if s0 & mask has no lane */
  VECTOR_JUMP_ANY,  /* to target if s0 & mask has a lane */
  VECTOR_STEP, /* d (predicate) = the lanes of the mask that may take another back edge: counts one for each lane of the
                  mask. Lanes without steps left are faulted, end, and are left out of d. If most_steps is UINT64_MAX,
                  s0 and s1 are u32 registers, the same for all STEPs, in which an engine may count steps that it has
                  yet to subtract: in s0 one for the lanes of the mask or, if the mask is VECTOR_ALL, in s1, which is
                  uniform, one for all lanes. They start as 0, and nothing else reads them; if no STEP would count in
                  one, it is the constant 0 */
  VECTOR_TRAP, /* fault with code `bits` in the lanes of the mask, which end */
  VECTOR_END,  /* the last instruction */
  VECTOR_FIRST_PRIMITIVE = 0x100
};

#define VECTOR_NONE UINT32_MAX
#define VECTOR_ALL (UINT32_MAX - 1) /* as a mask, or as a source predicate */

enum { /* flags of instructions */
  VECTOR_KEEP = 1,    /* lanes outside the mask keep d */
  VECTOR_AGREE = 2,   /* jumps: s0 is the same in all lanes of the mask; if there is none, either way is right */
  VECTOR_CONTIGUOUS = 4, /* memory: the index of lane i + 1 is that of lane i plus 1 modulo 2^w along a run of lanes; w:
                            the bits of the index, 32 or 64. The elements of a run are consecutive if the first and the
                            last are in bounds and count - 1 apart */
  VECTOR_SAME = 8,       /* memory: the index is the same in all lanes of the mask */
  VECTOR_LANE = 16,      /* memory: the address is [x + lane + bits] (bits may be 0). Like CONTIGUOUS only for indices
                            that count elements: those of pools count bytes */
  VECTOR_READ_ONLY = 32, /* memory: nothing writes the location during the launch */
  VECTOR_IN_BOUNDS = 64, /* memory: proven for the lanes of the mask in every launch */
  VECTOR_ENTERS = 128,    /* JUMP_NONE: over the block whose waiting mask is s0, which runs under that mask */
  VECTOR_EXTRA = 1 << 14, /* memory: it has further sources, which belong to an engine */
  VECTOR_LAST = 512,      /* JUMP_NONE: to the end if no lane is left; lanes of a part of the tile may take it alone */
  VECTOR_SHORT = 256      /* with ENTERS: the block is so short that it may run without lanes */
};

typedef struct vector_insn {
  uint16_t op;
  uint8_t type;          /* of the result; for stores and atomics, of the value moved; for CANON and MOVE, of the
                            operand */
  uint8_t type2;         /* source type of cvt and bitcast; operand type of set.* */
  uint8_t mode;          /* atlas_address_mode of memory operations */
  uint8_t phi_registers; /* of a [phi ...] address: which of its numbers are registers */
  uint16_t symbol;       /* as in ssa_insn; SSA_LIBRARY marks constant tables of the function library */
  uint32_t flags;
  uint32_t d;            /* register; VECTOR_NONE */
  uint32_t s[4];         /* registers: index registers first, then values, as in ssa_insn; VECTOR_NONE */
  uint32_t mask;         /* a predicate register; VECTOR_ALL */
  uint32_t target;       /* of jumps: number of a LABEL instruction */
  uint32_t insn;         /* the program's instruction, for faults and profilers; SSA_NONE */
  uint32_t slice;        /* in straight-line code for blocks (native/straight.c): the number of the vector in the block;
                            else 0 */
  uint64_t bits;         /* as in ssa_insn */
} vector_insn;

typedef enum vector_kind {
  VECTOR_VARIES,   /* written by instructions */
  VECTOR_CONSTANT, /* bits */
  VECTOR_SCALAR,   /* bits: the symbol of a scalar parameter */
  VECTOR_SPECIAL   /* bits: ATLAS_REG_BLOCK_LANE to ATLAS_REG_LANE; `lane` is u64, the others u32 */
} vector_kind;

/* vector_reg.bits of a VARIES that nothing writes, read only by lanes whose results are not used. Other values are an
 * engine's own. */
enum { VECTOR_UNSET = 4 };

typedef struct vector_reg {
  uint8_t type;    /* atlas_type or SSA_PREDICATE */
  uint8_t kind;    /* vector_kind; only VARIES are ever written */
  uint8_t uniform; /* VARIES: the same in all lanes of the tile that define it, so an engine may keep one element */
  uint8_t across;  /* 1: live across an instruction of the whole block (barrier, collective, pool.alloc, ...) */
  uint64_t bits;
  uint32_t first, last; /* live range: from instruction `first`, which writes it, to `last`, extended over loops */
} vector_reg;

/* How an integer changes from one lane of a run (lanes along x) to the next, modulo 2^bits. */
typedef enum vector_stride {
  VECTOR_STRIDE_0,
  VECTOR_STRIDE_1,
  VECTOR_STRIDE_OTHER,
  /* Only hg_native_guess says so: -1; and 1 among the lanes that a store's mask leaves. */
  VECTOR_STRIDE_BACK,
  VECTOR_STRIDE_PACKED
} vector_stride;

static inline uint8_t vector_stride_sum(uint8_t a, uint8_t b) {
  return (uint8_t)(a + b) > VECTOR_STRIDE_1 ? VECTOR_STRIDE_OTHER : (uint8_t)(a + b);
}

/* Indices have these types, after conversion; strides are known of these types only. */
static inline int vector_is_wide_integer(uint8_t type) {
  return type != SSA_PREDICATE && atlas_is_integer((atlas_type)type) && atlas_bytes((atlas_type)type) >= 4;
}

/* The stride after converting such an integer. If it is widened, a value that counts up may wrap between two lanes. */
static inline uint8_t vector_stride_of_conversion(uint8_t type, uint8_t type2, uint8_t s) {
  if (!vector_is_wide_integer(type2)) return VECTOR_STRIDE_OTHER;
  int gets_more = atlas_bytes((atlas_type)type) > atlas_bytes((atlas_type)type2);
  return gets_more && s != VECTOR_STRIDE_0 ? VECTOR_STRIDE_OTHER : s;
}

/* The stride of a result of such a type, from those of its operands. */
static inline uint8_t vector_stride_of_result(uint16_t op, uint8_t type, uint8_t type2, const uint8_t s[3]) {
  int is_scaled = s[0] == VECTOR_STRIDE_0 && s[1] == VECTOR_STRIDE_0;
  switch (op) {
  case VECTOR_MOVE: return s[0];
  case ATLAS_OP_cvt:
  case ATLAS_OP_bitcast: return vector_stride_of_conversion(type, type2, s[0]);
  case ATLAS_OP_add: return vector_stride_sum(s[0], s[1]);
  case ATLAS_OP_sub:
    if (s[0] == VECTOR_STRIDE_1 && s[1] == VECTOR_STRIDE_1) return VECTOR_STRIDE_0;
    return s[1] == VECTOR_STRIDE_0 ? s[0] : VECTOR_STRIDE_OTHER;
  case ATLAS_OP_mul: return is_scaled ? VECTOR_STRIDE_0 : VECTOR_STRIDE_OTHER;
  case ATLAS_OP_mad: return is_scaled ? s[2] : VECTOR_STRIDE_OTHER;
  default: return VECTOR_STRIDE_OTHER;
  }
}

typedef struct hg_vector {
  hg_allocator allocator;
  hg_array insns; /* vector_insn */
  hg_array regs;  /* vector_reg */
  uint8_t sees_blocks;      /* 1: a tile is a block; 0: a tile is any run of lanes (but see sees_coordinates) */
  uint8_t sees_coordinates; /* 1: reads sreg: in a grid launch a tile is a block, in a linear launch it need not be */
  uint8_t needs_blocks; /* 1: such a tile may not be lanes along the rows of the grid instead, because the program reads
                           places in blocks, or because blocks keep together what is near in memory: there are loops, or
                           accesses that do not follow the rows */
  uint8_t sees_shared;      /* 1: uses shared memory or pools */
  uint8_t has_block_ops;    /* 1: barriers, collectives, pool.alloc or pool.free: see hg_is_block_op */
  uint8_t counts_resonance; /* 1: res.accum */
  uint64_t locals[4];       /* set of symbols: the accessed local arrays. Their accesses have only the flags KEEP and
                               IN_BOUNDS */
  uint8_t sees_local_zeros; /* 1: a lane may read an element of a local array that it has not stored: 0 */
  uint8_t loses_lanes;      /* 1: there is a TRAP, or a STEP in a loop without a bound */
  uint64_t most_steps; /* most back edges that a lane can take; UINT64_MAX: unknown, or above the usual limit. If the
                          launch's step limit is at least that, STEP need not count: d = mask */
} hg_vector;

static inline vector_insn *vector_insn_at(const hg_vector *v, uint32_t i) { return (vector_insn *)v->insns.data + i; }
static inline vector_reg *vector_reg_at(const hg_vector *v, uint32_t r) { return (vector_reg *)v->regs.data + r; }

/* `unit` is scheduled, expanded and optimised, and not changed. HG_OUT_OF_MEMORY. Release `out` whatever the result. */
hg_status hg_vectorise(const atlas_program *program, ssa_unit *unit, hg_vector *out);
/* The same for tiles of one lane, which engines run one after the other: every jump is real, and no instruction has a
 * mask. */
hg_status hg_vectorise_lane(const atlas_program *program, ssa_unit *unit, hg_vector *out);
void hg_vector_release(hg_vector *v);

static inline int vector_is_primitive(uint16_t op) { return op >= VECTOR_FIRST_PRIMITIVE; }

static inline int vector_is_jump(uint16_t op) {
  return op == VECTOR_JUMP || op == VECTOR_JUMP_NONE || op == VECTOR_JUMP_ANY;
}

/* Block-wide operations: bar.sync, reduce.*, scan.*, vote.*, pool.alloc, pool.free. (Not phase.adv: lane 0 of the grid
 * does it.) */
/* Of rank, as in ir/ssa.h. */
static inline uint32_t vector_window_first(const vector_insn *insn) { return (uint32_t)insn->bits; }
static inline uint32_t vector_window_bits(const vector_insn *i) { return (uint32_t)(i->bits >> SSA_WINDOW_SHIFT); }

static inline int hg_is_block_op(uint16_t op) {
  return (atlas_op_flags(op) & ATLAS_BLOCK) != 0;
}

/* A listing for people and tests: one instruction a line. */
hg_status hg_vector_print(const atlas_program *program, const hg_vector *v, hg_array *text);

#endif
