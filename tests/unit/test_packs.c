/* test_packs.c - the vector kernels of the CUDA backend, whose threads have one pack of lanes or several: the bits of
 * the CPU for programs of every element size, at the ends of packs, tiles and blocks, at any offset, in place. The
 * double of libcuda says that it has no multiprocessors, so that blocks have as many tiles as they can however short a
 * launch is; on a GPU long launches are added. */
#define _POSIX_C_SOURCE 200809L /* setenv, mkdtemp */
#include "fake_gpu.h"

#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
enum { SHORT = 20000, PAD = 128 }; /* lanes of most launches; bytes around a range that must stay as they were */

typedef struct program {
  const char *text;
  uint32_t in, out; /* bytes of an element of x and y */
  int in_space;     /* launched in two dimensions, where the lanes come out even */
} program;

#define UNARY(type, function)                                                                              \
  ".program p\n.buffer x " type " in\n.buffer y " type " out\nldg." type " r0, [x + lane]\n" function "." type \
  " r0, r0\nstg." type " [y + lane], r0\nexit\n"
/* Between two bounds as f32, and nothing but that. */
#define KEPT(type, low, high)                                                                                 \
  ".program kept\n.buffer x " type " in\n.buffer y " type " out\nldg." type " r0, [x + lane]\ncvt.f32." type    \
  " r0, r0\nmax.f32 r0, r0, " low "\nmin.f32 r0, r0, " high "\nmul.f32 r1, r0, #0.3\nfma.f32 r0, r1, r0, r1\n" \
  "cvt." type ".f32 r0, r0\nstg." type " [y + lane], r0\nexit\n"
#define FOUR(line) line line line line
#define MIX(type) "mul." type " r0, r0, r1\nadd." type " r0, r0, #3\nxor." type " r0, r0, r1\n"

static const program programs[] = {
    {UNARY("f32", "relu"), 4, 4, 0},
    {UNARY("f32", "tanh"), 4, 4, 0},
    {UNARY("f32", "gelu"), 4, 4, 0},
    {UNARY("f16", "gelu"), 2, 2, 0},
    {UNARY("bf16", "tanh"), 2, 2, 0},
    {UNARY("f16", "sigmoid"), 2, 2, 0},
    {UNARY("bf16", "sigmoid"), 2, 2, 0},
    {UNARY("bf16", "log"), 2, 2, 0},
    {KEPT("f16", "#-0.75", "#2"), 2, 2, 0},
    {KEPT("bf16", "#-6", "#6"), 2, 2, 0},
    {KEPT("bf16", "#-0.1", "#0x1p100"), 2, 2, 0}, /* 0.1 is no bf16 */
    {UNARY("f32", "gelu.tanh"), 4, 4, 0},
    {UNARY("f16", "exp"), 2, 2, 0},
    {UNARY("f64", "exp"), 8, 8, 0},
    {".program narrow\n.buffer x u8 in\n.buffer y u8 out\nldg.u8 r0, [x + lane]\nmov.u8 r1, r0\n" FOUR(FOUR(MIX("u8")))
     "stg.u8 [y + lane], r0\nexit\n", 1, 1, 0},
    {".program mixed\n.buffer x i16 in\n.buffer y i64 out\nldg.i16 r2, [x + lane]\ncvt.i64.i16 r0, r2\n"
     "mov.i64 r1, r0\n" FOUR(FOUR(FOUR(MIX("i64")))) "stg.i64 [y + lane], r0\nexit\n", 2, 8, 0},
    {".program truths\n.buffer x bool in\n.buffer y bool out\nldg.bool r0, [x + lane]\ncvt.f32.bool r1, r0\n"
     FOUR("gelu.f32 r1, r1\nsub.f32 r1, r1, #1\n") "cvt.bool.f32 r2, r1\nstg.bool [y + lane], r2\nexit\n", 1, 1, 0},
    {".program placed\n.buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\nsreg.u32 r1, global.x\n"
     "sreg.u32 r2, global.y\ncvt.f32.u32 r3, r1\ncvt.f32.u32 r4, r2\nsub.f32 r3, r3, r4\nmul.f32 r0, r0, r3\n"
     "gelu.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n", 4, 4, 1},
    {".program widest\n.buffer x u8 in\n.buffer y f64 out\nldg.u8 r0, [x + lane]\ncvt.f64.u8 r1, r0\n"
     FOUR(FOUR(FOUR("fma.f64 r1, r1, r1, r1\n"))) "stg.f64 [y + lane], r1\nexit\n", 1, 8, 0},
    {".program wider\n.buffer x f16 in\n.buffer y f32 out\nldg.f16 r0, [x + lane]\ncvt.f32.f16 r1, r0\n"
     "gelu.f32 r1, r1\ntanh.f32 r1, r1\nstg.f32 [y + lane], r1\nexit\n", 2, 4, 0},
    {".program further\n.buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane + #4]\nldg.f32 r1, [x + lane]\n"
     "sub.f32 r0, r0, r1\ngelu.f32 r0, r0\ngelu.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n", 4, 4, 0},
    {".program numbered\n.buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\ncvt.f32.u64 r1, r255\n"
     "add.f32 r0, r0, r1\ngelu.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n", 4, 4, 0},
    {".program two\n.buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\ncvt.f32.u64 r1, r255\n"
     "add.f32 r0, r0, r1\ntanh.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n", 4, 4, 0},
    {".program own_two\n.buffer x f16 in\n.buffer y f16 inout\nldg.f16 r0, [x + lane]\nldg.f16 r1, [y + lane]\n"
     "add.f16 r0, r0, r1\ntanh.f16 r0, r0\nstg.f16 [y + lane], r0\nexit\n", 2, 2, 0},
    {".program placed_two\n.buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\nsreg.u32 r1, global.y\n"
     "cvt.f32.u32 r3, r1\nsub.f32 r0, r0, r3\ntanh.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n", 4, 4, 1},
    {".program own\n.buffer x f32 in\n.buffer y f32 inout\nldg.f32 r0, [x + lane]\nldg.f32 r1, [y + lane]\n"
     "add.f32 r0, r0, r1\ntanh.f32 r0, r0\ngelu.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n", 4, 4, 0},
};

/* ---- one launch on one executor ---------------------------------------------------------------------------------- */

typedef struct side {
  hg_executor *executor;
  hg_kernel *kernel;
  hg_buffer *x, *y;
} side;

static hg_buffer *buffer_on(hg_executor *executor, uint64_t byte_count) {
  hg_buffer *buffer = NULL;
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, byte_count, &buffer), HG_OK);
  return buffer;
}

static void open_side(side *s, hg_executor *executor, const program *p, uint64_t lanes) {
  atlas_program *parsed = NULL;
  hg_status status = atlas_parse(NULL, p->text, strlen(p->text), "test", &parsed);
  *s = (side){.executor = executor};
  if (status == HG_OK) status = hg_kernel_create(executor, parsed, &s->kernel);
  if (!check_note(status == HG_OK)) printf("%s\n%s", hg_last_error(), p->text);
  atlas_program_release(parsed);
  s->x = buffer_on(executor, (lanes + 8) * p->in + 2 * PAD);
  s->y = buffer_on(executor, lanes * p->out + 2 * PAD);
}

static void close_side(side *s) {
  hg_kernel_release(s->kernel);
  hg_buffer_release(s->x);
  hg_buffer_release(s->y);
}

static void run(const side *s, const program *p, uint64_t lanes, uint64_t offset, const uint8_t *x, uint8_t *y) {
  uint64_t x_bytes = (lanes + 8) * p->in, y_bytes = lanes * p->out;
  hg_binding bindings[] = {{.name = "x", .buffer = s->x, .offset = PAD + offset * p->in, .byte_count = x_bytes},
                           {.name = "y", .buffer = s->y, .offset = PAD + offset * p->out, .byte_count = y_bytes}};
  hg_launch_desc desc = {.size = sizeof desc, .lanes = lanes, .bindings = bindings, .binding_count = 2};
  if (p->in_space && lanes % 128 == 0) {
    desc.lanes = 0;
    memcpy(desc.grid, (uint32_t[]){(uint32_t)(lanes / 128), 2, 1}, sizeof desc.grid);
    memcpy(desc.block, (uint32_t[]){64, 1, 1}, sizeof desc.block);
  }
  CHECK_EQ_U64(hg_buffer_write(s->x, PAD + offset * p->in, x, x_bytes), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(s->y, 0, y, y_bytes + 2 * PAD), HG_OK);
  CHECK_EQ_U64(hg_launch(s->kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(s->y, 0, y, y_bytes + 2 * PAD), HG_OK);
}

/* ---- both sides -------------------------------------------------------------------------------------------------- */

static uint64_t random_state = 61;

static void fill(uint8_t *bytes, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    bytes[i] = (uint8_t)(random_state >> 56);
  }
}

typedef struct memory {
  uint8_t *x, *y, *expected;
} memory;

static memory take_memory(uint64_t lanes, const program *p) {
  uint64_t x = (lanes + 8) * p->in, y = lanes * p->out + 2 * PAD;
  memory m = {malloc(x), malloc(y), malloc(y)};
  if (m.x == NULL || m.y == NULL || m.expected == NULL) abort();
  fill(m.x, x);
  fill(m.y, y);
  return m;
}

static void compare(const side *gpu_side, const side *cpu, const program *p, uint64_t lanes, uint64_t offset,
                    memory *m) {
  uint64_t bytes = lanes * p->out + 2 * PAD, i = 0;
  fill(m->y, bytes); /* not with what is right already */
  memcpy(m->expected, m->y, bytes);
  run(cpu, p, lanes, offset, m->x, m->expected);
  run(gpu_side, p, lanes, offset, m->x, m->y);
  while (i < bytes && m->y[i] == m->expected[i]) i++;
  if (!check_note(i == bytes))
    printf("%llu lanes at element %llu: byte %lld of y differs\n%s", (unsigned long long)lanes,
           (unsigned long long)offset, (long long)i - PAD - (long long)(offset * p->out), p->text);
}

static void test_program(hg_executor *on_gpu, hg_executor *on_cpu, const program *p, uint64_t longest) {
  static const uint64_t ends[] = {128, 256, 512, 1024, 2048, 4096, 8192}; /* of tiles and blocks */
  memory m = take_memory(longest, p);
  side g, c;
  open_side(&g, on_gpu, p, longest);
  open_side(&c, on_cpu, p, longest);
  for (uint64_t lanes = 1; lanes < 20; lanes++) compare(&g, &c, p, lanes, 0, &m);
  for (size_t i = 0; i < COUNT(ends); i++)
    for (uint64_t k = 0; k < 3; k++) compare(&g, &c, p, ends[i] + k - 1, 0, &m);
  compare(&g, &c, p, 5003, 16, &m);
  compare(&g, &c, p, 5003, 1, &m); /* not at a multiple of 16: every access is checked */
  if (longest > SHORT) compare(&g, &c, p, longest, 0, &m);
  close_side(&g);
  close_side(&c);
  free(m.x);
  free(m.y);
  free(m.expected);
}

/* ---- the grid ---------------------------------------------------------------------------------------------------- */

static unsigned blocks_on(const char *processors, const program *p, uint64_t lanes) {
  unsigned (*blocks)(void) = NULL;
  hg_executor *executor = NULL;
  side s;
  set("FAKECUDA_PROCESSORS", processors);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  open_side(&s, executor, p, lanes);
  memory m = take_memory(lanes, p);
  run(&s, p, lanes, 0, m.x, m.y);
  hg_library_find(hg_library_open("libcuda.so.1", ""), "fakecuda_blocks", &blocks);
  close_side(&s);
  hg_executor_release(executor);
  free(m.x);
  free(m.y);
  free(m.expected);
  return blocks();
}

static void remove_file(void *user, const hg_cache_file *file) {
  (void)user;
  CHECK_EQ_U64(hg_cache_remove(file->name), HG_OK);
}

/* A kernel from the cache has the grid of the card that it is loaded on. */
static void test_grid_of_cached(void) {
  const program tanh = {UNARY("f16", "tanh"), 2, 2, 0};
  char folder[] = "/tmp/test_packs_XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  set("HOLOGRAM_CACHE_DIR", folder);
  CHECK_EQ_U64(blocks_on("1", &tanh, 1 << 17), 64); /* of two packs a thread */
  CHECK_EQ_U64(blocks_on("4", &tanh, 1 << 17), 128);
  CHECK_EQ_U64(hg_cache_visit(0, remove_file, NULL), HG_OK);
  CHECK(rmdir(folder) == 0);
}

int main(void) {
  hg_executor *on_gpu = NULL, *on_cpu = NULL;
  hg_executor_desc cpu = {.backend = HG_BACKEND_CPU};
  hg_executor_info info = {.size = sizeof info};
  set("FAKECUDA_PROCESSORS", "0");
  set("HOLOGRAM_TABLE_LANES", "18446744073709551615"); /* tables of results are for other tests */
  CHECK_EQ_U64(open_gpu(&on_gpu), HG_OK);
  CHECK_EQ_U64(hg_executor_create(&cpu, &on_cpu), HG_OK);
  CHECK_EQ_U64(hg_executor_query(on_gpu, &info), HG_OK);
  for (size_t i = 0; i < COUNT(programs); i++) {
    uint64_t packs = (uint64_t)info.compute_units * 2048 * 4 * 9; /* more than enough for the largest blocks */
    uint64_t longest = packs * (16 / (programs[i].in > programs[i].out ? programs[i].in : programs[i].out));
    test_program(on_gpu, on_cpu, &programs[i], longest > SHORT ? longest + 5 : SHORT);
  }
  hg_executor_release(on_gpu);
  hg_executor_release(on_cpu);
  if (find_fake_gpu()) test_grid_of_cached();
  return check_report();
}
