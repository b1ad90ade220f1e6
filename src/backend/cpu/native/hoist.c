/* hoist.c - moves computations from behind a barrier to before it, if their inputs are there already and fewer values
 * are live across the barrier afterwards. The canonical order has loads as early and everything else as late as
 * possible, so without this pass the elements of a tile would pass through register rows to the products of the next
 * region. What is moved neither faults nor accesses memory, so no bit changes. For the same reason, divisions of
 * block-uniform values may move to the front of the program, into a region that runs once. */
#include "backend/cpu/native/vector_passes.h"

#include "base/error.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

#include <string.h>

typedef struct hoister {
  hg_vector *v;
  uint32_t *written;   /* per register: the last barrier behind which an instruction that stays writes it;
                          VECTOR_NONE */
  uint32_t *stays;     /* the same for an instruction that stays and reads it */
  uint32_t *counted;   /* the same for a moved instruction that reads it and has been counted */
  uint8_t *writers;    /* per register: instructions that write it, at most 2 */
  uint8_t *moves;      /* per instruction: 1: it may move before the barrier */
  vector_insn *kept;   /* scratch for the instructions that stay */
  uint32_t moved;      /* barriers that computations have been moved before */
} hoister;

static int varies(const hoister *h, uint32_t r) {
  return r < h->v->regs.count && vector_reg_at(h->v, r)->kind == VECTOR_VARIES;
}

static int is_pure(const vector_insn *insn) {
  if (insn->mask != VECTOR_ALL || insn->flags & VECTOR_KEEP || insn->d == VECTOR_NONE) return 0;
  if (insn->op == VECTOR_CANON || insn->op == VECTOR_LESSER || insn->op == VECTOR_GREATER) return 1;
  return vector_is_primitive(insn->op) && !hg_is_block_op(insn->op) && (atlas_op_flags(insn->op) & ATLAS_PURE) != 0;
}

static int may_move(const hoister *h, uint32_t i, uint32_t barrier) {
  const vector_insn *insn = vector_insn_at(h->v, i);
  if (!is_pure(insn) || h->writers[insn->d] != 1) return 0;
  for (int k = 0; k < 4; k++) {
    uint32_t s = insn->s[k];
    if (s == VECTOR_ALL || (varies(h, s) && h->written[s] == barrier)) return 0;
  }
  return 1;
}

/* Finds what may move, up to the next label, jump or instruction of the whole block, and returns where that is. */
static uint32_t find_movable(hoister *h, uint32_t barrier) {
  uint32_t i = barrier + 1;
  for (; i < h->v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(h->v, i);
    if (hg_is_block_op(insn->op) || insn->op == VECTOR_LABEL || insn->op == VECTOR_END || vector_is_jump(insn->op))
      break;
    h->moves[i] = (uint8_t)may_move(h, i, barrier);
    if (h->moves[i]) continue;
    if (insn->d != VECTOR_NONE) h->written[insn->d] = barrier;
    if (insn->mask < VECTOR_ALL) h->stays[insn->mask] = barrier;
    for (int k = 0; k < 4; k++) {
      if (insn->s[k] >= VECTOR_ALL) continue;
      h->stays[insn->s[k]] = barrier;
      if (insn->op == VECTOR_STEP) h->written[insn->s[k]] = barrier;
    }
  }
  return i;
}

/* How many values fewer are live across the barrier if everything movable is moved. */
static int64_t gain(hoister *h, uint32_t barrier, uint32_t end) {
  int64_t values = 0;
  for (uint32_t i = barrier + 1; i < end; i++) {
    const vector_insn *insn = vector_insn_at(h->v, i);
    if (!h->moves[i]) continue;
    values -= vector_reg_at(h->v, insn->d)->last >= end || h->stays[insn->d] == barrier;
    for (int k = 0; k < 4; k++) {
      uint32_t s = insn->s[k];
      if (!varies(h, s) || h->counted[s] == barrier || h->stays[s] == barrier) continue;
      h->counted[s] = barrier;
      values += vector_reg_at(h->v, s)->first < barrier && vector_reg_at(h->v, s)->last < end;
    }
  }
  return values;
}

static void move_before(hoister *h, uint32_t barrier, uint32_t end) {
  uint32_t kept = 0, to = barrier;
  for (uint32_t i = barrier; i < end; i++) {
    const vector_insn insn = *vector_insn_at(h->v, i);
    if (i > barrier && h->moves[i]) *vector_insn_at(h->v, to++) = insn;
    else h->kept[kept++] = insn;
  }
  memcpy(vector_insn_at(h->v, to), h->kept, kept * sizeof *h->kept);
}

/* ---- what the block computes once -------------------------------------------------------------------------------- */

/* 1 if a register has one value in the whole block, from the program's beginning or computed by what is moved there. */
static int is_of_block(const hoister *h, uint32_t r) {
  if (r >= VECTOR_ALL) return r == VECTOR_NONE;
  const vector_reg *reg = vector_reg_at(h->v, r);
  return reg->kind == VECTOR_VARIES ? h->counted[r] == 0 : !hg_native_is_lane_number(reg);
}

static int may_be_first(const hoister *h, const vector_insn *insn) {
  if (!is_pure(insn) || h->writers[insn->d] != 1 || !vector_reg_at(h->v, insn->d)->uniform) return 0;
  for (int k = 0; k < 4; k++)
    if (!is_of_block(h, insn->s[k])) return 0;
  return 1;
}

/* Moves divisions of block-uniform values into a region of their own, which runs once (native_step.is_once). Otherwise
 * the numbers of a row and its chunk, quotient and remainder of the block's number, would be computed by each group of
 * lanes. A barrier that needs no code ends that region; *first: the instruction behind it. */
static hg_status put_divisions_first(hoister *h, uint32_t *first) {
  vector_insn barrier = vector_insn_of(ATLAS_OP_bar_sync, VECTOR_ALL);
  uint32_t end = 1, n = (uint32_t)h->v->insns.count;
  int has_divisions = 0;
  for (; end < n; end++) {
    const vector_insn *insn = vector_insn_at(h->v, end);
    if (hg_is_block_op(insn->op) || insn->op == VECTOR_LABEL || insn->op == VECTOR_END || vector_is_jump(insn->op))
      break;
    h->moves[end] = (uint8_t)may_be_first(h, insn);
    if (!h->moves[end]) continue;
    h->counted[insn->d] = 0;
    has_divisions |= insn->op == ATLAS_OP_div || insn->op == ATLAS_OP_rem;
  }
  if (!has_divisions) return HG_OK;
  hg_rewrite to;
  HG_TRY(hg_rewrite_begin(&to, h->v, 1));
  barrier.bits = SSA_NONE;
  hg_rewrite_keep(&to, 0);
  for (uint32_t i = 1; i < end; i++)
    if (h->moves[i]) hg_rewrite_keep(&to, i);
  *first = hg_rewrite_append(&to, &barrier) + 1;
  for (uint32_t i = 1; i < n; i++)
    if (i >= end || !h->moves[i]) hg_rewrite_keep(&to, i);
  h->v->has_block_ops = 1;
  h->moved++;
  return hg_rewrite_end(&to, 1);
}

static hg_status hoist_all(hoister *h) {
  for (uint32_t i = 0; i < h->v->insns.count; i++) {
    uint32_t d = vector_insn_at(h->v, i)->d;
    if (d != VECTOR_NONE && h->writers[d] < 2) h->writers[d]++;
  }
  uint32_t first = 0;
  HG_TRY(put_divisions_first(h, &first));
  for (uint32_t i = first; i < h->v->insns.count; i++) {
    if (vector_insn_at(h->v, i)->op != ATLAS_OP_bar_sync) continue;
    uint32_t end = find_movable(h, i);
    if (gain(h, i, end) > 0) {
      move_before(h, i, end);
      h->moved++;
      HG_TRY(hg_vector_lifetimes(h->v));
    }
    i = end - 1;
  }
  return HG_OK;
}

hg_status hg_native_pass_hoist(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t n = v->insns.count + 1, regs = v->regs.count; /* with a barrier */
  hoister h = {.v = v};
  (void)b;
  h.kept = hg_allocate(&v->allocator, n * (sizeof *h.kept + 1) + regs * (3 * sizeof(uint32_t) + 1), 1);
  if (h.kept == NULL) return hg_fail_memory("machine code", n * sizeof *h.kept);
  h.written = (uint32_t *)(void *)(h.kept + n);
  h.stays = h.written + regs;
  h.counted = h.stays + regs;
  h.writers = (uint8_t *)(h.counted + regs);
  h.moves = h.writers + regs;
  memset(h.written, 0xff, 3 * regs * sizeof *h.written);
  hg_status status = hoist_all(&h);
  hg_release(&v->allocator, h.kept);
  *fired = h.moved;
  return status;
}
