/* layout.c - the argument block; shared memory: the program's arrays and the scratch memory of collectives; local
 * arrays. */
#include "backend/gpu/plan.h"

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static uint32_t parameter_bytes(uint8_t kind) {
  switch (kind) {
  case ATLAS_SYMBOL_BUFFER: return 16;
  case ATLAS_SYMBOL_SCALAR:
  case ATLAS_SYMBOL_TABLE: return 8;
  case ATLAS_SYMBOL_POOL: return 24;
  default: return 0;
  }
}

static uint8_t element_shift(const atlas_symbol *symbol) {
  return (uint8_t)gpu_log2(atlas_bytes((atlas_type)symbol->type));
}

void hg_gpu_lay_out_parameters(gpu_plan *g) {
  hg_gpu_info *info = &g->info;
  info->argument_bytes = sizeof(hg_gpu_header);
  info->table_symbol = HG_GPU_NO_SYMBOL;
  for (uint32_t s = 0; s < g->program->symbols.count; s++) {
    const atlas_symbol *symbol = atlas_symbol_at(g->program, s);
    uint8_t kind = symbol->kind;
    if (parameter_bytes(kind) == 0) continue;
    if (kind == ATLAS_SYMBOL_TABLE) info->table_symbol = s;
    info->parameter[info->parameter_count++] =
        (hg_gpu_parameter){.symbol = (uint16_t)s,
                           .offset = (uint16_t)info->argument_bytes,
                           .kind = kind,
                           .element_shift = kind == ATLAS_SYMBOL_BUFFER ? element_shift(symbol) : 0};
    g->parameter_of[s] = (uint16_t)info->parameter_count;
    info->argument_bytes += parameter_bytes(kind);
  }
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

enum { ALIGNMENT = 16 }; /* of everything in shared memory, and of local arrays */

static uint32_t padded(uint64_t bytes) { return (uint32_t)((bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT); }

/* The program's arrays and the marks of ended lanes; both begin as zero. */
void hg_gpu_lay_out_shared(gpu_plan *g) {
  uint32_t at = 0;
  for (uint32_t s = 0; s < g->program->symbols.count; s++) {
    const atlas_symbol *symbol = atlas_symbol_at(g->program, s);
    if (symbol->kind != ATLAS_SYMBOL_SHARED) continue;
    g->shared_offset[s] = at;
    at += padded((uint64_t)symbol->count * atlas_bytes((atlas_type)symbol->type));
  }
  if (g->uses_scratch && g->can_end) {
    g->ended_any = at;
    g->ended = at + ALIGNMENT;
    at += ALIGNMENT + padded(g->info.max_threads);
  }
  g->zeroed_bytes = g->info.shared_bytes = at;
}

/* ---- local arrays ------------------------------------------------------------------------------------------------ */

void hg_gpu_lay_out_local(gpu_plan *g) {
  for (uint32_t s = 0; s < g->program->symbols.count; s++) {
    if (!gpu_is_in_set(g->locals_used, s)) continue;
    g->local_offset[s] = g->local_bytes;
    g->local_bytes += (uint32_t)atlas_local_bytes(atlas_symbol_at(g->program, s));
  }
}
