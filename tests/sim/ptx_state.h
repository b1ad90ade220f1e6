/* ptx_state.h - the state of the machine, shared by its files: ptx_machine.c (control), ptx_operand.c (operands) and
 * ptx_memory.c (memory, and races for it). */
#ifndef HG_TESTS_PTX_STATE_H
#define HG_TESTS_PTX_STATE_H

#include "ptx_text.h"

#include <setjmp.h>

enum { PTX_WARP = 32, PTX_CALL_DEPTH = 8 };

typedef struct ptx_frame {
  const ptx_function *function;
  const ptx_insn *call; /* that made it; NULL: the entry */
  uint64_t *registers;
  uint32_t pc;
} ptx_frame;

typedef enum ptx_state { RUNS, WAITS_BARRIER, WAITS_WARP, WAITS_CLUSTER, ENDED } ptx_state;

typedef struct ptx_thread {
  ptx_frame frame[PTX_CALL_DEPTH];
  uint32_t depth;
  ptx_state state;
  uint32_t id[3];
  uint32_t linear;
  struct ptx_block *block;
  uint32_t arrivals, waits; /* at barriers of the cluster, both from 1: an arrival, then a wait for all others' */
  uint8_t unreleased;       /* it touched what threads exchange, and has not arrived since */
  uint8_t carry;
  uint8_t *local;
  uint64_t offered; /* what a shuffle or vote gives to the others */
  uint64_t steps;
} ptx_thread;

/* Of a byte that threads exchange: who wrote and read it last, and what they had come to. */
#define PTX_SEVERAL UINT16_MAX
typedef struct ptx_access {
  uint16_t block, thread;      /* the block's place in the cluster; threads of several blocks are several threads */
  uint32_t barriers, arrivals; /* of the block; of the thread */
} ptx_access;

typedef struct ptx_place {
  ptx_access write, read;
} ptx_place;

/* A block of the cluster that runs. */
typedef struct ptx_block {
  uint32_t id[3], rank;
  uint8_t *shared;
  ptx_place *places;  /* per watched byte of it */
  uint32_t barriers;  /* from 1 */
  uint32_t waits;     /* the most of a thread's */
  uint32_t visitors;  /* the most arrivals of a thread of another block that touched its shared memory; 0: none did */
  ptx_thread *threads;
  uint32_t unended;   /* of the threads */
} ptx_block;

typedef struct ptx_machine {
  const ptx_module *module;
  const ptx_function *entry;
  const ptx_launch *launch;
  size_t shared_bytes;
  size_t watched, watched_end; /* bytes in which nobody may race: where a kernel's own exchanges happen */
  ptx_block blocks[PTX_CLUSTER_BLOCKS];
  uint32_t block_count;        /* of a cluster */
  uint32_t thread_count;       /* of a block */
  uint32_t meetings;           /* barriers of the cluster that have opened, and 1 */
  jmp_buf failed;
  char *why;
  size_t why_bytes;
} ptx_machine;

static inline uint32_t ptx_lane_of(const ptx_thread *t) { return t->linear % PTX_WARP; }

/* Ends the run. */
_Noreturn void ptx_fail(ptx_machine *m, const ptx_thread *t, const char *format, ...);

uint64_t ptx_symbol_address(const ptx_machine *m, const ptx_function *f, uint32_t number);
uint64_t ptx_part(const ptx_frame *f, const ptx_operand *o, unsigned k); /* one part of a vector */
/* An operand as a value of `type`, zero above its bits. */
uint64_t ptx_read(ptx_machine *m, const ptx_thread *t, const ptx_operand *o, ptx_type type);
void ptx_write(ptx_machine *m, ptx_thread *t, const ptx_operand *o, uint64_t bits, unsigned width);
/* The same of an instruction's operand; of its first, the result. */
uint64_t ptx_input(ptx_machine *m, const ptx_thread *t, const ptx_insn *i, unsigned number);
uint64_t ptx_input_as(ptx_machine *m, const ptx_thread *t, const ptx_insn *i, unsigned number, ptx_type type);
void ptx_answer(ptx_machine *m, ptx_thread *t, const ptx_insn *i, uint64_t bits);

/* Instructions. */
void ptx_load(ptx_machine *m, ptx_thread *t, const ptx_insn *i);
void ptx_store(ptx_machine *m, ptx_thread *t, const ptx_insn *i);
void ptx_atomic(ptx_machine *m, ptx_thread *t, const ptx_insn *i);
void ptx_map_address(ptx_machine *m, ptx_thread *t, const ptx_insn *i);
void ptx_prefetch(ptx_machine *m, ptx_thread *t, const ptx_insn *i); /* must be in reach, as nothing else of it shows */
void ptx_find_watched(ptx_machine *m); /* fills `watched` and watched_end */

#endif
