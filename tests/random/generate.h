/* generate.h - random programs that verify, with a launch each.
 *
 * No program races: a lane writes its own elements only, lanes meet in shared memory between barriers, and an atomic
 * that lanes share has an operation in which their order does not matter, or the same operands in all of them, and a
 * result that nobody reads. So there is one answer, whatever the order of lanes. */
#ifndef HG_TESTS_GENERATE_H
#define HG_TESTS_GENERATE_H

#include "draft.h"

/* About `size` instructions, of a generation (draft.h) and those before it. The same seed, size and generation give the
 * same program and launch. Most verify; a caller passes over those that do not. Release both. */
void generate(uint64_t seed, uint32_t size, int generation, draft *d, test_launch *l);

/* The program and launch that test_random and the recorder call by a seed. Size 0: one that the seed chooses. */
void generate_of_seed(uint64_t seed, uint32_t size, draft *d, test_launch *l);

#endif
