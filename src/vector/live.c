/* live.c - live ranges of registers, in the order of the code.
 *
 * A loop is the code from a label to the last jump back to it or to an inner loop. A register that is read in a loop
 * and written before it is live until the loop's end. One that is written in a loop and read after it is live from the
 * loop's start, because lanes that have left keep it while others go on. */
#include "vector/lower.h"

#include "base/error.h"

typedef struct loop {
  uint32_t end, parent;
} loop;

typedef struct lifetimes {
  hg_vector *v;
  loop *loops;          /* by the number of their label; end 0: none */
  uint32_t *around;     /* per instruction: label of the innermost loop around it; VECTOR_NONE */
  uint32_t *block_ops;  /* per instruction: the number of whole-block instructions before it */
} lifetimes;

static void find_loops(lifetimes *t) {
  uint32_t innermost = VECTOR_NONE, ops = 0;
  for (uint32_t i = 0; i < t->v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(t->v, i);
    if (vector_is_jump(insn->op) && insn->target <= i) t->loops[insn->target].end = i;
  }
  for (uint32_t i = 0; i < t->v->insns.count; i++) {
    if (t->loops[i].end != 0) {
      t->loops[i].parent = innermost;
      for (uint32_t h = innermost; h != VECTOR_NONE && t->loops[h].end < t->loops[i].end; h = t->loops[h].parent)
        t->loops[h].end = t->loops[i].end; /* jumped back to from inside this loop */
      innermost = i;
    }
    t->around[i] = innermost;
    t->block_ops[i] = ops;
    ops += (uint32_t)hg_is_block_op(vector_insn_at(t->v, i)->op);
    while (innermost != VECTOR_NONE && t->loops[innermost].end == i) innermost = t->loops[innermost].parent;
  }
}

static void extend_range(hg_vector *v, uint32_t r, uint32_t at) {
  if (r == VECTOR_NONE || r == VECTOR_ALL) return;
  vector_reg *reg = vector_reg_at(v, r);
  if (reg->first == VECTOR_NONE) reg->first = at;
  reg->last = at;
}

/* 1 if there is a back edge. Without loops a register is live from its first instruction to its last. */
static int find_extents(hg_vector *v) {
  int has_loops = 0;
  for (uint32_t r = 0; r < v->regs.count; r++) vector_reg_at(v, r)->first = VECTOR_NONE;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    for (int s = 0; s < 4; s++) extend_range(v, insn->s[s], i);
    extend_range(v, insn->mask, i);
    extend_range(v, insn->d, i);
    has_loops |= vector_is_jump(insn->op) && insn->target <= i;
  }
  return has_loops;
}

static void allow_for_loops(const lifetimes *t, vector_reg *reg) {
  for (uint32_t h = t->around[reg->last]; h != VECTOR_NONE && reg->first < h; h = t->loops[h].parent)
    reg->last = t->loops[h].end;
  for (uint32_t h = t->around[reg->first]; h != VECTOR_NONE && t->loops[h].end < reg->last; h = t->loops[h].parent)
    reg->first = h;
  uint32_t before = t->block_ops[reg->first], upto = t->block_ops[reg->last];
  reg->across = (uint8_t)(before != upto || hg_is_block_op(vector_insn_at(t->v, reg->last)->op));
}

hg_status hg_vector_lifetimes(hg_vector *v) {
  uint64_t n = v->insns.count;
  if (!find_extents(v) && !v->has_block_ops) return HG_OK;
  lifetimes t = {.v = v, .loops = hg_allocate(&v->allocator, n, sizeof(loop) + 2 * sizeof(uint32_t))};
  if (t.loops == NULL) return hg_fail_memory("vector code", n * sizeof(loop));
  t.around = (uint32_t *)(t.loops + n);
  t.block_ops = t.around + n;
  find_loops(&t);
  for (uint32_t r = 0; r < v->regs.count; r++) {
    vector_reg *reg = vector_reg_at(v, r);
    if (reg->first != VECTOR_NONE && reg->kind == VECTOR_VARIES) allow_for_loops(&t, reg);
  }
  hg_release(&v->allocator, t.loops);
  return HG_OK;
}
