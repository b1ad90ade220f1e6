/* generate.c - random programs: declarations, launch shapes, control flow. Instructions: generate_insn.c. */
#include "generate.h"

#include "atlas/value.h"
#include "generator.h"

#include <stdio.h>
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

/* ---- declarations ------------------------------------------------------------------------------------------------ */

static uint16_t declare(generator *g, uint8_t kind, atlas_type type, uint8_t access, uint32_t count, enum role role) {
  static const char *const names[] = {"s", "in", "el", "pl", "out", "at", "sl", "hist", "pool", "tab", "c", "loc"};
  draft *d = g->d;
  if (d->symbol_count == DRAFT_SYMBOLS) return UINT16_MAX;
  uint16_t index = (uint16_t)d->symbol_count++;
  atlas_symbol *s = &d->symbols[index];
  *s = (atlas_symbol){.kind = kind, .type = (uint8_t)type, .access = access, .count = count};
  snprintf(s->name, sizeof s->name, "%s%u", names[role], index);
  g->role[index] = (uint8_t)role;
  return index;
}

static void declare_buffer(generator *g, enum role role, atlas_type type, uint8_t access, uint64_t elements) {
  uint16_t s = declare(g, ATLAS_SYMBOL_BUFFER, type, access, 0, role);
  if (s != UINT16_MAX) g->l->bytes[s] = elements * atlas_bytes(type);
}

static void declare_planes(generator *g, enum role role, atlas_type type, uint8_t access, uint32_t planes) {
  declare_buffer(g, role, type, access, (uint64_t)planes * g->l->lane_count);
  g->planes[g->d->symbol_count - 1] = planes;
}

static uint32_t mask_of(const char *kinds) {
  uint32_t mask = 0;
  for (uint32_t t = 1; t < ATLAS_TYPE_COUNT; t++) {
    int storage = atlas_kind((atlas_type)t) == ATLAS_KIND_STORAGE;
    int atomic = t == ATLAS_i32 || t == ATLAS_u32 || t == ATLAS_i64 || t == ATLAS_u64;
    if (kinds[0] == '*' || (kinds[0] == 'n' && !storage) || (kinds[0] == 'a' && atomic)) mask |= 1u << t;
  }
  return mask;
}

static void declare_table(generator *g) {
  uint32_t count = 1 + below(g, DRAFT_TABLE_ENTRIES);
  uint16_t s = declare(g, ATLAS_SYMBOL_TABLE, ATLAS_u8, chance(g, 70) ? ATLAS_INOUT : ATLAS_IN, count, ROLE_TABLE);
  g->table = (uint16_t)(s + 1);
  for (uint32_t k = 0; k < g->d->symbols[s].count; k++)
    g->l->entry_bytes[s][k] = chance(g, 10) ? UINT64_MAX : chance(g, 10) ? 20 : 8 * (uint64_t)g->l->lane_count;
}

static void declare_constants(generator *g) {
  atlas_type type = random_type(g, mask_of("n"));
  uint32_t count = 1 + below(g, 16), bytes = count * atlas_bytes(type);
  uint16_t s = declare(g, ATLAS_SYMBOL_CONST, type, ATLAS_IN, count, ROLE_CONST);
  g->d->symbols[s].const_offset = g->d->constant_bytes;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t value = rng_value(&g->r, type);
    uint8_t *at = g->d->constants + g->d->constant_bytes + i * atlas_bytes(type);
    uint8_t u8 = (uint8_t)value;
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value, size = atlas_bytes(type);
    memcpy(at,
           size == 1   ? (const void *)&u8
           : size == 2 ? (const void *)&u16
           : size == 4 ? (const void *)&u32
                       : &value,
           size);
  }
  g->d->constant_bytes += (bytes + 7) / 8 * 8;
}

static void declare_shared(generator *g) {
  const uint32_t *block = g->l->block;
  uint32_t lanes = g->l->lanes != 0 ? (g->d->block[0] != 0 ? g->d->block[0] : 256) : block[0] * block[1] * block[2];
  if (chance(g, 60)) {
    uint32_t unused = g->r.generation >= WITH_LEN && chance(g, 15) ? 4096 + below(g, 12000) : 0;
    atlas_type type = random_type(g, mask_of(chance(g, 20) ? "*" : "n"));
    uint16_t s = declare(g, ATLAS_SYMBOL_SHARED, type, ATLAS_INOUT, unused + lanes, ROLE_SLOTS);
    if (s != UINT16_MAX) g->planes[s] = unused;
  }
  if (chance(g, 30)) declare(g, ATLAS_SYMBOL_SHARED, random_type(g, mask_of("a")), ATLAS_INOUT, lanes, ROLE_SLOTS);
  if (chance(g, 40))
    declare(g, ATLAS_SYMBOL_SHARED, random_type(g, mask_of("a")), ATLAS_INOUT, 1 + lanes % 16, ROLE_HIST);
}

/* Now and then one that takes a good part of a lane's memory. */
static void declare_local(generator *g) {
  for (uint32_t n = 1 + below(g, 3); n > 0; n--) {
    uint32_t count = chance(g, 10) ? 1 + below(g, 130) : 1 + below(g, 9);
    declare(g, ATLAS_SYMBOL_LOCAL, random_type(g, mask_of(chance(g, 30) ? "*" : "n")), 0, count, ROLE_LOCAL);
  }
}

static atlas_op counting_op(generator *g) {
  static const atlas_op ops[] = {ATLAS_OP_atom_add, ATLAS_OP_atom_min, ATLAS_OP_atom_max,
                                 ATLAS_OP_atom_and, ATLAS_OP_atom_or,  ATLAS_OP_atom_xor};
  return ops[below(g, chance(g, 50) ? 1 : 6)];
}

static void declare_all(generator *g) {
  uint32_t lanes = g->l->lane_count;
  for (uint32_t n = 1 + below(g, 3); n > 0; n--)
    declare_buffer(g, ROLE_IN, random_type(g, mask_of(chance(g, 15) ? "*" : "n")), ATLAS_IN,
                   lanes < 4 ? 4 + lanes : lanes);
  for (uint32_t n = 1 + below(g, 3); n > 0; n--)
    declare_planes(g, ROLE_ELEMENT, random_type(g, mask_of(chance(g, 15) ? "*" : "n")), ATLAS_INOUT, 1);
  for (uint32_t n = below(g, 3); n > 0; n--)
    declare_planes(g, ROLE_PLANES, random_type(g, mask_of(chance(g, 15) ? "*" : "n")), ATLAS_INOUT, n + 1);
  if (chance(g, 40)) declare_planes(g, ROLE_PLANES, random_type(g, mask_of("a")), ATLAS_INOUT, 2);
  if (chance(g, 30)) declare_buffer(g, ROLE_ATOMIC, random_type(g, mask_of("a")), ATLAS_INOUT, 1 + lanes % 16);
  for (uint32_t n = below(g, 4); n > 0; n--)
    declare(g, ATLAS_SYMBOL_SCALAR, random_type(g, mask_of("n")), 0, 0, ROLE_NONE);
  for (uint32_t n = below(g, 3); n > 0; n--) declare_constants(g);
  if (chance(g, 12)) declare_table(g);
  if (chance(g, 50)) declare_shared(g);
  if (chance(g, 15)) {
    uint16_t pool = declare(g, ATLAS_SYMBOL_POOL, ATLAS_u8, ATLAS_INOUT, 0, ROLE_POOL);
    g->l->bytes[pool] = below(g, 3) * 8192;
    g->l->bytes[pool] += below(g, 5000);
  }
  if (g->r.generation >= WITH_LOCAL_ARRAYS && chance(g, 35)) declare_local(g);
  for (uint32_t i = 0; i < g->d->symbol_count; i++) g->hist_op[i] = (uint16_t)counting_op(g);
  g->l->uses_boundary = chance(g, 6);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static void choose_shape(generator *g) {
  static const uint32_t few[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64};
  test_launch *l = g->l;
  uint32_t lanes = chance(g, 4) ? 200 + below(g, 100) : few[below(g, chance(g, 20) ? 13 : 10)];
  if (chance(g, 40)) {
    l->lanes = l->lane_count = lanes;
    if (chance(g, 50)) g->d->block[0] = 1 + below(g, lanes < 40 ? 40 : 256), g->d->block[1] = g->d->block[2] = 1;
  } else {
    for (int i = 0; i < 3; i++) l->grid[i] = l->block[i] = 1;
    for (int i = 0; i < 3; i++) { /* factors as far as the lanes last */
      uint32_t size = 1 + below(g, 9);
      if (lanes / size == 0) break;
      l->block[i] = i == 0 && chance(g, 50) ? lanes : size;
      if (l->block[i] > 256) l->block[i] = 256;
      lanes /= l->block[i] < lanes ? l->block[i] : lanes;
      l->grid[i] = 1 + below(g, lanes < 4 ? lanes + 1 : 4);
      lanes /= l->grid[i] < lanes ? l->grid[i] : lanes;
      if (chance(g, 40)) break;
    }
    l->lane_count = 1;
    for (int i = 0; i < 3; i++) l->lane_count *= l->grid[i] * l->block[i];
    if (chance(g, 40)) memcpy(g->d->block, l->block, sizeof l->block);
  }
  l->step_limit = chance(g, 10) ? 1 + below(g, 40) : 5000;
  l->phase = below(g, ATLAS_PHASE_COUNT);
}

/* Buffers that are reached only as [x + lane] may be bound to one range. */
static void bind_in_place(generator *g) {
  const draft *d = g->d;
  uint8_t other[DRAFT_SYMBOLS] = {0};
  for (uint32_t i = 0; i < d->insn_count; i++) {
    const atlas_operand *o = atlas_address_of(&d->insns[i]);
    if (o == NULL || o->mode == ATLAS_ADDRESS_PHI) continue;
    if (o->mode != ATLAS_ADDRESS_INDEXED || o->reg != ATLAS_REG_LANE || o->bits != 0) other[o->symbol] = 1;
  }
  for (uint32_t i = 0; i < d->symbol_count; i++)
    for (uint32_t k = 0; k < i; k++)
      if (d->symbols[i].kind == ATLAS_SYMBOL_BUFFER && d->symbols[k].kind == ATLAS_SYMBOL_BUFFER && !other[i] &&
          !other[k] && g->l->bytes[i] == g->l->bytes[k] && !g->l->same_as[k] && chance(g, 50) &&
          atlas_bytes((atlas_type)d->symbols[i].type) == atlas_bytes((atlas_type)d->symbols[k].type))
        g->l->same_as[i] = k + 1;
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

static loop_scope *open_loop(generator *g, int is_uniform) {
  loop_scope *loop = &g->loops[g->loop_count++];
  if (!is_uniform) g->level = LANE;
  forget_levels(g);
  *loop = (loop_scope){.header = g->now, .exit_label = draft_label(g->d), .is_uniform = is_uniform};
  return loop;
}

static void close_loop(generator *g, loop_scope *loop, const env *last, int level) {
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
  int may_loop = g->loop_count < (g->in_callee ? 1 : 3) && g->trips <= 24;
  if (left > 5 && kind < 9) if_else(g, until);
  else if (left > 5 && kind < 12 && may_loop) counted_loop(g, until);
  else if (left > 5 && kind < 15 && may_loop) while_loop(g, until);
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
  bind_in_place(g);
  l->seed = rng_next(&g->r);
  free(g);
}
