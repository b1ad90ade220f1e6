/* move_rows.h - whole rows by number on the CPU: copied, or added up, by vectors and on several threads. */
#ifndef HG_CPU_ROWS_H
#define HG_CPU_ROWS_H

#include "atlas/interp.h"
#include "backend/backend.h"
#include "backend/cpu/engine/detect.h"

/* Does what launch->rows says, by so many threads; 0: as many as pay off, at most launch->most_threads. From so many
 * bytes of y on they pass the caches. Returns 0 where there is no way for that, or a number is out of range: the
 * program is to run, for which y has any contents, and `counted` and `begun` what they had. */
int hg_cpu_move_rows(cpu_isa isa, const atlas_launch *launch, uint64_t stream_bytes, uint32_t threads);

#endif
