/* limits.c - what an index in a loop is compared with, and what has been added to it since. */
#include "compiler/limits.h"

#include "atlas/tables.h"
#include "compiler/guards.h"
#include "compiler/schedule.h"

typedef struct finder {
  const hg_analysis *analysis;
  const ssa_unit *unit;
  hg_guards guards;
  hg_limit *limit;
} finder;

static const ssa_insn *insn_at(const finder *f, uint32_t value) { return ssa_insn_at(f->unit, value); }

static int is_invariant(const finder *f, uint32_t header, uint32_t value) {
  const ssa_insn *insn = insn_at(f, value);
  return hg_is_leaf(insn) || (insn->block != SSA_NONE && !ir_in_loop(&f->analysis->loops, header, insn->block));
}

/* 1 if the value is known before the loop and no negative number. */
static int add_product(finder *f, uint32_t a, uint32_t b) {
  uint32_t of[2] = {a, b};
  if (f->limit->count == HG_MOST_PRODUCTS) return 0;
  for (int k = 0; k < 2 && of[k] != SSA_NONE; k++) {
    const ssa_insn *insn = insn_at(f, of[k]);
    hg_range range = f->analysis->range[of[k]];
    int is_unsigned = atlas_kind((atlas_type)insn->type) == ATLAS_KIND_UINT;
    if (!is_invariant(f, f->limit->header, of[k]) || (!is_unsigned && !(range.exact && range.low >= 0))) return 0;
  }
  f->limit->product[f->limit->count][0] = a;
  f->limit->product[f->limit->count++][1] = b;
  return 1;
}

/* A number that a branch on the way has found to be above the value, or not below it. */
static int add_bound(finder *f, uint32_t value) {
  int64_t above = 0;
  uint32_t bound = SSA_NONE;
  for (uint32_t nth = 0; hg_guards_find_bound(&f->guards, value, nth, &bound, &above); nth++)
    if (add_product(f, bound, SSA_NONE)) return hg_add_exact(f->limit->above, above, &f->limit->above);
  return 0;
}

static uint32_t base_of(finder *f, uint32_t value) { return hg_guards_base_of(&f->guards, value, &f->limit->above); }

/* The index is what is compared, or a sum of that and of what is known before the loop. */
static int add_index(finder *f, uint32_t index) {
  const ssa_insn *insn = insn_at(f, index);
  const uint32_t *args = ssa_args_of(f->unit, index);
  const hg_limit before = *f->limit;
  if (add_bound(f, index)) return 1;
  if (atlas_kind((atlas_type)insn->type) != ATLAS_KIND_UINT) return 0; /* a sum that wraps may be any number */
  for (uint32_t k = 0; k < 2 && insn->op == ATLAS_OP_add; k++) {
    *f->limit = before;
    if (add_product(f, args[1 - k], SSA_NONE) && add_bound(f, base_of(f, args[k]))) return 1;
  }
  *f->limit = before;
  return insn->op == ATLAS_OP_mad && add_product(f, args[0], args[1]) && add_bound(f, base_of(f, args[2]));
}

static int has_64_bits(const finder *f) {
  for (uint32_t k = 0; k < f->limit->count; k++)
    for (int i = 0; i < 2; i++)
      if (f->limit->product[k][i] != SSA_NONE &&
          atlas_type_bits((atlas_type)insn_at(f, f->limit->product[k][i])->type) > 32)
        return 1;
  return 0;
}

static int is_known_before(const finder *f, uint32_t header) {
  for (uint32_t k = 0; k < f->limit->count; k++)
    for (int i = 0; i < 2; i++)
      if (f->limit->product[k][i] != SSA_NONE && !is_invariant(f, header, f->limit->product[k][i])) return 0;
  return 1;
}

int hg_find_limit(const hg_analysis *analysis, const ssa_unit *unit, const ssa_order *order, uint32_t access,
                  hg_limit *limit) {
  finder f = {.analysis = analysis,
              .unit = unit,
              .limit = limit,
              .guards = {.unit = unit, .order = order, .of = analysis->range, .at = analysis->guarded}};
  const ssa_insn *insn = insn_at(&f, access);
  int64_t displacement = (int64_t)insn->bits;
  *limit = (hg_limit){.header = analysis->loops.loop[insn->block], .above = displacement};
  if (limit->header == SSA_NONE || analysis->in_bounds[access] || insn->mode != ATLAS_ADDRESS_INDEXED ||
      displacement > INT32_MAX || displacement < -INT32_MAX)
    return 0;
  uint32_t index = ssa_args_of(unit, access)[0];
  hg_guards_go_to(&f.guards, insn->block, 2);
  hg_range range = hg_guards_range(&f.guards, index);
  int is_unsigned = atlas_kind((atlas_type)insn_at(&f, index)->type) == ATLAS_KIND_UINT;
  if (range.exact ? range.low < -displacement : !is_unsigned || displacement < 0) return 0;
  if (!add_index(&f, base_of(&f, index))) return 0;
  if (has_64_bits(&f) && (limit->count > 1 || limit->product[0][1] != SSA_NONE)) return 0;
  for (uint32_t out = analysis->loops.parent[limit->header]; out != SSA_NONE && is_known_before(&f, out);
       out = analysis->loops.parent[out])
    limit->header = out;
  return limit->above <= UINT32_MAX && limit->above >= -(int64_t)UINT32_MAX;
}
