/* native_plan.h - the plan of a kernel while it is made, shared by its files: plan.c (what each value needs, how many
 * vectors are interleaved), steps.c (where the program is cut), registers.c (register allocation). */
#ifndef HG_NATIVE_PLAN_H
#define HG_NATIVE_PLAN_H

#include "backend/cpu/native/native.h"

typedef struct native_plan {
  native_build *b;
  const hg_vector *v;
  uint32_t insn_count, reg_count; /* reg_count: with the predicate of the lanes that have not ended, the last one */
  uint32_t *starts, *ends; /* per instruction: values whose live range starts there, or ends there; lists by next */
  uint32_t *next_start, *next_end;/* per register */
  uint32_t *step_of;              /* per instruction */
  uint8_t *cut;                   /* per instruction: a step begins there */
  uint8_t *cold;                  /* per instruction: see find_cold, plan.c */
  uint8_t *depth;                 /* per instruction: of loops */
  uint32_t *spill_cost;           /* per register, in programs with loops: roughly how often it is used */
  uint8_t *is_read;               /* per register: something else reads it than accesses that need no check, as their
                                     index: see find_indices, plan.c */
  uint8_t *loop_uses;             /* per register: instructions in loops that read it; 255: many, or one writes it */
  int32_t *pressure;              /* per instruction: how much the register pressure of one copy changes; in pieces, */
  int32_t *shared;                /* of uniform values, */
  int32_t *masks;                 /* of values in mask registers, */
  int32_t *in_memory;             /* and of values that loops only read, once */
  uint32_t free_vectors, free_masks; /* sets of registers */
  uint32_t *active;               /* values that are in machine registers */
  uint32_t *place;                /* per register: its place in `active`; VECTOR_NONE: not there */
  uint32_t active_count;
  uint32_t last_slot;             /* bytes of the frame allocated so far */
} native_plan;

static inline native_plan native_new_plan(native_build *b) {
  return (native_plan){.b = b, .v = b->vector, .insn_count = (uint32_t)b->vector->insns.count,
                       .reg_count = (uint32_t)b->vector->regs.count + 1};
}

/* steps.c: fills the build's steps, and step_of; of the plan it needs `cut` and step_of, zeros. */
hg_status hg_native_cut(native_plan *plan);
/* registers.c: registers, or slots from last_slot on, for all values that are to have registers. */
void hg_native_allocate(native_plan *plan);

#endif
