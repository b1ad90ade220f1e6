/* copies.c - interleaves copies of tiles into shared memory with the instructions that read them.
 *
 * A block that brings a tile to shared memory and then computes with it first waits for memory, and afterwards leaves
 * memory idle. In straight-line code, a copy (a load and the store of its result) is delayed until what it brings is
 * about to be read, some copies ahead of that, so later copies arrive while the processor computes with the first. This
 * applies to loads that a span (span.c) proves in bounds, of buffers that do not change, so it makes no difference when
 * they are done. */
#include "backend/cpu/x86/x86_memory.h"
#include "backend/cpu/engine/cpu_tuning.h"

static int is_shared(const x86_emit *e, const vector_insn *insn) {
  return hg_x86_has_base(insn) && atlas_symbol_at(e->b->program, insn->symbol)->kind == ATLAS_SYMBOL_SHARED;
}

static int reads(const vector_insn *insn, uint32_t reg) {
  int found = insn->mask == reg;
  for (int k = 0; k < 4; k++) found |= insn->s[k] == reg;
  return found;
}

/* The elements of shared memory that an access at a known address is for: *count of them, from *first on. */
static int find_place(const x86_emit *e, const vector_insn *insn, uint32_t *first, uint32_t *count) {
  uint32_t slice = insn->slice % e->b->slices;
  if (!(insn->flags & VECTOR_IN_BOUNDS)) return 0;
  *count = 1;
  *first = (uint32_t)insn->bits;
  if (insn->mode == ATLAS_ADDRESS_UNIFORM) return 1;
  if (!(insn->flags & VECTOR_CONTIGUOUS) || insn->flags & VECTOR_SAME) return 0;
  if (!hg_native_is_blane(e->b->vector, insn->s[0])) return 0;
  *first += slice * e->lanes;
  *count = e->lanes;
  return 1;
}

/* 1 if an instruction accesses, or may access, what a copy writes. */
static int touches(const x86_emit *e, const vector_insn *insn, uint32_t symbol, uint32_t first) {
  uint32_t from, count;
  if (!hg_x86_has_base(insn) || insn->symbol != symbol) return 0;
  if (!find_place(e, insn, &from, &count)) return 1;
  return from < first + e->lanes && first < from + count;
}

/* 1 if the load has four bytes a lane, its buffer is not written during the launch, and a span covers it. */
static int is_copied_load(x86_emit *e, const vector_insn *load) {
  const hg_vector *v = e->b->vector;
  if (!hg_x86_has_base(load) || load->mode != ATLAS_ADDRESS_INDEXED || !(load->flags & VECTOR_READ_ONLY)) return 0;
  if (!hg_native_is_index_sum(v, load->s[0]) || atlas_bytes((atlas_type)load->type) != 4) return 0;
  e->insn = load;
  const x86_span *span = hg_x86_span_of(e, vector_insn_at(v, vector_reg_at(v, load->s[0])->first));
  return span != NULL && span->base != X86_RDX && span->log_bytes == 2;
}

/* 1 if something accesses what a copy writes before its store, so late that an operand may still be read: see
 * hg_native_is_operand. */
static int is_touched(const x86_emit *e, const x86_copy *copy) {
  uint32_t before = copy->load < CPU_OFFSET_LIFE ? copy->load : CPU_OFFSET_LIFE;
  for (uint32_t k = copy->load - before; k < copy->store; k++)
    if (touches(e, vector_insn_at(e->b->vector, k), copy->symbol, copy->first)) return 1;
  return 0;
}

/* 1 if the only reader of a load is a store to shared memory not far behind, and nothing in between accesses the same
 * elements. */
static int find_copy(x86_emit *e, uint32_t i, x86_copy *copy) {
  const hg_vector *v = e->b->vector;
  const vector_insn *load = vector_insn_at(v, i);
  if (!is_copied_load(e, load)) return 0;
  const vector_reg *value = vector_reg_at(v, load->d);
  uint32_t count, last = value->last;
  const vector_insn *store = vector_insn_at(v, last);
  *copy = (x86_copy){i, last, store->symbol, 0};
  if (value->first != i || last <= i || last - i > CPU_COPY_APART || !is_shared(e, store)) return 0;
  if ((atlas_op_flags(store->op) & (ATLAS_STORE | ATLAS_ATOMIC)) != ATLAS_STORE || store->mask != VECTOR_ALL) return 0;
  if (store->mode != ATLAS_ADDRESS_INDEXED || store->s[1] != load->d || store->type != load->type) return 0;
  if (!find_place(e, store, &copy->first, &count) || count != e->lanes) return 0;
  for (uint32_t k = i + 1; k < last; k++) {
    const vector_insn *insn = vector_insn_at(v, k);
    if (insn->op == VECTOR_LABEL || vector_is_jump(insn->op) || insn->op == NATIVE_COUNT) return 0;
    if (insn->d == load->d || reads(insn, load->d)) return 0;
  }
  return !is_touched(e, copy);
}

static uint64_t set_of(const x86_emit *e, uint32_t first, uint32_t count) {
  return UINT64_C(1) << (first / e->lanes & 63) | UINT64_C(1) << ((first + count - 1) / e->lanes & 63);
}

static x86_copy *copy_at(const x86_emit *e, uint32_t k) { return (x86_copy *)e->to_come.copies.data + k; }

static void write_copy(x86_emit *e, const x86_copy *copy) {
  const hg_vector *v = e->b->vector;
  unsigned value = hg_x86_scratch(e, 0);
  x86_access load, store;
  e->insn = vector_insn_at(v, e->index = copy->load);
  const vector_insn *made = vector_insn_at(v, vector_reg_at(v, e->insn->s[0])->first);
  unsigned base = hg_x86_span_of(e, made)->base;
  if (!hg_x86_describe_access(e, &load)) return;
  hg_x86_first_index(e, made->s[0], 0);
  hg_x86_v(e, X86_vload, value, 0, x86_indexed(base, X86_RAX, 2, load.offset));
  hg_x86_prefetch_later(e);
  e->insn = vector_insn_at(v, e->index = copy->store);
  if (!hg_x86_describe_access(e, &store)) return;
  int32_t lanes_before = (int32_t)(hg_x86_first_lane(e, 0) * 4);
  hg_x86_v(e, X86_vstore, value, 0, x86_indexed(hg_x86_base(e), X86_TILE_LANE, 2, store.offset + lanes_before));
}

static void write_prefetch(x86_emit *e, uint32_t i) {
  const hg_vector *v = e->b->vector;
  x86_access load;
  e->insn = vector_insn_at(v, e->index = i);
  const vector_insn *made = vector_insn_at(v, vector_reg_at(v, e->insn->s[0])->first);
  if (!hg_x86_describe_access(e, &load) || !hg_x86_grows_unevenly(e, made->s[1])) return;
  hg_x86_first_index(e, made->s[0], 0);
  hg_x86_prefetch_next_round(e, &load, hg_x86_span_of(e, made)->base, made->s[1]);
}

/* Writes the prefetches that are due within the next `copies` copies. Many at once would fill the processor's queue of
 * outstanding loads. */
static void write_prefetches(x86_emit *e, uint32_t copies) {
  const uint32_t *loads = e->to_come.prefetches.data;
  uint32_t due = ((uint32_t)e->to_come.prefetches.count - e->to_come.first_prefetch) / (copies + 1);
  for (; due > 0; due--) write_prefetch(e, loads[e->to_come.first_prefetch++]);
}

/* Writes the copies up to number `last`. */
static void write_copies(x86_emit *e, uint32_t last) {
  uint32_t count = (uint32_t)e->to_come.copies.count;
  for (; e->to_come.first_copy < count && e->to_come.first_copy <= last; e->to_come.first_copy++) {
    write_copy(e, copy_at(e, e->to_come.first_copy));
    write_prefetches(e, count - e->to_come.first_copy);
  }
  e->to_come.copied_to = 0;
  for (uint32_t k = e->to_come.first_copy < CPU_COPIES_AHEAD ? 0 : e->to_come.first_copy - CPU_COPIES_AHEAD; k < count;
       k++)
    e->to_come.copied_to |= set_of(e, copy_at(e, k)->first, e->lanes);
}

/* Writes the copies that instruction i might read, and a fixed number more: so each row that is read for the first time
 * brings one. */
static void write_what_is_seen(x86_emit *e, uint32_t i) {
  const vector_insn *insn = vector_insn_at(e->b->vector, i);
  uint32_t first, count, most = (uint32_t)e->to_come.copies.count;
  int is_end = insn->op == VECTOR_LABEL || vector_is_jump(insn->op) || insn->op == NATIVE_COUNT;
  for (uint32_t k = 0; k < e->spans.count; k++) is_end |= insn->d == e->spans.held[k].added;
  if (is_end) write_copies(e, most);
  if (is_end) write_prefetches(e, 0);
  if (is_end || !is_shared(e, insn)) return;
  if (find_place(e, insn, &first, &count) && (set_of(e, first, count) & e->to_come.copied_to) == 0) return;
  for (uint32_t k = most; k-- > 0 && k + CPU_COPIES_AHEAD >= e->to_come.first_copy;)
    if (touches(e, insn, copy_at(e, k)->symbol, copy_at(e, k)->first)) {
      write_copies(e, k + CPU_COPIES_AHEAD);
      return;
    }
}

int hg_x86_has_copies(const x86_emit *e) {
  return e->to_come.first_copy < e->to_come.copies.count || e->to_come.first_prefetch < e->to_come.prefetches.count;
}

int hg_x86_postpone(x86_emit *e, uint32_t i) {
  x86_copy copy;
  for (uint32_t k = (uint32_t)e->to_come.copies.count; k-- > 0 && copy_at(e, k)->load + CPU_COPY_APART >= i;)
    if (copy_at(e, k)->store == i) return 1;
  if (hg_x86_has_copies(e)) write_what_is_seen(e, i);
  if (i >= e->spans.end || !find_copy(e, i, &copy)) return 0;
  if (hg_array_append(&e->a.allocator, &e->to_come.copies, &copy, 1) == NULL) e->a.no_memory = 1;
  e->to_come.copied_to |= set_of(e, copy.first, e->lanes);
  return !e->a.no_memory;
}
