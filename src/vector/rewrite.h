/* rewrite.h - how a pass rewrites a vector program.
 *
 * The pass walks the old program and appends the instructions of the new one. At each old instruction it calls
 * hg_rewrite_place, so that jumps keep their targets: targets of appended instructions are numbers of the old program
 * until hg_rewrite_end. The old instructions stay readable until then. Registers are added to the program itself. */
#ifndef HG_VECTOR_REWRITE_H
#define HG_VECTOR_REWRITE_H

#include "vector/vector.h"

typedef struct hg_rewrite {
  hg_vector *v;     /* the program */
  hg_array insns;   /* vector_insn: its new instructions */
  uint32_t *place;  /* per old instruction: the new instruction that jumps to it lead to */
  uint8_t no_memory;
} hg_rewrite;

/* The bit of a target that is already a number of the new program. */
#define HG_REWRITE_NEW UINT32_C(0x80000000)

/* `more`: how many more instructions the new program may have. After a failure there is nothing to end. */
hg_status hg_rewrite_begin(hg_rewrite *w, hg_vector *v, uint64_t more);
/* Replaces the old instructions by the new ones. With `lifetimes`, recomputes live ranges. HG_OUT_OF_MEMORY also if an
 * append failed. */
hg_status hg_rewrite_end(hg_rewrite *w, int lifetimes);
void hg_rewrite_cancel(hg_rewrite *w); /* keeps the old instructions */
/* Appends a register; returns its number. */
uint32_t hg_rewrite_register(hg_rewrite *w, const vector_reg *reg);
/* Removes the instructions whose op is VECTOR_REMOVED, in place; every pass calls it after marking some.
 * HG_OUT_OF_MEMORY. */
hg_status hg_rewrite_remove(hg_vector *v);

static inline uint32_t hg_rewrite_count(const hg_rewrite *w) { return (uint32_t)w->insns.count; }

static inline vector_insn *hg_rewrite_insn(const hg_rewrite *w, uint32_t i) { return (vector_insn *)w->insns.data + i; }

/* The next appended instruction stands for old instruction `i`. */
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

/* Appends old instruction `i` unchanged. */
static inline void hg_rewrite_keep(hg_rewrite *w, uint32_t i) {
  hg_rewrite_place(w, i);
  hg_rewrite_append(w, vector_insn_at(w->v, i));
}

#endif
