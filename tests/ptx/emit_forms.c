/* emit_forms.c - programs in all the forms that the CUDA backend may ask for, as PTX, for ptxas to judge: emit_forms
 * CAPABILITY LINES FOLDER PROGRAM... writes FOLDER/NUMBER.FORM.ptx, a module each, but for forms whose text is that of
 * one before. LINES is 1: with the lines that profilers show; or 0. Libraries, and programs that do not verify, are
 * passed over. */
#include "atlas/program.h"
#include "backend/cuda/ptx/emit_ptx.h"
#include "base/error.h"
#include "base/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 1 << 24, USUAL_THREADS = 256 };

static const struct {
  const char *name;
  uint32_t flags, threads;
} forms[] = {{"usual", 0, USUAL_THREADS},
             {"checked", HG_GPU_CHECKED, USUAL_THREADS},
             {"counted", HG_GPU_COUNT_STEPS, USUAL_THREADS},
             {"larger", 0, ATLAS_MAX_BLOCK_LANES},
             {"tabulated", HG_GPU_LUT, USUAL_THREADS}}; /* the last: not of every program */
enum { FORM_COUNT = sizeof forms / sizeof *forms };

typedef struct request {
  hg_allocator allocator;
  uint32_t capability;
  int with_lines;
  const char *folder;
} request;

static hg_status parse_file(const request *r, const char *path, atlas_program **out) {
  uint8_t *bytes = NULL;
  size_t count = 0;
  if (hg_file_read(&r->allocator, path, MOST_TEXT, &bytes, &count) != HG_READ_OK)
    return hg_fail(HG_NOT_FOUND, "'%s' cannot be read", path);
  hg_status status = atlas_parse(NULL, (const char *)bytes, count, path, out);
  hg_release(&r->allocator, bytes);
  return status;
}

/* The CUDA backend numbers instructions by the canonical form; here they have the program's numbers. */
static uint32_t *lines_of(const atlas_program *program) {
  size_t count = program->insns.count;
  uint32_t *lines = calloc(count + 1, sizeof *lines);
  for (size_t i = 0; lines != NULL && i < count; i++) lines[i] = atlas_insn_at(program, i)->line;
  return lines;
}

static hg_status emit(const request *r, const atlas_program *program, const uint32_t *lines, int form, hg_array *text,
                      hg_gpu_info *info) {
  char name[ATLAS_MAX_NAME + 16];
  snprintf(name, sizeof name, "hg_%s_00000000", program->name); /* the backend has the hash there */
  const hg_ptx_options options = {.capability = r->capability,
                                  .variant.flags = forms[form].flags,
                                  .variant.threads = forms[form].threads,
                                  .name = name,
                                  .lines = lines};
  HG_TRY(hg_ptx_compile(&r->allocator, program, &options, text, info));
  text->count--; /* a NUL */
  return HG_OK;
}

static hg_status write_text(const request *r, int number, int form, const hg_array *text) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%d.%s.ptx", r->folder, number, forms[form].name);
  FILE *file = fopen(path, "wb");
  int is_written = file != NULL && fwrite(text->data, 1, text->count, file) == text->count;
  if (file != NULL) is_written &= fclose(file) == 0;
  return is_written ? HG_OK : hg_fail(HG_NOT_FOUND, "'%s' cannot be written", path);
}

/* Not the text of a form before. */
static int is_new(const hg_array *texts, int form) {
  const hg_array *text = &texts[form];
  for (int i = 0; i < form; i++)
    if (texts[i].count == text->count && memcmp(texts[i].data, text->data, text->count) == 0) return 0;
  return 1;
}

static hg_status emit_forms(const request *r, const atlas_program *program, const uint32_t *lines, int number,
                            hg_array *texts) {
  uint64_t lut_lanes = 0;
  for (int form = 0; form < FORM_COUNT; form++) {
    hg_gpu_info info = {0};
    if (forms[form].flags & HG_GPU_LUT && lut_lanes == 0) return HG_OK;
    HG_TRY(emit(r, program, lines, form, &texts[form], &info));
    if (form == 0) lut_lanes = info.lut_lanes;
    if (is_new(texts, form)) HG_TRY(write_text(r, number, form, &texts[form]));
  }
  return HG_OK;
}

static hg_status emit_program(const request *r, const atlas_program *program, int number) {
  hg_array texts[FORM_COUNT];
  for (int form = 0; form < FORM_COUNT; form++) texts[form] = (hg_array){.element_size = 1};
  uint32_t *lines = r->with_lines ? lines_of(program) : NULL;
  if (r->with_lines && lines == NULL) return hg_fail_memory("a table of lines", 0);
  hg_status status = emit_forms(r, program, lines, number, texts);
  for (int form = 0; form < FORM_COUNT; form++) hg_array_release(&r->allocator, &texts[form]);
  free(lines);
  return status;
}

int main(int count, char **words) {
  request r = {0};
  if (count < 4 || hg_allocator_resolve(NULL, &r.allocator) != HG_OK) {
    fprintf(stderr, "usage: emit_forms CAPABILITY LINES FOLDER PROGRAM...\n");
    return 2;
  }
  r.capability = (uint32_t)strtoul(words[1], NULL, 10);
  r.with_lines = strcmp(words[2], "1") == 0;
  r.folder = words[3];
  for (int i = 4; i < count; i++) {
    atlas_program *program = NULL;
    if (parse_file(&r, words[i], &program) != HG_OK) continue;
    hg_status status = atlas_program_is_library(program) ? HG_OK : emit_program(&r, program, i - 4);
    if (status != HG_OK) fprintf(stderr, "%s: %s\n", words[i], hg_last_error());
    atlas_program_release(program);
    if (status != HG_OK) return 1;
  }
  return 0;
}
