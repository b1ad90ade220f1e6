/* vector_interp.h - runs vector code in the plainest way, lane by lane within each instruction, so that hg_vectorise
 * can be held against the reference machine without an engine between. */
#ifndef HG_TESTS_VECTOR_INTERP_H
#define HG_TESTS_VECTOR_INTERP_H

#include "atlas/interp.h"
#include "vector/vector.h"

/* HG_OUT_OF_MEMORY; HG_INVALID_ARGUMENT with what is wrong with the code. */
hg_status vector_interpret(const hg_allocator *allocator, const atlas_program *program, const hg_vector *v,
                           atlas_launch *launch);

#endif
