/* loop_masks.c - what the masks in a loop are while all lanes of a group are in it.
 *
 * A loop such as `for (i = lane; i < n; i += block)` is divergent: its lanes leave one by one. Yet until the last round
 * all lanes of a group are in it, and no mask is needed. A symbolic execution of one round finds the masks that are all
 * lanes. Lanes leave where an index of stride 1 is compared with a limit: all stay as long as the last lane's index is
 * below it. */
#include "backend/cpu/native/loop.h"

enum { MOST_MASKS = 24, MOST_EDGES = 8 }; /* larger loops are not analysed */

typedef enum mask_value { MASK_IF, MASK_IF_NOT, MASK_ALL, MASK_NONE, MASK_UNKNOWN } mask_value;

/* What is known of a predicate register. IF: its lanes are those of the predicate `condition`. */
typedef struct lane_mask {
  uint32_t reg, condition;
  mask_value value;
} lane_mask;

/* The masks of which something is known. */
typedef struct lane_masks {
  lane_mask mask[MOST_MASKS];
  uint32_t count;
} lane_masks;

typedef struct walk {
  const native_build *b;
  const native_loop *loop;
  const uint8_t *strides;
  uint8_t *roles;
  lane_masks now;
  int is_reached;      /* 0: behind a jump, before a label that is a jump's target */
  struct {
    uint32_t target;
    lane_masks masks;
  } edge[MOST_EDGES];  /* jumps forwards */
  uint32_t edge_count;
  int has_failed;
} walk;

/* ---- what is known of a mask ------------------------------------------------------------------------------------- */

static lane_mask *find_mask(lane_masks *masks, uint32_t reg) {
  for (uint32_t k = 0; k < masks->count; k++)
    if (masks->mask[k].reg == reg) return &masks->mask[k];
  return NULL;
}

/* A mask of which nothing is known stands for itself. */
static lane_mask mask_of(walk *w, uint32_t reg) {
  if (reg == VECTOR_ALL) return (lane_mask){reg, VECTOR_NONE, MASK_ALL};
  const lane_mask *found = find_mask(&w->now, reg);
  return found != NULL ? *found : (lane_mask){reg, reg, MASK_IF};
}

static void forget(lane_masks *masks, uint32_t reg) {
  for (uint32_t k = masks->count; k-- > 0;)
    if (masks->mask[k].reg == reg || masks->mask[k].condition == reg) masks->mask[k] = masks->mask[--masks->count];
}

static void set_mask(walk *w, uint32_t reg, lane_mask mask) {
  forget(&w->now, reg);
  if (mask.value == MASK_UNKNOWN || mask.condition == reg) return;
  mask.reg = reg;
  if (w->now.count == MOST_MASKS) w->has_failed = 1;
  else w->now.mask[w->now.count++] = mask;
}

static lane_mask opposite(lane_mask m) {
  static const mask_value opposites[] = {MASK_IF_NOT, MASK_IF, MASK_NONE, MASK_ALL, MASK_UNKNOWN};
  m.value = opposites[m.value];
  return m;
}

static lane_mask intersection(lane_mask a, lane_mask b) {
  if (a.value == MASK_ALL || b.value == MASK_NONE) return b;
  if (b.value == MASK_ALL || a.value == MASK_NONE || (a.value == b.value && a.condition == b.condition)) return a;
  int excludes = a.value != MASK_UNKNOWN && b.value != MASK_UNKNOWN && a.condition == b.condition;
  return (lane_mask){VECTOR_NONE, VECTOR_NONE, excludes ? MASK_NONE : MASK_UNKNOWN};
}

/* On an edge that is taken when a mask is empty, its condition is known. */
static void note_empty(lane_masks *masks, lane_mask empty) {
  if (empty.value != MASK_IF && empty.value != MASK_IF_NOT) return;
  for (uint32_t k = 0; k < masks->count; k++) {
    lane_mask *m = &masks->mask[k];
    if (m->condition != empty.condition || m->value > MASK_IF_NOT) continue;
    *m = (lane_mask){m->reg, VECTOR_NONE, m->value == empty.value ? MASK_NONE : MASK_ALL};
  }
}

/* ---- the round --------------------------------------------------------------------------------------------------- */

static void add_edge(walk *w, uint32_t target, const lane_masks *masks) {
  if (target <= w->loop->head || target > w->loop->end) return; /* an edge out of the loop, or to the next round */
  if (w->edge_count == MOST_EDGES) w->has_failed = 1;
  else {
    w->edge[w->edge_count].target = target;
    w->edge[w->edge_count++].masks = *masks;
  }
}

static void follow_jump(walk *w, const vector_insn *insn, uint8_t *role) {
  lane_mask lanes = insn->op == VECTOR_JUMP ? mask_of(w, VECTOR_ALL)
                                            : intersection(mask_of(w, insn->s[0]), mask_of(w, insn->mask));
  lane_masks there = w->now;
  int if_none = insn->op == VECTOR_JUMP_NONE, if_any = insn->op != VECTOR_JUMP_NONE;
  if (lanes.value == MASK_ALL) *role = if_none ? NATIVE_NO_CHANGE : NATIVE_ALWAYS;
  note_empty(if_none ? &there : &w->now, lanes);
  if (*role != NATIVE_NO_CHANGE) add_edge(w, insn->target, &there);
  if (lanes.value == MASK_ALL && if_any) w->is_reached = 0;
}

static void meet(walk *w, const lane_masks *other) {
  if (!w->is_reached) w->now = *other;
  w->is_reached = 1;
  for (uint32_t k = w->now.count; k-- > 0;) {
    const lane_mask *m = &w->now.mask[k];
    for (uint32_t i = 0; i < other->count && m != NULL; i++) {
      const lane_mask *o = &other->mask[i];
      if (o->reg == m->reg && o->value == m->value && o->condition == m->condition) m = NULL;
    }
    if (m != NULL) w->now.mask[k] = w->now.mask[--w->now.count];
  }
}

static void meet_edges(walk *w, uint32_t label) {
  for (uint32_t k = w->edge_count; k-- > 0;) {
    if (w->edge[k].target != label) continue;
    meet(w, &w->edge[k].masks);
    w->edge[k] = w->edge[--w->edge_count];
  }
}

static lane_mask result_of(walk *w, const vector_insn *insn) {
  const lane_mask unknown = {VECTOR_NONE, VECTOR_NONE, MASK_UNKNOWN};
  switch (insn->op) {
  case VECTOR_CLEAR: return (lane_mask){VECTOR_NONE, VECTOR_NONE, MASK_NONE};
  case VECTOR_AND: return intersection(mask_of(w, insn->s[0]), mask_of(w, insn->s[1]));
  case VECTOR_ANDNOT: return intersection(mask_of(w, insn->s[0]), opposite(mask_of(w, insn->s[1])));
  case VECTOR_OR:
    return opposite(intersection(opposite(mask_of(w, insn->s[0])), opposite(mask_of(w, insn->s[1]))));
  case VECTOR_STEP: return mask_of(w, insn->mask);
  case VECTOR_MOVE: return mask_of(w, insn->mask).value == MASK_ALL ? mask_of(w, insn->s[0]) : unknown;
  default: return unknown;
  }
}

/* ---- where lanes leave ------------------------------------------------------------------------------------------- */

static int is_number(const native_build *b, const uint8_t *strides, uint32_t r, uint8_t stride) {
  return r < b->vector->regs.count && hg_native_stride_of(b, strides, r) == stride;
}

int hg_native_leaving(const native_build *b, const uint8_t *strides, uint32_t i, native_leaving *out) {
  const vector_insn *insn = vector_insn_at(b->vector, i), *use = insn + 1;
  if ((insn->op != ATLAS_OP_set_lt && insn->op != ATLAS_OP_set_le) || insn->mask != VECTOR_ALL) return 0;
  if (insn->type2 != ATLAS_u32 && insn->type2 != ATLAS_i32 && insn->type2 != ATLAS_u64) return 0;
  const vector_reg *d = vector_reg_at(b->vector, insn->d);
  if (d->first != i || d->last != i + 1 || use->s[1] != insn->d || use->s[0] != use->d) return 0;
  if (use->op != VECTOR_AND && use->op != VECTOR_ANDNOT) return 0;
  int is_not = use->op == VECTOR_ANDNOT;
  *out = (native_leaving){.counter = insn->s[is_not], .limit = insn->s[!is_not], .type = insn->type2,
                          .reaches_limit = (insn->op == ATLAS_OP_set_le) != is_not};
  return is_number(b, strides, out->counter, VECTOR_STRIDE_1) && is_number(b, strides, out->limit, VECTOR_STRIDE_0);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void walk_insn(walk *w, uint32_t i) {
  const vector_insn *insn = vector_insn_at(w->b->vector, i);
  uint8_t *role = &w->roles[i];
  native_leaving leaving;
  if (insn->op == VECTOR_LABEL) meet_edges(w, i);
  if (!w->is_reached || insn->op == VECTOR_LABEL) return;
  int takes_all = !vector_is_jump(insn->op) && mask_of(w, insn->mask).value == MASK_ALL;
  int may_end = insn->op == VECTOR_STEP && hg_native_counts_steps(w->b->vector);
  if (insn->op == VECTOR_TRAP || (may_end && !takes_all)) w->has_failed = 1; /* some lanes end */
  if (vector_is_jump(insn->op)) {
    follow_jump(w, insn, role);
    return;
  }
  if (takes_all) *role |= NATIVE_TAKES_ALL;
  for (int k = 0; k < 2 && insn->op >= VECTOR_AND && insn->op <= VECTOR_OR; k++)
    if (mask_of(w, insn->s[k]).value == MASK_ALL) *role |= k == 0 ? NATIVE_FIRST_ALL : NATIVE_SECOND_ALL;
  if (insn->d == VECTOR_NONE) return;
  if (vector_reg_at(w->b->vector, insn->d)->type != SSA_PREDICATE) return;
  int was_all = mask_of(w, insn->d).value == MASK_ALL;
  if (w->roles[i - 1] & NATIVE_LEAVES) return; /* all lanes stay */
  lane_mask result = result_of(w, insn);
  if (was_all && result.value == MASK_ALL) *role |= NATIVE_NO_CHANGE;
  else set_mask(w, insn->d, result);
  if (insn[1].d != w->loop->lanes || mask_of(w, insn[1].d).value != MASK_ALL) return;
  if (hg_native_leaving(w->b, w->strides, i, &leaving)) *role |= NATIVE_LEAVES;
}

/* 1 if the loop's mask is set right before the loop, to lanes that have not ended. */
static int is_set_before(const hg_vector *v, const native_loop *loop) {
  for (uint32_t i = loop->head; i-- > 0;) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (insn->op == VECTOR_LABEL || vector_is_jump(insn->op)) return 0;
    if (insn->d == loop->lanes) return insn->op == VECTOR_AND && insn->s[0] == VECTOR_ALL;
  }
  return 0;
}

int hg_native_find_masks(const native_build *b, native_loop *loop, const uint8_t *strides, uint8_t *roles) {
  const hg_vector *v = b->vector;
  walk w = {.b = b, .loop = loop, .strides = strides, .roles = roles, .is_reached = 1};
  const vector_insn *enters = vector_insn_at(v, loop->head + 1);
  int leaves = 0, is_masked = enters->op == VECTOR_JUMP_NONE && enters->flags & VECTOR_ENTERS;
  loop->lanes = is_masked ? enters->s[0] : VECTOR_ALL;
  if (!is_masked && !v->loses_lanes) return 0;
  if (is_masked) set_mask(&w, loop->lanes, mask_of(&w, VECTOR_ALL));
  loop->has_begun = (uint8_t)is_set_before(v, loop);
  for (uint32_t i = loop->head; i <= loop->end; i++) roles[i] = 0;
  for (uint32_t i = loop->head + 1; i <= loop->end && !w.has_failed; i++) {
    walk_insn(&w, i);
    leaves |= roles[i] & NATIVE_LEAVES;
  }
  return !w.has_failed && (!is_masked || (leaves && roles[loop->end] == NATIVE_ALWAYS));
}
