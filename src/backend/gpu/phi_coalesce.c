/* phi_coalesce.c - phi coalescing: gives a phi and its operands one register where they are never live at once.
 *
 * A printer moves each operand of a phi into the phi's register. The assembler has to find out again that most of these
 * moves do nothing, and does not always: of the 64 sums of a tiled product whose loop is left in the middle, one such
 * assembler moved 53 around in every iteration.
 *
 * Two values clash if one is computed while the other is live. In addition:
 *
 * - The phis of a block are assigned at once, while all other operands of the edge are still live. So the moves of an
 * edge keep their effect in any order, and when there are fewer of them.
 *
 * - The result of an operation that may become several instructions clashes with its operands, since such a sequence
 * may write the result before it has read all of them.
 *
 * Only 32-bit arithmetic shares registers: what is loaded or comes from a collective is computed where and when the
 * printer handles several values at a time. */
#include "backend/gpu/plan_passes.h"

#include "compiler/analysis/effects.h"

#include <string.h>

enum { MOST = 2048, BITS = 64 };

typedef struct homes {
  gpu_plan *g;
  uint32_t *number;         /* per value: 1 + its number among the candidates; 0: it is none */
  uint32_t *value, *parent; /* by number: the value; another one in its register, or itself (union-find) */
  uint32_t *list;           /* scratch: the instructions of a block */
  uint32_t count, words;
  uint64_t *live_in;        /* per block: sets of candidates */
  uint64_t *clash, *member; /* by number: what its register's values clash with, and the values */
  uint64_t *live;           /* scratch */
} homes;

/* ---- sets -------------------------------------------------------------------------------------------------------- */

static uint64_t *set_at(const homes *h, uint64_t *sets, uint32_t i) { return sets + (size_t)i * h->words; }
static void include(uint64_t *set, uint32_t number) { set[number / BITS] |= UINT64_C(1) << number % BITS; }
static void exclude(uint64_t *set, uint32_t number) { set[number / BITS] &= ~(UINT64_C(1) << number % BITS); }
static int includes(const uint64_t *set, uint32_t number) { return set[number / BITS] >> number % BITS & 1; }

static void unite(const homes *h, uint64_t *set, const uint64_t *other) {
  for (uint32_t w = 0; w < h->words; w++) set[w] |= other[w];
}

static int meet(const homes *h, const uint64_t *a, const uint64_t *b) {
  for (uint32_t w = 0; w < h->words; w++)
    if (a[w] & b[w]) return 1;
  return 0;
}

static void include_value(const homes *h, uint64_t *set, uint32_t value) {
  if (h->number[value] != 0) include(set, h->number[value] - 1);
}

/* ---- which values ------------------------------------------------------------------------------------------------ */

static int has_32_bits(const ssa_insn *insn) {
  if (insn->type == SSA_PREDICATE || insn->type == ATLAS_NONE || gpu_is_narrow(insn->type)) return 0;
  return atlas_type_bits((atlas_type)insn->type) <= 32;
}

/* 1 if the instruction is printed as several of which only the last one writes the result. */
static int is_read_first(const ssa_insn *insn) {
  switch (insn->op) {
  case ATLAS_OP_add:
  case ATLAS_OP_sub:
  case ATLAS_OP_mul:
  case ATLAS_OP_mad:
  case ATLAS_OP_fma:
  case ATLAS_OP_and:
  case ATLAS_OP_or:
  case ATLAS_OP_xor:
  case ATLAS_OP_shl:
  case ATLAS_OP_shr:
  case ATLAS_OP_dot4_ss:
  case ATLAS_OP_dot4_uu:
  case ATLAS_OP_dot4_us: return 1;
  default: return 0;
  }
}

static int may_share(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  if (hg_is_leaf(insn) || insn->block == SSA_NONE || !has_32_bits(insn)) return 0;
  return insn->op == SSA_PHI || (gpu_flags(g, value) & ATLAS_PURE && !(gpu_flags(g, value) & ATLAS_LOAD));
}

static void take(homes *h, uint32_t value) {
  if (h->number[value] != 0 || h->count == MOST || !may_share(h->g, value)) return;
  h->value[h->count] = value;
  h->number[value] = ++h->count;
}

static void take_values(homes *h) {
  for (uint32_t k = 0; k < h->g->order.count; k++)
    for (uint32_t phi = ssa_block_at(h->g->unit, h->g->order.block[k])->first_phi; phi != SSA_NONE;
         phi = gpu_insn(h->g, phi)->next) {
      take(h, phi);
      for (uint32_t i = 0; i < gpu_insn(h->g, phi)->arg_count && h->number[phi] != 0; i++)
        take(h, gpu_arg(h->g, phi, i));
    }
  h->words = (h->count + BITS - 1) / BITS;
}

/* ---- live ranges ------------------------------------------------------------------------------------------------- */

static uint32_t successors(const ssa_block *block) {
  return block->end == SSA_BRANCH ? 2 : block->end == SSA_JUMP ? 1 : 0;
}

/* Finds what is live behind a block, operands of phis included. */
static void find_live_out(const homes *h, uint32_t b) {
  const ssa_block *block = ssa_block_at(h->g->unit, b);
  memset(h->live, 0, h->words * sizeof *h->live);
  for (uint32_t s = 0; s < successors(block); s++) {
    gpu_edge edge = hg_gpu_edge(h->g, b, (int)s);
    unite(h, h->live, set_at(h, h->live_in, edge.target));
    for (uint32_t phi = ssa_block_at(h->g->unit, edge.target)->first_phi; phi != SSA_NONE;
         phi = gpu_insn(h->g, phi)->next)
      include_value(h, h->live, gpu_arg(h->g, phi, edge.side));
  }
}

/* A clamp also reads the operand of the bound inside it. */
static void include_operands(const homes *h, uint64_t *set, uint32_t value) {
  uint32_t x;
  double size;
  for (uint32_t i = 0; i < gpu_insn(h->g, value)->arg_count; i++) include_value(h, set, gpu_arg(h->g, value, i));
  if (hg_gpu_is_clamp(h->g, value, &x, &size)) include_value(h, set, x);
}

static void note_clashes(const homes *h, uint32_t value) {
  uint64_t *clash = set_at(h, h->clash, h->number[value] - 1);
  unite(h, clash, h->live);
  if (!is_read_first(gpu_insn(h->g, value))) include_operands(h, clash, value);
}

/* Goes from the values that are live behind the block to those live before it; *changed: there are new ones. */
static void go_through(const homes *h, uint32_t b, int notes, int *changed) {
  const ssa_block *block = ssa_block_at(h->g->unit, b);
  uint64_t *in = set_at(h, h->live_in, b);
  uint32_t count = 0;
  for (uint32_t e = block->first_effect; e != SSA_NONE; e = gpu_insn(h->g, e)->next) h->list[count++] = e;
  while (count-- > 0) {
    uint32_t e = h->list[count], number = h->number[e];
    if (number != 0) exclude(h->live, number - 1);
    if (number != 0 && notes) note_clashes(h, e);
    include_operands(h, h->live, e);
  }
  for (uint32_t phi = block->first_phi; phi != SSA_NONE; phi = gpu_insn(h->g, phi)->next)
    if (h->number[phi] != 0) exclude(h->live, h->number[phi] - 1);
  for (uint32_t w = 0; w < h->words; w++) *changed |= (in[w] | h->live[w]) != in[w];
  unite(h, in, h->live);
}

static void find_live(const homes *h) {
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t k = h->g->order.count; k-- > 0;) {
      find_live_out(h, h->g->order.block[k]);
      go_through(h, h->g->order.block[k], 0, &changed);
    }
  }
}

/* ---- clashes ----------------------------------------------------------------------------------------------------- */

/* Along an edge, a phi clashes with the other operands and, whichever edge is taken, with what is live behind it and
 * with the other phis. */
static void note_edge(const homes *h, const gpu_edge *edge) {
  uint32_t first = ssa_block_at(h->g->unit, edge->target)->first_phi;
  for (uint32_t phi = first; phi != SSA_NONE; phi = gpu_insn(h->g, phi)->next) {
    if (h->number[phi] == 0) continue;
    uint64_t *clash = set_at(h, h->clash, h->number[phi] - 1);
    uint32_t own = gpu_arg(h->g, phi, edge->side);
    unite(h, clash, set_at(h, h->live_in, edge->target));
    for (uint32_t other = first; other != SSA_NONE; other = gpu_insn(h->g, other)->next) {
      if (other != phi) include_value(h, clash, other);
      if (gpu_arg(h->g, other, edge->side) != own) include_value(h, clash, gpu_arg(h->g, other, edge->side));
    }
  }
}

static void find_clashes(const homes *h) {
  int changed = 0;
  for (uint32_t k = 0; k < h->g->order.count; k++) {
    uint32_t b = h->g->order.block[k];
    for (uint32_t s = 0; s < successors(ssa_block_at(h->g->unit, b)); s++) {
      gpu_edge edge = hg_gpu_edge(h->g, b, (int)s);
      note_edge(h, &edge);
    }
    find_live_out(h, b);
    go_through(h, b, 1, &changed);
  }
  for (uint32_t a = 0; a < h->count; a++) { /* clashes are symmetric */
    exclude(set_at(h, h->clash, a), a);
    for (uint32_t b = 0; b < h->count; b++)
      if (includes(set_at(h, h->clash, a), b)) include(set_at(h, h->clash, b), a);
  }
}

/* ---- homes ------------------------------------------------------------------------------------------------------- */

static uint32_t root_of(const homes *h, uint32_t number) {
  while (h->parent[number] != number) number = h->parent[number] = h->parent[h->parent[number]];
  return number;
}

/* Joins the operand with the phi, unless it needs other NaN bits than the phi does. */
static void join(const homes *h, uint32_t phi, uint32_t i) {
  uint32_t arg = gpu_arg(h->g, phi, i);
  if (h->number[phi] == 0 || h->number[arg] == 0 || hg_gpu_asks_exact(h->g, phi, i)) return;
  uint32_t to = root_of(h, h->number[phi] - 1), from = root_of(h, h->number[arg] - 1);
  if (to == from || meet(h, set_at(h, h->clash, to), set_at(h, h->member, from))) return;
  h->parent[from] = to;
  unite(h, set_at(h, h->clash, to), set_at(h, h->clash, from));
  unite(h, set_at(h, h->member, to), set_at(h, h->member, from));
}

/* Joins what comes back to the header of a loop first, inner loops before outer ones. */
static void join_all(const homes *h) {
  for (int back = 1; back >= 0; back--)
    for (uint32_t k = h->g->order.count; k-- > 0;) {
      const ssa_block *block = ssa_block_at(h->g->unit, h->g->order.block[k]);
      const uint32_t *from = block->predecessors.data;
      for (uint32_t phi = block->first_phi; phi != SSA_NONE; phi = gpu_insn(h->g, phi)->next)
        for (uint32_t i = 0; i < gpu_insn(h->g, phi)->arg_count; i++)
          if ((h->g->order.position[from[i]] >= k) == back) join(h, phi, i);
    }
}

static hg_status find_homes(homes *h) {
  uint64_t words = (uint64_t)h->words * (2 * h->count + h->g->unit->blocks.count + 1);
  uint64_t *sets = hg_allocate(h->g->allocator, words, sizeof *sets);
  if (sets == NULL) return hg_fail_memory("the registers of a kernel", words * sizeof *sets);
  memset(sets, 0, words * sizeof *sets);
  h->live = sets;
  h->clash = sets + h->words;
  h->member = set_at(h, h->clash, h->count);
  h->live_in = set_at(h, h->member, h->count);
  for (uint32_t i = 0; i < h->count; i++) {
    h->parent[i] = i;
    include(set_at(h, h->member, i), i);
  }
  find_live(h);
  find_clashes(h);
  join_all(h);
  for (uint32_t i = 0; i < h->count; i++) h->g->home[h->value[i]] = h->value[root_of(h, i)];
  hg_release(h->g->allocator, sets);
  return HG_OK;
}

hg_status hg_gpu_coalesce_phis(gpu_plan *g) {
  homes h = {.g = g};
  uint64_t values = g->unit->insns.count, words = 2 * values + 2 * (uint64_t)MOST;
  for (uint32_t v = 0; v < values; v++) g->home[v] = v;
  if (g->vector_count > 0) return HG_OK; /* vector stores take their values behind the program */
  h.number = hg_allocate(g->allocator, words, sizeof *h.number);
  if (h.number == NULL) return hg_fail_memory("the registers of a kernel", words * sizeof *h.number);
  memset(h.number, 0, values * sizeof *h.number);
  h.list = h.number + values;
  h.value = h.list + values;
  h.parent = h.value + MOST;
  take_values(&h);
  hg_status status = h.count > 1 ? find_homes(&h) : HG_OK;
  hg_release(g->allocator, h.number);
  return status;
}
