/* test_block_chains.c - blocks whose lanes have rows x columns sums of products of values from shared memory, a chain
 * of multiply-adds each, which the native engine puts in another order (native/fma_groups.c): squares, a few, one row,
 * one longer than the others, sums that begin or go on with another one, that are a factor of another one, or are read
 * on the way; and products by tiles whose rows take turns (native/unroll_and_jam.c). They leave the memory of the
 * interpreter, whatever the bits are that they begin with. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"
#include "native_passes.h"

#include <stdarg.h>
#include <stdlib.h>

enum { MOST = 4096, LANES = 64, ROUNDS = 3, A = 100, B = 112, TEXT = 1 << 16 };

typedef enum kind { PLAIN, LONGER, BEGINS, GOES_ON, FACTOR, READ_TWICE, SAME_FACTORS, KINDS } kind;

typedef struct trial {
  kind kind;
  uint32_t rows, columns, steps;
} trial;

static uint32_t input[MOST];
static char text[TEXT];
static size_t length;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  length += (size_t)vsnprintf(text + length, sizeof text - length, format, arguments);
  va_end(arguments);
}

static void write_step(const trial *t, uint32_t k) {
  uint32_t middle = t->steps / 2;
  for (uint32_t i = 0; i < t->rows; i++) say("lds.f32 r%u, [s + r91 + #%u]\n", A + i, (17 * k + i) % 32);
  for (uint32_t j = 0; j < t->columns; j++) say("lds.f32 r%u, [s + r92 + #%u]\n", B + j, 32 + (13 * k + 2 * j) % 32);
  for (uint32_t i = 0; i < t->rows; i++)
    for (uint32_t j = 0; j < t->columns; j++) {
      uint32_t sum = i * t->columns + j, last = t->rows * t->columns - 1, addend = sum, a = A + i, b = B + j;
      if (sum == last && t->kind == BEGINS && k == 0) addend = 0;
      if (sum == last && t->kind == GOES_ON && k == middle) addend = 0;
      if (sum == last && t->kind == FACTOR && k == middle) a = 0;
      if (t->kind == SAME_FACTORS) b = a;
      say("fma.f32 r%u, r%u, r%u, r%u\n", sum, a, b, addend);
      if (sum == last && t->kind == LONGER && k == middle) say("fma.f32 r%u, r%u, r%u, r%u\n", sum, B, A, sum);
      if (sum == last && t->kind == READ_TWICE && k == middle) say("mov.f32 r90, r%u\n", sum);
    }
}

/* A local array keeps full blocks from straight-line code. */
static void write_text(const trial *t) {
  uint32_t sums = t->rows * t->columns;
  length = 0;
  say(".program p\n.block %d\n.buffer x f32 in\n.buffer y f32 out\n.shared s f32 128\n.local kept u32 2\n"
      "stl.u32 [kept + #1], blane\ncvt.u32.u64 r93, lane\nshr.u32 r91, blane, #2\nand.u32 r92, blane, #15\n"
      "movi.f32 r90, #0\n", LANES);
  for (uint32_t k = 0; k < sums; k++) say("ldg.f32 r%u, [x + r93 + #%u]\n", k, k);
  say("movi.u32 r94, #%d\nnext:\nldg.f32 r%u, [x + r93 + #700]\nldg.f32 r%u, [x + r93 + #900]\n", ROUNDS, A, B);
  say("sts.f32 [s + blane], r%u\nsts.f32 [s + blane + #%d], r%u\nadd.u32 r93, r93, #5\nbar.sync\n", A, LANES, B);
  for (uint32_t k = 0; k < t->steps; k++) write_step(t, k);
  say("bar.sync\nloop r94, next\ncvt.u32.u64 r93, lane\nmul.u32 r93, r93, #%u\n", sums + 1);
  for (uint32_t k = 0; k < sums; k++) say("stg.f32 [y + r93 + #%u], r%u\n", k, k);
  say("stg.f32 [y + r93 + #%u], r90\nexit\n", sums);
}

static void check(const trial *t) {
  static uint32_t zeros[LANES * 2 * 65];
  write_text(t);
  CHECK(length < sizeof text);
  const beside_buffer buffers[] = {{.name = "x", .contents = input, .size = sizeof input},
                                   {.name = "y", .contents = zeros, .size = sizeof zeros, .is_result = 1}};
  const hg_launch_desc desc = {.grid = {2, 1, 1}};
  if (!check_beside(text, &desc, buffers, COUNT(buffers))) printf("%s", text);
}

/* The rows of a tile in turns, as straight-line code has them where they are longer than a vector. */
static void check_tiles(uint32_t columns, uint32_t rows) {
  static uint32_t zeros[MOST];
  length = 0;
  say(".program p\n.block %u, %u\n.buffer x f32 in\n.buffer y f32 out\n.shared a f32 %u\n.shared b f32 %u\n", columns,
      rows, columns * rows, columns * columns);
  say("sreg.u32 r0, lane.x\nsreg.u32 r1, lane.y\nsreg.u32 r2, global.x\nsreg.u32 r3, global.y\nmovi.f32 r8, #0\n"
      "mul.u32 r5, r3, #3\nmad.u32 r5, r5, #%u, r0\nmad.u32 r6, r1, #100, r2\nmul.u32 r7, r1, #%u\nmovi.u32 r9, #3\n",
      columns, columns);
  say("tile:\nldg.f32 r10, [x + r5]\nsts.f32 [a + blane], r10\n");
  for (uint32_t row = 0; row < columns; row += rows)
    say("ldg.f32 r10, [x + r6 + #%u]\nsts.f32 [b + blane + #%u], r10\n", 100 * row, row * columns);
  say("bar.sync\nmov.u32 r12, r7\nmov.u32 r13, r0\nmovi.u32 r14, #%u\nnext:\nlds.f32 r10, [a + r12]\n"
      "lds.f32 r11, [b + r13]\nfma.f32 r8, r10, r11, r8\nadd.u32 r12, r12, #1\nadd.u32 r13, r13, #%u\nloop r14, next\n",
      columns, columns);
  say("bar.sync\nadd.u32 r5, r5, #%u\nadd.u32 r6, r6, #90\nloop r9, tile\nmad.u32 r2, r3, #%u, r2\n"
      "stg.f32 [y + r2], r8\nexit\n", columns, 3 * columns);
  const beside_buffer buffers[] = {{.name = "x", .contents = input, .size = sizeof input},
                                   {.name = "y", .contents = zeros, .size = sizeof zeros, .is_result = 1}};
  const hg_launch_desc desc = {.grid = {3, 5, 1}};
  if (!check_beside(text, &desc, buffers, COUNT(buffers))) printf("%s", text);
}

int main(void) {
  static const uint32_t shapes[][3] = {{8, 8, 4}, {8, 8, 1},  {8, 8, 2}, {4, 4, 8},
                                       {2, 8, 4}, {1, 12, 6}, {8, 3, 5}, {5, 7, 3}};
  uint32_t state = 1;
  open_both();
  for (int random = 0; random < 2; random++) {
    for (size_t i = 0; i < COUNT(input); i++) {
      const float number = (float)((int)(i * 7919 % 61) - 30) / 16;
      state = state * 1664525 + 1013904223;
      memcpy(&input[i], &number, sizeof number);
      if (random && state >> 28 == 0) input[i] = state * 2654435761u; /* a NaN, an infinity, anything */
    }
    for (size_t shape = 0; shape < COUNT(shapes); shape++)
      for (int k = 0; k < KINDS; k++)
        check(&(trial){(kind)k, shapes[shape][0], shapes[shape][1], shapes[shape][2]});
    check_tiles(16, 16);
    check_tiles(16, 4);
    check_tiles(32, 8);
  }
  write_text(&(trial){(kind)0, 8, 8, 4});
  check_fires(text, NATIVE_REGIONS_fma_groups);
  close_both();
  return check_report();
}
