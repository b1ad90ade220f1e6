/* test_fault_programs.c - random programs whose accesses fault again and again: under masks, in nested loops that lanes
 * leave one by one, by indices of every kind. They leave the memory and the fault of the reference machine.
 * test_fault_programs SEED COUNT: other programs. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

enum {
  PROGRAMS = 300,
  LAUNCHES = 4,    /* of each program */
  STATEMENTS = 24, /* of a program, at most */
  MOST_LANES = 1000,
  MOST_ELEMENTS = 1100,
  MOST_OFFSET = 1024,
  BYTES = 8 * MOST_ELEMENTS + 2 * MOST_OFFSET,
  TEXT_BYTES = 8192,
  WORD_BYTES = 16
};

/* Results do not depend on the order of lanes: each lane has its own element of y and of shared memory; all stores to w
 * store the same value, and so do those to v; a program updates a by one operation and drops the results. */
enum { X, Y, W, A, Z, B, H, V, BUFFERS };
static const char *const names[BUFFERS] = {"x", "y", "w", "a", "z", "b", "h", "v"};

typedef struct draft {
  char text[TEXT_BYTES];
  size_t size;
  const char *type;   /* of x, y, w, shared memory and local arrays */
  const char *index;  /* of indices, z and `first` */
  const char *update; /* of a */
  char to_index[WORD_BYTES], own_xor[WORD_BYTES], own_add[WORD_BYTES];
  int has_shared, has_local;
  unsigned labels, statements_left;
} draft;

static uint64_t state;

/* Never twice among the arguments of a call or in a list: compilers choose their order, and programs would differ. */
static uint32_t below(uint32_t n) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)((state >> 33) % n);
}

#define PICK(array) ((array)[below(COUNT(array))])

/* Letters in the texts of programs stand for: T type, I index type, C conversion of a u32 to it, D displacement or
 * nothing, K factor, M 2^n - 1, N number below 64, S number below 4, P number of a mask, U update; X and O make the
 * number of a lane in its block that of its element of shared memory. */
static void add(draft *d, const char *template) {
  static const char *const displacements[] = {
    "", "", "", "", "", "", "", "", " + #1", " + #2", " + #-1", " + #-3", " + #17", " + #-40", " + #700", " + #1048576",
    " + #-1048576", " + #134217727", " + #-134217727"};
  static const char *const factors[] = {"1", "3", "8", "64", "1000", "40503"}, *const masks[] = {"1", "2"};
  char mask[WORD_BYTES], number[WORD_BYTES], small[WORD_BYTES];
  snprintf(mask, sizeof mask, "%u", (8u << below(8)) - 1);
  snprintf(number, sizeof number, "%u", below(64));
  snprintf(small, sizeof small, "%u", below(4));
  const char *displacement = PICK(displacements);
  const char *factor = PICK(factors);
  const char *p = PICK(masks);
  const char *words[] = {d->type, d->index, d->to_index, displacement, factor, mask, number, small, p, d->update,
                         d->own_xor, d->own_add};
  fill_in(template, "TICDKMNSPUXO", words, d->text + d->size, sizeof d->text - d->size);
  d->size += strlen(d->text + d->size);
}

/* r0 is the round, r1 a sum, r7 seven, r9 the lane, r10 `first`, the round or their sum, r11 a number below 64 and r12
 * an index that data change, r24 nine; p1 and p2 hold in some lanes. r20 becomes an index. */
static void add_index(draft *d) {
  static const char *const indices[] = {
    "C r20, r9\nadd.I r20, r20, r10\n",
    "mov.I r20, r10\n",
    "mul.u32 r21, r9, #K\nadd.u32 r21, r21, r0\nand.u32 r21, r21, #M\nC r20, r21\n",
    "mov.I r20, r12\nadd.I r20, r20, r10\n",
    "xor.u32 r21, r9, #N\nC r20, r21\n",
    "mov.I r20, r12\n",
    "mul.u32 r21, r0, #N\nadd.u32 r21, r21, r9\nC r20, r21\n",
    "add.u32 r21, r252, #N\nxor.u32 r21, r21, #3\nC r20, r21\n",
    "shl.u32 r21, r9, #S\nC r20, r21\nadd.I r20, r20, r10\n"};
  add(d, PICK(indices));
  if (below(3) == 0) add(d, "add.I r20, r20, first\n");
}

/* Accesses of buffers. */
static void add_access(draft *d) {
  static const char *const by_index[] = {
    "ldg.T r2, [x + r20D]\nadd.T r1, r1, r2\n",
    "ldg.T r2, [x + r20D]\nadd.T r1, r1, r2\n",
    "ldg.T r2, [x + r20D]\nadd.T r1, r1, r2\n",
    "ldg.I r20, [z + r20D]\nadd.I r12, r12, r20\nand.I r12, r12, #2047\n", /* the result replaces the index */
    "ldg.u8 r22, [b + r20D]\ncvt.u32.u8 r21, r22\nadd.u32 r11, r11, r21\nand.u32 r11, r11, #63\n",
    "ldg.u16 r23, [h + r20D]\ncvt.u32.u16 r21, r23\nadd.u32 r11, r11, r21\nand.u32 r11, r11, #63\n",
    "stg.T [w + r20D], r7\n",
    "stg.u8 [v + r20D], r24\n",
    "atom.U.u32 _, [a + r20D], #N\n",
    "atom.U.u32 _, [a + r20D], r9\n"};
  static const char *const others[] = {
    "ldg.T r2, [x + laneD]\nadd.T r1, r1, r2\n",
    "ldg.T r2, [x + #N]\nadd.T r1, r1, r2\n",
    "stg.T [w + laneD], r7\n",
    "stg.T [w + #N], r7\n",
    "ldg.I r12, [z + r12D]\n"}; /* the next index is what this one loads */
  if (below(3) > 0) {
    add_index(d);
    add(d, PICK(by_index));
  } else add(d, PICK(others));
}

static void add_simple(draft *d) {
  static const char *const changes[] = {"add.I r12, r12, r10\n",
                                        "set.lt.u32 pP, r11, #N\nadd.u32 r11, r11, #N\nand.u32 r11, r11, #63\n"};
  static const char *const locals[] = {"and.u32 r21, r0, #7\nldl.T r2, [l + r21]\n",
                                       "and.u32 r21, r9, #7\nldl.T r2, [l + r21]\n",
                                       "and.u32 r21, r9, #15\nldl.T r2, [l + r21 + #-1]\n"};
  unsigned way = below(16);
  if (way < 2) add(d, PICK(changes));
  else if (way == 2 && d->has_shared)
    add(d, "xor.u32 r21, r252, #X\nadd.u32 r21, r21, #O\nlds.T r2, [s + r21]\nadd.T r1, r1, r2\nsts.T [s + r21], r1\n");
  else if (way == 3 && d->has_local) {
    add(d, PICK(locals));
    add(d, "add.T r1, r1, r2\nstl.T [l + r21], r1\n");
  } else add_access(d);
}

#define LINE(d, ...) (d)->size += (size_t)snprintf((d)->text + (d)->size, TEXT_BYTES - (d)->size, __VA_ARGS__)

static void add_body(draft *d, unsigned depth);

/* A loop whose rounds are the same in all lanes or not, with a counter of its own. */
static void add_loop(draft *d, unsigned depth) {
  static const char *const same[] = {"movi.u32 r21, #1\n", "movi.u32 r21, #2\n", "movi.u32 r21, #5\n"};
  static const char *const own[] = {"and.u32 r21, r9, #3\nadd.u32 r21, r21, #1\n",
                                    "and.u32 r21, r9, #7\nadd.u32 r21, r21, #1\n"};
  unsigned label = d->labels++, counter = 13 + depth;
  LINE(d, "movi.u32 r%u, #0\nlabel%u:\n", counter, label);
  add_body(d, depth + 1);
  LINE(d, "add.u32 r%u, r%u, #1\n", counter, counter);
  add(d, below(2) ? PICK(same) : PICK(own));
  LINE(d, "set.lt.u32 p0, r%u, r21\n@p0 bra label%u\n", counter, label);
}

static void add_statement(draft *d, unsigned depth) {
  unsigned way = depth > 2 ? 0 : below(8);
  if (way < 5) add_simple(d);
  else if (way == 7) add_loop(d, depth);
  else {
    unsigned label = d->labels++;
    add(d, below(2) ? "@!pP" : "@pP");
    LINE(d, " bra label%u\n", label);
    add_body(d, depth + 1);
    LINE(d, "label%u:\n", label);
  }
}

static void add_body(draft *d, unsigned depth) {
  for (unsigned i = 1 + below(depth == 0 ? 6 : 3); i-- > 0 && d->statements_left > 0;) {
    d->statements_left--;
    add_statement(d, depth);
  }
}

static void start_draft(draft *d) {
  static const char *const types[] = {"u32", "u64", "f32", "f64", "i32"}, *const indices[] = {"u32", "i32", "u64",
                                                                                              "i64"};
  static const char *const updates[] = {"add", "min", "max", "and", "or", "xor"};
  *d = (draft){.statements_left = STATEMENTS};
  d->type = PICK(types);
  d->index = PICK(indices);
  d->update = PICK(updates);
  d->has_shared = below(4) == 0;
  d->has_local = below(4) == 0;
  if (strcmp(d->index, "u32") == 0) snprintf(d->to_index, WORD_BYTES, "mov.u32");
  else snprintf(d->to_index, WORD_BYTES, "cvt.%s.u32", d->index);
  snprintf(d->own_xor, WORD_BYTES, "%u", below(8));
  snprintf(d->own_add, WORD_BYTES, "%u", below(3) ? 0 : below(400));
}

static void write_program(draft *d) {
  start_draft(d);
  add(d, ".program p\n.buffer x T in\n.buffer y T inout\n.buffer w T out\n.buffer a u32 inout\n.buffer z I in\n"
         ".buffer b u8 in\n.buffer h u16 in\n.buffer v u8 out\n.scalar first I\n");
  if (d->has_shared) LINE(d, ".shared s %s %u\n", d->type, 64 + below(400));
  if (d->has_local) LINE(d, ".local l %s %u\n", d->type, 6 + below(11));
  add(d, "movi.u32 r0, #0\ncvt.u32.u64 r9, lane\nmul.u32 r11, r9, #37\nand.u32 r11, r11, #63\nset.lt.u32 p1, r11, #40\n"
         "set.lt.u32 p2, r11, #7\nldg.T r1, [y + lane]\nmov.I r10, first\nmovi.u8 r24, #9\nC r12, r9\n");
  LINE(d, "movi.%s r7, #7%s\nloop:\n", d->type, d->type[0] == 'f' ? ".0" : "");
  if (below(2)) add(d, "C r10, r0\n");
  if (below(2)) add(d, "add.I r10, r10, first\n");
  add_body(d, 0);
  LINE(d, "add.u32 r0, r0, #1\nset.lt.u32 p0, r0, #%u\n@p0 bra loop\n", 1 + below(6));
  add(d, "stg.T [y + lane], r1\nexit\n");
}

typedef struct trial {
  hg_launch_desc desc; /* without bindings and scalars */
  hg_scalar first;
  uint64_t offset[BUFFERS], byte_count[BUFFERS];
  const uint8_t *contents[BUFFERS];
} trial;

static uint8_t data[BYTES];            /* no NaN, no infinity */
static uint32_t indices_32[BYTES / 4]; /* of z: most are small */
static uint64_t indices_64[BYTES / 8];

static uint64_t any_index(void) {
  if (below(10) > 0) return below(300);
  if (below(3) > 0) return below(5000);
  uint64_t index = below(1u << 30);
  return index << below(34);
}

static void make_data(void) {
  for (size_t i = 0; i < BYTES; i++) data[i] = (uint8_t)(1 + below(63));
  for (size_t i = 0; i < COUNT(indices_32); i++) {
    uint64_t index = any_index();
    if (below(30) == 0) index = 0 - index;
    indices_32[i] = (uint32_t)index;
    indices_64[i / 2] = index;
  }
}

static int is_64(const char *type) { return type[1] == '6'; }

static hg_scalar pick_first(const draft *d) {
  static const int64_t firsts[] = {
      0, 1, 5, -3, -40, 60, 333, 1 << 30, INT32_MAX - 20, -(1 << 20), INT64_MIN, INT64_MAX - 9, UINT32_MAX - 5};
  static const uint8_t types[2][2] = {{ATLAS_u32, ATLAS_i32}, {ATLAS_u64, ATLAS_i64}};
  int64_t first = below(2) ? (int64_t)below(20) : PICK(firsts);
  return (hg_scalar){.name = "first", .type = types[is_64(d->index)][d->index[0] == 'i'],
                     .bits = is_64(d->index) ? (uint64_t)first : (uint32_t)first};
}

/* Makes it a launch of lanes or of blocks; returns how many lanes that is. */
static uint64_t pick_lanes(hg_launch_desc *desc) {
  static const uint32_t blocks[][3] = {{16, 8, 1}, {7, 3, 2}, {100, 1, 1}, {32, 1, 1},
                                       {64, 2, 1}, {8, 8, 2}, {128, 1, 1}, {5, 1, 3}};
  if (below(3) > 0) return desc->lanes = 1 + below(below(2) ? 70 : MOST_LANES);
  const uint32_t *block = PICK(blocks);
  uint64_t lanes = 1;
  for (unsigned i = 0; i < 3; i++) {
    desc->block[i] = block[i];
    desc->grid[i] = 1 + below(i == 0 ? 3 : 2);
    lanes *= (uint64_t)desc->block[i] * desc->grid[i];
  }
  return lanes;
}

/* Most buffers are too short for what is accessed. */
static trial make_trial(const draft *d) {
  static const uint32_t counts[] = {1, 5, 64, 300, 700, 1000, 1031, MOST_ELEMENTS};
  trial t = {.first = pick_first(d)};
  uint32_t lanes = (uint32_t)pick_lanes(&t.desc);
  uint64_t type = is_64(d->type) ? 8 : 4, index = is_64(d->index) ? 8 : 4;
  const uint64_t element[BUFFERS] = {type, type, type, 4, index, 1, 2, 1};
  for (unsigned b = 0; b < BUFFERS; b++) {
    uint64_t count = b == Y && below(6) > 0 ? lanes : below(4) > 0 ? PICK(counts) : 1 + below(lanes);
    if (count > MOST_ELEMENTS) count = MOST_ELEMENTS;
    t.byte_count[b] = count * element[b];
    t.offset[b] = 8 * (uint64_t)below(MOST_OFFSET / 8);
    t.contents[b] = b != Z ? data : index == 8 ? (const uint8_t *)indices_64 : (const uint8_t *)indices_32;
  }
  return t;
}

typedef struct outcome {
  hg_status status;
  hg_fault fault;
  uint8_t memory[BUFFERS][BYTES]; /* beyond what is bound, too */
} outcome;

static void launch(hg_executor *on, hg_kernel *kernel, const trial *t, outcome *o) {
  hg_binding bindings[BUFFERS];
  hg_launch_report report = {.size = sizeof report};
  hg_launch_desc desc = t->desc;
  executor = on;
  for (unsigned b = 0; b < BUFFERS; b++)
    bindings[b] = (hg_binding){.name = names[b], .buffer = buffer_of(BYTES, t->contents[b]), .offset = t->offset[b],
                               .byte_count = t->byte_count[b]};
  desc.size = sizeof desc;
  desc.bindings = bindings;
  desc.binding_count = BUFFERS;
  desc.scalars = &t->first;
  desc.scalar_count = 1;
  o->status = hg_launch(kernel, &desc, &report);
  o->fault = report.fault;
  for (unsigned b = 0; b < BUFFERS; b++) {
    CHECK_EQ_U64(hg_buffer_read(bindings[b].buffer, 0, o->memory[b], BYTES), HG_OK);
    hg_buffer_release(bindings[b].buffer);
  }
}

static unsigned launches, faults, programs_failed;

static int check_trial(hg_kernel *const kernels[2], const trial *t) {
  static outcome expected, got;
  unsigned long failed = check_failed;
  launch(reference, kernels[0], t, &expected);
  launch(tested, kernels[1], t, &got);
  CHECK(expected.status == HG_OK || expected.status == HG_FAULT);
  CHECK_EQ_U64(got.status, expected.status);
  check_same_fault(&got.fault, &expected.fault);
  CHECK_EQ_U64(got.fault.extent, expected.fault.extent);
  CHECK_STR(got.fault.buffer, expected.fault.buffer);
  for (unsigned b = 0; b < BUFFERS; b++)
    if (!check_note(memcmp(got.memory[b], expected.memory[b], BYTES) == 0)) printf("%s is other memory\n", names[b]);
  launches++;
  faults += expected.status == HG_FAULT;
  return check_failed == failed;
}

static void check_program(uint64_t seed) {
  draft d;
  hg_kernel *kernels[2];
  state = seed * UINT64_C(0x9e3779b97f4a7c15);
  for (int i = 0; i < 4; i++) below(2);
  write_program(&d);
  executor = reference, kernels[0] = kernel_of(d.text);
  executor = tested, kernels[1] = kernel_of(d.text);
  int is_same = 1;
  for (int i = 0; i < LAUNCHES; i++) {
    trial t = make_trial(&d);
    is_same &= check_trial(kernels, &t);
  }
  if (!is_same) printf("seed %llu:\n%s", (unsigned long long)seed, d.text);
  programs_failed += !is_same;
  hg_kernel_release(kernels[0]);
  hg_kernel_release(kernels[1]);
}

int main(int argc, char **argv) {
  uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 10) : PROGRAMS;
  open_both();
  make_data();
  for (uint64_t i = 0; i < count; i++)
    if (in_shard()) check_program(seed + i);
  CHECK(faults > launches / 2);
  close_both();
  if (programs_failed > 0) printf("%u programs failed\n", programs_failed);
  return check_report();
}
