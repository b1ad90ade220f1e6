/* sha256.h - SHA-256 (FIPS 180-4): the identity of programs and the check on cached files. */
#ifndef HG_BASE_SHA256_H
#define HG_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { HG_SHA256_BYTES = 32, HG_SHA256_HEX = 65 /* with the NUL */ };

typedef struct hg_sha256 {
  uint32_t state[8];
  uint64_t byte_count;
  uint8_t block[64];
} hg_sha256;

void hg_sha256_begin(hg_sha256 *hash);
void hg_sha256_add(hg_sha256 *hash, const void *bytes, size_t byte_count);
void hg_sha256_end(hg_sha256 *hash, uint8_t digest[HG_SHA256_BYTES]);

/* Lower-case hexadecimal. */
void hg_sha256_hex(const uint8_t digest[HG_SHA256_BYTES], char text[HG_SHA256_HEX]);

#endif
