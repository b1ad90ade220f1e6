/* programs.h - what the tests of the text form, the binary form and the builder share: comparing programs, and taking
 * one through every form and back. */
#ifndef HG_TESTS_PROGRAMS_H
#define HG_TESTS_PROGRAMS_H

#include "atlas/program.h"
#include "check.h"

#include <stdlib.h>

static inline int same_symbol(const atlas_symbol *a, const atlas_symbol *b) {
  return strcmp(a->name, b->name) == 0 && a->kind == b->kind && a->type == b->type && a->access == b->access &&
         a->reserved == b->reserved && a->count == b->count && a->const_offset == b->const_offset &&
         a->handle == b->handle;
}

static inline int same_insn(const atlas_insn *a, const atlas_insn *b, int lines) {
  atlas_insn x = *a, y = *b;
  if (!lines) x.line = y.line = 0;
  return memcmp(&x, &y, sizeof x) == 0; /* without padding: see atlas.h */
}

static inline int same_program(const atlas_program *a, const atlas_program *b, int lines) {
  if (strcmp(a->name, b->name) != 0 || memcmp(a->block, b->block, sizeof a->block) != 0) return 0;
  if (memcmp(a->default_block, b->default_block, sizeof a->default_block) != 0) return 0;
  if (a->symbols.count != b->symbols.count || a->labels.count != b->labels.count || a->insns.count != b->insns.count ||
      a->entries.count != b->entries.count || a->constants.count != b->constants.count)
    return 0;
  for (size_t i = 0; i < a->symbols.count; i++)
    if (!same_symbol(atlas_symbol_at(a, i), atlas_symbol_at(b, i))) return 0;
  for (size_t i = 0; i < a->labels.count; i++)
    if (strcmp(atlas_label_at(a, i)->name, atlas_label_at(b, i)->name) != 0 ||
        atlas_label_at(a, i)->target != atlas_label_at(b, i)->target)
      return 0;
  for (size_t i = 0; i < a->insns.count; i++)
    if (!same_insn(atlas_insn_at(a, i), atlas_insn_at(b, i), lines)) return 0;
  for (size_t i = 0; i < a->entries.count; i++)
    if (memcmp(atlas_entry_at(a, i), atlas_entry_at(b, i), sizeof(atlas_entry)) != 0) return 0;
  return a->constants.count == 0 || memcmp(a->constants.data, b->constants.data, a->constants.count) == 0;
}

static inline char *print_program(const atlas_program *program) {
  char *text = NULL;
  size_t length = 0;
  CHECK_EQ_U64(atlas_print(NULL, program, &text, &length), HG_OK);
  CHECK(text != NULL && strlen(text) == length);
  return text;
}

/* program -> text -> program -> text, and program -> bytes -> program -> bytes: nothing changes. */
static inline void check_round_trip(const atlas_program *program) {
  char *text = print_program(program);
  atlas_program *parsed = NULL, *decoded = NULL;
  hg_status status = atlas_parse(NULL, text, strlen(text), "printed", &parsed);
  if (!check_note(status == HG_OK)) printf("printed text does not parse: %s\n%s\n", hg_last_error(), text);
  if (parsed != NULL) {
    char *again = print_program(parsed);
    CHECK_STR(again, text);
    CHECK(same_program(program, parsed, 0));
    free(again);
  }
  void *bytes = NULL, *bytes_again = NULL;
  size_t length = 0, length_again = 0;
  CHECK_EQ_U64(atlas_encode(NULL, program, &bytes, &length), HG_OK);
  status = atlas_decode(NULL, bytes, length, &decoded);
  if (!check_note(status == HG_OK)) printf("encoded program does not decode: %s\n%s\n", hg_last_error(), text);
  if (decoded != NULL) {
    char *from_binary = print_program(decoded);
    CHECK_STR(from_binary, text);
    CHECK(same_program(program, decoded, 1));
    CHECK_EQ_U64(atlas_encode(NULL, decoded, &bytes_again, &length_again), HG_OK);
    CHECK(length == length_again && memcmp(bytes, bytes_again, length) == 0);
    free(from_binary);
  }
  atlas_memory_release(NULL, bytes_again);
  atlas_memory_release(NULL, bytes);
  atlas_program_release(decoded);
  atlas_program_release(parsed);
  free(text);
}

/* A program that must parse; what comes back may be NULL after a failed check. */
static inline atlas_program *must_parse(const char *text) {
  atlas_program *program = NULL;
  hg_status status = atlas_parse(NULL, text, strlen(text), "t", &program);
  if (!check_note(status == HG_OK)) printf("does not parse: %s\n%s\n", hg_last_error(), text);
  return program;
}

/* ---- an allocator that fails at one call and counts what is held --------------------------------------------- */

typedef struct faulty {
  long calls, fail_at; /* the call that fails, from 1 on; 0: none */
  long held;
} faulty;

static inline void *faulty_allocate(void *user, size_t size) {
  faulty *f = user;
  if (++f->calls == f->fail_at) return NULL;
  void *memory = malloc(size);
  if (memory != NULL) f->held++;
  return memory;
}

static inline void faulty_release(void *user, void *memory) {
  ((faulty *)user)->held--;
  free(memory);
}

/* Runs `action` with each of its allocations failing in turn: each gives HG_OUT_OF_MEMORY and leaks nothing. */
static inline void check_every_allocation(hg_status (*action)(const hg_allocator *allocator, void *argument),
                                          void *argument) {
  for (long fail_at = 1; fail_at < 100000; fail_at++) {
    faulty f = {.fail_at = fail_at};
    hg_allocator allocator = {
        .size = sizeof allocator, .user = &f, .allocate = faulty_allocate, .release = faulty_release};
    hg_status status = action(&allocator, argument);
    CHECK_EQ_U64(f.held, 0);
    if (f.calls < fail_at) {
      CHECK_EQ_U64(status, HG_OK);
      return;
    }
    CHECK_EQ_U64(status, HG_OUT_OF_MEMORY);
  }
}

/* A small generator, the same numbers everywhere (xorshift64*). */
static inline uint64_t next_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(0x2545f4914f6cdd1d);
}

#endif
