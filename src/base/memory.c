/* memory.c - allocator plumbing and the growing array. */
#include "base/memory.h"

#include "base/abi.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HG_PIECE_BYTES = 16 }; /* a piece of an arena: its alignment, and what stands in front of it */

static void *default_allocate(void *user, size_t size) {
  (void)user;
  return malloc(size);
}

static void default_release(void *user, void *memory) {
  (void)user;
  free(memory);
}

hg_status hg_allocator_resolve(const hg_allocator *allocator, hg_allocator *out) {
  if (allocator == NULL) {
    *out = (hg_allocator){.size = sizeof *out, .allocate = default_allocate, .release = default_release};
    return HG_OK;
  }
  HG_TRY(HG_READ(hg_allocator, out, allocator));
  if (out->allocate == NULL || out->release == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "the allocator needs both an allocate and a release function");
  return HG_OK;
}

int hg_allocator_is_default(const hg_allocator *allocator) { return allocator->allocate == default_allocate; }

void *hg_allocate_unset(const hg_allocator *allocator, uint64_t count, size_t element_size) {
  if (count == 0) count = 1;
  if (count > SIZE_MAX / 2 / element_size) return NULL;
  return allocator->allocate(allocator->user, (size_t)count * element_size);
}

void *hg_allocate(const hg_allocator *allocator, uint64_t count, size_t element_size) {
  void *memory = hg_allocate_unset(allocator, count, element_size);
  if (memory != NULL) memset(memory, 0, (count == 0 ? 1 : (size_t)count) * element_size);
  return memory;
}

void hg_release(const hg_allocator *allocator, void *memory) {
  if (memory != NULL) allocator->release(allocator->user, memory);
}

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

/* It stands in front of a piece. */
typedef struct hg_piece {
  struct hg_piece *previous;
  int is_free;
} hg_piece;
_Static_assert(sizeof(hg_piece) <= HG_PIECE_BYTES, "in front of a piece there is room for this");

static void *allocate_piece(void *user, size_t size) {
  hg_arena *a = user;
  size_t room = (size_t)(a->end - a->at), wanted = size + (0 - size) % HG_PIECE_BYTES;
  if (wanted < size || room < HG_PIECE_BYTES || wanted > room - HG_PIECE_BYTES)
    return a->behind.allocate(a->behind.user, size);
  hg_piece *piece = (hg_piece *)(void *)a->at;
  *piece = (hg_piece){.previous = a->last};
  a->last = piece;
  a->at += HG_PIECE_BYTES + wanted;
  return (char *)piece + HG_PIECE_BYTES;
}

static void release_piece(void *user, void *memory) {
  hg_arena *a = user;
  char *at = memory;
  if (at < a->begin || at >= a->end) {
    a->behind.release(a->behind.user, memory);
    return;
  }
  ((hg_piece *)(void *)(at - HG_PIECE_BYTES))->is_free = 1;
  for (; a->last != NULL && a->last->is_free; a->last = a->last->previous) a->at = (char *)a->last;
}

void hg_arena_begin(hg_arena *arena, const hg_allocator *behind, void *block, size_t bytes) {
  char *begin = block, *first = begin + (0 - (uintptr_t)begin) % HG_PIECE_BYTES, *end = begin + bytes;
  if (first > end) first = end;
  *arena = (hg_arena){.behind = *behind, .begin = first, .at = first, .end = end};
  arena->allocator = (hg_allocator){
      .size = sizeof arena->allocator, .user = arena, .allocate = allocate_piece, .release = release_piece};
}

size_t hg_arena_bytes(const hg_allocator *behind, size_t wanted) {
#ifdef HG_CHECK_PASSES
  wanted = 0;
#endif
  return hg_allocator_is_default(behind) ? wanted : 0;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

int hg_array_reserve(const hg_allocator *allocator, hg_array *array, uint64_t capacity) {
  if (array->data != NULL && capacity <= array->capacity) return 1;
  void *data = hg_allocate_unset(allocator, capacity, array->element_size);
  if (data == NULL) return 0;
  if (array->count > 0) memcpy(data, array->data, array->count * array->element_size);
  hg_release(allocator, array->data);
  array->data = data;
  array->capacity = (size_t)capacity;
  return 1;
}

void *hg_array_append(const hg_allocator *allocator, hg_array *array, const void *elements, size_t count) {
  if (array->data == NULL || count > array->capacity - array->count) {
    uint64_t needed = (uint64_t)array->count + count;
    uint64_t capacity = (uint64_t)array->capacity * 2;
    if (capacity < needed) capacity = needed;
    if (capacity < 16) capacity = 16;
    if (!hg_array_reserve(allocator, array, capacity)) return NULL;
  }
  char *first = (char *)array->data + array->count * array->element_size;
  if (count > 0) {
    if (elements != NULL) memcpy(first, elements, count * array->element_size);
    else memset(first, 0, count * array->element_size);
  }
  array->count += count;
  return first;
}

int hg_array_print(const hg_allocator *allocator, hg_array *text, const char *format, va_list arguments) {
  char line[512];
  int length = vsnprintf(line, sizeof line, format, arguments);
  size_t count = length < 0 ? 0 : (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
  return hg_array_append(allocator, text, line, count) != NULL;
}

void hg_array_trim(const hg_allocator *allocator, hg_array *array) {
  if (array->count == 0 || array->count == array->capacity) return;
  void *data = hg_allocate_unset(allocator, array->count, array->element_size);
  if (data == NULL) return;
  memcpy(data, array->data, array->count * array->element_size);
  hg_release(allocator, array->data);
  array->data = data;
  array->capacity = array->count;
}

hg_status hg_array_move(const hg_allocator *from, const hg_allocator *to, hg_array *array) {
  hg_array moved = {.element_size = array->element_size};
  if (array->count > 0 && (!hg_array_reserve(to, &moved, array->count) ||
                           hg_array_append(to, &moved, array->data, array->count) == NULL))
    return hg_fail_memory("a list", array->count * array->element_size);
  hg_array_release(from, array);
  *array = moved;
  return HG_OK;
}

void hg_array_release(const hg_allocator *allocator, hg_array *array) {
  hg_release(allocator, array->data);
  array->data = NULL;
  array->count = array->capacity = 0;
}
