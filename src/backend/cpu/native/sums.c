/* sums.c - of a sum of the lane's number and values that are the same in the block, those are added up first: the
 * program before it is cut into regions (split.c) or becomes straight-line code (wide.c). So an index that grows from
 * round to round of a loop, or from chunk to chunk of a row, is the lane's number plus the start of a row, as others
 * are: an access needs one comparison for all lanes of a group, in straight-line code for all of a round
 * (wide_bounds.c). The bits are the same: integers wrap. */
#include "backend/cpu/native/native.h"
#include "base/error.h"
#include "vector/lower.h"

typedef struct summer {
  hg_vector *to;
  uint32_t *at;      /* per register: the instruction of `to` since the last label or jump that has written it last */
  uint32_t since;    /* the instruction behind that label or jump */
} summer;

static int is_alike(const hg_vector *v, uint32_t r) {
  if (r >= VECTOR_ALL) return 0;
  const vector_reg *reg = vector_reg_at(v, r);
  if (reg->type != ATLAS_u32 || reg->kind == VECTOR_SPECIAL) return 0;
  return reg->kind != VECTOR_VARIES || reg->uniform;
}

/* What a register, which an instruction of this part of the program has written, is more than the lane's number, if it
 * still is; VECTOR_NONE: nobody knows. */
static uint32_t added_to_lane(const summer *s, uint32_t r) {
  if (r >= VECTOR_ALL || s->at[r] == VECTOR_NONE || s->at[r] < s->since) return VECTOR_NONE;
  const vector_insn *made = vector_insn_at(s->to, s->at[r]);
  uint32_t added = made->mask == VECTOR_ALL ? hg_native_added_to_lane(s->to, made) : VECTOR_NONE;
  if (!is_alike(s->to, added)) return VECTOR_NONE;
  int is_old = s->at[added] != VECTOR_NONE && s->at[added] >= s->since && s->at[added] > s->at[r];
  return is_old ? VECTOR_NONE : added;
}

static int append(summer *s, const vector_insn *insn) {
  if (insn->d < VECTOR_ALL) s->at[insn->d] = (uint32_t)s->to->insns.count;
  return hg_array_append(&s->to->allocator, &s->to->insns, insn, 1) != NULL;
}

static int is_lane(const summer *s, uint32_t r) {
  if (r >= VECTOR_ALL) return 0;
  const vector_reg *reg = vector_reg_at(s->to, r);
  return reg->kind == VECTOR_SPECIAL && reg->bits == ATLAS_REG_BLOCK_LANE;
}

/* lane + what `sum` adds up. Its register has no place in s->at: nothing else reads it. */
static int append_sum(summer *s, vector_insn sum, uint32_t lane, uint32_t d) {
  const vector_reg reg = {.type = ATLAS_u32, .kind = VECTOR_VARIES, .uniform = 1};
  vector_insn index = sum;
  sum.d = (uint32_t)s->to->regs.count;
  index.op = ATLAS_OP_add;
  index.d = d;
  index.s[0] = lane;
  index.s[1] = sum.d;
  index.s[2] = VECTOR_NONE;
  if (hg_array_append(&s->to->allocator, &s->to->regs, &reg, 1) == NULL) return 0;
  return hg_array_append(&s->to->allocator, &s->to->insns, &sum, 1) != NULL && append(s, &index);
}

static uint32_t lane_in(const summer *s, uint32_t r) {
  const vector_insn *made = vector_insn_at(s->to, s->at[r]);
  return made->s[!is_lane(s, made->s[0])];
}

/* (lane + u) + v becomes lane + (u + v). */
static int write_sum(summer *s, const vector_insn *insn) {
  for (int k = 0; k < 2; k++) {
    uint32_t u = added_to_lane(s, insn->s[k]), v = insn->s[!k];
    if (u == VECTOR_NONE || !is_alike(s->to, v)) continue;
    vector_insn sum = *insn;
    sum.s[0] = u;
    sum.s[1] = v;
    return append_sum(s, sum, lane_in(s, insn->s[k]), insn->d);
  }
  return append(s, insn);
}

/* v * w + lane becomes lane + v * w, v * w + (lane + u) becomes lane + (v * w + u). */
static int write_product(summer *s, const vector_insn *insn) {
  vector_insn sum = *insn;
  if (!is_alike(s->to, insn->s[0]) || !is_alike(s->to, insn->s[1])) return append(s, insn);
  if (is_lane(s, insn->s[2])) {
    sum.op = ATLAS_OP_mul;
    sum.s[2] = VECTOR_NONE;
    return append_sum(s, sum, insn->s[2], insn->d);
  }
  sum.s[2] = added_to_lane(s, insn->s[2]);
  return sum.s[2] == VECTOR_NONE ? append(s, insn) : append_sum(s, sum, lane_in(s, insn->s[2]), insn->d);
}

static int write_insn(summer *s, const vector_insn *insn) {
  int is_u32 = insn->type == ATLAS_u32 && insn->mask == VECTOR_ALL;
  if (is_u32 && insn->op == ATLAS_OP_add) return write_sum(s, insn);
  if (is_u32 && insn->op == ATLAS_OP_mad) return write_product(s, insn);
  if (insn->op == VECTOR_LABEL || vector_is_jump(insn->op)) s->since = (uint32_t)s->to->insns.count + 1;
  return append(s, insn);
}

hg_status hg_native_sums(const hg_vector *vector, hg_vector *out) {
  uint64_t n = vector->insns.count, regs = vector->regs.count;
  const hg_allocator allocator = out->allocator;
  *out = *vector;
  out->allocator = allocator;
  out->insns = (hg_array){.element_size = sizeof(vector_insn)};
  out->regs = (hg_array){.element_size = sizeof(vector_reg)};
  summer s = {.to = out, .at = hg_allocate(&out->allocator, regs + n, sizeof *s.at)};
  int has_memory = s.at != NULL && hg_array_append(&out->allocator, &out->regs, vector->regs.data, regs) != NULL;
  for (uint32_t r = 0; r < regs && has_memory; r++) s.at[r] = VECTOR_NONE;
  for (uint32_t i = 0; i < n && has_memory; i++) {
    s.at[regs + i] = (uint32_t)out->insns.count;
    has_memory = write_insn(&s, vector_insn_at(vector, i));
  }
  for (uint32_t i = 0; i < out->insns.count && has_memory; i++) {
    vector_insn *insn = vector_insn_at(out, i);
    if (insn->target != VECTOR_NONE) insn->target = s.at[regs + insn->target];
  }
  hg_release(&out->allocator, s.at);
  return has_memory ? hg_vector_lifetimes(out) : hg_fail_memory("machine code", n * sizeof(vector_insn));
}
