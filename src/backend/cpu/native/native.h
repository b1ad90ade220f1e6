/* native.h - vector programs (vector.h) as machine code.
 *
 * A kernel is a list of steps: regions of machine code, which run over all lanes of a tile, instructions of the whole
 * block, and jumps that the block takes together. A program without instructions of the whole block is one region.
 *
 * A region works on groups of lanes: `copies` vectors of `lanes` lanes each, side by side. Its code is there twice: for
 * whole groups, where all lanes exist, and for one vector with a mask of the lanes that exist. A value of one vector
 * has `parts` registers: one for 8 to 32 bits (one 32-bit element a lane, narrow integers extended by their sign or by
 * zero, f16 and bf16 as their bits), two for 64 bits. Uniform values have one register. Predicates live in mask
 * registers where the target has them, else in vectors whose elements are all ones or zero.
 *
 * What a target does not write itself, and every case that is rare (faults), is a call of hg_native_help: it finds the
 * operands where the frame keeps them, has hg_cpu_insn do the instruction, and puts the results back. */
#ifndef HG_NATIVE_H
#define HG_NATIVE_H

#include "backend/cpu/engine/detect.h"
#include "backend/cpu/engine/engine.h"
#include "backend/cpu/native/code_pages.h"

enum {
  NATIVE_MOST_COPIES = 4,
  NATIVE_MOST_LANES = 64, /* of a group */
  NATIVE_MOST_PIECES = 2 * NATIVE_MOST_COPIES,
  NATIVE_MOST_REGISTERS = 32,
  NATIVE_MOST_FRAME_BYTES = 48 * 1024,
  NATIVE_MOST_OFFSET_LIFE = 64, /* instructions: see hg_native_is_offset */
  NATIVE_INDEX_LIMIT = 1 << 30 /* indices below it fit the 32-bit arithmetic of gathers, also after a displacement */
};

/* ---- what compiled code reads ------------------------------------------------------------------------------------ */

typedef struct native_place {
  uint8_t *memory;
  uint64_t extent; /* as in cpu_place */
  uint64_t limit;  /* the lower of extent and NATIVE_INDEX_LIMIT */
  uint64_t scalar; /* bits of a scalar parameter */
  uint64_t is_own; /* as in cpu_worker */
} native_place;

struct native_frame;

/* One run of a region: consecutive lanes. */
typedef struct native_context {
  void (*help)(struct native_frame *frame, uint64_t request); /* hg_native_help */
  int (*step)(struct native_context *context, uint32_t step); /* does an instruction of the block; 1: takes a jump */
  cpu_worker *worker;
  const struct hg_native *native;
  uint64_t lanes;           /* of the tile */
  uint8_t *rows;            /* NATIVE_ROW registers of the tile */
  uint64_t lane_in_tile;    /* of the global lane 0, modulo 2^64: add a lane's global number */
  uint64_t coordinate[ATLAS_COORD_COUNT]; /* see atlas_coord; lane.x and global.x: as lane_in_tile */
  uint64_t block_first[3];  /* coordinates of the tile's lane 0 in the grid */
  uint64_t special[4];      /* r252 (not used), r253, r254, r255 (not used) */
  uint64_t block_class, phase;
  uint64_t steps_left;      /* STEPs that no lane can run out of: what a group begins with */
  uint64_t fewest_left;     /* of the groups of a region: what they have left of that */
  uint64_t knows_steps;     /* 1: `steps` is what the group's lanes had left when machine code began to count; 0: it
                               began with all of them */
  uint64_t fast_first, fast_end; /* lanes for which every [x + lane + d] is in bounds */
  uint64_t wide_lanes;      /* see run_wide */
  uint64_t streams;         /* 1: stores pass the caches in runs that begin with a whole vector */
  uint64_t steps[NATIVE_MOST_LANES]; /* left, of the group's lanes, where lanes are counted through: see knows_steps */
  native_place place[ATLAS_MAX_SYMBOLS]; /* only as many as the program has symbols */
} native_context;

/* Runs lanes [first, end), global numbers. Below fast_end every access [x + lane + d] is known to be in bounds. */
typedef void (*native_entry)(native_context *context, uint64_t first, uint64_t end, uint64_t fast_end);

/* The stack frame of a region. Vector registers are saved at `vectors` by a call of hg_native_help. */
typedef struct native_frame {
  native_context *context;
  uint64_t lane;          /* first of the group, global */
  uint64_t end, fast_end;
  uint64_t count;         /* lanes of the group that exist */
  uint64_t copies;        /* of the code that runs: the kernel's, or 1 */
  uint64_t steps_left;    /* STEPs of the group that no lane can run out of */
  uint64_t predicates[16];/* saved mask registers */
  uint64_t spare[9];      /* the target's own */
  uint8_t vectors[];      /* at a multiple of 64 */
} native_frame;

/* ---- where values live ------------------------------------------------------------------------------------------- */

typedef enum native_kind {
  NATIVE_NOWHERE,   /* never written by code: constants, scalars, uniform specials; or not used */
  NATIVE_REGISTERS,
  NATIVE_SLOT,      /* in the frame */
  NATIVE_ROW        /* in context->rows, one element of the type's size a lane of the tile; predicates a byte. What is
                       uniform has no row: a vector is there, as in a slot, and behind it what the region in hand has
                       made of it, which becomes the value when the region's last group is done */
} native_kind;

/* Operations beside those of vector.h. LIMIT: the region that it stands in does nothing in lanes of the tile from s0
 * on, which is u32 and the same in the whole block. */
enum {
  NATIVE_LIMIT = VECTOR_END + 1,
  NATIVE_COUNT, /* a STEP of all lanes of the block, which has only these: they may run out of steps together */
  NATIVE_KNOWN, /* d = known[bits + i] in lane i: a predicate, or 32 bits */
  NATIVE_PICK   /* d = lanes of s0, of 32 bits: in lane i the one that bits 4 i to 4 i + 3 of `bits` say */
};

/* vector_reg.uniform in a program that hg_native_split has made: the same in the whole block. */
enum { NATIVE_SINGLE = 2, NATIVE_SINGLE_BYTES = 64 };

typedef struct native_home {
  uint8_t kind;
  uint8_t copies, parts;           /* 1 or the kernel's; 1 or 2 */
  uint8_t is_uniform;              /* 1: one vector, alike in all lanes, for all copies */
  uint8_t is_mask;                 /* in mask registers; in slots 8 bytes a copy */
  uint8_t reg[NATIVE_MOST_PIECES]; /* of piece copy * parts + part */
  uint32_t offset;                 /* of piece 0 in the frame (pieces follow each other), or of lane 0's element */
} native_home;

typedef enum native_step_kind { NATIVE_REGION, NATIVE_BLOCK_OP, NATIVE_BLOCK_JUMP } native_step_kind;

typedef struct native_step {
  uint8_t kind;
  uint8_t is_empty;    /* of a region: its instructions need no code */
  uint8_t is_once;     /* of a region: all of it is the same in the whole block, and may run once */
  uint32_t first, end; /* instructions */
  uint32_t target;     /* step that a jump leads to */
  uint32_t limit;      /* of a region: register; VECTOR_NONE: see NATIVE_LIMIT */
  uint32_t entry, stream_entry; /* of regions: offsets in the code */
} native_step;

/* ---- targets ----------------------------------------------------------------------------------------------------- */

struct native_build;

typedef struct native_target {
  const char *engine;      /* for launch reports: "native avx512" */
  uint8_t lanes;           /* of a vector: 32-bit elements */
  uint8_t vector_bytes;
  uint8_t vector_count;    /* registers 0.. that values may live in; the others are the target's own */
  uint8_t mask_first, mask_count; /* mask registers that values may live in; 0: predicates are vectors */
  uint8_t runs_blocks;     /* 1: writes block_entry where there are several steps */
  /* Writes build->code and the entries of the regions among the steps. HG_UNSUPPORTED, HG_OUT_OF_MEMORY. */
  hg_status (*emit)(struct native_build *build);
} native_target;

typedef struct native_build {
  hg_allocator allocator;
  const native_target *target;
  const atlas_program *program;
  const hg_vector *vector;
  native_home *homes;      /* one a register of the vector program, and one for the lanes of a group that have not
                              ended: a predicate that exists where vector->loses_lanes, and is then what VECTOR_ALL
                              stands for */
  hg_array steps;          /* native_step */
  uint32_t full_entry, full_lanes; /* the same for tiles of so many lanes, for all of which [x + lane] is in bounds;
                                      where full_lanes > 0 */
  uint32_t block_entry;    /* of code that runs all steps of a tile, as native_entry */
  uint32_t slices;         /* of a program of hg_native_wide: the block's vectors; else 0 */
  hg_array known;          /* of such a program: uint64_t, see NATIVE_KNOWN */
  uint8_t *code;           /* of the allocator */
  size_t code_bytes;
  uint32_t copies;
  uint32_t frame_bytes;    /* native_frame with its vectors and slots; a multiple of 64 */
  uint32_t row_bytes;      /* of all NATIVE_ROW registers */
  uint32_t alive_offset;   /* in the rows: where there are several regions, the lanes that have not ended */
  uint32_t coordinate_offset; /* in the rows: where code runs all steps of a tile and asks for them, coordinates in the
                              block: three rows of u32 */
  uint8_t keeps_coordinates;
  uint8_t has_rare;        /* 1: no loops: code that only lanes with a mask need is rare */
  uint8_t streams;         /* 1: whether stores of whole vectors pass the caches is a second version of each region */
} native_build;

static inline const native_home *native_home_of(const native_build *b, uint32_t reg) { return &b->homes[reg]; }

/* plan.c: steps and homes. */
hg_status hg_native_plan(native_build *build);
/* Only the steps. */
hg_status hg_native_find_steps(native_build *build);
/* unroll.c: `vector` with loops written out, where that can be; no instructions where it stays as it is. Release
 * `out` whatever the result. */
hg_status hg_native_unroll(const hg_vector *vector, hg_vector *out);
/* wide.c: `vector` as straight code for a block that has all its lanes, slices of `lanes` lanes one beside the
 * other, without barriers; no instructions where that cannot be. Release `out` and `known` (uint64_t, for
 * native_build.known) whatever the result. */
hg_status hg_native_wide(const atlas_program *program, const hg_vector *vector, uint32_t lanes, hg_vector *out,
                         hg_array *known);
/* split.c: `vector`, which is cut into `steps`, written with registers for each region. Release `out` whatever
 * the result. */
hg_status hg_native_split(const hg_vector *vector, const hg_array *steps, const hg_allocator *allocator,
                          hg_vector *out);
/* 1 if code needs to know a lane's place in the tile. */
int hg_native_uses_tile_lane(const native_build *build);

/* Steps are counted by machine code in the registers of VECTOR_STEP, and in steps_left of the frame: what that allows
 * no lane runs out of. When it is used up, hg_native_help takes the registers from what each lane has left, does the
 * STEP by the letter, and gives as many again as the lane has that has fewest. */
static inline int hg_native_counts_steps(const hg_vector *v) { return v->most_steps == UINT64_MAX; }

/* 1 if an instruction needs no code: a label, a jump of lanes that have all ended where no lane ends, a STEP before it
 * that counts nothing. */
int hg_native_is_nothing(const hg_vector *v, uint32_t insn);

/* Behind a comparison, the instruction that is `mask and comparison` or `mask and not comparison`, if nothing else
 * reads the comparison and a target with mask registers can do both at once; else NULL. The comparison lives nowhere
 * then. */
const vector_insn *hg_native_masked_use(const native_build *build, uint32_t comparison);

/* 1 if a register is blane + a constant or parameter, and nothing but an index of elements of 32 or 64 bits: the target
 * finds it at the access, and it lives nowhere. */
int hg_native_is_offset(const native_build *build, uint32_t reg);

/* 1: a coordinate of the lane, in its block or in the grid; of dimension d: the first such + d. */
static inline int hg_native_is_lane_coordinate(uint64_t coordinate) {
  return coordinate - ATLAS_COORD_LANE_X < 3 || coordinate - ATLAS_COORD_GLOBAL_X < 3;
}

/* 1 if an instruction at the end of a region moves to a row, or to what is single: see hg_native_split. */
static inline int hg_native_moves_out(const vector_insn *insn, const native_home *homes) {
  return insn->op == VECTOR_MOVE && homes[insn->d].kind == NATIVE_ROW;
}

/* Where a jump really leads: not to the question whether the loop has a lane, if it has just asked that itself. */
static inline uint32_t hg_native_target_of(const hg_vector *v, const vector_insn *jump) {
  const vector_insn *there = vector_insn_at(v, jump->target + 1);
  int is_asked = jump->op == VECTOR_JUMP_ANY && there->op == VECTOR_JUMP_NONE && there->flags & VECTOR_ENTERS &&
                 there->s[0] == jump->s[0] && jump->mask == VECTOR_ALL && there->mask == VECTOR_ALL;
  return is_asked ? jump->target + 1 : jump->target;
}

/* Called by machine code, with its frame: does an instruction for the group in hand. `request`: its number; in the
 * upper half 0 for all copies, or 1 + the number of one. */
void hg_native_help(native_frame *frame, uint64_t request);

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

typedef struct hg_native hg_native;

/* `program`, `vector` and `pages` must outlive the kernel. stream_bytes: hg_stream_threshold(). HG_UNSUPPORTED, with a
 * sentence, where this program, or this machine, is left to the tile engine; HG_OUT_OF_MEMORY. */
hg_status hg_native_compile(hg_code_pages *pages, const native_target *target, const cpu_kernels *kernels,
                            uint64_t stream_bytes, const atlas_program *program, const hg_vector *vector,
                            hg_native **out);
/* HG_OK also when lanes faulted. May be called by several threads at once. HG_UNSUPPORTED where the step limit is below
 * what the program was proven to take: see hg_native_needs_tiles. */
hg_status hg_native_launch(const hg_native *native, atlas_launch *launch);
/* 1: some launches are left to the tile engine. */
int hg_native_needs_tiles(const hg_vector *vector);
void hg_native_release(hg_native *native); /* NULL is accepted */
const char *hg_native_engine(const hg_native *native); /* a constant: "native avx512" */

/* The code, to look at, without running it on this machine; behind it that of hg_native_wide. hg_native_emit's is
 * released with hg_release. */
hg_status hg_native_emit(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                         const hg_vector *vector, uint8_t **code, size_t *byte_count);

/* A value as the registers hold it: narrow signed integers in 32 bits. */
uint64_t hg_native_widen(uint8_t type, uint64_t bits);

#endif
