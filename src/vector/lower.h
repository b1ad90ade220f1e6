/* lower.h - the state of hg_vectorise, shared by its files: vectorise.c (blocks and masks), uniform_flow.c (which
 * blocks are masked), skip.c (where masks start empty), values.c (instructions, strides, uniform values), webs.c
 * (coalesces induction variables), moves.c (phis), live.c (live ranges), tidy.c (peepholes and dead code), advance.c
 * (the order in loops). */
#ifndef HG_VECTOR_LOWER_H
#define HG_VECTOR_LOWER_H

#include "compiler/analysis/analyse.h"
#include "compiler/analysis/block_levels.h"
#include "vector/order.h"
#include "vector/vector.h"

typedef struct vector_lowering {
  const atlas_program *program;
  ssa_unit *unit;
  hg_vector *out;
  hg_status status;      /* the first failure */
  uint8_t is_one_lane;   /* 1: a tile has one lane, so everything in it is uniform */

  /* Analyses. */
  ssa_order dominance;
  vector_order order;
  hg_analysis analysis;
  hg_control control;
  uint8_t has_loops;
  uint8_t read_only[ATLAS_MAX_SYMBOLS + 2]; /* per location (compiler/analysis/aliasing.h) */

  /* Per block. */
  uint8_t *level;        /* ir_level of the control dependences of the block */
  uint8_t *uniform;      /* 1: all lanes of the tile reach it together; 0: masked */
  uint32_t *reconvergence; /* scratch of uniform_flow.c */
  uint32_t *waiting;     /* of a masked block: the mask of the lanes that wait for it */
  uint32_t *skip;        /* last place of the blocks that are reached only through it: see skip.c */
  uint32_t *owner;       /* the block at whose end its mask is cleared; SSA_NONE: the loop around it clears it */
  uint32_t *first_owned, *next_owned; /* lists: the blocks whose masks it clears */
  uint32_t *latch;       /* of a header: the loop's only latch, if it is in no inner loop; SSA_NONE */
  uint32_t *label;       /* instruction of a LABEL, in four parts: per block; per header, after its loop; per header,
                            where the loop has been left; the end */

  /* Per value. */
  uint32_t *reg;
  uint32_t *same;        /* the value that it is coalesced with, which has the same register; SSA_NONE */
  uint32_t *last;        /* the last place where it is read; scratch of webs.c */
  uint8_t *nan_blind;    /* see compiler/analysis/nan_bits.h */
  uint8_t *bits_seen;    /* 1: the bits of a NaN in it can be seen (compiler/analysis/nan_bits.h) */
  uint8_t *uses;         /* VALUE_* */
  uint8_t *stride;       /* vector_stride */
  uint8_t *mark;         /* scratch */
  uint32_t *copy;        /* scratch of moves.c and webs.c */

  /* The code being emitted. */
  uint32_t mask;         /* mask of the current block */
  uint32_t counted[2];   /* s0 and s1 of STEP; VECTOR_NONE if the steps are bounded */
} vector_lowering;

enum { /* bits of vector_lowering.uses */
  VALUE_IS_USED = 1,
  VALUE_OUTLIVES_LOOP = 2, /* used outside a divergent loop that contains it */
  VALUE_IS_UNIFORM = 4,
  VALUE_IS_KEPT = 8,       /* OUTLIVES_LOOP, or a header's phi whose register is read after the loop */
  VALUE_IS_COMPUTED = 16   /* a float whose NaNs are all results of arithmetic, so canonical by the ISA */
};

static inline const ssa_insn *vector_ssa_insn(const vector_lowering *l, uint32_t value) {
  return ssa_insn_at(l->unit, value);
}

/* Appends an instruction; the caller has set unused registers to VECTOR_NONE. */
uint32_t hg_vector_emit(vector_lowering *l, const vector_insn *insn);
uint32_t hg_vector_new_reg(vector_lowering *l, uint8_t type);

static inline vector_insn vector_insn_of(uint16_t op, uint32_t mask) {
  return (vector_insn){.op = op, .d = VECTOR_NONE, .s = {VECTOR_NONE, VECTOR_NONE, VECTOR_NONE, VECTOR_NONE},
                       .mask = mask, .target = VECTOR_NONE, .insn = SSA_NONE};
}

/* Decides which blocks are uniform and gives the others their masks. */
void hg_vector_find_uniform_flow(vector_lowering *l);
/* Fills skip, owner and the lists of owned blocks. */
void hg_vector_find_skips(vector_lowering *l);
/* 1 if a uniform block ends in a divergent branch. */
int hg_vector_diverges(const vector_lowering *l, uint32_t block);
/* 1 if all lanes of the loop reach the block in each round: it dominates the loop's only latch. */
static inline int vector_is_on_way(const vector_lowering *l, uint32_t block) {
  uint32_t header = l->order.loop[block];
  return header != SSA_NONE && l->latch[header] != SSA_NONE &&
         ssa_dominates(&l->dominance, block, l->latch[header]);
}
/* The same in a divergent loop. */
static inline int vector_is_on_masked_way(const vector_lowering *l, uint32_t block) {
  return vector_is_on_way(l, block) && !l->uniform[l->order.loop[block]];
}
/* 1 if the block's mask is that of the block before it on the way around a loop: without the lanes that leave the loop
 * there, if that is its only predecessor; else with all of them, because they reconverge here. */
static inline int vector_shares_mask(const vector_lowering *l, uint32_t block) {
  return l->waiting[block] != SSA_NONE && l->dominance.dominator[block] != block &&
         l->waiting[block] == l->waiting[l->dominance.dominator[block]];
}
static inline int vector_shares_join(const vector_lowering *l, uint32_t block) {
  return ssa_block_at(l->unit, block)->predecessors.count > 1 && vector_shares_mask(l, block);
}
/* 1 if a divergent loop is entered only from the uniform block right before it, which does nothing else then: entering
 * overwrites the loop's mask. */
static inline int vector_is_entered_once(const vector_lowering *l, uint32_t header) {
  const hg_array *from = &ssa_block_at(l->unit, header)->predecessors;
  const uint32_t *before = from->data;
  if (l->uniform[header] || l->order.loop[header] != header || l->latch[header] == SSA_NONE || from->count != 2)
    return 0;
  uint32_t entry = before[before[0] == l->latch[header]];
  return l->uniform[entry] && l->order.place[entry] + 1 == l->order.place[header] &&
         ssa_block_at(l->unit, entry)->end == SSA_JUMP;
}
/* Coalesces the values of induction variables into one register each. */
void hg_vector_find_webs(vector_lowering *l);
/* Analyses the values before the first instruction is emitted. */
hg_status hg_vector_study(vector_lowering *l);
/* The register of a value. Constants, scalars and special registers get one at the first call. */
uint32_t hg_vector_reg_of(vector_lowering *l, uint32_t value);
/* Emits the instructions of one value in a block's list. */
void hg_vector_value(vector_lowering *l, uint32_t value);
/* Phi elimination: emits moves of the new values into the phis of the edge's target, under `mask`. */
void hg_vector_moves(vector_lowering *l, uint32_t from, uint32_t side, uint32_t mask);
/* 1 if hg_vector_moves would emit an instruction. */
int hg_vector_has_moves(vector_lowering *l, uint32_t from, uint32_t side);
/* Peepholes and dead-code elimination. Needs live ranges, and invalidates them. */
hg_status hg_vector_tidy(hg_vector *v);
/* Moves instructions in loops: see advance.c. Needs live ranges, and invalidates them. */
hg_status hg_vector_advance(hg_vector *v);
/* Live ranges: fills first, last and across of every register. */
hg_status hg_vector_lifetimes(hg_vector *v);

#endif
