/* compilers.c - the threads that compile kernels of hg_kernel_create_async: up to HG_COMPILERS for each executor,
 * started when a kernel is queued, ended when the queue is empty.
 *
 * A thread holds no references: the last release of a kernel waits for its compilation, and that of an executor joins
 * its threads, so that neither the executor nor the caller's allocator is used after its end. */
#include "runtime/runtime.h"

#include "base/at_exit.h"
#include "base/threads.h"

static hg_status compile_unless_exiting(hg_kernel *kernel) {
  if (!hg_exit_hold()) return hg_fail(HG_UNSUPPORTED, "a kernel is not compiled any more: the process ends");
  hg_status status = hg_kernel_compile(kernel);
  hg_exit_let();
  return status;
}

/* ---- the queue --------------------------------------------------------------------------------------------------- */

static void append_locked(hg_executor *executor, hg_kernel *kernel) {
  *(executor->first_to_compile != NULL ? &executor->last_to_compile->next : &executor->first_to_compile) = kernel;
  executor->last_to_compile = kernel;
}

static int remove_locked(hg_executor *executor, hg_kernel *kernel) {
  hg_kernel *before = NULL, *at = executor->first_to_compile;
  for (; at != NULL && at != kernel; at = at->next) before = at;
  if (at == NULL) return 0;
  *(before != NULL ? &before->next : &executor->first_to_compile) = kernel->next;
  if (kernel->next == NULL) executor->last_to_compile = before;
  kernel->next = NULL;
  return 1;
}

int hg_compilers_dequeue(hg_executor *executor, hg_kernel *kernel) {
  hg_lock(executor);
  int is_removed = remove_locked(executor, kernel);
  hg_unlock(executor);
  return is_removed;
}

/* ---- the threads ------------------------------------------------------------------------------------------------- */

static void compile_queue(void *user) {
  hg_compiler *compiler = user;
  hg_executor *executor = compiler->executor;
  hg_lock(executor);
  for (hg_kernel *kernel; (kernel = executor->first_to_compile) != NULL;) {
    (void)remove_locked(executor, kernel);
    hg_unlock(executor);
    hg_kernel_complete(kernel, compile_unless_exiting(kernel));
    hg_lock(executor);
  }
  compiler->state = HG_COMPILER_ENDED;
  hg_unlock(executor);
}

/* In a child of fork, the parent's threads do not exist and their queue is lost. */
static void forget_after_fork_locked(hg_executor *executor) {
  if (executor->compilers_process == hg_process_id()) return;
  executor->compilers_process = hg_process_id();
  executor->first_to_compile = NULL;
  for (int i = 0; i < HG_COMPILERS; i++) executor->compilers[i].state = HG_COMPILER_NONE;
}

/* The new thread locks the executor first, so its handle is stored before it can end. */
static void start_thread_locked(hg_executor *executor, hg_compiler *compiler) {
  if (compiler->state == HG_COMPILER_ENDED) hg_thread_join(&compiler->thread);
  compiler->state = HG_COMPILER_NONE;
  compiler->executor = executor;
  if (hg_exit_watch() && hg_thread_start(&compiler->thread, compile_queue, compiler) == 0)
    compiler->state = HG_COMPILER_RUNS;
}

int hg_compilers_enqueue_locked(hg_executor *executor, hg_kernel *kernel) {
  uint32_t running = 0, limit = hg_thread_limit() < HG_COMPILERS ? hg_thread_limit() : HG_COMPILERS;
  hg_compiler *idle = NULL;
  forget_after_fork_locked(executor);
  for (int i = 0; i < HG_COMPILERS; i++) {
    hg_compiler *compiler = &executor->compilers[i];
    if (compiler->state == HG_COMPILER_RUNS) running++;
    else if (idle == NULL) idle = compiler;
  }
  append_locked(executor, kernel);
  if (running < limit && idle != NULL) {
    start_thread_locked(executor, idle);
    running += idle->state == HG_COMPILER_RUNS;
  }
  return running > 0 || !remove_locked(executor, kernel);
}

static int must_be_joined(hg_executor *executor, const hg_compiler *compiler) {
  hg_lock(executor);
  int was_started = compiler->state != HG_COMPILER_NONE;
  hg_unlock(executor);
  return was_started;
}

/* A thread that has found the queue empty may not have set its state yet, so it is joined too. */
void hg_compilers_close(hg_executor *executor) {
  if (executor->compilers_process != hg_process_id()) return;
  for (int i = 0; i < HG_COMPILERS; i++)
    if (must_be_joined(executor, &executor->compilers[i])) hg_thread_join(&executor->compilers[i].thread);
}
