/* verify_shape.h - the checks that look at one declaration or one instruction at a time. */
#ifndef HG_ATLAS_VERIFY_SHAPE_H
#define HG_ATLAS_VERIFY_SHAPE_H

#include "atlas/program.h"

/* Name, block, symbols, constant data, labels, entries. HG_VERIFY with a sentence that lacks only the program's name.
 */
hg_status atlas_verify_declarations(const atlas_program *program);

/* One instruction: code, type, operands in range and of the kind its form asks for, parameters used as declared.
 * HG_VERIFY with the reason alone. */
hg_status atlas_verify_insn(const atlas_program *program, const atlas_insn *insn);

#endif
