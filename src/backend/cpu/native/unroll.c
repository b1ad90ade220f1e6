/* unroll.c - full unrolling of loops with a known trip count, by partial evaluation.
 *
 * Walks the program in execution order as long as constants decide its jumps, and folds instructions whose sources are
 * constants. Other jumps must lead forwards, to a place that the walk reaches. If one does not, or if a value would
 * depend on the way that lanes have taken, the program stays as it is. A STEP stays where the back edge was, so lanes
 * run out of steps at the same place. */
#include "backend/cpu/native/vector_passes.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

#include "atlas/arith.h"
#include "atlas/tables.h"
#include "base/error.h"

#include <string.h>

#define IS_COUNTER UINT32_MAX /* of unroll.writers: a STEP counts in it */

typedef struct unroll {
  const hg_vector *v;
  hg_rewrite to;
  uint32_t *current_name; /* per register: the register that holds it now */
  uint32_t *writers; /* per register: the number of instructions that write it */
  uint32_t *waiting; /* per instruction: the last jump to it, in `to`; a list linked by the jumps' targets */
  uint32_t open_jumps; /* jumps whose target is not reached yet, except jumps to the end */
  uint32_t rounds, old_regs;
  int has_failed;
} unroll;

static int is_register(const unroll *u, uint32_t r) { return r < u->old_regs; }

static uint32_t name_of(const unroll *u, uint32_t r) { return is_register(u, r) ? u->current_name[r] : r; }

static int is_known(const unroll *u, uint32_t r, uint64_t *bits) {
  if (!is_register(u, r)) return 0;
  const vector_reg *reg = vector_reg_at(u->v, u->current_name[r]);
  *bits = reg->bits;
  return reg->kind == VECTOR_CONSTANT;
}

static uint32_t new_register(unroll *u, const vector_reg *reg) {
  for (uint32_t r = 0; reg->kind == VECTOR_CONSTANT && r < u->v->regs.count; r++) {
    const vector_reg *there = vector_reg_at(u->v, r);
    if (there->kind == VECTOR_CONSTANT && there->type == reg->type && there->bits == reg->bits) return r;
  }
  return hg_rewrite_register(&u->to, reg);
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

/* 1 if it has made the instruction a constant. */
static int fold_constants(unroll *u, const vector_insn *insn) {
  uint64_t a = 0, b = 0;
  if (!is_foldable(insn) || !is_known(u, insn->s[0], &a) || u->writers[insn->d] == IS_COUNTER) return 0;
  if (insn->op != VECTOR_MOVE && !is_known(u, insn->s[1], &b)) return 0;
  vector_reg reg = {.type = vector_reg_at(u->v, insn->d)->type, .kind = VECTOR_CONSTANT, .bits = a};
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
    u->current_name[insn->d] = new_register(u, vector_reg_at(u->v, insn->d));
  }
  return u->current_name[insn->d];
}

static void append_renamed(unroll *u, const vector_insn *insn) {
  vector_insn now = *insn;
  for (int k = 0; k < 4; k++) now.s[k] = name_of(u, insn->s[k]);
  now.mask = name_of(u, insn->mask);
  now.d = name_result(u, insn);
  hg_rewrite_append(&u->to, &now);
  if (hg_rewrite_count(&u->to) > CPU_UNROLLED_INSNS) u->has_failed = 1;
}

/* ---- the way ----------------------------------------------------------------------------------------------------- */

/* 1: the jump is taken; 0: it is not; -1: unknown. */
static int decide_jump(const unroll *u, const vector_insn *insn) {
  uint64_t bits;
  if (insn->op == VECTOR_JUMP) return 1;
  if (insn->mask != VECTOR_ALL || !is_known(u, insn->s[0], &bits)) return -1;
  return (bits != 0) == (insn->op == VECTOR_JUMP_ANY);
}

/* 1 if an open jump leads to an instruction after `i` and before `end`. */
static int is_awaited(const unroll *u, uint32_t i, uint32_t end) {
  for (uint32_t k = i + 1; k < end; k++)
    if (u->waiting[k] != VECTOR_NONE) return 1;
  return 0;
}

static void append_jump(unroll *u, uint32_t i) {
  const vector_insn *insn = vector_insn_at(u->v, i);
  if (insn->target <= i) {
    u->has_failed = 1;
    return;
  }
  uint32_t at = hg_rewrite_count(&u->to);
  append_renamed(u, insn);
  if (u->to.no_memory) return;
  hg_rewrite_insn(&u->to, at)->target = u->waiting[insn->target];
  u->waiting[insn->target] = at;
  u->open_jumps += !(insn->flags & VECTOR_LAST);
}

static void append_label(unroll *u, uint32_t i) {
  uint32_t jump = u->waiting[i], here = hg_rewrite_count(&u->to);
  if (jump == VECTOR_NONE) return;
  append_renamed(u, vector_insn_at(u->v, i));
  while (jump != VECTOR_NONE) {
    vector_insn *insn = hg_rewrite_insn(&u->to, jump);
    jump = insn->target;
    insn->target = here | HG_REWRITE_NEW;
    u->open_jumps -= !(insn->flags & VECTOR_LAST);
  }
  u->waiting[i] = VECTOR_NONE;
}

/* At a back edge from `last` to `first`: registers that are live in one round only get new names in each round. */
static void begin_round(unroll *u, uint32_t first, uint32_t last) {
  if (u->open_jumps > 0 || ++u->rounds > CPU_UNROLLED_ROUNDS) u->has_failed = 1;
  for (uint32_t r = 0; r < u->old_regs && !u->to.no_memory && !u->has_failed; r++) {
    const vector_reg *reg = vector_reg_at(u->v, r);
    if (u->writers[r] == 0 || reg->first < first || reg->last > last) continue;
    u->current_name[r] = new_register(u, reg);
  }
}

/* Processes instruction i; returns the next one. */
static uint32_t next_insn(unroll *u, uint32_t i) {
  const vector_insn *insn = vector_insn_at(u->v, i);
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
  uint32_t n = (uint32_t)u->v->insns.count;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = vector_insn_at(u->v, i)->d;
    if (is_register(u, d)) u->writers[d]++;
    u->waiting[i] = VECTOR_NONE;
  }
  for (uint32_t i = 0; i < n; i++) {
    const vector_insn *insn = vector_insn_at(u->v, i);
    for (int k = 0; k < 4 && insn->op == VECTOR_STEP; k++)
      if (is_register(u, insn->s[k])) u->writers[insn->s[k]] = IS_COUNTER;
  }
  for (uint32_t r = 0; r < u->old_regs; r++) u->current_name[r] = r;
  for (uint32_t i = 0; i < n && !u->has_failed && !u->to.no_memory;) i = next_insn(u, i);
}

/* Unrolls, or leaves the program as it is if something that the walk needs is unknown. */
static hg_status unroll_or_keep(unroll *u, hg_vector *v) {
  uint64_t regs = v->regs.count;
  HG_TRY(hg_rewrite_begin(&u->to, v, 0));
  walk_program(u);
  if (u->to.no_memory || (!u->has_failed && u->rounds > 0)) return hg_rewrite_end(&u->to, 1);
  hg_rewrite_cancel(&u->to);
  v->regs.count = regs;
  u->rounds = 0;
  return HG_OK;
}

hg_status hg_native_pass_unroll(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t n = v->insns.count, regs = v->regs.count;
  unroll u = {.v = v, .old_regs = (uint32_t)regs};
  (void)b;
  if (n > CPU_UNROLLED_INSNS) return HG_OK;
  u.current_name = hg_allocate(&v->allocator, n + 2 * regs, sizeof *u.current_name);
  if (u.current_name == NULL) return hg_fail_memory("machine code", n * sizeof *u.current_name);
  u.writers = u.current_name + regs;
  u.waiting = u.writers + regs;
  hg_status status = unroll_or_keep(&u, v);
  hg_release(&v->allocator, u.current_name);
  *fired = u.rounds;
  return status;
}
