/* test_code_pages.c - machine code in pages that kernels share: each stays what it is while others come and go, and no
 * page can be written and run at once. */
#include "backend/cpu/native/code_pages.h"
#include "check.h"
#include "counted.h"

#include <stdlib.h>

#if defined(__x86_64__) || defined(__aarch64__)

enum { KERNELS = 60, ROUNDS = 600, MOST_BYTES = 70000 };

typedef struct placed {
  hg_code_mapping *mapping;
  uint8_t *code;
  uint32_t number; /* that the code returns */
} placed;

static uint8_t image[MOST_BYTES];

/* A function that returns the number, and blanks behind it. */
static void write_function(uint32_t number) {
#  if defined(__x86_64__)
  const uint8_t code[] = {0xb8, (uint8_t)number, (uint8_t)(number >> 8), 0, 0, 0xc3}; /* mov eax, number; ret */
#  else
  const uint32_t code[] = {0x52800000 | (number & 0xffff) << 5, 0xd65f03c0}; /* mov w0, number; ret */
#  endif
  memcpy(image, code, sizeof code);
}

static uint32_t call(const uint8_t *code) {
  uint32_t (*function)(void);
  memcpy(&function, &code, sizeof function);
  return function();
}

static hg_status place(hg_code_pages *pages, placed *p, uint32_t number, size_t bytes) {
  write_function(number);
  p->number = number;
  return hg_code_place(pages, image, bytes, &p->mapping, &p->code);
}

/* Where the system tells. */
static int has_pages_of_both(void) {
  char line[512];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) found |= strstr(line, " rwx") != NULL;
  if (maps != NULL) fclose(maps);
  return found;
}

static void test_sharing(void) {
  counter c = {.fail_at = -1};
  const hg_allocator allocator = counting(&c);
  hg_code_pages pages;
  CHECK_EQ_U64(hg_code_open(&pages, &allocator), HG_OK);
  static placed all[KERNELS];
  uint32_t state = 1;
  memset(all, 0, sizeof all);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    state = state * 1664525 + 1013904223;
    placed *p = &all[(state >> 16) % KERNELS];
    size_t bytes = state >> 8 & 15 ? 16 + (state >> 12) % 12000 : MOST_BYTES;
    if (p->mapping != NULL) hg_code_remove(&pages, p->mapping);
    *p = (placed){0};
    if (round % 3 != 0) CHECK_EQ_U64(place(&pages, p, round, bytes), HG_OK);
    if (round % 50 != 0) continue;
    for (int k = 0; k < KERNELS; k++)
      if (all[k].mapping != NULL) CHECK_EQ_U64(call(all[k].code), all[k].number);
    CHECK(!has_pages_of_both());
  }
  for (int k = 0; k < KERNELS; k++) hg_code_remove(&pages, all[k].mapping);
  placed again = {0}; /* the pages that are kept can be written once more */
  for (uint32_t k = 0; k < 5; k++) {
    CHECK_EQ_U64(place(&pages, &again, 1000 + k, 5000), HG_OK);
    CHECK_EQ_U64(call(again.code), 1000 + k);
    hg_code_remove(&pages, again.mapping);
  }
  hg_code_close(&pages);
  CHECK_EQ_U64(c.live, 0);
}

static void test_no_memory(void) {
  counter c = {.fail_at = 0};
  const hg_allocator allocator = counting(&c);
  hg_code_pages pages;
  CHECK_EQ_U64(hg_code_open(&pages, &allocator), HG_OK);
  placed p = {0};
  CHECK_EQ_U64(place(&pages, &p, 7, 100), HG_OUT_OF_MEMORY);
  CHECK_EQ_U64(place(&pages, &p, 8, 100), HG_OK);
  CHECK_EQ_U64(call(p.code), 8);
  hg_code_remove(&pages, p.mapping);
  hg_code_remove(&pages, NULL);
  hg_code_close(&pages);
  CHECK_EQ_U64(c.live, 0);
}

int main(void) {
  test_sharing();
  test_no_memory();
  return check_report();
}

#else

int main(void) {
  printf("SKIP: no machine code is written on this machine\n0 passed, 0 failed\n");
  return 0;
}

#endif
