/* emit_neon.h - the state and functions that the files of the aarch64 emitter share.
 *
 * Registers of a region: sp frame; x19 context; x20 global lane of the group; x21 its lane in the tile; x22
 * context->rows; x23 the last lane at which a full group may begin; x24 end of the lanes; x29 sp of the caller's frame;
 * x9 to x15 and x25 to x28 base addresses of buffers; x0 to x8, x16 and x17 scratch within an instruction. Vector
 * registers from native_target.vector_count on are scratch within an instruction (hg_neon_scratch 0 to 5), except v31,
 * which holds the mask of the existing lanes in the tail.
 *
 * Scratch registers 0 to 2 are for sources, 3 for a result; hg_neon_set_result may change 4 and 5. */
#ifndef HG_ARM64_EMIT_NEON_H
#define HG_ARM64_EMIT_NEON_H

#include "backend/cpu/arm64/arm64_asm.h"
#include "backend/cpu/native/native.h"

enum {
  NEON_CONTEXT = 19, NEON_LANE = 20, NEON_TILE_LANE = 21, NEON_ROWS = 22, NEON_LAST_GROUP = 23, NEON_END = 24,
  NEON_TAIL_MASK = 31, /* vector register */
  NEON_LANES = 4,      /* 32-bit elements of a vector */
  NEON_VECTOR_BYTES = 16
};

typedef struct neon_slow { /* the slow path of an instruction: out of line, after its region */
  uint32_t insn, copy;
  uint32_t from, back;      /* labels: of the slow path; of the code after it */
  uint32_t leaves_out;      /* label of code that does the access without the lanes that fault; UINT32_MAX: C does it */
  uint32_t copies;          /* this and the following: as in neon_emit */
  uint8_t is_tail;
} neon_slow;

typedef struct neon_emit {
  native_build *b;
  a64_asm a;

  /* The current instruction. */
  const vector_insn *insn;
  uint32_t index;           /* its number */

  /* The code being written. */
  uint8_t is_tail;          /* one vector with a mask */
  uint8_t is_once;          /* a region that runs once */
  uint8_t uses_tile_lane;
  uint8_t has_dot;          /* SDOT and UDOT */
  uint32_t copies;          /* copies of a full group, or 1 */
  uint32_t help;            /* label: calls hg_native_help */
  uint32_t region_end;      /* label: the region's end */
  uint32_t group_end;       /* label after a group's code */
  uint32_t stop;            /* label: the region's epilogue, for cancelled launches */
  uint8_t *polls, *repeated; /* per instruction: see hg_native_find_polls, hg_native_find_repeated */
  uint32_t *label_of;       /* per instruction: its label; UINT32_MAX: none yet */
  uint32_t *lanes_of;       /* per instruction: the label of code that faults.c writes once for it; UINT32_MAX: none */
  hg_array slow;            /* neon_slow */

  /* Machine registers that hold one value throughout. */
  uint8_t *kept_in;         /* per register and NaN: 1 + the register that holds this constant; 0: none */
  uint8_t base_of[ATLAS_MAX_SYMBOLS]; /* per symbol: the register that holds its address; 0: none */
} neon_emit;

static inline unsigned hg_neon_scratch(const neon_emit *e, unsigned n) { return e->b->target->vector_count + n; }

/* ---- values ------------------------------------------------------------------------------------------------------ */

uint8_t hg_neon_type(const neon_emit *e, uint32_t reg);   /* of a vector register */
int hg_neon_is_64(const neon_emit *e, uint32_t reg);      /* 64-bit elements: up to two parts */
unsigned hg_neon_size(const neon_emit *e, uint32_t reg);  /* A64_32B or A64_64B */
uint32_t hg_neon_copies(const neon_emit *e, uint32_t reg); /* 1 or e->copies: how many vectors differ */
uint32_t hg_neon_parts(const neon_emit *e, uint32_t reg);
int hg_neon_constant_bits(const neon_emit *e, uint32_t reg, uint64_t *bits); /* 1: a constant */

/* Numbers after those of the vector program's registers: the canonical NaNs of f32 and f64. VECTOR_NONE for other
 * types. */
enum { NEON_NANS = 2 };
static inline uint32_t hg_neon_nan(const hg_vector *v, uint8_t type) {
  if (type != ATLAS_f32 && type != ATLAS_f64) return VECTOR_NONE;
  return (uint32_t)v->regs.count + (type == ATLAS_f64);
}

/* Loads a constant, parameter or canonical NaN into a machine register. */
void hg_neon_invariant(neon_emit *e, uint32_t reg, unsigned to);

/* The machine register that holds a source, or `scratch` with its value loaded. */
unsigned hg_neon_source(neon_emit *e, uint32_t reg, uint32_t copy, uint32_t part, unsigned scratch);

/* The register to compute a result of the current instruction in; hg_neon_set_result stores it from `reg` to its
 * location. It may be the register of a source of the same copy and part, never of another copy or part. */
unsigned hg_neon_result_register(neon_emit *e, uint32_t copy, uint32_t part);
void hg_neon_set_result(neon_emit *e, uint32_t copy, uint32_t part, unsigned reg);

/* Loads and widens consecutive elements: a full vector. */
void hg_neon_load_elements(neon_emit *e, uint8_t type, unsigned to, unsigned base, int64_t offset);
void hg_neon_store_elements(neon_emit *e, uint8_t type, unsigned from, unsigned base, int64_t offset, unsigned scratch);
unsigned hg_neon_log_bytes(uint8_t type);

/* to = from, from + 1, ...: the lanes of a copy, or of a part of it for 64 bits. */
void hg_neon_count_up(neon_emit *e, unsigned to, unsigned from, int is_64, uint32_t copy, uint32_t part,
                      unsigned scratch);
/* Loads a word of the context into all lanes. */
void hg_neon_context(neon_emit *e, size_t offset, int is_64, unsigned to);
size_t hg_neon_place_offset(uint32_t symbol, size_t member);

/* Extends the low bits of 32-bit elements as the type says. */
void hg_neon_narrow(neon_emit *e, uint8_t type, unsigned reg);

/* ---- predicates: vectors of 32-bit elements, all ones or zero ---------------------------------------------------- */

unsigned hg_neon_predicate(neon_emit *e, uint32_t reg, uint32_t copy,
                           unsigned scratch); /* VECTOR_ALL: existing lanes */
/* The lanes in which the current instruction has effects; -1: all lanes of the vector. */
int hg_neon_mask(neon_emit *e, uint32_t copy, unsigned scratch);
/* The half of a predicate that masks a 64-bit vector. */
unsigned hg_neon_mask_part(neon_emit *e, unsigned mask, uint32_t part, unsigned scratch);
/* x0 is nonzero if s0 & mask has a lane. */
void hg_neon_test_any(neon_emit *e);
void hg_neon_begin_alive(neon_emit *e);

/* ---- calls of C and slow paths ----------------------------------------------------------------------------------- */

#define NEON_ALL_COPIES UINT32_MAX
void hg_neon_help(neon_emit *e, uint32_t copy);        /* calls hg_native_help for the current instruction */
uint32_t hg_neon_slow_path(neon_emit *e, uint32_t copy); /* label of a slow path that calls it; hg_neon_slow_back
                                                            follows the code */
void hg_neon_slow_back(neon_emit *e);
void hg_neon_write_slow_paths(neon_emit *e);
void hg_neon_write_help(neon_emit *e);
/* Loads or stores registers at sp, in pairs. */
void hg_neon_move_pairs(neon_emit *e, int is_load, const uint8_t *registers, size_t count);

/* Each returns 1 if it has written the current instruction. */
int hg_neon_operation(neon_emit *e);        /* of machine_ops.def */
int hg_neon_vector_operation(neon_emit *e); /* of vector.h, on values */
int hg_neon_masks(neon_emit *e);            /* of vector.h, on masks and moves */
int hg_neon_logic(neon_emit *e);
int hg_neon_select(neon_emit *e);
int hg_neon_coordinate(neon_emit *e);
int hg_neon_convert(neon_emit *e);
int hg_neon_bitcast(neon_emit *e);
int hg_neon_compare(neon_emit *e);
int hg_neon_memory(neon_emit *e);
void hg_neon_clear_local(neon_emit *e); /* the local arrays of a group, where its code does that */
int hg_neon_has_base(const vector_insn *insn);

/* The current atomic at [x1] with operand x3, and comparand x5 for cas: x0 = the old value. Changes x4 and x16. */
void hg_neon_update(neon_emit *e);

#endif
