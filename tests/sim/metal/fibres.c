/* fibres.c - a kernel's threads. Those of a threadgroup are fibres of one thread, each with a stack of its own, which
 * change at barriers: in which order they run between two is forward, reverse or random. All that are left have to
 * reach the same barrier. An access out of bounds is a signal, and the end of the command buffer. */
#define _GNU_SOURCE
#include "sim.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK_BYTES = 64 << 10, ALTERNATE_BYTES = 64 << 10, PAGE_BYTES = 4096, POISON = 0xc7 };
enum { READY, WAITS, EXCHANGES, DONE };
enum { FORWARD, REVERSE, RANDOM, ALL_IN_TURN };

typedef struct fibre {
  void *stack_pointer;
  const void *site; /* the barrier that it waits at, or the exchange of its simdgroup */
  int state;
  uint32_t given[2], turn; /* what it gives in exchanges, in turns: some threads give to the next before others have got
                              what this one gives */
  uint32_t there;          /* which threads of the simdgroup are part of its exchange */
  sim_place place;
} fibre;

typedef struct machine {
  fibre fibres[SIM_MOST_THREADS];
  uint32_t order[SIM_MOST_THREADS];
  uint8_t *stacks, *shared; /* shared: threadgroup memory, which ends where a page does that is not there */
  size_t shared_bytes;
  void *stack_pointer;      /* of the thread itself */
  uint32_t current, launches;
  const sim_kernel *kernel;
  void *const *buffers;
  volatile int is_running;
  sigjmp_buf fault;
  void *alternate;
} machine;

static __thread machine *m;
static __thread uint32_t random_state = 1;

static uint32_t chance(void) {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 8;
}

/* ---- changing stacks --------------------------------------------------------------------------------------------- */

void sim_switch(void **from, void *to);
__asm__(".text\n.globl sim_switch\nsim_switch:\n  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n"
        "  push %r15\n  mov %rsp, (%rdi)\n  mov %rsi, %rsp\n  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n"
        "  pop %rbx\n  pop %rbp\n  ret\n");

static void barrier(const void *site) {
  fibre *f = &m->fibres[m->current];
  f->state = WAITS;
  f->site = site;
  sim_switch(&f->stack_pointer, m->stack_pointer);
}

/* What thread `lane` of the simdgroup gives, once all of it are there: noise if it is none of them. */
static uint32_t exchange(const void *site, uint32_t value, uint32_t lane) {
  fibre *f = &m->fibres[m->current];
  uint32_t turn = f->turn, from = m->current / SIM_WIDTH * SIM_WIDTH + lane;
  f->given[turn] = value;
  f->state = EXCHANGES;
  f->site = site;
  sim_switch(&f->stack_pointer, m->stack_pointer);
  f = &m->fibres[m->current];
  f->turn = 1 - turn;
  return lane < SIM_WIDTH && f->there >> lane & 1 ? m->fibres[from].given[turn] : chance();
}

/* A bit of each thread of the simdgroup that is there and says yes. */
static uint32_t ballot(const void *site, uint32_t is_yes) {
  uint32_t turn = m->fibres[m->current].turn, first = m->current / SIM_WIDTH * SIM_WIDTH, votes = 0;
  exchange(site, is_yes, 0);
  uint32_t there = m->fibres[m->current].there;
  for (uint32_t i = 0; i < SIM_WIDTH; i++)
    if (there >> i & 1) votes |= m->fibres[first + i].given[turn] << i;
  return votes;
}

static uint32_t lane(void) { return m->current % SIM_WIDTH; }

static void fibre_main(void) {
  fibre *f = &m->fibres[m->current];
  m->kernel->run(m->buffers, &f->place);
  f->state = DONE;
  sim_switch(&f->stack_pointer, m->stack_pointer);
  __builtin_trap();
}

/* Below the return address to fibre_main lie six registers. */
static void prepare(uint32_t i) {
  void **top = (void **)(void *)(m->stacks + (size_t)(i + 1) * STACK_BYTES);
  top[-1] = NULL;
  top[-2] = (void *)fibre_main;
  m->fibres[i].stack_pointer = top - 8;
  m->fibres[i].state = READY;
  m->fibres[i].turn = 0;
}

/* ---- threadgroup memory ------------------------------------------------------------------------------------------ */

uint32_t sim_threadgroup_bytes(void) {
  const char *asked = getenv("SIMMETAL_THREADGROUP_BYTES");
  return asked != NULL ? (uint32_t)strtoul(asked, NULL, 10) / PAGE_BYTES * PAGE_BYTES : SIM_THREADGROUP_BYTES;
}

/* All threads of a group ask for the same: the first one's address. */
static void *threadgroup_memory(unsigned long bytes) {
  if (bytes > m->shared_bytes) sim_die("%lu bytes of threadgroup memory", bytes);
  return m->shared + m->shared_bytes - (bytes + 15) / 16 * 16;
}

struct functions {
  void (*barrier)(const void *site);
  void *(*threadgroup_memory)(unsigned long bytes);
  uint32_t (*chance)(void);
  uint32_t (*exchange)(const void *site, uint32_t value, uint32_t lane);
  uint32_t (*lane)(void);
  uint32_t (*ballot)(const void *site, uint32_t is_yes);
};
extern const struct functions sim_functions;
const struct functions sim_functions = {barrier, threadgroup_memory, chance, exchange, lane, ballot};

/* ---- threadgroups ------------------------------------------------------------------------------------------------ */

static int order_now(void) {
  const char *asked = getenv("SIMMETAL_ORDER");
  int mode = asked == NULL                    ? ALL_IN_TURN
             : strcmp(asked, "forward") == 0 ? FORWARD
             : strcmp(asked, "reverse") == 0 ? REVERSE
                                             : RANDOM;
  return mode == ALL_IN_TURN ? (int)(m->launches % 3) : mode;
}

static void shuffle(uint32_t count, int order) {
  for (uint32_t i = 0; i < count; i++) m->order[i] = order == REVERSE ? count - 1 - i : i;
  for (uint32_t i = count; order == RANDOM && i > 1; i--) {
    uint32_t j = chance() % i, swapped = m->order[i - 1];
    m->order[i - 1] = m->order[j];
    m->order[j] = swapped;
  }
}

/* 1: those of a simdgroup that are left wait at one exchange, which is done; 0: at a barrier; -1: at several places. */
static int meet_in_simdgroup(uint32_t first, uint32_t end) {
  const fibre *one = NULL;
  for (uint32_t i = first; i < end; i++) {
    const fibre *f = &m->fibres[i];
    if (f->state == DONE) continue;
    if (one == NULL) one = f;
    if (f->state != one->state || (f->state == EXCHANGES && f->site != one->site)) return -1;
  }
  if (one == NULL || one->state != EXCHANGES) return 0;
  uint32_t there = 0;
  for (uint32_t i = first; i < end; i++) there |= (uint32_t)(m->fibres[i].state == EXCHANGES) << (i - first);
  for (uint32_t i = first; i < end; i++) {
    m->fibres[i].there = there;
    if (m->fibres[i].state == EXCHANGES) m->fibres[i].state = READY;
  }
  return 1;
}

/* 1: some simdgroups have exchanged values and go on, while others wait at a barrier. */
static int meet_in_simdgroups(uint32_t count) {
  int some = 0;
  for (uint32_t i = 0; i < count; i += SIM_WIDTH) {
    int met = meet_in_simdgroup(i, i + SIM_WIDTH < count ? i + SIM_WIDTH : count);
    if (met < 0) return -1;
    some |= met;
  }
  return some;
}

static const char *meet(uint32_t count) {
  const void *site = NULL;
  uint32_t done = 0;
  for (uint32_t i = 0; i < count; i++) {
    fibre *f = &m->fibres[i];
    if (f->state == DONE) {
      done++;
      continue;
    }
    if (site != NULL && site != f->site) return "threads of a threadgroup wait at different barriers";
    site = f->site;
    f->state = READY;
  }
  return done > 0 && done < count && !m->kernel->may_end ? "threads returned before a barrier that others wait at"
                                                         : NULL;
}

static const char *run_fibres(uint32_t count, int order) {
  for (uint32_t i = 0; i < count; i++) prepare(i);
  for (uint32_t done = 0; done < count;) {
    shuffle(count, order);
    done = 0;
    for (uint32_t k = 0; k < count; k++) {
      m->current = m->order[k];
      if (m->fibres[m->current].state == READY) sim_switch(&m->stack_pointer, m->fibres[m->current].stack_pointer);
      done += m->fibres[m->current].state == DONE;
    }
    int met = done < count ? meet_in_simdgroups(count) : 1;
    if (met < 0) return "threads of a simdgroup wait at different places";
    const char *wrong = met == 0 ? meet(count) : NULL;
    if (wrong != NULL) return wrong;
  }
  return NULL;
}

static const char *run_plain(uint32_t count, int order) {
  shuffle(count, order);
  for (uint32_t k = 0; k < count; k++) {
    m->current = m->order[k];
    m->kernel->run(m->buffers, &m->fibres[m->current].place);
  }
  return NULL;
}

static const char *run_groups(uint64_t threads, uint32_t block) {
  uint64_t groups = (threads + block - 1) / block;
  const char *wrong = NULL;
  for (uint64_t k = 0; k < groups && wrong == NULL; k++) {
    int order = order_now();
    uint64_t group = order == REVERSE ? groups - 1 - k : k, first = group * block;
    uint32_t count = threads - first < block ? (uint32_t)(threads - first) : block;
    memset(m->shared, POISON, m->shared_bytes);
    for (uint32_t i = 0; i < count; i++)
      m->fibres[i].place = (sim_place){i, (uint32_t)group, (uint32_t)(first + i), count};
    wrong = m->kernel->has_barriers ? run_fibres(count, order) : run_plain(count, order);
  }
  return wrong;
}

const char *sim_run(const sim_kernel *kernel, void *const *buffers, uint64_t threads, uint32_t block) {
  if (kernel->run == NULL) return NULL;
  m->kernel = kernel;
  m->buffers = buffers;
  m->launches++;
  const char *wrong = "an access out of bounds, or to a buffer that was not named by useResource";
  if (sigsetjmp(m->fault, 1) == 0) {
    m->is_running = 1;
    wrong = run_groups(threads, block);
  }
  m->is_running = 0;
  return wrong;
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static struct sigaction before[2];

static void on_signal(int number, siginfo_t *info, void *context) {
  (void)context;
  if (m != NULL && m->is_running) siglongjmp(m->fault, 1);
  const struct sigaction *old = &before[number == SIGBUS];
  if (old->sa_flags & SA_SIGINFO) old->sa_sigaction(number, info, context);
  else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) old->sa_handler(number);
  else signal(number, SIG_DFL);
}

void sim_fibres_open(void) {
  static int is_installed;
  m = calloc(1, sizeof *m);
  if (m == NULL) sim_die("no memory for fibres");
  m->shared_bytes = sim_threadgroup_bytes();
  m->stacks = mmap(NULL, (size_t)SIM_MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  m->shared = mmap(NULL, m->shared_bytes + PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  m->alternate = malloc(ALTERNATE_BYTES);
  if (m->stacks == MAP_FAILED || m->shared == MAP_FAILED || m->alternate == NULL) sim_die("no memory for fibres");
  mprotect(m->shared, m->shared_bytes, PROT_READ | PROT_WRITE);
  sigaltstack(&(stack_t){.ss_sp = m->alternate, .ss_size = ALTERNATE_BYTES}, NULL);
  if (__atomic_exchange_n(&is_installed, 1, __ATOMIC_SEQ_CST)) return;
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  sigaction(SIGSEGV, &action, &before[0]);
  sigaction(SIGBUS, &action, &before[1]);
}

void sim_fibres_close(void) {
  sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
  munmap(m->stacks, (size_t)SIM_MOST_THREADS * STACK_BYTES);
  munmap(m->shared, m->shared_bytes + PAGE_BYTES);
  free(m->alternate);
  free(m);
  m = NULL;
}
