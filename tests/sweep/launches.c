/* launches.c - the launches of a program. What it is about goes through all its values, as far as a program has
 * launches for them: lengths by numbers of lanes where an index is the lane's own, else powers of two by steps and by
 * where the lanes pass them. The rest is drawn, and so another with each program and seed. */
#include "sweep.h"

#include <string.h>

enum { MOST_LANES = 4200, LARGE_BYTES = 33 << 20 };

typedef struct maker {
  const sweep_program *p;
  const atlas_symbol *symbols;
  size_t symbol_count;
  sweep_launch *l;
  random_state random;
  uint32_t number;
  uint32_t element; /* bytes */
  int counts_bytes; /* indices of `po` and `t` do */
  uint64_t length;  /* elements of what is accessed at the index */
  uint64_t blocks;  /* of the launch; 1 where it is linear */
  uint64_t width, pitch, limit, last;
} maker;

#define ONE_OF(m, array) (array)[random_below(&(m)->random, COUNT(array))]

static const atlas_symbol *symbol_named(const maker *m, const char *name) {
  for (size_t i = 0; i < m->symbol_count; i++)
    if (strcmp(m->symbols[i].name, name) == 0) return &m->symbols[i];
  return NULL;
}

static int is_route(const maker *m, const char *name) { return strcmp(m->p->route, name) == 0; }
static int is_address(const maker *m, const char *name) { return strcmp(m->p->address, name) == 0; }

static uint32_t index_bits(const maker *m) { return m->p->index != ATLAS_NONE ? atlas_type_bits(m->p->index) : 64; }

/* ---- how many lanes, how much memory ----------------------------------------------------------------------------- */

static const uint32_t lengths[] = {0,  1,  2,  3,  4,  5,   7,   8,   9,   15,  16,  17,  31,   32,   33,  47,
                                   63, 64, 65, 79, 96, 127, 128, 129, 255, 256, 257, 300, 1024, 1027, 4099};

static uint64_t lanes_by_rule(uint64_t length, uint32_t rule) {
  switch (rule % 8) {
  case 0:
  case 1: return length;
  case 2: return length > 1 ? length - 1 : 1;
  case 3: return length > 5 ? length - 5 : length + 300;
  case 4: return length / 2 + 1;
  case 5: return length + 1;
  case 6: return length + 16 + length % 52;
  default: return 2 * length + 3;
  }
}

static void size_plain(maker *m) {
  uint32_t turn = m->number + m->p->number, lane_rule = turn / COUNT(lengths);
  int is_index = (m->p->flags & FORM_INDEX) != 0;
  m->length = is_index ? ONE_OF(m, lengths) : lengths[turn % COUNT(lengths)];
  if (is_index) lane_rule = (uint32_t)random_below(&m->random, 8);
  uint64_t reached = m->length * (m->counts_bytes && m->p->index == ATLAS_NONE ? m->element : 1);
  if (m->p->shift > 0 && (uint64_t)m->p->shift < reached && lane_rule % 2 == 0) reached -= (uint64_t)m->p->shift;
  if (m->width > 0) reached = m->length / m->pitch * m->width;
  m->l->lanes = lanes_by_rule(reached, lane_rule);
  if (m->l->lanes > MOST_LANES) m->l->lanes = MOST_LANES;
  if (m->number == SWEEP_LAUNCHES - 1) m->l->lanes = 0;
}

/* Sums over the columns, or rows, of a matrix whose last row is that of the memory, or a little more or less. */
static void size_matrix(maker *m) {
  static const uint32_t rows[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 33}, sides[] = {1, 3, 8, 15, 16, 17, 64, 100, 129, 300};
  static const int extra[] = {0, 0, 0, 1, -1, -7, 16};
  uint64_t side = ONE_OF(m, sides);
  m->limit = ONE_OF(m, rows);
  if (is_route(m, "sums_by_fours")) m->limit = (m->limit + 3) / 4 * 4;
  m->pitch = (is_route(m, "sums_of_rows") ? m->limit : side) + random_below(&m->random, 3);
  m->width = side;
  m->l->lanes = is_route(m, "sums_of_rows") ? side : lanes_by_rule(side, (uint32_t)random_below(&m->random, 4));
  uint64_t rows_there = is_route(m, "sums_of_rows") ? side : m->limit;
  int64_t length = (int64_t)(rows_there * m->pitch) + ONE_OF(m, extra);
  m->length = length > 0 ? (uint64_t)length : 0;
}

/* How many times a block's lanes a row of the program is. */
static uint64_t row_parts(const maker *m) {
  if (is_route(m, "row_sum") || is_route(m, "row_tail") || is_route(m, "row_less_its_sum")) return 2;
  if (is_route(m, "row_of_four") || is_route(m, "long_row") || is_route(m, "long_row_tail")) return 4;
  if (is_route(m, "long_row_part")) return 8;
  return is_route(m, "row_by_parts") ? m->last + 1 : 1;
}

static uint64_t choose_last(maker *m, uint64_t lanes) {
  const uint64_t ends[] = {0, 1, 14, 15, 16, lanes / 2, lanes - 2, lanes - 1, lanes, lanes + 5, 2 * lanes + 3};
  if (is_route(m, "row_by_parts")) return random_below(&m->random, 5);
  return ONE_OF(m, ends) % UINT32_MAX;
}

/* Where a row's last element lies: clamped to its tail, in programs that do that. */
static uint64_t row_length(const maker *m, uint64_t lanes) {
  uint64_t parts = row_parts(m), tail = m->last < lanes ? m->last + 1 : lanes;
  int is_tail = strstr(m->p->route, "tail") != NULL || is_route(m, "row_less_its_sum");
  if (is_address(m, "clamped")) return tail;
  if (is_route(m, "long_row_part")) return (parts - 1) * lanes + m->p->part;
  if (strstr(m->p->route, "strided") != NULL) return m->last + 1;
  return is_tail ? (parts - 1) * lanes + tail : parts * lanes;
}

/* Of a large matrix most launches have the last rows alone, or these and one that is not there; all launches, where
 * elements are narrow and so many. */
static void begin_late(maker *m) {
  uint64_t last = 1 + random_below(&m->random, 12);
  if (m->number % 64 == 0 && m->element >= 4 && !m->p->is_brief) return;
  m->l->first = (m->blocks - last) * m->pitch;
  m->blocks = last + (random_below(&m->random, 4) == 0);
}

static void size_rows(maker *m, const uint32_t block[3]) {
  static const uint32_t lanes_of[] = {64, 256, 100, 7, 128, 1}, counts[] = {1, 2, 3, 5, 8};
  static const int extra[] = {0, 0, 0, 1, -1, -3, 40};
  uint64_t lanes = block[0] > 0 ? block[0] : ONE_OF(m, lanes_of);
  if (block[0] == 0) m->l->block[0] = (uint32_t)lanes;
  m->last = choose_last(m, lanes);
  uint64_t row = row_length(m, lanes), most = row > lanes || !(m->p->flags & FORM_OWN) ? row : lanes;
  m->pitch = most + random_below(&m->random, 4);
  m->blocks = ONE_OF(m, counts);
  if (m->p->flags & FORM_LARGE) m->blocks = LARGE_BYTES / (m->pitch * m->element) + 1;
  int64_t length = (int64_t)((m->blocks - 1) * m->pitch + row) + (m->p->flags & FORM_LARGE ? 0 : ONE_OF(m, extra));
  m->length = length > 0 ? (uint64_t)length : 0;
  if (m->p->flags & FORM_LARGE) begin_late(m);
  m->l->grid[0] = (uint32_t)m->blocks;
  m->l->lanes = m->blocks * lanes;
}

static void size_plane(maker *m, const uint32_t block[3]) {
  static const uint32_t counts[] = {1, 2, 3, 4}, shapes[][2] = {{8, 4}, {16, 16}, {5, 3}, {32, 1}, {1, 8}};
  static const int extra[] = {0, 0, 0, 1, -1, -3, 40};
  size_t shape = (size_t)random_below(&m->random, COUNT(shapes));
  uint32_t lanes[2] = {block[0], block[1]};
  if (block[0] == 0) memcpy(lanes, shapes[shape], sizeof lanes), memcpy(m->l->block, lanes, sizeof lanes);
  for (int k = 0; k < 2; k++) m->l->grid[k] = ONE_OF(m, counts);
  uint64_t across = (uint64_t)m->l->grid[0] * lanes[0], down = (uint64_t)m->l->grid[1] * lanes[1];
  m->limit = 8 * (1 + random_below(&m->random, 4)) - random_below(&m->random, 2);
  m->pitch =
      (is_route(m, "product") && m->limit > across ? (m->limit + 7) / 8 * 8 : across) + random_below(&m->random, 3);
  int64_t length = (int64_t)((down - 1) * m->pitch + across) + ONE_OF(m, extra);
  m->length = length > 0 ? (uint64_t)length : 0;
  m->blocks = (uint64_t)m->l->grid[0] * m->l->grid[1];
  m->l->lanes = across * down;
}

/* A linear launch becomes one of blocks where the program leaves that open. */
static void choose_blocks(maker *m, const uint32_t block[3]) {
  static const uint32_t lanes[] = {32, 64, 100, 1, 256};
  if (block[0] != 0 || m->l->lanes == 0 || random_below(&m->random, 4) != 0) return;
  m->l->block[0] = ONE_OF(m, lanes);
  m->l->grid[0] = (uint32_t)(m->l->lanes / m->l->block[0]) + 1;
  m->l->lanes = (uint64_t)m->l->grid[0] * m->l->block[0];
}

static void choose_sizes(maker *m, const atlas_program *compiled) {
  static const uint32_t widths[] = {1, 2, 3, 5, 7, 8, 16, 17, 32, 64, 100};
  uint32_t block[3];
  atlas_program_block(compiled, block);
  m->blocks = 1;
  if (strcmp(m->p->address, "plane") == 0 || strcmp(m->p->address, "column") == 0 || is_route(m, "stencil")) {
    m->width = ONE_OF(m, widths);
    m->pitch = m->width + random_below(&m->random, 4);
  }
  if (m->p->flags & FORM_PLANE) size_plane(m, block);
  else if (m->p->flags & FORM_GRID) size_rows(m, block);
  else if (m->p->address[0] == '\0' && symbol_named(m, "limit") != NULL) size_matrix(m);
  else {
    size_plain(m);
    if (m->p->address[0] != '\0') choose_blocks(m, block);
  }
}

/* ---- where indices begin ----------------------------------------------------------------------------------------- */

/* What lanes pass: the ends of the memory, of types, and of offsets in bytes. */
static uint64_t boundary(const maker *m, uint32_t which) {
  uint64_t unit = m->counts_bytes ? 1 : m->element;
  switch (which % 16) {
  case 1: return m->length * (m->counts_bytes ? m->element : 1);
  case 2: return UINT64_C(1) << 31;
  case 3: return UINT64_C(1) << 32;
  case 4: return UINT64_C(1) << 63;
  case 5: return UINT64_C(1) << (index_bits(m) - 1);
  case 6: return (UINT64_C(1) << 31) / unit;
  case 7: return (UINT64_C(1) << 32) / unit;
  case 8: return (UINT64_C(1) << 63) / unit;
  case 9: return (UINT64_C(1) << 63) / unit * 2;
  case 10: return m->length;
  case 11: return m->p->index == ATLAS_i8 || m->p->index == ATLAS_u8 ? 256 : 65536;
  default: return 0;
  }
}

static uint64_t choose_step(maker *m) {
  uint64_t unit = m->counts_bytes && random_below(&m->random, 4) != 0 ? m->element : 1;
  const uint64_t steps[] = {1, 0 - UINT64_C(1), 2, 0 - UINT64_C(3), 5, UINT64_C(1) << (index_bits(m) - 3)};
  if (is_address(m, "run") || is_address(m, "turned")) return 1;
  if (is_address(m, "back")) return 0 - UINT64_C(1);
  if (is_address(m, "third")) return 3;
  if (!is_address(m, "stepped") && !is_address(m, "gathered")) return 1;
  return steps[(m->number / 16 + m->p->number) % COUNT(steps)] * unit;
}

/* Matrices and rows begin where the memory does, or, now and then, so that their middle passes something. */
static void choose_index(maker *m) {
  uint32_t turn = m->number + m->p->number, phase = m->number / 64;
  int is_simple = m->pitch == 0;
  uint64_t step = choose_step(m), reach = m->l->lanes / 2;
  uint64_t pass = boundary(m, is_simple ? turn : (uint32_t)random_below(&m->random, 16));
  m->l->step = step;
  if (m->p->flags & FORM_LARGE || (!is_simple && random_below(&m->random, 4) != 0)) return;
  if (is_address(m, "halves")) reach /= 2;
  if (is_address(m, "pattern")) reach = 2;
  if (!is_simple) reach = m->length / 2;
  if (pass == 0 && (int64_t)step > 0) phase |= 1; /* begins with the memory */
  m->l->first = pass - (phase % 4 == 1 ? 0 : phase % 4 == 2 ? 2 * reach : reach) * step;
  if (phase % 2 == 1) m->l->first -= (uint64_t)m->p->shift;
}

/* Lanes that do not come to one element twice, where each has to have its own. */
static void limit_lanes(maker *m) {
  uint32_t bits = index_bits(m);
  uint64_t most = MOST_LANES, step = m->l->step;
  if (!(m->p->flags & FORM_OWN) || !(m->p->flags & FORM_INDEX) || m->p->flags & (FORM_GRID | FORM_PLANE)) return;
  while (bits > 0 && (step & 1) == 0) step >>= 1, bits--;
  if (bits < 13) most = UINT64_C(1) << bits;
  if (m->width > 0 && bits < 16) most = (UINT64_C(1) << bits) / m->pitch * m->width;
  if (m->l->lanes <= most) return;
  m->l->lanes = most;
  if (m->l->grid[0] == 0) return;
  m->l->grid[0] = (uint32_t)(most / m->l->block[0]);
  if (m->l->grid[0] == 0) memset(m->l->grid, 0, sizeof m->l->grid), memset(m->l->block, 0, sizeof m->l->block);
  else m->l->lanes = (uint64_t)m->l->grid[0] * m->l->block[0];
}

/* ---- scalars and memory ------------------------------------------------------------------------------------------ */

static uint64_t scalar_value(maker *m, const atlas_symbol *s) {
  static const uint64_t entries[] = {0, 1, 3, 3, 1, 2, 4, UINT32_MAX}, classes[] = {0, 3, 90, UINT32_MAX - 1};
  const uint64_t guards[] = {m->length, m->length - 1, m->l->lanes / 2, 0, UINT64_C(1) << 63, m->l->lanes};
  const uint64_t regions[] = {0, 16, m->element, MOST_BLOCK, m->p->block * (uint64_t)m->element, 1000000};
  if (strcmp(s->name, "start") == 0) return is_route(m, "boundary_load") ? ONE_OF(m, classes) : m->l->first;
  if (strcmp(s->name, "step") == 0) return m->l->step;
  if (strcmp(s->name, "width") == 0) return m->width;
  if (strcmp(s->name, "pitch") == 0) return m->pitch;
  if (strcmp(s->name, "entry") == 0) return ONE_OF(m, entries);
  if (strcmp(s->name, "limit") == 0) return m->limit > 0 ? m->limit : ONE_OF(m, guards);
  return is_route(m, "pool_region") ? ONE_OF(m, regions) : m->last;
}

static void add_scalar(maker *m, uint32_t slot) {
  uint32_t bits = atlas_type_bits((atlas_type)m->symbols[slot].type);
  uint64_t value = scalar_value(m, &m->symbols[slot]);
  if (bits < 64) value &= (UINT64_C(1) << bits) - 1;
  m->l->scalars[m->l->scalar_count++] = (hg_scalar){.slot = slot, .type = m->symbols[slot].type, .bits = value};
}

/* Some bytes more than whole elements, or an element less, now and then. */
static uint64_t nearly(maker *m, uint64_t count, uint32_t bytes) {
  uint64_t what = random_below(&m->random, 16);
  if (what == 0 && count > 0) count--;
  return count * bytes + (what == 1 ? 1 : what == 2 ? bytes - 1 : what == 3 ? bytes / 2 : 0);
}

static uint64_t range_bytes(maker *m, const atlas_symbol *s, uint32_t entry) {
  uint32_t bytes = atlas_type_bits((atlas_type)s->type) / 8;
  if (m->p->flags & FORM_LARGE && s->name[0] == 's') return m->length * bytes;
  if (s->kind == ATLAS_SYMBOL_TABLE && entry % 2 == 0) return nearly(m, ONE_OF(m, lengths) / 4, m->element);
  if (s->kind == ATLAS_SYMBOL_TABLE || s->kind == ATLAS_SYMBOL_POOL) return nearly(m, m->length, m->element);
  if (strcmp(s->name, "at") == 0 && m->p->flags & FORM_OWN)
    return m->l->lanes * bytes; /* what is not there is index 0 */
  if (strcmp(s->name, "rows") == 0) return nearly(m, m->blocks, bytes);
  return nearly(m, strcmp(s->name, "s") == 0 || strcmp(s->name, "d") == 0 ? m->length : m->l->lanes, bytes);
}

static sweep_room room_for(uint64_t byte_count) {
  int r = ROOM_SMALL;
  while (r < ROOM_LARGE && sweep_room_bytes((sweep_room)r) < byte_count + 256) r++;
  return (sweep_room)r;
}

static void place_range(maker *m, sweep_range *range, uint64_t alignment) {
  static const sweep_place places[] = {PLACE_END, PLACE_END, PLACE_START, PLACE_INSIDE};
  range->room = room_for(range->byte_count);
  range->place = range->room == ROOM_LARGE ? PLACE_END : ONE_OF(m, places);
  uint64_t behind = sweep_room_bytes(range->room) - range->byte_count;
  if (range->place == PLACE_START) range->offset = 0;
  else range->offset = behind / (range->place == PLACE_END ? 1 : 2) / alignment * alignment;
}

static void add_range(maker *m, const atlas_symbol *s, uint32_t entry) {
  sweep_range *range = &m->l->ranges[m->l->range_count];
  uint64_t alignment = s->kind == ATLAS_SYMBOL_POOL    ? 16
                       : s->kind == ATLAS_SYMBOL_TABLE ? 8
                                                       : atlas_type_bits((atlas_type)s->type) / 8;
  *range = (sweep_range){.entry = entry, .slot = m->l->range_count, .is_written = s->access != ATLAS_IN};
  memcpy(range->name, s->name, sizeof range->name);
  range->byte_count = range_bytes(m, s, entry);
  place_range(m, range, alignment);
  m->l->range_count++;
}

/* Two names of one range, which lanes may access each at its own element. */
static void join_ranges(maker *m) {
  sweep_range *r = m->l->ranges;
  if (!is_address(m, "own") || m->p->shift != 0 || m->counts_bytes || m->l->range_count != 2) return;
  if (strchr("sdv", r[0].name[0]) == NULL || strchr("sdv", r[1].name[0]) == NULL) return;
  if (m->p->flags & FORM_OF_BLOCK || random_below(&m->random, 3) != 0) return;
  r[1].slot = r[0].slot;
  r[1].room = r[0].room, r[1].place = r[0].place, r[1].offset = r[0].offset, r[1].byte_count = r[0].byte_count;
  r[0].is_written = r[1].is_written = 1;
}

static void add_symbol(maker *m, uint32_t slot) {
  const atlas_symbol *s = &m->symbols[slot];
  if (s->kind == ATLAS_SYMBOL_SCALAR) add_scalar(m, slot);
  else if (s->kind == ATLAS_SYMBOL_BUFFER || s->kind == ATLAS_SYMBOL_POOL) add_range(m, s, 0);
  else if (s->kind == ATLAS_SYMBOL_TABLE)
    for (uint32_t k = 0; k < s->count; k++)
      if (k != 2) add_range(m, s, k); /* an entry that nobody bound */
}

void sweep_launch_make(uint64_t seed, const sweep_program *p, const atlas_program *compiled, uint32_t number,
                       sweep_launch *out) {
  maker m = {.p = p, .l = out, .number = number, .element = atlas_type_bits(p->type) / 8};
  memset(out, 0, sizeof *out);
  m.random = random_of(seed + 1, (uint64_t)p->number * SWEEP_LAUNCHES + number);
  m.symbols = atlas_program_symbols(compiled, &m.symbol_count);
  m.counts_bytes = symbol_named(&m, "po") != NULL || symbol_named(&m, "t") != NULL;
  out->contents = random_next(&m.random);
  choose_sizes(&m, compiled);
  choose_index(&m);
  limit_lanes(&m);
  for (uint32_t i = 0; i < m.symbol_count; i++) add_symbol(&m, i);
  join_ranges(&m);
}
