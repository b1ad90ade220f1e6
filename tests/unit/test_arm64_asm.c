/* test_arm64_asm.c - the A64 assembler. Alone: words known from the manual, labels, literals, long code.
 *
 *   test_arm64_asm --source   every row of the tables and every function in the syntax of GNU as
 *   test_arm64_asm --words    the same instructions as the assembler writes them, one hexadecimal word a line
 *
 * so that another assembler can be asked (./dev test aarch64). */
#include "backend/cpu/arm64/arm64_asm.h"
#include "check.h"

#include <stdarg.h>

static hg_allocator allocator;

static const char *const element[4] = {"b", "h", "s", "d"};
static const char *const full[4] = {"16b", "8h", "4s", "2d"};
static const char *const half[4] = {"8b", "4h", "2s", "1d"};

/* ---- everything, as text and as words ---------------------------------------------------------------------------- */

static a64_asm everything;
static int prints_source;

static void source(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (prints_source) {
    vprintf(format, arguments);
    printf("\n");
  }
  va_end(arguments);
}

/* The sizes a form or an instruction exists for. */
enum { ALL = 15, TO_S = 7, FLOATS = 12, BYTES = 1 };

static int sizes_of(a64_op op) {
  switch (op) {
  case A64_mul:
  case A64_smax:
  case A64_smin:
  case A64_umax:
  case A64_umin:
  case A64_umaxp:
  case A64_clz:
  case A64_rev64: return TO_S;
  case A64_rev32: return 3;
  default: return ALL;
  }
}

#define VECTORS(form, count, text, ...)                                                          \
  static void form(a64_op op, const char *mnemonic) {                                            \
    const unsigned d = 1, n = 22, m = 15;                                                         \
    for (unsigned s = 0; s < 4; s++) {                                                            \
      if (!(sizes_of(op) & (count) & 1 << s)) continue;                                           \
      source(text, mnemonic, __VA_ARGS__);                                                        \
      hg_a64(&everything, op, s, d, n, m);                                                        \
    }                                                                                             \
  }

VECTORS(list_V3, ALL, "%s v%u.%s, v%u.%s, v%u.%s", d, full[s], n, full[s], m, full[s])
VECTORS(list_F3, FLOATS, "%s v%u.%s, v%u.%s, v%u.%s", d, full[s], n, full[s], m, full[s])
VECTORS(list_B3, BYTES, "%s v%u.16b, v%u.16b, v%u.16b", d, n, m)
VECTORS(list_D3, BYTES, "%s v%u.4s, v%u.16b, v%u.16b", d, n, m)
VECTORS(list_R3, BYTES, "%s x%u, x%u, x%u", d, n, m)

#undef VECTORS
#define VECTORS(form, count, text, ...)                                                          \
  static void form(a64_op op, const char *mnemonic) {                                            \
    const unsigned d = 19, n = 6;                                                                 \
    for (unsigned s = 0; s < 4; s++) {                                                            \
      if (!(sizes_of(op) & (count) & 1 << s)) continue;                                           \
      source(text, mnemonic, __VA_ARGS__);                                                        \
      hg_a64(&everything, op, s, d, n, 0);                                                        \
    }                                                                                             \
  }

VECTORS(list_V2, ALL, "%s v%u.%s, v%u.%s", d, full[s], n, full[s])
VECTORS(list_F2, FLOATS, "%s v%u.%s, v%u.%s", d, full[s], n, full[s])
VECTORS(list_B2, BYTES, "%s v%u.16b, v%u.16b", d, n)
VECTORS(list_V0, ALL, "%s v%u.%s, v%u.%s, #0", d, full[s], n, full[s])
VECTORS(list_F0, FLOATS, "%s v%u.%s, v%u.%s, #0.0", d, full[s], n, full[s])
VECTORS(list_P2, TO_S, "%s v%u.%s, v%u.%s", d, full[s + 1], n, full[s])
VECTORS(list_U2, TO_S, "%s %s%u, v%u.%s", element[s], d, n, full[s])
VECTORS(list_R2, BYTES, "%s x%u, x%u", d, n)

static int is_upper(const char *mnemonic) { return mnemonic[strlen(mnemonic) - 1] == '2'; }
static int is_narrow_w(a64_op op) { return op == A64_subs_w; }

static void list_L3(a64_op op, const char *mnemonic) {
  const char *const *from = is_upper(mnemonic) ? full : half;
  for (unsigned s = 0; s < 3; s++) {
    source("%s v3.%s, v30.%s, v11.%s", mnemonic, full[s + 1], from[s], from[s]);
    hg_a64(&everything, op, s, 3, 30, 11);
  }
}

static void list_N2(a64_op op, const char *mnemonic) {
  for (unsigned s = 0; s < 3; s++) {
    source("%s v3.%s, v30.%s", mnemonic, is_upper(mnemonic) ? full[s] : half[s], full[s + 1]);
    hg_a64(&everything, op, s, 3, 30, 0);
  }
}

static void list_shift(a64_op op, const char *mnemonic, int is_right, int is_wide) {
  const char *const *from = is_wide && !is_upper(mnemonic) ? half : full;
  for (unsigned s = 0; s < 4u - (unsigned)is_wide; s++)
    for (unsigned count = (unsigned)is_right; count < (8u << s) + (unsigned)is_right; count += 3) {
      source("%s v9.%s, v17.%s, #%u", mnemonic, full[s + (unsigned)is_wide], from[s], count);
      hg_a64_shift(&everything, op, s, 9, 17, count);
    }
}

static void list_SL(a64_op op, const char *mnemonic) { list_shift(op, mnemonic, 0, 0); }
static void list_SR(a64_op op, const char *mnemonic) { list_shift(op, mnemonic, 1, 0); }
static void list_SW(a64_op op, const char *mnemonic) { list_shift(op, mnemonic, 0, 1); }

static void list_w(a64_op op, const char *mnemonic) {
  source("%s w4, w5, w6", mnemonic);
  hg_a64(&everything, op, 0, 4, 5, 6);
}

static void list_rows(void) {
#define A64(id, mnemonic, word, form)                        \
  if (is_narrow_w(A64_##id)) list_w(A64_##id, mnemonic);     \
  else list_##form(A64_##id, mnemonic);
#include "backend/cpu/arm64/arm64_asm.def"
#undef A64
}

/* Offsets of both forms, and one that fits neither. */
static void list_access(a64_memory_op op, const char *mnemonic, char letter, unsigned log2) {
  static const int64_t offsets[] = {0, 1, 16, -1, -256, 255, 4095 * 16};
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
    int64_t offset = i == 6 ? (INT64_C(4095) << log2) : offsets[i];
    source("%s %c7, [x21, #%lld]", mnemonic, letter, (long long)offset);
    hg_a64_memory(&everything, op, 7, 21, offset);
  }
  source("movz x16, #1\nmovk x16, #0x1234, lsl #16\n%s %c7, [x21, x16]", mnemonic, letter);
  hg_a64_memory(&everything, op, 7, 21, 0x12340001);
  if (log2 == 0) return;
  source("%s %c8, [x20, x9, lsl #%u]", mnemonic, letter, log2);
  hg_a64_indexed(&everything, op, 8, 20, 9, 1);
}

static void list_memory(void) {
#define A64_MEMORY(id, mnemonic, word, log2) list_access(A64_##id, mnemonic, #id[sizeof #id - 2], log2);
#include "backend/cpu/arm64/arm64_memory.def"
#undef A64_MEMORY
}

static void list_lanes(unsigned s, unsigned lane) {
  a64_asm *a = &everything;
  const char *e = element[s];
  char general = s == A64_64B ? 'x' : 'w';
  source("dup v1.%s, v2.%s[%u]", full[s], e, lane);
  hg_a64_dup_lane(a, s, 1, 2, lane);
  source("mov v3.%s[%u], %c4", e, lane, general);
  hg_a64_insert(a, s, 3, lane, 4);
  source("mov v5.%s[%u], v6.%s[%u]", e, lane, e, (16u >> s) - 1 - lane);
  hg_a64_insert_lane(a, s, 5, lane, 6, (16u >> s) - 1 - lane);
  source("umov %c7, v8.%s[%u]", general, e, lane);
  hg_a64_extract(a, s, 7, 8, lane);
  source(s == A64_64B ? "umov x7, v8.%s[%u]" : "smov x7, v8.%s[%u]", e, lane);
  hg_a64_extract_signed(a, s, 7, 8, lane);
  source("ld1 {v9.%s}[%u], [x10]", e, lane);
  hg_a64_load_lane(a, s, 9, lane, 10);
  source("st1 {v11.%s}[%u], [x12]", e, lane);
  hg_a64_store_lane(a, s, 11, lane, 12);
}

static void list_vectors(void) {
  a64_asm *a = &everything;
  for (unsigned s = 0; s < 4; s++) {
    source("dup v1.%s, %c2", full[s], s == A64_64B ? 'x' : 'w');
    hg_a64_dup(a, s, 1, 2);
    source("ld1r {v3.%s}, [x4]", full[s]);
    hg_a64_load_all(a, s, 3, 4);
    for (unsigned lane = 0; lane < 16u >> s; lane++) list_lanes(s, lane);
  }
  source("mov v5.16b, v6.16b");
  hg_a64_move_vector(a, 5, 6);
  source("fcvtl v1.4s, v2.4h\nfcvtl2 v1.4s, v2.8h\nfcvtl v1.2d, v2.2s\nfcvtl2 v1.2d, v2.4s");
  source("fcvtn v1.4h, v2.4s\nfcvtn2 v1.8h, v2.4s\nfcvtn v1.2s, v2.2d\nfcvtn2 v1.4s, v2.2d");
  for (unsigned to = 2; to < 4; to++)
    for (int upper = 0; upper < 2; upper++) hg_a64_fcvtl(a, to, upper, 1, 2);
  for (unsigned to = 1; to < 3; to++)
    for (int upper = 0; upper < 2; upper++) hg_a64_fcvtn(a, to, upper, 1, 2);
}

static void list_conversions(void) {
  source("fcvtxn v1.2s, v2.2d\nfcvtxn2 v1.4s, v2.2d\nscvtf s3, x4\nucvtf s3, x4");
  hg_a64_fcvtxn(&everything, 0, 1, 2);
  hg_a64_fcvtxn(&everything, 1, 1, 2);
  hg_a64_to_float(&everything, 1, 3, 4);
  hg_a64_to_float(&everything, 0, 3, 4);
}

static void list_constants(void) {
  a64_asm *a = &everything;
  source("movi v1.4s, #0\nmovi v1.4s, #0xab, lsl #16\nmvni v1.4s, #0xab, lsl #8");
  hg_a64_constant(a, A64_32B, 1, 0);
  hg_a64_constant(a, A64_32B, 1, 0xab0000);
  hg_a64_constant(a, A64_32B, 1, 0xffff54ff);
  source("movi v2.16b, #0xc5\nmovi v2.2d, #0xff00ff0000ffff00");
  hg_a64_constant(a, A64_8B, 2, 0xc5);
  hg_a64_constant(a, A64_64B, 2, UINT64_C(0xff00ff0000ffff00));
  source("fmov v3.4s, #1.0\nfmov v3.4s, #-0.1328125\nfmov v3.2d, #31.0\nfmov v3.2d, #0.5");
  hg_a64_constant(a, A64_32B, 3, 0x3f800000);
  hg_a64_constant(a, A64_32B, 3, 0xbe080000);
  hg_a64_constant(a, A64_64B, 3, UINT64_C(0x403f000000000000));
  hg_a64_constant(a, A64_64B, 3, UINT64_C(0x3fe0000000000000));
}

static void list_general(void) {
  a64_asm *a = &everything;
  source("mov x1, x2\nmov x3, #0\nmov x3, #-1\nmovz x3, #0x1234, lsl #48\nmovn x3, #0xedcb, lsl #32");
  hg_a64_move(a, 1, 2);
  hg_a64_move_imm(a, 3, 0);
  hg_a64_move_imm(a, 3, UINT64_MAX);
  hg_a64_move_imm(a, 3, UINT64_C(0x1234) << 48);
  hg_a64_move_imm(a, 3, UINT64_C(0xffff1234ffffffff));
  source("movz x3, #0x4321\nmovk x3, #0x8765, lsl #16\nmovk x3, #0xcba9, lsl #32\nmovk x3, #0xfed, lsl #48");
  hg_a64_move_imm(a, 3, UINT64_C(0x0fedcba987654321));
  source("add x1, x2, #5\nsub x1, x2, #4095\nadd sp, sp, #1, lsl #12\nadd x1, x2, #0x123, lsl #12\nadd x1, x1, #0x456");
  hg_a64_add_imm(a, 1, 2, 5);
  hg_a64_add_imm(a, 1, 2, -4095);
  hg_a64_add_imm(a, A64_SP, A64_SP, 4096);
  hg_a64_add_imm(a, 1, 2, 0x123456);
  source("movz x16, #1, lsl #32\nadd x1, sp, x16\nadd x1, x2, #0");
  hg_a64_add_imm(a, 1, A64_SP, INT64_C(1) << 32);
  hg_a64_add_imm(a, 1, 2, 0);
  hg_a64_add_imm(a, 1, 1, 0); /* nothing */
  source("cmp x4, #4095\nadd x1, x2, x3, lsl #7");
  hg_a64_compare_imm(a, 4, 4095);
  hg_a64_add_shifted(a, 1, 2, 3, 7);
  source("madd x1, x2, x3, x4\nmsub x1, x2, x3, x4\nlsl x1, x2, #5\nlsr x1, x2, #6");
  hg_a64_madd(a, 1, 2, 3, 4);
  hg_a64_msub(a, 1, 2, 3, 4);
  hg_a64_lsl(a, 1, 2, 5);
  hg_a64_lsr(a, 1, 2, 6);
  source("csel x1, x2, x3, hi");
  hg_a64_select(a, 1, 2, 3, A64_HI);
  source("ldp x1, x2, [x3, #504]\nldp q1, q2, [x3, #-1024]\nstp x29, x30, [sp, #16]\nstp q8, q9, [sp, #1008]");
  hg_a64_load_pair(a, 0, 1, 2, 3, 504);
  hg_a64_load_pair(a, 1, 1, 2, 3, -1024);
  hg_a64_store_pair(a, 0, A64_FP, A64_LR, A64_SP, 16);
  hg_a64_store_pair(a, 1, 8, 9, A64_SP, 1008);
  source("ldxr w1, [x2]\nldxr x3, [sp]\nstxr w4, w5, [x6]\nstxr w7, x8, [x9]");
  hg_a64_load_exclusive(a, 0, 1, 2);
  hg_a64_load_exclusive(a, 1, 3, A64_SP);
  hg_a64_store_exclusive(a, 0, 4, 5, 6);
  hg_a64_store_exclusive(a, 1, 7, 8, 9);
}

static void list_control(void) {
  a64_asm *a = &everything;
  uint32_t before = hg_a64_new_label(a), behind = hg_a64_new_label(a);
  source("1: nop\nb 2f\nb.lo 1b\ncbz x3, 2f\ncbnz x4, 1b\ntbz x5, #3, 2f\ntbnz x6, #63, 1b\nbl 1b");
  hg_a64_place(a, before);
  hg_a64_word(a, 0xd503201f);
  hg_a64_jump(a, behind);
  hg_a64_jump_if(a, A64_LO, before);
  hg_a64_jump_zero(a, 3, behind);
  hg_a64_jump_not_zero(a, 4, before);
  hg_a64_jump_bit(a, 0, 5, 3, behind);
  hg_a64_jump_bit(a, 1, 6, 63, before);
  hg_a64_call(a, before);
  source("ldr q5, 3f\nldr q6, 3f+16\nldr q7, 3f\nblr x8\n2: ret");
  const uint64_t first[2] = {1, 2}, second[2] = {3, 4};
  hg_a64_constant_vector(a, 5, first);
  hg_a64_constant_vector(a, 6, second);
  hg_a64_constant_vector(a, 7, first);
  hg_a64_call_register(a, 8);
  hg_a64_place(a, behind);
  hg_a64_return(a);
  while (a->count % 4 != 0) {
    source(".inst 0");
    hg_a64_word(a, 0);
  }
  source("3: .quad 1, 2, 3, 4");
}

static int list_everything(void) {
  hg_a64_begin(&everything, &allocator);
  source(".arch armv8.2-a+dotprod\n.text");
  list_rows();
  list_memory();
  list_vectors();
  list_conversions();
  list_constants();
  list_general();
  list_control();
  hg_a64_finish(&everything);
  int failed = everything.no_memory || everything.too_far;
  for (size_t i = 0; i < everything.count && !prints_source; i++) printf("%08x\n", everything.words[i]);
  hg_a64_release(&everything);
  return failed;
}

/* ---- on its own -------------------------------------------------------------------------------------------------- */

static uint32_t only_word(a64_asm *a) {
  uint32_t word = a->count == 1 ? a->words[0] : 0;
  hg_a64_release(a);
  hg_a64_begin(a, &allocator);
  return word;
}

/* From the examples that GNU objdump prints. */
static void test_known_words(void) {
  a64_asm a;
  hg_a64_begin(&a, &allocator);
  hg_a64(&a, A64_fmla, A64_32B, 0, 1, 2);
  CHECK_EQ_U64(only_word(&a), 0x4e22cc20); /* fmla v0.4s, v1.4s, v2.4s */
  hg_a64(&a, A64_add, A64_64B, 31, 30, 29);
  CHECK_EQ_U64(only_word(&a), 0x4efd87df); /* add v31.2d, v30.2d, v29.2d */
  hg_a64(&a, A64_bsl, A64_8B, 3, 4, 5);
  CHECK_EQ_U64(only_word(&a), 0x6e651c83); /* bsl v3.16b, v4.16b, v5.16b */
  hg_a64_shift(&a, A64_ushr, A64_32B, 1, 2, 31);
  CHECK_EQ_U64(only_word(&a), 0x6f210441); /* ushr v1.4s, v2.4s, #31 */
  hg_a64_memory(&a, A64_ldr_q, 0, 1, 32);
  CHECK_EQ_U64(only_word(&a), 0x3dc00820); /* ldr q0, [x1, #32] */
  hg_a64_constant(&a, A64_32B, 0, 0x3f800000);
  CHECK_EQ_U64(only_word(&a), 0x4f03f600); /* fmov v0.4s, #1.0 */
  hg_a64_return(&a);
  CHECK_EQ_U64(only_word(&a), 0xd65f03c0); /* ret */
  hg_a64_release(&a);
}

/* An immediate is rebuilt from the instructions that set it. */
static uint64_t value_of_moves(const a64_asm *a) {
  uint64_t value = 0;
  for (size_t i = 0; i < a->count; i++) {
    unsigned shift = 16 * (a->words[i] >> 21 & 3);
    uint64_t part = (uint64_t)(a->words[i] >> 5 & 0xffff) << shift, field = UINT64_C(0xffff) << shift;
    switch (a->words[i] >> 23) {
    case 0xd2800000u >> 23: value = part; break;
    case 0x92800000u >> 23: value = ~part; break;
    default: value = (value & ~field) | part; break;
    }
  }
  return value;
}

static void test_immediates(void) {
  static const uint64_t parts[4] = {0, 0xffff, 1, 0x8000};
  for (unsigned i = 0; i < 256; i++) {
    uint64_t value = 0;
    for (unsigned k = 0; k < 4; k++) value |= parts[i >> (2 * k) & 3] << (16 * k);
    a64_asm a;
    hg_a64_begin(&a, &allocator);
    hg_a64_move_imm(&a, 0, value);
    CHECK_EQ_U64(value_of_moves(&a), value);
    CHECK(a.count >= 1 && a.count <= 4);
    hg_a64_release(&a);
  }
}

static void test_literals_and_distance(void) {
  a64_asm a;
  hg_a64_begin(&a, &allocator);
  uint32_t start = hg_a64_new_label(&a);
  hg_a64_place(&a, start);
  for (uint64_t i = 0; i < 3; i++) hg_a64_constant(&a, A64_64B, 0, UINT64_C(0x123456789abcdef0) + i % 2);
  hg_a64_finish(&a);
  CHECK_EQ_U64(a.count, 12); /* three loads, a filler, two literals */
  CHECK_EQ_U64(a.words[0], 0x9c000080);
  CHECK_EQ_U64(a.words[1], 0x9c0000e0);
  CHECK_EQ_U64(a.words[2], 0x9c000040);
  CHECK_EQ_U64(a.words[8], 0x9abcdef1);
  CHECK(!a.too_far && !a.no_memory);
  hg_a64_release(&a);
  hg_a64_begin(&a, &allocator);
  start = hg_a64_new_label(&a);
  hg_a64_place(&a, start);
  for (uint32_t i = 0; i < 1u << 18; i++) hg_a64_word(&a, 0xd503201f);
  hg_a64_jump_if(&a, A64_EQ, start); /* as far back as it reaches */
  hg_a64_finish(&a);
  CHECK(!a.too_far && !a.no_memory);
  CHECK_EQ_U64(a.words[1u << 18], 0x54800000);
  a.count = 0;
  a.fixups.count = 0;
  hg_a64_place(&a, start);
  for (uint32_t i = 0; i <= 1u << 18; i++) hg_a64_word(&a, 0xd503201f);
  hg_a64_jump_if(&a, A64_EQ, start);
  hg_a64_finish(&a);
  CHECK(a.too_far);
  hg_a64_release(&a);
}

int main(int argc, char **argv) {
  if (hg_allocator_resolve(NULL, &allocator) != HG_OK) return 1;
  prints_source = argc > 1 && strcmp(argv[1], "--source") == 0;
  if (argc > 1) return list_everything();
  test_known_words();
  test_immediates();
  test_literals_and_distance();
  return check_report();
}
