/* test_vector_kernels.c - instructions on rows, with every instruction set that this machine has, against the reference
 * machine's arithmetic: special values, random bits, and all values of the types that have few. */
#include "atlas/arith.h"
#include "backend/cpu/engine/detect.h"
#include "backend/cpu/engine/engine.h"
#include "check.h"
#include "compiler/machine_ops.h"

#include <math.h>

enum { LANES = 8 * CPU_CHUNK, TYPES = ATLAS_TYPE_COUNT };

typedef struct rows {
  uint64_t d[LANES], s[3][LANES]; /* room for elements of any size */
  uint8_t mask[LANES];
} rows;

static const cpu_kernels *kernels;
static rows data;

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint64_t random_state = 1;

static uint64_t random_bits(void) { /* splitmix64 */
  uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* 0, ends of ranges, powers of two and their neighbours, halves, infinities, NaNs, subnormals; else any bits. */
static uint64_t interesting(atlas_type type) {
  static const double numbers[] = {0,
                                   1,
                                   2,
                                   3,
                                   0.5,
                                   1.5,
                                   2.5,
                                   3.5,
                                   127.5,
                                   128,
                                   255.5,
                                   256,
                                   32767.5,
                                   65504,
                                   65520,
                                   65535.5,
                                   448,
                                   464,
                                   57344,
                                   61440,
                                   2147483520,
                                   2147483647.5,
                                   2147483648.0,
                                   4294967295.5,
                                   4294967296.0,
                                   9.2e18,
                                   0x1p63,
                                   0x1p64,
                                   1e-40,
                                   6e-8,
                                   0x1p-149,
                                   0x1p-1074,
                                   1e308,
                                   3.4e38,
                                   0.1};
  uint64_t r = random_bits(), which = r >> 8 & 7, mask = type == ATLAS_NONE ? 1 : atlas_mask(type);
  unsigned bits = type == ATLAS_NONE ? 1 : atlas_type_bits(type);
  if (type == ATLAS_NONE || type == ATLAS_bool) return r & 1;
  if (which < 3) return random_bits() & mask;
  if (atlas_is_integer(type)) return ((UINT64_C(1) << (r >> 16) % bits) + (r >> 32) % 3 - 1) & mask;
  if (which == 3) return (random_bits() & (UINT64_C(1) << (bits - 1) | 7)) & mask; /* the smallest */
  uint64_t infinity = type == ATLAS_f8e4m3 ? 0x7e : atlas_round_f64(type, INFINITY), sign = (r >> 20 & 1) << (bits - 1);
  if (which == 4) return (infinity + (r >> 24) % 5 - 2) | sign;
  return atlas_round_f64(type, numbers[(r >> 24) % (sizeof numbers / sizeof *numbers)]) ^ sign;
}

static uint32_t bytes_of(uint8_t type) {
  return type == SSA_PREDICATE || type == ATLAS_NONE ? 1 : atlas_bytes((atlas_type)type);
}

static uint64_t read_lane(const void *row, uint8_t type, size_t i) {
  uint64_t value = 0;
  memcpy(&value, (const uint8_t *)row + i * bytes_of(type),
         bytes_of(type)); /* little-endian, as the engine's machines are */
  return value;
}

static void write_lane(void *row, uint8_t type, size_t i, uint64_t value) {
  memcpy((uint8_t *)row + i * bytes_of(type), &value, bytes_of(type));
}

static int is_nan(uint8_t type, uint64_t bits) {
  return type < TYPES && !atlas_is_integer((atlas_type)type) && type != ATLAS_bool &&
         isnan(atlas_to_f64((atlas_type)type, bits));
}

/* ---- one instruction --------------------------------------------------------------------------------------------- */

typedef struct operation {
  uint16_t op;
  uint8_t type, type2; /* as in vector_insn */
  uint8_t source[3];   /* types; SSA_PREDICATE */
  int sources, exact;  /* 0: a NaN is a NaN */
} operation;

static uint64_t expected_of(const operation *o, const uint64_t s[3]) {
  switch (o->op) {
  case VECTOR_AND:
  case ATLAS_OP_pand: return s[0] & s[1];
  case VECTOR_ANDNOT: return s[0] & !s[1];
  case VECTOR_OR:
  case ATLAS_OP_por: return s[0] | s[1];
  case ATLAS_OP_pxor: return s[0] ^ s[1];
  case ATLAS_OP_pnot: return !s[0];
  case ATLAS_OP_sel: return s[0] ? s[1] : s[2];
  case ATLAS_OP_bitcast: return s[0];
  case ATLAS_OP_cvt: return atlas_convert((atlas_type)o->type, (atlas_type)o->type2, s[0]);
  case VECTOR_CANON: return is_nan(o->type, s[0]) ? atlas_canonical_nan((atlas_type)o->type) : s[0];
  case VECTOR_LESSER: return atlas_compare(ATLAS_OP_set_lt, (atlas_type)o->type, s[0], s[1]) ? s[0] : s[1];
  case VECTOR_GREATER: return atlas_compare(ATLAS_OP_set_gt, (atlas_type)o->type, s[0], s[1]) ? s[0] : s[1];
  default: break;
  }
  if (atlas_is_comparison(o->op)) return (uint64_t)atlas_compare(o->op, (atlas_type)o->type2, s[0], s[1]);
  return atlas_arith(o->op, (atlas_type)o->type, s[0], s[1], s[2]);
}

static void run(const operation *op, uint32_t count, const uint8_t step[3], const uint8_t *mask, int keeps) {
  vector_reg regs[4] = {{.type = op->type}, {.type = op->source[0]}, {.type = op->source[1]}, {.type = op->source[2]}};
  hg_vector vector = {.regs = {.data = regs, .count = 4, .element_size = sizeof *regs}};
  cpu_launch launch = {.vector = &vector, .kernels = kernels};
  static cpu_worker worker;
  worker.run = &launch;
  worker.vector = &vector;
  vector_insn insn = {.op = op->op, .type = op->type, .type2 = op->type2, .flags = keeps ? VECTOR_KEEP : 0,
                      .s = {VECTOR_NONE, VECTOR_NONE, VECTOR_NONE, VECTOR_NONE}};
  cpu_operands o = {.d = data.d, .mask = mask, .count = count};
  for (int k = 0; k < op->sources; k++) {
    insn.s[k] = (uint32_t)k + 1;
    o.s[k] = data.s[k];
    o.step[k] = step[k];
  }
  hg_cpu_insn(&worker, &insn, &o);
}

static void report(const operation *op, size_t i, const uint64_t s[3], uint64_t actual, uint64_t expected) {
  printf("%s: %s type %u from %u, lane %zu: 0x%llx, 0x%llx, 0x%llx give 0x%llx, expected 0x%llx\n", kernels->name,
         atlas_op_name((atlas_op)op->op), op->type, op->type2, i, (unsigned long long)s[0], (unsigned long long)s[1],
         (unsigned long long)s[2], (unsigned long long)actual, (unsigned long long)expected);
}

/* One check a call, so that the count says how many instructions were tried. */
static void check_rows(const operation *op, uint32_t count, const uint8_t step[3], const uint8_t *mask, int keeps) {
  uint64_t before[LANES];
  int ok = 1;
  memcpy(before, data.d, sizeof before);
  run(op, count, step, mask, keeps);
  for (size_t i = 0; i < count && ok; i++) {
    uint64_t s[3] = {0, 0, 0};
    if (mask != NULL && !mask[i] && !keeps) continue;
    for (int k = 0; k < op->sources; k++) s[k] = read_lane(data.s[k], op->source[k], step[k] ? i : 0);
    uint64_t actual = read_lane(data.d, op->type, i), expected = expected_of(op, s);
    if (mask != NULL && !mask[i]) expected = read_lane(before, op->type, i);
    else if (!op->exact && is_nan(op->type, actual) && is_nan(op->type, expected)) continue;
    ok = actual == expected;
    if (!ok) report(op, i, s, actual, expected);
  }
  check_note(ok);
}

static void fill_random(const operation *op) {
  for (int k = 0; k < op->sources; k++)
    for (size_t i = 0; i < LANES; i++) {
      uint8_t type = op->source[k];
      write_lane(data.s[k], type, i, interesting(type == SSA_PREDICATE ? ATLAS_NONE : (atlas_type)type));
    }
  for (size_t i = 0; i < LANES; i++) {
    data.d[i] = random_bits() & UINT64_C(0x0101010101010101);
    data.mask[i] = random_bits() & 1;
  }
}

/* Equal operands too; short rows; masks; a part of a chunk. */
static void check_operation(const operation *op) {
  static const uint8_t rows_only[3] = {1, 1, 1};
  for (int round = 0; round < 12; round++) {
    uint8_t step[3];
    fill_random(op);
    if (round == 1 && op->sources > 1 && op->source[0] == op->source[1]) memcpy(data.s[1], data.s[0], sizeof data.s[0]);
    check_rows(op, LANES, rows_only, NULL, 0);
    for (int k = 0; k < 3; k++) {
      step[k] = random_bits() & 1;
      for (size_t i = 0; k < op->sources && !step[k] && i < CPU_CHUNK; i++)
        write_lane(data.s[k], op->source[k], i, read_lane(data.s[k], op->source[k], 0));
    }
    check_rows(op, 1 + (uint32_t)(random_bits() % LANES), step, NULL, 0);
    check_rows(op, LANES, step, data.mask, round & 1);
  }
}

/* ---- which instructions there are -------------------------------------------------------------------------------- */

static void check_of_type(uint16_t op, uint8_t type, const atlas_op_info *info) {
  operation o = {.op = op, .type = type, .source = {type, type, type}, .exact = (info->flags & ATLAS_BITS) != 0};
  if (atlas_is_integer((atlas_type)type)) o.exact = 1;
  for (const char *letter = info->operands; *letter != '\0'; letter++) {
    if (*letter == 'c') o.source[o.sources] = ATLAS_u32;
    if (*letter == 'q') o.source[o.sources] = SSA_PREDICATE;
    o.sources += *letter == 's' || *letter == 'c' || *letter == 'q';
  }
  if (atlas_is_comparison(op)) {
    o.type2 = type;
    o.type = SSA_PREDICATE;
  }
  check_operation(&o);
}

/* Whatever a program can have, conversions apart. */
static void test_arithmetic(void) {
  for (size_t i = 0; i < atlas_op_count(); i++) {
    const atlas_op_info *info = atlas_op_lookup(atlas_op_at(i));
    machine_kind kind = hg_machine_kind(info->op);
    if (kind != MACHINE_ARITH && kind != MACHINE_COMPARE && kind != MACHINE_SELECT) continue;
    for (uint8_t type = 1; type < TYPES; type++)
      if (hg_machine_rows[hg_machine_op(info->op)].types >> type & 1) check_of_type(info->op, type, info);
  }
}

static void test_predicates(void) {
  static const uint16_t ops[] = {ATLAS_OP_pand, ATLAS_OP_por,  ATLAS_OP_pxor, ATLAS_OP_pnot,
                                 VECTOR_AND,    VECTOR_ANDNOT, VECTOR_OR};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    operation o = {ops[i], SSA_PREDICATE, 0, {SSA_PREDICATE, SSA_PREDICATE, 0}, ops[i] == ATLAS_OP_pnot ? 1 : 2, 1};
    check_operation(&o);
  }
}

static void test_canonical(void) {
  static const uint8_t types[] = {ATLAS_f16, ATLAS_bf16, ATLAS_f32, ATLAS_f64};
  for (size_t i = 0; i < sizeof types; i++) {
    operation o = {VECTOR_CANON, types[i], 0, {types[i], 0, 0}, 1, 1};
    check_operation(&o);
  }
  for (uint8_t type = ATLAS_f32; type <= ATLAS_f64; type++)
    for (uint16_t op = VECTOR_LESSER; op <= VECTOR_GREATER; op++) {
      operation o = {op, type, 0, {type, type, 0}, 2, 1};
      check_operation(&o);
    }
}

/* Every value of a source of 8 or 16 bits. */
static void check_all_values(const operation *o) {
  static const uint8_t rows_only[3] = {1, 1, 1};
  uint32_t values = o->source[0] == ATLAS_bool ? 2 : 1u << (8 * bytes_of(o->source[0]));
  for (uint32_t at = 0; at < values; at += LANES) {
    for (uint32_t i = 0; i < LANES; i++) write_lane(data.s[0], o->source[0], i, (at + i) % values);
    check_rows(o, LANES, rows_only, NULL, 0);
  }
}

static void test_conversions(void) {
  for (uint8_t to = 1; to < TYPES; to++)
    for (uint8_t from = 1; from < TYPES; from++) {
      operation cvt = {ATLAS_OP_cvt, to, from, {from, 0, 0}, 1, 0};
      operation bitcast = {ATLAS_OP_bitcast, to, from, {from, 0, 0}, 1, 1};
      check_operation(&cvt);
      if (bytes_of(from) <= 2) check_all_values(&cvt);
      if (bytes_of(to) == bytes_of(from)) check_operation(&bitcast);
    }
}

/* f32 next to where narrower formats round: all 16-bit patterns above some lower halves. */
static void test_narrowing(void) {
  static const uint32_t low[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff};
  static const uint8_t to[] = {ATLAS_f16, ATLAS_bf16, ATLAS_f8e4m3, ATLAS_f8e5m2,
                               ATLAS_i8,  ATLAS_u16,  ATLAS_i32,    ATLAS_u32};
  static const uint8_t rows_only[3] = {1, 1, 1};
  for (size_t t = 0; t < sizeof to; t++)
    for (uint32_t at = 0; at < 0x10000 * (sizeof low / sizeof *low); at += LANES) {
      operation cvt = {ATLAS_OP_cvt, to[t], ATLAS_f32, {ATLAS_f32, 0, 0}, 1, 0};
      for (uint32_t i = 0; i < LANES; i++)
        write_lane(data.s[0], ATLAS_f32, i, (uint64_t)((at + i) & 0xffff) << 16 | low[(at + i) >> 16]);
      check_rows(&cvt, LANES, rows_only, NULL, 0);
    }
}

int main(void) {
  for (cpu_isa isa = CPU_ISA_BASELINE; isa <= hg_cpu_isa_best(); isa++) {
    kernels = hg_cpu_kernels(isa);
    test_arithmetic();
    test_predicates();
    test_canonical();
    test_conversions();
    test_narrowing();
  }
  return check_report();
}
