/* one_lane.c - kernels that run one lane after the other, in general registers: where lanes take different ways through
 * nested loops, or read elements from all over memory, a vector waits for its slowest lane and reads one element at a
 * time anyway, while a processor foresees the branches of one lane. native/one_lane.c says which programs.
 *
 * The vector program is one for tiles of one lane (hg_vectorise_lane): every jump is real, and no instruction has a
 * mask. Its registers are general registers and slots of 8 bytes. rbx is the lane, r14 the context, rsp the frame; rax,
 * rcx and rdx are scratch within an instruction. The upper half of a value of 32 bits or fewer is zero; narrow integers
 * are extended to 32 bits by their sign or by zero; a predicate is true if it is not 0. What has no code here is a call
 * of hg_native_help, and so are faults, and steps that a lane may run out of. */
#include "backend/cpu/x86/emit_x86.h"
#include "backend/cpu/x86/x86_memory.h"

#include "atlas/insn.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include <string.h>

/* native_location.reg is a place in this list. */
static const uint8_t registers[X86_LANE_REGISTERS] = {X86_RBP, X86_RSI, X86_RDI, X86_R8,  X86_R9,
                                                      X86_R10, X86_R11, X86_R12, X86_R13, X86_R15};

enum { /* offsets in native_frame.spare of what frame.steps_left does not count: the steps that C code gave the lane
          last, and those that come behind steps_left */
  X86_STEPS_GIVEN = X86_TILE_LAST_GROUP + 8,
  X86_STEPS_BEHIND = X86_STEPS_GIVEN + 8
};

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static int is_wide(uint8_t type) { return type != SSA_PREDICATE && atlas_bytes((atlas_type)type) == 8; }

static int is_signed(uint8_t type) { return atlas_kind((atlas_type)type) == ATLAS_KIND_SINT; }

static int is_integer(uint8_t type) {
  return type != SSA_PREDICATE && type != ATLAS_bool && atlas_is_integer((atlas_type)type);
}

static x86_rm location_rm(const native_location *location) {
  if (location->kind == NATIVE_REGISTERS) return x86_reg(registers[location->reg[0]]);
  return hg_x86_frame(location->offset);
}

/* 1 if a value is in a register, or in memory, where instructions find it. */
static int find_operand(const x86_emit *e, uint32_t r, x86_rm *rm) {
  const vector_reg *reg = vector_reg_at(e->b->vector, r);
  if (reg->kind == VECTOR_SCALAR)
    *rm = x86_at(X86_CONTEXT, hg_x86_place_offset(reg->bits, offsetof(native_place, scalar)));
  else if (reg->kind == VECTOR_SPECIAL) *rm = x86_reg(X86_LANE);
  else if (reg->kind == VECTOR_VARIES && native_location_of(e->b, r)->kind != NATIVE_NOWHERE)
    *rm = location_rm(native_location_of(e->b, r));
  else return 0;
  return 1;
}

/* A constant; 0 stands for a value that nothing writes. */
static uint64_t constant_of(const x86_emit *e, uint32_t r) {
  const vector_reg *reg = vector_reg_at(e->b->vector, r);
  if (reg->kind != VECTOR_CONSTANT) return 0;
  return reg->type == SSA_PREDICATE ? reg->bits & 1 : hg_native_widen(reg->type, reg->bits);
}

/* 1 if a value is a constant that an instruction of 64 or 32 bits can hold. */
static int find_immediate(const x86_emit *e, uint32_t r, int w, int32_t *immediate) {
  x86_rm rm;
  uint64_t bits;
  if (find_operand(e, r, &rm)) return 0;
  bits = constant_of(e, r);
  *immediate = (int32_t)(uint32_t)bits;
  return !w || (uint64_t)(int64_t)*immediate == bits;
}

static void read_value(x86_emit *e, unsigned to, uint32_t r) {
  x86_rm rm;
  if (find_operand(e, r, &rm)) {
    if (rm.is_memory || rm.reg != to) hg_x86_load(&e->a, is_wide(hg_x86_type(e, r)), to, rm);
    return;
  }
  uint64_t bits = constant_of(e, r);
  if (bits <= UINT32_MAX) hg_x86_move_imm(&e->a, to, (uint32_t)bits);
  else hg_x86_move_imm64(&e->a, to, bits);
}

/* A register with the value: its own, or `scratch`. */
static unsigned value_register(x86_emit *e, uint32_t r, unsigned scratch) {
  x86_rm rm;
  if (find_operand(e, r, &rm) && !rm.is_memory) return rm.reg;
  read_value(e, scratch, r);
  return scratch;
}

/* The register of the result, or rax; rax too if it is that of source `s`, which is read after the result is begun. */
static unsigned result_register(const x86_emit *e, uint32_t s) {
  const native_location *d = native_location_of(e->b, e->insn->d);
  x86_rm rm;
  if (d->kind != NATIVE_REGISTERS) return X86_RAX;
  int is_read = s != VECTOR_NONE && find_operand(e, s, &rm) && !rm.is_memory && rm.reg == registers[d->reg[0]];
  return is_read ? X86_RAX : registers[d->reg[0]];
}

/* The result is in `from`. */
static void set_result(x86_emit *e, unsigned from) {
  const native_location *d = native_location_of(e->b, e->insn->d);
  int w = is_wide(hg_x86_type(e, e->insn->d));
  if (d->kind == NATIVE_SLOT) hg_x86_store(&e->a, w, location_rm(d), from);
  else if (d->kind == NATIVE_REGISTERS && registers[d->reg[0]] != from)
    hg_x86_load(&e->a, w, registers[d->reg[0]], x86_reg(from));
}

/* Extends the lowest bits of a register to a narrow integer's 32. */
static void extend(x86_emit *e, uint8_t type, unsigned reg) {
  unsigned bits = 8 * atlas_bytes((atlas_type)type);
  if (bits >= 32) return;
  if (!is_signed(type)) hg_x86_alu_imm(&e->a, X86_AND, 0, x86_reg(reg), (int32_t)((1u << bits) - 1));
  else {
    hg_x86_shift_imm(&e->a, 0, X86_SHL, reg, 32 - bits);
    hg_x86_shift_imm(&e->a, 0, X86_SAR, reg, 32 - bits);
  }
}

/* ---- calls of C -------------------------------------------------------------------------------------------------- */

static void call_help(x86_emit *e) {
  hg_x86_move_imm(&e->a, X86_RAX, e->index);
  hg_x86_call(&e->a, e->help);
  if (e->insn->d == VECTOR_NONE || is_wide(hg_x86_type(e, e->insn->d))) return;
  const native_location *d = native_location_of(e->b, e->insn->d); /* C code has written its lower half */
  if (d->kind == NATIVE_REGISTERS) hg_x86_load(&e->a, 0, registers[d->reg[0]], location_rm(d));
}

static void clear_result(x86_emit *e) {
  if (e->insn->d == VECTOR_NONE) return;
  unsigned to = result_register(e, VECTOR_NONE);
  hg_x86_move_imm(&e->a, to, 0);
  set_result(e, to);
}

/* Called with the instruction in eax: saves all registers with values, for C code to read and write. */
static void write_help(x86_emit *e) {
  x86_asm *a = &e->a;
  const int32_t saved = 8 + (int32_t)offsetof(native_frame, vectors); /* behind the return address */
  hg_x86_place(a, e->help);
  hg_x86_store(a, 1, hg_x86_frame(8 + offsetof(native_frame, lane)), X86_LANE);
  for (int k = 0; k < X86_LANE_REGISTERS; k++) hg_x86_store(a, 1, x86_at(X86_FRAME, saved + 8 * k), registers[k]);
  hg_x86_lea(a, X86_RDI, hg_x86_frame(8));
  hg_x86_load(a, 0, X86_RSI, x86_reg(X86_RAX));
  hg_x86_alu_imm(a, X86_SUB, 1, x86_reg(X86_RSP), 8);
  hg_x86_call_rm(a, x86_at(X86_CONTEXT, offsetof(native_context, help)));
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_RSP), 8);
  for (int k = 0; k < X86_LANE_REGISTERS; k++) hg_x86_load(a, 1, registers[k], x86_at(X86_FRAME, saved + 8 * k));
  hg_x86_return(a);
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

/* d = a op b, with `add` of a third source behind it if there is one. */
static void write_alu(x86_emit *e, x86_alu op, uint32_t a, uint32_t b, int w) {
  unsigned to = result_register(e, VECTOR_NONE);
  int32_t immediate;
  x86_rm rm;
  if (op != X86_SUB && find_operand(e, b, &rm) && !rm.is_memory && rm.reg == to) {
    uint32_t other = a;
    a = b;
    b = other;
  }
  to = result_register(e, b);
  read_value(e, to, a);
  if (find_immediate(e, b, w, &immediate)) hg_x86_alu_imm(&e->a, op, w, x86_reg(to), immediate);
  else if (find_operand(e, b, &rm)) hg_x86_alu_rm(&e->a, op, w, to, rm);
  else {
    read_value(e, X86_RCX, b);
    hg_x86_alu_rm(&e->a, op, w, to, x86_reg(X86_RCX));
  }
  if (e->insn->type != SSA_PREDICATE && is_integer(e->insn->type)) extend(e, e->insn->type, to);
  set_result(e, to);
}

/* a b, or a b + c */
static void write_product(x86_emit *e, int w) {
  const uint32_t *s = e->insn->s;
  read_value(e, X86_RAX, s[0]);
  hg_x86_multiply(&e->a, w, X86_RAX, x86_reg(value_register(e, s[1], X86_RCX)));
  if (e->insn->op == ATLAS_OP_mad) hg_x86_alu_rm(&e->a, X86_ADD, w, X86_RAX, x86_reg(value_register(e, s[2], X86_RCX)));
  extend(e, e->insn->type, X86_RAX);
  set_result(e, X86_RAX);
}

static void write_shift(x86_emit *e, int w) {
  uint8_t type = e->insn->type;
  unsigned bits = 8 * atlas_bytes((atlas_type)type), to = result_register(e, e->insn->s[1]);
  x86_shift op = e->insn->op == ATLAS_OP_shl ? X86_SHL : is_signed(type) ? X86_SAR : X86_SHR;
  uint64_t count;
  if (hg_x86_constant_bits(e, e->insn->s[1], &count)) {
    read_value(e, to, e->insn->s[0]);
    hg_x86_shift_imm(&e->a, w, op, to, (unsigned)count & (bits - 1));
  } else {
    read_value(e, X86_RCX, e->insn->s[1]);
    if (bits < 32) hg_x86_alu_imm(&e->a, X86_AND, 0, x86_reg(X86_RCX), (int32_t)bits - 1);
    read_value(e, to, e->insn->s[0]);
    hg_x86_shift_cl(&e->a, w, op, to);
  }
  extend(e, type, to);
  set_result(e, to);
}

/* Unsigned; C code divides by 0. */
static void write_division(x86_emit *e, int w) {
  uint32_t slow = hg_x86_slow_path(e, X86_ALL_COPIES);
  read_value(e, X86_RCX, e->insn->s[1]);
  hg_x86_test(&e->a, w, X86_RCX, X86_RCX);
  hg_x86_jump_if(&e->a, X86_EQUAL, slow);
  read_value(e, X86_RAX, e->insn->s[0]);
  hg_x86_move_imm(&e->a, X86_RDX, 0);
  hg_x86_divide_by(&e->a, w, x86_reg(X86_RCX));
  set_result(e, e->insn->op == ATLAS_OP_div ? X86_RAX : X86_RDX);
  hg_x86_slow_back(e);
}

static void compare(x86_emit *e, uint32_t a, uint32_t b, int w) {
  unsigned left = value_register(e, a, X86_RAX);
  int32_t immediate;
  x86_rm rm;
  if (find_immediate(e, b, w, &immediate)) {
    if (immediate == 0) hg_x86_test(&e->a, w, left, left);
    else hg_x86_alu_imm(&e->a, X86_CMP, w, x86_reg(left), immediate);
  } else {
    if (!find_operand(e, b, &rm)) rm = x86_reg(value_register(e, b, X86_RCX));
    hg_x86_alu_rm(&e->a, X86_CMP, w, left, rm);
  }
}

static void write_extreme(x86_emit *e, int w) {
  const uint32_t *s = e->insn->s;
  int is_min = e->insn->op == ATLAS_OP_min, is_less = is_signed(e->insn->type);
  read_value(e, X86_RAX, s[0]);
  read_value(e, X86_RCX, s[1]);
  hg_x86_alu_rm(&e->a, X86_CMP, w, X86_RCX, x86_reg(X86_RAX));
  x86_condition lower = is_less ? X86_LESS : X86_BELOW, higher = is_less ? X86_GREATER : X86_ABOVE;
  hg_x86_move_if(&e->a, is_min ? lower : higher, w, X86_RAX, x86_reg(X86_RCX));
  set_result(e, X86_RAX);
}

/* ---- predicates and jumps ---------------------------------------------------------------------------------------- */

static x86_condition opposite(x86_condition condition) { return (x86_condition)(condition ^ 1); }

/* Sets the flags; the condition under which the comparison holds. */
static x86_condition write_comparison(x86_emit *e) {
  const vector_insn *insn = e->insn;
  compare(e, insn->s[0], insn->s[1], is_wide(insn->type2));
  if (insn->op == ATLAS_OP_set_eq) return X86_EQUAL;
  return is_signed(insn->type2) ? X86_LESS : X86_BELOW; /* after a test with itself a value is below 0 as after a
                                                           comparison: never, if it is unsigned */
}

/* A predicate from a condition. Moves leave the flags alone. */
static void set_condition(x86_emit *e, x86_condition condition) {
  hg_x86_move_imm(&e->a, X86_RAX, 0);
  hg_x86_move_imm(&e->a, X86_RCX, 1);
  hg_x86_move_if(&e->a, condition, 0, X86_RAX, x86_reg(X86_RCX));
  set_result(e, X86_RAX);
}

static void test_predicate(x86_emit *e, uint32_t r) {
  x86_rm rm = r == VECTOR_ALL ? location_rm(native_location_of(e->b, (uint32_t)e->b->vector->regs.count)) : x86_reg(0);
  if (r != VECTOR_ALL && !find_operand(e, r, &rm)) {
    read_value(e, X86_RAX, r);
    rm = x86_reg(X86_RAX);
  }
  if (rm.is_memory) hg_x86_alu_imm(&e->a, X86_CMP, 0, rm, 0);
  else hg_x86_test(&e->a, 0, rm.reg, rm.reg);
}

static uint32_t target_label(x86_emit *e, const vector_insn *jump) {
  return hg_x86_label_of(e, jump->target);
}

/* Writes jump k, which is taken under a condition. If it only leads around a jump behind it, that one takes its place,
 * under the opposite condition. */
static void jump_if(x86_emit *e, uint32_t k, x86_condition condition) {
  const vector_insn *jump = vector_insn_at(e->b->vector, k), *other = jump + 1;
  uint32_t next = k + 2;
  e->joined = k;
  while (next < e->region_end && vector_insn_at(e->b->vector, next)->op == VECTOR_LABEL && next < jump->target) next++;
  if (k + 2 < e->region_end && other->op == VECTOR_JUMP && next == jump->target) {
    e->joined = k + 1;
    condition = opposite(condition);
    jump = other;
  }
  hg_x86_jump_if(&e->a, condition, target_label(e, jump));
}

static x86_condition taken_if(const vector_insn *jump, x86_condition holds) {
  return jump->op == VECTOR_JUMP_ANY ? holds : opposite(holds);
}

static void write_jump(x86_emit *e) {
  const vector_insn *insn = e->insn;
  int is_never_none = insn->s[0] == VECTOR_ALL && !e->b->vector->loses_lanes;
  if (insn->op == VECTOR_JUMP || (is_never_none && insn->op == VECTOR_JUMP_ANY))
    hg_x86_jump(&e->a, target_label(e, insn));
  else if (!is_never_none) {
    test_predicate(e, insn->s[0]);
    jump_if(e, e->index, taken_if(insn, X86_NOT_EQUAL));
  }
}

/* The next instruction, if it is a jump by the result, which nothing else reads. */
static const vector_insn *jump_by_result(const x86_emit *e) {
  const vector_insn *jump = e->insn + 1;
  const vector_reg *d = vector_reg_at(e->b->vector, e->insn->d);
  if (e->index + 1 >= e->region_end || (jump->op != VECTOR_JUMP_ANY && jump->op != VECTOR_JUMP_NONE)) return NULL;
  return jump->s[0] == e->insn->d && d->first == e->index && d->last == e->index + 1 ? jump : NULL;
}

static void write_set(x86_emit *e) {
  x86_condition holds = write_comparison(e);
  const vector_insn *jump = jump_by_result(e);
  if (jump == NULL) {
    set_condition(e, holds);
    return;
  }
  jump_if(e, e->index + 1, taken_if(jump, holds));
}

static void write_select(x86_emit *e) {
  const uint32_t *s = e->insn->s;
  int w = is_wide(e->insn->type);
  read_value(e, X86_RDX, s[1]);
  read_value(e, X86_RCX, s[2]);
  test_predicate(e, s[0]);
  hg_x86_move_if(&e->a, X86_NOT_EQUAL, w, X86_RCX, x86_reg(X86_RDX));
  set_result(e, X86_RCX);
}

static void set_true(x86_emit *e) {
  if (e->insn->d == VECTOR_NONE) return;
  hg_x86_move_imm(&e->a, X86_RAX, 1);
  set_result(e, X86_RAX);
}

/* The lane goes on, unless C code finds that it has run out of steps. Behind some thousands of steps the slow path
 * looks whether the launch is cancelled. */
static void write_step(x86_emit *e) {
  const vector_insn *insn = e->insn, *jump = insn->d == VECTOR_NONE ? NULL : jump_by_result(e);
  int ends = hg_native_counts_steps(e->b->vector);
  if (ends || hg_native_takes_long(e->b->vector)) {
    uint32_t slow = hg_x86_slow_path(e, X86_ALL_COPIES);
    hg_x86_alu_imm(&e->a, X86_SUB, 1, x86_at(X86_FRAME, offsetof(native_frame, steps_left)), 1);
    hg_x86_jump_if(&e->a, X86_BELOW, slow);
    hg_x86_slow_back(e);
  }
  if (jump == NULL) set_true(e);
  else {
    if (jump->op == VECTOR_JUMP_ANY) hg_x86_jump(&e->a, target_label(e, jump));
    e->joined = e->index + 1;
  }
}

/* Takes the next steps of those that the lane has left. If there are none, the lane has taken all that it was given:
 * C code subtracts them, and gives it others or ends it. A lane that ends leaves its code. */
static void write_slow_step(x86_emit *e, uint32_t back) {
  x86_asm *a = &e->a;
  int ends = hg_native_counts_steps(e->b->vector);
  uint32_t few = hg_x86_new_label(a);
  x86_rm left = hg_x86_frame(offsetof(native_frame, steps_left));
  hg_x86_write_poll(e);
  hg_x86_move_imm(a, X86_RCX, CPU_SHORT_STEPS);
  if (ends) {
    hg_x86_load(a, 1, X86_RAX, hg_x86_frame(X86_STEPS_BEHIND));
    hg_x86_test(a, 1, X86_RAX, X86_RAX);
    hg_x86_jump_if(a, X86_EQUAL, few);
    hg_x86_alu_rm(a, X86_CMP, 1, X86_RCX, x86_reg(X86_RAX));
    hg_x86_move_if(a, X86_ABOVE, 1, X86_RCX, x86_reg(X86_RAX));
    hg_x86_alu_rm(a, X86_SUB, 1, X86_RAX, x86_reg(X86_RCX));
    hg_x86_store(a, 1, hg_x86_frame(X86_STEPS_BEHIND), X86_RAX);
  }
  hg_x86_alu_imm(a, X86_SUB, 1, x86_reg(X86_RCX), 1);
  hg_x86_store(a, 1, left, X86_RCX);
  hg_x86_jump(a, back);
  if (!ends) return;
  hg_x86_place(a, few);
  x86_rm counted = location_rm(native_location_of(e->b, e->insn->s[1]));
  hg_x86_load(a, 0, X86_RAX, hg_x86_frame(X86_STEPS_GIVEN));
  if (counted.is_memory) hg_x86_store(a, 0, counted, X86_RAX);
  else hg_x86_load(a, 0, counted.reg, x86_reg(X86_RAX));
  call_help(e);
  hg_x86_load(a, 1, X86_RAX, left);
  hg_x86_store(a, 1, hg_x86_frame(X86_STEPS_GIVEN), X86_RAX);
  hg_x86_store(a, 1, hg_x86_frame(X86_STEPS_BEHIND), X86_RAX);
  hg_x86_move_imm(a, X86_RAX, 0);
  hg_x86_store(a, 1, left, X86_RAX);
  test_predicate(e, VECTOR_ALL);
  hg_x86_jump_if(a, X86_EQUAL, e->group_end);
  hg_x86_jump(a, back);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The address of the element. Uses rax for the index and rdx for the base. */
static x86_rm element(x86_emit *e, const x86_access *m, uint32_t slow) {
  x86_asm *a = &e->a;
  unsigned index = X86_RAX;
  int is_checked = x86_is_checked(e);
  hg_x86_load(a, 1, X86_RDX, x86_at(X86_CONTEXT, hg_x86_place_offset(e->insn->symbol, offsetof(native_place, memory))));
  if (m->index == VECTOR_NONE) {
    if (is_checked) {
      hg_x86_move_imm(a, X86_RAX, (uint32_t)m->displacement);
      hg_x86_alu_rm(a, X86_CMP, 1, X86_RAX, m->extent);
      hg_x86_jump_if(a, X86_ABOVE_EQUAL, slow);
    }
    return x86_at(X86_RDX, m->offset);
  }
  uint8_t type = hg_x86_type(e, m->index);
  if (is_signed(type) && !is_wide(type))
    hg_x86_load_sign32(a, X86_RAX, x86_reg(value_register(e, m->index, X86_RAX)));
  else if (m->displacement != 0) read_value(e, X86_RAX, m->index);
  else index = value_register(e, m->index, X86_RAX);
  hg_x86_add_displacement(e, m, slow);
  if (is_checked) {
    hg_x86_alu_rm(a, X86_CMP, 1, index, m->extent);
    hg_x86_jump_if(a, X86_ABOVE_EQUAL, slow);
  }
  return x86_indexed(X86_RDX, index, m->log_bytes, 0);
}

/* 1 if it is a load or store whose address is found here. */
static int write_access(x86_emit *e) {
  x86_access m;
  const vector_insn *insn = e->insn;
  if (atlas_op_flags(insn->op) & ATLAS_ATOMIC || insn->symbol & SSA_LIBRARY || insn->type == ATLAS_bool) return 0;
  if (!hg_x86_has_base(insn) || !hg_x86_describe_access(e, &m)) return 0;
  if (m.index == VECTOR_NONE && m.displacement < 0) return 0;
  uint32_t slow = hg_x86_slow_path(e, X86_ALL_COPIES);
  x86_rm at = element(e, &m, slow);
  if (m.is_store) {
    if (m.bytes >= 4) hg_x86_store(&e->a, m.bytes == 8, at, value_register(e, m.value, X86_RCX));
    else {
      read_value(e, X86_RCX, m.value);
      hg_x86_store_narrow(&e->a, m.bytes, at, X86_RCX);
    }
  } else if (native_location_of(e->b, insn->d)->kind != NATIVE_NOWHERE) {
    unsigned to = result_register(e, VECTOR_NONE);
    if (m.bytes >= 4) hg_x86_load(&e->a, m.bytes == 8, to, at);
    else hg_x86_load_narrow(&e->a, m.bytes, is_signed(insn->type), to, at);
    set_result(e, to);
  }
  hg_x86_slow_back(e);
  return 1;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void write_move(x86_emit *e) {
  unsigned to = result_register(e, VECTOR_NONE);
  if (to == X86_RAX) {
    set_result(e, value_register(e, e->insn->s[0], X86_RAX));
    return;
  }
  read_value(e, to, e->insn->s[0]);
  set_result(e, to);
}

/* Between integers: truncates, or extends by the sign of the source. */
static void write_conversion(x86_emit *e) {
  uint8_t type = e->insn->type, from = e->insn->type2;
  unsigned to = result_register(e, VECTOR_NONE);
  if (is_wide(type) && !is_wide(from) && is_signed(from))
    hg_x86_load_sign32(&e->a, to, x86_reg(value_register(e, e->insn->s[0], X86_RAX)));
  else if (is_wide(type) || !is_wide(from)) read_value(e, to, e->insn->s[0]);
  else hg_x86_load(&e->a, 0, to, x86_reg(value_register(e, e->insn->s[0], X86_RAX)));
  extend(e, type, to);
  set_result(e, to);
}

/* 1 if the operation, of integers, has been written. */
static int write_arithmetic(x86_emit *e) {
  const vector_insn *insn = e->insn;
  const uint32_t *s = insn->s;
  int w = is_wide(insn->type);
  switch (insn->op) {
  case ATLAS_OP_add: write_alu(e, X86_ADD, s[0], s[1], w); return 1;
  case ATLAS_OP_sub: write_alu(e, X86_SUB, s[0], s[1], w); return 1;
  case ATLAS_OP_and: write_alu(e, X86_AND, s[0], s[1], w); return 1;
  case ATLAS_OP_or: write_alu(e, X86_OR, s[0], s[1], w); return 1;
  case ATLAS_OP_xor: write_alu(e, X86_XOR, s[0], s[1], w); return 1;
  case ATLAS_OP_mul:
  case ATLAS_OP_mad: write_product(e, w); return 1;
  case ATLAS_OP_shl:
  case ATLAS_OP_shr: write_shift(e, w); return 1;
  case ATLAS_OP_min:
  case ATLAS_OP_max: write_extreme(e, w); return 1;
  case ATLAS_OP_div:
  case ATLAS_OP_rem:
    if (is_signed(insn->type)) return 0;
    write_division(e, w);
    return 1;
  case ATLAS_OP_not:
    read_value(e, X86_RAX, s[0]);
    hg_x86_alu_imm(&e->a, X86_XOR, w, x86_reg(X86_RAX), -1);
    extend(e, insn->type, X86_RAX);
    set_result(e, X86_RAX);
    return 1;
  case ATLAS_OP_cvt:
    if (!is_integer(insn->type2)) return 0;
    write_conversion(e);
    return 1;
  default: return 0;
  }
}

/* 1 if machine code does it. */
static int write_operation(x86_emit *e) {
  const vector_insn *insn = e->insn;
  switch (insn->op) {
  case VECTOR_MOVE: write_move(e); return 1;
  case ATLAS_OP_sel: write_select(e); return 1;
  case ATLAS_OP_pand: write_alu(e, X86_AND, insn->s[0], insn->s[1], 0); return 1;
  case ATLAS_OP_por: write_alu(e, X86_OR, insn->s[0], insn->s[1], 0); return 1;
  case ATLAS_OP_pnot:
    test_predicate(e, insn->s[0]);
    set_condition(e, X86_EQUAL);
    return 1;
  case ATLAS_OP_set_eq:
  case ATLAS_OP_set_lt:
    if (!is_integer(insn->type2)) return 0;
    write_set(e);
    return 1;
  default: break;
  }
  if (!vector_is_primitive(insn->op)) return 0;
  if (atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE)) return write_access(e);
  return is_integer(insn->type) && write_arithmetic(e);
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

/* A lane's local arrays lie side by side, in slots of 8 bytes. */
static void clear_local(x86_emit *e) {
  x86_asm *a = &e->a;
  const hg_vector *v = e->b->vector;
  uint32_t first = 0, again = hg_x86_new_label(a);
  if (e->b->local_bytes == 0 || !v->sees_local_zeros) return;
  while (!(v->locals[first / 64] >> first % 64 & 1)) first++;
  hg_x86_load(a, 1, X86_RDX, x86_at(X86_CONTEXT, hg_x86_place_offset(first, offsetof(native_place, memory))));
  hg_x86_move_imm(a, X86_RAX, 0);
  hg_x86_move_imm(a, X86_RCX, e->b->local_bytes);
  hg_x86_place(a, again);
  hg_x86_store(a, 1, x86_indexed(X86_RDX, X86_RCX, 0, -8), X86_RAX);
  hg_x86_alu_imm(a, X86_SUB, 0, x86_reg(X86_RCX), 8);
  hg_x86_jump_if(a, X86_NOT_EQUAL, again);
}

/* The lane has not ended, and has all of its steps. */
static void begin_lane(x86_emit *e) {
  x86_asm *a = &e->a;
  clear_local(e);
  hg_x86_move_imm(a, X86_RAX, 0);
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, steps_left)), X86_RAX);
  if (!e->b->vector->loses_lanes) return;
  hg_x86_store(a, 1, x86_at(X86_CONTEXT, offsetof(native_context, knows_steps)), X86_RAX);
  x86_rm alive = location_rm(native_location_of(e->b, (uint32_t)e->b->vector->regs.count));
  hg_x86_move_imm(a, X86_RAX, 1);
  if (alive.is_memory) hg_x86_store(a, 0, alive, X86_RAX);
  else hg_x86_load(a, 0, alive.reg, x86_reg(X86_RAX));
  hg_x86_load(a, 1, X86_RAX, x86_at(X86_CONTEXT, offsetof(native_context, steps_left)));
  hg_x86_store(a, 1, hg_x86_frame(X86_STEPS_GIVEN), X86_RAX);
  hg_x86_store(a, 1, hg_x86_frame(X86_STEPS_BEHIND), X86_RAX);
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

void hg_x86_write_lanes(x86_emit *e) {
  x86_asm *a = &e->a;
  native_step *step = e->b->steps.data;
  uint32_t top = hg_x86_new_label(a), done = hg_x86_new_label(a);
  memset(e->base_of, 0xff, sizeof e->base_of);
  memset(e->label_of, 0xff, e->b->vector->insns.count * sizeof *e->label_of);
  step->entry = (uint32_t)a->count;
  e->copies = 1;
  e->joined = UINT32_MAX;
  e->region_end = step->end;
  e->group_end = hg_x86_new_label(a);
  hg_x86_write_prologue(e);
  hg_x86_move_imm(a, X86_RAX, 1);
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, copies)), X86_RAX);
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, count)), X86_RAX);
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
