/* vector_passes.h - the passes of vector code before machine code (passes.def says in which order they run, and why),
 * and the questions that are asked of a program before them. */
#ifndef HG_VECTOR_PASSES_H
#define HG_VECTOR_PASSES_H

#include "backend/cpu/native/native.h"

/* Each pass rewrites `v`, whose arrays are its own, in place; b->vector is `v`. *fired: how often it did its work.
 * HG_UNSUPPORTED: there is no such version of the program. After a failure `v` can only be released. */
#define PASS(id, stage, ranges, purpose) \
  hg_status hg_native_pass_##id(native_build *b, hg_vector *v, uint32_t *fired);
#include "backend/cpu/native/passes.def"
#undef PASS

/* check.c: runs hg_vector_check on `v`, which a pass has left, and checks what the operations of machine code
 * promise. */
hg_status hg_native_check(const native_build *b, const hg_vector *v, int has_ranges);
/* quotient.c: 1 if there is a division of f32. */
int hg_native_has_divisions(const hg_vector *v);
/* lane_rows.c: 1 if the version for lanes in rows may exist. */
int hg_native_divides_lanes(const hg_vector *v);
/* run_invariants.c: 1 if there may be something that is the same in a run of lanes. */
int hg_native_has_invariants(const hg_vector *v);
/* straight.c: 0 if the block's code cannot be straight-line code. */
int hg_native_may_be_straight(const native_build *b, const hg_vector *v);
/* Per register: 1 if it has the same value in all lanes of the block wherever it is written. All lanes take the same
 * way, except for code under masks. */
void hg_native_find_alike(const hg_vector *vector, uint8_t *alike);

#endif
