/* mask.c - results that are predicates, and jumps that test masks. With AVX-512 predicates are k registers of 16 bits,
 * otherwise vectors whose 32-bit elements are all ones or zero.
 *
 * k0 cannot be a mask, so it only holds intermediate results. k2 is for results, k1 for the instruction's mask. */
#include "backend/cpu/x86/x86_predicate.h"

#include "compiler/machine_ops.h"

#include <stddef.h>

enum { K_TEMPORARY = 0, K_MASK = 1 };

/* ---- writing ----------------------------------------------------------------------------------------------------- */

unsigned hg_x86_predicate_result(x86_emit *e, uint32_t copy, unsigned scratch) {
  const native_location *location = native_location_of(e->b, e->insn->d);
  return location->kind == NATIVE_REGISTERS && !hg_x86_merges(e) ? location->reg[location->copies == 1 ? 0 : copy]
                                                                 : scratch;
}

static void store_row(x86_emit *e, const native_location *location, uint32_t copy, unsigned reg) {
  unsigned vector = hg_x86_scratch(e, 3);
  x86_rm to = hg_x86_mask_row(e, location->offset, copy);
  if (x86_is_evex(e)) {
    x86_vector_insn load = {.op = X86_vload8, .reg = (uint8_t)vector, .mask = (uint8_t)reg, .zero = 1,
                            .rm = x86_at(X86_POOL, (int32_t)e->pool.ones_place * 4)};
    hg_x86_vector(&e->a, &load);
    x86_vector_insn store = {.op = X86_vstore8, .reg = (uint8_t)vector, .rm = to,
                             .mask = e->is_tail ? X86_TAIL_MASK : 0};
    hg_x86_vector(&e->a, &store);
    return;
  }
  if (e->is_tail) { /* the row continues with the lanes of another run */
    unsigned old = hg_x86_scratch(e, 1);
    hg_x86_load_mask_row(e, location->offset, copy, old);
    hg_x86_v(e, X86_vload, vector, 0, hg_x86_tail_mask(e));
    hg_x86_vi(e, X86_vblendvps, old, old, x86_reg(reg), vector << 4);
    reg = old;
  }
  hg_x86_vi(e, X86_vpsrld_imm, 0, vector, x86_reg(reg), 31);
  hg_x86_store_elements(e, ATLAS_u8, to, vector, 0, vector);
}

static unsigned merge(x86_emit *e, uint32_t copy, unsigned reg) {
  const native_location *location = native_location_of(e->b, e->insn->d);
  if (!x86_is_evex(e)) {
    unsigned mask = (unsigned)hg_x86_mask(e, copy, hg_x86_scratch(e, 1));
    unsigned old = hg_x86_fetch_predicate(e, location, copy, hg_x86_scratch(e, 2));
    unsigned to = location->kind == NATIVE_REGISTERS ? old : hg_x86_scratch(e, 2);
    hg_x86_vi(e, X86_vblendvps, to, old, x86_reg(reg), mask << 4);
    return to;
  }
  unsigned mask = (unsigned)hg_x86_mask(e, copy, K_MASK);
  unsigned old = hg_x86_fetch_predicate(e, location, copy, K_TEMPORARY);
  hg_x86_k(e, X86_kandnw, K_TEMPORARY, mask, old);
  hg_x86_k(e, X86_kandw, K_MASK, mask, reg);
  unsigned to = location->kind == NATIVE_REGISTERS ? old : K_MASK;
  hg_x86_k(e, X86_korw, to, K_TEMPORARY, K_MASK);
  return to;
}

static void store_location(x86_emit *e, const native_location *location, uint32_t copy, unsigned reg) {
  uint32_t piece = location->copies == 1 ? 0 : copy;
  if (location->kind == NATIVE_ROW && !location->is_uniform) store_row(e, location, copy, reg);
  else if (location->kind == NATIVE_ROW || location->kind == NATIVE_SLOT) {
    x86_rm to = x86_at(X86_FRAME, (int32_t)(location->offset + piece * (x86_is_evex(e) ? 8 : e->vector_bytes)));
    if (location->kind == NATIVE_ROW) to = x86_at(X86_ROWS, hg_x86_pending_block_uniform(e, location));
    if (x86_is_evex(e)) hg_x86_kmem(e, X86_kmovw_store, reg, to);
    else hg_x86_v(e, X86_vstore, reg, 0, to);
  } else if (location->kind == NATIVE_REGISTERS && location->reg[piece] != reg) {
    if (x86_is_evex(e)) hg_x86_k(e, X86_kmovw, location->reg[piece], 0, reg);
    else hg_x86_v(e, X86_vmove, location->reg[piece], 0, x86_reg(reg));
  }
}

void hg_x86_set_predicate_result(x86_emit *e, uint32_t copy, unsigned reg) {
  if (hg_x86_merges(e)) reg = merge(e, copy, reg);
  store_location(e, native_location_of(e->b, e->insn->d), copy, reg);
}

/* ---- instructions on predicates ---------------------------------------------------------------------------------- */

static unsigned first_scratch(const x86_emit *e) { return x86_is_evex(e) ? 1 : hg_x86_scratch(e, 0); }
static unsigned second_scratch(const x86_emit *e) { return x86_is_evex(e) ? 2 : hg_x86_scratch(e, 1); }

/* The scratch register that may hold a result: hg_x86_set_predicate_result changes the others. */
static unsigned result_scratch(const x86_emit *e) { return x86_is_evex(e) ? 2 : hg_x86_scratch(e, 0); }

static void write_logic(x86_emit *e, unsigned k_op, unsigned v_op, int is_not_first) {
  uint32_t copies = hg_x86_copies(e, e->insn->d);
  for (uint32_t c = 0; c < copies; c++) {
    unsigned a = hg_x86_predicate(e, e->insn->s[0], c, first_scratch(e));
    unsigned b = hg_x86_predicate(e, e->insn->s[1], c, second_scratch(e));
    unsigned to = hg_x86_predicate_result(e, c, result_scratch(e));
    unsigned left = is_not_first ? b : a, right = is_not_first ? a : b;
    if (x86_is_evex(e)) hg_x86_k(e, k_op, to, left, right);
    else hg_x86_v(e, v_op, to, left, x86_reg(right));
    hg_x86_set_predicate_result(e, c, to);
  }
}

static void write_unary(x86_emit *e, uint32_t source, int is_inverted) {
  uint32_t copies = hg_x86_copies(e, e->insn->d);
  for (uint32_t c = 0; c < copies; c++) {
    unsigned a = hg_x86_predicate(e, source, c, result_scratch(e));
    if (is_inverted) {
      unsigned to = hg_x86_predicate_result(e, c, result_scratch(e)), ones = second_scratch(e);
      if (x86_is_evex(e)) hg_x86_k(e, X86_knotw, to, 0, a);
      else {
        hg_x86_v(e, X86_vpcmpeqd, ones, ones, x86_reg(ones));
        hg_x86_v(e, X86_vpxord, to, ones, x86_reg(a));
      }
      a = to;
    }
    hg_x86_set_predicate_result(e, c, a);
  }
}

/* The other source, if one of the two is all lanes that the code has. */
static uint32_t other_than_all(const x86_emit *e, int is_not) {
  const uint32_t *s = e->insn->s;
  if (e->is_tail || hg_x86_loses_lanes(e)) return VECTOR_NONE;
  if (s[0] == VECTOR_ALL && s[1] != VECTOR_ALL) return s[1];
  return s[1] == VECTOR_ALL && !is_not && s[0] != VECTOR_ALL ? s[0] : VECTOR_NONE;
}

static void write_clear(x86_emit *e) {
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++)
    hg_x86_set_predicate_result(e, c,
                                hg_x86_constant_predicate(e, 0, hg_x86_predicate_result(e, c, result_scratch(e))));
}

/* ---- does any lane? ---------------------------------------------------------------------------------------------- */

/* 1 if a uniform value answers for all lanes, so that the mask does not matter. */
static int is_uniform_test(const x86_emit *e) {
  return e->insn->flags & VECTOR_AGREE && e->insn->s[0] < VECTOR_ALL && hg_x86_is_uniform(e, e->insn->s[0]);
}

/* 1 if instruction i (AVX-512) compares two uniform numbers for equality and only the jump after it reads the result:
 * compare and branch are fused, in general registers. */
static int compares_for_jump(const x86_emit *e, uint32_t i) {
  const vector_insn *insn = vector_insn_at(e->b->vector, i), *jump = insn + 1;
  if (!x86_is_evex(e) || e->loop.version != X86_NO_LOOP || !e->has_loops || i + 1 >= e->region_end) return 0;
  if ((insn->op != ATLAS_OP_set_eq && insn->op != ATLAS_OP_set_ne) || insn->flags & VECTOR_KEEP) return 0;
  if (insn->type2 != ATLAS_u32 && insn->type2 != ATLAS_i32) return 0;
  if ((jump->op != VECTOR_JUMP_ANY && jump->op != VECTOR_JUMP_NONE) || jump->s[0] != insn->d) return 0;
  const vector_reg *d = vector_reg_at(e->b->vector, insn->d);
  if (!(jump->flags & VECTOR_AGREE) || d->first != i || d->last != i + 1 || !d->uniform) return 0;
  return hg_x86_is_uniform(e, insn->s[0]) && hg_x86_is_uniform(e, insn->s[1]);
}

static void load_number(x86_emit *e, unsigned to, uint32_t reg) {
  x86_rm from = hg_x86_source(e, reg, 0, 0, hg_x86_scratch(e, 0));
  from.broadcast = 0;
  if (from.is_memory) hg_x86_load(&e->a, 0, to, from);
  else hg_x86_x(e, X86_vmovd_to_g, from.reg, 0, x86_reg(to));
}

int hg_x86_leaves_to_jump(x86_emit *e) { return compares_for_jump(e, e->index); }

int hg_x86_compare_for_jump(x86_emit *e, x86_condition *taken) {
  uint64_t bits;
  if (e->insn != vector_insn_at(e->b->vector, e->index) || e->index == 0) return 0;
  if (!compares_for_jump(e, e->index - 1)) return 0;
  const vector_insn *insn = vector_insn_at(e->b->vector, e->index - 1);
  load_number(e, X86_RAX, insn->s[0]);
  if (hg_x86_constant_bits(e, insn->s[1], &bits) && bits == 0) hg_x86_test(&e->a, 0, X86_RAX, X86_RAX);
  else {
    load_number(e, X86_RCX, insn->s[1]);
    hg_x86_alu_rm(&e->a, X86_CMP, 0, X86_RAX, x86_reg(X86_RCX));
  }
  int is_any = e->insn->op == VECTOR_JUMP_ANY;
  *taken = is_any == (insn->op == ATLAS_OP_set_eq) ? X86_EQUAL : X86_NOT_EQUAL;
  return 1;
}

/* s0 & mask of one copy. */
static unsigned tested_lanes(x86_emit *e, uint32_t copy, unsigned scratch, unsigned other) {
  if (is_uniform_test(e)) return hg_x86_predicate(e, e->insn->s[0], copy, scratch);
  int mask = hg_x86_mask(e, copy, scratch);
  uint32_t source = e->insn->s[0];
  if (source == VECTOR_NONE || source == VECTOR_ALL || source == e->insn->mask)
    return mask >= 0 ? (unsigned)mask : hg_x86_existing_lanes(e, scratch);
  unsigned value = hg_x86_predicate(e, source, copy, other);
  if (mask < 0) return value;
  if (x86_is_evex(e)) hg_x86_k(e, X86_kandw, scratch, (unsigned)mask, value);
  else hg_x86_v(e, X86_vpandd, scratch, (unsigned)mask, x86_reg(value));
  return scratch;
}

/* Sets the zero flag if s0 & mask is empty in all copies. */
void hg_x86_test_any(x86_emit *e) {
  const vector_insn *insn = e->insn;
  int varies = insn->mask != VECTOR_ALL || hg_x86_loses_lanes(e);
  if (insn->s[0] < VECTOR_ALL) varies |= hg_x86_copies(e, insn->s[0]) > 1;
  if (is_uniform_test(e)) varies = 0;
  uint32_t copies = varies ? e->copies : 1;
  unsigned sum = x86_is_evex(e) ? K_TEMPORARY : hg_x86_scratch(e, 2), last = 0;
  for (uint32_t c = 0; c < copies; c++) {
    unsigned now = tested_lanes(e, c, first_scratch(e), second_scratch(e));
    if (c == 0) {
      last = now;
      if (copies > 1 && (now == first_scratch(e) || now == second_scratch(e))) {
        if (x86_is_evex(e)) hg_x86_k(e, X86_kmovw, sum, 0, now);
        else hg_x86_v(e, X86_vmove, sum, 0, x86_reg(now));
        last = sum;
      }
      continue;
    }
    if (x86_is_evex(e) && c + 1 == copies) {
      hg_x86_k(e, X86_kortestw, last, 0, now);
      return;
    }
    if (x86_is_evex(e)) hg_x86_k(e, X86_korw, sum, last, now);
    else hg_x86_v(e, X86_vpord, sum, last, x86_reg(now));
    last = sum;
  }
  if (!varies && insn->s[0] < VECTOR_ALL && hg_x86_is_uniform(e, insn->s[0])) {
    /* a predicate from a row is right only in lanes that exist, of which the first is one */
    if (x86_is_evex(e)) hg_x86_k(e, X86_kmovw_to_g, X86_RAX, 0, last);
    else hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg(last));
    hg_x86_alu_imm(&e->a, X86_AND, 0, x86_reg(X86_RAX), 1);
  } else if (x86_is_evex(e)) hg_x86_k(e, X86_kortestw, last, 0, last);
  else {
    hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg(last));
    hg_x86_test(&e->a, 0, X86_RAX, X86_RAX);
  }
}

/* Adds one to the register that counts the steps of the lanes in the mask, or of all. */
void hg_x86_count_step(x86_emit *e) {
  const vector_insn *step = e->insn;
  uint32_t counter = step->s[step->mask == VECTOR_ALL];
  vector_insn add = {.op = ATLAS_OP_add, .type = ATLAS_u32, .flags = VECTOR_KEEP, .d = counter, .mask = step->mask};
  if (hg_x86_role(e) & NATIVE_TAKES_ALL) add.mask = VECTOR_ALL; /* no lane is left out */
  e->insn = &add;
  for (uint32_t c = 0; c < hg_x86_copies(e, counter); c++) {
    unsigned old = hg_x86_source_reg(e, counter, c, 0, hg_x86_scratch(e, 0));
    unsigned to = hg_x86_result_register(e, c, 0, hg_x86_scratch(e, 0));
    hg_x86_v(e, X86_vpaddd, to, old, hg_x86_constant(e, 1, 0));
    hg_x86_set_result(e, c, 0, to);
  }
  e->insn = step;
}

/* C code does the counting if lanes may run out of steps. */
static void write_step(x86_emit *e) {
  const vector_insn *insn = e->insn;
  int counts = hg_native_counts_steps(e->b->vector);
  if (counts) {
    uint32_t slow = hg_x86_slow_path(e, X86_ALL_COPIES);
    hg_x86_alu_imm(&e->a, X86_SUB, 1, x86_at(X86_FRAME, offsetof(native_frame, steps_left)), 1);
    hg_x86_jump_if(&e->a, X86_BELOW, slow);
    hg_x86_count_step(e);
  }
  if (insn->d != VECTOR_NONE)
    for (uint32_t c = 0; c < hg_x86_copies(e, insn->d); c++)
      hg_x86_set_predicate_result(e, c, hg_x86_predicate(e, insn->mask, c, result_scratch(e)));
  if (counts) hg_x86_slow_back(e);
}

static void write_trap(x86_emit *e) {
  uint32_t slow = hg_x86_slow_path(e, X86_ALL_COPIES);
  hg_x86_test_any(e);
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, slow);
  hg_x86_slow_back(e);
}

/* At the start of a group: all lanes that exist have not ended, with all steps left or with what other regions have
 * left of them. */
void hg_x86_begin_alive(x86_emit *e) {
  const native_location *location = native_location_of(e->b, x86_all_lanes_register(e));
  if (hg_native_counts_steps(e->b->vector)) {
    hg_x86_load(&e->a, 1, X86_RAX, x86_at(X86_CONTEXT, offsetof(native_context, steps_left)));
    hg_x86_store(&e->a, 1, x86_at(X86_FRAME, offsetof(native_frame, steps_left)), X86_RAX);
  }
  for (uint32_t c = 0; c < e->copies; c++) {
    unsigned to = location->kind == NATIVE_REGISTERS ? location->reg[c] : second_scratch(e);
    if (e->b->steps.count > 1) {
      hg_x86_load_mask_row(e, e->b->alive_offset, c, to);
      to = hg_x86_and_existing_lanes(e, to, to);
    } else to = hg_x86_existing_lanes(e, second_scratch(e));
    store_location(e, location, c, to);
  }
  if (!hg_native_counts_steps(e->b->vector) || e->b->steps.count > 1) return;
  hg_x86_move_imm(&e->a, X86_RAX, 0);
  hg_x86_store(&e->a, 1, x86_at(X86_CONTEXT, offsetof(native_context, knows_steps)), X86_RAX);
}

/* Other groups of the tile, and other regions, begin with the steps that the group which took most has left. */
void hg_x86_end_alive(x86_emit *e) {
  uint32_t enough = hg_x86_new_label(&e->a);
  if (!hg_native_counts_steps(e->b->vector) || e->b->steps.count == 1) return;
  x86_rm fewest = x86_at(X86_CONTEXT, offsetof(native_context, fewest_left));
  hg_x86_load(&e->a, 1, X86_RAX, x86_at(X86_FRAME, offsetof(native_frame, steps_left)));
  hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_RAX, fewest);
  hg_x86_jump_if(&e->a, X86_ABOVE_EQUAL, enough);
  hg_x86_store(&e->a, 1, fewest, X86_RAX);
  hg_x86_place(&e->a, enough);
}

int hg_x86_logic(x86_emit *e) {
  switch ((machine_logic)hg_machine_op(e->insn->op)) {
  case LOGIC_pand: write_logic(e, X86_kandw, X86_vpandd, 0); break;
  case LOGIC_por: write_logic(e, X86_korw, X86_vpord, 0); break;
  case LOGIC_pxor: write_logic(e, X86_kxorw, X86_vpxord, 0); break;
  case LOGIC_pnot: write_unary(e, e->insn->s[0], 1); break;
  }
  return 1;
}

int hg_x86_masks(x86_emit *e) {
  int is_copy = e->insn->s[0] == e->insn->s[1] && e->insn->s[0] < VECTOR_ALL, is_not = e->insn->op == VECTOR_ANDNOT;
  if (e->insn->op == VECTOR_AND || e->insn->op == VECTOR_OR || is_not) {
    uint32_t source = is_copy && !is_not ? e->insn->s[0] : VECTOR_NONE;
    if (source == VECTOR_NONE && e->insn->op != VECTOR_OR) source = other_than_all(e, is_not);
    if (source != VECTOR_NONE) {
      write_unary(e, source, is_not);
      return 1;
    }
  }
  switch (e->insn->op) {
  case VECTOR_AND: write_logic(e, X86_kandw, X86_vpandd, 0); return 1;
  case VECTOR_ANDNOT: write_logic(e, X86_kandnw, X86_vpandnd, 1); return 1;
  case VECTOR_OR: write_logic(e, X86_korw, X86_vpord, 0); return 1;
  case VECTOR_CLEAR: write_clear(e); return 1;
  case VECTOR_STEP: write_step(e); return 1;
  case VECTOR_TRAP: write_trap(e); return 1;
  case VECTOR_MOVE:
    if (e->insn->type != SSA_PREDICATE) return 0;
    write_unary(e, e->insn->s[0], 0);
    return 1;
  default: return 0;
  }
}
