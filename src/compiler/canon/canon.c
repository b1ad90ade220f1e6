/* canon.c - the pipeline of the canonical form, its numbering and its bytes. */
#include "compiler/canon/canon.h"

#include "base/bytes.h"
#include "base/error.h"
#include "compiler/analysis/aliasing.h"
#include "compiler/canon/build_ssa.h"
#include "compiler/canon/passes.h"
#include "ir/ssa_walk.h"

#include <string.h>

static hg_status out_of_memory(void) { return hg_fail_memory("the canonical form", 0); }

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* The passes that define the program's identity; optimise.c has the others. */
static const hg_pass passes[] = {
#define ROW_CANON(id) {#id, hg_pass_##id, HG_STAGE_CANON},
#define ROW_SETTLE(id) {#id, hg_pass_##id, HG_STAGE_SETTLE},
#define ROW_ORDER(id) {#id, hg_pass_##id, HG_STAGE_ORDER},
#define ROW_OPTIMISE(id)
#define ROW_PLACED(id)
#define PASS(id, stage, purpose) ROW_##stage(id)
#include "compiler/canon/passes.def"
#undef PASS
};
enum { PASS_COUNT = sizeof passes / sizeof passes[0] };

hg_status hg_run_pass(const hg_pass *pass, const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook,
                      int *changed) {
  HG_TRY(pass->run(program, unit, changed));
#ifdef HG_CHECK_PASSES
  HG_TRY(ir_ssa_check(unit));
#endif
  return hook != NULL ? hook->after(hook->user, pass->name, program, unit) : HG_OK;
}

hg_status hg_run_stage(const atlas_program *program, ssa_unit *unit, hg_stage stage, const hg_pass_hook *hook,
                       int *changed) {
  for (int i = 0; i < PASS_COUNT; i++) {
    if (passes[i].stage != stage || (stage == HG_STAGE_SETTLE && *changed)) continue;
    HG_TRY(hg_run_pass(&passes[i], program, unit, hook, changed));
  }
  return HG_OK;
}

static hg_status run_until_stable(const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook) {
  for (int changed = 1; changed;) {
    changed = 0;
    HG_TRY(hg_run_stage(program, unit, HG_STAGE_CANON, hook, &changed));
    if (!changed) HG_TRY(hg_run_stage(program, unit, HG_STAGE_SETTLE, hook, &changed));
  }
  return HG_OK;
}

/* 1 if some buffers that could alias before cannot any more. A library of functions has no buffers. */
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

/* Only passes of the stage SETTLE depend on aliasing: where the classification changes it, they run once more. */
hg_status hg_canon_passes(const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook) {
  HG_TRY(run_until_stable(program, unit, hook));
  if (!unit->classified && classify(program, unit)) {
    int changed = 0;
    HG_TRY(hg_run_stage(program, unit, HG_STAGE_SETTLE, hook, &changed));
    if (changed) HG_TRY(run_until_stable(program, unit, hook));
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

static hg_status reserve(const renumbering *r) {
  uint64_t args = 0;
  for (size_t k = 0; k < r->values.count; k++)
    args += ssa_insn_at(r->from, ((const uint32_t *)r->values.data)[k])->arg_count;
  return ir_ssa_reserve(r->to, r->values.count, args, r->order.count);
}

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
  if (from->predecessors.count > 0 && !hg_array_reserve(&r->to->allocator, &to->predecessors, from->predecessors.count))
    return out_of_memory();
  for (size_t i = 0; i < from->predecessors.count; i++) {
    uint32_t p = r->order.position[((const uint32_t *)from->predecessors.data)[i]];
    if (!hg_array_push(&r->to->allocator, &to->predecessors, p)) return out_of_memory();
  }
  uint32_t last = SSA_NONE; /* appends, because prepending would reverse the phis */
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
  HG_TRY(ir_ssa_order_number(r->from, &r->order));
  HG_TRY(ir_ssa_walk(r->from, &r->order, &r->values));
  r->number = hg_allocate(&r->from->allocator, r->from->insns.count, sizeof *r->number);
  if (r->number == NULL) return out_of_memory();
  HG_TRY(reserve(r));
  HG_TRY(copy_values(r));
  r->to->classified = r->from->classified;
  memcpy(r->to->other_forms, r->from->other_forms, sizeof r->to->other_forms);
  for (uint32_t k = 0; k < r->order.count; k++) HG_TRY(copy_block(r, r->order.block[k]));
  return HG_OK;
}

/* Copies all live values, numbered in walk order. */
static hg_status renumber(const ssa_unit *from, ssa_unit *to) {
  renumbering r = {.from = from, .to = to, .values = {.element_size = sizeof(uint32_t)}};
  hg_status status = copy_all(&r);
  ir_ssa_order_release(from, &r.order);
  hg_array_release(&from->allocator, &r.values);
  hg_release(&from->allocator, r.number);
  return status;
}

/* Blocks are numbered in reverse postorder. */
void hg_name_loops(ssa_unit *unit) {
  for (uint32_t b = 0; b < unit->blocks.count; b++)
    for (int s = 0; s < 2; s++) {
      const ssa_block *from = ssa_block_at(unit, b);
      if (from->successor[s] <= b && from->insn != SSA_NONE)
        ssa_block_at(unit, from->successor[s])->loop_insn = from->insn;
    }
}

hg_status hg_canonicalise(const atlas_program *program, const hg_pass_hook *hook, ssa_unit *unit) {
  ssa_unit draft;
  ir_ssa_init(&draft, &program->allocator);
  ir_ssa_init(unit, &program->allocator);
  hg_status status = hg_build_ssa(program, &draft);
  if (status == HG_OK) status = hg_canon_passes(program, &draft, hook);
  if (status == HG_OK) status = renumber(&draft, unit);
  ir_ssa_release(&draft);
  if (status == HG_OK) hg_name_loops(unit);
  return status;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

typedef struct writer {
  const hg_allocator *allocator;
  hg_array *bytes;
} writer;

/* Appends room for the next bytes, which the caller fills. */
static hg_status append_room(const writer *w, size_t byte_count, uint8_t **at) {
  *at = hg_array_append(w->allocator, w->bytes, NULL, byte_count);
  return *at != NULL ? HG_OK : out_of_memory();
}

static uint8_t *store_number(uint8_t *at, uint64_t value, unsigned size) {
  hg_store_le(at, size, value);
  return at + size;
}

static hg_status append_head(const writer *w, const atlas_program *program) {
  uint8_t *at;
  HG_TRY(append_room(w, 7 + 7 * 4, &at));
  for (const char *magic = "HGCANON"; *magic != '\0'; magic++) at = store_number(at, (uint8_t)*magic, 1);
  at = store_number(at, ATLAS_ISA_VERSION, 4);
  at = store_number(at, ATLAS_CANON_VERSION, 4);
  at = store_number(at, ATLAS_NUMERICS_VERSION, 4);
  for (int d = 0; d < 3; d++) at = store_number(at, program->block[d], 4);
  store_number(at, program->symbols.count, 4);
  return HG_OK;
}

static hg_status append_symbol(const writer *w, const atlas_program *program, const ssa_unit *unit, size_t i) {
  const atlas_symbol *s = atlas_symbol_at(program, i);
  uint8_t *at;
  HG_TRY(append_room(w, 8, &at));
  at = store_number(at, s->kind, 1);
  at = store_number(at, s->type, 1);
  at = store_number(at, s->access, 1);
  at = store_number(at, s->count, 4);
  store_number(at, unit->other_forms[i / 64] >> i % 64 & 1, 1); /* how launches may bind overlapping memory */
  if (s->kind != ATLAS_SYMBOL_CONST) return HG_OK;
  const uint8_t *data = (const uint8_t *)program->constants.data + s->const_offset;
  size_t byte_count = (size_t)s->count * atlas_bytes((atlas_type)s->type);
  return hg_array_append(w->allocator, w->bytes, data, byte_count) != NULL ? HG_OK : out_of_memory();
}

static hg_status append_block(const writer *w, const ssa_unit *unit, uint32_t b) {
  const ssa_block *block = ssa_block_at(unit, b);
  const uint32_t *from = block->predecessors.data;
  uint8_t *at;
  HG_TRY(append_room(w, 1 + 5 * 4 + block->predecessors.count * 4, &at));
  at = store_number(at, block->end, 1);
  at = store_number(at, block->condition, 4);
  at = store_number(at, block->successor[0], 4);
  at = store_number(at, block->successor[1], 4);
  at = store_number(at, block->trap_code, 4);
  at = store_number(at, block->predecessors.count, 4); /* kept in this order, because phis refer to it */
  for (size_t i = 0; i < block->predecessors.count; i++) at = store_number(at, from[i], 4);
  return HG_OK;
}

static hg_status append_value(const writer *w, const ssa_unit *unit, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(unit, value);
  const uint32_t *args = ssa_args_of(unit, value);
  uint8_t *at;
  HG_TRY(append_room(w, 8 + 4 + 8 + 4 + (size_t)insn->arg_count * 4, &at));
  at = store_number(at, insn->op, 2);
  at = store_number(at, insn->type, 1);
  at = store_number(at, insn->type2, 1);
  at = store_number(at, insn->mode, 1);
  at = store_number(at, insn->phi_registers, 1);
  at = store_number(at, insn->symbol, 2);
  at = store_number(at, insn->block, 4);
  at = store_number(at, insn->bits, 8);
  at = store_number(at, insn->arg_count, 4);
  for (uint32_t i = 0; i < insn->arg_count; i++) at = store_number(at, args[i], 4);
  return HG_OK;
}

static hg_status append_count(const writer *w, size_t count) {
  uint8_t *at;
  HG_TRY(append_room(w, 4, &at));
  store_number(at, count, 4);
  return HG_OK;
}

hg_status hg_canon_bytes(const atlas_program *program, const ssa_unit *unit, hg_array *bytes) {
  const writer w = {.allocator = &unit->allocator, .bytes = bytes};
  HG_TRY(append_head(&w, program));
  for (size_t i = 0; i < program->symbols.count; i++) HG_TRY(append_symbol(&w, program, unit, i));
  HG_TRY(append_count(&w, unit->blocks.count));
  for (uint32_t b = 0; b < unit->blocks.count; b++) HG_TRY(append_block(&w, unit, b));
  HG_TRY(append_count(&w, unit->insns.count));
  for (uint32_t v = 0; v < unit->insns.count; v++) HG_TRY(append_value(&w, unit, v));
  return HG_OK;
}
