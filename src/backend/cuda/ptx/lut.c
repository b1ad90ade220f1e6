/* lut.c - steps of the table variant: building the table, looking up elements. */
#include "backend/cuda/ptx/ptx.h"

#include <stddef.h>

static ptx_vector *only_vector(ptx *p, uint32_t flag) {
  return &p->vector[p->plan->vector_of[hg_gpu_only_access(p->plan, flag)]];
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* Two entries at a time, whose elements form a word. */
void hg_ptx_open_entries(ptx *p, ptx_kernel *k) {
  k->thread = hg_ptx_new(p, PTX_32);
  k->table = hg_ptx_new(p, PTX_32);
  k->lanes = PTX_FIELD(p, PTX_64, lanes);
  hg_ptx_append(p, &p->module, ".extern .shared .align 16 .b8 hg_table[];\n\n");
  hg_ptx_put(p, "\tmov.u32 %s, %%tid.x;\n\tmov.u32 %s, hg_table;\n", k->thread.text, k->table.text);
  hg_ptx_vectors_name(p);
  ptx_name word;
  k->pair = hg_ptx_new(p, PTX_32);
  word = hg_ptx_new(p, PTX_32);
  k->at = hg_ptx_new(p, PTX_32);
  k->more = hg_ptx_new(p, PTX_PREDICATE);
  k->again = hg_ptx_label(p);
  k->first = hg_ptx_number(0);
  PTX(p, "mov.b32", k->pair, k->thread);
  hg_ptx_place(p, k->again);
  PTX(p, "mad.lo.u32", word, k->pair, hg_ptx_number(0x20002), hg_ptx_number(0x10000));
  only_vector(p, ATLAS_LOAD)->word[0] = word;
}

void hg_ptx_close_entries(ptx *p, ptx_kernel *k) {
  PTX(p, "mad.lo.u32", k->at, k->pair, hg_ptx_number(4), k->table);
  hg_ptx_put(p, "\tst.shared.b32 [%s], %s;\n", k->at.text, only_vector(p, ATLAS_STORE)->word[0].text);
  PTX(p, "add.s32", k->pair, k->pair, hg_ptx_number(HG_GPU_LUT_THREADS));
  PTX(p, "setp.lt.u32", k->more, k->pair, hg_ptx_number(GPU_LUT_ENTRIES / 2));
  hg_ptx_put(p, "\t@%s bra %s;\n", k->more.text, k->again.text);
}

/* Replaces the two halves of a word by the table's entries. */
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

/* The last lanes % 8 elements: one for each thread of the first block. */
void hg_ptx_last_elements(ptx *p, const ptx_kernel *k) {
  ptx_name thread = k->thread, table = k->table, lanes = k->lanes;
  ptx_name rest = hg_ptx_new(p, PTX_64), wide = hg_ptx_new(p, PTX_64), block = hg_ptx_new(p, PTX_32);
  ptx_name word = hg_ptx_new(p, PTX_32), out = hg_ptx_new(p, PTX_PREDICATE), done = hg_ptx_label(p);
  ptx_name element = hg_ptx_new(p, PTX_16);
  hg_ptx_put(p, "\tmov.u32 %s, %%ctaid.x;\n", block.text);
  PTX(p, "cvt.u64.u32", wide, thread);
  PTX(p, "and.b64", rest, lanes, hg_ptx_number(GPU_LUT_PACK_LANES - 1));
  PTX(p, "setp.ne.u32", out, block, hg_ptx_number(0));
  PTX(p, "setp.ge.or.u64", out, wide, rest, out);
  hg_ptx_put(p, "\t@%s bra %s;\n", out.text, done.text);
  p->lane = hg_ptx_new(p, PTX_64);
  PTX(p, "sub.s64", p->lane, lanes, rest);
  PTX(p, "add.s64", p->lane, p->lane, wide);
  hg_ptx_vectors_point(p, p->lane);
  hg_ptx_put(p, "\tld.global.u16 %s, [%s];\n", word.text, only_vector(p, ATLAS_LOAD)->address.text);
  look_up(p, table, word);
  PTX(p, "cvt.u16.u32", element, word);
  hg_ptx_put(p, "\tst.global.b16 [%s], %s;\n", only_vector(p, ATLAS_STORE)->address.text, element.text);
  hg_ptx_place(p, done);
}

/* Looks up a piece. A thread's packs lie a block's width apart; p->lane is the first lane of its first pack. */
static void look_up_piece(ptx *p, ptx_name table, ptx_name lanes) {
  ptx_name there[GPU_LUT_PACKS], word[GPU_LUT_PACKS][4], last = hg_ptx_new(p, PTX_64);
  hg_ptx_vectors_point(p, p->lane);
  ptx_name from = only_vector(p, ATLAS_LOAD)->address, to = only_vector(p, ATLAS_STORE)->address;
  for (int k = 0; k < GPU_LUT_PACKS; k++) {
    there[k] = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, "add.s64", last, p->lane, hg_ptx_number(((uint64_t)k * HG_GPU_LUT_THREADS + 1) * GPU_LUT_PACK_LANES));
    PTX(p, "setp.le.u64", there[k], last, lanes);
  }
  for (int k = 0; k < GPU_LUT_PACKS; k++) {
    for (int i = 0; i < 4; i++) {
      word[k][i] = hg_ptx_new(p, PTX_32);
      PTX(p, "mov.b32", word[k][i], hg_ptx_number(0));
    }
    hg_ptx_put(p, "\t@%s ld.global.v4.b32 {%s, %s, %s, %s}, [%s+%d];\n", there[k].text, word[k][0].text,
               word[k][1].text, word[k][2].text, word[k][3].text, from.text, k * HG_GPU_LUT_THREADS * 16);
  }
  for (int k = 0; k < GPU_LUT_PACKS; k++) {
    for (int i = 0; i < 4; i++) look_up(p, table, word[k][i]);
    hg_ptx_put(p, "\t@%s st.global.v4.b32 [%s+%d], {%s, %s, %s, %s};\n", there[k].text, to.text,
               k * HG_GPU_LUT_THREADS * 16, word[k][0].text, word[k][1].text, word[k][2].text, word[k][3].text);
  }
}

/* The first thread draws the number of the next piece. The atomic's latency overlaps the loads of this piece. */
static ptx_name draw_piece(ptx *p, ptx_name is_first) {
  ptx_name number = hg_ptx_new(p, PTX_32), record = PTX_FIELD(p, PTX_64, fault_record);
  hg_ptx_put(p, "\t@%s atom.global.add.u32 %s, [%s+%d], 1;\n", is_first.text, number.text, record.text,
             (int)offsetof(hg_gpu_fault, extent));
  return number;
}

/* Writes it to `slot` in shared memory; the last draw of the launch resets the counter. */
static void publish_piece(ptx *p, ptx_name is_first, ptx_name number, ptx_name slot, ptx_name pieces) {
  ptx_name blocks = hg_ptx_new(p, PTX_32), last = hg_ptx_new(p, PTX_32), is_last = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name record = PTX_FIELD(p, PTX_64, fault_record), next = hg_ptx_new(p, PTX_32);
  PTX(p, "add.s32", last, number, hg_ptx_number(1));
  PTX(p, "setp.eq.and.u32", is_last, last, pieces, is_first);
  hg_ptx_put(p, "\t@%s st.global.u32 [%s+%d], 0;\n", is_last.text, record.text, (int)offsetof(hg_gpu_fault, extent));
  hg_ptx_put(p, "\tmov.u32 %s, %%nctaid.x;\n", blocks.text);
  PTX(p, "add.s32", next, number, blocks);
  hg_ptx_put(p, "\t@%s st.shared.u32 [%s+%d], %s;\n", is_first.text, slot.text, GPU_LUT_DRAWN, next.text);
}

/* A block draws once for each piece that it looks up, so there are as many draws as pieces. */
void hg_ptx_pieces(ptx *p, const ptx_kernel *k) {
  ptx_name thread = k->thread, table = k->table, lanes = k->lanes;
  ptx_name piece = hg_ptx_new(p, PTX_32), pieces = hg_ptx_new(p, PTX_32), wide = hg_ptx_new(p, PTX_64);
  ptx_name done = hg_ptx_new(p, PTX_PREDICATE), slot = hg_ptx_new(p, PTX_32), flip = hg_ptx_new(p, PTX_32);
  ptx_name again = hg_ptx_label(p), end = hg_ptx_label(p), own = hg_ptx_new(p, PTX_64);
  ptx_name is_first = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.eq.u32", is_first, thread, hg_ptx_number(0));
  PTX(p, "add.s64", wide, lanes, hg_ptx_number(GPU_PIECE_LANES - 1));
  PTX(p, "shr.u64", wide, wide, hg_ptx_number(GPU_PIECE_BITS));
  PTX(p, "cvt.u32.u64", pieces, wide);
  hg_ptx_put(p, "\tmov.u32 %s, %%ctaid.x;\n", piece.text);
  PTX(p, "mul.wide.u32", own, thread, hg_ptx_number(GPU_LUT_PACK_LANES));
  PTX(p, "mov.b32", slot, table);
  PTX(p, "add.s32", flip, table, table);
  PTX(p, "add.s32", flip, flip, hg_ptx_number(4)); /* slot = flip - slot: table, table + 4, table, ... */
  p->lane = hg_ptx_new(p, PTX_64);
  hg_ptx_place(p, again);
  PTX(p, "setp.ge.u32", done, piece, pieces);
  hg_ptx_put(p, "\t@%s bra %s;\n", done.text, end.text);
  ptx_name number = draw_piece(p, is_first);
  PTX(p, "mul.wide.u32", p->lane, piece, hg_ptx_number(GPU_PIECE_LANES));
  PTX(p, "add.s64", p->lane, p->lane, own);
  look_up_piece(p, table, lanes);
  publish_piece(p, is_first, number, slot, pieces);
  hg_ptx_put(p, "\tbar.sync 0;\n\tld.shared.u32 %s, [%s+%d];\n", piece.text, slot.text, GPU_LUT_DRAWN);
  PTX(p, "sub.s32", slot, flip, slot);
  hg_ptx_put(p, "\tbra %s;\n", again.text);
  hg_ptx_place(p, end);
}
