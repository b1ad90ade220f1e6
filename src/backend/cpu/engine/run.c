/* run.c - the driver of the CPU engines: cuts a launch into tiles, gives tiles to workers, and merges what the workers
 * report. Results do not depend on the number of workers. */
#include "backend/cpu/engine/tally.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "base/error.h"
#include "base/threads.h"

#include <string.h>

enum { ALIGNMENT = 64 }; /* also of written data, so that no two workers write to one cache line */

/* ---- shape ------------------------------------------------------------------------------------------------------- */

/* Bytes of a shared array. */
static uint32_t shared_room(const atlas_symbol *symbol) {
  return (uint32_t)hg_cpu_round_up(symbol->count * atlas_bytes((atlas_type)symbol->type));
}

int hg_cpu_is_block_tile(const hg_vector *v, const atlas_launch *launch, int takes_rows) {
  int sees_grid = v->sees_coordinates && launch->lanes == 0 && (v->needs_blocks || !takes_rows);
  return v->sees_blocks || v->sees_shared || v->has_block_ops || sees_grid;
}

static void shape_blocks(cpu_launch *run) {
  const atlas_launch *launch = run->launch;
  int is_linear = launch->lanes != 0;
  for (int d = 0; d < 3; d++) {
    run->block[d] = is_linear ? 1 : launch->block[d];
    run->grid[d] = is_linear ? 1 : launch->grid[d];
  }
  if (is_linear) {
    run->block[0] = atlas_linear_block(run->program, launch);
    run->grid[0] = (launch->lanes + run->block[0] - 1) / run->block[0];
  }
  run->blocks = run->grid[0] * run->grid[1] * run->grid[2];
}

uint32_t hg_cpu_shared_bytes(const atlas_program *program) {
  uint32_t bytes = 0;
  for (size_t i = 0; i < program->symbols.count; i++) {
    const atlas_symbol *symbol = atlas_symbol_at(program, i);
    if (symbol->kind == ATLAS_SYMBOL_SHARED) bytes += shared_room(symbol);
  }
  return bytes;
}

static int is_accessed(const hg_vector *v, size_t symbol) { return (int)(v->locals[symbol / 64] >> symbol % 64 & 1); }

uint32_t hg_cpu_local_bytes(const atlas_program *program, const hg_vector *v) {
  uint64_t bytes = 0; /* at most ATLAS_MAX_LOCAL_BYTES */
  for (size_t i = 0; i < program->symbols.count; i++)
    if (is_accessed(v, i)) bytes += atlas_local_bytes(atlas_symbol_at(program, i));
  return (uint32_t)bytes;
}

/* A linear launch of a program that sees no blocks has none, which saves small launches the divisions. */
static void find_shape(cpu_launch *run, int takes_rows) {
  const atlas_launch *launch = run->launch;
  const hg_vector *v = run->vector;
  run->is_block_tile = hg_cpu_is_block_tile(v, launch, takes_rows);
  if (launch->lanes == 0 || run->is_block_tile || v->sees_coordinates) shape_blocks(run);
  run->lanes = launch->lanes;
  if (run->lanes == 0) run->lanes = run->blocks * run->block[0] * run->block[1] * run->block[2];
  run->counts_steps = v->most_steps > launch->step_limit;
  if (v->sees_shared) run->shared_bytes = hg_cpu_shared_bytes(run->program);
  int is_stacked = run->is_block_tile && launch->lanes == 0;
  if (!is_stacked || run->grid[0] < run->stacked[0] || run->grid[1] < run->stacked[1])
    run->stacked[0] = run->stacked[1] = 1;
  run->local_bytes = hg_cpu_local_bytes(run->program, v);
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

/* Of 1, 2, 4 or 8. */
static uint32_t log2_of(uint32_t bytes) { return (bytes >> 1) - (bytes >> 3); }

static void set_places(cpu_worker *w) {
  const cpu_launch *run = w->run;
  const uint8_t *constants = run->program->constants.data;
  uint8_t *shared = w->shared, *local = w->local;
  for (size_t i = 0; i < run->program->symbols.count; i++) {
    const atlas_symbol *symbol = atlas_symbol_at(run->program, i);
    const atlas_argument *argument = &run->launch->arguments[i];
    uint32_t bytes = atlas_bytes((atlas_type)symbol->type);
    switch (symbol->kind) {
    case ATLAS_SYMBOL_BUFFER:
      w->binding[i] = (cpu_binding){argument->span.memory, argument->span.byte_count >> log2_of(bytes), NULL};
      break;
    case ATLAS_SYMBOL_SHARED:
      w->binding[i] = (cpu_binding){shared, symbol->count, NULL};
      shared += shared_room(symbol);
      break;
    case ATLAS_SYMBOL_LOCAL:
      w->binding[i] = (cpu_binding){local, symbol->count, NULL};
      if (is_accessed(run->vector, i)) local += atlas_local_bytes(symbol) * run->local_lanes;
      break;
    case ATLAS_SYMBOL_CONST:
      w->binding[i] = (cpu_binding){(uint8_t *)(uintptr_t)constants + symbol->const_offset, symbol->count, NULL};
      break;
    case ATLAS_SYMBOL_TABLE: w->binding[i] = (cpu_binding){NULL, symbol->count, argument->table}; break;
    case ATLAS_SYMBOL_POOL:
      w->binding[i] = (cpu_binding){argument->span.memory, argument->span.byte_count, NULL};
      break;
    default: break;
    }
    w->is_own[i] = symbol->kind == ATLAS_SYMBOL_SHARED || !run->is_shared;
  }
}

static uint64_t round_up(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static uint64_t local_room(const cpu_launch *run) { return round_up((uint64_t)run->local_bytes * run->local_lanes); }

static uint64_t shared_memory(const cpu_launch *run) {
  return round_up((uint64_t)run->shared_bytes * run->stacked[0] * run->stacked[1]);
}

/* The worker is followed in memory by the block's shared memory, local arrays, the engine's scratch and the tallies. */
static void init_worker(cpu_worker *w, const cpu_launch *run, const cpu_body *body) {
  w->run = run;
  w->vector = run->vector;
  w->shared = (uint8_t *)w + round_up(sizeof *w);
  w->local = w->shared + shared_memory(run);
  w->scratch = w->local + local_room(run);
  w->slot = 0;
  w->fault.kind = HG_FAULT_NONE;
  w->phase_advance = 0;
  w->steps = NULL;
  if (run->vector->counts_resonance) memset(w->resonance, 0, sizeof w->resonance);
  set_places(w);
  if (run->tallies != NULL) hg_cpu_begin_tallies(w, w->scratch + round_up(body->scratch_bytes));
  if (body->begin != NULL) body->begin(w);
}

static void merge_results(atlas_launch *launch, const cpu_worker *w) {
  if (w->fault.kind != HG_FAULT_NONE && (launch->fault.kind == HG_FAULT_NONE || w->fault.lane < launch->fault.lane))
    launch->fault = w->fault;
  for (int c = 0; c < ATLAS_CLASS_COUNT && w->run->vector->counts_resonance; c++)
    launch->resonance[c] = (int64_t)((uint64_t)launch->resonance[c] + (uint64_t)w->resonance[c]);
  launch->phase_advance = (launch->phase_advance + w->phase_advance) % ATLAS_PHASE_COUNT;
  if (w->run->tallies != NULL) hg_cpu_merge_tallies(w);
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

static uint64_t piece_lanes(const cpu_body *body) {
  uint64_t lanes = CPU_PIECE_LANES;
  while (lanes > CPU_LEAST_PIECE_LANES && lanes * body->lane_ps > CPU_PIECE_NS * 1000) lanes /= 2;
  return lanes;
}

static void run_lanes(const cpu_body *body, cpu_worker *w, uint64_t first, uint64_t end) {
  uint64_t most = body->tile_lanes != 0 ? body->tile_lanes : CPU_PIECES_A_PART * piece_lanes(body);
  for (; first < end && !atlas_is_cancelled(w->run->launch); first += most) {
    w->first = first;
    body->tile(w, end - first < most ? end - first : most);
  }
}

static void seek_block(cpu_worker *w, uint64_t index) {
  uint64_t rest = index;
  w->block_index = index;
  memset(w->block_at, 0, sizeof w->block_at);
  for (int d = 0; d < 3 && rest > 0; d++) { /* no division for the first block */
    w->block_at[d] = rest % w->run->grid[d];
    rest /= w->run->grid[d];
  }
}

/* Moves on by `count` blocks; only the last may begin a new row of the grid. */
static void next_block(cpu_worker *w, uint64_t count) {
  w->block_index += count;
  for (int d = 0; d < 3; d++, count = 1) {
    if ((w->block_at[d] += count) < w->run->grid[d]) return;
    w->block_at[d] = 0;
  }
}

static void enter_block(const cpu_body *body, cpu_worker *w) {
  const cpu_launch *run = w->run;
  w->first = 0;
  for (int d = 3; d-- > 0;) w->first = w->first * run->grid[d] * run->block[d] + w->block_at[d] * run->block[d];
  if (run->shared_bytes > 0 && !body->clears_shared) memset(w->shared, 0, run->shared_bytes);
  for (size_t s = 0; s < run->program->symbols.count; s++)
    if (atlas_symbol_at(run->program, s)->kind == ATLAS_SYMBOL_POOL)
      w->pool_top[s] = w->block_index * hg_cpu_pool_share(w, (uint32_t)s);
}

/* Stacks (blocks that run together) are numbered like blocks, along x first. */
static uint64_t stacks_along(const cpu_launch *run, int d) {
  return (run->grid[d] + run->stacked[d] - 1) / run->stacked[d];
}

static int has_stacks(const cpu_launch *run) { return run->stacked[0] * run->stacked[1] > 1; }

/* Runs the blocks of a stack at the grid's border one by one. */
static void run_stack(const cpu_body *body, cpu_worker *w, uint64_t stack) {
  const cpu_launch *run = w->run;
  uint64_t size = (uint64_t)run->block[0] * run->block[1] * run->block[2], rest = stack / stacks_along(run, 0);
  uint64_t first_x = stack % stacks_along(run, 0) * run->stacked[0], end_x = first_x + run->stacked[0];
  uint64_t first_y = rest % stacks_along(run, 1) * run->stacked[1], end_y = first_y + run->stacked[1];
  uint64_t above = rest / stacks_along(run, 1) * run->grid[1];
  int is_whole = end_x <= run->grid[0] && end_y <= run->grid[1];
  for (uint64_t y = first_y; y < end_y && y < run->grid[1]; y++)
    for (uint64_t x = first_x; x < end_x && x < run->grid[0]; x++) {
      seek_block(w, (above + y) * run->grid[0] + x);
      enter_block(body, w);
      if (is_whole && x == first_x && y == first_y && body->stack(w, size)) return;
      body->tile(w, size);
    }
}

static void run_blocks(const cpu_body *body, cpu_worker *w, uint64_t first, uint64_t end) {
  const cpu_launch *run = w->run;
  uint64_t size = (uint64_t)run->block[0] * run->block[1] * run->block[2];
  for (; has_stacks(run) && first < end && !atlas_is_cancelled(run->launch); first++) run_stack(body, w, first);
  if (has_stacks(run) || first == end) return;
  seek_block(w, first);
  for (uint64_t b = first, done; b < end && !atlas_is_cancelled(run->launch); b += done, next_block(w, done)) {
    enter_block(body, w);
    uint64_t left = run->launch->lanes != 0 ? run->lanes - b * size : size;
    uint64_t in_row = run->grid[0] - w->block_at[0], most = end - b < in_row ? end - b : in_row;
    if (most > CPU_BLOCKS_A_PART) most = CPU_BLOCKS_A_PART;
    if (b + most == run->blocks && run->lanes % size != 0) most--; /* the last block has fewer lanes */
    done = body->many != NULL && most > 1 ? body->many(w, size, most) : 0;
    if (done > 0) continue;
    body->tile(w, left < size ? left : size);
    done = 1;
  }
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* What the parts of a launch share. A part is a range of work items: blocks, stacks, or runs of lanes. */
typedef struct job {
  const cpu_body *body;
  const cpu_launch *run;
  uint32_t threads;
  uint64_t items, item_lanes, items_a_part;
  uint8_t *memory;        /* memory of all workers */
  uint64_t memory_bytes;  /* of one worker: cpu_worker, shared memory, local arrays, scratch */
} job;

static cpu_worker *worker_of(const job *j, uint32_t number) {
  return (cpu_worker *)(void *)(j->memory + number * j->memory_bytes);
}

static void run_part(void *user, uint64_t part, uint32_t number) {
  const job *j = user;
  cpu_worker *w = worker_of(j, number);
  uint64_t first = part * j->items_a_part, end = first + j->items_a_part;
  if (w->run == NULL) init_worker(w, j->run, j->body);
  if (end > j->items) end = j->items;
  if (j->run->is_block_tile) run_blocks(j->body, w, first, end);
  else {
    end *= j->item_lanes;
    run_lanes(j->body, w, first * j->item_lanes, end < j->run->lanes ? end : j->run->lanes);
  }
  if (j->body->end != NULL) j->body->end(w);
}

static void cut_into_parts(job *j) {
  const cpu_launch *run = j->run;
  j->item_lanes = j->body->tile_lanes != 0 ? j->body->tile_lanes : piece_lanes(j->body);
  j->items = j->items_a_part = 1;
  j->threads = 1;
  if (run->is_block_tile)
    j->items = j->items_a_part =
        has_stacks(run) ? stacks_along(run, 0) * stacks_along(run, 1) * run->grid[2] : run->blocks;
  else if (run->lanes > j->item_lanes)
    j->items = j->items_a_part = (run->lanes + j->item_lanes - 1) / j->item_lanes;
  if (j->items == 1) return;
  double work_ns = (double)run->lanes * j->body->lane_ps / 1000;
  j->threads = hg_parallel_threads(work_ns < 1e18 ? (uint64_t)work_ns : UINT64_MAX, run->launch->most_threads);
  if (j->threads == 1) return;
  uint64_t parts = (uint64_t)j->threads * CPU_PARTS_A_THREAD;
  j->items_a_part = (j->items + parts - 1) / parts;
}

static void run_parts(job *j) {
  for (uint32_t t = 0; t < j->threads; t++) worker_of(j, t)->run = NULL;
  if (j->threads == 1) run_part(j, 0, 0);
  else hg_parallel(j->threads, (j->items + j->items_a_part - 1) / j->items_a_part, run_part, j);
  for (uint32_t t = 0; t < j->threads; t++)
    if (worker_of(j, t)->run != NULL) merge_results(j->run->launch, worker_of(j, t));
}

hg_status hg_cpu_run(const cpu_body *body, void *kernel, const cpu_kernels *kernels, const hg_allocator *allocator,
                     const atlas_program *program, const hg_vector *vector, atlas_launch *launch) {
  cpu_launch run = {.program = program, .vector = vector, .launch = launch, .kernel = kernel, .kernels = kernels,
                    .local_lanes = body->local_lanes,
                    .stacked = {body->stacked[0] > 1 ? body->stacked[0] : 1,
                                body->stacked[1] > 1 ? body->stacked[1] : 1}};
  job j = {.body = body, .run = &run};
  uint8_t stack[CPU_SCRATCH_ON_STACK];
  void *allocated = NULL;
  if (vector->counts_resonance) memset(launch->resonance, 0, sizeof launch->resonance);
  launch->phase_advance = 0;
  launch->fault.kind = HG_FAULT_NONE;
  find_shape(&run, body->takes_rows);
  cut_into_parts(&j);
  run.is_shared = j.threads > 1;
  cpu_tally tallies[ATLAS_MAX_SYMBOLS];
  uint64_t tally_bytes = run.is_shared ? hg_cpu_find_tallies(&run, j.threads, tallies) : 0;
  if (tally_bytes > 0) run.tallies = tallies;
  j.memory_bytes = round_up(sizeof(cpu_worker)) + shared_memory(&run) + round_up(body->scratch_bytes);
  j.memory_bytes += local_room(&run) + tally_bytes;
  j.memory = stack;
  uint64_t bytes = j.threads * j.memory_bytes + ALIGNMENT;
  if (bytes > CPU_SCRATCH_ON_STACK) {
    allocated = bytes > SIZE_MAX ? NULL : allocator->allocate(allocator->user, (size_t)bytes);
    if (allocated == NULL) return hg_fail_memory("the lanes of a launch", bytes);
    j.memory = allocated;
  }
  j.memory += -(uintptr_t)j.memory & (ALIGNMENT - 1);
  run_parts(&j);
  if (allocated != NULL) hg_release(allocator, allocated);
  return HG_OK;
}
