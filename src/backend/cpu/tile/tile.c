/* tile.c - the tile engine at run time: a table of rows and a loop over steps. */
#include "backend/cpu/tile/tile.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "backend/cpu/engine/rows.h"
#include "backend/cpu/tile/tile_plan.h"
#include "base/error.h"

#include <stddef.h>

struct hg_tile {
  hg_allocator allocator;
  const atlas_program *program;
  const hg_vector *vector;
  tile_plan plan;
  const cpu_kernels *kernels;
  const char *name;
  uint32_t tile_lanes;   /* most lanes of a tile that is no block: so many that its rows stay in the L1 cache */
};

/* The head of a worker's scratch; the row table, short rows and rows follow. */
typedef struct state {
  const hg_tile *tile;
  uint32_t lanes;        /* lanes of the current tile */
  uint32_t row_lanes;    /* lanes from one row to the next */
  int may_alias;         /* buffers do not overlap */
  size_t first_chunk, end_chunk; /* the chunks that the mask of the running basic block covers */
  uint64_t step_count;   /* STEPs that the tile has run: an upper bound for each lane */
  uint32_t recent_count; /* STEPs counted in `recent` but not yet subtracted from w->steps */
  uint8_t *recent;
  uint8_t *short_rows, *rows;
  uint8_t *row[];        /* per register */
} state;

enum { ALIGNMENT = 64 };

/* ---- compile ----------------------------------------------------------------------------------------------------- */

/* As many lanes as keep all rows, local arrays included, in the cache, between two limits. */
static uint32_t lanes_for(const tile_plan *plan, uint32_t local_bytes) {
  uint32_t lanes = CPU_TILE_LANES;
  while (lanes > CPU_TILE_LEAST_LANES && lanes * (plan->row_bytes + local_bytes) > CPU_TILE_CACHE_BYTES) lanes /= 2;
  return lanes;
}

const char *hg_tile_engine_name(cpu_isa isa) {
  static const char *const names[] = {
#if defined __aarch64__
      "tile neon",
#elif defined __x86_64__ || defined __i386__
      "tile sse2",
#else
      "tile portable",
#endif
      "tile avx2", "tile avx512"};
  return names[isa];
}

hg_status hg_tile_compile(const hg_allocator *allocator, const atlas_program *program, const hg_vector *vector,
                          cpu_isa isa, hg_tile **out) {
  hg_tile *tile = hg_allocate(allocator, 1, sizeof *tile);
  if (tile == NULL) return hg_fail_memory("a kernel", sizeof *tile);
  tile->allocator = *allocator;
  tile->program = program;
  tile->vector = vector;
  tile->kernels = hg_cpu_kernels(isa);
  tile->name = hg_tile_engine_name(isa);
  hg_status status = hg_tile_plan(allocator, program, vector, &tile->plan);
  if (status != HG_OK) {
    hg_release(allocator, tile);
    return status;
  }
  tile->tile_lanes = lanes_for(&tile->plan, hg_cpu_local_bytes(program, vector));
  *out = tile;
  return HG_OK;
}

void hg_tile_release(hg_tile *tile) {
  if (tile == NULL) return;
  hg_allocator allocator = tile->allocator;
  hg_tile_plan_release(&tile->plan);
  hg_release(&allocator, tile);
}

const char *hg_tile_name(const hg_tile *tile) { return tile->name; }

/* ---- rows that are constant throughout a launch or a tile -------------------------------------------------------- */

static const vector_reg *reg_at(const state *s, uint32_t reg) { return vector_reg_at(s->tile->vector, reg); }

static const tile_location *place_of(const state *s, uint32_t reg) {
  return (const tile_location *)s->tile->plan.places.data + reg;
}

static uint8_t *own_row(const state *s, uint32_t reg) {
  const tile_location *place = place_of(s, reg);
  if (place->kind == TILE_SHORT_ROW) return s->short_rows + place->offset;
  return s->rows + (size_t)place->offset * s->row_lanes;
}

static void fill_constants(const cpu_worker *w, state *s) {
  for (uint32_t reg = 0; reg < s->tile->vector->regs.count; reg++) {
    const vector_reg *r = reg_at(s, reg);
    uint32_t bytes = hg_cpu_element_bytes(r->type);
    if (r->kind == VECTOR_CONSTANT) hg_cpu_fill_row(s->row[reg], bytes, r->bits, CPU_CHUNK);
    if (r->kind == VECTOR_SCALAR)
      hg_cpu_fill_row(s->row[reg], bytes, w->run->launch->arguments[r->bits].bits, CPU_CHUNK);
  }
}

/* r252..r255 of the current tile. */
static void fill_special_row(const cpu_worker *w, const state *s, uint32_t reg) {
  const cpu_launch *run = w->run;
  const vector_reg *r = reg_at(s, reg);
  size_t chunks = ((size_t)s->lanes + CPU_CHUNK - 1) / CPU_CHUNK;
  switch (r->bits) {
  case ATLAS_REG_BLOCK_LANE: run->kernels->iota32((uint32_t *)(void *)s->row[reg], 0, chunks); break;
  case ATLAS_REG_BLOCK_INDEX: hg_cpu_fill_row(s->row[reg], 4, w->block_at[0], CPU_CHUNK); break;
  case ATLAS_REG_BLOCK_SIZE: hg_cpu_fill_row(s->row[reg], 4, run->block[0], CPU_CHUNK); break;
  default: {
    uint64_t *d = (uint64_t *)(void *)s->row[reg], length = hg_cpu_run_length(run);
    if (length == UINT64_MAX) run->kernels->iota64(d, w->first, chunks);
    else
      for (uint32_t i = 0; i < s->lanes; i++) d[i] = hg_cpu_lane(w, i);
    break;
  }
  }
}

static void begin_tile(cpu_worker *w, state *s, uint32_t lanes) {
  const hg_tile *tile = s->tile;
  s->lanes = lanes;
  w->lost = 0;
  if (w->run->vector->sees_local_zeros) memset(w->local, 0, (size_t)w->run->local_bytes * w->run->local_lanes);
  memset(w->alive, 1, lanes);
  memset(w->alive + lanes, 0, -lanes & (CPU_CHUNK - 1));
  s->step_count = s->recent_count = 0;
  if (w->run->counts_steps) memset(s->recent, 0, s->row_lanes);
  for (uint32_t n = 0; n < tile->plan.special_count; n++) fill_special_row(w, s, tile->plan.special[n]);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static size_t round_up(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static size_t table_bytes(const hg_tile *tile) {
  return round_up(offsetof(state, row) + (tile->vector->regs.count + 1) * sizeof(uint8_t *));
}

/* Two more rows at the end count steps. */
static size_t scratch_bytes(const hg_tile *tile, uint32_t row_lanes) {
  size_t rows = (tile->plan.row_bytes + sizeof(uint64_t) + 1) * (size_t)row_lanes;
  return table_bytes(tile) + round_up(tile->plan.short_bytes) + rows;
}

/* A buffer is a row only if no written buffer overlaps it under another name. */
static int overlap(const atlas_span *a, const atlas_span *b) {
  return a->memory < b->memory + b->byte_count && b->memory < a->memory + a->byte_count;
}

static int buffers_are_apart(const cpu_launch *run) {
  const atlas_argument *arguments = run->launch->arguments;
  size_t count = run->program->symbols.count;
  for (size_t i = 0; i < count; i++) {
    const atlas_symbol *one = atlas_symbol_at(run->program, i);
    if (one->kind != ATLAS_SYMBOL_BUFFER && one->kind != ATLAS_SYMBOL_POOL) continue;
    for (size_t j = 0; j < i; j++) {
      const atlas_symbol *other = atlas_symbol_at(run->program, j);
      if (other->kind != ATLAS_SYMBOL_BUFFER && other->kind != ATLAS_SYMBOL_POOL) continue;
      if (one->access == ATLAS_IN && other->access == ATLAS_IN) continue;
      if (overlap(&arguments[i].span, &arguments[j].span)) return 0;
    }
  }
  return 1;
}

/* An upper bound for the lanes of a tile: those of a block, or of a launch that fits one tile. */
static uint32_t row_lanes_of(const hg_tile *tile, const atlas_launch *launch) {
  uint64_t block = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2], lanes = launch->lanes;
  int is_block_tile = hg_cpu_is_block_tile(tile->vector, launch, 0);
  if (launch->lanes == 0) lanes = is_block_tile ? block : CPU_TILE_LANES;
  uint32_t most = is_block_tile ? CPU_TILE_LANES : tile->tile_lanes;
  if (lanes > most) lanes = most;
  return (uint32_t)((lanes + CPU_CHUNK - 1) / CPU_CHUNK * CPU_CHUNK);
}

static void begin_worker(cpu_worker *w) {
  const hg_tile *tile = w->run->kernel;
  state *s = (state *)(void *)w->scratch;
  s->tile = tile;
  s->row_lanes = row_lanes_of(tile, w->run->launch);
  s->may_alias = buffers_are_apart(w->run);
  s->short_rows = w->scratch + table_bytes(tile);
  s->rows = s->short_rows + round_up(tile->plan.short_bytes);
  for (uint32_t reg = 0; reg <= tile->plan.all; reg++) s->row[reg] = own_row(s, reg);
  w->alive = s->row[tile->plan.all];
  w->steps = (uint64_t *)(void *)(s->rows + (size_t)tile->plan.row_bytes * s->row_lanes);
  s->recent = (uint8_t *)(w->steps + s->row_lanes);
  fill_constants(w, s);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static const uint8_t *mask_of(const cpu_worker *w, const state *s, uint32_t mask) {
  if (mask != VECTOR_ALL) return s->row[mask];
  return w->lost > 0 ? w->alive : NULL;
}

static int is_any(const cpu_worker *w, const state *s, const uint8_t *a, const uint8_t *mask) {
  return w->run->kernels->any(a, mask, s->lanes);
}

/* s0 & mask has a lane. */
static int is_taken_by_any(const cpu_worker *w, const state *s, const tile_step *step) {
  const uint8_t *mask = step->mask == VECTOR_ALL ? w->alive : s->row[step->mask];
  if (step->steps & 1) return is_any(w, s, s->row[step->s[0]], mask);
  return s->row[step->s[0]][0] && is_any(w, s, mask, NULL);
}

static int has_lane(const uint8_t *mask, size_t chunk) {
  uint64_t found = 0, eight;
  for (int i = 0; i < CPU_CHUNK; i += (int)sizeof eight) {
    memcpy(&eight, mask + chunk * CPU_CHUNK + i, sizeof eight);
    found |= eight;
  }
  return found != 0;
}

/* Sets the chunks from the first to the last lane of a basic block's mask; 0 if the mask is empty. */
static int enter_block(state *s, const uint8_t *mask) {
  size_t end = (s->lanes + CPU_CHUNK - 1) / CPU_CHUNK, first = 0;
  while (first < end && !has_lane(mask, first)) first++;
  if (first == end) return 0;
  while (!has_lane(mask, end - 1)) end--;
  s->first_chunk = first;
  s->end_chunk = end;
  return 1;
}

static const uint8_t *row_at_chunk(const state *s, uint32_t reg, uint8_t size) {
  return s->row[reg] + (size == TILE_SHORT_SIZE ? 0 : s->first_chunk * CPU_CHUNK << size);
}

static void run_partial(const state *s, const tile_step *step, cpu_kernel *kernel) {
  kernel((uint8_t *)(uintptr_t)row_at_chunk(s, step->d, step->size[0]), row_at_chunk(s, step->s[0], step->size[1]),
         row_at_chunk(s, step->s[1], step->size[2]), row_at_chunk(s, step->s[2], step->size[3]), step->steps,
         s->end_chunk - s->first_chunk);
}

static void run_insn(cpu_worker *w, const state *s, const tile_step *step, const vector_insn *insn) {
  cpu_operands o = {
      .d = insn->d == VECTOR_NONE ? NULL : s->row[step->d], .mask = mask_of(w, s, step->mask), .count = s->lanes};
  for (int k = 0; k < 4; k++) {
    o.s[k] = s->row[step->s[k]];
    o.step[k] = step->steps >> k & 1;
  }
  hg_cpu_insn(w, insn, &o);
}

/* Subtracts the counted steps from the steps left. */
static void settle_steps(const cpu_worker *w, state *s) {
  for (uint32_t i = 0; s->step_count == s->recent_count && i < s->lanes; i++)
    w->steps[i] = w->run->launch->step_limit; /* the tile's first subtraction */
  for (uint32_t i = 0; i < s->lanes; i++) w->steps[i] -= s->recent[i];
  memset(s->recent, 0, s->lanes);
  s->recent_count = 0;
}

/* Lanes are checked one by one only once the tile has run more STEPs than a lane may take. */
static void run_step(cpu_worker *w, state *s, const tile_step *step, const vector_insn *insn) {
  enum { MOST_RECENT = UINT8_MAX };
  size_t chunks = (s->lanes + CPU_CHUNK - 1) / CPU_CHUNK;
  cpu_kernel *const *kernels = w->run->kernels->row;
  const uint8_t *mask = step->mask == VECTOR_ALL ? w->alive : s->row[step->mask];
  if (w->run->counts_steps && s->step_count >= w->run->launch->step_limit) {
    if (s->recent_count > 0) settle_steps(w, s);
    run_insn(w, s, step, insn);
    return;
  }
  if (w->run->counts_steps) {
    kernels[KERNEL_add_u8](s->recent, s->recent, mask, NULL, 3, chunks);
    s->step_count++;
    if (++s->recent_count == MOST_RECENT) settle_steps(w, s);
  }
  kernels[KERNEL_mov_8](s->row[step->d], mask, NULL, NULL, 1, chunks);
}

static void run_short(const cpu_worker *w, const state *s, const tile_step *step, const vector_insn *insn) {
  int keeps = insn->flags & VECTOR_KEEP || insn->op == VECTOR_MOVE;
  const uint8_t *mask = mask_of(w, s, step->mask);
  if (keeps && mask != NULL && !is_any(w, s, mask, NULL)) return;
  w->run->kernels->row[step->kernel](s->row[step->d], s->row[step->s[0]], s->row[step->s[1]], s->row[step->s[2]], 0, 1);
}

/* The lowest lane of the mask loads for all and reports the fault. */
static void load_short(cpu_worker *w, const state *s, const tile_step *step, const vector_insn *insn) {
  const uint8_t *mask = mask_of(w, s, step->mask);
  cpu_operands o = {.d = s->row[step->d], .s = {s->row[step->s[0]]}, .count = CPU_CHUNK};
  if (mask != NULL) {
    while (o.first < s->lanes && !mask[o.first]) o.first++;
    if (o.first == s->lanes) return;
  }
  hg_cpu_load(w, insn, &o);
}

/* The memory of [x + lane] for `lanes` lanes of the tile; NULL if some of it is out of bounds. */
static uint8_t *own_elements(const cpu_worker *w, const state *s, const vector_insn *insn, uint32_t lanes) {
  const cpu_binding *binding = &w->binding[insn->symbol];
  int64_t index = (int64_t)(w->first + insn->bits); /* below 2^40 + bits: a sum that wraps is out of bounds */
  if (!s->may_alias || hg_cpu_run_length(w->run) < s->lanes || index < 0 || (uint64_t)index >= binding->extent)
    return NULL;
  if (binding->extent - (uint64_t)index < lanes) return NULL;
  return binding->memory + (uint64_t)index * hg_cpu_element_bytes(insn->type);
}

static uint32_t whole_chunks(const state *s) { return (s->lanes + CPU_CHUNK - 1) / CPU_CHUNK * CPU_CHUNK; }

static void run_load(cpu_worker *w, state *s, const tile_step *step, const vector_insn *insn) {
  uint8_t *memory = own_elements(w, s, insn, whole_chunks(s));
  s->row[step->d] = memory != NULL ? memory : own_row(s, step->d);
  if (memory == NULL) run_insn(w, s, step, insn);
}

/* Runs before the instruction that computes a store's value: makes the buffer the row of its result. */
static void choose_output(const cpu_worker *w, state *s, const tile_step *step, const vector_insn *store) {
  uint8_t *memory = w->lost == 0 && s->lanes == whole_chunks(s) ? own_elements(w, s, store, s->lanes) : NULL;
  s->row[step->s[0]] = memory != NULL ? memory : own_row(s, step->s[0]);
}

static void run_store(cpu_worker *w, const state *s, const tile_step *step, const vector_insn *insn) {
  uint8_t *memory = w->lost == 0 ? own_elements(w, s, insn, s->lanes) : NULL;
  if (memory == NULL) run_insn(w, s, step, insn);
  else if (memory != s->row[step->s[1]])
    memcpy(memory, s->row[step->s[1]], (size_t)s->lanes * hg_cpu_element_bytes(insn->type));
}

static void run_tile(cpu_worker *w, uint64_t lanes) {
  state *s = (state *)(void *)w->scratch;
  const hg_tile *tile = s->tile;
  const vector_insn *insns = tile->vector->insns.data;
  const tile_step *steps = tile->plan.steps.data, *step = steps;
  cpu_kernel *const *kernels = tile->kernels->row;
  begin_tile(w, s, (uint32_t)lanes);
  size_t chunks = whole_chunks(s) / CPU_CHUNK;
  for (const tile_step *next;; step = next) {
    next = step + 1;
    switch (step->kind) {
    case TILE_KERNEL:
      if (step->is_partial) {
        run_partial(s, step, kernels[step->kernel]);
        break;
      }
      kernels[step->kernel](s->row[step->d], s->row[step->s[0]], s->row[step->s[1]], s->row[step->s[2]], step->steps,
                            chunks);
      break;
    case TILE_SAME: s->row[step->d] = s->row[step->s[0]]; break;
    case TILE_SHORT: run_short(w, s, step, insns + step->insn); break;
    case TILE_LOAD_SHORT: load_short(w, s, step, insns + step->insn); break;
    case TILE_LOAD: run_load(w, s, step, insns + step->insn); break;
    case TILE_OUTPUT: choose_output(w, s, step, insns + step->insn); break;
    case TILE_STORE: run_store(w, s, step, insns + step->insn); break;
    case TILE_INSN: run_insn(w, s, step, insns + step->insn); break;
    case TILE_JUMP: next = steps + step->target; break;
    case TILE_STEP: run_step(w, s, step, insns + step->insn); break;
    case TILE_JUMP_NONE:
      if (!(step->is_partial ? enter_block(s, s->row[step->s[0]]) : is_taken_by_any(w, s, step)))
        next = steps + step->target;
      break;
    case TILE_JUMP_ANY:
      if (is_taken_by_any(w, s, step)) next = steps + step->target;
      break;
    default: return;
    }
    if (next <= step && atlas_is_cancelled(w->run->launch)) return;
  }
}

hg_status hg_tile_launch(const hg_tile *tile, atlas_launch *launch) {
  cpu_body body = {.tile_lanes = tile->tile_lanes,
                   .lane_ps = CPU_TILE_STEP_PS * (uint32_t)tile->plan.steps.count,
                   .local_lanes = row_lanes_of(tile, launch),
                   .scratch_bytes = scratch_bytes(tile, row_lanes_of(tile, launch)),
                   .begin = begin_worker,
                   .tile = run_tile};
  return hg_cpu_run(&body, (void *)(uintptr_t)tile, tile->kernels, &tile->allocator, tile->program, tile->vector,
                    launch);
}
