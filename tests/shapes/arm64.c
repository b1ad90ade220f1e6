/* arm64.c - reads A64 instructions, as far as they access memory or jump: after the Arm Architecture Reference Manual
 * for A-profile, chapter C4. */
#include "code.h"

#include "backend/cpu/arm64/emit_neon.h"

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

int code_read_arm64(const code_bytes *from, code *c) {
  for (size_t at = 0; at + 4 <= from->count; at += 4) {
    uint32_t word;
    int64_t by = 0;
    memcpy(&word, from->bytes + at, 4);
    int jumps = is_jump(word, &by), calls = word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000;
    code_insn *insn = code_add(c, access(word) | (jumps ? DOES(branches) : 0) | (calls ? DOES(calls) : 0));
    insn->ends = word >> 26 == 0x05 || (word & 0xfffffc1f) == 0xd65f0000;
    if (jumps) insn->target = (uint32_t)((int64_t)(at / 4) + by);
    if (jumps && insn->target >= from->count / 4) return 0;
  }
  for (size_t i = 0; i < from->entry_count; i++) c->insns[from->entries[i] / 4].is_entry = 1;
  return 1;
}
