/* alike.c - a set of hash keys of phis and effects that might be merged. Equal ones have equal keys; where two that
 * differ have one key, a pass runs and finds nothing, but no result is wrong. */
#include "compiler/canon/alike.h"

#include "base/bytes.h"
#include "base/error.h"
#include "compiler/analysis/effects.h"
#include "compiler/canon/simplify.h"

enum { DEPTH = 2 }; /* how far below a phi or effect its key looks: i + 1 and s + x differ there */

typedef struct key_set {
  uint64_t *slots; /* 0: free */
  uint64_t mask;
} key_set;

static uint64_t look_of(const ssa_insn *insn) {
  uint64_t hash = hg_hash_mix((uint64_t)insn->op << 16 | insn->symbol,
                      (uint64_t)insn->type << 24 | (uint64_t)insn->type2 << 16 | (uint64_t)insn->mode << 8 |
                          insn->phi_registers);
  return hg_hash_mix(hg_hash_mix(hash, insn->bits), insn->arg_count);
}

/* A hash of the expression down to `depth`, the same in either order of the operands of a commutative operation. */
static uint64_t key_below(ssa_unit *unit, uint32_t value, int depth) {
  const ssa_insn *insn = ssa_insn_at(unit, value);
  uint64_t key = hg_hash_mix(look_of(insn), insn->block);
  uint32_t first = 0;
  if (depth == 0) return key;
  const uint32_t *args = ssa_args_of(unit, value);
  if (hg_commutes(insn)) {
    key = hg_hash_mix(key, key_below(unit, ir_ssa_resolve(unit, args[0]), depth - 1) +
                       key_below(unit, ir_ssa_resolve(unit, args[1]), depth - 1));
    first = 2;
  }
  for (uint32_t i = first; i < insn->arg_count; i++)
    key = hg_hash_mix(key, key_below(unit, ir_ssa_resolve(unit, args[i]), depth - 1));
  return key;
}

static uint64_t key_of(ssa_unit *unit, uint32_t value, hg_alike what) {
  if (what == HG_ALIKE_IN_BLOCKS) return key_below(unit, value, DEPTH);
  uint64_t key = look_of(ssa_insn_at(unit, value));
  for (uint32_t i = 0; i < ssa_insn_at(unit, value)->arg_count; i++)
    key = hg_hash_mix(key, ir_ssa_resolve(unit, ssa_args_of(unit, value)[i]));
  return key;
}

/* 1 if the key is there already. */
static int insert_key(key_set *set, uint64_t key) {
  key += key == 0;
  uint64_t slot = key & set->mask;
  for (; set->slots[slot] != 0; slot = (slot + 1) & set->mask)
    if (set->slots[slot] == key) return 1;
  set->slots[slot] = key;
  return 0;
}

/* With a set: 1 as soon as two keys are equal. Without: the number of keys. */
static uint32_t look_through(ssa_unit *unit, hg_alike what, key_set *set) {
  uint32_t count = 0;
  for (uint32_t b = 0; b < unit->blocks.count; b++) {
    const ssa_block *block = ssa_block_at(unit, b);
    uint32_t phi = what == HG_ALIKE_IN_BLOCKS ? block->first_phi : SSA_NONE;
    if (block->dead) continue;
    if (phi != SSA_NONE && ssa_insn_at(unit, phi)->next == SSA_NONE) phi = SSA_NONE; /* the only phi of its block */
    for (; phi != SSA_NONE; phi = ssa_insn_at(unit, phi)->next, count++)
      if (set != NULL && insert_key(set, key_of(unit, phi, what))) return 1;
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = ssa_insn_at(unit, e)->next) {
      if (!hg_only_reads(ssa_insn_at(unit, e))) continue;
      if (set != NULL && insert_key(set, key_of(unit, e, what))) return 1;
      count++;
    }
  }
  return set == NULL ? count : 0;
}

hg_status hg_find_alike(ssa_unit *unit, hg_alike what, int *found) {
  uint32_t count = look_through(unit, what, NULL);
  uint64_t slots = 4;
  *found = 0;
  if (count < 2) return HG_OK;
  while (slots < 2 * (uint64_t)count) slots *= 2;
  key_set set = {hg_allocate(&unit->allocator, slots, sizeof *set.slots), slots - 1};
  if (set.slots == NULL) return hg_fail_memory("the search for what may be merged", slots * sizeof *set.slots);
  *found = (int)look_through(unit, what, &set);
  hg_release(&unit->allocator, set.slots);
  return HG_OK;
}
