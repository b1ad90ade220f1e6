/* run_kernel.c - launches of machine code: each tile runs the kernel's steps in order, and a region once for each run
 * of lanes in the tile. */
#include "backend/cpu/native/native_kernel.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "base/error.h"

#include <stddef.h>
#include <string.h>

/* Offsets in a worker's scratch memory: context, rows of the tile, lanes that have not ended, steps left. */
typedef struct layout {
  size_t rows, alive, steps, end;
} layout;

static size_t align(size_t n) { return (n + 63) / 64 * 64; }

static layout layout_of(const hg_native *native, int is_block_tile) {
  layout l;
  l.rows = align(offsetof(native_context, place) + native->program->symbols.count * sizeof(native_place));
  l.alive = l.rows + align(native->row_bytes);
  int keeps = is_block_tile && native->vector->loses_lanes;
  l.steps = l.alive + (keeps ? align(CPU_TILE_LANES + CPU_CHUNK) : 0);
  l.end = l.steps + (keeps ? (CPU_TILE_LANES + CPU_CHUNK) * sizeof(uint64_t) : 0);
  return l;
}

/* ---- a worker begins --------------------------------------------------------------------------------------------- */

static void set_places(native_context *c, const cpu_worker *w) {
  const cpu_launch *run = w->run;
  c->has_far = 0;
  for (size_t i = 0; i < run->program->symbols.count; i++) {
    const cpu_binding *binding = &w->binding[i];
    uint64_t extent = binding->extent, bits = run->launch->arguments[i].bits;
    if (bits != 0) bits = hg_native_widen(atlas_symbol_at(run->program, i)->type, bits);
    c->place[i] = (native_place){binding->memory, extent, extent < NATIVE_INDEX_LIMIT ? extent : NATIVE_INDEX_LIMIT,
                                 bits, w->is_own[i], 0};
    c->has_far |= extent > NATIVE_INDEX_LIMIT;
  }
}

/* The lanes in full vectors. A vector has a power of two of lanes. */
static uint64_t full_vectors(const hg_native *native, uint64_t lanes) {
  uint64_t most = native->target->lanes - 1u;
  return (lanes + most) & ~most;
}

/* Finds the lanes for which every [x + lane + d] is in bounds. They begin with the first lane of a vector, so that
 * stores stay aligned. */
static void find_fast_lanes(native_context *c, const hg_native *native) {
  const native_lane_access *accesses = native->lane_accesses.data;
  uint64_t low = 0, high = INT64_MAX;
  for (size_t i = 0; i < native->lane_accesses.count; i++) {
    int64_t d = accesses[i].displacement;
    uint64_t extent = c->place[accesses[i].symbol].extent;
    uint64_t back = d < 0 ? 0 - (uint64_t)d : 0, on = d > 0 ? (uint64_t)d : 0;
    if (back > low) low = back;
    uint64_t end = extent + back < on ? 0 : extent + back - on;
    if (end < high) high = end;
  }
  c->fast_first = full_vectors(native, low);
  c->fast_end = high;
}

/* 1 if stores that bypass the caches are aligned when groups begin at multiples of a vector. */
static int is_aligned(const native_context *c, const hg_native *native) {
  const native_lane_access *accesses = native->lane_accesses.data;
  for (size_t i = 0; i < native->lane_accesses.count; i++) {
    const native_place *place = &c->place[accesses[i].symbol];
    if (!accesses[i].may_stream) continue;
    uint32_t bytes = atlas_bytes((atlas_type)atlas_symbol_at(native->program, accesses[i].symbol)->type);
    uint64_t first = (uint64_t)(uintptr_t)place->memory + (uint64_t)accesses[i].displacement * bytes;
    if (first % native->target->vector_bytes != 0) return 0;
  }
  return 1;
}

/* Fills in the coordinates of a block's lanes: see native_build.coordinate_offset. */
static void fill_coordinates(native_context *c, const uint32_t *block) {
  uint32_t *rows = (uint32_t *)(void *)(c->rows + c->native->coordinate_offset), i = 0;
  const size_t length = CPU_TILE_LANES + CPU_CHUNK;
  for (uint32_t z = 0; z < block[2]; z++)
    for (uint32_t y = 0; y < block[1]; y++)
      for (uint32_t x = 0; x < block[0]; x++, i++) {
        rows[i] = x;
        rows[length + i] = y;
        rows[2 * length + i] = z;
      }
}

static int run_step(native_context *c, uint32_t number);

/* Sets coordinates that are the same in the whole launch. Clearing and setting unused fields would be a fair part of a
 * small launch: if tiles are blocks, the rest is set with each block (set_block_coordinates, begin_run). */
static void set_launch_coordinates(native_context *c, const cpu_launch *run) {
  if (!run->is_block_tile) {
    if (!run->vector->sees_coordinates) return;
    memset(c->coordinate, 0, sizeof c->coordinate);
  }
  for (int d = 0; d < 3; d++) {
    c->coordinate[ATLAS_COORD_BLOCK_SIZE_X + d] = run->block[d];
    c->coordinate[ATLAS_COORD_GRID_SIZE_X + d] = run->grid[d];
  }
  c->special[ATLAS_REG_BLOCK_SIZE - ATLAS_REG_BLOCK_LANE] = run->block[0];
}

/* The lanes of a block that straight-line code exists for; 0: there is none. */
static uint64_t straight_lanes(const hg_native *straight, const cpu_launch *run) {
  if (straight == NULL || memcmp(run->block, native_block(run->program), sizeof run->block) != 0) return 0;
  return straight->sees_lanes && hg_cpu_run_length(run) < straight->full_lanes ? 0 : straight->full_lanes;
}

static const atomic_uint never; /* for launches that nobody can cancel */

/* Fields that are not set here are set with each tile or run of lanes. */
static void begin_worker(cpu_worker *w) {
  const hg_native *native = w->run->kernel;
  layout l = layout_of(native, w->run->is_block_tile);
  native_context *c = (native_context *)(void *)w->scratch;
  set_launch_coordinates(c, w->run);
  c->straight_lanes = straight_lanes(native->straight, w->run);
  c->checked_blocks = 0;
  c->knows_steps = 0;
  c->cancels = w->run->launch->cancels != NULL ? w->run->launch->cancels : &never;
  c->cancel_number = w->run->launch->cancel_number;
  c->help = hg_native_help;
  c->step = run_step;
  c->worker = w;
  c->native = native;
  c->rows = w->scratch + l.rows;
  c->phase = w->run->launch->phase;
  w->alive = w->scratch + l.alive;
  w->steps = (uint64_t *)(void *)(w->scratch + l.steps);
  if (native->steps.count > 1) w->alive = c->rows + native->alive_offset;
  set_places(c, w);
  find_fast_lanes(c, native);
  if (native->keeps_coordinates) fill_coordinates(c, w->run->block);
  c->streams = native->streams && w->run->lanes * native->moved_bytes >= native->stream_bytes && is_aligned(c, native);
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

typedef union entry_of_code { /* ISO C has no cast from an address of data to one of code */
  const uint8_t *data;
  native_entry code;
} entry_of_code;

static void run_once(native_context *c, const native_step *step) {
  entry_of_code entry = {c->native->code + step->entry};
  entry.code(c, 0, 0, 0);
}

/* At the end of a region its new block-uniform values replace the old ones. */
static void commit_block_uniform(const native_context *c, const native_step *step) {
  for (uint32_t i = step->end; i-- > step->first;) {
    const vector_insn *insn = vector_insn_at(c->native->vector, i);
    if (!hg_native_is_live_out_move(insn, c->native->locations)) return;
    uint8_t *at = c->rows + c->native->locations[insn->d].offset;
    if (c->native->locations[insn->d].is_uniform)
      memcpy(at, at + NATIVE_BLOCK_UNIFORM_BYTES, NATIVE_BLOCK_UNIFORM_BYTES);
  }
}

static void run_region(native_context *c, const native_step *step, uint64_t first, uint64_t end) {
  entry_of_code entry = {c->native->code + step->entry};
  uint64_t low = c->fast_first < end ? c->fast_first : end, high = c->fast_end < end ? c->fast_end : end;
  if (first < low) {
    entry.code(c, first, low, first);
    first = low;
  }
  if (c->streams && full_vectors(c->native, first) == first) entry.data = c->native->code + step->stream_entry;
  if (first < end) entry.code(c, first, end, high < first ? first : high);
}

/* Of lanes from `first` on, in a linear launch: its block, and where that ends. */
static uint64_t begin_linear_block(native_context *c, uint64_t first) {
  uint64_t length = c->worker->run->block[0], block = first / length;
  c->coordinate[ATLAS_COORD_BLOCK_X] = block;
  c->coordinate[ATLAS_COORD_LANE_X] = 0 - block * length;
  return (block + 1) * length;
}

/* The same of a row: the program reads no coordinates in blocks. */
static uint64_t begin_row(native_context *c, uint64_t first, uint64_t width, uint64_t height) {
  uint64_t row = first / width;
  c->coordinate[ATLAS_COORD_GLOBAL_X] = 0 - row * width;
  c->coordinate[ATLAS_COORD_GLOBAL_Y] = row % height;
  c->coordinate[ATLAS_COORD_GLOBAL_Z] = row / height;
  return (row + 1) * width;
}

/* Begins a run of lanes at `first`; returns where it ends at the latest. */
static uint64_t begin_part(native_context *c, uint64_t first) {
  const cpu_launch *run = c->worker->run;
  const hg_native *native = c->native;
  if (native->row_length != VECTOR_NONE) return begin_row(c, first, c->place[native->row_length].scalar, UINT64_MAX);
  if (!native->vector->sees_coordinates) return UINT64_MAX;
  if (run->launch->lanes != 0) return begin_linear_block(c, first);
  return begin_row(c, first, run->grid[0] * run->block[0], run->grid[1] * run->block[1]);
}

/* Runs a region on a tile that is no block: as one run of lanes or, if the program reads coordinates, one for each
 * block, or row of a grid. */
static void run_linear(native_context *c, const native_step *step, uint64_t lanes) {
  const cpu_worker *w = c->worker;
  uint64_t first = w->first, end = first + lanes;
  c->lane_in_tile = 0 - first;
  hg_native_find_noted(c);
  while (first < end) {
    uint64_t next = begin_part(c, first);
    if (next > end) next = end;
    run_region(c, step, first, next);
    first = next;
  }
}

/* Begins run number `row` of the tile. Its first lane has the number `in_tile` in the tile and the global number
 * `first`. */
static void begin_run(native_context *c, uint64_t row, uint64_t in_tile, uint64_t first) {
  const uint32_t *block = c->worker->run->block;
  c->lane_in_tile = in_tile - first;
  hg_native_find_noted(c);
  c->coordinate[ATLAS_COORD_LANE_X] = 0 - first;
  c->coordinate[ATLAS_COORD_LANE_Y] = row % block[1];
  c->coordinate[ATLAS_COORD_LANE_Z] = row / block[1];
  for (int d = 0; d < 3; d++)
    c->coordinate[ATLAS_COORD_GLOBAL_X + d] =
        c->worker->block_at[d] * block[d] + c->coordinate[ATLAS_COORD_LANE_X + d];
}

/* A block-uniform value as registers hold it. */
static uint64_t block_uniform_value(const native_context *c, const native_location *location) {
  uint64_t bits;
  memcpy(&bits, c->rows + location->offset, sizeof bits);
  return location->is_mask ? bits & 1 : bits;
}

/* The lanes of the tile in which a region has an effect. */
static uint64_t lanes_below_limit(const native_context *c, const native_step *step, uint64_t lanes) {
  if (step->limit == VECTOR_NONE) return lanes;
  const vector_reg *reg = vector_reg_at(c->native->vector, step->limit);
  uint64_t limit = reg->kind == VECTOR_VARIES ? block_uniform_value(c, &c->native->locations[step->limit])
                                              : hg_native_parameter(c, reg);
  return (uint32_t)limit < lanes ? (uint32_t)limit : lanes;
}

/* Runs a region on the runs of a block's lanes along x. */
static void run_runs(native_context *c, const native_step *step, uint64_t lanes) {
  const cpu_launch *run = c->worker->run;
  lanes = lanes_below_limit(c, step, lanes);
  if (!run->is_block_tile) {
    run_linear(c, step, lanes);
    return;
  }
  uint64_t length = hg_cpu_run_length(run);
  if (length > lanes) length = lanes;
  for (uint64_t in_tile = 0; in_tile < lanes; in_tile += length) {
    uint64_t first = hg_cpu_lane(c->worker, in_tile), row = in_tile / length;
    begin_run(c, row, in_tile, first);
    run_region(c, step, first, first + (lanes - in_tile < length ? lanes - in_tile : length));
  }
}

/* ---- what a block does together ---------------------------------------------------------------------------------- */

/* Fills a short row with one value. */
static void repeat(uint64_t *row, uint32_t size, uint64_t bits) {
  const uint64_t ones[9] = {[1] = UINT64_C(0x0101010101010101), [2] = UINT64_C(0x0001000100010001),
                            [4] = UINT64_C(0x0000000100000001), [8] = 1};
  uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size) - 1;
  for (uint32_t i = 0; i < CPU_CHUNK * size / 8; i++) row[i] = (bits & mask) * ones[size];
}

static const void *row_of(const native_context *c, uint32_t r, uint64_t *short_row, uint8_t *step) {
  const vector_reg *reg = vector_reg_at(c->native->vector, r);
  const native_location *location = &c->native->locations[r];
  *step = reg->kind == VECTOR_VARIES && !location->is_uniform;
  if (*step) return c->rows + location->offset;
  uint64_t bits = reg->kind == VECTOR_VARIES ? block_uniform_value(c, location) : hg_native_parameter(c, reg);
  uint32_t size = reg->type == SSA_PREDICATE ? 1 : atlas_bytes((atlas_type)reg->type);
  if (reg->type == SSA_PREDICATE) bits &= 1;
  repeat(short_row, size, bits);
  return short_row;
}

/* A register row with the lane's number in the tile or in the grid. */
static const void *special_row(const native_context *c, const vector_reg *reg, uint64_t lanes, uint64_t *row) {
  for (uint64_t i = 0; i < lanes; i++) {
    if (reg->bits == ATLAS_REG_LANE) row[i] = hg_cpu_lane(c->worker, i);
    else ((uint32_t *)row)[i] = (uint32_t)i;
  }
  return row;
}

static const void *source_row(const native_context *c, uint32_t r, uint64_t lanes, uint64_t *short_row,
                              uint64_t *long_row, uint8_t *step) {
  const vector_reg *reg = vector_reg_at(c->native->vector, r);
  if (!hg_native_is_lane_number(reg)) return row_of(c, r, short_row, step);
  *step = 1;
  return special_row(c, reg, lanes, long_row);
}

static const uint8_t *alive_row(const native_context *c) {
  const hg_vector *v = c->native->vector;
  return v->loses_lanes ? c->rows + c->native->alive_offset : NULL;
}

/* A mask as a row. A group that left a region early has not written its part of the row: its lanes have ended. */
static const uint8_t *mask_row(const native_context *c, uint32_t mask, uint64_t *short_row, uint8_t *step) {
  if (mask == VECTOR_ALL) {
    *step = 1;
    return c->worker->lost > 0 ? alive_row(c) : NULL;
  }
  const uint8_t *alive = alive_row(c);
  uint8_t *row = (uint8_t *)(uintptr_t)row_of(c, mask, short_row, step);
  for (uint64_t i = 0; i < c->lanes && *step && c->worker->lost > 0; i++) row[i] &= alive[i];
  return row;
}

static void run_block_op(native_context *c, const native_step *step, uint64_t lanes) {
  const hg_native *native = c->native;
  const vector_insn *insn = vector_insn_at(native->vector, step->first);
  uint64_t short_rows[4][CPU_CHUNK], long_row[CPU_TILE_LANES]; /* at most one source is a lane's number */
  uint8_t is_row = 1;
  cpu_operands o = {.count = (uint32_t)lanes};
  for (int s = 0; s < 4; s++)
    if (insn->s[s] == VECTOR_ALL) o.s[s] = alive_row(c), o.step[s] = 1;
    else if (insn->s[s] != VECTOR_NONE) o.s[s] = source_row(c, insn->s[s], lanes, short_rows[s], long_row, &o.step[s]);
  if (insn->d != VECTOR_NONE) o.d = c->rows + native->locations[insn->d].offset;
  o.mask = mask_row(c, insn->mask, short_rows[3], &is_row);
  hg_cpu_insn(c->worker, insn, &o);
}

static int any_lane(const native_context *c, const vector_insn *insn, uint64_t lanes) {
  uint64_t short_rows[2][CPU_CHUNK];
  uint8_t steps[2] = {1, 1};
  const uint8_t *rows[2] = {alive_row(c), mask_row(c, insn->mask, short_rows[1], &steps[1])};
  if (insn->s[0] != VECTOR_ALL) rows[0] = row_of(c, insn->s[0], short_rows[0], &steps[0]);
  if (insn->mask == VECTOR_ALL && !steps[0]) return rows[0][0]; /* every lane has the value that the first one has */
  if (rows[1] == NULL && rows[0] != NULL && steps[0]) return memchr(rows[0], 1, lanes) != NULL;
  for (uint64_t i = 0; i < lanes; i++) {
    int first = rows[0] == NULL || rows[0][steps[0] ? i : 0], second = rows[1] == NULL || rows[1][steps[1] ? i : 0];
    if (first && second) return 1;
  }
  return 0;
}

static int takes_jump(const native_context *c, const vector_insn *insn, uint64_t lanes) {
  if (insn->op == VECTOR_JUMP) return 1;
  return any_lane(c, insn, lanes) == (insn->op == VECTOR_JUMP_ANY);
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

static void set_block_coordinates(native_context *c) {
  const cpu_worker *w = c->worker;
  for (int d = 0; d < 3; d++) {
    c->coordinate[ATLAS_COORD_BLOCK_X + d] = w->block_at[d];
    c->block_first[d] = w->block_at[d] * w->run->block[d];
  }
  c->special[ATLAS_REG_BLOCK_INDEX - ATLAS_REG_BLOCK_LANE] = w->block_at[0];
  c->block_class = w->block_index % ATLAS_CLASS_COUNT;
}

/* Sets fields that are the same in all runs of a tile. */
static void begin_tile(native_context *c, uint64_t lanes) {
  const cpu_worker *w = c->worker;
  const cpu_launch *run = w->run;
  if (run->is_block_tile) set_block_coordinates(c);
  c->steps_left = hg_native_steps_given(run->launch->step_limit);
  c->lanes = lanes;
  c->worker->lost = 0;
  if (c->native->steps.count == 1 || !c->native->vector->loses_lanes) return;
  memset(c->rows + c->native->alive_offset, 1, lanes);
  c->knows_steps = 0;
}

static int run_step(native_context *c, uint32_t number) {
  const native_step *step = (const native_step *)c->native->steps.data + number;
  if (step->kind == NATIVE_BLOCK_JUMP) return takes_jump(c, vector_insn_at(c->native->vector, step->first), c->lanes);
  run_block_op(c, step, c->lanes);
  return 0;
}

/* Runs all steps of a block in one call. 0: the lanes need different code, because some are below the first for which
 * [x + lane] is in bounds; or because the tile is several runs of lanes, and vectors cross their ends or a lane's
 * number gives its location. */
static int run_block_code(native_context *c, uint64_t lanes) {
  const cpu_worker *w = c->worker;
  const hg_native *native = c->native;
  entry_of_code entry = {native->code + native->block_entry};
  int is_one_run = hg_cpu_run_length(w->run) >= lanes;
  if (!native->runs_blocks || c->fast_first > w->first) return 0;
  if (!is_one_run && (native->sees_lanes || w->run->block[0] % native->target->lanes != 0)) return 0;
  begin_run(c, 0, 0, w->first);
  uint64_t end = w->first + lanes, fast_end = c->fast_end < w->first ? w->first : c->fast_end < end ? c->fast_end : end;
  int is_in_run = is_one_run || w->run->block[0] % ((uint32_t)native->target->lanes * native->copies) == 0;
  if (!is_in_run && native->has_loops) fast_end = w->first; /* the code for one vector at a time has quicker loops */
  int is_shaped = memcmp(w->run->block, native_block(native->program), sizeof w->run->block) == 0;
  if (native->full_lanes == lanes && is_shaped && fast_end == end) entry.data = native->code + native->full_entry;
  entry.code(c, w->first, end, fast_end);
  return 1;
}

static void clear_shared(const cpu_worker *w, size_t blocks) {
  if (w->run->shared_bytes > 0) memset(w->shared, 0, blocks * w->run->shared_bytes);
}

/* Clears the local arrays of a block's lanes, row by row if the lanes are fewer than the slots. */
static void clear_local(const cpu_worker *w, const hg_native *native, uint64_t lanes) {
  if (native->local_bytes == 0 || !native->vector->sees_local_zeros || native->steps.count == 1) return;
  if (2 * lanes >= native->local_lanes) {
    memset(w->local, 0, (size_t)native->local_bytes * native->local_lanes);
    return;
  }
  for (size_t i = 0; i < native->program->symbols.count; i++) {
    const atlas_symbol *symbol = atlas_symbol_at(native->program, i);
    uint32_t bytes = atlas_bytes((atlas_type)symbol->type);
    for (uint32_t k = 0; k < symbol->count && native->vector->locals[i / 64] >> i % 64 & 1; k++)
      memset(w->binding[i].memory + (size_t)k * native->local_lanes * bytes, 0, lanes * bytes);
  }
}

/* Runs straight-line code for a block that has all its lanes, or for a stack of them, `count` times. Returns how many
 * times it ran: fewer if it bailed out of a block. What makes a block bail out, such as the -inf at a row's end, is
 * often in the next blocks too. */
static uint64_t run_whole(native_context *c, const hg_native *whole, uint64_t lanes, uint64_t count) {
  cpu_worker *w = c->worker;
  const hg_native *native = c->native;
  entry_of_code entry = {whole->code + ((const native_step *)whole->steps.data)->entry};
  c->steps_left = w->run->counts_steps ? w->run->launch->step_limit : UINT64_MAX;
  if (whole->vector->sees_shared) clear_shared(w, (size_t)whole->shape.x * whole->shape.y);
  begin_run(c, 0, 0, w->first);
  c->has_left = 0;
  c->blocks_left = count;
  c->native = whole;
  w->vector = whole->vector;
  entry.code(c, w->first, w->first + lanes, w->first + lanes);
  c->native = native;
  w->vector = native->vector;
  if (!c->has_left) return count;
  if (c->has_left == NATIVE_IS_RARE) c->checked_blocks = CPU_REST_BLOCKS;
  begin_tile(c, lanes);
  return count - c->blocks_left;
}

/* Runs a block that has all its lanes, with [x + lane] in bounds for all of them. */
static int run_straight(native_context *c, uint64_t lanes) {
  const cpu_worker *w = c->worker;
  if (lanes != c->straight_lanes || c->fast_first > w->first || c->fast_end < w->first + lanes) return 0;
  if (c->checked_blocks > 0) {
    c->checked_blocks--;
    return 0;
  }
  return run_whole(c, c->native->straight, lanes, 1) > 0;
}

/* The same for `count` blocks along x from the current one on. */
static uint64_t run_many(cpu_worker *w, uint64_t lanes, uint64_t count) {
  native_context *c = (native_context *)(void *)w->scratch;
  if (lanes != c->straight_lanes || c->checked_blocks > 0) return 0;
  begin_tile(c, lanes);
  return run_whole(c, c->native->straight, lanes, count);
}

/* Runs the blocks of stacks along x and y from the current one on: see cpu_body. Nothing in them reads the numbers of
 * lanes. */
static int run_stack(cpu_worker *w, uint64_t lanes) {
  native_context *c = (native_context *)(void *)w->scratch;
  if (lanes != c->straight_lanes) return 0;
  begin_tile(c, lanes);
  return run_whole(c, c->native->stack, lanes, 1) > 0;
}

static void run_tile(cpu_worker *w, uint64_t lanes) {
  native_context *c = (native_context *)(void *)w->scratch;
  const native_step *steps = c->native->steps.data;
  const hg_vector *v = c->native->vector;
  begin_tile(c, lanes);
  if (run_straight(c, lanes)) return;
  clear_shared(w, 1);
  clear_local(w, c->native, lanes);
  if (run_block_code(c, lanes)) return;
  for (size_t i = 0; i < c->native->steps.count;) {
    const native_step *step = &steps[i++];
    if (step->kind == NATIVE_REGION && step->is_empty) continue;
    if (step->kind == NATIVE_REGION && step->is_once) run_once(c, step);
    else if (step->kind == NATIVE_REGION) {
      c->fewest_left = c->steps_left;
      run_runs(c, step, lanes);
      commit_block_uniform(c, step);
      c->steps_left = c->fewest_left;
      if (c->native->steps.count > 1 && (w->lost == lanes || atlas_is_cancelled(w->run->launch))) return;
    } else if (step->kind == NATIVE_BLOCK_OP) run_block_op(c, step, lanes);
    else if (atlas_is_cancelled(w->run->launch)) return;
    else if (takes_jump(c, vector_insn_at(v, step->first), lanes)) i = step->target;
  }
}

/* Streaming stores, which only x86 code has, need a fence to be ordered with others. One fence serves many blocks,
 * which are short, instead of one in the code of each. */
static void end_part(cpu_worker *w) {
  const native_context *c = (const native_context *)(const void *)w->scratch;
#if defined(__x86_64__)
  if (c->streams) __builtin_ia32_sfence();
#endif
  (void)c;
}

int hg_native_needs_tiles(const hg_vector *vector) {
  return vector->most_steps > 0 && !hg_native_counts_steps(vector);
}

/* 1 if the lanes of a launch are rows that are long enough for the version that divides once a row. */
static int has_rows(const hg_native *native, const atlas_launch *launch) {
  if (native->rows == NULL || launch->lanes == 0 || launch->lanes > UINT32_MAX) return 0;
  return launch->arguments[native->rows->row_length].bits >= CPU_LEAST_ROW;
}

hg_status hg_native_launch(const hg_native *native, atlas_launch *launch) {
  if (has_rows(native, launch)) native = native->rows;
  if (hg_native_needs_tiles(native->vector) && native->vector->most_steps > launch->step_limit)
    return hg_fail(HG_UNSUPPORTED, "machine code without counted steps cannot keep a limit of %llu",
                   (unsigned long long)launch->step_limit);
  int is_block_tile = hg_cpu_is_block_tile(native->vector, launch, 1);
  cpu_body body = {.lane_ps = native->lane_ps,
                   .takes_rows = 1,
                   .clears_shared = 1,
                   .stacked = {native->stack != NULL ? native->stack->shape.x : 1,
                               native->stack != NULL ? native->stack->shape.y : 1},
                   .stack = run_stack,
                   .local_lanes = native->local_lanes,
                   .scratch_bytes = layout_of(native, is_block_tile).end,
                   .begin = begin_worker,
                   .tile = run_tile,
                   .many = native->straight != NULL && native->straight->runs_on ? run_many : NULL,
                   .end = end_part};
  return hg_cpu_run(&body, (void *)(uintptr_t)native, native->kernels, &native->allocator, native->program,
                    native->vector, launch);
}
