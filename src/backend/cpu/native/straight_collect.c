/* straight_collect.c - expands reductions, scans and votes of a block (straight.c) in the order of the ISA: by halves,
 * or with strides that double, first between slices and between the lanes of one.
 *
 * Narrow integers are combined as 32-bit ones, whose low bits are theirs; f16 and bf16 as f32, rounded after each step.
 * Combining commutes except for the bits of a NaN, which are made canonical at the end. */
#include "backend/cpu/native/straight.h"
#include "vector/lower.h"

typedef struct collective {
  straight *w;
  uint16_t op;     /* the instruction that combines two lanes */
  uint8_t type;    /* of the lanes, */
  uint8_t as;      /* and the type that it combines them in */
  uint32_t *part;  /* a register for each slice */
} collective;

/* ---- instructions ------------------------------------------------------------------------------------------------ */

/* Appends d = op of two registers, or of one, and returns d. */
static uint32_t append(straight *w, uint16_t op, uint8_t type, uint32_t a, uint32_t b) {
  vector_insn insn = vector_insn_of(op, VECTOR_ALL);
  insn.type = type;
  insn.d = hg_straight_add_register(w, &(vector_reg){.kind = VECTOR_VARIES, .type = type});
  insn.s[0] = a;
  insn.s[1] = b;
  hg_straight_append(w, &insn);
  return insn.d;
}

static vector_insn *last_insn(const straight *w) { return vector_insn_at(w->to, (uint32_t)w->to->insns.count - 1); }

static uint32_t append_conversion(straight *w, uint8_t to, uint8_t type, uint32_t from) {
  uint32_t d = append(w, ATLAS_OP_cvt, to, from, VECTOR_NONE);
  if (!w->no_memory) last_insn(w)->type2 = type;
  return d;
}

/* Appends d = `yes` in the lanes of a predicate, else `no`. */
static uint32_t append_choice(straight *w, uint8_t type, uint32_t predicate, uint32_t yes, uint32_t no) {
  uint32_t d = append(w, ATLAS_OP_sel, type, predicate, yes);
  if (!w->no_memory) last_insn(w)->s[2] = no;
  return d;
}

/* A predicate that is true in a slice's lanes from `first` on. */
static uint32_t lanes_from(straight *w, uint32_t first) {
  uint64_t bits[STRAIGHT_MOST_LANES];
  for (uint32_t i = 0; i < w->lanes; i++) bits[i] = i >= first;
  uint32_t known = hg_straight_add_bits(w, bits),
           d = append(w, NATIVE_CONST_LANES, SSA_PREDICATE, VECTOR_NONE, VECTOR_NONE);
  if (!w->no_memory) last_insn(w)->bits = known;
  return d;
}

/* Lane i of the result is lane i - distance; if there is none, one of the last lanes of `before`. */
static uint32_t append_shift(straight *w, uint8_t type, uint32_t from, uint32_t before, uint32_t distance) {
  uint32_t d = append(w, NATIVE_SHIFT, type, from, before);
  if (!w->no_memory) last_insn(w)->bits = distance;
  return d;
}

/* ---- combining --------------------------------------------------------------------------------------------------- */

static int is_half(uint8_t type) { return type == ATLAS_f16 || type == ATLAS_bf16; }
static int is_narrow(uint8_t type) { return atlas_is_integer((atlas_type)type) && atlas_bytes((atlas_type)type) < 4; }

static uint8_t combined_as(uint8_t type) {
  if (is_half(type)) return ATLAS_f32;
  if (!is_narrow(type)) return type;
  return atlas_kind((atlas_type)type) == ATLAS_KIND_SINT ? ATLAS_i32 : ATLAS_u32;
}

/* The greater or lesser of two numbers is rounded already. */
static uint32_t combine(const collective *c, uint32_t a, uint32_t b) {
  uint32_t d = append(c->w, c->op, c->as, a, b);
  if (!is_half(c->type) || c->op == ATLAS_OP_min || c->op == ATLAS_OP_max) return d;
  d = append(c->w, NATIVE_ROUND, c->as, d, VECTOR_NONE);
  if (!c->w->no_memory) last_insn(c->w)->bits = c->type;
  return d;
}

/* The lane's number differs between slices, so each slice gets a copy of it. */
static uint32_t source_of(straight *w, uint32_t r, uint32_t slice) {
  uint32_t reg = hg_straight_register(w, r, slice);
  if (reg >= VECTOR_ALL || vector_reg_at(w->to, reg)->kind != VECTOR_SPECIAL) return reg;
  reg = append(w, VECTOR_MOVE, vector_reg_at(w->to, reg)->type, reg, VECTOR_NONE);
  if (!w->no_memory) last_insn(w)->slice = slice;
  return reg;
}

static void begin_parts(const collective *c, uint32_t r) {
  for (uint32_t slice = 0; slice < c->w->slices; slice++) {
    c->part[slice] = source_of(c->w, r, slice);
    if (is_half(c->type)) c->part[slice] = append_conversion(c->w, c->as, c->type, c->part[slice]);
  }
}

/* Converts what has been combined to the type of the lanes. */
static uint32_t finished(const collective *c, uint32_t part) {
  int is_extreme = c->op == ATLAS_OP_min || c->op == ATLAS_OP_max;
  if (is_narrow(c->type) && is_extreme) return append(c->w, VECTOR_MOVE, c->type, part, VECTOR_NONE);
  if (c->as != c->type) part = append_conversion(c->w, c->type, c->as, part);
  return atlas_is_float((atlas_type)c->type) ? append(c->w, VECTOR_CANON, c->type, part, VECTOR_NONE) : part;
}

/* ---- reductions, votes ------------------------------------------------------------------------------------------- */

/* Reduces, with the result in all lanes: after the step with distance h, the lanes repeat every h. */
static uint32_t reduce_parts(const collective *c) {
  uint32_t half = 1, slices = c->w->slices, *part = c->part;
  while (half < slices) half *= 2;
  for (half /= 2; half >= 1; half /= 2)
    for (uint32_t i = 0; i < half && i + half < slices; i++) part[i] = combine(c, part[i], part[i + half]);
  for (half = c->w->lanes / 2; half >= 1; half /= 2)
    part[0] = combine(c, part[0], append_shift(c->w, c->as, part[0], part[0], half));
  return part[0];
}

static void set_all(straight *w, const vector_insn *insn, uint32_t result) {
  for (uint32_t slice = 0; slice < w->slices; slice++) hg_straight_set(w, insn->d, slice, result);
}

static void reduce(const collective *c, const vector_insn *insn) {
  begin_parts(c, insn->s[0]);
  uint32_t part = reduce_parts(c), result = finished(c, part);
  if (!c->w->no_memory) /* dead_code may replace the result by `part`, so both are uniform */
    vector_reg_at(c->w->to, part)->uniform = vector_reg_at(c->w->to, result)->uniform = 1;
  set_all(c->w, insn, result);
}

/* A vote is the greatest, or the least, of numbers. */
static void vote(const collective *c, const vector_insn *insn) {
  straight *w = c->w;
  uint32_t one = hg_straight_constant(w, ATLAS_u32, 1), none = hg_straight_constant(w, ATLAS_u32, 0);
  for (uint32_t slice = 0; slice < w->slices; slice++)
    c->part[slice] = append_choice(w, ATLAS_u32, source_of(w, insn->s[0], slice), one, none);
  uint32_t d = append(w, ATLAS_OP_set_ne, SSA_PREDICATE, reduce_parts(c), none);
  if (!w->no_memory) last_insn(w)->type2 = ATLAS_u32;
  set_all(w, insn, d);
}

/* ---- scans ------------------------------------------------------------------------------------------------------- */

/* One step of a scan within slices, from the last slice to the first so that the slice before still has its old
 * value. */
static void scan_lanes(const collective *c, uint32_t stride) {
  straight *w = c->w;
  for (uint32_t i = w->slices; i-- > 0;) {
    uint32_t before = append_shift(w, c->as, c->part[i], c->part[i > 0 ? i - 1 : 0], stride);
    uint32_t sum = combine(c, before, c->part[i]);
    c->part[i] = i > 0 ? sum : append_choice(w, c->as, lanes_from(w, stride), sum, c->part[i]);
  }
}

static void scan_slices(const collective *c, uint32_t stride) {
  for (uint32_t i = c->w->slices; i-- > stride;) c->part[i] = combine(c, c->part[i - stride], c->part[i]);
}

/* Makes a scan exclusive: of integers by subtracting the lane's own value, else by taking the lane before. */
static void exclude_last(const collective *c, uint32_t r) {
  straight *w = c->w;
  if (atlas_is_integer((atlas_type)c->type)) {
    for (uint32_t i = 0; i < w->slices; i++)
      c->part[i] = finished(c, append(w, ATLAS_OP_sub, c->as, c->part[i], source_of(w, r, i)));
    return;
  }
  for (uint32_t i = w->slices; i-- > 0;)
    c->part[i] = append_shift(w, c->type, c->part[i], c->part[i > 0 ? i - 1 : 0], 1);
  c->part[0] = append_choice(w, c->type, lanes_from(w, 1), c->part[0], hg_straight_constant(w, c->type, 0));
}

/* Lane 0 is combined with nothing, so its bits stay, even those of a NaN. */
static void scan(const collective *c, const vector_insn *insn) {
  straight *w = c->w;
  int is_incl = insn->op == ATLAS_OP_scan_incl, is_integer = atlas_is_integer((atlas_type)c->type);
  uint32_t first = source_of(w, insn->s[0], 0);
  begin_parts(c, insn->s[0]);
  for (uint32_t stride = 1; stride < w->lanes; stride *= 2) scan_lanes(c, stride);
  for (uint32_t stride = 1; stride < w->slices; stride *= 2) scan_slices(c, stride);
  for (uint32_t i = 0; i < w->slices && (is_incl || !is_integer); i++) c->part[i] = finished(c, c->part[i]);
  if (!is_integer) c->part[0] = append_choice(w, c->type, lanes_from(w, 1), c->part[0], first);
  if (!is_incl) exclude_last(c, insn->s[0]);
  for (uint32_t i = 0; i < w->slices; i++) hg_straight_set(w, insn->d, i, c->part[i]);
}

int hg_straight_expand_collective(straight *w, uint32_t i) {
  static const uint16_t ops[4] = {ATLAS_OP_add, ATLAS_OP_mul, ATLAS_OP_min, ATLAS_OP_max};
  const vector_insn insn = *vector_insn_at(w->from, i);
  uint32_t part[CPU_TILE_LANES] = {0};
  collective c = {.w = w, .op = ATLAS_OP_add, .type = insn.type, .as = ATLAS_u32, .part = part};
  if (insn.mask != VECTOR_ALL || insn.d == VECTOR_NONE || insn.s[0] >= VECTOR_ALL) return 0;
  if (insn.op == ATLAS_OP_vote_any || insn.op == ATLAS_OP_vote_all) {
    c.op = insn.op == ATLAS_OP_vote_any ? ATLAS_OP_max : ATLAS_OP_min;
    c.type = ATLAS_u32;
    vote(&c, &insn);
    return !w->no_memory;
  }
  c.as = combined_as(insn.type);
  if (insn.op == ATLAS_OP_scan_incl || insn.op == ATLAS_OP_scan_excl) scan(&c, &insn);
  else if (insn.op >= ATLAS_OP_reduce_add && insn.op <= ATLAS_OP_reduce_max) {
    c.op = ops[insn.op - ATLAS_OP_reduce_add];
    reduce(&c, &insn);
  } else return 0;
  return !w->no_memory;
}
