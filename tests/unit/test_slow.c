/* test_slow.c - what kernels say of code that is slower than one would expect: instructions that call C, accesses lane
 * by lane, loops in which lanes wait, accesses that a loop checks in each round. For each target, and what launches
 * report of it. */
#include "launching.h"
#include "native_passes.h"

#include "backend/cpu/native/pipeline.h"

#define APART(line, op) \
  "line " line " (" op ") accesses memory lane by lane: neighbouring lanes have no neighbouring elements"
#define SEVERAL_APART(line, op) \
  "line " line " (" op ") and others access memory lane by lane: neighbouring lanes have no neighbouring elements"
#define CALL(line, op) "line " line " (" op ") calls C, which computes lane by lane"
#define CHECKED(line, op) "line " line " (" op ") is checked in each round of its loop"

static hg_status keep_notes(void *context, const char *version, const native_build *build) {
  if (strcmp(version, "several") == 0) return HG_OK;
  return hg_native_describe_slow(build, context, NATIVE_MOST_NOTES); /* of whole blocks first, then of all */
}

static void check_notes(const char *text, const native_target *target, const char *expected) {
  char notes[NATIVE_MOST_NOTES] = "(none)";
  const native_visitor visitor = {.visit = keep_notes, .context = notes};
  visit_versions(text, target, &visitor);
  if (!check_note(strcmp(notes, expected) == 0))
    printf("%s: \"%s\" instead of \"%s\"\n%s\n", target->engine, notes, expected, text);
}

/* The same on x86-64, whatever the processor; NULL: not asked for. */
static void check_all(const char *text, const char *x86, const char *neon) {
  check_notes(text, &hg_native_avx512, x86);
  check_notes(text, &hg_native_avx2, x86);
  if (neon != NULL) check_notes(text, &hg_native_neon, neon);
}

#define GATHER \
  ".program gather\n.buffer x f32 in\n.buffer i u32 in\n.buffer y f32 out\nldg.u32 r0, [i + lane]\n" \
  "ldg.f32 r1, [x + r0]\nstg.f32 [y + lane], r1\nexit\n"

static void test_apart(void) {
  check_all(GATHER, APART("6", "ldg"), APART("6", "ldg"));
  check_all(".program neighbours\n.buffer x f32 in\n.buffer y f32 out\nsreg.u32 r0, global.x\nadd.u32 r0, r0, #3\n"
            "ldg.f32 r1, [x + r0]\nstg.f32 [y + lane], r1\nexit\n",
            "", "");
  check_all(".program one\n.buffer x f32 in\n.buffer y f32 out\n.scalar n u32\nmov.u32 r0, n\nldg.f32 r1, [x + r0]\n"
            "stg.f32 [y + lane], r1\nexit\n",
            "", "");
  check_all(".program reverse\n.buffer x f32 in\n.buffer y f32 out\nsreg.u32 r0, global.x\nmul.u32 r1, r0, #3\n"
            "ldg.f32 r2, [x + r0]\nstg.f32 [y + r1], r2\nsub.u32 r1, #5000, r0\nstg.f32 [y + r1], r2\nexit\n",
            SEVERAL_APART("7", "stg"), SEVERAL_APART("7", "stg"));
  check_all(".program own\n.buffer i u32 in\n.buffer y u32 out\n.scalar n u32\n.local a u32 16\n"
            "ldg.u32 r0, [i + lane]\nand.u32 r0, r0, #15\nstl.u32 [a + r0], n\nmov.u32 r1, n\nldl.u32 r2, [a + r1]\n"
            "stg.u32 [y + lane], r2\nexit\n",
            APART("8", "stl"), APART("8", "stl"));
}

static void test_waits(void) {
  const char *expected = SEVERAL_APART("9", "ldg") "; line 14 (bra) ends a loop that lanes leave one by one: they wait "
                                                   "for the last";
  check_all(".program list\n.buffer n u32 in\n.buffer i u32 in\n.buffer x f32 in\n.buffer y f32 out\n"
            "ldg.u32 r0, [n + lane]\nmovi.f32 r2, #0\nagain:\nldg.u32 r0, [i + r0]\nset.eq.u32 p0, r0, #0\n"
            "@p0 bra done\nldg.f32 r1, [x + r0]\nadd.f32 r2, r2, r1\nbra again\ndone:\nstg.f32 [y + lane], r2\nexit\n",
            expected, expected);
}

static void test_calls(void) {
  check_all(".program far\n.buffer x f32 in\n.buffer y f32 out\n.scalar n u32\nmov.u32 r0, n\nldg.f32 r1, [x + r0 + "
            "#20000000]\n"
            "stg.f32 [y + lane], r1\nexit\n",
            CALL("6", "ldg"), NULL);
  check_notes(".program classes\n.buffer x u32 inout\nldg.u32 r0, [x + lane]\nmirror.u32 r0, r0\n"
              "stg.u32 [x + lane], r0\nexit\n",
              &hg_native_neon, CALL("4", "mirror"));
}

/* Rounds that load a row each; `work` instructions a round. */
static const char *loop_of(uint32_t work) {
  static char text[32768];
  size_t used = (size_t)snprintf(text, sizeof text,
                                 ".program sums\n.buffer x f32 in\n.buffer y f32 out\nsreg.u32 r0, global.x\n"
                                 "movi.f32 r4, #0\nmovi.f32 r5, #1\nmovi.u32 r1, #200\nagain:\n"
                                 "ldg.f32 r3, [x + r0]\n");
  for (uint32_t i = 0; i < work; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "fma.f32 r%u, r%u, r3, r%u\n", 4 + i % 2, 4 + i % 2,
                             5 - i % 2);
  snprintf(text + used, sizeof text - used,
           "add.u32 r0, r0, #1024\nloop r1, again\nadd.f32 r4, r4, r5\nstg.f32 [y + lane], r4\nexit\n");
  return text;
}

static void test_loops(void) {
  check_all(loop_of(2), "", CHECKED("9", "ldg")); /* NEON has no loops for lanes that stay together */
  check_all(loop_of(300), CHECKED("9", "ldg"), CHECKED("9", "ldg"));
}

/* ---- what a program's kernel and its launches say ---------------------------------------------------------------- */

static void test_reports(void) {
  static const uint32_t places[4] = {3, 1, 0, 2};
  hg_kernel_info info = {.size = sizeof info};
  hg_launch_report report = {.size = sizeof report};
  const hg_executor_desc desc = {.size = sizeof desc, .backend = HG_BACKEND_CPU, .engine = "native"};
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  hg_kernel *kernel = kernel_of(GATHER);
  hg_buffer *x = buffer_of(sizeof places, places), *y = buffer_of(sizeof places, NULL);
  const hg_binding bindings[] = {{.name = "x", .buffer = x}, {.name = "i", .buffer = x}, {.name = "y", .buffer = y}};
  const hg_launch_desc launch = {.size = sizeof launch, .lanes = 4, .bindings = bindings, .binding_count = 3};
  CHECK_EQ_U64(hg_kernel_query(kernel, &info), HG_OK);
  CHECK_EQ_U64(hg_launch(kernel, &launch, &report), HG_OK);
  int is_native = strncmp(info.engine, "native", 6) == 0;
  if (is_native) CHECK_STR(info.why, "");
  CHECK_STR(info.notes, is_native ? APART("6", "ldg") : info.why);
  CHECK_STR(report.notes, info.notes);
  hg_buffer_release(x);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
}

int main(void) {
  test_apart();
  test_waits();
  test_calls();
  test_loops();
  test_reports();
  return check_report();
}
