/* cmd_run.c - `hologram run`: a program, run once on arrays from files. */
#include "cli/run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int run_fail(run_state *run, hg_status status, const char *format, ...) {
  char message[sizeof run->message]; /* apart: an argument may be the old message */
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  memcpy(run->message, message, sizeof message);
  run->status = status;
  return CLI_BAD_INPUT;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static int load(run_state *run) {
  char why[sizeof run->message];
  hg_status status = HG_OK;
  if (cli_load_program(run->options.program, &run->program, &status, why, sizeof why) != 0)
    return run_fail(run, status, "%s", why);
  if (atlas_program_is_library(run->program))
    return run_fail(run, HG_VERIFY, "%s: a library of functions (.entry) cannot be run", run->options.program);
  run->symbols = atlas_program_symbols(run->program, &run->symbol_count);
  return CLI_OK;
}

static int open_executor(run_state *run) {
  hg_executor_desc desc = {.size = sizeof desc, .backend = run->options.backend, .engine = run->options.engine};
  hg_status status = hg_executor_create(&desc, &run->executor);
  return status == HG_OK ? CLI_OK : run_fail(run, status, "%s", hg_last_error());
}

static int create_kernel(run_state *run) {
  hg_status status = hg_kernel_create(run->executor, run->program, &run->kernel);
  return status == HG_OK ? CLI_OK : run_fail(run, status, "%s", hg_last_error());
}

/* CLI_FAULT where the program faulted. */
static int launch(run_state *run, hg_launch_report *report) {
  hg_status status = hg_launch(run->kernel, &run->launch, report);
  if (status == HG_OK) return CLI_OK;
  run_fail(run, status, "%s: %s", run->options.program, hg_last_error());
  return status == HG_FAULT ? CLI_FAULT : CLI_BAD_INPUT;
}

/* The run asked for. */
static int launch_first(run_state *run) {
  hg_binding *bindings = calloc(run->memory_count + 1, sizeof *bindings);
  if (bindings == NULL) return run_fail(run, HG_OUT_OF_MEMORY, "out of memory");
  for (size_t i = 0; i < run->memory_count; i++)
    bindings[i] =
        (hg_binding){.slot = run->memory[i].slot, .entry = run->memory[i].entry, .buffer = run->memory[i].buffer};
  run->bindings = bindings;
  run->launch.bindings = bindings;
  run->launch.binding_count = run->memory_count;
  run->launch.scalars = run->scalars;
  run->launch.scalar_count = run->scalar_count;
  run->launch.step_limit = run->options.step_limit;
  return launch(run, &run->report);
}

static int by_size(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* The runs after the first, each on what that was given. */
static int repeat(run_state *run) {
  int code = CLI_OK;
  uint64_t count = run->options.repeat, *times = calloc((size_t)count, sizeof *times);
  if (times == NULL) return run_fail(run, HG_OUT_OF_MEMORY, "out of memory");
  times[0] = run->report.nanoseconds;
  for (uint64_t i = 1; i < count && code == CLI_OK; i++) {
    hg_launch_report again = {.size = sizeof again};
    code = run_refill_memory(run);
    if (code == CLI_OK) code = launch(run, &again);
    times[i] = again.nanoseconds;
  }
  if (code == CLI_OK) {
    qsort(times, (size_t)count, sizeof *times, by_size);
    run->times = times;
  } else {
    free(times);
  }
  return code;
}

/* The middle of the sorted times, the mean of two where they are even. */
static uint64_t median(const run_state *run) {
  uint64_t count = run->options.repeat, high = run->times[count / 2], low = run->times[(count - 1) / 2];
  return low + (high - low) / 2;
}

static int run_all(run_state *run) {
  int code = load(run);
  if (code == CLI_OK) code = run_read_scalars(run);
  if (code == CLI_OK) code = open_executor(run);
  if (code == CLI_OK) code = run_plan_memory(run);
  if (code == CLI_OK) code = create_kernel(run);
  if (code == CLI_OK) code = run_create_memory(run);
  if (code == CLI_OK) code = launch_first(run);
  if (code == CLI_OK) {
    code = run_write_outputs(run);
    return code == CLI_OK && run->options.repeat > 0 ? repeat(run) : code;
  }
  if (code == CLI_FAULT) { /* what the other lanes did stands */
    char fault[sizeof run->message];
    memcpy(fault, run->message, sizeof fault);
    if (run_write_outputs(run) != CLI_OK) cli_fail(CLI_BAD_INPUT, "%s", run->message);
    run_fail(run, HG_FAULT, "%s", fault);
  }
  return code;
}

static void release(run_state *run) {
  for (size_t i = 0; i < run->memory_count; i++) {
    hg_buffer_release(run->memory[i].buffer);
    hg_buffer_release(run->memory[i].first);
  }
  hg_kernel_release(run->kernel);
  hg_executor_release(run->executor);
  atlas_program_release(run->program);
  free(run->times);
  free(run->bindings);
  free(run->memory);
  free(run->scalars);
  free(run->options.items);
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static void print_fault(const run_state *run) {
  const hg_fault *fault = &run->report.fault;
  printf(",\"fault\":{\"kind\":");
  cli_json_string(stdout, hg_fault_kind_name(fault->kind));
  printf(",\"instruction\":%" PRIu32 ",\"line\":%" PRIu32 ",\"lane\":%" PRIu64 ",\"code\":%" PRIu32 ",\"buffer\":",
         fault->instruction, fault->line, fault->lane, fault->code);
  cli_json_string(stdout, fault->buffer);
  printf(",\"index\":%" PRId64 ",\"extent\":%" PRId64 "}", fault->index, fault->extent);
}

static void print_outputs(const run_state *run) {
  const char *separator = "";
  printf(",\"outputs\":[");
  for (size_t i = 0; i < run->memory_count; i++) {
    const run_memory *memory = &run->memory[i];
    hg_tensor output = run_output(run, memory);
    if (memory->out == NULL) continue;
    printf("%s{\"name\":\"%s\",\"file\":", separator, memory->symbol->name);
    cli_json_string(stdout, memory->out);
    printf(",\"dtype\":\"%s\",\"shape\":[", run_dtype(memory->type));
    for (uint32_t d = 0; d < output.rank; d++) printf("%s%" PRIu64, d > 0 ? "," : "", output.shape[d]);
    printf("]}");
    separator = ",";
  }
  printf("]");
}

static void print_json(const run_state *run, int code) {
  printf("{\"status\":\"%s\"", hg_status_name(run->status));
  if (code != CLI_OK) {
    printf(",\"error\":");
    cli_json_string(stdout, run->message);
  }
  if (code == CLI_OK || code == CLI_FAULT) {
    printf(",\"program\":\"%s\",\"backend\":\"%s\",\"engine\":\"%s\",\"lanes\":%" PRIu64 ",\"nanoseconds\":%" PRIu64,
           atlas_program_name(run->program), run->report.backend, run->report.engine, run->report.lanes,
           run->report.nanoseconds);
    printf(",\"notes\":");
    cli_json_string(stdout, run->report.notes);
    if (run->times != NULL)
      printf(",\"runs\":%" PRIu64 ",\"minimum_nanoseconds\":%" PRIu64 ",\"median_nanoseconds\":%" PRIu64,
             run->options.repeat, run->times[0], median(run));
    if (code == CLI_FAULT) print_fault(run);
    else printf(",\"fault\":null");
    print_outputs(run);
  }
  printf("}\n");
}

static void print_milliseconds(uint64_t nanoseconds) {
  uint64_t microseconds = (nanoseconds + 500) / 1000;
  printf("%" PRIu64 ".%03" PRIu64 " ms", microseconds / 1000, microseconds % 1000);
}

static void print_time(const run_state *run) {
  const char *notes = run->report.notes;
  printf("%s: ", atlas_program_name(run->program));
  if (run->times != NULL) {
    print_milliseconds(run->times[0]);
    printf(" (minimum), ");
    print_milliseconds(median(run));
    printf(" (median of %" PRIu64 " runs)", run->options.repeat);
  } else {
    print_milliseconds(run->report.nanoseconds);
  }
  printf(" for %" PRIu64 " lanes on %s (%s engine%s%s)\n", run->report.lanes, run->report.backend, run->report.engine,
         notes[0] != '\0' ? ": " : "", notes);
}

int cmd_run(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return cli_print_help(stdout, "run") ? CLI_OK : CLI_USAGE;
  run_state run = {.report = {.size = 0}};
  int code = run_parse_options(argc, argv, &run.options);
  if (code == CLI_OK) {
    code = run_all(&run);
    if (code != CLI_OK) cli_fail(code, "%s", run.message);
    if (run.options.json) print_json(&run, code);
    else if ((run.options.time || run.times != NULL) && (code == CLI_OK || code == CLI_FAULT)) print_time(&run);
  }
  release(&run);
  return code;
}
