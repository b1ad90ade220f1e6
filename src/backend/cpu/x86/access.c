/* access.c - an access to memory: its address, and loads and stores of vectors. */
#include "backend/cpu/engine/cpu_tuning.h"
#include "backend/cpu/x86/x86_memory.h"

#include "atlas/functions.h"

int hg_x86_has_base(const vector_insn *insn) {
  uint32_t flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) || flags & ATLAS_SPACE_POOL) return 0;
  return insn->mode <= ATLAS_ADDRESS_INDEXED && !(insn->symbol & SSA_LIBRARY);
}

unsigned hg_x86_base(x86_emit *e) {
  uint32_t symbol = e->insn->symbol;
  if (symbol & SSA_LIBRARY) {
    const atlas_symbol *table = atlas_symbol_at(&atlas_functions, symbol & ~(uint32_t)SSA_LIBRARY);
    const uint8_t *memory = (const uint8_t *)atlas_functions.constants.data + table->const_offset;
    hg_x86_move_imm64(&e->a, X86_RDX, (uint64_t)(uintptr_t)memory);
    return X86_RDX;
  }
  if (e->base_of[symbol] >= 0) return (unsigned)e->base_of[symbol];
  hg_x86_load(&e->a, 1, X86_RDX, x86_at(X86_CONTEXT, hg_x86_place_offset(symbol, offsetof(native_place, memory))));
  return X86_RDX;
}

unsigned hg_x86_short_index(x86_emit *e, uint32_t index, uint32_t copy) {
  unsigned s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  if (!hg_x86_is_64(e, index)) return hg_x86_source_reg(e, index, copy, 0, s1);
  unsigned low = hg_x86_source_reg(e, index, copy, 0, s1), high = hg_x86_source_reg(e, index, copy, 1, s2);
  if (e->width == 2) {
    hg_x86_v(e, X86_vpmovqd, low, 0, x86_reg(s1));
    hg_x86_v(e, X86_vpmovqd, high, 0, x86_reg(s2));
    hg_x86_vi(e, X86_vinserti64x4, s1, s1, x86_reg(s2), 1);
  } else {
    hg_x86_vi(e, X86_vshufps, s1, low, x86_reg(high), 0x88);
    hg_x86_vi(e, X86_vpermq_imm, s1, 0, x86_reg(s1), 0xd8);
  }
  return s1;
}

unsigned hg_x86_local_index(x86_emit *e, uint32_t index, uint32_t copy) {
  unsigned s1 = hg_x86_scratch(e, 1), from = hg_x86_short_index(e, index, copy), shift = 0;
  uint32_t lanes = e->b->local_lanes;
  while (UINT32_C(1) << shift < lanes) shift++;
  if (UINT32_C(1) << shift == lanes) hg_x86_vi(e, X86_vpslld_imm, 0, s1, x86_reg(from), shift);
  else hg_x86_v(e, X86_vpmulld, s1, from, hg_x86_constant(e, lanes, 0));
  hg_x86_v(e, X86_vpaddd, s1, s1, x86_at(X86_POOL, (int32_t)(e->pool.iota_place * 4)));
  return s1;
}

unsigned hg_x86_local_base(x86_emit *e, unsigned log_bytes) {
  unsigned base = hg_x86_base(e);
  if (!hg_native_has_tile_slots(e->b)) return base;
  hg_x86_lea(&e->a, X86_RDX, x86_indexed(base, X86_TILE_LANE, log_bytes, 0));
  return X86_RDX;
}

static void normalise_bool(x86_emit *e, const x86_access *m, unsigned reg) {
  if (m->type == ATLAS_bool) hg_x86_v(e, X86_vpminud, reg, reg, hg_x86_constant(e, 1, 0));
}

/* Loads a run: the lanes of the copy are consecutive elements from `at` on. `mask`: the lanes that take part; -1:
 * all. */
void hg_x86_load_run(x86_emit *e, const x86_access *m, x86_rm at, uint32_t copy, int mask) {
  uint32_t parts = m->bytes == 8 ? 2 : 1;
  for (uint32_t p = 0; p < parts; p++) {
    unsigned to = hg_x86_result_register(e, copy, p, hg_x86_scratch(e, 0));
    x86_rm from = at;
    from.displacement += (int32_t)(p * e->vector_bytes);
    if (p == 1 && mask >= 0)
      mask = hg_x86_mask(e, copy, (unsigned)x86_mask_scratch(e)); /* again: the result may have been computed in its
                                                                     register */
    unsigned part = mask < 0 ? 0 : (unsigned)mask;
    if (mask >= 0 && parts == 2)
      part = hg_x86_mask_part(e, (unsigned)mask, p, e->width == 2 ? 2 : hg_x86_scratch(e, 2));
    if (mask >= 0 && e->width == 1) hg_x86_v(e, parts == 2 ? X86_vpmaskload64 : X86_vpmaskload, to, part, from);
    else hg_x86_load_elements(e, m->type, to, from, part);
    normalise_bool(e, m, to);
    hg_x86_set_result(e, copy, p, to);
  }
}

/* On some processors a masked AVX2 store takes as long as a dozen others. In a row's tail, and in the lanes behind full
 * groups, most vectors have all of their lanes or none, and the same ones in each row or round: so a test decides
 * whether a vector needs the mask. */
static void store_tail(x86_emit *e, uint16_t op, unsigned from, unsigned mask, x86_rm to) {
  enum { ALL = 0xff };
  uint32_t is_all = hg_x86_new_label(&e->a), done = hg_x86_new_label(&e->a);
  hg_x86_v(e, X86_vmovmskps, X86_RCX, 0, x86_reg(mask));
  hg_x86_alu_imm(&e->a, X86_CMP, 0, x86_reg(X86_RCX), ALL);
  hg_x86_jump_if(&e->a, X86_EQUAL, is_all);
  hg_x86_test(&e->a, 0, X86_RCX, X86_RCX);
  hg_x86_jump_if(&e->a, X86_EQUAL, done);
  hg_x86_v(e, op, from, mask, to);
  hg_x86_jump(&e->a, done);
  hg_x86_place(&e->a, is_all);
  hg_x86_v(e, X86_vstore, from, 0, to);
  hg_x86_place(&e->a, done);
}

void hg_x86_store_run(x86_emit *e, const x86_access *m, x86_rm at, uint32_t copy, int mask) {
  uint32_t parts = m->bytes == 8 ? 2 : 1;
  int is_lane = (e->insn->flags & VECTOR_LANE) != 0; /* rcx holds no index here */
  for (uint32_t p = 0; p < parts; p++) {
    unsigned from = hg_x86_source_reg(e, m->value, copy, p, hg_x86_scratch(e, 0));
    x86_rm to = at;
    to.displacement += (int32_t)(p * e->vector_bytes);
    unsigned part = mask < 0 ? 0 : (unsigned)mask;
    if (mask >= 0 && parts == 2)
      part = hg_x86_mask_part(e, (unsigned)mask, p, e->width == 2 ? 2 : hg_x86_scratch(e, 2));
    if (e->is_stream && m->bytes >= 4 && mask < 0 && e->insn->flags & VECTOR_LANE)
      hg_x86_v(e, X86_vstream, from, 0, to);
    else if (mask >= 0 && e->width == 1 && (e->insn->flags & NATIVE_TAIL || (is_lane && e->is_tail && e->has_loops)))
      store_tail(e, parts == 2 ? X86_vpmaskstore64 : X86_vpmaskstore, from, part, to);
    else if (mask >= 0 && e->width == 1) hg_x86_v(e, parts == 2 ? X86_vpmaskstore64 : X86_vpmaskstore, from, part, to);
    else hg_x86_store_elements(e, m->type, to, from, part, hg_x86_scratch(e, 1));
  }
}

static void update_run(x86_emit *e, const x86_access *m, x86_rm at, uint32_t copy, int mask) {
  unsigned value = hg_x86_source_reg(e, m->value, copy, 0, hg_x86_scratch(e, 0)), now = hg_x86_scratch(e, 2);
  unsigned part = mask < 0 ? 0 : (unsigned)mask;
  int is_masked_vex = mask >= 0 && e->width == 1;
  if (is_masked_vex) hg_x86_v(e, X86_vpmaskload, now, part, at);
  else hg_x86_load_elements(e, m->type, now, at, part);
  hg_x86_v(e,
           m->update == ATLAS_OP_atom_add   ? X86_vpaddd
           : m->update == ATLAS_OP_atom_and ? X86_vpandd
           : m->update == ATLAS_OP_atom_or  ? X86_vpord
                                            : X86_vpxord,
           now, now, x86_reg(value));
  if (is_masked_vex) hg_x86_v(e, X86_vpmaskstore, now, part, at);
  else hg_x86_store_elements(e, m->type, at, now, part, hg_x86_scratch(e, 3));
}

void hg_x86_access_run(x86_emit *e, const x86_access *m, x86_rm at, uint32_t copy, int mask) {
  if (m->update != 0) update_run(e, m, at, copy, mask);
  else if (m->is_store) hg_x86_store_run(e, m, at, copy, mask);
  else hg_x86_load_run(e, m, at, copy, mask);
}

/* Packs two vectors of 32-bit elements into one of 16-bit elements in scratch `at`, with scratch `at` + 1 changed too:
 * the lower halves of both stand side by side, and so do the upper ones. The values are in their type's range, so
 * nothing saturates. */
static unsigned pack_pair(x86_emit *e, const x86_access *m, uint32_t copy, unsigned at, int is_signed) {
  unsigned low = hg_x86_source_reg(e, m->value, copy, 0, hg_x86_scratch(e, at));
  unsigned high = hg_x86_source_reg(e, m->value, copy + 1, 0, hg_x86_scratch(e, at + 1));
  hg_x86_v(e, is_signed ? X86_vpackssdw : X86_vpackusdw, hg_x86_scratch(e, at), low, x86_reg(high));
  return hg_x86_scratch(e, at);
}

uint32_t hg_x86_store_packed(x86_emit *e, const x86_access *m, x86_rm at, uint32_t copy) {
  enum { MIDDLE_EXCHANGED = 0xd8, FIRST_AND_THIRD = 0x08 }; /* of four */
  uint32_t left = e->copies - copy, copies = m->bytes == 1 && left >= 4 ? 4 : 2;
  int is_signed = atlas_kind((atlas_type)m->type) == ATLAS_KIND_SINT, is_half = m->bytes == 1 && copies == 2;
  if (e->width != 1 || m->bytes > 2 || left < copies) return 0;
  unsigned to = pack_pair(e, m, copy, 0, is_signed);
  if (m->bytes == 1) {
    unsigned other = copies == 4 ? pack_pair(e, m, copy + 2, 2, is_signed) : to;
    hg_x86_v(e, is_signed ? X86_vpacksswb : X86_vpackuswb, to, to, x86_reg(other));
  }
  hg_x86_vi(e, X86_vpermq_imm, to, 0, x86_reg(to), is_half ? FIRST_AND_THIRD : MIDDLE_EXCHANGED);
  if (m->bytes == 1) hg_x86_vi(e, X86_vpshufd, to, 0, x86_reg(to), MIDDLE_EXCHANGED);
  if (is_half) hg_x86_x(e, X86_vstore, to, 0, at);
  else hg_x86_v(e, X86_vstore, to, 0, at);
  return copies;
}

void hg_x86_broadcast_element(x86_emit *e, const x86_access *m, x86_rm at, unsigned to) {
  if (m->bytes == 8) hg_x86_v(e, e->width == 2 ? X86_vpbroadcastq : X86_vpbroadcastq_vex, to, 0, at);
  else if (m->bytes == 4) hg_x86_v(e, X86_vpbroadcastd, to, 0, at);
  else {
    hg_x86_load_narrow(&e->a, m->bytes, m->type == ATLAS_i8 || m->type == ATLAS_i16, X86_RAX, at);
    hg_x86_x(e, X86_vmovd_from_g, to, 0, x86_reg(X86_RAX));
    hg_x86_v(e, X86_vpbroadcastd, to, 0, x86_reg(to));
    normalise_bool(e, m, to);
  }
}

/* Jumps to `out` unless the indices from `index` to `index` + `more` are in bounds. A 32-bit index is zero-extended, so
 * a negative one, or one that may wrap, exceeds the limit. */
void hg_x86_check_number(x86_emit *e, const x86_access *m, unsigned index, uint32_t more, unsigned scratch,
                         uint32_t out) {
  x86_asm *a = &e->a;
  uint8_t type = hg_x86_type(e, m->index);
  int is_64 = hg_x86_is_64(e, m->index), is_unsigned = atlas_kind((atlas_type)type) == ATLAS_KIND_UINT;
  int32_t last = (int32_t)m->displacement + (int32_t)more;
  x86_rm bound = is_64 || (is_unsigned && more == 0) ? m->extent : m->limit;
  if (is_64 || last == 0) {
    hg_x86_alu_rm(a, X86_CMP, 1, index, bound);
    hg_x86_jump_if(a, X86_ABOVE_EQUAL, out);
  }
  if (m->displacement < 0) {
    hg_x86_alu_imm(a, X86_CMP, 1, x86_reg(index), (int32_t)-m->displacement);
    hg_x86_jump_if(a, X86_BELOW, out);
  }
  if (last == 0 && m->displacement == 0) return;
  hg_x86_lea(a, scratch, x86_at(index, last));
  hg_x86_alu_rm(a, X86_CMP, 1, scratch, bound);
  hg_x86_jump_if(a, X86_ABOVE_EQUAL, out);
}

void hg_x86_first_bits(x86_emit *e, uint32_t index, uint32_t copy) {
  int is_64 = hg_x86_is_64(e, index);
  x86_rm from = hg_x86_source(e, index, copy, 0, hg_x86_scratch(e, 1));
  from.broadcast = 0;
  if (from.is_memory) hg_x86_load(&e->a, is_64, X86_RAX, from);
  else hg_x86_x(e, is_64 ? X86_vmovq_to_g : X86_vmovd_to_g, from.reg, 0, x86_reg(X86_RAX));
}

void hg_x86_first_index(x86_emit *e, uint32_t index, uint32_t copy) {
  int is_signed = atlas_kind((atlas_type)hg_x86_type(e, index)) == ATLAS_KIND_SINT;
  hg_x86_first_bits(e, index, copy);
  if (!hg_x86_is_64(e, index) && is_signed) hg_x86_load_sign32(&e->a, X86_RAX, x86_reg(X86_RAX));
}

void hg_x86_add_displacement(x86_emit *e, const x86_access *m, uint32_t slow) {
  if (m->displacement == 0) return;
  hg_x86_alu_imm(&e->a, X86_ADD, 1, x86_reg(X86_RAX), (int32_t)m->displacement);
  if (m->displacement > 0 && hg_x86_type(e, m->index) == ATLAS_u64) hg_x86_jump_if(&e->a, X86_CARRY, slow);
}

/* ---- indices by a block's lanes ---------------------------------------------------------------------------------- */

/* 1 if lane 0 of a u32 holds the value of all lanes. */
static int is_one_number(const x86_emit *e, uint32_t reg) {
  if (reg >= VECTOR_ALL || hg_x86_type(e, reg) != ATLAS_u32) return 0;
  return hg_x86_is_in_memory(e, reg) ||
         (vector_reg_at(e->b->vector, reg)->kind == VECTOR_VARIES && native_location_of(e->b, reg)->is_uniform);
}

/* The instruction that computed an index which has not changed since; NULL: not found. In straight-line code each
 * register is written once. */
static const vector_insn *maker_of(const x86_emit *e, uint32_t index) {
  const hg_vector *v = e->b->vector;
  if (e->b->slices > 0) {
    const vector_insn *made = vector_insn_at(v, vector_reg_at(v, index)->first);
    int is_there = vector_reg_at(v, index)->first < e->index && made->d == index;
    return is_there && !hg_straight_is_loop_carried(v, index) ? made : NULL;
  }
  for (uint32_t i = e->index; i-- > e->region_first && e->index - i <= CPU_OFFSET_LIFE;) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (insn->op == VECTOR_LABEL) return NULL;
    if (insn->d == index) return insn;
  }
  return NULL;
}

int hg_x86_is_kept(const x86_emit *e, const vector_insn *since, uint32_t reg) {
  const hg_vector *v = e->b->vector;
  if (vector_reg_at(v, reg)->kind != VECTOR_VARIES) return 1;
  if (vector_reg_at(v, reg)->last < e->index) return 0;
  if (e->b->slices > 0 && !hg_straight_is_loop_carried(v, reg)) return 1;
  for (const vector_insn *insn = since; insn < vector_insn_at(v, e->index); insn++)
    if (insn->d == reg) return 0;
  return 1;
}

uint32_t hg_x86_added_to_tile_lane(const x86_emit *e, uint32_t index) {
  if (vector_reg_at(e->b->vector, index)->kind != VECTOR_VARIES) return VECTOR_NONE;
  const vector_insn *made = maker_of(e, index);
  if (made == NULL || made->flags & VECTOR_KEEP) return VECTOR_NONE;
  uint32_t added = hg_native_added_to_lane(e->b->vector, made);
  return added != VECTOR_NONE && is_one_number(e, added) && hg_x86_is_kept(e, made, added) ? added : VECTOR_NONE;
}
