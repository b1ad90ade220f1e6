/* region.c - regions: prologue and epilogue, the loop over full groups, the tail. */
#include "backend/cpu/x86/emit_x86.h"

#include <stddef.h>
#include <string.h>

enum { PAGE = 4096 };

static const uint8_t callee_saved[] = {X86_RBX, X86_RBP, X86_R12, X86_R13, X86_R14, X86_R15};
/* Touches stack pages in order, so that a page below the guard page is never touched first. */
static void make_frame(x86_emit *e) {
  x86_asm *a = &e->a;
  for (size_t i = 0; i < sizeof callee_saved; i++) hg_x86_push(a, callee_saved[i]);
  hg_x86_load(a, 1, X86_RAX, x86_reg(X86_RSP));
  for (uint32_t left = e->b->frame_bytes; left > 0;) {
    uint32_t now = left < PAGE ? left : PAGE;
    hg_x86_alu_imm(a, X86_SUB, 1, x86_reg(X86_RSP), (int32_t)now);
    if (now == PAGE) hg_x86_store(a, 1, hg_x86_frame(0), X86_RAX);
    left -= now;
  }
  hg_x86_alu_imm(a, X86_AND, 1, x86_reg(X86_RSP), -64);
  hg_x86_store(a, 1, hg_x86_frame(X86_SAVED_RSP), X86_RAX);
}

void hg_x86_write_epilogue(x86_emit *e) {
  x86_asm *a = &e->a;
  if (e->stop != 0) hg_x86_place(a, e->stop);
  e->stop = 0;
  hg_x86_load(a, 1, X86_RSP, hg_x86_frame(X86_SAVED_RSP));
  for (size_t i = sizeof callee_saved; i-- > 0;) hg_x86_pop(a, callee_saved[i]);
  hg_x86_vzeroupper(a);
  hg_x86_return(a);
}

void hg_x86_load_bases(x86_emit *e) {
  for (size_t s = 0; s < ATLAS_MAX_SYMBOLS; s++)
    if (e->base_of[s] >= 0)
      hg_x86_load(&e->a, 1, (unsigned)e->base_of[s],
                  x86_at(X86_CONTEXT, hg_x86_place_offset(s, offsetof(native_place, memory))));
}

/* The copies of a group. If stores bypass the caches, one line of each buffer is written at a time: several lines of
 * one and then several of the next cost a quarter of the memory's rate. A loop profits from its copies all the same. */
static uint32_t copies_of(const x86_emit *e) {
  uint32_t line = X86_LINE_BYTES / e->vector_bytes;
  return e->is_stream && !e->has_loops && line < e->b->copies ? line : e->b->copies;
}

/* rdi context, rsi first, rdx end, rcx fast end: see native_entry. */
void hg_x86_write_prologue(x86_emit *e) {
  x86_asm *a = &e->a;
  make_frame(e);
  hg_x86_load(a, 1, X86_CONTEXT, x86_reg(X86_RDI));
  hg_x86_load(a, 1, X86_LANE, x86_reg(X86_RSI));
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, context)), X86_RDI);
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, end)), X86_RDX);
  hg_x86_lea(a, X86_RAX, x86_at(X86_RCX, -(int32_t)(copies_of(e) * e->lanes)));
  hg_x86_store(a, 1, hg_x86_frame(X86_LAST_GROUP), X86_RAX);
  hg_x86_lea_label(a, X86_POOL, e->pool.label);
  if (e->uses_tile_lane) hg_x86_load(a, 1, X86_ROWS, x86_at(X86_CONTEXT, offsetof(native_context, rows)));
  hg_x86_load_bases(e);
}

/* Finds the loops of the region. */
static void find_loops(x86_emit *e, const native_step *step) {
  memset(e->loop_end, 0, e->b->vector->insns.count * sizeof *e->loop_end);
  e->has_loops = 0;
  for (uint32_t i = step->first; i < step->end; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (!vector_is_jump(insn->op) || insn->target > i) continue;
    e->loop_end[insn->target] = i;
    e->has_loops = 1;
  }
}

void hg_x86_write_groups(x86_emit *e, const native_step *step, uint32_t tail) {
  x86_asm *a = &e->a;
  x86_residents *residents = &e->residents[e->is_stream];
  unsigned narrow = hg_x86_narrow_bytes(e);
  uint32_t top = hg_x86_new_label(a), begin = narrow > 0 ? hg_x86_new_label(a) : top;
  e->is_tail = 0;
  e->copies = copies_of(e);
  hg_x86_alu_rm(a, X86_CMP, 1, X86_LANE, hg_x86_frame(X86_LAST_GROUP));
  hg_x86_jump_if(a, X86_GREATER, tail);
  if (e->b->steps.count == 1) {
    hg_x86_find_free_registers(e, step);
    residents->load = hg_x86_new_label(a);
    residents->top = begin;
    if (e->free_registers != 0) hg_x86_jump(a, residents->load);
  }
  if (narrow > 0) {
    hg_x86_place(a, begin);
    hg_x86_write_narrow(e, narrow, tail);
  }
  hg_x86_align(a, X86_LOOP_ALIGNMENT, X86_NOP);
  hg_x86_place(a, top);
  hg_x86_write_body(e, step);
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_LANE), (int32_t)(e->copies * e->lanes));
  hg_x86_alu_rm(a, X86_CMP, 1, X86_LANE, hg_x86_frame(X86_LAST_GROUP));
  hg_x86_jump_if(a, X86_LESS_EQUAL, top);
  if (e->cold.count == 0) return;
  uint32_t done = hg_x86_new_label(a);
  hg_x86_jump(a, done);
  hg_x86_write_cold(e);
  hg_x86_place(a, done);
}

/* rcx: the number of lanes that are left, at most a vector's. */
static void set_tail_mask(x86_emit *e) {
  x86_asm *a = &e->a;
  if (e->width == 2) {
    hg_x86_move_imm(a, X86_RAX, UINT32_MAX);
    hg_x86_bzhi(a, 0, X86_RAX, x86_reg(X86_RAX), X86_RCX);
    hg_x86_k(e, X86_kmovw_from_g, X86_TAIL_MASK, 0, X86_RAX);
    return;
  }
  unsigned scratch = hg_x86_scratch(e, 0);
  hg_x86_load(a, 1, X86_RAX, x86_reg(X86_POOL)); /* a window of 8 elements of ones and 8 zeros, read from element 8 -
                                                    count */
  hg_x86_shift_imm(a, 1, X86_SHL, X86_RCX, 2);
  hg_x86_alu_rm(a, X86_SUB, 1, X86_RAX, x86_reg(X86_RCX));
  hg_x86_v(e, X86_vload, scratch, 0, x86_at(X86_RAX, (int32_t)(e->pool.window_place * 4 + e->lanes * 4u)));
  hg_x86_v(e, X86_vstore, scratch, 0, hg_x86_tail_mask(e));
}

void hg_x86_write_tail(x86_emit *e, const native_step *step) {
  x86_asm *a = &e->a;
  uint32_t top = hg_x86_new_label(a), full = hg_x86_new_label(a), done = hg_x86_new_label(a);
  e->is_tail = 1;
  e->copies = 1;
  hg_x86_place(a, top);
  hg_x86_load(a, 1, X86_RCX, hg_x86_frame(offsetof(native_frame, end)));
  hg_x86_alu_rm(a, X86_SUB, 1, X86_RCX, x86_reg(X86_LANE));
  hg_x86_jump_if(a, X86_BELOW_EQUAL, done);
  hg_x86_alu_imm(a, X86_CMP, 1, x86_reg(X86_RCX), e->lanes);
  hg_x86_jump_if(a, X86_BELOW_EQUAL, full);
  hg_x86_move_imm(a, X86_RCX, e->lanes);
  hg_x86_place(a, full);
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, count)), X86_RCX);
  set_tail_mask(e);
  hg_x86_write_body(e, step);
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_LANE), e->lanes);
  hg_x86_jump(a, top);
  hg_x86_write_cold(e);
  hg_x86_place(a, done);
}

/* A region that runs once: the code of a full group stands for all groups. */
void hg_x86_write_once(x86_emit *e, const native_step *step) {
  e->is_tail = 0;
  e->is_once = 1;
  e->copies = e->b->copies;
  hg_x86_write_body(e, step);
  e->is_once = 0;
}

/* Before the first group: loads the constants that its code made resident. */
static void write_resident_loads(x86_emit *e) {
  for (int stream = 0; stream <= e->b->streams; stream++) {
    hg_x86_place(&e->a, e->residents[stream].load);
    hg_x86_load_residents(e, &e->residents[stream]);
    hg_x86_jump(&e->a, e->residents[stream].top);
  }
}

/* Writes a region of a kernel without code for whole blocks. */
void hg_x86_write_region(x86_emit *e, native_step *step) {
  find_loops(e, step);
  uint32_t tail = hg_x86_new_label(&e->a);
  for (int stream = 0; stream <= e->b->streams; stream++) {
    e->is_stream = (uint8_t)stream;
    hg_x86_align(&e->a, X86_ENTRY_ALIGNMENT, X86_INT3);
    *(stream ? &step->stream_entry : &step->entry) = (uint32_t)e->a.count;
    hg_x86_write_prologue(e);
    hg_x86_write_invariants(e);
    hg_x86_write_groups(e, step, tail);
    if (stream < e->b->streams) hg_x86_jump(&e->a, tail);
  }
  e->is_stream = 0;
  hg_x86_place(&e->a, tail);
  hg_x86_write_tail(e, step);
  hg_x86_write_epilogue(e);
  hg_x86_write_slow_paths(e);
  write_resident_loads(e);
}
