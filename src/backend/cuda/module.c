/* module.c - from a program to a function of the driver: PTX, which the driver's linker turns into machine code for
 * this GPU; the kernel cache keeps that. */
#include "backend/cuda/kernel.h"


#include <stdio.h>
#include <string.h>

/* ---- text to machine code ---------------------------------------------------------------------------------------- */

static hg_status link_text(cuda_device *d, void *state, const char *program, const hg_array *text, const char *log,
                           hg_array *image) {
  void *made = NULL;
  size_t byte_count = 0;
  int result = d->driver.cuLinkAddData_v2(state, CUDA_JIT_INPUT_PTX, text->data, text->count, program, 0, NULL, NULL);
  if (result == CUDA_OK) result = d->driver.cuLinkComplete(state, &made, &byte_count);
  if (result != CUDA_OK) {
    char what[400];
    snprintf(what, sizeof what, "the driver did not compile program '%s'%s%s%s", program,
             log[0] != '\0' ? " (its log: " : "", HG_LINE(log), log[0] != '\0' ? ")" : "");
    return hg_cuda_check(d, result, what);
  }
  if (hg_array_append(&d->allocator, image, made, byte_count) == NULL)
    return hg_fail_memory("a compiled kernel", byte_count);
  return HG_OK;
}

static void take_warm_heap(cuda_device *d) {
  hg_mutex_lock(&d->mutex);
  hg_cuda_warm_finish();
  hg_mutex_unlock(&d->mutex);
}

/* Appends the machine code of a text; `quickly`: with few of the driver's optimisations. */
static hg_status assemble(cuda_device *d, const char *program, const hg_array *text, int quickly, hg_array *image) {
  char log[2048] = "";
  int options[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES,
                   quickly ? CUDA_JIT_OPTIMIZATION_LEVEL : CUDA_JIT_LINE_INFO};
  void *values[] = {log, (void *)(uintptr_t)sizeof log, (void *)(uintptr_t)(quickly ? CUDA_QUICK_LEVEL : 1)};
  void *state = NULL;
  if (d->warms) take_warm_heap(d);
  unsigned option_count = quickly || d->writes_lines ? 3 : 2;
  CUDA_TRY(d, cuLinkCreate_v2(option_count, options, values, &state), "the driver's compiler did not start");
  hg_status status = link_text(d, state, program, text, log, image);
  (void)d->driver.cuLinkDestroy(state);
  return status;
}

/* By instruction number, the line in the program's text; NULL if lines are not wanted. */
static hg_status find_lines(const cuda_device *d, const cuda_kernel *kernel, uint32_t **lines) {
  if (!d->writes_lines) return HG_OK;
  const hg_gpu_numbers *numbers = &kernel->gpu.numbers;
  uint32_t *table = hg_allocate(&d->allocator, numbers->count, sizeof *table);
  if (table == NULL) return hg_fail_memory("a kernel's table of lines", numbers->count * sizeof *table);
  for (uint32_t i = 0; i < numbers->count; i++)
    if (numbers->insn_of[i] != SSA_NONE) table[i] = atlas_insn_at(kernel->gpu.program, numbers->insn_of[i])->line;
  *lines = table;
  return HG_OK;
}

static hg_status emit(cuda_device *d, const cuda_kernel *kernel, ssa_unit *unit, const char *name,
                      const uint32_t *lines, uint32_t variant, hg_array *text, hg_gpu_info *info) {
  const hg_ptx_options options = {.capability = hg_cuda_text_capability(&d->driver, d->capability),
                                  .lines = lines,
                                  .variant = hg_gpu_variant_of(variant),
                                  .name = name};
  HG_TRY(hg_ptx_write(&d->allocator, kernel->gpu.program, unit, &d->functions, &options, text, info));
  return hg_gpu_check_shared(kernel->gpu.program, info, d->shared_bytes);
}

/* A variant's text, and the facts for its launches. */
typedef struct cuda_text {
  hg_array text;
  hg_gpu_info info;
} cuda_text;

static hg_status write_text(cuda_device *d, const cuda_kernel *kernel, ssa_unit *unit, const char *name,
                            uint32_t variant,
                            cuda_text *out) {
  uint32_t *lines = NULL;
  out->text = (hg_array){.element_size = 1};
  hg_status status = find_lines(d, kernel, &lines);
  if (status == HG_OK) status = emit(d, kernel, unit, name, lines, variant, &out->text, &out->info);
  hg_release(&d->allocator, lines);
  return status;
}

/* Makes an image, the content of a cache entry: the facts for launches, then the machine code. */
static hg_status compile_image(cuda_device *d, const char *program, const cuda_text *text, int quickly,
                               hg_array *image) {
  if (hg_array_append(&d->allocator, image, &text->info, sizeof text->info) == NULL)
    return hg_fail_memory("a compiled kernel", sizeof text->info);
  return assemble(d, program, &text->text, quickly, image);
}

/* Properties of this card: the image may come from another one of the same capability. */
static void note_card(const cuda_device *d, hg_gpu_info *info) {
  info->multiprocessors = d->multiprocessors;
  info->multiprocessor_shared_bytes = d->multiprocessor_shared_bytes;
  info->block_shared_bytes = d->shared_bytes;
  info->cache_bytes = d->cache_bytes;
}

/* The most dynamic shared memory that a launch may request. */
static uint32_t most_dynamic_bytes(const cuda_device *d, const hg_gpu_info *info) {
  for (uint32_t i = 0; i < info->parameter_count; i++)
    if (info->parameter[i].again) return d->shared_bytes - (info->dynamic_bytes > 0 ? 0 : info->shared_bytes);
  return info->dynamic_bytes;
}

/* Loads the image's machine code; entry->info has the facts. */
static hg_status load_image(cuda_device *d, const uint8_t *image, const char *name, cuda_entry *entry) {
  note_card(d, &entry->info);
  int result = d->driver.cuModuleLoadData(&entry->module, image + sizeof entry->info);
  if (result == CUDA_OUT_OF_MEMORY) {
    hg_cuda_trim_within(d);
    result = d->driver.cuModuleLoadData(&entry->module, image + sizeof entry->info);
  }
  HG_TRY(hg_cuda_check(d, result, "the driver did not load a kernel"));
  hg_status status = hg_cuda_check(d, d->driver.cuModuleGetFunction(&entry->function, entry->module, name),
                                "the driver did not find a kernel's entry");
  uint32_t dynamic_bytes = most_dynamic_bytes(d, &entry->info);
  if (status == HG_OK && dynamic_bytes > 0)
    status = hg_cuda_check(d, d->driver.cuFuncSetAttribute(entry->function, CUDA_FUNCTION_DYNAMIC_BYTES,
                                                           (int)dynamic_bytes),
                           "the driver did not give a kernel its shared memory");
  if (status == HG_OK) return HG_OK;
  (void)d->driver.cuModuleUnload(entry->module);
  entry->function = entry->module = NULL;
  return status;
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

static void make_key(const cuda_device *d, const hg_gpu_kernel *kernel, uint32_t variant, hg_gpu_key *k) {
  *k = (hg_gpu_key){.target = ""};
  snprintf(k->target, sizeof k->target, "cuda sm_%d", d->capability);
  snprintf(k->driver, sizeof k->driver, "cuda %d.%d", d->driver.version / 1000, d->driver.version % 1000 / 10);
  /* The name in profilers: the program's, and the start of its hash, because names are not unique */
  snprintf(k->special.name, sizeof k->special.name, "hg_%s_%02x%02x%02x%02x", kernel->program->name, kernel->hash[0],
           kernel->hash[1], kernel->hash[2], kernel->hash[3]);
  hg_gpu_complete_key(kernel, variant, k);
}

/* With lines a kernel belongs to a text, not to a program. */
static int has_cache(const cuda_device *d) { return !d->writes_lines; }

/* The driver gets no length of machine code: it reads that from the code's header. */
static hg_status load_kept(cuda_device *d, const atlas_program *program, const hg_gpu_key *k, const hg_payload *image,
                           cuda_entry *entry) {
  const hg_gpu_target target = hg_ptx_target(hg_cuda_text_capability(&d->driver, d->capability), d->shared_bytes);
  const hg_gpu_variant variant = hg_gpu_variant_of(k->special.variant);
  if (image->byte_count <= sizeof entry->info) return hg_fail(HG_FORMAT, "a compiled kernel is too short");
  if (!hg_gpu_admit(program, &variant, &target, (const hg_gpu_info *)(const void *)image->bytes, &entry->info))
    return hg_fail(HG_FORMAT, "a compiled kernel is not of this program");
  return load_image(d, image->bytes, k->special.name, entry);
}

/* A cached kernel that does not load counts as not cached. */
static int load_cached(cuda_device *d, const atlas_program *program, const hg_gpu_key *k, cuda_entry *entry) {
  if (!has_cache(d)) return 0;
  hg_payload *payload = hg_kernel_cache_get(d->cache, &k->key);
  if (payload == NULL) return 0;
  hg_status status = CUDA_RANGE(d, "load", program->name, 0,
                                load_kept(d, program, k, payload, entry));
  hg_payload_release(payload);
  return status == HG_OK;
}

/* Does not cache quickly made code. */
static hg_status compile_text(cuda_device *d, const char *program, const hg_gpu_key *k, const cuda_text *text,
                              int quickly, cuda_entry *entry) {
  hg_array image = {.element_size = 1};
  hg_status status = compile_image(d, program, text, quickly, &image);
  entry->info = text->info;
  if (status == HG_OK) status = load_image(d, image.data, k->special.name, entry);
  if (status == HG_OK && !quickly && has_cache(d))
    hg_kernel_cache_put(d->cache, &k->key, image.data, image.count);
  hg_array_release(&d->allocator, &image);
  return status;
}

static cuda_entry *entry_at(const cuda_kernel *kernel, uint32_t variant) {
  return (cuda_entry *)atomic_load(&kernel->gpu.entry[variant]);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* With the context current; if the context is lost, so are its modules. */
static void release_entries(cuda_device *d, cuda_entry *entry, int has_context) {
  for (cuda_entry *before; entry != NULL; entry = before) {
    before = entry->before;
    if (has_context) (void)d->driver.cuModuleUnload(entry->module);
    hg_release(&d->allocator, entry);
  }
}

static void end_kernel(cuda_device *d, void *of) {
  cuda_kernel *kernel = of;
  int pushed = 0, has_context = hg_cuda_enter(d, &pushed) == HG_OK;
  for (uint32_t i = 0; i < HG_GPU_VARIANTS; i++) release_entries(d, entry_at(kernel, i), has_context);
  hg_cuda_leave(d, pushed);
  hg_cuda_product_close(d, kernel->product);
  hg_gpu_kernel_close(&d->allocator, &kernel->gpu);
}

/* ---- quickly, then in full --------------------------------------------------------------------------------------- */

/* A variant that is to be compiled in full after launches use its first code. */
typedef struct full_variant {
  cuda_improvement job; /* must be first */
  hg_gpu_key key;         /* a copy, because the program may be gone before */
  cuda_text text;
  const hg_allocator *allocator;
} full_variant;

static void publish(cuda_kernel *kernel, uint32_t variant, cuda_entry *entry) {
  entry->before = entry_at(kernel, variant);
  atomic_store_explicit(&kernel->gpu.entry[variant], &entry->info, memory_order_release);
}

static hg_status replace_entry(cuda_device *d, cuda_kernel *kernel, const full_variant *full) {
  cuda_entry *entry = hg_allocate(&d->allocator, 1, sizeof *entry);
  if (entry == NULL) return hg_fail_memory("a kernel's entry", sizeof *entry);
  hg_status status = compile_text(d, full->key.special.name, &full->key, &full->text, 0, entry);
  if (status == HG_OK) publish(kernel, full->key.special.variant, entry);
  else hg_release(&d->allocator, entry);
  return status;
}

/* The launches of the first code times the length of its text. */
static uint64_t cost_of_first(const cuda_improvement *job) {
  const full_variant *full = (const full_variant *)job;
  cuda_entry *first = entry_at(job->kernel, full->key.special.variant);
  return (1 + (uint64_t)atomic_load(&first->launches)) * full->text.text.count;
}

/* After a failure the first code stays. */
static void make_in_full(cuda_device *d, cuda_improvement *job) {
  cuda_kernel *kernel = job->kernel;
  const full_variant *full = (const full_variant *)job;
  cuda_entry *first = entry_at(kernel, full->key.special.variant);
  (void)replace_entry(d, kernel, full);
  atomic_store(&first->is_first, 0);
}

static void give_up_full(cuda_improvement *job) {
  const cuda_kernel *kernel = job->kernel;
  atomic_store(&entry_at(kernel, ((const full_variant *)job)->key.special.variant)->is_first, 0);
}

static void release_full(cuda_improvement *job) {
  full_variant *full = (full_variant *)job;
  hg_array_release(full->allocator, &full->text.text);
  hg_release(full->allocator, full);
}

static hg_status new_full(const cuda_device *d, cuda_kernel *kernel, uint32_t variant, full_variant **out) {
  full_variant *full = hg_allocate(&d->allocator, 1, sizeof *full);
  if (full == NULL) return hg_fail_memory("a kernel's text", sizeof *full);
  full->job = (cuda_improvement){.kernel = kernel,
                                 .cost = cost_of_first,
                                 .make = make_in_full,
                                 .give_up = give_up_full,
                                 .release = release_full,
                                 .kernel_end = end_kernel};
  full->allocator = &d->allocator;
  make_key(d, &kernel->gpu, variant, &full->key);
  *out = full;
  return HG_OK;
}

/* Fails if memory is short or the driver fails: then the text is compiled in full at once. On success *full owns the
 * text. */
static hg_status compile_quickly(cuda_device *d, cuda_kernel *kernel, const hg_gpu_key *k, cuda_text *text,
                                 cuda_entry *entry, full_variant **full) {
  full_variant *made = NULL;
  HG_TRY(new_full(d, kernel, k->special.variant, &made));
  hg_status status = compile_text(d, kernel->gpu.program->name, k, text, 1, entry);
  if (status != HG_OK) {
    release_full(&made->job);
    return status;
  }
  made->text = *text; /* moved */
  text->text = (hg_array){.element_size = 1};
  atomic_init(&entry->is_first, 1);
  *full = made;
  return HG_OK;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static hg_status compile_entry(cuda_device *d, cuda_kernel *kernel, ssa_unit *unit, const hg_gpu_key *k,
                               cuda_entry *entry, full_variant **full) {
  cuda_text text = {.text.element_size = 1};
  hg_status status = write_text(d, kernel, unit, k->special.name, k->special.variant, &text);
  int is_long = d->is_quick && text.text.count > CUDA_LONG_TEXT;
  if (status == HG_OK && !(is_long && compile_quickly(d, kernel, k, &text, entry, full) == HG_OK))
    status = compile_text(d, kernel->gpu.program->name, k, &text, 0, entry);
  hg_array_release(&d->allocator, &text.text);
  return status;
}

/* *full: what is to be compiled afterwards; NULL: nothing. */
static hg_status entry_of_unit(cuda_device *d, cuda_kernel *kernel, ssa_unit *unit, uint32_t variant, cuda_entry *entry,
                               full_variant **full) {
  hg_gpu_key k;
  make_key(d, &kernel->gpu, variant, &k);
  HG_TRY(hg_gpu_number(&d->allocator, unit, &kernel->gpu.numbers));
  if (load_cached(d, kernel->gpu.program, &k, entry)) return HG_OK;
  HG_TRY(hg_cuda_check_poison(d));
  hg_cuda_improve_pause(d);
  hg_status status =
      CUDA_RANGE(d, "compile", kernel->gpu.program->name, 0, compile_entry(d, kernel, unit, &k, entry, full));
  hg_cuda_improve_go_on(d);
  return status;
}

static hg_status make_entry(void *device, hg_gpu_kernel *of, ssa_unit *unit, uint32_t variant) {
  cuda_device *d = device;
  cuda_kernel *kernel = (cuda_kernel *)of;
  full_variant *full = NULL;
  cuda_entry *entry = hg_allocate(&d->allocator, 1, sizeof *entry);
  if (entry == NULL) return hg_fail_memory("a kernel's entry", sizeof *entry);
  hg_status status = entry_of_unit(d, kernel, unit, variant, entry, &full);
  if (status == HG_OK) publish(kernel, variant, entry);
  else hg_release(&d->allocator, entry);
  if (full != NULL) hg_cuda_improve_later(d, &full->job);
  return status;
}

/* ---- the backend's functions ------------------------------------------------------------------------------------- */

static hg_status make_usual_within(cuda_device *d, cuda_kernel *kernel, const hg_compile_input *input) {
  HG_TRY(make_entry(d, &kernel->gpu, input->unit, 0));
  return input->contraction == NULL ? HG_OK : hg_cuda_product_open_within(d, input->contraction, &kernel->product);
}

static hg_status make_usual_entry(cuda_device *d, cuda_kernel *kernel, const hg_compile_input *input) {
  CUDA_RUN(d, make_usual_within(d, kernel, input));
}

hg_status hg_cuda_compile(void *device, hg_compile_input *input, hg_compiled *out) {
  cuda_device *d = device;
  void *made = NULL;
  HG_TRY(hg_gpu_kernel_open(&d->allocator, sizeof(cuda_kernel), input->program, input->hash, &made));
  cuda_kernel *kernel = made;
  hg_status status = make_usual_entry(d, kernel, input);
  if (status == HG_OK)
    *out = (hg_compiled){.kernel = kernel, .engine = kernel->product != NULL ? CUDA_VENDOR_ENGINE : "ptx"};
  else hg_cuda_release(d, kernel);
  return status;
}

static hg_status make_wanted(cuda_device *d, cuda_kernel *kernel) {
  unsigned wanted = atomic_exchange(&kernel->gpu.wanted, 0);
  if (wanted & CUDA_WANTS_ALL) hg_cuda_improve_now(d, kernel);
  return hg_gpu_make_variants(&kernel->gpu, wanted, make_entry, d);
}

static hg_status make_wanted_entered(cuda_device *d, cuda_kernel *kernel) { CUDA_RUN(d, make_wanted(d, kernel)); }

/* If two threads want the same variant, the second one waits and then finds the entry. */
hg_status hg_cuda_prepare(void *device, void *kernel) {
  cuda_kernel *k = kernel;
  hg_mutex_lock(&k->gpu.mutex);
  hg_status status = make_wanted_entered(device, k);
  hg_mutex_unlock(&k->gpu.mutex);
  return status;
}

static uint32_t attribute_of(const cuda_device *d, const cuda_entry *entry, int attribute) {
  int value = 0;
  return d->driver.cuFuncGetAttribute(&value, attribute, entry->function) == CUDA_OK && value > 0 ? (uint32_t)value : 0;
}

static hg_status describe_within(const cuda_device *d, const cuda_kernel *kernel, hg_kernel_facts *facts) {
  cuda_entry *usual = entry_at(kernel, 0);
  *facts = (hg_kernel_facts){.registers = attribute_of(d, usual, CUDA_FUNCTION_REGISTERS),
                             .local_bytes = attribute_of(d, usual, CUDA_FUNCTION_LOCAL_BYTES),
                             .shared_bytes = attribute_of(d, usual, CUDA_FUNCTION_SHARED_BYTES) +
                                             usual->info.dynamic_bytes,
                             .why = atomic_load(&usual->is_first) ? CUDA_FIRST_CODE : NULL};
  return HG_OK;
}

hg_status hg_cuda_describe(void *device, void *kernel, hg_kernel_facts *facts) {
  CUDA_RUN(device, describe_within(device, kernel, facts));
}

void hg_cuda_release(void *device, void *kernel) {
  if (!hg_cuda_improve_no_more(device, kernel)) end_kernel(device, kernel);
}
