/* edges.c - which edges the moves of phis stand on (out_of_ssa.h).
 *
 * A critical edge into a phi is split: the moves of its phis get a block of their own. That is all where control may
 * diverge. Where a barrier needs uniform control, though, a move counts as divergent when it stands on either side of a
 * divergent branch, even if both sides move the same value: the canonical form has merged the inner join, where the two
 * sides reconverged, into the outer one. The dominator tree shows where inner joins belong: the edges that leave the
 * subtree of a block for one join are merged in a new block before that join. The back edges of a loop are merged in a
 * block of their own too, and so are the edges that enter it. The canonical form removes such blocks again
 * (clean_flow.c, joins.c). */
#include "compiler/canon/out_of_ssa.h"

#include "base/error.h"

typedef struct edge {
  uint32_t from; /* a block: of the canonical unit, or made by merge_edges */
  uint32_t side; /* which of its successors */
  uint32_t row;  /* its phi arguments: a row of `rows` */
} edge;

typedef struct frame {
  uint32_t node;  /* a block of the dominator tree */
  uint32_t first; /* the edges from here on leave the subtree of `node` */
} frame;

typedef struct merger {
  ssa_unit *unit;
  ssa_order order;
  hg_array incoming; /* edge: all that lead to `join` in the canonical unit */
  hg_array edges;    /* edge: those that lead there now */
  hg_array frames;   /* frame: a path down the dominator tree */
  hg_array rows;     /* uint32_t: one argument for each phi of `join`, edge by edge */
  uint32_t join, phi_count;
} merger;

static hg_status out_of_memory(void) { return hg_fail_memory("the edges of a program", 0); }

static ssa_block *block_at(const ssa_unit *unit, uint32_t b) { return ssa_block_at(unit, b); }

static uint32_t predecessor(const ssa_unit *unit, uint32_t b, uint32_t i) {
  return ((const uint32_t *)ssa_block_at(unit, b)->predecessors.data)[i];
}

static edge *edges_of(const merger *g) { return g->edges.data; }

static hg_status push(const merger *g, hg_array *array, const void *element) {
  return hg_array_append(&g->unit->allocator, array, element, 1) != NULL ? HG_OK : out_of_memory();
}

/* ---- meeting ----------------------------------------------------------------------------------------------------- */

static uint32_t edge_argument(const merger *g, uint32_t row, uint32_t column) {
  return ((const uint32_t *)g->rows.data)[(size_t)row * g->phi_count + column];
}

/* 1 if all edges from `first` on have the same argument for one phi. */
static int same_argument(const merger *g, uint32_t column, uint32_t first) {
  uint32_t i = first + 1;
  while (i < g->edges.count &&
         edge_argument(g, edges_of(g)[i].row, column) == edge_argument(g, edges_of(g)[first].row, column))
    i++;
  return i == g->edges.count;
}

/* The argument of the merged edge for one phi: the argument that all edges share, or else a new phi in `block`. */
static hg_status merged_argument(merger *g, uint32_t phi, uint32_t column, uint32_t first, uint32_t block,
                                 uint32_t *out) {
  uint32_t count = (uint32_t)g->edges.count - first;
  *out = edge_argument(g, edges_of(g)[first].row, column);
  if (same_argument(g, column, first)) return HG_OK;
  ssa_insn new_phi = {.op = SSA_PHI, .type = ssa_insn_at(g->unit, phi)->type, .insn = SSA_NONE};
  *out = ir_ssa_add(g->unit, &new_phi, count);
  if (*out == SSA_NONE) return out_of_memory();
  for (uint32_t i = 0; i < count; i++)
    ssa_args_of(g->unit, *out)[i] = edge_argument(g, edges_of(g)[first + i].row, column);
  ir_ssa_append_phi(g->unit, block, *out);
  return HG_OK;
}

/* Merges the edges from `first` on, if all of them have the same argument for some phi: they lead to a new block, whose
 * edge to the join stands for them. */
static hg_status merge_edges(merger *g, uint32_t first) {
  uint32_t column = 0, row = (uint32_t)(g->rows.count / g->phi_count);
  if (g->edges.count - first < 2) return HG_OK;
  while (column < g->phi_count && !same_argument(g, column, first)) column++;
  if (column == g->phi_count) return HG_OK;
  column = 0;
  uint32_t block = ir_ssa_add_block(g->unit);
  if (block == SSA_NONE) return out_of_memory();
  block_at(g->unit, block)->end = SSA_JUMP;
  block_at(g->unit, block)->successor[0] = g->join;
  for (uint32_t i = first; i < g->edges.count; i++) {
    const edge *e = &edges_of(g)[i];
    block_at(g->unit, e->from)->successor[e->side] = block;
    if (!hg_array_push(&g->unit->allocator, &block_at(g->unit, block)->predecessors, e->from)) return out_of_memory();
  }
  for (uint32_t phi = block_at(g->unit, g->join)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(g->unit, phi)->next) {
    uint32_t value;
    HG_TRY(merged_argument(g, phi, column++, first, block, &value));
    if (!hg_array_push(&g->unit->allocator, &g->rows, value)) return out_of_memory();
  }
  edges_of(g)[first] = (edge){block, 0, row};
  g->edges.count = first + 1;
  return HG_OK;
}

/* ---- along the dominator tree ------------------------------------------------------------------------------------ */

static frame *top(const merger *g) { return (frame *)g->frames.data + g->frames.count - 1; }

/* Closes the frames outside the subtree of `node`, which dominates the block of the last one. */
static hg_status merge_below(merger *g, uint32_t node) {
  uint32_t first = (uint32_t)g->edges.count;
  while (g->frames.count > 0 && !ssa_dominates(&g->order, top(g)->node, node)) {
    first = top(g)->first;
    HG_TRY(merge_edges(g, first));
    g->frames.count--;
  }
  if (first == g->edges.count || (g->frames.count > 0 && top(g)->node == node)) return HG_OK;
  return push(g, &g->frames, &(frame){node, first});
}

static uint32_t common_dominator(const merger *g, uint32_t a, uint32_t b) {
  while (!ssa_dominates(&g->order, a, b)) a = g->order.dominator[a];
  return a;
}

/* The edges in[0..count), in preorder of the dominator tree by their blocks. `merge_rest`: in the end all are merged.
 */
static hg_status merge_along_tree(merger *g, const edge *in, uint32_t count, int merge_rest) {
  uint32_t first = (uint32_t)g->edges.count;
  g->frames.count = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (g->frames.count > 0) HG_TRY(merge_below(g, common_dominator(g, top(g)->node, in[i].from)));
    uint32_t at = (uint32_t)g->edges.count;
    HG_TRY(push(g, &g->edges, &in[i]));
    if (g->frames.count == 0 || top(g)->node != in[i].from) HG_TRY(push(g, &g->frames, &(frame){in[i].from, at}));
  }
  while (g->frames.count > 1) { /* the outermost subtree is that of the branch all edges come from */
    HG_TRY(merge_edges(g, top(g)->first));
    g->frames.count--;
  }
  return merge_rest ? merge_edges(g, first) : HG_OK;
}

/* ---- joins ------------------------------------------------------------------------------------------------------- */

static int closes_loop(const merger *g, const edge *e) { return ssa_dominates(&g->order, g->join, e->from); }

static hg_status list_incoming(merger *g) {
  uint32_t count = (uint32_t)block_at(g->unit, g->join)->predecessors.count;
  g->incoming.count = g->edges.count = g->rows.count = 0;
  g->phi_count = 0;
  for (uint32_t phi = block_at(g->unit, g->join)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(g->unit, phi)->next)
    g->phi_count++;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t from = predecessor(g->unit, g->join, i);
    int first = block_at(g->unit, from)->successor[0] == g->join && g->order.edge[2 * (size_t)from] == i;
    HG_TRY(push(g, &g->incoming, &(edge){from, first ? 0 : 1, i}));
    for (uint32_t phi = block_at(g->unit, g->join)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(g->unit, phi)->next)
      if (!hg_array_push(&g->unit->allocator, &g->rows, ssa_args_of(g->unit, phi)[i])) return out_of_memory();
  }
  return HG_OK;
}

/* Entering edges first, then back edges, each in preorder of the dominator tree. Insertion sort: predecessors are in
 * block order, which is nearly that preorder. */
static uint32_t sort_incoming(const merger *g) {
  edge *in = g->incoming.data;
  uint32_t entering = 0;
  for (uint32_t i = 0; i < g->incoming.count; i++) {
    edge e = in[i];
    int closes = closes_loop(g, &e);
    uint32_t k = i;
    for (; k > 0; k--) {
      int other = closes_loop(g, &in[k - 1]);
      if (other < closes || (other == closes && g->order.open[in[k - 1].from] <= g->order.open[e.from])) break;
      in[k] = in[k - 1];
    }
    in[k] = e;
    entering += !closes;
  }
  return entering;
}

static hg_status update_join(merger *g) {
  ssa_block *join = block_at(g->unit, g->join);
  uint32_t column = 0, count = (uint32_t)g->edges.count;
  for (uint32_t i = 0; i < count; i++) ((uint32_t *)join->predecessors.data)[i] = edges_of(g)[i].from;
  join->predecessors.count = count;
  for (uint32_t phi = join->first_phi; phi != SSA_NONE; phi = ssa_insn_at(g->unit, phi)->next, column++) {
    ssa_insn_at(g->unit, phi)->arg_count = count;
    for (uint32_t i = 0; i < count; i++) ssa_args_of(g->unit, phi)[i] = edge_argument(g, edges_of(g)[i].row, column);
  }
  return HG_OK;
}

static hg_status merge_into_join(merger *g, uint32_t join) {
  if (block_at(g->unit, join)->first_phi == SSA_NONE || block_at(g->unit, join)->predecessors.count < 3) return HG_OK;
  g->join = join;
  HG_TRY(list_incoming(g));
  uint32_t entering = sort_incoming(g), closing = (uint32_t)g->incoming.count - entering;
  HG_TRY(merge_along_tree(g, g->incoming.data, entering, closing > 0));
  HG_TRY(merge_along_tree(g, (const edge *)g->incoming.data + entering, closing, 1));
  return update_join(g);
}

static hg_status merge_into_joins(merger *g) {
  HG_TRY(ir_ssa_order_build(g->unit, &g->order));
  for (uint32_t k = 0; k < g->order.count; k++) HG_TRY(merge_into_join(g, g->order.block[k]));
  return HG_OK;
}

static int needs_uniform_control(const ssa_unit *unit) {
  for (uint32_t b = 0; b < unit->blocks.count; b++)
    for (uint32_t e = ssa_block_at(unit, b)->first_effect; e != SSA_NONE; e = ssa_insn_at(unit, e)->next)
      if (atlas_op_lookup(ssa_insn_at(unit, e)->op)->flags & (ATLAS_BLOCK | ATLAS_GRID)) return 1;
  return 0;
}

static hg_status restore_inner_joins(ssa_unit *unit) {
  merger g = {.unit = unit};
  g.incoming.element_size = g.edges.element_size = sizeof(edge);
  g.frames.element_size = sizeof(frame);
  g.rows.element_size = sizeof(uint32_t);
  hg_status status = merge_into_joins(&g);
  hg_array *arrays[] = {&g.incoming, &g.edges, &g.frames, &g.rows};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) hg_array_release(&unit->allocator, arrays[i]);
  ir_ssa_order_release(unit, &g.order);
  return status;
}

/* ---- edges of their own ------------------------------------------------------------------------------------------ */

/* Where both edges of a branch lead to `join`, the true side is the first of the two among the predecessors. */
static hg_status split_edges_into(ssa_unit *unit, uint32_t join) {
  for (uint32_t i = 0; i < block_at(unit, join)->predecessors.count; i++) {
    uint32_t from = predecessor(unit, join, i);
    if (block_at(unit, from)->end != SSA_BRANCH) continue;
    uint32_t between = ir_ssa_add_block(unit);
    if (between == SSA_NONE || !hg_array_push(&unit->allocator, &block_at(unit, between)->predecessors, from))
      return out_of_memory();
    block_at(unit, between)->end = SSA_JUMP;
    block_at(unit, between)->successor[0] = join;
    block_at(unit, from)->successor[block_at(unit, from)->successor[0] == join ? 0 : 1] = between;
    ((uint32_t *)block_at(unit, join)->predecessors.data)[i] = between;
  }
  return HG_OK;
}

hg_status hg_split_edges(ssa_unit *unit) {
  if (needs_uniform_control(unit)) HG_TRY(restore_inner_joins(unit));
  uint32_t count = (uint32_t)unit->blocks.count;
  for (uint32_t b = 0; b < count; b++)
    if (block_at(unit, b)->first_phi != SSA_NONE) HG_TRY(split_edges_into(unit, b));
  return HG_OK;
}
