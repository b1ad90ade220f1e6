/* admit.c - checks the info of a cached entry. The kernel cache is a file, and whoever wrote it also wrote these
 * numbers, which say where the host writes and what it divides by. Planning the kernel again would show what is right,
 * but takes up to half a millisecond. So whatever follows from the program and the variant is computed again, as the
 * plan does it, and what only the plan decides is accepted within the bounds that every plan keeps. */
#include "backend/gpu/plan_passes.h"
#include "backend/gpu/gpu_tuning.h"

static int is_flag(uint8_t number) { return number <= 1; }
static int is_power(uint32_t number) { return number != 0 && (number & (number - 1)) == 0; }

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* `p` has what follows from the program. */
static int admit_parameter(const hg_gpu_parameter *kept, int has_vectors, hg_gpu_parameter *p) {
  int is_buffer = p->kind == ATLAS_SYMBOL_BUFFER, is_seen = is_buffer && has_vectors;
  if (kept->vector > is_seen || kept->reach < 0 || (kept->reach > 0 && !is_seen)) return 0;
  if (kept->again > is_buffer || kept->divides != p->divides) return 0;
  p->vector = kept->vector;
  p->again = kept->again;
  p->reach = kept->reach;
  return 1;
}

/* Which scalars are divisors decides the offsets of the parameters behind them. */
static int admit_parameters(const atlas_program *program, const hg_gpu_info *kept, hg_gpu_info *info) {
  uint8_t is_divisor[ATLAS_MAX_SYMBOLS] = {0};
  hg_gpu_list_parameters(program, is_divisor, info);
  for (uint32_t i = 0; i < info->parameter_count; i++)
    is_divisor[info->parameter[i].symbol] = kept->parameter[i].divides == 1;
  hg_gpu_list_parameters(program, is_divisor, info);
  for (uint32_t i = 0; i < info->parameter_count; i++)
    if (!admit_parameter(&kept->parameter[i], info->lanes_per_thread > 1, &info->parameter[i])) return 0;
  return info->argument_bytes <= HG_GPU_ARGUMENT_BYTES;
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

/* Only lanes kernels have vectors and packs, and only those whose accesses need no checks. */
static int admit_lanes(const hg_gpu_variant *variant, const hg_gpu_info *kept, hg_gpu_info *info) {
  int may_have_vectors = !info->observes_block && !(variant->flags & HG_GPU_CHECKED);
  uint32_t most_lanes = may_have_vectors ? GPU_VECTOR_LANES : 1;
  if (!is_power(kept->lanes_per_thread) || kept->lanes_per_thread > most_lanes) return 0;
  if (kept->vector_only > (kept->lanes_per_thread > 1) || (kept->lut_lanes != 0 && !kept->vector_only)) return 0;
  info->lanes_per_thread = kept->lanes_per_thread;
  info->vector_only = kept->vector_only;
  info->lut_lanes = kept->lut_lanes;
  info->is_lut = kept->lut_lanes != 0 && variant->flags & HG_GPU_LUT;
  int may_have_packs = info->vector_only && !info->is_lut;
  if (may_have_packs) info->max_threads = GPU_VECTOR_THREADS;
  info->packs = kept->packs;
  return kept->packs >= 1 && kept->packs <= (may_have_packs ? GPU_MOST_PACKS : 1);
}

/* A block is spread over several blocks of the device only if the program sets its size. */
static int admit_sub_blocks(const atlas_program *program, const hg_gpu_variant *variant, const hg_gpu_target *target,
                            const hg_gpu_info *kept, hg_gpu_info *info) {
  int may_spread = info->observes_block && variant->flags == 0 && program->block[0] != 0 && target->sub_blocks > 0;
  info->sub_blocks = kept->sub_blocks;
  return is_power(kept->sub_blocks) && kept->sub_blocks <= (may_spread ? target->sub_blocks : 1) &&
         info->max_threads % kept->sub_blocks == 0;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* A variant that counts every step is requested when launches of another variant might take more steps than allowed. */
static int admit_steps(const hg_gpu_variant *variant, const hg_gpu_info *kept, hg_gpu_info *info) {
  info->steps = kept->steps;
  return !(variant->flags & HG_GPU_COUNT_STEPS) || kept->steps == 0 || kept->steps == UINT64_MAX;
}

/* The host provides counters and the phase whether or not the program changes them. */
static int admit_effects(const hg_gpu_info *kept, hg_gpu_info *info) {
  info->uses_boundary = kept->uses_boundary;
  info->uses_resonance = kept->uses_resonance;
  info->uses_phase_advance = kept->uses_phase_advance;
  return is_flag(kept->uses_boundary) && is_flag(kept->uses_resonance) && is_flag(kept->uses_phase_advance);
}

int hg_gpu_admit(const atlas_program *program, const hg_gpu_variant *variant, const hg_gpu_target *target,
                 const hg_gpu_info *kept, hg_gpu_info *info) {
  *info = (hg_gpu_info){.size = sizeof *info, .observes_block = (uint8_t)program->observes_block};
  info->max_threads = hg_gpu_most_threads(program, variant);
  info->shared_bytes = kept->shared_bytes;
  if (kept->size != sizeof *kept || kept->shared_bytes > target->shared_bytes) return 0;
  if (!admit_effects(kept, info) || !admit_steps(variant, kept, info) || !admit_lanes(variant, kept, info) ||
      !admit_sub_blocks(program, variant, target, kept, info) || !admit_parameters(program, kept, info))
    return 0;
  hg_gpu_set_tile(info);
  hg_gpu_set_dynamic(info, target->declared_shared);
  return info->dynamic_bytes <= target->shared_bytes;
}
