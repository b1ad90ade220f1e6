/* fingerprint.c - what the compiler makes of random programs and of program files, as one line a program and target: to
 * see whether a change that claims no change in any kernel made one.
 *
 *   fingerprint SEED COUNT [FILE.atlas]...    first random program, how many; then files
 *
 * Two builds that print the same make the same code. */
#include "atlas/functions.h"
#include "base/sha256.h"
#include "generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Machine code names the function library's tables by where they lie in this process: by how far into them instead. */
static int into_tables(uint64_t *address) {
  *address -= (uint64_t)(uintptr_t)atlas_functions.constants.data;
  return *address < atlas_functions.constants.count;
}

static void forget_addresses_x86(uint8_t *code, size_t count) {
  for (size_t i = 0; i + 8 <= count; i++) {
    uint64_t address;
    memcpy(&address, code + i, 8);
    if (into_tables(&address)) memcpy(code + i, &address, 8);
  }
}

/* movz and movk, one after the other into one register. */
static void forget_addresses_arm64(uint8_t *code, size_t count) {
  enum { MOVZ = 0x1a5, MOVK = 0x1e5 }; /* bits 23 to 31 */
  uint32_t word[4];
  for (size_t i = 0; i + sizeof word <= count; i += 4) {
    uint64_t address = 0;
    size_t words = 0;
    memcpy(word, code + i, sizeof word);
    while (words < 4 && word[words] >> 23 == (words == 0 ? MOVZ : MOVK) && (word[words] & 31) == (word[0] & 31)) {
      address |= (uint64_t)(word[words] >> 5 & 0xffff) << 16 * (word[words] >> 21 & 3);
      words++;
    }
    if (words < 2 || !into_tables(&address)) continue;
    memset(code + i, 0, words * 4);
    memcpy(code + i, &address, words * 4 < 8 ? words * 4 : 8);
  }
}

static const struct {
  const char *name;
  uint32_t capability;
  void (*forget_addresses)(uint8_t *code, size_t count);
} targets[] = {{"vector", 0, NULL},
               {"x86-avx512", 0, forget_addresses_x86},
               {"x86-avx2", 0, forget_addresses_x86},
               {"arm64", 0, forget_addresses_arm64},
               {"ptx", 75, NULL},
               {"ptx", 80, NULL},
               {"ptx", 90, NULL}};

static void print_digest(const void *bytes, size_t count) {
  uint8_t digest[HG_SHA256_BYTES];
  hg_sha256 hash;
  hg_sha256_begin(&hash);
  hg_sha256_add(&hash, bytes, count);
  hg_sha256_end(&hash, digest);
  for (int i = 0; i < 8; i++) printf("%02x", digest[i]);
}

static void print_program(const atlas_program *program) {
  uint8_t hash[ATLAS_HASH_BYTES];
  if (atlas_program_hash(program, hash) == HG_OK) print_digest(hash, sizeof hash);
  for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
    void *bytes = NULL;
    size_t count = 0;
    putchar(' ');
    if (hg_emit(NULL, program, targets[t].name, targets[t].capability, &bytes, &count) != HG_OK)
      printf("none: %s", hg_last_error());
    else {
      if (targets[t].forget_addresses != NULL) targets[t].forget_addresses(bytes, count);
      print_digest(bytes, count);
    }
    atlas_memory_release(NULL, bytes);
  }
  putchar('\n');
}

static void print_random(uint64_t seed) {
  draft d = {0};
  test_launch l = {0};
  generate(seed, 10 + (uint32_t)(seed % 90), seed < SEEDS_OF_ALL_OPERATIONS ? FIRST_GENERATION : ALL_OPERATIONS, &d,
           &l);
  atlas_program *program = draft_build(&d);
  printf("%llu ", (unsigned long long)seed);
  if (program != NULL) print_program(program);
  else printf("does not verify\n");
  atlas_program_release(program);
  draft_release(&d);
  test_launch_release(&l);
}

static int print_file(const char *path) {
  static char text[1 << 20];
  FILE *file = fopen(path, "rb");
  if (file == NULL) return 0;
  size_t count = fread(text, 1, sizeof text, file);
  fclose(file);
  atlas_program *program = NULL;
  const char *name = strrchr(path, '/');
  printf("%s ", name != NULL ? name + 1 : path);
  if (atlas_parse(NULL, text, count, path, &program) != HG_OK) printf("is none\n");
  else print_program(program);
  atlas_program_release(program);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: fingerprint SEED COUNT [FILE.atlas]...\n");
    return 2;
  }
  uint64_t seed = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
  for (uint64_t i = 0; i < count; i++) print_random(seed + i);
  for (int i = 3; i < argc; i++)
    if (!print_file(argv[i])) {
      fprintf(stderr, "fingerprint: %s could not be read\n", argv[i]);
      return 1;
    }
  return 0;
}
