/* launching.h - what the tests of launches share: an executor, and short ways to kernels and buffers. */
#ifndef HG_TESTS_LAUNCHING_H
#define HG_TESTS_LAUNCHING_H

#include "check.h"
#include "test_backend.h"

#include "hologram/classes.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static hg_executor *executor;

static inline hg_kernel *kernel_of(const char *text) {
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  hg_status status = atlas_parse(NULL, text, strlen(text), "test", &program);
  if (status == HG_OK) status = hg_kernel_create(executor, program, &kernel);
  CHECK_EQ_U64(status, HG_OK);
  if (status != HG_OK) printf("  %s\n", hg_last_error());
  atlas_program_release(program);
  return kernel;
}

static inline hg_buffer *buffer_of(uint64_t byte_count, const void *contents) {
  hg_buffer *buffer = NULL;
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, byte_count, &buffer), HG_OK);
  if (contents != NULL) CHECK_EQ_U64(hg_buffer_write(buffer, 0, contents, byte_count), HG_OK);
  return buffer;
}

/* What a program makes of a buffer a in a buffer y of as many bytes. */
static inline void run_on_array(const char *text, uint64_t lanes, uint64_t byte_count, const void *in, void *out) {
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *a = buffer_of(byte_count, in), *y = buffer_of(byte_count, NULL);
  hg_binding bindings[] = {{.name = "a", .buffer = a}, {.name = "y", .buffer = y}};
  hg_launch_desc desc = {.size = sizeof desc, .lanes = lanes, .bindings = bindings, .binding_count = 2};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, out, byte_count), HG_OK);
  hg_buffer_release(a);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
}

static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* A text with words[i] in the place of each letters[i]. */
static inline void fill_in(const char *template, const char *letters, const char *const *words, char *out,
                           size_t room) {
  size_t size = 0;
  for (const char *c = template; *c != '\0' && size < room; c++) {
    const char *letter = strchr(letters, *c);
    if (letter != NULL) size += (size_t)snprintf(out + size, room - size, "%s", words[letter - letters]);
    else out[size++] = *c;
  }
  CHECK(size < room);
  out[size < room ? size : room - 1] = '\0';
}

#define CHECK_LAUNCH(kernel, desc, status, sentence)            \
  do {                                                          \
    CHECK_EQ_U64(hg_launch(kernel, desc, NULL), status);        \
    CHECK_STR(hg_last_error(), sentence);                       \
  } while (0)

/* Counts its lanes in n[0]. */
static const char count_text[] =
    ".program count\n"
    ".buffer n u64 inout\n"
    "    atom.add.u64 _, [n + #0], #1\n"
    "    exit\n";

#endif
