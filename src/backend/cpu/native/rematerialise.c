/* rematerialise.c - rematerialisation in straight-line code (straight.c): a value is computed again instead of kept if
 * it is one operation on an unchanging element of memory and uniform values, such as an element less its row's mean. A
 * row has too many of them for the registers, and the element can be an operand in memory (hg_native_is_element), where
 * a spilled value would have to be stored first. */
#include "backend/cpu/native/loop.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "backend/cpu/native/straight.h"

#include "base/error.h"
#include "vector/rewrite.h"

typedef struct again {
  const hg_vector *v;
  hg_rewrite to;
  uint32_t old_regs;
  uint32_t *writer; /* per register: see hg_native_find_writers */
  uint32_t *now;    /* per register: the register of the new program that has its value, */
  uint32_t *at;     /* and the last instruction of the new program that computed or read it */
  uint32_t part;    /* the instruction of the new program behind the last label or jump */
  uint32_t count;   /* reads of values that lie too far back */
  int writes;       /* 1: compute them again, in `to`; 0: only count them */
} again;

static int is_element(const again *a, uint32_t r) {
  if (r >= VECTOR_ALL || a->writer[r] >= VECTOR_ALL) return 0;
  const vector_insn *load = vector_insn_at(a->v, a->writer[r]);
  return hg_native_is_row_load(load) && load->type == ATLAS_f32;
}

static int is_alike(const again *a, uint32_t r) {
  if (r >= VECTOR_ALL) return 0;
  const vector_reg *reg = vector_reg_at(a->v, r);
  return reg->kind == VECTOR_CONSTANT || (reg->kind == VECTOR_VARIES && reg->uniform && a->writer[r] < VECTOR_ALL);
}

/* 1 if a register's value can be computed again wherever it is needed. */
static int is_cheap(const again *a, uint32_t r) {
  if (r >= VECTOR_ALL || a->writer[r] >= VECTOR_ALL) return 0;
  const vector_insn *made = vector_insn_at(a->v, a->writer[r]);
  int is_operation = made->op == ATLAS_OP_add || made->op == ATLAS_OP_sub || made->op == ATLAS_OP_mul;
  if (!is_operation || made->type != ATLAS_f32 || made->mask != VECTOR_ALL) return 0;
  int is_second = is_alike(a, made->s[0]);
  return is_element(a, made->s[is_second]) && (is_second || is_alike(a, made->s[1]));
}

/* The register with the value of `r`, which instruction `here` of the new program reads. It is computed again if that
 * was too far back. */
static uint32_t value_here(again *a, uint32_t r, uint32_t here) {
  if (!is_cheap(a, r)) return r;
  if (a->now[r] != r && a->at[r] < a->part) a->now[r] = r; /* it has not been computed in this part of the program */
  int is_far = here - a->at[r] > CPU_FAR_APART;
  a->at[r] = here;
  a->count += (uint32_t)is_far;
  if (!is_far || !a->writes) return a->now[r];
  vector_insn insn = *vector_insn_at(a->v, a->writer[r]);
  a->now[r] = insn.d = hg_rewrite_register(&a->to, &(vector_reg){.kind = VECTOR_VARIES, .type = ATLAS_f32});
  hg_rewrite_append(&a->to, &insn);
  return insn.d;
}

/* Without a->writes it only counts what would be computed again. */
static void go_through(again *a) {
  uint32_t n = (uint32_t)a->v->insns.count;
  a->count = a->part = 0;
  for (uint32_t r = 0; r < a->old_regs; r++) a->now[r] = r;
  for (uint32_t i = 0; i < n && !a->to.no_memory; i++) {
    vector_insn insn = *vector_insn_at(a->v, i);
    uint32_t here = i;
    for (int k = 0; k < 4; k++)
      if (insn.s[k] < a->old_regs) insn.s[k] = value_here(a, insn.s[k], a->writes ? hg_rewrite_count(&a->to) : i);
    if (a->writes) {
      hg_rewrite_place(&a->to, i);
      here = hg_rewrite_append(&a->to, &insn);
    }
    if (insn.d < a->old_regs) a->at[insn.d] = here;
    if (insn.op == VECTOR_LABEL || vector_is_jump(insn.op)) a->part = here + 1;
  }
}

static hg_status write_program(again *a, hg_vector *v) {
  HG_TRY(hg_rewrite_begin(&a->to, v, a->count));
  a->writes = 1;
  go_through(a);
  return hg_rewrite_end(&a->to, 0);
}

hg_status hg_native_pass_rematerialise(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t regs = v->regs.count;
  again a = {.v = v, .old_regs = (uint32_t)regs};
  (void)b;
  a.writer = hg_allocate(&v->allocator, 3 * regs, sizeof *a.writer);
  if (a.writer == NULL) return hg_fail_memory("machine code", 3 * regs * sizeof *a.writer);
  a.now = a.writer + regs;
  a.at = a.now + regs;
  hg_native_find_writers(v, a.writer);
  go_through(&a);
  hg_status status = HG_OK;
  if (a.count >= CPU_FAR_READS) {
    status = write_program(&a, v);
    *fired = a.count;
  }
  hg_release(&v->allocator, a.writer);
  return status;
}
