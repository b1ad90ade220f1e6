/* run.h - `hologram run`, in steps: the command line (run_options.c), the program's parameters (run_memory.c), the
 * launch and its report (cmd_run.c). */
#ifndef HG_CLI_RUN_H
#define HG_CLI_RUN_H

#include "cli/cli.h"
#include "hologram/ops.h"

typedef enum run_option {
  RUN_BUFFER, RUN_OUT, RUN_SCALAR, RUN_TABLE, RUN_POOL, RUN_SIZE, /* NAME=VALUE, kept as items */
  RUN_LANES, RUN_GRID, RUN_BLOCK, RUN_BACKEND, RUN_ENGINE, RUN_STEP_LIMIT, RUN_REPEAT, RUN_TIME,
  RUN_JSON
} run_option;

enum { RUN_MOST_REPEATS = 1000000 };

/* One NAME=VALUE or NAME:ENTRY=VALUE. */
typedef struct run_item {
  run_option option;
  char name[ATLAS_MAX_NAME + 1];
  int has_entry;
  uint32_t entry;
  const char *value;
} run_item;

typedef struct run_options {
  const char *program;
  run_item *items;
  size_t item_count;
  int has_lanes;
  uint64_t lanes;
  uint32_t grid[3], block[3];
  uint64_t step_limit;
  uint64_t repeat;     /* runs; 0: one, and nothing about repetition is printed */
  hg_backend_id backend;
  const char *engine;  /* NULL: not said */
  int time, json;
} run_options;

/* CLI_OK, or CLI_USAGE with the sentence printed. */
int run_parse_options(int argc, char **argv, run_options *options);

/* Memory of one parameter, or of one entry of a table. */
typedef struct run_memory {
  const atlas_symbol *symbol;
  uint32_t slot, entry;
  atlas_type type;     /* of elements in files */
  int sized;           /* count is known */
  uint64_t count;
  hg_tensor array;     /* given by --buffer or --table; with the buffer below */
  int given;           /* 1: there is an array */
  const char *out;     /* file to write, or NULL */
  hg_buffer *buffer;
  hg_buffer *first;    /* what was given, for the runs after the first; NULL: it is not written, or nothing was */
} run_memory;

typedef struct run_state {
  run_options options;
  atlas_program *program;
  const atlas_symbol *symbols;
  size_t symbol_count;
  run_memory *memory;
  size_t memory_count;
  hg_scalar *scalars;
  size_t scalar_count;
  hg_launch_desc launch;
  hg_binding *bindings;
  hg_executor *executor;
  hg_kernel *kernel;
  hg_launch_report report; /* of the first run */
  uint64_t *times;     /* nanoseconds of each run, sorted; NULL without --repeat */
  hg_status status;    /* of what failed */
  char message[1200];  /* why */
} run_state;

/* Sets the sentence (and the status, for --json); returns CLI_BAD_INPUT. */
int run_fail(run_state *run, hg_status status, const char *format, ...) HG_PRINTF(3, 4);

/* Steps; each returns CLI_OK or run_fail(...). */
int run_read_scalars(run_state *run);
int run_plan_memory(run_state *run);   /* items to run->memory, files loaded, sizes and lanes decided */
int run_create_memory(run_state *run); /* the other buffers */
int run_refill_memory(run_state *run); /* their contents as they were at first */
int run_write_outputs(run_state *run);

/* The tensor that is written to an output file. Its shape is that of the parameter's own array, else of the first array
 * with as many elements, else one-dimensional. */
hg_tensor run_output(const run_state *run, const run_memory *memory);
/* NumPy's name of the type in such files. */
const char *run_dtype(atlas_type type);

#endif
