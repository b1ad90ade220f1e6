/* kernel.c - from a program to a Metal pipeline, through MSL text or from the kernel cache. */
#include "backend/metal/metal_kernel.h"

#include "backend/metal/msl/emit_msl.h"

#include <stdio.h>

/* ---- a variant --------------------------------------------------------------------------------------------------- */

static hg_status emit(metal_device *d, const atlas_program *program, ssa_unit *unit, const hg_gpu_key *k,
                      hg_array *text, hg_gpu_info *info) {
  const hg_msl_options options = {.variant = hg_gpu_variant_of(k->special.variant), .name = k->special.name};
  HG_TRY(hg_msl_write(&d->allocator, program, unit, &d->functions, &options, text, info));
  HG_TRY(hg_gpu_check_shared(program, info, d->shared_bytes));
  return hg_array_append(&d->allocator, text, NULL, 1) != NULL ? HG_OK : hg_fail_memory("MSL", text->count + 1);
}

/* Refuses blocks that the pipeline has too few registers for, and GPUs whose simdgroups have another width. */
static hg_status check_threads(const metal_device *d, const atlas_program *program, const metal_entry *entry) {
  uint64_t most = METAL(&d->objc, most_threads, entry->pipeline), width = METAL(&d->objc, width, entry->pipeline);
  if (width != HG_GPU_WARP_LANES)
    return hg_fail(HG_UNSUPPORTED, "program '%s' needs simdgroups of %d threads; this GPU's have %llu",
                   program->name, HG_GPU_WARP_LANES, (unsigned long long)width);
  if (most >= entry->info.max_threads) return HG_OK;
  return hg_fail(HG_UNSUPPORTED, "program '%s' needs blocks of %u lanes; this GPU has registers for %llu of them",
                 program->name, (unsigned)entry->info.max_threads, (unsigned long long)most);
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

static void make_key(const metal_device *d, const hg_gpu_kernel *kernel, uint32_t variant, hg_gpu_key *k) {
  *k = (hg_gpu_key){.target = ""};
  snprintf(k->target, sizeof k->target, "metal %s", d->name);
  snprintf(k->driver, sizeof k->driver, "%s", d->system);
  snprintf(k->special.name, sizeof k->special.name, "hg_%s", kernel->program->name);
  hg_gpu_complete_key(kernel, variant, k);
}

/* The head of a cache entry; the text without its prelude, with a NUL, and the archive follow. */
typedef struct metal_image {
  hg_gpu_info info;
  uint64_t text_bytes;
} metal_image;

enum { MOST_ARCHIVE_BYTES = 64 << 20 };

/* `text`: the kernel's text, without the prelude. */
static hg_status pipeline_of(metal_device *d, const atlas_program *program, const hg_gpu_key *k, const char *text,
                             const char *path, int is_there, metal_entry *entry) {
  hg_array whole = {.element_size = 1};
  hg_status status = hg_msl_prelude(&d->allocator, &whole);
  if (status == HG_OK && hg_array_append(&d->allocator, &whole, text, strlen(text) + 1) == NULL)
    status = hg_fail_memory("MSL", whole.count + strlen(text) + 1);
  const metal_source source = {program->name, whole.data, k->special.name, entry->info.max_threads};
  if (status == HG_OK) status = hg_metal_pipeline(d, &source, path, is_there, &entry->pipeline);
  hg_array_release(&d->allocator, &whole);
  if (status == HG_OK) status = check_threads(d, program, entry);
  if (status == HG_OK) return HG_OK;
  METAL(&d->objc, release, entry->pipeline);
  entry->pipeline = NULL;
  return status;
}

/* Writes the archive to a file, for as long as the pipeline is made; 0 if that fails. */
static int put_archive(metal_device *d, const hg_gpu_key *k, const uint8_t *bytes, size_t count, char *path) {
  char temporary[HG_PATH_BYTES];
  return count > 0 && hg_kernel_cache_scratch(d->cache, &k->key, temporary) &&
         hg_kernel_cache_scratch(d->cache, &k->key, path) && hg_file_write(temporary, path, bytes, count);
}

static hg_status load_image(metal_device *d, const atlas_program *program, const hg_gpu_key *k,
                            const hg_payload *payload, metal_entry *entry) {
  const metal_image *image = (const metal_image *)(const void *)payload->bytes;
  const char *text = (const char *)(image + 1);
  const hg_gpu_target target = hg_msl_target(d->shared_bytes);
  const hg_gpu_variant variant = hg_gpu_variant_of(k->special.variant);
  if (payload->byte_count <= sizeof *image || image->text_bytes == 0 ||
      image->text_bytes > payload->byte_count - sizeof *image || text[image->text_bytes - 1] != '\0' ||
      !hg_gpu_admit(program, &variant, &target, &image->info, &entry->info))
    return hg_fail(HG_FORMAT, "a compiled kernel is not of this program");
  char path[HG_PATH_BYTES];
  size_t archive_bytes = payload->byte_count - sizeof *image - (size_t)image->text_bytes;
  int is_there = put_archive(d, k, (const uint8_t *)text + image->text_bytes, archive_bytes, path);
  hg_status status = pipeline_of(d, program, k, text, is_there ? path : NULL, 1, entry);
  if (is_there) (void)hg_file_remove(path);
  return status;
}

/* A cached kernel that does not load counts as not cached. */
static int load_cached(metal_device *d, const atlas_program *program, const hg_gpu_key *k, metal_entry *entry) {
  hg_payload *payload = hg_kernel_cache_get(d->cache, &k->key);
  if (payload == NULL) return 0;
  hg_status status = load_image(d, program, k, payload, entry);
  hg_payload_release(payload);
  return status == HG_OK;
}

/* Keeps nothing if memory runs out. */
static void keep_image(metal_device *d, const hg_gpu_key *k, const hg_array *text, const char *path,
                       const hg_gpu_info *info) {
  const metal_image head = {.info = *info, .text_bytes = text->count};
  hg_array image = {.element_size = 1};
  uint8_t *archive = NULL;
  size_t archive_bytes = 0;
  if (path == NULL || hg_file_read(&d->allocator, path, MOST_ARCHIVE_BYTES, &archive, &archive_bytes) != HG_READ_OK)
    archive_bytes = 0;
  if (hg_array_append(&d->allocator, &image, &head, sizeof head) != NULL &&
      hg_array_append(&d->allocator, &image, text->data, text->count) != NULL &&
      (archive_bytes == 0 || hg_array_append(&d->allocator, &image, archive, archive_bytes) != NULL))
    hg_kernel_cache_put(d->cache, &k->key, image.data, image.count);
  hg_release(&d->allocator, archive);
  hg_array_release(&d->allocator, &image);
}

static hg_status compile_text(metal_device *d, const atlas_program *program, const hg_gpu_key *k, const hg_array *text,
                              metal_entry *entry) {
  char path[HG_PATH_BYTES];
  int has_file = hg_kernel_cache_scratch(d->cache, &k->key, path);
  hg_status status = pipeline_of(d, program, k, text->data, has_file ? path : NULL, 0, entry);
  if (status == HG_OK) keep_image(d, k, text, has_file ? path : NULL, &entry->info);
  if (has_file) (void)hg_file_remove(path);
  return status;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static hg_status fill_entry(metal_device *d, hg_gpu_kernel *kernel, ssa_unit *unit, uint32_t variant,
                            metal_entry *entry) {
  hg_gpu_key k;
  hg_array text = {.element_size = 1};
  make_key(d, kernel, variant, &k);
  HG_TRY(hg_gpu_number(&d->allocator, unit, &kernel->numbers));
  if (load_cached(d, kernel->program, &k, entry)) return HG_OK;
  HG_TRY(hg_metal_check(d));
  hg_status status = emit(d, kernel->program, unit, &k, &text, &entry->info);
  if (status == HG_OK) status = compile_text(d, kernel->program, &k, &text, entry);
  hg_array_release(&d->allocator, &text);
  return status;
}

static hg_status make_entry(void *device, hg_gpu_kernel *kernel, ssa_unit *unit, uint32_t variant) {
  metal_device *d = device;
  metal_entry *entry = hg_allocate(&d->allocator, 1, sizeof *entry);
  if (entry == NULL) return hg_fail_memory("a kernel's entry", sizeof *entry);
  hg_status status = fill_entry(d, kernel, unit, variant, entry);
  if (status == HG_OK) atomic_store_explicit(&kernel->entry[variant], &entry->info, memory_order_release);
  else hg_release(&d->allocator, entry);
  return status;
}

/* ---- the backend's functions ------------------------------------------------------------------------------------- */

static void release_memory(metal_device *d, hg_gpu_kernel *kernel) {
  for (int i = 0; i < HG_GPU_VARIANTS; i++) hg_release(&d->allocator, atomic_load(&kernel->entry[i]));
  hg_gpu_kernel_close(&d->allocator, kernel);
}

static hg_status make_usual_entry(metal_device *d, hg_gpu_kernel *kernel, ssa_unit *unit) {
  METAL_RUN(d, make_entry(d, kernel, unit, 0));
}

hg_status hg_metal_compile(void *device, hg_compile_input *input, hg_compiled *out) {
  metal_device *d = device;
  void *kernel = NULL;
  HG_TRY(hg_gpu_kernel_open(&d->allocator, sizeof(hg_gpu_kernel), input->program, input->hash, &kernel));
  hg_status status = make_usual_entry(d, kernel, input->unit);
  const char *why = hg_msl_computes_f64(input->program) ? "f64 emulated" : NULL;
  if (status == HG_OK) *out = (hg_compiled){.kernel = kernel, .engine = "msl", .why = why};
  else release_memory(d, kernel);
  return status;
}

static hg_status make_wanted(metal_device *d, hg_gpu_kernel *kernel) {
  METAL_RUN(d, hg_gpu_make_variants(kernel, atomic_exchange(&kernel->wanted, 0), make_entry, d));
}

hg_status hg_metal_prepare(void *device, void *kernel) {
  hg_gpu_kernel *k = kernel;
  hg_mutex_lock(&k->mutex);
  hg_status status = make_wanted(device, k);
  hg_mutex_unlock(&k->mutex);
  return status;
}

hg_status hg_metal_describe(void *device, void *kernel, hg_kernel_facts *facts) {
  (void)device;
  *facts = (hg_kernel_facts){.shared_bytes = atomic_load(&((hg_gpu_kernel *)kernel)->entry[0])->shared_bytes};
  return HG_OK;
}

void hg_metal_release(void *device, void *kernel) {
  metal_device *d = device;
  hg_gpu_kernel *k = kernel;
  for (int i = 0; i < HG_GPU_VARIANTS && d->process == hg_process_id(); i++) {
    const metal_entry *entry = (const metal_entry *)atomic_load(&k->entry[i]);
    if (entry != NULL) METAL(&d->objc, release, entry->pipeline);
  }
  release_memory(d, k);
}
