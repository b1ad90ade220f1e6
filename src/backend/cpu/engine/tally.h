/* tally.h - buffers in which a launch only adds up, as histograms and counters do: each worker has a small one for
 * itself, and they are brought together behind the last lane. Workers then need no locked instructions, and do not take
 * a cache line from each other with each of them. */
#ifndef HG_ENGINE_TALLY_H
#define HG_ENGINE_TALLY_H

#include "backend/cpu/engine/engine.h"

/* What a launch does with a symbol. */
struct cpu_tally {
  uint16_t op;   /* the only atomic that names it; 0: it has no copies */
  uint8_t type;
  uint32_t bytes;
};

/* Fills `tallies`, one a symbol, for so many workers; how many bytes each of them needs. Integer atomics whose old
 * value nobody wants give the same answer in any order, and a buffer that nothing else names is nobody else's in the
 * launch: see atlas.h about overlapping ranges. */
uint64_t hg_cpu_find_tallies(const cpu_launch *run, uint32_t workers, cpu_tally tallies[ATLAS_MAX_SYMBOLS]);

/* A worker's copies, in `memory`; and what it has counted, added to the buffers. */
void hg_cpu_begin_tallies(cpu_worker *w, uint8_t *memory);
void hg_cpu_end_tallies(const cpu_worker *w);

#endif
