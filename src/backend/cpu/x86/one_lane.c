/* one_lane.c - kernels that run one lane after the other, in general registers: where lanes take different ways through
 * nested loops, or read elements from all over memory, a vector waits for its slowest lane and reads one element at a
 * time anyway, while a processor foresees the branches of one lane. native/one_lane.c says which programs.
 *
 * The vector program is one for tiles of one lane (hg_vectorise_lane): every jump is real, and no instruction has a
 * mask. rbx is the lane, r14 the context, rsp the frame, r15 the pool of constants where floats need one; rax, rcx, rdx
 * and the vector registers from vector_count on are scratch within an instruction. The upper half of a value of 32 bits
 * or fewer is zero; narrow integers are extended to 32 bits by their sign or by zero; a predicate is true if it is not
 * 0. What has no code here is a call of hg_native_help, and so are faults, and steps that a lane may run out of.
 *
 * lane_value.c has operands and results, lane_arith.c arithmetic, lane_memory.c loads and stores. */
#include "backend/cpu/x86/one_lane.h"

#include "atlas/insn.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include <string.h>

enum { /* offsets in native_frame.spare of what frame.steps_left does not count: the steps that C code gave the lane
          last, and those that come behind steps_left */
  X86_STEPS_GIVEN = X86_TILE_LAST_GROUP + 8,
  X86_STEPS_BEHIND = X86_STEPS_GIVEN + 8
};

/* ---- calls of C -------------------------------------------------------------------------------------------------- */

/* C code writes the lower half of a result of 32 bits. */
static void call_help(x86_emit *e) {
  unsigned vector;
  hg_x86_move_imm(&e->a, X86_RAX, e->index);
  hg_x86_call(&e->a, e->help);
  if (e->insn->d == VECTOR_NONE || x86_is_wide(hg_x86_type(e, e->insn->d))) return;
  const native_location *d = native_location_of(e->b, e->insn->d);
  if (d->kind != NATIVE_REGISTERS || hg_x86_lane_vector(e, e->insn->d, &vector)) return;
  hg_x86_load(&e->a, 0, hg_x86_lane_place(e, d).reg, hg_x86_lane_place(e, d));
}

static void clear_result(x86_emit *e) {
  unsigned vector;
  if (e->insn->d == VECTOR_NONE) return;
  if (hg_x86_lane_vector(e, e->insn->d, &vector)) {
    hg_x86_v(e, X86_vpxord, vector, vector, x86_reg(vector));
    return;
  }
  unsigned to = hg_x86_lane_result(e, VECTOR_NONE);
  hg_x86_move_imm(&e->a, to, 0);
  hg_x86_lane_set(e, to);
}

/* Moves all registers that may hold values to or from the frame. */
static void transfer_registers(x86_emit *e, int is_load) {
  const int32_t saved = 8 + (int32_t)offsetof(native_frame, vectors); /* behind the return address */
  int32_t vectors = e->b->target->vector_count;
  for (int32_t k = e->b->keeps_pool ? 0 : vectors; k < vectors + X86_LANE_REGISTERS; k++) {
    x86_rm at = x86_at(X86_FRAME, saved + 8 * k);
    if (k < vectors) hg_x86_x(e, is_load ? X86_vmovq_from_g : X86_vmovq_store, (unsigned)k, 0, at);
    else if (is_load) hg_x86_load(&e->a, 1, hg_x86_lane_registers[k - vectors], at);
    else hg_x86_store(&e->a, 1, at, hg_x86_lane_registers[k - vectors]);
  }
}

/* Called with the instruction in eax: saves all registers with values, for C code to read and write. */
static void write_help(x86_emit *e) {
  x86_asm *a = &e->a;
  hg_x86_place(a, e->help);
  hg_x86_store(a, 1, hg_x86_frame(8 + offsetof(native_frame, lane)), X86_LANE);
  transfer_registers(e, 0);
  hg_x86_lea(a, X86_RDI, hg_x86_frame(8));
  hg_x86_load(a, 0, X86_RSI, x86_reg(X86_RAX));
  hg_x86_alu_imm(a, X86_SUB, 1, x86_reg(X86_RSP), 8);
  hg_x86_vzeroupper(a);
  hg_x86_call_rm(a, x86_at(X86_CONTEXT, offsetof(native_context, help)));
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_RSP), 8);
  transfer_registers(e, 1);
  hg_x86_return(a);
}

/* ---- jumps ------------------------------------------------------------------------------------------------------- */

static x86_condition opposite(x86_condition condition) { return (x86_condition)(condition ^ 1); }

/* A jump and the condition under which it is taken; `last`: the last instruction that it stands for. */
typedef struct lane_jump {
  const vector_insn *jump;
  x86_condition condition;
  uint32_t last;
} lane_jump;

/* Jump k, which is taken under a condition. If it only leads around a jump behind it, that one takes its place, under
 * the opposite condition. */
static lane_jump find_jump(const x86_emit *e, uint32_t k, x86_condition condition) {
  const vector_insn *jump = vector_insn_at(e->b->vector, k), *other = jump + 1;
  uint32_t next = k + 2;
  while (next < e->region_end && vector_insn_at(e->b->vector, next)->op == VECTOR_LABEL && next < jump->target) next++;
  if (k + 2 < e->region_end && other->op == VECTOR_JUMP && next == jump->target)
    return (lane_jump){other, opposite(condition), k + 1};
  return (lane_jump){jump, condition, k};
}

/* The label that leads to an instruction; out of a loop that does not count, by way of code that does. */
static uint32_t label_to(x86_emit *e, uint32_t target) {
  x86_lane_loop *loop = e->uncounted;
  if (loop == NULL || (target > loop->first && target <= loop->back)) return hg_x86_label_of(e, target);
  loop->exits[loop->exit_count] = (x86_lane_exit){hg_x86_new_label(&e->a), target};
  return loop->exits[loop->exit_count++].label;
}

static void jump_if(x86_emit *e, uint32_t k, x86_condition condition) {
  lane_jump found = find_jump(e, k, condition);
  e->joined = found.last;
  hg_x86_jump_if(&e->a, found.condition, label_to(e, found.jump->target));
}

static x86_condition taken_if(const vector_insn *jump, x86_condition holds) {
  return jump->op == VECTOR_JUMP_ANY ? holds : opposite(holds);
}

/* The instruction behind i, if it is a jump by i's result, which nothing else reads. */
static const vector_insn *jump_by_result(const x86_emit *e, uint32_t i) {
  const vector_insn *insn = vector_insn_at(e->b->vector, i), *jump = insn + 1;
  const vector_reg *d = vector_reg_at(e->b->vector, insn->d);
  if (i + 1 >= e->region_end || (jump->op != VECTOR_JUMP_ANY && jump->op != VECTOR_JUMP_NONE)) return NULL;
  return jump->s[0] == insn->d && d->first == i && d->last == i + 1 ? jump : NULL;
}

static int is_compared(const x86_emit *e, const vector_insn *insn) {
  if (!atlas_is_comparison(insn->op)) return 0;
  return x86_is_integer(insn->type2) || (x86_is_real(insn->type2) && e->b->keeps_pool);
}

/* 1 if a loop that begins with this label begins with a comparison by which it ends. Jumps back compare by themselves,
 * and go on behind the loop's own comparison and jump; the label of that place is the jump's. */
static int begins_by_test(const x86_emit *e, uint32_t head) {
  const vector_insn *label = vector_insn_at(e->b->vector, head);
  if (head + 3 >= e->region_end || label->op != VECTOR_LABEL || e->loop_end[head] == 0) return 0;
  if (!is_compared(e, label + 1)) return 0;
  return jump_by_result(e, head + 1) != NULL && find_jump(e, head + 2, X86_EQUAL).jump->target > head;
}

/* ---- loops that need not count their steps ----------------------------------------------------------------------- */

static int counts(const x86_emit *e) {
  return hg_native_counts_steps(e->b->vector) || hg_native_takes_long(e->b->vector);
}

static int is_one_more(const x86_emit *e, const vector_insn *insn, uint32_t than) {
  uint64_t one;
  if (insn == NULL || insn->op != ATLAS_OP_add || insn->type != ATLAS_u32) return 0;
  return (insn->s[0] == than && hg_x86_constant_bits(e, insn->s[1], &one) && one == 1) ||
         (insn->s[1] == than && hg_x86_constant_bits(e, insn->s[0], &one) && one == 1);
}

/* 1 if a loop has no other inside, one step, no way in but its head, and only ways out before its counter grows. */
static int is_plain(const x86_emit *e, const x86_lane_loop *loop) {
  uint32_t steps = 0, exits = 0;
  for (uint32_t i = 0; i < e->b->vector->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    int is_inside = i > loop->first + 3 && i < loop->back, is_step = insn->op == VECTOR_STEP;
    if (is_inside && is_step) steps += jump_by_result(e, i++) != NULL ? 1 : 2;
    if (is_step || !vector_is_jump(insn->op) || i == loop->back) continue;
    int leads_inside = insn->target > loop->first && insn->target <= loop->back;
    if (is_inside ? leads_inside && insn->target <= i : leads_inside && i > loop->first + 3) return 0;
    if (is_inside && !leads_inside && (i > loop->grows || insn->target == loop->first)) return 0;
    exits += is_inside && !leads_inside;
  }
  return steps == 1 && exits <= X86_LANE_EXITS;
}

/* 1 if a loop goes on while a counter, which grows by one each round, is below a number that stays the same: so the
 * counter tells the steps that it took. */
static int counts_up(const x86_emit *e, uint32_t head, x86_lane_loop *loop) {
  const vector_insn *test = vector_insn_at(e->b->vector, head + 1);
  *loop = (x86_lane_loop){.first = head, .back = e->loop_end[head], .counter = test->s[0], .bound = test->s[1]};
  x86_rm rm;
  if (e->steps_register == 0 || !counts(e) || loop->back - head > CPU_LANE_LOOP_INSNS) return 0;
  if (e->uncounted != NULL || test->op != ATLAS_OP_set_lt || test->type2 != ATLAS_u32) return 0;
  if (find_jump(e, head + 2, taken_if(test + 1, X86_BELOW)).condition != X86_ABOVE_EQUAL) return 0;
  if (vector_insn_at(e->b->vector, loop->back)->op != VECTOR_JUMP) return 0;
  if (!hg_x86_lane_operand(e, loop->counter, &rm) || rm.is_memory || loop->counter == loop->bound) return 0;
  const vector_insn *grows = hg_x86_lane_writer(e, loop->counter, head, loop->back), *sum = grows;
  if (grows == NULL) return 0;
  if (grows->op == VECTOR_MOVE) sum = hg_x86_lane_writer(e, grows->s[0], head, loop->back);
  if (!is_one_more(e, sum, loop->counter)) return 0;
  loop->grows = (uint32_t)(grows - vector_insn_at(e->b->vector, 0));
  return hg_x86_lane_is_same(e, loop, loop->bound) && is_plain(e, loop);
}

static void write_insn(x86_emit *e, uint32_t i);

/* Behind the first test of such a loop: if the lane has the steps for all rounds that are left, and the accesses by the
 * counter are in bounds in all of them, a copy of the loop counts no steps and compares none of these indices. Until it
 * is left, the steps are more by the counter. */
static void write_uncounted(x86_emit *e, x86_lane_loop *loop) {
  x86_asm *a = &e->a;
  uint32_t body = hg_x86_new_label(a), counted = hg_x86_new_label(a), labels[CPU_LANE_LOOP_INSNS + 1];
  const size_t label_bytes = (loop->back - loop->first + 1) * sizeof *labels;
  const uint32_t index = e->index, joined = e->joined;
  const vector_insn *insn = e->insn;
  unsigned counter = hg_x86_lane_register(e, loop->counter, X86_RAX);
  hg_x86_lane_read(e, X86_RAX, loop->bound);
  hg_x86_alu_rm(a, X86_SUB, 0, X86_RAX, x86_reg(counter));
  hg_x86_alu_rm(a, X86_CMP, 1, e->steps_register, x86_reg(X86_RAX));
  hg_x86_jump_if(a, X86_BELOW, counted);
  e->uncounted = loop;
  for (e->index = loop->first; e->index < loop->grows; e->index++) {
    e->insn = vector_insn_at(e->b->vector, e->index);
    hg_x86_lane_guard(e, counted);
  }
  hg_x86_alu_rm(a, X86_ADD, 1, e->steps_register, x86_reg(counter));
  memcpy(labels, e->label_of + loop->first, label_bytes);
  memset(e->label_of + loop->first, 0xff, label_bytes);
  hg_x86_align(a, X86_LOOP_ALIGNMENT, X86_NOP);
  hg_x86_place(a, body);
  for (uint32_t i = joined + 1; i < loop->back; i++) write_insn(e, i);
  e->insn = insn;
  lane_jump end = find_jump(e, loop->first + 2, X86_EQUAL);
  hg_x86_jump_if(a, hg_x86_lane_compare(e), body);
  label_to(e, end.jump->target);
  e->uncounted = NULL;
  memcpy(e->label_of + loop->first, labels, label_bytes);
  for (uint32_t k = loop->exit_count; k-- > 0;) {
    hg_x86_place(a, loop->exits[k].label);
    hg_x86_alu_rm(a, X86_SUB, 1, e->steps_register, x86_reg(counter));
    hg_x86_jump(a, hg_x86_label_of(e, loop->exits[k].target));
  }
  hg_x86_place(a, counted);
  e->index = index;
  e->joined = joined;
}

/* ---- comparisons and jumps --------------------------------------------------------------------------------------- */

static void write_set(x86_emit *e) {
  const vector_insn *jump = jump_by_result(e, e->index);
  uint32_t selections = jump == NULL ? hg_x86_lane_selections(e) : 0;
  if (selections > 0) {
    hg_x86_lane_select_by_flags(e, selections);
    e->joined = e->index + selections;
    return;
  }
  x86_condition holds = hg_x86_lane_compare(e);
  if (jump == NULL) {
    hg_x86_lane_condition(e, holds);
    return;
  }
  jump_if(e, e->index + 1, taken_if(jump, holds));
  if (!begins_by_test(e, e->index - 1)) return;
  x86_lane_loop loop;
  if (counts_up(e, e->index - 1, &loop)) write_uncounted(e, &loop);
  hg_x86_align(&e->a, X86_LOOP_ALIGNMENT, X86_NOP);
  hg_x86_place(&e->a, hg_x86_label_of(e, e->index + 1));
}

/* 1 if only labels stand between the current instruction and this one. */
static int comes_next(const x86_emit *e, uint32_t label) {
  uint32_t next = e->joined == e->index + 1 ? e->index + 2 : e->index + 1;
  while (next < label && vector_insn_at(e->b->vector, next)->op == VECTOR_LABEL) next++;
  return next == label;
}

static void jump_to(x86_emit *e, uint32_t target) {
  uint32_t index = e->index;
  if (target > index || !begins_by_test(e, target)) {
    hg_x86_jump(&e->a, label_to(e, target));
    return;
  }
  const vector_insn *insn = e->insn, *test = vector_insn_at(e->b->vector, target + 1);
  e->insn = test;
  e->index = target + 1;
  lane_jump end = find_jump(e, target + 2, taken_if(test + 1, hg_x86_lane_compare(e)));
  hg_x86_jump_if(&e->a, opposite(end.condition), hg_x86_label_of(e, target + 2));
  e->insn = insn;
  e->index = index;
  if (!comes_next(e, end.jump->target)) hg_x86_jump(&e->a, hg_x86_label_of(e, end.jump->target));
}

static void write_jump(x86_emit *e) {
  const vector_insn *insn = e->insn;
  int is_never_none = insn->s[0] == VECTOR_ALL && !e->b->vector->loses_lanes;
  if (insn->op == VECTOR_JUMP || (is_never_none && insn->op == VECTOR_JUMP_ANY)) jump_to(e, insn->target);
  else if (!is_never_none) {
    hg_x86_lane_test(e, insn->s[0]);
    jump_if(e, e->index, taken_if(insn, X86_NOT_EQUAL));
  }
}

/* The steps that a lane has before its slow path, in a register if one is free. */
static x86_rm steps_left(const x86_emit *e) {
  if (e->steps_register != 0) return x86_reg(e->steps_register);
  return hg_x86_frame(offsetof(native_frame, steps_left));
}

static void set_steps_left(x86_emit *e, unsigned from) {
  x86_rm left = steps_left(e);
  if (left.is_memory) hg_x86_store(&e->a, 1, left, from);
  else hg_x86_load(&e->a, 1, left.reg, x86_reg(from));
}

static void set_true(x86_emit *e) {
  if (e->insn->d == VECTOR_NONE) return;
  hg_x86_move_imm(&e->a, X86_RAX, 1);
  hg_x86_lane_set(e, X86_RAX);
}

/* The lane goes on, unless C code finds that it has run out of steps. Behind some thousands of steps the slow path
 * looks whether the launch is cancelled. */
static void write_step(x86_emit *e) {
  const vector_insn *insn = e->insn, *jump = insn->d == VECTOR_NONE ? NULL : jump_by_result(e, e->index);
  if (e->uncounted == NULL && counts(e)) {
    uint32_t slow = hg_x86_slow_path(e, X86_ALL_COPIES);
    hg_x86_alu_imm(&e->a, X86_SUB, 1, steps_left(e), 1);
    hg_x86_jump_if(&e->a, X86_BELOW, slow);
    hg_x86_slow_back(e);
  }
  if (jump == NULL) set_true(e);
  else {
    e->joined = e->index + 1;
    if (jump->op == VECTOR_JUMP_ANY) jump_to(e, jump->target);
  }
}

/* rcx = some of the steps in rax; the others come behind them. */
static void take_steps(x86_emit *e) {
  x86_asm *a = &e->a;
  hg_x86_move_imm(a, X86_RCX, CPU_SHORT_STEPS);
  hg_x86_alu_rm(a, X86_CMP, 1, X86_RCX, x86_reg(X86_RAX));
  hg_x86_move_if(a, X86_ABOVE, 1, X86_RCX, x86_reg(X86_RAX));
  hg_x86_alu_rm(a, X86_SUB, 1, X86_RAX, x86_reg(X86_RCX));
  hg_x86_store(a, 1, hg_x86_frame(X86_STEPS_BEHIND), X86_RAX);
}

/* Takes the next steps of those that the lane has left. If there are none, the lane has taken all that it was given:
 * C code subtracts them, and gives it others or ends it. A lane that ends leaves its code. */
static void write_slow_step(x86_emit *e, uint32_t back) {
  x86_asm *a = &e->a;
  int ends = hg_native_counts_steps(e->b->vector);
  uint32_t few = hg_x86_new_label(a);
  hg_x86_write_poll(e);
  hg_x86_move_imm(a, X86_RCX, CPU_SHORT_STEPS);
  if (ends) {
    hg_x86_load(a, 1, X86_RAX, hg_x86_frame(X86_STEPS_BEHIND));
    hg_x86_test(a, 1, X86_RAX, X86_RAX);
    hg_x86_jump_if(a, X86_EQUAL, few);
    take_steps(e);
  }
  hg_x86_alu_imm(a, X86_SUB, 1, x86_reg(X86_RCX), 1);
  set_steps_left(e, X86_RCX);
  hg_x86_jump(a, back);
  if (!ends) return;
  hg_x86_place(a, few);
  x86_rm counted = hg_x86_lane_place(e, native_location_of(e->b, e->insn->s[1]));
  hg_x86_load(a, 0, X86_RAX, hg_x86_frame(X86_STEPS_GIVEN));
  if (counted.is_memory) hg_x86_store(a, 0, counted, X86_RAX);
  else hg_x86_load(a, 0, counted.reg, x86_reg(X86_RAX));
  call_help(e);
  hg_x86_load(a, 1, X86_RAX, hg_x86_frame(offsetof(native_frame, steps_left)));
  hg_x86_store(a, 1, hg_x86_frame(X86_STEPS_GIVEN), X86_RAX);
  hg_x86_store(a, 1, hg_x86_frame(X86_STEPS_BEHIND), X86_RAX);
  hg_x86_move_imm(a, X86_RAX, 0);
  set_steps_left(e, X86_RAX);
  hg_x86_lane_test(e, VECTOR_ALL);
  hg_x86_jump_if(a, X86_EQUAL, e->group_end);
  hg_x86_jump(a, back);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* 1 if machine code does it. */
static int write_operation(x86_emit *e) {
  const vector_insn *insn = e->insn;
  if (is_compared(e, insn)) write_set(e);
  return is_compared(e, insn) || hg_x86_lane_arithmetic(e) || hg_x86_lane_access(e);
}

static void write_insn(x86_emit *e, uint32_t i) {
  e->index = i;
  e->insn = vector_insn_at(e->b->vector, i);
  if (e->joined != UINT32_MAX && i <= e->joined) return;
  if (e->insn->op == VECTOR_LABEL) hg_x86_place(&e->a, hg_x86_label_of(e, i));
  else if (e->insn->op == VECTOR_STEP) write_step(e); /* even one that cannot be the last */
  else if (hg_native_needs_no_code(e->b->vector, i)) return;
  else if (vector_is_jump(e->insn->op)) write_jump(e);
  else if (!write_operation(e)) {
    hg_native_note_call(e->b, i);
    e->b->calls_in_loops |= e->repeated[i];
    call_help(e);
  }
}

/* The lane has not ended, and has all of its steps. */
static void begin_lane(x86_emit *e) {
  x86_asm *a = &e->a;
  hg_x86_lane_clear_local(e);
  if (!e->b->vector->loses_lanes) return;
  hg_x86_move_imm(a, X86_RAX, 0);
  hg_x86_store(a, 1, x86_at(X86_CONTEXT, offsetof(native_context, knows_steps)), X86_RAX);
  x86_rm alive = hg_x86_lane_place(e, native_location_of(e->b, (uint32_t)e->b->vector->regs.count));
  hg_x86_move_imm(a, X86_RAX, 1);
  if (alive.is_memory) hg_x86_store(a, 0, alive, X86_RAX);
  else hg_x86_load(a, 0, alive.reg, x86_reg(X86_RAX));
  if (!hg_native_counts_steps(e->b->vector)) return;
  hg_x86_load(a, 1, X86_RAX, x86_at(X86_CONTEXT, offsetof(native_context, steps_left)));
  hg_x86_store(a, 1, hg_x86_frame(X86_STEPS_GIVEN), X86_RAX);
  take_steps(e);
  set_steps_left(e, X86_RCX);
}

/* An access out of bounds stores nothing and loads 0; C code notes the fault if this or a lower lane has none yet. */
static void write_slow_paths(x86_emit *e) {
  for (size_t i = 0; i < e->slow.count && !e->a.no_memory; i++) {
    const x86_slow slow = ((x86_slow *)e->slow.data)[i];
    e->index = slow.insn;
    e->insn = vector_insn_at(e->b->vector, slow.insn);
    hg_x86_place(&e->a, slow.from);
    if (e->insn->op == VECTOR_STEP) {
      write_slow_step(e, slow.back);
      continue;
    }
    if (vector_is_primitive(e->insn->op) && atlas_op_flags(e->insn->op) & (ATLAS_LOAD | ATLAS_STORE)) {
      uint32_t note = hg_x86_new_label(&e->a);
      hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_LANE, x86_at(X86_CONTEXT, offsetof(native_context, noted)));
      hg_x86_jump_if(&e->a, X86_BELOW, note);
      clear_result(e);
      hg_x86_jump(&e->a, slow.back);
      hg_x86_place(&e->a, note);
    }
    call_help(e);
    hg_x86_jump(&e->a, slow.back);
  }
  e->slow.count = 0;
}

/* The general registers that no value needs, as a set. */
static uint32_t free_registers(const x86_emit *e) {
  uint32_t free = (1u << (X86_LANE_REGISTERS - e->b->keeps_pool)) - 1, vectors = e->b->target->vector_count;
  for (uint32_t r = 0; r < e->b->vector->regs.count; r++) {
    const native_location *location = native_location_of(e->b, r);
    int is_general = location->kind == NATIVE_REGISTERS && location->reg[0] >= vectors;
    if (is_general) free &= ~(1u << (location->reg[0] - vectors));
  }
  return free;
}

/* Gives one of them away. */
static void take(uint32_t *free, uint8_t *reg) {
  uint32_t k = 0;
  if (*free == 0 || *reg != 0) return;
  while (!(*free >> k & 1)) k++;
  *free &= *free - 1;
  *reg = hg_x86_lane_registers[k];
}

/* They hold what loops read: the steps that are left, the addresses of buffers and arrays, scalars. */
static void use_free_registers(x86_emit *e) {
  uint32_t free = free_registers(e);
  for (uint32_t i = 0; i < e->b->vector->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    uint8_t base = 0;
    if (!e->repeated[i]) continue;
    if (insn->op == VECTOR_STEP) take(&free, &e->steps_register);
    if (!vector_is_primitive(insn->op) || !hg_x86_has_base(insn) || e->base_of[insn->symbol] >= 0) continue;
    take(&free, &base);
    if (base != 0) e->base_of[insn->symbol] = base;
  }
  for (uint32_t i = 0; i < e->b->vector->insns.count; i++)
    for (int k = 0; k < 4 && e->repeated[i]; k++) {
      uint32_t s = vector_insn_at(e->b->vector, i)->s[k];
      if (s >= e->b->vector->regs.count) continue;
      const vector_reg *reg = vector_reg_at(e->b->vector, s);
      if (reg->kind == VECTOR_SCALAR && x86_is_integer(reg->type)) take(&free, &e->scalar_of[reg->bits]);
    }
}

static void load_scalars(x86_emit *e) {
  for (uint32_t s = 0; s < ATLAS_MAX_SYMBOLS; s++) {
    x86_rm at = x86_at(X86_CONTEXT, hg_x86_place_offset(s, offsetof(native_place, scalar)));
    if (e->scalar_of[s] != 0) hg_x86_load(&e->a, 1, e->scalar_of[s], at);
  }
}

void hg_x86_write_lanes(x86_emit *e) {
  x86_asm *a = &e->a;
  native_step *step = e->b->steps.data;
  uint32_t top = hg_x86_new_label(a), done = hg_x86_new_label(a);
  memset(e->base_of, 0xff, sizeof e->base_of);
  memset(e->label_of, 0xff, e->b->vector->insns.count * sizeof *e->label_of);
  memset(e->loop_end, 0, e->b->vector->insns.count * sizeof *e->loop_end);
  for (uint32_t i = step->first; i < step->end; i++) {
    const vector_insn *jump = vector_insn_at(e->b->vector, i);
    if (vector_is_jump(jump->op) && jump->target <= i) e->loop_end[jump->target] = i;
  }
  step->entry = (uint32_t)a->count;
  e->copies = 1;
  e->joined = UINT32_MAX;
  e->region_end = step->end;
  e->group_end = hg_x86_new_label(a);
  use_free_registers(e);
  hg_x86_write_prologue(e);
  load_scalars(e);
  hg_x86_move_imm(a, X86_RAX, 1);
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, copies)), X86_RAX);
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, count)), X86_RAX);
  hg_x86_move_imm(a, X86_RAX, 0);
  set_steps_left(e, X86_RAX);
  hg_x86_place(a, top);
  hg_x86_alu_rm(a, X86_CMP, 1, X86_LANE, hg_x86_frame(offsetof(native_frame, end)));
  hg_x86_jump_if(a, X86_ABOVE_EQUAL, done);
  begin_lane(e);
  for (uint32_t i = step->first; i < step->end; i++) write_insn(e, i);
  hg_x86_place(a, e->group_end);
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_LANE), 1);
  hg_x86_jump(a, top);
  write_slow_paths(e); /* before the epilogue, which they jump to */
  hg_x86_place(a, done);
  hg_x86_write_epilogue(e);
  write_help(e);
}
