/* run_invariants.c - computes what is the same in all lanes of a run before the run's first group of lanes, in a
 * program that is one region: coordinates but x, sizes, parameters, and what follows from them. A conjunction or
 * disjunction of conditions is reassociated, so that those of a run become one. Nothing here faults or accesses memory,
 * and integers and conditions have the same bits in any order. */
#include "backend/cpu/native/vector_passes.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "base/error.h"
#include "vector/rewrite.h"

enum { MOST_PARTS = 24 }; /* of a chain of conditions */

typedef struct mover {
  hg_vector *v;
  hg_rewrite to;
  uint32_t *writer;    /* per register: see hg_native_find_writers */
  uint32_t *reads;     /* per register: instructions that read it */
  uint32_t *joined;    /* per instruction: of the last one of a chain, the condition of the run; VECTOR_NONE */
  uint8_t *is_of_run;  /* per register: 1: the same in all lanes of a run */
  uint8_t *is_kept;    /* per register: 1: an instruction of groups reads it, and it is of a run */
  uint8_t *is_removed; /* per instruction: 1: the last one of its chain does its work */
} mover;

typedef struct chain { /* the conditions that one operation joins */
  uint32_t of_run[MOST_PARTS], of_lanes[MOST_PARTS], part[MOST_PARTS];
  uint32_t run_count, lane_count, part_count;
} chain;

/* ---- what is the same in a run ----------------------------------------------------------------------------------- */

static int is_32(uint8_t type) { return type == ATLAS_u32 || type == ATLAS_i32; }

static int may_move(const vector_insn *insn) {
  if (insn->mask != VECTOR_ALL || insn->flags & VECTOR_KEEP || insn->d == VECTOR_NONE) return 0;
  switch (insn->op) {
  case ATLAS_OP_sreg:
    return is_32(insn->type) && insn->bits != ATLAS_COORD_LANE_X && insn->bits != ATLAS_COORD_GLOBAL_X;
  case ATLAS_OP_add:
  case ATLAS_OP_sub:
  case ATLAS_OP_mul:
  case ATLAS_OP_div:
  case ATLAS_OP_mad:
  case ATLAS_OP_shl:
  case ATLAS_OP_shr:
  case ATLAS_OP_and:
  case ATLAS_OP_or:
  case ATLAS_OP_min:
  case ATLAS_OP_max:
  case ATLAS_OP_sel: return is_32(insn->type);
  case ATLAS_OP_cvt: return is_32(insn->type) && is_32(insn->type2);
  case ATLAS_OP_set_eq:
  case ATLAS_OP_set_ne:
  case ATLAS_OP_set_lt:
  case ATLAS_OP_set_le: return is_32(insn->type2);
  case ATLAS_OP_pand:
  case ATLAS_OP_por:
  case ATLAS_OP_pnot: return 1;
  default: return 0;
  }
}

static int is_of_run(const mover *m, uint32_t r) {
  if (r >= VECTOR_ALL) return r == VECTOR_NONE;
  const vector_reg *reg = vector_reg_at(m->v, r);
  if (reg->kind == VECTOR_VARIES) return m->is_of_run[r];
  return reg->kind == VECTOR_CONSTANT || reg->kind == VECTOR_SCALAR;
}

static void find_values(mover *m) {
  for (uint32_t i = 0; i < m->v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(m->v, i);
    int is = may_move(insn) && m->writer[insn->d] == i;
    for (int k = 0; k < 4; k++) {
      is = is && is_of_run(m, insn->s[k]);
      if (insn->s[k] < VECTOR_ALL) m->reads[insn->s[k]]++;
    }
    if (insn->mask < VECTOR_ALL) m->reads[insn->mask]++;
    if (is) m->is_of_run[insn->d] = 1;
  }
}

/* ---- conditions -------------------------------------------------------------------------------------------------- */

static int joins(const mover *m, uint32_t i) {
  const vector_insn *insn = vector_insn_at(m->v, i);
  if (insn->op != ATLAS_OP_pand && insn->op != ATLAS_OP_por) return 0;
  return may_move(insn) && m->writer[insn->d] == i && !m->is_of_run[insn->d];
}

/* 1 if only instruction i reads what instruction `made` computes, by the same operation, and no jump leads in
 * between. */
static int is_part(const mover *m, uint32_t i, uint32_t made) {
  if (made >= i || !joins(m, made) || vector_insn_at(m->v, made)->op != vector_insn_at(m->v, i)->op) return 0;
  for (uint32_t k = made + 1; k < i; k++)
    if (vector_insn_at(m->v, k)->op == VECTOR_LABEL) return 0;
  return m->reads[vector_insn_at(m->v, made)->d] == 1;
}

/* Adds the operands of instruction i, and of those before it in its chain. 0 if the chain is too long, or an operand
 * may have changed by the time the last instruction runs. */
static int collect(const mover *m, uint32_t i, chain *c) {
  if (c->part_count == MOST_PARTS - 1) return 0;
  c->part[c->part_count++] = i;
  for (int k = 0; k < 2; k++) {
    uint32_t s = vector_insn_at(m->v, i)->s[k];
    if (s >= m->v->regs.count) return 0;
    uint32_t made = m->writer[s];
    if (is_of_run(m, s)) c->of_run[c->run_count++] = s;
    else if (made >= i) return 0;
    else if (is_part(m, i, made)) {
      if (!collect(m, made, c)) return 0;
    } else c->of_lanes[c->lane_count++] = s;
  }
  return 1;
}

/* Appends an instruction for each condition but the first; returns the register of the last. */
static uint32_t join(mover *m, const vector_insn *like, const uint32_t *conditions, uint32_t count, int of_run) {
  uint32_t result = conditions[0];
  for (uint32_t k = 1; k < count; k++) {
    vector_reg reg = {.type = SSA_PREDICATE, .kind = VECTOR_VARIES, .uniform = (uint8_t)of_run};
    vector_insn insn = *like;
    insn.s[0] = result, insn.s[1] = conditions[k];
    result = insn.d = hg_rewrite_register(&m->to, &reg);
    hg_rewrite_append(&m->to, &insn);
  }
  return result;
}

/* The chain that ends with instruction i, if it joins several conditions of a run. */
static int find_chain(const mover *m, uint32_t i, chain *c) {
  *c = (chain){.run_count = 0};
  return joins(m, i) && collect(m, i, c) && c->run_count > 1 && c->lane_count > 0;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static int is_moved(const mover *m, const vector_insn *insn) {
  return insn->d < m->v->regs.count && m->is_of_run[insn->d];
}

/* From the last chain on, so that a part of a longer one is no end of its own. */
static void find_chains(mover *m) {
  chain c;
  for (uint32_t i = (uint32_t)m->v->insns.count; i-- > 0;) {
    m->joined[i] = VECTOR_NONE;
    if (m->is_removed[i] || !find_chain(m, i, &c)) continue;
    for (uint32_t k = 1; k < c.part_count; k++) m->is_removed[c.part[k]] = 1;
    m->joined[i] = 0;
  }
}

static void write_first(mover *m, uint32_t i) {
  const vector_insn *insn = vector_insn_at(m->v, i);
  chain c;
  if (is_moved(m, insn)) {
    vector_reg_at(m->v, insn->d)->uniform = 1;
    hg_rewrite_keep(&m->to, i);
  } else if (m->joined[i] != VECTOR_NONE && find_chain(m, i, &c))
    m->joined[i] = join(m, insn, c.of_run, c.run_count, 1);
}

static void write_rest(mover *m, uint32_t i) {
  vector_insn insn = *vector_insn_at(m->v, i);
  chain c;
  if (is_moved(m, &insn) || m->is_removed[i]) return;
  hg_rewrite_place(&m->to, i);
  if (m->joined[i] != VECTOR_NONE && find_chain(m, i, &c)) {
    insn.s[0] = join(m, &insn, c.of_lanes, c.lane_count, 0);
    insn.s[1] = m->joined[i];
  }
  hg_rewrite_append(&m->to, &insn);
}

/* 1 if enough is computed before the first group, and few enough values are then kept from group to group. */
static int is_worth(mover *m) {
  uint32_t moved = 0, kept = 0;
  for (uint32_t i = 0; i < m->v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(m->v, i);
    moved += (uint32_t)is_moved(m, insn);
    for (int k = 0; k < 4 && !is_moved(m, insn); k++) {
      if (insn->s[k] >= m->v->regs.count || !m->is_of_run[insn->s[k]]) continue;
      kept += !m->is_kept[insn->s[k]];
      m->is_kept[insn->s[k]] = 1;
    }
  }
  return moved >= CPU_LEAST_INVARIANTS && kept <= CPU_MOST_INVARIANTS;
}

/* Behind the first label come those of a run, whose ranges last to the end: each group reads them. */
static hg_status write_program(mover *m, native_build *b) {
  uint32_t n = (uint32_t)m->v->insns.count;
  HG_TRY(hg_rewrite_begin(&m->to, m->v, 0));
  hg_rewrite_keep(&m->to, 0);
  for (uint32_t i = 1; i < n; i++) write_first(m, i);
  b->invariants = hg_rewrite_count(&m->to) - 1;
  for (uint32_t i = 1; i < n; i++) write_rest(m, i);
  HG_TRY(hg_rewrite_end(&m->to, 1));
  for (uint32_t i = 1; i <= b->invariants; i++) {
    vector_reg *reg = vector_reg_at(m->v, vector_insn_at(m->v, i)->d);
    if (reg->last > b->invariants) reg->last = (uint32_t)m->v->insns.count - 1;
  }
  return HG_OK;
}

int hg_native_has_invariants(const hg_vector *v) {
  int may_have = 0;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    may_have |= may_move(insn) && (insn->op == ATLAS_OP_sreg || vector_reg_at(v, insn->d)->uniform);
  }
  return may_have && !v->loses_lanes;
}

hg_status hg_native_pass_run_invariants(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t n = v->insns.count, regs = v->regs.count, words = 2 * regs + n, bytes = n + 2 * regs;
  mover m = {.v = v};
  m.writer = hg_allocate(&v->allocator, words * sizeof(uint32_t) + bytes, 1);
  if (m.writer == NULL) return hg_fail_memory("machine code", words * sizeof(uint32_t) + bytes);
  m.reads = m.writer + regs;
  m.joined = m.reads + regs;
  m.is_of_run = (uint8_t *)(m.joined + n);
  m.is_kept = m.is_of_run + regs;
  m.is_removed = m.is_kept + regs;
  hg_native_find_writers(v, m.writer);
  find_values(&m);
  find_chains(&m);
  hg_status status = is_worth(&m) ? write_program(&m, b) : HG_OK;
  hg_release(&v->allocator, m.writer);
  *fired = b->invariants;
  return status;
}
