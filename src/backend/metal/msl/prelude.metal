// What every kernel's text begins with: the arithmetic of the ISA in the Metal Shading Language.
//
// A value is its bits: a uint for types of at most 32 bits (signed integers sign-extended), a ulong for 64. Metal's
// floats flush subnormal numbers in every mode, and there is no double. So f32 takes the hardware's result where it is
// far enough from them, which one comparison shows, and integers otherwise; f64 always takes integers.
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// ---- numbers as integers --------------------------------------------------------------------------------------------

enum kind_of_number { is_finite, is_infinite, is_nan };

// (-1)^sign * m * 2^e.
struct number {
  uint sign;
  int e;
  ulong m;
  kind_of_number kind;
};

struct pair_of_words {
  ulong high, low;
};

// Formats by their significant bits P (with the hidden one) and their width W. f8e4m3 is <4, 8>: it has no infinity.
template <uint P, uint W> inline int bias_of() { return (1 << (W - P - 1)) - 1; }
template <uint P, uint W> inline ulong infinity_of() { return ((1ul << (W - P)) - 1) << (P - 1); }
template <uint P, uint W> inline ulong nan_of() { return P == 4 ? 0x7ful : infinity_of<P, W>() | 1ul << (P - 2); }

template <uint P, uint W> inline number unpacked(ulong bits) {
  number n;
  ulong magnitude = bits & ((1ul << (W - 1)) - 1), fraction = magnitude & ((1ul << (P - 1)) - 1);
  int exponent = int(magnitude >> (P - 1));
  n.sign = uint(bits >> (W - 1)) & 1;
  n.kind = P == 4 ? (magnitude == 0x7f ? is_nan : is_finite)
                  : (magnitude < infinity_of<P, W>() ? is_finite : fraction != 0 ? is_nan : is_infinite);
  n.m = exponent != 0 ? fraction | 1ul << (P - 1) : fraction;
  n.e = max(exponent, 1) - bias_of<P, W>() - int(P - 1);
  return n;
}

// Rounds to nearest, ties to even. Bit 0 of an inexact m is set for what is behind it; such an m has P + 2 bits or more.
template <uint P, uint W> inline ulong packed(uint sign, int e, ulong m) {
  const int least = 2 - bias_of<P, W>() - int(P);
  ulong s = ulong(sign) << (W - 1);
  if (m == 0) return s;
  int cut = max(64 - int(clz(m)) - int(P), least - e);
  e += cut;
  if (cut > 62) {
    m = m >> 2 | ulong((m & 3) != 0);
    cut -= 2;
  }
  if (cut > 63) m = 0;
  else if (cut > 0) {
    ulong rest = m & ((1ul << cut) - 1), half_way = 1ul << (cut - 1);
    m >>= cut;
    m += ulong(rest > half_way || (rest == half_way && (m & 1) != 0));
  } else m <<= -cut;
  if (m >> P != 0) {
    m >>= 1;
    e++;
  }
  if (e - least > (1 << (W - P))) return P == 4 ? 0x7ful : s | infinity_of<P, W>();
  ulong bits = (ulong(e - least) << (P - 1)) + m;
  if (P == 4) return bits > 0x7e ? 0x7ful : s | bits;
  return s | min(bits, infinity_of<P, W>());
}

// With exactly P bits; not of 0.
template <uint P> inline void normalise(thread number &n) {
  int by = int(clz(n.m)) - int(64 - P);
  n.m <<= by;
  n.e -= by;
}

// m / 2^by, bit 0 set for what is lost.
inline ulong shifted_down(ulong m, int by) {
  if (by <= 0) return m;
  if (by > 63) return ulong(m != 0);
  return m >> by | ulong((m & ((1ul << by) - 1)) != 0);
}

inline pair_of_words shifted_down(pair_of_words x, int by) {
  if (by <= 0) return x;
  if (by > 127) return pair_of_words{0, ulong((x.high | x.low) != 0)};
  if (by > 63) {
    ulong lost = x.low | (by == 64 ? 0 : x.high & ((1ul << (by - 64)) - 1));
    return pair_of_words{0, x.high >> (by - 64) | ulong(lost != 0)};
  }
  ulong lost = x.low & ((1ul << by) - 1);
  return pair_of_words{x.high >> by, x.high << (64 - by) | x.low >> by | ulong(lost != 0)};
}

template <uint P, uint W> inline ulong soft_add(ulong x, ulong y) {
  number a = unpacked<P, W>(x), b = unpacked<P, W>(y);
  if (a.kind != is_finite || b.kind != is_finite) {
    if (a.kind == is_nan || b.kind == is_nan) return nan_of<P, W>();
    if (a.kind == is_infinite && b.kind == is_infinite) return a.sign == b.sign ? x : nan_of<P, W>();
    return a.kind == is_infinite ? x : y;
  }
  if (a.e < b.e) {
    number c = a;
    a = b;
    b = c;
  }
  ulong m = a.m << 10, other = shifted_down(b.m << 10, a.e - b.e);
  if (a.sign == b.sign) return packed<P, W>(a.sign, a.e - 10, m + other);
  if (m == other) return 0;
  return m > other ? packed<P, W>(a.sign, a.e - 10, m - other) : packed<P, W>(b.sign, a.e - 10, other - m);
}

template <uint P, uint W> inline ulong soft_mul(ulong x, ulong y) {
  number a = unpacked<P, W>(x), b = unpacked<P, W>(y);
  uint sign = a.sign ^ b.sign;
  if (a.kind == is_nan || b.kind == is_nan) return nan_of<P, W>();
  if (a.kind == is_infinite || b.kind == is_infinite) {
    if ((a.kind == is_finite && a.m == 0) || (b.kind == is_finite && b.m == 0)) return nan_of<P, W>();
    return ulong(sign) << (W - 1) | infinity_of<P, W>();
  }
  if (a.m == 0 || b.m == 0) return ulong(sign) << (W - 1);
  normalise<P>(a);
  normalise<P>(b);
  ulong left = a.m << (64 - P), right = b.m << (63 - P);
  return packed<P, W>(sign, a.e + b.e + 2 * int(P) - 63, mulhi(left, right) | ulong(left * right != 0));
}

template <uint P, uint W> inline ulong soft_div(ulong x, ulong y) {
  number a = unpacked<P, W>(x), b = unpacked<P, W>(y);
  uint sign = a.sign ^ b.sign;
  ulong s = ulong(sign) << (W - 1), q = 0;
  if (a.kind == is_nan || b.kind == is_nan) return nan_of<P, W>();
  if (a.kind == is_infinite) return b.kind == is_infinite ? nan_of<P, W>() : s | infinity_of<P, W>();
  if (b.kind == is_infinite) return s;
  if (b.m == 0) return a.m == 0 ? nan_of<P, W>() : s | infinity_of<P, W>();
  if (a.m == 0) return s;
  normalise<P>(a);
  normalise<P>(b);
  ulong rest = a.m;
  for (uint i = 0; i < P + 3; i++) {
    bool fits = rest >= b.m;
    q = q << 1 | ulong(fits);
    rest = (fits ? rest - b.m : rest) << 1;
  }
  return packed<P, W>(sign, a.e - b.e - int(P + 2), q | ulong(rest != 0));
}

template <uint P, uint W> inline ulong soft_sqrt(ulong x) {
  number a = unpacked<P, W>(x);
  ulong root = 0, rest = 0;
  if (a.kind == is_nan) return nan_of<P, W>();
  if (a.kind == is_finite && a.m == 0) return x;
  if (a.sign != 0) return nan_of<P, W>();
  if (a.kind == is_infinite) return x;
  normalise<P>(a);
  if ((a.e & 1) != 0) {
    a.m <<= 1;
    a.e--;
  }
  const int pairs = int(P + 2) / 2, places = int(P + 3);
  for (int i = 0; i < places; i++) {
    ulong next = i < pairs ? a.m >> (2 * (pairs - 1 - i)) & 3 : 0;
    rest = rest << 2 | next;
    ulong trial = root << 2 | 1;
    root = root << 1 | ulong(rest >= trial);
    rest = rest >= trial ? rest - trial : rest;
  }
  return packed<P, W>(0, a.e / 2 - (places - pairs), root | ulong(rest != 0));
}

template <uint P, uint W> inline ulong soft_fma(ulong x, ulong y, ulong z) {
  number a = unpacked<P, W>(x), b = unpacked<P, W>(y), c = unpacked<P, W>(z);
  uint sign = a.sign ^ b.sign;
  if (a.kind == is_nan || b.kind == is_nan || c.kind == is_nan) return nan_of<P, W>();
  if (a.kind == is_infinite || b.kind == is_infinite) {
    if ((a.kind == is_finite && a.m == 0) || (b.kind == is_finite && b.m == 0)) return nan_of<P, W>();
    if (c.kind == is_infinite && c.sign != sign) return nan_of<P, W>();
    return ulong(sign) << (W - 1) | infinity_of<P, W>();
  }
  if (c.kind == is_infinite) return z;
  if (a.m == 0 || b.m == 0) return c.m != 0 ? z : ulong(sign & c.sign) << (W - 1);
  normalise<P>(a);
  normalise<P>(b);
  ulong left = a.m << (64 - P), right = b.m << (62 - P);
  pair_of_words p = {mulhi(left, right), left * right}, q = {0, 0};
  int e = a.e + b.e + 2 * int(P) - 126;
  if (c.m != 0) {
    normalise<P>(c);
    q.high = c.m << (61 - P);
    int other = c.e + int(P) - 125;
    if (other > e) {
      p = shifted_down(p, other - e);
      e = other;
    } else q = shifted_down(q, e - other);
  }
  if (c.m == 0 || sign == c.sign) {
    p.low += q.low;
    p.high += q.high + ulong(p.low < q.low);
  } else if (p.high > q.high || (p.high == q.high && p.low >= q.low)) {
    p.high -= q.high + ulong(p.low < q.low);
    p.low -= q.low;
  } else {
    p.high = q.high - p.high - ulong(q.low < p.low);
    p.low = q.low - p.low;
    sign ^= 1;
  }
  if (p.high == 0 && p.low == 0) return 0;
  if (p.high == 0) return packed<P, W>(sign, e, p.low);
  int by = int(clz(p.high));
  ulong m = by > 0 ? p.high << by | p.low >> (64 - by) : p.high;
  return packed<P, W>(sign, e + 64 - by, m | ulong(p.low << by != 0));
}

// ---- f32 --------------------------------------------------------------------------------------------------------------

// The magnitude is at least `least`, and finite. Then a result of the hardware is the ISA's if none of what it was
// computed from could have been flushed unseen: a subnormal operand makes a product or quotient zero, infinite or NaN,
// and to a sum of 2^-100 and more it adds less than half of the last place.
inline bool is_far(uint bits, uint least) { return (bits & 0x7fffffffu) - least < 0x7f800000u - least; }
inline bool is_subnormal(uint bits) { return (bits & 0x7fffffffu) - 1 < 0x7fffffu; }

enum : uint { far_from_sums = 0x0d800000u, far_from_products = 0x01000000u };

inline uint add_f32(uint a, uint b) {
  uint r = as_type<uint>(as_type<float>(a) + as_type<float>(b));
  return is_far(r, far_from_sums) ? r : uint(soft_add<24, 32>(a, b));
}

inline uint sub_f32(uint a, uint b) {
  uint r = as_type<uint>(as_type<float>(a) - as_type<float>(b));
  return is_far(r, far_from_sums) ? r : uint(soft_add<24, 32>(a, b ^ 0x80000000u));
}

inline uint mul_f32(uint a, uint b) {
  uint r = as_type<uint>(as_type<float>(a) * as_type<float>(b));
  return is_far(r, far_from_products) ? r : uint(soft_mul<24, 32>(a, b));
}

inline uint div_f32(uint a, uint b) {
  uint r = as_type<uint>(as_type<float>(a) / as_type<float>(b));
  return is_far(r, far_from_products) ? r : uint(soft_div<24, 32>(a, b));
}

inline uint sqrt_f32(uint a) {
  uint r = as_type<uint>(sqrt(as_type<float>(a)));
  return is_far(r, far_from_products) ? r : uint(soft_sqrt<24, 32>(a));
}

inline uint fma_f32(uint a, uint b, uint c) {
  uint r = as_type<uint>(fma(as_type<float>(a), as_type<float>(b), as_type<float>(c)));
  bool is_flushed = is_subnormal(a) || is_subnormal(b) || is_subnormal(c);
  return is_far(r, far_from_sums) && !is_flushed ? r : uint(soft_fma<24, 32>(a, b, c));
}

// ---- f64 --------------------------------------------------------------------------------------------------------------

inline ulong add_f64(ulong a, ulong b) { return soft_add<53, 64>(a, b); }
inline ulong sub_f64(ulong a, ulong b) { return soft_add<53, 64>(a, b ^ 1ul << 63); }
inline ulong mul_f64(ulong a, ulong b) { return soft_mul<53, 64>(a, b); }
inline ulong div_f64(ulong a, ulong b) { return soft_div<53, 64>(a, b); }
inline ulong sqrt_f64(ulong a) { return soft_sqrt<53, 64>(a); }
inline ulong fma_f64(ulong a, ulong b, ulong c) { return soft_fma<53, 64>(a, b, c); }

// ---- order, signs, rounding to integers: of bits alone ----------------------------------------------------------------

inline bool is_nan_f32(uint a) { return (a & 0x7fffffffu) > 0x7f800000u; }
inline bool is_nan_f64(ulong a) { return (a & ~0ul >> 1) > 0x7fful << 52; }
// As signed integers in the order of the numbers, -0 below +0.
inline int order_f32(uint a) { return int(a) < 0 ? int(a ^ 0x7fffffffu) : int(a); }
inline long order_f64(ulong a) { return long(a) < 0 ? long(a ^ ~0ul >> 1) : long(a); }

inline bool num_f32(uint a, uint b) { return !is_nan_f32(a) && !is_nan_f32(b); }
inline bool num_f64(ulong a, ulong b) { return !is_nan_f64(a) && !is_nan_f64(b); }
inline bool eq_f32(uint a, uint b) { return num_f32(a, b) && (a == b || ((a | b) << 1) == 0); }
inline bool eq_f64(ulong a, ulong b) { return num_f64(a, b) && (a == b || ((a | b) << 1) == 0); }
inline bool lt_f32(uint a, uint b) { return num_f32(a, b) && order_f32(a) < order_f32(b) && ((a | b) << 1) != 0; }
inline bool lt_f64(ulong a, ulong b) { return num_f64(a, b) && order_f64(a) < order_f64(b) && ((a | b) << 1) != 0; }
inline bool le_f32(uint a, uint b) { return num_f32(a, b) && (order_f32(a) <= order_f32(b) || ((a | b) << 1) == 0); }
inline bool le_f64(ulong a, ulong b) { return num_f64(a, b) && (order_f64(a) <= order_f64(b) || ((a | b) << 1) == 0); }

inline uint min_f32(uint a, uint b) { return !num_f32(a, b) ? 0x7fc00000u : order_f32(a) < order_f32(b) ? a : b; }
inline uint max_f32(uint a, uint b) { return !num_f32(a, b) ? 0x7fc00000u : order_f32(a) < order_f32(b) ? b : a; }
inline ulong min_f64(ulong a, ulong b) { return !num_f64(a, b) ? nan_of<53, 64>() : order_f64(a) < order_f64(b) ? a : b; }
inline ulong max_f64(ulong a, ulong b) { return !num_f64(a, b) ? nan_of<53, 64>() : order_f64(a) < order_f64(b) ? b : a; }

inline uint sign_f32(uint a) {
  return is_nan_f32(a) ? 0x7fc00000u : (a << 1) == 0 ? 0 : (a & 0x80000000u) | 0x3f800000u;
}
inline ulong sign_f64(ulong a) {
  return is_nan_f64(a) ? nan_of<53, 64>() : (a << 1) == 0 ? 0 : (a & 1ul << 63) | 0x3fful << 52;
}

enum way_to_round { toward_zero, down, up, to_even };

template <uint P, uint W> inline ulong rounded(ulong x, way_to_round way) {
  number n = unpacked<P, W>(x);
  if (n.kind == is_nan) return nan_of<P, W>();
  if (n.kind == is_infinite || n.e >= 0 || n.m == 0) return x;
  int by = min(-n.e, 63);
  ulong whole = n.m >> by, rest = n.m & ((1ul << by) - 1), half_way = 1ul << (by - 1);
  bool away = way == to_even  ? rest > half_way || (rest == half_way && (whole & 1) != 0)
              : way == down ? rest != 0 && n.sign != 0
              : way == up   ? rest != 0 && n.sign == 0
                            : false;
  return packed<P, W>(n.sign, 0, whole + ulong(away));
}

inline uint trunc_f32(uint a) { return uint(rounded<24, 32>(a, toward_zero)); }
inline uint floor_f32(uint a) { return uint(rounded<24, 32>(a, down)); }
inline uint ceil_f32(uint a) { return uint(rounded<24, 32>(a, up)); }
inline uint round_f32(uint a) { return uint(rounded<24, 32>(a, to_even)); }
inline ulong trunc_f64(ulong a) { return rounded<53, 64>(a, toward_zero); }
inline ulong floor_f64(ulong a) { return rounded<53, 64>(a, down); }
inline ulong ceil_f64(ulong a) { return rounded<53, 64>(a, up); }
inline ulong round_f64(ulong a) { return rounded<53, 64>(a, to_even); }

// ---- conversions ------------------------------------------------------------------------------------------------------

// Between formats of numbers; each is exact or rounds once.
template <uint P, uint W, uint Q, uint V> inline ulong converted(ulong x) {
  number n = unpacked<P, W>(x);
  ulong s = ulong(n.sign) << (V - 1);
  if (n.kind == is_nan) return nan_of<Q, V>();
  if (n.kind == is_infinite) return Q == 4 ? 0x7ful : s | infinity_of<Q, V>();
  return packed<Q, V>(n.sign, n.e, n.m);
}

// `x` is signed where is_signed.
template <uint Q, uint V> inline ulong from_integer(ulong x, bool is_signed) {
  bool is_negative = is_signed && long(x) < 0;
  return packed<Q, V>(uint(is_negative), 0, is_negative ? 0 - x : x);
}

// Saturates to B bits; NaN gives 0.
template <uint P, uint W> inline ulong to_integer(ulong x, uint bits, bool is_signed) {
  number n = unpacked<P, W>(x);
  ulong most = is_signed ? (1ul << (bits - 1)) - 1 + ulong(n.sign) : n.sign != 0 ? 0 : ~0ul >> (64 - bits);
  if (n.kind == is_nan) return 0;
  ulong m = n.e <= -64 || n.m == 0 ? 0
            : n.e < 0  ? n.m >> -n.e
            : n.kind == is_infinite || n.e > int(clz(n.m)) ? ~0ul : n.m << n.e;
  m = min(m, most);
  return n.sign != 0 && is_signed ? 0 - m : m;
}

inline uint f16_to_f32(uint a) { return uint(converted<11, 16, 24, 32>(a)); }
inline uint bf16_to_f32(uint a) { return is_nan_f32(a << 16) ? 0x7fc00000u : a << 16; }
inline uint f32_to_f16(uint a) { return uint(converted<24, 32, 11, 16>(a)); }
inline uint f32_to_bf16(uint a) {
  return is_nan_f32(a) ? 0x7fc0u : (a + 0x7fffu + (a >> 16 & 1)) >> 16;
}

// ---- integers ---------------------------------------------------------------------------------------------------------

inline uint as_i8(uint a) { return uint(int(a << 24) >> 24); }
inline uint as_i16(uint a) { return uint(int(a << 16) >> 16); }
inline uint as_u8(uint a) { return a & 0xffu; }
inline uint as_u16(uint a) { return a & 0xffffu; }

// x / 0 = 0, x rem 0 = x, MIN / -1 = MIN, MIN rem -1 = 0.
inline uint div_u32(uint a, uint b) { return b == 0 ? 0 : a / b; }
inline uint rem_u32(uint a, uint b) { return b == 0 ? a : a % b; }
inline ulong div_u64(ulong a, ulong b) { return b == 0 ? 0 : a / b; }
inline ulong rem_u64(ulong a, ulong b) { return b == 0 ? a : a % b; }
inline uint div_i32(uint a, uint b) { return b == 0 ? 0 : b == ~0u ? 0 - a : uint(int(a) / int(b)); }
inline uint rem_i32(uint a, uint b) { return b == 0 ? a : b == ~0u ? 0 : uint(int(a) % int(b)); }
inline ulong div_i64(ulong a, ulong b) { return b == 0 ? 0 : b == ~0ul ? 0 - a : ulong(long(a) / long(b)); }
inline ulong rem_i64(ulong a, ulong b) { return b == 0 ? a : b == ~0ul ? 0 : ulong(long(a) % long(b)); }

inline uint sign_i32(uint a) { return uint(int(a) > 0) - (a >> 31); }
inline ulong sign_i64(ulong a) { return ulong(long(a) > 0) - (a >> 63); }

inline uint dot4(uint a, uint b, uint c, bool is_signed, bool b_is_signed) {
  for (uint i = 0; i < 32; i += 8) {
    uint x = a >> i & 0xff, y = b >> i & 0xff;
    c += (is_signed ? as_i8(x) : x) * (b_is_signed ? as_i8(y) : y);
  }
  return c;
}

// ---- memory -----------------------------------------------------------------------------------------------------------

struct span {
  device uchar *memory;
  ulong byte_count;
};

// Before MSL 3.2 there is no fence but a barrier, which a lane that goes its own way cannot have.
#if __METAL_VERSION__ >= 320
#define fence(scope) \
  atomic_thread_fence(mem_flags::mem_device | mem_flags::mem_threadgroup, memory_order_seq_cst, scope)
#else
#define fence(scope)
#endif

// 64 bits by two words, for those who do not look at what was there.
inline void add_words(device uchar *at, ulong x) {
  device atomic_uint *word = (device atomic_uint *)at;
  uint old = atomic_fetch_add_explicit(word, uint(x), memory_order_relaxed);
  uint carry = uint(old + uint(x) < old);
  uint more = uint(x >> 32) + carry;
  if (more != 0) atomic_fetch_add_explicit(word + 1, more, memory_order_relaxed);
}
inline void add_words(threadgroup uchar *at, ulong x) {
  threadgroup atomic_uint *word = (threadgroup atomic_uint *)at;
  uint old = atomic_fetch_add_explicit(word, uint(x), memory_order_relaxed);
  uint carry = uint(old + uint(x) < old);
  uint more = uint(x >> 32) + carry;
  if (more != 0) atomic_fetch_add_explicit(word + 1, more, memory_order_relaxed);
}

// Metal has the weak form alone, which may fail without a reason.
template <typename A> inline uint exchange_if(A word, uint wanted, uint value) {
  uint found = wanted;
  while (!atomic_compare_exchange_weak_explicit(word, &found, value, memory_order_relaxed, memory_order_relaxed))
    if (found != wanted) break;
  return found;
}

// The record of a launch: the lowest lane that faulted, and that lane's first fault. Who has the lock waits for nobody,
// and gives it back in the iteration in which it got it.
inline void keep_fault(device uchar *record, device uchar *flag, ulong lane, ulong index, ulong extent,
                       constant ulong *site) {
  device atomic_uint *word = (device atomic_uint *)record;
  for (bool done = false; !done;) {
    if (atomic_exchange_explicit(word + 2, 1u, memory_order_relaxed) != 0) continue;
    ulong lowest = atomic_load_explicit(word, memory_order_relaxed) |
                   ulong(atomic_load_explicit(word + 1, memory_order_relaxed)) << 32;
    if (lane < lowest) {
      ulong values[7] = {lane, site[0], site[1], site[2], index, site[3], extent};
      for (uint i = 0; i < 14; i++)
        if (i != 2) atomic_store_explicit(word + i, uint(i == 3 ? site[0] : values[i / 2] >> 32 * (i & 1)), memory_order_relaxed);
      atomic_store_explicit((device atomic_uint *)flag, 1u, memory_order_relaxed);
    }
    atomic_store_explicit(word + 2, 0u, memory_order_relaxed);
    done = true;
  }
}

// ---- lanes that have ended, in collectives ----------------------------------------------------------------------------

// Half the power of two at or above the count; 0 of one.
inline uint half_of(uint count) { return count > 1 ? 1u << (31 - clz(count - 1)) : 0; }

// The 96 classes: 24 h + 8 d + l.
inline uint neighbour_count(uint c) { return c % 24 < 8 ? 6 : 5; }
inline uint neighbour(uint c, uint number) {
  uint d = c % 24 / 8;
  if (number < 3) return c ^ 1u << number;
  if (number == 3) return (c / 24 & 1) != 0 ? c - 24 : c + 24;
  return d == 0 ? c + 8 * (number - 3) : c - 8 * d;
}

