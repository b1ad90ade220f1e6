/* block.c - barriers, reductions, scans, votes, pools.
 *
 * A lane that has ended has left its thread: barriers of the hardware count only threads that are still there. Shared
 * memory holds a byte a lane that says it has ended, and a word that says any has. As long as that word is 0, which is
 * the rule, collectives run in parallel; otherwise the lowest lane that is left does the reference machine's loops
 * alone.
 *
 * Each collective ends with a barrier behind its last read of the scratch memory, so the next may write it at once. */
#include "atlas/arith.h"
#include "backend/cuda/ptx/ptx.h"
#include "hologram/hologram.h"

#include <string.h>

enum { WARP = 32, SLOT_BYTES = 8 };

static void barrier(ptx *p) { hg_ptx_put(p, "\tbar.sync 0;\n"); }

/* ---- scratch memory ---------------------------------------------------------------------------------------------- */

static ptx_name shared_at(ptx *p, uint32_t offset) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  hg_ptx_put(p, "\tmov.u32 %s, hg_shared+%u;\n", d.text, (unsigned)offset);
  return d;
}

/* Address of a lane's slot. */
static ptx_name slot_of(ptx *p, ptx_name lane) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, "mad.lo.u32", d, lane, hg_ptx_number(SLOT_BYTES), shared_at(p, p->scratch));
  return d;
}

static void put_slot(ptx *p, uint8_t type, ptx_name address, uint32_t offset, ptx_name value) {
  hg_ptx_put(p, "\tst.shared%s [%s+%u], %s;\n", hg_ptx_bits_suffix(hg_ptx_class_of(type)), address.text,
             (unsigned)offset, value.text);
}

static void get_slot(ptx *p, const char *guard, uint8_t type, ptx_name d, ptx_name address, int offset) {
  hg_ptx_put(p, "\t%sld.shared%s %s, [%s+%d];\n", guard, hg_ptx_bits_suffix(hg_ptx_class_of(type)), d.text,
             address.text, offset);
}

static ptx_name slot_register(ptx *p, uint8_t type) { return hg_ptx_new(p, hg_ptx_class_of(type)); }

/* Where the predicate holds, the value is a sum of several: its NaN is the canonical one. A lane that met no other
 * keeps its bits. */
static ptx_name settled(ptx *p, uint8_t type, ptx_name value, ptx_name holds) {
  if (type != ATLAS_f32 && type != ATLAS_f64) return value; /* the others are rounded to canonical ones */
  ptx_class class = hg_ptx_class_of(type);
  ptx_name exact = hg_ptx_make_exact(p, type, value), d = hg_ptx_new(p, class);
  PTX(p, hg_ptx_join("selp", hg_ptx_bits_suffix(class)).text, d, exact, value, holds);
  return d;
}

/* d = d op other where the predicate holds. */
static void combine_if(ptx *p, ptx_name holds, uint16_t op, uint8_t type, ptx_name d, ptx_name other, int other_left) {
  ptx_class class = hg_ptx_class_of(type);
  ptx_name both = hg_ptx_new(p, class);
  hg_ptx_combine(p, op, type, both, other_left ? other : d, other_left ? d : other);
  PTX(p, hg_ptx_join("selp", hg_ptx_bits_suffix(class)).text, d, both, d, holds);
}

/* ---- alone, when lanes are missing ------------------------------------------------------------------------------- */

/* A loop `for (i = start; test; i += step)`: places its label; close_loop ends it. Registers are 32-bit. */
typedef struct loop {
  ptx_name i, start, end;
} loop;

static loop open_loop(ptx *p, ptx_name first, const char *leaves, ptx_name limit) {
  loop l = {hg_ptx_new(p, PTX_32), hg_ptx_label(p), hg_ptx_label(p)};
  ptx_name test = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "mov.b32", l.i, first);
  hg_ptx_place(p, l.start);
  PTX(p, leaves, test, l.i, limit);
  hg_ptx_put(p, "\t@%s bra %s;\n", test.text, l.end.text);
  return l;
}

static void close_loop(ptx *p, const loop *l, const char *mnemonic, ptx_name step) {
  PTX(p, mnemonic, l->i, l->i, step);
  hg_ptx_put(p, "\tbra %s;\n", l->start.text);
  hg_ptx_place(p, l->end);
}

/* The byte of a lane: 1 ended; the lane alone keeps 2 in it where there is no value. */
static ptx_name ended_byte(ptx *p, ptx_name lane) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, "add.s32", d, lane, shared_at(p, p->ended));
  return d;
}

enum { ENDED = 1, ABSENT = 2 };

/* Marks the absent; goes to `others` in all lanes but the lowest that is left. */
static void elect(ptx *p, ptx_name others) {
  ptx_name found = hg_ptx_new(p, PTX_32), byte = hg_ptx_new(p, PTX_32), test = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name next = hg_ptx_label(p), done = hg_ptx_label(p);
  PTX(p, "mov.b32", found, hg_ptx_number(0));
  hg_ptx_place(p, next);
  hg_ptx_put(p, "\tld.shared.u8 %s, [%s];\n", byte.text, ended_byte(p, found).text);
  PTX(p, "and.b32", byte, byte, hg_ptx_number(ENDED));
  PTX(p, "setp.eq.u32", test, byte, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", test.text, done.text);
  PTX(p, "add.s32", found, found, hg_ptx_number(1));
  hg_ptx_put(p, "\tbra %s;\n", next.text);
  hg_ptx_place(p, done);
  PTX(p, "setp.ne.u32", test, found, p->block_lane);
  barrier(p); /* all have read before the one writes */
  hg_ptx_put(p, "\t@%s bra %s;\n", test.text, others.text);
  loop l = open_loop(p, hg_ptx_number(0), "setp.ge.u32", p->lane_count);
  ptx_name address = ended_byte(p, l.i);
  hg_ptx_put(p, "\tld.shared.u8 %s, [%s];\n", byte.text, address.text);
  PTX(p, "and.b32", byte, byte, hg_ptx_number(ENDED));
  PTX(p, "mul.lo.u32", byte, byte, hg_ptx_number(ENDED | ABSENT));
  hg_ptx_put(p, "\tst.shared.u8 [%s], %s;\n", address.text, byte.text);
  close_loop(p, &l, "add.s32", hg_ptx_number(1));
}

static ptx_name is_absent(ptx *p, ptx_name address) {
  ptx_name byte = hg_ptx_new(p, PTX_32), absent = hg_ptx_new(p, PTX_PREDICATE);
  hg_ptx_put(p, "\tld.shared.u8 %s, [%s];\n", byte.text, address.text);
  PTX(p, "setp.ge.u32", absent, byte, hg_ptx_number(ABSENT));
  return absent;
}

/* slot[into] = slot[left] op slot[right], where a missing side counts for nothing; `into` is one of them. */
static void combine_slots(ptx *p, uint16_t op, uint8_t type, ptx_name into, ptx_name left, ptx_name right) {
  ptx_class class = hg_ptx_class_of(type);
  ptx_name a = slot_register(p, type), b = slot_register(p, type), d = slot_register(p, type);
  ptx_name selection = hg_ptx_join("selp", hg_ptx_bits_suffix(class));
  ptx_name address = slot_of(p, into), byte_address = ended_byte(p, into), byte = hg_ptx_new(p, PTX_32),
           present = hg_ptx_new(p, PTX_32), both = hg_ptx_new(p, PTX_PREDICATE);
  get_slot(p, "", type, a, slot_of(p, left), 0);
  get_slot(p, "", type, b, slot_of(p, right), 0);
  ptx_name no_a = is_absent(p, ended_byte(p, left)), no_b = is_absent(p, ended_byte(p, right));
  hg_ptx_combine(p, op, type, d, a, b);
  if (type == ATLAS_f32 || type == ATLAS_f64) d = hg_ptx_make_exact(p, type, d);
  PTX(p, selection.text, d, b, d, no_a);
  PTX(p, selection.text, d, a, d, no_b);
  put_slot(p, type, address, 0, d);
  PTX(p, "and.pred", both, no_a, no_b);
  hg_ptx_put(p, "\tld.shared.u8 %s, [%s];\n", byte.text, byte_address.text);
  PTX(p, "and.b32", present, byte, hg_ptx_number(ENDED));
  PTX(p, "or.b32", byte, byte, hg_ptx_number(ABSENT));
  PTX(p, "selp.b32", byte, byte, present, both);
  hg_ptx_put(p, "\tst.shared.u8 [%s], %s;\n", byte_address.text, byte.text);
}

/* for (h = power of two at or above the lane count / 2; h >= 1; h /= 2) for (i = 0; i < h && i + h < count; i++) */
static void reduce_alone(ptx *p, uint16_t op, uint8_t type) {
  ptx_name half = hg_ptx_new(p, PTX_32), bound = hg_ptx_new(p, PTX_32), other = hg_ptx_new(p, PTX_32);
  loop power = open_loop(p, hg_ptx_number(1), "setp.ge.u32", p->lane_count);
  close_loop(p, &power, "shl.b32", hg_ptx_number(1));
  PTX(p, "shr.u32", half, power.i, hg_ptx_number(1));
  loop outer = open_loop(p, half, "setp.lt.u32", hg_ptx_number(1));
  PTX(p, "sub.s32", bound, p->lane_count, outer.i);
  PTX(p, "min.s32", bound, bound, outer.i);
  loop inner = open_loop(p, hg_ptx_number(0), "setp.ge.s32", bound);
  PTX(p, "add.s32", other, inner.i, outer.i);
  combine_slots(p, op, type, inner.i, inner.i, other);
  close_loop(p, &inner, "add.s32", hg_ptx_number(1));
  close_loop(p, &outer, "shr.u32", hg_ptx_number(1));
}

/* for (stride = 1; stride < count; stride *= 2) for (i = count; i-- > stride;) */
static void scan_alone(ptx *p, uint8_t type) {
  ptx_name last = hg_ptx_new(p, PTX_32), left = hg_ptx_new(p, PTX_32);
  PTX(p, "sub.s32", last, p->lane_count, hg_ptx_number(1));
  loop outer = open_loop(p, hg_ptx_number(1), "setp.ge.u32", p->lane_count);
  loop inner = open_loop(p, last, "setp.lt.s32", outer.i);
  PTX(p, "sub.s32", left, inner.i, outer.i);
  combine_slots(p, ATLAS_OP_add, type, inner.i, left, inner.i);
  close_loop(p, &inner, "sub.s32", hg_ptx_number(1));
  close_loop(p, &outer, "shl.b32", hg_ptx_number(1));
}

/* Goes to `rare` when a lane has ended. All lanes of the block have passed a barrier. */
static void if_missing(ptx *p, ptx_name rare) {
  ptx_name any = hg_ptx_new(p, PTX_32), test = hg_ptx_new(p, PTX_PREDICATE);
  hg_ptx_put(p, "\tld.shared.u32 %s, [%s];\n", any.text, shared_at(p, p->ended_any).text);
  PTX(p, "setp.ne.u32", test, any, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", test.text, rare.text);
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

/* The first warp has the whole fold: lane t loads the values of lanes t, t + 32, t + 64, ..., folds them by halves, and
 * shuffles do the last five steps. A fold from a larger power of two than needed finds nothing to do there. */
static void fold_in_warp(ptx *p, uint16_t op, uint8_t type, ptx_name own) {
  uint32_t rows = (p->max_threads + WARP - 1) / WARP, power = 1;
  ptx_name row[WARP], has[WARP], base = slot_of(p, p->block_lane);
  while (power < rows) power *= 2;
  for (uint32_t j = 0; j < rows; j++) {
    row[j] = own;
    if (j == 0) continue;
    ptx_name lane = hg_ptx_new(p, PTX_32);
    row[j] = slot_register(p, type);
    has[j] = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, "add.s32", lane, p->block_lane, hg_ptx_number(j * WARP));
    PTX(p, "setp.lt.u32", has[j], lane, p->lane_count);
    PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(hg_ptx_class_of(type))).text, row[j], hg_ptx_number(0));
    get_slot(p, hg_ptx_name("@%s ", has[j].text).text, type, row[j], base, (int)(j * WARP * SLOT_BYTES));
  }
  for (uint32_t half = power / 2; half >= 1; half /= 2)
    for (uint32_t j = 0; j < half && j + half < rows; j++)
      combine_if(p, has[j + half], op, type, row[j], row[j + half], 0);
}

static ptx_name shuffled(ptx *p, uint8_t type, ptx_name value, uint32_t by) {
  ptx_name d = slot_register(p, type);
  switch (hg_ptx_class_of(type)) {
  case PTX_64: {
    ptx_name low = hg_ptx_new(p, PTX_32), high = hg_ptx_new(p, PTX_32);
    hg_ptx_put(p, "\tmov.b64 {%s, %s}, %s;\n", low.text, high.text, value.text);
    hg_ptx_put(p, "\tshfl.sync.down.b32 %s, %s, %u, 31, 0xffffffff;\n", low.text, low.text, (unsigned)by);
    hg_ptx_put(p, "\tshfl.sync.down.b32 %s, %s, %u, 31, 0xffffffff;\n", high.text, high.text, (unsigned)by);
    hg_ptx_put(p, "\tmov.b64 %s, {%s, %s};\n", d.text, low.text, high.text);
    break;
  }
  case PTX_16: {
    ptx_name wide = hg_ptx_new(p, PTX_32);
    PTX(p, "cvt.u32.u16", wide, value);
    hg_ptx_put(p, "\tshfl.sync.down.b32 %s, %s, %u, 31, 0xffffffff;\n", wide.text, wide.text, (unsigned)by);
    PTX(p, "cvt.u16.u32", d, wide);
    break;
  }
  default:
    hg_ptx_put(p, "\tshfl.sync.down.b32 %s, %s, %u, 31, 0xffffffff;\n", d.text, value.text, (unsigned)by);
    break;
  }
  return d;
}

static void fold_in_lanes(ptx *p, uint16_t op, uint8_t type, ptx_name value) {
  for (uint32_t h = WARP / 2; h >= 1; h /= 2) {
    ptx_name other = shuffled(p, type, value, h), lane = hg_ptx_new(p, PTX_32), has = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, "add.s32", lane, p->block_lane, hg_ptx_number(h));
    PTX(p, "setp.lt.u32", has, lane, p->lane_count);
    combine_if(p, has, op, type, value, other, 0);
  }
}

static void reduce(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint16_t op = atlas_combining_op(insn->op);
  ptx_class class = hg_ptx_class_of(insn->type);
  ptx_name own = hg_ptx_new(p, class), test = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name rare = hg_ptx_label(p), done = hg_ptx_label(p), joined = hg_ptx_label(p);
  PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(class)).text, own, hg_ptx_exact(p, ptx_arg(p, value, 0)));
  put_slot(p, insn->type, slot_of(p, p->block_lane), 0, own);
  barrier(p);
  if (p->can_end) if_missing(p, rare);
  PTX(p, "setp.ge.u32", test, p->block_lane, hg_ptx_number(WARP));
  hg_ptx_put(p, "\t@%s bra %s;\n", test.text, done.text);
  fold_in_warp(p, op, insn->type, own);
  fold_in_lanes(p, op, insn->type, own);
  PTX(p, "setp.ne.u32", test, p->block_lane, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", test.text, done.text);
  PTX(p, "setp.gt.u32", test, p->lane_count, hg_ptx_number(1));
  put_slot(p, insn->type, shared_at(p, p->result), 0, settled(p, insn->type, own, test));
  hg_ptx_place(p, done);
  barrier(p);
  hg_ptx_place(p, joined);
  get_slot(p, "", insn->type, hg_ptx_register(p, value), shared_at(p, p->result), 0);
  if (!p->can_end) return;
  hg_array *out = p->out;
  p->out = &p->cold;
  ptx_name others = hg_ptx_label(p), first = slot_register(p, insn->type);
  hg_ptx_place(p, rare);
  elect(p, others);
  reduce_alone(p, op, insn->type);
  get_slot(p, "", insn->type, first, slot_of(p, hg_ptx_number(0)), 0);
  put_slot(p, insn->type, shared_at(p, p->result), 0, first);
  hg_ptx_place(p, others);
  barrier(p);
  hg_ptx_put(p, "\tbra %s;\n", joined.text);
  p->out = out;
}

/* ---- scans: Hillis and Steele, strides 1, 2, 4, ... -------------------------------------------------------------- */

/* The inclusive sums in `sum`. */
static void scan_together(ptx *p, uint8_t type, ptx_name sum, ptx_name own_slot) {
  ptx_name left = slot_register(p, type), has = hg_ptx_new(p, PTX_PREDICATE), address = hg_ptx_new(p, PTX_32);
  loop stride = open_loop(p, hg_ptx_number(1), "setp.ge.u32", p->lane_count);
  put_slot(p, type, own_slot, 0, sum);
  barrier(p);
  PTX(p, "setp.ge.u32", has, p->block_lane, stride.i);
  PTX(p, "mad.lo.s32", address, stride.i, hg_ptx_name("-%d", (int)SLOT_BYTES), own_slot);
  PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(hg_ptx_class_of(type))).text, left, hg_ptx_number(0));
  get_slot(p, hg_ptx_name("@%s ", has.text).text, type, left, address, 0);
  barrier(p);
  combine_if(p, has, ATLAS_OP_add, type, sum, left, 1);
  close_loop(p, &stride, "shl.b32", hg_ptx_number(1));
}

/* d = the slot before the lane's own, or 0. */
static void take_left(ptx *p, uint8_t type, ptx_name d, ptx_name own_slot) {
  ptx_name has = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.ne.u32", has, p->block_lane, hg_ptx_number(0));
  PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(hg_ptx_class_of(type))).text, d, hg_ptx_number(0));
  get_slot(p, hg_ptx_name("@%s ", has.text).text, type, d, own_slot, -SLOT_BYTES);
}

/* The lane before may have no value; the first lane asks itself, which has one. */
static void take_left_present(ptx *p, uint8_t type, ptx_name d, ptx_name own_slot) {
  ptx_name before = hg_ptx_new(p, PTX_32),
           class_select = hg_ptx_join("selp", hg_ptx_bits_suffix(hg_ptx_class_of(type)));
  take_left(p, type, d, own_slot);
  PTX(p, "max.s32", before, p->block_lane, hg_ptx_number(1));
  PTX(p, "sub.s32", before, before, hg_ptx_number(1));
  ptx_name absent = is_absent(p, ended_byte(p, before));
  PTX(p, class_select.text, d, hg_ptx_number(0), d, absent);
}

static void scan(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  int is_exclusive = insn->op == ATLAS_OP_scan_excl;
  uint8_t type = insn->type;
  ptx_class class = hg_ptx_class_of(type);
  ptx_name d = hg_ptx_register(p, value), sum = hg_ptx_new(p, class), own_slot = slot_of(p, p->block_lane);
  ptx_name rare = hg_ptx_label(p), joined = hg_ptx_label(p);
  PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(class)).text, sum, hg_ptx_exact(p, ptx_arg(p, value, 0)));
  if (p->can_end) {
    put_slot(p, type, own_slot, 0, sum);
    barrier(p);
    if_missing(p, rare);
  }
  scan_together(p, type, sum, own_slot);
  ptx_name is_sum = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.ne.u32", is_sum, p->block_lane, hg_ptx_number(0));
  sum = settled(p, type, sum, is_sum);
  if (is_exclusive) {
    put_slot(p, type, own_slot, 0, sum);
    barrier(p);
    take_left(p, type, d, own_slot);
    barrier(p);
  } else {
    PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(class)).text, d, sum);
  }
  hg_ptx_place(p, joined);
  if (!p->can_end) return;
  hg_array *out = p->out;
  p->out = &p->cold;
  ptx_name others = hg_ptx_label(p);
  hg_ptx_place(p, rare);
  elect(p, others);
  scan_alone(p, type);
  hg_ptx_place(p, others);
  barrier(p);
  if (is_exclusive) take_left_present(p, type, d, own_slot);
  else get_slot(p, "", type, d, own_slot, 0);
  barrier(p);
  hg_ptx_put(p, "\tbra %s;\n", joined.text);
  p->out = out;
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

/* Tops are the same in every lane of the block, so each keeps its own. */
static uint32_t pool_number(const ptx *p, uint32_t symbol) {
  uint32_t number = 0;
  for (uint32_t s = 0; s < symbol; s++) number += atlas_symbol_at(p->program, s)->kind == ATLAS_SYMBOL_POOL;
  return number;
}

static void pool_allocate(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t number = pool_number(p, insn->symbol);
  ptx_name d = hg_ptx_register(p, value), size = hg_ptx_value(p, ptx_arg(p, value, 0)), top = p->pool_top[number];
  ptx_name room = hg_ptx_new(p, PTX_64), rounded = hg_ptx_new(p, PTX_64), fits = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "sub.s64", room, p->pool_end[number], top);
  PTX(p, "setp.le.u64", fits, size, room);
  PTX(p, "selp.b64", d, top, hg_ptx_number(UINT64_MAX), fits);
  PTX(p, "add.s64", rounded, size, hg_ptx_number(15));
  PTX(p, "and.b64", rounded, rounded, hg_ptx_number(~UINT64_C(15)));
  hg_ptx_put(p, "\t@%s add.s64 %s, %s, %s;\n", fits.text, top.text, top.text, rounded.text);
}

static void pool_free(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t number = pool_number(p, insn->symbol);
  ptx_name offset = hg_ptx_value(p, ptx_arg(p, value, 0)), top = p->pool_top[number], back = hg_ptx_label(p);
  ptx_name failed = hg_ptx_new(p, PTX_PREDICATE), low = hg_ptx_new(p, PTX_64);
  PTX(p, "setp.lt.u64", failed, offset, p->pool_start[number]);
  PTX(p, "setp.ge.or.u64", failed, offset, top, failed);
  PTX(p, "and.b64", low, offset, hg_ptx_number(15));
  PTX(p, "setp.ne.or.u64", failed, low, hg_ptx_number(0), failed);
  ptx_fault_site site = {.insn = insn->insn, .symbol = insn->symbol, .kind = HG_FAULT_POOL, .index_type = ATLAS_i64,
                         .index = offset, .extent = top};
  hg_ptx_fault_if(p, failed, &site, NULL, ATLAS_u64, back);
  PTX(p, "mov.b64", top, offset);
  hg_ptx_place(p, back);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

void hg_ptx_block_effect(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  switch (insn->op) {
  case ATLAS_OP_bar_sync: barrier(p); break;
  case ATLAS_OP_scan_incl:
  case ATLAS_OP_scan_excl: scan(p, value); break;
  case ATLAS_OP_vote_any:
  case ATLAS_OP_vote_all:
    hg_ptx_put(p, "\tbar.red.%s.pred %s, 0, %s;\n", insn->op == ATLAS_OP_vote_any ? "or" : "and",
               hg_ptx_register(p, value).text, hg_ptx_value(p, ptx_arg(p, value, 0)).text);
    break;
  case ATLAS_OP_pool_alloc: pool_allocate(p, value); break;
  case ATLAS_OP_pool_free: pool_free(p, value); break;
  default: reduce(p, value); break;
  }
}
