/* rounds.c - for (k = 0; k < count; k++): what a round is given and what it finds are chosen by its number, since
 * registers have no indices. It counts no steps, as loops of the function library do. */
#include "compiler/rounds.h"

#include "atlas/insn.h"

typedef struct rounds {
  ssa_unit *unit;
  uint32_t head, count;
  uint32_t number, is[HG_MOST_ROUNDS]; /* of the round, and whether it is this one: values */
  int failed;                          /* out of memory */
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

/* With a number of 32 bits. */
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

/* What goes from round to round: it begins as the value. */
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

/* Behind round k it is what that has found; behind the others it stays. */
static uint32_t keep_found(rounds *r, uint32_t carried, uint32_t k, uint32_t found) {
  uint32_t value = select_if(r, r->is[k], found, carried);
  carry(r, carried, value);
  return value;
}

static void end_rounds(rounds *r, uint32_t next) {
  uint32_t number = with_number(r, ATLAS_OP_add, r->number, 1);
  uint32_t again = with_number(r, ATLAS_OP_set_lt, number, r->count);
  carry(r, r->number, number);
  ssa_block *block = ssa_block_at(r->unit, r->head);
  block->end = SSA_BRANCH;
  block->condition = again;
  block->successor[0] = r->head;
  block->successor[1] = next;
}

static uint32_t operand(const rounds *r, uint32_t value, uint32_t i) {
  return ir_ssa_resolve(r->unit, ssa_args_of(r->unit, value)[i]);
}

static int is_one(const rounds *r, const uint32_t *like, uint32_t i) {
  int is = 1;
  for (uint32_t k = 1; k < r->count; k++) is &= operand(r, like[k], i) == operand(r, like[0], i);
  return is;
}

/* What is found takes the place of what was given: the first operand that differs, which is not needed any more. */
uint32_t hg_repeat(ssa_unit *unit, uint32_t loop, uint32_t next, const uint32_t *like, uint32_t count,
                   uint32_t *found) {
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
  end_rounds(&r, next);
  return r.failed ? SSA_NONE : made;
}
