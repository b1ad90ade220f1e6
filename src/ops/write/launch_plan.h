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
  uint32_t index;         /* the number of the input or output; for a temporary see first_byte */
  uint8_t type;
  ops_shape shape;
  int64_t stride[HG_MAX_RANK]; /* elements; a temporary's are dense */
  int64_t lowest, extent; /* in elements: the lowest element's number relative to `offset` (0 or negative), and the
                             number of elements from the lowest to the last, both inclusive */
  uint64_t first_byte;    /* of a temporary: its offset in the workspace of a run */
  uint32_t first_step, last_step; /* the first and the last step that use it, for the workspace */
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
  atlas_program *program;     /* steps with equal programs share one */
  uint32_t same;              /* 1 + the first step with the same program; 0: this one is the first */
  uint32_t first_name;        /* its first entry among the operations that are noted for reports: see report.c */
  hg_contraction *contraction; /* a native kernel that does the step instead (hg_compile_input); NULL: none */
  hg_rows *rows;              /* what the program does, if a device may know a shorter way (atlas_launch) */
  uint64_t lanes;             /* of a linear launch; else 0, and then: */
  uint32_t grid[3], block[3];
  uint64_t step_limit;        /* of a launch whose lanes may take more back edges than the default allows; else 0 */
  ops_binding bindings[OPS_MAX_BINDINGS];
  uint32_t binding_count;
  ops_scalar *scalars;
  uint32_t scalar_count;
  uint8_t reads_first;        /* 1: each lane reads everything before it writes: an operand and a result that are both
                                 accessed as [x + lane] only may be the very same view */
  uint64_t box_elements;      /* the elements of the storage that it writes, if not all; else 0 */
  uint8_t is_fast;            /* 1: its bits are not the canonical ones */
  const char *kind;           /* "map", "rows", "columns", "contract", ...: for the report */
  uint32_t first_value, value_count; /* the values that it computes, in plan->values */
  uint64_t bytes_read, bytes_written, operations; /* for the report */
  char note[160];             /* why something was not fused; "": nothing to say */
} ops_step;

/* What the plan is made for. */
typedef struct ops_target {
  int for_gpu;
  uint32_t compute_units, shared_bytes; /* 0: unknown; the most of a block */
  int constants_vary; /* 1: computations like this one have come with other constants, which had better be scalars */
  int spreads_blocks; /* 1: a block whose lanes need many registers may use those of several multiprocessors */
  uint32_t numerics; /* of all contractions, in addition to their own: HG_NUMERICS_FAST, HG_NUMERICS_TF32 */
  uint64_t (*contract_scratch)(void *device, const hg_contraction *contraction, const char **why); /* hg_backend's */
  void *device;
  /* A program with the same text that there is code of, with a reference; NULL: there is none. NULL: nobody knows. */
  atlas_program *(*compiled)(void *executor, const atlas_program *program);
  void *executor;
  const hg_allocator *lasting; /* of programs and row moves, which outlive the plan; NULL: the plan's */
  /* The program of a step of a plan that had the same structure, borrowed; NULL: there is none. NULL: no such plan. */
  atlas_program *(*expected)(const void *like, uint32_t step);
  const void *like;
  hg_patience *patience; /* asked while the plan is made; NULL: nobody is asked */
} ops_target;

typedef struct ops_plan {
  hg_allocator allocator;
  hg_array storages; /* ops_storage */
  hg_array steps;    /* ops_step */
  hg_array made;     /* ops_step: the steps of the current group so far */
  hg_array values;   /* value_id: see ops_step.first_value */
  hg_array programs; /* uint32_t: a hash table by digest: 1 + the first step with a program; 0: free */
  uint64_t workspace_bytes;
  ops_target target;
  uint8_t for_gpu;   /* 1: blocks of shapes for GPUs; 0: for a CPU. The bits are the same */
  /* Of the storages examined so far (ops_look_at_storages): one has 2^31 elements or more; one has a negative
   * stride. */
  uint8_t has_large, has_negative;
  uint32_t looked_at;
} ops_plan;

/* What the planner hands to a writer of programs: the nodes of one launch. Everything that they read outside the group
 * lies in a storage. */
typedef struct ops_group {
  const hg_computation *computation;
  ops_plan *plan;
  const value_id *nodes;      /* ascending, so producers come first */
  uint32_t node_count;
  const uint32_t *storage_of; /* by node index: 1 + number of the storage that holds the value (written by an earlier
                                 step, an input, or to be written by this group); 0: it lives in registers only */
  const value_id *results;    /* the nodes whose values are written to their storages */
  uint32_t result_count;
} ops_group;

/* Where the group's launch writes result `index` of a node, counted from 0; 1 + a storage, 0: nowhere. */
static inline uint32_t ops_storage_of_result(const ops_group *group, value_id first, uint32_t index) {
  for (uint32_t i = 0; i < group->result_count; i++) {
    value_id value = group->results[i];
    uint32_t number = value != first ? ops_at(group->computation, value)->index : 0;
    if (ops_first_result(group->computation, value) == first && number == index) return group->storage_of[value - 1];
  }
  return 0;
}

/* 1 for a result's storage if it updates an input in place. */
static inline int ops_is_over_input(const ops_plan *plan, uint32_t storage) {
  return ((const ops_storage *)plan->storages.data)[storage].kind == OPS_OF_INPUT;
}

/* Adds a storage, and returns its number. */
hg_status ops_add_storage(ops_plan *plan, ops_storage storage, uint32_t *number);
hg_status ops_add_temporary_of(ops_plan *plan, uint8_t type, const ops_shape *shape, uint32_t *number);
/* Adds a temporary of that many elements, alive while steps use it: those that write and read it. */
hg_status ops_add_temporary(ops_plan *plan, uint8_t type, uint64_t count, uint32_t *storage);

/* The plan, with has_large and has_negative right for all its storages. */
const ops_plan *ops_look_at_storages(ops_plan *plan);

/* Writers. Each makes steps of the plan (ops_new_step) with program, launch shape, bindings and scalars: as many as it
 * needs. Later ones may fold what earlier ones have computed in parts, by way of temporaries that the writer adds to
 * plan->storages, without first_byte, first_step and last_step. Steps without a program are dropped. HG_UNSUPPORTED:
 * the group does not suit the writer, and the planner splits it. */
hg_status ops_write_map(const ops_group *group);      /* pointwise over one shape, any views */
hg_status ops_write_update(const ops_group *group);   /* an update, whose box lies in the base's memory */
hg_status ops_write_maps(const ops_group *groups, uint32_t count); /* several maps in one launch */
hg_status ops_write_rows(const ops_group *group);     /* reductions along one set of axes, and what surrounds them */
hg_status ops_write_contract(const ops_group *group); /* one contraction with prologue and epilogue */
hg_status ops_write_scatter(const ops_group *group);  /* one OPS_SCATTER */
hg_status ops_write_sort(const ops_group *group);     /* one OPS_SORT with its indices */
hg_status ops_write_top(const ops_group *group);      /* one OPS_TOP with its indices */
hg_status ops_write_factor(const ops_group *group);   /* one OPS_FACTOR */
hg_status ops_write_scan(const ops_group *group);     /* one OPS_SCAN */
hg_status ops_write_select(const ops_group *group);   /* one OPS_SELECT */

/* A zeroed step at the end of plan->made; it moves when another one is added. NULL: out of memory, which is a
 * failure. */
ops_step *ops_new_step(ops_plan *plan);
/* Drops the steps made so far, from number `first` on. */
void ops_drop_steps(ops_plan *plan, size_t first);

/* Adds a step, which then belongs to the plan. */
hg_status ops_add_step(ops_plan *plan, const ops_step *step);
/* The first step with the same program; UINT32_MAX: there is none. */
uint32_t ops_step_of_same(const ops_plan *plan, const atlas_program *program);
/* Of what outlives the plan. */
static inline const hg_allocator *ops_lasting(const ops_plan *plan) {
  return plan->target.lasting != NULL ? plan->target.lasting : &plan->allocator;
}
/* Begins the program of the step that was made last. */
hg_status ops_begin_program(const ops_plan *plan, const char *name, atlas_builder **builder);
/* Ends a step's program, which is an earlier step's if they are equal. Releases the builder in any case. */
hg_status ops_finish_program(const ops_plan *plan, atlas_builder *builder, ops_step *step);

/* Copies a storage's elements into another one of the same shape and type. */
hg_status ops_write_copy(ops_plan *plan, uint32_t from, uint32_t to);

void ops_plan_release(ops_plan *plan);

/* Releases a step's program: a kernel or an executable that uses it holds it. */
static inline void ops_step_release(const ops_plan *plan, ops_step *step) {
  atlas_program_release(step->program);
  hg_release(&plan->allocator, step->scalars);
  hg_release(&plan->allocator, step->contraction);
  hg_release(ops_lasting(plan), step->rows);
  step->program = NULL;
  step->scalars = NULL;
  step->contraction = NULL;
  step->rows = NULL;
}

#endif
