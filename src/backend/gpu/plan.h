/* plan.h - what a kernel for a GPU consists of, before any of it is text: how many lanes a thread has, which accesses
 * it makes for all of them at once, which loads share a check, what is checked where and when its fault is noted, what
 * a block does together and in which steps, where everything lies in shared memory and in the argument block.
 *
 *   gpu_plan plan;
 *   hg_status status = hg_gpu_plan(program, &unit, &target, &form, &plan);
 *   // print each gpu_step of plan.kernel, as steps.def says what it means
 *   hg_gpu_plan_release(&plan);
 *
 * A kernel is a list of steps. Where one is GPU_BODY, the program for one lane stands there: blocks in plan.order, each
 * with its own list of steps in plan.part[...], their edges as hg_gpu_edge says. There are two versions of it: in the
 * vector part accesses are in bounds, and the vectors' are done for a whole pack before and behind; outside it every
 * access that is not proven to be in bounds is checked.
 *
 * A target is described by hg_gpu_target; nothing else here depends on it. */
#ifndef HG_GPU_PLAN_H
#define HG_GPU_PLAN_H

#include "atlas/functions.h"
#include "backend/gpu/gpu.h"
#include "base/error.h"
#include "ir/ssa_order.h"

#define GPU_PHI (HG_GPU_NO_SYMBOL - 1) /* as the symbol of a fault: the boundary pool */

/* What a device can do. All zero is right for any, if slow. */
typedef struct hg_gpu_target {
  uint8_t pairs_f16, pairs_bf16; /* two f32 become a word of two such elements, and its NaNs canonical, each at once */
  uint8_t bounds;                /* one instruction keeps an f32, or pairs of f16 or bf16, between -c and c, and two
                                    keep pairs between any bounds; a NaN stays one */
  uint8_t positive_nan;          /* a NaN that f32 arithmetic makes has positive sign */
  uint8_t registers_all, registers_most; /* registers of a thread with which a multiprocessor has room for all its
                                            threads, and for three quarters of them; 0: not so, or not known */
} hg_gpu_target;

/* What bits a NaN of a value may have: the canonical ones; those of a positive NaN; any that mean nothing; the ISA's
 * own, payload and all. In this order, a choice among values has the most of theirs. */
typedef enum gpu_nan { GPU_NAN_CANONICAL, GPU_NAN_POSITIVE, GPU_NAN_LOOSE, GPU_NAN_KEPT } gpu_nan;

/* What an access that lies in the vector part is turned into: nothing; in bounds; one for all lanes of a thread. */
typedef enum gpu_access { GPU_CHECKED, GPU_PLAIN, GPU_VECTOR } gpu_access;

/* ---- accesses of all lanes of a thread --------------------------------------------------------------------------- */

enum { GPU_VECTOR_BYTES = 16, GPU_VECTOR_LANES = 8, GPU_VECTOR_WORDS = 4 };

/* Lanes_per_thread elements from the pack's first on, in words as they are in memory. */
typedef struct gpu_vector {
  uint32_t value;         /* the load or store */
  uint8_t is_load, is_read_only;
  uint8_t element_bytes, word_bytes, word_count, word_lanes; /* lanes: elements of a word */
  uint8_t rounds;         /* of a store of f16 or bf16: it rounds what lanes give from f32, two at once */
  uint8_t mends;          /* of such a store: it makes the NaNs of a word canonical */
  uint8_t gives_exact;    /* of a store: lanes give the exact bits */
  uint32_t given;         /* of a store: the value that lanes give */
  uint32_t bound;         /* of a store that rounds: a pair of numbers between which and their negatives the rounded
                             ones are kept; 0: none */
  uint32_t widened;       /* of a load of f16 or bf16: the f32 that alone is made of it; SSA_NONE */
  uint32_t kept;          /* what alone is made of that, by keeping it between bounds; SSA_NONE */
  uint32_t low, high;     /* those: pairs of them */
} gpu_vector;

/* ---- groups: loads of one lane near one another, [a + r + #0], [a + r + #1], ... --------------------------------- */

enum { GPU_MAX_GROUP = 32 };

/* One check serves them all, and neighbours become one access of `width` elements. A lane for which the check fails, or
 * whose addresses are not multiples of that, does them one by one, each with its own check. */
typedef struct gpu_group {
  uint32_t value[GPU_MAX_GROUP];    /* by displacement */
  uint32_t in_order[GPU_MAX_GROUP]; /* by their order in the program */
  uint8_t joined[GPU_MAX_GROUP];    /* by displacement: elements of the access that begins with this one; 0: it belongs
                                       to one before */
  uint32_t count;
  uint32_t width;                   /* elements of its widest access */
  uint8_t element_bytes;
  uint8_t checks_least;             /* the least displacement may be outside where the largest is not */
  uint8_t is_read_only;
  uint32_t first_step, step_count;  /* in the part: the loads one by one */
} gpu_group;

/* A wide access is of words: of so many elements. */
static inline uint32_t gpu_word_elements(const gpu_group *group) { return group->element_bytes == 2 ? 2 : 1; }

/* ---- steps ------------------------------------------------------------------------------------------------------- */

typedef enum gpu_op {
#define STEP(id, of, nest) GPU_##id,
#include "backend/gpu/steps.def"
#undef STEP
  GPU_OP_COUNT
} gpu_op;

typedef struct gpu_step {
  uint8_t op;      /* gpu_op */
  uint8_t notes;   /* of LOAD, STORE, ATOMIC and LOAD_GROUP: faults of so many accesses left out are noted before
                      anything of this one can fail */
  uint32_t value;  /* of the instruction; SSA_NONE */
  uint32_t number; /* see steps.def */
} gpu_step;

/* A version of the program for one lane. */
typedef enum gpu_part_kind { GPU_OUTSIDE, GPU_VECTOR_PART, GPU_PART_COUNT } gpu_part_kind;
typedef struct gpu_part {
  hg_array steps;   /* gpu_step */
  uint32_t *first;  /* by position in plan.order, and one more: where a block's steps begin; NULL: not used */
} gpu_part;

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

enum { GPU_PENDING = 8, GPU_SLOT_BYTES = 8, GPU_FOLD_LANES = 32 };

enum gpu_table { /* the table form */
  GPU_TABLE_ENTRIES = 65536,
  GPU_TABLE_PACK_LANES = 8, /* one access of 16 bytes */
  GPU_TABLE_PACKS = 4,      /* of a thread and piece */
  GPU_PIECE_BITS = 15,
  GPU_PIECE_LANES = HG_GPU_TABLE_THREADS * GPU_TABLE_PACKS * GPU_TABLE_PACK_LANES,
  GPU_TABLE_DRAWN = 2 * GPU_TABLE_ENTRIES /* behind the table two words, in turns: which piece is next */
};

typedef struct gpu_plan {
  const hg_allocator *allocator;
  const atlas_program *program;
  ssa_unit *unit;
  hg_gpu_target target;
  hg_gpu_form form;
  hg_gpu_info info;
  hg_analysis analysis;
  ssa_order order;

  uint32_t *numbers;           /* the memory of the next ones */
  uint32_t *vector_of;         /* per value: its number in `vector` */
  uint8_t *bits_used;          /* per float: the bits of a NaN in it can be seen (compiler/nan_bits.h) */
  uint8_t *never_nan;          /* per value: see compiler/never_nan.h */
  uint8_t *nan_blind;          /* per value: see compiler/nan_bits.h */
  uint8_t *nan;                /* per value: gpu_nan */
  uint8_t *access;             /* per value: gpu_access, of accesses in the vector part */
  uint8_t *is_late;            /* per value: a rounding that only the stores do for which it waits */
  uint8_t *in_loop;            /* per block */
  uint8_t read_only[ATLAS_MAX_SYMBOLS + 2];      /* by hg_location_of */
  uint64_t tables_used[4], library_used[4];      /* sets of constant tables: the program's, the function library's */
  uint16_t parameter_of[ATLAS_MAX_SYMBOLS];      /* 1 + index into info.parameter */

  gpu_vector *vector;          /* in the order of the program */
  uint32_t vector_count;
  hg_array group;              /* gpu_group */
  gpu_part part[GPU_PART_COUNT];
  hg_array kernel;             /* gpu_step */

  int counts_steps;
  int in_loop_of_packs;        /* a thread's packs one after the other in a loop */
  int needs_lane;              /* something asks for the number of a lane beside vector accesses */
  int can_end;                 /* lanes may end before others by trap or step limit */
  int uses_scratch;            /* reductions or scans */
  uint32_t most_registers;     /* of a thread; 0: as many as it likes */
  uint32_t shared_offset[ATLAS_MAX_SYMBOLS];
  uint32_t scratch, result, ended, ended_any, zeroed_bytes; /* in shared memory; scratch: a slot a lane; ended: a byte a
                                                               lane, 1 if it has; ended_any: a word, 1 if any has */
} gpu_plan;

/* `unit` is optimised. HG_OUT_OF_MEMORY. Release the plan whatever the result; it refers to its arguments. */
hg_status hg_gpu_plan(const atlas_program *program, ssa_unit *unit, const hg_gpu_target *target,
                      const hg_gpu_form *form, gpu_plan *plan);
void hg_gpu_plan_release(gpu_plan *plan);

static inline const ssa_insn *gpu_insn(const gpu_plan *g, uint32_t value) { return ssa_insn_at(g->unit, value); }
static inline uint32_t gpu_arg(const gpu_plan *g, uint32_t value, unsigned i) { return ssa_args_of(g->unit, value)[i]; }
static inline uint32_t gpu_bytes(const gpu_plan *g, uint32_t value) {
  return atlas_bytes((atlas_type)gpu_insn(g, value)->type);
}
static inline uint32_t gpu_flags(const gpu_plan *g, uint32_t value) {
  return atlas_op_flags(gpu_insn(g, value)->op);
}
/* An instruction that others stand for. */
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
/* The lanes of a tile. */
static inline uint32_t gpu_tile(const gpu_plan *g) { return g->info.threads * g->info.lanes_per_thread; }
static inline const gpu_group *gpu_group_at(const gpu_plan *g, uint32_t number) {
  return (const gpu_group *)g->group.data + number;
}

/* ---- values (nans.c, bounds.c) ----------------------------------------------------------------------------------- */

/* 1 if the argument may be a NaN with other bits than the ISA's, and those are asked for. */
int hg_gpu_asks_exact(const gpu_plan *g, uint32_t user, uint32_t i);

/* x < c ? x : c, or x > c ? x : c, where c is a constant, and neither zero nor NaN: a minimum or maximum that for NaN
 * gives the number as well. */
int hg_gpu_is_bound(const gpu_plan *g, uint32_t value, int *is_max);
/* An f32 x between two bounds, by min and max. */
typedef struct gpu_bounds {
  uint32_t x;
  double low, high;
} gpu_bounds;
int hg_gpu_is_bounded(const gpu_plan *g, uint32_t value, gpu_bounds *bounds);
/* The same between -size and size, if the target has an instruction for it. */
int hg_gpu_is_clamp(const gpu_plan *g, uint32_t value, uint32_t *x, double *size);

/* ---- accesses (access.c) ----------------------------------------------------------------------------------------- */

/* What is known beforehand of where a fault is found. */
typedef struct gpu_site {
  uint32_t insn, symbol, code;
  uint8_t kind, index_type;
  int64_t displacement;
} gpu_site;

typedef enum gpu_addressing {
  GPU_ELEMENTS,    /* elements of a buffer, of shared memory, of a constant table */
  GPU_POOL_BYTES,  /* bytes of a pool */
  GPU_TABLE_BYTES, /* bytes of an entry of a table of buffers */
  GPU_PHI_BYTES    /* bytes of the boundary pool: class, page, byte */
} gpu_addressing;

typedef enum gpu_space { GPU_GLOBAL, GPU_SHARED, GPU_CONSTANT, GPU_LIBRARY } gpu_space;

typedef enum gpu_check {
  GPU_PROVEN,
  GPU_LEAVE_OUT, /* not done where it would be outside: a load gives 0; the fault is noted with the next NOTE_FAULTS or
                    `notes`. Accesses then follow each other without a branch */
  GPU_BRANCH,    /* the fault is noted at once, a load or atomic gives 0, and the lane goes on behind the access */
  GPU_CLAMP      /* the index is kept inside: functions do not read past their tables, this is for safety */
} gpu_check;

/* A test of an access that branches. */
typedef struct gpu_test {
  gpu_site site;
  uint32_t argument; /* which of the access's is tested; SSA_NONE: the sum of bytes so far */
  uint64_t extent;   /* it must be below, or, of a misaligned access, be a multiple of; 0: known at run time */
  uint64_t step;     /* of GPU_PHI_BYTES: bytes for each of the argument, which the sum grows by */
} gpu_test;

typedef struct gpu_place {
  uint8_t addressing, space, check;
  uint8_t is_read_only;  /* nothing that the kernel does changes what is there */
  uint8_t is_near;       /* the displacement fits the offset of an address, so that addresses are shared */
  uint32_t index;        /* a value; SSA_NONE: 0 */
  uint8_t index_type;
  int64_t displacement;
  gpu_site site;         /* of elements that are left out or branch */
  gpu_test test[5];      /* of bytes, in order */
  uint32_t test_count;
} gpu_place;

gpu_place hg_gpu_place(const gpu_plan *g, gpu_part_kind part, uint32_t value);
/* Of GPU_PHI_BYTES: the bytes of what is constant, with which the sum begins. */
uint32_t hg_gpu_phi_offset(const gpu_plan *g, uint32_t value);
/* 1 if [x + lane + #k] with a k that the vector part may have. */
int hg_gpu_is_element(const gpu_plan *g, uint32_t value);
/* In bytes, within the one array in which the function library's tables lie, so that one address serves all that have
 * one index. */
uint32_t hg_gpu_library_offset(const gpu_plan *g, uint32_t symbol);
/* Constant tables are padded to multiples of 8 bytes. */
uint32_t hg_gpu_table_words(const atlas_symbol *table);
/* A pool's number among the program's. */
uint32_t hg_gpu_pool_number(const gpu_plan *g, uint32_t symbol);

gpu_site hg_gpu_class_site(const gpu_plan *g, uint32_t value); /* of a number that is not below its extent */
gpu_site hg_gpu_free_site(const gpu_plan *g, uint32_t value);
gpu_site hg_gpu_trap_site(const ssa_block *block);
gpu_site hg_gpu_step_limit_site(const ssa_block *block);

/* ---- control (flow.c) -------------------------------------------------------------------------------------------- */

typedef struct gpu_edge {
  uint32_t target;  /* block */
  uint32_t side;    /* which argument of its phis */
  int takes_step;   /* it closes a loop whose steps are counted */
  int has_phis;
  int crosses;      /* one phi's next value is another one: they must be moved at once */
} gpu_edge;

gpu_edge hg_gpu_edge(const gpu_plan *g, uint32_t from, int side);
/* 1 if something has to be done on the edge. */
static inline int gpu_has_code(const gpu_edge *edge) { return edge->takes_step || edge->has_phis; }

/* ---- collectives (collective.c) ---------------------------------------------------------------------------------- */

/* A NaN among several values is the canonical one: has to be seen to where arithmetic does not. */
static inline int gpu_settles(uint8_t type) { return type == ATLAS_f32 || type == ATLAS_f64; }

/* ---- between the files of the plan ------------------------------------------------------------------------------- */

hg_status hg_gpu_find_loops(gpu_plan *g, uint32_t *seen); /* also counts the steps of those whose trips are known */
uint32_t hg_gpu_shortest_way(const gpu_plan *g, uint32_t *way);
void hg_gpu_lay_out_parameters(gpu_plan *g);
void hg_gpu_lay_out_shared(gpu_plan *g);
hg_status hg_gpu_find_nans(gpu_plan *g); /* also which bits of them can be seen */
void hg_gpu_plan_vectors(gpu_plan *g, uint32_t way);
hg_status hg_gpu_list_vectors(gpu_plan *g, uint32_t *uses, uint32_t *user);
/* The element that all of `value` is: of a vector's load, which it is, widens, or keeps between bounds; else NULL. */
const gpu_vector *hg_gpu_element_of(const gpu_plan *g, uint32_t value);
void hg_gpu_plan_packs(gpu_plan *g, uint32_t way, uint32_t *room);
/* From how many lanes on the table form of this program, whose lanes come through with so many instructions, is the
 * faster one; 0: it has none. */
uint64_t hg_gpu_table_lanes(const gpu_plan *g, uint32_t instructions);
/* The only vector access with that flag, in the table form. */
uint32_t hg_gpu_only_access(const gpu_plan *g, uint32_t flag);
/* The group that begins with this load; 0: it is alone. */
int hg_gpu_find_group(const gpu_plan *g, gpu_part_kind part, uint32_t value, gpu_group *group);
hg_status hg_gpu_add_step(const gpu_plan *g, hg_array *steps, gpu_step step);
/* Several that have no number of their own. */
hg_status hg_gpu_add_steps(const gpu_plan *g, hg_array *steps, uint32_t value, const uint8_t *ops, size_t count);
#define GPU_ADD(g, steps, value, ...) \
  hg_gpu_add_steps(g, steps, value, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
hg_status hg_gpu_collective(const gpu_plan *g, uint32_t value, hg_array *steps);
hg_status hg_gpu_make_part(gpu_plan *g, gpu_part_kind kind);
hg_status hg_gpu_make_kernel(gpu_plan *g);

#endif
