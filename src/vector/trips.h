/* trips.h - how many back-edges a lane can take at most. */
#ifndef HG_VECTOR_TRIPS_H
#define HG_VECTOR_TRIPS_H

#include "vector/lower.h"

/* Over the whole program, loops of the function library not counted; UINT64_MAX: not known. */
uint64_t hg_vector_most_steps(const vector_lowering *l);

#endif
