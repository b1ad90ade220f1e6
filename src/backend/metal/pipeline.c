/* pipeline.c - from text to a Metal pipeline. Its machine code comes from a binary archive, or goes into one; Metal
 * reads and writes archives as files. An archive only saves time: without one Metal compiles. */
#include "backend/metal/metal_kernel.h"

static metal_id string_of(const metal_runtime *r, const char *text) {
  return METAL_WITH(r, string, r->class_of("NSString"), text);
}

static metal_id new_of(const metal_runtime *r, const char *class) { return METAL(r, make, r->class_of(class)); }

/* ---- archives: NULL wherever something fails --------------------------------------------------------------------- */

static metal_id file_of(const metal_runtime *r, const char *path) {
  metal_id name = string_of(r, path);
  return name != NULL ? METAL_WITH(r, file, r->class_of("NSURL"), name) : NULL;
}

/* Opens the archive in the file; path NULL: an empty one. */
static metal_id open_archive(const metal_device *d, const char *path) {
  const metal_runtime *r = &d->objc;
  metal_id file = path != NULL ? file_of(r, path) : NULL, error = NULL;
  if (path != NULL && file == NULL) return NULL;
  metal_id descriptor = new_of(r, "MTLBinaryArchiveDescriptor");
  if (descriptor == NULL) return NULL;
  METAL_WITH(r, set_file, descriptor, file);
  metal_id archive = METAL_WITH(r, archive, d->device, descriptor, &error);
  METAL(r, release, descriptor);
  return archive;
}

static metal_id fill_archive(const metal_device *d, metal_id descriptor) {
  metal_id archive = open_archive(d, NULL), error = NULL;
  if (archive == NULL || METAL_WITH(&d->objc, add, archive, descriptor, &error)) return archive;
  METAL(&d->objc, release, archive);
  return NULL;
}

static void write_archive(const metal_device *d, metal_id archive, const char *path) {
  metal_id file = file_of(&d->objc, path), error = NULL;
  if (file != NULL) (void)METAL_WITH(&d->objc, write, archive, file, &error);
}

/* ---- pipelines --------------------------------------------------------------------------------------------------- */

static hg_status no_pipeline(const metal_device *d, const metal_source *source, metal_id error) {
  return hg_fail(HG_DEVICE, "Metal did not compile program '%s' (its log: %s)", source->program,
                 HG_LINE(hg_metal_words(&d->objc, error)));
}

/* Without what Metal calls fast math: an enumeration on newer systems, a switch on older ones. */
static metal_id safe_options(const metal_runtime *r) {
  metal_id options = new_of(r, "MTLCompileOptions");
  if (METAL_WITH(r, responds, options, r->selector.math_mode)) METAL_WITH(r, math_mode, options, METAL_SAFE_MATH);
  else METAL_WITH(r, fast_math, options, 0);
  return options;
}

static metal_id new_library(const metal_device *d, const char *text, metal_id *error) {
  const metal_runtime *r = &d->objc;
  metal_id words = string_of(r, text), options = safe_options(r), library = NULL;
  if (words != NULL && options != NULL) library = METAL_WITH(r, library, d->device, words, options, error);
  METAL(r, release, options);
  return library;
}

static metal_id new_function(const metal_device *d, const metal_source *source, metal_id *error) {
  metal_id library = new_library(d, source->text, error), name = string_of(&d->objc, source->name);
  metal_id function = library != NULL && name != NULL ? METAL_WITH(&d->objc, function, library, name) : NULL;
  METAL(&d->objc, release, library);
  return function;
}

/* max_threads decides how many registers a thread gets. */
static metal_id new_descriptor(const metal_device *d, const metal_source *source, metal_id *error) {
  const metal_runtime *r = &d->objc;
  metal_id function = new_function(d, source, error);
  metal_id descriptor = function != NULL ? new_of(r, "MTLComputePipelineDescriptor") : NULL;
  METAL_WITH(r, set_function, descriptor, function);
  METAL_WITH(r, set_threads, descriptor, source->threads);
  METAL(r, release, function);
  return descriptor;
}

hg_status hg_metal_pipeline(const metal_device *d, const metal_source *source, const char *path, int is_there,
                            metal_id *pipeline) {
  const metal_runtime *r = &d->objc;
  metal_id error = NULL, archive = NULL, descriptor = new_descriptor(d, source, &error);
  if (descriptor == NULL) return no_pipeline(d, source, error);
  if (path != NULL) archive = is_there ? open_archive(d, path) : fill_archive(d, descriptor);
  if (archive != NULL)
    METAL_WITH(r, set_archives, descriptor, METAL_WITH(r, array_of, r->class_of("NSArray"), archive));
  *pipeline = METAL_WITH(r, pipeline, d->device, descriptor, 0, NULL, &error);
  if (*pipeline != NULL && archive != NULL && !is_there) write_archive(d, archive, path);
  METAL(r, release, archive);
  METAL(r, release, descriptor);
  return *pipeline != NULL ? HG_OK : no_pipeline(d, source, error);
}
