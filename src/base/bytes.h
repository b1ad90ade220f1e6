/* bytes.h - little-endian reads and writes at any alignment, and CRC-32. */
#ifndef HG_BASE_BYTES_H
#define HG_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

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

#endif
