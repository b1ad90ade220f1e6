/* test_executable_cache.c - executables are found again by what they depend on, kept within bounds, and outlive what
 * made them; several threads compile and run at once. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "computing.h"
#include "counted.h"

#if !defined(_WIN32)
#  include <pthread.h>
#endif

/* ---- the cache --------------------------------------------------------------------------------------------------- */

static void test_cache(void) {
  CHECK_EQ_U64(hg_executables_limit(executor, 0), HG_OK);
  CHECK_EQ_U64(cache_info().count, 0);
  CHECK_EQ_U64(cache_info().bytes, 0);
  CHECK_EQ_U64(hg_executables_limit(executor, 1 << 20), HG_OK);
  hg_tensor x = vector_of(NULL, 12), y = vector_of(NULL, 13), s = x;
  s.stride[0] = 2;
  hg_executables_info before = cache_info();
  hg_executable *first = executable_of(&x, &x, NULL), *second = executable_of(&x, &x, NULL);
  CHECK(first == second);
  hg_executable *larger = executable_of(&y, &y, NULL), *strided = executable_of(&s, &x, NULL);
  CHECK(larger != first && strided != first && strided != larger);
  hg_executables_info info = cache_info();
  CHECK_EQ_U64(info.hits - before.hits, 1);
  CHECK_EQ_U64(info.misses - before.misses, 3);
  CHECK_EQ_U64(info.count, 3);
  CHECK(info.bytes > 1000 && info.byte_cap == 1 << 20);

  /* what nobody needs, and the order in which it was built, do not count */
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value a = hg_computation_input(c, "a", &x), b = hg_computation_input(c, "b", &x);
  (void)two(c, HG_OP_sub, b, a);
  hg_value sum = two(c, HG_OP_add, a, b);
  (void)two(c, HG_OP_div, sum, b);
  CHECK_EQ_U64(hg_computation_output(c, "out", two(c, HG_OP_mul, sum, a), NULL), HG_OK);
  hg_executable *third = compiled(c);
  CHECK(third == first);
  hg_compile_desc desc = {.flags = HG_NO_FUSION};
  hg_executable *apart = NULL;
  CHECK_EQ_U64(hg_compile(executor, c, &desc, &apart), HG_OK);
  CHECK(apart != first);
  hg_computation_release(c);
  hg_executable_release(apart);
  hg_executable_release(third);
  hg_executable_release(second);
  hg_executable_release(strided);

  /* room for one: the least recently used go first, and what is held goes on */
  hg_executable_release(larger);
  larger = executable_of(&y, &y, NULL);
  CHECK_EQ_U64(hg_executables_limit(executor, larger->byte_count + 8), HG_OK);
  info = cache_info();
  CHECK_EQ_U64(info.count, 1);
  CHECK(info.bytes <= info.byte_cap && info.evictions >= before.evictions + 3);
  hg_buffer *p = floats(12, 1), *q = floats(12, 10), *out = floats(12, 0);
  CHECK_EQ_U64(run3(first, vector_of(p, 12), vector_of(q, 12), vector_of(out, 12), NULL), HG_OK);
  check_floats(out, 12, expected);
  second = executable_of(&y, &y, NULL);
  CHECK(second == larger);
  hg_executable_release(second);
  second = executable_of(&x, &x, NULL); /* another one now: it takes the place of `larger` */
  CHECK(second != first);
  hg_executable_release(second);
  hg_executable_release(first);
  hg_executable_release(larger);

  CHECK_EQ_U64(hg_executables_limit(executor, 0), HG_OK); /* keeps none */
  first = executable_of(&x, &x, NULL), second = executable_of(&x, &x, NULL);
  CHECK(first != second);
  CHECK_EQ_U64(cache_info().count, 0);
  hg_executable_release(first);
  hg_executable_release(second);
  CHECK_EQ_U64(hg_executables_limit(executor, 64 << 20), HG_OK);
  CHECK_EQ_U64(hg_executables_query(NULL, &info), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_executables_limit(NULL, 0), HG_INVALID_ARGUMENT);
  hg_buffer_release(p);
  hg_buffer_release(q);
  hg_buffer_release(out);
}

static uint64_t compilations(void) {
  hg_counts counts = {.size = sizeof counts};
  CHECK_EQ_U64(hg_executor_count(executor, &counts), HG_OK);
  return counts.compilations;
}

/* Other lengths have the same program: its code is compiled, kept and counted once. What runs stays. */
static void test_lengths(void) {
  CHECK_EQ_U64(hg_executables_limit(executor, 0), HG_OK);
  CHECK_EQ_U64(hg_executables_limit(executor, 1 << 20), HG_OK);
  hg_tensor x = vector_of(NULL, 12), y = vector_of(NULL, 13), z = vector_of(NULL, 14);
  hg_executable *first = executable_of(&x, &x, NULL);
  uint64_t compiled_once = compilations(), alone = cache_info().bytes;
  CHECK_EQ_U64(alone, first->byte_count);
  hg_executable *second = executable_of(&y, &y, NULL);
  CHECK_EQ_U64(compilations(), compiled_once);
  const hg_code *code = first->launches[0].kernel->code;
  CHECK(second != first && second->launches[0].kernel->code == code);
  CHECK(second->launches[0].kernel->program == code->program);
  CHECK_EQ_U64(code->keepers, 2);
  CHECK_EQ_U64(cache_info().bytes, first->byte_count + second->byte_count - ops_code_bytes(code));

  hg_buffer *a = floats(12, 1), *b = floats(12, 10), *out = floats(12, 0);
  CHECK_EQ_U64(run3(first, vector_of(a, 12), vector_of(b, 12), vector_of(out, 12), NULL), HG_OK);
  CHECK_EQ_U64(hg_executables_limit(executor, cache_info().bytes), HG_OK);
  hg_executable *third = executable_of(&z, &z, NULL), *again = executable_of(&x, &x, NULL);
  CHECK(again == first && first->is_cached && !second->is_cached && third->is_cached);
  CHECK_EQ_U64(hg_executables_limit(executor, 0), HG_OK);
  CHECK_EQ_U64(code->keepers, 0);
  CHECK_EQ_U64(cache_info().bytes, 0);
  hg_executable_release(again);
  hg_executable_release(first);
  hg_executable_release(second);
  hg_executable_release(third);
  hg_buffer_release(a);
  hg_buffer_release(b);
  hg_buffer_release(out);
  CHECK_EQ_U64(hg_executables_limit(executor, 64 << 20), HG_OK);
}

/* out = (a + number) * a */
static hg_executable *executable_of_number(const hg_tensor *a, double number) {
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value x = hg_computation_input(c, "a", a), n = hg_computation_number(c, ATLAS_f32, number);
  CHECK_EQ_U64(hg_computation_output(c, "out", two(c, HG_OP_mul, two(c, HG_OP_add, x, n), x), NULL), HG_OK);
  hg_executable *e = compiled(c);
  hg_computation_release(c);
  return e;
}

static double varied;
static float with_varied(uint64_t i) { return ((float)(i + 1) + (float)varied) * (float)(i + 1); }

/* Constants that have changed are scalars of the launches: one code serves all. A computation that comes again
 * unchanged keeps its constants. */
static void test_constants(void) {
  hg_buffer *a = floats(12, 1), *out = floats(12, 0);
  hg_tensor x = vector_of(a, 12), y = vector_of(out, 12);
  uint64_t before = compilations();
  for (int i = 0; i < 40; i++) {
    varied = 3.25 + i;
    hg_executable *e = executable_of_number(&x, varied);
    CHECK_EQ_U64(e->flags & OPS_CONSTANTS_VARY, i == 0 ? 0 : OPS_CONSTANTS_VARY);
    CHECK_EQ_U64(hg_run(e, &x, 1, &y, 1, NULL, NULL), HG_OK);
    check_floats(out, 12, with_varied);
    hg_executable_release(e);
  }
  CHECK_EQ_U64(compilations() - before, 2);

  hg_tensor z = hg_tensor_of(a, ATLAS_f32, 2, (uint64_t[]){1, 11});
  for (int i = 0; i < 3; i++) { /* the cache keeps nothing, but the structure is known */
    CHECK_EQ_U64(hg_executables_limit(executor, 0), HG_OK);
    hg_executable *e = executable_of_number(&z, 7.5);
    CHECK_EQ_U64(e->flags & OPS_CONSTANTS_VARY, 0);
    hg_executable_release(e);
  }
  for (uint64_t i = 0; i < 3; i++) { /* constants that follow from sizes vary from the third size on */
    hg_tensor sized = hg_tensor_of(a, ATLAS_f32, 3, (uint64_t[]){1, 1, 3 + i});
    hg_executable *e = executable_of_number(&sized, 3 + (double)i);
    CHECK_EQ_U64(e->flags & OPS_CONSTANTS_VARY, i < 2 ? 0 : OPS_CONSTANTS_VARY);
    hg_executable_release(e);
  }
  CHECK_EQ_U64(hg_executables_limit(executor, 64 << 20), HG_OK);
  hg_buffer_release(a);
  hg_buffer_release(out);
}

/* Memory of many shapes: no more than the cap says, and no allocation more from some number of them on. */
static void test_growth(void) {
  enum { SHAPES = 10000, CAP = 1 << 20 };
  hg_executor *own = NULL, *shared = executor;
  counter c = {.fail_at = -1};
  hg_allocator allocator = counting(&c);
  CHECK_EQ_U64(open_test_executor(&allocator, &own), HG_OK);
  executor = own;
  CHECK_EQ_U64(hg_executables_limit(own, CAP), HG_OK);
  long middle = 0, most = 0;
  for (uint64_t n = 1; n <= SHAPES; n++) {
    hg_tensor x = vector_of(NULL, n);
    hg_executable_release(executable_of(&x, &x, NULL));
    long live = atomic_load(&c.live);
    if (n == SHAPES / 2) middle = most;
    if (live > most) most = live;
  }
  hg_executables_info info = cache_info();
  CHECK(info.bytes <= CAP && info.count > 50 && info.count < SHAPES / 4);
  CHECK_EQ_U64(most, middle);
  CHECK_EQ_U64(info.count + info.evictions, SHAPES);
  hg_executor_release(own);
  CHECK_EQ_U64(atomic_load(&c.live), 0);
  executor = shared;
}

/* An executable holds its executor; the cache does not. */
static void test_lifetime(void) {
  hg_executor *own = NULL, *shared = executor;
  hg_executable *e = NULL;
  counter c = {.fail_at = -1};
  hg_allocator allocator = counting(&c);
  CHECK_EQ_U64(open_test_executor(&allocator, &own), HG_OK);
  executor = own;
  hg_buffer *a = floats(12, 1), *b = floats(12, 10), *out = floats(12, 0);
  hg_tensor x = vector_of(a, 12);
  e = executable_of(&x, &x, NULL);
  hg_executable_release(e);
  e = executable_of(&x, &x, NULL);
  hg_executor_release(own);
  CHECK_EQ_U64(run3(e, x, vector_of(b, 12), vector_of(out, 12), NULL), HG_OK);
  check_floats(out, 12, expected);
  hg_buffer_release(a);
  hg_buffer_release(b);
  hg_buffer_release(out);
  hg_executable_release(e);
  CHECK_EQ_U64(c.live, 0);
  executor = shared;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

#if !defined(_WIN32)
enum { THREADS = 6, ROUNDS = 40 };

typedef struct worker {
  pthread_t thread;
  hg_executable *shared;
  unsigned number;
  int failures;
} worker;

/* Runs what all share, and compiles the same few computations as the others, which push each other out. */
static void *work(void *argument) {
  worker *w = argument;
  for (unsigned round = 0; round < ROUNDS; round++) {
    hg_buffer *a = NULL, *out = NULL;
    float values[12], ones[12];
    for (int i = 0; i < 12; i++) ones[i] = (float)w->number;
    w->failures += hg_buffer_create(executor, NULL, sizeof values, &a) != HG_OK;
    w->failures += hg_buffer_create(executor, NULL, sizeof values, &out) != HG_OK;
    w->failures += hg_buffer_write(a, 0, ones, sizeof ones) != HG_OK;
    hg_tensor x = vector_of(a, 12), z = vector_of(out, 12), part = vector_of(a, 1 + round % 5),
              to = vector_of(out, part.shape[0]);
    w->failures += run3(w->shared, x, x, z, NULL) != HG_OK;
    w->failures += hg_buffer_read(out, 0, values, sizeof values) != HG_OK;
    for (int i = 0; i < 12; i++) w->failures += values[i] != 2 * ones[i] * ones[i];
    hg_computation *c = NULL;
    hg_executable *e = NULL;
    w->failures += hg_computation_create(NULL, &c) != HG_OK;
    hg_value p = hg_computation_input(c, "p", &part);
    w->failures += hg_computation_output(c, "q", two(c, HG_OP_add, p, p), NULL) != HG_OK;
    w->failures += hg_compile(executor, c, NULL, &e) != HG_OK;
    w->failures += hg_run(e, &part, 1, &to, 1, NULL, NULL) != HG_OK;
    w->failures += hg_buffer_read(out, 0, values, 4) != HG_OK;
    w->failures += values[0] != 2 * ones[0];
    hg_executable_release(e);
    hg_computation_release(c);
    hg_buffer_release(a);
    hg_buffer_release(out);
  }
  return NULL;
}

static void test_threads(void) {
  worker workers[THREADS];
  hg_tensor x = vector_of(NULL, 12);
  hg_executable *e = executable_of(&x, &x, NULL);
  CHECK_EQ_U64(hg_executables_limit(executor, 3 * e->byte_count), HG_OK);
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (worker){.shared = e, .number = i};
    CHECK_EQ_U64(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    CHECK_EQ_U64(pthread_join(workers[i].thread, NULL), 0);
    CHECK_EQ_U64(workers[i].failures, 0);
  }
  hg_executable_release(e);
  CHECK_EQ_U64(hg_executables_limit(executor, 64 << 20), HG_OK);
}
#endif

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  test_cache();
  test_lengths();
  test_constants();
  test_growth();
  test_lifetime();
#if !defined(_WIN32)
  test_threads();
#endif
  hg_executor_release(executor);
  return check_report();
}
