/* vector_interp.c - vector code on rows of 64-bit values, one tile at a time; a tile is a block.
 *
 * What the code may not look at is spoilt on purpose: an instruction without VECTOR_KEEP writes rubbish into the lanes
 * outside its mask, an arithmetic NaN gets a payload of its own until VECTOR_CANON, and registers are spoilt where
 * their lifetime has not begun or is over. */
#include "vector_interp.h"

#include "atlas/arith.h"
#include "atlas/functions.h"
#include "atlas/machine.h"
#include "base/error.h"
#include "compiler/analysis/effects.h"
#include "compiler/ssa_interp.h"

typedef struct evaluator {
  machine m;
  atlas_program shadow; /* node i is instruction i: faults name instructions by nodes */
  const hg_vector *v;
  uint64_t *rows;       /* ATLAS_MAX_BLOCK_LANES a register */
  uint8_t *alive;       /* per lane of the tile */
  uint8_t *local;       /* the local arrays of each lane */
  uint32_t rubbish;
  uint64_t guard;       /* instructions left before it counts as endless */
  hg_status status;
} evaluator;

static uint64_t *row(const evaluator *e, uint32_t reg) { return e->rows + (size_t)reg * ATLAS_MAX_BLOCK_LANES; }

static uint64_t rubbish(evaluator *e, uint8_t type) {
  e->rubbish = e->rubbish * 1664525 + 1013904223;
  uint64_t bits = (uint64_t)e->rubbish << 32 | (e->rubbish >> 7);
  return type == SSA_PREDICATE ? bits >> 40 & 1 : bits & atlas_mask((atlas_type)type);
}

static int in_mask(const evaluator *e, uint32_t mask, uint32_t i) {
  if (!e->alive[i]) return 0;
  return mask == VECTOR_ALL || row(e, mask)[i] != 0;
}

static uint64_t source(const evaluator *e, uint32_t reg, uint32_t i) {
  atlas_type type;
  if (reg == VECTOR_ALL) return e->alive[i];
  const vector_reg *r = vector_reg_at(e->v, reg);
  switch (r->kind) {
  case VECTOR_CONSTANT: return r->bits;
  case VECTOR_SCALAR: return e->m.launch->arguments[r->bits].bits;
  case VECTOR_SPECIAL: return atlas_machine_register(&e->m, &e->m.lanes[i], (uint32_t)r->bits, &type);
  default: return row(e, reg)[i];
  }
}

/* An arithmetic NaN as some machine might make it. */
static uint64_t odd_nan(evaluator *e, uint8_t type, uint64_t bits) {
  if (type == SSA_PREDICATE || atlas_kind((atlas_type)type) != ATLAS_KIND_FLOAT) return bits;
  if (bits != atlas_canonical_nan((atlas_type)type)) return bits;
  uint64_t sign = (atlas_mask((atlas_type)type) >> 1) + 1;
  return bits | (rubbish(e, ATLAS_u8) & 7) | (rubbish(e, SSA_PREDICATE) ? sign : 0);
}

static uint64_t pure(evaluator *e, const vector_insn *insn, uint32_t i) {
  atlas_type type = (atlas_type)insn->type;
  const machine *m = &e->m;
  uint64_t s[3] = {0, 0, 0};
  for (int k = 0; k < 3; k++)
    if (insn->s[k] != VECTOR_NONE) s[k] = source(e, insn->s[k], i);
  switch (insn->op) {
  case ATLAS_OP_sreg: return atlas_machine_coordinate(m, &m->lanes[i], insn->bits) & atlas_mask(type);
  case ATLAS_OP_len: return atlas_machine_extent(m, insn->symbol);
  case ATLAS_OP_cls_get: return m->block_index % ATLAS_CLASS_COUNT;
  case ATLAS_OP_phase_get: return m->launch->phase;
  case ATLAS_OP_bitcast: return s[0];
  case ATLAS_OP_cvt:
    return odd_nan(e, insn->type, atlas_convert(type, (atlas_type)insn->type2, s[0]));
  case ATLAS_OP_sel: return s[0] ? s[1] : s[2];
  case ATLAS_OP_pand: return s[0] & s[1];
  case ATLAS_OP_por: return s[0] | s[1];
  case ATLAS_OP_pxor: return s[0] ^ s[1];
  case ATLAS_OP_pnot: return !s[0];
  default: break;
  }
  if (atlas_is_comparison(insn->op)) return (uint64_t)atlas_compare(insn->op, (atlas_type)insn->type2, s[0], s[1]);
  uint64_t result = atlas_arith(insn->op, type, s[0], s[1], s[2]);
  return atlas_op_lookup(insn->op)->flags & ATLAS_BITS ? result : odd_nan(e, insn->type, result);
}

static uint64_t library_constant(evaluator *e, const vector_insn *insn, uint32_t i) {
  const atlas_symbol *table = atlas_symbol_at(&atlas_functions, insn->symbol & ~(uint32_t)SSA_LIBRARY);
  int64_t index = (int64_t)insn->bits;
  int ok = 1;
  if (insn->mode == ATLAS_ADDRESS_INDEXED)
    index = atlas_index_sum((atlas_type)vector_reg_at(e->v, insn->s[0])->type, source(e, insn->s[0], i), index);
  uint64_t bits = atlas_constant_at(&atlas_functions, table, index, &ok);
  if (!ok) e->status = hg_fail(HG_INVALID_ARGUMENT, "a function reads past its table '%s'", table->name);
  return bits;
}

static void fill_window(evaluator *e, lane *l, const vector_insn *insn, uint32_t i) {
  for (uint32_t k = 0; k < 4; k++) {
    if (insn->s[k] == VECTOR_NONE) continue;
    l->r[k] = source(e, insn->s[k], i);
    l->type[k] = vector_reg_at(e->v, insn->s[k])->type;
  }
  l->predicates = (uint32_t)(l->r[0] & 1);
  l->node = insn->insn == SSA_NONE ? 0 : insn->insn;
}

static atlas_insn as_insn(const vector_insn *insn) {
  ssa_insn same = {.op = insn->op, .type = insn->type, .type2 = insn->type2, .mode = insn->mode,
                   .phi_registers = insn->phi_registers, .symbol = insn->symbol, .bits = insn->bits};
  return hg_ssa_as_insn(&same);
}

static void put(evaluator *e, const vector_insn *insn, uint32_t i, int takes_part, uint64_t value) {
  if (insn->d == VECTOR_NONE) return;
  if (takes_part) row(e, insn->d)[i] = value;
  else if (!(insn->flags & VECTOR_KEEP)) row(e, insn->d)[i] = rubbish(e, insn->type);
}

/* What the block does together; all lanes that are alive and in the mask. */
static void run_together(evaluator *e, const vector_insn *insn) {
  machine *m = &e->m;
  atlas_insn whole = as_insn(insn);
  for (uint32_t i = 0; i < m->lane_count; i++) {
    m->lanes[i].status = in_mask(e, insn->mask, i) ? LANE_WAITS : LANE_ENDED;
    fill_window(e, &m->lanes[i], insn, i);
  }
  atlas_machine_block(m, &whole);
  for (uint32_t i = 0; i < m->lane_count; i++) {
    const lane *l = &m->lanes[i];
    uint64_t value = insn->type == SSA_PREDICATE ? l->predicates >> 1 & 1 : l->r[HG_SSA_RESULT];
    put(e, insn, i, l->status == LANE_WAITS, value);
  }
}

static void run_each(evaluator *e, const vector_insn *insn) {
  machine *m = &e->m;
  ssa_insn kind = {.op = insn->op, .symbol = insn->symbol};
  int is_table = (insn->symbol & SSA_LIBRARY) != 0, is_pure = hg_is_pure(&kind);
  atlas_insn one = {0};
  if (!is_table && !is_pure) one = as_insn(insn);
  for (uint32_t i = 0; i < m->lane_count; i++) {
    lane *l = &m->lanes[i];
    int takes_part = in_mask(e, insn->mask, i);
    uint64_t value = 0;
    if (takes_part && is_table) value = library_constant(e, insn, i);
    else if (takes_part && is_pure) value = pure(e, insn, i);
    else if (takes_part) {
      fill_window(e, l, insn, i);
      value = hg_ssa_effect(m, l, &one);
    }
    put(e, insn, i, takes_part, value);
  }
}

static void end_lane(evaluator *e, const vector_insn *insn, uint32_t i, hg_fault fault) {
  e->m.lanes[i].node = insn->insn == SSA_NONE ? 0 : insn->insn;
  atlas_machine_fault(&e->m, &e->m.lanes[i], fault);
  e->alive[i] = 0;
}

static void count_steps(evaluator *e, const vector_insn *insn) {
  machine *m = &e->m;
  uint64_t limit = m->launch->step_limit;
  for (uint32_t i = 0; i < m->lane_count; i++) {
    int goes_on = in_mask(e, insn->mask, i);
    if (goes_on && m->lanes[i].steps-- == 0) {
      hg_fault fault = {.kind = HG_FAULT_STEP_LIMIT};
      fault.index = fault.extent = limit > INT64_MAX ? INT64_MAX : (int64_t)limit;
      end_lane(e, insn, i, fault);
      goes_on = 0;
    }
    row(e, insn->d)[i] = (uint64_t)goes_on;
  }
}

static uint64_t of_masks(uint16_t op, uint64_t a, uint64_t b) {
  switch (op) {
  case VECTOR_AND: return a & b;
  case VECTOR_ANDNOT: return a & !b;
  case VECTOR_OR: return a | b;
  default: return 0;
  }
}

static void run_mask_insn(evaluator *e, const vector_insn *insn) {
  for (uint32_t i = 0; i < e->m.lane_count; i++) {
    uint64_t a = insn->s[0] == VECTOR_NONE ? 0 : source(e, insn->s[0], i);
    uint64_t b = insn->s[1] == VECTOR_NONE ? 0 : source(e, insn->s[1], i);
    uint64_t value = e->alive[i] ? of_masks(insn->op, a, b) : 0;
    put(e, insn, i, insn->mask == VECTOR_ALL || in_mask(e, insn->mask, i), value);
  }
}

static void move(evaluator *e, const vector_insn *insn) {
  for (uint32_t i = 0; i < e->m.lane_count; i++)
    if (in_mask(e, insn->mask, i)) row(e, insn->d)[i] = source(e, insn->s[0], i);
}

static void make_canonical(evaluator *e, const vector_insn *insn) {
  for (uint32_t i = 0; i < e->m.lane_count; i++) {
    uint64_t a = source(e, insn->s[0], i);
    int is_nan = atlas_compare(ATLAS_OP_set_nan, (atlas_type)insn->type, a, a);
    put(e, insn, i, in_mask(e, insn->mask, i), is_nan ? atlas_canonical_nan((atlas_type)insn->type) : a);
  }
}

static void take_lesser_or_greater(evaluator *e, const vector_insn *insn) {
  uint16_t relation = insn->op == VECTOR_LESSER ? ATLAS_OP_set_lt : ATLAS_OP_set_gt;
  for (uint32_t i = 0; i < e->m.lane_count; i++) {
    uint64_t a = source(e, insn->s[0], i), b = source(e, insn->s[1], i);
    put(e, insn, i, in_mask(e, insn->mask, i), atlas_compare(relation, (atlas_type)insn->type, a, b) ? a : b);
  }
}

static int any(const evaluator *e, const vector_insn *insn) {
  int found = 0;
  for (uint32_t i = 0; i < e->m.lane_count; i++)
    found |= in_mask(e, insn->mask, i) && source(e, insn->s[0], i) != 0;
  return found;
}

static void trap(evaluator *e, const vector_insn *insn) {
  for (uint32_t i = 0; i < e->m.lane_count; i++)
    if (in_mask(e, insn->mask, i))
      end_lane(e, insn, i, (hg_fault){.kind = HG_FAULT_TRAP, .code = (uint32_t)insn->bits});
}

/* The instruction to go on with. */
static uint32_t step(evaluator *e, uint32_t at) {
  const vector_insn *insn = vector_insn_at(e->v, at);
  switch (insn->op) {
  case VECTOR_LABEL: break;
  case VECTOR_MOVE: move(e, insn); break;
  case VECTOR_CLEAR:
  case VECTOR_AND:
  case VECTOR_ANDNOT:
  case VECTOR_OR: run_mask_insn(e, insn); break;
  case VECTOR_CANON: make_canonical(e, insn); break;
  case VECTOR_LESSER:
  case VECTOR_GREATER: take_lesser_or_greater(e, insn); break;
  case VECTOR_JUMP: return insn->target;
  case VECTOR_JUMP_NONE: return any(e, insn) ? at + 1 : insn->target;
  case VECTOR_JUMP_ANY: return any(e, insn) ? insn->target : at + 1;
  case VECTOR_STEP: count_steps(e, insn); break;
  case VECTOR_TRAP: trap(e, insn); break;
  default:
    if (hg_is_block_op(insn->op)) run_together(e, insn);
    else run_each(e, insn);
    break;
  }
  return at + 1;
}

/* A register may share its place with others before and after its lifetime. */
static void spoil(evaluator *e, uint32_t at) {
  for (uint32_t r = 0; r < e->v->regs.count; r++) {
    const vector_reg *reg = vector_reg_at(e->v, r);
    if (reg->kind != VECTOR_VARIES || (at >= reg->first && at <= reg->last)) continue;
    for (uint32_t i = 0; i < e->m.lane_count; i++) row(e, r)[i] = rubbish(e, reg->type);
  }
}

static void run_block(evaluator *e) {
  atlas_machine_begin_block(&e->m);
  for (uint32_t i = 0; i < e->m.lane_count; i++) e->alive[i] = 1;
  for (uint32_t at = 0; vector_insn_at(e->v, at)->op != VECTOR_END && e->status == HG_OK;) {
    uint32_t next = step(e, at);
    if (next <= at || vector_insn_at(e->v, next)->op == VECTOR_LABEL) spoil(e, next);
    at = next;
    if (e->guard-- == 0) e->status = hg_fail(HG_INVALID_ARGUMENT, "vector code does not come to an end");
  }
}

static hg_status make_room(evaluator *e, const hg_allocator *a) {
  machine *m = &e->m;
  uint64_t lanes = ATLAS_MAX_BLOCK_LANES;
  m->lanes = hg_allocate(a, lanes, sizeof *m->lanes + (HG_SSA_WINDOW + 1) * sizeof(uint64_t) + HG_SSA_WINDOW + 2);
  m->shared = hg_allocate(a, m->shared_bytes + 1, 1);
  e->rows = hg_allocate(a, lanes * e->v->regs.count + 1, sizeof *e->rows);
  e->local = hg_allocate(a, lanes * m->local_bytes + 1, 1);
  e->shadow.nodes = (hg_array){.element_size = sizeof(atlas_node)};
  uint32_t insns = (uint32_t)e->shadow.insns.count;
  if (m->lanes == NULL || m->shared == NULL || e->rows == NULL || e->local == NULL ||
      hg_array_append(a, &e->shadow.nodes, NULL, insns) == NULL)
    return hg_fail_memory("running vector code", lanes * e->v->regs.count * sizeof *e->rows);
  for (uint32_t i = 0; i < insns; i++) ((atlas_node *)e->shadow.nodes.data)[i].insn = i;
  m->scratch = (uint64_t *)(void *)(m->lanes + lanes);
  uint64_t *windows = m->scratch + lanes;
  m->present = (uint8_t *)(windows + lanes * HG_SSA_WINDOW);
  e->alive = m->present + lanes;
  for (uint64_t i = 0; i < lanes; i++) {
    m->lanes[i].r = windows + i * HG_SSA_WINDOW;
    m->lanes[i].type = e->alive + lanes + i * HG_SSA_WINDOW;
    m->lanes[i].local = e->local + i * m->local_bytes;
  }
  return HG_OK;
}

hg_status vector_interpret(const hg_allocator *allocator, const atlas_program *program, const hg_vector *v,
                           atlas_launch *launch) {
  evaluator e = {.v = v, .rubbish = 12345, .guard = UINT64_C(20000000), .status = HG_OK, .shadow = *program};
  e.m.allocator = allocator;
  e.m.program = &e.shadow;
  e.m.launch = launch;
  atlas_machine_shape(&e.m);
  hg_status status = make_room(&e, allocator);
  for (machine *m = &e.m; status == HG_OK && e.status == HG_OK && m->block_index < m->block_count; m->block_index++)
    run_block(&e);
  hg_release(allocator, e.m.lanes);
  hg_release(allocator, e.m.shared);
  hg_release(allocator, e.rows);
  hg_release(allocator, e.local);
  hg_array_release(allocator, &e.shadow.nodes);
  return status == HG_OK ? e.status : status;
}
