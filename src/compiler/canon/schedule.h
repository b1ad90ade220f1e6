/* schedule.h - gives every pure value a place. */
#ifndef HG_COMPILER_SCHEDULE_H
#define HG_COMPILER_SCHEDULE_H

#include "atlas/program.h"
#include "ir/ssa.h"

/* Puts each pure value of a canonical unit into the effect list of a block, after its arguments and before its users:
 * sunk as far as its uses allow, so that only lanes that need it compute it, but hoisted out of every loop in which it
 * is invariant. Constants, scalars and special registers get no place: they are operands. HG_OUT_OF_MEMORY. */
hg_status hg_schedule(ssa_unit *unit);

/* The same without hoisting: more work, and lower register pressure. */
hg_status hg_schedule_late(ssa_unit *unit);

/* As hg_schedule, but folds (trees of binary operations on phis with one use) are computed as soon as their arguments
 * are there, so that few values wait in registers for the next branch. */
hg_status hg_schedule_folds(ssa_unit *unit);

/* Takes pure values out of the lists again, for passes that work on unscheduled units. */
void hg_unschedule(ssa_unit *unit);

#endif
