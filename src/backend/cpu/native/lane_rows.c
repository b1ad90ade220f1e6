/* lane_rows.c - coordinates of lanes that are counted through: where a program divides the lane's number by a parameter
 * of u32, lanes are rows of that length. This version of the program reads the quotient and the remainder as
 * coordinates along y and x, which the run of a row sets (run_kernel.c), so the lane's number is divided once a row. It
 * is for launches of less than 2^32 lanes whose rows are long enough: all of a lane's number is then in 32 bits. */
#include "backend/cpu/native/vector_passes.h"

#include "base/error.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

typedef struct divider {
  const hg_vector *v;
  uint32_t *writer; /* per register: see hg_native_find_writers */
  uint32_t length;  /* the parameter's symbol; VECTOR_NONE: not known yet */
  uint32_t changed;
} divider;

static const vector_insn *only_writer(const divider *d, uint32_t r) {
  if (r >= d->v->regs.count || d->writer[r] >= VECTOR_ALL) return NULL;
  const vector_insn *insn = vector_insn_at(d->v, d->writer[r]);
  return insn->mask == VECTOR_ALL && !(insn->flags & VECTOR_KEEP) ? insn : NULL;
}

/* 1 if a register is the lane's number, in 32 bits. */
static int is_lane(const divider *d, uint32_t r) {
  const vector_insn *made = only_writer(d, r);
  if (made == NULL || made->op != ATLAS_OP_cvt || made->type != ATLAS_u32 || made->type2 != ATLAS_u64) return 0;
  const vector_reg *source = made->s[0] < d->v->regs.count ? vector_reg_at(d->v, made->s[0]) : NULL;
  return source != NULL && source->kind == VECTOR_SPECIAL && source->bits == ATLAS_REG_LANE;
}

/* The symbol of a parameter; VECTOR_NONE: it is none. */
static uint32_t symbol_of(const divider *d, uint32_t r) {
  if (r >= d->v->regs.count || vector_reg_at(d->v, r)->kind != VECTOR_SCALAR) return VECTOR_NONE;
  return (uint32_t)vector_reg_at(d->v, r)->bits;
}

/* The parameter that a condition compares with 0. */
static uint32_t compared_with_0(const divider *d, uint32_t condition) {
  const vector_insn *made = only_writer(d, condition);
  if (made == NULL || made->op != ATLAS_OP_set_eq || made->s[1] >= d->v->regs.count) return VECTOR_NONE;
  const vector_reg *zero = vector_reg_at(d->v, made->s[1]);
  return zero->kind == VECTOR_CONSTANT && zero->bits == 0 ? symbol_of(d, made->s[0]) : VECTOR_NONE;
}

/* The symbol of a parameter, or of what a division by a parameter divides by: 1 in the place of 0. */
static uint32_t parameter_of(const divider *d, uint32_t r) {
  const vector_insn *made = only_writer(d, r);
  if (made == NULL || made->op != ATLAS_OP_sel) return symbol_of(d, r);
  uint32_t symbol = symbol_of(d, made->s[2]);
  return symbol == compared_with_0(d, made->s[0]) ? symbol : VECTOR_NONE;
}

static int is_length(const divider *d, uint32_t r) {
  uint32_t symbol = parameter_of(d, r);
  return symbol != VECTOR_NONE && (d->length == VECTOR_NONE || d->length == symbol);
}

static int divides(const divider *d, const vector_insn *insn, uint16_t op) {
  if (insn->op != op || insn->type != ATLAS_u32 || only_writer(d, insn->d) != insn) return 0;
  return is_lane(d, insn->s[0]) && is_length(d, insn->s[1]);
}

/* lane - quotient * length */
static int is_remainder(const divider *d, const vector_insn *insn) {
  if (insn->op != ATLAS_OP_sub || insn->type != ATLAS_u32 || only_writer(d, insn->d) != insn) return 0;
  const vector_insn *product = is_lane(d, insn->s[0]) ? only_writer(d, insn->s[1]) : NULL;
  if (product == NULL || product->op != ATLAS_OP_mul) return 0;
  for (int k = 0; k < 2; k++) {
    const vector_insn *made = only_writer(d, product->s[k]);
    int is_quotient = made != NULL && made->op == ATLAS_OP_sreg && made->bits == ATLAS_COORD_GLOBAL_Y;
    if (is_quotient && is_length(d, product->s[!k])) return 1;
  }
  return 0;
}

static void become(divider *d, vector_insn *insn, atlas_coord coordinate) {
  if (insn->op != ATLAS_OP_sub) d->length = parameter_of(d, insn->s[1]);
  insn->op = ATLAS_OP_sreg;
  insn->bits = coordinate;
  insn->s[0] = insn->s[1] = VECTOR_NONE;
  d->changed++;
}

static int is_read(const hg_vector *v, uint32_t r, uint32_t end) {
  for (uint32_t i = 0; i < end; i++)
    for (int k = 0; k < 4; k++)
      if (vector_insn_at(v, i)->s[k] == r) return 1;
  return 0;
}

/* A choice by whether the length is 0, which it is not, is its other operand, if that changes only right before. */
static void choose(const divider *d, uint32_t i) {
  vector_insn *choice = vector_insn_at(d->v, i);
  if (choice->op != ATLAS_OP_sel || only_writer(d, choice->d) != choice) return;
  if (d->length == VECTOR_NONE || compared_with_0(d, choice->s[0]) != d->length) return;
  const vector_insn *made = only_writer(d, choice->s[2]);
  if (made == NULL || made > choice || is_read(d->v, choice->d, i)) return;
  for (const vector_insn *k = made; k < choice; k++)
    if (k->op == VECTOR_LABEL || vector_is_jump(k->op)) return;
  for (uint32_t k = i + 1; k < d->v->insns.count; k++)
    for (int s = 0; s < 4; s++)
      if (vector_insn_at(d->v, k)->s[s] == choice->d) vector_insn_at(d->v, k)->s[s] = choice->s[2];
  choice->op = VECTOR_REMOVED;
}

int hg_native_divides_lanes(const hg_vector *v) {
  if (v->has_block_ops || v->sees_blocks || v->sees_coordinates || v->sees_shared) return 0;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if ((insn->op == ATLAS_OP_div || insn->op == ATLAS_OP_rem) && insn->type == ATLAS_u32) return 1;
  }
  return 0;
}

hg_status hg_native_pass_lane_rows(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t regs = v->regs.count;
  divider d = {.v = v, .length = VECTOR_NONE};
  d.writer = hg_allocate(&v->allocator, regs, sizeof *d.writer);
  if (d.writer == NULL) return hg_fail_memory("machine code", regs * sizeof *d.writer);
  hg_native_find_writers(v, d.writer);
  for (uint32_t i = 0; i < v->insns.count; i++) {
    vector_insn *insn = vector_insn_at(v, i);
    uint32_t product = insn->s[1];
    if (divides(&d, insn, ATLAS_OP_div)) become(&d, insn, ATLAS_COORD_GLOBAL_Y);
    else if (divides(&d, insn, ATLAS_OP_rem)) become(&d, insn, ATLAS_COORD_GLOBAL_X);
    else if (is_remainder(&d, insn)) {
      become(&d, insn, ATLAS_COORD_GLOBAL_X);
      if (!is_read(v, product, (uint32_t)v->insns.count)) vector_insn_at(v, d.writer[product])->op = VECTOR_REMOVED;
    }
  }
  for (uint32_t i = 0; i < v->insns.count; i++) choose(&d, i);
  hg_release(&v->allocator, d.writer);
  *fired = d.changed;
  if (d.changed == 0) return HG_UNSUPPORTED;
  b->row_length = d.length;
  HG_TRY(hg_rewrite_remove(v));
  return hg_vector_lifetimes(v);
}
