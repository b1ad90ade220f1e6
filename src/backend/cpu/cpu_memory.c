/* cpu_memory.c - allocations, the cache of freed ones, and copies and fills by all threads. */
#include "backend/cpu/cpu_memory.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "backend/backend.h"
#include "backend/cpu/engine/stream.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/threads.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum {
  SMALL_PAGE_BYTES = 4096, /* smaller allocations are rounded up to it */
  STAGGER_BYTES = SMALL_PAGE_BYTES + CPU_STAGGER_STEP
};

/* Before every allocation: its origin. */
typedef struct block_head {
  void *block;       /* of the allocator; NULL: the origin is `pages` */
  hg_pages pages;
  uint32_t holders;  /* holders that have not released it: see hg_cpu_share */
} block_head;

static_assert(sizeof(block_head) <= HG_BACKEND_MIN_ALIGNMENT, "a block's head fits in front of any allocation");

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static hg_setting_state wanted_threshold(uint64_t *byte_count) {
  return hg_setting_number("HOLOGRAM_STREAM_BYTES", 0, UINT64_MAX, byte_count);
}

uint64_t hg_stream_threshold(void) {
  uint64_t byte_count = 0;
  if (wanted_threshold(&byte_count) == HG_SETTING_GIVEN) return byte_count;
  byte_count = hg_last_level_cache();
  return byte_count > 0 ? byte_count : CPU_STREAM_BYTES;
}

const char *hg_stream_remark(void) {
  uint64_t ignored = 0;
  return wanted_threshold(&ignored) == HG_SETTING_BAD ? "HOLOGRAM_STREAM_BYTES is not a number of bytes and is ignored"
                                                      : NULL;
}

void hg_cpu_memory_open(hg_cpu_memory *memory, const hg_allocator *allocator) {
  *memory = (hg_cpu_memory){.allocator = *allocator,
                            .maps_large = hg_allocator_is_default(allocator) != 0,
                            .stream_bytes = hg_stream_threshold(),
                            .kept_bytes_most = HG_CPU_KEPT_UNKNOWN};
}

/* ---- the cache of freed memory ----------------------------------------------------------------------------------- */

static hg_pages take_kept(hg_cpu_memory *memory, uint32_t index) {
  hg_pages pages = memory->kept[index];
  memory->kept_count--;
  memory->kept_bytes -= pages.byte_count;
  memmove(&memory->kept[index], &memory->kept[index + 1], (memory->kept_count - index) * sizeof pages);
  return pages;
}

static void drop_oldest(hg_cpu_memory *memory) {
  hg_pages pages = take_kept(memory, 0);
  hg_pages_unmap(&pages);
}

/* The smallest cached allocation that is large enough and not much larger; of equal ones the one freed last, which may
 * still be in a processor cache. */
static int find_kept(const hg_cpu_memory *memory, uint64_t byte_count, uint32_t *index) {
  uint64_t best = byte_count + byte_count / 4;
  int found = 0;
  for (uint32_t i = 0; i < memory->kept_count; i++) {
    uint64_t room = memory->kept[i].byte_count;
    if (room < byte_count || room > best) continue;
    best = room;
    *index = i;
    found = 1;
  }
  return found;
}

uint64_t hg_cpu_kept_most(hg_cpu_memory *memory) {
  if (memory->kept_bytes_most == HG_CPU_KEPT_UNKNOWN)
    memory->kept_bytes_most = hg_physical_memory() / CPU_KEPT_FRACTION;
  return memory->kept_bytes_most;
}

static void keep(hg_cpu_memory *memory, const hg_pages *pages) {
  if (pages->byte_count > hg_cpu_kept_most(memory)) {
    hg_pages_unmap(pages);
    return;
  }
  while (memory->kept_count == CPU_KEPT_BLOCKS ||
         memory->kept_bytes > memory->kept_bytes_most - pages->byte_count)
    drop_oldest(memory);
  memory->kept[memory->kept_count++] = *pages;
  memory->kept_bytes += pages->byte_count;
}

/* 1 if there was anything to return to the system. */
static int drop_all(hg_cpu_memory *memory) {
  int any = memory->kept_count > 0;
  while (memory->kept_count > 0) drop_oldest(memory);
  return any;
}

void hg_cpu_keep(hg_cpu_memory *memory, uint64_t byte_count) {
  memory->kept_bytes_most = byte_count < HG_CPU_KEPT_UNKNOWN ? byte_count : HG_CPU_KEPT_UNKNOWN - 1;
  while (memory->kept_bytes > memory->kept_bytes_most) drop_oldest(memory);
}

void hg_cpu_trim(hg_cpu_memory *memory) { drop_all(memory); }

void hg_cpu_memory_close(hg_cpu_memory *memory) { drop_all(memory); }

/* ---- allocations ------------------------------------------------------------------------------------------------- */

static uint8_t *put_head(uint8_t *address, const block_head *head) {
  memcpy(address - sizeof *head, head, sizeof *head);
  return address;
}

/* The allocator promises only C's alignment, so an allocation is enlarged and aligned by hand: one of a page or more,
 * past the page boundary. Processors first compare the page offsets of a load and an older store. A result that begins
 * a few cache lines further into its page than an operand would stall the loads of the next elements. */
static uint8_t *allocate_small(hg_cpu_memory *memory, uint64_t byte_count, uint32_t alignment) {
  if (byte_count >= SMALL_PAGE_BYTES && alignment < SMALL_PAGE_BYTES) alignment = SMALL_PAGE_BYTES;
  uint64_t total = byte_count + alignment + sizeof(block_head);
  if (total > SIZE_MAX / 2) return NULL;
  uint8_t *block = memory->allocator.allocate(memory->allocator.user, (size_t)total);
  if (block == NULL && drop_all(memory)) block = memory->allocator.allocate(memory->allocator.user, (size_t)total);
  if (block == NULL) return NULL;
  uint8_t *first = block + sizeof(block_head);
  return put_head(first + (-(uintptr_t)first & (alignment - 1)), &(block_head){.block = block});
}

static uint64_t round_up(uint64_t byte_count, uint64_t multiple) {
  return (byte_count + multiple - 1) / multiple * multiple;
}

/* How much further into its pages a buffer begins if it is so large that a launch on a few of its size bypasses the
 * caches. Stores are slower at the page offset at which the operands are read, so each allocation gets another offset
 * than the last ones. Measured on Zen 4, 16M elements, one thread, without and with: a + b 4.8 and 4.5 ms, eight
 * operations on two inputs likewise; with three inputs no gain. It also begins in another page, because mappings of the
 * same power of two often lie a multiple of 256 MiB apart, and two operands that do so to within a page evict each
 * other when read side by side (caches select lines by few address bits): eight operations on two inputs of 64M
 * elements take 29.5 ms so, 22.0 ms at any other distance. */
static uint32_t stagger(hg_cpu_memory *memory, uint64_t byte_count, uint32_t alignment) {
  if (byte_count < memory->stream_bytes / CPU_STAGGERED_FRACTION || alignment > CPU_STAGGER_STEP) return 0;
  return memory->staggered++ % CPU_STAGGERS * STAGGER_BYTES;
}

/* *fresh: the pages are new and untouched, so they read as zero. */
static uint8_t *allocate_large(hg_cpu_memory *memory, uint64_t byte_count, uint32_t alignment, int *fresh) {
  uint64_t total =
      byte_count + alignment + CPU_STAGGERS * STAGGER_BYTES; /* the head is in the first `alignment` bytes */
  total = round_up(total, total >= CPU_HUGE_FROM ? HG_HUGE_PAGE_BYTES : SMALL_PAGE_BYTES);
  block_head head = {.block = NULL};
  uint32_t index = 0;
  *fresh = !find_kept(memory, total, &index);
  if (!*fresh) head.pages = take_kept(memory, index);
  else if (!hg_pages_map(total, &head.pages) && (!drop_all(memory) || !hg_pages_map(total, &head.pages))) return NULL;
  return put_head(head.pages.first + alignment + stagger(memory, byte_count, alignment), &head);
}

hg_status hg_cpu_allocate(hg_cpu_memory *memory, uint64_t byte_count, uint32_t alignment, int zeroed,
                          uint8_t **address) {
  int fresh = 0, large = memory->maps_large && byte_count >= HG_CPU_LARGE_BYTES;
  *address = NULL;
  if (byte_count <= SIZE_MAX / 4)
    *address = large ? allocate_large(memory, byte_count, alignment, &fresh)
                     : allocate_small(memory, byte_count, alignment);
  if (*address == NULL) return hg_fail_memory("a buffer", byte_count);
  if (zeroed && !fresh) hg_cpu_fill(memory, *address, byte_count, 0);
  return HG_OK;
}

void hg_cpu_free(hg_cpu_memory *memory, uint8_t *address) {
  block_head head;
  memcpy(&head, address - sizeof head, sizeof head);
  if (head.block != NULL) hg_release(&memory->allocator, head.block);
  else keep(memory, &head.pages);
}

void hg_cpu_share(uint8_t *address, uint32_t holders) {
  memcpy(address - sizeof(block_head) + offsetof(block_head, holders), &holders, sizeof holders);
}

void hg_cpu_let_go(hg_cpu_memory *memory, uint8_t *address) {
  block_head head;
  memcpy(&head, address - sizeof head, sizeof head);
  if (head.holders <= 1) hg_cpu_free(memory, address);
  else hg_cpu_share(address, head.holders - 1);
}

/* ---- copies and fills -------------------------------------------------------------------------------------------- */

/* A copy, or a fill if `source` is NULL. */
typedef struct transfer {
  uint8_t *destination;
  const uint8_t *source;
  uint64_t byte_count, pattern;
  int streams;
} transfer;

static int is_one_byte(uint64_t pattern) { return pattern == (pattern & 0xff) * UINT64_C(0x0101010101010101); }

static void run_transfer(const transfer *t, uint64_t offset, uint64_t byte_count) {
  uint8_t *to = t->destination + offset;
  size_t size = (size_t)byte_count;
  if (t->source != NULL && t->streams) stream_copy(to, t->source + offset, size);
  else if (t->source != NULL) memcpy(to, t->source + offset, size);
  else if (t->streams) stream_fill(to, size, t->pattern);
  else if (is_one_byte(t->pattern)) memset(to, (int)(t->pattern & 0xff), size);
  else fill_plain(to, size, t->pattern);
}

static void transfer_part(void *user, uint64_t part, uint32_t worker) {
  const transfer *t = user;
  uint64_t offset = part * CPU_COPY_PART_BYTES, left = t->byte_count - offset;
  (void)worker;
  run_transfer(t, offset, left < CPU_COPY_PART_BYTES ? left : CPU_COPY_PART_BYTES);
}

static void run_parts(const hg_cpu_memory *memory, transfer *t) {
  uint64_t parts = t->byte_count / CPU_COPY_PART_BYTES + (t->byte_count % CPU_COPY_PART_BYTES != 0);
  if (parts < 2) run_transfer(t, 0, t->byte_count);
  else
    hg_parallel(hg_parallel_threads(t->byte_count / CPU_COPY_BYTES_PER_NS, memory->most_threads), parts, transfer_part,
                t);
}

void hg_cpu_copy(const hg_cpu_memory *memory, uint8_t *destination, const uint8_t *source, uint64_t byte_count) {
  transfer t = {destination, source, byte_count, 0, byte_count >= memory->stream_bytes};
  uintptr_t to = (uintptr_t)destination, from = (uintptr_t)source;
  uint64_t distance = to > from ? to - from : from - to;
  if (byte_count == 0) return;
  if (distance < byte_count) memmove(destination, source, (size_t)byte_count);
  else run_parts(memory, &t);
}

void hg_cpu_fill(const hg_cpu_memory *memory, uint8_t *destination, uint64_t byte_count, uint64_t pattern) {
  transfer t = {destination, NULL, byte_count, pattern, byte_count >= memory->stream_bytes};
  if (byte_count > 0) run_parts(memory, &t);
}
