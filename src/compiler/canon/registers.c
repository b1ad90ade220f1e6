/* registers.c - register allocation for a scheduled unit (out_of_ssa.h).
 *
 * The live ranges of a program in SSA form are subtrees of its dominator tree, so their interference graph is chordal:
 * giving each value the first free register, from the entry downwards, takes no more registers than are live at once
 * (Hack, Grund, Goos, "Register Allocation for Programs in SSA Form", 2006). A phi and its arguments are coalesced
 * where a register is free for both, so that there is nothing to move. */
#include "compiler/canon/out_of_ssa.h"

#include "base/error.h"
#include "compiler/analysis/effects.h"

#include <string.h>

typedef struct register_allocator {
  const ssa_unit *unit;
  const ssa_order *order;
  hg_registers *out;
  uint32_t *uses;      /* blocks that use a value, value by value */
  uint32_t *use_start; /* per value, and one more */
  uint32_t *seen;      /* per block: 1 + the value that was last marked live-in there */
  uint32_t *last;      /* per value: its last user in the block being allocated; LIVE_OUT */
  uint32_t *phi;       /* per value: a phi that uses it; SSA_NONE */
  uint32_t *hint;      /* per phi: the register of one of its arguments; SSA_NONE */
  uint64_t *busy[HG_REGISTER_CLASSES]; /* sets of registers */
  hg_array stack;
} register_allocator;

static const uint32_t LIVE_OUT = SSA_NONE - 1; /* no instruction */

static hg_status out_of_memory(void) { return hg_fail_memory("registers", sizeof(uint32_t)); }

static const ssa_insn *insn_at(const register_allocator *a, uint32_t value) { return ssa_insn_at(a->unit, value); }
static const ssa_block *block_at(const register_allocator *a, uint32_t b) { return ssa_block_at(a->unit, b); }

/* 1 if the instruction has a result. */
static int defines_value(const ssa_insn *insn) {
  if (insn->op == SSA_PHI) return 1;
  const char *letters = atlas_op_lookup(insn->op)->operands;
  return letters[0] == 'd' || letters[0] == 'o' || letters[0] == 'p';
}

/* ---- where values are used --------------------------------------------------------------------------------------- */

/* Counts a use or, with `list`, writes its block into `uses`, from the end of the value's range downwards. */
static void note_use(register_allocator *a, uint32_t value, uint32_t block, int list) {
  if (hg_is_leaf(insn_at(a, value))) return;
  if (list) a->uses[--a->use_start[value]] = block;
  else a->use_start[value]++;
}

/* A phi argument is used at the end of the predecessor it comes from. */
static void note_phi_uses(register_allocator *a, uint32_t phi, int list) {
  const ssa_insn *insn = insn_at(a, phi);
  const uint32_t *from = block_at(a, insn->block)->predecessors.data;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    uint32_t arg = ssa_args_of(a->unit, phi)[i];
    note_use(a, arg, from[i], list);
    if (a->phi[arg] == SSA_NONE) a->phi[arg] = phi;
  }
}

static void note_uses(register_allocator *a, int list) {
  for (uint32_t k = 0; k < a->order->count; k++) {
    uint32_t b = a->order->block[k];
    for (uint32_t v = block_at(a, b)->first_phi; v != SSA_NONE; v = insn_at(a, v)->next) note_phi_uses(a, v, list);
    for (uint32_t v = block_at(a, b)->first_effect; v != SSA_NONE; v = insn_at(a, v)->next)
      for (uint32_t i = 0; i < insn_at(a, v)->arg_count; i++) note_use(a, ssa_args_of(a->unit, v)[i], b, list);
    if (block_at(a, b)->condition != SSA_NONE) note_use(a, block_at(a, b)->condition, b, list);
  }
}

static hg_status list_uses(register_allocator *a) {
  uint32_t n = (uint32_t)a->unit->insns.count, sum = 0;
  note_uses(a, 0);
  for (uint32_t v = 0; v <= n; v++) sum = a->use_start[v] += sum;
  a->uses = hg_allocate_unset(&a->unit->allocator, sum, sizeof(uint32_t));
  if (a->uses == NULL) return out_of_memory();
  note_uses(a, 1);
  return HG_OK;
}

/* ---- where values are alive -------------------------------------------------------------------------------------- */

/* Walks from a use backwards to the definition. */
static hg_status mark_live_in(register_allocator *a, uint32_t value, uint32_t block) {
  const hg_allocator *memory = &a->unit->allocator;
  a->stack.count = 0;
  if (!hg_array_push(memory, &a->stack, block)) return out_of_memory();
  while (a->stack.count > 0) {
    uint32_t b = ((uint32_t *)a->stack.data)[--a->stack.count];
    if (b == insn_at(a, value)->block || a->seen[b] == value + 1) continue;
    a->seen[b] = value + 1;
    if (!hg_array_push(memory, &a->out->live_in[b], value)) return out_of_memory();
    const hg_array *from = &block_at(a, b)->predecessors;
    for (size_t i = 0; i < from->count; i++)
      if (!hg_array_push(memory, &a->stack, ((const uint32_t *)from->data)[i])) return out_of_memory();
  }
  return HG_OK;
}

static hg_status find_live_ins(register_allocator *a) {
  for (uint32_t v = 0; v < a->unit->insns.count; v++)
    for (uint32_t u = a->use_start[v]; u < a->use_start[v + 1]; u++) HG_TRY(mark_live_in(a, v, a->uses[u]));
  return HG_OK;
}

/* ---- registers --------------------------------------------------------------------------------------------------- */

static int is_busy(const register_allocator *a, int class, uint32_t reg) {
  return (int)(a->busy[class][reg / 64] >> reg % 64 & 1);
}

static void set_busy(const register_allocator *a, uint32_t value, int busy) {
  uint32_t reg = a->out->of[value];
  uint64_t *word = &a->busy[hg_class_of(insn_at(a, value))][reg / 64], bit = UINT64_C(1) << reg % 64;
  *word = busy ? *word | bit : *word & ~bit;
}

static uint32_t first_free(const register_allocator *a, int class) {
  uint32_t reg = 0;
  while (a->busy[class][reg / 64] == UINT64_MAX) reg += 64;
  while (is_busy(a, class, reg)) reg++;
  return reg;
}

/* A free register that saves a move; SSA_NONE if there is none. */
static uint32_t hinted_register(const register_allocator *a, uint32_t value) {
  int class = hg_class_of(insn_at(a, value));
  uint32_t phi = a->phi[value], hints[3] = {SSA_NONE, SSA_NONE, SSA_NONE};
  if (insn_at(a, value)->op == SSA_PHI) hints[0] = a->hint[value];
  if (phi != SSA_NONE) hints[1] = a->out->of[phi];
  if (phi != SSA_NONE) hints[2] = a->hint[phi];
  for (int i = 0; i < 3; i++)
    if (hints[i] != SSA_NONE && !is_busy(a, class, hints[i])) return hints[i];
  return SSA_NONE;
}

static void assign_register(const register_allocator *a, uint32_t value) {
  int class = hg_class_of(insn_at(a, value));
  uint32_t reg = hinted_register(a, value);
  if (reg == SSA_NONE) reg = first_free(a, class);
  a->out->of[value] = reg;
  if (reg >= a->out->needed[class]) a->out->needed[class] = reg + 1;
  if (a->phi[value] != SSA_NONE && a->hint[a->phi[value]] == SSA_NONE) a->hint[a->phi[value]] = reg;
  set_busy(a, value, 1);
}

/* For each value that the block uses, its last user there, or LIVE_OUT. */
static void find_last_uses(const register_allocator *a, uint32_t b) {
  const ssa_block *block = block_at(a, b);
  for (uint32_t v = block->first_effect; v != SSA_NONE; v = insn_at(a, v)->next)
    for (uint32_t i = 0; i < insn_at(a, v)->arg_count; i++) a->last[ssa_args_of(a->unit, v)[i]] = v;
  if (block->condition != SSA_NONE) a->last[block->condition] = LIVE_OUT;
  for (int s = 0; s < 2; s++) {
    uint32_t next = block->successor[s];
    if (next == SSA_NONE) continue;
    const hg_array *live = &a->out->live_in[next];
    for (size_t i = 0; i < live->count; i++) a->last[((const uint32_t *)live->data)[i]] = LIVE_OUT;
    uint32_t edge = a->order->edge[2 * (size_t)b + (unsigned)s];
    for (uint32_t phi = block_at(a, next)->first_phi; phi != SSA_NONE; phi = insn_at(a, phi)->next)
      a->last[ssa_args_of(a->unit, phi)[edge]] = LIVE_OUT;
  }
}

static void free_last_uses(const register_allocator *a, uint32_t value) {
  for (uint32_t i = 0; i < insn_at(a, value)->arg_count; i++) {
    uint32_t arg = ssa_args_of(a->unit, value)[i];
    if (a->out->of[arg] != SSA_NONE && a->last[arg] == value) set_busy(a, arg, 0);
  }
}

static int is_used(const register_allocator *a, uint32_t value) {
  return a->use_start[value] < a->use_start[value + 1];
}

static void allocate_block(const register_allocator *a, uint32_t b) {
  const hg_array *live = &a->out->live_in[b];
  for (int c = 0; c < HG_REGISTER_CLASSES; c++) memset(a->busy[c], 0, (a->out->needed[c] / 64 + 1) * sizeof(uint64_t));
  for (size_t i = 0; i < live->count; i++) set_busy(a, ((const uint32_t *)live->data)[i], 1);
  for (uint32_t phi = block_at(a, b)->first_phi; phi != SSA_NONE; phi = insn_at(a, phi)->next) assign_register(a, phi);
  find_last_uses(a, b);
  for (uint32_t v = block_at(a, b)->first_effect; v != SSA_NONE; v = insn_at(a, v)->next) {
    free_last_uses(a, v);
    int optional = defines_value(insn_at(a, v)) && atlas_op_lookup(insn_at(a, v)->op)->operands[0] == 'o';
    if (!defines_value(insn_at(a, v)) || (optional && !is_used(a, v))) continue;
    assign_register(a, v);
    if (!is_used(a, v)) set_busy(a, v, 0);
  }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static hg_status lay_out(register_allocator *a, uint32_t **memory) {
  uint64_t n = a->unit->insns.count, blocks = a->unit->blocks.count, words = 4 * n + 1 + blocks;
  *memory = hg_allocate(&a->unit->allocator, words, sizeof(uint32_t));
  uint64_t set_words = n / 64 + 1;
  a->busy[0] = hg_allocate(&a->unit->allocator, HG_REGISTER_CLASSES * set_words, sizeof(uint64_t));
  a->out->of = hg_allocate_unset(&a->unit->allocator, n, sizeof(uint32_t));
  a->out->live_in = hg_allocate(&a->unit->allocator, blocks, sizeof(hg_array));
  if (*memory == NULL || a->busy[0] == NULL || a->out->of == NULL || a->out->live_in == NULL) return out_of_memory();
  a->busy[1] = a->busy[0] + set_words;
  a->use_start = *memory;
  a->last = a->use_start + n + 1;
  a->phi = a->last + n;
  a->hint = a->phi + n;
  a->seen = a->hint + n;
  a->out->blocks = (uint32_t)blocks;
  memset(a->phi, 0xff, 2 * n * sizeof(uint32_t));
  memset(a->out->of, 0xff, n * sizeof(uint32_t));
  for (uint64_t b = 0; b < blocks; b++) a->out->live_in[b].element_size = sizeof(uint32_t);
  return HG_OK;
}

hg_status hg_assign_registers(const ssa_unit *unit, const ssa_order *order, hg_registers *registers) {
  register_allocator a = {.unit = unit, .order = order, .out = registers, .stack = {.element_size = sizeof(uint32_t)}};
  uint32_t *memory = NULL;
  *registers = (hg_registers){0};
  hg_status status = lay_out(&a, &memory);
  if (status == HG_OK) status = list_uses(&a);
  if (status == HG_OK) status = find_live_ins(&a);
  for (uint32_t k = 0; k < order->count && status == HG_OK; k++) allocate_block(&a, order->block[k]);
  hg_release(&unit->allocator, memory);
  hg_release(&unit->allocator, a.busy[0]);
  hg_release(&unit->allocator, a.uses);
  hg_array_release(&unit->allocator, &a.stack);
  return status;
}

void hg_registers_release(const ssa_unit *unit, hg_registers *registers) {
  for (uint32_t b = 0; b < registers->blocks; b++) hg_array_release(&unit->allocator, &registers->live_in[b]);
  hg_release(&unit->allocator, registers->live_in);
  hg_release(&unit->allocator, registers->of);
  *registers = (hg_registers){0};
}
