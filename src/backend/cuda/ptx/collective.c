/* collective.c - exchanges: reductions and scans of a block in the common case. */
#include "backend/cuda/ptx/exchange.h"

#include "atlas/value.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

static ptx_name own_place(const ptx_exchange *c, uint32_t i) { return hg_ptx_place_at(c, i, c->p->block_lane); }

static ptx_name own_window(const ptx_exchange *c, uint32_t i) {
  return hg_ptx_slot_at(c->p, exchange_type(c, i), c->x->second[i], c->p->block_lane);
}

static ptx_name guard(ptx_name predicate) { return hg_ptx_name("@%s ", predicate.text); }

static ptx_name new_of(ptx *p, uint8_t type) { return hg_ptx_new(p, hg_ptx_class_of(type)); }

static const char *bits_of(uint8_t type) { return hg_ptx_bits_suffix(hg_ptx_class_of(type)); }

static void move(ptx *p, uint8_t type, ptx_name d, ptx_name a) { PTX(p, hg_ptx_join("mov", bits_of(type)).text, d, a); }

static void choose(ptx *p, uint8_t type, ptx_name d, ptx_name yes, ptx_name no, ptx_name predicate) {
  PTX(p, hg_ptx_join("selp", bits_of(type)).text, d, yes, no, predicate);
}

/* Arithmetic of other types is rounded, which makes NaNs canonical. */
static ptx_name exact(ptx *p, uint8_t type, ptx_name value) {
  return gpu_combines_loosely(type) ? hg_ptx_make_exact(p, type, value) : value;
}

/* Exact where the predicate holds: there the value combines several lanes'. Elsewhere it keeps its bits. */
static ptx_name exact_where(ptx *p, uint8_t type, ptx_name value, ptx_name holds) {
  if (!gpu_combines_loosely(type)) return value;
  ptx_name d = new_of(p, type);
  choose(p, type, d, hg_ptx_make_exact(p, type, value), value, holds);
  return d;
}

static ptx_name neutral(uint16_t op, uint8_t type) {
  uint64_t bits = hg_gpu_neutral(op, type);
  return gpu_is_narrow(type) ? hg_ptx_number(bits) : hg_ptx_constant(type, bits);
}

/* ---- exchanges of registers -------------------------------------------------------------------------------------- */

static void shuffle_word(ptx *p, const char *mode, ptx_name d, const ptx_name *has, ptx_name a, ptx_name by,
                         ptx_name bound) {
  hg_ptx_put(p, "\tshfl.sync.%s.b32 %s%s%s, %s, %s, %s, 0xffffffff;\n", mode, d.text, has != NULL ? "|" : "",
             has != NULL ? has->text : "", a.text, by.text, bound.text);
}

/* The value of another lane of the warp; *has: whether there is such a lane, up to `bound` (down) or within the warp
 * (up). */
static ptx_name shuffled_by(ptx *p, const char *mode, uint8_t type, ptx_name value, ptx_name by, ptx_name bound,
                            const ptx_name *has) {
  ptx_name d = new_of(p, type), low = hg_ptx_new(p, PTX_32);
  switch (hg_ptx_class_of(type)) {
  case PTX_64: {
    ptx_name high = hg_ptx_new(p, PTX_32), to_low = hg_ptx_new(p, PTX_32), to_high = hg_ptx_new(p, PTX_32);
    hg_ptx_put(p, "\tmov.b64 {%s, %s}, %s;\n", low.text, high.text, value.text);
    shuffle_word(p, mode, to_low, has, low, by, bound);
    shuffle_word(p, mode, to_high, NULL, high, by, bound);
    hg_ptx_put(p, "\tmov.b64 %s, {%s, %s};\n", d.text, to_low.text, to_high.text);
    break;
  }
  case PTX_16: {
    ptx_name moved = hg_ptx_new(p, PTX_32);
    PTX(p, "cvt.u32.u16", low, value);
    shuffle_word(p, mode, moved, has, low, by, bound);
    PTX(p, "cvt.u16.u32", d, moved);
    break;
  }
  default: shuffle_word(p, mode, d, has, value, by, bound); break;
  }
  return d;
}

static ptx_name shuffled(ptx *p, const char *mode, uint8_t type, ptx_name value, uint32_t by, ptx_name bound,
                         const ptx_name *has) {
  return shuffled_by(p, mode, type, value, hg_ptx_number(by), bound, has);
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

static void begin(ptx_exchange *c) {
  c->careful = hg_ptx_label(c->p);
  c->joined = hg_ptx_label(c->p);
  c->in_warp = hg_ptx_new(c->p, PTX_32);
  ptx_name thread = c->p->plan->is_transposed ? hg_ptx_special(c->p, "tid.x") : c->p->block_lane;
  PTX(c->p, "and.b32", c->in_warp, thread, hg_ptx_number(GPU_FOLD_LANES - 1));
}

static void take_own(ptx_exchange *c, uint32_t i) {
  uint8_t type = exchange_type(c, i);
  c->own[i] = new_of(c->p, type);
  move(c->p, type, c->own[i], hg_ptx_argument(c->p, c->x->value[i], 0));
}

static void need_lanes(const ptx_exchange *c) {
  ptx_name test = hg_ptx_new(c->p, PTX_PREDICATE);
  const char *is_other = c->x->least_lanes == c->x->most_lanes ? "setp.ne.u32" : "setp.lt.u32";
  PTX(c->p, is_other, test, c->p->lane_count, hg_ptx_number(c->x->least_lanes));
  hg_ptx_put(c->p, "\t@%s bra.uni %s;\n", test.text, c->careful.text);
}

/* In a single warp a ballot counts the lanes that have not ended. */
static void none_ended(const ptx_exchange *c) {
  ptx *p = c->p;
  ptx_name there = hg_ptx_new(p, PTX_32), wanted = hg_ptx_new(p, PTX_32), test = hg_ptx_new(p, PTX_PREDICATE);
  if (gpu_is_one_warp(p->plan)) {
    ptx_name yes = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, "setp.ne.u32", yes, p->lane_count, hg_ptx_number(0));
    hg_ptx_put(p, "\tvote.sync.ballot.b32 %s, %s, 0xffffffff;\n", there.text, yes.text);
    PTX(p, "sub.s32", wanted, hg_ptx_number(GPU_FOLD_LANES), p->lane_count);
    PTX(p, "shr.u32", wanted, hg_ptx_number(UINT32_MAX), wanted);
  } else {
    hg_ptx_put(p, "\tld.shared.u32 %s, [%s];\n", there.text, hg_ptx_shared_at(p, p->plan->memory.ended_any).text);
    wanted = hg_ptx_number(0);
  }
  PTX(p, "setp.ne.u32", test, there, wanted);
  hg_ptx_put(p, "\t@%s bra.uni %s;\n", test.text, c->careful.text);
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static void fold_warp_by(ptx_exchange *c, uint32_t i, ptx_name h) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name last = hg_ptx_new(p, PTX_32), has = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "sub.s32", last, p->lane_count, hg_ptx_number(1));
  ptx_name other = shuffled_by(p, "down", type, c->own[i], h, last, &has);
  ptx_name both = hg_ptx_combined(p, hg_ptx_combining_op(c, i), type, c->own[i], other);
  choose(p, type, c->own[i], both, c->own[i], has);
}

/* Hardly ever needed, hence a loop. */
static void fold_warp(ptx_exchange *c) {
  ptx *p = c->p;
  ptx_name h = hg_ptx_new(p, PTX_32), more = hg_ptx_new(p, PTX_PREDICATE), again = hg_ptx_label(p);
  PTX(p, "mov.b32", h, hg_ptx_number(GPU_FOLD_LANES / 2));
  hg_ptx_place(p, again);
  for (uint32_t i = 0; i < c->x->count; i++) fold_warp_by(c, i, h);
  PTX(p, "shr.u32", h, h, hg_ptx_number(1));
  PTX(p, "setp.ne.u32", more, h, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra.uni %s;\n", more.text, again.text);
}

/* The operations commute in every bit, so either lane of a pair may compute them. */
static ptx_name folded_with_lane(const ptx_exchange *c, uint32_t i, ptx_name kept, ptx_name given, uint32_t h) {
  uint8_t type = exchange_type(c, i);
  ptx_name other = shuffled(c->p, "bfly", type, given, h, hg_ptx_number(31), NULL);
  return hg_ptx_combined(c->p, hg_ptx_combining_op(c, i), type, kept, other);
}

static void fold_own_by(ptx_exchange *c, uint32_t i, uint32_t h) {
  c->own[i] = folded_with_lane(c, i, c->own[i], c->own[i], h);
}

static void fold_pair_by(ptx_exchange *c, uint32_t i, uint32_t h, uint32_t further) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name bit = hg_ptx_new(p, PTX_32), is_upper = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name kept = new_of(p, type), given = new_of(p, type), lower = c->own[i], upper = c->own[i + further];
  PTX(p, "and.b32", bit, c->in_warp, hg_ptx_number(h));
  PTX(p, "setp.ne.u32", is_upper, bit, hg_ptx_number(0));
  choose(p, type, kept, upper, lower, is_upper);
  choose(p, type, given, lower, upper, is_upper);
  c->own[i] = folded_with_lane(c, i, kept, given, h);
}

static void spread_from(const ptx_exchange *c, uint32_t i, uint32_t lane, uint32_t before) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name result = shuffled(p, "idx", type, c->own[i - before], lane, hg_ptx_number(31), NULL);
  move(p, type, hg_ptx_register(p, c->x->value[i]), result);
}

static void spread(const ptx_exchange *c, uint32_t i) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name several = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.gt.u32", several, p->lane_count, hg_ptx_number(1));
  ptx_name result = shuffled(p, "idx", type, c->own[i], 0, hg_ptx_number(31), NULL);
  move(p, type, hg_ptx_register(p, c->x->value[i]), exact_where(p, type, result, several));
}

static ptx_name whole_warps(ptx *p) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, "shr.u32", d, p->lane_count, hg_ptx_number(5));
  return d;
}

/* Warps that fold no value, or are not whole, continue behind END_FOLDERS. */
static void open_folders(ptx_exchange *c, uint32_t i, uint32_t count, uint32_t first) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name none = hg_ptx_new(p, PTX_PREDICATE), limit = hg_ptx_number(count);
  int is_loop = count > c->x->least_lanes / GPU_FOLD_LANES;
  c->folders = is_loop ? count : 0;
  c->place_bytes = gpu_place_bytes(p->plan, type);
  c->folders_again = hg_ptx_label(p);
  c->folders_end = hg_ptx_label(p);
  c->folded = hg_ptx_new(p, PTX_32);
  c->place = hg_ptx_new(p, PTX_32);
  PTX(p, "shr.u32", c->folded, p->block_lane, hg_ptx_number(5));
  if (first > 0) PTX(p, "sub.s32", c->folded, c->folded, hg_ptx_number(first));
  if (is_loop) {
    limit = whole_warps(p);
    PTX(p, "min.u32", limit, limit, hg_ptx_number(count));
  }
  PTX(p, "setp.ge.u32", none, c->folded, limit);
  hg_ptx_put(p, "\t@%s bra.uni %s;\n", none.text, c->folders_end.text);
  PTX(p, "mad.lo.u32", c->place, c->folded, hg_ptx_number(c->place_bytes),
      hg_ptx_place_at(c, i, c->in_warp));
  if (is_loop) hg_ptx_place(p, c->folders_again);
}

static void close_folders(const ptx_exchange *c) {
  ptx *p = c->p;
  if (c->folders > 0) {
    ptx_name warps = whole_warps(p), more = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, "mad.lo.u32", c->place, warps, hg_ptx_number(c->place_bytes), c->place);
    PTX(p, "add.s32", c->folded, c->folded, warps);
    PTX(p, "setp.lt.u32", more, c->folded, hg_ptx_number(c->folders));
    hg_ptx_put(p, "\t@%s bra.uni %s;\n", more.text, c->folders_again.text);
  }
  hg_ptx_place(p, c->folders_end);
}

static void fold_row(ptx_exchange *c, uint32_t i, uint32_t j) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  int offset = (int)(j * GPU_FOLD_LANES * gpu_slot_bytes(type));
  c->row[j] = new_of(p, type);
  if ((j + 1) * GPU_FOLD_LANES <= c->x->least_lanes) {
    hg_ptx_load_slot(p, "", type, c->row[j], c->place, offset);
    return;
  }
  ptx_name lane = hg_ptx_new(p, PTX_32), has = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "add.s32", lane, c->in_warp, hg_ptx_number(j * GPU_FOLD_LANES));
  PTX(p, "setp.lt.u32", has, lane, p->lane_count);
  move(p, type, c->row[j], neutral(hg_ptx_combining_op(c, i), type));
  hg_ptx_load_slot(p, guard(has).text, type, c->row[j], c->place, offset);
}

static void fold_rows(ptx_exchange *c, uint32_t i, uint32_t j, uint32_t half) {
  c->row[j] = hg_ptx_combined(c->p, hg_ptx_combining_op(c, i), exchange_type(c, i), c->row[j], c->row[j + half]);
}

static void fold_lanes_by(ptx_exchange *c, uint32_t i, uint32_t h) {
  c->row[0] = folded_with_lane(c, i, c->row[0], c->row[0], h);
}

static void keep_result(const ptx_exchange *c, uint32_t i) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name result = exact(p, type, c->row[0]), is_first = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name address = hg_ptx_slot_at(p, type, c->x->second[i], c->folded);
  PTX(p, "setp.eq.u32", is_first, c->in_warp, hg_ptx_number(0));
  hg_ptx_store_slot(p, guard(is_first).text, type, address, 0, result);
}

static void get_folded(const ptx_exchange *c, uint32_t i, ptx_name folded) {
  uint8_t type = exchange_type(c, i);
  move(c->p, type, hg_ptx_register(c->p, c->x->value[i]), exact(c->p, type, folded));
}

/* Loads neighbouring words at once. */
static void get_result(ptx_exchange *c, uint32_t i) {
  ptx *p = c->p;
  if (i < c->got) return;
  ptx_name address = hg_ptx_shared_at(p, c->x->second[i]), d[4];
  uint32_t count = 0, width = 1;
  for (; count < 4 && i + count < c->x->count && hg_ptx_class_of(exchange_type(c, i + count)) == PTX_32; count++)
    d[count] = hg_ptx_register(p, c->x->value[i + count]);
  while (2 * width <= count && c->x->second[i] % (8 * width) == 0) width *= 2;
  c->got = i + width;
  if (width == 4)
    hg_ptx_put(p, "\tld.shared.v4.b32 {%s, %s, %s, %s}, [%s];\n", d[0].text, d[1].text, d[2].text, d[3].text,
               address.text);
  else if (width == 2) hg_ptx_put(p, "\tld.shared.v2.b32 {%s, %s}, [%s];\n", d[0].text, d[1].text, address.text);
  else hg_ptx_load_slot(p, "", exchange_type(c, i), hg_ptx_register(p, c->x->value[i]), address, 0);
}

/* ---- warps along y ----------------------------------------------------------------------------------------------- */

/* Lane r of the warp gives the warp's result to sub-block r. */
static void put_warp(ptx_exchange *c, uint32_t i) {
  ptx *p = c->p;
  uint32_t sub_blocks = p->plan->info.sub_blocks;
  uint8_t type = exchange_type(c, i);
  ptx_name warp = hg_ptx_new(p, PTX_32), is_one = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "and.b32", warp, p->block_lane, hg_ptx_number(p->plan->program->block[0] - 1));
  ptx_name at = hg_ptx_place_at(c, i, warp);
  PTX(p, "setp.lt.u32", is_one, c->in_warp, hg_ptx_number(sub_blocks));
  if (sub_blocks == 1) {
    hg_ptx_store_slot(p, guard(is_one).text, type, at, 0, c->own[i]);
    return;
  }
  ptx_name there = hg_ptx_new(p, PTX_32), part = hg_ptx_new(p, PTX_32);
  PTX(p, "and.b32", part, c->in_warp, hg_ptx_number(sub_blocks - 1));
  PTX(p, "mapa.shared::cluster.u32", there, at, part);
  hg_ptx_put(p, "\t%sst.shared::cluster%s [%s], %s;\n", guard(is_one).text, bits_of(type), there.text, c->own[i].text);
}

static void take_warp(ptx_exchange *c, uint32_t i) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name warp = hg_ptx_new(p, PTX_32);
  PTX(p, "and.b32", warp, c->in_warp, hg_ptx_number(p->plan->program->block[0] - 1));
  c->own[i] = new_of(p, type);
  hg_ptx_load_slot(p, "", type, c->own[i], hg_ptx_place_at(c, i, warp), 0);
}

/* ---- scans ------------------------------------------------------------------------------------------------------- */

/* If the predicate holds, own = left op own. */
static void add_left(const ptx_exchange *c, uint32_t i, ptx_name left, ptx_name has) {
  uint8_t type = exchange_type(c, i);
  choose(c->p, type, c->own[i], hg_ptx_combined(c->p, ATLAS_OP_add, type, left, c->own[i]), c->own[i], has);
}

static void stride_lanes(const ptx_exchange *c, uint32_t i, uint32_t s) {
  ptx_name has = hg_ptx_new(c->p, PTX_PREDICATE);
  ptx_name left = shuffled(c->p, "up", exchange_type(c, i), c->own[i], s, hg_ptx_number(0), &has);
  add_left(c, i, left, has);
}

/* A warp's place holds what its last lane has before stride 1, its last two before stride 2, and so on: lane k of the
 * last s is at s - 1 + k. */
static void put_last(const ptx_exchange *c, uint32_t i, uint32_t s) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name is_last = hg_ptx_new(p, PTX_PREDICATE);
  int offset = (int)s - 1 + (int)s - GPU_FOLD_LANES;
  PTX(p, "setp.ge.u32", is_last, c->in_warp, hg_ptx_number(GPU_FOLD_LANES - s));
  hg_ptx_store_slot(p, guard(is_last).text, type, own_place(c, i), offset * (int)gpu_slot_bytes(type),
                    c->own[i]);
}

static void stride_across(const ptx_exchange *c, uint32_t i, uint32_t s) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name left = shuffled(p, "up", type, c->own[i], s, hg_ptx_number(0), NULL);
  ptx_name crosses = hg_ptx_new(p, PTX_PREDICATE), has = hg_ptx_new(p, PTX_PREDICATE);
  int offset = (int)s - 1 - GPU_FOLD_LANES;
  PTX(p, "setp.ge.u32", has, p->block_lane, hg_ptx_number(GPU_FOLD_LANES));
  PTX(p, "setp.lt.and.u32", crosses, c->in_warp, hg_ptx_number(s), has);
  hg_ptx_load_slot(p, guard(crosses).text, type, left, own_place(c, i),
                   offset * (int)gpu_slot_bytes(type));
  PTX(p, "setp.ge.u32", has, p->block_lane, hg_ptx_number(s));
  add_left(c, i, left, has);
}

static void row_before(ptx_exchange *c, uint32_t i, uint32_t j) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  uint32_t distance = j * GPU_FOLD_LANES + (exchange_insn(c, i)->op == ATLAS_OP_scan_excl);
  c->row[j] = c->own[i];
  if (distance > 0) {
    ptx_name has = hg_ptx_new(p, PTX_PREDICATE);
    c->row[j] = new_of(p, type);
    PTX(p, "setp.ge.u32", has, p->block_lane, hg_ptx_number(distance));
    move(p, type, c->row[j], neutral(ATLAS_OP_add, type));
    hg_ptx_load_slot(p, guard(has).text, type, c->row[j], own_window(c, i),
                     -(int)(distance * gpu_slot_bytes(type)));
  }
  if (j == 0) c->raw = c->row[0];
}

static void add_rows(ptx_exchange *c, uint32_t i, uint32_t j, uint32_t size) {
  c->row[j] = hg_ptx_combined(c->p, ATLAS_OP_add, exchange_type(c, i), c->row[j + size], c->row[j]);
}

/* A single number is its own sum. A single NaN keeps its bits; a single zero of an exclusive scan is +0. */
static void get_sum(const ptx_exchange *c, uint32_t i) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name d = hg_ptx_register(p, c->x->value[i]), sum = exact(p, type, c->row[0]);
  if (atlas_is_integer((atlas_type)type)) {
    move(p, type, d, sum);
    return;
  }
  int is_exclusive = exchange_insn(c, i)->op == ATLAS_OP_scan_excl;
  ptx_name test = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.gt.u32", test, p->block_lane, hg_ptx_number((uint64_t)is_exclusive));
  choose(p, type, d, sum, c->raw, test);
  if (!is_exclusive) return;
  PTX(p, "setp.ne.u32", test, p->block_lane, hg_ptx_number(0));
  choose(p, type, d, d, hg_ptx_number(0), test);
}

static void get_scanned(const ptx_exchange *c, uint32_t i) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name d = hg_ptx_register(p, c->x->value[i]), has = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.ne.u32", has, p->block_lane, hg_ptx_number(0));
  ptx_name sum = exact_where(p, type, c->own[i], has);
  if (exchange_insn(c, i)->op == ATLAS_OP_scan_excl)
    choose(p, type, d, shuffled(p, "up", type, sum, 1, hg_ptx_number(0), NULL), hg_ptx_number(0), has);
  else move(p, type, d, sum);
}

/* ---- all steps --------------------------------------------------------------------------------------------------- */

/* The careful path is out of line. */
static void turn(ptx_exchange *c) {
  c->out = c->p->out;
  c->p->out = &c->p->cold;
  hg_ptx_place(c->p, c->careful);
}

static void end(const ptx_exchange *c) {
  if (c->out == NULL) return;
  hg_ptx_put(c->p, "\tbra %s;\n", c->joined.text);
  c->p->out = c->out;
  hg_ptx_place(c->p, c->joined);
}

static void emit_step(ptx_exchange *c, const gpu_step *step) {
  uint32_t i = 0, low = step->number & 0xffff, high = step->number >> 16;
  while (i + 1 < c->x->count && c->x->value[i] != step->value) i++;
  switch (step->op) {
  case GPU_EXCHANGE: begin(c); break;
  case GPU_OWN: take_own(c, i); break;
  case GPU_SYNC: hg_ptx_put(c->p, "\tbar.sync 0;\n"); break;
  case GPU_TURN: PTX(c->p, "sub.s32", c->p->half, hg_ptx_number(c->p->plan->memory.half_bytes), c->p->half); break;
  case GPU_NEED_LANES: need_lanes(c); break;
  case GPU_NONE_ENDED: none_ended(c); break;
  case GPU_PUT_OWN:
    hg_ptx_store_slot(c->p, "", exchange_type(c, i), own_place(c, i), 0, c->own[i]);
    break;
  case GPU_FOLDERS: open_folders(c, i, low, high); break;
  case GPU_FOLDER: c->place = hg_ptx_place_at(c, i, c->in_warp); break;
  case GPU_FOLD_ROW: fold_row(c, i, step->number); break;
  case GPU_FOLD_ROWS: fold_rows(c, i, low, high); break;
  case GPU_FOLD_LANES_BY: fold_lanes_by(c, i, step->number); break;
  case GPU_KEEP_RESULT: keep_result(c, i); break;
  case GPU_END_FOLDERS: close_folders(c); break;
  case GPU_GET_FOLDED: get_folded(c, i, c->row[0]); break;
  case GPU_GET_RESULT: get_result(c, i); break;
  case GPU_FOLD_WARP_BY: fold_warp_by(c, i, hg_ptx_number(step->number)); break;
  case GPU_FOLD_WARP: fold_warp(c); break;
  case GPU_FOLD_OWN_BY: fold_own_by(c, i, step->number); break;
  case GPU_FOLD_PAIR_BY: fold_pair_by(c, i, low, high); break;
  case GPU_GET_OWN: get_folded(c, i, c->own[i]); break;
  case GPU_MAKE_EXACT: c->own[i] = exact(c->p, exchange_type(c, i), c->own[i]); break;
  case GPU_SPREAD_FROM: spread_from(c, i, low, high); break;
  case GPU_SPREAD: spread(c, i); break;
  case GPU_MEET_SUB_BLOCKS:
    if (c->p->plan->info.sub_blocks > 1) hg_ptx_put(c->p, "\tbarrier.cluster.wait.aligned;\n");
    break;
  case GPU_PUT_WARP: put_warp(c, i); break;
  case GPU_SYNC_SUB_BLOCKS: hg_ptx_sync_sub_blocks(c->p); break;
  case GPU_TAKE_WARP: take_warp(c, i); break;
  case GPU_PUT_LAST: put_last(c, i, step->number); break;
  case GPU_STRIDE_LANES: stride_lanes(c, i, step->number); break;
  case GPU_STRIDE_ACROSS: stride_across(c, i, step->number); break;
  case GPU_PUT_WINDOW:
    hg_ptx_store_slot(c->p, "", exchange_type(c, i), own_window(c, i), 0, c->own[i]);
    break;
  case GPU_ROW_BEFORE: row_before(c, i, step->number); break;
  case GPU_ADD_ROWS: add_rows(c, i, low, high); break;
  case GPU_GET_SUM: get_sum(c, i); break;
  case GPU_GET_SCANNED: get_scanned(c, i); break;
  case GPU_CAREFULLY: turn(c); break;
  case GPU_END_EXCHANGE: end(c); break;
  default: hg_ptx_careful_step(c, step, i); break;
  }
}

uint32_t hg_ptx_exchange(ptx *p, const gpu_step *steps) {
  ptx_exchange c = {.p = p, .x = gpu_exchange_at(p->plan, steps[0].number)};
  uint32_t count = 0;
  do emit_step(&c, &steps[count]);
  while (steps[count++].op != GPU_END_EXCHANGE);
  return count;
}
