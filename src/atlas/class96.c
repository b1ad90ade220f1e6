/* class96.c - arithmetic of the 96 classes. A class is 24*h2 + 8*d + l with h2 = 2*b7 + b6 of its bytes, d = 0, 1, 2
 * for (b4,b5) equal, (1,0), (0,1), and l = 4*b3 + 2*b2 + b1. */
#include "hologram/classes.h"

enum { PER_H2 = 24, PER_D = 8 };

static uint32_t part_h2(uint32_t class_index) { return class_index / PER_H2; }
static uint32_t part_d(uint32_t class_index) { return class_index % PER_H2 / PER_D; }
static uint32_t part_l(uint32_t class_index) { return class_index % PER_D; }

static uint32_t join(uint32_t h2, uint32_t d, uint32_t l) { return PER_H2 * h2 + PER_D * d + l; }

uint32_t atlas_class_of_byte(uint8_t byte) {
  uint32_t b4 = byte >> 4 & 1u, b5 = byte >> 5 & 1u;
  uint32_t d = b4 == b5 ? 0 : b4 ? 1 : 2;
  return join(byte >> 6, d, byte >> 1 & 7u);
}

uint8_t atlas_class_byte(uint32_t class_index) {
  static const uint8_t d_bits[3] = {0x00, 0x10, 0x20};
  if (class_index >= ATLAS_CLASS_COUNT) return 0;
  return (uint8_t)(part_h2(class_index) << 6 | d_bits[part_d(class_index)] | part_l(class_index) << 1);
}

uint32_t atlas_class_mirror(uint32_t class_index) {
  if (class_index >= ATLAS_CLASS_COUNT) return 0;
  return join(part_h2(class_index) ^ 2, part_d(class_index), part_l(class_index));
}

int atlas_class_is_unity(uint32_t class_index) { return class_index == 0 || class_index == 48; }

uint32_t atlas_class_neighbour_count(uint32_t class_index) {
  if (class_index >= ATLAS_CLASS_COUNT) return 0;
  return part_d(class_index) == 0 ? 6 : 5;
}

int32_t atlas_class_neighbour(uint32_t class_index, uint32_t number) {
  if (class_index >= ATLAS_CLASS_COUNT || number >= atlas_class_neighbour_count(class_index)) return -1;
  uint32_t h2 = part_h2(class_index), d = part_d(class_index), l = part_l(class_index);
  switch (number) {
  case 0: return (int32_t)join(h2, d, l ^ 1);                    /* b1 */
  case 1: return (int32_t)join(h2, d, l ^ 2);                    /* b2 */
  case 2: return (int32_t)join(h2, d, l ^ 4);                    /* b3 */
  case 3: return (int32_t)join(h2 ^ 1, d, l);                    /* b6 */
  default: return (int32_t)join(h2, d == 0 ? number - 3 : 0, l); /* d moves 0 to 1, 0 to 2, 1 to 0, 2 to 0 */
  }
}

int64_t atlas_boundary_offset(uint32_t class_index, uint32_t page, uint32_t byte) {
  if (class_index >= ATLAS_CLASS_COUNT || page >= ATLAS_CLASS_PAGES || byte >= ATLAS_CLASS_PAGE_BYTES) return -1;
  return ((int64_t)class_index * ATLAS_CLASS_PAGES + page) * ATLAS_CLASS_PAGE_BYTES + byte;
}
