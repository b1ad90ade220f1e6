/* random_words.c - words of a Philox sequence, and fractions made of them.
 *
 * A counter gives four words. What a lane draws next to each other it computes once: the words are kept until the
 * lane's coordinates change. Where a form's multiples of variables are multiples of 4, which word it is is known. */
#include "ops/write/expression.h"

#include "atlas/value.h"

#include <string.h>

enum { ROUNDS = 10, SCRATCH = 14 /* a predicate */, NEAR = 64 /* of smaller constants programs differ */ };
#define R(i) atlas_reg(r[i])
#define U32(value) atlas_bits((uint64_t)(uint32_t)(value))

/* Philox 4x32-10 (Salmon et al., SC 2011, "Parallel random numbers: as easy as 1, 2, 3"): the words of counter r0, r1,
 * 0, 0 by the key r4, r5, in r0 to r3. */
static void philox(atlas_builder *b, const uint16_t *r) {
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, R(2), U32(0));
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, R(3), U32(0));
  for (int round = 0; round < ROUNDS; round++) {
    atlas_emit(b, ATLAS_OP_mulhi, ATLAS_u32, 3, R(6), R(0), U32(0xD2511F53u));
    atlas_emit(b, ATLAS_OP_mul, ATLAS_u32, 3, R(0), R(0), U32(0xD2511F53u));
    atlas_emit(b, ATLAS_OP_mulhi, ATLAS_u32, 3, R(7), R(2), U32(0xCD9E8D57u));
    atlas_emit(b, ATLAS_OP_mul, ATLAS_u32, 3, R(2), R(2), U32(0xCD9E8D57u));
    atlas_emit(b, ATLAS_OP_xor, ATLAS_u32, 3, R(7), R(7), R(1));
    atlas_emit(b, ATLAS_OP_xor, ATLAS_u32, 3, R(7), R(7), R(4)); /* the next word 0 */
    atlas_emit(b, ATLAS_OP_xor, ATLAS_u32, 3, R(6), R(6), R(3));
    atlas_emit(b, ATLAS_OP_xor, ATLAS_u32, 3, R(6), R(6), R(5)); /* the next word 2 */
    atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, R(1), R(2));
    atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, R(3), R(0));
    atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, R(0), R(7));
    atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, R(2), R(6));
    atlas_emit(b, ATLAS_OP_add, ATLAS_u32, 3, R(4), R(4), U32(0x9E3779B9u));
    atlas_emit(b, ATLAS_OP_add, ATLAS_u32, 3, R(5), R(5), U32(0xBB67AE85u));
  }
}

/* The low and the high half of a u64. */
static void halves(atlas_builder *b, uint16_t low, uint16_t high, uint16_t of, uint16_t scratch) {
  atlas_emit2(b, ATLAS_OP_cvt, ATLAS_u32, ATLAS_u64, atlas_reg(low), atlas_reg(of));
  atlas_emit(b, ATLAS_OP_shr, ATLAS_u64, 3, atlas_reg(scratch), atlas_reg(of), atlas_bits(32));
  atlas_emit2(b, ATLAS_OP_cvt, ATLAS_u32, ATLAS_u64, atlas_reg(high), atlas_reg(scratch));
}

/* The four words among which number `number` is, which the sequence has from there on if it is a multiple of 4. */
static void draw(ops_code *code, const ops_term *term, const ops_form *number, uint16_t key, uint16_t counter) {
  atlas_builder *b = code->builder;
  ops_drawn *drawn = &code->drawn;
  if (drawn->is_there && memcmp(drawn->input, term->input, sizeof drawn->input) == 0 &&
      memcmp(&drawn->number, number, sizeof *number) == 0)
    return;
  uint16_t r[8], wide = ops_register(code), scratch = ops_register(code);
  for (int i = 0; i < 8; i++) r[i] = ops_register(code);
  drawn->is_there = 1, drawn->number = *number;
  memcpy(drawn->input, term->input, sizeof drawn->input);
  memcpy(drawn->word, r, sizeof drawn->word);
  drawn->at = ops_unknown_of(code, number);
  uint64_t more = (uint64_t)number->constant;
  if (more != 0)
    atlas_emit(b, ATLAS_OP_add, ATLAS_u64, 3, atlas_reg(drawn->at), atlas_reg(drawn->at),
               more < NEAR ? atlas_bits(more) : ops_scalar_of(code, ATLAS_u64, more));
  atlas_emit(b, ATLAS_OP_shr, ATLAS_u64, 3, atlas_reg(wide), atlas_reg(drawn->at), atlas_bits(2));
  atlas_emit(b, ATLAS_OP_add, ATLAS_u64, 3, atlas_reg(wide), atlas_reg(wide), atlas_reg(counter));
  halves(b, r[0], r[1], wide, scratch);
  halves(b, r[4], r[5], key, scratch);
  philox(b, r);
}

/* The word of that number, in a register that nobody may write to. */
static uint16_t word_of(ops_code *code, const ops_term *term, int64_t more, uint16_t key, uint16_t counter) {
  atlas_builder *b = code->builder;
  ops_form first = term->form;
  uint64_t unit = ops_unit_of(code, &first);
  unit = unit % 4 == 0 ? 4 : unit % 2 == 0 ? 2 : 1;
  int64_t known = ops_known_of(code, &first) + more;
  uint32_t behind = (uint32_t)known & (uint32_t)(unit - 1);
  first.constant = known - behind;
  draw(code, term, &first, key, counter);
  const uint16_t *word = code->drawn.word;
  if (unit == 4) return word[behind];
  uint16_t number = ops_register(code), is = ops_register(code), to = ops_register(code);
  atlas_emit2(b, ATLAS_OP_cvt, ATLAS_u32, ATLAS_u64, atlas_reg(number), atlas_reg(code->drawn.at));
  atlas_emit(b, ATLAS_OP_and, ATLAS_u32, 3, atlas_reg(is), atlas_reg(number), U32(3));
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(to), atlas_reg(word[behind]));
  for (uint32_t i = (uint32_t)unit; i < 4; i += (uint32_t)unit) {
    atlas_emit(b, ATLAS_OP_set_eq, ATLAS_u32, 3, atlas_pred(SCRATCH), atlas_reg(is), U32(i));
    atlas_emit(b, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(to), atlas_pred(SCRATCH), atlas_reg(word[i + behind]),
               atlas_reg(to));
  }
  return to;
}

/* The high bits of a word, or of two, as a number of so many bits: itself, 1 more, or its last bit 1. */
static void top_bits(ops_code *code, atlas_type type, uint16_t to, uint16_t word, uint64_t drop, ops_fraction which) {
  atlas_builder *b = code->builder;
  drop += which == OPS_INSIDE;
  atlas_emit(b, ATLAS_OP_shr, type, 3, atlas_reg(to), atlas_reg(word), atlas_bits(drop));
  if (which == OPS_INSIDE) atlas_emit(b, ATLAS_OP_add, type, 3, atlas_reg(to), atlas_reg(to), atlas_reg(to));
  if (which != OPS_BELOW_ONE)
    atlas_emit(b, ATLAS_OP_add, type, 3, atlas_reg(to), atlas_reg(to), atlas_int_const(type, 1));
}

void ops_draw(ops_code *code, const ops_term *term, uint16_t to, uint16_t key, uint16_t counter) {
  atlas_builder *b = code->builder;
  atlas_type type = (atlas_type)term->type;
  uint16_t word = word_of(code, term, 0, key, counter), bits = ops_register(code);
  if (type == ATLAS_u32) {
    atlas_emit(b, ATLAS_OP_mov, type, 2, atlas_reg(to), atlas_reg(word));
    return;
  }
  int is_long = type == ATLAS_f64;
  if (is_long) {
    uint16_t high = ops_register(code), low = ops_register(code), next = word_of(code, term, 1, key, counter);
    atlas_emit2(b, ATLAS_OP_cvt, ATLAS_u64, ATLAS_u32, atlas_reg(high), atlas_reg(word));
    atlas_emit2(b, ATLAS_OP_cvt, ATLAS_u64, ATLAS_u32, atlas_reg(low), atlas_reg(next));
    atlas_emit(b, ATLAS_OP_shl, ATLAS_u64, 3, atlas_reg(high), atlas_reg(high), atlas_bits(32));
    atlas_emit(b, ATLAS_OP_or, ATLAS_u64, 3, atlas_reg(high), atlas_reg(high), atlas_reg(low));
    word = high;
  }
  top_bits(code, is_long ? ATLAS_u64 : ATLAS_u32, bits, word, is_long ? 11 : 8, (ops_fraction)term->bits);
  atlas_emit2(b, ATLAS_OP_cvt, type, is_long ? ATLAS_u64 : ATLAS_u32, atlas_reg(to), atlas_reg(bits));
  atlas_emit(b, ATLAS_OP_mul, type, 3, atlas_reg(to), atlas_reg(to),
             atlas_bits(atlas_round_f64(type, is_long ? 0x1p-53 : 0x1p-24)));
}
