/* unroll.c - full unrolling of loops with a known trip count, by partial evaluation.
 *
 * Walks the program in execution order, as long as constants decide its jumps; instructions whose sources are constants
 * are folded. Jumps that are not decided must lead forwards, to a place that the walk reaches; where one does not, or
 * where a value would depend on the way that lanes have taken, the program stays as it is. A STEP stays where the back
 * edge was, so lanes run out of steps where they did. */
#include "backend/cpu/native/native.h"
#include "vector/lower.h"

#include "atlas/arith.h"
#include "atlas/tables.h"
#include "base/error.h"

#include <string.h>

enum { MOST_INSNS = 512, MOST_ROUNDS = 64 };

#define IS_COUNTER UINT32_MAX /* of unroll.writers: a STEP counts in it */

typedef struct unroll {
  const hg_vector *from;
  hg_vector *to;
  uint32_t *current_name; /* per register: the register that holds it now */
  uint32_t *writers; /* per register: how many instructions write it */
  uint32_t *waiting; /* per instruction: the last jump to it, in `to`; a list by their targets */
  uint32_t open_jumps; /* jumps whose target is not reached yet, but for those to the end */
  uint32_t rounds;
  int has_failed, no_memory;
} unroll;

static int is_register(const unroll *u, uint32_t r) { return r < u->from->regs.count; }

static uint32_t name_of(const unroll *u, uint32_t r) { return is_register(u, r) ? u->current_name[r] : r; }

static int is_known(const unroll *u, uint32_t r, uint64_t *bits) {
  if (!is_register(u, r)) return 0;
  const vector_reg *reg = vector_reg_at(u->to, u->current_name[r]);
  *bits = reg->bits;
  return reg->kind == VECTOR_CONSTANT;
}

static uint32_t new_register(unroll *u, const vector_reg *reg) {
  for (uint32_t r = 0; reg->kind == VECTOR_CONSTANT && r < u->to->regs.count; r++) {
    const vector_reg *there = vector_reg_at(u->to, r);
    if (there->kind == VECTOR_CONSTANT && there->type == reg->type && there->bits == reg->bits) return r;
  }
  if (hg_array_append(&u->to->allocator, &u->to->regs, reg, 1) == NULL) u->no_memory = 1;
  return (uint32_t)u->to->regs.count - 1;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static int is_foldable(const vector_insn *insn) {
  if (insn->mask != VECTOR_ALL || insn->flags & VECTOR_KEEP) return 0;
  switch (insn->op) {
  case VECTOR_MOVE: return 1;
  case ATLAS_OP_add:
  case ATLAS_OP_sub:
  case ATLAS_OP_mul:
  case ATLAS_OP_and:
  case ATLAS_OP_or:
  case ATLAS_OP_xor:
  case ATLAS_OP_shl:
  case ATLAS_OP_shr: return atlas_is_integer((atlas_type)insn->type);
  default: return atlas_is_comparison(insn->op) && atlas_is_integer((atlas_type)insn->type2);
  }
}

/* 1 if the instruction is a constant now. */
static int fold_constants(unroll *u, const vector_insn *insn) {
  uint64_t a = 0, b = 0;
  if (!is_foldable(insn) || !is_known(u, insn->s[0], &a) || u->writers[insn->d] == IS_COUNTER) return 0;
  if (insn->op != VECTOR_MOVE && !is_known(u, insn->s[1], &b)) return 0;
  vector_reg reg = {.type = vector_reg_at(u->from, insn->d)->type, .kind = VECTOR_CONSTANT, .bits = a};
  if (reg.type == SSA_PREDICATE && insn->op != VECTOR_MOVE)
    reg.bits = (uint64_t)atlas_compare(insn->op, (atlas_type)insn->type2, a, b);
  else if (insn->op != VECTOR_MOVE) reg.bits = atlas_arith(insn->op, (atlas_type)insn->type, a, b, 0);
  if (u->writers[insn->d] > 1 && u->open_jumps > 0) u->has_failed = 1;
  u->current_name[insn->d] = new_register(u, &reg);
  return 1;
}

static uint32_t name_result(unroll *u, const vector_insn *insn) {
  uint64_t bits;
  if (!is_register(u, insn->d)) return insn->d;
  int keeps = insn->flags & VECTOR_KEEP || insn->op == VECTOR_MOVE, is_partly = keeps && insn->mask != VECTOR_ALL;
  if (is_known(u, insn->d, &bits)) {
    if (is_partly || (u->writers[insn->d] > 1 && u->open_jumps > 0)) u->has_failed = 1;
    u->current_name[insn->d] = new_register(u, vector_reg_at(u->from, insn->d));
  }
  return u->current_name[insn->d];
}

static void append_renamed(unroll *u, const vector_insn *insn) {
  vector_insn now = *insn;
  for (int k = 0; k < 4; k++) now.s[k] = name_of(u, insn->s[k]);
  now.mask = name_of(u, insn->mask);
  now.d = name_result(u, insn);
  if (hg_array_append(&u->to->allocator, &u->to->insns, &now, 1) == NULL) u->no_memory = 1;
  if (u->to->insns.count > MOST_INSNS) u->has_failed = 1;
}

/* ---- the way ----------------------------------------------------------------------------------------------------- */

/* Whether a jump is taken: 1, 0; -1: not known. */
static int decide_jump(const unroll *u, const vector_insn *insn) {
  uint64_t bits;
  if (insn->op == VECTOR_JUMP) return 1;
  if (insn->mask != VECTOR_ALL || !is_known(u, insn->s[0], &bits)) return -1;
  return (bits != 0) == (insn->op == VECTOR_JUMP_ANY);
}

/* 1 if an open jump leads to instructions after `i` and before `end`. */
static int is_awaited(const unroll *u, uint32_t i, uint32_t end) {
  for (uint32_t k = i + 1; k < end; k++)
    if (u->waiting[k] != VECTOR_NONE) return 1;
  return 0;
}

static void append_jump(unroll *u, uint32_t i) {
  const vector_insn *insn = vector_insn_at(u->from, i);
  if (insn->target <= i) {
    u->has_failed = 1;
    return;
  }
  append_renamed(u, insn);
  if (u->no_memory) return;
  uint32_t at = (uint32_t)u->to->insns.count - 1;
  vector_insn_at(u->to, at)->target = u->waiting[insn->target];
  u->waiting[insn->target] = at;
  u->open_jumps += !(insn->flags & VECTOR_LAST);
}

static void append_label(unroll *u, uint32_t i) {
  uint32_t jump = u->waiting[i];
  if (jump == VECTOR_NONE) return;
  append_renamed(u, vector_insn_at(u->from, i));
  while (jump != VECTOR_NONE) {
    vector_insn *insn = vector_insn_at(u->to, jump);
    jump = insn->target;
    insn->target = (uint32_t)u->to->insns.count - 1;
    u->open_jumps -= !(insn->flags & VECTOR_LAST);
  }
  u->waiting[i] = VECTOR_NONE;
}

/* A back edge from `last` to `first`: registers that live in one round only are renamed in each round. */
static void begin_round(unroll *u, uint32_t first, uint32_t last) {
  if (u->open_jumps > 0 || ++u->rounds > MOST_ROUNDS) u->has_failed = 1;
  for (uint32_t r = 0; r < u->from->regs.count && !u->no_memory && !u->has_failed; r++) {
    const vector_reg *reg = vector_reg_at(u->from, r);
    if (u->writers[r] == 0 || reg->first < first || reg->last > last) continue;
    u->current_name[r] = new_register(u, reg);
  }
}

/* Processes instruction i; returns the next one. */
static uint32_t next_insn(unroll *u, uint32_t i) {
  const vector_insn *insn = vector_insn_at(u->from, i);
  if (insn->op == VECTOR_LABEL) append_label(u, i);
  else if (vector_is_jump(insn->op)) {
    int taken = decide_jump(u, insn);
    if (taken < 0) append_jump(u, i);
    if (taken != 1) return i + 1;
    if (insn->target <= i) begin_round(u, insn->target, i);
    if (is_awaited(u, i, insn->target)) u->has_failed = 1;
    return insn->target;
  } else if (!fold_constants(u, insn)) append_renamed(u, insn);
  return i + 1;
}

static void walk_program(unroll *u) {
  uint32_t n = (uint32_t)u->from->insns.count;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = vector_insn_at(u->from, i)->d;
    if (is_register(u, d)) u->writers[d]++;
    u->waiting[i] = VECTOR_NONE;
  }
  for (uint32_t i = 0; i < n; i++) {
    const vector_insn *insn = vector_insn_at(u->from, i);
    for (int k = 0; k < 4 && insn->op == VECTOR_STEP; k++)
      if (is_register(u, insn->s[k])) u->writers[insn->s[k]] = IS_COUNTER;
  }
  for (uint32_t r = 0; r < u->from->regs.count; r++) u->current_name[r] = r;
  for (uint32_t i = 0; i < n && !u->has_failed && !u->no_memory;) i = next_insn(u, i);
}

hg_status hg_native_unroll(const hg_vector *vector, hg_vector *out) {
  uint64_t n = vector->insns.count, regs = vector->regs.count;
  unroll u = {.from = vector, .to = out};
  *out = *vector;
  out->insns = (hg_array){.element_size = sizeof(vector_insn)};
  out->regs = (hg_array){.element_size = sizeof(vector_reg)};
  if (n > MOST_INSNS) return HG_OK;
  u.current_name = hg_allocate(&out->allocator, n + 2 * regs, sizeof *u.current_name);
  u.no_memory = u.current_name == NULL || hg_array_append(&out->allocator, &out->regs, vector->regs.data, regs) == NULL;
  if (!u.no_memory) {
    u.writers = u.current_name + regs;
    u.waiting = u.writers + regs;
    walk_program(&u);
  }
  hg_release(&out->allocator, u.current_name);
  if (u.no_memory) return hg_fail_memory("machine code", n * sizeof *u.current_name);
  if (u.has_failed || u.rounds == 0) out->insns.count = 0;
  return out->insns.count > 0 ? hg_vector_lifetimes(out) : HG_OK;
}
