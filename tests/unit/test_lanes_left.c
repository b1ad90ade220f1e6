/* test_lanes_left.c - reductions of a block in which lanes have ended: those that are left give the bits of the
 * interpreter, whichever they are, in blocks of any size, of every type and operation. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

#include <stdlib.h>

enum { MOST_SIZE = 256, BLOCKS = 16, MOST_LANES = MOST_SIZE * BLOCKS, MOST_BYTES = 8 };

static const char *const types[] = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"};
static const char *const operations[] = {"add", "mul", "min", "max"};

/* S is the block's size, T the type, F the operation. Two values fold together; what they leave behind is nothing to
 * the third. */
static const char left_text[] = ".program left\n"
                                ".block S\n"
                                ".buffer a T in\n"
                                ".buffer gone u8 in\n"
                                ".buffer y T inout\n"
                                ".buffer z u32 inout\n"
                                "    shl.u64 r9, lane, #1\n"
                                "    ldg.T r0, [a + lane]\n"
                                "    ldg.u8 r1, [gone + lane]\n"
                                "    set.eq.u8 p0, r1, #0\n"
                                "    @p0 bra stays\n"
                                "    trap #7\n"
                                "stays:\n"
                                "    reduce.F.T r2, r0\n"
                                "    reduce.add.u32 r3, blane\n"
                                "    max.T r4, r2, r0\n"
                                "    reduce.F.T r4, r4\n"
                                "    stg.T [y + r9], r2\n"
                                "    stg.T [y + r9 + #1], r4\n"
                                "    stg.u32 [z + lane], r3\n"
                                "    exit\n";

/* Each block has ways of its own to lose lanes. */
static int is_gone(uint32_t block, uint32_t lane, uint32_t size) {
  switch (block) {
  case 0: return 0;
  case 1: return lane == 0;
  case 2: return lane == size - 1;
  case 3: return lane != 0;
  case 4: return lane != size - 1;
  case 5: return lane < (size + 1) / 2;
  case 6: return lane >= size / 2;
  case 7: return lane % 2 == 0;
  case 8: return lane % 2 == 1;
  case 9: return lane < 32; /* a whole warp, where there are two */
  case 10: return lane % 32 != 5;
  case 11: return 1;
  case 12: return lane % 41 == 3;
  default:
    return (lane * 2654435761u * (2 * block + 1) >> 13) % (block - 11) != 0; /* one half, a third, a fourth is left */
  }
}

/* Small numbers of either sign; in every third block any bits, among them NaNs. */
static void fill(uint8_t *values, uint32_t bytes, uint32_t size) {
  uint64_t state = 5;
  for (uint32_t i = 0; i < size * BLOCKS; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t bits = state ^ state >> 29, top = UINT64_C(1) << (8 * bytes - 2);
    if (i / size % 3 != 2) bits = (bits & ~(top | top / 8)) | top / 2 | top / 4;
    memcpy(values + i * bytes, &bits, bytes);
  }
}

/* `missing`: lanes that the last block lacks. */
static void check(const char *type, const char *operation, uint32_t size, uint32_t missing) {
  static uint8_t values[MOST_LANES * MOST_BYTES], gone[MOST_LANES];
  char text[1024], size_text[16];
  uint32_t bytes = (uint32_t)strtoul(type + strcspn(type, "0123456789"), NULL, 10) / 8, lanes = size * BLOCKS;
  const char *words[] = {size_text, type, operation};
  snprintf(size_text, sizeof size_text, "%u", size);
  fill_in(left_text, "STF", words, text, sizeof text);
  fill(values, bytes, size);
  for (uint32_t i = 0; i < lanes; i++) gone[i] = (uint8_t)is_gone(i / size, i % size, size);
  const beside_buffer buffers[] = {{.name = "a", .contents = values, .size = (uint64_t)lanes * bytes},
                                   {.name = "gone", .contents = gone, .size = lanes},
                                   {.name = "y", .size = 2 * (uint64_t)lanes * bytes, .is_result = 1},
                                   {.name = "z", .size = (uint64_t)lanes * 4, .is_result = 1}};
  const hg_launch_desc desc = {.lanes = lanes - missing};
  if (!check_beside(text, &desc, buffers, COUNT(buffers)))
    printf("reduce.%s.%s of the lanes that are left differs, in blocks of %u\n", operation, type, size);
}

int main(void) {
  static const uint32_t sizes[] = {1, 2, 3, 4, 5, 8, 15, 31, 32, 33, 48, 63, 64, 65, 96, 100, 128, 255, 256};
  open_both();
  for (size_t t = 0; t < COUNT(types); t++)
    for (size_t o = 0; o < COUNT(operations); o++) {
      check(types[t], operations[o], 32, 0);
      check(types[t], operations[o], 80, 7);
    }
  for (size_t s = 0; s < COUNT(sizes); s++) {
    check("f32", "add", sizes[s], 0);
    check("f32", "add", sizes[s], sizes[s] / 3);
    check("i64", "min", sizes[s], sizes[s] / 2);
  }
  close_both();
  return check_report();
}
