/* test_sweep.c - the systematic sweep of memory safety: programs that access memory in every form, type and index, by
 * launches whose memory begins and ends at pages that nobody may read, on engines beside the reference machine: status,
 * fault record and every byte of the memory and around it.
 *
 *   test_sweep [--seed S] [--one-in N | --tenth] [--launches N] [--part I/N] [--processes P] [--route NAME]
 *              [--engine NAME[:ISA][+stream]]... [--backend cuda|metal] [--brief] [--case N] [--list]
 *
 * --one-in chooses programs, another N-th with each seed, --launches how many of a program's launches run (all), --part
 * a piece of both. Without --engine it runs on all engines of this machine's CPU. --brief leaves out launches of a
 * million lanes, as --backend does, for machines where they take a minute. --case runs one, and shows it. A worker that
 * dies has failed at the case that it was at, and another goes on behind it. --list: how many programs there are of
 * each route. The last line is "N passed, N failed", of cases times engines. */
#define _GNU_SOURCE
#include "sweep.h"

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_A_CASE = 60, MOST_REPORTS = 12, MOST_CRASHES = 4, TOGETHER = 48 };
#define COMPILING UINT32_MAX /* a launch that is none */

typedef struct options {
  uint64_t seed, only_case;
  uint32_t one_in, launches, part, parts, processes;
  int has_case, lists;
  const char *route;
  const char *engines[MOST_ENGINES];
  uint32_t engine_count;
  int is_default; /* the engines are those that the machine has */
  int is_brief;   /* no launch of a million lanes */
} options;

/* What a worker tells: memory that processes share. */
typedef struct worker {
  uint32_t at;                   /* among its programs */
  uint32_t turn, launch, engine; /* that it is at; `turn` counts the launches */
  uint32_t crashes;              /* in the program that it is at */
  uint64_t passed, failed, refused, faulted, elsewhere, cases, reported;
} worker;

static sweep_engine *engines[MOST_ENGINES];        /* of this process; the first is the reference machine */
static uint32_t engine_count, asked[MOST_ENGINES]; /* which of the options' engines each is */
static uint32_t *selected;
static uint32_t selected_count;

static void make_program(const options *o, uint32_t number, sweep_program *out) {
  sweep_program_make(o->seed, number, o->is_brief, out);
}

/* ---- one program ------------------------------------------------------------------------------------------------- */

typedef struct subject {
  const options *o;
  worker *w;
  sweep_program program;
  atlas_program *compiled;
  hg_kernel *kernels[MOST_ENGINES];
  sweep_launch launch;
  int failed_on[MOST_ENGINES]; /* it has been shown */
} subject;

/* Where it died while it was compiled any launch will do. */
static uint64_t case_of(uint32_t program, uint32_t launch) {
  return (uint64_t)program * SWEEP_LAUNCHES + (launch == COMPILING ? 0 : launch);
}

static void print_case(const subject *s, const char *engine, const char *what) {
  printf("case %llu (--seed %llu), %s at %s, on %s:\n%s", (unsigned long long)case_of(s->program.number, s->w->launch),
         (unsigned long long)s->o->seed, s->program.route, s->program.address, engine, what);
  if (s->w->launch == COMPILING) printf("%s", s->program.text);
  else sweep_print(&s->program, &s->launch);
  fflush(stdout);
}

/* The first of each program's is shown. */
static void fail(subject *s, uint32_t engine, const char *what) {
  s->w->failed++;
  if (s->failed_on[engine]++ > 0) return;
  if (s->w->reported++ < MOST_REPORTS) print_case(s, sweep_engine_name(engines[engine]), what);
  else
    printf("case %llu, %s at %s, on %s\n", (unsigned long long)case_of(s->program.number, s->w->launch),
           s->program.route, s->program.address, sweep_engine_name(engines[engine]));
}

static int compile(subject *s) {
  char sentence[1024];
  s->w->launch = COMPILING;
  s->w->engine = 0;
  hg_status status = atlas_parse(NULL, s->program.text, strlen(s->program.text), "sweep", &s->compiled);
  uint32_t e = 0;
  for (; e < engine_count && status == HG_OK; e += status == HG_OK) {
    s->w->engine = asked[e];
    status = sweep_engine_compile(engines[e], s->compiled, &s->kernels[e]);
    if (status != HG_UNSUPPORTED || e == 0) continue;
    s->w->refused++;
    status = HG_OK;
  }
  if (status == HG_OK) return 1;
  snprintf(sentence, sizeof sentence, "  %s\n", hg_last_error());
  fail(s, e, sentence);
  return 0;
}

static int ran_elsewhere(uint32_t engine, const sweep_result *result) {
  const char *name = sweep_engine_name(engines[engine]);
  return strncmp(name, "native", 6) == 0 && strncmp(result->engine, "native", 6) != 0;
}

static void run_launch(subject *s) {
  sweep_result expected, got;
  char what[2048];
  s->w->cases++;
  s->w->engine = 0;
  sweep_engine_run(engines[0], s->kernels[0], &s->program, &s->launch, &expected);
  if (expected.status != HG_OK && expected.status != HG_FAULT) {
    snprintf(what, sizeof what, "  status %d: %s\n", expected.status, hg_last_error());
    fail(s, 0, what);
    return;
  }
  s->w->faulted += expected.status == HG_FAULT;
  for (uint32_t e = 1; e < engine_count; e++) {
    if (s->kernels[e] == NULL) continue;
    s->w->engine = asked[e];
    sweep_engine_run(engines[e], s->kernels[e], &s->program, &s->launch, &got);
    s->w->elsewhere += (uint64_t)ran_elsewhere(e, &got);
    if (sweep_same(&s->launch, &expected, &got, what, sizeof what)) s->w->passed++;
    else fail(s, e, what);
  }
}

/* Launch number i of those that run, evenly from all of a program's. */
static uint32_t launch_number(uint32_t program, uint32_t i) {
  return (uint32_t)((program * UINT64_C(2654435761) + i * UINT64_C(77)) % SWEEP_LAUNCHES);
}

static void run_program(const options *o, worker *w, uint32_t number, uint32_t first) {
  subject *s = calloc(1, sizeof *s);
  if (s == NULL) abort();
  s->o = o;
  s->w = w;
  make_program(o, number, &s->program);
  alarm(SECONDS_A_CASE);
  if (compile(s))
    for (uint32_t i = first; i < o->launches; i++) {
      w->turn = i;
      w->launch = o->has_case ? (uint32_t)(o->only_case % SWEEP_LAUNCHES) : launch_number(number, i);
      alarm(SECONDS_A_CASE);
      sweep_launch_make(o->seed, &s->program, s->compiled, w->launch, &s->launch);
      if (o->has_case) sweep_print(&s->program, &s->launch);
      run_launch(s);
    }
  alarm(0);
  for (uint32_t e = 0; e < engine_count; e++) hg_kernel_release(s->kernels[e]);
  atlas_program_release(s->compiled);
  free(s);
}

/* ---- kernels of simulated Metal ---------------------------------------------------------------------------------- */

/* Simulated Metal compiles many kernels together in a fraction of the time that they take one by one: between defer(1)
 * and (0) it is told of them. */
static void (*find_defer(void))(int on) {
  static void (*defer)(int on);
  void *library = defer == NULL ? hg_library_open("libobjc.A.dylib", "") : NULL;
  if (library != NULL) hg_library_find(library, "metal_sim_defer", &defer);
  return defer;
}

static void compile_together(const options *o, const worker *w, uint32_t k) {
  void (*defer)(int on) = find_defer();
  if (defer == NULL || w->at % TOGETHER != 0 || engine_count < 2) return;
  defer(1);
  for (uint64_t i = w->at; i < w->at + TOGETHER && i * o->processes + k < selected_count; i++) {
    sweep_program p;
    atlas_program *compiled = NULL;
    hg_kernel *kernel = NULL;
    make_program(o, selected[i * o->processes + k], &p);
    if (atlas_parse(NULL, p.text, strlen(p.text), "sweep", &compiled) == HG_OK)
      (void)sweep_engine_compile(engines[1], compiled, &kernel);
    hg_kernel_release(kernel);
    atlas_program_release(compiled);
  }
  defer(0);
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

static void open_engines(const options *o) {
  for (uint32_t e = 0; e < o->engine_count; e++) {
    engines[engine_count] = sweep_engine_open(o->engines[e]);
    if (engines[engine_count] != NULL) asked[engine_count++] = e;
    else if (!o->is_default || e == 0)
      printf("there is no engine '%s' here: %s\n", o->engines[e], hg_last_error()), exit(3);
  }
}

static void run_worker(const options *o, worker *w, uint32_t k, uint32_t first) {
  open_engines(o);
  for (; (uint64_t)w->at * o->processes + k < selected_count; w->at++) {
    compile_together(o, w, k);
    run_program(o, w, selected[(uint64_t)w->at * o->processes + k], first);
    w->crashes = 0;
    first = 0;
  }
  for (uint32_t e = 0; e < engine_count; e++) sweep_engine_close(engines[e]);
}

static pid_t start(const options *o, worker *w, uint32_t k, uint32_t first) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    run_worker(o, w, k, first);
    fflush(stdout);
    _exit(0);
  }
  return child;
}

/* Tells of the case that a worker died of, and starts another one behind it; -1: there is none to start. */
static pid_t go_on(const options *o, worker *w, uint32_t k, int status) {
  subject s = {.o = o, .w = w};
  char what[128];
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) { /* no engine */
    w->failed++;
    return -1;
  }
  if (WIFSIGNALED(status)) snprintf(what, sizeof what, "  it died of signal %d\n", WTERMSIG(status));
  else snprintf(what, sizeof what, "  it ended with status %d\n", WEXITSTATUS(status));
  make_program(o, selected[(uint64_t)w->at * o->processes + k], &s.program);
  (void)atlas_parse(NULL, s.program.text, strlen(s.program.text), "sweep", &s.compiled);
  if (w->launch != COMPILING) sweep_launch_make(o->seed, &s.program, s.compiled, w->launch, &s.launch);
  w->failed++;
  if (w->reported++ < MOST_REPORTS || w->crashes == 0) print_case(&s, o->engines[w->engine], what);
  atlas_program_release(s.compiled);
  uint32_t next = w->turn + 1;
  if (w->launch == COMPILING || ++w->crashes == MOST_CRASHES) w->at++, next = 0, w->crashes = 0;
  return (uint64_t)w->at * o->processes + k < selected_count ? start(o, w, k, next) : -1;
}

static void run_all(const options *o, worker *workers) {
  pid_t *children = calloc(o->processes, sizeof *children);
  if (children == NULL) abort();
  uint32_t running = o->processes;
  for (uint32_t k = 0; k < o->processes; k++) children[k] = start(o, &workers[k], k, 0);
  while (running > 0) {
    int status = 0;
    pid_t ended = wait(&status);
    uint32_t k = 0;
    if (ended < 0) break;
    while (k < o->processes && children[k] != ended) k++;
    if (k == o->processes) continue;
    running--;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    children[k] = go_on(o, &workers[k], k, status);
    running += children[k] > 0;
  }
  free(children);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static int read_option(options *o, const char *name, const char *value) {
  uint64_t number = strtoull(value, NULL, 10);
  hg_backend_id backend;
  if (strcmp(name, "--seed") == 0) o->seed = number;
  else if (strcmp(name, "--one-in") == 0) o->one_in = (uint32_t)number;
  else if (strcmp(name, "--launches") == 0) o->launches = (uint32_t)number;
  else if (strcmp(name, "--processes") == 0) o->processes = (uint32_t)number;
  else if (strcmp(name, "--route") == 0) o->route = value;
  else if (strcmp(name, "--part") == 0) return sscanf(value, "%u/%u", &o->part, &o->parts) == 2;
  else if (strcmp(name, "--case") == 0) o->only_case = number, o->has_case = 1, o->processes = 1, o->launches = 1;
  else if (strcmp(name, "--engine") == 0 && o->engine_count < MOST_ENGINES) o->engines[o->engine_count++] = value;
  else if (strcmp(name, "--backend") == 0 && hg_backend_by_name(value, &backend) == HG_OK)
    o->engines[o->engine_count++] = value, o->is_brief = 1;
  else return 0;
  return 1;
}

static int read_options(int count, char **words, options *o) {
  static const char *const all[] = {"tile:avx512", "tile:avx2",          "tile:sse2",
                                    "tile:neon",   "native:avx512",      "native:avx512+stream",
                                    "native:avx2", "native:avx2+stream", "native:neon"};
  o->engines[o->engine_count++] = "interp";
  for (int i = 1; i < count; i++) {
    if (strcmp(words[i], "--tenth") == 0) o->one_in = 10;
    else if (strcmp(words[i], "--list") == 0) o->lists = 1;
    else if (strcmp(words[i], "--brief") == 0) o->is_brief = 1;
    else if (i + 1 == count || !read_option(o, words[i], words[i + 1])) return 0;
    else i++;
  }
  o->is_default = o->engine_count == 1;
  for (size_t e = 0; e < COUNT(all) && o->is_default; e++) o->engines[o->engine_count++] = all[e];
  if (o->launches > SWEEP_LAUNCHES) o->launches = SWEEP_LAUNCHES;
  return o->processes > 0 && o->one_in > 0 && o->part >= 1 && o->part <= o->parts && o->launches > 0;
}

static void select_programs(const options *o) {
  uint32_t count = sweep_program_count(), kept = 0;
  selected = calloc(count, sizeof *selected);
  if (selected == NULL) abort();
  for (uint32_t i = 0; i < count; i++) {
    random_state r = random_of(o->seed + 2, i);
    sweep_program p;
    if (o->has_case ? i != o->only_case / SWEEP_LAUNCHES : random_below(&r, o->one_in) != 0) continue;
    if (o->route != NULL && (make_program(o, i, &p), strcmp(p.route, o->route) != 0)) continue;
    if (kept++ % o->parts + 1 == o->part) selected[selected_count++] = i;
  }
}

static void print_list(const options *o) {
  const char *route = "";
  uint32_t count = 0;
  for (uint32_t i = 0; i < selected_count; i++) {
    sweep_program p;
    make_program(o, selected[i], &p);
    if (strcmp(p.route, route) != 0 && count > 0) printf("%6u %s\n", count, route), count = 0;
    route = p.route;
    count++;
  }
  printf("%6u %s\n%6u programs\n", count, route, selected_count);
}

static int print_sums(const options *o, const worker *workers) {
  worker all = {0};
  for (uint32_t k = 0; k < o->processes; k++) {
    all.cases += workers[k].cases;
    all.faulted += workers[k].faulted;
    all.refused += workers[k].refused;
    all.elsewhere += workers[k].elsewhere;
    all.passed += workers[k].passed;
    all.failed += workers[k].failed;
  }
  printf("%u programs, %llu cases from seed %llu, %llu of them fault; %llu kernels are refused by an engine, %llu "
         "launches "
         "ran on a slower one\n",
         selected_count, (unsigned long long)all.cases, (unsigned long long)o->seed, (unsigned long long)all.faulted,
         (unsigned long long)all.refused, (unsigned long long)all.elsewhere);
  printf("%llu passed, %llu failed\n", (unsigned long long)all.passed, (unsigned long long)all.failed);
  return all.failed == 0 && all.passed > 0 ? 0 : 1;
}

int main(int count, char **words) {
  options o = {.seed = 1, .one_in = 1, .launches = SWEEP_LAUNCHES, .part = 1, .parts = 1, .processes = 1};
  if (!read_options(count, words, &o)) {
    printf("usage: test_sweep [--seed S] [--one-in N | --tenth] [--launches N] [--part I/N] [--processes P]\n"
           "                  [--route NAME] [--engine NAME[:ISA][+stream]]... [--backend cuda|metal] [--brief]\n"
           "                  [--case N] [--list]\n");
    return 2;
  }
  select_programs(&o);
  if (o.lists) return print_list(&o), 0;
  worker *workers =
      mmap(NULL, o.processes * sizeof *workers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (workers == MAP_FAILED) return 2;
  run_all(&o, workers);
  int status = print_sums(&o, workers);
  munmap(workers, o.processes * sizeof *workers);
  free(selected);
  return status;
}
