/* share_divisor.c - several f32 divisions by one number, by means of one reciprocal.
 *
 * y = 1 / b is computed once, with multiplications only; then each a / b takes three operations (Markstein,
 * "Computation of elementary functions on the IBM RISC System/6000 processor", IBM J. Res. Dev. 34 (1990)): q = a y; e
 * = a - q b, by fma; q' = q + e y, by fma.
 *
 * Why q' equals a / b in every bit if nothing overflows or loses bits below the subnormals: scale a and b to [1, 2),
 * and let y = 1/b + d with |d| <= 2^-25. For a >= b, q differs from a / b by less than a unit of its last place, for a
 * < b by less than one and a half; so e is exact, or off by at most 2^-47. Before q' is rounded it differs from a / b
 * by so little that only a quotient could be rounded to the wrong number whose distance from the midpoint of two
 * neighbours is at most 5 / b of the least distance that a quotient of two f32 can have. tests/unit/test_shared_work.c
 * tries all of those, for every b.
 *
 * y is computed without a division, which would be the only one in most kernels: from the bits of b, by Newton's steps
 * e = 1 - b y, y += y (e + e^2), y += y e, y += y e. It is 1 / b rounded unless the fraction of b is all ones; the test
 * tries every fraction.
 *
 * A group of divisions passes the test if 2^-16 <= |b| <= 2^64, the fraction of b is not all ones, and |q'| >= 2^-86
 * for all of the group. Then 1/b and q are normal numbers, and the last bit of q b is 2^-149 or above. If a is infinite
 * or NaN, or q overflows, q' is NaN and fails. A group that fails divides one by one; so do zeros. If they are many
 * that is a loop with one division: a division is long, and drivers' compilers spend their time on code that exists,
 * not on code that runs.
 *
 * A quotient that is only rounded to bf16 needs less: the product q = a z, where z is the least f32 that is not below 1
 * / b (all here in magnitude). q is not below the f32 nearest to a / b, since rounding is monotonic, and differs from a
 * / b by less than two units of its last place for the error of z and half a unit for its own rounding: so q is that
 * f32 or one of the two above it. Next to a power of two, where units below are half, z's share is half as well; if q
 * is subnormal it is nothing. The two can round differently only if the midpoint of two bf16, where the low 16 bits are
 * 0x8000, is neither below that f32 nor above q: then the low bits of q are 0x8000, 0x8001 or 0x8002, and these are the
 * least ones if read as a signed integer. An infinite q is as near to the greatest f32, which rounds to infinity as
 * well; if q is NaN so is a / b. So the test is that no low bits of the group are at most 0x8002, and 2^-16 <= |b| <=
 * 2^64. tests/unit/test_shared_work.c tries numbers around midpoints. In some percent of all groups one lane of a warp
 * fails it. Such a group takes three operations a quotient, with their test, before it divides. */
#include "compiler/share_divisor.h"
#include "compiler/compiler_tuning.h"

#include "base/error.h"
#include "compiler/analysis/effects.h"
#include "compiler/canon/schedule.h"
#include "compiler/rare_side.h"
#include "ir/loops.h"
#include "ir/ssa_walk.h"

static const uint32_t ONE = 0x3f800000, LEAST_DIVISOR = 0x37800000, GREATEST_DIVISOR = 0x5f800000,
                      LEAST_QUOTIENT = 0x14800000; /* 1, 2^-16, 2^64, 2^-86 */
static const uint32_t RECIPROCAL = 0x7ef311c3;     /* less the bits of b: approximates 1 / b within a twentieth */
static const uint32_t ALL_ONES = 0x7fffff;         /* the fraction of a b next to a power of two */
static const uint32_t CUT = 16, LAST_MIDDLE = 0x80020000; /* of bf16 in the low bits of f32 */

enum { ROUNDS = 1, OTHER = 2 }; /* to bf16 */

/* A divisor that has been found, with values that belong to it. */
typedef struct inverse {
  uint32_t divisor, reciprocal, negative, fits; /* b, 1 / b, -b, and whether b passes the test */
  uint32_t above;                               /* z; SSA_NONE: not needed yet */
} inverse;

typedef struct sharer {
  ssa_unit *unit;
  uint32_t *late;        /* per value: the last group that it was too late for */
  uint8_t *is_done;      /* per value */
  uint8_t *use;          /* per value: the kinds of its users */
  uint64_t values;       /* how many values the arrays have */
  uint32_t block, group; /* the current block; the number of the current group */
  uint32_t fewest;       /* COMPILER_LEAST_DIVISIONS or 1 */
  inverse inverse[COMPILER_SHARED_DIVISORS];
  uint32_t inverses;
  inverse *by;                          /* of the current group */
  uint32_t shared[COMPILER_SHARED_ROUNDED], count; /* divisions */
  int is_narrow;                        /* 1: they only need to round to the right bf16 */
  int failed; /* out of memory */
} sharer;

static ssa_insn *insn_at(const sharer *s, uint32_t value) { return ssa_insn_at(s->unit, value); }
static uint32_t arg_of(const sharer *s, uint32_t value, unsigned i) {
  return ir_ssa_resolve(s->unit, ssa_args_of(s->unit, value)[i]);
}
static hg_status out_of_memory(void) { return hg_fail_memory("sharing divisors", sizeof(ssa_insn)); }

/* ---- which ------------------------------------------------------------------------------------------------------- */

static int is_division(const sharer *s, uint32_t value) {
  const ssa_insn *insn = insn_at(s, value);
  return insn->op == ATLAS_OP_div && insn->type == ATLAS_f32 && value < s->values && !s->is_done[value] &&
         insn_at(s, arg_of(s, value, 1))->op != SSA_CONST;
}

static int is_narrow(const sharer *s, uint32_t division) { return s->use[division] == ROUNDS; }

/* 1 if the value depends on something behind the first division that is not pure or is a division. */
static int is_late(const sharer *s, uint32_t value) {
  for (uint32_t i = 0; i < insn_at(s, value)->arg_count; i++) {
    uint32_t arg = arg_of(s, value, i);
    if (arg < s->values && s->late[arg] == s->group) return 1;
  }
  return 0;
}

static uint32_t divisions_by(const sharer *s, uint32_t from, uint32_t divisor) {
  uint32_t count = 0;
  for (uint32_t v = from; v != SSA_NONE; v = insn_at(s, v)->next)
    count += is_division(s, v) && arg_of(s, v, 1) == divisor;
  return count;
}

static inverse *inverse_of(sharer *s, uint32_t divisor) {
  for (uint32_t i = 0; i < s->inverses; i++)
    if (s->inverse[i].divisor == divisor) return &s->inverse[i];
  return NULL;
}

/* The divisions that share a test with `first`: their dividends can be computed before it. */
static void find_shared(sharer *s, uint32_t first) {
  uint32_t divisor = arg_of(s, first, 1);
  s->group++;
  s->count = 0;
  s->is_narrow = is_narrow(s, first);
  uint32_t most = s->is_narrow ? COMPILER_SHARED_ROUNDED : COMPILER_SHARED_QUOTIENTS;
  if (inverse_of(s, divisor) == NULL &&
      (s->inverses == COMPILER_SHARED_DIVISORS || divisions_by(s, first, divisor) < s->fewest))
    return;
  for (uint32_t v = first; v != SSA_NONE && s->count < most; v = insn_at(s, v)->next) {
    int is = is_division(s, v), waits = is_late(s, v);
    if (is && !waits && arg_of(s, v, 1) == divisor && is_narrow(s, v) == s->is_narrow) s->shared[s->count++] = v;
    if (v < s->values && (is || waits || !hg_is_pure(insn_at(s, v)))) s->late[v] = s->group;
  }
}

/* 1 if a loop computes the divisor itself: then a division is faster than two of Newton's steps. */
static int is_new_in_loop(const sharer *s, const ir_loops *loops, uint32_t block, uint32_t divisor) {
  uint32_t loop = loops->loop[block], from = insn_at(s, divisor)->block;
  return loop != SSA_NONE && from != SSA_NONE && ir_in_loop(loops, loop, from);
}

/* Counts divisions that share nothing. */
static uint32_t count_alone(const sharer *s, const ssa_order *order, const ir_loops *loops) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < order->count; k++) {
    uint32_t first = ssa_block_at(s->unit, order->block[k])->first_effect;
    for (uint32_t v = first; v != SSA_NONE; v = insn_at(s, v)->next) {
      if (!is_division(s, v) || divisions_by(s, first, arg_of(s, v, 1)) >= COMPILER_LEAST_DIVISIONS) continue;
      if (is_new_in_loop(s, loops, order->block[k], arg_of(s, v, 1))) return UINT32_MAX;
      count++;
    }
  }
  return count;
}

/* If few unshared divisions remain, expands them too, so that a driver's compiler emits no subroutine for them. */
static hg_status choose_fewest(sharer *s) {
  ssa_order order;
  ir_loops loops = {0};
  s->fewest = COMPILER_LEAST_DIVISIONS;
  hg_status status = ir_ssa_order_build(s->unit, &order);
  if (status == HG_OK) status = ir_loops_build(s->unit, &order, &loops);
  if (status == HG_OK && count_alone(s, &order, &loops) <= COMPILER_DIVISIONS_ALONE) s->fewest = 1;
  ir_loops_release(s->unit, &loops);
  ir_ssa_order_release(s->unit, &order);
  return status;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint32_t add(sharer *s, ssa_insn made, const uint32_t *args, uint32_t count) {
  made.insn = insn_at(s, s->shared[0])->insn;
  uint32_t value = ir_ssa_add(s->unit, &made, count);
  s->failed |= value == SSA_NONE;
  for (uint32_t i = 0; i < count && !s->failed; i++) ssa_args_of(s->unit, value)[i] = args[i];
  return s->failed ? 0 : value;
}

static uint32_t constant(sharer *s, uint32_t bits) {
  return add(s, (ssa_insn){.op = SSA_CONST, .type = ATLAS_f32, .bits = bits}, NULL, 0);
}

static uint32_t real(sharer *s, uint16_t op, uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t args[3] = {a, b, c};
  return add(s, (ssa_insn){.op = op, .type = ATLAS_f32}, args, b == SSA_NONE ? 1 : c == SSA_NONE ? 2 : 3);
}

static uint32_t whole(sharer *s, uint16_t op, uint32_t a, uint32_t b) {
  const uint32_t args[2] = {a, b};
  return add(s, (ssa_insn){.op = op, .type = ATLAS_i32}, args, 2);
}

static uint32_t whole_constant(sharer *s, uint32_t number) {
  return add(s, (ssa_insn){.op = SSA_CONST, .type = ATLAS_i32, .bits = number}, NULL, 0);
}

static uint32_t compare(sharer *s, uint16_t op, uint8_t type, uint32_t a, uint32_t b) {
  const uint32_t args[2] = {a, b};
  return add(s, (ssa_insn){.op = op, .type = SSA_PREDICATE, .type2 = type}, args, 2);
}

static uint32_t is_at_most(sharer *s, uint32_t a, uint32_t b) { return compare(s, ATLAS_OP_set_le, ATLAS_f32, a, b); }

static uint32_t both(sharer *s, uint32_t a, uint32_t b) {
  const uint32_t args[2] = {a, b};
  return add(s, (ssa_insn){.op = ATLAS_OP_pand, .type = SSA_PREDICATE}, args, 2);
}

/* The bits of a NaN do not matter: both sides produce one. */
static uint32_t bits_of(sharer *s, uint32_t value) {
  return add(s, (ssa_insn){.op = ATLAS_OP_bitcast, .type = ATLAS_i32, .type2 = ATLAS_f32, .bits = 1}, &value, 1);
}

/* y += y e (1 + e), or without the last factor, where e = 1 - b y. */
static uint32_t nearer(sharer *s, uint32_t y, int by_square) {
  uint32_t e = real(s, ATLAS_OP_fma, s->by->negative, y, constant(s, ONE));
  if (by_square) e = real(s, ATLAS_OP_fma, e, e, e);
  return real(s, ATLAS_OP_fma, y, e, y);
}

static uint32_t reciprocal_of(sharer *s, uint32_t divisor) {
  uint32_t y = whole(s, ATLAS_OP_sub, whole_constant(s, RECIPROCAL), bits_of(s, divisor));
  y = add(s, (ssa_insn){.op = ATLAS_OP_bitcast, .type = ATLAS_f32, .type2 = ATLAS_i32}, &y, 1);
  return nearer(s, nearer(s, nearer(s, y, 1), 0), 0);
}

/* Finds or makes the values that the divisions by a number share. They are pure, and stand before all of these. */
static void invert(sharer *s, uint32_t divisor) {
  s->by = inverse_of(s, divisor);
  if (s->by != NULL) return;
  inverse *by = s->by = &s->inverse[s->inverses++];
  by->divisor = divisor;
  by->above = SSA_NONE;
  by->negative = real(s, ATLAS_OP_neg, divisor, SSA_NONE, SSA_NONE);
  by->reciprocal = reciprocal_of(s, divisor);
  uint32_t size = real(s, ATLAS_OP_abs, divisor, SSA_NONE, SSA_NONE);
  uint32_t fraction = whole(s, ATLAS_OP_and, bits_of(s, divisor), whole_constant(s, ALL_ONES));
  by->fits =
      both(s, is_at_most(s, constant(s, LEAST_DIVISOR), size), is_at_most(s, size, constant(s, GREATEST_DIVISOR)));
  by->fits = both(s, by->fits, compare(s, ATLAS_OP_set_lt, ATLAS_i32, fraction, whole_constant(s, ALL_ONES)));
}

static uint32_t quotient(sharer *s, uint32_t a) {
  uint32_t q = real(s, ATLAS_OP_mul, a, s->by->reciprocal, SSA_NONE);
  return real(s, ATLAS_OP_fma, real(s, ATLAS_OP_fma, q, s->by->negative, a), s->by->reciprocal, q);
}

/* The reciprocal, or the next number in magnitude if it is below 1 / b. */
static uint32_t reciprocal_above(sharer *s) {
  uint32_t y = s->by->reciprocal, next = whole(s, ATLAS_OP_add, bits_of(s, y), whole_constant(s, 1));
  next = add(s, (ssa_insn){.op = ATLAS_OP_bitcast, .type = ATLAS_f32, .type2 = ATLAS_i32}, &next, 1);
  uint32_t missing = real(s, ATLAS_OP_fma, y, s->by->negative, constant(s, ONE)); /* the sign of this is exact */
  const uint32_t args[3] = {compare(s, ATLAS_OP_set_lt, ATLAS_f32, constant(s, 0), missing), next, y};
  return add(s, (ssa_insn){.op = ATLAS_OP_sel, .type = ATLAS_f32}, args, 3);
}

/* The group's results if the test passes, and the test. */
static uint32_t share_exactly(sharer *s, uint32_t *shared) {
  uint32_t test = s->by->fits;
  for (uint32_t i = 0; i < s->count && !s->failed; i++) {
    shared[i] = quotient(s, arg_of(s, s->shared[i], 0));
    uint32_t size = real(s, ATLAS_OP_abs, shared[i], SSA_NONE, SSA_NONE);
    test = both(s, test, is_at_most(s, constant(s, LEAST_QUOTIENT), size));
  }
  return test;
}

static uint32_t share_for_rounding(sharer *s, uint32_t *shared) {
  uint32_t least = SSA_NONE;
  if (s->by->above == SSA_NONE) s->by->above = reciprocal_above(s);
  for (uint32_t i = 0; i < s->count && !s->failed; i++) {
    shared[i] = real(s, ATLAS_OP_mul, arg_of(s, s->shared[i], 0), s->by->above, SSA_NONE);
    uint32_t low = whole(s, ATLAS_OP_shl, bits_of(s, shared[i]), whole_constant(s, CUT));
    least = i == 0 ? low : whole(s, ATLAS_OP_min, least, low);
  }
  return both(s, s->by->fits, compare(s, ATLAS_OP_set_lt, ATLAS_i32, whole_constant(s, LAST_MIDDLE), least));
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* Ends the block behind `previous`; what follows becomes the next current block. */
static hg_status share(sharer *s, uint32_t previous) {
  uint32_t value[3][COMPILER_SHARED_ROUNDED] = {{0}}, sides = 0; /* per side */
  invert(s, arg_of(s, s->shared[0], 1));
  uint32_t test = s->is_narrow ? share_for_rounding(s, value[0]) : share_exactly(s, value[0]);
  uint32_t rest = s->failed ? SSA_NONE : ir_ssa_split_block(s->unit, s->block, previous);
  if (rest == SSA_NONE) return out_of_memory();
  uint32_t end = hg_add_rare_side(s->unit, s->block, test, rest);
  if (s->is_narrow && end != SSA_NONE)
    end = hg_add_rare_side(s->unit, end, share_exactly(s, value[++sides]), rest);
  for (uint32_t i = 0; i < s->count; i++) insn_at(s, s->shared[i])->bits = 1;
  if (end != SSA_NONE)
    end = hg_compute_again(s->unit, end, s->shared, s->count, COMPILER_DIVISION_COPIES, value[++sides]);
  if (end == SSA_NONE || s->failed || !hg_end_side(s->unit, end, rest)) return out_of_memory();
  for (uint32_t i = 0; i < s->count; i++) {
    const uint32_t from[] = {value[0][i], value[1][i], value[2][i]};
    if (!hg_choose_side(s->unit, rest, s->shared[i], from, sides + 1)) return out_of_memory();
    s->is_done[s->shared[i]] = 1;
  }
  s->block = rest;
  return HG_OK;
}

static hg_status share_in(sharer *s, uint32_t block, int *changed) {
  s->block = block;
  uint32_t previous = SSA_NONE;
  for (uint32_t v = ssa_block_at(s->unit, block)->first_effect; v != SSA_NONE && !s->failed;) {
    s->count = 0;
    if (is_division(s, v)) find_shared(s, v);
    if (s->count > 0) {
      HG_TRY(share(s, previous)); /* v begins the next block */
      *changed = 1;
    }
    previous = v; /* a division that is done stays in the list until the unit is scheduled again */
    v = insn_at(s, v)->next;
  }
  return s->failed ? out_of_memory() : HG_OK;
}

static void note_uses(const sharer *s) {
  for (uint32_t v = 0; v < s->values; v++) {
    const ssa_insn *insn = insn_at(s, v);
    int rounds = insn->op == ATLAS_OP_cvt && insn->type == ATLAS_bf16 && insn->type2 == ATLAS_f32;
    for (uint32_t i = 0; i < insn->arg_count; i++) s->use[arg_of(s, v, i)] |= rounds ? ROUNDS : OTHER;
  }
}

hg_status hg_share_divisors(ssa_unit *unit, int *changed) {
  sharer s = {.unit = unit, .values = unit->insns.count};
  s.late = hg_allocate(&unit->allocator, s.values, sizeof *s.late + 2);
  if (s.late == NULL) return out_of_memory();
  s.is_done = (uint8_t *)(s.late + s.values);
  s.use = s.is_done + s.values;
  ir_ssa_resolve_all(unit);
  note_uses(&s);
  hg_status status = choose_fewest(&s);
  uint32_t blocks = (uint32_t)unit->blocks.count;
  for (int round = 0; round < 2; round++) /* the second round handles the few divisions by numbers that others have
                                             inverted */
    for (uint32_t b = 0; b < blocks && status == HG_OK; b++)
      if (!ssa_block_at(unit, b)->dead) status = share_in(&s, b, changed);
  hg_unschedule(unit);
  if (status == HG_OK) status = hg_schedule_folds(unit);
  hg_release(&unit->allocator, s.late);
  return status;
}
