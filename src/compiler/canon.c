/* canon.c - the pipeline of the canonical form, its numbering and its bytes. */
#include "compiler/canon.h"

#include "base/bytes.h"
#include "base/error.h"
#include "compiler/build_ssa.h"
#include "compiler/memory.h"
#include "compiler/passes.h"
#include "ir/ssa_walk.h"

#include <string.h>

static hg_status out_of_memory(void) { return hg_fail_memory("the canonical form", 0); }

/* ---- passes ------------------------------------------------------------------------------------------------------ */

typedef struct pass {
  const char *name;
  hg_status (*run)(const atlas_program *program, ssa_unit *unit, int *changed);
  hg_stage stage;
} pass;

static const pass passes[] = {
#define PASS(id, stage, purpose) {#id, hg_pass_##id, HG_STAGE_##stage},
#include "compiler/passes.def"
#undef PASS
};
enum { PASS_COUNT = sizeof passes / sizeof passes[0] };

hg_status hg_run_stage(const atlas_program *program, ssa_unit *unit, hg_stage stage, const hg_pass_hook *hook,
                       int *changed) {
  for (int i = 0; i < PASS_COUNT; i++) {
    if (passes[i].stage != stage || (stage == HG_STAGE_SETTLE && *changed)) continue;
    HG_TRY(passes[i].run(program, unit, changed));
#ifdef HG_CHECK_PASSES
    HG_TRY(ir_ssa_check(unit));
#endif
    if (hook != NULL) HG_TRY(hook->after(hook->user, passes[i].name, program, unit));
  }
  return HG_OK;
}

static hg_status settle(const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook) {
  for (int changed = 1; changed;) {
    changed = 0;
    HG_TRY(hg_run_stage(program, unit, HG_STAGE_CANON, hook, &changed));
    if (!changed) HG_TRY(hg_run_stage(program, unit, HG_STAGE_SETTLE, hook, &changed));
  }
  return HG_OK;
}

/* 1 if the classification parts memory that counted as one. A library of functions has no buffers. */
static int classify(const atlas_program *program, ssa_unit *unit) {
  uint32_t before[ATLAS_MAX_SYMBOLS + 2], now[ATLAS_MAX_SYMBOLS + 2];
  if (atlas_program_is_library(program)) {
    unit->classified = 1;
    return 0;
  }
  hg_alias_groups(program, unit, before);
  hg_classify_buffers(unit);
  hg_alias_groups(program, unit, now);
  return memcmp(before, now, hg_location_count(program) * sizeof *now) != 0;
}

/* Of the passes that have come to rest, only those that settle look at which memory is which. */
hg_status hg_canon_passes(const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook) {
  HG_TRY(settle(program, unit, hook));
  if (!unit->classified && classify(program, unit)) {
    int changed = 0;
    HG_TRY(hg_run_stage(program, unit, HG_STAGE_SETTLE, hook, &changed));
    if (changed) HG_TRY(settle(program, unit, hook));
  }
  int ignored = 0;
  return hg_run_stage(program, unit, HG_STAGE_ORDER, hook, &ignored);
}

/* ---- numbering --------------------------------------------------------------------------------------------------- */

typedef struct renumbering {
  const ssa_unit *from;
  ssa_unit *to;
  ssa_order order;
  hg_array values;
  uint32_t *number; /* per old value */
} renumbering;

static hg_status copy_values(renumbering *r) {
  const uint32_t *values = r->values.data;
  for (size_t k = 0; k < r->values.count; k++) r->number[values[k]] = (uint32_t)k;
  for (size_t k = 0; k < r->values.count; k++) {
    const ssa_insn *insn = ssa_insn_at(r->from, values[k]);
    if (ir_ssa_add(r->to, insn, insn->arg_count) == SSA_NONE) return out_of_memory();
    for (uint32_t i = 0; i < insn->arg_count; i++)
      ssa_args_of(r->to, (uint32_t)k)[i] = r->number[ssa_args_of(r->from, values[k])[i]];
  }
  return HG_OK;
}

static hg_status copy_block(renumbering *r, uint32_t old) {
  const ssa_block *from = ssa_block_at(r->from, old);
  uint32_t number = ir_ssa_add_block(r->to);
  if (number == SSA_NONE) return out_of_memory();
  ssa_block *to = ssa_block_at(r->to, number);
  to->end = from->end;
  to->library = from->library;
  to->insn = from->insn;
  to->trap_code = from->trap_code;
  if (from->condition != SSA_NONE) to->condition = r->number[from->condition];
  for (int s = 0; s < 2; s++)
    if (from->successor[s] != SSA_NONE) to->successor[s] = r->order.position[from->successor[s]];
  for (size_t i = 0; i < from->predecessors.count; i++) {
    uint32_t p = r->order.position[((const uint32_t *)from->predecessors.data)[i]];
    if (hg_array_append(&r->to->allocator, &to->predecessors, &p, 1) == NULL) return out_of_memory();
  }
  uint32_t last = SSA_NONE; /* phis keep their order, and prepending would turn it around */
  for (uint32_t phi = from->first_phi; phi != SSA_NONE; phi = ssa_insn_at(r->from, phi)->next) {
    uint32_t value = r->number[phi];
    ssa_insn_at(r->to, value)->block = number;
    if (last == SSA_NONE) to->first_phi = value;
    else ssa_insn_at(r->to, last)->next = value;
    last = value;
  }
  for (uint32_t e = from->first_effect; e != SSA_NONE; e = ssa_insn_at(r->from, e)->next)
    ir_ssa_append_effect(r->to, number, r->number[e]);
  return HG_OK;
}

static hg_status copy_all(renumbering *r) {
  HG_TRY(ir_ssa_order_build(r->from, &r->order));
  HG_TRY(ir_ssa_walk(r->from, &r->order, &r->values));
  r->number = hg_allocate(&r->from->allocator, r->from->insns.count, sizeof *r->number);
  if (r->number == NULL) return out_of_memory();
  HG_TRY(copy_values(r));
  r->to->classified = r->from->classified;
  memcpy(r->to->other_forms, r->from->other_forms, sizeof r->to->other_forms);
  for (uint32_t k = 0; k < r->order.count; k++) HG_TRY(copy_block(r, r->order.block[k]));
  return HG_OK;
}

/* Copies what is alive, numbered along the walk. */
static hg_status renumber(const ssa_unit *from, ssa_unit *to) {
  renumbering r = {.from = from, .to = to, .values = {.element_size = sizeof(uint32_t)}};
  hg_status status = copy_all(&r);
  ir_ssa_order_release(from, &r.order);
  hg_array_release(&from->allocator, &r.values);
  hg_release(&from->allocator, r.number);
  return status;
}

hg_status hg_canonicalise(const atlas_program *program, const hg_pass_hook *hook, ssa_unit *unit) {
  ssa_unit draft;
  ir_ssa_init(&draft, &program->allocator);
  ir_ssa_init(unit, &program->allocator);
  hg_status status = hg_build_ssa(program, &draft);
  if (status == HG_OK) status = hg_canon_passes(program, &draft, hook);
  if (status == HG_OK) status = renumber(&draft, unit);
  ir_ssa_release(&draft);
  return status;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

typedef struct writer {
  const hg_allocator *allocator;
  hg_array *bytes;
  hg_status status;
} writer;

static void put(writer *w, uint64_t value, unsigned size) {
  uint8_t little[8];
  hg_store_le(little, size, value);
  if (w->status == HG_OK && hg_array_append(w->allocator, w->bytes, little, size) == NULL) w->status = out_of_memory();
}

static void put_symbols(writer *w, const atlas_program *program, const ssa_unit *unit) {
  put(w, program->symbols.count, 4);
  for (size_t i = 0; i < program->symbols.count; i++) {
    const atlas_symbol *s = atlas_symbol_at(program, i);
    put(w, s->kind, 1);
    put(w, s->type, 1);
    put(w, s->access, 1);
    put(w, s->count, 4);
    put(w, unit->other_forms[i / 64] >> i % 64 & 1, 1); /* which launches may bind one range twice */
    if (s->kind != ATLAS_SYMBOL_CONST) continue;
    const uint8_t *data = (const uint8_t *)program->constants.data + s->const_offset;
    for (uint64_t k = 0; k < (uint64_t)s->count * atlas_bytes((atlas_type)s->type); k++) put(w, data[k], 1);
  }
}

static void put_block(writer *w, const ssa_unit *unit, uint32_t b) {
  const ssa_block *block = ssa_block_at(unit, b);
  put(w, block->end, 1);
  put(w, block->condition, 4);
  put(w, block->successor[0], 4);
  put(w, block->successor[1], 4);
  put(w, block->trap_code, 4);
  put(w, block->predecessors.count, 4); /* in their order: phis refer to it */
  for (size_t i = 0; i < block->predecessors.count; i++) put(w, ((const uint32_t *)block->predecessors.data)[i], 4);
}

static void put_value(writer *w, const ssa_unit *unit, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(unit, value);
  put(w, insn->op, 2);
  put(w, insn->type, 1);
  put(w, insn->type2, 1);
  put(w, insn->mode, 1);
  put(w, insn->phi_registers, 1);
  put(w, insn->symbol, 2);
  put(w, insn->block, 4);
  put(w, insn->bits, 8);
  put(w, insn->arg_count, 4);
  for (uint32_t i = 0; i < insn->arg_count; i++) put(w, ssa_args_of(unit, value)[i], 4);
}

hg_status hg_canon_bytes(const atlas_program *program, const ssa_unit *unit, hg_array *bytes) {
  writer w = {.allocator = &unit->allocator, .bytes = bytes};
  for (const char *magic = "HGCANON"; *magic != '\0'; magic++) put(&w, (uint8_t)*magic, 1);
  put(&w, ATLAS_ISA_VERSION, 4);
  put(&w, ATLAS_CANON_VERSION, 4);
  put(&w, ATLAS_NUMERICS_VERSION, 4);
  for (int d = 0; d < 3; d++) put(&w, program->block[d], 4);
  put_symbols(&w, program, unit);
  put(&w, unit->blocks.count, 4);
  for (uint32_t b = 0; b < unit->blocks.count; b++) put_block(&w, unit, b);
  put(&w, unit->insns.count, 4);
  for (uint32_t v = 0; v < unit->insns.count; v++) put_value(&w, unit, v);
  return w.status;
}
