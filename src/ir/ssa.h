/* ssa.h - programs in static single assignment form.
 *
 * A unit is a control-flow graph of blocks. Pure values (constants, parameters, arithmetic) belong to no block: they
 * may be computed wherever their arguments are, since none of them can fail. Phis belong to the start of a block;
 * effects (loads, stores, atomics, barriers, everything that can fault or be seen) are a list in each block; a
 * terminator ends it.
 *
 * Values are numbers into unit->insns. Predicates are values of type SSA_PREDICATE. */
#ifndef HG_IR_SSA_H
#define HG_IR_SSA_H

#include "base/memory.h"
#include "hologram/base.h"

#define SSA_NONE UINT32_MAX

/* Operations that the ISA does not have; all other values of `op` are atlas_op. */
enum {
  SSA_CONST = 0xff01,   /* bits */
  SSA_SCALAR = 0xff02,  /* symbol: a scalar parameter */
  SSA_SPECIAL = 0xff03, /* bits: r252..r255 */
  SSA_PHI = 0xff04,     /* one argument a predecessor of its block, in their order */
  SSA_ARGUMENT = 0xff05,/* bits: which argument of the function that the unit is */
  SSA_DELETED = 0xff00
};

enum { SSA_WINDOW_SHIFT = 32 }; /* in the bits of rank: the array's index lies below, how many bits above */
enum { SSA_PREDICATE = 0x40 }; /* a type beside the atlas_types */
enum { SSA_LIBRARY = 0x8000 }; /* in a symbol number: a constant table of the function library, not of the program */

typedef struct ssa_insn {
  uint16_t op;
  uint8_t type;      /* of the result; of what a store or atomic moves; ATLAS_NONE where there is none */
  uint8_t type2;     /* source type of cvt and bitcast; operand type of set.* and unity.test */
  uint8_t mode;      /* atlas_address_mode of memory operations */
  uint8_t phi_registers; /* of a [phi ...] address: bit i: part i is an argument, not a constant in `bits` */
  uint16_t symbol;   /* of memory operations, scalars, pools */
  uint32_t arg_count;
  uint32_t args;     /* first in unit->args: index registers first, then values in text order */
  uint32_t block;    /* of phis and effects; SSA_NONE for pure values */
  uint32_t next;     /* the next phi or effect of the block */
  uint32_t insn;     /* the program's instruction it came from; SSA_NONE */
  uint64_t bits;     /* constant, displacement, coordinate, parts of a [phi ...] address; of a bitcast that the compiler
                        has added: 1 if nothing depends on which NaN it reads; of a division: 1 if it seldom runs */
} ssa_insn;

typedef enum ssa_end { SSA_JUMP, SSA_BRANCH, SSA_EXIT, SSA_TRAP } ssa_end;

typedef struct ssa_block {
  uint8_t end;             /* ssa_end */
  uint8_t dead;            /* no longer part of the unit */
  uint8_t library; /* of a library function: a loop that begins here ends; its iterations do not count as steps */
  uint8_t usual;           /* of a function, on its usual way: 1 + the successor that is; else 0 */
  uint32_t condition;      /* of a branch: a predicate; of a function's exit: its result; else SSA_NONE */
  uint32_t successor[2];   /* jump: [0]; branch: [0] if true, [1] if false; else SSA_NONE */
  uint32_t insn;           /* program instruction of the terminator; SSA_NONE */
  uint32_t loop_insn;      /* where a loop begins that lanes may run out of steps in: program instruction that this is
                              reported at, whichever way they come back; SSA_NONE: that of the way's terminator */
  uint32_t trap_code;
  uint32_t first_phi;      /* lists through ssa_insn.next */
  uint32_t first_effect, last_effect;
  hg_array predecessors;   /* uint32_t; a block stands in it twice if both its successors are this block */
} ssa_block;

typedef struct ssa_unit {
  hg_allocator allocator;
  hg_array insns;   /* ssa_insn */
  hg_array args;    /* uint32_t */
  hg_array blocks;  /* ssa_block; block 0 is the entry and has no predecessors */
  hg_array forward; /* uint32_t a value: what replaced it, or itself */
  uint8_t faults_stay;       /* the hash has been taken: dead loads are kept, because they may fault */
  uint8_t narrow_extremes;   /* the machine has min and max of f16 and bf16: hg_legalise leaves them */
  uint8_t gathers_stores;    /* stores wait for the functions behind them: see gather_stores.h */
  uint8_t joins_functions;   /* functions of one block share a test for their rare cases: see expand_row.h */
  uint8_t replaced;          /* values were replaced since ir_ssa_resolve_all */
  uint8_t classified;        /* other_forms has been filled */
  uint64_t other_forms[4];   /* set of symbols: buffers that are accessed otherwise than as [x + lane] */
} ssa_unit;

/* Of rank: the first element of the shared array that gets a count, and how many bits are ranked. */
static inline uint32_t ssa_window_first(const ssa_insn *insn) { return (uint32_t)insn->bits; }
static inline uint32_t ssa_window_bits(const ssa_insn *insn) { return (uint32_t)(insn->bits >> SSA_WINDOW_SHIFT); }

static inline ssa_insn *ssa_insn_at(const ssa_unit *u, uint32_t value) { return (ssa_insn *)u->insns.data + value; }
static inline ssa_block *ssa_block_at(const ssa_unit *u, uint32_t block) { return (ssa_block *)u->blocks.data + block; }
static inline uint32_t *ssa_args_of(const ssa_unit *u, uint32_t value) {
  return (uint32_t *)u->args.data + ssa_insn_at(u, value)->args;
}

void ir_ssa_init(ssa_unit *unit, const hg_allocator *allocator);
/* Reserves memory for so many in all, where that is known beforehand. HG_OUT_OF_MEMORY. */
hg_status ir_ssa_reserve(ssa_unit *unit, uint64_t values, uint64_t args, uint64_t blocks);
void ir_ssa_release(ssa_unit *unit);

/* The program instruction at which a lane runs out of steps that goes back from one block to another. */
static inline uint32_t ssa_step_insn(const ssa_unit *u, uint32_t from, uint32_t to) {
  uint32_t insn = ssa_block_at(u, to)->loop_insn;
  return insn != SSA_NONE ? insn : ssa_block_at(u, from)->insn;
}

/* A new value with room for arg_count arguments (SSA_NONE until set); it belongs to no block. SSA_NONE: out of memory.
 */
uint32_t ir_ssa_add(ssa_unit *unit, const ssa_insn *insn, uint32_t arg_count);
uint32_t ir_ssa_add_block(ssa_unit *unit); /* SSA_NONE: out of memory */

/* Adds an edge to the predecessors of `to`. 0: out of memory. */
static inline int ir_ssa_lead(ssa_unit *unit, uint32_t from, uint32_t to) {
  return hg_array_push(&unit->allocator, &ssa_block_at(unit, to)->predecessors, from);
}

void ir_ssa_append_phi(ssa_unit *unit, uint32_t block, uint32_t value);
void ir_ssa_append_effect(ssa_unit *unit, uint32_t block, uint32_t value);

/* The value that replaces this one now: itself, if none does. */
uint32_t ir_ssa_resolve_far(ssa_unit *unit, uint32_t value);
static inline uint32_t ir_ssa_resolve(ssa_unit *unit, uint32_t value) {
  return ((const uint32_t *)unit->forward.data)[value] == value ? value : ir_ssa_resolve_far(unit, value);
}
/* All uses of `value` mean `by` from now on. */
void ir_ssa_replace(ssa_unit *unit, uint32_t value, uint32_t by);

/* Removes the edge from `from` from the predecessors of `to`, with its phi arguments. */
void ir_ssa_remove_edge(ssa_unit *unit, uint32_t from, uint32_t to);

/* Edges to the block, which only jumps on, are to lead to where that jumps: this takes over what is known of it. */
void ir_ssa_pass_by(ssa_unit *unit, uint32_t block);
/* If `from` ends in a jump to the block, that is now the block's own. */
void ir_ssa_take_jump(ssa_unit *unit, uint32_t from, uint32_t block);

/* Moves the effects behind `previous` (SSA_NONE: all), and how the block ends, to a new block. The block is left as a
 * jump whose successor is still to be set. SSA_NONE: out of memory. */
uint32_t ir_ssa_split_block(ssa_unit *unit, uint32_t number, uint32_t previous);

/* Checks everything this header says, definitions dominating uses included. HG_INVALID_ARGUMENT with what is wrong (a
 * bug of a pass). */
hg_status ir_ssa_check(ssa_unit *unit);

#endif
