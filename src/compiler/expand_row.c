/* expand_row.c - one test in front of several functions, for the rare cases of all of them.
 *
 * A function keeps its rare cases behind branches. The calls of a row (neighbouring calls that share a test) become the
 * values of each function's usual way and one branch on all their tests: if one fails, a loop `for (k = 0; k < count;
 * k++) y[k] = f(x[k])` computes each function of the row again.
 *
 * So there is one branch when no case is rare, and the values before it are in one block, where the instructions of
 * several functions can be interleaved. A rare case costs time, since the loop computes whole functions again, but
 * little code: a driver's compiler spends its time on code that exists, whether it runs or not.
 *
 * No bit changes: the usual way gives a function's result if all of its tests hold, pure values may be computed where
 * they are not needed, and each lane decides by the same conditions. */
#include "compiler/expand_row.h"

#include "atlas/value.h"
#include "base/error.h"
#include "compiler/analysis/effects.h"
#include "compiler/canon/simplify.h"
#include "compiler/rare_side.h"

#include <string.h>

static hg_status out_of_memory(void) { return hg_fail_memory("joining functions", sizeof(ssa_insn)); }

/* ---- the usual way ----------------------------------------------------------------------------------------------- */

/* Arguments for which every branch takes its usual side. Functions have no special cases at these arguments, except
 * that a sine above 1 is NaN: such a function has no usual way. */
static const double ordinary[] = {0.75, 2.5};

static void compute(const ssa_unit *f, uint64_t *bits, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(f, value);
  uint64_t s[3] = {0};
  for (uint32_t i = 0; i < insn->arg_count && i < 3; i++) s[i] = bits[ssa_args_of(f, value)[i]];
  bits[value] = hg_fold(insn, s[0], s[1], s[2]);
}

static void compute_leaves(const ssa_unit *f, uint64_t *bits, double argument) {
  for (uint32_t v = 0; v < f->insns.count; v++) {
    const ssa_insn *insn = ssa_insn_at(f, v);
    bits[v] = insn->op == SSA_ARGUMENT ? atlas_round_f64((atlas_type)insn->type, argument) : insn->bits;
  }
}

/* Which operand of a block's phis comes from the block before it. */
static uint32_t operand_from(const ssa_unit *f, uint32_t block, uint32_t from) {
  const uint32_t *predecessors = ssa_block_at(f, block)->predecessors.data;
  uint32_t at = 0;
  while (from != SSA_NONE && predecessors[at] != from) at++;
  return at;
}

/* 0 if a value of the block is not pure. */
static int compute_block(const ssa_unit *f, uint64_t *bits, uint32_t block, uint32_t from) {
  uint32_t at = operand_from(f, block, from);
  for (uint32_t phi = ssa_block_at(f, block)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(f, phi)->next)
    bits[phi] = bits[ssa_args_of(f, phi)[at]];
  for (uint32_t e = ssa_block_at(f, block)->first_effect; e != SSA_NONE; e = ssa_insn_at(f, e)->next) {
    if (!hg_is_pure(ssa_insn_at(f, e))) return 0;
    compute(f, bits, e);
  }
  return 1;
}

/* 1 if the way ends, contains a branch, and passes no block twice. `is_known`: 1 if it must also equal the way that is
 * marked already. */
static int mark_way(ssa_unit *f, uint64_t *bits, double argument, int is_known) {
  uint32_t block = 0, from = SSA_NONE, branches = 0;
  compute_leaves(f, bits, argument);
  for (;;) {
    ssa_block *b = ssa_block_at(f, block);
    if (b->end == SSA_TRAP || !compute_block(f, bits, block, from)) return 0;
    int is_second = b->end == SSA_BRANCH && !bits[b->condition], was = b->usual;
    b->usual = (uint8_t)(1 + is_second);
    if (was != (is_known ? b->usual : 0)) return 0;
    if (b->end == SSA_EXIT) return branches > 0;
    branches += b->end == SSA_BRANCH;
    from = block;
    block = b->successor[is_second];
  }
}

hg_status hg_find_usual_way(ssa_unit *function) {
  uint64_t *bits = hg_allocate(&function->allocator, function->insns.count, sizeof *bits);
  if (bits == NULL) return out_of_memory();
  if (!mark_way(function, bits, ordinary[0], 0) || !mark_way(function, bits, ordinary[1], 1))
    for (uint32_t b = 0; b < function->blocks.count; b++) ssa_block_at(function, b)->usual = 0;
  hg_release(&function->allocator, bits);
  return HG_OK;
}

/* ---- the values of it -------------------------------------------------------------------------------------------- */

typedef struct joiner {
  ssa_unit *unit;
  const hg_row *row;
  uint32_t usual[COMPILER_GATHERED]; /* per call: its result on the usual way */
  uint32_t rare[COMPILER_GATHERED];  /* per call: its result on the rare side */
  uint32_t test;                     /* the conjunction of all tests; SSA_NONE: no test has been added yet */
  uint32_t *map;                     /* per value of the current function: its copy in the unit; SSA_NONE */
  int failed;                        /* 1: out of memory */
} joiner;

static uint32_t add(joiner *j, const ssa_insn *insn, const uint32_t *args, uint32_t count) {
  uint32_t value = j->failed ? SSA_NONE : ir_ssa_add(j->unit, insn, count);
  j->failed |= value == SSA_NONE;
  for (uint32_t i = 0; i < count && !j->failed; i++) ssa_args_of(j->unit, value)[i] = args[i];
  return j->failed ? 0 : value;
}

/* Copies a value of the function, whose arguments other than constants have been copied. */
static uint32_t copy(joiner *j, uint32_t k, uint32_t value) {
  const ssa_unit *f = j->row->function[k];
  ssa_insn insn = *ssa_insn_at(f, value);
  uint32_t call = j->row->call[k], args[3] = {0};
  if (j->map[value] != SSA_NONE || j->failed) return j->map[value];
  if (insn.op == SSA_ARGUMENT) return ir_ssa_resolve(j->unit, ssa_args_of(j->unit, call)[insn.bits]);
  for (uint32_t i = 0; i < insn.arg_count; i++) args[i] = copy(j, k, ssa_args_of(f, value)[i]);
  insn.insn = ssa_insn_at(j->unit, call)->insn;
  return j->map[value] = add(j, &insn, args, insn.arg_count);
}

static void add_test(joiner *j, uint16_t op, uint32_t a, uint32_t b) {
  const ssa_insn insn = {.op = op, .type = SSA_PREDICATE, .insn = SSA_NONE};
  j->test = add(j, &insn, (uint32_t[]){a, b}, op == ATLAS_OP_pnot ? 1 : 2);
}

/* Adds the test that the branch of a usual way continues on that way. */
static void add_branch(joiner *j, uint32_t condition, int holds) {
  uint32_t before = j->test;
  j->test = condition;
  if (!holds && ssa_insn_at(j->unit, condition)->op == ATLAS_OP_pnot) j->test = ssa_args_of(j->unit, condition)[0];
  else if (!holds) add_test(j, ATLAS_OP_pnot, condition, SSA_NONE);
  if (before != SSA_NONE) add_test(j, ATLAS_OP_pand, before, j->test);
}

static void add_usual(joiner *j, uint32_t k) {
  const ssa_unit *f = j->row->function[k];
  memset(j->map, 0xff, f->insns.count * sizeof *j->map);
  for (uint32_t block = 0, from = SSA_NONE; !j->failed;) {
    const ssa_block *b = ssa_block_at(f, block);
    uint32_t at = operand_from(f, block, from);
    for (uint32_t phi = b->first_phi; phi != SSA_NONE; phi = ssa_insn_at(f, phi)->next)
      j->map[phi] = copy(j, k, ssa_args_of(f, phi)[at]);
    for (uint32_t e = b->first_effect; e != SSA_NONE; e = ssa_insn_at(f, e)->next) copy(j, k, e);
    if (b->end == SSA_EXIT) {
      j->usual[k] = copy(j, k, b->condition);
      return;
    }
    if (b->end == SSA_BRANCH) add_branch(j, copy(j, k, b->condition), b->usual == 1);
    from = block;
    block = b->successor[b->usual - 1];
  }
}

static hg_status add_values(joiner *j) {
  size_t most = 0;
  for (uint32_t k = 0; k < j->row->count; k++)
    if (j->row->function[k]->insns.count > most) most = j->row->function[k]->insns.count;
  j->map = hg_allocate(&j->unit->allocator, most, sizeof *j->map);
  j->failed = j->map == NULL;
  for (uint32_t k = 0; k < j->row->count && !j->failed; k++) add_usual(j, k);
  hg_release(&j->unit->allocator, j->map);
  return j->failed ? out_of_memory() : HG_OK;
}

/* ---- the rare side ----------------------------------------------------------------------------------------------- */

/* Calls function `k` of the row again for its arguments, from block `from` on; returns the last block of these. They
 * get a block of their own: two functions in one block would be expanded as a row again. */
static uint32_t call_again(joiner *j, uint32_t k, uint32_t from) {
  uint32_t like[COMPILER_GATHERED], found[COMPILER_GATHERED], which[COMPILER_GATHERED], count = 0;
  for (uint32_t i = k; i < j->row->count; i++) {
    if (j->row->function[i] != j->row->function[k]) continue;
    like[count] = j->row->call[i];
    which[count++] = i;
  }
  uint32_t block = ir_ssa_add_block(j->unit);
  if (block == SSA_NONE || !hg_end_side(j->unit, from, block)) return SSA_NONE;
  ssa_block_at(j->unit, block)->library = 1;
  uint32_t end = hg_compute_again(j->unit, block, like, count, 1, found);
  for (uint32_t i = 0; i < count && end != SSA_NONE; i++) j->rare[which[i]] = found[i];
  return end;
}

static int is_first_call(const hg_row *row, uint32_t k) {
  for (uint32_t i = 0; i < k; i++)
    if (row->function[i] == row->function[k]) return 0;
  return 1;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int is_in_row(const hg_row *row, uint32_t value) {
  for (uint32_t k = 0; k < row->count; k++)
    if (row->call[k] == value) return 1;
  return 0;
}

/* Removes the calls from their block's list. */
static void unlink_calls(ssa_unit *unit, const hg_row *row) {
  uint32_t block = ssa_insn_at(unit, row->call[0])->block, e = ssa_block_at(unit, block)->first_effect;
  ssa_block_at(unit, block)->first_effect = ssa_block_at(unit, block)->last_effect = SSA_NONE;
  for (uint32_t next; e != SSA_NONE; e = next) {
    next = ssa_insn_at(unit, e)->next;
    if (!is_in_row(row, e)) ir_ssa_append_effect(unit, block, e);
  }
}

hg_status hg_expand_row(ssa_unit *unit, const hg_row *row, uint32_t previous, uint32_t *rest) {
  joiner j = {.unit = unit, .row = row, .test = SSA_NONE};
  uint32_t block = ssa_insn_at(unit, row->call[0])->block;
  HG_TRY(add_values(&j));
  unlink_calls(unit, row);
  *rest = ir_ssa_split_block(unit, block, previous);
  if (*rest == SSA_NONE) return out_of_memory();
  uint32_t end = hg_add_rare_side(unit, block, j.test, *rest);
  for (uint32_t k = 0; k < row->count && end != SSA_NONE; k++)
    if (is_first_call(row, k)) end = call_again(&j, k, end);
  if (end == SSA_NONE || !hg_end_side(unit, end, *rest)) return out_of_memory();
  for (uint32_t k = 0; k < row->count; k++) {
    if (!hg_choose_side(unit, *rest, row->call[k], (uint32_t[]){j.usual[k], j.rare[k]}, 2)) return out_of_memory();
    ssa_insn_at(unit, row->call[k])->op = SSA_DELETED;
    ssa_insn_at(unit, row->call[k])->arg_count = 0;
  }
  return HG_OK;
}
