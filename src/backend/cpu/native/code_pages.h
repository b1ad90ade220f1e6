/* code_pages.h - memory for machine code, which is written before it may run and never both at once. */
#ifndef HG_NATIVE_CODE_PAGES_H
#define HG_NATIVE_CODE_PAGES_H

#include "base/memory.h"
#include "base/os.h"

/* A run of pages with the code of one or more kernels. */
typedef struct hg_code_mapping hg_code_mapping;

/* May be used by any number of threads at once. Close it when all code is removed. */
typedef struct hg_code_pages {
  hg_allocator allocator;
  hg_mutex mutex;     /* guards what follows, and the mappings */
  hg_code_mapping *now; /* the mapping that the next kernel goes to; NULL: none yet */
} hg_code_pages;
hg_status hg_code_open(hg_code_pages *pages, const hg_allocator *allocator);
void hg_code_close(hg_code_pages *pages);

/* A copy of `code` that may run and not be written. HG_UNSUPPORTED where the system allows none. */
hg_status hg_code_place(hg_code_pages *pages, const uint8_t *code, size_t byte_count, hg_code_mapping **mapping,
                        uint8_t **placed);
void hg_code_remove(hg_code_pages *pages, hg_code_mapping *mapping); /* NULL is accepted */

/* For perf, where HOLOGRAM_PERF_MAP is 1: the name of a range of code. */
void hg_code_announce(const uint8_t *code, size_t byte_count, const char *name);

#endif
