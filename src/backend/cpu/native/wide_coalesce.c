/* wide_coalesce.c - fewer moves at the latch of a loop in a block's straight-line code (wide_loop.c): where the value
 * of the next round is computed when the loop-carried register has been read for the last time in this one, it is
 * computed there. */
#include "backend/cpu/native/wide.h"

#include <string.h>

typedef struct register_use {
  uint32_t writers;       /* instructions of the program */
  uint32_t written;       /* the last one */
  uint32_t read;          /* the last one in the loop that reads it; 0: none */
  uint8_t is_read_after;  /* 1: after the loop */
} register_use;

typedef struct coalescer {
  hg_vector *v;
  register_use *use;      /* per register */
  uint32_t *instead;      /* per register: its new name */
  uint32_t *place;        /* per instruction: its new number */
  uint32_t label, back, exit; /* the loop: its label, the jump back, the one that leaves it */
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

/* 1 if a move at the latch, carried = next, can be done without. Who leaves the loop before `next` is written sees the
 * old value, who leaves after that the new one. */
static int can_coalesce(const coalescer *c, uint32_t i) {
  const vector_insn *move = vector_insn_at(c->v, i);
  if (move->op != VECTOR_MOVE || move->mask != VECTOR_ALL || move->s[0] >= VECTOR_ALL) return 0;
  const vector_reg *carried = vector_reg_at(c->v, move->d), *next = vector_reg_at(c->v, move->s[0]);
  const register_use *old = &c->use[move->d], *new = &c->use[move->s[0]];
  if (carried->bits != WIDE_LOOP_CARRIED || next->kind != VECTOR_VARIES || next->bits == WIDE_LOOP_CARRIED) return 0;
  if (carried->type != next->type || carried->uniform != next->uniform) return 0;
  if (old->writers != 2 || old->written != i || new->writers != 1) return 0; /* before the loop, and here */
  if (new->written <= c->label || new->written >= i || old->read > new->written) return 0;
  return c->exit > new->written ? !old->is_read_after : !new->is_read_after;
}

static void coalesce_loop(coalescer *c) {
  find_uses(c);
  for (uint32_t i = c->label + 1; i < c->back; i++) {
    vector_insn *move = vector_insn_at(c->v, i);
    if (!can_coalesce(c, i) || c->instead[move->s[0]] != move->s[0]) continue;
    c->instead[move->s[0]] = move->d;
    move->op = 0;
  }
}

static uint32_t renamed(const coalescer *c, uint32_t r) { return r < VECTOR_ALL ? c->instead[r] : r; }

static void rename_and_remove(coalescer *c) {
  hg_vector *v = c->v;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    vector_insn insn = *vector_insn_at(v, i);
    c->place[i] = kept;
    if (insn.op == 0) continue;
    for (int k = 0; k < 4; k++) insn.s[k] = renamed(c, insn.s[k]);
    insn.mask = renamed(c, insn.mask);
    insn.d = renamed(c, insn.d);
    *vector_insn_at(v, kept++) = insn;
  }
  v->insns.count = kept;
  for (uint32_t i = 0; i < kept; i++) {
    vector_insn *insn = vector_insn_at(v, i);
    if (insn->target != VECTOR_NONE) insn->target = c->place[insn->target];
  }
}

void hg_wide_coalesce(wide *w) {
  hg_vector *v = w->to;
  uint64_t regs = v->regs.count, n = v->insns.count;
  uint32_t words = sizeof(register_use) / sizeof(uint32_t);
  coalescer c = {.v = v, .instead = hg_allocate(&v->allocator, (1 + words) * regs + n, sizeof *c.instead)};
  if (c.instead == NULL) {
    w->no_memory = 1;
    return;
  }
  c.use = (register_use *)(void *)(c.instead + regs);
  c.place = c.instead + (1 + words) * regs;
  for (uint32_t r = 0; r < regs; r++) c.instead[r] = r;
  for (uint32_t i = 0; i < n; i++)
    if (vector_insn_at(v, i)->op == VECTOR_LABEL && find_loop(&c, i)) coalesce_loop(&c);
  rename_and_remove(&c);
  hg_release(&v->allocator, c.instead);
}
