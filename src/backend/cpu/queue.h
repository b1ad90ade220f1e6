/* queue.h - the streams of a CPU device: work queues, each with its own thread.
 *
 * The first work that is worth a thread starts it; if the queue is empty, the caller does small work itself. One call
 * submits work at a time; waiting and querying need no lock.
 *
 * A queue that has work when the process forks is lost in the child, which lacks its thread. An empty queue keeps
 * working there. */
#ifndef HG_CPU_QUEUE_H
#define HG_CPU_QUEUE_H

#include "backend/backend.h"
#include "backend/cpu/cpu_memory.h"

typedef struct cpu_queue cpu_queue;
typedef struct cpu_event cpu_event;
typedef struct cpu_graph cpu_graph;

/* Results of the functions without lock. */
enum { CPU_QUEUE_DONE, CPU_QUEUE_BUSY, CPU_QUEUE_LOST };

/* The queues of a device. A closed queue is kept and reopened as the next one, because events refer to queues. */
typedef struct cpu_queues {
  hg_allocator allocator;
  hg_cpu_memory *memory;
  hg_mutex mutex;   /* guards allocations and frees of `memory` */
  cpu_queue *first; /* of the list of all queues */
  const atomic_uint *cancels; /* work submitted when this was another number is skipped */
} cpu_queues;

hg_status hg_cpu_queues_open(cpu_queues *queues, const hg_allocator *allocator, hg_cpu_memory *memory);
void hg_cpu_queues_close(cpu_queues *queues); /* after all queues are closed */

hg_status hg_cpu_queue_open(cpu_queues *queues, cpu_queue **out);
void hg_cpu_queue_close(cpu_queue *queue); /* waits for its work */
hg_status hg_cpu_queue_submit(cpu_queue *queue, const hg_work *work);
hg_status hg_cpu_queue_run_graph(cpu_queue *queue, cpu_graph *graph, uint64_t number);
/* Frees memory once each of these queues has done its present work. */
void hg_cpu_queue_free(cpu_queues *all, uint8_t *address, void *const *queues, size_t count);
int hg_cpu_queue_wait(cpu_queue *queue);
int hg_cpu_queue_query(cpu_queue *queue);
/* The status of a result, and of what has failed since the last call. */
hg_status hg_cpu_queue_outcome(cpu_queue *queue, int result);
/* 1 if a fault has not been taken yet; *index is that of the work. */
int hg_cpu_queue_faulted(cpu_queue *queue, uint64_t number, uint64_t *index);
void hg_cpu_queue_take_fault(cpu_queue *queue, hg_fault *fault);

hg_status hg_cpu_event_open(const hg_allocator *allocator, int timed, cpu_event **out);
void hg_cpu_event_close(cpu_event *event);
hg_status hg_cpu_event_record(cpu_event *event, cpu_queue *queue);
hg_status hg_cpu_event_await(cpu_queue *queue, cpu_event *event);
hg_event_place hg_cpu_event_place(const cpu_event *event);
int hg_cpu_event_wait(const hg_event_place *place);
int hg_cpu_event_query(const cpu_event *event);
hg_status hg_cpu_event_elapsed(cpu_event *from, cpu_event *to, double *nanoseconds);

hg_status hg_cpu_graph_open(const hg_allocator *allocator, const hg_work *work, size_t count, cpu_graph **out);
void hg_cpu_graph_close(cpu_graph *graph);

#endif
