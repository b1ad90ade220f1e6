/* build.c - programs made by calls instead of text. The first error is kept until atlas_builder_finish reports it. */
#include "atlas/builder.h"
#include "atlas/insn.h"
#include "base/bytes.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { INVALID_OPERAND = 0xff, BEYOND_TEXT = ATLAS_BEYOND_TEXT };

/* ---- errors ------------------------------------------------------------------------------------------------- */

/* Records a failure whose sentence is the last error; later calls do nothing. */
static void keep_failure(atlas_builder *b, hg_status status) {
  if (status == HG_OK || b->status != HG_OK) return;
  b->status = status;
  hg_clip(hg_last_error(), strlen(hg_last_error()), b->message, sizeof b->message);
}

static int is_live(const atlas_builder *b) { return b != NULL && b->status == HG_OK; }

/* Something that a followed program does not have. */
static void part(atlas_builder *b) { keep_failure(b, atlas_follow_end(b)); }

/* ---- life --------------------------------------------------------------------------------------------------- */

hg_status atlas_builder_create(const hg_allocator *allocator, const char *program_name, atlas_builder **out) {
  if (out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "atlas_builder_create needs a place for the builder");
  *out = NULL;
  hg_allocator resolved;
  HG_TRY(hg_allocator_resolve(allocator, &resolved));
  size_t length = program_name != NULL ? strlen(program_name) : 0;
  if (program_name != NULL && !atlas_name_is_valid(program_name, length))
    return hg_fail(HG_INVALID_ARGUMENT, "'%s' is not a name for a program", HG_WORD(program_name, length));
  atlas_builder *b = hg_allocate(&resolved, 1, sizeof *b);
  if (b == NULL) return hg_fail_memory("a program builder", sizeof *b);
  b->allocator = resolved;
  b->placed.element_size = 1;
  b->program = atlas_program_new(&resolved);
  if (b->program == NULL) {
    hg_release(&resolved, b);
    return HG_OUT_OF_MEMORY;
  }
  if (program_name != NULL) atlas_name_copy(b->program->name, program_name, length);
  *out = b;
  return HG_OK;
}

void atlas_builder_release(atlas_builder *b) {
  if (b == NULL) return;
  hg_allocator allocator = b->allocator;
  atlas_program_release(b->program);
  atlas_program_release(b->followed);
  hg_array_release(&allocator, &b->placed);
  hg_release(&allocator, b);
}

/* ---- finishing ---------------------------------------------------------------------------------------------- */

static atlas_label *labels_of(const atlas_builder *b) { return b->program->labels.data; }

/* Names the labels made without a name: L0, L1, ... as far as these are free. */
static hg_status name_labels(atlas_builder *b) {
  atlas_label_index index = {0};
  uint32_t number = 0, found = ATLAS_NO_LABEL;
  hg_status status = HG_OK;
  hg_array *labels = &b->program->labels;
  for (int pass = 0; pass < 2 && status == HG_OK; pass++) { /* given names first: they are not to be taken */
    for (uint32_t i = 0; i < labels->count && status == HG_OK; i++) {
      char *name = labels_of(b)[i].name;
      if ((name[0] != '\0') != (pass == 0)) continue;
      do {
        if (pass == 1) atlas_name_by_number(name, 'L', number++);
        status = atlas_label_enter(&b->allocator, &index, labels, i, &found);
      } while (status == HG_OK && pass == 1 && found != ATLAS_NO_LABEL);
      if (status == HG_OK && found != ATLAS_NO_LABEL)
        status = hg_fail(HG_INVALID_ARGUMENT, "there are two labels '%s'", name);
    }
  }
  atlas_label_index_release(&b->allocator, &index);
  return status;
}

/* Brings labels into the order of their targets, as in text, and renumbers their uses. `first` has insns.count + 2
 * zeros, `number` labels.count, `sorted` room for all labels. */
static void sort_labels_with(atlas_builder *b, uint32_t *first, uint32_t *number, atlas_label *sorted) {
  size_t count = b->program->labels.count;
  atlas_label *labels = labels_of(b);
  for (size_t i = 0; i < count; i++) first[labels[i].target + 1]++;
  for (size_t t = 1; t <= b->program->insns.count + 1; t++) first[t] += first[t - 1];
  for (size_t i = 0; i < count; i++) {
    number[i] = first[labels[i].target]++;
    sorted[number[i]] = labels[i];
  }
  memcpy(labels, sorted, count * sizeof *labels);
  atlas_insn *insns = b->program->insns.data;
  for (size_t i = 0; i < b->program->insns.count; i++)
    for (unsigned k = 0; k < insns[i].operand_count; k++) {
      atlas_operand *o = &insns[i].operand[k];
      if (o->kind == ATLAS_OPERAND_LABEL && o->bits < count) o->bits = number[o->bits];
    }
}

static hg_status sort_labels(atlas_builder *b) {
  size_t count = b->program->labels.count, insn_count = b->program->insns.count;
  if (count == 0) return HG_OK;
  uint32_t *first = hg_allocate(&b->allocator, insn_count + 2, sizeof *first);
  uint32_t *number = hg_allocate(&b->allocator, count, sizeof *number);
  atlas_label *sorted = hg_allocate(&b->allocator, count, sizeof *sorted);
  int complete = first != NULL && number != NULL && sorted != NULL;
  if (complete) sort_labels_with(b, first, number, sorted);
  hg_release(&b->allocator, first);
  hg_release(&b->allocator, number);
  hg_release(&b->allocator, sorted);
  return complete ? HG_OK : hg_fail_memory("a program's labels", count * sizeof *sorted);
}

static hg_status close_program(atlas_builder *b) {
  if (b->status != HG_OK) return hg_fail(b->status, "%s", b->message);
  HG_TRY(name_labels(b));
  for (size_t i = 0; i < b->program->labels.count; i++)
    if (!((const uint8_t *)b->placed.data)[i])
      return hg_fail(HG_INVALID_ARGUMENT, "label '%s' was made but never placed", labels_of(b)[i].name);
  return sort_labels(b);
}

hg_status atlas_builder_close(atlas_builder *b, atlas_program **out) {
  if (b->followed != NULL && b->status == HG_OK && atlas_follows_all(b)) {
    *out = b->followed;
    b->followed = NULL;
    atlas_builder_release(b);
    return HG_OK;
  }
  part(b);
  hg_status status = close_program(b);
  if (status == HG_OK) {
    *out = b->program;
    b->program = NULL;
    (*out)->digest = atlas_program_digest(*out);
  }
  atlas_builder_release(b);
  return status;
}

hg_status atlas_builder_finish(atlas_builder *b, atlas_program **out) {
  if (out != NULL) *out = NULL;
  if (b == NULL || out == NULL) {
    atlas_builder_release(b);
    return hg_fail(HG_INVALID_ARGUMENT, "atlas_builder_finish needs a builder and a place for the program");
  }
  atlas_program *program;
  HG_TRY(atlas_builder_close(b, &program));
  return atlas_program_complete(program, NULL, out);
}

/* ---- declarations ------------------------------------------------------------------------------------------- */

static uint16_t declare(atlas_builder *b, const char *name, atlas_symbol *symbol) {
  if (!is_live(b)) return 0;
  if (b->followed != NULL && name != NULL && atlas_follows_symbol(b, name, symbol))
    return (uint16_t)(b->program->symbols.count - 1);
  part(b);
  size_t length = name != NULL ? strlen(name) : 0;
  if (!atlas_name_is_valid(name != NULL ? name : "", length)) {
    keep_failure(b, hg_fail(HG_INVALID_ARGUMENT,
                    "'%s' is not a name: letters, digits and _ (at most %u), and no word of the language",
                    HG_WORD(name != NULL ? name : "", length), (unsigned)ATLAS_MAX_NAME));
    return 0;
  }
  atlas_name_copy(symbol->name, name, length);
  keep_failure(b, atlas_program_declare(b->program, symbol));
  return b->status == HG_OK ? (uint16_t)(b->program->symbols.count - 1) : 0;
}

/* A type as it is stored. `name`: of the instruction or symbol it belongs to, for messages. */
static uint8_t stored_type(atlas_builder *b, const char *name, atlas_type type) {
  if ((unsigned)type < ATLAS_TYPE_COUNT || !is_live(b)) return (uint8_t)type;
  keep_failure(b, hg_fail(HG_INVALID_ARGUMENT, "'%s' is of type code %u, which is unknown",
                  name != NULL ? HG_WORD(name, strlen(name)) : "", (unsigned)type));
  return ATLAS_NONE;
}
static uint8_t stored_access(atlas_access access) { return (uint8_t)((unsigned)access <= ATLAS_INOUT ? access : 0); }

uint16_t atlas_builder_buffer(atlas_builder *b, const char *name, atlas_type type, atlas_access access) {
  return declare(b, name,
                 &(atlas_symbol){
                     .kind = ATLAS_SYMBOL_BUFFER, .type = stored_type(b, name, type), .access = stored_access(access)});
}

uint16_t atlas_builder_scalar(atlas_builder *b, const char *name, atlas_type type) {
  return declare(b, name, &(atlas_symbol){.kind = ATLAS_SYMBOL_SCALAR, .type = stored_type(b, name, type)});
}

uint16_t atlas_builder_shared(atlas_builder *b, const char *name, atlas_type type, uint32_t count) {
  return declare(b, name,
                 &(atlas_symbol){.kind = ATLAS_SYMBOL_SHARED, .type = stored_type(b, name, type), .count = count});
}

uint16_t atlas_builder_local(atlas_builder *b, const char *name, atlas_type type, uint32_t count) {
  return declare(b, name,
                 &(atlas_symbol){.kind = ATLAS_SYMBOL_LOCAL, .type = stored_type(b, name, type), .count = count});
}

/* A value of 1, 2, 4 or 8 bytes in the machine's byte order. */
static uint64_t load_native(const void *memory, uint32_t width) {
  uint8_t u8;
  uint16_t u16;
  uint32_t u32;
  uint64_t u64;
  switch (width) {
  case 1: memcpy(&u8, memory, sizeof u8); return u8;
  case 2: memcpy(&u16, memory, sizeof u16); return u16;
  case 4: memcpy(&u32, memory, sizeof u32); return u32;
  default: memcpy(&u64, memory, sizeof u64); return u64;
  }
}

uint16_t atlas_builder_const(atlas_builder *b, const char *name, atlas_type type, uint32_t count, const void *values) {
  if (!is_live(b)) return 0;
  if (values == NULL) {
    keep_failure(b, hg_fail(HG_INVALID_ARGUMENT, "constant table '%s' has no values",
                    name != NULL ? HG_WORD(name, strlen(name)) : ""));
    return 0;
  }
  atlas_symbol symbol = {.kind = ATLAS_SYMBOL_CONST, .type = stored_type(b, name, type), .count = count};
  part(b);
  symbol.const_offset = (uint32_t)b->program->constants.count;
  uint16_t index = declare(b, name, &symbol);
  if (b->status != HG_OK) return 0;
  uint32_t width = atlas_bytes(type), offset = 0;
  keep_failure(b, atlas_program_add_constants(b->program, values, (size_t)count * width, &offset));
  if (b->status != HG_OK) return 0;
  uint8_t *bytes = (uint8_t *)b->program->constants.data + offset;
  for (uint32_t i = 0; i < count; i++, bytes += width) hg_store_le(bytes, width, load_native(bytes, width));
  return index;
}

uint16_t atlas_builder_table(atlas_builder *b, const char *name, uint32_t count, atlas_access access) {
  return declare(
      b, name,
      &(atlas_symbol){.kind = ATLAS_SYMBOL_TABLE, .type = ATLAS_u8, .access = stored_access(access), .count = count});
}

uint16_t atlas_builder_pool(atlas_builder *b, const char *name) {
  return declare(b, name, &(atlas_symbol){.kind = ATLAS_SYMBOL_POOL, .type = ATLAS_u8, .access = ATLAS_INOUT});
}

void atlas_builder_block(atlas_builder *b, uint32_t x, uint32_t y, uint32_t z) {
  if (!is_live(b)) return;
  const uint32_t block[3] = {x, y, z};
  memcpy(b->program->block, block, sizeof block);
}

void atlas_builder_default_block(atlas_builder *b, uint32_t x, uint32_t y, uint32_t z) {
  if (!is_live(b)) return;
  const uint32_t block[3] = {x, y, z};
  memcpy(b->program->default_block, block, sizeof block);
}

uint16_t atlas_builder_handle(atlas_builder *b, uint64_t handle, atlas_type type, atlas_access access) {
  if (!is_live(b)) return 0;
  if (handle == 0) {
    keep_failure(b, hg_fail(HG_INVALID_ARGUMENT, "0 is not a buffer handle"));
    return 0;
  }
  part(b);
  int other_type = 0;
  char name[ATLAS_MAX_NAME + 1];
  int length = snprintf(name, sizeof name, "h%llu", (unsigned long long)handle);
  atlas_symbol symbol = {.kind = ATLAS_SYMBOL_BUFFER, .type = stored_type(b, name, type), .handle = handle};
  if (!is_live(b)) return 0;
  for (size_t i = 0; i < b->program->symbols.count; i++) {
    atlas_symbol *known = (atlas_symbol *)b->program->symbols.data + i;
    if (known->handle != handle) continue;
    other_type = 1;
    if (known->type != symbol.type) continue;
    known->access |= stored_access(access);
    return (uint16_t)i;
  }
  if (other_type) snprintf(name + length, sizeof name - (size_t)length, "_%s", atlas_type_name(type));
  symbol.access = stored_access(access);
  return declare(b, name, &symbol);
}

atlas_operand atlas_builder_buffer_offset(atlas_builder *b, uint64_t handle, atlas_type type, atlas_access access,
                                          uint64_t byte_offset) {
  uint16_t symbol = atlas_builder_handle(b, handle, type, access);
  if (!is_live(b)) return atlas_discard();
  uint32_t width = atlas_bytes(type);
  if (byte_offset % width != 0 || byte_offset / width > INT64_MAX) {
    keep_failure(b,
         hg_fail(HG_INVALID_ARGUMENT, "offset %llu in buffer %llu is not a multiple of %u, the size of %s",
                 (unsigned long long)byte_offset, (unsigned long long)handle, (unsigned)width, atlas_type_name(type)));
    return atlas_discard();
  }
  return atlas_mem_lane(symbol, (int64_t)(byte_offset / width));
}

/* ---- labels ------------------------------------------------------------------------------------------------- */

uint32_t atlas_builder_label(atlas_builder *b, const char *name) {
  if (!is_live(b)) return 0;
  atlas_label label = {0};
  const uint8_t placed = 0;
  if (name != NULL && !atlas_label_is_valid(name, strlen(name))) {
    keep_failure(b, hg_fail(HG_INVALID_ARGUMENT, "'%s' is not a name for a label", HG_WORD(name, strlen(name))));
    return 0;
  }
  if (name != NULL && name[0] == 'L') part(b);
  if (name != NULL) atlas_name_copy(label.name, name, strlen(name));
  else if (b->followed != NULL) atlas_follow_label(b, &label);
  if (hg_array_append(&b->allocator, &b->program->labels, &label, 1) == NULL ||
      hg_array_append(&b->allocator, &b->placed, &placed, 1) == NULL)
    keep_failure(b, hg_fail_memory("a program's labels", sizeof label));
  return (uint32_t)(b->program->labels.count - (b->program->labels.count > 0));
}

void atlas_builder_place(atlas_builder *b, uint32_t label) {
  if (!is_live(b)) return;
  if (label >= b->placed.count || ((const uint8_t *)b->placed.data)[label]) {
    keep_failure(b, hg_fail(HG_INVALID_ARGUMENT,
                            label < b->placed.count ? "label %u is placed twice" : "there is no label %u",
                            (unsigned)label));
    return;
  }
  ((uint8_t *)b->placed.data)[label] = 1;
  labels_of(b)[label].target = (uint32_t)b->program->insns.count;
}

void atlas_builder_line(atlas_builder *b, uint32_t line) {
  if (is_live(b)) b->line = line;
}

/* ---- instructions ------------------------------------------------------------------------------------------- */

/* The operand with zeros in the fields that its kind does not use, so that equal programs are equal byte for byte. */
static atlas_operand clean(const atlas_operand *o) {
  atlas_operand c = {.kind = (uint8_t)(o->kind & ~BEYOND_TEXT)};
  if (o->kind & BEYOND_TEXT) c.reg2 = o->reg2;
  switch (c.kind) {
  case ATLAS_OPERAND_REG:
  case ATLAS_OPERAND_PRED: c.reg = o->reg; break;
  case ATLAS_OPERAND_SCALAR:
  case ATLAS_OPERAND_POOL:
  case ATLAS_OPERAND_BUFFER: c.symbol = o->symbol; break;
  case ATLAS_OPERAND_IMM:
  case ATLAS_OPERAND_LABEL:
  case ATLAS_OPERAND_COORD: c.bits = o->bits; break;
  case ATLAS_OPERAND_MEM:
    c.mode = o->mode;
    if (o->mode == ATLAS_ADDRESS_PHI) {
      c.phi_registers = o->phi_registers;
      c.reg = o->phi_registers & 1 ? o->reg : 0;
      c.reg2 = o->phi_registers & 2 ? o->reg2 : 0;
      c.reg3 = o->phi_registers & 4 ? o->reg3 : 0;
      c.bits =
          o->bits & ((o->phi_registers & 1 ? 0 : UINT64_C(0xffff)) | (o->phi_registers & 2 ? 0 : UINT64_C(0xffff0000)) |
                     (o->phi_registers & 4 ? 0 : UINT64_C(0xffffffff00000000)));
      break;
    }
    c.symbol = o->symbol;
    if (o->mode != ATLAS_ADDRESS_UNIFORM) c.reg = o->reg;
    if (o->mode == ATLAS_ADDRESS_TABLE) c.reg2 = o->reg2;
    else c.bits = o->bits;
    break;
  default: break;
  }
  return c;
}

void atlas_builder_has_many(atlas_builder *b) { b->has_many = 1; }

void atlas_builder_insn(atlas_builder *b, const atlas_insn *insn) {
  if (!is_live(b)) return;
  if (insn == NULL) {
    keep_failure(b, hg_fail(HG_INVALID_ARGUMENT, "atlas_builder_insn is given no instruction"));
    return;
  }
  if (b->followed != NULL && atlas_follows_insn(b, insn, insn->operand)) return;
  part(b);
  const char *mnemonic = atlas_op_name((atlas_op)insn->op);
  if (insn->operand_count > ATLAS_MAX_OPERANDS) {
    keep_failure(b, hg_fail(HG_INVALID_ARGUMENT, "'%s' is given %u operands; no instruction has more than %u", mnemonic,
                    (unsigned)insn->operand_count, (unsigned)ATLAS_MAX_OPERANDS));
    return;
  }
  if (b->program->insns.count >= ATLAS_MAX_INSTRUCTIONS) {
    keep_failure(
        b, hg_fail(HG_INVALID_ARGUMENT, "a program has at most %u instructions", (unsigned)ATLAS_MAX_INSTRUCTIONS));
    return;
  }
  atlas_insn copy = {.op = insn->op, .type = insn->type, .type2 = insn->type2, .guard = insn->guard};
  copy.operand_count = insn->operand_count;
  copy.line = insn->line != 0 ? insn->line : b->line;
  for (unsigned i = 0; i < insn->operand_count; i++) {
    copy.operand[i] = clean(&insn->operand[i]);
    int is_phi = copy.operand[i].kind == ATLAS_OPERAND_MEM && copy.operand[i].mode == ATLAS_ADDRESS_PHI;
    if (is_phi && !atlas_phi_exists(&copy.operand[i])) {
      keep_failure(b,
                   hg_fail(HG_INVALID_ARGUMENT, "operand %u of '%s' (instruction %llu) lies outside the boundary pool",
                           i + 1, mnemonic, (unsigned long long)b->program->insns.count));
      return;
    }
    int is_invalid = insn->operand[i].kind == INVALID_OPERAND;
    if (is_invalid || (insn->operand[i].kind & BEYOND_TEXT && !b->has_many)) {
      uint64_t number = is_invalid ? insn->operand[i].bits : atlas_register_of(&copy.operand[i]);
      keep_failure(b,
           hg_fail(HG_INVALID_ARGUMENT, "operand %u of '%s' (instruction %llu): number %llu is out of range", i + 1,
                   mnemonic, (unsigned long long)b->program->insns.count, (unsigned long long)number));
      return;
    }
  }
  if (hg_array_append(&b->allocator, &b->program->insns, &copy, 1) == NULL)
    keep_failure(b, hg_fail_memory("a program's instructions", sizeof copy));
}

/* An op as it is stored; a number that is no op becomes ATLAS_OP_none, which the verifier rejects. */
static uint16_t stored_op(atlas_op op) {
  return (uint16_t)(atlas_op_lookup((uint32_t)op) != NULL ? op : ATLAS_OP_none);
}

void atlas_emit_operands(atlas_builder *b, atlas_op op, atlas_type type, atlas_type type2,
                         const atlas_operand *operands, size_t operand_count) {
  if (!is_live(b)) return;
  if (operand_count > ATLAS_MAX_OPERANDS || (operands == NULL && operand_count > 0)) {
    keep_failure(b, hg_fail(HG_INVALID_ARGUMENT, "'%s' is given %lld operands%s", atlas_op_name(op),
                    (long long)operand_count, operands == NULL ? ", and NULL in their place" : ""));
    return;
  }
  if (b->followed != NULL) {
    atlas_insn bare; /* without its operands */
    bare.op = (uint16_t)op, bare.type = (uint8_t)type, bare.type2 = (uint8_t)type2;
    bare.guard = 0, bare.line = 0, bare.operand_count = (uint8_t)operand_count;
    if (atlas_follows_insn(b, &bare, operands)) return;
  }
  atlas_insn insn = {.op = stored_op(op), .operand_count = (uint8_t)operand_count};
  insn.type = stored_type(b, atlas_op_name(op), type);
  insn.type2 = stored_type(b, atlas_op_name(op), type2);
  for (size_t i = 0; i < operand_count; i++) insn.operand[i] = operands[i];
  atlas_builder_insn(b, &insn);
}

void atlas_emit(atlas_builder *b, atlas_op op, atlas_type type, int operand_count, ...) {
  atlas_operand operands[ATLAS_MAX_OPERANDS];
  int is_possible = operand_count >= 0 && operand_count <= ATLAS_MAX_OPERANDS;
  va_list arguments;
  va_start(arguments, operand_count);
  for (int i = 0; is_possible && i < operand_count; i++) operands[i] = va_arg(arguments, atlas_operand);
  va_end(arguments);
  atlas_emit_operands(b, op, type, ATLAS_NONE, operands, (size_t)operand_count);
}

void atlas_emit2(atlas_builder *b, atlas_op op, atlas_type to, atlas_type from, atlas_operand destination,
                 atlas_operand source) {
  const atlas_operand operands[] = {destination, source};
  atlas_emit_operands(b, op, to, from, operands, 2);
}

void atlas_emit_branch(atlas_builder *b, int predicate, int negated, uint32_t label) {
  if (!is_live(b)) return;
  if (predicate >= ATLAS_PREDICATES) {
    keep_failure(b,
         hg_fail(HG_INVALID_ARGUMENT, "a branch is given p%d; there are p0 to p%d", predicate, ATLAS_PREDICATES - 1));
    return;
  }
  atlas_insn insn = {.op = ATLAS_OP_bra, .operand_count = 1};
  if (predicate >= 0) insn.guard = (uint8_t)((negated ? ATLAS_GUARD_NEGATED : 0) | (1 + predicate));
  insn.operand[0] = atlas_label_ref(label);
  atlas_builder_insn(b, &insn);
}

/* ---- operands ----------------------------------------------------------------------------------------------- */

static atlas_operand numbered(uint8_t kind, uint32_t number, uint32_t count) {
  if (number >= count) return (atlas_operand){.kind = INVALID_OPERAND, .bits = number}; /* reported where it is used */
  if (number > ATLAS_REG_LANE) kind |= BEYOND_TEXT;
  return (atlas_operand){.kind = kind, .reg = (uint8_t)number, .reg2 = (uint8_t)(number >> 8)};
}

atlas_operand atlas_reg(uint32_t number) { return numbered(ATLAS_OPERAND_REG, number, ATLAS_MOST_REGISTERS); }
atlas_operand atlas_pred(uint32_t number) { return numbered(ATLAS_OPERAND_PRED, number, ATLAS_PREDICATES); }
atlas_operand atlas_discard(void) { return (atlas_operand){.kind = ATLAS_OPERAND_NONE}; }
atlas_operand atlas_bits(uint64_t bits) { return (atlas_operand){.kind = ATLAS_OPERAND_IMM, .bits = bits}; }

atlas_operand atlas_f32_const(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return atlas_bits(bits);
}

atlas_operand atlas_f64_const(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return atlas_bits(bits);
}

atlas_operand atlas_int_const(atlas_type type, int64_t value) { return atlas_bits((uint64_t)value & atlas_mask(type)); }

atlas_operand atlas_scalar(uint16_t symbol) { return (atlas_operand){.kind = ATLAS_OPERAND_SCALAR, .symbol = symbol}; }
atlas_operand atlas_pool(uint16_t symbol) { return (atlas_operand){.kind = ATLAS_OPERAND_POOL, .symbol = symbol}; }
atlas_operand atlas_buffer(uint16_t symbol) { return (atlas_operand){.kind = ATLAS_OPERAND_BUFFER, .symbol = symbol}; }
atlas_operand atlas_label_ref(uint32_t label) { return (atlas_operand){.kind = ATLAS_OPERAND_LABEL, .bits = label}; }

atlas_operand atlas_coordinate(atlas_coord coord) {
  return (atlas_operand){.kind = ATLAS_OPERAND_COORD, .bits = (uint64_t)(unsigned)coord};
}

static atlas_operand address(atlas_address_mode mode, uint16_t symbol, int64_t displacement) {
  return (atlas_operand){
      .kind = ATLAS_OPERAND_MEM, .mode = (uint8_t)mode, .symbol = symbol, .bits = (uint64_t)displacement};
}

atlas_operand atlas_mem(uint16_t symbol, int64_t displacement) {
  return address(ATLAS_ADDRESS_UNIFORM, symbol, displacement);
}

atlas_operand atlas_mem_reg(uint16_t symbol, uint32_t reg, int64_t displacement) {
  atlas_operand o = numbered(ATLAS_OPERAND_MEM, reg, ATLAS_MOST_REGISTERS);
  if (o.kind == INVALID_OPERAND) return o;
  o.mode = ATLAS_ADDRESS_INDEXED;
  o.symbol = symbol;
  o.bits = (uint64_t)displacement;
  return o;
}

atlas_operand atlas_mem_lane(uint16_t symbol, int64_t displacement) {
  return atlas_mem_reg(symbol, ATLAS_REG_LANE, displacement);
}

atlas_operand atlas_mem_phi(uint32_t class_index, uint32_t page, uint32_t byte) {
  if (class_index >= ATLAS_CLASS_COUNT) return numbered(ATLAS_OPERAND_MEM, class_index, ATLAS_CLASS_COUNT);
  if (page >= ATLAS_CLASS_PAGES) return numbered(ATLAS_OPERAND_MEM, page, ATLAS_CLASS_PAGES);
  if (byte >= ATLAS_CLASS_PAGE_BYTES) return numbered(ATLAS_OPERAND_MEM, byte, ATLAS_CLASS_PAGE_BYTES);
  atlas_operand o = address(ATLAS_ADDRESS_PHI, 0, 0);
  o.bits = (uint64_t)byte << 32 | page << 16 | class_index;
  return o;
}

atlas_operand atlas_mem_phi_reg(uint32_t class_reg, uint32_t page_reg, uint32_t byte_reg) {
  const uint32_t registers[3] = {class_reg, page_reg, byte_reg};
  for (int i = 0; i < 3; i++)
    if (registers[i] > ATLAS_REG_LANE) return numbered(ATLAS_OPERAND_REG, registers[i], ATLAS_REG_LANE + 1);
  atlas_operand o = address(ATLAS_ADDRESS_PHI, 0, 0);
  o.phi_registers = 7;
  o.reg = (uint8_t)class_reg;
  o.reg2 = (uint8_t)page_reg;
  o.reg3 = (uint8_t)byte_reg;
  return o;
}

atlas_operand atlas_mem_table(uint16_t symbol, uint32_t entry_reg, uint32_t offset_reg) {
  if (entry_reg > ATLAS_REG_LANE || offset_reg > ATLAS_REG_LANE)
    return numbered(ATLAS_OPERAND_REG, entry_reg > offset_reg ? entry_reg : offset_reg, ATLAS_REG_LANE + 1);
  atlas_operand o = address(ATLAS_ADDRESS_TABLE, symbol, 0);
  o.reg = (uint8_t)entry_reg;
  o.reg2 = (uint8_t)offset_reg;
  return o;
}
