/* test_kernel_info.c - what a kernel says of itself: parameters, block, hash, engine, and why no faster one. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "backend/cpu/engine/detect.h"
#include "backend/cpu/targets.h"
#include "base/os.h"
#include "environment.h"
#include "launching.h"

static const char everything_text[] =
    ".program everything\n"
    ".block 32, 2, 1\n"
    ".const c f32 { #1.5 }\n"
    ".buffer x f32 inout\n"
    ".scalar a f64\n"
    ".shared tile u16 33\n"
    ".table t 7 inout\n"
    ".buffer y u8 out\n"
    ".pool heap\n"
    "    ldg.f32 r0, [x + lane]\n"
    "    movi.u16 r1, #1\n"
    "    sts.u16 [tile + #0], r1\n"
    "    stg.f32 [x + lane], r0\n"
    "    exit\n";

/* Not a GPU, of which less is known. */
static int is_double(void) {
  int (*live)(void) = NULL;
  void *library = hg_library_open("libcuda.so.1", "");
  if (library != NULL) hg_library_find(library, "fakecuda_live", &live);
  return live != NULL;
}

static hg_kernel_info info_of(hg_kernel *kernel) {
  hg_kernel_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_kernel_query(kernel, &info), HG_OK);
  return info;
}

static void check_parameter(hg_kernel *kernel, size_t index, const hg_parameter_info *expected) {
  hg_parameter_info p = {0};
  CHECK_EQ_U64(hg_kernel_parameter(kernel, index, &p), HG_OK);
  CHECK_STR(p.name, expected->name);
  CHECK_EQ_U64(p.slot, expected->slot);
  CHECK_EQ_U64(p.kind, expected->kind);
  CHECK_EQ_U64(p.type, expected->type);
  CHECK_EQ_U64(p.access, expected->access);
  CHECK_EQ_U64(p.is_required, expected->is_required);
  CHECK_EQ_U64(p.entry_count, expected->entry_count);
  CHECK_EQ_U64(p.alignment, expected->alignment);
}

static void test_parameters(void) {
  static const hg_parameter_info expected[] = {
      {.name = "x", .slot = 1, .kind = ATLAS_SYMBOL_BUFFER, .type = ATLAS_f32, .access = ATLAS_INOUT, .is_required = 1,
       .alignment = 4},
      {.name = "a", .slot = 2, .kind = ATLAS_SYMBOL_SCALAR, .type = ATLAS_f64, .is_required = 1},
      {.name = "t", .slot = 4, .kind = ATLAS_SYMBOL_TABLE, .type = ATLAS_u8, .access = ATLAS_INOUT, .entry_count = 7,
       .alignment = 8},
      {.name = "y", .slot = 5, .kind = ATLAS_SYMBOL_BUFFER, .type = ATLAS_u8, .access = ATLAS_OUT, .is_required = 1,
       .alignment = 1},
      {.name = "heap", .slot = 6, .kind = ATLAS_SYMBOL_POOL, .type = ATLAS_u8, .access = ATLAS_INOUT, .is_required = 1,
       .alignment = 16}};
  hg_kernel *kernel = kernel_of(everything_text);
  hg_parameter_info p = {0};
  CHECK_EQ_U64(info_of(kernel).parameter_count, COUNT(expected));
  for (size_t i = 0; i < COUNT(expected); i++) check_parameter(kernel, i, &expected[i]);
  CHECK_EQ_U64(hg_kernel_parameter(kernel, COUNT(expected), &p), HG_NOT_FOUND);
  CHECK_STR(hg_last_error(), "program 'everything' has 5 parameters; there is no number 5");
  hg_kernel_release(kernel);
}

static void test_default_handle(void) {
  hg_kernel *kernel =
      kernel_of(".buffer x u32 inout handle 7\n.scalar a u32\nmov.u32 r0, a\nstg.u32 [x + lane], r0\nexit\n");
  for (size_t i = 0; i < 2; i++) {
    hg_parameter_info p = {0};
    CHECK_EQ_U64(hg_kernel_parameter(kernel, i, &p), HG_OK);
    CHECK_EQ_U64(p.is_required, i);
  }
  hg_kernel_release(kernel);
}

static void test_kernel(void) {
  static const char text[] = ".program blocks\n.block 32, 2, 1\n.buffer x u16 inout\n.shared tile u16 33\n"
                             "ldg.u16 r1, [x + lane]\nsts.u16 [tile + blane], r1\nbar.sync\nlds.u16 r2, [tile + #3]\n"
                             "stg.u16 [x + lane], r2\nexit\n";
  uint8_t hash[ATLAS_HASH_BYTES];
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, text, sizeof text - 1, NULL, &program), HG_OK);
  CHECK_EQ_U64(atlas_program_hash(program, hash), HG_OK);
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_OK);
  atlas_program_release(program);
  hg_kernel_info info = info_of(kernel);
  hg_executor_info machine = {0};
  CHECK_EQ_U64(hg_executor_query(executor, &machine), HG_OK);
  CHECK_STR(info.name, "blocks");
  CHECK(memcmp(info.hash, hash, sizeof hash) == 0);
  CHECK_STR(info.backend, test_backend_name());
  CHECK_STR(info.engine, machine.engine);
  if (test_backend() == HG_BACKEND_CUDA || hg_native_target(hg_cpu_isa_best()) != NULL) CHECK_STR(info.why, "");
  else CHECK(strncmp(info.why, "machine code is not written for ", 32) == 0);
  CHECK_EQ_U64(info.block[0], 32);
  CHECK_EQ_U64(info.block[1], 2);
  CHECK_EQ_U64(info.block[2], 1);
  if (test_backend() == HG_BACKEND_CUDA && !is_double()) {
    CHECK(info.registers > 0 && info.registers <= 255);
    CHECK(info.shared_bytes >= 66); /* 33 * 2 */
  } else if (test_backend() == HG_BACKEND_CUDA) { /* as the double has it of all */
    CHECK_EQ_U64(info.registers, 32);
    CHECK_EQ_U64(info.local_bytes, 16);
    CHECK_EQ_U64(info.shared_bytes, 512);
  } else {
    CHECK_EQ_U64(info.registers, 0);
    CHECK_EQ_U64(info.local_bytes, 0);
    CHECK_EQ_U64(info.shared_bytes, 80); /* 33 * 2, at a multiple of 16 */
  }
  hg_kernel_release(kernel);
}

static void test_default_block(void) {
  hg_kernel *kernel = kernel_of(".block 64, 4, 1 default\n.buffer x u32 inout\nstg.u32 [x + lane], #1\nexit\n");
  hg_kernel_info info = info_of(kernel);
  CHECK_EQ_U64(info.block[0], 0);
  CHECK_EQ_U64(info.default_block[0], 64);
  CHECK_EQ_U64(info.default_block[1], 4);
  CHECK_EQ_U64(info.default_block[2], 1);
  hg_kernel_release(kernel);
}

static void test_misuse(void) {
  hg_kernel *kernel = kernel_of(count_text);
  hg_kernel_info info = {0};
  hg_parameter_info p = {0};
  CHECK_EQ_U64(hg_kernel_query(NULL, &info), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_kernel_query(kernel, NULL), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_kernel_query: an argument is NULL");
  CHECK_EQ_U64(hg_kernel_parameter(NULL, 0, &p), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_kernel_parameter(kernel, 0, NULL), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_kernel_parameter: an argument is NULL");
  info_of(kernel);
  hg_kernel_release(kernel);
}

/* A kernel that is being compiled is waited for. */
static void test_background(void) {
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  hg_parameter_info p = {0};
  CHECK_EQ_U64(atlas_parse(NULL, count_text, sizeof count_text - 1, NULL, &program), HG_OK);
  for (int i = 0; i < 20; i++) {
    CHECK_EQ_U64(hg_kernel_create_async(executor, program, &kernel, NULL), HG_OK);
    if (i % 2) CHECK_STR(info_of(kernel).name, "count");
    else CHECK_EQ_U64(hg_kernel_parameter(kernel, 0, &p), HG_OK);
    hg_kernel_release(kernel);
  }
  atlas_program_release(program);
}

/* ---- why --------------------------------------------------------------------------------------------------------- */

/* `engine` as HOLOGRAM_CPU_ENGINE has it, "" where nothing is set. */
static void check_why(const char *engine, const char *isa, const char *text, const char *expected) {
  hg_executor *mine = executor;
  set("HOLOGRAM_CPU_ENGINE", engine);
  set("HOLOGRAM_CPU_ISA", isa);
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  hg_kernel *kernel = kernel_of(text);
  CHECK_STR(info_of(kernel).why, expected);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
  executor = mine;
}

static void test_why(void) {
  char expected[100];
  const char *isa = hg_cpu_isa_name(CPU_ISA_BASELINE);
  check_why("tile", "", count_text, "HOLOGRAM_CPU_ENGINE is 'tile'");
  check_why("interp", "", count_text, "HOLOGRAM_CPU_ENGINE is 'interp'");
  snprintf(expected, sizeof expected, "machine code is not written for %s here", isa);
  check_why("", isa, count_text, hg_native_target(CPU_ISA_BASELINE) != NULL ? "" : expected);
  set("HOLOGRAM_CPU_ENGINE", "");
  set("HOLOGRAM_CPU_ISA", "");
}

/* ---- engines by name --------------------------------------------------------------------------------------------- */

typedef struct message {
  char text[300]; /* the last one about a program */
} message;

static void keep_message(void *user, hg_log_level level, const char *text) {
  message *last = user;
  if (level == HG_LOG_INFO && strstr(text, "program") != NULL) snprintf(last->text, sizeof last->text, "%s", text);
}

/* The engine of the descriptor, whatever the environment says; the log tells of it. */
static void test_engine_by_name(const char *engine, const char *environment) {
  char expected[100], logged[200];
  message last = {""};
  hg_executor *mine = executor;
  set("HOLOGRAM_CPU_ENGINE", environment);
  hg_executor_desc desc = {.size = sizeof desc, .log = keep_message, .log_user = &last, .engine = engine};
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK); /* of backends chosen by themselves the one that has it */
  hg_kernel *kernel = kernel_of(count_text);
  hg_kernel_info info = info_of(kernel);
  snprintf(expected, sizeof expected, "the engine '%s' was asked for", engine);
  CHECK_STR(info.why, expected);
  CHECK_STR(info.backend, "cpu");
  const char *begins = strcmp(engine, "interp") == 0 ? "reference" : engine;
  CHECK(strncmp(info.engine, begins, strlen(begins)) == 0);
  snprintf(logged, sizeof logged, "program 'count' runs on the %s engine: %s", info.engine, expected);
  CHECK_STR(last.text, logged);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
  executor = mine;
  set("HOLOGRAM_CPU_ENGINE", "");
}

static void test_no_such_engine(void) {
  hg_executor *none = executor;
  hg_executor_desc desc = {.size = sizeof desc, .backend = HG_BACKEND_CPU, .engine = "warp"};
  CHECK_EQ_U64(hg_executor_create(&desc, &none), HG_UNSUPPORTED);
  CHECK_STR(hg_last_error(), "the cpu backend is not available: the CPU has no engine 'warp', only 'interp', 'tile' "
                             "and 'native'");
  CHECK(none == NULL);
  desc.backend = HG_BACKEND_AUTO;
  CHECK_EQ_U64(hg_executor_create(&desc, &none), HG_UNSUPPORTED);
  CHECK(strstr(hg_last_error(), "cpu: the CPU has no engine 'warp'") != NULL);
  desc.engine = "";
  CHECK_EQ_U64(hg_executor_create(&desc, &none), HG_OK);
  hg_executor_release(none);
}

/* A GPU's only engine. */
static void test_engine_of_gpu(void) {
  hg_executor *one = NULL;
  int is_metal = test_backend() == HG_BACKEND_METAL;
  hg_executor_desc desc = {.size = sizeof desc, .backend = test_backend(), .engine = is_metal ? "msl" : "ptx"};
  CHECK_EQ_U64(hg_executor_create(&desc, &one), HG_OK);
  hg_executor_release(one);
  desc.engine = "tile";
  CHECK_EQ_U64(hg_executor_create(&desc, &one), HG_UNSUPPORTED);
  CHECK_STR(hg_last_error(), is_metal ? "the metal backend is not available: GPUs have no engine 'tile', only 'msl'"
                                      : "the cuda backend is not available: GPUs have no engine 'tile', only 'ptx'");
}

int main(void) {
  set("HOLOGRAM_CPU_ENGINE", "");
  set("HOLOGRAM_CPU_ISA", "");
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  if (executor == NULL) return check_report();
  test_parameters();
  test_default_handle();
  test_kernel();
  test_default_block();
  test_misuse();
  test_background();
  if (test_backend() == HG_BACKEND_CPU) test_why();
  else test_engine_of_gpu();
  test_engine_by_name("tile", "");
  test_engine_by_name("interp", "native");
  test_no_such_engine();
  hg_executor_release(executor);
  return check_report();
}
