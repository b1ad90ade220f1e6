/* unroll_and_jam.c - interleaves neighbouring slices of straight-line code (straight.c) that read the same elements of
 * shared memory.
 *
 * If a row of a tile is several vectors wide, as many slices compute with the same elements of another tile, each of
 * which is loaded for all lanes. Interleaved, the slices need one load of each. Two such pairs, which are two rows,
 * compute with the same vectors of the other tile. If these are more than the registers, the pairs are interleaved too,
 * in turns that begin with copies of the vectors that both read, so that one load serves both. What is interleaved only
 * computes, or loads elements of shared memory that exist, so no order of effects changes. */
#include "backend/cpu/native/straight.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "base/error.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

#include <string.h>

typedef struct run { uint32_t first, count; } run; /* of instructions */

typedef struct interleaver {
  const atlas_program *program;
  hg_vector *v;
  uint32_t registers; /* of the target, for vectors */
  hg_rewrite to;
  hg_array pairs;    /* run: the interleaved slices, in the new order */
  uint32_t *run_of;  /* per register: the first instruction of the last run that writes it; VECTOR_NONE */
  uint32_t *read_by; /* per register: the same for the last run that reads it */
  uint32_t *instead; /* per register: its replacement; VECTOR_NONE: itself */
} interleaver;

static int is_movable(const interleaver *p, const vector_insn *insn) {
  if (!vector_is_primitive(insn->op)) return insn->op == VECTOR_MOVE || insn->op == NATIVE_PERMUTE;
  unsigned flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) return (flags & ATLAS_PURE) != 0;
  if (!(flags & ATLAS_LOAD) || flags & ATLAS_ATOMIC || flags & ATLAS_SPACE_POOL || !(insn->flags & VECTOR_IN_BOUNDS))
    return 0;
  if (insn->mode > ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY) return 0;
  return atlas_symbol_at(p->program, insn->symbol)->kind == ATLAS_SYMBOL_SHARED;
}

/* The end of the run of one slice's instructions that begins at `first`. */
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
  return a->mask == VECTOR_ALL && b->mask == VECTOR_ALL && !hg_straight_is_loop_carried(p->v, a->d) &&
         !hg_straight_is_loop_carried(p->v, b->d);
}

/* 1 if the second run has the same instructions as the first and reads some of the same elements of shared memory. */
static int are_alike(const interleaver *p, uint32_t first, uint32_t second, uint32_t count) {
  uint32_t shared = 0;
  for (uint32_t i = 0; i < count; i++) {
    const vector_insn *a = vector_insn_at(p->v, first + i), *b = vector_insn_at(p->v, second + i);
    if (a->op != b->op || a->type != b->type) return 0;
    shared += (uint32_t)are_one_load(p, a, b);
  }
  return shared >= CPU_LEAST_SHARED_LOADS;
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

/* 1 if the second run neither reads nor writes what the first one writes, and writes nothing that the first one
 * reads. */
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

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void append(interleaver *p, vector_insn insn) {
  for (int k = 0; k < 4; k++)
    if (insn.s[k] < VECTOR_ALL && p->instead[insn.s[k]] != VECTOR_NONE) insn.s[k] = p->instead[insn.s[k]];
  hg_rewrite_append(&p->to, &insn);
}

static void append_old(interleaver *p, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++) {
    hg_rewrite_place(&p->to, i);
    append(p, *vector_insn_at(p->v, i));
  }
}

/* ---- pairs of slices --------------------------------------------------------------------------------------------- */

/* Interleaves two runs instruction by instruction. A load that the first run has as well is left out. */
static void interleave(interleaver *p, uint32_t first, uint32_t count) {
  run pair = {hg_rewrite_count(&p->to), 0};
  for (uint32_t i = first; i < first + count; i++) {
    const vector_insn *a = vector_insn_at(p->v, i), *b = vector_insn_at(p->v, i + count);
    append(p, *a);
    if (are_one_load(p, a, b)) p->instead[b->d] = a->d;
    else append(p, *b);
  }
  pair.count = hg_rewrite_count(&p->to) - pair.first;
  if (hg_array_append(&p->v->allocator, &p->pairs, &pair, 1) == NULL) p->to.no_memory = 1;
}

static hg_status interleave_slices(interleaver *p) {
  uint32_t n = (uint32_t)p->v->insns.count;
  HG_TRY(hg_rewrite_begin(&p->to, p->v, 0));
  for (uint32_t first = 0, second = 0; first < n && !p->to.no_memory; first = second) {
    second = end_of_run(p, first);
    if (second == first) second++;
    uint32_t count = second - first;
    if (count < CPU_LEAST_SHARED_LOADS || second == n || end_of_run(p, second) - second != count ||
        !are_alike(p, first, second, count) || !are_independent(p, first, second, count)) {
      append_old(p, first, second);
      continue;
    }
    interleave(p, first, count);
    second += count;
  }
  return hg_rewrite_end(&p->to, 0);
}

/* ---- pairs of pairs ---------------------------------------------------------------------------------------------- */

/* 1 if an instruction reads a vector that is not written by the run which note() has seen last. */
static int is_given(const interleaver *p, const vector_insn *insn, int k, uint32_t first) {
  if (insn->s[k] >= VECTOR_ALL || p->run_of[insn->s[k]] == first) return 0;
  const vector_reg *reg = vector_reg_at(p->v, insn->s[k]);
  return reg->kind == VECTOR_VARIES && !reg->uniform && reg->type == ATLAS_f32;
}

/* The number of vectors that both pairs read in the same places; 0 if their instructions differ. */
static uint32_t count_given(const interleaver *p, const run *one, const run *two) {
  uint32_t given = 0;
  for (uint32_t i = 0; i < one->count; i++) {
    const vector_insn *a = vector_insn_at(p->v, one->first + i), *b = vector_insn_at(p->v, two->first + i);
    if (a->op != b->op || a->type != b->type) return 0;
    for (int k = 0; k < 4; k++) given += a->s[k] == b->s[k] && is_given(p, a, k, one->first);
  }
  return given;
}

/* 1 if two pairs follow each other and share more vectors than there are registers. */
static int share_vectors(interleaver *p, const run *one, const run *two) {
  if (one->first + one->count != two->first || one->count != two->count) return 0;
  return are_independent(p, one->first, two->first, one->count) && count_given(p, one, two) > p->registers;
}

static int is_load(const vector_insn *insn) {
  return vector_is_primitive(insn->op) && (atlas_op_flags(insn->op) & ATLAS_LOAD) != 0;
}

/* The end of a pair's turn: where it loads again after computations. */
static uint32_t end_of_turn(const interleaver *p, uint32_t i, uint32_t end) {
  uint32_t most = end - i < CPU_PAIR_IN_TURN ? end : i + CPU_PAIR_IN_TURN;
  for (i++; i < most; i++)
    if (is_load(vector_insn_at(p->v, i)) && !is_load(vector_insn_at(p->v, i - 1))) return i;
  return most;
}

/* Copies what the instructions of one pair read, if the instructions as far on in the other pair read the same. The
 * copy has a register until both have read it. copy[4 * (i - first) + k]: the copy of source k of instruction i;
 * VECTOR_NONE. */
static void append_copies(interleaver *p, uint32_t first, uint32_t end, const run *one, uint32_t *copy) {
  for (uint32_t i = first; i < end; i++) {
    const vector_insn *a = vector_insn_at(p->v, i), *b = vector_insn_at(p->v, i + one->count);
    for (int k = 0; k < 4; k++, copy++) {
      *copy = VECTOR_NONE;
      if (a->s[k] != b->s[k] || !is_given(p, a, k, one->first)) continue;
      vector_insn move = vector_insn_of(VECTOR_MOVE, VECTOR_ALL);
      const vector_reg reg = {.kind = VECTOR_VARIES, .type = ATLAS_f32};
      move.type = ATLAS_f32;
      move.slice = a->slice;
      move.s[0] = a->s[k];
      move.d = *copy = hg_rewrite_register(&p->to, &reg);
      hg_rewrite_append(&p->to, &move);
    }
  }
}

static void append_turn(interleaver *p, uint32_t first, uint32_t count, const uint32_t *copy) {
  for (uint32_t i = 0; i < count; i++) {
    vector_insn insn = *vector_insn_at(p->v, first + i);
    for (uint32_t k = 0; k < 4; k++)
      if (copy[4 * i + k] != VECTOR_NONE) insn.s[k] = copy[4 * i + k];
    hg_rewrite_append(&p->to, &insn);
  }
}

static void interleave_two(interleaver *p, const run *one) {
  uint32_t copy[4 * CPU_PAIR_IN_TURN], end = one->first + one->count;
  for (uint32_t i = one->first, next; i < end && !p->to.no_memory; i = next) {
    next = end_of_turn(p, i, end);
    append_copies(p, i, next, one, copy);
    append_turn(p, i, next - i, copy);
    append_turn(p, i + one->count, next - i, copy);
  }
}

static hg_status interleave_pairs(interleaver *p) {
  const run *pairs = p->pairs.data;
  uint32_t at = 0;
  for (size_t k = 0; k + 1 < p->pairs.count; k++) {
    if (!share_vectors(p, &pairs[k], &pairs[k + 1])) continue;
    if (at == 0) HG_TRY(hg_rewrite_begin(&p->to, p->v, 0));
    append_old(p, at, pairs[k].first);
    interleave_two(p, &pairs[k]);
    at = pairs[k].first + 2 * pairs[k].count;
    k++;
  }
  if (at == 0) return HG_OK;
  append_old(p, at, (uint32_t)p->v->insns.count);
  return hg_rewrite_end(&p->to, 0);
}

hg_status hg_native_pass_unroll_and_jam(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t regs = v->regs.count, bytes = 3 * regs * sizeof(uint32_t);
  interleaver p = {.program = b->program, .v = v, .registers = b->target->vector_count,
                   .pairs.element_size = sizeof(run)};
  p.run_of = hg_allocate_unset(&v->allocator, bytes, 1);
  if (p.run_of == NULL) return hg_fail_memory("machine code", bytes);
  p.read_by = p.run_of + regs;
  p.instead = p.read_by + regs;
  memset(p.run_of, 0xff, bytes);
  hg_status status = interleave_slices(&p);
  memset(p.run_of, 0xff, bytes);
  if (status == HG_OK) status = interleave_pairs(&p);
  hg_release(&v->allocator, p.run_of);
  *fired = (uint32_t)p.pairs.count;
  hg_array_release(&v->allocator, &p.pairs);
  return status;
}
