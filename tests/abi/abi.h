/* abi.h - what the programs of this folder share. They see the library through one header alone, HEADER: the kept one
 * of version 1 or a grown one. VERSION_1(struct) is the size that the kept one has of a struct. */
#ifndef HG_TESTS_ABI_H
#define HG_TESTS_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "check.h"
#include "sizes.h"
#include HEADER

#define VERSION_1(type) ((size_t)version_1_##type)

/* `bytes` bytes and none beyond, so that AddressSanitizer sees who goes on; the size field says `size`. */
static inline void *exactly(size_t bytes, size_t size, int fill) {
  void *memory = malloc(bytes);
  if (memory == NULL) exit(2);
  memset(memory, fill, bytes);
  memcpy(memory, &size, sizeof size);
  return memory;
}

static const char saxpy[] = ".program saxpy\n"
                            ".buffer x f32 in\n"
                            ".buffer y f32 in\n"
                            ".buffer z f32 out\n"
                            ".scalar a f32\n"
                            ".scalar b f32\n"
                            "  ldg.f32 r0, [x + lane]\n"
                            "  ldg.f32 r1, [y + lane]\n"
                            "  mov.f32 r2, a\n"
                            "  fma.f32 r3, r2, r0, r1\n"
                            "  mov.f32 r4, b\n"
                            "  mul.f32 r3, r3, r4\n"
                            "  stg.f32 [z + lane], r3\n"
                            "  exit\n";

enum { LANES = 100 };

/* saxpy and its buffers. */
typedef struct setting {
  hg_executor *executor;
  hg_kernel *kernel;
  hg_buffer *buffers[3];
} setting;

static inline void set_up(setting *s, const hg_executor_desc *desc) {
  atlas_program *program = NULL;
  float values[LANES];
  for (int i = 0; i < LANES; i++) values[i] = (float)i;
  CHECK_EQ_U64(hg_executor_create(desc, &s->executor), HG_OK);
  CHECK_EQ_U64(atlas_parse(NULL, saxpy, strlen(saxpy), "saxpy.atlas", &program), HG_OK);
  CHECK_EQ_U64(hg_kernel_create(s->executor, program, &s->kernel), HG_OK);
  if (check_failed > 0) printf("%s\n", hg_last_error());
  atlas_program_release(program);
  for (int i = 0; i < 3; i++) {
    CHECK_EQ_U64(hg_buffer_create(s->executor, NULL, sizeof values, &s->buffers[i]), HG_OK);
    CHECK_EQ_U64(hg_buffer_write(s->buffers[i], 0, values, sizeof values), HG_OK);
  }
}

static inline void tear_down(setting *s) {
  for (int i = 0; i < 3; i++) hg_buffer_release(s->buffers[i]);
  hg_kernel_release(s->kernel);
  hg_executor_release(s->executor);
}

/* Every element of z is (2 * x + y) * 3, and is zeroed for the next launch. */
static inline void check_output(setting *s) {
  float values[LANES];
  int wrong = 0;
  const uint32_t zero = 0;
  CHECK_EQ_U64(hg_buffer_read(s->buffers[2], 0, values, sizeof values), HG_OK);
  for (int i = 0; i < LANES; i++) wrong += values[i] != 9 * (float)i;
  CHECK_EQ_U64(wrong, 0);
  CHECK_EQ_U64(hg_buffer_fill(s->buffers[2], 0, sizeof values, &zero, sizeof zero), HG_OK);
}

/* The bindings and scalars of saxpy, one every `stride` bytes. */
static inline hg_binding *bind(const setting *s, size_t stride) {
  static const char *const names[] = {"x", "y", "z"};
  uint8_t *memory = calloc(3, stride);
  if (memory == NULL) exit(2);
  for (int i = 0; i < 3; i++) {
    hg_binding *binding = (hg_binding *)(void *)(memory + (size_t)i * stride);
    binding->name = names[i];
    binding->buffer = s->buffers[i];
  }
  return (hg_binding *)(void *)memory;
}

static inline hg_scalar *give_scalars(size_t stride) {
  static const char *const names[] = {"a", "b"};
  uint8_t *memory = calloc(2, stride);
  if (memory == NULL) exit(2);
  for (int i = 0; i < 2; i++) {
    hg_scalar *scalar = (hg_scalar *)(void *)(memory + (size_t)i * stride);
    scalar->name = names[i];
    scalar->type = ATLAS_f32;
    scalar->bits = atlas_f32_const(i == 0 ? 2 : 3).bits;
  }
  return (hg_scalar *)(void *)memory;
}

#endif
