/* ssa_print.h - the readable form of a unit: `hologram emit --target ssa`, `hologram equal`. */
#ifndef HG_COMPILER_SSA_PRINT_H
#define HG_COMPILER_SSA_PRINT_H

#include "atlas/program.h"
#include "ir/ssa.h"

/* Appends text (char, no NUL). With `names`, parameters are called by their names, else by their numbers, so that
 * programs with one canonical form print alike. HG_OUT_OF_MEMORY. */
hg_status hg_ssa_print(const atlas_program *program, const ssa_unit *unit, int names, hg_array *text);

#endif
