/* flow.c - one copy of the program for one lane: blocks as labels, phis as parallel copies on the edges, the step limit
 * on back edges. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/tables.h"

#include <stddef.h>

typedef struct flow {
  ptx *p;
  uint32_t first_label;
  ptx_name end, early; /* early: the end of a lane that collectives go on without */
} flow;

static ptx_name label_of(const flow *f, uint32_t block) {
  return hg_ptx_name("$L%u", (unsigned)(f->first_label + f->p->plan->order.position[block]));
}

/* ---- the end of a lane ------------------------------------------------------------------------------------------- */

/* Behind the body: collectives go on without the lane. */
static void end_early(const flow *f) {
  ptx *p = f->p;
  ptx_name at = hg_ptx_new(p, PTX_32);
  hg_array *out = p->out;
  p->out = &p->cold;
  hg_ptx_place(p, f->early);
  hg_ptx_put(p, "\tmov.u32 %s, hg_shared+%u;\n", at.text, (unsigned)p->plan->memory.ended);
  PTX(p, "add.s32", at, at, p->block_lane);
  hg_ptx_put(p, "\tst.shared.u8 [%s], 1;\n\tst.shared.u32 [hg_shared+%u], 1;\n\tmembar.cta;\n\tbra %s;\n", at.text,
             (unsigned)p->plan->memory.ended_any, f->end.text);
  p->out = out;
}

static void jump_early(const flow *f) { hg_ptx_put(f->p, "\tbra %s;\n", f->early.text); }

/* The lane ends with that fault. */
static void end_with(const flow *f, gpu_site of) {
  const ptx_fault_site site = {.site = of, .index = hg_ptx_number(0), .extent = hg_ptx_number(0)};
  hg_ptx_note_fault(f->p, &site);
  jump_early(f);
}

/* Decrements the lane's steps, or ends the lane if none is left. */
static void count_step(const flow *f, uint32_t from, uint32_t to) {
  ptx *p = f->p;
  ptx_name none = hg_ptx_new(p, PTX_PREDICATE), rare = hg_ptx_label(p);
  PTX(p, "setp.eq.u64", none, p->steps, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", none.text, rare.text);
  PTX(p, "add.s64", p->steps, p->steps, hg_ptx_name("-1"));
  hg_array *out = p->out;
  p->out = &p->cold;
  hg_ptx_place(p, rare);
  end_with(f, hg_gpu_step_limit_site(p->plan, from, to));
  p->out = out;
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

static void move(ptx *p, uint8_t type, ptx_name d, ptx_name a) {
  PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(hg_ptx_class_of(type))).text, d, a);
}

/* `waiting`: the register in which the phi's next value waits. A phi has two consecutive register numbers. */
static ptx_name phi_register(ptx *p, uint32_t phi, int waiting) {
  ptx_name reg = hg_ptx_register(p, phi);
  if (!waiting) return reg;
  return hg_ptx_name("%%%c%u", reg.text[1], (unsigned)p->reg[p->plan->home[phi]]); /* 1 + the first number */
}

/* 1 if the operand is in the phi's register with the phi's bits. A number that another edge brings may still have to be
 * made canonical on this one. */
static int is_there(const ptx *p, uint32_t phi, const gpu_edge *edge) {
  if (p->plan->home[ptx_arg(p, phi, edge->side)] != p->plan->home[phi]) return 0;
  return !hg_gpu_asks_exact(p->plan, phi, edge->side);
}

/* All phis get their values at once: through other registers if one phi's value is another phi. */
static void move_phis(ptx *p, const gpu_edge *edge) {
  uint32_t first = ssa_block_at(p->plan->unit, edge->target)->first_phi;
  for (uint32_t phi = first; phi != SSA_NONE; phi = ptx_insn(p, phi)->next) {
    if (is_there(p, phi, edge)) continue;
    ptx_name name = hg_ptx_argument(p, phi, edge->side);
    move(p, ptx_insn(p, phi)->type, phi_register(p, phi, edge->crosses), name);
  }
  for (uint32_t phi = first; phi != SSA_NONE && edge->crosses; phi = ptx_insn(p, phi)->next)
    if (!is_there(p, phi, edge)) move(p, ptx_insn(p, phi)->type, hg_ptx_register(p, phi), phi_register(p, phi, 1));
}

static void emit_edge(const flow *f, uint32_t from, const gpu_edge *edge) {
  if (edge->takes_steps == 1) count_step(f, from, edge->target);
  else if (edge->takes_steps > 1) /* the loop's header has asked whether they are left */
    PTX(f->p, "sub.s64", f->p->steps, f->p->steps, hg_ptx_number(edge->takes_steps));
  move_phis(f->p, edge);
}

static void jump_unless_next(const flow *f, uint32_t target, uint32_t next) {
  if (target != next) hg_ptx_put(f->p, "\tbra %s;\n", label_of(f, target).text);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void advance_phase(ptx *p, uint32_t value) {
  ptx_name by = hg_ptx_value(p, ptx_arg(p, value, 0)), address = PTX_FIELD(p, PTX_64, phase_advance);
  ptx_name old = hg_ptx_new(p, PTX_32), step = hg_ptx_new(p, PTX_32), skip = hg_ptx_label(p),
           other = hg_ptx_new(p, PTX_PREDICATE), count = hg_ptx_number(ATLAS_PHASE_COUNT);
  PTX(p, "setp.ne.u64", other, p->lane, hg_ptx_number(0)); /* lane 0 does it for the grid */
  hg_ptx_put(p, "\t@%s bra %s;\n\tld.global.u32 %s, [%s];\n", other.text, skip.text, old.text, address.text);
  PTX(p, "rem.u32", step, by, count);
  PTX(p, "add.s32", old, old, step);
  PTX(p, "rem.u32", old, old, count);
  hg_ptx_put(p, "\tst.global.u32 [%s], %s;\n", address.text, old.text);
  hg_ptx_place(p, skip);
}

/* A comment for readers, and a line for profilers. */
static void begin_insn(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t line = p->options->lines != NULL ? p->options->lines[insn->insn] : 0;
  if (line != 0) hg_ptx_put(p, "\t.loc 1 %u 0\n", (unsigned)line);
  hg_ptx_put(p, "\t// %u %s\n", (unsigned)insn->insn, atlas_op_name((atlas_op)insn->op));
}

/* A block of one warp needs no barrier. */
static void vote(ptx *p, uint32_t value) {
  int is_any = ptx_insn(p, value)->op == ATLAS_OP_vote_any;
  ptx_name a = hg_ptx_value(p, ptx_arg(p, value, 0)), d = hg_ptx_register(p, value);
  if (gpu_is_one_warp(p->plan))
    hg_ptx_put(p, "\tvote.sync.%s.pred %s, %s, 0xffffffff;\n", is_any ? "any" : "all", d.text, a.text);
  else hg_ptx_put(p, "\tbar.red.%s.pred %s, 0, %s;\n", is_any ? "or" : "and", d.text, a.text);
}

static void emit_step(ptx *p, const gpu_step *step) {
  switch (step->op) {
  case GPU_INSN: begin_insn(p, step->value); break;
  case GPU_COMPUTE: hg_ptx_pure(p, step->value); break;
  case GPU_TAKE: hg_ptx_take_element(p, step); break;
  case GPU_GIVE: hg_ptx_give_element(p, step); break;
  case GPU_GROUP: hg_ptx_group(p, step); break;
  case GPU_HOIST_CHECK: hg_ptx_hoist_check(p, step); break;
  case GPU_NOTE_FAULTS: hg_ptx_faults_now(p); break;
  case GPU_CLEAR_SHARED: hg_ptx_clear_shared(p, step->number); break;
  case GPU_SYNC: hg_ptx_put(p, "\tbar.sync 0;\n"); break;
  case GPU_VOTE: vote(p, step->value); break;
  case GPU_RANK: hg_ptx_ranks(p, step->value, step->number); break;
  case GPU_POOL_ALLOCATE: hg_ptx_pool_allocate(p, step->value); break;
  case GPU_POOL_FREE: hg_ptx_pool_free(p, step->value); break;
  case GPU_FENCE: hg_ptx_put(p, "\tmembar.cta;\n"); break;
  case GPU_FENCE_GRID: hg_ptx_put(p, "\tmembar.gl;\n"); break;
  case GPU_ADVANCE_PHASE: advance_phase(p, step->value); break;
  case GPU_CLASS: hg_ptx_class_effect(p, step->value); break;
  default: hg_ptx_access(p, step); break;
  }
}

void hg_ptx_steps(ptx *p, uint32_t first, uint32_t count) {
  if (count == 0) return; /* also for a part without steps */
  const gpu_step *steps = (const gpu_step *)p->plan->version[p->version].steps.data + first;
  for (uint32_t i = 0; i < count && !p->failed; i++) {
    if (steps[i].op == GPU_EXCHANGE) i += hg_ptx_exchange(p, &steps[i]) - 1;
    else emit_step(p, &steps[i]);
  }
}

static void branch(const flow *f, uint32_t b, uint32_t next) {
  ptx *p = f->p;
  const gpu_edge edge[2] = {hg_gpu_edge(p->plan, b, 0), hg_gpu_edge(p->plan, b, 1)};
  ptx_name condition = hg_ptx_value(p, ssa_block_at(p->plan->unit, b)->condition);
  uint32_t steps = hg_gpu_asks_steps(p->plan, b);
  if (steps > 0) {
    ptx_name both = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, "setp.ge.and.u64", both, p->steps, hg_ptx_number(steps), condition);
    condition = both;
  }
  int with_code = gpu_has_code(&edge[0]) ? 0 : gpu_has_code(&edge[1]) ? 1 : -1;
  if (with_code < 0) {
    hg_ptx_put(p, "\t@%s bra %s;\n", condition.text, label_of(f, edge[0].target).text);
    jump_unless_next(f, edge[1].target, next);
    return;
  }
  int other = 1 - with_code; /* the side that the branch jumps to; the code falls through to the moves of the other
                                side */
  int is_plain = !gpu_has_code(&edge[other]);
  ptx_name label = is_plain ? label_of(f, edge[other].target) : hg_ptx_label(p);
  hg_ptx_put(p, "\t@%s%s bra %s;\n", with_code == 0 ? "!" : "", condition.text, label.text);
  emit_edge(f, b, &edge[with_code]);
  if (is_plain) {
    jump_unless_next(f, edge[with_code].target, next);
    return;
  }
  hg_ptx_put(p, "\tbra %s;\n", label_of(f, edge[with_code].target).text);
  hg_ptx_place(p, label);
  emit_edge(f, b, &edge[other]);
  jump_unless_next(f, edge[other].target, next);
}

static void jump(const flow *f, uint32_t from, uint32_t next) {
  gpu_edge edge = hg_gpu_edge(f->p->plan, from, 0);
  emit_edge(f, from, &edge);
  jump_unless_next(f, edge.target, next);
}

/* 1 for a loop of the function library, which is for rare cases: ptxas must not unroll it. */
static int begins_rare_loop(const ptx *p, uint32_t k) {
  const ssa_block *block = ssa_block_at(p->plan->unit, p->plan->order.block[k]);
  for (size_t i = 0; i < block->predecessors.count && block->library; i++)
    if (p->plan->order.position[((const uint32_t *)block->predecessors.data)[i]] >= k) return 1;
  return 0;
}

static void emit_block(const flow *f, uint32_t k) {
  ptx *p = f->p;
  uint32_t b = p->plan->order.block[k], next = k + 1 < p->plan->order.count ? p->plan->order.block[k + 1] : SSA_NONE;
  const ssa_block *block = ssa_block_at(p->plan->unit, b);
  if (k > 0) hg_ptx_place(p, label_of(f, b));
  p->near_count = 0;
  if (begins_rare_loop(p, k)) hg_ptx_put(p, "\t.pragma \"nounroll\";\n");
  const uint32_t *first = p->plan->version[p->version].first;
  hg_ptx_steps(p, first[k], first[k + 1] - first[k]);
  switch (block->end) {
  case SSA_JUMP: jump(f, b, next); break;
  case SSA_BRANCH: branch(f, b, next); break;
  case SSA_TRAP: end_with(f, hg_gpu_trap_site(block)); break;
  default:
    if (next != SSA_NONE) hg_ptx_put(p, "\tbra %s;\n", f->end.text);
    break;
  }
}

static int jumps_to_end(const ptx *p) {
  const gpu_plan *g = p->plan;
  int jumps = g->can_end;
  for (uint32_t k = 0; k + 1 < g->order.count; k++) jumps |= ssa_block_at(g->unit, g->order.block[k])->end == SSA_EXIT;
  return jumps;
}

void hg_ptx_body(ptx *p, gpu_version_kind version) {
  int is_missed = p->plan->memory.uses_scratch && p->plan->can_end;
  flow f = {.p = p, .end = hg_ptx_label(p)};
  f.early = is_missed ? hg_ptx_label(p) : f.end;
  f.first_label = p->labels;
  p->labels += p->plan->order.count;
  p->copy++;
  p->version = version;
  if (p->plan->counts_steps) {
    p->steps = hg_ptx_new(p, PTX_64);
    PTX(p, "mov.b64", p->steps, PTX_FIELD(p, PTX_64, step_limit));
  }
  for (uint32_t k = 0; k < p->plan->order.count && !p->failed; k++) emit_block(&f, k);
  if (jumps_to_end(p)) hg_ptx_place(p, f.end);
  if (is_missed) end_early(&f);
}
