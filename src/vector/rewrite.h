/* rewrite.h - how a pass writes a vector program anew.
 *
 * The pass goes through the old program and appends the instructions of the new one. Where it comes to an old
 * instruction it says so (hg_rewrite_place), so that jumps keep their targets: those of appended instructions are
 * numbers of the old program until hg_rewrite_end. The old instructions stay readable until then. Registers are added
 * to the program itself. */
#ifndef HG_VECTOR_REWRITE_H
#define HG_VECTOR_REWRITE_H

#include "vector/vector.h"

typedef struct hg_rewrite {
  hg_vector *v;     /* the program */
  hg_array insns;   /* vector_insn: its new instructions */
  uint32_t *place;  /* per old instruction: the new one that jumps to it lead to */
  uint8_t no_memory;
} hg_rewrite;

/* The bit of a target that is a number of the new program already. */
#define HG_REWRITE_NEW UINT32_C(0x80000000)

/* `more`: how many instructions the new program may have more. On failure there is nothing to end. */
hg_status hg_rewrite_begin(hg_rewrite *w, hg_vector *v, uint64_t more);
/* The new instructions replace the old ones. With `lifetimes` the registers' are found anew. HG_OUT_OF_MEMORY also for
 * what could not be appended. */
hg_status hg_rewrite_end(hg_rewrite *w, int lifetimes);
void hg_rewrite_cancel(hg_rewrite *w); /* the old instructions stay */
/* Appends a register; returns its number. */
uint32_t hg_rewrite_register(hg_rewrite *w, const vector_reg *reg);
/* Removes the instructions whose op is VECTOR_REMOVED, which no pass leaves behind, in place. Without memory for it
 * HG_OUT_OF_MEMORY. */
hg_status hg_rewrite_remove(hg_vector *v);

static inline uint32_t hg_rewrite_count(const hg_rewrite *w) { return (uint32_t)w->insns.count; }

static inline vector_insn *hg_rewrite_insn(const hg_rewrite *w, uint32_t i) { return (vector_insn *)w->insns.data + i; }

/* What is appended next stands for old instruction `i`. */
static inline void hg_rewrite_place(hg_rewrite *w, uint32_t i) { w->place[i] = hg_rewrite_count(w); }

/* Returns the instruction's number. */
static inline uint32_t hg_rewrite_append(hg_rewrite *w, const vector_insn *insn) {
  if (!hg_array_has_room(&w->v->allocator, &w->insns)) {
    w->no_memory = 1;
    return 0;
  }
  *hg_rewrite_insn(w, hg_rewrite_count(w)) = *insn;
  return (uint32_t)w->insns.count++;
}

/* Old instruction `i` as it is. */
static inline void hg_rewrite_keep(hg_rewrite *w, uint32_t i) {
  hg_rewrite_place(w, i);
  hg_rewrite_append(w, vector_insn_at(w->v, i));
}

#endif
