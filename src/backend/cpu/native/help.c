/* help.c - instructions that machine code leaves to C. It gathers the operands from saved registers, slots of the frame
 * and register rows, has hg_cpu_insn run the instruction, and writes the results where the code expects them. Values
 * move between vectors and rows one vector at a time; predicates, parameters and uniform values lane by lane. */
#include "backend/cpu/native/native.h"

#include "backend/cpu/engine/rows.h"
#include "backend/cpu/native/native_kernel.h"

#include "atlas/value.h"
#include "base/bytes.h"

#include <string.h>

enum { MOST_LANES = NATIVE_MOST_LANES };

typedef struct group {
  native_frame *frame;
  const hg_native *native;
  const vector_insn *insn;
  uint32_t first, count; /* the lanes of the group that take part */
  uint64_t in_tile;      /* number in the tile of lane `first` */
  uint32_t block;        /* the block of a stack: see coarsen.c */
} group;

/* ---- one lane of a value ----------------------------------------------------------------------------------------- */

static uint8_t *piece_address(const group *g, const native_location *location, uint32_t piece) {
  uint32_t bytes = g->native->target->vector_bytes;
  if (location->kind == NATIVE_REGISTERS) return g->frame->vectors + (size_t)location->reg[piece] * bytes;
  if (location->kind == NATIVE_ROW) return g->frame->context->rows + location->offset;
  return (uint8_t *)g->frame + location->offset + (size_t)piece * bytes;
}

static uint16_t *mask_address(const group *g, const native_location *location, uint32_t copy) {
  if (location->kind == NATIVE_REGISTERS) return (uint16_t *)&g->frame->predicates[location->reg[copy]];
  if (location->kind == NATIVE_ROW) return (uint16_t *)(void *)(g->frame->context->rows + location->offset);
  return (uint16_t *)(void *)((uint8_t *)g->frame + location->offset + (size_t)copy * 8);
}

/* The copy that holds a lane of the group. There are at most four. */
static uint32_t copy_of(const group *g, const native_location *location, uint32_t lane) {
  uint32_t copy = 0;
  if (location->copies == 1) return 0;
  while (lane >= (copy + 1) * g->native->target->lanes) copy++;
  return copy;
}

/* The lane's number in the vector of that copy. A vector has a power of two of lanes. */
static uint32_t in_vector_of(const group *g, uint32_t lane) { return lane & (g->native->target->lanes - 1); }

/* The address of a lane's element; *bytes: its size there. */
static uint8_t *element_address(const group *g, const native_location *location, uint32_t lane, uint32_t size) {
  uint32_t in_vector = in_vector_of(g, lane), half = g->native->target->lanes / 2, part = 0;
  if (size == 8 && in_vector >= half) {
    part = location->parts == 2;
    in_vector -= half;
  }
  return piece_address(g, location, copy_of(g, location, lane) * location->parts + part) +
         (size_t)in_vector * (size == 8 ? 8 : 4);
}

static int is_row(const native_location *location) { return location->kind == NATIVE_ROW && !location->is_uniform; }

static int get_predicate(const group *g, const native_location *location, uint32_t lane) {
  if (is_row(location)) return g->frame->context->rows[location->offset + g->in_tile - g->first + lane] != 0;
  if (location->is_mask) return *mask_address(g, location, copy_of(g, location, lane)) >> in_vector_of(g, lane) & 1;
  uint32_t word;
  memcpy(&word, element_address(g, location, lane, 4), 4);
  return word != 0;
}

static void set_predicate(const group *g, const native_location *location, uint32_t lane, int value) {
  uint32_t bit = in_vector_of(g, lane);
  if (is_row(location)) g->frame->context->rows[location->offset + g->in_tile - g->first + lane] = (uint8_t)value;
  else if (location->is_mask) {
    uint16_t *mask = mask_address(g, location, copy_of(g, location, lane));
    *mask = (uint16_t)((*mask & ~(1u << bit)) | (unsigned)value << bit);
  } else {
    uint32_t word = value ? UINT32_MAX : 0;
    memcpy(element_address(g, location, lane, 4), &word, 4);
  }
}

static uint64_t get_value(const group *g, const native_location *location, uint32_t size, uint32_t lane) {
  if (is_row(location))
    return hg_load_le(g->frame->context->rows + location->offset + (g->in_tile - g->first + lane) * size, size);
  return hg_load_le(element_address(g, location, lane, size), size);
}

static void set_value(const group *g, const native_location *location, uint8_t type, uint32_t lane, uint64_t bits) {
  uint32_t size = atlas_bytes((atlas_type)type);
  if (is_row(location))
    hg_store_le(g->frame->context->rows + location->offset + (g->in_tile - g->first + lane) * size, size, bits);
  else hg_store_le(element_address(g, location, lane, size), size == 8 ? 8 : 4, hg_native_widen(type, bits));
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

uint64_t hg_native_parameter(const native_context *context, const vector_reg *reg) {
  switch (reg->kind) {
  case VECTOR_CONSTANT: return reg->bits;
  case VECTOR_SCALAR: return context->place[reg->bits].scalar;
  default: return context->special[reg->bits - ATLAS_REG_BLOCK_LANE];
  }
}

static uint64_t special_of(const group *g, const vector_reg *reg, uint32_t lane) {
  if (reg->bits == ATLAS_REG_LANE) return g->frame->lane + lane;
  return g->in_tile - g->first + lane;
}

static uint64_t value_of(const group *g, uint32_t r, uint32_t lane);

/* An index sum, which accesses compute by themselves. No other value without a location is read. */
static uint64_t sum_of(const group *g, const vector_reg *reg, uint32_t lane) {
  const vector_insn *insn = vector_insn_at(g->native->vector, reg->first);
  if (insn->op != ATLAS_OP_add) return 0;
  return (uint32_t)(value_of(g, insn->s[0], lane) + value_of(g, insn->s[1], lane));
}

static uint64_t element_of(const group *g, const vector_reg *reg, uint32_t lane) {
  const vector_insn *load = vector_insn_at(g->native->vector, reg->first);
  uint64_t index = value_of(g, load->s[0], lane) + load->bits;
  return hg_load_le(g->frame->context->place[load->symbol].memory + index * sizeof(uint32_t), sizeof(uint32_t));
}

static uint64_t value_of(const group *g, uint32_t r, uint32_t lane) {
  const vector_reg *reg = vector_reg_at(g->native->vector, r);
  const native_location *location = &g->native->locations[r];
  if (hg_native_is_lane_number(reg)) return special_of(g, reg, lane);
  if (reg->kind != VECTOR_VARIES) return hg_native_parameter(g->frame->context, reg);
  if (location->kind == NATIVE_NOWHERE) return sum_of(g, reg, lane);
  if (location->kind == NATIVE_ELEMENTS) return element_of(g, reg, lane);
  if (reg->type == SSA_PREDICATE) return (uint64_t)get_predicate(g, location, lane);
  return get_value(g, location, hg_cpu_element_bytes(reg->type), lane);
}

/* 1 if a value has a vector of its own for each copy, in a register or a slot. */
static int is_vectors(const group *g, uint32_t r) {
  const native_location *location = &g->native->locations[r];
  if (vector_reg_at(g->native->vector, r)->kind != VECTOR_VARIES || location->is_uniform) return 0;
  return location->kind == NATIVE_REGISTERS || location->kind == NATIVE_SLOT;
}

/* The lanes of the group in one vector, from the group's lane `at` on. Vectors begin where the group does. */
static uint32_t lanes_of_vector(const group *g, uint32_t at) {
  uint32_t lanes = g->native->target->lanes;
  return g->count - at < lanes ? g->count - at : lanes;
}

/* Copies `count` elements from a vector: 64-bit ones from two registers, one after the other as the lanes are; narrow
 * ones have 32 bits each. All machines that this code runs on are little-endian. */
static void copy_from_vector(const group *g, const native_location *location, uint32_t copy, uint8_t *row,
                             uint32_t size, uint32_t count) {
  uint32_t half = g->native->target->lanes / 2, low = count < half ? count : half, words[MOST_LANES];
  uint16_t u16[MOST_LANES];
  if (size == 8) {
    memcpy(row, piece_address(g, location, 2 * copy), (size_t)low * 8);
    memcpy(row + (size_t)low * 8, piece_address(g, location, 2 * copy + 1), (size_t)(count - low) * 8);
    return;
  }
  if (size == 4) {
    memcpy(row, piece_address(g, location, copy), (size_t)count * 4);
    return;
  }
  memcpy(words, piece_address(g, location, copy), (size_t)count * 4);
  if (size == 1)
    for (uint32_t i = 0; i < count; i++) row[i] = (uint8_t)words[i];
  else {
    for (uint32_t i = 0; i < count; i++) u16[i] = (uint16_t)words[i];
    memcpy(row, u16, (size_t)count * 2);
  }
}

static void fill_row(const group *g, uint32_t r, uint8_t *row) {
  const vector_reg *reg = vector_reg_at(g->native->vector, r);
  const native_location *location = &g->native->locations[r];
  uint32_t size = hg_cpu_element_bytes(reg->type), lanes = g->native->target->lanes;
  if (reg->kind == VECTOR_VARIES && is_row(location)) {
    memcpy(row, g->frame->context->rows + location->offset + g->in_tile * size, (size_t)g->count * size);
  } else if (is_vectors(g, r) && reg->type != SSA_PREDICATE) {
    for (uint32_t i = 0; i < g->count; i += lanes)
      copy_from_vector(g, location, copy_of(g, location, g->first + i), row + (size_t)i * size, size,
                       lanes_of_vector(g, i));
  } else {
    for (uint32_t i = 0; i < g->count; i++) hg_store_le(row + (size_t)i * size, size, value_of(g, r, g->first + i));
  }
}

/* Fills a row with the mask of lanes that exist and have not ended. */
static void fill_alive(const group *g, uint8_t *row) {
  const hg_vector *v = g->native->vector;
  const native_location *location = &g->native->locations[v->regs.count];
  for (uint32_t i = 0; i < g->count; i++) row[i] = !v->loses_lanes || get_predicate(g, location, g->first + i);
}

static void store_alive(const group *g, const uint8_t *row) {
  const native_location *location = &g->native->locations[g->native->vector->regs.count];
  for (uint32_t i = 0; i < g->count; i++) set_predicate(g, location, g->first + i, row[i]);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void set_lane(const group *g, uint32_t r, uint32_t lane, uint64_t bits) {
  const vector_reg *reg = vector_reg_at(g->native->vector, r);
  if (reg->type == SSA_PREDICATE) set_predicate(g, &g->native->locations[r], lane, bits != 0);
  else set_value(g, &g->native->locations[r], reg->type, lane, bits);
}

/* A uniform result is one vector. All of its lanes get the value of any lane in the mask. */
static void set_uniform(const group *g, const uint8_t *mask, const uint8_t *row, uint32_t size) {
  uint32_t from = 0;
  while (mask != NULL && from + 1 < g->count && !mask[from]) from++;
  uint64_t bits = hg_load_le(row + (size_t)from * size, size);
  for (uint32_t lane = 0; lane < g->native->target->lanes; lane++) set_lane(g, g->insn->d, lane, bits);
}

/* See copy_from_vector. */
static void copy_to_vector(const group *g, uint8_t type, const native_location *location, uint32_t copy,
                           const uint8_t *row, uint32_t count) {
  uint32_t half = g->native->target->lanes / 2, low = count < half ? count : half, words[MOST_LANES];
  uint32_t size = hg_cpu_element_bytes(type);
  int is_signed = atlas_kind((atlas_type)type) == ATLAS_KIND_SINT;
  uint16_t u16[MOST_LANES];
  if (size == 8) {
    memcpy(piece_address(g, location, 2 * copy), row, (size_t)low * 8);
    memcpy(piece_address(g, location, 2 * copy + 1), row + (size_t)low * 8, (size_t)(count - low) * 8);
    return;
  }
  if (size == 4) {
    memcpy(piece_address(g, location, copy), row, (size_t)count * 4);
    return;
  }
  if (size == 1) {
    for (uint32_t i = 0; i < count; i++) words[i] = is_signed ? (uint32_t)(int8_t)row[i] : row[i];
  } else {
    memcpy(u16, row, (size_t)count * 2);
    for (uint32_t i = 0; i < count; i++) words[i] = is_signed ? (uint32_t)(int16_t)u16[i] : u16[i];
  }
  memcpy(piece_address(g, location, copy), words, (size_t)count * 4);
}

static void set_results(const group *g, const uint8_t *mask, const uint8_t *row) {
  uint32_t d = g->insn->d, lanes = g->native->target->lanes;
  uint8_t type = vector_reg_at(g->native->vector, d)->type;
  uint32_t size = hg_cpu_element_bytes(type);
  const native_location *location = &g->native->locations[d];
  if (location->kind == NATIVE_NOWHERE) return;
  if (location->is_uniform) set_uniform(g, mask, row, size);
  else if (is_row(location))
    memcpy(g->frame->context->rows + location->offset + g->in_tile * size, row, (size_t)g->count * size);
  else if (type != SSA_PREDICATE)
    for (uint32_t i = 0; i < g->count; i += lanes)
      copy_to_vector(g, type, location, copy_of(g, location, g->first + i), row + (size_t)i * size,
                     lanes_of_vector(g, i));
  else
    for (uint32_t i = 0; i < g->count; i++) set_lane(g, d, g->first + i, hg_load_le(row + (size_t)i * size, size));
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static group group_of(native_frame *frame, uint64_t request) {
  const hg_native *native = frame->context->native;
  uint32_t copy = (uint32_t)(request >> 32), lanes = native->target->lanes;
  group g = {.frame = frame, .native = native, .insn = vector_insn_at(native->vector, (uint32_t)request)};
  g.count = (uint32_t)frame->count;
  if (copy > 0 && native->slices > 0) {
    g.block = (copy - 1) / native->slices;
    copy -= g.block * native->slices;
  }
  if (copy > 0) {
    g.first = (copy - 1) * lanes;
    g.count = g.count - g.first < lanes ? g.count - g.first : lanes;
  }
  g.in_tile = frame->lane + frame->context->lane_in_tile + g.first;
  return g;
}

/* A group that is not a whole block runs as a tile of its own: the worker's rows of ended lanes and of steps hold at
 * most a block. `alive`: NULL if the instruction ends no lane. */
static void run_group_as_tile(const group *g, cpu_worker *w, cpu_operands *o, uint8_t *alive) {
  native_context *context = g->frame->context;
  int has_tile_slots = g->native->steps.count > 1;
  if (w->run->is_block_tile) {
    w->slot = has_tile_slots ? 0 : g->first - g->in_tile;
    if (alive != NULL) memcpy(w->alive + g->in_tile, alive, g->count);
    hg_cpu_insn(w, g->insn, o);
    if (alive != NULL) memcpy(alive, w->alive + g->in_tile, g->count);
    return;
  }
  uint64_t first = w->first;
  w->first += g->in_tile;
  w->alive = alive;
  w->steps = context->steps + g->first;
  w->slot = g->first;
  o->first = 0;
  hg_cpu_insn(w, g->insn, o);
  w->first = first;
}

/* 1 if the result is block-uniform, so that any lane computes it and the frame's lanes may lie outside the tile: see
 * native_step.is_once. */
static int is_block_uniform_result(const group *g) {
  const vector_insn *insn = g->insn;
  if (insn->d == VECTOR_NONE || vector_reg_at(g->native->vector, insn->d)->uniform != NATIVE_BLOCK_UNIFORM) return 0;
  return !(atlas_op_flags(insn->op) & ATLAS_LOAD);
}

static void run_insn(group *g) {
  uint64_t sources[4][MOST_LANES], result[MOST_LANES];
  uint8_t mask[MOST_LANES] = {0}, alive[MOST_LANES] = {0}; /* no lane behind the last one takes part */
  cpu_worker *w = g->frame->context->worker;
  const vector_insn *insn = g->insn;
  cpu_operands o = {.count = g->count, .first = g->in_tile, .mask = insn->mask == VECTOR_ALL ? NULL : mask};
  int loses = g->native->vector->loses_lanes && !is_block_uniform_result(g);
  for (int s = 0; s < 4; s++) {
    if (insn->s[s] == VECTOR_NONE) continue;
    if (insn->s[s] == VECTOR_ALL) fill_alive(g, (uint8_t *)sources[s]);
    else fill_row(g, insn->s[s], (uint8_t *)sources[s]);
    o.s[s] = sources[s];
    o.step[s] = 1;
  }
  if (insn->mask != VECTOR_ALL) fill_row(g, insn->mask, mask);
  if (loses) fill_alive(g, alive);
  if (loses && insn->mask == VECTOR_ALL) o.mask = memcpy(mask, alive, g->count);
  if (insn->d != VECTOR_NONE) {
    if (insn->mask != VECTOR_ALL) fill_row(g, insn->d, (uint8_t *)result); /* lanes outside the mask keep their value */
    o.d = result;
  }
  run_group_as_tile(g, w, &o, loses ? alive : NULL);
  if (loses) store_alive(g, alive);
  if (insn->d != VECTOR_NONE) set_results(g, o.mask, (uint8_t *)result);
}

/* Runs an instruction of another block of a stack than the worker's. Its shared memory lies at another displacement. */
static void run_insn_in_block(group *g) {
  cpu_worker *w = g->frame->context->worker;
  const cpu_launch *run = w->run;
  vector_insn insn = *g->insn;
  int is_access = vector_is_primitive(insn.op) && (atlas_op_flags(insn.op) & (ATLAS_LOAD | ATLAS_STORE)) != 0;
  int is_shared = is_access && !(insn.symbol & SSA_LIBRARY) &&
                  atlas_symbol_at(run->program, insn.symbol)->kind == ATLAS_SYMBOL_SHARED;
  size_t shared_bytes = (size_t)g->block * run->shared_bytes;
  uint64_t first = w->first;
  uint64_t x = g->block % run->stacked[0], y = g->block / run->stacked[0];
  w->block_at[0] += x;
  w->block_at[1] += y;
  w->first += (y * run->block[1] * run->grid[0] + x) * run->block[0];
  if (is_shared) {
    w->binding[insn.symbol].memory += shared_bytes;
    insn.bits -= shared_bytes / atlas_bytes((atlas_type)insn.type);
  }
  g->insn = &insn;
  run_insn(g);
  if (is_shared) w->binding[insn.symbol].memory -= shared_bytes;
  w->first = first;
  w->block_at[0] -= x;
  w->block_at[1] -= y;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static uint64_t *steps_of(const group *g) {
  native_context *context = g->frame->context;
  return context->worker->run->is_block_tile ? context->worker->steps + g->in_tile : context->steps;
}

/* Subtracts the steps that machine code has counted from what the lanes have left. */
static void settle_steps(const group *g) {
  const cpu_worker *w = g->frame->context->worker;
  uint64_t *steps = steps_of(g);
  native_context *context = g->frame->context;
  int is_of_tile = w->run->is_block_tile && g->native->steps.count > 1; /* the tile's other regions go on counting from
                                                                           these */
  uint64_t *first = is_of_tile ? w->steps : steps, count = is_of_tile ? context->lanes : g->count;
  for (uint64_t i = 0; i < count && !context->knows_steps; i++) first[i] = w->run->launch->step_limit;
  context->knows_steps = 1;
  for (int k = 0; k < 2; k++) {
    uint32_t counted = g->insn->s[k], lanes = g->native->target->lanes;
    const native_location *location = &g->native->locations[counted];
    for (uint32_t i = 0; i < g->count; i++) steps[i] -= value_of(g, counted, i);
    if (location->kind == NATIVE_NOWHERE) continue;
    for (uint32_t i = 0; i < (location->is_uniform ? lanes : g->count); i++) set_value(g, location, ATLAS_u32, i, 0);
  }
}

static void grant_steps(const group *g) {
  const uint64_t *steps = steps_of(g);
  uint8_t alive[MOST_LANES];
  uint64_t fewest = UINT64_MAX;
  fill_alive(g, alive);
  for (uint32_t i = 0; i < g->count; i++)
    if (alive[i] && steps[i] < fewest) fewest = steps[i];
  g->frame->steps_left = hg_native_steps_given(fewest);
}

void hg_native_find_noted(native_context *context) {
  uint64_t noted = hg_cpu_noted(context->worker);
  context->noted = noted == UINT64_MAX || context->has_far ? UINT64_MAX : noted - context->lane_in_tile;
}

void hg_native_help(native_frame *frame, uint64_t request) {
  group g = group_of(frame, request);
  if (g.insn->op == NATIVE_COUNT) { /* the block ends; the fault is noted for its first lane, the lowest */
    hg_cpu_step_fault(frame->context->worker, g.insn, 0);
    return;
  }
  int counts = g.insn->op == VECTOR_STEP && hg_native_counts_steps(g.native->vector);
  if (counts) settle_steps(&g);
  if (g.block == 0) run_insn(&g);
  else run_insn_in_block(&g);
  if (counts) grant_steps(&g);
  hg_native_find_noted(frame->context);
}

uint64_t hg_native_widen(uint8_t type, uint64_t bits) {
  if (type == ATLAS_i8 || type == ATLAS_i16) return (uint32_t)atlas_to_i64((atlas_type)type, bits);
  return bits;
}
