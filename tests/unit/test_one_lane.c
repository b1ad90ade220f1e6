/* test_one_lane.c - programs that run one lane after the other: which ones do, and that they leave the memory and the
 * fault of the interpreter, with steps to spare or not, from integers of every type, divided by 0, out of bounds; and
 * from floats, of any bits and at special points. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "backend/cpu/engine/detect.h"
#include "beside_reference.h"

enum { LANES = 77, ELEMENTS = 100, TEXT_BYTES = 1024 };

static uint8_t data[8 * ELEMENTS];

/* Each lane follows a chain of indices, of its own length, through x and a local array. */
#define CHASE                                                                                                          \
  ".program p\n.buffer x u32 in\n.buffer y u32 out\n.scalar limit u32\n.local seen u32 16\n"                           \
  "cvt.u32.u64 r0, lane\nmovi.u32 r1, #0\n"                                                                            \
  "again:\nldg.u32 r2, [x + r0]\nand.u32 r3, r2, #15\nldl.u32 r4, [seen + r3]\nset.ne.u32 p0, r4, #0\n@p0 bra done\n" \
  "add.u32 r1, r1, #1\nstl.u32 [seen + r3], r1\nand.u32 r0, r2, limit\nbra again\n"                                    \
  "done:\nstg.u32 [y + lane], r1\nexit\n"

static void write_chain(char *text, const char *type) {
  snprintf(text, TEXT_BYTES,
           ".program p\n.buffer x %s in\n.buffer y %s out\n.buffer n u32 in\n"
           "ldg.u32 r9, [n + lane]\nldg.%s r0, [x + lane]\nmov.%s r1, r0\n"
           "again:\nset.eq.u32 p0, r9, #0\n@p0 bra done\nsub.u32 r9, r9, #1\nldg.%s r2, [x + r9]\n"
           "add.%s r1, r1, r2\nmul.%s r3, r1, r2\nmin.%s r4, r3, r0\nmax.%s r3, r4, r1\nshr.%s r4, r3, r9\n"
           "shl.%s r5, r4, #3\nxor.%s r1, r5, r3\nnot.%s r1, r1\nset.lt.%s p1, r1, r2\n"
           "sel.%s r1, p1, r3, r1\nbra again\n"
           "done:\nstg.%s [y + lane], r1\nexit\n",
           type, type, type, type, type, type, type, type, type, type, type, type, type, type, type, type);
}

static int may_run_lanes; /* 1: the tested engine has code for one lane */

static void check_engine(const char *text, int runs_lanes) {
  hg_kernel_info info = {.size = sizeof info};
  executor = tested;
  hg_kernel *kernel = kernel_of(text);
  CHECK_EQ_U64(hg_kernel_query(kernel, &info), HG_OK);
  CHECK_EQ_U64(strcmp(info.engine, "native x86-64") == 0, (uint64_t)runs_lanes);
  hg_kernel_release(kernel);
}

/* Each line is a loop around a gather, in which a chain of floats takes this step: r0 of type T is the gathered
 * element, r1 the chain, I an integer of as many bits as T. */
static const char *const float_steps[] = {
    "add.T r1, r1, r0", "sub.T r1, r0, r1", "mul.T r1, r1, r0", "div.T r1, r0, r1", "fma.T r1, r0, r1, r0",
    "min.T r1, r1, r0", "max.T r1, r0, r1", "max.T r1, r0, #0\nsqrt.T r1, r1",
    "neg.T r1, r0\nabs.T r2, r1\nadd.T r1, r1, r2",
    "sign.T r1, r0\ncopysign.T r1, r1, r0", "floor.T r1, r0\nceil.T r2, r0\nsub.T r1, r1, r2",
    "trunc.T r1, r0\nround.T r2, r0\nsub.T r1, r2, r1", "set.lt.T p1, r1, r0\nsel.T r1, p1, r0, r1",
    "set.le.T p1, r0, r1\nsel.T r1, p1, r0, r1\nsel.u32 r3, p1, r4, r3",
    "set.eq.T p1, r1, r0\n@p1 bra done\nmov.T r1, r0",
    "set.num.T p1, r1, r0\nsel.u32 r3, p1, r4, #7\nmov.T r1, r0", "set.lt.u32 p1, r3, r4\nsel.T r1, p1, r0, #0.5",
    "set.gt.T p1, r1, r0\nset.ne.T p2, r1, #2\npand p1, p1, p2\nsel.T r1, p1, r1, r0",
    "bitcast.I.T r2, r0\nadd.I r2, r2, #1\nbitcast.T.I r1, r2", "cvt.i32.T r5, r0\ncvt.T.i32 r1, r5",
    "cvt.u32.T r5, r0\ncvt.T.u32 r1, r5", "cvt.i64.T r6, r0\ncvt.T.i64 r1, r6", "cvt.u64.T r6, r0\ncvt.T.u64 r1, r6",
    "cvt.u8.T r7, r0\ncvt.T.u8 r1, r7", "cvt.i16.T r8, r0\ncvt.T.i16 r1, r8", "cvt.O.T r10, r0\ncvt.T.O r1, r10",
    "cvt.f16.T r11, r0\ncvt.T.f16 r1, r11", "cvt.bf16.T r12, r0\ncvt.T.bf16 r1, r12",
};

/* Writes a step with its types: T is `type`, O the other one of the two floats, I unsigned. */
static void write_types(char *to, const char *step, int is_64) {
  for (; *step != 0; step++) {
    const char *name = *step == 'T' ? (is_64 ? "f64" : "f32") : *step == 'O' ? (is_64 ? "f32" : "f64") : NULL;
    if (*step == 'I') name = is_64 ? "u64" : "u32";
    if (name != NULL) to += sprintf(to, "%s", name);
    else *to++ = *step;
  }
  *to = 0;
}

static void check_floats(void) {
  static uint32_t rounds[LANES];
  static const uint64_t special64[] = {0, UINT64_C(1) << 63, UINT64_C(0x7ff0000000000000), UINT64_C(0xfff0000000000000),
                                       UINT64_C(0x7ff8000000000001), UINT64_C(0xfff4000000000000), 1,
                                       UINT64_C(0x3ff0000000000000), UINT64_C(0xc008000000000000),
                                       UINT64_C(0x41dfffffffc00000), UINT64_C(0x41efffffffe00000)};
  static const uint32_t special32[] = {0, UINT32_C(1) << 31, 0x7f800000, 0xff800000, 0x7fc00001, 0xff900000, 1,
                                       0x3f800000, 0xc0400000, 0x4effffff, 0x4f7fffff};
  static uint64_t contents[ELEMENTS];
  for (unsigned k = 0; k < LANES; k++) rounds[k] = k * 2654435761u >> 27;
  for (size_t k = 0; k < 2 * COUNT(float_steps); k++) {
    char text[TEXT_BYTES], step[TEXT_BYTES / 2];
    const int is_64 = (int)k & 1;
    memcpy(contents, data, sizeof contents);
    for (size_t i = 0; i < COUNT(special64); i++)
      if (is_64) contents[3 * i] = special64[i];
      else ((uint32_t *)contents)[3 * i] = special32[i];
    write_types(step, float_steps[k / 2], is_64);
    snprintf(text, TEXT_BYTES,
             ".program p\n.buffer x %s in\n.buffer y %s out\n.buffer n u32 in\n.buffer z u32 out\n"
             "ldg.u32 r4, [n + lane]\nldg.%s r1, [x + lane]\nmovi.u32 r3, #0\n"
             "again:\nset.eq.u32 p0, r4, #0\n@p0 bra done\nsub.u32 r4, r4, #1\n"
             "ldg.%s r0, [x + r4]\nldg.u32 r13, [n + r4]\n"
             "add.u32 r3, r3, r13\nldg.u32 r13, [n + r4 + #1]\nxor.u32 r3, r3, r13\n%s\nbra again\n"
             "done:\nstg.%s [y + lane], r1\nstg.u32 [z + lane], r3\nexit\n",
             is_64 ? "f64" : "f32", is_64 ? "f64" : "f32", is_64 ? "f64" : "f32", is_64 ? "f64" : "f32", step,
             is_64 ? "f64" : "f32");
    const beside_buffer buffers[] = {{.name = "x", .contents = contents, .size = sizeof contents},
                                     {.name = "y", .size = sizeof contents, .is_result = 1},
                                     {.name = "n", .contents = rounds, .size = sizeof rounds},
                                     {.name = "z", .size = 4 * LANES, .is_result = 1}};
    const hg_launch_desc desc = {.lanes = LANES};
    if (!check_beside(text, &desc, buffers, COUNT(buffers))) printf("  %s\n", step);
    if (may_run_lanes) check_engine(text, 1);
  }
}

static void check_types(void) {
  static const char *const types[] = {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"};
  static uint32_t rounds[LANES];
  char text[TEXT_BYTES];
  for (unsigned k = 0; k < LANES; k++) rounds[k] = k * 2654435761u >> 26;
  for (size_t t = 0; t < COUNT(types); t++) {
    write_chain(text, types[t]);
    const beside_buffer buffers[] = {{.name = "x", .contents = data, .size = sizeof data},
                                     {.name = "y", .size = sizeof data, .is_result = 1},
                                     {.name = "n", .contents = rounds, .size = sizeof rounds}};
    const hg_launch_desc desc = {.lanes = LANES};
    if (!check_beside(text, &desc, buffers, COUNT(buffers))) printf("  %s\n", types[t]);
  }
}

/* The mask lets all, some or no chains out of bounds; a lane takes at most 16 steps. */
static void check_chases(void) {
  static const uint32_t limits[] = {63, 127, UINT32_MAX};
  static const uint64_t steps[] = {0, 1, 5, 16};
  for (size_t k = 0; k < COUNT(limits); k++)
    for (size_t s = 0; s < COUNT(steps); s++) {
      const beside_buffer buffers[] = {{.name = "x", .contents = data, .size = 4 * ELEMENTS},
                                       {.name = "y", .size = 4 * ELEMENTS, .is_result = 1}};
      const hg_scalar limit = {.name = "limit", .type = ATLAS_u32, .bits = limits[k]};
      const hg_launch_desc desc = {.lanes = LANES, .scalars = &limit, .scalar_count = 1, .step_limit = steps[s]};
      if (!check_beside(CHASE, &desc, buffers, COUNT(buffers)))
        printf("  limit %u, %u steps\n", (unsigned)limits[k], (unsigned)steps[s]);
    }
}

/* A loop that counts up to a bound, with one way out; a copy of it counts no steps where they are enough for all rounds
 * and no row is out of bounds. Some rows are, and so are all of 2^32 - 1 elements. */
#define ROWS                                                                                                           \
  ".program p\n.buffer x u8 in\n.buffer z u32 in\n.buffer y u32 out\n.scalar width u32\n"                             \
  "cvt.u32.u64 r1, lane\nmul.u32 r1, r1, width\nmovi.u32 r0, #0\nmovi.u32 r4, #0\n"                                   \
  "again:\nset.ge.u32 p0, r0, width\n@p0 bra done\nadd.u32 r2, r1, r0\nldg.u8 r3, [x + r2]\nldg.u32 r5, [z + r0]\n"  \
  "xor.u32 r4, r4, r5\nset.eq.u8 p0, r3, #0\n@p0 bra done\nadd.u32 r0, r0, #1\nbra again\n"                           \
  "done:\nadd.u32 r0, r0, r4\nstg.u32 [y + lane], r0\nexit\n"

static void check_rows(void) {
  static const uint32_t widths[] = {0, 1, 8, 13, UINT32_MAX};
  static const uint64_t steps[] = {0, 1, 7, 8, 12, 13, 14};
  for (size_t k = 0; k < COUNT(widths); k++)
    for (size_t s = 0; s < COUNT(steps); s++) {
      const beside_buffer buffers[] = {{.name = "x", .contents = data, .size = sizeof data},
                                       {.name = "z", .contents = data, .size = 4 * ELEMENTS},
                                       {.name = "y", .size = 4 * ELEMENTS, .is_result = 1}};
      const hg_scalar width = {.name = "width", .type = ATLAS_u32, .bits = widths[k]};
      const hg_launch_desc desc = {.lanes = LANES, .scalars = &width, .scalar_count = 1, .step_limit = steps[s]};
      if (!check_beside(ROWS, &desc, buffers, COUNT(buffers)))
        printf("  width %u, %u steps\n", (unsigned)widths[k], (unsigned)steps[s]);
    }
  if (may_run_lanes) check_engine(ROWS, 1);
}

static void check_division(void) {
  const beside_buffer buffers[] = {{.name = "x", .contents = data, .size = 4 * ELEMENTS},
                                   {.name = "y", .size = 4 * ELEMENTS, .is_result = 1}};
  const hg_launch_desc desc = {.lanes = LANES};
  CHECK(check_beside(".program p\n.buffer x u32 in\n.buffer y u32 out\nldg.u32 r0, [x + lane]\nmovi.u32 r3, #0\n"
                     "again:\nset.eq.u32 p0, r0, #0\n@p0 bra done\nand.u32 r1, r0, #63\nldg.u32 r2, [x + r1]\n"
                     "and.u32 r2, r2, #3\ndiv.u32 r4, r0, r2\nrem.u32 r5, r0, r2\nadd.u32 r3, r3, r4\n"
                     "xor.u32 r3, r3, r5\n"
                     "shr.u32 r0, r0, #3\nbra again\ndone:\nstg.u32 [y + lane], r3\nexit\n",
                     &desc, buffers, COUNT(buffers)));
}

/* Loops that only compute, or compute much, whose lanes read neighbours, or that follow lists keep their vectors. */
static void check_choice(void) {
  check_engine(CHASE, may_run_lanes);
  check_engine(".program p\n.buffer y u32 out\ncvt.u32.u64 r0, lane\nmovi.u32 r1, #0\n"
               "again:\nset.le.u32 p0, r0, #1\n@p0 bra done\nadd.u32 r1, r1, #1\nshr.u32 r0, r0, #1\nbra again\n"
               "done:\nstg.u32 [y + lane], r1\nexit\n", 0);
  check_engine(".program p\n.buffer x u8 in\n.buffer z u8 in\n.buffer y u32 out\nmovi.u32 r0, #0\nmov.u64 r4, lane\n"
               "again:\nset.ge.u32 p0, r0, #64\n@p0 bra done\nldg.u8 r1, [x + r4]\nldg.u8 r2, [z + r0]\n"
               "set.ne.u8 p0, r1, r2\n@p0 bra done\nadd.u32 r0, r0, #1\nadd.u64 r4, r4, #1\nbra again\n"
               "done:\nstg.u32 [y + lane], r0\nexit\n", 0);
  check_engine(".program p\n.buffer x u32 in\n.buffer y u32 out\nldg.u32 r2, [x + lane]\nldg.u32 r0, [x + r2]\n"
               "movi.u32 r1, #1\nagain:\nset.eq.u32 p0, r2, #0\n@p0 bra done\nsub.u32 r2, r2, #1\n"
               "ldg.u32 r3, [x + r2]\n"
               "mad.u32 r4, r3, r3, r1\nmad.u32 r4, r4, r3, r0\nxor.u32 r1, r1, r4\nbra again\n"
               "done:\nstg.u32 [y + lane], r1\nexit\n", 0);
  check_engine(".program p\n.buffer x u32 in\n.buffer y u32 out\nldg.u32 r0, [x + lane]\nmovi.u32 r1, #0\n"
               "again:\nset.eq.u32 p0, r0, #0\n@p0 bra done\nadd.u32 r1, r1, #1\nldg.u32 r0, [x + r0]\nbra again\n"
               "done:\nstg.u32 [y + lane], r1\nexit\n", 0);
}

static int has_lanes(void) {
#if defined(__x86_64__) && !defined(_WIN32)
  const char *engine = getenv("HOLOGRAM_CPU_ENGINE");
  cpu_isa isa;
  int is_native = engine == NULL || engine[0] == '\0' || strcmp(engine, "native") == 0;
  return is_native && hg_cpu_isa_choose(&isa) == HG_OK && isa >= CPU_ISA_AVX2;
#else
  return 0;
#endif
}

int main(void) {
  for (unsigned i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 2654435761u >> 11);
  open_both();
  may_run_lanes = has_lanes();
  check_floats();
  check_types();
  check_chases();
  check_rows();
  check_division();
  check_choice();
  close_both();
  return check_report();
}
