/* split.c - live-range splitting of a vector program that is cut into regions.
 *
 * Values that are live across regions are in register rows, one element a lane. In a region that uses such a value more
 * than once, the value gets a register of that region: live-ins are loaded where the region begins, live-outs are
 * stored where it ends.
 *
 * A block-uniform value is kept once instead of in a row. Every group computes its new value from the value at the
 * start of the region, so the new value must not be visible before the last group is done: it is always a live-out, and
 * replaces the old value at the end of the region (see native_location). Such a register is written only where all
 * groups come, equally often, and is computed only from values of its kind. A group whose lanes have all ended needs
 * nothing and stores nothing.
 *
 * blane + u, with a block-uniform u, is computed again in each region that reads it: it usually is an index, and an
 * access next to its addition needs one check for the whole group. */
#include "backend/cpu/native/vector_passes.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

#include "base/error.h"

#include <string.h>

enum { IS_READ = 1, IS_WRITTEN = 2, IS_PARTLY = 4, IS_USED_OFTEN = 8, IS_LIVE_IN = 16 }; /* of split.use */

typedef struct split {
  hg_vector *from;
  hg_rewrite to;
  const native_step *step; /* the current step */
  uint8_t *diverges;       /* per instruction: 1: not all groups come there, or not equally often */
  uint32_t *loop_end;      /* per instruction: where a loop that begins there ends; 0: none */
  uint32_t *loop;          /* the first instructions of loops, in order */
  uint32_t loop_count;
  uint8_t *is_block_uniform; /* per register: block-uniform */
  uint32_t *again;         /* per register: the instruction that regions repeat if they read it; VECTOR_NONE: none */
  uint32_t *last;          /* per register: its last use, including the uses by such instructions */
  uint8_t *use;            /* per register: how the current region uses it (IS_READ, ...) */
  uint32_t *local;         /* per register: its register in the current region; VECTOR_NONE: none */
  uint32_t *touched;       /* the registers whose `use` is not 0 */
  uint32_t touched_count;
  uint32_t limit;          /* of the current region: see find_limit; VECTOR_NONE: none */
  uint32_t within;         /* the mask of the lanes below the limit */
  uint32_t head_end;       /* the end of the instructions that only compute that mask */
  uint32_t locals;         /* registers of regions */
} split;

static int varies(const hg_vector *v, uint32_t r) {
  return r < v->regs.count && vector_reg_at(v, r)->kind == VECTOR_VARIES;
}

/* ---- block-uniform values ---------------------------------------------------------------------------------------- */

static int is_block_uniform_source(const split *s, uint32_t r) {
  return hg_native_is_alike(s->from, r, s->is_block_uniform);
}

static int is_block_uniform_jump(const split *s, const vector_insn *insn) {
  return insn->op == VECTOR_JUMP || (insn->mask == VECTOR_ALL && is_block_uniform_source(s, insn->s[0]));
}

static void mark_divergent(split *s, uint32_t first, uint32_t end) { memset(s->diverges + first, 1, end - first); }

/* Marks what a divergent jump skips, and the loops that such a jump leaves. */
static void find_divergence(split *s) {
  uint32_t n = (uint32_t)s->from->insns.count;
  memset(s->diverges, 0, n);
  for (uint32_t i = 0; i < n; i++) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    if (!vector_is_jump(insn->op) || insn->flags & VECTOR_LAST || is_block_uniform_jump(s, insn)) continue;
    if (insn->target <= i) mark_divergent(s, insn->target, i + 1);
    else mark_divergent(s, i, insn->target);
    for (uint32_t k = 0; k < s->loop_count && s->loop[k] < i; k++)
      if (s->loop_end[s->loop[k]] >= i && s->loop_end[s->loop[k]] < insn->target)
        mark_divergent(s, s->loop[k], s->loop_end[s->loop[k]] + 1);
  }
}

/* 1 for a load of one element, or an operation on values. */
static int may_be_block_uniform(const vector_insn *insn) {
  if (insn->op == VECTOR_MOVE || insn->op == VECTOR_CANON || insn->op == VECTOR_LESSER || insn->op == VECTOR_GREATER)
    return 1;
  if (!vector_is_primitive(insn->op)) return 0;
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info->flags & ATLAS_LOAD) return insn->mode <= ATLAS_ADDRESS_INDEXED && !(info->flags & ATLAS_SPACE_POOL);
  return (info->flags & ATLAS_PURE) != 0;
}

static int keeps_block_uniform(const split *s, uint32_t i) {
  const vector_insn *insn = vector_insn_at(s->from, i);
  if (insn->mask != VECTOR_ALL || s->diverges[i] || !may_be_block_uniform(insn)) return 0;
  for (int k = 0; k < 4; k++)
    if (!is_block_uniform_source(s, insn->s[k])) return 0;
  return 1;
}

/* Optimistic: begins with all uniform registers and removes those that fail, to a fixed point. */
static void find_block_uniform(split *s) {
  const hg_vector *v = s->from;
  if (v->insns.count > CPU_UNIFORM_INSNS) return;
  for (uint32_t r = 0; r < v->regs.count; r++) s->is_block_uniform[r] = varies(v, r) && vector_reg_at(v, r)->uniform;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (insn->op != VECTOR_STEP) continue;
    for (int k = 0; k < 2; k++)
      if (insn->s[k] < v->regs.count) s->is_block_uniform[insn->s[k]] = 0; /* C code counts in it for each group */
  }
  for (int changed = 1; changed;) {
    changed = 0;
    find_divergence(s);
    for (uint32_t i = 0; i < v->insns.count; i++) {
      uint32_t d = vector_insn_at(v, i)->d;
      if (!varies(v, d) || !s->is_block_uniform[d] || keeps_block_uniform(s, i)) continue;
      s->is_block_uniform[d] = 0;
      changed = 1;
    }
  }
}

/* ---- values that are computed again ------------------------------------------------------------------------------ */

/* An instruction of the whole block reads its sources from rows, so they must have one. */
static void exclude_rows(split *s, const hg_array *steps) {
  for (size_t k = 0; k < steps->count; k++) {
    const native_step *step = (const native_step *)steps->data + k;
    for (uint32_t i = step->first; i < step->end && step->kind != NATIVE_REGION; i++)
      for (int source = 0; source < 4; source++) {
        uint32_t r = vector_insn_at(s->from, i)->s[source];
        if (varies(s->from, r)) s->again[r] = VECTOR_NONE;
      }
  }
}

/* If blane + u is computed again, u stays live until then. */
static void keep_added(split *s) {
  for (uint32_t r = 0; r < s->from->regs.count; r++) {
    if (s->again[r] == VECTOR_NONE) continue;
    uint32_t added = hg_native_added_to_lane(s->from, vector_insn_at(s->from, s->again[r]));
    if (varies(s->from, added) && s->last[added] < s->last[r]) s->last[added] = s->last[r];
  }
}

/* Finds the registers that are written once, with a sum blane + u whose u is written once as well. */
static void find_again(split *s, const hg_array *steps) {
  const hg_vector *v = s->from;
  uint32_t *writes = s->touched; /* not in use yet */
  memset(s->again, 0xff, v->regs.count * sizeof *s->again);
  memset(writes, 0, v->regs.count * sizeof *writes);
  for (uint32_t r = 0; r < v->regs.count; r++) s->last[r] = vector_reg_at(v, r)->last;
  if (v->loses_lanes) return;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (varies(v, insn->d)) writes[insn->d]++;
    for (int k = 0; k < 4 && insn->op == VECTOR_STEP; k++)
      if (varies(v, insn->s[k])) writes[insn->s[k]]++;
  }
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (insn->mask != VECTOR_ALL) continue;
    uint32_t added = hg_native_added_to_lane(v, insn);
    if (added == VECTOR_NONE || s->is_block_uniform[insn->d] || writes[insn->d] != 1) continue;
    if (!is_block_uniform_source(s, added)) continue;
    if (varies(v, added) && writes[added] != 1) continue;
    s->again[insn->d] = i;
  }
  exclude_rows(s, steps);
  keep_added(s);
}

/* ---- what a region does with what lives beyond it ---------------------------------------------------------------- */

/* Notes a use of a register that is live across regions. The register is a live-in unless the first use in the region
 * writes it for all lanes of all groups. */
static void note_use(split *s, uint32_t r, uint8_t use) {
  if (!varies(s->from, r)) return;
  const vector_reg *reg = vector_reg_at(s->from, r);
  int lives_before = reg->first < s->step->first;
  if (!lives_before && s->last[r] < s->step->end) return;
  if (s->use[r] != 0) use |= IS_USED_OFTEN;
  else {
    s->touched[s->touched_count++] = r;
    if (lives_before && (use & (IS_READ | IS_PARTLY))) use |= IS_LIVE_IN;
  }
  s->use[r] |= use;
}

static void find_uses(split *s) {
  uint32_t loop = 0;
  uint8_t some = 0;
  for (uint32_t i = s->step->first; i < s->step->end; i++) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    uint8_t read = IS_READ, written = IS_WRITTEN | some;
    if (s->loop_end[i] > loop && s->loop_end[i] < s->step->end) loop = s->loop_end[i];
    if (i < loop) read |= IS_USED_OFTEN, written |= IS_USED_OFTEN;
    if (vector_is_jump(insn->op)) some = IS_PARTLY;
    if (insn->mask != VECTOR_ALL && (insn->flags & VECTOR_KEEP || insn->op == VECTOR_MOVE)) written |= IS_PARTLY;
    for (int k = 0; k < 4; k++) {
      note_use(s, insn->s[k], read);
      if (insn->op == VECTOR_STEP) note_use(s, insn->s[k], IS_WRITTEN); /* a STEP writes its counters, too */
    }
    note_use(s, insn->mask, read);
    note_use(s, insn->d, written);
  }
}

static int wants_local(const split *s, uint32_t r) {
  if (s->again[r] != VECTOR_NONE) return 1;
  return s->is_block_uniform[r] ? (s->use[r] & IS_WRITTEN) != 0 : (s->use[r] & IS_USED_OFTEN) != 0;
}

/* ---- regions that only the first lanes have something to do in --------------------------------------------------- */

static int is_local(const split *s, uint32_t r) {
  const vector_reg *reg = vector_reg_at(s->from, r);
  return reg->first >= s->step->first && s->last[r] < s->step->end;
}

/* 1 if nothing from here to the end of the region has an effect in any lane. */
static int does_nothing_until_end(const split *s, uint32_t i) {
  for (; i < s->step->end; i++) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    int leads_on =
        vector_is_jump(insn->op) && (insn->flags & VECTOR_LAST || (insn->target > i && insn->target < s->step->end));
    if (insn->op != VECTOR_LABEL && insn->op != VECTOR_END && !leads_on) return 0;
  }
  return 1;
}

/* The limit of a comparison `blane < limit`, as a register of the new program; VECTOR_NONE: it is no such
 * comparison. */
static uint32_t limit_of(split *s, const vector_insn *insn) {
  if (insn->type2 != ATLAS_u32 || (insn->op != ATLAS_OP_set_lt && insn->op != ATLAS_OP_set_eq)) return VECTOR_NONE;
  const vector_reg *than = vector_reg_at(s->from, insn->s[1]);
  if (!hg_native_is_blane(s->from, insn->s[0])) return VECTOR_NONE;
  if (insn->op == ATLAS_OP_set_lt) {
    int is_there = than->kind != VECTOR_VARIES || than->first < s->step->first;
    return is_there && is_block_uniform_source(s, insn->s[1]) ? insn->s[1] : VECTOR_NONE;
  }
  if (than->kind != VECTOR_CONSTANT || than->bits != 0) return VECTOR_NONE;
  vector_reg one = {.type = ATLAS_u32, .kind = VECTOR_CONSTANT, .bits = 1};
  return hg_rewrite_register(&s->to, &one);
}

/* A region with a limit needs neither the computation of its mask nor jumps over the rest, which only other lanes
 * take. */
static int is_dropped(const split *s, uint32_t i) {
  const vector_insn *insn = vector_insn_at(s->from, i);
  if (i < s->head_end) return insn->op != VECTOR_LABEL;
  return vector_is_jump(insn->op) && insn->target > i && does_nothing_until_end(s, i);
}

/* 1 if only the mask, which is all lanes now, is read outside the region's head. */
static int is_head_forgotten(const split *s) {
  for (uint32_t i = s->step->first; i < s->step->end; i++) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    if (is_dropped(s, i)) continue;
    if (insn->d == s->within) return 0;
    for (uint32_t h = s->step->first; h < s->head_end; h++) {
      uint32_t d = vector_insn_at(s->from, h)->d;
      if (d == VECTOR_NONE || d == s->within) continue;
      if (insn->mask == d) return 0;
      for (int k = 0; k < 4; k++)
        if (insn->s[k] == d) return 0;
    }
  }
  return 1;
}

/* A region that begins with `m = all and blane < limit; jump.none m -> its end` is run on the lanes of `m` only: `m`
 * becomes VECTOR_ALL, and its computation is removed. */
static void find_limit(split *s) {
  uint32_t test = VECTOR_NONE, comparison = VECTOR_NONE;
  s->limit = s->within = VECTOR_NONE;
  s->head_end = s->step->first;
  for (uint32_t i = s->step->first; i < s->step->end; i++) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    if (hg_native_needs_no_code(s->from, i)) continue;
    if (insn->op == ATLAS_OP_set_lt || insn->op == ATLAS_OP_set_eq) {
      if (comparison != VECTOR_NONE || !is_local(s, insn->d)) return;
      comparison = i;
    } else if (insn->op == VECTOR_AND || insn->op == VECTOR_ANDNOT) {
      if (comparison == VECTOR_NONE || insn->s[0] != VECTOR_ALL || !is_local(s, insn->d)) return;
      if (insn->s[1] != vector_insn_at(s->from, comparison)->d) return;
      if (insn->op == VECTOR_AND) s->within = insn->d;
    } else {
      test = i;
      break;
    }
  }
  if (test == VECTOR_NONE || s->within == VECTOR_NONE) return;
  const vector_insn *jump = vector_insn_at(s->from, test);
  if (jump->op != VECTOR_JUMP_NONE || jump->s[0] != s->within || jump->mask != VECTOR_ALL) return;
  if (jump->target >= s->step->end || !does_nothing_until_end(s, jump->target)) return;
  s->limit = limit_of(s, vector_insn_at(s->from, comparison));
  s->head_end = test + 1;
  if (!is_head_forgotten(s)) s->limit = VECTOR_NONE;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void append_move(split *s, uint8_t type, uint32_t d, uint32_t from) {
  vector_insn move = vector_insn_of(VECTOR_MOVE, VECTOR_ALL);
  move.type = type;
  move.d = d;
  move.s[0] = from;
  hg_rewrite_append(&s->to, &move);
}

static void new_local(split *s, uint32_t r) {
  vector_reg reg = *vector_reg_at(s->from, r);
  reg.uniform = s->is_block_uniform[r] ? NATIVE_BLOCK_UNIFORM : 0;
  s->local[r] = hg_rewrite_register(&s->to, &reg);
  s->locals++;
}

static uint32_t renamed(const split *s, uint32_t r) {
  if (s->limit != VECTOR_NONE && r == s->within) return VECTOR_ALL;
  return varies(s->from, r) && s->local[r] != VECTOR_NONE ? s->local[r] : r;
}

static void append_live_in(split *s, uint32_t r) {
  if (s->again[r] == VECTOR_NONE) {
    append_move(s, vector_reg_at(s->from, r)->type, s->local[r], r);
    return;
  }
  vector_insn insn = *vector_insn_at(s->from, s->again[r]);
  insn.d = s->local[r];
  hg_rewrite_append(&s->to, &insn);
}

static void append_insns(split *s, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++) {
    vector_insn insn = *vector_insn_at(s->from, i);
    hg_rewrite_place(&s->to, i);
    if (s->limit != VECTOR_NONE && is_dropped(s, i)) continue;
    for (int k = 0; k < 4; k++) insn.s[k] = renamed(s, insn.s[k]);
    insn.mask = renamed(s, insn.mask);
    insn.d = renamed(s, insn.d);
    int is_decided = vector_is_jump(insn.op) && !(insn.flags & VECTOR_LAST) && insn.mask == VECTOR_ALL;
    if (is_decided && is_block_uniform_source(s, vector_insn_at(s->from, i)->s[0])) insn.flags |= VECTOR_AGREE;
    hg_rewrite_append(&s->to, &insn);
  }
}

static void append_region(split *s) {
  vector_insn label = vector_insn_of(VECTOR_LABEL, VECTOR_ALL);
  label.bits = SSA_NONE;
  s->touched_count = 0;
  find_limit(s);
  find_uses(s);
  hg_rewrite_append(&s->to, &label); /* jumps of the block lead here */
  if (s->limit != VECTOR_NONE) {
    vector_insn limit = label;
    limit.op = NATIVE_ACTIVE_LANES;
    limit.s[0] = s->limit;
    hg_rewrite_append(&s->to, &limit);
  }
  for (uint32_t k = 0; k < s->touched_count; k++) {
    uint32_t r = s->touched[k];
    if (!wants_local(s, r)) continue;
    new_local(s, r);
    if (s->use[r] & IS_LIVE_IN) append_live_in(s, r);
  }
  append_insns(s, s->step->first, s->step->end);
  for (uint32_t k = 0; k < s->touched_count; k++) {
    uint32_t r = s->touched[k];
    const vector_reg *reg = vector_reg_at(s->from, r);
    int goes_on = (reg->first < s->step->first || s->last[r] >= s->step->end) && s->again[r] == VECTOR_NONE;
    if (s->local[r] != VECTOR_NONE && s->use[r] & IS_WRITTEN && goes_on) append_move(s, reg->type, r, s->local[r]);
    s->local[r] = VECTOR_NONE;
    s->use[r] = 0;
  }
}

/* Sets the targets of the region's jumps to its own instructions, whose positions are known now. Jumps to the first
 * instruction lead to the region's beginning. */
static void resolve_jumps(split *s, uint32_t begin) {
  uint32_t first = s->step->first, end = s->step->end;
  for (uint32_t i = begin; i < hg_rewrite_count(&s->to); i++) {
    vector_insn *insn = hg_rewrite_insn(&s->to, i);
    if (insn->target >= first && insn->target < end) insn->target = s->to.place[insn->target] | HG_REWRITE_NEW;
  }
}

static hg_status write_program(split *s, const hg_array *steps) {
  hg_vector *v = s->from;
  uint32_t regs = (uint32_t)v->regs.count;
  HG_TRY(hg_rewrite_begin(&s->to, v, 0));
  for (uint32_t r = 0; r < regs; r++) {
    vector_reg *reg = vector_reg_at(v, r);
    int is_within = reg->kind == VECTOR_VARIES && !reg->across && reg->uniform && !v->loses_lanes;
    if (reg->kind == VECTOR_VARIES) reg->uniform = s->is_block_uniform[r] ? NATIVE_BLOCK_UNIFORM : (uint8_t)is_within;
    s->local[r] = VECTOR_NONE;
  }
  for (size_t k = 0; k < steps->count && !s->to.no_memory; k++) {
    s->step = (const native_step *)steps->data + k;
    uint32_t entry = hg_rewrite_count(&s->to);
    s->limit = VECTOR_NONE;
    if (s->step->kind == NATIVE_REGION) append_region(s);
    else append_insns(s, s->step->first, s->step->end);
    resolve_jumps(s, entry);
    s->to.place[s->step->first] = entry;
  }
  return hg_rewrite_end(&s->to, 1);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void find_loops(split *s) {
  uint32_t n = (uint32_t)s->from->insns.count;
  for (uint32_t i = 0; i < n; i++) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    if (vector_is_jump(insn->op) && insn->target <= i) s->loop_end[insn->target] = i;
  }
  for (uint32_t i = 0; i < n; i++)
    if (s->loop_end[i] != 0) s->loop[s->loop_count++] = i;
}

hg_status hg_native_pass_split(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t n = v->insns.count, regs = v->regs.count, words = 3 * n + 5 * regs;
  split s = {.from = v};
  if (!v->has_block_ops) return HG_UNSUPPORTED; /* the program is one region */
  HG_TRY(hg_native_find_steps(b));
  s.loop_end = hg_allocate(&v->allocator, words, sizeof *s.loop_end);
  if (s.loop_end == NULL) return hg_fail_memory("machine code", words * sizeof *s.loop_end);
  s.loop = s.loop_end + n;
  s.diverges = (uint8_t *)(s.loop + n);
  s.local = s.loop + 2 * n;
  s.touched = s.local + regs;
  s.again = s.touched + regs;
  s.last = s.again + regs;
  s.is_block_uniform = (uint8_t *)(s.last + regs);
  s.use = s.is_block_uniform + regs;
  find_loops(&s);
  find_block_uniform(&s);
  find_again(&s, &b->steps);
  hg_status status = write_program(&s, &b->steps);
  hg_release(&v->allocator, s.loop_end);
  *fired = s.locals;
  return status;
}
