/* out_of_ssa.c - the last stage of out_of_ssa.h: blocks with registers become instructions, moves and labels. */
#include "compiler/canon/out_of_ssa.h"

#include "atlas/assemble.h"
#include "base/error.h"
#include "compiler/canon/schedule.h"

#include <stdio.h>
#include <string.h>

typedef struct move {
  uint32_t to;    /* target: a register of the class that is written now */
  uint32_t from;  /* source: another register; SSA_NONE: a constant, scalar or special register */
  uint32_t value; /* the value that is moved */
} move;

/* The role of a block besides its list of instructions. */
enum { PLAIN, HEADER, BARE_HEADER /* a header without an instruction */ };

typedef struct writer {
  const ssa_unit *unit;
  const ssa_order *order;
  const hg_registers *registers;
  atlas_program *program;
  uint32_t *label; /* per block: its label; SSA_NONE: nothing branches there */
  uint32_t *role;  /* per block: PLAIN, HEADER, BARE_HEADER */
  uint32_t *reads; /* per register: how many pending moves read it */
  hg_array moves;  /* move: the parallel copy of one edge, in one register class */
  uint8_t live[ATLAS_GENERAL_REGISTERS + 1]; /* per register: read by the moves, or live after them */
} writer;

static const ssa_insn *insn_at(const writer *w, uint32_t value) { return ssa_insn_at(w->unit, value); }
static const ssa_block *block_at(const writer *w, uint32_t b) { return ssa_block_at(w->unit, b); }

static const uint32_t limits[HG_REGISTER_CLASSES] = {ATLAS_GENERAL_REGISTERS, ATLAS_PREDICATES};

static hg_status fail_too_many(int class, uint32_t needed) {
  return hg_fail(HG_UNSUPPORTED,
                 "the canonical form needs %u %s at once and the ISA has %u: it cannot be written as a program; "
                 "`hologram emit --target ssa` shows it",
                 (unsigned)needed, class == HG_PREDICATE ? "predicates" : "registers", (unsigned)limits[class]);
}

static hg_status append_insn(const writer *w, const atlas_insn *insn) {
  if (hg_array_append(&w->program->allocator, &w->program->insns, insn, 1) != NULL) return HG_OK;
  return hg_fail_memory("a program's instructions", sizeof *insn);
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static uint8_t register_of(const writer *w, uint32_t value) {
  const ssa_insn *insn = insn_at(w, value);
  return (uint8_t)(insn->op == SSA_SPECIAL ? insn->bits : w->registers->of[value]);
}

static atlas_operand source(const writer *w, uint32_t value) {
  const ssa_insn *insn = insn_at(w, value);
  if (insn->op == SSA_CONST) return atlas_bits(insn->bits);
  if (insn->op == SSA_SCALAR) return atlas_scalar(insn->symbol);
  return (atlas_operand){.kind = insn->type == SSA_PREDICATE ? ATLAS_OPERAND_PRED : ATLAS_OPERAND_REG,
                         .reg = register_of(w, value)};
}

static atlas_operand destination(const writer *w, uint32_t value) {
  if (w->registers->of[value] == SSA_NONE) return atlas_discard();
  return source(w, value);
}

static atlas_operand address(const writer *w, uint32_t value, uint32_t *used) {
  const ssa_insn *insn = insn_at(w, value);
  const uint32_t *args = ssa_args_of(w->unit, value);
  atlas_operand o = {.kind = ATLAS_OPERAND_MEM, .mode = insn->mode, .symbol = insn->symbol, .bits = insn->bits};
  uint32_t registers = insn->mode == ATLAS_ADDRESS_INDEXED ? 1 : insn->mode == ATLAS_ADDRESS_TABLE ? 3 : 0;
  if (insn->mode == ATLAS_ADDRESS_PHI) registers = o.phi_registers = insn->phi_registers;
  if (registers & 1) o.reg = register_of(w, args[(*used)++]);
  if (registers & 2) o.reg2 = register_of(w, args[(*used)++]);
  if (registers & 4) o.reg3 = register_of(w, args[(*used)++]);
  return o;
}

static hg_status write_insn(const writer *w, uint32_t value) {
  const ssa_insn *insn = insn_at(w, value);
  const char *letters = atlas_op_lookup(insn->op)->operands;
  int tests = insn->type == SSA_PREDICATE; /* its type is that of the operands it compares */
  atlas_insn out = {.op = insn->op, .type = tests ? insn->type2 : insn->type, .type2 = tests ? 0 : insn->type2};
  uint32_t used = 0;
  for (; letters[out.operand_count] != '\0'; out.operand_count++) {
    atlas_operand *o = &out.operand[out.operand_count];
    switch (letters[out.operand_count]) {
    case 'd':
    case 'o':
    case 'p': *o = destination(w, value); break;
    case 'm': *o = address(w, value, &used); break;
    case 'w': *o = atlas_mem(insn->symbol, ssa_window_first(insn)); break;
    case 'k': *o = atlas_bits(ssa_window_bits(insn)); break;
    case 'x': *o = (atlas_operand){.kind = ATLAS_OPERAND_COORD, .bits = insn->bits}; break;
    case 'h': *o = atlas_pool(insn->symbol); break;
    case 'b': *o = atlas_buffer(insn->symbol); break;
    default: *o = source(w, ssa_args_of(w->unit, value)[used++]); break;
    }
  }
  if (insn->op == ATLAS_OP_mov && out.operand[1].kind == ATLAS_OPERAND_IMM) out.op = ATLAS_OP_movi;
  return append_insn(w, &out);
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

/* There is no move of predicates: pand of p and p stands for it. */
static hg_status write_move(const writer *w, const move *m) {
  const ssa_insn *insn = insn_at(w, m->value);
  atlas_operand from = source(w, m->value);
  if (m->from != SSA_NONE) from.reg = (uint8_t)m->from;
  if (insn->type == SSA_PREDICATE)
    return append_insn(w, &(atlas_insn){
                      .op = ATLAS_OP_pand, .operand_count = 3, .operand = {atlas_pred(m->to), from, from}});
  uint16_t op = from.kind == ATLAS_OPERAND_IMM ? ATLAS_OP_movi : ATLAS_OP_mov;
  return append_insn(
      w, &(atlas_insn){.op = op, .type = insn->type, .operand_count = 2, .operand = {atlas_reg(m->to), from}});
}

static move *moves_of(const writer *w) { return w->moves.data; }

/* A register that is not live on the edge; the limit of the class where all are. */
static uint32_t free_register(const writer *w, int class) {
  uint32_t reg = 0;
  while (reg < limits[class] && w->live[reg]) reg++;
  return reg;
}

/* Writes a parallel copy: a move is written once no pending move reads its target; where all pending moves form cycles,
 * one register of a cycle is copied to a free one first. */
static hg_status write_moves(writer *w, int class) {
  move *moves = moves_of(w);
  size_t count = w->moves.count;
  while (count > 0) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
      if (w->reads[moves[i].to] > 0) {
        moves[kept++] = moves[i];
        continue;
      }
      HG_TRY(write_move(w, &moves[i]));
      if (moves[i].from != SSA_NONE) w->reads[moves[i].from]--;
    }
    if (kept == count) {
      uint32_t cycle = moves[0].to, reg = free_register(w, class), reader = 0;
      if (reg == limits[class]) return fail_too_many(class, reg + 1);
      while (moves[reader].from != cycle) reader++;
      HG_TRY(write_move(w, &(move){reg, cycle, moves[reader].value}));
      w->reads[cycle]--;
      w->reads[reg]++;
      w->live[reg] = 1;
      moves[reader].from = reg;
    }
    count = kept;
  }
  return HG_OK;
}

/* The moves from b into the phis of `next`, its only successor. */
static hg_status list_moves(writer *w, uint32_t b, uint32_t next, int class) {
  uint32_t edge = w->order->edge[2 * (size_t)b];
  w->moves.count = 0;
  for (uint32_t phi = block_at(w, next)->first_phi; phi != SSA_NONE; phi = insn_at(w, phi)->next) {
    uint32_t value = ssa_args_of(w->unit, phi)[edge];
    const move m = {w->registers->of[phi], w->registers->of[value], value};
    if (hg_class_of(insn_at(w, phi)) != class || m.to == m.from) continue;
    if (hg_array_append(&w->unit->allocator, &w->moves, &m, 1) == NULL)
      return hg_fail_memory("the moves of an edge", sizeof m);
  }
  return HG_OK;
}

static void mark_live(writer *w, uint32_t value, int class) {
  if (hg_class_of(insn_at(w, value)) == class) w->live[w->registers->of[value]] = 1;
}

/* Fills `live` and `reads` for the moves into `next`. */
static void count_reads(writer *w, uint32_t next, int class) {
  const hg_array *live = &w->registers->live_in[next];
  memset(w->live, 0, limits[class]);
  for (size_t i = 0; i < live->count; i++) mark_live(w, ((const uint32_t *)live->data)[i], class);
  for (uint32_t phi = block_at(w, next)->first_phi; phi != SSA_NONE; phi = insn_at(w, phi)->next)
    mark_live(w, phi, class);
  for (size_t i = 0; i < w->moves.count; i++) {
    if (moves_of(w)[i].from == SSA_NONE) continue;
    w->live[moves_of(w)[i].from] = 1;
    w->reads[moves_of(w)[i].from]++;
  }
}

static hg_status write_edge(writer *w, uint32_t b) {
  const ssa_block *block = block_at(w, b);
  for (int class = 0; class < HG_REGISTER_CLASSES && block->end == SSA_JUMP; class++) {
    HG_TRY(list_moves(w, b, block->successor[0], class));
    if (w->moves.count == 0) continue;
    count_reads(w, block->successor[0], class);
    HG_TRY(write_moves(w, class));
  }
  return HG_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* 1 if the block has no instruction in the text. */
static int is_empty(writer *w, uint32_t b, hg_status *status) {
  const ssa_block *block = block_at(w, b);
  if (block->end != SSA_JUMP || block->first_effect != SSA_NONE || block->successor[0] == b || b == 0) return 0;
  for (int class = 0; class < HG_REGISTER_CLASSES && *status == HG_OK; class++) {
    *status = list_moves(w, b, block->successor[0], class);
    if (w->moves.count > 0) return 0;
  }
  return 1;
}

/* The first non-empty block from `b` on; in an endless loop of empty blocks, one of them. */
static uint32_t skip_empty(const writer *w, const uint32_t *next, uint32_t b) {
  for (size_t steps = w->unit->blocks.count; steps > 0 && next[b] != b; steps--) b = next[b];
  return b;
}

static void place_label(const writer *w, uint32_t b) {
  if (w->label[b] == SSA_NONE) return;
  ((atlas_label *)w->program->labels.data)[w->label[b]].target = (uint32_t)w->program->insns.count;
}

static hg_status write_branch(const writer *w, uint32_t to, uint32_t condition, int negated) {
  atlas_insn out = {.op = ATLAS_OP_bra, .operand_count = 1, .operand = {atlas_label_ref(w->label[to])}};
  if (condition != SSA_NONE)
    out.guard = (uint8_t)((negated ? ATLAS_GUARD_NEGATED : 0) | (1 + w->registers->of[condition]));
  return append_insn(w, &out);
}

/* Writes the end of block b. `after`: the block that follows in the text. */
static hg_status write_terminator(const writer *w, uint32_t b, const uint32_t *next, uint32_t after) {
  const ssa_block *block = block_at(w, b);
  if (block->end == SSA_TRAP)
    return append_insn(w, &(atlas_insn){
                      .op = ATLAS_OP_trap, .operand_count = 1, .operand = {atlas_bits(block->trap_code)}});
  if (block->end == SSA_EXIT) return append_insn(w, &(atlas_insn){.op = ATLAS_OP_exit});
  uint32_t to = skip_empty(w, next, block->successor[0]);
  if (block->end == SSA_BRANCH) {
    uint32_t otherwise = skip_empty(w, next, block->successor[1]);
    if (to == after) return write_branch(w, otherwise, block->condition, 1);
    HG_TRY(write_branch(w, to, block->condition, 0));
    to = otherwise;
  }
  return to == after ? HG_OK : write_branch(w, to, SSA_NONE, 0);
}

/* Marks the blocks that write_terminator branches to. */
static void mark_labels(const writer *w, uint32_t b, const uint32_t *next, uint32_t after) {
  const ssa_block *block = block_at(w, b);
  for (int s = 0; s < 2; s++) {
    uint32_t to = block->successor[s] == SSA_NONE ? after : skip_empty(w, next, block->successor[s]);
    if (to != after) w->label[to] = 0;
  }
}

static hg_status number_labels(const writer *w, const uint32_t *text, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    atlas_label label = {0};
    if (w->label[text[k]] == SSA_NONE) continue;
    w->label[text[k]] = (uint32_t)w->program->labels.count;
    snprintf(label.name, sizeof label.name, "l%u", (unsigned)w->program->labels.count + 1);
    if (hg_array_append(&w->program->allocator, &w->program->labels, &label, 1) == NULL)
      return hg_fail_memory("a program's labels", sizeof label);
  }
  return HG_OK;
}

/* The block that text[k] falls through to. A bare header ends in a branch even if its successor follows: that block
 * begins another loop, and two loops with one label would become one. */
static uint32_t following(const writer *w, const uint32_t *text, uint32_t k) {
  return w->role[text[k]] == BARE_HEADER ? SSA_NONE : text[k + 1];
}

/* `text`: the blocks that are written, in text order, then SSA_NONE. */
static hg_status write_blocks(writer *w, const uint32_t *text, uint32_t count, const uint32_t *next) {
  for (uint32_t k = 0; k < count; k++) mark_labels(w, text[k], next, following(w, text, k));
  HG_TRY(number_labels(w, text, count));
  for (uint32_t k = 0; k < count; k++) {
    place_label(w, text[k]);
    for (uint32_t v = block_at(w, text[k])->first_effect; v != SSA_NONE; v = insn_at(w, v)->next)
      HG_TRY(write_insn(w, v));
    HG_TRY(write_edge(w, text[k]));
    HG_TRY(write_terminator(w, text[k], next, following(w, text, k)));
  }
  return HG_OK;
}

static void find_headers(const writer *w) {
  const ssa_order *o = w->order;
  memset(w->role, 0, w->unit->blocks.count * sizeof *w->role);
  for (uint32_t k = 0; k < o->count; k++)
    for (int s = 0; s < 2; s++) {
      uint32_t to = block_at(w, o->block[k])->successor[s];
      if (to != SSA_NONE && o->position[to] <= k) w->role[to] = HEADER;
    }
}

static hg_status write_code(writer *w) {
  uint64_t blocks = w->unit->blocks.count;
  uint32_t *text = hg_allocate(&w->unit->allocator, 4 * blocks + 1 + ATLAS_GENERAL_REGISTERS, sizeof *text), count = 0;
  if (text == NULL) return hg_fail_memory("the blocks of a program", 4 * blocks * sizeof *text);
  uint32_t *next = text + blocks + 1;
  hg_status status = HG_OK;
  w->label = next + blocks;
  w->role = w->label + blocks;
  w->reads = w->role + blocks;
  memset(w->label, 0xff, blocks * sizeof *w->label);
  find_headers(w);
  for (uint32_t k = 0; k < w->order->count; k++) {
    uint32_t b = w->order->block[k];
    int empty = is_empty(w, b, &status), skipped = empty && w->role[b] == PLAIN;
    if (empty && !skipped) w->role[b] = BARE_HEADER;
    next[b] = skipped ? block_at(w, b)->successor[0] : b;
    if (!skipped) text[count++] = b;
  }
  text[count] = SSA_NONE;
  if (status == HG_OK) status = write_blocks(w, text, count, next);
  hg_release(&w->unit->allocator, text);
  return status;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static hg_status copy_array(const atlas_program *to, hg_array *into, const hg_array *from) {
  if (from->count == 0 || hg_array_append(&to->allocator, into, from->data, from->count) != NULL) return HG_OK;
  return hg_fail_memory("a program's declarations", from->count * from->element_size);
}

static hg_status copy_declarations(const atlas_program *from, atlas_program *to) {
  memcpy(to->name, from->name, sizeof to->name);
  memcpy(to->block, from->block, sizeof to->block);
  memcpy(to->default_block, from->default_block, sizeof to->default_block);
  HG_TRY(copy_array(to, &to->symbols, &from->symbols));
  return copy_array(to, &to->constants, &from->constants);
}

static hg_status write_program(const hg_allocator *allocator, const atlas_program *from, const ssa_unit *unit,
                               const ssa_order *order, const hg_registers *registers, atlas_program **out) {
  writer w = {.unit = unit, .order = order, .registers = registers, .moves = {.element_size = sizeof(move)}};
  w.program = atlas_program_new(allocator);
  if (w.program == NULL) return HG_OUT_OF_MEMORY;
  hg_status status = copy_declarations(from, w.program);
  if (status == HG_OK) status = write_code(&w);
  hg_array_release(&unit->allocator, &w.moves);
  if (status == HG_OK) return atlas_program_complete(w.program, NULL, out);
  atlas_program_release(w.program);
  return status;
}

/* Registers for a scheduled unit. `recompute`: comparisons are rematerialised before each use. */
static hg_status allocate(const atlas_program *program, ssa_unit *unit, const ssa_order *order, int recompute,
                          hg_registers *registers) {
  hg_registers_release(unit, registers);
  HG_TRY(hg_materialise_operands(program, unit, order, recompute));
  HG_TRY(hg_lower_pressure(program, unit, order));
  return hg_assign_registers(unit, order, registers);
}

static int exceeds_limit(const hg_registers *registers, int class) { return registers->needed[class] > limits[class]; }

/* Hoists loop-invariant values and computes comparisons once, as long as there are registers enough. `rematerialise`:
 * loads of read-only memory are rematerialised in each block that uses them. */
static hg_status schedule_and_allocate(const atlas_program *program, ssa_unit *unit, const ssa_order *order,
                                       int rematerialise, hg_registers *registers) {
  for (int late = 0; late < 2; late++) {
    hg_unschedule(unit);
    HG_TRY(late ? hg_schedule_late(unit) : hg_schedule(unit));
    if (rematerialise && !late) HG_TRY(hg_rematerialise_loads(program, unit, order));
    HG_TRY(allocate(program, unit, order, 0, registers));
    if (!exceeds_limit(registers, HG_GENERAL)) break;
  }
  if (exceeds_limit(registers, HG_PREDICATE)) HG_TRY(allocate(program, unit, order, 1, registers));
  for (int class = 0; class < HG_REGISTER_CLASSES; class++)
    if (exceeds_limit(registers, class)) return fail_too_many(class, registers->needed[class]);
  return HG_OK;
}

static hg_status fail_not_uniform(void) {
  char reason[600];
  snprintf(reason, sizeof reason, "%s", hg_last_error());
  return hg_fail(HG_UNSUPPORTED,
                 "the canonical form has merged what kept control uniform for the verifier (%s): it cannot be written "
                 "as a program; `hologram emit --target ssa` shows it",
                 reason);
}

/* Merging loads in the canonical form may have made a load less uniform for the verifier. Then the text is written
 * again, with loads rematerialised. */
static hg_status allocate_and_write(const hg_allocator *allocator, const atlas_program *program, ssa_unit *unit,
                                 const ssa_order *order, hg_registers *registers, atlas_program **out) {
  hg_status status = HG_VERIFY;
  for (int rematerialise = 0; rematerialise < 2 && status == HG_VERIFY; rematerialise++) {
    HG_TRY(schedule_and_allocate(program, unit, order, rematerialise, registers));
    status = write_program(allocator, program, unit, order, registers, out);
  }
  return status == HG_VERIFY ? fail_not_uniform() : status;
}

hg_status hg_out_of_ssa(const hg_allocator *allocator, const atlas_program *program, ssa_unit *unit,
                        atlas_program **out) {
  ssa_order order = {0};
  hg_registers registers = {0};
  HG_TRY(hg_recall_accesses(program, unit));
  HG_TRY(hg_split_edges(unit));
  hg_status status = ir_ssa_order_build(unit, &order);
  if (status == HG_OK) status = allocate_and_write(allocator, program, unit, &order, &registers, out);
  hg_registers_release(unit, &registers);
  ir_ssa_order_release(unit, &order);
  return status;
}
