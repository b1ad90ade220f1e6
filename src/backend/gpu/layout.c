/* layout.c - the layout of the argument block; of shared memory: the program's arrays and the scratch memory of
 * collectives; and of local arrays. */
#include "backend/gpu/plan_passes.h"

#include "compiler/analysis/local_zeros.h"

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static uint32_t parameter_bytes(uint8_t kind, int divides) {
  switch (kind) {
  case ATLAS_SYMBOL_BUFFER: return 16;
  case ATLAS_SYMBOL_SCALAR: return divides ? 16 : 8;
  case ATLAS_SYMBOL_TABLE: return 8;
  case ATLAS_SYMBOL_POOL: return 24;
  default: return 0;
  }
}

static uint8_t element_shift(const atlas_symbol *symbol) {
  return (uint8_t)gpu_log2(atlas_bytes((atlas_type)symbol->type));
}

/* sel(s is 0, 1, s): the divisor that legalisation (compiler/legalise.c) gives to a division by the scalar s. */
uint32_t hg_gpu_divisor(const ssa_unit *unit, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(unit, value);
  if ((insn->op != ATLAS_OP_div && insn->op != ATLAS_OP_rem) || (insn->type != ATLAS_u32 && insn->type != ATLAS_u64))
    return SSA_NONE;
  uint32_t divisor = ssa_args_of(unit, value)[1];
  if (ssa_insn_at(unit, divisor)->op != ATLAS_OP_sel) return SSA_NONE;
  const uint32_t *choice = ssa_args_of(unit, divisor), scalar = choice[2];
  const ssa_insn *one = ssa_insn_at(unit, choice[1]), *test = ssa_insn_at(unit, choice[0]);
  if (ssa_insn_at(unit, scalar)->op != SSA_SCALAR || one->op != SSA_CONST || one->bits != 1 ||
      test->op != ATLAS_OP_set_eq)
    return SSA_NONE;
  const uint32_t *side = ssa_args_of(unit, choice[0]);
  const ssa_insn *zero = ssa_insn_at(unit, side[1]);
  return side[0] == scalar && zero->op == SSA_CONST && zero->bits == 0 ? ssa_insn_at(unit, scalar)->symbol : SSA_NONE;
}

/* divides[s] = 1 for scalars that are divisors. */
static void find_divisors(const gpu_plan *g, uint8_t *divides) {
  for (uint32_t v = 0; v < g->unit->insns.count; v++) {
    uint32_t symbol = gpu_is_gone(g, v) ? SSA_NONE : hg_gpu_divisor(g->unit, v);
    if (symbol != SSA_NONE) divides[symbol] = 1;
  }
}

void hg_gpu_list_parameters(const atlas_program *program, const uint8_t *is_divisor, hg_gpu_info *info) {
  info->argument_bytes = sizeof(hg_gpu_header);
  info->table_symbol = HG_GPU_NO_SYMBOL;
  info->parameter_count = 0;
  for (uint32_t s = 0; s < program->symbols.count; s++) {
    const atlas_symbol *symbol = atlas_symbol_at(program, s);
    uint8_t kind = symbol->kind;
    uint8_t divides = kind == ATLAS_SYMBOL_SCALAR && is_divisor[s];
    if (parameter_bytes(kind, divides) == 0) continue;
    if (kind == ATLAS_SYMBOL_TABLE) info->table_symbol = s;
    info->parameter[info->parameter_count++] =
        (hg_gpu_parameter){.symbol = (uint16_t)s,
                           .offset = (uint16_t)info->argument_bytes,
                           .kind = kind,
                           .divides = divides,
                           .element_shift =
                               kind == ATLAS_SYMBOL_BUFFER || kind == ATLAS_SYMBOL_SCALAR ? element_shift(symbol) : 0};
    info->argument_bytes += parameter_bytes(kind, divides);
  }
}

void hg_gpu_lay_out_parameters(gpu_plan *g) {
  uint8_t is_divisor[ATLAS_MAX_SYMBOLS] = {0};
  find_divisors(g, is_divisor);
  hg_gpu_list_parameters(g->program, is_divisor, &g->info);
  for (uint32_t i = 0; i < g->info.parameter_count; i++) {
    hg_gpu_parameter *parameter = &g->info.parameter[i];
    parameter->again = (uint8_t)gpu_is_in_set(g->swept_again, parameter->symbol);
    g->parameter_of[parameter->symbol] = (uint16_t)(i + 1);
  }
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

enum { ALIGNMENT = 16 }; /* of arrays in shared memory, and of local arrays */

static uint32_t padded(uint64_t bytes) { return (uint32_t)((bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT); }

/* The program's arrays and the marks of ended lanes; both are cleared at the beginning. */
void hg_gpu_lay_out_shared(gpu_plan *g) {
  uint32_t at = 0;
  for (uint32_t s = 0; s < g->program->symbols.count; s++) {
    const atlas_symbol *symbol = atlas_symbol_at(g->program, s);
    if (symbol->kind != ATLAS_SYMBOL_SHARED) continue;
    g->memory.shared_offset[s] = at;
    at += padded((uint64_t)symbol->count * atlas_bytes((atlas_type)symbol->type));
  }
  if (g->memory.uses_scratch && g->can_end) {
    g->memory.ended_any = at;
    g->memory.ended = at + ALIGNMENT;
    at += ALIGNMENT + padded(g->info.max_threads);
  }
  g->memory.zeroed_bytes = g->info.shared_bytes = at;
}

/* ---- local arrays ------------------------------------------------------------------------------------------------ */

void hg_gpu_lay_out_local(gpu_plan *g) {
  for (uint32_t s = 0; s < g->program->symbols.count; s++) {
    if (!gpu_is_in_set(g->locals_used, s)) continue;
    g->memory.local_offset[s] = g->memory.local_bytes;
    g->memory.local_bytes += (uint32_t)atlas_local_bytes(atlas_symbol_at(g->program, s));
  }
  g->memory.clears_local =
      (uint8_t)(g->memory.local_bytes > 0 && hg_sees_local_zeros(g->program, g->unit, &g->order, &g->analysis));
}
