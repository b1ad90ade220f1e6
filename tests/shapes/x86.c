/* x86.c - reads x86-64 instructions of the forms that src/backend/cpu/x86 writes: vector ones by the rows of
 * x86_asm.def. */
#include "code.h"

#include "backend/cpu/x86/emit_x86.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
  const uint8_t *bytes;
  size_t count, at;
  code *c;
  uint32_t *insn_at; /* by byte: 1 + the instruction that begins there; 0: none */
  int64_t *jump_to;  /* by instruction: the byte that it jumps to, or -1 */
  uint32_t does;
  int64_t target;
  uint8_t ends, has_memory, base, reg;
} reader;

static unsigned next(reader *r) { return r->at < r->count ? r->bytes[r->at++] : 0; }

static int64_t relative(reader *r, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; i++) value |= next(r) << 8 * i;
  return (int64_t)r->at + (bytes == 1 ? (int8_t)value : (int32_t)value);
}

/* ModRM and what belongs to it. */
static void modrm(reader *r, unsigned base_bit) {
  unsigned byte = next(r), mod = byte >> 6, rm = byte & 7;
  r->reg = byte >> 3 & 7;
  r->has_memory = mod != 3;
  if (!r->has_memory) return;
  if (rm == 4) rm = next(r) & 7;
  r->base = (uint8_t)(rm | base_bit << 3);
  if (mod == 1) r->at += 1;
  if (mod == 2) r->at += 4;
  if (mod == 0 && (byte & 7) == 5) { /* of the instruction's own place: the pool's address */
    r->has_memory = 0;
    r->at += 4;
  }
}

static void access(reader *r, int loads, int stores) {
  if (!r->has_memory) return;
  int is_own = r->base == X86_FRAME || r->base == X86_ROWS, is_fixed = r->base == X86_POOL || r->base == X86_CONTEXT;
  if (loads) r->does |= is_own ? DOES(reloads) : is_fixed ? DOES(constants) : DOES(loads);
  if (stores) r->does |= is_own || is_fixed ? DOES(spills) : DOES(stores);
}

/* ---- vector instructions ----------------------------------------------------------------------------------------- */

static const x86_row *find_row(unsigned map, unsigned prefix, unsigned opcode, unsigned w) {
  const x86_row *found = NULL;
  for (size_t i = 0; i < X86_OP_COUNT; i++) {
    const x86_row *row = &hg_x86_rows[i];
    if (row->map != map || row->prefix != prefix || row->opcode != opcode) continue;
    if (found == NULL || row->w == w) found = row;
  }
  return found;
}

static int vector(reader *r, unsigned map, unsigned prefix, unsigned w, unsigned base_bit) {
  unsigned opcode = next(r);
  if (map == 1 && opcode == 0x77) return 1; /* vzeroupper */
  const x86_row *row = find_row(map, prefix, opcode, w);
  unsigned packed = prefix == X86_PF3 ? X86_P0 : X86_P66; /* the row of a scalar form */
  if (row == NULL && map == 1 && prefix >= X86_PF3) row = find_row(map, packed, opcode, w);
  if (row == NULL && map == 2) row = find_row(map, prefix, opcode & ~1u, w);
  modrm(r, base_bit);
  if (row == NULL) return map == 2 && (opcode == 0xf5 || opcode == 0xf3); /* bzhi, blsr */
  int stores = row->form == X86_FORM_MR || row->form == X86_FORM_MVR || row->form == X86_FORM_MRI;
  access(r, !stores, stores);
  if (strstr(row->mnemonic, "gather") != NULL || strstr(row->mnemonic, "scatter") != NULL) r->does |= DOES(gathers);
  if (row->form >= X86_FORM_VMI) r->at++;
  return 1;
}

static int vex(reader *r, unsigned first) {
  unsigned a = next(r);
  if (first == 0xc5) return vector(r, 1, a & 3, 0, 0);
  unsigned b = next(r);
  return vector(r, a & 31, b & 3, b >> 7, ~a >> 5 & 1);
}

static int evex(reader *r) {
  unsigned p0 = next(r), p1 = next(r);
  next(r);
  return vector(r, p0 & 7, p1 & 3, p1 >> 7, ~p0 >> 5 & 1);
}

/* ---- general instructions ---------------------------------------------------------------------------------------- */

static int of_two_bytes(reader *r, unsigned base_bit) {
  unsigned opcode = next(r);
  if ((opcode & 0xf0) == 0x80) {
    r->target = relative(r, 4);
    r->does |= DOES(branches);
    return 1;
  }
  modrm(r, base_bit);
  switch (opcode) {
  case 0x18:
  case 0x0d: r->does |= DOES(prefetches); return 1;
  case 0xb1:
  case 0xc1: access(r, 1, 1); return 1;
  case 0xaf:
  case 0xb6:
  case 0xb7:
  case 0xb8:
  case 0xbc:
  case 0xbd:
  case 0xbe:
  case 0xbf: access(r, 1, 0); return 1;
  default: access(r, 1, 0); return (opcode & 0xf0) == 0x40;
  }
}

static int jump(reader *r, unsigned opcode) {
  r->target = relative(r, opcode == 0x75 ? 1 : 4);
  r->does |= opcode == 0xe8 ? DOES(calls) : DOES(branches);
  r->ends = opcode == 0xe9;
  if (opcode == 0xe8) r->target = -1; /* it comes back */
  return 1;
}

static int with_modrm(reader *r, unsigned opcode, unsigned base_bit) {
  modrm(r, base_bit);
  switch (opcode) {
  case 0x8b:
  case 0x63: access(r, 1, 0); return 1;
  case 0x88:
  case 0x89: access(r, 0, 1); return 1;
  case 0x87: access(r, 1, 1); return 1;
  case 0x8d:
  case 0x85: return 1;
  case 0x81:
  case 0x83:
    access(r, 1, r->reg != X86_CMP);
    r->at += opcode == 0x81 ? 4 : 1;
    return 1;
  case 0xc1: r->at += 1; return 1;
  case 0xd3: return 1; /* a shift by cl */
  case 0xf7: access(r, 1, 0); return 1;
  case 0xff: r->does |= DOES(calls); return r->reg == 2;
  default: break;
  }
  if (opcode >= 0x40 || ((opcode & 7) != 1 && (opcode & 7) != 3)) return 0;
  access(r, 1, (opcode & 7) == 1);
  return 1;
}

static int general(reader *r, unsigned opcode, unsigned rex) {
  if (opcode == 0x0f) return of_two_bytes(r, rex & 1);
  if ((opcode & 0xf0) == 0x50) { /* push, pop */
    r->does |= opcode & 8 ? DOES(reloads) : DOES(spills);
    return 1;
  }
  if ((opcode & 0xf8) == 0xb8) {
    r->at += rex & 8 ? 8 : 4;
    return 1;
  }
  if (opcode == 0xe8 || opcode == 0xe9 || opcode == 0x75) return jump(r, opcode);
  r->ends = opcode == 0xc3;
  return opcode == 0xc3 || with_modrm(r, opcode, rex & 1);
}

static int read_one(reader *r) {
  unsigned byte = next(r), rex = 0;
  if (byte == 0xc5 || byte == 0xc4) return vex(r, byte);
  if (byte == 0x62) return evex(r);
  if (byte == 0xf0) { /* a jump leads behind it */
    r->does |= DOES(atomics);
    return 1;
  }
  if (byte == 0x66 || byte == 0xf3) byte = next(r);
  if ((byte & 0xf0) == 0x40) {
    rex = byte;
    byte = next(r);
  }
  return general(r, byte, rex);
}

static int read_all(reader *r) {
  enum { LONG_NOP = 8 };
  while (r->at < r->count) {
    size_t at = r->at;
    int is_long = r->count - at >= LONG_NOP && r->bytes[at] == 0x0f && r->bytes[at + 1] == 0x1f;
    if (is_long || r->bytes[at] == X86_INT3 || r->bytes[at] == X86_NOP) { /* between others */
      r->insn_at[at] = r->c->count + 1;
      r->at += is_long ? LONG_NOP : 1;
      continue;
    }
    r->does = 0, r->target = -1, r->ends = 0;
    r->insn_at[at] = r->c->count + 1;
    if (!read_one(r) || r->at > r->count) {
      fprintf(stderr, "shapes: no x86-64 instruction that is known at byte %zu: %02x %02x %02x %02x\n", at,
              r->bytes[at], r->bytes[at + 1], r->bytes[at + 2], r->bytes[at + 3]);
      return 0;
    }
    r->jump_to[r->c->count] = r->target;
    code_add(r->c, r->does)->ends = r->ends;
  }
  for (uint32_t i = 0; i < r->c->count; i++) {
    if (r->jump_to[i] < 0) continue;
    uint32_t to = (uint64_t)r->jump_to[i] < r->count ? r->insn_at[r->jump_to[i]] : 0;
    if (to == 0 || to > r->c->count) {
      fprintf(stderr, "shapes: an x86-64 instruction jumps to byte %lld, where none begins\n",
              (long long)r->jump_to[i]);
      return 0;
    }
    r->c->insns[i].target = to - 1;
  }
  return 1;
}

int code_read_x86(const code_bytes *from, code *c) {
  reader r = {.bytes = from->bytes, .count = from->count, .c = c};
  r.insn_at = code_make(from->count, sizeof *r.insn_at);
  r.jump_to = code_make(from->count, sizeof *r.jump_to);
  int is_known = read_all(&r);
  for (size_t i = 0; i < from->entry_count && is_known; i++) c->insns[r.insn_at[from->entries[i]] - 1].is_entry = 1;
  free(r.insn_at);
  free(r.jump_to);
  return is_known;
}
