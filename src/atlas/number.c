/* number.c - exact conversion of constants. Decimal and hexadecimal floats become a 64-bit significand, an exponent and
 * a sticky bit, and are then rounded once to the type; nothing here uses floating-point arithmetic. */
#include "atlas/number.h"

#include "atlas/tables.h"

#include <string.h>

/* ---- unsigned integers of any size -------------------------------------------------------------------------- */

/* Numerator and denominator of a literal: at most 1100 digits, and a power of ten up to 10^1430 (see decimal_value). */
enum { BIG_WORDS = 160 };

typedef struct big {
  uint32_t word[BIG_WORDS]; /* least significant first; words at and above count are zero */
  int count;
} big;

static void big_set(big *a, uint32_t value) {
  memset(a, 0, sizeof *a);
  a->word[0] = value;
  a->count = value != 0;
}

static void big_multiply_add(big *a, uint32_t factor, uint32_t addend) {
  uint64_t carry = addend;
  for (int i = 0; i < a->count; i++) {
    carry += (uint64_t)a->word[i] * factor;
    a->word[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (carry != 0 && a->count < BIG_WORDS) a->word[a->count++] = (uint32_t)carry;
}

static int big_bit_length(const big *a) {
  if (a->count == 0) return 0;
  int bits = 32 * (a->count - 1);
  for (uint32_t top = a->word[a->count - 1]; top != 0; top >>= 1) bits++;
  return bits;
}

static void big_shift_left(big *a, int shift) {
  int words = shift / 32, bits = shift % 32;
  int count = a->count + words + 1 < BIG_WORDS ? a->count + words + 1 : BIG_WORDS;
  for (int i = count - 1; i >= 0; i--) {
    uint64_t high = i >= words ? a->word[i - words] : 0, low = i > words ? a->word[i - words - 1] : 0;
    a->word[i] = (uint32_t)((high << 32 | low) << bits >> 32);
  }
  while (count > 0 && a->word[count - 1] == 0) count--;
  a->count = count;
}

static int big_compare(const big *a, const big *b) {
  if (a->count != b->count) return a->count < b->count ? -1 : 1;
  for (int i = a->count - 1; i >= 0; i--)
    if (a->word[i] != b->word[i]) return a->word[i] < b->word[i] ? -1 : 1;
  return 0;
}

static void big_subtract(big *a, const big *b) { /* a >= b */
  uint64_t borrow = 0;
  for (int i = 0; i < a->count; i++) {
    uint64_t difference = (uint64_t)a->word[i] - b->word[i] - borrow;
    a->word[i] = (uint32_t)difference;
    borrow = difference >> 63;
  }
  while (a->count > 0 && a->word[a->count - 1] == 0) a->count--;
}

/* ---- rounding ----------------------------------------------------------------------------------------------- */

/* A positive value: significand * 2^(exponent - 63), a little more where `below` is set. The significand's top bit
 * is 1. */
typedef struct binary {
  uint64_t significand;
  int exponent;
  int below;
} binary;

typedef struct format {
  int precision; /* significant bits, the hidden one included */
  int min_exponent;
  int max_exponent;
} format;

static const format *format_of(atlas_type type) {
  static const format f16 = {11, -14, 15}, bf16 = {8, -126, 127}, f32 = {24, -126, 127}, f64 = {53, -1022, 1023};
  switch (type) {
  case ATLAS_f16: return &f16;
  case ATLAS_bf16: return &bf16;
  case ATLAS_f32: return &f32;
  default: return &f64;
  }
}

static uint64_t sign_bit(atlas_type type) { return UINT64_C(1) << (atlas_type_bits(type) - 1); }

static uint64_t infinity_bits(const format *f) {
  return (uint64_t)(f->max_exponent - f->min_exponent + 2) << (f->precision - 1);
}

static uint64_t quiet_nan_bits(const format *f) { return infinity_bits(f) | UINT64_C(1) << (f->precision - 2); }

/* Bits of the nearest value of the format, ties to even; the bits of infinity when it overflows. */
static uint64_t round_binary(const format *f, const binary *value) {
  int exponent = value->exponent > f->min_exponent ? value->exponent : f->min_exponent;
  if (exponent > f->max_exponent) return infinity_bits(f);
  int dropped =
      exponent - (f->precision - 1) - (value->exponent - 63); /* low bits of the significand that do not fit */
  if (dropped > 64) return 0;                                 /* below half of the smallest subnormal */
  uint64_t kept = dropped == 64 ? 0 : value->significand >> dropped;
  uint64_t half = UINT64_C(1) << (dropped - 1);
  uint64_t rest = dropped == 64 ? value->significand : value->significand & (2 * half - 1);
  if (rest > half || (rest == half && (value->below || (kept & 1) != 0))) kept++;
  /* The hidden bit adds one to the exponent field; so does a carry out of the significand. */
  return ((uint64_t)(exponent - f->min_exponent) << (f->precision - 1)) + kept;
}

/* numerator / denominator, neither zero; destroys both. */
static binary divide(big *numerator, big *denominator) {
  int shift = big_bit_length(numerator) - big_bit_length(denominator);
  big_shift_left(shift > 0 ? denominator : numerator, shift > 0 ? shift : -shift);
  if (big_compare(numerator, denominator) < 0) {
    big_shift_left(numerator, 1);
    shift--;
  }
  binary value = {0, shift, 0};
  for (int i = 0; i < 64; i++) { /* schoolbook, a bit at a time: denominator <= numerator < 2 * denominator at first */
    value.significand <<= 1;
    if (big_compare(numerator, denominator) >= 0) {
      big_subtract(numerator, denominator);
      value.significand |= 1;
    }
    big_shift_left(numerator, 1);
  }
  value.below = numerator->count != 0;
  return value;
}

/* ---- scanning ----------------------------------------------------------------------------------------------- */

typedef struct span {
  const char *next, *end;
} span;

static int accept(span *s, char c) {
  if (s->next == s->end || *s->next != c) return 0;
  s->next++;
  return 1;
}

static int span_is(span s, const char *word) {
  size_t length = strlen(word);
  return (size_t)(s.end - s.next) == length && memcmp(s.next, word, length) == 0;
}

static int digit_value(char c) { /* 16 for anything that is no hexadecimal digit */
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

/* All of the span, in base 10 or 16. */
static atlas_number_result parse_magnitude(span s, unsigned base, uint64_t *value) {
  if (s.next == s.end) return ATLAS_NUMBER_SYNTAX;
  int overflow = 0;
  *value = 0;
  for (; s.next < s.end; s.next++) {
    unsigned digit = (unsigned)digit_value(*s.next);
    if (digit >= base) return ATLAS_NUMBER_SYNTAX;
    if (*value > (UINT64_MAX - digit) / base) overflow = 1;
    else *value = *value * base + digit;
  }
  return overflow ? ATLAS_NUMBER_RANGE : ATLAS_NUMBER_OK;
}

/* Sign and digits of an exponent, to the end of the span. Huge ones stay huge, without overflow. */
static int parse_exponent(span *s, int *exponent) {
  int negative = accept(s, '-');
  if (!negative) accept(s, '+');
  if (s->next == s->end) return 0;
  int value = 0;
  for (; s->next < s->end; s->next++) {
    int digit = digit_value(*s->next);
    if (digit > 9) return 0;
    if (value < 100000) value = value * 10 + digit;
  }
  *exponent = negative ? -value : value;
  return 1;
}

/* ---- floats ------------------------------------------------------------------------------------------------- */

/* After `0x`: hexadecimal digits with an optional point, `p`, exponent. */
static atlas_number_result parse_hex_float(span s, const format *f, uint64_t *bits) {
  binary value = {0, 63, 0};
  int digits = 0, point = 0, exponent = 0, shift = 0;
  for (; s.next < s.end && *s.next != 'p' && *s.next != 'P'; s.next++) {
    if (*s.next == '.' && !point) {
      point = 1;
      continue;
    }
    int digit = digit_value(*s.next);
    if (digit > 15) return ATLAS_NUMBER_SYNTAX;
    digits = 1;
    int full = value.significand >> 60 != 0;
    if (full) value.below |= digit != 0;
    else value.significand = value.significand << 4 | (uint64_t)digit;
    if (point) shift -= 4;
    if (full) shift += 4;
  }
  if (!digits || s.next == s.end) return ATLAS_NUMBER_SYNTAX;
  s.next++;
  if (!parse_exponent(&s, &exponent)) return ATLAS_NUMBER_SYNTAX;
  if (value.significand == 0) {
    *bits = 0;
    return ATLAS_NUMBER_OK;
  }
  value.exponent += exponent + shift;
  for (; value.significand >> 63 == 0; value.significand <<= 1) value.exponent--;
  *bits = round_binary(f, &value);
  return *bits == infinity_bits(f) ? ATLAS_NUMBER_RANGE : ATLAS_NUMBER_OK;
}

/* digits * 10^power, given as text with `digit_count` digits (points are skipped), none of them a leading zero. */
static uint64_t decimal_value(span digits, int digit_count, int power, const format *f) {
  /* 10^(magnitude - 1) <= value < 10^magnitude. This keeps -power below 1100 + 330. */
  int magnitude = digit_count + power;
  if (magnitude > 310) return infinity_bits(f);
  if (magnitude < -330) return 0;
  big numerator, denominator;
  big_set(&numerator, 0);
  big_set(&denominator, 1);
  for (; digits.next < digits.end; digits.next++)
    if (*digits.next != '.') big_multiply_add(&numerator, 10, (uint32_t)(*digits.next - '0'));
  big *scaled = power < 0 ? &denominator : &numerator;
  for (int i = power < 0 ? -power : power; i > 0; i--) big_multiply_add(scaled, 10, 0);
  binary value = divide(&numerator, &denominator);
  return round_binary(f, &value);
}

static atlas_number_result parse_decimal_float(span s, const format *f, uint64_t *bits) {
  int any = 0, point = 0, digit_count = 0, power = 0, exponent = 0;
  span digits = {NULL, NULL};
  for (; s.next < s.end && *s.next != 'e' && *s.next != 'E'; s.next++) {
    if (*s.next == '.' && !point) {
      point = 1;
      continue;
    }
    if (digit_value(*s.next) > 9) return ATLAS_NUMBER_SYNTAX;
    any = 1;
    if (point) power--;
    if (digit_count == 0 && *s.next == '0') continue;
    if (digit_count == 0) digits.next = s.next;
    digits.end = s.next + 1;
    digit_count++;
  }
  if (!any) return ATLAS_NUMBER_SYNTAX;
  if (s.next < s.end) {
    s.next++;
    if (!parse_exponent(&s, &exponent)) return ATLAS_NUMBER_SYNTAX;
  }
  *bits = digit_count == 0 ? 0 : decimal_value(digits, digit_count, power + exponent, f);
  return *bits == infinity_bits(f) ? ATLAS_NUMBER_RANGE : ATLAS_NUMBER_OK;
}

static atlas_number_result parse_float(atlas_type type, span s, uint64_t *bits) {
  const format *f = format_of(type);
  if (span_is(s, "nan")) {
    *bits = quiet_nan_bits(f);
    return ATLAS_NUMBER_OK;
  }
  int negative = accept(&s, '-');
  atlas_number_result result = ATLAS_NUMBER_OK;
  if (span_is(s, "inf")) {
    *bits = infinity_bits(f);
  } else if (s.end - s.next > 2 && s.next[0] == '0' && s.next[1] == 'x') {
    s.next += 2;
    size_t length = (size_t)(s.end - s.next);
    if (memchr(s.next, 'p', length) != NULL || memchr(s.next, 'P', length) != NULL) {
      result = parse_hex_float(s, f, bits);
    } else {
      if (negative) return ATLAS_NUMBER_SYNTAX; /* a bit pattern has its own sign bit */
      result = parse_magnitude(s, 16, bits);
      if (result == ATLAS_NUMBER_OK && *bits > atlas_mask(type)) result = ATLAS_NUMBER_RANGE;
    }
  } else {
    result = parse_decimal_float(s, f, bits);
  }
  if (negative) *bits |= sign_bit(type);
  return result;
}

/* ---- integers ----------------------------------------------------------------------------------------------- */

uint64_t atlas_integer_min(atlas_type type) { return atlas_kind(type) == ATLAS_KIND_SINT ? sign_bit(type) : 0; }

uint64_t atlas_integer_max(atlas_type type) { return atlas_mask(type) & ~atlas_integer_min(type); }

static atlas_number_result parse_integer(atlas_type type, span s, uint64_t *bits) {
  uint64_t value = 0, limit = atlas_integer_max(type);
  int negative = accept(&s, '-'), hex = s.end - s.next > 2 && s.next[0] == '0' && s.next[1] == 'x';
  if (negative && hex) return ATLAS_NUMBER_SYNTAX;
  if (hex) {
    s.next += 2;
    limit = atlas_mask(type); /* any bit pattern of the width */
  }
  if (negative) limit = atlas_integer_min(type); /* its magnitude; 0 for unsigned types */
  atlas_number_result result = parse_magnitude(s, hex ? 16 : 10, &value);
  if (result != ATLAS_NUMBER_OK) return result;
  if (value > limit) return ATLAS_NUMBER_RANGE;
  *bits = (negative ? 0 - value : value) & atlas_mask(type);
  return ATLAS_NUMBER_OK;
}

atlas_number_result atlas_number_parse(atlas_type type, const char *text, size_t length, uint64_t *bits) {
  *bits = 0;
  if (length > ATLAS_NUMBER_MAX_LENGTH) return ATLAS_NUMBER_LENGTH;
  span s = {text, text + length};
  if (atlas_is_integer(type)) return parse_integer(type, s, bits);
  if (atlas_kind(type) == ATLAS_KIND_FLOAT) return parse_float(type, s, bits);
  return ATLAS_NUMBER_SYNTAX;
}

/* ---- printing ----------------------------------------------------------------------------------------------- */

typedef struct printer {
  char *text;
  size_t length;
} printer;

static void print_char(printer *p, char c) { p->text[p->length++] = c; }

static void print_decimal(printer *p, uint64_t value, int fraction_digits) {
  char digits[32];
  int count = 0;
  do {
    digits[count++] = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0 || count <= fraction_digits);
  while (count > 0) {
    if (count == fraction_digits) print_char(p, '.');
    print_char(p, digits[--count]);
  }
}

static void print_bits(printer *p, atlas_type type, uint64_t bits) {
  print_char(p, '0');
  print_char(p, 'x');
  for (int shift = (int)atlas_type_bits(type) - 4; shift >= 0; shift -= 4)
    print_char(p, "0123456789abcdef"[bits >> shift & 15]);
}

/* A magnitude that is digits / 10^fraction_digits exactly, short enough to be read at a glance. */
static int short_decimal(const format *f, uint64_t magnitude, uint64_t *digits, int *fraction_digits) {
  const uint64_t limit = UINT64_C(100000000000000000); /* 17 digits */
  uint64_t hidden = UINT64_C(1) << (f->precision - 1), field = magnitude >> (f->precision - 1);
  uint64_t significand = field == 0 ? magnitude : (magnitude & (hidden - 1)) | hidden;
  int exponent = (int)(field == 0 ? 1 : field) - 1 + f->min_exponent - (f->precision - 1);
  for (; significand != 0 && (significand & 1) == 0; significand >>= 1) exponent++;
  *digits = significand;
  *fraction_digits = 0;
  if (significand == 0) return 1;
  for (; exponent > 0; exponent--) {
    if (*digits >= limit / 2) return 0;
    *digits *= 2;
  }
  for (; exponent < 0; exponent++) {
    if (*digits >= limit / 5) return 0;
    *digits *= 5;
    ++*fraction_digits;
  }
  uint64_t scale = 1; /* at most four zeros after the point: from 0.00001 up */
  for (int i = 5; i < *fraction_digits && scale < limit; i++) scale *= 10;
  return *digits >= scale;
}

static void print_float(printer *p, atlas_type type, uint64_t bits) {
  const format *f = format_of(type);
  uint64_t magnitude = bits & ~sign_bit(type), digits = 0;
  int fraction_digits = 0, negative = (bits & sign_bit(type)) != 0;
  int infinite = magnitude == infinity_bits(f);
  if (magnitude > infinity_bits(f) || (!infinite && !short_decimal(f, magnitude, &digits, &fraction_digits))) {
    print_bits(p, type, bits);
    return;
  }
  if (negative) print_char(p, '-');
  if (infinite) {
    memcpy(p->text + p->length, "inf", 3);
    p->length += 3;
  } else {
    print_decimal(p, digits, fraction_digits);
  }
}

size_t atlas_number_print(atlas_type type, uint64_t bits, char text[ATLAS_NUMBER_CHARS]) {
  printer p = {text, 0};
  bits &= atlas_mask(type);
  if (atlas_kind(type) == ATLAS_KIND_FLOAT) {
    print_float(&p, type, bits);
  } else if (atlas_is_integer(type)) {
    int negative = (bits & atlas_integer_min(type)) != 0;
    if (negative) print_char(&p, '-');
    print_decimal(&p, negative ? (0 - bits) & atlas_mask(type) : bits, 0);
  } else {
    print_bits(&p, type, bits);
  }
  text[p.length] = '\0';
  return p.length;
}
