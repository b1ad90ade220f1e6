/* tally.h - privatised accumulators. If a launch only adds up in a small buffer, as histograms and counters do, each
 * worker gets a copy, and the copies are added to the buffer after the last lane. So workers need no locked
 * instructions and do not contend for cache lines. */
#ifndef HG_ENGINE_TALLY_H
#define HG_ENGINE_TALLY_H

#include "backend/cpu/engine/engine.h"

/* What a launch does with a symbol. */
struct cpu_tally {
  uint16_t op;   /* the only atomic on the symbol; 0: no copies */
  uint8_t type;
  uint32_t bytes;
};

/* Fills `tallies`, one for each symbol, for so many workers; returns the bytes that each worker needs. Integer atomics
 * whose old value is unused commute, and the launch accesses a buffer that only they name in no other way: see atlas.h
 * about overlapping ranges. */
uint64_t hg_cpu_find_tallies(const cpu_launch *run, uint32_t workers, cpu_tally tallies[ATLAS_MAX_SYMBOLS]);

/* Initialises a worker's copies in `memory`; adds them to the buffers. */
void hg_cpu_begin_tallies(cpu_worker *w, uint8_t *memory);
void hg_cpu_merge_tallies(const cpu_worker *w);

#endif
