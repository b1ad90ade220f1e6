/* replay.c - repeats the launches that recorder.py wrote down, and compares what they leave:
 *
 *   replay [--processes P] FOLDER [PART OF]     # of the folder's files every OF-th, from PART on, counted from 0
 *
 * It runs on HOLOGRAM_TEST_BACKEND, and on the engine that the environment names. Each file has an executor of its own,
 * as the process that wrote it had; calls that set the executor's phase or boundary pool are repeated in their places.
 * Of a fault the line is not compared, which programs in binary form have not, nor of a step limit which of a loop's
 * branches met it. The last line is "N passed, N failed". */
#define _GNU_SOURCE
#include "../unit/test_backend.h"
#include "hologram/classes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_BINDINGS = 64, MOST_SCALARS = 64, MOST_FILES = 1024, GUARD_BYTES = 64, MOST_REPORTS = 20 };

typedef struct reader {
  const char *path;
  uint8_t *bytes;
  uint64_t size, at;
  uint64_t launch;
} reader;

/* What a process tells of its files. */
typedef struct sums {
  uint64_t passed, failed;
} sums;

static void die(const char *what, const char *path) {
  printf("%s: %s\n", path, what);
  fflush(stdout);
  _exit(2);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const uint8_t *take(reader *r, uint64_t count) {
  if (count > r->size - r->at) die("the record ends too early", r->path);
  r->at += count;
  return r->bytes + r->at - count;
}

static uint32_t take32(reader *r) {
  uint32_t value;
  memcpy(&value, take(r, sizeof value), sizeof value);
  return value;
}

static uint64_t take64(reader *r) {
  uint64_t value;
  memcpy(&value, take(r, sizeof value), sizeof value);
  return value;
}

static const uint8_t *take_block(reader *r, uint64_t *size) {
  *size = take64(r);
  return take(r, *size);
}

static void take_name(reader *r, char name[ATLAS_MAX_NAME + 1]) {
  uint64_t size;
  const uint8_t *bytes = take_block(r, &size);
  if (size > ATLAS_MAX_NAME) die("a name is too long", r->path);
  memcpy(name, bytes, (size_t)size);
  name[size] = '\0';
}

typedef struct bound {
  char name[ATLAS_MAX_NAME + 1];
  uint32_t entry;
  const uint8_t *before, *after;
  uint64_t size, after_size;
  hg_buffer *buffer;
} bound;

typedef struct recorded_launch {
  const uint8_t *program;
  uint64_t program_size;
  hg_launch_desc desc;
  int has_one_outcome;
  hg_fault fault;
  char scalar_names[MOST_SCALARS][ATLAS_MAX_NAME + 1];
  hg_scalar scalars[MOST_SCALARS];
  bound bounds[MOST_BINDINGS];
  uint32_t bound_count;
} recorded_launch;

static void take_fault(reader *r, hg_fault *fault) {
  *fault = (hg_fault){.kind = (hg_fault_kind)take32(r)};
  if (fault->kind == HG_FAULT_NONE) return;
  fault->instruction = take32(r);
  fault->code = take32(r);
  fault->lane = take64(r);
  fault->index = (int64_t)take64(r);
  fault->extent = (int64_t)take64(r);
  take_name(r, fault->buffer);
}

static void take_launch(reader *r, recorded_launch *l) {
  memset(l, 0, sizeof *l);
  l->program = take_block(r, &l->program_size);
  l->desc = (hg_launch_desc){.size = sizeof l->desc, .lanes = take64(r), .scalars = l->scalars};
  for (int k = 0; k < 3; k++) l->desc.grid[k] = take32(r);
  for (int k = 0; k < 3; k++) l->desc.block[k] = take32(r);
  l->desc.step_limit = take64(r);
  l->desc.flags = take32(r);
  l->has_one_outcome = (int)take32(r);
  take_fault(r, &l->fault);
  l->desc.scalar_count = take32(r);
  if (l->desc.scalar_count > MOST_SCALARS) die("too many scalars", r->path);
  for (size_t i = 0; i < l->desc.scalar_count; i++) {
    take_name(r, l->scalar_names[i]);
    l->scalars[i] = (hg_scalar){.name = l->scalar_names[i], .type = (uint8_t)take32(r)};
    l->scalars[i].bits = take64(r);
  }
  l->bound_count = take32(r);
  if (l->bound_count > MOST_BINDINGS) die("too many bindings", r->path);
  for (uint32_t i = 0; i < l->bound_count; i++) {
    bound *b = &l->bounds[i];
    take_name(r, b->name);
    b->entry = take32(r);
    b->before = take_block(r, &b->size);
    b->after = take_block(r, &b->after_size);
  }
}

/* ---- repeating --------------------------------------------------------------------------------------------------- */

/* Between bytes that stay as they are. */
static hg_status make_buffer(hg_executor *executor, bound *b) {
  uint64_t room = GUARD_BYTES + b->size + GUARD_BYTES;
  uint8_t *bytes = malloc((size_t)room);
  if (bytes == NULL) return HG_OUT_OF_MEMORY;
  memset(bytes, 0xa5, (size_t)room);
  memcpy(bytes + GUARD_BYTES, b->before, (size_t)b->size);
  hg_status status = hg_buffer_create(executor, NULL, room, &b->buffer);
  if (status == HG_OK) status = hg_buffer_write(b->buffer, 0, bytes, room);
  free(bytes);
  return status;
}

static const char *compare_buffer(const bound *b, int has_one_outcome) {
  uint64_t room = GUARD_BYTES + b->size + GUARD_BYTES;
  uint8_t *bytes = malloc((size_t)room);
  const char *what = NULL;
  if (bytes == NULL || hg_buffer_read(b->buffer, 0, bytes, room) != HG_OK) what = "it cannot be read";
  for (uint64_t i = 0; what == NULL && i < GUARD_BYTES; i++)
    if (bytes[i] != 0xa5 || bytes[room - 1 - i] != 0xa5) what = "a byte beside it was written";
  if (what == NULL && has_one_outcome &&
      (b->after_size != b->size || memcmp(bytes + GUARD_BYTES, b->after, b->size) != 0))
    what = "it is not what it was";
  free(bytes);
  return what;
}

static int same_fault(const hg_fault *a, const hg_fault *b) {
  if (a->kind != b->kind || a->kind == HG_FAULT_NONE) return a->kind == b->kind;
  return (a->instruction == b->instruction || a->kind == HG_FAULT_STEP_LIMIT) && a->code == b->code &&
         a->lane == b->lane && a->index == b->index && a->extent == b->extent && strcmp(a->buffer, b->buffer) == 0;
}

static void report(const reader *r, sums *s, const char *what, const char *detail) {
  if (s->failed++ >= MOST_REPORTS) return;
  printf("%s: launch %llu: %s: %s\n", r->path, (unsigned long long)r->launch, what, detail);
}

static hg_status launch(hg_executor *executor, recorded_launch *l, hg_launch_report *report) {
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  hg_binding bindings[MOST_BINDINGS];
  hg_status status = atlas_decode(NULL, l->program, (size_t)l->program_size, &program);
  if (status == HG_OK) status = hg_kernel_create(executor, program, &kernel);
  for (uint32_t i = 0; i < l->bound_count && status == HG_OK; i++) {
    bound *b = &l->bounds[i];
    status = make_buffer(executor, b);
    bindings[i] = (hg_binding){
        .name = b->name, .entry = b->entry, .buffer = b->buffer, .offset = GUARD_BYTES, .byte_count = b->size};
  }
  l->desc.bindings = bindings;
  l->desc.binding_count = l->bound_count;
  if (status == HG_OK) status = hg_launch(kernel, &l->desc, report);
  hg_kernel_release(kernel);
  atlas_program_release(program);
  return status;
}

static void repeat(hg_executor *executor, const reader *r, recorded_launch *l, sums *s) {
  hg_launch_report got = {.size = sizeof got};
  const char *what = NULL;
  hg_status status = launch(executor, l, &got);
  if (status != HG_OK && status != HG_FAULT) report(r, s, "it failed", hg_last_error());
  else if (l->has_one_outcome && !same_fault(&got.fault, &l->fault))
    report(r, s, "its fault was another", status == HG_FAULT ? hg_last_error() : "none");
  else {
    uint32_t i = 0;
    while (i < l->bound_count && (what = compare_buffer(&l->bounds[i], l->has_one_outcome)) == NULL) i++;
    if (what != NULL) report(r, s, l->bounds[i].name, what);
    else s->passed++;
  }
  for (uint32_t i = 0; i < l->bound_count; i++) hg_buffer_release(l->bounds[i].buffer);
}

static void repeat_all(hg_executor *executor, reader *r, sums *s) {
  recorded_launch *l = malloc(sizeof *l);
  uint64_t size;
  if (l == NULL) die("no memory", r->path);
  while (r->at < r->size) {
    hg_status status = HG_OK;
    switch (*take(r, 1)) {
    case 'p': status = hg_executor_set_phase(executor, take32(r)); break;
    case 'b': {
      const uint8_t *bytes = take_block(r, &size);
      status = hg_boundary_write(executor, 0, bytes, size);
      break;
    }
    case 'r':
      take_launch(r, l);
      r->launch++;
      repeat(executor, r, l, s);
      break;
    default: die("no record begins so", r->path);
    }
    if (status != HG_OK) report(r, s, "a call failed", hg_last_error());
  }
  free(l);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void read_file(reader *r) {
  FILE *file = fopen(r->path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) die("it cannot be read", r->path);
  r->size = (uint64_t)ftell(file);
  r->bytes = malloc((size_t)r->size + 1);
  rewind(file);
  if (r->bytes == NULL || fread(r->bytes, 1, (size_t)r->size, file) != r->size) die("it cannot be read", r->path);
  fclose(file);
}

static void repeat_file(const char *path, sums *s) {
  reader r = {.path = path};
  hg_executor *executor = NULL;
  read_file(&r);
  if (open_test_executor(NULL, &executor) != HG_OK) die(hg_last_error(), path);
  repeat_all(executor, &r, s);
  hg_executor_release(executor);
  free(r.bytes);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static uint32_t list_files(const char *folder, char **paths) {
  uint32_t count = 0;
  DIR *directory = opendir(folder);
  if (directory == NULL) die("there is no such folder", folder);
  for (struct dirent *e; (e = readdir(directory)) != NULL && count < MOST_FILES;) {
    size_t length = strlen(e->d_name), room = strlen(folder) + length + 2;
    if (length < 6 || strcmp(e->d_name + length - 6, ".calls") != 0) continue;
    paths[count] = malloc(room);
    if (paths[count] == NULL) die("no memory", folder);
    snprintf(paths[count++], room, "%s/%s", folder, e->d_name);
  }
  closedir(directory);
  qsort(paths, count, sizeof *paths, by_name);
  return count;
}

int main(int count, char **words) {
  static char *paths[MOST_FILES];
  uint32_t processes = 1, part = 0, parts = 1, at = 1;
  if (count > 2 && strcmp(words[1], "--processes") == 0) processes = (uint32_t)strtoul(words[2], NULL, 10), at = 3;
  if (count == (int)at + 3)
    part = (uint32_t)strtoul(words[at + 1], NULL, 10), parts = (uint32_t)strtoul(words[at + 2], NULL, 10);
  else if (count != (int)at + 1) return printf("usage: replay [--processes P] FOLDER [PART OF]\n"), 2;
  uint32_t files = list_files(words[at], paths);
  sums *all = mmap(NULL, (processes + 1) * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED || processes == 0 || parts == 0) return 2;
  for (uint32_t k = 0; k < processes; k++) {
    fflush(stdout);
    if (processes > 1 && fork() != 0) continue;
    for (uint32_t i = part; i < files; i += parts)
      if (i / parts % processes == k) repeat_file(paths[i], &all[k]);
    fflush(stdout);
    if (processes > 1) _exit(0);
  }
  for (int status = 0; processes > 1 && wait(&status) > 0;) all[processes].failed += status != 0;
  for (uint32_t k = 0; k < processes; k++)
    all[processes].passed += all[k].passed, all[processes].failed += all[k].failed;
  printf("%llu passed, %llu failed\n", (unsigned long long)all[processes].passed,
         (unsigned long long)all[processes].failed);
  return all[processes].failed > 0 || all[processes].passed == 0;
}
