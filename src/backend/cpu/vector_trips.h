/* vector_trips.h - how many back-edges a lane can take at most. */
#ifndef HG_CPU_VECTOR_TRIPS_H
#define HG_CPU_VECTOR_TRIPS_H

#include "backend/cpu/vector_lower.h"

/* Over the whole program, loops of the function library not counted; UINT64_MAX: not known. */
uint64_t hg_vector_most_steps(const vector_lowering *l);

#endif
