/* map_tiles.c - maps that read a transposed matrix, on a CPU: a block has a tile of the result, and reads the matrix
 * along its own rows into shared memory. A row of the result alone would read each element from another line of the
 * cache, all of which share a few of its sets where rows lie a power of two apart. Tiles at the end begin earlier, and
 * compute some elements again. */
#include "ops/write/expression.h"

#include "ops/graph/infer.h"
#include "ops/graph/ops_tuning.h"

enum { LINE = 64, ROWS = 4 /* of lanes in a block */ };

/* The coordinate along which a load has neighbours, if those along a row are in other lines; the row's own one. */
static uint32_t across(const ops_terms *t, const ops_term *term) {
  uint32_t last = t->space.rank - 1, bytes = atlas_bytes((atlas_type)term->type);
  if (term->kind != TERM_LOAD || (bytes != 4 && bytes != 8)) return last;
  if (ops_magnitude(term->form.factor[last]) * bytes < LINE) return last;
  for (uint32_t j = last; j-- > 0;)
    if (term->form.factor[j] == 1 && t->space.size[j] >= LINE) return j;
  return last;
}

term_id ops_tiled_load(const ops_terms *t, uint32_t *row) {
  const ops_group *group = t->group;
  term_id found = 0;
  if (group->plan->for_gpu || t->space.rank < 2 || t->terms.count > OPS_TILE_TERMS) return 0;
  if (t->space.size[t->space.rank - 1] < LINE || ops_count(&t->space) > INT32_MAX) return 0;
  for (uint32_t i = 0; i < group->result_count; i++) /* elements that are computed again must still be there */
    if (ops_is_over_input(group->plan, group->storage_of[group->results[i] - 1] - 1)) return 0;
  for (uint32_t id = 1; id <= t->terms.count; id++) {
    const ops_term *term = ops_term_at(t, id);
    if (term->kind == TERM_GATHER) return 0; /* a fault would be another lane's */
    if (across(t, term) == t->space.rank - 1) continue;
    if (found != 0 || ops_count(&t->space) * atlas_bytes((atlas_type)term->type) < OPS_TILE_BYTES) return 0;
    found = id, *row = across(t, term);
  }
  return found;
}

/* The first element of the block's tile. */
static uint16_t first_of(ops_code *code, atlas_coord coord, uint32_t side, uint64_t size) {
  uint16_t at = ops_launch_index(code, coord);
  atlas_emit(code->builder, ATLAS_OP_mul, code->index_type, 3, atlas_reg(at), atlas_reg(at), atlas_bits(side));
  atlas_emit(code->builder, ATLAS_OP_min, code->index_type, 3, atlas_reg(at), atlas_reg(at),
             ops_scalar_of(code, code->index_type, size - side));
  return at;
}

/* a + factor * b */
static uint16_t sum(ops_code *code, uint16_t a, uint32_t factor, uint16_t b) {
  uint16_t to = ops_register(code);
  atlas_emit(code->builder, ATLAS_OP_mad, code->index_type, 4, atlas_reg(to), atlas_reg(b), atlas_bits(factor),
             atlas_reg(a));
  return to;
}

/* Lanes lie along `fast`, and go over `slow`. */
static void turn(ops_code *code, uint32_t fast, uint16_t fast_at, uint32_t slow, uint16_t slow_at) {
  ops_forget(code, 1u << fast | 1u << slow);
  code->variable[fast] = fast_at, code->variable[slow] = slow_at;
  code->displaced = slow;
}

void ops_store_tiles(ops_code *code, const term_id *roots, const ops_form *places, term_id load, uint32_t row) {
  const ops_shape *space = &code->terms->space;
  atlas_type type = (atlas_type)ops_term_at(code->terms, load)->type;
  uint32_t last = space->rank - 1, side = 256 / atlas_bytes(type), order[HG_MAX_RANK], count = 0;
  uint64_t columns = space->size[last], rows = space->size[row];
  ops_step *step = code->step;
  atlas_builder_block(code->builder, side, ROWS, 1);
  step->lanes = 0, step->block[0] = side, step->block[1] = ROWS, step->block[2] = 1;
  step->grid[0] = (uint32_t)((columns + side - 1) / side), step->grid[1] = (uint32_t)((rows + side - 1) / side);
  step->grid[2] = (uint32_t)(ops_count(space) / columns / rows);
  uint16_t tile = atlas_builder_shared(code->builder, "tile", type, side * (side + 1));
  uint16_t x = ops_launch_index(code, ATLAS_COORD_LANE_X), y = ops_launch_index(code, ATLAS_COORD_LANE_Y);
  uint16_t column = first_of(code, ATLAS_COORD_BLOCK_X, side, columns);
  uint16_t first = first_of(code, ATLAS_COORD_BLOCK_Y, side, rows);
  for (uint32_t i = 0; i < last; i++)
    if (i != row) order[count++] = i;
  if (count > 0) ops_split_over(code, ops_launch_index(code, ATLAS_COORD_BLOCK_Z), order, count);
  for (int is_read = 0; is_read < 2; is_read++) {
    uint16_t own = is_read ? sum(code, y, side + 1, x) : sum(code, x, side + 1, y);
    if (is_read) atlas_emit(code->builder, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
    if (is_read) turn(code, last, sum(code, column, 1, x), row, sum(code, first, 1, y));
    else turn(code, row, sum(code, first, 1, x), last, sum(code, column, 1, y));
    for (uint32_t k = 0; k < side; k += ROWS) {
      ops_forget(code, 1u << last | 1u << row);
      code->displacement = k;
      atlas_operand at = atlas_mem_reg(tile, own, is_read ? k : (int64_t)k * (side + 1));
      if (is_read) {
        code->registers[load] = ops_register(code);
        atlas_emit(code->builder, ATLAS_OP_lds, type, 2, atlas_reg(code->registers[load]), at);
        ops_store_results(code, roots, places);
      } else atlas_emit(code->builder, ATLAS_OP_sts, type, 2, at, atlas_reg(ops_value(code, load)));
    }
  }
  code->displaced = OPS_MAX_VARIABLES;
}
