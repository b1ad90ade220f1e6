/* range_guards.c - range guards of straight-line code (straight.c): one comparison for all accesses to a buffer whose
 * indices are the lane's number plus the same u, or u itself for all lanes.
 *
 * A block that holds a row has dozens of such accesses. If the lanes of the whole block are in bounds of the furthest
 * one (NATIVE_GUARD_RANGE), none needs a comparison of its own; otherwise the block bails out, before it has stored
 * anything, to code that checks each access and reports the fault. A guard stands as early as possible. So a load whose
 * memory nothing writes may be done anywhere behind its guard, and repeated: hg_native_is_element.
 *
 * Accesses behind a label or jump, as in each round of a loop, have guards of their own. Stores may have been done when
 * such a guard fails; but if the block reads nothing that anybody writes, it may start again, since it stores the same
 * values. */
#include "backend/cpu/native/loop.h"
#include "backend/cpu/native/straight.h"

#include "base/error.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

enum { MOST_BOUNDS = 64 };

typedef struct bound {
  uint32_t symbol;
  uint32_t part;   /* the first instruction of its part of the program: see bounds.part */
  uint32_t added;  /* register: the u; VECTOR_NONE: nothing is added */
  uint32_t tail, end; /* of NATIVE_TAILs: their s2, s3; VECTOR_NONE */
  uint32_t before; /* the instruction of the old program before which the guard stands */
  uint64_t last;   /* the greatest index, less u and, for a NATIVE_TAIL, the lane's number */
  uint64_t loads, stores; /* elements that lanes access side by side */
  uint8_t is_absorbed;    /* 1: the guard of the same row's tail covers it */
} bound;

typedef struct bounds {
  native_build *b;
  const hg_vector *from;
  hg_rewrite to;
  uint32_t *writer; /* per register: see hg_native_find_writers */
  uint32_t *latest; /* per register: the last instruction so far that has written it; VECTOR_NONE */
  uint32_t part;    /* the instruction behind the last label or jump so far, where the current part begins */
  int may_restart;  /* 1: a block may start again after it has stored something */
  bound bound[MOST_BOUNDS];
  uint32_t count;
  uint32_t written; /* guards */
} bounds;

/* ---- accesses by row --------------------------------------------------------------------------------------------- */

/* 1 if a uniform number has the value that it had at instruction `since`: it is written once, or in rounds of a loop
 * but not since then. */
static int is_steady(const bounds *s, uint32_t r, uint32_t since) {
  const vector_reg *reg = vector_reg_at(s->from, r);
  if (reg->kind != VECTOR_VARIES || (reg->uniform && s->writer[r] < VECTOR_ALL)) return 1;
  if (!reg->uniform || !hg_straight_is_loop_carried(s->from, r) || since < s->part) return 0;
  return s->latest[r] == VECTOR_NONE || s->latest[r] < since;
}

/* 1 if an index is the lane's number plus *added. A small constant in the sum is added to *last. */
static int find_added(const bounds *s, uint32_t index, uint32_t *added, uint64_t *last) {
  uint64_t more;
  if (!hg_native_find_row(s->from, index, s->writer[index], added, &more)) return 0;
  *last += more;
  return *added == VECTOR_NONE ? more < NATIVE_GREATEST_DISPLACEMENT : is_steady(s, *added, s->writer[index]);
}

/* The lanes of a vector up to the last one that takes part in an instruction; 0: none does, or it is not known. */
static uint32_t lanes_of(const bounds *s, const vector_insn *insn) {
  const uint64_t *known = s->b->known.data;
  uint32_t lanes = s->b->target->lanes;
  if (insn->mask == VECTOR_ALL) return lanes;
  if (s->writer[insn->mask] >= VECTOR_ALL) return 0;
  const vector_insn *made = vector_insn_at(s->from, s->writer[insn->mask]);
  if (made->op != NATIVE_CONST_LANES) return 0;
  while (lanes > 0 && known[made->bits + lanes - 1] == 0) lanes--;
  return lanes;
}

/* 1 if an index is the same number in all lanes. */
static int find_same(const bounds *s, const vector_insn *insn, uint32_t *added) {
  const hg_vector *v = s->from;
  *added = VECTOR_NONE;
  if (insn->mode == ATLAS_ADDRESS_UNIFORM) return 1;
  const vector_reg *reg = vector_reg_at(v, *added = insn->s[0]);
  if (reg->type != ATLAS_u32) return 0;
  return reg->kind == VECTOR_VARIES ? reg->uniform && s->writer[*added] < VECTOR_ALL : !hg_native_is_lane_number(reg);
}

/* 1 for an access to a buffer by one of these kinds of index; `*found` is the guard that it needs. */
static int is_by_row(const bounds *s, const vector_insn *insn, bound *found) {
  unsigned flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE)) || flags & (ATLAS_ATOMIC | ATLAS_SPACE_POOL)) return 0;
  if (insn->mode > ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY) return 0;
  if (insn->flags & (VECTOR_LANE | VECTOR_IN_BOUNDS) || insn->bits > NATIVE_GREATEST_DISPLACEMENT) return 0;
  if (atlas_symbol_at(s->b->program, insn->symbol)->kind != ATLAS_SYMBOL_BUFFER) return 0;
  int is_tail = (insn->flags & NATIVE_TAIL) != 0;
  uint32_t lanes = is_tail ? s->b->target->lanes : lanes_of(s, insn);
  *found = (bound){.symbol = insn->symbol, .tail = VECTOR_NONE, .end = VECTOR_NONE, .last = insn->bits};
  if (lanes == 0) return 0;
  if (insn->flags & VECTOR_SAME) return find_same(s, insn, &found->added);
  if (!(insn->flags & VECTOR_CONTIGUOUS) || insn->mode != ATLAS_ADDRESS_INDEXED) return 0;
  uint64_t *accessed = flags & ATLAS_STORE ? &found->stores : &found->loads;
  *accessed = lanes;
  if (is_tail) found->tail = insn->s[2], found->end = insn->s[3];
  else found->last += (uint64_t)(insn->slice % s->b->slices) * s->b->target->lanes + lanes - 1;
  return find_added(s, insn->s[0], &found->added, &found->last);
}

/* The first instruction before which a guard can stand: u is known there. */
static uint32_t place_of(const bounds *s, uint32_t added) {
  uint32_t written = added == VECTOR_NONE ? VECTOR_NONE : s->latest[added];
  return written == VECTOR_NONE || written < s->part ? s->part : written + 1;
}

/* The guard of this part that serves an access; NULL: there is none yet. */
static bound *bound_of(bounds *s, const bound *like) {
  for (uint32_t k = 0; k < s->count; k++)
    if (s->bound[k].part == s->part && s->bound[k].symbol == like->symbol && s->bound[k].added == like->added &&
        s->bound[k].tail == like->tail && s->bound[k].end == like->end &&
        s->bound[k].before >= place_of(s, like->added))
      return &s->bound[k];
  return NULL;
}

/* Inserts a guard in the order of their places; NULL: there is no room. */
static bound *add_bound(bounds *s, const bound *now) {
  uint32_t k = s->count;
  if (s->count == MOST_BOUNDS) return NULL;
  for (s->count++; k > 0 && s->bound[k - 1].before > now->before; k--) s->bound[k] = s->bound[k - 1];
  s->bound[k] = *now;
  s->bound[k].part = s->part;
  return &s->bound[k];
}

static void begin_scan(bounds *s) {
  s->part = 0;
  for (uint32_t r = 0; r < s->from->regs.count; r++) s->latest[r] = VECTOR_NONE;
}

/* Notes what an instruction writes. */
static void scan(bounds *s, uint32_t i) {
  const vector_insn *insn = vector_insn_at(s->from, i);
  if (insn->d < VECTOR_ALL) s->latest[insn->d] = i;
  if (insn->op == VECTOR_LABEL || vector_is_jump(insn->op)) s->part = i + 1;
}

/* If a row's tail is in bounds, the row's elements before it are as well. */
static void absorb(bounds *s) {
  for (uint32_t k = 0; k < s->count; k++)
    for (uint32_t other = 0; s->bound[k].tail != VECTOR_NONE && other < s->count; other++) {
      bound *row = &s->bound[other], *tail = &s->bound[k];
      if (row->tail != VECTOR_NONE || row->symbol != tail->symbol || row->added != tail->added) continue;
      if (row->part != tail->part || row->before < tail->before || row->last > tail->last) continue;
      row->is_absorbed = 1;
      tail->loads += row->loads;
      tail->stores += row->stores;
    }
}

/* Finds the guards: before the first jump, if nothing has an effect before the guard; behind it, if the block may start
 * again. */
static void find_bounds(bounds *s) {
  uint32_t n = (uint32_t)s->from->insns.count, first_effect = n;
  s->may_restart = hg_straight_may_restart(s->b->program, s->from);
  begin_scan(s);
  for (uint32_t i = 0; i < n; scan(s, i++)) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    bound now, *known = NULL;
    if (s->part > 0 && !s->may_restart) return;
    int is = is_by_row(s, insn, &now);
    if (is) known = bound_of(s, &now);
    if (known != NULL) {
      if (now.last > known->last) known->last = now.last;
      known->loads += now.loads;
      known->stores += now.stores;
    } else if (is && ((now.before = place_of(s, now.added)) <= first_effect || s->may_restart))
      known = add_bound(s, &now);
    int is_store = (atlas_op_flags(insn->op) & ATLAS_STORE) != 0;
    int has_effect = known != NULL ? is_store : insn->op == NATIVE_COUNT || hg_straight_is_effect(s->b->program, insn);
    if (has_effect && first_effect == n) first_effect = i;
  }
}

/* ---- row starts -------------------------------------------------------------------------------------------------- */

/* The numbers that row starts of another part have which are computed at the same time. */
static uint32_t numbers_beside(const bounds *s, uint32_t added) {
  uint32_t taken = 0;
  for (uint32_t k = 0; k < s->count; k++)
    for (uint32_t other = 0; s->bound[k].added == added && other < s->count; other++) {
      int is_beside = s->bound[other].part == s->bound[k].part || s->bound[k].part == 0 || s->bound[other].part == 0;
      uint32_t number = is_beside ? hg_native_row_start(s->b, s->bound[other].added) : NATIVE_MOST_ROW_STARTS;
      if (number < NATIVE_MOST_ROW_STARTS) taken |= 1u << number;
    }
  return taken;
}

/* General registers hold the addresses of buffers and shared arrays. The remaining ones are for row starts, anew in
 * each part of the program but the first. */
static void find_row_starts(bounds *s) {
  uint8_t is_used[ATLAS_MAX_SYMBOLS] = {0};
  uint32_t used = 0;
  for (uint32_t i = 0; i < s->from->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    if (!(atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) || insn->symbol & SSA_LIBRARY) continue;
    used += !is_used[insn->symbol];
    is_used[insn->symbol] = 1;
  }
  native_build *b = s->b;
  b->row_start_count = b->row_start_registers = 0;
  b->has_bases = used <= b->target->address_count;
  for (uint32_t k = 0; k < s->count && b->has_bases; k++) {
    uint32_t added = s->bound[k].added, number = 0;
    if (added == VECTOR_NONE || s->bound[k].loads + s->bound[k].stores == 0) continue;
    if (hg_native_row_start(b, added) < NATIVE_MOST_ROW_STARTS || b->row_start_count == NATIVE_MOST_ROWS) continue;
    for (uint32_t taken = numbers_beside(s, added); taken >> number & 1;) number++;
    if (number == NATIVE_MOST_ROW_STARTS || used + number >= b->target->address_count) continue;
    b->row_start[b->row_start_count] = added;
    b->row_start_number[b->row_start_count++] = (uint8_t)number;
    if (number >= b->row_start_registers) b->row_start_registers = number + 1;
  }
}

uint32_t hg_native_row_start(const native_build *b, uint32_t added) {
  for (uint32_t k = 0; k < b->row_start_count; k++)
    if (b->row_start[k] == added) return b->row_start_number[k];
  return NATIVE_MOST_ROW_STARTS;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Each element is accessed once, or loaded once and stored once. */
static int is_dense(const bounds *s, const bound *b) {
  uint64_t count = b->last + (b->tail == VECTOR_NONE ? 1 : (uint64_t)s->b->slices * s->b->target->lanes);
  if (b->loads + b->stores == 0) return 0;
  return (b->loads == 0 || b->loads == count) && (b->stores == 0 || b->stores == count);
}

static void append_comparison(bounds *s, const bound *b) {
  vector_insn within = vector_insn_of(NATIVE_GUARD_RANGE, VECTOR_ALL);
  within.symbol = (uint16_t)b->symbol;
  within.s[0] = b->added;
  within.s[1] = b->tail;
  within.s[2] = b->end;
  within.bits = b->last;
  if (is_dense(s, b)) within.flags |= VECTOR_CONTIGUOUS;
  if (b->stores > 0) within.flags |= NATIVE_STORED;
  hg_rewrite_append(&s->to, &within);
  s->written++;
}

/* HG_UNSUPPORTED if a NATIVE_TAIL has no guard. */
static hg_status write_program(bounds *s, hg_vector *v) {
  HG_TRY(hg_rewrite_begin(&s->to, v, MOST_BOUNDS));
  begin_scan(s);
  for (uint32_t i = 0, next = 0; i < v->insns.count; scan(s, i++)) {
    vector_insn insn = *vector_insn_at(v, i);
    bound now;
    for (; next < s->count && s->bound[next].before == i; next++)
      if (!s->bound[next].is_absorbed) append_comparison(s, &s->bound[next]);
    const bound *known = is_by_row(s, &insn, &now) ? bound_of(s, &now) : NULL;
    if (known != NULL && now.last <= known->last && i >= known->before) insn.flags |= VECTOR_IN_BOUNDS | NATIVE_GUARDED;
    else if (insn.flags & NATIVE_TAIL && vector_is_primitive(insn.op)) {
      hg_rewrite_cancel(&s->to);
      return HG_UNSUPPORTED;
    }
    hg_rewrite_place(&s->to, i);
    hg_rewrite_append(&s->to, &insn);
  }
  return hg_rewrite_end(&s->to, 0);
}

hg_status hg_native_pass_range_guards(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t regs = v->regs.count;
  bounds s = {.b = b, .from = v, .writer = hg_allocate(&v->allocator, 2 * regs, sizeof *s.writer)};
  if (s.writer == NULL) return hg_fail_memory("machine code", 2 * regs * sizeof *s.writer);
  s.latest = s.writer + regs;
  hg_native_find_writers(v, s.writer);
  find_bounds(&s);
  absorb(&s);
  find_row_starts(&s);
  hg_status status = write_program(&s, v);
  hg_release(&v->allocator, s.writer);
  *fired = s.written;
  return status;
}

/* 1 if a register is an index: it must not be loaded again behind its comparison, since others than this launch may
 * write it meanwhile. */
static int is_an_index(const hg_vector *v, uint32_t r) {
  const vector_reg *reg = vector_reg_at(v, r);
  for (uint32_t i = reg->first + 1; i <= reg->last; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    unsigned flags = vector_is_primitive(insn->op) ? atlas_op_flags(insn->op) : 0;
    if (insn->s[0] == r && insn->mode == ATLAS_ADDRESS_INDEXED && flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))
      return 1;
  }
  return 0;
}

/* 1 if a row start keeps its value until the register is read for the last time. */
static int is_there(const native_build *b, const vector_reg *reg, uint32_t added) {
  for (uint32_t i = reg->first; i <= reg->last && reg->first >= b->first_part; i++) {
    const vector_insn *insn = vector_insn_at(b->vector, i);
    if (insn->d == added || insn->op == VECTOR_LABEL || vector_is_jump(insn->op)) return 0;
  }
  return 1;
}

int hg_native_is_element(const native_build *b, uint32_t r) {
  const hg_vector *v = b->vector;
  const vector_reg *reg = vector_reg_at(v, r);
  if (!b->has_bases || reg->kind != VECTOR_VARIES || reg->first == VECTOR_NONE || hg_straight_is_loop_carried(v, r))
    return 0;
  const vector_insn *load = vector_insn_at(v, reg->first);
  if (load->d != r || !hg_native_is_row_load(load) || !(load->flags & VECTOR_IN_BOUNDS)) return 0;
  if (load->symbol & SSA_LIBRARY || load->bits > NATIVE_GREATEST_DISPLACEMENT) return 0;
  if (load->type != ATLAS_f32 && load->type != ATLAS_u32 && load->type != ATLAS_i32) return 0;
  if (load->type != ATLAS_f32 && is_an_index(v, r)) return 0;
  if (atlas_symbol_at(b->program, load->symbol)->kind != ATLAS_SYMBOL_BUFFER) return 0;
  const vector_reg *index = vector_reg_at(v, load->s[0]);
  uint32_t writer = index->kind == VECTOR_VARIES ? index->first : VECTOR_NONE, added;
  uint64_t more;
  if (hg_straight_is_loop_carried(v, load->s[0]) || !hg_native_find_row(v, load->s[0], writer, &added, &more)) return 0;
  if (added == VECTOR_NONE) return more < NATIVE_GREATEST_DISPLACEMENT;
  return hg_native_row_start(b, added) < NATIVE_MOST_ROW_STARTS && is_there(b, reg, added);
}
