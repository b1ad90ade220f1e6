/* test_binary.c - the binary form: damage of every kind is found, and bytes made to pass the checksum do no harm. */
#include "base/bytes.h"
#include "programs.h"

enum { CRC_OFFSET = 20, LENGTH_OFFSET = 16, COUNT_OFFSET = 14, HEADER = 24 };

static const char sample[] =
    ".program sample\n.block 64, 2\n.buffer x f32 in handle 9\n.buffer y f32 inout\n.scalar a f32\n"
    ".shared s f32 128\n.local l f32 8\n.const c u8 { #1, #2, #3 }\n.const d f64 { #1.5 }\n.table t 3 inout\n"
    ".pool heap\n    ldg.f32 r0, [x + lane]\n    ldc.u8 r1, [c + #2]\n"
    "    fma.f32 r0, r0, r0, a\n    sts.f32 [s + blane], r0\n"
    "    stl.f32 [l + #7], r0\n    ldl.f32 r0, [l + blane]\n    bar.sync\n    set.lt.f32 p0, r0, #1.5\n@!p0 bra skip\n"
    "    stg.f32 [y + lane + #-1], r0\n"
    "skip: ldg.u8 r2, [phi 1, 2, 3]\n    movi.u32 r3, #3\nback: loop r3, back\n    pool.alloc.u64 r4, heap, #16\n"
    "    ldg.u8 r5, [r3 : r4]\n    ldg.u8 r5, [phi r3, 1, r3]\n    sreg.u32 r6, block.y\n    len.u64 r7, y\n"
    "    atom.add.u32 _, [n], #1\n"
    "    exit\n";
static const char library[] =
    ".const k f32 { #1 }\n.entry exp f32 f\n.entry log f32 g\nf: add.f32 r0, r0, #1\n ret\ng: ret\n";

typedef struct image {
  uint8_t *bytes;
  size_t length;
} image;

static image encode(const char *text) {
  atlas_program *program = must_parse(text);
  void *bytes = NULL;
  image result = {NULL, 0};
  CHECK_EQ_U64(atlas_encode(NULL, program, &bytes, &result.length), HG_OK);
  result.bytes = bytes;
  check_round_trip(program);
  atlas_program_release(program);
  return result;
}

static void reseal(uint8_t *bytes, size_t length) {
  hg_store_le(bytes + CRC_OFFSET, 4, 0);
  hg_store_le(bytes + CRC_OFFSET, 4, hg_crc32(0, bytes, length));
}

/* Decodes a copy that is exactly as long as it says, so that a sanitizer sees a read past its end. */
static hg_status decode(const uint8_t *bytes, size_t length, atlas_program **program) {
  uint8_t *exact = malloc(length > 0 ? length : 1);
  memcpy(exact, bytes, length);
  hg_status status = atlas_decode(NULL, exact, length, program);
  free(exact);
  CHECK((status == HG_OK) == (*program != NULL));
  return status;
}

static void check_refused(const uint8_t *bytes, size_t length, const char *message) {
  atlas_program *program = NULL;
  CHECK_EQ_U64(decode(bytes, length, &program), HG_FORMAT);
  CHECK_STR(hg_last_error(), message);
  atlas_program_release(program);
}

/* Every bit and every length, as a transfer might damage them. */
static void test_damage(image good) {
  atlas_program *program = NULL;
  uint8_t *bytes = malloc(good.length + 1);
  memcpy(bytes, good.bytes, good.length);
  bytes[good.length] = 0;
  for (size_t i = 0; i < good.length; i++)
    for (int bit = 0; bit < 8; bit++) {
      bytes[i] ^= (uint8_t)(1 << bit);
      CHECK_EQ_U64(decode(bytes, good.length, &program), HG_FORMAT);
      bytes[i] ^= (uint8_t)(1 << bit);
    }
  for (size_t length = 0; length < good.length; length++) CHECK_EQ_U64(decode(bytes, length, &program), HG_FORMAT);
  CHECK_EQ_U64(decode(bytes, good.length + 1, &program), HG_FORMAT);
  CHECK_EQ_U64(decode(bytes, good.length, &program), HG_OK);
  atlas_program_release(program);
  free(bytes);
}

static void check_hostile(const uint8_t *bytes, size_t length) {
  atlas_program *program = NULL;
  hg_status status = decode(bytes, length, &program);
  CHECK(status == HG_OK || status == HG_FORMAT || status == HG_VERIFY);
  if (status == HG_OK) check_round_trip(program); /* what is accepted is a program like any other */
  atlas_program_release(program);
}

/* The same with a checksum that fits: nothing may be read out of range, and what decodes must be sound. */
static void test_hostile(image good) {
  uint8_t *bytes = malloc(good.length);
  for (size_t i = 0; i < good.length; i++) {
    const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, (uint8_t)(good.bytes[i] + 1), (uint8_t)(good.bytes[i] ^ 0x10)};
    for (size_t k = 0; k < sizeof values; k++) {
      memcpy(bytes, good.bytes, good.length);
      bytes[i] = values[k];
      reseal(bytes, good.length);
      check_hostile(bytes, good.length);
    }
  }
  for (size_t i = HEADER; i + 4 <= good.length; i++) { /* counts and lengths */
    const uint32_t values[] = {0xffffffff, 0x80000000, 0x7fffffff, 0x10000000, (uint32_t)good.length, 0};
    for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
      memcpy(bytes, good.bytes, good.length);
      hg_store_le(bytes + i, 4, values[k]);
      reseal(bytes, good.length);
      check_hostile(bytes, good.length);
    }
  }
  for (size_t length = HEADER; length < good.length; length++) { /* cut off, and honest about it */
    memcpy(bytes, good.bytes, length);
    hg_store_le(bytes + LENGTH_OFFSET, 4, length);
    reseal(bytes, length);
    atlas_program *program = NULL;
    hg_status status = decode(bytes, length, &program);
    CHECK(status == HG_FORMAT || status == HG_VERIFY);
  }
  uint64_t state = 5;
  for (int i = 0; i < 20000; i++) {
    memcpy(bytes, good.bytes, good.length);
    for (int k = 0; k < 4; k++) bytes[next_random(&state) % good.length] = (uint8_t)next_random(&state);
    reseal(bytes, good.length);
    check_hostile(bytes, good.length);
  }
  free(bytes);
}

/* ---- header and sections --------------------------------------------------------------------------------------- */

static void test_header(image good) {
  uint8_t *bytes = malloc(good.length);
  memcpy(bytes, good.bytes, good.length);
  check_refused(bytes, 0, "these bytes are not a binary Atlas program: they start differently");
  check_refused((const uint8_t *)"exit", 4, "these bytes are not a binary Atlas program: they start differently");
  check_refused(bytes, 23, "the program is cut off in its header");
  bytes[8] = 2;
  check_refused(bytes, good.length, "the program has binary version 2; this library knows version 1");
  bytes[8] = 1, bytes[10] = 7;
  check_refused(bytes, good.length, "the program has ISA version 7; this library knows version 1");
  bytes[10] = 1, bytes[12] = 3;
  check_refused(bytes, good.length, "the program has numerics version 3; this library knows version 1");
  bytes[12] = 1, bytes[HEADER + 9] ^= 1;
  check_refused(bytes, good.length, "the program's checksum does not fit: its bytes were changed");
  free(bytes);
}

/* The program with a section added at its end. */
static image with_section(image good, unsigned id, unsigned flags, unsigned size, unsigned stated_size) {
  image more = {calloc(1, good.length + 8 + size), good.length + 8 + size};
  memcpy(more.bytes, good.bytes, good.length);
  hg_store_le(more.bytes + COUNT_OFFSET, 2, hg_load_le(more.bytes + COUNT_OFFSET, 2) + 1);
  hg_store_le(more.bytes + LENGTH_OFFSET, 4, more.length);
  hg_store_le(more.bytes + good.length, 2, id);
  hg_store_le(more.bytes + good.length + 2, 2, flags);
  hg_store_le(more.bytes + good.length + 4, 4, stated_size);
  reseal(more.bytes, more.length);
  return more;
}

static void check_section(image good, unsigned id, unsigned flags, unsigned size, unsigned stated_size,
                          const char *message) {
  image more = with_section(good, id, flags, size, stated_size);
  atlas_program *program = NULL, *original = NULL;
  if (message != NULL) {
    check_refused(more.bytes, more.length, message);
  } else {
    CHECK_EQ_U64(decode(more.bytes, more.length, &program), HG_OK);
    CHECK_EQ_U64(decode(good.bytes, good.length, &original), HG_OK);
    CHECK(program != NULL && original != NULL && same_program(program, original, 1));
  }
  atlas_program_release(program);
  atlas_program_release(original);
  free(more.bytes);
}

static void test_sections(image good) {
  check_section(good, 1000, 0, 5, 5, NULL); /* not known and not critical: skipped */
  check_section(good, 1000, 1, 5, 5, "section 1000 is needed to run the program, and this version does not know it");
  check_section(good, 64, 0, 0, 0, "section 64 is not in its place");
  check_section(good, 7, 0, 0, 0, "section 7 is not in its place");
  check_section(good, 1000, 0, 5, 6, "section 6 is cut off");
  check_section(good, 1000, 0, 5, 4, "1 bytes stand after the last section");
  uint8_t header[HEADER];
  memcpy(header, good.bytes, HEADER);
  hg_store_le(header + COUNT_OFFSET, 2, 0);
  hg_store_le(header + LENGTH_OFFSET, 4, HEADER);
  reseal(header, HEADER);
  check_refused(header, HEADER, "the program has no name or no code");
}

/* A section of its own, which nobody may skip; a program without it has not a byte of it. */
static void test_default_block(void) {
  image with = encode(".block 48 default\nexit\n"), without = encode("exit\n");
  CHECK_EQ_U64(with.length, without.length + 8 + 12);
  const uint8_t section[] = {7, 0, 1, 0, 12, 0, 0, 0, 48, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
  size_t at = with.length - 12 - sizeof section; /* the lines stand behind it */
  CHECK(memcmp(with.bytes + at, section, sizeof section) == 0);
  test_damage(with);
  test_hostile(with);
  with.bytes[at + 8] = 0;
  reseal(with.bytes, with.length);
  check_refused(with.bytes, with.length, "the default block has no lanes");
  atlas_memory_release(NULL, with.bytes);
  atlas_memory_release(NULL, without.bytes);
}

static void test_unknown_types(image good) {
  static const uint8_t x[] = {1, 'x', ATLAS_SYMBOL_BUFFER, ATLAS_f32},
                       load[] = {ATLAS_OP_fma & 0xff, ATLAS_OP_fma >> 8};
  uint8_t *bytes = malloc(good.length);
  size_t at = HEADER;
  memcpy(bytes, good.bytes, good.length);
  while (memcmp(bytes + at, x, sizeof x) != 0) at++;
  bytes[at + 3] = 77;
  reseal(bytes, good.length);
  check_refused(bytes, good.length, "symbol 1: 'x' is of type code 77, which is unknown");
  memcpy(bytes, good.bytes, good.length);
  while (memcmp(bytes + at, load, sizeof load) != 0 || bytes[at + 2] != ATLAS_f32) at++;
  bytes[at + 2] = 77;
  reseal(bytes, good.length);
  atlas_program *program = NULL;
  CHECK_EQ_U64(decode(bytes, good.length, &program), HG_VERIFY);
  CHECK_STR(hg_last_error(), "program:14: 'fma': its type code 77 is unknown");
  free(bytes);
}

/* Lines are kept, but nothing needs them. */
static void test_without_lines(void) {
  image good = encode("exit\n");
  size_t lines = 8 + 4; /* the section at the end */
  uint8_t *bytes = good.bytes;
  atlas_program *program = NULL;
  CHECK_EQ_U64(decode(bytes, good.length, &program), HG_OK);
  CHECK_EQ_U64(program != NULL ? atlas_insn_at(program, 0)->line : 99, 1);
  atlas_program_release(program);
  hg_store_le(bytes + COUNT_OFFSET, 2, hg_load_le(bytes + COUNT_OFFSET, 2) - 1);
  hg_store_le(bytes + LENGTH_OFFSET, 4, good.length - lines);
  reseal(bytes, good.length - lines);
  CHECK_EQ_U64(decode(bytes, good.length - lines, &program), HG_OK);
  CHECK_EQ_U64(program != NULL ? atlas_insn_at(program, 0)->line : 99, 0);
  atlas_program_release(program);
  atlas_memory_release(NULL, bytes);
}

static hg_status decode_and_encode(const hg_allocator *allocator, void *argument) {
  const image *good = argument;
  atlas_program *program = NULL;
  void *bytes = NULL;
  size_t length = 0;
  hg_status status = atlas_decode(allocator, good->bytes, good->length, &program);
  if (status != HG_OK) return status;
  status = atlas_encode(allocator, program, &bytes, &length);
  atlas_memory_release(allocator, bytes);
  atlas_program_release(program);
  return status;
}

static void test_arguments(image good) {
  atlas_program *program = NULL;
  void *bytes = NULL;
  size_t length = 0;
  CHECK_EQ_U64(atlas_decode(NULL, NULL, 10, &program), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(atlas_decode(NULL, good.bytes, good.length, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(atlas_encode(NULL, NULL, &bytes, &length), HG_INVALID_ARGUMENT);
}

int main(void) {
  char text[sizeof sample + 32];
  snprintf(text, sizeof text, ".buffer n u32 inout\n%s", sample + strcspn(sample, "\n") + 1);
  image good = encode(text), functions = encode(library);
  test_arguments(good);
  test_damage(good);
  test_damage(functions);
  test_hostile(good);
  test_hostile(functions);
  test_header(good);
  test_sections(good);
  test_unknown_types(good);
  test_default_block();
  test_without_lines();
  check_every_allocation(decode_and_encode, &good);
  atlas_memory_release(NULL, good.bytes);
  atlas_memory_release(NULL, functions.bytes);
  return check_report();
}
