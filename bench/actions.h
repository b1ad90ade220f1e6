/* actions.h - what the benchmarks in C of single calls share: rows of many samples, and where a run has no engine. */
#ifndef HOLOGRAM_BENCH_ACTIONS_H
#define HOLOGRAM_BENCH_ACTIONS_H

#include "runtime/runtime.h"

#include <stdint.h>

/* Reads "[--json]"; anything else ends the program. `heading` stands above the rows where they are text. */
void bench_begin(const char *name, int argc, char **argv, const char *heading);

/* A row: nanoseconds of one action, the 10th percentile, the median and the 90th of many samples of `batch` actions,
 * with a pause of pause_ns before each. An action that fails ends the program. */
void bench_measure(const char *row, hg_status (*action)(void *user), void *user, uint32_t batch, uint64_t pause_ns);

/* The exit status; what failed, if something did, is said first. */
int bench_end(hg_status status);

/* While it is the executor's backend every launch does nothing: rows show the runtime alone. */
hg_backend bench_without_engine(const hg_executor *executor);

/* z[lane] = x[lane] + y[lane] */
extern const char bench_add_text[];

#endif
