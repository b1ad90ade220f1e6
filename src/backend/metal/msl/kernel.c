/* kernel.c - the steps of a kernel around the program's instructions: the lanes of a thread, and their coordinates. */
#include "backend/metal/msl/msl.h"

static unsigned tile_of(const msl *m) { return (unsigned)gpu_tile(m->plan); }

/* ---- coordinates ------------------------------------------------------------------------------------------------- */

static void take_apart(msl *m, const char *number, const char *to, const char *x, const char *y) {
  hg_msl_line(m, "ulong %s_x = %s %% %s, %s_y = %s / %s %% %s, %s_z = %s / %s / %s;", to, number, x, to, number, x, y,
              to, number, x, y);
}

/* The program's block. */
static void find_block(msl *m) {
  hg_msl_line(m,
              "ulong block = ulong(group) + a.first, size = ulong(a.block_size_x) * a.block_size_y * a.block_size_z;");
  hg_msl_line(m, "uint block_lanes = uint(min(a.is_flat != 0 ? a.lanes - block * size : size, size));");
  take_apart(m, "block_lane", "thread", "a.block_size_x", "a.block_size_y");
  take_apart(m, "block", "block", "a.grid_x", "a.grid_y");
  for (int d = 0; d < 3; d++)
    hg_msl_line(m, "ulong global_%c = block_%c * a.block_size_%c + thread_%c;", "xyz"[d], "xyz"[d], "xyz"[d], "xyz"[d]);
  hg_msl_line(
      m, "ulong lane = (global_z * (a.grid_y * a.block_size_y) + global_y) * (a.grid_x * a.block_size_x) + global_x;");
}

/* ---- packs of lanes ---------------------------------------------------------------------------------------------- */

/* A thread has packs, or one lane after the last whole pack, or nothing. */
static void find_share(msl *m) {
  hg_msl_line(m, m->plan->info.packs > 1 ? "uint block_lanes = a.block_lanes;" : "uint block_lanes = %u;", tile_of(m));
  hg_msl_line(m, "ulong base = ulong(group) * block_lanes + a.first_lane, first = base + block_lane * %u;",
              (unsigned)m->plan->info.lanes_per_thread);
  hg_msl_line(m, "bool whole = first < a.whole_lanes;");
  hg_msl_open(m, "if (!whole)");
  hg_msl_line(m, "if (base < a.whole_lanes) return;");
  hg_msl_line(m, "first = a.whole_lanes + block_lane;");
  hg_msl_line(m, "if (first >= a.lanes) return;");
  hg_msl_close(m, "");
}

static void open_lanes_of_pack(msl *m) {
  unsigned lanes = (unsigned)m->plan->info.lanes_per_thread;
  hg_msl_open(m, "for (uint k = 0; k < %u; k++)", lanes);
  if (m->plan->needs_lane)
    hg_msl_line(m, "ulong lane = first + k * %u;", m->plan->is_spread ? (unsigned)m->plan->info.threads : 1);
}

/* If the block has a second pack for the thread. */
static void load_second(msl *m) {
  hg_msl_line(m, "bool more = first + %u < a.whole_lanes && block_lanes > %u;", tile_of(m), tile_of(m));
  hg_msl_vectors_load_next(m);
}

static void go_on(msl *m) {
  hg_msl_vectors_take_next(m);
  hg_msl_line(m, "first += %u;", tile_of(m));
}

static void open_packs(msl *m) {
  hg_msl_line(m, "uint left = whole ? uint((min(base + block_lanes, a.whole_lanes) - first - 1) >> %u) : 0;",
              (unsigned)m->plan->info.tile_shift);
  hg_msl_open(m, "while (true)");
  hg_msl_line(m, "bool more = left != 0;");
}

static void close_packs(msl *m) {
  hg_msl_line(m, "left--;");
  hg_msl_line(m, "if (!more) break;");
  hg_msl_close(m, "");
}

/* ---- tiles whose accesses may need checks ------------------------------------------------------------------------ */

static int has_one_lane(const msl *m) { return m->plan->info.lanes_per_thread == 1; }

static void find_tile(msl *m) {
  if (has_one_lane(m)) {
    hg_msl_line(m, "ulong lane = (ulong(group) + a.first) * %u + block_lane;", tile_of(m));
    hg_msl_line(m, "if (lane >= a.lanes) return;");
    return;
  }
  hg_msl_line(m, "ulong base = (ulong(group) + a.first) * %u, first = base + block_lane * %u;", tile_of(m),
              m->plan->is_spread ? 1 : (unsigned)m->plan->info.lanes_per_thread);
}

/* Neighbouring threads have neighbouring lanes. */
static void open_lanes(msl *m) {
  if (has_one_lane(m)) return;
  hg_msl_open(m, "for (ulong lane = base + block_lane; lane < min(base + %u, a.lanes); lane += %u)", tile_of(m),
              (unsigned)m->plan->info.threads);
}

/* ---- all steps --------------------------------------------------------------------------------------------------- */

static hg_status emit_step(msl *m, const gpu_step *step) {
  int may_be_single = m->plan->info.vector_only;
  switch (step->op) {
  case GPU_BLOCK: find_block(m); break;
  case GPU_START_POOLS: hg_msl_start_pools(m); break;
  case GPU_SHARE: find_share(m); break;
  case GPU_LOAD_PACK: hg_msl_vectors_access(m, 1, may_be_single); break;
  case GPU_STORE_PACK: hg_msl_vectors_access(m, 0, may_be_single); break;
  case GPU_TAKE_APART: hg_msl_vectors_take_apart(m); break;
  case GPU_JOIN: hg_msl_vectors_join(m); break;
  case GPU_COORDINATES: take_apart(m, "lane", "global", "a.total_x", "a.total_y"); break;
  case GPU_PACK_LANES: open_lanes_of_pack(m); break;
  case GPU_CLEAR_LOCAL:
    hg_msl_line(m, "for (uint i = 0; i < %u; i++) local[i] = 0;", (unsigned)step->number);
    break;
  case GPU_BODY: return hg_msl_body(m, (gpu_version_kind)step->number);
  case GPU_LOAD_SECOND: load_second(m); break;
  case GPU_IF_SECOND:
    hg_msl_open(m, "if (more)");
    go_on(m);
    break;
  case GPU_STORE_SECOND: hg_msl_vectors_access(m, 0, 0); break;
  case GPU_PACKS: open_packs(m); break;
  case GPU_LOAD_NEXT: hg_msl_vectors_load_next(m); break;
  case GPU_NEXT_PACK: go_on(m); break;
  case GPU_END_PACKS: close_packs(m); break;
  case GPU_TILE: find_tile(m); break;
  case GPU_IF_WHOLE: hg_msl_open(m, "if (base + %u <= a.fast_lanes)", tile_of(m)); break;
  case GPU_END_WHOLE:
  case GPU_END_SECOND:
  case GPU_END_PACK_LANES: hg_msl_close(m, ""); break;
  case GPU_ELSE:
    hg_msl_close(m, " else {");
    m->depth++;
    break;
  case GPU_LANES: open_lanes(m); break;
  case GPU_END_LANES:
    if (!has_one_lane(m)) hg_msl_close(m, "");
    break;
  default: break; /* steps of result tables, which need more shared memory than there is */
  }
  return HG_OK;
}

hg_status hg_msl_kernel(msl *m) {
  const gpu_step *steps = m->plan->kernel.data;
  for (size_t i = 0; i < m->plan->kernel.count; i++) HG_TRY(emit_step(m, &steps[i]));
  return HG_OK;
}
