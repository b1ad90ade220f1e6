/* collective.c - reductions and scans of a block, as steps.
 *
 * A lane that has ended takes part in no barrier any more. Shared memory holds a byte for each lane, 1 if it has ended,
 * and a word, 1 if any has. As long as that word is 0, which is the common case, collectives run in parallel; otherwise
 * the lowest lane that is left runs the reference machine's loops alone.
 *
 * Each collective ends with a barrier behind its last read of the slots, so that the next one may write them without
 * one. */
#include "backend/gpu/plan.h"

typedef struct step_builder {
  const gpu_plan *g;
  uint32_t value;
  hg_array *steps;
} step_builder;

static hg_status add(const step_builder *m, gpu_op op, uint32_t number) {
  return hg_gpu_add_step(m->g, m->steps, (gpu_step){.op = (uint8_t)op, .value = m->value, .number = number});
}

#define ADD(m, ...) GPU_ADD((m)->g, (m)->steps, (m)->value, __VA_ARGS__)

/* ---- reductions -------------------------------------------------------------------------------------------------- */

/* The first GPU_FOLD_LANES lanes do the fold by halves: lane t loads the values of lanes t, t + 32, t + 64, ... and
 * folds them; the last steps exchange values without memory. Blocks smaller than max_threads skip the rows that they
 * lack. */
static hg_status fold(const step_builder *m) {
  uint32_t rows = (m->g->info.max_threads + GPU_FOLD_LANES - 1) / GPU_FOLD_LANES, power = 1;
  while (power < rows) power *= 2;
  for (uint32_t j = 1; j < rows; j++) HG_TRY(add(m, GPU_FOLD_ROW, j));
  for (uint32_t half = power / 2; half >= 1; half /= 2)
    for (uint32_t j = 0; j < half && j + half < rows; j++) HG_TRY(add(m, GPU_FOLD_ROWS, j | half << 16));
  for (uint32_t h = GPU_FOLD_LANES / 2; h >= 1; h /= 2) HG_TRY(add(m, GPU_FOLD_LANES_BY, h));
  return HG_OK;
}

static hg_status reduce(const step_builder *m) {
  HG_TRY(ADD(m, GPU_OWN, GPU_PUT_OWN, GPU_SYNC));
  if (m->g->can_end) HG_TRY(add(m, GPU_UNLESS_ENDED, m->value));
  HG_TRY(add(m, GPU_FIRST_LANES, m->value));
  HG_TRY(fold(m));
  HG_TRY(ADD(m, GPU_KEEP_RESULT, GPU_END_FIRST_LANES, GPU_SYNC));
  if (m->g->can_end) HG_TRY(ADD(m, GPU_WHERE_ENDED, GPU_ELECT, GPU_FOLD_SLOTS, GPU_KEEP_SLOT, GPU_END_ELECT, GPU_SYNC,
                                GPU_END_ENDED));
  return add(m, GPU_GET_RESULT, m->value);
}

/* ---- scans: Hillis and Steele, strides 1, 2, 4, ... -------------------------------------------------------------- */

static hg_status scan(const step_builder *m) {
  int is_exclusive = gpu_insn(m->g, m->value)->op == ATLAS_OP_scan_excl;
  HG_TRY(add(m, GPU_OWN, m->value));
  if (m->g->can_end) HG_TRY(ADD(m, GPU_PUT_OWN, GPU_SYNC, GPU_UNLESS_ENDED));
  HG_TRY(ADD(m, GPU_STRIDES, GPU_PUT_OWN, GPU_SYNC, GPU_GET_STRIDE, GPU_SYNC, GPU_ADD_STRIDE, GPU_END_STRIDES,
             GPU_SETTLE));
  if (is_exclusive) HG_TRY(ADD(m, GPU_PUT_OWN, GPU_SYNC, GPU_GET_BEFORE, GPU_SYNC));
  else HG_TRY(add(m, GPU_GET_OWN, m->value));
  if (!m->g->can_end) return HG_OK;
  return ADD(m, GPU_WHERE_ENDED, GPU_ELECT, GPU_SCAN_SLOTS, GPU_END_ELECT, GPU_SYNC,
             is_exclusive ? GPU_GET_PRESENT : GPU_GET_SLOT, GPU_SYNC, GPU_END_ENDED);
}

hg_status hg_gpu_collective(const gpu_plan *g, uint32_t value, hg_array *steps) {
  const step_builder m = {g, value, steps};
  uint16_t op = gpu_insn(g, value)->op;
  return op == ATLAS_OP_scan_incl || op == ATLAS_OP_scan_excl ? scan(&m) : reduce(&m);
}
