/* rewrite.c - vector programs written anew: see rewrite.h. */
#include "vector/rewrite.h"

#include "base/error.h"
#include "vector/lower.h"

hg_status hg_rewrite_begin(hg_rewrite *w, hg_vector *v, uint64_t more) {
  uint64_t n = v->insns.count;
  *w = (hg_rewrite){.v = v, .insns.element_size = sizeof(vector_insn)};
  w->place = hg_allocate_unset(&v->allocator, n, sizeof *w->place);
  if (w->place != NULL && hg_array_reserve(&v->allocator, &w->insns, n + more)) return HG_OK;
  hg_rewrite_cancel(w);
  return hg_fail_memory("vector code", (n + more) * sizeof(vector_insn));
}

void hg_rewrite_cancel(hg_rewrite *w) {
  hg_array_release(&w->v->allocator, &w->insns);
  hg_release(&w->v->allocator, w->place);
  w->place = NULL;
}

uint32_t hg_rewrite_register(hg_rewrite *w, const vector_reg *reg) {
  const vector_reg added = *reg; /* a copy, because `reg` may point into the program's registers */
  if (hg_array_append(&w->v->allocator, &w->v->regs, &added, 1) == NULL) w->no_memory = 1;
  return (uint32_t)w->v->regs.count - 1;
}

static void resolve_targets(hg_array *insns, const uint32_t *place) {
  vector_insn *insn = insns->data;
  for (size_t i = 0; i < insns->count; i++) {
    uint32_t target = insn[i].target;
    if (target != VECTOR_NONE) insn[i].target = target & HG_REWRITE_NEW ? target & ~HG_REWRITE_NEW : place[target];
  }
}

hg_status hg_rewrite_end(hg_rewrite *w, int lifetimes) {
  hg_vector *v = w->v;
  uint64_t count = w->insns.count;
  if (!w->no_memory) {
    const hg_array old = v->insns;
    resolve_targets(&w->insns, w->place);
    v->insns = w->insns;
    w->insns = old;
  }
  hg_rewrite_cancel(w);
  if (w->no_memory) return hg_fail_memory("vector code", count * sizeof(vector_insn));
  return lifetimes ? hg_vector_lifetimes(v) : HG_OK;
}

hg_status hg_rewrite_remove(hg_vector *v) {
  uint32_t n = (uint32_t)v->insns.count, kept = 0;
  while (kept < n && vector_insn_at(v, kept)->op != VECTOR_REMOVED) kept++;
  if (kept == n) return HG_OK;
  uint32_t *place = hg_allocate_unset(&v->allocator, n, sizeof *place);
  if (place == NULL) return hg_fail_memory("vector code", n * sizeof *place);
  kept = 0;
  for (uint32_t i = 0; i < n; i++) {
    place[i] = kept;
    if (vector_insn_at(v, i)->op != VECTOR_REMOVED) *vector_insn_at(v, kept++) = *vector_insn_at(v, i);
  }
  v->insns.count = kept;
  resolve_targets(&v->insns, place);
  hg_release(&v->allocator, place);
  return HG_OK;
}
