/* rare_side.c - a side of a branch that computes values again which are seldom needed.
 *
 * Many of them become one instruction in a loop: for (k = 0; k < count; k++) found[k] = f(x[k]). A driver's compiler
 * spends its time on code that exists, whether it runs or not. What a round is given and what it finds are selected by
 * its number, since registers have no indices. Like loops of the function library, the loop counts no steps. */
#include "compiler/rare_side.h"

#include "atlas/insn.h"

#include <string.h>

/* ---- for (k = 0; k < count; k++) --------------------------------------------------------------------------------- */

typedef struct rounds {
  ssa_unit *unit;
  uint32_t head, count;
  uint32_t number, is[HG_MOST_ROUNDS]; /* values: the round's number, and for each round whether it is the current
                                          one */
  int failed;                          /* 1: out of memory */
} rounds;

static uint32_t add(rounds *r, const ssa_insn *insn, const uint32_t *args, uint32_t count) {
  uint32_t value = r->failed ? SSA_NONE : ir_ssa_add(r->unit, insn, count);
  if (value == SSA_NONE) r->failed = 1;
  for (uint32_t i = 0; i < count && !r->failed; i++) ssa_args_of(r->unit, value)[i] = args[i];
  return r->failed ? 0 : value;
}

static uint32_t constant(rounds *r, uint8_t type, uint64_t bits) {
  return add(r, &(ssa_insn){.op = SSA_CONST, .type = type, .bits = bits, .insn = SSA_NONE}, NULL, 0);
}

/* An operation on `a` and a 32-bit constant. */
static uint32_t with_number(rounds *r, uint16_t op, uint32_t a, uint32_t number) {
  ssa_insn insn = {.op = op, .type = ATLAS_u32, .insn = SSA_NONE};
  if (op != ATLAS_OP_add) {
    insn.type = SSA_PREDICATE;
    insn.type2 = ATLAS_u32;
  }
  return add(r, &insn, (uint32_t[]){a, constant(r, ATLAS_u32, number)}, 2);
}

static uint32_t select_if(rounds *r, uint32_t test, uint32_t yes, uint32_t no) {
  if (r->failed) return 0;
  const ssa_insn insn = {.op = ATLAS_OP_sel, .type = ssa_insn_at(r->unit, yes)->type, .insn = SSA_NONE};
  return add(r, &insn, (uint32_t[]){test, yes, no}, 3);
}

/* A phi of the loop that begins as the value. */
static uint32_t carry_on(rounds *r, uint32_t value) {
  if (r->failed) return 0;
  const ssa_insn insn = {.op = SSA_PHI, .type = ssa_insn_at(r->unit, value)->type, .insn = SSA_NONE};
  uint32_t phi = add(r, &insn, (uint32_t[]){value, value}, 2);
  if (!r->failed) ir_ssa_append_phi(r->unit, r->head, phi);
  return phi;
}

static void carry(rounds *r, uint32_t phi, uint32_t value) {
  if (!r->failed) ssa_args_of(r->unit, phi)[1] = value;
}

static void begin_rounds(rounds *r, uint32_t head) {
  r->head = head;
  r->number = carry_on(r, constant(r, ATLAS_u32, 0));
  for (uint32_t k = 0; k < r->count; k++) r->is[k] = with_number(r, ATLAS_OP_set_eq, r->number, k);
  ssa_block_at(r->unit, head)->library = 1;
}

/* value[k] in round k, by selections. */
static uint32_t given_in_round(rounds *r, const uint32_t *value) {
  uint32_t given = value[r->count - 1];
  for (uint32_t k = r->count - 1; k-- > 0;) given = select_if(r, r->is[k], value[k], given);
  return given;
}

/* In round k it becomes what that round has found; in the others it keeps its value. */
static uint32_t keep_found(rounds *r, uint32_t carried, uint32_t k, uint32_t found) {
  uint32_t value = select_if(r, r->is[k], found, carried);
  carry(r, carried, value);
  return value;
}

/* Ends the loop; the block that follows is not known yet. */
static void end_rounds(rounds *r) {
  uint32_t number = with_number(r, ATLAS_OP_add, r->number, 1);
  uint32_t again = with_number(r, ATLAS_OP_set_lt, number, r->count);
  carry(r, r->number, number);
  ssa_block *block = ssa_block_at(r->unit, r->head);
  block->end = SSA_BRANCH;
  block->condition = again;
  block->successor[0] = r->head;
}

static uint32_t operand(const rounds *r, uint32_t value, uint32_t i) {
  return ir_ssa_resolve(r->unit, ssa_args_of(r->unit, value)[i]);
}

static int is_one(const rounds *r, const uint32_t *like, uint32_t i) {
  int is = 1;
  for (uint32_t k = 1; k < r->count; k++) is &= operand(r, like[k], i) == operand(r, like[0], i);
  return is;
}

/* Writes a loop of one block. What a round finds replaces what it was given, which is not needed any more: the first
 * operand that differs. */
static uint32_t repeat(ssa_unit *unit, uint32_t loop, const uint32_t *like, uint32_t count, uint32_t *found) {
  rounds r = {.unit = unit, .count = count};
  const ssa_insn insn = *ssa_insn_at(unit, like[0]);
  uint32_t args[3] = {0}, place = 0, carried[HG_MOST_ROUNDS] = {0}, value[HG_MOST_ROUNDS] = {0};
  begin_rounds(&r, loop);
  while (place + 1 < insn.arg_count && is_one(&r, like, place)) place++;
  for (uint32_t k = 0; k < count; k++) carried[k] = carry_on(&r, operand(&r, like[k], place));
  for (uint32_t i = 0; i < insn.arg_count; i++) {
    for (uint32_t k = 0; k < count; k++) value[k] = i == place ? carried[k] : operand(&r, like[k], i);
    args[i] = i != place && is_one(&r, like, i) ? value[0] : given_in_round(&r, value);
  }
  uint32_t made = add(&r, &insn, args, insn.arg_count);
  for (uint32_t k = 0; k < count; k++) found[k] = keep_found(&r, carried[k], k, made);
  end_rounds(&r);
  return r.failed ? SSA_NONE : made;
}

/* ---- sides ------------------------------------------------------------------------------------------------------- */

static uint32_t add_block(ssa_unit *unit, uint32_t from) {
  uint32_t block = ir_ssa_add_block(unit);
  if (block == SSA_NONE || !ir_ssa_lead(unit, from, block)) return SSA_NONE;
  ssa_block_at(unit, block)->library = 1;
  return block;
}

uint32_t hg_add_rare_side(ssa_unit *unit, uint32_t block, uint32_t test, uint32_t rest) {
  uint32_t usual = add_block(unit, block), rare = usual == SSA_NONE ? SSA_NONE : add_block(unit, block);
  if (rare == SSA_NONE || !hg_end_side(unit, usual, rest)) return SSA_NONE;
  ssa_block_at(unit, usual)->usual = 1;
  ssa_block *head = ssa_block_at(unit, block);
  head->end = SSA_BRANCH;
  head->condition = test;
  head->successor[0] = usual;
  head->successor[1] = rare;
  return rare;
}

static uint32_t compute_one(ssa_unit *unit, uint32_t block, uint32_t value) {
  const ssa_insn insn = *ssa_insn_at(unit, value);
  uint32_t args[3] = {0}, copy;
  memcpy(args, ssa_args_of(unit, value), insn.arg_count * sizeof *args);
  copy = ir_ssa_add(unit, &insn, insn.arg_count);
  if (copy == SSA_NONE) return copy;
  memcpy(ssa_args_of(unit, copy), args, insn.arg_count * sizeof *args);
  ir_ssa_append_effect(unit, block, copy);
  return copy;
}

uint32_t hg_compute_again(ssa_unit *unit, uint32_t block, const uint32_t *like, uint32_t count, uint32_t copies,
                          uint32_t *found) {
  if (count > copies) {
    uint32_t loop = ir_ssa_add_block(unit);
    if (loop == SSA_NONE || !hg_end_side(unit, block, loop) || !ir_ssa_lead(unit, loop, loop)) return SSA_NONE;
    uint32_t made = repeat(unit, loop, like, count, found);
    if (made == SSA_NONE) return SSA_NONE;
    ir_ssa_append_effect(unit, loop, made);
    return loop;
  }
  for (uint32_t k = 0; k < count; k++)
    if ((found[k] = compute_one(unit, block, like[k])) == SSA_NONE) return SSA_NONE;
  return block;
}

/* A loop is left by its second side. */
int hg_end_side(ssa_unit *unit, uint32_t block, uint32_t rest) {
  ssa_block *from = ssa_block_at(unit, block);
  if (from->end != SSA_BRANCH) from->end = SSA_JUMP;
  from->successor[from->end == SSA_BRANCH] = rest;
  return ir_ssa_lead(unit, block, rest);
}

int hg_choose_side(ssa_unit *unit, uint32_t rest, uint32_t value, const uint32_t *from, uint32_t sides) {
  const ssa_insn *insn = ssa_insn_at(unit, value), made = {.op = SSA_PHI, .type = insn->type, .insn = insn->insn};
  uint32_t phi = ir_ssa_add(unit, &made, sides);
  if (phi == SSA_NONE) return 0;
  memcpy(ssa_args_of(unit, phi), from, sides * sizeof *from);
  ir_ssa_append_phi(unit, rest, phi);
  ir_ssa_replace(unit, value, phi);
  return 1;
}
