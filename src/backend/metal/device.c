/* device.c - the Metal device: its properties, opening and closing it. */
#include "backend/metal/metal_device.h"
#include "backend/metal/metal_tuning.h"

#include <stdio.h>

/* *device is NULL after a failure. */
static hg_status find_device(metal_runtime *r, uint32_t number, metal_id *device) {
  if (number != 0)
    return hg_fail(HG_UNSUPPORTED, "Metal has one default device, number 0; there is no number %u", (unsigned)number);
  HG_TRY(hg_metal_runtime_open(r));
  *device = r->default_device();
  if (*device == NULL) return hg_fail(HG_UNSUPPORTED, "Metal has no device here");
  if (METAL_WITH(r, family, *device, METAL_FAMILY_APPLE7) && METAL_WITH(r, family, *device, METAL_FAMILY_METAL3))
    return HG_OK;
  METAL(r, release, *device);
  *device = NULL;
  return hg_fail(HG_UNSUPPORTED, "Metal's device is not Apple silicon, or the system is older than macOS 13 (Metal 3)");
}

static hg_status check_engine(const char *engine) {
  if (engine[0] == '\0' || strcmp(engine, "msl") == 0) return HG_OK;
  return hg_fail(HG_UNSUPPORTED, "GPUs have no engine '%s', only 'msl'", engine);
}

static void copy_words(const metal_runtime *r, metal_id string, const char *otherwise, char words[128]) {
  const char *text = METAL(r, utf8, string);
  snprintf(words, 128, "%s", text != NULL ? text : otherwise);
}

static hg_status describe_device(const metal_runtime *r, metal_id device, hg_device_info *info) {
  *info = (hg_device_info){.engine = "msl",
                           .subgroup_lanes = 32,
                           .max_shared_bytes = (uint32_t)METAL(r, threadgroup_bytes, device),
                           .memory_bytes = METAL(r, working_set, device)};
  copy_words(r, METAL(r, name, device), "Metal", info->name);
  return HG_OK;
}

hg_status hg_metal_query(const hg_device_choice *choice, hg_device_info *info) {
  metal_runtime r = {.objc = NULL};
  metal_id device = NULL;
  HG_TRY(check_engine(choice->engine));
  hg_status status = find_device(&r, choice->number, &device);
  if (device == NULL) return status;
  void *pool = r.pool_push();
  status = describe_device(&r, device, info);
  METAL(&r, release, device);
  r.pool_pop(pool);
  return status;
}

static hg_status open_queue(metal_device *d) {
  metal_id process = METAL(&d->objc, process, d->objc.class_of("NSProcessInfo"));
  copy_words(&d->objc, METAL(&d->objc, name, d->device), "Metal", d->name);
  copy_words(&d->objc, METAL(&d->objc, system, process), "", d->system);
  d->shared_bytes = (uint32_t)METAL(&d->objc, threadgroup_bytes, d->device);
  d->most_spare_bytes = METAL(&d->objc, working_set, d->device) / METAL_KEPT_FRACTION;
  d->queue = METAL(&d->objc, queue, d->device);
  return d->queue != NULL ? HG_OK : hg_fail(HG_DEVICE, "Metal made no command queue");
}

static hg_status open_device(metal_device *d, uint32_t number) {
  HG_TRY(find_device(&d->objc, number, &d->device));
  if (hg_mutex_init(&d->mutex) != 0) {
    METAL(&d->objc, release, d->device);
    return hg_fail(HG_OUT_OF_MEMORY, "could not make a mutex for the Metal device");
  }
  void *pool = d->objc.pool_push();
  hg_status status = open_queue(d);
  d->objc.pool_pop(pool);
  if (status == HG_OK) return HG_OK;
  hg_mutex_destroy(&d->mutex);
  METAL(&d->objc, release, d->device);
  return status;
}

hg_status hg_metal_open(const hg_allocator *allocator, const hg_device_choice *choice, void **device,
                        int *host_is_full) {
  HG_TRY(check_engine(choice->engine));
  metal_device *d = hg_allocate(allocator, 1, sizeof *d);
  *host_is_full = d == NULL;
  if (d == NULL) return hg_fail_memory("the Metal device", sizeof *d);
  d->allocator = *allocator;
  d->allocations.element_size = sizeof(metal_allocation);
  d->spares.element_size = sizeof(metal_spare);
  d->in_flight.element_size = sizeof(metal_id);
  d->process = hg_process_id();
  hg_status status = open_device(d, choice->number);
  if (status != HG_OK) {
    hg_release(allocator, d);
    return status;
  }
  hg_functions_open(&d->functions, allocator);
  d->cache = hg_kernel_cache_create(allocator, 0, NULL, NULL);
  *device = d;
  return HG_OK;
}

void hg_metal_close(void *device) {
  metal_device *d = device;
  hg_allocator allocator = d->allocator;
  if (d->process == hg_process_id()) {
    void *pool = d->objc.pool_push();
    (void)hg_metal_settle(d);
    hg_metal_set_last(d, &d->last, NULL);
    hg_metal_memory_close(d);
    METAL(&d->objc, release, d->mover);
    METAL(&d->objc, release, d->queue);
    METAL(&d->objc, release, d->device);
    d->objc.pool_pop(pool);
  }
  hg_functions_close(&d->functions);
  hg_kernel_cache_release(d->cache);
  hg_array_release(&allocator, &d->allocations);
  hg_array_release(&allocator, &d->in_flight);
  hg_mutex_destroy(&d->mutex);
  hg_release(&allocator, d);
}
