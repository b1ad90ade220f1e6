/* test_engine_ops.c - every pure instruction of every type, on values where formats end, round and overflow: each
 * engine and instruction set that this machine has against the reference machine, bit for bit. */
#include "atlas/interp.h"
#include "atlas/tables.h"
#include "atlas/value.h"
#include "backend/cpu/engine/detect.h"
#include "backend/cpu/native/native.h"
#include "backend/cpu/targets.h"
#include "backend/cpu/tile/tile.h"
#include "check.h"
#include "compiler/canon/canon.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"

#include <stdarg.h>
#include <stdlib.h>

enum {
  VALUES = 64,          /* of a type */
  LANES = 40 * VALUES + 3, /* no multiple of any vector's lanes */
  SOURCES = 3,
  ROUNDS = 4, /* at most, of the loop: a power of two */
  TEXT_BYTES = 1024
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 31 ^ *state << 23;
}

static const uint64_t patterns[] = {0,
                                    1,
                                    2,
                                    3,
                                    7,
                                    8,
                                    31,
                                    32,
                                    33,
                                    63,
                                    64,
                                    100,
                                    0x7f,
                                    0x80,
                                    0x81,
                                    0xff,
                                    0x100,
                                    0x7fff,
                                    0x8000,
                                    0x8001,
                                    0xffff,
                                    0x10000,
                                    0x7fffffff,
                                    0x80000000,
                                    0x80000001,
                                    0xffffffff,
                                    UINT64_C(0x100000000),
                                    UINT64_C(0x20000000000001),
                                    UINT64_C(0x7fffffffffffffff),
                                    UINT64_C(0x8000000000000000),
                                    UINT64_C(0x8000000000000001),
                                    UINT64_MAX,
                                    UINT64_C(0xfffffffffffffffe),
                                    0x01000001,
                                    0x01000003};

/* Ends of integer types, ties, and what rounds twice wrongly on the way to a narrow format. */
static const double numbers[] = {1, 1.5, 2.5, 3.5, 0.5, 0.25, 0.75, 3, 127, 127.5, 128, 129, 255, 255.5, 256, 32767.5,
                                 32768, 65504, 65519.9, 65520, 65535.5, 65536, 2147483647, 2147483648.0, 4294967295.0,
                                 4294967296.0, 9223372036854774784.0, 9223372036854775808.0, 18446744073709549568.0,
                                 18446744073709551616.0, 1e30, 3.5e38, 1e300, 0x1p-14, 0x1p-24, 0x1p-25, 0x1.8p-25,
                                 0x1p-126, 0x1p-149, 0x1p-1074, 0x1.002p0, 0x1.0020000000001p0, 0x1.001ffffffffffp0,
                                 0x1.01p0, 0x1.0100000000001p0, 0x1.000001p0, 0x1.0000010000001p0};

static uint64_t float_value(atlas_type type, uint32_t i, uint64_t *random) {
  unsigned bits = atlas_type_bits(type);
  uint64_t sign = UINT64_C(1) << (bits - 1), nan = atlas_canonical_nan(type);
  uint64_t special[] = {0,
                        sign,
                        1,
                        sign | 1,
                        nan,
                        nan | sign,
                        nan | 1,
                        sign - 1,
                        2 * sign - 1,
                        atlas_pack(type, 0, 1, 5000),
                        atlas_pack(type, 1, 1, 5000),
                        atlas_pack(type, 0, 1, 5000) - 1};
  uint32_t count = sizeof special / sizeof *special, known = sizeof numbers / sizeof *numbers;
  if (i < count) return special[i] & atlas_mask(type);
  if (i - count < known) return atlas_round_f64(type, i % 3 == 0 ? -numbers[i - count] : numbers[i - count]);
  return next_random(random) & atlas_mask(type);
}

static uint64_t value_of(atlas_type type, uint32_t i, uint64_t *random) {
  if (type == ATLAS_bool) return i & 1;
  if (!atlas_is_integer(type)) return float_value(type, i, random);
  uint64_t bits = i < sizeof patterns / sizeof *patterns ? patterns[i] : next_random(random);
  return bits & atlas_mask(type);
}

/* Sources so that all pairs of the first values meet. */
static void fill(uint8_t *memory, atlas_type type, int source) {
  uint64_t values[VALUES], random = 17 * type + (unsigned)source;
  uint32_t bytes = atlas_bytes(type);
  for (uint32_t i = 0; i < VALUES; i++) values[i] = value_of(type, i, &random);
  for (uint32_t l = 0; l < LANES; l++) {
    uint32_t pick = source == 0 ? l : source == 1 ? l + l / VALUES : l * 7 + l / VALUES * 5;
    memcpy(memory + (size_t)l * bytes, &values[pick % VALUES], bytes);
  }
}

/* ---- a program --------------------------------------------------------------------------------------------------- */

typedef struct op_test {
  char text[TEXT_BYTES];
  atlas_type sources[SOURCES]; /* types of buffers a, b, c */
  atlas_type result;
} op_test;

static void add(op_test *t, const char *format, ...) {
  size_t at = strlen(t->text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(t->text + at, sizeof t->text - at, format, arguments);
  va_end(arguments);
}

/* Where a result goes: into registers; across a barrier, in rows whose last run is no full vector; out of a loop that
 * lanes leave one by one, where those that have left keep theirs. */
typedef enum shape { STRAIGHT, ACROSS_BARRIER, OUT_OF_LOOP, SHAPES } shape;

/* Loads, the instruction on r0, r1, r2 or p0, and a store of r3. */
static void write_program(op_test *t, const char *instruction, int is_predicate, shape where) {
  const char *index = where == OUT_OF_LOOP ? "r20" : "lane";
  const char *name = is_predicate ? "u32" : atlas_type_name(t->result);
  if (is_predicate) t->result = ATLAS_u32;
  t->text[0] = '\0';
  add(t, ".program op\n");
  for (int s = 0; s < SOURCES; s++) add(t, ".buffer %c %s in\n", 'a' + s, atlas_type_name(t->sources[s]));
  add(t, ".buffer o %s out\n", name);
  if (where == OUT_OF_LOOP)
    add(t,
        "    cvt.u32.u64 r20, lane\n    and.u32 r21, r20, #%d\n    add.u32 r22, r21, #1\n    sub.u32 r20, r20, "
        "r21\nagain:\n",
        ROUNDS - 1);
  for (int s = 0; s < SOURCES; s++)
    add(t, "    ldg.%s r%d, [%c + %s]\n", atlas_type_name(t->sources[s]), s, 'a' + s, index);
  add(t, "%s", instruction);
  if (where == ACROSS_BARRIER) add(t, "    bar.sync\n");
  if (where == OUT_OF_LOOP) add(t, "    add.u32 r20, r20, #1\n    loop r22, again\n");
  if (is_predicate) add(t, "    sel.u32 r3, p0, #1, #0\n");
  add(t, "    stg.%s [o + lane], r3\n    exit\n", name);
}

/* ---- engines ----------------------------------------------------------------------------------------------------- */

typedef struct setting {
  const atlas_program *program;
  const hg_vector *vector;
  atlas_argument arguments[SOURCES + 1];
  uint8_t *expected, *result;
  size_t result_bytes;
} setting;

static atlas_launch launch_of(setting *s) {
  memset(s->result, 0xa5, s->result_bytes);
  return (atlas_launch){.lanes = LANES, .arguments = s->arguments, .step_limit = UINT64_C(1) << 40};
}

static void compare(const op_test *t, const setting *s, hg_status status, const char *engine) {
  uint32_t bytes = atlas_bytes(t->result);
  if (!check_note(status == HG_OK)) {
    printf("%s: %s\n%s", engine, hg_last_error(), t->text);
    return;
  }
  if (check_note(memcmp(s->expected, s->result, s->result_bytes) == 0)) return;
  size_t at = 0;
  while (s->expected[at] == s->result[at]) at++;
  size_t l = at / bytes;
  printf("%s: lane %zu: result", engine, l);
  for (uint32_t i = bytes; i-- > 0;) printf("%s%02x", i + 1 == bytes ? " " : "", s->result[l * bytes + i]);
  for (uint32_t i = bytes; i-- > 0;) printf("%s%02x", i + 1 == bytes ? ", expected " : "", s->expected[l * bytes + i]);
  for (int k = 0; k < SOURCES; k++) {
    uint32_t size = atlas_bytes(t->sources[k]);
    for (uint32_t i = size; i-- > 0;)
      printf("%s%02x", i + 1 == size ? "; source " : "", s->arguments[k].span.memory[l * size + i]);
  }
  printf("\n%s", t->text);
}

static void run_tiles(const op_test *t, setting *s) {
  for (cpu_isa isa = CPU_ISA_BASELINE; isa <= hg_cpu_isa_best(); isa++) {
    hg_tile *tile = NULL;
    atlas_launch launch = launch_of(s);
    hg_status status = hg_tile_compile(&s->program->allocator, s->program, s->vector, isa, &tile);
    if (status == HG_OK) status = hg_tile_launch(tile, &launch);
    compare(t, s, status, hg_cpu_isa_name(isa));
    hg_tile_release(tile);
  }
}

static void run_native(const op_test *t, setting *s, hg_code_pages *pages, const native_target *target, cpu_isa isa) {
  hg_native *native = NULL;
  atlas_launch launch = launch_of(s);
  hg_status status =
      hg_native_compile(pages, target, hg_cpu_kernels(isa), UINT64_MAX, s->program, s->vector, &native);
  if (status == HG_OK) status = hg_native_launch(native, &launch);
  compare(t, s, status, target->engine);
  hg_native_release(native);
}

/* With what this processor has beyond the name of its instruction set, and without. */
static void run_natives(const op_test *t, setting *s) {
  hg_code_pages pages;
  if (!check_note(hg_code_open(&pages, &s->program->allocator) == HG_OK)) return;
  for (cpu_isa isa = CPU_ISA_BASELINE; isa <= hg_cpu_isa_best(); isa++) {
    if (hg_native_target(isa) == NULL) continue;
    run_native(t, s, &pages, hg_native_target(isa), isa);
    run_native(t, s, &pages, hg_native_least_target(isa), isa);
  }
  hg_code_close(&pages);
}

static void run_engines(const op_test *t, setting *s) {
  const atlas_program *program = s->program;
  ssa_unit unit;
  hg_vector vector = {0};
  hg_status status = hg_canonicalise(program, NULL, &unit);
  if (status == HG_OK) status = hg_expand(&unit, NULL);
  if (status == HG_OK) status = hg_optimise(program, &unit, NULL);
  if (status == HG_OK) status = hg_vectorise(program, &unit, &vector);
  CHECK_EQ_U64(status, HG_OK);
  if (status == HG_OK) {
    s->vector = &vector;
    run_tiles(t, s);
    run_natives(t, s);
    hg_vector_release(&vector);
  }
  ir_ssa_release(&unit);
}

static void run(const op_test *t) {
  static uint8_t sources[SOURCES][LANES * 8], expected[LANES * 8], result[LANES * 8];
  atlas_program *program = NULL;
  if (!check_note(atlas_parse(NULL, t->text, strlen(t->text), "test", &program) == HG_OK)) {
    printf("%s\n%s", hg_last_error(), t->text);
    return;
  }
  setting s = {.program = program, .expected = expected, .result = result};
  for (int k = 0; k < SOURCES; k++) {
    fill(sources[k], t->sources[k], k);
    s.arguments[k].span = (atlas_span){sources[k], (uint64_t)LANES * atlas_bytes(t->sources[k])};
  }
  s.result_bytes = (size_t)LANES * atlas_bytes(t->result);
  s.arguments[SOURCES].span = (atlas_span){result, s.result_bytes};
  atlas_launch launch = launch_of(&s);
  CHECK_EQ_U64(atlas_interpret(&program->allocator, program, &launch), HG_OK);
  memcpy(expected, result, s.result_bytes);
  run_engines(t, &s);
  atlas_program_release(program);
}

/* ---- every instruction ------------------------------------------------------------------------------------------- */

static void test_one_type(const atlas_op_info *info, atlas_type type) {
  char instruction[160];
  const char *name = atlas_type_name(type), *form = info->operands;
  op_test t = {.sources = {type, type, type}, .result = type};
  int is_predicate = form[0] == 'p';
  if (strcmp(form, "dsc") == 0) t.sources[1] = ATLAS_u32;
  if (strcmp(form, "dccs") == 0) t.sources[0] = t.sources[1] = ATLAS_u32;
  if (strcmp(form, "dqss") == 0) {
    t.sources[2] = ATLAS_u32;
    snprintf(instruction, sizeof instruction, "    set.ge.u32 p0, r2, #100\n    sel.%s r3, p0, r0, r1\n", name);
  } else {
    static const char *const sources[4] = {"", "r0", "r0, r1", "r0, r1, r2"};
    snprintf(instruction, sizeof instruction, "    %s.%s %s, %s\n", info->mnemonic, name, is_predicate ? "p0" : "r3",
             sources[strlen(form) - 1]);
  }
  for (shape where = STRAIGHT; where < SHAPES; where++) {
    write_program(&t, instruction, is_predicate, where);
    run(&t);
  }
}

static void test_two_types(const atlas_op_info *info, atlas_type to) {
  for (atlas_type from = ATLAS_i8; from <= ATLAS_bool; from++) {
    char instruction[160];
    int is_cast = info->op == ATLAS_OP_bitcast;
    if (!(info->types >> from & 1) || (is_cast && atlas_bytes(to) != atlas_bytes(from))) continue;
    op_test t = {.sources = {from, from, from}, .result = to};
    snprintf(instruction, sizeof instruction, "    %s.%s.%s r3, r0\n", info->mnemonic, atlas_type_name(to),
             atlas_type_name(from));
    for (shape where = STRAIGHT; where < SHAPES; where++) {
      write_program(&t, instruction, 0, where);
      run(&t);
    }
  }
}

/* Sums in a loop that lanes leave one by one, so that the others keep theirs; results in the registers of operands;
 * words and sums that are constants. */
static void test_dots(void) {
  static const char *const operands[] = {"r4, r0, r1, r4",  "r4, r1, r0, r4",          "r4, r0, r0, r4",
                                         "r4, #11, #32, r4", "r4, r0, #0x80ff7f01, r4", "r4, #0xfe018080, r1, r4",
                                         "r0, r0, r1, r4",   "r0, r1, r0, r4",          "r1, r0, r1, #0x12345678",
                                         "r0, r0, r1, r0",   "r4, r0, r1, r0",          "r0, r4, r4, r0"};
  static const char *const names[] = {"ss", "uu", "us"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
      op_test t = {.sources = {ATLAS_u32, ATLAS_u32, ATLAS_u32}, .result = ATLAS_u32};
      char instructions[512];
      snprintf(instructions, sizeof instructions,
               "    mov.u32 r4, r2\n    and.u32 r5, r2, #7\n    add.u32 r5, r5, #1\nagain:\n    dot4.%s.u32 %s\n"
               "    xor.u32 r0, r0, r4\n    add.u32 r1, r1, #0x01020304\n    loop r5, again\n    xor.u32 r3, r0, r4\n",
               names[k], operands[i]);
      write_program(&t, instructions, 0, STRAIGHT);
      run(&t);
    }
}

static int is_tested(const atlas_op_info *info) {
  static const char *const forms[] = {"ds", "dss", "dsss", "dsc", "dccs", "dt", "pss", "dqss"};
  if (!(info->flags & ATLAS_PURE) || info->flags & (ATLAS_FUNC | ATLAS_LOAD | ATLAS_BLOCK)) return 0;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (strcmp(info->operands, forms[i]) == 0) return 1;
  return 0;
}

int main(void) {
  for (uint32_t op = 0x100; op < 0x1000; op++) {
    const atlas_op_info *info = atlas_op_lookup(op);
    if (info == NULL || !is_tested(info)) continue;
    for (atlas_type type = ATLAS_i8; type <= ATLAS_bool; type++) {
      if (!(info->types >> type & 1)) continue;
      if (info->flags & ATLAS_SECOND) test_two_types(info, type);
      else test_one_type(info, type);
    }
  }
  test_dots();
  return check_report();
}
