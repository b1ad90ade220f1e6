/* steps.c - the steps of a kernel: cuts its program into regions, instructions of the whole block, and jumps that the
 * block takes together. */
#include "backend/cpu/native/native_plan.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "base/error.h"

#include <string.h>

/* Cuts around an instruction, which becomes a step of its own. */
static void cut_out(native_plan *p, uint32_t i) {
  p->cut[i] = 1;
  if (i + 1 < p->insn_count) p->cut[i + 1] = 1;
}

static void number_steps(native_plan *p) {
  uint32_t step = 0;
  for (uint32_t i = 0; i < p->insn_count; i++) {
    if (i > 0 && p->cut[i]) step++;
    p->step_of[i] = step;
  }
}

/* A jump from one step to another is taken by the whole block: it becomes a step, and its label begins one. That may
 * cut other loops in two, hence the fixed point. A group whose lanes have all ended leaves its region; the block ends
 * with the last region. */
static int cut_jumps(native_plan *p) {
  int changed = 0;
  for (uint32_t i = 0; i < p->insn_count; i++) {
    const vector_insn *insn = vector_insn_at(p->v, i);
    if (!vector_is_jump(insn->op) || p->step_of[i] == p->step_of[insn->target] || insn->flags & VECTOR_LAST) continue;
    if (p->cut[i] && p->cut[i + 1] && p->cut[insn->target]) continue;
    cut_out(p, i);
    p->cut[insn->target] = 1;
    changed = 1;
  }
  return changed;
}

int hg_native_takes_long(const hg_vector *v) {
  return v->most_steps > CPU_SHORT_STEPS;
}

void hg_native_find_polls(const hg_vector *v, uint8_t *polls) {
  memset(polls, 0, v->insns.count);
  for (uint32_t i = 0; i < v->insns.count && hg_native_takes_long(v); i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    uint32_t target = vector_is_jump(insn->op) ? hg_native_target_of(v, insn) : i;
    if (target < i) polls[target] = 1;
  }
}

void hg_native_find_repeated(const hg_vector *v, uint8_t *repeated) {
  uint32_t head = UINT32_MAX; /* where the first loop begins that ends at i or behind it */
  for (uint32_t i = (uint32_t)v->insns.count; i-- > 0;) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (vector_is_jump(insn->op) && insn->target < head && insn->target <= i) head = insn->target;
    repeated[i] = head <= i;
  }
}

int hg_native_needs_no_code(const hg_vector *v, uint32_t i) {
  const vector_insn *insn = vector_insn_at(v, i);
  if (insn->op == VECTOR_LABEL || insn->op == VECTOR_END || insn->op == NATIVE_ACTIVE_LANES) return 1;
  if (v->loses_lanes) return 0;
  if (insn->flags & VECTOR_LAST && insn->op == VECTOR_JUMP_NONE) return 1;
  return insn->op == VECTOR_STEP && vector_reg_at(v, insn->d)->last == i + 1 && insn->mask == VECTOR_ALL &&
         insn[1].op == VECTOR_JUMP_NONE && insn[1].flags & VECTOR_LAST;
}

/* 1 if an instruction only has block-uniform results, so that any group can run it for all. */
static int is_of_block(const hg_vector *v, uint32_t i) {
  const vector_insn *insn = vector_insn_at(v, i);
  if (hg_native_needs_no_code(v, i)) return 1;
  uint32_t r = vector_is_jump(insn->op) ? insn->s[0] : insn->d;
  if (insn->mask != VECTOR_ALL || insn->flags & VECTOR_LAST) return 0;
  if (insn->op == VECTOR_JUMP) return 1;
  if (r >= v->regs.count || vector_reg_at(v, r)->uniform != NATIVE_BLOCK_UNIFORM) return 0;
  return !(atlas_op_flags(insn->op) & ATLAS_LOAD); /* a load may fault */
}

static hg_status add_step(native_plan *p, uint32_t first, uint32_t end) {
  uint16_t op = vector_insn_at(p->v, first)->op;
  int is_cut_out = end == first + 1 && p->v->has_block_ops;
  native_step step = {.kind = NATIVE_REGION, .first = first, .end = end, .limit = VECTOR_NONE};
  step.is_empty = 1;
  step.is_once = p->v->has_block_ops;
  for (uint32_t i = first; i < end; i++) {
    step.is_empty &= (uint8_t)hg_native_needs_no_code(p->v, i);
    step.is_once &= (uint8_t)is_of_block(p->v, i);
    if (vector_insn_at(p->v, i)->op == NATIVE_ACTIVE_LANES) step.limit = vector_insn_at(p->v, i)->s[0];
  }
  if (hg_is_block_op(op)) step.kind = NATIVE_BLOCK_OP;
  else if (is_cut_out && vector_is_jump(op)) {
    step.kind = NATIVE_BLOCK_JUMP;
    step.target = p->step_of[vector_insn_at(p->v, first)->target];
  }
  if (hg_array_append(&p->b->allocator, &p->b->steps, &step, 1) == NULL) return hg_fail_memory("machine code", 0);
  return HG_OK;
}

hg_status hg_native_cut(native_plan *p) {
  if (p->v->has_block_ops) {
    p->cut[0] = 1;
    for (uint32_t i = 0; i < p->insn_count; i++)
      if (hg_is_block_op(vector_insn_at(p->v, i)->op)) cut_out(p, i);
    do number_steps(p);
    while (cut_jumps(p));
  }
  uint32_t first = 0;
  for (uint32_t i = 1; i <= p->insn_count; i++) {
    if (i < p->insn_count && !p->cut[i]) continue;
    HG_TRY(add_step(p, first, i));
    first = i;
  }
  return HG_OK;
}

hg_status hg_native_find_steps(native_build *b) {
  native_plan p = native_new_plan(b);
  uint64_t n = p.insn_count;
  p.step_of = hg_allocate(&b->allocator, 2 * n, sizeof *p.step_of);
  if (p.step_of == NULL) return hg_fail_memory("machine code", 2 * n * sizeof *p.step_of);
  p.cut = (uint8_t *)(p.step_of + n);
  b->steps.count = 0;
  hg_status status = hg_native_cut(&p);
  hg_release(&b->allocator, p.step_of);
  return status;
}
