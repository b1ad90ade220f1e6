/* kernels.c - the loops of kernels.def. meson.build compiles this file once for each instruction set, with KERNELS as
 * the name of the resulting table; the compiler makes the vector code.
 *
 * A chunk is a loop of fixed length, so no remainder loops are compiled; rows end at multiples of it. */
#include "backend/cpu/engine/kernels.h"

#include "backend/cpu/engine/kernel_values.h"

#if defined __clang__
#define LANES_ARE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANES_ARE_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define EACH_LANE LANES_ARE_INDEPENDENT for (int i = 0; i < KERNEL_CHUNK; i++)

/* ---- the value of each kernel, from a, b and c ------------------------------------------------------------------- */

#define WIDE(t, x) ((W_##t)(x))
#define VALUE_add(t) (T_##t)(WIDE(t, a) + WIDE(t, b))
#define VALUE_sub(t) (T_##t)(WIDE(t, a) - WIDE(t, b))
#define VALUE_mul(t) (T_##t)(WIDE(t, a) * WIDE(t, b))
#define VALUE_mulhi(t) mulhi_##t(a, b)
#define VALUE_div(t) DIVIDE_##t
#define DIVIDE_f32 a / b
#define DIVIDE_f64 a / b
#define DIVIDE_i8 div_i8(a, b)
#define DIVIDE_i16 div_i16(a, b)
#define DIVIDE_i32 div_i32(a, b)
#define DIVIDE_i64 div_i64(a, b)
#define DIVIDE_u8 div_u8(a, b)
#define DIVIDE_u16 div_u16(a, b)
#define DIVIDE_u32 div_u32(a, b)
#define DIVIDE_u64 div_u64(a, b)
#define VALUE_rem(t) rem_##t(a, b)
#define VALUE_mad(t) (T_##t)(WIDE(t, a) * WIDE(t, b) + WIDE(t, c))
#define VALUE_fma(t) atlas_fma_##t(a, b, c)
#define SMALLER a < b ? a : b
#define LARGER a > b ? a : b
#define VALUE_min(t) MIN_##t
#define MIN_f32 minimum_f32(a, b)
#define MIN_f64 minimum_f64(a, b)
#define MIN_i8 SMALLER
#define MIN_i16 SMALLER
#define MIN_i32 SMALLER
#define MIN_i64 SMALLER
#define MIN_u8 SMALLER
#define MIN_u16 SMALLER
#define MIN_u32 SMALLER
#define MIN_u64 SMALLER
#define VALUE_max(t) MAX_##t
#define MAX_f32 maximum_f32(a, b)
#define MAX_f64 maximum_f64(a, b)
#define MAX_i8 LARGER
#define MAX_i16 LARGER
#define MAX_i32 LARGER
#define MAX_i64 LARGER
#define MAX_u8 LARGER
#define MAX_u16 LARGER
#define MAX_u32 LARGER
#define MAX_u64 LARGER
#define VALUE_abs(t) ABS_##t
#define ABS_i8 (int8_t)(a < 0 ? 0 - a : a)
#define ABS_i16 (int16_t)(a < 0 ? 0 - a : a)
#define ABS_i32 (int32_t)(a < 0 ? 0 - (uint32_t)a : (uint32_t)a)
#define ABS_i64 (int64_t)(a < 0 ? 0 - (uint64_t)a : (uint64_t)a)
#define ABS_f16 (uint16_t)(a & 0x7fff)
#define ABS_bf16 (uint16_t)(a & 0x7fff)
#define ABS_f32 from_bits_f32(bits_f32(a) & 0x7fffffff)
#define ABS_f64 from_bits_f64(bits_f64(a) & INT64_MAX)
#define VALUE_neg(t) NEG_##t
#define NEG_u8 (uint8_t)(0 - a)
#define NEG_u16 (uint16_t)(0 - a)
#define NEG_u32 0 - a
#define NEG_u64 0 - a
#define NEG_f16 (uint16_t)(a ^ 0x8000)
#define NEG_bf16 (uint16_t)(a ^ 0x8000)
#define NEG_f32 from_bits_f32(bits_f32(a) ^ 0x80000000u)
#define NEG_f64 from_bits_f64(bits_f64(a) ^ UINT64_C(0x8000000000000000))
#define VALUE_sign(t) SIGN_##t
#define SIGN_INTEGER(t) (T_##t)((a > 0) - (a < 0))
#define SIGN_i8 SIGN_INTEGER(i8)
#define SIGN_i16 SIGN_INTEGER(i16)
#define SIGN_i32 SIGN_INTEGER(i32)
#define SIGN_i64 SIGN_INTEGER(i64)
#define SIGN_f32 sign_f32(a)
#define SIGN_f64 sign_f64(a)
#define VALUE_copysign(t) COPYSIGN_##t
#define COPYSIGN_f16 (uint16_t)((a & 0x7fff) | (b & 0x8000))
#define COPYSIGN_bf16 COPYSIGN_f16
#define COPYSIGN_f32 from_bits_f32((bits_f32(a) & 0x7fffffff) | (bits_f32(b) & 0x80000000u))
#define COPYSIGN_f64 from_bits_f64((bits_f64(a) & INT64_MAX) | (bits_f64(b) & UINT64_C(0x8000000000000000)))
#define VALUE_dot4_ss(t) c + DOT4(signed_byte, signed_byte)
#define VALUE_dot4_uu(t) c + DOT4(unsigned_byte, unsigned_byte)
#define VALUE_dot4_us(t) c + DOT4(unsigned_byte, signed_byte)
#define DOT4(of_a, of_b) \
  (uint32_t)(of_a(a, 0) * of_b(b, 0) + of_a(a, 1) * of_b(b, 1) + of_a(a, 2) * of_b(b, 2) + of_a(a, 3) * of_b(b, 3))

#define VALUE_and(t) a & b
#define VALUE_or(t) a | b
#define VALUE_xor(t) a ^ b
#define VALUE_not(t) (T_##t)~a
#define VALUE_shl(t) (T_##t)(WIDE(t, a) << (b & (8 * sizeof(T_##t) - 1)))
#define VALUE_shr(t) (T_##t)(a >> (b & (8 * sizeof(T_##t) - 1)))
#define VALUE_popc(t) popc_##t(a)
#define VALUE_clz(t) clz_##t(a)
#define VALUE_ctz(t) ctz_##t(a)
#define VALUE_brev(t) brev_##t(a)
#define VALUE_pand(t) a & b
#define VALUE_por(t) a | b
#define VALUE_pxor(t) a ^ b
#define VALUE_pnot(t) a ^ 1
#define VALUE_VECTOR_AND(t) a & b
#define VALUE_VECTOR_ANDNOT(t) a & (b ^ 1)
#define VALUE_VECTOR_OR(t) a | b
#define VALUE_set_eq(t) a == b
#define VALUE_set_lt(t) a < b
#define VALUE_set_le(t) a <= b
#define VALUE_set_num(t) a == a && b == b
#define VALUE_sel(t) a ? b : c
#define VALUE_mov(t) a

#define VALUE_sqrt(t) SQRT_##t
#define SQRT_f32 sqrtf(a)
#define SQRT_f64 sqrt(a)
#define VALUE_floor(t) floor_##t(a)
#define VALUE_ceil(t) ceil_##t(a)
#define VALUE_trunc(t) trunc_##t(a)
#define VALUE_round(t) round_##t(a)
#define VALUE_VECTOR_CANON(t) CANON_##t
#define VALUE_VECTOR_LESSER(t) a < b ? a : b
#define VALUE_VECTOR_GREATER(t) a > b ? a : b
#define CANON_f16 (a & 0x7fff) > 0x7c00 ? 0x7e00 : a
#define CANON_bf16 (a & 0x7fff) > 0x7f80 ? 0x7fc0 : a
#define CANON_f32 a != a ? from_bits_f32(0x7fc00000u) : a
#define CANON_f64 a != a ? from_bits_f64(UINT64_C(0x7ff8000000000000)) : a

/* ---- rows -------------------------------------------------------------------------------------------------------- */

#define STEP(k) ((steps >> (k) & 1) * KERNEL_CHUNK)
#define SIGNATURE void *d_row, const void *a_row, const void *b_row, const void *c_row, unsigned steps, size_t chunks

#define LOOP_1(name, D, A, expression)                             \
  static void name(SIGNATURE) {                                    \
    D *d = d_row;                                                  \
    const A *a_at = a_row;                                         \
    (void)b_row, (void)c_row;                                      \
    for (; chunks > 0; chunks--, d += KERNEL_CHUNK, a_at += STEP(0)) \
      EACH_LANE {                                                  \
        A a = a_at[i];                                             \
        d[i] = expression;                                         \
      }                                                            \
  }
#define LOOP_2(name, D, A, B, expression)                          \
  static void name(SIGNATURE) {                                    \
    D *d = d_row;                                                  \
    const A *a_at = a_row;                                         \
    const B *b_at = b_row;                                         \
    (void)c_row;                                                   \
    for (; chunks > 0; chunks--, d += KERNEL_CHUNK, a_at += STEP(0), b_at += STEP(1)) \
      EACH_LANE {                                                  \
        A a = a_at[i];                                             \
        B b = b_at[i];                                             \
        d[i] = expression;                                         \
      }                                                            \
  }
#define LOOP_3(name, D, A, B, C, expression)                       \
  static void name(SIGNATURE) {                                    \
    D *d = d_row;                                                  \
    const A *a_at = a_row;                                         \
    const B *b_at = b_row;                                         \
    const C *c_at = c_row;                                         \
    for (; chunks > 0; chunks--, d += KERNEL_CHUNK, a_at += STEP(0), b_at += STEP(1), c_at += STEP(2)) \
      EACH_LANE {                                                  \
        A a = a_at[i];                                             \
        B b = b_at[i];                                             \
        C c = c_at[i];                                             \
        d[i] = expression;                                         \
      }                                                            \
  }

#define UNARY(name, op, t) LOOP_1(name, T_##t, T_##t, VALUE_##op(t))
#define BINARY(name, op, t) LOOP_2(name, T_##t, T_##t, T_##t, VALUE_##op(t))
#define TERNARY(name, op, t) LOOP_3(name, T_##t, T_##t, T_##t, T_##t, VALUE_##op(t))
#define SHIFT(name, op, t) LOOP_2(name, T_##t, T_##t, uint32_t, VALUE_##op(t))
#define COMPARE(name, op, t) LOOP_2(name, uint8_t, T_##t, T_##t, VALUE_##op(t))
#define SELECT(name, op, t) LOOP_3(name, T_##t, uint8_t, T_##t, T_##t, VALUE_##op(t))

#define KERNEL(shape, op, t) shape(row_##op##_##t, op, t)
#define KERNEL_W(shape, op, bits) shape(row_##op##_u##bits, op, u##bits)
#define KERNEL_B(shape, op, bits) shape(row_##op##_##bits, op, u##bits)
#define KERNEL_P(shape, op) shape(row_##op, op, u8)
#define CONVERT(to, from) LOOP_1(row_cvt_##to##_##from, T_##to, T_##from, cvt_##to##_##from(a))
#define CONVERT_W(bits, from) \
  LOOP_1(row_cvt_w##bits##_##from, T_u##bits, T_##from, (T_u##bits)plain_##from(a))
#include "backend/cpu/engine/kernels.def"
#undef KERNEL
#undef KERNEL_W
#undef KERNEL_B
#undef KERNEL_P
#undef CONVERT
#undef CONVERT_W

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* index + displacement, exactly, or UINT64_MAX if the sum would wrap into range. */
static inline uint64_t position_i64(int64_t index, int64_t displacement) {
  uint64_t sum = (uint64_t)index + (uint64_t)displacement;
  return displacement < 0 && index < 0 ? UINT64_MAX : sum;
}
static inline uint64_t position_u64(uint64_t index, int64_t displacement) {
  uint64_t sum = index + (uint64_t)displacement;
  return (displacement < 0 ? sum > index : sum < index) ? UINT64_MAX : sum;
}

static uint32_t first_lane(const uint8_t *mask) {
  for (uint32_t i = 0; i < KERNEL_CHUNK; i++)
    if (mask[i]) return i;
  return KERNEL_CHUNK;
}

/* Lanes outside the mask get the position of a lane inside it, so that only memory that some lane accesses is
 * touched. */
static int spread_first(uint64_t *at, const uint8_t *mask) {
  uint32_t first = first_lane(mask);
  uint64_t position = first < KERNEL_CHUNK ? at[first] : 0;
  EACH_LANE at[i] = mask[i] ? at[i] : position;
  return 1;
}

#define POSITIONS(t, wide)                                                                            \
  static int positions_##t(uint64_t *at, const void *index_row, int64_t displacement, uint64_t extent, \
                           const uint8_t *mask) {                                                     \
    const T_##t *index = index_row;                                                                   \
    uint64_t outside = 0;                                                                             \
    if (mask == NULL) EACH_LANE {                                                                     \
      at[i] = position_##wide(index[i], displacement);                                                \
      outside |= (uint64_t)(at[i] >= extent);                                                         \
    }                                                                                                 \
    else EACH_LANE {                                                                                  \
      at[i] = position_##wide(index[i], displacement);                                                \
      outside |= (uint64_t)((at[i] >= extent) & mask[i]);                                             \
    }                                                                                                 \
    return outside == 0 && (mask == NULL || spread_first(at, mask));                                  \
  }
POSITIONS(i8, i64)
POSITIONS(i16, i64)
POSITIONS(i32, i64)
POSITIONS(i64, i64)
POSITIONS(u8, i64)
POSITIONS(u16, i64)
POSITIONS(u32, i64)
POSITIONS(u64, u64)

#define TRANSFER(t)                                                                                                 \
  static void gather_##t(void *d_row, const void *base_row, const uint64_t *at) {                                   \
    T_##t *d = d_row;                                                                                               \
    const T_##t *base = base_row;                                                                                   \
    EACH_LANE d[i] = base[at[i]];                                                                                   \
  }                                                                                                                 \
  static void scatter_##t(void *base_row, const uint64_t *at, const void *s_row, const uint8_t *mask, size_t count) { \
    T_##t *base = base_row;                                                                                         \
    const T_##t *s = s_row;                                                                                         \
    for (size_t i = 0; i < count; i++)                                                                              \
      if (mask == NULL || mask[i]) base[at[i]] = s[i];                                                              \
  }                                                                                                                 \
  static void store_##t(void *base_row, const void *s_row, const uint8_t *mask, size_t count) {                     \
    T_##t *base = base_row;                                                                                         \
    const T_##t *s = s_row;                                                                                         \
    LANES_ARE_INDEPENDENT for (size_t i = 0; i < count; i++) if (mask[i]) base[i] = s[i];                           \
  }
TRANSFER(u8)
TRANSFER(u16)
TRANSFER(u32)
TRANSFER(u64)

/* ---- whole blocks ------------------------------------------------------------------------------------------------ */

#define CANONICAL_INTEGER(x) x
#define CANONICAL_f32(x) (x) != (x) ? from_bits_f32(0x7fc00000u) : (x)
#define CANONICAL_f64(x) (x) != (x) ? from_bits_f64(UINT64_C(0x7ff8000000000000)) : (x)

/* Folds by halves from the power of two at or above the count. A lane without a partner keeps its value, so only
 * combined values are made canonical. */
#define FOLD(op, t, CANONICAL) FOLD_BY(VALUE_##op(t), op, t, CANONICAL)
#define FOLD_BY(value, op, t, CANONICAL)                        \
  static void fold_##op##_##t(void *row, size_t count) {        \
    T_##t *l = row;                                             \
    size_t half = 1;                                            \
    if (count < 2) return;                                      \
    while (half * 2 < count) half *= 2;                         \
    for (; half > 0; count = half, half /= 2)                   \
      for (size_t i = 0; i < count - half; i++) {               \
        T_##t a = l[i], b = l[i + half];                        \
        l[i] = value;                                           \
      }                                                         \
    l[0] = CANONICAL(l[0]);                                     \
  }
#define SCAN(t, CANONICAL) SCAN_BY(VALUE_add(t), t, CANONICAL)
#define SCAN_BY(value, t, CANONICAL)                                         \
  static void *scan_##t(void *row, void *other, size_t count) {              \
    T_##t *from = row, *to = other;                                          \
    for (size_t stride = 1; stride < count; stride *= 2) {                   \
      memcpy(to, from, stride * sizeof *to);                                 \
      LANES_ARE_INDEPENDENT for (size_t i = stride; i < count; i++) {        \
        T_##t a = from[i - stride], b = from[i];                             \
        to[i] = value;                                                       \
      }                                                                      \
      T_##t *swap = from;                                                    \
      from = to;                                                             \
      to = swap;                                                             \
    }                                                                        \
    for (size_t i = 1; i < count; i++) from[i] = CANONICAL(from[i]);         \
    return from;                                                             \
  }
#define FOLD_WIDTH(t) FOLD(add, t, CANONICAL_INTEGER) FOLD(mul, t, CANONICAL_INTEGER) SCAN(t, CANONICAL_INTEGER)
#define FOLD_ORDER(t) FOLD(min, t, CANONICAL_INTEGER) FOLD(max, t, CANONICAL_INTEGER)
#define FOLD_FLOAT(t) \
  FOLD(add, t, CANONICAL_##t) FOLD(mul, t, CANONICAL_##t) SCAN(t, CANONICAL_##t) \
  FOLD(min, t, CANONICAL_##t) FOLD(max, t, CANONICAL_##t)
FOLD_WIDTH(u8)
FOLD_WIDTH(u16)
FOLD_WIDTH(u32)
FOLD_WIDTH(u64)
FOLD_ORDER(i8)
FOLD_ORDER(i16)
FOLD_ORDER(i32)
FOLD_ORDER(i64)
FOLD_ORDER(u8)
FOLD_ORDER(u16)
FOLD_ORDER(u32)
FOLD_ORDER(u64)
FOLD_FLOAT(f32)
FOLD_FLOAT(f64)
/* In f32, each step rounded to the type, which makes every NaN canonical. */
#define IN_F32(t, value) cvt_##t##_f32(value(cvt_f32_##t(a), cvt_f32_##t(b)))
#define FOLD_HALF(t)                                                                                            \
  FOLD_BY(IN_F32(t, sum_f32), add, t, CANONICAL_INTEGER) FOLD_BY(IN_F32(t, product_f32), mul, t, CANONICAL_INTEGER) \
  FOLD_BY(IN_F32(t, minimum_f32), min, t, CANONICAL_INTEGER)                                                    \
  FOLD_BY(IN_F32(t, maximum_f32), max, t, CANONICAL_INTEGER)
static inline float sum_f32(float a, float b) { return a + b; }
static inline float product_f32(float a, float b) { return a * b; }
FOLD_HALF(f16)
FOLD_HALF(bf16)
SCAN_BY(IN_F32(bf16, sum_f32), bf16, CANONICAL_INTEGER)

/* The f32 sum of two f16 numbers, rounded to f16: adds a number whose last place is that of the result; zeros keep
 * their sign. */
static inline float rounded_sum_f16(float a, float b) {
  float sum = a + b, power = from_bits_f32(bits_f32(sum) & 0x7f800000u);
  power = power < 0x1p-14f ? 0x1p-14f : power;
  power = power > 0x1p20f ? 0x1p20f : power;
  float aligner = power * 0x1.8p13f;
  uint32_t magnitude = bits_f32(sum + aligner - aligner) & 0x7fffffffu;
  magnitude = magnitude >= 0x47800000u && magnitude < 0x7f800000u ? 0x7f800000u : magnitude; /* from 2^16 on */
  return from_bits_f32(magnitude | (bits_f32(sum) & 0x80000000u));
}

/* Numbers stay f32 between the steps. The first lane combines nothing, so its bits stay. */
static void *scan_f16(void *row, void *other, size_t count) {
  uint16_t *halves = row, first = halves[0];
  float *from = other, *to = row;
  LANES_ARE_INDEPENDENT for (size_t i = 0; i < count; i++) from[i] = cvt_f32_f16(halves[i]);
  for (size_t stride = 1; stride < count; stride *= 2) {
    memcpy(to, from, stride * sizeof *to);
    LANES_ARE_INDEPENDENT for (size_t i = stride; i < count; i++) to[i] = rounded_sum_f16(from[i - stride], from[i]);
    float *swap = from;
    from = to;
    to = swap;
  }
  halves = (uint16_t *)(void *)to;
  LANES_ARE_INDEPENDENT for (size_t i = 0; i < count; i++) halves[i] = cvt_f16_f32(from[i]);
  halves[0] = first;
  return halves;
}

/* ---- masks, counters --------------------------------------------------------------------------------------------- */

#define IOTA(t, bits)                                                          \
  static void iota##bits(T_##t *d, T_##t first, size_t chunks) {               \
    for (; chunks > 0; chunks--, d += KERNEL_CHUNK, first += KERNEL_CHUNK)     \
      EACH_LANE d[i] = first + (T_##t)i;                                       \
  }
IOTA(u32, 32)
IOTA(u64, 64)

static int any(const uint8_t *a, const uint8_t *b, size_t count) {
  for (; count >= KERNEL_CHUNK; count -= KERNEL_CHUNK, a += KERNEL_CHUNK) {
    uint8_t found = 0;
    if (b == NULL) EACH_LANE found |= a[i];
    else EACH_LANE found |= a[i] & b[i];
    if (found) return 1;
    if (b != NULL) b += KERNEL_CHUNK;
  }
  for (size_t i = 0; i < count; i++)
    if (a[i] & (b == NULL ? 1 : b[i])) return 1;
  return 0;
}

static int step(uint8_t *d, const uint8_t *mask, uint64_t *steps, size_t chunks) {
  uint8_t out = 0;
  for (; chunks > 0; chunks--, d += KERNEL_CHUNK, mask += KERNEL_CHUNK, steps += KERNEL_CHUNK)
    EACH_LANE {
      uint8_t goes_on = mask[i] & (steps[i] != 0);
      out |= mask[i] ^ goes_on;
      steps[i] -= goes_on;
      d[i] = goes_on;
    }
  return out;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define NAME_OF(variant) #variant
#define TABLE_OF(variant) hg_kernels_##variant
#define NAME(variant) NAME_OF(variant)
#define TABLE(variant) TABLE_OF(variant)

#define KERNEL(shape, op, t) [KERNEL_##op##_##t] = row_##op##_##t,
#define KERNEL_W(shape, op, bits) [KERNEL_##op##_u##bits] = row_##op##_u##bits,
#define KERNEL_B(shape, op, bits) [KERNEL_##op##_##bits] = row_##op##_##bits,
#define KERNEL_P(shape, op) [KERNEL_##op] = row_##op,
#define CONVERT(to, from) [KERNEL_cvt_##to##_##from] = row_cvt_##to##_##from,
#define CONVERT_W(bits, from) [KERNEL_cvt_w##bits##_##from] = row_cvt_w##bits##_##from,
#define BOTH_SIGNS(prefix, bits) [ATLAS_i##bits] = prefix##_u##bits, [ATLAS_u##bits] = prefix##_u##bits
#define ALL_SIGNS(prefix) BOTH_SIGNS(prefix, 8), BOTH_SIGNS(prefix, 16), BOTH_SIGNS(prefix, 32), BOTH_SIGNS(prefix, 64)
#define EACH_SIGN(prefix)                                                                                         \
  [ATLAS_i8] = prefix##_i8, [ATLAS_i16] = prefix##_i16, [ATLAS_i32] = prefix##_i32, [ATLAS_i64] = prefix##_i64,   \
  [ATLAS_u8] = prefix##_u8, [ATLAS_u16] = prefix##_u16, [ATLAS_u32] = prefix##_u32, [ATLAS_u64] = prefix##_u64
#define FLOATS(prefix) \
  [ATLAS_f16] = prefix##_f16, [ATLAS_bf16] = prefix##_bf16, [ATLAS_f32] = prefix##_f32, [ATLAS_f64] = prefix##_f64

const cpu_kernels TABLE(KERNELS) = {
  .name = NAME(KERNELS),
  .row = {
#include "backend/cpu/engine/kernels.def"
  },
  .positions = {EACH_SIGN(positions)},
  .gather = {gather_u8, gather_u16, gather_u32, gather_u64},
  .scatter = {scatter_u8, scatter_u16, scatter_u32, scatter_u64},
  .store = {store_u8, store_u16, store_u32, store_u64},
  .fold = {{ALL_SIGNS(fold_add), FLOATS(fold_add)}, {ALL_SIGNS(fold_mul), FLOATS(fold_mul)},
           {EACH_SIGN(fold_min), FLOATS(fold_min)}, {EACH_SIGN(fold_max), FLOATS(fold_max)}},
  .scan = {ALL_SIGNS(scan), FLOATS(scan)},
  .iota32 = iota32,
  .iota64 = iota64,
  .any = any,
  .step = step,
};
