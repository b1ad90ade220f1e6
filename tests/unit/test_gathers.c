/* test_gathers.c - loads and stores with an index for each lane: of every size of element and type of index, displaced,
 * from buffers bound at any place, in local arrays, by some lanes or all, with indices out of bounds. They leave the
 * memory and the fault of the interpreter. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

enum { LANES = 77, ELEMENTS = 100, BYTES = 8 * (ELEMENTS + 1), TEXT_BYTES = 1024 };

typedef struct trial {
  const char *type, *index, *displacement; /* of the program */
  int is_64, is_local, is_masked, is_wild; /* is_64: indices; is_wild: some are out of bounds */
  uint64_t lanes, bytes, offset;           /* bytes of an element; where the buffer that is read begins */
} trial;

static void write_program(const trial *t, char *text) {
  size_t size = (size_t)snprintf(text, TEXT_BYTES,
                                 ".program p\n.buffer x %s in\n.buffer i %s in\n.buffer y %s out\n.buffer z %s inout\n"
                                 ".local l %s 7\nldg.%s r1, [i + lane]\nldg.%s r0, [x + lane]\n",
                                 t->type, t->index, t->type, t->type, t->type, t->index, t->type);
#define ADD(...) size += (size_t)snprintf(text + size, TEXT_BYTES - size, __VA_ARGS__)
  if (t->is_masked) ADD("cvt.u32.u64 r3, lane\nand.u32 r3, r3, #5\nset.eq.u32 p0, r3, #1\n@p0 bra done\n");
  if (t->is_local) {
    ADD("and.%s r1, r1, #7\nstl.%s [l + r1%s], r0\nldl.%s r2, [l + r1]\n", t->index, t->type, t->displacement, t->type);
  } else {
    ADD("ldg.%s r2, [x + r1%s]\nstg.%s [z + r1%s], r0\n", t->type, t->displacement, t->type, t->displacement);
  }
  ADD("stg.%s [y + lane], r2\ndone:\nexit\n", t->type);
#undef ADD
  CHECK(size < TEXT_BYTES);
}

/* Lanes store to one location alike: the last one stays. */
static void fill_indices(const trial *t, uint64_t *wide, uint32_t *narrow) {
  static const int64_t wild[] = {-1, -2, ELEMENTS, ELEMENTS + 1, INT32_MAX, INT32_MIN, 1 << 30, ELEMENTS - 1};
  for (unsigned k = 0; k < LANES; k++) {
    int64_t index = 2 + (int64_t)(k * 2654435761u >> 7) % (ELEMENTS - 4);
    if (t->is_wild && k % 11 == 7) index = wild[k / 11 % COUNT(wild)];
    wide[k] = (uint64_t)index + (t->is_wild && k == 40 ? UINT64_C(1) << 32 : 0);
    narrow[k] = (uint32_t)index;
  }
}

static void check(const trial *t) {
  static uint64_t wide[LANES];
  static uint32_t narrow[LANES];
  static uint8_t data[BYTES];
  char text[TEXT_BYTES];
  for (unsigned i = 0; i < BYTES; i++) data[i] = (uint8_t)(i * 2654435761u >> 11);
  write_program(t, text);
  fill_indices(t, wide, narrow);
  uint64_t size = ELEMENTS * t->bytes;
  const void *indices = t->is_64 ? (const void *)wide : narrow;
  const beside_buffer buffers[] = {
      {.name = "x", .contents = data, .size = BYTES, .offset = t->offset, .byte_count = size},
      {.name = "i", .contents = indices, .size = t->is_64 ? sizeof wide : sizeof narrow},
      {.name = "y", .size = BYTES, .is_result = 1},
      {.name = "z", .size = BYTES, .offset = t->offset, .byte_count = size, .is_result = 1}};
  const hg_launch_desc desc = {.lanes = t->lanes};
  if (!check_beside(text, &desc, buffers, COUNT(buffers)))
    printf("  %s by %s%s, %s, %s, %s, offset %u, %u lanes\n", t->type, t->index, t->displacement,
           t->is_local ? "local" : "global", t->is_masked ? "masked" : "all", t->is_wild ? "wild" : "in bounds",
           (unsigned)t->offset, (unsigned)t->lanes);
}

static void check_type(const char *type, unsigned bytes) {
  static const char *const indices[] = {"u32", "i32", "u64", "i64"}, *const displacements[] = {"", " + #1", " + #-1"};
  static const uint64_t lanes[] = {LANES, 64, 9};
  for (size_t i = 0; i < COUNT(indices); i++)
    for (size_t d = 0; d < COUNT(displacements); d++)
      for (int way = 0; way < 8; way++) {
        trial t = {.type = type, .index = indices[i], .displacement = displacements[d], .is_64 = i >= 2,
                   .is_local = way & 1, .is_masked = way >> 1 & 1, .is_wild = way >> 2 & 1,
                   .lanes = lanes[(i + d + (unsigned)way) % 3], .bytes = bytes};
        for (t.offset = 0; t.offset < 4; t.offset += bytes) check(&t);
      }
}

int main(void) {
  static const struct {
    const char *name;
    unsigned bytes;
  } types[] = {{"u8", 1}, {"i8", 1}, {"bool", 1}, {"f8e4m3", 1}, {"u16", 2}, {"i16", 2}, {"bf16", 2}, {"f32", 4},
               {"i64", 8}};
  open_both();
  for (size_t k = 0; k < COUNT(types); k++) check_type(types[k].name, types[k].bytes);
  close_both();
  return check_report();
}
