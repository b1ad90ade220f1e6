/* collective.c - reductions, scans and votes of a block, in threadgroup memory, in the ISA's order.
 *
 * A lane that has ended has left its thread, and takes part in no barrier. Shared memory has a byte for each lane, 1 if
 * it has ended, and a word, 1 if any has. Where that is not 0 the lowest lane that is left does all of a collective. */
#include "backend/metal/msl/msl.h"

enum { ENDED = 1, ABSENT = 2 }; /* in a lane's byte; absent: it has no value, either */

void hg_msl_barrier(msl *m) {
  hg_msl_line(m, "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);");
}

/* A slot for each lane of the widest type; of votes a word. */
uint32_t hg_msl_lay_out_places(msl *m) {
  const gpu_plan *g = m->plan;
  const gpu_step *steps = g->part[GPU_OUTSIDE].steps.data;
  uint32_t bytes = 0;
  for (size_t i = 0; i < g->part[GPU_OUTSIDE].steps.count; i++)
    if (steps[i].op == GPU_VOTE && bytes == 0) bytes = 16;
  for (size_t x = 0; x < g->exchange.count; x++)
    for (uint32_t i = 0; i < gpu_exchange_at(g, (uint32_t)x)->count; i++) {
      uint32_t needed = gpu_place_bytes(g, msl_insn(m, gpu_exchange_at(g, (uint32_t)x)->value[i])->type);
      if (needed > bytes) bytes = needed;
    }
  m->place = (g->memory.zeroed_bytes + 15) / 16 * 16;
  return m->place + bytes;
}

/* ---- a lane for all ---------------------------------------------------------------------------------------------- */

/* place[i] = place[left] op place[right], where a missing side counts for nothing. */
static void combine_present(msl *m, uint16_t op, uint8_t type, const char *left, const char *right) {
  hg_msl_line(m, "bool has_left = (ended[%s] & %d) == 0, has_right = (ended[%s] & %d) == 0;", left, ABSENT, right,
              ABSENT);
  hg_msl_open(m, "if (has_left && has_right)");
  hg_msl_combine(m, op, type, "place[i]", hg_msl_name("place[%s]", left).text, hg_msl_name("place[%s]", right).text);
  hg_msl_close(m, " else if (has_left || has_right) {");
  m->depth++;
  hg_msl_line(m, "place[i] = has_left ? place[%s] : place[%s];", left, right);
  hg_msl_close(m, "");
  hg_msl_line(m, "ended[i] = uchar((ended[i] & %d) | (has_left || has_right ? 0 : %d));", ENDED, ABSENT);
}

/* Of the lanes that are left, the lowest alone. */
static void open_elected(msl *m) {
  hg_msl_line(m, "threadgroup uchar *ended = shared + %u;", (unsigned)m->plan->memory.ended);
  hg_msl_line(m, "uint elected = 0;");
  hg_msl_line(m, "while ((ended[elected] & %d) != 0) elected++;", ENDED);
  hg_msl_barrier(m);
  hg_msl_open(m, "if (block_lane == elected)");
  hg_msl_line(m, "for (uint i = 0; i < block_lanes; i++) ended[i] = uchar(ended[i] != 0 ? %d : 0);", ENDED | ABSENT);
}

static void close_elected(msl *m) {
  hg_msl_close(m, "");
  hg_msl_barrier(m);
}

static void fold_present(msl *m, uint16_t op, uint8_t type) {
  open_elected(m);
  hg_msl_open(m, "for (uint h = half_of(block_lanes); h > 0; h >>= 1)");
  hg_msl_open(m, "for (uint i = 0; i < h && i + h < block_lanes; i++)");
  combine_present(m, op, type, "i", "i + h");
  hg_msl_close(m, "");
  hg_msl_close(m, "");
  close_elected(m);
}

static void scan_present(msl *m, uint8_t type) {
  open_elected(m);
  hg_msl_open(m, "for (uint s = 1; s < block_lanes; s <<= 1)");
  hg_msl_open(m, "for (uint i = block_lanes - 1; i >= s; i--)");
  combine_present(m, ATLAS_OP_add, type, "i - s", "i");
  hg_msl_close(m, "");
  hg_msl_close(m, "");
  close_elected(m);
}

/* ---- all lanes --------------------------------------------------------------------------------------------------- */

static void fold_halves(msl *m, uint16_t op, uint8_t type) {
  hg_msl_open(m, "for (uint h = half_of(block_lanes); h > 0; h >>= 1)");
  hg_msl_open(m, "if (block_lane < h && block_lane + h < block_lanes)");
  hg_msl_combine(m, op, type, "place[block_lane]", "place[block_lane]", "place[block_lane + h]");
  hg_msl_close(m, "");
  hg_msl_barrier(m);
  hg_msl_close(m, "");
}

/* Strides 1, 2, 4, ... as Hillis and Steele have them. */
static void scan_strides(msl *m, uint8_t type) {
  const char *word = hg_msl_variable_type(type);
  hg_msl_open(m, "for (uint s = 1; s < block_lanes; s <<= 1)");
  hg_msl_line(m, "%s own = place[block_lane], left = block_lane >= s ? place[block_lane - s] : 0;", word);
  hg_msl_barrier(m);
  hg_msl_open(m, "if (block_lane >= s)");
  hg_msl_combine(m, ATLAS_OP_add, type, "place[block_lane]", "left", "own");
  hg_msl_close(m, "");
  hg_msl_barrier(m);
  hg_msl_close(m, "");
}

static uint16_t combining_op(uint16_t op) {
  switch (op) {
  case ATLAS_OP_reduce_mul: return ATLAS_OP_mul;
  case ATLAS_OP_reduce_min: return ATLAS_OP_min;
  case ATLAS_OP_reduce_max: return ATLAS_OP_max;
  default: return ATLAS_OP_add;
  }
}

static void combine_all(msl *m, const ssa_insn *insn, int is_scan, int present) {
  if (is_scan) present ? scan_present(m, insn->type) : scan_strides(m, insn->type);
  else present ? fold_present(m, combining_op(insn->op), insn->type)
               : fold_halves(m, combining_op(insn->op), insn->type);
}

static void take_result(msl *m, uint32_t value, int is_scan) {
  int is_exclusive = msl_insn(m, value)->op == ATLAS_OP_scan_excl;
  msl_name there = m->plan->can_end ? hg_msl_name(" && (shared[%u + block_lane - 1] & %d) == 0",
                                                  (unsigned)m->plan->memory.ended, ABSENT)
                                    : hg_msl_name("%s", "");
  if (!is_scan) hg_msl_line(m, "v%u = place[0];", (unsigned)value);
  else if (!is_exclusive) hg_msl_line(m, "v%u = place[block_lane];", (unsigned)value);
  else
    hg_msl_line(m, "v%u = block_lane > 0%s ? place[block_lane - 1] : 0;", (unsigned)value, there.text);
}

static void exchange_value(msl *m, uint32_t value) {
  const ssa_insn *insn = msl_insn(m, value);
  int is_scan = gpu_is_scan(insn->op), may_lack = m->plan->can_end;
  const char *word = hg_msl_variable_type(insn->type);
  hg_msl_scope(m);
  hg_msl_line(m, "threadgroup %s *place = (threadgroup %s *)(shared + %u);", word, word, (unsigned)m->place);
  hg_msl_line(m, "place[block_lane] = %s;", hg_msl_argument(m, value, 0).text);
  hg_msl_barrier(m);
  if (may_lack) hg_msl_open(m, "if (*(threadgroup uint *)(shared + %u) == 0)", (unsigned)m->plan->memory.ended_any);
  combine_all(m, insn, is_scan, 0);
  if (may_lack) {
    hg_msl_close(m, " else {");
    m->depth++;
    combine_all(m, insn, is_scan, 1);
    hg_msl_close(m, "");
  }
  take_result(m, value, is_scan);
  hg_msl_barrier(m);
  hg_msl_close(m, "");
}

void hg_msl_exchange(msl *m, const gpu_exchange *exchange) {
  for (uint32_t i = 0; i < exchange->count; i++) exchange_value(m, exchange->value[i]);
}

/* All is not any lane's no. */
void hg_msl_vote(msl *m, uint32_t value) {
  int is_any = msl_insn(m, value)->op == ATLAS_OP_vote_any;
  hg_msl_scope(m);
  hg_msl_line(m, "threadgroup atomic_uint *place = (threadgroup atomic_uint *)(shared + %u);", (unsigned)m->place);
  hg_msl_line(m, "atomic_store_explicit(place, 0u, memory_order_relaxed);");
  hg_msl_barrier(m);
  hg_msl_line(m, "if (%s%s) atomic_store_explicit(place, 1u, memory_order_relaxed);", is_any ? "" : "!",
              hg_msl_argument(m, value, 0).text);
  hg_msl_barrier(m);
  hg_msl_line(m, "v%u = atomic_load_explicit(place, memory_order_relaxed) %s 0;", (unsigned)value,
              is_any ? "!=" : "==");
  hg_msl_barrier(m);
  hg_msl_close(m, "");
}
