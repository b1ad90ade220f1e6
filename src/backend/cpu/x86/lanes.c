/* lanes.c - scalarised accesses: atomics, and the loads and stores that no vector instruction can do, as a loop over
 * the set bits of the mask that reads each lane's index and values from vectors spilled to the frame.
 *
 * C code handles a copy with a lane out of bounds. A block is run by one worker, so shared memory needs no lock. Lanes
 * that update one location without using its old value are combined first. */
#include "backend/cpu/engine/cpu_tuning.h"
#include "backend/cpu/x86/x86_memory.h"

#include "compiler/machine_ops.h"

#include <stddef.h>

/* Vectors in the frame where calls save registers, two each. A lane's old value replaces its operand. */
enum { INDICES = 0, VALUES = 2, COMPARANDS = 4 };

/* General registers of the loop: rcx lane, rbx value, rax old value of the location, r12 mask, r13 index. If the old
 * value is not used, rax is the mask and rcx the index, and of a load rbx, so that only rbx has to be restored after
 * the loop. */
typedef struct access {
  uint16_t op;
  uint8_t type, bytes, is_64, log_bytes; /* of the elements */
  uint8_t is_load, is_store;
  uint8_t is_pool;          /* 1: indices and displacement count bytes */
  uint8_t is_shared;        /* 1: no other worker sees the memory */
  uint8_t is_local;         /* 1: the spilled numbers are 32-bit positions in memory (hg_x86_local_index) */
  uint8_t is_signed;
  uint8_t is_short;      /* 1: the old value is not used, and one instruction performs the update */
  uint8_t is_immediate;  /* 1: its second operand is a constant that fits the instruction */
  uint8_t mask, place;   /* registers: the bits of the lanes that are left; the index */
  uint32_t index, value, compared; /* registers of the program; index: VECTOR_NONE if there is none */
  int32_t immediate;
  int32_t displacement;  /* elements; for a pool bytes, a multiple of an element's */
  int32_t lane;          /* the current lane; -1: the one whose number is in rcx */
  uint8_t is_whole;      /* 1: all lanes of the vector take part */
  uint8_t is_loaded;     /* 1: `loaded` is the memory that lane 0's index was loaded from, `loaded_bytes` an index */
  uint8_t loaded_bytes;
  x86_rm loaded;
} access;

/* ---- one location ------------------------------------------------------------------------------------------------ */

static x86_alu alu_of(uint16_t op) {
  return op == ATLAS_OP_atom_add ? X86_ADD : op == ATLAS_OP_atom_and ? X86_AND
                                         : op == ATLAS_OP_atom_or    ? X86_OR
                                                                     : X86_XOR;
}

/* Writes the lock prefix of the next instruction. It is skipped at run time if no other worker sees the memory. */
static void write_lock(x86_emit *e, const access *m) {
  static const uint8_t jne_behind_prefix[2] = {0x75, 1};
  if (m->is_shared) return;
  int32_t is_own = hg_x86_place_offset(e->insn->symbol, offsetof(native_place, is_own));
  hg_x86_alu_imm(&e->a, X86_CMP, 1, x86_at(X86_CONTEXT, is_own), 0);
  hg_x86_bytes(&e->a, jne_behind_prefix, sizeof jne_behind_prefix);
  hg_x86_lock(&e->a);
}

/* The place of the current lane in a vector of the frame. */
static x86_rm in_frame(const x86_emit *e, const access *m, int vector, int is_64) {
  size_t offset = offsetof(native_frame, vectors) + (size_t)vector * e->vector_bytes;
  if (m->lane < 0) return x86_indexed(X86_FRAME, X86_RCX, is_64 ? 3 : 2, (int32_t)offset);
  return x86_at(X86_FRAME, (int32_t)offset + m->lane * (is_64 ? 8 : 4));
}

/* The condition, comparing the old value with the operand, on which the old value is kept. */
static x86_condition stays_if(const access *m) {
  if (m->op == ATLAS_OP_atom_min) return m->is_signed ? X86_LESS_EQUAL : X86_BELOW_EQUAL;
  return m->is_signed ? X86_GREATER_EQUAL : X86_ABOVE_EQUAL;
}

/* Writes a compare-and-exchange loop; rax = the old value. */
static void write_compare_exchange_loop(x86_emit *e, const access *m, x86_rm at) {
  x86_asm *a = &e->a;
  uint32_t again = hg_x86_new_label(a), stays = hg_x86_new_label(a);
  hg_x86_load(a, m->is_64, X86_RAX, at);
  hg_x86_place(a, again);
  if (x86_is_alu_update(m->op)) {
    hg_x86_load(a, m->is_64, X86_RBX, x86_reg(X86_RAX));
    hg_x86_alu_rm(a, alu_of(m->op), m->is_64, X86_RBX, in_frame(e, m, VALUES, m->is_64));
  } else {
    hg_x86_alu_rm(a, X86_CMP, m->is_64, X86_RAX, x86_reg(X86_RBX));
    hg_x86_jump_if(a, stays_if(m), stays);
  }
  write_lock(e, m);
  hg_x86_compare_exchange(a, m->is_64, at, X86_RBX);
  hg_x86_jump_if(a, X86_NOT_EQUAL, again);
  hg_x86_place(a, stays);
}

/* Moves rbx from or to memory. */
static void write_move(x86_emit *e, const access *m, x86_rm at) {
  x86_asm *a = &e->a;
  int is_signed = m->type == ATLAS_i8 || m->type == ATLAS_i16;
  if (m->is_store) hg_x86_store_narrow(a, m->bytes, at, X86_RBX);
  else if (m->bytes < 4) hg_x86_load_narrow(a, m->bytes, is_signed, X86_RBX, at);
  else hg_x86_load(a, m->is_64, X86_RBX, at);
}

/* Writes one access with the operand in rbx. A load's value is in rbx afterwards; the old value of others, unless they
 * are short, in rax. */
static void write_update(x86_emit *e, const access *m, x86_rm at) {
  x86_asm *a = &e->a;
  if (m->is_load || m->is_store) {
    write_move(e, m, at);
    return;
  }
  switch ((machine_atomic)hg_machine_op(m->op)) {
  case ATOMIC_atom_exch:
    if (m->is_short) hg_x86_store(a, m->is_64, at, X86_RBX);
    else {
      hg_x86_load(a, 1, X86_RAX, x86_reg(X86_RBX));
      hg_x86_exchange_memory(a, m->is_64, at, X86_RAX);
    }
    return;
  case ATOMIC_atom_cas:
    hg_x86_load(a, m->is_64, X86_RAX, in_frame(e, m, COMPARANDS, m->is_64));
    write_lock(e, m);
    hg_x86_compare_exchange(a, m->is_64, at, X86_RBX);
    return;
  case ATOMIC_atom_add:
    if (m->is_short) break;
    hg_x86_load(a, 1, X86_RAX, x86_reg(X86_RBX));
    write_lock(e, m);
    hg_x86_add_fetch(a, m->is_64, at, X86_RAX);
    return;
  case ATOMIC_atom_and:
  case ATOMIC_atom_or:
  case ATOMIC_atom_xor:
  case ATOMIC_atom_min:
  case ATOMIC_atom_max:
    if (m->is_short) break;
    write_compare_exchange_loop(e, m, at);
    return;
  }
  write_lock(e, m);
  if (m->is_immediate) hg_x86_alu_imm(a, alu_of(m->op), m->is_64, at, m->immediate);
  else hg_x86_alu_store(a, alu_of(m->op), m->is_64, at, X86_RBX);
}

/* ---- the lanes of a copy ----------------------------------------------------------------------------------------- */

/* Stores a vector in halves of 32 bytes: an element of a 64-byte store can be loaded only later. Stores of u8 with an
 * index for each lane, Sapphire Rapids: 0.43 ns a lane, 0.68 with whole vectors. */
static void write_vector(x86_emit *e, unsigned reg, x86_rm to) {
  enum { HALF = 32 };
  x86_vector_insn half = {.op = X86_vstore, .width = 1, .reg = (uint8_t)reg, .rm = to};
  hg_x86_vector(&e->a, &half);
  if (e->width != 2) return;
  to.displacement += HALF;
  hg_x86_vi(e, X86_vextracti64x4, reg, 0, to, 1);
}

static void write_vectors(x86_emit *e, int vector, uint32_t reg, uint32_t copy) {
  size_t offset = offsetof(native_frame, vectors) + (size_t)vector * e->vector_bytes;
  for (uint32_t p = 0; p < (hg_x86_is_64(e, reg) ? 2u : 1u); p++)
    write_vector(e, hg_x86_source_reg(e, reg, copy, p, hg_x86_scratch(e, 0)),
                 x86_at(X86_FRAME, (int32_t)(offset + p * e->vector_bytes)));
}

/* eax = the lanes that take part; jumps to `none` if there are none. */
static void load_mask(x86_emit *e, uint32_t copy, uint32_t none) {
  int mask = hg_x86_mask(e, copy, e->width == 2 ? 1 : hg_x86_scratch(e, 1));
  if (mask < 0) {
    hg_x86_move_imm(&e->a, X86_RAX, (UINT32_C(1) << e->lanes) - 1);
    return;
  }
  if (e->width == 2) hg_x86_k(e, X86_kmovw_to_g, X86_RAX, 0, (unsigned)mask);
  else hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg((unsigned)mask));
  hg_x86_test(&e->a, 0, X86_RAX, X86_RAX);
  hg_x86_jump_if(&e->a, X86_EQUAL, none);
}

/* Adds to ecx the lanes of a pool whose index is not a multiple of the element's bytes. */
static void lanes_misaligned_evex(x86_emit *e, const x86_bound *b, uint32_t copy) {
  int is_64 = hg_x86_is_64(e, b->index);
  x86_rm low_bits = hg_x86_constant(e, b->low_bits, is_64);
  unsigned test = is_64 ? X86_vptestmq : X86_vptestmd;
  hg_x86_v(e, test, 0, hg_x86_source_reg(e, b->index, copy, 0, hg_x86_scratch(e, 1)), low_bits);
  if (is_64) {
    hg_x86_v(e, test, 2, hg_x86_source_reg(e, b->index, copy, 1, hg_x86_scratch(e, 1)), low_bits);
    hg_x86_k(e, X86_kunpckbw, 0, 2, 0);
  }
  hg_x86_k(e, X86_kmovw_to_g, X86_RDX, 0, 0);
  hg_x86_alu_rm(&e->a, X86_OR, 0, X86_RCX, x86_reg(X86_RDX));
}

/* ecx = the lanes that are out of bounds. */
static void lanes_outside(x86_emit *e, const x86_bound *b, uint32_t copy) {
  if (e->width == 2) {
    hg_x86_compare_evex(e, b, copy, 0, X86_IS_NOT_BELOW);
    hg_x86_k(e, X86_kmovw_to_g, X86_RCX, 0, 0);
    if (b->low_bits > 0) lanes_misaligned_evex(e, b, copy);
  } else {
    hg_x86_compare_vex(e, b, copy);
    hg_x86_v(e, X86_vmovmskps, X86_RCX, 0, x86_reg(hg_x86_scratch(e, 2)));
  }
}

/* Jumps to `slow` if a lane of eax, or of all, is out of bounds. */
static void check_bounds(x86_emit *e, const access *m, uint32_t copy, uint32_t slow) {
  x86_asm *a = &e->a;
  size_t symbol = e->insn->symbol;
  if (e->insn->flags & VECTOR_IN_BOUNDS || symbol & SSA_LIBRARY) return;
  if (m->index == VECTOR_NONE) {
    hg_x86_alu_imm(a, X86_CMP, 1, x86_at(X86_CONTEXT, hg_x86_place_offset(symbol, offsetof(native_place, extent))),
                   m->displacement);
    hg_x86_jump_if(a, X86_BELOW_EQUAL, slow);
    return;
  }
  x86_rm limit = x86_at(X86_CONTEXT, hg_x86_place_offset(symbol, offsetof(native_place, limit)));
  int32_t after = m->displacement > 0 ? m->displacement : 0;
  x86_bound bound = {.index = m->index, .limit = X86_RCX, .added = m->displacement - after};
  if (m->is_pool) bound.low_bits = (uint8_t)(m->bytes - 1);
  if (hg_x86_load_limit(e, X86_RCX, limit, after + bound.low_bits)) hg_x86_jump_if(a, X86_BELOW_EQUAL, slow);
  lanes_outside(e, &bound, copy);
  hg_x86_test(a, 0, X86_RCX, m->is_whole ? X86_RCX : X86_RAX);
  hg_x86_jump_if(a, X86_NOT_EQUAL, slow);
}

static int is_signed_index(const x86_emit *e, const access *m) {
  return m->is_local || atlas_kind((atlas_type)hg_x86_type(e, m->index)) == ATLAS_KIND_SINT;
}

static int is_64_bit_index(const x86_emit *e, const access *m) { return !m->is_local && hg_x86_is_64(e, m->index); }

/* The address of the current lane's location. */
static x86_rm location_of_lane(x86_emit *e, const access *m, unsigned base) {
  int32_t offset = m->displacement * (1 << m->log_bytes);
  if (m->index == VECTOR_NONE) return x86_at(base, offset);
  int is_64 = is_64_bit_index(e, m);
  x86_rm from = in_frame(e, m, INDICES, is_64);
  if (!is_64 && is_signed_index(e, m)) hg_x86_load_sign32(&e->a, m->place, from);
  else hg_x86_load(&e->a, is_64, m->place, from);
  return x86_indexed(base, m->place, m->log_bytes, offset);
}

/* The same for lanes in order, fetching two 32-bit indices at a time. */
static x86_rm location_of_next_lane(x86_emit *e, const access *m, unsigned base) {
  x86_asm *a = &e->a;
  if (m->is_loaded) {
    x86_rm from = m->loaded;
    from.displacement += m->lane * m->loaded_bytes;
    hg_x86_load_narrow(a, m->loaded_bytes, 0, X86_RAX, from);
    return x86_indexed(base, X86_RAX, m->log_bytes, m->displacement * (1 << m->log_bytes));
  }
  if (m->index == VECTOR_NONE || is_64_bit_index(e, m) || m->is_store) return location_of_lane(e, m, base);
  int is_signed = is_signed_index(e, m);
  unsigned place = m->lane % 2 == 0 ? X86_RAX : X86_RCX;
  if (m->lane % 2 != 0) hg_x86_shift_imm(a, 1, is_signed ? X86_SAR : X86_SHR, X86_RCX, 32);
  else {
    hg_x86_load(a, 1, X86_RCX, in_frame(e, m, INDICES, 0));
    if (is_signed) hg_x86_load_sign32(a, X86_RAX, x86_reg(X86_RCX));
    else hg_x86_load(a, 0, X86_RAX, x86_reg(X86_RCX));
  }
  return x86_indexed(base, place, m->log_bytes, m->displacement * (1 << m->log_bytes));
}

static void load_value(x86_emit *e, const access *m) {
  if (!m->is_immediate && !m->is_load) hg_x86_load(&e->a, m->is_64, X86_RBX, in_frame(e, m, VALUES, m->is_64));
}

/* Without a loop, for a vector whose lanes all take part. */
static void keep_result(x86_emit *e, const access *m) {
  if (e->insn->d == VECTOR_NONE) return;
  hg_x86_store(&e->a, m->is_64, in_frame(e, m, VALUES, m->is_64), m->is_load ? X86_RBX : X86_RAX);
}

static void update_all(x86_emit *e, access *m, unsigned base, uint32_t otherwise) {
  if (!m->is_whole) {
    hg_x86_alu_imm(&e->a, X86_CMP, 0, x86_reg(X86_RAX), (1 << e->lanes) - 1);
    hg_x86_jump_if(&e->a, X86_NOT_EQUAL, otherwise);
  }
  for (m->lane = 0; m->lane < e->lanes; m->lane++) {
    load_value(e, m);
    write_update(e, m, location_of_next_lane(e, m, base));
    keep_result(e, m);
  }
  m->lane = -1;
}

static void update_lanes(x86_emit *e, access *m, unsigned base) {
  x86_asm *a = &e->a;
  uint32_t next = hg_x86_new_label(a), some = hg_x86_new_label(a), done = hg_x86_new_label(a);
  if (m->mask == X86_RAX && !e->is_tail && !e->leaves_out) {
    update_all(e, m, base, some);
    if (m->is_whole) return;
    hg_x86_jump(a, done);
    hg_x86_place(a, some);
  }
  if (m->mask != X86_RAX) hg_x86_load(a, 0, m->mask, x86_reg(X86_RAX));
  hg_x86_place(a, next);
  hg_x86_tzcnt(a, 0, X86_RCX, x86_reg(m->mask));
  load_value(e, m);
  write_update(e, m, location_of_lane(e, m, base));
  keep_result(e, m);
  hg_x86_blsr(a, 0, m->mask, x86_reg(m->mask));
  hg_x86_jump_if(a, X86_NOT_EQUAL, next);
  hg_x86_place(a, done);
}

/* ---- one location for all lanes ---------------------------------------------------------------------------------- */

/* rbx = the combined values of the lanes of eax, the first of which is rcx. */
static void gather_values(x86_emit *e, const access *m) {
  x86_asm *a = &e->a;
  uint32_t next = hg_x86_new_label(a), done = hg_x86_new_label(a);
  x86_rm value = in_frame(e, m, VALUES, m->is_64);
  uint64_t bits;
  if (m->op == ATLAS_OP_atom_add && hg_x86_constant_bits(e, m->value, &bits) && bits == 1) {
    hg_x86_popcnt(a, 0, X86_RBX, x86_reg(X86_RAX));
    return;
  }
  hg_x86_load(a, m->is_64, X86_RBX, value);
  hg_x86_blsr(a, 0, X86_RAX, x86_reg(X86_RAX));
  hg_x86_jump_if(a, X86_EQUAL, done);
  hg_x86_place(a, next);
  hg_x86_tzcnt(a, 0, X86_RCX, x86_reg(X86_RAX));
  if (x86_is_alu_update(m->op)) hg_x86_alu_rm(a, alu_of(m->op), m->is_64, X86_RBX, value);
  else {
    hg_x86_load(a, m->is_64, X86_R12, value);
    hg_x86_alu_rm(a, X86_CMP, m->is_64, X86_R12, x86_reg(X86_RBX));
    hg_x86_move_if(a, stays_if(m), m->is_64, X86_RBX, x86_reg(X86_R12));
  }
  hg_x86_blsr(a, 0, X86_RAX, x86_reg(X86_RAX));
  hg_x86_jump_if(a, X86_NOT_EQUAL, next);
  hg_x86_place(a, done);
}

/* Of several stores the highest lane's value remains. */
static void update_once(x86_emit *e, const access *m, unsigned base) {
  if (m->is_store) {
    hg_x86_lzcnt(&e->a, 0, X86_RCX, x86_reg(X86_RAX));
    hg_x86_alu_imm(&e->a, X86_XOR, 0, x86_reg(X86_RCX), 31);
  } else hg_x86_tzcnt(&e->a, 0, X86_RCX, x86_reg(X86_RAX));
  x86_rm at = location_of_lane(e, m, base);
  if (m->is_store) load_value(e, m);
  else gather_values(e, m);
  write_update(e, m, at);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* 1 if this file can write the access. */
static int describe(const x86_emit *e, access *m) {
  static const uint8_t log_of[9] = {[1] = 0, [2] = 1, [4] = 2, [8] = 3};
  const vector_insn *insn = e->insn;
  uint32_t flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) return 0;
  if (insn->mode > ATLAS_ADDRESS_INDEXED) return 0;
  int64_t displacement = (int64_t)insn->bits;
  if (displacement > NATIVE_GREATEST_DISPLACEMENT || displacement < -NATIVE_GREATEST_DISPLACEMENT) return 0;
  if (insn->d != VECTOR_NONE && native_location_of(e->b, insn->d)->is_uniform) return 0;
  uint32_t is_indexed = insn->mode == ATLAS_ADDRESS_INDEXED, is_cas = insn->op == ATLAS_OP_atom_cas;
  *m = (access){.op = insn->op, .type = insn->type, .displacement = (int32_t)displacement, .lane = -1};
  m->bytes = (uint8_t)atlas_bytes((atlas_type)insn->type);
  m->is_64 = m->bytes == 8;
  m->is_pool = (flags & ATLAS_SPACE_POOL) != 0;
  m->log_bytes = m->is_pool ? 0 : log_of[m->bytes];
  m->is_load = (flags & ATLAS_LOAD) != 0;
  m->is_store = (flags & ATLAS_STORE) != 0;
  m->is_signed = atlas_kind((atlas_type)insn->type) == ATLAS_KIND_SINT;
  m->is_shared = !(insn->symbol & SSA_LIBRARY) &&
                 atlas_symbol_at(e->b->program, insn->symbol)->kind == ATLAS_SYMBOL_SHARED;
  m->index = is_indexed ? insn->s[0] : VECTOR_NONE;
  m->compared = is_cas ? insn->s[is_indexed] : VECTOR_NONE;
  m->value = m->is_load ? VECTOR_NONE : insn->s[is_indexed + is_cas];
  m->is_short = insn->d == VECTOR_NONE && (x86_is_alu_update(m->op) || m->op == ATLAS_OP_atom_exch || m->is_store);
  m->is_local = (flags & ATLAS_SPACE_LOCAL) != 0; /* local.c writes accesses whose lanes all have one index */
  if (m->is_local && (m->index == VECTOR_NONE || hg_x86_is_uniform(e, m->index))) return 0;
  if (m->is_local && (displacement >= ATLAS_MAX_LOCAL_BYTES || displacement <= -ATLAS_MAX_LOCAL_BYTES)) return 0;
  if (m->is_pool) return is_indexed && displacement % m->bytes == 0;
  return is_indexed || displacement >= 0;
}

static int is_done_once(const x86_emit *e, const access *m) {
  if (m->is_load || e->insn->d != VECTOR_NONE || m->op == ATLAS_OP_atom_cas || m->op == ATLAS_OP_atom_exch) return 0;
  return m->index == VECTOR_NONE || hg_x86_is_uniform(e, m->index);
}

static void choose_registers(const x86_emit *e, access *m, int is_once) {
  uint64_t bits;
  int is_short = m->is_short && !is_once;
  m->mask = is_short || m->is_load ? X86_RAX : X86_R12;
  m->place = m->is_load ? X86_RBX : is_short ? X86_RCX : X86_R13;
  if (!is_short || !x86_is_alu_update(m->op) || !hg_x86_constant_bits(e, m->value, &bits)) return;
  m->immediate = (int32_t)(uint32_t)bits;
  m->is_immediate = !m->is_64 || (uint64_t)(int64_t)m->immediate == bits;
}

/* Restores the registers of the region that the loop has used. */
static void restore_registers(x86_emit *e, const access *m) {
  x86_asm *a = &e->a;
  if (!m->is_immediate) hg_x86_load(a, 1, X86_LANE, x86_at(X86_FRAME, offsetof(native_frame, lane)));
  if (m->mask == X86_RAX || !e->uses_tile_lane) return;
  hg_x86_load(a, 1, X86_ROWS, x86_at(X86_CONTEXT, offsetof(native_context, rows)));
  hg_x86_load(a, 1, X86_TILE_LANE, x86_at(X86_CONTEXT, offsetof(native_context, lane_in_tile)));
  hg_x86_alu_rm(a, X86_ADD, 1, X86_TILE_LANE, x86_reg(X86_LANE));
}

/* Sets a result to 0 in lanes that are left out: see faults.c. */
static void clear_left_out(x86_emit *e, uint32_t copy, uint32_t part, unsigned reg) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  if (!e->leaves_out) return;
  unsigned mask = (unsigned)hg_x86_mask(e, copy, (unsigned)x86_mask_scratch(e));
  if (is_64) mask = hg_x86_mask_part(e, mask, part, mask);
  if (e->width == 2) hg_x86_vk(e, is_64 ? X86_vmove64 : X86_vmove, reg, 0, x86_reg(reg), 0, mask, 1);
  else hg_x86_v(e, X86_vpandd, reg, reg, x86_reg(mask));
}

static void load_results(x86_emit *e, const access *m, uint32_t copy) {
  size_t offset = offsetof(native_frame, vectors) + (size_t)VALUES * e->vector_bytes;
  for (uint32_t p = 0; p < (m->is_64 ? 2u : 1u); p++) {
    unsigned to = hg_x86_result_register(e, copy, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, X86_vload, to, 0, x86_at(X86_FRAME, (int32_t)(offset + p * e->vector_bytes)));
    if (m->type == ATLAS_bool) hg_x86_v(e, X86_vpminud, to, to, hg_x86_constant(e, 1, 0));
    clear_left_out(e, copy, p, to);
    hg_x86_set_result(e, copy, p, to);
  }
}

static void write_positions(x86_emit *e, access *m, uint32_t copy) {
  size_t offset = offsetof(native_frame, vectors) + (size_t)INDICES * e->vector_bytes;
  write_vector(e, hg_x86_local_index(e, m->index, copy), x86_at(X86_FRAME, (int32_t)offset));
  m->displacement = x86_local_element(e, m->displacement, copy);
}

/* Finds the memory that a loop over a row loaded the copy's indices from, if they are bytes or words that this launch
 * does not write: they are read from there instead of by way of the frame. Others may write them meanwhile: see
 * write_loaded. */
static void find_loaded(x86_emit *e, access *m, uint32_t copy) {
  const vector_insn *insn = e->insn, *load = NULL;
  uint32_t index = e->index, at = index;
  unsigned general;
  uint8_t stride;
  m->is_loaded = 0;
  if (m->displacement < 0 || e->insn->symbol & SSA_LIBRARY) return;
  while (load == NULL && at-- > e->region_first && index - at <= CPU_OFFSET_LIFE) {
    const vector_insn *before = vector_insn_at(e->b->vector, at);
    if (before->op == VECTOR_LABEL || vector_is_jump(before->op)) return;
    if (before->d == m->index) load = before;
    else if (before->d != VECTOR_NONE && hg_native_scalar_of(&e->loop.found, before->d) != NULL) return;
  }
  if (load == NULL || !(atlas_op_flags(load->op) & ATLAS_LOAD) || !(load->flags & VECTOR_READ_ONLY)) return;
  if ((load->type != ATLAS_u8 && load->type != ATLAS_u16) || e->base_of[load->symbol] < 0) return;
  e->insn = load;
  e->index = at;
  if (hg_x86_role(e) & NATIVE_TAKES_ALL && hg_x86_quick_index(e, &general, &stride) && stride &&
      general != X86_RCX) {
    m->is_loaded = 1;
    m->loaded_bytes = (uint8_t)atlas_bytes((atlas_type)load->type);
    m->loaded = x86_indexed((unsigned)e->base_of[load->symbol], general, m->loaded_bytes - 1u,
                            ((int32_t)load->bits + (int32_t)(copy * e->lanes)) * m->loaded_bytes);
  }
  e->insn = insn;
  e->index = index;
}

static void access_lanes(x86_emit *e, access *m, uint32_t c, int is_once) {
  if (m->is_local) write_positions(e, m, c);
  else if (m->index != VECTOR_NONE && !m->is_loaded) write_vectors(e, INDICES, m->index, c);
  if (!m->is_immediate && !m->is_load) write_vectors(e, VALUES, m->value, c);
  if (m->compared != VECTOR_NONE) write_vectors(e, COMPARANDS, m->compared, c);
  if (!m->is_immediate) hg_x86_store(&e->a, 1, x86_at(X86_FRAME, offsetof(native_frame, lane)), X86_LANE);
  unsigned base = m->is_local ? hg_x86_local_base(e, m->log_bytes) : hg_x86_base(e);
  if (is_once) update_once(e, m, base);
  else update_lanes(e, m, base);
  restore_registers(e, m);
  if (e->insn->d != VECTOR_NONE) load_results(e, m, c);
}

/* An index that is loaded again need not be the one that was compared, since somebody else may write it meanwhile. So
 * this is done only if every number of its type is in bounds. */
static void write_loaded(x86_emit *e, access *m, uint32_t c, uint32_t done) {
  int32_t greatest = (int32_t)((1u << 8 * m->loaded_bytes) - 1), limit = (int32_t)offsetof(native_place, limit);
  uint32_t otherwise = hg_x86_new_label(&e->a);
  hg_x86_alu_imm(&e->a, X86_CMP, 1, x86_at(X86_CONTEXT, hg_x86_place_offset(e->insn->symbol, (size_t)limit)),
                 greatest + m->displacement);
  hg_x86_jump_if(&e->a, X86_BELOW_EQUAL, otherwise);
  access_lanes(e, m, c, 0);
  hg_x86_jump(&e->a, done);
  hg_x86_place(&e->a, otherwise);
  m->is_loaded = 0;
}

/* `described` is the access in all copies. */
static void write_copy(x86_emit *e, const access *described, uint32_t c) {
  access now = *described, *m = &now;
  int is_once = is_done_once(e, m);
  uint32_t slow = hg_x86_slow_path(e, c), none = hg_x86_new_label(&e->a);
  choose_registers(e, m, is_once);
  int is_whole_in_loop = (hg_x86_role(e) & NATIVE_TAKES_ALL) != 0;
  int has_all =
      e->insn->mask == VECTOR_ALL && !e->leaves_out && !e->is_tail && !hg_x86_loses_lanes(e);
  m->is_whole = !is_once && m->mask == X86_RAX && (is_whole_in_loop || has_all);
  if (m->is_whole && is_whole_in_loop && m->index != VECTOR_NONE && !m->is_local) find_loaded(e, m, c);
  if (!m->is_whole) load_mask(e, c, none);
  if (m->is_loaded) write_loaded(e, m, c, none);
  check_bounds(e, m, c, slow);
  access_lanes(e, m, c, is_once);
  hg_x86_place(&e->a, none);
  hg_x86_slow_back(e);
}

int hg_x86_lanes_of(x86_emit *e, uint32_t copy) {
  access m;
  if (!describe(e, &m)) return 0;
  write_copy(e, &m, copy);
  return 1;
}

int hg_x86_lanes(x86_emit *e) {
  access m;
  if (!describe(e, &m)) return 0;
  for (uint32_t c = 0; c < e->copies; c++) write_copy(e, &m, c);
  return 1;
}
