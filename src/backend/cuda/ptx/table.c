/* table.c - the form of a program that turns each element of 16 bits into another of 16 bits: a table.
 *
 * There are only 65,536 elements. Each block computes what becomes of all of them, keeps that in 128 KiB of shared
 * memory, and then does nothing but look up: some four instructions an element whatever the program does, so that
 * memory sets the pace. For large launches only.
 *
 * The card runs one such block a multiprocessor. Memory likes it best when blocks take the next piece in the order in
 * which they finish (on an H200: 4.15 TB/s for the look-ups, 3.8 with fixed strides), so a piece is drawn by an atomic
 * counter. That is a word of the launch's fault record, which belongs to this launch alone and which it does not need
 * otherwise, since nothing here can fault; it is 0 before, and whoever draws last makes it 0 again. */
#include "backend/cuda/ptx/ptx.h"

#include <stddef.h>

enum {
  ENTRIES = 65536,
  PACK_LANES = 8,  /* one access of 16 bytes */
  PACKS = 4,       /* of a thread and piece */
  PIECE_BITS = 15,
  PIECE_LANES = HG_PTX_TABLE_THREADS * PACKS * PACK_LANES,
  DRAWN = 2 * ENTRIES, /* behind the table two words, in turns: which piece is next */
  LOOK_UP_COST = 26 /* in instructions of the program */
};

_Static_assert(PIECE_LANES == 1 << PIECE_BITS, "the lanes of a piece");

/* ---- which programs ---------------------------------------------------------------------------------------------- */

/* The only vector access with that flag; SSA_NONE if there are others, or if its elements have not 16 bits. */
static uint32_t only_access(const ptx *p, uint32_t flag) {
  uint32_t found = SSA_NONE;
  for (uint32_t k = 0; k < p->order.count; k++)
    for (uint32_t e = ssa_block_at(p->unit, p->order.block[k])->first_effect; e != SSA_NONE; e = ptx_insn(p, e)->next) {
      if (p->access[e] != PTX_VECTOR || !(atlas_op_flags(ptx_insn(p, e)->op) & flag)) continue;
      if (found != SSA_NONE || atlas_bytes((atlas_type)ptx_insn(p, e)->type) != 2) return SSA_NONE;
      found = e;
    }
  return found;
}

/* What it gains a lane has to make up for 10 us in which the table is computed. Measured on an H200: from 175 to 220
 * million lanes on for a sigmoid of 29 instructions, 64 for gelu.tanh (33), 42 for gelu (37); not for shorter ones. */
uint64_t hg_ptx_table_lanes(const ptx *p, uint32_t instructions) {
  if (!p->info->vector_only || only_access(p, ATLAS_LOAD) == SSA_NONE || only_access(p, ATLAS_STORE) == SSA_NONE ||
      p->needs_lane)
    return 0;
  return instructions > LOOK_UP_COST ? (UINT64_C(1) << 29) / (instructions - LOOK_UP_COST) : 0;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* Two entries at a time. */
static void build(ptx *p, uint32_t load, uint32_t store, ptx_name thread, ptx_name table) {
  ptx_name pair = hg_ptx_new(p, PTX_32), word = hg_ptx_new(p, PTX_32), at = hg_ptx_new(p, PTX_32);
  ptx_name more = hg_ptx_new(p, PTX_PREDICATE), again = hg_ptx_label(p);
  PTX(p, "mov.b32", pair, thread);
  hg_ptx_place(p, again);
  PTX(p, "mad.lo.u32", word, pair, hg_ptx_number(0x20002), hg_ptx_number(0x10000));
  p->vector[p->vector_of[load]].word[0] = word;
  hg_ptx_lanes_in_turn(p, hg_ptx_number(0));
  PTX(p, "mad.lo.u32", at, pair, hg_ptx_number(4), table);
  hg_ptx_put(p, "\tst.shared.b32 [%s], %s;\n", at.text, p->vector[p->vector_of[store]].word[0].text);
  PTX(p, "add.s32", pair, pair, hg_ptx_number(HG_PTX_TABLE_THREADS));
  PTX(p, "setp.lt.u32", more, pair, hg_ptx_number(ENTRIES / 2));
  hg_ptx_put(p, "\t@%s bra %s;\n", more.text, again.text);
}

/* word = what the table has for its two halves. */
static void look_up(ptx *p, ptx_name table, ptx_name word) {
  ptx_name half[2], entry[2];
  for (int i = 0; i < 2; i++) half[i] = hg_ptx_new(p, PTX_32), entry[i] = hg_ptx_new(p, PTX_16);
  PTX(p, "and.b32", half[0], word, hg_ptx_number(0xffff));
  PTX(p, "shr.u32", half[1], word, hg_ptx_number(16));
  for (int i = 0; i < 2; i++) {
    PTX(p, "mad.lo.u32", half[i], half[i], hg_ptx_number(2), table);
    hg_ptx_put(p, "\tld.shared.b16 %s, [%s];\n", entry[i].text, half[i].text);
  }
  hg_ptx_put(p, "\tmov.b32 %s, {%s, %s};\n", word.text, entry[0].text, entry[1].text);
}

/* ---- the elements ------------------------------------------------------------------------------------------------ */

/* The lanes % 8 last elements: one a thread of the first block. */
static void single(ptx *p, uint32_t load, uint32_t store, ptx_name thread, ptx_name table, ptx_name lanes) {
  ptx_name rest = hg_ptx_new(p, PTX_64), wide = hg_ptx_new(p, PTX_64), block = hg_ptx_new(p, PTX_32);
  ptx_name word = hg_ptx_new(p, PTX_32), out = hg_ptx_new(p, PTX_PREDICATE), done = hg_ptx_label(p);
  ptx_name element = hg_ptx_new(p, PTX_16);
  hg_ptx_put(p, "\tmov.u32 %s, %%ctaid.x;\n", block.text);
  PTX(p, "cvt.u64.u32", wide, thread);
  PTX(p, "and.b64", rest, lanes, hg_ptx_number(PACK_LANES - 1));
  PTX(p, "setp.ne.u32", out, block, hg_ptx_number(0));
  PTX(p, "setp.ge.or.u64", out, wide, rest, out);
  hg_ptx_put(p, "\t@%s bra %s;\n", out.text, done.text);
  p->lane = hg_ptx_new(p, PTX_64);
  PTX(p, "sub.s64", p->lane, lanes, rest);
  PTX(p, "add.s64", p->lane, p->lane, wide);
  hg_ptx_vectors_point(p, p->lane);
  hg_ptx_put(p, "\tld.global.u16 %s, [%s];\n", word.text, p->vector[p->vector_of[load]].address.text);
  look_up(p, table, word);
  PTX(p, "cvt.u16.u32", element, word);
  hg_ptx_put(p, "\tst.global.b16 [%s], %s;\n", p->vector[p->vector_of[store]].address.text, element.text);
  hg_ptx_place(p, done);
}

/* A piece: each thread's packs lie a block's width apart. p->lane is the first lane of its first one. */
static void do_piece(ptx *p, uint32_t load, uint32_t store, ptx_name table, ptx_name lanes) {
  ptx_name there[PACKS], word[PACKS][4], last = hg_ptx_new(p, PTX_64);
  hg_ptx_vectors_point(p, p->lane);
  ptx_name from = p->vector[p->vector_of[load]].address, to = p->vector[p->vector_of[store]].address;
  for (int k = 0; k < PACKS; k++) {
    there[k] = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, "add.s64", last, p->lane, hg_ptx_number((uint64_t)k * HG_PTX_TABLE_THREADS * PACK_LANES + PACK_LANES));
    PTX(p, "setp.le.u64", there[k], last, lanes);
  }
  for (int k = 0; k < PACKS; k++) {
    for (int i = 0; i < 4; i++) {
      word[k][i] = hg_ptx_new(p, PTX_32);
      PTX(p, "mov.b32", word[k][i], hg_ptx_number(0));
    }
    hg_ptx_put(p, "\t@%s ld.global.v4.b32 {%s, %s, %s, %s}, [%s+%d];\n", there[k].text, word[k][0].text,
               word[k][1].text, word[k][2].text, word[k][3].text, from.text, k * HG_PTX_TABLE_THREADS * 16);
  }
  for (int k = 0; k < PACKS; k++) {
    for (int i = 0; i < 4; i++) look_up(p, table, word[k][i]);
    hg_ptx_put(p, "\t@%s st.global.v4.b32 [%s+%d], {%s, %s, %s, %s};\n", there[k].text, to.text,
               k * HG_PTX_TABLE_THREADS * 16, word[k][0].text, word[k][1].text, word[k][2].text, word[k][3].text);
  }
}

/* The first thread draws the number of the next piece, which takes long: others' loads are to be on their way by then.
 */
static ptx_name draw(ptx *p, ptx_name is_first) {
  ptx_name number = hg_ptx_new(p, PTX_32), record = PTX_FIELD(p, PTX_64, fault_record);
  hg_ptx_put(p, "\t@%s atom.global.add.u32 %s, [%s+%d], 1;\n", is_first.text, number.text, record.text,
             (int)offsetof(hg_ptx_fault, extent));
  return number;
}

/* And says it, `slot` being where in shared memory. */
static void tell(ptx *p, ptx_name is_first, ptx_name number, ptx_name slot, ptx_name pieces) {
  ptx_name blocks = hg_ptx_new(p, PTX_32), last = hg_ptx_new(p, PTX_32), is_last = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name record = PTX_FIELD(p, PTX_64, fault_record), next = hg_ptx_new(p, PTX_32);
  PTX(p, "add.s32", last, number, hg_ptx_number(1));
  PTX(p, "setp.eq.and.u32", is_last, last, pieces, is_first);
  hg_ptx_put(p, "\t@%s st.global.u32 [%s+%d], 0;\n", is_last.text, record.text, (int)offsetof(hg_ptx_fault, extent));
  hg_ptx_put(p, "\tmov.u32 %s, %%nctaid.x;\n", blocks.text);
  PTX(p, "add.s32", next, number, blocks);
  hg_ptx_put(p, "\t@%s st.shared.u32 [%s+%d], %s;\n", is_first.text, slot.text, DRAWN, next.text);
}

/* As many draws as pieces: each block draws once for each piece that it does. */
static void do_pieces(ptx *p, uint32_t load, uint32_t store, ptx_name thread, ptx_name table, ptx_name lanes) {
  ptx_name piece = hg_ptx_new(p, PTX_32), pieces = hg_ptx_new(p, PTX_32), wide = hg_ptx_new(p, PTX_64);
  ptx_name done = hg_ptx_new(p, PTX_PREDICATE), slot = hg_ptx_new(p, PTX_32), flip = hg_ptx_new(p, PTX_32);
  ptx_name again = hg_ptx_label(p), end = hg_ptx_label(p), own = hg_ptx_new(p, PTX_64);
  ptx_name is_first = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.eq.u32", is_first, thread, hg_ptx_number(0));
  PTX(p, "add.s64", wide, lanes, hg_ptx_number(PIECE_LANES - 1));
  PTX(p, "shr.u64", wide, wide, hg_ptx_number(PIECE_BITS));
  PTX(p, "cvt.u32.u64", pieces, wide);
  hg_ptx_put(p, "\tmov.u32 %s, %%ctaid.x;\n", piece.text);
  PTX(p, "mul.wide.u32", own, thread, hg_ptx_number(PACK_LANES));
  PTX(p, "mov.b32", slot, table);
  PTX(p, "add.s32", flip, table, table);
  PTX(p, "add.s32", flip, flip, hg_ptx_number(4)); /* slot = flip - slot: table, table + 4, table, ... */
  p->lane = hg_ptx_new(p, PTX_64);
  hg_ptx_place(p, again);
  PTX(p, "setp.ge.u32", done, piece, pieces);
  hg_ptx_put(p, "\t@%s bra %s;\n", done.text, end.text);
  ptx_name number = draw(p, is_first);
  PTX(p, "mul.wide.u32", p->lane, piece, hg_ptx_number(PIECE_LANES));
  PTX(p, "add.s64", p->lane, p->lane, own);
  do_piece(p, load, store, table, lanes);
  tell(p, is_first, number, slot, pieces);
  hg_ptx_put(p, "\tbar.sync 0;\n\tld.shared.u32 %s, [%s+%d];\n", piece.text, slot.text, DRAWN);
  PTX(p, "sub.s32", slot, flip, slot);
  hg_ptx_put(p, "\tbra %s;\n", again.text);
  hg_ptx_place(p, end);
}

void hg_ptx_table_kernel(ptx *p) {
  uint32_t load = only_access(p, ATLAS_LOAD), store = only_access(p, ATLAS_STORE);
  ptx_name thread = hg_ptx_new(p, PTX_32), table = hg_ptx_new(p, PTX_32), lanes = PTX_FIELD(p, PTX_64, lanes);
  hg_ptx_append(p, &p->module, ".extern .shared .align 16 .b8 hg_table[];\n\n");
  hg_ptx_put(p, "\tmov.u32 %s, %%tid.x;\n\tmov.u32 %s, hg_table;\n", thread.text, table.text);
  hg_ptx_vectors_name(p);
  build(p, load, store, thread, table);
  hg_ptx_put(p, "\tbar.sync 0;\n");
  single(p, load, store, thread, table, lanes);
  do_pieces(p, load, store, thread, table, lanes);
  hg_ptx_put(p, "\tret;\n");
}

uint32_t hg_ptx_table_blocks(uint64_t lanes, uint32_t units) {
  uint64_t pieces = (lanes + PIECE_LANES - 1) / PIECE_LANES;
  return pieces < units ? (uint32_t)pieces : units;
}
