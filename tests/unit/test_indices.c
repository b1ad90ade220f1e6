/* test_indices.c - what GPUs do to reach elements: one test for accesses at many indices, of which any may be out of
 * bounds; lanes of a thread that lie apart; divisions by a scalar, through its reciprocal; and a lane's place in
 * launches of three dimensions. Memory and faults are those of the reference machine. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

#include <stdlib.h>

static uint64_t next_random(void) { /* splitmix64 */
  static uint64_t state = 11;
  uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* ---- many indices ------------------------------------------------------------------------------------------------ */

enum { LANES = 32, INDICES = 5, OWN = 8, EXTENT = LANES * OWN, TRIALS = 16 };

/* T: the type of an index; D: a displacement of each access, E: of some. */
static const char gather[] =
    ".program p\n.buffer at T in\n.buffer x u32 in\n.buffer z u32 in\n.buffer w u32 out\n"
    "cvt.u32.u64 r0, lane\nmul.u32 r0, r0, #5\nldg.T r1, [at + r0]\nldg.T r2, [at + r0 + #1]\nldg.T r3, [at + r0 + "
    "#2]\n"
    "ldg.T r4, [at + r0 + #3]\nldg.T r5, [at + r0 + #4]\n"
    "ldg.u32 r11, [x + r1D]\nldg.u32 r12, [z + r2D]\nldg.u32 r13, [x + r3D]\nldg.u32 r14, [x + r4E]\n"
    "ldg.u32 r15, [z + r5D]\nldg.u32 r16, [x + r1E]\n"
    "mad.u32 r11, r11, #5, r12\nmad.u32 r11, r11, #5, r13\nmad.u32 r11, r11, #5, r14\nmad.u32 r11, r11, #5, r15\n"
    "mad.u32 r11, r11, #5, r16\nstg.u32 [w + lane], r11\nexit\n";
static const char scatter[] =
    ".program p\n.buffer at T in\n.buffer x u32 in\n.buffer z u32 in\n.buffer w u32 inout\n"
    "cvt.u32.u64 r0, lane\nmul.u32 r0, r0, #5\nldg.T r1, [at + r0]\nldg.T r2, [at + r0 + #1]\nldg.T r3, [at + r0 + "
    "#2]\n"
    "ldg.T r4, [at + r0 + #3]\nldg.T r5, [at + r0 + #4]\nadd.u32 r6, r0, #1\nadd.u32 r7, r0, #2\n"
    "stg.u32 [w + r1D], r6\nstg.u32 [w + r2D], r7\nstg.u32 [w + r3D], r6\nstg.u32 [w + r4E], r7\nstg.u32 [w + r5D], "
    "r6\n"
    "exit\n";

/* An index that is out of bounds, or is with a displacement. What two lanes store to the same place has no order: then
 * only the first lane has one that may be 0, and only the last one that may be the last element. */
static uint64_t odd_index(uint64_t lane, int stores, uint64_t mask) {
  static const uint64_t far[] = {EXTENT + 70, INT16_MAX, 1 << 15, INT32_MAX, UINT64_C(1) << 31};
  static const uint64_t low[] = {0, UINT64_MAX, UINT64_MAX - 1, UINT32_MAX, INT64_MAX};
  static const uint64_t high[] = {EXTENT, EXTENT - 1, EXTENT + 1};
  uint64_t which = next_random() % 3;
  if (which == 1 && (!stores || lane == 0)) return low[next_random() % COUNT(low)];
  if (which == 2 && (!stores || lane == LANES - 1)) return high[next_random() % COUNT(high)];
  return far[next_random() % (mask == UINT16_MAX ? 3 : COUNT(far))];
}

/* The lane's own elements in some order, and now and then an odd one. */
static void fill_indices(uint64_t index[LANES][INDICES], uint64_t rare, int stores, uint64_t mask) {
  for (uint64_t lane = 0; lane < LANES; lane++)
    for (uint64_t i = 0, turn = next_random(); i < INDICES; i++) {
      index[lane][i] = OWN * lane + 1 + (i + turn) % INDICES;
      if (next_random() % rare == 0) index[lane][i] = odd_index(lane, stores, mask);
      index[lane][i] &= mask;
    }
}

typedef struct outcome {
  uint32_t memory[EXTENT];
  hg_fault fault;
} outcome;

static outcome access_all(const char *text, const void *indices, uint64_t bytes) {
  uint32_t words[EXTENT];
  outcome o = {.fault = {.kind = 0}};
  for (uint32_t i = 0; i < EXTENT; i++) words[i] = i * 2654435761u >> 3;
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *at = buffer_of(bytes, indices), *x = buffer_of(sizeof words, words), *w = buffer_of(sizeof words, words);
  hg_binding bindings[] = {{.name = "at", .buffer = at},
                           {.name = "x", .buffer = x},
                           {.name = "z", .buffer = x, .byte_count = sizeof words / 2},
                           {.name = "w", .buffer = w}};
  hg_launch_desc desc = {.lanes = LANES, .bindings = bindings, .binding_count = 4};
  hg_launch_report report = {0};
  (void)hg_launch(kernel, &desc, &report);
  o.fault = report.fault;
  CHECK_EQ_U64(hg_buffer_read(w, 0, o.memory, sizeof o.memory), HG_OK);
  hg_buffer_release(at);
  hg_buffer_release(x);
  hg_buffer_release(w);
  hg_kernel_release(kernel);
  return o;
}

static void check_indices(const char *template, const char *type, uint32_t bytes, const char *d, const char *e) {
  uint64_t index[LANES][INDICES];
  uint8_t packed[LANES * INDICES * 8];
  char text[2048];
  fill_in(template, "TDE", (const char *const[]){type, d, e}, text, sizeof text);
  for (uint64_t trial = 0; trial < TRIALS; trial++) {
    fill_indices(index, trial == 0 ? UINT64_MAX : 4 + 30 * trial, template == scatter,
                 bytes == 2 ? UINT16_MAX : UINT64_MAX);
    for (uint32_t i = 0; i < LANES * INDICES; i++)
      memcpy(packed + (size_t)i * bytes, &index[i / INDICES][i % INDICES], bytes);
    executor = reference;
    outcome expected = access_all(text, packed, (uint64_t)LANES * INDICES * bytes);
    executor = tested;
    outcome got = access_all(text, packed, (uint64_t)LANES * INDICES * bytes);
    check_same_fault(&got.fault, &expected.fault);
    CHECK_EQ_U64(memcmp(got.memory, expected.memory, sizeof got.memory), 0);
  }
}

static void many_indices(void) {
  static const struct {
    const char *type;
    uint32_t bytes;
  } types[] = {{"u32", 4}, {"i32", 4}, {"u16", 2}, {"i16", 2}, {"u64", 8}, {"i64", 8}};
  static const char *const displacements[][2] = {
      {"", ""}, {" + #1", " + #1"}, {"", " + #2"}, {" + #-1", " + #-1"}, {" + #-1", ""}};
  for (size_t t = 0; t < COUNT(types); t++)
    for (size_t d = 0; d < COUNT(displacements); d++) {
      check_indices(gather, types[t].type, types[t].bytes, displacements[d][0], displacements[d][1]);
      check_indices(scatter, types[t].type, types[t].bytes, displacements[d][0], displacements[d][1]);
    }
}

/* ---- lanes of a thread that lie apart ---------------------------------------------------------------------------- */

enum { MANY = 2500 }; /* two tiles and a part of one */

static const char stencil[] =
    ".program p\n.buffer x u32 in\n.buffer w u32 out\n.scalar width u32\ncvt.u32.u64 r0, lane\nrem.u32 r1, r0, width\n"
    "sub.u32 r2, r0, r1\nadd.u32 r3, r0, width\nldg.u32 r4, [x + r1]\nldg.u32 r5, [x + r2]\nldg.u32 r6, [x + r3]\n"
    "ldg.u32 r7, [x + lane]\nmad.u32 r4, r4, #5, r5\nmad.u32 r4, r4, #5, r6\nmad.u32 r4, r4, #5, r7\n"
    "stg.u32 [w + lane], r4\nexit\n";

static hg_fault run_stencil(uint32_t width, uint64_t extent, uint64_t stored, uint32_t *out) {
  static uint32_t words[2 * MANY];
  for (uint32_t i = 0; i < 2 * MANY; i++) words[i] = i * 2654435761u >> 3;
  hg_kernel *kernel = kernel_of(stencil);
  hg_buffer *x = buffer_of(sizeof words, words), *w = buffer_of(sizeof words / 2, NULL);
  hg_binding bindings[] = {{.name = "x", .buffer = x, .byte_count = 4 * extent},
                           {.name = "w", .buffer = w, .byte_count = 4 * stored}};
  hg_scalar scalar = {.name = "width", .type = ATLAS_u32, .bits = width};
  hg_launch_desc desc = {
      .lanes = MANY, .bindings = bindings, .binding_count = 2, .scalars = &scalar, .scalar_count = 1};
  hg_launch_report report = {0};
  (void)hg_launch(kernel, &desc, &report);
  CHECK_EQ_U64(hg_buffer_read(w, 0, out, sizeof words / 2), HG_OK);
  hg_buffer_release(x);
  hg_buffer_release(w);
  hg_kernel_release(kernel);
  return report.fault;
}

static void lanes_apart(void) {
  static uint32_t expected[MANY], got[MANY];
  static const uint32_t widths[] = {0, 1, 50, 64, 1000, UINT32_MAX - 700};
  static const uint64_t extents[] = {2 * MANY, MANY, 2000, 1030, 700, 1};
  for (size_t width = 0; width < COUNT(widths); width++)
    for (size_t extent = 0; extent < COUNT(extents); extent++)
      for (uint64_t stored = MANY; stored > 100; stored -= 1200) {
        executor = reference;
        hg_fault fault = run_stencil(widths[width], extents[extent], stored, expected);
        executor = tested;
        hg_fault found = run_stencil(widths[width], extents[extent], stored, got);
        check_same_fault(&found, &fault);
        CHECK_EQ_U64(memcmp(got, expected, sizeof got), 0);
      }
}

/* ---- divisions by a scalar --------------------------------------------------------------------------------------- */

enum { NUMBERS = 64 };

/* Multiples of the divisor and what is next to them. */
static void fill_dividends(uint64_t divisor, uint64_t mask, uint64_t *number) {
  for (uint32_t i = 0; i < NUMBERS; i++) {
    uint64_t most = divisor != 0 ? mask / divisor : mask;
    uint64_t factor = i < 8                ? i
                      : i < 24             ? most - (i - 8)
                      : most == UINT64_MAX ? next_random()
                                           : next_random() % (most + 1);
    number[i] = (factor * divisor + next_random() % 3 - 1) & mask;
  }
}

static void check_divisor(const char *type, uint32_t bytes, uint64_t divisor) {
  uint64_t number[NUMBERS], mask = bytes == 8 ? UINT64_MAX : UINT32_MAX;
  uint8_t in[NUMBERS * 8], out[2][NUMBERS * 8];
  char text[1024];
  fill_in(".program p\n.buffer a T in\n.buffer q T out\n.buffer r T out\n.scalar d T\nldg.T r0, [a + lane]\n"
          "div.T r1, r0, d\nrem.T r2, r0, d\nstg.T [q + lane], r1\nstg.T [r + lane], r2\nexit\n",
          "T", &type, text, sizeof text);
  fill_dividends(divisor, mask, number);
  for (uint32_t i = 0; i < NUMBERS; i++) memcpy(in + (size_t)i * bytes, &number[i], bytes);
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *a = buffer_of((uint64_t)NUMBERS * bytes, in), *q = buffer_of((uint64_t)NUMBERS * bytes, NULL);
  hg_buffer *r = buffer_of((uint64_t)NUMBERS * bytes, NULL);
  hg_binding bindings[] = {{.name = "a", .buffer = a}, {.name = "q", .buffer = q}, {.name = "r", .buffer = r}};
  hg_scalar scalar = {.name = "d", .type = bytes == 8 ? ATLAS_u64 : ATLAS_u32, .bits = divisor};
  hg_launch_desc desc = {
      .lanes = NUMBERS, .bindings = bindings, .binding_count = 3, .scalars = &scalar, .scalar_count = 1};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(q, 0, out[0], (uint64_t)NUMBERS * bytes), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(r, 0, out[1], (uint64_t)NUMBERS * bytes), HG_OK);
  for (uint32_t i = 0; i < NUMBERS; i++) {
    uint64_t got[2] = {0, 0};
    for (int k = 0; k < 2; k++) memcpy(&got[k], out[k] + (size_t)i * bytes, bytes);
    CHECK_EQ_U64(got[0], divisor != 0 ? number[i] / divisor : 0);
    CHECK_EQ_U64(got[1], divisor != 0 ? number[i] % divisor : number[i]);
  }
  hg_buffer_release(a);
  hg_buffer_release(q);
  hg_buffer_release(r);
  hg_kernel_release(kernel);
}

static void divisions(void) {
  executor = tested;
  for (uint32_t bits = 0; bits <= 64; bits++)
    for (uint64_t k = 0; k < 3; k++) { /* powers of two, what is next to them, and others */
      uint64_t power = bits < 64 ? UINT64_C(1) << bits : 0, number = k < 2 ? power - k : power + (power >> 1) + 1;
      check_divisor("u64", 8, number);
      if (bits <= 32) check_divisor("u32", 4, number & UINT32_MAX);
    }
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

enum { MOST_LANES = 4096, COORDINATES = 9 };

/* B: a line that names the block; the block's lanes and what they see of it, or not. */
static const char places[] =
    ".program p\nB.buffer y u32 out\nsreg.u32 r1, lane.x\nsreg.u32 r2, lane.y\nsreg.u32 r3, lane.z\n"
    "sreg.u32 r4, block.x\nsreg.u32 r5, block.y\nsreg.u32 r6, block.z\n"
    "sreg.u32 r7, global.x\nsreg.u32 r8, global.y\nsreg.u32 r9, global.z\ncvt.u32.u64 r0, lane\nmul.u32 r0, r0, #9\n"
    "stg.u32 [y + r0], r1\nstg.u32 [y + r0 + #1], r2\nstg.u32 [y + r0 + #2], r3\nstg.u32 [y + r0 + #3], r4\n"
    "stg.u32 [y + r0 + #4], r5\nstg.u32 [y + r0 + #5], r6\nstg.u32 [y + r0 + #6], r7\nstg.u32 [y + r0 + #7], r8\n"
    "stg.u32 [y + r0 + #8], r9\nexit\n";
static const char global_places[] =
    ".program p\n.buffer y u32 out\nsreg.u32 r7, global.x\nsreg.u32 r8, global.y\nsreg.u32 r9, global.z\n"
    "cvt.u32.u64 r0, lane\nmul.u32 r0, r0, #9\nstg.u32 [y + r0 + #6], r7\nstg.u32 [y + r0 + #7], r8\n"
    "stg.u32 [y + r0 + #8], r9\nexit\n";

static void find_places(const char *text, const hg_launch_desc *shape, uint32_t *out) {
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *y = buffer_of(sizeof(uint32_t) * COORDINATES * MOST_LANES, NULL);
  hg_binding binding = {.name = "y", .buffer = y};
  hg_launch_desc desc = *shape;
  desc.bindings = &binding;
  desc.binding_count = 1;
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, out, sizeof(uint32_t) * COORDINATES * MOST_LANES), HG_OK);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
}

static void check_places(const char *text, const hg_launch_desc *shape) {
  static uint32_t expected[COORDINATES * MOST_LANES], got[COORDINATES * MOST_LANES];
  executor = reference;
  find_places(text, shape, expected);
  executor = tested;
  find_places(text, shape, got);
  CHECK_EQ_U64(memcmp(got, expected, sizeof got), 0);
}

static void coordinates(void) {
  static const uint32_t blocks[][3] = {{8, 4, 2}, {7, 3, 5}, {1, 1, 9}, {32, 1, 1}, {1, 64, 1}, {6, 8, 1}};
  static const uint32_t grids[][3] = {{3, 5, 2}, {1, 1, 1}, {1, 7, 3}, {11, 1, 1}, {2, 2, 8}};
  char line[64], text[2048];
  for (size_t b = 0; b < COUNT(blocks); b++) {
    snprintf(line, sizeof line, ".block %u, %u, %u\n", blocks[b][0], blocks[b][1], blocks[b][2]);
    for (size_t g = 0; g < COUNT(grids); g++) {
      hg_launch_desc shape = {.lanes = 0};
      memcpy(shape.grid, grids[g], sizeof shape.grid);
      memcpy(shape.block, blocks[b], sizeof shape.block);
      fill_in(places, "B", (const char *const[]){line}, text, sizeof text);
      check_places(text, &shape);
      fill_in(places, "B", (const char *const[]){""}, text, sizeof text);
      check_places(text, &shape);
      check_places(global_places, &shape);
    }
    if (blocks[b][1] > 1 || blocks[b][2] > 1) continue;
    hg_launch_desc linear = {.lanes = 300}; /* the last block is a part of one */
    fill_in(places, "B", (const char *const[]){line}, text, sizeof text);
    check_places(text, &linear);
  }
}

int main(void) {
  open_both();
  many_indices();
  lanes_apart();
  divisions();
  coordinates();
  close_both();
  return check_report();
}
