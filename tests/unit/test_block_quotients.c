/* test_block_quotients.c - programs that divide the block's number: by a scalar, which may be zero, and use quotient
 * and remainder in indices, added up in several orders. The native engine divides once a block, in a region of its own,
 * and adds up first what is the same in the block. Blocks of several shapes, with and without collectives, loops, lanes
 * that end before and accesses out of bounds, leave the memory and the fault of the interpreter. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"
#include "native_passes.h"

enum { MOST = 8192 }; /* words of a buffer */

static uint32_t input[MOST];

/* Code that makes r5 of r1 = the quotient, r2 = the remainder and blane. */
static const char *const indices[] = {
    "mad.u32 r4, r2, #64, blane\nmul.u32 r5, r1, s1\nadd.u32 r5, r5, r4\n",
    "mul.u32 r4, r1, s1\nadd.u32 r4, blane, r4\nmad.u32 r5, r2, #64, r4\n",
    "add.u32 r4, blane, r1\nadd.u32 r5, r4, r2\nadd.u32 r5, r5, r5\n",
    "add.u32 r4, blane, r1\nmul.u32 r4, r4, #2\nadd.u32 r5, r4, r2\n",   /* no longer the lane's number and more */
    "mad.u32 r5, blane, #3, r2\nadd.u32 r5, r5, r1\n",                   /* neither */
    "add.u32 r5, blane, r1\nmov.u32 r1, r2\nadd.u32 r5, r5, r1\n",       /* what was added is another value by now */
    "sub.u32 r4, blane, #1\nadd.u32 r5, r4, r1\nadd.u32 r5, r5, r2\n",   /* below 0 in lane 0, at times */
};

/* Code in front of the division, which some lanes end in, and code behind what is loaded, r6. */
static const char *const befores[] = {"", "set.eq.u32 p0, blane, #3\n@p0 bra END\n", "movi.u32 r9, #0\nL0:\n"};
static const char *const afters[] = {"", "reduce.add.u32 r7, r6\nadd.u32 r6, r6, r7\n",
                                     "bar.sync\nldg.u32 r7, [x + r5]\nadd.u32 r6, r6, r7\n"};

static void write_text(char *text, size_t room, const uint32_t *block, int index, int before, int after) {
  const char *again = before == 2 ? "add.u32 r0, r0, #1\nadd.u32 r9, r9, #1\nset.lt.u32 p1, r9, #3\n@p1 bra L0\n" : "";
  snprintf(text, room,
           ".program p\n.block %u, %u\n.scalar s0 u32\n.scalar s1 u32\n.buffer x u32 in\n.buffer y u32 inout\n"
           "mov.u32 r0, r253\n%sdiv.u32 r1, r0, s0\nrem.u32 r2, r0, s0\n%sldg.u32 r6, [x + r5]\n"
           "ldg.u32 r7, [x + r5 + #32]\nadd.u32 r6, r6, r7\n%scvt.u32.u64 r8, lane\nldg.u32 r7, [y + r8]\n"
           "add.u32 r7, r7, r6\nadd.u32 r7, r7, r1\nstg.u32 [y + r8], r7\n%sEND:\nexit\n",
           block[0], block[1], befores[before], indices[index], afters[after], again);
}

static void check(const char *text, uint32_t divisor, uint32_t bytes) {
  const beside_buffer buffers[] = {{.name = "x", .contents = input, .size = sizeof input, .byte_count = bytes},
                                   {.name = "y", .contents = input, .size = sizeof input, .is_result = 1}};
  const uint32_t stride = 128;
  const hg_scalar scalars[] = {{.name = "s0", .type = ATLAS_u32, .bits = divisor},
                               {.name = "s1", .type = ATLAS_u32, .bits = stride}};
  const hg_launch_desc desc = {.grid = {7, 1, 1}, .scalars = scalars, .scalar_count = COUNT(scalars)};
  if (!check_beside(text, &desc, buffers, COUNT(buffers))) printf("%s", text);
}

int main(void) {
  static const uint32_t blocks[][2] = {{256, 1}, {48, 1}, {100, 1}, {16, 16}, {16, 3}, {1, 1}, {1024, 1}};
  static const uint32_t divisors[] = {0, 1, 3, 100};
  static char text[2048];
  open_both();
  for (size_t i = 0; i < COUNT(input); i++) input[i] = (uint32_t)(i * 7919 % 61);
  for (size_t b = 0; b < COUNT(blocks); b++)
    for (int index = 0; index < (int)COUNT(indices); index++)
      for (int before = 0; before < (int)COUNT(befores); before++)
        for (int after = 0; after < (int)COUNT(afters); after++) {
          if (before == 1 && after != 0) continue; /* a barrier for all lanes, where one has ended */
          write_text(text, sizeof text, blocks[b], index, before, after);
          for (size_t d = 0; d < COUNT(divisors); d++) check(text, divisors[d], d & 1 ? sizeof input : 4 * 700);
        }
  write_text(text, sizeof text, blocks[0], 0, 0, 0);
  check_fires(text, NATIVE_REGIONS_hoist);
  check_fires(text, NATIVE_REGIONS_reassociate_index);
  close_both();
  return check_report();
}
