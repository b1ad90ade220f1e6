/* arm64.c - reads A64 instructions, as far as they access memory or jump: after the Arm Architecture Reference Manual
 * for A-profile, chapter C4. */
#include "code.h"

#include "backend/cpu/arm64/emit_neon.h"

#include <stdlib.h>
#include <string.h>

/* A field of the word as a signed distance in words. */
static int64_t distance(uint32_t word, unsigned shift, unsigned bits) {
  uint32_t sign = UINT32_C(1) << (bits - 1), field = word >> shift & (2 * sign - 1);
  return (int64_t)(field ^ sign) - sign;
}

/* 1 if it jumps: *by words. */
static int is_jump(uint32_t word, int64_t *by) {
  if (word >> 26 == 0x05) *by = distance(word, 0, 26);                                     /* b */
  else if (word >> 24 == 0x54 || (word >> 25 & 0x3f) == 0x1a) *by = distance(word, 5, 19); /* b.cond, cbz, cbnz */
  else if ((word >> 25 & 0x3f) == 0x1b) *by = distance(word, 5, 14);                       /* tbz, tbnz */
  else return 0;
  return 1;
}

/* Loads and stores: bit 27 set, bit 25 clear. */
static uint32_t access(uint32_t word) {
  if ((word >> 25 & 5) != 4) return 0;
  if ((word & 0x3b000000) == 0x18000000) return DOES(constants); /* a literal */
  unsigned base = word >> 5 & 31, is_single = (word & 0x3a000000) == 0x38000000;
  int loads =
      is_single ? (word >> 22 & 1) != 0 || ((word >> 26 & 1) == 0 && (word >> 22 & 3) != 0) : (word >> 22 & 1) != 0;
  int is_own = base == A64_SP || base == NEON_ROWS;
  if (loads) return is_own ? DOES(reloads) : base == NEON_CONTEXT ? DOES(constants) : DOES(loads);
  return is_own || base == NEON_CONTEXT ? DOES(spills) : DOES(stores);
}

/* movk, behind a movz, movn or movk of the same register: a number takes as many as it has parts that are not alike,
 * and an address is another one in each process, so they count as one instruction. */
static int goes_on(uint32_t before, uint32_t word) {
  enum { MOVN = 0x25, MOVZ = 0xa5, MOVK = 0xe5 }; /* bits 23 to 30 */
  uint32_t first = before >> 23 & 0xff;
  return (word >> 23 & 0xff) == MOVK && (first == MOVN || first == MOVZ || first == MOVK) &&
         (before & 31) == (word & 31);
}

static int read_words(const uint32_t *words, uint32_t count, uint32_t *insn_of, code *c) {
  for (uint32_t at = 0; at < count; at++) {
    uint32_t word = words[at];
    insn_of[at] = c->count;
    if (at > 0 && goes_on(words[at - 1], word)) continue;
    int jumps = is_jump(word, &(int64_t){0}), calls = word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000;
    code_insn *insn = code_add(c, access(word) | (jumps ? DOES(branches) : 0) | (calls ? DOES(calls) : 0));
    insn->ends = word >> 26 == 0x05 || (word & 0xfffffc1f) == 0xd65f0000;
  }
  for (uint32_t at = 0; at < count; at++) {
    int64_t by = 0;
    if (!is_jump(words[at], &by)) continue;
    if (at + by < 0 || at + by >= count) return 0;
    c->insns[insn_of[at]].target = insn_of[at + by];
  }
  return 1;
}

int code_read_arm64(const code_bytes *from, code *c) {
  uint32_t count = (uint32_t)(from->count / 4);
  uint32_t *words = code_make(count, sizeof *words), *insn_of = code_make(count, sizeof *insn_of);
  memcpy(words, from->bytes, 4 * (size_t)count);
  int is_known = read_words(words, count, insn_of, c);
  for (size_t i = 0; i < from->entry_count && is_known; i++) c->insns[insn_of[from->entries[i] / 4]].is_entry = 1;
  free(words);
  free(insn_of);
  return is_known;
}
