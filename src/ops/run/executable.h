/* executable.h - compiled computations: a plan with a kernel for each step, and the cache of them that an executor
 * keeps.
 *
 * References: an executable counts its holders outside the cache, and holds the executor while it has any. The cache
 * belongs to the executor and so must not hold it: an executable borrows its kernels (hg_kernel_lend), and whoever
 * launches them holds the executable. The executor's lock guards the counts and the cache.
 *
 * Circle: cache executable explain origin run: what a run's fault was about is found by a run of another executable. */
#ifndef HG_OPS_EXECUTABLE_H
#define HG_OPS_EXECUTABLE_H

#include "ops/write/launch_plan.h"
#include "runtime/runtime.h"

#include <stdio.h>
#include <string.h>

/* What hg_run expects, as it was declared: an input or an output. */
typedef struct ops_place {
  char name[ATLAS_MAX_NAME + 1];
  uint8_t type, is_output, is_written;
  uint8_t element_bytes;
  uint32_t rank;
  uint64_t shape[HG_MAX_RANK];
  int64_t stride[HG_MAX_RANK];
  uint32_t begins;  /* the first launch that writes it; UINT32_MAX: none does */
  uint8_t by_lanes; /* 1: in that launch each lane reads its own elements and then writes its own */
  uint8_t is_read_elsewhere; /* 1: an input that last_read reads at other elements than the lane's own */
  uint32_t last_read; /* 1 + the last launch that reads it; 0: none does */
  int64_t lowest;   /* the lowest element relative to the tensor's offset, in elements */
  uint64_t extent;  /* elements between the lowest and the last; 0: the tensor is empty */
} ops_place;

/* A binding of a step: memory of a place, or in the workspace. */
typedef struct ops_bind {
  uint32_t slot;
  uint32_t place;      /* OPS_WORKSPACE, or the place's number: inputs first, then outputs */
  uint64_t first_byte; /* in the workspace */
  uint64_t byte_count;
} ops_bind;

#define OPS_WORKSPACE UINT32_MAX

typedef struct ops_launch {
  hg_kernel *kernel;
  uint64_t lanes;
  uint32_t grid[3], block[3];
  uint64_t step_limit; /* as in hg_launch_desc */
  ops_bind *binds;
  uint32_t bind_count;
  hg_scalar *scalars;
  uint32_t scalar_count;
  uint64_t moved_bytes; /* for statistics */
  uint32_t step;        /* of the plan, for reports */
  uint32_t first;       /* the first launch that uses the kernel */
} ops_launch;

static inline void ops_set_shape(const ops_launch *launch, hg_launch_desc *desc) {
  desc->lanes = launch->lanes;
  desc->step_limit = launch->step_limit;
  if (launch->lanes != 0) return;
  memcpy(desc->grid, launch->grid, sizeof desc->grid);
  memcpy(desc->block, launch->block, sizeof desc->block);
}

/* A flag of ops_executable_create in addition to those of hg_compile: no callback is asked whether to continue. */
#define OPS_UNASKED (UINT32_C(1) << 31)
/* Likewise: constants are scalars of the launches. */
#define OPS_CONSTANTS_VARY (UINT32_C(1) << 30)

typedef struct ops_eager ops_eager;
typedef struct ops_guards ops_guards;

struct hg_executable {
  hg_executor *executor;
  uint32_t references;          /* holders outside the cache; the executor's lock guards this and what follows */
  uint32_t pins;                /* eager calls that are running it, and origins: their tensors hold the executor */
  uint8_t is_cached;
  ops_eager *calls;             /* eager calls that find it */
  hg_executable *newer, *older;  /* in the cache, by last use */
  hg_executable *next;           /* in its bucket, or in a list of executables to be destroyed */
  uint64_t hash;
  uint8_t *key;                  /* the computation, as ops_key_of wrote it */
  size_t key_bytes;
  uint64_t structure;            /* the key's */
  uint64_t byte_count;           /* an estimate of the bytes that it occupies, with code that others use, too */

  uint32_t flags;                /* from here on, constant once it is made */
  uint32_t input_count, output_count, place_count;
  ops_place *places;
  ops_launch *launches;          /* launches, of steps that run anything */
  uint32_t launch_count;
  uint64_t workspace_bytes;
  ops_plan plan;                 /* without its programs */
  hg_array operations;           /* char: for the report, see report.c */
  ops_guards *guards;            /* its indices that may be out of range, see explain.c; NULL: there are none */
  hg_origin *spare_origins;      /* see origin.c; guarded by the executor's lock */
};

static inline hg_patience ops_patience(const hg_executable *e) {
  return (e->flags & OPS_UNASKED) == 0 ? hg_executor_patience(e->executor) : (hg_patience){.ask = NULL};
}

/* 1 if a written place and another place may be the very same view: no launch reads an input after the place has begun
 * to be written, or in a launch that does both each lane reads its own element of the one and then writes its own of
 * the other. */
static inline int ops_may_share(const hg_executable *e, uint32_t written, uint32_t other) {
  const ops_place *to = &e->places[written], *from = &e->places[other];
  if (!to->is_written || from->is_written || written == other) return 0;
  return from->last_read <= to->begins ||
         (from->last_read == to->begins + 1 && to->by_lanes && !from->is_read_elsewhere);
}

/* Plans and compiles; the result has one reference and is not in the cache. `like`: an executable of the same
 * structure, whose programs these are likely to be, held by the caller; NULL: none is known. */
hg_status ops_executable_create(hg_executor *executor, const hg_computation *computation, uint32_t flags,
                                const hg_executable *like, hg_executable **out);
/* Requires that nobody holds it and it is not in the cache. Called without the lock. */
void ops_executable_destroy(hg_executable *executable);
/* An estimate of the bytes that code occupies, with its program. */
uint64_t ops_code_bytes(const hg_code *code);
/* Gives up a pin. 1: nobody needs the executable any more, and the caller has to destroy it, without the lock. */
int ops_unpin_locked(hg_executable *executable);

/* What determines an executable, as bytes: two computations with equal bytes share one. */
typedef struct ops_key {
  hg_array bytes; /* uint8_t */
  uint64_t hash;
  uint64_t structure, sizes, constants; /* hashes: of the bytes without sizes and constants; of these; 0: none */
  int constants_vary; /* 1: other constants came before, as ops_cache_find has seen */
  hg_executable *like; /* the last one of the structure, as it has found, with a reference; NULL */
} ops_key;
hg_status ops_key_of(const hg_allocator *allocator, const hg_computation *computation, uint32_t flags, ops_key *key);

/* Writes what the report needs, at the end of a compilation. */
hg_status ops_note_operations(hg_executable *executable, const hg_computation *computation);
/* "exp, 2 x mul": the operations of a step. */
void ops_operations_of(const hg_executable *executable, uint32_t step, char *text, size_t text_bytes);

/* Keeps what indices that may be out of range are computed from. */
hg_status ops_note_guards(hg_executable *executable, const hg_computation *computation);
void ops_guards_release(hg_executable *executable);
uint64_t ops_guards_bytes(const hg_executable *executable);
/* "take, scatter": the operations with such indices; "": there are none. */
void ops_guards_names(const hg_executable *executable, char *text, size_t text_bytes);
/* The number of inputs that the indices of an executable with guards are computed from; these inputs have numbers of
 * their own. A tensor that the run writes to has type ATLAS_NONE. */
uint32_t ops_guards_input_count(const hg_executable *executable);
uint32_t ops_guards_place(const hg_executable *executable, uint32_t number);
void ops_guards_input(const hg_executable *executable, uint32_t number, const hg_tensor *inputs,
                      const hg_tensor *outputs, hg_tensor *input);
/* The sentence about the first index out of range; the fault then describes that index. of_indices: those inputs. 0: no
 * such index was found. */
int ops_explain(const hg_executable *executable, const hg_tensor *of_indices, hg_fault *fault, char *text,
                size_t text_bytes);
/* What the launches of a run on a stream keep, for an executable with guards: an origin with a reference; NULL: their
 * indices cannot be determined later. The second function, called without the lock, takes hold of the inputs before the
 * first launch. */
hg_origin *ops_origin_begin_locked(hg_executable *executable, const hg_tensor *inputs);
void ops_origin_hold(hg_origin *head, const hg_tensor *inputs, const hg_tensor *outputs);
void ops_origins_release(const hg_allocator *allocator, hg_origin *spares);

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The sentence about a launch's fault, with operations and tensor; fault->buffer becomes the tensor's name. For an
 * index out of range it names the index, if the tensors of the run still hold their values. */
void ops_describe_fault(const hg_executable *executable, const ops_launch *launch, const hg_tensor *inputs,
                        const hg_tensor *outputs, hg_fault *fault, char *text, size_t text_bytes);
/* Fails with a fault. */
hg_status ops_fail_fault(const hg_fault *fault, const char *sentence);
/* Checks all tensors and makes the launches: hg_run without its checks of arguments. cancel_number: executor->cancels
 * when the call that this belongs to began. */
hg_status ops_run(hg_executable *executable, const hg_tensor *inputs, const hg_tensor *outputs, hg_stream *stream,
                  uint32_t cancel_number, hg_launch_report *report);

/* ---- the cache --------------------------------------------------------------------------------------------------- */

enum { OPS_BUCKETS = 2048, OPS_STRUCTURES = 1024 };

/* An eager call that was made before: see eager.c. */
struct ops_eager {
  ops_eager *next;      /* the next one in its bucket */
  ops_eager *sibling;   /* the next one of the same executable */
  hg_executable *executable;
  uint64_t hash;
  uint32_t word_count;
  uint8_t is_direct;    /* 1: one launch that needs only arguments */
  uint32_t *tensor_of;  /* by place: the number of the call's tensor; inputs first */
  atlas_launch shape;   /* the launch */
  atlas_argument *arguments; /* the launch's arguments, with its scalars */
  uint64_t words[];     /* the key */
};

/* A structure of computations: see ops_key. */
typedef struct ops_structure {
  uint64_t structure, sizes, constants; /* the last ones */
  int changes, varies; /* how often its constants were others; 1: so often that they are scalars from now on */
  hg_executable *last; /* of the cache; NULL */
} ops_structure;

/* What an executor keeps, as its attachment. */
typedef struct ops_attachment {
  hg_executable **buckets, *few_buckets[OPS_BUCKETS]; /* as many lists as executables at least, by hash */
  uint64_t bucket_count;
  ops_eager *calls[OPS_BUCKETS];
  ops_structure structures[OPS_STRUCTURES]; /* the last ones that were compiled, by hash */
  hg_executable *newest, *oldest;
  uint64_t byte_cap, bytes, count, hits, misses, evictions;
} ops_attachment;

/* The executor's executable with that key, with a reference; NULL: there is none, and the key says what is known of its
 * structure. Counts a hit or a miss. */
hg_status ops_cache_find(hg_executor *executor, ops_key *key, hg_executable **out);
/* Makes it the most recently used one. */
void ops_cache_touch_locked(ops_attachment *attachment, hg_executable *executable);
/* Adds a call to its executable, which the caller holds; 0: the executable is no longer in the cache. */
int ops_cache_add_call(hg_executor *executor, ops_eager *call, uint64_t byte_count);
/* hg_compile for a valid computation. */
hg_status ops_compile(hg_executor *executor, const hg_computation *computation, uint32_t flags, hg_executable **out);
/* Puts a new executable into the cache if it fits. If another thread has put in an equal one, *executable becomes that
 * one. Takes over the key's bytes. */
void ops_cache_add(hg_executor *executor, ops_key *key, hg_executable **executable);

#endif
