/* build_ssa.c - SSA construction: liveness, phis at iterated dominance frontiers of live variables, then renaming along
 * the dominator tree (Cytron, Ferrante, Rosen, Wegman, Zadeck, "Efficiently Computing Static Single Assignment Form and
 * the Control Dependence Graph", 1991).
 *
 * `loop` is lowered to a subtraction, a comparison and a branch, `call` and `ret` are gone with inlining, and moves
 * leave no instruction. */
#include "compiler/canon/build_ssa.h"

#include "atlas/insn.h"
#include "base/error.h"
#include "compiler/analysis/effects.h"

#include <string.h>

/* Variables are the program's registers and predicates: registers first. */
typedef struct builder {
  const atlas_program *program;
  ssa_unit *unit;
  ir_graph graph;
  const atlas_entry *entry; /* the function to build; NULL: the whole program */
  uint32_t first_node, node_count;
  ir_node *nodes;          /* a copy, because the graph marks back edges in it */
  uint32_t variable_count;
  uint32_t words;          /* words of one set of variables */
  uint64_t *live_in;       /* per block */
  uint64_t *defined;       /* per block */
  uint32_t *child, *sibling, *depth; /* the dominator tree, per block */
  uint32_t *highest_edge;  /* per block: the least depth of a block that an edge from its subtree leads to */
  uint32_t *current;       /* per variable: its current value */
  hg_array undo;           /* pairs (variable, its value before) */
  hg_array phi_variable;   /* per value: the variable that a phi stands for */
} builder;

static hg_status out_of_memory(void) { return hg_fail_memory("the SSA form of a program", 0); }

static uint32_t variable_of(const builder *b, int predicate, uint32_t number) {
  return predicate ? b->program->register_count + number : number;
}

static int has_bit(const uint64_t *set, uint32_t variable) { return (int)(set[variable / 64] >> (variable % 64) & 1); }
static void set_bit(uint64_t *set, uint32_t variable) { set[variable / 64] |= UINT64_C(1) << (variable % 64); }

static const atlas_insn *insn_of(const builder *b, uint32_t node) {
  return atlas_insn_at(b->program, b->nodes[node].insn);
}

/* ---- liveness ---------------------------------------------------------------------------------------------------- */

static void local_sets(builder *b, uint32_t block, uint64_t *used) {
  uint64_t *defined = b->defined + (size_t)block * b->words;
  for (uint32_t k = 0; k < b->graph.size[block]; k++) {
    atlas_effects e;
    atlas_effects_of(insn_of(b, b->graph.first[block] + k), &e);
    for (unsigned i = 0; i < e.use_count; i++) {
      if (!e.use[i].predicate && atlas_is_special(e.use[i].reg)) continue;
      uint32_t variable = variable_of(b, e.use[i].predicate, e.use[i].reg);
      if (!has_bit(defined, variable)) set_bit(used, variable);
    }
    if (e.defines != 0) set_bit(defined, variable_of(b, e.defines == 2, e.def_reg));
  }
  if (b->entry != NULL && b->graph.next[block] == IR_NONE && !has_bit(defined, 0))
    set_bit(used, 0); /* `ret` returns r0 */
}

static void solve_liveness(builder *b) {
  for (uint32_t block = 0; block < b->graph.block_count; block++)
    local_sets(b, block, b->live_in + (size_t)block * b->words);
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t k = b->graph.block_count; k-- > 0;) {
      uint32_t block = b->graph.order[k];
      uint32_t successors[2] = {b->graph.next[block], b->graph.taken[block]};
      uint64_t *in = b->live_in + (size_t)block * b->words, *defined = b->defined + (size_t)block * b->words;
      for (int s = 0; s < 2; s++) {
        if (successors[s] == IR_NONE) continue;
        const uint64_t *out = b->live_in + (size_t)successors[s] * b->words;
        for (uint32_t w = 0; w < b->words; w++) {
          uint64_t grown = in[w] | (out[w] & ~defined[w]);
          changed |= grown != in[w];
          in[w] = grown;
        }
      }
    }
  }
}

/* A variable that is live-in at the entry is read before it is set. The verifier refuses such programs; this finds them
 * in programs that it was not asked about (atlas_program_trust). */
static hg_status check_defined(const builder *b) {
  for (uint32_t variable = 0; variable < b->variable_count; variable++)
    if (has_bit(b->live_in, variable))
      return hg_fail(HG_VERIFY, "program '%s': r%u may be read before it is written", b->program->name,
                     (unsigned)variable);
  return HG_OK;
}

/* ---- the dominator tree ------------------------------------------------------------------------------------------ */

/* An edge leads to a child of its block in the dominator tree, or to a block no deeper than its own. */
static void find_highest_edges(builder *b) {
  memset(b->highest_edge, 0xff, b->graph.block_count * sizeof(uint32_t));
  for (uint32_t k = b->graph.block_count; k-- > 0;) {
    uint32_t block = b->graph.order[k], parent = b->graph.dominator[block];
    const uint32_t successors[2] = {b->graph.next[block], b->graph.taken[block]};
    for (int s = 0; s < 2; s++) {
      uint32_t depth = successors[s] == IR_NONE ? SSA_NONE : b->depth[successors[s]];
      if (depth <= b->depth[block] && depth < b->highest_edge[block]) b->highest_edge[block] = depth;
    }
    if (b->highest_edge[block] < b->highest_edge[parent]) b->highest_edge[parent] = b->highest_edge[block];
  }
}

/* Children in reverse postorder, linked through `sibling`, and how deep each block is. */
static hg_status build_tree(builder *b) {
  uint64_t n = b->graph.block_count;
  b->child = hg_allocate(&b->unit->allocator, 4 * n, sizeof(uint32_t));
  if (b->child == NULL) return out_of_memory();
  b->sibling = b->child + n;
  b->depth = b->sibling + n;
  b->highest_edge = b->depth + n;
  memset(b->child, 0xff, n * sizeof(uint32_t));
  for (uint32_t k = b->graph.block_count; k-- > 1;) {
    uint32_t block = b->graph.order[k], parent = b->graph.dominator[block];
    b->sibling[block] = b->child[parent];
    b->child[parent] = block;
  }
  b->sibling[0] = SSA_NONE;
  for (uint32_t k = 1; k < n; k++) b->depth[b->graph.order[k]] = b->depth[b->graph.dominator[b->graph.order[k]]] + 1;
  find_highest_edges(b);
  return HG_OK;
}

/* ---- phis -------------------------------------------------------------------------------------------------------- */

static hg_status add_phi(builder *b, uint32_t block, uint32_t variable) {
  ssa_insn phi = {.op = SSA_PHI, .insn = SSA_NONE};
  uint32_t arg_count = b->graph.predecessor_start[block + 1] - b->graph.predecessor_start[block];
  uint32_t value = ir_ssa_add(b->unit, &phi, arg_count);
  if (value == SSA_NONE) return out_of_memory();
  while (b->phi_variable.count <= value)
    if (!hg_array_push(&b->unit->allocator, &b->phi_variable, SSA_NONE)) return out_of_memory();
  ((uint32_t *)b->phi_variable.data)[value] = variable;
  ir_ssa_append_phi(b->unit, block, value);
  return HG_OK;
}

/* Scratch of the placement, per block. Marks hold variable + 1. */
typedef struct placement {
  uint32_t *bucket, *next; /* worklists by depth: blocks that define the variable */
  uint32_t *stack, *queued, *visited, *has_phi;
} placement;

static void enqueue(const builder *b, const placement *p, uint32_t variable, uint32_t block) {
  if (p->queued[block] == variable + 1) return;
  p->queued[block] = variable + 1;
  p->next[block] = p->bucket[b->depth[block]];
  p->bucket[b->depth[block]] = block;
}

/* Edges from the subtree of `root` to a block no deeper than root lead into its dominance frontier. Subtrees of deeper
 * roots have been searched already. */
static hg_status search_subtree(builder *b, const placement *p, uint32_t variable, uint32_t root) {
  uint32_t pending = 0;
  p->stack[pending++] = root;
  p->visited[root] = variable + 1;
  while (pending > 0) {
    uint32_t block = p->stack[--pending];
    const uint32_t successors[2] = {b->graph.next[block], b->graph.taken[block]};
    for (int s = 0; s < 2; s++) {
      uint32_t join = successors[s];
      if (join == IR_NONE || b->depth[join] > b->depth[root] || p->has_phi[join] == variable + 1) continue;
      if (!has_bit(b->live_in + (size_t)join * b->words, variable)) continue;
      p->has_phi[join] = variable + 1;
      HG_TRY(add_phi(b, join, variable));
      enqueue(b, p, variable, join);
    }
    for (uint32_t c = b->child[block]; c != SSA_NONE; c = b->sibling[c]) {
      if (b->highest_edge[c] > b->depth[root] || p->visited[c] == variable + 1) continue;
      p->visited[c] = variable + 1;
      p->stack[pending++] = c;
    }
  }
  return HG_OK;
}

/* Phis of one variable, in time linear in the graph: the deepest definition first (Sreedhar and Gao, "A Linear Time
 * Algorithm for Placing phi-Nodes", 1995). */
static hg_status place_phis_of(builder *b, uint32_t variable, const placement *p) {
  uint32_t deepest = 0, defining = 0;
  for (uint32_t block = 0; block < b->graph.block_count; block++) {
    if (!has_bit(b->defined + (size_t)block * b->words, variable)) continue;
    enqueue(b, p, variable, block);
    deepest = b->depth[block] > deepest ? b->depth[block] : deepest;
    defining++;
  }
  if (defining == 0) return HG_OK;
  for (uint32_t depth = deepest + 1; depth-- > 0;)
    while (p->bucket[depth] != SSA_NONE) {
      uint32_t root = p->bucket[depth];
      p->bucket[depth] = p->next[root];
      HG_TRY(search_subtree(b, p, variable, root));
    }
  return HG_OK;
}

static int is_live_between_blocks(const builder *b, uint32_t variable) {
  for (uint32_t block = 0; block < b->graph.block_count; block++)
    if (has_bit(b->live_in + (size_t)block * b->words, variable)) return 1;
  return 0;
}

static hg_status place_phis(builder *b) {
  size_t n = b->graph.block_count;
  uint32_t *scratch = hg_allocate(&b->unit->allocator, 6 * (uint64_t)n, sizeof(uint32_t));
  if (scratch == NULL) return out_of_memory();
  placement p = {scratch, scratch + n, scratch + 2 * n, scratch + 3 * n, scratch + 4 * n, scratch + 5 * n};
  memset(p.bucket, 0xff, n * sizeof(uint32_t));
  hg_status status = HG_OK;
  for (uint32_t v = 0; v < b->variable_count && status == HG_OK; v++)
    if (is_live_between_blocks(b, v)) status = place_phis_of(b, v, &p);
  hg_release(&b->unit->allocator, scratch);
  return status;
}

/* ---- renaming ---------------------------------------------------------------------------------------------------- */

static hg_status set_current(builder *b, uint32_t variable, uint32_t value) {
  const hg_allocator *allocator = &b->unit->allocator;
  if (!hg_array_push(allocator, &b->undo, variable) || !hg_array_push(allocator, &b->undo, b->current[variable]))
    return out_of_memory();
  b->current[variable] = value;
  return HG_OK;
}

static hg_status add_value(builder *b, const ssa_insn *insn, const uint32_t *args, uint32_t arg_count, uint32_t *out) {
  *out = ir_ssa_add(b->unit, insn, arg_count);
  if (*out == SSA_NONE) return out_of_memory();
  if (arg_count > 0) memcpy(ssa_args_of(b->unit, *out), args, arg_count * sizeof *args);
  return HG_OK;
}

static hg_status add_constant(builder *b, uint8_t type, uint64_t bits, uint32_t *out) {
  ssa_insn constant = {.op = SSA_CONST, .type = type, .bits = bits, .insn = SSA_NONE};
  return add_value(b, &constant, NULL, 0, out);
}

static hg_status read_register(builder *b, uint32_t reg, uint32_t *out) {
  if (!atlas_is_special(reg)) {
    *out = b->current[reg];
    return HG_OK;
  }
  ssa_insn special = {.op = SSA_SPECIAL, .type = (uint8_t)atlas_special_type(reg), .bits = reg, .insn = SSA_NONE};
  return add_value(b, &special, NULL, 0, out);
}

static hg_status read_source(builder *b, const atlas_operand *o, uint8_t type, uint32_t *out) {
  switch (o->kind) {
  case ATLAS_OPERAND_REG: return read_register(b, atlas_register_of(o), out);
  case ATLAS_OPERAND_SCALAR: {
    ssa_insn scalar = {.op = SSA_SCALAR, .type = type, .symbol = o->symbol, .insn = SSA_NONE};
    return add_value(b, &scalar, NULL, 0, out);
  }
  default: return add_constant(b, type, o->bits, out);
  }
}

static hg_status read_address(builder *b, const atlas_operand *o, ssa_insn *insn, uint32_t *args, uint32_t *count) {
  insn->mode = o->mode;
  insn->symbol = b->entry != NULL ? o->symbol | SSA_LIBRARY : o->symbol;
  insn->bits = o->bits;
  const uint16_t regs[3] = {o->mode == ATLAS_ADDRESS_INDEXED ? atlas_register_of(o) : o->reg, o->reg2, o->reg3};
  uint8_t used = o->mode == ATLAS_ADDRESS_INDEXED ? 1 : o->mode == ATLAS_ADDRESS_TABLE ? 3 : 0;
  if (o->mode == ATLAS_ADDRESS_PHI) insn->phi_registers = used = o->phi_registers;
  for (int i = 0; i < 3; i++)
    if (used >> i & 1) HG_TRY(read_register(b, regs[i], &args[(*count)++]));
  return HG_OK;
}

/* Arguments of an instruction: the address's registers, then sources and predicates in text order. */
static hg_status read_operands(builder *b, const atlas_insn *from, ssa_insn *insn, uint32_t *args, uint32_t *count) {
  const char *letters = atlas_op_lookup(from->op)->operands;
  for (unsigned i = 0; letters[i] != '\0'; i++) {
    const atlas_operand *o = &from->operand[i];
    switch (letters[i]) {
    case 'm': HG_TRY(read_address(b, o, insn, args, count)); break;
    case 's':
    case 'n': HG_TRY(read_source(b, o, from->type, &args[(*count)++])); break;
    case 't': HG_TRY(read_source(b, o, from->type2, &args[(*count)++])); break;
    case 'c': HG_TRY(read_source(b, o, ATLAS_u32, &args[(*count)++])); break;
    case 'q': args[(*count)++] = b->current[variable_of(b, 1, o->reg)]; break;
    case 'x': insn->bits = o->bits; break;
    case 'w': insn->symbol = o->symbol, insn->bits = o->bits; break;
    case 'k': insn->bits |= o->bits << SSA_WINDOW_SHIFT; break;
    case 'h':
    case 'b': insn->symbol = o->symbol; break;
    default: break;
    }
  }
  return HG_OK;
}

static hg_status rename_insn(builder *b, uint32_t block, uint32_t insn_index) {
  const atlas_insn *from = atlas_insn_at(b->program, insn_index);
  uint32_t args[8] = {0}, count = 0, value = 0;
  atlas_effects e;
  atlas_effects_of(from, &e);
  ssa_insn insn = {.op = from->op, .type = from->type, .type2 = from->type2, .insn = insn_index};
  if (e.defines == 2) {
    insn.type2 = from->type;
    insn.type = SSA_PREDICATE;
  }
  HG_TRY(read_operands(b, from, &insn, args, &count));
  if (from->op == ATLAS_OP_mov || from->op == ATLAS_OP_movi) {
    value = args[0];
  } else {
    HG_TRY(add_value(b, &insn, args, count, &value));
    if (!hg_is_pure(&insn)) ir_ssa_append_effect(b->unit, block, value);
  }
  return e.defines != 0 ? set_current(b, variable_of(b, e.defines == 2, e.def_reg), value) : HG_OK;
}

/* loop rC, label: subtracts 1 from rC, and makes the condition of the branch. */
static hg_status rename_loop(builder *b, const atlas_insn *from, uint32_t insn_index, uint32_t *condition) {
  uint32_t one = 0, zero = 0, counter = 0, variable = atlas_register_of(&from->operand[0]);
  HG_TRY(add_constant(b, ATLAS_u32, 1, &one));
  HG_TRY(add_constant(b, ATLAS_u32, 0, &zero));
  ssa_insn subtract = {.op = ATLAS_OP_sub, .type = ATLAS_u32, .insn = insn_index};
  HG_TRY(add_value(b, &subtract, (uint32_t[]){b->current[variable], one}, 2, &counter));
  HG_TRY(set_current(b, variable, counter));
  ssa_insn compare = {.op = ATLAS_OP_set_ne, .type = SSA_PREDICATE, .type2 = ATLAS_u32, .insn = insn_index};
  return add_value(b, &compare, (uint32_t[]){counter, zero}, 2, condition);
}

static hg_status rename_terminator(builder *b, uint32_t block, uint32_t node) {
  const atlas_insn *from = insn_of(b, node);
  uint32_t condition = SSA_NONE;
  if (from->op == ATLAS_OP_loop) HG_TRY(rename_loop(b, from, b->nodes[node].insn, &condition));
  else if (from->op == ATLAS_OP_bra && from->guard != 0)
    condition = b->current[variable_of(b, 1, (from->guard & (uint32_t)ATLAS_GUARD_PREDICATE) - 1)];
  ssa_block *end = ssa_block_at(b->unit, block);
  end->insn = b->nodes[node].insn;
  uint32_t next = b->graph.next[block], taken = b->graph.taken[block];
  if (next == IR_NONE) {
    end->end = from->op == ATLAS_OP_trap ? SSA_TRAP : SSA_EXIT;
    end->trap_code = from->op == ATLAS_OP_trap ? (uint32_t)from->operand[0].bits : 0;
    if (b->entry != NULL) end->condition = b->current[0];
    return HG_OK;
  }
  int negated = from->op == ATLAS_OP_bra && from->guard & ATLAS_GUARD_NEGATED;
  end->end = taken == IR_NONE ? SSA_JUMP : SSA_BRANCH;
  end->condition = taken == IR_NONE ? SSA_NONE : condition;
  end->successor[0] = taken == IR_NONE ? next : negated ? next : taken;
  end->successor[1] = taken == IR_NONE ? SSA_NONE : negated ? taken : next;
  return HG_OK;
}

/* The verifier has checked that all arguments have one type. A join is reached after at least one of its predecessors,
 * so a phi has its type before anything reads it. */
static void fill_phi(builder *b, uint32_t phi, uint32_t place, uint32_t value) {
  ssa_args_of(b->unit, phi)[place] = value;
  if (ssa_insn_at(b->unit, phi)->type == 0) ssa_insn_at(b->unit, phi)->type = ssa_insn_at(b->unit, value)->type;
}

/* The graph lists predecessors in ascending order, each once. */
static uint32_t edge_of(const builder *b, uint32_t block, uint32_t successor) {
  uint32_t low = b->graph.predecessor_start[successor], high = b->graph.predecessor_start[successor + 1];
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (b->graph.predecessors[middle] <= block) low = middle;
    else high = middle;
  }
  return low - b->graph.predecessor_start[successor];
}

static void fill_phis(builder *b, uint32_t block, uint32_t successor) {
  if (successor == IR_NONE) return;
  const uint32_t *variables = b->phi_variable.data;
  uint32_t edge = edge_of(b, block, successor);
  for (uint32_t phi = ssa_block_at(b->unit, successor)->first_phi; phi != SSA_NONE;
       phi = ssa_insn_at(b->unit, phi)->next)
    fill_phi(b, phi, edge, b->current[variables[phi]]);
}

static hg_status rename_block(builder *b, uint32_t block) {
  const uint32_t *variables = b->phi_variable.data;
  for (uint32_t phi = ssa_block_at(b->unit, block)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(b->unit, phi)->next)
    HG_TRY(set_current(b, variables[phi], phi));
  uint32_t first = b->graph.first[block], size = b->graph.size[block];
  for (uint32_t k = 0; k < size; k++)
    if (!(atlas_op_flags(insn_of(b, first + k)->op) & ATLAS_JUMP))
      HG_TRY(rename_insn(b, block, b->nodes[first + k].insn));
  HG_TRY(rename_terminator(b, block, first + size - 1));
  fill_phis(b, block, b->graph.next[block]);
  fill_phis(b, block, b->graph.taken[block]);
  return HG_OK;
}

static void undo_to(builder *b, size_t mark) {
  const uint32_t *entries = b->undo.data;
  while (b->undo.count > mark) {
    b->undo.count -= 2;
    b->current[entries[b->undo.count]] = entries[b->undo.count + 1];
  }
}

/* Depth-first over the dominator tree, without recursion; children are taken off their lists. */
static hg_status rename_all(builder *b) {
  uint32_t n = b->graph.block_count, depth = 0;
  uint32_t *stack = hg_allocate(&b->unit->allocator, 2 * (uint64_t)n, sizeof(uint32_t));
  if (stack == NULL) return out_of_memory();
  uint32_t *mark = stack + n;
  hg_status status = rename_block(b, 0);
  stack[depth] = 0;
  mark[depth++] = 0;
  while (depth > 0 && status == HG_OK) {
    uint32_t block = stack[depth - 1], next = b->child[block];
    if (next == SSA_NONE) {
      undo_to(b, mark[--depth]);
      continue;
    }
    b->child[block] = b->sibling[next];
    stack[depth] = next;
    mark[depth++] = (uint32_t)b->undo.count;
    status = rename_block(b, next);
  }
  hg_release(&b->unit->allocator, stack);
  return status;
}

/* ---- the unit ---------------------------------------------------------------------------------------------------- */

/* The arguments of a function are live-in in its first registers. */
static hg_status add_arguments(builder *b) {
  uint32_t count = b->entry == NULL ? 0 : atlas_argument_count(atlas_op_lookup(b->entry->op));
  for (uint32_t i = 0; i < count; i++) {
    ssa_insn argument = {
        .op = SSA_ARGUMENT, .type = atlas_entry_works_in(b->entry), .bits = i, .insn = SSA_NONE};
    HG_TRY(add_value(b, &argument, NULL, 0, &b->current[i]));
  }
  return HG_OK;
}

static void copy_nodes(builder *b) {
  memcpy(b->nodes, (const ir_node *)b->program->nodes.data + b->first_node, b->node_count * sizeof *b->nodes);
  for (uint32_t i = 0; i < b->node_count; i++) {
    if (b->nodes[i].next != IR_NONE) b->nodes[i].next -= b->first_node;
    if (b->nodes[i].taken != IR_NONE) b->nodes[i].taken -= b->first_node;
  }
}

static hg_status add_blocks(builder *b) {
  uint64_t values = 2 * (uint64_t)b->node_count; /* an estimate that includes constants and phis */
  HG_TRY(ir_ssa_reserve(b->unit, values, 2 * values, (uint64_t)b->graph.block_count + 1));
  for (uint32_t block = 0; block < b->graph.block_count; block++) {
    if (ir_ssa_add_block(b->unit) == SSA_NONE) return out_of_memory();
    uint32_t first = b->graph.predecessor_start[block], end = b->graph.predecessor_start[block + 1];
    hg_array *list = &ssa_block_at(b->unit, block)->predecessors;
    if (end > first &&
        (!hg_array_reserve(&b->unit->allocator, list, end - first) ||
         hg_array_append(&b->unit->allocator, list, b->graph.predecessors + first, end - first) == NULL))
      return out_of_memory();
  }
  return HG_OK;
}

/* The entry must have no predecessors: where the program begins with a loop header, an empty block is put before it.
 * The header has no phis: nothing is live-in at the start of a program. */
static hg_status separate_entry(ssa_unit *unit) {
  if (ssa_block_at(unit, 0)->predecessors.count == 0) return HG_OK;
  uint32_t moved = ir_ssa_add_block(unit), entry = 0;
  if (moved == SSA_NONE) return out_of_memory();
  ssa_block *first = ssa_block_at(unit, 0), *to = ssa_block_at(unit, moved);
  ssa_block empty = *to;
  *to = *first;
  *first = empty;
  first->end = SSA_JUMP;
  first->successor[0] = 0; /* a number of the old unit: the loop below renames it with all others */
  for (uint32_t e = to->first_effect; e != SSA_NONE; e = ssa_insn_at(unit, e)->next)
    ssa_insn_at(unit, e)->block = moved;
  for (uint32_t b = 0; b <= moved; b++) {
    ssa_block *block = ssa_block_at(unit, b);
    uint32_t *from = block->predecessors.data;
    for (int s = 0; s < 2; s++) block->successor[s] = block->successor[s] == 0 ? moved : block->successor[s];
    for (size_t i = 0; i < block->predecessors.count; i++) from[i] = from[i] == 0 ? moved : from[i];
  }
  return hg_array_append(&unit->allocator, &ssa_block_at(unit, moved)->predecessors, &entry, 1) != NULL
             ? HG_OK
             : out_of_memory();
}

static hg_status build(builder *b) {
  const hg_allocator *allocator = &b->unit->allocator;
  b->nodes = hg_allocate(allocator, b->node_count, sizeof *b->nodes);
  if (b->nodes == NULL) return out_of_memory();
  copy_nodes(b);
  HG_TRY(ir_graph_build(allocator, b->nodes, b->node_count, &b->graph));
  if (b->entry != NULL && b->graph.predecessor_start[1] > 0)
    return hg_fail(HG_UNSUPPORTED, "a library function begins with a loop; put an instruction before its label");
  b->variable_count = b->program->register_count + ATLAS_PREDICATES;
  b->words = (b->variable_count + 63) / 64;
  b->live_in = hg_allocate(allocator, 2 * (uint64_t)b->graph.block_count * b->words, sizeof(uint64_t));
  b->current = hg_allocate(allocator, b->variable_count, sizeof(uint32_t));
  if (b->live_in == NULL || b->current == NULL) return out_of_memory();
  b->defined = b->live_in + (size_t)b->graph.block_count * b->words;
  memset(b->current, 0xff, b->variable_count * sizeof *b->current);
  solve_liveness(b);
  if (b->entry == NULL) HG_TRY(check_defined(b));
  HG_TRY(build_tree(b));
  HG_TRY(add_blocks(b));
  HG_TRY(place_phis(b));
  HG_TRY(add_arguments(b));
  HG_TRY(rename_all(b));
  return separate_entry(b->unit);
}

static hg_status build_unit(builder *b) {
  b->undo.element_size = sizeof(uint32_t);
  b->phi_variable.element_size = sizeof(uint32_t);
  hg_status status = build(b);
  const hg_allocator *allocator = &b->unit->allocator;
  ir_graph_release(allocator, &b->graph);
  hg_release(allocator, b->nodes);
  hg_release(allocator, b->live_in);
  hg_release(allocator, b->current);
  hg_release(allocator, b->child);
  hg_array_release(allocator, &b->undo);
  hg_array_release(allocator, &b->phi_variable);
  return status;
}

hg_status hg_build_ssa(const atlas_program *program, ssa_unit *unit) {
  builder b = {.program = program, .unit = unit, .node_count = (uint32_t)program->nodes.count};
  return build_unit(&b);
}

hg_status hg_build_function_ssa(const atlas_program *library, const atlas_entry *entry, uint32_t end_node,
                                ssa_unit *unit) {
  builder b = {.program = library,
               .unit = unit,
               .entry = entry,
               .first_node = entry->node,
               .node_count = end_node - entry->node};
  return build_unit(&b);
}
