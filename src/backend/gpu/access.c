/* access.c - the addresses of loads, stores and atomics, how they are checked, and which faults they may have. */
#include "backend/gpu/plan.h"

#include "atlas/value.h"
#include "compiler/analysis/aliasing.h"

enum { MAX_OFFSET = 1 << 20 }; /* in elements of up to 8 bytes: fits the offset of an instruction */

/* ---- constant tables, pools -------------------------------------------------------------------------------------- */

uint32_t hg_gpu_table_words(const atlas_symbol *table) {
  return (table->count * atlas_bytes((atlas_type)table->type) + 7) / 8;
}

uint32_t hg_gpu_library_offset(const gpu_plan *g, uint32_t symbol) {
  uint32_t words = 0;
  for (uint32_t s = 0; s < symbol; s++)
    if (gpu_is_in_set(g->library_used, s)) words += hg_gpu_table_words(atlas_symbol_at(&atlas_functions, s));
  return 8 * words;
}

uint32_t hg_gpu_pool_number(const gpu_plan *g, uint32_t symbol) {
  uint32_t number = 0;
  for (uint32_t s = 0; s < symbol; s++) number += atlas_symbol_at(g->program, s)->kind == ATLAS_SYMBOL_POOL;
  return number;
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static gpu_site out_of_bounds(const ssa_insn *insn, uint32_t symbol, uint8_t index_type, int64_t displacement) {
  return (gpu_site){.insn = insn->insn,
                    .symbol = symbol,
                    .kind = HG_FAULT_OUT_OF_BOUNDS,
                    .index_type = index_type,
                    .displacement = displacement};
}

gpu_site hg_gpu_class_site(const gpu_plan *g, uint32_t value) {
  return (gpu_site){.insn = gpu_insn(g, value)->insn,
                    .symbol = HG_GPU_NO_SYMBOL,
                    .kind = HG_FAULT_CLASS,
                    .index_type = ATLAS_u64};
}

gpu_site hg_gpu_free_site(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  return (gpu_site){.insn = insn->insn, .symbol = insn->symbol, .kind = HG_FAULT_POOL, .index_type = ATLAS_i64};
}

gpu_site hg_gpu_trap_site(const ssa_block *block) {
  return (gpu_site){.insn = block->insn,
                    .symbol = HG_GPU_NO_SYMBOL,
                    .code = block->trap_code,
                    .kind = HG_FAULT_TRAP,
                    .index_type = ATLAS_i64};
}

gpu_site hg_gpu_step_limit_site(const gpu_plan *g, uint32_t from, uint32_t to) {
  return (gpu_site){.insn = ssa_step_insn(g->unit, from, to),
                    .symbol = HG_GPU_NO_SYMBOL,
                    .kind = HG_FAULT_STEP_LIMIT,
                    .index_type = ATLAS_i64};
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static void add_test(gpu_place *place, gpu_site site, uint32_t argument, uint64_t extent) {
  place->test[place->test_count++] = (gpu_test){.site = site, .argument = argument, .extent = extent};
}

/* The bytes from one class, page and byte of the boundary pool to the next. */
static const uint32_t phi_step[3] = {ATLAS_CLASS_PAGES * ATLAS_CLASS_PAGE_BYTES, ATLAS_CLASS_PAGE_BYTES, 1};

/* Bytes [sum, sum + size) lie in the extent, and sum is a multiple of size. */
static void test_bytes(const gpu_plan *g, uint32_t value, gpu_site site, uint64_t extent, gpu_place *place) {
  uint32_t size = gpu_bytes(g, value);
  add_test(place, site, SSA_NONE, extent);
  if (size == 1) return;
  site.kind = HG_FAULT_MISALIGNED;
  add_test(place, site, SSA_NONE, size);
}

static int may_be_negative(const gpu_plan *g, const gpu_place *place) {
  const hg_range *range = &g->analysis.range[place->index];
  return gpu_is_signed(place->index_type) && !(range->exact && range->low >= 0);
}

static void element_place(const gpu_plan *g, gpu_version_kind version, uint32_t value, gpu_place *place) {
  const ssa_insn *insn = gpu_insn(g, value);
  int is_checked = version != GPU_VECTOR_VERSION || g->access[value] == GPU_CHECKED;
  uint8_t kind = gpu_symbol_of(g, insn)->kind;
  place->space = insn->symbol & SSA_LIBRARY           ? GPU_LIBRARY
                 : kind == ATLAS_SYMBOL_SHARED ? GPU_SHARED
                 : kind == ATLAS_SYMBOL_LOCAL  ? GPU_LOCAL
                 : kind == ATLAS_SYMBOL_BUFFER ? GPU_GLOBAL
                                               : GPU_CONSTANT;
  place->check = g->analysis.in_bounds[value] || !is_checked ? GPU_PROVEN
                 : place->space == GPU_LIBRARY               ? GPU_CLAMP
                 : g->target.branches || gpu_flags(g, value) & ATLAS_ATOMIC ? GPU_BRANCH
                                                                             : GPU_LEAVE_OUT;
  place->is_near = place->displacement > -MAX_OFFSET && place->displacement < MAX_OFFSET;
  /* an address below the first one of local memory cannot be relied on to come back by an offset */
  if (place->space == GPU_LOCAL && place->index != SSA_NONE && place->displacement > 0 && may_be_negative(g, place))
    place->is_near = 0;
  place->site = out_of_bounds(insn, insn->symbol, place->index_type, place->displacement);
}

static void table_place(const gpu_plan *g, uint32_t value, gpu_place *place) {
  const ssa_insn *insn = gpu_insn(g, value);
  uint8_t entry = gpu_insn(g, gpu_arg(g, value, 0))->type, offset = gpu_insn(g, gpu_arg(g, value, 1))->type;
  add_test(place, out_of_bounds(insn, insn->symbol, entry, 0), 0, gpu_symbol_of(g, insn)->count);
  test_bytes(g, value, out_of_bounds(insn, insn->symbol, offset, 0), 0, place);
}

static void phi_place(const gpu_plan *g, uint32_t value, gpu_place *place) {
  static const uint32_t extent[3] = {ATLAS_CLASS_COUNT, ATLAS_CLASS_PAGES, ATLAS_CLASS_PAGE_BYTES};
  const ssa_insn *insn = gpu_insn(g, value);
  uint32_t next = 0;
  for (int i = 0; i < 3; i++) {
    if (!(insn->phi_registers >> i & 1)) continue;
    uint8_t type = gpu_insn(g, gpu_arg(g, value, next))->type;
    add_test(place, out_of_bounds(insn, HG_GPU_PHI_SYMBOL, type, 0), next++, extent[i]);
    place->test[place->test_count - 1].step = phi_step[i];
  }
  test_bytes(g, value, out_of_bounds(insn, HG_GPU_PHI_SYMBOL, ATLAS_i64, 0), ATLAS_BOUNDARY_POOL_BYTES, place);
}

uint32_t hg_gpu_phi_offset(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  const uint32_t constant[3] = {(uint32_t)(insn->bits & 0xffff), (uint32_t)(insn->bits >> 16 & 0xffff),
                                (uint32_t)(insn->bits >> 32)};
  uint32_t offset = 0;
  for (int i = 0; i < 3; i++)
    if (!(insn->phi_registers >> i & 1)) offset += constant[i] * phi_step[i];
  return offset;
}

gpu_place hg_gpu_place(const gpu_plan *g, gpu_version_kind version, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  int is_indexed = insn->mode == ATLAS_ADDRESS_INDEXED;
  gpu_place place = {.space = GPU_GLOBAL,
                     .check = GPU_BRANCH,
                     .is_read_only = g->read_only[hg_location_of(g->program, insn)],
                     .index = is_indexed ? gpu_arg(g, value, 0) : SSA_NONE,
                     .index_type = is_indexed ? gpu_insn(g, gpu_arg(g, value, 0))->type : (uint8_t)ATLAS_i64,
                     .displacement = (int64_t)insn->bits};
  if (insn->mode == ATLAS_ADDRESS_PHI) {
    place.addressing = GPU_PHI_BYTES;
    phi_place(g, value, &place);
  } else if (insn->mode == ATLAS_ADDRESS_TABLE) {
    place.addressing = GPU_TABLE_BYTES;
    table_place(g, value, &place);
  } else if (gpu_symbol_of(g, insn)->kind == ATLAS_SYMBOL_POOL) {
    place.addressing = GPU_POOL_BYTES;
    test_bytes(g, value, out_of_bounds(insn, insn->symbol, place.index_type, place.displacement), 0, &place);
  } else {
    place.addressing = GPU_ELEMENTS;
    element_place(g, version, value, &place);
  }
  return place;
}
