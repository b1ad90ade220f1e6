/* test_block_groups.c - accesses of a lane near one another in programs of blocks, which the CUDA backend does together
 * wherever they stand: loads of two buffers, shared memory, stores; aligned or not, inside the buffers, across their
 * ends and beyond, in the order of the program, backwards and mixed. They leave the memory and the fault of the
 * interpreter. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

#include <stdarg.h>

#include <stdlib.h>

enum { LANES = 64, EACH = 8, BYTES = 8192, OUT_BYTES = 8192 };

typedef struct trial {
  const char *type, *index_type;
  int scale, first;     /* index = lane * scale + first; at least EACH elements a lane */
  int shared_scale;     /* the same in shared memory */
  int order;            /* how the accesses are mixed */
  uint64_t offset;      /* of the buffers, in elements */
  uint64_t extent[3];   /* of a, b and y */
  int in_place;         /* y is read, too */
} trial;

static uint8_t bytes[BYTES];

typedef struct writer {
  char *text;
  size_t room, used;
} writer;

static void put(writer *w, const char *format, ...) HG_PRINTF(2, 3);
static void put(writer *w, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  w->used += (size_t)vsnprintf(w->text + w->used, w->room - w->used, format, arguments);
  va_end(arguments);
}

/* The i-th of EACH displacements. */
static int at(const trial *t, int i) { return t->order == 0 ? i : t->order == 1 ? EACH - 1 - i : i * 5 % EACH; }

/* a and b into registers, their exclusive or into shared memory, from there the neighbouring lane's into y. */
static void write_text(const trial *t, char *text, size_t room) {
  writer w = {text, room, 0};
  const char *type = t->type, *index = t->index_type, *bits = strcmp(type, "f16") == 0 ? "u16" : type;
  put(&w, ".program p\n.block %d\n.buffer a %s in\n.buffer b %s in\n.buffer y %s inout\n.shared s %s %d\n", LANES, type,
      type, type, bits, LANES * t->shared_scale);
  put(&w, "cvt.%s.u32 r0, blane\nmul.%s r0, r0, #%d\n%s.%s r0, r0, #%d\n", index, index, t->scale,
      t->first < 0 ? "sub" : "add", index, abs(t->first));
  put(&w, "mul.u32 r1, blane, #%d\nxor.u32 r2, blane, #1\nmul.u32 r2, r2, #%d\n", t->shared_scale, t->shared_scale);
  for (int i = 0; i < EACH; i++)
    put(&w, "ldg.%s r%d, [a + r0 + #%d]\nldg.%s r%d, [b + r0 + #%d]\n", type, 10 + i, at(t, i), type, 30 + i,
        at(t, EACH - 1 - i));
  for (int i = 0; i < EACH && t->in_place; i++) put(&w, "ldg.%s r%d, [y + r0 + #%d]\n", type, 50 + i, at(t, i));
  for (int i = 0; i < EACH; i++) {
    put(&w, "bitcast.%s.%s r3, r%d\nbitcast.%s.%s r4, r%d\nxor.%s r3, r3, r4\n", bits, type, 10 + i, bits, type, 30 + i,
        bits);
    put(&w, "sts.%s [s + r1 + #%d], r3\n", bits, at(t, i));
  }
  put(&w, "bar.sync\n");
  for (int i = 0; i < EACH; i++) {
    put(&w, "lds.%s r3, [s + r2 + #%d]\n", bits, at(t, i));
    if (t->in_place) put(&w, "bitcast.%s.%s r4, r%d\nadd.%s r3, r3, r4\n", bits, type, 50 + i, bits);
    put(&w, "bitcast.%s.%s r3, r3\nstg.%s [y + r0 + #%d], r3\n", type, bits, type, at(t, EACH - 1 - i));
  }
  put(&w, "exit\n");
}

static uint32_t size_of(const char *type) { return (uint32_t)strtoul(type + 1, NULL, 10) / 8; }

static void check(const trial *t) {
  static char text[8192];
  uint64_t size = size_of(t->type), offset = t->offset * size;
  write_text(t, text, sizeof text);
  const beside_buffer buffers[] = {
      {.name = "a", .contents = bytes, .size = BYTES, .offset = offset, .byte_count = t->extent[0] * size},
      {.name = "b", .contents = bytes, .size = BYTES, .offset = offset, .byte_count = t->extent[1] * size},
      {.name = "y", .contents = bytes, .size = OUT_BYTES, .offset = offset, .byte_count = t->extent[2] * size,
       .is_result = 1}};
  const hg_launch_desc desc = {.grid = {1, 1, 1}, .block = {LANES, 1, 1}};
  if (!check_beside(text, &desc, buffers, COUNT(buffers))) printf("%s", text);
}

/* ---- roundings that the stores of a group do --------------------------------------------------------------------- */

enum { ROUNDED = 4, ROUNDS = 3, ROUNDED_BYTES = LANES * ROUNDED * ROUNDS * 2 };

/* Numbers, infinities and NaNs that a loop keeps in registers, rounds, stores and then changes, or rounds halves of, in
 * registers that nothing else has. `used`: what else is done with the first one's rounded bits. */
static void check_rounded(const char *type, int halves, const char *used, uint64_t offset, uint64_t extent) {
  char text[4096];
  writer w = {text, sizeof text, 0};
  put(&w, ".program p\n.block %d\n.buffer a f32 in\n.buffer y %s inout\nmul.u32 r0, blane, #%d\nmovi.u32 r1, #0\n",
      LANES, type, ROUNDED);
  for (int i = 0; i < ROUNDED; i++) put(&w, "ldg.f32 r%d, [a + r0 + #%d]\n", 10 + i, i);
  put(&w, "top:\n");
  for (int i = 0; i < ROUNDED && halves; i++) put(&w, "mul.f32 r%d, r%d, #0.5\n", 30 + i, 10 + i);
  for (int i = 0; i < ROUNDED; i++) put(&w, "cvt.%s.f32 r%d, r%d\n", type, 20 + i, (halves ? 30 : 10) + i);
  put(&w, "%s", used);
  for (int i = 0; i < ROUNDED; i++) put(&w, "stg.%s [y + r0 + #%d], r%d\n", type, i, 20 + i);
  for (int i = 0; i < ROUNDED; i++) put(&w, "add.f32 r%d, r%d, r%d\n", 10 + i, 10 + i, 10 + (i + 1) % ROUNDED);
  put(&w, "add.u32 r0, r0, #%d\nadd.u32 r1, r1, #1\nset.lt.u32 p0, r1, #%d\n@p0 bra top\nexit\n", LANES * ROUNDED,
      ROUNDS);
  const beside_buffer buffers[] = {
      {.name = "a", .contents = bytes, .size = LANES * ROUNDED * sizeof(float), .byte_count = LANES * ROUNDED * 4},
      {.name = "y", .size = ROUNDED_BYTES + 16, .offset = 2 * offset, .byte_count = 2 * extent, .is_result = 1}};
  const hg_launch_desc desc = {.grid = {1, 1, 1}, .block = {LANES, 1, 1}};
  if (!check_beside(text, &desc, buffers, COUNT(buffers))) printf("%s", text);
}

static void test_rounded(void) {
  static const uint32_t special[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff,
                                     0x7f7fffff, 0x00000001, 0x80400000};
  static const char *const types[] = {"f16", "bf16"};
  for (size_t i = 0; i < LANES * ROUNDED; i++) {
    uint32_t bits = (uint32_t)(0x40000000 + i * 0x01234567);
    if (i % 11 == 0) bits = special[i / 11 % COUNT(special)];
    memcpy(bytes + 4 * i, &bits, sizeof bits);
  }
  for (size_t type = 0; type < COUNT(types); type++) {
    char used[128];
    snprintf(used, sizeof used, "bitcast.u16.%s r3, r20\ncvt.u32.u16 r3, r3\nor.u32 r4, r1, #2\nmin.u32 r3, r3, r4\n"
                                "max.u32 r1, r1, r3\n", types[type]);
    for (uint64_t offset = 0; offset < 3; offset++)
      for (uint64_t extent = LANES * ROUNDED * ROUNDS; extent > 400; extent -= 181)
        for (int halves = 0; halves < 2; halves++) {
          check_rounded(types[type], halves, "", offset, extent);
          check_rounded(types[type], halves, used, offset, extent);
        }
  }
}

int main(void) {
  static const char *const types[] = {"u16", "f16", "u32", "u64"}, *const indices[] = {"u32", "i32", "u64"};
  static const int scales[] = {EACH, EACH + 1, EACH + 4};
  open_both();
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 167 + (i >> 8));
  for (size_t type = 0; type < COUNT(types); type++)
    for (size_t index = 0; index < COUNT(indices); index++)
      for (size_t scale = 0; scale < COUNT(scales); scale++)
        for (int order = 0; order < 3; order++) {
          trial t = {.type = types[type], .index_type = indices[index], .scale = scales[scale], .order = order,
                     .shared_scale = scales[(scale + (size_t)order) % COUNT(scales)], .in_place = order != 1};
          t.offset = (scale + index) % 3;
          t.extent[0] = t.extent[1] = t.extent[2] = 900;
          check(&t);
          t.offset = 0;
          t.extent[order] = 420; /* one of them ends within a lane's elements */
          check(&t);
          t.extent[(order + 1) % 3] = 419;
          check(&t);
          t.first = -3;
          if (index != 0) check(&t);
        }
  test_rounded();
  close_both();
  return check_report();
}
