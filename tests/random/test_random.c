/* test_random.c - random programs: the reference machine against the SSA form, raw and canonical, and what must keep or
 * change the canonical bytes.
 *
 *   test_random [--count N] [--seed S] [--size K] [--processes P] [--compiler-only | --engines-only | --backend B]
 *               [--shapes] [--verbose]
 *
 * Program number i of a run is made from seed S + i alone: `--seed <its seed> --count 1` repeats it. Sizes are mixed,
 * 10 to 150 instructions, unless --size says otherwise. A failure is shrunk and printed as text. A worker that crashes
 * or hangs is a failure of the program it was at (POSIX systems). --engines-only leaves out what concerns the
 * compiler's identities: compiled once, each engine against the interpreted SSA. --backend cpu, cuda or metal does the
 * same with hg_launch on that backend in place of the engines. --shapes runs nothing: it says how many of the programs
 * hold each shape of shapes.def, which one in fifty must. */
#if !defined(_WIN32)
#  define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS, setitimer */
#endif

#include "check_program.h"
#include "generate.h"
#include "on_backend.h"
#include "shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(_WIN32)
#  define HAVE_PROCESSES 1
#  include <sys/mman.h>
#  include <sys/time.h>
#  include <sys/wait.h>
#  include <unistd.h>
#else
#  define HAVE_PROCESSES 0
#endif

typedef struct options {
  uint64_t seed, count;
  uint32_t size, processes;
  int verbose, engines_only, shapes, on_metal;
} options;

/* What workers tell: shared memory where there are processes. */
typedef struct worker {
  uint64_t next;   /* the program it is at */
  uint64_t end;
  uint64_t passed, failed, rejected, instructions, faulted, refused, unsupported;
} worker;

enum { SECONDS_A_PROGRAM = 20, MOST_FAILURES = 10, TOGETHER = 64 };

static uint64_t seed_of(const options *o, uint64_t i) { return o->seed + i; }

static void make(const options *o, uint64_t i, draft *d, test_launch *l) {
  generate_of_seed(seed_of(o, i), o->size, d, l);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static const char *const shape_names[] = {
#define SHAPE(id, what) #id,
#include "shapes.def"
#undef SHAPE
};

static const char *const shape_meanings[] = {
#define SHAPE(id, what) what,
#include "shapes.def"
#undef SHAPE
};

/* Of the programs that verify. */
static int print_shapes(const options *o) {
  uint64_t found[SHAPE_COUNT] = {0}, verified = 0;
  int rare = 0;
  for (uint64_t i = 0; i < o->count; i++) {
    draft d;
    test_launch l;
    make(o, i, &d, &l);
    atlas_program *program = draft_build(&d);
    verified += program != NULL;
    for (int k = 0; k < SHAPE_COUNT; k++) found[k] += program != NULL && d.shapes >> k & 1;
    atlas_program_release(program);
    draft_release(&d);
  }
  for (int k = 0; k < SHAPE_COUNT; k++) {
    double share = verified > 0 ? 100.0 * (double)found[k] / (double)verified : 0;
    printf("%5.1f%%  %-22s %s\n", share, shape_names[k], shape_meanings[k]);
    rare += share < 2;
  }
  printf("%llu of %llu programs verify\n%d passed, %d failed\n", (unsigned long long)verified,
         (unsigned long long)o->count, SHAPE_COUNT - rare, rare);
  return rare > 0;
}

/* ---- shrinking --------------------------------------------------------------------------------------------------- */

/* Ends this process when it has computed for so long; or waited 30 times as long, as one that hangs does. A program
 * whose lanes all fault in a loop without end takes seconds, and several times as long beside other work. */
static void limit_time(unsigned seconds) {
#if HAVE_PROCESSES
  setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = (time_t)seconds}, NULL);
  alarm(30 * seconds);
#else
  (void)seconds;
#endif
}

/* The check, of which only a failure of the same engine counts: without its barriers a program may fail on any. */
static failure_kind check_here(const draft *d, const test_launch *l, uint64_t seed, const failure *like) {
  failure f = {0};
  failure_kind kind = check_like(d, l, seed, like, &f);
  size_t engine = strcspn(like->text, ":");
  if (kind == FAILURE_VECTOR && strncmp(f.text, like->text, engine) != 0) kind = FAILURE_NONE;
  free(f.other);
  return kind;
}

/* The same in a process of its own, so that a crash is a result too. */
static failure_kind check_apart(const draft *d, const test_launch *l, uint64_t seed, const failure *like) {
#if HAVE_PROCESSES
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    limit_time(2);
    _exit((int)check_here(d, l, seed, like));
  }
  int status = 0;
  if (child > 0) {
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? (failure_kind)WEXITSTATUS(status) : FAILURE_CRASH;
  }
#endif
  return check_here(d, l, seed, like);
}

static int crashes_are_results = 1;

static int still_fails(const draft *d, test_launch *l, uint64_t seed, const failure *like) {
  if (like->kind == FAILURE_CRASH && !crashes_are_results) return 0; /* it would end, or hang, this process */
  test_launch_prepare(l, d);
  return (crashes_are_results ? check_apart(d, l, seed, like) : check_here(d, l, seed, like)) == like->kind;
}

static int delete_insns(draft *d, test_launch *l, uint64_t seed, const failure *like) {
  int any = 0;
  for (uint32_t step = d->insn_count / 2 + 1; step > 0; step /= 2)
    for (uint32_t at = d->insn_count; at > 0;) {
      at = at > step ? at - step : 0;
      uint32_t count = at + step > d->insn_count ? d->insn_count - at : step;
      draft candidate;
      draft_copy(&candidate, d);
      draft_delete(&candidate, at, count);
      int fails = still_fails(&candidate, l, seed, like);
      if (fails) {
        draft_release(d);
        *d = candidate;
        any = 1;
      } else draft_release(&candidate);
      if (count == 0) break;
    }
  return any;
}

/* Sources become constants, guards go. */
static int simplify_operands(draft *d, test_launch *l, uint64_t seed, const failure *like) {
  int any = 0;
  for (uint32_t i = 0; i < d->insn_count; i++)
    for (unsigned k = 1; k < d->insns[i].operand_count; k++) {
      atlas_operand kept = d->insns[i].operand[k];
      if (kept.kind != ATLAS_OPERAND_REG && kept.kind != ATLAS_OPERAND_SCALAR) continue;
      d->insns[i].operand[k] = atlas_bits(1);
      if (still_fails(d, l, seed, like)) any = 1;
      else d->insns[i].operand[k] = kept;
    }
  return any;
}

static int shrink_launch(draft *d, test_launch *l, uint64_t seed, const failure *like) {
  test_launch kept = *l;
  draft kept_draft = *d;
  memset(d->block, 0, sizeof d->block);
  for (uint64_t lanes = 1; lanes < kept.lane_count; lanes = lanes * 2 + 1) {
    l->lanes = lanes;
    if (still_fails(d, l, seed, like)) return 1;
  }
  uint8_t *initial = l->initial;
  *l = kept;
  l->initial = initial;
  memcpy(d->block, kept_draft.block, sizeof d->block);
  test_launch_prepare(l, d);
  return 0;
}

/* Parameters that nothing uses. */
static int delete_symbols(draft *d, test_launch *l, uint64_t seed, const failure *like) {
  for (uint32_t s = d->symbol_count; s-- > 0;) {
    draft candidate;
    test_launch moved = *l;
    draft_copy(&candidate, d);
    uint32_t after = d->symbol_count - s - 1;
    int used = 0;
    for (uint32_t i = 0; i < d->insn_count; i++)
      for (unsigned k = 0; k < d->insns[i].operand_count; k++) {
        atlas_operand *o = &candidate.insns[i].operand[k];
        int names = o->kind == ATLAS_OPERAND_SCALAR || o->kind == ATLAS_OPERAND_POOL ||
                    o->kind == ATLAS_OPERAND_BUFFER ||
                    (o->kind == ATLAS_OPERAND_MEM && o->mode != ATLAS_ADDRESS_PHI);
        used |= names && o->symbol == s;
        if (names && o->symbol > s) o->symbol--;
      }
    for (uint32_t k = 0; k < d->symbol_count; k++) {
      used |= l->same_as[k] == s + 1;
      if (l->same_as[k] > s + 1) moved.same_as[k]--;
    }
    memmove(candidate.symbols + s, candidate.symbols + s + 1, after * sizeof *candidate.symbols);
    memmove(moved.bytes + s, moved.bytes + s + 1, after * sizeof *moved.bytes);
    memmove(moved.entry_bytes + s, moved.entry_bytes + s + 1, after * sizeof *moved.entry_bytes);
    memmove(moved.same_as + s, moved.same_as + s + 1, after * sizeof *moved.same_as);
    candidate.symbol_count--;
    moved.initial = NULL;
    if (!used && still_fails(&candidate, &moved, seed, like)) {
      test_launch_release(l);
      draft_release(d);
      *l = moved;
      *d = candidate;
      continue;
    }
    test_launch_release(&moved);
    draft_release(&candidate);
  }
  test_launch_prepare(l, d);
  return 0;
}

static void print_launch(const test_launch *l, const draft *d) {
  if (l->lanes != 0) printf("launch: %llu lanes", (unsigned long long)l->lanes);
  else
    printf("launch: grid %ux%ux%u of %ux%ux%u", l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
           l->block[2]);
  printf(", step limit %llu, contents from %llu\n", (unsigned long long)l->step_limit, (unsigned long long)l->seed);
  for (uint32_t i = 0; i < d->symbol_count; i++) {
    if (l->bytes[i] != 0)
      printf("  %s: %llu bytes%s%s\n", d->symbols[i].name, (unsigned long long)l->bytes[i],
             l->same_as[i] ? ", the same as " : "", l->same_as[i] ? d->symbols[l->same_as[i] - 1].name : "");
    if (d->symbols[i].kind == ATLAS_SYMBOL_SCALAR)
      printf("  %s = 0x%llx\n", d->symbols[i].name, (unsigned long long)l->scalar[i]);
  }
}

static void report(const options *o, uint64_t i, draft *d, test_launch *l, failure *f) {
  printf("seed %llu: %s: %s\n", (unsigned long long)seed_of(o, i), failure_name(f), f->text);
  uint32_t before = d->insn_count;
  int smaller = f->kind != FAILURE_ERROR;
  for (int round = 0; round < 4 && smaller; round++) {
    smaller = delete_insns(d, l, seed_of(o, i), f);
    smaller |= simplify_operands(d, l, seed_of(o, i), f);
    if (round == 0) smaller |= shrink_launch(d, l, seed_of(o, i), f);
  }
  delete_symbols(d, l, seed_of(o, i), f);
  failure now = {0};
  if (f->kind != FAILURE_CRASH) check_like(d, l, seed_of(o, i), f, &now);
  printf("shrunk from %u to %u instructions: %s\n", before, d->insn_count, now.text);
  print_launch(l, d);
  atlas_program *program = draft_build(d);
  char *text = NULL;
  size_t length = 0;
  if (program != NULL && atlas_print(NULL, program, &text, &length) == HG_OK) printf("%s", text);
  if (now.other != NULL) printf("---- the other one ----\n%s", now.other);
  printf("--------------------------------------------------------------------------------\n");
  fflush(stdout);
  free(now.other);
  atlas_memory_release(NULL, text);
  atlas_program_release(program);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static failure_kind check_one(const options *o, const draft *d, const test_launch *l, uint64_t seed, failure *f) {
  const failure of_engines = {.kind = FAILURE_VECTOR};
  return o->engines_only ? check_like(d, l, seed, &of_engines, f) : check_program(d, l, seed, f);
}

static void run_one(const options *o, uint64_t i, worker *w) {
  draft d;
  test_launch l;
  failure f = {0};
  make(o, i, &d, &l);
  test_launch_prepare(&l, &d);
  limit_time(SECONDS_A_PROGRAM);
  failure_kind kind = check_one(o, &d, &l, seed_of(o, i), &f);
  limit_time(0);
  if (kind == FAILURE_NONE) w->passed++;
  else if (kind == FAILURE_NOT_VERIFIED) w->rejected++;
  else if (w->failed++ < MOST_FAILURES) report(o, i, &d, &l, &f);
  if (kind == FAILURE_NOT_VERIFIED && o->verbose)
    printf("seed %llu: %s\n", (unsigned long long)seed_of(o, i), hg_last_error());
  w->instructions += d.insn_count;
  w->faulted += (uint64_t)f.faulted;
  w->refused += (uint64_t)f.refused;
  w->unsupported += (uint64_t)f.unsupported;
  free(f.other);
  test_launch_release(&l);
  draft_release(&d);
}

/* Those of the next programs together, where that can be done. */
static void compile_kernels(const options *o, const worker *w) {
  uint64_t end = w->end - w->next < TOGETHER ? w->end : w->next + TOGETHER;
  if (!defer_kernels(1)) return;
  limit_time(TOGETHER * SECONDS_A_PROGRAM);
  for (uint64_t i = w->next; i < end; i++) {
    draft d;
    test_launch l;
    make(o, i, &d, &l);
    test_launch_prepare(&l, &d);
    check_kernels(&d, &l);
    test_launch_release(&l);
    draft_release(&d);
  }
  (void)defer_kernels(0);
  limit_time(0);
}

static void run_range(const options *o, worker *w) {
  for (; w->next < w->end; w->next++) {
    if (o->on_metal && w->next % TOGETHER == 0) compile_kernels(o, w);
    run_one(o, w->next, w);
  }
}

#if HAVE_PROCESSES
/* The compiler may have died on a relative of the program: `d` becomes that one. */
static void find_culprit(draft *d, const test_launch *l, uint64_t seed) {
  enum { TEXT_BYTES = 1 << 20 };
  char *text = mmap(NULL, TEXT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (text == MAP_FAILED) return;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    failure f = {0};
    check_trace(text, TEXT_BYTES);
    limit_time(20);
    check_program(d, l, seed, &f);
    _exit(0);
  }
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  atlas_program *program = NULL;
  if (child > 0 && !WIFEXITED(status) && atlas_parse(NULL, text, strlen(text), NULL, &program) == HG_OK) {
    draft_release(d);
    draft_from_program(d, program);
  }
  atlas_program_release(program);
  munmap(text, TEXT_BYTES);
}

static void report_crash(const options *o, worker *w) {
  draft d;
  test_launch l;
  failure f = {.kind = FAILURE_CRASH};
  snprintf(f.text, sizeof f.text, "the worker died");
  make(o, w->next, &d, &l);
  test_launch_prepare(&l, &d);
  find_culprit(&d, &l, seed_of(o, w->next));
  if (w->failed++ < MOST_FAILURES) report(o, w->next, &d, &l, &f);
  test_launch_release(&l);
  draft_release(&d);
}

static pid_t start(const options *o, worker *w) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    run_range(o, w);
    fflush(stdout);
    _exit(0);
  }
  return child;
}

static void run_all(const options *o, worker *workers) {
  pid_t *children = calloc(o->processes, sizeof *children);
  if (children == NULL) return;
  for (uint32_t k = 0; k < o->processes; k++) children[k] = start(o, &workers[k]);
  for (uint32_t running = o->processes; running > 0;) {
    int status = 0;
    pid_t ended = wait(&status);
    if (ended < 0) break;
    uint32_t k = 0;
    while (k < o->processes && children[k] != ended) k++;
    if (k == o->processes) continue;
    running--;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    report_crash(o, &workers[k]);
    workers[k].next++;
    children[k] = start(o, &workers[k]); /* goes on behind it */
    running++;
  }
  free(children);
}

static worker *make_workers(uint32_t count) {
  void *shared = mmap(NULL, count * sizeof(worker), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return shared == MAP_FAILED ? NULL : shared;
}
#else
static void run_all(const options *o, worker *workers) {
  for (uint32_t k = 0; k < o->processes; k++) run_range(o, &workers[k]);
}

static worker *make_workers(uint32_t count) { return calloc(count, sizeof(worker)); }
#endif

static int read_options(int count, char **words, options *o) {
  for (int i = 1; i < count; i++) {
    if (strcmp(words[i], "--verbose") == 0) {
      o->verbose = 1;
      continue;
    }
    if (strcmp(words[i], "--compiler-only") == 0) {
      check_compiler_only();
      continue;
    }
    if (strcmp(words[i], "--shapes") == 0) {
      o->shapes = 1;
      continue;
    }
    if (strcmp(words[i], "--engines-only") == 0) {
      o->engines_only = 1;
      continue;
    }
    if (i + 1 >= count) return 0;
    if (strcmp(words[i], "--backend") == 0) {
      hg_backend_id backend = HG_BACKEND_AUTO;
      if (hg_backend_by_name(words[++i], &backend) != HG_OK || backend == HG_BACKEND_AUTO) return 0;
      int on_gpu = backend != HG_BACKEND_CPU;
      check_on_backend(backend);
      crashes_are_results = !on_gpu; /* the driver does not live on in a forked process */
      o->engines_only = 1;
      o->on_metal = backend == HG_BACKEND_METAL;
      continue;
    }
    uint64_t value = strtoull(words[i + 1], NULL, 10);
    if (strcmp(words[i], "--count") == 0) o->count = value;
    else if (strcmp(words[i], "--seed") == 0) o->seed = value;
    else if (strcmp(words[i], "--size") == 0) o->size = (uint32_t)value;
    else if (strcmp(words[i], "--processes") == 0) o->processes = (uint32_t)value;
    else return 0;
    i++;
  }
  return o->processes > 0;
}

int main(int count, char **words) {
  options o = {.seed = 1, .count = 1000, .processes = 1};
  if (!read_options(count, words, &o)) {
    printf("usage: test_random [--count N] [--seed S] [--size K] [--processes P] [--compiler-only | --engines-only |"
           " --backend cpu|cuda|metal] [--shapes] [--verbose]\n");
    return 2;
  }
  if (o.shapes) return print_shapes(&o);
  worker *workers = make_workers(o.processes), all = {0};
  if (workers == NULL) return 2;
  for (uint32_t k = 0; k < o.processes; k++) {
    workers[k].next = o.count * k / o.processes;
    workers[k].end = o.count * (k + 1) / o.processes;
  }
  uint64_t start_ns = check_time_ns();
  run_all(&o, workers);
  double seconds = (double)(check_time_ns() - start_ns) * 1e-9;
  for (uint32_t k = 0; k < o.processes; k++) {
    all.passed += workers[k].passed;
    all.failed += workers[k].failed;
    all.rejected += workers[k].rejected;
    all.instructions += workers[k].instructions;
    all.faulted += workers[k].faulted;
    all.refused += workers[k].refused;
    all.unsupported += workers[k].unsupported;
  }
  printf("%llu programs from seed %llu in %.1f s (%.0f a second), %.1f instructions each; %llu faulted, %llu did not "
         "verify, %llu take too many registers as canonical text, %llu are refused by the backend\n",
         (unsigned long long)o.count, (unsigned long long)o.seed, seconds, (double)o.count / seconds,
         (double)all.instructions / (double)o.count, (unsigned long long)all.faulted, (unsigned long long)all.rejected,
         (unsigned long long)all.refused, (unsigned long long)all.unsupported);
  int too_many = all.rejected * 10 > o.count && o.count >= 100; /* a generator that makes nothing tests nothing */
  if (too_many) printf("too many programs did not verify\n");
  printf("%llu passed, %llu failed\n", (unsigned long long)all.passed, (unsigned long long)all.failed);
  return all.failed == 0 && !too_many ? 0 : 1;
}
