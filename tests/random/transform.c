/* transform.c - programs that are the same, or nearly. */
#include "transform.h"

#include "atlas/insn.h"
#include "compiler/analysis/aliasing.h"

#include <string.h>

const char *transform_name(transform_kind kind) {
  static const char *const names[] = {"registers renamed",    "names changed", "operands exchanged",
                                      "neighbours exchanged", "dead code",     "duplicates",
                                      "branches turned",      "blocks split",  "blocks moved",
                                      "detours"};
  return kind < TRANSFORM_COUNT ? names[kind] : "?";
}

/* ---- registers --------------------------------------------------------------------------------------------------- */

static void shuffle(rng *r, uint8_t *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) list[i] = (uint8_t)i;
  for (uint32_t i = count; i > 1; i--) {
    uint32_t k = rng_below(r, i);
    uint8_t kept = list[i - 1];
    list[i - 1] = list[k];
    list[k] = kept;
  }
}

static int rename_registers(rng *r, draft *d) {
  uint8_t general[256], predicates[ATLAS_PREDICATES];
  shuffle(r, general, ATLAS_GENERAL_REGISTERS);
  shuffle(r, predicates, ATLAS_PREDICATES);
  for (uint32_t reg = ATLAS_GENERAL_REGISTERS; reg < 256; reg++) general[reg] = (uint8_t)reg;
  for (uint32_t i = 0; i < d->insn_count; i++) {
    atlas_insn *insn = &d->insns[i];
    if (insn->guard != 0) insn->guard = (uint8_t)((insn->guard & 0x80) | (1 + predicates[(insn->guard & 0x7f) - 1]));
    for (unsigned k = 0; k < insn->operand_count; k++) {
      atlas_operand *o = &insn->operand[k];
      if (o->kind == ATLAS_OPERAND_PRED) o->reg = predicates[o->reg];
      if (o->kind != ATLAS_OPERAND_REG && o->kind != ATLAS_OPERAND_MEM) continue; /* unused fields do no harm */
      o->reg = general[o->reg];
      o->reg2 = general[o->reg2];
      o->reg3 = general[o->reg3];
    }
  }
  return 1;
}

/* A register that the program does not name; -1: none. */
static int unused(const draft *d, int predicate) {
  uint8_t used[256] = {0};
  for (uint32_t i = 0; i < d->insn_count; i++) {
    atlas_effects e;
    atlas_effects_of(&d->insns[i], &e);
    for (unsigned k = 0; k < e.use_count; k++)
      if (e.use[k].predicate == predicate) used[e.use[k].reg] = 1;
    if (e.defines == (predicate ? 2 : 1)) used[e.def_reg] = 1;
  }
  for (int reg = 0; reg < (predicate ? ATLAS_PREDICATES : ATLAS_GENERAL_REGISTERS); reg++)
    if (!used[reg]) return reg;
  return -1;
}

/* ---- operands and order ------------------------------------------------------------------------------------------ */

static int exchange_operands(rng *r, draft *d) {
  int any = 0;
  for (uint32_t i = 0; i < d->insn_count; i++) {
    atlas_insn *insn = &d->insns[i];
    int commutes =
        atlas_op_lookup(insn->op)->flags & ATLAS_COMMUTES || insn->op == ATLAS_OP_fma || insn->op == ATLAS_OP_mad;
    if (!commutes || rng_chance(r, 50)) continue;
    atlas_operand kept = insn->operand[1];
    insn->operand[1] = insn->operand[2];
    insn->operand[2] = kept;
    any = 1;
  }
  return any;
}

static int touches(const atlas_effects *reader, const atlas_effects *writer) {
  if (writer->defines == 0) return 0;
  for (unsigned i = 0; i < reader->use_count; i++)
    if (reader->use[i].predicate == (writer->defines == 2) && reader->use[i].reg == writer->def_reg) return 1;
  return reader->defines == writer->defines && reader->def_reg == writer->def_reg;
}

static int is_memory(uint32_t flags) { return (flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != 0; }

static uint32_t location(const draft *d, const atlas_insn *insn) {
  const atlas_operand *o = atlas_address_of(insn);
  return o->mode == ATLAS_ADDRESS_PHI ? d->symbol_count : o->symbol;
}

static int is_pool(const atlas_insn *insn) { return insn->op == ATLAS_OP_pool_alloc || insn->op == ATLAS_OP_pool_free; }

/* Memory that other lanes see, which is what barriers and fences order. */
static int is_ordered(uint32_t flags) { return is_memory(flags) && !(flags & ATLAS_SPACE_LOCAL); }

static int orders_memory(uint32_t op) {
  return op == ATLAS_OP_bar_sync || op == ATLAS_OP_rank || op == ATLAS_OP_mem_fence || op == ATLAS_OP_mem_fence_grid;
}

static int independent(const draft *d, const uint32_t *group, const atlas_insn *a, const atlas_insn *b) {
  uint32_t fa = atlas_op_lookup(a->op)->flags, fb = atlas_op_lookup(b->op)->flags;
  atlas_effects ea, eb;
  if ((fa | fb) & ATLAS_JUMP) return 0;
  atlas_effects_of(a, &ea);
  atlas_effects_of(b, &eb);
  if (touches(&ea, &eb) || touches(&eb, &ea)) return 0;
  if ((orders_memory(a->op) && (orders_memory(b->op) || is_ordered(fb))) || (orders_memory(b->op) && is_ordered(fa)))
    return 0;
  if (is_pool(a) && is_pool(b)) return 0;
  if (!is_memory(fa) || !is_memory(fb) || (fa & fb & ATLAS_LOAD)) return 1;
  return group[location(d, a)] != group[location(d, b)];
}

static int exchange_neighbours(rng *r, const atlas_program *program, draft *d) {
  const ssa_unit unclassified = {
      0}; /* buffers of one element size may all be one: what is left is surely independent */
  uint32_t group[DRAFT_SYMBOLS + 2];
  int any = 0;
  hg_alias_groups(program, &unclassified, group);
  for (uint32_t i = 0; i + 1 < d->insn_count; i++) {
    if (draft_is_target(d, i + 1) || rng_chance(r, 40) || !independent(d, group, &d->insns[i], &d->insns[i + 1]))
      continue;
    atlas_insn kept = d->insns[i];
    d->insns[i] = d->insns[i + 1];
    d->insns[i + 1] = kept;
    any = 1;
  }
  return any;
}

/* ---- more instructions ------------------------------------------------------------------------------------------- */

static int is_removable(const atlas_insn *insn) {
  uint32_t flags = atlas_op_lookup(insn->op)->flags;
  if (flags & (ATLAS_PURE | ATLAS_LOAD)) return 1;
  return flags & ATLAS_BLOCK && insn->operand_count == 2 && insn->op != ATLAS_OP_pool_free;
}

static int fresh_destination(const draft *d, atlas_insn *insn) {
  int predicate = insn->operand[0].kind == ATLAS_OPERAND_PRED;
  int reg = unused(d, predicate);
  if (reg < 0) return 0;
  insn->operand[0].reg = (uint8_t)reg;
  return 1;
}

static void vary(rng *r, atlas_insn *insn) {
  for (unsigned k = 1; k < insn->operand_count; k++)
    if (insn->operand[k].kind == ATLAS_OPERAND_IMM && rng_chance(r, 50)) insn->operand[k].bits ^= rng_below(r, 2);
}

static int insert_dead(rng *r, draft *d) {
  int any = 0;
  for (uint32_t i = 0; i < d->insn_count; i++) {
    atlas_insn copy = d->insns[i];
    if (rng_chance(r, 75) || !is_removable(&copy) || !fresh_destination(d, &copy)) continue;
    vary(r, &copy);
    draft_insert(d, rng_chance(r, 70) ? i : rng_below(r, i + 1), &copy);
    i++;
    any = 1;
  }
  return any;
}

/* d = op ... becomes fresh = op ...; d = fresh, or both are computed and the next instruction reads the other one. */
static int duplicate(rng *r, draft *d) {
  int any = 0;
  for (uint32_t i = 0; i < d->insn_count; i++) {
    atlas_insn copy = d->insns[i], *insn;
    if (!is_removable(&d->insns[i]) || rng_chance(r, 75) || !fresh_destination(d, &copy)) continue;
    draft_insert(d, i++, &copy);
    insn = &d->insns[i];
    any = 1;
    if (rng_chance(r, 50)) {
      int predicate = copy.operand[0].kind == ATLAS_OPERAND_PRED;
      atlas_insn move = {.op = predicate ? ATLAS_OP_por : ATLAS_OP_mov, .type = predicate ? ATLAS_NONE : insn->type};
      move.operand_count = predicate ? 3 : 2;
      move.operand[0] = insn->operand[0];
      move.operand[1] = move.operand[2] = copy.operand[0];
      if (!predicate) move.operand[2] = (atlas_operand){0};
      *insn = move;
    } else if (i + 1 < d->insn_count && !draft_is_target(d, i + 1)) {
      atlas_insn *next = &d->insns[i + 1];
      const char *letters = atlas_op_lookup(next->op)->operands;
      for (unsigned k = 0; k < next->operand_count; k++)
        if ((letters[k] == 's' || letters[k] == 'q' || letters[k] == 't') &&
            next->operand[k].kind == copy.operand[0].kind && next->operand[k].reg == insn->operand[0].reg &&
            rng_chance(r, 70))
          next->operand[k].reg = copy.operand[0].reg;
    }
  }
  return any;
}

static int turn_branches(rng *r, draft *d) {
  int any = 0, fresh = unused(d, 1);
  for (uint32_t i = 0; fresh >= 0 && i < d->insn_count; i++) {
    if (d->insns[i].op != ATLAS_OP_bra || d->insns[i].guard == 0 || rng_chance(r, 50)) continue;
    atlas_insn turned = {.op = ATLAS_OP_pnot, .operand_count = 2};
    turned.operand[0] = atlas_pred((uint32_t)fresh);
    turned.operand[1] = atlas_pred((d->insns[i].guard & 0x7fu) - 1);
    d->insns[i].guard = (uint8_t)(((d->insns[i].guard & 0x80) ^ 0x80) | (1 + fresh));
    draft_insert(d, i++, &turned);
    any = 1;
  }
  return any;
}

static int split_blocks(rng *r, draft *d) {
  int any = 0;
  for (uint32_t i = 0; i < d->insn_count; i++) {
    if (rng_chance(r, 85)) continue;
    uint32_t label = draft_label(d);
    atlas_insn jump = {.op = ATLAS_OP_bra, .operand_count = 1, .operand = {atlas_label_ref(label)}};
    draft_insert(d, i++, &jump);
    d->labels[label] = i;
    any = 1;
  }
  return any;
}

static int ends_block(const atlas_insn *insn) {
  return (atlas_op_lookup(insn->op)->flags & ATLAS_JUMP) != 0 && insn->op != ATLAS_OP_call;
}

static int goes_on(const atlas_insn *insn) {
  return !(atlas_op_lookup(insn->op)->flags & ATLAS_END) && !(insn->op == ATLAS_OP_bra && insn->guard == 0);
}

/* All blocks but the first in random order, with jumps where one went on to the next. */
static int move_blocks(rng *r, draft *d) {
  enum { MOST = 250 };
  uint32_t start[MOST + 1], label[MOST], count = 0;
  uint8_t order[MOST];
  for (uint32_t i = 0; i < d->insn_count; i++)
    if (i == 0 || draft_is_target(d, i) || ends_block(&d->insns[i - 1])) {
      if (count == MOST) return 0;
      start[count++] = i;
    }
  if (count < 3 || draft_is_target(d, d->insn_count)) return 0;
  start[count] = d->insn_count;
  draft moved;
  draft_copy(&moved, d);
  moved.insn_count = 0;
  for (uint32_t b = 0; b < count; b++) label[b] = draft_label(&moved);
  shuffle(r, order, count - 1);
  for (uint32_t k = 0; k < count; k++) {
    uint32_t b = k == 0 ? 0 : order[k - 1] + 1u;
    draft_place(&moved, label[b]);
    for (uint32_t l = 0; l < d->label_count; l++)
      if (d->labels[l] == start[b]) moved.labels[l] = moved.insn_count;
    for (uint32_t i = start[b]; i < start[b + 1]; i++) draft_append(&moved, &d->insns[i]);
    if (b + 1 == count || !goes_on(&d->insns[start[b + 1] - 1])) continue;
    atlas_insn jump = {.op = ATLAS_OP_bra, .operand_count = 1, .operand = {atlas_label_ref(label[b + 1])}};
    draft_append(&moved, &jump);
  }
  draft_release(d);
  *d = moved;
  return 1;
}

/* The label that an instruction may go to; NULL: none. */
static atlas_operand *target_of(atlas_insn *insn) {
  if (insn->op == ATLAS_OP_bra) return &insn->operand[0];
  return insn->op == ATLAS_OP_loop ? &insn->operand[1] : NULL;
}

/* Some of the branches that lead to one place from before it, or from behind it, share a jump on their way. */
static int make_detours(rng *r, draft *d) {
  uint32_t labels = d->label_count, insns = d->insn_count;
  int any = 0;
  if (insns == 0 || goes_on(&d->insns[insns - 1]) || draft_is_target(d, insns)) return 0;
  for (uint32_t l = 0; l < labels; l++) {
    uint32_t by = UINT32_MAX, behind = rng_below(r, 2);
    for (uint32_t i = 0; i < insns; i++) {
      atlas_operand *target = target_of(&d->insns[i]);
      if (target == NULL || target->bits != l || (d->labels[l] <= i) != behind || rng_chance(r, 30)) continue;
      if (by == UINT32_MAX) by = draft_label(d);
      target->bits = by;
    }
    if (by == UINT32_MAX) continue;
    atlas_insn jump = {.op = ATLAS_OP_bra, .operand_count = 1, .operand = {atlas_label_ref(l)}};
    draft_place(d, by);
    draft_append(d, &jump);
    any = 1;
  }
  return any;
}

int transform(transform_kind kind, rng *r, const atlas_program *program, draft *d) {
  switch (kind) {
  case TRANSFORM_REGISTERS: return rename_registers(r, d);
  case TRANSFORM_NAMES: d->other_names = 1; return 1;
  case TRANSFORM_OPERANDS: return exchange_operands(r, d);
  case TRANSFORM_ORDER: return exchange_neighbours(r, program, d);
  case TRANSFORM_DEAD: return insert_dead(r, d);
  case TRANSFORM_DUPLICATES: return duplicate(r, d);
  case TRANSFORM_BRANCHES: return turn_branches(r, d);
  case TRANSFORM_BLOCKS: return split_blocks(r, d);
  case TRANSFORM_LAYOUT: return move_blocks(r, d);
  case TRANSFORM_DETOURS: return make_detours(r, d);
  default: return 0;
  }
}

/* ---- mutants ----------------------------------------------------------------------------------------------------- */

static int same_form(const atlas_insn *insn, const atlas_op_info *a, const atlas_op_info *b) {
  if (strcmp(a->operands, b->operands) != 0 || a->flags & ATLAS_JUMP ||
      (a->flags ^ b->flags) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_BLOCK | ATLAS_SECOND))
    return 0;
  return insn->type == ATLAS_NONE ? b->types == 0 : (int)(b->types >> insn->type & 1);
}

static int other_operation(rng *r, atlas_insn *insn) {
  for (int attempt = 0; attempt < 40; attempt++) {
    atlas_op op = rng_op(r);
    if ((uint32_t)op == insn->op || !same_form(insn, atlas_op_lookup(insn->op), atlas_op_lookup(op))) continue;
    insn->op = (uint16_t)op;
    return 1;
  }
  return 0;
}

static int other_constant(rng *r, atlas_insn *insn) {
  unsigned first = rng_below(r, ATLAS_MAX_OPERANDS);
  for (unsigned n = 0; n < insn->operand_count; n++) {
    atlas_operand *o = &insn->operand[(first + n) % insn->operand_count];
    if (o->kind == ATLAS_OPERAND_IMM) {
      uint32_t width =
          insn->type == ATLAS_NONE ? 32 : atlas_type_bits((atlas_type)(insn->type2 != 0 ? insn->type2 : insn->type));
      o->bits ^= UINT64_C(1) << (rng_chance(r, 50) ? rng_below(r, width) : rng_below(r, 3));
      return 1;
    }
    if (o->kind == ATLAS_OPERAND_MEM && o->mode <= ATLAS_ADDRESS_INDEXED && rng_chance(r, 30)) {
      o->bits += rng_chance(r, 50) ? 1 : UINT64_MAX;
      return 1;
    }
    if (o->kind == ATLAS_OPERAND_COORD) {
      o->bits = rng_below(r, ATLAS_COORD_COUNT);
      return 1;
    }
  }
  return 0;
}

static int other_operands(atlas_insn *insn) {
  if (insn->operand_count < 3 || insn->operand[1].kind == ATLAS_OPERAND_MEM) return 0;
  unsigned last = insn->operand_count - 1u;
  atlas_operand kept = insn->operand[last];
  insn->operand[last] = insn->operand[last - 1];
  insn->operand[last - 1] = kept;
  return 1;
}

int mutate(rng *r, draft *d) {
  for (int attempt = 0; attempt < 20 && d->insn_count > 0; attempt++) {
    atlas_insn *insn = &d->insns[rng_below(r, d->insn_count)];
    int done = 0;
    switch (rng_below(r, 5)) {
    case 0: done = other_operation(r, insn); break;
    case 1:
    case 2: done = other_constant(r, insn); break;
    case 3: done = other_operands(insn); break;
    default:
      done = insn->guard != 0;
      if (done) insn->guard ^= 0x80;
      break;
    }
    if (done) return 1;
  }
  return 0;
}
