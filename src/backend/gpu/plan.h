/* plan.h - the plan of a GPU kernel before any of it is text: how many lanes a thread has, which accesses are vectors
 * (one access for all lanes of the thread), which loads share a check, what is checked where and when its fault is
 * noted, the collectives of a block as steps, the layouts of shared memory and of the argument block.
 *
 * hg_gpu_plan(program, &unit, &target, &variant, &plan) makes it (build.h); a backend prints each gpu_step of
 * plan.kernel as steps.def says; hg_gpu_plan_release(&plan) releases it.
 *
 * A kernel is a list of steps. The step GPU_BODY stands for the program of one lane: blocks in plan.order, each with
 * its own list of steps in plan.version[...], and edges as hg_gpu_edge describes them. The program has two versions. In
 * the vector version all `x + lane` accesses are in bounds, and the vector accesses stand before it (loads) and behind
 * it (stores); outside the vector version every access that is not proven to be in bounds is checked.
 *
 * hg_gpu_target (gpu.h) says what a target can do; nothing else here depends on the target. */
#ifndef HG_GPU_PLAN_H
#define HG_GPU_PLAN_H

#include "atlas/functions.h"
#include "backend/gpu/gpu.h"
#include "base/error.h"
#include "compiler/analysis/affine.h"
#include "ir/ssa_order.h"

/* Which bits a NaN of a value may have: the canonical ones; those of a positive NaN; any, with no meaning; the ISA's,
 * with its payload. A lattice: a select or phi has the greatest of its operands'. */
typedef enum gpu_nan { GPU_NAN_CANONICAL, GPU_NAN_POSITIVE, GPU_NAN_LOOSE, GPU_NAN_KEPT } gpu_nan;

/* How the vector version performs an access: checked; unchecked, because it is in bounds; as one access for all lanes
 * of a thread. */
typedef enum gpu_access { GPU_CHECKED, GPU_PLAIN, GPU_VECTOR } gpu_access;

/* ---- vectors: one access for all lanes of a thread --------------------------------------------------------------- */

enum {
  GPU_VECTOR_LANES = 8,
  GPU_VECTOR_WORDS = 4,
  GPU_MOST_PACKS = 8
};

/* The elements of a pack, lanes_per_thread of them, in words as they lie in memory. */
typedef struct gpu_vector {
  uint32_t value;         /* the load or store */
  uint8_t is_load, is_read_only;
  uint8_t element_bytes, word_bytes, word_count, word_lanes; /* word_lanes: elements of a word */
  uint8_t rounds;         /* of a store of f16 or bf16: 1: it rounds the lanes' f32, two at once */
  uint8_t mends;          /* of a store of f16 or bf16: 1: it makes the NaNs of each word canonical */
  uint8_t gives_exact;    /* of a store: 1: the lanes' values already have the ISA's bits */
  uint32_t given;         /* of a store: the value that each lane stores */
  uint32_t bound;         /* of a store that rounds: it clamps the rounded elements to [-c, c], with this pair of c; 0:
                             it does not clamp */
  uint32_t widened;       /* of a load of f16 or bf16: the conversion to f32 that is its only user; SSA_NONE: there is
                             none */
  uint32_t clamped;       /* the clamp that is the only user of that conversion; SSA_NONE: there is none */
  uint32_t low, high;     /* its bounds: pairs of them */
} gpu_vector;

/* ---- groups: accesses of one lane near one another, [a + r + #0], [a + r + #1], ... ------------------------------ */

enum { GPU_MAX_GROUP = 128, GPU_MAX_RUNS = 32 };

/* The accesses of a group that share one index. Neighbours become one access of `width` elements. */
typedef struct gpu_access_run {
  uint8_t first, count;  /* positions in the group's arrays, by displacement */
  uint8_t width;         /* elements of its widest access */
  uint8_t element_bytes;
  uint8_t is_checked;    /* it is not proven to be in bounds */
  uint8_t checks_least;  /* 1: the least displacement may be out of bounds although the largest is in bounds */
  uint8_t is_aligned;    /* 1: a wide access is aligned if the memory begins at a multiple of its bytes */
  uint8_t is_shared, is_read_only;
  uint32_t
      prefetch_bytes; /* bytes that a later block reads with the same accesses, which are prefetched; 0: none
                         (l2_prefetch.c) */
  uint64_t prefetch_by;     /* that block's index exceeds this one's by this number */
  uint32_t prefetch_scalar; /* times this value; SSA_NONE: times 1 */
} gpu_access_run;

/* Loads or stores that are done at once. One test serves all of them. A lane for which it fails (an access is out of
 * bounds, or its addresses are not aligned to the width) does them one by one, each with its own check. */
typedef struct gpu_access_group {
  uint32_t value[GPU_MAX_GROUP];    /* run by run, each by displacement; of stores, runs that may overlap keep their
                                       order */
  uint32_t in_order[GPU_MAX_GROUP]; /* in program order */
  uint8_t joined[GPU_MAX_GROUP];    /* as `value`: elements of the access that begins here; 0: the element belongs to an
                                       access that begins before it */
  uint32_t count;
  gpu_access_run run[GPU_MAX_RUNS];
  uint32_t run_count;
  uint8_t is_store;
  uint8_t is_tested;                /* 0: all accesses are known to be in bounds and aligned */
  uint32_t hoisted;                /* 1 + its number in `hoisted`: a lane may find out before the loop that it needs no
                                      test; 0: it is not hoisted */
  uint32_t first_step, step_count;  /* if it is tested: the steps, in the version's list, of its accesses one by one */
} gpu_access_group;

/* ---- tests before a loop (hoist_checks.c) ------------------------------------------------------------------------ */

enum { GPU_MOST_SWEEPS = 4, GPU_MOST_HOISTED = 16 };

/* The index of a run: in iteration i of its loop it is at most start + i * (sum of step) + (sum of offset), and as
 * aligned as start is. */
typedef struct gpu_sweep {
  uint32_t start;
  hg_terms step, offset; /* of u32 */
} gpu_sweep;

typedef struct gpu_hoisted {
  uint32_t group;
  uint32_t block;  /* the block before the loop, at whose end the lane makes the test */
  uint32_t rounds; /* u32: an upper bound of the iterations; 0: 2^32 */
  uint32_t before; /* the same without the last iteration, if the group does not run in it; SSA_NONE: unknown */
  gpu_sweep sweep[GPU_MOST_SWEEPS]; /* by run */
} gpu_hoisted;

enum { GPU_WORD_ELEMENTS = 4 }; /* most of a word */

/* The number of elements in a word of a wide access. */
static inline uint32_t gpu_word_elements(const gpu_access_run *run) {
  return run->element_bytes < 4 ? 4u / run->element_bytes : 1;
}
/* The next smaller width: whole words, or 1. */
static inline uint32_t gpu_lesser_width(uint32_t width, uint32_t element_bytes) {
  return width / 2 * element_bytes < 4 ? 1 : width / 2;
}

/* ---- exchanges: collectives next to each other, which share barriers --------------------------------------------- */

enum { GPU_MAX_EXCHANGE = 8 };

typedef struct gpu_exchange {
  uint32_t first;                    /* the first of its values in the program, where all of the exchange is done */
  uint32_t value[GPU_MAX_EXCHANGE];  /* only reductions, or only scans; those with one operation and type are
                                        adjacent */
  uint32_t place[GPU_MAX_EXCHANGE];  /* offset in shared memory of a slot for each lane; with by_each_warp, in the first
                                        half */
  uint32_t second[GPU_MAX_EXCHANGE]; /* of a reduction: offset of its result; of a scan: of its windows, a slot for each
                                        lane */
  uint32_t count;
  uint8_t is_scan;
  uint8_t by_each_warp;              /* reductions: 1: each warp folds them for itself, behind one barrier */
  uint32_t least_lanes, most_lanes;  /* the number of lanes of blocks in the common case of reductions */
} gpu_exchange;

/* The size of a slot that holds one value of the type. */
static inline uint32_t gpu_slot_bytes(uint8_t type) { return atlas_bytes((atlas_type)type) == 8 ? 8 : 4; }

/* ---- steps ------------------------------------------------------------------------------------------------------- */

typedef enum gpu_op {
#define STEP(id, of, nest) GPU_##id,
#include "backend/gpu/steps.def"
#undef STEP
  GPU_OP_COUNT
} gpu_op;

typedef struct gpu_step {
  uint8_t op;      /* gpu_op */
  uint8_t notes;   /* of LOAD, STORE, ATOMIC and GROUP: how many pending faults are noted before this access, since it
                      may fault */
  uint32_t value;  /* the instruction's value; SSA_NONE */
  uint32_t number; /* see steps.def */
} gpu_step;

/* A version of the program for one lane. */
typedef enum gpu_version_kind { GPU_OUTSIDE, GPU_VECTOR_VERSION, GPU_VERSION_COUNT } gpu_version_kind;
typedef struct gpu_version {
  hg_array steps;   /* gpu_step */
  uint32_t *first;  /* by position in plan.order, and one more: where a block's steps begin; NULL: not used */
} gpu_version;

/* A loop that runs several iterations of the program at a time. Its header asks whether that many steps are left. */
typedef struct gpu_unrolled {
  uint32_t header, operand; /* the header; which of its operands comes from the back edge, whose block may be split
                               later */
  uint32_t times;
} gpu_unrolled;

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

enum {
  GPU_PENDING = 8,                   /* the most faults of skipped accesses that may wait for a NOTE_FAULTS */
  GPU_FOLD_LANES = HG_GPU_WARP_LANES /* lanes that exchange values without memory */
};

enum gpu_lut { /* the table variant */
  GPU_LUT_ENTRIES = 65536,
  GPU_LUT_PACK_LANES = 8, /* one access of 16 bytes */
  GPU_LUT_PACKS = 4,      /* packs that a thread handles in each piece */
  GPU_PIECE_BITS = 15,
  GPU_PIECE_LANES = HG_GPU_LUT_THREADS * GPU_LUT_PACKS * GPU_LUT_PACK_LANES,
  GPU_LUT_DRAWN = 2 * GPU_LUT_ENTRIES /* offset of two words behind the table that alternately hold the next piece */
};

typedef struct gpu_memory {    /* shared and local memory: layout.c, exchange.c */
  int uses_scratch;            /* 1: reductions or scans meet in shared memory */
  int windows_in_places;       /* of scans: 1: there is no room for both */
  uint32_t rank_counts;        /* of ranks that share barriers: counts of warps (ranks.c); 0: there are none */
  uint32_t half_bytes;         /* the size of one half of the places of exchanges by each warp, which alternate between
                                  two halves; 0: there are no such exchanges */
  uint32_t shared_offset[ATLAS_MAX_SYMBOLS], local_offset[ATLAS_MAX_SYMBOLS];
  uint8_t clears_local;        /* 1: a lane may read from its local arrays before it has written to them, so they are
                                  cleared */
  uint32_t local_bytes;        /* of a thread: the lanes that it runs one after another share this memory */
  uint32_t ended, ended_any, zeroed_bytes; /* in shared memory; ended: a byte for each lane, 1 if it has ended;
                                              ended_any: a word, 1 if any has. The places of exchanges lie behind
                                              zeroed_bytes */
} gpu_memory;

typedef struct gpu_plan {
  const hg_allocator *allocator;
  const atlas_program *program;
  ssa_unit *unit;
  hg_gpu_target target;
  hg_gpu_variant variant;
  hg_gpu_info info;
  hg_analysis analysis;
  ssa_order order;

  uint32_t *numbers;           /* the allocation that holds the arrays below */
  uint32_t *vector_of;         /* per value: its number in `vector` */
  uint32_t *group_of;          /* per value: 1 + the number of its group in GPU_OUTSIDE; 0: none */
  uint32_t *exchange_of;       /* per value: of a reduction or scan, its number in `exchange` */
  uint32_t *home;              /* per value: the value whose register it shares: itself, or a phi. No other value in
                                  that register is live at the same time */
  uint8_t *bits_used;          /* per float: 1: the bits of a NaN in it are observable (compiler/analysis/nan_bits.h) */
  uint8_t *nan_blind;          /* per value: see compiler/analysis/nan_bits.h */
  uint8_t *nan;                /* per value: gpu_nan */
  uint8_t *access;             /* per value: gpu_access, of accesses in the vector version */
  uint8_t *is_sunk;            /* per value: 1: a rounding whose only users are vector stores, which perform it */
  uint8_t *is_late;            /* per value: 1: a rounding that a group of stores performs, outside the vector
                                  version */
  hg_slope *slope[HG_AXES];    /* per value; NULL if no pass needs slopes (build.c) */
  uint8_t *in_loop;            /* per block */
  uint8_t *steps_at_once;      /* per block: the most iterations that one back edge of the loop which begins there
                                  stands for */
  uint8_t read_only[ATLAS_MAX_SYMBOLS + 2];      /* by hg_location_of */
  uint64_t tables_used[4], library_used[4];      /* sets of constant tables: the program's, the function library's */
  uint64_t locals_used[4];                       /* the set of local arrays that the program accesses */
  uint16_t parameter_of[ATLAS_MAX_SYMBOLS];      /* 1 + index into info.parameter */

  gpu_vector *vector;          /* in program order */
  uint32_t vector_count;
  hg_array group;              /* gpu_access_group */
  hg_array exchange;           /* gpu_exchange */
  hg_array hoisted;           /* gpu_hoisted */
  gpu_version version[GPU_VERSION_COUNT];
  hg_array kernel;             /* gpu_step */

  hg_array unrolled;           /* gpu_unrolled */
  int shares_work;             /* 1: tests and divisions of several values have been merged, which changed the blocks */
  uint64_t swept_again[4];     /* the set of buffers that have a part which several loops go over */
  hg_array proven;             /* uint32_t: accesses that a loop's test proves to be in bounds */
  uint32_t groups_outside; /* the first groups_outside entries of `group` belong to GPU_OUTSIDE */
  int counts_steps;
  int is_transposed;           /* 1: warps hold the lanes of one x: lane y of the warp has number y * (block along x) +
                                  x */
  int meets_late;              /* 1: the sub-blocks of a block meet at its first exchange, which all lanes reach,
                                  once */
  int is_spread;               /* 1: the lanes of a thread lie info.threads apart; no access is a vector */
  int in_loop_of_packs;        /* 1: a loop goes over the packs of a thread */
  int needs_lane;              /* 1: other things than vector accesses use the lane's number */
  int runs_long;               /* 1: a lane may take so many steps that its thread should have no other lane */
  int can_end;                 /* 1: a trap or the step limit may end lanes before the others of their block */
  uint32_t most_registers;     /* limit on a thread's registers; 0: none */
  gpu_memory memory;
} gpu_plan;

void hg_gpu_plan_release(gpu_plan *plan);

static inline const ssa_insn *gpu_insn(const gpu_plan *g, uint32_t value) { return ssa_insn_at(g->unit, value); }
static inline uint32_t gpu_arg(const gpu_plan *g, uint32_t value, unsigned i) { return ssa_args_of(g->unit, value)[i]; }
static inline uint32_t gpu_bytes(const gpu_plan *g, uint32_t value) {
  return atlas_bytes((atlas_type)gpu_insn(g, value)->type);
}
static inline uint32_t gpu_flags(const gpu_plan *g, uint32_t value) {
  return atlas_op_flags(gpu_insn(g, value)->op);
}
/* 1 if another value has replaced this value. */
static inline int gpu_is_gone(const gpu_plan *g, uint32_t value) {
  return ((const uint32_t *)g->unit->forward.data)[value] != value;
}
static inline int gpu_is_narrow(uint8_t type) { return type == ATLAS_f16 || type == ATLAS_bf16; }
static inline int gpu_is_signed(uint8_t type) { return atlas_kind((atlas_type)type) == ATLAS_KIND_SINT; }
static inline uint32_t gpu_log2(uint32_t bytes) { return bytes == 8 ? 3 : bytes / 2; } /* of an element */
static inline int gpu_is_in_set(const uint64_t set[4], uint32_t number) { return set[number / 64] >> number % 64 & 1; }
static inline size_t gpu_parameter_offset(const gpu_plan *g, uint32_t symbol) {
  return g->info.parameter[g->parameter_of[symbol] - 1].offset;
}
static inline const atlas_symbol *gpu_symbol_of(const gpu_plan *g, const ssa_insn *insn) {
  return insn->symbol & SSA_LIBRARY ? atlas_symbol_at(&atlas_functions, insn->symbol & ~(uint32_t)SSA_LIBRARY)
                                    : atlas_symbol_at(g->program, insn->symbol);
}
/* The number of lanes in a tile. */
static inline uint32_t gpu_tile(const gpu_plan *g) { return g->info.threads * g->info.lanes_per_thread; }
static inline const gpu_access_group *gpu_group_at(const gpu_plan *g, uint32_t number) {
  return (const gpu_access_group *)g->group.data + number;
}
static inline const gpu_hoisted *gpu_hoisted_at(const gpu_plan *g, uint32_t number) {
  return (const gpu_hoisted *)g->hoisted.data + number;
}
static inline const gpu_exchange *gpu_exchange_at(const gpu_plan *g, uint32_t number) {
  return (const gpu_exchange *)g->exchange.data + number;
}
/* 1 if a block is one warp. */
static inline int gpu_is_one_warp(const gpu_plan *g) { return g->info.max_threads <= g->target.warp_lanes; }
/* The shared memory of a value: a slot for each lane, in whole warps; if warps lie along y, a slot for each warp. */
static inline uint32_t gpu_place_bytes(const gpu_plan *g, uint8_t type) {
  uint32_t slots = g->is_transposed ? GPU_FOLD_LANES : g->info.max_threads;
  return (slots + GPU_FOLD_LANES - 1) / GPU_FOLD_LANES * GPU_FOLD_LANES * gpu_slot_bytes(type);
}
/* The lanes that each block but the last one has, if known before the launch; 0: the launch decides. */
static inline uint32_t gpu_block_lanes(const gpu_plan *g) {
  return (uint32_t)g->program->block[0] * g->program->block[1] * g->program->block[2];
}

/* ---- values (nans.c, bounds.c) ----------------------------------------------------------------------------------- */

/* 1 if one instruction rounds a pair of elements of the type, and one makes the NaNs of a pair canonical. */
static inline int gpu_has_pairs(const gpu_plan *g, uint8_t type) {
  return type == ATLAS_f16 ? g->target.pairs_f16 : type == ATLAS_bf16 ? g->target.pairs_bf16 : 0;
}
/* 1 if the value is a conversion from f32 that leaves a NaN as the target's instruction produces it. */
int hg_gpu_rounds_loosely(const gpu_plan *g, uint32_t value);
/* 1 if the argument may be a NaN with other bits than the ISA's, and the user's result depends on these bits. */
int hg_gpu_asks_exact(const gpu_plan *g, uint32_t user, uint32_t i);

/* 1 for a minimum or maximum of f32 with more than two arguments: elements of f16 or bf16, both halves of each word
 * next to each other (extremes.c). */
static inline int gpu_is_of_words(const ssa_insn *insn) {
  return (insn->op == ATLAS_OP_min || insn->op == ATLAS_OP_max) && insn->arg_count > 2;
}

/* x < c ? x : c, or x > c ? x : c, with a constant c that is neither zero nor NaN: a minimum or maximum that gives c if
 * x is NaN. */
int hg_gpu_is_bound(const gpu_plan *g, uint32_t value, int *is_max);
/* An f32 x clamped by min and max. */
typedef struct gpu_bounds {
  uint32_t x;
  double low, high;
} gpu_bounds;
int hg_gpu_is_bounded(const gpu_plan *g, uint32_t value, gpu_bounds *bounds);
/* The same with bounds -size and size, for which the target has an instruction. */
int hg_gpu_is_clamp(const gpu_plan *g, uint32_t value, uint32_t *x, double *size);

/* ---- accesses (access.c) ----------------------------------------------------------------------------------------- */

/* A fault that an instruction may have, as far as the plan knows it. */
typedef struct gpu_site {
  uint32_t insn, symbol, code;
  uint8_t kind, index_type;
  int64_t displacement;
} gpu_site;

typedef enum gpu_addressing {
  GPU_ELEMENTS,    /* elements of a buffer, of shared memory, of a constant table */
  GPU_POOL_BYTES,  /* bytes of a pool */
  GPU_TABLE_BYTES, /* bytes of an entry of a table of buffers */
  GPU_PHI_BYTES    /* bytes of the boundary pool: class, page and byte */
} gpu_addressing;

typedef enum gpu_space { GPU_GLOBAL, GPU_SHARED, GPU_CONSTANT, GPU_LIBRARY, GPU_LOCAL } gpu_space;

typedef enum gpu_check {
  GPU_PROVEN,
  GPU_LEAVE_OUT, /* predicated: if out of bounds it is skipped and a load gives 0; the fault stays pending until the
                    next NOTE_FAULTS or `notes`. So no branch stands between accesses */
  GPU_BRANCH,    /* a branch: the fault is noted at once, a load or atomic gives 0, and the lane continues behind the
                    access */
  GPU_CLAMP      /* the index is clamped to the table: functions do not read beyond their tables, so this is only a
                    safeguard */
} gpu_check;

/* A test of an access that branches. */
typedef struct gpu_test {
  gpu_site site;
  uint32_t argument; /* the argument of the access that is tested; SSA_NONE: the sum of bytes so far */
  uint64_t extent;   /* the argument must be below it or, if `site` is a misalignment, a multiple of it; 0: known at run
                        time */
  uint64_t step;     /* of GPU_PHI_BYTES: `argument` times this number of bytes is added to the sum */
} gpu_test;

typedef struct gpu_place {
  uint8_t addressing, space, check;
  uint8_t is_read_only;  /* 1: the kernel does not write that memory */
  uint8_t is_near;       /* 1: the displacement fits an instruction's offset, so that accesses can share an address */
  uint32_t index;        /* a value; SSA_NONE: 0 */
  uint8_t index_type;
  int64_t displacement;
  gpu_site site;         /* of GPU_ELEMENTS: the fault of the access */
  gpu_test test[5];      /* of the other kinds of addressing: the tests, in order */
  uint32_t test_count;
} gpu_place;

gpu_place hg_gpu_place(const gpu_plan *g, gpu_version_kind version, uint32_t value);
/* Of GPU_PHI_BYTES: the bytes of the constant arguments, with which the sum begins. */
uint32_t hg_gpu_phi_offset(const gpu_plan *g, uint32_t value);
/* The offset in bytes in the single array that holds the function library's tables: look-ups with the same index share
 * an address. */
uint32_t hg_gpu_library_offset(const gpu_plan *g, uint32_t symbol);
/* Constant tables are padded to multiples of 8 bytes. */
uint32_t hg_gpu_table_words(const atlas_symbol *table);
/* A pool's number among the program's. */
uint32_t hg_gpu_pool_number(const gpu_plan *g, uint32_t symbol);

gpu_site hg_gpu_class_site(const gpu_plan *g, uint32_t value); /* the fault of a result that is out of range */
gpu_site hg_gpu_free_site(const gpu_plan *g, uint32_t value);
gpu_site hg_gpu_trap_site(const ssa_block *block);
gpu_site hg_gpu_step_limit_site(const gpu_plan *g, uint32_t from, uint32_t to);

/* The program's only vector access with that flag if its elements have 16 bits; else SSA_NONE. */
uint32_t hg_gpu_only_access(const gpu_plan *g, uint32_t flag);
/* The run of the group that the access belongs to. */
uint32_t hg_gpu_access_run_of(const gpu_access_group *group, uint32_t value);
static inline uint32_t gpu_index_of(const gpu_plan *g, const gpu_access_group *group, const gpu_access_run *run) {
  return gpu_arg(g, group->value[run->first], 0);
}
static inline int64_t gpu_least_of(const gpu_plan *g, const gpu_access_group *group, const gpu_access_run *run) {
  return (int64_t)gpu_insn(g, group->value[run->first])->bits;
}
static inline int64_t gpu_most_of(const gpu_plan *g, const gpu_access_group *group, const gpu_access_run *run) {
  return (int64_t)gpu_insn(g, group->value[run->first + run->count - 1])->bits;
}
/* 1 if wide accesses of the run may be misaligned. */
static inline int gpu_may_be_crooked(const gpu_access_run *run) {
  return run->width > 1 && !(run->is_aligned && run->is_shared);
}
/* The runs, from r on, that are in bounds if the greatest of their 32-bit indices is: r alone, or r and the runs like
 * it. It marks them in `done` and skips runs that are marked already. Returns how many there are. */
uint32_t hg_gpu_runs_like(const gpu_plan *g, const gpu_access_group *group, uint32_t r, uint8_t *done, uint32_t *runs);

/* For a division of u32 or u64: the scalar whose reciprocal is an argument; SSA_NONE: there is none. */
uint32_t hg_gpu_divisor(const ssa_unit *unit, uint32_t value);

/* ---- control (flow.c) -------------------------------------------------------------------------------------------- */

typedef struct gpu_edge {
  uint32_t target;  /* block */
  uint32_t side;    /* which operand of the target's phis the edge selects */
  uint32_t takes_steps; /* of a back edge, if steps are counted: how many it takes; 0: none */
  int has_phis;
  int crosses;      /* 1: a phi's operand is another phi of the target, so the moves are a parallel copy */
} gpu_edge;

gpu_edge hg_gpu_edge(const gpu_plan *g, uint32_t from, int side);
/* 1 if the edge needs instructions of its own. */
static inline int gpu_has_code(const gpu_edge *edge) { return edge->takes_steps > 0 || edge->has_phis; }
/* How many steps the branch at the end of this block requires to be left; 0: it does not ask. */
uint32_t hg_gpu_asks_steps(const gpu_plan *g, uint32_t block);

/* ---- collectives (exchange.c, collective.c) ---------------------------------------------------------------------- */

static inline int gpu_is_reduction(uint16_t op) {
  return op == ATLAS_OP_reduce_add || op == ATLAS_OP_reduce_mul || op == ATLAS_OP_reduce_min ||
         op == ATLAS_OP_reduce_max;
}
static inline int gpu_is_scan(uint16_t op) { return op == ATLAS_OP_scan_incl || op == ATLAS_OP_scan_excl; }
/* 1 if the NaN of a combination of values must be made canonical; arithmetic in other types does that itself. */
static inline int gpu_combines_loosely(uint8_t type) { return type == ATLAS_f32 || type == ATLAS_f64; }
/* The bits of the identity of an operation: -0, 1, the largest, the smallest number. */
uint64_t hg_gpu_neutral(uint16_t op, uint8_t type);

#endif
