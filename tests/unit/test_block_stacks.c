/* test_block_stacks.c - blocks that the native engine runs several at a time, because neighbours along x and y load the
 * same elements in a loop over barriers: products of tiles on grids that are no multiple of a stack, blocks of several
 * shapes, with coordinates in their results and in their tiles, which they then cannot share, memory that is read and
 * written, values that move on from round to round, trip counts that differ between blocks (such blocks run alone),
 * indices that wrap or are out of bounds, rows of a tile that are read in another order than they are stored, or in one
 * of each block's own, and steps that run out. They leave the memory and the fault of the interpreter. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"
#include "native_passes.h"

#include <stdlib.h>

enum { MOST = 64 * 1024 }; /* floats of a buffer */

typedef enum kind {
  PLAIN,
  OWN_COUNT,
  READS_RESULT,
  SEES_BLOCK,
  MASKED,
  ROTATES,
  LEAVES_FIRST,
  GOES_BACK,  /* along k: what is added to an index wraps */
  OTHER_ROW,  /* of the tile: the first rows are read last */
  STORES_TWICE,
  OWN_TILES,  /* what they hold depends on the block along x */
  OWN_PLACES, /* and where they are read depends on the block along y */
  UNROLLED,   /* and a value of all blocks is read and changed in each round */
  KINDS
} kind;

typedef struct trial {
  kind kind;
  const char *index;  /* type */
  uint32_t block[2], grid[3], count;
  uint64_t extent[3]; /* of a, b and y, in elements */
  uint64_t step_limit;
} trial;

static float input[MOST];

/* A round: the products of a row of one tile and a column of the other. */
static void write_sums(const trial *t, char *text, size_t room) {
  uint32_t x = t->block[0], y = t->block[1], count = x < y ? x : y;
  char own_place[96];
  snprintf(own_place, sizeof own_place, "add.u32 r15, r12, r22\nmin.u32 r15, r15, #%u\nlds.f32 r10, [tile_a + r15]\n",
           x * y - 1);
  if (t->kind != UNROLLED) {
    snprintf(text, room,
             "mov.u32 r12, r7\nmov.u32 r13, r20\nmovi.u32 r14, #%u\nnext:\n%slds.f32 r11, [tile_b + r13]\n"
             "fma.f32 r8, r10, r11, r8\nadd.u32 r12, r12, #1\nadd.u32 r13, r13, #%u\nloop r14, next\n",
             count, t->kind == OWN_PLACES ? own_place : "lds.f32 r10, [tile_a + r12]\n", x);
    return;
  }
  for (uint32_t k = 0; k < count; k++) {
    int length = snprintf(text, room,
                          "lds.f32 r10, [tile_a + r7 + #%u]\nlds.f32 r11, [tile_b + r20 + #%u]\n"
                          "fma.f32 r8, r10, r11, r8\n",
                          k, k * x);
    text += length;
    room -= (size_t)length;
  }
  snprintf(text, room, "fma.f32 r8, r26, r25, r8\nbar.sync\nadd.f32 r26, r26, #1\n");
}

static void write_text(const trial *t, char *text, size_t room) {
  const char *w = t->index;
  uint32_t x = t->block[0], y = t->block[1], lanes = x * y;
  char more[128] = "", sums[2048];
  if (t->kind == GOES_BACK) snprintf(more, sizeof more, "add.%s r4, r4, #%u\n", w, (t->count - 1) * x);
  write_sums(t, sums, sizeof sums);
  if (t->kind == OTHER_ROW) snprintf(more, sizeof more, "sub.u32 r7, #%u, r7\n", (y - 1) * x);
  snprintf(text, room,
           ".program p\n.block %u, %u\n.buffer a f32 in\n.buffer b f32 in\n.buffer y f32 inout\n.scalar size %s\n"
           ".scalar count u32\n.shared tile_a f32 %u\n.shared tile_b f32 %u\n"
           "sreg.%s r0, lane.x\nsreg.%s r1, lane.y\nsreg.%s r2, global.x\nsreg.%s r3, global.y\nsreg.u32 r20, lane.x\n"
           "sreg.u32 r21, lane.y\nsreg.u32 r22, block.y\nsreg.u32 r24, block.x\ncvt.f32.u32 r25, r24\nsreg.%s r23, "
           "global.z\nmad.%s r23, r23, #256, r3\n"
           "mad.%s r4, r3, size, r0\nmad.%s r5, r1, size, r2\nmul.%s r6, size, #%u\nmul.u32 r7, r21, #%u\n"
           "mad.%s r23, r23, size, r2\nmovi.f32 r8, #0\nmov.u32 r9, count\n%s%s%s"
           "movi.f32 r26, #0\nmovi.f32 r30, #0\nmovi.f32 r31, #0\ntile:\n%sldg.f32 r10, [a + r4]\nldg.f32 r11, [b + r5 "
           "+ #1]\n%s"
           "%ssts.f32 [tile_a + blane], r10\nsts.f32 [tile_b + blane], r11\nbar.sync\n%sbar.sync\n"
           "%s.%s r4, r4, #%u\nadd.%s r5, r5, r6\n%s"
           "%sstg.f32 [y + r23], r8\nexit\n",
           x, y, w, lanes, lanes, w, w, w, w, w, w, w, w, w, y, x, w,
           t->kind == OWN_COUNT ? "and.u32 r22, r22, #1\nadd.u32 r9, r9, r22\n" : "",
           t->kind == MASKED ? "set.lt.u32 p0, r20, #5\n" : "",
           t->kind == GOES_BACK || t->kind == OTHER_ROW ? more : "",
           t->kind == LEAVES_FIRST ? "set.eq.u32 p1, r9, #0\n@p1 bra done\nsub.u32 r9, r9, #1\n" : "",
           t->kind == READS_RESULT                         ? "ldg.f32 r15, [y + r23]\nadd.f32 r11, r11, r15\n"
           : t->kind == OWN_TILES || t->kind == OWN_PLACES ? "add.f32 r10, r10, r25\n"
           : t->kind == MASKED                             ? "neg.f32 r15, r10\nsel.f32 r10, p0, r15, r10\n"
                                                           : "",
           t->kind == STORES_TWICE ? "sts.f32 [tile_a + blane], r11\nldg.f32 r10, [a + r4 + #2]\n" : "", sums,
           t->kind == GOES_BACK ? "sub" : "add", w, x, w,
           t->kind == ROTATES        ? "mov.f32 r30, r31\nmov.f32 r31, r8\nloop r9, tile\nfma.f32 r8, r30, r31, r8\n"
           : t->kind == LEAVES_FIRST ? "mov.f32 r31, r30\nmov.f32 r30, r8\nbra tile\ndone:\nfma.f32 r8, r30, r31, r8\n"
                                     : "loop r9, tile\n",
           t->kind == SEES_BLOCK ? "cvt.f32.u32 r15, r22\nfma.f32 r8, r25, r15, r8\n" : "");
}

static void check(const trial *t) {
  static char text[4096];
  write_text(t, text, sizeof text);
  const beside_buffer buffers[] = {
      {.name = "a", .contents = input, .size = sizeof input, .byte_count = 4 * t->extent[0]},
      {.name = "b", .contents = input, .size = sizeof input, .byte_count = 4 * t->extent[1]},
      {.name = "y", .contents = input, .size = sizeof input, .byte_count = 4 * t->extent[2], .is_result = 1}};
  atlas_type index = strcmp(t->index, "u64") == 0 ? ATLAS_u64 : ATLAS_u32;
  hg_scalar scalars[] = {{.name = "size", .type = (uint8_t)index, .bits = t->grid[0] * t->block[0]},
                         {.name = "count", .type = ATLAS_u32, .bits = t->count}};
  const hg_launch_desc desc = {.grid = {t->grid[0], t->grid[1], t->grid[2]}, .scalars = scalars, .scalar_count = 2,
                               .step_limit = t->step_limit};
  if (!check_beside(text, &desc, buffers, COUNT(buffers)))
    printf("kind %d, block %u, %u, grid %u, %u, %u, extents %u, %u, %u, steps %u\n%s", (int)t->kind, t->block[0],
           t->block[1], t->grid[0], t->grid[1], t->grid[2], (unsigned)t->extent[0], (unsigned)t->extent[1],
           (unsigned)t->extent[2], (unsigned)t->step_limit, text);
}

static void check_extents(trial t) {
  uint64_t rows = (uint64_t)t.grid[1] * t.block[1], size = (uint64_t)t.grid[0] * t.block[0];
  for (int k = 0; k < 3; k++) t.extent[k] = MOST;
  check(&t);
  t.extent[0] = rows * size * 2 / 3; /* in the middle of a stack */
  check(&t);
  t.extent[1] = t.block[1] * size + 7;
  check(&t);
  t.extent[0] = MOST;
  if (t.grid[0] > 1)
    t.extent[1] = (t.count * (uint64_t)t.block[1] - 1) * size + t.block[0] + 4; /* in the second block */
  check(&t);
  t.extent[1] = MOST;
  t.extent[2] = rows * size - size / 2;
  check(&t);
  t.extent[2] = MOST;
  t.step_limit = t.count * (uint64_t)(t.block[0] < t.block[1] ? t.block[0] : t.block[1]) - 3;
  check(&t);
}

/* Kinds of blocks that a stack is made of, for one of the shapes at least: but for those whose trip counts differ. */
static void check_passes(const uint32_t (*blocks)[2], size_t shapes) {
  static char text[4096];
  for (int k = 0; k < KINDS; k++) {
    uint32_t fired = 0;
    for (size_t b = 0; b < shapes; b++) {
      trial t = {.kind = (kind)k, .index = "u32", .block = {blocks[b][0], blocks[b][1]}, .count = 3};
      write_text(&t, text, sizeof text);
      fired += count_passes(text, &hg_native_avx512).fired[NATIVE_STACK_coarsen];
    }
    if (!check_note((fired == 0) == (k == OWN_COUNT))) printf("kind %d: %u stacks\n", k, fired);
  }
  write_text(&(trial){.kind = PLAIN, .index = "u32", .block = {16, 16}, .count = 3}, text, sizeof text);
  check_fires(text, NATIVE_PLACED_indices);
  check_fires(text, NATIVE_BLOCK_coalesce);
  check_fires(text, NATIVE_REGIONS_split);
  check_fires(text, NATIVE_REGIONS_temporaries);
  write_text(&(trial){.kind = PLAIN, .index = "u32", .block = {32, 8}, .count = 3}, text, sizeof text);
  check_fires(text, NATIVE_BLOCK_unroll_and_jam);
}

int main(void) {
  static const uint32_t blocks[][2] = {{16, 16}, {16, 5}, {32, 8}};
  static const uint32_t grids[][3] = {{2, 4, 1}, {1, 9, 1}, {2, 3, 1}, {2, 6, 2}, {3, 8, 1}, {2, 1, 1}};
  open_both();
  for (size_t i = 0; i < COUNT(input); i++) input[i] = (float)((int)(i * 7919 % 2001) - 1000) / 128;
  for (int k = 0; k < KINDS; k++)
    for (size_t b = 0; b < COUNT(blocks); b += SANITIZED ? 2 : 1)
      for (size_t g = 0; g < COUNT(grids); g += SANITIZED || k >= GOES_BACK ? 3 : 1) {
        trial t = {.kind = (kind)k, .index = (b + g) % 2 == 0 ? "u32" : "u64", .count = 3};
        memcpy(t.block, blocks[b], sizeof t.block);
        memcpy(t.grid, grids[g], sizeof t.grid);
        check_extents(t);
      }
  check_passes(blocks, COUNT(blocks));
  close_both();
  return check_report();
}
