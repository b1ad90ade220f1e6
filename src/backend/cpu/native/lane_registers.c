/* lane_registers.c - register allocation for code that runs one lane after the other: values are taken by what a spill
 * would cost, each gets a register that no other value needs where it is live, holes in its live range left to others.
 * A value that is moved to another, or from it, gets that one's register if it can: the move is no code then. */
#include "backend/cpu/native/native_plan.h"

#include "backend/cpu/engine/cpu_tuning.h"

#include <string.h>

typedef struct lane_plan {
  native_plan *p;
  uint8_t *busy;  /* per machine register and instruction: 1: a value is there behind the instruction */
  uint8_t *live;  /* per instruction: 1: the current value is live before it; scratch */
  uint8_t *after; /* the same behind it, or the instruction writes it */
  uint8_t *done;  /* per value: it has been given its place */
} lane_plan;

static int reads(const vector_insn *insn, uint32_t r) {
  return insn->s[0] == r || insn->s[1] == r || insn->s[2] == r || insn->s[3] == r;
}

/* One backward walk over the program; 1 if anything has changed. */
static int walk(const lane_plan *a, uint32_t r) {
  int changed = 0;
  for (uint32_t i = a->p->insn_count; i-- > 0;) {
    const vector_insn *insn = vector_insn_at(a->p->v, i);
    int goes_on = insn->op != VECTOR_JUMP && i + 1 < a->p->insn_count;
    int after = goes_on && a->live[i + 1];
    if (vector_is_jump(insn->op)) after |= a->live[insn->target];
    int before = reads(insn, r) || (after && insn->d != r);
    changed |= before != a->live[i];
    a->live[i] = (uint8_t)before;
    a->after[i] = (uint8_t)(after || insn->d == r);
  }
  return changed;
}

static int is_free(const lane_plan *a, uint32_t reg) {
  const uint8_t *busy = a->busy + (size_t)reg * a->p->insn_count;
  for (uint32_t i = 0; i < a->p->insn_count; i++)
    if (busy[i] && a->after[i]) return 0;
  return 1;
}

/* The register of a value that this one is moved to or from, if it is free; NATIVE_MOST_REGISTERS: none. */
static uint32_t moved_register(const lane_plan *a, uint32_t r) {
  for (uint32_t i = 0; i < a->p->insn_count; i++) {
    const vector_insn *insn = vector_insn_at(a->p->v, i);
    if (insn->op != VECTOR_MOVE || (insn->d != r && insn->s[0] != r)) continue;
    uint32_t other = insn->d == r ? insn->s[0] : insn->d;
    const native_location *location = &a->p->b->locations[other];
    if (!a->done[other] || location->kind != NATIVE_REGISTERS) continue;
    if (is_free(a, location->reg[0])) return location->reg[0];
  }
  return NATIVE_MOST_REGISTERS;
}

static int is_real_number(const vector_reg *reg) {
  return reg->kind == VECTOR_VARIES && (reg->type == ATLAS_f32 || reg->type == ATLAS_f64);
}

static uint32_t general_count(const native_build *b) {
  return b->target->general_count - (uint32_t)b->keeps_pool;
}

static void spill(native_plan *p, native_location *location) {
  location->kind = NATIVE_SLOT;
  location->offset = p->last_slot;
  p->last_slot += p->b->target->vector_bytes;
}

static void place(const lane_plan *a, uint32_t r) {
  native_plan *p = a->p;
  native_location *location = &p->b->locations[r];
  memset(a->live, 0, p->insn_count);
  while (walk(a, r)) continue;
  a->done[r] = 1;
  int is_real = is_real_number(vector_reg_at(p->v, r));
  uint32_t reg = moved_register(a, r), vectors = p->b->target->vector_count;
  uint32_t first = is_real ? 0 : vectors, end = is_real ? vectors : vectors + general_count(p->b);
  for (uint32_t k = first; k < end && reg == NATIVE_MOST_REGISTERS; k++)
    if (is_free(a, k)) reg = k;
  if (reg == NATIVE_MOST_REGISTERS) {
    spill(p, location);
    return;
  }
  location->reg[0] = (uint8_t)reg;
  for (uint32_t i = 0; i < p->insn_count; i++) a->busy[(size_t)reg * p->insn_count + i] |= a->after[i];
}

static void allocate(const lane_plan *a) {
  native_plan *p = a->p;
  for (uint32_t left = 1; left > 0;) {
    uint32_t next = VECTOR_NONE;
    left = 0;
    for (uint32_t r = 0; r < p->v->regs.count; r++) {
      if (a->done[r] || p->b->locations[r].kind != NATIVE_REGISTERS) continue;
      left++;
      if (next == VECTOR_NONE || p->spill_cost[r] > p->spill_cost[next]) next = r;
    }
    if (left > 0) place(a, next);
  }
}

/* A program that is too long for this, or that there is no memory for, has all its values in slots; and so has the
 * predicate of a lane that has not ended, which only slow paths and the lane's beginning name. */
void hg_native_allocate_lanes(native_plan *p) {
  uint64_t n = p->insn_count, values = p->v->regs.count;
  uint64_t registers = p->b->target->vector_count + (uint64_t)p->b->target->general_count;
  lane_plan a = {.p = p};
  if (n <= CPU_STRAIGHT_INSNS && values <= CPU_STRAIGHT_INSNS)
    a.busy = hg_allocate(&p->b->allocator, (registers + 2) * n + values + 1, 1);
  for (uint32_t r = 0; r < values; r++)
    if (is_real_number(vector_reg_at(p->v, r))) p->b->keeps_pool = 1;
  for (uint32_t r = a.busy == NULL ? 0 : (uint32_t)values; r <= values; r++)
    if (p->b->locations[r].kind == NATIVE_REGISTERS) spill(p, &p->b->locations[r]);
  if (a.busy == NULL) return;
  a.live = a.busy + registers * n;
  a.after = a.live + n;
  a.done = a.after + n;
  allocate(&a);
  hg_release(&p->b->allocator, a.busy);
}
