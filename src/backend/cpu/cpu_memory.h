/* cpu_memory.h - the memory of a CPU device: allocations for buffers, and large copies and fills.
 *
 * A caller's allocator serves all requests. Without one, large buffers are mapped in huge pages and cached when freed:
 * the first touch of fresh pages takes several times as long as a kernel on them. */
#ifndef HG_CPU_MEMORY_H
#define HG_CPU_MEMORY_H

#include "base/memory.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "base/os.h"

enum { HG_CPU_LARGE_BYTES = HG_HUGE_PAGE_BYTES }; /* buffers from this size on are mapped */

#define HG_CPU_KEPT_UNKNOWN UINT64_MAX /* determined when memory is first freed */

/* Not locked: callers make one call at a time. */
typedef struct hg_cpu_memory {
  hg_allocator allocator;
  uint8_t maps_large;                  /* the caller has given no allocator */
  uint32_t most_threads;               /* threads of a copy or fill; 0: no bound */
  uint64_t stream_bytes;               /* hg_stream_threshold() */
  uint64_t kept_bytes, kept_bytes_most;
  uint32_t staggered;                  /* counts the allocations that `stagger` has placed */
  uint32_t kept_count;
  hg_pages kept[CPU_KEPT_BLOCKS];   /* freed memory, the oldest first */
} hg_cpu_memory;

void hg_cpu_memory_open(hg_cpu_memory *memory, const hg_allocator *allocator);
void hg_cpu_memory_close(hg_cpu_memory *memory);
/* The most bytes of cached memory; sets that bound; returns all cached memory to the system. */
uint64_t hg_cpu_kept_most(hg_cpu_memory *memory);
void hg_cpu_keep(hg_cpu_memory *memory, uint64_t byte_count);
void hg_cpu_trim(hg_cpu_memory *memory);

/* byte_count bytes, aligned as in hg_backend.allocate; they read as zero if `zeroed`. */
hg_status hg_cpu_allocate(hg_cpu_memory *memory, uint64_t byte_count, uint32_t alignment, int zeroed,
                          uint8_t **address);
void hg_cpu_free(hg_cpu_memory *memory, uint8_t *address);
/* Memory that the last of several holders frees. */
void hg_cpu_share(uint8_t *address, uint32_t holders);
void hg_cpu_let_go(hg_cpu_memory *memory, uint8_t *address);

/* The ranges may overlap. */
void hg_cpu_copy(const hg_cpu_memory *memory, uint8_t *destination, const uint8_t *source, uint64_t byte_count);
/* Repeats the 8 bytes of `pattern`. */
void hg_cpu_fill(const hg_cpu_memory *memory, uint8_t *destination, uint64_t byte_count, uint64_t pattern);

/* From so many bytes written by one launch, copy or fill on, stores bypass the caches: HOLOGRAM_STREAM_BYTES, else the
 * size of the last-level cache. Reads files, so ask once for each device. */
uint64_t hg_stream_threshold(void);

/* For a log: the ignored setting and why; NULL: none. */
const char *hg_stream_remark(void);

#endif
