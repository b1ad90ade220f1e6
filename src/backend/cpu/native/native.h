/* native.h - vector programs (vector.h) as machine code.
 *
 * A kernel is a list of steps: regions of machine code, which run over all lanes of a tile, instructions of the whole
 * block, and jumps that the block takes together. A program without instructions of the whole block is one region.
 *
 * A region works on groups of lanes: `copies` vectors of `lanes` lanes each, interleaved. Its code exists twice: for
 * full groups, all of whose lanes exist, and for the tail, one vector at a time with a mask of the lanes that exist. A
 * value of one vector has `parts` registers: one for 8 to 32 bits (one 32-bit element a lane, narrow integers extended
 * by their sign or by zero, f16 and bf16 as their bits), two for 64 bits. Uniform values have one register. Predicates
 * live in mask registers where the target has them, else in vectors whose elements are all ones or zero.
 *
 * What a target has no code for, and rare cases (faults), are calls of hg_native_help: it reads the operands where the
 * frame keeps them, has hg_cpu_insn do the instruction, and writes the results back. */
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
  NATIVE_MOST_FRAME_BYTES = 96 * 1024,
  NATIVE_LOCAL_PADDING = 16,  /* slots behind those of a block's lanes: see native_build.local_lanes */
  NATIVE_MOST_ROW_STARTS = 5, /* in registers at once, */
  NATIVE_MOST_ROWS = 16,      /* and in all */
  NATIVE_STAYS = 3, /* vector_reg.bits of a register that is short-lived, and read more often than others; straight.h
                       has more such bits */
  NATIVE_INDEX_LIMIT = 1 << 30 /* indices below it fit the 32-bit arithmetic of gathers, also after a displacement */
};

/* ---- what compiled code reads ------------------------------------------------------------------------------------ */

typedef struct native_place {
  uint8_t *memory;
  uint64_t extent; /* as in cpu_place */
  uint64_t limit;  /* the lower of extent and NATIVE_INDEX_LIMIT */
  uint64_t scalar; /* the bits, of a scalar parameter */
  uint64_t is_own; /* as in cpu_worker */
  uint64_t latest; /* u of an index blane + u in the latest block, for prefetches: any number does no harm */
} native_place;

struct native_frame;

/* One run of a region: consecutive lanes. */
typedef struct native_context {
  void (*help)(struct native_frame *frame, uint64_t request); /* hg_native_help */
  int (*step)(struct native_context *context, uint32_t step); /* does an instruction of the whole block; 1: its jump
                                                                 is taken */
  cpu_worker *worker;
  const struct hg_native *native;
  uint64_t lanes;           /* of the tile */
  uint8_t *rows;            /* NATIVE_ROW registers of the tile */
  uint64_t lane_in_tile;    /* of the global lane 0, modulo 2^64: add a lane's global number */
  uint64_t coordinate[ATLAS_COORD_COUNT]; /* see atlas_coord; lane.x and global.x: as lane_in_tile */
  uint64_t block_first[3];  /* coordinates of the tile's lane 0 in the grid */
  uint64_t special[4];      /* r252 (not used), r253, r254, r255 (not used) */
  uint64_t block_class, phase;
  uint64_t steps_left;      /* STEPs that no lane can run out of, when a group begins */
  uint64_t fewest_left;     /* the least that a group of the region has left of it */
  uint64_t knows_steps;     /* 1: `steps` is what the group's lanes had left when machine code began to count, or the
                               worker's steps those of a tile of several regions; 0: they began with all of them */
  uint64_t fast_first, fast_end; /* lanes for which every [x + lane + d] is in bounds */
  uint64_t straight_lanes;      /* see run_straight */
  uint64_t has_left;        /* why straight-line code has left the block to other code; 0: it has not */
  uint64_t checked_blocks;       /* so many blocks are such code's, before straight-line code is tried again */
  uint64_t blocks_left;     /* blocks to run, the current one included: see native_build.runs_on */
  uint64_t noted;           /* a global number: lanes of the run from there on have no fault left to note, and where
                               they fault in a loop no C code is called; UINT64_MAX: any may have */
  uint64_t has_far;         /* 1: an array has elements from NATIVE_INDEX_LIMIT on, which only C code accesses */
  uint64_t streams;         /* 1: stores pass the caches in runs of lanes that begin with a full vector */
  const atomic_uint *cancels; /* a loop that may take long leaves the code when this is not cancel_number */
  uint64_t cancel_number;
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

typedef enum native_location_kind {
  NATIVE_NOWHERE,   /* never written by code: constants, scalars, uniform specials; or not used */
  NATIVE_REGISTERS,
  NATIVE_SLOT,      /* a spill slot of the frame */
  NATIVE_ELEMENTS,  /* where it was loaded from: see hg_native_is_element */
  NATIVE_ROW        /* in context->rows, one element of the type's size a lane of the tile; predicates a byte. A uniform
                       value has no row but two vectors, as in slots: its value, and the one that the current region
                       computes, which replaces it when the region's last group is done */
} native_location_kind;

/* Operations beside those of vector.h. */
enum {
  NATIVE_ACTIVE_LANES =
      VECTOR_END + 1, /* its region does nothing in lanes of the tile from s0 on: u32, block-uniform */
  NATIVE_COUNT, /* a STEP of all lanes of the block, which has only such STEPs: all may run out of steps together */
  NATIVE_CONST_LANES, /* d = known[bits + i] in lane i: a predicate, or 32 bits */
  NATIVE_PERMUTE,     /* d = lanes of s0, of 32 bits: in lane i the one that bits 4 i to 4 i + 3 of `bits` say */
  NATIVE_SHIFT, /* d = in lane i, lane i - n of s0, or where there is none lane i - n + lanes of s1; n: `bits`, 1, 2, 4
                   or 8, and less than a vector's lanes. Of 32 bits, or 64 */
  NATIVE_ROUND, /* d = s0 of f32, rounded to the type that `bits` says, f16 or bf16, and f32 again; s0 is a sum or
                   product of numbers of that type */
  NATIVE_RECIPROCAL, /* d = 1 / s0 of f32, or a NaN where NATIVE_QUOTIENT shall divide */
  NATIVE_QUOTIENT,   /* d = s0 / s1 of f32, a NaN made canonical; s2: the NATIVE_RECIPROCAL of s1 */
  NATIVE_GUARD_LOOP, /* of loads of `symbol` that follow, with an index sum of s1, which is uniform: none has a first
                 lane with a higher sum than that of s0's and s1, and a displacement above `bits` */
  NATIVE_BAIL_IF, /* if s0, a predicate, holds in any lane, the block, of which nothing is stored, is left to other code
                   */
  NATIVE_TOUCH, /* behind the NATIVE_GUARD_RANGE of this symbol and s0: reads the elements from vector `slice` on up to
                   `bits` from s0 on, for nothing but that they are in the cache then, and what follows on its way
                   there; nothing else asks for elements of this row ahead. With `slice` VECTOR_NONE those of the next
                   row, if the buffer is large; where it is, one with another `slice` than 0 is left out */
  NATIVE_GUARD_RANGE /* of `symbol`: the elements up to `bits` from s0 on, which is uniform, or from 0 on, are in
                   bounds; or the block, of which nothing is stored, is left to other code. VECTOR_CONTIGUOUS: it
                   accesses all of them; NATIVE_STORED: it stores some. With s1, a scalar: up to `bits` and s1, and s2
                   is s1 + 1, of NATIVE_TAILs */
};

enum {
  NATIVE_OUT_OF_BOUNDS = 1,
  NATIVE_IS_RARE = 2
};                                /* by a NATIVE_GUARD_RANGE, a NATIVE_BAIL_IF: native_context.has_left */
enum { NATIVE_STORED = 1 << 15 }; /* a flag of NATIVE_GUARD_RANGE */
/* A flag of an access by the lane's number plus the same, under a mask that no lane from s3 on has; s2 and s3 are u32
 * scalars. It may be done only where s3 is s2 + 1, and in bounds up to lane s2. */
enum { NATIVE_TAIL = VECTOR_EXTRA };
enum { NATIVE_GUARDED = 1 << 13 }; /* a flag of accesses: they are VECTOR_IN_BOUNDS behind a NATIVE_GUARD_RANGE */

/* vector_reg.uniform in a program of regions (split.c): the same value in the whole block, whichever group of
 * lanes computes it. */
enum { NATIVE_BLOCK_UNIFORM = 2, NATIVE_BLOCK_UNIFORM_BYTES = 64 };

typedef struct native_location {
  uint8_t kind;
  uint8_t copies;                  /* 1, or the kernel's */
  uint8_t parts;                   /* 1 or 2 */
  uint8_t is_uniform;              /* 1: one vector, the same in all lanes, for all copies */
  uint8_t is_mask;                 /* in mask registers; in slots 8 bytes a copy */
  uint8_t reg[NATIVE_MOST_PIECES]; /* of piece copy * parts + part */
  uint32_t offset;                 /* of piece 0 in the frame (pieces follow each other), or of lane 0's element */
} native_location;

typedef enum native_step_kind { NATIVE_REGION, NATIVE_BLOCK_OP, NATIVE_BLOCK_JUMP } native_step_kind;

typedef struct native_step {
  uint8_t kind;
  uint8_t is_empty;    /* of a region: its instructions need no code */
  uint8_t is_once;     /* of a region: all of its values are block-uniform: it may run once */
  uint32_t first, end; /* instructions */
  uint32_t target;     /* step that a jump leads to */
  uint32_t limit;      /* of a region: register; VECTOR_NONE: see NATIVE_ACTIVE_LANES */
  uint32_t entry, stream_entry; /* of regions: offsets in the code */
} native_step;

/* ---- targets ----------------------------------------------------------------------------------------------------- */

struct native_build;
typedef struct native_visitor native_visitor;

typedef struct native_target {
  const char *engine;      /* for launch reports: "native avx512" */
  uint8_t lanes;           /* of a vector: 32-bit elements */
  uint8_t vector_bytes;
  uint8_t vector_count;    /* registers 0.. that values may live in; the others are the target's own */
  uint8_t mask_first, mask_count; /* mask registers that values may live in; 0: predicates are vectors */
  uint8_t runs_blocks;     /* 1: writes block_entry for programs of several steps */
  uint8_t has_quotients;   /* 1: writes NATIVE_QUOTIENT */
  uint8_t address_count;   /* general registers for addresses of buffers and for row starts */
  uint8_t has_quick_loops; /* 1: writes loops over memory twice: see hg_native_find_loop */
  /* Writes build->code and the entries of the regions among the steps. HG_UNSUPPORTED, HG_OUT_OF_MEMORY. */
  hg_status (*emit)(struct native_build *build);
} native_target;

/* ---- passes (passes.def) ----------------------------------------------------------------------------------------- */

/* NATIVE_<stage>_<id> */
typedef enum native_pass {
#define PASS(id, stage, ranges, purpose) NATIVE_##stage##_##id,
#include "backend/cpu/native/passes.def"
#undef PASS
  NATIVE_PASSES
} native_pass;

/* ---- builds ------------------------------------------------------------------------------------------------------ */

typedef struct native_stack_shape { uint32_t x, y; } native_stack_shape; /* blocks that run together */

typedef struct native_build {
  hg_allocator allocator;
  const native_target *target;
  const atlas_program *program;
  const hg_vector *vector;

  /* The plan (native_plan.h). */
  native_location *locations; /* per register of the vector program; and one more, for the predicate of the group's
                                 lanes that have not ended: it exists where vector->loses_lanes, and VECTOR_ALL stands
                                 for it then */
  hg_array steps;             /* native_step */
  uint32_t copies;
  uint32_t frame_bytes;       /* native_frame with its vectors and slots; a multiple of 64 */
  uint32_t scalar_offset;     /* in the frame: of the numbers of a quick loop that have no registers; 0: no loops */
  uint8_t has_cold;           /* 1: no loops: code that only masked lanes need is cold */

  /* Rows of a tile: native_context.rows. */
  uint32_t row_bytes;         /* of all NATIVE_ROW registers */
  uint32_t alive_offset;      /* where there are several regions: the row of lanes that have not ended */
  uint32_t coordinate_offset; /* where block_entry's code reads them: a lane's coordinates in the block, three rows of
                                 u32 */
  uint8_t keeps_coordinates;  /* 1: it does */

  /* Local arrays: see cpu_launch.local_lanes. Where there are several regions a lane's slot is its number in the tile,
   * and vectors may reach beyond the last one's; else its number in the group, whose code clears the arrays first. */
  uint32_t local_bytes, local_lanes;

  /* Of a program of several regions: two registers of f32, u32 and i32 each, which no instruction names. */
  uint32_t temporaries;

  const native_visitor *visitor; /* or NULL */
  uint32_t fired[NATIVE_PASSES]; /* per pass: how often it has done what it is for */

  /* Of straight-line code for blocks. */
  uint32_t slices;            /* a block's vectors; 0: another program */
  native_stack_shape shape;   /* the slices of a block follow those of the one before along x, then along y, and so
                                 does its shared memory */
  uint8_t has_tails;          /* 1: it may have NATIVE_TAILs; then, if it has */
  hg_array known;             /* uint64_t: see NATIVE_CONST_LANES */

  uint32_t row_start[NATIVE_MOST_ROWS]; /* registers that rows begin at, block-uniform, and that are kept in a general
                                           register as well, from a NATIVE_GUARD_RANGE of each on */
  uint8_t row_start_number[NATIVE_MOST_ROWS]; /* that register's, which other parts of the program have for others */
  uint32_t row_start_count, row_start_registers;
  uint32_t first_part;        /* the first label or jump, or the program's end: up to it no number is shared */
  uint8_t runs_on;            /* 1: its code runs blocks_left blocks along x, one after the other; it never calls C */
  uint8_t has_bases;          /* 1: general registers have the addresses of all buffers and shared arrays */

  /* The code. */
  uint8_t *code;              /* of the allocator */
  size_t code_bytes;
  size_t insn_bytes;          /* of them: instructions; behind these lie constants */
  uint32_t first_call, last_call; /* instructions that the code leaves to hg_native_help, by number + 1; 0: none */
  uint32_t stored_bytes;      /* a lane: by stores that may pass the caches */
  uint32_t moved_bytes;       /* a lane: by loads and stores of its elements */
  uint8_t streams;            /* 1: each region has a second version, whose stores of full vectors pass the caches */
  uint32_t block_entry;       /* offset of code that runs all steps of a tile, as native_entry */
  uint8_t has_straight;           /* 1: straight-line code runs those of the blocks that full_entry would be for */
  uint32_t full_entry, full_lanes; /* the same for blocks of native_block, full_lanes lanes that all have [x + lane]
                                      in bounds; full_lanes 0: there is none */
} native_build;

static inline const native_location *native_location_of(const native_build *b, uint32_t reg) {
  return &b->locations[reg];
}

/* The blocks that code for blocks with all their lanes is for: the program's, or where it has none those that linear
 * launches have. */
static inline const uint32_t *native_block(const atlas_program *program) {
  static const uint32_t linear[3] = {ATLAS_LINEAR_BLOCK_LANES, 1, 1};
  return program->block[0] != 0 ? program->block : linear;
}

/* plan.c: steps, and locations. */
hg_status hg_native_plan(native_build *build);
/* The slot of a local array that the first lane of a group has is its number in the tile, not 0. */
static inline int hg_native_has_tile_slots(const native_build *b) { return b->steps.count > 1; }
/* The code leaves an instruction to hg_native_help, whenever it gets there. */
static inline void hg_native_note_call(native_build *b, uint32_t insn) {
  if (b->first_call == 0 || insn < b->first_call) b->first_call = insn + 1;
  if (insn >= b->last_call) b->last_call = insn + 1;
}
/* steps.c: only the steps. */
hg_status hg_native_find_steps(native_build *build);
/* 1 if a register of such a program is written again in each round of a loop; others are written once. */
int hg_straight_is_loop_carried(const hg_vector *v, uint32_t reg);
/* range_guards.c: the number of a row start; NATIVE_MOST_ROW_STARTS: it is none. */
uint32_t hg_native_row_start(const native_build *build, uint32_t added);
/* 1 if a register is loaded from elements that are in bounds, side by side, at an address that general registers have,
 * and that nothing writes: rather than spilled it may be read there again. */
int hg_native_is_element(const native_build *build, uint32_t reg);
/* 1 if a register of a block's straight-line code is a sum of a vector of consecutive numbers and a uniform number,
 * both of u32, which is the index of the load that follows, and nothing else: it has no location, and the load adds
 * them up. */
int hg_native_is_index_sum(const hg_vector *v, uint32_t reg);
/* 1 if code needs a lane's number in the tile. */
int hg_native_uses_tile_lane(const native_build *build);

/* Machine code counts steps up in the registers of VECTOR_STEP, and down in steps_left of the frame: STEPs that no lane
 * can run out of. At 0, hg_native_help subtracts the registers from what each lane has left, does that STEP exactly,
 * and sets steps_left to what the lane has left that has fewest. */
static inline int hg_native_counts_steps(const hg_vector *v) { return v->most_steps == UINT64_MAX; }

/* 1 if code looks each time around a loop whether the launch is cancelled. Others take few steps, and the engine looks
 * between tiles. */
int hg_native_takes_long(const hg_vector *v);
/* Per instruction: 1 if it does where this label is, or behind this test of a header, at which such a loop goes on. */
void hg_native_find_polls(const hg_vector *v, uint8_t *polls);

/* Per instruction: 1 if it is in a loop, of a region or of steps: where it faults it is likely to fault again. */
void hg_native_find_repeated(const hg_vector *v, uint8_t *repeated);

/* 1 if an instruction needs no code: a label; where no lane ends, a jump that is taken when all lanes have ended; a
 * STEP that counts nothing. */
int hg_native_needs_no_code(const hg_vector *v, uint32_t insn);

/* After a comparison, the instruction that is `mask and comparison`, `mask and not comparison` or `mask or comparison`,
 * if nothing else reads the comparison and a target with mask registers can do both at once; else NULL. The comparison
 * has no location then. */
const vector_insn *hg_native_masked_use(const native_build *build, uint32_t comparison);

/* Per register: the only instruction that writes it; VECTOR_NONE: none, VECTOR_ALL: several. */
void hg_native_find_writers(const hg_vector *vector, uint32_t *writer);

typedef struct native_pattern { /* an index that is in each lane of a vector that of its lane 0, and more: */
  uint32_t place[NATIVE_MOST_LANES]; /* less than a vector's lanes */
  uint64_t highest;                  /* in the block */
} native_pattern;

/* lane_values.c: 1 if a register is such an index, with the same pattern in all vectors of the block. Vectors must not
 * cross rows of lanes. */
int hg_native_find_pattern(const native_build *build, const uint32_t *writer, uint32_t r, native_pattern *window);

/* 1 if a register of a block's straight-line code is one element of shared memory for all lanes, and one operation on
 * f32 reads it while it is still there: a target with mask registers has it as an operand, and it has no location. */
int hg_native_is_operand(const native_build *build, uint32_t reg);

static inline int hg_native_is_blane(const hg_vector *v, uint32_t r) {
  if (r >= VECTOR_ALL) return 0;
  const vector_reg *reg = vector_reg_at(v, r);
  return reg->kind == VECTOR_SPECIAL && reg->bits == ATLAS_REG_BLOCK_LANE;
}

/* The other operand of an addition to blane; VECTOR_NONE: the instruction is none. */
static inline uint32_t hg_native_added_to_lane(const hg_vector *v, const vector_insn *insn) {
  if (insn->op != ATLAS_OP_add || insn->type != ATLAS_u32) return VECTOR_NONE;
  for (int k = 0; k < 2; k++)
    if (hg_native_is_blane(v, insn->s[k])) return insn->s[!k];
  return VECTOR_NONE;
}

/* 1 if an index, which the instruction `writer` writes, is blane + *added (a register; VECTOR_NONE: none) + *more. */
static inline int hg_native_find_row(const hg_vector *v, uint32_t index, uint32_t writer, uint32_t *added,
                                     uint64_t *more) {
  *added = VECTOR_NONE;
  *more = 0;
  if (hg_native_is_blane(v, index)) return 1;
  if (writer >= VECTOR_ALL || vector_insn_at(v, writer)->mask != VECTOR_ALL) return 0;
  *added = hg_native_added_to_lane(v, vector_insn_at(v, writer));
  if (*added == VECTOR_NONE || vector_reg_at(v, *added)->kind != VECTOR_CONSTANT) return *added != VECTOR_NONE;
  *more = vector_reg_at(v, *added)->bits;
  *added = VECTOR_NONE;
  return 1;
}

/* 1 for a load in all lanes, by an index, of elements side by side that nothing writes. */
static inline int hg_native_is_row_load(const vector_insn *insn) {
  const uint32_t needs = VECTOR_CONTIGUOUS | VECTOR_READ_ONLY;
  if (!vector_is_primitive(insn->op) || insn->mask != VECTOR_ALL || insn->mode != ATLAS_ADDRESS_INDEXED) return 0;
  if ((atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != ATLAS_LOAD) return 0;
  return (insn->flags & (needs | VECTOR_LANE | VECTOR_SAME)) == needs;
}

/* 1: a register that is the lane's number, in the launch or in its block. */
static inline int hg_native_is_lane_number(const vector_reg *r) {
  return r->kind == VECTOR_SPECIAL && (r->bits == ATLAS_REG_LANE || r->bits == ATLAS_REG_BLOCK_LANE);
}

/* 1 if a source is the same in all lanes of a block: it is none, no instruction writes it and it is no lane's number,
 * or, of those that instructions write, `alike` has a 1 for it. */
static inline int hg_native_is_alike(const hg_vector *v, uint32_t r, const uint8_t *alike) {
  if (r >= VECTOR_ALL) return r == VECTOR_NONE;
  const vector_reg *reg = vector_reg_at(v, r);
  return reg->kind == VECTOR_VARIES ? alike[r] : !hg_native_is_lane_number(reg);
}

/* 1: a coordinate of the lane, in its block or in the grid (x, y and z have consecutive numbers). */
static inline int hg_native_is_lane_coordinate(uint64_t coordinate) {
  return coordinate - ATLAS_COORD_LANE_X < 3 || coordinate - ATLAS_COORD_GLOBAL_X < 3;
}

/* 1 if an instruction at the end of a region stores a live-out value: to a row, or as block-uniform (split.c).
 */
static inline int hg_native_is_live_out_move(const vector_insn *insn, const native_location *locations) {
  return insn->op == VECTOR_MOVE && locations[insn->d].kind == NATIVE_ROW;
}

/* Jump threading: a back edge that has just tested whether the loop has a lane leads past the header's own test. */
static inline uint32_t hg_native_target_of(const hg_vector *v, const vector_insn *jump) {
  const vector_insn *there = vector_insn_at(v, jump->target + 1);
  int is_asked = jump->op == VECTOR_JUMP_ANY && there->op == VECTOR_JUMP_NONE && there->flags & VECTOR_ENTERS &&
                 there->s[0] == jump->s[0] && jump->mask == VECTOR_ALL && there->mask == VECTOR_ALL;
  return is_asked ? jump->target + 1 : jump->target;
}

/* Called by machine code, with its frame: does an instruction for the current group. `request`: its number; in the
 * upper half 0 for all copies, or 1 + the number of one. */
void hg_native_help(native_frame *frame, uint64_t request);
/* Sets native_context.noted: with each run of lanes, and when C code may have noted a fault. */
void hg_native_find_noted(native_context *context);

/* 1 if a store may pass the caches: one of the lane's element by all lanes. */
static inline int hg_native_may_pass_caches(const vector_insn *insn) {
  int is_store = insn->flags & VECTOR_LANE && atlas_op_flags(insn->op) & ATLAS_STORE;
  return is_store && atlas_bytes((atlas_type)insn->type) >= 4 && insn->mask == VECTOR_ALL;
}

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
const char *hg_native_notes(const hg_native *native);  /* hg_compiled.notes */

/* One version of a kernel's code, when it is written: "steps" runs any launch, "whole" blocks that have all their
 * lanes, "several" as many of those at once. The build is the caller's for as long as the call lasts. `after`, which
 * may be NULL, sees what each pass has left of a program, also of versions that turn out to be impossible; has_ranges:
 * its live ranges are right. */
struct native_visitor {
  hg_status (*visit)(void *context, const char *version, const native_build *build);
  hg_status (*after)(void *context, const native_build *build, const hg_vector *v, const char *pass,
                     int has_ranges);
  void *context;
};

/* Makes each version for a visitor who counts what is in it: also for other machines, and nothing is kept. */
hg_status hg_native_versions(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                             const hg_vector *vector, const native_visitor *visitor);

/* The code as bytes, also for other machines, followed by that for whole blocks. Release it with hg_release. */
hg_status hg_native_emit(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                         const hg_vector *vector, uint8_t **code, size_t *byte_count);

/* A value as the registers hold it: narrow signed integers in 32 bits. */
uint64_t hg_native_widen(uint8_t type, uint64_t bits);

#endif
