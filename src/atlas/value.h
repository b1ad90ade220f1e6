/* value.h - values as bits: reading them as numbers, rounding numbers to them, converting between types.
 *
 * Everywhere in the machine a value is a uint64_t whose low bits are the value's bits and whose upper bits are zero. */
#ifndef HG_ATLAS_VALUE_H
#define HG_ATLAS_VALUE_H

#include "atlas/tables.h"

#include <string.h>

static inline float atlas_as_f32(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof value);
  return value;
}

static inline double atlas_as_f64(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Memory holds values in the machine's own byte order, as the host's arrays do. */
static inline uint64_t atlas_read_value(const void *address, uint32_t bytes) {
  uint8_t u8;
  uint16_t u16;
  uint32_t u32;
  uint64_t u64;
  switch (bytes) {
  case 1: memcpy(&u8, address, 1); return u8;
  case 2: memcpy(&u16, address, 2); return u16;
  case 4: memcpy(&u32, address, 4); return u32;
  default: memcpy(&u64, address, 8); return u64;
  }
}

static inline void atlas_write_value(void *address, uint32_t bytes, uint64_t value) {
  uint8_t u8 = (uint8_t)value;
  uint16_t u16 = (uint16_t)value;
  uint32_t u32 = (uint32_t)value;
  switch (bytes) {
  case 1: memcpy(address, &u8, 1); break;
  case 2: memcpy(address, &u16, 2); break;
  case 4: memcpy(address, &u32, 4); break;
  default: memcpy(address, &value, 8); break;
  }
}

/* The canonical quiet NaN of a floating-point type (storage types included). */
uint64_t atlas_canonical_nan(atlas_type type);

/* A NaN becomes the canonical one; numbers keep their bits. */
uint64_t atlas_bits_of_f32(float value);
uint64_t atlas_bits_of_f64(double value);

/* Any value as a double: exact for every type of at most 53 significant bits (not for 64-bit integers). */
double atlas_to_f64(atlas_type type, uint64_t bits);

/* An integer value, sign-extended for signed types. */
int64_t atlas_to_i64(atlas_type type, uint64_t bits);

/* The number of the highest bit that is set in a value other than 0. */
static inline int atlas_highest_bit(uint64_t value) {
  int bit = 0;
  for (int step = 32; step > 0; step /= 2)
    if (value >> step != 0) {
      value >>= step;
      bit += step;
    }
  return bit;
}

/* The parts of a finite f64: (-1)^negative * significand * 2^exponent, the significand below 2^53. */
typedef struct atlas_parts {
  int negative, exponent;
  uint64_t significand;
} atlas_parts;

atlas_parts atlas_parts_of(double value);

/* A double rounded once to a floating-point type, ties to even; NaN gives the canonical NaN. */
uint64_t atlas_round_f64(atlas_type type, double value);

/* significand * 2^exponent, with a sign, rounded once to a floating-point type; an inexact significand must carry its
 * sticky bit in bit 0 and have more bits than the type can hold. */
uint64_t atlas_pack(atlas_type type, int negative, uint64_t significand, int exponent);

/* cvt.to.from */
uint64_t atlas_convert(atlas_type to, atlas_type from, uint64_t bits);

#endif
