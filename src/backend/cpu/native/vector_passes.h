/* vector_passes.h - the passes of vector code for machine code (passes.def says in which order they run, and why), and
 * what is asked of a program before them. */
#ifndef HG_VECTOR_PASSES_H
#define HG_VECTOR_PASSES_H

#include "backend/cpu/native/native.h"

/* Each rewrites `v`, whose arrays are its own, in place; b->vector is `v`. *fired: how often it has done what it is
 * for. HG_UNSUPPORTED: this version of the program is not to be. On failure `v` is only good to be released. */
#define PASS(id, stage, ranges, purpose) \
  hg_status hg_native_pass_##id(native_build *b, hg_vector *v, uint32_t *fired);
#include "backend/cpu/native/passes.def"
#undef PASS

/* check.c: hg_vector_check of `v`, which a pass has left, and what the operations of machine code promise. */
hg_status hg_native_check(const native_build *b, const hg_vector *v, int has_ranges);
/* quotient.c: 1 if there is a division of f32. */
int hg_native_has_divisions(const hg_vector *v);
/* straight.c: 0 if the block's code cannot be straight-line code. */
int hg_native_may_be_straight(const native_build *b, const hg_vector *v);
/* Per register, 1: it is the same in all lanes of the block wherever it is written. Lanes go the same way, but for code
 * under masks. */
void hg_native_find_alike(const hg_vector *vector, uint8_t *alike);

#endif
