/* rank.c - rank: how many lanes of the block before this one have the same low bits.
 *
 * A ballot for each bit leaves the lanes of the warp that agree with this one in all of them.
 *
 * Ranks that are done at once (gpu/ranks.c): the lowest of these lanes stores their number, a byte for each warp of a
 * word of 64 bits that the value has. A lane for each value turns the bytes into sums of those before, which a product
 * does, and stores their total.
 *
 * Where lanes may have ended, or the block is larger: the lowest of the lanes adds their number to the count of their
 * value, warp after warp, and tells the others what it found there. So the counts themselves are all the memory that
 * this takes, and a lane that has ended is missed by none: it votes no longer. */
#include "backend/cuda/ptx/exchange.h"

typedef struct ranking {
  ptx *p;
  uint32_t bits, counts; /* where the counts begin in shared memory */
  ptx_name a, there, alike;        /* the lanes of the warp that have not ended; those that agree with this one */
  ptx_name below, leads;           /* those of them before this one; a predicate: there is none */
} ranking;

static ptx_name number(uint32_t n) { return hg_ptx_number(n); }

static ptx_name ballot(ptx *p, ptx_name predicate) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  hg_ptx_put(p, "\tvote.sync.ballot.b32 %s, %s, 0xffffffff;\n", d.text, predicate.text);
  return d;
}

static void find_alike(ranking *r) {
  ptx *p = r->p;
  ptx_name is_set = hg_ptx_new(p, PTX_PREDICATE), bit = hg_ptx_new(p, PTX_32);
  PTX(p, "setp.ne.u32", is_set, p->lane_count, number(0));
  r->there = ballot(p, is_set);
  r->alike = hg_ptx_new(p, PTX_32);
  PTX(p, "mov.b32", r->alike, r->there);
  for (uint32_t b = 0; b < r->bits; b++) {
    PTX(p, "and.b32", bit, r->a, number(1u << b));
    PTX(p, "setp.ne.u32", is_set, bit, number(0));
    ptx_name votes = ballot(p, is_set);
    hg_ptx_put(p, "\t@!%s not.b32 %s, %s;\n", is_set.text, votes.text, votes.text);
    PTX(p, "and.b32", r->alike, r->alike, votes);
  }
  r->below = hg_ptx_new(p, PTX_32);
  r->leads = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "and.b32", r->below, r->alike, hg_ptx_special(p, "lanemask_lt"));
  PTX(p, "setp.eq.u32", r->leads, r->below, number(0));
}

/* Each lane its share of the counts; where lanes may have ended each warp all of them. */
static void clear_counts(const ranking *r) {
  ptx *p = r->p;
  ptx_name at = hg_ptx_new(p, PTX_32), i = hg_ptx_new(p, PTX_32), step = hg_ptx_new(p, PTX_32);
  ptx_name is_done = hg_ptx_new(p, PTX_PREDICATE), again = hg_ptx_label(p), end = hg_ptx_label(p);
  if (p->plan->can_end) {
    PTX(p, "and.b32", i, r->there, hg_ptx_special(p, "lanemask_lt"));
    PTX(p, "popc.b32", i, i);
    PTX(p, "popc.b32", step, r->there);
  } else {
    PTX(p, "mov.b32", i, p->block_lane);
    PTX(p, "mov.b32", step, p->lane_count);
  }
  hg_ptx_place(p, again);
  PTX(p, "setp.ge.u32", is_done, i, number(1u << r->bits));
  hg_ptx_put(p, "\t@%s bra %s;\n", is_done.text, end.text);
  PTX(p, "mad.lo.u32", at, i, number(sizeof(uint32_t)), hg_ptx_shared_at(p, r->counts));
  hg_ptx_put(p, "\tst.shared.u32 [%s], 0;\n", at.text);
  PTX(p, "add.s32", i, i, step);
  hg_ptx_put(p, "\tbra %s;\n", again.text);
  hg_ptx_place(p, end);
}

/* Warp after warp, what is counted of the lane's value before its warp, in the lanes that lead. */
static ptx_name count_warps(const ranking *r) {
  ptx *p = r->p;
  ptx_name before = hg_ptx_new(p, PTX_32), value = hg_ptx_new(p, PTX_32), at = hg_ptx_new(p, PTX_32);
  ptx_name own = hg_ptx_new(p, PTX_32), warp = hg_ptx_new(p, PTX_32), warps = hg_ptx_new(p, PTX_32);
  ptx_name now = hg_ptx_new(p, PTX_PREDICATE), again = hg_ptx_label(p), count = hg_ptx_new(p, PTX_32);
  PTX(p, "and.b32", value, r->a, number((1u << r->bits) - 1));
  PTX(p, "mad.lo.u32", at, value, number(sizeof(uint32_t)), hg_ptx_shared_at(p, r->counts));
  PTX(p, "popc.b32", count, r->alike);
  PTX(p, "shr.u32", own, p->block_lane, number(5));
  PTX(p, "add.s32", warps, p->lane_count, number(31));
  PTX(p, "shr.u32", warps, warps, number(5));
  PTX(p, "mov.b32", before, number(0));
  PTX(p, "mov.b32", warp, number(0));
  hg_ptx_place(p, again);
  PTX(p, "setp.eq.and.u32", now, warp, own, r->leads);
  hg_ptx_put(p, "\t@%s atom.shared.add.u32 %s, [%s], %s;\n\tbar.sync 0;\n", now.text, before.text, at.text, count.text);
  PTX(p, "add.s32", warp, warp, number(1));
  PTX(p, "setp.lt.u32", now, warp, warps);
  hg_ptx_put(p, "\t@%s bra %s;\n", now.text, again.text);
  return before;
}

static ranking ranking_of(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  ranking r = {.p = p, .bits = ssa_window_bits(insn)};
  r.counts = p->plan->memory.shared_offset[insn->symbol] + ssa_window_first(insn) * (uint32_t)sizeof(uint32_t);
  r.a = hg_ptx_value(p, ptx_arg(p, value, 0));
  find_alike(&r);
  return r;
}

static void rank_alone(ptx *p, uint32_t value) {
  ranking r = ranking_of(p, value);
  hg_ptx_put(p, "\tbar.sync 0;\n");
  clear_counts(&r);
  hg_ptx_put(p, "\tbar.sync 0;\n");
  ptx_name before = count_warps(&r), leader = hg_ptx_new(p, PTX_32), rank = hg_ptx_new(p, PTX_32);
  PTX(p, "brev.b32", leader, r.alike);
  PTX(p, "clz.b32", leader, leader);
  hg_ptx_put(p, "\tshfl.sync.idx.b32 %s, %s, %s, 31, 0xffffffff;\n", before.text, before.text, leader.text);
  PTX(p, "popc.b32", rank, r.below);
  PTX(p, "add.s32", hg_ptx_register(p, value), before, rank);
}

/* ---- at once ----------------------------------------------------------------------------------------------------- */

enum { WORD_BYTES = 8 /* a byte for each warp */, VECTOR_BYTES = 16 };

static void clear_words(ptx *p, uint32_t offset, uint32_t bytes, uint32_t lanes) {
  ptx_name at = hg_ptx_new(p, PTX_32), is_there = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "mad.lo.u32", at, p->block_lane, number(VECTOR_BYTES), hg_ptx_shared_at(p, offset));
  for (uint32_t first = 0; first < bytes; first += lanes * VECTOR_BYTES) {
    uint32_t left = (bytes - first) / VECTOR_BYTES;
    if (left < lanes) PTX(p, "setp.lt.u32", is_there, p->block_lane, number(left));
    if (left < lanes) hg_ptx_put(p, "\t@%s", is_there.text);
    hg_ptx_put(p, "\tst.shared.v4.b32 [%s+%u], {0, 0, 0, 0};\n", at.text, (unsigned)first);
  }
}

/* The lane's value, and those `lanes` further on: bytes become the sums of those before; their total is the count. */
static void add_warps(const ranking *r, uint32_t words, uint32_t lanes) {
  ptx *p = r->p;
  ptx_name low = hg_ptx_new(p, PTX_32), high = hg_ptx_new(p, PTX_32), to = hg_ptx_new(p, PTX_32);
  ptx_name low_sums = hg_ptx_new(p, PTX_32), high_sums = hg_ptx_new(p, PTX_32), is_there = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name at = hg_ptx_new(p, PTX_32);
  PTX(p, "mad.lo.u32", at, p->block_lane, number(WORD_BYTES), hg_ptx_shared_at(p, words));
  PTX(p, "mad.lo.u32", to, p->block_lane, number(sizeof(uint32_t)), hg_ptx_shared_at(p, r->counts));
  for (uint32_t first = 0; first < 1u << r->bits; first += lanes) {
    uint32_t left = (1u << r->bits) - first;
    if (left < lanes) PTX(p, "setp.lt.u32", is_there, p->block_lane, number(left));
    const char *at_sign = left < lanes ? "@" : "", *guard = left < lanes ? is_there.text : "";
    unsigned word = first * WORD_BYTES;
    hg_ptx_put(p, "\t%s%s ld.shared.v2.b32 {%s, %s}, [%s+%u];\n", at_sign, guard, low.text, high.text, at.text, word);
    PTX(p, "mul.lo.u32", low_sums, low, number(0x01010100));
    PTX(p, "mul.lo.u32", high_sums, high, number(0x01010100));
    PTX(p, "mul.lo.u32", low, low, number(0x01010101));
    PTX(p, "shr.u32", low, low, number(24)); /* of four warps: it fits */
    PTX(p, "mad.lo.u32", high_sums, low, number(0x01010101), high_sums);
    hg_ptx_put(p, "\t%s%s st.shared.v2.b32 [%s+%u], {%s, %s};\n", at_sign, guard, at.text, word, low_sums.text,
               high_sums.text);
    PTX(p, "shr.u32", high, high, number(24));
    PTX(p, "shr.u32", high_sums, high_sums, number(24));
    PTX(p, "add.s32", high, high, high_sums);
    hg_ptx_put(p, "\t%s%s st.shared.b32 [%s+%u], %s;\n", at_sign, guard, to.text,
               (unsigned)(first * sizeof(uint32_t)), high.text);
  }
}

static void rank_at_once(ptx *p, const uint32_t *values, uint32_t count) {
  ranking r[HG_PTX_MOST_RANKS];
  ptx_name own[HG_PTX_MOST_RANKS], warp = hg_ptx_new(p, PTX_32), sum = hg_ptx_new(p, PTX_32);
  uint32_t lanes = gpu_block_lanes(p->plan), words[HG_PTX_MOST_RANKS], all = p->plan->memory.rank_counts;
  PTX(p, "shr.u32", warp, p->block_lane, number(5));
  for (uint32_t i = 0; i < count; i++) {
    r[i] = ranking_of(p, values[i]), own[i] = hg_ptx_new(p, PTX_32);
    words[i] = all + (i * WORD_BYTES << r[i].bits);
    PTX(p, "and.b32", own[i], r[i].a, number((1u << r[i].bits) - 1));
    PTX(p, "mad.lo.u32", own[i], own[i], number(WORD_BYTES), hg_ptx_shared_at(p, words[i]));
    PTX(p, "add.s32", own[i], own[i], warp);
  }
  hg_ptx_put(p, "\tbar.sync 0;\n");
  clear_words(p, all, count * WORD_BYTES << r[0].bits, lanes);
  hg_ptx_put(p, "\tbar.sync 0;\n");
  for (uint32_t i = 0; i < count; i++) {
    PTX(p, "popc.b32", sum, r[i].alike);
    hg_ptx_put(p, "\t@%s st.shared.b8 [%s], %s;\n", r[i].leads.text, own[i].text, sum.text);
  }
  hg_ptx_put(p, "\tbar.sync 0;\n");
  for (uint32_t i = 0; i < count; i++) add_warps(&r[i], words[i], lanes);
  hg_ptx_put(p, "\tbar.sync 0;\n");
  for (uint32_t i = 0; i < count; i++) {
    ptx_name rank = hg_ptx_register(p, values[i]);
    hg_ptx_put(p, "\tld.shared.u8 %s, [%s];\n", sum.text, own[i].text);
    PTX(p, "popc.b32", rank, r[i].below);
    PTX(p, "add.s32", rank, rank, sum);
  }
}

void hg_ptx_ranks(ptx *p, uint32_t value, uint32_t count) {
  uint32_t values[HG_PTX_MOST_RANKS];
  if (p->plan->memory.rank_counts == 0) {
    rank_alone(p, value);
    return;
  }
  for (uint32_t i = 0; i < count; i++, value = ptx_insn(p, value)->next) values[i] = value;
  rank_at_once(p, values, count);
}
