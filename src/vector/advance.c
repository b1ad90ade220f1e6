/* advance.c - in loops, moves instructions that lower register pressure behind the last load that they need.
 *
 * Loads keep the order of the canonical form, which decides a lane's first fault, and usually all of a block's loads
 * come first. In loops that load, an instruction that takes two or more values nothing else reads, and leaves one, goes
 * right behind the load of the last of them. So fewer registers are live at a time, and more lanes are computed side by
 * side. Such instructions cannot fault and do not access memory, so their place changes no bit. */
#include "base/error.h"
#include "vector/lower.h"

enum { MOST_INSNS = 256, MOST_SOURCES = 4 };

typedef struct advance {
  hg_vector *v;
  uint32_t *reads;    /* per register: how many instructions read it */
  uint32_t first, end;/* the current stretch of code without labels or jumps */
  uint8_t pending[MOST_INSNS]; /* per instruction of the stretch: sources still to come; STAYS: is not moved */
  uint8_t done[MOST_INSNS];
  vector_insn old[MOST_INSNS];
} advance;

enum { STAYS = 255 };

static int is_sum(const vector_insn *insn) {
  switch (insn->op) {
  case ATLAS_OP_add:
  case ATLAS_OP_sub:
  case ATLAS_OP_mul:
  case ATLAS_OP_fma:
  case ATLAS_OP_min:
  case ATLAS_OP_max: return insn->mask == VECTOR_ALL && !(insn->flags & VECTOR_KEEP);
  default: return 0;
  }
}

/* How many sources of instruction k the stretch computes for it alone; STAYS if fewer than two. */
static uint8_t count_pending(const advance *a, uint32_t k) {
  const vector_insn *insn = vector_insn_at(a->v, k);
  uint8_t count = 0;
  if (!is_sum(insn) || vector_reg_at(a->v, insn->d)->first != k) return STAYS;
  for (int s = 0; s < MOST_SOURCES; s++) {
    if (insn->s[s] >= VECTOR_ALL || vector_reg_at(a->v, insn->s[s])->kind != VECTOR_VARIES) continue;
    const vector_reg *source = vector_reg_at(a->v, insn->s[s]);
    int is_own = source->first >= a->first && source->last == k && a->reads[insn->s[s]] == 1 && !source->uniform;
    if (!is_own || vector_insn_at(a->v, source->first)->d != insn->s[s]) return STAYS;
    count++;
  }
  return count >= 2 ? count : STAYS;
}

/* Appends instruction i at *to, then the instructions that waited only for it. */
static void append(advance *a, uint32_t i, uint32_t *to) {
  while (i != VECTOR_NONE) {
    const vector_insn *insn = &a->old[i - a->first];
    *vector_insn_at(a->v, (*to)++) = *insn;
    a->done[i - a->first] = 1;
    uint32_t user = insn->d < VECTOR_ALL ? vector_reg_at(a->v, insn->d)->last : VECTOR_NONE;
    i = VECTOR_NONE;
    if (user == VECTOR_NONE || user < a->first || user >= a->end || a->pending[user - a->first] == STAYS) continue;
    if (--a->pending[user - a->first] == 0) i = user;
  }
}

static void reorder(advance *a) {
  uint32_t to = a->first, sums = 0;
  for (uint32_t i = a->first; i < a->end; i++) {
    a->old[i - a->first] = *vector_insn_at(a->v, i);
    a->pending[i - a->first] = count_pending(a, i);
    a->done[i - a->first] = 0;
    sums += a->pending[i - a->first] != STAYS;
  }
  for (uint32_t i = a->first; i < a->end && sums > 0; i++)
    if (!a->done[i - a->first]) append(a, i, &to);
}

static int is_load(const vector_insn *insn) {
  return vector_is_primitive(insn->op) && atlas_op_flags(insn->op) & ATLAS_LOAD;
}

static int ends_piece(const vector_insn *insn) {
  return insn->op == VECTOR_LABEL || insn->op == VECTOR_STEP || insn->op == VECTOR_END || vector_is_jump(insn->op);
}

/* The stretches of a loop, from its label to the last jump back to it. */
static void reorder_loop(advance *a, uint32_t head, uint32_t end) {
  uint32_t loads = 0;
  a->first = head + 1;
  for (uint32_t i = head + 1; i <= end; i++) {
    const vector_insn *insn = vector_insn_at(a->v, i);
    loads += is_load(insn) != 0;
    if (!ends_piece(insn)) continue;
    a->end = i;
    if (loads >= 2 && a->end - a->first <= MOST_INSNS) reorder(a);
    a->first = i + 1;
    loads = 0;
  }
}

static void count_reads(const advance *a) {
  for (uint32_t i = 0; i < a->v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(a->v, i);
    for (int s = 0; s < MOST_SOURCES; s++)
      if (insn->s[s] < VECTOR_ALL) a->reads[insn->s[s]]++;
    if (insn->mask < VECTOR_ALL) a->reads[insn->mask]++;
  }
}

hg_status hg_vector_advance(hg_vector *v) {
  advance *a = NULL;
  for (uint32_t i = 0, end = 0; i < v->insns.count && !v->has_block_ops; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (!vector_is_jump(insn->op) || insn->target > i) continue;
    if (a == NULL) {
      a = hg_allocate(&v->allocator, 1, sizeof *a + v->regs.count * sizeof *a->reads);
      if (a == NULL) return hg_fail_memory("vector code", sizeof *a);
      a->v = v;
      a->reads = (uint32_t *)(a + 1);
      count_reads(a);
    }
    reorder_loop(a, insn->target > end ? insn->target : end, i); /* no stretch twice */
    end = i;
  }
  hg_release(&v->allocator, a);
  return HG_OK;
}
