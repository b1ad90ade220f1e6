/* block.c - code that runs all steps of a block of several steps: its regions in order, its jumps, and calls of C code
 * for instructions of the whole block. Each region can also be entered alone, and then returns. Blocks that have all
 * their lanes get a version in which the number of groups is known. */
#include "backend/cpu/x86/emit_x86.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include <stddef.h>
#include <string.h>

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static uint32_t step_label(x86_emit *e, uint32_t step) {
  if (e->label_of_step[step] == UINT32_MAX) e->label_of_step[step] = hg_x86_new_label(&e->a);
  return e->label_of_step[step];
}

static x86_rm context_member(size_t offset) { return x86_at(X86_CONTEXT, (int32_t)offset); }

static void copy_word(x86_emit *e, x86_rm to, x86_rm from) {
  hg_x86_load(&e->a, 1, X86_RAX, from);
  hg_x86_store(&e->a, 1, to, X86_RAX);
}

/* At the end of a region, its new block-uniform values replace the old ones. */
static void commit_block_uniform(x86_emit *e, const native_step *step) {
  unsigned scratch = hg_x86_scratch(e, 0);
  for (uint32_t i = step->end; i-- > step->first;) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (!hg_native_is_live_out_move(insn, e->b->locations)) return;
    const native_location *location = native_location_of(e->b, insn->d);
    if (!location->is_uniform) continue;
    hg_x86_v(e, X86_vload, scratch, 0, x86_at(X86_ROWS, (int32_t)(location->offset + NATIVE_BLOCK_UNIFORM_BYTES)));
    hg_x86_v(e, X86_vstore, scratch, 0, x86_at(X86_ROWS, (int32_t)location->offset));
  }
}

static void end_step(x86_emit *e, const native_step *step) {
  x86_asm *a = &e->a;
  if (!e->is_full) {
    hg_x86_alu_imm(a, X86_CMP, 1, hg_x86_frame(X86_RUNS_BLOCK), 0);
    hg_x86_jump_if(a, X86_EQUAL, e->block_end);
  }
  if (step->is_once) return;
  commit_block_uniform(e, step);
  if (!e->b->vector->loses_lanes) return;
  copy_word(e, context_member(offsetof(native_context, steps_left)),
            context_member(offsetof(native_context, fewest_left)));
  hg_x86_load(a, 1, X86_RAX, context_member(offsetof(native_context, worker)));
  hg_x86_load(a, 0, X86_RAX, x86_at(X86_RAX, offsetof(cpu_worker, lost)));
  hg_x86_alu_rm(a, X86_CMP, 0, X86_RAX, context_member(offsetof(native_context, lanes)));
  hg_x86_jump_if(a, X86_EQUAL, e->block_end);
}

/* rax = the lesser of rax and a bound. */
static void write_minimum(x86_emit *e, x86_rm bound) {
  uint32_t is_less = hg_x86_new_label(&e->a);
  hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_RAX, bound);
  hg_x86_jump_if(&e->a, X86_LESS_EQUAL, is_less);
  hg_x86_load(&e->a, 1, X86_RAX, bound);
  hg_x86_place(&e->a, is_less);
}

/* Sets the range of lanes that the region runs on. */
static void set_bounds(x86_emit *e, const native_step *step) {
  x86_asm *a = &e->a;
  if (!e->has_limits) return;
  if (step->limit == VECTOR_NONE) {
    copy_word(e, hg_x86_frame(offsetof(native_frame, end)), hg_x86_frame(X86_TILE_END));
    copy_word(e, hg_x86_frame(X86_LAST_GROUP), hg_x86_frame(X86_TILE_LAST_GROUP));
    return;
  }
  hg_x86_load_block_uniform(e, X86_RAX, step->limit);
  hg_x86_alu_rm(a, X86_ADD, 1, X86_RAX, hg_x86_frame(X86_FIRST_LANE));
  write_minimum(e, hg_x86_frame(X86_TILE_END));
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, end)), X86_RAX);
  hg_x86_alu_imm(a, X86_SUB, 1, x86_reg(X86_RAX), (int32_t)(e->b->copies * e->lanes));
  write_minimum(e, hg_x86_frame(X86_TILE_LAST_GROUP));
  hg_x86_store(a, 1, hg_x86_frame(X86_LAST_GROUP), X86_RAX);
}

/* How many lanes of a full block a region runs on; 0: unknown. */
static uint32_t full_lanes(const x86_emit *e, const native_step *step) {
  uint32_t lanes = e->b->full_lanes;
  if (step->limit == VECTOR_NONE) return lanes;
  const vector_reg *limit = vector_reg_at(e->b->vector, step->limit);
  if (limit->kind != VECTOR_CONSTANT) return 0;
  return limit->bits < lanes ? (uint32_t)limit->bits : lanes;
}

static void write_group(x86_emit *e, const native_step *step) {
  hg_x86_write_body(e, step);
  if (e->cold.count > 0) {
    uint32_t over = hg_x86_new_label(&e->a);
    hg_x86_jump(&e->a, over);
    hg_x86_write_cold(e);
    hg_x86_place(&e->a, over);
  }
  hg_x86_alu_imm(&e->a, X86_ADD, 1, x86_reg(X86_LANE), (int32_t)(e->copies * e->lanes));
}

static void write_full_groups(x86_emit *e, const native_step *step, uint32_t count) {
  uint32_t top = hg_x86_new_label(&e->a);
  int is_loop = count > 2 || step->end - step->first > CPU_REPEATED_INSNS;
  uint32_t load = hg_x86_new_label(&e->a), done = hg_x86_new_label(&e->a);
  e->is_tail = 0;
  e->copies = e->b->copies;
  if (is_loop) {
    set_bounds(e, step);
    hg_x86_find_free_registers(e, step);
    if (e->free_registers != 0) hg_x86_jump(&e->a, load);
    hg_x86_place(&e->a, top);
  }
  for (uint32_t k = 0; k < (is_loop ? 1 : count); k++) write_group(e, step);
  if (!is_loop) return;
  hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_LANE, hg_x86_frame(X86_LAST_GROUP));
  hg_x86_jump_if(&e->a, X86_LESS_EQUAL, top);
  if (hg_x86_is_jumped_to(&e->a, load)) {
    hg_x86_jump(&e->a, done);
    hg_x86_place(&e->a, load);
    hg_x86_load_residents(e, &e->residents[e->is_stream]);
    hg_x86_jump(&e->a, top);
    hg_x86_place(&e->a, done);
  }
  e->free_registers = e->residents[e->is_stream].count = 0;
}

/* Writes a region of a block that has all its lanes: the numbers of full groups and of tail lanes are known. */
static void write_full(x86_emit *e, const native_step *step) {
  uint32_t lanes = full_lanes(e, step), group = e->b->copies * e->lanes, count = lanes / group;
  e->region_lanes = lanes;
  hg_x86_load(&e->a, 1, X86_LANE, hg_x86_frame(X86_FIRST_LANE));
  if (lanes == 0) {
    uint32_t tail = hg_x86_new_label(&e->a);
    set_bounds(e, step);
    hg_x86_write_groups(e, step, tail);
    hg_x86_place(&e->a, tail);
    hg_x86_write_tail(e, step);
    return;
  }
  if (count > 0) write_full_groups(e, step, count);
  if (lanes == count * group) return;
  set_bounds(e, step);
  hg_x86_write_tail(e, step);
}

static void write_region_of_block(x86_emit *e, const native_step *step, uint32_t start) {
  x86_asm *a = &e->a;
  uint32_t tail = hg_x86_new_label(a);
  if (step->is_once) {
    hg_x86_place(a, start);
    hg_x86_write_once(e, step);
  } else {
    if (e->b->vector->loses_lanes)
      copy_word(e, context_member(offsetof(native_context, fewest_left)),
                context_member(offsetof(native_context, steps_left)));
    if (e->is_full) write_full(e, step);
    else {
      set_bounds(e, step);
      hg_x86_load(a, 1, X86_LANE, hg_x86_frame(X86_FIRST_LANE));
      hg_x86_place(a, start);
      hg_x86_write_groups(e, step, tail);
      hg_x86_place(a, tail);
      hg_x86_write_tail(e, step);
    }
  }
  end_step(e, step);
}

/* The entry of a region that runs alone. */
static void write_entry(x86_emit *e, native_step *step, uint32_t start) {
  hg_x86_align(&e->a, X86_ENTRY_ALIGNMENT, X86_INT3);
  step->entry = step->stream_entry = (uint32_t)e->a.count;
  hg_x86_write_prologue(e);
  hg_x86_move_imm(&e->a, X86_RAX, 0);
  hg_x86_store(&e->a, 1, hg_x86_frame(X86_RUNS_BLOCK), X86_RAX);
  hg_x86_jump(&e->a, start);
}

/* Calls C code for a step; its result is in eax. The registers with buffers' addresses are reloaded, since the call
 * does not preserve them. */
static void call_step(x86_emit *e, uint32_t number) {
  x86_asm *a = &e->a;
  hg_x86_load(a, 1, X86_RDI, x86_reg(X86_CONTEXT));
  hg_x86_move_imm(a, X86_RSI, number);
  hg_x86_vzeroupper(a);
  hg_x86_call_rm(a, context_member(offsetof(native_context, step)));
  hg_x86_load_bases(e);
}

/* Jumps if a lane of the block has ended. */
static void jump_if_lost(x86_emit *e, uint32_t label) {
  if (!e->b->vector->loses_lanes) return;
  hg_x86_load(&e->a, 1, X86_RAX, context_member(offsetof(native_context, worker)));
  hg_x86_alu_imm(&e->a, X86_CMP, 0, x86_at(X86_RAX, offsetof(cpu_worker, lost)), 0);
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, label);
}

static void write_block_jump(x86_emit *e, const native_step *step, uint32_t number) {
  x86_asm *a = &e->a;
  const vector_insn *insn = vector_insn_at(e->b->vector, step->first);
  uint32_t target = step_label(e, step->target);
  const native_location *location = insn->s[0] < VECTOR_ALL ? native_location_of(e->b, insn->s[0]) : NULL;
  if (insn->op == VECTOR_JUMP) {
    hg_x86_jump(a, target);
    return;
  }
  int is_none = insn->op == VECTOR_JUMP_NONE;
  if (insn->mask == VECTOR_ALL && location != NULL && location->kind == NATIVE_ROW && location->is_uniform) {
    hg_x86_load_narrow(a, 1, 0, X86_RAX,
                       x86_at(X86_ROWS, (int32_t)location->offset)); /* no more bytes than are stored are loaded */
    hg_x86_alu_imm(a, X86_AND, 0, x86_reg(X86_RAX), 1);
  } else {
    uint32_t otherwise = hg_x86_new_label(a), done = hg_x86_new_label(a);
    int asks = hg_x86_can_ask(e, insn);
    if (asks) {
      jump_if_lost(e, otherwise);
      hg_x86_ask(e, insn, target);
      hg_x86_jump(a, done);
      hg_x86_place(a, otherwise);
    }
    call_step(e, number);
    hg_x86_test(a, 0, X86_RAX, X86_RAX);
    hg_x86_jump_if(a, X86_NOT_EQUAL, target);
    hg_x86_place(a, done);
    return;
  }
  hg_x86_jump_if(a, is_none ? X86_EQUAL : X86_NOT_EQUAL, target);
}

/* Writes an instruction of the whole block. C code runs it if machine code has no way to, or if lanes have ended. */
static void write_block_op(x86_emit *e, const native_step *step, uint32_t number) {
  x86_asm *a = &e->a;
  if (vector_insn_at(e->b->vector, step->first)->op == ATLAS_OP_bar_sync) return;
  if (!hg_x86_can_collect(e, step)) {
    call_step(e, number);
    return;
  }
  uint32_t otherwise = hg_x86_new_label(a), done = hg_x86_new_label(a);
  jump_if_lost(e, otherwise);
  hg_x86_collect(e, step);
  if (!e->b->vector->loses_lanes) return;
  hg_x86_jump(a, done);
  hg_x86_place(a, otherwise);
  call_step(e, number);
  hg_x86_place(a, done);
}

/* 1 if a loop of steps begins here that may take long. */
static int begins_loop(const x86_emit *e, uint32_t number) {
  const native_step *steps = e->b->steps.data;
  for (uint32_t k = number; k < e->b->steps.count && hg_native_takes_long(e->b->vector); k++)
    if (steps[k].kind == NATIVE_BLOCK_JUMP && steps[k].target == number) return 1;
  return 0;
}

static void write_step(x86_emit *e, const native_step *step, uint32_t number, uint32_t start) {
  hg_x86_place(&e->a, step_label(e, number));
  if (begins_loop(e, number)) hg_x86_write_poll(e);
  if (step->kind == NATIVE_REGION && !step->is_empty) write_region_of_block(e, step, start);
  else if (step->kind == NATIVE_BLOCK_JUMP) write_block_jump(e, step, number);
  else if (step->kind == NATIVE_BLOCK_OP) write_block_op(e, step, number);
}

/* Returns where the code begins. Each region that can be entered alone starts at a label. */
static uint32_t write_steps(x86_emit *e, uint32_t first_start) {
  x86_asm *a = &e->a;
  const native_step *steps = e->b->steps.data;
  uint32_t entry = (uint32_t)a->count;
  memset(e->label_of_step, 0xff, e->b->steps.count * sizeof *e->label_of_step);
  e->block_end = hg_x86_new_label(a);
  hg_x86_write_prologue(e);
  hg_x86_store(a, 1, hg_x86_frame(X86_FIRST_LANE), X86_LANE);
  hg_x86_store(a, 1, hg_x86_frame(X86_RUNS_BLOCK), X86_RSP); /* any value but 0: the steps of a block run */
  copy_word(e, hg_x86_frame(X86_TILE_END), hg_x86_frame(offsetof(native_frame, end)));
  copy_word(e, hg_x86_frame(X86_TILE_LAST_GROUP), hg_x86_frame(X86_LAST_GROUP));
  for (uint32_t k = 0; k < e->b->steps.count; k++) write_step(e, &steps[k], k, first_start + k);
  hg_x86_place(a, e->block_end);
  hg_x86_write_epilogue(e);
  hg_x86_write_slow_paths(e);
  return entry;
}

void hg_x86_write_block(x86_emit *e) {
  native_step *steps = e->b->steps.data;
  uint32_t count = (uint32_t)e->b->steps.count, starts = hg_x86_new_label(&e->a);
  const uint32_t *block = native_block(e->b->program);
  memset(e->loop_end, 0, e->b->vector->insns.count * sizeof *e->loop_end); /* no instruction counts as in a loop, so
                                                                              constants get no registers */
  for (uint32_t k = 1; k < count; k++) hg_x86_new_label(&e->a); /* they follow each other */
  for (uint32_t k = 0; k < count; k++) e->has_limits |= steps[k].limit != VECTOR_NONE;
  int gets_full = e->b->has_straight || e->b->vector->insns.count <= CPU_FULL_INSNS;
  e->has_full = gets_full && e->b->program->block[1] * e->b->program->block[2] == 1;
  e->b->block_entry = write_steps(e, starts);
  for (uint32_t k = 0; k < count; k++)
    if (steps[k].kind == NATIVE_REGION && !steps[k].is_empty) write_entry(e, &steps[k], starts + k);
  if (!gets_full || e->b->has_straight) return;
  e->b->full_lanes = block[0] * block[1] * block[2];
  e->is_full = 1;
  hg_x86_plan_prefetches(e);
  hg_x86_align(&e->a, X86_ENTRY_ALIGNMENT, X86_INT3);
  e->b->full_entry = write_steps(e, starts);
  e->is_full = 0;
  e->ahead.busy = NULL;
}

/* ---- straight-line code ------------------------------------------------------------------------------------------ */

/* 1 if the code needs only the block's number along x from one block to the next: it stores to buffers only, and no C
 * code needs to know which block is running. */
static int can_run_on(const x86_emit *e) {
  const hg_vector *v = e->b->vector;
  if (v->sees_shared || v->loses_lanes || e->cold.count > 0 || hg_x86_is_jumped_to(&e->a, e->help)) return 0;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    unsigned flags = vector_is_primitive(insn->op) ? atlas_op_flags(insn->op) : ATLAS_PURE;
    int is_access = (flags & (ATLAS_LOAD | ATLAS_STORE)) != 0 && !(flags & (ATLAS_ATOMIC | ATLAS_SPACE_POOL));
    if (insn->flags & VECTOR_LANE || (!is_access && !(flags & ATLAS_PURE)) || insn->op == ATLAS_OP_cls_get) return 0;
    if (insn->op == ATLAS_OP_sreg && (insn->bits < ATLAS_COORD_BLOCK_X || insn->bits >= ATLAS_COORD_GLOBAL_X)) return 0;
  }
  for (uint32_t r = 0; r < v->regs.count; r++) {
    const vector_reg *reg = vector_reg_at(v, r);
    if (reg->kind == VECTOR_SPECIAL && reg->bits == ATLAS_REG_LANE && reg->first != VECTOR_NONE) return 0;
  }
  for (size_t k = 0; k < e->slow.count; k++) {
    const x86_slow *slow = (const x86_slow *)e->slow.data + k;
    if (!slow->divides && hg_x86_is_jumped_to(&e->a, slow->from)) return 0;
  }
  return 1;
}

/* Continues with the next block, if there is one. */
static void write_run_on(x86_emit *e, uint32_t top) {
  enum { INDEX = offsetof(native_context, special) + 8 * (ATLAS_REG_BLOCK_INDEX - ATLAS_REG_BLOCK_LANE) };
  x86_asm *a = &e->a;
  hg_x86_alu_imm(a, X86_ADD, 1, x86_at(X86_CONTEXT, INDEX), 1);
  hg_x86_alu_imm(a, X86_ADD, 1,
                 x86_at(X86_CONTEXT, (int32_t)offsetof(native_context, coordinate) + 8 * ATLAS_COORD_BLOCK_X), 1);
  hg_x86_alu_imm(a, X86_SUB, 1, x86_at(X86_CONTEXT, (int32_t)offsetof(native_context, blocks_left)), 1);
  hg_x86_jump_if(a, X86_NOT_EQUAL, top);
}

void hg_x86_write_straight(x86_emit *e, native_step *step) {
  uint32_t top = hg_x86_new_label(&e->a);
  hg_x86_align(&e->a, X86_ENTRY_ALIGNMENT, X86_INT3);
  step->entry = step->stream_entry = (uint32_t)e->a.count;
  hg_x86_write_prologue(e);
  hg_x86_load(&e->a, 1, X86_RAX, x86_at(X86_CONTEXT, offsetof(native_context, steps_left)));
  hg_x86_store(&e->a, 1, hg_x86_frame(offsetof(native_frame, steps_left)), X86_RAX);
  e->is_tail = 0;
  e->copies = 1;
  memset(e->leave, 0, sizeof e->leave);
  hg_x86_plan_rows(e);
  hg_x86_align(&e->a, X86_LOOP_ALIGNMENT, X86_NOP);
  hg_x86_place(&e->a, top);
  hg_x86_write_body(e, step);
  e->b->runs_on = (uint8_t)can_run_on(e);
  if (e->b->runs_on) write_run_on(e, top);
  e->block_end = hg_x86_new_label(&e->a);
  hg_x86_place(&e->a, e->block_end);
  hg_x86_write_epilogue(e);
  hg_x86_write_leave(e);
  hg_x86_write_cold(e);
  hg_x86_write_slow_paths(e);
}
