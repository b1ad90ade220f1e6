/* inline.h - a program's code with every call inlined, as nodes of a control-flow graph. */
#ifndef HG_ATLAS_INLINE_H
#define HG_ATLAS_INLINE_H

#include "atlas/program.h"

/* Appends to program->nodes everything that control can reach from instruction `start`. Node numbers are absolute; the
 * first appended node is the start. HG_VERIFY with the instruction in *bad_insn and the reason alone as the last error,
 * for the caller to make a sentence of; HG_OUT_OF_MEMORY. */
hg_status atlas_inline_calls(atlas_program *program, uint32_t start, int is_function, uint32_t *bad_insn);

#endif
