/* emit.c - the aarch64 code of a kernel: prologue and epilogue of regions, the loop over full groups, the tail, jumps,
 * constants that stay in registers. */
#include "backend/cpu/arm64/emit_neon.h"
#include "base/error.h"
#include "compiler/machine_ops.h"

#include <stddef.h>
#include <string.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

enum {
  PAGE = 4096,
  SAVED_BYTES = 224, /* x19 to x30, q8 to q15: the callee-saved registers */
  SAVED_VECTORS = 96,
  HWCAP_BIT_ASIMDDP = 1 << 20, /* bit of AT_HWCAP: SDOT and UDOT */
  FIRST_SAVED_VECTOR = 8
};

static const uint8_t base_registers[] = {25, 26, 27, 28, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t callee_saved[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, A64_FP, A64_LR};

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static uint32_t label_of(neon_emit *e, uint32_t insn) {
  if (e->label_of[insn] == UINT32_MAX) e->label_of[insn] = hg_a64_new_label(&e->a);
  return e->label_of[insn];
}

static void write_jump(neon_emit *e) {
  if (e->insn->flags & VECTOR_SHORT) return;
  int is_last = e->insn->flags & VECTOR_LAST && e->insn->target >= e->region_end;
  uint32_t label = is_last ? e->group_end : label_of(e, hg_native_target_of(e->b->vector, e->insn));
  if (e->insn->op == VECTOR_JUMP) {
    hg_a64_jump(&e->a, label);
    return;
  }
  hg_neon_test_any(e);
  if (e->insn->op == VECTOR_JUMP_NONE) hg_a64_jump_zero(&e->a, 0, label);
  else hg_a64_jump_not_zero(&e->a, 0, label);
}

/* Leaves the code of the lanes that it was called for if the launch is cancelled. */
static void write_poll(neon_emit *e) {
  hg_a64_memory(&e->a, A64_ldr_x, 0, NEON_CONTEXT, offsetof(native_context, cancels));
  hg_a64_memory(&e->a, A64_ldr_w, 0, 0, 0);
  hg_a64_memory(&e->a, A64_ldr_w, 1, NEON_CONTEXT, offsetof(native_context, cancel_number));
  hg_a64(&e->a, A64_subs_w, 0, A64_ZR, 0, 1);
  hg_a64_jump_if(&e->a, A64_NE, e->stop);
}

static void write_insn(neon_emit *e, uint32_t i) {
  if (hg_native_needs_no_code(e->b->vector, i) && vector_insn_at(e->b->vector, i)->op != VECTOR_LABEL) return;
  e->insn = vector_insn_at(e->b->vector, i);
  e->index = i;
  switch (e->insn->op) {
  case VECTOR_LABEL:
    hg_a64_place(&e->a, label_of(e, i));
    if (e->polls[i]) write_poll(e);
    return;
  case VECTOR_JUMP:
  case VECTOR_JUMP_NONE:
  case VECTOR_JUMP_ANY:
    write_jump(e);
    if (e->insn->flags & VECTOR_ENTERS) hg_a64_place(&e->a, label_of(e, i));
    if (e->polls[i]) write_poll(e);
    return;
  case VECTOR_END: return;
  default: break;
  }
  int is_written = hg_machine_op(e->insn->op) != MACHINE_NO_OP ? hg_neon_operation(e)
                                                               : hg_neon_masks(e) || hg_neon_vector_operation(e);
  if (is_written) return;
  hg_native_note_call(e->b, i);
  hg_neon_help(e, NEON_ALL_COPIES);
}

static int keeps_alive_in_rows(const neon_emit *e) { return e->b->steps.count > 1; }

/* At the start of a group: all steps of its lanes are left. */
static void begin_steps(neon_emit *e) {
  hg_neon_begin_alive(e);
  if (!hg_native_counts_steps(e->b->vector)) return;
  hg_a64_memory(&e->a, A64_ldr_x, 0, NEON_CONTEXT, offsetof(native_context, steps_left));
  hg_a64_memory(&e->a, A64_str_x, 0, A64_SP, offsetof(native_frame, steps_left));
  if (!keeps_alive_in_rows(e))
    hg_a64_memory(&e->a, A64_str_x, A64_ZR, NEON_CONTEXT, offsetof(native_context, knows_steps));
}

/* Later groups of the tile, and later regions, begin with the steps that are left to the group that has taken most. */
static void end_steps(neon_emit *e) {
  if (!hg_native_counts_steps(e->b->vector) || !keeps_alive_in_rows(e)) return;
  hg_a64_memory(&e->a, A64_ldr_x, 0, A64_SP, offsetof(native_frame, steps_left));
  hg_a64_memory(&e->a, A64_ldr_x, 1, NEON_CONTEXT, offsetof(native_context, fewest_left));
  hg_a64(&e->a, A64_subs_x, 0, A64_ZR, 0, 1);
  hg_a64_select(&e->a, 0, 0, 1, A64_LO);
  hg_a64_memory(&e->a, A64_str_x, 0, NEON_CONTEXT, offsetof(native_context, fewest_left));
}

/* Skips the region for a group whose lanes have all ended in earlier regions. */
static void leave_if_none_left(neon_emit *e) {
  static const vector_insn leave = {.op = VECTOR_JUMP_NONE, .flags = VECTOR_LAST, .s = {VECTOR_ALL}, .mask = VECTOR_ALL,
                                    .target = VECTOR_NONE};
  e->insn = &leave;
  write_jump(e);
}

static void write_body(neon_emit *e, const native_step *step) {
  memset(e->label_of, 0xff, e->b->vector->insns.count * sizeof *e->label_of);
  if (e->uses_tile_lane) {
    hg_a64_memory(&e->a, A64_ldr_x, NEON_TILE_LANE, NEON_CONTEXT, offsetof(native_context, lane_in_tile));
    hg_a64(&e->a, A64_add_x, 0, NEON_TILE_LANE, NEON_TILE_LANE, NEON_LANE);
  }
  e->region_end = step->end;
  e->group_end = hg_a64_new_label(&e->a);
  hg_neon_clear_local(e);
  if (!step->is_once) begin_steps(e);
  if (!step->is_once && e->b->vector->loses_lanes && e->b->steps.count > 1) leave_if_none_left(e);
  for (uint32_t i = step->first; i < step->end; i++) write_insn(e, i);
  hg_a64_place(&e->a, e->group_end);
  if (!step->is_once) end_steps(e);
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

/* Touches stack pages in order, so that the guard page is never jumped over. */
static void make_frame(neon_emit *e) {
  a64_asm *a = &e->a;
  hg_a64_add_imm(a, A64_SP, A64_SP, -SAVED_BYTES);
  hg_neon_move_pairs(e, 0, callee_saved, sizeof callee_saved);
  for (unsigned i = 0; i < 8; i += 2)
    hg_a64_store_pair(a, 1, FIRST_SAVED_VECTOR + i, FIRST_SAVED_VECTOR + i + 1, A64_SP, (int)(SAVED_VECTORS + 16 * i));
  hg_a64_add_imm(a, A64_FP, A64_SP, 0);
  for (uint32_t left = e->b->frame_bytes; left > 0;) {
    uint32_t now = left < PAGE ? left : PAGE;
    hg_a64_add_imm(a, A64_SP, A64_SP, -(int64_t)now);
    if (now == PAGE) hg_a64_memory(a, A64_str_x, A64_ZR, A64_SP, 0);
    left -= now;
  }
  hg_a64_add_imm(a, 4, A64_SP, 0);
  hg_a64_lsr(a, 4, 4, 6);
  hg_a64_lsl(a, 4, 4, 6);
  hg_a64_add_imm(a, A64_SP, 4, 0);
}

static void write_epilogue(neon_emit *e) {
  a64_asm *a = &e->a;
  hg_a64_place(a, e->stop);
  hg_a64_add_imm(a, A64_SP, A64_FP, 0);
  for (unsigned i = 0; i < 8; i += 2)
    hg_a64_load_pair(a, 1, FIRST_SAVED_VECTOR + i, FIRST_SAVED_VECTOR + i + 1, A64_SP, (int)(SAVED_VECTORS + 16 * i));
  hg_neon_move_pairs(e, 1, callee_saved, sizeof callee_saved);
  hg_a64_add_imm(a, A64_SP, A64_SP, SAVED_BYTES);
  hg_a64_return(a);
}

/* x0 context, x1 first lane, x2 end, x3 fast end: see native_entry. */
static void write_prologue(neon_emit *e) {
  a64_asm *a = &e->a;
  make_frame(e);
  hg_a64_move(a, NEON_CONTEXT, 0);
  hg_a64_move(a, NEON_LANE, 1);
  hg_a64_move(a, NEON_END, 2);
  hg_a64_add_imm(a, NEON_LAST_GROUP, 3, -(int64_t)(e->b->copies * NEON_LANES));
  hg_a64_memory(a, A64_str_x, 0, A64_SP, offsetof(native_frame, context));
  hg_a64_memory(a, A64_str_x, 2, A64_SP, offsetof(native_frame, end));
  if (e->uses_tile_lane) hg_a64_memory(a, A64_ldr_x, NEON_ROWS, NEON_CONTEXT, offsetof(native_context, rows));
  for (uint32_t s = 0; s < ATLAS_MAX_SYMBOLS; s++)
    if (e->base_of[s] != 0)
      hg_a64_memory(a, A64_ldr_x, e->base_of[s], NEON_CONTEXT,
                    (int64_t)hg_neon_place_offset(s, offsetof(native_place, memory)));
  for (uint32_t r = 0; r < e->b->vector->regs.count + NEON_NANS; r++)
    if (e->kept_in[r] != 0) hg_neon_invariant(e, r, e->kept_in[r] - 1u);
}

static void store_imm(neon_emit *e, size_t member, uint64_t value) {
  hg_a64_move_imm(&e->a, 0, value);
  hg_a64_memory(&e->a, A64_str_x, 0, A64_SP, (int64_t)member);
}

static void write_groups(neon_emit *e, const native_step *step, uint32_t tail) {
  a64_asm *a = &e->a;
  uint32_t top = hg_a64_new_label(a);
  e->is_tail = 0;
  e->copies = e->b->copies;
  store_imm(e, offsetof(native_frame, copies), e->copies);
  store_imm(e, offsetof(native_frame, count), e->copies * NEON_LANES);
  hg_a64(a, A64_subs_x, 0, A64_ZR, NEON_LANE, NEON_LAST_GROUP);
  hg_a64_jump_if(a, A64_GT, tail);
  hg_a64_place(a, top);
  write_body(e, step);
  hg_a64_add_imm(a, NEON_LANE, NEON_LANE, (int64_t)(e->copies * NEON_LANES));
  hg_a64(a, A64_subs_x, 0, A64_ZR, NEON_LANE, NEON_LAST_GROUP);
  hg_a64_jump_if(a, A64_LE, top);
}

/* x0: the number of lanes left. */
static void set_tail_mask(neon_emit *e) {
  const uint64_t numbers[2] = {UINT64_C(1) << 32, UINT64_C(3) << 32 | 2};
  unsigned scratch = hg_neon_scratch(e, 0);
  hg_a64_constant_vector(&e->a, scratch, numbers);
  hg_a64_dup(&e->a, A64_32B, NEON_TAIL_MASK, 0);
  hg_a64(&e->a, A64_cmhi, A64_32B, NEON_TAIL_MASK, NEON_TAIL_MASK, scratch);
}

static void write_tail(neon_emit *e, const native_step *step) {
  a64_asm *a = &e->a;
  uint32_t top = hg_a64_new_label(a), some = hg_a64_new_label(a);
  e->is_tail = 1;
  e->copies = 1;
  store_imm(e, offsetof(native_frame, copies), 1);
  hg_a64_place(a, top);
  hg_a64(a, A64_subs_x, 0, 0, NEON_END, NEON_LANE);
  hg_a64_jump_if(a, A64_HI, some);
  write_epilogue(e);
  hg_a64_place(a, some);
  hg_a64_move_imm(a, 1, NEON_LANES);
  hg_a64(a, A64_subs_x, 0, A64_ZR, 0, 1);
  hg_a64_select(a, 0, 0, 1, A64_LO);
  hg_a64_memory(a, A64_str_x, 0, A64_SP, offsetof(native_frame, count));
  set_tail_mask(e);
  write_body(e, step);
  hg_a64_add_imm(a, NEON_LANE, NEON_LANE, NEON_LANES);
  hg_a64_jump(a, top);
}

/* A region that runs once: the code of a full group, for all lanes. */
static void write_once(neon_emit *e, const native_step *step) {
  e->is_tail = 0;
  e->is_once = 1;
  e->copies = e->b->copies;
  store_imm(e, offsetof(native_frame, copies), e->copies);
  store_imm(e, offsetof(native_frame, count), e->copies * NEON_LANES);
  write_body(e, step);
  e->is_once = 0;
  write_epilogue(e);
  hg_neon_write_slow_paths(e);
}

static void write_region(neon_emit *e, native_step *step) {
  uint32_t tail = hg_a64_new_label(&e->a);
  e->stop = hg_a64_new_label(&e->a);
  step->entry = step->stream_entry = (uint32_t)e->a.count * 4;
  write_prologue(e);
  if (step->is_once) {
    write_once(e, step);
    return;
  }
  write_groups(e, step, tail);
  hg_a64_place(&e->a, tail);
  write_tail(e, step);
  hg_neon_write_slow_paths(e);
}

/* ---- what stays in registers ------------------------------------------------------------------------------------- */

/* The first buffers that instructions name get a register for their address. */
static void choose_bases(neon_emit *e) {
  size_t used = 0;
  for (uint32_t i = 0; i < e->b->vector->insns.count && used < sizeof base_registers; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (!hg_neon_has_base(insn) || e->base_of[insn->symbol] != 0) continue;
    e->base_of[insn->symbol] = base_registers[used++];
  }
}

/* Machine registers that hold no value. */
static uint32_t unused_registers(const native_build *b) {
  uint32_t idle = (UINT32_C(1) << b->target->vector_count) - 1;
  for (uint32_t r = 0; r <= b->vector->regs.count; r++) {
    const native_location *location = native_location_of(b, r);
    for (uint32_t k = 0; location->kind == NATIVE_REGISTERS && k < (uint32_t)location->copies * location->parts; k++)
      idle &= ~(UINT32_C(1) << location->reg[k]);
  }
  return idle;
}

static int is_invariant(const hg_vector *v, uint32_t r) {
  if (r >= v->regs.count) return 0;
  const vector_reg *reg = vector_reg_at(v, r);
  return reg->type != SSA_PREDICATE && (reg->kind == VECTOR_CONSTANT || reg->kind == VECTOR_SCALAR);
}

/* Counts the reads of each constant and parameter; a read in a loop counts eight times. */
static void count_reads(const hg_vector *v, uint32_t *weight, uint32_t *reads) {
  uint32_t n = (uint32_t)v->insns.count;
  for (uint32_t i = 0; i < n; i++) weight[i] = 1;
  for (uint32_t i = 0; i < n; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (insn->op < VECTOR_JUMP || insn->op > VECTOR_JUMP_ANY || insn->target > i) continue;
    for (uint32_t k = insn->target; k <= i; k++)
      if (weight[k] < 1u << 15) weight[k] *= 8;
  }
  for (uint32_t i = 0; i < n; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    uint32_t nan = hg_neon_nan(v, insn->type);
    for (int s = 0; s < 4; s++)
      if (is_invariant(v, insn->s[s])) reads[insn->s[s]] += weight[i];
    if (insn->op == VECTOR_CANON && nan != VECTOR_NONE) reads[nan] += weight[i];
  }
}

static void keep_invariants(neon_emit *e, uint32_t *weight, uint32_t *reads) {
  const hg_vector *v = e->b->vector;
  uint32_t idle = unused_registers(e->b);
  count_reads(v, weight, reads);
  for (unsigned reg = 0; reg < e->b->target->vector_count; reg++) {
    if (!(idle >> reg & 1)) continue;
    uint32_t best = 0;
    for (uint32_t r = 1; r < v->regs.count + NEON_NANS; r++)
      if (reads[r] > reads[best]) best = r;
    if (reads[best] == 0) return;
    reads[best] = 0;
    e->kept_in[best] = (uint8_t)(reg + 1);
  }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void write_kernel(neon_emit *e) {
  native_step *steps = e->b->steps.data;
  e->help = hg_a64_new_label(&e->a);
  choose_bases(e);
  e->uses_tile_lane = (uint8_t)hg_native_uses_tile_lane(e->b);
  for (size_t i = 0; i < e->b->steps.count; i++)
    if (steps[i].kind == NATIVE_REGION) write_region(e, &steps[i]);
  hg_neon_write_help(e);
  e->b->insn_bytes = e->a.count * 4;
  hg_a64_finish(&e->a);
}

static hg_status move_code_out(neon_emit *e) {
  if (e->a.no_memory) return hg_fail_memory("machine code", e->a.count * 4);
  if (e->a.too_far)
    return hg_fail(HG_UNSUPPORTED, "machine code of %zu bytes is longer than its jumps reach", e->a.count * 4);
  e->b->code = (uint8_t *)e->a.words;
  e->b->code_bytes = e->a.count * 4;
  e->a.words = NULL;
  return HG_OK;
}

static hg_status emit_kernel(native_build *b, int has_dot) {
  uint64_t insns = b->vector->insns.count, regs = b->vector->regs.count + NEON_NANS;
  neon_emit e = {.b = b, .has_dot = (uint8_t)has_dot, .slow.element_size = sizeof(neon_slow)};
  hg_a64_begin(&e.a, &b->allocator);
  uint32_t *reads = hg_allocate(&b->allocator, 3 * insns + 2 * regs, sizeof *reads);
  hg_status status = HG_OK;
  if (reads == NULL) status = hg_fail_memory("machine code", (3 * insns + 2 * regs) * sizeof *reads);
  else {
    e.kept_in = (uint8_t *)(reads + regs);
    e.label_of = reads + 2 * regs;
    e.lanes_of = e.label_of + insns;
    e.polls = (uint8_t *)(e.lanes_of + insns);
    e.repeated = e.polls + insns;
    hg_native_find_polls(b->vector, e.polls);
    hg_native_find_repeated(b->vector, e.repeated);
    memset(e.lanes_of, 0xff, insns * sizeof *e.lanes_of);
    keep_invariants(&e, e.label_of, reads);
    write_kernel(&e);
    status = move_code_out(&e);
  }
  hg_release(&b->allocator, reads);
  hg_array_release(&b->allocator, &e.slow);
  hg_a64_release(&e.a);
  return status;
}

/* SDOT and UDOT came with Armv8.2; older machines lack them. */
static int has_dot(void) {
#if defined(__aarch64__) && defined(__APPLE__)
  return 1;
#elif defined(__aarch64__) && defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_BIT_ASIMDDP) != 0;
#else
  return 0;
#endif
}

static hg_status emit_neon(native_build *b) { return emit_kernel(b, has_dot()); }
static hg_status emit_least_neon(native_build *b) { return emit_kernel(b, 0); }

extern const native_target hg_native_neon, hg_native_least_neon; /* also declared by targets.h */
#define NEON(writer) \
  {.engine = "native neon", .lanes = NEON_LANES, .vector_bytes = NEON_VECTOR_BYTES, .vector_count = 25, .emit = writer}
const native_target hg_native_neon = NEON(emit_neon), hg_native_least_neon = NEON(emit_least_neon);
