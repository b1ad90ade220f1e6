/* quotient.c - divisions of f32 by one uniform divisor: its reciprocal is computed once, and each quotient is a product
 * and a correction, which gives the exact result (Markstein, IBM Journal of Research and Development 34(1), 1990).
 *
 * Let r = 1/u rounded, q = a r rounded, e = a - q u (which fma computes exactly); then q + e r rounded is the result of
 * a division for all significands. Only quotients within 7 units of 2^-48 of the midpoint between two floats could
 * differ; of 186 million pairs of significands, all within 32 units, none does (tests/unit/test_quotients.c tries
 * some). The exponents must not let anything underflow: NATIVE_RECIPROCAL gives a NaN for other divisors, which makes q
 * a NaN, and the code divides if q is not between 2^-63 and 2^64 in all lanes. */
#include "backend/cpu/native/vector_passes.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "base/error.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

#include <string.h>

enum { MOST_COUNT = 1 << 16 };

typedef struct quotients {
  const hg_vector *from;
  hg_rewrite to;
  uint32_t *divisions;  /* per register: how many divisions of varying values by it there are */
  uint32_t *made;       /* per register: the instruction after which it has the one value that all lanes of the block
                           read; VECTOR_NONE: there is none */
  uint8_t *alike;       /* per register: see hg_native_find_alike */
  uint32_t *reciprocal; /* per register: its reciprocal; VECTOR_NONE */
  uint32_t written;     /* quotients */
} quotients;

static int is_varying(const hg_vector *v, uint32_t r) {
  return r < v->regs.count && vector_reg_at(v, r)->kind == VECTOR_VARIES;
}

static int is_uniform(const hg_vector *v, uint32_t r) { return is_varying(v, r) && vector_reg_at(v, r)->uniform; }

static int is_division(const vector_insn *insn) {
  return insn->op == ATLAS_OP_div && insn->type == ATLAS_f32 && !(insn->flags & VECTOR_KEEP);
}

static int divides(const quotients *q, const vector_insn *insn) {
  return is_division(insn) && is_varying(q->from, insn->s[1]) && q->made[insn->s[1]] != VECTOR_NONE &&
         is_varying(q->from, insn->s[0]) && !is_uniform(q->from, insn->s[0]) && q->made[insn->s[0]] == VECTOR_NONE;
}

static void find_made(quotients *q) {
  const hg_vector *v = q->from;
  hg_native_find_alike(v, q->alike);
  for (uint32_t r = 0; r < v->regs.count; r++) q->made[r] = VECTOR_NONE;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (!is_varying(v, insn->d)) continue;
    int follows = i > 0 && insn->op == VECTOR_CANON && insn->s[0] == insn->d && q->made[insn->d] == i - 1;
    int is_first = vector_reg_at(v, insn->d)->first == i && q->alike[insn->d];
    q->made[insn->d] = insn->mask == VECTOR_ALL && (is_first || follows) ? i : VECTOR_NONE;
  }
}

static void count_divisions(quotients *q) {
  const hg_vector *v = q->from;
  uint32_t top = UINT32_MAX; /* where the outermost loop around it begins */
  for (uint32_t i = (uint32_t)v->insns.count; i-- > 0;) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (i < top) top = UINT32_MAX;
    if (vector_is_jump(insn->op) && insn->target <= i && insn->target < top) top = insn->target;
    uint32_t *count = divides(q, insn) ? &q->divisions[insn->s[1]] : NULL;
    if (count != NULL && *count < MOST_COUNT) *count += top != UINT32_MAX ? CPU_DIVISIONS_A_LOOP : 1;
  }
}

static void append_reciprocal(quotients *q, uint32_t r) {
  vector_insn insn = vector_insn_of(NATIVE_RECIPROCAL, VECTOR_ALL);
  insn.type = ATLAS_f32;
  insn.s[0] = r;
  insn.d = q->reciprocal[r] =
      hg_rewrite_register(&q->to, &(vector_reg){.type = ATLAS_f32, .kind = VECTOR_VARIES, .uniform = 1});
  hg_rewrite_append(&q->to, &insn);
}

/* 1: the instruction makes the quotient right before it canonical, which it is already. */
static int is_canonical_already(const quotients *q, uint32_t i) {
  const vector_insn *insn = vector_insn_at(q->from, i), *before = insn - 1;
  if (i == 0 || insn->op != VECTOR_CANON || insn->flags & VECTOR_KEEP || insn->mask != before->mask) return 0;
  return insn->d == before->d && insn->s[0] == before->d && divides(q, before) &&
         q->reciprocal[before->s[1]] != VECTOR_NONE;
}

static hg_status write_program(quotients *q, hg_vector *v) {
  uint32_t regs = (uint32_t)v->regs.count;
  memset(q->reciprocal, 0xff, regs * sizeof *q->reciprocal);
  HG_TRY(hg_rewrite_begin(&q->to, v, regs));
  for (uint32_t i = 0; i < v->insns.count; i++) {
    vector_insn insn = *vector_insn_at(v, i);
    if (divides(q, &insn) && q->reciprocal[insn.s[1]] != VECTOR_NONE) {
      insn.op = NATIVE_QUOTIENT;
      insn.s[2] = q->reciprocal[insn.s[1]];
      q->written++;
    }
    hg_rewrite_place(&q->to, i);
    if (is_canonical_already(q, i)) continue;
    hg_rewrite_append(&q->to, &insn);
    int is_made = is_varying(v, insn.d) && q->made[insn.d] == i && q->divisions[insn.d] >= CPU_LEAST_DIVISIONS;
    if (is_made) append_reciprocal(q, insn.d);
  }
  return hg_rewrite_end(&q->to, 1);
}

static int has_quotients(const quotients *q) {
  for (uint32_t r = 0; r < q->from->regs.count; r++)
    if (q->divisions[r] >= CPU_LEAST_DIVISIONS) return 1;
  return 0;
}

int hg_native_has_divisions(const hg_vector *v) {
  for (uint32_t i = 0; i < v->insns.count; i++)
    if (is_division(vector_insn_at(v, i))) return 1;
  return 0;
}

hg_status hg_native_pass_quotients(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t regs = v->regs.count, room = 3 * sizeof(uint32_t) + 1;
  quotients q = {.from = v, .divisions = hg_allocate(&v->allocator, regs, room)};
  (void)b;
  if (q.divisions == NULL) return hg_fail_memory("machine code", regs * room);
  q.made = q.divisions + regs;
  q.reciprocal = q.made + regs;
  q.alike = (uint8_t *)(q.reciprocal + regs);
  find_made(&q);
  count_divisions(&q);
  hg_status status = has_quotients(&q) ? write_program(&q, v) : HG_OK;
  hg_release(&v->allocator, q.divisions);
  *fired = q.written;
  return status;
}
