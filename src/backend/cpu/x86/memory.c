/* memory.c - loads and stores of buffers, shared memory and constant tables.
 *
 * Each copy (one vector of lanes) checks its addresses before it accesses anything; C code handles a copy with a lane
 * out of bounds. [x + lane] needs no check in full groups, since the caller has checked it (native_entry). */
#include "backend/cpu/x86/x86_memory.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "atlas/functions.h"
#include "base/bytes.h"

#include <stddef.h>

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static void find_bounds(x86_access *m, uint32_t symbol) {
  m->extent = x86_at(X86_CONTEXT, hg_x86_place_offset(symbol, offsetof(native_place, extent)));
  m->limit = x86_at(X86_CONTEXT, hg_x86_place_offset(symbol, offsetof(native_place, limit)));
}

/* 1 if this file can write the access. */
int hg_x86_describe_access(x86_emit *e, x86_access *m) {
  static const uint8_t log_of[9] = {[1] = 0, [2] = 1, [4] = 2, [8] = 3};
  const vector_insn *insn = e->insn;
  uint32_t flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) || flags & ATLAS_SPACE_POOL) return 0;
  if (insn->mode > ATLAS_ADDRESS_INDEXED) return 0;
  *m = (x86_access){.type = insn->type,
                    .bytes = (uint8_t)atlas_bytes((atlas_type)insn->type),
                    .index = VECTOR_NONE,
                    .is_store = (flags & ATLAS_STORE) != 0,
                    .is_local = (flags & ATLAS_SPACE_LOCAL) != 0,
                    .displacement = (int64_t)insn->bits};
  m->log_bytes = log_of[m->bytes];
  if (m->displacement > NATIVE_GREATEST_DISPLACEMENT || m->displacement < -NATIVE_GREATEST_DISPLACEMENT) return 0;
  m->offset = (int32_t)(m->displacement * m->bytes);
  int is_indexed = insn->mode == ATLAS_ADDRESS_INDEXED;
  if (is_indexed) m->index = insn->s[0];
  m->value = m->is_store ? insn->s[is_indexed] : VECTOR_NONE;
  if (!(insn->symbol & SSA_LIBRARY)) find_bounds(m, insn->symbol);
  return 1;
}

/* ---- [x + lane] -------------------------------------------------------------------------------------------------- */

static void check_lanes(x86_emit *e, const x86_access *m, uint32_t slow) {
  x86_asm *a = &e->a;
  if (!e->is_tail || !x86_is_checked(e)) return;
  if (m->displacement < 0) {
    hg_x86_alu_imm(a, X86_CMP, 1, x86_reg(X86_LANE), (int32_t)-m->displacement);
    hg_x86_jump_if(a, X86_BELOW, slow);
  }
  hg_x86_lea(a, X86_RAX, x86_at(X86_LANE, (int32_t)m->displacement));
  hg_x86_alu_rm(a, X86_ADD, 1, X86_RAX, x86_at(X86_FRAME, offsetof(native_frame, count)));
  hg_x86_alu_rm(a, X86_CMP, 1, X86_RAX, m->extent);
  hg_x86_jump_if(a, X86_ABOVE, slow);
}

static int is_lane_load(const vector_insn *insn) {
  return atlas_op_flags(insn->op) & ATLAS_LOAD && insn->flags & VECTOR_LANE;
}

/* 1 if instruction i is the region's first load of [its buffer + lane + d]: others load from adjacent addresses. */
static int is_first_load(const x86_emit *e, uint32_t i) {
  const vector_insn *insn = vector_insn_at(e->b->vector, i);
  for (uint32_t k = e->region_first; k < i; k++) {
    const vector_insn *other = vector_insn_at(e->b->vector, k);
    if (is_lane_load(other) && other->symbol == insn->symbol) return 0;
  }
  return is_lane_load(insn);
}

/* Prefetches what later groups load. Measured on Zen 4: the lines of several buffers arrive fastest in the second-level
 * cache, and from less far ahead the more buffers there are; the lines of a single buffer in the first-level cache.
 * With several buffers, loads of the current lines whose values nothing needs fill the processor's load queue.
 * Otherwise it starts so many loads of later groups that the stores, which need the same buffers on their way out, have
 * to wait. 16M elements, one thread, without these loads and with them: a + b 4.7 and 4.5 ms, relu(a b + c) 6.9 and
 * 6.7. */
static void prefetch(x86_emit *e, x86_rm at, uint32_t bytes) {
  uint32_t buffers = 0, ahead = CPU_AHEAD_OF_ONE;
  if (e->is_cold || !is_first_load(e, e->index)) return;
  for (uint32_t i = e->region_first; i < e->region_end; i++) buffers += (uint32_t)is_first_load(e, i);
  if (buffers > 1)
    ahead = CPU_AHEAD_OF_SEVERAL / buffers < CPU_AHEAD_OF_EACH ? CPU_AHEAD_OF_SEVERAL / buffers : CPU_AHEAD_OF_EACH;
  x86_rm later = at;
  later.displacement += (int32_t)(ahead & ~(X86_LINE_BYTES - 1u));
  for (uint32_t b = 0; b < bytes; b += X86_LINE_BYTES) {
    hg_x86_prefetch(&e->a, buffers > 1 ? 2 : 1, later);
    for (int i = 0; buffers > 1 && i < CPU_SPARE_LOADS; i++) hg_x86_load(&e->a, 0, X86_RAX, at);
    at.displacement += X86_LINE_BYTES;
    later.displacement += X86_LINE_BYTES;
  }
}

static int lane_access(x86_emit *e, x86_access *m) {
  int may_be_masked = e->is_tail || (m->is_store && (e->insn->mask != VECTOR_ALL || hg_x86_loses_lanes(e)));
  if (may_be_masked && !x86_can_mask(e, m)) return 0;
  unsigned base = hg_x86_base(e);
  for (uint32_t c = 0; c < e->copies; c++) {
    uint32_t slow = hg_x86_slow_path(e, c);
    check_lanes(e, m, slow);
    x86_rm at = x86_indexed(base, X86_LANE, m->log_bytes, m->offset + (int32_t)(hg_x86_first_lane(e, c) * m->bytes));
    int mask = may_be_masked ? hg_x86_mask(e, c, (unsigned)x86_mask_scratch(e)) : -1;
    uint32_t packed = m->is_store && mask < 0 ? hg_x86_store_packed(e, m, at, c) : 0;
    if (packed > 0) c += packed - 1;
    else if (m->is_store) hg_x86_store_run(e, m, at, c, mask);
    else {
      if (e->is_stream && c == 0) prefetch(e, at, e->copies * e->lanes * m->bytes);
      hg_x86_load_run(e, m, at, c, mask);
    }
    hg_x86_slow_back(e);
  }
  return 1;
}

/* ---- one element for all lanes ----------------------------------------------------------------------------------- */

static void load_one(x86_emit *e, const x86_access *m, x86_rm at) {
  unsigned value = hg_x86_scratch(e, 0);
  if (hg_x86_copies(e, e->insn->d) == 1 && hg_x86_parts(e, e->insn->d) == 1)
    value = hg_x86_result_register(e, 0, 0, value);
  hg_x86_broadcast_element(e, m, at, value);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++)
    for (uint32_t p = 0; p < hg_x86_parts(e, e->insn->d); p++) hg_x86_set_result(e, c, p, value);
}

/* C code performs the access if the index is out of bounds; even a proven index may be, if no lane takes part. In
 * bounds, a load that no lane needs does no harm. */
static int same_access(x86_emit *e, x86_access *m) {
  int is_uniform = m->index == VECTOR_NONE || hg_x86_is_uniform(e, m->index);
  int may_have_no_lane = e->insn->mask != VECTOR_ALL || hg_x86_loses_lanes(e);
  int is_checked =
      x86_is_checked(e) || (m->index != VECTOR_NONE && may_have_no_lane && !(e->insn->symbol & SSA_LIBRARY));
  if (m->is_store || !is_uniform || (m->index == VECTOR_NONE && m->displacement < 0)) return 0;
  unsigned base = hg_x86_base(e);
  uint32_t slow = hg_x86_slow_path(e, X86_ALL_COPIES);
  x86_rm at = x86_at(base, m->offset);
  if (m->index != VECTOR_NONE) {
    hg_x86_first_index(e, m->index, 0);
    hg_x86_add_displacement(e, m, slow);
    at = x86_indexed(base, X86_RAX, m->log_bytes, 0);
  } else if (is_checked) hg_x86_move_imm(&e->a, X86_RAX, (uint32_t)m->displacement);
  if (is_checked) {
    hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_RAX, m->extent);
    hg_x86_jump_if(&e->a, X86_ABOVE_EQUAL, slow);
  }
  load_one(e, m, at);
  hg_x86_slow_back(e);
  return 1;
}

/* A uniform address: in each copy the store of the highest lane remains. ecx: that lane's number in the copy's
 * vector. */
static void find_last_lane(x86_emit *e, uint32_t copy, uint32_t none) {
  x86_asm *a = &e->a;
  int mask = hg_x86_mask(e, copy, (unsigned)x86_mask_scratch(e));
  if (mask < 0) {
    hg_x86_move_imm(a, X86_RCX, e->lanes - 1u);
    return;
  }
  if (e->width == 2) hg_x86_k(e, X86_kmovw_to_g, X86_RCX, 0, (unsigned)mask);
  else hg_x86_v(e, X86_vmovmskps, X86_RCX, 0, x86_reg((unsigned)mask));
  hg_x86_test(a, 0, X86_RCX, X86_RCX);
  hg_x86_jump_if(a, X86_EQUAL, none);
  hg_x86_lzcnt(a, 0, X86_RCX, x86_reg(X86_RCX));
  hg_x86_alu_imm(a, X86_XOR, 0, x86_reg(X86_RCX), 31);
}

static int same_store(x86_emit *e, x86_access *m) {
  x86_asm *a = &e->a;
  int is_uniform = m->index == VECTOR_NONE || hg_x86_is_uniform(e, m->index);
  if (!m->is_store || m->bytes != 4 || !is_uniform || (m->index == VECTOR_NONE && m->displacement < 0)) return 0;
  int32_t spilled = (int32_t)(offsetof(native_frame, vectors) + hg_x86_scratch(e, 0) * e->vector_bytes);
  uint32_t copies =
      hg_x86_copies(e, m->value) > 1 || e->insn->mask != VECTOR_ALL || hg_x86_loses_lanes(e) ? e->copies : 1;
  for (uint32_t c = 0; c < copies; c++) {
    uint32_t slow = hg_x86_slow_path(e, copies == 1 ? X86_ALL_COPIES : c), none = hg_x86_new_label(a);
    find_last_lane(e, c, none);
    unsigned value = hg_x86_source_reg(e, m->value, c, 0, hg_x86_scratch(e, 0));
    hg_x86_v(e, X86_vstore, value, 0, x86_at(X86_FRAME, spilled));
    hg_x86_load(a, 0, X86_RCX, x86_indexed(X86_FRAME, X86_RCX, 2, spilled));
    x86_rm at = x86_at(hg_x86_base(e), m->offset);
    if (m->index != VECTOR_NONE) {
      hg_x86_first_index(e, m->index, 0);
      hg_x86_add_displacement(e, m, slow);
      at = x86_indexed(hg_x86_base(e), X86_RAX, m->log_bytes, 0);
    } else if (x86_is_checked(e)) hg_x86_move_imm(a, X86_RAX, (uint32_t)m->displacement);
    if (x86_is_checked(e)) {
      hg_x86_alu_rm(a, X86_CMP, 1, X86_RAX, m->extent);
      hg_x86_jump_if(a, X86_ABOVE_EQUAL, slow);
    }
    hg_x86_store(a, 0, at, X86_RCX);
    hg_x86_place(a, none);
    hg_x86_slow_back(e);
  }
  return 1;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

int hg_x86_is_by_tile_lane(const x86_emit *e) {
  const vector_insn *insn = e->insn;
  if (insn->mode != ATLAS_ADDRESS_INDEXED || hg_x86_is_uniform(e, insn->s[0]))
    return insn->mode <= ATLAS_ADDRESS_INDEXED && (insn->mode != ATLAS_ADDRESS_INDEXED || insn->flags & VECTOR_SAME) &&
           (int64_t)insn->bits >= 0 && (int64_t)insn->bits <= NATIVE_GREATEST_DISPLACEMENT;
  if (!(insn->flags & VECTOR_CONTIGUOUS) || insn->flags & VECTOR_LANE) return 0;
  if ((int64_t)insn->bits > NATIVE_GREATEST_DISPLACEMENT || (int64_t)insn->bits < -NATIVE_GREATEST_DISPLACEMENT)
    return 0;
  return hg_native_is_blane(e->b->vector, insn->s[0]) || hg_x86_added_to_tile_lane(e, insn->s[0]) != VECTOR_NONE;
}

/* 1 if shared memory is large enough for any lanes of a full block that may come here. */
static int is_within_shared(const x86_emit *e, int64_t added) {
  const atlas_symbol *symbol = atlas_symbol_at(e->b->program, e->insn->symbol);
  return e->is_full && symbol->kind == ATLAS_SYMBOL_SHARED && e->region_lanes > 0 && added >= 0 &&
         e->region_lanes + (uint64_t)added <= symbol->count;
}

/* Jumps to `slow` unless those lanes of a vector, from `lane` on, that exist are in bounds. */
static void check_tile_lanes(x86_emit *e, const x86_access *m, unsigned lane, int32_t d, uint32_t slow) {
  x86_asm *a = &e->a;
  x86_rm last = x86_at(lane, (int32_t)(hg_x86_first_lane(e, e->copies - 1) + e->lanes) - 1 + d);
  if (d < 0) {
    hg_x86_alu_imm(a, X86_CMP, 1, x86_reg(lane), -d);
    hg_x86_jump_if(a, X86_BELOW, slow);
  }
  if (e->is_tail) {
    hg_x86_load(a, 1, X86_RCX, x86_at(X86_FRAME, offsetof(native_frame, count)));
    last = x86_indexed(lane, X86_RCX, 0, d - 1);
  }
  hg_x86_lea(a, X86_RCX, last);
  hg_x86_alu_rm(a, X86_CMP, 1, X86_RCX, m->limit);
  hg_x86_jump_if(a, X86_ABOVE_EQUAL, slow);
}

/* Finds two registers for addresses that hold neither an address nor a loop's index, nor belong to a NATIVE_GUARD_LOOP.
 * The one that C code restores itself is left out, since calls preserve the others only. 1 if there are two. */
static int find_two_registers(const x86_emit *e, x86_kept *kept) {
  uint32_t last = X86_MOST_BASES - 1, least = e->used_bases > 1 ? e->used_bases : 1;
  if (e->loop.version != X86_NO_LOOP || e->spans.count > 0 || e->is_cold || last < least + 1) return 0;
  kept->first = hg_x86_base_registers[last];
  kept->left = hg_x86_base_registers[last - 1];
  return 1;
}

static int is_in_kept(const x86_emit *e, uint32_t added) {
  const vector_insn *since = e->kept.since == VECTOR_NONE ? NULL : vector_insn_at(e->b->vector, e->kept.since);
  return since != NULL && e->kept.added == added && since->symbol == e->insn->symbol && hg_x86_is_kept(e, since, added);
}

/* Jumps to `slow` unless the lanes of all copies are in bounds; returns the register with the first lane's index, u
 * included. That register, and one with what the buffer has left from there on, are kept, so the next such access needs
 * one comparison only. A sum beyond 32 bits exceeds the limit, and then less than nothing is left. */
static unsigned find_first_lane(x86_emit *e, const x86_access *m, uint32_t added, uint32_t slow) {
  x86_asm *a = &e->a;
  int32_t last = (int32_t)m->displacement + (int32_t)(hg_x86_first_lane(e, e->copies - 1) + e->lanes) - 1;
  if (!is_in_kept(e, added)) {
    e->kept.since = VECTOR_NONE;
    if (!find_two_registers(e, &e->kept)) return X86_RAX;
    hg_x86_load_block_uniform(e, X86_RAX, added);
    hg_x86_note_block_index(e, added);
    hg_x86_lea(a, e->kept.first, x86_indexed(X86_RAX, X86_TILE_LANE, 0, 0));
    hg_x86_load(a, 1, e->kept.left, m->limit);
    hg_x86_alu_rm(a, X86_SUB, 1, e->kept.left, x86_reg(e->kept.first));
    e->kept.since = e->index;
    e->kept.added = added;
  }
  hg_x86_alu_imm(a, X86_CMP, 1, x86_reg(e->kept.left), last);
  hg_x86_jump_if(a, X86_LESS_EQUAL, slow);
  return e->kept.first;
}

/* An access that a NATIVE_GUARD_RANGE covers: 1 if a general register has the row start. A memory operand needs no
 * load; a row shared by all blocks needs no prefetch. */
static int row_access(x86_emit *e, const x86_access *m, int is_masked) {
  unsigned lane;
  int64_t more;
  if (e->b->slices == 0 || x86_is_checked(e)) return 0;
  if (!hg_x86_find_row(e, m->index, &lane, &more)) return 0;
  x86_rm at = x86_indexed(hg_x86_base(e), lane, m->log_bytes,
                          (int32_t)(m->offset + (more + hg_x86_first_lane(e, 0)) * m->bytes));
  if (lane != X86_TILE_LANE) hg_x86_prefetch_next_block(e, m, at);
  int mask = is_masked ? hg_x86_mask(e, 0, (unsigned)x86_mask_scratch(e)) : -1;
  if (m->is_store || native_location_of(e->b, e->insn->d)->kind != NATIVE_ELEMENTS)
    hg_x86_access_run(e, m, at, 0, mask);
  return 1;
}

/* [x + blane], [x + blane + u]: one check for the lanes of all copies, including those that do not take part. A sum
 * beyond 32 bits exceeds the limit. Without a check the sum is modulo 2^32, and negative only in lanes that do not take
 * part. */
static void tile_lane_access(x86_emit *e, const x86_access *m, uint32_t added, int is_masked) {
  uint32_t slow = hg_x86_slow_path(e, X86_ALL_COPIES);
  hg_x86_note_late(e, m->index);
  unsigned lane = X86_TILE_LANE, base = hg_x86_base(e);
  uint64_t bits = 0;
  int64_t offset = m->offset, d = m->displacement;
  int is_checked = x86_is_checked(e);
  if (added != VECTOR_NONE && hg_x86_constant_bits(e, added, &bits) && bits < NATIVE_GREATEST_DISPLACEMENT) {
    offset += (int64_t)bits * m->bytes;
    d += (int64_t)bits;
  } else if (added != VECTOR_NONE) {
    lane = X86_RAX;
    if (is_checked && d >= 0 && !e->is_tail) lane = find_first_lane(e, m, added, slow);
    is_checked &= lane == X86_RAX;
  }
  if (lane == X86_RAX) {
    hg_x86_load_block_uniform(e, lane, added);
    hg_x86_note_block_index(e, added);
    hg_x86_alu_rm(&e->a, X86_ADD, is_checked, X86_RAX, x86_reg(X86_TILE_LANE));
    if (!is_checked) hg_x86_load_sign32(&e->a, X86_RAX, x86_reg(X86_RAX));
  }
  if (is_checked && !(lane == X86_TILE_LANE && is_within_shared(e, d))) check_tile_lanes(e, m, lane, (int32_t)d, slow);
  for (uint32_t c = 0; c < e->copies; c++) {
    x86_rm at = x86_indexed(base, lane, m->log_bytes, (int32_t)offset + (int32_t)(hg_x86_first_lane(e, c) * m->bytes));
    int mask = is_masked ? hg_x86_mask(e, c, (unsigned)x86_mask_scratch(e)) : -1;
    hg_x86_prefetch_next_block(e, m, at);
    hg_x86_access_run(e, m, at, c, mask);
  }
  hg_x86_slow_back(e);
}

/* A load by an index sum, of which only the first lane's value is ever computed: see straight_indices.c. */
static void sum_access(x86_emit *e, const x86_access *m) {
  const vector_insn *made = vector_insn_at(e->b->vector, vector_reg_at(e->b->vector, m->index)->first);
  uint32_t slow = hg_x86_slow_path(e, 0);
  const x86_span *span = hg_x86_span_of(e, made);
  hg_x86_first_index(e, made->s[0], 0);
  unsigned base = span != NULL && span->log_bytes == m->log_bytes ? span->base : X86_RDX;
  if (base == X86_RDX) {
    hg_x86_load_block_uniform(e, X86_RCX, made->s[1]);
    hg_x86_alu_rm(&e->a, X86_ADD, 0, X86_RAX, x86_reg(X86_RCX));
    base = hg_x86_base(e);
  }
  if (span == NULL) {
    hg_x86_lea(&e->a, X86_RCX, x86_at(X86_RAX, (int32_t)m->displacement + e->lanes - 1));
    hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_RCX, m->limit);
    hg_x86_jump_if(&e->a, X86_ABOVE_EQUAL, slow);
  }
  hg_x86_load_run(e, m, x86_indexed(base, X86_RAX, m->log_bytes, m->offset), 0, -1);
  if (span != NULL && base == span->base) hg_x86_prefetch_later(e);
  else if (!e->is_cold) hg_x86_prefetch_next_round(e, m, base, made->s[1]);
  hg_x86_slow_back(e);
}

static int contiguous_access(x86_emit *e, x86_access *m) {
  int is_plain = e->insn->mask == VECTOR_ALL && !hg_x86_loses_lanes(e), is_masked = e->is_tail || !is_plain;
  if ((is_masked && !x86_can_mask(e, m)) || hg_x86_is_uniform(e, m->index)) return 0;
  if (hg_native_is_index_sum(e->b->vector, m->index)) {
    sum_access(e, m);
    return 1;
  }
  uint32_t added = hg_x86_added_to_tile_lane(e, m->index);
  if (added != VECTOR_NONE || hg_native_is_blane(e->b->vector, m->index)) {
    if (row_access(e, m, is_masked)) return 1;
    tile_lane_access(e, m, added, is_masked);
    return 1;
  }
  if (atlas_bytes((atlas_type)hg_x86_type(e, m->index)) < 4) return 0;
  if (hg_x86_group_access(e, m)) return 1;
  hg_x86_access_vectors(e, m, 0, e->copies);
  return 1;
}

/* 1 if the elements that lanes update are consecutive. */
static int may_update(const x86_emit *e) {
  const vector_insn *insn = e->insn;
  int64_t displacement = (int64_t)insn->bits;
  if (!x86_is_alu_update(insn->op) || insn->d != VECTOR_NONE || insn->mode != ATLAS_ADDRESS_INDEXED ||
      insn->symbol & SSA_LIBRARY)
    return 0;
  if (!(insn->flags & VECTOR_CONTIGUOUS) || insn->flags & (VECTOR_SAME | VECTOR_LANE)) return 0;
  if (displacement > NATIVE_GREATEST_DISPLACEMENT || displacement < -NATIVE_GREATEST_DISPLACEMENT) return 0;
  if (atlas_bytes((atlas_type)insn->type) != 4) return 0;
  return !hg_x86_is_uniform(e, insn->s[0]) && atlas_bytes((atlas_type)hg_x86_type(e, insn->s[0])) >= 4;
}

static int update(x86_emit *e) {
  const vector_insn *insn = e->insn;
  x86_access m = {.type = insn->type,
                  .bytes = 4,
                  .log_bytes = 2,
                  .index = insn->s[0],
                  .value = insn->s[1],
                  .is_store = 1,
                  .update = insn->op,
                  .displacement = (int64_t)insn->bits};
  m.offset = (int32_t)(m.displacement * m.bytes);
  find_bounds(&m, insn->symbol);
  return contiguous_access(e, &m);
}

int hg_x86_atomic(x86_emit *e) {
  uint32_t done = hg_x86_new_label(&e->a), apart = hg_x86_new_label(&e->a);
  if (may_update(e)) {
    int32_t is_own = hg_x86_place_offset(e->insn->symbol, offsetof(native_place, is_own));
    hg_x86_alu_imm(&e->a, X86_CMP, 1, x86_at(X86_CONTEXT, is_own), 0);
    hg_x86_jump_if(&e->a, X86_EQUAL, apart);
    if (update(e)) hg_x86_jump(&e->a, done);
  }
  hg_x86_place(&e->a, apart);
  int is_written = hg_x86_lanes(e);
  hg_x86_place(&e->a, done);
  return is_written;
}

/* ---- small tables of the function library ------------------------------------------------------------------------ */

enum { MOST_TABLE_WORDS = 32 };

/* The copy of a table in the pool, padded to full vectors; its vectors do not cross cache lines. */
static uint32_t table_in_pool(x86_emit *e, const atlas_symbol *table) {
  uint32_t symbol = e->insn->symbol, words[MOST_TABLE_WORDS] = {0}, none = 0;
  for (uint32_t i = 0; i < e->pool.table_count; i++)
    if (e->pool.tables[i].symbol == symbol) return e->pool.tables[i].place;
  const uint8_t *data = (const uint8_t *)atlas_functions.constants.data + table->const_offset;
  for (uint32_t i = 0; i < table->count; i++) words[i] = (uint32_t)hg_load_le(data + (size_t)i * 4, 4);
  while (e->pool.words.count % 16 != 0 && !e->a.no_memory)
    if (hg_array_append(&e->a.allocator, &e->pool.words, &none, 1) == NULL) e->a.no_memory = 1;
  uint32_t place = (uint32_t)e->pool.words.count;
  if (hg_array_append(&e->a.allocator, &e->pool.words, words, table->count > 16 ? 32 : 16) == NULL) e->a.no_memory = 1;
  if (e->pool.table_count < sizeof e->pool.tables / sizeof e->pool.tables[0])
    e->pool.tables[e->pool.table_count++] = (x86_table){symbol, place};
  return place;
}

static void look_up(x86_emit *e, uint32_t count, uint32_t place, unsigned to, unsigned index) {
  x86_rm low = x86_at(X86_POOL, (int32_t)place * 4), high = x86_at(X86_POOL, (int32_t)place * 4 + e->vector_bytes);
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2);
  if (count <= e->lanes) hg_x86_v(e, X86_vpermps, to, index, low);
  else if (e->width == 2) {
    hg_x86_v(e, X86_vload, s0, 0, low);
    hg_x86_v(e, X86_vpermt2ps, s0, index, high);
    if (to != s0) hg_x86_v(e, X86_vmove, to, 0, x86_reg(s0));
  } else { /* bit 3 of the index selects the half */
    hg_x86_v(e, X86_vpermps, s2, index, high);
    hg_x86_v(e, X86_vpermps, s0, index, low);
    hg_x86_vi(e, X86_vpslld_imm, 0, hg_x86_scratch(e, 3), x86_reg(index), 28);
    hg_x86_vi(e, X86_vblendvps, to, s0, x86_reg(s2), hg_x86_scratch(e, 3) << 4);
  }
}

static int table_access(x86_emit *e, const x86_access *m) {
  if (!(e->insn->symbol & SSA_LIBRARY) || m->bytes != 4 || m->index == VECTOR_NONE) return 0;
  const atlas_symbol *table = atlas_symbol_at(&atlas_functions, e->insn->symbol & ~(uint32_t)SSA_LIBRARY);
  if (table->count > 2u * e->lanes || m->displacement != 0 || hg_x86_is_64(e, m->index)) return 0;
  uint32_t place = table_in_pool(e, table);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    unsigned index = hg_x86_source_reg(e, m->index, c, 0, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, 0, hg_x86_scratch(e, 0));
    look_up(e, table->count, place, to, index);
    hg_x86_set_result(e, c, 0, to);
  }
  return 1;
}

/* 1 if the instruction is a look-up in a table of 16 that uses only the lowest four bits of its index. */
static int sees_four_bits(const x86_emit *e, const vector_insn *insn, uint32_t index) {
  int is_load = (atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE)) == ATLAS_LOAD;
  if (!is_load || !(insn->symbol & SSA_LIBRARY) || insn->mode != ATLAS_ADDRESS_INDEXED || insn->s[0] != index) return 0;
  if (insn->bits != 0 || atlas_bytes((atlas_type)insn->type) != 4 || hg_x86_is_uniform(e, insn->d)) return 0;
  return atlas_symbol_at(&atlas_functions, insn->symbol & ~(uint32_t)SSA_LIBRARY)->count == 16;
}

int hg_x86_is_table_index(const x86_emit *e) {
  const vector_insn *insn = e->insn;
  uint64_t bits;
  if (insn->op != ATLAS_OP_and || hg_x86_is_64(e, insn->d) || !hg_x86_constant_bits(e, insn->s[1], &bits) || bits != 15)
    return 0;
  const vector_reg *d = vector_reg_at(e->b->vector, insn->d);
  if (d->first != e->index || d->last - d->first > CPU_TABLE_INDEX_LIFE || hg_x86_is_uniform(e, insn->d)) return 0;
  for (uint32_t i = e->index + 1; i <= d->last; i++) {
    const vector_insn *other = vector_insn_at(e->b->vector, i);
    int reads = other->mask == insn->d || other->d == insn->d;
    for (int k = 0; k < 4; k++) reads |= other->s[k] == insn->d;
    if (reads && !sees_four_bits(e, other, insn->d)) return 0;
  }
  return 1;
}

/* ---- quick ones in a loop ---------------------------------------------------------------------------------------- */

/* 1 if no instruction before the current one accesses its buffer. */
static int is_first_access(const x86_emit *e) {
  for (uint32_t i = 0; i < e->index; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (hg_x86_has_base(insn) && insn->symbol == e->insn->symbol) return 0;
  }
  return atlas_symbol_at(e->b->program, e->insn->symbol)->kind == ATLAS_SYMBOL_BUFFER;
}

/* Prefetches what is further along a row or in the next rows; if the step is not a constant, as in a loop over the
 * whole grid, what some later round reads. A group reads a few lines of each kilobyte and other groups read the others,
 * which no hardware prefetcher predicts. 4M elements in rows of 1024, Zen 5: softmax takes half the time. A round that
 * reads several rows, as for the sums of columns, prefetches many rows ahead into the second-level cache, since rows
 * are often a power of two apart: 4096 rows of 16384, Zen 4, 8 rows ahead 365 ps an element, 16 310, 32 250, 64 250,
 * none 450. */
static void prefetch_row(x86_emit *e, const x86_access *m, unsigned index) {
  x86_rm at = x86_indexed(hg_x86_base(e), index, m->log_bytes, m->offset + CPU_AHEAD_ALONG_ROW);
  uint32_t step, rows = hg_x86_quick_steps(e, &step);
  int reads_rows = rows > 1 && rows < 1u << CPU_LOG_ROWS_AHEAD;
  if (!hg_x86_has_all(e) || !(is_first_access(e) || reads_rows) || hg_x86_is_row_start(e)) return;
  if (rows > 0) {
    unsigned later = index == X86_RAX ? X86_RCX : X86_RAX;
    hg_x86_load_step(e, step, later);
    hg_x86_shift_imm(&e->a, 1, X86_SHL, later, reads_rows ? CPU_LOG_ROWS_AHEAD : CPU_LOG_ROUNDS_AHEAD);
    hg_x86_alu_rm(&e->a, X86_ADD, 1, later, x86_reg(index));
    at = x86_indexed(hg_x86_base(e), later, m->log_bytes, m->offset);
  }
  for (uint32_t b = 0; b < e->copies * e->lanes * m->bytes; b += X86_LINE_BYTES, at.displacement += X86_LINE_BYTES)
    if (m->is_store) hg_x86_prefetch_to_write(&e->a, at);
    else hg_x86_prefetch(&e->a, reads_rows ? 2 : 1, at);
}

/* 1 if only the next instruction reads what is loaded, as an operand that may be in memory. */
static int is_next_operand(const x86_emit *e) {
  const vector_insn *insn = e->insn, *next = vector_insn_at(e->b->vector, e->index + 1);
  const vector_reg *reg = vector_reg_at(e->b->vector, insn->d);
  int is_sum = next->op == ATLAS_OP_add || next->op == ATLAS_OP_sub || next->op == ATLAS_OP_mul;
  if (!is_sum || insn->type != ATLAS_f32 || next->type != ATLAS_f32 || insn->flags & VECTOR_KEEP) return 0;
  if (reg->first != e->index || reg->last != e->index + 1 || next->d == insn->d || next->mask == insn->d) return 0;
  return (next->s[0] == insn->d) != (next->s[1] == insn->d) && !hg_x86_is_uniform(e, insn->d);
}

static int quick_access(x86_emit *e, x86_access *m) {
  unsigned index;
  uint8_t stride;
  if (!hg_x86_quick_index(e, &index, &stride)) return 0;
  int takes_all = e->insn->mask == VECTOR_ALL && !hg_x86_loses_lanes(e) && !e->is_tail;
  int is_signed = atlas_kind((atlas_type)hg_x86_type(e, m->index)) == ATLAS_KIND_SINT;
  if (!x86_is_checked(e) && takes_all && is_signed && !hg_x86_is_64(e, m->index)) { /* it may be negative */
    hg_x86_load_sign32(&e->a, X86_RAX, x86_reg(index));
    index = X86_RAX;
  }
  if (x86_is_checked(e) || !takes_all)
    hg_x86_check_number(e, m, index, stride ? e->copies * e->lanes - 1 : 0, X86_RAX, hg_x86_side_exit(e));
  unsigned base = hg_x86_base(e);
  if (!stride) {
    load_one(e, m, x86_indexed(base, index, m->log_bytes, m->offset));
    return 1;
  }
  prefetch_row(e, m, index);
  /* The sum does not change the index, and no bounds are checked in between. */
  if (!m->is_store && takes_all && index != X86_RAX && is_next_operand(e)) {
    e->loop.folded = e->insn->d;
    e->loop.folded_into = e->index + 1;
    e->loop.folded_at = x86_indexed(base, index, m->log_bytes, m->offset);
    return 1;
  }
  for (uint32_t c = 0; c < e->copies; c++) {
    x86_rm at = x86_indexed(base, index, m->log_bytes, m->offset + (int32_t)(c * e->lanes * m->bytes));
    if (!m->is_store) hg_x86_load_run(e, m, at, c, -1);
    else hg_x86_store_run(e, m, at, c, takes_all ? -1 : hg_x86_mask(e, c, (unsigned)x86_mask_scratch(e)));
  }
  return 1;
}

int hg_x86_memory(x86_emit *e) {
  x86_access m;
  if (!hg_x86_describe_access(e, &m)) return 0;
  uint32_t flags = e->insn->flags;
  if (m.is_local) return hg_x86_local(e, &m);
  if (flags & VECTOR_LANE) return lane_access(e, &m);
  if (quick_access(e, &m)) return 1;
  int keeps_one = !m.is_store && native_location_of(e->b, e->insn->d)->is_uniform;
  int has_row = m.index != VECTOR_NONE && !hg_x86_is_uniform(e, m.index); /* one element for each lane, whether or not
                                                                             it takes part */
  if (!(keeps_one && has_row) && table_access(e, &m)) return 1;
  if ((m.index == VECTOR_NONE || flags & VECTOR_SAME) && (same_access(e, &m) || same_store(e, &m))) return 1;
  if (keeps_one) return 0;
  if (flags & VECTOR_CONTIGUOUS && m.index != VECTOR_NONE && contiguous_access(e, &m)) return 1;
  return hg_x86_load_permute(e, &m) || hg_x86_gather(e, &m);
}
