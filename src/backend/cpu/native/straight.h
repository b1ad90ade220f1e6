/* straight.h - the state of the pass `straight` (straight.c), which its files share: straight.c (control),
 * straight_values.c (values), straight_collect.c (reductions), straight_known.c (constant folding lane by lane),
 * straight_loop.c (loops that stay), straight_memory.c (shared memory in registers); and what it promises to the passes
 * after it (passes.def).
 *
 * A block is `slices` vectors of `lanes` lanes. In each slice, a register of the old program is a register of the new
 * program, or bits that are known for each lane. */
#ifndef HG_NATIVE_STRAIGHT_H
#define HG_NATIVE_STRAIGHT_H

#include "backend/cpu/native/vector_passes.h"

enum {
  STRAIGHT_MOST_DEPTH = 3,
  STRAIGHT_MOST_LANES = 16 /* of a vector */
};

/* vector_reg.bits of registers. */
enum { STRAIGHT_LOOP_CARRIED = 1, STRAIGHT_INDEX_SUM = 2 /* see hg_native_is_index_sum */ };

/* A flag of a store to shared memory: nothing reads it so far. */
enum { STRAIGHT_UNREAD = 1 << 15 };

typedef struct straight_value {
  uint32_t reg;   /* of the new program; VECTOR_NONE */
  uint32_t known; /* the index in straight.bits of its lanes' bits; VECTOR_NONE */
} straight_value;

typedef struct straight_cell { /* an element of shared memory */
  uint32_t reg, lane;      /* what it holds: this lane of this register; VECTOR_NONE: unknown */
  uint32_t store;          /* the last instruction of the new program that wrote it; VECTOR_NONE */
} straight_cell;

typedef struct straight_once { /* a block-uniform instruction, which slice 0 has done for all */
  uint32_t insn, round;    /* of the old program; see straight.round */
  straight_value value;
} straight_once;

typedef struct straight_loop { /* a loop of the new program that is still being written */
  uint32_t head, exit;     /* labels of the old program; exit: where the loop leads when it is left, VECTOR_NONE: not
                              known yet */
  uint32_t label, jump;    /* instructions of the new program: the loop's head, the jump that leaves it */
  uint32_t *carried;       /* per value: its loop-carried register; VECTOR_NONE */
  straight_value *values;      /* straight.value at the loop's exit */
  hg_array cells;          /* straight.cells at the exit */
} straight_loop;

typedef enum straight_mask { STRAIGHT_NO_LANE, STRAIGHT_SOME, STRAIGHT_ALL, STRAIGHT_UNKNOWN } straight_mask;

typedef struct straight {
  /* The old program, the new one, the block. */
  const atlas_program *program;
  const uint32_t *shape;   /* native_block */
  const hg_vector *from;
  hg_vector *to;
  uint32_t lanes, slices;
  uint32_t blane;          /* register: the lane's number in the block */
  uint8_t must_restart;    /* 1: start again, because is_kept has changed */
  uint8_t has_failed;      /* 1: the program stays as it is */
  uint8_t has_loops, has_rare, has_stored;
  uint8_t may_restart;     /* see hg_straight_may_restart */
  uint8_t no_memory;

  /* Values. */
  straight_value *value;       /* the value of register r in slice k: [r * slices + k] */
  hg_array bits;           /* uint64_t: the bits of known values, see straight_value */

  /* Loops. */
  uint32_t *loop_end;      /* per instruction: the last jump back to it; 0: none */
  uint8_t *is_kept;        /* per instruction: 1: the loop that begins there is not unrolled */
  straight_loop loops[STRAIGHT_MOST_DEPTH];
  uint32_t depth;
  uint32_t visits;         /* how many instructions the slices have visited so far */

  /* The way of a slice since the last point where all slices met. */
  hg_array once;           /* straight_once */
  hg_array rounds;         /* uint32_t: the back edges that slice 0 has taken */
  uint32_t round;          /* how many of `rounds` the current slice has taken */
  uint32_t once_seen;      /* how many of `once` the current slice has reached */

  /* Steps. */
  uint8_t counts_steps;
  uint32_t steps[2];       /* since all slices met: of slice 0, of the current slice */
  hg_array counted;        /* uint32_t: the instructions of the program that count them */
  uint32_t has_stepped;    /* 1: the current slice has taken one */

  /* Shared memory. */
  hg_array cells;          /* straight_cell */
  uint32_t first_cell[ATLAS_MAX_SYMBOLS]; /* of a shared array with elements of 32 bits; VECTOR_NONE: another symbol */
} straight;

static inline straight_value *hg_straight_value(const straight *w, uint32_t r, uint32_t slice) {
  return &w->value[r * w->slices + slice];
}

/* ---- straight_values.c ---------------------------------------------------------------------------------------- */

/* 1 if the block's only effects are stores to buffers and none of its loads reads what anybody may write: such a block
 * may start again after it has stored something. */
int hg_straight_may_restart(const atlas_program *program, const hg_vector *v);
/* The register of the new program that holds r in a slice; one is made if only its bits are known. */
uint32_t hg_straight_register(straight *w, uint32_t r, uint32_t slice);
void hg_straight_set(straight *w, uint32_t r, uint32_t slice, uint32_t reg);
uint32_t hg_straight_add_register(straight *w, const vector_reg *reg);
/* A new register like one of the old program. */
uint32_t hg_straight_new_register(straight *w, uint32_t like);
uint32_t hg_straight_constant(straight *w, uint8_t type, uint64_t bits);
/* The register that is never written and has this kind and these bits. */
uint32_t hg_straight_find_register(straight *w, uint8_t kind, uint8_t type, uint64_t bits);
/* Appends an instruction as it is, or one of the old program with the registers of a slice. Each returns its number. */
uint32_t hg_straight_append(straight *w, const vector_insn *insn);
uint32_t hg_straight_append_renamed(straight *w, const vector_insn *insn, uint32_t slice);
/* 1 if an instruction has an effect outside the block. */
int hg_straight_is_effect(const atlas_program *program, const vector_insn *insn);

/* ---- straight_known.c ----------------------------------------------------------------------------------------- */

/* Makes known what is known from the beginning: constants and the lane's number. */
void hg_straight_begin_known(straight *w);
/* Adds the bits of all lanes of a slice to straight.bits and returns where they are; if memory is short, anywhere. */
uint32_t hg_straight_add_bits(straight *w, const uint64_t *bits);
/* The bits of a register in the lanes of a slice, valid until the next fold; NULL: unknown. */
const uint64_t *hg_straight_bits(const straight *w, uint32_t r, uint32_t slice);
straight_mask hg_straight_mask(const straight *w, uint32_t mask, uint32_t slice);
/* Register r takes the known bits of register `as`. */
void hg_straight_set_known(straight *w, uint32_t r, uint32_t as, uint32_t slice);
/* Constant folding: 1 if the instruction's result is known now. */
int hg_straight_fold(straight *w, const vector_insn *insn, uint32_t slice);

/* ---- straight_loop.c ------------------------------------------------------------------------------------------ */

/* All slices have reached the head of a loop that stays: the loop begins, or its round ends. Returns where the block
 * continues. */
uint32_t hg_straight_at_head(straight *w, uint32_t head);
/* 1 if a jump can be the exit of the innermost loop; hg_straight_leave_loop, once all slices have reached it, returns
 * where the loop goes on. */
int hg_straight_may_leave_loop(const straight *w, uint32_t jump);
uint32_t hg_straight_leave_loop(straight *w, uint32_t jump);
void hg_straight_end_loops(straight *w); /* releases loops that are not complete */

/* ---- the others -------------------------------------------------------------------------------------------------- */

void hg_straight_begin_memory(straight *w);
void hg_straight_forget(straight *w); /* forgets what is known of shared memory */
/* 1 if it has written the access. */
int hg_straight_access(straight *w, const vector_insn *insn, uint32_t slice);
int hg_straight_expand_collective(straight *w, uint32_t insn); /* 1 if it has expanded the collective */

#endif
