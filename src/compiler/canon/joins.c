/* joins.c - one shape for joins that can be written in several ways:
 *   - a block that contains nothing but phis, which only phis of its successor use, is bypassed: its incoming edges
 * lead to the successor, whose phis get the arguments;
 *   - except before loops: such a block stays where it is the preheader, and a loop that is entered over several edges
 * with different phi arguments gets a preheader.
 *
 * No bit changes: an argument reaches the same phi through one block or two. The pass ends: the first rule removes
 * blocks and the second adds none that the first would remove. A round is linear in edges and phi arguments. */
#include "compiler/canon/passes.h"

#include "base/error.h"
#include "ir/ssa_order.h"
#include "ir/ssa_walk.h"

typedef struct joiner {
  ssa_unit *unit;
  const ssa_order *order;
  uint8_t *bypassed;     /* per block */
  uint8_t *computes;     /* per block: its phis have other users than the phis of its successor */
  uint32_t *target_of;   /* per block: 1 + the last target that one of its edges was redirected to */
  uint32_t *side;        /* per block: which edge that was */
  hg_array stack;        /* uint32_t pairs: a bypassed block, and how many of its incoming edges are done */
  hg_array
      pending_args; /* uint32_t: arguments of the target's phis, a row for each element of the stack and one more */
  hg_array sources;      /* uint32_t: the new predecessors of the target */
  hg_array rows;         /* uint32_t: the phi arguments of each */
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

/* Redirects an edge of `from` from block `old` to `target`. Where it is the second edge of `from` to the target, it is
 * split, so that the two can be told apart. */
static hg_status redirect_edge(joiner *j, uint32_t from, uint32_t old, uint32_t target) {
  int again = j->target_of[from] == target + 1;
  uint32_t side = again ? 1 - j->side[from] : block_at(j, from)->successor[0] == old ? 0 : 1;
  uint32_t source = from;
  ir_ssa_take_jump(j->unit, from, old);
  if (again) {
    source = ir_ssa_add_block(j->unit);
    if (source == SSA_NONE) return hg_fail_memory("joins", sizeof(ssa_block));
    block_at(j, source)->end = SSA_JUMP;
    block_at(j, source)->insn = block_at(j, from)->insn;
    block_at(j, source)->successor[0] = target;
    HG_TRY(append(j, &block_at(j, source)->predecessors, &from, 1));
  } else {
    j->target_of[from] = target + 1;
    j->side[from] = side;
  }
  block_at(j, from)->successor[side] = again ? source : target;
  return append(j, &j->sources, &source, 1);
}

/* The edge `from` -> `to` carries the last row of j->pending_args: it is redirected to the target, or `from` is
 * followed back where it is bypassed. */
static hg_status follow_edge(joiner *j, uint32_t from, uint32_t to, uint32_t target, uint32_t phi_count) {
  if (j->bypassed[from]) return append(j, &j->stack, (uint32_t[]){from, 0}, 2);
  HG_TRY(redirect_edge(j, from, to, target));
  HG_TRY(append(j, &j->rows, NULL, phi_count));
  for (uint32_t i = 0; i < phi_count; i++) {
    words(&j->rows)[j->rows.count - phi_count + i] = words(&j->pending_args)[j->pending_args.count - phi_count + i];
  }
  j->pending_args.count -= phi_count;
  return HG_OK;
}

/* Pushes a row: the last one, with the phis of block b replaced by their arguments for its incoming edge `i`. */
static hg_status push_edge_arguments(joiner *j, uint32_t b, uint32_t i, uint32_t phi_count) {
  size_t last = j->pending_args.count - phi_count;
  HG_TRY(append(j, &j->pending_args, NULL, phi_count));
  for (uint32_t k = 0; k < phi_count; k++) {
    uint32_t value = words(&j->pending_args)[last + k];
    const ssa_insn *insn = ssa_insn_at(j->unit, value);
    if (insn->op == SSA_PHI && insn->block == b) value = ssa_args_of(j->unit, value)[i];
    words(&j->pending_args)[last + phi_count + k] = value;
  }
  return HG_OK;
}

static void remove_block(joiner *j, uint32_t b) {
  ssa_block *block = block_at(j, b);
  ir_ssa_pass_by(j->unit, b);
  block->dead = 1;
  block->successor[0] = SSA_NONE;
  block->first_phi = SSA_NONE;
  block->predecessors.count = 0;
  *j->changed = 1;
}

/* Follows edge i of the target back through bypassed blocks, and redirects every edge into them. */
static hg_status follow_edges_back(joiner *j, uint32_t target, uint32_t i, uint32_t phi_count) {
  for (uint32_t phi = block_at(j, target)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(j->unit, phi)->next)
    HG_TRY(append(j, &j->pending_args, ssa_args_of(j->unit, phi) + i, 1));
  HG_TRY(follow_edge(j, predecessor(j, target, i), target, target, phi_count));
  while (j->stack.count > 0) {
    uint32_t *top = words(&j->stack) + j->stack.count - 2, b = top[0], edge = top[1]++;
    if (edge < block_at(j, b)->predecessors.count) {
      HG_TRY(push_edge_arguments(j, b, edge, phi_count));
      HG_TRY(follow_edge(j, predecessor(j, b, edge), b, target, phi_count));
      continue;
    }
    j->stack.count -= 2;
    j->pending_args.count -= phi_count;
    remove_block(j, b);
  }
  return HG_OK;
}

/* Predecessors and phi arguments from j->sources and j->rows. */
static hg_status update_target(joiner *j, uint32_t target, uint32_t phi_count) {
  uint32_t count = (uint32_t)j->sources.count, column = 0;
  block_at(j, target)->predecessors.count = 0;
  HG_TRY(append(j, &block_at(j, target)->predecessors, j->sources.data, count));
  for (uint32_t phi = block_at(j, target)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(j->unit, phi)->next) {
    uint32_t first = (uint32_t)j->unit->args.count;
    HG_TRY(append(j, &j->unit->args, NULL, count));
    ssa_insn_at(j->unit, phi)->args = first;
    ssa_insn_at(j->unit, phi)->arg_count = count;
    for (uint32_t i = 0; i < count; i++)
      ssa_args_of(j->unit, phi)[i] = words(&j->rows)[(size_t)i * phi_count + column];
    column++;
  }
  return HG_OK;
}

static hg_status bypass_joins(joiner *j, uint32_t target) {
  uint32_t count = (uint32_t)block_at(j, target)->predecessors.count, phi_count = count_phis(j, target);
  int any = 0;
  for (uint32_t i = 0; i < count; i++) any |= j->bypassed[predecessor(j, target, i)];
  if (!any || j->bypassed[target]) return HG_OK;
  j->sources.count = j->rows.count = 0;
  for (uint32_t i = 0; i < count; i++) HG_TRY(follow_edges_back(j, target, i, phi_count));
  return update_target(j, target, phi_count);
}

/* Marks blocks whose phis have other users than the phis of the successor. */
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

/* Bypassed blocks never form a cycle, because every cycle contains a back edge. */
static hg_status find_bypassed(joiner *j) {
  int any = 0;
  for (uint32_t k = 1; k < j->order->count; k++) {
    uint32_t b = j->order->block[k];
    any |= j->bypassed[b] = (uint8_t)(holds_phis_alone(j->unit, b) &&
                                    !ssa_dominates(j->order, b, block_at(j, b)->successor[0]));
  }
  if (!any) return HG_OK;
  HG_TRY(find_uses(j));
  for (uint32_t k = 1; k < j->order->count; k++) {
    uint32_t b = j->order->block[k], next = block_at(j, b)->successor[0];
    j->bypassed[b] &=
        (uint8_t)(!j->computes[b] && (j->bypassed[b] == 0 || j->order->position[next] > k || !j->bypassed[next]));
  }
  return HG_OK;
}

/* ---- before loops ------------------------------------------------------------------------------------------------ */

static int enters(const joiner *j, uint32_t header, uint32_t i) {
  return !ssa_dominates(j->order, header, predecessor(j, header, i));
}

/* The argument of a header's phi on all entering edges; SSA_NONE if they differ. */
static uint32_t common_entry_argument(const joiner *j, uint32_t header, uint32_t phi) {
  uint32_t common = SSA_NONE;
  for (uint32_t i = 0; i < ssa_insn_at(j->unit, phi)->arg_count; i++) {
    uint32_t arg = ssa_args_of(j->unit, phi)[i];
    if (!enters(j, header, i)) continue;
    if (common != SSA_NONE && common != arg) return SSA_NONE;
    common = arg;
  }
  return common;
}

static int needs_preheader(const joiner *j, uint32_t header) {
  uint32_t count = (uint32_t)block_at(j, header)->predecessors.count, entries = 0;
  for (uint32_t i = 0; i < count; i++) entries += enters(j, header, i) ? 1u : 0u;
  if (entries < 2 || entries == count) return 0;
  for (uint32_t phi = block_at(j, header)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(j->unit, phi)->next)
    if (common_entry_argument(j, header, phi) == SSA_NONE) return 1;
  return 0;
}

/* Keeps `first`, then the elements of the back edges. No element is overwritten before it is read: at least two edges
 * enter the loop. */
static uint32_t keep_back_edges(const joiner *j, uint32_t header, uint32_t *list, uint32_t first) {
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

/* The arguments on entering edges become a phi of `preheader`, the first of the header's predecessors. */
static hg_status split_phi(joiner *j, uint32_t header, uint32_t phi, uint32_t preheader) {
  uint32_t chosen = common_entry_argument(j, header, phi), moved = 0;
  if (chosen == SSA_NONE) {
    ssa_insn made = *ssa_insn_at(j->unit, phi);
    chosen = ir_ssa_add(j->unit, &made, (uint32_t)block_at(j, preheader)->predecessors.count);
    if (chosen == SSA_NONE) return hg_fail_memory("joins", sizeof made);
    for (uint32_t i = 0; i < ssa_insn_at(j->unit, phi)->arg_count; i++)
      if (enters(j, header, i)) ssa_args_of(j->unit, chosen)[moved++] = ssa_args_of(j->unit, phi)[i];
    ir_ssa_append_phi(j->unit, preheader, chosen);
  }
  ssa_insn_at(j->unit, phi)->arg_count = keep_back_edges(j, header, ssa_args_of(j->unit, phi), chosen);
  return HG_OK;
}

static hg_status add_preheader(joiner *j, uint32_t header) {
  uint32_t preheader = ir_ssa_add_block(j->unit);
  if (preheader == SSA_NONE) return hg_fail_memory("joins", sizeof(ssa_block));
  block_at(j, preheader)->end = SSA_JUMP;
  block_at(j, preheader)->successor[0] = header;
  for (uint32_t i = 0; i < block_at(j, header)->predecessors.count; i++) {
    uint32_t from = predecessor(j, header, i);
    if (!enters(j, header, i)) continue;
    HG_TRY(append(j, &block_at(j, preheader)->predecessors, &from, 1));
    for (int s = 0; s < 2; s++)
      if (block_at(j, from)->successor[s] == header) block_at(j, from)->successor[s] = preheader;
  }
  for (uint32_t phi = block_at(j, header)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(j->unit, phi)->next)
    HG_TRY(split_phi(j, header, phi, preheader));
  hg_array *list = &block_at(j, header)->predecessors;
  list->count = keep_back_edges(j, header, list->data, preheader);
  *j->changed = 1;
  return HG_OK;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* Each rule needs a block with phis: one that contains nothing else, or a header that two edges enter. */
static int may_apply(const ssa_unit *unit) {
  for (uint32_t b = 0; b < unit->blocks.count; b++) {
    const ssa_block *block = ssa_block_at(unit, b);
    if (!block->dead && block->first_phi != SSA_NONE && (block->predecessors.count > 2 || holds_phis_alone(unit, b)))
      return 1;
  }
  return 0;
}

static hg_status apply_rules(joiner *j) {
  HG_TRY(find_bypassed(j));
  for (uint32_t k = 0; k < j->order->count; k++) HG_TRY(bypass_joins(j, j->order->block[k]));
  int bypassed = *j->changed;
  for (uint32_t k = 0; k < j->order->count && !bypassed; k++) /* the order is still the unit's */
    if (needs_preheader(j, j->order->block[k])) HG_TRY(add_preheader(j, j->order->block[k]));
  return HG_OK;
}

static hg_status simplify_joins(ssa_unit *unit, const ssa_order *order, int *changed) {
  size_t n = unit->blocks.count;
  joiner j = {.unit = unit, .order = order, .changed = changed};
  j.stack.element_size = j.pending_args.element_size = j.sources.element_size = j.rows.element_size = sizeof(uint32_t);
  j.target_of = hg_allocate(&unit->allocator, n, 2 * sizeof(uint32_t) + 2);
  if (j.target_of == NULL) return hg_fail_memory("joins", n * (2 * sizeof(uint32_t) + 2));
  j.side = j.target_of + n;
  j.bypassed = (uint8_t *)(j.side + n);
  j.computes = j.bypassed + n;
  hg_status status = apply_rules(&j);
  hg_release(&unit->allocator, j.target_of);
  hg_array_release(&unit->allocator, &j.stack);
  hg_array_release(&unit->allocator, &j.pending_args);
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
