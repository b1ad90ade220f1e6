/* native_wide_memory.c - what shared memory holds while a block runs as straight code (native_wide.c): of each element
 * the register and the lane of it that has been stored there, as long as that is known.
 *
 * A load of what lanes of one register hold is that register, or a permutation of it. Other loads read memory. A store
 * that nobody reads in memory goes in the end (WIDE_UNREAD): shared memory is gone with its block. */
#include "backend/cpu/native_wide.h"
#include "backend/cpu/vector_lower.h"

#include "atlas/arith.h"

typedef struct access {
  const vector_insn *insn;
  uint32_t slice, symbol, count;      /* elements of the symbol */
  uint32_t active;                    /* lanes that take part: bits */
  int is_store;
  uint32_t element[NATIVE_MOST_LANES]; /* of each lane that does */
} access;

static wide_cell *cell_at(const wide *w, const access *a, uint32_t lane) {
  return (wide_cell *)w->cells.data + w->first_cell[a->symbol] + a->element[lane];
}

static int is_active(const access *a, uint32_t lane) { return a->active >> lane & 1; }

void hg_wide_begin_memory(wide *w) {
  const wide_cell cell = {VECTOR_NONE, 0, VECTOR_NONE};
  for (uint32_t i = 0; i < w->program->symbols.count; i++) {
    const atlas_symbol *symbol = atlas_symbol_at(w->program, i);
    w->first_cell[i] = VECTOR_NONE;
    if (symbol->kind != ATLAS_SYMBOL_SHARED || atlas_bytes((atlas_type)symbol->type) != 4) continue;
    if (symbol->count + w->cells.count > WIDE_MOST_CELLS) continue;
    w->first_cell[i] = (uint32_t)w->cells.count;
    for (uint64_t k = 0; k < symbol->count && !w->no_memory; k++)
      if (hg_array_append(&w->to->allocator, &w->cells, &cell, 1) == NULL) w->no_memory = 1;
  }
}

/* ---- which elements ---------------------------------------------------------------------------------------------- */

/* 1 if all elements are known and exist. */
static int find_elements(wide *w, access *a) {
  const vector_insn *insn = a->insn;
  wide_mask mask = hg_wide_mask(w, insn->mask, a->slice);
  uint32_t index = insn->mode == ATLAS_ADDRESS_INDEXED ? insn->s[0] : VECTOR_NONE;
  if ((mask == WIDE_UNKNOWN && a->is_store) || insn->flags & VECTOR_LANE) return 0;
  if (index != VECTOR_NONE && !hg_wide_is_known(w, index, a->slice)) return 0;
  for (uint32_t i = 0; i < w->lanes; i++) {
    uint64_t at = insn->bits;
    if (mask != WIDE_UNKNOWN && hg_wide_bits(w, insn->mask, a->slice, i) == 0) continue;
    if (index != VECTOR_NONE)
      at = (uint64_t)atlas_index_sum((atlas_type)vector_reg_at(w->from, index)->type,
                                     hg_wide_bits(w, index, a->slice, i), (int64_t)insn->bits);
    if (at >= a->count) return 0;
    a->element[i] = (uint32_t)at;
    a->active |= 1u << i;
  }
  return 1;
}

static uint32_t first_lane(const access *a) {
  uint32_t lane = 0;
  while (!is_active(a, lane)) lane++;
  return lane;
}

/* 1 if no two lanes have the same element. */
static int are_different(const wide *w, const access *a) {
  for (uint32_t i = 0; i < w->lanes; i++)
    for (uint32_t k = 0; k < i; k++)
      if (is_active(a, i) && is_active(a, k) && a->element[i] == a->element[k]) return 0;
  return 1;
}

/* The access to memory, with an address as plain as can be. */
static uint32_t put_access(wide *w, const access *a) {
  vector_insn insn = *a->insn;
  uint32_t first = first_lane(a), same = 0, contiguous = 0, count = 0;
  for (uint32_t i = 0; i < w->lanes; i++) {
    if (!is_active(a, i)) continue;
    count++;
    same += a->element[i] == a->element[first];
    contiguous += a->element[i] - i == a->element[first] - first;
  }
  insn.flags |= VECTOR_IN_BOUNDS;
  uint32_t value = insn.s[insn.mode == ATLAS_ADDRESS_INDEXED];
  if (same == count && !a->is_store) {
    insn.mode = ATLAS_ADDRESS_UNIFORM;
    insn.flags = (insn.flags & ~(uint32_t)VECTOR_CONTIGUOUS) | VECTOR_SAME;
    insn.s[0] = VECTOR_NONE;
    insn.bits = a->element[first];
  } else if (contiguous == count && same < count) {
    insn.mode = ATLAS_ADDRESS_INDEXED;
    insn.flags = (insn.flags & ~(uint32_t)VECTOR_SAME) | VECTOR_CONTIGUOUS;
    insn.s[0] = w->blane;
    insn.s[1] = a->is_store ? value : VECTOR_NONE;
    insn.bits = (uint64_t)((int64_t)a->element[first] - (int64_t)(a->slice * w->lanes + first));
  }
  return hg_wide_copy(w, &insn, a->slice);
}

/* ---- who reads what ---------------------------------------------------------------------------------------------- */

static void read_cell(wide *w, wide_cell *cell) {
  if (cell->store != VECTOR_NONE && !w->no_memory)
    vector_insn_at(w->to, cell->store)->flags &= ~(uint32_t)WIDE_UNREAD;
}

/* Nothing is known of the array from here on. */
static void forget(wide *w, uint32_t symbol) {
  wide_cell *cells = (wide_cell *)w->cells.data + w->first_cell[symbol];
  for (uint64_t i = 0; i < atlas_symbol_at(w->program, symbol)->count && !w->no_memory; i++) {
    read_cell(w, &cells[i]);
    cells[i] = (wide_cell){VECTOR_NONE, 0, VECTOR_NONE};
  }
}

void hg_wide_forget(wide *w) {
  for (uint32_t i = 0; i < w->program->symbols.count; i++)
    if (w->first_cell[i] != VECTOR_NONE) forget(w, i);
}

static void load_memory(wide *w, const access *a) {
  for (uint32_t i = 0; i < w->lanes; i++)
    if (is_active(a, i)) read_cell(w, cell_at(w, a, i));
  put_access(w, a);
}

/* The one register that all elements are in; VECTOR_NONE. */
static uint32_t register_of(const wide *w, const access *a) {
  uint32_t reg = cell_at(w, a, first_lane(a))->reg;
  for (uint32_t i = 0; i < w->lanes; i++)
    if (is_active(a, i) && cell_at(w, a, i)->reg != reg) return VECTOR_NONE;
  return reg;
}

static void load(wide *w, const access *a) {
  const vector_insn *insn = a->insn;
  uint32_t reg = register_of(w, a), moved = 0, alike = 0, count = 0;
  uint64_t lanes = 0;
  int keeps = insn->flags & VECTOR_KEEP && hg_wide_mask(w, insn->mask, a->slice) != WIDE_ALL;
  if (reg == VECTOR_NONE || keeps) {
    load_memory(w, a);
    return;
  }
  const vector_reg *held = vector_reg_at(w->to, reg);
  int is_alike = (held->kind != VECTOR_VARIES && reg != w->blane) || held->uniform;
  for (uint32_t i = 0; i < w->lanes; i++) {
    uint64_t lane = is_active(a, i) ? cell_at(w, a, i)->lane : i;
    moved += lane != i;
    count += (uint32_t)is_active(a, i);
    alike += is_active(a, i) && lane == cell_at(w, a, first_lane(a))->lane;
    lanes |= lane << 4 * i;
  }
  if (is_alike || (moved == 0 && !vector_reg_at(w->from, insn->d)->uniform && reg != w->blane)) {
    hg_wide_set(w, insn->d, a->slice, reg);
    return;
  }
  if (reg == w->blane || vector_reg_at(w->from, insn->d)->uniform || (alike == count && count > 1)) {
    load_memory(w, a); /* one element for all lanes is as quick from there */
    return;
  }
  vector_insn pick = vector_insn_of(NATIVE_PICK, VECTOR_ALL);
  pick.type = insn->type;
  pick.slice = a->slice;
  pick.d = hg_wide_new_register(w, insn->d);
  pick.s[0] = reg;
  pick.bits = lanes;
  hg_wide_put(w, &pick);
  hg_wide_set(w, insn->d, a->slice, pick.d);
}

static void store(wide *w, const access *a) {
  uint32_t value = a->insn->s[a->insn->mode == ATLAS_ADDRESS_INDEXED];
  uint32_t at = put_access(w, a), reg = hg_wide_register(w, value, a->slice);
  if (w->no_memory) return;
  vector_insn_at(w->to, at)->flags |= WIDE_UNREAD;
  for (uint32_t i = 0; i < w->lanes; i++)
    if (is_active(a, i)) *cell_at(w, a, i) = (wide_cell){reg, i, at};
}

int hg_wide_access(wide *w, const vector_insn *insn, uint32_t slice) {
  if (insn->op < 0x100 || insn->mode > ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY) return 0;
  unsigned flags = atlas_op_lookup(insn->op)->flags;
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) || flags & ATLAS_SPACE_POOL) return 0;
  if (w->first_cell[insn->symbol] == VECTOR_NONE) return 0;
  const atlas_symbol *symbol = atlas_symbol_at(w->program, insn->symbol);
  access a = {.insn = insn, .slice = slice, .symbol = insn->symbol, .count = (uint32_t)symbol->count,
              .is_store = (flags & ATLAS_STORE) != 0};
  int is_known = !(flags & ATLAS_ATOMIC) && insn->type == symbol->type && find_elements(w, &a);
  if (!is_known || (a.is_store && !are_different(w, &a))) {
    forget(w, insn->symbol);
    return 0;
  }
  if (a.is_store) store(w, &a);
  else load(w, &a);
  return 1;
}
