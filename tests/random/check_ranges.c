/* check_ranges.c - the analysis against all values of a run. */
#include "check_ranges.h"

#include "atlas/arith.h"
#include "atlas/functions.h"
#include "atlas/value.h"
#include "base/error.h"
#include "compiler/analysis/trips.h"
#include "compiler/ssa_interp.h"

#include <math.h>


typedef struct watcher {
  const ranges_run *run;
  const hg_analysis *analysis;
  const atlas_launch *launch;
  hg_status status;
} watcher;

static int is_integer(uint8_t type) { return type != SSA_PREDICATE && atlas_is_integer((atlas_type)type); }

static int is_in_range(uint8_t type, hg_range r, uint64_t bits) {
  if (type != SSA_PREDICATE && atlas_is_wide_float((atlas_type)type)) {
    double number = atlas_to_f64((atlas_type)type, bits);
    return isnan(number) ? r.is_nan : number >= r.least && number <= r.greatest;
  }
  if (!is_integer(type)) return 1;
  int64_t number = atlas_to_i64((atlas_type)type, bits);
  if (r.exact) return number >= r.low && number <= r.high && (type != ATLAS_u64 || number >= 0);
  uint64_t mask = atlas_mask((atlas_type)type);
  return (((uint64_t)number - (uint64_t)r.low) & mask) <= (uint64_t)r.high - (uint64_t)r.low;
}

static uint64_t elements_of(const atlas_program *program, uint32_t s, const atlas_launch *launch) {
  const atlas_symbol *symbol = atlas_symbol_at(program, s);
  if (symbol->kind != ATLAS_SYMBOL_BUFFER) return symbol->count;
  return launch->arguments[s].span.byte_count / atlas_bytes((atlas_type)symbol->type);
}

static uint64_t extent_of(const watcher *w, const ssa_insn *insn) {
  uint32_t in_library = insn->symbol & ~(uint32_t)SSA_LIBRARY;
  if (insn->symbol & SSA_LIBRARY) return atlas_symbol_at(&atlas_functions, in_library)->count;
  return elements_of(w->run->program, insn->symbol, w->launch);
}

static int is_in_bounds(const watcher *w, const ssa_insn *insn, uint32_t value, const uint64_t *args) {
  int64_t index = (int64_t)insn->bits;
  if (insn->mode == ATLAS_ADDRESS_INDEXED) {
    uint32_t arg = ssa_args_of(w->run->unit, value)[0];
    index = atlas_index_sum((atlas_type)ssa_insn_at(w->run->unit, arg)->type, args[0], index);
  }
  return index >= 0 && (uint64_t)index < extent_of(w, insn);
}

static void saw(void *user, uint32_t number, uint32_t value, uint64_t bits, const uint64_t *args) {
  watcher *w = user;
  (void)number;
  const ssa_insn *insn = ssa_insn_at(w->run->unit, value);
  const hg_fact *fact = &w->analysis->fact[value];
  const hg_range *range = &w->analysis->range[value];
  if (w->status != HG_OK) return;
  if (!is_in_range(insn->type, *range, bits))
    w->status = hg_fail(HG_INVALID_ARGUMENT, "value %u (%s) is %llx, not in [%lld, %lld] or [%g, %g]%s", value,
                        atlas_op_lookup(insn->op) == NULL ? "leaf or phi" : atlas_op_lookup(insn->op)->mnemonic,
                        (unsigned long long)bits, (long long)range->low, (long long)range->high, range->least,
                        range->greatest, range->is_nan ? " or NaN" : "");
  else if (is_integer(insn->type) && fact->alignment > 1 && bits % fact->alignment != 0)
    w->status = hg_fail(HG_INVALID_ARGUMENT, "value %u is %llx, no multiple of %u", value, (unsigned long long)bits,
                        (unsigned)fact->alignment);
  else if (args != NULL && w->analysis->in_bounds[value] && !is_in_bounds(w, insn, value, args))
    w->status = hg_fail(HG_INVALID_ARGUMENT, "access %u is out of bounds", value);
}

hg_status check_ranges(const void *context, atlas_launch *launch) {
  const ranges_run *run = context;
  uint64_t extent[ATLAS_MAX_SYMBOLS] = {0}, scalar[ATLAS_MAX_SYMBOLS] = {0};
  hg_shape shape = {0};
  hg_analysis analysis = {0};
  for (uint32_t s = 0; s < run->program->symbols.count; s++) {
    if (atlas_symbol_at(run->program, s)->kind == ATLAS_SYMBOL_BUFFER) extent[s] = elements_of(run->program, s, launch);
    scalar[s] = launch->arguments[s].bits;
  }
  if (run->knows_launch) {
    shape = (hg_shape){.lanes = launch->lanes, .extent = extent, .scalar = scalar};
    for (int d = 0; d < 3; d++) {
      shape.block[d] = launch->lanes == 0 ? launch->block[d] : d == 0 ? atlas_linear_block(run->program, launch) : 1;
      shape.grid[d] = launch->lanes == 0 ? launch->grid[d] : d == 0 ? (launch->lanes - 1) / shape.block[0] + 1 : 1;
    }
  }
  ssa_order order = {0};
  watcher w = {.run = run, .analysis = &analysis, .launch = launch};
  const hg_ssa_watch watch = {saw, &w};
  hg_status status = hg_analyse(run->program, run->unit, &shape, &analysis);
  if (status == HG_OK) status = ir_ssa_order_build(run->unit, &order);
  uint64_t steps = status == HG_OK ? hg_most_steps(&analysis, run->unit, &order, NULL) : UINT64_MAX;
  int is_enough = steps > 0 && steps <= launch->step_limit; /* a limit is 1 at least */
  if (is_enough) launch->step_limit = steps;
  if (status == HG_OK)
    status = hg_ssa_interpret_watched(&run->program->allocator, run->program, run->unit, &watch, launch);
  ir_ssa_order_release(run->unit, &order);
  hg_analysis_release(run->unit, &analysis);
  if (status == HG_OK && is_enough && launch->fault.kind == HG_FAULT_STEP_LIMIT)
    return hg_fail(HG_INVALID_ARGUMENT, "a lane takes more than %llu steps", (unsigned long long)steps);
  return status == HG_OK ? w.status : status;
}
