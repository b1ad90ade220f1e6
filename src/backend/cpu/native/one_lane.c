/* one_lane.c - which programs run one lane after the other, in general registers.
 *
 * A vector of lanes goes around a divergent loop as often as its slowest lane, and a gather reads its elements one at a
 * time. So a divergent loop that gathers and computes little beside is faster for one lane at a time, whose branches
 * the processor foresees. Not where an element tells which one is next, as in lists and trees: one lane waits for each,
 * a vector for all of its lanes at once. A program that knows its block keeps its vectors. */
#include "backend/cpu/native/native.h"

#include "backend/cpu/engine/cpu_tuning.h"
#include "base/error.h"

#include <string.h>

static int is_uniform(const hg_vector *v, uint32_t r) {
  const vector_reg *reg = vector_reg_at(v, r);
  return reg->kind == VECTOR_CONSTANT || reg->kind == VECTOR_SCALAR || reg->uniform;
}

static int is_sum_with(const hg_vector *v, const vector_insn *insn, uint32_t r) {
  if (insn->op != ATLAS_OP_add) return 0;
  return (insn->s[0] == r && is_uniform(v, insn->s[1])) || (insn->s[1] == r && is_uniform(v, insn->s[0]));
}

/* 1 if the lanes that are in a loop count with this register in step: it begins with one value for all, and grows by
 * one. Lanes that have left keep theirs. */
static int is_in_step(const hg_vector *v, uint32_t r) {
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (insn->d != r || is_sum_with(v, insn, r)) continue;
    if (insn->op != VECTOR_MOVE) return 0;
    uint32_t made = vector_reg_at(v, insn->s[0])->first;
    int grows = vector_reg_at(v, insn->s[0])->kind == VECTOR_VARIES && is_sum_with(v, vector_insn_at(v, made), r);
    if (!grows && !is_uniform(v, insn->s[0])) return 0;
  }
  return 1;
}

/* 1 if an access reads or writes elements anywhere in memory. */
static int is_gather(const hg_vector *v, const vector_insn *insn) {
  if (!vector_is_primitive(insn->op) || insn->mode != ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY) return 0;
  unsigned flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE)) || insn->flags & (VECTOR_LANE | VECTOR_CONTIGUOUS | VECTOR_SAME)) return 0;
  uint32_t index = insn->s[0];
  return vector_reg_at(v, index)->kind == VECTOR_VARIES && !is_uniform(v, index) && !is_in_step(v, index);
}

static int reads_any(const hg_vector *v, const vector_insn *insn, const uint8_t *found) {
  for (int k = 0; k < 4; k++)
    if (insn->s[k] < v->regs.count && found[insn->s[k]]) return 1;
  return 0;
}

/* 1 if the index of load i, of a buffer, depends on what it gave in the round before, in the loop that ends at `back`.
 * `found`: a byte for each register. */
static int is_chain(const hg_vector *v, uint32_t i, uint32_t back, uint8_t *found) {
  const vector_insn *load = vector_insn_at(v, i);
  if (atlas_op_flags(load->op) & (ATLAS_STORE | ATLAS_SPACE_LOCAL)) return 0;
  memset(found, 0, v->regs.count);
  found[load->d] = 1;
  for (int changes = 1; changes && !found[load->s[0]];) {
    changes = 0;
    for (uint32_t k = vector_insn_at(v, back)->target; k < back; k++) {
      const vector_insn *insn = vector_insn_at(v, k);
      if (insn->d >= v->regs.count || found[insn->d] || !reads_any(v, insn, found)) continue;
      changes = found[insn->d] = 1;
    }
  }
  return found[load->s[0]];
}

/* The gathers of the loop that ends at `back`. */
static uint32_t count_gathers(const hg_vector *v, uint32_t back, uint8_t *found) {
  uint32_t first = vector_insn_at(v, back)->target, count = 0;
  for (uint32_t k = first; k < back; k++) {
    if (!is_gather(v, vector_insn_at(v, k))) continue;
    if (back - first > CPU_QUICK_LOOP_INSNS || !is_chain(v, k, back, found)) count++;
  }
  return count;
}

/* The arithmetic of that loop, which a vector does for all its lanes at once. */
static uint32_t count_arithmetic(const hg_vector *v, uint32_t back) {
  uint32_t count = 0;
  for (uint32_t k = vector_insn_at(v, back)->target; k < back; k++) {
    const vector_insn *insn = vector_insn_at(v, k);
    if (!vector_is_primitive(insn->op) || insn->d >= v->regs.count) continue;
    count += atlas_op_flags(insn->op) & ATLAS_PURE && vector_reg_at(v, insn->d)->type != SSA_PREDICATE;
  }
  return count;
}

static int is_loop(const vector_insn *insn, uint32_t i) { return vector_is_jump(insn->op) && insn->target <= i; }

static int is_divergent(const hg_vector *v, const vector_insn *back) {
  return back->op == VECTOR_JUMP_ANY && back->s[0] < VECTOR_ALL && !vector_reg_at(v, back->s[0])->uniform;
}

/* How many loops there are around the one that ends at i. */
static uint32_t depth_of(const hg_vector *v, uint32_t i) {
  uint32_t depth = 0, head = vector_insn_at(v, i)->target;
  for (uint32_t k = i + 1; k < v->insns.count; k++) {
    const vector_insn *insn = vector_insn_at(v, k);
    depth += is_loop(insn, k) && insn->target <= head;
  }
  return depth < CPU_SPILL_DEPTH ? depth : CPU_SPILL_DEPTH;
}

int hg_native_may_run_lanes(const hg_vector *v) {
  return !v->sees_blocks && !v->sees_coordinates && !v->sees_shared && !v->has_block_ops && !v->counts_resonance;
}

hg_status hg_native_prefers_lanes(const hg_vector *v, int *prefers) {
  uint64_t gathers = 0, arithmetic = 0; /* weighted by how often they run, about */
  *prefers = 0;
  if (!hg_native_may_run_lanes(v) || v->insns.count > CPU_UNIFORM_INSNS) return HG_OK;
  uint8_t *found = hg_allocate(&v->allocator, v->regs.count, 1);
  if (found == NULL) return hg_fail_memory("a choice of code", v->regs.count);
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *back = vector_insn_at(v, i);
    if (!is_loop(back, i) || !is_divergent(v, back)) continue;
    uint32_t log = CPU_SPILL_LOG_TRIPS * depth_of(v, i);
    gathers += (uint64_t)count_gathers(v, i, found) << log;
    arithmetic += (uint64_t)count_arithmetic(v, i) << log;
  }
  hg_release(&v->allocator, found);
  *prefers = gathers > 0 && arithmetic <= CPU_ARITHMETIC_A_GATHER * gathers;
  return HG_OK;
}
