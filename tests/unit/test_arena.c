/* test_arena.c - pieces of one block: aligned, apart, given back in any order; and what does not fit. */
#include "base/memory.h"
#include "check.h"
#include "counted.h"

#include <string.h>

enum { BYTES = 4096, PIECES = 64 };

static void test_pieces(void) {
  counter c = {.fail_at = -1};
  hg_allocator behind = counting(&c);
  static _Alignas(16) char block[BYTES + 1];
  uint8_t *pieces[PIECES];
  size_t sizes[PIECES];
  hg_arena arena;
  hg_arena_begin(&arena, &behind, block + 1, BYTES);
  for (int i = 0; i < PIECES; i++) {
    sizes[i] = (size_t)(i * i % 211) + 1;
    pieces[i] = hg_allocate_unset(&arena.allocator, sizes[i], 1);
    CHECK((uintptr_t)pieces[i] % 16 == 0);
    memset(pieces[i], i, sizes[i]);
  }
  CHECK(c.live > 0 && c.live < PIECES / 2); /* those that did not fit */
  for (int i = 0; i < PIECES; i++)
    for (size_t k = 0; k < sizes[i]; k++) CHECK(pieces[i][k] == i);
  for (int i = 0; i < PIECES; i++) hg_release(&arena.allocator, pieces[(i * 37) % PIECES]);
  CHECK_EQ_U64(c.live, 0);
  CHECK(hg_allocate_unset(&arena.allocator, BYTES / 2, 1) != NULL); /* the block is as it was */
  CHECK_EQ_U64(c.live, 0);
}

/* An array that is released makes room for the next. */
static void test_arrays(void) {
  counter c = {.fail_at = -1};
  hg_allocator behind = counting(&c);
  static char block[BYTES];
  hg_arena arena;
  hg_arena_begin(&arena, &behind, block, BYTES);
  for (int i = 0; i < 100; i++) {
    hg_array array = {.element_size = 1};
    CHECK(hg_array_reserve(&arena.allocator, &array, BYTES / 2));
    hg_array_release(&arena.allocator, &array);
  }
  CHECK_EQ_U64(c.allocations, 0);
  c.fail_at = 0;
  CHECK(hg_allocate_unset(&arena.allocator, SIZE_MAX / 4, 1) == NULL);
}

static void test_room(void) {
  counter c = {.fail_at = -1};
  hg_allocator counts = counting(&c), own;
  CHECK_EQ_U64(hg_allocator_resolve(NULL, &own), HG_OK);
  CHECK_EQ_U64(hg_arena_bytes(&counts, BYTES), 0);
  CHECK(hg_arena_bytes(&own, BYTES) <= BYTES);
  char none[1];
  hg_arena arena;
  hg_arena_begin(&arena, &counts, none + 1, 0);
  void *piece = hg_allocate(&arena.allocator, 8, 1);
  CHECK_EQ_U64(c.live, 1);
  hg_release(&arena.allocator, piece);
  CHECK_EQ_U64(c.live, 0);
}

int main(void) {
  test_pieces();
  test_arrays();
  test_room();
  return check_report();
}
