/* operand.c - instructions of the current width, and operands that are not values of the program: constants, the
 * context. */
#include "backend/cpu/x86/x86_arith.h"

#include <stddef.h>

void hg_x86_v(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm) {
  hg_x86_vk(e, op, reg, vvvv, rm, 0, 0, 0);
}

void hg_x86_vi(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm, unsigned immediate) {
  hg_x86_vk(e, op, reg, vvvv, rm, immediate, 0, 0);
}

void hg_x86_vk(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm, unsigned immediate, unsigned mask,
               int zero) {
  e->a.last = (x86_vector_insn){.op = (uint16_t)op,
                                .width = e->width,
                                .is_scalar = e->lanes == 1 && op <= X86_vfnmadd231ps,
                                .reg = (uint8_t)reg,
                                .vvvv = (uint8_t)vvvv,
                                .rm = rm,
                                .immediate = (uint8_t)immediate,
                                .mask = (uint8_t)mask,
                                .zero = (uint8_t)zero};
  hg_x86_vector(&e->a, &e->a.last);
}

void hg_x86_x(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm) {
  e->a.last = (x86_vector_insn){.op = (uint16_t)op, .reg = (uint8_t)reg, .vvvv = (uint8_t)vvvv, .rm = rm};
  hg_x86_vector(&e->a, &e->a.last);
}

void hg_x86_k(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, unsigned rm) {
  x86_vector_insn insn = {.op = (uint16_t)op, .width = hg_x86_rows[op].form == X86_FORM_RVM, .reg = (uint8_t)reg,
                          .vvvv = (uint8_t)vvvv, .rm = x86_reg(rm)};
  hg_x86_vector(&e->a, &insn);
}

void hg_x86_kmem(x86_emit *e, unsigned op, unsigned reg, x86_rm rm) {
  x86_vector_insn insn = {.op = (uint16_t)op, .reg = (uint8_t)reg, .rm = rm};
  hg_x86_vector(&e->a, &insn);
}

/* AVX2 keeps the mask of the tail in the frame, where calls would save a register that holds no values. */
x86_rm hg_x86_tail_mask(const x86_emit *e) {
  return hg_x86_frame(offsetof(native_frame, vectors) + (NATIVE_MOST_REGISTERS - 1u) * e->vector_bytes);
}

/* Values that live in registers within one region never share them with another region's, so the others need not be
 * looked at. */
static int is_of_region(const x86_emit *e, uint32_t r, const native_step *step) {
  if (r == e->b->vector->regs.count) return 1;
  return vector_reg_at(e->b->vector, r)->last >= step->first && vector_reg_at(e->b->vector, r)->first < step->end;
}

void hg_x86_find_free_registers(x86_emit *e, const native_step *step) {
  uint32_t used = 0;
  for (uint32_t r = 0; r <= e->b->vector->regs.count; r++) {
    const native_location *location = native_location_of(e->b, r);
    if (!is_of_region(e, r, step)) continue;
    for (uint32_t k = 0;
         location->kind == NATIVE_REGISTERS && !location->is_mask && k < (uint32_t)location->copies * location->parts;
         k++)
      used |= 1u << location->reg[k];
  }
  e->free_registers = ((1u << e->b->target->vector_count) - 1) & ~used;
  e->residents[e->is_stream].count = 0;
}

/* Makes a constant resident if there is a free register and groups read the constant often: in a loop, if there are
 * loops. */
static unsigned make_resident(x86_emit *e, uint32_t place, int is_64) {
  x86_residents *residents = &e->residents[e->is_stream];
  int is_worth = !e->has_loops || e->index <= e->loops_until;
  if (e->free_registers == 0 || e->is_cold || !is_worth) return NATIVE_MOST_REGISTERS;
  uint8_t reg = 0;
  while (!(e->free_registers >> reg & 1)) reg++;
  e->free_registers &= e->free_registers - 1;
  residents->held[residents->count++] = (x86_resident){.place = place, .reg = reg, .is_64 = (uint8_t)is_64};
  return reg;
}

void hg_x86_load_residents(x86_emit *e, const x86_residents *residents) {
  for (uint32_t k = 0; k < residents->count; k++) {
    x86_rm from = x86_at(X86_POOL, (int32_t)(residents->held[k].place * 4));
    unsigned op = e->width == 1 ? X86_vload : residents->held[k].is_64 ? X86_vpbroadcastq : X86_vpbroadcastd;
    hg_x86_v(e, op, residents->held[k].reg, 0, from);
  }
}

static x86_rm pool_operand(x86_emit *e, uint32_t place, int is_64) {
  const x86_residents *held = &e->residents[e->is_stream];
  x86_rm rm = x86_at(X86_POOL, (int32_t)(place * 4));
  rm.broadcast = e->width == 2;
  if (e->is_tail || e->is_slow) return rm;
  for (uint32_t k = 0; k < held->count; k++)
    if (held->held[k].place == place) return x86_reg(held->held[k].reg);
  unsigned reg = make_resident(e, place, is_64);
  return reg < NATIVE_MOST_REGISTERS ? x86_reg(reg) : rm;
}

static uint32_t add_constant(x86_emit *e, uint64_t bits, int is_64) {
  uint32_t words[8], place = (uint32_t)e->pool.words.count;
  uint32_t count = e->width == 2 ? 2 : 8;
  if (!is_64 && e->width == 2) count = 1;
  uint32_t padding = is_64 && e->width == 2 ? place & 1 : 0;
  for (uint32_t i = 0; i < count; i++) words[i] = (uint32_t)(is_64 && i % 2 ? bits >> 32 : bits);
  if (hg_array_append(&e->a.allocator, &e->pool.words, NULL, padding) == NULL ||
      hg_array_append(&e->a.allocator, &e->pool.words, words, count) == NULL)
    e->a.no_memory = 1;
  return place + padding;
}

x86_rm hg_x86_constant(x86_emit *e, uint64_t bits, int is_64) {
  for (uint32_t i = 0; i < e->pool.own_count; i++)
    if (e->pool.own[i].bits == bits && e->pool.own[i].is_64 == is_64)
      return pool_operand(e, e->pool.own[i].place, is_64);
  uint32_t place = add_constant(e, bits, is_64);
  if (e->pool.own_count < sizeof e->pool.own / sizeof e->pool.own[0])
    e->pool.own[e->pool.own_count++] = (x86_own_constant){bits, place, is_64};
  return pool_operand(e, place, is_64);
}

x86_rm hg_x86_bytes_constant(x86_emit *e, uint64_t low, uint64_t high) {
  enum { IS_BYTES = 2 }; /* in place of is_64; different tables have different lower halves */
  const uint32_t words[4] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)};
  for (uint32_t i = 0; i < e->pool.own_count; i++)
    if (e->pool.own[i].bits == low && e->pool.own[i].is_64 == IS_BYTES)
      return x86_at(X86_POOL, (int32_t)(e->pool.own[i].place * 4));
  uint32_t place = (uint32_t)e->pool.words.count;
  for (uint32_t i = 0; i < e->vector_bytes; i += sizeof words)
    if (hg_array_append(&e->a.allocator, &e->pool.words, words, 4) == NULL) e->a.no_memory = 1;
  if (e->pool.own_count < sizeof e->pool.own / sizeof e->pool.own[0])
    e->pool.own[e->pool.own_count++] = (x86_own_constant){low, place, IS_BYTES};
  return x86_at(X86_POOL, (int32_t)(place * 4));
}

x86_rm hg_x86_register_constant(x86_emit *e, uint32_t reg) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  if (e->pool.place_of[reg] == 0)
    e->pool.place_of[reg] = 1 + add_constant(e, hg_native_widen(r->type, r->bits), hg_x86_is_64(e, reg));
  return pool_operand(e, e->pool.place_of[reg] - 1, hg_x86_is_64(e, reg));
}

int hg_x86_constant_bits(const x86_emit *e, uint32_t reg, uint64_t *bits) {
  if (reg >= e->b->vector->regs.count || vector_reg_at(e->b->vector, reg)->kind != VECTOR_CONSTANT) return 0;
  *bits = vector_reg_at(e->b->vector, reg)->bits;
  return 1;
}

x86_rm hg_x86_context(x86_emit *e, size_t offset, int is_64, unsigned scratch) {
  x86_rm rm = x86_at(X86_CONTEXT, (int32_t)offset);
  if (e->width == 2) {
    rm.broadcast = 1;
    return rm;
  }
  hg_x86_v(e, is_64 ? X86_vpbroadcastq_vex : X86_vpbroadcastd, scratch, 0, rm);
  return x86_reg(scratch);
}

void hg_x86_count_up(x86_emit *e, unsigned reg, unsigned from, uint32_t first, int is_64) {
  uint32_t element = is_64 ? 8 : 4;
  int32_t place = (int32_t)(e->pool.iota_place * 4 + first * element);
  if (is_64) place += (int32_t)(e->pool.iota64_place - e->pool.iota_place) * 4;
  x86_rm iota = x86_at(X86_POOL, place);
  if (e->width == 2) hg_x86_v(e, is_64 ? X86_vpbroadcastq_g : X86_vpbroadcastd_g, reg, 0, x86_reg(from));
  else {
    hg_x86_x(e, is_64 ? X86_vmovq_from_g : X86_vmovd_from_g, reg, 0, x86_reg(from));
    hg_x86_v(e, is_64 ? X86_vpbroadcastq_vex : X86_vpbroadcastd, reg, 0, x86_reg(reg));
  }
  hg_x86_v(e, is_64 ? X86_vpaddq : X86_vpaddd, reg, reg, iota);
}

int32_t hg_x86_place_offset(size_t symbol, size_t member) {
  return (int32_t)(offsetof(native_context, place) + symbol * sizeof(native_place) + member);
}

void hg_x86_extend(x86_emit *e, uint8_t type, unsigned reg) {
  if (!x86_is_narrow(type) || !atlas_is_integer((atlas_type)type)) return;
  unsigned bits = atlas_type_bits((atlas_type)type);
  if (atlas_kind((atlas_type)type) == ATLAS_KIND_UINT) {
    hg_x86_v(e, X86_vpandd, reg, reg, hg_x86_constant(e, atlas_mask((atlas_type)type), 0));
    return;
  }
  hg_x86_vi(e, X86_vpslld_imm, 0, reg, x86_reg(reg), 32 - bits);
  hg_x86_vi(e, X86_vpsrad_imm, 0, reg, x86_reg(reg), 32 - bits);
}
