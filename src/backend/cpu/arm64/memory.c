/* memory.c - loads, stores and atomics of buffers, shared memory, local arrays and constant tables.
 *
 * Every copy (one vector of lanes) checks its addresses before it accesses anything. C does a copy with a lane out of
 * bounds; in a loop, the code of faults.c does. [x + lane] needs no check in full groups, because the caller has
 * checked it (native_entry). NEON has neither gathers nor masked accesses: those go lane by lane. */
#include "atlas/functions.h"
#include "atlas/tables.h"
#include "backend/cpu/arm64/neon_memory.h"

#include <stddef.h>

enum {
  GREATEST_DISPLACEMENT = 1 << 24, /* elements; below it no sum here overflows */
  BASE = 7,                        /* x register for the address of a symbol without a base register */
  RUN = 5                          /* x register for the address of consecutive lanes */
};

static int is_access(const vector_insn *insn) {
  uint32_t flags = atlas_op_flags(insn->op);
  return flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC) && !(flags & ATLAS_SPACE_POOL) &&
         insn->mode <= ATLAS_ADDRESS_INDEXED;
}

int hg_neon_has_base(const vector_insn *insn) { return is_access(insn) && !(insn->symbol & SSA_LIBRARY); }

int hg_neon_describe_access(const neon_emit *e, neon_access *m) {
  const vector_insn *insn = e->insn;
  if (!is_access(insn)) return 0;
  *m = (neon_access){.type = insn->type, .log = (uint8_t)hg_neon_log_bytes(insn->type), .index = VECTOR_NONE,
                .value = VECTOR_NONE, .compared = VECTOR_NONE, .displacement = (int64_t)insn->bits};
  m->is_store = (atlas_op_flags(insn->op) & ATLAS_STORE) != 0;
  m->is_atomic = (atlas_op_flags(insn->op) & ATLAS_ATOMIC) != 0;
  m->is_local = (atlas_op_flags(insn->op) & ATLAS_SPACE_LOCAL) != 0;
  m->is_checked = !(insn->flags & VECTOR_IN_BOUNDS) && !(insn->symbol & SSA_LIBRARY);
  if (m->displacement > GREATEST_DISPLACEMENT || m->displacement < -GREATEST_DISPLACEMENT) return 0;
  int is_indexed = insn->mode == ATLAS_ADDRESS_INDEXED;
  if (is_indexed) m->index = insn->s[0];
  int is_cas = insn->op == ATLAS_OP_atom_cas;
  if (is_cas) m->compared = insn->s[is_indexed];
  if (m->is_store || m->is_atomic) m->value = insn->s[is_indexed + is_cas];
  return 1;
}

void hg_neon_find_base(neon_emit *e, neon_access *m) {
  uint32_t symbol = e->insn->symbol;
  m->base = BASE;
  if (symbol & SSA_LIBRARY) {
    const atlas_symbol *table = atlas_symbol_at(&atlas_functions, symbol & ~(uint32_t)SSA_LIBRARY);
    const uint8_t *memory = (const uint8_t *)atlas_functions.constants.data + table->const_offset;
    hg_a64_move_imm(&e->a, BASE, (uint64_t)(uintptr_t)memory);
  } else if (e->base_of[symbol] != 0) m->base = e->base_of[symbol];
  else
    hg_a64_memory(&e->a, A64_ldr_x, BASE, NEON_CONTEXT,
                  (int64_t)hg_neon_place_offset(symbol, offsetof(native_place, memory)));
}

void hg_neon_load_extent(neon_emit *e) {
  hg_a64_memory(&e->a, A64_ldr_x, 2, NEON_CONTEXT,
                (int64_t)hg_neon_place_offset(e->insn->symbol, offsetof(native_place, extent)));
}

void hg_neon_normalise_bool(neon_emit *e, const neon_access *m, unsigned reg) {
  if (m->type != ATLAS_bool) return;
  hg_a64_constant(&e->a, A64_32B, hg_neon_scratch(e, 4), 1);
  hg_a64(&e->a, A64_umin, A64_32B, reg, reg, hg_neon_scratch(e, 4));
}

/* ---- consecutive lanes ------------------------------------------------------------------------------------------- */

/* Loads from [x5 + offset] on. */
static void load_run(neon_emit *e, const neon_access *m, int64_t offset, uint32_t copy) {
  for (uint32_t p = 0; p < (m->log == 3 ? 2u : 1u); p++) {
    unsigned d = hg_neon_result_register(e, copy, p);
    hg_neon_load_elements(e, m->type, d, RUN, offset + (int64_t)p * NEON_VECTOR_BYTES);
    hg_neon_normalise_bool(e, m, d);
    hg_neon_set_result(e, copy, p, d);
  }
}

static void store_run(neon_emit *e, const neon_access *m, int64_t offset, uint32_t copy) {
  for (uint32_t p = 0; p < (m->log == 3 ? 2u : 1u); p++) {
    unsigned from = hg_neon_source(e, m->value, copy, p, hg_neon_scratch(e, 0));
    hg_neon_store_elements(e, m->type, from, RUN, offset + (int64_t)p * NEON_VECTOR_BYTES, hg_neon_scratch(e, 1));
  }
}

void hg_neon_mask_to_general(neon_emit *e, unsigned bits, unsigned mask) {
  hg_a64(&e->a, A64_xtn, A64_16B, hg_neon_scratch(e, 5), mask, 0);
  hg_a64_extract(&e->a, A64_64B, bits, hg_neon_scratch(e, 5), 0);
}

/* ---- one lane ---------------------------------------------------------------------------------------------------- */

/* One lane of a copy: the element at [base + x0 * size] (x0: index), into the vectors `to` or from those of the
 * value. */
static void load_lane(neon_emit *e, const neon_access *m, unsigned lane, const unsigned *to) {
  static const a64_memory_op zero[2] = {A64_ldrb_w, A64_ldrh_w}, sign[2] = {A64_ldrsb_x, A64_ldrsh_x};
  int is_signed = atlas_kind((atlas_type)m->type) == ATLAS_KIND_SINT;
  if (m->log < 2) {
    hg_a64_indexed(&e->a, is_signed ? sign[m->log] : zero[m->log], 1, m->base, 0, m->log > 0);
    hg_a64_insert(&e->a, A64_32B, to[0], lane, 1);
    return;
  }
  hg_a64_add_shifted(&e->a, 1, m->base, 0, m->log);
  if (m->log == 2) hg_a64_load_lane(&e->a, A64_32B, to[0], lane, 1);
  else hg_a64_load_lane(&e->a, A64_64B, to[lane / 2], lane % 2, 1);
}

static void store_lane(neon_emit *e, const neon_access *m, unsigned lane, const unsigned *from) {
  hg_a64_add_shifted(&e->a, 1, m->base, 0, m->log);
  if (m->log == 3) hg_a64_store_lane(&e->a, A64_64B, from[lane / 2], lane % 2, 1);
  else hg_a64_store_lane(&e->a, m->log, from[0], lane << (2 - m->log), 1); /* the low part of a 32-bit element */
}

/* ---- lane by lane ------------------------------------------------------------------------------------------------ */

typedef struct lanes { /* of one copy */
  unsigned index[2];   /* vectors of indices; one for 32-bit indices */
  unsigned vector[2];  /* the value's parts, or the registers that assemble a load */
  unsigned compared[2];
  unsigned bits;       /* x register with 16 bits a lane: the participating lanes; 0: all */
} lanes;

static lanes begin_lanes(neon_emit *e, const neon_access *m, uint32_t copy) {
  lanes l = {.vector = {hg_neon_scratch(e, 2), hg_neon_scratch(e, 3)}};
  int mask = hg_neon_mask(e, copy, hg_neon_scratch(e, 4));
  if (mask >= 0) hg_neon_mask_to_general(e, l.bits = 6, (unsigned)mask);
  for (uint32_t p = 0; p < (m->log == 3 ? 2u : 1u); p++) {
    if (m->value != VECTOR_NONE) l.vector[p] = hg_neon_source(e, m->value, copy, p, l.vector[p]);
    if (m->compared != VECTOR_NONE)
      l.compared[p] = hg_neon_source(e, m->compared, copy, p, hg_neon_scratch(e, 4 + p));
  }
  return l;
}

/* Where the lanes' old values are collected: in the frame, where a call would save registers. */
static int64_t old_at(unsigned byte) { return (int64_t)offsetof(native_frame, vectors) + byte; }

static void end_lanes(neon_emit *e, const neon_access *m, const lanes *l, uint32_t copy) {
  if (m->is_store || e->insn->d == VECTOR_NONE) return;
  for (uint32_t p = 0; p < (m->log == 3 ? 2u : 1u); p++) {
    unsigned d = m->is_atomic ? hg_neon_result_register(e, copy, p) : l->vector[p];
    if (m->is_atomic) hg_a64_memory(&e->a, A64_ldr_q, d, A64_SP, old_at(p * NEON_VECTOR_BYTES));
    if (p == 0) hg_neon_normalise_bool(e, m, d);
    hg_neon_set_result(e, copy, p, d);
  }
}

static void extract_lane(neon_emit *e, const neon_access *m, unsigned lane, const unsigned *from, unsigned to) {
  if (m->log == 3) hg_a64_extract(&e->a, A64_64B, to, from[lane / 2], lane % 2);
  else hg_a64_extract(&e->a, A64_32B, to, from[0], lane);
}

static void update_lane(neon_emit *e, const neon_access *m, unsigned lane, const lanes *l) {
  hg_a64_add_shifted(&e->a, 1, m->base, 0, m->log);
  extract_lane(e, m, lane, l->vector, 3);
  if (m->compared != VECTOR_NONE) extract_lane(e, m, lane, l->compared, 5);
  hg_neon_update(e);
  if (e->insn->d != VECTOR_NONE)
    hg_a64_memory(&e->a, m->log == 3 ? A64_str_x : A64_str_w, 0, A64_SP, old_at(lane << m->log));
}

static void access_lane(neon_emit *e, const neon_access *m, const lanes *l, unsigned lane) {
  if (m->is_atomic) update_lane(e, m, lane, l);
  else if (m->is_store) store_lane(e, m, lane, l->vector);
  else load_lane(e, m, lane, l->vector);
}

/* The vectors of indices of a copy. */
static void fetch_index(neon_emit *e, const neon_access *m, uint32_t copy, unsigned index[2]) {
  if (m->index == VECTOR_NONE) return;
  index[0] = index[1] = hg_neon_source(e, m->index, copy, 0, hg_neon_scratch(e, 0));
  if (hg_neon_is_64(e, m->index)) index[1] = hg_neon_source(e, m->index, copy, 1, hg_neon_scratch(e, 1));
}

/* x0 = the index of a lane, without the displacement. */
static void lane_index(neon_emit *e, const neon_access *m, const unsigned index[2], unsigned lane) {
  if (m->index == VECTOR_NONE) {
    hg_a64_move_imm(&e->a, 0, 0);
    return;
  }
  int is_64 = hg_neon_is_64(e, m->index);
  unsigned size = is_64 ? A64_64B : A64_32B, from = is_64 ? index[lane / 2] : index[0], at = is_64 ? lane % 2 : lane;
  if (atlas_kind((atlas_type)hg_neon_type(e, m->index)) == ATLAS_KIND_SINT)
    hg_a64_extract_signed(&e->a, size, 0, from, at);
  else hg_a64_extract(&e->a, size, 0, from, at);
}

/* Jumps to `slow` if x0 + displacement is out of bounds; else adds the displacement. x2: the extent. */
static void check_index(neon_emit *e, const neon_access *m, uint32_t slow) {
  a64_asm *a = &e->a;
  int may_wrap = m->displacement > 0 && m->index != VECTOR_NONE && hg_neon_type(e, m->index) == ATLAS_u64;
  if (may_wrap && m->is_checked) hg_a64_jump_bit(a, 1, 0, 63, slow); /* the ISA's sum does not wrap */
  if (m->displacement != 0) hg_a64_add_imm(a, 0, 0, m->displacement);
  if (!m->is_checked) return;
  hg_a64(a, A64_subs_x, 0, A64_ZR, 0, 2);
  hg_a64_jump_if(a, A64_HS, slow);
}

/* Turns x0, an index, into the number of the element of lane `lane` of the group. Changes x3. */
static void find_local_element(neon_emit *e, unsigned lane) {
  int has_tile_slots = hg_native_has_tile_slots(e->b);
  if (has_tile_slots) hg_a64_add_imm(&e->a, 3, NEON_TILE_LANE, lane);
  else if (lane != 0) hg_a64_move_imm(&e->a, 3, lane);
  hg_a64_madd(&e->a, 0, 0, NEON_SLOTS, has_tile_slots || lane != 0 ? 3 : A64_ZR);
}

/* Indices of any kind: all are checked before any element moves. */
static int scattered_access(neon_emit *e, neon_access *m) {
  hg_neon_find_base(e, m);
  for (uint32_t c = 0; c < e->copies; c++) {
    uint32_t slow = hg_neon_slow_path(e, c);
    lanes l = begin_lanes(e, m, c);
    fetch_index(e, m, c, l.index);
    if (m->is_local) hg_a64_move_imm(&e->a, NEON_SLOTS, e->b->local_lanes);
    if (m->is_checked) hg_neon_load_extent(e);
    for (int moves = !m->is_checked; moves < 2; moves++)
      for (unsigned i = 0; i < NEON_LANES; i++) {
        uint32_t next = hg_a64_new_label(&e->a);
        if (l.bits != 0) hg_a64_jump_bit(&e->a, 0, l.bits, 16 * i, next);
        lane_index(e, m, l.index, i);
        if (moves == 0) check_index(e, m, slow);
        else {
          if (m->displacement != 0) hg_a64_add_imm(&e->a, 0, 0, m->displacement);
          if (m->is_local) find_local_element(e, c * NEON_LANES + i);
          access_lane(e, m, &l, i);
        }
        hg_a64_place(&e->a, next);
      }
    end_lanes(e, m, &l, c);
    hg_neon_slow_back(e);
  }
  return 1;
}

/* ---- [x + lane] -------------------------------------------------------------------------------------------------- */

/* The tail, masked stores, and atomics: one by one. x0: the lane's index. */
static void lane_by_lane(neon_emit *e, neon_access *m, uint32_t c) {
  a64_asm *a = &e->a;
  uint32_t slow = hg_neon_slow_path(e, c);
  lanes l = begin_lanes(e, m, c);
  int is_checked = m->is_checked && e->is_tail;
  if (is_checked) hg_neon_load_extent(e);
  for (int moves = !is_checked; moves < 2; moves++)
    for (unsigned i = 0; i < NEON_LANES; i++) {
      uint32_t next = hg_a64_new_label(a);
      if (l.bits != 0) hg_a64_jump_bit(a, 0, l.bits, 16 * i, next);
      hg_a64_add_imm(a, 0, NEON_LANE, m->displacement + (int64_t)(c * NEON_LANES + i));
      if (moves == 0) {
        hg_a64(a, A64_subs_x, 0, A64_ZR, 0, 2);
        hg_a64_jump_if(a, A64_HS, slow);
      } else access_lane(e, m, &l, i);
      hg_a64_place(a, next);
    }
  end_lanes(e, m, &l, c);
  hg_neon_slow_back(e);
}

/* Moves vectors of 32- or 64-bit lanes in pairs where the offset can be encoded. `offset`: of the first copy. */
static void move_all(neon_emit *e, neon_access *m, int64_t offset) {
  uint32_t parts = m->log == 3 ? 2 : 1, pieces = e->copies * parts;
  for (uint32_t k = 0; k < pieces; k++, offset += NEON_VECTOR_BYTES) {
    uint32_t c = k / parts, p = k % parts, next_c = (k + 1) / parts, next_p = (k + 1) % parts;
    int is_pair = k + 1 < pieces && offset % NEON_VECTOR_BYTES == 0 && offset >= -1024 && offset < 1024;
    if (m->is_store) {
      unsigned from = hg_neon_source(e, m->value, c, p, hg_neon_scratch(e, 0));
      if (is_pair)
        hg_a64_store_pair(&e->a, 1, from, hg_neon_source(e, m->value, next_c, next_p, hg_neon_scratch(e, 1)), RUN,
                          (int)offset);
      else hg_a64_memory(&e->a, A64_str_q, from, RUN, offset);
    } else {
      unsigned d = hg_neon_result_register(e, c, p), next = is_pair ? hg_neon_result_register(e, next_c, next_p) : d;
      is_pair = next != d;
      if (is_pair) hg_a64_load_pair(&e->a, 1, d, next, RUN, (int)offset);
      else hg_a64_memory(&e->a, A64_ldr_q, d, RUN, offset);
      hg_neon_set_result(e, c, p, d);
      if (is_pair) hg_neon_set_result(e, next_c, next_p, next);
    }
    if (is_pair) k++, offset += NEON_VECTOR_BYTES;
  }
}

/* Jumps to `partly` unless the tail is a full vector and in bounds. */
static void check_whole(neon_emit *e, const neon_access *m, uint32_t partly) {
  a64_asm *a = &e->a;
  hg_a64_memory(a, A64_ldr_x, 0, A64_SP, offsetof(native_frame, count));
  hg_a64_compare_imm(a, 0, NEON_LANES);
  hg_a64_jump_if(a, A64_NE, partly);
  if (!m->is_checked) return;
  hg_a64_add_imm(a, 0, NEON_LANE, m->displacement);
  if (m->displacement < 0) hg_a64_jump_bit(a, 1, 0, 63, partly);
  hg_neon_load_extent(e);
  hg_a64_add_imm(a, 0, 0, NEON_LANES);
  hg_a64(a, A64_subs_x, 0, A64_ZR, 0, 2);
  hg_a64_jump_if(a, A64_HI, partly);
}

static int lane_access(neon_emit *e, neon_access *m) {
  int is_masked = m->is_atomic || (m->is_store && (e->insn->mask != VECTOR_ALL || e->b->vector->loses_lanes));
  uint32_t partly = hg_a64_new_label(&e->a), done = hg_a64_new_label(&e->a);
  hg_neon_find_base(e, m);
  if (!is_masked && e->is_tail) check_whole(e, m, partly);
  if (!is_masked) hg_a64_add_shifted(&e->a, RUN, m->base, NEON_LANE, m->log);
  if (!is_masked && m->log >= 2) move_all(e, m, m->displacement * (INT64_C(1) << m->log));
  for (uint32_t c = 0; c < e->copies; c++) {
    int64_t offset = (m->displacement + (int64_t)(c * NEON_LANES)) * (INT64_C(1) << m->log);
    if (is_masked) lane_by_lane(e, m, c);
    else if (m->log >= 2) break;
    else if (m->is_store) store_run(e, m, offset, c);
    else load_run(e, m, offset, c);
  }
  if (!is_masked && e->is_tail) {
    hg_a64_jump(&e->a, done);
    hg_a64_place(&e->a, partly);
    lane_by_lane(e, m, 0);
  }
  hg_a64_place(&e->a, done);
  return 1;
}

/* ---- one element for all lanes ----------------------------------------------------------------------------------- */

static void broadcast_element(neon_emit *e, const neon_access *m, unsigned to) {
  static const a64_memory_op zero[2] = {A64_ldrb_w, A64_ldrh_w}, sign[2] = {A64_ldrsb_x, A64_ldrsh_x};
  int is_signed = atlas_kind((atlas_type)m->type) == ATLAS_KIND_SINT;
  if (m->log >= 2) {
    hg_a64_add_shifted(&e->a, 1, m->base, 0, m->log);
    hg_a64_load_all(&e->a, m->log, to, 1);
    return;
  }
  hg_a64_indexed(&e->a, is_signed ? sign[m->log] : zero[m->log], 1, m->base, 0, m->log > 0);
  hg_a64_dup(&e->a, A64_32B, to, 1);
  hg_neon_normalise_bool(e, m, to);
}

static int is_uniform_index(const neon_emit *e, const neon_access *m) {
  const vector_reg *reg = vector_reg_at(e->b->vector, m->index);
  return reg->kind == VECTOR_VARIES ? native_location_of(e->b, m->index)->is_uniform : !hg_native_is_lane_number(reg);
}

/* C does the access if the index is out of bounds. It may be garbage if no lane participates; a load in bounds that no
 * lane needs is harmless. */
static int same_access(neon_emit *e, neon_access *m) {
  int is_uniform = m->index == VECTOR_NONE || is_uniform_index(e, m);
  if (m->is_store || !is_uniform || (m->index == VECTOR_NONE && m->displacement < 0)) return 0;
  if (e->insn->mask != VECTOR_ALL && !(e->insn->symbol & SSA_LIBRARY)) m->is_checked = 1;
  hg_neon_find_base(e, m);
  uint32_t slow = hg_neon_slow_path(e, NEON_ALL_COPIES);
  if (m->is_checked) hg_neon_load_extent(e);
  unsigned index[2];
  fetch_index(e, m, 0, index);
  lane_index(e, m, index, 0);
  check_index(e, m, slow);
  unsigned value = hg_neon_scratch(e, 0);
  broadcast_element(e, m, value);
  for (uint32_t c = 0; c < hg_neon_copies(e, e->insn->d); c++)
    for (uint32_t p = 0; p < hg_neon_parts(e, e->insn->d); p++) hg_neon_set_result(e, c, p, value);
  hg_neon_slow_back(e);
  return 1;
}

/* ---- indices that count up --------------------------------------------------------------------------------------- */

/* Loads or stores full vectors if the copy's first and last index are in bounds and differ by the number of lanes less
 * one; else C does the access. */
static int contiguous_access(neon_emit *e, neon_access *m) {
  a64_asm *a = &e->a;
  int is_masked = e->is_tail || (m->is_store && (e->insn->mask != VECTOR_ALL || e->b->vector->loses_lanes));
  if (is_masked) return 0;
  if (e->insn->mask != VECTOR_ALL && !(e->insn->symbol & SSA_LIBRARY)) m->is_checked = 1; /* inactive lanes: garbage */
  hg_neon_find_base(e, m);
  for (uint32_t c = 0; c < e->copies; c++) {
    uint32_t slow = hg_neon_slow_path(e, c);
    unsigned index[2];
    fetch_index(e, m, c, index);
    if (m->is_checked) hg_neon_load_extent(e);
    lane_index(e, m, index, NEON_LANES - 1);
    check_index(e, m, slow);
    hg_a64_move(a, 3, 0);
    lane_index(e, m, index, 0);
    check_index(e, m, slow);
    hg_a64(a, A64_sub_x, 0, 3, 3, 0);
    hg_a64_compare_imm(a, 3, NEON_LANES - 1);
    hg_a64_jump_if(a, A64_NE, slow);
    hg_a64_add_shifted(a, RUN, m->base, 0, m->log);
    if (m->is_store) store_run(e, m, 0, c);
    else load_run(e, m, 0, c);
    hg_neon_slow_back(e);
  }
  return 1;
}

/* ---- local arrays ------------------------------------------------------------------------------------------------ */

/* A masked store blends the new elements with the old: no other lane writes them. */
static void store_local(neon_emit *e, const neon_access *m, int64_t offset, uint32_t copy) {
  unsigned old = hg_neon_scratch(e, 2);
  int mask = hg_neon_mask(e, copy, hg_neon_scratch(e, 4));
  if (mask < 0) {
    store_run(e, m, offset, copy);
    return;
  }
  for (uint32_t p = 0; p < (m->log == 3 ? 2u : 1u); p++, offset += NEON_VECTOR_BYTES) {
    unsigned part = (unsigned)mask, from = hg_neon_source(e, m->value, copy, p, hg_neon_scratch(e, 0));
    if (m->log == 3) part = hg_neon_mask_part(e, part, p, hg_neon_scratch(e, 5));
    hg_neon_load_elements(e, m->type, old, RUN, offset);
    hg_a64(&e->a, A64_bit, 0, old, from, part);
    hg_neon_store_elements(e, m->type, old, RUN, offset, hg_neon_scratch(e, 1));
  }
}

/* One index for all lanes: their elements are consecutive. */
static int local_row(neon_emit *e, neon_access *m) {
  int takes_all = e->insn->mask == VECTOR_ALL && !e->b->vector->loses_lanes;
  unsigned index[2];
  hg_neon_find_base(e, m);
  uint32_t slow = hg_neon_slow_path(e, NEON_ALL_COPIES);
  if (!takes_all) m->is_checked = 1; /* inactive lanes may hold garbage */
  if (m->is_checked) hg_neon_load_extent(e);
  fetch_index(e, m, 0, index);
  lane_index(e, m, index, 0);
  check_index(e, m, slow);
  hg_a64_move_imm(&e->a, NEON_SLOTS, e->b->local_lanes);
  find_local_element(e, 0);
  hg_a64_add_shifted(&e->a, RUN, m->base, 0, m->log);
  for (uint32_t c = 0; c < e->copies; c++) {
    int64_t offset = (int64_t)(c * NEON_LANES) << m->log;
    if (m->is_store) store_local(e, m, offset, c);
    else load_run(e, m, offset, c);
  }
  hg_neon_slow_back(e);
  return 1;
}

static int local_access(neon_emit *e, neon_access *m) {
  int is_row = m->index == VECTOR_NONE || is_uniform_index(e, m);
  if (m->index == VECTOR_NONE && m->displacement < 0) return 0;
  return is_row ? local_row(e, m) : scattered_access(e, m);
}

void hg_neon_clear_local(neon_emit *e) {
  enum { ROUND_BYTES = 64 }; /* the array has at least as many bytes, and a multiple of it */
  a64_asm *a = &e->a;
  uint32_t first = 0, again = hg_a64_new_label(a), bytes = e->b->local_bytes * e->b->local_lanes;
  unsigned zero = hg_neon_scratch(e, 0);
  if (bytes == 0 || !e->b->vector->sees_local_zeros || hg_native_has_tile_slots(e->b)) return;
  while (!(e->b->vector->locals[first / 64] >> first % 64 & 1)) first++;
  hg_a64_memory(a, A64_ldr_x, 0, NEON_CONTEXT, (int64_t)hg_neon_place_offset(first, offsetof(native_place, memory)));
  hg_a64_move_imm(a, 1, bytes / ROUND_BYTES);
  hg_a64_constant(a, A64_32B, zero, 0);
  hg_a64_place(a, again);
  for (int at = 0; at < ROUND_BYTES; at += 2 * NEON_VECTOR_BYTES) hg_a64_store_pair(a, 1, zero, zero, 0, at);
  hg_a64_add_imm(a, 0, 0, ROUND_BYTES);
  hg_a64_add_imm(a, 1, 1, -1);
  hg_a64_jump_not_zero(a, 1, again);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

int hg_neon_memory(neon_emit *e) {
  neon_access m;
  if (!hg_neon_describe_access(e, &m)) return 0;
  if (m.is_atomic && e->insn->d != VECTOR_NONE && native_location_of(e->b, e->insn->d)->is_uniform) return 0;
  if (m.is_local) return local_access(e, &m);
  if (e->insn->flags & VECTOR_LANE) return lane_access(e, &m);
  if (m.is_atomic) return scattered_access(e, &m);
  if (m.index == VECTOR_NONE || e->insn->flags & VECTOR_SAME) {
    if (same_access(e, &m)) return 1;
    if (!m.is_store && (m.index == VECTOR_NONE || native_location_of(e->b, e->insn->d)->is_uniform)) return 0;
  }
  if (e->insn->flags & VECTOR_CONTIGUOUS && contiguous_access(e, &m)) return 1;
  return scattered_access(e, &m);
}
