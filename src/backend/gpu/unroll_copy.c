/* unroll_copy.c - the code inserted before a loop (unroll.c): bounds and, for each number of iterations at a time, a
 * level: a block that tests whether that many are left, and their copies. */
#include "backend/gpu/unroll.h"

#include "compiler/analysis/aliasing.h"

#define insn_at gpu_unroll_insn
#define arg_of gpu_unroll_arg

enum { MOST_LIMITS = 8 };

/* The conditions on values that grow: value < limit. */
typedef struct limits {
  uint32_t value[MOST_LIMITS], limit[MOST_LIMITS], count;
} limits;

static uint32_t *map_of(const gpu_unroller *u, uint32_t copy) { return u->map + (size_t)copy * u->values; }

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static uint32_t add_in(gpu_unroller *u, uint32_t block, const ssa_insn *insn, const uint32_t *args, uint32_t count) {
  const ssa_insn copy = *insn;
  uint32_t value = u->failed ? SSA_NONE : ir_ssa_add(u->unit, &copy, count);
  if (value == SSA_NONE) {
    u->failed = 1;
    return 0;
  }
  for (uint32_t i = 0; i < count; i++) ssa_args_of(u->unit, value)[i] = args[i];
  if (block != SSA_NONE) ir_ssa_append_effect(u->unit, block, value);
  return value;
}

static uint32_t add_op(gpu_unroller *u, uint32_t block, uint16_t op, uint8_t type, uint8_t type2, uint32_t a,
                       uint32_t b) {
  const ssa_insn insn = {.op = op, .type = type, .type2 = type2, .insn = SSA_NONE};
  return add_in(u, block, &insn, (uint32_t[]){a, b}, b == SSA_NONE ? 1 : 2);
}

static uint32_t constant(gpu_unroller *u, uint8_t type, uint64_t bits) {
  const ssa_insn insn = {.op = SSA_CONST, .type = type, .bits = bits & atlas_mask((atlas_type)type), .insn = SSA_NONE};
  return add_in(u, SSA_NONE, &insn, NULL, 0);
}

static uint32_t add_block(gpu_unroller *u) {
  uint32_t block = u->failed ? SSA_NONE : ir_ssa_add_block(u->unit);
  if (block == SSA_NONE) u->failed = 1;
  return block == SSA_NONE ? 0 : block;
}

static void add_predecessor(gpu_unroller *u, uint32_t block, uint32_t from) {
  if (!hg_array_push(&u->unit->allocator, &ssa_block_at(u->unit, block)->predecessors, from)) u->failed = 1;
}

/* ---- values in a copy -------------------------------------------------------------------------------------------- */

static uint32_t clone(gpu_unroller *u, uint32_t block, uint32_t copy, uint32_t value);

/* A growing value, computed where the copies begin, or earlier. */
static uint32_t ahead(gpu_unroller *u, uint32_t copy, uint32_t value) {
  uint32_t *map = map_of(u, copy);
  if (map[value] != SSA_NONE || u->failed) return map[value];
  if (insn_at(u, value)->op != SSA_PHI) return clone(u, u->first, copy, value);
  uint32_t step = hg_gpu_step_of(u, value), from = copy - 1;
  uint8_t type = insn_at(u, value)->type;
  if (insn_at(u, step)->op == SSA_CONST) {
    step = constant(u, type, insn_at(u, step)->bits * copy);
    from = 0;
  }
  return map[value] = add_op(u, u->first, ATLAS_OP_add, type, 0, ahead(u, from, value), step);
}

/* The counterpart of a value in a copy; a loop-invariant value is its own. */
static uint32_t mapped(gpu_unroller *u, uint32_t copy, uint32_t value) {
  if (value >= u->values || hg_gpu_is_invariant(u, value)) return value;
  return hg_gpu_root_of(u, value) != SSA_NONE ? ahead(u, copy, value) : map_of(u, copy)[value];
}

static uint32_t clone(gpu_unroller *u, uint32_t block, uint32_t copy, uint32_t value) {
  const ssa_insn insn = *insn_at(u, value);
  uint32_t args[2 * GPU_MOST_LOOP_BLOCKS];
  for (uint32_t i = 0; i < insn.arg_count; i++) args[i] = mapped(u, copy, arg_of(u, value, i));
  return map_of(u, copy)[value] = add_in(u, block, &insn, args, insn.arg_count);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static uint64_t least_of(uint8_t type) {
  return gpu_is_signed(type) ? UINT64_C(1) << (atlas_type_bits((atlas_type)type) - 1) : 0;
}

/* The greatest number of the type, as bits. */
static uint64_t most_of(uint8_t type) { return atlas_mask((atlas_type)type) ^ least_of(type); }

/* A number less another, but not below the least number of the type. */
static uint32_t less(gpu_unroller *u, uint32_t block, uint8_t type, uint32_t number, uint64_t by) {
  if (by == 0) return number;
  if (insn_at(u, number)->op == SSA_CONST && !gpu_is_signed(type)) {
    uint64_t bits = insn_at(u, number)->bits;
    return constant(u, type, bits > by ? bits - by : 0);
  }
  uint32_t most = add_op(u, block, ATLAS_OP_max, type, 0, number, constant(u, type, least_of(type) + by));
  return add_op(u, block, ATLAS_OP_sub, type, 0, most, constant(u, type, by));
}

/* The loop continues while the value is below this. A value that is the type's greatest number is left to the loop. */
static uint32_t limit_of_end(gpu_unroller *u, uint32_t block) {
  const ssa_block *head = ssa_block_at(u->unit, u->loop.header);
  const ssa_insn test = *insn_at(u, head->condition);
  uint32_t end = arg_of(u, head->condition, u->loop.side == 0 ? 1 : 0);
  if ((test.op == ATLAS_OP_set_lt) == (u->loop.side == 0)) return end;
  end = add_op(u, block, ATLAS_OP_min, test.type2, 0, end, constant(u, test.type2, most_of(test.type2) - 1));
  return add_op(u, block, ATLAS_OP_add, test.type2, 0, end, constant(u, test.type2, 1));
}

/* An access is in bounds while its index is below this. An index that is the greatest u32 is left to the loop. */
static uint32_t limit_of_access(gpu_unroller *u, uint32_t block, uint32_t access) {
  const ssa_insn length = {.op = ATLAS_OP_len, .type = ATLAS_u64, .symbol = insn_at(u, access)->symbol,
                           .insn = SSA_NONE};
  uint64_t displacement = insn_at(u, access)->bits;
  uint32_t limit = less(u, block, ATLAS_u64, add_in(u, block, &length, NULL, 0), displacement);
  if (insn_at(u, arg_of(u, access, 0))->type == ATLAS_u64) return limit;
  limit = add_op(u, block, ATLAS_OP_min, ATLAS_u64, 0, limit, constant(u, ATLAS_u64, UINT32_MAX));
  return add_op(u, block, ATLAS_OP_cvt, ATLAS_u32, ATLAS_u64, limit, SSA_NONE);
}

static void also(gpu_unroller *u, limits *l, uint32_t block, uint32_t value, uint32_t limit) {
  for (uint32_t i = 0; i < l->count; i++) {
    if (l->value[i] != value) continue;
    l->limit[i] = add_op(u, block, ATLAS_OP_min, insn_at(u, value)->type, 0, l->limit[i], limit);
    return;
  }
  l->value[l->count] = value;
  l->limit[l->count++] = limit;
}

/* Of two accesses with one symbol and index, only the one with the larger displacement needs a limit. */
static int is_bounded_by_other(const gpu_unroller *u, uint32_t value) {
  const ssa_insn *a = insn_at(u, value);
  for (uint32_t i = 0; i < u->loop.block_count; i++)
    for (uint32_t e = ssa_block_at(u->unit, u->loop.block[i])->first_effect; e != SSA_NONE; e = insn_at(u, e)->next) {
      const ssa_insn *b = insn_at(u, e);
      if (e == value || !hg_gpu_is_swept(u, e) || b->symbol != a->symbol || arg_of(u, e, 0) != arg_of(u, value, 0))
        continue;
      if (b->bits > a->bits || (b->bits == a->bits && e < value)) return 1;
    }
  return 0;
}

/* Finds the limits of the values that are compared; 0: there are too many. */
static int find_limits(gpu_unroller *u, uint32_t block, limits *l) {
  also(u, l, block, hg_gpu_compared(u), limit_of_end(u, block));
  for (uint32_t i = 0; i < u->loop.block_count; i++)
    for (uint32_t e = ssa_block_at(u->unit, u->loop.block[i])->first_effect; e != SSA_NONE; e = insn_at(u, e)->next) {
      if (!hg_gpu_is_swept(u, e) || is_bounded_by_other(u, e)) continue;
      if (l->count == MOST_LIMITS) return 0;
      also(u, l, block, arg_of(u, e, 0), limit_of_access(u, block, e));
    }
  return 1;
}

/* ---- what a level asks ------------------------------------------------------------------------------------------- */

/* While a value is below this bound, it stays below the limit in all iterations and does not wrap. */
static uint32_t bound_of(gpu_unroller *u, uint32_t block, uint32_t value, uint32_t limit) {
  uint8_t type = insn_at(u, value)->type;
  uint32_t step = hg_gpu_step_of(u, hg_gpu_root_of(u, value));
  if (insn_at(u, step)->op == SSA_CONST) return less(u, block, type, limit, insn_at(u, step)->bits * (u->times - 1));
  /* if that many steps exceed the type's numbers: 0 */
  uint32_t most = constant(u, type, most_of(type) / GPU_MOST_TIMES);
  uint32_t is_short = add_op(u, block, ATLAS_OP_set_le, SSA_PREDICATE, type, step, most);
  uint32_t by = add_op(u, block, ATLAS_OP_mul, type, 0, step, constant(u, type, u->times - 1));
  uint32_t bound = add_op(u, block, ATLAS_OP_max, type, 0, limit, by);
  bound = add_op(u, block, ATLAS_OP_sub, type, 0, bound, by);
  const ssa_insn choice = {.op = ATLAS_OP_sel, .type = type, .insn = SSA_NONE};
  return add_in(u, block, &choice, (uint32_t[]){is_short, bound, constant(u, type, 0)}, 3);
}

/* In the level's header: tests whether that many iterations may run at once. */
static uint32_t ask(gpu_unroller *u, uint32_t before, uint32_t head, const limits *l) {
  uint32_t all = SSA_NONE;
  u->first = head;
  for (uint32_t i = 0; i < l->count; i++) {
    uint32_t bound = bound_of(u, before, l->value[i], l->limit[i]), value = ahead(u, 0, l->value[i]);
    uint32_t below =
        add_op(u, head, ATLAS_OP_set_lt, SSA_PREDICATE, insn_at(u, l->value[i])->type, value, bound);
    all = i == 0 ? below : add_op(u, head, ATLAS_OP_pand, SSA_PREDICATE, SSA_PREDICATE, all, below);
  }
  return all;
}

/* ---- the iterations ---------------------------------------------------------------------------------------------- */

/* Copies an access that has a limit. If the step is a constant all copies share one index, since the sums do not wrap:
 * so they share an address, and neighbours are recognised. */
static void copy_swept(gpu_unroller *u, uint32_t block, uint32_t copy, uint32_t value) {
  ssa_insn insn = *insn_at(u, value);
  const ssa_insn *step = insn_at(u, hg_gpu_step_of(u, hg_gpu_root_of(u, arg_of(u, value, 0))));
  int is_constant = step->op == SSA_CONST;
  uint32_t args[2];
  if (is_constant) insn.bits += step->bits * copy;
  args[0] = mapped(u, is_constant ? 0 : copy, arg_of(u, value, 0));
  if (insn.arg_count > 1) args[1] = mapped(u, copy, arg_of(u, value, 1));
  uint32_t made = map_of(u, copy)[value] = add_in(u, block, &insn, args, insn.arg_count);
  if (!u->failed && !hg_array_push(u->g->allocator, &u->g->proven, made)) u->failed = 1;
}

static void copy_effect(gpu_unroller *u, uint32_t block, uint32_t copy, uint32_t value) {
  if (hg_gpu_is_late(u, value)) return;
  if (hg_gpu_is_swept(u, value)) copy_swept(u, block, copy, value);
  else if (hg_gpu_root_of(u, value) == SSA_NONE) (void)clone(u, block, copy, value);
}

static void copy_list(gpu_unroller *u, uint32_t from, uint32_t to, uint32_t copy) {
  for (uint32_t e = ssa_block_at(u->unit, from)->first_effect; e != SSA_NONE && !u->failed; e = insn_at(u, e)->next)
    if (map_of(u, copy)[e] == SSA_NONE) copy_effect(u, to, copy, e);
}

/* Copies the loads that every iteration performs. */
static void load_ahead(gpu_unroller *u) {
  for (uint32_t copy = 0; copy < u->times; copy++)
    for (uint32_t e = ssa_block_at(u->unit, u->loop.body)->first_effect; e != SSA_NONE; e = insn_at(u, e)->next)
      if (hg_gpu_is_early(u, e)) copy_swept(u, u->first, copy, e);
}

/* Copies the stores behind all iterations, so that nothing stands between their computations. */
static void store_behind(gpu_unroller *u, uint32_t last) {
  for (uint32_t copy = 0; copy < u->times; copy++)
    for (uint32_t i = 0; i < u->loop.block_count; i++)
      for (uint32_t e = ssa_block_at(u->unit, u->loop.block[i])->first_effect; e != SSA_NONE && !u->failed;
           e = insn_at(u, e)->next)
        if (hg_gpu_is_late(u, e)) copy_swept(u, last, copy, e);
}

/* Sets the header's other phis and values in an iteration that begins in block `to`. */
static void begin_iteration(gpu_unroller *u, uint32_t to, uint32_t copy) {
  for (uint32_t phi = ssa_block_at(u->unit, u->loop.header)->first_phi; phi != SSA_NONE && copy > 0;
       phi = insn_at(u, phi)->next)
    if (hg_gpu_step_of(u, phi) == SSA_NONE)
      map_of(u, copy)[phi] = mapped(u, copy - 1, arg_of(u, phi, hg_gpu_latch_side(u)));
  copy_list(u, u->loop.header, to, copy);
}

static void copy_phis(gpu_unroller *u, uint32_t block, uint32_t copy) {
  for (uint32_t phi = ssa_block_at(u->unit, block)->first_phi; phi != SSA_NONE; phi = insn_at(u, phi)->next) {
    uint32_t made = clone(u, SSA_NONE, copy, phi);
    if (!u->failed) ir_ssa_append_phi(u->unit, u->copy_of[block], made);
  }
}

/* The latch's end is not copied: the next iteration begins there. */
static void copy_end(gpu_unroller *u, uint32_t block, uint32_t copy) {
  const ssa_block from = *ssa_block_at(u->unit, block);
  if (block == u->loop.latch) return;
  uint32_t condition = from.condition == SSA_NONE ? SSA_NONE : mapped(u, copy, from.condition);
  ssa_block *to = ssa_block_at(u->unit, u->copy_of[block]);
  to->end = from.end;
  to->insn = from.insn;
  to->condition = condition;
  for (int s = 0; s < (from.end == SSA_BRANCH ? 2 : 1); s++) to->successor[s] = u->copy_of[from.successor[s]];
}

/* Copies one iteration, which begins in the block `at`; returns where it ends. */
static uint32_t copy_iteration(gpu_unroller *u, uint32_t at, uint32_t copy) {
  const gpu_loop *loop = &u->loop;
  begin_iteration(u, at, copy);
  for (uint32_t i = 0; i < loop->block_count && !u->failed; i++)
    u->copy_of[loop->block[i]] = loop->block[i] == loop->body ? at : add_block(u);
  for (uint32_t i = 0; i < loop->block_count && !u->failed; i++) {
    uint32_t block = loop->block[i];
    for (size_t k = 0; k < ssa_block_at(u->unit, block)->predecessors.count && block != loop->body; k++)
      add_predecessor(u, u->copy_of[block],
                      u->copy_of[((const uint32_t *)ssa_block_at(u->unit, block)->predecessors.data)[k]]);
    copy_phis(u, block, copy);
    copy_list(u, block, u->copy_of[block], copy);
  }
  for (uint32_t i = 0; i < loop->block_count && !u->failed; i++) copy_end(u, loop->block[i], copy);
  return u->copy_of[loop->latch];
}

/* ---- a level ----------------------------------------------------------------------------------------------------- */

static uint32_t first_phi(const gpu_unroller *u) { return ssa_block_at(u->unit, u->loop.header)->first_phi; }

/* Inserts a block on the way into the loop. */
static uint32_t enter_by(gpu_unroller *u) {
  uint32_t block = add_block(u), from = u->loop.entry, header = u->loop.header, side = 1 - hg_gpu_latch_side(u);
  if (u->failed) return 0;
  ssa_block *entry = ssa_block_at(u->unit, from);
  for (int s = 0; s < (entry->end == SSA_BRANCH ? 2 : 1); s++)
    if (entry->successor[s] == header) entry->successor[s] = block;
  add_predecessor(u, block, from);
  ((uint32_t *)ssa_block_at(u->unit, header)->predecessors.data)[side] = u->loop.entry = block;
  ssa_block *made = ssa_block_at(u->unit, block);
  made->end = SSA_JUMP;
  made->successor[0] = header;
  made->insn = ssa_block_at(u->unit, u->loop.latch)->insn;
  made->loop_insn = ssa_block_at(u->unit, header)->loop_insn; /* a level may begin there */
  return block;
}

/* Gives the level's header the loop's phis, and lets the loop begin with their values. Operands other than the first
 * are added later. */
static void add_phis(gpu_unroller *u, uint32_t head, uint32_t operands) {
  uint32_t side = 1 - hg_gpu_latch_side(u);
  for (uint32_t phi = first_phi(u); phi != SSA_NONE && !u->failed; phi = insn_at(u, phi)->next) {
    const ssa_insn insn = {.op = SSA_PHI, .type = insn_at(u, phi)->type, .insn = SSA_NONE};
    uint32_t given = arg_of(u, phi, side), args[3] = {given, given, given};
    uint32_t made = add_in(u, SSA_NONE, &insn, args, operands);
    if (u->failed) return;
    ir_ssa_append_phi(u->unit, head, made);
    ssa_args_of(u->unit, phi)[side] = made;
  }
}

static void forget(const gpu_unroller *u, uint32_t block) {
  for (uint32_t copy = 0; copy < GPU_MOST_TIMES; copy++) {
    uint32_t *map = u->map + (size_t)copy * u->values;
    for (uint32_t v = ssa_block_at(u->unit, block)->first_phi; v != SSA_NONE; v = insn_at(u, v)->next)
      if (v < u->values) map[v] = SSA_NONE;
    for (uint32_t v = ssa_block_at(u->unit, block)->first_effect; v != SSA_NONE; v = insn_at(u, v)->next)
      if (v < u->values) map[v] = SSA_NONE;
  }
}

static void forget_copies(const gpu_unroller *u) {
  for (uint32_t i = 0; i < u->loop.block_count; i++) forget(u, u->loop.block[i]);
  forget(u, u->loop.header);
}

/* The first copy begins with the header's phis. */
static void begin_copies(gpu_unroller *u) {
  uint32_t side = 1 - hg_gpu_latch_side(u);
  forget_copies(u);
  for (uint32_t phi = first_phi(u); phi != SSA_NONE; phi = insn_at(u, phi)->next)
    map_of(u, 0)[phi] = arg_of(u, phi, side);
}

/* The value of a phi of the loop behind all iterations. */
static uint32_t value_behind(gpu_unroller *u, uint32_t last, uint32_t phi) {
  uint32_t step = hg_gpu_step_of(u, phi), from = u->times - 1;
  uint8_t type = insn_at(u, phi)->type;
  if (step == SSA_NONE) return mapped(u, from, arg_of(u, phi, hg_gpu_latch_side(u)));
  if (insn_at(u, step)->op == SSA_CONST) {
    step = constant(u, type, insn_at(u, step)->bits * u->times);
    from = 0;
  }
  return add_op(u, last, ATLAS_OP_add, type, 0, ahead(u, from, phi), step);
}

/* `operand`: which operand of the phis comes from here. */
static void come_back(gpu_unroller *u, uint32_t last, uint32_t head, uint32_t operand) {
  for (uint32_t phi = first_phi(u); phi != SSA_NONE && !u->failed; phi = insn_at(u, phi)->next) {
    uint32_t behind = value_behind(u, last, phi);
    if (!u->failed) ssa_args_of(u->unit, map_of(u, 0)[phi])[operand] = behind;
  }
  ssa_block *end = ssa_block_at(u->unit, last);
  end->end = SSA_JUMP;
  end->successor[0] = head;
  end->insn = ssa_block_at(u->unit, u->loop.latch)->insn;
  add_predecessor(u, head, last);
}

/* Writes a level, whose copies begin in the block `first`. */
static void put_level(gpu_unroller *u, uint32_t head, uint32_t first, uint32_t operand) {
  uint32_t last = u->first = first;
  begin_copies(u);
  load_ahead(u);
  for (uint32_t copy = 0; copy < u->times && !u->failed; copy++) last = copy_iteration(u, last, copy);
  if (!u->failed) store_behind(u, last);
  if (u->failed) return;
  come_back(u, last, head, operand);
  const gpu_unrolled done = {.header = head, .operand = operand, .times = u->times};
  if (hg_array_append(u->g->allocator, &u->g->unrolled, &done, 1) == NULL) u->failed = 1;
}

/* The block leads to another if the test holds. */
static void branch(gpu_unroller *u, uint32_t from, uint32_t test, uint32_t to, uint32_t otherwise) {
  ssa_block *block = ssa_block_at(u->unit, from);
  block->end = SSA_BRANCH;
  block->condition = test;
  block->successor[0] = to;
  block->successor[1] = otherwise;
  block->insn = ssa_block_at(u->unit, u->loop.latch)->insn;
  add_predecessor(u, to, from);
}

/* If the header finds that few iterations may run at a time, another block tests whether many may as well: so a loop of
 * few iterations makes hardly more tests than with one level. */
static void put_levels(gpu_unroller *u, uint32_t before, const limits *l, uint32_t many, uint32_t few) {
  uint32_t head = enter_by(u), first = add_block(u), choice = many != few ? add_block(u) : first;
  uint32_t first_of_many = many != few ? add_block(u) : first;
  if (u->failed) return;
  add_phis(u, head, many != few ? 3 : 2);
  begin_copies(u);
  u->times = few;
  branch(u, head, ask(u, before, head, l), choice, u->loop.header);
  if (many != few) {
    u->times = many;
    branch(u, choice, ask(u, before, choice, l), first_of_many, first);
    add_predecessor(u, first, choice);
    put_level(u, head, first_of_many, 1);
  }
  u->times = few;
  if (!u->failed) put_level(u, head, first, many != few ? 2 : 1);
}

void hg_gpu_put_in_front(gpu_unroller *u, uint32_t many, uint32_t few) {
  limits l = {.count = 0};
  uint32_t before = enter_by(u);
  if (!u->failed && find_limits(u, before, &l)) put_levels(u, before, &l, many, few);
  forget_copies(u);
}
