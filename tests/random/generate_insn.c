/* generate_insn.c - random instructions: operands of the right type, addresses that no other lane writes. */
#include "generator.h"

#include "atlas/value.h"

/* ---- emitting ---------------------------------------------------------------------------------------------------- */

static int special_level(uint32_t reg) {
  return reg == ATLAS_REG_BLOCK_SIZE ? GRID : reg == ATLAS_REG_BLOCK_INDEX ? BLOCK : LANE;
}

static int coordinate_level(uint64_t coord) {
  if (coord <= ATLAS_COORD_LANE_Z || coord >= ATLAS_COORD_GLOBAL_X) return LANE;
  return coord <= ATLAS_COORD_BLOCK_Z ? BLOCK : GRID;
}

static int own_level(const generator *g, const atlas_insn *insn, uint32_t flags) {
  const atlas_operand *address = atlas_address_of(insn);
  if (flags & ATLAS_ATOMIC || insn->op == ATLAS_OP_scan_incl || insn->op == ATLAS_OP_scan_excl ||
      insn->op == ATLAS_OP_rank)
    return LANE;
  if (flags & ATLAS_LOAD && !(flags & ATLAS_SPACE_CONST)) {
    int read_only = address->mode != ATLAS_ADDRESS_PHI && g->d->symbols[address->symbol].access == ATLAS_IN;
    return read_only ? GRID : LANE;
  }
  if (insn->op == ATLAS_OP_sreg) return coordinate_level(insn->operand[1].bits);
  return insn->op == ATLAS_OP_cls_get || flags & ATLAS_BLOCK ? BLOCK : GRID;
}

static int is_narrow_float(uint8_t type) {
  return type == ATLAS_f16 || type == ATLAS_bf16 || type == ATLAS_f8e4m3 || type == ATLAS_f8e5m2;
}

/* Shapes that one instruction is. */
static void mark_insn(generator *g, const atlas_insn *insn) {
  int wide = insn->type == ATLAS_i64 || insn->type == ATLAS_u64;
  switch (insn->op) {
  case ATLAS_OP_dot4_ss:
  case ATLAS_OP_dot4_uu:
  case ATLAS_OP_dot4_us: mark(g, SHAPE_dot4); break;
  case ATLAS_OP_len: mark(g, SHAPE_len); break;
  case ATLAS_OP_div:
  case ATLAS_OP_rem:
    if (wide) mark(g, SHAPE_wide_divide);
    break;
  case ATLAS_OP_mulhi:
    if (wide) mark(g, SHAPE_wide_mulhi);
    break;
  case ATLAS_OP_cvt:
    if (is_narrow_float(insn->type) || is_narrow_float(insn->type2)) mark(g, SHAPE_narrow_convert);
    break;
  case ATLAS_OP_stl: g->stored[atlas_address_of(insn)->symbol] = 1; break;
  case ATLAS_OP_trap: g->may_have_left = 1; break;
  case ATLAS_OP_bar_sync:
    if (g->may_have_left) mark(g, SHAPE_left_early);
    break;
  default: break;
  }
}

void emit(generator *g, const atlas_insn *insn) {
  uint32_t flags = atlas_op_lookup(insn->op)->flags;
  atlas_effects e;
  atlas_effects_of(insn, &e);
  int level = own_level(g, insn, flags);
  for (unsigned i = 0; i < e.use_count && !(flags & ATLAS_BLOCK); i++) {
    int used = e.use[i].predicate                    ? g->now.level[REGISTERS + e.use[i].reg]
               : e.use[i].reg < ATLAS_GENERAL_REGISTERS ? g->now.level[e.use[i].reg]
                                                     : special_level(e.use[i].reg);
    if (used > level) level = used;
  }
  if (g->level > level) level = g->level;
  draft_append(g->d, insn);
  mark_insn(g, insn);
  if (e.defines == 0) return;
  uint32_t place = e.defines == 2 ? REGISTERS + (uint32_t)e.def_reg : e.def_reg;
  g->now.type[place] = e.defines == 2 ? IS_PREDICATE : e.def_type;
  g->now.level[place] = (uint8_t)level;
  if (e.defines == 1) g->recent[g->recent_count++ % RECENT] = (uint8_t)e.def_reg;
}

void emit_ops(generator *g, atlas_op op, atlas_type type, unsigned count, const atlas_operand *operands) {
  atlas_insn insn = {.op = (uint16_t)op, .type = (uint8_t)type, .operand_count = (uint8_t)count};
  for (unsigned i = 0; i < count; i++) insn.operand[i] = operands[i];
  emit(g, &insn);
}

void emit_cvt(generator *g, atlas_type to, atlas_type from, atlas_operand destination_operand,
              atlas_operand source_operand) {
  atlas_insn insn = {.op = ATLAS_OP_cvt, .type = (uint8_t)to, .type2 = (uint8_t)from, .operand_count = 2};
  insn.operand[0] = destination_operand;
  insn.operand[1] = source_operand;
  emit(g, &insn);
}

void branch(generator *g, int predicate, int negated, uint32_t label) {
  atlas_insn insn = {.op = ATLAS_OP_bra, .operand_count = 1, .operand = {{.kind = ATLAS_OPERAND_LABEL, .bits = label}}};
  if (predicate >= 0) insn.guard = (uint8_t)((negated ? 0x80 : 0) | (1 + predicate));
  emit(g, &insn);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

uint32_t reserve(generator *g) {
  if (g->next_reserved == END_RESERVED) return UINT32_MAX;
  g->reserved[g->next_reserved] = 1;
  return g->next_reserved++;
}

/* A loop's body must leave what its header relies on. */
static int may_hold(const generator *g, uint32_t place, uint8_t type) {
  if (g->reserved[place]) return 0;
  for (int i = 0; i < g->loop_count; i++)
    if (g->loops[i].header.type[place] != 0 && g->loops[i].header.type[place] != type) return 0;
  return 1;
}

int destination(generator *g, atlas_type type, atlas_operand *out) {
  for (int attempt = 0; attempt < 40; attempt++) {
    uint32_t reg = g->first + below(g, g->end - g->first);
    if (!may_hold(g, reg, (uint8_t)type)) continue;
    if (g->now.type[reg] != 0 && g->now.type[reg] != type && attempt < 4)
      continue; /* seldom a new type in an old register */
    *out = atlas_reg(reg);
    return 1;
  }
  return 0;
}

int destination_predicate(generator *g, atlas_operand *out) {
  for (int attempt = 0; attempt < 40; attempt++) {
    uint32_t p = below(g, ATLAS_PREDICATES);
    if (g->reserved[REGISTERS + p]) continue;
    *out = atlas_pred(p);
    return 1;
  }
  return 0;
}

int any_register(generator *g, atlas_type type) {
  int found = -1;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < 2 && g->recent_count > 0; i++) { /* what has just been computed wants to be used */
    uint8_t reg = g->recent[below(g, g->recent_count < RECENT ? g->recent_count : RECENT)];
    if (g->now.type[reg] == type) return reg;
  }
  for (uint32_t i = 0; i < REGISTERS; i++)
    if (g->now.type[i] == type && below(g, ++seen) == 0) found = (int)i;
  return found;
}

atlas_type random_type(generator *g, uint32_t mask) {
  for (int attempt = 0; attempt < 8; attempt++) {
    atlas_type type = g->favourites[below(g, g->favourite_count)];
    if (mask >> type & 1) return type;
  }
  for (;;) {
    atlas_type type = (atlas_type)(1 + below(g, ATLAS_TYPE_COUNT - 1));
    if (mask >> type & 1) return type;
  }
}

static int is_storage(atlas_type type) { return atlas_kind(type) == ATLAS_KIND_STORAGE; }

uint16_t symbol_with_role(generator *g, enum role role, atlas_type type) {
  uint16_t found = UINT16_MAX;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < g->d->symbol_count; i++)
    if (g->role[i] == role && (type == ATLAS_NONE || g->d->symbols[i].type == type) && below(g, ++seen) == 0)
      found = (uint16_t)i;
  return found;
}

/* There is one at least. */
static uint16_t symbol_of_kind(generator *g, uint8_t kind) {
  uint16_t found = 0;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < g->d->symbol_count; i++)
    if (g->d->symbols[i].kind == kind && below(g, ++seen) == 0) found = (uint16_t)i;
  return found;
}

static uint16_t scalar_of(generator *g, atlas_type type) {
  for (uint32_t i = 0; i < g->d->symbol_count; i++)
    if (g->d->symbols[i].kind == ATLAS_SYMBOL_SCALAR && g->d->symbols[i].type == type) return (uint16_t)i;
  return UINT16_MAX;
}

/* Often one that an identity is about. */
atlas_operand immediate(generator *g, atlas_type type) {
  static const double numbers[] = {0, -0.0, 1, -1, 2, 0.5};
  if (chance(g, 60)) return atlas_bits(rng_value(&g->r, type));
  if (atlas_kind(type) == ATLAS_KIND_FLOAT) return atlas_bits(atlas_round_f64(type, numbers[below(g, 6)]));
  return atlas_int_const(type, (int64_t)below(g, 5) - 1);
}

/* A value of a type that no register holds yet; a constant where even that fails. */
static int materialise(generator *g, atlas_type type, atlas_operand *out) {
  if (!destination(g, type, out)) return 0;
  uint16_t in = symbol_with_role(g, ROLE_IN, type);
  if (in != UINT16_MAX && chance(g, 70)) {
    EMIT(g, ldg, type, *out, atlas_mem_lane(in, 0));
  } else if (is_storage(type) || chance(g, 30)) {
    int from = any_register(g, ATLAS_f32);
    emit_cvt(g, type, ATLAS_f32, *out, from >= 0 ? atlas_reg((uint32_t)from) : immediate(g, ATLAS_f32));
  } else {
    EMIT(g, movi, type, *out, immediate(g, type));
  }
  return 1;
}

atlas_operand register_source(generator *g, atlas_type type) {
  int reg = any_register(g, type);
  atlas_operand made;
  if (reg >= 0) return atlas_reg((uint32_t)reg);
  if (materialise(g, type, &made)) return made;
  reg = any_register(g, type);
  return reg >= 0 ? atlas_reg((uint32_t)reg) : atlas_bits(0); /* a register too many: the verifier will say so */
}

atlas_operand source(generator *g, atlas_type type) {
  uint32_t kind = below(g, 100);
  uint16_t scalar = scalar_of(g, type);
  if (kind < 8 && scalar != UINT16_MAX) return atlas_scalar(scalar);
  if (is_storage(type)) return register_source(g, type);
  if (kind < 14 && type == ATLAS_u32) return atlas_reg(ATLAS_REG_BLOCK_LANE + below(g, 3));
  if (kind < 14 && type == ATLAS_u64) return atlas_reg(ATLAS_REG_LANE);
  if (kind < 32) return immediate(g, type);
  return register_source(g, type);
}

static atlas_op random_set(generator *g) {
  static const atlas_op ops[] = {ATLAS_OP_set_eq, ATLAS_OP_set_ne, ATLAS_OP_set_lt,
                                 ATLAS_OP_set_le, ATLAS_OP_set_gt, ATLAS_OP_set_ge};
  return ops[below(g, 6)];
}

/* One random draw an expression: C leaves the order of arguments open, and a seed must mean the same everywhere. */
static void compare(generator *g, atlas_type type, atlas_operand p, atlas_operand a, atlas_operand b) {
  emit_ops(g, random_set(g), type, 3, (atlas_operand[]){p, a, b});
}

uint32_t any_predicate(generator *g) {
  uint32_t seen = 0, found = 0;
  for (uint32_t i = 0; i < ATLAS_PREDICATES; i++)
    if (g->now.type[REGISTERS + i] != 0 && below(g, ++seen) == 0) found = i;
  if (seen > 0 && chance(g, 60)) return found;
  atlas_operand p;
  if (!destination_predicate(g, &p)) return found;
  atlas_type type = random_type(g, atlas_op_lookup(ATLAS_OP_set_lt)->types);
  atlas_operand a = register_source(g, type), b = source(g, type);
  compare(g, type, p, a, b);
  return p.reg;
}

uint32_t uniform_predicate(generator *g) {
  atlas_operand p, r;
  if (!destination_predicate(g, &p)) return 0;
  uint16_t scalar = symbol_with_role(g, ROLE_NONE, ATLAS_NONE), in = symbol_with_role(g, ROLE_IN, ATLAS_NONE);
  uint32_t kind = below(g, 5);
  if (kind == 0 && can_collect(g)) {
    uint32_t asked = any_predicate(g);
    emit_ops(g, chance(g, 50) ? ATLAS_OP_vote_any : ATLAS_OP_vote_all, ATLAS_NONE, 2,
             (atlas_operand[]){p, atlas_pred(asked)});
  } else if (kind == 1 && scalar != UINT16_MAX && g->d->symbols[scalar].kind == ATLAS_SYMBOL_SCALAR &&
             !is_storage((atlas_type)g->d->symbols[scalar].type)) {
    atlas_type type = (atlas_type)g->d->symbols[scalar].type;
    compare(g, type, p, atlas_scalar(scalar), immediate(g, type));
  } else if (kind == 2 && in != UINT16_MAX && !is_storage((atlas_type)g->d->symbols[in].type) &&
             destination(g, (atlas_type)g->d->symbols[in].type, &r)) {
    atlas_type type = (atlas_type)g->d->symbols[in].type;
    EMIT(g, ldg, type, r, atlas_mem(in, below(g, 4)));
    compare(g, type, p, r, immediate(g, type));
  } else {
    uint32_t reg = chance(g, 50) ? ATLAS_REG_BLOCK_INDEX : ATLAS_REG_BLOCK_SIZE;
    compare(g, ATLAS_u32, p, atlas_reg(reg), atlas_bits(below(g, 3)));
  }
  return p.reg;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* An element of a buffer that is this lane's own. */
atlas_operand own_element(generator *g, uint16_t symbol) {
  if (g->role[symbol] == ROLE_ELEMENT) return atlas_mem_lane(symbol, 0);
  if (g->last_used[symbol].kind != ATLAS_OPERAND_NONE && chance(g, 50)) return g->last_used[symbol];
  int64_t plane = below(g, g->planes[symbol]);
  if (chance(g, 2)) plane = g->planes[symbol] + below(g, 2) * 1000; /* past the end */
  int64_t displacement = plane * g->l->lane_count;
  uint32_t reg = g->lane_register_count > 0 && chance(g, 50) ? g->lane_registers[below(g, g->lane_register_count)]
                                                             : ATLAS_REG_LANE;
  return g->last_used[symbol] = atlas_mem_reg(symbol, reg, displacement);
}

/* The lane's element of shared memory, behind what no lane uses. */
atlas_operand own_slot(const generator *g, uint16_t symbol) {
  return atlas_mem_reg(symbol, ATLAS_REG_BLOCK_LANE, g->planes[symbol]);
}

/* An integer register, brought near the range of a table of `count` elements. */
uint32_t index_register(generator *g, uint32_t count) {
  static const atlas_type types[] = {ATLAS_i32, ATLAS_u32, ATLAS_u64, ATLAS_i64,
                                     ATLAS_u8,  ATLAS_i8,  ATLAS_u16, ATLAS_i16};
  atlas_type type = types[below(g, chance(g, 60) ? 3 : 8)];
  atlas_operand from = register_source(g, type), index;
  if (from.kind != ATLAS_OPERAND_REG) return ATLAS_REG_BLOCK_LANE;
  if (chance(g, 3)) return from.reg;
  if (!destination(g, type, &index)) return ATLAS_REG_BLOCK_LANE;
  uint32_t mask = 1;
  while (mask < count && mask < 64) mask *= 2;
  if (mask > count && mask > 1 && chance(g, 90)) mask /= 2;
  emit_ops(g, ATLAS_OP_and, type, 3, (atlas_operand[]){index, from, atlas_bits(mask - 1)});
  return index.reg;
}

/* An element by an index: as it is, a little beside, or by one that is less by so much as the displacement adds. */
static atlas_operand indexed(generator *g, uint16_t symbol, uint32_t index) {
  int64_t displacement = chance(g, 20) ? (int64_t)below(g, 3) - 1 : 0;
  atlas_operand less;
  if (index >= REGISTERS || chance(g, 80)) return atlas_mem_reg(symbol, index, displacement);
  atlas_type type = (atlas_type)g->now.type[index];
  if (!destination(g, type, &less)) return atlas_mem_reg(symbol, index, displacement);
  uint32_t by = 1 + below(g, 9);
  emit_ops(g, ATLAS_OP_sub, type, 3, (atlas_operand[]){less, atlas_reg(index), atlas_bits(by)});
  return atlas_mem_reg(symbol, less.reg, displacement + by);
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

int is_atomic_type(uint8_t type) {
  return type == ATLAS_i32 || type == ATLAS_u32 || type == ATLAS_i64 || type == ATLAS_u64;
}

static int shuffled_op(generator *g, uint32_t wanted, uint32_t unwanted, atlas_op *out) {
  for (int attempt = 0; attempt < 200; attempt++) {
    atlas_op op = rng_op(&g->r);
    uint32_t flags = atlas_op_lookup(op)->flags;
    if ((flags & wanted) != wanted || flags & unwanted) continue;
    *out = op;
    return 1;
  }
  return 0;
}

void pure_insn(generator *g) {
  atlas_op op;
  if (!shuffled_op(g, ATLAS_PURE, ATLAS_LOAD | (chance(g, 6) ? 0 : ATLAS_FUNC), &op)) return;
  if (op == ATLAS_OP_mov && chance(g, 50)) op = ATLAS_OP_sel;
  const atlas_op_info *info = atlas_op_lookup(op);
  atlas_insn insn = {.op = (uint16_t)op};
  insn.type = (uint8_t)(info->types != 0 ? random_type(g, info->types) : ATLAS_NONE);
  if (info->flags & ATLAS_SECOND) {
    uint32_t mask = info->types;
    for (uint32_t t = 1; t < ATLAS_TYPE_COUNT && op == ATLAS_OP_bitcast; t++)
      if (atlas_type_bits((atlas_type)t) != atlas_type_bits((atlas_type)insn.type)) mask &= ~(1u << t);
    insn.type2 = (uint8_t)random_type(g, mask);
  }
  for (const char *letter = info->operands; *letter != '\0'; letter++) {
    atlas_operand *o = &insn.operand[insn.operand_count++];
    switch (*letter) {
    case 's': *o = source(g, (atlas_type)insn.type); break;
    case 't': *o = source(g, (atlas_type)insn.type2); break;
    case 'c': *o = chance(g, 50) ? atlas_bits(below(g, 70)) : source(g, ATLAS_u32); break;
    case 'n': *o = immediate(g, (atlas_type)insn.type); break;
    case 'q': *o = atlas_pred(any_predicate(g)); break;
    case 'x': *o = atlas_coordinate((atlas_coord)below(g, ATLAS_COORD_COUNT)); break;
    case 'b': *o = atlas_buffer(symbol_of_kind(g, ATLAS_SYMBOL_BUFFER)); break;
    default: break;
    }
  }
  if (info->operands[0] == 'd' && !destination(g, (atlas_type)insn.type, &insn.operand[0])) return;
  if (info->operands[0] == 'p' && !destination_predicate(g, &insn.operand[0])) return;
  emit(g, &insn);
}

static void load_insn(generator *g) {
  static const enum role roles[] = {ROLE_IN, ROLE_IN, ROLE_ELEMENT, ROLE_PLANES, ROLE_PLANES, ROLE_CONST, ROLE_SLOTS};
  enum role role = roles[below(g, 7)];
  uint16_t s = symbol_with_role(g, role, ATLAS_NONE);
  if (s == UINT16_MAX) return;
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  atlas_operand address, d;
  uint32_t count = role == ROLE_CONST ? g->d->symbols[s].count : (uint32_t)(g->l->bytes[s] / atlas_bytes(type));
  if (role == ROLE_SLOTS) address = own_slot(g, s);
  else if (role != ROLE_IN && role != ROLE_CONST) address = own_element(g, s);
  else if (chance(g, 30)) address = atlas_mem(s, below(g, count));
  else if (role == ROLE_IN && chance(g, 40)) address = atlas_mem_lane(s, chance(g, 20) ? (int64_t)below(g, 3) - 1 : 0);
  else address = indexed(g, s, index_register(g, count));
  if (!destination(g, type, &d)) return;
  emit_ops(g,
           role == ROLE_CONST   ? ATLAS_OP_ldc
           : role == ROLE_SLOTS ? ATLAS_OP_lds
                                : ATLAS_OP_ldg,
           type, 2, (atlas_operand[]){d, address});
}

static void store_insn(generator *g) {
  static const enum role roles[] = {ROLE_ELEMENT, ROLE_PLANES, ROLE_OUT, ROLE_SLOTS};
  uint16_t s = symbol_with_role(g, roles[below(g, 4)], ATLAS_NONE);
  if (s == UINT16_MAX) return;
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  atlas_operand value = source(g, type);
  if (g->role[s] == ROLE_SLOTS) EMIT(g, sts, type, own_slot(g, s), value);
  else EMIT(g, stg, type, own_element(g, s), value);
}

static atlas_op random_atomic(generator *g) {
  static const atlas_op ops[] = {ATLAS_OP_atom_add, ATLAS_OP_atom_min, ATLAS_OP_atom_max,
                                 ATLAS_OP_atom_and, ATLAS_OP_atom_or,  ATLAS_OP_atom_xor};
  return ops[below(g, 6)];
}

/* What all exchange is one value a symbol. */
static void count_by(generator *g, uint16_t s, atlas_operand address, atlas_operand value) {
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  atlas_op op = (atlas_op)g->hist_op[s];
  atlas_operand one = atlas_bits(g->hist_value[s]);
  if (op == ATLAS_OP_atom_cas)
    EMIT(g, atom_cas, type, atlas_discard(), address, atlas_bits(g->hist_compare[s]), one);
  else emit_ops(g, op, type, 3, (atlas_operand[]){atlas_discard(), address, op == ATLAS_OP_atom_exch ? one : value});
}

void count_up(generator *g, uint16_t s, atlas_operand address) {
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  int reg = any_register(g, type); /* a new one might take the place of the index */
  count_by(g, s, address, reg >= 0 ? atlas_reg((uint32_t)reg) : immediate(g, type));
}

/* Shared counters: the one operation of their symbol, any element, no result. Own elements: anything. */
static void atomic_insn(generator *g) {
  uint16_t s = symbol_with_role(g, chance(g, 50) ? ROLE_ATOMIC : chance(g, 50) ? ROLE_PLANES : ROLE_SLOTS, ATLAS_NONE);
  if (s == UINT16_MAX || !is_atomic_type(g->d->symbols[s].type)) return;
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  if (g->role[s] == ROLE_ATOMIC) {
    uint32_t count = (uint32_t)(g->l->bytes[s] / atlas_bytes(type));
    atlas_operand address =
        chance(g, 30) ? atlas_mem(s, below(g, count)) : atlas_mem_reg(s, index_register(g, count), 0);
    atlas_operand value = source(g, type);
    count_by(g, s, address, value);
    return;
  }
  atlas_operand address = g->role[s] == ROLE_SLOTS ? own_slot(g, s) : own_element(g, s);
  atlas_operand a = source(g, type), b = source(g, type), d = atlas_discard();
  if (chance(g, 70) && !destination(g, type, &d)) return;
  if (chance(g, 15)) EMIT(g, atom_cas, type, d, address, a, b);
  else emit_ops(g, chance(g, 15) ? ATLAS_OP_atom_exch : random_atomic(g), type, 3, (atlas_operand[]){d, address, a});
}

static void apply_atomic(generator *g, atlas_type type, atlas_operand address) {
  atlas_operand value = source(g, type);
  emit_ops(g, random_atomic(g), type, 3, (atlas_operand[]){atlas_discard(), address, value});
}

/* Several accesses to one own element: what a load may take over from what came before. */
static void memory_episode(generator *g) {
  static const enum role roles[] = {ROLE_PLANES, ROLE_PLANES, ROLE_ELEMENT, ROLE_SLOTS};
  uint16_t s = symbol_with_role(g, roles[below(g, 4)], ATLAS_NONE);
  if (s == UINT16_MAX) return;
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  int shared = g->role[s] == ROLE_SLOTS;
  atlas_operand address = shared ? own_slot(g, s) : own_element(g, s), d;
  for (uint32_t n = 2 + below(g, 4); n > 0; n--) {
    uint32_t kind = below(g, 10);
    if (kind < 5 && destination(g, type, &d))
      emit_ops(g, shared ? ATLAS_OP_lds : ATLAS_OP_ldg, type, 2, (atlas_operand[]){d, address});
    else if (kind < 7 && is_atomic_type((uint8_t)type)) apply_atomic(g, type, address);
    else if (kind < 8) {
      atlas_operand value = source(g, type);
      emit_ops(g, shared ? ATLAS_OP_sts : ATLAS_OP_stg, type, 2, (atlas_operand[]){address, value});
    }
    else if (kind < 9) pure_insn(g);
  }
}

/* An element of a local array, by any index. */
static atlas_operand local_element(generator *g, uint16_t s) {
  uint32_t count = g->d->symbols[s].count;
  if (chance(g, 45)) return atlas_mem(s, below(g, count));
  if (chance(g, 5)) return atlas_mem_reg(s, chance(g, 50) ? ATLAS_REG_LANE : ATLAS_REG_BLOCK_LANE, 0);
  return indexed(g, s, index_register(g, count));
}

/* A few accesses to one local array, with arithmetic, and what orders other memory, between them. */
static void local_episode(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_LOCAL, ATLAS_NONE);
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  atlas_operand d;
  for (uint32_t n = 1 + below(g, 5); n > 0; n--) {
    uint32_t kind = below(g, 10);
    atlas_operand address = local_element(g, s);
    if (kind < 4 && destination(g, type, &d)) EMIT(g, ldl, type, d, address);
    else if (kind < 8) {
      int value = any_register(g, type); /* a new one might take the place of the index */
      if (value >= 0) EMIT(g, stl, type, address, atlas_reg((uint32_t)value));
      else if (atlas_kind(type) != ATLAS_KIND_STORAGE)
        EMIT(g, stl, type, address, atlas_bits(rng_value(&g->r, type)));
    } else if (kind < 9) pure_insn(g);
    else emit_ops(g, ATLAS_OP_mem_fence, ATLAS_NONE, 0, NULL);
  }
}

static void class_insn(generator *g) {
  atlas_operand a, b, d, p;
  int r = any_register(g, ATLAS_u32);
  if (r < 0 || !destination(g, ATLAS_u32, &d) || !destination_predicate(g, &p)) return;
  if (chance(g, 80)) {
    EMIT(g, rem, ATLAS_u32, d, atlas_reg((uint32_t)r), atlas_bits(chance(g, 90) ? 96 : 97));
    a = d;
  } else a = chance(g, 50) ? atlas_bits(below(g, 96)) : atlas_reg((uint32_t)r);
  switch (below(g, 8)) {
  case 0: EMIT(g, mirror, ATLAS_u32, d, a); break;
  case 1: EMIT(g, unity_test, ATLAS_u32, p, a); break;
  case 2: EMIT(g, nbr_count, ATLAS_u32, d, a); break;
  case 3: EMIT(g, nbr_get, ATLAS_u32, d, a, atlas_bits(below(g, chance(g, 90) ? 5 : 8))); break;
  case 4: b = source(g, ATLAS_i64); EMIT(g, res_accum, ATLAS_i64, a, b); break;
  case 5: EMIT(g, phase_get, ATLAS_u32, d); break;
  case 6: EMIT(g, cls_get, ATLAS_u32, d); break;
  default:
    b = chance(g, 50) ? atlas_bits(below(g, 256)) : source(g, ATLAS_u32);
    if (destination(g, ATLAS_u64, &d)) EMIT(g, bound_map, ATLAS_u64, d, a, atlas_bits(below(g, 48)), b);
    break;
  }
}

/* The lane's own eight bytes of a table entry: entry in a register, byte offset lane * 8. */
static void table_insn(generator *g) {
  if (g->table == 0 || g->in_callee) return;
  uint16_t s = (uint16_t)(g->table - 1);
  atlas_operand entry, offset, d;
  if (!destination(g, ATLAS_u32, &entry)) return;
  EMIT(g, movi, ATLAS_u32, entry, atlas_bits(below(g, g->d->symbols[s].count + (chance(g, 5) ? 1 : 0))));
  if (!destination(g, ATLAS_u64, &offset) || offset.reg == entry.reg) return;
  emit_ops(g, ATLAS_OP_mul, ATLAS_u64, 3, (atlas_operand[]){offset, atlas_reg(ATLAS_REG_LANE), atlas_bits(8)});
  atlas_type type = random_type(g, 0xfffeu);
  atlas_operand value = source(g, type); /* may have written the registers anew */
  if (g->now.type[entry.reg] != ATLAS_u32 || g->now.type[offset.reg] != ATLAS_u64 ||
      g->d->insns[g->d->insn_count - 1].op != ATLAS_OP_mul)
    return;
  if (chance(g, 50) && g->d->symbols[s].access == ATLAS_INOUT)
    EMIT(g, stg, type, atlas_mem_table(s, entry.reg, offset.reg), value);
  else if (destination(g, type, &d)) EMIT(g, ldg, type, d, atlas_mem_table(s, entry.reg, offset.reg));
}

/* Eight bytes of the boundary pool a lane: class lane mod 96, page by the lane's hundreds. */
static void boundary_insn(generator *g) {
  if (g->lane_register_count < 2 || !g->l->uses_boundary) return;
  atlas_operand c, page, d, address = {.kind = ATLAS_OPERAND_MEM, .mode = ATLAS_ADDRESS_PHI, .phi_registers = 3};
  if (!destination(g, ATLAS_u64, &c)) return;
  emit_ops(g, ATLAS_OP_rem, ATLAS_u64, 3, (atlas_operand[]){c, atlas_reg(ATLAS_REG_LANE), atlas_bits(96)});
  if (!destination(g, ATLAS_u64, &page) || page.reg == c.reg) return;
  emit_ops(g, ATLAS_OP_div, ATLAS_u64, 3, (atlas_operand[]){page, atlas_reg(ATLAS_REG_LANE), atlas_bits(96)});
  atlas_type type = random_type(g, 0xfffeu);
  address.reg = c.reg;
  address.reg2 = page.reg;
  address.bits = (uint64_t)(8 * below(g, 4)) << 32;
  int value = any_register(g, type);
  if (value >= 0 && value != c.reg && value != page.reg && chance(g, 50))
    EMIT(g, stg, type, address, atlas_reg((uint32_t)value));
  else if (destination(g, type, &d)) EMIT(g, ldg, type, d, address);
}

enum { POOL_REGION = 2048 }; /* eight bytes a lane of the largest block */

/* A region of the block's share; the lane's own eight bytes in it. */
static void pool_insn(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_POOL, ATLAS_NONE);
  if (s == UINT16_MAX || !can_collect(g) || g->loop_count > 0 || g->in_callee) return;
  uint32_t base = reserve(g), at = reserve(g);
  if (base == UINT32_MAX || at == UINT32_MAX) return;
  EMIT(g, pool_alloc, ATLAS_u64, atlas_reg(base), atlas_pool(s), atlas_bits(POOL_REGION));
  EMIT(g, mov, ATLAS_u32, atlas_reg(at), atlas_reg(ATLAS_REG_BLOCK_LANE));
  uint32_t own = reserve(g);
  if (own == UINT32_MAX) return;
  emit_cvt(g, ATLAS_u64, ATLAS_u32, atlas_reg(own), atlas_reg(at));
  EMIT(g, mad, ATLAS_u64, atlas_reg(own), atlas_reg(own), atlas_bits(8), atlas_reg(base));
  for (uint32_t n = 1 + below(g, 3); n > 0; n--) {
    static const atlas_type types[] = {ATLAS_u32, ATLAS_f32, ATLAS_f64,
                                       ATLAS_i64, ATLAS_i16, ATLAS_f16}; /* past a full pool: misaligned */
    atlas_type type = types[below(g, 6)];
    atlas_operand value = register_source(g, type), d;
    if (chance(g, 60)) EMIT(g, pool_store, type, atlas_mem_reg(s, own, 0), value);
    else if (destination(g, type, &d)) EMIT(g, pool_load, type, d, atlas_mem_reg(s, own, 0));
  }
  if (chance(g, 40)) EMIT(g, pool_free, ATLAS_u64, atlas_pool(s), atlas_reg(base));
}

void one_collective(generator *g) {
  static const atlas_op ops[] = {ATLAS_OP_reduce_add, ATLAS_OP_reduce_mul, ATLAS_OP_reduce_min,
                                 ATLAS_OP_reduce_max, ATLAS_OP_scan_incl,  ATLAS_OP_scan_excl};
  atlas_operand d;
  if (chance(g, 25)) {
    uint32_t p = any_predicate(g);
    if (destination_predicate(g, &d))
      emit_ops(g, chance(g, 50) ? ATLAS_OP_vote_any : ATLAS_OP_vote_all, ATLAS_NONE, 2,
               (atlas_operand[]){d, atlas_pred(p)});
    return;
  }
  atlas_op op = ops[below(g, 6)];
  atlas_type type = random_type(g, atlas_op_lookup(op)->types);
  atlas_operand a = source(g, type);
  if (destination(g, type, &d)) emit_ops(g, op, type, 2, (atlas_operand[]){d, a});
}

/* Counts in the lanes' own slots: it is a barrier. */
static void rank_insn(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_SLOTS, ATLAS_u32);
  uint32_t bits = 1 + below(g, 8), count = s == UINT16_MAX ? 0 : g->d->symbols[s].count;
  while (bits > 0 && 1u << bits > count) bits--;
  atlas_operand a = source(g, ATLAS_u32), d;
  if (bits == 0 || !destination(g, ATLAS_u32, &d)) return;
  EMIT(g, rank, ATLAS_u32, d, a, atlas_mem(s, below(g, count - (1u << bits) + 1)), atlas_bits(bits));
}

/* One, or several in a row: those of one kind may be done at once. */
static void collective_insn(generator *g) {
  if (g->r.generation >= WITH_RANK && chance(g, 25)) {
    rank_insn(g);
    return;
  }
  one_collective(g);
  while (g->r.generation >= WITH_COLLECTIVES_IN_A_ROW && chance(g, 65)) {
    if (chance(g, 25)) pure_insn(g);
    one_collective(g);
  }
}

void barrier(generator *g) { emit_ops(g, ATLAS_OP_bar_sync, ATLAS_NONE, 0, NULL); }

/* Own slot, barrier, a neighbour's slot, barrier. */
void exchange(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_SLOTS, ATLAS_NONE);
  atlas_operand index, d;
  if (s == UINT16_MAX || !destination(g, ATLAS_u32, &index)) return;
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  atlas_operand value = source(g, type);
  EMIT(g, sts, type, own_slot(g, s), value);
  barrier(g);
  atlas_operand distance = atlas_bits(1 + below(g, 5));
  emit_ops(g, chance(g, 50) ? ATLAS_OP_add : ATLAS_OP_xor, ATLAS_u32, 3,
           (atlas_operand[]){index, atlas_reg(ATLAS_REG_BLOCK_LANE), distance});
  uint32_t slots = g->d->symbols[s].count - g->planes[s];
  if (chance(g, 85)) emit_ops(g, ATLAS_OP_rem, ATLAS_u32, 3, (atlas_operand[]){index, index, atlas_bits(slots)});
  if (!destination(g, type, &d)) d = (atlas_operand){0};
  if (d.kind == ATLAS_OPERAND_REG) EMIT(g, lds, type, d, atlas_mem_reg(s, index.reg, g->planes[s]));
  barrier(g);
}

/* Shared counters: everyone adds, barrier, everyone reads, barrier. */
void histogram(generator *g) {
  uint16_t s = symbol_with_role(g, ROLE_HIST, ATLAS_NONE);
  if (s == UINT16_MAX) return;
  atlas_type type = (atlas_type)g->d->symbols[s].type;
  atlas_operand value = source(g, type), d;
  uint32_t index = index_register(g, g->d->symbols[s].count);
  count_by(g, s, atlas_mem_reg(s, index, 0), value);
  barrier(g);
  if (destination(g, type, &d)) EMIT(g, lds, type, d, atlas_mem(s, below(g, g->d->symbols[s].count)));
  barrier(g);
}

void random_insn(generator *g) {
  int has_local = g->r.generation >= WITH_LOCAL_ARRAYS && symbol_with_role(g, ROLE_LOCAL, ATLAS_NONE) != UINT16_MAX;
  if (has_local && chance(g, 12)) {
    local_episode(g);
    return;
  }
  uint32_t kind = below(g, 100);
  if (kind < 58) pure_insn(g);
  else if (kind < 60) memory_episode(g);
  else if (kind < 70) load_insn(g);
  else if (kind < 79) store_insn(g);
  else if (kind < 83) atomic_insn(g);
  else if (kind < 87) class_insn(g);
  else if (kind < 89) table_insn(g);
  else if (kind < 91) boundary_insn(g);
  else if (kind < 92) emit_ops(g, chance(g, 50) ? ATLAS_OP_mem_fence : ATLAS_OP_mem_fence_grid, ATLAS_NONE, 0, NULL);
  else if (!can_collect(g)) pure_insn(g);
  else if (kind < 95) collective_insn(g);
  else if (kind < 97) exchange(g);
  else if (kind < 98) histogram(g);
  else pool_insn(g);
}
