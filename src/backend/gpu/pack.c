/* pack.c - makes the argument block and the grid of a launch; reads a fault record. */
#include "backend/gpu/gpu.h"
#include "backend/gpu/gpu_tuning.h"

#include "atlas/arith.h"
#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

#define MAX_BLOCKS INT32_MAX /* of a grid in x */
enum { VECTOR_BYTES = 16, POOL_ALIGNMENT = 16 };
enum {
  MULTIPROCESSOR_THREADS = 2048, /* of a multiprocessor at full occupancy */
  SHARED_STEP = 128,   /* the unit in which shared memory is allocated */
  SHARED_TAKEN = 1024  /* taken by the driver in addition to what a block requests */
};

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* Lanes below this number are in bounds in all of the vector version's accesses to the buffer. */
static uint64_t limit_of(const hg_gpu_parameter *parameter, uint64_t address, uint64_t extent) {
  if (parameter->vector && address % VECTOR_BYTES != 0) return 0;
  uint64_t reach = (uint64_t)parameter->reach - 1;
  return extent > reach ? extent - reach : 0;
}

static uint64_t reciprocal_of(const hg_gpu_parameter *parameter, uint64_t divisor) {
  uint64_t most = parameter->element_shift == 3 ? UINT64_MAX : UINT32_MAX;
  return (divisor & most) != 0 ? most / (divisor & most) : most;
}

static void pack_argument(const hg_gpu_parameter *parameter, const atlas_argument *argument,
                          const hg_gpu_places *places, uint8_t *block) {
  hg_gpu_header *header = (hg_gpu_header *)(void *)block;
  uint64_t *to = (uint64_t *)(void *)(block + parameter->offset);
  uint64_t address = (uint64_t)(uintptr_t)argument->span.memory, extent;
  switch (parameter->kind) {
  case ATLAS_SYMBOL_BUFFER:
    extent = argument->span.byte_count >> parameter->element_shift;
    to[0] = address;
    to[1] = extent;
    if (parameter->reach > 0 && limit_of(parameter, address, extent) < header->fast_lanes)
      header->fast_lanes = limit_of(parameter, address, extent);
    break;
  case ATLAS_SYMBOL_POOL:
    to[0] = address;
    to[1] = argument->span.byte_count;
    to[2] = argument->span.byte_count / header->block_count / POOL_ALIGNMENT * POOL_ALIGNMENT;
    break;
  case ATLAS_SYMBOL_TABLE: to[0] = places->table; break;
  default:
    to[0] = argument->bits;
    if (parameter->divides) to[1] = reciprocal_of(parameter, argument->bits);
    break;
  }
}

/* ---- shape ------------------------------------------------------------------------------------------------------- */

static void pack_linear(const atlas_program *program, const atlas_launch *launch, hg_gpu_header *header) {
  enum { USUAL = ATLAS_LINEAR_BLOCK_LANES };
  uint32_t size = atlas_linear_block(program, launch);
  uint64_t last = launch->lanes + size - 1;
  header->lanes = launch->lanes;
  header->block_count = size != USUAL ? last / size : last / USUAL; /* the second is a shift */
  header->grid[0] = header->block_count;
  header->grid[1] = header->grid[2] = 1;
  header->block[0] = size;
  header->block[1] = header->block[2] = 1;
  header->total[0] = launch->lanes;
  header->total[1] = 1;
  header->is_flat = 1;
}

static void pack_grid(const atlas_launch *launch, hg_gpu_header *header) {
  header->lanes = header->block_count = 1;
  for (int d = 0; d < 3; d++) {
    header->grid[d] = launch->grid[d];
    header->block[d] = launch->block[d];
    header->block_count *= launch->grid[d];
    header->lanes *= (uint64_t)launch->grid[d] * launch->block[d];
  }
  for (int d = 0; d < 2; d++) header->total[d] = header->grid[d] * header->block[d];
  header->is_flat = header->lanes == header->total[0];
}

/* The reciprocals of the divisors with which a kernel computes its position. */
static void pack_reciprocals(const hg_gpu_info *info, hg_gpu_header *header) {
  const uint64_t *size = info->observes_block ? header->grid : header->total;
  for (int d = 0; d < 2 && !header->is_flat; d++) header->reciprocal[d] = UINT64_MAX / size[d];
}

static uint64_t tiles_in(const hg_gpu_info *info, uint64_t lanes) {
  return (lanes + (UINT64_C(1) << info->tile_shift) - 1) >> info->tile_shift;
}

/* The tiles of a block: several, so that a thread can load ahead of its arithmetic, as long as GPU_WAVES waves
 * remain. */
static uint64_t tiles_of(const hg_gpu_info *info, uint64_t tiles) {
  uint64_t threads = tiles * info->threads;
  uint64_t enough = (uint64_t)GPU_WAVES * MULTIPROCESSOR_THREADS * info->multiprocessors;
  if (info->packs == 1 || info->multiprocessors == 0) return info->packs;
  if (threads < 2 * enough) return 1;
  return threads >= enough * info->packs ? info->packs : threads / enough;
}

/* Includes a block for the lanes behind the last whole pack. */
static uint64_t vector_blocks(const hg_gpu_info *info, hg_gpu_header *header) {
  uint64_t tile = UINT64_C(1) << info->tile_shift;
  uint64_t alone = header->lanes & (info->lanes_per_thread - 1), whole = header->lanes - alone;
  uint64_t tiles = tiles_in(info, whole), each = tiles_of(info, tiles);
  header->whole_lanes = whole;
  header->block_lanes = (uint32_t)(tile * each);
  return (each == 1 ? tiles : (tiles + each - 1) / each) + (alone != 0);
}

/* ---- blocks at a time -------------------------------------------------------------------------------------------- */

/* The most bytes of a buffer that one block goes over more than once, if each block has a part of its own. */
static uint64_t part_of_block(const hg_gpu_info *info, const atlas_launch *launch, uint64_t blocks) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < info->parameter_count; i++) {
    const hg_gpu_parameter *parameter = &info->parameter[i];
    uint64_t bytes = parameter->again ? launch->arguments[parameter->symbol].span.byte_count / blocks : 0;
    if (bytes > most) most = bytes;
  }
  return most;
}

/* A block finds what it goes over again in the cache as long as all blocks' parts together take at most half of it:
 * what one half of the card's multiprocessors reads may be kept for the other half as well. If that allows fewer blocks
 * than fit, but enough to wait for memory side by side, unused shared memory keeps the others out. */
static uint32_t idle_bytes(const hg_gpu_info *info, const atlas_launch *launch, uint64_t blocks, uint32_t threads) {
  uint64_t part = info->multiprocessors > 0 && blocks > 0 ? part_of_block(info, launch, blocks) : 0;
  if (part == 0) return 0;
  uint64_t at_a_time = info->cache_bytes / 2 / info->multiprocessors / part;
  if (at_a_time * threads < GPU_FEWEST_THREADS || at_a_time * threads >= MULTIPROCESSOR_THREADS) return 0;
  uint64_t each = info->multiprocessor_shared_bytes / at_a_time / SHARED_STEP * SHARED_STEP;
  if (each <= info->shared_bytes + SHARED_TAKEN) return 0;
  each -= SHARED_TAKEN;
  if (each > info->block_shared_bytes) each = info->block_shared_bytes;
  return (uint32_t)each - info->shared_bytes;
}

/* The grid of the blocks that are left. */
static void take_blocks(hg_gpu_launch *out) {
  uint64_t most = MAX_BLOCKS / out->sub_blocks, count = out->left < most ? out->left : most;
  out->blocks = (uint32_t)count * out->sub_blocks;
  out->left -= count;
}

static uint32_t pack_shape(const hg_gpu_info *info, const atlas_launch *launch, hg_gpu_header *header,
                           hg_gpu_launch *out) {
  uint64_t blocks = info->is_lut         ? hg_gpu_lut_blocks(header->lanes, info->multiprocessors)
                    : info->observes_block ? header->block_count
                    : info->vector_only    ? vector_blocks(info, header)
                                           : tiles_in(info, header->lanes);
  uint32_t threads = info->observes_block ? header->block[0] * header->block[1] * header->block[2] : info->threads;
  out->sub_blocks = info->sub_blocks;
  out->left = blocks;
  take_blocks(out);
  out->threads = threads / info->sub_blocks;
  if (info->observes_block) header->block_lanes = threads;
  out->idle_bytes = info->observes_block && info->sub_blocks == 1 ? idle_bytes(info, launch, blocks, threads) : 0;
  uint32_t missing = threads > info->max_threads ? HG_GPU_LARGER_BLOCKS : 0;
  if (info->steps != UINT64_MAX && launch->step_limit < info->steps) missing |= HG_GPU_COUNT_STEPS;
  if (info->vector_only && header->fast_lanes < header->lanes) missing |= HG_GPU_CHECKED;
  return missing;
}

uint32_t hg_gpu_pack(const atlas_program *program, const hg_gpu_info *info, const atlas_launch *launch,
                     const hg_gpu_places *places, void *block, hg_gpu_launch *out) {
  hg_gpu_header *header = block;
  memset(header, 0, sizeof *header);
  if (launch->lanes != 0) pack_linear(program, launch, header);
  else pack_grid(launch, header);
  pack_reciprocals(info, header);
  header->fast_lanes = header->lanes;
  header->fault_record = places->fault_record;
  header->fault_flag = places->fault_flag;
  header->step_limit = launch->step_limit;
  header->boundary = (uint64_t)(uintptr_t)launch->boundary;
  header->resonance = places->resonance;
  header->phase_advance = places->phase_advance;
  header->phase = launch->phase;
  for (uint32_t i = 0; i < info->parameter_count; i++)
    pack_argument(&info->parameter[i], &launch->arguments[info->parameter[i].symbol], places, block);
  return pack_shape(info, launch, header, out);
}

void hg_gpu_next(void *block, hg_gpu_launch *out) {
  hg_gpu_header *header = block;
  header->first += out->blocks / out->sub_blocks;
  header->first_lane = header->first * header->block_lanes;
  take_blocks(out);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

hg_gpu_fault hg_gpu_fault_none(void) { return (hg_gpu_fault){.lane = UINT64_MAX}; }

static int64_t nearest(uint64_t number) { return number > INT64_MAX ? INT64_MAX : (int64_t)number; }

void hg_gpu_fault_read(const atlas_program *program, const atlas_launch *launch, const hg_gpu_fault *record,
                       hg_fault *out) {
  *out = (hg_fault){.kind = HG_FAULT_NONE};
  if (record->lane == UINT64_MAX) return;
  out->kind = (hg_fault_kind)record->kind;
  out->lane = record->lane;
  out->instruction = record->instruction;
  if (record->instruction < program->insns.count) out->line = atlas_insn_at(program, record->instruction)->line;
  out->code = record->code;
  out->index = atlas_index_sum((atlas_type)record->index_type, record->index, record->displacement);
  out->extent = nearest(record->extent);
  if (out->kind == HG_FAULT_STEP_LIMIT) out->index = out->extent = nearest(launch->step_limit);
  const char *name = record->symbol == HG_GPU_PHI_SYMBOL                 ? "phi"
                     : record->symbol < program->symbols.count ? atlas_symbol_at(program, record->symbol)->name
                                                               : "";
  snprintf(out->buffer, sizeof out->buffer, "%s", name);
}
