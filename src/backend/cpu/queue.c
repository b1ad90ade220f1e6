/* queue.c - a work queue with one producer, and one consumer: its thread.
 *
 * A linked list suffices: the producer owns the nodes and frees those that the consumer has passed; the consumer stays
 * at the last node it has done, because new work appears in that node's `next`. Work is numbered from 1 on; all work up
 * to `done` is done. */
#include "backend/cpu/queue.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "backend/cpu/cpu_kernel.h"
#include "base/error.h"
#include "base/fp.h"
#include "base/os.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { CACHE_LINE_BYTES = 64 };

typedef struct node {
  _Atomic(struct node *) next;
  uint64_t number;
  enum { WORK, GRAPH, AWAIT, RECORD, FREE } what;
  cpu_queue *other;         /* AWAIT: the queue to wait for, up to that number */
  uint64_t other_number;
  cpu_event *event;         /* RECORD */
  uint32_t generation;
  uint8_t *address;         /* FREE */
  const cpu_graph *graph;   /* GRAPH */
  uint32_t cancel_number;   /* WORK, GRAPH: see cpu_queues */
  hg_work work;             /* WORK; for a graph only its number */
} node;

struct cpu_queue {
  /* Of the producer. */
  cpu_queue *next;          /* next queue of the device */
  cpu_queues *queues;
  uint8_t open, started;    /* started: it has a thread */
  _Atomic uint64_t process; /* process of the thread */
  node *oldest, *last;
  node first;               /* number 0, which is done from the start */
  _Atomic uint64_t given;   /* waiters read it without the lock */
  hg_thread thread;

  /* Of the consumer. Producer and consumer do not write to the same cache line. */
  uint8_t apart[CACHE_LINE_BYTES];
  node *at;
  atomic_uint wakeups;      /* changes if there is work, or the thread must end */
  atomic_uint sleeps, quits;
  _Atomic uint64_t done;
  atomic_uint progress;     /* changes with `done`; waiters sleep on it */
  atomic_uint sleepers;

  atomic_uint has_fault, has_failure;
  hg_fault fault;
  uint64_t fault_number, fault_index;
  hg_status failure;
  char sentence[256];
};

struct cpu_event {
  hg_allocator allocator;
  uint32_t holders; /* references: the caller's and those of nodes */
  int timed;
  cpu_queue *queue; /* the queue that recorded it last */
  uint64_t number;
  atomic_uint generation; /* how often it was recorded */
  _Atomic uint64_t time_ns;
};

struct cpu_graph {
  hg_allocator allocator;
  const hg_work *work;
  size_t count;
};

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void note_fault(cpu_queue *q, const hg_fault *fault, uint64_t number, uint64_t index) {
  if (fault->kind == HG_FAULT_NONE || atomic_load_explicit(&q->has_fault, memory_order_acquire)) return;
  q->fault = *fault;
  q->fault_number = number;
  q->fault_index = index;
  atomic_store_explicit(&q->has_fault, 1, memory_order_release);
}

static void note_failure(cpu_queue *q, hg_status status) {
  if (status == HG_OK || atomic_load_explicit(&q->has_failure, memory_order_acquire)) return;
  q->failure = status;
  snprintf(q->sentence, sizeof q->sentence, "%s", hg_last_error());
  atomic_store_explicit(&q->has_failure, 1, memory_order_release);
}

/* `number`: of the launch in its queue, or of its graph. */
static hg_status run_work(cpu_queue *q, const hg_work *work, uint64_t number, uint64_t index, uint32_t cancel_number) {
  atlas_launch launch;
  uint64_t pattern = 0;
  if (atomic_load_explicit(q->queues->cancels, memory_order_relaxed) != cancel_number) return hg_cpu_fail_cancelled();
  switch (work->kind) {
  case HG_WORK_LAUNCH:
    memcpy(&launch, work->launch, offsetof(atlas_launch, resonance)); /* the engine sets the results */
    launch.cancel_number = cancel_number;
    HG_TRY(hg_cpu_kernel_launch(work->kernel, &launch));
    note_fault(q, &launch.fault, number, index);
    return HG_OK;
  case HG_WORK_FILL:
    for (size_t i = 0; i < sizeof pattern; i++)
      ((uint8_t *)&pattern)[i] = work->pattern[i % work->pattern_size];
    hg_cpu_fill(q->queues->memory, work->to, work->byte_count, pattern);
    return HG_OK;
  default: hg_cpu_copy(q->queues->memory, work->to, work->from, work->byte_count); return HG_OK;
  }
}

static hg_status run_graph(cpu_queue *q, const cpu_graph *graph, uint64_t number, uint32_t cancel_number) {
  hg_status status = HG_OK;
  for (size_t i = 0; i < graph->count; i++) {
    hg_status one = run_work(q, &graph->work[i], number, graph->work[i].number, cancel_number);
    if (status == HG_OK) status = one;
  }
  return status;
}

static void release_shared(cpu_queues *queues, uint8_t *address) {
  hg_mutex_lock(&queues->mutex);
  hg_cpu_let_go(queues->memory, address);
  hg_mutex_unlock(&queues->mutex);
}

static int await_number(cpu_queue *q, uint64_t number);

static void run_node(cpu_queue *q, const node *n) {
  switch (n->what) {
  case WORK: note_failure(q, run_work(q, &n->work, n->work.number, 0, n->cancel_number)); return;
  case GRAPH: note_failure(q, run_graph(q, n->graph, n->work.number, n->cancel_number)); return;
  case AWAIT: (void)await_number(n->other, n->other_number); return;
  case RECORD:
    if (atomic_load(&n->event->generation) == n->generation) atomic_store(&n->event->time_ns, hg_time_ns());
    return;
  case FREE: release_shared(q->queues, n->address); return;
  }
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void note_done(cpu_queue *q, uint64_t number) {
  atomic_store(&q->done, number);
  atomic_fetch_add(&q->progress, 1);
  if (atomic_load(&q->sleepers) > 0) hg_wake(&q->progress);
}

static void thread_main(void *user) {
  cpu_queue *q = user;
  hg_fp_enter(); /* a new thread inherits its creator's floating-point environment */
  for (;;) {
    uint32_t wakeups = atomic_load(&q->wakeups);
    node *next = atomic_load_explicit(&q->at->next, memory_order_acquire);
    if (next != NULL) {
      run_node(q, next);
      q->at = next;
      note_done(q, next->number);
    } else if (atomic_load(&q->quits)) {
      return;
    } else {
      atomic_store(&q->sleeps, 1);
      if (atomic_load(&q->wakeups) == wakeups) hg_wait(&q->wakeups, wakeups);
      atomic_store(&q->sleeps, 0);
    }
  }
}

static void wake(cpu_queue *q) {
  atomic_fetch_add(&q->wakeups, 1);
  if (atomic_load(&q->sleeps)) hg_wake(&q->wakeups);
}

static int is_done(const cpu_queue *q, uint64_t number) {
  return atomic_load_explicit(&q->done, memory_order_acquire) >= number;
}

static int is_idle(const cpu_queue *q) { return is_done(q, q->given); }

static int is_lost(const cpu_queue *q, uint64_t number) {
  return !is_done(q, number) && q->process != hg_process_id();
}

/* Gives CPU_QUEUE_DONE or CPU_QUEUE_LOST. */
static int await_number(cpu_queue *q, uint64_t number) {
  if (is_done(q, number)) return CPU_QUEUE_DONE;
  if (is_lost(q, number)) return CPU_QUEUE_LOST;
  for (uint64_t end = hg_time_ns() + CPU_WAIT_SPIN_NS; hg_time_ns() < end; hg_spin_pause())
    if (is_done(q, number)) return CPU_QUEUE_DONE;
  atomic_fetch_add(&q->sleepers, 1);
  for (;;) {
    uint32_t progress = atomic_load(&q->progress);
    if (is_done(q, number)) break;
    hg_wait(&q->progress, progress);
  }
  atomic_fetch_sub(&q->sleepers, 1);
  return CPU_QUEUE_DONE;
}

/* Makes sure that the queue has a thread: starts the first one, or a new one for an empty queue whose thread was lost
 * by a fork. 0 if the system refuses. */
static int ensure_thread(cpu_queue *q) {
  if (q->started && q->process != hg_process_id()) q->started = 0;
  if (q->started) return 1;
  q->process = hg_process_id();
  atomic_store(&q->sleeps, 0);
  atomic_store(&q->quits, 0);
  atomic_store(&q->sleepers, 0);
  q->started = hg_thread_start(&q->thread, thread_main, q) == 0;
  return q->started;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static void release_event(cpu_event *event) {
  if (event != NULL && --event->holders == 0) hg_release(&event->allocator, event);
}

static void free_nodes_up_to(cpu_queue *q, uint64_t number) {
  while (q->oldest != NULL && q->oldest->number < number) {
    node *n = q->oldest;
    q->oldest = atomic_load_explicit(&n->next, memory_order_relaxed);
    release_event(n->event);
    if (n != &q->first) hg_release(&q->queues->allocator, n);
  }
}

/* Frees the nodes before number `done`: the consumer is there or further on. */
static void free_nodes(cpu_queue *q) {
  free_nodes_up_to(q, atomic_load_explicit(&q->done, memory_order_acquire));
}

/* A node to push; NULL if the caller must do the work itself: then the queue is empty, or lost. */
static node *new_node(cpu_queue *q, uint64_t room) {
  free_nodes(q);
  if (is_lost(q, q->given)) return NULL;
  node *n = NULL;
  if (ensure_thread(q) && room < SIZE_MAX - sizeof *n)
    n = hg_allocate(&q->queues->allocator, 1, (size_t)(sizeof *n + room));
  if (n == NULL) (void)await_number(q, q->given);
  return n;
}

/* The number when the call that gives a launch began, which may have been before its executor was cancelled. */
static uint32_t cancel_number_of(const cpu_queue *q, const hg_work *work) {
  return work->kind == HG_WORK_LAUNCH ? work->launch->cancel_number : atomic_load(q->queues->cancels);
}

static void push_given_at(cpu_queue *q, node *n, uint32_t cancel_number) {
  n->number = ++q->given;
  n->cancel_number = cancel_number;
  atomic_store_explicit(&q->last->next, n, memory_order_release);
  q->last = n;
  wake(q);
}

static void push(cpu_queue *q, node *n) { push_given_at(q, n, atomic_load(q->queues->cancels)); }

static hg_status fail_lost(void) {
  return hg_fail(HG_UNSUPPORTED, "a stream had work left when the process forked, and what did it is not there in the "
                                 "child; wait for the streams before a fork, or make new ones after it");
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

hg_status hg_cpu_queues_open(cpu_queues *queues, const hg_allocator *allocator, hg_cpu_memory *memory) {
  *queues = (cpu_queues){.allocator = *allocator, .memory = memory};
  return hg_mutex_init(&queues->mutex) == 0 ? HG_OK : hg_fail(HG_OUT_OF_MEMORY, "could not make a mutex for a device");
}

void hg_cpu_queues_close(cpu_queues *queues) {
  while (queues->first != NULL) {
    cpu_queue *q = queues->first;
    queues->first = q->next;
    free_nodes_up_to(q, UINT64_MAX); /* of a lost queue */
    hg_release(&queues->allocator, q);
  }
  hg_mutex_destroy(&queues->mutex);
}

hg_status hg_cpu_queue_open(cpu_queues *queues, cpu_queue **out) {
  cpu_queue *q = queues->first;
  while (q != NULL && q->open) q = q->next;
  if (q == NULL) {
    q = hg_allocate(&queues->allocator, 1, sizeof *q);
    if (q == NULL) return hg_fail_memory("a stream", sizeof *q);
    q->queues = queues;
    q->oldest = q->last = q->at = &q->first;
    q->next = queues->first;
    queues->first = q;
  }
  q->open = 1;
  *out = q;
  return HG_OK;
}

/* The next stream that reuses this queue continues its numbers. A lost queue keeps its nodes and is not used again. */
void hg_cpu_queue_close(cpu_queue *q) {
  if (await_number(q, q->given) == CPU_QUEUE_LOST) return;
  if (q->started && q->process == hg_process_id()) {
    atomic_store(&q->quits, 1);
    wake(q);
    hg_thread_join(&q->thread);
  }
  q->started = 0;
  free_nodes_up_to(q, UINT64_MAX);
  q->first.number = q->given;
  atomic_store(&q->first.next, NULL);
  q->oldest = q->last = q->at = &q->first;
  atomic_store(&q->has_fault, 0);
  atomic_store(&q->has_failure, 0);
  q->open = 0;
}

static int is_small(const hg_work *work) {
  return work->kind == HG_WORK_LAUNCH ? hg_cpu_kernel_is_small(work->kernel, work->launch)
                                      : work->byte_count <= CPU_SMALL_COPY;
}

static hg_status run_here(cpu_queue *q, const hg_work *work) {
  hg_fp_state callers = hg_fp_enter();
  hg_status status = run_work(q, work, work->number, 0, cancel_number_of(q, work));
  hg_fp_leave(callers);
  return status;
}

hg_status hg_cpu_queue_submit(cpu_queue *q, const hg_work *work) {
  if (is_idle(q) && is_small(work)) return run_here(q, work);
  node *n = new_node(q, hg_work_room(work));
  if (n == NULL) return is_idle(q) ? run_here(q, work) : fail_lost();
  n->what = WORK;
  hg_work_copy(&n->work, work, n + 1);
  push_given_at(q, n, cancel_number_of(q, work));
  return HG_OK;
}

static int is_small_graph(const cpu_graph *graph) {
  if (graph->count > CPU_SMALL_GRAPH) return 0;
  for (size_t i = 0; i < graph->count; i++)
    if (!is_small(&graph->work[i])) return 0;
  return 1;
}

hg_status hg_cpu_queue_run_graph(cpu_queue *q, cpu_graph *graph, uint64_t number) {
  node *n = is_idle(q) && is_small_graph(graph) ? NULL : new_node(q, 0);
  if (n == NULL) {
    if (!is_idle(q)) return fail_lost();
    hg_fp_state callers = hg_fp_enter();
    hg_status status = run_graph(q, graph, number, atomic_load(q->queues->cancels));
    hg_fp_leave(callers);
    return status;
  }
  n->what = GRAPH;
  n->graph = graph;
  n->work.number = number;
  push(q, n);
  return HG_OK;
}

void hg_cpu_queue_free(cpu_queues *all, uint8_t *address, void *const *queues, size_t count) {
  hg_cpu_share(address, (uint32_t)count);
  for (size_t i = 0; i < count; i++) {
    cpu_queue *q = queues[i];
    node *n = is_idle(q) ? NULL : new_node(q, 0);
    if (n == NULL) {
      release_shared(all, address);
      continue;
    }
    n->what = FREE;
    n->address = address;
    push(q, n);
  }
}

int hg_cpu_queue_wait(cpu_queue *q) { return await_number(q, q->given); }

int hg_cpu_queue_query(cpu_queue *q) {
  if (is_idle(q)) return CPU_QUEUE_DONE;
  return is_lost(q, q->given) ? CPU_QUEUE_LOST : CPU_QUEUE_BUSY;
}

hg_status hg_cpu_queue_outcome(cpu_queue *q, int result) {
  if (result == CPU_QUEUE_BUSY) return hg_fail(HG_BUSY, "work of the stream is not done yet");
  if (result == CPU_QUEUE_LOST) return fail_lost();
  if (q == NULL || !atomic_load_explicit(&q->has_failure, memory_order_acquire)) return HG_OK;
  hg_status status = hg_fail(q->failure, "%s", q->sentence);
  atomic_store_explicit(&q->has_failure, 0, memory_order_release);
  return status;
}

int hg_cpu_queue_faulted(cpu_queue *q, uint64_t number, uint64_t *index) {
  if (!atomic_load_explicit(&q->has_fault, memory_order_acquire) || q->fault_number != number) return 0;
  *index = q->fault_index;
  return 1;
}

void hg_cpu_queue_take_fault(cpu_queue *q, hg_fault *fault) {
  *fault = q->fault;
  atomic_store_explicit(&q->has_fault, 0, memory_order_release);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

hg_status hg_cpu_event_open(const hg_allocator *allocator, int timed, cpu_event **out) {
  cpu_event *event = hg_allocate(allocator, 1, sizeof *event);
  if (event == NULL) return hg_fail_memory("an event", sizeof *event);
  event->allocator = *allocator;
  event->holders = 1;
  event->timed = timed;
  *out = event;
  return HG_OK;
}

void hg_cpu_event_close(cpu_event *event) { release_event(event); }

/* The thread takes the time when it reaches the node. */
hg_status hg_cpu_event_record(cpu_event *event, cpu_queue *q) {
  uint32_t generation = atomic_fetch_add(&event->generation, 1) + 1;
  node *n = event->timed && !is_idle(q) ? new_node(q, 0) : NULL;
  if (n != NULL) {
    n->what = RECORD;
    n->event = event;
    n->generation = generation;
    event->holders++;
    push(q, n);
  } else if (event->timed) {
    if (!is_idle(q)) return fail_lost();
    atomic_store(&event->time_ns, hg_time_ns());
  }
  event->queue = q;
  event->number = q->given;
  return HG_OK;
}

hg_status hg_cpu_event_await(cpu_queue *q, cpu_event *event) {
  if (event->queue == q || is_done(event->queue, event->number)) return HG_OK;
  if (is_lost(event->queue, event->number)) return fail_lost();
  node *n = new_node(q, 0);
  if (n == NULL) return await_number(event->queue, event->number) == CPU_QUEUE_DONE ? HG_OK : fail_lost();
  n->what = AWAIT;
  n->other = event->queue;
  n->other_number = event->number;
  push(q, n);
  return HG_OK;
}

hg_event_place hg_cpu_event_place(const cpu_event *event) { return (hg_event_place){event->queue, event->number}; }

int hg_cpu_event_wait(const hg_event_place *place) { return await_number(place->where, place->number); }

int hg_cpu_event_query(const cpu_event *event) {
  if (is_done(event->queue, event->number)) return CPU_QUEUE_DONE;
  return is_lost(event->queue, event->number) ? CPU_QUEUE_LOST : CPU_QUEUE_BUSY;
}

hg_status hg_cpu_event_elapsed(cpu_event *from, cpu_event *to, double *nanoseconds) {
  int first = hg_cpu_event_query(from), second = hg_cpu_event_query(to);
  HG_TRY(hg_cpu_queue_outcome(NULL, first != CPU_QUEUE_DONE ? first : second));
  uint64_t start = atomic_load(&from->time_ns), end = atomic_load(&to->time_ns);
  *nanoseconds = end >= start ? (double)(end - start) : -(double)(start - end);
  return HG_OK;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

hg_status hg_cpu_graph_open(const hg_allocator *allocator, const hg_work *work, size_t count, cpu_graph **out) {
  cpu_graph *graph = hg_allocate(allocator, 1, sizeof *graph);
  if (graph == NULL) return hg_fail_memory("a graph", sizeof *graph);
  *graph = (cpu_graph){*allocator, work, count};
  *out = graph;
  return HG_OK;
}

void hg_cpu_graph_close(cpu_graph *graph) {
  const hg_allocator allocator = graph->allocator;
  hg_release(&allocator, graph);
}
