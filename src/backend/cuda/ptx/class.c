/* class.c - coordinates of a lane, and the instructions of the 96 classes. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/tables.h"
#include "compiler/machine_ops.h"

#include <stddef.h>

/* ---- coordinates ------------------------------------------------------------------------------------------------- */

static ptx_name size_of(ptx *p, uint32_t group, uint32_t d) {
  if (group == 3) return hg_ptx_field(p, PTX_64, offsetof(hg_gpu_header, grid) + 8 * (size_t)d);
  ptx_name wide = hg_ptx_new(p, PTX_64),
           narrow = hg_ptx_field(p, PTX_32, offsetof(hg_gpu_header, block) + 4 * (size_t)d);
  PTX(p, "cvt.u64.u32", wide, narrow);
  return wide;
}

void hg_ptx_coordinate(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_name d = hg_ptx_register(p, value), wide = {{0}};
  switch ((machine_place)hg_machine_op(insn->op)) {
  case PLACE_phase_get: PTX(p, "mov.b32", d, PTX_FIELD(p, PTX_32, phase)); return;
  case PLACE_len: wide = hg_ptx_field(p, PTX_64, gpu_parameter_offset(p->plan, insn->symbol) + 8); break;
  case PLACE_cls_get:
    wide = hg_ptx_new(p, PTX_64);
    PTX(p, "rem.u64", wide, p->block, hg_ptx_number(ATLAS_CLASS_COUNT));
    break;
  case PLACE_sreg: {
    uint32_t group = (uint32_t)insn->bits / 3, axis = (uint32_t)insn->bits % 3;
    wide = group == 2 || group == 3 ? size_of(p, group, axis) : p->at[(group == 4 ? 6 : 3 * group) + axis];
    break;
  }
  }
  if (hg_ptx_class_of(insn->type) == PTX_64) PTX(p, "mov.b64", d, wide);
  else PTX(p, "cvt.u32.u64", d, wide);
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* If `number` (u32) is not below `extent`: notes a fault, and the result is 0. */
static void check_below(ptx *p, uint32_t value, ptx_name number, ptx_name extent, ptx_name back) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_name failed = hg_ptx_new(p, PTX_PREDICATE), index = hg_ptx_new(p, PTX_64), limit = hg_ptx_new(p, PTX_64);
  PTX(p, "setp.ge.u32", failed, number, extent);
  PTX(p, "cvt.u64.u32", index, number);
  PTX(p, "cvt.u64.u32", limit, extent);
  ptx_fault_site site = {.site = hg_gpu_class_site(p->plan, value), .index = index, .extent = limit};
  ptx_name d = {{0}};
  if (insn->op != ATLAS_OP_res_accum) d = hg_ptx_register(p, value);
  hg_ptx_fault_if(p, failed, &site, d.text[0] != 0 ? &d : NULL, insn->type, back);
}

static ptx_name number_register(ptx *p, uint32_t number) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, "mov.b32", d, hg_ptx_number(number));
  return d;
}

/* d of class 24*h2 + 8*d + l. */
static ptx_name part_d(ptx *p, ptx_name class) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, "rem.u32", d, class, hg_ptx_number(24));
  PTX(p, "shr.u32", d, d, hg_ptx_number(3));
  return d;
}

static ptx_name neighbour_count(ptx *p, ptx_name class) {
  ptx_name d = part_d(p, class), count = hg_ptx_new(p, PTX_32), is_first = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.eq.u32", is_first, d, hg_ptx_number(0));
  PTX(p, "selp.b32", count, hg_ptx_number(6), hg_ptx_number(5), is_first);
  return count;
}

/* Selects one of two values by whether `tested` is below `limit`. */
static ptx_name by_size(ptx *p, ptx_name tested, uint32_t limit, ptx_name below, ptx_name other) {
  ptx_name test = hg_ptx_new(p, PTX_PREDICATE), d = hg_ptx_new(p, PTX_32);
  PTX(p, "setp.lt.u32", test, tested, hg_ptx_number(limit));
  PTX(p, "selp.b32", d, below, other, test);
  return d;
}

static ptx_name moved(ptx *p, const char *mnemonic, ptx_name a, uint32_t by) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, mnemonic, d, a, hg_ptx_number(by));
  return d;
}

/* Numbers 0, 1, 2 flip a bit of l; 3 flips h2's low bit; then come the moves of d: 0 to 1, 0 to 2, 1 to 0, 2 to 0. */
static void neighbour(ptx *p, ptx_name d, ptx_name class, ptx_name number) {
  ptx_name one = number_register(p, 1), flipped = hg_ptx_new(p, PTX_32), h2 = hg_ptx_new(p, PTX_32),
           digit = part_d(p, class), away = hg_ptx_new(p, PTX_32), home = hg_ptx_new(p, PTX_32);
  PTX(p, "shl.b32", flipped, one, number);
  PTX(p, "xor.b32", flipped, flipped, class);
  PTX(p, "div.u32", h2, class, hg_ptx_number(24));
  PTX(p, "and.b32", h2, h2, hg_ptx_number(1));
  ptx_name down = moved(p, "sub.s32", class, 24), up = moved(p, "add.s32", class, 24);
  ptx_name other_h2 = by_size(p, h2, 1, up, down);
  PTX(p, "mad.lo.u32", away, moved(p, "sub.s32", number, 3), hg_ptx_number(8), class);
  PTX(p, "mad.lo.s32", home, digit, hg_ptx_name("-8"), class);
  ptx_name move = by_size(p, digit, 1, away, home);
  ptx_name rest = by_size(p, number, 4, other_h2, move);
  PTX(p, "mov.b32", d, by_size(p, number, 3, flipped, rest));
}

static void accumulate(ptx *p, uint32_t value, ptx_name class) {
  ptx_name address = hg_ptx_new(p, PTX_64);
  PTX(p, "mad.wide.u32", address, class, hg_ptx_number(8), PTX_FIELD(p, PTX_64, resonance));
  hg_ptx_put(p, "\tred.global.add.u64 [%s], %s;\n", address.text, hg_ptx_value(p, ptx_arg(p, value, 1)).text);
}

static void map_boundary(ptx *p, uint32_t value, ptx_name back) {
  static const uint32_t extent[3] = {ATLAS_CLASS_COUNT, ATLAS_CLASS_PAGES, ATLAS_CLASS_PAGE_BYTES};
  ptx_name d = hg_ptx_register(p, value), part[3], sum = hg_ptx_new(p, PTX_32);
  for (unsigned i = 0; i < 3; i++) {
    part[i] = hg_ptx_in_register(p, ptx_arg(p, value, i));
    check_below(p, value, part[i], number_register(p, extent[i]), back);
  }
  PTX(p, "mad.lo.u32", sum, part[0], hg_ptx_number(ATLAS_CLASS_PAGES), part[1]);
  PTX(p, "mad.lo.u32", sum, sum, hg_ptx_number(ATLAS_CLASS_PAGE_BYTES), part[2]);
  PTX(p, "cvt.u64.u32", d, sum);
}

static void mirror(ptx *p, ptx_name d, ptx_name class) {
  ptx_name down = moved(p, "sub.s32", class, 48), up = moved(p, "add.s32", class, 48);
  PTX(p, "mov.b32", d, by_size(p, class, 48, up, down));
}

static void unity(ptx *p, ptx_name d, ptx_name class) {
  ptx_name is_first = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.eq.u32", is_first, class, hg_ptx_number(0));
  PTX(p, "setp.eq.or.u32", d, class, hg_ptx_number(48), is_first);
}

static void class_effect(ptx *p, uint32_t value, ptx_name back) {
  const machine_class op = (machine_class)hg_machine_op(ptx_insn(p, value)->op);
  if (op == CLASS_bound_map) {
    map_boundary(p, value, back);
    return;
  }
  ptx_name class = hg_ptx_in_register(p, ptx_arg(p, value, 0));
  check_below(p, value, class, number_register(p, ATLAS_CLASS_COUNT), back);
  switch (op) {
  case CLASS_res_accum: accumulate(p, value, class); break;
  case CLASS_mirror: mirror(p, hg_ptx_register(p, value), class); break;
  case CLASS_unity_test: unity(p, hg_ptx_register(p, value), class); break;
  case CLASS_nbr_count: PTX(p, "mov.b32", hg_ptx_register(p, value), neighbour_count(p, class)); break;
  case CLASS_nbr_get: {
    ptx_name number = hg_ptx_in_register(p, ptx_arg(p, value, 1));
    check_below(p, value, number, neighbour_count(p, class), back);
    neighbour(p, hg_ptx_register(p, value), class, number);
    break;
  }
  case CLASS_bound_map: break; /* written above */
  }
}

void hg_ptx_class_effect(ptx *p, uint32_t value) {
  ptx_name back = hg_ptx_label(p);
  class_effect(p, value, back);
  hg_ptx_place(p, back);
}
