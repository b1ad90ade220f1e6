/* ssa_interp.c - interprets SSA lane by lane.
 *
 * Each lane has a slot for every phi and every effect. Pure values are computed when they are asked for and remembered
 * until control enters another block, because then what they depend on may change. Memory, faults and collectives are
 * the reference machine's own: an effect is given to it as an instruction whose operands are registers of a small
 * window. */
#include "compiler/ssa_interp.h"

#include "atlas/arith.h"
#include "atlas/functions.h"
#include "atlas/insn.h"
#include "atlas/machine.h"
#include "base/error.h"
#include "compiler/analysis/effects.h"
#include "compiler/canon/simplify.h"
#include "compiler/machine_ops.h"
#include "ir/ssa_order.h"

#include <assert.h>
#include <stddef.h>

enum { WINDOW = HG_SSA_WINDOW, RESULT = HG_SSA_RESULT };

typedef struct evaluator {
  machine m;
  atlas_program shadow; /* the program, except that node i is instruction i: faults name instructions by nodes */
  const ssa_unit *unit;
  ssa_order order;
  uint32_t *args; /* unit->args, resolved */
  uint32_t *slot; /* per value: its slot in a lane's row; only phis and effects have one */
  uint32_t slot_count;
  uint64_t *rows;       /* of each lane */
  uint64_t *row;        /* of the lane that runs */
  uint8_t *local;       /* the local arrays of each lane */
  uint32_t *block;      /* per lane: the block it is in */
  uint32_t *effect;     /* per lane: the effect it has reached */
  uint64_t *memo;       /* per value: pure values */
  uint32_t *memo_epoch; /* per value: when `memo` was computed */
  uint32_t epoch;
  uint8_t *back;             /* per block: bit s: the edge to successor s closes a loop of the program */
  atlas_insn *as_insn;       /* per slot: the effect as an instruction on window registers */
  uint64_t *incoming;        /* scratch: the new values of phis */
  const hg_ssa_watch *watch; /* NULL: nobody watches */
  hg_status status;
} evaluator;

static void show(const evaluator *e, const lane *l, uint32_t value, uint64_t bits, const uint64_t *args) {
  if (e->watch != NULL) e->watch->saw(e->watch->user, l->in_block, value, bits, args);
}

static uint32_t resolved(const ssa_unit *u, uint32_t value) {
  const uint32_t *forward = u->forward.data;
  while (value != SSA_NONE && forward[value] != value) value = forward[value];
  return value;
}

static const uint32_t *args_of(const evaluator *e, uint32_t value) {
  return e->args + ssa_insn_at(e->unit, value)->args;
}

/* ---- pure values ------------------------------------------------------------------------------------------------- */

static uint64_t value_of(evaluator *e, const lane *l, uint32_t value);

static uint64_t special(const evaluator *e, const lane *l, const ssa_insn *insn) {
  atlas_type type;
  return atlas_machine_register(&e->m, l, (uint32_t)insn->bits, &type);
}

static uint64_t place(const evaluator *e, const lane *l, const ssa_insn *insn) {
  switch ((machine_place)hg_machine_op(insn->op)) {
  case PLACE_sreg: return atlas_machine_coordinate(&e->m, l, insn->bits) & atlas_mask((atlas_type)insn->type);
  case PLACE_len: return atlas_machine_extent(&e->m, insn->symbol);
  case PLACE_cls_get: return e->m.block_index % ATLAS_CLASS_COUNT;
  case PLACE_phase_get: return e->m.launch->phase;
  }
  return 0;
}

static void refuse(evaluator *e, const ssa_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (e->status == HG_OK)
    e->status = hg_fail(HG_UNSUPPORTED, "the reference machine has no '%s'", info == NULL ? "?" : info->mnemonic);
}

static uint64_t compute(evaluator *e, const lane *l, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(e->unit, value);
  if (insn->op == SSA_SCALAR) return e->m.launch->arguments[insn->symbol].bits;
  if (insn->op == SSA_SPECIAL) return special(e, l, insn);
  if (hg_machine_kind(insn->op) == MACHINE_PLACE) return place(e, l, insn);
  uint64_t s[3] = {0, 0, 0};
  for (uint32_t i = 0; i < insn->arg_count && i < 3; i++) s[i] = value_of(e, l, args_of(e, value)[i]);
  if (hg_is_pure(insn)) return hg_fold(insn, s[0], s[1], s[2]);
  refuse(e, insn);
  return 0;
}

/* A coefficient of an expanded function. */
static uint64_t library_constant(evaluator *e, const lane *l, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(e->unit, value);
  const atlas_symbol *table = atlas_symbol_at(&atlas_functions, insn->symbol & ~(uint32_t)SSA_LIBRARY);
  int64_t index = (int64_t)insn->bits;
  int ok = 1;
  if (insn->mode == ATLAS_ADDRESS_INDEXED) {
    uint32_t arg = args_of(e, value)[0];
    index = atlas_index_sum((atlas_type)ssa_insn_at(e->unit, arg)->type, value_of(e, l, arg), index);
  }
  uint64_t bits = atlas_constant_at(&atlas_functions, table, index, &ok);
  if (!ok) e->status = hg_fail(HG_INVALID_ARGUMENT, "a function reads past its table '%s'", table->name);
  return bits;
}

static uint64_t value_of(evaluator *e, const lane *l, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(e->unit, value);
  if (insn->op == SSA_CONST) return insn->bits;
  if (insn->block != SSA_NONE) return e->row[e->slot[value]];
  if (e->memo_epoch[value] == e->epoch) return e->memo[value];
  uint64_t bits = compute(e, l, value);
  show(e, l, value, bits, NULL);
  e->memo[value] = bits;
  e->memo_epoch[value] = e->epoch;
  return bits;
}

/* ---- effects ----------------------------------------------------------------------------------------------------- */

/* Copies arguments into the window, with their types: an index is read by its own type. */
static void fill_window(evaluator *e, lane *l, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(e->unit, value);
  const uint32_t *args = args_of(e, value);
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    l->r[i] = value_of(e, l, args[i]);
    l->type[i] = ssa_insn_at(e->unit, args[i])->type;
  }
  l->predicates = (uint32_t)(insn->arg_count > 0 ? l->r[0] & 1 : 0); /* votes read p0 and write p1 */
  l->node = insn->insn == SSA_NONE ? 0 : insn->insn;
}

uint64_t hg_ssa_effect(machine *m, lane *l, const atlas_insn *insn) {
  switch (hg_machine_kind(insn->op)) {
  case MACHINE_LOAD: return atlas_machine_load(m, l, insn);
  case MACHINE_STORE: atlas_machine_store(m, l, insn); return 0;
  case MACHINE_ATOMIC: return atlas_machine_atomic(m, l, insn);
  case MACHINE_CLASS: return atlas_machine_class(m, l, insn->op, l->r);
  case MACHINE_PHASE:
    if (l->id == 0) m->launch->phase_advance = (uint32_t)((m->launch->phase_advance + l->r[0]) % ATLAS_PHASE_COUNT);
    return 0;
  case MACHINE_ORDER: /* lanes run one at a time, so memory is in order already */
  case MACHINE_BLOCK: /* all lanes together: run_waiting */
  case MACHINE_ARITH: /* values: compute */
  case MACHINE_COMPARE:
  case MACHINE_LOGIC:
  case MACHINE_SELECT:
  case MACHINE_CONVERT:
  case MACHINE_CAST:
  case MACHINE_PLACE:
  case MACHINE_NO_KIND: break;
  }
  return 0;
}

static void run_effect(evaluator *e, lane *l, uint32_t value) {
  e->row[e->slot[value]] = hg_ssa_effect(&e->m, l, &e->as_insn[e->slot[value]]);
  show(e, l, value, e->row[e->slot[value]], l->r);
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

static uint32_t place_in_lanes(const evaluator *e, const lane *l) { return (uint32_t)(l - e->m.lanes); }

/* All phis of a block take their new values at once. `side`: which of two equal edges was taken. */
static void enter(evaluator *e, lane *l, uint32_t from, int side, uint32_t to) {
  const ssa_block *source = ssa_block_at(e->unit, from), *target = ssa_block_at(e->unit, to);
  const uint32_t *predecessors = target->predecessors.data;
  uint32_t edge = 0, count = 0;
  int skip = side == 1 && source->successor[0] == to; /* the second of the two entries */
  while (edge < target->predecessors.count && (predecessors[edge] != from || skip-- > 0)) edge++;
  if (edge == target->predecessors.count) {
    e->status = hg_fail(HG_INVALID_ARGUMENT, "block %u leads to %u, which does not know it", from, to);
    l->status = LANE_ENDED;
    return;
  }
  for (uint32_t phi = target->first_phi; phi != SSA_NONE; phi = ssa_insn_at(e->unit, phi)->next)
    e->incoming[count++] = value_of(e, l, args_of(e, phi)[edge]);
  count = 0;
  for (uint32_t phi = target->first_phi; phi != SSA_NONE; phi = ssa_insn_at(e->unit, phi)->next) {
    show(e, l, phi, e->incoming[count], NULL);
    e->row[e->slot[phi]] = e->incoming[count++];
  }
  e->block[place_in_lanes(e, l)] = to;
  e->effect[place_in_lanes(e, l)] = target->first_effect;
  e->epoch++;
}

static void end_block(evaluator *e, lane *l, uint32_t b) {
  const ssa_block *block = ssa_block_at(e->unit, b);
  l->node = block->insn == SSA_NONE ? 0 : block->insn;
  if (block->end == SSA_TRAP)
    atlas_machine_fault(&e->m, l, (hg_fault){.kind = HG_FAULT_TRAP, .code = block->trap_code});
  if (block->end == SSA_TRAP || block->end == SSA_EXIT) {
    l->status = LANE_ENDED;
    return;
  }
  int side = block->end == SSA_BRANCH && !value_of(e, l, resolved(e->unit, block->condition));
  if (e->back[b] >> side & 1 && l->steps-- == 0) {
    uint32_t insn = ssa_step_insn(e->unit, b, block->successor[side]);
    l->node = insn == SSA_NONE ? 0 : insn;
    hg_fault fault = {.kind = HG_FAULT_STEP_LIMIT};
    fault.index = fault.extent = e->m.launch->step_limit > INT64_MAX ? INT64_MAX : (int64_t)e->m.launch->step_limit;
    atlas_machine_fault(&e->m, l, fault);
    l->status = LANE_ENDED;
    return;
  }
  if (e->back[b] >> side & 1 && atlas_is_cancelled(e->m.launch)) e->status = HG_CANCELLED;
  if (e->status != HG_OK) l->status = LANE_ENDED;
  else enter(e, l, b, side, block->successor[side]);
}

/* In a scheduled unit pure values stand in the lists too. */
static int is_computed(const ssa_insn *insn) { return hg_is_pure(insn) || insn->symbol & SSA_LIBRARY; }

static void run_lane(evaluator *e, uint32_t i) {
  lane *l = &e->m.lanes[i];
  e->row = e->rows + (size_t)i * e->slot_count;
  e->epoch++;
  while (l->status == LANE_RUNS) {
    uint32_t value = e->effect[i];
    if (value == SSA_NONE) {
      end_block(e, l, e->block[i]);
      continue;
    }
    if (is_computed(ssa_insn_at(e->unit, value))) {
      const ssa_insn *insn = ssa_insn_at(e->unit, value);
      e->row[e->slot[value]] = insn->symbol & SSA_LIBRARY ? library_constant(e, l, value) : compute(e, l, value);
      show(e, l, value, e->row[e->slot[value]], NULL);
      e->effect[i] = insn->next;
      continue;
    }
    fill_window(e, l, value);
    if (atlas_op_flags(ssa_insn_at(e->unit, value)->op) & ATLAS_BLOCK) {
      l->status = LANE_WAITS;
      continue;
    }
    run_effect(e, l, value);
    e->effect[i] = ssa_insn_at(e->unit, value)->next;
  }
}

static uint32_t lowest_waiting(const evaluator *e) {
  for (uint32_t i = 0; i < e->m.lane_count; i++)
    if (e->m.lanes[i].status == LANE_WAITS) return i;
  return SSA_NONE;
}

/* Performs what all waiting lanes wait for; 0 if none waits. */
static int run_waiting(evaluator *e) {
  uint32_t first = lowest_waiting(e);
  if (first == SSA_NONE) return 0;
  uint32_t value = e->effect[first];
  for (uint32_t i = first; i < e->m.lane_count; i++)
    if (e->m.lanes[i].status == LANE_WAITS && e->effect[i] != value) {
      e->status = hg_fail(HG_INVALID_ARGUMENT, "lanes wait at value %u and at value %u", value, e->effect[i]);
      return 0;
    }
  atlas_machine_block(&e->m, &e->as_insn[e->slot[value]]);
  int is_predicate = ssa_insn_at(e->unit, value)->type == SSA_PREDICATE;
  for (uint32_t i = 0; i < e->m.lane_count; i++) {
    lane *l = &e->m.lanes[i];
    if (l->status != LANE_WAITS) continue;
    uint64_t *result = &e->rows[(size_t)i * e->slot_count + e->slot[value]];
    *result = is_predicate ? l->predicates >> 1 & 1 : l->r[RESULT];
    show(e, l, value, *result, NULL);
    e->effect[i] = ssa_insn_at(e->unit, value)->next;
    l->status = LANE_RUNS;
  }
  return 1;
}

/* ---- blocks and launches ----------------------------------------------------------------------------------------- */

static void run_block(evaluator *e) {
  machine *m = &e->m;
  atlas_machine_begin_block(m);
  for (uint32_t i = 0; i < m->lane_count; i++) {
    e->block[i] = 0;
    e->effect[i] = ssa_block_at(e->unit, 0)->first_effect;
  }
  do
    for (uint32_t i = 0; i < m->lane_count && e->status == HG_OK; i++) run_lane(e, i);
  while (e->status == HG_OK && run_waiting(e));
}

/* ---- preparation ------------------------------------------------------------------------------------------------- */

atlas_insn hg_ssa_as_insn(const ssa_insn *insn) {
  atlas_insn out = {.op = insn->op, .type = insn->type};
  const char *letters = atlas_op_lookup(insn->op)->operands;
  uint8_t next = 0;
  for (unsigned i = 0; letters[i] != '\0'; i++) {
    atlas_operand *o = &out.operand[out.operand_count++];
    switch (letters[i]) {
    case 'd':
    case 'o': *o = (atlas_operand){.kind = ATLAS_OPERAND_REG, .reg = RESULT}; break;
    case 'p': *o = (atlas_operand){.kind = ATLAS_OPERAND_PRED, .reg = 1}; break;
    case 'q': *o = (atlas_operand){.kind = ATLAS_OPERAND_PRED, .reg = 0}; break;
    case 'h': *o = (atlas_operand){.kind = ATLAS_OPERAND_POOL, .symbol = insn->symbol}; break;
    case 'm':
      *o = (atlas_operand){.kind = ATLAS_OPERAND_MEM, .mode = insn->mode, .symbol = insn->symbol, .bits = insn->bits};
      o->phi_registers = insn->phi_registers;
      if (insn->mode == ATLAS_ADDRESS_INDEXED) o->reg = next++;
      if (insn->mode == ATLAS_ADDRESS_TABLE) {
        o->reg = next++;
        o->reg2 = next++;
      }
      if (insn->mode != ATLAS_ADDRESS_PHI) break;
      if (insn->phi_registers & 1) o->reg = next++;
      if (insn->phi_registers & 2) o->reg2 = next++;
      if (insn->phi_registers & 4) o->reg3 = next++;
      break;
    case 'w': *o = atlas_mem(insn->symbol, ssa_window_first(insn)); break;
    case 'k': *o = atlas_bits(ssa_window_bits(insn)); break;
    default: *o = (atlas_operand){.kind = ATLAS_OPERAND_REG, .reg = next++}; break;
    }
  }
  return out;
}

static void prepare_values(evaluator *e) {
  const ssa_unit *u = e->unit;
  for (size_t i = 0; i < u->args.count; i++) e->args[i] = resolved(u, ((const uint32_t *)u->args.data)[i]);
  for (uint32_t k = 0; k < e->order.count; k++) {
    const ssa_block *block = ssa_block_at(u, e->order.block[k]);
    for (uint32_t v = block->first_phi; v != SSA_NONE; v = ssa_insn_at(u, v)->next) e->slot[v] = e->slot_count++;
    for (uint32_t v = block->first_effect; v != SSA_NONE; v = ssa_insn_at(u, v)->next) {
      if (hg_machine_kind(ssa_insn_at(u, v)->op) == MACHINE_NO_KIND && !is_computed(ssa_insn_at(u, v))) {
        refuse(e, ssa_insn_at(u, v));
        return;
      }
      e->as_insn[e->slot_count] = hg_ssa_as_insn(ssa_insn_at(u, v));
      e->slot[v] = e->slot_count++;
    }
    for (int s = 0; s < 2; s++)
      if (block->successor[s] != SSA_NONE && ssa_dominates(&e->order, block->successor[s], e->order.block[k]) &&
          !ssa_block_at(u, block->successor[s])->library)
        e->back[e->order.block[k]] |= (uint8_t)(1u << s);
  }
}

static hg_status out_of_memory(void) { return hg_fail_memory("running SSA", 0); }

static hg_status allocate_slots(evaluator *e, const hg_allocator *a, const atlas_program *program) {
  const ssa_unit *u = e->unit;
  uint64_t n = u->insns.count;
  HG_TRY(ir_ssa_order_build(u, &e->order));
  e->args = hg_allocate(a, u->args.count + 1, sizeof *e->args);
  e->slot = hg_allocate(a, n + 1, sizeof *e->slot);
  e->memo = hg_allocate(a, n + 1, sizeof *e->memo);
  e->memo_epoch = hg_allocate(a, n + 1, sizeof *e->memo_epoch);
  e->as_insn = hg_allocate(a, n + 1, sizeof *e->as_insn);
  e->incoming = hg_allocate(a, n + 1, sizeof *e->incoming);
  e->back = hg_allocate(a, u->blocks.count, 1);
  if (e->args == NULL || e->slot == NULL || e->memo == NULL || e->memo_epoch == NULL || e->as_insn == NULL ||
      e->incoming == NULL || e->back == NULL)
    return out_of_memory();
  prepare_values(e);
  HG_TRY(e->status);
  e->shadow.nodes = (hg_array){.element_size = sizeof(atlas_node)};
  if (hg_array_append(a, &e->shadow.nodes, NULL, program->insns.count) == NULL) return out_of_memory();
  for (uint32_t i = 0; i < program->insns.count; i++) ((atlas_node *)e->shadow.nodes.data)[i].insn = i;
  return HG_OK;
}

static hg_status make_room(evaluator *e, const hg_allocator *a) {
  machine *m = &e->m;
  uint64_t lanes = (uint64_t)m->block_size[0] * m->block_size[1] * m->block_size[2];
  m->lanes =
      hg_allocate(a, lanes, sizeof *m->lanes + (WINDOW + 1) * sizeof(uint64_t) + WINDOW + 1 + 2 * sizeof(uint32_t));
  m->shared = hg_allocate(a, m->shared_bytes + 1, 1);
  e->rows = hg_allocate(a, lanes * e->slot_count + 1, sizeof *e->rows);
  e->local = hg_allocate(a, lanes * m->local_bytes + 1, 1);
  if (m->lanes == NULL || m->shared == NULL || e->rows == NULL || e->local == NULL) return out_of_memory();
  m->scratch = (uint64_t *)(void *)(m->lanes + lanes);
  uint64_t *windows = m->scratch + lanes;
  e->block = (uint32_t *)(void *)(windows + lanes * WINDOW);
  e->effect = e->block + lanes;
  m->present = (uint8_t *)(e->effect + lanes);
  for (uint64_t i = 0; i < lanes; i++) {
    m->lanes[i].r = windows + i * WINDOW;
    m->lanes[i].type = m->present + lanes + i * WINDOW;
    m->lanes[i].local = e->local + i * m->local_bytes;
  }
  return HG_OK;
}

/* Without its nodes, and without the count of references, which other threads may be changing. */
static void copy_program(atlas_program *copy, const atlas_program *program) {
  const size_t from = offsetof(atlas_program, name);
  static_assert(offsetof(atlas_program, name) > offsetof(atlas_program, references),
                "what follows the count is copied");
  memcpy((uint8_t *)copy + from, (const uint8_t *)program + from, sizeof *copy - from);
  copy->nodes = (hg_array){0};
}

hg_status hg_ssa_interpret(const hg_allocator *allocator, const atlas_program *program, const ssa_unit *unit,
                           atlas_launch *launch) {
  return hg_ssa_interpret_watched(allocator, program, unit, NULL, launch);
}

hg_status hg_ssa_interpret_watched(const hg_allocator *allocator, const atlas_program *program, const ssa_unit *unit,
                                   const hg_ssa_watch *watch, atlas_launch *launch) {
  evaluator e = {.unit = unit, .epoch = 1, .watch = watch, .status = HG_OK};
  copy_program(&e.shadow, program);
  e.m.allocator = allocator;
  e.m.program = &e.shadow;
  e.m.launch = launch;
  atlas_machine_shape(&e.m);
  hg_status status = allocate_slots(&e, allocator, program);
  if (status == HG_OK) status = make_room(&e, allocator);
  for (machine *m = &e.m; status == HG_OK && e.status == HG_OK && m->block_index < m->block_count; m->block_index++) {
    if (atlas_is_cancelled(launch)) break;
    run_block(&e);
  }
  if (e.status == HG_CANCELLED) e.status = HG_OK; /* the caller, who checks for it, reports it */
  void *owned[] = {e.args, e.slot, e.memo, e.memo_epoch, e.as_insn, e.incoming, e.back, e.rows, e.local, e.m.lanes,
                   e.m.shared};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) hg_release(allocator, owned[i]);
  hg_array_release(allocator, &e.shadow.nodes);
  ir_ssa_order_release(unit, &e.order);
  return status == HG_OK ? e.status : status;
}
