/* dead_code.c - dead-code elimination in straight-line code: stores to shared memory that nothing loads, values that
 * nothing reads, and steps that make a NaN canonical whose bits have no effect. The bits of a NaN matter while it is in
 * shared memory; once store-to-load forwarding has made it a value that only arithmetic reads, they do not, since
 * arithmetic treats all NaNs alike. */
#include "backend/cpu/native/straight.h"
#include "base/error.h"
#include "compiler/analysis/nan_bits.h"
#include "vector/rewrite.h"

enum { IS_READ = 1, IS_SEEN = 2 }; /* of registers: an instruction that stays reads it; the bits of a NaN in it
                                      matter */

/* What an instruction needs of its source k: IS_SEEN unless it treats all NaNs alike, or passes them only to a result
 * whose NaN bits do not matter. */
static uint8_t use_of(const vector_insn *insn, unsigned k, uint8_t use_of_result) {
  switch (insn->op) {
  case VECTOR_CANON: return atlas_is_wide_float((atlas_type)insn->type) ? IS_READ : IS_READ | IS_SEEN;
  case NATIVE_ROUND:
  case NATIVE_RECIPROCAL:
  case NATIVE_QUOTIENT: return IS_READ;
  case NATIVE_PERMUTE:
  case NATIVE_SHIFT:
  case VECTOR_MOVE:
  case VECTOR_LESSER:
  case VECTOR_GREATER: return use_of_result;
  default: break;
  }
  if (!vector_is_primitive(insn->op)) return IS_READ | IS_SEEN;
  switch (hg_nan_use_of(insn->op, k)) {
  case HG_NAN_ALIKE: return IS_READ;
  case HG_NAN_PASSED: return use_of_result;
  default: return IS_READ | IS_SEEN;
  }
}

static int is_needed(const vector_insn *insn, const uint8_t *use) {
  if (insn->flags & STRAIGHT_UNREAD) return 0;
  if (insn->d == VECTOR_NONE || use[insn->d] != 0) return 1;
  if (!vector_is_primitive(insn->op)) return 0;
  unsigned flags = atlas_op_flags(insn->op);
  return flags & ATLAS_LOAD ? !(insn->flags & VECTOR_IN_BOUNDS) : !(flags & ATLAS_PURE);
}

static void note_sources(const vector_insn *insn, uint8_t use_of_result, uint8_t *of) {
  for (unsigned k = 0; k < 4; k++)
    if (insn->s[k] < VECTOR_ALL) of[insn->s[k]] |= use_of(insn, k, use_of_result);
  if (insn->mask < VECTOR_ALL) of[insn->mask] |= IS_READ;
}

/* 1 if an instruction only copies its source and the source is never written again. */
static int is_copy(const hg_vector *v, const vector_insn *insn, uint8_t use_of_result) {
  if (insn->op != VECTOR_CANON || use_of_result & IS_SEEN || insn->flags & VECTOR_KEEP) return 0;
  if (!atlas_is_wide_float((atlas_type)insn->type) || insn->s[0] >= VECTOR_ALL) return 0;
  const vector_reg *source = vector_reg_at(v, insn->s[0]);
  return source->kind == VECTOR_VARIES && source->bits != STRAIGHT_LOOP_CARRIED;
}

static uint8_t use_of_result(const vector_insn *insn, const uint8_t *use) {
  return insn->d == VECTOR_NONE ? IS_READ | IS_SEEN : use[insn->d];
}

static uint32_t renamed(const uint32_t *instead, uint32_t r) {
  while (r < VECTOR_ALL && instead[r] != VECTOR_NONE) r = instead[r];
  return r;
}

/* Runs backwards, to a fixed point because of back edges. */
static void find_uses(const hg_vector *v, uint64_t regs, uint8_t *use) {
  for (uint64_t before = 0, now = 1; now != before;) {
    before = now;
    for (uint32_t i = (uint32_t)v->insns.count; i-- > 0;) {
      const vector_insn *insn = vector_insn_at(v, i);
      if (is_needed(insn, use)) note_sources(insn, use_of_result(insn, use), use);
    }
    now = 1;
    for (uint64_t r = 0; r < regs; r++) now += use[r];
  }
}

/* Marks instructions whose results are not used, and returns how many. Uses of a copy are renamed to its source. */
static uint32_t mark_unneeded(hg_vector *v, const uint8_t *use, uint32_t *instead) {
  uint32_t unneeded = 0;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    vector_insn *insn = vector_insn_at(v, i);
    int is_source = is_copy(v, insn, use_of_result(insn, use));
    if (is_source) instead[insn->d] = insn->s[0];
    if (is_source || !is_needed(insn, use)) {
      insn->op = VECTOR_REMOVED;
      unneeded++;
    }
    for (int k = 0; k < 4; k++) insn->s[k] = renamed(instead, insn->s[k]);
  }
  return unneeded;
}

static int is_shared_access(const atlas_program *program, const vector_insn *insn) {
  unsigned flags = vector_is_primitive(insn->op) ? atlas_op_flags(insn->op) : 0;
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) || flags & ATLAS_SPACE_POOL) return 0;
  if (insn->mode > ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY) return 0;
  return atlas_symbol_at(program, insn->symbol)->kind == ATLAS_SYMBOL_SHARED;
}

/* Nothing reads an array if all its loads have become registers. Its stores are removed, except those that may
 * fault. */
static void find_unread_arrays(const atlas_program *program, hg_vector *v) {
  uint8_t is_read[ATLAS_MAX_SYMBOLS] = {0};
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (is_shared_access(program, insn) && atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_ATOMIC))
      is_read[insn->symbol] = 1;
  }
  for (uint32_t i = 0; i < v->insns.count; i++) {
    vector_insn *insn = vector_insn_at(v, i);
    if (!is_shared_access(program, insn) || is_read[insn->symbol] || !(insn->flags & VECTOR_IN_BOUNDS)) continue;
    insn->flags |= STRAIGHT_UNREAD;
  }
}

hg_status hg_native_pass_dead_code(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t regs = v->regs.count;
  uint32_t *instead = hg_allocate(&v->allocator, 2 * regs, sizeof *instead);
  if (instead == NULL) return hg_fail_memory("machine code", 2 * regs * sizeof *instead);
  uint8_t *use = (uint8_t *)(instead + regs);
  for (uint32_t r = 0; r < regs; r++) instead[r] = VECTOR_NONE;
  find_unread_arrays(b->program, v);
  find_uses(v, regs, use);
  *fired = mark_unneeded(v, use, instead);
  hg_release(&v->allocator, instead);
  HG_TRY(hg_rewrite_remove(v));
  v->sees_shared = 0;
  for (uint32_t i = 0; i < v->insns.count && !v->sees_shared; i++)
    v->sees_shared = (uint8_t)is_shared_access(b->program, vector_insn_at(v, i));
  return HG_OK;
}
