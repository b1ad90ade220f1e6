/* declare.c - what a random program declares, and the launch it gets. */
#include "atlas/value.h"
#include "generator.h"

#include <stdio.h>

/* ---- declarations ------------------------------------------------------------------------------------------------ */

static uint16_t declare(generator *g, uint8_t kind, atlas_type type, uint8_t access, uint32_t count, enum role role) {
  static const char *const names[] = {"s",    "in",   "el",  "pl", "out", "at", "sl",
                                      "hist", "pool", "tab", "c",  "loc", "sp", "far", "edge"};
  draft *d = g->d;
  if (d->symbol_count == DRAFT_SYMBOLS) return UINT16_MAX;
  uint16_t index = (uint16_t)d->symbol_count++;
  atlas_symbol *s = &d->symbols[index];
  *s = (atlas_symbol){.kind = kind, .type = (uint8_t)type, .access = access, .count = count};
  snprintf(s->name, sizeof s->name, "%s%u", names[role], index);
  g->role[index] = (uint8_t)role;
  return index;
}

static void declare_buffer(generator *g, enum role role, atlas_type type, uint8_t access, uint64_t elements) {
  uint16_t s = declare(g, ATLAS_SYMBOL_BUFFER, type, access, 0, role);
  if (s != UINT16_MAX) g->l->bytes[s] = elements * atlas_bytes(type);
}

void declare_planes(generator *g, enum role role, atlas_type type, uint8_t access, uint32_t planes) {
  declare_buffer(g, role, type, access, (uint64_t)planes * g->l->lane_count);
  g->planes[g->d->symbol_count - 1] = planes;
}

static uint32_t mask_of(const char *kinds) {
  uint32_t mask = 0;
  for (uint32_t t = 1; t < ATLAS_TYPE_COUNT; t++) {
    int storage = atlas_kind((atlas_type)t) == ATLAS_KIND_STORAGE;
    int atomic = t == ATLAS_i32 || t == ATLAS_u32 || t == ATLAS_i64 || t == ATLAS_u64;
    if (kinds[0] == '*' || (kinds[0] == 'n' && !storage) || (kinds[0] == 'a' && atomic)) mask |= 1u << t;
  }
  return mask;
}

static void declare_table(generator *g) {
  uint32_t count = 1 + below(g, DRAFT_TABLE_ENTRIES);
  uint16_t s = declare(g, ATLAS_SYMBOL_TABLE, ATLAS_u8, chance(g, 70) ? ATLAS_INOUT : ATLAS_IN, count, ROLE_TABLE);
  g->table = (uint16_t)(s + 1);
  for (uint32_t k = 0; k < g->d->symbols[s].count; k++)
    g->l->entry_bytes[s][k] = chance(g, 10) ? UINT64_MAX : chance(g, 10) ? 20 : 8 * (uint64_t)g->l->lane_count;
}

static void declare_constants(generator *g) {
  atlas_type type = random_type(g, mask_of("n"));
  uint32_t count = 1 + below(g, 16), bytes = count * atlas_bytes(type);
  uint16_t s = declare(g, ATLAS_SYMBOL_CONST, type, ATLAS_IN, count, ROLE_CONST);
  g->d->symbols[s].const_offset = g->d->constant_bytes;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t value = rng_value(&g->r, type);
    uint8_t *at = g->d->constants + g->d->constant_bytes + i * atlas_bytes(type);
    uint8_t u8 = (uint8_t)value;
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value, size = atlas_bytes(type);
    memcpy(at,
           size == 1   ? (const void *)&u8
           : size == 2 ? (const void *)&u16
           : size == 4 ? (const void *)&u32
                       : &value,
           size);
  }
  g->d->constant_bytes += (bytes + 7) / 8 * 8;
}

static uint32_t block_lanes(const generator *g) {
  const uint32_t *block = g->l->block;
  return g->l->lanes != 0 ? (g->d->block[0] != 0 ? g->d->block[0] : 256) : block[0] * block[1] * block[2];
}

static void declare_shared(generator *g) {
  uint32_t lanes = block_lanes(g);
  if (chance(g, 60)) {
    uint32_t unused = g->r.generation >= WITH_LEN && chance(g, 15) ? 4096 + below(g, 12000) : 0;
    atlas_type type = random_type(g, mask_of(chance(g, 20) ? "*" : "n"));
    uint16_t s = declare(g, ATLAS_SYMBOL_SHARED, type, ATLAS_INOUT, unused + lanes, ROLE_SLOTS);
    if (s != UINT16_MAX) g->planes[s] = unused;
  }
  if (chance(g, 30)) declare(g, ATLAS_SYMBOL_SHARED, random_type(g, mask_of("a")), ATLAS_INOUT, lanes, ROLE_SLOTS);
  if (chance(g, 40))
    declare(g, ATLAS_SYMBOL_SHARED, random_type(g, mask_of("a")), ATLAS_INOUT, 1 + lanes % 16, ROLE_HIST);
}

/* Now and then one that takes a good part of a lane's memory. */
static void declare_local(generator *g) {
  for (uint32_t n = 1 + below(g, 3); n > 0; n--) {
    uint32_t count = chance(g, 10) ? 1 + below(g, 130) : 1 + below(g, 9);
    declare(g, ATLAS_SYMBOL_LOCAL, random_type(g, mask_of(chance(g, 30) ? "*" : "n")), 0, count, ROLE_LOCAL);
  }
}

static atlas_op counting_op(generator *g) {
  static const atlas_op ops[] = {ATLAS_OP_atom_add, ATLAS_OP_atom_min, ATLAS_OP_atom_max,
                                 ATLAS_OP_atom_and, ATLAS_OP_atom_or,  ATLAS_OP_atom_xor};
  return ops[below(g, chance(g, 50) ? 1 : 6)];
}

/* Values that all lanes exchange, so that their order does not matter. */
static void choose_exchange(generator *g, uint32_t symbol) {
  g->hist_value[symbol] = (uint8_t)below(g, 50);
  g->hist_compare[symbol] = (uint8_t)(chance(g, 60) ? 0 : below(g, 20));
  if (chance(g, 25)) g->hist_op[symbol] = chance(g, 50) ? ATLAS_OP_atom_exch : ATLAS_OP_atom_cas;
}

static void declare_spread(generator *g) {
  atlas_type type = random_type(g, mask_of(chance(g, 20) ? "*" : "n"));
  if (chance(g, 40)) type = chance(g, 50) ? ATLAS_f16 : ATLAS_bf16;
  uint32_t stride = chance(g, 60) ? 2 + below(g, 3) : 1 + below(g, 9), first = chance(g, 60) ? 0 : below(g, 5);
  uint64_t elements = (uint64_t)stride * g->l->lane_count + first;
  if (chance(g, 20)) elements -= below(g, (uint32_t)elements / 2 + 1); /* the last lanes' are missing */
  declare_buffer(g, ROLE_SPREAD, type, ATLAS_INOUT, elements);
  g->planes[g->d->symbol_count - 1] = first;
  g->stride[g->d->symbol_count - 1] = stride;
}

enum { SMALL_SHARED = 32768, LARGE_SHARED = 150000 };

/* Lanes' elements so far from each other that together they take more than 32 KiB. */
static void declare_far(generator *g) {
  atlas_type type = random_type(g, mask_of(chance(g, 30) ? "a" : "n"));
  uint32_t lanes = block_lanes(g), size = atlas_bytes(type), first = chance(g, 50) ? 0 : below(g, 100);
  uint32_t bytes = SMALL_SHARED + 1 + below(g, chance(g, 70) ? SMALL_SHARED : LARGE_SHARED - SMALL_SHARED - 2000);
  uint32_t stride = bytes / size / lanes + 1;
  uint16_t s = declare(g, ATLAS_SYMBOL_SHARED, type, ATLAS_INOUT, first + stride * lanes, ROLE_FAR);
  if (s == UINT16_MAX) return;
  g->planes[s] = first;
  g->stride[s] = stride;
}

static void declare_edge(generator *g) {
  uint32_t lanes = g->l->lane_count;
  declare_buffer(g, ROLE_EDGE, random_type(g, mask_of(chance(g, 40) ? "a" : "n")), ATLAS_INOUT,
                 1 + below(g, lanes + 8));
  g->edge_back = chance(g, 50) ? below(g, 5) : below(g, lanes + 1);
}

/* What the shapes need beside the rest. */
static void declare_for_shapes(generator *g) {
  declare_planes(g, ROLE_OUT, ATLAS_u32, ATLAS_OUT, 4);
  declare_planes(g, ROLE_OUT, ATLAS_u64, ATLAS_OUT, 4);
  uint32_t lanes = g->l->lane_count, times = 1 + below(g, 9);
  atlas_type type = chance(g, 40) ? ATLAS_f32 : random_type(g, mask_of("n"));
  declare_buffer(g, ROLE_IN, type, ATLAS_IN,
                 chance(g, 20) ? 1 + below(g, lanes) : (uint64_t)lanes * times + below(g, 9));
  if (chance(g, 50)) declare_spread(g);
  if (chance(g, 30)) declare_buffer(g, ROLE_ATOMIC, random_type(g, mask_of("a")), ATLAS_INOUT, 1 + lanes % 16);
  if (chance(g, 40))
    declare(g, ATLAS_SYMBOL_SHARED, random_type(g, mask_of("a")), ATLAS_INOUT, 1 + lanes % 16, ROLE_HIST);
  if (chance(g, 30)) declare_far(g);
  if (chance(g, 30)) declare_local(g);
  if (has_edges(g)) declare_edge(g);
  for (uint32_t i = 0; i < g->d->symbol_count; i++) choose_exchange(g, i);
}

void declare_all(generator *g) {
  uint32_t lanes = g->l->lane_count;
  for (uint32_t n = 1 + below(g, 3); n > 0; n--)
    declare_buffer(g, ROLE_IN, random_type(g, mask_of(chance(g, 15) ? "*" : "n")), ATLAS_IN,
                   lanes < 4 ? 4 + lanes : lanes);
  for (uint32_t n = 1 + below(g, 3); n > 0; n--)
    declare_planes(g, ROLE_ELEMENT, random_type(g, mask_of(chance(g, 15) ? "*" : "n")), ATLAS_INOUT, 1);
  for (uint32_t n = below(g, 3); n > 0; n--)
    declare_planes(g, ROLE_PLANES, random_type(g, mask_of(chance(g, 15) ? "*" : "n")), ATLAS_INOUT, n + 1);
  if (chance(g, 40)) declare_planes(g, ROLE_PLANES, random_type(g, mask_of("a")), ATLAS_INOUT, 2);
  if (chance(g, 30)) declare_buffer(g, ROLE_ATOMIC, random_type(g, mask_of("a")), ATLAS_INOUT, 1 + lanes % 16);
  for (uint32_t n = below(g, 4); n > 0; n--)
    declare(g, ATLAS_SYMBOL_SCALAR, random_type(g, mask_of("n")), 0, 0, ROLE_NONE);
  for (uint32_t n = below(g, 3); n > 0; n--) declare_constants(g);
  if (chance(g, 12)) declare_table(g);
  if (chance(g, 50)) declare_shared(g);
  if (chance(g, 15)) {
    uint16_t pool = declare(g, ATLAS_SYMBOL_POOL, ATLAS_u8, ATLAS_INOUT, 0, ROLE_POOL);
    g->l->bytes[pool] = below(g, 3) * 8192;
    g->l->bytes[pool] += below(g, 5000);
  }
  if (g->r.generation >= WITH_LOCAL_ARRAYS && chance(g, 35)) declare_local(g);
  for (uint32_t i = 0; i < DRAFT_SYMBOLS && (i < g->d->symbol_count || has_shapes(g)); i++)
    g->hist_op[i] = (uint16_t)counting_op(g);
  g->l->uses_boundary = chance(g, 6);
  if (has_shapes(g)) declare_for_shapes(g);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

void choose_shape(generator *g) {
  static const uint32_t few[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64};
  test_launch *l = g->l;
  uint32_t lanes = chance(g, 4) ? 200 + below(g, 100) : few[below(g, chance(g, 20) ? 13 : 10)];
  if (has_shapes(g) && chance(g, 15)) lanes = 33 + below(g, 200); /* more than a warp */
  if (chance(g, 40)) {
    l->lanes = l->lane_count = lanes;
    if (chance(g, 50)) g->d->block[0] = 1 + below(g, lanes < 40 ? 40 : 256), g->d->block[1] = g->d->block[2] = 1;
  } else {
    for (int i = 0; i < 3; i++) l->grid[i] = l->block[i] = 1;
    for (int i = 0; i < 3; i++) { /* factors as far as the lanes last */
      uint32_t size = 1 + below(g, 9);
      if (lanes / size == 0) break;
      l->block[i] = i == 0 && chance(g, 50) ? lanes : size;
      if (l->block[i] > 256) l->block[i] = 256;
      lanes /= l->block[i] < lanes ? l->block[i] : lanes;
      l->grid[i] = 1 + below(g, lanes < 4 ? lanes + 1 : 4);
      lanes /= l->grid[i] < lanes ? l->grid[i] : lanes;
      if (chance(g, 40)) break;
    }
    l->lane_count = 1;
    for (int i = 0; i < 3; i++) l->lane_count *= l->grid[i] * l->block[i];
    if (chance(g, 40)) memcpy(g->d->block, l->block, sizeof l->block);
  }
  l->step_limit = chance(g, 10) ? 1 + below(g, 40) : 5000;
  l->phase = below(g, ATLAS_PHASE_COUNT);
}

static uint64_t short_bytes(generator *g, uint64_t size) {
  static const uint8_t elements[] = {0, 0, 1, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65};
  uint64_t bytes = elements[below(g, sizeof elements)] * size;
  return chance(g, 40) && bytes > 0 ? bytes - 1 - below(g, (uint32_t)size) : bytes;
}

void shorten(generator *g) {
  enum { PROGRAMS = 20, SYMBOLS = 40 }; /* percent */
  if (!has_edges(g) || !chance(g, PROGRAMS)) return;
  for (uint32_t i = 0; i < g->d->symbol_count; i++) {
    const atlas_symbol *s = &g->d->symbols[i];
    int is_memory = s->kind == ATLAS_SYMBOL_BUFFER || s->kind == ATLAS_SYMBOL_POOL;
    uint64_t now = short_bytes(g, s->kind == ATLAS_SYMBOL_BUFFER ? atlas_bytes((atlas_type)s->type) : 8);
    if (!chance(g, SYMBOLS)) continue;
    if (is_memory && now < g->l->bytes[i]) g->l->bytes[i] = now;
    for (uint32_t k = 0; s->kind == ATLAS_SYMBOL_TABLE && k < s->count; k++)
      if (g->l->entry_bytes[i][k] != UINT64_MAX && chance(g, 50)) g->l->entry_bytes[i][k] = now;
  }
}

void bind_in_place(generator *g) {
  const draft *d = g->d;
  uint8_t other[DRAFT_SYMBOLS] = {0};
  for (uint32_t i = 0; i < d->insn_count; i++) {
    const atlas_operand *o = atlas_address_of(&d->insns[i]);
    if (o == NULL || o->mode == ATLAS_ADDRESS_PHI) continue;
    if (o->mode != ATLAS_ADDRESS_INDEXED || o->reg != ATLAS_REG_LANE || o->bits != 0) other[o->symbol] = 1;
  }
  for (uint32_t i = 0; i < d->symbol_count; i++)
    for (uint32_t k = 0; k < i; k++)
      if (d->symbols[i].kind == ATLAS_SYMBOL_BUFFER && d->symbols[k].kind == ATLAS_SYMBOL_BUFFER && !other[i] &&
          !other[k] && g->l->bytes[i] == g->l->bytes[k] && !g->l->same_as[k] && chance(g, 50) &&
          atlas_bytes((atlas_type)d->symbols[i].type) == atlas_bytes((atlas_type)d->symbols[k].type))
        g->l->same_as[i] = k + 1;
}
