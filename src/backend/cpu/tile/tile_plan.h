/* tile_plan.h - decided once a kernel: where registers are kept, and what each instruction does. */
#ifndef HG_TILE_PLAN_H
#define HG_TILE_PLAN_H

#include "backend/cpu/engine/engine.h"

typedef enum tile_step_kind {
  TILE_KERNEL,        /* a kernel on all chunks of the tile */
  TILE_SAME,          /* makes the row of the source the row of d */
  TILE_SHORT,         /* a kernel or a move on short rows: once for all lanes, if the mask has one */
  TILE_LOAD_SHORT,    /* a load of one location, once for all lanes */
  TILE_LOAD,          /* [x + lane]: the buffer itself becomes the row if possible */
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
  uint8_t is_partial; /* TILE_KERNEL: only the chunks from the first to the last lane of the block's mask;
                         TILE_JUMP_NONE: tests the mask of the basic block that follows */
  uint8_t size[4];    /* TILE_KERNEL: log2 of the element sizes of d and the sources, or TILE_SHORT_SIZE */
  uint8_t steps;      /* a bit for each source, as in cpu_kernel */
  uint16_t kernel;
  uint32_t d, s[4];   /* indices in the row table */
  uint32_t mask;      /* index in the row table; VECTOR_ALL */
  uint32_t target;    /* of a jump: a step */
  uint32_t insn;      /* the vector instruction */
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
  hg_array places;    /* tile_location of each register, and of the lanes that the tile has */
  uint32_t row_bytes; /* bytes a lane of all rows */
  uint32_t short_bytes; /* bytes of all short rows */
  uint32_t all;       /* index of the lanes that the tile has */
  uint32_t special[4], special_count; /* registers that hold r252..r255 */
} tile_plan;

hg_status hg_tile_plan(const hg_allocator *allocator, const atlas_program *program, const hg_vector *vector,
                       tile_plan *plan);
void hg_tile_plan_release(tile_plan *plan);

#endif
