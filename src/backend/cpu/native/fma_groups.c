/* fma_groups.c - reorders chains of fused multiply-adds in the regions of a block so that registers hold what several
 * of them read.
 *
 * A lane of a product of matrices by tiles with 8 x 8 sums reads 8 values of either tile for each k. The canonical form
 * computes one sum after the other, so every value is read from the frame again: two loads for each multiply-add. This
 * pass takes groups of as many chains as there are registers for, chosen so that together they read the fewest values,
 * and interleaves their multiply-adds in turns; each turn begins with copies of the values that several of the chains
 * read. The chains have no effects and do not read each other's results, so their order is free. */
#include "backend/cpu/native/vector_passes.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

#include "base/error.h"

#include <string.h>

enum { MOST_CHAINS = 256 };

typedef struct chain {
  uint32_t first, tail;  /* instructions */
  uint32_t length;
  uint8_t is_placed;
} chain;

typedef struct chains {
  hg_vector *v;
  hg_rewrite to;
  uint32_t registers;
  uint32_t *chain_of;    /* per register: the chain of the run that writes it, from 1 on; 0: none */
  uint32_t *next;        /* per instruction: the next one of its chain; VECTOR_NONE */
  uint32_t *reads;       /* per register: how many instructions of a turn, or of the run, read it */
  uint32_t *copy;        /* per register: its copy in the current turn; VECTOR_NONE: it has none */
  chain list[MOST_CHAINS];
  uint32_t count, runs;
} chains;

/* ---- finding them ------------------------------------------------------------------------------------------------ */

static int is_multiply_add(const vector_insn *insn) {
  return insn->op == ATLAS_OP_fma && insn->type == ATLAS_f32 && insn->mask == VECTOR_ALL;
}

static uint32_t end_of_run(const chains *c, uint32_t i) {
  while (i < c->v->insns.count && is_multiply_add(vector_insn_at(c->v, i))) i++;
  return i;
}

static void count_reads(chains *c, uint32_t first, uint32_t end) {
  memset(c->reads, 0, c->v->regs.count * sizeof *c->reads);
  memset(c->chain_of, 0, c->v->regs.count * sizeof *c->chain_of);
  for (uint32_t i = first; i < end; i++)
    for (int k = 0; k < 3; k++)
      if (vector_insn_at(c->v, i)->s[k] < VECTOR_ALL) c->reads[vector_insn_at(c->v, i)->s[k]]++;
}

/* The chain that an instruction continues; 0: it begins one. */
static uint32_t chain_before(const chains *c, const vector_insn *insn, uint32_t i) {
  uint32_t sum = insn->s[2];
  if (sum >= VECTOR_ALL || c->chain_of[sum] == 0 || c->reads[sum] != 1) return 0;
  return vector_reg_at(c->v, sum)->last == i ? c->chain_of[sum] : 0;
}

/* 1 if the run consists of chains of equal length that read only what was computed before the run. */
static int find_chains(chains *c, uint32_t first, uint32_t end) {
  c->count = 0;
  count_reads(c, first, end);
  for (uint32_t i = first; i < end; i++) {
    const vector_insn *insn = vector_insn_at(c->v, i);
    uint32_t number = chain_before(c, insn, i);
    c->next[i] = VECTOR_NONE;
    for (int k = 0; k < 3; k++)
      if ((k < 2 || number == 0) && insn->s[k] < VECTOR_ALL && c->chain_of[insn->s[k]] != 0) return 0;
    if (c->reads[insn->d] > 1 || c->chain_of[insn->d] != 0) return 0;
    if (number == 0) {
      if (c->count == MOST_CHAINS) return 0;
      c->list[c->count++] = (chain){.first = i};
      number = c->count;
    } else c->next[c->list[number - 1].tail] = i;
    c->list[number - 1].tail = i;
    c->list[number - 1].length++;
    c->chain_of[insn->d] = number;
  }
  for (uint32_t k = 1; k < c->count; k++)
    if (c->list[k].length != c->list[0].length) return 0;
  return c->count >= CPU_LEAST_CHAINS;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static int is_given(const chains *c, uint32_t r) {
  if (r >= VECTOR_ALL) return 0;
  const vector_reg *reg = vector_reg_at(c->v, r);
  return reg->kind == VECTOR_VARIES && !reg->uniform;
}

/* The cost of adding a chain to the group: the values that the group does not read yet; among equal costs, how often
 * the group reads the others, so that it grows into a square. Judged by the chain's first multiply-add, which usually
 * stands for the rest. */
static uint32_t cost_of(const chains *c, const chain *one) {
  const vector_insn *insn = vector_insn_at(c->v, one->first);
  uint32_t cost = 0;
  for (int k = 0; k < 2; k++)
    if (is_given(c, insn->s[k])) cost += c->reads[insn->s[k]] == 0 ? MOST_CHAINS : c->reads[insn->s[k]];
  return cost;
}

static void note_member(chains *c, const chain *one, uint32_t by) {
  const vector_insn *insn = vector_insn_at(c->v, one->first);
  for (int k = 0; k < 2; k++)
    if (is_given(c, insn->s[k])) c->reads[insn->s[k]] += by;
}

/* Chooses the members of a group from the chains that are left, and returns how many. */
static uint32_t choose_group(chains *c, uint32_t most, uint32_t *member) {
  uint32_t count = 0;
  for (; count < most; count++) {
    uint32_t best = VECTOR_NONE, least = UINT32_MAX;
    for (uint32_t k = 0; k < c->count; k++) {
      if (c->list[k].is_placed || cost_of(c, &c->list[k]) >= least) continue;
      least = cost_of(c, &c->list[k]);
      best = k;
    }
    if (best == VECTOR_NONE) break;
    c->list[best].is_placed = 1;
    note_member(c, &c->list[best], 1);
    member[count] = best;
  }
  for (uint32_t k = 0; k < count; k++) note_member(c, &c->list[member[k]], 0 - 1u);
  return count;
}

/* Sorts members that read the same value first next to each other, so that its copy is dead soon. */
static void sort_group(const chains *c, uint32_t *member, uint32_t count) {
  for (uint32_t first = 0, next; first < count; first = next) {
    uint32_t value = vector_insn_at(c->v, c->list[member[first]].first)->s[0];
    next = first + 1;
    for (uint32_t k = next; k < count; k++) {
      const vector_insn *insn = vector_insn_at(c->v, c->list[member[k]].first);
      if (insn->s[0] != value && insn->s[1] != value) continue;
      uint32_t moved = member[k];
      member[k] = member[next];
      member[next++] = moved;
    }
  }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void append_copy(chains *c, uint32_t r) {
  vector_reg reg = *vector_reg_at(c->v, r);
  vector_insn move = vector_insn_of(VECTOR_MOVE, VECTOR_ALL);
  reg.bits = NATIVE_STAYS;
  move.type = reg.type;
  move.s[0] = r;
  move.d = c->copy[r] = hg_rewrite_register(&c->to, &reg);
  hg_rewrite_append(&c->to, &move);
}

/* Appends one multiply-add of each member; `at` has their numbers. */
static void append_turn(chains *c, const uint32_t *at, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) note_member(c, &(chain){.first = at[k]}, 1);
  for (uint32_t k = 0; k < count && !c->to.no_memory; k++) {
    vector_insn insn = *vector_insn_at(c->v, at[k]);
    for (int s = 0; s < 2; s++) {
      uint32_t r = insn.s[s];
      if (!is_given(c, r) || c->reads[r] < 2) continue;
      if (c->copy[r] == VECTOR_NONE) append_copy(c, r);
      insn.s[s] = c->copy[r];
    }
    if (c->next[at[k]] != VECTOR_NONE) vector_reg_at(c->v, insn.d)->bits = NATIVE_STAYS;
    hg_rewrite_append(&c->to, &insn);
  }
  for (uint32_t k = 0; k < count; k++) {
    note_member(c, &(chain){.first = at[k]}, 0 - 1u);
    for (int s = 0; s < 2; s++) {
      uint32_t r = vector_insn_at(c->v, at[k])->s[s];
      if (r < VECTOR_ALL) c->copy[r] = VECTOR_NONE;
    }
  }
}

static void append_group(chains *c, const uint32_t *member, uint32_t count) {
  uint32_t at[CPU_CHAINS_IN_TURN];
  for (uint32_t k = 0; k < count; k++) at[k] = c->list[member[k]].first;
  for (uint32_t n = c->list[0].length; n > 0 && !c->to.no_memory; n--) {
    append_turn(c, at, count);
    for (uint32_t k = 0; k < count; k++) at[k] = c->next[at[k]];
  }
}

/* The number of values that more than one chain reads. */
static uint32_t count_shared(const chains *c) {
  uint32_t shared = 0;
  for (uint32_t r = 0; r < c->v->regs.count; r++) shared += c->reads[r] > 1 && is_given(c, r);
  return shared;
}

static void write_run(chains *c) {
  uint32_t member[CPU_CHAINS_IN_TURN],
      most = c->registers >= CPU_CHAINS_REGISTERS ? CPU_CHAINS_IN_TURN : CPU_CHAINS_IN_TURN / 2;
  memset(c->reads, 0, c->v->regs.count * sizeof *c->reads);
  for (uint32_t count; (count = choose_group(c, most, member)) > 0 && !c->to.no_memory;) {
    sort_group(c, member, count);
    append_group(c, member, count);
  }
}

static hg_status write_program(chains *c, hg_vector *v) {
  HG_TRY(hg_rewrite_begin(&c->to, v, 0));
  for (uint32_t i = 0, end; i < v->insns.count && !c->to.no_memory; i = end) {
    end = end_of_run(c, i);
    int is_better = end >= i + CPU_LEAST_CHAINS && find_chains(c, i, end) && count_shared(c) > c->registers;
    if (end == i) end++;
    if (is_better) write_run(c);
    c->runs += (uint32_t)is_better;
    for (; i < end && !is_better; i++) hg_rewrite_keep(&c->to, i);
  }
  return hg_rewrite_end(&c->to, 1);
}

hg_status hg_native_pass_fma_groups(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t n = v->insns.count, regs = v->regs.count;
  chains c = {.v = v, .registers = b->target->vector_count};
  c.next = hg_allocate(&v->allocator, n + 3 * (regs + n), sizeof *c.next);
  if (c.next == NULL) return hg_fail_memory("machine code", n * sizeof *c.next);
  c.chain_of = c.next + n;
  c.reads = c.chain_of + regs + n;
  c.copy = c.reads + regs + n;
  memset(c.copy, 0xff, (regs + n) * sizeof *c.copy);
  hg_status status = write_program(&c, v);
  hg_release(&v->allocator, c.next);
  *fired = c.runs;
  return status;
}
