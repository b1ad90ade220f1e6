/* ptx_value.h - arithmetic of the PTX machine, on raw bits. */
#ifndef HG_TESTS_PTX_VALUE_H
#define HG_TESTS_PTX_VALUE_H

#include "ptx_text.h"

static inline uint64_t ptx_low(uint64_t bits, unsigned width) {
  return width >= 64 ? bits : bits & ((UINT64_C(1) << width) - 1);
}

static inline int64_t ptx_signed(uint64_t bits, unsigned width) {
  if (width >= 64) return (int64_t)bits;
  uint64_t sign = UINT64_C(1) << (width - 1);
  return (int64_t)((ptx_low(bits, width) ^ sign) - sign);
}

/* The type of twice the width. */
ptx_type ptx_wider(ptx_type type);

/* The result of an instruction that only computes, and its width in bits; NULL, or what is wrong with it. */
const char *ptx_compute(const ptx_insn *insn, const uint64_t a[4], uint8_t *carry, uint64_t *result, unsigned *width);

/* 1 or 0; -1: there is no such comparison. */
int ptx_compare(const char *compare, ptx_type type, uint64_t a, uint64_t b);

#endif
