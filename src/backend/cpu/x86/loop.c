/* loop.c - the quick version of a loop over memory (loop.h).
 *
 * Such a loop has two versions. A group that enters checks whether its indices have the guessed strides. If so, it runs
 * the quick version: each of these indices is one number in a general register, an access is one load or store of
 * consecutive elements, or of one element for all lanes, and its bounds are checked once. All other values are where
 * the slow version has them. So if an address is out of bounds, a side exit turns the indices back into vectors, and
 * the slow version resumes at that very instruction. It finds out which lane is at fault, and the group stays in the
 * slow version. */
#include "backend/cpu/x86/x86_predicate.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include <stddef.h>
#include <string.h>

static native_scalar *scalars(x86_emit *e) { return e->loop.found.scalar; }

/* ---- general registers ------------------------------------------------------------------------------------------- */

static int has_atomic(const x86_emit *e) {
  for (uint32_t i = e->loop.found.head; i < e->loop.found.end; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (atlas_op_flags(insn->op) & ATLAS_ATOMIC) return 1;
  }
  return 0;
}

/* Finds the general registers that hold no buffer's address, and the register of the tile's rows if there are none.
 * Atomics use these too. */
static uint32_t find_free_general(const x86_emit *e, uint8_t *free) {
  static const uint8_t registers[X86_MOST_GENERAL] = {X86_R11, X86_R10, X86_R9,  X86_R8,  X86_RDI,
                                                      X86_RSI, X86_RBP, X86_R12, X86_R13};
  uint32_t count = 0, used = 1u << X86_R12 | 1u << X86_R13;
  if (!e->uses_tile_lane && !has_atomic(e)) used = 0;
  for (size_t s = 0; s < ATLAS_MAX_SYMBOLS; s++)
    if (e->base_of[s] >= 0) used |= 1u << e->base_of[s];
  for (size_t k = 0; k < X86_MOST_GENERAL; k++)
    if (!(used >> registers[k] & 1)) free[count++] = registers[k];
  return count;
}

static int overlap_in_life(const x86_emit *e, uint32_t one, uint32_t other) {
  const vector_reg *a = vector_reg_at(e->b->vector, one), *b = vector_reg_at(e->b->vector, other);
  return a->first <= b->last && b->first <= a->last;
}

/* A register for scalar k that no scalar has that is live at the same time. */
static uint8_t register_for(const x86_emit *e, const uint8_t *free, uint32_t count, uint32_t k) {
  const native_scalar *scalars = e->loop.found.scalar;
  for (uint32_t f = 0; f < count; f++) {
    int is_taken = 0;
    for (uint32_t other = 0; other < e->loop.found.count && !is_taken; other++)
      is_taken = e->loop.general[other] == free[f] && overlap_in_life(e, scalars[k].reg, scalars[other].reg);
    if (!is_taken) return free[f];
  }
  return X86_NO_GENERAL;
}

/* Gives registers to scalars as far as there are any, first to those that change. */
static void allocate_registers(x86_emit *e) {
  uint8_t free[X86_MOST_GENERAL];
  uint32_t count = find_free_general(e, free);
  memset(e->loop.general, X86_NO_GENERAL, sizeof e->loop.general);
  for (int changes = 1; changes >= 0; changes--)
    for (uint32_t k = 0; k < e->loop.found.count; k++)
      if (scalars(e)[k].changes == changes) e->loop.general[k] = register_for(e, free, count, k);
}

/* 1 if a register's vectors are in the frame, element 0 first. */
static int is_in_frame(const x86_emit *e, uint32_t reg) {
  return vector_reg_at(e->b->vector, reg)->kind == VECTOR_VARIES &&
         native_location_of(e->b, reg)->kind == NATIVE_SLOT;
}

/* Element 0 of a register's vectors. */
static void read_first(x86_emit *e, uint32_t reg, unsigned to) {
  int is_64 = hg_x86_is_64(e, reg);
  if (is_in_frame(e, reg)) {
    hg_x86_load(&e->a, is_64, to, x86_at(X86_FRAME, (int32_t)native_location_of(e->b, reg)->offset));
    return;
  }
  unsigned from = hg_x86_source_reg(e, reg, 0, 0, hg_x86_scratch(e, 0));
  hg_x86_x(e, is_64 ? X86_vmovq_to_g : X86_vmovd_to_g, from, 0, x86_reg(to));
}

static unsigned general_of(const x86_emit *e, const native_scalar *scalar) {
  return e->loop.general[scalar - e->loop.found.scalar];
}

/* The slot of a scalar that changes and has no register. */
static x86_rm slot_of(const x86_emit *e, const native_scalar *scalar) {
  return x86_at(X86_FRAME, (int32_t)(e->b->scalar_offset + 8 * (uint32_t)(scalar - e->loop.found.scalar)));
}

/* The general register of a scalar; if it has none, `scratch`, loaded with its value. */
static unsigned load_scalar(x86_emit *e, const native_scalar *scalar, unsigned scratch) {
  if (general_of(e, scalar) != X86_NO_GENERAL) return general_of(e, scalar);
  if (scalar->changes) hg_x86_load(&e->a, hg_x86_is_64(e, scalar->reg), scratch, slot_of(e, scalar));
  else read_first(e, scalar->reg, scratch);
  return scratch;
}

static void store_scalar(x86_emit *e, const native_scalar *scalar, unsigned from) {
  int w = hg_x86_is_64(e, scalar->reg);
  if (general_of(e, scalar) == X86_NO_GENERAL) hg_x86_store(&e->a, w, slot_of(e, scalar), from);
  else hg_x86_load(&e->a, w, general_of(e, scalar), x86_reg(from));
}

/* Lane 0's value of a source of 32 or 64 bits; in `scratch` if it has no location of its own. */
static x86_rm scalar_operand(x86_emit *e, uint32_t reg, unsigned scratch) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  const native_scalar *scalar = hg_native_scalar_of(&e->loop.found, reg);
  if (scalar != NULL && general_of(e, scalar) != X86_NO_GENERAL) return x86_reg(general_of(e, scalar));
  if (scalar != NULL && scalar->changes) return slot_of(e, scalar);
  switch (r->kind) {
  case VECTOR_CONSTANT: hg_x86_move_imm64(&e->a, scratch, r->bits); break;
  case VECTOR_SCALAR:
    return x86_at(X86_CONTEXT, hg_x86_place_offset((size_t)r->bits, offsetof(native_place, scalar)));
  case VECTOR_SPECIAL:
    if (r->bits == ATLAS_REG_LANE) return x86_reg(X86_LANE);
    if (r->bits == ATLAS_REG_BLOCK_LANE) return x86_reg(X86_TILE_LANE);
    return x86_at(X86_CONTEXT, (int32_t)(offsetof(native_context, special) + 8 * (r->bits - ATLAS_REG_BLOCK_LANE)));
  default:
    if (is_in_frame(e, reg)) return x86_at(X86_FRAME, (int32_t)native_location_of(e->b, reg)->offset);
    read_first(e, reg, scratch);
    break;
  }
  return x86_reg(scratch);
}

/* ---- entering ---------------------------------------------------------------------------------------------------- */

/* Sets bits of scratch 3 where a register's vectors differ from the prediction by lane 0 and the stride. */
static void guard_stride(x86_emit *e, uint32_t reg, uint8_t stride) {
  int is_64 = hg_x86_is_64(e, reg);
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned parts = is_64 ? 2 : 1;
  read_first(e, reg, X86_RAX);
  for (uint32_t c = 0; c < e->copies; c++)
    for (uint32_t p = 0; p < parts; p++) {
      if (stride || (c == 0 && p == 0))
        hg_x86_count_up(e, s0, X86_RAX, stride ? c * e->lanes + p * (e->lanes / 2u) : 0, is_64);
      if (!stride && c == 0 && p == 0)
        hg_x86_v(e, !is_64 ? X86_vpbroadcastd : e->width == 2 ? X86_vpbroadcastq : X86_vpbroadcastq_vex, s0, 0,
                 x86_reg(s0));
      hg_x86_v(e, X86_vpxord, s2, hg_x86_source_reg(e, reg, c, p, s1), x86_reg(s0));
      hg_x86_v(e, X86_vpord, s3, s3, x86_reg(s2));
    }
}

/* 1 if nothing has to be checked: an access of the first round has the register as its index, and all lanes of the
 * group reach it and are consecutive along x. */
static int is_consecutive(const x86_emit *e, const native_scalar *scalar) {
  const uint32_t *block = native_block(e->b->program);
  if (!e->is_full || block[1] * block[2] != 1 || !e->loop.found.has_all || !scalar->stride) return 0;
  for (uint32_t i = e->loop.found.head + 1; i < e->loop.found.end; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    int is_index = vector_is_primitive(insn->op) && atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE) &&
                   insn->mode == ATLAS_ADDRESS_INDEXED && insn->s[0] == scalar->reg;
    if (is_index && insn->flags & VECTOR_CONTIGUOUS && e->loop.roles[i] & NATIVE_TAKES_ALL) return 1;
    if (insn->d == scalar->reg) return 0;
  }
  return 0;
}

/* Jumps to the slow version unless a predicate is set in all lanes. */
static void guard_lanes(x86_emit *e, uint32_t predicate) {
  for (uint32_t c = 0; c < e->copies; c++) {
    unsigned lanes = hg_x86_predicate(e, predicate, c, e->width == 2 ? 1 : hg_x86_scratch(e, 0));
    if (e->width == 2) {
      hg_x86_k(e, X86_kortestw, lanes, 0, lanes); /* carry: all ones */
      hg_x86_jump_if(&e->a, X86_ABOVE_EQUAL, e->loop.slow_head);
      continue;
    }
    hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg(lanes));
    hg_x86_alu_imm(&e->a, X86_CMP, 0, x86_reg(X86_RAX), 0xff);
    hg_x86_jump_if(&e->a, X86_NOT_EQUAL, e->loop.slow_head);
  }
}

/* Writes the guard: jumps to the slow version if a lane is not in the loop, or if a guess was wrong. */
static void write_guard(x86_emit *e) {
  uint32_t guards = 0;
  unsigned s3 = hg_x86_scratch(e, 3), s2 = hg_x86_scratch(e, 2);
  if (e->loop.found.has_all && e->loop.found.lanes != VECTOR_ALL) guard_lanes(e, e->loop.found.lanes);
  if (e->loop.found.has_all && e->b->vector->loses_lanes && !e->loop.found.has_begun) guard_lanes(e, VECTOR_ALL);
  for (uint32_t k = 0; k < e->loop.found.count; k++)
    if (scalars(e)[k].enters && !scalars(e)[k].is_uniform && !is_consecutive(e, &scalars(e)[k])) {
      if (guards++ == 0) hg_x86_v(e, X86_vpxord, s3, s3, x86_reg(s3));
      guard_stride(e, scalars(e)[k].reg, scalars(e)[k].stride);
    }
  if (guards == 0) return;
  if (e->width == 2) {
    hg_x86_v(e, X86_vptestmd, 0, s3, x86_reg(s3));
    hg_x86_k(e, X86_kortestw, 0, 0, 0);
    hg_x86_jump_if(&e->a, X86_NOT_EQUAL, e->loop.slow_head);
    return;
  }
  hg_x86_v(e, X86_vpxord, s2, s2, x86_reg(s2));
  hg_x86_v(e, X86_vpcmpeqd, s2, s2, x86_reg(s3));
  hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg(s2));
  hg_x86_alu_imm(&e->a, X86_CMP, 0, x86_reg(X86_RAX), 0xff);
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, e->loop.slow_head);
}

/* AVX2 has no masked stores of elements below 32 bits. */
static int is_quick(const x86_emit *e, uint32_t i, const native_scalar *index) {
  const vector_insn *insn = vector_insn_at(e->b->vector, i);
  uint8_t role = e->loop.found.has_all ? e->loop.roles[i] : 0;
  if (index == NULL || index->is_uniform || !hg_native_is_quick(e->b, insn, role, index->stride)) return 0;
  int is_load = (atlas_op_flags(insn->op) & ATLAS_LOAD) != 0;
  return is_load || !e->is_tail || e->width == 2 || atlas_bytes((atlas_type)insn->type) >= 4;
}

/* Finds quick loads of one element that need only one register for all copies. They use the last of their registers,
 * which a value that reuses all of them writes last. */
static void find_kept(x86_emit *e) {
  x86_loop *loop = &e->loop;
  loop->kept_count = 0;
  for (uint32_t i = loop->found.head; i < loop->found.end && loop->kept_count < X86_MOST_KEPT; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    const native_scalar *index = hg_native_scalar_of(&loop->found, insn->s[0]);
    if (!is_quick(e, i, index) || index->stride) continue;
    if (!hg_native_keeps_one(e->b, &loop->found, i)) continue;
    native_location *location = &e->b->locations[insn->d];
    loop->kept[loop->kept_count].reg = insn->d;
    loop->kept[loop->kept_count++].location = *location;
    location->reg[0] = location->reg[(uint32_t)location->copies * location->parts - 1];
    location->copies = location->parts = location->is_uniform = 1;
  }
}

static int allocate_tables(x86_emit *e) {
  uint64_t insns = e->b->vector->insns.count, regs = e->b->vector->regs.count;
  if (e->loop.memory == NULL) e->loop.memory = hg_allocate(&e->b->allocator, 9 * insns + regs, 1);
  if (e->loop.memory == NULL) {
    e->a.no_memory = 1;
    return 0;
  }
  e->loop.quick_label = e->loop.memory;
  e->loop.resume = e->loop.quick_label + insns;
  e->loop.roles = (uint8_t *)(e->loop.resume + insns);
  e->loop.strides = e->loop.roles + insns;
  e->loop.side_exits.element_size = sizeof(x86_side_exit);
  return 1;
}

void hg_x86_release_loop(x86_emit *e) {
  hg_release(&e->b->allocator, e->loop.memory);
  hg_array_release(&e->b->allocator, &e->loop.side_exits);
}

/* 1 if a jump behind the label leads back to it. */
static int is_head(const hg_vector *v, uint32_t head) {
  for (uint32_t i = head + 1; i < v->insns.count && i <= head + CPU_QUICK_LOOP_INSNS; i++)
    if (vector_insn_at(v, i)->target == head) return 1;
  return 0;
}

int hg_x86_find_loop(x86_emit *e, uint32_t head) {
  if (vector_insn_at(e->b->vector, head)->op != VECTOR_LABEL) return 0;
  if (!is_head(e->b->vector, head) || !allocate_tables(e)) return 0;
  uint8_t *roles = e->is_tail ? NULL : e->loop.roles;
  if (!hg_native_find_loop(e->b, head, e->loop.strides, roles, &e->loop.found)) return 0;
  if (e->loop.found.end >= e->region_end) return 0;
  allocate_registers(e);
  memset(e->loop.quick_label, 0xff, 2 * e->b->vector->insns.count * sizeof *e->loop.quick_label);
  return 1;
}

void hg_x86_begin_quick(x86_emit *e) {
  e->loop.slow_head = hg_x86_new_label(&e->a);
  e->loop.folded = VECTOR_NONE;
  write_guard(e);
  for (uint32_t k = 0; k < e->loop.found.count; k++) {
    const native_scalar *scalar = &scalars(e)[k];
    if (!scalar->enters || (!scalar->changes && general_of(e, scalar) == X86_NO_GENERAL)) continue;
    read_first(e, scalar->reg, X86_RAX);
    store_scalar(e, scalar, X86_RAX);
  }
  find_kept(e);
  e->loop.version = X86_QUICK;
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

/* Writes a scalar's vectors, for instructions that need them. */
static void write_vectors(x86_emit *e, const native_scalar *scalar) {
  const vector_insn *insn = e->insn, write = {.op = VECTOR_MOVE, .d = scalar->reg, .mask = VECTOR_ALL};
  int is_64 = hg_x86_is_64(e, scalar->reg);
  unsigned general = load_scalar(e, scalar, X86_RAX);
  e->insn = &write;
  for (uint32_t c = 0; c < e->copies; c++)
    for (uint32_t p = 0; p < hg_x86_parts(e, scalar->reg); p++) {
      unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
      if (scalar->stride) hg_x86_count_up(e, to, general, c * e->lanes + p * (e->lanes / 2u), is_64);
      else if (e->width == 2) hg_x86_v(e, is_64 ? X86_vpbroadcastq_g : X86_vpbroadcastd_g, to, 0, x86_reg(general));
      else {
        hg_x86_x(e, is_64 ? X86_vmovq_from_g : X86_vmovd_from_g, to, 0, x86_reg(general));
        hg_x86_v(e, is_64 ? X86_vpbroadcastq_vex : X86_vpbroadcastd, to, 0, x86_reg(to));
      }
      hg_x86_set_result(e, c, p, to);
    }
  e->insn = insn;
}

int hg_x86_quick_index(x86_emit *e, unsigned *general, uint8_t *stride) {
  const native_scalar *index = NULL;
  if (e->loop.version == X86_QUICK) index = hg_native_scalar_of(&e->loop.found, e->insn->s[0]);
  if (!is_quick(e, e->index, index)) return 0;
  *stride = index->stride;
  *general = load_scalar(e, index, X86_RCX);
  return 1;
}

/* The last instruction of the loop that writes a register; NULL: none does. */
static const vector_insn *writer_of(const x86_emit *e, uint32_t reg) {
  for (uint32_t i = e->loop.found.end; i > e->loop.found.head; i--)
    if (vector_insn_at(e->b->vector, i)->d == reg) return vector_insn_at(e->b->vector, i);
  return NULL;
}

/* 1 if `reg` is loop-invariant but not a constant. */
static int is_kept(const x86_emit *e, uint32_t reg) {
  uint64_t bits;
  return reg < VECTOR_ALL && writer_of(e, reg) == NULL && !hg_x86_constant_bits(e, reg, &bits);
}

uint32_t hg_x86_quick_steps(const x86_emit *e, uint32_t *step) {
  uint32_t index = e->insn->s[0], at = index, adds = 0;
  *step = VECTOR_NONE;
  for (int k = 0; k < CPU_STEP_WRITERS;
       k++) { /* follows the sums back to what was added to, until that is the index again */
    const vector_insn *made = writer_of(e, at);
    if (made == NULL || (made->op != ATLAS_OP_add && made->op != VECTOR_MOVE)) return 0;
    int side = made->op == ATLAS_OP_add && is_kept(e, made->s[0]);
    if (made->op == ATLAS_OP_add) {
      if (!is_kept(e, made->s[!side]) || (adds > 0 && made->s[!side] != *step)) return 0;
      *step = made->s[!side];
      adds++;
    }
    at = made->s[side];
    if (at == index) return adds;
    if (at >= VECTOR_ALL) return 0;
  }
  return 0;
}

void hg_x86_load_step(x86_emit *e, uint32_t step, unsigned to) {
  hg_x86_load(&e->a, hg_x86_is_64(e, e->insn->s[0]), to, scalar_operand(e, step, to));
}

int hg_x86_is_row_start(const x86_emit *e) {
  const vector_insn *made = writer_of(e, e->insn->s[0]);
  for (int k = 0; k < CPU_ROW_START_SUMS && made != NULL && made->op == ATLAS_OP_add; k++) {
    const vector_insn *first = made->s[0] < VECTOR_ALL ? writer_of(e, made->s[0]) : NULL;
    made = first != NULL || made->s[1] >= VECTOR_ALL ? first : writer_of(e, made->s[1]);
  }
  if (made == NULL || (made->op != ATLAS_OP_mad && made->op != ATLAS_OP_mul)) return 0;
  for (int s = 0; s < 2; s++)
    if (made->s[s] < VECTOR_ALL && writer_of(e, made->s[s]) != NULL) return 1;
  return 0;
}

/* Writes the vectors of the scalars that the current instruction reads as vectors. */
static void write_sources(x86_emit *e) {
  const native_scalar *index = hg_native_scalar_of(&e->loop.found, e->insn->s[0]);
  for (int s = is_quick(e, e->index, index); s < 4; s++) {
    const native_scalar *scalar = hg_native_scalar_of(&e->loop.found, e->insn->s[s]);
    if (scalar != NULL && scalar->changes) write_vectors(e, scalar);
  }
}

/* `to` = the result of the current instruction. */
static void write_scalar_result(x86_emit *e, unsigned to, int w) {
  const uint32_t *s = e->insn->s;
  x86_asm *a = &e->a;
  int is_sign_extended = e->insn->op == ATLAS_OP_cvt && w && e->insn->type2 == ATLAS_i32;
  int is_extended = e->insn->op == ATLAS_OP_cvt && !hg_x86_is_64(e, s[0]);
  x86_rm first = scalar_operand(e, s[0], to);
  if (is_sign_extended) hg_x86_load_sign32(a, to, first);
  else if (first.is_memory || first.reg != to || is_extended) hg_x86_load(a, w && !is_extended, to, first);
  switch (e->insn->op) {
  case ATLAS_OP_add: hg_x86_alu_rm(a, X86_ADD, w, to, scalar_operand(e, s[1], X86_RCX)); break;
  case ATLAS_OP_sub: hg_x86_alu_rm(a, X86_SUB, w, to, scalar_operand(e, s[1], X86_RCX)); break;
  case ATLAS_OP_mul: hg_x86_multiply(a, w, to, scalar_operand(e, s[1], X86_RCX)); break;
  case ATLAS_OP_mad:
    hg_x86_multiply(a, w, to, scalar_operand(e, s[1], X86_RCX));
    hg_x86_alu_rm(a, X86_ADD, w, to, scalar_operand(e, s[2], X86_RCX));
    break;
  case ATLAS_OP_shl:
    hg_x86_shift_imm(a, w, X86_SHL, to, (unsigned)vector_reg_at(e->b->vector, s[1])->bits & (w ? 63 : 31));
    break;
  default: break; /* mov, cvt, bitcast */
  }
}

/* general += source: the usual step of an index. */
static int adds_in_place(x86_emit *e, unsigned general, int w) {
  if (general == X86_NO_GENERAL) return 0;
  if (e->insn->op != ATLAS_OP_add || (e->insn->s[0] != e->insn->d && e->insn->s[1] != e->insn->d)) return 0;
  uint32_t other = e->insn->s[e->insn->s[0] == e->insn->d];
  uint64_t bits;
  int is_constant = hg_x86_constant_bits(e, other, &bits);
  if (is_constant && (!w || bits + 0x80000000u < UINT64_C(1) << 32))
    hg_x86_alu_imm(&e->a, X86_ADD, w, x86_reg(general), (int32_t)(uint32_t)bits);
  else hg_x86_alu_rm(&e->a, X86_ADD, w, general, scalar_operand(e, other, X86_RAX));
  return 1;
}

/* A source of 32 or 64 bits, extended to 64. */
static void load_number(x86_emit *e, unsigned to, uint32_t reg, uint8_t type) {
  x86_rm from = scalar_operand(e, reg, to);
  if (type == ATLAS_i32) hg_x86_load_sign32(&e->a, to, from);
  else hg_x86_load(&e->a, type == ATLAS_u64, to, from);
}

/* Leaves the quick version unless the last lane of the group stays in the loop. Sums are exact, or set the carry, so
 * none wraps unnoticed. */
static void write_leaving(x86_emit *e) {
  native_leaving leaving;
  x86_asm *a = &e->a;
  uint32_t exit = hg_x86_side_exit(e);
  if (!hg_native_leaving(e->b, e->loop.strides, e->index, &leaving)) return;
  load_number(e, X86_RAX, leaving.counter, leaving.type);
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_RAX), (int32_t)(e->copies * e->lanes) - 1);
  if (leaving.type == ATLAS_u64) hg_x86_jump_if(a, X86_CARRY, exit);
  load_number(e, X86_RCX, leaving.limit, leaving.type);
  hg_x86_alu_rm(a, X86_CMP, 1, X86_RAX, x86_reg(X86_RCX));
  if (leaving.type == ATLAS_i32) hg_x86_jump_if(a, leaving.reaches_limit ? X86_GREATER : X86_GREATER_EQUAL, exit);
  else hg_x86_jump_if(a, leaving.reaches_limit ? X86_ABOVE : X86_ABOVE_EQUAL, exit);
  e->joined = e->index + 1;
}

/* 1 if only the next instruction, a jump that is not taken, reads the result. */
static int is_read_by_no_code(const x86_emit *e) {
  const vector_insn *next = vector_insn_at(e->b->vector, e->index + 1);
  return vector_is_jump(next->op) && e->loop.roles[e->index + 1] == NATIVE_NO_CHANGE &&
         vector_reg_at(e->b->vector, e->insn->d)->last == e->index + 1;
}

/* Counts a step of all lanes. If lanes may have none left, the slow version finds out. */
static void write_step(x86_emit *e) {
  x86_rm left = x86_at(X86_FRAME, offsetof(native_frame, steps_left));
  hg_x86_alu_imm(&e->a, X86_CMP, 1, left, 1);
  hg_x86_jump_if(&e->a, X86_BELOW, hg_x86_side_exit(e));
  hg_x86_alu_imm(&e->a, X86_SUB, 1, left, 1);
  hg_x86_count_step(e);
  if (hg_x86_role(e) & NATIVE_NO_CHANGE || is_read_by_no_code(e)) return;
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    unsigned scratch = e->width == 2 ? 2 : hg_x86_scratch(e, 0);
    hg_x86_set_predicate_result(e, c, hg_x86_constant_predicate(e, 1, scratch));
  }
}

/* Instructions that need less code, or none, while all lanes are in the loop. 1 if it has written that. */
static int write_with_all(x86_emit *e) {
  uint8_t role = hg_x86_role(e);
  if (role & NATIVE_LEAVES) write_leaving(e);
  else if (e->insn->op == VECTOR_STEP && role != 0 && hg_native_counts_steps(e->b->vector)) write_step(e);
  else if (!(role & NATIVE_NO_CHANGE) || vector_is_jump(e->insn->op)) {
    if (!(role & NATIVE_TAKES_ALL)) return 0;
    e->loop.unmasked = *e->insn;
    e->loop.unmasked.mask = VECTOR_ALL;
    if (role & NATIVE_FIRST_ALL) e->loop.unmasked.s[0] = VECTOR_ALL;
    if (role & NATIVE_SECOND_ALL) e->loop.unmasked.s[1] = VECTOR_ALL;
    e->insn = &e->loop.unmasked;
    return 0;
  }
  return 1;
}

/* 1 if a source other than the first is in the general register, or there is no such register. */
static int reads_general(const x86_emit *e, unsigned general) {
  for (int s = 1; s < 3 && general != X86_NO_GENERAL; s++) {
    const native_scalar *source = hg_native_scalar_of(&e->loop.found, e->insn->s[s]);
    if (source != NULL && general_of(e, source) == general) return 1;
  }
  return general == X86_NO_GENERAL;
}

int hg_x86_quick_insn(x86_emit *e) {
  if (e->loop.version != X86_QUICK) return 0;
  if (write_with_all(e)) return 1;
  const native_scalar *scalar = hg_native_scalar_of(&e->loop.found, e->insn->d);
  if (scalar == NULL) {
    write_sources(e);
    return 0;
  }
  int w = hg_x86_is_64(e, scalar->reg);
  if (adds_in_place(e, general_of(e, scalar), w)) return 1;
  unsigned to = reads_general(e, general_of(e, scalar)) ? X86_RAX : general_of(e, scalar);
  write_scalar_result(e, to, w);
  if (to == X86_RAX) store_scalar(e, scalar, X86_RAX);
  return 1;
}

/* The label of an instruction: a quick loop has labels of its own. The head of a slow loop has another label than jumps
 * from outside use, since these lead to the guards. */
uint32_t hg_x86_label_of(x86_emit *e, uint32_t insn) {
  const x86_loop *loop = &e->loop;
  int is_inside = loop->version == X86_QUICK && insn >= loop->found.head && insn <= loop->found.end;
  uint32_t *labels = is_inside ? loop->quick_label : e->label_of;
  if (loop->version == X86_SLOW && insn == loop->found.head) return loop->slow_head;
  if (labels[insn] == UINT32_MAX) labels[insn] = hg_x86_new_label(&e->a);
  return labels[insn];
}

/* ---- ways out ---------------------------------------------------------------------------------------------------- */

uint32_t hg_x86_side_exit(x86_emit *e) {
  x86_side_exit leave = {.insn = e->index, .label = hg_x86_new_label(&e->a)};
  if (hg_array_append(&e->b->allocator, &e->loop.side_exits, &leave, 1) == NULL) e->a.no_memory = 1;
  return leave.label;
}

static int is_alive(const x86_emit *e, uint32_t reg, uint32_t insn) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  return r->first < insn && r->last >= insn;
}

/* Copies a value that the quick version keeps once into all of its copies. */
static void broadcast_copies(x86_emit *e, const native_location *location) {
  unsigned from = location->reg[(uint32_t)location->copies * location->parts - 1];
  for (uint32_t k = 0; k + 1 < (uint32_t)location->copies * location->parts; k++)
    hg_x86_v(e, X86_vmove, location->reg[k], 0, x86_reg(from));
}

/* Where the loop leads when comparison i leaves no lane in it; VECTOR_NONE: unknown. */
static uint32_t way_out(const x86_emit *e, uint32_t i) {
  const native_loop *loop = &e->loop.found;
  for (i += 2; i < loop->end; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (insn->op == VECTOR_LABEL) continue;
    int leaves = insn->op == VECTOR_JUMP_NONE && insn->s[0] == loop->lanes && insn->mask == VECTOR_ALL;
    return leaves && insn->target > loop->end ? insn->target : VECTOR_NONE;
  }
  return VECTOR_NONE;
}

/* Usually all lanes leave the loop together: then the slow version has nothing to do. Indices that wrap are left to
 * it. */
static void leave_together(x86_emit *e, uint32_t i) {
  native_leaving leaving;
  x86_asm *a = &e->a;
  uint32_t resume = hg_x86_new_label(a), target = way_out(e, i);
  if (target == VECTOR_NONE || !hg_native_leaving(e->b, e->loop.strides, i, &leaving)) return;
  int is_64 = leaving.type == ATLAS_u64;
  if (leaving.type == ATLAS_i32) return;
  load_number(e, X86_RAX, leaving.counter, leaving.type);
  hg_x86_load(a, is_64, X86_RCX, x86_reg(X86_RAX));
  hg_x86_alu_imm(a, X86_ADD, is_64, x86_reg(X86_RCX), (int32_t)(e->copies * e->lanes) - 1);
  hg_x86_jump_if(a, X86_CARRY, resume);
  load_number(e, X86_RCX, leaving.limit, leaving.type);
  hg_x86_alu_rm(a, X86_CMP, 1, X86_RAX, x86_reg(X86_RCX));
  hg_x86_jump_if(a, leaving.reaches_limit ? X86_BELOW_EQUAL : X86_BELOW, resume);
  const vector_insn clear = {.op = VECTOR_CLEAR, .type = SSA_PREDICATE, .d = e->loop.found.lanes, .mask = VECTOR_ALL};
  e->insn = &clear;
  hg_x86_masks(e);
  hg_x86_jump(a, hg_x86_label_of(e, target));
  hg_x86_place(a, resume);
}

/* Writes the side exits behind the quick version: each ends in the slow version. */
void hg_x86_end_quick(x86_emit *e) {
  x86_loop *loop = &e->loop;
  for (uint32_t k = loop->kept_count; k-- > 0;) e->b->locations[loop->kept[k].reg] = loop->kept[k].location;
  for (size_t i = 0; i < loop->side_exits.count && !e->a.no_memory; i++) {
    const x86_side_exit *leave = (const x86_side_exit *)loop->side_exits.data + i;
    hg_x86_place(&e->a, leave->label);
    if (loop->found.has_all && loop->roles[leave->insn] & NATIVE_LEAVES) leave_together(e, leave->insn);
    for (uint32_t k = 0; k < loop->kept_count; k++)
      if (is_alive(e, loop->kept[k].reg, leave->insn)) broadcast_copies(e, &loop->kept[k].location);
    for (uint32_t k = 0; k < loop->found.count; k++)
      if (scalars(e)[k].changes && is_alive(e, scalars(e)[k].reg, leave->insn)) write_vectors(e, &scalars(e)[k]);
    if (loop->resume[leave->insn] == UINT32_MAX) loop->resume[leave->insn] = hg_x86_new_label(&e->a);
    hg_x86_jump(&e->a, loop->resume[leave->insn]);
  }
  loop->side_exits.count = 0;
  loop->version = X86_SLOW;
  e->joined = UINT32_MAX;
  hg_x86_place(&e->a, loop->slow_head);
}
