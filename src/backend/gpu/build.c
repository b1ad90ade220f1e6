/* build.c - makes the plan of a kernel: its passes, in order. */
#include "backend/gpu/build.h"

#include "backend/gpu/plan_passes.h"
#include "compiler/collectives.h"
#include "compiler/machine_ops.h"
#include "compiler/share_divisor.h"

/* Allocates the arrays by value and by block; *room: scratch, two numbers for each value and one for each block. */
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
  const hg_shape *shape = g->variant.shape != NULL ? g->variant.shape : &any_launch;
  HG_TRY(hg_analyse(g->program, g->unit, shape, &g->analysis));
  for (size_t i = 0; i < g->proven.count; i++) g->analysis.in_bounds[((const uint32_t *)g->proven.data)[i]] = 1;
  return ir_ssa_order_build(g->unit, &g->order);
}

/* Finds slopes for targets that spread blocks or prefetch, which alone need them. */
static hg_status find_slopes(gpu_plan *g) {
  uint64_t values = g->unit->insns.count;
  if (!g->program->observes_block || (g->target.sub_blocks == 0 && !g->target.can_prefetch_l2)) return HG_OK;
  hg_slope *all = hg_allocate(g->allocator, HG_AXES * values, sizeof *all);
  if (all == NULL) return hg_fail_memory("the plan of a kernel", HG_AXES * values * sizeof *all);
  for (hg_axis along = HG_ALONG_BLOCKS; along < HG_AXES; along++)
    hg_find_slopes(g->unit, &g->order, g->program->block, along, g->slope[along] = all + along * values);
  return HG_OK;
}

/* If every access is a vector, the order does not matter. It keeps adjacent collectives together; what is computed from
 * one of them may stand between. */
static hg_status order_instructions(gpu_plan *g) {
  if (g->info.vector_only) return HG_OK;
  HG_TRY(hg_gpu_find_groups(g));
  g->groups_outside = (uint32_t)g->group.count;
  HG_TRY(hg_gpu_hoist_checks(g));
  hg_gpu_plan_l2_prefetch(g);
  if (g->info.observes_block) HG_TRY(hg_gpu_find_extremes(g));
  HG_TRY(hg_gpu_order(g));
  HG_TRY(hg_gather_collectives(g->unit));
  HG_TRY(hg_gpu_find_exchanges(g));
  hg_gpu_lay_out_ranks(g);
  return HG_OK;
}

/* Work that several values of a lane share is done once: a row that a block holds in registers has many such values,
 * other lanes have few, and are bound by memory. The same holds for several iterations of a loop that divide by a
 * loop-invariant value. */
static hg_status share_work(gpu_plan *g) {
  HG_TRY(hg_gpu_unroll(g));
  if (!g->program->observes_block) return HG_OK;
  return hg_share_divisors(g->unit, &g->shares_work);
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
  g->info.max_threads = hg_gpu_most_threads(g->program, &g->variant);
  hg_gpu_lay_out_parameters(g);
  hg_gpu_find_uses(g);
  HG_TRY(find_slopes(g));
  hg_gpu_transpose_warps(g, room);
  hg_gpu_lay_out_shared(g);
  hg_gpu_lay_out_local(g);
  HG_TRY(hg_gpu_find_nans(g));
  uint32_t instructions = hg_gpu_shortest_path(g, per_block);
  hg_gpu_plan_vectors(g, instructions);
  HG_TRY(hg_gpu_list_vectors(g, room, room + values));
  hg_gpu_plan_thread_tiles(g, instructions, room);
  hg_gpu_set_tile(&g->info);
  HG_TRY(order_instructions(g));
  HG_TRY(hg_gpu_coalesce_phis(g));
  hg_gpu_find_late(g);
  hg_gpu_set_dynamic(&g->info, g->target.declared_shared);
  return hg_gpu_list_kernel_steps(g);
}

hg_status hg_gpu_expand(const atlas_program *program, ssa_unit *unit, hg_functions *functions,
                        const hg_gpu_target *target) {
  unit->narrow_extremes = target->narrow_extremes;
  unit->joins_functions = program->observes_block != 0;
  unit->gathers_stores = 1;
  return hg_expand_unplaced(unit, functions);
}

hg_status hg_gpu_plan(const atlas_program *program, ssa_unit *unit, const hg_gpu_target *target,
                      const hg_gpu_variant *variant, gpu_plan *plan) {
  *plan = (gpu_plan){.allocator = &unit->allocator, .program = program, .unit = unit, .target = *target,
                     .variant = *variant};
  plan->info.size = sizeof plan->info;
  plan->group.element_size = sizeof(gpu_access_group);
  plan->exchange.element_size = sizeof(gpu_exchange);
  plan->hoisted.element_size = sizeof(gpu_hoisted);
  plan->unrolled.element_size = sizeof(gpu_unrolled);
  plan->proven.element_size = sizeof(uint32_t);
  plan->kernel.element_size = sizeof(gpu_step);
  for (int i = 0; i < GPU_VERSION_COUNT; i++) plan->version[i].steps.element_size = sizeof(gpu_step);
  HG_TRY(hg_check_machine_ops(unit));
  return build_plan(plan);
}
