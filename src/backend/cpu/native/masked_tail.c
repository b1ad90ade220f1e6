/* masked_tail.c - loads of the last columns of a row, which are fewer than the block's lanes, before the program
 * becomes straight-line code (straight.c).
 *
 * Lanes beyond the row's end load its last element again, by an index u + min(blane, s), and store nothing, under a
 * predicate blane < t; s and t are scalars. If t is s + 1, the index of the lanes below t is u plus the lane's number,
 * as in the rest of the row. So these lanes are one masked load of consecutive elements, and the others take the
 * element at u + s, which is the same in the whole block. That t is s + 1 is checked together with the row's bounds
 * (NATIVE_TAIL, range_guards.c). */
#include "backend/cpu/native/loop.h"
#include "backend/cpu/native/straight.h"
#include "base/error.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

#include <string.h>

/* What replaces an index u + min(blane, s), by instruction. */
typedef struct tail {
  uint32_t last;        /* the scalar s; VECTOR_NONE: not such an index */
  uint32_t index, same; /* registers of the new program: the index in lanes below t, and in the others */
} tail;

typedef struct tails {
  const atlas_program *program;
  hg_vector *v;
  hg_rewrite to;
  uint32_t *writer; /* per register: see hg_native_find_writers */
  tail *tail;       /* per instruction */
  uint8_t *is_seen; /* per register: its values in lanes from t on have an effect */
  uint32_t old_regs;
  uint32_t end;     /* the scalar t; VECTOR_NONE: there is none, or there are several */
  uint32_t accesses;
  uint32_t is_there; /* the predicate blane < t of the new program */
} tails;

static int is_scalar(const hg_vector *v, uint32_t r) {
  if (r >= VECTOR_ALL) return 0;
  const vector_reg *reg = vector_reg_at(v, r);
  return reg->kind == VECTOR_SCALAR && reg->type == ATLAS_u32;
}

/* The only instruction that writes a register, provided it does so in all lanes; NULL: there is none. */
static const vector_insn *maker_of(const tails *s, uint32_t r) {
  if (r >= s->old_regs || s->writer[r] >= VECTOR_ALL) return NULL;
  const vector_insn *made = vector_insn_at(s->v, s->writer[r]);
  return made->mask == VECTOR_ALL ? made : NULL;
}

/* The scalar s of a register that is min(blane, s); VECTOR_NONE: it is something else. */
static uint32_t last_of(const tails *s, uint32_t r) {
  const vector_insn *made = maker_of(s, r);
  if (made == NULL || made->op != ATLAS_OP_min || made->type != ATLAS_u32) return VECTOR_NONE;
  for (int k = 0; k < 2; k++)
    if (hg_native_is_blane(s->v, made->s[k]) && is_scalar(s->v, made->s[!k])) return made->s[!k];
  return VECTOR_NONE;
}

static int is_end(const tails *s, const vector_insn *insn) {
  if (insn->op != ATLAS_OP_set_lt || insn->type2 != ATLAS_u32 || insn->mask != VECTOR_ALL) return 0;
  return maker_of(s, insn->d) == insn && hg_native_is_blane(s->v, insn->s[0]) && is_scalar(s->v, insn->s[1]);
}

static void find_end(tails *s) {
  uint32_t several = 0;
  s->end = VECTOR_NONE;
  for (uint32_t i = 0; i < s->v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(s->v, i);
    if (!is_end(s, insn)) continue;
    several |= s->end != VECTOR_NONE && s->end != insn->s[1];
    s->end = insn->s[1];
  }
  if (several) s->end = VECTOR_NONE;
}

/* 1 if a mask is false in all lanes from t on. */
static int is_below_end(const tails *s, uint32_t mask, int depth) {
  enum { DEEPEST = 4 };
  const vector_insn *made = maker_of(s, mask);
  if (made == NULL || depth == DEEPEST) return 0;
  if (is_end(s, made)) return 1;
  int is_and = made->op == VECTOR_AND || made->op == ATLAS_OP_pand;
  if (!is_and && made->op != VECTOR_ANDNOT && made->op != VECTOR_MOVE) return 0;
  return is_below_end(s, made->s[0], depth + 1) || (is_and && is_below_end(s, made->s[1], depth + 1));
}

/* 1 if a source of an instruction has an effect in lanes below t only. */
static int is_source_below_end(const tails *s, const vector_insn *insn, int k) {
  if (insn->mask < VECTOR_ALL && is_below_end(s, insn->mask, 0)) return 1;
  if (insn->op == ATLAS_OP_sel && k == 1 && is_below_end(s, insn->s[0], 0)) return 1;
  if (insn->d >= VECTOR_ALL || s->is_seen[insn->d]) return 0;
  if (vector_is_primitive(insn->op))
    return atlas_op_flags(insn->op) & ATLAS_PURE && !(atlas_op_flags(insn->op) & ATLAS_BLOCK);
  switch (insn->op) {
  case VECTOR_MOVE:
  case VECTOR_CANON:
  case VECTOR_LESSER:
  case VECTOR_GREATER:
  case NATIVE_RECIPROCAL:
  case NATIVE_QUOTIENT: return 1;
  default: return 0;
  }
}

/* Iterates to a fixed point, because a later round of a loop may read a value. */
static void find_seen(tails *s) {
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t i = (uint32_t)s->v->insns.count; i-- > 0;) {
      const vector_insn *insn = vector_insn_at(s->v, i);
      if (insn->mask < s->old_regs && !s->is_seen[insn->mask]) s->is_seen[insn->mask] = 1, changed = 1;
      for (int k = 0; k < 4; k++) {
        if (insn->s[k] >= s->old_regs || s->is_seen[insn->s[k]] || is_source_below_end(s, insn, k)) continue;
        s->is_seen[insn->s[k]] = 1;
        changed = 1;
      }
    }
  }
}

/* ---- the new program --------------------------------------------------------------------------------------------- */

static uint32_t add_register(tails *s, uint8_t type, uint8_t uniform) {
  return hg_rewrite_register(&s->to, &(vector_reg){.type = type, .kind = VECTOR_VARIES, .uniform = uniform});
}

static uint32_t append_sum(tails *s, uint32_t u, uint32_t other, uint8_t uniform) {
  vector_insn sum = vector_insn_of(ATLAS_OP_add, VECTOR_ALL);
  sum.type = ATLAS_u32;
  sum.s[0] = u;
  sum.s[1] = other;
  sum.d = add_register(s, ATLAS_u32, uniform);
  hg_rewrite_append(&s->to, &sum);
  return sum.d;
}

/* Called behind an instruction that may have made such an index. */
static void note_tail(tails *s, uint32_t i) {
  const vector_insn *insn = vector_insn_at(s->v, i);
  tail *t = &s->tail[i];
  if (insn->d >= s->old_regs || maker_of(s, insn->d) != insn) return;
  t->last = last_of(s, insn->d);
  t->index = insn->s[t->last == insn->s[0]]; /* the lane's number */
  t->same = t->last;
  if (t->last != VECTOR_NONE || insn->op != ATLAS_OP_add || insn->type != ATLAS_u32) return;
  for (int k = 0; k < 2 && t->last == VECTOR_NONE; k++) {
    uint32_t last = last_of(s, insn->s[k]), u = insn->s[!k];
    if (last == VECTOR_NONE || u >= s->old_regs) continue;
    const vector_insn *clamp = maker_of(s, insn->s[k]);
    const vector_reg *reg = vector_reg_at(s->v, u);
    if (reg->kind != VECTOR_CONSTANT && reg->kind != VECTOR_SCALAR && !reg->uniform) continue;
    t->index = append_sum(s, u, clamp->s[last == clamp->s[0]], 0);
    t->same = append_sum(s, u, last, 1);
    t->last = last;
  }
}

/* What the index of an access to a buffer is replaced by; NULL: it stays. */
static const tail *tail_of(const tails *s, const vector_insn *insn) {
  unsigned flags = vector_is_primitive(insn->op) ? atlas_op_flags(insn->op) : 0;
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE)) || flags & (ATLAS_ATOMIC | ATLAS_SPACE_POOL)) return NULL;
  if (insn->mode != ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY) return NULL;
  if (atlas_symbol_at(s->program, insn->symbol)->kind != ATLAS_SYMBOL_BUFFER) return NULL;
  if (insn->flags & (VECTOR_KEEP | VECTOR_LANE | VECTOR_SAME) || insn->bits > NATIVE_GREATEST_DISPLACEMENT) return NULL;
  const vector_insn *made = maker_of(s, insn->s[0]);
  if (made == NULL || s->end == VECTOR_NONE) return NULL;
  const tail *t = &s->tail[s->writer[insn->s[0]]];
  if (made >= insn || t->last == VECTOR_NONE) return NULL;
  return (flags & ATLAS_LOAD ? insn->mask == VECTOR_ALL : is_below_end(s, insn->mask, 0)) ? t : NULL;
}

static void append_load(tails *s, const vector_insn *insn, const tail *t) {
  vector_insn part = *insn, same = *insn, sel = vector_insn_of(ATLAS_OP_sel, VECTOR_ALL);
  part.flags |= VECTOR_CONTIGUOUS | NATIVE_TAIL;
  part.mask = s->is_there;
  part.s[0] = t->index;
  part.s[2] = t->last;
  part.s[3] = s->end;
  if (!s->is_seen[insn->d]) {
    hg_rewrite_append(&s->to, &part);
    return;
  }
  same.d = add_register(s, insn->type, 1);
  part.d = add_register(s, insn->type, 0);
  same.flags |= VECTOR_SAME;
  same.s[0] = t->same;
  sel.type = insn->type;
  sel.d = insn->d;
  sel.s[0] = s->is_there;
  sel.s[1] = part.d;
  sel.s[2] = same.d;
  hg_rewrite_append(&s->to, &same);
  hg_rewrite_append(&s->to, &part);
  hg_rewrite_append(&s->to, &sel);
}

static void append_end(tails *s) {
  vector_insn set = vector_insn_of(ATLAS_OP_set_lt, VECTOR_ALL);
  set.type = SSA_PREDICATE;
  set.type2 = ATLAS_u32;
  for (uint32_t r = 0; r < s->old_regs; r++)
    if (hg_native_is_blane(s->v, r)) set.s[0] = r;
  set.s[1] = s->end;
  set.d = s->is_there = add_register(s, SSA_PREDICATE, 0);
  hg_rewrite_append(&s->to, &set);
}

static void write_insn(tails *s, uint32_t i) {
  vector_insn insn = *vector_insn_at(s->v, i);
  const tail *t = tail_of(s, vector_insn_at(s->v, i));
  s->tail[i].last = VECTOR_NONE;
  s->accesses += t != NULL;
  if (t != NULL && atlas_op_flags(insn.op) & ATLAS_LOAD) {
    append_load(s, &insn, t);
    return;
  }
  if (t != NULL) {
    insn.flags |= VECTOR_CONTIGUOUS | NATIVE_TAIL;
    insn.s[0] = t->index;
    insn.s[2] = t->last;
    insn.s[3] = s->end;
  }
  if (is_end(s, vector_insn_at(s->v, i)) && insn.s[1] == s->end) {
    insn = vector_insn_of(VECTOR_MOVE, VECTOR_ALL);
    insn.type = SSA_PREDICATE;
    insn.d = vector_insn_at(s->v, i)->d;
    insn.s[0] = s->is_there;
  }
  hg_rewrite_append(&s->to, &insn);
  note_tail(s, i);
}

/* Writes the new program. The predicate is computed at its beginning. */
static hg_status write_program(tails *s) {
  uint32_t n = (uint32_t)s->v->insns.count, is_known = 0;
  HG_TRY(hg_rewrite_begin(&s->to, s->v, 0));
  for (uint32_t i = 0; i < n; i++) {
    if (!is_known && vector_insn_at(s->v, i)->op != VECTOR_LABEL) {
      is_known = 1;
      append_end(s);
    }
    hg_rewrite_place(&s->to, i);
    write_insn(s, i);
  }
  return hg_rewrite_end(&s->to, 1);
}

static int has_clamp(const tails *s) {
  for (uint32_t r = 0; r < s->old_regs; r++)
    if (last_of(s, r) != VECTOR_NONE) return 1;
  return 0;
}

hg_status hg_native_pass_masked_tail(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t n = v->insns.count, regs = v->regs.count, words = n * (sizeof(tail) / sizeof(uint32_t)) + regs + regs;
  tails s = {.program = b->program, .v = v, .old_regs = (uint32_t)regs};
  if (!b->has_tails) return HG_OK;
  s.tail = hg_allocate_unset(&v->allocator, words, sizeof(uint32_t));
  if (s.tail == NULL) return hg_fail_memory("machine code", words * sizeof(uint32_t));
  s.writer = (uint32_t *)(s.tail + n);
  s.is_seen = (uint8_t *)(s.writer + regs);
  memset(s.is_seen, 0, regs);
  hg_native_find_writers(v, s.writer);
  find_end(&s);
  hg_status status = HG_OK;
  if (s.end != VECTOR_NONE && has_clamp(&s)) {
    find_seen(&s);
    status = write_program(&s);
  }
  hg_release(&v->allocator, s.tail);
  *fired = s.accesses;
  b->has_tails = s.accesses > 0;
  return status;
}
