/* on_backend.c - one arena becomes one buffer, and every argument a range of it, so that whatever a backend writes
 * beside its arguments is seen. */
#include "on_backend.h"

#include "base/error.h"
#include "base/os.h"

#include <string.h>

typedef struct prepared {
  hg_executor *executor;
  hg_kernel *kernel;
  hg_buffer *arena;
  bound_arguments bound;
} prepared;

/* Lives as long as the process: a context on a GPU takes longer to make than a thousand programs to run. */
static hg_executor *kept;

static hg_status open_executor(hg_backend_id backend, hg_executor **out) {
  hg_executor_desc desc = {.size = sizeof desc, .backend = backend};
  if (kept == NULL) HG_TRY(hg_executor_create(&desc, &kept));
  *out = kept;
  return HG_OK;
}

/* The first byte of the arena, from where the first of its ranges lies. */
static uint8_t *arena_of(const draft *d, const test_launch *l, const atlas_launch *launch) {
  for (uint32_t i = 0; i < d->symbol_count; i++) {
    const atlas_symbol *symbol = &d->symbols[i];
    if (symbol->kind == ATLAS_SYMBOL_BUFFER || symbol->kind == ATLAS_SYMBOL_POOL)
      return launch->arguments[i].span.memory - l->offset[i];
    for (uint32_t k = 0; symbol->kind == ATLAS_SYMBOL_TABLE && k < symbol->count; k++)
      if (launch->arguments[i].table[k].memory != NULL)
        return launch->arguments[i].table[k].memory - l->entry_offset[i][k];
  }
  return NULL;
}

/* A binding of 0 bytes reaches to the end of its buffer: an empty range is bound there. */
static void bind_range(bound_arguments *b, const test_launch *l, const uint8_t *arena, uint32_t slot, uint32_t entry,
                       const atlas_span *span) {
  uint64_t offset = span->byte_count != 0 ? (uint64_t)(span->memory - arena) : l->arena_bytes;
  b->bindings[b->binding_count++] =
      (hg_binding){.slot = slot, .entry = entry, .offset = offset, .byte_count = span->byte_count};
}

void bind_arguments(const draft *d, const test_launch *l, const atlas_launch *launch, bound_arguments *b) {
  const uint8_t *arena = arena_of(d, l, launch);
  for (uint32_t i = 0; i < d->symbol_count; i++) {
    const atlas_symbol *symbol = &d->symbols[i];
    const atlas_argument *argument = &launch->arguments[i];
    switch (symbol->kind) {
    case ATLAS_SYMBOL_SCALAR:
      b->scalars[b->scalar_count++] = (hg_scalar){.slot = i, .type = symbol->type, .bits = argument->bits};
      break;
    case ATLAS_SYMBOL_TABLE:
      for (uint32_t k = 0; k < symbol->count; k++)
        if (argument->table[k].memory != NULL) bind_range(b, l, arena, i, k, &argument->table[k]);
      break;
    case ATLAS_SYMBOL_BUFFER:
    case ATLAS_SYMBOL_POOL: bind_range(b, l, arena, i, 0, &argument->span); break;
    default: break;
    }
  }
}

static hg_status set_state(const prepared *p, const atlas_launch *launch) {
  HG_TRY(hg_executor_resonance_reset(p->executor));
  HG_TRY(hg_executor_set_phase(p->executor, launch->phase));
  if (launch->boundary == NULL) return HG_OK;
  return hg_boundary_write(p->executor, 0, launch->boundary, ATLAS_BOUNDARY_POOL_BYTES);
}

static hg_status get_state(const prepared *p, atlas_launch *launch) {
  uint32_t phase = 0;
  HG_TRY(hg_executor_resonance(p->executor, launch->resonance));
  HG_TRY(hg_executor_phase(p->executor, &phase));
  launch->phase_advance = (phase + 768 - launch->phase) % 768;
  if (launch->boundary == NULL) return HG_OK;
  return hg_boundary_read(p->executor, 0, launch->boundary, ATLAS_BOUNDARY_POOL_BYTES);
}

static hg_status launch_it(const prepared *p, atlas_launch *launch) {
  hg_launch_report report = {.size = sizeof report};
  hg_launch_desc desc = {.size = sizeof desc,
                         .lanes = launch->lanes,
                         .bindings = p->bound.bindings,
                         .binding_count = p->bound.binding_count,
                         .scalars = p->bound.scalars,
                         .scalar_count = p->bound.scalar_count,
                         .step_limit = launch->step_limit};
  if (launch->lanes == 0) {
    memcpy(desc.grid, launch->grid, sizeof desc.grid);
    memcpy(desc.block, launch->block, sizeof desc.block);
  }
  hg_status status = hg_launch(p->kernel, &desc, &report);
  launch->fault = report.fault;
  return status == HG_FAULT ? HG_OK : status;
}

static hg_status run_prepared(prepared *p, const backend_run *run, atlas_launch *launch) {
  uint8_t *arena = arena_of(run->d, run->l, launch);
  HG_TRY(hg_kernel_create(p->executor, run->program, &p->kernel));
  if (arena != NULL) {
    HG_TRY(hg_buffer_create(p->executor, NULL, run->l->arena_bytes, &p->arena));
    HG_TRY(hg_buffer_write(p->arena, 0, arena, run->l->arena_bytes));
  }
  bind_arguments(run->d, run->l, launch, &p->bound);
  for (size_t i = 0; i < p->bound.binding_count; i++) p->bound.bindings[i].buffer = p->arena;
  HG_TRY(set_state(p, launch));
  HG_TRY(launch_it(p, launch));
  HG_TRY(get_state(p, launch));
  return arena != NULL ? hg_buffer_read(p->arena, 0, arena, run->l->arena_bytes) : HG_OK;
}

hg_status run_on_backend(const void *context, atlas_launch *launch) {
  const backend_run *run = context;
  prepared p = {0};
  HG_TRY(open_executor(run->backend, &p.executor));
  hg_status status = run_prepared(&p, run, launch);
  hg_buffer_release(p.arena);
  hg_kernel_release(p.kernel);
  return status;
}

int defer_kernels(int on) {
  static void (*defer)(int on);
  void *library = defer == NULL ? hg_library_open("libobjc.A.dylib", "") : NULL;
  if (library != NULL) hg_library_find(library, "metal_sim_defer", &defer);
  if (defer != NULL) defer(on);
  return defer != NULL;
}
