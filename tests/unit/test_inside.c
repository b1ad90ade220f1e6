/* test_inside.c - what may be looked at from outside: code for each target, also where memory runs out, and the files
 * of the kernel cache. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "cache_folder.h"
#include "check.h"
#include "counted.h"

#include "hologram/hologram.h"

static const char text[] =
    ".program look\n.buffer x f32 inout\nldg.f32 r0, [x + lane]\nexp.f32 r0, r0\nstg.f32 [x + lane], r0\nexit\n";
static const char *const targets[] = {"msl", "ptx", "vector", "x86-avx512", "x86-avx2", "x86-64", "arm64"};
enum { TARGETS = sizeof targets / sizeof *targets };

static atlas_program *parse(const hg_allocator *allocator, const char *source) {
  atlas_program *program = NULL;
  CHECK_EQ_U64(atlas_parse(allocator, source, strlen(source), "look", &program), HG_OK);
  return program;
}

/* ---- emit -------------------------------------------------------------------------------------------------------- */

static void test_targets(void) {
  atlas_program *program = parse(NULL, text);
  for (int t = 0; t < TARGETS; t++) {
    char *bytes = NULL, *again = NULL;
    size_t count = 0, again_count = 0;
    CHECK_EQ_U64(hg_emit(NULL, program, targets[t], 90, (void **)&bytes, &count), HG_OK);
    CHECK_EQ_U64(hg_emit(NULL, program, targets[t], 90, (void **)&again, &again_count), HG_OK);
    CHECK(count > 100 && count == again_count && memcmp(bytes, again, count) == 0);
    if (t < 3) CHECK(memchr(bytes, 0, count) == NULL && bytes[count - 1] == '\n');
    atlas_memory_release(NULL, bytes);
    atlas_memory_release(NULL, again);
  }
  atlas_program_release(program);
}

/* The table that the backends make is the one that this file knows. */
static void test_target_table(void) {
  hg_emit_target_info info = {.size = sizeof info};
  for (int t = 0; t < TARGETS; t++) {
    CHECK_EQ_U64(hg_emit_target_query((size_t)t, &info), HG_OK);
    CHECK_STR(info.name, targets[t]);
    CHECK((info.machine == NULL) == (t < 3));
    CHECK_EQ_U64(info.least_capability, t == 1 ? 75 : 0);
    CHECK_EQ_U64(info.most_capability, t == 1 ? 999 : 0);
  }
  CHECK_EQ_U64(hg_emit_target_query(TARGETS, &info), HG_NOT_FOUND);
  CHECK_EQ_U64(hg_emit_target_query(0, NULL), HG_INVALID_ARGUMENT);
}

static void test_backend_names(void) {
  static const struct {
    const char *name;
    hg_backend_id id;
  } all[] = {{"auto", HG_BACKEND_AUTO}, {"cpu", HG_BACKEND_CPU}, {"cuda", HG_BACKEND_CUDA},
             {"metal", HG_BACKEND_METAL}};
  hg_backend_id id = HG_BACKEND_CPU;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    CHECK_EQ_U64(hg_backend_by_name(all[i].name, &id), HG_OK);
    CHECK_EQ_U64(id, all[i].id);
  }
  CHECK_EQ_U64(hg_backend_by_name("tpu", &id), HG_NOT_FOUND);
  CHECK_STR(hg_last_error(), "there is no backend 'tpu': auto, metal, cuda, cpu");
  CHECK_EQ_U64(hg_backend_by_name(NULL, &id), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_backend_by_name("cpu", NULL), HG_INVALID_ARGUMENT);
}

static void test_refusals(void) {
  atlas_program *program = parse(NULL, text), *library = parse(NULL, ".entry exp f32 f\nf: ret\n");
  void *bytes = program;
  size_t count = 1;
  CHECK_EQ_U64(hg_emit(NULL, program, "gcn", 0, &bytes, &count), HG_NOT_FOUND);
  CHECK(bytes == NULL && count == 0);
  CHECK_STR(hg_last_error(), "there is no target 'gcn': msl, ptx, vector, x86-avx512, x86-avx2, x86-64, arm64");
  CHECK_EQ_U64(hg_emit(NULL, library, "ptx", 0, &bytes, &count), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_emit(NULL, NULL, "ptx", 0, &bytes, &count), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_emit(NULL, program, NULL, 0, &bytes, &count), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_emit(NULL, program, "ptx", 0, NULL, &count), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_emit(NULL, program, "ptx", 0, &bytes, NULL), HG_INVALID_ARGUMENT);
  atlas_program_release(program);
  atlas_program_release(library);
}

static void test_capabilities(void) {
  static const uint32_t refused[] = {3, 74, 1000, 4000000000};
  static const struct {
    uint32_t capability;
    const char *start;
  } taken[] = {{0, ".version 6.4\n.target sm_75\n"},
               {75, ".version 6.4\n.target sm_75\n"},
               {999, ".version 8.0\n.target sm_90\n"}};
  atlas_program *program = parse(NULL, text);
  void *bytes = NULL;
  size_t count = 0;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    CHECK_EQ_U64(hg_emit(NULL, program, "ptx", refused[i], &bytes, &count), HG_INVALID_ARGUMENT);
    CHECK(bytes == NULL && count == 0);
  }
  CHECK_STR(hg_last_error(), "hg_emit: capability is 10 * major + minor of a GPU, from 75 to 999, or 0: the oldest; "
                             "not 4000000000");
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    CHECK_EQ_U64(hg_emit(NULL, program, "ptx", taken[i].capability, &bytes, &count), HG_OK);
    CHECK(count > strlen(taken[i].start) && memcmp(bytes, taken[i].start, strlen(taken[i].start)) == 0);
    atlas_memory_release(NULL, bytes);
  }
  atlas_program_release(program);
}

static void test_no_memory(void) {
  for (int t = 0; t < TARGETS; t++) {
    counter c = {.fail_at = -1};
    hg_allocator allocator = counting(&c);
    atlas_program *program = parse(&allocator, text);
    hg_status status = HG_OUT_OF_MEMORY;
    for (long n = 0; status != HG_OK; n++) {
      void *bytes = NULL;
      size_t count = 0;
      long live = c.live;
      c.fail_at = c.allocations + n;
      status = hg_emit(&allocator, program, targets[t], 90, &bytes, &count);
      c.fail_at = -1;
      CHECK(status == HG_OK || (status == HG_OUT_OF_MEMORY && bytes == NULL));
      if (status != HG_OK && status != HG_OUT_OF_MEMORY) break;
      atlas_memory_release(&allocator, bytes);
      CHECK_EQ_U64(c.live, live);
    }
    atlas_program_release(program);
    CHECK_EQ_U64(c.live, 0);
  }
}

/* ---- the kernel cache -------------------------------------------------------------------------------------------- */

typedef struct seen {
  uint32_t files, ok, damaged, others;
  uint64_t bytes;
  int removes;
} seen;

static void note(void *user, const hg_cache_file *file) {
  seen *s = user;
  CHECK_EQ_U64(file->size, sizeof *file);
  s->files++;
  s->ok += file->state == HG_CACHE_OK;
  s->damaged += file->state == HG_CACHE_DAMAGED;
  s->others += file->state == HG_CACHE_NO_ENTRY;
  s->bytes += file->payload_bytes;
  if (file->payload_bytes > 0) CHECK(strcmp(file->target, "sm_1") == 0 && strcmp(file->driver, "driver 1") == 0);
  if (s->removes) CHECK_EQ_U64(hg_cache_remove(file->name), HG_OK);
}

static void test_cache(void) {
  char folder[FOLDER_BYTES], name[FOLDER_BYTES + 100];
  sample s;
  make_folder(folder, "inside");
  hg_cache_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_cache_query(&info), HG_OK);
  CHECK_STR(info.folder, folder);
  CHECK(info.problem == NULL && info.byte_cap == HG_DISK_CACHE_CAP);
  hg_kernel_cache *cache = open_cache();
  make_sample(&s, 1, 700);
  put(cache, &s);
  hg_kernel_cache_release(cache);
  snprintf(name, sizeof name, "%s/%064d.kernel", folder, 0);
  FILE *file = fopen(name, "w");
  CHECK(file != NULL && fputs("no kernel", file) >= 0 && fclose(file) == 0);
  seen unread = {0}, read = {0}, removing = {.removes = 1}, left = {0};
  CHECK_EQ_U64(hg_cache_visit(0, note, &unread), HG_OK);
  CHECK(unread.files == 2 && unread.ok == 2 && unread.bytes == 0);
  CHECK_EQ_U64(hg_cache_visit(1, note, &read), HG_OK);
  CHECK(read.files == 2 && read.ok == 1 && read.damaged == 1 && read.bytes == 700);
  CHECK_EQ_U64(hg_cache_visit(0, note, &removing), HG_OK);
  CHECK_EQ_U64(hg_cache_visit(1, note, &left), HG_OK);
  CHECK(removing.files == 2 && left.files == 0);
  CHECK_EQ_U64(hg_cache_remove("../notes"), HG_NOT_FOUND);
  CHECK_EQ_U64(hg_cache_remove(NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_cache_visit(0, NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_cache_query(NULL), HG_INVALID_ARGUMENT);
  delete_folder(folder);
}

int main(void) {
  test_targets();
  test_target_table();
  test_backend_names();
  test_refusals();
  test_capabilities();
  test_no_memory();
  test_cache();
  return check_report();
}
