/* collectives.h - collectives that do not depend on one another, brought together. */
#ifndef HG_COMPILER_COLLECTIVES_H
#define HG_COMPILER_COLLECTIVES_H

#include "ir/ssa.h"

typedef enum hg_collective_kind { HG_NO_COLLECTIVE, HG_REDUCTION, HG_SCAN, HG_VOTE } hg_collective_kind;
hg_collective_kind hg_collective_kind_of(const ssa_insn *insn);

/* In each block of a scheduled unit, collectives of one kind that do not depend on one another come to stand in a row,
 * where nothing but values without effects and other collectives was between them, or with past_loads loads: what does
 * not depend on them goes before, the rest behind. HG_OUT_OF_MEMORY. */
hg_status hg_gather_collectives(ssa_unit *unit, int past_loads);

#endif
