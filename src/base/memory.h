/* memory.h - the library's own allocations: always through the caller's hg_allocator, never malloc directly. */
#ifndef HG_BASE_MEMORY_H
#define HG_BASE_MEMORY_H

#include "hologram/base.h"

#include <stdarg.h>
#include <stdint.h>

/* A complete allocator: the caller's, or malloc and free where `allocator` is NULL. HG_INVALID_ARGUMENT for one that
 * lacks a function. */
hg_status hg_allocator_resolve(const hg_allocator *allocator, hg_allocator *out);
int hg_allocator_is_default(const hg_allocator *allocator); /* what hg_allocator_resolve makes of NULL */

/* count * element_size bytes, zeroed; NULL when out of memory or when the product overflows. A count of 0 is 1. */
void *hg_allocate(const hg_allocator *allocator, uint64_t count, size_t element_size);
void *hg_allocate_unset(const hg_allocator *allocator, uint64_t count, size_t element_size); /* not zeroed */
void hg_release(const hg_allocator *allocator, void *memory); /* NULL is accepted */

/* An allocator that gives out pieces of one block while there is room; then it asks the allocator behind it. Pieces
 * return to the block once those behind them are released, too. It must not move. */
typedef struct hg_arena {
  hg_allocator allocator, behind;
  char *begin, *at, *end;
  struct hg_piece *last; /* NULL: there is none */
} hg_arena;
void hg_arena_begin(hg_arena *arena, const hg_allocator *behind, void *block, size_t bytes);
/* How large a block shall be: `wanted`, or 0 if each piece is to be asked for: of a caller's allocator, which may count
 * them or let one fail, and in builds whose allocations are checked. */
size_t hg_arena_bytes(const hg_allocator *behind, size_t wanted);

/* A growing array. Declare `hg_array name = {.element_size = sizeof(T)};` and read it as ((T *)name.data)[i]. */
typedef struct hg_array {
  void *data;
  size_t count, capacity, element_size;
} hg_array;

/* Appends `count` elements (copied from `elements`, or zeroed where it is NULL) and returns the first; NULL when out of
 * memory, with the array unchanged. */
void *hg_array_append(const hg_allocator *allocator, hg_array *array, const void *elements, size_t count);
/* Reserves memory for this many elements in all, where that is known beforehand; 0 when out of memory. */
int hg_array_reserve(const hg_allocator *allocator, hg_array *array, uint64_t capacity);
/* Gives back the memory behind the last element, if there is memory for a copy. */
void hg_array_trim(const hg_allocator *allocator, hg_array *array);
void hg_array_release(const hg_allocator *allocator, hg_array *array);
/* Moves its elements into memory of another allocator. */
hg_status hg_array_move(const hg_allocator *from, const hg_allocator *to, hg_array *array);

/* Appends text of up to 511 characters, without its NUL; what is longer is cut. 0 when out of memory. */
int hg_array_print(const hg_allocator *allocator, hg_array *text, const char *format, va_list arguments)
    HG_PRINTF(3, 0);

/* 1 if there is room for one more element, to be written by the caller at the index `count`; for arrays that get one at
 * every step. */
static inline int hg_array_has_room(const hg_allocator *allocator, hg_array *array) {
  if (array->count < array->capacity) return 1;
  return hg_array_reserve(allocator, array, array->capacity < 8 ? 16 : 2 * (uint64_t)array->capacity);
}

/* hg_array_append of one uint32_t, for stacks and lists that get one at every step; 0 when out of memory. */
static inline int hg_array_push(const hg_allocator *allocator, hg_array *array, uint32_t value) {
  if (array->count == array->capacity) return hg_array_append(allocator, array, &value, 1) != NULL;
  ((uint32_t *)array->data)[array->count++] = value;
  return 1;
}

#endif
