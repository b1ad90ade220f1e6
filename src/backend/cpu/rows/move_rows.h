/* move_rows.h - rows by number on the CPU: copied or added up, in vectors and by several threads. */
#ifndef HG_CPU_ROWS_H
#define HG_CPU_ROWS_H

#include "atlas/interp.h"
#include "backend/backend.h"
#include "backend/cpu/engine/detect.h"

/* Does what launch->rows says with so many threads; 0: as many as pay off, at most launch->most_threads. If y has at
 * least stream_bytes, stores bypass the caches. Returns 0 if it cannot, or if a number is out of range: then the
 * program must run; y may have any contents, `counted` and `begun` are unchanged. */
int hg_cpu_move_rows(cpu_isa isa, const atlas_launch *launch, uint64_t stream_bytes, uint32_t threads);

#endif
