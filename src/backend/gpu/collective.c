/* collective.c - exchanges (reductions and scans of a block) as plan steps.
 *
 * REDUCTIONS fold by halves, the top bit of the lane's number first: 0 to 127 with 128 to 255, and so on, within a warp
 * last. So all lanes store their values in shared memory; behind a barrier a warp folds each value, first row by row (a
 * row is what one warp has stored), then by exchanging registers; behind another barrier all lanes load the results.
 * Several values are folded by as many warps, with the same instructions if they have one operation and type. For a
 * block of W warps and k values this takes 2 k W + 6 k + W shared memory accesses and register exchanges; if each warp
 * folds for itself, without the second barrier, it takes k W (W + 6): 96 and 448 for four values and 8 warps. So only
 * few warps with few values do the latter (exchange.c).
 *
 * SCANS have strides 1, 2, 4, ..., so a lane needs sums that begin in the warp before. Each warp first performs strides
 * 1 to 16 by itself. At stride s its last s lanes are already right, since they need no other warp; they store what the
 * first s lanes of the next warp will need, 1 + 2 + 4 + 8 + 16 values. Behind a barrier all warps perform these strides
 * again with those values. Strides of 32 and more go to the same lane of other warps: behind another barrier each lane
 * adds up the windows of 32 that it needs, in the order of those strides. So a scan costs two barriers.
 *
 * If warps lie along y (warp_transpose.c), each warp folds its lanes first; then the warps are folded, in a block of
 * several sub-blocks by one exchange between them.
 *
 * A block of one warp needs neither memory nor barriers. Several values of a whole warp are folded together: of two
 * values, lanes without the top bit continue with the first and lanes with it continue with the second, and they give
 * each other what they do not continue with. So eight values take 9 exchanges and 8 that distribute the results,
 * instead of 40.
 *
 * ABSENT LANES. The warps of a fold must be whole, so a block with fewer lanes than the plan assumes (a launch's last
 * one) folds in shared memory by a careful path. A lane that has ended takes part in no more barriers. Shared memory
 * holds a byte for each lane, 1 if it has ended, and a word, 1 if any has. If that word is not 0, the remaining lanes
 * share a fold by halves, as in a block that lacks lanes; the loops of a scan, which are sequential, are run by the
 * lowest lane alone. A barrier stands behind the test of that word and before the next point where a lane may end, so
 * all lanes read the same. */
#include "backend/gpu/plan_passes.h"

#include "atlas/value.h"

typedef struct step_builder {
  const gpu_plan *g;
  const gpu_exchange *x;
  uint32_t number; /* of the exchange */
  hg_array *steps;
} step_builder;

/* Adds a step for the exchange. */
static hg_status add(const step_builder *m, gpu_op op) {
  return hg_gpu_add_step(m->g, m->steps, (gpu_step){.op = (uint8_t)op, .value = SSA_NONE, .number = m->number});
}

static hg_status add_number(const step_builder *m, gpu_op op, uint32_t value, uint32_t number) {
  return hg_gpu_add_step(m->g, m->steps, (gpu_step){.op = (uint8_t)op, .value = value, .number = number});
}

static hg_status add_value(const step_builder *m, gpu_op op, uint32_t value) { return add_number(m, op, value, value); }

/* Adds a step for each value. */
static hg_status add_each(const step_builder *m, gpu_op op) {
  for (uint32_t i = 0; i < m->x->count; i++) HG_TRY(add_value(m, op, m->x->value[i]));
  return HG_OK;
}

/* The same with a number in each step. */
static hg_status number_each(const step_builder *m, gpu_op op, uint32_t number) {
  for (uint32_t i = 0; i < m->x->count; i++) HG_TRY(add_number(m, op, m->x->value[i], number));
  return HG_OK;
}

static uint32_t rows_of(const gpu_plan *g) { return (g->info.max_threads + GPU_FOLD_LANES - 1) / GPU_FOLD_LANES; }

uint64_t hg_gpu_neutral(uint16_t op, uint8_t type) {
  atlas_type t = (atlas_type)type;
  uint64_t mask = atlas_mask(t), sign = UINT64_C(1) << (atlas_type_bits(t) - 1);
  if (!atlas_is_integer(t)) {
    double infinity = 1e308 * 10, number = op == ATLAS_OP_add   ? -0.0
                                           : op == ATLAS_OP_mul ? 1
                                           : op == ATLAS_OP_min ? infinity
                                                                : -infinity;
    return atlas_round_f64(t, number);
  }
  uint64_t least = gpu_is_signed(type) ? sign : 0, most = gpu_is_signed(type) ? mask ^ sign : mask;
  return op == ATLAS_OP_add ? 0 : op == ATLAS_OP_mul ? 1 : op == ATLAS_OP_min ? most : least;
}

/* ---- lanes that are not there ------------------------------------------------------------------------------------ */

static hg_status put_all(const step_builder *m) {
  HG_TRY(add_each(m, GPU_PUT_OWN));
  return add(m, GPU_SYNC);
}

/* The strides have changed the values that a scan's lanes hold. */
static hg_status scan_carefully(const step_builder *m) {
  if (!m->g->can_end) return HG_OK;
  HG_TRY(add(m, GPU_CAREFULLY));
  HG_TRY(add_each(m, GPU_OWN));
  HG_TRY(put_all(m));
  for (uint32_t i = 0; i < m->x->count; i++) {
    uint32_t value = m->x->value[i];
    int is_exclusive = gpu_insn(m->g, value)->op == ATLAS_OP_scan_excl;
    HG_TRY(add_value(m, GPU_ELECT, value));
    HG_TRY(add_value(m, GPU_SCAN_PLACES, value));
    HG_TRY(add(m, GPU_END_ELECT));
    HG_TRY(add(m, GPU_SYNC));
    HG_TRY(add_value(m, is_exclusive ? GPU_GET_BEFORE : GPU_GET_PLACE, value));
    HG_TRY(add(m, GPU_SYNC));
  }
  return HG_OK;
}

/* Also serves blocks that lack lanes. */
static hg_status fold_carefully(const step_builder *m) {
  HG_TRY(add(m, GPU_CAREFULLY));
  HG_TRY(put_all(m));
  HG_TRY(add(m, m->g->can_end ? GPU_FOLD_PRESENT : GPU_FOLD_HALVES));
  HG_TRY(add_each(m, GPU_GET_FIRST));
  return add(m, GPU_SYNC);
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static int are_alike(const gpu_plan *g, uint32_t a, uint32_t b) {
  return gpu_insn(g, a)->op == gpu_insn(g, b)->op && gpu_insn(g, a)->type == gpu_insn(g, b)->type;
}

static uint32_t count_alike(const step_builder *m, uint32_t first) {
  uint32_t end = first + 1;
  while (end < m->x->count && are_alike(m->g, m->x->value[first], m->x->value[end])) end++;
  return end - first;
}

/* Folds 2^levels values of one operation and type, from number `first` on, by all lanes of a warp. Each halving of the
 * lanes also halves the values that a lane continues with, while it has several. */
static hg_status fold_several(const step_builder *m, uint32_t first, uint32_t levels) {
  const uint32_t *value = m->x->value + first;
  uint32_t h = GPU_FOLD_LANES / 2;
  for (uint32_t left = levels; left > 0; left--, h /= 2) {
    uint32_t half = 1u << (left - 1);
    for (uint32_t i = 0; i < half; i++) HG_TRY(add_number(m, GPU_FOLD_PAIR_BY, value[i], h | half << 16));
  }
  for (; h >= 1; h /= 2) HG_TRY(add_number(m, GPU_FOLD_OWN_BY, value[0], h));
  if (levels == 0) return add_value(m, GPU_GET_OWN, value[0]);
  if (!m->g->target.exact_nans) HG_TRY(add_value(m, GPU_MAKE_EXACT, value[0]));
  for (uint32_t i = 0; i < 1u << levels; i++)
    HG_TRY(add_number(m, GPU_SPREAD_FROM, value[i], i * (GPU_FOLD_LANES >> levels) | i << 16));
  return HG_OK;
}

static hg_status reduce_in_whole_warp(const step_builder *m) {
  HG_TRY(add_each(m, GPU_OWN));
  HG_TRY(add(m, GPU_NEED_LANES));
  for (uint32_t i = 0, levels; i < m->x->count; i += 1u << levels) {
    uint32_t alike = count_alike(m, i);
    for (levels = 0; 2u << levels <= alike && 2u << levels <= GPU_FOLD_LANES;) levels++;
    HG_TRY(fold_several(m, i, levels));
  }
  HG_TRY(add(m, GPU_CAREFULLY));
  HG_TRY(add_each(m, GPU_OWN));
  HG_TRY(add(m, GPU_FOLD_WARP));
  return add_each(m, GPU_SPREAD);
}

static hg_status reduce_in_warp(const step_builder *m) {
  if (m->x->least_lanes == GPU_FOLD_LANES && !m->g->can_end) return reduce_in_whole_warp(m);
  uint32_t power = 1;
  while (power < m->g->info.max_threads) power *= 2;
  HG_TRY(add_each(m, GPU_OWN));
  if (m->g->can_end) HG_TRY(add(m, GPU_NONE_ENDED));
  for (uint32_t h = power / 2; h >= 1; h /= 2) HG_TRY(number_each(m, GPU_FOLD_WARP_BY, h));
  HG_TRY(add_each(m, GPU_SPREAD));
  return m->g->can_end ? fold_carefully(m) : HG_OK;
}

static uint32_t reversed(uint32_t number, uint32_t power) {
  uint32_t d = 0;
  for (uint32_t bit = 1; bit < power; bit *= 2) d = d * 2 + ((number & bit) != 0);
  return d;
}

/* Folds the rows by halves, each pair as soon as both rows are loaded: row j and row j + half, if it exists, for half =
 * the power of two at or above half their count, ..., 1. In bit-reversed order that is a binary counter. */
static hg_status fold_rows(const step_builder *m, uint32_t value) {
  uint32_t rows = rows_of(m->g), power = 1;
  while (power < rows) power *= 2;
  for (uint32_t i = 0; i < power; i++) {
    uint32_t j = reversed(i, power);
    if (j < rows) HG_TRY(add_number(m, GPU_FOLD_ROW, value, j));
    for (uint32_t size = 1; i & size; size *= 2) {
      uint32_t left = reversed(i + 1 - 2 * size, power), right = reversed(i + 1 - size, power);
      if (right < rows) HG_TRY(add_number(m, GPU_FOLD_ROWS, value, left | (right - left) << 16));
    }
  }
  return HG_OK;
}

static hg_status fold(const step_builder *m, uint32_t value) {
  HG_TRY(fold_rows(m, value));
  for (uint32_t h = GPU_FOLD_LANES / 2; h >= 1; h /= 2) HG_TRY(add_number(m, GPU_FOLD_LANES_BY, value, h));
  return HG_OK;
}

/* Folds `count` values of one operation and type by as many warps, from warp number `warp` on. */
static hg_status fold_by_warps(const step_builder *m, uint32_t value, uint32_t count, uint32_t warp) {
  HG_TRY(add_number(m, GPU_FOLDERS, value, count | warp << 16));
  HG_TRY(fold(m, value));
  HG_TRY(add_value(m, GPU_KEEP_RESULT, value));
  return add(m, GPU_END_FOLDERS);
}

static hg_status fold_by_each_warp(const step_builder *m) {
  for (uint32_t i = 0; i < m->x->count; i++) {
    HG_TRY(add_number(m, GPU_FOLDER, m->x->value[i], m->x->value[i]));
    HG_TRY(fold(m, m->x->value[i]));
    HG_TRY(add_value(m, GPU_GET_FOLDED, m->x->value[i]));
  }
  return fold_carefully(m);
}

static hg_status reduce_in_block(const step_builder *m) {
  const gpu_exchange *x = m->x;
  HG_TRY(add_each(m, GPU_OWN));
  if (x->by_each_warp) HG_TRY(add(m, GPU_TURN));
  HG_TRY(add(m, GPU_NEED_LANES));
  HG_TRY(add_each(m, GPU_PUT_OWN));
  HG_TRY(add(m, GPU_SYNC));
  if (x->by_each_warp) return fold_by_each_warp(m);
  if (m->g->can_end) HG_TRY(add(m, GPU_NONE_ENDED));
  int has_warps = x->count <= x->least_lanes / GPU_FOLD_LANES; /* a warp for each value */
  for (uint32_t i = 0, end; i < x->count; i = end) {
    end = i + count_alike(m, i);
    HG_TRY(fold_by_warps(m, x->value[i], end - i, has_warps ? i : 0));
  }
  HG_TRY(add(m, GPU_SYNC));
  HG_TRY(add_each(m, GPU_GET_RESULT));
  return fold_carefully(m);
}

/* Each warp folds its own lanes, whose bits of the number come first; behind a barrier each warp folds the results of
 * all warps. */
static hg_status reduce_along_y(const step_builder *m) {
  HG_TRY(add_each(m, GPU_OWN));
  HG_TRY(add(m, GPU_TURN));
  for (uint32_t h = GPU_FOLD_LANES / 2; h >= 1; h /= 2) HG_TRY(number_each(m, GPU_FOLD_OWN_BY, h));
  if (m->number == 0 && m->g->meets_late) HG_TRY(add(m, GPU_MEET_SUB_BLOCKS));
  HG_TRY(add_each(m, GPU_PUT_WARP));
  HG_TRY(add(m, GPU_SYNC_SUB_BLOCKS));
  HG_TRY(add_each(m, GPU_TAKE_WARP));
  for (uint32_t h = m->g->program->block[0] / 2; h >= 1; h /= 2) HG_TRY(number_each(m, GPU_FOLD_OWN_BY, h));
  return add_each(m, GPU_GET_OWN);
}

static hg_status reduce(const step_builder *m) {
  if (m->g->is_transposed) return reduce_along_y(m);
  return gpu_is_one_warp(m->g) ? reduce_in_warp(m) : reduce_in_block(m);
}

/* ---- scans: Hillis and Steele, strides 1, 2, 4, ... -------------------------------------------------------------- */

static hg_status scan_in_warp(const step_builder *m) {
  HG_TRY(add_each(m, GPU_OWN));
  if (m->g->can_end) HG_TRY(add(m, GPU_NONE_ENDED));
  for (uint32_t s = 1; s < m->g->info.max_threads; s *= 2) HG_TRY(number_each(m, GPU_STRIDE_LANES, s));
  HG_TRY(add_each(m, GPU_GET_SCANNED));
  return scan_carefully(m);
}

/* Row j is the window that lies j warps before: for size = 1, 2, 4, ... and each multiple j of 2 size, row j becomes
 * row j + size + row j, if that exists. Each pair is added as soon as both are loaded. */
static hg_status add_windows(const step_builder *m, uint32_t value) {
  uint32_t rows = rows_of(m->g);
  for (uint32_t j = 0; j < rows; j++) {
    HG_TRY(add_number(m, GPU_ROW_BEFORE, value, j));
    for (uint32_t size = 1; j & size; size *= 2)
      HG_TRY(add_number(m, GPU_ADD_ROWS, value, (j + 1 - 2 * size) | size << 16));
  }
  for (uint32_t size = 1; size < rows; size *= 2) { /* the last pair of each size, if it is incomplete */
    uint32_t left = rows & ~(2 * size - 1);
    if (left + size < rows) HG_TRY(add_number(m, GPU_ADD_ROWS, value, left | size << 16));
  }
  return HG_OK;
}

static hg_status scan_in_block(const step_builder *m) {
  HG_TRY(add_each(m, GPU_OWN));
  for (uint32_t s = 1; s < GPU_FOLD_LANES; s *= 2) {
    HG_TRY(number_each(m, GPU_PUT_LAST, s));
    if (2 * s < GPU_FOLD_LANES) HG_TRY(number_each(m, GPU_STRIDE_LANES, s));
  }
  HG_TRY(add(m, GPU_SYNC));
  if (m->g->can_end) HG_TRY(add(m, GPU_NONE_ENDED));
  HG_TRY(add_each(m, GPU_OWN));
  for (uint32_t s = 1; s < GPU_FOLD_LANES; s *= 2) HG_TRY(number_each(m, GPU_STRIDE_ACROSS, s));
  if (m->g->memory.windows_in_places) HG_TRY(add(m, GPU_SYNC));
  HG_TRY(add_each(m, GPU_PUT_WINDOW));
  HG_TRY(add(m, GPU_SYNC));
  for (uint32_t i = 0; i < m->x->count; i++) {
    HG_TRY(add_windows(m, m->x->value[i]));
    HG_TRY(add_value(m, GPU_GET_SUM, m->x->value[i]));
  }
  if (m->g->memory.windows_in_places) HG_TRY(add(m, GPU_SYNC));
  return scan_carefully(m);
}

hg_status hg_gpu_collective(const gpu_plan *g, uint32_t number, hg_array *steps) {
  const step_builder m = {g, gpu_exchange_at(g, number), number, steps};
  HG_TRY(add(&m, GPU_EXCHANGE));
  if (!m.x->is_scan) HG_TRY(reduce(&m));
  else HG_TRY(gpu_is_one_warp(g) ? scan_in_warp(&m) : scan_in_block(&m));
  return add(&m, GPU_END_EXCHANGE);
}
