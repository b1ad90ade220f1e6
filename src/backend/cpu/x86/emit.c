/* emit.c - x86-64 regions: entry, the loop over whole groups, the last lanes, jumps, calls of hg_native_help, the
 * pool of constants. What each instruction becomes is in emit_x86_*.c. */
#include "backend/cpu/x86/emit_x86.h"

#include "base/error.h"

#include <stddef.h>
#include <string.h>

enum { PAGE = 4096 };

static const uint8_t callee_saved[] = {X86_RBX, X86_RBP, X86_R12, X86_R13, X86_R14, X86_R15};
static const uint8_t base_registers[X86_MOST_BASES] = {X86_RBP, X86_RSI, X86_RDI, X86_R8, X86_R9, X86_R10, X86_R11};

/* AVX2 keeps the mask of the last lanes where a call would save the register that no value may have. */
x86_rm hg_x86_tail_mask(const x86_emit *e) {
  return hg_x86_frame(offsetof(native_frame, vectors) + (NATIVE_MOST_REGISTERS - 1u) * e->vector_bytes);
}

/* ---- calls of C code --------------------------------------------------------------------------------------------- */

/* The group, as C code wants to know it. The last lanes have said how many they are. */
static void tell_group(x86_emit *e) {
  hg_x86_move_imm(&e->a, X86_RAX, e->copies);
  hg_x86_store(&e->a, 1, hg_x86_frame(offsetof(native_frame, copies)), X86_RAX);
  if (e->is_tail) return;
  uint32_t before = e->b->slices > 0 ? e->b->slices - 1 : e->copies - 1;
  hg_x86_move_imm(&e->a, X86_RAX, before * e->lanes + e->exact);
  hg_x86_store(&e->a, 1, hg_x86_frame(offsetof(native_frame, count)), X86_RAX);
}

void hg_x86_help(x86_emit *e, uint32_t copy) {
  tell_group(e);
  hg_x86_move_imm(&e->a, X86_RAX, e->index);
  uint32_t slice = vector_insn_at(e->b->vector, e->index)->slice, is_wide = e->b->slices > 0;
  hg_x86_move_imm(&e->a, X86_RCX, copy == X86_ALL_COPIES ? is_wide * (slice + 1) : slice + copy + 1);
  hg_x86_call(&e->a, e->help);
}

uint32_t hg_x86_slow_path(x86_emit *e, uint32_t copy) {
  x86_slow slow = {.insn = e->index, .copy = copy, .from = hg_x86_new_label(&e->a), .back = hg_x86_new_label(&e->a),
                   .copies = e->copies, .is_tail = e->is_tail, .exact = e->exact};
  if (hg_array_append(&e->a.allocator, &e->slow, &slow, 1) == NULL) e->a.no_memory = 1;
  return slow.from;
}

void hg_x86_slow_back(x86_emit *e) {
  if (e->a.no_memory) return;
  hg_x86_place(&e->a, ((x86_slow *)e->slow.data)[e->slow.count - 1].back);
}

void hg_x86_write_slow_paths(x86_emit *e) {
  for (size_t i = 0; i < e->slow.count && !e->a.no_memory; i++) {
    const x86_slow *slow = (x86_slow *)e->slow.data + i;
    if (!hg_x86_is_asked(&e->a, slow->from)) continue;
    hg_x86_place(&e->a, slow->from);
    e->index = slow->insn;
    e->copies = slow->copies;
    e->is_tail = slow->is_tail;
    e->exact = slow->exact;
    hg_x86_help(e, slow->copy);
    hg_x86_jump(&e->a, slow->back);
  }
  e->slow.count = 0;
  e->exact = e->lanes;
}

/* All registers that values live in, to or from the frame, whose address is in rdx. */
static void move_registers(x86_emit *e, int is_load) {
  for (unsigned r = 0; r < e->b->target->vector_count; r++)
    hg_x86_v(e, is_load ? X86_vload : X86_vstore, r, 0,
             x86_at(X86_RDX, (int32_t)(offsetof(native_frame, vectors) + r * e->vector_bytes)));
  for (unsigned k = e->b->target->mask_first; e->width == 2 && k < 8; k++)
    hg_x86_kmem(e, is_load ? X86_kmovw : X86_kmovw_store, k,
                x86_at(X86_RDX, (int32_t)(offsetof(native_frame, predicates) + 8 * k)));
}

/* Called with the instruction in eax and the copy in ecx. */
static void write_help(x86_emit *e) {
  x86_asm *a = &e->a;
  hg_x86_place(a, e->help);
  hg_x86_lea(a, X86_RDX, hg_x86_frame(8)); /* behind the return address */
  hg_x86_store(a, 1, x86_at(X86_RDX, offsetof(native_frame, lane)), X86_LANE);
  move_registers(e, 0);
  for (unsigned i = 1; i < X86_MOST_BASES; i++) hg_x86_push(a, base_registers[i]); /* rbp is the callee's to save */
  hg_x86_alu_imm(a, X86_SUB, 1, x86_reg(X86_RSP), 8);
  hg_x86_load(a, 1, X86_RDI, x86_reg(X86_RDX));
  hg_x86_load(a, 0, X86_RSI, x86_reg(X86_RAX));
  hg_x86_shift_imm(a, 1, X86_SHL, X86_RCX, 32);
  hg_x86_alu_rm(a, X86_OR, 1, X86_RSI, x86_reg(X86_RCX));
  hg_x86_vzeroupper(a);
  hg_x86_call_rm(a, x86_at(X86_CONTEXT, offsetof(native_context, help)));
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_RSP), 8);
  for (unsigned i = X86_MOST_BASES; i-- > 1;) hg_x86_pop(a, base_registers[i]);
  hg_x86_lea(a, X86_RDX, hg_x86_frame(8));
  move_registers(e, 1);
  hg_x86_return(a);
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

/* In a quick loop, labels of its own; in a slow one another for its head, which others jump to by the question. */
static uint32_t label_of(x86_emit *e, uint32_t insn) {
  const x86_loop *loop = &e->loop;
  int is_inside = loop->version == X86_QUICK && insn >= loop->found.head && insn <= loop->found.end;
  uint32_t *labels = is_inside ? loop->quick_label : e->label_of;
  if (loop->version == X86_SLOW && insn == loop->found.head) return loop->slow_head;
  if (labels[insn] == UINT32_MAX) labels[insn] = hg_x86_new_label(&e->a);
  return labels[insn];
}

static void write_jump(x86_emit *e) {
  if (e->insn->flags & VECTOR_SHORT) return;
  int is_last = e->insn->flags & VECTOR_LAST && e->insn->target >= e->region_end;
  uint32_t label = is_last ? e->group_end : label_of(e, hg_native_target_of(e->b->vector, e->insn));
  if (e->insn->op == VECTOR_JUMP) {
    hg_x86_jump(&e->a, label);
    return;
  }
  x86_condition taken = e->insn->op == VECTOR_JUMP_NONE ? X86_EQUAL : X86_NOT_EQUAL;
  if (!hg_x86_compare_for_jump(e, &taken)) hg_x86_test_any(e);
  hg_x86_jump_if(&e->a, taken, label);
}

/* Coordinates, the block's class and the phase: from the context, those along x counted up. */
static void write_coordinate(x86_emit *e, size_t offset, int is_counted) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  if (is_counted) {
    hg_x86_load(&e->a, 1, X86_RAX, x86_at(X86_CONTEXT, (int32_t)offset));
    hg_x86_alu_rm(&e->a, X86_ADD, 1, X86_RAX, x86_reg(X86_LANE));
  }
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++)
    for (uint32_t p = 0; p < hg_x86_parts(e, e->insn->d); p++) {
      unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
      if (is_counted) hg_x86_count_up(e, to, X86_RAX, hg_x86_first_lane(e, c) + p * (e->lanes / 2u), is_64);
      else to = hg_x86_rm_reg(e, hg_x86_context(e, offset, is_64, to), is_64, to);
      hg_x86_done(e, c, p, to);
    }
}

/* Of lanes, where code runs all of a block: from the rows, in the grid where the block begins added. */
static void write_lane_coordinate(x86_emit *e, uint64_t coordinate) {
  int is_64 = hg_x86_is_64(e, e->insn->d), is_global = coordinate - ATLAS_COORD_GLOBAL_X < 3;
  uint64_t d = coordinate - (is_global ? ATLAS_COORD_GLOBAL_X : ATLAS_COORD_LANE_X);
  size_t row = e->b->coordinate_offset + d * (CPU_TILE_LANES + CPU_CHUNK) * sizeof(uint32_t);
  unsigned scratch = hg_x86_scratch(e, 1);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++)
    for (uint32_t p = 0; p < hg_x86_parts(e, e->insn->d); p++) {
      unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
      uint32_t first = c * e->lanes + p * (e->lanes / 2u);
      hg_x86_v(e, is_64 ? X86_vpmovzxdq : X86_vload, to, 0,
               x86_indexed(X86_ROWS, X86_TILE_LANE, 2, (int32_t)(row + first * sizeof(uint32_t))));
      if (is_global) {
        x86_rm base = hg_x86_context(e, offsetof(native_context, block_first) + 8 * d, is_64, scratch);
        hg_x86_v(e, is_64 ? X86_vpaddq : X86_vpaddd, to, to, base);
      }
      hg_x86_done(e, c, p, to);
    }
}

static int write_special(x86_emit *e) {
  uint64_t coordinate = e->insn->bits;
  switch (e->insn->op) {
  case ATLAS_OP_sreg:
    if (e->b->keeps_coordinates && hg_native_is_lane_coordinate(coordinate)) {
      write_lane_coordinate(e, coordinate);
      return 1;
    }
    write_coordinate(e, offsetof(native_context, coordinate) + 8 * coordinate,
                     coordinate == ATLAS_COORD_LANE_X || coordinate == ATLAS_COORD_GLOBAL_X);
    return 1;
  case ATLAS_OP_cls_get: write_coordinate(e, offsetof(native_context, block_class), 0); return 1;
  case ATLAS_OP_phase_get: write_coordinate(e, offsetof(native_context, phase), 0); return 1;
  default: return 0;
  }
}

static void write_insn(x86_emit *e, uint32_t i) {
  if (i == e->joined || (hg_native_is_nothing(e->b->vector, i) && vector_insn_at(e->b->vector, i)->op != VECTOR_LABEL))
    return;
  e->insn = vector_insn_at(e->b->vector, i);
  e->index = i;
  if (e->loop.version == X86_SLOW && e->loop.resume[i] != UINT32_MAX) hg_x86_place(&e->a, e->loop.resume[i]);
  if (hg_x86_quick(e)) return;
  switch (e->insn->op) {
  case VECTOR_LABEL:
    if (e->loop.version != X86_SLOW || i != e->loop.found.head) hg_x86_place(&e->a, label_of(e, i));
    return;
  case VECTOR_JUMP:
  case VECTOR_JUMP_NONE:
  case VECTOR_JUMP_ANY:
    write_jump(e);
    if (e->insn->flags & VECTOR_ENTERS) hg_x86_place(&e->a, label_of(e, i));
    return;
  case VECTOR_END: return;
  default: break;
  }
  if (e->insn->op == ATLAS_OP_add && native_home_of(e->b, e->insn->d)->kind == NATIVE_NOWHERE) return; /* an offset */
  if (hg_x86_leaves_to_jump(e)) return;
  int is_access = (atlas_op_flags(e->insn->op) & (ATLAS_LOAD | ATLAS_STORE)) != 0;
  if (write_special(e) || hg_x86_masks(e) || (is_access && hg_x86_memory(e))) return;
  if (hg_x86_arith(e) || hg_x86_convert(e) || hg_x86_lanes(e) || hg_x86_wide(e)) return;
  hg_x86_help(e, X86_ALL_COPIES);
}

/* A loop that starts here, if it has a quick version: *last is its last instruction. */
static int write_loop(x86_emit *e, uint32_t head, uint32_t *last) {
  if (e->b->slices > 0 || !hg_x86_finds_loop(e, head)) return 0;
  uint32_t end = e->loop.found.end, behind = hg_x86_new_label(&e->a);
  hg_x86_place(&e->a, label_of(e, head));
  hg_x86_begin_quick(e);
  for (uint32_t i = head; i <= end; i++) write_insn(e, i);
  hg_x86_jump(&e->a, behind);
  hg_x86_end_quick(e);
  for (uint32_t i = head; i <= end; i++) write_insn(e, i);
  e->loop.version = X86_NO_LOOP;
  hg_x86_place(&e->a, behind);
  *last = end;
  return 1;
}

/* Instructions `first` to `end` but for code that is put off: see hg_x86_write_rare. */
static void write_range(x86_emit *e, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (e->loop_end[i] > e->loops_until) e->loops_until = e->loop_end[i];
    if (write_loop(e, i, &i)) continue;
    if (!e->b->has_rare || insn->op != VECTOR_JUMP_NONE || !(insn->flags & VECTOR_ENTERS) || insn->target >= end) {
      write_insn(e, i);
      continue;
    }
    x86_rare rare = {.label = hg_x86_new_label(&e->a), .first = i + 1, .end = insn->target};
    if (hg_array_append(&e->a.allocator, &e->rare, &rare, 1) == NULL) e->a.no_memory = 1;
    e->insn = insn;
    e->index = i;
    hg_x86_test_any(e);
    hg_x86_jump_if(&e->a, X86_NOT_EQUAL, rare.label);
    i = insn->target - 1;
  }
}

/* What has been put off, behind code that does not fall through to it. */
void hg_x86_write_rare(x86_emit *e) {
  e->is_rare = 1;
  for (size_t i = 0; i < e->rare.count && !e->a.no_memory; i++) {
    x86_rare rare = ((const x86_rare *)e->rare.data)[i]; /* a copy: the list grows */
    hg_x86_place(&e->a, rare.label);
    for (uint32_t k = rare.first; k < rare.end; k++) write_insn(e, k);
    hg_x86_jump(&e->a, label_of(e, rare.end));
  }
  e->is_rare = 0;
  e->rare.count = 0;
}

/* A group whose lanes have ended in another region. */
static void leave_if_none_left(x86_emit *e) {
  static const vector_insn leave = {.op = VECTOR_JUMP_NONE, .flags = VECTOR_LAST, .s = {VECTOR_ALL}, .mask = VECTOR_ALL,
                                    .target = VECTOR_NONE};
  e->insn = &leave;
  write_jump(e);
}

void hg_x86_write_body(x86_emit *e, const native_step *step) {
  memset(e->label_of, 0xff, e->b->vector->insns.count * sizeof *e->label_of);
  e->joined = UINT32_MAX;
  if (e->uses_tile_lane) {
    hg_x86_load(&e->a, 1, X86_TILE_LANE, x86_at(X86_CONTEXT, offsetof(native_context, lane_in_tile)));
    hg_x86_alu_rm(&e->a, X86_ADD, 1, X86_TILE_LANE, x86_reg(X86_LANE));
  }
  e->region_first = step->first;
  e->region_end = step->end;
  e->loops_until = 0;
  e->group_end = hg_x86_new_label(&e->a);
  int loses_lanes = e->b->vector->loses_lanes && !step->is_once;
  if (loses_lanes) hg_x86_begin_alive(e);
  if (loses_lanes && e->b->steps.count > 1) leave_if_none_left(e);
  write_range(e, step->first, step->end);
  hg_x86_place(&e->a, e->group_end);
  if (loses_lanes) hg_x86_end_alive(e);
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

/* Stack pages are touched in order, so that one below the guard page is never the first. */
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

void hg_x86_drop_frame(x86_emit *e) {
  x86_asm *a = &e->a;
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

/* Vectors in a group. Where stores pass the caches one line of each buffer is in hand at a time: several lines of one,
 * and then several of the next, cost a quarter of the memory's rate. A loop has use for its copies all the same. */
static uint32_t copies_of(const x86_emit *e) {
  uint32_t line = X86_LINE_BYTES / e->vector_bytes;
  return e->is_stream && !e->has_loops && line < e->b->copies ? line : e->b->copies;
}

/* rdi context, rsi first, rdx end, rcx fast end: see native_entry. */
void hg_x86_begin_region(x86_emit *e) {
  x86_asm *a = &e->a;
  make_frame(e);
  hg_x86_load(a, 1, X86_CONTEXT, x86_reg(X86_RDI));
  hg_x86_load(a, 1, X86_LANE, x86_reg(X86_RSI));
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, context)), X86_RDI);
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, end)), X86_RDX);
  hg_x86_lea(a, X86_RAX, x86_at(X86_RCX, -(int32_t)(copies_of(e) * e->lanes)));
  hg_x86_store(a, 1, hg_x86_frame(X86_LAST_GROUP), X86_RAX);
  hg_x86_lea_label(a, X86_POOL, e->pool);
  if (e->uses_tile_lane) hg_x86_load(a, 1, X86_ROWS, x86_at(X86_CONTEXT, offsetof(native_context, rows)));
  hg_x86_load_bases(e);
}

/* Loops of the region. */
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
  x86_hold *hold = &e->hold[e->is_stream];
  uint32_t top = hg_x86_new_label(a);
  e->is_tail = 0;
  e->copies = copies_of(e);
  hg_x86_alu_rm(a, X86_CMP, 1, X86_LANE, hg_x86_frame(X86_LAST_GROUP));
  hg_x86_jump_if(a, X86_GREATER, tail);
  if (e->b->steps.count == 1) {
    hg_x86_begin_hold(e);
    hold->load = hg_x86_new_label(a);
    hold->top = top;
    if (e->free_registers != 0) hg_x86_jump(a, hold->load);
  }
  hg_x86_align(a, 32, 0x90);
  hg_x86_place(a, top);
  hg_x86_write_body(e, step);
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_LANE), (int32_t)(e->copies * e->lanes));
  hg_x86_alu_rm(a, X86_CMP, 1, X86_LANE, hg_x86_frame(X86_LAST_GROUP));
  hg_x86_jump_if(a, X86_LESS_EQUAL, top);
  if (e->is_stream) hg_x86_sfence(a);
  if (e->rare.count == 0) return;
  uint32_t done = hg_x86_new_label(a);
  hg_x86_jump(a, done);
  hg_x86_write_rare(e);
  hg_x86_place(a, done);
}

/* rcx: how many lanes are left, at most those of a vector. */
static void set_tail_mask(x86_emit *e) {
  x86_asm *a = &e->a;
  if (e->width == 2) {
    hg_x86_move_imm(a, X86_RAX, UINT32_MAX);
    hg_x86_bzhi(a, 0, X86_RAX, x86_reg(X86_RAX), X86_RCX);
    hg_x86_k(e, X86_kmovw_from_g, X86_TAIL_MASK, 0, X86_RAX);
    return;
  }
  unsigned scratch = hg_x86_scratch(e, 0);
  hg_x86_load(a, 1, X86_RAX, x86_reg(X86_POOL)); /* a window on 8 elements of ones and 8 zeros: 8 - count elements in */
  hg_x86_shift_imm(a, 1, X86_SHL, X86_RCX, 2);
  hg_x86_alu_rm(a, X86_SUB, 1, X86_RAX, x86_reg(X86_RCX));
  hg_x86_v(e, X86_vload, scratch, 0, x86_at(X86_RAX, (int32_t)(e->window_place * 4 + e->lanes * 4u)));
  hg_x86_v(e, X86_vstore, scratch, 0, hg_x86_tail_mask(e));
}

/* rcx: how many lanes are left. */
static void write_exact(x86_emit *e, const native_step *step, uint32_t top) {
  x86_asm *a = &e->a;
  e->is_tail = 0;
  for (uint32_t lanes = e->lanes; lanes > 0; lanes /= 2) {
    uint32_t next = hg_x86_new_label(a);
    hg_x86_alu_imm(a, X86_CMP, 1, x86_reg(X86_RCX), (int32_t)lanes);
    hg_x86_jump_if(a, lanes == e->lanes ? X86_BELOW : X86_NOT_EQUAL, next);
    e->exact = (uint8_t)lanes;
    hg_x86_write_body(e, step);
    hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_LANE), (int32_t)lanes);
    hg_x86_jump(a, top);
    hg_x86_place(a, next);
  }
  e->exact = e->lanes;
  e->is_tail = 1;
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
  if (hg_x86_gets_exact(e, step)) write_exact(e, step, top);
  hg_x86_alu_imm(a, X86_CMP, 1, x86_reg(X86_RCX), e->lanes);
  hg_x86_jump_if(a, X86_BELOW_EQUAL, full);
  hg_x86_move_imm(a, X86_RCX, e->lanes);
  hg_x86_place(a, full);
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, count)), X86_RCX);
  set_tail_mask(e);
  hg_x86_write_body(e, step);
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_LANE), e->lanes);
  hg_x86_jump(a, top);
  hg_x86_write_rare(e);
  hg_x86_place(a, done);
}

/* Of what is the same for all groups: the code of a whole group, which stands for them. */
void hg_x86_write_once(x86_emit *e, const native_step *step) {
  e->is_tail = 0;
  e->is_once = 1;
  e->copies = e->b->copies;
  hg_x86_write_body(e, step);
  e->is_once = 0;
}

/* Before the first group: the constants that its code turned out to hold. */
static void write_loads(x86_emit *e) {
  for (int stream = 0; stream <= e->b->streams; stream++) {
    hg_x86_place(&e->a, e->hold[stream].load);
    hg_x86_load_held(e, &e->hold[stream]);
    hg_x86_jump(&e->a, e->hold[stream].top);
  }
}

/* The only region. */
static void write_region(x86_emit *e, native_step *step) {
  find_loops(e, step);
  uint32_t tail = hg_x86_new_label(&e->a);
  for (int stream = 0; stream <= e->b->streams; stream++) {
    e->is_stream = (uint8_t)stream;
    hg_x86_align(&e->a, 16, 0xcc);
    *(stream ? &step->stream_entry : &step->entry) = (uint32_t)e->a.count;
    hg_x86_begin_region(e);
    hg_x86_write_groups(e, step, tail);
    if (stream < e->b->streams) hg_x86_jump(&e->a, tail);
  }
  e->is_stream = 0;
  hg_x86_place(&e->a, tail);
  hg_x86_write_tail(e, step);
  hg_x86_drop_frame(e);
  hg_x86_write_slow_paths(e);
  write_loads(e);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* The first buffers that instructions name keep their address in a register. */
static void choose_bases(x86_emit *e) {
  uint32_t used = 0;
  memset(e->base_of, 0xff, sizeof e->base_of);
  for (uint32_t i = 0; i < e->b->vector->insns.count && used < X86_MOST_BASES; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (!hg_x86_has_base(insn) || e->base_of[insn->symbol] >= 0) continue;
    e->base_of[insn->symbol] = base_registers[used++];
  }
}

/* What the pool starts with: 0, 1, 2, ... in 32 and in 64 bits, bytes of 1, and for AVX2 a window of ones and zeros. */
static void begin_pool(x86_emit *e) {
  uint32_t lanes = (e->b->slices > 0 ? e->b->slices : e->b->copies) * e->lanes, words = 3 * lanes + 4;
  if (e->width == 1) words += 16;
  e->iota_place = 0;
  e->iota64_place = lanes;
  e->ones_place = 3 * lanes;
  e->window_place = e->ones_place + 4;
  uint32_t *to = hg_array_append(&e->a.allocator, &e->constants, NULL, words);
  if (to == NULL) {
    e->a.no_memory = 1;
    return;
  }
  for (uint32_t i = 0; i < lanes; i++) to[i] = to[lanes + 2 * i] = i;
  for (uint32_t i = 0; i < 4; i++) to[e->ones_place + i] = 0x01010101;
  for (uint32_t i = 0; i < 8 && e->width == 1; i++) to[e->window_place + i] = UINT32_MAX;
}

static void write_all(x86_emit *e) {
  native_step *steps = e->b->steps.data;
  e->help = hg_x86_new_label(&e->a);
  e->pool = hg_x86_new_label(&e->a);
  begin_pool(e);
  choose_bases(e);
  e->uses_tile_lane = hg_native_uses_tile_lane(e->b);
  if (e->b->slices > 0) hg_x86_write_wide(e, steps);
  else if (e->b->steps.count > 1) hg_x86_write_block(e);
  else write_region(e, steps);
  write_help(e);
  hg_x86_align(&e->a, 64, 0xcc);
  hg_x86_place(&e->a, e->pool);
  if (!e->a.no_memory) hg_x86_bytes(&e->a, e->constants.data, e->constants.count * 4);
}

static hg_status emit(native_build *b, uint8_t width, int has_popcount) {
  uint64_t insns = b->vector->insns.count, regs = b->vector->regs.count;
  x86_emit e = {.b = b, .width = width, .lanes = b->target->lanes, .exact = b->target->lanes,
                .vector_bytes = b->target->vector_bytes,
                .has_popcount = (uint8_t)has_popcount,
                .constants.element_size = 4, .slow.element_size = sizeof(x86_slow),
                .rare.element_size = sizeof(x86_rare)};
  hg_x86_begin(&e.a, &b->allocator, width == 2);
  e.label_of = hg_allocate(&b->allocator, 9 * insns + 5 * regs + 4 * b->steps.count, 1);
  if (e.label_of != NULL) {
    e.loop_end = e.label_of + insns;
    e.constant_of = e.loop_end + insns;
    e.label_of_step = e.constant_of + regs;
    e.guess = (uint8_t *)(e.label_of_step + b->steps.count);
    write_all(&e);
  }
  hg_status status = HG_OK;
  if (e.label_of == NULL || e.a.no_memory) status = hg_fail_memory("machine code", e.a.count);
  else {
    b->code = e.a.code;
    b->code_bytes = e.a.count;
    e.a.code = NULL;
  }
  hg_release(&b->allocator, e.label_of);
  hg_array_release(&b->allocator, &e.constants);
  hg_array_release(&b->allocator, &e.slow);
  hg_array_release(&b->allocator, &e.rare);
  hg_x86_release_loop(&e);
  hg_x86_release(&e.a);
  return status;
}

/* VPOPCNTDQ is not part of what every machine with AVX-512 has. */
static int has_popcount(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vpopcntdq") != 0;
#else
  return 0;
#endif
}

static hg_status emit_avx512(native_build *b) { return emit(b, 2, has_popcount()); }
static hg_status emit_avx2(native_build *b) { return emit(b, 1, 0); }

extern const native_target hg_native_avx512, hg_native_avx2; /* declared again by targets.h, which is above */
const native_target hg_native_avx512 = {.engine = "native avx512", .lanes = 16, .vector_bytes = 64, .vector_count = 28,
                                        .mask_first = 3, .mask_count = 4, .runs_blocks = 1,
                                        .emit = emit_avx512};
const native_target hg_native_avx2 = {.engine = "native avx2", .lanes = 8, .vector_bytes = 32, .vector_count = 12,
                                      .runs_blocks = 1, .emit = emit_avx2};
