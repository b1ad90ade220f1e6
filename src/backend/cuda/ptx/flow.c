/* flow.c - one copy of the program for one lane: blocks as labels, phis as parallel copies on the edges, the step
 * limit on edges that close a loop. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/tables.h"
#include "compiler/never_nan.h"

#include <stddef.h>

typedef struct flow {
  ptx *p;
  uint32_t first_label;
  ptx_name end;
} flow;

static ptx_name label_of(const flow *f, uint32_t block) {
  return hg_ptx_name("$L%u", (unsigned)(f->first_label + f->p->order.position[block]));
}

/* ---- the end of a lane ------------------------------------------------------------------------------------------- */

/* Collectives go on without it. */
static void end_early(const flow *f) {
  ptx *p = f->p;
  if (p->uses_scratch) {
    ptx_name at = hg_ptx_new(p, PTX_32);
    hg_ptx_put(p, "\tmov.u32 %s, hg_shared+%u;\n", at.text, (unsigned)p->ended);
    PTX(p, "add.s32", at, at, p->block_lane);
    hg_ptx_put(p, "\tst.shared.u8 [%s], 1;\n\tst.shared.u32 [hg_shared+%u], 1;\n\tmembar.cta;\n", at.text,
               (unsigned)p->ended_any);
  }
  hg_ptx_put(p, "\tbra %s;\n", f->end.text);
}

static void trap(const flow *f, const ssa_block *block) {
  ptx_fault_site site = {.insn = block->insn, .symbol = HG_PTX_NO_SYMBOL, .kind = HG_FAULT_TRAP,
                         .code = block->trap_code, .index_type = ATLAS_i64, .index = hg_ptx_number(0),
                         .extent = hg_ptx_number(0)};
  hg_ptx_note_fault(f->p, &site);
  end_early(f);
}

/* Takes a step from the lane's, or ends it. */
static void count_step(const flow *f, const ssa_block *block) {
  ptx *p = f->p;
  ptx_name none = hg_ptx_new(p, PTX_PREDICATE), rare = hg_ptx_label(p);
  PTX(p, "setp.eq.u64", none, p->steps, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", none.text, rare.text);
  PTX(p, "add.s64", p->steps, p->steps, hg_ptx_name("-1"));
  hg_array *out = p->out;
  p->out = &p->cold;
  hg_ptx_place(p, rare);
  ptx_fault_site site = {.insn = block->insn, .symbol = HG_PTX_NO_SYMBOL, .kind = HG_FAULT_STEP_LIMIT,
                         .index_type = ATLAS_i64, .index = hg_ptx_number(0), .extent = hg_ptx_number(0)};
  hg_ptx_note_fault(p, &site);
  end_early(f);
  p->out = out;
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

static uint32_t edge_of(const flow *f, uint32_t from, int side) { return f->p->order.edge[2 * from + (uint32_t)side]; }

/* Loops of the function library count no steps. */
static int closes_loop(const flow *f, uint32_t from, int side) {
  uint32_t header = ssa_block_at(f->p->unit, from)->successor[side];
  return ssa_dominates(&f->p->order, header, from) && !ssa_block_at(f->p->unit, header)->library;
}

static int has_code(const flow *f, uint32_t from, int side) {
  uint32_t target = ssa_block_at(f->p->unit, from)->successor[side];
  return ssa_block_at(f->p->unit, target)->first_phi != SSA_NONE || (f->p->counts_steps && closes_loop(f, from, side));
}

static void move(ptx *p, uint8_t type, ptx_name d, ptx_name a) {
  PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(hg_ptx_class_of(type))).text, d, a);
}

static int is_phi_of(const ptx *p, uint32_t value, uint32_t block) {
  const ssa_insn *insn = ptx_insn(p, value);
  return insn->op == SSA_PHI && insn->block == block;
}

/* `waiting`: the register in which its next value waits. Each phi has two numbers, one after the other. */
static ptx_name phi_register(ptx *p, uint32_t phi, int waiting) {
  ptx_name reg = hg_ptx_register(p, phi);
  if (!waiting) return reg;
  return hg_ptx_name("%%%c%u", reg.text[1], (unsigned)p->reg[phi]); /* reg holds 1 + the first number */
}

/* All phis take their values at once: through other registers where one phi's value is another's. */
static void move_phis(const flow *f, uint32_t target, uint32_t edge) {
  ptx *p = f->p;
  uint32_t first = ssa_block_at(p->unit, target)->first_phi;
  int crosses = 0;
  for (uint32_t phi = first; phi != SSA_NONE; phi = ptx_insn(p, phi)->next)
    crosses |= ptx_arg(p, phi, edge) != phi && is_phi_of(p, ptx_arg(p, phi, edge), target);
  for (uint32_t phi = first; phi != SSA_NONE; phi = ptx_insn(p, phi)->next) {
    uint32_t value = ptx_arg(p, phi, edge);
    if (value == phi) continue;
    ptx_name name = hg_comes_as_number(p->unit, phi, edge) ? hg_ptx_value(p, value) : hg_ptx_chosen(p, value, phi);
    move(p, ptx_insn(p, phi)->type, phi_register(p, phi, crosses), name);
  }
  for (uint32_t phi = first; phi != SSA_NONE && crosses; phi = ptx_insn(p, phi)->next)
    if (ptx_arg(p, phi, edge) != phi)
      move(p, ptx_insn(p, phi)->type, hg_ptx_register(p, phi), phi_register(p, phi, 1));
}

static void edge(const flow *f, uint32_t from, int side) {
  const ssa_block *block = ssa_block_at(f->p->unit, from);
  if (f->p->counts_steps && closes_loop(f, from, side)) count_step(f, block);
  move_phis(f, block->successor[side], edge_of(f, from, side));
}

static void jump_unless_next(const flow *f, uint32_t target, uint32_t next) {
  if (target != next) hg_ptx_put(f->p, "\tbra %s;\n", label_of(f, target).text);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void advance_phase(ptx *p, uint32_t value) {
  ptx_name by = hg_ptx_value(p, ptx_arg(p, value, 0)), address = PTX_FIELD(p, PTX_64, phase_advance);
  ptx_name old = hg_ptx_new(p, PTX_32), step = hg_ptx_new(p, PTX_32), skip = hg_ptx_label(p),
           other = hg_ptx_new(p, PTX_PREDICATE), count = hg_ptx_number(ATLAS_PHASE_COUNT);
  PTX(p, "setp.ne.u64", other, p->lane, hg_ptx_number(0)); /* lane 0 speaks for the grid */
  hg_ptx_put(p, "\t@%s bra %s;\n\tld.global.u32 %s, [%s];\n", other.text, skip.text, old.text, address.text);
  PTX(p, "rem.u32", step, by, count);
  PTX(p, "add.s32", old, old, step);
  PTX(p, "rem.u32", old, old, count);
  hg_ptx_put(p, "\tst.global.u32 [%s], %s;\n", address.text, old.text);
  hg_ptx_place(p, skip);
  p->info->uses_phase_advance = 1;
}

static void effect(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t flags = atlas_op_flags(insn->op);
  if (p->in_vector_part && (p->is_late[value] || hg_ptx_use_widened(p, value))) return;
  if (insn->insn != SSA_NONE) {
    uint32_t line = p->options->lines != NULL ? p->options->lines[insn->insn] : 0;
    if (line != 0) hg_ptx_put(p, "\t.loc 1 %u 0\n", (unsigned)line);
    hg_ptx_put(p, "\t// %u %s\n", (unsigned)insn->insn, atlas_op_name((atlas_op)insn->op));
  }
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_PURE))) hg_ptx_faults_now(p);
  if (flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) hg_ptx_memory(p, value);
  else if (flags & ATLAS_BLOCK) hg_ptx_block_effect(p, value);
  else if (insn->op == ATLAS_OP_phase_adv) advance_phase(p, value);
  else if (insn->op == ATLAS_OP_mem_fence) hg_ptx_put(p, "\tmembar.cta;\n");
  else if (insn->op == ATLAS_OP_mem_fence_grid) hg_ptx_put(p, "\tmembar.gl;\n");
  else if (flags & ATLAS_PURE || insn->op == ATLAS_OP_phase_get) hg_ptx_pure(p, value);
  else hg_ptx_class_effect(p, value);
}

static void branch(const flow *f, uint32_t b, uint32_t next) {
  ptx *p = f->p;
  const ssa_block *block = ssa_block_at(p->unit, b);
  ptx_name condition = hg_ptx_value(p, block->condition);
  int with_code = has_code(f, b, 0) ? 0 : has_code(f, b, 1) ? 1 : -1;
  if (with_code < 0) {
    hg_ptx_put(p, "\t@%s bra %s;\n", condition.text, label_of(f, block->successor[0]).text);
    jump_unless_next(f, block->successor[1], next);
    return;
  }
  int other = 1 - with_code; /* the side that the branch jumps to; this one falls through to its moves */
  int is_plain = !has_code(f, b, other);
  ptx_name label = is_plain ? label_of(f, block->successor[other]) : hg_ptx_label(p);
  hg_ptx_put(p, "\t@%s%s bra %s;\n", with_code == 0 ? "!" : "", condition.text, label.text);
  edge(f, b, with_code);
  if (is_plain) {
    jump_unless_next(f, block->successor[with_code], next);
    return;
  }
  hg_ptx_put(p, "\tbra %s;\n", label_of(f, block->successor[with_code]).text);
  hg_ptx_place(p, label);
  edge(f, b, other);
  jump_unless_next(f, block->successor[other], next);
}

static void put_block(const flow *f, uint32_t k) {
  ptx *p = f->p;
  uint32_t b = p->order.block[k], next = k + 1 < p->order.count ? p->order.block[k + 1] : SSA_NONE;
  const ssa_block *block = ssa_block_at(p->unit, b);
  if (k > 0) hg_ptx_place(p, label_of(f, b));
  for (uint32_t e = block->first_effect; e != SSA_NONE && !p->failed; e = ptx_insn(p, e)->next) effect(p, e);
  hg_ptx_faults_now(p);
  switch (block->end) {
  case SSA_JUMP:
    edge(f, b, 0);
    jump_unless_next(f, block->successor[0], next);
    break;
  case SSA_BRANCH: branch(f, b, next); break;
  case SSA_TRAP: trap(f, block); break;
  default:
    if (next != SSA_NONE) hg_ptx_put(p, "\tbra %s;\n", f->end.text);
    break;
  }
}

static int jumps_to_end(const ptx *p) {
  int jumps = p->can_end;
  for (uint32_t k = 0; k + 1 < p->order.count; k++) jumps |= ssa_block_at(p->unit, p->order.block[k])->end == SSA_EXIT;
  return jumps;
}

void hg_ptx_body(ptx *p) {
  flow f = {.p = p, .end = hg_ptx_label(p)};
  f.first_label = p->labels;
  p->labels += p->order.count;
  p->copy++;
  if (p->counts_steps) {
    p->steps = hg_ptx_new(p, PTX_64);
    PTX(p, "mov.b64", p->steps, PTX_FIELD(p, PTX_64, step_limit));
  }
  for (uint32_t k = 0; k < p->order.count && !p->failed; k++) put_block(&f, k);
  if (jumps_to_end(p)) hg_ptx_place(p, f.end);
}
