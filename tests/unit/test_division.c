/* test_division.c - quotients and remainders of integers on every instruction set of this machine, where an estimate in
 * floating point could be wrong: next to multiples of the divisor, and at all lengths of quotient and divisor. */
#include "atlas/arith.h"
#include "atlas/interp.h"
#include "atlas/tables.h"
#include "backend/cpu/engine/detect.h"
#include "backend/cpu/native/native.h"
#include "backend/cpu/targets.h"
#include "check.h"
#include "compiler/canon/canon.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"

enum { ROUNDS = 12, LANES = 64 * 64 * 2 + 5 };

static uint64_t dividends[LANES], divisors[LANES], results[LANES];

static uint64_t next_random(void) { /* splitmix64 */
  static uint64_t state = 7;
  uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* Of so many bits, now and then a power of two or what is next to one. */
static uint64_t number(unsigned bits) {
  uint64_t highest = UINT64_C(1) << (bits - 1), random = next_random();
  if (random % 5 == 0) return highest;
  if (random % 5 == 1) return highest | (highest - 1);
  return highest | (next_random() & (highest - 1));
}

static void put(uint64_t *row, atlas_type type, uint32_t lane, uint64_t value) {
  memcpy((uint8_t *)row + (size_t)lane * atlas_bytes(type), &value, atlas_bytes(type));
}

static uint64_t get(const uint64_t *row, atlas_type type, uint32_t lane) {
  uint64_t value = 0;
  memcpy(&value, (const uint8_t *)row + (size_t)lane * atlas_bytes(type), atlas_bytes(type));
  return value;
}

/* Every length of quotient with every length of divisor: the product, and the numbers next to it. */
static void fill(atlas_type type) {
  unsigned width = atlas_type_bits(type);
  for (uint32_t lane = 0; lane < LANES; lane++) {
    uint64_t divisor = number(1 + lane % width), quotient = number(1 + lane / width % width);
    uint64_t sign = atlas_kind(type) == ATLAS_KIND_SINT ? next_random() : 0;
    uint64_t dividend = quotient * divisor + (uint64_t)(next_random() % 3) - 1;
    if (sign & 1) dividend = 0 - dividend;
    if (sign & 2) divisor = 0 - divisor;
    put(dividends, type, lane, dividend & atlas_mask(type));
    put(divisors, type, lane, divisor & atlas_mask(type));
  }
}

static void compare(atlas_op op, atlas_type type, const char *engine) {
  for (uint32_t lane = 0; lane < LANES; lane++) {
    uint64_t a = get(dividends, type, lane), b = get(divisors, type, lane), actual = get(results, type, lane);
    uint64_t expected = atlas_arith(op, type, a, b, 0);
    if (actual == expected) continue;
    check_note(0);
    printf("%s, %s.%s: %llx and %llx give %llx, expected %llx\n", engine, atlas_op_lookup(op)->mnemonic,
           atlas_type_name(type), (unsigned long long)a, (unsigned long long)b, (unsigned long long)actual,
           (unsigned long long)expected);
    return;
  }
  check_note(1);
}

static void run(const atlas_program *program, const hg_vector *vector, atlas_op op, atlas_type type) {
  hg_code_pages pages;
  if (!check_note(hg_code_open(&pages, &program->allocator) == HG_OK)) return;
  for (cpu_isa isa = CPU_ISA_BASELINE; isa <= hg_cpu_isa_best(); isa++) {
    const native_target *target = hg_native_target(isa);
    hg_native *native = NULL;
    if (target == NULL) continue;
    CHECK_EQ_U64(hg_native_compile(&pages, target, hg_cpu_kernels(isa), UINT64_MAX, program, vector, &native), HG_OK);
    for (int round = 0; round < ROUNDS && native != NULL; round++) {
      atlas_argument arguments[3] = {{.span = {(uint8_t *)dividends, sizeof dividends}},
                                     {.span = {(uint8_t *)divisors, sizeof divisors}},
                                     {.span = {(uint8_t *)results, sizeof results}}};
      static atlas_launch launch;
      launch = (atlas_launch){.lanes = LANES, .arguments = arguments, .step_limit = 100};
      fill(type);
      CHECK_EQ_U64(hg_native_launch(native, &launch), HG_OK);
      compare(op, type, target->engine);
    }
    hg_native_release(native);
  }
  hg_code_close(&pages);
}

static void test(atlas_op op, atlas_type type) {
  char text[512];
  const char *n = atlas_type_name(type);
  atlas_program *program = NULL;
  ssa_unit unit;
  hg_vector vector = {0};
  snprintf(text, sizeof text,
           ".program division\n.buffer a %s in\n.buffer b %s in\n.buffer y %s out\nldg.%s r0, [a + lane]\n"
           "ldg.%s r1, [b + lane]\n%s.%s r2, r0, r1\nstg.%s [y + lane], r2\nexit\n",
           n, n, n, n, n, atlas_op_lookup(op)->mnemonic, n, n);
  CHECK_EQ_U64(atlas_parse(NULL, text, strlen(text), "division", &program), HG_OK);
  CHECK_EQ_U64(hg_canonicalise(program, NULL, &unit), HG_OK);
  CHECK_EQ_U64(hg_expand(&unit, NULL), HG_OK);
  CHECK_EQ_U64(hg_optimise(program, &unit, NULL), HG_OK);
  CHECK_EQ_U64(hg_vectorise(program, &unit, &vector), HG_OK);
  run(program, &vector, op, type);
  hg_vector_release(&vector);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

int main(void) {
  for (atlas_type type = ATLAS_i8; type <= ATLAS_u64; type++) {
    test(ATLAS_OP_div, type);
    test(ATLAS_OP_rem, type);
  }
  return check_report();
}
