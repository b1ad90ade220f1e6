/* canon_order.c - one order for everything whose order in the text has no meaning: independent instructions, phis,
 * operands of commutative operations, blocks, predecessors.
 *
 * Each value gets a key that depends on what it computes and on nothing else. Values with equal keys are
 * interchangeable, unless two 64-bit hashes collide: then equal programs may not be found equal, but different ones
 * never are found equal. Effects are sorted by level, the length of the longest chain of effects in their block that
 * must come before, then by key. */
#include "compiler/canon/passes.h"

#include "atlas/tables.h"
#include "base/error.h"
#include "compiler/analysis/aliasing.h"
#include "compiler/canon/simplify.h"
#include "ir/ssa_walk.h"

#include <stdlib.h>
#include <string.h>

typedef struct orderer {
  const atlas_program *program;
  ssa_unit *unit;
  ssa_order order;
  hg_array values;     /* walk order */
  uint64_t *key;       /* per value */
  uint64_t *next_key;  /* per value: the keys of phis during a round */
  uint32_t *level; /* per value: the level of an effect; of a pure value, the highest level of the effects in
                      level_block that it depends on */
  uint32_t *level_block; /* per value: the block whose effects determine its level */
  uint32_t *group;     /* per location */
  uint32_t *read_level, *write_level; /* per location: highest level so far in the block */
  uint8_t *read_only;
  uint32_t locations;
} orderer;

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 31;
}

static uint32_t max_of(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* ---- levels ------------------------------------------------------------------------------------------------------ */

/* The level an effect needs because of what it uses in its own block. */
static uint32_t data_level(const orderer *o, uint32_t value, uint32_t block) {
  const ssa_insn *insn = ssa_insn_at(o->unit, value);
  uint32_t level = 0;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    uint32_t arg = ssa_args_of(o->unit, value)[i];
    if (ssa_insn_at(o->unit, arg)->op != SSA_PHI && o->level_block[arg] == block) level = max_of(level, o->level[arg]);
  }
  return level;
}

/* The highest level of an effect that must come before `insn` in memory order. */
static uint32_t order_level(orderer *o, const ssa_insn *insn) {
  uint32_t flags = atlas_op_flags(insn->op), level = 0;
  if (hg_orders_all(insn)) {
    for (uint32_t l = 0; l < o->locations; l++)
      if (!hg_is_private(o->program, l)) level = max_of(level, max_of(o->read_level[l], o->write_level[l]));
    return level;
  }
  if (insn->op == ATLAS_OP_pool_alloc || insn->op == ATLAS_OP_pool_free)
    return o->write_level[o->locations + insn->symbol];
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) return 0;
  uint32_t location = hg_location_of(o->program, insn);
  if (o->read_only[location]) return 0;
  level = o->write_level[o->group[location]];
  return flags & ATLAS_LOAD ? level : max_of(level, o->read_level[o->group[location]]);
}

static void note_level(orderer *o, const ssa_insn *insn, uint32_t level) {
  uint32_t flags = atlas_op_flags(insn->op);
  if (hg_orders_all(insn)) {
    for (uint32_t l = 0; l < o->locations; l++)
      if (!hg_is_private(o->program, l)) o->read_level[l] = o->write_level[l] = level;
    return;
  }
  if (insn->op == ATLAS_OP_pool_alloc || insn->op == ATLAS_OP_pool_free)
    o->write_level[o->locations + insn->symbol] = level;
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) return;
  uint32_t location = hg_location_of(o->program, insn), group = o->group[location];
  if (o->read_only[location]) return; /* nothing has to wait for a read of read-only memory */
  uint32_t *slot = flags & ATLAS_LOAD ? &o->read_level[group] : &o->write_level[group];
  *slot = max_of(*slot, level);
}

/* The level of a pure value counts effects of one block: of its arguments' blocks, the last in order. */
static void pure_level(orderer *o, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(o->unit, value);
  uint32_t block = SSA_NONE, level = 0;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    uint32_t arg = ssa_args_of(o->unit, value)[i], of = o->level_block[arg];
    if (of == SSA_NONE) continue;
    if (of == block) level = max_of(level, o->level[arg]);
    if (of == block || (block != SSA_NONE && o->order.position[of] < o->order.position[block])) continue;
    block = of;
    level = o->level[arg];
  }
  o->level_block[value] = block;
  o->level[value] = level;
}

static void find_levels(orderer *o) {
  uint32_t current = SSA_NONE;
  memset(o->level_block, 0xff, o->unit->insns.count * sizeof(uint32_t));
  for (size_t k = 0; k < o->values.count; k++) {
    uint32_t value = ((const uint32_t *)o->values.data)[k];
    const ssa_insn *insn = ssa_insn_at(o->unit, value);
    if (insn->op == SSA_PHI) continue;
    if (insn->block == SSA_NONE) {
      pure_level(o, value);
      continue;
    }
    if (insn->block != current) {
      current = insn->block;
      memset(o->read_level, 0, 4 * (size_t)o->locations * sizeof(uint32_t)); /* write_level follows in memory */
    }
    uint32_t level = 1 + max_of(data_level(o, value, current), order_level(o, insn));
    o->level[value] = level;
    o->level_block[value] = current;
    note_level(o, insn, level);
  }
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* Only the numbers of parameters are part of a program's identity, so a block is known by its position. */
static uint64_t position_of(const orderer *o, uint32_t block) {
  return block == SSA_NONE ? SSA_NONE : o->order.position[block];
}

static uint64_t operation_key(const orderer *o, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(o->unit, value);
  uint64_t key =
      mix(mix(0, insn->op), (uint64_t)insn->type << 40 | (uint64_t)insn->type2 << 32 | (uint64_t)insn->mode << 24 |
                                (uint64_t)insn->phi_registers << 16 | insn->symbol);
  key = mix(key, insn->bits);
  key = mix(key, position_of(o, insn->block));
  return insn->block != SSA_NONE && insn->op != SSA_PHI ? mix(key, o->level[value]) : key;
}

static uint64_t value_key(const orderer *o, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(o->unit, value);
  const uint32_t *args = ssa_args_of(o->unit, value);
  uint64_t key = operation_key(o, value);
  uint32_t first = 0;
  if (hg_commutes(insn)) {
    uint64_t a = o->key[args[0]], b = o->key[args[1]];
    key = a < b ? mix(mix(key, a), b) : mix(mix(key, b), a);
    first = 2;
  }
  for (uint32_t i = first; i < insn->arg_count; i++) key = mix(key, o->key[args[i]]);
  return key;
}

/* The arguments of a phi with the positions they come from: added up, because predecessors have no order yet. */
static uint64_t phi_key(const orderer *o, uint32_t phi) {
  const ssa_insn *insn = ssa_insn_at(o->unit, phi);
  const hg_array *predecessors = &ssa_block_at(o->unit, insn->block)->predecessors;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < insn->arg_count; i++)
    sum += mix(mix(1, position_of(o, ((const uint32_t *)predecessors->data)[i])), o->key[ssa_args_of(o->unit, phi)[i]]);
  return mix(o->key[phi], sum);
}

static int compare_keys(const void *left, const void *right) {
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return a < b ? -1 : a > b;
}

/* How many different keys the phis of each block have, in total; *all: how many phis there are. next_key is scratch. */
static size_t count_keys(const orderer *o, size_t *all) {
  size_t different = 0;
  *all = 0;
  for (uint32_t k = 0; k < o->order.count; k++) {
    size_t count = 0;
    for (uint32_t phi = ssa_block_at(o->unit, o->order.block[k])->first_phi; phi != SSA_NONE;
         phi = ssa_insn_at(o->unit, phi)->next)
      o->next_key[count++] = o->key[phi];
    if (count > 1) qsort(o->next_key, count, sizeof *o->next_key, compare_keys);
    for (size_t i = 0; i < count; i++) different += i == 0 || o->next_key[i] != o->next_key[i - 1];
    *all += count;
  }
  return different;
}

/* Computes the keys of a block's phis from the keys at the start of the visit, all before any is changed. So the order
 * of the phis in the text plays no part, and one round propagates keys along all forward edges. */
static size_t phis_keys(orderer *o, size_t first) {
  const uint32_t *values = o->values.data;
  uint32_t block = ssa_insn_at(o->unit, values[first])->block;
  size_t end = first;
  for (; end < o->values.count && ssa_insn_at(o->unit, values[end])->op == SSA_PHI &&
         ssa_insn_at(o->unit, values[end])->block == block;
       end++)
    o->next_key[end - first] = phi_key(o, values[end]);
  for (size_t k = first; k < end; k++) o->key[values[k]] = o->next_key[k - first];
  return end;
}

static void keys_round(orderer *o) {
  const uint32_t *values = o->values.data;
  for (size_t k = 0; k < o->values.count;) {
    if (ssa_insn_at(o->unit, values[k])->op == SSA_PHI) {
      k = phis_keys(o, k);
      continue;
    }
    o->key[values[k]] = value_key(o, values[k]);
    k++;
  }
}

enum { KEY_ROUNDS = 300 }; /* more than a program has registers, so that even a rotation of all registers is resolved */

/* The first key of a phi is its block and type. Each round adds the keys of its arguments, one step further back around
 * loops, until no round tells more phis apart. */
static void find_keys(orderer *o) {
  const uint32_t *values = o->values.data;
  size_t all = 1, different = 0, before = SIZE_MAX;
  for (size_t k = 0; k < o->values.count; k++)
    if (ssa_insn_at(o->unit, values[k])->op == SSA_PHI) o->key[values[k]] = operation_key(o, values[k]);
  for (int round = 0; round < KEY_ROUNDS && different < all && different != before; round++) {
    before = different;
    keys_round(o);
    different = count_keys(o, &all);
  }
}

/* ---- sorting ----------------------------------------------------------------------------------------------------- */

typedef struct item {
  uint64_t key;
  uint32_t level, value, place; /* place: where it was, which makes the sort stable */
} item;

static int compare_items(const void *left, const void *right) {
  const item *a = left, *b = right;
  if (a->level != b->level) return a->level < b->level ? -1 : 1;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return a->place < b->place ? -1 : a->place > b->place;
}

/* Sorts a list of values by level and key and links it anew. */
static uint32_t sort_list(const orderer *o, uint32_t first, item *items, uint32_t *last) {
  uint32_t count = 0;
  for (uint32_t v = first; v != SSA_NONE; v = ssa_insn_at(o->unit, v)->next, count++)
    items[count] = (item){o->key[v], ssa_insn_at(o->unit, v)->op == SSA_PHI ? 0 : o->level[v], v, count};
  if (count > 1) qsort(items, count, sizeof *items, compare_items);
  for (uint32_t i = 0; i < count; i++)
    ssa_insn_at(o->unit, items[i].value)->next = i + 1 < count ? items[i + 1].value : SSA_NONE;
  *last = count > 0 ? items[count - 1].value : SSA_NONE;
  return count > 0 ? items[0].value : SSA_NONE;
}

/* Predecessors in block order, and the phis' arguments with them. Insertion sort: lists are short or in order. */
static void sort_predecessors(const orderer *o, uint32_t b) {
  uint32_t *list = ssa_block_at(o->unit, b)->predecessors.data;
  for (size_t i = 1; i < ssa_block_at(o->unit, b)->predecessors.count; i++)
    for (size_t k = i; k > 0 && o->order.position[list[k - 1]] > o->order.position[list[k]]; k--) {
      uint32_t swapped = list[k];
      list[k] = list[k - 1];
      list[k - 1] = swapped;
      for (uint32_t phi = ssa_block_at(o->unit, b)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(o->unit, phi)->next) {
        uint32_t *args = ssa_args_of(o->unit, phi);
        swapped = args[k];
        args[k] = args[k - 1];
        args[k - 1] = swapped;
      }
    }
}

/* A constant stands second; otherwise the lower key first. */
static void sort_operands(const orderer *o, uint32_t value) {
  if (!hg_commutes(ssa_insn_at(o->unit, value))) return;
  uint32_t *args = ssa_args_of(o->unit, value);
  int first_constant = ssa_insn_at(o->unit, args[0])->op == SSA_CONST,
      second_constant = ssa_insn_at(o->unit, args[1])->op == SSA_CONST;
  if (second_constant > first_constant || (second_constant == first_constant && o->key[args[0]] <= o->key[args[1]]))
    return;
  uint32_t swapped = args[0];
  args[0] = args[1];
  args[1] = swapped;
}

static hg_status sort_all(orderer *o) {
  item *items = hg_allocate_unset(&o->unit->allocator, o->unit->insns.count, sizeof *items);
  if (items == NULL) return hg_fail_memory("the canonical order", o->unit->insns.count * sizeof *items);
  for (uint32_t k = 0; k < o->order.count; k++) {
    uint32_t b = o->order.block[k], last;
    ssa_block *block = ssa_block_at(o->unit, b);
    block->first_phi = sort_list(o, block->first_phi, items, &last);
    block->first_effect = sort_list(o, block->first_effect, items, &block->last_effect);
    sort_predecessors(o, b);
  }
  for (size_t k = 0; k < o->values.count; k++) sort_operands(o, ((const uint32_t *)o->values.data)[k]);
  hg_release(&o->unit->allocator, items);
  return HG_OK;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static hg_status order_unit(orderer *o) {
  const hg_allocator *allocator = &o->unit->allocator;
  uint64_t n = o->unit->insns.count;
  o->locations = hg_location_count(o->program);
  HG_TRY(ir_ssa_order_number(o->unit, &o->order));
  HG_TRY(ir_ssa_walk(o->unit, &o->order, &o->values));
  o->key = hg_allocate(allocator, n * 24 + (uint64_t)o->locations * 24, 1);
  if (o->key == NULL) return hg_fail_memory("the canonical order", n * 16);
  o->next_key = o->key + n;
  o->level = (uint32_t *)(o->next_key + n);
  o->level_block = o->level + n;
  o->group = o->level_block + n;
  o->read_level = o->group + o->locations;     /* reads, then unused room */
  o->write_level = o->read_level + o->locations * 2; /* writes, then pool.alloc and free */
  o->read_only = (uint8_t *)(o->write_level + o->locations * 2);
  hg_alias_groups(o->program, o->unit, o->group);
  for (uint32_t l = 0; l < o->locations; l++) o->read_only[l] = (uint8_t)hg_is_read_only(o->program, o->group, l);
  find_levels(o);
  find_keys(o);
  return sort_all(o);
}

hg_status hg_pass_canon_order(const atlas_program *program, ssa_unit *unit, int *changed) {
  (void)changed;
  orderer o = {.program = program, .unit = unit, .values = {.element_size = sizeof(uint32_t)}};
  ir_ssa_resolve_all(unit);
  hg_status status = order_unit(&o);
  ir_ssa_order_release(unit, &o.order);
  hg_array_release(&unit->allocator, &o.values);
  hg_release(&unit->allocator, o.key);
  return status;
}
