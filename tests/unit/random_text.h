/* random_text.h - random programs written as text, run on every engine and instruction set of this machine beside the
 * reference machine. Before it comes `draft`, a struct with a state, the text and its length:
 *
 *   uint64_t state;
 *   uint32_t length;
 *   char text[...];
 *
 * behind it write_text and the test's own launch and comparison. */
#ifndef HG_TESTS_RANDOM_TEXT_H
#define HG_TESTS_RANDOM_TEXT_H

#include "backend/cpu/engine/detect.h"
#include "backend/cpu/native/native.h"
#include "backend/cpu/targets.h"
#include "environment.h"
#include "launching.h"
#include "shard.h"

#include <stdarg.h>
#include <stdlib.h>

static inline uint32_t below(draft *d, uint32_t limit) {
  d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)((d->state >> 33) % limit);
}

static inline int chance(draft *d, uint32_t percent) { return below(d, 100) < percent; }

static void line(draft *d, const char *format, ...) HG_PRINTF(2, 3);

static void line(draft *d, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  d->length += (uint32_t)vsnprintf(d->text + d->length, sizeof d->text - d->length, format, arguments);
  va_end(arguments);
  d->text[d->length++] = '\n';
  d->text[d->length] = 0;
}

/* A draft of its own for each seed. */
static void start_draft(draft *d, uint64_t seed) {
  memset(d, 0, sizeof *d);
  d->state = seed * UINT64_C(0x9e3779b97f4a7c15);
  for (int i = 0; i < 4; i++) below(d, 2);
}

/* An executor of that engine, in `executor`; "" stands for the best. */
static void open_engine(const char *engine, const char *isa) {
  hg_executor_desc desc = {.size = sizeof desc};
  set("HOLOGRAM_CPU_ENGINE", engine);
  set("HOLOGRAM_CPU_ISA", isa);
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
}

/* Two buffers named x and y, whose bytes the arrays give and, for y, take; a fault is none of a test's failures. */
static hg_fault launch_xy(const char *text, hg_launch_desc *launch, void *x, size_t x_size, uint64_t x_bound, void *y,
                          size_t y_size, uint64_t y_bound) {
  hg_launch_report report = {.size = sizeof report};
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *buffers[2] = {buffer_of(x_size, x), buffer_of(y_size, y)};
  hg_binding bindings[2] = {{.name = "x", .buffer = buffers[0], .byte_count = x_bound},
                            {.name = "y", .buffer = buffers[1], .byte_count = y_bound}};
  launch->size = sizeof *launch;
  launch->bindings = bindings;
  launch->binding_count = 2;
  hg_status status = hg_launch(kernel, launch, &report);
  CHECK(status == HG_OK || status == HG_FAULT);
  CHECK_EQ_U64(hg_buffer_read(buffers[1], 0, y, y_size), HG_OK);
  hg_buffer_release(buffers[0]);
  hg_buffer_release(buffers[1]);
  hg_kernel_release(kernel);
  return report.fault;
}

/* Compares what a trial gives on every engine with what the reference machine gives. `result` and the functions are the
 * test's own. */
#define CHECK_ON_EVERY_ENGINE(d, lanes)                                                     \
  do {                                                                                      \
    result expected = run(d, "interp", "", lanes);                                          \
    for (int isa = CPU_ISA_BASELINE; isa <= (int)hg_cpu_isa_best(); isa++) {                \
      compare(d, "tile", hg_cpu_isa_name((cpu_isa)isa), lanes, &expected);                  \
      if (hg_native_target((cpu_isa)isa) != NULL)                                           \
        compare(d, "native", hg_cpu_isa_name((cpu_isa)isa), lanes, &expected);              \
    }                                                                                       \
  } while (0)

/* [SEED COUNT] of the command line. */
static int check_programs(int argc, char **argv, void (*check_program)(uint64_t seed)) {
  uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, count = SANITIZED ? 40 : 300;
  if (argc > 2) count = strtoull(argv[2], NULL, 10);
  for (uint64_t i = 0; i < count; i++)
    if (in_shard()) check_program(seed + i);
  return check_report();
}

#endif
