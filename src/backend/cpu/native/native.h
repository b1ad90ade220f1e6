/* native.h - machine code for vector programs (vector.h).
 *
 * A kernel is a list of steps: regions of machine code, which run over all lanes of a tile; instructions of the whole
 * block; and jumps that the block takes together. A program without instructions of the whole block is one region.
 *
 * A region works on groups of lanes: `copies` interleaved vectors of `lanes` lanes each. Its code exists twice: for
 * full groups, all of whose lanes exist, and for the tail, one vector at a time with a mask of the lanes that exist. A
 * value of one vector has `parts` registers: one for 8 to 32 bits (one 32-bit element a lane; narrow integers are
 * extended by their sign or by zero, f16 and bf16 are kept as their bits), two for 64 bits. Uniform values have one
 * register. Predicates live in mask registers if the target has them, else in vectors whose elements are all ones or
 * zero.
 *
 * Instructions without code for the target, and rare cases (faults), are calls of hg_native_help: it reads the operands
 * from where the frame keeps them, has hg_cpu_insn run the instruction, and writes the results back. */
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
  NATIVE_STAYS = 3, /* vector_reg.bits of a register that is short-lived and read more often than others; straight.h has
                       more such bits */
  NATIVE_INDEX_LIMIT = 1 << 30 /* indices below it fit the 32-bit arithmetic of gathers, also with a displacement
                                  added */
};

/* ---- what compiled code reads ------------------------------------------------------------------------------------ */

typedef struct native_place {
  uint8_t *memory;
  uint64_t extent; /* as in cpu_binding */
  uint64_t limit;  /* the lower of extent and NATIVE_INDEX_LIMIT */
  uint64_t scalar; /* the bits, of a scalar parameter */
  uint64_t is_own; /* as in cpu_worker */
  uint64_t latest; /* the u of an index blane + u in the latest block, for prefetches; a wrong one does no harm */
} native_place;

struct native_frame;

/* One run of a region over consecutive lanes. */
typedef struct native_context {
  void (*help)(struct native_frame *frame, uint64_t request); /* hg_native_help */
  int (*step)(struct native_context *context, uint32_t step); /* runs an instruction of the whole block; 1: its jump is
                                                                 taken */
  cpu_worker *worker;
  const struct hg_native *native;
  uint64_t lanes;           /* of the tile */
  uint8_t *rows;            /* NATIVE_ROW registers of the tile */
  uint64_t lane_in_tile;    /* of the global lane 0, modulo 2^64: add a lane's global number */
  uint64_t coordinate[ATLAS_COORD_COUNT]; /* see atlas_coord; lane.x and global.x: as lane_in_tile */
  uint64_t block_first[3];  /* coordinates of the tile's lane 0 in the grid */
  uint64_t special[4];      /* r252 (not used), r253, r254, r255 (not used) */
  uint64_t block_class, phase;
  uint64_t steps_left;      /* when a group begins: STEPs that every lane can still take */
  uint64_t fewest_left;     /* the least value that steps_left of any group of the region ends with */
  uint64_t knows_steps;     /* 1: `steps` holds what the group's lanes had left when machine code began to count, or
                               the worker's steps hold it for a tile of several regions; 0: they began with the whole
                               limit */
  uint64_t fast_first, fast_end; /* lanes for which every [x + lane + d] is in bounds */
  uint64_t straight_lanes;      /* see run_straight */
  uint64_t has_left;        /* why straight-line code has left the block to other code; 0: it has not left */
  uint64_t checked_blocks;       /* after a bail-out, run this many blocks in other code before straight-line code is
                                    tried again */
  uint64_t blocks_left;     /* blocks to run, including the current one: see native_build.runs_on */
  uint64_t noted;           /* a global number: the lanes from there on have noted their faults already, so a fault of
                               theirs in a loop calls no C code; UINT64_MAX: any lane may have one to note */
  uint64_t has_far;         /* 1: an array has elements from NATIVE_INDEX_LIMIT on, which only C code can access */
  uint64_t streams;         /* 1: stores bypass the caches in runs of lanes that begin with a full vector */
  const atomic_uint *cancels; /* a loop that may take long leaves the code if this differs from cancel_number */
  uint64_t cancel_number;
  uint64_t steps[NATIVE_MOST_LANES]; /* the steps that each lane of the group has left, if lanes are counted one by one:
                                        see knows_steps */
  native_place place[ATLAS_MAX_SYMBOLS]; /* only as many as the program has symbols */
} native_context;

/* Runs lanes [first, end), which are global numbers. Every access [x + lane + d] of lanes below fast_end is in
 * bounds. */
typedef void (*native_entry)(native_context *context, uint64_t first, uint64_t end, uint64_t fast_end);

/* The stack frame of a region. A call of hg_native_help saves the vector registers at `vectors`. */
typedef struct native_frame {
  native_context *context;
  uint64_t lane;          /* first of the group, global */
  uint64_t end, fast_end;
  uint64_t count;         /* lanes of the group that exist */
  uint64_t copies;        /* of the code that is running: the kernel's copies, or 1 */
  uint64_t steps_left;    /* STEPs that every lane of the group can still take */
  uint64_t predicates[16];/* saved mask registers */
  uint64_t spare[9];      /* the target's own */
  uint8_t vectors[];      /* at a multiple of 64 */
} native_frame;

/* ---- where values live ------------------------------------------------------------------------------------------- */

typedef enum native_location_kind {
  NATIVE_NOWHERE,   /* no code writes it: a constant, a scalar, a uniform special register; or it is not used */
  NATIVE_REGISTERS,
  NATIVE_SLOT,      /* a spill slot of the frame */
  NATIVE_ELEMENTS,  /* the memory that it was loaded from: see hg_native_is_element */
  NATIVE_ROW        /* in context->rows: one element of the type's size for each lane of the tile, a byte for
                       predicates. A uniform value has two vectors instead, as in slots: its value, and the one that the
                       current region computes, which replaces it after the region's last group */
} native_location_kind;

/* Operations beside those of vector.h. */
enum {
  NATIVE_ACTIVE_LANES =
      VECTOR_END + 1, /* its region has no effect in lanes of the tile from s0 on, which is u32 and block-uniform */
  NATIVE_COUNT, /* a STEP of all lanes of a block whose STEPs are all of this kind, so that all lanes run out
                   together */
  NATIVE_CONST_LANES, /* d = known[bits + i] in lane i: a predicate, or 32 bits */
  NATIVE_PERMUTE,     /* d = a permutation of the lanes of s0, of 32 bits: lane i takes the lane that bits 4 i to 4 i +
                         3 of `bits` name */
  NATIVE_SHIFT, /* d = in lane i, lane i - n of s0 or, if i < n, lane i - n + lanes of s1; n is `bits`: 1, 2, 4 or 8,
                   and less than a vector's lanes. Of 32 or 64 bits */
  NATIVE_ROUND, /* d = s0 of f32 rounded to the type that `bits` names, f16 or bf16, and widened again; s0 is a sum or
                   product of numbers of that type */
  NATIVE_RECIPROCAL, /* d = 1 / s0 of f32, or a NaN if NATIVE_QUOTIENT has to divide */
  NATIVE_QUOTIENT,   /* d = s0 / s1 of f32, with a canonical NaN; s2: the NATIVE_RECIPROCAL of s1 */
  NATIVE_GUARD_LOOP, /* range guard: the first lanes of the loads of `symbol` below, by index sums with s1 (uniform),
                        have indices up to s0 + s1 + `bits`; if that is out of bounds, run the second copy of the code
                        up to the last of these loads, which checks each */
  NATIVE_BAIL_IF, /* bails out to other code if the predicate s0 holds in any lane; the block has stored nothing yet */
  NATIVE_TOUCH, /* reads elements of a row only to bring them into the cache: from vector `slice` up to `bits` elements
                   from s0 on, and the next row's on the way there. It follows the NATIVE_GUARD_RANGE of this symbol and
                   s0; nothing else prefetches this row. With `slice` VECTOR_NONE: those of the next row, if the buffer
                   is large; then one with a `slice` other than 0 is left out */
  NATIVE_GUARD_RANGE /* range guard: the elements of `symbol` up to `bits` from s0 (uniform; or from 0) are in bounds;
                        otherwise bail out to other code: the block has stored nothing yet. VECTOR_CONTIGUOUS: all of
                        these elements are accessed; NATIVE_STORED: some are stored. With s1, a scalar: up to s1 and
                        `bits`, and s2 is s1 + 1, as NATIVE_TAILs need */
};

enum {
  NATIVE_OUT_OF_BOUNDS = 1,
  NATIVE_IS_RARE = 2
};                                /* the values of native_context.has_left: left by a NATIVE_GUARD_RANGE, a
                                     NATIVE_BAIL_IF */
enum { NATIVE_STORED = 1 << 15 }; /* a flag of NATIVE_GUARD_RANGE */
/* A flag of an access to u plus the lane's number under a mask that is false from lane s3 on; s2 and s3 are u32
 * scalars. The access may run only if s3 is s2 + 1 and lane s2 is in bounds. */
enum { NATIVE_TAIL = VECTOR_EXTRA };
enum { NATIVE_GUARDED = 1 << 13 }; /* a flag of accesses: a NATIVE_GUARD_RANGE before them makes them
                                      VECTOR_IN_BOUNDS */

/* vector_reg.uniform in a program of regions (split.c): one value in the whole block, whichever group of lanes computes
 * it. */
enum { NATIVE_BLOCK_UNIFORM = 2, NATIVE_BLOCK_UNIFORM_BYTES = 64 };

typedef struct native_location {
  uint8_t kind;
  uint8_t copies;                  /* 1, or the kernel's */
  uint8_t parts;                   /* 1 or 2 */
  uint8_t is_uniform;              /* 1: one vector with the same value in all lanes, for all copies */
  uint8_t is_mask;                 /* in mask registers; a slot has 8 bytes a copy */
  uint8_t reg[NATIVE_MOST_PIECES]; /* of piece copy * parts + part */
  uint32_t offset;                 /* in the frame: of piece 0 (the others follow), or of lane 0's element */
} native_location;

typedef enum native_step_kind { NATIVE_REGION, NATIVE_BLOCK_OP, NATIVE_BLOCK_JUMP } native_step_kind;

typedef struct native_step {
  uint8_t kind;
  uint8_t is_empty;    /* of a region: none of its instructions needs code */
  uint8_t is_once;     /* of a region: it computes only block-uniform values, so one group may run it for all */
  uint32_t first, end; /* instructions */
  uint32_t target;     /* the step that a jump leads to */
  uint32_t limit;      /* of a region: the register of its NATIVE_ACTIVE_LANES; VECTOR_NONE: none */
  uint32_t entry, stream_entry; /* of regions: offsets in the code */
} native_step;

/* ---- targets ----------------------------------------------------------------------------------------------------- */

struct native_build;
typedef struct native_visitor native_visitor;

typedef struct native_target {
  const char *engine;      /* for launch reports: "native avx512" */
  uint8_t lanes;           /* of a vector: 32-bit elements */
  uint8_t vector_bytes;
  uint8_t vector_count;    /* registers 0.. that may hold values; the others are the target's own */
  uint8_t general_count;   /* of a target of one lane: general registers that may hold values, which only floats of 32
                              and 64 bits do in the others; native_location.reg numbers them from vector_count on */
  uint8_t mask_first, mask_count; /* the mask registers that may hold values; 0: predicates are vectors */
  uint8_t runs_blocks;     /* 1: it writes a block_entry for programs of several steps */
  uint8_t has_quotients;   /* 1: it has code for NATIVE_QUOTIENT */
  uint8_t address_count;   /* general registers for addresses of buffers and for row starts */
  uint8_t has_invariants;  /* 1: it runs native_build.invariants once, before the first group of a run */
  uint8_t has_quick_loops; /* 1: it writes loops over memory twice: see hg_native_find_loop */
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

typedef struct native_stack_shape { uint32_t x, y; } native_stack_shape; /* the size of a stack in blocks */

typedef struct native_build {
  hg_allocator allocator;
  const native_target *target;
  const atlas_program *program;
  const hg_vector *vector;

  /* The plan (native_plan.h). */
  native_location *locations; /* per register of the vector program, and one more for the predicate of the group's
                                 lanes that have not ended. That one exists if vector->loses_lanes; VECTOR_ALL names
                                 it then */
  hg_array steps;             /* native_step */
  uint32_t copies;
  uint32_t frame_bytes;       /* native_frame with its vectors and slots; a multiple of 64 */
  uint32_t scalar_offset;     /* in the frame: the numbers of a quick loop that have no register; 0: there are none */
  uint8_t has_cold;           /* 1: the program has no loops, so code that only masked lanes need is cold */

  /* Rows of a tile: native_context.rows. */
  uint32_t row_bytes;         /* of all NATIVE_ROW registers */
  uint32_t alive_offset;      /* with several regions: the row of lanes that have not ended */
  uint32_t coordinate_offset; /* where block_entry's code reads the lanes' coordinates in the block: three rows of
                                 u32 */
  uint8_t keeps_coordinates;  /* 1: it reads them */

  /* Local arrays: see cpu_launch.local_lanes. With several regions, a lane's slot is its number in the tile, and
   * vectors may reach beyond the last slot; else it is its number in the group, whose code clears the arrays first. */
  uint32_t local_bytes, local_lanes;

  /* Of a program of several regions: two registers each of f32, u32 and i32, which no instruction names. */
  uint32_t temporaries;

  const native_visitor *visitor; /* or NULL */
  uint32_t invariants;   /* instructions behind the first one that run once: see run_invariants.c */
  uint32_t row_length;   /* of the version for lanes in rows: the parameter with their length: see lane_rows.c */
  uint32_t group_checks; /* accesses with one comparison for the lanes of a group: x86/group_access.c */
  uint32_t fired[NATIVE_PASSES]; /* per pass: how often it has fired */

  /* Of straight-line code. */
  uint32_t slices;            /* vectors of a block; 0: this is no straight-line code */
  native_stack_shape shape;   /* blocks of a stack: each one's slices, and its shared memory, follow those of the block
                                 before it, along x first, then along y */
  uint8_t has_tails;          /* before the passes: 1 if NATIVE_TAILs are allowed; after them: 1 if there are any */
  hg_array known;             /* uint64_t: the bits of NATIVE_CONST_LANES */

  uint32_t row_start[NATIVE_MOST_ROWS]; /* block-uniform registers that rows begin at. From the NATIVE_GUARD_RANGE of
                                           each on, a general register holds its value as well */
  uint8_t row_start_number[NATIVE_MOST_ROWS]; /* the number of that general register, which other parts of the program
                                                 use for other row starts */
  uint32_t row_start_count, row_start_registers;
  uint32_t first_part;        /* the first label or jump, or the program's end: no number is shared before it */
  uint8_t runs_on;            /* 1: its code runs blocks_left blocks along x one after the other; it never calls C */
  uint8_t has_bases;          /* 1: general registers hold the addresses of all buffers and shared arrays */

  /* The code. */
  uint8_t *code;              /* allocated by the build's allocator */
  size_t code_bytes;
  size_t insn_bytes;          /* bytes of instructions in it; constants follow them */
  uint32_t first_call, last_call; /* the first and the last instruction that the code leaves to hg_native_help, as
                                     number + 1; 0: none */
  uint8_t calls_in_loops;     /* of a target of one lane: 1: one of them is in a loop */
  uint8_t keeps_pool;         /* the same: 1: no value has the last general register, so that one can hold an address of
                                 constants */
  uint32_t stored_bytes;      /* bytes a lane moves by stores that may bypass the caches */
  uint32_t moved_bytes;       /* bytes a lane moves by loads and stores of its elements */
  uint8_t streams;            /* 1: each region has a second version, whose stores of full vectors bypass the caches */
  uint32_t block_entry;       /* offset of code that runs all steps of a tile, as native_entry */
  uint8_t has_straight;           /* 1: straight-line code runs the blocks that full_entry would be for */
  uint32_t full_entry, full_lanes; /* the same for blocks with the shape of native_block, whose full_lanes lanes all
                                      have [x + lane] in bounds; full_lanes 0: there is none */
} native_build;

static inline const native_location *native_location_of(const native_build *b, uint32_t reg) {
  return &b->locations[reg];
}

/* The shape of the blocks that code for whole blocks is made for: the program's or, if it names none, that of linear
 * launches. */
static inline const uint32_t *native_block(const atlas_program *program) {
  static const uint32_t linear[3] = {ATLAS_LINEAR_BLOCK_LANES, 1, 1};
  return program->block[0] != 0 ? program->block : linear;
}

/* plan.c: makes the steps and the locations. */
hg_status hg_native_plan(native_build *build);
/* The slot of a local array that belongs to a group's first lane is the lane's number in the tile instead of 0. */
static inline int hg_native_has_tile_slots(const native_build *b) { return b->steps.count > 1; }
/* Notes that the code leaves an instruction to hg_native_help whenever it gets there. */
static inline void hg_native_note_call(native_build *b, uint32_t insn) {
  if (b->first_call == 0 || insn < b->first_call) b->first_call = insn + 1;
  if (insn >= b->last_call) b->last_call = insn + 1;
}
/* steps.c: makes only the steps. */
hg_status hg_native_find_steps(native_build *build);
/* 1 if a register of straight-line code is written again in each round of a loop; the others are written once. */
int hg_straight_is_loop_carried(const hg_vector *v, uint32_t reg);
/* range_guards.c: the number of a row start; NATIVE_MOST_ROW_STARTS: `added` is none. */
uint32_t hg_native_row_start(const native_build *build, uint32_t added);
/* 1 if a register is loaded from consecutive elements that are in bounds and never written, at an address that general
 * registers hold: instead of being spilled it may be read there again. */
int hg_native_is_element(const native_build *build, uint32_t reg);
/* 1 if a register of straight-line code is the sum of a vector of consecutive numbers and a uniform number, both u32,
 * and only the index of the next load: it has no location, and the load adds the two. */
int hg_native_is_index_sum(const hg_vector *v, uint32_t reg);
/* 1 if code needs a lane's number in the tile. */
int hg_native_uses_tile_lane(const native_build *build);

/* Machine code counts steps up in the registers of VECTOR_STEP, and steps_left of the frame down: the STEPs that every
 * lane can still take. At 0, hg_native_help subtracts the registers from what each lane has left, runs that STEP
 * exactly, and sets steps_left to the least that any lane has left. */
static inline int hg_native_counts_steps(const hg_vector *v) { return v->most_steps == UINT64_MAX; }

/* 1 if the code polls in each round of a loop whether the launch is cancelled. Other code takes few steps, and the
 * engine polls between tiles. */
int hg_native_takes_long(const hg_vector *v);
/* Per instruction: 1 if such a loop goes on at this label, or behind this test in its header, and polls there. */
void hg_native_find_polls(const hg_vector *v, uint8_t *polls);

/* Per instruction: 1 if it is in a loop, of a region or of steps: if it faults, it will probably fault again. */
void hg_native_find_repeated(const hg_vector *v, uint8_t *repeated);

/* 1 if an instruction needs no code: a label; a jump that is taken when all lanes have ended, if no lane ends; a STEP
 * that counts nothing. */
int hg_native_needs_no_code(const hg_vector *v, uint32_t insn);

/* For a comparison: the next instruction if it is `mask and comparison`, `mask and not comparison` or `mask or
 * comparison`, nothing else reads the comparison, and a target with mask registers can do both at once; else NULL. The
 * comparison then has no location. */
const vector_insn *hg_native_masked_use(const native_build *build, uint32_t comparison);

/* Per register: the only instruction that writes it; VECTOR_NONE: none, VECTOR_ALL: several. */
void hg_native_find_writers(const hg_vector *vector, uint32_t *writer);

/* Per register: how it changes from lane to lane of a vector (vector_stride), also in lanes that do not take part in
 * the instructions that use it. `writer`: of hg_native_find_writers. */
void hg_native_find_vector_strides(const native_build *b, const uint32_t *writer, uint8_t *strides);

typedef struct native_pattern { /* an index whose value in each lane of a vector is that in its lane 0 plus
                                   place[lane] */
  uint32_t place[NATIVE_MOST_LANES]; /* less than a vector's lanes */
  uint64_t highest;                  /* the highest index in the block */
} native_pattern;

/* lane_values.c: 1 if a register is such an index, with the same pattern in all vectors of the block. No vector may
 * cross rows of lanes. */
int hg_native_find_pattern(const native_build *build, const uint32_t *writer, uint32_t r, native_pattern *window);

/* 1 if a register of straight-line code is one element of shared memory for all lanes, and one f32 operation reads it
 * while the element is unchanged: a target with mask registers uses the element as an operand, and the register has no
 * location. */
int hg_native_is_operand(const native_build *build, uint32_t reg);

static inline int hg_native_is_blane(const hg_vector *v, uint32_t r) {
  if (r >= VECTOR_ALL) return 0;
  const vector_reg *reg = vector_reg_at(v, r);
  return reg->kind == VECTOR_SPECIAL && reg->bits == ATLAS_REG_BLOCK_LANE;
}

/* The other operand of an addition to blane; VECTOR_NONE: the instruction is no such addition. */
static inline uint32_t hg_native_added_to_lane(const hg_vector *v, const vector_insn *insn) {
  if (insn->op != ATLAS_OP_add || insn->type != ATLAS_u32) return VECTOR_NONE;
  for (int k = 0; k < 2; k++)
    if (hg_native_is_blane(v, insn->s[k])) return insn->s[!k];
  return VECTOR_NONE;
}

/* 1 if an index, written by instruction `writer`, is blane + *added (a register; VECTOR_NONE: none) + *more. */
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

/* 1 for a load in all lanes of consecutive elements that nothing writes. */
static inline int hg_native_is_row_load(const vector_insn *insn) {
  const uint32_t needs = VECTOR_CONTIGUOUS | VECTOR_READ_ONLY;
  if (!vector_is_primitive(insn->op) || insn->mask != VECTOR_ALL || insn->mode != ATLAS_ADDRESS_INDEXED) return 0;
  if ((atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != ATLAS_LOAD) return 0;
  return (insn->flags & (needs | VECTOR_LANE | VECTOR_SAME)) == needs;
}

/* 1: the register is the lane's number, in the launch or in its block. */
static inline int hg_native_is_lane_number(const vector_reg *r) {
  return r->kind == VECTOR_SPECIAL && (r->bits == ATLAS_REG_LANE || r->bits == ATLAS_REG_BLOCK_LANE);
}

/* 1 if a source has one value in all lanes of a block: there is no source; or no instruction writes it and it is no
 * lane number; or an instruction writes it and `alike` has a 1 for it. */
static inline int hg_native_is_alike(const hg_vector *v, uint32_t r, const uint8_t *alike) {
  if (r >= VECTOR_ALL) return r == VECTOR_NONE;
  const vector_reg *reg = vector_reg_at(v, r);
  return reg->kind == VECTOR_VARIES ? alike[r] : !hg_native_is_lane_number(reg);
}

/* 1: a coordinate of the lane, in its block or in the grid (x, y and z have consecutive numbers). */
static inline int hg_native_is_lane_coordinate(uint64_t coordinate) {
  return coordinate - ATLAS_COORD_LANE_X < 3 || coordinate - ATLAS_COORD_GLOBAL_X < 3;
}

/* 1 if an instruction at the end of a region stores a live-out value, in a row or as a block-uniform value
 * (split.c). */
static inline int hg_native_is_live_out_move(const vector_insn *insn, const native_location *locations) {
  return insn->op == VECTOR_MOVE && locations[insn->d].kind == NATIVE_ROW;
}

/* Jump threading: a back edge that has just tested whether any lane is left in the loop skips the header's test. */
static inline uint32_t hg_native_target_of(const hg_vector *v, const vector_insn *jump) {
  const vector_insn *there = vector_insn_at(v, jump->target + 1);
  int is_asked = jump->op == VECTOR_JUMP_ANY && there->op == VECTOR_JUMP_NONE && there->flags & VECTOR_ENTERS &&
                 there->s[0] == jump->s[0] && jump->mask == VECTOR_ALL && there->mask == VECTOR_ALL;
  return is_asked ? jump->target + 1 : jump->target;
}

/* Called by machine code with its frame: runs an instruction for the current group. `request`: the instruction's
 * number; in the upper half 0 for all copies, or 1 + the number of one copy. */
void hg_native_help(native_frame *frame, uint64_t request);
/* Sets native_context.noted: at the beginning of each run of lanes, and after C code that may have noted a fault. */
void hg_native_find_noted(native_context *context);

/* 1 if a store may bypass the caches: all lanes store, each to its own element. */
static inline int hg_native_may_pass_caches(const vector_insn *insn) {
  int is_store = insn->flags & VECTOR_LANE && atlas_op_flags(insn->op) & ATLAS_STORE;
  return is_store && atlas_bytes((atlas_type)insn->type) >= 4 && insn->mask == VECTOR_ALL;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

typedef struct hg_native hg_native;

/* `program`, `vector` and `pages` must outlive the kernel. stream_bytes: hg_stream_threshold(). HG_UNSUPPORTED, with a
 * sentence, if this program, or any program on this machine, is left to the tile engine; HG_OUT_OF_MEMORY. */
hg_status hg_native_compile(hg_code_pages *pages, const native_target *target, const cpu_kernels *kernels,
                            uint64_t stream_bytes, const atlas_program *program, const hg_vector *vector,
                            hg_native **out);
/* one_lane.c: 1: the program can run one lane after the other, by a target of one lane and hg_vectorise_lane. Then: it
 * probably takes less time so, if the code does not call C in a loop. */
int hg_native_may_run_lanes(const hg_vector *vector);
hg_status hg_native_prefers_lanes(const hg_vector *vector, int *prefers);
int hg_native_calls_in_loops(const hg_native *native);
/* HG_OK also if lanes faulted. Several threads may call it at once. HG_UNSUPPORTED if the step limit is below the
 * number of steps that the program was proven to take: see hg_native_needs_tiles. */
hg_status hg_native_launch(const hg_native *native, atlas_launch *launch);
/* 1: some launches are left to the tile engine. */
int hg_native_needs_tiles(const hg_vector *vector);
void hg_native_release(hg_native *native); /* NULL is accepted */
const char *hg_native_engine(const hg_native *native); /* a constant: "native avx512" */
const char *hg_native_notes(const hg_native *native);  /* hg_compiled.notes */

/* Called for each version of a kernel's code when it has been written: "steps" runs any launch, "whole" runs blocks
 * that have all their lanes, "several" runs several of those at once. The build may be changed during the call only.
 * `after`, which may be NULL, sees the program after each pass, also that of versions that turn out to be impossible;
 * has_ranges: its live ranges are right. */
struct native_visitor {
  hg_status (*visit)(void *context, const char *version, const native_build *build);
  hg_status (*after)(void *context, const native_build *build, const hg_vector *v, const char *pass,
                     int has_ranges);
  void *context;
};

/* Makes each version for a visitor that counts what is in it, also for other machines, and keeps nothing. */
hg_status hg_native_versions(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                             const hg_vector *vector, const native_visitor *visitor);

/* The code as bytes, also for other machines, followed by the code for whole blocks. Release it with hg_release. */
hg_status hg_native_emit(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                         const hg_vector *vector, uint8_t **code, size_t *byte_count);

/* A value as registers hold it: narrow signed integers are extended to 32 bits. */
uint64_t hg_native_widen(uint8_t type, uint64_t bits);

#endif
