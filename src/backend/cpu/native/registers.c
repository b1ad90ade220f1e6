/* registers.c - register allocation by linear scan (Poletto and Sarkar, ACM TOPLAS 21(5), 1999): values are taken in
 * the order of their definitions. If no register is free, one value is spilled to the frame for its whole live range:
 * the one whose range ends last or, in programs with loops, the one that is used least often. */
#include "backend/cpu/native/native_plan.h"

#include <string.h>

static uint32_t piece_count(const native_location *location) { return (uint32_t)location->copies * location->parts; }

static uint32_t *free_set(native_plan *p, const native_location *location) {
  return location->is_mask ? &p->free_masks : &p->free_vectors;
}

static uint32_t count_bits(uint32_t set) {
  set -= set >> 1 & 0x55555555;
  set = (set & 0x33333333) + (set >> 2 & 0x33333333);
  return ((set + (set >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

static uint8_t pop_lowest(uint32_t *set) {
  uint8_t reg = 0;
  while (!(*set >> reg & 1)) reg++;
  *set &= *set - 1;
  return reg;
}

static void free_registers(native_plan *p, const native_location *location) {
  for (uint32_t k = 0; k < piece_count(location); k++) *free_set(p, location) |= 1u << location->reg[k];
}

static void activate(native_plan *p, uint32_t r) {
  p->place[r] = p->active_count;
  p->active[p->active_count++] = r;
}

static void deactivate(native_plan *p, uint32_t r) {
  uint32_t last = p->active[--p->active_count];
  p->active[p->place[r]] = last;
  p->place[last] = p->place[r];
  p->place[r] = VECTOR_NONE;
}

static void spill(native_plan *p, uint32_t r) {
  native_location *location = &p->b->locations[r];
  if (r < p->v->regs.count && p->b->slices > 0 && hg_native_is_element(p->b, r)) {
    location->kind = NATIVE_ELEMENTS;
    return;
  }
  location->kind = NATIVE_SLOT;
  location->offset = p->last_slot;
  p->last_slot += piece_count(location) * (location->is_mask ? 8 : p->b->target->vector_bytes);
  if (location->is_mask) p->last_slot = (p->last_slot + 63u) & ~63u;
}

static uint32_t last_use(const native_plan *p, uint32_t r) {
  return r < p->v->regs.count ? vector_reg_at(p->v, r)->last : p->insn_count - 1;
}

static int is_cold(const native_plan *p, uint32_t r) {
  return r < p->v->regs.count && p->cold[vector_reg_at(p->v, r)->first];
}

/* In blocks, a value that the next instruction reads for the last time keeps its register. Otherwise each sum of a
 * chain of products, for example, would pass through memory to the next. */
static uint32_t spill_cost(const native_plan *p, uint32_t r) {
  int is_short =
      r < p->v->regs.count && p->v->has_block_ops && vector_reg_at(p->v, r)->last - vector_reg_at(p->v, r)->first <= 1;
  is_short |= r < p->v->regs.count && vector_reg_at(p->v, r)->bits == NATIVE_STAYS;
  return is_short ? UINT32_MAX : p->spill_cost[r];
}

/* The value to spill: r or the active value of the same kind of registers that is used least often, and of those the
 * one whose live range ends last. */
static uint32_t spill_candidate(const native_plan *p, uint32_t r) {
  uint32_t found = r, least = spill_cost(p, r);
  for (uint32_t k = 0; k < p->active_count; k++) {
    uint32_t other = p->active[k], cost = spill_cost(p, other);
    if (p->b->locations[other].is_mask != p->b->locations[r].is_mask || is_cold(p, other) < is_cold(p, r)) continue;
    if (cost > least || (cost == least && last_use(p, other) <= last_use(p, found))) continue;
    found = other;
    least = cost;
  }
  return found;
}

/* 1 if only the next instruction reads it and can take it as an operand in memory. */
static int is_operand(const native_plan *p, uint32_t r) {
  return r < p->v->regs.count && p->b->slices > 0 && hg_native_is_element(p->b, r) &&
         vector_reg_at(p->v, r)->last == vector_reg_at(p->v, r)->first + 1;
}

static void begin_value(native_plan *p, uint32_t r) {
  native_location *location = &p->b->locations[r];
  if (is_operand(p, r)) {
    spill(p, r);
    return;
  }
  uint32_t *set = free_set(p, location), pieces = piece_count(location);
  while (count_bits(*set) < pieces) {
    uint32_t other = spill_candidate(p, r);
    if (other != r) {
      free_registers(p, &p->b->locations[other]);
      deactivate(p, other);
    }
    spill(p, other);
    if (other == r) return;
  }
  for (uint32_t k = 0; k < pieces; k++) location->reg[k] = pop_lowest(set);
  activate(p, r);
}

/* A source whose live range ends here passes its registers to the result. So a result overlaps a source in the same
 * copies, or not at all. */
static int reuse_source_registers(native_plan *p, uint32_t i, uint32_t r) {
  const vector_insn *insn = vector_insn_at(p->v, i);
  native_location *location = &p->b->locations[r];
  if (insn->d != r) return 0;
  for (int s = 0; s < 4; s++) {
    uint32_t source = insn->s[s];
    if (source >= p->v->regs.count || source == r || vector_reg_at(p->v, source)->last != i) continue;
    native_location *from = &p->b->locations[source];
    if (vector_reg_at(p->v, source)->kind != VECTOR_VARIES || from->kind != NATIVE_REGISTERS) continue;
    if (from->is_mask != location->is_mask || from->copies != location->copies || from->parts != location->parts)
      continue;
    if (p->place[source] == VECTOR_NONE) continue; /* the source stands twice and has been reused already */
    memcpy(location->reg, from->reg, sizeof location->reg);
    deactivate(p, source);
    activate(p, r);
    return 1;
  }
  return 0;
}

static void end_value(native_plan *p, uint32_t r) {
  if (p->place[r] == VECTOR_NONE) return;
  deactivate(p, r);
  free_registers(p, &p->b->locations[r]);
}

void hg_native_allocate(native_plan *p) {
  const native_target *t = p->b->target;
  p->free_vectors = t->vector_count >= 32 ? UINT32_MAX : (1u << t->vector_count) - 1;
  p->free_masks = ((1u << t->mask_count) - 1) << t->mask_first;
  for (uint32_t i = 0; i < p->insn_count; i++) {
    for (uint32_t r = p->starts[i]; r != VECTOR_NONE; r = p->next_start[r])
      if (!reuse_source_registers(p, i, r)) begin_value(p, r);
    for (uint32_t r = p->ends[i]; r != VECTOR_NONE; r = p->next_end[r]) end_value(p, r);
  }
}
