/* canon.h - the canonical form: what makes two programs the same program.
 *
 * verify -> SSA -> (value numbering, phi merging, flow cleaning, dead code removal) until nothing changes -> one order
 * -> one numbering. The bytes of the result, hashed, are the program's identity. Frozen: a change of any rule is a new
 * ATLAS_CANON_VERSION. */
#ifndef HG_COMPILER_CANON_H
#define HG_COMPILER_CANON_H

#include "atlas/program.h"
#include "compiler/canon/passes.h"

/* The canonical unit of a program: blocks and values numbered in the canonical walk, values in an order where arguments
 * come first (phi arguments around loops apart). `unit` must not be initialised; release it whatever the result. `hook`
 * may be NULL. */
hg_status hg_canonicalise(const atlas_program *program, const hg_pass_hook *hook, ssa_unit *unit);

/* Sets ssa_block.loop_insn of each loop header to the instruction of its last back edge, so that all engines name the
 * same one in a step fault, whichever back edges their passes have joined. hg_canonicalise has done it. */
void hg_name_loops(ssa_unit *unit);

/* The passes of hg_canonicalise alone, on a unit of that program in SSA form. They change nothing in a canonical
 * unit. */
hg_status hg_canon_passes(const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook);

/* Appends the canonical bytes: versions, block requirement, parameters, constant data, blocks and values. */
hg_status hg_canon_bytes(const atlas_program *program, const ssa_unit *unit, hg_array *bytes);

/* SHA-256 of those bytes. */
hg_status hg_canon_hash(const atlas_program *program, const ssa_unit *unit, uint8_t digest[ATLAS_HASH_BYTES]);

#endif
