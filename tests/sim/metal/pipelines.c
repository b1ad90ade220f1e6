/* pipelines.c - from a library's text to a pipeline: compile options, descriptors, pipelines, and binary archives,
 * whose files have a line for each pipeline that they hold. */
#define _GNU_SOURCE
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HELD = 16 };
static const char head[] = "SIMULATED METAL ARCHIVE\n";

/* ---- compile options, libraries ---------------------------------------------------------------------------------- */

typedef struct options {
  sim_object object;
  int is_safe;
} options;

static void set_math_mode(options *o, sim_selector s, long mode) { (void)s, o->is_safe = mode == 0; }
static void set_fast_math(options *o, sim_selector s, signed char fast) { (void)s, o->is_safe = !fast; }
static const sim_method options_methods[] = {{"setMathMode:", (void *)set_math_mode, "v@:q"},
                                             {"setFastMathEnabled:", (void *)set_fast_math, "v@:B"},
                                             {NULL, NULL, NULL}};
static const sim_class options_instances = {NULL, "MTLCompileOptions", options_methods};

static void *new_options(void *class, sim_selector s) {
  (void)class;
  (void)s;
  return sim_fails(SIM_NO_OBJECT) ? NULL : sim_make(&options_instances, sizeof(options), NULL);
}

static const sim_method options_class_methods[] = {{"new", (void *)new_options, "@@:"}, {NULL, NULL, NULL}};
static const sim_class options_meta = {NULL, "MTLCompileOptions class", options_class_methods};
const sim_class sim_options_class = {&options_meta, "MTLCompileOptions", options_methods};

void *sim_new_library(void *device, sim_selector s, void *text, void *given, void **error) {
  const options *o = given;
  (void)device;
  (void)s;
  if (o == NULL || !o->is_safe) sim_die("a library is made with fast math");
  if (!sim_fails(SIM_NO_LIBRARY)) return sim_compile(sim_text(text), error);
  if (error != NULL) *error = sim_error(3, "program_source: error: asked for by a test");
  return NULL;
}

/* ---- archives ---------------------------------------------------------------------------------------------------- */

typedef struct archive_descriptor {
  sim_object object;
  void *file;
} archive_descriptor;

typedef struct archive {
  sim_object object;
  uint64_t held[MOST_HELD];
  size_t count;
} archive;

static void archive_descriptor_dealloc(void *o) { sim_release(((archive_descriptor *)o)->file); }
static void set_file(archive_descriptor *a, sim_selector s, void *file) {
  (void)s;
  sim_retain(file);
  sim_release(a->file);
  a->file = file;
}
static const sim_method archive_descriptor_methods[] = {{"setUrl:", (void *)set_file, "v@:@"}, {NULL, NULL, NULL}};
static const sim_class archive_descriptor_instances = {NULL, "MTLBinaryArchiveDescriptor", archive_descriptor_methods};

static void *new_archive_descriptor(void *class, sim_selector s) {
  (void)class;
  (void)s;
  if (sim_fails(SIM_NO_OBJECT)) return NULL;
  return sim_make(&archive_descriptor_instances, sizeof(archive_descriptor), archive_descriptor_dealloc);
}

static const sim_method archive_class_methods[] = {{"new", (void *)new_archive_descriptor, "@@:"}, {NULL, NULL, NULL}};
static const sim_class archive_meta = {NULL, "MTLBinaryArchiveDescriptor class", archive_class_methods};
const sim_class sim_archive_descriptor_class = {&archive_meta, "MTLBinaryArchiveDescriptor",
                                                archive_descriptor_methods};

static int read_archive(archive *a, const char *path) {
  char line[64];
  unsigned long long held = 0;
  FILE *file = fopen(path, "r");
  int is_right = file != NULL && fgets(line, sizeof line, file) != NULL && strcmp(line, head) == 0;
  while (is_right && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "%llx\n", &held) == 1 && a->count < MOST_HELD) a->held[a->count++] = held;
  if (file != NULL) fclose(file);
  return is_right;
}

static signed char no_archive(void **error, const char *why) {
  if (error != NULL) *error = sim_error(1, "%s", why);
  return 0;
}

static signed char archive_write(const archive *a, sim_selector s, void *file, void **error) {
  (void)s;
  FILE *out = sim_fails(SIM_NO_ARCHIVE) ? NULL : fopen(sim_text(file), "w");
  if (out == NULL) return no_archive(error, "the archive could not be written");
  fputs(head, out);
  for (size_t i = 0; i < a->count; i++) fprintf(out, "%llx\n", (unsigned long long)a->held[i]);
  return fclose(out) == 0;
}

/* ---- pipelines --------------------------------------------------------------------------------------------------- */

typedef struct descriptor {
  sim_object object;
  sim_function *function;
  sim_unsigned threads;
  void *archives;
} descriptor;

static long compiled;

long metal_sim_compiled(void) { return __atomic_load_n(&compiled, __ATOMIC_SEQ_CST); }

static void descriptor_dealloc(void *o) {
  descriptor *d = o;
  sim_release(d->function);
  sim_release(d->archives);
}
static void set_function(descriptor *d, sim_selector s, sim_function *f) {
  (void)s;
  sim_retain(f);
  sim_release(d->function);
  d->function = f;
}
static void set_threads(descriptor *d, sim_selector s, sim_unsigned threads) { (void)s, d->threads = threads; }
static void set_archives(descriptor *d, sim_selector s, void *archives) {
  (void)s;
  sim_retain(archives);
  sim_release(d->archives);
  d->archives = archives;
}
static const sim_method descriptor_methods[] = {
    {"setComputeFunction:", (void *)set_function, "v@:@"},
    {"setMaxTotalThreadsPerThreadgroup:", (void *)set_threads, "v@:Q"},
    {"setBinaryArchives:", (void *)set_archives, "v@:@"},
    {NULL, NULL, NULL}};
static const sim_class descriptor_instances = {NULL, "MTLComputePipelineDescriptor", descriptor_methods};

static void *new_descriptor(void *class, sim_selector s) {
  (void)class;
  (void)s;
  return sim_fails(SIM_NO_OBJECT) ? NULL : sim_make(&descriptor_instances, sizeof(descriptor), descriptor_dealloc);
}

static const sim_method descriptor_class_methods[] = {{"new", (void *)new_descriptor, "@@:"}, {NULL, NULL, NULL}};
static const sim_class descriptor_meta = {NULL, "MTLComputePipelineDescriptor class", descriptor_class_methods};
const sim_class sim_descriptor_class = {&descriptor_meta, "MTLComputePipelineDescriptor", descriptor_methods};

/* What a pipeline is made of. */
static uint64_t number_of(const descriptor *d) {
  uint64_t number = d->function->library->hash ^ d->threads;
  for (const char *c = d->function->kernel->name; *c != '\0'; c++)
    number = (number ^ (unsigned char)*c) * 0x100000001b3u;
  return number;
}

static signed char archive_add(archive *a, sim_selector s, const descriptor *d, void **error) {
  (void)s;
  if (sim_fails(SIM_NO_ARCHIVE) || a->count == MOST_HELD) return no_archive(error, "the archive takes no function");
  __atomic_add_fetch(&compiled, 1, __ATOMIC_SEQ_CST);
  a->held[a->count++] = number_of(d);
  return 1;
}

static const sim_method archive_methods[] = {
    {"addComputePipelineFunctionsWithDescriptor:error:", (void *)archive_add, "B@:@^@"},
    {"serializeToURL:error:", (void *)archive_write, "B@:@^@"},
    {NULL, NULL, NULL}};
static const sim_class archive_class = {NULL, "MTLBinaryArchive", archive_methods};

void *sim_new_archive(void *device, sim_selector s, void *given, void **error) {
  const archive_descriptor *from = given;
  (void)device;
  (void)s;
  archive *a = sim_fails(SIM_NO_ARCHIVE) ? NULL : sim_make(&archive_class, sizeof *a, NULL);
  if (a != NULL && (from->file == NULL || read_archive(a, sim_text(from->file)))) return a;
  sim_release(a);
  no_archive(error, "this is no archive for this device");
  return NULL;
}

static int is_held(const archive *a, uint64_t number) {
  for (size_t i = 0; a != NULL && i < a->count; i++)
    if (a->held[i] == number) return 1;
  return 0;
}

static void pipeline_dealloc(void *o) { sim_release(((sim_pipeline *)o)->library); }
static sim_unsigned pipeline_threads(sim_pipeline *p, sim_selector s) { return (void)s, p->most_threads; }
static sim_unsigned pipeline_width(sim_pipeline *p, sim_selector s) { return (void)p, (void)s, SIM_WIDTH; }
static const sim_method pipeline_methods[] = {{"threadExecutionWidth", (void *)pipeline_width, "Q@:"},
                                              {"maxTotalThreadsPerThreadgroup", (void *)pipeline_threads, "Q@:"},
                                              {NULL, NULL, NULL}};
static const sim_class pipeline_class = {NULL, "MTLComputePipelineState", pipeline_methods};

void *sim_new_pipeline(void *device, sim_selector s, void *given, sim_unsigned asked, void **reflection, void **error) {
  const descriptor *d = given;
  (void)device;
  (void)s;
  if (d->function == NULL || asked != 0 || reflection != NULL)
    sim_die("a pipeline without a function, or with reflection");
  if (d->threads == 0 || d->threads > SIM_MOST_THREADS) sim_die("a pipeline for blocks of %lu threads", d->threads);
  if (sim_fails(SIM_NO_PIPELINE)) {
    if (error != NULL) *error = sim_error(3, "the compiler's connection was interrupted, as a test asked for");
    return NULL;
  }
  if (!is_held(sim_array_first(d->archives), number_of(d))) __atomic_add_fetch(&compiled, 1, __ATOMIC_SEQ_CST);
  sim_pipeline *p = sim_make(&pipeline_class, sizeof *p, pipeline_dealloc);
  p->library = sim_retain(d->function->library);
  p->kernel = d->function->kernel;
  p->most_threads = sim_fails(SIM_FEW_THREADS) ? 64 : d->threads;
  return p;
}
