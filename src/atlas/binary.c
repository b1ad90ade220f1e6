/* binary.c - the binary form of programs. All numbers are little-endian.
 *
 *   header    8 bytes magic; u16 binary, ISA and numerics version; u16 number of sections; u32 length of the whole;
 *             u32 CRC-32 of the whole, taken with this field as zero
 *   section   u16 id; u16 flags (1: critical); u32 length; that many bytes
 *
 * Sections stand in the order of their ids, each at most once. A reader rejects a critical section that it does not
 * know and skips any other, so that things a program can do without may be added later. A name is a u8 length and that
 * many bytes.
 *
 * The decoder trusts nothing: it reads through a cursor that cannot leave the bytes, checks every count against the
 * bytes that are left before it allocates, and leaves the meaning of instructions to the verifier. To add a section:
 * one row in `sections`. */
#include "atlas/assemble.h"
#include "atlas/insn.h"
#include "base/bytes.h"
#include "base/error.h"

#include <string.h>

enum { MAGIC_BYTES = 8, HEADER_BYTES = 24, CRC_OFFSET = 20, CRITICAL = 1 };

/* As in PNG: a byte that is no text, and a line end that a transfer as text would change. */
static const uint8_t magic[MAGIC_BYTES] = {0x89, 'A', 'T', 'L', 'A', 'S', '\r', '\n'};

/* ---- writing ------------------------------------------------------------------------------------------------ */

typedef struct encoder {
  const hg_allocator *allocator;
  const atlas_program *program;
  hg_array bytes;
  int failed; /* out of memory: nothing more is written, and the end reports it */
} encoder;

static void encode_bytes(encoder *e, const void *bytes, size_t count) {
  if (!e->failed && hg_array_append(e->allocator, &e->bytes, bytes, count) == NULL) e->failed = 1;
}

static void encode_number(encoder *e, unsigned width, uint64_t value) {
  uint8_t bytes[8];
  hg_store_le(bytes, width, value);
  encode_bytes(e, bytes, width);
}

static void encode_name(encoder *e, const char *name) {
  size_t length = strlen(name);
  encode_number(e, 1, length);
  encode_bytes(e, name, length);
}

static void encode_program(encoder *e) {
  encode_name(e, e->program->name);
  for (int i = 0; i < 3; i++) encode_number(e, 4, e->program->block[i]);
}

static void encode_symbols(encoder *e) {
  encode_number(e, 4, e->program->symbols.count);
  for (size_t i = 0; i < e->program->symbols.count; i++) {
    const atlas_symbol *symbol = atlas_symbol_at(e->program, i);
    encode_name(e, symbol->name);
    encode_number(e, 1, symbol->kind);
    encode_number(e, 1, symbol->type);
    encode_number(e, 1, symbol->access);
    encode_number(e, 1, 0);
    encode_number(e, 4, symbol->count);
    encode_number(e, 8, symbol->handle);
  }
}

/* The tables follow one another as in the program; the symbols give their lengths. */
static void encode_constants(encoder *e) { encode_bytes(e, e->program->constants.data, e->program->constants.count); }

static void encode_labels(encoder *e) {
  encode_number(e, 4, e->program->labels.count);
  for (size_t i = 0; i < e->program->labels.count; i++) {
    encode_name(e, atlas_label_at(e->program, i)->name);
    encode_number(e, 4, atlas_label_at(e->program, i)->target);
  }
}

static void encode_operand(encoder *e, const atlas_operand *o) {
  encode_number(e, 1, o->kind);
  switch (o->kind) {
  case ATLAS_OPERAND_REG:
  case ATLAS_OPERAND_PRED: encode_number(e, 1, o->reg); break;
  case ATLAS_OPERAND_IMM: encode_number(e, 8, o->bits); break;
  case ATLAS_OPERAND_SCALAR:
  case ATLAS_OPERAND_POOL:
  case ATLAS_OPERAND_BUFFER: encode_number(e, 2, o->symbol); break;
  case ATLAS_OPERAND_LABEL: encode_number(e, 4, o->bits); break;
  case ATLAS_OPERAND_COORD: encode_number(e, 1, o->bits); break;
  case ATLAS_OPERAND_MEM:
    encode_number(e, 1, o->mode);
    encode_number(e, 2, o->symbol);
    encode_number(e, 1, o->reg);
    encode_number(e, 1, o->reg2);
    encode_number(e, 1, o->reg3);
    encode_number(e, 1, o->phi_registers);
    encode_number(e, 8, o->bits);
    break;
  default: break;
  }
}

static void encode_code(encoder *e) {
  encode_number(e, 4, e->program->insns.count);
  for (size_t i = 0; i < e->program->insns.count; i++) {
    const atlas_insn *insn = atlas_insn_at(e->program, i);
    encode_number(e, 2, insn->op);
    encode_number(e, 1, insn->type);
    encode_number(e, 1, insn->type2);
    encode_number(e, 1, insn->guard);
    encode_number(e, 1, insn->operand_count);
    for (unsigned k = 0; k < insn->operand_count; k++) encode_operand(e, &insn->operand[k]);
  }
}

static void encode_entries(encoder *e) {
  encode_number(e, 4, e->program->entries.count);
  for (size_t i = 0; i < e->program->entries.count; i++) {
    const atlas_entry *entry = atlas_entry_at(e->program, i);
    encode_number(e, 2, entry->op);
    encode_number(e, 1, entry->type);
    encode_number(e, 1, 0);
    encode_number(e, 4, entry->label);
  }
}

static void encode_default_block(encoder *e) {
  for (int i = 0; i < 3; i++) encode_number(e, 4, e->program->default_block[i]);
}

static void encode_lines(encoder *e) {
  for (size_t i = 0; i < e->program->insns.count; i++) encode_number(e, 4, atlas_insn_at(e->program, i)->line);
}

static int has_lines(const atlas_program *p) {
  for (size_t i = 0; i < p->insns.count; i++)
    if (atlas_insn_at(p, i)->line != 0) return 1;
  return 0;
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

/* Bytes to be decoded. Reads past the end give zeros and set `is_short`, so that one check at the end is enough.
 */
typedef struct cursor {
  const uint8_t *first; /* of the whole form */
  const uint8_t *next, *end;
  int is_short;
} cursor;

static size_t left(const cursor *c) { return (size_t)(c->end - c->next); }

static const uint8_t *read_bytes(cursor *c, size_t count) {
  if (c->is_short || left(c) < count) {
    c->is_short = 1;
    return NULL;
  }
  const uint8_t *bytes = c->next;
  c->next += count;
  return bytes;
}

static uint64_t decode_number(cursor *c, unsigned width) {
  const uint8_t *bytes = read_bytes(c, width);
  return bytes != NULL ? hg_load_le(bytes, width) : 0;
}

static uint8_t decode_u8(cursor *c) { return (uint8_t)decode_number(c, 1); }

static hg_status bad(const char *what, uint64_t index, const char *reason) {
  return hg_fail(HG_FORMAT, "%s %llu %s", what, (unsigned long long)index, reason);
}

static hg_status decode_name(cursor *c, const char *what, uint64_t index, int (*is_valid)(const char *, size_t),
                           char name[ATLAS_MAX_NAME + 1]) {
  size_t length = decode_u8(c);
  const uint8_t *bytes = read_bytes(c, length);
  if (bytes == NULL) return bad(what, index, "is cut off");
  if (!is_valid((const char *)bytes, length)) return bad(what, index, "has a name that is not valid");
  atlas_name_copy(name, (const char *)bytes, length);
  return HG_OK;
}

/* A count of elements of at least `least` bytes each, which must be at most `most`. */
static hg_status decode_count(cursor *c, const char *what, size_t least, uint64_t most, size_t *count) {
  uint64_t value = decode_number(c, 4);
  if (c->is_short || value > left(c) / least || value > most)
    return hg_fail(HG_FORMAT, "there cannot be %llu %s in %llu bytes (at most %llu)", (unsigned long long)value, what,
                   (unsigned long long)left(c), (unsigned long long)most);
  *count = (size_t)value;
  return HG_OK;
}

static hg_status decode_program(atlas_program *p, cursor *c) {
  HG_TRY(decode_name(c, "program", 1, atlas_name_is_valid, p->name));
  for (int i = 0; i < 3; i++) p->block[i] = (uint32_t)decode_number(c, 4);
  return HG_OK;
}

static hg_status decode_symbols(atlas_program *p, cursor *c) {
  size_t count = 0;
  uint64_t constant_bytes = 0;
  HG_TRY(decode_count(c, "symbols", 17, ATLAS_MAX_SYMBOLS, &count));
  for (size_t i = 0; i < count; i++) {
    atlas_symbol symbol = {.kind = 0};
    HG_TRY(decode_name(c, "symbol", i, atlas_name_is_valid, symbol.name));
    symbol.kind = decode_u8(c);
    symbol.type = decode_u8(c);
    symbol.access = decode_u8(c);
    if (decode_u8(c) != 0) return bad("symbol", i, "has a reserved byte that is not zero");
    symbol.count = (uint32_t)decode_number(c, 4);
    symbol.handle = decode_number(c, 8);
    if (c->is_short) return bad("symbol", i, "is cut off");
    if (symbol.kind == ATLAS_SYMBOL_CONST) symbol.const_offset = (uint32_t)constant_bytes;
    hg_status status = atlas_program_declare(p, &symbol);
    if (status == HG_INVALID_ARGUMENT) return hg_fail(HG_FORMAT, "symbol %u: %s", (unsigned)i, hg_last_error());
    HG_TRY(status);
    /* atlas_program_declare has checked the size against ATLAS_MAX_CONST_BYTES. */
    if (symbol.kind == ATLAS_SYMBOL_CONST)
      constant_bytes += ((uint64_t)symbol.count * atlas_bytes((atlas_type)symbol.type) + 7) / 8 * 8;
  }
  return HG_OK;
}

static hg_status decode_constants(atlas_program *p, cursor *c) {
  size_t count = left(c);
  if (count == 0) return HG_OK;
  if (hg_array_append(&p->allocator, &p->constants, read_bytes(c, count), count) == NULL)
    return hg_fail_memory("a program's constants", count);
  return HG_OK;
}

static hg_status decode_labels(atlas_program *p, cursor *c) {
  size_t count = 0;
  uint32_t last = 0;
  HG_TRY(decode_count(c, "labels", 6, UINT32_MAX - 1, &count));
  if (count > 0 && hg_array_append(&p->allocator, &p->labels, NULL, count) == NULL)
    return hg_fail_memory("a program's labels", (uint64_t)count * sizeof(atlas_label));
  for (size_t i = 0; i < count; i++) {
    atlas_label *label = (atlas_label *)p->labels.data + i;
    HG_TRY(decode_name(c, "label", i, atlas_label_is_valid, label->name));
    label->target = (uint32_t)decode_number(c, 4);
    if (c->is_short) return bad("label", i, "is cut off");
    if (label->target < last) return bad("label", i, "stands before the label in front of it");
    last = label->target;
  }
  return HG_OK;
}

static hg_status decode_address(cursor *c, atlas_operand *o, uint64_t insn) {
  o->mode = decode_u8(c);
  o->symbol = (uint16_t)decode_number(c, 2);
  o->reg = decode_u8(c);
  o->reg2 = decode_u8(c);
  o->reg3 = decode_u8(c);
  o->phi_registers = decode_u8(c);
  o->bits = decode_number(c, 8);
  atlas_operand unused = *o; /* what the mode does not use must be zero: one program, one encoding */
  switch (o->mode) {
  case ATLAS_ADDRESS_INDEXED: unused.reg = 0; /* fallthrough */
  case ATLAS_ADDRESS_UNIFORM:
    unused.symbol = 0;
    unused.bits = 0;
    break;
  case ATLAS_ADDRESS_TABLE:
    unused.symbol = 0;
    unused.reg = unused.reg2 = 0;
    break;
  case ATLAS_ADDRESS_PHI:
    if (o->phi_registers & 1) unused.reg = 0;
    if (o->phi_registers & 2) unused.reg2 = 0;
    if (o->phi_registers & 4) unused.reg3 = 0;
    unused.bits &= (o->phi_registers & 1 ? UINT64_C(0xffff) : 0) | (o->phi_registers & 2 ? UINT64_C(0xffff0000) : 0) |
                   (o->phi_registers & 4 ? UINT64_C(0xffffffff00000000) : 0);
    unused.phi_registers &= (uint8_t)~7u;
    if (!atlas_phi_exists(o)) return bad("instruction", insn, "has an address outside the boundary pool");
    break;
  default: return bad("instruction", insn, "has an address of a form that does not exist");
  }
  if (unused.symbol != 0 || unused.reg != 0 || unused.reg2 != 0 || unused.reg3 != 0 || unused.phi_registers != 0 ||
      unused.bits != 0)
    return bad("instruction", insn, "has an address with something in a field that its form does not use");
  return HG_OK;
}

static hg_status decode_operand(cursor *c, atlas_operand *o, uint64_t insn) {
  o->kind = decode_u8(c);
  switch (o->kind) {
  case ATLAS_OPERAND_NONE: return HG_OK;
  case ATLAS_OPERAND_REG:
  case ATLAS_OPERAND_PRED: o->reg = decode_u8(c); return HG_OK;
  case ATLAS_OPERAND_IMM: o->bits = decode_number(c, 8); return HG_OK;
  case ATLAS_OPERAND_SCALAR:
  case ATLAS_OPERAND_POOL:
  case ATLAS_OPERAND_BUFFER: o->symbol = (uint16_t)decode_number(c, 2); return HG_OK;
  case ATLAS_OPERAND_LABEL: o->bits = decode_number(c, 4); return HG_OK;
  case ATLAS_OPERAND_COORD: o->bits = decode_number(c, 1); return HG_OK;
  case ATLAS_OPERAND_MEM: return decode_address(c, o, insn);
  default: return bad("instruction", insn, "has an operand of a kind that does not exist");
  }
}

static hg_status decode_insn(atlas_program *p, cursor *c, atlas_insn *insn, uint64_t index) {
  insn->op = (uint16_t)decode_number(c, 2);
  insn->type = decode_u8(c);
  insn->type2 = decode_u8(c);
  insn->guard = decode_u8(c);
  insn->operand_count = decode_u8(c);
  if (insn->operand_count > ATLAS_MAX_OPERANDS)
    return bad("instruction", index, "has more operands than there is room for");
  if (!c->is_short && atlas_op_lookup(insn->op) == NULL)
    return bad("instruction", index, "has a code that does not exist");
  for (unsigned k = 0; k < insn->operand_count; k++) {
    atlas_operand *o = &insn->operand[k];
    HG_TRY(decode_operand(c, o, index));
    int names_symbol = o->kind == ATLAS_OPERAND_SCALAR || o->kind == ATLAS_OPERAND_POOL ||
                       o->kind == ATLAS_OPERAND_BUFFER ||
                       (o->kind == ATLAS_OPERAND_MEM && o->mode != ATLAS_ADDRESS_PHI);
    if (names_symbol && o->symbol >= p->symbols.count)
      return bad("instruction", index, "names a symbol that does not exist");
    if (o->kind == ATLAS_OPERAND_LABEL && o->bits >= p->labels.count)
      return bad("instruction", index, "names a label that does not exist");
  }
  return c->is_short ? bad("instruction", index, "is cut off") : HG_OK;
}

static hg_status decode_code(atlas_program *p, cursor *c) {
  size_t count = 0;
  HG_TRY(decode_count(c, "instructions", 6, ATLAS_MAX_INSTRUCTIONS, &count));
  if (count > 0 && hg_array_append(&p->allocator, &p->insns, NULL, count) == NULL)
    return hg_fail_memory("a program's instructions", (uint64_t)count * sizeof(atlas_insn));
  for (size_t i = 0; i < count; i++) HG_TRY(decode_insn(p, c, (atlas_insn *)p->insns.data + i, i));
  return HG_OK;
}

static hg_status decode_entries(atlas_program *p, cursor *c) {
  size_t count = 0;
  HG_TRY(decode_count(c, "entries", 8, atlas_op_count() * ATLAS_TYPE_COUNT, &count));
  for (size_t i = 0; i < count; i++) {
    atlas_entry entry = {.op = (uint16_t)decode_number(c, 2)};
    entry.type = decode_u8(c);
    uint8_t reserved = decode_u8(c);
    entry.label = (uint32_t)decode_number(c, 4);
    if (reserved != 0) return bad("entry", i, "has a reserved byte that is not zero");
    if (!atlas_op_has_type((atlas_op)entry.op, (atlas_type)entry.type)) return bad("entry", i, "is of no instruction");
    if (entry.label >= p->labels.count) return bad("entry", i, "names a label that does not exist");
    if (hg_array_append(&p->allocator, &p->entries, &entry, 1) == NULL) return hg_fail_memory("entries", sizeof entry);
  }
  return HG_OK;
}

static hg_status decode_default_block(atlas_program *p, cursor *c) {
  for (int i = 0; i < 3; i++) p->default_block[i] = (uint32_t)decode_number(c, 4);
  if (p->default_block[0] == 0) return hg_fail(HG_FORMAT, "the default block has no lanes");
  return HG_OK;
}

static hg_status decode_lines(atlas_program *p, cursor *c) {
  if (left(c) != p->insns.count * 4) return hg_fail(HG_FORMAT, "there must be one line number for each instruction");
  for (size_t i = 0; i < p->insns.count; i++) ((atlas_insn *)p->insns.data)[i].line = (uint32_t)decode_number(c, 4);
  return HG_OK;
}

/* ---- sections ----------------------------------------------------------------------------------------------- */

static int always(const atlas_program *p) { return p != NULL; }
static int has_symbols(const atlas_program *p) { return p->symbols.count > 0; }
static int has_constants(const atlas_program *p) { return p->constants.count > 0; }
static int has_labels(const atlas_program *p) { return p->labels.count > 0; }
static int has_entries(const atlas_program *p) { return p->entries.count > 0; }
static int has_default_block(const atlas_program *p) { return p->default_block[0] != 0; }

typedef struct section {
  uint16_t id, flags;
  const char *name;
  int (*is_needed)(const atlas_program *program); /* an empty section is left out */
  void (*encode)(encoder *e);
  hg_status (*decode)(atlas_program *program, cursor *c);
} section;

/* Ids are frozen. They ascend, and a section may refer to those before it. */
static const section sections[] = {
    {1, CRITICAL, "program", always, encode_program, decode_program},
    {2, CRITICAL, "symbols", has_symbols, encode_symbols, decode_symbols},
    {3, CRITICAL, "constants", has_constants, encode_constants, decode_constants},
    {4, CRITICAL, "labels", has_labels, encode_labels, decode_labels},
    {5, CRITICAL, "code", always, encode_code, decode_code},
    {6, CRITICAL, "entries", has_entries, encode_entries, decode_entries},
    /* Critical, because without it the program would run in other blocks than its author meant. */
    {7, CRITICAL, "default block", has_default_block, encode_default_block, decode_default_block},
    {64, 0, "lines", has_lines, encode_lines, decode_lines},
};
enum { SECTION_COUNT = sizeof sections / sizeof sections[0] };

static const section *find_section(uint64_t id) {
  for (size_t i = 0; i < SECTION_COUNT; i++)
    if (sections[i].id == id) return &sections[i];
  return NULL;
}

hg_status atlas_encode(const hg_allocator *allocator, const atlas_program *program, void **bytes, size_t *length) {
  if (program == NULL || bytes == NULL || length == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "atlas_encode needs a program and a place for its bytes and their number");
  hg_allocator resolved;
  *bytes = NULL;
  HG_TRY(hg_allocator_resolve(allocator, &resolved));
  encoder e = {.allocator = &resolved, .program = program, .bytes = {.element_size = 1}};
  size_t section_count = 0;
  for (size_t i = 0; i < SECTION_COUNT; i++) section_count += sections[i].is_needed(program) != 0;
  encode_bytes(&e, magic, MAGIC_BYTES);
  encode_number(&e, 2, ATLAS_BINARY_VERSION);
  encode_number(&e, 2, ATLAS_ISA_VERSION);
  encode_number(&e, 2, ATLAS_NUMERICS_VERSION);
  encode_number(&e, 2, section_count);
  encode_number(&e, 8, 0); /* length and checksum, below */
  for (size_t i = 0; i < SECTION_COUNT; i++) {
    if (!sections[i].is_needed(program)) continue;
    encode_number(&e, 2, sections[i].id);
    encode_number(&e, 2, sections[i].flags);
    encode_number(&e, 4, 0);
    size_t start = e.bytes.count;
    sections[i].encode(&e);
    if (!e.failed) hg_store_le((uint8_t *)e.bytes.data + start - 4, 4, e.bytes.count - start);
  }
  if (e.failed || e.bytes.count > UINT32_MAX) {
    hg_status status = hg_fail_memory("a program's binary form", e.bytes.count);
    hg_array_release(&resolved, &e.bytes);
    return status;
  }
  uint8_t *header = e.bytes.data;
  hg_store_le(header + CRC_OFFSET - 4, 4, e.bytes.count);
  hg_store_le(header + CRC_OFFSET, 4, hg_crc32(0, header, e.bytes.count));
  *bytes = header;
  *length = e.bytes.count;
  return HG_OK;
}

/* ---- the whole ---------------------------------------------------------------------------------------------- */

static hg_status check_version(const char *what, uint64_t found, unsigned known) {
  if (found == known) return HG_OK;
  return hg_fail(HG_FORMAT, "the program has %s version %llu; this library knows version %u", what,
                 (unsigned long long)found, known);
}

static hg_status check_header(const uint8_t *bytes, size_t length) {
  static const uint8_t zeros[4] = {0};
  if (length < MAGIC_BYTES || memcmp(bytes, magic, MAGIC_BYTES) != 0)
    return hg_fail(HG_FORMAT, "these bytes are not a binary Atlas program: they start differently");
  if (length < HEADER_BYTES) return hg_fail(HG_FORMAT, "the program is cut off in its header");
  HG_TRY(check_version("binary", hg_load_le(bytes + 8, 2), ATLAS_BINARY_VERSION));
  HG_TRY(check_version("ISA", hg_load_le(bytes + 10, 2), ATLAS_ISA_VERSION));
  HG_TRY(check_version("numerics", hg_load_le(bytes + 12, 2), ATLAS_NUMERICS_VERSION));
  uint64_t stated = hg_load_le(bytes + CRC_OFFSET - 4, 4);
  if (stated != length)
    return hg_fail(HG_FORMAT, "the program has %llu bytes; its header says %llu", (unsigned long long)length,
                   (unsigned long long)stated);
  uint32_t crc = hg_crc32(0, bytes, CRC_OFFSET);
  crc = hg_crc32(hg_crc32(crc, zeros, 4), bytes + HEADER_BYTES, length - HEADER_BYTES);
  if (crc != hg_load_le(bytes + CRC_OFFSET, 4))
    return hg_fail(HG_FORMAT, "the program's checksum does not fit: its bytes were changed");
  return HG_OK;
}

static hg_status read_section(atlas_program *p, const section *s, cursor *body, uint64_t flags) {
  if (flags != s->flags) return hg_fail(HG_FORMAT, "section '%s' has flags %llu", s->name, (unsigned long long)flags);
  HG_TRY(s->decode(p, body));
  if (body->is_short) return hg_fail(HG_FORMAT, "section '%s' is cut off", s->name);
  if (left(body) != 0)
    return hg_fail(HG_FORMAT, "section '%s' has %llu bytes too many", s->name, (unsigned long long)left(body));
  return HG_OK;
}

static hg_status decode_section(atlas_program *p, const section *s, cursor body, uint64_t flags) {
  hg_status status = read_section(p, s, &body, flags);
  if (status == HG_FORMAT) hg_error_has_offset((uint64_t)(body.next - body.first));
  return status;
}

static hg_status decode_sections(atlas_program *p, cursor *c, uint64_t count) {
  uint64_t last = 0;
  unsigned seen = 0; /* bit: id */
  for (uint64_t i = 0; i < count; i++) {
    uint64_t id = decode_number(c, 2), flags = decode_number(c, 2), size = decode_number(c, 4);
    const uint8_t *bytes = read_bytes(c, (size_t)size);
    if (bytes == NULL) return bad("section", i, "is cut off");
    if (id <= last) return bad("section", id, "is not in its place");
    last = id;
    const section *s = find_section(id);
    if (s != NULL) HG_TRY(decode_section(p, s, (cursor){c->first, bytes, bytes + size, 0}, flags));
    else if (flags & CRITICAL)
      return bad("section", id, "is needed to run the program, and this version does not know it");
    if (id < 32) seen |= 1u << id;
  }
  if (left(c) != 0) return hg_fail(HG_FORMAT, "%llu bytes stand after the last section", (unsigned long long)left(c));
  if ((seen & 1u << 1) == 0 || (seen & 1u << 5) == 0) return hg_fail(HG_FORMAT, "the program has no name or no code");
  return HG_OK;
}

/* Checks that concern more than one section. */
static hg_status check_whole(const atlas_program *p) {
  uint64_t constant_bytes = 0;
  for (size_t i = 0; i < p->symbols.count; i++) {
    const atlas_symbol *symbol = atlas_symbol_at(p, i);
    if (symbol->kind != ATLAS_SYMBOL_CONST) continue;
    uint64_t end = symbol->const_offset + (uint64_t)symbol->count * atlas_bytes((atlas_type)symbol->type);
    constant_bytes = (end + 7) / 8 * 8;
    if (constant_bytes > p->constants.count) break;
    for (; end < constant_bytes; end++)
      if (((const uint8_t *)p->constants.data)[end] != 0) return bad("symbol", i, "has padding that is not zero");
  }
  if (constant_bytes != p->constants.count)
    return hg_fail(HG_FORMAT, "the constants have %llu bytes; the constant tables need %llu",
                   (unsigned long long)p->constants.count, (unsigned long long)constant_bytes);
  atlas_label_index index = {0};
  hg_status status = HG_OK;
  uint32_t found = ATLAS_NO_LABEL;
  for (uint32_t i = 0; i < p->labels.count && status == HG_OK; i++) {
    status = atlas_label_enter(&p->allocator, &index, &p->labels, i, &found);
    if (status == HG_OK && found != ATLAS_NO_LABEL) status = bad("label", i, "has the name of another one");
  }
  atlas_label_index_release(&p->allocator, &index);
  return status;
}

hg_status atlas_decode(const hg_allocator *allocator, const void *bytes, size_t length, atlas_program **out) {
  if (out == NULL || (bytes == NULL && length > 0))
    return hg_fail(HG_INVALID_ARGUMENT, "atlas_decode needs bytes and an `out`");
  *out = NULL;
  hg_allocator resolved;
  HG_TRY(hg_allocator_resolve(allocator, &resolved));
  HG_TRY(check_header(bytes, length));
  atlas_program *program = atlas_program_new(&resolved);
  if (program == NULL) return HG_OUT_OF_MEMORY;
  cursor c = {bytes, (const uint8_t *)bytes + HEADER_BYTES, (const uint8_t *)bytes + length, 0};
  hg_status status = decode_sections(program, &c, hg_load_le((const uint8_t *)bytes + 14, 2));
  if (status == HG_OK) status = check_whole(program);
  if (status == HG_OK) return atlas_program_complete(program, NULL, out);
  atlas_program_release(program);
  return status;
}
