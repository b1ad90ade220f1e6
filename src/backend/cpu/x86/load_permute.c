/* load_permute.c - loads from shared memory by an index that is not consecutive, but whose lanes follow a pattern
 * within as many elements as a vector has, the same in all vectors of the block, such as lanes / 4. One load and one
 * permutation replace a gather, which takes as long as sixteen loads. */
#include "backend/cpu/x86/x86_memory.h"

enum { IS_NONE = 1 }; /* values of x86_emit.pattern_of; others are the pattern's place in the pool + 2 */

static uint32_t pattern_in_pool(x86_emit *e, const native_pattern *window) {
  uint32_t none = 0;
  while (e->pool.words.count % 16 != 0 && !e->a.no_memory)
    if (hg_array_append(&e->a.allocator, &e->pool.words, &none, 1) == NULL) e->a.no_memory = 1;
  uint32_t place = (uint32_t)e->pool.words.count;
  if (hg_array_append(&e->a.allocator, &e->pool.words, window->place, e->lanes) == NULL) e->a.no_memory = 1;
  return place;
}

static const x86_pattern *pattern_of(x86_emit *e, uint32_t index) {
  x86_pattern *known = &e->pattern_of[index];
  if (known->state != 0) return known;
  if (!e->has_writers) hg_native_find_writers(e->b->vector, e->writer);
  e->has_writers = 1;
  native_pattern window;
  known->state = IS_NONE;
  if (!hg_native_find_pattern(e->b, e->writer, index, &window)) return known;
  known->state = 2 + pattern_in_pool(e, &window);
  known->highest = (uint32_t)window.highest;
  return known;
}

/* Elements read beyond the array belong to the worker. */
int hg_x86_load_permute(x86_emit *e, const x86_access *m) {
  const vector_insn *insn = e->insn;
  if (m->is_store || m->index == VECTOR_NONE || insn->symbol & SSA_LIBRARY || e->is_tail)
    return 0;
  const atlas_symbol *symbol = atlas_symbol_at(e->b->program, insn->symbol);
  if (symbol->kind != ATLAS_SYMBOL_SHARED || m->bytes != 4 || e->b->slices > 0) return 0;
  if (insn->mask != VECTOR_ALL || hg_x86_loses_lanes(e) || hg_x86_is_uniform(e, m->index)) return 0;
  const x86_pattern *window = pattern_of(e, m->index);
  if (window->state == IS_NONE || m->displacement < 0) return 0;
  if ((uint64_t)m->displacement + window->highest >= symbol->count) return 0;
  x86_rm pattern = x86_at(X86_POOL, (int32_t)(window->state - 2) * 4);
  for (uint32_t c = 0; c < e->copies; c++) {
    unsigned to = hg_x86_result_register(e, c, 0, hg_x86_scratch(e, 0)), places = hg_x86_scratch(e, 2);
    hg_x86_first_index(e, m->index, c);
    hg_x86_v(e, X86_vload, places, 0, pattern);
    hg_x86_v(e, X86_vpermps, to, places, x86_indexed(hg_x86_base(e), X86_RAX, m->log_bytes, m->offset));
    hg_x86_set_result(e, c, 0, to);
  }
  return 1;
}
