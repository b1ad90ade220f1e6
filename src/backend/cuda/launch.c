/* launch.c - launches: the argument block, the variant of the kernel, and its results: faults, resonance, phase. */
#include "backend/cuda/kernel.h"

#include <stddef.h>
#include <string.h>

/* Results of a kernel that are not in buffers, in device memory. */
typedef struct device_record {
  hg_gpu_fault fault;
  int64_t resonance[ATLAS_CLASS_COUNT];
  uint32_t phase_advance;
} device_record;

/* In pinned memory. */
typedef struct host_record {
  uint32_t fault_flag;  /* written by the kernel */
  device_record copy;   /* after launches that change counters or the phase */
} host_record;

static cuda_address in_record(const cuda_device *d, size_t offset) { return cuda_address_of(d->record) + offset; }

static hg_status write_fault_none(cuda_device *d) {
  const hg_gpu_fault none = hg_gpu_fault_none();
  return hg_cuda_copy_in_within(d, d->record + offsetof(device_record, fault), &none, sizeof none);
}

/* Made by the first launch, because an executor that only copies needs none. */
static hg_status open_records(cuda_device *d) {
  if (d->host_record != NULL) return HG_OK;
  void *memory = NULL;
  if (d->record == NULL) HG_TRY(hg_cuda_allocate_within(d, sizeof(device_record), sizeof(uint64_t), &d->record));
  HG_TRY(write_fault_none(d));
  CUDA_TRY(d, cuMemHostAlloc(&memory, sizeof(host_record), CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED),
           "could not pin memory for the records of launches");
  memset(memory, 0, sizeof(host_record));
  hg_status status = hg_cuda_check(d, d->driver.cuMemHostGetDevicePointer_v2(&d->host_record_address, memory, 0),
                                "could not map memory for the records of launches");
  if (status == HG_OK) d->host_record = memory;
  else (void)d->driver.cuMemFreeHost(memory);
  return status;
}

void hg_cuda_records_close_within(cuda_device *d) {
  if (d->host_record != NULL) (void)d->driver.cuMemFreeHost(d->host_record);
}

/* ---- before the launch ------------------------------------------------------------------------------------------- */

/* The program's buffer table in device memory: entries {address, byte count}, like spans. */
static hg_status write_entries(cuda_device *d, const atlas_program *program, const atlas_launch *launch,
                               uint32_t symbol, uint8_t **table) {
  uint64_t count = atlas_symbol_at(program, symbol)->count;
  const atlas_span *spans = launch->arguments[symbol].table;
  hg_gpu_span *entries = hg_allocate(&d->allocator, count, sizeof *entries);
  if (entries == NULL) return hg_fail_memory("the table of a launch", count * sizeof *entries);
  for (uint64_t i = 0; i < count; i++)
    entries[i] = (hg_gpu_span){cuda_address_of(spans[i].memory), spans[i].byte_count};
  hg_status status = hg_cuda_allocate_within(d, count * sizeof *entries, HG_BACKEND_MIN_ALIGNMENT, table);
  if (status == HG_OK) status = hg_cuda_copy_in_within(d, *table, entries, count * sizeof *entries);
  hg_release(&d->allocator, entries);
  return status;
}

static hg_status clear_field(cuda_device *d, size_t offset, size_t byte_count) {
  return hg_cuda_check(d, d->driver.cuMemsetD8Async(in_record(d, offset), 0, byte_count, d->stream),
                    "could not prepare a launch");
}

static hg_status clear_results(cuda_device *d, const hg_gpu_info *info) {
  if (info->uses_resonance)
    HG_TRY(clear_field(d, offsetof(device_record, resonance), sizeof((device_record *)NULL)->resonance));
  if (info->uses_phase_advance)
    HG_TRY(clear_field(d, offsetof(device_record, phase_advance), sizeof((device_record *)NULL)->phase_advance));
  return HG_OK;
}

static hg_gpu_places places_of(const cuda_device *d, const uint8_t *table) {
  return (hg_gpu_places){.fault_record = in_record(d, offsetof(device_record, fault)),
                         .fault_flag = d->host_record_address + offsetof(host_record, fault_flag),
                         .resonance = in_record(d, offsetof(device_record, resonance)),
                         .phase_advance = in_record(d, offsetof(device_record, phase_advance)),
                         .table = cuda_address_of(table)};
}

/* ---- the launch -------------------------------------------------------------------------------------------------- */

/* A launch in the driver's form. */
typedef struct packed_launch {
  uint64_t block[HG_GPU_ARGUMENT_BYTES / sizeof(uint64_t)];
  hg_gpu_launch shape;
  cuda_entry *entry;
} packed_launch;

/* The table variant pays for large launches; other variants are its fallback. */
static hg_status preferred_variant(const cuda_device *d, cuda_kernel *kernel, const atlas_launch *launch,
                                   uint32_t *variant) {
  const hg_gpu_info *usual = NULL;
  *variant = hg_gpu_usual_variant(launch);
  if (launch->lanes < d->lut_lanes || d->shared_bytes < HG_GPU_LUT_BYTES) return HG_OK;
  HG_TRY(hg_gpu_entry_of(&kernel->gpu, *variant, &usual));
  uint64_t from = usual->lut_lanes;
  if (from != 0 && (launch->lanes >= from || d->lut_lanes_given)) *variant |= HG_GPU_LUT;
  return HG_OK;
}

/* Packs the launch for the first variant of the kernel that can run it. */
static hg_status pack(const cuda_device *d, cuda_kernel *kernel, const atlas_launch *launch,
                        const hg_gpu_places *places, packed_launch *r) {
  uint32_t variant = 0;
  const hg_gpu_info *entry = NULL;
  HG_TRY(preferred_variant(d, kernel, launch, &variant));
  hg_status status = hg_gpu_pack_variant(&kernel->gpu, variant, launch, places, r->block, &r->shape, &entry);
  r->entry = (cuda_entry *)(uintptr_t)entry;
  return status;
}

static hg_status submit(cuda_device *d, const cuda_kernel *kernel, const atlas_launch *launch, packed_launch *r,
                        void *stream) {
  if (kernel->product != NULL) return hg_cuda_product_run_within(d, kernel->product, launch, stream);
  void *parameters[] = {r->block};
  if (atomic_load_explicit(&r->entry->is_first, memory_order_relaxed)) atomic_fetch_add(&r->entry->launches, 1);
  for (;; hg_gpu_next(r->block, &r->shape)) {
    int result = d->driver.cuLaunchKernel(r->entry->function, r->shape.blocks, 1, 1, r->shape.threads, 1, 1,
                                          r->entry->info.dynamic_bytes + r->shape.idle_bytes, stream, parameters, NULL);
    HG_TRY(hg_cuda_check(d, result, "the kernel could not be launched"));
    if (r->shape.left == 0) return HG_OK;
  }
}

/* Waits for the kernel, after a copy of its counters and phase. */
static hg_status wait_for_results(cuda_device *d, const hg_gpu_info *info) {
  host_record *host = d->host_record;
  if (info->uses_resonance || info->uses_phase_advance)
    CUDA_TRY(d, cuMemcpyDtoHAsync_v2(&host->copy, in_record(d, 0), sizeof host->copy, d->stream),
             "could not read the records of a launch");
  return hg_cuda_check(d, d->driver.cuStreamSynchronize(d->stream), "the kernel failed");
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static hg_status timer_start(cuda_device *d, const atlas_launch *launch) {
  if (!launch->wants_time) return HG_OK;
  for (int i = 0; i < 2; i++)
    if (d->timer[i] == NULL) CUDA_TRY(d, cuEventCreate(&d->timer[i], 0), "could not make an event");
  return hg_cuda_check(d, d->driver.cuEventRecord(d->timer[0], d->stream), "could not record an event");
}

static hg_status timer_stop(cuda_device *d, const atlas_launch *launch) {
  if (!launch->wants_time) return HG_OK;
  return hg_cuda_check(d, d->driver.cuEventRecord(d->timer[1], d->stream), "could not record an event");
}

static hg_status timer_read(cuda_device *d, atlas_launch *launch) {
  float milliseconds = 0;
  if (!launch->wants_time) return HG_OK;
  CUDA_TRY(d, cuEventElapsedTime(&milliseconds, d->timer[0], d->timer[1]), "could not read the time of a launch");
  launch->nanoseconds = (uint64_t)((double)milliseconds * 1e6);
  return HG_OK;
}

/* ---- after the launch -------------------------------------------------------------------------------------------- */

static hg_status read_fault(cuda_device *d, const cuda_kernel *kernel, atlas_launch *launch) {
  host_record *host = d->host_record;
  hg_gpu_fault record;
  if (host->fault_flag == 0) return HG_OK;
  host->fault_flag = 0;
  HG_TRY(hg_cuda_copy_out_within(d, &record, d->record + offsetof(device_record, fault), sizeof record));
  HG_TRY(write_fault_none(d));
  hg_gpu_describe_fault(&kernel->gpu, launch, &record, &launch->fault);
  return HG_OK;
}

static hg_status run_kernel(cuda_device *d, cuda_kernel *kernel, atlas_launch *launch, const uint8_t *table) {
  packed_launch r;
  const hg_gpu_places places = places_of(d, table);
  HG_TRY(pack(d, kernel, launch, &places, &r));
  const hg_gpu_info *info = &r.entry->info;
  if (atomic_load(&r.entry->is_first)) launch->notes = CUDA_FIRST_CODE;
  HG_TRY(clear_results(d, info));
  HG_TRY(timer_start(d, launch));
  HG_TRY(submit(d, kernel, launch, &r, d->stream));
  HG_TRY(timer_stop(d, launch));
  HG_TRY(wait_for_results(d, info));
  HG_TRY(timer_read(d, launch));
  const device_record *left = &((const host_record *)d->host_record)->copy;
  if (info->uses_resonance) memcpy(launch->resonance, left->resonance, sizeof left->resonance);
  if (info->uses_phase_advance) launch->phase_advance = left->phase_advance;
  return read_fault(d, kernel, launch);
}

hg_status hg_cuda_write_table_within(cuda_device *d, cuda_kernel *kernel, const atlas_launch *launch,
                                     uint8_t **table) {
  const hg_gpu_info *entry = NULL;
  *table = NULL;
  HG_TRY(hg_gpu_entry_of(&kernel->gpu, hg_gpu_usual_variant(launch), &entry));
  if (entry->table_symbol == HG_GPU_NO_SYMBOL) return HG_OK;
  hg_status status = write_entries(d, kernel->gpu.program, launch, entry->table_symbol, table);
  if (status == HG_OK || *table == NULL) return status;
  hg_cuda_free_within(d, *table);
  *table = NULL;
  return status;
}

static hg_status launch_within(cuda_device *d, cuda_kernel *kernel, atlas_launch *launch) {
  uint8_t *table = NULL;
  HG_TRY(open_records(d));
  HG_TRY(hg_cuda_write_table_within(d, kernel, launch, &table));
  hg_status status = run_kernel(d, kernel, launch, table);
  if (table != NULL) hg_cuda_free_within(d, table);
  return status;
}

hg_status hg_cuda_check_ready(const cuda_device *d, cuda_kernel *kernel, const atlas_launch *launch) {
  packed_launch r;
  const hg_gpu_places places = {.table = 0};
  return pack(d, kernel, launch, &places, &r);
}

hg_status hg_cuda_check_final(void *device, void *kernel, const atlas_launch *launch) {
  cuda_kernel *k = kernel;
  packed_launch r;
  const hg_gpu_places places = {.table = 0};
  HG_TRY(pack(device, k, launch, &places, &r));
  if (k->product != NULL || !atomic_load(&r.entry->is_first)) return HG_OK; /* the product runs instead */
  atomic_fetch_or(&k->gpu.wanted, CUDA_WANTS_ALL);
  return HG_UNPREPARED;
}

/* For a program that changes neither counters nor the phase. */
hg_status hg_cuda_launch_on_within(cuda_device *d, void *stream, const cuda_records *records, const hg_work *work,
                                   const uint8_t *table) {
  packed_launch r;
  uint64_t slot = work->number % records->count;
  const hg_gpu_places places = {.fault_record = cuda_address_of(records->faults) + slot * sizeof(hg_gpu_fault),
                                .fault_flag = records->flags_address + slot * sizeof(uint32_t),
                                .table = cuda_address_of(table)};
  HG_TRY(pack(d, work->kernel, work->launch, &places, &r));
  return submit(d, work->kernel, work->launch, &r, stream);
}

hg_status hg_cuda_launch(void *device, void *kernel, atlas_launch *launch) {
  const char *name = ((const cuda_kernel *)kernel)->gpu.program->name;
  HG_TRY(hg_cuda_check_ready_for_range(device, kernel, launch));
  CUDA_RUN(device, CUDA_RANGE(device, "launch", name, launch->lanes, launch_within(device, kernel, launch)));
}
