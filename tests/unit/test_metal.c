/* test_metal.c - the Metal backend: what it refuses, subnormal numbers; and on the simulated Metal what it asks Metal
 * for. */
#include "fake_metal.h"

#include "atlas/tables.h"

#include <stdlib.h>

/* ---- subnormal numbers ------------------------------------------------------------------------------------------- */

/* a, b, c to d, by an operation of that type in each lane. */
enum { COUNT = 1 << 17 };

static hg_status compute(hg_backend_id backend, const char *type, const char *line, uint32_t lanes,
                         void *const bytes[4]) {
  static const char *const names[] = {"a", "b", "c", "d"};
  uint64_t byte_count = (uint64_t)lanes * atlas_type_bits(atlas_type_from_name(type)) / 8;
  char text[600];
  run r = {.executor = NULL};
  hg_binding bindings[4];
  int length = snprintf(text, sizeof text, ".program op\n");
  for (int i = 0; i < 4; i++)
    length += snprintf(text + length, sizeof text - (size_t)length, ".buffer %s %s %s\n", names[i], type,
                       i < 3 ? "in" : "out");
  for (int i = 0; i < 3; i++)
    length += snprintf(text + length, sizeof text - (size_t)length, "ldg.%s r%d, [%s + lane]\n", type, i, names[i]);
  snprintf(text + length, sizeof text - (size_t)length, "%s\nstg.%s [d + lane], r3\nexit\n", line, type);
  hg_status status = open_run(&r, backend, text);
  for (int i = 0; i < 4 && status == HG_OK; i++) {
    status = hg_buffer_create(r.executor, NULL, byte_count, &r.buffers[i]);
    if (status == HG_OK) status = hg_buffer_write(r.buffers[i], 0, bytes[i], byte_count);
    bindings[i] = (hg_binding){.name = names[i], .buffer = r.buffers[i]};
  }
  const hg_launch_desc desc = {.size = sizeof desc, .lanes = lanes, .bindings = bindings, .binding_count = 4};
  if (status == HG_OK) status = hg_launch(r.kernel, &desc, NULL);
  if (status == HG_OK) status = hg_buffer_read(r.buffers[3], 0, bytes[3], byte_count);
  close_run(&r);
  return status;
}

/* The results of both have the same bits. */
static void compare(const char *type, const char *line, uint32_t lanes, void *const inputs[3]) {
  static uint8_t here[COUNT * 8], there[COUNT * 8];
  size_t size = atlas_type_bits(atlas_type_from_name(type)) / 8;
  void *const on_metal[] = {inputs[0], inputs[1], inputs[2], here}, *const on_cpu[] = {inputs[0], inputs[1], inputs[2],
                                                                                       there};
  CHECK_EQ_U64(compute(HG_BACKEND_METAL, type, line, lanes, on_metal), HG_OK);
  CHECK_EQ_U64(compute(HG_BACKEND_CPU, type, line, lanes, on_cpu), HG_OK);
  uint32_t i = 0;
  while (i < lanes && memcmp(here + i * size, there + i * size, size) == 0) i++;
  if (check_note(i == lanes)) return;
  printf("%s of", line);
  for (int k = 0; k < 5; k++) {
    uint64_t word = 0;
    memcpy(&word, (k < 3 ? (const uint8_t *)inputs[k] : k == 3 ? here : there) + i * size, size);
    printf("%s %0*llx", k == 3 ? ":" : k == 4 ? ", not" : "", (int)size * 2, (unsigned long long)word);
  }
  printf("\n");
}

/* Of COUNT inputs, each of them others. */
static long rounds_asked_for(long otherwise) {
  const char *rounds = getenv("HOLOGRAM_METAL_ROUNDS");
  return rounds != NULL ? atol(rounds) : otherwise;
}

static uint32_t random_word(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 16);
}

/* Near the least normal number, zero, one, or anywhere; few bits or many. */
static uint32_t adversary(void) {
  uint32_t word = random_word(), sign = word & 0x80000000u, fraction = word & 0x7fffff;
  if (word >> 23 & 1) fraction &= ~0u << (random_word() % 24) & 0x7fffff;
  switch (random_word() % 8) {
  case 0: return sign | fraction;                                   /* subnormal */
  case 1: return sign | (1 + random_word() % 3) << 23 | fraction;   /* barely normal */
  case 2: return sign | (random_word() % 60) << 23 | fraction;      /* small */
  case 3: return sign | (60 + random_word() % 9) << 23 | fraction;  /* products are at the boundary */
  case 4: return sign | (126 + random_word() % 4) << 23 | fraction; /* about 1 */
  case 5: return sign | (250 + random_word() % 6) << 23 | fraction; /* huge, infinite, NaN */
  case 6: return sign | (random_word() % 4 == 0 ? 0x7f800000u : 0);
  default: return word;
  }
}

static void test_subnormals(void) {
  static const char *const lines[] = {"add.f32 r3, r0, r1", "sub.f32 r3, r0, r1",     "mul.f32 r3, r0, r1",
                                      "div.f32 r3, r0, r1", "fma.f32 r3, r0, r1, r2", "sqrt.f32 r3, r0",
                                      "min.f32 r3, r0, r1", "max.f32 r3, r0, r1",     "floor.f32 r3, r0",
                                      "round.f32 r3, r0"};
  static uint32_t words[3][COUNT];
  void *const inputs[] = {words[0], words[1], words[2]};
  for (long round = rounds_asked_for(1); round > 0; round--) {
    for (uint32_t i = 0; i < 3 * (uint32_t)COUNT; i++) words[i / COUNT][i % COUNT] = adversary();
    /* the third cancels the product but for its last bits, now and then */
    for (uint32_t i = 0; i < COUNT; i += 3) words[2][i] = words[0][i] ^ 0x80000000u;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) compare("f32", lines[k], COUNT, inputs);
  }
  check_clean();
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* Any bits, or about 1, or a small whole number. */
static uint64_t random_f64(void) {
  uint64_t word = (uint64_t)random_word() << 32 | random_word();
  const double whole = (double)(random_word() % 200) - 100;
  uint64_t bits = 0;
  memcpy(&bits, &whole, sizeof bits);
  switch (random_word() % 4) {
  case 0: return word;
  case 1: return bits;
  default: return (word & 0x800fffffffffffffu) | (uint64_t)(1013 + random_word() % 20) << 52;
  }
}

static void compare_function(const atlas_op_info *op, const char *type, uint32_t lanes, void *const inputs[3]) {
  char line[64];
  int is_binary = strcmp(op->operands, "dss") == 0;
  snprintf(line, sizeof line, "%s.%s r3, r0%s", op->mnemonic, type, is_binary ? ", r1" : "");
  if (is_binary || strcmp(type, "f64") == 0) compare(type, line, lanes, inputs);
}

/* Those of f64, and of two numbers; tests/accuracy has the others of all types, on more inputs. */
static void test_functions(void) {
  static uint64_t doubles[3][COUNT];
  static uint32_t words[3][COUNT];
  void *const wide[] = {doubles[0], doubles[1], doubles[2]}, *const narrow[] = {words[0], words[1], words[2]};
  const uint32_t lanes = rounds_asked_for(0) > 0 ? COUNT : COUNT / 64;
  for (long round = (rounds_asked_for(1) + 9) / 10; round > 0; round--) {
    for (uint32_t i = 0; i < 3 * (uint32_t)COUNT; i++) doubles[i / COUNT][i % COUNT] = random_f64();
    for (uint32_t i = 0; i < 3 * (uint32_t)COUNT; i++)
      words[i / COUNT][i % COUNT] = random_word() % 4 ? adversary() : random_word();
    for (uint32_t code = 0; code < ATLAS_OP_PAGES * 256; code++) {
      const atlas_op_info *op = atlas_op_lookup(code);
      if (op == NULL || !(op->flags & ATLAS_FUNC)) continue;
      compare_function(op, "f64", lanes, wide);
      compare_function(op, "f32", lanes, narrow);
      compare_function(op, "f16", lanes, narrow);
      compare_function(op, "bf16", lanes, narrow);
    }
  }
  check_clean();
}

/* ---- what Metal cannot do ---------------------------------------------------------------------------------------- */

static void test_refusals(void) {
  static const struct {
    const char *line, *sentence; /* NULL: it can */
  } cases[] = {{"atom.add.u64 _, [x + #0], r0", NULL},
               {"atom.and.u64 _, [x + #0], r0", NULL},
               {"atom.or.i64 _, [x + #0], r1", NULL},
               {"atom.xor.u64 _, [x + #0], r0", NULL},
               {"atom.add.u64 r2, [x + #0], r0\n stg.u64 [x + #1], r2",
                "program 'a': Metal has no 'atom.add' of 64 bits "
                "that gives what was there; write its result to _"},
               {"atom.max.u64 _, [x + #0], r0", "program 'a': Metal has no 'atom.max' of 64 bits"},
               {"atom.min.u64 _, [x + #0], r0", "program 'a': Metal has no 'atom.min' of 64 bits"},
               {"atom.exch.u64 _, [x + #0], r0", "program 'a': Metal has no 'atom.exch' of 64 bits"},
               {"atom.cas.u64 _, [x + #0], r0, r0", "program 'a': Metal has no 'atom.cas' of 64 bits"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[400];
    run r = {.executor = NULL};
    int is_signed = strstr(cases[i].line, "i64") != NULL;
    snprintf(text, sizeof text,
             ".program a\n.buffer x %s inout\n    movi.u64 r0, #5\n    movi.i64 r1, #5\n    %s\n    exit\n",
             is_signed ? "i64" : "u64", cases[i].line);
    hg_status status = open_run(&r, HG_BACKEND_METAL, text);
    CHECK_EQ_U64(status, cases[i].sentence != NULL ? HG_UNSUPPORTED : HG_OK);
    if (cases[i].sentence != NULL) CHECK_STR(hg_last_error(), cases[i].sentence);
    close_run(&r);
  }
  check_clean();
}

/* ---- the first choice -------------------------------------------------------------------------------------------- */

static void test_auto(void) {
  hg_executor *executor = NULL;
  hg_executor_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_executor_create(NULL, &executor), HG_OK);
  CHECK_EQ_U64(hg_executor_query(executor, &info), HG_OK);
  CHECK_STR(info.backend_name, "metal");
  CHECK_STR(info.selection, "metal: chosen");
  hg_executor_release(executor);
}

/* ---- what is slow ------------------------------------------------------------------------------------------------ */

/* f64 is integers, and a launch's report says so; moving it is not. */
static void test_notes(void) {
  static const char *const lines[] = {"add.f64 r0, r0, r0", "cvt.f32.f64 r1, r0", "mov.f64 r0, r0",
                                      "add.f32 r1, r1, r1"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    char text[300];
    run r = {.executor = NULL};
    hg_launch_report report = {.size = sizeof report};
    snprintf(text, sizeof text,
             ".program a\n.buffer x f64 inout\n    ldg.f64 r0, [x + lane]\n    movi.f32 r1, #1\n    %s\n"
             "    stg.f64 [x + lane], r0\n    exit\n",
             lines[i]);
    CHECK_EQ_U64(open_run(&r, HG_BACKEND_METAL, text), HG_OK);
    CHECK_EQ_U64(hg_buffer_create(r.executor, NULL, 64, &r.buffers[0]), HG_OK);
    const hg_binding binding = {.name = "x", .buffer = r.buffers[0]};
    const hg_launch_desc desc = {.size = sizeof desc, .lanes = 8, .bindings = &binding, .binding_count = 1};
    CHECK_EQ_U64(hg_launch(r.kernel, &desc, &report), HG_OK);
    CHECK_STR(report.notes, i < 2 ? "f64 emulated" : "");
    close_run(&r);
  }
  check_clean();
}

/* ---- what is kept and what shares ------------------------------------------------------------------------------- */

static const char adds[] = ".program adds\n.buffer x u32 inout\n.table t 2 in\n    ldg.u32 r0, [x + lane]\n"
                           "    movi.u32 r1, #0\n    sreg.u64 r2, global.x\n    mul.u64 r2, r2, #4\n"
                           "    ldg.u32 r3, [r1 : r2]\n    add.u32 r0, r0, r3\n"
                           "    stg.u32 [x + lane], r0\n    exit\n";

/* More buffers than the 31 that a kernel of Metal's has. */
static void test_many_buffers(void) {
  enum { BUFFERS = 100, WORDS = 64 };
  static const char sums[] = ".program sums\n.buffer y u32 out\n.table t 100 in\n    sreg.u64 r2, global.x\n"
                             "    mul.u64 r2, r2, #4\n    movi.u32 r1, #0\n    movi.u32 r4, #0\nnext:\n"
                             "    ldg.u32 r3, [r1 : r2]\n    add.u32 r4, r4, r3\n    add.u32 r1, r1, #1\n"
                             "    set.lt.u32 p0, r1, #100\n    @p0 bra next\n    stg.u32 [y + lane], r4\n    exit\n";
  run r = {.executor = NULL};
  hg_buffer *buffers[BUFFERS];
  hg_binding bindings[BUFFERS + 1];
  uint32_t words[WORDS], sum[WORDS] = {0};
  CHECK_EQ_U64(open_run(&r, HG_BACKEND_METAL, sums), HG_OK);
  for (uint32_t i = 0; i < BUFFERS; i++) {
    for (uint32_t k = 0; k < WORDS; k++) sum[k] += words[k] = random_word();
    CHECK_EQ_U64(hg_buffer_create(r.executor, NULL, sizeof words, &buffers[i]), HG_OK);
    CHECK_EQ_U64(hg_buffer_write(buffers[i], 0, words, sizeof words), HG_OK);
    bindings[i] = (hg_binding){.name = "t", .entry = i, .buffer = buffers[i]};
  }
  CHECK_EQ_U64(hg_buffer_create(r.executor, NULL, sizeof words, &r.buffers[0]), HG_OK);
  bindings[BUFFERS] = (hg_binding){.name = "y", .buffer = r.buffers[0]};
  const hg_launch_desc desc = {.size = sizeof desc, .lanes = WORDS, .bindings = bindings, .binding_count = BUFFERS + 1};
  CHECK_EQ_U64(hg_launch(r.kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(r.buffers[0], 0, words, sizeof words), HG_OK);
  CHECK(memcmp(words, sum, sizeof words) == 0);
  for (uint32_t i = 0; i < BUFFERS; i++) hg_buffer_release(buffers[i]);
  close_run(&r);
  check_clean();
}

/* A buffer that was freed is the next of its size when the work before it is done; freeing waits for nothing. */
static void test_spares(void) {
  static uint32_t words[1 << 16];
  run r = {.executor = NULL};
  CHECK_EQ_U64(open_run(&r, HG_BACKEND_METAL, adds), HG_OK);
  CHECK_EQ_U64(hg_stream_create(r.executor, NULL, &r.stream), HG_OK);
  for (long k = 0, buffers = 0; k < 4; k++) {
    for (int i = 0; i < 2; i++) CHECK_EQ_U64(hg_buffer_create(r.executor, NULL, sizeof words, &r.buffers[i]), HG_OK);
    for (uint32_t i = 0; i < 1 << 16; i++) words[i] = i * (uint32_t)(k + 1);
    for (int i = 0; i < 2; i++) CHECK_EQ_U64(hg_buffer_write(r.buffers[i], 0, words, sizeof words), HG_OK);
    const hg_binding bindings[] = {{.name = "x", .buffer = r.buffers[0]}, {.name = "t", .buffer = r.buffers[1]}};
    const hg_launch_desc desc = {.size = sizeof desc, .lanes = 1 << 16, .bindings = bindings, .binding_count = 2,
                                 .stream = r.stream};
    long waits = sim.sent("waitUntilCompleted");
    CHECK_EQ_U64(hg_launch(r.kernel, &desc, NULL), HG_OK);
    hg_buffer_release(r.buffers[1]);
    r.buffers[1] = NULL;
    CHECK_EQ_U64(sim.sent("waitUntilCompleted"), waits);
    uint32_t wrong = 0;
    CHECK_EQ_U64(hg_buffer_read(r.buffers[0], 0, words, sizeof words), HG_OK);
    for (uint32_t i = 0; i < 1 << 16; i++) wrong += words[i] != i * (uint32_t)(k + 1) * 2;
    CHECK_EQ_U64(wrong, 0);
    hg_buffer_release(r.buffers[0]);
    r.buffers[0] = NULL;
    if (k == 0) buffers = sim.sent("newBufferWithLength:options:");
    CHECK_EQ_U64(sim.sent("newBufferWithLength:options:"), buffers);
  }
  close_run(&r);
  check_clean();
}

/* What is kept is given back before there is no memory. */
static void test_spares_are_memory(void) {
  run r = {.executor = NULL};
  CHECK_EQ_U64(open_run(&r, HG_BACKEND_METAL, adds), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(r.executor, NULL, 1 << 16, &r.buffers[0]), HG_OK);
  hg_buffer_release(r.buffers[0]);
  r.buffers[0] = NULL;
  long live = sim.live(NULL, 0);
  sim.fail("buffer", 1);
  CHECK_EQ_U64(hg_buffer_create(r.executor, NULL, 1 << 20, &r.buffers[0]), HG_OK);
  CHECK_EQ_U64(sim.live(NULL, 0), live); /* one for the other */
  sim.fail("buffer", 1);
  CHECK_EQ_U64(hg_buffer_create(r.executor, NULL, 1 << 21, &r.buffers[1]), HG_OUT_OF_MEMORY);
  close_run(&r);
  check_clean();
}

/* Work in a row that tells a stream's order. `ordinary`: 64 words that are not in Metal's memory, or NULL. */
static void give_all(const run *r, uint32_t *host, uint32_t *ordinary) {
  const hg_binding bindings[] = {{.name = "x", .buffer = r->buffers[0]}, {.name = "t", .buffer = r->buffers[1]}};
  const hg_launch_desc desc = {.size = sizeof desc, .lanes = 64, .bindings = bindings, .binding_count = 2,
                               .stream = r->stream};
  const uint32_t seven = 7;
  CHECK_EQ_U64(hg_buffer_write_async(r->buffers[0], 0, host, 256, r->stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy_async(r->buffers[1], 0, r->buffers[0], 0, 256, r->stream), HG_OK);
  CHECK_EQ_U64(hg_launch(r->kernel, &desc, NULL), HG_OK);
  if (ordinary != NULL) CHECK_EQ_U64(hg_buffer_write_async(r->buffers[1], 0, ordinary, 256, r->stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_fill_async(r->buffers[1], 4, 252, &seven, 4, r->stream), HG_OK);
  CHECK_EQ_U64(hg_launch(r->kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read_async(r->buffers[0], 0, host + 64, 256, r->stream), HG_OK);
}

/* Copies and fills of a stream wait for nothing, but reads to memory that is not Metal's; in a graph they are in the
 * command buffer of the launches. The host may use the rest of its memory meanwhile. */
static void test_copies_are_work(void) {
  run r = {.executor = NULL};
  void *memory = NULL;
  hg_graph *graph = NULL;
  uint32_t ordinary[64] = {100};
  CHECK_EQ_U64(open_run(&r, HG_BACKEND_METAL, adds), HG_OK);
  CHECK_EQ_U64(hg_stream_create(r.executor, NULL, &r.stream), HG_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ_U64(hg_buffer_create(r.executor, NULL, 256, &r.buffers[i]), HG_OK);
  CHECK_EQ_U64(hg_host_allocate(r.executor, 1024, &memory), HG_OK);
  uint32_t *host = memory;
  for (int is_graph = 0; is_graph < 2; is_graph++) {
    for (uint32_t i = 0; i < 64; i++) host[i] = i + (uint32_t)is_graph;
    long waits = sim.sent("waitUntilCompleted"), commits = sim.sent("commit");
    if (is_graph) CHECK_EQ_U64(hg_capture_begin(r.stream), HG_OK);
    give_all(&r, host, is_graph ? NULL : ordinary);
    if (is_graph) CHECK_EQ_U64(hg_capture_end(r.stream, &graph), HG_OK);
    if (is_graph) CHECK_EQ_U64(hg_graph_launch(graph, r.stream), HG_OK);
    host[200] = 3;
    CHECK_EQ_U64(sim.sent("waitUntilCompleted"), waits);
    long committed = sim.sent("commit") - commits;
    CHECK(is_graph ? committed == 1 : committed == 6 || committed == 7); /* 6: all was done before the ordinary write */
    CHECK_EQ_U64(hg_stream_wait(r.stream, NULL), HG_OK);
    for (uint32_t i = 0, first = (uint32_t)is_graph; i < 64; i++)
      CHECK_EQ_U64(host[64 + i], i > 0 ? 2 * (i + first) + 7 : is_graph ? 3 : 100);
  }
  hg_graph_release(graph);
  hg_host_release(r.executor, memory);
  close_run(&r);
  check_clean();
}

/* Launches of a graph in a row are one command buffer, and each sees what the one before wrote. */
static void test_graph_is_one(void) {
  run r = {.executor = NULL};
  uint32_t words[64];
  hg_graph *graph = NULL;
  CHECK_EQ_U64(open_run(&r, HG_BACKEND_METAL, adds), HG_OK);
  CHECK_EQ_U64(hg_stream_create(r.executor, NULL, &r.stream), HG_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ_U64(hg_buffer_create(r.executor, NULL, sizeof words, &r.buffers[i]), HG_OK);
  for (uint32_t i = 0; i < 64; i++) words[i] = i;
  for (int i = 0; i < 2; i++) CHECK_EQ_U64(hg_buffer_write(r.buffers[i], 0, words, sizeof words), HG_OK);
  const hg_binding bindings[] = {{.name = "x", .buffer = r.buffers[0]}, {.name = "t", .buffer = r.buffers[1]}};
  const hg_launch_desc desc = {.size = sizeof desc, .lanes = 64, .bindings = bindings, .binding_count = 2,
                               .stream = r.stream};
  CHECK_EQ_U64(hg_capture_begin(r.stream), HG_OK);
  for (int i = 0; i < 100; i++) CHECK_EQ_U64(hg_launch(r.kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_capture_end(r.stream, &graph), HG_OK);
  long commits = sim.sent("commit");
  for (int i = 0; i < 2; i++) CHECK_EQ_U64(hg_graph_launch(graph, r.stream), HG_OK);
  CHECK_EQ_U64(sim.sent("commit"), commits + 4); /* of at most 64 launches */
  CHECK_EQ_U64(hg_stream_wait(r.stream, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(r.buffers[0], 0, words, sizeof words), HG_OK);
  for (uint32_t i = 0; i < 64; i++) CHECK_EQ_U64(words[i], 201 * i);
  hg_graph_release(graph);
  close_run(&r);
  check_clean();
}

int main(void) {
  if (find_simulation()) {
    test_spares();
    test_spares_are_memory();
    test_graph_is_one();
    test_copies_are_work();
  }
  test_auto();
  test_refusals();
  test_notes();
  test_many_buffers();
  test_subnormals();
  test_functions();
  return check_report();
}
