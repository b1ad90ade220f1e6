/* build_ssa.h - from a verified program to SSA. */
#ifndef HG_COMPILER_BUILD_SSA_H
#define HG_COMPILER_BUILD_SSA_H

#include "atlas/program.h"
#include "ir/ssa.h"

/* Fills an initialised unit. HG_OUT_OF_MEMORY; release the unit whatever the result. */
hg_status hg_build_ssa(const atlas_program *program, ssa_unit *unit);

/* The same for a function of a library: arguments are SSA_ARGUMENT values, an exit holds the result, constant tables
 * are marked SSA_LIBRARY. `end_node` is one past the function's last node. */
hg_status hg_build_function_ssa(const atlas_program *library, const atlas_entry *entry, uint32_t end_node,
                                ssa_unit *unit);

#endif
