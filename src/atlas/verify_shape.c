/* verify_shape.c - declarations and single instructions. Nothing that a parser, a builder or a binary file says is
 * trusted here: every number is checked before it is used as an index. */
#include "atlas/verify_shape.h"

#include "atlas/assemble.h"
#include "atlas/insn.h"
#include "base/error.h"

#include <string.h>

/* ---- declarations ------------------------------------------------------------------------------------------------ */

typedef struct totals {
  uint32_t buffers, scalars, tables, pools;
  uint64_t shared_bytes, local_bytes;
} totals;

static hg_status bad_symbol(const atlas_symbol *s, const char *reason) {
  return hg_fail(HG_VERIFY, "'%s': %s", s->name, reason);
}

static hg_status check_const(const atlas_program *p, const atlas_symbol *s) {
  uint64_t bytes = (uint64_t)s->count * atlas_bytes((atlas_type)s->type);
  if (!atlas_op_has_type(ATLAS_OP_ldc, (atlas_type)s->type))
    return bad_symbol(s, "constant tables hold arithmetic types");
  if (s->count == 0) return bad_symbol(s, "a constant table needs at least one value");
  if (bytes > ATLAS_MAX_CONST_BYTES)
    return hg_fail(HG_VERIFY, "'%s': a constant table holds at most %d bytes, this one has %llu", s->name,
                   ATLAS_MAX_CONST_BYTES, (unsigned long long)bytes);
  if (s->const_offset % 8 != 0 || s->const_offset > p->constants.count || bytes > p->constants.count - s->const_offset)
    return bad_symbol(s, "its values lie outside the program's constant data");
  return HG_OK;
}

static hg_status check_symbol_kind(const atlas_program *p, const atlas_symbol *s, totals *t) {
  int is_type = atlas_type_bits((atlas_type)s->type) != 0;
  uint64_t bytes = 0;
  if (s->type >= ATLAS_TYPE_COUNT)
    return hg_fail(HG_VERIFY, "'%s': its type code %u is unknown", s->name, (unsigned)s->type);
  switch (s->kind) {
  case ATLAS_SYMBOL_BUFFER:
    if (!is_type) return bad_symbol(s, "a buffer needs an element type");
    if (++t->buffers > ATLAS_MAX_BUFFERS)
      return hg_fail(HG_VERIFY, "'%s': a program has at most %d buffers; use a .table for more", s->name,
                     ATLAS_MAX_BUFFERS);
    break;
  case ATLAS_SYMBOL_SCALAR:
    if (!atlas_op_has_type(ATLAS_OP_movi, (atlas_type)s->type)) return bad_symbol(s, "a scalar has an arithmetic type");
    if (++t->scalars > ATLAS_MAX_SCALARS)
      return hg_fail(HG_VERIFY, "'%s': a program has at most %d scalars", s->name, ATLAS_MAX_SCALARS);
    break;
  case ATLAS_SYMBOL_SHARED:
    if (!is_type) return bad_symbol(s, "shared memory needs an element type");
    if (s->count == 0) return bad_symbol(s, "shared memory needs at least one element");
    bytes = ((uint64_t)s->count * atlas_bytes((atlas_type)s->type) + 15) / 16 * 16;
    if (t->shared_bytes + bytes > ATLAS_MAX_SHARED_BYTES) return atlas_shared_too_large(HG_VERIFY, s, t->shared_bytes);
    t->shared_bytes += bytes;
    break;
  case ATLAS_SYMBOL_LOCAL:
    if (!is_type) return bad_symbol(s, "a local array needs an element type");
    if (s->count == 0) return bad_symbol(s, "a local array needs at least one element");
    if (t->local_bytes + atlas_local_bytes(s) > ATLAS_MAX_LOCAL_BYTES)
      return atlas_local_too_large(HG_VERIFY, s, t->local_bytes);
    t->local_bytes += atlas_local_bytes(s);
    break;
  case ATLAS_SYMBOL_CONST: return check_const(p, s);
  case ATLAS_SYMBOL_TABLE:
    if (++t->tables > 1) return bad_symbol(s, "a program has at most one buffer table");
    if (s->type != ATLAS_u8) return bad_symbol(s, "a buffer table has u8 buffers");
    if (s->count == 0 || s->count > ATLAS_MAX_TABLE_ENTRIES)
      return hg_fail(HG_VERIFY, "'%s': a buffer table has 1 to %d entries, got %u", s->name, ATLAS_MAX_TABLE_ENTRIES,
                     s->count);
    break;
  case ATLAS_SYMBOL_POOL:
    if (++t->pools > ATLAS_MAX_POOLS)
      return hg_fail(HG_VERIFY, "'%s': a program has at most %d pools", s->name, ATLAS_MAX_POOLS);
    if (s->type != ATLAS_u8) return bad_symbol(s, "a pool holds bytes (u8)");
    break;
  default: return bad_symbol(s, "its kind is not one of the seven kinds of symbols");
  }
  return HG_OK;
}

static int name_is_terminated(const char *name) { return memchr(name, '\0', ATLAS_MAX_NAME + 1) != NULL; }

static int access_fits(const atlas_symbol *s) {
  switch (s->kind) {
  case ATLAS_SYMBOL_BUFFER:
  case ATLAS_SYMBOL_TABLE: return atlas_access_name(s->access) != NULL;
  case ATLAS_SYMBOL_POOL: return s->access == ATLAS_INOUT;
  default: return s->access == 0;
  }
}

static hg_status check_symbols(const atlas_program *p) {
  totals t = {0};
  if (p->symbols.count > ATLAS_MAX_SYMBOLS)
    return hg_fail(HG_VERIFY, "a program has at most %d symbols, this one has %zu", ATLAS_MAX_SYMBOLS,
                   p->symbols.count);
  for (size_t i = 0; i < p->symbols.count; i++) {
    const atlas_symbol *s = atlas_symbol_at(p, i);
    if (!name_is_terminated(s->name) || !atlas_name_is_valid(s->name, strlen(s->name)))
      return hg_fail(HG_VERIFY, "symbol %zu: its name is not valid", i);
    for (size_t k = 0; k < i; k++)
      if (strcmp(s->name, atlas_symbol_at(p, k)->name) == 0) return bad_symbol(s, "declared twice");
    HG_TRY(check_symbol_kind(p, s, &t));
    if (!access_fits(s)) return bad_symbol(s, "its access is not one its kind can have");
    if (s->handle != 0 && s->kind != ATLAS_SYMBOL_BUFFER)
      return bad_symbol(s, "only a buffer can have a default handle");
  }
  return HG_OK;
}

static hg_status check_entries(const atlas_program *p) {
  for (size_t i = 0; i < p->entries.count; i++) {
    const atlas_entry *e = atlas_entry_at(p, i);
    const atlas_op_info *info = atlas_op_lookup(e->op);
    if (info == NULL || !(info->flags & ATLAS_FUNC) || !atlas_op_has_type((atlas_op)e->op, (atlas_type)e->type))
      return hg_fail(HG_VERIFY, ".entry %zu names no function instruction and type", i);
    if (e->label >= p->labels.count) return hg_fail(HG_VERIFY, ".entry %s: no such label", info->mnemonic);
    for (size_t k = 0; k < i; k++)
      if (atlas_entry_at(p, k)->op == e->op && atlas_entry_at(p, k)->type == e->type)
        return hg_fail(HG_VERIFY, ".entry %s %s is declared twice", info->mnemonic,
                       atlas_type_name((atlas_type)e->type));
  }
  if (p->entries.count == 0) return HG_OK;
  for (size_t i = 0; i < p->symbols.count; i++)
    if (atlas_symbol_at(p, i)->kind != ATLAS_SYMBOL_CONST)
      return bad_symbol(atlas_symbol_at(p, i), "a library of functions declares constant tables only");
  return HG_OK;
}

static hg_status check_block(const uint32_t block[3]) {
  uint64_t lanes = 1;
  for (int d = 0; d < 3; d++) {
    if ((block[d] == 0) != (block[0] == 0)) return hg_fail(HG_VERIFY, ".block: every dimension must be at least 1");
    if (block[d] > ATLAS_MAX_BLOCK_LANES)
      return hg_fail(HG_VERIFY, ".block: a block has at most %d lanes", ATLAS_MAX_BLOCK_LANES);
    lanes *= block[d];
  }
  if (lanes > ATLAS_MAX_BLOCK_LANES)
    return hg_fail(HG_VERIFY, ".block: a block has at most %d lanes, this one %llu", ATLAS_MAX_BLOCK_LANES,
                   (unsigned long long)lanes);
  return HG_OK;
}

hg_status atlas_verify_declarations(const atlas_program *p) {
  if (!name_is_terminated(p->name) || !atlas_name_is_valid(p->name, strlen(p->name)))
    return hg_fail(HG_VERIFY, "the program's name is not valid");
  HG_TRY(check_block(p->block));
  HG_TRY(check_block(p->default_block));
  if (p->block[0] != 0 && p->default_block[0] != 0)
    return hg_fail(HG_VERIFY, ".block: a block size is required or a default, not both");
  HG_TRY(check_symbols(p));
  if (p->insns.count == 0) return hg_fail(HG_VERIFY, "the program has no instructions; it needs at least 'exit'");
  if (p->insns.count > ATLAS_MAX_INSTRUCTIONS)
    return hg_fail(HG_VERIFY, "a program has at most %d instructions, this one %zu", ATLAS_MAX_INSTRUCTIONS,
                   p->insns.count);
  for (size_t i = 0; i < p->labels.count; i++) {
    const atlas_label *label = atlas_label_at(p, i);
    if (!name_is_terminated(label->name) || !atlas_label_is_valid(label->name, strlen(label->name)))
      return hg_fail(HG_VERIFY, "label %zu: its name is not valid", i);
    if (label->target > p->insns.count)
      return hg_fail(HG_VERIFY, "label '%s' stands nowhere in the program", label->name);
  }
  return check_entries(p);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static hg_status bad_operand(unsigned slot, const char *expected) {
  return hg_fail(HG_VERIFY, "operand %u must be %s", slot + 1, expected);
}

static int is_storage_only(uint8_t type) { return atlas_kind((atlas_type)type) == ATLAS_KIND_STORAGE; }

static hg_status check_source(const atlas_program *p, const atlas_operand *o, unsigned slot, uint8_t type) {
  const char *name = atlas_type_name((atlas_type)type);
  switch (o->kind) {
  case ATLAS_OPERAND_REG:
    if (atlas_is_special(atlas_register_of(o)) && atlas_special_type(o->reg) != (atlas_type)type)
      return hg_fail(HG_VERIFY, "operand %u: %s is %s, not %s; convert it first", slot + 1,
                     o->reg == ATLAS_REG_LANE ? "lane" : o->reg == ATLAS_REG_BLOCK_LANE ? "blane" : "r253 or r254",
                     atlas_type_name(atlas_special_type(o->reg)), name);
    return HG_OK;
  case ATLAS_OPERAND_IMM:
    if (is_storage_only(type))
      return hg_fail(HG_VERIFY, "operand %u: %s is a storage type and takes a register", slot + 1, name);
    if (o->bits & ~atlas_mask((atlas_type)type))
      return hg_fail(HG_VERIFY, "operand %u: the constant does not fit %s", slot + 1, name);
    return HG_OK;
  case ATLAS_OPERAND_SCALAR: {
    if (o->symbol >= p->symbols.count || atlas_symbol_at(p, o->symbol)->kind != ATLAS_SYMBOL_SCALAR)
      return bad_operand(slot, "a scalar parameter");
    const atlas_symbol *s = atlas_symbol_at(p, o->symbol);
    if (s->type != type)
      return hg_fail(HG_VERIFY, "operand %u: scalar '%s' is %s, not %s", slot + 1, s->name,
                     atlas_type_name((atlas_type)s->type), name);
    return HG_OK;
  }
  default: return bad_operand(slot, "a register, a constant or a scalar parameter");
  }
}

static hg_status check_destination(const atlas_operand *o, unsigned slot) {
  if (o->kind != ATLAS_OPERAND_REG) return bad_operand(slot, "a register");
  if (atlas_is_special(atlas_register_of(o)))
    return hg_fail(HG_VERIFY, "operand %u: r252 to r255 (blane, lane) can be read only", slot + 1);
  return HG_OK;
}

static hg_status check_predicate(const atlas_operand *o, unsigned slot) {
  if (o->kind != ATLAS_OPERAND_PRED || o->reg >= ATLAS_PREDICATES) return bad_operand(slot, "a predicate p0 to p15");
  return HG_OK;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* How an instruction uses memory, as the access its parameter must have. */
static uint8_t needed_access(uint32_t flags) {
  if (flags & ATLAS_ATOMIC) return ATLAS_INOUT;
  return flags & ATLAS_STORE ? ATLAS_OUT : ATLAS_IN;
}

static hg_status check_access(const atlas_symbol *s, uint32_t flags) {
  uint8_t needed = needed_access(flags);
  if ((s->access & needed) == needed) return HG_OK;
  const char *does = flags & ATLAS_ATOMIC ? "updated" : flags & ATLAS_STORE ? "written" : "read";
  const char *declare = needed == ATLAS_INOUT ? "inout" : needed == ATLAS_OUT ? "out or inout" : "in or inout";
  return hg_fail(HG_VERIFY, "'%s' is declared %s and cannot be %s; declare it %s", s->name,
                 atlas_access_name(s->access), does, declare);
}

static const char *space_name(uint32_t flags) {
  if (flags & ATLAS_ATOMIC) return "a buffer or shared memory";
  if (flags & ATLAS_SPACE_SHARED) return "shared memory (.shared)";
  if (flags & ATLAS_SPACE_LOCAL) return "a local array (.local)";
  if (flags & ATLAS_SPACE_CONST) return "a constant table (.const)";
  if (flags & ATLAS_SPACE_POOL) return "a pool (.pool)";
  return "a buffer (.buffer)";
}

static int space_fits(uint32_t flags, uint8_t kind) {
  if (flags & ATLAS_ATOMIC) return kind == ATLAS_SYMBOL_BUFFER || kind == ATLAS_SYMBOL_SHARED;
  if (flags & ATLAS_SPACE_SHARED) return kind == ATLAS_SYMBOL_SHARED;
  if (flags & ATLAS_SPACE_LOCAL) return kind == ATLAS_SYMBOL_LOCAL;
  if (flags & ATLAS_SPACE_CONST) return kind == ATLAS_SYMBOL_CONST;
  if (flags & ATLAS_SPACE_POOL) return kind == ATLAS_SYMBOL_POOL;
  return kind == ATLAS_SYMBOL_BUFFER;
}

static hg_status check_named_address(const atlas_program *p, const atlas_insn *insn, const atlas_operand *o,
                                     uint32_t flags) {
  const atlas_symbol *s = atlas_symbol_at(p, o->symbol);
  if (!space_fits(flags, s->kind)) return hg_fail(HG_VERIFY, "'%s' is not %s", s->name, space_name(flags));
  if (s->kind == ATLAS_SYMBOL_BUFFER) HG_TRY(check_access(s, flags));
  if (s->kind != ATLAS_SYMBOL_POOL && s->type != insn->type)
    return hg_fail(HG_VERIFY, "'%s' holds %s, not %s", s->name, atlas_type_name((atlas_type)s->type),
                   atlas_type_name((atlas_type)insn->type));
  int has_known_size = s->kind == ATLAS_SYMBOL_SHARED || s->kind == ATLAS_SYMBOL_LOCAL || s->kind == ATLAS_SYMBOL_CONST;
  if (has_known_size && o->mode == ATLAS_ADDRESS_UNIFORM && o->bits >= s->count)
    return hg_fail(HG_VERIFY, "index %lld is out of range: '%s' has %u elements", (long long)(int64_t)o->bits, s->name,
                   s->count);
  return HG_OK;
}

static hg_status check_address(const atlas_program *p, const atlas_insn *insn, const atlas_operand *o, unsigned slot,
                               uint32_t flags) {
  if (o->kind != ATLAS_OPERAND_MEM) return bad_operand(slot, "an address in [ ]");
  int is_plain_global = (flags & ATLAS_SPACE_GLOBAL) != 0;
  if (o->mode == ATLAS_ADDRESS_PHI) {
    if (!is_plain_global) return hg_fail(HG_VERIFY, "[phi ...] is reached by ldg and stg only");
    if (o->phi_registers > 7) return bad_operand(slot, "a [phi class, page, byte] address");
    if (!atlas_phi_exists(o))
      return hg_fail(HG_VERIFY, "[phi class, page, byte]: class is below 96, page below 48, byte below 256");
    return HG_OK;
  }
  if (o->symbol >= p->symbols.count) return bad_operand(slot, "an address of a declared name");
  switch (o->mode) {
  case ATLAS_ADDRESS_UNIFORM:
  case ATLAS_ADDRESS_INDEXED: return check_named_address(p, insn, o, flags);
  case ATLAS_ADDRESS_TABLE:
    if (!is_plain_global) return hg_fail(HG_VERIFY, "a buffer table is reached by ldg and stg only");
    if (atlas_symbol_at(p, o->symbol)->kind != ATLAS_SYMBOL_TABLE) return bad_operand(slot, "an address in a .table");
    return check_access(atlas_symbol_at(p, o->symbol), flags);
  default: return bad_operand(slot, "an address of a known form");
  }
}

enum { MOST_RANKED_BITS = 8 };

/* As many elements of a shared array as the constant behind the address says: 2^bits. */
static hg_status check_window(const atlas_program *p, const atlas_insn *insn, unsigned slot, uint32_t flags) {
  const atlas_operand *o = &insn->operand[slot], *bits = &insn->operand[slot + 1];
  HG_TRY(check_address(p, insn, o, slot, flags));
  if (o->mode != ATLAS_ADDRESS_UNIFORM) return bad_operand(slot, "[array + #k]: the index is a constant");
  if (bits->kind != ATLAS_OPERAND_IMM || bits->bits < 1 || bits->bits > MOST_RANKED_BITS)
    return bad_operand(slot + 1, "how many bits are ranked: a constant from 1 to 8");
  const atlas_symbol *s = atlas_symbol_at(p, o->symbol);
  if (o->bits + (UINT64_C(1) << bits->bits) > s->count)
    return hg_fail(HG_VERIFY, "%u counts from index %u on are out of range: '%s' has %u elements", 1u << bits->bits,
                   (unsigned)o->bits, s->name, s->count);
  return HG_OK;
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static hg_status check_buffer(const atlas_program *p, const atlas_operand *o, unsigned slot) {
  if (o->kind != ATLAS_OPERAND_BUFFER || o->symbol >= p->symbols.count) return bad_operand(slot, "a buffer (.buffer)");
  const atlas_symbol *s = atlas_symbol_at(p, o->symbol);
  if (s->kind == ATLAS_SYMBOL_BUFFER) return HG_OK;
  return hg_fail(HG_VERIFY, "'%s' is not a buffer (.buffer): a pool and the entries of a table have no length that a "
                 "program can ask for", s->name);
}

static hg_status check_operand(const atlas_program *p, const atlas_insn *insn, unsigned slot, char letter,
                               uint32_t flags) {
  const atlas_operand *o = &insn->operand[slot];
  switch (letter) {
  case 'd': return check_destination(o, slot);
  case 'o': return o->kind == ATLAS_OPERAND_NONE ? HG_OK : check_destination(o, slot);
  case 's': return check_source(p, o, slot, insn->type);
  case 't': return check_source(p, o, slot, insn->type2);
  case 'c': return check_source(p, o, slot, ATLAS_u32);
  case 'n':
    if (o->kind != ATLAS_OPERAND_IMM) return bad_operand(slot, "a constant");
    return check_source(p, o, slot, insn->type);
  case 'k':
    if (o->kind != ATLAS_OPERAND_IMM) return bad_operand(slot, "a constant");
    return check_source(p, o, slot, ATLAS_u32);
  case 'm': return check_address(p, insn, o, slot, flags);
  case 'w': return check_window(p, insn, slot, flags);
  case 'p':
  case 'q': return check_predicate(o, slot);
  case 'r': return check_destination(o, slot);
  case 'l':
    if (o->kind != ATLAS_OPERAND_LABEL || o->bits >= p->labels.count) return bad_operand(slot, "a label");
    return HG_OK;
  case 'x':
    if (o->kind != ATLAS_OPERAND_COORD || o->bits >= ATLAS_COORD_COUNT)
      return bad_operand(slot, "a coordinate such as lane.x");
    return HG_OK;
  case 'h':
    if (o->kind != ATLAS_OPERAND_POOL || o->symbol >= p->symbols.count ||
        atlas_symbol_at(p, o->symbol)->kind != ATLAS_SYMBOL_POOL)
      return bad_operand(slot, "a pool");
    return HG_OK;
  case 'b': return check_buffer(p, o, slot);
  default: return bad_operand(slot, "of a form this version knows");
  }
}

static hg_status check_type_code(uint8_t type) {
  return type < ATLAS_TYPE_COUNT ? HG_OK : hg_fail(HG_VERIFY, "its type code %u is unknown", (unsigned)type);
}

static hg_status check_second_type(const atlas_insn *insn, const atlas_op_info *info) {
  if (!(info->flags & ATLAS_SECOND))
    return insn->type2 == ATLAS_NONE ? HG_OK : hg_fail(HG_VERIFY, "it has no second type");
  if (insn->type2 == ATLAS_NONE) return hg_fail(HG_VERIFY, "it needs a second type");
  if (!atlas_op_has_type((atlas_op)insn->op, (atlas_type)insn->type2))
    return hg_fail(HG_VERIFY, "its second type cannot be %s", atlas_type_name((atlas_type)insn->type2));
  if (insn->op == ATLAS_OP_bitcast &&
      atlas_type_bits((atlas_type)insn->type) != atlas_type_bits((atlas_type)insn->type2))
    return hg_fail(HG_VERIFY, "%s and %s differ in width; a bitcast keeps the bits",
                   atlas_type_name((atlas_type)insn->type), atlas_type_name((atlas_type)insn->type2));
  return HG_OK;
}

/* Functions are pure: no memory but constant tables, nothing that depends on the lane. */
static hg_status check_in_library(const atlas_insn *insn, const atlas_op_info *info) {
  int is_control =
      insn->op == ATLAS_OP_bra || insn->op == ATLAS_OP_loop || insn->op == ATLAS_OP_call || insn->op == ATLAS_OP_ret;
  int reads_place = insn->op == ATLAS_OP_sreg || insn->op == ATLAS_OP_cls_get;
  for (unsigned i = 0; i < insn->operand_count;
       i++) /* the register fields of operands of other kinds are zero or checked */
    if (insn->operand[i].reg >= ATLAS_GENERAL_REGISTERS) reads_place = 1;
  if ((info->flags & ATLAS_PURE || is_control) && !reads_place) return HG_OK;
  return hg_fail(HG_VERIFY, "a library function is pure: it cannot use this");
}

hg_status atlas_verify_insn(const atlas_program *p, const atlas_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info == NULL) return hg_fail(HG_VERIFY, "no instruction has the code 0x%04x", insn->op);
  HG_TRY(check_type_code(insn->type));
  HG_TRY(check_type_code(insn->type2));
  if (!atlas_op_has_type((atlas_op)insn->op, (atlas_type)insn->type))
    return insn->type == ATLAS_NONE
               ? hg_fail(HG_VERIFY, "it needs a type")
               : hg_fail(HG_VERIFY, "it does not exist for the type %s", atlas_type_name((atlas_type)insn->type));
  HG_TRY(check_second_type(insn, info));
  size_t operands = strlen(info->operands);
  if (insn->operand_count != operands)
    return hg_fail(HG_VERIFY, "it needs %zu operands, got %u", operands, insn->operand_count);
  if (insn->guard != 0) {
    if (insn->op != ATLAS_OP_bra)
      return hg_fail(HG_VERIFY, "only 'bra' takes a predicate; use 'sel' or branch around it");
    unsigned predicate = insn->guard & ATLAS_GUARD_PREDICATE;
    if (predicate == 0 || predicate > ATLAS_PREDICATES)
      return hg_fail(HG_VERIFY, "its guard must be a predicate p0 to p15");
  }
  for (unsigned i = 0; i < operands; i++) HG_TRY(check_operand(p, insn, i, info->operands[i], info->flags));
  return p->entries.count > 0 ? check_in_library(insn, info) : HG_OK;
}
