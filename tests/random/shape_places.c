/* shape_places.c - shapes of memory: masked atomics, indices that leave their buffers, loops of blocks, local arrays
 * that counters fill. */
#include "atlas/value.h"
#include "generator.h"

static const atlas_type index_types[] = {ATLAS_u32, ATLAS_u32, ATLAS_i32, ATLAS_u64, ATLAS_i64};

static atlas_type type_of(const generator *g, uint16_t symbol) { return (atlas_type)g->d->symbols[symbol].type; }

/* A predicate that some lanes have and some have not; -1: none. */
static int divergent(generator *g) {
  static const atlas_op ops[] = {ATLAS_OP_set_eq, ATLAS_OP_set_ne, ATLAS_OP_set_lt, ATLAS_OP_set_ge};
  static const uint8_t masks[] = {1, 2, 3, 4, 7, 24, 32, 255};
  atlas_operand p, t;
  if (chance(g, 35)) {
    uint32_t any = any_predicate(g);
    return g->now.type[REGISTERS + any] != 0 ? (int)any : -1;
  }
  if (!destination(g, ATLAS_u64, &t) || !destination_predicate(g, &p)) return -1;
  uint32_t mask = masks[below(g, 8)], bound = below(g, mask + 2);
  emit_ops(g, ATLAS_OP_and, ATLAS_u64, 3, (atlas_operand[]){t, atlas_reg(ATLAS_REG_LANE), atlas_bits(mask)});
  emit_ops(g, ops[below(g, 4)], ATLAS_u64, 3, (atlas_operand[]){p, t, atlas_bits(bound)});
  return (int)p.reg;
}

/* The lane (or the lane in the block) times `scale` plus `first`, in a register that stays. */
static uint32_t lane_index(generator *g, atlas_type type, int in_block, uint32_t scale, uint32_t first) {
  uint32_t i = reserve(g);
  if (i == UINT32_MAX) return i;
  atlas_operand at = atlas_reg(i);
  if (in_block) emit_cvt(g, type, ATLAS_u32, at, atlas_reg(ATLAS_REG_BLOCK_LANE));
  else emit_cvt(g, type, ATLAS_u64, at, atlas_reg(ATLAS_REG_LANE));
  if (scale != 1) EMIT(g, mul, type, at, at, atlas_bits(scale));
  if (first != 0) EMIT(g, add, type, at, at, atlas_bits(first));
  return i;
}

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

/* An element that only this lane changes. */
static atlas_operand element_of_its_own(generator *g, uint16_t s) {
  if (g->role[s] == ROLE_SLOTS) return own_slot(g, s);
  if (g->role[s] != ROLE_SPREAD && g->role[s] != ROLE_FAR) return own_element(g, s);
  uint32_t i = lane_index(g, index_types[below(g, 5)], g->role[s] == ROLE_FAR, g->stride[s], g->planes[s]);
  if (i == UINT32_MAX) return (atlas_operand){0};
  return atlas_mem_reg(s, i, g->role[s] == ROLE_SPREAD ? below(g, g->stride[s]) : 0);
}

static void count_masked(generator *g, uint16_t s) {
  uint32_t elements = g->role[s] == ROLE_HIST ? g->d->symbols[s].count
                                              : (uint32_t)(g->l->bytes[s] / atlas_bytes(type_of(g, s)));
  atlas_op op = (atlas_op)g->hist_op[s];
  if (chance(g, 20)) count_up(g, s, atlas_mem(s, below(g, elements)));
  else count_up(g, s, atlas_mem_reg(s, index_register(g, elements), 0));
  if (op == ATLAS_OP_atom_exch || op == ATLAS_OP_atom_cas) mark(g, SHAPE_masked_exchange);
}

static void change_own(generator *g, uint16_t s) {
  static const atlas_op ops[] = {ATLAS_OP_atom_add, ATLAS_OP_atom_min, ATLAS_OP_atom_max,
                                 ATLAS_OP_atom_xor, ATLAS_OP_atom_or,  ATLAS_OP_atom_exch};
  atlas_type type = type_of(g, s);
  atlas_operand address = element_of_its_own(g, s), d = atlas_discard();
  if (address.kind == ATLAS_OPERAND_NONE) return;
  int a = any_register(g, type), b = any_register(g, type);
  atlas_operand x = a >= 0 ? atlas_reg((uint32_t)a) : immediate(g, type), y = atlas_bits(below(g, 30));
  if (b >= 0 && chance(g, 50)) y = atlas_reg((uint32_t)b);
  if (chance(g, 60) && !destination(g, type, &d)) return;
  if (chance(g, 40)) {
    emit_ops(g, ATLAS_OP_atom_cas, type, 4, (atlas_operand[]){d, address, x, y});
    mark(g, SHAPE_masked_exchange);
  } else emit_ops(g, ops[below(g, 6)], type, 3, (atlas_operand[]){d, address, x});
}

/* One atomic under a predicate, seldom two. */
static void masked_atomic(generator *g) {
  static const enum role roles[] = {ROLE_HIST, ROLE_HIST,  ROLE_ATOMIC, ROLE_ATOMIC, ROLE_SLOTS,
                                    ROLE_FAR,  ROLE_PLANES, ROLE_PLANES, ROLE_SPREAD};
  enum role role = roles[below(g, 9)];
  uint16_t s = symbol_with_role(g, role, ATLAS_NONE);
  side branch_side;
  if (s == UINT16_MAX || !is_atomic_type(g->d->symbols[s].type)) return;
  int p = divergent(g), shared = role == ROLE_HIST || role == ROLE_SLOTS || role == ROLE_FAR;
  if (p < 0) return;
  open_side(g, (uint32_t)p, chance(g, 50), &branch_side);
  for (uint32_t n = chance(g, 80) ? 1 : 2; n > 0; n--) {
    if (role == ROLE_HIST || role == ROLE_ATOMIC) count_masked(g, s);
    else change_own(g, s);
    if (chance(g, 20)) pure_insn(g);
  }
  close_side(g, &branch_side);
  mark(g, shared ? SHAPE_masked_shared_atomic : SHAPE_masked_global_atomic);
}

static void atomic_loop(generator *g) {
  rounds r;
  int is_uniform = can_collect(g) && chance(g, 50);
  if (!open_rounds(g, is_uniform, &r)) return;
  uint32_t before = g->d->insn_count;
  for (uint32_t n = 2 + below(g, 4); n > 0; n--) masked_atomic(g);
  if (g->d->insn_count > before + 4) mark(g, SHAPE_atomic_loop);
  if (can_collect(g) && chance(g, 50)) histogram(g);
  close_rounds(g, &r);
}

/* ---- indices that a loop carries --------------------------------------------------------------------------------- */

/* By how much it grows: often so that some lane leaves the buffer in the end. */
static atlas_operand step_of(generator *g, atlas_type type, int *is_zero) {
  uint32_t lanes = g->l->lane_count;
  uint16_t scalar = symbol_with_role(g, ROLE_NONE, type);
  *is_zero = 0;
  switch (below(g, 10)) {
  case 0: return atlas_bits((0 - (uint64_t)(1 + below(g, 3))) & atlas_mask(type));
  case 1: *is_zero = 1; return atlas_bits(0);
  case 2: return atlas_bits(UINT64_C(1) << 30);
  case 3: return scalar != UINT16_MAX && g->d->symbols[scalar].kind == ATLAS_SYMBOL_SCALAR ? atlas_scalar(scalar)
                                                                                          : atlas_bits(2);
  case 4:
  case 5: return atlas_bits(1 + below(g, 4));
  case 6: return atlas_bits(16u << below(g, 3));
  default: return atlas_bits(lanes);
  }
}

static int64_t beside_it(generator *g) { return chance(g, 60) ? 0 : (int64_t)below(g, 70) - 3; }

/* One load by the index, into what the loop adds up. */
static void load_at(generator *g, uint16_t s, uint32_t i, uint32_t sum) {
  atlas_type type = type_of(g, s);
  atlas_operand v;
  side masked;
  int p = chance(g, 30) ? divergent(g) : -1;
  if (p >= 0) open_side(g, (uint32_t)p, chance(g, 50), &masked);
  if (destination(g, type, &v)) {
    EMIT(g, ldg, type, v, atlas_mem_reg(s, i, beside_it(g)));
    accumulate(g, type, sum, v);
  }
  if (p >= 0) close_side(g, &masked);
}

static void advance(generator *g, atlas_type type, uint32_t i, atlas_operand step) {
  EMIT(g, add, type, atlas_reg(i), atlas_reg(i), step);
}

static uint32_t first_index(generator *g) {
  return chance(g, 60) ? 0 : chance(g, 70) ? below(g, 40) : 0xfffffff0u;
}

static void gather_loop(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_IN, ATLAS_NONE);
  atlas_type type = index_types[below(g, 5)];
  rounds r;
  int still;
  if (s == UINT16_MAX || !may_loop(g)) return;
  int in_block = chance(g, 30);
  uint32_t scale = 1 + below(g, 3), sum = reserve(g), i = lane_index(g, type, in_block, scale, first_index(g));
  if (sum == UINT32_MAX || i == UINT32_MAX) return;
  EMIT(g, ldg, type_of(g, s), atlas_reg(sum), atlas_mem(s, 0));
  atlas_operand step = step_of(g, type, &still);
  if (!open_rounds(g, 0, &r)) return;
  int at_start = chance(g, 20);
  if (at_start) advance(g, type, i, step);
  for (uint32_t n = 1 + below(g, 3); n > 0; n--) {
    load_at(g, s, i, sum);
    if (chance(g, 25)) random_insn(g);
    if (chance(g, 10)) advance(g, type, i, step);
  }
  if (!at_start) advance(g, type, i, step);
  close_rounds(g, &r);
  keep(g, type_of(g, s), sum);
  if (!still && r.trips > 1) mark(g, SHAPE_gather_loop);
}

/* Plane after plane, past the last one; or shared memory, of which the first round alone finds an element. */
static void scatter_loop(generator *g) {
  static const enum role roles[] = {ROLE_PLANES, ROLE_PLANES, ROLE_OUT, ROLE_SLOTS};
  uint16_t s = symbol_with_role(g, roles[below(g, 4)], ATLAS_NONE);
  atlas_type type = index_types[below(g, 5)];
  rounds r;
  if (s == UINT16_MAX || !may_loop(g)) return;
  int shared = g->role[s] == ROLE_SLOTS;
  uint32_t step = shared ? g->d->symbols[s].count : g->l->lane_count;
  uint32_t i = lane_index(g, type, shared, 1, shared ? g->planes[s] : step * below(g, g->planes[s]));
  uint32_t value = reserve(g);
  if (i == UINT32_MAX || value == UINT32_MAX) return;
  EMIT(g, mov, type_of(g, s), atlas_reg(value), register_source(g, type_of(g, s)));
  uint64_t by = (chance(g, 80) ? step : 0 - (uint64_t)step) & atlas_mask(type);
  if (!open_rounds(g, 0, &r)) return;
  int p = chance(g, 30) ? divergent(g) : -1;
  side masked;
  if (p >= 0) open_side(g, (uint32_t)p, 0, &masked);
  int64_t beside = chance(g, 80) ? 0 : (int64_t)step;
  emit_ops(g, shared ? ATLAS_OP_sts : ATLAS_OP_stg, type_of(g, s), 2,
           (atlas_operand[]){atlas_mem_reg(s, i, beside), atlas_reg(value)});
  if (p >= 0) close_side(g, &masked);
  if (chance(g, 50)) accumulate(g, type_of(g, s), value, atlas_reg(value));
  if (chance(g, 30)) random_insn(g);
  advance(g, type, i, atlas_bits(by));
  close_rounds(g, &r);
  if (r.trips > 1) mark(g, SHAPE_scatter_loop);
}

/* ---- indices that pass the end of their type --------------------------------------------------------------------- */

/* Zero that no analysis knows of, or a constant. */
static atlas_operand nothing(generator *g, atlas_type type, uint16_t buffer) {
  atlas_operand d;
  if (chance(g, 30) || !destination(g, ATLAS_u64, &d)) return atlas_bits(0);
  EMIT(g, len, ATLAS_u64, d, atlas_buffer(buffer));
  EMIT(g, shr, ATLAS_u64, d, d, atlas_bits(40));
  if (type != ATLAS_u64) emit_cvt(g, type, ATLAS_u64, d, d);
  return d;
}

/* The lane less edge_back, and less what is added in the address, from a power of two on: in bounds where nothing is
 * left of that. UINT32_MAX: no register is left. */
static uint32_t edge_index(generator *g, uint16_t buffer, int64_t added) {
  static const uint8_t powers[] = {31, 32, 63, 64};
  atlas_type type = index_types[below(g, 5)];
  uint32_t power = powers[below(g, 4)], i = lane_index(g, type, 0, 1, 0);
  uint64_t from = (power < 64 ? UINT64_C(1) << power : 0) - g->edge_back - (uint64_t)added;
  if (i == UINT32_MAX) return i;
  atlas_operand at = atlas_reg(i), zero = nothing(g, type, buffer);
  EMIT(g, add, type, at, at, zero);
  EMIT(g, add, type, at, at, atlas_bits(from & atlas_mask(type)));
  if (atlas_bytes(type) == 4 && chance(g, 40)) emit_cvt(g, type == ATLAS_u32 ? ATLAS_u64 : ATLAS_i64, type, at, at);
  return i;
}

static void edge(generator *g) {
  static const int64_t displacements[] = {0, 0, 0, 1, -1, 8, -8, 100};
  uint16_t s = symbol_with_role(g, ROLE_EDGE, ATLAS_NONE);
  if (s == UINT16_MAX) return;
  atlas_type type = type_of(g, s);
  int64_t added = displacements[below(g, 8)];
  uint32_t i = edge_index(g, s, added);
  if (i == UINT32_MAX) return;
  side masked;
  int p = chance(g, 30) ? divergent(g) : -1;
  if (p >= 0) open_side(g, (uint32_t)p, chance(g, 50), &masked);
  atlas_operand d, address = atlas_mem_reg(s, i, added), value = register_source(g, type);
  if (chance(g, 60)) EMIT(g, stg, type, address, value);
  if (is_atomic_type((uint8_t)type) && chance(g, 50)) EMIT(g, atom_add, type, atlas_discard(), address, value);
  if (chance(g, 70) && destination(g, type, &d)) {
    EMIT(g, ldg, type, d, address);
    keep(g, type, d.reg);
  }
  if (p >= 0) close_side(g, &masked);
  mark(g, SHAPE_edge);
}

/* ---- elements at a distance -------------------------------------------------------------------------------------- */

/* Loads and stores of a lane's few neighbouring elements; of f16 and bf16 two values at a time, rounded. */
static void spread(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_SPREAD, ATLAS_NONE);
  if (s == UINT16_MAX) return;
  atlas_type type = type_of(g, s);
  int is_half = type == ATLAS_f16 || type == ATLAS_bf16;
  uint32_t i = lane_index(g, index_types[below(g, 5)], 0, g->stride[s], g->planes[s]), stride = g->stride[s];
  atlas_operand d;
  if (i == UINT32_MAX) return;
  if (chance(g, 60) && destination(g, type, &d)) EMIT(g, ldg, type, d, atlas_mem_reg(s, i, below(g, stride)));
  uint32_t first = chance(g, 70) ? 0 : below(g, stride), stores = 0;
  for (uint32_t k = first; k < stride && (chance(g, 85) || k == first); k++, stores++) {
    int wide = is_half ? any_register(g, ATLAS_f32) : -1;
    if (wide >= 0 && destination(g, type, &d)) emit_cvt(g, type, ATLAS_f32, d, atlas_reg((uint32_t)wide));
    else d = register_source(g, type);
    EMIT(g, stg, type, atlas_mem_reg(s, i, k), d);
  }
  if (chance(g, 50) && destination(g, type, &d)) EMIT(g, ldg, type, d, atlas_mem_reg(s, i, below(g, stride)));
  mark(g, SHAPE_spread);
  if (is_half && stores > 1) mark(g, SHAPE_narrow_pair);
}

/* Own element, barrier, a neighbour's, barrier; or the own one alone, where lanes do not meet. */
static void far_exchange(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_FAR, ATLAS_NONE);
  atlas_operand d, index;
  if (s == UINT16_MAX) return;
  atlas_type type = type_of(g, s);
  atlas_operand value = register_source(g, type);
  uint32_t i = lane_index(g, index_types[below(g, 5)], 1, g->stride[s], g->planes[s]);
  if (i == UINT32_MAX || value.kind != ATLAS_OPERAND_REG) return;
  EMIT(g, sts, type, atlas_mem_reg(s, i, 0), value);
  int meets = can_collect(g);
  if (meets) barrier(g);
  uint32_t slots = (g->d->symbols[s].count - g->planes[s]) / g->stride[s];
  if (meets && destination(g, ATLAS_u32, &index)) {
    atlas_operand distance = atlas_bits(1 + below(g, 5));
    emit_ops(g, chance(g, 50) ? ATLAS_OP_add : ATLAS_OP_xor, ATLAS_u32, 3,
             (atlas_operand[]){index, atlas_reg(ATLAS_REG_BLOCK_LANE), distance});
    if (chance(g, 90)) EMIT(g, rem, ATLAS_u32, index, index, atlas_bits(slots));
    EMIT(g, mul, ATLAS_u32, index, index, atlas_bits(g->stride[s]));
    if (destination(g, type, &d) && d.reg != index.reg) {
      EMIT(g, lds, type, d, atlas_mem_reg(s, index.reg, g->planes[s]));
      keep(g, type, d.reg);
    }
  } else if (destination(g, type, &d)) {
    EMIT(g, lds, type, d, atlas_mem_reg(s, i, chance(g, 80) ? 0 : (int64_t)g->d->symbols[s].count));
    keep(g, type, d.reg);
  }
  if (meets) barrier(g);
  mark(g, SHAPE_large_shared);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static int lacks_lanes(const generator *g) {
  uint32_t block = g->d->block[0] != 0 ? g->d->block[0] : 256;
  return g->l->lanes != 0 && g->l->lanes % block != 0;
}

static void collectives_in_a_row(generator *g) {
  if (!can_collect(g)) return;
  for (uint32_t n = 2 + below(g, 5); n > 0; n--) {
    one_collective(g);
    if (chance(g, 15)) pure_insn(g);
  }
  mark(g, SHAPE_collectives_in_a_row);
  if (lacks_lanes(g)) mark(g, SHAPE_collectives_partial);
  if (g->may_have_left) mark(g, SHAPE_left_early);
}

static void meet_somehow(generator *g) {
  switch (below(g, 6)) {
  case 0: exchange(g); break;
  case 1: far_exchange(g); break;
  case 2: histogram(g); break;
  case 3: barrier(g); break;
  default: collectives_in_a_row(g); break;
  }
}

/* Some lanes end by a trap, now and then by the step limit; the others meet. */
static void leave_early(generator *g) {
  if (!can_collect(g) || (g->may_have_left && chance(g, 70))) return;
  rounds r;
  if (chance(g, 20) && open_rounds(g, 0, &r)) {
    if (chance(g, 50)) random_insn(g);
    close_rounds(g, &r);
    if (r.trips > 2) g->l->step_limit = 1 + below(g, 12), g->may_have_left = 1;
  } else {
    int p = divergent(g);
    if (p < 0) return;
    uint32_t after = draft_label(g->d);
    branch(g, p, chance(g, 50), after);
    env before = g->now;
    emit_ops(g, ATLAS_OP_trap, ATLAS_NONE, 1, (atlas_operand[]){atlas_bits(below(g, 100))});
    g->now = before;
    draft_place(g->d, after);
  }
  for (uint32_t n = 1 + below(g, 2); n > 0; n--) meet_somehow(g);
}

/* All lanes go around together: indices in steps, loads, a meeting, arithmetic. */
static void block_loop(generator *g) {
  enum { INDICES = 3 };
  uint16_t s = symbol_with_role(g, ROLE_IN, ATLAS_NONE);
  uint32_t index[INDICES], count = 1 + below(g, INDICES), sum = reserve(g);
  atlas_operand step[INDICES];
  atlas_type type = index_types[below(g, 5)];
  rounds r;
  int still;
  if (!can_collect(g) || s == UINT16_MAX || sum == UINT32_MAX) return;
  for (uint32_t k = 0; k < count; k++) {
    uint32_t scale = chance(g, 80) ? 1 : 2, first = chance(g, 50) ? 0 : 16 * below(g, 9);
    index[k] = lane_index(g, type, chance(g, 50), scale, first);
    if (index[k] == UINT32_MAX) return;
    step[k] = k > 0 && chance(g, 60) ? step[0] : step_of(g, type, &still);
  }
  EMIT(g, ldg, type_of(g, s), atlas_reg(sum), atlas_mem(s, 0));
  if (!open_rounds(g, 1, &r)) return;
  int early = chance(g, 30);
  for (uint32_t k = 0; k < count; k++) {
    load_at(g, s, index[k], sum);
    if (early) advance(g, type, index[k], step[k]);
  }
  meet_somehow(g);
  if (chance(g, 40)) random_insn(g);
  for (uint32_t k = 0; k < count && !early; k++)
    if (chance(g, 93)) advance(g, type, index[k], step[k]);
  close_rounds(g, &r);
  keep(g, type_of(g, s), sum);
  mark(g, SHAPE_block_loop);
}

/* ---- local arrays ------------------------------------------------------------------------------------------------ */

/* for (i = first; i < end (or the like); i += by) a[i + beside] = value; */
typedef struct fill {
  atlas_type type;
  int64_t first, end, by, beside;
  atlas_op relation;
  int tests_above;
} fill;

static int holds(atlas_op relation, int64_t a, int64_t b) {
  switch (relation) {
  case ATLAS_OP_set_lt: return a < b;
  case ATLAS_OP_set_le: return a <= b;
  case ATLAS_OP_set_ge: return a >= b;
  case ATLAS_OP_set_gt: return a > b;
  default: return a != b;
  }
}

/* How many rounds; 0: too many, or more than its type counts. `stored` gets bits of the elements. */
static uint32_t rounds_of(const fill *f, uint32_t count, uint64_t *stored) {
  enum { MOST = 24 };
  int64_t i = f->first;
  uint32_t n = 0;
  *stored = 0;
  for (;; n++, i += f->by) {
    if ((f->tests_above || n > 0) && !holds(f->relation, i, f->end)) return n;
    if (n == MOST || i > 100) return 0;
    if (i < 0 && atlas_kind(f->type) == ATLAS_KIND_UINT) return 0;
    int64_t at = i + f->beside;
    if (at >= 0 && at < count && at < 64) *stored |= UINT64_C(1) << at;
  }
}

static int choose_fill(generator *g, uint32_t count, fill *f, uint64_t *stored) {
  static const atlas_type types[] = {ATLAS_u32, ATLAS_i32, ATLAS_u8, ATLAS_u64, ATLAS_i16};
  static const atlas_op relations[] = {ATLAS_OP_set_lt, ATLAS_OP_set_lt, ATLAS_OP_set_ne,
                                       ATLAS_OP_set_le, ATLAS_OP_set_ge, ATLAS_OP_set_gt};
  for (int attempt = 0; attempt < 20; attempt++) {
    const int64_t c = count, firsts[] = {0, 0, 0, 0, 1, c - 1, c}, ends[] = {c, c, c, c, c - 1, c + 1, 0, 1};
    const int64_t steps[] = {1, 1, 1, 1, 2, -1, 3}, places[] = {0, 0, 0, 0, 1, -1};
    f->type = types[below(g, 5)];
    f->first = firsts[below(g, 7)];
    f->end = ends[below(g, 8)];
    f->by = steps[below(g, 7)];
    f->beside = places[below(g, 6)];
    f->relation = relations[below(g, 6)];
    f->tests_above = chance(g, 40);
    if (rounds_of(f, count, stored) > 0) return 1;
  }
  return 0;
}

/* 1 if every lane stores in every round. */
static int fill_array(generator *g, uint16_t s, const fill *f, uint32_t value) {
  uint32_t i = reserve(g), again = draft_label(g->d);
  atlas_operand p;
  side masked;
  int level = g->level, only_some = chance(g, 15) ? divergent(g) : -1;
  if (i == UINT32_MAX || !destination_predicate(g, &p) || (int)p.reg == only_some) return 0;
  g->reserved[REGISTERS + p.reg] = 1;
  EMIT(g, movi, f->type, atlas_reg(i), atlas_bits((uint64_t)f->first & atlas_mask(f->type)));
  loop_scope *loop = open_loop(g, 0);
  draft_place(g->d, again);
  env top = g->now;
  atlas_operand end = atlas_bits((uint64_t)f->end & atlas_mask(f->type));
  atlas_operand by = atlas_bits((uint64_t)f->by & atlas_mask(f->type));
  if (f->tests_above) {
    emit_ops(g, f->relation, f->type, 3, (atlas_operand[]){p, atlas_reg(i), end});
    branch(g, (int)p.reg, 1, loop->exit_label);
    top = g->now;
  }
  if (only_some >= 0) open_side(g, (uint32_t)only_some, 0, &masked);
  EMIT(g, stl, type_of(g, s), atlas_mem_reg(s, i, f->beside), atlas_reg(value));
  if (only_some >= 0) close_side(g, &masked);
  if (chance(g, 30)) accumulate(g, type_of(g, s), value, atlas_reg(value));
  EMIT(g, add, f->type, atlas_reg(i), atlas_reg(i), by);
  if (f->tests_above) branch(g, -1, 0, again);
  else {
    emit_ops(g, f->relation, f->type, 3, (atlas_operand[]){p, atlas_reg(i), end});
    branch(g, (int)p.reg, 0, again);
    top = g->now;
  }
  close_loop(g, loop, &top, level);
  g->reserved[REGISTERS + p.reg] = 0;
  return only_some < 0;
}

static void read_array(generator *g, uint16_t s, uint32_t sum) {
  uint32_t count = g->d->symbols[s].count;
  atlas_operand v;
  for (uint32_t k = 0; k < count && k < 12; k++) {
    if (chance(g, 20) || !destination(g, type_of(g, s), &v)) continue;
    EMIT(g, ldl, type_of(g, s), v, atlas_mem(s, k));
    accumulate(g, type_of(g, s), sum, v);
    if (atlas_kind(type_of(g, s)) == ATLAS_KIND_STORAGE) keep(g, type_of(g, s), v.reg);
  }
  uint32_t index = index_register(g, count);
  if (!destination(g, type_of(g, s), &v) || v.reg == index) return;
  EMIT(g, ldl, type_of(g, s), v, atlas_mem_reg(s, index, 0));
  keep(g, type_of(g, s), v.reg);
}

/* Filled by a loop or two, whole or not, in a side of a branch now and then; then read. */
static void local_filled(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_LOCAL, ATLAS_NONE);
  fill f;
  side half;
  uint64_t stored = 0, all = 0;
  uint32_t value = reserve(g), sum = reserve(g);
  if (s == UINT16_MAX || !may_loop(g) || sum == UINT32_MAX || value == UINT32_MAX) return;
  uint32_t count = g->d->symbols[s].count;
  int is_new = !g->stored[s], p = chance(g, 25) ? divergent(g) : -1, is_whole = p < 0;
  atlas_operand from = register_source(g, type_of(g, s));
  if (from.kind != ATLAS_OPERAND_REG || !choose_fill(g, count, &f, &stored)) return;
  EMIT(g, mov, type_of(g, s), atlas_reg(value), from);
  EMIT(g, mov, type_of(g, s), atlas_reg(sum), atlas_reg(value));
  if (p >= 0) open_side(g, (uint32_t)p, chance(g, 50), &half);
  is_whole &= fill_array(g, s, &f, value);
  all = stored;
  if (p >= 0 && chance(g, 50)) other_side(g, &half);
  if (chance(g, 30) && choose_fill(g, count, &f, &stored)) fill_array(g, s, &f, value), all |= stored;
  if (p >= 0) close_side(g, &half);
  read_array(g, s, sum);
  keep(g, type_of(g, s), sum);
  mark(g, SHAPE_local_filled);
  if (is_new && (!is_whole || (count < 64 && all != (UINT64_C(1) << count) - 1))) mark(g, SHAPE_local_zero);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

void shape_of_places(generator *g) {
  static void (*const shapes[])(generator *) = {
      masked_atomic, masked_atomic, atomic_loop, gather_loop, gather_loop,          scatter_loop, spread,       spread,
      far_exchange,  block_loop,    leave_early, collectives_in_a_row, local_filled, local_filled, edge};
  uint32_t count = sizeof shapes / sizeof *shapes;
  shapes[below(g, has_edges(g) ? count : count - 1)](g);
}
