/* straight_memory.c - store-to-load forwarding of shared memory while straight-line code is written (straight.c): it
 * tracks for each element the register, and its lane, that was stored last.
 *
 * A load of the lanes of one register becomes that register, or a permutation of it. Other loads read memory. A store
 * that no load reads from memory is removed later (STRAIGHT_UNREAD), since shared memory does not outlive its block. */
#include "backend/cpu/native/straight.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "vector/lower.h"

#include "atlas/arith.h"

typedef struct access {
  const vector_insn *insn;
  uint32_t slice, symbol, extent; /* extent: the elements of the symbol */
  int is_store;
  uint32_t count;                       /* how many lanes take part */
  uint32_t lane[STRAIGHT_MOST_LANES];       /* their numbers */
  uint32_t element[STRAIGHT_MOST_LANES];    /* the element of each of them */
  uint32_t is_same, is_contiguous;      /* 1: all lanes access the first one's element; the lanes access consecutive
                                           elements from that one on */
} access;

static straight_cell *cells_of(const straight *w, uint32_t symbol) {
  return (straight_cell *)w->cells.data + w->first_cell[symbol];
}

void hg_straight_begin_memory(straight *w) {
  for (uint32_t i = 0; i < w->program->symbols.count; i++) {
    const atlas_symbol *symbol = atlas_symbol_at(w->program, i);
    w->first_cell[i] = VECTOR_NONE;
    if (symbol->kind != ATLAS_SYMBOL_SHARED || atlas_bytes((atlas_type)symbol->type) != 4) continue;
    if (symbol->count + w->cells.count > CPU_STRAIGHT_CELLS) continue;
    w->first_cell[i] = (uint32_t)w->cells.count;
    straight_cell *cells = hg_array_append(&w->to->allocator, &w->cells, NULL, (size_t)symbol->count);
    if (cells == NULL) w->no_memory = 1;
    for (uint64_t k = 0; k < symbol->count && !w->no_memory; k++)
      cells[k] = (straight_cell){VECTOR_NONE, 0, VECTOR_NONE};
  }
}

/* ---- which elements ---------------------------------------------------------------------------------------------- */

/* 1 if all elements are known and in bounds. */
static int find_elements(straight *w, access *a) {
  const vector_insn *insn = a->insn;
  int is_indexed = insn->mode == ATLAS_ADDRESS_INDEXED;
  const uint64_t *mask = hg_straight_bits(w, insn->mask, a->slice);
  const uint64_t *index = is_indexed ? hg_straight_bits(w, insn->s[0], a->slice) : NULL;
  atlas_type type = is_indexed ? (atlas_type)vector_reg_at(w->from, insn->s[0])->type : ATLAS_u32;
  if ((mask == NULL && a->is_store) || (index == NULL && is_indexed) || insn->flags & VECTOR_LANE) return 0;
  for (uint32_t i = 0; i < w->lanes; i++) {
    if (mask != NULL && mask[i] == 0) continue;
    uint64_t at = is_indexed ? index[i] + insn->bits : insn->bits; /* only 64-bit indices can wrap into range */
    if (type != ATLAS_u32) at = (uint64_t)atlas_index_sum(type, index[i], (int64_t)insn->bits);
    if (at >= a->extent) return 0;
    a->lane[a->count] = i;
    a->element[a->count++] = (uint32_t)at;
  }
  a->is_same = a->is_contiguous = 1;
  for (uint32_t k = 1; k < a->count; k++) {
    a->is_same &= a->element[k] == a->element[0];
    a->is_contiguous &= a->element[k] - a->lane[k] == a->element[0] - a->lane[0];
  }
  return 1;
}

/* 1 if no two lanes have the same element. */
static int are_different(const access *a) {
  for (uint32_t i = 0; i < a->count && !a->is_contiguous; i++)
    for (uint32_t k = 0; k < i; k++)
      if (a->element[i] == a->element[k]) return 0;
  return 1;
}

/* Appends the access to memory, by the simplest address. */
static uint32_t append_access(straight *w, const access *a) {
  vector_insn insn = *a->insn;
  uint32_t value = insn.s[insn.mode == ATLAS_ADDRESS_INDEXED];
  insn.flags |= VECTOR_IN_BOUNDS;
  if (a->is_same && !a->is_store) {
    insn.mode = ATLAS_ADDRESS_UNIFORM;
    insn.flags = (insn.flags & ~(uint32_t)VECTOR_CONTIGUOUS) | VECTOR_SAME;
    insn.s[0] = VECTOR_NONE;
    insn.bits = a->element[0];
  } else if (a->is_contiguous && !a->is_same) {
    insn.mode = ATLAS_ADDRESS_INDEXED;
    insn.flags = (insn.flags & ~(uint32_t)VECTOR_SAME) | VECTOR_CONTIGUOUS;
    insn.s[0] = w->blane;
    insn.s[1] = a->is_store ? value : VECTOR_NONE;
    insn.bits = (uint64_t)((int64_t)a->element[0] - (int64_t)(a->slice * w->lanes + a->lane[0]));
  }
  return hg_straight_append_renamed(w, &insn, a->slice);
}

/* ---- who reads what ---------------------------------------------------------------------------------------------- */

static void note_read(straight *w, straight_cell *cell) {
  if (cell->store != VECTOR_NONE && !w->no_memory)
    vector_insn_at(w->to, cell->store)->flags &= ~(uint32_t)STRAIGHT_UNREAD;
}

/* Forgets what is known of the array. */
static void forget(straight *w, uint32_t symbol) {
  straight_cell *cells = cells_of(w, symbol);
  for (uint64_t i = 0; i < atlas_symbol_at(w->program, symbol)->count && !w->no_memory; i++) {
    note_read(w, &cells[i]);
    cells[i] = (straight_cell){VECTOR_NONE, 0, VECTOR_NONE};
  }
}

void hg_straight_forget(straight *w) {
  for (uint32_t i = 0; i < w->program->symbols.count; i++)
    if (w->first_cell[i] != VECTOR_NONE) forget(w, i);
}

static void append_load(straight *w, const access *a) {
  for (uint32_t k = 0; k < a->count; k++) note_read(w, &cells_of(w, a->symbol)[a->element[k]]);
  append_access(w, a);
}

/* The register that holds all the elements, and which of its lanes; VECTOR_NONE: there is none. */
static uint32_t common_register(const straight *w, const access *a, uint32_t *lane) {
  const straight_cell *cells = cells_of(w, a->symbol);
  uint32_t reg = cells[a->element[0]].reg;
  for (uint32_t k = 0; k < a->count; k++) {
    if (cells[a->element[k]].reg != reg) return VECTOR_NONE;
    lane[k] = cells[a->element[k]].lane;
  }
  return reg;
}

/* Lanes that do not take part keep their value. */
static void append_permutation(straight *w, const access *a, uint32_t reg, const uint32_t *lane) {
  vector_insn insn = vector_insn_of(NATIVE_PERMUTE, VECTOR_ALL);
  insn.type = a->insn->type;
  insn.slice = a->slice;
  insn.d = hg_straight_new_register(w, a->insn->d);
  insn.s[0] = reg;
  for (uint32_t i = 0; i < w->lanes; i++) insn.bits |= (uint64_t)i << 4 * i;
  for (uint32_t k = 0; k < a->count; k++) insn.bits ^= (uint64_t)(a->lane[k] ^ lane[k]) << 4 * a->lane[k];
  hg_straight_append(w, &insn);
  hg_straight_set(w, a->insn->d, a->slice, insn.d);
}

static void write_load(straight *w, const access *a) {
  const vector_insn *insn = a->insn;
  uint32_t lane[STRAIGHT_MOST_LANES], stays = 1, alike = a->count > 1, reg = common_register(w, a, lane);
  int keeps = insn->flags & VECTOR_KEEP && hg_straight_mask(w, insn->mask, a->slice) != STRAIGHT_ALL;
  if (reg == VECTOR_NONE || keeps) {
    append_load(w, a);
    return;
  }
  for (uint32_t k = 0; k < a->count; k++) {
    stays &= lane[k] == a->lane[k];
    alike &= lane[k] == lane[0];
  }
  const vector_reg *held = vector_reg_at(w->to, reg);
  int is_alike = (held->kind != VECTOR_VARIES && reg != w->blane) || held->uniform;
  int takes_one = vector_reg_at(w->from, insn->d)->uniform || reg == w->blane; /* the register's lanes are not these
                                                                                  lanes */
  if (is_alike || (stays && !takes_one)) hg_straight_set(w, insn->d, a->slice, reg);
  else if (takes_one || alike) append_load(w, a); /* an element that all lanes read is as quick from memory */
  else append_permutation(w, a, reg, lane);
}

static void write_store(straight *w, const access *a) {
  uint32_t value = a->insn->s[a->insn->mode == ATLAS_ADDRESS_INDEXED];
  uint32_t at = append_access(w, a), reg = hg_straight_register(w, value, a->slice);
  if (w->no_memory) return;
  vector_insn_at(w->to, at)->flags |= STRAIGHT_UNREAD;
  for (uint32_t k = 0; k < a->count; k++)
    cells_of(w, a->symbol)[a->element[k]] = (straight_cell){reg, a->lane[k], at};
}

int hg_straight_access(straight *w, const vector_insn *insn, uint32_t slice) {
  if (!vector_is_primitive(insn->op) || insn->mode > ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY) return 0;
  unsigned flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) || flags & ATLAS_SPACE_POOL) return 0;
  if (w->first_cell[insn->symbol] == VECTOR_NONE) return 0;
  const atlas_symbol *symbol = atlas_symbol_at(w->program, insn->symbol);
  access a = {.insn = insn, .slice = slice, .symbol = insn->symbol, .extent = (uint32_t)symbol->count,
              .is_store = (flags & ATLAS_STORE) != 0};
  int is_known = !(flags & ATLAS_ATOMIC) && insn->type == symbol->type && find_elements(w, &a);
  if (!is_known || (a.is_store && !are_different(&a))) {
    forget(w, insn->symbol);
    return 0;
  }
  if (a.is_store) write_store(w, &a);
  else write_load(w, &a);
  return 1;
}
