/* wide.h - the state of hg_native_wide, shared by its files: wide.c (control), wide_values.c (values),
 * wide_collect.c (reductions), wide_known.c (what is known of lanes), wide_loop.c (loops),
 * wide_memory.c (what shared memory holds), wide_tidy.c (leaves out what nobody needs).
 *
 * A block is `slices` vectors of `lanes` lanes. What a register of the program is in a slice is a register of the new
 * program, or bits that are known of each lane. */
#ifndef HG_NATIVE_WIDE_H
#define HG_NATIVE_WIDE_H

#include "backend/cpu/native/native.h"

enum { WIDE_MOST_INSNS = 2048, WIDE_MOST_CELLS = 4096, WIDE_MOST_DEPTH = 3, WIDE_MOST_LANES = 16 /* of a vector */ };

/* vector_reg.bits of a register that has a value of each round of a loop. */
enum { WIDE_FIXED = 1 };

/* A flag of a store to shared memory: so far nobody reads what it writes. */
enum { WIDE_UNREAD = 1 << 15 };

typedef struct wide_value {
  uint32_t reg;   /* of the new program; VECTOR_NONE */
  uint32_t known; /* where the lanes' bits are in wide.bits; VECTOR_NONE */
} wide_value;

typedef struct wide_cell { /* an element of shared memory */
  uint32_t reg, lane;      /* what it holds: a lane of that register; VECTOR_NONE: not known */
  uint32_t store;          /* the instruction of the new program that wrote it last; VECTOR_NONE */
} wide_cell;

typedef struct wide_once { /* done in slice 0 for all */
  uint32_t insn, round;    /* of the old program; see wide.round */
  wide_value value;
} wide_once;

typedef struct wide_loop { /* of the new program, that is being written */
  uint32_t head, exit;     /* labels of the old program; exit: where it is left for, VECTOR_NONE: not yet */
  uint32_t label, jump;    /* instructions of the new one: its head, the jump that leaves it */
  uint32_t *fixed;         /* per value: the register that has it in each round; VECTOR_NONE */
  wide_value *values;      /* as they are where it is left, */
  hg_array cells;          /* and wide.cells */
} wide_loop;

typedef enum wide_mask { WIDE_NO_LANE, WIDE_SOME, WIDE_ALL, WIDE_UNKNOWN } wide_mask;

typedef struct wide {
  const atlas_program *program;
  const hg_vector *from;
  hg_vector *to;
  uint32_t lanes, slices;
  uint32_t blane;      /* register: the lane's number in the block */
  wide_value *value;   /* of register r in slice k: [r * slices + k] */
  uint32_t *loop_end;  /* per instruction: the last jump back to it; 0: none */
  uint8_t *is_kept;    /* per instruction: 1: a loop that begins there is one of the new program, too */
  wide_loop loops[WIDE_MOST_DEPTH];
  uint32_t depth, visits;
  hg_array once, rounds; /* since the slices met: wide_once; the ways back that slice 0 has taken, uint32_t */
  uint32_t round, once_seen; /* how many the slice in hand has; of `once`, those that it has come by */
  uint32_t steps[2];   /* taken since then: by slice 0, by the one in hand */
  hg_array counted;    /* the program's instructions of those, uint32_t */
  uint32_t has_stepped;/* the slice in hand */
  hg_array bits;       /* uint64_t */
  hg_array cells;      /* wide_cell */
  uint32_t first_cell[ATLAS_MAX_SYMBOLS]; /* of shared arrays whose elements have 32 bits; VECTOR_NONE: of others */
  uint8_t counts_steps, starts_again, is_stuck, no_memory;
} wide;

static inline wide_value *hg_wide_value(const wide *w, uint32_t r, uint32_t slice) {
  return &w->value[r * w->slices + slice];
}

/* ---- wide_values.c ---------------------------------------------------------------------------------------- */

/* The register of the new program that a register is in a slice; made where only its bits were known. */
uint32_t hg_wide_register(wide *w, uint32_t r, uint32_t slice);
void hg_wide_set(wide *w, uint32_t r, uint32_t slice, uint32_t reg);
uint32_t hg_wide_add_register(wide *w, const vector_reg *reg);
/* A new register like one of the old program. */
uint32_t hg_wide_new_register(wide *w, uint32_t like);
uint32_t hg_wide_constant(wide *w, uint8_t type, uint64_t bits);
/* The register that is never written and has this kind and these bits. */
uint32_t hg_wide_find_register(wide *w, uint8_t kind, uint8_t type, uint64_t bits);
/* An instruction as it is; one of the old program with the registers of a slice. Each returns its number. */
uint32_t hg_wide_put(wide *w, const vector_insn *insn);
uint32_t hg_wide_copy(wide *w, const vector_insn *insn, uint32_t slice);

/* ---- wide_known.c ----------------------------------------------------------------------------------------- */

/* What is known from the beginning: constants, and the lane's number. */
void hg_wide_begin_known(wide *w);
/* The bits of a register in the lanes of a slice, up to the next fold; NULL: not known. */
const uint64_t *hg_wide_bits(const wide *w, uint32_t r, uint32_t slice);
wide_mask hg_wide_mask(const wide *w, uint32_t mask, uint32_t slice);
/* A register is from here on what another is, whose bits are known. */
void hg_wide_know(wide *w, uint32_t r, uint32_t as, uint32_t slice);
/* 1 if an instruction's result is known now. */
int hg_wide_fold(wide *w, const vector_insn *insn, uint32_t slice);

/* ---- wide_loop.c ------------------------------------------------------------------------------------------ */

/* All slices have come to a loop's head: it begins, or its round ends. Returns where the block goes on. */
uint32_t hg_wide_round(wide *w, uint32_t head);
/* 1 if a jump can be what leaves the innermost loop; then, when all slices have come to it: where the loop goes on. */
int hg_wide_may_leave(const wide *w, uint32_t jump);
uint32_t hg_wide_leave(wide *w, uint32_t jump);
void hg_wide_end_loops(wide *w); /* releases what is left */

/* ---- the others -------------------------------------------------------------------------------------------------- */

void hg_wide_begin_memory(wide *w);
void hg_wide_forget(wide *w); /* nothing is known of shared memory from here on */
/* 1 if it has done an access. */
int hg_wide_access(wide *w, const vector_insn *insn, uint32_t slice);
int hg_wide_collect(wide *w, uint32_t insn); /* 1 if a collective has been written out */
void hg_wide_tidy(wide *w);

#endif
