/* lanes.c - kernels that do not see blocks: which lanes a thread has, and what surrounds the program's instructions
 * for each of them. */
#include "backend/cuda/ptx/ptx.h"

#include <stddef.h>

/* ---- one lane ---------------------------------------------------------------------------------------------------- */

/* 1 if the program asks for a coordinate of this group (ATLAS_COORD_... / 3) or later. */
static int asks_for_place(const ptx *p, uint32_t first_group) {
  for (uint32_t v = 0; v < p->unit->insns.count; v++)
    if (ptx_insn(p, v)->op == ATLAS_OP_sreg && ptx_insn(p, v)->bits / 3 >= first_group) return 1;
  return 0;
}

/* global.x, y, z from the lane's number; most launches have one dimension. */
static void find_global(ptx *p) {
  ptx_name x = PTX_FIELD(p, PTX_64, total[0]), y = PTX_FIELD(p, PTX_64, total[1]), flat = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name joined = hg_ptx_label(p), rest = hg_ptx_new(p, PTX_64), is_flat = PTX_FIELD(p, PTX_32, is_flat);
  for (int d = 6; d < 9; d++) {
    p->at[d] = hg_ptx_new(p, PTX_64);
    PTX(p, "mov.b64", p->at[d], d == 6 ? p->lane : hg_ptx_number(0));
  }
  PTX(p, "setp.ne.u32", flat, is_flat, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", flat.text, joined.text);
  PTX(p, "rem.u64", p->at[6], p->lane, x);
  PTX(p, "div.u64", rest, p->lane, x);
  PTX(p, "rem.u64", p->at[7], rest, y);
  PTX(p, "div.u64", p->at[8], rest, y);
  hg_ptx_place(p, joined);
}

static void one_lane(ptx *p) {
  if (asks_for_place(p, ATLAS_COORD_GLOBAL_X / 3)) find_global(p);
  hg_ptx_body(p);
}

/* ---- packs of lanes ---------------------------------------------------------------------------------------------- */

void hg_ptx_lanes_in_turn(ptx *p, ptx_name first) {
  hg_ptx_vectors_take_apart(p);
  p->in_vector_part = 1;
  for (p->copy_lane = 0; p->copy_lane < p->info->lanes_per_thread; p->copy_lane++) {
    p->lane = first;
    if (p->needs_lane && p->copy_lane > 0) {
      p->lane = hg_ptx_new(p, PTX_64);
      PTX(p, "add.s64", p->lane, first, hg_ptx_number(p->copy_lane));
    }
    one_lane(p);
  }
  p->in_vector_part = 0;
  hg_ptx_vectors_join(p);
}

/* What a thread of a vector-only kernel has. The blocks' lanes follow each other, block_lanes each, and a thread's
 * packs lie a tile apart. The last block may be of lanes that stand alone, a thread each: those behind the last whole
 * pack. */
typedef struct share {
  ptx_name block_lanes, base, bound; /* lanes: of a block (32 bits), where it begins, where the last whole pack ends */
  ptx_name first, whole;             /* the thread's first lane; a predicate: it is that of a pack, and not alone */
} share;

static uint32_t tile_of(const ptx *p) { return p->info->threads * p->info->lanes_per_thread; }

/* Rare: a lane alone, or none. */
static void find_alone(ptx *p, const share *s, ptx_name thread, ptx_name back) {
  ptx_name none = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.lt.u64", none, s->base, s->bound);
  hg_ptx_put(p, "\t@%s ret;\n", none.text);
  PTX(p, "add.s64", s->first, s->bound, hg_ptx_widened(p, thread));
  PTX(p, "setp.ge.u64", none, s->first, PTX_FIELD(p, PTX_64, lanes));
  hg_ptx_put(p, "\t@%s ret;\n\tbra %s;\n", none.text, back.text);
}

/* Threads that have nothing leave. */
static share find_share(ptx *p) {
  ptx_name thread = hg_ptx_special(p, "tid.x"), block = hg_ptx_special(p, "ctaid.x");
  ptx_name rare = hg_ptx_label(p), back = hg_ptx_label(p);
  share s = {.block_lanes = p->info->packs > 1 ? PTX_FIELD(p, PTX_32, block_lanes) : hg_ptx_number(tile_of(p)),
             .base = hg_ptx_new(p, PTX_64),
             .bound = PTX_FIELD(p, PTX_64, whole_lanes),
             .first = hg_ptx_new(p, PTX_64),
             .whole = hg_ptx_new(p, PTX_PREDICATE)};
  PTX(p, "mad.wide.u32", s.base, block, s.block_lanes, PTX_FIELD(p, PTX_64, first_lane));
  PTX(p, "mad.wide.u32", s.first, thread, hg_ptx_number(p->info->lanes_per_thread), s.base);
  PTX(p, "setp.lt.u64", s.whole, s.first, s.bound);
  hg_ptx_put(p, "\t@!%s bra %s;\n", s.whole.text, rare.text);
  hg_ptx_place(p, back);
  hg_array *out = p->out;
  p->out = &p->cold;
  hg_ptx_place(p, rare);
  find_alone(p, &s, thread, back);
  p->out = out;
  return s;
}

static void one_pack(ptx *p, const share *s) {
  hg_ptx_lanes_in_turn(p, s->first);
  hg_ptx_vectors_store(p, 0, &s->whole);
}

/* Both packs are loaded at once; the block may be without the second. */
static void two_packs(ptx *p, const share *s) {
  ptx_name next = hg_ptx_new(p, PTX_64), more = hg_ptx_new(p, PTX_PREDICATE), end = hg_ptx_label(p);
  PTX(p, "add.s64", next, s->first, hg_ptx_number(tile_of(p)));
  PTX(p, "setp.lt.u64", more, next, s->bound);
  PTX(p, "setp.gt.and.u32", more, s->block_lanes, hg_ptx_number(tile_of(p)), more);
  hg_ptx_vectors_load_next(p, tile_of(p), more);
  one_pack(p, s);
  hg_ptx_put(p, "\t@!%s bra %s;\n", more.text, end.text);
  hg_ptx_vectors_take_next(p);
  hg_ptx_lanes_in_turn(p, next);
  hg_ptx_vectors_store(p, tile_of(p), NULL);
  hg_ptx_place(p, end);
}

/* How many more packs the thread has. */
static ptx_name packs_left(ptx *p, const share *s) {
  ptx_name end = hg_ptx_new(p, PTX_64), left = hg_ptx_new(p, PTX_32);
  uint32_t shift = 0;
  while (1u << shift < tile_of(p)) shift++;
  PTX(p, "add.s64", end, s->base, hg_ptx_widened(p, s->block_lanes));
  PTX(p, "min.u64", end, end, s->bound);
  PTX(p, "sub.s64", end, end, s->first);
  PTX(p, "cvt.u32.u64", left, end);
  PTX(p, "add.s32", left, left, hg_ptx_name("-1"));
  PTX(p, "shr.u32", left, left, hg_ptx_number(shift));
  PTX(p, "selp.b32", left, left, hg_ptx_number(0), s->whole);
  return left;
}

/* Pack after pack: what the next one loads is under way while this one's is computed with. */
static void packs_in_turn(ptx *p, const share *s) {
  ptx_name left = packs_left(p, s), more = hg_ptx_new(p, PTX_PREDICATE), again = hg_ptx_label(p);
  hg_ptx_place(p, again);
  PTX(p, "setp.ne.u32", more, left, hg_ptx_number(0));
  hg_ptx_vectors_load_next(p, tile_of(p), more);
  hg_ptx_lanes_in_turn(p, s->first);
  hg_ptx_vectors_store(p, 0, &s->whole);
  hg_ptx_vectors_go_on(p, tile_of(p));
  if (p->needs_lane) PTX(p, "add.s64", s->first, s->first, hg_ptx_number(tile_of(p)));
  PTX(p, "add.s32", left, left, hg_ptx_name("-1"));
  hg_ptx_put(p, "\t@%s bra %s;\n", more.text, again.text);
}

/* Every access is a vector and in bounds: nothing to check. */
static void vector_kernel(ptx *p) {
  share s = find_share(p);
  hg_ptx_vectors_name(p);
  hg_ptx_vectors_point(p, s.first);
  hg_ptx_vectors_load(p, &s.whole);
  if (p->in_loop_of_packs) packs_in_turn(p, &s);
  else if (p->info->packs == 2) two_packs(p, &s);
  else one_pack(p, &s);
}

/* ---- tiles whose accesses may have to be checked ----------------------------------------------------------------- */

/* All accesses are in bounds, vectors lie at multiples of 16. */
static void vector_part(ptx *p, ptx_name first) {
  hg_ptx_vectors_name(p);
  hg_ptx_vectors_point(p, first);
  hg_ptx_vectors_load(p, NULL);
  hg_ptx_lanes_in_turn(p, first);
  hg_ptx_vectors_store(p, 0, NULL);
}

/* Lane after lane, the threads side by side, each access checked: the last tile, and the others where a buffer is too
 * short or does not lie at a multiple of 16. */
static void plain_part(ptx *p, ptx_name base, ptx_name thread, ptx_name lanes, ptx_name end) {
  ptx_name last = hg_ptx_new(p, PTX_64), done = hg_ptx_new(p, PTX_PREDICATE), again = hg_ptx_label(p);
  p->lane = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", last, base, hg_ptx_number(tile_of(p)));
  PTX(p, "min.u64", last, last, lanes);
  PTX(p, "add.s64", p->lane, base, thread);
  hg_ptx_place(p, again);
  PTX(p, "setp.ge.u64", done, p->lane, last);
  hg_ptx_put(p, "\t@%s bra %s;\n", done.text, end.text);
  one_lane(p);
  if (p->info->lanes_per_thread == 1) return;
  PTX(p, "add.s64", p->lane, p->lane, hg_ptx_number(p->info->threads));
  hg_ptx_put(p, "\tbra %s;\n", again.text);
}

/* A tile of threads x lanes_per_thread lanes a block. */
static void checked_kernel(ptx *p) {
  ptx_name thread = hg_ptx_widened(p, hg_ptx_special(p, "tid.x")), lanes = PTX_FIELD(p, PTX_64, lanes);
  ptx_name base = hg_ptx_new(p, PTX_64), first = hg_ptx_new(p, PTX_64), end = hg_ptx_label(p);
  PTX(p, "add.s64", base, hg_ptx_widened(p, hg_ptx_special(p, "ctaid.x")), PTX_FIELD(p, PTX_64, first));
  PTX(p, "mul.lo.u64", base, base, hg_ptx_number(tile_of(p)));
  PTX(p, "mad.lo.u64", first, thread, hg_ptx_number(p->info->lanes_per_thread), base);
  if (p->info->lanes_per_thread > 1) {
    ptx_name last = hg_ptx_new(p, PTX_64), is_plain = hg_ptx_new(p, PTX_PREDICATE), plain = hg_ptx_label(p);
    PTX(p, "add.s64", last, base, hg_ptx_number(tile_of(p)));
    PTX(p, "setp.gt.u64", is_plain, last, PTX_FIELD(p, PTX_64, fast_lanes));
    hg_ptx_put(p, "\t@%s bra %s;\n", is_plain.text, plain.text);
    vector_part(p, first);
    hg_ptx_put(p, "\tbra %s;\n", end.text);
    hg_ptx_place(p, plain);
  }
  plain_part(p, base, thread, lanes, end);
  hg_ptx_place(p, end);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

void hg_ptx_lanes_kernel(ptx *p) {
  if (p->info->vector_only) vector_kernel(p);
  else checked_kernel(p);
  hg_ptx_end_thread(p);
}
