/* compilers.c - the threads that compile kernels of hg_kernel_create_async: some for each executor, started when there
 * is something to compile and ended when there is nothing left.
 *
 * A thread holds no reference to anything: whoever releases a kernel last waits for its compilation, so that nothing of
 * an executor, nor its caller's allocator, is used after it is gone. An executor that ends joins its threads. */
#include "runtime/runtime.h"

#include "base/threads.h"

/* Of the process, like its threads: exit handlers, those of a driver among them, run when no thread compiles any
 * more. */
static struct {
  atomic_flag is_begun;
  atomic_uint refused;   /* the handlers could not be set: no threads */
  atomic_uint compiling; /* threads */
  atomic_uint ends;
} process = {.is_begun = ATOMIC_FLAG_INIT};

static void forget_threads(void) { atomic_store(&process.compiling, 0); }

static void wait_for_threads(void) {
  atomic_store(&process.ends, 1);
  for (uint32_t count; (count = atomic_load(&process.compiling)) > 0;) hg_wait(&process.compiling, count);
}

/* 0: there may be no threads. */
static int begin_process(void) {
  if (!atomic_flag_test_and_set(&process.is_begun))
    atomic_store(&process.refused, hg_on_fork_and_exit(forget_threads, wait_for_threads) != 0);
  return !atomic_load(&process.refused);
}

static hg_status make(hg_kernel *kernel) {
  atomic_fetch_add(&process.compiling, 1);
  hg_status status = atomic_load(&process.ends)
                         ? hg_fail(HG_UNSUPPORTED, "a kernel is not compiled any more: the process ends")
                         : hg_kernel_make(kernel);
  atomic_fetch_sub(&process.compiling, 1);
  if (atomic_load(&process.ends)) hg_wake(&process.compiling);
  return status;
}

/* ---- the queue --------------------------------------------------------------------------------------------------- */

static void append_locked(hg_executor *executor, hg_kernel *kernel) {
  *(executor->first_to_compile != NULL ? &executor->last_to_compile->next : &executor->first_to_compile) = kernel;
  executor->last_to_compile = kernel;
}

static int take_out_locked(hg_executor *executor, hg_kernel *kernel) {
  hg_kernel *before = NULL, *at = executor->first_to_compile;
  for (; at != NULL && at != kernel; at = at->next) before = at;
  if (at == NULL) return 0;
  *(before != NULL ? &before->next : &executor->first_to_compile) = kernel->next;
  if (kernel->next == NULL) executor->last_to_compile = before;
  kernel->next = NULL;
  return 1;
}

int hg_compilers_take_back(hg_executor *executor, hg_kernel *kernel) {
  hg_lock(executor);
  int is_taken = take_out_locked(executor, kernel);
  hg_unlock(executor);
  return is_taken;
}

/* ---- the threads ------------------------------------------------------------------------------------------------- */

static void serve(void *user) {
  hg_compiler *compiler = user;
  hg_executor *executor = compiler->executor;
  hg_lock(executor);
  for (hg_kernel *kernel; (kernel = executor->first_to_compile) != NULL;) {
    (void)take_out_locked(executor, kernel);
    hg_unlock(executor);
    hg_kernel_finish(kernel, make(kernel));
    hg_lock(executor);
  }
  compiler->state = HG_COMPILER_ENDED;
  hg_unlock(executor);
}

/* In a process that was forked off: its threads did not come along, and what they had to do is lost. */
static void forget_after_fork_locked(hg_executor *executor) {
  if (executor->compilers_process == hg_process_id()) return;
  executor->compilers_process = hg_process_id();
  executor->first_to_compile = NULL;
  for (int i = 0; i < HG_COMPILERS; i++) executor->compilers[i].state = HG_COMPILER_NONE;
}

/* The new thread's first step is to lock the executor, so that its handle is there before it can end. */
static void start_locked(hg_executor *executor, hg_compiler *compiler) {
  if (compiler->state == HG_COMPILER_ENDED) hg_thread_join(&compiler->thread);
  compiler->state = HG_COMPILER_NONE;
  compiler->executor = executor;
  if (begin_process() && hg_thread_start(&compiler->thread, serve, compiler) == 0) compiler->state = HG_COMPILER_RUNS;
}

int hg_compilers_give_locked(hg_executor *executor, hg_kernel *kernel) {
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
    start_locked(executor, idle);
    running += idle->state == HG_COMPILER_RUNS;
  }
  return running > 0 || !take_out_locked(executor, kernel);
}

static int was_started(hg_executor *executor, const hg_compiler *compiler) {
  hg_lock(executor);
  int is_there = compiler->state != HG_COMPILER_NONE;
  hg_unlock(executor);
  return is_there;
}

/* A thread that finds nothing to do may still be about to say so. */
void hg_compilers_close(hg_executor *executor) {
  if (executor->compilers_process != hg_process_id()) return;
  for (int i = 0; i < HG_COMPILERS; i++)
    if (was_started(executor, &executor->compilers[i])) hg_thread_join(&executor->compilers[i].thread);
}
