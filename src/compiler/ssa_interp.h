/* ssa_interp.h - the reference machine for units in SSA form: runs a unit the way atlas_interpret runs a program. It is
 * the engine that runs canonical programs as they are, and tests compare every pass with it. */
#ifndef HG_COMPILER_SSA_INTERP_H
#define HG_COMPILER_SSA_INTERP_H

#include "atlas/machine.h"
#include "ir/ssa.h"

/* The unit belongs to that program, raw or canonical, between passes or after them. HG_OUT_OF_MEMORY;
 * HG_INVALID_ARGUMENT, with what is wrong, if the unit cannot be run (lanes that wait at different places: a bug of a
 * pass). */
hg_status hg_ssa_interpret(const hg_allocator *allocator, const atlas_program *program, const ssa_unit *unit,
                           atlas_launch *launch);

/* Receives each value as a lane computes it; for a load, store or atomic also its arguments, index first. For tests of
 * what analyses claim. */
typedef struct hg_ssa_watch {
  void (*saw)(void *user, uint32_t lane, uint32_t value, uint64_t bits, const uint64_t *args); /* lane: of the block */
  void *user;
} hg_ssa_watch;
hg_status hg_ssa_interpret_watched(const hg_allocator *allocator, const atlas_program *program, const ssa_unit *unit,
                                   const hg_ssa_watch *watch, atlas_launch *launch);

/* An effect as an instruction that the machine can execute: its operands are registers of a small window, argument i in
 * register i, and its result goes to register HG_SSA_RESULT. */
enum { HG_SSA_WINDOW = 8, HG_SSA_RESULT = 7 };
atlas_insn hg_ssa_as_insn(const ssa_insn *insn);

/* Runs such an instruction in one lane whose window holds the arguments; atlas_machine_block runs collectives. */
uint64_t hg_ssa_effect(machine *m, lane *l, const atlas_insn *insn);

#endif
