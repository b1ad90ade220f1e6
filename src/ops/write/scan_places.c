/* scan_places.c - which elements a lane of a scan has, and where they lie. */
#include "ops/write/scan.h"

/* ---- where a lane is --------------------------------------------------------------------------------------------- */

/* The lane's unit in the block, and its number in the unit. */
static uint16_t split_lane(scan_launch *l) {
  const scan_level *v = l->level;
  uint16_t low = scan_fresh(l), high = scan_fresh(l);
  uint32_t low_bits = l->s->is_inner ? v->lane_bits : v->unit_bits;
  if (v->unit_bits == 0) {
    l->in_unit = ATLAS_REG_BLOCK_LANE;
    atlas_emit(l->b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(low), atlas_bits(0));
    return low;
  }
  scan_emit(l, ATLAS_OP_and, ATLAS_u32, low, ATLAS_REG_BLOCK_LANE, atlas_bits((1u << low_bits) - 1));
  scan_emit(l, ATLAS_OP_shr, ATLAS_u32, high, ATLAS_REG_BLOCK_LANE, atlas_bits(low_bits));
  l->in_unit = l->s->is_inner ? low : high;
  return l->s->is_inner ? high : low;
}

/* Quotient and remainder of the unit's number. */
static void divide_unit(scan_launch *l, uint64_t by, uint16_t quotient, uint16_t remainder) {
  atlas_type type = l->level->units <= UINT32_MAX ? ATLAS_u32 : ATLAS_i64;
  uint16_t number = scan_fresh(l), part = scan_fresh(l);
  atlas_operand size = ops_scalar_of(&l->code, type, by);
  scan_convert(l, type, number, ATLAS_i64, l->unit);
  scan_emit(l, ATLAS_OP_div, type, part, number, size);
  scan_convert(l, ATLAS_i64, quotient, type, part);
  scan_emit(l, ATLAS_OP_rem, type, part, number, size);
  scan_convert(l, ATLAS_i64, remainder, type, part);
}

static void find_line(scan_launch *l) {
  const scan_level *v = l->level;
  l->line = scan_fresh(l), l->chunk = scan_fresh(l);
  if (v->is_whole) {
    scan_emit(l, ATLAS_OP_shr, ATLAS_i64, l->line, l->unit, atlas_bits(v->line_bits));
    scan_emit(l, ATLAS_OP_and, ATLAS_i64, l->chunk, l->unit, atlas_bits((1u << v->line_bits) - 1));
  } else if (l->s->is_inner) divide_unit(l, v->chunks, l->line, l->chunk);
  else divide_unit(l, l->s->lines, l->chunk, l->line);
}

/* Sets predicate IS_THERE, if the block may lack units: the unit exists. */
static void find_unit(scan_launch *l, uint16_t in_block) {
  const scan_level *v = l->level;
  uint16_t block = ops_launch_coordinate(&l->code, ATLAS_COORD_BLOCK_X), wide = scan_fresh(l);
  l->unit = scan_fresh(l);
  scan_convert(l, ATLAS_i64, l->unit, ATLAS_u32, block);
  scan_convert(l, ATLAS_i64, wide, ATLAS_u32, in_block);
  scan_emit(l, ATLAS_OP_shl, ATLAS_i64, l->unit, l->unit, atlas_bits(v->unit_bits));
  scan_emit(l, ATLAS_OP_add, ATLAS_i64, l->unit, l->unit, atlas_reg(wide));
  if (!scan_has_rest(v)) return;
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_THERE), atlas_reg(l->unit), scan_scalar(l, v->units));
  scan_emit(l, ATLAS_OP_min, ATLAS_i64, l->unit, l->unit, scan_scalar(l, v->units - 1));
}

/* Nothing is left of a unit that is not there. */
static void end_left(scan_launch *l) {
  if (scan_has_rest(l->level))
    atlas_emit(l->b, ATLAS_OP_sel, ATLAS_i64, 4, atlas_reg(l->left), atlas_pred(IS_THERE), atlas_reg(l->left),
               atlas_int_const(ATLAS_i64, 0));
}

/* The lane's position along the axis. */
static void find_first(scan_launch *l) {
  const scan_level *v = l->level;
  l->first = scan_fresh(l), l->left = scan_fresh(l);
  scan_convert(l, ATLAS_i64, l->first, ATLAS_u32, l->in_unit);
  scan_emit(l, ATLAS_OP_shl, ATLAS_i64, l->left, l->chunk, atlas_bits(v->bits));
  scan_emit(l, ATLAS_OP_add, ATLAS_i64, l->first, l->first, atlas_reg(l->left));
  atlas_emit(l->b, ATLAS_OP_sub, ATLAS_i64, 3, atlas_reg(l->left), scan_scalar(l, v->size), atlas_reg(l->first));
  end_left(l);
}

/* The memory of turned lanes: in each unit lane g has what is lane (last - g)'s by its place along the axis. */
static void begin_turned(scan_launch *l) {
  const scan_level *v = l->level;
  uint32_t lanes = scan_lanes_of(v);
  uint16_t lane = scan_fresh(l);
  if (!scan_is_turned(v)) return;
  l->turned = atlas_builder_shared(l->b, "turned", l->s->type, v->own << (v->lane_bits + v->unit_bits));
  l->back = scan_fresh(l);
  scan_convert(l, ATLAS_i64, lane, ATLAS_u32, l->in_unit);
  scan_emit(l, ATLAS_OP_shl, ATLAS_i64, l->back, l->chunk, atlas_bits(v->bits));
  atlas_emit(l->b, ATLAS_OP_sub, ATLAS_i64, 3, atlas_reg(l->back), scan_scalar(l, v->size), atlas_reg(l->back));
  scan_emit(l, ATLAS_OP_sub, ATLAS_i64, l->back, l->back, atlas_int_const(ATLAS_i64, (int64_t)lanes));
  scan_emit(l, ATLAS_OP_add, ATLAS_i64, l->back, l->back, atlas_reg(lane));
}

/* The position of the lane's element 0 in the tile: units stand one behind another, or with their elements interleaved;
 * before each stand as many identities as it has lanes. */
static void begin_tile(scan_launch *l, uint16_t in_block) {
  const scan_level *v = l->level;
  uint32_t lanes = scan_lanes_of(v), of_unit = (1u << v->bits) + lanes, step = scan_step_of(v);
  if (v->lane_bits == 0 || l->s->has_chunks) return;
  uint16_t none = scan_fresh(l);
  l->tile = atlas_builder_shared(l->b, "tile", l->s->type, of_unit << v->unit_bits);
  l->at = scan_fresh(l);
  scan_emit(l, ATLAS_OP_mul, ATLAS_u32, l->at, in_block, atlas_bits(l->s->is_inner ? of_unit : 1));
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_u32, 4, atlas_reg(l->at), atlas_reg(l->in_unit), atlas_bits(step),
             atlas_reg(l->at));
  atlas_emit(l->b, ATLAS_OP_movi, l->s->type, 2, atlas_reg(none), scan_identity(l));
  atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem_reg(l->tile, l->at, 0), atlas_reg(none));
  scan_emit(l, ATLAS_OP_add, ATLAS_u32, l->at, l->at, atlas_bits(lanes * step));
}

/* The block's chunk and its lines, which lie side by side, one for each lane. Sets predicate IS_THERE, if lines may
 * lack: the line exists. */
static void find_column(scan_launch *l) {
  const scan_level *v = l->level;
  const scan *s = l->s;
  uint16_t block = ops_launch_coordinate(&l->code, ATLAS_COORD_BLOCK_X), rest = scan_fresh(l), column = scan_fresh(l);
  atlas_operand tiles = scan_scalar(l, (s->inner + scan_units_of(v) - 1) >> v->unit_bits);
  l->chunk = scan_fresh(l), l->line = scan_fresh(l), l->unit = scan_fresh(l), l->in_unit = scan_fresh(l);
  atlas_emit(l->b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(l->in_unit), atlas_bits(0));
  scan_convert(l, ATLAS_i64, rest, ATLAS_u32, block);
  scan_emit(l, ATLAS_OP_rem, ATLAS_i64, l->line, rest, tiles);
  scan_emit(l, ATLAS_OP_div, ATLAS_i64, rest, rest, tiles);
  scan_emit(l, ATLAS_OP_rem, ATLAS_i64, l->chunk, rest, scan_scalar(l, v->chunks));
  scan_emit(l, ATLAS_OP_div, ATLAS_i64, rest, rest, scan_scalar(l, v->chunks));
  scan_emit(l, ATLAS_OP_shl, ATLAS_i64, l->line, l->line, atlas_bits(v->unit_bits));
  scan_convert(l, ATLAS_i64, column, ATLAS_u32, ATLAS_REG_BLOCK_LANE);
  scan_emit(l, ATLAS_OP_add, ATLAS_i64, column, column, atlas_reg(l->line));
  if (scan_has_rest(v)) {
    atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_THERE), atlas_reg(column), scan_scalar(l, s->inner));
    scan_emit(l, ATLAS_OP_min, ATLAS_i64, column, column, scan_scalar(l, s->inner - 1));
  }
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(l->line), atlas_reg(rest), scan_scalar(l, s->inner),
             atlas_reg(column));
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(l->unit), atlas_reg(l->chunk), scan_scalar(l, s->lines),
             atlas_reg(l->line));
  l->outer = rest, l->column = column;
}

static void begin_blocks(scan_launch *l, uint64_t blocks, uint32_t lanes) {
  if (blocks > INT32_MAX && l->code.status == HG_OK)
    l->code.status = hg_fail(HG_UNSUPPORTED,
                             "a scan along %llu lines takes %llu blocks, more than the %d of a launch; "
                             "scan parts of the tensor",
                             (unsigned long long)l->s->lines, (unsigned long long)blocks, INT32_MAX);
  ops_launch_blocks(&l->code, blocks, 1, 1, lanes);
}

void ops_scan_begin_columns(scan_launch *l) {
  const scan_level *v = l->level;
  const scan *s = l->s;
  uint64_t tiles = (s->inner + scan_units_of(v) - 1) >> v->unit_bits;
  begin_blocks(l, s->lines / s->inner * v->chunks * tiles, scan_units_of(v));
  l->tile = atlas_builder_shared(l->b, "tile", s->type, 1u << (v->bits + v->unit_bits));
  find_column(l);
  find_first(l);
}

void ops_scan_begin_lanes(scan_launch *l) {
  const scan_level *v = l->level;
  begin_blocks(l, (v->units + scan_units_of(v) - 1) >> v->unit_bits, 1u << (v->lane_bits + v->unit_bits));
  uint16_t in_block = split_lane(l);
  find_unit(l, in_block);
  find_line(l);
  find_first(l);
  begin_turned(l);
  begin_tile(l, in_block);
}

/* ---- elements in memory ------------------------------------------------------------------------------------------ */

/* The position of element w along the axis, as a register and a constant to be added. */
static int64_t place_of(scan_launch *l, uint32_t w, uint16_t place) {
  int64_t more = (int64_t)w << l->level->lane_bits;
  if (scan_is_turned(l->level)) {
    scan_emit(l, ATLAS_OP_sub, ATLAS_i64, place, l->back, atlas_int_const(ATLAS_i64, more));
    if (scan_may_be_absent(l->level, w))
      scan_emit(l, ATLAS_OP_max, ATLAS_i64, place, place, atlas_int_const(ATLAS_i64, 0));
    return 0;
  }
  if (scan_may_be_absent(l->level, w)) {
    scan_emit(l, ATLAS_OP_add, ATLAS_i64, place, l->first, atlas_int_const(ATLAS_i64, more));
    scan_emit(l, ATLAS_OP_min, ATLAS_i64, place, place, scan_scalar(l, l->level->size - 1));
    return 0;
  }
  atlas_emit(l->b, ATLAS_OP_mov, ATLAS_i64, 2, atlas_reg(place), atlas_reg(l->first));
  return more;
}

/* Sets the coordinates of element w, counted from the line's end if that is where it begins. Along the innermost axis
 * the program may know the distance between elements. */
static void set_coordinates(scan_launch *l, uint32_t w) {
  uint16_t place = l->code.variable[l->s->axis];
  int64_t more = place_of(l, w, place);
  if (l->s->node->index != 0 && !scan_is_turned(l->level)) {
    atlas_operand last = scan_scalar(l, l->level->size - 1);
    atlas_emit(l->b, ATLAS_OP_sub, ATLAS_i64, 3, atlas_reg(place), last, atlas_reg(place));
    more = -more;
  }
  ops_forget(&l->code, 1u << l->s->axis);
  if (!l->s->is_inner && more != 0) {
    scan_emit(l, ATLAS_OP_add, ATLAS_i64, place, place, atlas_int_const(ATLAS_i64, more));
    more = 0;
  }
  l->code.displaced = l->s->axis;
  l->code.displacement = more;
}

void ops_scan_split_line(scan_launch *l) {
  const scan *s = l->s;
  for (uint32_t i = 0; i < s->shape.rank; i++) l->code.variable[i] = OPS_NO_REGISTER;
  l->code.variable[s->axis] = scan_fresh(l);
  if (scan_has_columns(l->level)) {
    ops_split(&l->code, &s->shape, ~(1u << s->axis), s->axis, s->lines / s->inner, atlas_reg(l->outer), ATLAS_i64);
    ops_split(&l->code, &s->shape, ~((2u << s->axis) - 1), s->shape.rank, s->inner, atlas_reg(l->column), ATLAS_i64);
    return;
  }
  ops_split(&l->code, &s->shape, ~(1u << s->axis), s->shape.rank, s->lines, atlas_reg(l->line), ATLAS_i64);
}

/* The address of element w in the level's own storage, as a register and a constant to be added. */
static int64_t address_of(scan_launch *l, uint32_t w, uint16_t address) {
  const scan *s = l->s;
  int64_t more = place_of(l, w, address);
  if (s->is_inner) {
    atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(address), atlas_reg(l->line), scan_scalar(l, l->level->size),
               atlas_reg(address));
    return more;
  }
  scan_emit(l, ATLAS_OP_add, ATLAS_i64, address, address, atlas_int_const(ATLAS_i64, more));
  atlas_emit(l->b, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(address), atlas_reg(address), scan_scalar(l, s->lines),
             atlas_reg(l->line));
  return 0;
}

void ops_scan_read(scan_launch *l, uint32_t w) {
  const scan *s = l->s;
  l->element[w] = scan_fresh(l);
  if (scan_is_input(l->level)) {
    set_coordinates(l, w);
    scan_convert(l, s->type, l->element[w], (atlas_type)s->node->type, ops_value(&l->code, l->value));
    if (s->has_segments) l->before[w] = ops_value(&l->code, l->place);
    return;
  }
  uint16_t address = scan_fresh(l);
  int64_t more = address_of(l, w, address);
  atlas_emit(l->b, ATLAS_OP_ldg, s->type, 2, atlas_reg(l->element[w]),
             atlas_mem_reg(ops_buffer_of(&l->code, l->level->elements), address, more));
  if (!s->has_segments) return;
  l->before[w] = scan_fresh(l);
  atlas_emit(l->b, ATLAS_OP_ldg, ATLAS_i64, 2, atlas_reg(l->before[w]),
             atlas_mem_reg(ops_buffer_of(&l->code, l->level->places), address, more));
}

/* Exchanges the elements of each unit's lanes: the first one's with the last one's, and so on. */
void ops_scan_turn(scan_launch *l) {
  const scan_level *v = l->level;
  uint32_t step = scan_lanes_of(v) << v->unit_bits;
  if (!scan_is_turned(v)) return;
  uint16_t other = scan_fresh(l);
  scan_emit(l, ATLAS_OP_xor, ATLAS_u32, other, ATLAS_REG_BLOCK_LANE, atlas_bits(scan_lanes_of(v) - 1));
  scan_barrier(l);
  for (uint32_t w = 0; w < v->own; w++)
    atlas_emit(l->b, ATLAS_OP_sts, l->s->type, 2, atlas_mem_reg(l->turned, ATLAS_REG_BLOCK_LANE, (int64_t)w * step),
               atlas_reg(l->element[w]));
  scan_barrier(l);
  for (uint32_t w = 0; w < v->own; w++)
    atlas_emit(l->b, ATLAS_OP_lds, l->s->type, 2, atlas_reg(l->element[w]),
               atlas_mem_reg(l->turned, other, (int64_t)w * step));
}

static void write_element(scan_launch *l, uint32_t w) {
  const scan *s = l->s;
  atlas_type type = (atlas_type)s->node->type;
  if (scan_is_input(l->level)) {
    ops_form form = ops_address((const ops_storage *)s->group->plan->storages.data + s->result, l->own);
    set_coordinates(l, w);
    scan_convert(l, type, l->element[w], s->type, l->element[w]);
    ops_store(&l->code, s->result, &form, type, l->element[w]);
    return;
  }
  uint16_t address = scan_fresh(l);
  int64_t more = address_of(l, w, address);
  atlas_emit(l->b, ATLAS_OP_stg, s->type, 2,
             atlas_mem_reg(ops_buffer_of(&l->code, l->level->elements), address, more), atlas_reg(l->element[w]));
}

/* Stores the lane's elements that exist: if one is behind the line's end, so are all that follow. */
void ops_scan_write(scan_launch *l) {
  const scan_level *v = l->level;
  uint32_t done = atlas_builder_label(l->b, NULL);
  ops_scan_turn(l);
  if (scan_is_turned(v)) {
    scan_emit(l, ATLAS_OP_add, ATLAS_i64, l->left, l->back, atlas_int_const(ATLAS_i64, 1));
    end_left(l);
  }
  if (scan_has_rest(v) && !scan_is_ragged(v)) atlas_emit_branch(l->b, IS_THERE, 1, done);
  for (uint32_t w = 0; w < v->own; w++) {
    if (scan_may_be_absent(v, w)) {
      ops_branch_unless(l->b, ATLAS_OP_set_gt, ATLAS_i64, atlas_reg(l->left),
                        atlas_int_const(ATLAS_i64, (int64_t)w << v->lane_bits), done);
    }
    write_element(l, w);
  }
  atlas_builder_place(l->b, done);
}
