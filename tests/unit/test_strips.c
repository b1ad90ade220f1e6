/* test_strips.c - sums of the columns of a matrix by a binary counter of partial sums: loops that several ways lead
 * back in, whose rounds load many rows, any of them perhaps out of bounds, and whose levels only some rounds touch.
 * With columns that are no neighbours, indices that wrap, blocks that are no multiple of a group of vectors, NaNs, and
 * step limits that end a loop on any way. They leave the memory and the fault of the reference machine. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

enum { BLOCK = 112, BLOCKS = 2, LANES = BLOCK * BLOCKS, ELEMENTS = 1 << 14, ROOM = 1 << 14 };

typedef struct shape {
  const char *type;       /* of values */
  const char *index_type; /* of indices */
  uint32_t batch;         /* rows that a round loads */
  uint32_t levels;        /* 2^levels rounds */
  int is_uneven;          /* lanes' columns are no neighbours where the vectors of a group meet */
} shape;

typedef struct trial {
  uint64_t columns, first, extent, step_limit;
} trial;

typedef struct outcome {
  uint32_t sums[LANES];
  hg_fault fault;
  hg_status status;
} outcome;

static char text[ROOM];
static size_t used;

#define ADD(...) (used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__))

static void write_carries(const shape *s) {
  for (uint32_t level = 0; level < s->levels; level++) {
    ADD("and.u32 r106, r104, #%u\nset.ne.u32 p0, r106, #0\n@p0 bra carry%u\n", 1u << level, level);
    ADD("mov.%s r%u, r0\nbra counted\ncarry%u:\n", s->type, 64 + level, level);
    ADD("add.%s r0, r%u, r0\n", s->type, 64 + level);
  }
}

/* Round n loads rows r, r + 2^levels, ... where r is n with its bits reversed. */
static void write_program(const shape *s) {
  const char *t = s->type, *i = s->index_type;
  used = 0;
  ADD(".program p\n.block %d\n.buffer x %s in\n.buffer y %s out\n.scalar columns %s\n.scalar first %s\n", BLOCK, t, t,
      i, i);
  ADD("cvt.%s.u64 r100, lane\n", i);
  if (s->is_uneven) ADD("div.%s r99, r100, #50\nadd.%s r100, r100, r99\n", i, i);
  ADD("add.%s r100, r100, first\nmovi.u32 r104, #0\n", i);
  for (uint32_t level = 0; level < s->levels; level++) ADD("movi.%s r%u, #0\n", t, 64 + level);
  ADD("next:\nbrev.u32 r105, r104\nshr.u32 r105, r105, #%u\n", 32 - s->levels);
  if (strcmp(i, "u32") != 0) ADD("cvt.%s.u32 r105, r105\n", i);
  ADD("mad.%s r105, r105, columns, r100\nmul.%s r103, columns, #%u\n", i, i, 1u << s->levels);
  for (uint32_t k = 0; k < s->batch; k++) ADD("ldg.%s r%u, [x + r105]\nadd.%s r105, r105, r103\n", t, k, i);
  for (uint32_t half = s->batch / 2; half > 0; half /= 2)
    for (uint32_t k = 0; k < half; k++) ADD("add.%s r%u, r%u, r%u\n", t, k, k, k + half);
  write_carries(s);
  ADD("bra folded\ncounted:\nadd.u32 r104, r104, #1\nbra next\nfolded:\nstg.%s [y + lane], r0\nexit\n", t);
}

static outcome run(hg_kernel *kernel, hg_buffer *x, const shape *s, const trial *t) {
  outcome o = {.status = HG_OK};
  uint8_t type = strcmp(s->index_type, "u32") == 0 ? ATLAS_u32 : ATLAS_u64;
  hg_buffer *y = buffer_of(sizeof o.sums, NULL);
  hg_binding bindings[] = {{.name = "x", .buffer = x, .byte_count = 4 * t->extent}, {.name = "y", .buffer = y}};
  hg_scalar scalars[] = {{.name = "columns", .type = type, .bits = t->columns},
                         {.name = "first", .type = type, .bits = t->first}};
  hg_launch_desc desc = {.grid = {BLOCKS, 1, 1}, .bindings = bindings, .binding_count = 2, .scalars = scalars,
                         .scalar_count = 2, .step_limit = t->step_limit};
  hg_launch_report report = {0};
  o.status = hg_launch(kernel, &desc, &report);
  o.fault = report.fault;
  CHECK_EQ_U64(hg_buffer_read(y, 0, o.sums, sizeof o.sums), HG_OK);
  hg_buffer_release(y);
  return o;
}

static hg_kernel *kernels[2]; /* of the reference, and of what is tested */
static hg_buffer *inputs[2];

static void check(const shape *s, const trial *t) {
  if (!in_shard()) return;
  executor = reference;
  outcome expected = run(kernels[0], inputs[0], s, t);
  executor = tested;
  outcome got = run(kernels[1], inputs[1], s, t);
  CHECK_EQ_U64(got.status, expected.status);
  check_same_fault(&got.fault, &expected.fault);
  CHECK_EQ_U64(memcmp(got.sums, expected.sums, sizeof got.sums), 0);
}

static void check_shape(const shape *s) {
  static const uint64_t limits[] = {0, 1, 2, 3, 4, 6, 7};
  uint64_t rows = (uint64_t)s->batch << s->levels, wide = LANES + 5,
           most = s->index_type[1] == '3' ? UINT32_MAX : UINT64_MAX;
  for (size_t limit = 0; limit < COUNT(limits); limit++) {
    trial t = {.columns = wide, .first = 0, .extent = ELEMENTS, .step_limit = limits[limit]};
    check(s, &t);
    t.first = most - 70; /* wraps */
    check(s, &t);
    t.columns = 1;
    check(s, &t);
    t.columns = 0;
    t.first = 3;
    check(s, &t);
    t.columns = wide;
    for (t.extent = 30; t.extent < rows * wide && t.extent < ELEMENTS; t.extent += rows * wide / 13 + 11) check(s, &t);
    t.extent = ELEMENTS;
    t.columns = most / 2; /* the next row is out of bounds, and the one after it */
    check(s, &t);
  }
}

static void check_program(const shape *s) {
  static uint32_t words[ELEMENTS];
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    float value = (float)(i * 2654435761u >> 12) - 500000.0f;
    words[i] = i % 1021 == 5 ? 0x7f800001u + i : bits_of(value); /* NaNs of some lanes' sums */
  }
  write_program(s);
  CHECK(used < sizeof text);
  for (int k = 0; k < 2; k++) {
    executor = k == 0 ? reference : tested;
    kernels[k] = kernel_of(text);
    inputs[k] = buffer_of(sizeof words, words);
  }
  check_shape(s);
  for (int k = 0; k < 2; k++) {
    hg_buffer_release(inputs[k]);
    hg_kernel_release(kernels[k]);
  }
}

int main(void) {
  static const shape shapes[] = {
      {"f32", "u32", 2, 3, 0}, {"f32", "u32", 4, 4, 0}, {"f32", "u32", 8, 2, 0}, {"f32", "u32", 16, 2, 0},
      {"f32", "u64", 8, 3, 0}, {"f32", "u64", 16, 1, 0}, {"u32", "u32", 8, 3, 0}, {"u32", "u64", 4, 2, 0},
      {"f32", "u32", 8, 3, 1}, {"u32", "u64", 16, 2, 1}, {"f32", "u32", 32, 1, 0}};
  open_both();
  for (size_t k = 0; k < COUNT(shapes); k++) check_program(&shapes[k]);
  close_both();
  return check_report();
}
