/* kernel.c - kernels: a program compiled for an executor, with the facts that launches need. */
#include "runtime/runtime.h"

#include "atlas/program.h"
#include "base/fp.h"

#include <string.h>

static void take_code(hg_kernel *kernel) {
  kernel->needs = &kernel->code->needs;
  kernel->compiled = kernel->code->compiled;
  const char *why = kernel->compiled.why;
  if (why != NULL && why[0] != '\0')
    hg_log(kernel->executor, HG_LOG_INFO, "program '%s' runs on the %s engine: %s", kernel->program->name,
           kernel->compiled.engine, why);
}

/* Folds constants in the floating-point environment of launches, whatever the caller's thread has set, because kernels
 * of other threads share the code. */
hg_status hg_kernel_compile(hg_kernel *kernel) {
  hg_fp_state callers = hg_fp_enter();
  hg_status status = hg_code_of(kernel->executor, kernel->program, kernel->contraction, &kernel->code);
  hg_fp_leave(callers);
  if (status == HG_OK) take_code(kernel);
  return status;
}

/* ---- creating ---------------------------------------------------------------------------------------------------- */

/* A kernel that is not compiled yet. */
static hg_status new_kernel(const char *caller, hg_executor *executor, atlas_program *program, hg_kernel **out) {
  if (executor == NULL || program == NULL || out == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "%s: an argument is NULL", caller);
  *out = NULL;
  if (atlas_program_is_library(program))
    return hg_fail(HG_VERIFY, "program '%s' is a library of functions (.entry) and cannot be launched", program->name);
  hg_kernel *kernel = hg_allocate(&executor->allocator, 1, sizeof *kernel);
  if (kernel == NULL) return hg_fail_memory("a kernel", sizeof *kernel);
  atomic_init(&kernel->references, 1);
  atomic_init(&kernel->state, HG_FAILED);
  kernel->executor = hg_executor_retain(executor);
  kernel->program = atlas_program_retain(program);
  *out = kernel;
  return HG_OK;
}

hg_status hg_kernel_create(hg_executor *executor, atlas_program *program, hg_kernel **out) {
  return hg_kernel_create_contraction(executor, program, NULL, out);
}

static hg_status note_contraction(hg_kernel *kernel, const hg_contraction *contraction) {
  if (contraction == NULL) return HG_OK;
  kernel->contraction = hg_allocate(&kernel->executor->allocator, 1, sizeof *contraction);
  if (kernel->contraction == NULL) return hg_fail_memory("a kernel", sizeof *contraction);
  memcpy(kernel->contraction, contraction, sizeof *contraction); /* with padding: kernels are found by these bytes */
  return HG_OK;
}

hg_status hg_kernel_create_contraction(hg_executor *executor, atlas_program *program,
                                       const hg_contraction *contraction, hg_kernel **out) {
  HG_TRY(new_kernel("hg_kernel_create", executor, program, out));
  hg_status status = note_contraction(*out, contraction);
  if (status == HG_OK) status = hg_kernel_compile(*out);
  if (status == HG_OK) {
    atomic_init(&(*out)->state, HG_READY);
    return HG_OK;
  }
  hg_kernel_release(*out);
  *out = NULL;
  return status;
}

hg_status hg_kernel_create_async(hg_executor *executor, atlas_program *program, hg_kernel **out, hg_event *event) {
  hg_kernel *before = NULL;
  if (executor != NULL && event != NULL && event->executor != executor) {
    if (out != NULL) *out = NULL;
    return hg_fail(HG_INVALID_ARGUMENT, "hg_kernel_create_async: the event belongs to another executor");
  }
  HG_TRY(new_kernel("hg_kernel_create_async", executor, program, out));
  hg_kernel *kernel = *out;
  kernel->process = hg_process_id();
  kernel->code = hg_code_find(executor, program, NULL);
  atomic_init(&kernel->state, kernel->code != NULL ? HG_READY : HG_MAKING);
  if (kernel->code != NULL) take_code(kernel);
  hg_lock(executor);
  if (event != NULL) before = hg_event_note_kernel_locked(event, hg_kernel_retain(kernel));
  int is_queued = kernel->code != NULL || hg_compilers_enqueue_locked(executor, kernel);
  hg_unlock(executor);
  if (!is_queued) hg_kernel_complete(kernel, hg_kernel_compile(kernel));
  hg_kernel_release(before);
  return HG_OK;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Once the state is final, another thread may destroy the kernel, so this function does not touch it any more. */
void hg_kernel_complete(hg_kernel *kernel, hg_status status) {
  if (status != HG_OK) {
    kernel->failure = status;
    hg_clip(hg_last_error(), strlen(hg_last_error()), kernel->sentence, sizeof kernel->sentence);
  }
  hg_executor *executor = kernel->executor;
  hg_lock(executor);
  int is_abandoned = kernel->is_abandoned;
  atomic_store_explicit(&kernel->state, status == HG_OK ? HG_READY : HG_FAILED, memory_order_release);
  hg_wake(&kernel->state);
  hg_unlock(executor);
  if (is_abandoned) hg_kernel_destroy(kernel);
}

hg_status hg_kernel_settle(hg_kernel *kernel) {
  while (atomic_load_explicit(&kernel->state, memory_order_acquire) == HG_MAKING) {
    if (kernel->process != hg_process_id())
      return hg_fail(HG_UNSUPPORTED, "a kernel was being compiled when the process forked, and what did it is not "
                                     "there in the child; wait for kernels before a fork, or make new ones after it");
    hg_wait(&kernel->state, HG_MAKING);
  }
  return HG_OK;
}

/* Sleeps for a fraction of the time waited so far. */
hg_status hg_kernel_ready_asking(hg_kernel *kernel, hg_patience *patience) {
  uint64_t begun = hg_time_ns();
  while (patience->ask != NULL && kernel->process == hg_process_id() &&
         atomic_load_explicit(&kernel->state, memory_order_acquire) == HG_MAKING)
    HG_TRY(hg_patience_sleep(patience, begun));
  HG_TRY(hg_patience_ask(patience));
  return hg_kernel_ready(kernel);
}

hg_status hg_kernel_await(hg_kernel *kernel) {
  HG_TRY(hg_kernel_settle(kernel));
  if (atomic_load_explicit(&kernel->state, memory_order_acquire) == HG_READY) return HG_OK;
  return hg_fail(kernel->failure, "%s", kernel->sentence);
}

/* Like hg_kernel_compile, this folds constants. */
hg_status hg_kernel_prepare_locked(hg_kernel *kernel) {
  hg_executor *executor = kernel->executor;
  hg_unlock(executor);
  hg_fp_state callers = hg_fp_enter();
  hg_status status = executor->backend->prepare(executor->device, kernel->compiled.kernel);
  hg_fp_leave(callers);
  hg_lock(executor);
  return status;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

hg_kernel *hg_kernel_retain(hg_kernel *kernel) {
  if (kernel != NULL) hg_reference(&kernel->references);
  return kernel;
}

void hg_kernel_lend(hg_kernel *kernel) {
  if (kernel == NULL || kernel->is_lent) return;
  kernel->is_lent = 1;
  hg_executor_release(kernel->executor);
}

/* Destroys a kernel that no thread compiles. */
static void destroy(hg_kernel *kernel) {
  hg_executor *executor = kernel->executor;
  int is_lent = kernel->is_lent;
  if (atomic_load(&kernel->state) == HG_READY) hg_code_release(executor, kernel->code);
  atlas_program_release(kernel->program);
  hg_release(&executor->allocator, kernel->rows);
  hg_release(&executor->allocator, kernel->contraction);
  hg_release(&executor->allocator, kernel);
  if (!is_lent) hg_executor_release(executor);
}

/* A queued kernel is removed from the queue and never compiled. In a child of fork, the parent's compilations are
 * lost. */
static int is_being_compiled(hg_kernel *kernel) {
  return atomic_load(&kernel->state) == HG_MAKING && !hg_compilers_dequeue(kernel->executor, kernel);
}

void hg_kernel_destroy(hg_kernel *kernel) {
  if (is_being_compiled(kernel)) (void)hg_kernel_settle(kernel);
  destroy(kernel);
}

/* 1 if the thread that compiles the kernel will destroy it. That thread needs no reference to the executor, which joins
 * it. */
static int leave_to_compiler(hg_kernel *kernel) {
  hg_executor *executor = kernel->executor;
  int is_lent = kernel->is_lent;
  hg_lock(executor);
  int is_left = kernel->process == hg_process_id() && atomic_load(&kernel->state) == HG_MAKING;
  if (is_left) kernel->is_abandoned = kernel->is_lent = 1;
  hg_unlock(executor);
  if (is_left && !is_lent) hg_executor_release(executor);
  return is_left;
}

void hg_kernel_abandon(hg_kernel *kernel) {
  if (kernel == NULL || !hg_unreference(&kernel->references)) return;
  if (!is_being_compiled(kernel) || !leave_to_compiler(kernel)) destroy(kernel);
}

void hg_kernel_release(hg_kernel *kernel) {
  if (kernel != NULL && hg_unreference(&kernel->references)) hg_kernel_destroy(kernel);
}
