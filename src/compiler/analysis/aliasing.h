/* aliasing.h - which memory instructions can see each other's effects. */
#ifndef HG_COMPILER_ALIASING_H
#define HG_COMPILER_ALIASING_H

#include "atlas/program.h"
#include "ir/ssa.h"

/* Locations are numbered: one for each symbol, then the boundary pool, then the constant tables of the function
 * library. */
static inline uint32_t hg_location_count(const atlas_program *program) { return (uint32_t)program->symbols.count + 2; }

/* The location that a load, store or atomic accesses. */
uint32_t hg_location_of(const atlas_program *program, const ssa_insn *insn);

/* The number of arguments of a load, store or atomic that belong to its address; they are the first ones. */
uint32_t hg_address_args(const ssa_insn *insn);

/* 1 for barriers and fences, which order all memory except what hg_is_private names. */
int hg_orders_all(const ssa_insn *insn);
/* 1 for local arrays, which no other lane sees: only their own accesses order them. */
int hg_is_private(const atlas_program *program, uint32_t location);

/* Fills group[location]: locations with the same number may alias. Two bindings never overlap if one of them is
 * written, with one exception: identical ranges that the program accesses only as [x + lane]. So all buffers that are
 * accessed only in that way and have one element size form a class. Buffers are classified once, after the passes have
 * come to rest under the assumption that all of them are of that kind: so moves, dead accesses and unreachable ones
 * make no difference. The classification is part of the canonical form. `group` has hg_location_count entries. */
void hg_alias_groups(const atlas_program *program, const ssa_unit *unit, uint32_t *group);

/* Fills unit->other_forms: which buffers are accessed in other ways than as [x + lane]. */
void hg_classify_buffers(ssa_unit *unit);

/* 1 if nothing in the program writes the group of this location. */
int hg_is_read_only(const atlas_program *program, const uint32_t *group, uint32_t location);

#endif
