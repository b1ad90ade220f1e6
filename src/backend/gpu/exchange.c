/* exchange.c - groups adjacent collectives into exchanges, which share barriers, and lays out their places in shared
 * memory.
 *
 * Adjacent reductions that do not depend on one another form one exchange, and so do scans.
 *
 * In each exchange a barrier stands between the lanes' writes into places and the reads from them, and another between
 * that and the last reads (of results and windows). So the next exchange may write a place without a further barrier,
 * as long as no result or window of this exchange lies there: these have memory of their own.
 *
 * An exchange with one barrier, behind which each warp folds for itself, has places of its own in two halves, which
 * such exchanges use alternately: whoever writes into a half has passed the barrier of the exchange that used the other
 * half, and so has everyone who reads what was in this one. The same holds for blocks whose warps lie along y. */
#include "backend/gpu/plan_passes.h"
#include "backend/gpu/gpu_tuning.h"

enum {
  RESULT_BYTES = 8 * GPU_MAX_EXCHANGE /* of shared memory */
};

typedef struct layout {
  gpu_plan *g;
  uint32_t room, scan_room;  /* bytes for places: of reductions, and of scans, which need as many again for windows */
  uint32_t places, windows;  /* bytes of the largest exchange */
  int has_halves;            /* there is room for them */
} layout;

/* ---- places ------------------------------------------------------------------------------------------------------ */

static uint32_t place_bytes(const gpu_plan *g, uint32_t value) {
  return gpu_place_bytes(g, gpu_insn(g, value)->type);
}

static uint32_t bytes_of(const gpu_plan *g, const gpu_exchange *x) {
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < x->count; i++) bytes += place_bytes(g, x->value[i]);
  return bytes;
}

/* Offsets relative to the places, windows and results. */
static void lay_out(layout *m, gpu_exchange *x) {
  uint32_t at = 0, result = 0;
  for (uint32_t i = 0; i < x->count; i++) {
    x->place[i] = x->second[i] = at;
    at += place_bytes(m->g, x->value[i]);
    if (x->is_scan) continue;
    uint32_t bytes = gpu_slot_bytes(gpu_insn(m->g, x->value[i])->type);
    x->second[i] = (result + bytes - 1) / bytes * bytes;
    result = x->second[i] + bytes;
  }
  if (x->by_each_warp && at > m->g->memory.half_bytes) m->g->memory.half_bytes = at;
  if (!x->by_each_warp && at > m->places) m->places = at;
  if (x->is_scan && at > m->windows) m->windows = at;
}

/* Results, places, windows, halves. */
static void move_to_memory(const layout *m) {
  gpu_plan *g = m->g;
  uint32_t results = g->info.shared_bytes, places = results + RESULT_BYTES;
  uint32_t windows = g->memory.windows_in_places ? places : places + m->places;
  uint32_t halves = g->memory.windows_in_places ? places + m->places : windows + m->windows;
  for (uint32_t n = 0; n < g->exchange.count; n++) {
    gpu_exchange *x = (gpu_exchange *)g->exchange.data + n;
    for (uint32_t i = 0; i < x->count; i++) {
      x->place[i] += x->by_each_warp ? halves : places;
      x->second[i] += x->is_scan ? windows : results;
    }
  }
  g->info.shared_bytes = halves + 2 * g->memory.half_bytes;
}

/* ---- which belong together --------------------------------------------------------------------------------------- */

static int depends(const gpu_plan *g, const gpu_exchange *x, uint32_t value) {
  for (uint32_t i = 0; i < gpu_insn(g, value)->arg_count; i++)
    for (uint32_t k = 0; k < x->count; k++)
      if (gpu_arg(g, value, i) == x->value[k]) return 1;
  return 0;
}

static int fits(const layout *m, const gpu_exchange *x, uint32_t value) {
  if (gpu_is_scan(gpu_insn(m->g, value)->op) != x->is_scan || x->count == GPU_MAX_EXCHANGE) return 0;
  if (x->count == 0 || gpu_is_one_warp(m->g)) return 1;
  return bytes_of(m->g, x) + place_bytes(m->g, value) <= (x->is_scan ? m->scan_room : m->room);
}

static int goes_before(const ssa_insn *a, const ssa_insn *b) {
  return a->op != b->op ? a->op < b->op : a->type < b->type;
}

/* Inserts a value behind those of the same operation and type. */
static void add_value(const gpu_plan *g, gpu_exchange *x, uint32_t value) {
  uint32_t i = x->count++;
  for (; i > 0 && goes_before(gpu_insn(g, value), gpu_insn(g, x->value[i - 1])); i--) x->value[i] = x->value[i - 1];
  x->value[i] = value;
}

static int takes_part(const gpu_plan *g, uint32_t value) {
  return value != SSA_NONE && (gpu_is_reduction(gpu_insn(g, value)->op) || gpu_is_scan(gpu_insn(g, value)->op));
}

/* The common case: all lanes if the number of lanes in a block is known; one warp if the launch decides it. */
static void count_lanes(const gpu_plan *g, gpu_exchange *x) {
  uint32_t lanes = gpu_block_lanes(g);
  x->least_lanes = lanes != 0 ? lanes : GPU_FOLD_LANES;
  x->most_lanes = lanes != 0 ? lanes : g->info.max_threads;
}

/* A warp's share of folding k values by all W warps is k W loads and 5 k register exchanges, each of which takes the
 * multiprocessor's memory pipe for a cycle. Without the second barrier W - 1 more warps do that work. The barrier, the
 * store before it and the load behind it take some hundred cycles, in which other blocks may run. This is not possible
 * with lanes that may end: one could end before others have asked whether any has. */
static int is_cheap_alone(const layout *m, const gpu_exchange *x) {
  uint32_t warps = x->least_lanes / GPU_FOLD_LANES;
  if (m->g->is_transposed) return 1;
  if (x->is_scan || gpu_is_one_warp(m->g) || m->g->can_end || !m->has_halves) return 0;
  if (x->least_lanes != x->most_lanes || x->least_lanes % GPU_FOLD_LANES != 0) return 0;
  return x->count * (warps - 1) * (warps + 5) <= GPU_SECOND_BARRIER && 2 * bytes_of(m->g, x) <= GPU_HALVES_BYTES;
}

/* The exchange that begins with the value; *value becomes the value behind it. */
static hg_status add_exchange(layout *m, uint32_t *value) {
  gpu_plan *g = m->g;
  gpu_exchange x = {.first = *value, .is_scan = (uint8_t)gpu_is_scan(gpu_insn(g, *value)->op)};
  while (takes_part(g, *value) && !depends(g, &x, *value) && fits(m, &x, *value)) {
    add_value(g, &x, *value);
    g->exchange_of[*value] = (uint32_t)g->exchange.count;
    *value = gpu_insn(g, *value)->next;
  }
  count_lanes(g, &x);
  x.by_each_warp = (uint8_t)is_cheap_alone(m, &x);
  lay_out(m, &x);
  return hg_array_append(g->allocator, &g->exchange, &x, 1) != NULL
             ? HG_OK
             : hg_fail_memory("the plan of a kernel", sizeof x);
}

static hg_status add_exchanges(layout *m) {
  gpu_plan *g = m->g;
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t e = ssa_block_at(g->unit, g->order.block[k])->first_effect; e != SSA_NONE;) {
      if (takes_part(g, e)) HG_TRY(add_exchange(m, &e));
      else e = gpu_insn(g, e)->next;
    }
  return HG_OK;
}

/* What a program's own shared memory leaves for exchanges. If that does not suffice for the largest value, it is what a
 * 64-bit value needs. */
static void find_room(layout *m) {
  gpu_plan *g = m->g;
  uint32_t largest = 0, scan = 0, used = g->info.shared_bytes + RESULT_BYTES, most = g->target.declared_shared;
  for (uint32_t v = 0; v < g->unit->insns.count; v++) {
    if (!takes_part(g, v)) continue;
    uint32_t bytes = place_bytes(g, v);
    if (bytes > largest) largest = bytes;
    if (gpu_is_scan(gpu_insn(g, v)->op) && bytes > scan) scan = bytes;
  }
  uint32_t room = used + largest <= most ? most - used : gpu_place_bytes(g, ATLAS_u64);
  m->has_halves = room >= GPU_HALVES_BYTES + largest + scan;
  if (m->has_halves) room -= GPU_HALVES_BYTES;
  g->memory.windows_in_places = largest + scan > room;
  m->room = m->scan_room = room;
  if (scan == 0 || g->memory.windows_in_places) return;
  m->room = largest > room / 2 ? largest : room / 2;
  m->scan_room = room - m->room;
}

hg_status hg_gpu_find_exchanges(gpu_plan *g) {
  layout m = {.g = g};
  if (!g->info.observes_block) return HG_OK;
  find_room(&m);
  HG_TRY(add_exchanges(&m));
  if (g->memory.uses_scratch) move_to_memory(&m);
  if (g->exchange.count == 0) return HG_OK;
  uint32_t block = gpu_insn(g, gpu_exchange_at(g, 0)->first)->block;
  g->meets_late = block == g->order.block[0] && !g->in_loop[block];
  return HG_OK;
}
