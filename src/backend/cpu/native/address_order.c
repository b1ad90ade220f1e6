/* address_order.c - reorders the straight-line code (straight.c) of a block that reduces a row so that it reads the row
 * in the order of addresses, as far as order F allows.
 *
 * Such code waits for memory only. The hardware prefetcher follows consecutive addresses, but order F first adds
 * elements that are half a row apart, then a quarter, so in the order of lanes the loads jump between a dozen places of
 * the row. This pass computes each value as soon as the last element that it needs has been loaded: the second half of
 * the row is read from its beginning to its end, each element together with its partner in the first half. The first
 * half is read before: into registers while there are any, and the rest with its value discarded (NATIVE_TOUCH), so
 * that the second load hits the first-level cache. Prefetch instructions do not help here: they ask for each line once
 * more, and the prefetcher learns nothing from them. Sums of rows of 1024, Zen 4, ps an element with the half read
 * twice and with registers: from the second-level cache 46 and 41, from the third 55 and 50.
 *
 * Only instructions without effects are moved, and only behind the comparison that says that all elements exist. */
#include "backend/cpu/native/straight.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "base/error.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

enum { NO_PLACE = 0, UNKNOWN = INT32_MAX }; /* of `needs` */

typedef struct orderer {
  native_build *b;
  hg_vector *v;
  uint32_t within;  /* the NATIVE_GUARD_RANGE of the row */
  uint32_t end;     /* instructions before it may be moved */
  uint32_t vectors; /* vectors in the row */
  uint32_t *writer; /* per register: see hg_native_find_writers */
  uint32_t *needs;  /* per register: 1 + the last vector of the row that it depends on */
  uint32_t *place;  /* per vector of the row: the number of instructions whose last input it is; then where they begin
                       in `order` */
  uint32_t *order;  /* the movable instructions, sorted by `needs` */
  uint32_t computing, loads;
  hg_rewrite to;
} orderer;

/* An estimate of the processor's instructions for one of the row's part: 64 bits take two; the greater of two floats,
 * or NaN, takes several. */
static uint64_t length_from(const orderer *o, uint32_t i) {
  uint64_t length = 0, of_extreme = o->b->target->mask_count > 0 ? 2 : 4;
  for (; i < o->v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(o->v, i);
    if (insn->op == VECTOR_LABEL || vector_is_jump(insn->op)) break;
    int is_extreme = (insn->op == ATLAS_OP_max || insn->op == ATLAS_OP_min) && atlas_is_float((atlas_type)insn->type);
    uint8_t type = insn->d < VECTOR_ALL ? vector_reg_at(o->v, insn->d)->type : SSA_PREDICATE;
    int is_long = type != SSA_PREDICATE && atlas_bytes((atlas_type)type) == 8;
    length += is_extreme ? of_extreme : is_long ? 2 : 1;
  }
  return length;
}

/* 1 if the code is bound by memory: the elements have 32 bits, so every vector is full. */
static int is_little(const orderer *o, const vector_insn *within) {
  uint32_t bytes = atlas_bytes((atlas_type)atlas_symbol_at(o->b->program, within->symbol)->type);
  uint64_t row = (within->bits + 1) * bytes,
           most = row < CPU_ORDERED_LONG_BYTES ? CPU_ORDERED_INSNS : CPU_ORDERED_INSNS_LONG;
  return bytes == 4 && row >= CPU_ORDERED_BYTES && length_from(o, o->within) <= most * o->vectors;
}

/* Finds the only row that a block reads whole, before any jump and any store to it. 0: there is none. */
static int find_row(orderer *o) {
  o->within = VECTOR_NONE;
  for (uint32_t i = 0; i < o->v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(o->v, i);
    if (vector_is_jump(insn->op) && insn->target <= i) return 0;
    if (insn->op != NATIVE_GUARD_RANGE || !(insn->flags & VECTOR_CONTIGUOUS)) continue;
    if (o->within != VECTOR_NONE || insn->flags & NATIVE_STORED || insn->s[0] == VECTOR_NONE) return 0;
    o->within = i;
  }
  if (o->within == VECTOR_NONE) return 0;
  const vector_insn *within = vector_insn_at(o->v, o->within);
  o->vectors = (uint32_t)((within->bits + 1) / o->b->target->lanes);
  return hg_native_row_start(o->b, within->s[0]) < NATIVE_MOST_ROW_STARTS && is_little(o, within);
}

/* 1 if an instruction is a load of a vector of the row. */
static int is_of_row(const orderer *o, const vector_insn *insn) {
  const vector_insn *within = vector_insn_at(o->v, o->within);
  if (!hg_native_is_row_load(insn) || !(insn->flags & VECTOR_IN_BOUNDS) || insn->symbol != within->symbol) return 0;
  if (insn->d >= VECTOR_ALL || insn->s[0] >= VECTOR_ALL || o->writer[insn->d] >= VECTOR_ALL) return 0;
  uint32_t index = o->writer[insn->s[0]];
  return index < VECTOR_ALL && hg_native_added_to_lane(o->v, vector_insn_at(o->v, index)) == within->s[0];
}

static int is_pure(const vector_insn *insn) {
  if (!vector_is_primitive(insn->op)) return insn->op == VECTOR_MOVE || insn->op == VECTOR_CANON;
  return (atlas_op_flags(insn->op) & ATLAS_PURE) != 0;
}

/* The `needs` of an instruction that may be moved; UNKNOWN: it may not be. */
static uint32_t needs_of(const orderer *o, uint32_t i) {
  const vector_insn *insn = vector_insn_at(o->v, i);
  uint32_t needs = NO_PLACE;
  if (is_of_row(o, insn)) return (uint32_t)(insn->bits / o->b->target->lanes + insn->slice + 1);
  if (!is_pure(insn) || insn->mask != VECTOR_ALL || insn->d >= VECTOR_ALL || o->writer[insn->d] != i) return UNKNOWN;
  for (int k = 0; k < 4; k++) {
    if (insn->s[k] >= VECTOR_ALL || vector_reg_at(o->v, insn->s[k])->kind != VECTOR_VARIES) continue;
    if (o->writer[insn->s[k]] >= VECTOR_ALL || o->needs[insn->s[k]] == UNKNOWN) return UNKNOWN;
    if (o->needs[insn->s[k]] > needs) needs = o->needs[insn->s[k]];
  }
  return needs;
}

/* 1 if each of the row's vectors is loaded exactly once, before every instruction that has to stay in place. */
static int find_needs(orderer *o) {
  uint32_t i = o->within + 1, needs;
  for (; i < o->v->insns.count && (needs = needs_of(o, i)) != UNKNOWN; i++) {
    o->needs[vector_insn_at(o->v, i)->d] = needs;
    if (needs > o->vectors) return 0;
    if (is_of_row(o, vector_insn_at(o->v, i))) o->loads++;
    else o->place[needs]++, o->computing++;
  }
  o->end = i;
  return o->loads == o->vectors;
}

static void sort(orderer *o) {
  uint32_t next = 0;
  for (uint32_t k = 0; k <= o->vectors; k++) {
    uint32_t count = o->place[k];
    o->place[k] = next;
    next += count;
  }
  for (uint32_t i = o->within + 1; i < o->end; i++) {
    const vector_insn *insn = vector_insn_at(o->v, i);
    if (!is_of_row(o, insn)) o->order[o->place[o->needs[insn->d]]++] = i;
  }
}

/* The load of the row that writes a register; NULL: there is none. */
static const vector_insn *load_of(const orderer *o, uint32_t r) {
  if (r >= VECTOR_ALL || o->writer[r] <= o->within || o->writer[r] >= o->end) return NULL;
  const vector_insn *load = vector_insn_at(o->v, o->writer[r]);
  return is_of_row(o, load) ? load : NULL;
}

/* Places a load before the first instruction that reads it. */
static void append_load(orderer *o, uint32_t r) {
  const vector_insn *load = load_of(o, r);
  if (load == NULL || o->needs[r] == NO_PLACE) return;
  hg_rewrite_append(&o->to, load);
  o->needs[r] = NO_PLACE;
}

/* The number of vectors, from the row's beginning, that are used only after later ones have been loaded. */
static uint32_t count_late(const orderer *o) {
  uint32_t furthest = 0, late = 0;
  for (uint32_t i = 0; i < o->computing; i++) {
    const vector_insn *insn = vector_insn_at(o->v, o->order[i]);
    for (int k = 0; k < 4; k++) {
      if (load_of(o, insn->s[k]) == NULL) continue;
      uint32_t needs = o->needs[insn->s[k]];
      if (needs < furthest && needs > late) late = needs;
      if (needs > furthest) furthest = needs;
    }
  }
  return late;
}

/* Touches the next row, loads the first vectors, and touches those that are used late. If more are used late than there
 * are registers, the sums get the registers and the vectors are only touched. */
static void append_first(orderer *o) {
  const vector_insn *within = vector_insn_at(o->v, o->within);
  vector_insn fetch = vector_insn_of(NATIVE_TOUCH, VECTOR_ALL);
  uint32_t late = count_late(o), registers = o->b->target->vector_count, kept = registers - CPU_ORDERED_BESIDE;
  if (late > registers + CPU_ORDERED_BESIDE) kept = 0;
  if (kept > late) kept = late;
  for (uint32_t i = o->within + 1; i < o->end && kept > 0; i++) {
    const vector_insn *load = vector_insn_at(o->v, i);
    if (is_of_row(o, load) && o->needs[load->d] <= kept) o->place[o->needs[load->d]] = load->d;
  }
  fetch.symbol = within->symbol;
  fetch.s[0] = within->s[0];
  fetch.slice = VECTOR_NONE;
  if (kept > 0) hg_rewrite_append(&o->to, &fetch);
  for (uint32_t k = 1; k <= kept; k++) append_load(o, o->place[k]);
  fetch.slice = kept;
  fetch.bits = (uint64_t)late * o->b->target->lanes;
  if (kept < late || late == 0) hg_rewrite_append(&o->to, &fetch);
}

static hg_status write_program(orderer *o) {
  uint32_t n = (uint32_t)o->v->insns.count, of_none = o->place[NO_PLACE]; /* instructions that need no vector, such as
                                                                             indices */
  HG_TRY(hg_rewrite_begin(&o->to, o->v, 2));
  for (uint32_t i = 0; i <= o->within; i++) hg_rewrite_keep(&o->to, i);
  for (uint32_t i = 0; i < of_none; i++) hg_rewrite_keep(&o->to, o->order[i]);
  append_first(o);
  for (uint32_t i = of_none; i < o->computing; i++) {
    const vector_insn *insn = vector_insn_at(o->v, o->order[i]);
    for (int k = 0; k < 4; k++) append_load(o, insn->s[k]);
    hg_rewrite_keep(&o->to, o->order[i]);
  }
  for (uint32_t i = o->within + 1; i < o->end; i++) append_load(o, vector_insn_at(o->v, i)->d);
  for (uint32_t i = o->end; i < n; i++) hg_rewrite_keep(&o->to, i);
  return hg_rewrite_end(&o->to, 0);
}

hg_status hg_native_pass_address_order(native_build *b, hg_vector *v, uint32_t *fired) {
  orderer o = {.b = b, .v = v};
  uint64_t regs = v->regs.count, n = v->insns.count;
  if (!find_row(&o)) return HG_OK;
  uint64_t words = 2 * regs + n + o.vectors + 1;
  o.writer = hg_allocate(&v->allocator, words, sizeof *o.writer);
  if (o.writer == NULL) return hg_fail_memory("machine code", words * sizeof *o.writer);
  o.needs = o.writer + regs;
  o.order = o.needs + regs;
  o.place = o.order + n;
  hg_native_find_writers(v, o.writer);
  hg_status status = HG_OK;
  if (find_needs(&o)) {
    sort(&o);
    status = write_program(&o);
    *fired = 1;
  }
  hg_release(&v->allocator, o.writer);
  return status;
}
