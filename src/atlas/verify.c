/* verify.c - the verifier: declarations, instructions, control flow, types on every path, uniformity where instructions
 * require it.
 *
 * A program that passes cannot make any engine read an undefined register, jump anywhere but to an instruction, or hang
 * at a barrier. What depends on values (indices, trip counts) is checked when it runs. */
#include "atlas/insn.h"
#include "atlas/inline.h"
#include "atlas/verify_shape.h"
#include "base/error.h"
#include "ir/graph.h"
#include "ir/uniform.h"

#include <string.h>

typedef struct verifier {
  atlas_program *program;
  const char *source_name;
  const atlas_entry *entry; /* the function being verified; NULL: the program itself */
  uint32_t bad_insn;
  uint32_t register_count;
} verifier;

/* Puts place and instruction before the reason that is the last error. */
static hg_status explain(const verifier *v, hg_status status) {
  if (status != HG_VERIFY) return status;
  char reason[700];
  hg_clip(hg_last_error(), strlen(hg_last_error()), reason, sizeof reason);
  const atlas_insn *insn = atlas_insn_at(v->program, v->bad_insn);
  const char *mnemonic = atlas_op_name((atlas_op)insn->op);
  const hg_place place = {.source = v->source_name, .line = insn->line, .instruction = v->bad_insn};
  if (insn->line != 0) return hg_fail_at(HG_VERIFY, &place, "'%s': %s", mnemonic, reason);
  return hg_fail_at(HG_VERIFY, &place, "instruction %u '%s': %s", v->bad_insn, mnemonic, reason);
}

/* ---- types and definedness ------------------------------------------------------------------------------------------
 * Per block and value: the type it surely holds on entry, or why it holds none. Predicates are values of type
 * PREDICATE. */

enum { TYPE_UNDEFINED = 0, TYPE_PREDICATE = 0xf0, TYPE_MIXED = 0xfe, TYPE_UNVISITED = 0xff };

typedef struct flow {
  const ir_graph *graph;
  const ir_node *nodes;
  uint32_t value_count; /* register_count + ATLAS_PREDICATES */
  uint8_t *entry;       /* block_count x value_count */
  uint8_t *now;         /* value_count */
} flow;

static uint8_t meet(uint8_t a, uint8_t b) {
  if (a == TYPE_UNVISITED || a == b) return b;
  if (b == TYPE_UNVISITED) return a;
  return a == TYPE_UNDEFINED || b == TYPE_UNDEFINED ? TYPE_UNDEFINED : TYPE_MIXED;
}

static int meet_into(const flow *f, uint32_t block) {
  uint8_t *entry = f->entry + (size_t)block * f->value_count;
  int changed = 0;
  for (uint32_t i = 0; i < f->value_count; i++) {
    uint8_t met = meet(entry[i], f->now[i]);
    changed |= met != entry[i];
    entry[i] = met;
  }
  return changed;
}

static void define(const verifier *v, const flow *f, const atlas_effects *e) {
  if (e->defines == 1) f->now[e->def_reg] = e->def_type;
  if (e->defines == 2) f->now[v->register_count + e->def_reg] = TYPE_PREDICATE;
}

static hg_status check_use(const verifier *v, const flow *f, const atlas_use *use) {
  if (!use->predicate && atlas_is_special(use->reg)) return HG_OK; /* special: checked with the operand */
  uint8_t held = f->now[use->predicate ? v->register_count + use->reg : use->reg];
  char kind = use->predicate ? 'p' : 'r';
  if (held == TYPE_UNDEFINED) return hg_fail(HG_VERIFY, "%c%u may be read before it is written", kind, use->reg);
  if (held == TYPE_MIXED)
    return hg_fail(HG_VERIFY, "r%u holds different types on the paths that meet here; write it anew first", use->reg);
  if (use->predicate) return HG_OK;
  if (use->type == ATLAS_ANY_INTEGER && atlas_is_integer((atlas_type)held)) return HG_OK;
  if (use->type == ATLAS_ANY_INTEGER)
    return hg_fail(HG_VERIFY, "r%u is an index and must hold an integer; it holds %s", use->reg,
                   atlas_type_name((atlas_type)held));
  if (use->type != held)
    return hg_fail(HG_VERIFY, "r%u holds %s, not %s; convert it with cvt or bitcast", use->reg,
                   atlas_type_name((atlas_type)held), atlas_type_name((atlas_type)use->type));
  return HG_OK;
}

static hg_status check_result(const verifier *v, const flow *f) {
  uint8_t held = f->now[0];
  uint8_t asked = atlas_entry_works_in(v->entry);
  if (held == asked) return HG_OK;
  return hg_fail(HG_VERIFY, "the function must return %s in r0", atlas_type_name((atlas_type)asked));
}

/* Walks a block from its entry state; with `check`, every use must have the type that its instruction requires. */
static hg_status walk_block(verifier *v, const flow *f, uint32_t block, int check) {
  memcpy(f->now, f->entry + (size_t)block * f->value_count, f->value_count);
  for (uint32_t k = 0; k < f->graph->size[block]; k++) {
    const ir_node *node = &f->nodes[f->graph->first[block] + k];
    const atlas_insn *insn = atlas_insn_at(v->program, node->insn);
    atlas_effects effects;
    atlas_effects_of(insn, &effects);
    v->bad_insn = node->insn;
    for (unsigned i = 0; check && i < effects.use_count; i++) HG_TRY(check_use(v, f, &effects.use[i]));
    if (check && v->entry != NULL && insn->op == ATLAS_OP_ret && node->next == IR_NONE) HG_TRY(check_result(v, f));
    define(v, f, &effects);
  }
  return HG_OK;
}

static hg_status solve_types(verifier *v, flow *f) {
  const ir_graph *g = f->graph;
  memset(f->entry, TYPE_UNVISITED, (size_t)g->block_count * f->value_count);
  memset(f->entry, TYPE_UNDEFINED, f->value_count);
  if (v->entry != NULL)
    memset(f->entry, atlas_entry_works_in(v->entry), atlas_argument_count(atlas_op_lookup(v->entry->op)));
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t k = 0; k < g->block_count; k++) {
      uint32_t block = g->order[k];
      HG_TRY(walk_block(v, f, block, 0));
      /* Only an edge to a block that has been walked already needs another round. */
      if (g->next[block] != IR_NONE && meet_into(f, g->next[block])) changed |= g->position[g->next[block]] <= k;
      if (g->taken[block] != IR_NONE && meet_into(f, g->taken[block])) changed |= g->position[g->taken[block]] <= k;
    }
  }
  for (uint32_t b = 0; b < g->block_count; b++) HG_TRY(walk_block(v, f, b, 1));
  return HG_OK;
}

static hg_status check_types(verifier *v, const ir_graph *graph, const ir_node *nodes) {
  const hg_allocator *allocator = &v->program->allocator;
  flow f = {.graph = graph, .nodes = nodes, .value_count = v->register_count + ATLAS_PREDICATES};
  uint64_t bytes = ((uint64_t)graph->block_count + 1) * f.value_count;
  f.now = hg_allocate(allocator, bytes, 1);
  if (f.now == NULL) return hg_fail_memory("checking types", bytes);
  f.entry = f.now + f.value_count;
  hg_status status = solve_types(v, &f);
  hg_release(allocator, f.now);
  return status;
}

/* ---- uniformity -------------------------------------------------------------------------------------------------- */

static uint8_t special_level(uint16_t reg) {
  switch (reg) {
  case ATLAS_REG_BLOCK_SIZE: return IR_GRID;
  case ATLAS_REG_BLOCK_INDEX: return IR_BLOCK;
  default: return IR_LANE;
  }
}

static uint8_t coordinate_level(uint64_t coord) {
  if (coord <= ATLAS_COORD_LANE_Z || coord >= ATLAS_COORD_GLOBAL_X) return IR_LANE;
  return coord <= ATLAS_COORD_BLOCK_Z ? IR_BLOCK : IR_GRID;
}

/* A load of memory that nothing writes is as uniform as its address; any other load is divergent. */
static uint8_t load_level(const atlas_program *p, const atlas_insn *insn, const atlas_op_info *info) {
  const atlas_symbol *memory = atlas_memory_of(p, insn);
  int read_only = info->flags & ATLAS_SPACE_CONST || (memory != NULL && memory->access == ATLAS_IN);
  return read_only ? IR_GRID : IR_LANE;
}

static uint8_t least_level(const atlas_program *p, const atlas_insn *insn, const atlas_op_info *info) {
  if (info->flags & ATLAS_LOAD) return load_level(p, insn, info);
  if (info->flags & ATLAS_ATOMIC) return IR_LANE;
  switch (insn->op) {
  case ATLAS_OP_sreg: return coordinate_level(insn->operand[1].bits);
  case ATLAS_OP_cls_get: return IR_BLOCK;
  case ATLAS_OP_scan_incl:
  case ATLAS_OP_scan_excl:
  case ATLAS_OP_rank: return IR_LANE;
  default: return info->flags & ATLAS_BLOCK ? IR_BLOCK : IR_GRID;
  }
}

static void effect_of(const void *context, uint32_t insn_index, ir_effect *effect) {
  const verifier *v = context;
  const atlas_insn *insn = atlas_insn_at(v->program, insn_index);
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  atlas_effects e;
  atlas_effects_of(insn, &e);
  *effect = (ir_effect){.def = IR_NO_VALUE, .least = least_level(v->program, insn, info)};
  effect->fixed = (info->flags & ATLAS_BLOCK) != 0;
  effect->branches = insn->op == ATLAS_OP_loop || (insn->op == ATLAS_OP_bra && insn->guard != 0);
  for (unsigned i = 0; i < e.use_count; i++) {
    const atlas_use *use = &e.use[i];
    if (use->predicate) effect->use[effect->use_count++] = (uint16_t)(v->register_count + use->reg);
    else if (!atlas_is_special(use->reg)) effect->use[effect->use_count++] = use->reg;
    else if (special_level(use->reg) > effect->least && !effect->fixed) effect->least = special_level(use->reg);
  }
  if (e.defines == 1) effect->def = e.def_reg;
  if (e.defines == 2) effect->def = (uint16_t)(v->register_count + e.def_reg);
}

static hg_status control_differs(const verifier *v, const ir_uniformity *u, uint32_t block, const ir_node *nodes,
                                 const char *scope) {
  uint32_t cause = u->cause[block];
  const atlas_insn *branch = cause == IR_NONE ? NULL : atlas_insn_at(v->program, nodes[cause].insn);
  if (branch == NULL) return hg_fail(HG_VERIFY, "control is not uniform in the %s here", scope);
  const char *mnemonic = atlas_op_name((atlas_op)branch->op);
  if (branch->line != 0)
    return hg_fail(HG_VERIFY,
                   "control is not uniform in the %s here: the '%s' in line %u may go either way in different lanes",
                   scope, mnemonic, branch->line);
  return hg_fail(
      HG_VERIFY,
      "control is not uniform in the %s here: the '%s' at instruction %u may go either way in different lanes", scope,
      mnemonic, nodes[cause].insn);
}

static uint8_t operand_level(const ir_effect *effect, const uint8_t *levels, const atlas_insn *insn) {
  uint8_t level = ir_use_level(effect, levels);
  atlas_effects e;
  atlas_effects_of(insn, &e);
  for (unsigned i = 0; i < e.use_count; i++)
    if (!e.use[i].predicate && atlas_is_special(e.use[i].reg) && special_level(e.use[i].reg) > level)
      level = special_level(e.use[i].reg);
  return level;
}

static hg_status check_uniform_insn(verifier *v, const ir_uniformity *u, uint32_t block, const ir_node *nodes,
                                    const atlas_insn *insn, const ir_effect *effect, const uint8_t *levels) {
  uint32_t flags = atlas_op_lookup(insn->op)->flags;
  if (flags & ATLAS_BLOCK && u->control[block] > IR_BLOCK) return control_differs(v, u, block, nodes, "block");
  if (flags & ATLAS_GRID && u->control[block] > IR_GRID) return control_differs(v, u, block, nodes, "grid");
  uint8_t level = operand_level(effect, levels, insn);
  if (flags & ATLAS_GRID && level > IR_GRID)
    return hg_fail(HG_VERIFY, "its operand must be uniform in the grid (the same in every lane); this one may differ");
  int is_pool = insn->op == ATLAS_OP_pool_alloc || insn->op == ATLAS_OP_pool_free;
  if (is_pool && level > IR_BLOCK)
    return hg_fail(HG_VERIFY, "its operand must be uniform in the block (the same in every lane); this one may differ");
  return HG_OK;
}

static hg_status check_uniform_blocks(verifier *v, const ir_graph *graph, const ir_node *nodes, const ir_uniformity *u,
                                      uint8_t *levels) {
  for (uint32_t b = 0; b < graph->block_count; b++) {
    memcpy(levels, u->entry + (size_t)b * u->value_count, u->value_count);
    for (uint32_t k = 0; k < graph->size[b]; k++) {
      uint32_t insn_index = nodes[graph->first[b] + k].insn;
      ir_effect effect;
      effect_of(v, insn_index, &effect);
      v->bad_insn = insn_index;
      HG_TRY(check_uniform_insn(v, u, b, nodes, atlas_insn_at(v->program, insn_index), &effect, levels));
      ir_uniform_step(&effect, u->control[b], levels);
    }
  }
  return HG_OK;
}

static int asks_for_uniformity(const atlas_program *p) {
  for (size_t i = 0; i < p->insns.count; i++)
    if (atlas_op_lookup(atlas_insn_at(p, i)->op)->flags & (ATLAS_BLOCK | ATLAS_GRID)) return 1;
  return 0;
}

static hg_status check_uniformity(verifier *v, const ir_graph *graph, const ir_node *nodes) {
  if (!asks_for_uniformity(v->program)) return HG_OK;
  const hg_allocator *allocator = &v->program->allocator;
  uint32_t value_count = v->register_count + ATLAS_PREDICATES;
  ir_uniformity u;
  hg_status status = ir_uniformity_build(allocator, nodes, graph, value_count, effect_of, v, &u);
  uint8_t *levels = status == HG_OK ? hg_allocate(allocator, value_count, 1) : NULL;
  if (status == HG_OK && levels == NULL) status = hg_fail_memory("the uniformity analysis", value_count);
  if (status == HG_OK) status = check_uniform_blocks(v, graph, nodes, &u, levels);
  hg_release(allocator, levels);
  ir_uniformity_release(allocator, &u);
  return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static hg_status check_graph(verifier *v, const ir_graph *graph, ir_node *nodes) {
  if (graph->irreducible_node != IR_NONE) {
    v->bad_insn = nodes[graph->irreducible_node].insn;
    return hg_fail(
        HG_VERIFY,
        "control flow is irreducible: this closes a loop that can also be entered elsewhere than at its header");
  }
  HG_TRY(check_types(v, graph, nodes));
  return check_uniformity(v, graph, nodes);
}

static void renumber_nodes(ir_node *nodes, uint32_t count, uint32_t by) {
  for (uint32_t i = 0; i < count; i++) {
    if (nodes[i].next != IR_NONE) nodes[i].next += by;
    if (nodes[i].taken != IR_NONE) nodes[i].taken += by;
  }
}

/* The code that starts at one instruction: the program, or one function of a library. */
static hg_status verify_code(verifier *v, uint32_t start) {
  atlas_program *p = v->program;
  uint32_t first = (uint32_t)p->nodes.count;
  HG_TRY(atlas_inline_calls(p, start, v->entry != NULL, &v->bad_insn));
  uint32_t count = (uint32_t)p->nodes.count - first;
  ir_node *nodes = (ir_node *)p->nodes.data + first;
  renumber_nodes(nodes, count, 0 - first); /* the graph counts from its own first node */
  ir_graph graph;
  hg_status status = ir_graph_build(&p->allocator, nodes, count, &graph);
  if (status == HG_OK) status = check_graph(v, &graph, nodes);
  ir_graph_release(&p->allocator, &graph);
  renumber_nodes(nodes, count, first);
  return status;
}

static void note_registers(verifier *v) {
  for (size_t i = 0; i < v->program->insns.count; i++) {
    atlas_effects e;
    atlas_effects_of(atlas_insn_at(v->program, i), &e);
    if (e.defines == 1 && e.def_reg >= v->register_count) v->register_count = e.def_reg + 1u;
    for (unsigned k = 0; k < e.use_count; k++)
      if (!e.use[k].predicate && !atlas_is_special(e.use[k].reg) && e.use[k].reg >= v->register_count)
        v->register_count = e.use[k].reg + 1u;
  }
  if (v->program->entries.count > 0 && v->register_count < 2) v->register_count = 2; /* arguments and result */
  v->program->register_count = v->register_count;
}

static int observes_block(const atlas_program *p) {
  for (size_t i = 0; i < p->insns.count; i++) {
    const atlas_insn *insn = atlas_insn_at(p, i);
    const atlas_symbol *memory = atlas_memory_of(p, insn);
    if (atlas_op_lookup(insn->op)->flags & ATLAS_BLOCK || insn->op == ATLAS_OP_cls_get) return 1;
    if (memory != NULL && memory->kind == ATLAS_SYMBOL_SHARED) return 1;
    if (insn->op == ATLAS_OP_sreg && insn->operand[1].bits < ATLAS_COORD_GLOBAL_X) return 1;
    atlas_effects e;
    atlas_effects_of(insn, &e);
    for (unsigned k = 0; k < e.use_count; k++)
      if (!e.use[k].predicate && atlas_is_special(e.use[k].reg) && e.use[k].reg != ATLAS_REG_LANE) return 1;
  }
  return p->block[0] != 0;
}

static hg_status verify_all(verifier *v) {
  atlas_program *p = v->program;
  for (size_t i = 0; i < p->insns.count; i++) {
    v->bad_insn = (uint32_t)i;
    hg_status status = atlas_verify_insn(p, atlas_insn_at(p, i));
    if (status != HG_OK) return explain(v, status);
  }
  note_registers(v);
  p->nodes.count = 0;
  if (p->entries.count == 0) return explain(v, verify_code(v, 0));
  for (size_t i = 0; i < p->entries.count; i++) {
    atlas_entry *entry = (atlas_entry *)p->entries.data + i;
    entry->node = (uint32_t)p->nodes.count;
    v->entry = entry;
    v->bad_insn = 0;
    hg_status status = verify_code(v, atlas_label_at(p, entry->label)->target);
    if (status != HG_OK) return explain(v, status);
  }
  return HG_OK;
}

hg_status atlas_lay_out(atlas_program *program) {
  verifier v = {.program = program};
  note_registers(&v);
  program->nodes.count = 0;
  program->observes_block = observes_block(program);
  return atlas_inline_calls(program, 0, 0, &v.bad_insn);
}

hg_status atlas_verify(atlas_program *program, const char *source_name) {
  verifier v = {.program = program, .source_name = HG_LINE(source_name != NULL ? source_name : program->name)};
  hg_status status = atlas_verify_declarations(program);
  if (status == HG_VERIFY) {
    char reason[700];
    hg_clip(hg_last_error(), strlen(hg_last_error()), reason, sizeof reason);
    return hg_fail_at(HG_VERIFY, &(hg_place){.source = v.source_name, .instruction = -1}, "%s", reason);
  }
  HG_TRY(status);
  HG_TRY(verify_all(&v));
  program->observes_block = observes_block(program);
  return HG_OK;
}
