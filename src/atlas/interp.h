/* interp.h - the reference machine: one launch of a verified program, lane by lane. It is the definition of the ISA;
 * faster engines are tested against it. It knows nothing of executors: callers have checked bindings and shapes. */
#ifndef HG_ATLAS_INTERP_H
#define HG_ATLAS_INTERP_H

#include "atlas/program.h"
#include "hologram/classes.h"

#include <stdatomic.h>

typedef struct atlas_span {
  uint8_t *memory;
  uint64_t byte_count;
} atlas_span;

/* Per symbol of the program, at its index: what is bound to it. Unused members are zero. */
typedef struct atlas_argument {
  atlas_span span;         /* buffers and pools */
  const atlas_span *table; /* tables: one span an entry (memory NULL: nothing bound, extent 0) */
  uint64_t bits;           /* scalars: low bits of the declared type, zero above */
} atlas_argument;

enum { ATLAS_LINEAR_BLOCK_LANES = 256 };

struct hg_rows;
struct hg_contraction; /* backend.h */

typedef struct atlas_launch {
  uint64_t lanes;          /* linear launch if not 0: blocks of atlas_linear_block lanes, the last one partial */
  uint32_t grid[3];        /* else: blocks, all >= 1 */
  uint32_t block[3];       /* lanes, all >= 1, product <= ATLAS_MAX_BLOCK_LANES; of a linear launch the first only, and
                              0 where the launch gives none */
  const atlas_argument *arguments;
  uint8_t *boundary;       /* ATLAS_BOUNDARY_POOL_BYTES */
  uint32_t phase;
  uint64_t step_limit;     /* >= 1 */
  uint32_t wants_time;     /* 1: devices that have a clock of their own fill in `nanoseconds` */
  const struct hg_rows
      *rows; /* what the program does with these arguments, for devices that know a shorter way; NULL */
  const struct hg_contraction *contraction; /* of a kernel that was compiled for contractions, else NULL */
  uint64_t moved_bytes; /* that it reads and writes, as its planner has it: for counts alone; 0: not known */
  uint32_t most_threads;   /* of a CPU's engines; 0: as many as pay off */
  uint32_t cancel_number;  /* the launch ends early, having done a part, when that is not what *cancels is */
  const atomic_uint *cancels; /* NULL: it does not */

  /* Results. */
  int64_t resonance[ATLAS_CLASS_COUNT]; /* deltas of this launch; not read where the program has no res.accum */
  uint32_t phase_advance;               /* modulo 768 */
  uint64_t nanoseconds;                 /* by the device's clock; unchanged where it has none */
  const char *notes;                    /* a constant, in place of the kernel's `why`; NULL: none */
  hg_fault fault;                       /* kind HG_FAULT_NONE if there was none */
} atlas_launch;

static inline int atlas_is_cancelled(const atlas_launch *launch) {
  return launch->cancels != NULL &&
         atomic_load_explicit(launch->cancels, memory_order_relaxed) != launch->cancel_number;
}

/* The lanes of a linear launch's blocks: as the program requires, else as the launch gives, else 256. */
static inline uint32_t atlas_linear_block(const atlas_program *program, const atlas_launch *launch) {
  if (program->block[0] != 0) return program->block[0];
  return launch->block[0] != 0 ? launch->block[0] : ATLAS_LINEAR_BLOCK_LANES;
}

/* HG_OK also when lanes faulted (see launch->fault); HG_OUT_OF_MEMORY when the machine's own state does not fit, before
 * any lane has run. */
hg_status atlas_interpret(const hg_allocator *allocator, const atlas_program *program, atlas_launch *launch);

/* One function of the library on raw bits: how the machine computes exp, pow, ... of f32 and f64 (and of f16, bf16
 * through f32). `b` is ignored by functions of one argument. */
uint64_t atlas_function(atlas_op op, atlas_type type, uint64_t a, uint64_t b);

#endif
