/* engines.c - what the sweep runs on: engines of the CPU, whose buffers are the rooms themselves, and other backends,
 * whose buffers are as large and are copied to and from. */
#define _GNU_SOURCE
#include "sweep.h"

#include "../unit/environment.h"
#include "base/error.h"
#include "base/os.h"
#include "hologram/classes.h"

#include <stdio.h>
#include <string.h>

struct sweep_engine {
  char name[32];
  hg_executor *executor;
  hg_backend_id backend;
  const char *(*violation)(void); /* of the double of libcuda: what was done wrong; NULL: it is none */
  void (*forgive)(void);          /* it forgets that */
  uint8_t *memory[MOST_RANGES][ROOM_COUNT];
  hg_buffer *buffers[MOST_RANGES][ROOM_COUNT];
};

const char *sweep_engine_name(const sweep_engine *engine) { return engine->name; }

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void choose(const char *name) {
  char words[32];
  snprintf(words, sizeof words, "%s", name);
  char *stream = strchr(words, '+');
  if (stream != NULL) *stream = '\0';
  char *isa = strchr(words, ':');
  if (isa != NULL) *isa++ = '\0';
  set("HOLOGRAM_CPU_ENGINE", words);
  set("HOLOGRAM_CPU_ISA", isa != NULL ? isa : "");
  if (stream != NULL) set("HOLOGRAM_STREAM_BYTES", "1");
  else unsetenv("HOLOGRAM_STREAM_BYTES");
}

/* Whether what was opened is what was asked for: "tile avx2" of tile:avx2. */
static int is_named(const sweep_engine *engine, const char *opened) {
  char words[32];
  if (engine->backend != HG_BACKEND_CPU) return 1;
  if (strcmp(engine->name, "interp") == 0) return strcmp(opened, "reference") == 0;
  snprintf(words, sizeof words, "%.*s", (int)strcspn(engine->name, "+"), engine->name);
  char *colon = strchr(words, ':');
  if (colon != NULL) *colon = ' ';
  return strncmp(opened, words, strlen(words)) == 0;
}

static void find_violation(sweep_engine *engine) {
  void *library = hg_library_open("libcuda.so.1", "");
  if (library == NULL) return;
  hg_library_find(library, "fakecuda_violation", &engine->violation);
  hg_library_find(library, "fakecuda_forgive", &engine->forgive);
}

static hg_status fill_boundary(hg_executor *executor) {
  static uint64_t words[ATLAS_BOUNDARY_POOL_BYTES / sizeof(uint64_t)];
  random_state r = random_of(0, 0);
  for (size_t i = 0; i < COUNT(words); i++) words[i] = random_next(&r);
  return hg_boundary_write(executor, 0, words, sizeof words);
}

sweep_engine *sweep_engine_open(const char *name) {
  sweep_engine *engine = calloc(1, sizeof *engine);
  hg_executor_info info = {.size = sizeof info};
  if (engine == NULL) return NULL;
  snprintf(engine->name, sizeof engine->name, "%s", name);
  if (hg_backend_by_name(name, &engine->backend) != HG_OK) engine->backend = HG_BACKEND_CPU;
  if (engine->backend == HG_BACKEND_CPU) choose(name);
  if (engine->backend == HG_BACKEND_CUDA) find_violation(engine);
  hg_executor_desc desc = {.size = sizeof desc, .backend = engine->backend};
  if (hg_executor_create(&desc, &engine->executor) == HG_OK && hg_executor_query(engine->executor, &info) == HG_OK &&
      is_named(engine, info.engine) && fill_boundary(engine->executor) == HG_OK)
    return engine;
  sweep_engine_close(engine);
  return NULL;
}

void sweep_engine_close(sweep_engine *engine) {
  for (int slot = 0; slot < MOST_RANGES; slot++)
    for (int r = 0; r < ROOM_COUNT; r++) hg_buffer_release(engine->buffers[slot][r]);
  hg_executor_release(engine->executor);
  free(engine);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The large room is one for all engines of the CPU, and nobody writes to it. */
static uint8_t *large_room(const sweep_program *p, const sweep_launch *l, const sweep_range *range) {
  static uint8_t *large;
  if (large != NULL) return large;
  large = sweep_room_map(ROOM_LARGE);
  if (large == NULL) return NULL;
  sweep_room_fill(p, l, range, large);
  sweep_room_close(ROOM_LARGE, large);
  return large;
}

static hg_status open_room(sweep_engine *e, const sweep_program *p, const sweep_launch *l, const sweep_range *range) {
  uint8_t **memory = &e->memory[range->slot][range->room];
  hg_buffer **buffer = &e->buffers[range->slot][range->room];
  uint64_t byte_count = sweep_room_bytes(range->room);
  if (*buffer != NULL) return HG_OK;
  *memory = range->room == ROOM_LARGE ? large_room(p, l, range) : sweep_room_map(range->room);
  if (*memory == NULL) return HG_OUT_OF_MEMORY;
  if (e->backend == HG_BACKEND_CPU) return hg_buffer_import(e->executor, *memory, byte_count, buffer);
  hg_status status = hg_buffer_create(e->executor, NULL, byte_count, buffer);
  if (status != HG_OK || range->room != ROOM_LARGE) return status;
  return hg_buffer_write(*buffer, 0, *memory, byte_count);
}

static hg_status prepare(sweep_engine *e, const sweep_program *p, const sweep_launch *l) {
  for (uint32_t i = 0; i < l->range_count; i++) {
    const sweep_range *range = &l->ranges[i];
    hg_status status = open_room(e, p, l, range);
    if (status != HG_OK) return status;
    if (range->room == ROOM_LARGE || range->slot != i) continue;
    uint8_t *memory = e->memory[range->slot][range->room];
    sweep_room_fill(p, l, range, memory);
    if (e->backend == HG_BACKEND_CPU) continue;
    status = hg_buffer_write(e->buffers[range->slot][range->room], 0, memory, sweep_room_bytes(range->room));
    if (status != HG_OK) return status;
  }
  return HG_OK;
}

static hg_status read_back(sweep_engine *e, const sweep_launch *l) {
  for (uint32_t i = 0; i < l->range_count && e->backend != HG_BACKEND_CPU; i++) {
    const sweep_range *range = &l->ranges[i];
    if (range->room == ROOM_LARGE || range->slot != i) continue;
    hg_status status = hg_buffer_read(e->buffers[range->slot][range->room], 0, e->memory[range->slot][range->room],
                                      sweep_room_bytes(range->room));
    if (status != HG_OK) return status;
  }
  return HG_OK;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

hg_status sweep_engine_compile(sweep_engine *engine, atlas_program *program, hg_kernel **out) {
  return hg_kernel_create(engine->executor, program, out);
}

/* A binding of no bytes reaches to the end of its buffer: there is none behind it. */
static uint32_t bind(const sweep_engine *e, const sweep_launch *l, hg_binding *bindings) {
  for (uint32_t i = 0; i < l->range_count; i++) {
    const sweep_range *range = &l->ranges[i];
    uint64_t offset = range->byte_count > 0 ? range->offset : sweep_room_bytes(range->room);
    bindings[i] = (hg_binding){.name = range->name,
                               .entry = range->entry,
                               .offset = offset,
                               .buffer = e->buffers[range->slot][range->room],
                               .byte_count = range->byte_count};
  }
  return l->range_count;
}

void sweep_engine_run(sweep_engine *e, hg_kernel *kernel, const sweep_program *p, const sweep_launch *l,
                      sweep_result *result) {
  hg_binding bindings[MOST_RANGES];
  hg_launch_report report = {.size = sizeof report};
  hg_launch_desc desc = {.size = sizeof desc,
                         .lanes = l->grid[0] == 0 ? l->lanes : 0,
                         .bindings = bindings,
                         .scalars = l->scalars,
                         .scalar_count = l->scalar_count};
  memset(result, 0, sizeof *result);
  result->status = prepare(e, p, l);
  if (result->status != HG_OK) return;
  memcpy(desc.grid, l->grid, sizeof desc.grid);
  memcpy(desc.block, l->block, sizeof desc.block);
  desc.binding_count = bind(e, l, bindings);
  result->status = hg_launch(kernel, &desc, &report);
  result->fault = report.fault;
  snprintf(result->engine, sizeof result->engine, "%s", report.engine != NULL ? report.engine : "");
  if (result->status == HG_OK || result->status == HG_FAULT) {
    hg_status status = read_back(e, l);
    if (status != HG_OK) result->status = status;
  }
  if (e->violation != NULL && e->violation()[0] != '\0') {
    result->status = hg_fail(HG_DEVICE, "the double of libcuda: %s", e->violation());
    e->forgive();
  }
  for (uint32_t i = 0; i < l->range_count; i++)
    result->memory[l->ranges[i].slot] = e->memory[l->ranges[i].slot][l->ranges[i].room];
}
