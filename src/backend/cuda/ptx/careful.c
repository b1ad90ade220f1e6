/* careful.c - reductions and scans in shared memory for a block that lacks lanes: all remaining lanes perform a
 * reduction, one of them a scan.
 *
 * A lane that has ended has left its thread: barriers of the hardware count only threads that still run. */
#include "backend/cuda/ptx/exchange.h"

enum { ENDED = 1, ABSENT = 2 }; /* in a lane's byte: 1: it has ended; only the lane itself sets 2, if it has no value */

static void barrier(ptx *p) { hg_ptx_put(p, "\tbar.sync 0;\n"); }

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* `for (i = first; test; i += step)` in 32 bits: open_loop places its label, close_loop ends it. */
typedef struct loop {
  ptx_name i, start, end;
} loop;

static loop open_with(ptx *p, const char *branch, ptx_name first, const char *leaves, ptx_name limit) {
  loop l = {hg_ptx_new(p, PTX_32), hg_ptx_label(p), hg_ptx_label(p)};
  ptx_name test = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "mov.b32", l.i, first);
  hg_ptx_place(p, l.start);
  PTX(p, leaves, test, l.i, limit);
  hg_ptx_put(p, "\t@%s %s %s;\n", test.text, branch, l.end.text);
  return l;
}

/* All lanes of a warp leave it at once, so ptxas need not make them converge again. */
static loop open_loop(ptx *p, ptx_name first, const char *leaves, ptx_name limit) {
  return open_with(p, "bra.uni", first, leaves, limit);
}

static void close_loop(ptx *p, const loop *l, const char *mnemonic, ptx_name step) {
  PTX(p, mnemonic, l->i, l->i, step);
  hg_ptx_put(p, "\tbra %s;\n", l->start.text);
  hg_ptx_place(p, l->end);
}

/* Half the power of two at or above the lane count; 0 for one lane, since a shift by more than 31 gives 0. */
static ptx_name first_half(ptx *p) {
  ptx_name half = hg_ptx_new(p, PTX_32), bits = hg_ptx_new(p, PTX_32);
  PTX(p, "sub.s32", half, p->lane_count, hg_ptx_number(1));
  PTX(p, "clz.b32", bits, half);
  PTX(p, "sub.s32", bits, hg_ptx_number(31), bits);
  PTX(p, "shl.b32", half, hg_ptx_number(1), bits);
  return half;
}

/* ---- by all lanes ------------------------------------------------------------------------------------------------ */

static ptx_name combined(const ptx_exchange *c, uint32_t i, ptx_name a, ptx_name b) {
  uint8_t type = exchange_type(c, i);
  ptx_name d = hg_ptx_combined(c->p, hg_ptx_combining_op(c, i), type, a, b);
  return gpu_combines_loosely(type) ? hg_ptx_make_exact(c->p, type, d) : d;
}

static void fold_half(ptx_exchange *c, uint32_t i, ptx_name other) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name a = hg_ptx_new(p, hg_ptx_class_of(type)), b = hg_ptx_new(p, hg_ptx_class_of(type));
  ptx_name own = hg_ptx_place_at(c, i, p->block_lane);
  hg_ptx_load_slot(p, "", type, a, own, 0);
  hg_ptx_load_slot(p, "", type, b, hg_ptx_place_at(c, i, other), 0);
  hg_ptx_store_slot(p, "", type, own, 0, combined(c, i, a, b));
}

static void fold_halves(ptx_exchange *c) {
  ptx *p = c->p;
  loop halves = open_loop(p, first_half(p), "setp.lt.u32", hg_ptx_number(1));
  ptx_name other = hg_ptx_new(p, PTX_32), has = hg_ptx_new(p, PTX_PREDICATE), idle = hg_ptx_label(p);
  PTX(p, "add.s32", other, p->block_lane, halves.i);
  PTX(p, "setp.lt.u32", has, other, p->lane_count);
  PTX(p, "setp.lt.and.u32", has, p->block_lane, halves.i, has);
  hg_ptx_put(p, "\t@!%s bra %s;\n", has.text, idle.text);
  for (uint32_t i = 0; i < c->x->count; i++) fold_half(c, i, other);
  hg_ptx_place(p, idle);
  barrier(p);
  close_loop(p, &halves, "shr.u32", hg_ptx_number(1));
}

/* ---- by the lanes that are left ---------------------------------------------------------------------------------- */

static ptx_name ended_byte(ptx *p, ptx_name lane) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, "add.s32", d, lane, hg_ptx_shared_at(p, p->plan->memory.ended));
  return d;
}

static ptx_name marks_of(ptx *p, ptx_name lane) {
  ptx_name byte = hg_ptx_new(p, PTX_32);
  hg_ptx_put(p, "\tld.shared.u8 %s, [%s];\n", byte.text, ended_byte(p, lane).text);
  return byte;
}

typedef struct workers {
  ptx_name rank, count; /* registers: this lane's number among the remaining lanes, and how many these are */
} workers;

static workers find_workers(ptx *p) {
  workers w = {hg_ptx_new(p, PTX_32), hg_ptx_new(p, PTX_32)};
  ptx_name any = hg_ptx_new(p, PTX_32), none = hg_ptx_new(p, PTX_PREDICATE), before = hg_ptx_new(p, PTX_PREDICATE),
           all = hg_ptx_label(p);
  PTX(p, "mov.b32", w.rank, p->block_lane);
  PTX(p, "mov.b32", w.count, p->lane_count);
  hg_ptx_put(p, "\tld.shared.u32 %s, [%s];\n", any.text, hg_ptx_shared_at(p, p->plan->memory.ended_any).text);
  PTX(p, "setp.eq.u32", none, any, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra.uni %s;\n", none.text, all.text);
  loop l = open_loop(p, hg_ptx_number(0), "setp.ge.u32", p->lane_count);
  ptx_name byte = marks_of(p, l.i);
  PTX(p, "and.b32", byte, byte, hg_ptx_number(ENDED));
  PTX(p, "sub.s32", w.count, w.count, byte);
  PTX(p, "setp.lt.u32", before, l.i, p->block_lane);
  hg_ptx_put(p, "\t@%s sub.s32 %s, %s, %s;\n", before.text, w.rank.text, w.rank.text, byte.text);
  close_loop(p, &l, "add.s32", hg_ptx_number(1));
  barrier(p); /* a fold writes bytes that others are still reading */
  hg_ptx_place(p, all);
  return w;
}

/* place[i] op= place[other]; an absent side counts for nothing. */
static void fold_pair(ptx_exchange *c, uint32_t v, ptx_name i, ptx_name other, ptx_name no_a, ptx_name no_b) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, v);
  ptx_class class = hg_ptx_class_of(type);
  ptx_name a = hg_ptx_new(p, class), b = hg_ptx_new(p, class), place = hg_ptx_place_at(c, v, i);
  ptx_name selection = hg_ptx_join("selp", hg_ptx_bits_suffix(class));
  hg_ptx_load_slot(p, "", type, a, place, 0);
  hg_ptx_load_slot(p, "", type, b, hg_ptx_place_at(c, v, other), 0);
  ptx_name d = combined(c, v, a, b);
  PTX(p, selection.text, d, b, d, no_a);
  PTX(p, selection.text, d, a, d, no_b);
  hg_ptx_store_slot(p, "", type, place, 0, d);
}

/* Folds place i of all values, and notes whether it has a value. `mark`: the bit that marks places without one; there
 * are none behind the last lane either. */
static void fold_place(ptx_exchange *c, ptx_name i, ptx_name half, ptx_name mark) {
  ptx *p = c->p;
  ptx_name other = hg_ptx_new(p, PTX_32), last = hg_ptx_new(p, PTX_32), none = hg_ptx_new(p, PTX_32),
           marks = hg_ptx_new(p, PTX_32), is_behind = hg_ptx_new(p, PTX_PREDICATE), no_a = hg_ptx_new(p, PTX_PREDICATE),
           no_b = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "add.s32", other, i, half);
  PTX(p, "setp.ge.u32", is_behind, other, p->lane_count);
  PTX(p, "sub.s32", last, p->lane_count, hg_ptx_number(1));
  PTX(p, "min.u32", other, other, last);
  ptx_name of_a = marks_of(p, i), of_b = marks_of(p, other);
  PTX(p, "and.b32", none, of_b, mark);
  PTX(p, "setp.ne.or.u32", no_b, none, hg_ptx_number(0), is_behind);
  PTX(p, "and.b32", none, of_a, mark);
  PTX(p, "setp.ne.u32", no_a, none, hg_ptx_number(0));
  PTX(p, "selp.b32", marks, hg_ptx_number(ABSENT), hg_ptx_number(0), no_b);
  PTX(p, "selp.b32", marks, marks, hg_ptx_number(0), no_a);
  PTX(p, "and.b32", of_a, of_a, hg_ptx_number(ENDED));
  PTX(p, "or.b32", marks, marks, of_a);
  hg_ptx_put(p, "\tst.shared.u8 [%s], %s;\n", ended_byte(p, i).text, marks.text);
  for (uint32_t v = 0; v < c->x->count; v++) fold_pair(c, v, i, other, no_a, no_b);
}

/* for (h = power of two at or above the lane count / 2; h >= 1; h /= 2) for (i = rank; i < h; i += workers) */
static void fold_present(ptx_exchange *c) {
  ptx *p = c->p;
  workers w = find_workers(p);
  ptx_name mark = hg_ptx_new(p, PTX_32);
  PTX(p, "mov.b32", mark, hg_ptx_number(ENDED));
  loop halves = open_loop(p, first_half(p), "setp.lt.u32", hg_ptx_number(1));
  loop places = open_with(p, "bra", w.rank, "setp.ge.u32", halves.i);
  fold_place(c, places.i, halves.i, mark);
  close_loop(p, &places, "add.s32", w.count);
  PTX(p, "mov.b32", mark, hg_ptx_number(ABSENT));
  barrier(p);
  close_loop(p, &halves, "shr.u32", hg_ptx_number(1));
}

/* ---- by one lane ------------------------------------------------------------------------------------------------- */

/* Marks absent lanes; all lanes except the lowest remaining one go to `others`. */
static void elect(ptx *p, ptx_name others) {
  ptx_name found = hg_ptx_new(p, PTX_32), byte = hg_ptx_new(p, PTX_32), test = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name next = hg_ptx_label(p), done = hg_ptx_label(p);
  PTX(p, "mov.b32", found, hg_ptx_number(0));
  hg_ptx_place(p, next);
  hg_ptx_put(p, "\tld.shared.u8 %s, [%s];\n", byte.text, ended_byte(p, found).text);
  PTX(p, "and.b32", byte, byte, hg_ptx_number(ENDED));
  PTX(p, "setp.eq.u32", test, byte, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra.uni %s;\n", test.text, done.text);
  PTX(p, "add.s32", found, found, hg_ptx_number(1));
  hg_ptx_put(p, "\tbra %s;\n", next.text);
  hg_ptx_place(p, done);
  PTX(p, "setp.ne.u32", test, found, p->block_lane);
  barrier(p); /* all lanes have read before one of them writes */
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

/* place[into] = place[left] op place[right], where an absent side counts for nothing; `into` is left or right. */
static void combine_places(ptx_exchange *c, uint32_t i, ptx_name into, ptx_name left, ptx_name right) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_class class = hg_ptx_class_of(type);
  ptx_name a = hg_ptx_new(p, class), b = hg_ptx_new(p, class);
  ptx_name selection = hg_ptx_join("selp", hg_ptx_bits_suffix(class));
  ptx_name address = hg_ptx_place_at(c, i, into), byte_address = ended_byte(p, into), byte = hg_ptx_new(p, PTX_32),
           present = hg_ptx_new(p, PTX_32), both = hg_ptx_new(p, PTX_PREDICATE);
  hg_ptx_load_slot(p, "", type, a, hg_ptx_place_at(c, i, left), 0);
  hg_ptx_load_slot(p, "", type, b, hg_ptx_place_at(c, i, right), 0);
  ptx_name no_a = is_absent(p, ended_byte(p, left)), no_b = is_absent(p, ended_byte(p, right));
  ptx_name d = combined(c, i, a, b);
  PTX(p, selection.text, d, b, d, no_a);
  PTX(p, selection.text, d, a, d, no_b);
  hg_ptx_store_slot(p, "", type, address, 0, d);
  PTX(p, "and.pred", both, no_a, no_b);
  hg_ptx_put(p, "\tld.shared.u8 %s, [%s];\n", byte.text, byte_address.text);
  PTX(p, "and.b32", present, byte, hg_ptx_number(ENDED));
  PTX(p, "or.b32", byte, byte, hg_ptx_number(ABSENT));
  PTX(p, "selp.b32", byte, byte, present, both);
  hg_ptx_put(p, "\tst.shared.u8 [%s], %s;\n", byte_address.text, byte.text);
}

/* for (stride = 1; stride < count; stride *= 2) for (i = count; i-- > stride;) */
static void scan_places(ptx_exchange *c, uint32_t i) {
  ptx *p = c->p;
  ptx_name last = hg_ptx_new(p, PTX_32), left = hg_ptx_new(p, PTX_32);
  PTX(p, "sub.s32", last, p->lane_count, hg_ptx_number(1));
  loop outer = open_loop(p, hg_ptx_number(1), "setp.ge.u32", p->lane_count);
  loop inner = open_loop(p, last, "setp.lt.s32", outer.i);
  PTX(p, "sub.s32", left, inner.i, outer.i);
  combine_places(c, i, inner.i, left, inner.i);
  close_loop(p, &inner, "sub.s32", hg_ptx_number(1));
  close_loop(p, &outer, "shl.b32", hg_ptx_number(1));
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void get_place(ptx_exchange *c, uint32_t i, ptx_name lane) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_name address = hg_ptx_place_at(c, i, lane);
  hg_ptx_load_slot(p, "", type, hg_ptx_register(p, c->x->value[i]), address, 0);
}

/* The lane before may have no value. The first lane asks about itself, which has one. */
static void get_before(ptx_exchange *c, uint32_t i) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  const char *suffix = hg_ptx_bits_suffix(hg_ptx_class_of(type));
  ptx_name before = hg_ptx_new(p, PTX_32), is_first = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name d = hg_ptx_register(p, c->x->value[i]);
  PTX(p, "max.s32", before, p->block_lane, hg_ptx_number(1));
  PTX(p, "sub.s32", before, before, hg_ptx_number(1));
  get_place(c, i, before);
  ptx_name absent = is_absent(p, ended_byte(p, before));
  PTX(p, "setp.eq.u32", is_first, p->block_lane, hg_ptx_number(0));
  PTX(p, "or.pred", absent, absent, is_first);
  PTX(p, hg_ptx_join("selp", suffix).text, d, hg_ptx_number(0), d, absent);
}

void hg_ptx_careful_step(ptx_exchange *c, const gpu_step *step, uint32_t i) {
  switch (step->op) {
  case GPU_FOLD_HALVES: fold_halves(c); break;
  case GPU_FOLD_PRESENT: fold_present(c); break;
  case GPU_ELECT: elect(c->p, c->others = hg_ptx_label(c->p)); break;
  case GPU_SCAN_PLACES: scan_places(c, i); break;
  case GPU_END_ELECT: hg_ptx_place(c->p, c->others); break;
  case GPU_GET_FIRST: get_place(c, i, hg_ptx_number(0)); break;
  case GPU_GET_PLACE: get_place(c, i, c->p->block_lane); break;
  case GPU_GET_BEFORE: get_before(c, i); break;
  default: break;
  }
}
