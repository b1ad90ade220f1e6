/* test_faults.c - faults and their sentences, the state that launches of class programs leave, and the floating-point
 * environment. */
#include "launching.h"

#include <fenv.h>
#if defined(__SSE__)
#  include <xmmintrin.h>
#endif

/* ---- faults ------------------------------------------------------------------------------------------------------ */

typedef struct fault_case {
  const char *text;     /* over: .buffer x u32 inout, 4 elements */
  uint64_t lanes;
  hg_fault_kind kind;
  uint64_t lane;
  int64_t index, extent;
  const char *sentence;
} fault_case;

/* What loads and class questions give is stored, mostly out of bounds, so that they are not dead: the first fault
 * counts. */
static const fault_case fault_cases[] = {
    {"ldg.u32 r0, [x + lane]\nstg.u32 [x + lane], r0\nexit\n", 7, HG_FAULT_OUT_OF_BOUNDS, 4, 4, 4,
     "line 2 (ldg): lane 4 read past 'x': index 4, extent 4"},
    {"ldg.u32 r0, [x + lane + #-2]\nstg.u32 [x + #9], r0\nexit\n", 7, HG_FAULT_OUT_OF_BOUNDS, 0, -2, 4,
     "line 2 (ldg): lane 0 read before 'x': index -2, extent 4"},
    {"movi.u32 r0, #1\nstg.u32 [x + lane + #1], r0\nexit\n", 4, HG_FAULT_OUT_OF_BOUNDS, 3, 4, 4,
     "line 3 (stg): lane 3 wrote past 'x': index 4, extent 4"},
    {"atom.add.u32 _, [x + #9], #1\nexit\n", 3, HG_FAULT_OUT_OF_BOUNDS, 0, 9, 4,
     "line 2 (atom.add): lane 0 updated past 'x': index 9, extent 4"},
    {"ldg.u32 r0, [phi 5, 12, 201]\nstg.u32 [x + #9], r0\nexit\n", 3, HG_FAULT_MISALIGNED, 0,
     5 * 12288 + 12 * 256 + 201, 4,
     "line 2 (ldg): lane 0 accessed byte offset 64713 of the boundary pool, which is not a multiple of 4"},
    {"trap #42\n", 3, HG_FAULT_TRAP, 0, 0, 0, "line 2 (trap): lane 0 trapped with code 42"},
    {"again:\nbra again\n", 3, HG_FAULT_STEP_LIMIT, 0, 1000, 1000,
     "line 3 (bra): lane 0 took more than 1000 backward branches, the step limit of the launch"},
    /* Of a loop with several ways back the last is named, also where lanes take another. */
    {"again:\nldg.u32 r0, [x + #0]\nset.eq.u32 p0, r0, #0\n@p0 bra again\nstg.u32 [x + lane], r0\nbra again\n", 3,
     HG_FAULT_STEP_LIMIT, 0, 1000, 1000,
     "line 7 (bra): lane 0 took more than 1000 backward branches, the step limit of the launch"},
    {"movi.u32 r1, #1\nagain:\nmul.u32 r1, r1, #3\nset.lt.u32 p0, r1, #9\n@p0 bra even\nmul.u32 r1, r1, #5\neven:\n"
     "atom.add.u32 _, [x + #3], #0\nbra again\n", 3, HG_FAULT_STEP_LIMIT, 0, 1000, 1000,
     "line 10 (bra): lane 0 took more than 1000 backward branches, the step limit of the launch"},
    {"movi.u32 r1, #1\nagain:\nadd.u32 r1, r1, #3\nand.u32 r0, r1, #4\nset.eq.u32 p0, r0, #0\n@p0 bra even\n"
     "mul.u32 r1, r1, #5\neven:\nbra again\n", 3, HG_FAULT_STEP_LIMIT, 0, 1000, 1000,
     "line 10 (bra): lane 0 took more than 1000 backward branches, the step limit of the launch"},
    {"movi.u32 r0, #96\nmirror.u32 r1, r0\nstg.u32 [x + #9], r1\nexit\n", 3, HG_FAULT_CLASS, 0, 96, 96,
     "line 3 (mirror): lane 0 gave 96, which is not in 0..95"},
};

static void test_faults(void) {
  hg_buffer *x = buffer_of(16, NULL), *n = buffer_of(8, NULL);
  hg_kernel *count = kernel_of(count_text);
  hg_binding bx = {.name = "x", .buffer = x}, bn = {.name = "n", .buffer = n};
  for (size_t i = 0; i < COUNT(fault_cases); i++) {
    const fault_case *k = &fault_cases[i];
    char text[300];
    snprintf(text, sizeof text, ".buffer x u32 inout\n%s", k->text);
    hg_kernel *kernel = kernel_of(text);
    hg_launch_desc desc = {.lanes = k->lanes, .bindings = &bx, .binding_count = 1, .step_limit = 1000};
    hg_launch_report report = {0};
    CHECK_EQ_U64(hg_launch(kernel, &desc, &report), HG_FAULT);
    CHECK_STR(hg_last_error(), k->sentence);
    CHECK_EQ_U64(report.fault.kind, k->kind);
    CHECK_EQ_U64(report.fault.lane, k->lane);
    CHECK_EQ_U64(report.fault.index, k->index);
    CHECK_EQ_U64(report.fault.extent, k->extent);
    CHECK_EQ_U64(report.lanes, k->lanes);
    CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_FAULT); /* a report is not needed */
    hg_kernel_release(kernel);

    uint64_t ran = 0; /* and the executor goes on */
    hg_launch_desc after = {.lanes = 300, .bindings = &bn, .binding_count = 1};
    CHECK_EQ_U64(hg_buffer_write(n, 0, &ran, 8), HG_OK);
    CHECK_EQ_U64(hg_launch(count, &after, &report), HG_OK);
    CHECK_EQ_U64(report.fault.kind, HG_FAULT_NONE);
    CHECK_EQ_U64(hg_buffer_read(n, 0, &ran, 8), HG_OK);
    CHECK_EQ_U64(ran, 300);
  }
  uint32_t stored[4]; /* what the other lanes did stands: the third case stored 1 at 1..3 */
  CHECK_EQ_U64(hg_buffer_read(x, 0, stored, sizeof stored), HG_OK);
  CHECK(stored[0] == 0 && stored[1] == 1 && stored[2] == 1 && stored[3] == 1);
  hg_buffer_release(x);
  hg_buffer_release(n);
  hg_kernel_release(count);
}

static void test_pool_fault(void) {
  hg_kernel *kernel = kernel_of(".pool heap\nmovi.u64 r0, #48\npool.free.u64 heap, r0\nexit\n");
  hg_buffer *heap = buffer_of(1024, NULL);
  hg_binding binding = {.name = "heap", .buffer = heap};
  hg_launch_desc desc = {.lanes = 1, .bindings = &binding, .binding_count = 1};
  CHECK_LAUNCH(kernel, &desc, HG_FAULT,
               "line 3 (pool.free): lane 0 freed offset 48 of 'heap', which its block does not hold");
  hg_buffer_release(heap);
  hg_kernel_release(kernel);
}

static void test_fault_names(void) {
  CHECK_STR(hg_fault_kind_name(HG_FAULT_NONE), "none");
  CHECK_STR(hg_fault_kind_name(HG_FAULT_OUT_OF_BOUNDS), "out of bounds");
  CHECK_STR(hg_fault_kind_name(HG_FAULT_UNITY), "not unity-neutral");
  CHECK_STR(hg_fault_kind_name((hg_fault_kind)99), "unknown fault");
}

static void test_default_step_limit(void) { /* 0 is the default, which a loop of 100000 steps does not reach */
  hg_kernel *kernel = kernel_of("movi.u32 r0, #100000\nagain:\nloop r0, again\nexit\n");
  hg_launch_desc desc = {.lanes = 1};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  desc.step_limit = 99999; /* the last time the branch is not taken */
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  desc.step_limit = 99998;
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_FAULT);
  hg_kernel_release(kernel);
}

/* ---- class state ------------------------------------------------------------------------------------------------- */

static void test_resonance_and_phase(void) {
  hg_kernel *add = kernel_of("res.accum.i64 #3, #5\nres.accum.i64 #7, #-5\nphase.adv.u32 #700\nexit\n");
  hg_kernel *unbalanced = kernel_of("res.accum.i64 #3, #5\nexit\n");
  hg_kernel *trapped = kernel_of("res.accum.i64 #3, #5\nres.accum.i64 #4, #-5\ntrap #1\n");
  int64_t counters[ATLAS_CLASS_COUNT];
  uint32_t phase = 0;
  CHECK_EQ_U64(hg_executor_resonance_reset(executor), HG_OK);
  CHECK_EQ_U64(hg_executor_set_phase(executor, 100), HG_OK);
  hg_launch_desc desc = {.lanes = 3, .flags = HG_LAUNCH_UNITY_NEUTRAL};
  CHECK_EQ_U64(hg_launch(add, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_executor_resonance(executor, counters), HG_OK);
  CHECK_EQ_U64(counters[3], 15);
  CHECK_EQ_U64(counters[7], (uint64_t)-15);
  CHECK_EQ_U64(hg_executor_phase(executor, &phase), HG_OK);
  CHECK_EQ_U64(phase, (100 + 700) % 768); /* once for the launch, not for each lane */

  hg_launch_report report = {0};
  CHECK_EQ_U64(hg_launch(unbalanced, &desc, &report), HG_FAULT);
  CHECK_STR(hg_last_error(), "the launch is unity-neutral, but its resonance deltas sum to 15; they were undone");
  CHECK_EQ_U64(report.fault.kind, HG_FAULT_UNITY);
  CHECK_EQ_U64(report.fault.index, 15);
  CHECK_EQ_U64(hg_launch(trapped, &desc, &report), HG_FAULT); /* balanced, but it failed */
  CHECK_EQ_U64(report.fault.kind, HG_FAULT_TRAP);
  CHECK_EQ_U64(hg_executor_resonance(executor, counters), HG_OK);
  CHECK_EQ_U64(counters[3], 15);
  CHECK_EQ_U64(counters[4], 0);

  desc.flags = 0; /* without the flag everything stands */
  CHECK_EQ_U64(hg_launch(unbalanced, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_launch(trapped, &desc, NULL), HG_FAULT);
  CHECK_EQ_U64(hg_executor_resonance(executor, counters), HG_OK);
  CHECK_EQ_U64(counters[3], 45);
  CHECK_EQ_U64(counters[4], (uint64_t)-15);
  CHECK_EQ_U64(hg_executor_resonance_reset(executor), HG_OK);
  CHECK_EQ_U64(hg_executor_resonance(executor, counters), HG_OK);
  CHECK_EQ_U64(counters[3], 0);
  hg_kernel_release(add);
  hg_kernel_release(unbalanced);
  hg_kernel_release(trapped);
}

static void test_boundary(void) {
  hg_kernel *kernel = kernel_of("ldg.u8 r0, [phi 5, 12, 200]\nadd.u8 r0, r0, #1\nstg.u8 [phi 95, 47, 255], r0\nexit\n");
  uint8_t value = 41;
  CHECK_EQ_U64(hg_boundary_write(executor, (uint64_t)atlas_boundary_offset(5, 12, 200), &value, 1), HG_OK);
  hg_launch_desc desc = {.lanes = 1};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_boundary_read(executor, ATLAS_BOUNDARY_POOL_BYTES - 1, &value, 1), HG_OK);
  CHECK_EQ_U64(value, 42);
  hg_kernel_release(kernel);
}

/* ---- floating-point environment ---------------------------------------------------------------------------------- */

static void test_environment(void) {
  static const char text[] =
      ".buffer x f32 inout\n"
      "ldg.f32 r0, [x + #0]\nmul.f32 r0, r0, #0.5\nstg.f32 [x + #0], r0\n"     /* a subnormal halved stays one */
      "ldg.f32 r1, [x + #1]\nadd.f32 r1, r1, #0x1p-30\nstg.f32 [x + #1], r1\n" /* rounds down to nearest, up to upward
                                                                                */
      "exit\n";
  const uint32_t before[2] = {0x00000100, 0x3f800000};
  uint32_t after[2] = {0};
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *x = buffer_of(sizeof before, before);
  hg_binding binding = {.name = "x", .buffer = x};
  hg_launch_desc desc = {.lanes = 1, .bindings = &binding, .binding_count = 1};
  CHECK_EQ_U64(fesetround(FE_UPWARD), 0);
#if defined(__SSE__)
  unsigned callers = _mm_getcsr();
  _mm_setcsr(callers | 0x8040u); /* flush to zero, denormals are zero */
#endif
  hg_status status = hg_launch(kernel, &desc, NULL);
#if defined(__SSE__)
  unsigned restored = _mm_getcsr();
  _mm_setcsr(callers);
  CHECK_EQ_U64(restored, callers | 0x8040u); /* flags too: none of the program's are left behind */
#endif
  int rounding = fegetround();
  CHECK_EQ_U64(fesetround(FE_TONEAREST), 0);
  CHECK_EQ_U64(rounding, FE_UPWARD);
  CHECK_EQ_U64(status, HG_OK);
  CHECK_EQ_U64(hg_buffer_read(x, 0, after, sizeof after), HG_OK);
  CHECK_EQ_U64(after[0], 0x00000080);
  CHECK_EQ_U64(after[1], 0x3f800000);
  hg_buffer_release(x);
  hg_kernel_release(kernel);
}

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  test_faults();
  test_pool_fault();
  test_fault_names();
  test_default_step_limit();
  test_resonance_and_phase();
  test_boundary();
  test_environment();
  hg_executor_release(executor);
  return check_report();
}
