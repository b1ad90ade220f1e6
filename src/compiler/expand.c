/* expand.c - expands functions: each is replaced by its own text (src/functions), inlined in place, so that every
 * backend computes it exactly as the reference machine does. A function's rare cases stay behind their branches. */
#include "compiler/expand.h"

#include "atlas/functions.h"
#include "base/error.h"
#include "compiler/canon/build_ssa.h"
#include "compiler/canon/canon.h"
#include "compiler/canon/schedule.h"
#include "compiler/analysis/effects.h"
#include "compiler/collectives.h"
#include "compiler/expand_row.h"
#include "compiler/gather_stores.h"
#include "compiler/legalise.h"
#include "ir/ssa_walk.h"

#include <string.h>

static hg_status out_of_memory(void) { return hg_fail_memory("expanding functions", 0); }

static int is_function(const ssa_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  return info != NULL && (info->flags & ATLAS_FUNC) != 0;
}

/* ---- f16 and bf16 through f32 ------------------------------------------------------------------------------------ */

static uint32_t add_conversion(ssa_unit *unit, uint8_t to, uint8_t from, uint32_t value, uint32_t insn) {
  ssa_insn convert = {.op = ATLAS_OP_cvt, .type = to, .type2 = from, .insn = insn};
  uint32_t added = ir_ssa_add(unit, &convert, 1);
  if (added != SSA_NONE) ssa_args_of(unit, added)[0] = value;
  return added;
}

/* f.f16(a) = cvt.f16.f32(f.f32(cvt.f32.f16 a)): the value becomes the outer conversion. The inner function keeps the
 * narrow type as its second one: its arguments are few, and the library may have a shorter text for them. */
static hg_status widen(ssa_unit *unit, uint32_t value) {
  ssa_insn wide = *ssa_insn_at(unit, value);
  uint8_t narrow_type = wide.type;
  wide.type = ATLAS_f32;
  wide.type2 = narrow_type;
  wide.block = wide.next = SSA_NONE;
  uint32_t function = ir_ssa_add(unit, &wide, wide.arg_count);
  if (function == SSA_NONE) return out_of_memory();
  for (uint32_t i = 0; i < wide.arg_count; i++) {
    uint32_t converted = add_conversion(unit, ATLAS_f32, narrow_type, ssa_args_of(unit, value)[i], wide.insn);
    if (converted == SSA_NONE) return out_of_memory();
    ssa_args_of(unit, function)[i] = converted;
  }
  ssa_insn *outer = ssa_insn_at(unit, value);
  outer->op = ATLAS_OP_cvt;
  outer->type2 = ATLAS_f32;
  outer->arg_count = 1;
  ssa_args_of(unit, value)[0] = function;
  return HG_OK;
}

static hg_status widen_all(ssa_unit *unit) {
  for (uint32_t v = 0; v < unit->insns.count; v++) {
    const ssa_insn *insn = ssa_insn_at(unit, v);
    if (is_function(insn) && (insn->type == ATLAS_f16 || insn->type == ATLAS_bf16)) HG_TRY(widen(unit, v));
  }
  return HG_OK;
}

/* ---- the functions as units -------------------------------------------------------------------------------------- */

typedef struct hg_function {
  struct hg_function *older;
  uint16_t op;
  uint8_t type, type2;
  ssa_unit unit; /* scheduled, without calls of other functions */
} function;

static hg_status expand_unit(hg_functions *cache, ssa_unit *unit);

/* The library's function for these arguments: the one for their narrow type if it exists. */
static const atlas_entry *find_entry(const ssa_insn *insn, uint32_t *end_node) {
  const atlas_entry *found = NULL;
  *end_node = (uint32_t)atlas_functions.nodes.count;
  for (size_t i = 0; i < atlas_functions.entries.count; i++) {
    const atlas_entry *entry = atlas_entry_at(&atlas_functions, i);
    if (entry->op != insn->op || (entry->type != insn->type && entry->type != insn->type2)) continue;
    if (found == NULL || entry->type == insn->type2) found = entry;
  }
  for (size_t i = 0; found != NULL && i < atlas_functions.entries.count; i++) {
    uint32_t node = atlas_entry_at(&atlas_functions, i)->node;
    if (node > found->node && node < *end_node) *end_node = node;
  }
  return found;
}

static hg_status build_function(hg_functions *cache, const ssa_insn *insn, function *f) {
  uint32_t end_node;
  const atlas_entry *entry = find_entry(insn, &end_node);
  if (entry == NULL)
    return hg_fail(HG_UNSUPPORTED, "the library has no function '%s'", atlas_op_name((atlas_op)insn->op));
  HG_TRY(hg_build_function_ssa(&atlas_functions, entry, end_node, &f->unit));
  HG_TRY(hg_canon_passes(&atlas_functions, &f->unit, NULL));
  HG_TRY(hg_schedule(&f->unit));
  HG_TRY(expand_unit(cache, &f->unit));
  return hg_find_usual_way(&f->unit);
}

static void release_function(const hg_functions *cache, function *f) {
  ir_ssa_release(&f->unit);
  hg_release(&cache->allocator, f);
}

static const function *find_function(const hg_functions *cache, const ssa_insn *insn) {
  const function *f = atomic_load_explicit(&cache->newest, memory_order_acquire);
  while (f != NULL && (f->op != insn->op || f->type != insn->type || f->type2 != insn->type2)) f = f->older;
  return f;
}

/* If two threads build the same function at the same time both publish theirs: either one is right. */
static void publish_function(hg_functions *cache, function *made) {
  made->older = atomic_load_explicit(&cache->newest, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&cache->newest, &made->older, made, memory_order_release,
                                                memory_order_relaxed))
    continue;
}

static hg_status function_of(hg_functions *cache, const ssa_insn *insn, const ssa_unit **out) {
  const function *found = find_function(cache, insn);
  if (found != NULL) {
    *out = &found->unit;
    return HG_OK;
  }
  function *made = hg_allocate(&cache->allocator, 1, sizeof *made);
  if (made == NULL) return out_of_memory();
  made->op = insn->op;
  made->type = insn->type;
  made->type2 = insn->type2;
  ir_ssa_init(&made->unit, &cache->allocator);
  hg_status status = build_function(cache, insn, made);
  if (status != HG_OK) { /* only a complete function is kept, since the list outlives this program */
    release_function(cache, made);
    return status;
  }
  publish_function(cache, made);
  *out = &made->unit;
  return HG_OK;
}

void hg_functions_open(hg_functions *functions, const hg_allocator *allocator) {
  functions->allocator = *allocator;
  atomic_init(&functions->newest, NULL);
}

void hg_functions_close(hg_functions *functions) {
  for (function *f = atomic_load(&functions->newest), *older; f != NULL; f = older) {
    older = f->older;
    release_function(functions, f);
  }
  atomic_store(&functions->newest, NULL);
}

/* ---- inlining ---------------------------------------------------------------------------------------------------- */

typedef struct inlining {
  ssa_unit *unit;
  const ssa_unit *callee;
  uint32_t call;       /* the value that is replaced */
  uint32_t before;     /* the block of the call, which ends before it */
  uint32_t after;      /* the block of what follows the call */
  uint32_t *value_map; /* callee value -> value */
  uint32_t *block_map; /* callee block -> block */
  uint32_t result;     /* the phi of the results */
} inlining;

/* Splits the block at the call: what follows moves to a new block, and the call itself is unlinked. */
static hg_status split_block(inlining *in, uint32_t previous) {
  ssa_block *before = ssa_block_at(in->unit, in->before);
  uint32_t follows = ssa_insn_at(in->unit, in->call)->next;
  if (previous == SSA_NONE) before->first_effect = follows;
  else ssa_insn_at(in->unit, previous)->next = follows;
  if (follows == SSA_NONE) before->last_effect = previous;
  in->after = ir_ssa_split_block(in->unit, in->before, previous);
  return in->after != SSA_NONE ? HG_OK : out_of_memory();
}

static hg_status add_predecessor(ssa_unit *u, uint32_t block, uint32_t from) {
  return ir_ssa_lead(u, from, block) ? HG_OK : out_of_memory();
}

/* Copies all values of the callee, then their arguments. */
static hg_status copy_values(inlining *in) {
  uint32_t call_insn = ssa_insn_at(in->unit, in->call)->insn;
  for (uint32_t v = 0; v < in->callee->insns.count; v++) {
    ssa_insn copy = *ssa_insn_at(in->callee, v);
    in->value_map[v] = SSA_NONE;
    if (copy.op == SSA_DELETED) continue;
    if (copy.op == SSA_ARGUMENT) {
      in->value_map[v] = ssa_args_of(in->unit, in->call)[copy.bits];
      continue;
    }
    copy.insn = call_insn; /* faults and profiles point to the program's own instruction */
    in->value_map[v] = ir_ssa_add(in->unit, &copy, copy.arg_count);
    if (in->value_map[v] == SSA_NONE) return out_of_memory();
  }
  for (uint32_t v = 0; v < in->callee->insns.count; v++) {
    const ssa_insn *insn = ssa_insn_at(in->callee, v);
    if (insn->op == SSA_DELETED || insn->op == SSA_ARGUMENT) continue;
    for (uint32_t i = 0; i < insn->arg_count; i++)
      ssa_args_of(in->unit, in->value_map[v])[i] = in->value_map[ssa_args_of(in->callee, v)[i]];
  }
  return HG_OK;
}

static hg_status copy_block(inlining *in, uint32_t b) {
  const ssa_block *from = ssa_block_at(in->callee, b);
  uint32_t number = in->block_map[b], last_phi = SSA_NONE;
  for (size_t i = 0; i < from->predecessors.count; i++)
    HG_TRY(add_predecessor(in->unit, number, in->block_map[((const uint32_t *)from->predecessors.data)[i]]));
  for (uint32_t phi = from->first_phi; phi != SSA_NONE; phi = ssa_insn_at(in->callee, phi)->next) {
    uint32_t value = in->value_map[phi];
    ssa_insn_at(in->unit, value)->block = number;
    if (last_phi == SSA_NONE) ssa_block_at(in->unit, number)->first_phi = value;
    else ssa_insn_at(in->unit, last_phi)->next = value;
    last_phi = value;
  }
  for (uint32_t e = from->first_effect; e != SSA_NONE; e = ssa_insn_at(in->callee, e)->next)
    ir_ssa_append_effect(in->unit, number, in->value_map[e]);
  ssa_block *to = ssa_block_at(in->unit, number);
  to->library = 1;
  if (from->end == SSA_EXIT) {
    to->end = SSA_JUMP;
    to->successor[0] = in->after;
    return add_predecessor(in->unit, in->after, number);
  }
  to->end = from->end;
  if (from->condition != SSA_NONE) to->condition = in->value_map[from->condition];
  for (int s = 0; s < 2; s++)
    if (from->successor[s] != SSA_NONE) to->successor[s] = in->block_map[from->successor[s]];
  return HG_OK;
}

/* The phi has one argument for each exit, in the order in which the exits became predecessors of `after`. */
static hg_status join_results(inlining *in) {
  ssa_insn phi = {
      .op = SSA_PHI, .type = ssa_insn_at(in->unit, in->call)->type, .insn = ssa_insn_at(in->unit, in->call)->insn};
  uint32_t exits = (uint32_t)ssa_block_at(in->unit, in->after)->predecessors.count, at = 0;
  in->result = ir_ssa_add(in->unit, &phi, exits);
  if (in->result == SSA_NONE) return out_of_memory();
  ir_ssa_append_phi(in->unit, in->after, in->result);
  for (uint32_t b = 0; b < in->callee->blocks.count; b++) {
    const ssa_block *block = ssa_block_at(in->callee, b);
    if (!block->dead && block->end == SSA_EXIT)
      ssa_args_of(in->unit, in->result)[at++] = in->value_map[block->condition];
  }
  return HG_OK;
}

/* Grows by at least half, because a program may have many calls. */
static int make_room(const hg_allocator *allocator, hg_array *array, size_t count) {
  uint64_t needed = (uint64_t)array->count + count;
  return needed <= array->capacity || hg_array_reserve(allocator, array, needed + needed / 2);
}

static hg_status make_room_for(inlining *in) {
  ssa_unit *u = in->unit;
  const hg_allocator *allocator = &u->allocator;
  size_t values = in->callee->insns.count, blocks = in->callee->blocks.count;
  int is_there = make_room(allocator, &u->insns, values + 1) && make_room(allocator, &u->forward, values + 1) &&
                 make_room(allocator, &u->args, in->callee->args.count + blocks) &&
                 make_room(allocator, &u->blocks, blocks + 1);
  return is_there ? HG_OK : out_of_memory();
}

static hg_status inline_blocks(inlining *in, uint32_t previous) {
  HG_TRY(make_room_for(in));
  HG_TRY(copy_values(in));
  HG_TRY(split_block(in, previous));
  for (uint32_t b = 0; b < in->callee->blocks.count; b++) {
    in->block_map[b] = SSA_NONE;
    if (ssa_block_at(in->callee, b)->dead) continue;
    in->block_map[b] = ir_ssa_add_block(in->unit);
    if (in->block_map[b] == SSA_NONE) return out_of_memory();
  }
  for (uint32_t b = 0; b < in->callee->blocks.count; b++)
    if (!ssa_block_at(in->callee, b)->dead) HG_TRY(copy_block(in, b));
  ssa_block_at(in->unit, in->before)->successor[0] = in->block_map[0];
  HG_TRY(add_predecessor(in->unit, in->block_map[0], in->before));
  HG_TRY(join_results(in));
  ir_ssa_replace(in->unit, in->call, in->result);
  ssa_insn_at(in->unit, in->call)->op = SSA_DELETED;
  ssa_insn_at(in->unit, in->call)->arg_count = 0;
  return HG_OK;
}

/* Inlines one call; *after is where the rest of its block is now. */
static hg_status inline_call(ssa_unit *unit, const ssa_unit *callee, uint32_t call, uint32_t previous,
                             uint32_t *after) {
  inlining in = {.unit = unit, .callee = callee, .call = call, .before = ssa_insn_at(unit, call)->block};
  uint64_t words = (uint64_t)callee->insns.count + callee->blocks.count;
  in.value_map = hg_allocate(&unit->allocator, words, sizeof(uint32_t));
  if (in.value_map == NULL) return out_of_memory();
  in.block_map = in.value_map + callee->insns.count;
  hg_status status = inline_blocks(&in, previous);
  *after = in.after;
  hg_release(&unit->allocator, in.value_map);
  return status;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* The call, and those behind it that may share a test with it. `waits`, for `values` values: 1 for those that depend on
 * a call. */
static hg_status find_row(hg_functions *cache, ssa_unit *unit, uint32_t first, uint8_t *waits, hg_row *row) {
  for (uint32_t v = first; v != SSA_NONE && row->count < COMPILER_GATHERED; v = ssa_insn_at(unit, v)->next) {
    const ssa_insn *insn = ssa_insn_at(unit, v);
    if (!hg_is_pure(insn)) break;
    const ssa_unit *callee = NULL;
    waits[v] = 0;
    for (uint32_t i = 0; i < insn->arg_count; i++) waits[v] |= waits[ir_ssa_resolve(unit, ssa_args_of(unit, v)[i])];
    if (!is_function(insn)) continue;
    HG_TRY(function_of(cache, insn, &callee));
    if (!waits[v] && ssa_block_at(callee, 0)->usual != 0) {
      row->function[row->count] = callee;
      row->call[row->count++] = v;
    }
    waits[v] = 1;
  }
  return HG_OK;
}

static hg_status expand_row(hg_functions *cache, ssa_unit *unit, uint32_t first, uint32_t previous, uint32_t *rest) {
  hg_row row = {.count = 0};
  uint8_t *waits = hg_allocate(&unit->allocator, unit->insns.count, 1);
  hg_status status = waits != NULL ? find_row(cache, unit, first, waits, &row) : out_of_memory();
  hg_release(&unit->allocator, waits);
  if (status != HG_OK || row.count < 2) return status;
  return hg_expand_row(unit, &row, previous, rest);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* Inlines every call of a block. Each call splits the block; the walk goes on behind the split. */
static hg_status expand_block(hg_functions *cache, ssa_unit *unit, uint32_t block) {
  uint32_t previous = SSA_NONE;
  for (uint32_t e = ssa_block_at(unit, block)->first_effect; e != SSA_NONE;) {
    if (!is_function(ssa_insn_at(unit, e))) {
      previous = e;
      e = ssa_insn_at(unit, e)->next;
      continue;
    }
    const ssa_unit *callee = NULL;
    uint32_t after = SSA_NONE;
    for (uint32_t i = 0; i < ssa_insn_at(unit, e)->arg_count; i++)
      ssa_args_of(unit, e)[i] = ir_ssa_resolve(unit, ssa_args_of(unit, e)[i]);
    HG_TRY(function_of(cache, ssa_insn_at(unit, e), &callee));
    if (unit->joins_functions && ssa_block_at(callee, 0)->usual != 0)
      HG_TRY(expand_row(cache, unit, e, previous, &after));
    if (after == SSA_NONE) HG_TRY(inline_call(unit, callee, e, previous, &after));
    previous = SSA_NONE;
    e = ssa_block_at(unit, after)->first_effect;
  }
  return HG_OK;
}

static int calls_function(const ssa_unit *unit) {
  for (uint32_t v = 0; v < unit->insns.count; v++)
    if (is_function(ssa_insn_at(unit, v))) return 1;
  return 0;
}

/* Expands a scheduled unit, including blocks that are added behind the others, which have calls too. */
static hg_status expand_unit(hg_functions *cache, ssa_unit *unit) {
  for (uint32_t b = 0; b < unit->blocks.count; b++)
    if (!ssa_block_at(unit, b)->dead) HG_TRY(expand_block(cache, unit, b));
  ir_ssa_resolve_all(unit);
  return HG_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

hg_status hg_expand_unplaced(ssa_unit *unit, hg_functions *functions) {
  hg_functions own;
  if (functions == NULL) {
    hg_functions_open(&own, &unit->allocator);
    hg_status status = hg_expand_unplaced(unit, &own);
    hg_functions_close(&own);
    return status;
  }
  unit->faults_stay = 1;
  if (calls_function(unit)) {
    HG_TRY(widen_all(unit));
    HG_TRY(hg_schedule(unit));
    HG_TRY(hg_gather_collectives(unit)); /* while no function stands between them */
    if (unit->gathers_stores) HG_TRY(hg_gather_stores(unit));
    HG_TRY(expand_unit(functions, unit));
    hg_unschedule(unit);
  }
  return hg_legalise(unit);
}

hg_status hg_expand(ssa_unit *unit, hg_functions *functions) {
  HG_TRY(hg_expand_unplaced(unit, functions));
  return hg_schedule(unit);
}
