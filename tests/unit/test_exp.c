/* test_exp.c - exp of f32 has the bits of its definition, which it has been since the first version: the reduced
 * argument in two parts, each sum with what it loses in a sum of its own (exp_parts of src/functions/exp.atlas). The
 * function itself finds what both sums lose in one. The definition is a program here, for arguments whose result is
 * normal.
 *
 * test_exp [STEP]: every STEP-th argument; 1: all of them, some seconds. */
#include "launching.h"

#include <stdlib.h>

enum { LANES = 1 << 20, LARGEST = 0x42aeac4f };

static const char function[] = ".program f\n.buffer a f32 in\n.buffer y f32 out\n"
                               "ldg.f32 r0, [a + lane]\nexp.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n";

static const char definition[] =
    ".program d\n.buffer a f32 in\n.buffer y f32 out\nldg.f32 r1, [a + lane]\n"
    "fma.f32 r6, r1, #0x1.715476p0, #0x1.8p23\nbitcast.u32.f32 r5, r6\nshl.u32 r5, r5, #23\n"
    "sub.f32 r6, r6, #0x1.8p23\nfma.f32 r7, r6, #-0x1.62e43p-1, r1\nmul.f32 r8, r6, #0x1.05c61p-29\n"
    "add.f32 r9, r7, r8\nsub.f32 r10, r9, r7\nsub.f32 r10, r8, r10\n"
    "fma.f32 r11, r9, #0x1.6938cp-10, #0x1.123984p-7\nfma.f32 r11, r11, r9, #0x1.555a26p-5\n"
    "fma.f32 r11, r11, r9, #0x1.555492p-3\nfma.f32 r11, r11, r9, #0x1.fffffap-2\nmul.f32 r12, r9, r9\n"
    "add.f32 r3, r9, #1\nsub.f32 r4, r3, #1\nsub.f32 r4, r9, r4\nadd.f32 r4, r4, r10\nfma.f32 r4, r11, r12, r4\n"
    "add.f32 r1, r3, r4\nbitcast.u32.f32 r2, r1\nadd.u32 r2, r2, r5\nbitcast.f32.u32 r2, r2\n"
    "stg.f32 [y + lane], r2\nexit\n";

static uint32_t argument[LANES], expected[LANES], got[LANES];

static uint64_t check_block(void) {
  uint64_t wrong = 0;
  run_on_array(definition, LANES, sizeof argument, argument, expected);
  run_on_array(function, LANES, sizeof argument, argument, got);
  for (uint32_t i = 0; i < LANES; i++) {
    if (got[i] == expected[i] || ++wrong > 5) continue;
    printf("exp(%08x) is %08x, not %08x\n", (unsigned)argument[i], (unsigned)got[i], (unsigned)expected[i]);
  }
  return wrong;
}

int main(int argc, char **argv) {
  uint64_t step = argc > 1 ? strtoull(argv[1], NULL, 10) : 101, wrong = 0;
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  for (uint32_t sign = 0; sign < 2; sign++)
    for (uint64_t first = 0; first <= LARGEST; first += LANES * step) {
      for (uint64_t i = 0; i < LANES; i++) {
        uint64_t size = first + i * step;
        argument[i] = (uint32_t)(size > LARGEST ? LARGEST : size) | sign << 31;
      }
      wrong += check_block();
    }
  CHECK_EQ_U64(wrong, 0);
  hg_executor_release(executor);
  return check_report();
}
