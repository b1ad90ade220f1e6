/* insn_block.c - block-wide instructions: barriers, collectives, pools. A lane that has ended takes no part; combining
 * with a missing value leaves the other unchanged. */
#include "backend/cpu/engine/rows.h"

#include "atlas/arith.h"
#include "compiler/machine_ops.h"

#include <stdio.h>

static uint32_t bytes_of(const vector_insn *insn) { return hg_cpu_element_bytes(insn->type); }

static void set_lane(const vector_insn *insn, const cpu_operands *o, uint32_t i, uint64_t value) {
  uint32_t bytes = bytes_of(insn);
  if (o->d != NULL && hg_cpu_takes_part(o, i)) atlas_write_value((uint8_t *)o->d + (size_t)i * bytes, bytes, value);
}

static void set_all(const vector_insn *insn, const cpu_operands *o, uint64_t value) {
  if (o->mask == NULL && o->d != NULL) hg_cpu_fill_row(o->d, bytes_of(insn), value, o->count);
  else
    for (uint32_t i = 0; i < o->count; i++) set_lane(insn, o, i, value);
}

/* ---- collectives with missing lanes: value by value -------------------------------------------------------------- */

typedef struct values {
  uint64_t value[CPU_TILE_LANES];
  uint8_t present[CPU_TILE_LANES];
} values;

static void gather(const vector_insn *insn, const cpu_operands *o, values *v) {
  v->value[0] = 0; /* at least one lane takes part, but compilers cannot know that */
  for (uint32_t i = 0; i < o->count; i++) {
    v->present[i] = (uint8_t)hg_cpu_takes_part(o, i);
    v->value[i] = v->present[i] ? hg_cpu_source(o, 0, bytes_of(insn), i) : 0;
  }
}

/* 0 to 3, as in cpu_kernels.fold. */
static unsigned fold_number(uint16_t op) {
  switch (op) {
  case ATLAS_OP_reduce_mul: return 1;
  case ATLAS_OP_reduce_min: return 2;
  case ATLAS_OP_reduce_max: return 3;
  default: return 0;
  }
}

/* value[into] = value[left] op value[right]; a missing side is ignored. */
static void combine(values *v, uint32_t op, uint8_t type, uint32_t into, uint32_t left, uint32_t right) {
  if (v->present[left] && v->present[right])
    v->value[into] = atlas_arith(op, (atlas_type)type, v->value[left], v->value[right], 0);
  else v->value[into] = v->present[left] ? v->value[left] : v->value[right];
  v->present[into] = v->present[left] | v->present[right];
}

static void reduce_slowly(const vector_insn *insn, const cpu_operands *o) {
  values v;
  uint32_t half = 1;
  gather(insn, o, &v);
  while (half < o->count) half *= 2;
  for (half /= 2; half >= 1; half /= 2)
    for (uint32_t i = 0; i < half && i + half < o->count; i++)
      combine(&v, atlas_combining_op(insn->op), insn->type, i, i, i + half);
  set_all(insn, o, v.value[0]);
}

static void scan_slowly(const vector_insn *insn, const cpu_operands *o) {
  values v;
  gather(insn, o, &v);
  for (uint32_t stride = 1; stride < o->count; stride *= 2)
    for (uint32_t i = o->count; i-- > stride;) /* downwards, so that the left neighbour is still old */
      combine(&v, ATLAS_OP_add, insn->type, i, i - stride, i);
  int is_exclusive = insn->op == ATLAS_OP_scan_excl;
  for (uint32_t i = 0; i < o->count; i++)
    set_lane(insn, o, i, !is_exclusive ? v.value[i] : i > 0 && v.present[i - 1] ? v.value[i - 1] : 0);
}

/* ---- collectives of all lanes: by rows --------------------------------------------------------------------------- */

/* Copies the source to a row that may be overwritten. */
static void copy_row(const vector_insn *insn, const cpu_operands *o, void *row) {
  if (o->step[0]) memcpy(row, o->s[0], (size_t)o->count * bytes_of(insn));
  else hg_cpu_fill_row(row, bytes_of(insn), hg_cpu_source(o, 0, bytes_of(insn), 0), o->count);
}

static void reduce(const cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  cpu_fold *fold = w->run->kernels->fold[fold_number(insn->op)][insn->type];
  if (o->mask != NULL) {
    reduce_slowly(insn, o);
    return;
  }
  uint64_t row[CPU_TILE_LANES];
  copy_row(insn, o, row);
  fold(row, o->count);
  set_all(insn, o, atlas_read_value(row, bytes_of(insn)));
}

static void scan(const cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  cpu_scan *kernel = w->run->kernels->scan[insn->type];
  if (o->mask != NULL || o->d == NULL) {
    scan_slowly(insn, o);
    return;
  }
  uint64_t row[CPU_TILE_LANES], other[CPU_TILE_LANES];
  uint32_t bytes = bytes_of(insn);
  copy_row(insn, o, row);
  const uint8_t *result = kernel(row, other, o->count);
  if (insn->op == ATLAS_OP_scan_incl) {
    memcpy(o->d, result, (size_t)o->count * bytes);
  } else {
    memset(o->d, 0, bytes);
    memcpy((uint8_t *)o->d + bytes, result, (size_t)(o->count - 1) * bytes);
  }
}

/* Counts as it goes, in the elements of the shared array that the totals are for. */
static void rank(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint32_t *count = (uint32_t *)(void *)w->binding[insn->symbol].memory + vector_window_first(insn);
  uint32_t mask = (1u << vector_window_bits(insn)) - 1;
  memset(count, 0, (mask + (size_t)1) * sizeof *count);
  if (o->mask == NULL && o->step[0] && o->d != NULL) {
    const uint32_t *a = o->s[0];
    uint32_t *d = o->d;
    for (uint32_t i = 0; i < o->count; i++) d[i] = count[a[i] & mask]++;
    return;
  }
  for (uint32_t i = 0; i < o->count; i++)
    if (hg_cpu_takes_part(o, i)) set_lane(insn, o, i, count[hg_cpu_source(o, 0, sizeof *count, i) & mask]++);
}

static void vote(const cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint32_t yes = 0, voters = 0;
  (void)w;
  for (uint32_t i = 0; i < o->count; i++) {
    if (!hg_cpu_takes_part(o, i)) continue;
    voters++;
    yes += (uint32_t)hg_cpu_source(o, 0, 1, i);
  }
  set_all(insn, o, insn->op == ATLAS_OP_vote_any ? yes > 0 : yes == voters);
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

static uint32_t lowest_lane(const cpu_operands *o) {
  uint32_t i = 0;
  while (i < o->count && !hg_cpu_takes_part(o, i)) i++;
  return i;
}

static void pool_allocate(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint32_t pool = insn->symbol, lane = lowest_lane(o);
  if (lane == o->count) return;
  uint64_t size = hg_cpu_source(o, 0, 8, lane);
  uint64_t end = (w->block_index + 1) * hg_cpu_pool_share(w, pool), room = end - w->pool_top[pool], offset = UINT64_MAX;
  if (size <= room) { /* room is a multiple of the alignment, so the rounded size fits too */
    offset = w->pool_top[pool];
    w->pool_top[pool] += hg_cpu_round_up(size);
  }
  set_all(insn, o, offset);
}

static void pool_free(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint32_t pool = insn->symbol, lane = lowest_lane(o);
  if (lane == o->count) return;
  uint64_t offset = hg_cpu_source(o, 0, 8, lane), start = w->block_index * hg_cpu_pool_share(w, pool);
  if (offset >= start && offset < w->pool_top[pool] && offset % CPU_SHARED_ALIGNMENT == 0) {
    w->pool_top[pool] = offset;
    return;
  }
  hg_fault fault = {.kind = HG_FAULT_POOL, .index = (int64_t)offset, .extent = (int64_t)w->pool_top[pool]};
  snprintf(fault.buffer, sizeof fault.buffer, "%s", atlas_symbol_at(w->run->program, pool)->name);
  hg_cpu_fault(w, lane, insn, fault);
}

void hg_cpu_block_insn(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  switch ((machine_block)hg_machine_op(insn->op)) {
  case BLOCK_bar_sync: break; /* all lanes are at one instruction already */
  case BLOCK_scan_incl:
  case BLOCK_scan_excl: scan(w, insn, o); break;
  case BLOCK_vote_any:
  case BLOCK_vote_all: vote(w, insn, o); break;
  case BLOCK_rank: rank(w, insn, o); break;
  case BLOCK_pool_alloc: pool_allocate(w, insn, o); break;
  case BLOCK_pool_free: pool_free(w, insn, o); break;
  case BLOCK_reduce_add:
  case BLOCK_reduce_mul:
  case BLOCK_reduce_min:
  case BLOCK_reduce_max: reduce(w, insn, o); break;
  }
}
