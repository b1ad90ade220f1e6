/* launch.c - launches: shape, execution, report. */
#include "runtime/runtime.h"

#include "atlas/program.h"
#include "base/fp.h"

#include <string.h>

#define MAX_LANES (UINT64_C(1) << 40) /* an exclusive bound */
#define MAX_GRID INT32_MAX

/* ---- shape ------------------------------------------------------------------------------------------------------- */

static int any_set(const uint32_t size[3]) { return size[0] != 0 || size[1] != 0 || size[2] != 0; }

static hg_status check_block(const atlas_program *program, const uint32_t block[3], uint64_t *lanes) {
  *lanes = 1;
  for (int d = 0; d < 3; d++) {
    *lanes *= block[d];
    if (*lanes > ATLAS_MAX_BLOCK_LANES)
      return hg_fail(HG_INVALID_ARGUMENT, "a block of %u x %u x %u lanes is too large; a block has at most %d lanes",
                     (unsigned)block[0], (unsigned)block[1], (unsigned)block[2], ATLAS_MAX_BLOCK_LANES);
  }
  const uint32_t *required = program->block;
  if (any_set(required) && memcmp(required, block, sizeof program->block) != 0)
    return hg_fail(HG_INVALID_ARGUMENT, "program '%s' requires blocks of %u x %u x %u lanes, not %u x %u x %u",
                   program->name, (unsigned)required[0], (unsigned)required[1], (unsigned)required[2],
                   (unsigned)block[0], (unsigned)block[1], (unsigned)block[2]);
  return HG_OK;
}

static hg_status set_grid(const atlas_program *program, const hg_launch_desc *desc, atlas_launch *launch,
                          uint64_t *lanes) {
  const uint32_t *own = any_set(program->block) ? program->block : program->default_block;
  const uint32_t *wanted = any_set(desc->block) ? desc->block : own;
  for (int d = 0; d < 3; d++) {
    launch->grid[d] = desc->grid[d] == 0 ? 1 : desc->grid[d];
    launch->block[d] = wanted[d] == 0 ? 1 : wanted[d];
  }
  HG_TRY(check_block(program, launch->block, lanes));
  for (int d = 0; d < 3; d++) {
    if (launch->grid[d] > MAX_GRID)
      return hg_fail(HG_INVALID_ARGUMENT, "grid dimension %c is %u blocks; at most %d are possible", "xyz"[d],
                     (unsigned)launch->grid[d], MAX_GRID);
    if (launch->grid[d] > (MAX_LANES - 1) / *lanes)
      return hg_fail(
          HG_INVALID_ARGUMENT,
          "a grid of %u x %u x %u blocks of %u x %u x %u lanes is too large: a launch has fewer than 2^40 lanes",
          (unsigned)launch->grid[0], (unsigned)launch->grid[1], (unsigned)launch->grid[2], (unsigned)launch->block[0],
          (unsigned)launch->block[1], (unsigned)launch->block[2]);
    *lanes *= launch->grid[d];
  }
  return HG_OK;
}

/* Fills in the shape; *lanes is the number of lanes. */
static hg_status set_shape(const atlas_program *program, const hg_launch_desc *desc, atlas_launch *launch,
                           uint64_t *lanes) {
  if (any_set(desc->grid)) {
    if (desc->lanes != 0)
      return hg_fail(HG_INVALID_ARGUMENT, "a launch is given by lanes or by grid and block; both are set");
    return set_grid(program, desc, launch, lanes);
  }
  if (any_set(desc->block))
    return hg_fail(HG_INVALID_ARGUMENT,
                   "a launch with a block size needs a grid size; in a linear launch leave both 0");
  if (desc->lanes >= MAX_LANES)
    return hg_fail(HG_INVALID_ARGUMENT, "%llu lanes are too many; a launch has fewer than 2^40",
                   (unsigned long long)desc->lanes);
  if (program->block[1] > 1 || program->block[2] > 1)
    return hg_fail(HG_INVALID_ARGUMENT,
                   "program '%s' requires blocks of %u x %u x %u lanes; launch it with a grid, not with lanes",
                   program->name, (unsigned)program->block[0], (unsigned)program->block[1],
                   (unsigned)program->block[2]);
  launch->lanes = *lanes = desc->lanes;
  if (program->default_block[1] == 1 && program->default_block[2] == 1) launch->block[0] = program->default_block[0];
  return HG_OK;
}

static hg_status check_desc(const hg_launch_desc *desc) {
  HG_TRY(HG_CHECK_STRIDE(hg_binding, "hg_launch_desc.binding_size", desc->binding_size));
  HG_TRY(HG_CHECK_STRIDE(hg_scalar, "hg_launch_desc.scalar_size", desc->scalar_size));
  if (desc->flags & ~(uint32_t)HG_LAUNCH_UNITY_NEUTRAL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_launch_desc.flags 0x%x has a bit that means nothing",
                   (unsigned)desc->flags);
  if (desc->bindings == NULL && desc->binding_count > 0)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_launch_desc.bindings is NULL, binding_count is %zu", desc->binding_count);
  if (desc->scalars == NULL && desc->scalar_count > 0)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_launch_desc.scalars is NULL, scalar_count is %zu", desc->scalar_count);
  return HG_OK;
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

/* While this call waited, it may have been cancelled. */
static hg_status check_goes_on(const hg_executor *executor, const atlas_launch *launch) {
  if (atomic_load_explicit(&executor->cancels, memory_order_relaxed) == launch->cancel_number) return HG_OK;
  return hg_fail(HG_CANCELLED, "hg_cancel has ended this call");
}

/* Sets round-to-nearest with gradual underflow, as the numerics contract requires, whatever the caller's thread has
 * set. Measures the time only if the caller wants it. */
static hg_status run_in_default_environment(hg_kernel *kernel, atlas_launch *launch, uint64_t *nanoseconds) {
  hg_executor *executor = kernel->executor;
  HG_TRY(check_goes_on(executor, launch));
  uint64_t start = nanoseconds != NULL ? hg_time_ns() : 0;
  launch->wants_time = nanoseconds != NULL;
  hg_fp_state callers = hg_fp_enter();
  hg_status status = executor->backend->launch(executor->device, kernel->compiled.kernel, launch);
  hg_fp_leave(callers);
  if (nanoseconds != NULL) *nanoseconds = launch->nanoseconds != 0 ? launch->nanoseconds : hg_time_ns() - start;
  return status;
}

static void count_locked(hg_executor *executor, const atlas_launch *launch) {
  executor->counts.launches++;
  executor->counts.moved_bytes += launch->moved_bytes;
}

/* Adds the launch's deltas to the executor's counters. Sums wrap. */
static void add_resonance(hg_executor *executor, const hg_launch_desc *desc, atlas_launch *launch) {
  if (desc->flags & HG_LAUNCH_UNITY_NEUTRAL) {
    uint64_t sum = 0;
    for (int c = 0; c < ATLAS_CLASS_COUNT; c++) sum += (uint64_t)launch->resonance[c];
    if (launch->fault.kind == HG_FAULT_NONE && sum != 0)
      launch->fault = (hg_fault){.kind = HG_FAULT_UNITY, .index = (int64_t)sum};
    if (launch->fault.kind != HG_FAULT_NONE) return;
  }
  for (int c = 0; c < ATLAS_CLASS_COUNT; c++)
    executor->resonance[c] = (int64_t)((uint64_t)executor->resonance[c] + (uint64_t)launch->resonance[c]);
}

/* Fills in arguments, boundary, phase and step limit. The arguments are in `bound` and live as long. */
static hg_status prepare_locked(hg_kernel *kernel, const hg_launch_desc *desc, hg_bound *bound, atlas_launch *launch) {
  hg_executor *executor = kernel->executor;
  HG_TRY(hg_bind_locked(kernel, desc, bound));
  if (kernel->needs->uses_boundary) HG_TRY(hg_boundary_locked(executor, &launch->boundary));
  launch->arguments = bound->arguments;
  launch->phase = executor->phase;
  launch->step_limit = desc->step_limit != 0 ? desc->step_limit : HG_DEFAULT_STEP_LIMIT;
  return HG_OK;
}

/* Waits for pending work of streams on the launch's memory first. */
static hg_status prepare_after_streams_locked(hg_kernel *kernel, const hg_launch_desc *desc, hg_bound *bound,
                                              atlas_launch *launch) {
  hg_executor *executor = kernel->executor;
  bound->used = 0;
  bound->stream = NULL;
  bound->keeper = NULL;
  if (kernel->needs->uses_boundary) HG_TRY(hg_settle_locked(executor, &executor->boundary_used));
  hg_status status = prepare_locked(kernel, desc, bound, launch);
  if (status != HG_OK || bound->used == 0) return status;
  hg_release(&executor->allocator, bound->tables);
  bound->tables = NULL;
  HG_TRY(hg_settle_busy_locked(executor, &bound->used)); /* the lock was released, so buffers may be mapped now */
  bound->used = 0; /* streams that have got more work since: what this launch writes is not theirs */
  return prepare_locked(kernel, desc, bound, launch);
}

static hg_status try_locked(hg_kernel *kernel, const hg_launch_desc *desc, atlas_launch *launch, uint64_t lanes,
                            uint64_t *nanoseconds) {
  hg_executor *executor = kernel->executor;
  hg_bound bound;
  bound.tables = NULL;
  hg_status status = prepare_after_streams_locked(kernel, desc, &bound, launch);
  if (status == HG_OK && lanes > 0) {
    status = run_in_default_environment(kernel, launch, nanoseconds);
    if (status == HG_OK) count_locked(executor, launch);
    if (status == HG_OK && kernel->needs->uses_resonance) add_resonance(executor, desc, launch);
    if (status == HG_OK && kernel->needs->advances_phase)
      executor->phase = (executor->phase + launch->phase_advance % ATLAS_PHASE_COUNT) % ATLAS_PHASE_COUNT;
  }
  launch->arguments = NULL;
  hg_release(&executor->allocator, bound.tables);
  return status;
}

/* Compiling released the lock, so all checks are repeated. */
static hg_status run_locked(hg_kernel *kernel, const hg_launch_desc *desc, atlas_launch *launch, uint64_t lanes,
                            uint64_t *nanoseconds) {
  hg_status status = try_locked(kernel, desc, launch, lanes, nanoseconds);
  while (status == HG_UNPREPARED) {
    HG_TRY(hg_kernel_prepare_locked(kernel));
    status = try_locked(kernel, desc, launch, lanes, nanoseconds);
  }
  return status;
}

/* ---- on a stream ------------------------------------------------------------------------------------------------- */

static hg_status try_to_submit_locked(hg_kernel *kernel, const hg_launch_desc *desc, atlas_launch *launch,
                                      uint64_t lanes, hg_origin *origin) {
  hg_executor *executor = kernel->executor;
  hg_stream *stream = desc->stream;
  hg_bound bound;
  bound.tables = NULL;
  HG_TRY(hg_stream_room_locked(stream));
  bound.used = hg_stream_bit(stream);
  bound.stream = stream;
  bound.keeper = stream->capture;
  size_t kept = bound.keeper != NULL ? bound.keeper->storages.count : 0;
  hg_status status = prepare_locked(kernel, desc, &bound, launch);
  if (status == HG_OK) status = check_goes_on(executor, launch);
  if (status == HG_OK && lanes > 0) {
    hg_work work = {.kind = HG_WORK_LAUNCH,
                    .kernel = kernel->compiled.kernel,
                    .program = kernel->program,
                    .launch = launch};
    if (kernel->needs->uses_boundary) executor->boundary_used |= hg_stream_bit(stream);
    status = hg_stream_submit_locked(stream, &work, kernel, lanes, origin);
    if (status == HG_OK && stream->capture != NULL) stream->capture->moved_bytes += launch->moved_bytes;
    else if (status == HG_OK) count_locked(executor, launch);
  }
  if (status != HG_OK && bound.keeper != NULL) hg_graph_forget_locked(bound.keeper, kept);
  launch->arguments = NULL;
  hg_release(&executor->allocator, bound.tables);
  return status;
}

static hg_status submit_locked(hg_kernel *kernel, const hg_launch_desc *desc, atlas_launch *launch, uint64_t lanes,
                               hg_origin *origin) {
  hg_status status = try_to_submit_locked(kernel, desc, launch, lanes, origin);
  while (status == HG_UNPREPARED) {
    HG_TRY(hg_kernel_prepare_locked(kernel));
    status = try_to_submit_locked(kernel, desc, launch, lanes, origin);
  }
  return status;
}

/* The counters and the phase are on the host, so such a launch runs in this call, after the stream's pending work. */
static hg_status run_behind(hg_kernel *kernel, const hg_launch_desc *desc, atlas_launch *launch, uint64_t lanes) {
  hg_executor *executor = kernel->executor;
  hg_lock(executor);
  int captures = desc->stream->capture != NULL;
  hg_unlock(executor);
  if (captures)
    return hg_fail(HG_UNSUPPORTED,
                   "program '%s' changes resonance counters or the phase, which a graph cannot; launch it by itself",
                   kernel->program->name);
  HG_TRY(hg_stream_settle(desc->stream));
  hg_lock(executor);
  hg_status status = run_locked(kernel, desc, launch, lanes, NULL);
  if (status == HG_OK && launch->fault.kind != HG_FAULT_NONE)
    (void)hg_stream_note_fault_locked(desc->stream, kernel, &launch->fault, lanes);
  hg_unlock(executor);
  launch->fault.kind = HG_FAULT_NONE; /* hg_stream_wait reports it */
  return status;
}

static hg_status launch_on_stream(hg_kernel *kernel, const hg_launch_desc *desc, atlas_launch *launch,
                                  uint64_t lanes, hg_origin *origin) {
  hg_executor *executor = kernel->executor;
  HG_TRY(hg_check_stream("hg_launch_desc.stream", executor, desc->stream));
  if (kernel->needs->uses_resonance || kernel->needs->advances_phase) return run_behind(kernel, desc, launch, lanes);
  hg_lock(executor);
  hg_status status = submit_locked(kernel, desc, launch, lanes, origin);
  hg_unlock(executor);
  return status;
}

/* ---- the public functions ---------------------------------------------------------------------------------------- */

/* Clears the launch except for large fields that nobody reads: the counters of a program without any, and the fault's
 * fields while its kind is HG_FAULT_NONE. */
static void clear_launch(const hg_kernel *kernel, atlas_launch *launch) {
  memset(launch, 0, offsetof(atlas_launch, resonance));
  launch->rows = kernel->rows;
  launch->contraction = kernel->contraction;
  if (kernel->needs->uses_resonance) memset(launch->resonance, 0, sizeof launch->resonance);
  launch->phase_advance = 0;
  launch->nanoseconds = 0;
  launch->notes = NULL;
  launch->fault.kind = HG_FAULT_NONE;
}

int hg_launch_is_plain(const hg_kernel *kernel) {
  const hg_needs *needs = kernel->needs;
  return !needs->uses_boundary && !needs->uses_resonance && !needs->advances_phase && !needs->has_tables;
}

hg_status hg_launch_shape(const hg_kernel *kernel, const hg_launch_desc *desc, atlas_launch *launch, uint64_t *lanes) {
  clear_launch(kernel, launch);
  launch->step_limit = desc->step_limit != 0 ? desc->step_limit : HG_DEFAULT_STEP_LIMIT;
  return set_shape(kernel->program, desc, launch, lanes);
}

hg_status hg_launch_plain_locked(hg_kernel *kernel, const atlas_launch *shape, const atlas_argument *arguments,
                                 uint32_t cancel_number, hg_fault *fault) {
  atlas_launch launch;
  memcpy(&launch, shape, offsetof(atlas_launch, resonance));
  launch.arguments = arguments;
  launch.phase = kernel->executor->phase;
  launch.cancel_number = cancel_number;
  launch.phase_advance = 0;
  launch.nanoseconds = 0;
  launch.notes = NULL;
  launch.fault.kind = HG_FAULT_NONE;
  hg_status status = run_in_default_environment(kernel, &launch, NULL);
  fault->kind = HG_FAULT_NONE;
  if (status == HG_OK) count_locked(kernel->executor, &launch);
  if (status == HG_OK && launch.fault.kind != HG_FAULT_NONE) *fault = launch.fault;
  return status;
}

hg_status hg_launch_warm(hg_kernel *kernel, const atlas_launch *launch) {
  hg_executor *executor = kernel->executor;
  const hg_backend *backend = executor->backend;
  if (backend->check_final == NULL) return HG_OK;
  hg_lock(executor);
  hg_status status = backend->check_final(executor->device, kernel->compiled.kernel, launch);
  while (status == HG_UNPREPARED) {
    status = hg_kernel_prepare_locked(kernel);
    if (status == HG_OK) status = backend->check_final(executor->device, kernel->compiled.kernel, launch);
  }
  hg_unlock(executor);
  return status;
}

/* Writes to the caller's struct directly if it has the library's size. */
static void fill_report(const hg_kernel *kernel, const atlas_launch *launch, uint64_t lanes, uint64_t nanoseconds,
                        hg_launch_report *report) {
  static const hg_fault none; /* copied: compilers clear a struct of this size by an instruction that starts slowly */
  const char *usual = kernel->compiled.notes != NULL ? kernel->compiled.notes : kernel->compiled.why;
  const char *notes = launch->notes != NULL ? launch->notes : usual;
  hg_launch_report own, *to = HG_IS_OWN(hg_launch_report, report) ? report : &own;
  to->fault = launch->fault.kind != HG_FAULT_NONE ? launch->fault : none;
  to->lanes = lanes;
  to->nanoseconds = nanoseconds;
  to->backend = kernel->executor->row->name;
  to->engine = kernel->compiled.engine;
  to->notes = notes != NULL ? notes : "";
  if (to == &own) (void)HG_WRITE(hg_launch_report, report, &own); /* its size has been checked */
}

static hg_status fail_fault(const hg_kernel *kernel, const hg_fault *fault) {
  char sentence[512];
  hg_fault_describe(kernel->program, fault, sentence, sizeof sentence);
  hg_log(kernel->executor, HG_LOG_WARNING, "program '%s' faulted: %s", kernel->program->name, sentence);
  return hg_fail(HG_FAULT, "%s", sentence);
}

hg_status hg_launch_noting(hg_kernel *kernel, const hg_launch_desc *desc, uint64_t moved_bytes, uint32_t cancel_number,
                           hg_launch_report *report, hg_origin *origin, hg_fault *fault) {
  if (kernel == NULL || desc == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_launch: an argument is NULL");
  hg_executor *executor = kernel->executor;
  atlas_launch launch;
  uint64_t lanes = 0, nanoseconds = 0;
  HG_TRY(hg_kernel_ready(kernel));
  clear_launch(kernel, &launch);
  hg_launch_desc own;
  if (!HG_IS_OWN(hg_launch_desc, desc)) {
    HG_TRY(HG_READ(hg_launch_desc, &own, desc));
    desc = &own;
  }
  HG_TRY(check_desc(desc));
  HG_TRY(HG_CHECK_RESULT(hg_launch_report, report));
  HG_TRY(set_shape(kernel->program, desc, &launch, &lanes));
  launch.moved_bytes = moved_bytes;
  launch.cancel_number = cancel_number;
  hg_status status;
  if (desc->stream != NULL) {
    status = launch_on_stream(kernel, desc, &launch, lanes, origin);
  } else {
    hg_lock(executor);
    status = run_locked(kernel, desc, &launch, lanes, report != NULL ? &nanoseconds : NULL);
    hg_unlock(executor);
  }
  if (status != HG_OK) return status;
  if (launch.notes != NULL)
    hg_log(executor, HG_LOG_INFO, "a launch of program '%s' was %s", kernel->program->name, launch.notes);
  if (report != NULL) fill_report(kernel, &launch, lanes, nanoseconds, report);
  if (launch.fault.kind == HG_FAULT_NONE) return HG_OK;
  if (fault == NULL) return fail_fault(kernel, &launch.fault);
  *fault = launch.fault;
  return HG_FAULT;
}

hg_status hg_launch(hg_kernel *kernel, const hg_launch_desc *desc, hg_launch_report *report) {
  uint32_t cancel_number = kernel != NULL ? atomic_load(&kernel->executor->cancels) : 0;
  return hg_launch_noting(kernel, desc, 0, cancel_number, report, NULL, NULL);
}
