/* plan.c - the plan of a kernel: what is decided, in order. */
#include "backend/gpu/plan.h"

#include "compiler/analysis/aliasing.h"
#include "compiler/collectives.h"
#include "compiler/machine_ops.h"
#include "compiler/shares/join_rare.h"
#include "compiler/shares/share_divisor.h"

enum { LANES_KERNEL_THREADS = 256 }; /* the block of linear launches; vector-only kernels have fewer: vectors.c */

uint32_t hg_gpu_most_threads(const atlas_program *program, const hg_gpu_form *form) {
  if (form->flags & HG_GPU_TABULATED) return HG_GPU_TABLE_THREADS;
  if (!program->observes_block) return LANES_KERNEL_THREADS;
  uint64_t product = (uint64_t)program->block[0] * program->block[1] * program->block[2];
  if (product == 0) product = form->threads;
  return product == 0 || product > ATLAS_MAX_BLOCK_LANES ? ATLAS_MAX_BLOCK_LANES : (uint32_t)product;
}

void hg_gpu_set_tile(hg_gpu_info *info) {
  info->threads = info->observes_block ? 0 : info->max_threads;
  while (1u << info->tile_shift < info->threads * info->lanes_per_thread) info->tile_shift++;
}

void hg_gpu_set_dynamic(hg_gpu_info *info, uint32_t declared_shared) {
  info->dynamic_bytes = info->is_table                          ? (uint32_t)HG_GPU_TABLE_BYTES
                        : info->shared_bytes > declared_shared ? info->shared_bytes
                                                                : 0;
}

static void note_effect(gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  uint32_t flags = gpu_flags(g, value);
  if (flags & ATLAS_SPACE_CONST) {
    uint32_t symbol = insn->symbol & ~(uint32_t)SSA_LIBRARY;
    (insn->symbol & SSA_LIBRARY ? g->library_used : g->tables_used)[symbol / 64] |= UINT64_C(1) << symbol % 64;
  }
  if (flags & ATLAS_SPACE_LOCAL) g->locals_used[insn->symbol / 64] |= UINT64_C(1) << insn->symbol % 64;
  if (insn->mode == ATLAS_ADDRESS_PHI && flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) g->info.uses_boundary = 1;
  if (insn->op == ATLAS_OP_res_accum) g->info.uses_resonance = 1;
  if (insn->op == ATLAS_OP_phase_adv) g->info.uses_phase_advance = 1;
  g->uses_scratch |= gpu_is_reduction(insn->op) || gpu_is_scan(insn->op);
}

static void note_effects(gpu_plan *g) {
  uint32_t group[ATLAS_MAX_SYMBOLS + 2];
  hg_alias_groups(g->program, g->unit, group);
  for (uint32_t l = 0; l < hg_location_count(g->program); l++)
    g->read_only[l] = (uint8_t)hg_is_read_only(g->program, group, l);
  g->can_end = g->counts_steps;
  for (uint32_t k = 0; k < g->order.count; k++) {
    const ssa_block *block = ssa_block_at(g->unit, g->order.block[k]);
    g->can_end |= block->end == SSA_TRAP;
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next) note_effect(g, e);
  }
  g->uses_scratch &= !gpu_is_one_warp(g) || g->can_end;
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

/* Arrays by value and by block; *room: scratch, two numbers for each value and one for each block. */
static hg_status allocate_arrays(gpu_plan *g, uint32_t **room) {
  uint64_t values = g->unit->insns.count, blocks = g->unit->blocks.count;
  uint64_t words = 6 * values + blocks, bytes = 6 * values + 2 * blocks;
  g->numbers = hg_allocate(g->allocator, words * sizeof(uint32_t) + bytes, 1);
  if (g->numbers == NULL) return hg_fail_memory("the plan of a kernel", words * sizeof(uint32_t) + bytes);
  *room = g->numbers + 4 * values;
  g->vector_of = g->numbers;
  g->group_of = g->numbers + values;
  g->exchange_of = g->numbers + 2 * values;
  g->home = g->numbers + 3 * values;
  g->nan = (uint8_t *)(g->numbers + words);
  g->nan_blind = g->nan + values;
  g->bits_used = g->nan_blind + values;
  g->access = g->bits_used + values;
  g->is_sunk = g->access + values;
  g->is_late = g->is_sunk + values;
  g->in_loop = g->is_late + values;
  g->steps_at_once = g->in_loop + blocks;
  return HG_OK;
}

static hg_status analyse(gpu_plan *g) {
  static const hg_shape any_launch = {0};
  const hg_shape *shape = g->form.shape != NULL ? g->form.shape : &any_launch;
  HG_TRY(hg_analyse(g->program, g->unit, shape, &g->analysis));
  for (size_t i = 0; i < g->proven.count; i++) g->analysis.in_bounds[((const uint32_t *)g->proven.data)[i]] = 1;
  return ir_ssa_order_build(g->unit, &g->order);
}

/* Where every access is a vector the order says nothing. It keeps collectives that stand together; what is computed
 * from one of them may come between. */
static hg_status order_instructions(gpu_plan *g) {
  if (g->info.vector_only) return HG_OK;
  HG_TRY(hg_gather_collectives(g->unit, 1));
  HG_TRY(hg_gpu_find_groups(g));
  g->groups_outside = (uint32_t)g->group.count;
  HG_TRY(hg_gpu_foresee(g));
  hg_gpu_look_ahead(g);
  if (g->info.observes_block) HG_TRY(hg_gpu_find_extremes(g));
  HG_TRY(hg_gpu_order(g));
  HG_TRY(hg_gather_collectives(g->unit, 0));
  return hg_gpu_find_exchanges(g);
}

/* What several values of a lane have in common is done once: a row that a block holds in its registers has many.
 * Elsewhere a lane has few, and memory is what takes the time. So have several iterations of a loop, which divide by
 * what they do not change. */
static hg_status share_work(gpu_plan *g) {
  if (!gpu_is_short(g)) HG_TRY(hg_gpu_unroll(g));
  if (!g->program->observes_block) return HG_OK;
  HG_TRY(hg_share_divisors(g->unit, &g->shares_work));
  return hg_join_rare(g->unit, &g->shares_work);
}

static hg_status build_plan(gpu_plan *g) {
  uint32_t *room = NULL;
  HG_TRY(share_work(g));
  HG_TRY(analyse(g));
  uint64_t values = g->unit->insns.count;
  HG_TRY(allocate_arrays(g, &room));
  uint32_t *per_block = room + 2 * values;
  hg_gpu_find_loops(g);
  g->info.observes_block = (uint8_t)g->program->observes_block;
  g->info.max_threads = hg_gpu_most_threads(g->program, &g->form);
  hg_gpu_lay_out_parameters(g);
  note_effects(g);
  HG_TRY(hg_gpu_find_growth(g));
  hg_gpu_lie_along_y(g, room);
  hg_gpu_lay_out_shared(g);
  hg_gpu_lay_out_local(g);
  HG_TRY(hg_gpu_find_nans(g));
  uint32_t instructions = hg_gpu_shortest_path(g, per_block);
  hg_gpu_plan_vectors(g, instructions);
  HG_TRY(hg_gpu_list_vectors(g, room, room + values));
  hg_gpu_plan_packs(g, instructions, room);
  hg_gpu_set_tile(&g->info);
  HG_TRY(order_instructions(g));
  g->info.is_longer = g->unrolled.count + g->exchange.count > 0;
  HG_TRY(hg_gpu_find_homes(g));
  hg_gpu_find_late(g);
  hg_gpu_set_dynamic(&g->info, g->target.declared_shared);
  return hg_gpu_list_kernel_steps(g);
}

hg_status hg_gpu_plan(const atlas_program *program, ssa_unit *unit, const hg_gpu_target *target,
                      const hg_gpu_form *form, gpu_plan *plan) {
  *plan = (gpu_plan){.allocator = &unit->allocator, .program = program, .unit = unit, .target = *target, .form = *form};
  plan->info.size = sizeof plan->info;
  plan->group.element_size = sizeof(gpu_group);
  plan->exchange.element_size = sizeof(gpu_exchange);
  plan->foreseen.element_size = sizeof(gpu_foreseen);
  plan->unrolled.element_size = sizeof(gpu_unrolled);
  plan->proven.element_size = sizeof(uint32_t);
  plan->kernel.element_size = sizeof(gpu_step);
  for (int i = 0; i < GPU_PART_COUNT; i++) plan->part[i].steps.element_size = sizeof(gpu_step);
  HG_TRY(hg_check_machine_ops(unit));
  return build_plan(plan);
}

void hg_gpu_plan_release(gpu_plan *plan) {
  hg_analysis_release(plan->unit, &plan->analysis);
  ir_ssa_order_release(plan->unit, &plan->order);
  hg_release(plan->allocator, plan->numbers);
  hg_release(plan->allocator, plan->growth[0]);
  hg_release(plan->allocator, plan->vector);
  hg_array_release(plan->allocator, &plan->group);
  hg_array_release(plan->allocator, &plan->exchange);
  hg_array_release(plan->allocator, &plan->foreseen);
  hg_array_release(plan->allocator, &plan->unrolled);
  hg_array_release(plan->allocator, &plan->proven);
  hg_array_release(plan->allocator, &plan->kernel);
  for (int i = 0; i < GPU_PART_COUNT; i++) {
    hg_array_release(plan->allocator, &plan->part[i].steps);
    hg_release(plan->allocator, plan->part[i].first);
  }
}
