/* test_large_rows.c - sums of rows of a buffer that is larger than caches are: machine code reads the next row while
 * it adds one up. Behind the last row lies a page that nobody may read. */
#define _GNU_SOURCE
#include "launching.h"

#include <sys/mman.h>
#include <unistd.h>

enum {
  COLUMNS = 1024,
  ROWS = (33 << 20) / (COLUMNS * 4),
  EXTRA = 3 /* more rows, so that threads have different numbers of them */
};

static const char sum_text[] =
    ".program sums\n.block 256\n.buffer x f32 in\n.buffer y f32 inout\n"
    "mul.u32 r1, r253, #1024\nadd.u32 r1, r1, blane\n"
    "ldg.f32 r2, [x + r1]\nldg.f32 r3, [x + r1 + #256]\nldg.f32 r4, [x + r1 + #512]\nldg.f32 r5, [x + r1 + #768]\n"
    "add.f32 r2, r2, r4\nadd.f32 r3, r3, r5\nadd.f32 r2, r2, r3\nreduce.add.f32 r6, r2\n"
    "set.ne.u32 p0, blane, #0\n@p0 bra done\nstg.f32 [y + r253], r6\ndone:\nexit\n";

/* Whole numbers, whose sums are exact in any order. */
static float element(uint32_t row, uint32_t column) { return (float)((row * 7 + column * 13) % 61); }

static float sum_of(uint32_t row) {
  float sum = 0;
  for (uint32_t c = 0; c < COLUMNS; c++) sum += element(row, c);
  return sum;
}

/* The rows end where the readable memory does. */
static float *map_rows(uint64_t byte_count) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), whole = (byte_count + page - 1) / page * page;
  uint8_t *memory = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  if (memory == MAP_FAILED) return NULL;
  CHECK(mprotect(memory + whole, page, PROT_NONE) == 0);
  return (float *)(memory + whole - byte_count);
}

static void check_sums(const float *sums) {
  for (uint32_t r = 0; r < ROWS + EXTRA; r++) CHECK_EQ_U64(bits_of(sums[r]), bits_of(sum_of(r)));
}

int main(void) {
  static float sums[ROWS + EXTRA];
  const uint64_t byte_count = (uint64_t)(ROWS + EXTRA) * COLUMNS * sizeof(float);
  hg_executor_desc cpu = {.size = sizeof cpu, .backend = HG_BACKEND_CPU};
  float *rows = map_rows(byte_count);
  if (rows == NULL) return check_report();
  for (uint32_t r = 0; r < ROWS + EXTRA; r++)
    for (uint32_t c = 0; c < COLUMNS; c++) rows[(uint64_t)r * COLUMNS + c] = element(r, c);
  hg_buffer *x = NULL;
  CHECK_EQ_U64(hg_executor_create(&cpu, &executor), HG_OK);
  CHECK_EQ_U64(hg_buffer_import(executor, rows, byte_count, &x), HG_OK);
  hg_kernel *kernel = kernel_of(sum_text);
  hg_buffer *y = buffer_of(sizeof sums, NULL);
  hg_binding bindings[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}};
  hg_launch_desc desc = {
      .size = sizeof desc, .grid = {ROWS + EXTRA, 1, 1}, .bindings = bindings, .binding_count = 2};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, sums, sizeof sums), HG_OK);
  check_sums(sums);
  desc.grid[0]++; /* a row that is not there */
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_FAULT);
  hg_buffer_release(x);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
  return check_report();
}
