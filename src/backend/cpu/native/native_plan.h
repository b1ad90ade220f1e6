/* native_plan.h - the plan of a kernel while it is made, shared by its files: plan.c (the location of each value, how
 * many vectors are interleaved), steps.c (where the program is cut), registers.c (register allocation). */
#ifndef HG_NATIVE_PLAN_H
#define HG_NATIVE_PLAN_H

#include "backend/cpu/native/native.h"

typedef struct native_plan {
  native_build *b;
  const hg_vector *v;
  uint32_t insn_count, reg_count; /* reg_count includes the predicate of the lanes that have not ended, as the last
                                     one */
  uint32_t *starts, *ends; /* per instruction: the values whose live range starts, or ends, there; lists linked by
                              next_start, next_end */
  uint32_t *next_start, *next_end;/* per register */
  uint32_t *step_of;              /* per instruction */
  uint8_t *cut;                   /* per instruction: 1: a step begins there */
  uint8_t *cold;                  /* per instruction: see find_cold, plan.c */
  uint8_t *depth;                 /* per instruction: the number of loops around it */
  uint32_t *spill_cost;           /* per register, in programs with loops: an estimate of how often it is used */
  uint8_t *is_read;               /* per register: 1 if it is read other than as the index of accesses that need no
                                     check: see find_indices, plan.c */
  uint8_t *loop_uses;             /* per register: instructions in loops that read it; 255: many of them, or an
                                     instruction writes it */
  int32_t *pressure;              /* per instruction: the change in register pressure of one copy, in pieces, */
  int32_t *shared;                /* of uniform values, */
  int32_t *masks;                 /* of values in mask registers, */
  int32_t *in_memory;             /* and, counted once, of values that loops only read */
  uint32_t free_vectors, free_masks; /* sets of free registers */
  uint32_t *active;               /* values that are in machine registers */
  uint32_t *place;                /* per register: its position in `active`; VECTOR_NONE: it is not there */
  uint32_t active_count;
  uint32_t last_slot;             /* bytes of the frame allocated so far */
} native_plan;

static inline native_plan native_new_plan(native_build *b) {
  return (native_plan){.b = b, .v = b->vector, .insn_count = (uint32_t)b->vector->insns.count,
                       .reg_count = (uint32_t)b->vector->regs.count + 1};
}

/* steps.c: fills the build's steps and step_of. It reads `cut` and expects step_of to be zero. */
hg_status hg_native_cut(native_plan *plan);
/* registers.c: gives registers, or slots from last_slot on, to all values that need them. */
void hg_native_allocate(native_plan *plan);
/* lane_registers.c: the same for a target of one lane. */
void hg_native_allocate_lanes(native_plan *plan);

#endif
