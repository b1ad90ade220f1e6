/* vectors.h - vectors of the instruction set that a file is compiled for, as the compiler's own types. */
#ifndef HG_ENGINE_VECTORS_H
#define HG_ENGINE_VECTORS_H

#include <stdint.h>

#if defined __AVX512F__
#  define VECTOR_BYTES 64
#elif defined __AVX2__
#  define VECTOR_BYTES 32
#else
#  define VECTOR_BYTES 16
#endif

/* Bits of integers, signed or not. */
typedef uint8_t V_i8 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t V_i16 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t V_i32 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t V_i64 __attribute__((vector_size(VECTOR_BYTES)));
typedef float V_f32 __attribute__((vector_size(VECTOR_BYTES)));
typedef double V_f64 __attribute__((vector_size(VECTOR_BYTES)));

/* A NaN as the canonical one. */
static inline V_f32 canon_f32(V_f32 v) {
  V_f32 same = v;
  V_i32 number = (V_i32)(v == same);
  return (V_f32)(((V_i32)v & number) | (~number & 0x7fc00000u));
}
static inline V_f64 canon_f64(V_f64 v) {
  V_f64 same = v;
  V_i64 number = (V_i64)(v == same);
  return (V_f64)(((V_i64)v & number) | (~number & UINT64_C(0x7ff8000000000000)));
}

#endif
