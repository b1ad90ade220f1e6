/* tally.c - see tally.h. */
#include "backend/cpu/engine/tally.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "atlas/arith.h"
#include "atlas/tables.h"

#include <string.h>

enum { NO_TALLY = UINT16_MAX, NARROWEST = 4 /* bytes of an element */ };

/* The identity element. */
static uint64_t identity(uint16_t op, uint8_t type) {
  int is_signed = atlas_kind((atlas_type)type) == ATLAS_KIND_SINT;
  uint64_t ones = UINT64_MAX >> (64 - 8 * atlas_bytes((atlas_type)type)), greatest = is_signed ? ones >> 1 : ones;
  switch (op) {
  case ATLAS_OP_atom_and: return ones;
  case ATLAS_OP_atom_min: return greatest;
  case ATLAS_OP_atom_max: return ones ^ greatest; /* the least: all other bits */
  default: return 0;
  }
}

/* ---- which buffers ----------------------------------------------------------------------------------------------- */

static int adds_up(const vector_insn *insn) {
  if (insn->d != VECTOR_NONE || insn->mode > ATLAS_ADDRESS_INDEXED || insn->flags & VECTOR_LANE) return 0;
  switch (insn->op) {
  case ATLAS_OP_atom_add:
  case ATLAS_OP_atom_and:
  case ATLAS_OP_atom_or:
  case ATLAS_OP_atom_xor:
  case ATLAS_OP_atom_min:
  case ATLAS_OP_atom_max: return 1;
  default: return 0;
  }
}

static void note_access(const cpu_launch *run, const vector_insn *insn, cpu_tally *tallies) {
  if (!(atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) return;
  if (insn->mode == ATLAS_ADDRESS_PHI || insn->symbol & SSA_LIBRARY) return;
  if (atlas_symbol_at(run->program, insn->symbol)->kind != ATLAS_SYMBOL_BUFFER) return;
  cpu_tally *tally = &tallies[insn->symbol];
  int agrees = adds_up(insn) && (tally->op == 0 || tally->op == insn->op);
  tally->op = agrees ? insn->op : NO_TALLY;
  tally->type = insn->type;
}

uint64_t hg_cpu_find_tallies(const cpu_launch *run, uint32_t workers, cpu_tally tallies[ATLAS_MAX_SYMBOLS]) {
  uint64_t bytes = 0;
  memset(tallies, 0, run->program->symbols.count * sizeof *tallies);
  for (uint32_t i = 0; i < run->vector->insns.count; i++) note_access(run, vector_insn_at(run->vector, i), tallies);
  for (size_t s = 0; s < run->program->symbols.count; s++) {
    uint64_t size = run->launch->arguments[s].span.byte_count;
    int is_small = bytes + size <= CPU_TALLY_BYTES && size / NARROWEST * workers * CPU_TALLY_LANES <= run->lanes;
    if (tallies[s].op == NO_TALLY || !is_small) tallies[s].op = 0;
    if (tallies[s].op == 0) continue;
    tallies[s].bytes = (uint32_t)size;
    bytes += (size + 63) / 64 * 64;
  }
  return bytes;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

void hg_cpu_begin_tallies(cpu_worker *w, uint8_t *memory) {
  for (size_t s = 0; s < w->run->program->symbols.count; s++) {
    const cpu_tally *tally = &w->run->tallies[s];
    if (tally->op == 0) continue;
    uint64_t nothing = identity(tally->op, tally->type);
    uint32_t size = atlas_bytes((atlas_type)tally->type);
    for (uint32_t at = 0; at + size <= tally->bytes; at += size) memcpy(memory + at, &nothing, size);
    w->binding[s].memory = memory;
    w->is_own[s] = 1;
    memory += (tally->bytes + 63) / 64 * 64;
  }
}

/* Atomic, because launches of other streams may add to the buffer, too. */
#define ADD_TO(T)                                                                                            \
  static void add_to_##T(const cpu_tally *tally, T *memory, const T *copy) {                                 \
    const T nothing = (T)identity(tally->op, tally->type);                                                   \
    for (size_t i = 0; i < tally->bytes / sizeof(T); i++) {                                                  \
      T old = __atomic_load_n(&memory[i], __ATOMIC_RELAXED);                                                 \
      while (copy[i] != nothing &&                                                                           \
             !__atomic_compare_exchange_n(&memory[i], &old,                                                  \
                                          (T)atlas_update(tally->op, (atlas_type)tally->type, old, copy[i], 0), \
                                          1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {                          \
      }                                                                                                      \
    }                                                                                                        \
  }
ADD_TO(uint32_t)
ADD_TO(uint64_t)

void hg_cpu_merge_tallies(const cpu_worker *w) {
  for (size_t s = 0; s < w->run->program->symbols.count; s++) {
    const cpu_tally *tally = &w->run->tallies[s];
    void *memory = w->run->launch->arguments[s].span.memory;
    const void *copy = w->binding[s].memory;
    if (tally->op == 0) continue;
    if (atlas_bytes((atlas_type)tally->type) == 4) add_to_uint32_t(tally, memory, copy);
    else add_to_uint64_t(tally, memory, copy);
  }
}
