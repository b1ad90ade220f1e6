/* test_threads.c - the worker threads: every part runs once, whoever calls, from wherever; forks; threads that the
 * system refuses; and what the processes of a container may use. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "base/cgroup.h"
#include "base/files.h"
#include "base/fp.h"
#include "base/threads.h"
#include "check.h"

#include <stdlib.h>

#if defined(_WIN32)
#  define setenv(name, value, overwrite) _putenv_s(name, value)
#endif

enum { PARTS = 1000, CALLERS = 8 };

/* ---- every part once --------------------------------------------------------------------------------------------- */

typedef struct tally {
  atomic_uint runs[PARTS];    /* of each part */
  atomic_uint inside[HG_MAX_THREADS];
  atomic_uint bad_worker;
  uint32_t threads;
} tally;

static void pass_time(void) {
  for (volatile int i = 0; i < 100;) i = i + 1;
}

static void count_part(void *user, uint64_t part, uint32_t worker) {
  tally *t = user;
  if (worker >= t->threads || atomic_fetch_add(&t->inside[worker], 1) != 0) atomic_fetch_add(&t->bad_worker, 1);
  atomic_fetch_add(&t->runs[part], 1);
  pass_time();
  if (worker < t->threads) atomic_fetch_sub(&t->inside[worker], 1);
}

/* How many of the parts did not run exactly once. */
static uint32_t wrong_parts(uint32_t threads, uint64_t part_count) {
  static _Thread_local tally t;
  uint32_t wrong = 0;
  memset(&t, 0, sizeof t);
  t.threads = threads > 0 ? threads : 1;
  hg_parallel(threads, part_count, count_part, &t);
  for (uint64_t i = 0; i < PARTS; i++) wrong += atomic_load(&t.runs[i]) != (i < part_count);
  return wrong + atomic_load(&t.bad_worker);
}

static void every_part_once(void) {
  static const uint64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 64, PARTS};
  for (uint32_t threads = 0; threads <= 9; threads++)
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) CHECK_EQ_U64(wrong_parts(threads, counts[i]), 0);
}

/* What the parts wrote is there when the call returns, without atomics: ThreadSanitizer watches. */
static void write_part(void *user, uint64_t part, uint32_t worker) {
  (void)worker;
  ((uint64_t *)user)[part] += part;
}

static void results_are_seen(void) {
  static uint64_t sums[PARTS];
  for (int i = 0; i < 300; i++) hg_parallel(4, PARTS, write_part, sums);
  for (uint64_t i = 0; i < PARTS; i++) CHECK_EQ_U64(sums[i], 300 * i);
}

/* Longer than the workers spin: they sleep, and wake again. */
static void sleepers_wake(void) {
  for (int i = 0; i < 20; i++) {
    uint64_t end = hg_time_ns() + 1000000;
    while (hg_time_ns() < end) pass_time();
    CHECK_EQ_U64(wrong_parts(4, PARTS), 0);
  }
}

static void long_part(void *user, uint64_t part, uint32_t worker) {
  (void)worker;
  uint64_t end = hg_time_ns() + (part == 0 ? 0 : 2000000);
  while (hg_time_ns() < end) pass_time();
  ((uint64_t *)user)[part]++;
}

/* The caller is done long before the others and sleeps until they are. */
static void caller_waits(void) {
  uint64_t runs[4] = {0};
  for (int i = 0; i < 5; i++) hg_parallel(4, 4, long_part, runs);
  for (int i = 0; i < 4; i++) CHECK_EQ_U64(runs[i], 5);
}

/* ---- calls within calls, and from many threads ------------------------------------------------------------------- */

static void nested_part(void *user, uint64_t part, uint32_t worker) {
  (void)part;
  (void)worker;
  atomic_fetch_add((atomic_uint *)user, wrong_parts(3, 50));
}

static void call_often(void *user) {
  for (uint32_t i = 0; i < 200; i++) atomic_fetch_add((atomic_uint *)user, wrong_parts(1 + i % 8, i));
}

static void nested_and_concurrent(void) {
  atomic_uint wrong = 0;
  hg_thread callers[CALLERS];
  hg_parallel(4, 20, nested_part, &wrong);
  CHECK_EQ_U64(atomic_load(&wrong), 0);
  for (int i = 0; i < CALLERS; i++) CHECK(hg_thread_start(&callers[i], call_often, &wrong) == 0);
  call_often(&wrong);
  for (int i = 0; i < CALLERS; i++) hg_thread_join(&callers[i]);
  CHECK_EQ_U64(atomic_load(&wrong), 0);
}

/* ---- floating point ---------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static const uint32_t odd_environment = 0x9fc0 | 0x4000; /* FTZ, DAZ, towards +infinity */

static void read_environment(void *user, uint64_t part, uint32_t worker) {
  if (worker > 0) ((uint32_t *)user)[part] = _mm_getcsr();
  pass_time();
}

static void floating_point(void) {
  static uint32_t seen[PARTS];
  uint32_t callers = _mm_getcsr();
  _mm_setcsr(odd_environment);
  hg_parallel(8, PARTS, read_environment, seen);
  CHECK_EQ_U64(_mm_getcsr(), odd_environment);
  hg_fp_state state = hg_fp_enter();
  uint32_t inside = _mm_getcsr();
  volatile float third = 1.0f;
  third = third / 3; /* inexact */
  hg_fp_leave(state);
  CHECK_EQ_U64(_mm_getcsr(), odd_environment); /* flags too */
  _mm_setcsr(callers);
  CHECK_EQ_U64(inside, 0x1f80);
  for (int i = 0; i < PARTS; i++) CHECK(seen[i] == 0 || seen[i] == 0x1f80);
}
#else
static void floating_point(void) {}
#endif

/* ---- how many threads -------------------------------------------------------------------------------------------- */

static void the_gate(void) {
  CHECK_EQ_U64(hg_thread_limit(), 8);
  CHECK(hg_thread_remark() == NULL);
  CHECK_EQ_U64(hg_parallel_threads(0, 0), 1);
  CHECK_EQ_U64(hg_parallel_threads(700, 0), 1);
  CHECK_EQ_U64(hg_parallel_threads(UINT64_MAX, 0), 8);
  CHECK_EQ_U64(hg_parallel_threads(1000000, 0), 8);
  CHECK_EQ_U64(hg_parallel_threads(1000000, 3), 3);
  CHECK_EQ_U64(hg_parallel_threads(1000000, 9), 8);
}

#if !defined(_WIN32)
#  include <sys/resource.h>
#  include <sys/wait.h>
#  include <unistd.h>

/* Runs `body` in a new process, which must end within a minute; what it returns, -1 if it crashed or hung. */
static int in_child(int (*body)(const void *argument), const void *argument) {
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    alarm(60);
    _exit(body(argument));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int use_threads(const void *argument) {
  (void)argument;
  for (uint32_t i = 0; i < 50; i++)
    if (wrong_parts(8, PARTS) != 0) return 1;
  return 0;
}

static int fork_again(const void *argument) { return use_threads(argument) + in_child(use_threads, argument); }

/* While other threads have jobs running, in the pool and beside it. */
static void forks(void) {
  atomic_uint wrong = 0;
  hg_thread callers[2];
  CHECK_EQ_U64(in_child(use_threads, NULL), 0);
  for (int i = 0; i < 2; i++) CHECK(hg_thread_start(&callers[i], call_often, &wrong) == 0);
  for (int i = 0; i < 10; i++) CHECK_EQ_U64(in_child(fork_again, NULL), 0);
  for (int i = 0; i < 2; i++) hg_thread_join(&callers[i]);
  CHECK_EQ_U64(wrong_parts(8, PARTS) + atomic_load(&wrong), 0);
}

/* exit runs what ends the workers, asleep or not. */
static int use_and_exit(const void *argument) {
  int status = use_threads(argument);
  if (argument != NULL) usleep(2000);
  exit(status);
}

static void exits(void) {
  CHECK_EQ_U64(in_child(use_and_exit, NULL), 0);
  CHECK_EQ_U64(in_child(use_and_exit, "asleep"), 0);
}

/* In a process that starts anew, because stacks once made are used again: no address space for a stack. */
static int without_threads(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = 1 << 20;
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  static tally t = {.threads = 1}; /* a worker other than the caller would be a bad one */
  hg_parallel(8, PARTS, count_part, &t);
  for (uint64_t i = 0; i < PARTS; i++)
    if (atomic_load(&t.runs[i]) != 1) return 2;
  return atomic_load(&t.bad_worker) != 0 ? 3 : 0;
}

/* The first line of what another run of this program prints. */
static uint64_t other_run(const char *variables, const char *program, const char *mode) {
  char command[512], line[32] = "";
  snprintf(command, sizeof command, "%s '%s' %s", variables, program, mode);
  FILE *output = popen(command, "r");
  CHECK(output != NULL && fgets(line, sizeof line, output) != NULL);
  if (output != NULL) pclose(output);
  return strtoull(line, NULL, 10);
}

static void threads_denied(const char *program) {
  if (SANITIZED) printf("skipped: threads_denied: a sanitizer needs the address space itself\n");
  else CHECK_EQ_U64(other_run("HOLOGRAM_NUM_THREADS=8", program, "denied"), 0);
}

typedef struct wish {
  const char *text;
  uint32_t limit; /* 0: the machine's */
  int remark;
} wish;

/* The setting is read once a process: in one that starts anew. */
static int limit_and_remark(void) { return (hg_thread_remark() != NULL ? 1000 : 0) + (int)hg_thread_limit(); }

/* Where no worker is awake, because there is none yet. Jobs too small to wake anybody for: one in many does, so that a
 * series of them is not left to one thread. */
static int small_jobs(void) {
  int several = 0;
  for (int i = 0; i < 400; i++) several += hg_parallel_threads(1000, 0) > 1;
  return several;
}

static int run_mode(const char *mode) {
  if (strcmp(mode, "limit") == 0) return limit_and_remark();
  return strcmp(mode, "small") == 0 ? small_jobs() : without_threads();
}

static void settings(const char *program) {
  static const wish wishes[] = {{"1", 1, 0},   {"2", 2, 0},  {"7", 7, 0}, {"256", 256, 0}, {"", 0, 0},
                                {"0", 0, 1},   {"-1", 0, 1}, {"x", 0, 1}, {"257", 0, 1},   {"4 ", 0, 1},
                                {"2.5", 0, 1}, {"99999999999999999999", 0, 1},
                                {"00000000000000000000000000000000000000004", 0, 1}};
  for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
    const wish *w = &wishes[i];
    char variables[96];
    snprintf(variables, sizeof variables, "HOLOGRAM_NUM_THREADS='%s'", w->text);
    uint64_t limit = w->limit > 0 ? w->limit : hg_hardware_threads();
    CHECK_EQ_U64(other_run(variables, program, "limit"), (w->remark ? 1000 : 0) + limit);
  }
}

/* ---- control groups ---------------------------------------------------------------------------------------------- */

static void put(const char *folder, const char *path, const char *text) {
  char whole[600];
  snprintf(whole, sizeof whole, "%s/%s", folder, path);
  char *slash = strrchr(whole, '/');
  *slash = '\0';
  CHECK(hg_directory_create(whole));
  *slash = '/';
  FILE *file = fopen(whole, "w");
  CHECK(file != NULL);
  if (file == NULL) return;
  fputs(text, file);
  fclose(file);
}

static void check_limits(const char *folder, const char *membership, uint64_t threads, uint64_t memory_bytes) {
  char file[600], mount[600];
  put(folder, "self", membership);
  snprintf(file, sizeof file, "%s/self", folder);
  snprintf(mount, sizeof mount, "%s/mount", folder);
  CHECK_EQ_U64(hg_cgroup_threads(file, mount), threads);
  CHECK_EQ_U64(hg_cgroup_memory(file, mount), memory_bytes);
}

static void control_groups(void) {
  const uint64_t none = UINT64_MAX;
  char folder[] = "/tmp/hologram-test-XXXXXX", command[600];
  CHECK(mkdtemp(folder) != NULL);
  check_limits(folder, "0::/\n", none, none); /* nothing mounted */
  put(folder, "mount/a/cpu.max", "max 100000\n");
  put(folder, "mount/a/memory.max", "max\n");
  check_limits(folder, "0::/a\n", none, none);
  put(folder, "mount/a/b/cpu.max", "250000 100000\n");
  put(folder, "mount/a/b/memory.max", "1000000\n");
  check_limits(folder, "0::/a/b\n", 3, 1000000);
  check_limits(folder, "0::/a/b/gone\n", 3, 1000000);
  check_limits(folder, "0::/a\n", none, none);
  put(folder, "mount/a/cpu.max", "150000 100000\n"); /* holds for those below it */
  put(folder, "mount/a/memory.max", "2000000\n");
  check_limits(folder, "0::/a/b\n", 2, 1000000);
  put(folder, "mount/cpu.max", "100 100000\n"); /* a container's own root */
  check_limits(folder, "0::/not/there\n", 1, none);
  put(folder, "mount/cpu,cpuacct/c/cpu.cfs_quota_us", "800000\n");
  put(folder, "mount/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
  put(folder, "mount/memory/c/memory.limit_in_bytes", "3000000\n");
  check_limits(folder, "5:cpuset,xcpu:/c\n4:cpu,cpuacct:/c\n3:memory:/c\n1:name=systemd:/c\n", 8, 3000000);
  put(folder, "mount/cpu,cpuacct/c/cpu.cfs_quota_us", "-1\n");
  put(folder, "mount/memory/c/memory.limit_in_bytes", "nonsense\n");
  check_limits(folder, "4:cpu,cpuacct:/c\n3:memory:/c\nnonsense\n", none, none);
  put(folder, "mount/unified/d/cpu.max", "500000 100000\n");
  put(folder, "mount/cpu.max", "max 100000\n");
  check_limits(folder, "4:cpu,cpuacct:/c\n0::/d\n", 5, none);
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  CHECK(system(command) == 0);
  CHECK_EQ_U64(hg_cgroup_threads("/nowhere/at/all", "/nowhere"), none);
}

static void processes(const char *program) {
  forks();
  exits();
  settings(program);
  CHECK_EQ_U64(other_run("HOLOGRAM_NUM_THREADS=8", program, "small"), 400 * 1000 / 80000);
  control_groups();
  threads_denied(program);
}
#else
static int run_mode(const char *mode) { return mode == NULL; }
static void processes(const char *program) { (void)program; }
#endif

int main(int argc, char **argv) {
  if (argc > 1) {
    printf("%d\n", run_mode(argv[1]));
    return 0;
  }
  setenv("HOLOGRAM_NUM_THREADS", "8", 1); /* more than most test machines have: threads also lose their CPU */
  every_part_once();
  results_are_seen();
  sleepers_wake();
  caller_waits();
  nested_and_concurrent();
  floating_point();
  the_gate();
  processes(argv[0]);
  return check_report();
}
