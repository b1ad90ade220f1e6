/* sha256.c - SHA-256 after FIPS 180-4, sections 4.1.2, 4.2.2, 5 and 6.2. */
#include "base/sha256.h"

#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t value, int count) { return value >> count | value << (32 - count); }

static void add_block(uint32_t state[8], const uint8_t block[64]) {
  uint32_t w[64];
  for (int t = 0; t < 16; t++)
    w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 | (uint32_t)block[4 * t + 2] << 8 |
           block[4 * t + 3];
  for (int t = 16; t < 64; t++) {
    uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
    uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int t = 0; t < 64; t++) {
    uint32_t big1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25), choose = (e & f) ^ (~e & g);
    uint32_t big0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22), majority = (a & b) ^ (a & c) ^ (b & c);
    uint32_t t1 = h + big1 + choose + round_constants[t] + w[t];
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + big0 + majority;
  }
  const uint32_t v[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; i++) state[i] += v[i];
}

void hg_sha256_begin(hg_sha256 *hash) {
  /* The first 32 bits of the fractional parts of the square roots of the first 8 primes. */
  static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memset(hash, 0, sizeof *hash);
  memcpy(hash->state, initial, sizeof initial);
}

void hg_sha256_add(hg_sha256 *hash, const void *bytes, size_t byte_count) {
  const uint8_t *next = bytes;
  while (byte_count > 0) {
    size_t held = (size_t)(hash->byte_count % 64), taken = 64 - held < byte_count ? 64 - held : byte_count;
    memcpy(hash->block + held, next, taken);
    hash->byte_count += taken;
    next += taken;
    byte_count -= taken;
    if (held + taken == 64) add_block(hash->state, hash->block);
  }
}

void hg_sha256_end(hg_sha256 *hash, uint8_t digest[HG_SHA256_BYTES]) {
  static const uint8_t padding[64] = {0x80};
  uint64_t bit_count = hash->byte_count * 8;
  uint8_t length[8];
  for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bit_count >> (56 - 8 * i));
  hg_sha256_add(hash, padding, (size_t)(1 + (119 - hash->byte_count % 64) % 64));
  hg_sha256_add(hash, length, sizeof length);
  for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void hg_sha256_hex(const uint8_t digest[HG_SHA256_BYTES], char text[HG_SHA256_HEX]) {
  for (int i = 0; i < HG_SHA256_BYTES; i++) {
    text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
    text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
  }
  text[2 * HG_SHA256_BYTES] = '\0';
}
