/* test_large_rows.c - sums of rows of a buffer that is larger than caches are: machine code reads the next row while
 * it adds one up. Behind the last row lies a page that nobody may read; some rows end
 * within a vector. */
#define _GNU_SOURCE
#include "backend/cpu/engine/detect.h"
#include "environment.h"
#include "launching.h"

#include <sys/mman.h>
#include <unistd.h>

enum {
  LARGE = 33 << 20, /* bytes */
  FULL = 7 * 256,   /* columns that all lanes of a block load; some load one more */
  MOST_COLUMNS = FULL + 256,
  LEAST_COLUMNS = FULL + 248,
  EXTRA = 3, /* more rows, so that threads have different numbers of them */
  MOST_ROWS = LARGE / (LEAST_COLUMNS * 4) + EXTRA
};

/* C: columns, L: of them, those of a block's last load. The first is added behind others. */
static const char sum_text[] =
    ".program sums\n.block 256\n.buffer x f32 in\n.buffer y f32 inout\n"
    "mul.u32 r1, r253, #C\nadd.u32 r1, r1, blane\n"
    "ldg.f32 r2, [x + r1]\nldg.f32 r3, [x + r1 + #256]\nldg.f32 r4, [x + r1 + #512]\nldg.f32 r5, [x + r1 + #768]\n"
    "ldg.f32 r6, [x + r1 + #1024]\nldg.f32 r7, [x + r1 + #1280]\nldg.f32 r8, [x + r1 + #1536]\n"
    "add.f32 r3, r3, r4\nadd.f32 r3, r3, r5\nadd.f32 r3, r3, r6\nadd.f32 r3, r3, r7\nadd.f32 r3, r3, r8\n"
    "add.f32 r2, r2, r3\nmovi.f32 r9, #0\nset.ge.u32 p1, blane, #L\n@p1 bra behind\nldg.f32 r9, [x + r1 + #1792]\n"
    "behind:\nadd.f32 r2, r2, r9\nreduce.add.f32 r10, r2\n"
    "set.ne.u32 p0, blane, #0\n@p0 bra done\nstg.f32 [y + r253], r10\ndone:\nexit\n";

/* Whole numbers, whose sums are exact in any order. */
static float element(uint32_t row, uint32_t column) { return (float)((row * 7 + column * 13) % 61); }

static float sum_of(uint32_t row, uint32_t columns) {
  float sum = 0;
  for (uint32_t c = 0; c < columns; c++) sum += element(row, c);
  return sum;
}

static uint64_t whole_pages(uint64_t byte_count) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  return (byte_count + page - 1) / page * page;
}

/* The rows end where the readable memory does. */
static float *map_rows(uint64_t byte_count) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), whole = whole_pages(byte_count);
  uint8_t *memory = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  if (memory == MAP_FAILED) return NULL;
  CHECK(mprotect(memory + whole, page, PROT_NONE) == 0);
  return (float *)(memory + whole - byte_count);
}

static void check_launches(const char *text, hg_buffer *x, uint32_t row_count, uint32_t columns) {
  static float sums[MOST_ROWS];
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *y = buffer_of(sizeof sums, NULL);
  hg_binding bindings[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}};
  hg_launch_desc desc = {.size = sizeof desc, .grid = {row_count, 1, 1}, .bindings = bindings, .binding_count = 2};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, sums, row_count * sizeof *sums), HG_OK);
  for (uint32_t r = 0; r < row_count; r++) CHECK_EQ_U64(bits_of(sums[r]), bits_of(sum_of(r, columns)));
  desc.grid[0]++; /* a row that is not there */
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_FAULT);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
}

static void add_up(uint32_t columns) {
  const uint32_t row_count = LARGE / (columns * 4) + EXTRA;
  const uint64_t byte_count = (uint64_t)row_count * columns * sizeof(float);
  char counts[2][16], text[2048];
  snprintf(counts[0], sizeof counts[0], "%u", (unsigned)columns);
  snprintf(counts[1], sizeof counts[1], "%u", (unsigned)columns - FULL);
  fill_in(sum_text, "CL", (const char *const[]){counts[0], counts[1]}, text, sizeof text);
  float *rows = map_rows(byte_count);
  if (rows == NULL) return;
  for (uint32_t r = 0; r < row_count; r++)
    for (uint32_t c = 0; c < columns; c++) rows[(uint64_t)r * columns + c] = element(r, c);
  hg_buffer *x = NULL;
  CHECK_EQ_U64(hg_buffer_import(executor, rows, byte_count, &x), HG_OK);
  check_launches(text, x, row_count, columns);
  hg_buffer_release(x);
  CHECK(munmap((uint8_t *)rows + byte_count - whole_pages(byte_count), whole_pages(byte_count)) == 0);
}

int main(void) {
  static const uint32_t columns[] = {MOST_COLUMNS, MOST_COLUMNS - 1, LEAST_COLUMNS};
  hg_executor_desc cpu = {.size = sizeof cpu, .backend = HG_BACKEND_CPU};
  for (int isa = CPU_ISA_BASELINE; isa <= (int)hg_cpu_isa_best(); isa++) {
    set("HOLOGRAM_CPU_ISA", hg_cpu_isa_name((cpu_isa)isa));
    CHECK_EQ_U64(hg_executor_create(&cpu, &executor), HG_OK);
    for (size_t i = 0; i < COUNT(columns); i++) add_up(columns[i]);
    hg_executor_release(executor);
  }
  return check_report();
}
