/* analyse.c - walks over a unit that find level, range and alignment of every value, then the accesses that are in
 * bounds.
 *
 * A value's range follows from its arguments' ranges (ranges.h); a phi's also from the branches on the way to it, and
 * from how often its loop iterates (guards.h). In the first walk, anything may come along a back edge; in later walks,
 * what the walk before has found. */
#include "compiler/analysis/analyse.h"

#include "atlas/arith.h"
#include "atlas/functions.h"
#include "base/error.h"
#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/block_levels.h"
#include "compiler/analysis/guards.h"
#include "ir/ssa_walk.h"

typedef struct analyst {
  const atlas_program *program;
  ssa_unit *unit;
  const hg_shape *shape;
  const ssa_order *order;
  hg_array values;
  hg_analysis *out;
  hg_range *range; /* per value; the same array as in `out` */
  hg_guards guards;
  uint8_t *control;    /* per block: ir_level; the same array as in `out` */
  uint8_t *news;       /* per value: what this round has found that the last had not found: NEW_FACT, NEW_RANGE */
  uint8_t has_lengths; /* 1: the program reads the length of a buffer */
  uint8_t read_only[ATLAS_MAX_SYMBOLS + 2]; /* per location (compiler/analysis/aliasing.h) */
} analyst;

static const ssa_insn *insn_at(const analyst *a, uint32_t value) { return ssa_insn_at(a->unit, value); }
static const hg_fact *arg_fact(const analyst *a, uint32_t value, unsigned i) {
  return &a->out->fact[ssa_args_of(a->unit, value)[i]];
}
static hg_range arg_range(const analyst *a, uint32_t value, unsigned i) {
  return a->range[ssa_args_of(a->unit, value)[i]];
}

/* ---- facts ------------------------------------------------------------------------------------------------------- */

static uint32_t alignment_of(uint64_t number) {
  uint32_t alignment = 1;
  while (alignment < HG_MAX_ALIGNMENT && number % (2 * (uint64_t)alignment) == 0) alignment *= 2;
  return alignment;
}

static uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* ---- where a lane is --------------------------------------------------------------------------------------------- */

static uint64_t all_lanes(const analyst *a) {
  const hg_shape *s = a->shape;
  if (s->lanes != 0) return s->lanes;
  uint64_t count = 1;
  for (int d = 0; d < 3; d++) {
    if (s->grid[d] == 0 || s->block[d] == 0) return 0;
    count *= s->grid[d] * s->block[d];
  }
  return count;
}

static uint64_t block_lanes(const analyst *a) {
  uint64_t count = 1;
  for (int d = 0; d < 3; d++) count *= a->shape->block[d] != 0 ? a->shape->block[d] : ATLAS_MAX_BLOCK_LANES;
  return count < ATLAS_MAX_BLOCK_LANES ? count : ATLAS_MAX_BLOCK_LANES;
}

/* The range of a number below `count`; 0: of any number of the type. */
static hg_range below(uint8_t type, uint64_t count) {
  hg_range all = hg_range_of_type(type);
  return count == 0 || count - 1 > (uint64_t)all.high ? all : hg_range_between(type, 0, (int64_t)count - 1);
}

static hg_range exactly(uint8_t type, uint64_t number) {
  hg_range all = hg_range_of_type(type);
  return number > (uint64_t)all.high ? all : hg_range_between(type, (int64_t)number, (int64_t)number);
}

static hg_range coordinate_fact(const analyst *a, const ssa_insn *insn, hg_fact *f) {
  const hg_shape *s = a->shape;
  unsigned d = (unsigned)insn->bits % 3;
  switch (insn->bits / 3) {
  case ATLAS_COORD_LANE_X / 3:
    f->level = IR_LANE;
    return below(insn->type, s->block[d] != 0 ? s->block[d] : ATLAS_MAX_BLOCK_LANES);
  case ATLAS_COORD_BLOCK_X / 3:
    f->level = IR_BLOCK;
    return below(insn->type, s->grid[d]);
  case ATLAS_COORD_BLOCK_SIZE_X / 3:
    return s->block[d] != 0 ? exactly(insn->type, s->block[d]) : hg_range_between(insn->type, 1, ATLAS_MAX_BLOCK_LANES);
  case ATLAS_COORD_GRID_SIZE_X / 3:
    return s->grid[d] != 0 ? exactly(insn->type, s->grid[d]) : hg_range_of_type(insn->type);
  default:
    f->level = IR_LANE;
    return below(insn->type, d == 0 && s->lanes != 0 ? s->lanes : s->grid[d] * s->block[d]);
  }
}

/* blane is the lane's number in its block. */
static hg_range special_fact(const analyst *a, const ssa_insn *insn, hg_fact *f) {
  f->level = IR_LANE;
  return below(insn->type, insn->bits == ATLAS_REG_LANE ? all_lanes(a) : block_lanes(a));
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static int is_one_number(hg_range a) { return a.exact && a.low == a.high; }

/* Shift counts are taken modulo the width. */
static uint32_t shift_by(const ssa_insn *insn, hg_range count) {
  return (uint32_t)count.low & (atlas_type_bits((atlas_type)insn->type) - 1);
}

/* Alignment survives wrapping, because the modulus is a power of two. */
static uint32_t alignment_of_product(uint32_t a, uint32_t b) {
  uint64_t product = (uint64_t)a * b;
  return product < HG_MAX_ALIGNMENT ? (uint32_t)product : HG_MAX_ALIGNMENT;
}

static uint32_t alignment_of_value(const analyst *a, uint32_t value) {
  const ssa_insn *insn = insn_at(a, value);
  const hg_fact *x = arg_fact(a, value, 0), *y = insn->arg_count > 1 ? arg_fact(a, value, 1) : x;
  hg_range by;
  switch (insn->op) {
  case ATLAS_OP_add:
  case ATLAS_OP_sub:
  case ATLAS_OP_or:
  case ATLAS_OP_xor:
  case ATLAS_OP_min:
  case ATLAS_OP_max: return lesser(x->alignment, y->alignment);
  case ATLAS_OP_sel: return lesser(y->alignment, arg_fact(a, value, 2)->alignment);
  case ATLAS_OP_and: return x->alignment > y->alignment ? x->alignment : y->alignment;
  case ATLAS_OP_mul: return alignment_of_product(x->alignment, y->alignment);
  case ATLAS_OP_mad: return lesser(alignment_of_product(x->alignment, y->alignment), arg_fact(a, value, 2)->alignment);
  case ATLAS_OP_shl:
    by = arg_range(a, value, 1);
    if (!is_one_number(by)) return x->alignment;
    return alignment_of_product(x->alignment, shift_by(insn, by) > 12 ? HG_MAX_ALIGNMENT : 1u << shift_by(insn, by));
  case ATLAS_OP_cvt: return atlas_is_integer((atlas_type)insn->type2) ? x->alignment : 1;
  default: return 1;
  }
}

/* ---- one value --------------------------------------------------------------------------------------------------- */

static void find_read_only(analyst *a) {
  uint32_t group[ATLAS_MAX_SYMBOLS + 2];
  hg_alias_groups(a->program, a->unit, group);
  for (uint32_t l = 0; l < hg_location_count(a->program); l++)
    a->read_only[l] = (uint8_t)hg_is_read_only(a->program, group, l);
}

static uint8_t effect_level(const analyst *a, const ssa_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info->flags & ATLAS_LOAD) return a->read_only[hg_location_of(a->program, insn)] ? IR_GRID : IR_LANE;
  if (info->flags & ATLAS_ATOMIC || insn->op == ATLAS_OP_scan_incl || insn->op == ATLAS_OP_scan_excl ||
      insn->op == ATLAS_OP_rank)
    return IR_LANE;
  return info->flags & ATLAS_BLOCK || insn->op == ATLAS_OP_cls_get ? IR_BLOCK : IR_GRID;
}

static void find_phi_level(const analyst *a, uint32_t value, hg_fact *f) {
  const ssa_insn *insn = insn_at(a, value);
  const hg_array *predecessors = &ssa_block_at(a->unit, insn->block)->predecessors;
  for (uint32_t i = 0; i < insn->arg_count; i++)
    if (arg_fact(a, value, i)->level > f->level) f->level = arg_fact(a, value, i)->level;
  for (size_t i = 0; i < predecessors->count; i++) { /* the branches that decide which argument a lane receives */
    uint32_t from = ((const uint32_t *)predecessors->data)[i], condition = ssa_block_at(a->unit, from)->condition;
    if (a->control[from] > f->level) f->level = a->control[from];
    if (condition != SSA_NONE && a->out->fact[condition].level > f->level) f->level = a->out->fact[condition].level;
  }
}

enum { NEW_FACT = 1, NEW_RANGE = 2 };

static unsigned news_of_arguments(const analyst *a, uint32_t value) {
  const ssa_insn *insn = insn_at(a, value);
  unsigned news = 0;
  for (uint32_t i = 0; i < insn->arg_count; i++) news |= a->news[ssa_args_of(a->unit, value)[i]];
  return news;
}

/* 1 if this round may find another fact than the last one: for a phi, whose back edges were unknown; and if the level
 * of the block's control or the fact of an argument has changed. */
static int may_change(const analyst *a, uint32_t value) {
  const ssa_insn *insn = insn_at(a, value);
  if (insn->op == SSA_PHI) return 1;
  if (insn->block != SSA_NONE && a->control[insn->block] > a->out->fact[value].level) return 1;
  return news_of_arguments(a, value) != 0;
}

static int is_same_range(hg_range a, hg_range b) {
  return a.low == b.low && a.high == b.high && a.exact == b.exact && a.is_nan == b.is_nan;
}

static hg_range length_of(analyst *a, const ssa_insn *insn) {
  const uint64_t *extent = a->shape->extent;
  a->has_lengths = 1;
  return extent != NULL && extent[insn->symbol] != 0 ? exactly(insn->type, extent[insn->symbol])
                                                     : hg_range_of_type(insn->type);
}

/* 1 if the range of the phi, or of one beside it, has changed since the last round. */
static int find_phi_range(analyst *a, uint32_t phi) {
  hg_range before = a->range[phi];
  int others = 0;
  hg_guards_find_phi(&a->guards, phi, &others);
  for (uint32_t v = ssa_block_at(a->unit, insn_at(a, phi)->block)->first_phi; v != phi && others;
       v = insn_at(a, v)->next)
    a->news[v] = NEW_FACT | NEW_RANGE;
  return others || !is_same_range(a->range[phi], before);
}

/* 1 if the value's level rose. `is_first`: nothing is known of the value yet. */
static int find_fact(analyst *a, uint32_t value, int is_first) {
  const ssa_insn *insn = insn_at(a, value);
  const hg_fact before = a->out->fact[value];
  int has_new_range = 1;
  hg_fact f = {.level = IR_GRID, .alignment = 1};
  switch (insn->op) {
  case SSA_CONST:
    f.alignment = alignment_of(insn->bits);
    a->range[value] = hg_range_of_bits(insn->type, insn->bits);
    break;
  case SSA_SCALAR:
    if (a->shape->scalar == NULL) break;
    f.alignment = alignment_of(a->shape->scalar[insn->symbol]);
    a->range[value] = hg_range_of_bits(insn->type, a->shape->scalar[insn->symbol]);
    break;
  case SSA_SPECIAL: a->range[value] = special_fact(a, insn, &f); break;
  case SSA_PHI:
    find_phi_level(a, value, &f);
    has_new_range = find_phi_range(a, value);
    break;
  case ATLAS_OP_sreg: a->range[value] = coordinate_fact(a, insn, &f); break;
  case ATLAS_OP_cls_get:
    f.level = IR_BLOCK;
    a->range[value] = below(insn->type, ATLAS_CLASS_COUNT);
    break;
  default:
    f.level = effect_level(a, insn);
    if (!(atlas_op_flags(insn->op) & ATLAS_BLOCK))
      for (uint32_t i = 0; i < insn->arg_count; i++)
        if (arg_fact(a, value, i)->level > f.level) f.level = arg_fact(a, value, i)->level;
    if (insn->block != SSA_NONE && a->control[insn->block] > f.level) f.level = a->control[insn->block];
    has_new_range = is_first || news_of_arguments(a, value) & NEW_RANGE;
    if (has_new_range)
      a->range[value] = insn->op == ATLAS_OP_len ? length_of(a, insn) : hg_range_of(a->unit, a->range, value);
    if (insn->arg_count > 0 && insn->type != SSA_PREDICATE && atlas_is_integer((atlas_type)insn->type))
      f.alignment = alignment_of_value(a, value);
    break;
  }
  a->out->fact[value] = f;
  int is_new = f.level != before.level || f.alignment != before.alignment || has_new_range;
  a->news[value] = (uint8_t)((is_new ? NEW_FACT : 0) | (has_new_range ? NEW_RANGE : 0));
  return f.level > before.level;
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

static uint64_t extent_of(const analyst *a, const ssa_insn *insn) {
  if (insn->mode > ATLAS_ADDRESS_INDEXED) return 0;
  if (insn->symbol & SSA_LIBRARY)
    return atlas_symbol_at(&atlas_functions, insn->symbol & ~(unsigned)SSA_LIBRARY)->count;
  const atlas_symbol *symbol = atlas_symbol_at(a->program, insn->symbol);
  if (symbol->kind == ATLAS_SYMBOL_SHARED || symbol->kind == ATLAS_SYMBOL_LOCAL || symbol->kind == ATLAS_SYMBOL_CONST)
    return symbol->count;
  if (symbol->kind != ATLAS_SYMBOL_BUFFER || a->shape->extent == NULL) return 0;
  return a->shape->extent[insn->symbol];
}

static int is_below(hg_range index, int64_t displacement, uint64_t extent) {
  if (index.exact && index.low > index.high) return 1; /* no lane reaches the access */
  return index.exact && hg_add_exact(index.low, displacement, &index.low) &&
         hg_add_exact(index.high, displacement, &index.high) && index.low >= 0 && (uint64_t)index.high < extent;
}

static int is_below_extent(analyst *a, uint32_t value) {
  const ssa_insn *insn = insn_at(a, value);
  uint64_t extent = extent_of(a, insn);
  const hg_range first = {.exact = 1};
  if (extent == 0 || extent > INT64_MAX) return 0;
  if (insn->mode != ATLAS_ADDRESS_INDEXED) return is_below(first, (int64_t)insn->bits, extent);
  if (is_below(arg_range(a, value, 0), (int64_t)insn->bits, extent)) return 1;
  hg_guards_go_to(&a->guards, insn->block, 2);
  return is_below(hg_guards_range(&a->guards, ssa_args_of(a->unit, value)[0]), (int64_t)insn->bits, extent);
}

/* The launch does not say how long the buffer is, but the program may have compared its length. */
static int is_in_length(analyst *a, uint32_t value) {
  const ssa_insn *insn = insn_at(a, value);
  int64_t displacement = (int64_t)insn->bits;
  if (!a->has_lengths || insn->mode != ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY ||
      atlas_symbol_at(a->program, insn->symbol)->kind != ATLAS_SYMBOL_BUFFER || displacement > INT32_MAX ||
      displacement < -INT32_MAX)
    return 0;
  uint32_t index = ssa_args_of(a->unit, value)[0];
  hg_guards_go_to(&a->guards, insn->block, 2);
  hg_range range = hg_guards_range(&a->guards, index);
  int is_unsigned = atlas_kind((atlas_type)insn_at(a, index)->type) == ATLAS_KIND_UINT;
  int is_below_0 = range.exact ? range.low < -displacement : !is_unsigned || displacement < 0;
  return !is_below_0 && hg_guards_is_below_length(&a->guards, index, displacement, insn->symbol);
}

static hg_proof proof_of(analyst *a, uint32_t value) {
  return is_below_extent(a, value) ? HG_BELOW_EXTENT : is_in_length(a, value) ? HG_BELOW_LENGTH : HG_NOT_PROVEN;
}

static int is_access(const ssa_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  return info != NULL && (info->flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != 0;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

enum { LEVEL_ROUNDS = 16 }; /* after so many rounds, all control counts as divergent */

static hg_status allocate(analyst *a) {
  uint64_t values = a->unit->insns.count, blocks = a->unit->blocks.count;
  uint64_t bytes = values * (sizeof(hg_fact) + sizeof(hg_range) + 2) + blocks * (sizeof(hg_guarded) + 1);
  a->out->fact = hg_allocate(&a->unit->allocator, bytes, 1);
  if (a->out->fact == NULL) return hg_fail_memory("the analysis of a program", bytes);
  a->range = a->out->range = (hg_range *)(a->out->fact + values);
  a->guards = (hg_guards){.unit = a->unit, .order = a->order, .of = a->range, .at = (hg_guarded *)(a->range + values)};
  a->out->guarded = a->guards.at;
  a->out->in_bounds = (uint8_t *)(a->guards.at + blocks);
  a->news = a->out->in_bounds + values;
  a->control = a->out->control = a->news + values;
  hg_guards_build(&a->guards);
  for (uint32_t v = 0; v < values; v++) a->range[v] = hg_range_of_type(insn_at(a, v)->type);
  return HG_OK;
}

/* Facts that phis of loops may need before the walk reaches them. */
static void find_leaves(analyst *a) {
  for (size_t k = 0; k < a->values.count; k++) {
    uint32_t value = ((const uint32_t *)a->values.data)[k];
    uint16_t op = insn_at(a, value)->op;
    if (op == SSA_CONST || op == SSA_SCALAR || op == SSA_SPECIAL) find_fact(a, value, 1);
  }
}

static hg_status find_facts(analyst *a, hg_control *c) {
  HG_TRY(ir_ssa_walk(a->unit, a->order, &a->values));
  HG_TRY(allocate(a));
  HG_TRY(ir_loops_build(a->unit, a->order, &a->out->loops));
  find_read_only(a);
  find_leaves(a);
  /* levels only rise, so this ends; most programs need two rounds */
  for (int round = 0, again = 1; again; round++) {
    again = round == 0 && a->out->loops.count > 0;
    for (size_t k = 0; k < a->values.count; k++) {
      uint32_t value = ((const uint32_t *)a->values.data)[k];
      if (round == 0 || may_change(a, value)) again |= find_fact(a, value, round == 0);
      else a->news[value] = 0;
    }
    if (round == LEVEL_ROUNDS) hg_control_set_divergent(c);
    again |= hg_control_spread(c, a->unit, a->order, a->out->fact, a->control);
  }
  for (size_t k = 0; k < a->values.count; k++) {
    uint32_t value = ((const uint32_t *)a->values.data)[k];
    if (is_access(insn_at(a, value))) a->out->in_bounds[value] = (uint8_t)proof_of(a, value);
  }
  return HG_OK;
}

hg_status hg_analyse_with(const atlas_program *program, ssa_unit *unit, const hg_shape *shape, const ssa_order *order,
                          hg_control *control, hg_analysis *out) {
  hg_shape known = *shape;
  analyst a = {.program = program,
               .unit = unit,
               .shape = &known,
               .order = order,
               .values = {.element_size = sizeof(uint32_t)},
               .out = out};
  *out = (hg_analysis){0};
  for (int d = 0; d < 3; d++)
    if (program->block[d] != 0) known.block[d] = program->block[d];
  hg_status status = find_facts(&a, control);
  hg_array_release(&unit->allocator, &a.values);
  return status;
}

hg_status hg_analyse(const atlas_program *program, ssa_unit *unit, const hg_shape *shape, hg_analysis *out) {
  ssa_order order;
  hg_control control = {0};
  *out = (hg_analysis){0};
  ir_ssa_resolve_all(unit);
  hg_status status = ir_ssa_order_build(unit, &order);
  if (status == HG_OK) status = hg_control_build(unit, &order, &control);
  if (status == HG_OK) status = hg_analyse_with(program, unit, shape, &order, &control, out);
  hg_control_release(unit, &control);
  ir_ssa_order_release(unit, &order);
  return status;
}

void hg_analysis_release(const ssa_unit *unit, hg_analysis *analysis) {
  hg_release(&unit->allocator, analysis->fact);
  ir_loops_release(unit, &analysis->loops);
  *analysis = (hg_analysis){0};
}

/* ---- summary ----------------------------------------------------------------------------------------------------- */

static void count_memory(const ssa_insn *insn, uint32_t flags, hg_summary *out) {
  uint32_t bytes = flags & ATLAS_SPACE_GLOBAL || flags & ATLAS_ATOMIC ? atlas_bytes((atlas_type)insn->type) : 0;
  if (flags & ATLAS_LOAD) out->loads++;
  if (flags & ATLAS_STORE) out->stores++;
  if (flags & ATLAS_ATOMIC) out->atomics++;
  if (flags & (ATLAS_LOAD | ATLAS_ATOMIC)) out->bytes_read += bytes;
  if (flags & (ATLAS_STORE | ATLAS_ATOMIC)) out->bytes_written += bytes;
}

static void count_value(const ssa_insn *insn, hg_summary *out) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info == NULL) return; /* constants, parameters, phis */
  if (info->flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) count_memory(insn, info->flags, out);
  else if (info->flags & ATLAS_BLOCK) *(insn->op == ATLAS_OP_bar_sync ? &out->barriers : &out->collectives) += 1;
  else if (info->flags & ATLAS_FUNC) out->functions++;
  else if (insn->op == ATLAS_OP_div || insn->op == ATLAS_OP_rem || insn->op == ATLAS_OP_sqrt) out->divisions++;
  else if (insn->type != SSA_PREDICATE && atlas_kind((atlas_type)insn->type) == ATLAS_KIND_FLOAT) out->float_ops++;
  else out->integer_ops++;
}

hg_status hg_summarise(const atlas_program *program, ssa_unit *unit, hg_summary *out) {
  ssa_order order;
  hg_array values = {.element_size = sizeof(uint32_t)};
  (void)program;
  *out = (hg_summary){0};
  ir_ssa_resolve_all(unit);
  hg_status status = ir_ssa_order_build(unit, &order);
  if (status == HG_OK) status = ir_ssa_walk(unit, &order, &values);
  for (size_t k = 0; k < values.count && status == HG_OK; k++)
    count_value(ssa_insn_at(unit, ((const uint32_t *)values.data)[k]), out);
  for (uint32_t k = 0; k < order.count && status == HG_OK; k++) {
    const ssa_block *block = ssa_block_at(unit, order.block[k]);
    out->branches += block->end == SSA_BRANCH;
    for (size_t i = 0; i < block->predecessors.count; i++)
      if (ssa_dominates(&order, order.block[k], ((const uint32_t *)block->predecessors.data)[i])) {
        out->loops++;
        break;
      }
  }
  ir_ssa_order_release(unit, &order);
  hg_array_release(&unit->allocator, &values);
  return status;
}
