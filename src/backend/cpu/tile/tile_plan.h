/* tile_plan.h - decided once a kernel: where registers are kept, and what each instruction does. */
#ifndef HG_TILE_PLAN_H
#define HG_TILE_PLAN_H

#include "backend/cpu/engine/engine.h"

typedef enum tile_step_kind {
  TILE_KERNEL,        /* a kernel on all chunks of the tile */
  TILE_SAME,          /* d is the row of the source */
  TILE_SHORT,         /* a kernel, or a move, on short rows: once for all lanes; under a mask only if it has a lane */
  TILE_LOAD_SHORT,    /* a load of one location, once for all lanes */
  TILE_LOAD,          /* [x + lane]: the buffer itself is the row where it can be */
  TILE_OUTPUT,        /* before the instruction whose result a later TILE_STORE stores: makes the buffer its row */
  TILE_STORE,         /* [x + lane], every lane */
  TILE_STEP,          /* VECTOR_STEP */
  TILE_INSN,          /* hg_cpu_insn */
  TILE_JUMP,
  TILE_JUMP_NONE,
  TILE_JUMP_ANY,
  TILE_END
} tile_step_kind;

enum { TILE_SHORT_SIZE = 0x80 };

typedef struct tile_step {
  uint8_t kind;       /* tile_step_kind */
  uint8_t is_partial; /* of a TILE_KERNEL: only the chunks from the first to the last lane that the block's mask has;
                         of a TILE_JUMP_NONE: it asks for the mask of the block that follows */
  uint8_t size[4];    /* of a TILE_KERNEL's d and sources: binary logarithms of element sizes, or TILE_SHORT_SIZE */
  uint8_t steps;      /* of the sources, a bit each, as cpu_kernel has them */
  uint16_t kernel;
  uint32_t d, s[4];   /* places in the row table */
  uint32_t mask;      /* the same; VECTOR_ALL */
  uint32_t target;    /* of jumps: a step */
  uint32_t insn;      /* of the vector */
} tile_step;

/* Where a register is kept. Offsets are in bytes a lane within rows, in bytes within short rows. */
typedef enum tile_location_kind { TILE_NOWHERE, TILE_ROW, TILE_SHORT_ROW } tile_location_kind;

typedef struct tile_location {
  uint8_t kind;       /* tile_location_kind */
  uint8_t is_aliased; /* a row that may be a buffer instead */
  uint32_t offset;
} tile_location;

typedef struct tile_plan {
  hg_allocator allocator;
  hg_array steps;     /* tile_step */
  hg_array places;    /* tile_location a register; one more: the lanes that the tile has */
  uint32_t row_bytes; /* of all rows, a lane */
  uint32_t short_bytes; /* of all short rows */
  uint32_t all;       /* place of the lanes that the tile has */
  uint32_t special[4], special_count; /* registers that hold the special registers r252..r255 */
} tile_plan;

hg_status hg_tile_plan(const hg_allocator *allocator, const atlas_program *program, const hg_vector *vector,
                       tile_plan *plan);
void hg_tile_plan_release(tile_plan *plan);

#endif
