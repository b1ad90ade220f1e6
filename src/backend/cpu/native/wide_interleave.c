/* wide_interleave.c - neighbouring slices of a block's straight-line code (wide.c) side by side, where they read the
 * same elements of shared memory.
 *
 * Where a row of a tile is several vectors wide, as many slices compute with the same elements of another tile, each
 * of which is loaded for all lanes. In turns they need one load of each. What is interleaved only computes, or loads
 * elements of shared memory that exist, so no order of effects changes. */
#include "backend/cpu/native/wide.h"

#include <string.h>

enum { LEAST_SHARED = 4 }; /* loads that two slices have in common */

typedef struct interleaver {
  const wide *w;
  hg_vector *v;
  uint32_t *run_of;  /* per register: the last run that writes it, by the run's first instruction; VECTOR_NONE */
  uint32_t *read_by; /* per register: the last run that reads it */
  uint32_t *instead; /* per register: the one that it is; VECTOR_NONE: itself */
  uint32_t *place;   /* per instruction: its new number */
  vector_insn *both; /* room for two runs */
} interleaver;

static int is_movable(const interleaver *p, const vector_insn *insn) {
  if (!vector_is_primitive(insn->op)) return insn->op == VECTOR_MOVE || insn->op == NATIVE_PERMUTE;
  unsigned flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) return (flags & ATLAS_PURE) != 0;
  if (!(flags & ATLAS_LOAD) || flags & ATLAS_ATOMIC || flags & ATLAS_SPACE_POOL || !(insn->flags & VECTOR_IN_BOUNDS))
    return 0;
  if (insn->mode > ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY) return 0;
  return atlas_symbol_at(p->w->program, insn->symbol)->kind == ATLAS_SYMBOL_SHARED;
}

/* The end of the run of one slice that begins at an instruction. */
static uint32_t end_of_run(const interleaver *p, uint32_t first) {
  uint32_t end = first, slice = vector_insn_at(p->v, first)->slice;
  for (; end < p->v->insns.count; end++) {
    const vector_insn *insn = vector_insn_at(p->v, end);
    if (insn->slice != slice || !is_movable(p, insn)) break;
  }
  return end;
}

/* 1 if both load the same element of shared memory for all lanes. */
static int are_one_load(const interleaver *p, const vector_insn *a, const vector_insn *b) {
  if (!vector_is_primitive(a->op) || !(atlas_op_flags(a->op) & ATLAS_LOAD) || a->mode != ATLAS_ADDRESS_UNIFORM)
    return 0;
  if (a->symbol != b->symbol || a->bits != b->bits || a->mode != b->mode) return 0;
  return a->mask == VECTOR_ALL && b->mask == VECTOR_ALL && !hg_wide_is_loop_carried(p->v, a->d) &&
         !hg_wide_is_loop_carried(p->v, b->d);
}

/* 1 if the second run does what the first one does, in part with the same elements of shared memory. */
static int are_alike(const interleaver *p, uint32_t first, uint32_t second, uint32_t count) {
  uint32_t shared = 0;
  for (uint32_t i = 0; i < count; i++) {
    const vector_insn *a = vector_insn_at(p->v, first + i), *b = vector_insn_at(p->v, second + i);
    if (a->op != b->op || a->type != b->type) return 0;
    shared += (uint32_t)are_one_load(p, a, b);
  }
  return shared >= LEAST_SHARED;
}

static void note(interleaver *p, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++) {
    const vector_insn *insn = vector_insn_at(p->v, i);
    for (int k = 0; k < 4; k++)
      if (insn->s[k] < VECTOR_ALL) p->read_by[insn->s[k]] = first;
    if (insn->mask < VECTOR_ALL) p->read_by[insn->mask] = first;
    if (insn->d < VECTOR_ALL) p->run_of[insn->d] = first;
  }
}

/* 1 if the second run neither reads nor writes what the first one writes, and writes nothing that it reads. */
static int are_independent(interleaver *p, uint32_t first, uint32_t second, uint32_t count) {
  note(p, first, count);
  for (uint32_t i = second; i < second + count; i++) {
    const vector_insn *insn = vector_insn_at(p->v, i);
    for (int k = 0; k < 4; k++)
      if (insn->s[k] < VECTOR_ALL && p->run_of[insn->s[k]] == first) return 0;
    if (insn->mask < VECTOR_ALL && p->run_of[insn->mask] == first) return 0;
    if (insn->d < VECTOR_ALL && (p->run_of[insn->d] == first || p->read_by[insn->d] == first)) return 0;
  }
  return 1;
}

static void interleave(interleaver *p, uint32_t first, uint32_t count) {
  vector_insn *at = vector_insn_at(p->v, first);
  for (uint32_t i = 0; i < count; i++) {
    int is_one = are_one_load(p, &at[i], &at[count + i]);
    p->both[2 * i] = at[i];
    p->both[2 * i + 1] = at[count + i];
    if (!is_one) continue;
    p->instead[at[count + i].d] = at[i].d;
    p->both[2 * i + 1].op = 0;
  }
  memcpy(at, p->both, 2 * (size_t)count * sizeof *at);
}

/* Removes loads that others stand for. */
static void remove_doubles(interleaver *p) {
  hg_vector *v = p->v;
  uint32_t kept = 0, *place = p->place;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    vector_insn insn = *vector_insn_at(v, i);
    place[i] = kept;
    if (insn.op == 0) continue;
    for (int k = 0; k < 4; k++)
      if (insn.s[k] < VECTOR_ALL && p->instead[insn.s[k]] != VECTOR_NONE) insn.s[k] = p->instead[insn.s[k]];
    *vector_insn_at(v, kept++) = insn;
  }
  v->insns.count = kept;
  for (uint32_t i = 0; i < kept; i++) {
    vector_insn *insn = vector_insn_at(v, i);
    if (insn->target != VECTOR_NONE) insn->target = place[insn->target];
  }
}

static void interleave_all(interleaver *p) {
  uint32_t n = (uint32_t)p->v->insns.count;
  for (uint32_t first = 0, second = 0; first < n; first = second) {
    second = end_of_run(p, first);
    if (second == first) second++;
    uint32_t count = second - first;
    if (count < LEAST_SHARED || second == n || end_of_run(p, second) - second != count) continue;
    if (!are_alike(p, first, second, count) || !are_independent(p, first, second, count)) continue;
    interleave(p, first, count);
    second += count;
  }
}

void hg_wide_interleave(wide *w) {
  hg_vector *v = w->to;
  uint64_t regs = v->regs.count, n = v->insns.count;
  interleaver p = {.w = w, .v = v, .run_of = hg_allocate(&v->allocator, 3 * regs + n, sizeof *p.run_of)};
  p.both = hg_allocate(&v->allocator, n, sizeof *p.both);
  if (p.run_of == NULL || p.both == NULL) w->no_memory = 1;
  else {
    p.read_by = p.run_of + regs;
    p.instead = p.read_by + regs;
    p.place = p.instead + regs;
    memset(p.run_of, 0xff, 3 * regs * sizeof *p.run_of);
    interleave_all(&p);
    remove_doubles(&p);
  }
  hg_release(&v->allocator, p.run_of);
  hg_release(&v->allocator, p.both);
}
