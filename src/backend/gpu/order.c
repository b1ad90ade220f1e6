/* order.c - orders the instructions of a basic block: a list schedule from the last instruction to the first.
 *
 * Among the instructions whose users are all placed, the next is the one that leaves the fewest values in registers
 * above it; of several the one that became ready last, so that one chain is finished before the next begins. So a value
 * is computed right before its first use, and instructions that use the same values stand together. Loads from global
 * memory are the exception: they take long, so they stand as early as registers allow.
 *
 * Chains with a common beginning may take fewer registers side by side than one after the other: if registers are many,
 * both orders are tried. The multiply-adds of tiles have an order of their own (products.c).
 *
 * The order is kept between accesses to memory that may overlap, as in canon_order.c; between barriers and collectives;
 * and between instructions that may fault, so that a lane's first fault is the program's. */
#include "backend/gpu/products.h"
#include "backend/gpu/gpu_tuning.h"

#include "atlas/value.h"
#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/effects.h"

#include <string.h>

enum {
  WINDOW = 96,      /* instructions that are compared */
  MOST_APART = 8,   /* stores that a load is compared with */
  MOST_BESIDE = 64, /* stores that have no order among them */
  LATE = 1 << 20    /* the cost of a node that should wait */
};

#define UNUSED (SSA_NONE - 1)

typedef struct order_node {
  uint32_t value;          /* its first instruction */
  uint32_t group;          /* 1 + the number of its group; 0: a single instruction */
  uint32_t waits_for;      /* the number of unplaced nodes that use it or must come after it */
  uint32_t uses;           /* how many of these use it */
  uint32_t earlier, later; /* lists of edges: what must come before, and after */
  uint32_t last_later;     /* the last entry of `later`, which keeps a node from being added twice */
  int32_t gain;            /* registers of values that only wait for it and for nodes like it */
  uint8_t is_slow;         /* a load from global memory */
  uint8_t is_collective, is_placed;
} order_node;

typedef struct order_edge {
  uint32_t node, next;
} order_edge;

typedef struct orderer {
  gpu_plan *g;
  uint32_t block;
  uint32_t *node_of;    /* per value of the block */
  uint8_t *is_inside;   /* per value: 1: it is loaded as part of a word that another value begins */
  uint32_t *used_in;    /* per value: the only block whose instructions use it; SSA_NONE: there are several, or a phi or
                           branch uses it; UNUSED */
  uint32_t *live;       /* per value: the round in which it became live */
  uint32_t round;       /* counts the orders that were made */
  int side_by_side;
  hg_array node, edge;
  hg_array ready, placed, other; /* uint32_t; other: the order in which chains are finished one by one */
  hg_array depth;       /* uint32_t, by node: the length of the longest chain of nodes that must come before it */
  hg_array product;     /* gpu_product: the multiply-adds of tiles, in their order */
  uint32_t *node_of_group; /* by group */
  uint32_t alias[ATLAS_MAX_SYMBOLS + 2];
  /* Per alias class, in this block: lists of edges to the last stores, to the nodes that these must come after, and to
   * the loads since. Stores with one index and different displacements do not overlap, so they have no order among
   * them. */
  uint32_t writes[ATLAS_MAX_SYMBOLS + 2], before[ATLAS_MAX_SYMBOLS + 2], reads[ATLAS_MAX_SYMBOLS + 2];
  uint32_t stored[ATLAS_MAX_SYMBOLS + 2]; /* one of the last stores; SSA_NONE: the next store begins a new set */
  /* Per alias class: the barrier or fence before, and the first stores behind it, which a load may be proven not to
   * overlap. */
  uint32_t fence[ATLAS_MAX_SYMBOLS + 2], behind[ATLAS_MAX_SYMBOLS + 2][MOST_APART], behind_count[ATLAS_MAX_SYMBOLS + 2];
  uint32_t last_fault, last_collective;
  int32_t registers, most; /* registers of the values that are live where the next node is placed; the most so far */
  int32_t most_of_all;     /* the most in any block */
} orderer;

static hg_status out_of_memory(void) { return hg_fail_memory("the order of a block", sizeof(order_node)); }

static order_node *node_at(const orderer *o, uint32_t number) { return (order_node *)o->node.data + number; }
static const order_edge *edge_at(const orderer *o, uint32_t number) {
  return (const order_edge *)o->edge.data + number;
}

/* The instructions of a node. */
static uint32_t members(const orderer *o, const order_node *n, const uint32_t **value) {
  const gpu_access_group *group = n->group != 0 ? gpu_group_at(o->g, n->group - 1) : NULL;
  *value = group != NULL ? group->in_order : &n->value;
  return group != NULL ? group->count : 1;
}

/* The node of a value that this block computes. */
static uint32_t node_here(const orderer *o, uint32_t value) {
  const ssa_insn *insn = gpu_insn(o->g, value);
  return insn->block == o->block && insn->op != SSA_PHI ? o->node_of[value] : SSA_NONE;
}

/* ---- registers --------------------------------------------------------------------------------------------------- */

static int32_t size_of(const orderer *o, uint32_t value) {
  const ssa_insn *insn = gpu_insn(o->g, value);
  if (hg_is_leaf(insn) || insn->type == ATLAS_NONE || gpu_flags(o->g, value) & ATLAS_STORE || o->is_inside[value])
    return 0;
  return insn->type != SSA_PREDICATE && atlas_type_bits((atlas_type)insn->type) == 64 ? 2 : 1;
}

/* 1 if the value is live behind the block. */
static int lives_on(const orderer *o, uint32_t value) {
  const ssa_insn *insn = gpu_insn(o->g, value);
  if (o->used_in[value] == UNUSED) return 0;
  return o->used_in[value] != o->block || (insn->block != o->block && o->g->in_loop[o->block]);
}

static int is_live(const orderer *o, uint32_t value) {
  return o->live[value] == o->round || lives_on(o, value);
}

static void note_use(orderer *o, uint32_t value, uint32_t block) {
  if (o->used_in[value] == UNUSED) o->used_in[value] = block;
  else if (o->used_in[value] != block) o->used_in[value] = SSA_NONE;
}

/* Finds elements of less than 32 bits that one access loads. */
static void find_words(const orderer *o) {
  for (uint32_t k = 0; k < o->g->group.count; k++) {
    const gpu_access_group *group = gpu_group_at(o->g, k);
    for (uint32_t r = 0; r < group->run_count && !group->is_store; r++) {
      const gpu_access_run *run = &group->run[r];
      for (uint32_t i = run->first; i < run->first + (uint32_t)run->count; i += group->joined[i])
        for (uint32_t e = 1; e < group->joined[i]; e++)
          o->is_inside[group->value[i + e]] = e % gpu_word_elements(run) != 0;
    }
  }
}

static void find_uses(orderer *o) {
  const gpu_plan *g = o->g;
  for (uint32_t v = 0; v < g->unit->insns.count; v++) o->used_in[v] = UNUSED;
  for (uint32_t k = 0; k < g->order.count; k++) {
    uint32_t b = g->order.block[k];
    const ssa_block *block = ssa_block_at(g->unit, b);
    for (uint32_t phi = block->first_phi; phi != SSA_NONE; phi = gpu_insn(g, phi)->next)
      for (uint32_t i = 0; i < gpu_insn(g, phi)->arg_count; i++) note_use(o, gpu_arg(g, phi, i), SSA_NONE);
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next)
      for (uint32_t i = 0; i < gpu_insn(g, e)->arg_count; i++) note_use(o, gpu_arg(g, e, i), b);
    if (block->condition != SSA_NONE) note_use(o, block->condition, SSA_NONE);
  }
}

/* ---- what must come before what ---------------------------------------------------------------------------------- */

static hg_status add_edge(orderer *o, uint32_t node, uint32_t *list) {
  const order_edge edge = {node, *list};
  *list = (uint32_t)o->edge.count;
  return hg_array_append(o->g->allocator, &o->edge, &edge, 1) != NULL ? HG_OK : out_of_memory();
}

static hg_status put_before(orderer *o, uint32_t first, uint32_t second) {
  if (first == SSA_NONE || first == second || node_at(o, first)->last_later == second) return HG_OK;
  node_at(o, first)->waits_for++;
  node_at(o, first)->last_later = second;
  HG_TRY(add_edge(o, second, &node_at(o, first)->later));
  return add_edge(o, first, &node_at(o, second)->earlier);
}

static hg_status put_all_before(orderer *o, uint32_t list, uint32_t node) {
  for (uint32_t e = list; e != SSA_NONE; e = edge_at(o, e)->next) HG_TRY(put_before(o, edge_at(o, e)->node, node));
  return HG_OK;
}

/* 1 if the store overlaps none of the last stores, and nothing has been read since them. */
static int is_beside(const orderer *o, uint32_t value, uint32_t node, uint32_t alias) {
  const ssa_insn *insn = gpu_insn(o->g, value);
  uint32_t other = o->stored[alias];
  if (other == SSA_NONE || o->reads[alias] != SSA_NONE || insn->mode != ATLAS_ADDRESS_INDEXED ||
      insn->symbol != gpu_insn(o->g, other)->symbol || gpu_arg(o->g, value, 0) != gpu_arg(o->g, other, 0))
    return 0;
  uint32_t seen = 0;
  for (uint32_t e = o->writes[alias]; e != SSA_NONE; e = edge_at(o, e)->next) {
    const uint32_t *stored;
    uint32_t count = members(o, node_at(o, edge_at(o, e)->node), &stored);
    for (uint32_t i = 0; i < count && edge_at(o, e)->node != node; i++, seen++)
      if (gpu_insn(o->g, stored[i])->bits == insn->bits || seen == MOST_BESIDE) return 0;
  }
  return 1;
}

/* From now on, everything stored and read so far comes before the next stores. */
static hg_status begin_stores(orderer *o, uint32_t alias) {
  uint32_t before = o->writes[alias];
  for (uint32_t e = o->reads[alias]; e != SSA_NONE; e = edge_at(o, e)->next)
    HG_TRY(add_edge(o, edge_at(o, e)->node, &before));
  o->before[alias] = before;
  o->writes[alias] = o->reads[alias] = SSA_NONE;
  return HG_OK;
}

static int is_constant(const void *g, uint32_t value) { return gpu_insn(g, value)->op == SSA_CONST; }

/* An index without the constants added to it; *by is their sum. */
static uint32_t root_of(const orderer *o, uint32_t index, uint64_t *by) {
  hg_terms terms;
  uint32_t root = hg_take_terms(o->g->unit, index, is_constant, o->g, &terms);
  *by = 0;
  for (uint32_t i = 0; i < terms.count; i++) *by += gpu_insn(o->g, terms.value[i])->bits;
  return root;
}

/* 1 if two accesses provably do not overlap: their element numbers differ by a constant. */
static int is_apart(const orderer *o, uint32_t a, uint32_t b) {
  const ssa_insn *x = gpu_insn(o->g, a), *y = gpu_insn(o->g, b);
  uint64_t by_x, by_y;
  if (x->mode != ATLAS_ADDRESS_INDEXED || y->mode != x->mode || x->symbol != y->symbol) return 0;
  if (gpu_arg(o->g, a, 0) == gpu_arg(o->g, b, 0)) return x->bits != y->bits;
  uint8_t type = gpu_insn(o->g, gpu_arg(o->g, a, 0))->type;
  if (x->bits != y->bits || root_of(o, gpu_arg(o->g, a, 0), &by_x) != root_of(o, gpu_arg(o->g, b, 0), &by_y)) return 0;
  return (by_x & atlas_mask((atlas_type)type)) != (by_y & atlas_mask((atlas_type)type));
}

static hg_status order_load(orderer *o, uint32_t value, uint32_t node, uint32_t alias) {
  if (o->behind_count[alias] > MOST_APART) return put_all_before(o, o->writes[alias], node);
  HG_TRY(put_before(o, o->fence[alias], node));
  for (uint32_t i = 0; i < o->behind_count[alias]; i++)
    if (!is_apart(o, value, o->behind[alias][i]))
      HG_TRY(put_before(o, o->node_of[o->behind[alias][i]], node));
  return HG_OK;
}

static hg_status order_access(orderer *o, uint32_t value, uint32_t node) {
  uint32_t location = hg_location_of(o->g->program, gpu_insn(o->g, value)), alias = o->alias[location];
  uint32_t access = gpu_flags(o->g, value) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC);
  if (o->g->read_only[location]) return HG_OK;
  if (access == ATLAS_LOAD) {
    HG_TRY(order_load(o, value, node, alias));
    return add_edge(o, node, &o->reads[alias]);
  }
  if (o->behind_count[alias] < MOST_APART) o->behind[alias][o->behind_count[alias]] = value;
  if (o->behind_count[alias] <= MOST_APART) o->behind_count[alias]++;
  if (access != ATLAS_STORE || !is_beside(o, value, node, alias)) HG_TRY(begin_stores(o, alias));
  HG_TRY(put_all_before(o, o->before[alias], node));
  int is_plain = access == ATLAS_STORE && gpu_insn(o->g, value)->mode == ATLAS_ADDRESS_INDEXED;
  o->stored[alias] = is_plain ? value : SSA_NONE;
  return add_edge(o, node, &o->writes[alias]);
}

/* Barriers and fences. */
static hg_status order_all(orderer *o, uint32_t node) {
  for (uint32_t l = 0; l < hg_location_count(o->g->program); l++) {
    HG_TRY(put_all_before(o, o->writes[l], node));
    HG_TRY(put_all_before(o, o->reads[l], node));
    o->writes[l] = o->reads[l] = o->stored[l] = SSA_NONE;
    HG_TRY(add_edge(o, node, &o->writes[l]));
    o->fence[l] = node;
    o->behind_count[l] = 0;
  }
  return HG_OK;
}

static int may_fault(const orderer *o, uint32_t value, uint32_t node) {
  uint32_t flags = gpu_flags(o->g, value), group = node_at(o, node)->group;
  if (group != 0) return gpu_group_at(o->g, group - 1)->is_tested;
  if (flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) {
    gpu_place place = hg_gpu_place(o->g, GPU_OUTSIDE, value);
    return place.check == GPU_LEAVE_OUT || place.check == GPU_BRANCH;
  }
  return !hg_is_collective(gpu_insn(o->g, value)) && !hg_orders_all(gpu_insn(o->g, value));
}

/* 1 for a load from global memory, which takes as long as hundreds of instructions. */
static int is_slow(const orderer *o, uint32_t value) {
  const ssa_insn *insn = gpu_insn(o->g, value);
  if (!(gpu_flags(o->g, value) & ATLAS_LOAD) || insn->symbol & SSA_LIBRARY) return 0;
  if (insn->mode == ATLAS_ADDRESS_PHI) return 1;
  uint8_t kind = gpu_symbol_of(o->g, insn)->kind;
  return kind != ATLAS_SYMBOL_SHARED && kind != ATLAS_SYMBOL_CONST && kind != ATLAS_SYMBOL_LOCAL;
}

static hg_status order_effect(orderer *o, uint32_t value, uint32_t node) {
  const ssa_insn *insn = gpu_insn(o->g, value);
  uint32_t flags = gpu_flags(o->g, value);
  if (hg_orders_all(insn)) HG_TRY(order_all(o, node));
  else if (flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) HG_TRY(order_access(o, value, node));
  if (may_fault(o, value, node)) {
    HG_TRY(put_before(o, o->last_fault, node));
    o->last_fault = node;
  }
  if (!(flags & ATLAS_BLOCK) && !hg_orders_all(insn)) return HG_OK;
  HG_TRY(put_before(o, o->last_collective, node));
  o->last_collective = node;
  return HG_OK;
}

static hg_status add_node(orderer *o, uint32_t value) {
  uint32_t group = o->g->group_of[value], number = (uint32_t)o->node.count;
  if (group != 0 && o->node_of_group[group - 1] != SSA_NONE) {
    o->node_of[value] = o->node_of_group[group - 1];
    return HG_OK;
  }
  const order_node node = {.value = value,
                           .group = group,
                           .earlier = SSA_NONE,
                           .later = SSA_NONE,
                           .last_later = SSA_NONE,
                           .is_slow = (uint8_t)is_slow(o, value),
                           .is_collective = (uint8_t)hg_is_collective(gpu_insn(o->g, value))};
  if (group != 0) o->node_of_group[group - 1] = number;
  o->node_of[value] = number;
  return hg_array_append(o->g->allocator, &o->node, &node, 1) != NULL ? HG_OK : out_of_memory();
}

static void count_uses(const orderer *o, uint32_t value) {
  for (uint32_t i = 0; i < gpu_insn(o->g, value)->arg_count; i++) {
    uint32_t of = node_here(o, gpu_arg(o->g, value, i));
    if (of == SSA_NONE) continue;
    node_at(o, of)->waits_for++;
    node_at(o, of)->uses++;
  }
}

static hg_status order_products(orderer *o) {
  const gpu_product *product = o->product.data;
  for (size_t i = 1; i < o->product.count; i++) HG_TRY(put_before(o, product[i - 1].node, product[i].node));
  return HG_OK;
}

static hg_status build_nodes(orderer *o) {
  for (uint32_t n = 0; n < o->node.count; n++) { /* values of the round before */
    uint32_t group = node_at(o, n)->group;
    if (group != 0) o->node_of_group[group - 1] = SSA_NONE;
  }
  o->node.count = o->edge.count = o->ready.count = o->placed.count = 0;
  o->round++;
  o->last_fault = o->last_collective = SSA_NONE;
  o->registers = 0;
  memset(o->writes, 0xff, sizeof o->writes);
  memset(o->before, 0xff, sizeof o->before);
  memset(o->reads, 0xff, sizeof o->reads);
  memset(o->stored, 0xff, sizeof o->stored);
  memset(o->fence, 0xff, sizeof o->fence);
  memset(o->behind_count, 0, sizeof o->behind_count);
  uint32_t first = ssa_block_at(o->g->unit, o->block)->first_effect;
  for (uint32_t e = first; e != SSA_NONE; e = gpu_insn(o->g, e)->next) {
    HG_TRY(add_node(o, e));
    if (!hg_is_pure(gpu_insn(o->g, e))) HG_TRY(order_effect(o, e, o->node_of[e]));
    if (lives_on(o, e)) o->registers += size_of(o, e);
  }
  for (uint32_t e = first; e != SSA_NONE; e = gpu_insn(o->g, e)->next) count_uses(o, e);
  HG_TRY(order_products(o));
  o->most = o->registers;
  for (uint32_t n = 0; n < o->node.count; n++)
    if (node_at(o, n)->waits_for == 0 && !hg_array_push(o->g->allocator, &o->ready, n)) return out_of_memory();
  return HG_OK;
}

/* ---- the next from below ----------------------------------------------------------------------------------------- */

/* The registers of its values that are live. */
static int32_t given(const orderer *o, const order_node *n) {
  const uint32_t *value;
  int32_t size = 0;
  for (uint32_t i = members(o, n, &value); i-- > 0;)
    if (is_live(o, value[i])) size += size_of(o, value[i]);
  return size;
}

/* How many more registers are live above it. */
static int32_t cost_of(const orderer *o, const order_node *n) {
  const uint32_t *value;
  int32_t cost = -given(o, n) - n->gain;
  uint32_t count = members(o, n, &value), last = SSA_NONE;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t a = 0; a < gpu_insn(o->g, value[i])->arg_count; a++) {
      uint32_t arg = gpu_arg(o->g, value[i], a);
      if (arg != last && !is_live(o, arg)) cost += size_of(o, arg);
      if (a == 0) last = arg; /* the index, which a group's accesses share; or an argument that is used twice */
    }
  return cost;
}

/* The registers of a thread if one block has the multiprocessor for itself; 0: unknown. */
static uint32_t registers_of_thread(const gpu_plan *g, uint32_t threads) {
  return threads == 0 ? 0 : g->target.registers / threads / 8 * 8;
}

/* How many registers values may take before loads from global memory are no longer moved up. */
static int32_t registers_for(const orderer *o) {
  uint32_t all = registers_of_thread(o->g, o->g->info.max_threads / o->g->info.sub_blocks);
  return all == 0 || all > GPU_EARLY_REGISTERS + GPU_BESIDE_VALUES ? GPU_EARLY_REGISTERS
                                                                   : (int32_t)all - GPU_BESIDE_VALUES;
}

static uint32_t depth_of(const orderer *o, uint32_t number) { return ((const uint32_t *)o->depth.data)[number]; }

/* For the order side by side: the greatest depth among the ready nodes. Nodes of smaller depth wait if they would take
 * registers. */
static uint32_t deepest(const orderer *o) {
  const uint32_t *ready = o->ready.data;
  uint32_t most = 0, count = (uint32_t)o->ready.count;
  for (uint32_t i = count; i-- > 0 && i + WINDOW >= count && o->side_by_side;)
    if (!node_at(o, ready[i])->is_slow && depth_of(o, ready[i]) > most) most = depth_of(o, ready[i]);
  return most;
}

static uint32_t choose(const orderer *o) {
  const uint32_t *ready = o->ready.data;
  int32_t least = INT32_MAX;
  uint32_t best = 0, count = (uint32_t)o->ready.count, front = deepest(o);
  uint32_t last = o->placed.count > 0 ? ((const uint32_t *)o->placed.data)[o->placed.count - 1] : SSA_NONE;
  int after_collective = last != SSA_NONE && node_at(o, last)->is_collective;
  for (uint32_t i = count; i-- > 0 && i + WINDOW >= count;) {
    const order_node *n = node_at(o, ready[i]);
    int32_t cost = cost_of(o, n);
    if (n->is_slow && o->registers <= registers_for(o)) cost += LATE;
    else if (cost > 0 && o->side_by_side && depth_of(o, ready[i]) + 1 < front) cost += LATE / 2;
    if (n->is_collective && after_collective) cost = -LATE; /* adjacent collectives stay adjacent */
    if (cost >= least) continue;
    least = cost;
    best = i;
  }
  return best;
}

/* ---- placing it -------------------------------------------------------------------------------------------------- */

static hg_status release(orderer *o, uint32_t number) {
  if (--node_at(o, number)->waits_for > 0) return HG_OK;
  return hg_array_push(o->g->allocator, &o->ready, number) ? HG_OK : out_of_memory();
}

static hg_status release_argument(orderer *o, uint32_t arg) {
  uint32_t number = node_here(o, arg);
  if (!is_live(o, arg)) {
    o->live[arg] = o->round;
    o->registers += size_of(o, arg);
    if (o->registers > o->most) o->most = o->registers;
  }
  if (number == SSA_NONE) return HG_OK;
  order_node *n = node_at(o, number);
  if (--n->uses == 0 && n->waits_for > 1) /* only nodes that must come after it keep its values in registers */
    for (uint32_t e = n->later; e != SSA_NONE; e = edge_at(o, e)->next)
      if (!node_at(o, edge_at(o, e)->node)->is_placed) node_at(o, edge_at(o, e)->node)->gain += given(o, n);
  return release(o, number);
}

static hg_status place(orderer *o, uint32_t number) {
  order_node *n = node_at(o, number);
  const uint32_t *value;
  uint32_t count = members(o, n, &value);
  o->registers -= given(o, n);
  n->is_placed = 1;
  if (!hg_array_push(o->g->allocator, &o->placed, number)) return out_of_memory();
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t a = 0; a < gpu_insn(o->g, value[i])->arg_count; a++)
      HG_TRY(release_argument(o, gpu_arg(o->g, value[i], a)));
  for (uint32_t e = n->earlier; e != SSA_NONE; e = edge_at(o, e)->next) HG_TRY(release(o, edge_at(o, e)->node));
  return HG_OK;
}

static void list_again(const orderer *o) {
  ssa_block *block = ssa_block_at(o->g->unit, o->block);
  block->first_effect = block->last_effect = SSA_NONE;
  for (size_t i = o->placed.count; i-- > 0;) {
    const uint32_t *value;
    uint32_t count = members(o, node_at(o, ((const uint32_t *)o->placed.data)[i]), &value);
    for (uint32_t k = 0; k < count; k++) ir_ssa_append_effect(o->g->unit, o->block, value[k]);
  }
}

static hg_status place_all(orderer *o) {
  HG_TRY(build_nodes(o));
  while (o->ready.count > 0) {
    uint32_t at = choose(o), *ready = o->ready.data, number = ready[at];
    memmove(ready + at, ready + at + 1, (--o->ready.count - at) * sizeof *ready);
    HG_TRY(place(o, number));
  }
  return HG_OK;
}

static void go_below(const orderer *o, uint32_t first, uint32_t second) {
  uint32_t *depth = o->depth.data;
  if (first != SSA_NONE && first != second && depth[second] <= depth[first]) depth[second] = depth[first] + 1;
}

static hg_status find_depths(orderer *o) {
  o->depth.count = 0;
  for (uint32_t n = 0; n < o->node.count; n++)
    if (!hg_array_push(o->g->allocator, &o->depth, 0)) return out_of_memory();
  for (size_t i = o->placed.count; i-- > 0;) {
    uint32_t number = ((const uint32_t *)o->placed.data)[i];
    const order_node *n = node_at(o, number);
    const uint32_t *value;
    for (uint32_t k = members(o, n, &value); k-- > 0;)
      for (uint32_t a = 0; a < gpu_insn(o->g, value[k])->arg_count; a++)
        go_below(o, node_here(o, gpu_arg(o->g, value[k], a)), number);
    for (uint32_t e = n->earlier; e != SSA_NONE; e = edge_at(o, e)->next) go_below(o, edge_at(o, e)->node, number);
  }
  return HG_OK;
}

static void swap(hg_array *a, hg_array *b) {
  hg_array c = *a;
  *a = *b;
  *b = c;
}

static hg_status find_products(orderer *o) {
  HG_TRY(find_depths(o));
  for (uint32_t n = 0; n < o->node.count; n++) {
    gpu_product product = {.node = n, .depth = depth_of(o, n)};
    if (node_at(o, n)->group == 0 && hg_gpu_is_product(o->g, node_at(o, n)->value, &product) &&
        hg_array_append(o->g->allocator, &o->product, &product, 1) == NULL)
      return out_of_memory();
  }
  o->product.count = hg_gpu_order_products(o->product.data, (uint32_t)o->product.count);
  return HG_OK;
}

/* Orders the block again with the multiply-adds of tiles in their own order, and keeps that if it takes no more
 * registers. */
static hg_status place_tiles(orderer *o, int32_t *most) {
  HG_TRY(find_products(o));
  if (o->product.count < GPU_LEAST_PRODUCTS) return HG_OK;
  swap(&o->placed, &o->other);
  HG_TRY(place_all(o));
  if (o->most > *most && o->most > registers_for(o)) swap(&o->placed, &o->other);
  else *most = o->most;
  return HG_OK;
}

static hg_status order_block(orderer *o, uint32_t block) {
  o->block = block;
  o->side_by_side = 0;
  o->product.count = 0;
  HG_TRY(place_all(o));
  int32_t most = o->most;
  if (most > registers_for(o)) {
    HG_TRY(find_depths(o));
    swap(&o->placed, &o->other);
    o->side_by_side = 1;
    HG_TRY(place_all(o));
    if (o->most >= most) swap(&o->placed, &o->other);
    else most = o->most;
  }
  HG_TRY(place_tiles(o, &most));
  if (most > o->most_of_all) o->most_of_all = most;
  list_again(o);
  return HG_OK;
}

/* 1 if the program itself has loops; those of functions and rare sides hardly run. */
static int has_loops(const gpu_plan *g) {
  for (uint32_t k = 0; k < g->order.count; k++) {
    uint32_t b = g->order.block[k];
    if (g->analysis.loops.loop[b] == b && !ssa_block_at(g->unit, b)->library) return 1;
  }
  return 0;
}

/* Counts values that a loop loads on one path and that come from elsewhere on another, for example a tile that is
 * fetched while the last one is used: the driver's compiler has them in registers twice where the paths meet. */
static int32_t meeting_loads(const orderer *o) {
  const gpu_plan *g = o->g;
  int32_t registers = 0;
  for (uint32_t k = 0; k < g->order.count; k++) {
    const ssa_block *block = ssa_block_at(g->unit, g->order.block[k]);
    if (block->library || !g->in_loop[g->order.block[k]]) continue;
    for (uint32_t phi = block->first_phi; phi != SSA_NONE; phi = gpu_insn(g, phi)->next) {
      int is_loaded = 0;
      for (uint32_t i = 0; i < gpu_insn(g, phi)->arg_count; i++) {
        uint32_t arg = gpu_arg(g, phi, i);
        is_loaded |= is_slow(o, arg) && g->in_loop[gpu_insn(g, arg)->block];
      }
      if (is_loaded) registers += size_of(o, phi);
    }
  }
  return registers;
}

/* With several blocks, a multiprocessor computes in one while another waits. So registers are limited to what the
 * largest number of blocks leaves a thread, if the values need so many fewer that addresses and the like fit too. What
 * a loop spills, such as the levels of a binary counter of sums, would be stored and loaded in every round. */
static void limit_registers(gpu_plan *g, int32_t values) {
  uint32_t threads = g->info.max_threads / g->info.sub_blocks;
  int32_t beside = threads < GPU_ENOUGH_THREADS && has_loops(g) ? GPU_BESIDE_VALUES : GPU_BESIDE_SPILLED;
  for (uint32_t blocks = 2; blocks * threads <= GPU_MOST_LIMITED_THREADS; blocks++) {
    uint32_t limit = registers_of_thread(g, blocks * threads);
    if (values + beside > (int32_t)limit) return;
    if (blocks * threads >= GPU_ENOUGH_THREADS) g->most_registers = limit;
  }
  if (threads >= GPU_LEAST_LIMITED_BLOCK && values + GPU_BESIDE_VALUES <= g->target.registers_all)
    g->most_registers = g->target.registers_all;
}

/* A thread whose lanes are spread runs one lane after the other and waits for the loads of each. Other threads compute
 * in the meantime, as many as there are registers for. Some values are spilled on rare paths. */
static void limit_spread(gpu_plan *g, int32_t values) {
  const uint32_t limit[] = {g->target.registers_all, g->target.registers_most};
  for (int i = 0; i < 2 && g->most_registers == 0; i++)
    if (values + GPU_BESIDE_SPILLED <= (int32_t)limit[i]) g->most_registers = limit[i];
}

hg_status hg_gpu_order(gpu_plan *g) {
  orderer o = {.g = g};
  uint64_t values = g->unit->insns.count, count = 3 * values + g->group.count + (values + 3) / 4;
  o.node.element_size = sizeof(order_node);
  o.edge.element_size = sizeof(order_edge);
  o.ready.element_size = o.placed.element_size = o.other.element_size = o.depth.element_size = sizeof(uint32_t);
  o.product.element_size = sizeof(gpu_product);
  o.node_of = hg_allocate(g->allocator, count, sizeof *o.node_of);
  if (o.node_of == NULL) return out_of_memory();
  o.used_in = o.node_of + values;
  o.live = o.used_in + values;
  o.node_of_group = o.live + values;
  memset(o.node_of_group, 0xff, g->group.count * sizeof *o.node_of_group);
  o.is_inside = (uint8_t *)(o.node_of_group + g->group.count);
  memset(o.is_inside, 0, values);
  find_words(&o);
  hg_alias_groups(g->program, g->unit, o.alias);
  find_uses(&o);
  hg_status status = HG_OK;
  for (uint32_t k = 0; k < g->order.count && status == HG_OK; k++) status = order_block(&o, g->order.block[k]);
  if (g->info.observes_block) limit_registers(g, o.most_of_all + meeting_loads(&o));
  if (g->is_spread) limit_spread(g, o.most_of_all);
  hg_array *owned[] = {&o.node, &o.edge, &o.ready, &o.placed, &o.other, &o.depth, &o.product};
  for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) hg_array_release(g->allocator, owned[i]);
  hg_release(g->allocator, o.node_of);
  return status;
}
