/* test_circuit.c - circuits through the C API: each allocation fails once, structs of results, what is refused. What
 * circuits compute is in tests/python/test_circuits.py. */
#include "each_allocation.h"

#include "hologram/circuit.h"

static const char text[] =
    "evaluate@c7 . (R+1(mark@c1 . copy@c40->c41) || mark@c[42..44]) . merge@c0[c20,c20] . swap@c60<->c61 . mark@c60 . "
    "merge:mul@c0[c0,c0] . merge@c20[c0,c0] . copy@c20->c22 . (quote@c7 . quote@c8 . mark@c5) . quote@c7 . "
    "merge:mul@c1[c2,c3] . split@c3[c3,c1]";

static hg_circuit *parsed(const char *from) {
  hg_circuit *circuit = NULL;
  if (hg_circuit_parse(NULL, from, strlen(from), NULL, &circuit) != HG_OK) printf("%s\n", hg_last_error());
  CHECK(circuit != NULL);
  return circuit;
}

/* ---- allocations ------------------------------------------------------------------------------------------------- */

static void prepare(void *state) { (void)state; }
static void check(void *state, hg_status status) { (void)state, (void)status; }

static hg_status print_all(const hg_circuit *circuit, const hg_allocator *allocator) {
  char *texts[3] = {NULL, NULL, NULL};
  size_t length = 0;
  hg_status status = hg_circuit_canonical(allocator, circuit, &texts[0], &length);
  if (status == HG_OK) CHECK_EQ_U64(strlen(texts[0]), length);
  if (status == HG_OK) status = hg_circuit_terms(allocator, circuit, &texts[1], NULL);
  if (status == HG_OK) status = hg_circuit_steps(allocator, circuit, &texts[2], NULL);
  for (int i = 0; i < 3; i++) atlas_memory_release(allocator, texts[i]);
  return status;
}

static hg_status act(void *state, const hg_allocator *allocator) {
  hg_circuit *circuit = NULL, *moves = NULL, *inverse = NULL;
  hg_launch_report report = {.size = sizeof report};
  (void)state;
  hg_status status = hg_circuit_parse(allocator, text, strlen(text), NULL, &circuit);
  CHECK((status == HG_OK) == (circuit != NULL));
  if (status == HG_OK) status = print_all(circuit, allocator);
  if (status == HG_OK) status = hg_circuit_run(circuit, executor, &report);
  if (status == HG_OK) status = hg_circuit_parse(allocator, "mark@c1 . swap@c1<->c2", 22, NULL, &moves);
  if (status == HG_OK) status = hg_circuit_inverse(moves, &inverse);
  hg_circuit_release(inverse);
  hg_circuit_release(moves);
  hg_circuit_release(circuit);
  return status;
}

static void test_failures(void) {
  static const attempt all = {.prepare = prepare, .act = act, .check = check, .end = prepare};
  CHECK(each_allocation_fails(&all, NULL) > 20);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void test_results(void) {
  hg_circuit *circuit = parsed("mark@c5 . mark@c5 . swap@c1<->c2 . merge@c3[c4,c4]");
  hg_circuit_report report = {.size = 0};
  hg_circuit_law law = {.size = sizeof law};
  uint8_t a[HG_CIRCUIT_HASH_BYTES], b[HG_CIRCUIT_HASH_BYTES];
  CHECK_EQ_U64(hg_circuit_query(circuit, &report), HG_OK);
  CHECK_EQ_U64(report.size, 0);
  CHECK_EQ_U64(report.steps, 4);
  CHECK_EQ_U64(report.canonical_steps, 2);
  CHECK_EQ_U64(report.changed, 3);
  CHECK_EQ_U64(report.components, 2);
  uint64_t marks = 0;
  size_t count = 0;
  for (; hg_circuit_law_query(circuit, count, &law) == HG_OK; count++)
    if (strcmp(law.name, "mark mark") == 0) marks = law.count;
  CHECK_EQ_U64(marks, 1);
  CHECK(count > 10 && hg_circuit_law_query(circuit, count, &law) == HG_NOT_FOUND);
  hg_circuit *other = parsed("merge@c3[c4,c4] || swap@c2<->c1");
  hg_circuit_hash(circuit, a);
  hg_circuit_hash(other, b);
  CHECK(memcmp(a, b, sizeof a) == 0);
  CHECK(hg_circuit_retain(other) == other);
  hg_circuit_release(other);
  hg_circuit_release(other);
  hg_circuit_release(circuit);
  hg_circuit_release(NULL);
}

static void test_refusals(void) {
  hg_circuit *circuit = parsed("merge@c1[c2,c3]"), *inverse = circuit;
  hg_error_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_circuit_inverse(circuit, &inverse), HG_UNSUPPORTED);
  CHECK(inverse == NULL);
  CHECK_EQ_U64(hg_circuit_parse(NULL, "mark@c1 .\n mark@c96", 19, "blocks", &inverse), HG_PARSE);
  CHECK_EQ_U64(hg_last_error_info(&info), HG_OK);
  CHECK(info.line == 2 && info.column == 8 && strcmp(info.source, "blocks") == 0);
  CHECK_EQ_U64(hg_circuit_parse(NULL, NULL, 1, NULL, &inverse), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_circuit_parse(NULL, NULL, 0, NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_circuit_inverse(NULL, &inverse), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_circuit_canonical(NULL, NULL, NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_circuit_compile(NULL, NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_circuit_run(circuit, NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_circuit_query(circuit, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_circuit_law_query(circuit, 0, NULL), HG_INVALID_ARGUMENT);
  hg_circuit_release(circuit);
}

int main(void) {
  if (open_test_executor(NULL, &executor) != HG_OK) return 1;
  test_failures();
  test_results();
  test_refusals();
  hg_executor_release(executor);
  return check_report();
}
