/* assemble.c - declarations, label names and the last step of putting a program together. */
#include "atlas/assemble.h"

#include "base/error.h"

#include <string.h>

typedef struct kind_limit {
  const char *what;
  uint32_t most;
} kind_limit;

static kind_limit limit_of(uint32_t kind) {
  switch (kind) {
  case ATLAS_SYMBOL_BUFFER: return (kind_limit){"buffers", ATLAS_MAX_BUFFERS};
  case ATLAS_SYMBOL_SCALAR: return (kind_limit){"scalars", ATLAS_MAX_SCALARS};
  case ATLAS_SYMBOL_SHARED: return (kind_limit){"shared arrays", ATLAS_MAX_SYMBOLS};
  case ATLAS_SYMBOL_LOCAL: return (kind_limit){"local arrays", ATLAS_MAX_SYMBOLS};
  case ATLAS_SYMBOL_CONST: return (kind_limit){"constant tables", ATLAS_MAX_SYMBOLS};
  case ATLAS_SYMBOL_TABLE: return (kind_limit){"buffer tables", 1}; /* [rH : rOff] does not name one */
  case ATLAS_SYMBOL_POOL: return (kind_limit){"pools", ATLAS_MAX_POOLS};
  default: return (kind_limit){NULL, 0};
  }
}

/* Bytes of a shared array in the block's memory, where arrays start at multiples of 16 bytes. */
static uint64_t shared_bytes(const atlas_symbol *s) {
  return ((uint64_t)s->count * atlas_bytes((atlas_type)s->type) + 15) / 16 * 16;
}

static hg_status check_elements(const atlas_program *program, const atlas_symbol *s) {
  uint64_t bytes = (uint64_t)s->count * atlas_bytes((atlas_type)s->type);
  if (s->kind == ATLAS_SYMBOL_TABLE) {
    if (s->count == 0 || s->count > ATLAS_MAX_TABLE_ENTRIES)
      return hg_fail(HG_INVALID_ARGUMENT, "buffer table '%s' has %u entries; 1 to %u are possible", s->name,
                     (unsigned)s->count, (unsigned)ATLAS_MAX_TABLE_ENTRIES);
  } else if (s->kind == ATLAS_SYMBOL_CONST) {
    if (s->count == 0 || bytes > ATLAS_MAX_CONST_BYTES)
      return hg_fail(HG_INVALID_ARGUMENT, "constant table '%s' has %llu bytes; 1 to %u are possible", s->name,
                     (unsigned long long)bytes, (unsigned)ATLAS_MAX_CONST_BYTES);
  } else if (s->kind == ATLAS_SYMBOL_SHARED) {
    if (s->count == 0) return hg_fail(HG_INVALID_ARGUMENT, "shared array '%s' has no elements", s->name);
    uint64_t before = 0;
    for (size_t i = 0; i < program->symbols.count; i++)
      if (atlas_symbol_at(program, i)->kind == ATLAS_SYMBOL_SHARED) before += shared_bytes(atlas_symbol_at(program, i));
    if (before + bytes > ATLAS_MAX_SHARED_BYTES) return atlas_shared_too_large(HG_INVALID_ARGUMENT, s, before);
  } else if (s->kind == ATLAS_SYMBOL_LOCAL) {
    if (s->count == 0) return hg_fail(HG_INVALID_ARGUMENT, "local array '%s' has no elements", s->name);
    uint64_t before = 0;
    for (size_t i = 0; i < program->symbols.count; i++) before += atlas_local_bytes(atlas_symbol_at(program, i));
    if (before + bytes > ATLAS_MAX_LOCAL_BYTES) return atlas_local_too_large(HG_INVALID_ARGUMENT, s, before);
  }
  int has_count = s->kind == ATLAS_SYMBOL_TABLE || s->kind == ATLAS_SYMBOL_CONST || s->kind == ATLAS_SYMBOL_SHARED ||
                  s->kind == ATLAS_SYMBOL_LOCAL;
  if (!has_count && s->count != 0)
    return hg_fail(HG_INVALID_ARGUMENT, "'%s' has a count of elements; its kind has none", s->name);
  return HG_OK;
}

static hg_status check_type(const atlas_symbol *s) {
  if (s->type == ATLAS_NONE) return hg_fail(HG_INVALID_ARGUMENT, "'%s' has no type of its elements", s->name);
  if (s->type >= ATLAS_TYPE_COUNT)
    return hg_fail(HG_INVALID_ARGUMENT, "'%s' is of type code %u, which is unknown", s->name, (unsigned)s->type);
  int needs_number = s->kind == ATLAS_SYMBOL_SCALAR || s->kind == ATLAS_SYMBOL_CONST;
  if (needs_number && atlas_kind((atlas_type)s->type) == ATLAS_KIND_STORAGE)
    return hg_fail(HG_INVALID_ARGUMENT,
                   "'%s' cannot be of type %s: %s is for buffers, shared memory and local arrays only", s->name,
                   atlas_type_name((atlas_type)s->type), atlas_type_name((atlas_type)s->type));
  int has_access = s->kind == ATLAS_SYMBOL_BUFFER || s->kind == ATLAS_SYMBOL_TABLE || s->kind == ATLAS_SYMBOL_POOL;
  if (has_access && atlas_access_name(s->access) == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "'%s' must be in, out or inout", s->name);
  return HG_OK;
}

hg_status atlas_program_declare(atlas_program *program, const atlas_symbol *symbol) {
  size_t length = strlen(symbol->name);
  kind_limit limit = limit_of(symbol->kind);
  if (limit.what == NULL) return hg_fail(HG_INVALID_ARGUMENT, "symbol kind %u does not exist", (unsigned)symbol->kind);
  if (!atlas_name_is_valid(symbol->name, length))
    return hg_fail(HG_INVALID_ARGUMENT,
                   "'%s' is not a name: letters, digits and _ (at most %u), and no word of the language", symbol->name,
                   (unsigned)ATLAS_MAX_NAME);
  if (atlas_program_find_symbol(program, symbol->name, length) != NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "'%s' is declared twice", symbol->name);
  uint32_t same_kind = 0;
  for (size_t i = 0; i < program->symbols.count; i++) same_kind += atlas_symbol_at(program, i)->kind == symbol->kind;
  if (same_kind >= limit.most)
    return hg_fail(HG_INVALID_ARGUMENT, "'%s' is one too many: a program has at most %u %s", symbol->name,
                   (unsigned)limit.most, limit.what);
  if (program->symbols.count >= ATLAS_MAX_SYMBOLS)
    return hg_fail(HG_INVALID_ARGUMENT, "'%s' is one too many: a program has at most %u symbols", symbol->name,
                   (unsigned)ATLAS_MAX_SYMBOLS);
  HG_TRY(check_type(symbol));
  HG_TRY(check_elements(program, symbol));
  if (hg_array_append(&program->allocator, &program->symbols, symbol, 1) == NULL)
    return hg_fail_memory("a program's symbols", sizeof *symbol);
  return HG_OK;
}

hg_status atlas_program_add_constants(atlas_program *program, const void *bytes, size_t byte_count, uint32_t *offset) {
  static const uint8_t zeros[8] = {0};
  size_t padding = (8 - byte_count % 8) % 8;
  *offset = (uint32_t)program->constants.count; /* at most ATLAS_MAX_SYMBOLS tables of ATLAS_MAX_CONST_BYTES: it fits */
  if (hg_array_append(&program->allocator, &program->constants, bytes, byte_count) == NULL ||
      hg_array_append(&program->allocator, &program->constants, zeros, padding) == NULL)
    return hg_fail_memory("a program's constants", byte_count);
  return HG_OK;
}

const atlas_symbol *atlas_program_find_symbol(const atlas_program *program, const char *name, size_t length) {
  for (size_t i = 0; i < program->symbols.count; i++) {
    const atlas_symbol *symbol = atlas_symbol_at(program, i);
    if (strlen(symbol->name) == length && memcmp(symbol->name, name, length) == 0) return symbol;
  }
  return NULL;
}

void atlas_name_copy(char destination[ATLAS_MAX_NAME + 1], const char *name, size_t length) {
  memset(destination, 0, ATLAS_MAX_NAME + 1);
  memcpy(destination, name, length <= ATLAS_MAX_NAME ? length : ATLAS_MAX_NAME);
}

void atlas_name_by_number(char *name, char letter, uint32_t number) {
  uint32_t least = 1;
  while (number / least >= 10) least *= 10;
  *name++ = letter;
  for (; least > 0; least /= 10) *name++ = (char)('0' + number / least % 10);
  *name = '\0';
}

/* ---- label names -------------------------------------------------------------------------------------------- */

static const atlas_label *label_at(const hg_array *labels, uint32_t i) { return (const atlas_label *)labels->data + i; }

/* The slot that holds the name, or the free one where it belongs. slot_count is not 0. */
static size_t slot_of(const atlas_label_index *index, const hg_array *labels, const char *name, size_t length) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
  for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
  size_t mask = index->slot_count - 1, slot = (size_t)(hash ^ hash >> 32) & mask;
  for (; index->slots[slot] != 0; slot = (slot + 1) & mask) {
    const char *other = label_at(labels, index->slots[slot] - 1)->name;
    if (strlen(other) == length && memcmp(other, name, length) == 0) break;
  }
  return slot;
}

uint32_t atlas_label_find(const atlas_label_index *index, const hg_array *labels, const char *name, size_t length) {
  if (index->slot_count == 0) return ATLAS_NO_LABEL;
  uint32_t entry = index->slots[slot_of(index, labels, name, length)];
  return entry == 0 ? ATLAS_NO_LABEL : entry - 1;
}

static hg_status grow(const hg_allocator *allocator, atlas_label_index *index, const hg_array *labels) {
  atlas_label_index larger = {.slot_count = index->slot_count == 0 ? 64 : index->slot_count * 2, .used = index->used};
  larger.slots = hg_allocate(allocator, larger.slot_count, sizeof *larger.slots);
  if (larger.slots == NULL) return hg_fail_memory("label names", larger.slot_count * sizeof *larger.slots);
  for (size_t i = 0; i < index->slot_count; i++) {
    if (index->slots[i] == 0) continue;
    const char *name = label_at(labels, index->slots[i] - 1)->name;
    larger.slots[slot_of(&larger, labels, name, strlen(name))] = index->slots[i];
  }
  hg_release(allocator, index->slots);
  *index = larger;
  return HG_OK;
}

hg_status atlas_label_enter(const hg_allocator *allocator, atlas_label_index *index, const hg_array *labels,
                            uint32_t label, uint32_t *found) {
  if (2 * index->used >= index->slot_count) HG_TRY(grow(allocator, index, labels));
  const char *name = label_at(labels, label)->name;
  uint32_t *slot = &index->slots[slot_of(index, labels, name, strlen(name))];
  *found = *slot == 0 ? ATLAS_NO_LABEL : *slot - 1;
  if (*slot != 0) return HG_OK;
  *slot = label + 1;
  index->used++;
  return HG_OK;
}

void atlas_label_index_release(const hg_allocator *allocator, atlas_label_index *index) {
  hg_release(allocator, index->slots);
  *index = (atlas_label_index){0};
}

/* ---- the end ------------------------------------------------------------------------------------------------ */

static hg_status pass_on(atlas_program *program, hg_status status, atlas_program **out) {
  if (status == HG_OK) *out = program;
  else atlas_program_release(program);
  return status;
}

hg_status atlas_program_complete(atlas_program *program, const char *source_name, atlas_program **out) {
  return pass_on(program, atlas_verify(program, source_name), out);
}

hg_status atlas_program_trust(atlas_program *program, atlas_program **out) {
#ifdef HG_CHECK_PASSES
  return atlas_program_complete(program, NULL, out);
#else
  return pass_on(program, atlas_lay_out(program), out);
#endif
}
