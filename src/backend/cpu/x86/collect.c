/* collect.c - reductions and votes of a block that has all its lanes, in machine code. Reductions go by halves, as the
 * ISA defines: first between the vectors of a row, then within the last one. Between two regions the vector registers
 * hold nothing else.
 *
 * The tree is walked depth first, so that few registers hold it. Its instructions are ordinary ones on registers that
 * no instruction of the vector program names (native_build.temporaries). */
#include "backend/cpu/x86/emit_x86.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include <stddef.h>

typedef struct fold {
  x86_emit *e;
  uint16_t op;
  uint8_t type;
  uint32_t count;        /* vectors */
  int32_t from, to;      /* offsets of rows */
  uint32_t left, right;  /* temporaries */
} fold;

static void use_register(const fold *f, uint32_t temporary, unsigned reg) {
  native_location *location = &f->e->b->locations[temporary];
  *location = (native_location){.kind = NATIVE_REGISTERS, .copies = 1, .parts = 1};
  location->reg[0] = (uint8_t)reg;
}

/* `into` = into op with. */
static void combine(const fold *f, unsigned into, unsigned with) {
  const vector_insn insn = {.op = f->op, .type = f->type, .d = f->left, .mask = VECTOR_ALL, .target = VECTOR_NONE,
                            .s = {f->left, f->right, VECTOR_NONE, VECTOR_NONE}, .insn = SSA_NONE};
  use_register(f, f->left, into);
  use_register(f, f->right, with);
  f->e->insn = &insn;
  hg_x86_operation(f->e);
}

static x86_rm vector_at(const fold *f, int32_t row, uint32_t number) {
  return x86_at(X86_ROWS, row + (int32_t)(number * f->e->vector_bytes));
}

/* `reg` = vector i after the vectors from `half` on have been folded onto those below. */
static void fold_vectors(const fold *f, uint32_t i, uint32_t half, unsigned reg) {
  if (half >= f->count) {
    hg_x86_v(f->e, X86_vload, reg, 0, vector_at(f, f->from, i));
    return;
  }
  fold_vectors(f, i, 2 * half, reg);
  if (i + half >= f->count) return;
  fold_vectors(f, i + half, 2 * half, reg + 1);
  combine(f, reg, reg + 1);
}

static void fold_lanes(const fold *f) {
  x86_emit *e = f->e;
  if (e->width == 2) {
    hg_x86_vi(e, X86_vextracti64x4, 0, 0, x86_reg(1), 1);
    combine(f, 0, 1);
  }
  hg_x86_vi(e, X86_vpermq_imm, 1, 0, x86_reg(0), 0x0e);
  combine(f, 0, 1);
  hg_x86_vi(e, X86_vshufps, 1, 0, x86_reg(0), 0x0e);
  combine(f, 0, 1);
  hg_x86_vi(e, X86_vshufps, 1, 0, x86_reg(0), 0x01);
  combine(f, 0, 1);
}

/* Only the result needs a canonical NaN; on the way a NaN may have any payload. */
static void make_canonical(const fold *f) {
  const vector_insn insn = {.op = VECTOR_CANON, .type = f->type, .d = f->left, .mask = VECTOR_ALL,
                            .target = VECTOR_NONE, .s = {f->left, VECTOR_NONE, VECTOR_NONE, VECTOR_NONE},
                            .insn = SSA_NONE};
  if (f->type != ATLAS_f32) return;
  use_register(f, f->left, 0);
  f->e->insn = &insn;
  hg_x86_vector_operation(f->e);
}

static int is_row(const x86_emit *e, uint32_t reg) {
  if (reg >= VECTOR_ALL || vector_reg_at(e->b->vector, reg)->kind != VECTOR_VARIES) return 0;
  const native_location *location = native_location_of(e->b, reg);
  return location->kind == NATIVE_ROW && !location->is_uniform;
}

/* 1 if it can be written. */
static int describe(x86_emit *e, const vector_insn *insn, fold *f) {
  static const uint16_t ops[4] = {ATLAS_OP_add, ATLAS_OP_mul, ATLAS_OP_min, ATLAS_OP_max};
  if (insn->op < ATLAS_OP_reduce_add || insn->op > ATLAS_OP_reduce_max || insn->mask != VECTOR_ALL) return 0;
  if (insn->type != ATLAS_f32 && insn->type != ATLAS_u32 && insn->type != ATLAS_i32) return 0;
  if (!e->is_full || e->b->full_lanes % e->lanes != 0 || !is_row(e, insn->s[0]) || !is_row(e, insn->d)) return 0;
  uint32_t temporary = e->b->temporaries + (insn->type == ATLAS_f32 ? 0 : insn->type == ATLAS_u32 ? 2 : 4);
  *f = (fold){.e = e, .op = ops[insn->op - ATLAS_OP_reduce_add], .type = insn->type,
              .count = e->b->full_lanes / e->lanes, .left = temporary, .right = temporary + 1};
  f->from = (int32_t)native_location_of(e->b, insn->s[0])->offset;
  f->to = (int32_t)native_location_of(e->b, insn->d)->offset;
  return f->count <= CPU_COLLECTED_VECTORS;
}

/* ---- votes: rows of predicates are bytes ------------------------------------------------------------------------- */

/* The number of vectors in a row of bytes; 0: it is no whole number. */
static uint32_t byte_vectors(const x86_emit *e) {
  return e->b->full_lanes % e->vector_bytes == 0 ? e->b->full_lanes / e->vector_bytes : 0;
}

static int is_vote(const x86_emit *e, const vector_insn *insn) {
  if (insn->op != ATLAS_OP_vote_any && insn->op != ATLAS_OP_vote_all) return 0;
  return e->is_full && insn->mask == VECTOR_ALL && byte_vectors(e) > 0 && is_row(e, insn->s[0]) && is_row(e, insn->d);
}

/* Combines the bytes of all lanes into register 0. */
static void combine_bytes(x86_emit *e, unsigned op, uint32_t reg) {
  x86_rm at = x86_at(X86_ROWS, (int32_t)native_location_of(e->b, reg)->offset);
  hg_x86_v(e, X86_vload, 0, 0, at);
  for (uint32_t k = 1; k < byte_vectors(e); k++) {
    at.displacement += e->vector_bytes;
    hg_x86_v(e, op, 0, 0, at);
  }
}

/* Jumps if register 0 has only bytes of 0, or not only bytes of 1. */
static void jump_unless(x86_emit *e, int is_all, uint32_t label) {
  hg_x86_v(e, X86_vpxord, 1, 1, x86_reg(1));
  if (is_all) hg_x86_v(e, X86_vpbroadcastd, 1, 0, x86_at(X86_POOL, (int32_t)(e->pool.ones_place * 4)));
  if (e->width == 2) {
    hg_x86_vi(e, X86_vpcmpud, 0, 0, x86_reg(1), 0); /* equal */
    hg_x86_k(e, X86_kortestw, 0, 0, 0);             /* carry: all */
    hg_x86_jump_if(&e->a, is_all ? X86_ABOVE_EQUAL : X86_CARRY, label);
    return;
  }
  hg_x86_v(e, X86_vpcmpeqd, 1, 1, x86_reg(0));
  hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg(1));
  hg_x86_alu_imm(&e->a, X86_CMP, 0, x86_reg(X86_RAX), 0xff);
  hg_x86_jump_if(&e->a, is_all ? X86_NOT_EQUAL : X86_EQUAL, label);
}

static void vote(x86_emit *e, const vector_insn *insn) {
  int is_all = insn->op == ATLAS_OP_vote_all;
  uint32_t no = hg_x86_new_label(&e->a);
  x86_rm to = x86_at(X86_ROWS, (int32_t)native_location_of(e->b, insn->d)->offset);
  combine_bytes(e, is_all ? X86_vpandd : X86_vpord, insn->s[0]);
  hg_x86_v(e, X86_vpxord, 2, 2, x86_reg(2));
  jump_unless(e, is_all, no);
  hg_x86_v(e, X86_vpbroadcastd, 2, 0, x86_at(X86_POOL, (int32_t)(e->pool.ones_place * 4)));
  hg_x86_place(&e->a, no);
  for (uint32_t k = 0; k < byte_vectors(e); k++, to.displacement += e->vector_bytes) hg_x86_v(e, X86_vstore, 2, 0, to);
}

int hg_x86_can_ask(const x86_emit *e, const vector_insn *jump) {
  return e->is_full && jump->mask == VECTOR_ALL && byte_vectors(e) > 0 && is_row(e, jump->s[0]);
}

void hg_x86_ask(x86_emit *e, const vector_insn *jump, uint32_t target) {
  uint32_t none = hg_x86_new_label(&e->a);
  combine_bytes(e, X86_vpord, jump->s[0]);
  jump_unless(e, 0, jump->op == VECTOR_JUMP_NONE ? target : none);
  if (jump->op == VECTOR_JUMP_ANY) hg_x86_jump(&e->a, target);
  hg_x86_place(&e->a, none);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

int hg_x86_can_collect(x86_emit *e, const native_step *step) {
  fold f;
  const vector_insn *insn = vector_insn_at(e->b->vector, step->first);
  return is_vote(e, insn) || describe(e, insn, &f);
}

void hg_x86_collect(x86_emit *e, const native_step *step) {
  fold f;
  const vector_insn *insn = vector_insn_at(e->b->vector, step->first);
  e->is_tail = 0;
  e->copies = 1;
  if (is_vote(e, insn)) vote(e, insn);
  if (!describe(e, insn, &f)) return;
  fold_vectors(&f, 0, 1, 0);
  fold_lanes(&f);
  make_canonical(&f);
  hg_x86_v(e, X86_vpbroadcastd, 0, 0, x86_reg(0));
  for (uint32_t k = 0; k < f.count; k++) hg_x86_v(e, X86_vstore, 0, 0, vector_at(&f, f.to, k));
}
