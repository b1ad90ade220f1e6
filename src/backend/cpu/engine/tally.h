/* tally.h - privatised accumulators: a small buffer in which a launch only adds up, as histograms and counters do, has
 * a copy for each worker, and the copies are added to it after the last lane. Workers then need no locked instructions,
 * and do not contend for cache lines. */
#ifndef HG_ENGINE_TALLY_H
#define HG_ENGINE_TALLY_H

#include "backend/cpu/engine/engine.h"

/* What a launch does with a symbol. */
struct cpu_tally {
  uint16_t op;   /* the only atomic on the symbol; 0: workers have no copies */
  uint8_t type;
  uint32_t bytes;
};

/* Fills `tallies`, one a symbol, for so many workers; returns the bytes that each worker needs. Integer atomics whose
 * old value is not used commute, and a buffer that only they name is not accessed otherwise in the launch: see atlas.h
 * about overlapping ranges. */
uint64_t hg_cpu_find_tallies(const cpu_launch *run, uint32_t workers, cpu_tally tallies[ATLAS_MAX_SYMBOLS]);

/* Creates a worker's copies in `memory`; adds them to the buffers. */
void hg_cpu_begin_tallies(cpu_worker *w, uint8_t *memory);
void hg_cpu_merge_tallies(const cpu_worker *w);

#endif
