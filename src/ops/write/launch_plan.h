/* launch_plan.h - what a computation becomes: launches over storages.
 *
 * ops_plan_computation cuts the graph into groups, each of which one launch computes; ops_write_map and others write a
 * group's program. A plan knows no device memory: values live in storages, which hg_run binds. */
#ifndef HG_OPS_LAUNCH_PLAN_H
#define HG_OPS_LAUNCH_PLAN_H

#include "backend/backend.h"
#include "base/patience.h"
#include "ops/graph/nodes.h"

/* Memory that a launch reads or writes: an input's or output's tensor, or a temporary. */
typedef struct ops_storage {
  enum { OPS_OF_INPUT, OPS_OF_OUTPUT, OPS_TEMPORARY } kind;
  uint32_t index;         /* of the input or output; of a temporary: its place, see first_byte */
  uint8_t type;
  ops_shape shape;
  int64_t stride[HG_MAX_RANK]; /* elements; a temporary's are dense */
  int64_t lowest, extent; /* elements: of the first element's number relative to `offset` (0 or negative), and how many
                             from the lowest to the last, both inclusive */
  uint64_t first_byte;    /* of a temporary in the workspace of a run */
  uint32_t first_step, last_step; /* that use it, for the workspace */
} ops_storage;

typedef struct ops_binding {
  uint32_t slot;    /* symbol of the program */
  uint32_t storage;
} ops_binding;

typedef struct ops_scalar {
  uint32_t slot;
  uint8_t type;
  uint64_t bits;
} ops_scalar;

enum { OPS_MAX_BINDINGS = ATLAS_MAX_BUFFERS, OPS_MAX_SCALARS = ATLAS_MAX_SCALARS };

/* One launch. */
typedef struct ops_step {
  atlas_program *program;     /* steps whose programs are the same have one */
  uint64_t digest;            /* the program's */
  uint32_t same;              /* 1 + the first step that has the program; 0: this one */
  uint32_t first_name;        /* in the operations that are noted for reports: see report.c */
  hg_contraction *contraction; /* what a kernel of the backend's own does instead (hg_compile_input); NULL: nothing */
  hg_rows *rows;              /* what the program does, where a device may know a shorter way (atlas_launch) */
  uint64_t lanes;             /* a linear launch, or 0 and */
  uint32_t grid[3], block[3];
  uint64_t step_limit;        /* of a launch whose lanes take more back-edges than others may; 0 */
  ops_binding bindings[OPS_MAX_BINDINGS];
  uint32_t binding_count;
  ops_scalar *scalars;
  uint32_t scalar_count;
  uint8_t reads_first;        /* 1: each lane has read all that it reads before it writes: where operand and result are
                                 accessed as [x + lane] alone, they may be the very same view */
  uint64_t box_elements;      /* of the storage that it writes, where that is not all of it; 0 */
  uint8_t is_fast;            /* its bits are not the canonical ones */
  const char *kind;           /* "map", "rows", "columns", "contract", ...: for the report */
  uint32_t first_value, value_count; /* of plan->values: which it computes */
  uint64_t bytes_read, bytes_written, operations; /* for the report */
  char note[160];             /* why something was not fused; "" */
} ops_step;

/* What it is planned for. */
typedef struct ops_target {
  int for_gpu;
  uint32_t units, shared_bytes; /* multiprocessors, 0: unknown; shared memory that a block may have */
  int spreads_blocks; /* a block whose lanes need many registers may have those of several multiprocessors */
  uint32_t numerics; /* of all contractions, besides their own: HG_NUMERICS_FAST, HG_NUMERICS_TF32 */
  uint64_t (*contract_scratch)(void *device, const hg_contraction *contraction, const char **why); /* hg_backend's */
  void *device;
  hg_patience *patience; /* while it is planned; NULL: nobody is asked */
} ops_target;

typedef struct ops_plan {
  hg_allocator allocator;
  hg_array storages; /* ops_storage */
  hg_array steps;    /* ops_step */
  hg_array made;     /* ops_step: those of the group in hand, so far */
  hg_array values;   /* value_id: see ops_step.first_value */
  hg_array programs; /* uint32_t: a table by digests, each place 1 + the first step that has a program; 0: free */
  uint64_t workspace_bytes;
  ops_target target;
  uint8_t for_gpu;   /* 1: blocks of the shapes that a GPU likes; else a processor's. The bits are the same */
  /* Of the first storages (ops_look_at_storages): one has 2^31 elements or more; one goes backwards. */
  uint8_t has_large, has_negative;
  uint32_t looked_at;
} ops_plan;

/* What the planner hands to a writer of programs: nodes of one launch. Everything a node of the group reads that is not
 * in the group lies in a storage. */
typedef struct ops_group {
  const hg_computation *computation;
  ops_plan *plan;
  const value_id *nodes;      /* ascending, so producers come first */
  uint32_t node_count;
  const uint32_t *storage_of; /* by node index: 1 + number of the storage that holds the value (written by an earlier
                                 step, an input, or one that this group is to write); 0: it lives in registers alone */
  const value_id *results;    /* of the nodes, those to be written to their storages */
  uint32_t result_count;
} ops_group;

/* Where the group's launch writes result `index` of a node of it, the first being 0; 1 + a storage, 0: nowhere. */
static inline uint32_t ops_storage_of_result(const ops_group *group, value_id first, uint32_t index) {
  for (uint32_t i = 0; i < group->result_count; i++) {
    value_id value = group->results[i];
    uint32_t number = value != first ? ops_at(group->computation, value)->index : 0;
    if (ops_first_result(group->computation, value) == first && number == index) return group->storage_of[value - 1];
  }
  return 0;
}

/* Of a result's storage: it updates an input in place. */
static inline int ops_is_over_input(const ops_plan *plan, uint32_t storage) {
  return ((const ops_storage *)plan->storages.data)[storage].kind == OPS_OF_INPUT;
}

/* Adds a storage; its number. */
hg_status ops_add_storage(ops_plan *plan, ops_storage storage, uint32_t *number);
hg_status ops_add_temporary_of(ops_plan *plan, uint8_t type, const ops_shape *shape, uint32_t *number);
/* Memory for so many elements, while steps use it: of steps that write and read it. */
hg_status ops_add_temporary(ops_plan *plan, uint8_t type, uint64_t count, uint32_t *storage);

/* The plan, of which has_large and has_negative are those of all its storages. */
const ops_plan *ops_look_at_storages(ops_plan *plan);

/* Writers. Each makes steps of the plan's (ops_new_step), with program, launch shape, bindings and scalars: as many as
 * it takes, of which later ones may fold what earlier ones have made of parts, by way of temporaries that the writer
 * adds to plan->storages, without first_byte, first_step and last_step. Steps without a program are dropped.
 * HG_UNSUPPORTED: the group is not of its shape, and the planner cuts it differently. */
hg_status ops_write_map(const ops_group *group);      /* pointwise over one shape, any views */
hg_status ops_write_update(const ops_group *group);   /* an update: its box where the base lies */
hg_status ops_write_maps(const ops_group *groups, uint32_t count); /* several of them in one launch */
hg_status ops_write_rows(const ops_group *group);     /* reductions along one set of axes, and around them */
hg_status ops_write_contract(const ops_group *group); /* one contraction with prologue and epilogue */
hg_status ops_write_scatter(const ops_group *group);  /* one OPS_SCATTER */
hg_status ops_write_sort(const ops_group *group);     /* one OPS_SORT and its places */
hg_status ops_write_scan(const ops_group *group);     /* one OPS_SCAN */

/* A zeroed step behind those in plan->made; it moves when there is another one. NULL: no memory, a failure. */
ops_step *ops_new_step(ops_plan *plan);
/* Those that are made, from one on. */
void ops_drop_steps(ops_plan *plan, size_t first);

/* Adds a step, which is the plan's from then on. */
hg_status ops_add_step(ops_plan *plan, const ops_step *step);
/* The first step that has the same program; UINT32_MAX: there is none. */
uint32_t ops_step_of_same(const ops_plan *plan, const atlas_program *program, uint64_t digest);
/* Ends a step's program, which is an earlier step's if that is the same. Releases the builder, whatever happens. */
hg_status ops_finish_program(const ops_plan *plan, atlas_builder *builder, ops_step *step);

/* A storage's elements into another one of the same shape and type. */
hg_status ops_write_copy(ops_plan *plan, uint32_t from, uint32_t to);

void ops_plan_release(ops_plan *plan);

/* What a step has made of its program: it is kept where a kernel or an executable has it. */
static inline void ops_step_release(const hg_allocator *allocator, ops_step *step) {
  atlas_program_release(step->program);
  hg_release(allocator, step->scalars);
  hg_release(allocator, step->contraction);
  hg_release(allocator, step->rows);
  step->program = NULL;
  step->scalars = NULL;
  step->contraction = NULL;
  step->rows = NULL;
}

#endif
