/* roll_rare.c - the rare sides of a row of functions as one loop.
 *
 * Where a row is one function of several values, its branches and rare sides are copies of one another. A driver's
 * compiler spends most of its time on code that hardly ever runs, so they are kept once:
 *
 *   for (k = 0; k < count; k++) { x = k == 0 ? x0 : k == 1 ? x1 : ...; y = f(x); y0 = k == 0 ? y : y0; ... }
 *
 * Two sides are matched from their results on down to what they are given: what is the same value in all, what the test
 * looks at, and whatever is not computed by pure instructions, as what has been loaded. All that lies between is made
 * once more for the loop, so every bit stays. What a side is given is in registers up to the test. So the loop computes
 * anew what the usual side makes of what is tested, unless that is long or takes more values to begin with: then it is
 * given that. */
#include "compiler/shares/rare_row.h"
#include "compiler/compiler_tuning.h"

#include "base/error.h"
#include "compiler/analysis/effects.h"
#include "compiler/shares/rounds.h"

#include <string.h>

enum {
  MOST_ENTRIES = 96, /* values of one side */
  MOST_LEAVES = 12
};

typedef enum entry_kind { GIVEN, INNER, CHOICE } entry_kind; /* CHOICE: a phi of the rare side */

typedef struct entry {
  uint32_t value[RARE_MOST_JOINED]; /* by function */
  uint32_t made;                    /* in the loop; SSA_NONE */
  uint32_t chosen;                  /* of something given: what the rounds put in its place; SSA_NONE */
  entry_kind kind;
} entry;

typedef struct roller {
  ssa_unit *unit;
  const rare_branch *row;
  uint32_t count;
  entry entries[MOST_ENTRIES];
  uint32_t entry_count, given_count;
  uint32_t leaf[MOST_LEAVES], leaf_count; /* of the first function: where what its usual side computes begins */
  uint32_t block[COMPILER_RARE_BLOCKS][RARE_MOST_JOINED],
      block_count;                                        /* rare ones, in the order of the first function's */
  uint32_t copy[COMPILER_RARE_BLOCKS], usual, head, meet; /* in the loop; head: with the functions' branch */
  hg_rounds rounds;
  int failed; /* out of memory */
} roller;

static ssa_insn *insn_at(const roller *r, uint32_t value) { return ssa_insn_at(r->unit, value); }
static ssa_block *block_at(const roller *r, uint32_t block) { return ssa_block_at(r->unit, block); }
static uint32_t arg_of(const roller *r, uint32_t value, uint32_t i) {
  return ir_ssa_resolve(r->unit, ssa_args_of(r->unit, value)[i]);
}
static uint32_t predecessor(const roller *r, uint32_t block, size_t i) {
  return ((const uint32_t *)block_at(r, block)->predecessors.data)[i];
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* Which of function i's rare blocks it is; SSA_NONE. */
static uint32_t place_of(const roller *r, uint32_t i, uint32_t block) {
  for (uint32_t k = 0; k < r->block_count; k++)
    if (r->block[k][i] == block) return k;
  return SSA_NONE;
}

/* The blocks are one and the same part of their functions; those of rare sides are noted. */
static int match_block(roller *r, const uint32_t *block) {
  uint32_t place = place_of(r, 0, block[0]);
  for (uint32_t i = 0; i < r->count; i++) {
    if ((block[i] == r->row[i].join) != (block[0] == r->row[0].join)) return 0;
    if (block[i] != r->row[i].join && place_of(r, i, block[i]) != place) return 0;
  }
  if (block[0] == r->row[0].join || place != SSA_NONE) return 1;
  if (r->block_count == COMPILER_RARE_BLOCKS) return 0;
  memcpy(r->block[r->block_count++], block, r->count * sizeof *block);
  return 1;
}

static int match_successors(roller *r, uint32_t k) {
  const ssa_block *first = block_at(r, r->block[k][0]);
  for (int s = 0; s < (first->end == SSA_BRANCH ? 2 : 1); s++) {
    uint32_t to[RARE_MOST_JOINED] = {0};
    for (uint32_t i = 0; i < r->count; i++) {
      const ssa_block *block = block_at(r, r->block[k][i]);
      if (block->end != first->end) return 0;
      to[i] = block->successor[s];
    }
    if (!match_block(r, to)) return 0;
  }
  return 1;
}

/* What stands for a predecessor in any of the functions. */
static uint32_t role_of(const roller *r, uint32_t i, uint32_t block) {
  if (block == r->row[i].usual)
    return COMPILER_RARE_BLOCKS; /* the head, too, where nothing is between it and the join */
  return block == r->row[i].head ? COMPILER_RARE_BLOCKS + 1 : place_of(r, i, block);
}

static int have_like_predecessors(const roller *r, const uint32_t *block) {
  size_t count = block_at(r, block[0])->predecessors.count;
  for (uint32_t i = 1; i < r->count; i++) {
    if (block_at(r, block[i])->predecessors.count != count) return 0;
    for (size_t k = 0; k < count; k++)
      if (role_of(r, i, predecessor(r, block[i], k)) != role_of(r, 0, predecessor(r, block[0], k))) return 0;
  }
  return 1;
}

static int match_blocks(roller *r) {
  uint32_t first[RARE_MOST_JOINED] = {0}, join[RARE_MOST_JOINED] = {0};
  for (uint32_t i = 0; i < r->count; i++) {
    const rare_branch *d = &r->row[i];
    if (d->side != r->row[0].side || (d->usual == d->head) != (r->row[0].usual == r->row[0].head)) return 0;
    first[i] = block_at(r, d->head)->successor[1 - d->side];
    join[i] = d->join;
  }
  if (!match_block(r, first)) return 0;
  for (uint32_t k = 0; k < r->block_count; k++)
    if (!match_successors(r, k)) return 0;
  for (uint32_t k = 0; k < r->block_count; k++)
    if (!have_like_predecessors(r, r->block[k])) return 0;
  return have_like_predecessors(r, join);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static entry *find_entry(roller *r, uint32_t first) {
  for (uint32_t k = 0; k < r->entry_count; k++)
    if (r->entries[k].value[0] == first) return &r->entries[k];
  return NULL;
}

static int note(roller *r, const uint32_t *value, entry_kind kind) {
  if (r->entry_count == MOST_ENTRIES || (kind == GIVEN && r->given_count == COMPILER_ROLLED_GIVEN)) return 0;
  entry *e = &r->entries[r->entry_count++];
  *e = (entry){.made = SSA_NONE, .chosen = SSA_NONE, .kind = kind};
  memcpy(e->value, value, r->count * sizeof *value);
  r->given_count += kind == GIVEN;
  return kind != GIVEN || insn_at(r, value[0])->type != SSA_PREDICATE; /* predicates are not selected */
}

static int is_computed(const roller *r, uint32_t value) {
  return !hg_is_leaf(insn_at(r, value)) && hg_is_pure(insn_at(r, value));
}

/* What is loaded and converted counts as loaded: in a word with others it would take instructions to find it. */
static int is_leaf(const roller *r, uint32_t value) {
  for (uint32_t k = 0; k < r->leaf_count; k++)
    if (r->leaf[k] == value) return 1;
  return !is_computed(r, value) || (insn_at(r, value)->op == ATLAS_OP_cvt && !is_computed(r, arg_of(r, value, 0)));
}

static int look_alike(const roller *r, const uint32_t *value) {
  const ssa_insn *a = insn_at(r, value[0]);
  for (uint32_t i = 1; i < r->count; i++) {
    const ssa_insn *b = insn_at(r, value[i]);
    if (a->op != b->op || a->type != b->type || a->type2 != b->type2 || a->mode != b->mode || a->bits != b->bits ||
        a->symbol != b->symbol || a->arg_count != b->arg_count)
      return 0;
  }
  return 1;
}

/* Computed before the rare sides in each function. */
static int are_given(const roller *r, const uint32_t *value) {
  uint8_t type = insn_at(r, value[0])->type;
  for (uint32_t i = 0; i < r->count; i++) {
    const ssa_insn *insn = insn_at(r, value[i]);
    if (insn->type != type || (insn->op == SSA_PHI && place_of(r, i, insn->block) != SSA_NONE)) return 0;
  }
  return 1;
}

static int match(roller *r, const uint32_t *value);

static int match_args(roller *r, const uint32_t *value) {
  for (uint32_t k = 0; k < insn_at(r, value[0])->arg_count; k++) {
    uint32_t arg[RARE_MOST_JOINED] = {0};
    for (uint32_t i = 0; i < r->count; i++) arg[i] = arg_of(r, value[i], k);
    if (!match(r, arg)) return 0;
  }
  return 1;
}

static int are_one(const roller *r, const uint32_t *value) {
  int are = 1;
  for (uint32_t i = 1; i < r->count; i++) are &= value[i] == value[0];
  return are;
}

static int are_one_constant(const roller *r, const uint32_t *value) {
  return insn_at(r, value[0])->op == SSA_CONST && look_alike(r, value);
}

/* 1 if the values can stand for one another: one of each function. */
static int match(roller *r, const uint32_t *value) {
  const entry *known = find_entry(r, value[0]);
  if (known != NULL) return memcmp(known->value, value, r->count * sizeof *value) == 0;
  if (are_one(r, value) || are_one_constant(r, value)) return are_given(r, value);
  if (is_leaf(r, value[0])) return are_given(r, value) && note(r, value, GIVEN);
  return look_alike(r, value) && note(r, value, INNER) && match_args(r, value);
}

/* Those of one block of each function. */
static int note_phis(roller *r, const uint32_t *block) {
  uint32_t phi[RARE_MOST_JOINED] = {0};
  for (uint32_t i = 0; i < r->count; i++) phi[i] = block_at(r, block[i])->first_phi;
  while (phi[0] != SSA_NONE) {
    for (uint32_t i = 1; i < r->count; i++)
      if (phi[i] == SSA_NONE) return 0;
    if (!look_alike(r, phi) || !note(r, phi, CHOICE)) return 0;
    for (uint32_t i = 0; i < r->count; i++) phi[i] = insn_at(r, phi[i])->next;
  }
  for (uint32_t i = 1; i < r->count; i++)
    if (phi[i] != SSA_NONE) return 0;
  return 1;
}

static int match_condition(roller *r, const uint32_t *block) {
  uint32_t condition[RARE_MOST_JOINED] = {0};
  if (block_at(r, block[0])->end != SSA_BRANCH) return 1;
  for (uint32_t i = 0; i < r->count; i++) condition[i] = ir_ssa_resolve(r->unit, block_at(r, block[i])->condition);
  return match(r, condition);
}

/* ---- where the usual side begins --------------------------------------------------------------------------------- */

static void add_leaf(roller *r, uint32_t value) {
  if (r->leaf_count < MOST_LEAVES) r->leaf[r->leaf_count++] = value;
}

/* What the usual value's bits are made of, and what the test looks at, is computed in any case. */
static void find_leaves(roller *r, uint32_t value, int depth) {
  const ssa_insn *insn = insn_at(r, value);
  int is_of_bits = insn->type == SSA_PREDICATE || insn->op == ATLAS_OP_bitcast || insn->op == ATLAS_OP_abs ||
                   atlas_is_integer((atlas_type)insn->type);
  if (hg_is_leaf(insn)) return;
  if (depth == 0 || !is_of_bits || !hg_is_pure(insn)) add_leaf(r, value);
  else
    for (uint32_t i = 0; i < insn->arg_count; i++) find_leaves(r, arg_of(r, value, i), depth - 1);
}

/* What the usual value is made of. */
static void find_usual_leaves(roller *r) {
  const rare_branch *d = &r->row[0];
  for (uint32_t phi = block_at(r, d->join)->first_phi; phi != SSA_NONE; phi = insn_at(r, phi)->next)
    find_leaves(r, arg_of(r, phi, (uint32_t)d->at), 6);
}

/* Down to the leaves. */
static int match_sides(roller *r) {
  uint32_t join[RARE_MOST_JOINED] = {0}, head[RARE_MOST_JOINED] = {0};
  r->entry_count = r->given_count = 0;
  for (uint32_t i = 0; i < r->count; i++) {
    join[i] = r->row[i].join;
    head[i] = r->row[i].head;
  }
  for (uint32_t k = 0; k < r->block_count; k++)
    if (!note_phis(r, r->block[k])) return 0;
  if (!note_phis(r, join) || !match_condition(r, head)) return 0;
  for (uint32_t k = 0; k < r->block_count; k++)
    if (!match_condition(r, r->block[k])) return 0;
  uint32_t choices = r->entry_count;
  for (uint32_t k = 0; k < choices; k++)
    if (r->entries[k].kind == CHOICE && !match_args(r, r->entries[k].value)) return 0;
  return 1;
}

static int chooses_few_numbers(const roller *r) {
  uint32_t chosen = 0;
  for (uint32_t phi = block_at(r, r->row[0].join)->first_phi; phi != SSA_NONE; phi = insn_at(r, phi)->next)
    if (++chosen > COMPILER_RARE_CHOSEN || insn_at(r, phi)->type == SSA_PREDICATE) return 0;
  return 1;
}

static int match_values(roller *r) {
  if (!chooses_few_numbers(r)) return 0;
  find_leaves(r, ir_ssa_resolve(r->unit, block_at(r, r->row[0].head)->condition), 6);
  uint32_t tested = r->leaf_count;
  find_usual_leaves(r);
  if (!match_sides(r)) return 0;
  uint32_t leaves = r->leaf_count, entries = r->entry_count, given = r->given_count;
  r->leaf_count = tested;
  if (match_sides(r) && r->given_count <= given && r->entry_count <= entries + COMPILER_ROLLED_ANEW) return 1;
  r->leaf_count = leaves;
  return match_sides(r);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static uint32_t add(roller *r, const ssa_insn *insn, const uint32_t *args, uint32_t count) {
  const ssa_insn made = *insn;
  uint32_t value = r->failed ? SSA_NONE : ir_ssa_add(r->unit, &made, count);
  if (value == SSA_NONE) r->failed = 1;
  for (uint32_t i = 0; i < count && !r->failed; i++) ssa_args_of(r->unit, value)[i] = args[i];
  return r->failed ? 0 : value;
}

/* The value in the loop; a phi has been made before. */
static uint32_t mapped(roller *r, uint32_t value) {
  entry *e = find_entry(r, value);
  uint32_t args[8] = {0};
  if (e == NULL || r->failed) return value;
  if (e->made != SSA_NONE) return e->made;
  if (e->kind == GIVEN) return e->made = hg_given_in_round(&r->rounds, e->value);
  const ssa_insn insn = *insn_at(r, value);
  for (uint32_t i = 0; i < insn.arg_count; i++) args[i] = mapped(r, arg_of(r, value, i));
  return e->made = add(r, &insn, args, insn.arg_count);
}

static uint32_t add_block(roller *r) {
  uint32_t block = r->failed ? SSA_NONE : ir_ssa_add_block(r->unit);
  if (block == SSA_NONE) r->failed = 1;
  else block_at(r, block)->library = 1;
  return block == SSA_NONE ? 0 : block;
}

static void lead(roller *r, uint32_t from, uint32_t to) {
  if (!r->failed && !hg_array_push(&r->unit->allocator, &block_at(r, to)->predecessors, from)) r->failed = 1;
}

static uint32_t block_in_loop(const roller *r, uint32_t block) {
  if (block == r->row[0].join) return r->meet;
  if (block == r->row[0].head) return r->head;
  if (block == r->row[0].usual) return r->usual;
  return r->copy[place_of(r, 0, block)];
}

static void copy_edges(roller *r, uint32_t from) {
  uint32_t to = block_in_loop(r, from), condition = block_at(r, from)->condition;
  condition = condition == SSA_NONE ? SSA_NONE : mapped(r, ir_ssa_resolve(r->unit, condition));
  if (r->failed) return;
  const ssa_block *block = block_at(r, from);
  ssa_block *copy = block_at(r, to);
  copy->end = block->end;
  copy->insn = block->insn;
  copy->condition = condition;
  for (int s = 0; s < (block->end == SSA_BRANCH ? 2 : 1); s++)
    copy->successor[s] = block_in_loop(r, block->successor[s]);
}

static void copy_predecessors(roller *r, uint32_t block) {
  for (size_t k = 0; k < block_at(r, block)->predecessors.count; k++)
    lead(r, block_in_loop(r, predecessor(r, block, k)), block_in_loop(r, block));
}

/* Their operands come when all are there. */
static void make_phis(roller *r) {
  for (uint32_t k = 0; k < r->entry_count && !r->failed; k++) {
    entry *e = &r->entries[k];
    if (e->kind != CHOICE) continue;
    const ssa_insn phi = *insn_at(r, e->value[0]);
    e->made = add(r, &(ssa_insn){.op = SSA_PHI, .type = phi.type, .insn = phi.insn}, NULL, 0);
    if (r->failed) return;
    ir_ssa_append_phi(r->unit, block_in_loop(r, phi.block), e->made);
  }
}

static void fill_phis(roller *r) {
  for (uint32_t k = 0; k < r->entry_count && !r->failed; k++) {
    const entry *e = &r->entries[k];
    uint32_t args[COMPILER_RARE_BLOCKS + 1], count = insn_at(r, e->value[0])->arg_count;
    if (e->kind != CHOICE) continue;
    for (uint32_t i = 0; i < count; i++) args[i] = mapped(r, arg_of(r, e->value[0], i));
    hg_array *all = &r->unit->args;
    uint32_t first = (uint32_t)all->count;
    for (uint32_t i = 0; i < count && !r->failed; i++)
      if (!hg_array_push(&r->unit->allocator, all, args[i])) r->failed = 1;
    insn_at(r, e->made)->args = first;
    insn_at(r, e->made)->arg_count = count;
  }
}

/* Which of the given values a chosen one takes the place of, so that it needs no register of its own. */
static int find_places(roller *r) {
  uint32_t c = 0;
  for (uint32_t phi = block_at(r, r->row[0].join)->first_phi; phi != SSA_NONE; phi = insn_at(r, phi)->next, c++) {
    entry *place = NULL;
    uint8_t type = insn_at(r, phi)->type;
    for (uint32_t k = 0; k < r->entry_count && place == NULL; k++) {
      entry *e = &r->entries[k];
      if (e->kind == GIVEN && e->chosen == SSA_NONE && insn_at(r, e->value[0])->type == type) place = e;
    }
    if (place == NULL) return 0;
    place->chosen = c;
  }
  return 1;
}

static void carry_chosen(roller *r, rare_loop *made) {
  for (uint32_t k = 0; k < r->entry_count; k++) {
    entry *e = &r->entries[k];
    uint32_t value[RARE_MOST_JOINED] = {0};
    if (e->chosen == SSA_NONE) continue;
    for (uint32_t i = 0; i < r->count; i++) {
      value[i] = hg_carry_on(&r->rounds, e->value[i]);
      made->chosen[i][e->chosen] = value[i];
    }
    e->made = hg_given_in_round(&r->rounds, value);
  }
}

/* Where the functions' sides meet. */
static void keep_chosen(roller *r, rare_loop *made) {
  uint32_t c = 0;
  for (uint32_t phi = block_at(r, r->row[0].join)->first_phi; phi != SSA_NONE; phi = insn_at(r, phi)->next, c++)
    for (uint32_t i = 0; i < r->count && !r->failed; i++)
      made->chosen[i][c] = hg_keep_found(&r->rounds, made->chosen[i][c], i, mapped(r, phi));
}

static void make_loop(roller *r, rare_loop *made) {
  const rare_branch *d = &r->row[0];
  made->first = add_block(r);
  r->head = add_block(r);
  r->usual = d->usual == d->head ? r->head : add_block(r);
  for (uint32_t k = 0; k < r->block_count; k++) r->copy[k] = add_block(r);
  made->last = r->meet = add_block(r);
  if (r->failed) return;
  block_at(r, made->first)->end = SSA_JUMP;
  block_at(r, made->first)->successor[0] = r->head;
  lead(r, made->first, r->head);
  lead(r, r->meet, r->head);
  if (d->usual != d->head) copy_predecessors(r, d->usual);
  for (uint32_t k = 0; k < r->block_count; k++) copy_predecessors(r, r->block[k][0]);
  copy_predecessors(r, d->join);
  r->rounds = (hg_rounds){.unit = r->unit, .count = r->count, .failed = r->failed};
  hg_begin_rounds(&r->rounds, r->head);
  carry_chosen(r, made);
  make_phis(r);
  copy_edges(r, d->head);
  if (d->usual != d->head) copy_edges(r, d->usual);
  for (uint32_t k = 0; k < r->block_count; k++) copy_edges(r, r->block[k][0]);
  fill_phis(r);
  keep_chosen(r, made);
  hg_end_rounds(&r->rounds, r->meet, SSA_NONE); /* the caller knows where it leads */
  r->failed |= r->rounds.failed;
}

hg_status hg_roll_rare(ssa_unit *unit, const rare_branch *row, uint32_t count, rare_loop *made, int *is_rolled) {
  roller r = {.unit = unit, .row = row, .count = count};
  *is_rolled = match_blocks(&r) && match_values(&r) && find_places(&r);
  if (!*is_rolled) return HG_OK;
  make_loop(&r, made);
  return r.failed ? hg_fail_memory("rolling rare cases", sizeof(ssa_insn)) : HG_OK;
}
