/* bytes.c - CRC-32. */
#include "base/bytes.h"

uint32_t hg_crc32(uint32_t crc, const void *memory, size_t byte_count) {
  /* Half a byte at a time: 16 table entries, readable, and fast enough for program files. */
  static const uint32_t table[16] = {0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u,
                                     0x4db26158u, 0x5005713cu, 0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
                                     0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu};
  const uint8_t *bytes = memory;
  crc = ~crc;
  for (size_t i = 0; i < byte_count; i++) {
    crc = table[(crc ^ bytes[i]) & 15] ^ (crc >> 4);
    crc = table[(crc ^ (bytes[i] >> 4)) & 15] ^ (crc >> 4);
  }
  return ~crc;
}
