/* promote.c - promotes local arrays to values: if all indices are constants in bounds, each element is a variable, put
 * into SSA form.
 *
 * Runs after the hash. No other lane sees the array and no access to it can fault, so a load gives the bits that the
 * last store on the way to it has stored, or zero. Phis are created when a load needs them, from its block backwards
 * (Braun, Buchwald, Hack, Leissa, Mallon, Zwinkau, "Simple and Efficient Construction of Static Single Assignment
 * Form", 2013); value_number removes those that only one value reaches. What is stored and never loaded is removed.
 *
 * A program's arrays are promoted as long as their elements are few: an element without a register is better off in the
 * array, where it costs nothing but its own accesses. */
#include "compiler/optimise.h"
#include "compiler/compiler_tuning.h"

#include "atlas/tables.h"
#include "base/error.h"
#include "ir/ssa_walk.h"

#include <string.h>

typedef struct promoter {
  const atlas_program *program;
  ssa_unit *unit;
  uint32_t elements;     /* how many elements have been promoted so far */
  uint32_t *next;        /* per value: the next access to the same element, in the order of the blocks */

  /* For the current array. */
  uint8_t slot[ATLAS_MAX_LOCAL_BYTES];  /* per element: 1 + its number below; 0: it is not accessed */
  uint32_t first[COMPILER_PROMOTED_ELEMENTS], last[COMPILER_PROMOTED_ELEMENTS];
  uint32_t slots;

  /* For the current element. */
  uint8_t type;
  uint32_t *in, *out;    /* per block: the value of the element at its beginning, once it was asked for; the last value
                            that the block stores */
  hg_array open;         /* uint32_t: phis without arguments */
  hg_array path;         /* uint32_t: scratch */
} promoter;

static hg_status out_of_memory(void) { return hg_fail_memory("promoting local arrays", sizeof(ssa_insn)); }

static int is_store(const promoter *p, uint32_t value) {
  return (atlas_op_flags(ssa_insn_at(p->unit, value)->op) & ATLAS_STORE) != 0;
}

static uint32_t stored(const promoter *p, uint32_t store) {
  return ir_ssa_resolve(p->unit, ssa_args_of(p->unit, store)[0]);
}

/* ---- which arrays ------------------------------------------------------------------------------------------------ */

static int has_arrays(const atlas_program *program) {
  for (size_t i = 0; i < program->symbols.count; i++)
    if (atlas_symbol_at(program, i)->kind == ATLAS_SYMBOL_LOCAL) return 1;
  return 0;
}

/* Lists the array's accesses by their elements. 0 if the array is not promoted, or not accessed. */
static int list_accesses(promoter *p, uint32_t symbol) {
  uint32_t count = atlas_symbol_at(p->program, symbol)->count;
  memset(p->slot, 0, count);
  p->slots = 0;
  for (uint32_t b = 0; b < p->unit->blocks.count; b++) {
    if (ssa_block_at(p->unit, b)->dead) continue;
    for (uint32_t e = ssa_block_at(p->unit, b)->first_effect; e != SSA_NONE; e = ssa_insn_at(p->unit, e)->next) {
      const ssa_insn *insn = ssa_insn_at(p->unit, e);
      if (!(atlas_op_flags(insn->op) & ATLAS_SPACE_LOCAL) || insn->symbol != symbol) continue;
      if (insn->mode != ATLAS_ADDRESS_UNIFORM || insn->bits >= count) return 0;
      uint8_t *slot = &p->slot[insn->bits];
      if (*slot == 0 && p->elements + p->slots == COMPILER_PROMOTED_ELEMENTS) return 0;
      p->next[e] = SSA_NONE;
      if (*slot != 0) p->next[p->last[*slot - 1]] = e;
      else {
        *slot = (uint8_t)++p->slots;
        p->first[*slot - 1] = e;
      }
      p->last[*slot - 1] = e;
    }
  }
  return p->slots > 0;
}

/* ---- one element ------------------------------------------------------------------------------------------------- */

static hg_status add_zero(const promoter *p, uint32_t *out) {
  const ssa_insn zero = {.op = SSA_CONST, .type = p->type, .insn = SSA_NONE};
  *out = ir_ssa_add(p->unit, &zero, 0);
  return *out != SSA_NONE ? HG_OK : out_of_memory();
}

static hg_status add_phi(promoter *p, uint32_t block, uint32_t *out) {
  const ssa_insn phi = {.op = SSA_PHI, .type = p->type, .insn = SSA_NONE};
  *out = ir_ssa_add(p->unit, &phi, (uint32_t)ssa_block_at(p->unit, block)->predecessors.count);
  if (*out == SSA_NONE || !hg_array_push(&p->unit->allocator, &p->open, *out)) return out_of_memory();
  ir_ssa_append_phi(p->unit, block, *out);
  return HG_OK;
}

/* The value of the element where a block begins: that of its only predecessor's end, and so on backwards. */
static hg_status value_in(promoter *p, uint32_t block, uint32_t *out) {
  uint32_t at = block;
  p->path.count = 0;
  while (p->in[at] == SSA_NONE) {
    const hg_array *from = &ssa_block_at(p->unit, at)->predecessors;
    uint32_t before = from->count == 1 ? *(const uint32_t *)from->data : SSA_NONE;
    if (from->count == 0) HG_TRY(add_zero(p, &p->in[at]));
    else if (from->count > 1) HG_TRY(add_phi(p, at, &p->in[at]));
    else if (p->out[before] != SSA_NONE) p->in[at] = p->out[before];
    else {
      if (!hg_array_push(&p->unit->allocator, &p->path, at)) return out_of_memory();
      at = before;
    }
  }
  *out = p->in[at];
  for (size_t i = 0; i < p->path.count; i++) p->in[((const uint32_t *)p->path.data)[i]] = *out;
  return HG_OK;
}

static hg_status fill_phis(promoter *p) {
  while (p->open.count > 0) {
    uint32_t phi = ((const uint32_t *)p->open.data)[--p->open.count], block = ssa_insn_at(p->unit, phi)->block;
    for (uint32_t i = 0; i < ssa_insn_at(p->unit, phi)->arg_count; i++) {
      uint32_t from = ((const uint32_t *)ssa_block_at(p->unit, block)->predecessors.data)[i], value = p->out[from];
      if (value == SSA_NONE) HG_TRY(value_in(p, from, &value));
      ssa_args_of(p->unit, phi)[i] = value;
    }
  }
  return HG_OK;
}

static hg_status promote_element(promoter *p, uint32_t first) {
  uint32_t now = SSA_NONE, block = SSA_NONE;
  memset(p->in, 0xff, 2 * p->unit->blocks.count * sizeof *p->in);
  p->type = ssa_insn_at(p->unit, first)->type;
  for (uint32_t e = first; e != SSA_NONE; e = p->next[e])
    if (is_store(p, e)) p->out[ssa_insn_at(p->unit, e)->block] = stored(p, e);
  for (uint32_t e = first; e != SSA_NONE; e = p->next[e]) {
    if (ssa_insn_at(p->unit, e)->block != block) now = SSA_NONE;
    block = ssa_insn_at(p->unit, e)->block;
    if (is_store(p, e)) now = stored(p, e);
    else {
      if (now == SSA_NONE) HG_TRY(value_in(p, block, &now));
      ir_ssa_replace(p->unit, e, now);
    }
    ssa_insn_at(p->unit, e)->op = SSA_DELETED; /* the list is cleaned below */
  }
  return fill_phis(p);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void unlink_deleted(const promoter *p, ssa_block *block) {
  uint32_t before = SSA_NONE;
  for (uint32_t e = block->first_effect; e != SSA_NONE; e = ssa_insn_at(p->unit, e)->next) {
    if (ssa_insn_at(p->unit, e)->op != SSA_DELETED) {
      before = e;
      continue;
    }
    if (before == SSA_NONE) block->first_effect = ssa_insn_at(p->unit, e)->next;
    else ssa_insn_at(p->unit, before)->next = ssa_insn_at(p->unit, e)->next;
  }
  block->last_effect = before;
}

static hg_status promote_all(promoter *p, int *changed) {
  uint64_t values = p->unit->insns.count, blocks = p->unit->blocks.count;
  p->next = hg_allocate(&p->unit->allocator, values + 2 * blocks, sizeof *p->next);
  if (p->next == NULL) return out_of_memory();
  p->in = p->next + values;
  p->out = p->in + blocks;
  for (uint32_t s = 0; s < p->program->symbols.count; s++) {
    if (atlas_symbol_at(p->program, s)->kind != ATLAS_SYMBOL_LOCAL || !list_accesses(p, s)) continue;
    p->elements += p->slots;
    for (uint32_t k = 0; k < p->slots; k++) HG_TRY(promote_element(p, p->first[k]));
    *changed = 1;
  }
  for (uint32_t b = 0; b < blocks && p->elements > 0; b++)
    if (!ssa_block_at(p->unit, b)->dead) unlink_deleted(p, ssa_block_at(p->unit, b));
  ir_ssa_resolve_all(p->unit);
  return HG_OK;
}

hg_status hg_pass_promote_arrays(const atlas_program *program, ssa_unit *unit, int *changed) {
  if (!has_arrays(program)) return HG_OK;
  promoter *p = hg_allocate(&unit->allocator, 1, sizeof *p);
  if (p == NULL) return out_of_memory();
  p->program = program;
  p->unit = unit;
  p->open.element_size = p->path.element_size = sizeof(uint32_t);
  ir_ssa_resolve_all(unit);
  hg_status status = promote_all(p, changed);
  hg_release(&unit->allocator, p->next);
  hg_array_release(&unit->allocator, &p->open);
  hg_array_release(&unit->allocator, &p->path);
  hg_release(&unit->allocator, p);
  return status;
}
