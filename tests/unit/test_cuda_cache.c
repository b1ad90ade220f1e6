/* test_cuda_cache.c - kernels of the CUDA backend in the cache on disk: another process loads them without the driver's
 * compiler and gets the same answers; what another GPU or driver needs, or does not load, is compiled anew. On the
 * double of libcuda, which notes every text that it links. */
#define _GNU_SOURCE
#include "cache_folder.h"
#include "streams.h"

#include "atlas/functions.h"
#include "atlas/interp.h"
#include "backend/cuda/ptx/emit_ptx.h"
#include "base/bytes.h"

#include <sys/wait.h>
#include <unistd.h>

static char folder[FOLDER_BYTES], linked[] = "/tmp/test_cuda_cache_XXXXXX";

/* ---- processes --------------------------------------------------------------------------------------------------- */

static void run_scene(void (*scene)(void)) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  if (executor == NULL) return;
  scene();
  hg_executor_release(executor);
  CHECK_CLEAN();
}

/* How many texts the driver has been given since this was asked last. */
static unsigned count_links(void) {
  unsigned count = 0;
  char line[4096];
  FILE *file = fopen(linked, "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) count += strncmp(line, ".version", 8) == 0;
  if (file != NULL) fclose(file);
  CHECK(truncate(linked, 0) == 0);
  return count;
}

/* Runs a scene in a process of its own, which links so many texts. */
static void check_links(void (*scene)(void), unsigned expected) {
  int status = -1;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    check_failed = 0;
    run_scene(scene);
    exit(check_failed != 0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_EQ_U64(status, 0);
  CHECK_EQ_U64(count_links(), expected);
}

/* ---- scenes ------------------------------------------------------------------------------------------------------ */

enum { WORDS = 1024, STEP_FORMS = 3, LANES = 40 };

static int lines_before; /* the program's text: they do not change what it is */

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

/* In three forms: the usual one, for larger blocks, and with every access checked. */
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

/* In two forms: a table of results wants shared memory that loading has to ask for. */
static void run_table(void) {
  uint16_t x[LANES], y[LANES] = {0};
  for (unsigned i = 0; i < LANES; i++) x[i] = (uint16_t)(0x3000 + 0x123 * i);
  hg_kernel *kernel = kernel_of(".program table\n.buffer x f16 in\n.buffer y f16 out\nldg.f16 r0, [x + lane]\n"
                                "gelu.f16 r0, r0\nstg.f16 [y + lane], r0\nexit\n");
  hg_buffer *in = buffer_of(sizeof x, x), *out = buffer_of(sizeof y, NULL);
  hg_binding bindings[] = {{.name = "x", .buffer = in}, {.name = "y", .buffer = out}};
  hg_launch_desc desc = {.lanes = LANES, .bindings = bindings, .binding_count = 2};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(out, 0, y, sizeof y), HG_OK);
  for (unsigned i = 0; i < LANES; i++) CHECK_EQ_U64(y[i], atlas_function(ATLAS_OP_gelu, ATLAS_f16, x[i], 0));
  hg_buffer_release(in);
  hg_buffer_release(out);
  hg_kernel_release(kernel);
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

static void test_another_process(void) {
  check_links(run_step, STEP_FORMS);
  CHECK_EQ_U64(count_files(folder), STEP_FORMS);
  check_links(run_step, 0);
  lines_before = 3;
  check_links(run_step, 0);
  lines_before = 0;
  set("HOLOGRAM_TABLE_LANES", "1");
  check_links(run_table, 2);
  check_links(run_table, 0);
  set("HOLOGRAM_TABLE_LANES", NULL);
  CHECK_EQ_U64(count_files(folder), STEP_FORMS + 2);
}

/* Kernels for one GPU and driver are not for another; both are kept. */
static void test_others(void) {
  static const char *const others[][2] = {{"FAKECUDA_CAPABILITY", "80"}, {"FAKECUDA_DRIVER", "12040"}};
  for (size_t i = 0; i < COUNT(others); i++) {
    set(others[i][0], others[i][1]);
    check_links(run_step, STEP_FORMS);
    check_links(run_step, 0);
    set(others[i][0], NULL);
    check_links(run_step, 0);
  }
}

/* Lines are those of one text, and kept nowhere. */
static void test_lines(void) {
  set("HOLOGRAM_LINES", "1");
  check_links(run_step, STEP_FORMS); /* there are kernels without */
  empty_folder(folder);
  check_links(run_step, STEP_FORMS);
  CHECK_EQ_U64(count_files(folder), 0);
  set("HOLOGRAM_LINES", NULL);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

typedef enum damage {
  A_BIT,         /* which the file's digest shows; under a right digest: */
  NO_IMAGE,      /* the driver does not load it */
  NO_ENTRY,      /* the driver does not find the kernel in it */
  OTHER_VERSION, /* what is known of the kernel is of another size */
  TOO_SHORT,     /* there is no machine code */
  DAMAGE_COUNT
} damage;

static damage current;

/* The form of a file: base/kernel_cache.h; of what it keeps: module.c. Returns its new size. */
static size_t damage_bytes(uint8_t *file, size_t count) {
  size_t payload = 24 + (size_t)(file[12] | file[13] << 8), image = payload + sizeof(hg_gpu_info);
  CHECK(image + HG_SHA256_BYTES < count && memcmp(file + image, "FAKECUBIN", 9) == 0);
  switch (current) {
  case A_BIT: file[image + 40] ^= 1; return count;
  case NO_IMAGE: file[image] ^= 1; break;
  case NO_ENTRY: *(find_bytes(file, count, ".entry hg_step") + 10) = 'S'; break;
  case OTHER_VERSION: file[payload] ^= 4; break;
  default:
    count = image + HG_SHA256_BYTES;
    hg_store_le(file + 16, 8, sizeof(hg_gpu_info));
    break;
  }
  hash_of(file, count - HG_SHA256_BYTES, file + count - HG_SHA256_BYTES);
  return count;
}

/* What is damaged is compiled anew, and replaced. */
static void test_damage(void) {
  check_links(run_step, STEP_FORMS);
  for (current = A_BIT; current < DAMAGE_COUNT; current++) {
    CHECK_EQ_U64(count_files(folder), STEP_FORMS);
    damage_files(folder, damage_bytes);
    check_links(run_step, STEP_FORMS);
    check_links(run_step, 0);
  }
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  int file = mkstemp(linked);
  CHECK(file >= 0 && close(file) == 0);
  CHECK(find_fake_gpu());
  make_folder(folder, "cuda");
  set("HOLOGRAM_TEST_BACKEND", "cuda");
  set("FAKECUDA_DUMP", linked);
  test_another_process();
  test_others();
  test_lines();
  test_damage();
  delete_folder(folder);
  unlink(linked);
  return check_report();
}
