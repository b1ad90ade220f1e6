/* generate.c - random programs: control flow. Instructions: generate_insn.c. */
#include "generate.h"

#include "atlas/value.h"
#include "generator.h"

#include <stdlib.h>

/* ---- environments ------------------------------------------------------------------------------------------------ */

static env meet(const env *a, const env *b) {
  if (!a->reachable) return *b;
  if (!b->reachable) return *a;
  env met = *a;
  for (int i = 0; i < PLACES; i++) {
    if (a->type[i] != b->type[i]) met.type[i] = 0;
    if (b->level[i] > met.level[i]) met.level[i] = b->level[i];
  }
  return met;
}

/* Inside a loop only what is computed afresh is known to be uniform. */
static void forget_levels(generator *g) {
  for (int i = 0; i < PLACES; i++)
    if (!g->reserved[i]) g->now.level[i] = LANE;
}

static void raise_levels(generator *g, int level) {
  for (int i = 0; i < PLACES; i++)
    if (g->now.level[i] < level) g->now.level[i] = (uint8_t)level;
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

static void statements(generator *g, uint32_t until);

static uint32_t count_of(const generator *g) { return g->d->insn_count; }

/* Where code of about `share` percent of what is left ends. */
static uint32_t part(generator *g, uint32_t until, uint32_t percent) {
  uint32_t left = until > count_of(g) ? until - count_of(g) : 0;
  return count_of(g) + 1 + left * (1 + below(g, percent)) / 100;
}

static int may_leave(const generator *g) { /* a divergent exit must not put a barrier under it that is already there */
  for (int i = 0; i < g->loop_count; i++)
    if (g->loops[i].is_uniform) return 0;
  return !g->in_callee;
}

static void end_here(generator *g) { g->now.reachable = 0; }

static void emit_exit(generator *g) {
  emit_ops(g, ATLAS_OP_exit, ATLAS_NONE, 0, NULL);
  if (g->level == LANE) g->collectives = 0;
  end_here(g);
}

static void emit_trap(generator *g) {
  emit_ops(g, ATLAS_OP_trap, ATLAS_NONE, 1, (atlas_operand[]){atlas_bits(below(g, 100))});
  end_here(g);
}

/* A way to leave the code at hand early, under the condition that has just been tested. */
static int leave(generator *g, int is_uniform) {
  loop_scope *loop = g->loop_count > 0 ? &g->loops[g->loop_count - 1] : NULL;
  uint32_t kind = below(g, 10);
  if (loop != NULL && kind < 6 && (is_uniform || !loop->is_uniform)) {
    int next = loop->can_continue && chance(g, 40);
    env *to = next ? &loop->next : &loop->exit;
    *to = meet(to, &g->now);
    branch(g, -1, 0, next ? loop->next_label : loop->exit_label);
    end_here(g);
    return 1;
  }
  if (g->in_callee && loop == NULL && (is_uniform || !g->collectives)) {
    g->ret = meet(&g->ret, &g->now);
    emit_ops(g, ATLAS_OP_ret, ATLAS_NONE, 0, NULL);
    end_here(g);
    return 1;
  }
  if (kind < 8 && may_leave(g)) {
    emit_exit(g);
    return 1;
  }
  return 0;
}

/* @p trap on one lane, or on the few where a value is odd. */
static void rare_trap(generator *g) {
  atlas_operand p;
  if (!destination_predicate(g, &p)) return;
  uint32_t after = draft_label(g->d);
  emit_ops(g, ATLAS_OP_set_eq, ATLAS_u64, 3, (atlas_operand[]){p, atlas_reg(ATLAS_REG_LANE), atlas_bits(below(g, 40))});
  env before = g->now;
  branch(g, (int)p.reg, 1, after);
  emit_trap(g);
  g->now = before;
  draft_place(g->d, after);
}

static void one_side(generator *g, uint32_t until, int is_uniform, int may_end) {
  statements(g, until);
  if (may_end && chance(g, 15)) leave(g, is_uniform);
}

static void if_else(generator *g, uint32_t until) {
  int wants_uniform = can_collect(g) && chance(g, 50);
  uint32_t p = wants_uniform ? uniform_predicate(g) : any_predicate(g);
  if (g->now.type[REGISTERS + p] == 0) return;
  int level = g->level, is_uniform = g->now.level[REGISTERS + p] <= BLOCK && level <= BLOCK, negated = chance(g, 50);
  uint32_t end = draft_label(g->d), otherwise = chance(g, 50) ? draft_label(g->d) : end;
  branch(g, (int)p, negated, otherwise);
  if (g->now.level[REGISTERS + p] > level) g->level = g->now.level[REGISTERS + p];
  env before = g->now;
  one_side(g, part(g, until, 60), is_uniform, 1);
  env after = g->now;
  g->now = before;
  if (otherwise != end) {
    if (after.reachable) branch(g, -1, 0, end);
    draft_place(g->d, otherwise);
    one_side(g, part(g, until, 60), is_uniform, after.reachable);
  }
  draft_place(g->d, end);
  int left = !after.reachable || !g->now.reachable; /* someone may have gone: what follows depends on the branch */
  g->now = meet(&after, &g->now);
  if (!left || g->loop_count > 0 || g->in_callee) g->level = level;
  if (g->level == LANE && level != LANE) g->level = g->collectives ? level : LANE;
}

void open_side(generator *g, uint32_t predicate, int negated, side *s) {
  *s = (side){.level = g->level, .end = draft_label(g->d), .otherwise = draft_label(g->d)};
  branch(g, (int)predicate, !negated, s->otherwise);
  if (g->now.level[REGISTERS + predicate] > g->level) g->level = g->now.level[REGISTERS + predicate];
  s->before = g->now;
}

void other_side(generator *g, side *s) {
  s->has_other = 1;
  s->after = g->now;
  if (g->now.reachable) branch(g, -1, 0, s->end);
  draft_place(g->d, s->otherwise);
  g->now = s->before;
}

void close_side(generator *g, side *s) {
  if (!s->has_other) {
    draft_place(g->d, s->otherwise);
    s->after = s->before;
  }
  draft_place(g->d, s->end);
  g->now = meet(&s->after, &g->now);
  g->level = s->level;
}

/* A few pieces with branches from any to any later one. */
static void tangle(generator *g) {
  enum { PIECES = 6 };
  static env in[PIECES + 1];
  uint32_t count = 2 + below(g, PIECES - 1), labels[PIECES + 1];
  int level = g->level;
  g->level = LANE;
  for (uint32_t i = 1; i <= count; i++) {
    labels[i] = draft_label(g->d);
    in[i].reachable = 0;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) {
      draft_place(g->d, labels[i]);
      g->now = meet(&in[i], &g->now);
    }
    for (uint32_t n = below(g, 3); n > 0; n--) random_insn(g);
    uint32_t p = any_predicate(g), to = i + 1 + below(g, count - i);
    if (g->now.type[REGISTERS + p] == 0) continue;
    branch(g, (int)p, chance(g, 50), labels[to]);
    in[to] = meet(&in[to], &g->now);
    to = i + 1 + below(g, count - i);
    if (chance(g, 50) || (to > i + 1 && !in[i + 1].reachable)) continue;
    branch(g, -1, 0, labels[to]);
    in[to] = meet(&in[to], &g->now);
    end_here(g);
  }
  draft_place(g->d, labels[count]);
  g->now = meet(&in[count], &g->now);
  g->level = level;
}

/* The lane that owns element k of a plane reaches it by its number. */
static void lone_lane(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_PLANES, ATLAS_NONE);
  atlas_operand p, r;
  if (s == UINT16_MAX || !destination_predicate(g, &p)) return;
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  uint32_t after = draft_label(g->d), own = below(g, g->l->lane_count), level = (uint32_t)g->level;
  int negated = chance(g, 50);
  emit_ops(g, negated ? ATLAS_OP_set_eq : ATLAS_OP_set_ne, ATLAS_u64, 3,
           (atlas_operand[]){p, atlas_reg(ATLAS_REG_LANE), atlas_bits(own)});
  branch(g, (int)p.reg, negated, after);
  env before = g->now;
  g->level = LANE;
  if (chance(g, 50) && destination(g, type, &r)) EMIT(g, ldg, type, r, atlas_mem(s, own));
  r = source(g, type);
  EMIT(g, stg, type, atlas_mem(s, own), r);
  draft_place(g->d, after);
  g->now = meet(&before, &g->now);
  g->level = (int)level;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

loop_scope *open_loop(generator *g, int is_uniform) {
  loop_scope *loop = &g->loops[g->loop_count++];
  if (!is_uniform) g->level = LANE;
  forget_levels(g);
  *loop = (loop_scope){.header = g->now, .exit_label = draft_label(g->d), .is_uniform = is_uniform};
  return loop;
}

void close_loop(generator *g, loop_scope *loop, const env *last, int level) {
  draft_place(g->d, loop->exit_label);
  g->now = meet(&loop->exit, last);
  g->loop_count--;
  g->level = level;
  raise_levels(g, loop->is_uniform ? GRID : LANE);
}

/* How often: a constant, the same for all, or 0 to 7 after the data. `limit` gets the register or constant. */
static int trip_count(generator *g, atlas_type type, uint32_t *trips, atlas_operand *limit) {
  *trips = 1 + below(g, 7);
  if (*trips * g->trips > 24) *trips = 1;
  *limit = atlas_bits(*trips);
  if (chance(g, 35)) return 1;
  uint32_t reg = reserve(g), mask = *trips > 3 ? 7 : *trips > 1 ? 3 : 1;
  if (reg == UINT32_MAX) return 1;
  *trips = mask;
  uint16_t scalar = symbol_with_role(g, ROLE_NONE, type);
  int is_uniform = scalar != UINT16_MAX && chance(g, 50);
  atlas_operand from = is_uniform ? atlas_scalar(scalar) : register_source(g, type);
  emit_ops(g, ATLAS_OP_and, type, 3, (atlas_operand[]){atlas_reg(reg), from, atlas_bits(mask)});
  *limit = atlas_reg(reg);
  return g->now.level[reg] <= BLOCK;
}

/* loop rC: a body that runs once at least. */
static void counted_loop(generator *g, uint32_t until) {
  uint32_t counter = reserve(g), trips;
  atlas_operand limit;
  if (counter == UINT32_MAX) return;
  int is_uniform = trip_count(g, ATLAS_u32, &trips, &limit) && can_collect(g) && chance(g, 70), level = g->level;
  if (limit.kind == ATLAS_OPERAND_IMM) EMIT(g, movi, ATLAS_u32, atlas_reg(counter), limit);
  else EMIT(g, add, ATLAS_u32, atlas_reg(counter), limit, atlas_bits(1));
  loop_scope *loop = open_loop(g, is_uniform);
  uint32_t header = draft_label(g->d), outer = g->trips;
  g->trips *= trips + 1;
  draft_place(g->d, header);
  if (chance(g, 30)) {
    loop->can_continue = 1;
    loop->next_label = draft_label(g->d);
  }
  statements(g, part(g, until, 70));
  if (loop->can_continue) {
    draft_place(g->d, loop->next_label);
    g->now = meet(&g->now, &loop->next);
  }
  EMIT(g, loop, ATLAS_NONE, atlas_reg(counter), atlas_label_ref(header));
  g->trips = outer;
  env last = g->now;
  close_loop(g, loop, &last, level);
}

int may_loop(const generator *g) { return g->loop_count < (g->in_callee ? 1 : 3) && g->trips <= 24; }

int open_rounds(generator *g, int wants_uniform, rounds *r) {
  atlas_operand limit;
  if (!may_loop(g)) return 0;
  *r = (rounds){.counter = reserve(g), .level = g->level, .outer = g->trips};
  if (r->counter == UINT32_MAX) return 0;
  int is_uniform = trip_count(g, ATLAS_u32, &r->trips, &limit) && can_collect(g) && wants_uniform;
  if (wants_uniform && !is_uniform) return 0;
  if (limit.kind == ATLAS_OPERAND_IMM) EMIT(g, movi, ATLAS_u32, atlas_reg(r->counter), limit);
  else EMIT(g, add, ATLAS_u32, atlas_reg(r->counter), limit, atlas_bits(1)), r->trips++;
  r->loop = open_loop(g, is_uniform);
  r->header = draft_label(g->d);
  g->trips *= r->trips;
  draft_place(g->d, r->header);
  return 1;
}

void close_rounds(generator *g, rounds *r) {
  EMIT(g, loop, ATLAS_NONE, atlas_reg(r->counter), atlas_label_ref(r->header));
  g->trips = r->outer;
  env last = g->now;
  close_loop(g, r->loop, &last, r->level);
}

/* while (i < n) { ...; i++; }: tested above the body, or below it with a jump over it. */
static void while_loop(generator *g, uint32_t until) {
  static const atlas_type types[] = {ATLAS_i32, ATLAS_u32, ATLAS_u8, ATLAS_i64, ATLAS_u64, ATLAS_i16};
  atlas_type type = types[below(g, 6)];
  uint32_t i = reserve(g), trips, outer = g->trips;
  atlas_operand limit;
  if (i == UINT32_MAX) return;
  atlas_operand p;
  if (!destination_predicate(g, &p)) return;
  int is_uniform = trip_count(g, type, &trips, &limit) && can_collect(g) && chance(g, 70), level = g->level,
      test_below = chance(g, 40);
  EMIT(g, movi, type, atlas_reg(i), atlas_bits(0));
  loop_scope *loop = open_loop(g, is_uniform);
  uint32_t head = draft_label(g->d), body = draft_label(g->d);
  g->trips *= trips + 1;
  if (test_below) branch(g, -1, 0, head);
  draft_place(g->d, test_below ? body : head);
  env top = g->now;
  if (!test_below) {
    emit_ops(g, ATLAS_OP_set_ge, type, 3, (atlas_operand[]){p, atlas_reg(i), limit});
    branch(g, (int)p.reg, 0, loop->exit_label);
    top = g->now;
  }
  loop->can_continue = 1;
  loop->next_label = draft_label(g->d);
  statements(g, part(g, until, 70));
  draft_place(g->d, loop->next_label);
  g->now = meet(&g->now, &loop->next);
  EMIT(g, add, type, atlas_reg(i), atlas_reg(i), atlas_bits(1));
  if (test_below) {
    draft_place(g->d, head);
    g->now = meet(&g->now, &top);
    for (int k = 0; k < PLACES; k++)
      if (top.type[k] == 0) g->now.type[k] = 0;
    emit_ops(g, ATLAS_OP_set_lt, type, 3, (atlas_operand[]){p, atlas_reg(i), limit});
    branch(g, (int)p.reg, 0, body);
    top = g->now;
  } else {
    branch(g, -1, 0, head);
  }
  g->trips = outer;
  close_loop(g, loop, &top, level);
}

/* Around and around: only the step limit ends it. */
static void endless_loop(generator *g) {
  if (!may_leave(g) || g->loop_count > 0 || g->level == LANE || chance(g, 80)) return;
  uint32_t again = draft_label(g->d), after = draft_label(g->d);
  atlas_operand p;
  if (!destination_predicate(g, &p)) return;
  g->l->step_limit = 1 + below(g, 30);
  emit_ops(g, ATLAS_OP_set_ne, ATLAS_u64, 3, (atlas_operand[]){p, atlas_reg(ATLAS_REG_LANE), atlas_bits(below(g, 20))});
  branch(g, (int)p.reg, 0, after);
  env before = g->now;
  draft_place(g->d, again);
  if (chance(g, 50)) {
    int level = g->level;
    g->level = LANE;
    g->collectives = 0;
    loop_scope *loop = open_loop(g, 0);
    statements(g, count_of(g) + 1 + below(g, 3));
    g->loop_count--;
    draft_place(g->d, loop->exit_label);
    g->level = level;
  }
  branch(g, -1, 0, again);
  draft_place(g->d, after);
  g->collectives = 0;
  g->now = before;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static uint32_t window(uint32_t callee) { return FIRST_CALLEE + callee * CALLEE_REGISTERS; }

static void call_insn(generator *g) {
  uint32_t k = below(g, MAX_CALLEES);
  if (g->in_callee || !g->has_callee[k] || (g->callee_collects[k] && !can_collect(g))) return;
  atlas_operand a = source(g, ATLAS_f32), b = source(g, ATLAS_u32);
  EMIT(g, mov, ATLAS_f32, atlas_reg(window(k)), a);
  EMIT(g, mov, ATLAS_u32, atlas_reg(window(k) + 1), b);
  emit_ops(g, ATLAS_OP_call, ATLAS_NONE, 1, (atlas_operand[]){atlas_label_ref(g->callee_label[k])});
  for (uint32_t i = 0; i < PLACES; i++) {
    int written = (i >= window(k) && i < window(k) + CALLEE_REGISTERS) || i >= REGISTERS;
    if (!written && !(i >= FIRST_RESERVED && i < END_RESERVED && g->callee_end[k].type[i] != 0 && g->now.type[i] == 0))
      continue;
    if (i < REGISTERS) g->now.type[i] = i >= FIRST_RESERVED && i < END_RESERVED ? 0 : g->callee_end[k].type[i];
    g->now.level[i] = LANE;
  }
}

static void make_callee(generator *g, uint32_t k) {
  env before = g->now;
  memset(&g->now, 0, sizeof g->now);
  memset(&g->ret, 0, sizeof g->ret);
  g->now.reachable = 1;
  g->now.type[window(k)] = ATLAS_f32;
  g->now.type[window(k) + 1] = ATLAS_u32;
  for (uint32_t i = 0; i < g->lane_register_count; i++)
    g->now.type[g->lane_registers[i]] = before.type[g->lane_registers[i]];
  for (int i = 0; i < PLACES; i++) g->now.level[i] = LANE;
  g->in_callee = 1;
  g->callee_collects[k] = g->collectives = chance(g, 30);
  g->level = g->collectives ? BLOCK : LANE;
  g->first = window(k);
  g->end = g->first + CALLEE_REGISTERS;
  g->callee_label[k] = draft_label(g->d);
  g->has_callee[k] = 1;
  draft_place(g->d, g->callee_label[k]);
  statements(g, count_of(g) + 2 + below(g, 10));
  emit_ops(g, ATLAS_OP_ret, ATLAS_NONE, 0, NULL);
  g->callee_end[k] = meet(&g->now, &g->ret);
  for (uint32_t i = REGISTERS; i < PLACES; i++) g->callee_end[k].type[i] = 0;
  g->now = before;
  g->in_callee = 0;
  g->first = 0;
  g->end = g->main_end;
  g->collectives = 1;
  g->level = GRID;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void statement(generator *g, uint32_t until) {
  uint32_t kind = below(g, 100), left = until - count_of(g);
  if (has_shapes(g) && chance(g, 30)) {
    if (chance(g, 45)) shape_of_values(g);
    else shape_of_places(g);
    return;
  }
  if (left > 5 && kind < 9) if_else(g, until);
  else if (left > 5 && kind < 12 && may_loop(g)) counted_loop(g, until);
  else if (left > 5 && kind < 15 && may_loop(g)) while_loop(g, until);
  else if (kind < 17) call_insn(g);
  else if (kind < 18) lone_lane(g);
  else if (kind == 18 && chance(g, 40)) rare_trap(g);
  else if (kind == 19) endless_loop(g);
  else if (left > 5 && (kind == 21 || kind == 22)) tangle(g);
  else if (kind == 20 && g->level == GRID && g->loop_count == 0 && !g->in_callee && g->collectives)
    emit_ops(g, ATLAS_OP_phase_adv, ATLAS_u32, 1, (atlas_operand[]){atlas_bits(below(g, 1000))});
  else random_insn(g);
}

static void statements(generator *g, uint32_t until) {
  for (int idle = 0; g->now.reachable && count_of(g) < until && idle < 50; idle++) statement(g, until);
}

/* The lane number in registers of several types, which addresses use. */
static void make_lane_registers(generator *g) {
  static const atlas_type types[] = {ATLAS_u64, ATLAS_i64, ATLAS_u32, ATLAS_i32, ATLAS_u16, ATLAS_i16};
  for (uint32_t n = below(g, 4); n > 0; n--) {
    atlas_type type = types[below(g, 6)];
    uint32_t reg = reserve(g);
    emit_cvt(g, type, ATLAS_u64, atlas_reg(reg), atlas_reg(ATLAS_REG_LANE));
    g->lane_registers[g->lane_register_count++] = reg;
  }
}

/* What registers and predicates hold in the end, in out buffers of their types. */
static void store_all(generator *g) {
  for (uint32_t n = 0; n < 14; n++) {
    uint32_t place = n < RECENT ? g->recent[n] : below(g, g->end);
    atlas_type type = (atlas_type)g->now.type[place];
    int reg = g->now.type[place] != 0 && place < REGISTERS ? (int)place : -1;
    if (reg < 0) continue;
    uint16_t out = symbol_with_role(g, ROLE_OUT, type);
    if (out == UINT16_MAX) {
      uint32_t buffers = 0;
      for (uint32_t i = 0; i < g->d->symbol_count; i++) buffers += g->d->symbols[i].kind == ATLAS_SYMBOL_BUFFER;
      if (buffers >= ATLAS_MAX_BUFFERS) break;
      declare_planes(g, ROLE_OUT, type, ATLAS_OUT, 4);
      out = (uint16_t)(g->d->symbol_count - 1);
    }
    EMIT(g, stg, type, atlas_mem_lane(out, (int64_t)below(g, 4) * g->l->lane_count), atlas_reg((uint32_t)reg));
  }
  for (uint32_t p = 0; p < ATLAS_PREDICATES; p++) {
    uint16_t s = symbol_with_role(g, ROLE_ELEMENT, ATLAS_NONE);
    atlas_type type = (atlas_type)g->d->symbols[s].type;
    atlas_operand d;
    if (g->now.type[REGISTERS + p] == 0 || chance(g, 60) || atlas_kind(type) == ATLAS_KIND_STORAGE ||
        !destination(g, type, &d))
      continue;
    uint64_t if_true = rng_value(&g->r, type), if_false = rng_value(&g->r, type);
    EMIT(g, sel, type, d, atlas_pred(p), atlas_bits(if_true), atlas_bits(if_false));
    EMIT(g, stg, type, atlas_mem_lane(s, 0), d);
  }
}

static void choose_types(generator *g) {
  g->favourite_count = 2 + below(g, 4);
  for (uint32_t i = 0; i < g->favourite_count; i++)
    g->favourites[i] =
        chance(g, 40) ? (chance(g, 50) ? ATLAS_f32 : ATLAS_u32) : (atlas_type)(1 + below(g, ATLAS_TYPE_COUNT - 1));
}

void generate(uint64_t seed, uint32_t size, int generation, draft *d, test_launch *l) {
  generator *g = calloc(1, sizeof *g);
  if (g == NULL) abort();
  *d = (draft){0};
  *l = (test_launch){0};
  g->r = (rng){.state = seed, .generation = (uint8_t)generation};
  g->d = d;
  g->l = l;
  l->generation = (uint8_t)generation;
  g->now.reachable = 1;
  g->next_reserved = FIRST_RESERVED;
  g->end = g->main_end = 10 + below(g, 39);
  g->trips = 1;
  g->collectives = 1;
  choose_types(g);
  choose_shape(g);
  declare_all(g);
  make_lane_registers(g);
  if (chance(g, 20)) {
    uint32_t start = draft_label(d);
    branch(g, -1, 0, start);
    for (uint32_t k = 1 + below(g, MAX_CALLEES); k-- > 0;) make_callee(g, k);
    draft_place(d, start);
  }
  uint32_t end = size > 12 ? size - 8 : size;
  while (count_of(g) < end) statement(g, end);
  store_all(g);
  emit_ops(g, ATLAS_OP_exit, ATLAS_NONE, 0, NULL);
  shorten(g);
  bind_in_place(g);
  l->seed = rng_next(&g->r);
  free(g);
}

void generate_of_seed(uint64_t seed, uint32_t size, draft *d, test_launch *l) {
  rng r = {.state = seed * UINT64_C(0xd1342543de82ef95) + 1};
  if (size == 0) size = rng_chance(&r, 80) ? 10 + rng_below(&r, 50) : 60 + rng_below(&r, 91);
  generate(rng_next(&r), size, seed < SEEDS_OF_ALL_OPERATIONS ? WITH_CBRT : ALL_OPERATIONS, d, l);
}
