/* reassociate_index.c - reassociates sums of the lane's number and uniform values so that the uniform values are added
 * first, before the program is cut into regions (split.c) or becomes straight-line code (straight.c). An index that
 * grows from round to round of a loop, or from chunk to chunk of a row, then is the lane's number plus the start of a
 * row, as other indices are: an access needs one comparison for all lanes of a group, and in straight-line code one for
 * all of a round (range_guards.c). The bits are the same, since integers wrap. */
#include "backend/cpu/native/vector_passes.h"
#include "base/error.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

#include <string.h>

typedef struct summer {
  const hg_vector *v;
  hg_rewrite to;
  uint32_t *at;      /* per register of the old program: the last instruction of `to` since the last label or jump that
                        writes it */
  uint32_t since;    /* the instruction behind that label or jump */
  uint32_t old_regs;
  uint32_t written;  /* how many sums were reassociated */
} summer;

static int is_alike(const hg_vector *v, uint32_t r) {
  if (r >= VECTOR_ALL) return 0;
  const vector_reg *reg = vector_reg_at(v, r);
  if (reg->type != ATLAS_u32 || reg->kind == VECTOR_SPECIAL) return 0;
  return reg->kind != VECTOR_VARIES || reg->uniform;
}

/* The uniform value by which a register, written in this part of the program, still exceeds the lane's number;
 * VECTOR_NONE: not known. */
static uint32_t added_to_lane(const summer *s, uint32_t r) {
  if (r >= VECTOR_ALL || s->at[r] == VECTOR_NONE || s->at[r] < s->since) return VECTOR_NONE;
  const vector_insn *made = hg_rewrite_insn(&s->to, s->at[r]);
  uint32_t added = made->mask == VECTOR_ALL ? hg_native_added_to_lane(s->v, made) : VECTOR_NONE;
  if (!is_alike(s->v, added)) return VECTOR_NONE;
  int is_old = added < s->old_regs && s->at[added] != VECTOR_NONE && s->at[added] >= s->since &&
               s->at[added] > s->at[r];
  return is_old ? VECTOR_NONE : added;
}

static void append(summer *s, const vector_insn *insn) {
  if (insn->d < VECTOR_ALL) s->at[insn->d] = hg_rewrite_count(&s->to);
  hg_rewrite_append(&s->to, insn);
}

/* Appends d = lane + `sum`. The new register of the sum has no entry in s->at, since nothing else reads it. */
static void append_sum(summer *s, vector_insn sum, uint32_t lane, uint32_t d) {
  vector_insn index = sum;
  sum.d = hg_rewrite_register(&s->to, &(vector_reg){.type = ATLAS_u32, .kind = VECTOR_VARIES, .uniform = 1});
  index.op = ATLAS_OP_add;
  index.d = d;
  index.s[0] = lane;
  index.s[1] = sum.d;
  index.s[2] = VECTOR_NONE;
  hg_rewrite_append(&s->to, &sum);
  append(s, &index);
  s->written++;
}

static uint32_t lane_in(const summer *s, uint32_t r) {
  const vector_insn *made = hg_rewrite_insn(&s->to, s->at[r]);
  return made->s[!hg_native_is_blane(s->v, made->s[0])];
}

/* (lane + u) + v becomes lane + (u + v). */
static void write_sum(summer *s, const vector_insn *insn) {
  for (int k = 0; k < 2; k++) {
    uint32_t u = added_to_lane(s, insn->s[k]), v = insn->s[!k];
    if (u == VECTOR_NONE || !is_alike(s->v, v)) continue;
    vector_insn sum = *insn;
    sum.s[0] = u;
    sum.s[1] = v;
    append_sum(s, sum, lane_in(s, insn->s[k]), insn->d);
    return;
  }
  append(s, insn);
}

/* v * w + lane becomes lane + v * w, v * w + (lane + u) becomes lane + (v * w + u). */
static void write_product(summer *s, const vector_insn *insn) {
  vector_insn sum = *insn;
  int is_product = is_alike(s->v, insn->s[0]) && is_alike(s->v, insn->s[1]);
  if (is_product && hg_native_is_blane(s->v, insn->s[2])) {
    sum.op = ATLAS_OP_mul;
    sum.s[2] = VECTOR_NONE;
    append_sum(s, sum, insn->s[2], insn->d);
    return;
  }
  sum.s[2] = is_product ? added_to_lane(s, insn->s[2]) : VECTOR_NONE;
  if (sum.s[2] == VECTOR_NONE) append(s, insn);
  else append_sum(s, sum, lane_in(s, insn->s[2]), insn->d);
}

static void write_insn(summer *s, const vector_insn *insn) {
  int is_u32 = insn->type == ATLAS_u32 && insn->mask == VECTOR_ALL;
  if (insn->op == VECTOR_LABEL || vector_is_jump(insn->op)) s->since = hg_rewrite_count(&s->to) + 1;
  if (is_u32 && insn->op == ATLAS_OP_add) write_sum(s, insn);
  else if (is_u32 && insn->op == ATLAS_OP_mad) write_product(s, insn);
  else append(s, insn);
}

static hg_status write_program(summer *s, hg_vector *v) {
  memset(s->at, 0xff, s->old_regs * sizeof *s->at);
  HG_TRY(hg_rewrite_begin(&s->to, v, 0));
  for (uint32_t i = 0; i < v->insns.count && !s->to.no_memory; i++) {
    hg_rewrite_place(&s->to, i);
    write_insn(s, vector_insn_at(v, i));
  }
  return hg_rewrite_end(&s->to, 1);
}

hg_status hg_native_pass_reassociate_index(native_build *b, hg_vector *v, uint32_t *fired) {
  summer s = {.v = v, .old_regs = (uint32_t)v->regs.count};
  (void)b;
  s.at = hg_allocate_unset(&v->allocator, s.old_regs, sizeof *s.at);
  if (s.at == NULL) return hg_fail_memory("machine code", s.old_regs * sizeof *s.at);
  hg_status status = write_program(&s, v);
  hg_release(&v->allocator, s.at);
  *fired = s.written;
  return status;
}
