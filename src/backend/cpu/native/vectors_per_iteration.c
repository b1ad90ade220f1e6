/* vectors_per_iteration.c - chooses how many vectors of a row an iteration of a loop over the rows of a matrix handles.
 *
 * Such a loop reads a strip of columns, and rows lie far apart. The wider the strip, the more of each row is read while
 * its page and its cache lines are at hand. So only the values that every round works with limit the number of copies:
 * the indices of quick accesses are numbers, and what only some rounds use, such as the levels of a binary counter of
 * sums, may be in the frame. Blocks that count bytes handle a whole cache line of them at a time. */
#include "backend/cpu/native/loop.h"

#include "base/error.h"

typedef struct strips {
  native_build *b;
  const hg_vector *v;
  native_loop loop;
  uint8_t *strides; /* per register */
  uint8_t *busy;    /* per register: 1 if every round of the loop works with it */
  int32_t *change;  /* per instruction: the change in live pieces of busy values */
} strips;

/* The head of the only loop; VECTOR_NONE: there is none, or there are several. */
static uint32_t only_head(const hg_vector *v) {
  uint32_t head = VECTOR_NONE;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (!vector_is_jump(insn->op) || insn->target > i || insn->target == head) continue;
    if (head != VECTOR_NONE) return VECTOR_NONE;
    head = insn->target;
  }
  return head;
}

static int is_access(const vector_insn *insn) {
  return vector_is_primitive(insn->op) && atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC);
}

static int is_quick(const strips *s, const vector_insn *insn) {
  return hg_native_scalar_of(&s->loop, insn->s[0]) != NULL && hg_native_is_quick(s->b, insn, 0, s->strides[insn->s[0]]);
}

/* 1 if the loop stores nothing and loads only consecutive elements along a row; in blocks, only if these are bytes and
 * it may count them. */
static int reads_rows(const strips *s) {
  int count = 0, is_block = s->v->has_block_ops;
  for (uint32_t i = s->loop.head + 1; i < s->loop.end; i++) {
    const vector_insn *insn = vector_insn_at(s->v, i);
    if (!is_access(insn) || (is_block && atlas_op_flags(insn->op) & ATLAS_ATOMIC)) continue;
    if (!is_quick(s, insn) || s->strides[insn->s[0]] != VECTOR_STRIDE_1) return 0;
    if (atlas_op_flags(insn->op) & (ATLAS_STORE | ATLAS_ATOMIC)) return 0;
    if (is_block && atlas_bytes((atlas_type)insn->type) > 1) return 0;
    count++;
  }
  return count > 0 && (!is_block || s->loop.has_all);
}

/* 1 if a source is an index, or something that one is computed from: it is a number. */
static int is_number(const strips *s, const vector_insn *insn, int k) {
  if (hg_native_scalar_of(&s->loop, insn->s[k]) == NULL) return 0;
  return hg_native_scalar_of(&s->loop, insn->d) != NULL || (k == 0 && is_access(insn));
}

static void mark(const strips *s, uint32_t r) {
  if (r < s->v->regs.count) s->busy[r] = 1;
}

/* Marks what the instructions that all rounds reach work with, and what is made and used within a round. */
static void find_busy(const strips *s) {
  uint32_t furthest = 0, has_latch = 0;
  for (uint32_t i = s->loop.head + 1; i < s->loop.end; i++) {
    const vector_insn *insn = vector_insn_at(s->v, i);
    int is_passed_by = has_latch || furthest > i;
    for (int k = 0; k < 4; k++)
      if (!is_passed_by && !is_number(s, insn, k)) mark(s, insn->s[k]);
    if (insn->d < s->v->regs.count && hg_native_scalar_of(&s->loop, insn->d) == NULL)
      if (!is_passed_by || vector_reg_at(s->v, insn->d)->first == i) mark(s, insn->d);
    if (!vector_is_jump(insn->op)) continue;
    has_latch |= insn->target == s->loop.head;
    if (insn->target <= s->loop.end && insn->target > furthest) furthest = insn->target;
  }
}

static int is_in_vectors(const strips *s, uint32_t r) {
  const native_location *location = &s->b->locations[r];
  return location->kind == NATIVE_REGISTERS && !location->is_mask;
}

/* As many copies as all busy values have registers for, in addition to the values that all copies share. */
static uint32_t count_copies(const strips *s, const int32_t *shared, uint32_t copies) {
  int32_t now = 0, once = 0;
  uint32_t more = NATIVE_MOST_COPIES;
  for (uint32_t r = 0; r < s->v->regs.count; r++) {
    if (!s->busy[r] || !is_in_vectors(s, r) || s->b->locations[r].is_uniform) continue;
    s->change[vector_reg_at(s->v, r)->first] += s->b->locations[r].parts;
    s->change[vector_reg_at(s->v, r)->last] -= s->b->locations[r].parts; /* a result takes over its source's
                                                                            registers */
  }
  for (uint32_t i = 0; i < s->loop.end; i++) {
    now += s->change[i];
    once += shared[i];
    while (i > s->loop.head && more > copies && (int32_t)more * now + once > s->b->target->vector_count) more--;
  }
  return more;
}

hg_status hg_native_vectors_per_iteration(native_build *b, const int32_t *shared, uint32_t *spill_cost) {
  uint64_t regs = b->vector->regs.count, n = b->vector->insns.count;
  uint32_t head = only_head(b->vector);
  strips s = {.b = b, .v = b->vector};
  if (head == VECTOR_NONE || !b->target->has_quick_loops || b->copies == NATIVE_MOST_COPIES) return HG_OK;
  s.change = hg_allocate(&b->allocator, n * (sizeof *s.change + 1) + 2 * regs, 1);
  if (s.change == NULL) return hg_fail_memory("machine code", n * (sizeof *s.change + 1) + 2 * regs);
  s.strides = (uint8_t *)(s.change + n);
  s.busy = s.strides + regs;
  if (hg_native_find_loop(b, head, s.strides, s.busy + regs, &s.loop) && reads_rows(&s)) {
    find_busy(&s);
    uint32_t copies = count_copies(&s, shared, b->copies);
    for (uint32_t r = 0; r <= regs && copies > b->copies; r++) /* including the mask of the lanes that have not ended */
      if (r == regs || !s.busy[r]) spill_cost[r] = 0;
    b->copies = copies;
  }
  hg_release(&b->allocator, s.change);
  return HG_OK;
}
