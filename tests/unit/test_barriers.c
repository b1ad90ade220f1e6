/* test_barriers.c - random programs of blocks whose lanes meet in shared memory between barriers: by permutations,
 * shifts, trees, under guards that are known and others, in loops of so many rounds as a scalar says, in one dimension
 * and in several, with few steps allowed; on every engine and instruction set that this machine has, against the
 * reference machine. test_barriers [SEED COUNT] runs others. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif

#include "check.h"

#include <stdint.h>

enum { VALUES = 4, MOST_TEXT = 1 << 15, LEAST_WORDS = 1 << 13 };

typedef struct draft {
  uint64_t state;
  uint32_t lanes, labels, length, depth;
  uint32_t block[3], rounds;
  uint64_t step_limit;
  int is_float;
  char text[MOST_TEXT];
} draft;

#include "random_text.h"

static const char *type_of(const draft *d) { return d->is_float ? "f32" : "u32"; }

/* r1 = a permutation of the lanes' numbers. */
static void permuted(draft *d) {
  switch (below(d, d->lanes % 8 == 0 ? 5 : 4)) {
  case 0: line(d, "sub.u32 r1, #%u, blane", d->lanes - 1); break;
  case 1:
    line(d, "add.u32 r1, blane, #%u", below(d, d->lanes));
    line(d, "rem.u32 r1, r1, #%u", d->lanes);
    break;
  case 4: line(d, "xor.u32 r1, blane, #%u", 1 + below(d, 7)); break;
  default: line(d, "mov.u32 r1, blane"); break;
  }
}

/* r1 = any element; seldom one that is not there. */
static void any_element(draft *d) {
  switch (below(d, 6)) {
  case 0: line(d, "movi.u32 r1, #%u", below(d, d->lanes)); break;
  case 1: line(d, "shr.u32 r1, blane, #%u", 1 + below(d, 4)); break;
  case 2:
    line(d, "add.u32 r1, blane, #%u", below(d, d->lanes));
    line(d, "min.u32 r1, r1, #%u", d->lanes - !chance(d, 5));
    break;
  case 3:
    line(d, "and.u32 r1, r10, #7");
    break;
  default: permuted(d); break;
  }
}

/* The address of element r1: as it is, or by an index of another type and a displacement. */
static const char *address(draft *d) {
  static const struct {
    const char *type, *displaced;
  } ways[] = {{"u32", "r2 + #3"}, {"i32", "r2 + #-5"}, {"u64", "r2 + #1"}, {"i64", "r2 + #-2"}, {"i64", "r2 + #7"}};
  if (chance(d, 75)) return "r1";
  uint32_t way = below(d, COUNT(ways));
  const char *type = ways[way].type, *displaced = ways[way].displaced;
  line(d, way == 0 ? "mov.u32 r2, r1" : "cvt.%s.u32 r2, r1", type);
  line(d, "sub.%s r2, r2, #%s", type, strchr(displaced, '#') + 1);
  return displaced;
}

/* Leaves what follows to some of the lanes; to all where it returns 0. */
static uint32_t guard(draft *d) {
  if (chance(d, 40)) return 0;
  uint32_t label = ++d->labels;
  switch (below(d, 5)) {
  case 0: line(d, "set.ge.u32 p0, blane, #%u", 1 + below(d, d->lanes)); break;
  case 1: line(d, "set.ne.u32 p0, blane, #%u", below(d, d->lanes)); break;
  case 2:
    line(d, "and.u32 r2, blane, #%u", 1 + below(d, 31));
    line(d, "set.eq.u32 p0, r2, #0");
    break;
  case 3: line(d, "set.lt.u32 p0, blane, #%u", below(d, d->lanes)); break;
  default:
    line(d, "and.u32 r2, r10, #1");
    line(d, "set.eq.u32 p0, r2, #0");
    break;
  }
  line(d, "@p0 bra l%u", label);
  return label;
}

static void end_guard(draft *d, uint32_t label) {
  if (label != 0) line(d, "l%u:", label);
}

static uint32_t value(draft *d) { return 20 + below(d, VALUES); }

static void compute(draft *d) {
  static const char *const floats[] = {"add", "sub", "mul", "min", "max", "div", "copysign"};
  static const char *const integers[] = {"add", "sub", "mul", "min", "max", "and", "xor"};
  uint32_t to = value(d), a = value(d), b = value(d);
  switch (below(d, 7)) {
  case 6:
    line(d, "mov.%s r6, r%u\nmov.%s r%u, r%u\nmov.%s r%u, r6", type_of(d), a, type_of(d), a, b, type_of(d), b);
    break;
  case 0:
    line(d, "set.lt.%s p1, r%u, r%u", type_of(d), a, b);
    line(d, "sel.%s r%u, p1, r%u, r%u", type_of(d), to, b, value(d));
    break;
  case 1:
    if (d->is_float) line(d, "%s.f32 r%u, r%u", chance(d, 50) ? "neg" : "abs", to, a);
    break;
  default:
    line(d, "%s.%s r%u, r%u, r%u", (d->is_float ? floats : integers)[below(d, 7)], type_of(d), to, a, b);
    break;
  }
}

static void exchange(draft *d) {
  uint32_t label = guard(d), array = below(d, 2);
  permuted(d);
  const char *to = address(d);
  line(d, "sts.%s [s%u + %s], r%u", type_of(d), array, to, value(d));
  end_guard(d, label);
  if (chance(d, 30)) { /* its own again */
    permuted(d);
    const char *at = address(d);
    line(d, "sts.%s [s%u + %s], r%u", type_of(d), 1 - array, at, value(d));
    line(d, "lds.%s r%u, [s%u + %s]", type_of(d), value(d), 1 - array, at);
  }
  line(d, "bar.sync");
  for (uint32_t n = 1 + below(d, 3); n > 0; n--) {
    label = guard(d);
    any_element(d);
    const char *at = address(d);
    line(d, "lds.%s r%u, [s%u + %s]", type_of(d), value(d), array, at);
    if (chance(d, 50)) compute(d);
    end_guard(d, label);
  }
  line(d, "bar.sync");
}

/* Sums by halves, as far as the lanes go. */
static void tree(draft *d) {
  uint32_t from = 1, label = ++d->labels, r = value(d), array = below(d, 2);
  while (from * 4 <= d->lanes || (from * 2 <= d->lanes && chance(d, 80))) from *= 2;
  line(d, "sts.%s [s%u + blane], r%u", type_of(d), array, r);
  line(d, "bar.sync\nmovi.u32 r3, #%u\nagain%u:\nset.ge.u32 p0, blane, r3\n@p0 bra idle%u", from, label, label);
  line(d, "add.u32 r4, blane, r3");
  line(d, "lds.%s r5, [s%u + blane]\nlds.%s r6, [s%u + r4]", type_of(d), array, type_of(d), array);
  line(d, "%s.%s r5, r5, r6", chance(d, 70) ? "add" : "max", type_of(d));
  line(d, "sts.%s [s%u + blane], r5", type_of(d), array);
  line(d, "idle%u:\nbar.sync\nshr.u32 r3, r3, #1\nset.ne.u32 p0, r3, #0\n@p0 bra again%u", label, label);
  if (chance(d, 70)) line(d, "lds.%s r%u, [s%u + #0]", type_of(d), r, array);
  line(d, "bar.sync");
}

static void episodes(draft *d, uint32_t count);

/* Rounds that only the launch knows, or that the text says: to the end, or to its beginning. */
static void loop(draft *d) {
  uint32_t label = ++d->labels, counter = 30 + d->depth, known = 1 + below(d, 3);
  d->depth++;
  if (chance(d, 50)) {
    if (chance(d, 70)) line(d, "mov.u32 r%u, n", counter);
    else line(d, "movi.u32 r%u, #%u", counter, known);
    line(d, "loop%u:", label);
    episodes(d, 1 + below(d, 2));
    line(d, "loop r%u, loop%u", counter, label);
  } else {
    line(d, "movi.u32 r%u, #0\nloop%u:", counter, label);
    if (chance(d, 80)) line(d, "set.ge.u32 p2, r%u, n", counter);
    else line(d, "set.ge.u32 p2, r%u, #%u", counter, known);
    line(d, "@p2 bra left%u\nadd.u32 r%u, r%u, #1", label, counter, counter);
    if (chance(d, 30)) line(d, "add.u32 r10, r10, r%u", counter);
    episodes(d, 1 + below(d, 2));
    line(d, "bra loop%u\nleft%u:", label, label);
  }
  d->depth--;
}

/* Steps between barriers, as many for all lanes or more for some than for others. */
static void loop_of_lane(draft *d) {
  uint32_t label = ++d->labels, r = value(d);
  if (chance(d, 40)) line(d, "movi.u32 r9, #%u\nlane%u:", 1 + below(d, 4), label);
  else line(d, "and.u32 r9, %s, #3\nadd.u32 r9, r9, #1\nlane%u:", chance(d, 50) ? "r10" : "blane", label);
  line(d, "%s.%s r%u, r%u, r%u", chance(d, 50) ? "add" : "sub", type_of(d), r, value(d), value(d));
  if (chance(d, 50)) line(d, "stg.u32 [y + r7 + #%u], r9", below(d, VALUES));
  line(d, "loop r9, lane%u", label);
}

static void collective(draft *d) {
  static const char *const names[] = {"reduce.add", "reduce.mul", "reduce.min", "reduce.max", "scan.incl"};
  if (chance(d, 30)) {
    line(d, "and.u32 r9, %s, #%u\nset.eq.u32 p1, r9, #0", chance(d, 50) ? "r10" : "blane", below(d, 4));
    line(d, "vote.%s p1, p1\nsel.%s r%u, p1, r%u, r%u", chance(d, 50) ? "any" : "all", type_of(d), value(d), value(d),
         value(d));
  } else line(d, "%s.%s r%u, r%u", names[below(d, chance(d, 80) ? 4 : 5)], type_of(d), value(d), value(d));
}

static void coordinates(draft *d) {
  static const char *const names[] = {"lane.x", "lane.y", "global.x", "global.y", "block.x", "global.z", "lane.z"};
  line(d, "sreg.u32 r8, %s", names[below(d, COUNT(names))]);
  if (d->is_float) line(d, "cvt.f32.u32 r%u, r8", value(d));
  else line(d, "mov.u32 r%u, r8", value(d));
}

static void episodes(draft *d, uint32_t count) {
  for (; count > 0; count--) {
    uint32_t kind = below(d, 100);
    if (kind < 15 && d->depth < 2) loop(d);
    else if (kind < 22) loop_of_lane(d);
    else if (kind < 30) coordinates(d);
    else if (kind < 40) collective(d);
    else if (kind < 60) tree(d);
    else exchange(d);
    for (uint32_t k = below(d, 3); k > 0; k--) compute(d);
  }
}

/* In one dimension, or in several. */
static void choose_block(draft *d) {
  static const uint32_t sizes[] = {8, 16, 32, 48, 64, 128, 256, 40, 17};
  d->block[0] = sizes[below(d, COUNT(sizes))];
  d->block[1] = d->block[2] = 1;
  if (d->block[0] <= 32 && chance(d, 40)) {
    d->block[1] = 1 + below(d, 4);
    d->block[2] = 1 + below(d, 2);
  }
  d->lanes = d->block[0] * d->block[1] * d->block[2];
}

static void write_text(draft *d) {
  choose_block(d);
  d->is_float = chance(d, 65);
  line(d, ".program barriers\n.block %u, %u, %u", d->block[0], d->block[1], d->block[2]);
  line(d, ".buffer x u32 in\n.buffer y u32 inout\n.scalar n u32");
  for (int i = 0; i < 2; i++) line(d, ".shared s%d %s %u", i, type_of(d), d->lanes);
  line(d, "ldg.u32 r10, [x + lane]\ncvt.u32.u64 r7, lane\nshl.u32 r7, r7, #2");
  for (uint32_t i = 0; i < VALUES; i++) {
    line(d, "ldg.u32 r11, [x + lane + #%u]", i * 3);
    line(d, d->is_float ? "bitcast.f32.u32 r%u, r11" : "mov.u32 r%u, r11", 20 + i);
  }
  episodes(d, 2 + below(d, 4));
  for (uint32_t i = 0; i < VALUES; i++) {
    line(d, d->is_float ? "bitcast.u32.f32 r2, r%u" : "mov.u32 r2, r%u", 20 + i);
    line(d, "stg.u32 [y + r7 + #%u], r2", i);
  }
  line(d, "exit");
  d->rounds = 1 + below(d, 3);
  d->step_limit = chance(d, 25) ? 1 + below(d, chance(d, 50) ? 6 : 40) : 0;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

typedef struct result {
  uint32_t y[LEAST_WORDS];
  hg_fault fault;
} result;

/* Numbers, and every kind of NaN. */
static void fill(uint32_t *words, uint32_t seed) {
  draft d = {.state = seed};
  for (uint32_t i = 0; i < LEAST_WORDS; i++) {
    words[i] = below(&d, 1u << 31) << 1 | below(&d, 2);
    if (chance(&d, 80)) words[i] = (words[i] & 0x80ffffff) | 0x3f000000;
    if (chance(&d, 3)) words[i] |= 0x7f800000;
  }
}

/* `lanes` in a row, or in blocks. */
static void describe(const draft *d, uint64_t lanes, hg_launch_desc *launch) {
  launch->step_limit = d->step_limit;
  if (d->block[1] * d->block[2] == 1) {
    launch->lanes = lanes;
    return;
  }
  uint32_t blocks = (uint32_t)((lanes + d->lanes - 1) / d->lanes);
  launch->grid[0] = blocks % 2 == 0 ? blocks / 2 : blocks;
  launch->grid[1] = blocks % 2 == 0 ? 2 : 1;
  launch->grid[2] = 1;
}

static result run(const draft *d, const char *engine, const char *isa, uint64_t lanes) {
  static uint32_t x[LEAST_WORDS];
  result r;
  fill(x, d->length);
  fill(r.y, d->length + 1);
  hg_scalar n = {.name = "n", .type = ATLAS_u32, .bits = d->rounds};
  hg_launch_desc launch = {.scalars = &n, .scalar_count = 1};
  describe(d, lanes, &launch);
  open_engine(engine, isa);
  r.fault = launch_xy(d->text, &launch, x, sizeof x, sizeof x, r.y, sizeof r.y, sizeof r.y);
  hg_executor_release(executor);
  return r;
}

static void compare(const draft *d, const char *engine, const char *isa, uint64_t lanes, const result *expected) {
  result r = run(d, engine, isa, lanes);
  const hg_fault *a = &r.fault, *b = &expected->fault;
  int same = memcmp(r.y, expected->y, sizeof r.y) == 0;
  int same_fault = a->kind == b->kind && a->lane == b->lane && a->instruction == b->instruction && a->index == b->index;
  if (!check_note(same && same_fault))
    printf("%llu lanes, n %u, %llu steps, %s %s: other %s than the reference machine\n%s\n", (unsigned long long)lanes,
           d->rounds, (unsigned long long)d->step_limit, engine, isa, same ? "faults" : "values", d->text);
}

static void check_program(uint64_t seed) {
  static draft d;
  start_draft(&d, seed);
  write_text(&d);
  uint64_t lanes = (1 + below(&d, 4)) * d.lanes - (chance(&d, 30) ? below(&d, d.lanes) : 0);
  CHECK_ON_EVERY_ENGINE(&d, lanes);
}

int main(int argc, char **argv) { return check_programs(argc, argv, check_program); }
