/* memory.c - rooms of memory between pages that nobody may read, and what they hold. */
#define _GNU_SOURCE
#include "sweep.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

random_state random_of(uint64_t seed, uint64_t number) {
  random_state r = {seed * UINT64_C(0x9e3779b97f4a7c15) ^ number * UINT64_C(0xd1342543de82ef95)};
  (void)random_next(&r);
  return r;
}

uint64_t random_next(random_state *r) { /* splitmix64 */
  uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

uint64_t random_below(random_state *r, uint64_t end) { return random_next(r) % end; }

/* Whole pages. */
uint64_t sweep_room_bytes(sweep_room room) {
  static const uint64_t bytes[ROOM_COUNT] = {8 << 10, 32 << 10, 256 << 10, 36 << 20};
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  return (bytes[room] + page - 1) / page * page;
}

uint8_t *sweep_room_map(sweep_room room) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)sweep_room_bytes(room);
  uint8_t *memory = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + page, bytes, PROT_READ | PROT_WRITE) != 0) return NULL;
  return memory + page;
}

void sweep_room_close(sweep_room room, uint8_t *memory) {
  (void)mprotect(memory, (size_t)sweep_room_bytes(room), PROT_READ);
}

/* Indices: the lanes' own, in which a lane has one far away now and then: in programs whose lanes may not meet, one
 * where no other comes. */
static void fill_indices(const sweep_program *p, const sweep_launch *l, const sweep_range *range, uint8_t *bytes) {
  uint32_t size = atlas_type_bits(p->index) / 8;
  int is_own = (p->flags & FORM_OWN) != 0, is_near = l->step + 64 < 128 && size >= 4;
  for (uint64_t i = 0; (i + 1) * size <= range->byte_count; i++) {
    uint64_t index = l->first + i * l->step;
    if (i % 7 == 3 && (is_near || !is_own)) index += is_own ? UINT64_C(1) << (8 * size - 1) : l->contents >> i % 50;
    memcpy(bytes + range->offset + i * size, &index, size); /* little-endian, as everything here */
  }
}

/* Large rooms hold the same in every launch. */
void sweep_room_fill(const sweep_program *p, const sweep_launch *l, const sweep_range *range, uint8_t *bytes) {
  random_state r = random_of(range->room == ROOM_LARGE ? 0 : l->contents, range->slot);
  for (uint64_t i = 0; i < sweep_room_bytes(range->room); i += sizeof(uint64_t)) {
    uint64_t word = random_next(&r);
    memcpy(bytes + i, &word, sizeof word);
  }
  if (strcmp(range->name, "at") == 0 && p->index != ATLAS_NONE) fill_indices(p, l, range, bytes);
}
