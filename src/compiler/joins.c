/* joins.c - where edges meet in blocks that compute nothing, one shape for what can be written in several:
 *   - a block that holds phis alone, for the phis of the next block alone, is passed by: its edges bring their values
 * there themselves;
 *   - but what is chosen before a loop is chosen in a block before the loop: such a block stays where it is the only
 * way in, and a loop that is entered from several places with different values gets one.
 *
 * No bit changes: a phi is what its edge brings, whether one block says so or two. It ends: the first rule takes blocks
 * away and the second makes none that the first would take. A round is linear in edges and phi arguments. */
#include "compiler/passes.h"

#include "base/error.h"
#include "ir/ssa_order.h"
#include "ir/ssa_walk.h"

typedef struct joiner {
  ssa_unit *unit;
  const ssa_order *order;
  uint8_t *passed;  /* per block: edges lead past it */
  uint8_t *computes;/* per block: its phis are used otherwise than by the next block's */
  uint32_t *met;    /* per block: 1 + the last block that an edge from here was led to */
  uint32_t *side;   /* per block: which edge that was */
  hg_array stack;   /* uint32_t pairs: a block to pass by, and how many of its edges are done */
  hg_array brought; /* uint32_t: what the target's phis get, a row for each element of the stack and one more */
  hg_array sources; /* uint32_t: the new predecessors of the target */
  hg_array rows;    /* uint32_t: what each brings */
  int *changed;
} joiner;

static ssa_block *block_at(const joiner *j, uint32_t b) { return ssa_block_at(j->unit, b); }

static uint32_t predecessor(const joiner *j, uint32_t b, uint32_t i) {
  return ((const uint32_t *)block_at(j, b)->predecessors.data)[i];
}

static uint32_t *words(const hg_array *array) { return array->data; }

static hg_status append(const joiner *j, hg_array *array, const uint32_t *from, size_t count) {
  return hg_array_append(&j->unit->allocator, array, from, count) != NULL || count == 0
             ? HG_OK
             : hg_fail_memory("joins", count * sizeof *from);
}

static uint32_t count_phis(const joiner *j, uint32_t b) {
  uint32_t count = 0;
  for (uint32_t phi = block_at(j, b)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(j->unit, phi)->next) count++;
  return count;
}

/* ---- past blocks of phis ----------------------------------------------------------------------------------------- */

static int holds_phis_alone(const ssa_unit *unit, uint32_t b) {
  const ssa_block *block = ssa_block_at(unit, b);
  return !block->dead && block->end == SSA_JUMP && block->first_phi != SSA_NONE && block->first_effect == SSA_NONE &&
         block->successor[0] != b;
}

/* Leads an edge of `from` from one block to another. A block that has two edges to the target by now gets a block of
 * its own between for the second: which of them comes from where must stay plain. */
static hg_status lead(joiner *j, uint32_t from, uint32_t old, uint32_t target) {
  int again = j->met[from] == target + 1;
  uint32_t side = again ? 1 - j->side[from] : block_at(j, from)->successor[0] == old ? 0 : 1;
  uint32_t source = from;
  if (again) {
    source = ir_ssa_add_block(j->unit);
    if (source == SSA_NONE) return hg_fail_memory("joins", sizeof(ssa_block));
    block_at(j, source)->end = SSA_JUMP;
    block_at(j, source)->insn = block_at(j, from)->insn;
    block_at(j, source)->successor[0] = target;
    HG_TRY(append(j, &block_at(j, source)->predecessors, &from, 1));
  } else {
    j->met[from] = target + 1;
    j->side[from] = side;
  }
  block_at(j, from)->successor[side] = again ? source : target;
  return append(j, &j->sources, &source, 1);
}

/* The edge `from` -> `to` brings the last row of j->brought: to the target, or through `from` where that is passed. */
static hg_status bring(joiner *j, uint32_t from, uint32_t to, uint32_t target, uint32_t width) {
  if (j->passed[from]) return append(j, &j->stack, (uint32_t[]){from, 0}, 2);
  HG_TRY(lead(j, from, to, target));
  HG_TRY(append(j, &j->rows, NULL, width));
  for (uint32_t i = 0; i < width; i++) {
    words(&j->rows)[j->rows.count - width + i] = words(&j->brought)[j->brought.count - width + i];
  }
  j->brought.count -= width;
  return HG_OK;
}

/* One more row: the last one as it comes along edge `i` of block b. */
static hg_status step_back(joiner *j, uint32_t b, uint32_t i, uint32_t width) {
  size_t last = j->brought.count - width;
  HG_TRY(append(j, &j->brought, NULL, width));
  for (uint32_t k = 0; k < width; k++) {
    uint32_t value = words(&j->brought)[last + k];
    const ssa_insn *insn = ssa_insn_at(j->unit, value);
    if (insn->op == SSA_PHI && insn->block == b) value = ssa_args_of(j->unit, value)[i];
    words(&j->brought)[last + width + k] = value;
  }
  return HG_OK;
}

static void bury(joiner *j, uint32_t b) {
  ssa_block *block = block_at(j, b);
  block_at(j, block->successor[0])->library &= block->library; /* a loop may begin there now */
  block->dead = 1;
  block->successor[0] = SSA_NONE;
  block->first_phi = SSA_NONE;
  block->predecessors.count = 0;
  *j->changed = 1;
}

/* Edge i of the target, and through blocks that are passed all that lead there. */
static hg_status follow_back(joiner *j, uint32_t target, uint32_t i, uint32_t width) {
  for (uint32_t phi = block_at(j, target)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(j->unit, phi)->next)
    HG_TRY(append(j, &j->brought, ssa_args_of(j->unit, phi) + i, 1));
  HG_TRY(bring(j, predecessor(j, target, i), target, target, width));
  while (j->stack.count > 0) {
    uint32_t *top = words(&j->stack) + j->stack.count - 2, b = top[0], edge = top[1]++;
    if (edge < block_at(j, b)->predecessors.count) {
      HG_TRY(step_back(j, b, edge, width));
      HG_TRY(bring(j, predecessor(j, b, edge), b, target, width));
      continue;
    }
    j->stack.count -= 2;
    j->brought.count -= width;
    bury(j, b);
  }
  return HG_OK;
}

/* Predecessors and phi arguments from j->sources and j->rows. */
static hg_status take_over(joiner *j, uint32_t target, uint32_t width) {
  uint32_t count = (uint32_t)j->sources.count, column = 0;
  block_at(j, target)->predecessors.count = 0;
  HG_TRY(append(j, &block_at(j, target)->predecessors, j->sources.data, count));
  for (uint32_t phi = block_at(j, target)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(j->unit, phi)->next) {
    uint32_t first = (uint32_t)j->unit->args.count;
    HG_TRY(append(j, &j->unit->args, NULL, count));
    ssa_insn_at(j->unit, phi)->args = first;
    ssa_insn_at(j->unit, phi)->arg_count = count;
    for (uint32_t i = 0; i < count; i++)
      ssa_args_of(j->unit, phi)[i] = words(&j->rows)[(size_t)i * width + column];
    column++;
  }
  return HG_OK;
}

static hg_status pass_joins(joiner *j, uint32_t target) {
  uint32_t count = (uint32_t)block_at(j, target)->predecessors.count, width = count_phis(j, target);
  int any = 0;
  for (uint32_t i = 0; i < count; i++) any |= j->passed[predecessor(j, target, i)];
  if (!any || j->passed[target]) return HG_OK;
  j->sources.count = j->rows.count = 0;
  for (uint32_t i = 0; i < count; i++) HG_TRY(follow_back(j, target, i, width));
  return take_over(j, target, width);
}

/* Marks blocks with phis that anything but a phi of the next block needs. */
static void note_uses(const joiner *j, uint32_t user) {
  const ssa_insn *insn = ssa_insn_at(j->unit, user);
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    const ssa_insn *arg = ssa_insn_at(j->unit, ssa_args_of(j->unit, user)[i]);
    if (arg->op != SSA_PHI) continue;
    int by_next =
        insn->op == SSA_PHI && insn->block == block_at(j, arg->block)->successor[0] && insn->block != arg->block;
    if (!by_next) j->computes[arg->block] = 1;
  }
}

static hg_status find_uses(const joiner *j) {
  hg_array values = {.element_size = sizeof(uint32_t)};
  hg_status status = ir_ssa_walk(j->unit, j->order, &values);
  for (size_t k = 0; k < values.count && status == HG_OK; k++) note_uses(j, words(&values)[k]);
  hg_array_release(&j->unit->allocator, &values);
  return status;
}

/* Among those passed there is no ring: of the edges of a ring one leads back. */
static hg_status find_passed(joiner *j) {
  int any = 0;
  for (uint32_t k = 1; k < j->order->count; k++) {
    uint32_t b = j->order->block[k];
    any |= j->passed[b] = (uint8_t)(holds_phis_alone(j->unit, b) &&
                                    !ssa_dominates(j->order, b, block_at(j, b)->successor[0]));
  }
  if (!any) return HG_OK;
  HG_TRY(find_uses(j));
  for (uint32_t k = 1; k < j->order->count; k++) {
    uint32_t b = j->order->block[k], next = block_at(j, b)->successor[0];
    j->passed[b] &=
        (uint8_t)(!j->computes[b] && (j->passed[b] == 0 || j->order->position[next] > k || !j->passed[next]));
  }
  return HG_OK;
}

/* ---- before loops ------------------------------------------------------------------------------------------------ */

static int enters(const joiner *j, uint32_t header, uint32_t i) {
  return !ssa_dominates(j->order, header, predecessor(j, header, i));
}

/* What all entries bring to a phi of the header; SSA_NONE: not the same. */
static uint32_t common_entry(const joiner *j, uint32_t header, uint32_t phi) {
  uint32_t common = SSA_NONE;
  for (uint32_t i = 0; i < ssa_insn_at(j->unit, phi)->arg_count; i++) {
    uint32_t arg = ssa_args_of(j->unit, phi)[i];
    if (!enters(j, header, i)) continue;
    if (common != SSA_NONE && common != arg) return SSA_NONE;
    common = arg;
  }
  return common;
}

static int needs_entry(const joiner *j, uint32_t header) {
  uint32_t count = (uint32_t)block_at(j, header)->predecessors.count, entries = 0;
  for (uint32_t i = 0; i < count; i++) entries += enters(j, header, i) ? 1u : 0u;
  if (entries < 2 || entries == count) return 0;
  for (uint32_t phi = block_at(j, header)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(j->unit, phi)->next)
    if (common_entry(j, header, phi) == SSA_NONE) return 1;
  return 0;
}

/* `first`, then what belongs to the edges that close the loop, each one place up at least: there are two entries. */
static uint32_t keep_closing(const joiner *j, uint32_t header, uint32_t *list, uint32_t first) {
  uint32_t count = (uint32_t)block_at(j, header)->predecessors.count, kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (enters(j, header, i)) continue;
    uint32_t next = list[i];
    list[kept++] = first;
    first = next;
  }
  list[kept++] = first;
  return kept;
}

/* What the entries bring becomes a phi of `entry`, which comes first among the header's predecessors. */
static hg_status split_phi(joiner *j, uint32_t header, uint32_t phi, uint32_t entry) {
  uint32_t chosen = common_entry(j, header, phi), moved = 0;
  if (chosen == SSA_NONE) {
    ssa_insn made = *ssa_insn_at(j->unit, phi);
    chosen = ir_ssa_add(j->unit, &made, (uint32_t)block_at(j, entry)->predecessors.count);
    if (chosen == SSA_NONE) return hg_fail_memory("joins", sizeof made);
    for (uint32_t i = 0; i < ssa_insn_at(j->unit, phi)->arg_count; i++)
      if (enters(j, header, i)) ssa_args_of(j->unit, chosen)[moved++] = ssa_args_of(j->unit, phi)[i];
    ir_ssa_append_phi(j->unit, entry, chosen);
  }
  ssa_insn_at(j->unit, phi)->arg_count = keep_closing(j, header, ssa_args_of(j->unit, phi), chosen);
  return HG_OK;
}

static hg_status make_entry(joiner *j, uint32_t header) {
  uint32_t entry = ir_ssa_add_block(j->unit);
  if (entry == SSA_NONE) return hg_fail_memory("joins", sizeof(ssa_block));
  block_at(j, entry)->end = SSA_JUMP;
  block_at(j, entry)->successor[0] = header;
  for (uint32_t i = 0; i < block_at(j, header)->predecessors.count; i++) {
    uint32_t from = predecessor(j, header, i);
    if (!enters(j, header, i)) continue;
    HG_TRY(append(j, &block_at(j, entry)->predecessors, &from, 1));
    for (int s = 0; s < 2; s++)
      if (block_at(j, from)->successor[s] == header) block_at(j, from)->successor[s] = entry;
  }
  for (uint32_t phi = block_at(j, header)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(j->unit, phi)->next)
    HG_TRY(split_phi(j, header, phi, entry));
  hg_array *list = &block_at(j, header)->predecessors;
  list->count = keep_closing(j, header, list->data, entry);
  *j->changed = 1;
  return HG_OK;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* Either rule needs such a block: one of phis alone, or one with two entries and a way back. */
static int may_apply(const ssa_unit *unit) {
  for (uint32_t b = 0; b < unit->blocks.count; b++) {
    const ssa_block *block = ssa_block_at(unit, b);
    if (!block->dead && block->first_phi != SSA_NONE && (block->predecessors.count > 2 || holds_phis_alone(unit, b)))
      return 1;
  }
  return 0;
}

static hg_status shape(joiner *j) {
  HG_TRY(find_passed(j));
  for (uint32_t k = 0; k < j->order->count; k++) HG_TRY(pass_joins(j, j->order->block[k]));
  int passed = *j->changed;
  for (uint32_t k = 0; k < j->order->count && !passed; k++) /* the order is still the unit's */
    if (needs_entry(j, j->order->block[k])) HG_TRY(make_entry(j, j->order->block[k]));
  return HG_OK;
}

static hg_status simplify_joins(ssa_unit *unit, const ssa_order *order, int *changed) {
  size_t n = unit->blocks.count;
  joiner j = {.unit = unit, .order = order, .changed = changed};
  j.stack.element_size = j.brought.element_size = j.sources.element_size = j.rows.element_size = sizeof(uint32_t);
  j.met = hg_allocate(&unit->allocator, n, 2 * sizeof(uint32_t) + 2);
  if (j.met == NULL) return hg_fail_memory("joins", n * (2 * sizeof(uint32_t) + 2));
  j.side = j.met + n;
  j.passed = (uint8_t *)(j.side + n);
  j.computes = j.passed + n;
  hg_status status = shape(&j);
  hg_release(&unit->allocator, j.met);
  hg_array_release(&unit->allocator, &j.stack);
  hg_array_release(&unit->allocator, &j.brought);
  hg_array_release(&unit->allocator, &j.sources);
  hg_array_release(&unit->allocator, &j.rows);
  return status;
}

hg_status hg_pass_joins(const atlas_program *program, ssa_unit *unit, int *changed) {
  ssa_order order;
  (void)program;
  if (!may_apply(unit)) return HG_OK;
  ir_ssa_resolve_all(unit);
  hg_status status = ir_ssa_order_build(unit, &order);
  if (status == HG_OK) status = simplify_joins(unit, &order, changed);
  ir_ssa_order_release(unit, &order);
  return status;
}
