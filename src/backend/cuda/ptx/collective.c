/* collective.c - reductions and scans of a block, in parallel, and by one lane where others have ended.
 *
 * A lane that has ended has left its thread: barriers of the hardware count only threads that are still there. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/arith.h"

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
  PTX(p, "mad.lo.u32", d, lane, hg_ptx_number(GPU_SLOT_BYTES), shared_at(p, p->plan->scratch));
  return d;
}

static void store_slot(ptx *p, uint8_t type, ptx_name address, uint32_t offset, ptx_name value) {
  hg_ptx_put(p, "\tst.shared%s [%s+%u], %s;\n", hg_ptx_bits_suffix(hg_ptx_class_of(type)), address.text,
             (unsigned)offset, value.text);
}

static void load_slot(ptx *p, const char *guard, uint8_t type, ptx_name d, ptx_name address, int offset) {
  hg_ptx_put(p, "\t%sld.shared%s %s, [%s+%d];\n", guard, hg_ptx_bits_suffix(hg_ptx_class_of(type)), d.text,
             address.text, offset);
}

static ptx_name slot_register(ptx *p, uint8_t type) { return hg_ptx_new(p, hg_ptx_class_of(type)); }

/* Where the predicate holds the value combines several lanes', and a NaN is made canonical; else it keeps its bits. */
static ptx_name canonicalised(ptx *p, uint8_t type, ptx_name value, ptx_name holds) {
  if (!gpu_combines_loosely(type)) return value; /* other types are rounded, which makes NaNs canonical */
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

/* ---- by one lane, when lanes have ended -------------------------------------------------------------------------- */

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
  PTX(p, "add.s32", d, lane, shared_at(p, p->plan->ended));
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
  load_slot(p, "", type, a, slot_of(p, left), 0);
  load_slot(p, "", type, b, slot_of(p, right), 0);
  ptx_name no_a = is_absent(p, ended_byte(p, left)), no_b = is_absent(p, ended_byte(p, right));
  hg_ptx_combine(p, op, type, d, a, b);
  if (gpu_combines_loosely(type)) d = hg_ptx_make_exact(p, type, d);
  PTX(p, selection.text, d, b, d, no_a);
  PTX(p, selection.text, d, a, d, no_b);
  store_slot(p, type, address, 0, d);
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

/* ---- a collective's steps ---------------------------------------------------------------------------------------- */

/* What one of them has in registers. */
typedef struct collective {
  ptx *p;
  uint32_t value;
  uint16_t op;                      /* with which it combines */
  uint8_t type;
  int is_scan, has_met;
  ptx_name own, test, d;            /* d: of a scan, its value */
  ptx_name own_slot;                /* of a scan */
  ptx_name base, row[GPU_FOLD_LANES], has[GPU_FOLD_LANES]; /* of a fold; row 0 is `own` */
  ptx_name left, has_left, address; /* of a scan's stride */
  loop stride;
  ptx_name rare, done, joined, others; /* labels */
  ptx_name first;                   /* of a reduction alone: its result */
} collective;

static void move(ptx *p, uint8_t type, ptx_name d, ptx_name a) {
  PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(hg_ptx_class_of(type))).text, d, a);
}

static void begin_collective(collective *c) {
  ptx *p = c->p;
  if (c->is_scan) c->d = hg_ptx_register(p, c->value);
  c->own = slot_register(p, c->type);
  if (c->is_scan) c->own_slot = slot_of(p, p->block_lane);
  else c->test = hg_ptx_new(p, PTX_PREDICATE);
  c->rare = hg_ptx_label(p);
  if (!c->is_scan) c->done = hg_ptx_label(p);
  c->joined = hg_ptx_label(p);
  move(p, c->type, c->own, hg_ptx_argument(p, c->value, 0));
}

static void put_own(collective *c) {
  store_slot(c->p, c->type, c->is_scan ? c->own_slot : slot_of(c->p, c->p->block_lane), 0, c->own);
}

/* Goes to the rare way when a lane has ended. All lanes of the block have passed a barrier. */
static void unless_ended(collective *c) {
  ptx *p = c->p;
  ptx_name any = hg_ptx_new(p, PTX_32), test = hg_ptx_new(p, PTX_PREDICATE);
  hg_ptx_put(p, "\tld.shared.u32 %s, [%s];\n", any.text, shared_at(p, p->plan->ended_any).text);
  PTX(p, "setp.ne.u32", test, any, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", test.text, c->rare.text);
}

/* Where both ways meet. */
static void meet(collective *c) {
  if (!c->has_met) hg_ptx_place(c->p, c->joined);
  c->has_met = 1;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static void first_lanes(collective *c) {
  ptx *p = c->p;
  PTX(p, "setp.ge.u32", c->test, p->block_lane, hg_ptx_number(GPU_FOLD_LANES));
  hg_ptx_put(p, "\t@%s bra %s;\n", c->test.text, c->done.text);
  c->base = slot_of(p, p->block_lane);
  c->row[0] = c->own;
}

static void fold_row(collective *c, uint32_t j) {
  ptx *p = c->p;
  ptx_name lane = hg_ptx_new(p, PTX_32);
  c->row[j] = slot_register(p, c->type);
  c->has[j] = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "add.s32", lane, p->block_lane, hg_ptx_number(j * GPU_FOLD_LANES));
  PTX(p, "setp.lt.u32", c->has[j], lane, p->lane_count);
  move(p, c->type, c->row[j], hg_ptx_number(0));
  load_slot(p, hg_ptx_name("@%s ", c->has[j].text).text, c->type, c->row[j], c->base,
           (int)(j * GPU_FOLD_LANES * GPU_SLOT_BYTES));
}

static void fold_rows(collective *c, uint32_t j, uint32_t half) {
  combine_if(c->p, c->has[j + half], c->op, c->type, c->row[j], c->row[j + half], 0);
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

static void fold_lanes_by(collective *c, uint32_t h) {
  ptx *p = c->p;
  ptx_name other = shuffled(p, c->type, c->own, h), lane = hg_ptx_new(p, PTX_32), has = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "add.s32", lane, p->block_lane, hg_ptx_number(h));
  PTX(p, "setp.lt.u32", has, lane, p->lane_count);
  combine_if(p, has, c->op, c->type, c->own, other, 0);
}

static void keep_result(collective *c) {
  ptx *p = c->p;
  PTX(p, "setp.ne.u32", c->test, p->block_lane, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", c->test.text, c->done.text);
  PTX(p, "setp.gt.u32", c->test, p->lane_count, hg_ptx_number(1));
  ptx_name result = canonicalised(p, c->type, c->own, c->test);
  store_slot(p, c->type, shared_at(p, p->plan->result), 0, result);
}

static void get_result(collective *c) {
  meet(c);
  ptx_name result = shared_at(c->p, c->p->plan->result);
  load_slot(c->p, "", c->type, hg_ptx_register(c->p, c->value), result, 0);
}

static void keep_slot(collective *c) {
  load_slot(c->p, "", c->type, c->first, slot_of(c->p, hg_ptx_number(0)), 0);
  store_slot(c->p, c->type, shared_at(c->p, c->p->plan->result), 0, c->first);
}

/* ---- scans ------------------------------------------------------------------------------------------------------- */

static void strides(collective *c) {
  ptx *p = c->p;
  c->left = slot_register(p, c->type);
  c->has_left = hg_ptx_new(p, PTX_PREDICATE);
  c->address = hg_ptx_new(p, PTX_32);
  c->stride = open_loop(p, hg_ptx_number(1), "setp.ge.u32", p->lane_count);
}

static void get_stride(collective *c) {
  ptx *p = c->p;
  PTX(p, "setp.ge.u32", c->has_left, p->block_lane, c->stride.i);
  PTX(p, "mad.lo.s32", c->address, c->stride.i, hg_ptx_name("-%d", (int)GPU_SLOT_BYTES), c->own_slot);
  move(p, c->type, c->left, hg_ptx_number(0));
  load_slot(p, hg_ptx_name("@%s ", c->has_left.text).text, c->type, c->left, c->address, 0);
}

static void canonicalise_own(collective *c) {
  ptx *p = c->p;
  ptx_name is_sum = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.ne.u32", is_sum, p->block_lane, hg_ptx_number(0));
  c->own = canonicalised(p, c->type, c->own, is_sum);
}

/* d = the slot before the lane's own, or 0. */
static void take_left(ptx *p, uint8_t type, ptx_name d, ptx_name own_slot) {
  ptx_name has = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.ne.u32", has, p->block_lane, hg_ptx_number(0));
  PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(hg_ptx_class_of(type))).text, d, hg_ptx_number(0));
  load_slot(p, hg_ptx_name("@%s ", has.text).text, type, d, own_slot, -GPU_SLOT_BYTES);
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

/* ---- all steps --------------------------------------------------------------------------------------------------- */

static void emit_step(collective *c, const gpu_step *step) {
  ptx *p = c->p;
  switch (step->op) {
  case GPU_OWN: begin_collective(c); break;
  case GPU_PUT_OWN: put_own(c); break;
  case GPU_UNLESS_ENDED: unless_ended(c); break;
  case GPU_FIRST_LANES: first_lanes(c); break;
  case GPU_FOLD_ROW: fold_row(c, step->number); break;
  case GPU_FOLD_ROWS: fold_rows(c, step->number & 0xffff, step->number >> 16); break;
  case GPU_FOLD_LANES_BY: fold_lanes_by(c, step->number); break;
  case GPU_KEEP_RESULT: keep_result(c); break;
  case GPU_END_FIRST_LANES: hg_ptx_place(p, c->done); break;
  case GPU_GET_RESULT: get_result(c); break;
  case GPU_STRIDES: strides(c); break;
  case GPU_GET_STRIDE: get_stride(c); break;
  case GPU_ADD_STRIDE: combine_if(p, c->has_left, c->op, c->type, c->own, c->left, 1); break;
  case GPU_END_STRIDES: close_loop(p, &c->stride, "shl.b32", hg_ptx_number(1)); break;
  case GPU_SETTLE: canonicalise_own(c); break;
  case GPU_GET_BEFORE: take_left(p, c->type, c->d, c->own_slot); break;
  case GPU_GET_OWN: move(p, c->type, c->d, c->own); break;
  case GPU_ELECT: elect(p, c->others); break;
  case GPU_FOLD_SLOTS: reduce_alone(p, c->op, c->type); break;
  case GPU_KEEP_SLOT: keep_slot(c); break;
  case GPU_SCAN_SLOTS: scan_alone(p, c->type); break;
  case GPU_END_ELECT: hg_ptx_place(p, c->others); break;
  case GPU_GET_PRESENT: take_left_present(p, c->type, c->d, c->own_slot); break;
  case GPU_GET_SLOT: load_slot(p, "", c->type, c->d, c->own_slot, 0); break;
  default: barrier(p); break;
  }
}

/* The rare way, out of line. */
static void where_ended(collective *c, const gpu_step *steps, uint32_t first, uint32_t end) {
  ptx *p = c->p;
  hg_array *out = p->out;
  p->out = &p->cold;
  c->others = hg_ptx_label(p);
  if (!c->is_scan) c->first = slot_register(p, c->type);
  hg_ptx_place(p, c->rare);
  for (uint32_t i = first; i < end; i++) emit_step(c, &steps[i]);
  hg_ptx_put(p, "\tbra %s;\n", c->joined.text);
  p->out = out;
}

uint32_t hg_ptx_collective(ptx *p, const gpu_step *steps, uint32_t most) {
  const ssa_insn *insn = ptx_insn(p, steps[0].value);
  collective c = {.p = p, .value = steps[0].value, .op = atlas_combining_op(insn->op), .type = insn->type,
                  .is_scan = insn->op == ATLAS_OP_scan_incl || insn->op == ATLAS_OP_scan_excl};
  uint32_t count = 0, rare = 0, rare_end = 0;
  int is_usual = 1;
  for (; count < most && steps[count].value == c.value; count++) {
    if (steps[count].op == GPU_WHERE_ENDED) rare = count + 1;
    if (steps[count].op == GPU_END_ENDED) rare_end = count;
    if (steps[count].op == GPU_WHERE_ENDED || steps[count].op == GPU_END_ENDED) is_usual = !is_usual;
    else if (is_usual) emit_step(&c, &steps[count]);
  }
  meet(&c);
  if (rare > 0) where_ended(&c, steps, rare, rare_end);
  return count;
}
