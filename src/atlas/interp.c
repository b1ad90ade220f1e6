/* interp.c - the reference machine: how a launch, a block, a lane and an instruction run. It reads like the manual and
 * is the definition of the ISA; docs/isa.md says the same in words.
 *
 * Lanes of a block run one after the other, each until it ends or reaches an instruction that the whole block takes
 * part in; then that instruction is done for all, and they go on. */
#include "atlas/interp.h"

#include "atlas/arith.h"
#include "atlas/functions.h"
#include "atlas/insn.h"
#include "atlas/machine.h"
#include "base/error.h"

#include <stdio.h>

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static int predicate(const lane *l, const atlas_operand *operand) { return (int)(l->predicates >> operand->reg & 1); }

uint64_t atlas_machine_coordinate(const machine *m, const lane *l, uint64_t coord) {
  unsigned d = (unsigned)coord % 3;
  switch (coord / 3) {
  case ATLAS_COORD_LANE_X / 3: return l->at[d];
  case ATLAS_COORD_BLOCK_X / 3: return m->block_at[d];
  case ATLAS_COORD_BLOCK_SIZE_X / 3: return m->block_size[d];
  case ATLAS_COORD_GRID_SIZE_X / 3: return m->grid_size[d];
  default: return m->block_at[d] * m->block_size[d] + l->at[d];
  }
}

/* ---- instructions that work on one lane -------------------------------------------------------------------------- */

static void set_register(lane *l, const atlas_insn *insn, uint64_t value) {
  const atlas_operand *destination = &insn->operand[0];
  if (destination->kind != ATLAS_OPERAND_REG) return; /* `_` */
  l->r[destination->reg] = value;
  l->type[destination->reg] = insn->type;
}

static void set_predicate(lane *l, const atlas_insn *insn, int value) {
  uint32_t bit = 1u << insn->operand[0].reg;
  l->predicates = value ? l->predicates | bit : l->predicates & ~bit;
}

static void class_fault(machine *m, lane *l, uint64_t value, uint64_t extent) {
  hg_fault fault = {
      .kind = HG_FAULT_CLASS, .index = value > INT64_MAX ? INT64_MAX : (int64_t)value, .extent = (int64_t)extent};
  atlas_machine_fault(m, l, fault);
}

static uint64_t neighbour(machine *m, lane *l, uint32_t class_index, uint64_t number) {
  int32_t found = atlas_class_neighbour(class_index, (uint32_t)number);
  if (found < 0) class_fault(m, l, number, atlas_class_neighbour_count(class_index));
  return found < 0 ? 0 : (uint64_t)found;
}

static uint64_t bound_map(machine *m, lane *l, const uint64_t s[3]) {
  static const uint32_t extents[3] = {ATLAS_CLASS_COUNT, ATLAS_CLASS_PAGES, ATLAS_CLASS_PAGE_BYTES};
  for (int i = 0; i < 3; i++)
    if (s[i] >= extents[i]) {
      class_fault(m, l, s[i], extents[i]);
      return 0;
    }
  return (uint64_t)atlas_boundary_offset((uint32_t)s[0], (uint32_t)s[1], (uint32_t)s[2]);
}

uint64_t atlas_machine_class(machine *m, lane *l, uint32_t op, const uint64_t s[3]) {
  uint32_t number = (uint32_t)s[0];
  if (op == ATLAS_OP_bound_map) return bound_map(m, l, s);
  if (number >= ATLAS_CLASS_COUNT) {
    class_fault(m, l, number, ATLAS_CLASS_COUNT);
    return 0;
  }
  switch (op) {
  case ATLAS_OP_mirror: return atlas_class_mirror(number);
  case ATLAS_OP_unity_test: return (uint64_t)atlas_class_is_unity(number);
  case ATLAS_OP_nbr_count: return atlas_class_neighbour_count(number);
  case ATLAS_OP_nbr_get: return neighbour(m, l, number, s[1]);
  default: /* res.accum */
    m->launch->resonance[number] = (int64_t)((uint64_t)m->launch->resonance[number] + s[1]);
    return 0;
  }
}

static int is_source(char letter) { return letter == 's' || letter == 't' || letter == 'c' || letter == 'n'; }

/* The sources in text order; predicates, addresses and destinations are not among them. */
static void read_sources(const machine *m, const lane *l, const atlas_insn *insn, const char *letters, uint64_t s[3]) {
  unsigned count = 0;
  s[0] = s[1] = s[2] = 0;
  for (unsigned i = 0; letters[i] != '\0'; i++)
    if (is_source(letters[i])) s[count++] = atlas_machine_source(m, l, &insn->operand[i]);
}

/* Everything whose result depends on its operands only; shared by programs and library functions. */
static void pure_insn(lane *l, const atlas_insn *insn, const atlas_op_info *info, const uint64_t s[3]) {
  const atlas_operand *o = insn->operand;
  atlas_type type = (atlas_type)insn->type;
  switch (insn->op) {
  case ATLAS_OP_mov:
  case ATLAS_OP_movi:
  case ATLAS_OP_bitcast: set_register(l, insn, s[0]); break;
  case ATLAS_OP_cvt: set_register(l, insn, atlas_convert(type, (atlas_type)insn->type2, s[0])); break;
  case ATLAS_OP_sel: set_register(l, insn, predicate(l, &o[1]) ? s[0] : s[1]); break;
  case ATLAS_OP_pand: set_predicate(l, insn, predicate(l, &o[1]) & predicate(l, &o[2])); break;
  case ATLAS_OP_por: set_predicate(l, insn, predicate(l, &o[1]) | predicate(l, &o[2])); break;
  case ATLAS_OP_pxor: set_predicate(l, insn, predicate(l, &o[1]) ^ predicate(l, &o[2])); break;
  case ATLAS_OP_pnot: set_predicate(l, insn, !predicate(l, &o[1])); break;
  default:
    if (atlas_is_comparison(insn->op)) set_predicate(l, insn, atlas_compare(insn->op, type, s[0], s[1]));
    else if (info->flags & ATLAS_FUNC) set_register(l, insn, atlas_function((atlas_op)insn->op, type, s[0], s[1]));
    else set_register(l, insn, atlas_arith(insn->op, type, s[0], s[1], s[2]));
    break;
  }
}

static void lane_insn(machine *m, lane *l, const atlas_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  uint64_t s[3];
  if (info->flags & ATLAS_LOAD) {
    set_register(l, insn, atlas_machine_load(m, l, insn));
    return;
  }
  if (info->flags & ATLAS_STORE) {
    atlas_machine_store(m, l, insn);
    return;
  }
  if (info->flags & ATLAS_ATOMIC) {
    set_register(l, insn, atlas_machine_atomic(m, l, insn));
    return;
  }
  read_sources(m, l, insn, info->operands, s);
  switch (insn->op) {
  case ATLAS_OP_sreg:
    set_register(l, insn,
                 atlas_machine_coordinate(m, l, insn->operand[1].bits) & atlas_mask((atlas_type)insn->type));
    break;
  case ATLAS_OP_len: set_register(l, insn, atlas_machine_extent(m, insn->operand[1].symbol)); break;
  case ATLAS_OP_cls_get: set_register(l, insn, m->block_index % ATLAS_CLASS_COUNT); break;
  case ATLAS_OP_unity_test: set_predicate(l, insn, (int)atlas_machine_class(m, l, insn->op, s)); break;
  case ATLAS_OP_res_accum: atlas_machine_class(m, l, insn->op, s); break;
  case ATLAS_OP_mirror:
  case ATLAS_OP_nbr_count:
  case ATLAS_OP_nbr_get:
  case ATLAS_OP_bound_map: set_register(l, insn, atlas_machine_class(m, l, insn->op, s)); break;
  case ATLAS_OP_phase_get: set_register(l, insn, m->launch->phase); break;
  case ATLAS_OP_phase_adv: /* uniform in the grid: lane 0 executes it for all */
    if (l->id == 0) m->launch->phase_advance = (uint32_t)((m->launch->phase_advance + s[0]) % ATLAS_PHASE_COUNT);
    break;
  case ATLAS_OP_mem_fence:
  case ATLAS_OP_mem_fence_grid: break; /* one lane at a time: memory is in order already */
  default: pure_insn(l, insn, info, s); break;
  }
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

/* Whether a branching node is taken; loop counts down here. */
static int is_taken(lane *l, const atlas_insn *insn) {
  if (insn->op == ATLAS_OP_loop) {
    uint32_t counter = (uint32_t)l->r[insn->operand[0].reg] - 1;
    l->r[insn->operand[0].reg] = counter;
    return counter != 0;
  }
  if (insn->guard == 0) return 1;
  int holds = (int)(l->predicates >> ((insn->guard & ATLAS_GUARD_PREDICATE) - 1) & 1);
  return insn->guard & ATLAS_GUARD_NEGATED ? !holds : holds;
}

static void end_lane(machine *m, lane *l, const atlas_insn *insn) {
  if (insn->op == ATLAS_OP_trap) {
    hg_fault fault = {.kind = HG_FAULT_TRAP, .code = (uint32_t)insn->operand[0].bits};
    atlas_machine_fault(m, l, fault);
  }
  l->status = LANE_ENDED;
}

/* Follows an edge; each back edge takes a step off the limit. */
static void follow_edge(machine *m, lane *l, const atlas_node *node, int taken) {
  if (node->flags & (taken ? IR_NODE_BACK_TAKEN : IR_NODE_BACK_NEXT) && l->steps-- == 0) {
    hg_fault fault = {.kind = HG_FAULT_STEP_LIMIT, .index = 0, .extent = 0};
    fault.index = fault.extent = m->launch->step_limit > INT64_MAX ? INT64_MAX : (int64_t)m->launch->step_limit;
    atlas_machine_fault(m, l, fault);
    l->status = LANE_ENDED;
    return;
  }
  l->node = taken ? node->taken : node->next;
}

static void run_lane(machine *m, lane *l) {
  while (l->status == LANE_RUNS) {
    const atlas_node *node = atlas_node_at(m->program, l->node);
    const atlas_insn *insn = atlas_insn_at(m->program, node->insn);
    if (node->taken != IR_NONE) {
      follow_edge(m, l, node, is_taken(l, insn));
    } else if (node->next == IR_NONE) {
      end_lane(m, l, insn);
    } else if (atlas_op_lookup(insn->op)->flags & ATLAS_BLOCK) {
      l->status = LANE_WAITS;
    } else {
      if (!(atlas_op_lookup(insn->op)->flags & ATLAS_JUMP))
        lane_insn(m, l, insn); /* call and ret only transfer control */
      follow_edge(m, l, node, 0);
    }
  }
}

/* ---- blocks and launches ----------------------------------------------------------------------------------------- */

static uint32_t run_block_insn(machine *m) {
  uint32_t waiting = 0, first = 0;
  for (uint32_t i = m->lane_count; i-- > 0;)
    if (m->lanes[i].status == LANE_WAITS) {
      waiting++;
      first = i;
    }
  if (waiting == 0) return 0;
  const atlas_node *node = atlas_node_at(m->program, m->lanes[first].node);
  atlas_machine_block(m, atlas_insn_at(m->program, node->insn)); /* the verifier has made sure that all wait here */
  for (uint32_t i = 0; i < m->lane_count; i++) {
    lane *l = &m->lanes[i];
    if (l->status != LANE_WAITS) continue;
    l->status = LANE_RUNS;
    follow_edge(m, l, node, 0);
  }
  return waiting;
}

static void place_lane(const machine *m, lane *l, uint32_t in_block) {
  uint32_t rest = in_block;
  l->in_block = in_block;
  for (int d = 0; d < 3; d++) {
    l->at[d] = rest % m->block_size[d];
    rest /= m->block_size[d];
  }
  l->id = 0;
  for (int d = 3; d-- > 0;)
    l->id = l->id * m->grid_size[d] * m->block_size[d] + m->block_at[d] * m->block_size[d] + l->at[d];
}

void atlas_machine_begin_block(machine *m) {
  uint32_t size = m->block_size[0] * m->block_size[1] * m->block_size[2];
  uint64_t rest = m->block_index;
  for (int d = 0; d < 3; d++) {
    m->block_at[d] = rest % m->grid_size[d];
    rest /= m->grid_size[d];
  }
  m->lane_count = size;
  if (m->launch->lanes != 0) { /* linear: the last block may be partial */
    uint64_t left = m->launch->lanes - m->block_index * size;
    if (left < size) m->lane_count = (uint32_t)left;
  }
  if (m->shared_bytes > 0) memset(m->shared, 0, m->shared_bytes);
  for (size_t s = 0; s < m->program->symbols.count; s++)
    if (atlas_symbol_at(m->program, s)->kind == ATLAS_SYMBOL_POOL)
      m->pool_top[s] = m->block_index * (m->launch->arguments[s].span.byte_count / m->block_count / 16 * 16);
  for (uint32_t i = 0; i < m->lane_count; i++) {
    lane *l = &m->lanes[i];
    place_lane(m, l, i);
    l->node = 0;
    l->status = LANE_RUNS;
    l->faulted = 0;
    l->steps = m->launch->step_limit;
    l->predicates = 0;
    if (m->local_bytes > 0) memset(l->local, 0, m->local_bytes);
  }
}

static void run_block(machine *m) {
  atlas_machine_begin_block(m);
  do
    for (uint32_t i = 0; i < m->lane_count; i++) run_lane(m, &m->lanes[i]);
  while (run_block_insn(m) > 0);
}

void atlas_machine_shape(machine *m) {
  atlas_launch *launch = m->launch;
  memset(launch->resonance, 0, sizeof launch->resonance);
  launch->phase_advance = 0;
  launch->fault = (hg_fault){.kind = HG_FAULT_NONE};
  for (int d = 0; d < 3; d++) {
    m->block_size[d] = launch->lanes != 0 ? 1 : launch->block[d];
    m->grid_size[d] = launch->lanes != 0 ? 1 : launch->grid[d];
  }
  if (launch->lanes != 0) {
    m->block_size[0] = atlas_linear_block(m->program, launch);
    m->grid_size[0] = (launch->lanes + m->block_size[0] - 1) / m->block_size[0];
  }
  m->block_count = m->grid_size[0] * m->grid_size[1] * m->grid_size[2];
  for (size_t i = 0; i < m->program->symbols.count; i++) {
    const atlas_symbol *symbol = atlas_symbol_at(m->program, i);
    m->local_offset[i] = (uint32_t)m->local_bytes;
    m->local_bytes += atlas_local_bytes(symbol);
    if (symbol->kind != ATLAS_SYMBOL_SHARED) continue;
    m->shared_offset[i] = (uint32_t)m->shared_bytes;
    m->shared_bytes += ((uint64_t)symbol->count * atlas_bytes((atlas_type)symbol->type) + 15) / 16 * 16;
  }
}

/* One allocation: lanes, their registers, types and local arrays, collective scratch, shared memory. */
static hg_status allocate_state(machine *m) {
  uint64_t lanes = (uint64_t)m->block_size[0] * m->block_size[1] * m->block_size[2];
  uint64_t registers = m->program->register_count;
  uint64_t bytes = lanes * (sizeof(lane) + 9 * registers + 9 + m->local_bytes) + m->shared_bytes + 64;
  m->memory = hg_allocate(m->allocator, bytes, 1);
  if (m->memory == NULL) return hg_fail_memory("the lanes of a block", bytes);
  m->lanes = m->memory;
  m->scratch = (uint64_t *)(void *)(m->lanes + lanes);
  uint64_t *values = m->scratch + lanes;
  uint8_t *local = (uint8_t *)(values + lanes * registers);
  m->shared = local + lanes * m->local_bytes;
  m->present = m->shared + m->shared_bytes;
  uint8_t *types = m->present + lanes;
  for (uint64_t i = 0; i < lanes; i++) {
    m->lanes[i].r = values + i * registers;
    m->lanes[i].local = local + i * m->local_bytes;
    m->lanes[i].type = types + i * registers;
  }
  return HG_OK;
}

hg_status atlas_interpret(const hg_allocator *allocator, const atlas_program *program, atlas_launch *launch) {
  machine m = {.allocator = allocator, .program = program, .launch = launch};
  atlas_machine_shape(&m);
  HG_TRY(allocate_state(&m));
  for (m.block_index = 0; m.block_index < m.block_count; m.block_index++) run_block(&m);
  hg_release(allocator, m.memory);
  return HG_OK;
}

/* ---- library functions ------------------------------------------------------------------------------------------- */

static uint64_t function_constant(const lane *l, const atlas_insn *insn) {
  const atlas_operand *o = &insn->operand[1];
  int64_t index = (int64_t)o->bits;
  if (o->mode == ATLAS_ADDRESS_INDEXED) index = atlas_index_sum((atlas_type)l->type[o->reg], l->r[o->reg], index);
  int ok;
  return atlas_constant_at(&atlas_functions, atlas_symbol_at(&atlas_functions, o->symbol), index, &ok);
}

static void function_insn(lane *l, const atlas_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (insn->op == ATLAS_OP_ldc) {
    set_register(l, insn, function_constant(l, insn));
    return;
  }
  uint64_t s[3] = {0, 0, 0};
  unsigned count = 0;
  for (unsigned i = 0; info->operands[i] != '\0'; i++) {
    const atlas_operand *o = &insn->operand[i];
    if (is_source(info->operands[i])) s[count++] = o->kind == ATLAS_OPERAND_REG ? l->r[o->reg] : o->bits;
  }
  pure_insn(l, insn, info, s);
}

/* Runs from an entry's first node in a register window of its own until the function's `ret`. */
static uint64_t run_function(uint32_t node_index, atlas_type type, uint64_t a, uint64_t b) {
  uint64_t values[ATLAS_GENERAL_REGISTERS];
  uint8_t types[ATLAS_GENERAL_REGISTERS];
  lane l = {.r = values, .type = types};
  values[0] = a;
  values[1] = b;
  types[0] = types[1] = (uint8_t)type;
  for (;;) {
    const atlas_node *node = atlas_node_at(&atlas_functions, node_index);
    const atlas_insn *insn = atlas_insn_at(&atlas_functions, node->insn);
    if (node->taken != IR_NONE) {
      node_index = is_taken(&l, insn) ? node->taken : node->next;
      continue;
    }
    if (node->next == IR_NONE) return values[0];
    if (!(atlas_op_lookup(insn->op)->flags & ATLAS_JUMP)) function_insn(&l, insn);
    node_index = node->next;
  }
}

uint64_t atlas_function(atlas_op op, atlas_type type, uint64_t a, uint64_t b) {
  if (type == ATLAS_f16 || type == ATLAS_bf16) /* through f32, rounded once */
    return atlas_convert(
        type, ATLAS_f32,
        atlas_function(op, ATLAS_f32, atlas_convert(ATLAS_f32, type, a), atlas_convert(ATLAS_f32, type, b)));
  for (size_t i = 0; i < atlas_functions.entries.count; i++) {
    const atlas_entry *entry = atlas_entry_at(&atlas_functions, i);
    if (entry->op == op && entry->type == type) return run_function(entry->node, type, a, b);
  }
  return atlas_canonical_nan(type); /* the build fails when a function is missing */
}
