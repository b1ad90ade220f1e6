/* check_ranges.h - what the analysis says of values and accesses, held against every value that a run computes. */
#ifndef HG_TESTS_CHECK_RANGES_H
#define HG_TESTS_CHECK_RANGES_H

#include "atlas/interp.h"
#include "ir/ssa.h"

typedef struct ranges_run {
  const atlas_program *program;
  ssa_unit *unit;
  int knows_launch; /* 1: the analysis is told all of the launch; 0: nothing */
} ranges_run;

/* Analyses the unit of `context`, a ranges_run, and runs it. HG_INVALID_ARGUMENT with the first value that lies outside
 * of its range or is no multiple of its alignment; with an access that is out of bounds although it was proven to be in
 * bounds; or where a lane takes more steps than it can. */
hg_status check_ranges(const void *context, atlas_launch *launch);

#endif
