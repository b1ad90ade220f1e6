/* test_class96.c - the class functions against an independent statement: bits of bytes, and the graph built from edges.
 */
#include "check.h"
#include "hologram/classes.h"

static unsigned bit(unsigned byte, unsigned n) { return byte >> n & 1u; }

/* The definition, word for word. */
static unsigned class_of(unsigned byte) {
  unsigned h2 = 2 * bit(byte, 7) + bit(byte, 6), l = 4 * bit(byte, 3) + 2 * bit(byte, 2) + bit(byte, 1), d = 0;
  if (bit(byte, 4) == 1 && bit(byte, 5) == 0) d = 1;
  if (bit(byte, 4) == 0 && bit(byte, 5) == 1) d = 2;
  return 24 * h2 + 8 * d + l;
}

static void test_bytes(void) {
  unsigned members[96] = {0};
  for (unsigned byte = 0; byte < 256; byte++) {
    CHECK_EQ_U64(atlas_class_of_byte((uint8_t)byte), class_of(byte));
    members[class_of(byte)]++;
  }
  for (unsigned c = 0; c < 96; c++) {
    unsigned byte = atlas_class_byte(c), d = c % 24 / 8;
    CHECK_EQ_U64(class_of(byte), c);
    CHECK_EQ_U64(bit(byte, 0), 0);
    CHECK_EQ_U64(bit(byte, 4), d == 1);
    CHECK_EQ_U64(bit(byte, 5), d == 2);
    CHECK_EQ_U64(members[c], d == 0 ? 4 : 2);
  }
  CHECK_EQ_U64(atlas_class_of_byte(0x2a), 21);
  CHECK_EQ_U64(atlas_class_byte(21), 0x2a);
}

static void test_mirror_and_unity(void) {
  for (unsigned c = 0; c < 96; c++) {
    unsigned byte = atlas_class_byte(c);
    CHECK_EQ_U64(atlas_class_mirror(c), class_of(byte ^ 0x80));
    CHECK_EQ_U64(atlas_class_mirror(atlas_class_mirror(c)), c);
    CHECK(atlas_class_mirror(c) != c);
    CHECK_EQ_U64(atlas_class_is_unity(c), c == 0 || c == 48);
    for (unsigned n = 0; n < 6; n++) CHECK(atlas_class_neighbour(c, n) != (int32_t)atlas_class_mirror(c));
  }
  CHECK_EQ_U64(atlas_class_is_unity(96), 0);
}

/* An edge: one of b1, b2, b3, b6 flipped, or d moved between 0 and 1 or 0 and 2. */
static int is_edge(unsigned a, unsigned b) {
  const unsigned flips[4] = {0x02, 0x04, 0x08, 0x40};
  for (unsigned i = 0; i < 4; i++)
    if (class_of(atlas_class_byte(a) ^ flips[i]) == b) return 1;
  unsigned da = a % 24 / 8, db = b % 24 / 8;
  return a / 24 == b / 24 && a % 8 == b % 8 && (da == 0) != (db == 0);
}

static void test_neighbours(void) {
  const unsigned flips[4] = {0x02, 0x04, 0x08, 0x40};
  unsigned edges = 0;
  for (unsigned c = 0; c < 96; c++) {
    unsigned d = c % 24 / 8, count = 0;
    for (unsigned other = 0; other < 96; other++) count += is_edge(c, other) != 0;
    edges += count;
    CHECK_EQ_U64(count, d == 0 ? 6 : 5);
    CHECK_EQ_U64(atlas_class_neighbour_count(c), count);
    for (unsigned n = 0; n < count; n++) CHECK(is_edge(c, (unsigned)atlas_class_neighbour(c, n)));
    for (unsigned n = 0; n < 4; n++)
      CHECK_EQ_U64(atlas_class_neighbour(c, n), class_of(atlas_class_byte(c) ^ flips[n]));
    for (unsigned n = 5; n < count; n++) CHECK(atlas_class_neighbour(c, n) > atlas_class_neighbour(c, n - 1));
    CHECK_EQ_U64(atlas_class_neighbour(c, count), -1);
    CHECK_EQ_U64(atlas_class_neighbour(c, UINT32_MAX), -1);
  }
  CHECK_EQ_U64(edges, 2 * 256);
  CHECK_EQ_U64(atlas_class_neighbour(96, 0), -1);
  CHECK_EQ_U64(atlas_class_neighbour_count(96), 0);
}

static void test_boundary(void) {
  int64_t expected = 0;
  for (unsigned c = 0; c < 96; c++)
    for (unsigned page = 0; page < 48; page++)
      for (unsigned byte = 0; byte < 256; byte++, expected++)
        if (atlas_boundary_offset(c, page, byte) != expected)
          CHECK_EQ_U64(atlas_boundary_offset(c, page, byte), expected);
  CHECK_EQ_U64(expected, ATLAS_BOUNDARY_POOL_BYTES);
  CHECK_EQ_U64(atlas_boundary_offset(95, 47, 255), ATLAS_BOUNDARY_POOL_BYTES - 1);
  CHECK_EQ_U64(atlas_boundary_offset(96, 0, 0), -1);
  CHECK_EQ_U64(atlas_boundary_offset(0, 48, 0), -1);
  CHECK_EQ_U64(atlas_boundary_offset(0, 0, 256), -1);
}

int main(void) {
  test_bytes();
  test_mirror_and_unity();
  test_neighbours();
  test_boundary();
  return check_report();
}
