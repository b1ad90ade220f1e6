/* kernel.c - the steps of a kernel around the program's instructions. */
#include "backend/cuda/ptx/ptx.h"

#include <stddef.h>

static uint32_t tile_of(const ptx *p) { return gpu_tile(p->plan); }

/* ---- one lane ---------------------------------------------------------------------------------------------------- */

/* Computes global.x, y, z from the lane's number; most launches have one dimension. */
static void find_global(ptx *p) {
  ptx_name total[2] = {PTX_FIELD(p, PTX_64, total[0]), PTX_FIELD(p, PTX_64, total[1])};
  ptx_name flat = hg_ptx_new(p, PTX_PREDICATE), joined = hg_ptx_label(p), is_flat = PTX_FIELD(p, PTX_32, is_flat);
  for (int d = 6; d < 9; d++) {
    p->at[d] = hg_ptx_new(p, PTX_64);
    PTX(p, "mov.b64", p->at[d], d == 6 ? p->lane : hg_ptx_number(0));
  }
  PTX(p, "setp.ne.u32", flat, is_flat, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", flat.text, joined.text);
  hg_ptx_take_number_apart(p, p->lane, total, &p->at[6]);
  hg_ptx_place(p, joined);
}

static void pack_lane(ptx *p, const ptx_kernel *k, uint32_t lane) {
  p->copy_lane = lane;
  p->lane = k->first;
  if (!p->plan->needs_lane || lane == 0) return;
  p->lane = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", p->lane, k->first, hg_ptx_number(p->plan->is_spread ? lane * p->plan->info.threads : lane));
}

/* ---- packs of lanes ---------------------------------------------------------------------------------------------- */

/* The rare case: the thread has one lane behind the last whole pack, or none. */
static void find_single_lane(ptx *p, const ptx_kernel *k, ptx_name back) {
  ptx_name none = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.lt.u64", none, k->base, k->bound);
  hg_ptx_put(p, "\t@%s ret;\n", none.text);
  PTX(p, "add.s64", k->first, k->bound, hg_ptx_widened(p, k->thread));
  PTX(p, "setp.ge.u64", none, k->first, PTX_FIELD(p, PTX_64, lanes));
  hg_ptx_put(p, "\t@%s ret;\n\tbra %s;\n", none.text, back.text);
}

/* Threads without a lane exit. */
static void find_share(ptx *p, ptx_kernel *k) {
  k->thread = hg_ptx_special(p, "tid.x");
  ptx_name block = hg_ptx_special(p, "ctaid.x"), rare = hg_ptx_label(p), back = hg_ptx_label(p);
  k->block_lanes = p->plan->info.packs > 1 ? PTX_FIELD(p, PTX_32, block_lanes) : hg_ptx_number(tile_of(p));
  k->base = hg_ptx_new(p, PTX_64);
  k->bound = PTX_FIELD(p, PTX_64, whole_lanes);
  k->first = hg_ptx_new(p, PTX_64);
  k->whole = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "mad.wide.u32", k->base, block, k->block_lanes, PTX_FIELD(p, PTX_64, first_lane));
  PTX(p, "mad.wide.u32", k->first, k->thread, hg_ptx_number(p->plan->info.lanes_per_thread), k->base);
  PTX(p, "setp.lt.u64", k->whole, k->first, k->bound);
  hg_ptx_put(p, "\t@!%s bra %s;\n", k->whole.text, rare.text);
  hg_ptx_place(p, back);
  hg_array *out = p->out;
  p->out = &p->cold;
  hg_ptx_place(p, rare);
  find_single_lane(p, k, back);
  p->out = out;
}

/* In a vector-only kernel a thread may have a single lane instead of a pack: then this is the predicate for a pack. */
static const ptx_name *whole_of(const ptx *p, const ptx_kernel *k) {
  return p->plan->info.vector_only ? &k->whole : NULL;
}

static void load_pack(ptx *p, const ptx_kernel *k) {
  hg_ptx_vectors_name(p);
  hg_ptx_vectors_point(p, k->first);
  hg_ptx_vectors_load(p, whole_of(p, k));
}

/* Loads the second pack if the block has one for the thread. */
static void load_second(ptx *p, ptx_kernel *k) {
  k->next = hg_ptx_new(p, PTX_64);
  k->more = hg_ptx_new(p, PTX_PREDICATE);
  k->end = hg_ptx_label(p);
  PTX(p, "add.s64", k->next, k->first, hg_ptx_number(tile_of(p)));
  PTX(p, "setp.lt.u64", k->more, k->next, k->bound);
  PTX(p, "setp.gt.and.u32", k->more, k->block_lanes, hg_ptx_number(tile_of(p)), k->more);
  hg_ptx_vectors_load_next(p, tile_of(p), k->more);
}

static void if_second(ptx *p, ptx_kernel *k) {
  hg_ptx_put(p, "\t@!%s bra %s;\n", k->more.text, k->end.text);
  hg_ptx_vectors_take_next(p);
  k->first = k->next;
}

/* How many more packs the thread has. */
static ptx_name packs_left(ptx *p, const ptx_kernel *k) {
  ptx_name end = hg_ptx_new(p, PTX_64), left = hg_ptx_new(p, PTX_32);
  PTX(p, "add.s64", end, k->base, hg_ptx_widened(p, k->block_lanes));
  PTX(p, "min.u64", end, end, k->bound);
  PTX(p, "sub.s64", end, end, k->first);
  PTX(p, "cvt.u32.u64", left, end);
  PTX(p, "add.s32", left, left, hg_ptx_name("-1"));
  PTX(p, "shr.u32", left, left, hg_ptx_number(p->plan->info.tile_shift));
  PTX(p, "selp.b32", left, left, hg_ptx_number(0), k->whole);
  return left;
}

static void open_packs(ptx *p, ptx_kernel *k) {
  k->left = packs_left(p, k);
  k->more = hg_ptx_new(p, PTX_PREDICATE);
  k->again = hg_ptx_label(p);
  hg_ptx_place(p, k->again);
  PTX(p, "setp.ne.u32", k->more, k->left, hg_ptx_number(0));
}

static void next_pack(ptx *p, const ptx_kernel *k) {
  hg_ptx_vectors_go_on(p, tile_of(p));
  if (p->plan->needs_lane) PTX(p, "add.s64", k->first, k->first, hg_ptx_number(tile_of(p)));
}

static void close_packs(ptx *p, const ptx_kernel *k) {
  PTX(p, "add.s32", k->left, k->left, hg_ptx_name("-1"));
  hg_ptx_put(p, "\t@%s bra %s;\n", k->more.text, k->again.text);
}

/* ---- tiles whose accesses may have to be checked ----------------------------------------------------------------- */

static void find_tile(ptx *p, ptx_kernel *k) {
  k->thread = hg_ptx_widened(p, hg_ptx_special(p, "tid.x"));
  k->lanes = PTX_FIELD(p, PTX_64, lanes);
  k->base = hg_ptx_new(p, PTX_64);
  k->first = hg_ptx_new(p, PTX_64);
  k->end = hg_ptx_label(p);
  PTX(p, "add.s64", k->base, hg_ptx_widened(p, hg_ptx_special(p, "ctaid.x")), PTX_FIELD(p, PTX_64, first));
  PTX(p, "mul.lo.u64", k->base, k->base, hg_ptx_number(tile_of(p)));
  PTX(p, "mad.lo.u64", k->first, k->thread, hg_ptx_number(p->plan->is_spread ? 1 : p->plan->info.lanes_per_thread),
      k->base);
}

static void if_whole(ptx *p, ptx_kernel *k) {
  ptx_name last = hg_ptx_new(p, PTX_64), is_plain = hg_ptx_new(p, PTX_PREDICATE);
  k->plain = hg_ptx_label(p);
  PTX(p, "add.s64", last, k->base, hg_ptx_number(tile_of(p)));
  PTX(p, "setp.gt.u64", is_plain, last, PTX_FIELD(p, PTX_64, fast_lanes));
  hg_ptx_put(p, "\t@%s bra %s;\n", is_plain.text, k->plain.text);
}

static void or_else(ptx *p, const ptx_kernel *k) {
  hg_ptx_put(p, "\tbra %s;\n", k->end.text);
  hg_ptx_place(p, k->plain);
}

static void open_lanes(ptx *p, ptx_kernel *k) {
  ptx_name last = hg_ptx_new(p, PTX_64), done = hg_ptx_new(p, PTX_PREDICATE);
  k->again = hg_ptx_label(p);
  p->lane = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", last, k->base, hg_ptx_number(tile_of(p)));
  PTX(p, "min.u64", last, last, k->lanes);
  PTX(p, "add.s64", p->lane, k->base, k->thread);
  hg_ptx_place(p, k->again);
  PTX(p, "setp.ge.u64", done, p->lane, last);
  hg_ptx_put(p, "\t@%s bra %s;\n", done.text, k->end.text);
}

static void close_lanes(ptx *p, const ptx_kernel *k) {
  if (p->plan->info.lanes_per_thread > 1) {
    PTX(p, "add.s64", p->lane, p->lane, hg_ptx_number(p->plan->info.threads));
    hg_ptx_put(p, "\tbra %s;\n", k->again.text);
  }
  hg_ptx_place(p, k->end);
}

/* ---- all steps --------------------------------------------------------------------------------------------------- */

static void emit_step(ptx *p, ptx_kernel *k, const gpu_step *step) {
  switch (step->op) {
  case GPU_BLOCK: hg_ptx_find_block(p, k->end = hg_ptx_label(p)); break;
  case GPU_START_POOLS: hg_ptx_start_pools(p); break;
  case GPU_CLEAR_LOCAL: hg_ptx_clear_local(p, step->number); break;
  case GPU_SHARE: find_share(p, k); break;
  case GPU_LOAD_PACK: load_pack(p, k); break;
  case GPU_STORE_PACK: hg_ptx_vectors_store(p, 0, whole_of(p, k)); break;
  case GPU_TAKE_APART: hg_ptx_vectors_take_apart(p); break;
  case GPU_JOIN: hg_ptx_vectors_join(p); break;
  case GPU_COORDINATES: find_global(p); break;
  case GPU_BODY: hg_ptx_body(p, (gpu_version_kind)step->number); break;
  case GPU_LOAD_SECOND: load_second(p, k); break;
  case GPU_IF_SECOND: if_second(p, k); break;
  case GPU_STORE_SECOND: hg_ptx_vectors_store(p, tile_of(p), NULL); break;
  case GPU_END_SECOND: hg_ptx_place(p, k->end); break;
  case GPU_PACKS: open_packs(p, k); break;
  case GPU_LOAD_NEXT: hg_ptx_vectors_load_next(p, tile_of(p), k->more); break;
  case GPU_NEXT_PACK: next_pack(p, k); break;
  case GPU_END_PACKS: close_packs(p, k); break;
  case GPU_TILE: find_tile(p, k); break;
  case GPU_IF_WHOLE: if_whole(p, k); break;
  case GPU_ELSE: or_else(p, k); break;
  case GPU_LANES: open_lanes(p, k); break;
  case GPU_END_LANES: close_lanes(p, k); break;
  case GPU_ENTRIES: hg_ptx_open_entries(p, k); break;
  case GPU_END_ENTRIES: hg_ptx_close_entries(p, k); break;
  case GPU_SYNC: hg_ptx_put(p, "\tbar.sync 0;\n"); break;
  case GPU_LAST_ELEMENTS: hg_ptx_last_elements(p, k); break;
  case GPU_PIECES: hg_ptx_pieces(p, k); break;
  default: break; /* END_WHOLE: END_LANES has placed its label */
  }
}

void hg_ptx_kernel(ptx *p) {
  const gpu_step *steps = p->plan->kernel.data;
  ptx_kernel k = {.end = {{0}}};
  for (size_t i = 0, first = 0; i < p->plan->kernel.count; i++) {
    if (steps[i].op == GPU_PACK_LANES) pack_lane(p, &k, 0), first = i;
    else if (steps[i].op != GPU_END_PACK_LANES) emit_step(p, &k, &steps[i]);
    else if (p->copy_lane + 1 < p->plan->info.lanes_per_thread) {
      pack_lane(p, &k, p->copy_lane + 1);
      i = first;
    }
  }
  if (p->plan->info.observes_block) hg_ptx_place(p, k.end);
  hg_ptx_end_thread(p);
}
