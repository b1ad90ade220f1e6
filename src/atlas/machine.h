/* machine.h - the state of the reference machine, shared by its three files: interp.c (lanes and instructions),
 * interp_memory.c (addresses and faults), interp_block.c (what a block does together). */
#ifndef HG_ATLAS_MACHINE_H
#define HG_ATLAS_MACHINE_H

#include "atlas/interp.h"

typedef enum lane_status { LANE_RUNS, LANE_WAITS, LANE_ENDED } lane_status;

typedef struct lane {
  uint64_t *r;         /* values of r0, r1, ... */
  uint8_t *local;      /* its local arrays */
  uint8_t *type;       /* what each holds: an index is read by its own type */
  uint32_t predicates; /* bit n: p<n> */
  uint32_t node;       /* the next node to run */
  lane_status status;
  int faulted;         /* its first fault has been noted */
  uint64_t steps;      /* back-edges still allowed */
  uint64_t id;         /* global linear, x fastest: `lane` */
  uint32_t in_block;   /* linear, x fastest: `blane` */
  uint32_t at[3];      /* coordinates in the block */
} lane;

typedef struct machine {
  const hg_allocator *allocator;
  const atlas_program *program;
  atlas_launch *launch;
  uint32_t block_size[3];
  uint64_t grid_size[3];        /* in blocks */
  uint64_t block_count;
  uint64_t block_at[3];         /* of the block that runs */
  uint64_t block_index;         /* linear, x fastest */
  lane *lanes;                  /* of the block that runs; room for a full block */
  uint32_t lane_count;          /* how many of them exist */
  uint8_t *shared;
  uint64_t shared_bytes;
  uint32_t shared_offset[ATLAS_MAX_SYMBOLS]; /* of each .shared symbol */
  uint64_t local_bytes;                      /* of a lane */
  uint32_t local_offset[ATLAS_MAX_SYMBOLS];  /* of each .local symbol */
  uint64_t pool_top[ATLAS_MAX_SYMBOLS];      /* of each .pool symbol: first free byte of the block's share */
  uint64_t *scratch;            /* one value a lane */
  uint8_t *present;             /* one flag a lane, for collectives */
  void *memory;
} machine;

/* Clears the results of the launch and computes its blocks and the layout of shared memory and of local arrays. */
void atlas_machine_shape(machine *m);
/* Sets up block m->block_index: its coordinates, its lanes, zeroed shared memory and local arrays, its share of the
 * pools. */
void atlas_machine_begin_block(machine *m);

/* sreg */
uint64_t atlas_machine_coordinate(const machine *m, const lane *l, uint64_t coord);
/* mirror unity.test nbr.* bound.map res.accum; s: the operands */
uint64_t atlas_machine_class(machine *m, lane *l, uint32_t op, const uint64_t s[3]);

/* A source operand as bits; `type` is the type that its form requires. */
uint64_t atlas_machine_source(const machine *m, const lane *l, const atlas_operand *operand);

/* Reads a register, the special ones included. */
uint64_t atlas_machine_register(const machine *m, const lane *l, uint32_t reg, atlas_type *type);

/* Records a fault if it is the lane's first and no lower lane has one. */
void atlas_machine_fault(machine *m, lane *l, hg_fault fault);

/* ldg lds ldl pool.load; stg sts stl pool.store; atom.* */
uint64_t atlas_machine_load(machine *m, lane *l, const atlas_insn *insn);
void atlas_machine_store(machine *m, lane *l, const atlas_insn *insn);
uint64_t atlas_machine_atomic(machine *m, lane *l, const atlas_insn *insn);

/* The whole elements of the range that a .buffer symbol is bound to. */
uint64_t atlas_machine_extent(const machine *m, uint32_t symbol);

/* An element of a constant table; 0 and *ok = 0 when the index is out of range. */
uint64_t atlas_constant_at(const atlas_program *program, const atlas_symbol *table, int64_t index, int *ok);

/* Executes an instruction of the whole block, at which every lane that has not ended waits. */
void atlas_machine_block(machine *m, const atlas_insn *insn);

#endif
