/* scan.c - running sums along an axis, or what else an operator with an identity makes of all elements up to each.
 *
 * A line is what one result runs along. Its chunks of 256 elements are scanned by strides 1, 2, 4, ... (Hillis and
 * Steele, "Data parallel algorithms", 1986), left op right; the chunks' totals likewise, in chunks of their own; then
 * each element of a chunk is the total of all chunks before op the element. What is absent is the identity.
 *
 * A unit is a chunk of one line. Its element w * lanes + g is element w of its lane g. Strides below the number of
 * lanes go through a tile in shared memory, in front of which stands the identity; from there on a lane has both sides.
 * Along the innermost axis neighbouring lanes have neighbouring elements of a unit, along others the same element of
 * neighbouring lines, so that either way they lie side by side in memory.
 *
 * A processor's engines keep a block in registers while they scan its lanes (scan.incl), so there sums along memory
 * have a lane for each element of a chunk, and of lines of a few chunks an element of each.
 *
 * A line that a block has as a whole takes one launch. Otherwise a launch writes the totals, others scan these, and a
 * last one scans the elements anew from what came before their chunks: an element is read twice and written once. */
#include "ops/write/fold.h"
#include "ops/graph/ops_tuning.h"

#include <string.h>

enum { IS_THERE = 0, IS_STORED = 1, CHUNK_BITS = 8, CHUNK = 1 << CHUNK_BITS, MOST_OWN = CHUNK };

typedef struct scan {
  const ops_group *group;
  const ops_node *node;
  ops_shape shape;
  uint32_t axis, result; /* a storage */
  uint64_t lines;
  atlas_type type; /* in which elements are put together */
  int is_inner;    /* neighbouring elements of a line lie side by side, rather than neighbouring lines */
  int has_chunks;  /* a block's lanes are a chunk's elements, which scan.incl scans */
} scan;

/* Lines of so many elements: the node's input, or the totals of what a storage has of them. */
typedef struct scan_level {
  const scan *s;
  uint64_t size, chunks;
  uint32_t elements;                            /* a storage that is scanned in place; UINT32_MAX: the input */
  uint32_t bits, lane_bits, unit_bits;          /* of a unit's elements, of its lanes, of a block's units */
  uint32_t own;                                 /* elements of a lane */
  uint32_t line_bits;                           /* a line has 2^line_bits units of a block, all of them */
  int is_whole;
  uint64_t units;
} scan_level;

/* One launch. Coordinates: the shape's. */
typedef struct scan_launch {
  const scan *s;
  const scan_level *level;
  uint32_t totals; /* a storage: written, or read: of all chunks before; UINT32_MAX: none */
  ops_terms terms;
  ops_code code;
  atlas_builder *b;
  ops_fold fold;
  term_id value;
  ops_form own[HG_MAX_RANK];
  uint16_t tile;            /* symbol */
  uint16_t at;              /* u32: the lane's element 0 in the tile */
  uint16_t in_unit;         /* u32: the lane's number in its unit */
  uint16_t unit;            /* i64: the unit's number, at most that of the last one */
  uint16_t line, chunk;     /* i64 */
  uint16_t first, left;     /* i64: the lane's element 0 along the axis, elements from there to the line's end */
  uint16_t element[MOST_OWN];
} scan_launch;

enum { NO_STORAGE = -1 };

static uint32_t lanes_of(const scan_level *v) { return 1u << v->lane_bits; }
static uint32_t own_of(const scan_level *v) { return v->own; }
static uint32_t units_of(const scan_level *v) { return 1u << v->unit_bits; }
/* The last block has units that there are not. */
static int has_rest(const scan_level *v) { return (v->units & (units_of(v) - 1)) != 0; }
/* From element to element in the tile. */
static uint32_t step_of(const scan_level *v) { return v->s->is_inner ? 1 : units_of(v); }
static int is_ragged(const scan_level *v) {
  uint64_t units = v->is_whole ? UINT64_C(1) << v->line_bits : v->chunks;
  return v->size != ((uint64_t)v->own << v->lane_bits) * units;
}

static uint16_t fresh(scan_launch *l) { return ops_register(&l->code); }

static void emit(scan_launch *l, atlas_op op, atlas_type type, uint16_t to, uint16_t a, atlas_operand b) {
  atlas_emit(l->b, op, type, 3, atlas_reg(to), atlas_reg(a), b);
}

static void convert(scan_launch *l, atlas_type to_type, uint16_t to, atlas_type from_type, uint16_t from) {
  atlas_op op = to_type == from_type ? ATLAS_OP_mov : ATLAS_OP_cvt;
  if (op == ATLAS_OP_mov) atlas_emit(l->b, op, to_type, 2, atlas_reg(to), atlas_reg(from));
  else atlas_emit2(l->b, op, to_type, from_type, atlas_reg(to), atlas_reg(from));
}

static atlas_operand scalar(scan_launch *l, uint64_t value) { return ops_scalar_of(&l->code, ATLAS_i64, value); }
static void barrier(scan_launch *l) { atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0); }

/* value = left op value */
static void combine(scan_launch *l, atlas_operand left, uint16_t value) {
  atlas_emit(l->b, l->fold.op, l->s->type, 3, atlas_reg(value), left, atlas_reg(value));
}

static atlas_operand identity(const scan_launch *l) { return atlas_bits(l->fold.identity); }

/* ---- where a lane is --------------------------------------------------------------------------------------------- */

/* The lane's unit in the block and its number in there. */
static uint16_t split_lane(scan_launch *l) {
  const scan_level *v = l->level;
  uint16_t low = fresh(l), high = fresh(l);
  uint32_t low_bits = l->s->is_inner ? v->lane_bits : v->unit_bits;
  if (l->s->has_chunks) {
    l->in_unit = ATLAS_REG_BLOCK_LANE;
    atlas_emit(l->b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(low), atlas_bits(0));
    return low;
  }
  emit(l, ATLAS_OP_and, ATLAS_u32, low, ATLAS_REG_BLOCK_LANE, atlas_bits((1u << low_bits) - 1));
  emit(l, ATLAS_OP_shr, ATLAS_u32, high, ATLAS_REG_BLOCK_LANE, atlas_bits(low_bits));
  l->in_unit = l->s->is_inner ? low : high;
  return l->s->is_inner ? high : low;
}

/* Quotient and remainder of the unit's number. */
static void divide_unit(scan_launch *l, uint64_t by, uint16_t quotient, uint16_t remainder) {
  atlas_type type = l->level->units <= UINT32_MAX ? ATLAS_u32 : ATLAS_i64;
  uint16_t number = fresh(l), part = fresh(l);
  atlas_operand size = ops_scalar_of(&l->code, type, by);
  convert(l, type, number, ATLAS_i64, l->unit);
  emit(l, ATLAS_OP_div, type, part, number, size);
  convert(l, ATLAS_i64, quotient, type, part);
  emit(l, ATLAS_OP_rem, type, part, number, size);
  convert(l, ATLAS_i64, remainder, type, part);
}

static void find_line(scan_launch *l) {
  const scan_level *v = l->level;
  l->line = fresh(l), l->chunk = fresh(l);
  if (v->is_whole) {
    emit(l, ATLAS_OP_shr, ATLAS_i64, l->line, l->unit, atlas_bits(v->line_bits));
    emit(l, ATLAS_OP_and, ATLAS_i64, l->chunk, l->unit, atlas_bits((1u << v->line_bits) - 1));
  } else if (l->s->is_inner) divide_unit(l, v->chunks, l->line, l->chunk);
  else divide_unit(l, l->s->lines, l->chunk, l->line);
}

/* Predicate IS_THERE, of what has a rest: there is such a unit. */
static void find_unit(scan_launch *l, uint16_t in_block) {
  const scan_level *v = l->level;
  uint16_t block = ops_launch_coordinate(&l->code, ATLAS_COORD_BLOCK_X), wide = fresh(l);
  l->unit = fresh(l);
  convert(l, ATLAS_i64, l->unit, ATLAS_u32, block);
  convert(l, ATLAS_i64, wide, ATLAS_u32, in_block);
  emit(l, ATLAS_OP_shl, ATLAS_i64, l->unit, l->unit, atlas_bits(v->unit_bits));
  emit(l, ATLAS_OP_add, ATLAS_i64, l->unit, l->unit, atlas_reg(wide));
  if (!has_rest(v)) return;
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_THERE), atlas_reg(l->unit), scalar(l, v->units));
  emit(l, ATLAS_OP_min, ATLAS_i64, l->unit, l->unit, scalar(l, v->units - 1));
}

/* The lane's place along the axis. */
static void find_first(scan_launch *l) {
  const scan_level *v = l->level;
  l->first = fresh(l), l->left = fresh(l);
  convert(l, ATLAS_i64, l->first, ATLAS_u32, l->in_unit);
  emit(l, ATLAS_OP_shl, ATLAS_i64, l->left, l->chunk, atlas_bits(v->bits));
  emit(l, ATLAS_OP_add, ATLAS_i64, l->first, l->first, atlas_reg(l->left));
  atlas_emit(l->b, ATLAS_OP_sub, ATLAS_i64, 3, atlas_reg(l->left), scalar(l, v->size), atlas_reg(l->first));
  if (has_rest(v))
    atlas_emit(l->b, ATLAS_OP_sel, ATLAS_i64, 4, atlas_reg(l->left), atlas_pred(IS_THERE), atlas_reg(l->left),
               atlas_int_const(ATLAS_i64, 0));
}

/* Where the lane's element 0 is in the tile: units stand one after the other, or their elements side by side; before
 * each stand as many identities as it has lanes. */
static void begin_tile(scan_launch *l, uint16_t in_block) {
  const scan_level *v = l->level;
  uint32_t lanes = lanes_of(v), of_unit = (1u << v->bits) + lanes, step = step_of(v);
  if (v->lane_bits == 0 || l->s->has_chunks) return;
  uint16_t none = fresh(l);
  l->tile = atlas_builder_shared(l->b, "tile", l->s->type, of_unit << v->unit_bits);
  l->at = fresh(l);
  emit(l, ATLAS_OP_mul, ATLAS_u32, l->at, in_block, atlas_bits(l->s->is_inner ? of_unit : 1));
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_u32, 4, atlas_reg(l->at), atlas_reg(l->in_unit), atlas_bits(step),
             atlas_reg(l->at));
  atlas_emit(l->b, ATLAS_OP_movi, l->s->type, 2, atlas_reg(none), identity(l));
  atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem_reg(l->tile, l->at, 0), atlas_reg(none));
  emit(l, ATLAS_OP_add, ATLAS_u32, l->at, l->at, atlas_bits(lanes * step));
}

static void begin_lanes(scan_launch *l) {
  const scan_level *v = l->level;
  ops_step *step = l->code.step;
  uint32_t lanes = 1u << (v->lane_bits + v->unit_bits);
  atlas_builder_block(l->b, lanes, 1, 1);
  step->grid[0] = (uint32_t)((v->units + units_of(v) - 1) >> v->unit_bits);
  step->grid[1] = step->grid[2] = step->block[1] = step->block[2] = 1;
  step->block[0] = lanes;
  uint16_t in_block = split_lane(l);
  find_unit(l, in_block);
  find_line(l);
  find_first(l);
  begin_tile(l, in_block);
}

/* ---- elements in memory ------------------------------------------------------------------------------------------ */

/* Place of element w along the axis in a register, and what is to be added to it. */
static int64_t place_of(scan_launch *l, uint32_t w, uint16_t place) {
  int64_t more = (int64_t)w << l->level->lane_bits;
  if (is_ragged(l->level)) {
    emit(l, ATLAS_OP_add, ATLAS_i64, place, l->first, atlas_int_const(ATLAS_i64, more));
    emit(l, ATLAS_OP_min, ATLAS_i64, place, place, scalar(l, l->level->size - 1));
    return 0;
  }
  atlas_emit(l->b, ATLAS_OP_mov, ATLAS_i64, 2, atlas_reg(place), atlas_reg(l->first));
  return more;
}

/* The coordinates of element w. Along the innermost axis elements are a number apart that the program may know. */
static void set_coordinates(scan_launch *l, uint32_t w) {
  uint16_t place = l->code.variable[l->s->axis];
  int64_t more = place_of(l, w, place);
  ops_forget(&l->code, 1u << l->s->axis);
  if (!l->s->is_inner && more != 0) {
    emit(l, ATLAS_OP_add, ATLAS_i64, place, place, atlas_int_const(ATLAS_i64, more));
    more = 0;
  }
  l->code.displaced = l->s->axis;
  l->code.displacement = more;
}

static void split_line(scan_launch *l) {
  const scan *s = l->s;
  for (uint32_t i = 0; i < s->shape.rank; i++) l->code.variable[i] = OPS_NO_REGISTER;
  l->code.variable[s->axis] = fresh(l);
  ops_split(&l->code, &s->shape, ~(1u << s->axis), s->shape.rank, s->lines, atlas_reg(l->line), ATLAS_i64);
}

/* The address of element w in the level's own storage; what is to be added. */
static int64_t address_of(scan_launch *l, uint32_t w, uint16_t address) {
  const scan *s = l->s;
  int64_t more = place_of(l, w, address);
  if (s->is_inner) {
    atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(address), atlas_reg(l->line), scalar(l, l->level->size),
               atlas_reg(address));
    return more;
  }
  emit(l, ATLAS_OP_add, ATLAS_i64, address, address, atlas_int_const(ATLAS_i64, more));
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(address), atlas_reg(address), scalar(l, s->lines),
             atlas_reg(l->line));
  return 0;
}

static int is_input(const scan_level *v) { return v->elements == (uint32_t)NO_STORAGE; }

static void read_element(scan_launch *l, uint32_t w) {
  const scan *s = l->s;
  l->element[w] = fresh(l);
  if (is_input(l->level)) {
    set_coordinates(l, w);
    convert(l, s->type, l->element[w], (atlas_type)s->node->type, ops_value(&l->code, l->value));
    return;
  }
  uint16_t address = fresh(l);
  int64_t more = address_of(l, w, address);
  atlas_emit(l->b, ATLAS_OP_ldg, s->type, 2, atlas_reg(l->element[w]),
             atlas_mem_reg(ops_buffer_of(&l->code, l->level->elements), address, more));
}

static void write_element(scan_launch *l, uint32_t w) {
  const scan *s = l->s;
  atlas_type type = (atlas_type)s->node->type;
  if (is_input(l->level)) {
    ops_form form = ops_address((const ops_storage *)s->group->plan->storages.data + s->result, l->own);
    set_coordinates(l, w);
    convert(l, type, l->element[w], s->type, l->element[w]);
    ops_store(&l->code, s->result, &form, type, l->element[w]);
    return;
  }
  uint16_t address = fresh(l);
  int64_t more = address_of(l, w, address);
  atlas_emit(l->b, ATLAS_OP_stg, s->type, 2,
             atlas_mem_reg(ops_buffer_of(&l->code, l->level->elements), address, more), atlas_reg(l->element[w]));
}

/* The lane's elements that there are: where one is beyond the line's end, so are all behind it. */
static void write_elements(scan_launch *l) {
  const scan_level *v = l->level;
  uint32_t done = atlas_builder_label(l->b, NULL);
  if (has_rest(v) && !is_ragged(v)) atlas_emit_branch(l->b, IS_THERE, 1, done);
  for (uint32_t w = 0; w < own_of(v); w++) {
    if (is_ragged(v)) {
      atlas_emit(l->b, ATLAS_OP_set_gt, ATLAS_i64, 3, atlas_pred(IS_STORED), atlas_reg(l->left),
                 atlas_int_const(ATLAS_i64, (int64_t)w << v->lane_bits));
      atlas_emit_branch(l->b, IS_STORED, 1, done);
    }
    write_element(l, w);
  }
  atlas_builder_place(l->b, done);
}

/* ---- strides ----------------------------------------------------------------------------------------------------- */

/* Strides within the unit, the first ones through the tile. */
static void scan_unit(scan_launch *l) {
  const scan_level *v = l->level;
  uint32_t count = own_of(v), lanes = lanes_of(v), step = step_of(v);
  uint16_t left = fresh(l);
  for (uint32_t stride = 1; stride < lanes; stride *= 2) {
    if (stride > 1) barrier(l);
    for (uint32_t w = 0; w < count; w++)
      atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem_reg(l->tile, l->at, (int64_t)w * lanes * step),
                 atlas_reg(l->element[w]));
    barrier(l);
    for (uint32_t w = 0; w < count; w++) {
      int64_t from = ((int64_t)w * lanes - stride) * step;
      atlas_emit(l->b, ATLAS_OP_lds, l->s->type, 2, atlas_reg(left), atlas_mem_reg(l->tile, l->at, from));
      combine(l, atlas_reg(left), l->element[w]);
    }
  }
  if (lanes == 1) combine(l, identity(l), l->element[0]); /* a lone NaN, too, is the canonical one */
  for (uint32_t apart = 1; apart < count; apart *= 2)
    for (uint32_t w = count; w-- > apart;) combine(l, atlas_reg(l->element[w - apart]), l->element[w]);
}

/* A lane has an element of each chunk. */
static void scan_chunks(scan_launch *l) {
  uint32_t count = own_of(l->level);
  uint16_t total[MOST_OWN];
  for (uint32_t w = 0; w < count; w++) {
    combine(l, identity(l), l->element[w]);
    atlas_emit(l->b, ATLAS_OP_scan_incl, l->s->type, 2, atlas_reg(l->element[w]), atlas_reg(l->element[w]));
  }
  if (count == 1) return;
  uint16_t totals = atlas_builder_shared(l->b, "totals", l->s->type, count);
  uint32_t others = atlas_builder_label(l->b, NULL);
  atlas_emit(l->b, ATLAS_OP_set_eq, ATLAS_u32, 3, atlas_pred(IS_STORED), atlas_reg(ATLAS_REG_BLOCK_LANE),
             atlas_bits(CHUNK - 1));
  atlas_emit_branch(l->b, IS_STORED, 1, others);
  for (uint32_t w = 0; w + 1 < count; w++)
    atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem(totals, w), atlas_reg(l->element[w]));
  atlas_builder_place(l->b, others);
  barrier(l);
  for (uint32_t w = 0; w + 1 < count; w++) {
    total[w] = fresh(l);
    atlas_emit(l->b, ATLAS_OP_lds, l->s->type, 2, atlas_reg(total[w]), atlas_mem(totals, w));
  }
  for (uint32_t apart = 1; apart + 1 < count; apart *= 2)
    for (uint32_t w = count - 1; w-- > apart;) combine(l, atlas_reg(total[w - apart]), total[w]);
  for (uint32_t w = 0; w + 1 < count; w++) combine(l, atlas_reg(total[w]), l->element[w + 1]);
}

/* Where all lanes but the last one of each unit go. */
static uint32_t skip_but_last(scan_launch *l) {
  uint32_t others = atlas_builder_label(l->b, NULL);
  atlas_emit(l->b, ATLAS_OP_set_eq, ATLAS_u32, 3, atlas_pred(IS_STORED), atlas_reg(l->in_unit),
             atlas_bits(lanes_of(l->level) - 1));
  atlas_emit_branch(l->b, IS_STORED, 1, others);
  return others;
}

static void carry_on(scan_launch *l, atlas_operand carry) {
  for (uint32_t w = 0; w < own_of(l->level); w++) combine(l, carry, l->element[w]);
}

/* Totals of a line whose units the block has, by strides; as many identities stand before each line's. */
static void carry_in_block(scan_launch *l) {
  const scan_level *v = l->level;
  uint32_t of_line = 1u << v->line_bits;
  if (of_line == 1) return; /* or a lane has elements of all of them */
  uint16_t totals = atlas_builder_shared(l->b, "totals", l->s->type, 2u << v->unit_bits);
  uint16_t at = fresh(l), total = fresh(l), left = fresh(l), line = fresh(l);
  emit(l, ATLAS_OP_shr, ATLAS_u32, at, ATLAS_REG_BLOCK_LANE, atlas_bits(v->lane_bits));
  emit(l, ATLAS_OP_and, ATLAS_u32, line, at, atlas_bits(~(of_line - 1)));
  emit(l, ATLAS_OP_add, ATLAS_u32, at, at, atlas_reg(line));
  atlas_emit(l->b, ATLAS_OP_mov, l->s->type, 2, atlas_reg(total), atlas_reg(l->element[own_of(v) - 1]));
  atlas_emit(l->b, ATLAS_OP_movi, l->s->type, 2, atlas_reg(left), identity(l));
  for (uint32_t stride = 1; stride <= of_line; stride *= 2) {
    uint32_t others = skip_but_last(l);
    if (stride == 1) atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem_reg(totals, at, 0), atlas_reg(left));
    atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem_reg(totals, at, of_line), atlas_reg(total));
    atlas_builder_place(l->b, others);
    barrier(l);
    int64_t from = stride < of_line ? (int64_t)of_line - stride : (int64_t)of_line - 1;
    atlas_emit(l->b, ATLAS_OP_lds, l->s->type, 2, atlas_reg(left), atlas_mem_reg(totals, at, from));
    if (stride == of_line) break;
    combine(l, atlas_reg(left), total);
    barrier(l);
  }
  carry_on(l, atlas_reg(left));
}

/* What came before the chunk, which a launch has written. */
static void carry_from_memory(scan_launch *l) {
  uint16_t before = fresh(l), carry = fresh(l);
  atlas_operand step = l->s->is_inner ? atlas_int_const(ATLAS_i64, 1) : scalar(l, l->s->lines);
  emit(l, ATLAS_OP_sub, ATLAS_i64, before, l->unit, step);
  emit(l, ATLAS_OP_max, ATLAS_i64, before, before, atlas_int_const(ATLAS_i64, 0));
  atlas_emit(l->b, ATLAS_OP_ldg, l->s->type, 2, atlas_reg(carry),
             atlas_mem_reg(ops_buffer_of(&l->code, l->totals), before, 0));
  atlas_emit(l->b, ATLAS_OP_set_gt, ATLAS_i64, 3, atlas_pred(IS_STORED), atlas_reg(l->chunk),
             atlas_int_const(ATLAS_i64, 0));
  atlas_emit(l->b, ATLAS_OP_sel, l->s->type, 4, atlas_reg(carry), atlas_pred(IS_STORED), atlas_reg(carry),
             identity(l));
  carry_on(l, atlas_reg(carry));
}

static void write_total(scan_launch *l) {
  uint32_t absent = atlas_builder_label(l->b, NULL), others = skip_but_last(l);
  if (has_rest(l->level)) atlas_emit_branch(l->b, IS_THERE, 1, absent);
  atlas_emit(l->b, ATLAS_OP_stg, l->s->type, 2, atlas_mem_reg(ops_buffer_of(&l->code, l->totals), l->unit, 0),
             atlas_reg(l->element[own_of(l->level) - 1]));
  atlas_builder_place(l->b, absent);
  atlas_builder_place(l->b, others);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

enum { SCANS, SCANS_ON, TOTALS }; /* lines from their beginnings, from what was before; their chunks' totals alone */

static hg_status begin(scan_launch *l, const scan_level *v, uint32_t totals, int what) {
  static const char *const names[] = {"scan", "scan_on", "scan_totals"};
  const scan *s = v->s;
  ops_form zero;
  term_id unused;
  memset(l, 0, sizeof *l);
  memset(&zero, 0, sizeof zero);
  l->s = s, l->level = v, l->totals = totals;
  ops_terms_begin(&l->terms, s->group, &s->shape);
  ops_identity(&s->shape, l->own);
  if (is_input(v)) HG_TRY(ops_term_of(&l->terms, s->node->input[0], l->own, &l->value));
  else HG_TRY(ops_load_of(&l->terms, v->elements, s->type, &zero, &unused));
  if (what == SCANS_ON) HG_TRY(ops_load_of(&l->terms, totals, s->type, &zero, &unused));
  ops_step *step = ops_new_step(s->group->plan);
  if (step == NULL) return HG_OUT_OF_MEMORY;
  HG_TRY(ops_code_begin(&l->code, &l->terms, step, names[what]));
  l->b = l->code.builder;
  l->code.index_type = ATLAS_i64;
  if (what == TOTALS) l->code.partials[l->code.partial_count++] = totals;
  else if (!is_input(v)) l->code.partials[l->code.partial_count++] = v->elements;
  l->fold = ops_fold_of(&l->code, (ops_reduce)s->node->reduce, s->type);
  step->kind = "scan";
  return HG_OK;
}

static hg_status end(scan_launch *l, hg_status status) {
  if (l->b != NULL) {
    hg_status ended = ops_code_end(&l->code);
    if (status == HG_OK) status = ended;
  }
  ops_terms_release(&l->terms);
  return status;
}

static hg_status write_launch(const scan_level *v, uint32_t totals, int what) {
  scan_launch l;
  hg_status status = begin(&l, v, totals, what);
  if (status == HG_OK) {
    begin_lanes(&l);
    if (is_input(v)) split_line(&l);
    for (uint32_t w = 0; w < own_of(v); w++) read_element(&l, w);
    if (v->s->has_chunks) scan_chunks(&l);
    else scan_unit(&l);
    if (what == SCANS) carry_in_block(&l);
    if (what == SCANS_ON) carry_from_memory(&l);
    if (what == TOTALS) write_total(&l);
    else write_elements(&l);
  }
  return end(&l, status);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static uint32_t bits_for(uint64_t count) {
  uint32_t bits = 0;
  while (UINT64_C(1) << bits < count) bits++;
  return bits;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Bytes of a block's shared memory. */
static uint64_t room_of(const scan_level *v, uint32_t unit_bits) {
  uint64_t tile = v->lane_bits > 0 ? (UINT64_C(1) << v->bits) + lanes_of(v) : 0;
  return (tile + 2) * atlas_bytes(v->s->type) << unit_bits;
}

static void choose_chunks(scan_level *v) {
  v->is_whole = v->chunks <= OPS_SCAN_CHUNKS;
  v->own = v->is_whole ? (uint32_t)v->chunks : 1;
  v->lane_bits = v->bits = least(bits_for(v->size), CHUNK_BITS);
  v->units = v->s->lines * (v->is_whole ? 1 : v->chunks);
}

static void choose_lanes(scan_level *v) {
  const scan *s = v->s;
  uint32_t units = bits_for(s->is_inner ? v->chunks : 1);
  v->bits = least(bits_for(v->size), CHUNK_BITS);
  v->lane_bits = s->is_inner ? least(v->bits, OPS_SCAN_LANE_BITS)
                             : v->bits - least(v->bits, OPS_SCAN_OWN_BITS);
  v->own = 1u << (v->bits - v->lane_bits);
  v->is_whole = v->chunks == 1 || (s->is_inner && units + v->lane_bits <= OPS_SCAN_MOST_BITS &&
                                   room_of(v, units) <= OPS_SCAN_BYTES);
  v->line_bits = v->is_whole ? units : 0;
  v->units = v->is_whole ? s->lines << v->line_bits : s->lines * v->chunks;
  v->unit_bits = v->line_bits;
  while (v->unit_bits + v->lane_bits < OPS_SCAN_BLOCK_BITS && UINT64_C(1) << v->unit_bits < v->units &&
         room_of(v, v->unit_bits + 1) <= OPS_SCAN_BYTES)
    v->unit_bits++;
}

/* Totals of lines are lines themselves. */
static hg_status write_level(const scan *s, uint32_t elements, uint64_t size) {
  scan_level v = {.s = s, .size = size, .chunks = (size + CHUNK - 1) >> CHUNK_BITS, .elements = elements};
  uint32_t totals;
  if (s->has_chunks) choose_chunks(&v);
  else choose_lanes(&v);
  if (v.is_whole) return write_launch(&v, (uint32_t)NO_STORAGE, SCANS);
  HG_TRY(ops_add_temporary(s->group->plan, s->type, v.units, &totals));
  HG_TRY(write_launch(&v, totals, TOTALS));
  HG_TRY(write_level(s, totals, v.chunks));
  return write_launch(&v, totals, SCANS_ON);
}

hg_status ops_write_scan(const ops_group *group) {
  scan s = {.group = group, .node = ops_at(group->computation, group->results[0])};
  uint64_t inner = 1;
  s.shape = s.node->shape, s.axis = s.node->axis;
  s.result = group->storage_of[group->results[0] - 1] - 1;
  s.type = (atlas_type)s.node->type;
  if (s.type == ATLAS_f16 || s.type == ATLAS_bf16) s.type = ATLAS_f32;
  for (uint32_t i = s.axis + 1; i < s.shape.rank; i++) inner *= s.shape.size[i];
  s.is_inner = inner < OPS_SCAN_INNER;
  s.has_chunks = !group->plan->for_gpu && s.is_inner && s.node->reduce == OPS_SUM;
  s.lines = ops_count(&s.shape) / s.shape.size[s.axis];
  return write_level(&s, (uint32_t)NO_STORAGE, s.shape.size[s.axis]);
}
