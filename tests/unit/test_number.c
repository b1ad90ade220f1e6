/* test_number.c - constants: known hard cases, random literals against strtof and strtod, and printing. */
#include "atlas/number.h"
#include "atlas/tables.h"
#include "programs.h"

#include <math.h>

static uint64_t bits_of(atlas_type type, const char *text, atlas_number_result expected) {
  uint64_t bits = 0;
  atlas_number_result result = atlas_number_parse(type, text, strlen(text), &bits);
  if (!check_note(result == expected))
    printf("%s as %s: result %d, expected %d\n", text, atlas_type_name(type), (int)result, (int)expected);
  return bits;
}

typedef struct vector {
  atlas_type type;
  const char *text;
  uint64_t bits;
} vector;

static void test_vectors(void) {
  static const vector vectors[] = {
      /* integers */
      {ATLAS_i8, "-128", 0x80},
      {ATLAS_i8, "127", 0x7f},
      {ATLAS_i8, "0xff", 0xff},
      {ATLAS_i8, "-1", 0xff},
      {ATLAS_u8, "255", 255},
      {ATLAS_i16, "-32768", 0x8000},
      {ATLAS_u32, "0xdeadBEEF", 0xdeadbeef},
      {ATLAS_u32, "4294967295", 0xffffffff},
      {ATLAS_i64, "-9223372036854775808", UINT64_C(1) << 63},
      {ATLAS_u64, "18446744073709551615", UINT64_MAX},
      {ATLAS_i64, "0xffffffffffffffff", UINT64_MAX},
      {ATLAS_u8, "-0", 0},
      {ATLAS_u8, "007", 7},
      /* floats by their bits */
      {ATLAS_f32, "0x3f800000", 0x3f800000},
      {ATLAS_f32, "0x1", 1},
      {ATLAS_bf16, "0x7fc1", 0x7fc1},
      {ATLAS_f64, "0x0", 0},
      /* plain values */
      {ATLAS_f32, "1.5", 0x3fc00000},
      {ATLAS_f32, "-2e-3", 0xbb03126f},
      {ATLAS_f32, "7", 0x40e00000},
      {ATLAS_f32, "-0", 0x80000000},
      {ATLAS_f32, ".5", 0x3f000000},
      {ATLAS_f32, "5.", 0x40a00000},
      {ATLAS_f32, "0.000e99999999999", 0},
      {ATLAS_f32, "1E+2", 0x42c80000},
      {ATLAS_f16, "1.5", 0x3e00},
      {ATLAS_bf16, "1.5", 0x3fc0},
      {ATLAS_f64, "0.1", UINT64_C(0x3fb999999999999a)},
      {ATLAS_f64, "-1e-5", UINT64_C(0xbee4f8b588e368f1)},
      {ATLAS_f32, "inf", 0x7f800000},
      {ATLAS_f16, "-inf", 0xfc00},
      {ATLAS_f64, "nan", UINT64_C(0x7ff8000000000000)},
      {ATLAS_bf16, "nan", 0x7fc0},
      {ATLAS_f16, "nan", 0x7e00},
      {ATLAS_f32, "0x1.8p3", 0x41400000},
      {ATLAS_f32, "-0x.8P+1", 0xbf800000},
      {ATLAS_f32, "0x0p99999", 0},
      {ATLAS_f32, "-0x0p0", 0x80000000},
      /* ties go to even, a whisker more goes up */
      {ATLAS_f32, "16777217", 0x4b800000},
      {ATLAS_f32, "16777219", 0x4b800002},
      {ATLAS_f32, "16777217.0000000000000000000000001", 0x4b800001},
      {ATLAS_f32, "0x1.000001p0", 0x3f800000},
      {ATLAS_f32, "0x1.000003p0", 0x3f800002},
      {ATLAS_f32, "0x1.00000100000000000000000001p0", 0x3f800001},
      {ATLAS_f64, "9007199254740993", UINT64_C(0x4340000000000000)},
      {ATLAS_f64, "9007199254740993.00000000000000000000001", UINT64_C(0x4340000000000001)},
      {ATLAS_f16, "2049", 0x6800},
      {ATLAS_f16, "2051", 0x6802},
      {ATLAS_bf16, "257", 0x4380},
      {ATLAS_bf16, "259", 0x4382},
      /* subnormals, and the halfway to zero: 2^-150 is a tie to even */
      {ATLAS_f32, "1e-45", 1},
      {ATLAS_f32, "0x1p-149", 1},
      {ATLAS_f32, "0x1p-150", 0},
      {ATLAS_f32, "0x1.8p-149", 2},
      {ATLAS_f32, "0x1.0000000000000000000001p-150", 1},
      {ATLAS_f32, "1.1754943508222875e-38", 0x00800000},
      {ATLAS_f32, "1.1754942e-38", 0x007fffff},
      {ATLAS_f32, "0x1.ffffffp-127", 0x00800000},
      {ATLAS_f32, "0x1p-151", 0},
      {ATLAS_f32, "1e-99999", 0},
      {ATLAS_f64, "4.9406564584124654e-324", 1},
      {ATLAS_f64, "2.4703282292062327e-324", 0},
      {ATLAS_f64, "2.4703282292062328e-324", 1},
      {ATLAS_f64, "2.2250738585072011e-308", UINT64_C(0x000fffffffffffff)},
      {ATLAS_f64, "2.2250738585072012e-308", UINT64_C(0x0010000000000000)},
      {ATLAS_f16, "0x1p-24", 1},
      {ATLAS_f16, "0x1p-25", 0},
      {ATLAS_f16, "6.104e-5", 0x0400},
      {ATLAS_bf16, "0x1p-133", 1},
      {ATLAS_bf16, "0x1p-134", 0},
      /* the largest, and what still rounds down to it */
      {ATLAS_f32, "3.4028235e38", 0x7f7fffff},
      {ATLAS_f32, "340282356779733661637539395458142568447", 0x7f7fffff},
      {ATLAS_f64, "1.7976931348623157e308", UINT64_C(0x7fefffffffffffff)},
      {ATLAS_f64, "1.7976931348623158e308", UINT64_C(0x7fefffffffffffff)},
      {ATLAS_f16, "65519.99", 0x7bff},
      {ATLAS_bf16, "3.3895313892515355e38", 0x7f7f},
  };
  for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
    uint64_t bits = bits_of(vectors[i].type, vectors[i].text, ATLAS_NUMBER_OK);
    if (!check_note(bits == vectors[i].bits))
      printf("%s as %s: 0x%llx, expected 0x%llx\n", vectors[i].text, atlas_type_name(vectors[i].type),
             (unsigned long long)bits, (unsigned long long)vectors[i].bits);
  }
}

static void test_refused(void) {
  static const struct {
    atlas_type type;
    const char *text;
    atlas_number_result result;
  } cases[] = {
      {ATLAS_i8, "128", ATLAS_NUMBER_RANGE},
      {ATLAS_i8, "-129", ATLAS_NUMBER_RANGE},
      {ATLAS_i8, "0x100", ATLAS_NUMBER_RANGE},
      {ATLAS_u8, "-1", ATLAS_NUMBER_RANGE},
      {ATLAS_u64, "18446744073709551616", ATLAS_NUMBER_RANGE},
      {ATLAS_u64, "0x10000000000000000", ATLAS_NUMBER_RANGE},
      {ATLAS_u32, "", ATLAS_NUMBER_SYNTAX},
      {ATLAS_u32, "-", ATLAS_NUMBER_SYNTAX},
      {ATLAS_u32, "0x", ATLAS_NUMBER_SYNTAX},
      {ATLAS_u32, "1.0", ATLAS_NUMBER_SYNTAX},
      {ATLAS_u32, "+1", ATLAS_NUMBER_SYNTAX},
      {ATLAS_u32, "12a", ATLAS_NUMBER_SYNTAX},
      {ATLAS_i32, "-0x1", ATLAS_NUMBER_SYNTAX},
      {ATLAS_u32, "0xg", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, ".", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "1e", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "1e+", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "1.2.3", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "e5", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "0x1.8", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "0xp1", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "0x1p", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "-0x1", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "-nan", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "infinity", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "1f", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "--1", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f32, "0x100000000", ATLAS_NUMBER_RANGE},
      {ATLAS_f16, "0x10000", ATLAS_NUMBER_RANGE},
      {ATLAS_f32, "3.4028236e38", ATLAS_NUMBER_RANGE},
      {ATLAS_f32, "340282356779733661637539395458142568448", ATLAS_NUMBER_RANGE},
      {ATLAS_f32, "0x1p128", ATLAS_NUMBER_RANGE},
      {ATLAS_f32, "0x1.ffffffp127", ATLAS_NUMBER_RANGE},
      {ATLAS_f32, "1e99999999999999", ATLAS_NUMBER_RANGE},
      {ATLAS_f64, "1.7976931348623159e308", ATLAS_NUMBER_RANGE},
      {ATLAS_f16, "65520", ATLAS_NUMBER_RANGE},
      {ATLAS_bf16, "3.4e38", ATLAS_NUMBER_RANGE},
      {ATLAS_f32, "-1e39", ATLAS_NUMBER_RANGE},
      {ATLAS_bool, "1", ATLAS_NUMBER_SYNTAX},
      {ATLAS_f8e4m3, "1", ATLAS_NUMBER_SYNTAX},
      {ATLAS_NONE, "1", ATLAS_NUMBER_SYNTAX},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) bits_of(cases[i].type, cases[i].text, cases[i].result);
  char text[ATLAS_NUMBER_MAX_LENGTH + 2];
  memset(text, '1', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  bits_of(ATLAS_f64, text, ATLAS_NUMBER_LENGTH);
}

static uint64_t host_bits(atlas_type type, const char *text) {
  uint64_t u64;
  uint32_t u32;
  float f = strtof(text, NULL);
  double d = strtod(text, NULL);
  memcpy(&u32, &f, sizeof u32);
  memcpy(&u64, &d, sizeof u64);
  return type == ATLAS_f32 ? u32 : u64;
}

static uint64_t infinity_of(atlas_type type) { return type == ATLAS_f32 ? 0x7f800000 : UINT64_C(0x7ff0000000000000); }

/* One literal in both types, against the C library (glibc and musl round correctly). */
static void compare_with_host(const char *text) {
  static const atlas_type types[] = {ATLAS_f32, ATLAS_f64};
  for (int i = 0; i < 2; i++) {
    uint64_t expected = host_bits(types[i], text), bits = 0;
    atlas_number_result result = atlas_number_parse(types[i], text, strlen(text), &bits);
    int overflow = (expected & ~(UINT64_C(1) << (atlas_type_bits(types[i]) - 1))) == infinity_of(types[i]);
    int ok = overflow ? result == ATLAS_NUMBER_RANGE : result == ATLAS_NUMBER_OK && bits == expected;
    if (!check_note(ok))
      printf("%s as %s: 0x%llx (result %d), expected 0x%llx\n", text, atlas_type_name(types[i]),
             (unsigned long long)bits, (int)result, (unsigned long long)expected);
  }
}

static void test_random_literals(void) {
  uint64_t state = 1;
  char text[ATLAS_NUMBER_MAX_LENGTH + 1];
  for (int i = 0; i < 100000; i++) {
    uint64_t a = next_random(&state), b = next_random(&state);
    uint32_t u32 = (uint32_t)a;
    float f;
    double d;
    memcpy(&f, &u32, sizeof f);
    memcpy(&d, &a, sizeof d);
    if (isnan(f)) f = 1;
    if (isnan(d) || isinf(d)) d = 1;
    if (isinf(f)) f = 2;
    switch (i % 6) {
    case 0:
      snprintf(text, sizeof text, "%s%llu.%llue%d", a & 1 ? "-" : "", (unsigned long long)(a >> 20),
               (unsigned long long)(b >> 30), (int)(b % 640) - 320);
      break;
    case 1: snprintf(text, sizeof text, "%.*e", (int)(b % 20), d); break;
    case 2: snprintf(text, sizeof text, "%.9g", (double)f); break;
    case 3:
      snprintf(text, sizeof text, "%.60e", ((double)f + (double)nextafterf(f, 3e38f)) / 2);
      break; /* a tie in f32 */
    case 4: snprintf(text, sizeof text, "%a", d); break;
    default:
      snprintf(text, sizeof text, "%llu.%03llue%d", (unsigned long long)(a % 100), (unsigned long long)(b % 1000),
               (int)(a % 90) - 50);
      break;
    }
    compare_with_host(text);
  }
}

/* Halfway between two neighbours, written out exactly (up to 770 digits), and moved by one in a far digit. */
static void test_long_ties(void) {
  uint64_t state = 7;
  for (int i = 0; i < 300; i++) {
    uint64_t bits = next_random(&state) >> 1;
    if (i % 3 == 0) bits >>= 12; /* subnormal */
    if (bits >= infinity_of(ATLAS_f64)) continue;
    double low, high;
    uint64_t next = bits + 1;
    memcpy(&low, &bits, sizeof low);
    memcpy(&high, &next, sizeof high);
    char text[1200];
    long double middle = ((long double)low + (long double)high) / 2; /* exact where long double has 64 bits */
    int length = snprintf(text, sizeof text, "%.*Le", i % 2 ? 800 : 770, middle);
    compare_with_host(text);
    char *e = strchr(text, 'e');
    if (length > 0 && e != NULL && length < ATLAS_NUMBER_MAX_LENGTH) {
      e[-1] = e[-1] == '9' ? '8' : (char)(e[-1] + 1);
      compare_with_host(text);
    }
  }
}

static void check_print(atlas_type type, uint64_t bits) {
  char text[ATLAS_NUMBER_CHARS];
  uint64_t again = ~bits;
  size_t length = atlas_number_print(type, bits, text);
  atlas_number_result result = atlas_number_parse(type, text, length, &again);
  if (!check_note(length == strlen(text) && length < ATLAS_NUMBER_CHARS && result == ATLAS_NUMBER_OK && again == bits))
    printf("%s 0x%llx prints as %s, which gives 0x%llx\n", atlas_type_name(type), (unsigned long long)bits, text,
           (unsigned long long)again);
}

static void test_printing(void) {
  static const vector vectors[] = {
      {ATLAS_f32, "1.5", 0x3fc00000},
      {ATLAS_f32, "-3", 0xc0400000},
      {ATLAS_f32, "1024", 0x44800000},
      {ATLAS_f32, "0", 0},
      {ATLAS_f32, "-0", 0x80000000},
      {ATLAS_f32, "0.25", 0x3e800000},
      {ATLAS_f32, "0x3dcccccd", 0x3dcccccd},
      {ATLAS_f32, "inf", 0x7f800000},
      {ATLAS_f64, "-inf", UINT64_C(0xfff0000000000000)},
      {ATLAS_f32, "0x7fc00000", 0x7fc00000},
      {ATLAS_f32, "0.0009765625", 0x3a800000},
      {ATLAS_f32, "0x00000001", 1},
      {ATLAS_f16, "65504", 0x7bff},
      {ATLAS_f16, "0x0001", 1},
      {ATLAS_bf16, "0x7f7f", 0x7f7f},
      {ATLAS_f64, "0.5", UINT64_C(0x3fe0000000000000)},
      {ATLAS_f64, "9007199254740992", UINT64_C(0x4340000000000000)},
      {ATLAS_i8, "-128", 0x80},
      {ATLAS_i64, "-1", UINT64_MAX},
      {ATLAS_u64, "18446744073709551615", UINT64_MAX},
      {ATLAS_i32, "0", 0},
      {ATLAS_i64, "-9223372036854775808", UINT64_C(1) << 63},
  };
  for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
    char text[ATLAS_NUMBER_CHARS];
    atlas_number_print(vectors[i].type, vectors[i].bits, text);
    CHECK_STR(text, vectors[i].text);
  }
  uint64_t state = 3;
  for (unsigned t = ATLAS_i8; t <= ATLAS_f64; t++) {
    atlas_type type = (atlas_type)t;
    if (atlas_type_bits(type) <= 16)
      for (uint64_t bits = 0; bits <= atlas_mask(type); bits++) check_print(type, bits);
    for (int i = 0; i < 20000; i++) {
      check_print(type, next_random(&state) & atlas_mask(type));
      check_print(type,
                  next_random(&state) << (next_random(&state) % 64) & atlas_mask(type)); /* few significant bits */
    }
  }
}

int main(void) {
  test_vectors();
  test_refused();
  test_random_literals();
  test_long_ties();
  test_printing();
  return check_report();
}
