/* contraction.h - the definition of contractions, one element after the other, and random ones for tests. */
#ifndef HG_TESTS_CONTRACTION_H
#define HG_TESTS_CONTRACTION_H

#include "atlas/arith.h"
#include "atlas/exact.h"
#include "atlas/tables.h"
#include "backend/backend.h"

#include <stdlib.h>

static uint64_t state = 1;

static uint32_t next_random(void) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(state >> 32);
}

/* ---- the definition ---------------------------------------------------------------------------------------------- */

/* Elements as bits, whatever the type. */
static uint64_t element(const uint8_t *from, uint8_t type, int64_t at) {
  uint64_t bits = 0;
  memcpy(&bits, from + at * (int64_t)atlas_bytes(type), atlas_bytes(type)); /* little-endian */
  return bits;
}

static uint8_t sum_type(const hg_contraction *c) {
  return atlas_is_integer(c->type) ? c->type : c->type == ATLAS_f64 ? ATLAS_f64 : ATLAS_f32;
}

/* a * b + sum of that type. */
static uint64_t multiply_add(uint8_t type, uint64_t a, uint64_t b, uint64_t sum) {
  if (type == ATLAS_f32) return atlas_bits_of_f32(atlas_fma_f32(atlas_as_f32(a), atlas_as_f32(b), atlas_as_f32(sum)));
  if (type == ATLAS_f64) return atlas_bits_of_f64(atlas_fma_f64(atlas_as_f64(a), atlas_as_f64(b), atlas_as_f64(sum)));
  return (a * b + sum) & atlas_mask(type);
}

static uint64_t add(uint8_t type, uint64_t a, uint64_t b) {
  if (type == ATLAS_f32) return atlas_bits_of_f32(atlas_as_f32(a) + atlas_as_f32(b));
  if (type == ATLAS_f64) return atlas_bits_of_f64(atlas_as_f64(a) + atlas_as_f64(b));
  return (a + b) & atlas_mask(type);
}

/* The sum over chunks first .. first + count - 1, by the aligned tree: the left half is the greatest power of two that
 * leaves something for the right one. */
static uint64_t tree(uint8_t type, const uint64_t *chunks, uint64_t count) {
  if (count == 1) return chunks[0];
  uint64_t left = 1;
  while (2 * left < count) left *= 2;
  return add(type, tree(type, chunks, left), tree(type, chunks + left, count - left));
}

static int64_t place(const hg_axis *axis, int64_t stride, uint64_t number) {
  int64_t sum = 0;
  if (axis->count == 0) return (int64_t)number * stride;
  for (uint64_t i = 0; i < axis->count; i++) {
    sum += (int64_t)(number % axis->size[i]) * axis->stride[i];
    number /= axis->size[i];
  }
  return sum;
}

static uint64_t defined(const hg_contraction *c, uint64_t item, uint64_t row, uint64_t column) {
  uint64_t chunks[256], count = 0;
  uint8_t type = sum_type(c);
  if (c->k == 0) return 0;
  for (uint64_t first = 0; first < c->k; first += 256, count++) {
    chunks[count] = 0;
    for (uint64_t l = first; l < c->k && l < first + 256; l++) {
      int64_t at_a = 0, at_b = 0;
      for (int i = 0; i < 3; i++) {
        at_a += place(&c->a_axis[i], c->a_stride[i], i == 0 ? item : i == 1 ? row : l);
        at_b += place(&c->b_axis[i], c->b_stride[i], i == 0 ? item : i == 1 ? l : column);
      }
      uint64_t a = atlas_convert(type, c->a_type, element(c->a, c->a_type, at_a));
      uint64_t b = atlas_convert(type, c->b_type, element(c->b, c->b_type, at_b));
      chunks[count] = multiply_add(type, a, b, chunks[count]);
    }
  }
  uint64_t sum = tree(type, chunks, count);
  if (!atlas_is_integer(type) && atlas_to_f64(type, sum) != atlas_to_f64(type, sum)) sum = atlas_canonical_nan(type);
  return atlas_convert(c->type, type, sum);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

typedef struct memory {
  uint8_t *bytes, *first; /* of element (0, 0, 0) */
  uint64_t byte_count;
} memory;

static uint64_t some_bits(uint8_t type, int any) {
  uint64_t bits = (uint64_t)next_random() << 32 | next_random();
  if (atlas_is_integer(type) || any) return bits;
  double value = ((double)(next_random() % 20001) - 10000.0) / 7919.0;
  return atlas_convert(type, ATLAS_f64, atlas_bits_of_f64(value));
}

static int is_dense; /* 1: axes lie in order, without gaps */

/* Strides of a view of `sizes`: its axes in any order in memory, with gaps, backwards, repeated. */
static memory make(uint8_t type, const uint64_t sizes[3], int64_t strides[3], int is_result) {
  static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}};
  const int *order = orders[is_dense ? 0 : next_random() % 6];
  int64_t span = 1, low = 0, high = 0;
  for (int i = 2; i >= 0; i--) {
    int axis = order[i];
    strides[axis] = span + (!is_dense && next_random() % 4 == 0 ? (int64_t)(next_random() % 5) : 0);
    span = strides[axis] * (int64_t)(sizes[axis] > 0 ? sizes[axis] : 1);
    if (!is_dense && next_random() % 6 == 0) strides[axis] = -strides[axis];
    else if (!is_dense && !is_result && next_random() % 8 == 0) strides[axis] = 0;
    int64_t end = strides[axis] * ((int64_t)sizes[axis] - (sizes[axis] > 0));
    low += end < 0 ? end : 0;
    high += end > 0 ? end : 0;
  }
  memory m = {.byte_count = (uint64_t)(high - low + 1) * atlas_bytes(type)};
  m.bytes = malloc(m.byte_count);
  m.first = m.bytes + -low * (int64_t)atlas_bytes(type);
  int any = next_random() % 16 == 0;
  for (uint64_t i = 0; i < m.byte_count / atlas_bytes(type); i++) {
    uint64_t bits = is_result ? 0xa5a5a5a5a5a5a5a5u : some_bits(type, any);
    memcpy(m.bytes + i * atlas_bytes(type), &bits, atlas_bytes(type));
  }
  return m;
}

/* All of C's memory as it should be: what is between its elements stays. */
static uint8_t *expected(const hg_contraction *c, const memory *m) {
  uint8_t *bytes = malloc(m->byte_count);
  memset(bytes, 0xa5, m->byte_count);
  uint8_t *first = bytes + (m->first - m->bytes);
  for (uint64_t i = 0; i < c->batch; i++)
    for (uint64_t r = 0; r < c->m; r++)
      for (uint64_t s = 0; s < c->n; s++) {
        int64_t at = (int64_t)i * c->c_stride[0] + (int64_t)r * c->c_stride[1] + (int64_t)s * c->c_stride[2];
        uint64_t bits = defined(c, i, r, s);
        memcpy(first + at * (int64_t)atlas_bytes(c->type), &bits, atlas_bytes(c->type));
      }
  return bytes;
}

#endif
