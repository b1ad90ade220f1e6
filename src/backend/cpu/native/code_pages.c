/* code_pages.c - pages for machine code, which are never writable and executable at once. Kernels share mappings: a
 * mapping of its own would cost each kernel a system call. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "backend/cpu/native/code_pages.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "base/error.h"
#include "base/files.h"

#include <stdio.h>
#include <string.h>

hg_status hg_code_open(hg_code_pages *pages, const hg_allocator *allocator) {
  *pages = (hg_code_pages){.allocator = *allocator};
  return hg_mutex_init(&pages->mutex) == 0 ? HG_OK
                                           : hg_fail(HG_OUT_OF_MEMORY, "could not make a mutex for machine code");
}

#if defined(_WIN32)

hg_status hg_code_place(hg_code_pages *pages, const uint8_t *code, size_t byte_count, hg_code_mapping **mapping,
                        uint8_t **placed) {
  (void)pages;
  (void)code;
  (void)byte_count;
  (void)mapping;
  (void)placed;
  return hg_fail(HG_UNSUPPORTED, "machine code is not written on this system");
}

void hg_code_remove(hg_code_pages *pages, hg_code_mapping *mapping) {
  (void)pages;
  (void)mapping;
}

void hg_code_close(hg_code_pages *pages) { hg_mutex_destroy(&pages->mutex); }

#else

#  include <sys/mman.h>
#  include <unistd.h>

#  if defined(MAP_POPULATE)
enum { ALL_AT_ONCE = MAP_POPULATE }; /* map all pages now instead of on the first touch of each */
#  else
enum { ALL_AT_ONCE = 0 };
#  endif

enum { MOST_PAGES = CPU_CODE_NEXT_PAGES / 4 }; /* of a kernel that shares a mapping */

/* Pages before `used` are executable, those after it writable. */
struct hg_code_mapping {
  uint8_t *memory;
  size_t bytes, used;
  size_t kernels; /* the number of kernels whose code is in it */
};

static hg_status new_mapping(const hg_allocator *allocator, size_t bytes, hg_code_mapping **out) {
  hg_code_mapping *mapping = hg_allocate(allocator, 1, sizeof *mapping);
  if (mapping == NULL) return hg_fail_memory("machine code", sizeof *mapping);
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | ALL_AT_ONCE, -1, 0);
  if (memory == MAP_FAILED) {
    hg_release(allocator, mapping);
    return hg_fail_memory("machine code", bytes);
  }
  mapping->memory = memory;
  mapping->bytes = bytes;
  *out = mapping;
  return HG_OK;
}

static void release_mapping(const hg_allocator *allocator, hg_code_mapping *mapping) {
  munmap(mapping->memory, mapping->bytes);
  hg_release(allocator, mapping);
}

/* A mapping with room for `bytes`, a whole number of pages. */
static hg_status find_mapping_locked(hg_code_pages *pages, size_t bytes, size_t page, hg_code_mapping **out) {
  hg_code_mapping *now = pages->now;
  if (bytes > MOST_PAGES * page) return new_mapping(&pages->allocator, bytes, out);
  if (now == NULL || now->bytes - now->used < bytes) {
    HG_TRY(
        new_mapping(&pages->allocator, (now == NULL ? CPU_CODE_FIRST_PAGES : CPU_CODE_NEXT_PAGES) * page, &pages->now));
    if (now != NULL && now->kernels == 0) release_mapping(&pages->allocator, now);
  }
  *out = pages->now;
  return HG_OK;
}

static hg_status place_locked(hg_code_pages *pages, const uint8_t *code, size_t byte_count, hg_code_mapping **mapping,
                              uint8_t **placed) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (byte_count + page - 1) / page * page;
  hg_code_mapping *in = NULL;
  HG_TRY(find_mapping_locked(pages, bytes, page, &in));
  uint8_t *memory = in->memory + in->used;
  memcpy(memory, code, byte_count);
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) != 0) {
    if (in != pages->now) release_mapping(&pages->allocator, in);
    return hg_fail(HG_UNSUPPORTED, "this system lets no memory become executable");
  }
#  if defined(__aarch64__)
  __builtin___clear_cache((char *)memory, (char *)memory + byte_count);
#  endif
  in->used += bytes;
  in->kernels++;
  *mapping = in;
  *placed = memory;
  return HG_OK;
}

hg_status hg_code_place(hg_code_pages *pages, const uint8_t *code, size_t byte_count, hg_code_mapping **mapping,
                        uint8_t **placed) {
  hg_mutex_lock(&pages->mutex);
  hg_status status = place_locked(pages, code, byte_count, mapping, placed);
  hg_mutex_unlock(&pages->mutex);
  return status;
}

/* An empty current mapping is kept for the next kernel: it is made writable again from its start. */
static void remove_locked(hg_code_pages *pages, hg_code_mapping *mapping) {
  if (--mapping->kernels > 0) return;
  if (mapping == pages->now) {
    if (mprotect(mapping->memory, mapping->used, PROT_READ | PROT_WRITE) == 0) {
      mapping->used = 0;
      return;
    }
    pages->now = NULL;
  }
  release_mapping(&pages->allocator, mapping);
}

void hg_code_remove(hg_code_pages *pages, hg_code_mapping *mapping) {
  if (mapping == NULL) return;
  hg_mutex_lock(&pages->mutex);
  remove_locked(pages, mapping);
  hg_mutex_unlock(&pages->mutex);
}

void hg_code_close(hg_code_pages *pages) {
  if (pages->now != NULL) release_mapping(&pages->allocator, pages->now);
  pages->now = NULL;
  hg_mutex_destroy(&pages->mutex);
}

#endif

/* perf looks in a folder that everybody may write to, so a file or link that is there already is another user's. */
void hg_code_announce(const uint8_t *code, size_t byte_count, const char *name) {
  char value[8], path[64], line[160];
  if (!hg_environment_trusted("HOLOGRAM_PERF_MAP", value, sizeof value) || strcmp(value, "1") != 0) return;
  snprintf(path, sizeof path, "/tmp/perf-%llu.map", (unsigned long long)hg_process_id());
  snprintf(line, sizeof line, "%llx %llx hologram:%s\n", (unsigned long long)(uintptr_t)code,
           (unsigned long long)byte_count, name);
  (void)hg_file_append(path, line);
}
