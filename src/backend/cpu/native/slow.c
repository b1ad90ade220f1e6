/* slow.c - says what makes a version's code slower than the length of its program suggests, as a sentence with lines of
 * the program: calls of C, accesses whose lanes' elements are not consecutive, loops of such accesses that lanes leave
 * one by one, and loops without a version for lanes that stay together. */
#include "backend/cpu/native/loop.h"
#include "backend/cpu/native/pipeline.h"

#include "atlas/insn.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* Instructions of the program: the line of the first one, and whether there are others. */
typedef struct places { uint32_t first, others; } places;

typedef struct slow_search {
  const native_build *b;
  uint8_t *strides; /* scratch: per register */
  uint8_t *guesses; /* per instruction: see hg_native_guess; then scratch */
  uint8_t *is_apart;/* per instruction */
  places calls, apart, waits, loops;
} slow_search;

static void note(const slow_search *s, places *to, uint32_t i) {
  uint32_t insn = vector_insn_at(s->b->vector, i)->insn;
  if (insn >= s->b->program->insns.count || insn == to->first) return;
  to->others |= to->first != SSA_NONE;
  if (to->first == SSA_NONE || insn < to->first) to->first = insn;
}

/* An access to a buffer's elements by an index in a register. Shared memory is close, so nothing is said of it. */
static int is_indexed(const vector_insn *insn) {
  uint32_t flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE)) || !(flags & ATLAS_SPACE_GLOBAL)) return 0;
  return insn->mode == ATLAS_ADDRESS_INDEXED && insn->s[0] != VECTOR_NONE && !(insn->symbol & SSA_LIBRARY) &&
         !(insn->flags & (VECTOR_LANE | VECTOR_SAME));
}

/* An access to a local array by an index of each lane's own: a gather or scatter. */
static int is_local_by_lane(const native_build *b, const vector_insn *insn) {
  uint32_t flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE)) || !(flags & ATLAS_SPACE_LOCAL)) return 0;
  if (insn->mode != ATLAS_ADDRESS_INDEXED || insn->s[0] >= b->vector->regs.count) return 0;
  return vector_reg_at(b->vector, insn->s[0])->kind == VECTOR_VARIES && !b->locations[insn->s[0]].is_uniform;
}

static void find_apart(slow_search *s) {
  hg_native_guess(s->b, s->strides, s->guesses);
  for (uint32_t i = 0; i < s->b->vector->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(s->b->vector, i);
    int is_back = s->guesses[i] == VECTOR_STRIDE_BACK && /* x86 loads such neighbours at once */
                  (atlas_op_flags(insn->op) & ATLAS_STORE || !s->b->target->has_quick_loops);
    int is_far = is_indexed(insn) && !(insn->flags & VECTOR_CONTIGUOUS) &&
                 (s->guesses[i] == VECTOR_STRIDE_OTHER || s->guesses[i] == VECTOR_STRIDE_PACKED || is_back);
    s->is_apart[i] = is_far || is_local_by_lane(s->b, insn);
    if (s->is_apart[i]) note(s, &s->apart, i);
  }
}

/* 1: the target writes the loop a second time, for lanes that stay together. */
static int has_quick(slow_search *s, uint32_t head) {
  native_loop loop;
  return s->b->target->has_quick_loops && hg_native_find_loop(s->b, head, s->strides, s->guesses, &loop);
}

/* Finds innermost loops that access rows and are written once only. A loop with an instruction of the whole block is
 * left out: that takes longer than the checks. */
static void find_loops(slow_search *s) {
  const hg_vector *v = s->b->vector;
  uint32_t after = 0; /* the last jump back, or instruction of the whole block */
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    int is_back = vector_is_jump(insn->op) && insn->target <= i;
    if (is_back && insn->target >= after && !has_quick(s, insn->target))
      for (uint32_t k = insn->target; k < i; k++)
        if (is_indexed(vector_insn_at(v, k)) && !s->is_apart[k]) note(s, &s->loops, k);
    if (is_back || hg_is_block_op(insn->op)) after = i;
  }
}

/* Finds divergent loops with accesses of lanes that are apart: what one lane at a time would do as fast. */
static void find_waits(slow_search *s) {
  const hg_vector *v = s->b->vector;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *back = vector_insn_at(v, i);
    uint32_t apart = 0, step = VECTOR_NONE;
    if (back->op != VECTOR_JUMP_ANY || back->target > i || s->b->target->lanes == 1) continue;
    if (back->s[0] >= VECTOR_ALL || vector_reg_at(v, back->s[0])->uniform) continue;
    for (uint32_t k = back->target; k < i; k++) {
      apart += s->is_apart[k];
      if (vector_insn_at(v, k)->op == VECTOR_STEP) step = k;
    }
    if (apart > 0 && step != VECTOR_NONE) note(s, &s->waits, step);
  }
}

static void add(const slow_search *s, char *text, size_t text_bytes, const places *p, const char *of_one,
                const char *of_several) {
  if (p->first == SSA_NONE) return;
  size_t used = strlen(text);
  const atlas_insn *insn = atlas_insn_at(s->b->program, p->first);
  snprintf(text + used, text_bytes - used, "%s%s %u (%s)%s", used > 0 ? "; " : "",
           insn->line > 0 ? "line" : "instruction", (unsigned)(insn->line > 0 ? insn->line : p->first),
           atlas_op_lookup(insn->op)->mnemonic, p->others ? of_several : of_one);
}

hg_status hg_native_describe_slow(const native_build *b, char *text, size_t text_bytes) {
  const places none = {.first = SSA_NONE};
  size_t regs = b->vector->regs.count, insns = b->vector->insns.count;
  slow_search s = {.b = b, .calls = none, .apart = none, .waits = none, .loops = none};
  text[0] = '\0';
  s.strides = hg_allocate(&b->allocator, regs + 2 * insns, 1);
  if (s.strides == NULL) return hg_fail_memory("machine code", regs + 2 * insns);
  s.guesses = s.strides + regs;
  s.is_apart = s.guesses + insns;
  find_apart(&s);
  find_waits(&s);
  if (b->first_call > 0) note(&s, &s.calls, b->first_call - 1), note(&s, &s.calls, b->last_call - 1);
  if (b->slices == 0) find_loops(&s);
  add(&s, text, text_bytes, &s.calls, " calls C, which computes lane by lane",
      " and others call C, which computes lane by lane");
  add(&s, text, text_bytes, &s.apart, " accesses memory lane by lane: neighbouring lanes have no neighbouring elements",
      " and others access memory lane by lane: neighbouring lanes have no neighbouring elements");
  add(&s, text, text_bytes, &s.waits, " ends a loop that lanes leave one by one: they wait for the last",
      " and others end loops that lanes leave one by one: they wait for the last");
  add(&s, text, text_bytes, &s.loops, " is checked in each round of its loop",
      " and others are checked in each round of their loops");
  hg_release(&b->allocator, s.strides);
  return HG_OK;
}
