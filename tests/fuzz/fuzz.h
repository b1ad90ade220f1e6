/* fuzz.h - what the fuzzers share: a way to stop on a broken promise, and mended checksums, without which hardly any
 * changed binary program would get past the first check. */
#ifndef FUZZ_H
#define FUZZ_H

#include "hologram/hologram.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROMISE(condition)                                                                                 \
  do {                                                                                                     \
    if (!(condition)) {                                                                                    \
      fprintf(stderr, "%s:%d: broken promise: %s\n%s\n", __FILE__, __LINE__, #condition, hg_last_error()); \
      abort();                                                                                             \
    }                                                                                                      \
  } while (0)

enum { FUZZ_LENGTH_OFFSET = 16, FUZZ_CRC_OFFSET = 20, FUZZ_HEADER_BYTES = 24 };

/* CRC-32 (ISO 3309), bit by bit. */
static inline uint32_t fuzz_crc(const uint8_t *bytes, size_t size) {
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < size; i++) {
    crc ^= bytes[i];
    for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

static inline void fuzz_store_u32(uint8_t *bytes, uint32_t value) {
  for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> 8 * i);
}

/* A copy of the bytes (malloc) whose length and checksum are right. */
static inline uint8_t *fuzz_mended(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size > 0 ? size : 1);
  PROMISE(copy != NULL);
  if (size > 0) memcpy(copy, data, size);
  if (size >= FUZZ_HEADER_BYTES) {
    fuzz_store_u32(copy + FUZZ_LENGTH_OFFSET, (uint32_t)size);
    fuzz_store_u32(copy + FUZZ_CRC_OFFSET, 0);
    fuzz_store_u32(copy + FUZZ_CRC_OFFSET, fuzz_crc(copy, size));
  }
  return copy;
}

/* Equal in text and in bytes: every form of the one gives every form of the other. */
static inline void fuzz_same_program(const atlas_program *a, const atlas_program *b) {
  char *text_a = NULL, *text_b = NULL;
  size_t length_a = 0, length_b = 0;
  PROMISE(atlas_print(NULL, a, &text_a, &length_a) == HG_OK);
  PROMISE(atlas_print(NULL, b, &text_b, &length_b) == HG_OK);
  PROMISE(length_a == length_b && memcmp(text_a, text_b, length_a) == 0);
  atlas_memory_release(NULL, text_a);
  atlas_memory_release(NULL, text_b);
}

#endif
