/* cpu_memory.h - the memory of a CPU device: where buffers' bytes come from, and large copies and fills.
 *
 * A caller's allocator serves everything. Without one, large buffers are mapped from the system in huge pages and kept
 * for the next one when they are freed: the first touch of fresh pages costs several times what a kernel takes over
 * them. */
#ifndef HG_CPU_MEMORY_H
#define HG_CPU_MEMORY_H

#include "base/memory.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "base/os.h"

enum { HG_CPU_LARGE_BYTES = HG_HUGE_PAGE_BYTES }; /* buffers from this size on are mapped */

#define HG_CPU_KEPT_UNKNOWN UINT64_MAX /* found out when a first block is freed */

/* Not locked: whoever allocates or frees sees to it that one call is made at a time. */
typedef struct hg_cpu_memory {
  hg_allocator allocator;
  uint8_t maps_large;                  /* the allocator is not the caller's */
  uint32_t most_threads;               /* of a copy or fill; 0: no bound */
  uint64_t stream_bytes;               /* hg_stream_threshold() */
  uint64_t kept_bytes, kept_bytes_most;
  uint32_t staggered;                  /* allocations that began each at another place in a page than the last */
  uint32_t kept_count;
  hg_pages kept[CPU_KEPT_BLOCKS];   /* free blocks, the one freed longest ago first */
} hg_cpu_memory;

void hg_cpu_memory_open(hg_cpu_memory *memory, const hg_allocator *allocator);
void hg_cpu_memory_close(hg_cpu_memory *memory);
/* How many bytes free blocks may have together, and another bound for that; and gives all of them back. */
uint64_t hg_cpu_kept_most(hg_cpu_memory *memory);
void hg_cpu_keep(hg_cpu_memory *memory, uint64_t byte_count);
void hg_cpu_trim(hg_cpu_memory *memory);

/* byte_count bytes at a multiple of `alignment`, as hg_backend.allocate has it; they read as zero if `zeroed`. */
hg_status hg_cpu_allocate(hg_cpu_memory *memory, uint64_t byte_count, uint32_t alignment, int zeroed,
                          uint8_t **address);
void hg_cpu_free(hg_cpu_memory *memory, uint8_t *address);
/* Memory that several must let go, the last of whom frees it. */
void hg_cpu_share(uint8_t *address, uint32_t holders);
void hg_cpu_let_go(hg_cpu_memory *memory, uint8_t *address);

/* The ranges may overlap. */
void hg_cpu_copy(const hg_cpu_memory *memory, uint8_t *destination, const uint8_t *source, uint64_t byte_count);
/* Repeats the 8 bytes of `pattern`. */
void hg_cpu_fill(const hg_cpu_memory *memory, uint8_t *destination, uint64_t byte_count, uint64_t pattern);

/* From how many bytes written by one launch, copy or fill on the stores should go past the caches:
 * HOLOGRAM_STREAM_BYTES, else the size of the last-level cache. Reads files: ask once a device. */
uint64_t hg_stream_threshold(void);

/* For a log: which setting is ignored and why; NULL: none. */
const char *hg_stream_remark(void);

#endif
