/* join_rare.c - one test in front of several functions, for their rare cases.
 *
 * A function keeps its rare cases behind a branch (expand.c). Where the results of several do not depend on one
 * another, as those of a row held in registers, their branches stand in a row with nothing between:
 *
 *   a0: branch c0 ? (nothing) : rare side;  a1 = where both meet: branch c1 ? (nothing) : rare side;  ...
 *
 * becomes
 *
 *   a0: branch c0 and c1 and ... ? (nothing) : s;  s: all of the above;  and both go on to where the last one meets.
 *
 * Where all are one function, s is a loop over them (roll_rare.c).
 *
 * So there is one branch where no case is rare, and what the functions compute up to it is one block, in which their
 * instructions can be mixed. Every bit stays: pure values have no place, and each lane decides by the same conditions
 * which of them it takes. */
#include "compiler/shares/join_rare.h"
#include "compiler/compiler_tuning.h"

#include "base/error.h"
#include "compiler/analysis/effects.h"
#include "compiler/canon/schedule.h"
#include "compiler/shares/rare_row.h"
#include "ir/ssa_walk.h"

#include <string.h>

typedef struct joiner {
  ssa_unit *unit;
  uint32_t *length;        /* per block: the values that are computed there */
  uint32_t *role;          /* per block: the stamp of what it is a part of */
  uint32_t *seen;          /* per value: the stamp of the row for which it has been found to be independent */
  uint32_t *becomes;       /* per value: the phi that stands for it behind its row; SSA_NONE */
  uint64_t values, blocks; /* that the arrays have */
  uint32_t stamp;          /* even: a row's joins; the odd one behind it: a rare side */
  hg_array stack;
  rare_branch row[RARE_MOST_JOINED];
  uint32_t count; /* of row */
} joiner;

static ssa_insn *insn_at(const joiner *j, uint32_t value) { return ssa_insn_at(j->unit, value); }
static ssa_block *block_at(const joiner *j, uint32_t block) { return ssa_block_at(j->unit, block); }
static uint32_t predecessor(const joiner *j, uint32_t block, size_t i) {
  return ((const uint32_t *)block_at(j, block)->predecessors.data)[i];
}
static hg_status out_of_memory(void) { return hg_fail_memory("joining rare cases", sizeof(ssa_insn)); }

/* ---- one branch -------------------------------------------------------------------------------------------------- */

/* Adds a block to the rare side; 0 if it can be no part of one. */
static int add_rare(const joiner *j, rare_branch *d, uint32_t number) {
  const ssa_block *block = block_at(j, number);
  if (number == d->join || j->role[number] == j->stamp + 1) return 1;
  if (!block->library || block->first_effect != SSA_NONE || d->rare_count == COMPILER_RARE_BLOCKS) return 0;
  if (block->end != SSA_JUMP && block->end != SSA_BRANCH) return 0;
  j->role[number] = j->stamp + 1;
  d->rare[d->rare_count++] = number;
  return 1;
}

static int is_rare(const joiner *j, uint32_t block) { return block < j->blocks && j->role[block] == j->stamp + 1; }

/* 1 if the rare side is left to `join` alone and entered at the head alone. */
static int collect_rare(const joiner *j, rare_branch *d, uint32_t first) {
  d->rare_count = 0;
  if (first == d->join || !add_rare(j, d, first)) return 0;
  for (uint32_t i = 0; i < d->rare_count; i++)
    for (int s = 0; s < (block_at(j, d->rare[i])->end == SSA_BRANCH ? 2 : 1); s++)
      if (!add_rare(j, d, block_at(j, d->rare[i])->successor[s])) return 0;
  for (uint32_t i = 0; i < d->rare_count; i++)
    for (size_t k = 0; k < block_at(j, d->rare[i])->predecessors.count; k++) {
      uint32_t from = predecessor(j, d->rare[i], k);
      if (!is_rare(j, from) && (from != d->head || d->rare[i] != first)) return 0;
    }
  for (size_t k = 0; k < block_at(j, d->join)->predecessors.count; k++)
    if (predecessor(j, d->join, k) != d->usual && !is_rare(j, predecessor(j, d->join, k))) return 0;
  return 1;
}

/* The function's usual side is the short one by far. */
static int is_long(const joiner *j, const rare_branch *d) {
  uint32_t length = 0, usual = d->usual == d->head ? 0 : j->length[d->usual];
  for (uint32_t i = 0; i < d->rare_count; i++) length += j->length[d->rare[i]];
  return length > 2 * usual + 4;
}

static void forget_rare(const joiner *j, const rare_branch *d) {
  for (uint32_t i = 0; i < d->rare_count; i++) j->role[d->rare[i]] = 0;
}

/* 1 if nothing but its branch leads to the block, which does nothing before it goes on. */
static int is_short(const joiner *j, uint32_t number) {
  const ssa_block *block = block_at(j, number);
  return block->library && block->end == SSA_JUMP && block->predecessors.count == 1 && block->first_phi == SSA_NONE &&
         block->first_effect == SSA_NONE && j->length[number] <= COMPILER_USUAL_VALUES;
}

static int is_diamond(const joiner *j, rare_branch *d) {
  const ssa_block *head = block_at(j, d->head);
  if (d->join == d->head) return 0;
  if (collect_rare(j, d, head->successor[1 - d->side]) && is_long(j, d)) {
    for (d->at = 0; predecessor(j, d->join, d->at) != d->usual;) d->at++;
    return 1;
  }
  forget_rare(j, d);
  return 0;
}

static int find_diamond(const joiner *j, uint32_t head, rare_branch *d) {
  const ssa_block *block = block_at(j, head);
  if (block->end != SSA_BRANCH || block->successor[0] == block->successor[1]) return 0;
  for (int s = 0; s < 2; s++) {
    uint32_t next = block->successor[s];
    *d = (rare_branch){.head = head, .usual = next, .join = block_at(j, next)->successor[0], .side = s};
    if (is_short(j, next) && is_diamond(j, d)) return 1;
    *d = (rare_branch){.head = head, .usual = head, .join = next, .side = s};
    if (is_diamond(j, d)) return 1;
  }
  return 0;
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

static int needs(joiner *j, uint32_t value) {
  return hg_array_push(&j->unit->allocator, &j->stack, ir_ssa_resolve(j->unit, value));
}

/* Empties the stack: *is becomes 0 if what is on it depends on where the row's branches meet. */
static hg_status look_through(joiner *j, int *is) {
  while (j->stack.count > 0) {
    uint32_t value = ((const uint32_t *)j->stack.data)[--j->stack.count];
    const ssa_insn *insn = insn_at(j, value);
    if (j->seen[value] == j->stamp || hg_is_leaf(insn)) continue;
    if (insn->op == SSA_PHI && j->role[insn->block] == j->stamp) *is = 0;
    int is_inside = insn->op == SSA_PHI && is_rare(j, insn->block);
    if (!is_inside && !hg_is_pure(insn)) continue; /* computed before the row */
    j->seen[value] = j->stamp;
    for (uint32_t i = 0; i < insn->arg_count; i++)
      if (!needs(j, ssa_args_of(j->unit, value)[i])) return out_of_memory();
  }
  return HG_OK;
}

/* 1 if nothing that the branch decides or chooses depends on those of the row. */
static hg_status is_independent(joiner *j, const rare_branch *d, int *is) {
  *is = 1;
  if (!needs(j, block_at(j, d->head)->condition)) return out_of_memory();
  for (uint32_t i = 0; i < d->rare_count; i++)
    if (block_at(j, d->rare[i])->end == SSA_BRANCH && !needs(j, block_at(j, d->rare[i])->condition))
      return out_of_memory();
  for (uint32_t phi = block_at(j, d->join)->first_phi; phi != SSA_NONE; phi = insn_at(j, phi)->next)
    for (uint32_t i = 0; i < insn_at(j, phi)->arg_count; i++)
      if (!needs(j, ssa_args_of(j->unit, phi)[i])) return out_of_memory();
  return look_through(j, is);
}

static hg_status find_row(joiner *j, uint32_t head) {
  j->stamp += 2;
  j->count = 0;
  while (j->count < RARE_MOST_JOINED) {
    rare_branch *d = &j->row[j->count];
    int is = 1;
    if (j->count > 0 && block_at(j, head)->first_effect != SSA_NONE) break;
    if (!find_diamond(j, head, d)) break;
    HG_TRY(is_independent(j, d, &is));
    forget_rare(j, d);
    if (!is) break;
    j->count++;
    head = d->join;
    j->role[head] = j->stamp;
  }
  return HG_OK;
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static uint32_t add(joiner *j, uint16_t op, uint32_t a, uint32_t b) {
  const ssa_insn made = {.op = op, .type = SSA_PREDICATE, .insn = SSA_NONE};
  uint32_t value = ir_ssa_add(j->unit, &made, b == SSA_NONE ? 1 : 2);
  if (value == SSA_NONE) return value;
  ssa_args_of(j->unit, value)[0] = a;
  if (b != SSA_NONE) ssa_args_of(j->unit, value)[1] = b;
  return value;
}

/* That the branch goes to its usual side. */
static uint32_t is_usual(joiner *j, const rare_branch *d) {
  uint32_t condition = ir_ssa_resolve(j->unit, block_at(j, d->head)->condition);
  if (d->side == 0) return condition;
  if (insn_at(j, condition)->op == ATLAS_OP_pnot) return ssa_args_of(j->unit, condition)[0];
  return add(j, ATLAS_OP_pnot, condition, SSA_NONE);
}

static uint32_t all_usual(joiner *j) {
  uint32_t all = is_usual(j, &j->row[0]);
  for (uint32_t i = 1; i < j->count && all != SSA_NONE; i++) {
    uint32_t next = is_usual(j, &j->row[i]);
    all = next == SSA_NONE ? SSA_NONE : add(j, ATLAS_OP_pand, all, next);
  }
  return all;
}

/* ---- the new branch ---------------------------------------------------------------------------------------------- */

/* The same value once more, where it is made of bits, so that it is computed behind the test: there they are known to
 * be those of numbers (number_casts.c). The rare side keeps the old one. SSA_NONE: out of memory. */
static uint32_t copy_of(joiner *j, uint32_t value, int depth) {
  ssa_insn made = *insn_at(j, value);
  int is_of_bits =
      made.op == ATLAS_OP_bitcast || (made.type != SSA_PREDICATE && atlas_is_integer((atlas_type)made.type));
  if (depth == 0 || !is_of_bits || hg_is_leaf(&made) || !hg_is_pure(&made)) return value;
  uint32_t copy = ir_ssa_add(j->unit, &made, made.arg_count);
  for (uint32_t i = 0; i < made.arg_count && copy != SSA_NONE; i++) {
    uint32_t arg = copy_of(j, ir_ssa_resolve(j->unit, ssa_args_of(j->unit, value)[i]), depth - 1);
    if (arg == SSA_NONE) return SSA_NONE;
    ssa_args_of(j->unit, copy)[i] = arg;
  }
  return copy;
}

/* Gives the phi an argument more. */
static hg_status extend(joiner *j, uint32_t phi, uint32_t with) {
  hg_array *args = &j->unit->args;
  with = copy_of(j, ir_ssa_resolve(j->unit, with), COMPILER_COPIED_OPERANDS);
  if (with == SSA_NONE) return out_of_memory();
  uint32_t first = (uint32_t)args->count, count = insn_at(j, phi)->arg_count;
  for (uint32_t i = 0; i < count; i++)
    if (!hg_array_push(&j->unit->allocator, args, ssa_args_of(j->unit, phi)[i])) return out_of_memory();
  if (!hg_array_push(&j->unit->allocator, args, with)) return out_of_memory();
  insn_at(j, phi)->args = first;
  insn_at(j, phi)->arg_count = count + 1;
  return HG_OK;
}

/* What a branch inside the row has chosen is chosen again where the row ends. `rare`: what it is on other edges than
 * the last one. */
static hg_status stand_for(joiner *j, uint32_t phi, uint32_t rare, uint32_t usual, uint32_t end) {
  ssa_insn made = *insn_at(j, phi);
  uint32_t count = (uint32_t)block_at(j, end)->predecessors.count, value = ir_ssa_add(j->unit, &made, count);
  if (value == SSA_NONE) return out_of_memory();
  usual = copy_of(j, ir_ssa_resolve(j->unit, usual), COMPILER_COPIED_OPERANDS);
  if (usual == SSA_NONE) return out_of_memory();
  for (uint32_t i = 0; i + 1 < count; i++) ssa_args_of(j->unit, value)[i] = rare;
  ssa_args_of(j->unit, value)[count - 1] = usual;
  ir_ssa_append_phi(j->unit, end, value);
  j->becomes[phi] = value;
  return HG_OK;
}

/* The edge from the new usual side to the end of the row is its last one; `loop`: leads to the other, or NULL. */
static hg_status join_values(joiner *j, const rare_loop *loop) {
  const rare_branch *last = &j->row[j->count - 1];
  uint32_t c = 0;
  for (uint32_t phi = block_at(j, last->join)->first_phi; phi != SSA_NONE; phi = insn_at(j, phi)->next) {
    uint32_t usual = ssa_args_of(j->unit, phi)[last->at];
    if (loop != NULL) {
      insn_at(j, phi)->arg_count = 1;
      ssa_args_of(j->unit, phi)[0] = loop->chosen[j->count - 1][c++];
    }
    HG_TRY(extend(j, phi, usual));
  }
  for (const rare_branch *d = j->row; d != last; d++) {
    c = 0;
    for (uint32_t phi = block_at(j, d->join)->first_phi; phi != SSA_NONE; phi = insn_at(j, phi)->next) {
      uint32_t rare = loop != NULL ? loop->chosen[d - j->row][c++] : phi;
      HG_TRY(stand_for(j, phi, rare, ssa_args_of(j->unit, phi)[d->at], last->join));
    }
  }
  return HG_OK;
}

static int lead(joiner *j, uint32_t from, uint32_t to) {
  return hg_array_push(&j->unit->allocator, &block_at(j, to)->predecessors, from);
}

static void move_branch(joiner *j, uint32_t head, uint32_t to) {
  ssa_block *from = block_at(j, head), *block = block_at(j, to);
  block->end = SSA_BRANCH;
  block->condition = from->condition;
  block->insn = from->insn;
  for (int s = 0; s < 2; s++) {
    block->successor[s] = from->successor[s];
    const hg_array *into = &block_at(j, from->successor[s])->predecessors;
    for (size_t k = 0; k < into->count; k++)
      if (((uint32_t *)into->data)[k] == head) ((uint32_t *)into->data)[k] = to;
  }
}

static void remove_block(const joiner *j, uint32_t number) {
  ssa_block *block = block_at(j, number);
  block->dead = 1;
  block->successor[0] = block->successor[1] = SSA_NONE;
}

/* The loop instead of the row's branches. */
static hg_status put_loop(joiner *j, const rare_loop *loop) {
  const rare_branch *last = &j->row[j->count - 1];
  for (const rare_branch *d = j->row; d <= last; d++) {
    if (d != last) remove_block(j, d->join);
    if (d->usual != d->head) remove_block(j, d->usual);
    for (uint32_t i = 0; i < d->rare_count; i++) remove_block(j, d->rare[i]);
  }
  block_at(j, last->join)->predecessors.count = 0;
  block_at(j, loop->last)->successor[1] = last->join;
  return lead(j, loop->last, last->join) ? HG_OK : out_of_memory();
}

static hg_status join_row(joiner *j) {
  uint32_t head = j->row[0].head, end = j->row[j->count - 1].join, all = all_usual(j), rare, usual;
  rare_loop loop;
  int is_rolled;
  if (all == SSA_NONE) return out_of_memory();
  HG_TRY(hg_roll_rare(j->unit, j->row, j->count, &loop, &is_rolled));
  rare = is_rolled ? loop.first : ir_ssa_add_block(j->unit);
  usual = ir_ssa_add_block(j->unit);
  if (usual == SSA_NONE || rare == SSA_NONE) return out_of_memory();
  if (is_rolled) HG_TRY(put_loop(j, &loop));
  else move_branch(j, head, rare);
  block_at(j, head)->condition = all;
  block_at(j, head)->successor[0] = usual;
  block_at(j, head)->successor[1] = rare;
  block_at(j, usual)->end = SSA_JUMP;
  block_at(j, usual)->successor[0] = end;
  block_at(j, usual)->library = block_at(j, rare)->library = 1;
  if (!lead(j, head, usual) || !lead(j, head, rare) || !lead(j, usual, end)) return out_of_memory();
  return join_values(j, is_rolled ? &loop : NULL);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Uses of what a row's branches chose, but by the phis that stand for it. */
static void use_new_phis(joiner *j) {
  for (uint32_t v = 0; v < j->unit->insns.count; v++)
    for (uint32_t i = 0; i < insn_at(j, v)->arg_count; i++) {
      uint32_t *arg = ssa_args_of(j->unit, v) + i;
      if (*arg < j->values && j->becomes[*arg] != SSA_NONE && j->becomes[*arg] != v) *arg = j->becomes[*arg];
    }
  for (uint32_t b = 0; b < j->unit->blocks.count; b++) {
    uint32_t *condition = &block_at(j, b)->condition;
    if (*condition != SSA_NONE && *condition < j->values && j->becomes[*condition] != SSA_NONE)
      *condition = j->becomes[*condition];
  }
}

static hg_status join_all(joiner *j, int *changed) {
  ssa_order order;
  hg_status status = ir_ssa_order_number(j->unit, &order);
  for (uint32_t k = 0; k < order.count && status == HG_OK; k++) {
    uint32_t b = order.block[k];
    status = find_row(j, b);
    if (status != HG_OK || j->count < 2) continue;
    status = join_row(j);
    *changed = 1;
    while (k + 1 < order.count && order.block[k + 1] != j->row[j->count - 1].join) k++; /* the row's own branches */
  }
  ir_ssa_order_release(j->unit, &order);
  return status;
}

static uint32_t count_lengths(joiner *j) {
  uint32_t branches = 0;
  for (uint32_t b = 0; b < j->unit->blocks.count; b++) {
    const ssa_block *block = block_at(j, b);
    if (block->dead) continue;
    branches += block->end == SSA_BRANCH;
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = insn_at(j, e)->next) j->length[b]++;
  }
  return branches;
}

hg_status hg_join_rare(ssa_unit *unit, int *changed) {
  joiner j = {
      .unit = unit, .values = unit->insns.count, .blocks = unit->blocks.count, .stack.element_size = sizeof(uint32_t)};
  uint64_t words = 2 * j.blocks + 2 * j.values;
  ir_ssa_resolve_all(unit);
  j.length = hg_allocate(&unit->allocator, words, sizeof *j.length);
  if (j.length == NULL) return out_of_memory();
  j.role = j.length + j.blocks;
  j.seen = j.role + j.blocks;
  j.becomes = j.seen + j.values;
  memset(j.becomes, 0xff, j.values * sizeof *j.becomes);
  hg_status status = HG_OK;
  if (count_lengths(&j) > 1) {
    hg_unschedule(unit);
    status = join_all(&j, changed);
    use_new_phis(&j);
    if (status == HG_OK) status = hg_schedule_folds(unit);
  }
  hg_array_release(&unit->allocator, &j.stack);
  hg_release(&unit->allocator, j.length);
  return status;
}
