/* program.c - reference counting of programs and the public functions that read them. */
#include "atlas/program.h"

#include "base/bytes.h"
#include "base/error.h"

#include <string.h>

atlas_program *atlas_program_new(const hg_allocator *allocator) {
  hg_allocator resolved;
  if (hg_allocator_resolve(allocator, &resolved) != HG_OK) return NULL;
  atlas_program *p = hg_allocate(&resolved, 1, sizeof *p);
  if (p == NULL) {
    hg_fail_memory("a program", sizeof *p);
    return NULL;
  }
  p->allocator = resolved;
  atomic_init(&p->references, 1);
  memcpy(p->name, "program", sizeof "program");
  p->insns.element_size = sizeof(atlas_insn);
  p->symbols.element_size = sizeof(atlas_symbol);
  p->labels.element_size = sizeof(atlas_label);
  p->entries.element_size = sizeof(atlas_entry);
  p->constants.element_size = sizeof(uint8_t);
  p->nodes.element_size = sizeof(atlas_node);
  return p;
}

atlas_program *atlas_program_retain(atlas_program *program) {
  if (program != NULL) atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
  return program;
}

void atlas_program_release(atlas_program *program) {
  if (program == NULL || atomic_fetch_sub_explicit(&program->references, 1, memory_order_acq_rel) != 1) return;
  hg_allocator allocator = program->allocator; /* it must outlive the memory it is stored in */
  hg_array *arrays[] = {&program->insns,   &program->symbols,   &program->labels,
                        &program->entries, &program->constants, &program->nodes};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) hg_array_release(&allocator, arrays[i]);
  hg_release(&allocator, program);
}

void atlas_memory_release(const hg_allocator *allocator, void *memory) {
  hg_allocator resolved;
  if (hg_allocator_resolve(allocator, &resolved) == HG_OK) hg_release(&resolved, memory);
}

/* ---- the same ---------------------------------------------------------------------------------------------------- */

uint64_t atlas_program_digest(const atlas_program *program) {
  if (program->digest != 0) return program->digest;
  return hg_hash_words(program->insns.data, program->insns.count * (sizeof(atlas_insn) / sizeof(uint64_t)));
}

static int is_same_array(const hg_array *a, const hg_array *b) {
  return a->count == b->count && (a->count == 0 || memcmp(a->data, b->data, a->count * a->element_size) == 0);
}

int atlas_program_same(const atlas_program *a, const atlas_program *b) {
  if (a == b) return 1;
  return strcmp(a->name, b->name) == 0 && memcmp(a->block, b->block, sizeof a->block) == 0 &&
         memcmp(a->default_block, b->default_block, sizeof a->default_block) == 0 &&
         is_same_array(&a->insns, &b->insns) && is_same_array(&a->symbols, &b->symbols) &&
         is_same_array(&a->labels, &b->labels) && is_same_array(&a->entries, &b->entries) &&
         is_same_array(&a->constants, &b->constants);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The program, or an empty one in place of NULL. */
static const atlas_program *seen(const atlas_program *program) {
  static const atlas_program nothing;
  return program != NULL ? program : &nothing;
}

static const void *array_of(const hg_array *array, size_t *count) {
  if (count != NULL) *count = array->count;
  return array->data;
}

const char *atlas_program_name(const atlas_program *program) { return seen(program)->name; }

const atlas_insn *atlas_program_insns(const atlas_program *program, size_t *count) {
  return array_of(&seen(program)->insns, count);
}

const atlas_symbol *atlas_program_symbols(const atlas_program *program, size_t *count) {
  return array_of(&seen(program)->symbols, count);
}

const atlas_label *atlas_program_labels(const atlas_program *program, size_t *count) {
  return array_of(&seen(program)->labels, count);
}

const uint8_t *atlas_program_constants(const atlas_program *program, size_t *byte_count) {
  return array_of(&seen(program)->constants, byte_count);
}

void atlas_program_block(const atlas_program *program, uint32_t block[3]) {
  if (block != NULL) memcpy(block, seen(program)->block, sizeof seen(program)->block);
}

void atlas_program_default_block(const atlas_program *program, uint32_t block[3]) {
  if (block != NULL) memcpy(block, seen(program)->default_block, sizeof seen(program)->default_block);
}

int atlas_program_observes_block(const atlas_program *program) { return seen(program)->observes_block; }

int atlas_program_is_library(const atlas_program *program) { return seen(program)->entries.count > 0; }

/* ---- names -------------------------------------------------------------------------------------------------- */

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* rN and pN are registers whatever the number, so that `r300` is a wrong register and never a name. */
static int is_register_word(const char *name, size_t length) {
  if (length < 2 || (name[0] != 'r' && name[0] != 'p')) return 0;
  for (size_t i = 1; i < length; i++)
    if (!is_digit(name[i])) return 0;
  return 1;
}

static int is_reserved(const char *name, size_t length) {
  static const char *const words[] = {"lane", "blane", "phi", "in", "out", "inout", "_"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strlen(words[i]) == length && memcmp(words[i], name, length) == 0) return 1;
  return is_register_word(name, length);
}

int atlas_label_is_valid(const char *name, size_t length) {
  if (length == 0 || length > ATLAS_MAX_NAME || !is_letter(name[0])) return 0;
  for (size_t i = 1; i < length; i++)
    if (!is_letter(name[i]) && !is_digit(name[i])) return 0;
  return 1;
}

int atlas_name_is_valid(const char *name, size_t length) {
  return atlas_label_is_valid(name, length) && !is_reserved(name, length);
}

/* owner: "a block"; memory: "shared memory", of which it has `most` bytes. */
static hg_status too_large(hg_status status, const atlas_symbol *s, uint64_t before, const char *owner, uint32_t most,
                           const char *memory) {
  unsigned long long bytes = (unsigned long long)s->count * atlas_bytes((atlas_type)s->type);
  if (before == 0)
    return hg_fail(status, "'%s' has %llu bytes; %s has at most %u bytes of %s", s->name, bytes, owner, (unsigned)most,
                   memory);
  return hg_fail(status,
                 "'%s' has %llu bytes, and what is declared before it takes %llu; %s has at most %u bytes of %s",
                 s->name, bytes, (unsigned long long)before, owner, (unsigned)most, memory);
}

hg_status atlas_shared_too_large(hg_status status, const atlas_symbol *s, uint64_t before) {
  return too_large(status, s, before, "a block", ATLAS_MAX_SHARED_BYTES, "shared memory");
}

uint64_t atlas_local_bytes(const atlas_symbol *s) {
  return s->kind == ATLAS_SYMBOL_LOCAL ? ((uint64_t)s->count * atlas_bytes((atlas_type)s->type) + 15) / 16 * 16 : 0;
}

hg_status atlas_local_too_large(hg_status status, const atlas_symbol *s, uint64_t before) {
  return too_large(status, s, before, "a lane", ATLAS_MAX_LOCAL_BYTES, "local arrays");
}
