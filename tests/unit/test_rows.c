/* test_rows.c - random programs whose lanes walk over rows together, `for (i = lane; i < n; i += block)`: with counters
 * of every type, conditions of every form at the top and at the bottom, steps that overlap and that wrap, bodies with
 * branches and atomics, indices of one term and of two, past the end of what is bound, with few steps allowed; on
 * every engine and instruction set that this machine has, against the reference machine. test_rows [SEED COUNT] runs
 * others. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif

#include "check.h"

#include <stdint.h>

enum { MOST_TEXT = 1 << 13, BYTES = 1 << 16 };

typedef struct draft {
  uint64_t state;
  uint32_t length, labels, lanes, columns, extent;
  uint64_t step_limit;
  const char *type, *counter; /* of the elements, of the index */
  int is_linear;              /* 1: the whole grid walks over one row */
  int is_regular, stores;     /* 1: no two lanes come to one element; the current loop may store it */
  char text[MOST_TEXT];
} draft;

#include "random_text.h"

static int is_float(const draft *d) { return d->type[0] == 'f' || d->type[0] == 'b'; }

/* r4 = an element of x. */
static void load(draft *d) {
  switch (below(d, 4)) {
  case 0: line(d, "ldg.%s r4, [x + r3 + #%d]", d->type, (int)below(d, 40) - 4); break;
  case 1:
    line(d, "add.%s r5, r3, r6", d->counter);
    line(d, "ldg.%s r4, [x + r5]", d->type);
    break;
  default: line(d, "ldg.%s r4, [x + r3]", d->type); break;
  }
}

static void compute(draft *d) {
  static const char *const ops[] = {"add", "sub", "mul", "min", "max"};
  if (is_float(d) && chance(d, 25)) line(d, "exp.%s r4, r4", d->type);
  line(d, "%s.%s r%u, r2, r4", ops[below(d, 5)], d->type, chance(d, 60) ? 2 : 4);
}

static void statement(draft *d) {
  uint32_t label = ++d->labels;
  switch (below(d, 6)) {
  case 0:
    if (d->stores) line(d, "stg.%s [y + r3], r%u", d->type, chance(d, 50) ? 2 : 4);
    break;
  case 1: /* some lanes */
    line(d, "set.lt.%s p1, r4, r2\n@p1 bra skip%u", d->type, label);
    compute(d);
    if (d->stores && chance(d, 40)) line(d, "stg.%s [y + r3], r4", d->type);
    line(d, "skip%u:", label);
    break;
  case 2:
    line(d, "cvt.u32.%s r8, r3\nand.u32 r8, r8, #15\natom.add.u32 _, [s + r8], #1", d->counter);
    break;
  case 3: /* one side or the other */
    line(d, "set.lt.%s p1, r2, r4\n@p1 bra other%u\nadd.%s r4, r4, r2\nbra met%u\nother%u:", d->type, label, d->type,
         label, label);
    line(d, "max.%s r4, r4, r2\nmet%u:", d->type, label);
    break;
  default: compute(d); break;
  }
}

static void body(draft *d) {
  load(d);
  if (strcmp(d->type, "u8") == 0 && chance(d, 70)) line(d, "atom.add.u32 _, [t + r4], #%u", 1 + below(d, 2));
  for (uint32_t n = 1 + below(d, 3); n > 0; n--) statement(d);
  if (chance(d, 8)) line(d, "set.eq.%s p2, r4, r2\n@p2 bra out%u", d->type, d->labels + 1);
}

/* A loop over the row; its label is the next number when the body has been written. */
static void walk(draft *d) {
  static const char *const stays[] = {"lt", "le", "ne"}, *const leaves[] = {"ge", "gt", "eq"};
  static draft inner;
  uint32_t form = chance(d, 90) ? below(d, 2) : 2;
  int is_first = chance(d, 80), is_exchanged = form < 2 && chance(d, 30);
  int is_usual = chance(d, 85);
  inner = *d;
  inner.length = 0;
  inner.text[0] = 0;
  inner.stores = d->is_regular && is_usual && is_first && form == 0 && !is_exchanged;
  body(&inner);
  if (is_usual) line(&inner, "add.%s r3, r3, r7", d->counter);
  else line(&inner, "add.%s r3, r3, #%u", d->counter, 1 + below(&inner, 300));
  uint32_t label = ++inner.labels;
  static const char *const exchanged_stays[] = {"gt", "ge"}, *const exchanged_leaves[] = {"le", "lt"};
  const char *first = is_exchanged ? "r1" : "r3", *second = is_exchanged ? "r3" : "r1";
  const char *stay = is_exchanged ? exchanged_stays[form] : stays[form];
  const char *leave = is_exchanged ? exchanged_leaves[form] : leaves[form];
  line(d, "mov.%s r3, r0\nagain%u:", d->counter, label);
  if (is_first) line(d, "set.%s.%s p0, %s, %s\n@p0 bra out%u", leave, d->counter, first, second, label);
  d->length += (uint32_t)snprintf(d->text + d->length, MOST_TEXT - d->length, "%s", inner.text);
  if (is_first) line(d, "bra again%u", label);
  else line(d, "set.%s.%s p0, %s, %s\n@p0 bra again%u", stay, d->counter, first, second, label);
  line(d, "out%u:", label);
  d->labels = label;
  d->state = inner.state;
}

static void collective(draft *d) {
  static const char *const names[] = {"reduce.add", "reduce.mul", "reduce.min", "reduce.max", "scan.incl", "scan.excl"};
  if (chance(d, 25)) {
    line(d, "set.lt.%s p3, r2, r4\nvote.%s p3, p3\nsel.%s r2, p3, r4, r2", d->type, chance(d, 50) ? "any" : "all",
         d->type);
  } else line(d, "%s.%s r2, r2", names[below(d, chance(d, 80) ? 4 : 6)], d->type);
}

/* r0: where a lane begins; r1: the end of the row; r6: something uniform; r7: the step. */
static void write_text(draft *d) {
  static const char *const types[] = {"f32", "f32", "f32", "u32", "i32", "f64", "f16", "u8", "i16"};
  static const char *const counters[] = {"u32", "u32", "u32", "i32", "u64", "u64", "i64"};
  static const uint32_t sizes[] = {32, 64, 128, 256, 256, 48, 16, 17, 100};
  d->lanes = sizes[below(d, COUNT(sizes))];
  d->type = types[below(d, COUNT(types))];
  d->counter = counters[below(d, COUNT(counters))];
  d->is_linear = chance(d, 30);
  line(d, ".program rows\n.block %u\n.buffer x %s in\n.buffer y %s inout", d->lanes, d->type, d->type);
  line(d, ".scalar columns %s\n.scalar little %s\n.shared s u32 16\n.shared t u32 256", d->counter, d->counter);
  line(d, "cvt.%s.u32 r0, r253\nmul.%s r0, r0, columns\nadd.%s r1, r0, columns", d->counter, d->counter, d->counter);
  line(d, "cvt.%s.u32 r9, blane\nadd.%s r0, r0, r9", d->counter, d->counter);
  if (d->is_linear) line(d, "cvt.%s.u64 r0, lane\nmov.%s r1, columns", d->counter, d->counter);
  line(d, "mov.%s r6, little\nmovi.%s r7, #%u", d->counter, d->counter, d->lanes);
  d->is_regular = chance(d, 90);
  if (!d->is_regular) line(d, "mov.%s r7, little\nadd.%s r7, r7, #%u", d->counter, d->counter, below(d, 90));
  if (d->is_linear)
    line(d, "sreg.u32 r10, grid_size.x\ncvt.%s.u32 r7, r10\nmul.%s r7, r7, #%u", d->counter, d->counter, d->lanes);
  if (!d->is_regular && chance(d, 40))
    line(d, "sub.%s r1, r1, r1\nsub.%s r1, r1, #%u", d->counter, d->counter, below(d, 300));
  line(d, "movi.%s r2, #%s\nmov.%s r4, r2", d->type, is_float(d) ? "0.5" : "1", d->type);
  for (uint32_t n = 1 + below(d, 3); n > 0; n--) {
    walk(d);
    if (chance(d, 70)) collective(d);
  }
  line(d, "bar.sync\ncvt.u32.u64 r8, lane\nstg.%s [y + r8 + #3072], r2", d->type);
  line(d, "and.u32 r9, blane, #15\nlds.u32 r10, [s + r9]\nlds.u32 r11, [t + blane]\nadd.u32 r10, r10, r11");
  line(d, "cvt.%s.u32 r9, r10\nstg.%s [y + r8 + #4096], r9\nexit", d->type, d->type);
  d->columns = chance(d, 30) ? d->lanes * below(d, 6) : below(d, 1000);
  d->extent = chance(d, 75) ? BYTES / 8 : 300 + below(d, 900);
  d->step_limit = chance(d, 15) ? 1 + below(d, 6) : 200;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

typedef struct result {
  uint8_t y[BYTES];
  hg_fault fault;
} result;

/* Numbers in f32 and f64, and every kind of NaN. */
static void fill(uint8_t *bytes, uint64_t seed) {
  draft d = {.state = seed};
  for (uint32_t i = 0; i < BYTES; i++) bytes[i] = (uint8_t)(i % 4 == 3 ? (below(&d, 2) << 7) + 0x3f : below(&d, 256));
  for (uint32_t i = 0; i < 30; i++) bytes[below(&d, BYTES)] = 0xff;
}

static result run(const draft *d, const char *engine, const char *isa, uint64_t lanes) {
  static uint8_t x[BYTES];
  result r;
  uint32_t size = d->type[0] == 'b' || strchr(d->type, '1') != NULL ? 2 : strchr(d->type, '8') != NULL ? 1
                  : strchr(d->type, '6') != NULL                    ? 8
                                                                    : 4;
  fill(x, d->length);
  fill(r.y, d->length + 1);
  atlas_type type = d->counter[1] == '3' ? (d->counter[0] == 'u' ? ATLAS_u32 : ATLAS_i32)
                                         : (d->counter[0] == 'u' ? ATLAS_u64 : ATLAS_i64);
  hg_scalar scalars[2] = {{.name = "columns", .type = (uint8_t)type, .bits = d->columns},
                          {.name = "little", .type = (uint8_t)type, .bits = d->columns % 7}};
  hg_launch_desc launch = {.lanes = lanes, .scalars = scalars, .scalar_count = 2, .step_limit = d->step_limit};
  open_engine(engine, isa);
  r.fault = launch_xy(d->text, &launch, x, sizeof x, (uint64_t)d->extent * size, r.y, sizeof r.y,
                      (uint64_t)(BYTES / 8) * size);
  hg_executor_release(executor);
  return r;
}

static void compare(const draft *d, const char *engine, const char *isa, uint64_t lanes, const result *expected) {
  result r = run(d, engine, isa, lanes);
  const hg_fault *a = &r.fault, *b = &expected->fault;
  int same = memcmp(r.y, expected->y, sizeof r.y) == 0;
  int same_fault = a->kind == b->kind && a->lane == b->lane && a->index == b->index && a->extent == b->extent &&
                   a->instruction == b->instruction;
  if (!check_note(same && same_fault))
    printf("%llu lanes, %u columns, extent %u, %llu steps, %s %s: other %s than the reference machine\n%s\n",
           (unsigned long long)lanes, d->columns, d->extent, (unsigned long long)d->step_limit, engine, isa,
           same ? "faults" : "values", d->text);
}

static void check_program(uint64_t seed) {
  static draft d;
  start_draft(&d, seed);
  write_text(&d);
  uint64_t lanes = (1 + below(&d, 3)) * d.lanes - (chance(&d, 20) ? below(&d, d.lanes) : 0);
  CHECK_ON_EVERY_ENGINE(&d, lanes);
}

int main(int argc, char **argv) { return check_programs(argc, argv, check_program); }
