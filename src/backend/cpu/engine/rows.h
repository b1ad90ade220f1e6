/* rows.h - rows of values, element by element: shared by the files that implement hg_cpu_insn. */
#ifndef HG_ENGINE_ROWS_H
#define HG_ENGINE_ROWS_H

#include "backend/cpu/engine/engine.h"

#include "atlas/value.h"

#include <string.h>

/* Predicates are bytes. */
static inline uint32_t hg_cpu_element_bytes(uint8_t type) {
  return type == SSA_PREDICATE ? 1 : atlas_bytes((atlas_type)type);
}

/* Binary logarithm of an element's size. */
static inline unsigned hg_cpu_size_class(uint32_t bytes) {
  return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
}

/* Lane i of source k, whose elements have `bytes` bytes. */
static inline uint64_t hg_cpu_source(const cpu_operands *o, int k, uint32_t bytes, uint32_t i) {
  return atlas_read_value((const uint8_t *)o->s[k] + (o->step[k] ? (size_t)i * bytes : 0), bytes);
}

static inline size_t hg_cpu_chunks(uint32_t count) { return ((size_t)count + CPU_CHUNK - 1) / CPU_CHUNK; }

static inline int hg_cpu_takes_part(const cpu_operands *o, uint32_t i) { return o->mask == NULL || o->mask[i]; }

/* Fills whole chunks with elements of `bytes` bytes, all equal to `value`. */
void hg_cpu_fill_row(void *row, uint32_t bytes, uint64_t value, uint32_t count);

/* Loads, stores, atomics (insn_memory.c). Loads and atomics ignore VECTOR_KEEP. */
void hg_cpu_load(cpu_worker *w, const vector_insn *insn, const cpu_operands *o);
void hg_cpu_store(cpu_worker *w, const vector_insn *insn, const cpu_operands *o);
void hg_cpu_atomic(cpu_worker *w, const vector_insn *insn, const cpu_operands *o);

/* Instructions of the whole block (insn_block.c). They write only the lanes of the mask. */
void hg_cpu_block_insn(cpu_worker *w, const vector_insn *insn, const cpu_operands *o);

#endif
