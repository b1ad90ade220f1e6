/* test_metal_cache.c - kernels of the Metal backend in the cache: another process, or another kernel of the same
 * program, takes their machine code from a binary archive; what another system needs, or does not load, is compiled
 * anew, and without archives all works. On simulated Metal, which counts what it compiles. */
#define _GNU_SOURCE
#include "cache_folder.h"
#include "computing.h"
#include "fake_metal.h"
#include "streams.h"

#include "backend/gpu/gpu.h"
#include "base/bytes.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 1024, FORMS = 3 };

static char folder[FOLDER_BYTES];
static int lines_before; /* the program's text: they do not change what it is */
static long *seen; /* by a process that has ended: pipelines that were compiled */

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* Blocks of 512 lanes: more than the usual form can have. */
static hg_status launch_blocks(hg_kernel *kernel, hg_buffer *x) {
  hg_binding binding = {.name = "x", .buffer = x};
  hg_scalar c = {.name = "c", .type = ATLAS_u32, .bits = 5};
  hg_launch_desc desc = {.grid = {WORDS / 512, 1, 1},
                         .block = {512, 1, 1},
                         .bindings = &binding,
                         .binding_count = 1,
                         .scalars = &c,
                         .scalar_count = 1};
  return hg_launch(kernel, &desc, NULL);
}

/* In three forms: the last launch, whose buffer is too short, needs the one with all tests. A fault is at the line of
 * this text. */
static void run_step(void) {
  static const uint32_t zeros[WORDS];
  char text[1024], sentence[128];
  snprintf(text, sizeof text, "%.*s%s", lines_before, "\n\n\n\n", step_text);
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *x = buffer_of(sizeof zeros, zeros);
  CHECK_EQ_U64(give(kernel, x, "c", 5, WORDS, NULL), HG_OK);
  check_all_words(x, 5);
  CHECK_EQ_U64(launch_blocks(kernel, x), HG_OK);
  check_all_words(x, 20);
  CHECK_EQ_U64(give(kernel, x, "c", 5, WORDS + 1, NULL), HG_FAULT);
  snprintf(sentence, sizeof sentence, "line %d (ldg): lane 1024 read past 'x': index 1024, extent 1024",
           4 + lines_before);
  CHECK_STR(hg_last_error(), sentence);
  hg_buffer_release(x);
  hg_kernel_release(kernel);
}

static void run_twice(void) {
  run_step();
  run_step();
}

static void run_scene(void (*scene)(void)) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  if (executor != NULL) scene();
  hg_executor_release(executor);
  *seen = sim.compiled();
}

/* Runs a scene in a process of its own, in which so many pipelines are compiled and the n-th call for that fails. */
static void check_compiled(void (*scene)(void), const char *fails, long n, long expected) {
  int status = -1;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    check_failed = 0;
    if (fails != NULL) sim.fail(fails, n);
    run_scene(scene);
    exit(check_failed != 0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_EQ_U64(status, 0);
  if (expected >= 0) CHECK_EQ_U64(*seen, expected);
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

static void test_kept(void) {
  check_compiled(run_twice, NULL, 0, FORMS);
  CHECK_EQ_U64(count_files(folder), FORMS); /* nothing else is left there */
  check_compiled(run_step, NULL, 0, 0);
  lines_before = 3;
  check_compiled(run_step, NULL, 0, 0);
  lines_before = 0;
  set("SIMMETAL_SYSTEM", "Version 15.0 (simulated)");
  check_compiled(run_step, NULL, 0, FORMS);
  check_compiled(run_step, NULL, 0, 0);
  set("SIMMETAL_SYSTEM", NULL);
  check_compiled(run_step, NULL, 0, 0);
  CHECK_EQ_U64(count_files(folder), 2 * FORMS);
}

/* Each call for an archive fails once: only time is lost. */
static void test_without_archives(void) {
  for (int is_kept = 0; is_kept < 2; is_kept++)
    for (long n = 1; n <= 8; n++) {
      if (!is_kept) empty_folder(folder);
      check_compiled(run_step, "archive", n, -1);
      CHECK(*seen <= FORMS && (is_kept || *seen == FORMS));
      CHECK(count_files(folder) == FORMS);
      if (!is_kept && n < 7) check_compiled(run_step, NULL, 0, 1); /* the other's archive is there */
    }
  empty_folder(folder);
  set("HOLOGRAM_CACHE", "0"); /* no folder, so no archives, but what memory keeps */
  check_compiled(run_twice, NULL, 0, 2 * FORMS);
  set("HOLOGRAM_CACHE", NULL);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

typedef enum damage {
  A_BIT,         /* which the file's digest shows; under a right digest: */
  NO_TEXT,       /* Metal does not compile it */
  NO_ARCHIVE,    /* Metal does not read it */
  OTHER_VERSION, /* what is known of the kernel is of another size */
  TOO_SHORT,     /* there is no text */
  DAMAGE_COUNT
} damage;

static damage current;

/* The form of a file: base/kernel_cache.h; of what it keeps: kernel.c. Returns its new size. */
static size_t damage_bytes(uint8_t *file, size_t count) {
  size_t payload = 24 + (size_t)(file[12] | file[13] << 8), short_bytes = sizeof(hg_gpu_info);
  switch (current) {
  case A_BIT: file[payload + 40] ^= 1; return count;
  case NO_TEXT: *find_bytes(file, count, "kernel void") = 'K'; break;
  case NO_ARCHIVE: *find_bytes(file, count, "SIMULATED METAL") = 's'; break;
  case OTHER_VERSION: file[payload] ^= 4; break;
  default:
    count = payload + short_bytes + HG_SHA256_BYTES;
    hg_store_le(file + 16, 8, short_bytes);
    break;
  }
  hash_of(file, count - HG_SHA256_BYTES, file + count - HG_SHA256_BYTES);
  return count;
}

/* What is damaged is compiled anew, and replaced; a text without its archive is not. */
static void test_damage(void) {
  for (current = A_BIT; current < DAMAGE_COUNT; current++) {
    empty_folder(folder);
    check_compiled(run_step, NULL, 0, FORMS);
    damage_files(folder, damage_bytes);
    check_compiled(run_step, NULL, 0, FORMS);
    check_compiled(run_step, NULL, 0, current == NO_ARCHIVE ? FORMS : 0);
    CHECK_EQ_U64(count_files(folder), FORMS);
  }
}

/* ---- the simulation's own folder --------------------------------------------------------------------------------- */

/* Two programs, whose launches compute nothing. */
static void run_deferred(void) {
  static const uint32_t zeros[WORDS];
  const char *const texts[] = {step_text, slow_text};
  hg_buffer *x = buffer_of(sizeof zeros, zeros);
  for (int i = 0; i < 2; i++) {
    hg_kernel *kernel = kernel_of(texts[i]);
    CHECK_EQ_U64(give(kernel, x, i == 0 ? "c" : "rounds", 5, WORDS, NULL), HG_OK);
    hg_kernel_release(kernel);
  }
  check_all_words(x, 0);
  hg_buffer_release(x);
}

static void run_together(void) {
  const char *kept = getenv("SIMMETAL_CACHE");
  sim.defer(1);
  run_deferred();
  CHECK_EQ_U64(count_files(kept), 0);
  sim.defer(0);
  CHECK_EQ_U64(count_files(kept), 2);
  run_step(); /* its forms have one text, but for the one with all tests */
  CHECK_EQ_U64(count_files(kept), 3);
}

/* Kernels that are compiled together are found by those who want one of them, and what they are alone. */
static void test_together(void) {
  char own[FOLDER_BYTES], usual[FOLDER_BYTES];
  snprintf(usual, sizeof usual, "%s", getenv("SIMMETAL_CACHE") != NULL ? getenv("SIMMETAL_CACHE") : "");
  make_folder(own, "together");
  set("SIMMETAL_CACHE", own);
  set("HOLOGRAM_CACHE", "0");
  check_compiled(run_together, NULL, 0, -1);
  delete_folder(own);
  set("SIMMETAL_CACHE", usual[0] != '\0' ? usual : NULL);
}

/* ---- compiling in full beforehand -------------------------------------------------------------------------------- */

/* The run compiles nothing that was not there. */
static void test_warm(void) {
  enum { ROWS = 2, COLUMNS = 1 << 10 };
  uint64_t kernels = 0;
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  hg_tensor x = matrix_of(NULL, ROWS, COLUMNS);
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value of = hg_computation_input(c, "x", &x);
  CHECK_EQ_U64(hg_computation_output(c, "y", hg_compute(c, HG_OP_softmax, &of, 1, NULL, 0), NULL), HG_OK);
  hg_executable *e = compiled(c);
  CHECK_EQ_U64(hg_executable_warm(e, &kernels), HG_OK);
  long made = sim.compiled();
  CHECK(kernels == 1 && made > 0);
  hg_tensor y = x;
  x.buffer = buffer_of(ROWS * COLUMNS * sizeof(float), NULL);
  y.buffer = buffer_of(ROWS * COLUMNS * sizeof(float), NULL);
  CHECK_EQ_U64(hg_run(e, &x, 1, &y, 1, NULL, NULL), HG_OK);
  CHECK_EQ_U64((uint64_t)sim.compiled(), (uint64_t)made);
  hg_buffer_release(x.buffer);
  hg_buffer_release(y.buffer);
  hg_executable_release(e);
  hg_computation_release(c);
  hg_executor_release(executor);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  if (!begin_on_fake_metal()) return check_report();
  seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(seen != MAP_FAILED);
  if (seen == MAP_FAILED) return check_report();
  make_folder(folder, "metal");
  test_kept();
  test_without_archives();
  test_damage();
  delete_folder(folder);
  test_together();
  test_warm();
  return check_report();
}
