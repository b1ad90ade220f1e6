/* careful.c - reductions and scans of a block that lacks lanes, in shared memory: by all lanes together, or by one
 * where others have ended.
 *
 * A lane that has ended has left its thread: barriers of the hardware count only threads that are still there. */
#include "backend/cuda/ptx/exchange.h"

enum { ENDED = 1, ABSENT = 2 }; /* in a lane's byte: 1 ended; the lane alone keeps 2 in it where there is no value */

static void barrier(ptx *p) { hg_ptx_put(p, "\tbar.sync 0;\n"); }

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* `for (i = first; test; i += step)`, of 32 bits: places its label; close_loop ends it. */
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

/* Half the power of two at or above the lane count. */
static ptx_name first_half(ptx *p) {
  ptx_name half = hg_ptx_new(p, PTX_32);
  loop power = open_loop(p, hg_ptx_number(1), "setp.ge.u32", p->lane_count);
  close_loop(p, &power, "shl.b32", hg_ptx_number(1));
  PTX(p, "shr.u32", half, power.i, hg_ptx_number(1));
  return half;
}

/* ---- by all lanes ------------------------------------------------------------------------------------------------ */

static ptx_name combined(ptx_exchange *c, uint32_t i, ptx_name a, ptx_name b) {
  uint8_t type = exchange_type(c, i);
  ptx_name d = hg_ptx_new(c->p, hg_ptx_class_of(type));
  hg_ptx_combine(c->p, hg_ptx_combining_op(c, i), type, d, a, b);
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

static void unless_ended(ptx_exchange *c) {
  ptx *p = c->p;
  ptx_name any = hg_ptx_new(p, PTX_32), test = hg_ptx_new(p, PTX_PREDICATE);
  c->ended = hg_ptx_label(p);
  hg_ptx_put(p, "\tld.shared.u32 %s, [%s];\n", any.text, hg_ptx_shared_at(p, p->plan->ended_any).text);
  PTX(p, "setp.ne.u32", test, any, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", test.text, c->ended.text);
}

static void where_ended(const ptx_exchange *c) {
  hg_ptx_put(c->p, "\tbra %s;\n", c->joined.text);
  hg_ptx_place(c->p, c->ended);
}

/* ---- by one lane ------------------------------------------------------------------------------------------------- */

static ptx_name ended_byte(ptx *p, ptx_name lane) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, "add.s32", d, lane, hg_ptx_shared_at(p, p->plan->ended));
  return d;
}

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

/* place[into] = place[left] op place[right], where a missing side counts for nothing; `into` is one of them. */
static void combine_places(ptx_exchange *c, uint32_t i, ptx_name into, ptx_name left, ptx_name right) {
  ptx *p = c->p;
  uint8_t type = exchange_type(c, i);
  ptx_class class = hg_ptx_class_of(type);
  ptx_name a = hg_ptx_new(p, class), b = hg_ptx_new(p, class);
  ptx_name selection = hg_ptx_join("selp", hg_ptx_bits_suffix(class));
  ptx_name address = hg_ptx_place_at(c, i, into), byte_address = ended_byte(p, into),
           byte = hg_ptx_new(p, PTX_32), present = hg_ptx_new(p, PTX_32), both = hg_ptx_new(p, PTX_PREDICATE);
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

/* for (h = power of two at or above the lane count / 2; h >= 1; h /= 2) for (i = 0; i < h && i + h < count; i++) */
static void fold_places(ptx_exchange *c, uint32_t i) {
  ptx *p = c->p;
  ptx_name bound = hg_ptx_new(p, PTX_32), other = hg_ptx_new(p, PTX_32);
  loop outer = open_loop(p, first_half(p), "setp.lt.u32", hg_ptx_number(1));
  PTX(p, "sub.s32", bound, p->lane_count, outer.i);
  PTX(p, "min.s32", bound, bound, outer.i);
  loop inner = open_loop(p, hg_ptx_number(0), "setp.ge.s32", bound);
  PTX(p, "add.s32", other, inner.i, outer.i);
  combine_places(c, i, inner.i, inner.i, other);
  close_loop(p, &inner, "add.s32", hg_ptx_number(1));
  close_loop(p, &outer, "shr.u32", hg_ptx_number(1));
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

/* The lane before may have no value; the first lane asks itself, which has one. */
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
  case GPU_UNLESS_ENDED: unless_ended(c); break;
  case GPU_FOLD_HALVES: fold_halves(c); break;
  case GPU_WHERE_ENDED: where_ended(c); break;
  case GPU_ELECT: elect(c->p, c->others = hg_ptx_label(c->p)); break;
  case GPU_FOLD_PLACES: fold_places(c, i); break;
  case GPU_SCAN_PLACES: scan_places(c, i); break;
  case GPU_END_ELECT: hg_ptx_place(c->p, c->others); break;
  case GPU_GET_FIRST: get_place(c, i, hg_ptx_number(0)); break;
  case GPU_GET_PLACE: get_place(c, i, c->p->block_lane); break;
  case GPU_GET_BEFORE: get_before(c, i); break;
  default: break; /* END_ENDED: what follows it joins */
  }
}
