/* test_exact.c - fma, sqrt and rounding to integers against integers of 4352 bits, on random bits and on what is hard
 * to round: ties and what lies next to them, cancellation, subnormals, overflow. This is also what says that a C
 * library's sqrt, where one is called, is exact. */
#include "atlas/exact.h"

#include "atlas/arith.h"
#include "check.h"
#include "shard.h"

enum { CASES = 200000, WORDS = 68, POINT = 2200 }; /* bit POINT counts 1: products of subnormals have 2^-2148 */

typedef struct format {
  atlas_type type;
  int precision, smallest; /* significant bits; the exponent of the smallest number */
} format;

static const format formats[] = {{ATLAS_f32, 24, -149}, {ATLAS_f64, 53, -1074}};

/* ---- exact numbers ----------------------------------------------------------------------------------------------- */

typedef struct number {
  uint64_t significand;
  int exponent, negative;
} number;

typedef struct big {
  uint64_t word[WORDS];
  int negative;
} big;

static uint64_t sign_of(const format *f) { return UINT64_C(1) << (f->type == ATLAS_f32 ? 31 : 63); }
static uint64_t infinity_of(const format *f) { return sign_of(f) - (UINT64_C(1) << (f->precision - 1)); }
static int is_finite(const format *f, uint64_t bits) { return (bits & ~sign_of(f)) < infinity_of(f); }

static number decode(const format *f, uint64_t bits) {
  uint64_t hidden = UINT64_C(1) << (f->precision - 1), magnitude = bits & ~sign_of(f);
  int field = (int)(magnitude >> (f->precision - 1));
  uint64_t fraction = magnitude & (hidden - 1);
  return (number){field == 0 ? fraction : fraction | hidden, f->smallest + (field == 0 ? 0 : field - 1),
                  (bits & sign_of(f)) != 0};
}

static void add_shifted(big *a, uint64_t value, int position) {
  int word = position / 64, shift = position % 64;
  uint64_t parts[2] = {value << shift, shift == 0 ? 0 : value >> (64 - shift)}, carry = 0;
  for (int i = 0; i < 2 || carry != 0; i++) {
    uint64_t part = i < 2 ? parts[i] : 0, sum = a->word[word + i] + part, with_carry = sum + carry;
    carry = (sum < part) | (with_carry < sum);
    a->word[word + i] = with_carry;
  }
}

static big product_of(uint64_t a, uint64_t b, int exponent, int negative) {
  big product = {.negative = negative};
  for (int bit = 0; bit < 64; bit++)
    if (b >> bit & 1) add_shifted(&product, a, POINT + exponent + bit);
  return product;
}

static int compare(const big *a, const big *b) {
  for (int i = WORDS - 1; i >= 0; i--)
    if (a->word[i] != b->word[i]) return a->word[i] < b->word[i] ? -1 : 1;
  return 0;
}

static big difference(const big *a, const big *b) { /* of magnitudes, a not below b */
  big result = *a;
  uint64_t borrow = 0;
  for (int i = 0; i < WORDS; i++) {
    uint64_t rest = a->word[i] - b->word[i];
    result.word[i] = rest - borrow;
    borrow = (a->word[i] < b->word[i]) | (rest < borrow);
  }
  return result;
}

static big sum_of(const big *a, const big *b) {
  if (a->negative != b->negative) return compare(a, b) >= 0 ? difference(a, b) : difference(b, a);
  big result = *a;
  for (int i = 0; i < WORDS; i++)
    if (b->word[i] != 0) add_shifted(&result, b->word[i], 64 * i);
  return result;
}

static int bit_at(const big *a, int bit) { return (int)(a->word[bit / 64] >> bit % 64 & 1); }

static int any_below(const big *a, int bit) {
  for (int i = 0; i < bit / 64; i++)
    if (a->word[i] != 0) return 1;
  return (a->word[bit / 64] & ((UINT64_C(1) << bit % 64) - 1)) != 0;
}

/* To nearest, ties to even; 0 is +0. */
static uint64_t round_big(const format *f, const big *a) {
  int top = 64 * WORDS - 1, last = POINT + f->smallest;
  while (top >= 0 && !bit_at(a, top)) top--;
  if (top < 0) return 0;
  if (top - f->precision + 1 > last) last = top - f->precision + 1;
  uint64_t kept = 0;
  for (int bit = top; bit >= last; bit--) kept = 2 * kept + (uint64_t)bit_at(a, bit);
  if (bit_at(a, last - 1) && (any_below(a, last - 1) || kept & 1)) kept++;
  uint64_t bits =
      ((uint64_t)(last - POINT - f->smallest) << (f->precision - 1)) + kept; /* a leading bit counts 1 more */
  if (bits > infinity_of(f)) bits = infinity_of(f);
  return a->negative ? bits | sign_of(f) : bits;
}

/* ---- fma --------------------------------------------------------------------------------------------------------- */

static uint64_t special_fma(const format *f, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t infinity = infinity_of(f), sign = (a ^ b) & sign_of(f), nan = atlas_canonical_nan(f->type);
  uint64_t x = a & ~sign_of(f), y = b & ~sign_of(f), z = c & ~sign_of(f);
  if (x > infinity || y > infinity || z > infinity) return nan;
  if (x < infinity && y < infinity) return c; /* which is infinite */
  if (x == 0 || y == 0) return nan;
  return z == infinity && (c ^ sign) & sign_of(f) ? nan : sign | infinity;
}

static uint64_t exact_fma(const format *f, uint64_t a, uint64_t b, uint64_t c) {
  if (!is_finite(f, a) || !is_finite(f, b) || !is_finite(f, c)) return special_fma(f, a, b, c);
  number x = decode(f, a), y = decode(f, b), z = decode(f, c);
  int negative = x.negative ^ y.negative;
  if ((x.significand == 0 || y.significand == 0) && z.significand == 0) /* -0 + -0 alone is -0 */
    return negative && z.negative ? sign_of(f) : 0;
  big product = product_of(x.significand, y.significand, x.exponent + y.exponent, negative);
  big addend = product_of(z.significand, 1, z.exponent, z.negative);
  if (z.significand == 0) return round_big(f, &product); /* may underflow to a zero that has its sign */
  big sum = sum_of(&product, &addend);
  return round_big(f, &sum);
}

static uint64_t soft_fma(const format *f, uint64_t a, uint64_t b, uint64_t c) {
  if (f->type == ATLAS_f32)
    return atlas_bits_of_f32(atlas_soft_fma_f32(atlas_as_f32(a), atlas_as_f32(b), atlas_as_f32(c)));
  return atlas_bits_of_f64(atlas_soft_fma_f64(atlas_as_f64(a), atlas_as_f64(b), atlas_as_f64(c)));
}

static int check_fma(const format *f, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t expected = exact_fma(f, a, b, c), soft = soft_fma(f, a, b, c);
  uint64_t reference = atlas_arith(ATLAS_OP_fma, f->type, a, b, c);
  if (soft == expected && reference == expected) return 1;
  printf("fma.%s %llx, %llx, %llx: %llx without the instruction, %llx, expected %llx\n", atlas_type_name(f->type),
         (unsigned long long)a, (unsigned long long)b, (unsigned long long)c, (unsigned long long)soft,
         (unsigned long long)reference, (unsigned long long)expected);
  return 0;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint64_t random_state = 1;

static uint64_t random_bits(void) { /* splitmix64 */
  uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* A number between about 2^low and 2^high, of random length: short ones make ties. */
static uint64_t between(const format *f, int low, int high) {
  int lowest = f->smallest + f->precision - 1; /* the exponent of field 1 */
  uint64_t r = random_bits(), hidden = UINT64_C(1) << (f->precision - 1);
  int most = (int)(infinity_of(f) >> (f->precision - 1)) - 1;
  int exponent = low + (int)(r >> 8 & 0xffff) % (high - low + 1) - lowest + 1;
  exponent = exponent < 0 ? 0 : exponent > most ? most : exponent;
  uint64_t fraction = random_bits() & (hidden - 1), length = (r >> 40) % (uint64_t)f->precision;
  if (r & 1) fraction &= ~((UINT64_C(1) << length) - 1);
  return (r & 2 ? sign_of(f) : 0) | (uint64_t)exponent << (f->precision - 1) | fraction;
}

static uint64_t any_value(const format *f) {
  const uint64_t sign = sign_of(f), infinity = infinity_of(f), normal = UINT64_C(1) << (f->precision - 1);
  const uint64_t one = (infinity >> 1) & ~(normal - 1);
  const uint64_t special[] = {
      0, 1, 2, one - 1, one, one + 1, normal, normal - 1, infinity - 1, infinity, infinity + 1, sign - 1};
  uint64_t r = random_bits();
  if (r % 4 == 0) return special[(r >> 8) % (sizeof special / sizeof *special)] | (r >> 32 & 1 ? sign : 0);
  return random_bits() & (2 * sign - 1);
}

/* (2^m + 1) (2^2m - 2^m + 1) = 2^3m + 1 and (2^m - 1) (2^2m + 2^m + 1) = 2^3m - 1: far below their first bit, products
 * have one more. */
static void near_powers(const format *f, uint64_t *a, uint64_t *b) {
  uint64_t r = random_bits(), half = (uint64_t)(f->precision - 1) / 2, m = half - (r >> 8) % 4,
           power = UINT64_C(1) << m;
  int plus = r & 1;
  big first = product_of(plus ? power + 1 : power - 1, 1, 0, 0);
  big second = product_of(plus ? power * power - power + 1 : power * power + power + 1, 1, 0, (r & 2) != 0);
  *a = round_big(f, &first);
  *b = round_big(f, &second);
}

static void factors(const format *f, int i, uint64_t *a, uint64_t *b) {
  int largest = 2 - f->smallest - f->precision; /* about the exponent of the largest number */
  switch (i % 5) {
  case 0: *a = any_value(f), *b = any_value(f); break;
  case 1: *a = between(f, -20, 20), *b = between(f, -20, 20); break;
  case 2: *a = between(f, f->smallest, 0), *b = between(f, f->smallest / 4, f->smallest / 8); break; /* subnormals */
  case 3: *a = between(f, largest / 2 - 2, largest / 2 + 2), *b = between(f, largest / 2 - 2, largest / 2 + 2); break;
  default: near_powers(f, a, b); break;
  }
}

/* c for a and b: the nearest to -a*b and its neighbours, what is about as large, what is far below a*b or far above. */
static uint64_t third_of(const format *f, uint64_t a, uint64_t b) {
  uint64_t r = random_bits(), product = exact_fma(f, a, b, 0) ^ sign_of(f);
  int exponent = (int)((product & ~sign_of(f)) >> (f->precision - 1)) + f->smallest + f->precision - 2;
  switch (r % 6) {
  case 0: return (product + (r >> 8) % 5 - 2) & (2 * sign_of(f) - 1);
  case 1: return between(f, exponent - 3, exponent + 3);
  case 2: return between(f, exponent - f->precision - 3, exponent - f->precision + 3);
  case 3: return between(f, exponent + f->precision - 3, exponent + f->precision + 3);
  case 4: return between(f, exponent - 130, exponent - 124); /* next to where 128 bits end */
  default: return r >> 8 & 1 ? any_value(f) : 1 | (r >> 9 & 1 ? sign_of(f) : 0);
  }
}

static void test_fma(const format *f) {
  int ok = 1;
  for (int i = 0; i < CASES && ok; i++) {
    if (!in_shard()) continue;
    uint64_t a, b;
    factors(f, i, &a, &b);
    ok = check_fma(f, a, b, third_of(f, a, b));
  }
  CHECK(ok);
}

/* ---- sqrt -------------------------------------------------------------------------------------------------------- */

/* Between the middles to both neighbours; never on one, because their squares have too many bits. */
static int is_root(const format *f, uint64_t root, uint64_t of) {
  number x = decode(f, of), r = decode(f, root);
  if (!is_finite(f, root) || r.negative || r.significand >> (f->precision - 1) == 0) return 0;
  uint64_t below = r.significand == UINT64_C(1) << (f->precision - 1) ? 1 : 2; /* half as far away */
  uint64_t low = 4 * r.significand - below, high = 4 * r.significand + 2;
  big value = product_of(x.significand, 1, x.exponent, 0);
  big lower = product_of(low, low, 2 * r.exponent - 4, 0), upper = product_of(high, high, 2 * r.exponent - 4, 0);
  return compare(&lower, &value) < 0 && compare(&value, &upper) < 0;
}

static int check_sqrt(const format *f, uint64_t a) {
  uint64_t root = atlas_arith(ATLAS_OP_sqrt, f->type, a, 0, 0), magnitude = a & ~sign_of(f);
  int ok;
  if (magnitude == 0 || a == infinity_of(f)) ok = root == a;
  else if (magnitude > infinity_of(f) || a != magnitude) ok = root == atlas_canonical_nan(f->type);
  else ok = is_root(f, root, a);
  if (!ok) printf("sqrt.%s %llx: %llx\n", atlas_type_name(f->type), (unsigned long long)a, (unsigned long long)root);
  return ok;
}

static void test_sqrt(const format *f) {
  int ok = 1;
  for (int i = 0; i < CASES && ok; i++) {
    if (!in_shard()) continue;
    uint64_t a = any_value(f);
    if (i % 2 == 0) { /* next to squares of short numbers and of middles between two */
      uint64_t root = between(f, f->smallest / 2, -f->smallest / 2) & ~sign_of(f);
      a = exact_fma(f, root, root, 0) + random_bits() % 3 - 1;
    }
    ok = check_sqrt(f, a & (2 * sign_of(f) - 1));
  }
  CHECK(ok);
}

/* ---- to integers ------------------------------------------------------------------------------------------------- */

static uint64_t exact_integer(const format *f, uint32_t op, uint64_t a) {
  number x = decode(f, a);
  if ((a & ~sign_of(f)) > infinity_of(f)) return atlas_canonical_nan(f->type);
  if (!is_finite(f, a) || x.exponent >= 0) return a;
  int shift = x.exponent < -63 ? 63 : -x.exponent; /* a significand has at most 53 bits */
  uint64_t whole = x.significand >> shift, rest = x.significand - (whole << shift), half = UINT64_C(1) << (shift - 1);
  if (x.exponent < -63) rest = x.significand != 0;
  if (op == ATLAS_OP_floor) whole += x.negative && rest != 0;
  if (op == ATLAS_OP_ceil) whole += !x.negative && rest != 0;
  if (op == ATLAS_OP_round) whole += rest > half || (rest == half && whole & 1);
  big result = product_of(whole, 1, 0, 0);
  return round_big(f, &result) | (a & sign_of(f));
}

static void test_integers(const format *f) {
  static const uint32_t ops[] = {ATLAS_OP_floor, ATLAS_OP_ceil, ATLAS_OP_trunc, ATLAS_OP_round};
  int ok = 1;
  for (int i = 0; i < CASES && ok; i++) {
    if (!in_shard()) continue;
    uint64_t a = i % 4 == 0 ? any_value(f) : between(f, -3, f->precision + 1);
    uint32_t op = ops[i / 4 % 4];
    uint64_t actual = atlas_arith(op, f->type, a, 0, 0), expected = exact_integer(f, op, a);
    ok = actual == expected;
    if (!ok)
      printf("%s.%s %llx: %llx, expected %llx\n", atlas_op_name(op), atlas_type_name(f->type), (unsigned long long)a,
             (unsigned long long)actual, (unsigned long long)expected);
  }
  CHECK(ok);
}

int main(void) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    test_fma(&formats[i]);
    test_sqrt(&formats[i]);
    test_integers(&formats[i]);
  }
  return check_report();
}
