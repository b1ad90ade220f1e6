/* shape_values.c - shapes of arithmetic: what becomes of NaNs, conversions, 64-bit division, dot products, lengths. */
#include "atlas/value.h"
#include "generator.h"

/* ---- what shapes end in ------------------------------------------------------------------------------------------ */

static void bitcast(generator *g, atlas_type to, atlas_type from, atlas_operand d, atlas_operand s) {
  atlas_insn insn = {.op = ATLAS_OP_bitcast, .type = (uint8_t)to, .type2 = (uint8_t)from, .operand_count = 2};
  insn.operand[0] = d;
  insn.operand[1] = s;
  emit(g, &insn);
}

/* Where a buffer of the type is, there; else converted to an integer, of which there is one always. */
void keep(generator *g, atlas_type type, uint32_t reg) {
  static const enum role roles[] = {ROLE_OUT, ROLE_PLANES, ROLE_ELEMENT};
  uint16_t s = symbol_with_role(g, roles[below(g, 3)], type);
  if (s == UINT16_MAX) s = symbol_with_role(g, ROLE_OUT, type);
  if (s != UINT16_MAX) {
    EMIT(g, stg, type, own_element(g, s), atlas_reg(reg));
    return;
  }
  atlas_operand d;
  if (atlas_kind(type) == ATLAS_KIND_FLOAT) {
    static const atlas_type bits[] = {[2] = ATLAS_u16, [4] = ATLAS_u32, [8] = ATLAS_u64};
    atlas_type as = bits[atlas_bytes(type)];
    if (!destination(g, as, &d)) return;
    bitcast(g, as, type, d, atlas_reg(reg));
    keep(g, as, d.reg);
  } else if (destination(g, atlas_bytes(type) == 8 ? ATLAS_u64 : ATLAS_u32, &d)) {
    atlas_type as = atlas_bytes(type) == 8 ? ATLAS_u64 : ATLAS_u32;
    emit_cvt(g, as, type, d, atlas_reg(reg));
    EMIT(g, stg, as, own_element(g, symbol_with_role(g, ROLE_OUT, as)), d);
  }
}

void accumulate(generator *g, atlas_type type, uint32_t sum, atlas_operand value) {
  static const atlas_op ops[] = {ATLAS_OP_add, ATLAS_OP_add, ATLAS_OP_mul, ATLAS_OP_min, ATLAS_OP_max, ATLAS_OP_sub};
  if (atlas_kind(type) == ATLAS_KIND_STORAGE) EMIT(g, mov, type, atlas_reg(sum), value);
  else emit_ops(g, ops[below(g, 6)], type, 3, (atlas_operand[]){atlas_reg(sum), atlas_reg(sum), value});
}

/* ---- NaNs -------------------------------------------------------------------------------------------------------- */

enum { FLOATS = 4, WORDS = 3 };

/* Registers that a few instructions and branches share: numbers, bits of them, and one for what is compared. */
typedef struct nans {
  atlas_type type, bits;
  atlas_operand f[FLOATS], u[WORDS], t, p;
  int in_loop, depth;
} nans;

static int distinct(generator *g, atlas_type type, atlas_operand *list, int count) {
  for (int i = 0; i < count; i++) {
    int is_new = 0;
    for (int attempt = 0; attempt < 20 && !is_new; attempt++) {
      if (!destination(g, type, &list[i])) return 0;
      is_new = 1;
      for (int k = 0; k < i; k++) is_new &= list[k].reg != list[i].reg;
    }
    if (!is_new) return 0;
  }
  return 1;
}

/* Numbers first: the bits' registers are taken after numbers are in theirs, so that none is both. */
static int take_registers(generator *g, nans *n) {
  static const atlas_type types[] = {ATLAS_f32, ATLAS_f32, ATLAS_f32, ATLAS_f64, ATLAS_f16, ATLAS_bf16};
  n->type = types[below(g, 6)];
  n->bits = n->type == ATLAS_f32 ? ATLAS_u32 : n->type == ATLAS_f64 ? ATLAS_u64 : ATLAS_u16;
  atlas_operand list[FLOATS + 1], words[WORDS];
  if (!distinct(g, n->type, list, FLOATS + 1) || !destination_predicate(g, &n->p)) return 0;
  if (!distinct(g, n->bits, words, WORDS)) return 0;
  for (int i = 0; i < WORDS; i++)
    for (int k = 0; k <= FLOATS; k++)
      if (words[i].reg == list[k].reg) return 0;
  memcpy(n->f, list, sizeof n->f);
  memcpy(n->u, words, sizeof n->u);
  n->t = list[FLOATS];
  return 1;
}

/* Nothing else writes them meanwhile. */
static void lock(generator *g, const nans *n, uint8_t locked) {
  for (int i = 0; i < FLOATS; i++) g->reserved[n->f[i].reg] = locked;
  for (int i = 0; i < WORDS; i++) g->reserved[n->u[i].reg] = locked;
  g->reserved[n->t.reg] = locked;
  g->reserved[REGISTERS + n->p.reg] = locked;
}

static atlas_operand any_float(generator *g, const nans *n) { return n->f[below(g, FLOATS)]; }
static atlas_operand any_word(generator *g, const nans *n) { return n->u[below(g, WORDS)]; }

/* A number that a bound is, or nearly none. */
static atlas_operand bound(generator *g, atlas_type type) {
  static const double numbers[] = {0, 0, -0.0, 1, -1, 64, -5, 700, 0.5};
  if (chance(g, 25)) return atlas_bits(rng_value(&g->r, type));
  return atlas_bits(atlas_round_f64(type, numbers[below(g, 9)]));
}

/* x, from a buffer where there is one of the type: NaNs with payloads. */
static void begin_floats(generator *g, const nans *n) {
  uint16_t in = symbol_with_role(g, ROLE_IN, n->type), own = symbol_with_role(g, ROLE_ELEMENT, n->type);
  for (int i = 0; i < FLOATS; i++) {
    if (in != UINT16_MAX && i < 2) EMIT(g, ldg, n->type, n->f[i], atlas_mem_lane(in, i == 0 ? 0 : below(g, 2)));
    else if (own != UINT16_MAX && i < 2) EMIT(g, ldg, n->type, n->f[i], atlas_mem_lane(own, 0));
    else if (i == 0) EMIT(g, movi, n->type, n->f[i], immediate(g, n->type));
    else {
      atlas_operand a = n->f[below(g, (uint32_t)i)], b = bound(g, n->type);
      emit_ops(g, chance(g, 50) ? ATLAS_OP_add : ATLAS_OP_mul, n->type, 3, (atlas_operand[]){n->f[i], a, b});
    }
  }
  bitcast(g, n->bits, n->type, n->u[0], n->f[below(g, FLOATS)]);
  EMIT(g, mov, n->bits, n->u[1], n->u[0]);
  EMIT(g, movi, n->bits, n->u[2], atlas_bits(below(g, 9)));
  EMIT(g, mov, n->type, n->t, n->f[0]);
}

static void arithmetic(generator *g, const nans *n, atlas_operand d) {
  static const atlas_op ops[] = {ATLAS_OP_add, ATLAS_OP_sub, ATLAS_OP_mul, ATLAS_OP_min, ATLAS_OP_max, ATLAS_OP_div};
  static const atlas_op single[] = {ATLAS_OP_sqrt, ATLAS_OP_floor, ATLAS_OP_relu,  ATLAS_OP_round,
                                    ATLAS_OP_sign, ATLAS_OP_recip, ATLAS_OP_rsqrt, ATLAS_OP_exp};
  atlas_operand a = any_float(g, n), b = chance(g, 30) ? bound(g, n->type) : any_float(g, n), c = any_float(g, n);
  uint32_t kind = below(g, 20);
  if (kind < 4) EMIT(g, mul, n->type, d, a, a);
  else if (kind < 5) EMIT(g, sub, n->type, d, a, a);
  else if (kind < 7) EMIT(g, fma, n->type, d, a, b, c);
  else if (kind < 9) emit_ops(g, single[below(g, chance(g, 80) ? 6 : 8)], n->type, 2, (atlas_operand[]){d, a});
  else emit_ops(g, ops[below(g, 6)], n->type, 3, (atlas_operand[]){d, a, b});
}

/* Bits are kept, but for the sign's. */
static void bit_operation(generator *g, const nans *n, atlas_operand d) {
  atlas_operand a = any_float(g, n), b = any_float(g, n);
  uint16_t in = symbol_with_role(g, ROLE_IN, n->type);
  switch (below(g, in != UINT16_MAX ? 6 : 5)) {
  case 0: EMIT(g, neg, n->type, d, a); break;
  case 1: EMIT(g, abs, n->type, d, a); break;
  case 2: EMIT(g, copysign, n->type, d, a, b); break;
  case 3: bitcast(g, n->type, n->bits, d, any_word(g, n)); break;
  case 4: EMIT(g, mov, n->type, d, a); break;
  default: EMIT(g, ldg, n->type, d, atlas_mem_lane(in, 0)); break;
  }
}

static void word_operation(generator *g, const nans *n) {
  static const atlas_op ops[] = {ATLAS_OP_add, ATLAS_OP_xor, ATLAS_OP_sub, ATLAS_OP_mul, ATLAS_OP_or, ATLAS_OP_and};
  atlas_operand d = any_word(g, n), a = any_word(g, n), b = any_word(g, n), k = atlas_bits(1 + below(g, 9));
  if (chance(g, 40)) bitcast(g, n->bits, n->type, d, any_float(g, n));
  else if (chance(g, 30))
    emit_ops(g, chance(g, 50) ? ATLAS_OP_shl : ATLAS_OP_shr, n->bits, 3, (atlas_operand[]){d, a, k});
  else {
    if (chance(g, 40)) b = k;
    emit_ops(g, ops[below(g, 6)], n->bits, 3, (atlas_operand[]){d, a, b});
  }
}

/* What is compared, in the one register for it or where it lies. */
static atlas_operand magnitude(generator *g, const nans *n) {
  atlas_operand a = any_float(g, n);
  switch (below(g, 7)) {
  case 0: EMIT(g, abs, n->type, n->t, a); break;
  case 1: EMIT(g, neg, n->type, n->t, a); break;
  case 2: EMIT(g, mul, n->type, n->t, a, a); break;
  case 3:
    EMIT(g, abs, n->type, n->t, a);
    EMIT(g, neg, n->type, n->t, n->t);
    break;
  case 4:
    EMIT(g, mul, n->type, n->t, a, a);
    EMIT(g, neg, n->type, n->t, n->t);
    break;
  case 5: EMIT(g, max, n->type, n->t, a, bound(g, n->type)); break;
  default: return a;
  }
  return n->t;
}

static void compare_with_constant(generator *g, const nans *n, atlas_operand p) {
  static const atlas_op ops[] = {ATLAS_OP_set_eq, ATLAS_OP_set_ne, ATLAS_OP_set_lt,  ATLAS_OP_set_le,
                                 ATLAS_OP_set_gt, ATLAS_OP_set_ge, ATLAS_OP_set_num, ATLAS_OP_set_nan};
  atlas_operand a = magnitude(g, n), b = bound(g, n->type);
  atlas_op op = ops[below(g, 8)];
  int turned = chance(g, 20);
  emit_ops(g, op, n->type, 3, (atlas_operand[]){p, turned ? b : a, turned ? a : b});
  mark(g, SHAPE_nan_compare);
}

static void condition(generator *g, const nans *n) {
  atlas_operand q;
  compare_with_constant(g, n, n->p);
  if (chance(g, 15)) EMIT(g, pnot, ATLAS_NONE, n->p, n->p);
  if (chance(g, 75) || !destination_predicate(g, &q) || q.reg == n->p.reg) return;
  compare_with_constant(g, n, q);
  static const atlas_op ops[] = {ATLAS_OP_pand, ATLAS_OP_por, ATLAS_OP_pxor};
  emit_ops(g, ops[below(g, 3)], ATLAS_NONE, 3, (atlas_operand[]){n->p, n->p, q});
}

static void nan_lines(generator *g, nans *n, uint32_t count);

/* The register that one side leaves arithmetic in and the other bits, or nothing: seen as bits where they have met. */
static void nan_branch(generator *g, nans *n) {
  side s;
  atlas_operand r = any_float(g, n);
  int first = chance(g, 50), is_seen = chance(g, 60);
  condition(g, n);
  if (chance(g, 40)) arithmetic(g, n, any_float(g, n));
  n->depth++;
  open_side(g, n->p.reg, chance(g, 50), &s);
  nan_lines(g, n, below(g, 4));
  if (first) arithmetic(g, n, r);
  else bit_operation(g, n, r);
  if (chance(g, 40)) keep(g, n->bits, any_word(g, n).reg);
  if (chance(g, 60)) {
    other_side(g, &s);
    nan_lines(g, n, below(g, 4));
    if (!first) arithmetic(g, n, r);
    else if (chance(g, 60)) bit_operation(g, n, r);
    if (chance(g, 20)) keep(g, n->bits, any_word(g, n).reg);
  }
  close_side(g, &s);
  n->depth--;
  mark(g, SHAPE_nan_branch);
  if (!is_seen) return;
  bitcast(g, n->bits, n->type, any_word(g, n), r);
  mark(g, n->in_loop ? SHAPE_nan_loop : SHAPE_nan_phi);
}

static void nan_line(generator *g, nans *n) {
  uint32_t kind = below(g, 20);
  if (kind < 6) arithmetic(g, n, any_float(g, n));
  else if (kind < 9) bit_operation(g, n, any_float(g, n));
  else if (kind < 14) word_operation(g, n);
  else if (kind < 16) {
    condition(g, n);
    atlas_operand d = any_float(g, n), a = any_float(g, n), b = any_float(g, n);
    EMIT(g, sel, n->type, d, n->p, a, b);
  } else if (n->depth < 3) nan_branch(g, n);
}

static void nan_lines(generator *g, nans *n, uint32_t count) {
  while (count-- > 0) nan_line(g, n);
}

static void nan_episode(generator *g) {
  nans n = {0};
  rounds r;
  if (!take_registers(g, &n)) return;
  begin_floats(g, &n);
  lock(g, &n, 1);
  n.in_loop = chance(g, 30) && open_rounds(g, 0, &r);
  nan_lines(g, &n, 1 + below(g, 4));
  nan_branch(g, &n);
  nan_lines(g, &n, below(g, 3));
  if (n.in_loop) close_rounds(g, &r);
  for (int i = 1; i < FLOATS + WORDS; i++) {
    if (chance(g, 40)) continue;
    if (i < FLOATS) bitcast(g, n.bits, n.type, n.u[1], n.f[i]);
    EMIT(g, mul, n.bits, n.u[0], n.u[0], atlas_bits(31));
    EMIT(g, add, n.bits, n.u[0], n.u[0], i < FLOATS ? n.u[1] : n.u[i - FLOATS]);
  }
  lock(g, &n, 0);
  keep(g, n.bits, n.u[0].reg);
}

/* ---- conversions ------------------------------------------------------------------------------------------------- */

static void narrow_chain(generator *g) {
  static const atlas_type narrow[] = {ATLAS_f16, ATLAS_bf16, ATLAS_f8e4m3, ATLAS_f8e5m2, ATLAS_f16, ATLAS_bf16};
  static const atlas_type wide[] = {ATLAS_f32, ATLAS_f32, ATLAS_f32, ATLAS_f64, ATLAS_i32,
                                    ATLAS_u64, ATLAS_i16, ATLAS_u8,  ATLAS_i64, ATLAS_bool};
  atlas_type from = chance(g, 60) ? wide[below(g, chance(g, 60) ? 4 : 10)] : narrow[below(g, 6)];
  atlas_operand a = register_source(g, from), d;
  if (a.kind != ATLAS_OPERAND_REG) return;
  for (uint32_t n = 1 + below(g, 4); n > 0; n--) {
    atlas_type to = chance(g, 60) ? narrow[below(g, 6)] : wide[below(g, chance(g, 60) ? 4 : 10)];
    if (!destination(g, to, &d)) return;
    emit_cvt(g, to, from, d, a);
    a = d;
    from = to;
    if (chance(g, 60)) keep(g, to, d.reg);
    if (g->now.type[a.reg] != from) return; /* what was kept went through its register */
    if (atlas_kind(from) != ATLAS_KIND_FLOAT || chance(g, 50) || !destination(g, from, &d)) continue;
    atlas_operand b = immediate(g, from);
    emit_ops(g, chance(g, 50) ? ATLAS_OP_mul : ATLAS_OP_add, from, 3, (atlas_operand[]){d, a, b});
    a = d;
  }
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

static atlas_operand divisor(generator *g, atlas_type type) {
  if (chance(g, 50)) return source(g, type);
  if (chance(g, 40)) return atlas_bits(3 + below(g, 1000));
  return atlas_bits(rng_value(&g->r, type));
}

/* q = a / b; r = a rem b; and what they give back together. */
static void wide_division(generator *g) {
  atlas_type type = chance(g, 50) ? ATLAS_u64 : ATLAS_i64;
  atlas_operand d[3], a = register_source(g, type), b;
  if (a.kind != ATLAS_OPERAND_REG) return;
  for (uint32_t n = 1 + below(g, 3); n > 0; n--) {
    static const atlas_op ops[] = {ATLAS_OP_div, ATLAS_OP_rem, ATLAS_OP_mulhi, ATLAS_OP_mulhi};
    b = divisor(g, type); /* may take a's register */
    if (!distinct(g, type, d, 2) || g->now.type[a.reg] != type) return;
    emit_ops(g, ops[below(g, 4)], type, 3, (atlas_operand[]){d[0], a, b});
    if (chance(g, 40) && (b.kind != ATLAS_OPERAND_REG || b.reg != d[0].reg)) {
      a = chance(g, 50) ? d[0] : b;
      emit_ops(g, ops[below(g, 4)], type, 3, (atlas_operand[]){d[1], a, b});
      EMIT(g, xor, type, d[0], d[0], d[1]);
    }
    if (chance(g, 60)) keep(g, type, d[0].reg);
    a = d[0];
  }
}

static void dot_products(generator *g) {
  static const atlas_op ops[] = {ATLAS_OP_dot4_ss, ATLAS_OP_dot4_uu, ATLAS_OP_dot4_us};
  atlas_type type = chance(g, 50) ? ATLAS_i32 : ATLAS_u32;
  atlas_op op = ops[below(g, 3)];
  atlas_operand sum, c = source(g, type);
  if (!destination(g, type, &sum)) return;
  EMIT(g, mov, type, sum, c);
  for (uint32_t n = 1 + below(g, 4); n > 0; n--) {
    int a = any_register(g, ATLAS_u32), b = any_register(g, ATLAS_u32);
    atlas_operand x = a >= 0 ? atlas_reg((uint32_t)a) : atlas_bits(rng_next(&g->r) & UINT32_MAX);
    atlas_operand y = b >= 0 && chance(g, 80) ? atlas_reg((uint32_t)b) : atlas_bits(rng_next(&g->r) & UINT32_MAX);
    emit_ops(g, chance(g, 80) ? op : ops[below(g, 3)], type, 4, (atlas_operand[]){sum, x, y, sum});
  }
  keep(g, type, sum.reg);
}

/* ---- lengths ----------------------------------------------------------------------------------------------------- */

/* if (lane + k < n) load there; or the element as far from the end as the lane is from the beginning. */
static void length(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_IN, ATLAS_NONE);
  uint32_t n = reserve(g), at = reserve(g);
  atlas_operand p, d;
  side guard;
  if (s == UINT16_MAX || n == UINT32_MAX || at == UINT32_MAX || !destination_predicate(g, &p)) return;
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  EMIT(g, len, ATLAS_u64, atlas_reg(n), atlas_buffer(s));
  if (chance(g, 30)) EMIT(g, sub, ATLAS_u64, atlas_reg(at), atlas_reg(n), atlas_reg(ATLAS_REG_LANE));
  else EMIT(g, mul, ATLAS_u64, atlas_reg(at), atlas_reg(ATLAS_REG_LANE), atlas_bits(1 + below(g, 4)));
  if (chance(g, 30)) keep(g, ATLAS_u64, n);
  if (chance(g, 30)) EMIT(g, rem, ATLAS_u64, atlas_reg(at), atlas_reg(at), atlas_reg(n));
  if (!destination(g, type, &d)) return;
  mark(g, SHAPE_len_bound);
  emit_ops(g, chance(g, 80) ? ATLAS_OP_set_lt : ATLAS_OP_set_le, ATLAS_u64, 3,
           (atlas_operand[]){p, atlas_reg(at), atlas_reg(n)});
  if (g->now.type[d.reg] != type) EMIT(g, ldg, type, d, atlas_mem_lane(s, 0));
  open_side(g, p.reg, 0, &guard);
  EMIT(g, ldg, type, d, atlas_mem_reg(s, at, chance(g, 70) ? 0 : (int64_t)below(g, 3) - 1));
  close_side(g, &guard);
  keep(g, type, d.reg);
}

/* The first index and by how much it grows: each lane on its own, six rounds at most; or a row's, by all lanes of a
 * block together. */
static int start_walk(generator *g, uint32_t elements, uint32_t i, atlas_operand *step) {
  enum { MOST_ROUNDS = 40 };
  uint32_t block = g->l->lanes != 0 ? g->d->block[0] : g->l->block[0] * g->l->block[1] * g->l->block[2];
  if (chance(g, 50) && block != 0 && elements / block < MOST_ROUNDS) {
    uint32_t size = reserve(g);
    if (size == UINT32_MAX) return 0;
    emit_cvt(g, ATLAS_u64, ATLAS_u32, atlas_reg(i), atlas_reg(ATLAS_REG_BLOCK_LANE));
    if (chance(g, 50) && (g->l->lanes != 0 || g->l->block[0] == block))
      emit_cvt(g, ATLAS_u64, ATLAS_u32, atlas_reg(size), atlas_reg(ATLAS_REG_BLOCK_SIZE));
    else EMIT(g, movi, ATLAS_u64, atlas_reg(size), atlas_bits(block));
    *step = atlas_reg(size);
    return 1;
  }
  *step = atlas_bits(elements / (1 + below(g, 6)) + 1);
  EMIT(g, mul, ATLAS_u64, atlas_reg(i), atlas_reg(ATLAS_REG_LANE), atlas_bits(1 + below(g, 3)));
  return 1;
}

/* for (i = ...; i < n; i += step) */
static void length_loop(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_IN, ATLAS_NONE);
  atlas_operand p, v;
  if (!may_loop(g) || s == UINT16_MAX || !destination_predicate(g, &p)) return;
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  uint32_t i = reserve(g), n = reserve(g), sum = reserve(g), again = draft_label(g->d);
  atlas_operand step;
  int level = g->level;
  if (i == UINT32_MAX || n == UINT32_MAX || sum == UINT32_MAX || !destination(g, type, &v)) return;
  if (!start_walk(g, (uint32_t)(g->l->bytes[s] / atlas_bytes(type)), i, &step)) return;
  EMIT(g, len, ATLAS_u64, atlas_reg(n), atlas_buffer(s));
  EMIT(g, ldg, type, atlas_reg(sum), atlas_mem(s, 0));
  loop_scope *loop = open_loop(g, 0);
  draft_place(g->d, again);
  emit_ops(g, ATLAS_OP_set_ge, ATLAS_u64, 3, (atlas_operand[]){p, atlas_reg(i), atlas_reg(n)});
  branch(g, (int)p.reg, 0, loop->exit_label);
  env top = g->now;
  EMIT(g, ldg, type, v, atlas_mem_reg(s, i, chance(g, 80) ? 0 : 1));
  accumulate(g, type, sum, v);
  EMIT(g, add, ATLAS_u64, atlas_reg(i), atlas_reg(i), step);
  branch(g, -1, 0, again);
  close_loop(g, loop, &top, level);
  keep(g, type, sum);
  mark(g, SHAPE_len_bound);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

void shape_of_values(generator *g) {
  static void (*const shapes[])(generator *) = {nan_episode,  nan_episode,   nan_episode, narrow_chain,
                                                wide_division, dot_products, length,      length_loop};
  shapes[below(g, sizeof shapes / sizeof *shapes)](g);
}
