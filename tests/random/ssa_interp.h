/* ssa_interp.h - runs a unit in SSA form the way atlas_interpret runs a program, so that every pass can be held against
 * the reference machine. */
#ifndef HG_TESTS_SSA_INTERP_H
#define HG_TESTS_SSA_INTERP_H

#include "atlas/interp.h"
#include "ir/ssa.h"

/* The unit is of that program, raw or canonical, between passes or after them. HG_OUT_OF_MEMORY; HG_INVALID_ARGUMENT
 * with what is wrong where the unit cannot be run (lanes that wait at different places: a bug of a pass). */
hg_status ssa_interpret(const hg_allocator *allocator, const atlas_program *program, const ssa_unit *unit,
                        atlas_launch *launch);

#endif
