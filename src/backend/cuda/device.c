/* device.c - the CUDA device: its properties, context and stream, and the two ways in which it is lost: a fork, and a
 * sticky error of the context. */
#include "backend/cuda/device.h"
#include "backend/cuda/improve.h"

#include "base/os.h"
#include "base/settings.h"
#include "base/threads.h"

#include <stdio.h>
#include <string.h>

/* ---- which GPU --------------------------------------------------------------------------------------------------- */

static int attribute(const cuda_driver *driver, int device, int number) {
  int value = 0;
  return driver->cuDeviceGetAttribute(&value, number, device) == CUDA_OK ? value : 0;
}

static int capability_of(const cuda_driver *driver, int device) {
  return 10 * attribute(driver, device, CUDA_DEVICE_CAPABILITY_MAJOR) +
         attribute(driver, device, CUDA_DEVICE_CAPABILITY_MINOR);
}

/* Adds to the name: "NVIDIA H200 (compute capability 9.0, driver for CUDA 13.0)". */
static void add_facts(const cuda_driver *driver, int capability, hg_device_info *info) {
  size_t used = strlen(info->name);
  snprintf(info->name + used, sizeof info->name - used, " (compute capability %d.%d, driver for CUDA %d.%d)",
           capability / 10, capability % 10, driver->version / 1000, driver->version % 1000 / 10);
}

static hg_setting_state wanted_lines(uint64_t *lines) { return hg_setting_number("HOLOGRAM_LINES", 0, 1, lines); }

static hg_setting_state wanted_quick(uint64_t *quick) { return hg_setting_number("HOLOGRAM_QUICK", 0, 1, quick); }

static hg_setting_state wanted_lut_lanes(uint64_t *lanes) {
  return hg_setting_number("HOLOGRAM_TABLE_LANES", 1, UINT64_MAX, lanes);
}

/* Remarks on the kernel cache, too, which hg_cuda_open opens without a log. */
static void add_remarks(hg_device_info *info) {
  static const hg_allocator none = {0};
  uint64_t ignored = 0;
  hg_disk_cache disk;
  hg_disk_cache_open(&none, &disk); /* allocates nothing */
  if (wanted_lines(&ignored) == HG_SETTING_BAD)
    hg_add_remark(info, "", "HOLOGRAM_LINES is neither 0 nor 1 and is ignored");
  if (wanted_quick(&ignored) == HG_SETTING_BAD)
    hg_add_remark(info, "", "HOLOGRAM_QUICK is neither 0 nor 1 and is ignored");
  if (wanted_lut_lanes(&ignored) == HG_SETTING_BAD)
    hg_add_remark(info, "", "HOLOGRAM_TABLE_LANES is no number from 1 and is ignored");
  hg_add_remark(info, "", disk.remark);
  hg_add_remark(info, "kernel cache on disk: ", hg_disk_cache_problem(&disk));
}

static const char engine_name[] = "ptx";

/* CUDA_VISIBLE_DEVICES decides which GPU has which number. */
static hg_status find_device(const cuda_driver *driver, uint32_t number, int *device, hg_device_info *info) {
  int count = 0;
  size_t bytes = 0;
  HG_TRY(hg_cuda_driver_check(driver->cuDeviceGetCount(&count), "could not count the GPUs"));
  if (count < 1) return hg_cuda_driver_check(CUDA_NO_DEVICE, "there is no GPU");
  if (number >= (uint32_t)count)
    return hg_fail(HG_UNSUPPORTED, "there is no GPU %u: the driver shows %d, numbered from 0", (unsigned)number, count);
  HG_TRY(hg_cuda_driver_check(driver->cuDeviceGet(device, (int)number), "could not find the GPU"));
  *info = (hg_device_info){.engine = engine_name};
  add_remarks(info);
  if (driver->cuDeviceGetName(info->name, (int)sizeof info->name, *device) != CUDA_OK)
    snprintf(info->name, sizeof info->name, "NVIDIA GPU");
  if (driver->cuDeviceTotalMem_v2(&bytes, *device) == CUDA_OK) info->memory_bytes = bytes;
  info->compute_units = (uint32_t)attribute(driver, *device, CUDA_DEVICE_MULTIPROCESSORS);
  info->subgroup_lanes = 32; /* of every NVIDIA GPU */
  info->max_shared_bytes = (uint32_t)attribute(driver, *device, CUDA_DEVICE_SHARED_BYTES);
  int capability = capability_of(driver, *device);
  if (capability < CUDA_MIN_CAPABILITY)
    return hg_fail(HG_UNSUPPORTED, "the GPU (%s) is too old: it has compute capability %d.%d, and %d.%d is needed",
                   info->name, capability / 10, capability % 10, CUDA_MIN_CAPABILITY / 10, CUDA_MIN_CAPABILITY % 10);
  if (attribute(driver, *device, CUDA_DEVICE_COMPUTE_MODE) == CUDA_COMPUTE_PROHIBITED)
    return hg_fail(HG_UNSUPPORTED, "the GPU (%s) is set to compute mode 'prohibited'; nvidia-smi -c changes it",
                   info->name);
  info->spreads_blocks = hg_cuda_text_capability(driver, capability) >= 90;
  add_facts(driver, capability, info);
  return HG_OK;
}

hg_status hg_cuda_query(const hg_device_choice *choice, hg_device_info *info) {
  cuda_driver driver;
  int device = 0;
  if (choice->engine[0] != '\0' && strcmp(choice->engine, engine_name) != 0)
    return hg_fail(HG_UNSUPPORTED, "GPUs have no engine '%s', only '%s'", choice->engine, engine_name);
  HG_TRY(hg_cuda_driver_load(&driver));
  return find_device(&driver, choice->number, &device, info);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static hg_status open_within(cuda_device *d) {
  CUDA_TRY(d, cuStreamCreate(&d->stream, CUDA_STREAM_NON_BLOCKING), "could not make a stream on the GPU");
  return hg_cuda_memory_open_within(d);
}

static void close_within(cuda_device *d) {
  if (d->stream != NULL) (void)d->driver.cuStreamSynchronize(d->stream);
  hg_cuda_vendor_close_within(d);
  hg_cuda_slots_close_within(d);
  hg_cuda_records_close_within(d);
  hg_cuda_events_close_within(d);
  hg_cuda_memory_close_within(d);
  if (d->stream != NULL) (void)d->driver.cuStreamDestroy_v2(d->stream);
}

static void release(cuda_device *d) {
  hg_allocator allocator = d->allocator;
  hg_array_release(&allocator, &d->allocations);
  hg_array_release(&allocator, &d->maps);
  hg_array_release(&allocator, &d->spares);
  if (d->warms) hg_cuda_warm_release();
  hg_kernel_cache_release(d->cache);
  hg_functions_close(&d->functions);
  hg_mutex_destroy(&d->mutex);
  hg_release(&allocator, d);
}

void hg_cuda_close(void *device) {
  cuda_device *d = device;
  hg_cuda_improvers_close(d);
  if (d->process == hg_process_id()) {
    int pushed = d->context != NULL && d->driver.cuCtxPushCurrent_v2(d->context) == CUDA_OK;
    if (pushed) close_within(d);
    hg_cuda_leave(d, pushed);
    if (d->context != NULL) (void)d->driver.cuDevicePrimaryCtxRelease_v2(d->ordinal);
  }
  release(d);
}

/* Compiles quickly if a thread is left for the full compilation. */
static void choose_texts(cuda_device *d) {
  uint64_t quick = 1;
  (void)wanted_quick(&quick);
  d->is_quick = quick == 1 && hg_thread_limit() > 1 && d->tool == NULL && !d->writes_lines;
}

/* The primary context, so that memory of other libraries in the process is accessible. */
static hg_status open_context(cuda_device *d, uint32_t number) {
  hg_device_info info = {.name = ""};
  HG_TRY(hg_cuda_driver_load(&d->driver));
  HG_TRY(find_device(&d->driver, number, &d->ordinal, &info));
  d->capability = capability_of(&d->driver, d->ordinal);
  d->multiprocessors = info.compute_units;
  d->shared_bytes = info.max_shared_bytes;
  d->multiprocessor_shared_bytes = (uint32_t)attribute(&d->driver, d->ordinal, CUDA_DEVICE_MULTIPROCESSOR_SHARED_BYTES);
  d->cache_bytes = (uint64_t)attribute(&d->driver, d->ordinal, CUDA_DEVICE_CACHE_BYTES);
  d->warms = hg_cuda_warm_begin();
  int result = d->driver.cuDevicePrimaryCtxRetain(&d->context, d->ordinal);
  if (result == CUDA_OK) return HG_OK;
  d->context = NULL;
  (void)hg_cuda_driver_check(result, "the GPU cannot be used now");
  return hg_fail(HG_UNSUPPORTED, "%s", hg_last_error()); /* also if the GPU's memory is full */
}

static hg_status open_device(cuda_device *d, uint32_t number) {
  HG_TRY(open_context(d, number));
  d->tool = hg_nvtx_open();
  choose_texts(d);
  CUDA_RUN(d, open_within(d));
}

hg_status hg_cuda_open(const hg_allocator *allocator, const hg_device_choice *choice, void **device,
                       int *host_is_full) {
  cuda_device *d = hg_allocate(allocator, 1, sizeof *d);
  *host_is_full = d == NULL; /* HG_OUT_OF_MEMORY of the driver is about the GPU */
  if (d == NULL) return hg_fail_memory("the CUDA device", sizeof *d);
  *host_is_full = hg_mutex_init(&d->mutex) != 0;
  if (*host_is_full) {
    hg_release(allocator, d);
    return hg_fail(HG_OUT_OF_MEMORY, "could not make a mutex for the CUDA device");
  }
  *host_is_full = !hg_cuda_improvers_open(d);
  if (*host_is_full) {
    hg_mutex_destroy(&d->mutex);
    hg_release(allocator, d);
    return hg_fail(HG_OUT_OF_MEMORY, "could not make a mutex for the CUDA device");
  }
  d->allocator = *allocator;
  d->process = hg_process_id();
  uint64_t lines = 0;
  (void)wanted_lines(&lines);
  d->writes_lines = lines != 0;
  d->lut_lanes_given = wanted_lut_lanes(&d->lut_lanes) == HG_SETTING_GIVEN;
  d->allocations.element_size = sizeof(cuda_allocation);
  d->maps.element_size = sizeof(cuda_map);
  d->spares.element_size = sizeof(cuda_spare);
  hg_functions_open(&d->functions, allocator);
  d->cache = hg_kernel_cache_create(allocator, 0, NULL, NULL);
  hg_status status = open_device(d, choice->number);
  if (status != HG_OK) {
    hg_cuda_close(d);
    return status;
  }
  *device = d;
  return HG_OK;
}

/* ---- every call -------------------------------------------------------------------------------------------------- */

hg_status hg_cuda_fail_forked(void) {
  return hg_fail(HG_UNSUPPORTED,
                 "this CUDA executor was made before the process forked, and the driver does not work in the child; "
                 "fork first, or start a new program (exec)");
}

hg_status hg_cuda_check_poison(cuda_device *d) {
  if (atomic_load_explicit(&d->poisoned, memory_order_acquire) != CUDA_POISON_KNOWN) return HG_OK;
  return hg_fail(HG_DEVICE, "%s", d->poison);
}

hg_status hg_cuda_enter(cuda_device *d, int *pushed) {
  *pushed = 0;
  if (d->process != hg_process_id()) return hg_cuda_fail_forked();
  HG_TRY(hg_cuda_check_poison(d));
  void *current = NULL;
  CUDA_TRY(d, cuCtxGetCurrent(&current), "could not find the thread's CUDA context");
  if (current == d->context) return HG_OK;
  CUDA_TRY(d, cuCtxPushCurrent_v2(d->context), "could not enter the GPU's context");
  *pushed = 1;
  return HG_OK;
}

void hg_cuda_leave(cuda_device *d, int pushed) {
  void *popped = NULL;
  if (pushed) (void)d->driver.cuCtxPopCurrent_v2(&popped);
}

/* With the sentence of the failed call. */
static void poison(cuda_device *d) {
  unsigned state = CUDA_POISON_NONE;
  if (!atomic_compare_exchange_strong(&d->poisoned, &state, CUDA_POISON_WRITTEN)) return;
  snprintf(d->poison, sizeof d->poison,
           "the GPU failed earlier, and this executor's memory on it is lost (%s); release all executors of this "
           "GPU, then make a new one, or a new process where another library has used the GPU",
           HG_LINE(hg_last_error()));
  atomic_store_explicit(&d->poisoned, CUDA_POISON_KNOWN, memory_order_release);
}

hg_status hg_cuda_check(cuda_device *d, int result, const char *what) {
  if (result == CUDA_OK) return HG_OK;
  hg_status status = hg_cuda_driver_check(result, what);
  if (hg_cuda_error_of(result).poisons) poison(d);
  return status;
}
