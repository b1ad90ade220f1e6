/* kernel.c - from a program to a pipeline of Metal's. */
#include "backend/metal/metal_kernel.h"

#include "backend/metal/msl/emit_msl.h"
#include "compiler/canon.h"
#include "compiler/optimise.h"

#include <stdio.h>

/* ---- text to pipeline -------------------------------------------------------------------------------------------- */

static hg_status no_pipeline(const metal_device *d, const atlas_program *program, metal_id error) {
  return hg_fail(HG_DEVICE, "Metal did not compile program '%s' (its log: %s)", program->name,
                 HG_LINE(hg_metal_words(&d->objc, error)));
}

/* Without what Metal calls fast math. Newer systems have a name for it, older ones a switch. */
static metal_id safe_options(const metal_runtime *r) {
  metal_id options = METAL(r, make, r->class_of("MTLCompileOptions"));
  if (METAL_WITH(r, responds, options, r->selector.math_mode)) METAL_WITH(r, math_mode, options, METAL_SAFE_MATH);
  else METAL_WITH(r, fast_math, options, 0);
  return options;
}

static metal_id string_of(const metal_runtime *r, const char *text) {
  return METAL_WITH(r, string, r->class_of("NSString"), text);
}

/* `text` ends in a NUL. */
static hg_status make_pipeline(const metal_device *d, const atlas_program *program, const char *text, const char *name,
                               metal_id *pipeline) {
  const metal_runtime *r = &d->objc;
  metal_id error = NULL, options = safe_options(r);
  metal_id library = METAL_WITH(r, library, d->device, string_of(r, text), options, &error);
  METAL(r, release, options);
  if (library == NULL) return no_pipeline(d, program, error);
  metal_id function = METAL_WITH(r, function, library, string_of(r, name));
  METAL(r, release, library);
  if (function == NULL) return no_pipeline(d, program, NULL);
  *pipeline = METAL_WITH(r, pipeline, d->device, function, &error);
  METAL(r, release, function);
  return *pipeline != NULL ? HG_OK : no_pipeline(d, program, error);
}

/* ---- a form ------------------------------------------------------------------------------------------------------ */

static hg_status check_shared(const metal_device *d, const atlas_program *program, const hg_gpu_info *info) {
  if (info->shared_bytes <= d->shared_bytes) return HG_OK;
  return hg_fail(HG_UNSUPPORTED, "program '%s' needs %u bytes of shared memory for a block of %u lanes, with what its "
                 "collectives exchange; this GPU gives a block %u", program->name, (unsigned)info->shared_bytes,
                 (unsigned)info->max_threads, (unsigned)d->shared_bytes);
}

static hg_status emit(metal_device *d, const atlas_program *program, ssa_unit *unit, const char *name, uint32_t form,
                      hg_array *text, hg_gpu_info *info) {
  const hg_msl_options options = {
      .form.flags = form & ~(uint32_t)HG_GPU_LARGER_BLOCKS,
      .form.threads = form & HG_GPU_LARGER_BLOCKS ? ATLAS_MAX_BLOCK_LANES : METAL_USUAL_BLOCK,
      .name = name};
  hg_name_loops(unit);
  HG_TRY(hg_expand_unplaced(unit, &d->functions));
  HG_TRY(hg_optimise(program, unit, NULL));
  HG_TRY(hg_msl_prelude(&d->allocator, text));
  HG_TRY(hg_msl_emit(&d->allocator, program, unit, &options, text, info));
  HG_TRY(check_shared(d, program, info));
  return hg_array_append(&d->allocator, text, NULL, 1) != NULL ? HG_OK : hg_fail_memory("MSL", text->count + 1);
}

/* A block that the pipeline has too few registers for is refused. */
static hg_status check_threads(const metal_device *d, const atlas_program *program, const metal_entry *entry) {
  uint64_t most = METAL(&d->objc, most_threads, entry->pipeline);
  if (most >= entry->info.max_threads) return HG_OK;
  return hg_fail(HG_UNSUPPORTED, "program '%s' needs blocks of %u lanes; this GPU has registers for %llu of them",
                 program->name, (unsigned)entry->info.max_threads, (unsigned long long)most);
}

static hg_status fill_entry(metal_device *d, const atlas_program *program, ssa_unit *unit, uint32_t form,
                            metal_entry *entry) {
  char name[ATLAS_MAX_NAME + 4];
  hg_array text = {.element_size = 1};
  snprintf(name, sizeof name, "hg_%s", program->name);
  hg_status status = emit(d, program, unit, name, form, &text, &entry->info);
  if (status == HG_OK) status = make_pipeline(d, program, text.data, name, &entry->pipeline);
  hg_array_release(&d->allocator, &text);
  if (status != HG_OK) return status;
  status = check_threads(d, program, entry);
  if (status != HG_OK) METAL(&d->objc, release, entry->pipeline);
  return status;
}

/* From the canonical unit, which is consumed. */
static hg_status make_entry(metal_device *d, metal_kernel *kernel, ssa_unit *unit, uint32_t form) {
  metal_entry *entry = hg_allocate(&d->allocator, 1, sizeof *entry);
  if (entry == NULL) return hg_fail_memory("a kernel's entry", sizeof *entry);
  hg_status status = fill_entry(d, kernel->program, unit, form, entry);
  if (status == HG_OK) atomic_store_explicit(&kernel->entry[form], entry, memory_order_release);
  else hg_release(&d->allocator, entry);
  return status;
}

static hg_status make_form(metal_device *d, metal_kernel *kernel, uint32_t form) {
  ssa_unit unit;
  if (atomic_load(&kernel->entry[form]) != NULL) return HG_OK;
  hg_status status = hg_canonicalise(kernel->program, NULL, &unit);
  if (status == HG_OK) status = make_entry(d, kernel, &unit, form);
  ir_ssa_release(&unit);
  return status;
}

/* ---- the backend's functions ------------------------------------------------------------------------------------- */

static void release_memory(metal_device *d, metal_kernel *kernel) {
  for (int i = 0; i < METAL_ENTRY_COUNT; i++) hg_release(&d->allocator, atomic_load(&kernel->entry[i]));
  hg_mutex_destroy(&kernel->mutex);
  hg_release(&d->allocator, kernel);
}

static hg_status make_usual_entry(metal_device *d, metal_kernel *kernel, ssa_unit *unit) {
  METAL_RUN(d, make_entry(d, kernel, unit, 0));
}

hg_status hg_metal_compile(void *device, hg_compile_input *input, hg_compiled *out) {
  metal_device *d = device;
  metal_kernel *kernel = hg_allocate(&d->allocator, 1, sizeof *kernel);
  if (kernel == NULL) return hg_fail_memory("a kernel", sizeof *kernel);
  if (hg_mutex_init(&kernel->mutex) != 0) {
    hg_release(&d->allocator, kernel);
    return hg_fail(HG_OUT_OF_MEMORY, "could not make a mutex for a kernel");
  }
  kernel->program = input->program;
  hg_status status = make_usual_entry(d, kernel, input->unit);
  if (status == HG_OK) *out = (hg_compiled){.kernel = kernel, .engine = "msl"};
  else release_memory(d, kernel);
  return status;
}

static hg_status make_wanted(metal_device *d, metal_kernel *kernel) {
  unsigned wanted = atomic_exchange(&kernel->wanted, 0);
  for (uint32_t form = 0; form < METAL_ENTRY_COUNT; form++)
    if (wanted >> form & 1) HG_TRY(make_form(d, kernel, form));
  return HG_OK;
}

static hg_status make_wanted_in_pool(metal_device *d, metal_kernel *kernel) { METAL_RUN(d, make_wanted(d, kernel)); }

hg_status hg_metal_prepare(void *device, void *kernel) {
  metal_kernel *k = kernel;
  hg_mutex_lock(&k->mutex);
  hg_status status = make_wanted_in_pool(device, k);
  hg_mutex_unlock(&k->mutex);
  return status;
}

hg_status hg_metal_describe(void *device, void *kernel, hg_kernel_facts *facts) {
  (void)device;
  *facts = (hg_kernel_facts){.shared_bytes = atomic_load(&((metal_kernel *)kernel)->entry[0])->info.shared_bytes};
  return HG_OK;
}

void hg_metal_release(void *device, void *kernel) {
  metal_device *d = device;
  metal_kernel *k = kernel;
  for (int i = 0; i < METAL_ENTRY_COUNT && d->process == hg_process_id(); i++)
    if (atomic_load(&k->entry[i]) != NULL) METAL(&d->objc, release, atomic_load(&k->entry[i])->pipeline);
  release_memory(d, k);
}
