/* aliasing.h - which memory instructions can see each other's effects. */
#ifndef HG_COMPILER_ALIASING_H
#define HG_COMPILER_ALIASING_H

#include "atlas/program.h"
#include "ir/ssa.h"

/* Locations are numbered: one for each symbol, then the boundary pool, then the constant tables of the function
 * library. */
static inline uint32_t hg_location_count(const atlas_program *program) { return (uint32_t)program->symbols.count + 2; }

/* The location a load, store or atomic names. */
uint32_t hg_location_of(const atlas_program *program, const ssa_insn *insn);

/* How many of the arguments of a load, store or atomic make the address. */
uint32_t hg_address_args(const ssa_insn *insn);

/* 1 for instructions that order all memory: barriers and fences. */
int hg_orders_all(const ssa_insn *insn);

/* Per location: the group it belongs to. Locations in one group may be the same memory. Two bindings never overlap
 * where one is written, with one exception: identical ranges that the program reaches only as [x + lane]. So all
 * buffers reached only that way and of one element size form a group. Which those are is asked of the unit once, when
 * everything else has been done under the assumption that all are: so moves, dead and unreachable accesses do not
 * count, and the answer is part of the canonical form. `group` has hg_location_count entries. */
void hg_alias_groups(const atlas_program *program, const ssa_unit *unit, uint32_t *group);

/* Fills unit->other_forms. */
void hg_classify_buffers(ssa_unit *unit);

/* 1 if nothing in the program writes the group of this location. */
int hg_is_read_only(const atlas_program *program, const uint32_t *group, uint32_t location);

#endif
