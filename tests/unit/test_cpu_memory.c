/* test_cpu_memory.c - the memory of a CPU device: free blocks are used again and never show what was in them, however
 * many there are; the caller's allocator serves everything; address space that runs out is an error; large copies and
 * fills say the same as small ones. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "backend/cpu/cpu_memory.h"
#include "hologram/hologram.h"
#include "programs.h"

#if defined(_WIN32)
#  define setenv(name, value, overwrite) _putenv_s(name, value)
#  define unsetenv(name) _putenv_s(name, "")
#endif

enum { MEGABYTE = 1 << 20 };

static hg_allocator plain;

static uint8_t *allocate(hg_cpu_memory *memory, uint64_t byte_count, int zeroed) {
  uint8_t *address = NULL;
  CHECK_EQ_U64(hg_cpu_allocate(memory, byte_count, 64, zeroed, &address), HG_OK);
  CHECK((uintptr_t)address % 64 == 0);
  return address;
}

static int all_bytes_are(const uint8_t *bytes, uint64_t byte_count, uint8_t value) {
  return byte_count == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, (size_t)byte_count - 1) == 0);
}

/* ---- free blocks ------------------------------------------------------------------------------------------------- */

/* Very large buffers begin at one place or another of a block's first huge page. */
static int share_a_block(const uint8_t *a, const uint8_t *b) {
  return (uintptr_t)a / HG_HUGE_PAGE_BYTES == (uintptr_t)b / HG_HUGE_PAGE_BYTES;
}

static void blocks_are_used_again(void) {
  static const uint64_t sizes[] = {2 * MEGABYTE + 100, 3 * MEGABYTE + 1, 16 * MEGABYTE, 40 * MEGABYTE + 12345};
  hg_cpu_memory memory;
  hg_cpu_memory_open(&memory, &plain);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    uint8_t *first = allocate(&memory, sizes[i], 1);
    CHECK(all_bytes_are(first, sizes[i], 0));
    memset(first, 0xab, (size_t)sizes[i]);
    hg_cpu_free(&memory, first);
    uint8_t *second = allocate(&memory, sizes[i] - 100, 1);
    CHECK(share_a_block(second, first));
    CHECK(all_bytes_are(second, sizes[i] - 100, 0));
    uint8_t *third = allocate(&memory, sizes[i], 0); /* the block is taken: new pages, nobody's bytes */
    CHECK(!share_a_block(third, second) && all_bytes_are(third, sizes[i], 0));
    hg_cpu_free(&memory, third);
    hg_cpu_free(&memory, second);
  }
  CHECK(memory.kept_count >= sizeof sizes / sizeof sizes[0]);
  hg_cpu_memory_close(&memory);
  CHECK_EQ_U64(memory.kept_bytes, 0);
}

static void much_larger_blocks_are_not(void) {
  hg_cpu_memory memory;
  hg_cpu_memory_open(&memory, &plain);
  hg_cpu_free(&memory, allocate(&memory, 32 * MEGABYTE, 0));
  uint8_t *small = allocate(&memory, 2 * MEGABYTE, 0);
  CHECK_EQ_U64(memory.kept_count, 1);
  hg_cpu_free(&memory, small);
  CHECK_EQ_U64(memory.kept_count, 2);
  hg_cpu_memory_close(&memory);
}

static void the_cache_is_bounded(void) {
  enum { BLOCKS = CPU_KEPT_BLOCKS + 10 };
  uint8_t *blocks[BLOCKS];
  hg_cpu_memory memory;
  hg_cpu_memory_open(&memory, &plain);
  memory.kept_bytes_most = UINT64_MAX / 2;
  for (int i = 0; i < BLOCKS; i++) blocks[i] = allocate(&memory, 2 * MEGABYTE, 0);
  for (int i = 0; i < BLOCKS; i++) hg_cpu_free(&memory, blocks[i]);
  CHECK_EQ_U64(memory.kept_count, CPU_KEPT_BLOCKS);
  uint8_t *again = allocate(&memory, 2 * MEGABYTE, 0);
  CHECK(share_a_block(again, blocks[BLOCKS - 1]));
  hg_cpu_free(&memory, again);
  hg_cpu_memory_close(&memory);
  memory.kept_bytes_most = 10 * MEGABYTE;
  for (int i = 0; i < 5; i++) blocks[i] = allocate(&memory, 3 * MEGABYTE, 0);
  for (int i = 0; i < 5; i++) hg_cpu_free(&memory, blocks[i]);
  CHECK_EQ_U64(memory.kept_count, 3);
  hg_cpu_free(&memory, allocate(&memory, 11 * MEGABYTE, 0)); /* larger than all that is kept */
  CHECK_EQ_U64(memory.kept_count, 3);
  hg_cpu_memory_close(&memory);
}

/* Any order of sizes, contents and lives: zero where asked for, and no block is handed out twice. */
static void random_lives(void) {
  enum { LIVE = 12, STEPS = 400 };
  uint8_t *blocks[LIVE] = {NULL}, marks[LIVE] = {0};
  uint64_t sizes[LIVE] = {0}, random = 5;
  hg_cpu_memory memory;
  hg_cpu_memory_open(&memory, &plain);
  memory.kept_bytes_most = 24 * MEGABYTE;
  for (uint64_t step = 0; step < STEPS; step++) {
    uint64_t i = next_random(&random) % LIVE;
    if (blocks[i] != NULL) {
      CHECK(all_bytes_are(blocks[i], sizes[i], marks[i]));
      hg_cpu_free(&memory, blocks[i]);
    }
    sizes[i] = next_random(&random) % (next_random(&random) % 2 ? 8 * MEGABYTE : 1000);
    int zeroed = (int)(next_random(&random) % 2);
    blocks[i] = allocate(&memory, sizes[i], zeroed);
    if (zeroed) CHECK(all_bytes_are(blocks[i], sizes[i], 0));
    marks[i] = (uint8_t)(step % 255 + 1);
    memset(blocks[i], marks[i], (size_t)sizes[i]);
  }
  for (int i = 0; i < LIVE; i++)
    if (blocks[i] != NULL) hg_cpu_free(&memory, blocks[i]);
  hg_cpu_memory_close(&memory);
}

/* Only those that a launch would write past the caches, and of which no alignment is asked that forbids it. */
static void places_in_a_page(void) {
  enum { BLOCKS = 4 };
  uint8_t *large[BLOCKS], *aligned[BLOCKS], *smaller[BLOCKS];
  hg_cpu_memory memory;
  hg_cpu_memory_open(&memory, &plain);
  memory.stream_bytes = 16 * MEGABYTE;
  for (int i = 0; i < BLOCKS; i++) {
    large[i] = allocate(&memory, 4 * MEGABYTE, 0);
    smaller[i] = allocate(&memory, 4 * MEGABYTE - 1, 0);
    CHECK_EQ_U64(hg_cpu_allocate(&memory, 4 * MEGABYTE, 4096, 0, &aligned[i]), HG_OK);
    memset(large[i], 1, 4 * MEGABYTE);
  }
  for (int i = 0; i < BLOCKS; i++) {
    CHECK_EQ_U64((uintptr_t)smaller[i] % 4096, (uintptr_t)smaller[0] % 4096);
    CHECK_EQ_U64((uintptr_t)aligned[i] % 4096, 0);
    for (int k = 0; k < i; k++) {
      uintptr_t apart = ((uintptr_t)large[i] - (uintptr_t)large[k]) % HG_HUGE_PAGE_BYTES;
      CHECK(apart % 4096 != 0 && apart > 4096 && apart < HG_HUGE_PAGE_BYTES - 4096);
    }
  }
  for (int i = 0; i < BLOCKS; i++) {
    hg_cpu_free(&memory, large[i]);
    hg_cpu_free(&memory, smaller[i]);
    hg_cpu_free(&memory, aligned[i]);
  }
  hg_cpu_memory_close(&memory);
}

static void callers_allocator(void) {
  faulty f = {0};
  hg_allocator callers = {
      .size = sizeof callers, .user = &f, .allocate = faulty_allocate, .release = faulty_release};
  hg_cpu_memory memory;
  hg_cpu_memory_open(&memory, &callers);
  for (uint32_t alignment = 64; alignment <= 4096; alignment *= 2) {
    uint8_t *address = NULL;
    CHECK_EQ_U64(hg_cpu_allocate(&memory, 8 * MEGABYTE, alignment, 1, &address), HG_OK);
    CHECK((uintptr_t)address % alignment == 0 && all_bytes_are(address, 8 * MEGABYTE, 0));
    CHECK_EQ_U64(f.held, 1);
    memset(address, 1, 8 * MEGABYTE);
    hg_cpu_free(&memory, address);
    CHECK_EQ_U64(f.held + (long)memory.kept_count, 0);
    f.fail_at = f.calls + 1;
    CHECK_EQ_U64(hg_cpu_allocate(&memory, 8 * MEGABYTE, alignment, 1, &address), HG_OUT_OF_MEMORY);
  }
  hg_cpu_memory_close(&memory);
}

static void impossible_sizes(void) {
  static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 4096, UINT64_MAX / 2, UINT64_MAX / 4, UINT64_C(1) << 60};
  hg_cpu_memory memory;
  hg_cpu_memory_open(&memory, &plain);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    uint8_t *address = &(uint8_t){0};
    hg_cpu_free(&memory, allocate(&memory, 2 * MEGABYTE, 0));
    CHECK_EQ_U64(hg_cpu_allocate(&memory, sizes[i], 4096, 1, &address), HG_OUT_OF_MEMORY);
    CHECK(address == NULL);
  }
  hg_cpu_memory_close(&memory);
}

/* ---- copies and fills -------------------------------------------------------------------------------------------- */

/* Small ones and ones that threads share, from any alignment, past the caches or through them. */
static void copies_and_fills(uint64_t stream_bytes) {
  enum { ROOM = 3 * MEGABYTE + 1000 };
  static const uint64_t sizes[] = {0, 1, 7, 8, 63, 64, 65, 200, 5000, MEGABYTE, 2 * MEGABYTE + 77, 3 * MEGABYTE};
  static const uint64_t pattern = UINT64_C(0x8877665544332211);
  uint8_t *source = malloc(ROOM), *destination = malloc(ROOM);
  hg_cpu_memory memory;
  uint64_t random = 9;
  hg_cpu_memory_open(&memory, &plain);
  memory.stream_bytes = stream_bytes;
  for (size_t i = 0; i < ROOM; i++) source[i] = (uint8_t)(next_random(&random) >> 56 & 0x7f);
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (uint64_t k = 0; k < 20; k++) {
      uint64_t to = 1 + next_random(&random) % 100, from = next_random(&random) % 100, size = sizes[s], wrong = 0;
      memset(destination, 0xee, ROOM);
      hg_cpu_copy(&memory, destination + to, source + from, size);
      CHECK(memcmp(destination + to, source + from, (size_t)size) == 0);
      CHECK(destination[to - 1] == 0xee && destination[to + size] == 0xee);
      hg_cpu_fill(&memory, destination + to, size, pattern);
      for (uint64_t i = 0; i < size; i++) wrong += destination[to + i] != (uint8_t)(0x11 * (i % 8 + 1));
      CHECK_EQ_U64(wrong, 0);
      CHECK(destination[to - 1] == 0xee && destination[to + size] == 0xee);
      hg_cpu_fill(&memory, destination + to, size, UINT64_C(0x0505050505050505));
      CHECK(all_bytes_are(destination + to, size, 5));
      CHECK(destination[to - 1] == 0xee && destination[to + size] == 0xee);
    }
  memcpy(destination, source, ROOM); /* overlapping, either way */
  hg_cpu_copy(&memory, destination + 500, destination, 3 * MEGABYTE);
  CHECK(memcmp(destination + 500, source, 3 * MEGABYTE) == 0);
  hg_cpu_copy(&memory, destination, destination + 500, 3 * MEGABYTE);
  CHECK(memcmp(destination, source, 3 * MEGABYTE) == 0);
  hg_cpu_memory_close(&memory);
  free(source);
  free(destination);
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static void note_message(void *user, hg_log_level level, const char *message) {
  (void)level;
  if (strstr(message, "is ignored") != NULL) snprintf(user, 200, "%s", message);
}

static void threshold_setting(void) {
  static const char *const bad[] = {"x", "-1", "1M", "1.5", "99999999999999999999",
                                    "99999999999999999999999999999999999"};
  char message[200] = "";
  hg_executor_desc desc = {.log = note_message, .log_user = message};
  hg_executor *executor = NULL;
  unsetenv("HOLOGRAM_STREAM_BYTES");
  uint64_t measured = hg_stream_threshold();
  CHECK(measured > 0 && hg_stream_remark() == NULL);
  setenv("HOLOGRAM_STREAM_BYTES", "12345", 1);
  CHECK(hg_stream_threshold() == 12345 && hg_stream_remark() == NULL);
  setenv("HOLOGRAM_STREAM_BYTES", "0", 1);
  CHECK(hg_stream_threshold() == 0 && hg_stream_remark() == NULL);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    message[0] = '\0';
    setenv("HOLOGRAM_STREAM_BYTES", bad[i], 1);
    CHECK_EQ_U64(hg_stream_threshold(), measured);
    CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
    CHECK_STR(message, "cpu: HOLOGRAM_STREAM_BYTES is not a number of bytes and is ignored");
    hg_executor_release(executor);
  }
  setenv("HOLOGRAM_NUM_THREADS", "x", 1); /* one bad value hides no other */
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  CHECK_STR(message, "cpu: HOLOGRAM_NUM_THREADS is not a number from 1 to 256 and is ignored; "
                     "HOLOGRAM_STREAM_BYTES is not a number of bytes and is ignored");
  hg_executor_release(executor);
  unsetenv("HOLOGRAM_NUM_THREADS");
  unsetenv("HOLOGRAM_STREAM_BYTES");
}

/* ---- address space ----------------------------------------------------------------------------------------------- */

#if !defined(_WIN32)
#  include <sys/resource.h>
#  include <sys/wait.h>
#  include <unistd.h>

/* In a process of its own: takes all there is, in buffers of one size, then gives it back and has a launch's worth. */
static int exhaust(uint64_t byte_count) {
  enum { MOST = 100000 };
  static hg_buffer *buffers[MOST];
  static const hg_buffer_desc uninit = {.flags = HG_BUFFER_UNINIT};
  struct rlimit limit;
  hg_executor *executor = NULL;
  hg_buffer *large = NULL;
  int count = 0;
  if (hg_executor_create(NULL, &executor) != HG_OK || getrlimit(RLIMIT_AS, &limit) != 0) return 1;
  limit.rlim_cur = 256 << 20;
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
  while (count < MOST && hg_buffer_create(executor, &uninit, byte_count, &buffers[count]) == HG_OK) count++;
  if (count == 0 || count == MOST) return 3;
  if (hg_buffer_create(executor, NULL, byte_count, &large) != HG_OUT_OF_MEMORY || large != NULL) return 4;
  if (strstr(hg_last_error(), "could not allocate") == NULL) return 5;
  uint32_t word = 7;
  if (hg_buffer_write(buffers[count - 1], 0, &word, sizeof word) != HG_OK) return 6;
  for (int i = 0; i < count; i++) hg_buffer_release(buffers[i]);
  /* What is kept in blocks of that size must make room for one of another. */
  if (byte_count >= HG_CPU_LARGE_BYTES && hg_buffer_create(executor, NULL, 128 * MEGABYTE, &large) != HG_OK) return 7;
  hg_buffer_release(large);
  hg_executor_release(executor);
  return 0;
}

static void address_space_runs_out(void) {
  static const uint64_t sizes[] = {100000, 2 * MEGABYTE, 5 * MEGABYTE, 60 * MEGABYTE};
  if (SANITIZED) {
    printf("skipped: address_space_runs_out: a sanitizer needs the address space itself\n");
    return;
  }
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(exhaust(sizes[i]));
    int status = 0;
    while (waitpid(child, &status, 0) < 0) continue;
    CHECK(WIFEXITED(status));
    CHECK_EQ_U64(WEXITSTATUS(status), 0);
  }
}
#else
static void address_space_runs_out(void) {
  printf("skipped: address_space_runs_out: there is no such limit here\n");
}
#endif

int main(void) {
  setenv("HOLOGRAM_NUM_THREADS", "3", 1);
  hg_allocator_resolve(NULL, &plain);
  blocks_are_used_again();
  much_larger_blocks_are_not();
  the_cache_is_bounded();
  random_lives();
  places_in_a_page();
  callers_allocator();
  impossible_sizes();
  copies_and_fills(0);
  copies_and_fills(UINT64_MAX);
  threshold_setting();
  address_space_runs_out();
  return check_report();
}
