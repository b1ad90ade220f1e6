/* straight_coalesce.c - coalesces moves at the latch of a loop in straight-line code (straight_loop.c): if the next
 * round's value is computed after the last read of the loop-carried register in this round, it is computed into that
 * register. */
#include "backend/cpu/native/straight.h"

#include "base/error.h"
#include "vector/rewrite.h"

#include <string.h>

typedef struct register_use {
  uint32_t writers;       /* the number of instructions that write it */
  uint32_t written;       /* the last one that does */
  uint32_t read;          /* the last one in the loop that reads it; 0: none does */
  uint8_t is_read_after;  /* 1: after the loop */
} register_use;

typedef struct coalescer {
  hg_vector *v;
  register_use *use;      /* per register */
  uint32_t *instead;      /* per register: its new name */
  uint32_t label, back, exit; /* the loop: its label, its back edge, the jump that leaves it */
  uint32_t moves;         /* moves that were removed */
} coalescer;

/* 1 if the label begins a loop with one exit and no other loop in it. */
static int find_loop(coalescer *c, uint32_t label) {
  c->label = label;
  c->exit = VECTOR_NONE;
  for (uint32_t i = label + 1; i < c->v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(c->v, i);
    if (insn->op == VECTOR_LABEL) return 0;
    if (!vector_is_jump(insn->op)) continue;
    c->back = i;
    if (insn->op == VECTOR_JUMP) return insn->target == label && c->exit != VECTOR_NONE;
    if (c->exit != VECTOR_NONE || insn->target < i) return 0;
    c->exit = i;
  }
  return 0;
}

static void note_read(coalescer *c, uint32_t r, uint32_t i) {
  if (r >= VECTOR_ALL) return;
  if (i > c->back) c->use[r].is_read_after = 1;
  else if (i > c->label) c->use[r].read = i;
}

static void find_uses(coalescer *c) {
  memset(c->use, 0, c->v->regs.count * sizeof *c->use);
  for (uint32_t i = 0; i < c->v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(c->v, i);
    for (int k = 0; k < 4; k++) note_read(c, insn->s[k], i);
    note_read(c, insn->mask, i);
    if (insn->d == VECTOR_NONE) continue;
    c->use[insn->d].writers++;
    c->use[insn->d].written = i;
  }
}

/* 1 if a move carried = next at the latch can be removed. The code behind an exit before the definition of `next` sees
 * the old value, behind a later one the new value. */
static int can_coalesce(const coalescer *c, uint32_t i) {
  const vector_insn *move = vector_insn_at(c->v, i);
  if (move->op != VECTOR_MOVE || move->mask != VECTOR_ALL || move->s[0] >= VECTOR_ALL) return 0;
  const vector_reg *carried = vector_reg_at(c->v, move->d), *next = vector_reg_at(c->v, move->s[0]);
  const register_use *old = &c->use[move->d], *new = &c->use[move->s[0]];
  if (carried->bits != STRAIGHT_LOOP_CARRIED || next->kind != VECTOR_VARIES || next->bits == STRAIGHT_LOOP_CARRIED)
    return 0;
  if (carried->type != next->type || carried->uniform != next->uniform) return 0;
  if (old->writers != 2 || old->written != i || new->writers != 1) return 0; /* it is written before the loop, and
                                                                                here */
  if (new->written <= c->label || new->written >= i || old->read > new->written) return 0;
  return c->exit > new->written ? !old->is_read_after : !new->is_read_after;
}

static void coalesce_loop(coalescer *c) {
  find_uses(c);
  for (uint32_t i = c->label + 1; i < c->back; i++) {
    vector_insn *move = vector_insn_at(c->v, i);
    if (!can_coalesce(c, i) || c->instead[move->s[0]] != move->s[0]) continue;
    c->instead[move->s[0]] = move->d;
    move->op = VECTOR_REMOVED;
    c->moves++;
  }
}

static uint32_t renamed(const coalescer *c, uint32_t r) { return r < VECTOR_ALL ? c->instead[r] : r; }

static void rename_registers(coalescer *c) {
  for (uint32_t i = 0; i < c->v->insns.count; i++) {
    vector_insn *insn = vector_insn_at(c->v, i);
    for (int k = 0; k < 4; k++) insn->s[k] = renamed(c, insn->s[k]);
    insn->mask = renamed(c, insn->mask);
    insn->d = renamed(c, insn->d);
  }
}

hg_status hg_native_pass_coalesce(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t regs = v->regs.count;
  uint32_t words = 1 + sizeof(register_use) / sizeof(uint32_t);
  coalescer c = {.v = v, .instead = hg_allocate(&v->allocator, words * regs, sizeof *c.instead)};
  (void)b;
  if (c.instead == NULL) return hg_fail_memory("machine code", words * regs * sizeof *c.instead);
  c.use = (register_use *)(void *)(c.instead + regs);
  for (uint32_t r = 0; r < regs; r++) c.instead[r] = r;
  for (uint32_t i = 0; i < v->insns.count; i++)
    if (vector_insn_at(v, i)->op == VECTOR_LABEL && find_loop(&c, i)) coalesce_loop(&c);
  if (c.moves > 0) rename_registers(&c);
  hg_release(&v->allocator, c.instead);
  *fired = c.moves;
  return hg_rewrite_remove(v);
}
