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

#endif
