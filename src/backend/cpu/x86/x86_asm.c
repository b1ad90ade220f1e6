/* x86_asm.c - encodings of x86-64: legacy, VEX and EVEX prefixes, ModRM and SIB bytes, compressed displacements. After
 * the Intel 64 manual, volume 2, chapter 2. */
#include "backend/cpu/x86/x86_asm.h"

#include <string.h>

const x86_row hg_x86_rows[X86_OP_COUNT] = {
#define X86(id, mnemonic, prefix, map, opcode, w, form, reg, rm, tuple, has)                     \
  {mnemonic,       X86_##prefix,      map,          opcode, w, X86_FORM_##form, X86_CLASS_##reg, \
   X86_CLASS_##rm, X86_TUPLE_##tuple, X86_HAS_##has},
#include "backend/cpu/x86/x86_asm.def"
#undef X86
};

enum { LONGEST_INSN = 16 };

void hg_x86_begin(x86_asm *a, const hg_allocator *allocator, int evex) {
  *a = (x86_asm){.allocator = *allocator, .labels.element_size = sizeof(x86_label), .evex = (uint8_t)evex};
}

void hg_x86_release(x86_asm *a) {
  hg_release(&a->allocator, a->code);
  hg_array_release(&a->allocator, &a->labels);
}

/* Makes room for one more instruction. Without memory the code is overwritten from its start, so writers need no
 * checks. */
static void make_room(x86_asm *a, size_t byte_count) {
  if (a->capacity - a->count >= byte_count) return;
  size_t capacity = a->capacity * 2 + byte_count + 4096;
  uint8_t *code = a->no_memory ? NULL : a->allocator.allocate(a->allocator.user, capacity);
  if (code == NULL) {
    a->no_memory = 1;
    a->count = 0;
    return;
  }
  if (a->count > 0) memcpy(code, a->code, a->count);
  hg_release(&a->allocator, a->code);
  a->code = code;
  a->capacity = capacity;
}

static int begin_insn(x86_asm *a) {
  make_room(a, LONGEST_INSN);
  return a->capacity >= LONGEST_INSN;
}

static void byte(x86_asm *a, unsigned value) { a->code[a->count++] = (uint8_t)value; }

static void dword(x86_asm *a, uint32_t value) {
  memcpy(a->code + a->count, &value, 4); /* the code runs on little-endian machines only */
  a->count += 4;
}

/* The same for an instruction that is written at `to`; returns where the next byte goes. */
static uint8_t *put(uint8_t *to, unsigned value) {
  *to = (uint8_t)value;
  return to + 1;
}

static uint8_t *put_dword(uint8_t *to, uint32_t value) {
  memcpy(to, &value, 4);
  return to + 4;
}

void hg_x86_bytes(x86_asm *a, const void *bytes, size_t count) {
  make_room(a, count);
  if (a->capacity - a->count < count) return;
  memcpy(a->code + a->count, bytes, count);
  a->count += count;
}

/* NOPs of one byte are written as fewer, longer ones. */
void hg_x86_align(x86_asm *a, unsigned alignment, uint8_t filler) {
  static const uint8_t long_nop[8] = {0x0f, 0x1f, 0x84}; /* of [rax + rax + 0] */
  for (size_t left = (alignment - a->count % alignment) % alignment; filler == 0x90 && left >= 8; left -= 8)
    hg_x86_bytes(a, long_nop, sizeof long_nop);
  while (a->count % alignment != 0 && begin_insn(a)) byte(a, filler);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* Writes ModRM and what follows it. A small displacement that is a multiple of 2^log_unit takes one byte. */
static uint8_t *put_modrm(uint8_t *to, unsigned reg, const x86_rm *rm, unsigned log_unit) {
  reg &= 7;
  if (!rm->is_memory) return put(to, 0xc0 | reg << 3 | (rm->reg & 7));
  int32_t d = rm->displacement, reach = 128 << log_unit, small = 0;
  int is_small = ((uint32_t)d & ((1u << log_unit) - 1)) == 0 && d >= -reach && d < reach;
  if (is_small) small = d >> log_unit;
  int has_sib = rm->index != X86_NO_INDEX || (rm->reg & 7) == X86_RSP;
  unsigned mod = d == 0 && (rm->reg & 7) != X86_RBP ? 0 : is_small ? 1 : 2;
  to = put(to, mod << 6 | reg << 3 | (has_sib ? 4u : rm->reg & 7u));
  unsigned index = rm->index == X86_NO_INDEX ? 4 : rm->index & 7u;
  if (has_sib) to = put(to, (unsigned)rm->scale << 6 | index << 3 | (rm->reg & 7u));
  if (mod == 1) to = put(to, (unsigned)small & 0xff);
  return mod == 2 ? put_dword(to, (uint32_t)d) : to;
}

static unsigned bit(unsigned value, unsigned n) { return value >> n & 1; }

/* Bit 3 of the index; 0 without an index. */
static unsigned index_bit(const x86_rm *rm) {
  return rm->is_memory && rm->index != X86_NO_INDEX ? bit(rm->index, 3) : 0;
}

/* ---- vector instructions ----------------------------------------------------------------------------------------- */

/* As a power of two. */
static unsigned displacement_unit(const x86_row *row, const x86_vector_insn *insn) {
  unsigned element = row->w ? 3 : 2, vector = 4u + insn->width;
  switch (row->tuple) {
  case X86_TUPLE_FULL: return insn->rm.broadcast ? element : vector;
  case X86_TUPLE_MEM: return vector;
  case X86_TUPLE_HALF: return vector - 1;
  case X86_TUPLE_HALF_B: return insn->rm.broadcast ? element : vector - 1;
  case X86_TUPLE_QUARTER: return vector - 2;
  default: return element;
  }
}

static uint8_t *put_evex_prefix(uint8_t *to, const x86_row *row, const x86_vector_insn *insn) {
  const x86_rm *rm = &insn->rm;
  unsigned x = rm->is_memory ? index_bit(rm) : bit(rm->reg, 4);
  unsigned v4 = bit(insn->vvvv, 4);
  if (rm->is_memory && rm->index != X86_NO_INDEX) v4 |= bit(rm->index, 4); /* a vector index: bit 4 takes the place */
  unsigned p0 = ((bit(insn->reg, 3) << 7 | x << 6 | bit(rm->reg, 3) << 5 | bit(insn->reg, 4) << 4) ^ 0xf0) | row->map;
  unsigned p1 = (unsigned)row->w << 7 | (~insn->vvvv & 15u) << 3 | 4 | row->prefix;
  unsigned p2 = (unsigned)insn->zero << 7 | (unsigned)insn->width << 5 | (unsigned)rm->broadcast << 4 | (v4 ^ 1) << 3 |
                insn->mask;
  return put_dword(to, 0x62 | p0 << 8 | p1 << 16 | p2 << 24);
}

static uint8_t *put_vex_prefix(uint8_t *to, const x86_row *row, const x86_vector_insn *insn) {
  const x86_rm *rm = &insn->rm;
  unsigned is_long = insn->width > 0, r = bit(insn->reg, 3), x = index_bit(rm), b = bit(rm->reg, 3);
  unsigned low = (~insn->vvvv & 15u) << 3 | is_long << 2 | row->prefix;
  if (x == 0 && b == 0 && row->map == 1 && !row->w) {
    to = put(to, 0xc5);
    return put(to, (r ^ 1) << 7 | low);
  }
  to = put(to, 0xc4);
  to = put(to, ((r << 7 | x << 6 | b << 5) ^ 0xe0) | row->map);
  return put(to, (unsigned)row->w << 7 | low);
}

/* The instruction for the lowest elements only. The others come from a further operand where the row has none: a
 * register that the instruction waits for anyway, if there is one. */
static void make_scalar(x86_row *row, x86_vector_insn *insn) {
  if (row->form == X86_FORM_RM) insn->vvvv = insn->rm.is_memory ? insn->reg : (uint8_t)insn->rm.reg;
  if (row->map == 1) row->prefix = row->prefix == X86_P0 ? X86_PF3 : X86_PF2;
  else row->opcode |= 1;
}

void hg_x86_vector(x86_asm *a, const x86_vector_insn *insn) {
  x86_row row = hg_x86_rows[insn->op];
  a->last = *insn;
  if (insn->is_scalar) make_scalar(&row, &a->last);
  if (!begin_insn(a)) return;
  insn = &a->last;
  uint8_t *to = a->code + a->count;
  int evex = row.has == X86_HAS_E || (a->evex && row.has == X86_HAS_EV);
  to = evex ? put_evex_prefix(to, &row, insn) : put_vex_prefix(to, &row, insn);
  to = put(to, row.opcode);
  to = put_modrm(to, row.form == X86_FORM_VMI ? row.reg_class : insn->reg, &insn->rm,
                 evex && insn->rm.is_memory ? displacement_unit(&row, insn) : 0);
  if (row.form >= X86_FORM_VMI) to = put(to, insn->immediate);
  a->last_start = a->count;
  a->last_end = a->count = (size_t)(to - a->code);
}

/* 1 if an instruction maps elements to elements of the same size, in a register that it does not read. Such rows of the
 * table begin at vaddps. */
static int is_plain(uint16_t op) {
  return op <= X86_vsqrtpd || (op >= X86_vpandd && op <= X86_vpxorq) ||
         (op >= X86_vpaddd && op <= X86_vpsravq);
}

int hg_x86_redirect(x86_asm *a, unsigned was, unsigned reg, unsigned mask, int is_64) {
  x86_vector_insn insn = a->last;
  if (a->last_end != a->count || a->no_memory || !is_plain(insn.op) || insn.reg != was || insn.mask != 0) return 0;
  if (hg_x86_rows[insn.op].w != is_64 || !a->evex) return 0;
  insn.reg = (uint8_t)reg;
  insn.mask = (uint8_t)mask;
  a->count = a->last_start;
  hg_x86_vector(a, &insn);
  return 1;
}

/* ---- general instructions ---------------------------------------------------------------------------------------- */

/* Prefix (or 0), REX, opcode bytes (0x0f.. where above 0xff), ModRM. */
static void general(x86_asm *a, unsigned prefix, int w, unsigned opcode, unsigned reg, const x86_rm *rm) {
  if (!begin_insn(a)) return;
  unsigned rex = (unsigned)(w != 0) << 3 | bit(reg, 3) << 2 | index_bit(rm) << 1 | bit(rm->reg, 3);
  uint8_t *to = a->code + a->count;
  if (prefix != 0) to = put(to, prefix);
  if (rex != 0) to = put(to, 0x40 | rex);
  if (opcode > 0xff) to = put(to, opcode >> 8);
  to = put(to, opcode & 0xff);
  a->count = (size_t)(put_modrm(to, reg, rm, 0) - a->code);
}

void hg_x86_alu_rm(x86_asm *a, x86_alu op, int w, unsigned reg, x86_rm rm) {
  general(a, 0, w, (unsigned)op << 3 | 3, reg, &rm);
}

void hg_x86_alu_imm(x86_asm *a, x86_alu op, int w, x86_rm rm, int32_t immediate) {
  int is_small = immediate >= -128 && immediate < 128;
  general(a, 0, w, is_small ? 0x83 : 0x81, op, &rm);
  if (a->no_memory) return;
  if (is_small) byte(a, (unsigned)immediate & 0xff);
  else dword(a, (uint32_t)immediate);
}

void hg_x86_divide_by(x86_asm *a, int w, x86_rm rm) { general(a, 0, w, 0xf7, 6, &rm); }
void hg_x86_multiply(x86_asm *a, int w, unsigned reg, x86_rm rm) { general(a, 0, w, 0x0faf, reg, &rm); }
void hg_x86_load(x86_asm *a, int w, unsigned reg, x86_rm rm) { general(a, 0, w, 0x8b, reg, &rm); }
void hg_x86_store(x86_asm *a, int w, x86_rm rm, unsigned reg) { general(a, 0, w, 0x89, reg, &rm); }
void hg_x86_load_sign32(x86_asm *a, unsigned reg, x86_rm rm) { general(a, 0, 1, 0x63, reg, &rm); }
void hg_x86_lea(x86_asm *a, unsigned reg, x86_rm rm) { general(a, 0, 1, 0x8d, reg, &rm); }
void hg_x86_lea32(x86_asm *a, unsigned reg, x86_rm rm) { general(a, 0, 0, 0x8d, reg, &rm); }
void hg_x86_tzcnt(x86_asm *a, int w, unsigned reg, x86_rm rm) { general(a, 0xf3, w, 0x0fbc, reg, &rm); }
void hg_x86_lzcnt(x86_asm *a, int w, unsigned reg, x86_rm rm) { general(a, 0xf3, w, 0x0fbd, reg, &rm); }
void hg_x86_prefetch(x86_asm *a, unsigned level, x86_rm rm) { general(a, 0, 0, 0x0f18, level, &rm); }
void hg_x86_prefetch_to_write(x86_asm *a, x86_rm rm) { general(a, 0, 0, 0x0f0d, 1, &rm); }
void hg_x86_call_rm(x86_asm *a, x86_rm rm) { general(a, 0, 0, 0xff, 2, &rm); }

void hg_x86_test(x86_asm *a, int w, unsigned reg, unsigned other) {
  x86_rm rm = x86_reg(reg);
  general(a, 0, w, 0x85, other, &rm);
}

void hg_x86_popcnt(x86_asm *a, int w, unsigned reg, x86_rm rm) { general(a, 0xf3, w, 0x0fb8, reg, &rm); }

void hg_x86_move_if(x86_asm *a, x86_condition condition, int w, unsigned reg, x86_rm rm) {
  general(a, 0, w, 0x0f40u + condition, reg, &rm);
}

void hg_x86_exchange(x86_asm *a, unsigned reg, unsigned other) {
  x86_rm rm = x86_reg(reg);
  general(a, 0, 1, 0x87, other, &rm);
}

void hg_x86_exchange_memory(x86_asm *a, int w, x86_rm rm, unsigned reg) { general(a, 0, w, 0x87, reg, &rm); }

void hg_x86_alu_store(x86_asm *a, x86_alu op, int w, x86_rm rm, unsigned reg) {
  general(a, 0, w, (unsigned)op << 3 | 1, reg, &rm);
}

void hg_x86_compare_exchange(x86_asm *a, int w, x86_rm rm, unsigned reg) { general(a, 0, w, 0x0fb1, reg, &rm); }
void hg_x86_add_fetch(x86_asm *a, int w, x86_rm rm, unsigned reg) { general(a, 0, w, 0x0fc1, reg, &rm); }
void hg_x86_lock(x86_asm *a) { hg_x86_bytes(a, "\xf0", 1); }

void hg_x86_shift_imm(x86_asm *a, int w, x86_shift op, unsigned reg, unsigned count) {
  x86_rm rm = x86_reg(reg);
  general(a, 0, w, 0xc1, op, &rm);
  if (!a->no_memory) byte(a, count);
}

void hg_x86_shift_cl(x86_asm *a, int w, x86_shift op, unsigned reg) {
  x86_rm rm = x86_reg(reg);
  general(a, 0, w, 0xd3, op, &rm);
}

void hg_x86_move_imm(x86_asm *a, unsigned reg, uint32_t value) {
  if (!begin_insn(a)) return;
  if (reg >= 8) byte(a, 0x41);
  byte(a, 0xb8 | (reg & 7));
  dword(a, value);
}

void hg_x86_move_imm64(x86_asm *a, unsigned reg, uint64_t value) {
  if (!begin_insn(a)) return;
  byte(a, 0x48 | bit(reg, 3));
  byte(a, 0xb8 | (reg & 7));
  dword(a, (uint32_t)value);
  dword(a, (uint32_t)(value >> 32));
}

void hg_x86_load_narrow(x86_asm *a, unsigned bytes, int is_signed, unsigned reg, x86_rm rm) {
  general(a, 0, 0, 0x0fb6u + (bytes == 2) + (is_signed ? 8u : 0), reg, &rm);
}

void hg_x86_store_narrow(x86_asm *a, unsigned bytes, x86_rm rm, unsigned reg) {
  general(a, bytes == 2 ? 0x66 : 0, bytes == 8, bytes == 1 ? 0x88 : 0x89, reg, &rm);
}

void hg_x86_push(x86_asm *a, unsigned reg) {
  if (!begin_insn(a)) return;
  if (reg >= 8) byte(a, 0x41);
  byte(a, 0x50 | (reg & 7));
}

void hg_x86_pop(x86_asm *a, unsigned reg) {
  if (!begin_insn(a)) return;
  if (reg >= 8) byte(a, 0x41);
  byte(a, 0x58 | (reg & 7));
}

/* VEX.0F38 of general registers. */
static void general_vex(x86_asm *a, int w, unsigned opcode, unsigned reg, unsigned vvvv, const x86_rm *rm) {
  if (!begin_insn(a)) return;
  byte(a, 0xc4);
  byte(a, ((bit(reg, 3) << 7 | index_bit(rm) << 6 | bit(rm->reg, 3) << 5) ^ 0xe0) | 2);
  byte(a, (unsigned)(w != 0) << 7 | (~vvvv & 15u) << 3);
  byte(a, opcode);
  a->count = (size_t)(put_modrm(a->code + a->count, reg, rm, 0) - a->code);
}

void hg_x86_bzhi(x86_asm *a, int w, unsigned reg, x86_rm rm, unsigned count) {
  general_vex(a, w, 0xf5, reg, count, &rm);
}

void hg_x86_blsr(x86_asm *a, int w, unsigned reg, x86_rm rm) { general_vex(a, w, 0xf3, 1, reg, &rm); }

void hg_x86_return(x86_asm *a) {
  if (begin_insn(a)) byte(a, 0xc3);
}

void hg_x86_vzeroupper(x86_asm *a) { hg_x86_bytes(a, "\xc5\xf8\x77", 3); }

/* ---- labels ------------------------------------------------------------------------------------------------------
 * Until a label is placed, the displacements that wait for it form a list: each holds the place of the one before. */

static x86_label *label_at(x86_asm *a, uint32_t label) { return (x86_label *)a->labels.data + label; }

uint32_t hg_x86_new_label(x86_asm *a) {
  x86_label label = {.waiting = UINT32_MAX, .place = UINT32_MAX};
  if (hg_array_append(&a->allocator, &a->labels, &label, 1) == NULL) {
    a->no_memory = 1;
    return UINT32_MAX;
  }
  return (uint32_t)(a->labels.count - 1);
}

int hg_x86_is_jumped_to(const x86_asm *a, uint32_t label) {
  return label < a->labels.count && ((const x86_label *)a->labels.data)[label].waiting != UINT32_MAX; /* no memory */
}

static void patch(x86_asm *a, uint32_t at, uint32_t target) {
  uint32_t distance = target - (at + 4);
  memcpy(a->code + at, &distance, 4);
}

void hg_x86_place(x86_asm *a, uint32_t label) {
  if (a->no_memory) return;
  x86_label *l = label_at(a, label);
  l->place = (uint32_t)a->count;
  a->last_end = SIZE_MAX; /* other code reaches the label without that instruction */
  for (uint32_t at = l->waiting; at != UINT32_MAX;) {
    uint32_t next;
    memcpy(&next, a->code + at, 4);
    patch(a, at, l->place);
    at = next;
  }
}

/* Writes the rel32 that ends an instruction. */
static void relative(x86_asm *a, uint32_t label) {
  if (a->no_memory) return;
  x86_label *l = label_at(a, label);
  uint32_t at = (uint32_t)a->count;
  dword(a, l->waiting);
  if (l->place != UINT32_MAX) patch(a, at, l->place);
  else l->waiting = at;
}

void hg_x86_jump(x86_asm *a, uint32_t label) {
  if (!begin_insn(a)) return;
  byte(a, 0xe9);
  relative(a, label);
}

void hg_x86_jump_if(x86_asm *a, x86_condition condition, uint32_t label) {
  if (!begin_insn(a)) return;
  byte(a, 0x0f);
  byte(a, 0x80u | condition);
  relative(a, label);
}

void hg_x86_call(x86_asm *a, uint32_t label) {
  if (!begin_insn(a)) return;
  byte(a, 0xe8);
  relative(a, label);
}

void hg_x86_lea_label(x86_asm *a, unsigned reg, uint32_t label) {
  if (!begin_insn(a)) return;
  byte(a, 0x48 | bit(reg, 3) << 2);
  byte(a, 0x8d);
  byte(a, (reg & 7) << 3 | 5); /* [rip + rel32] */
  relative(a, label);
}
