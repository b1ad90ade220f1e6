/* tidy.c - peepholes and dead-code elimination on vector code.
 *
 * A masked move into a register that is not defined yet becomes a copy in all lanes. `a and not b` becomes one
 * instruction, and so do selections that compute a minimum or a maximum. Unread values are removed. */
#include "compiler/clamp.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

#include "base/error.h"

typedef struct tidy {
  hg_vector *v;
  uint32_t *reads;   /* per register: reads by instructions other than its own writers */
  uint32_t *writers; /* per register */
  uint32_t *place;   /* per register: its last writer */
} tidy;

static int is_register(uint32_t r) { return r < VECTOR_ALL; }

static void count(const tidy *t, const vector_insn *insn, uint32_t by) {
  for (int s = 0; s < 4; s++)
    if (is_register(insn->s[s]) && insn->s[s] != insn->d) t->reads[insn->s[s]] += by;
  if (is_register(insn->mask)) t->reads[insn->mask] += by;
}

static void widen_moves(const tidy *t) {
  for (uint32_t i = 0; i < t->v->insns.count; i++) {
    vector_insn *insn = vector_insn_at(t->v, i);
    if (insn->op == VECTOR_MOVE && vector_reg_at(t->v, insn->d)->first == i) insn->mask = VECTOR_ALL;
  }
}

static void find_writers(const tidy *t) {
  for (uint32_t i = 0; i < t->v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(t->v, i);
    count(t, insn, 1);
    if (!is_register(insn->d)) continue;
    t->writers[insn->d]++;
    t->place[insn->d] = i;
  }
}

/* The register whose complement `r` is, if neither changes after its definition. */
static uint32_t opposite_of(const tidy *t, uint32_t r) {
  if (!is_register(r) || t->writers[r] != 1) return VECTOR_NONE;
  const vector_insn *insn = vector_insn_at(t->v, t->place[r]);
  if (insn->op != ATLAS_OP_pnot || !is_register(insn->s[0]) || t->writers[insn->s[0]] > 1) return VECTOR_NONE;
  return insn->s[0];
}

static void join_not(const tidy *t) {
  for (uint32_t i = 0; i < t->v->insns.count; i++) {
    vector_insn *insn = vector_insn_at(t->v, i);
    for (int s = 0; s < 2 && insn->op == ATLAS_OP_pand; s++) {
      uint32_t not_of = opposite_of(t, insn->s[s]), other = insn->s[1 - s];
      if (not_of == VECTOR_NONE) continue;
      count(t, insn, UINT32_MAX); /* - 1 */
      insn->op = VECTOR_ANDNOT;
      insn->s[0] = other;
      insn->s[1] = not_of;
      count(t, insn, 1);
    }
  }
}

/* 1 if values equal to the register's have the same bits. */
static int is_bound(const tidy *t, uint32_t r, uint8_t type) {
  const vector_reg *reg = vector_reg_at(t->v, r);
  return reg->kind == VECTOR_CONSTANT && hg_is_bound(type, reg->bits);
}

/* a < b ? a : b; and a < b ? b : a. */
static void join_selection(const tidy *t, vector_insn *insn) {
  if (!is_register(insn->s[0]) || t->writers[insn->s[0]] != 1) return;
  const vector_insn *by = vector_insn_at(t->v, t->place[insn->s[0]]);
  uint32_t a = by->s[0], b = by->s[1];
  hg_choice choice = by->type2 != insn->type ? HG_CHOICE_OTHER : hg_choice_of(by->op, a, b, insn->s[1], insn->s[2]);
  if (choice == HG_CHOICE_OTHER || t->writers[a] > 1 || t->writers[b] > 1) return;
  if (by->op == ATLAS_OP_set_le && !is_bound(t, a, insn->type) && !is_bound(t, b, insn->type)) return;
  count(t, insn, UINT32_MAX); /* - 1 */
  insn->op = choice == HG_CHOICE_LESSER ? VECTOR_LESSER : VECTOR_GREATER;
  insn->s[0] = insn->s[1];
  insn->s[1] = insn->s[2];
  insn->s[2] = VECTOR_NONE;
  count(t, insn, 1);
}

static void join_selections(const tidy *t) {
  for (uint32_t i = 0; i < t->v->insns.count; i++) {
    vector_insn *insn = vector_insn_at(t->v, i);
    if (insn->op == ATLAS_OP_sel && (insn->type == ATLAS_f32 || insn->type == ATLAS_f64)) join_selection(t, insn);
  }
}

static int is_needed(const tidy *t, const vector_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  int is_pure = info != NULL ? (info->flags & (ATLAS_PURE | ATLAS_LOAD)) == ATLAS_PURE /* a load may fault */
                             : insn->op >= VECTOR_MOVE && insn->op <= VECTOR_GREATER;
  return !is_pure || !is_register(insn->d) || t->reads[insn->d] > 0;
}

/* Uses follow definitions except in loops, so one backward walk finds nearly all dead code. */
static void mark_dead(const tidy *t) {
  for (uint32_t i = (uint32_t)t->v->insns.count; i-- > 0;) {
    vector_insn *insn = vector_insn_at(t->v, i);
    if (is_needed(t, insn)) continue;
    count(t, insn, UINT32_MAX);
    insn->op = VECTOR_REMOVED;
  }
}

hg_status hg_vector_tidy(hg_vector *v) {
  uint64_t regs = v->regs.count, words = 3 * regs;
  tidy t = {.v = v, .reads = hg_allocate(&v->allocator, words, sizeof(uint32_t))};
  if (t.reads == NULL) return hg_fail_memory("vector code", words * sizeof(uint32_t));
  t.writers = t.reads + regs;
  t.place = t.writers + regs;
  widen_moves(&t);
  find_writers(&t);
  join_not(&t);
  join_selections(&t);
  mark_dead(&t);
  hg_release(&v->allocator, t.reads);
  return hg_rewrite_remove(v); /* jumps to removed instructions lead to the next one */
}
