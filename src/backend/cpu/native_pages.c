/* native_pages.c - pages for machine code, which are written before they may run and never both at once. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "backend/cpu/native_kernel.h"

#include "base/error.h"
#include "base/os.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)

hg_status hg_code_map(const uint8_t *code, size_t byte_count, uint8_t **mapped, size_t *mapped_bytes) {
  (void)code;
  (void)byte_count;
  (void)mapped;
  (void)mapped_bytes;
  return hg_fail(HG_UNSUPPORTED, "machine code is not written on this system");
}

void hg_code_unmap(uint8_t *mapped, size_t mapped_bytes) {
  (void)mapped;
  (void)mapped_bytes;
}

#else

#  include <sys/mman.h>
#  include <unistd.h>

#  if defined(MAP_POPULATE)
enum { ALL_AT_ONCE = MAP_POPULATE }; /* not page after page as the code is copied */
#  else
enum { ALL_AT_ONCE = 0 };
#  endif

hg_status hg_code_map(const uint8_t *code, size_t byte_count, uint8_t **mapped, size_t *mapped_bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (byte_count + page - 1) / page * page;
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | ALL_AT_ONCE, -1, 0);
  if (memory == MAP_FAILED) return hg_fail_memory("machine code", bytes);
  memcpy(memory, code, byte_count);
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) != 0) {
    munmap(memory, bytes);
    return hg_fail(HG_UNSUPPORTED, "this system lets no memory become executable");
  }
#  if defined(__aarch64__)
  __builtin___clear_cache((char *)memory, (char *)memory + byte_count);
#  endif
  *mapped = memory;
  *mapped_bytes = bytes;
  return HG_OK;
}

void hg_code_unmap(uint8_t *mapped, size_t mapped_bytes) {
  if (mapped != NULL) munmap(mapped, mapped_bytes);
}

#endif

void hg_code_announce(const uint8_t *code, size_t byte_count, const char *name) {
  char value[8], path[64];
  if (!hg_environment("HOLOGRAM_PERF_MAP", value, sizeof value) || strcmp(value, "1") != 0) return;
  snprintf(path, sizeof path, "/tmp/perf-%llu.map", (unsigned long long)hg_process_id());
  FILE *file = fopen(path, "a");
  if (file == NULL) return;
  fprintf(file, "%llx %llx hologram:%s\n", (unsigned long long)(uintptr_t)code, (unsigned long long)byte_count, name);
  fclose(file);
}
