/* on_backend.h - runs a program through the public interface on a backend, as tests/random runs it elsewhere. */
#ifndef HG_TESTS_ON_BACKEND_H
#define HG_TESTS_ON_BACKEND_H

#include "draft.h"
#include "hologram/hologram.h"

typedef struct backend_run {
  hg_backend_id backend;
  const draft *d;
  const test_launch *l;
  atlas_program *program;
} backend_run;

/* A run_function; its context is a backend_run. The process keeps one executor, made at the first run. */
hg_status run_on_backend(const void *context, atlas_launch *launch);

/* What a launch binds: its arena's ranges, of a buffer that the caller fills in, and its scalars. */
typedef struct bound_arguments {
  hg_binding bindings[DRAFT_SYMBOLS * DRAFT_TABLE_ENTRIES];
  size_t binding_count;
  hg_scalar scalars[DRAFT_SYMBOLS];
  size_t scalar_count;
} bound_arguments;

void bind_arguments(const draft *d, const test_launch *l, const atlas_launch *launch, bound_arguments *b);

/* Simulated Metal compiles many kernels together in a fraction of the time that they take one by one: runs between
 * defer_kernels(1) and (0) compute nothing, and their kernels are compiled then. 0: nobody here can do that. */
int defer_kernels(int on);

#endif
