/* contract_tiles.c - the tiled program of a contraction.
 *
 * A block has a tile of the result, a lane 8 x 8 or 4 x 4 elements of it in registers. Shared memory holds two tiles of
 * A and B, eight steps of K deep: while one is multiplied, the next is loaded. Every 256 steps of K a chain of sums is
 * complete and goes into a binary counter in local memory, which is accessed only then.
 *
 * Which elements a lane copies depends on where neighbours lie in memory: along K, or along the rows of A and columns
 * of B. Beyond the matrices, the last row or column is read and nothing stored; beyond K, A is +0 and B is -0: a sum
 * plus +0 * -0 is that sum, even if it is -0. */
#include "ops/write/contract_tiles.h"
#include "ops/graph/ops_tuning.h"

#include "atlas/tables.h"

enum { P_DONE, P_A = 4, P_B = 8 }; /* predicates: scratch; an element of A, or of B, is within K */

/* What a lane copies of one side's tile. */
typedef struct bringing {
  const contract_side *side;
  uint32_t tile, pitch, count; /* the tile's size along `outer`; words between two k in shared memory; elements of a
                                  lane */
  uint8_t along_k, is_split;   /* its elements are neighbours along K; each has its own address */
  uint8_t is_guarded;
  uint16_t shared;               /* symbol */
  uint16_t address[8], value[8]; /* registers */
  uint16_t k;                    /* of its first element, if it is tested */
  uint16_t digit[HG_AXIS_PARTS]; /* that k as numbers along the parts of K, if these are several */
  atlas_operand step;            /* the distance from one step of K to the next: known to be a multiple of 8, and so of
                                    an access */
  uint16_t place;                /* the position in the tile in shared memory */
  uint32_t first_predicate;
  uint64_t padding; /* the bits that stand for elements beyond K */
} bringing;

typedef struct tiles {
  contract *c;
  atlas_builder *builder;
  atlas_type index, sum; /* types */
  uint16_t sums[64], factors_a[8], factors_b[8];
  uint16_t first_m, first_n;           /* of the block's tile: u32 */
  uint16_t own_m, own_n;               /* of the lane's sums, within the tile */
  uint16_t batch, part;                /* of the index type */
  uint16_t first_k;                    /* of the part; of the index type */
  uint16_t rounds;                     /* rounds of two steps */
  uint16_t chains, bits, level, turns; /* of the counter: the number of chains in it, ... */
  uint16_t counter;                    /* symbol */
  uint32_t levels;                     /* of the counter: a power of two; 0: there is only one chain */
  bringing a, b;
} tiles;

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static void emit3(tiles *t, atlas_op op, atlas_type type, uint16_t to, atlas_operand a, atlas_operand b) {
  atlas_emit(t->builder, op, type, 3, atlas_reg(to), a, b);
}
static uint16_t fresh(tiles *t) { return ops_register(&t->c->code); }
static atlas_operand number(tiles *t, uint64_t value) { return ops_scalar_of(&t->c->code, t->index, value); }
static atlas_operand number32(tiles *t, uint64_t value) { return ops_scalar_of(&t->c->code, ATLAS_u32, value); }
static atlas_operand constant(uint64_t value) { return atlas_int_const(ATLAS_u32, (int64_t)value); }

static uint32_t log2_of(uint64_t power) { return (uint32_t)__builtin_ctzll(power); }

/* (from >> shift) & mask, times `times`; a mask of 0: all bits */
static uint16_t bits_of(tiles *t, uint32_t shift, uint32_t mask, uint32_t times) {
  uint16_t to = fresh(t);
  emit3(t, ATLAS_OP_shr, ATLAS_u32, to, atlas_reg(ATLAS_REG_BLOCK_LANE), constant(shift));
  if (mask != 0) emit3(t, ATLAS_OP_and, ATLAS_u32, to, atlas_reg(to), constant(mask));
  if (times != 1) emit3(t, ATLAS_OP_mul, ATLAS_u32, to, atlas_reg(to), constant(times));
  return to;
}

/* ---- from memory to shared memory -------------------------------------------------------------------------------- */

static uint64_t size_of(const contract *c, uint32_t outer) { return outer == AT_M ? c->m : c->n; }

static int has_list(const hg_axis *axis) { return axis->count > 1; }

/* 1 if `count` neighbours along the rows or columns, from a multiple of that on, lie side by side. */
static int is_run(const hg_axis *axis, uint32_t count) {
  return !has_list(axis) || (axis->stride[0] == 1 && axis->size[0] % count == 0);
}

/* Chooses the shape of the copies, before any code is written. Windows have neighbours along a row of the image. */
static void plan_bringing(tiles *t, bringing *g, const contract_side *side, uint32_t tile) {
  const contract *c = t->c;
  g->side = side;
  g->tile = tile;
  g->count = tile * OPS_CONTRACT_STEP / contract_lanes(c);
  g->along_k = !has_list(&side->k_axis) && !has_list(&side->axis) && (side->stride != 1 || side->k_stride == 1);
  g->pitch = tile + (g->along_k ? 4 : 0);
  g->is_guarded = c->k % (2 * OPS_CONTRACT_STEP) != 0;
  if (g->along_k) g->is_split = side->k_stride != 1 && !g->is_guarded; /* otherwise each element's address is
                                                                          computed */
  else
    g->is_split = (size_of(c, side->outer) % tile != 0 && size_of(c, side->outer) % g->count != 0) ||
                  side->stride != 1 || !is_run(&side->axis, g->count);
  int is_float = atlas_is_float((atlas_type)side->type);
  g->padding = is_float && side->outer == AT_N ? UINT64_C(1) << (8 * atlas_bytes((atlas_type)side->type) - 1) : 0;
  g->first_predicate = side->outer == AT_M ? P_A : P_B;
}

/* The row or column of element i, at most the last one. */
static uint16_t outer_index(tiles *t, const bringing *g, uint16_t own, uint32_t i) {
  uint64_t size = size_of(t->c, g->side->outer);
  uint16_t at = fresh(t);
  emit3(t, ATLAS_OP_add, ATLAS_u32, at, atlas_reg(g->side->outer == AT_M ? t->first_m : t->first_n), atlas_reg(own));
  if (i > 0) emit3(t, ATLAS_OP_add, ATLAS_u32, at, atlas_reg(at), constant(i));
  uint64_t beyond = g->along_k || g->is_split ? 1 : g->count;
  if (size % g->tile != 0) emit3(t, ATLAS_OP_min, ATLAS_u32, at, atlas_reg(at), number32(t, size - beyond));
  uint16_t index = ops_index_of(&t->c->code, at);
  return index;
}

/* to = base + the place of a number along an axis; `from` is used up if the axis has several parts. Or those numbers
 * along its parts, in `digits`. */
static void add_place(tiles *t, const hg_axis *axis, uint16_t from, uint16_t base, uint16_t to, uint16_t *digits) {
  for (uint64_t i = 0; i < axis->count; i++) {
    uint16_t digit = from;
    if (i + 1 < axis->count) {
      digit = fresh(t);
      emit3(t, ATLAS_OP_rem, t->index, digit, atlas_reg(from), number(t, axis->size[i]));
      emit3(t, ATLAS_OP_div, t->index, from, atlas_reg(from), number(t, axis->size[i]));
    }
    if (digits != NULL) digits[i] = digit;
    else
      atlas_emit(t->builder, ATLAS_OP_mad, t->index, 4, atlas_reg(to), atlas_reg(digit),
                 number(t, (uint64_t)axis->stride[i]), atlas_reg(i == 0 ? base : to));
  }
}

/* The place along K of the digits, which go on by a step; beyond K, of an existing element. */
static uint16_t next_place(tiles *t, const bringing *g) {
  const hg_axis *axis = &g->side->k_axis;
  uint16_t place = fresh(t), carry = OPS_NO_REGISTER, digit = fresh(t);
  uint64_t step = OPS_CONTRACT_STEP;
  atlas_operand p = atlas_pred(P_DONE), zero = atlas_int_const(t->index, 0);
  for (uint64_t i = 0; i < axis->count; i++) {
    atlas_operand own = atlas_reg(g->digit[i]), size = number(t, axis->size[i]);
    atlas_operand stride = number(t, (uint64_t)axis->stride[i]);
    int is_top = i + 1 == axis->count;
    if (is_top && g->is_guarded) emit3(t, ATLAS_OP_min, t->index, digit, own, number(t, axis->size[i] - 1));
    atlas_operand used = is_top && g->is_guarded ? atlas_reg(digit) : own;
    if (i == 0) emit3(t, ATLAS_OP_mul, t->index, place, used, stride);
    else atlas_emit(t->builder, ATLAS_OP_mad, t->index, 4, atlas_reg(place), used, stride, atlas_reg(place));
    uint64_t own_step = is_top ? step : step % axis->size[i];
    if (own_step != 0) emit3(t, ATLAS_OP_add, t->index, g->digit[i], own, number(t, own_step));
    if (carry != OPS_NO_REGISTER) emit3(t, ATLAS_OP_add, t->index, g->digit[i], own, atlas_reg(carry));
    step /= axis->size[i];
    if (is_top) break;
    if (carry == OPS_NO_REGISTER) carry = fresh(t);
    uint16_t less = fresh(t);
    atlas_emit(t->builder, ATLAS_OP_set_ge, t->index, 3, p, own, size);
    atlas_emit(t->builder, ATLAS_OP_sel, t->index, 4, atlas_reg(carry), p, atlas_int_const(t->index, 1), zero);
    emit3(t, ATLAS_OP_sub, t->index, less, own, size);
    atlas_emit(t->builder, ATLAS_OP_sel, t->index, 4, own, p, atlas_reg(less), own);
  }
  return place;
}

static void begin_bringing(tiles *t, bringing *g) {
  const contract_side *side = g->side;
  uint32_t groups = g->along_k ? OPS_CONTRACT_STEP / g->count : g->tile / g->count;
  uint16_t high = bits_of(t, log2_of(groups), 0, 1), low = bits_of(t, 0, groups - 1, g->count);
  if (groups == 1) atlas_emit(t->builder, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(low), constant(0));
  uint16_t own_k = g->along_k ? low : high, own = g->along_k ? high : low;
  g->place = fresh(t);
  atlas_emit(t->builder, ATLAS_OP_mad, ATLAS_u32, 4, atlas_reg(g->place), atlas_reg(own_k), constant(g->pitch),
             atlas_reg(own));
  uint16_t k = ops_index_of(&t->c->code, own_k);
  emit3(t, ATLAS_OP_add, t->index, k, atlas_reg(k), atlas_reg(t->first_k));
  uint16_t base = fresh(t);
  if (has_list(&side->batch_axis)) {
    uint16_t batch = fresh(t);
    atlas_emit(t->builder, ATLAS_OP_mov, t->index, 2, atlas_reg(batch), atlas_reg(t->batch));
    atlas_emit(t->builder, ATLAS_OP_mov, t->index, 2, atlas_reg(base), number(t, (uint64_t)side->constant));
    add_place(t, &side->batch_axis, batch, base, base, NULL);
  } else {
    emit3(t, ATLAS_OP_mul, t->index, base, atlas_reg(t->batch), number(t, (uint64_t)side->batch_stride));
    emit3(t, ATLAS_OP_add, t->index, base, atlas_reg(base), number(t, (uint64_t)side->constant));
  }
  g->step = atlas_int_const(t->index, OPS_CONTRACT_STEP);
  if (side->k_stride != 1 && !g->is_guarded && !has_list(&side->k_axis)) {
    uint16_t step = fresh(t);
    emit3(t, ATLAS_OP_shl, t->index, step, number(t, (uint64_t)side->k_stride), constant(log2_of(OPS_CONTRACT_STEP)));
    g->step = atlas_reg(step);
  }
  if (has_list(&side->k_axis)) {
    uint16_t rest = fresh(t);
    atlas_emit(t->builder, ATLAS_OP_mov, t->index, 2, atlas_reg(rest), atlas_reg(k));
    add_place(t, &side->k_axis, rest, base, base, g->digit);
  } else if (!g->is_guarded)
    atlas_emit(t->builder, ATLAS_OP_mad, t->index, 4, atlas_reg(base), atlas_reg(k),
               number(t, (uint64_t)side->k_stride), atlas_reg(base));
  for (uint32_t i = 0; i < (g->is_split ? g->count : 1); i++) {
    uint16_t at = outer_index(t, g, own, g->along_k ? 0 : i);
    g->address[i] = fresh(t);
    add_place(t, &side->axis, at, base, g->address[i], NULL);
    if (g->along_k && i > 0 && !g->is_guarded)
      emit3(t, ATLAS_OP_add, t->index, g->address[i], atlas_reg(g->address[i]),
            number(t, (uint64_t)side->k_stride * i));
  }
  for (uint32_t i = 0; i < g->count; i++) g->value[i] = fresh(t);
  g->k = k;
}

static void load(tiles *t, const bringing *g, uint32_t i, uint16_t address, int64_t displacement) {
  uint16_t slot = ops_buffer_of(&t->c->code, g->side->storage);
  atlas_emit(t->builder, ATLAS_OP_ldg, (atlas_type)g->side->type, 2, atlas_reg(g->value[i]),
             atlas_mem_reg(slot, address, displacement));
}

/* If K may end within the step: element i is read at the last k at most. */
static void fetch_guarded(tiles *t, const bringing *g) {
  uint16_t k = fresh(t), address = fresh(t);
  for (uint32_t i = 0; i < g->count; i++) {
    if (i == 0 || g->along_k) {
      emit3(t, ATLAS_OP_add, t->index, k, atlas_reg(g->k), atlas_int_const(t->index, g->along_k ? i : 0));
      atlas_emit(t->builder, ATLAS_OP_set_lt, t->index, 3, atlas_pred(g->first_predicate + i), atlas_reg(k),
                 number(t, t->c->k));
      emit3(t, ATLAS_OP_min, t->index, k, atlas_reg(k), number(t, t->c->k - 1));
    }
    if (i == 0 || g->along_k || g->is_split)
      atlas_emit(t->builder, ATLAS_OP_mad, t->index, 4, atlas_reg(address), atlas_reg(k),
                 number(t, (uint64_t)g->side->k_stride), atlas_reg(g->address[g->is_split ? i : 0]));
    load(t, g, i, address, g->along_k || g->is_split ? 0 : i);
  }
}

/* Of windows: element i has its own address, or lies behind the first. */
static void fetch_windows(tiles *t, const bringing *g) {
  uint16_t place = next_place(t, g), address = fresh(t);
  if (g->is_guarded)
    atlas_emit(t->builder, ATLAS_OP_set_lt, t->index, 3, atlas_pred(g->first_predicate), atlas_reg(g->k),
               number(t, t->c->k));
  for (uint32_t i = 0; i < g->count; i++) {
    if (i == 0 || g->is_split)
      emit3(t, ATLAS_OP_add, t->index, address, atlas_reg(g->address[g->is_split ? i : 0]), atlas_reg(place));
    load(t, g, i, address, g->is_split ? 0 : i);
  }
  if (g->is_guarded)
    emit3(t, ATLAS_OP_add, t->index, g->k, atlas_reg(g->k), atlas_int_const(t->index, OPS_CONTRACT_STEP));
}

static void fetch_one(tiles *t, bringing *g) {
  if (has_list(&g->side->k_axis)) {
    fetch_windows(t, g);
    return;
  }
  if (g->is_guarded) {
    fetch_guarded(t, g);
    emit3(t, ATLAS_OP_add, t->index, g->k, atlas_reg(g->k), atlas_int_const(t->index, OPS_CONTRACT_STEP));
    return;
  }
  for (uint32_t i = 0; i < g->count; i++) load(t, g, i, g->address[g->is_split ? i : 0], g->is_split ? 0 : i);
  for (uint32_t i = 0; i < (g->is_split ? g->count : 1); i++)
    emit3(t, ATLAS_OP_add, t->index, g->address[i], atlas_reg(g->address[i]), g->step);
}

static void fetch(tiles *t) {
  fetch_one(t, &t->a);
  fetch_one(t, &t->b);
}

static void keep_one(tiles *t, const bringing *g, uint32_t buffer) {
  atlas_type type = (atlas_type)g->side->type;
  for (uint32_t i = 0; i < g->count; i++) {
    atlas_operand value = atlas_reg(g->value[i]);
    if (g->is_guarded) {
      atlas_operand predicate = atlas_pred(g->first_predicate + (g->along_k ? i : 0));
      atlas_emit(t->builder, ATLAS_OP_sel, type, 4, value, predicate, value, atlas_bits(g->padding));
    }
    if (type != t->sum) atlas_emit2(t->builder, ATLAS_OP_cvt, t->sum, type, value, value);
  }
  for (uint32_t i = 0; i < g->count; i++)
    atlas_emit(t->builder, ATLAS_OP_sts, t->sum, 2,
               atlas_mem_reg(g->shared, g->place,
                             (int64_t)buffer * OPS_CONTRACT_STEP * g->pitch + (g->along_k ? (int64_t)i * g->pitch : i)),
               atlas_reg(g->value[i]));
}

static void keep(tiles *t, uint32_t buffer) {
  keep_one(t, &t->a, buffer);
  keep_one(t, &t->b, buffer);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* A warp has 8 x 4 lanes: rows 0-3 and 32-35 for a lane, columns 0-3 and 16-19. */
static uint32_t row_of(uint32_t i) { return i % 4 + i / 4 * 32; }
static uint32_t column_of(uint32_t j) { return j % 4 + j / 4 * 16; }

static void multiply(tiles *t, uint32_t buffer) {
  const contract *c = t->c;
  atlas_op op = atlas_is_float(t->sum) ? ATLAS_OP_fma : ATLAS_OP_mad;
  for (uint32_t k = 0; k < OPS_CONTRACT_STEP; k++) {
    int64_t at_a = (int64_t)(buffer * OPS_CONTRACT_STEP + k) * t->a.pitch;
    int64_t at_b = (int64_t)(buffer * OPS_CONTRACT_STEP + k) * t->b.pitch;
    for (uint32_t i = 0; i < c->rows; i++)
      atlas_emit(t->builder, ATLAS_OP_lds, t->sum, 2, atlas_reg(t->factors_a[i]),
                 atlas_mem_reg(t->a.shared, t->own_m, at_a + row_of(i)));
    for (uint32_t j = 0; j < c->columns; j++)
      atlas_emit(t->builder, ATLAS_OP_lds, t->sum, 2, atlas_reg(t->factors_b[j]),
                 atlas_mem_reg(t->b.shared, t->own_n, at_b + column_of(j)));
    for (uint32_t i = 0; i < c->rows; i++)
      for (uint32_t j = 0; j < c->columns; j++) {
        atlas_operand sum = atlas_reg(t->sums[i * c->columns + j]);
        atlas_emit(t->builder, op, t->sum, 4, sum, atlas_reg(t->factors_a[i]), atlas_reg(t->factors_b[j]), sum);
      }
  }
}

/* ---- the counter of chains --------------------------------------------------------------------------------------- */

static uint32_t sum_count(const tiles *t) { return t->c->rows * t->c->columns; }

static void next_level(tiles *t) { /* the mask says where the counter ends */
  emit3(t, ATLAS_OP_add, ATLAS_u32, t->level, atlas_reg(t->level), constant(sum_count(t)));
  emit3(t, ATLAS_OP_and, ATLAS_u32, t->level, atlas_reg(t->level), constant(sum_count(t) * (t->levels - 1)));
}

/* Adds a level on the left of the sums. */
static void add_level(tiles *t) {
  for (uint32_t i = 0; i < sum_count(t); i++) {
    atlas_operand held = atlas_reg(i % 16 < 8 ? t->factors_a[i % 8 % t->c->rows] : t->factors_b[i % 8 % t->c->columns]);
    atlas_emit(t->builder, ATLAS_OP_ldl, t->sum, 2, held, atlas_mem_reg(t->counter, t->level, i));
    emit3(t, ATLAS_OP_add, t->sum, t->sums[i], held, atlas_reg(t->sums[i]));
  }
}

static void set_zero(tiles *t, uint16_t reg) {
  atlas_emit(t->builder, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(reg), constant(0));
}

static void zero_sums(tiles *t) {
  for (uint32_t i = 0; i < sum_count(t); i++)
    atlas_emit(t->builder, ATLAS_OP_movi, t->sum, 2, atlas_reg(t->sums[i]), atlas_bits(0));
}

/* A chain is complete: its sums go into the counter, behind those that are in it. */
static void count(tiles *t) {
  uint32_t carry = atlas_builder_label(t->builder, "carry"), carried = atlas_builder_label(t->builder, "carried");
  uint16_t bit = fresh(t);
  atlas_emit(t->builder, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(t->bits), atlas_reg(t->chains));
  set_zero(t, t->level);
  atlas_builder_place(t->builder, carry);
  emit3(t, ATLAS_OP_and, ATLAS_u32, bit, atlas_reg(t->bits), constant(1));
  ops_branch_if(t->builder, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(bit), constant(0), carried);
  add_level(t);
  emit3(t, ATLAS_OP_shr, ATLAS_u32, t->bits, atlas_reg(t->bits), constant(1));
  next_level(t);
  atlas_emit_branch(t->builder, -1, 0, carry);
  atlas_builder_place(t->builder, carried);
  for (uint32_t i = 0; i < sum_count(t); i++)
    atlas_emit(t->builder, ATLAS_OP_stl, t->sum, 2, atlas_mem_reg(t->counter, t->level, i), atlas_reg(t->sums[i]));
  zero_sums(t);
  emit3(t, ATLAS_OP_add, ATLAS_u32, t->chains, atlas_reg(t->chains), constant(1));
}

/* Adds everything in the counter, from its lowest level on, on the left of the last chain. */
static void collapse(tiles *t) {
  uint32_t top = atlas_builder_label(t->builder, "collapse"), without = atlas_builder_label(t->builder, "without");
  uint32_t collapsed = atlas_builder_label(t->builder, "collapsed");
  uint16_t bit = fresh(t);
  set_zero(t, t->level);
  atlas_builder_place(t->builder, top);
  ops_branch_if(t->builder, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(t->chains), constant(0), collapsed);
  emit3(t, ATLAS_OP_and, ATLAS_u32, bit, atlas_reg(t->chains), constant(1));
  emit3(t, ATLAS_OP_shr, ATLAS_u32, t->chains, atlas_reg(t->chains), constant(1));
  ops_branch_if(t->builder, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(bit), constant(0), without);
  add_level(t);
  atlas_builder_place(t->builder, without);
  next_level(t);
  atlas_emit_branch(t->builder, -1, 0, top);
  atlas_builder_place(t->builder, collapsed);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static void multiply_all(tiles *t) {
  atlas_builder *b = t->builder;
  uint32_t top = atlas_builder_label(b, "top"), last = atlas_builder_label(b, "last"), chain = 0;
  zero_sums(t);
  fetch(t);
  keep(t, 0);
  atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  if (t->levels > 0) {
    set_zero(t, t->chains);
    chain = atlas_builder_label(b, "chain");
    atlas_builder_place(b, chain);
    atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(t->turns), constant(CONTRACT_CHAIN / (2 * OPS_CONTRACT_STEP)));
  }
  atlas_builder_place(b, top);
  fetch(t);
  multiply(t, 0);
  keep(t, 1);
  atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  ops_branch_if(b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(t->rounds), constant(1), last);
  fetch(t);
  multiply(t, 1);
  keep(t, 0);
  atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  if (t->levels > 0) {
    emit3(t, ATLAS_OP_sub, ATLAS_u32, t->rounds, atlas_reg(t->rounds), constant(1));
    atlas_emit(b, ATLAS_OP_loop, ATLAS_NONE, 2, atlas_reg(t->turns), atlas_label_ref(top));
    count(t);
    atlas_emit_branch(b, -1, 0, chain);
  } else atlas_emit(b, ATLAS_OP_loop, ATLAS_NONE, 2, atlas_reg(t->rounds), atlas_label_ref(top));
  atlas_builder_place(b, last);
  multiply(t, 1);
  if (t->levels > 0) collapse(t);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static ops_form partial_form(const contract *c) {
  ops_form form = {.constant = 0};
  form.factor[AT_PART] = (int64_t)(c->batch * c->m * c->n);
  form.factor[AT_BATCH] = (int64_t)(c->m * c->n);
  form.factor[AT_M] = (int64_t)c->n;
  form.factor[AT_N] = 1;
  return form;
}

static void skip_unless_below(tiles *t, uint16_t index, uint64_t size, uint32_t label) {
  ops_branch_if(t->builder, ATLAS_OP_set_ge, t->index, atlas_reg(index), number(t, size), label);
}

/* Stores four neighbours of a row, or one if the columns end among four. */
static void put_columns(tiles *t, const contract_results *results, uint32_t i, uint32_t j, uint32_t count) {
  contract *c = t->c;
  ops_code *code = &c->code;
  ops_form form = partial_form(c);
  for (uint32_t more = 0; more < count; more++) {
    uint16_t sum = t->sums[i * c->columns + j + more];
    code->displacement = more;
    if (c->parts > 1) ops_store(code, c->partial, &form, t->sum, sum);
    else ops_contract_put(c, results, sum);
    ops_forget(code, 1u << AT_N);
  }
  code->displacement = 0;
}

/* `first` + `own` + `more`, as an index. */
static uint16_t result_index(tiles *t, uint16_t first, uint16_t own, uint32_t more) {
  uint16_t at = fresh(t);
  emit3(t, ATLAS_OP_add, ATLAS_u32, at, atlas_reg(first), atlas_reg(own));
  if (more > 0) emit3(t, ATLAS_OP_add, ATLAS_u32, at, atlas_reg(at), constant(more));
  uint16_t index = ops_index_of(&t->c->code, at);
  return index;
}

static void put_row(tiles *t, const contract_results *results, uint32_t i) {
  contract *c = t->c;
  ops_code *code = &c->code;
  int is_exact = c->n % contract_tile_n(c) == 0;
  uint32_t group = is_exact || c->n % 4 == 0 ? 4 : 1;
  for (uint32_t j = 0; j < c->columns; j += group) {
    uint32_t beyond = is_exact ? 0 : atlas_builder_label(t->builder, NULL);
    code->variable[AT_N] = result_index(t, t->first_n, t->own_n, column_of(j));
    if (!is_exact) skip_unless_below(t, code->variable[AT_N], c->n, beyond);
    put_columns(t, results, i, j, group);
    if (!is_exact) ops_forget_all(&c->code); /* it may not have been computed on every path */
    else ops_forget(code, 1u << AT_N);
    if (!is_exact) atlas_builder_place(t->builder, beyond);
    code->variable[AT_N] = OPS_NO_REGISTER;
  }
}

static void put_all(tiles *t, const contract_results *results) {
  contract *c = t->c;
  ops_code *code = &c->code;
  int is_exact = c->m % contract_tile_m(c) == 0;
  code->variable[AT_BATCH] = t->batch;
  code->variable[AT_PART] = t->part;
  code->displaced = AT_N;
  for (uint32_t i = 0; i < c->rows && code->status == HG_OK; i++) {
    uint32_t beyond = is_exact ? 0 : atlas_builder_label(t->builder, NULL);
    code->variable[AT_M] = result_index(t, t->first_m, t->own_m, row_of(i));
    if (!is_exact) skip_unless_below(t, code->variable[AT_M], c->m, beyond);
    put_row(t, results, i);
    ops_forget_all(&c->code);
    if (!is_exact) atlas_builder_place(t->builder, beyond);
    code->variable[AT_M] = OPS_NO_REGISTER;
  }
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void declare(tiles *t) {
  const contract *c = t->c;
  uint32_t words = 2 * OPS_CONTRACT_STEP;
  t->a.shared = atlas_builder_shared(t->builder, "tile_a", t->sum, words * t->a.pitch);
  t->b.shared = atlas_builder_shared(t->builder, "tile_b", t->sum, words * t->b.pitch);
  uint64_t chains = c->part_chains;
  for (t->levels = chains > 1 ? 2 : 0; t->levels > 0 && (UINT64_C(1) << t->levels) < chains;) t->levels *= 2;
  if (t->levels > 0) t->counter = atlas_builder_local(t->builder, "counter", t->sum, t->levels * c->rows * c->columns);
}

/* Finds the block's tile along N and M, and its matrix. Devices allow few blocks along y and z: if there are more
 * tiles, all of them lie along x. */
static uint16_t begin_tile(tiles *t) {
  const contract *c = t->c;
  ops_code *code = &t->c->code;
  uint16_t batch;
  t->first_n = ops_launch_coordinate(code, ATLAS_COORD_BLOCK_X);
  if (contract_fits_grid(c)) {
    t->first_m = ops_launch_coordinate(code, ATLAS_COORD_BLOCK_Y);
    batch = ops_launch_coordinate(code, ATLAS_COORD_BLOCK_Z);
  } else {
    atlas_operand along_n = number32(t, c->tiles_n), along_m = number32(t, c->tiles_m);
    t->first_m = fresh(t), batch = fresh(t);
    emit3(t, ATLAS_OP_div, ATLAS_u32, batch, atlas_reg(t->first_n), along_n);
    emit3(t, ATLAS_OP_rem, ATLAS_u32, t->first_n, atlas_reg(t->first_n), along_n);
    emit3(t, ATLAS_OP_rem, ATLAS_u32, t->first_m, atlas_reg(batch), along_m);
    emit3(t, ATLAS_OP_div, ATLAS_u32, batch, atlas_reg(batch), along_m);
  }
  emit3(t, ATLAS_OP_mul, ATLAS_u32, t->first_m, atlas_reg(t->first_m), constant(contract_tile_m(c)));
  emit3(t, ATLAS_OP_mul, ATLAS_u32, t->first_n, atlas_reg(t->first_n), constant(contract_tile_n(c)));
  return batch;
}

static void lay_grid(contract *c) {
  uint64_t grid[3] = {c->tiles_n, c->tiles_m, c->batch * c->parts};
  if (!contract_fits_grid(c)) grid[0] *= grid[1] * grid[2], grid[1] = grid[2] = 1;
  ops_launch_blocks(&c->code, grid[0], grid[1], grid[2], contract_lanes(c));
}

/* Computes the position of the block's tile, and of the lane's sums in it. */
static void begin_places(tiles *t) {
  const contract *c = t->c;
  uint16_t batch = begin_tile(t), part = fresh(t);
  set_zero(t, part);
  if (c->parts > 1) {
    emit3(t, ATLAS_OP_rem, ATLAS_u32, part, atlas_reg(batch), number32(t, c->parts));
    emit3(t, ATLAS_OP_div, ATLAS_u32, batch, atlas_reg(batch), number32(t, c->parts));
  }
  t->batch = ops_index_of(&t->c->code, batch);
  t->part = ops_index_of(&t->c->code, part);
  /* the part's range of K, in rounds */
  uint64_t length = c->part_chains * CONTRACT_CHAIN;
  uint16_t first = fresh(t);
  t->rounds = fresh(t);
  emit3(t, ATLAS_OP_mul, ATLAS_u32, first, atlas_reg(part), constant(length));
  emit3(t, ATLAS_OP_sub, ATLAS_u32, t->rounds, number32(t, c->k), atlas_reg(first));
  if (c->parts > 1) emit3(t, ATLAS_OP_min, ATLAS_u32, t->rounds, atlas_reg(t->rounds), constant(length));
  emit3(t, ATLAS_OP_add, ATLAS_u32, t->rounds, atlas_reg(t->rounds), constant(2 * OPS_CONTRACT_STEP - 1));
  emit3(t, ATLAS_OP_shr, ATLAS_u32, t->rounds, atlas_reg(t->rounds), constant(log2_of(2 * OPS_CONTRACT_STEP)));
  t->first_k = ops_index_of(&t->c->code, first);
  /* the lane's rows and columns */
  uint16_t warp = bits_of(t, 5 + log2_of(c->warps_n), 0, 8 * c->rows), own = bits_of(t, 2, 7, 4);
  t->own_m = fresh(t);
  emit3(t, ATLAS_OP_add, ATLAS_u32, t->own_m, atlas_reg(warp), atlas_reg(own));
  warp = bits_of(t, 5, c->warps_n - 1, 4 * c->columns), own = bits_of(t, 0, 3, 4);
  t->own_n = fresh(t);
  emit3(t, ATLAS_OP_add, ATLAS_u32, t->own_n, atlas_reg(warp), atlas_reg(own));
}

static void write_program(tiles *t, const contract_results *results) {
  const contract *c = t->c;
  declare(t);
  begin_places(t);
  begin_bringing(t, &t->a);
  begin_bringing(t, &t->b);
  for (uint32_t i = 0; i < c->rows * c->columns; i++) t->sums[i] = fresh(t);
  for (uint32_t i = 0; i < c->rows; i++) t->factors_a[i] = fresh(t);
  for (uint32_t j = 0; j < c->columns; j++) t->factors_b[j] = fresh(t);
  t->chains = fresh(t), t->bits = fresh(t), t->level = fresh(t), t->turns = fresh(t);
  multiply_all(t);
  put_all(t, results);
}

hg_status ops_contract_tiles(contract *c, ops_step *step) {
  contract_results results;
  HG_TRY(ops_contract_begin(c, step, "contract", &results));
  tiles t;
  memset(&t, 0, sizeof t);
  t.c = c;
  t.builder = c->code.builder;
  t.index = c->code.index_type;
  t.sum = (atlas_type)c->sum_type;
  plan_bringing(&t, &t.a, &c->a, contract_tile_m(c));
  plan_bringing(&t, &t.b, &c->b, contract_tile_n(c));
  lay_grid(c);
  write_program(&t, &results);
  return ops_code_end(&c->code);
}
