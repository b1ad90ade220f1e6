/* launch.c - launches: the argument block with the GPU's addresses, the kernel's variant, and the results. */
#include "backend/metal/metal_kernel.h"

#include <stddef.h>

/* ---- the GPU's addresses ----------------------------------------------------------------------------------------- */

/* A launch as the GPU sees it. */
typedef struct gpu_launch {
  atlas_launch launch;
  atlas_argument arguments[ATLAS_MAX_SYMBOLS];
  uint64_t block[HG_GPU_ARGUMENT_BYTES / sizeof(uint64_t)];
  hg_gpu_launch shape;
  hg_gpu_places places;
  const metal_entry *entry;
} gpu_launch;

static uint8_t *as_memory(uint64_t address) { return (uint8_t *)(uintptr_t)address; }

static void translate_arguments(metal_device *d, metal_id encoder, const atlas_program *program, gpu_launch *g) {
  const atlas_argument *given = g->launch.arguments;
  for (uint32_t s = 0; s < program->symbols.count; s++) {
    g->arguments[s] = given[s];
    g->arguments[s].span.memory = as_memory(hg_metal_gpu_address(d, encoder, given[s].span.memory));
  }
  g->launch.arguments = g->arguments;
  g->launch.boundary = as_memory(hg_metal_gpu_address(d, encoder, g->launch.boundary));
}

/* The program's buffer table: entries {address, byte count}. */
static void write_entries(metal_device *d, metal_id encoder, const atlas_argument *argument, uint32_t count,
                          uint8_t *table) {
  hg_gpu_span *entries = (hg_gpu_span *)(void *)table;
  for (uint32_t i = 0; i < count; i++)
    entries[i] =
        (hg_gpu_span){hg_metal_gpu_address(d, encoder, argument->table[i].memory), argument->table[i].byte_count};
}

/* ---- the variant ------------------------------------------------------------------------------------------------- */

static hg_status pack(hg_gpu_kernel *kernel, gpu_launch *g) {
  const hg_gpu_info *entry = NULL;
  hg_status status = hg_gpu_pack_variant(kernel, hg_gpu_usual_variant(&g->launch), &g->launch, &g->places, g->block,
                                         &g->shape, &entry);
  g->entry = (const metal_entry *)entry;
  return status;
}

hg_status hg_metal_check_ready(void *device, void *kernel, const atlas_launch *launch) {
  (void)device;
  gpu_launch g = {.launch = *launch};
  return pack(kernel, &g);
}

/* ---- the launch -------------------------------------------------------------------------------------------------- */

enum { MOST_BLOCKS = 1 << 20 }; /* blocks of a grid: Metal counts its threads in 32 bits */

/* The last block of a linear launch has the lanes that are left. With several lanes a thread, all blocks are whole. */
static uint64_t threads_of(const gpu_launch *g, uint32_t blocks) {
  const hg_gpu_header *header = (const hg_gpu_header *)g->block;
  uint64_t before = header->first * g->shape.threads, all = (uint64_t)blocks * g->shape.threads;
  return g->entry->info.lanes_per_thread == 1 && header->lanes - before < all ? header->lanes - before : all;
}

static void dispatch(const metal_device *d, metal_id encoder, gpu_launch *g) {
  hg_gpu_header *header = (hg_gpu_header *)g->block;
  uint64_t left = g->shape.blocks + g->shape.left;
  METAL_WITH(&d->objc, set_pipeline, encoder, g->entry->pipeline);
  while (left > 0) {
    uint32_t blocks = left < MOST_BLOCKS ? (uint32_t)left : MOST_BLOCKS;
    const metal_size threads = {(metal_unsigned)threads_of(g, blocks), 1, 1}, block = {g->shape.threads, 1, 1};
    METAL_WITH(&d->objc, set_bytes, encoder, g->block, g->entry->info.argument_bytes, 0);
    METAL_WITH(&d->objc, dispatch, encoder, threads, block);
    header->first += blocks;
    header->first_lane = header->first * header->block_lanes;
    left -= blocks;
  }
}

static void prepare_results(metal_device *d, metal_id encoder, metal_record *record, metal_results *results,
                            gpu_launch *g) {
  uint64_t at = hg_metal_gpu_address(d, encoder, (const uint8_t *)record);
  g->places.fault_record = at + offsetof(metal_record, fault);
  g->places.fault_flag = at + offsetof(metal_record, flag);
  if (results == NULL) return;
  at = hg_metal_gpu_address(d, encoder, (const uint8_t *)results);
  g->places.resonance = at + offsetof(metal_results, resonance);
  g->places.phase_advance = at + offsetof(metal_results, phase_advance);
}

/* The memory is freed after the command buffer. */
static hg_status make_table(metal_device *d, const metal_encoding *e, const hg_gpu_kernel *kernel, gpu_launch *g) {
  const uint32_t symbol = atomic_load(&kernel->entry[0])->table_symbol;
  uint8_t *table = NULL;
  if (symbol == HG_GPU_NO_SYMBOL) return HG_OK;
  uint32_t count = atlas_symbol_at(kernel->program, symbol)->count;
  HG_TRY(hg_metal_allocate_within(d, count * sizeof(hg_gpu_span), HG_BACKEND_MIN_ALIGNMENT, 0, &table));
  write_entries(d, e->encoder, &g->launch.arguments[symbol], count, table);
  g->places.table = hg_metal_gpu_address(d, e->encoder, table);
  hg_metal_free_within(d, table, e->commands);
  return HG_OK;
}

hg_status hg_metal_encode_within(metal_device *d, const metal_encoding *e, hg_gpu_kernel *kernel,
                                 const atlas_launch *launch, metal_record *record, metal_results *results) {
  gpu_launch g = {.launch = *launch};
  prepare_results(d, e->encoder, record, results, &g);
  HG_TRY(make_table(d, e, kernel, &g));
  translate_arguments(d, e->encoder, kernel->program, &g);
  HG_TRY(pack(kernel, &g));
  dispatch(d, e->encoder, &g);
  return HG_OK;
}

hg_status hg_metal_launch_within(metal_device *d, hg_gpu_kernel *kernel, const atlas_launch *launch,
                                 metal_record *record, metal_results *results, metal_id *last) {
  metal_encoding e;
  HG_TRY(hg_metal_check_ready(d, kernel, launch));
  HG_TRY(hg_metal_begin_within(d, &e));
  hg_status status = hg_metal_encode_within(d, &e, kernel, launch, record, results);
  hg_metal_commit_within(d, &e, last); /* commits an empty command buffer after a failure */
  return status;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

void hg_metal_take_record(const hg_gpu_kernel *kernel, const atlas_launch *launch, metal_record *record,
                          hg_fault *fault) {
  if (record->flag != 0) hg_gpu_describe_fault(kernel, launch, &record->fault, fault);
  *record = (metal_record){.fault = hg_gpu_fault_none()};
}

/* Made by the first launch, because an executor that only copies needs none. */
static hg_status open_results(metal_device *d) {
  uint8_t *memory = NULL;
  if (d->results == NULL) {
    HG_TRY(hg_metal_allocate_within(d, sizeof *d->results, HG_BACKEND_MIN_ALIGNMENT, 1, &memory));
    d->results = (metal_results *)(void *)memory;
    d->results->record.fault = hg_gpu_fault_none();
  }
  HG_TRY(hg_metal_settle(d));
  memset(d->results->resonance, 0, sizeof d->results->resonance);
  d->results->phase_advance = 0;
  return HG_OK;
}

static void read_time(const metal_device *d, atlas_launch *launch, metal_id commands) {
  if (!launch->wants_time || commands == NULL) return;
  double seconds = METAL(&d->objc, ended, commands) - METAL(&d->objc, began, commands);
  launch->nanoseconds = (uint64_t)(seconds * 1e9);
}

static hg_status launch_and_wait(metal_device *d, hg_gpu_kernel *kernel, atlas_launch *launch, metal_id *last) {
  HG_TRY(open_results(d));
  HG_TRY(hg_metal_launch_within(d, kernel, launch, &d->results->record, d->results, last));
  HG_TRY(hg_metal_wait_for(d, *last));
  read_time(d, launch, *last);
  const hg_gpu_info *info = atomic_load(&kernel->entry[0]);
  if (info->uses_resonance) memcpy(launch->resonance, d->results->resonance, sizeof d->results->resonance);
  if (info->uses_phase_advance) launch->phase_advance = (uint32_t)d->results->phase_advance;
  if (d->results->record.flag != 0) hg_metal_take_record(kernel, launch, &d->results->record, &launch->fault);
  return HG_OK;
}

static hg_status launch_within(metal_device *d, hg_gpu_kernel *kernel, atlas_launch *launch) {
  metal_id last = NULL;
  hg_status status = launch_and_wait(d, kernel, launch, &last);
  hg_metal_set_last(d, &last, NULL);
  return status;
}

hg_status hg_metal_launch(void *device, void *kernel, atlas_launch *launch) {
  METAL_RUN(device, launch_within(device, kernel, launch));
}
