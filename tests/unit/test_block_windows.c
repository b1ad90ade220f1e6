/* test_block_windows.c - loads from shared memory by indices that follow from the lane's number, which the native
 * engine does by one load and a permutation where the lanes of a vector are near each other in a pattern: patterns that
 * are, and some that are not, in blocks of several shapes, within the array and beyond it, with arithmetic behind the
 * next barrier on what was loaded before it. They leave the memory and the fault of the interpreter. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

#include <stdlib.h>

enum { MOST = 8192 }; /* words of a buffer */

typedef struct trial {
  const char *type, *index; /* index: code that makes r1 of blane */
  uint32_t block[2], grid;
  uint32_t count;           /* of shared words */
  int is_straight;          /* no local array, so that full blocks run straight-line code */
} trial;

static uint32_t input[MOST];

static void write_text(const trial *t, char *text, size_t room) {
  const char *type = t->type;
  snprintf(text, room,
           ".program p\n.block %u, %u\n.buffer x %s in\n.buffer y %s out\n.shared s %s %u\n.shared t %s %u\n%s"
           "cvt.u32.u64 r0, lane\nldg.%s r10, [x + r0]\nldg.%s r11, [x + r0 + #64]\n"
           "sts.%s [s + blane], r10\nsts.%s [s + blane + #%u], r11\n%sbar.sync\n%s"
           "lds.%s r12, [s + r1]\nlds.%s r13, [s + r1 + #1]\nlds.%s r14, [s + r1 + #17]\nlds.%s r15, [s + r1 + #5]\n"
           "bar.sync\nlds.%s r18, [s + r1 + #2]\nmul.%s r18, r18, r12\nadd.%s r16, r12, r13\nadd.%s r17, r14, r15\n"
           "add.%s r16, r16, r17\nmul.%s r17, r12, r15\nadd.%s r16, r16, r17\nadd.%s r16, r16, r18\n"
           "sts.%s [t + blane], r16\nbar.sync\nlds.%s r12, [t + r1]\nstg.%s [y + r0], r12\nexit\n",
           t->block[0], t->block[1], type, type, type, t->count, type, t->count,
           t->is_straight ? "" : ".local kept u32 2\n", type, type, type, type, t->block[0] * t->block[1],
           t->is_straight ? "" : "stl.u32 [kept + #1], blane\n", t->index, type, type, type, type, type, type, type,
           type, type, type, type, type, type, type, type);
}

static void check(const trial *t) {
  static char text[4096];
  write_text(t, text, sizeof text);
  const beside_buffer buffers[] = {{.name = "x", .contents = input, .size = sizeof input},
                                   {.name = "y", .contents = input, .size = sizeof input, .is_result = 1}};
  const hg_launch_desc desc = {.grid = {t->grid, 1, 1}};
  if (!check_beside(text, &desc, buffers, COUNT(buffers))) printf("%s", text);
}

int main(void) {
  static const char *const types[] = {"f32", "u32", "i32"};
  static const char *const indices[] = {
      "shr.u32 r1, blane, #2\n",
      "and.u32 r1, blane, #3\nshl.u32 r1, r1, #2\n",
      "shr.u32 r2, blane, #7\nshl.u32 r2, r2, #6\nshr.u32 r1, blane, #2\nand.u32 r1, r1, #7\nmad.u32 r1, r1, #4, r2\n",
      "xor.u32 r1, blane, #1\n",                       /* lane 0 is not the lowest */
      "and.u32 r1, blane, #15\nmul.u32 r1, r1, #2\n",  /* too far apart */
      "mul.u32 r1, blane, #5\nand.u32 r1, r1, #15\nshr.u32 r2, blane, #4\nmad.u32 r1, r2, #16, r1\n",
      "sreg.u32 r2, lane.x\nand.u32 r1, r2, #7\nsreg.u32 r2, lane.y\nmad.u32 r1, r2, #3, r1\n",
      "mul.u32 r1, blane, blane\nand.u32 r1, r1, #63\n", /* another pattern in each vector */
      "shr.u32 r1, blane, #1\nsub.u32 r1, r1, #4\n",   /* below 0 in the first lanes */
      "shr.u32 r1, blane, #1\nadd.u32 r1, r1, r10\n",  /* not known */
  };
  static const uint32_t blocks[][2] = {{256, 1}, {48, 1},  {100, 1}, {16, 16}, {16, 3},
                                       {20, 5},  {512, 1}, {32, 2},  {7, 1}};
  open_both();
  for (size_t i = 0; i < COUNT(input); i++) input[i] = (uint32_t)(i * 7919 % 61);
  for (size_t type = 0; type < COUNT(types); type++)
    for (size_t index = 0; index < COUNT(indices) - (type == 0); index++)
      for (size_t b = 0; b < COUNT(blocks); b++)
        for (int way = 0; way < 4; way++) {
          trial t = {.type = types[type], .index = indices[index], .grid = 3, .is_straight = way & 1};
          if (index == COUNT(indices) - 1 && type == 2) continue; /* an index that is added to has its type */
          memcpy(t.block, blocks[b], sizeof t.block);
          uint32_t lanes = t.block[0] * t.block[1];
          t.count = way & 2 ? 2 * lanes : 2 * lanes + 64;
          if (way & 2 && lanes > 200) t.count = lanes / 4 + 10; /* the last lanes are out of bounds */
          check(&t);
        }
  close_both();
  return check_report();
}
