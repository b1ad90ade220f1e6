/* bytes.h - little-endian reads and writes at any alignment, CRC-32, and what hash tables in memory look up by. */
#ifndef HG_BASE_BYTES_H
#define HG_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The low `byte_count` (at most 8) bytes of a value. Written out for byte order, not for speed: compilers see through
 * it. */
static inline uint64_t hg_load_le(const void *memory, unsigned byte_count) {
  const uint8_t *bytes = memory;
  uint64_t value = 0;
  for (unsigned i = 0; i < byte_count; i++) value |= (uint64_t)bytes[i] << (8 * i);
  return value;
}

static inline void hg_store_le(void *memory, unsigned byte_count, uint64_t value) {
  uint8_t *bytes = memory;
  for (unsigned i = 0; i < byte_count; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

/* CRC-32 (reflected polynomial 0xEDB88320, as in zlib and PNG) of a range; start with crc = 0. */
uint32_t hg_crc32(uint32_t crc, const void *memory, size_t byte_count);

/* A hash that is extended by another value. */
static inline uint64_t hg_hash_mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

/* A hash of 8-byte words, at any alignment. Each word depends on the previous ones through one multiplication; two sums
 * halve that latency. */
static inline uint64_t hg_hash_words(const void *words, size_t count) {
  const uint8_t *at = words;
  uint64_t even = count, odd = 0, pair[2] = {0, 0};
  for (size_t i = 0; i + 1 < count; i += 2, at += sizeof pair) {
    memcpy(pair, at, sizeof pair);
    even = (even ^ pair[0]) * UINT64_C(0x9e3779b97f4a7c15);
    odd = (odd ^ pair[1]) * UINT64_C(0xd6e8feb86659fd93);
    even ^= even >> 32;
    odd ^= odd >> 32;
  }
  if (count % 2 != 0) {
    memcpy(pair, at, sizeof *pair);
    even = (even ^ pair[0]) * UINT64_C(0x9e3779b97f4a7c15);
  }
  even ^= odd * UINT64_C(0xff51afd7ed558ccd);
  return even ^ even >> 29;
}

#endif
