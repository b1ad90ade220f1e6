/* analyse.h - what can be known of a program's values before it runs: how uniform they are, their ranges, their
 * divisors; and which accesses are therefore in bounds.
 *
 * Ranges depend on the launch (how many lanes, how large the buffers, what the scalars are), so they are found for a
 * shape of launches; everything in hg_shape may be left unknown. */
#ifndef HG_COMPILER_ANALYSE_H
#define HG_COMPILER_ANALYSE_H

#include "atlas/program.h"
#include "compiler/analysis/ranges.h"
#include "ir/loops.h"
#include "ir/uniform.h"

/* Facts about a launch. A size of 0 is unknown. */
typedef struct hg_shape {
  uint64_t lanes;             /* of a linear launch, else 0 */
  uint64_t grid[3], block[3]; /* of both kinds, when known */
  const uint64_t *extent;     /* per symbol: elements of a buffer, bytes of a pool; NULL or 0: unknown */
  const uint64_t *scalar;     /* per symbol: bits of a scalar; NULL: unknown */
} hg_shape;

enum { HG_MAX_ALIGNMENT = 4096 };

typedef struct hg_fact {
  uint8_t level; /* ir_level */
  uint32_t alignment; /* a power of two that divides the value in every lane; at most HG_MAX_ALIGNMENT */
} hg_fact;

/* Why an access is in bounds in every lane that executes it; 0: it may not be. */
typedef enum hg_proof {
  HG_NOT_PROVEN,
  HG_BELOW_EXTENT, /* its index lies in a range below the known size of its memory */
  HG_BELOW_LENGTH  /* a branch has compared its index with the buffer's length, which is unknown */
} hg_proof;

typedef struct hg_analysis {
  hg_fact *fact;              /* per value */
  hg_range *range;            /* per value: between which bounds it lies (compiler/analysis/ranges.h) */
  uint8_t *in_bounds;         /* per value: of a memory access, hg_proof */
  uint8_t *control;           /* per block: ir_level of the control that leads there */
  struct hg_guarded *guarded; /* per block: see compiler/analysis/guards.h */
  ir_loops loops;
} hg_analysis;

/* 1 if a value of type f32 or f64 is a number in every lane. All others must be made canonical where their bits are
 * observable, because machines disagree about the bits of a NaN. */
static inline int hg_is_never_nan(const hg_analysis *a, uint32_t value) { return !a->range[value].is_nan; }

/* Static counts: each instruction counts once, however often a loop executes it. */
typedef struct hg_summary {
  uint64_t bytes_read, bytes_written; /* per lane, global memory */
  uint32_t integer_ops, float_ops, divisions, functions, loads, stores, atomics, barriers, collectives, branches, loops;
} hg_summary;

/* `unit` is canonical or scheduled. HG_OUT_OF_MEMORY. Release `out` whatever the result is. */
hg_status hg_analyse(const atlas_program *program, ssa_unit *unit, const hg_shape *shape, hg_analysis *out);
void hg_analysis_release(const ssa_unit *unit, hg_analysis *analysis);

hg_status hg_summarise(const atlas_program *program, ssa_unit *unit, hg_summary *out);

#endif
