/* test_shared.c - shared memory up to all that a program may declare: it begins as zero, every element is there, and
 * past the last one is a fault. Where a device has less, the kernel is refused with both numbers. */
#include "launching.h"

enum { BLOCK = 256, BLOCKS = 2, LANES = BLOCK * BLOCKS };

/* Each block reads all elements, which are zero; writes them; and reads them from the last one on. */
static const char text_of_all[] =
    ".program large\n.block 256\n.shared s u32 N\n.buffer y u32 out\n.buffer z u32 out\n"
    "    movi.u32 r1, #0\n"
    "    mov.u32 r0, blane\n"
    "zeros: lds.u32 r2, [s + r0]\n"
    "    or.u32 r1, r1, r2\n"
    "    add.u32 r0, r0, #256\n"
    "    set.lt.u32 p0, r0, #N\n"
    "    @p0 bra zeros\n"
    "    stg.u32 [z + lane], r1\n"
    "    bar.sync\n"
    "    mov.u32 r0, blane\n"
    "fill: mad.u32 r2, r0, #2654435761, r253\n"
    "    sts.u32 [s + r0], r2\n"
    "    add.u32 r0, r0, #256\n"
    "    set.lt.u32 p0, r0, #N\n"
    "    @p0 bra fill\n"
    "    bar.sync\n"
    "    mov.u32 r0, blane\n"
    "    movi.u32 r1, #0\n"
    "back: sub.u32 r3, #N, r0\n"
    "    lds.u32 r2, [s + r3 + #-1]\n"
    "    mad.u32 r1, r1, #31, r2\n"
    "    add.u32 r0, r0, #256\n"
    "    set.lt.u32 p0, r0, #N\n"
    "    @p0 bra back\n"
    "C   stg.u32 [y + lane], r1\n"
    "    exit\n";

/* The program with N elements; with a reduction, which on a GPU takes shared memory too. */
static void write_text(char *text, size_t room, uint32_t elements, int collects) {
  char number[16];
  snprintf(number, sizeof number, "%u", (unsigned)elements);
  fill_in(text_of_all, "NC", (const char *const[]){number, collects ? "reduce.add.u32 r1, r1\n" : ""}, text, room);
}

static uint32_t expected_of(uint32_t elements, uint32_t block, uint32_t lane) {
  uint32_t sum = 0;
  for (uint32_t i = lane; i < elements; i += BLOCK) sum = sum * 31 + (elements - 1 - i) * UINT32_C(2654435761) + block;
  return sum;
}

static void check_results(hg_kernel *kernel, uint32_t elements, int collects) {
  uint32_t results[LANES], zeros[LANES], total[BLOCKS] = {0};
  hg_buffer *y = buffer_of(sizeof results, NULL), *z = buffer_of(sizeof zeros, NULL);
  hg_binding bindings[] = {{.name = "y", .buffer = y}, {.name = "z", .buffer = z}};
  hg_launch_desc desc = {.size = sizeof desc, .lanes = LANES, .bindings = bindings, .binding_count = 2};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK); /* what the last launch left is not seen */
  CHECK_EQ_U64(hg_buffer_read(y, 0, results, sizeof results), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(z, 0, zeros, sizeof zeros), HG_OK);
  for (uint32_t i = 0; i < LANES; i++) total[i / BLOCK] += expected_of(elements, i / BLOCK, i % BLOCK);
  for (uint32_t i = 0; i < LANES; i++) {
    CHECK_EQ_U64(zeros[i], 0);
    CHECK_EQ_U64(results[i], collects ? total[i / BLOCK] : expected_of(elements, i / BLOCK, i % BLOCK));
  }
  hg_buffer_release(y);
  hg_buffer_release(z);
}

/* A refusal says what is needed and what there is, and is right. */
static void check_refusal(uint32_t bytes, uint32_t device_bytes) {
  unsigned needed = 0, lanes = 0, given = 0;
  const char *sentence = hg_last_error();
  int found = sscanf(sentence, "program 'large' needs %u bytes of shared memory for a block of %u lanes, with what its "
                               "collectives exchange; this GPU gives a block %u", &needed, &lanes, &given);
  if (!check_note(found == 3)) printf("%s\n", sentence);
  CHECK_EQ_U64(given, device_bytes);
  CHECK(needed > given && needed >= bytes);
  CHECK_EQ_U64(lanes, BLOCK);
}

static void test_size(uint32_t bytes, int collects) {
  char text[2 * sizeof text_of_all];
  hg_executor_info device = {0};
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  CHECK_EQ_U64(hg_executor_query(executor, &device), HG_OK);
  write_text(text, sizeof text, bytes / 4, collects);
  CHECK_EQ_U64(atlas_parse(NULL, text, strlen(text), "test", &program), HG_OK);
  hg_status status = hg_kernel_create(executor, program, &kernel);
  int fits = bytes <= device.max_shared_bytes, is_gpu = test_backend() != HG_BACKEND_CPU;
  if (!is_gpu || (fits && !collects)) CHECK_EQ_U64(status, HG_OK);
  if (!fits) CHECK_EQ_U64(status, HG_UNSUPPORTED);
  if (status == HG_OK) {
    hg_kernel_info info = {0};
    CHECK_EQ_U64(hg_kernel_query(kernel, &info), HG_OK);
    CHECK(info.shared_bytes >= bytes || (is_gpu && bytes <= 48 << 10)); /* the double knows no other number */
    check_results(kernel, bytes / 4, collects);
  } else {
    CHECK_EQ_U64(status, HG_UNSUPPORTED);
    check_refusal(bytes, device.max_shared_bytes);
  }
  hg_kernel_release(kernel);
  atlas_program_release(program);
}

/* The last element of the last array is the last byte that there is. */
static void test_end(void) {
  static const char text[] = ".program end\n.block 2\n.shared a u8 100000\n.shared b f64 16555\n.buffer y f64 out\n"
                             "    movi.f64 r0, #1.5\n"
                             "    cvt.u32.u64 r1, lane\n"
                             "    sts.f64 [b + r1 + #16554], r0\n"
                             "    lds.f64 r2, [b + r1 + #16553]\n"
                             "    stg.f64 [y + lane], r2\n"
                             "    exit\n";
  hg_executor_info device = {0};
  CHECK_EQ_U64(hg_executor_query(executor, &device), HG_OK);
  if (device.max_shared_bytes < ATLAS_MAX_SHARED_BYTES) return;
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *y = buffer_of(16, NULL);
  hg_binding binding = {.name = "y", .buffer = y};
  hg_launch_desc desc = {.size = sizeof desc, .lanes = 2, .bindings = &binding, .binding_count = 1};
  hg_launch_report report = {0};
  double values[2] = {0};
  CHECK_EQ_U64(hg_launch(kernel, &desc, &report), HG_FAULT);
  CHECK_EQ_U64(report.fault.kind, HG_FAULT_OUT_OF_BOUNDS);
  CHECK_STR(report.fault.buffer, "b");
  CHECK(report.fault.lane == 1 && report.fault.index == 16555 && report.fault.extent == 16555);
  CHECK_EQ_U64(hg_buffer_read(y, 0, values, sizeof values), HG_OK);
  CHECK(values[0] == 0);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
}

/* Of a program that leaves the block open, larger blocks exchange more: one launch may be refused, another not. */
static void test_open_block(void) {
  static const char text[] = ".program large\n.shared s u32 57000\n.buffer y u32 out\n"
                             "    sts.u32 [s + blane + #50000], blane\n"
                             "    bar.sync\n"
                             "    lds.u32 r0, [s + blane + #50000]\n"
                             "    reduce.add.u32 r0, r0\n"
                             "    stg.u32 [y + lane], r0\n"
                             "    exit\n";
  static const uint32_t blocks[] = {256, 1024, 256};
  hg_executor_info device = {0};
  CHECK_EQ_U64(hg_executor_query(executor, &device), HG_OK);
  if (device.max_shared_bytes < ATLAS_MAX_SHARED_BYTES) return;
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *y = buffer_of(4096, NULL);
  hg_binding binding = {.name = "y", .buffer = y};
  for (size_t i = 0; i < COUNT(blocks); i++) {
    hg_launch_desc desc = {
        .size = sizeof desc, .grid = {1}, .block = {blocks[i]}, .bindings = &binding, .binding_count = 1};
    hg_status status = hg_launch(kernel, &desc, NULL);
    if (status == HG_OK) {
      uint32_t last = 0;
      CHECK_EQ_U64(hg_buffer_read(y, 4 * (blocks[i] - 1), &last, 4), HG_OK);
      CHECK_EQ_U64(last, blocks[i] * (blocks[i] - 1) / 2);
    } else {
      CHECK(test_backend() != HG_BACKEND_CPU && blocks[i] == 1024);
      CHECK_EQ_U64(status, HG_UNSUPPORTED);
      CHECK(strncmp(hg_last_error(), "program 'large' needs ", strlen("program 'large' needs ")) == 0);
    }
  }
  hg_buffer_release(y);
  hg_kernel_release(kernel);
}

int main(void) {
  static const uint32_t sizes[] = {1024, 32768, 32772, 45056, 49152, 49156, 65536, 65540, 163840, 230384, 232448};
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  for (size_t i = 0; i < COUNT(sizes); i++)
    for (int collects = 0; collects < 2; collects++) test_size(sizes[i], collects);
  test_end();
  test_open_block();
  hg_executor_release(executor);
  return check_report();
}
