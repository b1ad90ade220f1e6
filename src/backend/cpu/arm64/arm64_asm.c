/* arm64_asm.c - encodings of A64, after the Arm Architecture Reference Manual for A-profile, chapters C4, C6 and C7. */
#include "backend/cpu/arm64/arm64_asm.h"

#include <string.h>

typedef enum form { V3, V2, F3, F2, B3, B2, D3, V0, F0, L3, N2, P2, U2, SL, SR, SW, R3, R2 } form;

typedef struct row {
  uint32_t word;
  uint8_t form;
} row;

static const row rows[A64_OP_COUNT] = {
#define A64(id, mnemonic, word, form) {word, form},
#include "backend/cpu/arm64/arm64_asm.def"
#undef A64
};

typedef struct memory_row {
  uint32_t word;
  uint8_t log2;
} memory_row;

static const memory_row memory_rows[A64_MEMORY_OP_COUNT] = {
#define A64_MEMORY(id, mnemonic, word, log2) {word, log2},
#include "backend/cpu/arm64/arm64_memory.def"
#undef A64_MEMORY
};

/* A word whose immediate is a distance not known yet. */
typedef struct fixup {
  uint32_t word, target; /* a label or, if is_literal, a literal */
  uint8_t bits, shift;   /* the immediate's size and position; it counts words in branches and literals */
  uint8_t is_literal;
} fixup;

void hg_a64_begin(a64_asm *a, const hg_allocator *allocator) {
  *a = (a64_asm){.allocator = *allocator};
  a->labels.element_size = sizeof(uint32_t);
  a->fixups.element_size = sizeof(fixup);
  a->literals.element_size = sizeof(a64_literal);
}

void hg_a64_release(a64_asm *a) {
  hg_release(&a->allocator, a->words);
  hg_array_release(&a->allocator, &a->labels);
  hg_array_release(&a->allocator, &a->fixups);
  hg_array_release(&a->allocator, &a->literals);
}

static void grow(a64_asm *a) {
  size_t capacity = a->capacity == 0 ? 1024 : 2 * a->capacity;
  uint32_t *words = hg_allocate(&a->allocator, capacity, sizeof *words);
  if (words == NULL) {
    a->no_memory = 1;
    a->count = 0; /* the following code overwrites it and never runs */
    return;
  }
  if (a->count > 0) memcpy(words, a->words, a->count * sizeof *words);
  hg_release(&a->allocator, a->words);
  a->words = words;
  a->capacity = capacity;
}

void hg_a64_word(a64_asm *a, uint32_t word) {
  if (a->count == a->capacity) grow(a);
  if (a->capacity > 0) a->words[a->count++] = word;
}

/* ---- rows of the tables ------------------------------------------------------------------------------------------ */

void hg_a64(a64_asm *a, a64_op op, unsigned size, unsigned d, unsigned n, unsigned m) {
  uint32_t word = rows[op].word | d | n << 5;
  switch ((form)rows[op].form) {
  case V3:
  case L3: word |= size << 22 | m << 16; break;
  case V2:
  case V0:
  case N2:
  case P2:
  case U2: word |= size << 22; break;
  case F3: word |= (size & 1) << 22 | m << 16; break;
  case F2:
  case F0: word |= (size & 1) << 22; break;
  case B3:
  case D3:
  case R3: word |= m << 16; break;
  default: break;
  }
  hg_a64_word(a, word);
}

void hg_a64_shift(a64_asm *a, a64_op op, unsigned size, unsigned d, unsigned n, unsigned count) {
  unsigned bits = 8u << size, field = rows[op].form == SR ? 2 * bits - count : bits + count;
  hg_a64_word(a, rows[op].word | field << 16 | n << 5 | d);
}

void hg_a64_memory(a64_asm *a, a64_memory_op op, unsigned t, unsigned base, int64_t offset) {
  memory_row r = memory_rows[op];
  int64_t unit = INT64_C(1) << r.log2;
  uint32_t registers = t | base << 5;
  if (offset >= 0 && offset % unit == 0 && offset / unit < 4096)
    hg_a64_word(a, r.word | (uint32_t)(offset / unit) << 10 | registers);
  else if (offset >= -256 && offset < 256)
    hg_a64_word(a, (r.word & ~UINT32_C(0x01000000)) | ((uint32_t)offset & 0x1ff) << 12 | registers);
  else {
    hg_a64_move_imm(a, A64_X16, (uint64_t)offset);
    hg_a64_indexed(a, op, t, base, A64_X16, 0);
  }
}

void hg_a64_indexed(a64_asm *a, a64_memory_op op, unsigned t, unsigned base, unsigned index, int is_scaled) {
  uint32_t word = memory_rows[op].word & ~UINT32_C(0x01000000);
  hg_a64_word(a, word | 0x206800 | (is_scaled ? 0x1000u : 0) | index << 16 | base << 5 | t);
}

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

void hg_a64_load_exclusive(a64_asm *a, int is_64, unsigned t, unsigned base) {
  hg_a64_word(a, (is_64 ? 0xc85f7c00 : 0x885f7c00) | base << 5 | t);
}

void hg_a64_store_exclusive(a64_asm *a, int is_64, unsigned failed, unsigned t, unsigned base) {
  hg_a64_word(a, (is_64 ? 0xc8007c00 : 0x88007c00) | failed << 16 | base << 5 | t);
}

void hg_a64_move_vector(a64_asm *a, unsigned d, unsigned n) {
  if (d != n) hg_a64(a, A64_orr, 0, d, n, n);
}

/* The field imm5: its lowest set bit encodes the size, the bits above it the lane. */
static uint32_t lane_field(unsigned size, unsigned lane) { return (2 * lane + 1) << size << 16; }

void hg_a64_dup(a64_asm *a, unsigned size, unsigned d, unsigned general) {
  hg_a64_word(a, 0x4e000c00 | lane_field(size, 0) | general << 5 | d);
}

void hg_a64_dup_lane(a64_asm *a, unsigned size, unsigned d, unsigned n, unsigned lane) {
  hg_a64_word(a, 0x4e000400 | lane_field(size, lane) | n << 5 | d);
}

void hg_a64_insert(a64_asm *a, unsigned size, unsigned d, unsigned lane, unsigned general) {
  hg_a64_word(a, 0x4e001c00 | lane_field(size, lane) | general << 5 | d);
}

void hg_a64_insert_lane(a64_asm *a, unsigned size, unsigned d, unsigned lane, unsigned n, unsigned from) {
  hg_a64_word(a, 0x6e000400 | lane_field(size, lane) | from << size << 11 | n << 5 | d);
}

void hg_a64_extract(a64_asm *a, unsigned size, unsigned general, unsigned n, unsigned lane) {
  uint32_t word = size == A64_64B ? 0x4e003c00 : 0x0e003c00;
  hg_a64_word(a, word | lane_field(size, lane) | n << 5 | general);
}

void hg_a64_extract_signed(a64_asm *a, unsigned size, unsigned general, unsigned n, unsigned lane) {
  uint32_t word = size == A64_64B ? 0x4e003c00 : 0x4e002c00;
  hg_a64_word(a, word | lane_field(size, lane) | n << 5 | general);
}

/* The lane's number is split over Q, S and size. */
static uint32_t single_fields(unsigned size, unsigned lane) {
  static const uint32_t opcode[4] = {0x0000, 0x4000, 0x8000, 0x8400};
  unsigned byte = lane << size;
  return opcode[size] | (byte >> 3) << 30 | (byte >> 2 & 1) << 12 | (byte & 3) << 10;
}

void hg_a64_load_lane(a64_asm *a, unsigned size, unsigned d, unsigned lane, unsigned base) {
  hg_a64_word(a, 0x0d400000 | single_fields(size, lane) | base << 5 | d);
}

void hg_a64_store_lane(a64_asm *a, unsigned size, unsigned d, unsigned lane, unsigned base) {
  hg_a64_word(a, 0x0d000000 | single_fields(size, lane) | base << 5 | d);
}

void hg_a64_load_all(a64_asm *a, unsigned size, unsigned d, unsigned base) {
  hg_a64_word(a, 0x4d40c000 | size << 10 | base << 5 | d);
}

void hg_a64_fcvtl(a64_asm *a, unsigned to, int upper, unsigned d, unsigned n) {
  hg_a64_word(a, 0x0e217800 | (upper ? 1u << 30 : 0) | (to - A64_32B) << 22 | n << 5 | d);
}

void hg_a64_fcvtn(a64_asm *a, unsigned to, int upper, unsigned d, unsigned n) {
  hg_a64_word(a, 0x0e216800 | (upper ? 1u << 30 : 0) | (to - A64_16B) << 22 | n << 5 | d);
}

void hg_a64_fcvtxn(a64_asm *a, int upper, unsigned d, unsigned n) {
  hg_a64_word(a, 0x2e616800 | (upper ? 1u << 30 : 0) | n << 5 | d);
}

void hg_a64_to_float(a64_asm *a, int is_signed, unsigned d, unsigned x) {
  hg_a64_word(a, (is_signed ? 0x9e220000 : 0x9e230000) | x << 5 | d);
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

static uint64_t repeated(unsigned size, uint64_t bits) {
  for (unsigned width = 8u << size; width < 64; width *= 2) {
    bits &= (UINT64_C(1) << width) - 1;
    bits |= bits << width;
  }
  return bits;
}

/* movi or mvni of one byte at some position in each 32-bit element; 0 if `bits` has not that form. */
static uint32_t move_byte(uint64_t bits) {
  uint32_t element = (uint32_t)bits;
  if (bits != repeated(A64_32B, element)) return 0;
  for (uint32_t invert = 0; invert < 2; invert++) {
    uint32_t value = invert ? ~element : element;
    for (uint32_t shift = 0; shift < 32; shift += 8)
      if ((value & ~(UINT32_C(0xff) << shift)) == 0) {
        uint32_t byte = value >> shift;
        return 0x4f000400 | invert << 29 | (shift / 8) << 13 | byte >> 5 << 16 | (byte & 31) << 5;
      }
  }
  return 0;
}

/* movi of 64 bits whose bytes are 0 or ff; movi of one byte everywhere. */
static uint32_t move_bytes(uint64_t bits) {
  uint32_t mask = 0, byte = (uint32_t)bits & 0xff;
  if (bits == repeated(A64_8B, bits)) return 0x4f00e400 | byte >> 5 << 16 | (byte & 31) << 5;
  for (unsigned i = 0; i < 8; i++) {
    uint32_t at = bits >> (8 * i) & 0xff;
    if (at != 0 && at != 0xff) return 0;
    mask |= (at & 1) << i;
  }
  return 0x6f00e400 | mask >> 5 << 16 | (mask & 31) << 5;
}

/* fmov of an f32 or f64 that has a sign, three bits of exponent and four of fraction. */
static uint32_t move_float(uint64_t bits) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint64_t sign = byte >> 7, low = byte & 0x3f, high = byte >> 6 & 1;
    uint64_t f32 = sign << 31 | (high ? UINT64_C(0x3e000000) : UINT64_C(0x40000000)) | low << 19;
    uint64_t f64 = sign << 63 | (high ? UINT64_C(0x3fc0000000000000) : UINT64_C(0x4000000000000000)) | low << 48;
    uint32_t fields = byte >> 5 << 16 | (byte & 31) << 5;
    if (bits == repeated(A64_32B, f32)) return 0x4f00f400 | fields;
    if (bits == f64) return 0x6f00f400 | fields;
  }
  return 0;
}

void hg_a64_constant(a64_asm *a, unsigned size, unsigned d, uint64_t bits) {
  bits = repeated(size, bits);
  uint32_t word = move_byte(bits);
  if (word == 0) word = move_bytes(bits);
  if (word == 0) word = move_float(bits);
  if (word != 0) hg_a64_word(a, word | d);
  else hg_a64_constant_vector(a, d, (const uint64_t[2]){bits, bits});
}

static void add_fixup(a64_asm *a, fixup f) {
  f.word = (uint32_t)a->count;
  if (hg_array_append(&a->allocator, &a->fixups, &f, 1) == NULL) a->no_memory = 1;
}

void hg_a64_constant_vector(a64_asm *a, unsigned d, const uint64_t bits[2]) {
  const a64_literal *literals = a->literals.data;
  uint32_t i = 0;
  while (i < a->literals.count && memcmp(literals[i].bits, bits, sizeof literals[i].bits) != 0) i++;
  if (i == a->literals.count && hg_array_append(&a->allocator, &a->literals, bits, 1) == NULL) {
    a->no_memory = 1;
    return;
  }
  add_fixup(a, (fixup){.target = i, .bits = 19, .shift = 5, .is_literal = 1});
  hg_a64_word(a, 0x9c000000 | d);
}

/* ---- general registers ------------------------------------------------------------------------------------------- */

void hg_a64_move(a64_asm *a, unsigned d, unsigned n) {
  if (d != n) hg_a64(a, A64_orr_x, 0, d, A64_ZR, n);
}

void hg_a64_move_imm(a64_asm *a, unsigned d, uint64_t value) {
  unsigned ones = 0, zeros = 0;
  for (unsigned i = 0; i < 4; i++) {
    uint64_t part = value >> (16 * i) & 0xffff;
    ones += part == 0xffff;
    zeros += part == 0;
  }
  uint32_t rest = ones > zeros ? 0xffff : 0, word = rest ? 0x92800000 : 0xd2800000;
  for (unsigned i = 0; i < 4; i++) { /* the first instruction also sets the pieces that equal `rest` */
    uint32_t part = (uint32_t)(value >> (16 * i) & 0xffff);
    if (part == rest) continue;
    if (word == 0x92800000) part ^= 0xffff;
    hg_a64_word(a, word | i << 21 | part << 5 | d);
    word = 0xf2800000;
  }
  if (word != 0xf2800000) hg_a64_word(a, word | d);
}

void hg_a64_add_imm(a64_asm *a, unsigned d, unsigned n, int64_t value) {
  uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  uint32_t word = value < 0 ? 0xd1000000 : 0x91000000;
  if (magnitude < 1u << 24) {
    uint32_t high = (uint32_t)(magnitude >> 12), low = (uint32_t)(magnitude & 0xfff);
    if (high != 0) hg_a64_word(a, word | 1u << 22 | high << 10 | n << 5 | d);
    if (low != 0 || (high == 0 && d != n)) hg_a64_word(a, word | low << 10 | (high != 0 ? d : n) << 5 | d);
    return;
  }
  hg_a64_move_imm(a, A64_X16, (uint64_t)value);
  hg_a64_word(a, 0x8b206000 | A64_X16 << 16 | n << 5 | d); /* the extended form, which takes SP */
}

void hg_a64_compare_imm(a64_asm *a, unsigned n, uint32_t value) {
  hg_a64_word(a, 0xf1000000 | value << 10 | n << 5 | A64_ZR);
}

void hg_a64_add_shifted(a64_asm *a, unsigned d, unsigned n, unsigned m, unsigned shift) {
  hg_a64_word(a, 0x8b000000 | m << 16 | shift << 10 | n << 5 | d);
}

void hg_a64_madd(a64_asm *a, unsigned d, unsigned n, unsigned m, unsigned add) {
  hg_a64_word(a, 0x9b000000 | m << 16 | add << 10 | n << 5 | d);
}

void hg_a64_msub(a64_asm *a, unsigned d, unsigned n, unsigned m, unsigned from) {
  hg_a64_word(a, 0x9b008000 | m << 16 | from << 10 | n << 5 | d);
}

static void bit_field(a64_asm *a, uint32_t word, unsigned d, unsigned n, unsigned rotate, unsigned last) {
  hg_a64_word(a, word | rotate << 16 | last << 10 | n << 5 | d);
}

void hg_a64_lsl(a64_asm *a, unsigned d, unsigned n, unsigned count) {
  bit_field(a, 0xd3400000, d, n, (64 - count) & 63, 63 - count);
}
void hg_a64_lsr(a64_asm *a, unsigned d, unsigned n, unsigned count) { bit_field(a, 0xd3400000, d, n, count, 63); }

void hg_a64_select(a64_asm *a, unsigned d, unsigned n, unsigned m, a64_condition condition) {
  hg_a64_word(a, 0x9a800000 | m << 16 | (uint32_t)condition << 12 | n << 5 | d);
}

static void pair(a64_asm *a, uint32_t word, int is_vector, unsigned t, unsigned t2, unsigned base, int offset) {
  uint32_t units = (uint32_t)(offset / (is_vector ? 16 : 8)) & 0x7f;
  hg_a64_word(a, word | (is_vector ? 0x04000000u : 0) | units << 15 | t2 << 10 | base << 5 | t);
}

void hg_a64_load_pair(a64_asm *a, int is_vector, unsigned t, unsigned t2, unsigned base, int offset) {
  pair(a, 0xa9400000, is_vector, t, t2, base, offset);
}

void hg_a64_store_pair(a64_asm *a, int is_vector, unsigned t, unsigned t2, unsigned base, int offset) {
  pair(a, 0xa9000000, is_vector, t, t2, base, offset);
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

uint32_t hg_a64_new_label(a64_asm *a) {
  uint32_t nowhere = UINT32_MAX;
  if (hg_array_append(&a->allocator, &a->labels, &nowhere, 1) == NULL) {
    a->no_memory = 1;
    return UINT32_MAX;
  }
  return (uint32_t)a->labels.count - 1;
}

void hg_a64_place(a64_asm *a, uint32_t label) {
  if (label < a->labels.count) ((uint32_t *)a->labels.data)[label] = (uint32_t)a->count;
}

static void jump(a64_asm *a, uint32_t word, uint32_t label, uint8_t bits, uint8_t shift) {
  add_fixup(a, (fixup){.target = label, .bits = bits, .shift = shift});
  hg_a64_word(a, word);
}

void hg_a64_jump(a64_asm *a, uint32_t label) { jump(a, 0x14000000, label, 26, 0); }
void hg_a64_call(a64_asm *a, uint32_t label) { jump(a, 0x94000000, label, 26, 0); }
void hg_a64_jump_if(a64_asm *a, a64_condition condition, uint32_t label) {
  jump(a, 0x54000000 | (uint32_t)condition, label, 19, 5);
}
void hg_a64_jump_zero(a64_asm *a, unsigned x, uint32_t label) { jump(a, 0xb4000000 | x, label, 19, 5); }
void hg_a64_jump_not_zero(a64_asm *a, unsigned x, uint32_t label) { jump(a, 0xb5000000 | x, label, 19, 5); }
void hg_a64_jump_bit(a64_asm *a, int set, unsigned x, unsigned bit, uint32_t label) {
  uint32_t word = set ? 0x37000000 : 0x36000000;
  jump(a, word | bit >> 5 << 31 | (bit & 31) << 19 | x, label, 14, 5);
}

void hg_a64_call_register(a64_asm *a, unsigned x) { hg_a64_word(a, 0xd63f0000 | x << 5); }
void hg_a64_return(a64_asm *a) { hg_a64_word(a, 0xd65f03c0); }

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void write_literals(a64_asm *a) {
  const a64_literal *literals = a->literals.data;
  while (a->literals.count > 0 && a->count % 4 != 0) hg_a64_word(a, 0); /* an instruction that does not exist */
  for (size_t i = 0; i < a->literals.count; i++)
    for (unsigned k = 0; k < 4; k++) hg_a64_word(a, (uint32_t)(literals[i].bits[k / 2] >> (k % 2 * 32)));
}

static void resolve(a64_asm *a, const fixup *f, uint32_t literals_at) {
  uint32_t place = f->is_literal ? literals_at + 4 * f->target : ((uint32_t *)a->labels.data)[f->target];
  int64_t distance = (int64_t)place - f->word, limit = INT64_C(1) << (f->bits - 1);
  if (distance < -limit || distance >= limit) a->too_far = 1;
  uint32_t field = (uint32_t)distance & (uint32_t)(2 * limit - 1);
  a->words[f->word] |= field << f->shift;
}

void hg_a64_finish(a64_asm *a) {
  uint32_t literals_at = (uint32_t)(a->count + 3) / 4 * 4;
  write_literals(a);
  if (a->no_memory) return;
  for (size_t i = 0; i < a->fixups.count; i++) resolve(a, (const fixup *)a->fixups.data + i, literals_at);
}
