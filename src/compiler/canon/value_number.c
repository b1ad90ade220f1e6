/* value_number.c - simplification and global value numbering in one walk.
 *
 * Pure values are merged wherever they stand: with equal arguments they can be computed in the same place. Loads, and
 * other effects without side effects, are merged with an earlier one that dominates them if nothing between may have
 * written the memory: each group of locations has a version, which writes and barriers change.
 *
 * A later load must not be merged into a dead one: it would stand where the program without the dead load has none. So
 * loads are merged only after control flow and dead code removal have come to rest, and within blocks first, because
 * that may make further loads dead. */
#include "compiler/canon/passes.h"

#include "atlas/tables.h"
#include "base/bytes.h"
#include "base/error.h"
#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/effects.h"
#include "compiler/canon/alike.h"
#include "compiler/canon/simplify.h"
#include "ir/ssa_order.h"

#include <string.h>

typedef enum load_merging { MERGE_NO_LOADS, MERGE_IN_BLOCKS, MERGE_ALL } load_merging;

typedef struct slot {
  uint32_t entry;   /* value + 1; 0: free */
  uint32_t version; /* of the memory that a load sees */
  uint32_t hash;    /* compared first, because it tells most different values apart */
} slot;

typedef struct numbering {
  load_merging loads;
  int effects_alone;  /* visit effects only: no rule applies to pure values any more */
  const atlas_program *program;
  ssa_unit *unit;
  ssa_order order;
  int *changed;
  hg_array done;      /* uint8_t a value: visited in this walk */
  hg_array stack;     /* uint32_t: values waiting for their arguments */
  slot *slots;        /* hash table */
  uint32_t slot_count, used;
  uint32_t *group;    /* per location */
  uint8_t *read_only; /* per location */
  uint32_t locations;
  uint32_t *version;  /* per location (by group): the current version */
  uint32_t *end_version; /* per block and location */
  uint32_t next_version;
  uint32_t block_version; /* for effects that are merged within one block only */
} numbering;

static hg_status out_of_memory(void) { return hg_fail_memory("value numbering", 0); }

/* ---- the table --------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(const numbering *n, uint32_t value, uint32_t version) {
  const ssa_insn *insn = ssa_insn_at(n->unit, value);
  uint64_t hash =
      hg_hash_mix(hg_hash_mix(0, insn->op), (uint64_t)insn->type << 24 | (uint64_t)insn->type2 << 16 | insn->symbol);
  hash = hg_hash_mix(hg_hash_mix(hash, insn->bits),
                     (uint64_t)version << 16 | (uint64_t)insn->mode << 8 | insn->phi_registers);
  const uint32_t *args = ssa_args_of(n->unit, value);
  for (uint32_t i = 0; i < insn->arg_count; i++) hash = hg_hash_mix(hash, args[i]);
  return (uint32_t)(insn->op == SSA_PHI ? hg_hash_mix(hash, insn->block) : hash);
}

static int is_same(const numbering *n, uint32_t a, uint32_t b) {
  const ssa_insn *x = ssa_insn_at(n->unit, a), *y = ssa_insn_at(n->unit, b);
  if (x->op != y->op || x->type != y->type || x->type2 != y->type2 || x->mode != y->mode ||
      x->phi_registers != y->phi_registers || x->symbol != y->symbol || x->bits != y->bits ||
      x->arg_count != y->arg_count)
    return 0;
  if (x->op == SSA_PHI && x->block != y->block) return 0;
  return x->arg_count == 0 ||
         memcmp(ssa_args_of(n->unit, a), ssa_args_of(n->unit, b), x->arg_count * sizeof(uint32_t)) == 0;
}

static hg_status grow_slots(numbering *n) {
  uint32_t count = n->slot_count == 0 ? 128 : n->slot_count * 2;
  slot *slots = hg_allocate(&n->unit->allocator, count, sizeof *slots);
  if (slots == NULL) return out_of_memory();
  for (uint32_t i = 0; i < n->slot_count; i++) {
    uint32_t at = n->slots[i].hash & (count - 1);
    if (n->slots[i].entry == 0) continue;
    while (slots[at].entry != 0) at = (at + 1) & (count - 1);
    slots[at] = n->slots[i];
  }
  hg_release(&n->unit->allocator, n->slots);
  n->slots = slots;
  n->slot_count = count;
  return HG_OK;
}

/* The slot of an equal value, or the free one where it belongs, with its hash. */
static hg_status find_slot(numbering *n, uint32_t value, uint32_t version, slot **out) {
  if (n->used * 2 >= n->slot_count) HG_TRY(grow_slots(n));
  uint32_t hash = hash_of(n, value, version);
  slot *s = &n->slots[hash & (n->slot_count - 1)], *end = n->slots + n->slot_count;
  while (s->entry != 0 && !(s->hash == hash && s->version == version && is_same(n, s->entry - 1, value)))
    s = s + 1 == end ? n->slots : s + 1;
  s->hash = hash;
  *out = s;
  return HG_OK;
}

static void occupy(numbering *n, slot *s, uint32_t value, uint32_t version) {
  n->used += s->entry == 0;
  s->entry = value + 1;
  s->version = version;
}

/* a + b and b + a get one order. Any order serves within a walk; canon_order.c chooses the final one. */
static void order_operands(numbering *n, uint32_t value) {
  uint32_t *args = ssa_args_of(n->unit, value);
  if (!hg_commutes(ssa_insn_at(n->unit, value)) || args[0] <= args[1]) return;
  int first_constant = ssa_insn_at(n->unit, args[0])->op == SSA_CONST,
      second_constant = ssa_insn_at(n->unit, args[1])->op == SSA_CONST;
  if (first_constant != second_constant) return; /* simplify.c has put the constant second */
  uint32_t swapped = args[0];
  args[0] = args[1];
  args[1] = swapped;
}

static hg_status merge_pure(numbering *n, uint32_t value) {
  slot *found;
  order_operands(n, value);
  HG_TRY(find_slot(n, value, 0, &found));
  if (found->entry == 0) {
    occupy(n, found, value, 0);
  } else if (found->entry - 1 != value) {
    ir_ssa_replace(n->unit, value, found->entry - 1);
    *n->changed = 1;
  }
  return HG_OK;
}

/* ---- pure values ------------------------------------------------------------------------------------------------- */

static int is_done(const numbering *n, uint32_t value) {
  return value < n->done.count && ((const uint8_t *)n->done.data)[value];
}

/* Grows `done` first where simplification has added values. */
static hg_status set_done(numbering *n, uint32_t value) {
  size_t missing = value < n->done.count ? 0 : n->unit->insns.count - n->done.count;
  if (missing > 0 && hg_array_append(&n->unit->allocator, &n->done, NULL, missing) == NULL) return out_of_memory();
  ((uint8_t *)n->done.data)[value] = 1;
  return HG_OK;
}

static void resolve_args(numbering *n, uint32_t value) {
  uint32_t *args = ssa_args_of(n->unit, value);
  for (uint32_t i = 0; i < ssa_insn_at(n->unit, value)->arg_count; i++) args[i] = ir_ssa_resolve(n->unit, args[i]);
}

static int is_unvisited(const numbering *n, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(n->unit, value);
  return !is_done(n, value) && insn->block == SSA_NONE && insn->op != SSA_PHI;
}

/* Puts the first argument that has not been visited on the stack; 0 if there is none, and all are resolved. */
static int push_argument(numbering *n, uint32_t value, hg_status *status) {
  uint32_t *args = ssa_args_of(n->unit, value), count = ssa_insn_at(n->unit, value)->arg_count;
  for (uint32_t i = 0; i < count; i++) {
    args[i] = ir_ssa_resolve(n->unit, args[i]);
    if (!is_unvisited(n, args[i])) continue;
    if (!hg_array_push(&n->unit->allocator, &n->stack, args[i])) *status = out_of_memory();
    return 1;
  }
  return 0;
}

/* All arguments of the value are visited: simplifies it, and visits the values that simplification adds. */
static hg_status simplify_and_merge(numbering *n, uint32_t value, int *finished) {
  hg_status status = HG_OK;
  int changed = 0;
  HG_TRY(hg_simplify(n->unit, value, &changed));
  if (changed) {
    *n->changed = 1;
    uint32_t now = ir_ssa_resolve(n->unit, value);
    if (now != value) {
      *finished = !is_unvisited(n, now);
      if (*finished) return set_done(n, value);
      return hg_array_push(&n->unit->allocator, &n->stack, now) ? HG_OK : out_of_memory();
    }
    *finished = !push_argument(n, value, &status);
    HG_TRY(status);
    if (!*finished) return HG_OK;
  }
  HG_TRY(set_done(n, value));
  return merge_pure(n, value);
}

/* Visits a pure value and everything below it; arguments are taken off the stack before their users. */
static hg_status visit_value(numbering *n, uint32_t value) {
  value = ir_ssa_resolve(n->unit, value);
  if (!is_unvisited(n, value)) return HG_OK;
  if (!hg_array_push(&n->unit->allocator, &n->stack, value)) return out_of_memory();
  while (n->stack.count > 0) {
    uint32_t top = ((uint32_t *)n->stack.data)[n->stack.count - 1];
    hg_status status = HG_OK;
    int finished = 1;
    if (!is_done(n, top) && ir_ssa_resolve(n->unit, top) == top) {
      if (push_argument(n, top, &status)) {
        HG_TRY(status);
        continue;
      }
      HG_TRY(simplify_and_merge(n, top, &finished));
    }
    if (finished) n->stack.count--;
  }
  return HG_OK;
}

static hg_status visit_args(numbering *n, uint32_t value) {
  for (uint32_t i = 0; i < ssa_insn_at(n->unit, value)->arg_count; i++)
    HG_TRY(visit_value(n, ssa_args_of(n->unit, value)[i]));
  resolve_args(n, value);
  return HG_OK;
}

/* ---- phis -------------------------------------------------------------------------------------------------------- */

/* 1 if all arguments of the phi are one value, or the phi itself; replaces it by that value. */
static int is_one_value(numbering *n, uint32_t phi) {
  resolve_args(n, phi);
  const ssa_insn *insn = ssa_insn_at(n->unit, phi);
  const uint32_t *args = ssa_args_of(n->unit, phi);
  uint32_t only = SSA_NONE;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    if (args[i] == phi || args[i] == only) continue;
    if (only != SSA_NONE) return 0;
    only = args[i];
  }
  if (only == SSA_NONE) return 1;
  ir_ssa_replace(n->unit, phi, only);
  *n->changed = 1;
  return 1;
}

/* Arguments of back edges have not been visited yet: revisit_phis and a later walk do that. */
static hg_status visit_phi(numbering *n, uint32_t phi) { return is_one_value(n, phi) ? HG_OK : merge_pure(n, phi); }

/* At the end of a walk the arguments of back edges are known. Inner loops first: then one walk, rather than one for
 * each loop, finds an invariant that is a phi of several nested loops. */
static void revisit_phis(numbering *n) {
  for (uint32_t k = n->order.count; k-- > 0;)
    for (uint32_t phi = ssa_block_at(n->unit, n->order.block[k])->first_phi; phi != SSA_NONE;
         phi = ssa_insn_at(n->unit, phi)->next)
      if (ir_ssa_resolve(n->unit, phi) == phi) is_one_value(n, phi);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void new_version(numbering *n, uint32_t group) { n->version[group] = n->next_version++; }

static void new_versions(numbering *n) {
  for (uint32_t l = 0; l < n->locations; l++) new_version(n, l);
}

/* Gives new versions to all memory that other lanes see. */
static void new_shared_versions(numbering *n) {
  for (uint32_t l = 0; l < n->locations; l++)
    if (!hg_is_private(n->program, l)) new_version(n, l);
}

/* A block starts with the versions that all its predecessors end with, and with a new version where they differ. A loop
 * header starts with new versions of everything. */
static void enter_block(numbering *n, uint32_t block) {
  const hg_array *predecessors = &ssa_block_at(n->unit, block)->predecessors;
  const uint32_t *from = predecessors->data;
  n->block_version = n->next_version++;
  for (size_t i = 0; i < predecessors->count; i++)
    if (n->order.position[from[i]] >= n->order.position[block]) {
      new_versions(n);
      return;
    }
  if (predecessors->count == 0) new_versions(n);
  for (size_t i = 0; i < predecessors->count; i++) {
    const uint32_t *end = n->end_version + (size_t)from[i] * n->locations;
    if (i == 0) memcpy(n->version, end, n->locations * sizeof(uint32_t));
    for (uint32_t l = 0; l < n->locations; l++)
      if (n->version[l] != end[l]) n->version[l] = 0; /* a version that no memory has */
  }
  for (uint32_t l = 0; l < n->locations; l++)
    if (n->version[l] == 0) new_version(n, l);
}

/* The version of the state that an effect's result depends on: 1 for state that never changes, 0 for effects that are
 * never merged. */
static uint32_t version_of(const numbering *n, const ssa_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info->flags & ATLAS_LOAD) {
    uint32_t location = hg_location_of(n->program, insn);
    return n->read_only[location] ? 1 : n->version[n->group[location]];
  }
  if (hg_is_class_query(insn)) return 1;
  /* Two collectives merge only within one block of the unit: elsewhere lanes may have left between them. */
  return hg_is_collective(insn) ? n->block_version : 0;
}

static hg_status merge_load(numbering *n, uint32_t value, uint32_t version) {
  slot *at;
  HG_TRY(find_slot(n, value, version, &at));
  uint32_t found = at->entry;
  if (found == value + 1) return HG_OK;
  uint32_t block = ssa_insn_at(n->unit, value)->block;
  uint32_t before = found != 0 ? ssa_insn_at(n->unit, found - 1)->block : SSA_NONE;
  if (before == block || (found != 0 && n->loads == MERGE_ALL && ssa_dominates(&n->order, before, block))) {
    ir_ssa_replace(n->unit, value, found - 1);
    *n->changed = 1;
    return HG_OK;
  }
  occupy(n, at, value, version);
  return HG_OK;
}

static hg_status visit_effect(numbering *n, uint32_t value) {
  if (n->effects_alone) {
    resolve_args(n, value);
  } else {
    HG_TRY(visit_args(n, value));
    HG_TRY(hg_simplify(n->unit, value, n->changed));
  }
  const ssa_insn *insn = ssa_insn_at(n->unit, value);
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  uint32_t version = version_of(n, insn);
  if (version != 0) return n->loads != MERGE_NO_LOADS ? merge_load(n, value, version) : HG_OK;
  if (info->flags & (ATLAS_STORE | ATLAS_ATOMIC)) new_version(n, n->group[hg_location_of(n->program, insn)]);
  else if (hg_orders_all(insn)) new_shared_versions(n);
  return HG_OK;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static hg_status visit_effects(numbering *n, uint32_t block) {
  for (uint32_t e = ssa_block_at(n->unit, block)->first_effect; e != SSA_NONE; e = ssa_insn_at(n->unit, e)->next)
    if (ir_ssa_resolve(n->unit, e) == e) HG_TRY(visit_effect(n, e));
  return HG_OK;
}

/* Visits what only the branch and the phis of successors use. */
static hg_status visit_end(numbering *n, uint32_t block) {
  if (ssa_block_at(n->unit, block)->condition != SSA_NONE) {
    HG_TRY(visit_value(n, ssa_block_at(n->unit, block)->condition));
    ssa_block *b = ssa_block_at(n->unit, block);
    b->condition = ir_ssa_resolve(n->unit, b->condition);
  }
  for (int s = 0; s < 2; s++) {
    uint32_t successor = ssa_block_at(n->unit, block)->successor[s];
    if (successor == SSA_NONE) continue;
    uint32_t edge = n->order.edge[2 * (size_t)block + (unsigned)s];
    for (uint32_t phi = ssa_block_at(n->unit, successor)->first_phi; phi != SSA_NONE;
         phi = ssa_insn_at(n->unit, phi)->next) {
      HG_TRY(visit_value(n, ssa_args_of(n->unit, phi)[edge]));
      uint32_t *arg = ssa_args_of(n->unit, phi) + edge;
      *arg = ir_ssa_resolve(n->unit, *arg);
    }
  }
  return HG_OK;
}

static hg_status visit_block(numbering *n, uint32_t block) {
  enter_block(n, block);
  if (n->effects_alone) {
    HG_TRY(visit_effects(n, block));
  } else {
    for (uint32_t phi = ssa_block_at(n->unit, block)->first_phi; phi != SSA_NONE;
         phi = ssa_insn_at(n->unit, phi)->next)
      if (ir_ssa_resolve(n->unit, phi) == phi) HG_TRY(visit_phi(n, phi));
    HG_TRY(visit_effects(n, block));
    HG_TRY(visit_end(n, block));
  }
  memcpy(n->end_version + (size_t)block * n->locations, n->version, n->locations * sizeof(uint32_t));
  return HG_OK;
}

static hg_status allocate_tables(numbering *n) {
  const hg_allocator *allocator = &n->unit->allocator;
  n->locations = hg_location_count(n->program);
  HG_TRY(n->loads == MERGE_ALL ? ir_ssa_order_build(n->unit, &n->order) : ir_ssa_order_number(n->unit, &n->order));
  n->group = hg_allocate(allocator, (3 + (uint64_t)n->unit->blocks.count) * n->locations, sizeof(uint32_t));
  if (n->group == NULL) return out_of_memory();
  n->version = n->group + n->locations;
  n->end_version = n->version + n->locations;
  n->read_only = (uint8_t *)(n->end_version + (size_t)n->unit->blocks.count * n->locations);
  hg_alias_groups(n->program, n->unit, n->group);
  for (uint32_t l = 0; l < n->locations; l++) n->read_only[l] = (uint8_t)hg_is_read_only(n->program, n->group, l);
  n->next_version = 2; /* 0: no memory, 1: memory that nothing writes */
  return HG_OK;
}

static hg_status walk(numbering *n) {
  HG_TRY(allocate_tables(n));
  for (uint32_t k = 0; k < n->order.count; k++) HG_TRY(visit_block(n, n->order.block[k]));
  if (!n->effects_alone) revisit_phis(n);
  return HG_OK;
}

static hg_status number_values(const atlas_program *program, ssa_unit *unit, load_merging loads, int effects_alone,
                               int *changed) {
  numbering n = {
      .loads = loads, .effects_alone = effects_alone, .program = program, .unit = unit, .changed = changed};
  n.done.element_size = 1;
  n.stack.element_size = sizeof(uint32_t);
  hg_status status = walk(&n);
  ir_ssa_order_release(unit, &n.order);
  hg_array_release(&unit->allocator, &n.done);
  hg_array_release(&unit->allocator, &n.stack);
  hg_release(&unit->allocator, n.slots);
  hg_release(&unit->allocator, n.group);
  return status;
}

hg_status hg_pass_value_number(const atlas_program *program, ssa_unit *unit, int *changed) {
  return number_values(program, unit, MERGE_NO_LOADS, 0, changed);
}

/* Most units have no equal loads, which hg_find_alike finds out quickly. Where loads were merged, loads that are
 * indexed by their results may have become equal. */
static hg_status merge_equal_loads(const atlas_program *program, ssa_unit *unit, load_merging loads, int *changed) {
  int any = 0;
  HG_TRY(hg_find_alike(unit, HG_ALIKE_EVERYWHERE, &any));
  if (!any) return HG_OK;
  any = 0;
  HG_TRY(number_values(program, unit, loads, 1, &any));
  if (!any) return HG_OK;
  *changed = 1;
  return number_values(program, unit, loads, 0, changed);
}

hg_status hg_pass_merge_near_loads(const atlas_program *program, ssa_unit *unit, int *changed) {
  return merge_equal_loads(program, unit, MERGE_IN_BLOCKS, changed);
}

hg_status hg_pass_merge_loads(const atlas_program *program, ssa_unit *unit, int *changed) {
  return merge_equal_loads(program, unit, MERGE_ALL, changed);
}
