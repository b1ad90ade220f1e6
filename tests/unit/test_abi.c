/* test_abi.c - structs of other sizes than the library's, errors as data, and the notes of a report. What programs of
 * other versions see is in tests/abi. */
#define _GNU_SOURCE
#include "environment.h"
#include "launching.h"

#include "base/abi.h"
#include "base/bytes.h"

#include <stddef.h>

/* A struct that has grown since version 1. */
typedef struct example {
  size_t size;
  uint64_t first; /* version 1 ends here */
  uint64_t second;
} example;

enum { V1_BYTES = offsetof(example, second), LONGER = 8 };

typedef struct longer {
  example known;
  uint8_t unknown[LONGER];
} longer;

static hg_status read(const void *callers, example *own) {
  memset(own, 0x55, sizeof *own);
  return hg_read_struct("example", own, sizeof *own, V1_BYTES, callers);
}

static void test_reading(void) {
  example own, callers = {.first = 1, .second = 2};
  CHECK_EQ_U64(read(NULL, &own), HG_OK);
  CHECK(own.size == sizeof own && own.first == 0 && own.second == 0);
  CHECK_EQ_U64(read(&callers, &own), HG_OK); /* 0: version 1, whatever the library's */
  CHECK(own.size == sizeof own && own.first == 1 && own.second == 0);
  callers.size = V1_BYTES;
  CHECK_EQ_U64(read(&callers, &own), HG_OK);
  CHECK(own.size == sizeof own && own.first == 1 && own.second == 0);
  callers.size = sizeof callers;
  CHECK_EQ_U64(read(&callers, &own), HG_OK);
  CHECK(own.size == sizeof own && own.first == 1 && own.second == 2);

  longer newer = {.known = {.size = sizeof newer, .first = 1, .second = 2}};
  CHECK_EQ_U64(read(&newer, &own), HG_OK);
  CHECK(own.size == sizeof own && own.first == 1 && own.second == 2);
  newer.unknown[3] = 1;
  CHECK_EQ_U64(read(&newer, &own), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "example has 32 bytes, of which byte 27 asks for something that only a newer library "
                             "knows; this is 0.1.0, which knows 24 bytes");
  static const size_t impossible[] = {1, V1_BYTES - 1, 65537, SIZE_MAX};
  for (size_t i = 0; i < COUNT(impossible); i++) {
    callers.size = impossible[i];
    CHECK_EQ_U64(read(&callers, &own), HG_INVALID_ARGUMENT);
    CHECK(strstr(hg_last_error(), "; it is 0 or what sizeof says, at least 16") != NULL);
    CHECK_EQ_U64(hg_check_result("example", V1_BYTES, &callers), HG_INVALID_ARGUMENT);
  }
  const hg_launch_report *none = NULL;
  CHECK_EQ_U64(HG_CHECK_RESULT(hg_launch_report, none), HG_OK);
}

static void test_writing(void) {
  static const example result = {.size = 99, .first = 1, .second = 2};
  example callers = {.first = 7, .second = 7};
  CHECK_EQ_U64(hg_write_struct("example", &callers, V1_BYTES, &result, sizeof result), HG_OK);
  CHECK(callers.size == 0 && callers.first == 1 && callers.second == 7);
  callers.size = sizeof callers;
  CHECK_EQ_U64(hg_write_struct("example", &callers, V1_BYTES, &result, sizeof result), HG_OK);
  CHECK(callers.size == sizeof callers && callers.first == 1 && callers.second == 2);
  longer newer;
  memset(&newer, 0x55, sizeof newer);
  newer.known.size = sizeof newer;
  CHECK_EQ_U64(hg_write_struct("example", &newer, V1_BYTES, &result, sizeof result), HG_OK);
  CHECK(newer.known.second == 2);
  for (int i = 0; i < LONGER; i++) CHECK_EQ_U64(newer.unknown[i], 0);
  callers = (example){.size = 3, .first = 7};
  CHECK_EQ_U64(hg_write_struct("example", &callers, V1_BYTES, &result, sizeof result), HG_INVALID_ARGUMENT);
  CHECK(callers.first == 7);
}

static void test_arrays(void) {
  longer array[3] = {{.known.first = 10}, {.known.first = 11}, {.known.first = 12}};
  example own;
  CHECK_EQ_U64(HG_CHECK_STRIDE(hg_binding, "desc.size", (size_t)0), HG_OK);
  CHECK_EQ_U64(hg_check_stride("desc.size", sizeof(longer), V1_BYTES), HG_OK);
  CHECK_EQ_U64(hg_check_stride("desc.size", V1_BYTES - 1, V1_BYTES), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "desc.size is 15; it is 0 or what sizeof says, at least 16");
  CHECK_EQ_U64(hg_read_element("example", &own, sizeof own, array, sizeof(longer), 2), HG_OK);
  CHECK_EQ_U64(own.first, 12);
  array[1].unknown[LONGER - 1] = 1;
  CHECK_EQ_U64(hg_read_element("example", &own, sizeof own, array, sizeof(longer), 1), HG_INVALID_ARGUMENT);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static hg_error_info last_error(void) {
  hg_error_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_last_error_info(&info), HG_OK);
  return info;
}

static void test_errors(void) {
  atlas_program *program = NULL;
  hg_error_info info = last_error();
  static const char misspelt[] = ".program p\n\n  ldx.f32 r0, r1\n  exit\n";
  CHECK_EQ_U64(atlas_parse(NULL, misspelt, strlen(misspelt), "dir/p.atlas", &program), HG_PARSE);
  info = last_error();
  CHECK_EQ_U64(info.status, HG_PARSE);
  CHECK(info.line == 3 && info.column == 3 && info.instruction == -1 && info.offset == -1);
  CHECK_STR(info.source, "dir/p.atlas");
  char sentence[512];
  snprintf(sentence, sizeof sentence, "dir/p.atlas:3:3: %s", info.message);
  CHECK_STR(hg_last_error(), sentence);

  static const char undefined[] = ".program p\n  mov.f32 r0, #1\n  add.f32 r0, r0, r1\n  exit\n";
  CHECK_EQ_U64(atlas_parse(NULL, undefined, strlen(undefined), NULL, &program), HG_VERIFY);
  info = last_error();
  CHECK_EQ_U64(info.status, HG_VERIFY);
  CHECK(info.line == 3 && info.column == 0 && info.instruction == 1 && info.offset == -1);
  CHECK_STR(info.source, "program");
  CHECK_STR(info.message, "'add': r1 may be read before it is written");
  CHECK_STR(hg_last_error(), "program:3: 'add': r1 may be read before it is written");

  CHECK_EQ_U64(atlas_parse(NULL, NULL, 1, NULL, &program), HG_INVALID_ARGUMENT); /* nothing of the last is left */
  info = last_error();
  CHECK(info.line == 0 && info.column == 0 && info.instruction == -1 && info.offset == -1);
  CHECK_STR(info.source, "");
  CHECK_STR(info.message, hg_last_error());
  CHECK_EQ_U64(hg_last_error_info(NULL), HG_INVALID_ARGUMENT);
}

/* Of a form whose checksum is right, so that its sections are read. */
static void test_binary_errors(void) {
  static const char text[] = ".program p\n.buffer x f32 in\n  exit\n";
  enum { CRC = 20 };
  atlas_program *program = NULL;
  void *bytes = NULL;
  size_t length = 0;
  CHECK_EQ_U64(atlas_parse(NULL, text, strlen(text), NULL, &program), HG_OK);
  CHECK_EQ_U64(atlas_encode(NULL, program, &bytes, &length), HG_OK);
  atlas_program_release(program);
  uint8_t *form = bytes, *name = NULL;
  for (size_t i = 0; i + 1 < length && name == NULL; i++)
    if (form[i] == 1 && form[i + 1] == 'x') name = form + i + 1;
  CHECK(name != NULL);
  if (name == NULL) return;
  *name = '!';
  memset(form + CRC, 0, 4);
  hg_store_le(form + CRC, 4, hg_crc32(0, form, length));
  CHECK_EQ_U64(atlas_decode(NULL, form, length, &program), HG_FORMAT);
  hg_error_info info = last_error();
  CHECK_STR(info.message, "symbol 0 has a name that is not valid");
  CHECK(info.status == HG_FORMAT && info.line == 0 && info.instruction == -1);
  CHECK_EQ_U64(info.offset, name + 1 - form);
  form[0] = '?';
  CHECK_EQ_U64(atlas_decode(NULL, form, length, &program), HG_FORMAT);
  CHECK(last_error().offset == -1);
  atlas_memory_release(NULL, bytes);
}

/* ---- notes ------------------------------------------------------------------------------------------------------- */

/* A loop of nine steps. */
static hg_kernel *loop_kernel(void) {
  return kernel_of(".program p\n.buffer y u32 out\n"
                   "  mov.u32 r0, #9\n  mov.u32 r1, #0\n"
                   "again:\n  mul.u32 r1, r1, #3\n  add.u32 r1, r1, #1\n  loop r0, again\n"
                   "  stg.u32 [y + lane], r1\n  exit\n");
}

static hg_launch_report launch(hg_kernel *kernel, uint64_t step_limit, hg_stream *stream, hg_status expected) {
  hg_launch_report report = {.size = sizeof report};
  hg_buffer *y = buffer_of(64, NULL);
  hg_binding binding = {.name = "y", .buffer = y};
  hg_launch_desc desc = {
      .lanes = 16, .bindings = &binding, .binding_count = 1, .step_limit = step_limit, .stream = stream};
  CHECK_EQ_U64(hg_launch(kernel, &desc, &report), expected);
  hg_buffer_release(y);
  return report;
}

static void keep_message(void *user, hg_log_level level, const char *text) {
  if (level == HG_LOG_INFO) snprintf(user, 200, "%s", text);
}

/* The kernel's `why`, which test_kernel_info checks, or what was special about the launch. */
static void test_notes(const char *engine) {
  char logged[200] = "";
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU, .log = keep_message, .log_user = logged};
  hg_kernel_info info = {.size = sizeof info};
  hg_stream *stream = NULL;
  set("HOLOGRAM_CPU_ENGINE", engine);
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  hg_kernel *kernel = loop_kernel();
  CHECK_EQ_U64(hg_kernel_query(kernel, &info), HG_OK);
  CHECK_STR(launch(kernel, 0, NULL, HG_OK).notes, info.why);
  CHECK_STR(launch(kernel, 3, stream, HG_OK).notes, info.why);
  CHECK_STR(launch(kernel, 3, NULL, HG_FAULT).notes,
            strncmp(info.engine, "native", 6) != 0
                ? info.why
                : "left to the tile engine: machine code does not count steps up to so low a limit");
  if (strncmp(info.engine, "native", 6) == 0)
    CHECK(strstr(logged, "' was left to the tile engine: machine code does not count steps") != NULL);
  else CHECK(strstr(logged, info.why) != NULL);
  hg_kernel_release(kernel);
  hg_launch_report report = {.size = sizeof report};
  CHECK_EQ_U64(hg_stream_wait(stream, &report), HG_FAULT);
  CHECK_STR(report.notes, "");
  hg_stream_release(stream);
  hg_executor_release(executor);
}

int main(void) {
  test_reading();
  test_writing();
  test_arrays();
  test_errors();
  test_binary_errors();
  test_notes("native");
  test_notes("tile");
  test_notes("interp");
  return check_report();
}
