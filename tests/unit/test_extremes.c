/* test_extremes.c - min, max and relu of f16 and bf16, which some machines have and others do through f32: each of the
 * 65536 arguments against those that are special, and whatever sees the bits of their results, give the bits of the
 * interpreter. A NaN of theirs is the canonical one wherever it is seen, whatever the arguments' payloads were. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "launching.h"
#include "shard.h"

#include <stdlib.h>

#ifdef _WIN32
#  define setenv(name, value, overwrite) _putenv_s(name, value)
#endif

enum { VALUES = 1 << 16, SHOWN = 5, MOST_TEXT = 2048 };

static const char *const types[] = {"f16", "bf16"};

/* Zeros, the least and greatest subnormal and normal numbers, ones, infinities; NaNs quiet and signalling, of either
 * sign, among them those of this library and of NVIDIA. */
static const uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x03ff, 0x83ff, 0x0400, 0x0080, 0x8080,
                                   0x3c00, 0xbc00, 0x3f80, 0xbf80, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7f7f, 0x7f80,
                                   0xff80, 0x7c01, 0x7e00, 0xfe00, 0x7f81, 0x7fc0, 0xffc0, 0x7fff, 0xffff, 0xfc01};

/* T stands for the type. Of r0, all values, r1 and r2, special ones: r3 for y[lane], or what stores it itself. */
static const char *const bodies[] = {
    "max.T r3, r0, r1",
    "min.T r3, r1, r0",
    "relu.T r3, r0",
    "max.T r3, r0, #1.5",
    "min.T r3, r0, #-0.0",
    "max.T r3, r0, r1\nmin.T r3, r3, r2\nmax.T r3, r3, r0",
    "relu.T r3, r0\nmax.T r3, r3, r1\nrelu.T r3, r3",
    "max.T r3, r0, r1\nbitcast.u16.T r4, r3\nadd.u16 r4, r4, #1\nbitcast.T.u16 r3, r4",
    "max.T r3, r0, r1\nbitcast.i16.T r4, r3\nshr.i16 r4, r4, #3\nbitcast.T.i16 r3, r4",
    "max.T r3, r0, r1\nneg.T r3, r3",
    "min.T r3, r0, r1\nabs.T r3, r3",
    "min.T r3, r0, r1\nneg.T r4, r3\nmax.T r3, r4, r2",
    "min.T r3, r0, r1\ncopysign.T r3, r2, r3",
    "max.T r3, r0, r1\ncopysign.T r3, r3, r2",
    "max.T r3, r0, r1\nset.lt.T p0, r1, r2\nsel.T r3, p0, r3, r1",
    "max.T r3, r0, r1\nset.lt.T p0, r3, r2\nsel.T r3, p0, r3, r2\nmin.T r3, r3, r1",
    "max.T r3, r0, r1\nadd.T r3, r3, r2",
    "mul.T r3, r0, r1\nmax.T r3, r3, r2",
    "add.T r3, r0, r1\nmin.T r3, r3, r2\nmul.T r3, r3, r0",
    "add.T r3, r0, r1\ncopysign.T r3, r2, r3",
    "add.T r3, r0, r1\nneg.T r3, r3\nmax.T r3, r3, r2",
    ("max.T r3, r0, r1\ncvt.f32.T r4, r3\nbitcast.u32.f32 r4, r4\nshr.u32 r4, r4, #16\ncvt.u16.u32 r4, r4\n"
     "bitcast.T.u16 r3, r4"),
    "min.T r3, r0, r1\ncvt.i16.T r4, r3\nbitcast.T.i16 r3, r4",
    "max.T r3, r0, r1\nxor.u64 r5, lane, #1\nstg.T [y + r5], r3\nexit",
    /* through a loop's phi: of a NaN's bits, those it came with or those of the largest */
    "mov.T r3, r1\nmovi.u32 r6, #3\nagain:\nmax.T r3, r3, r0\nmin.T r0, r0, r2\nloop r6, again",
    "mov.T r3, r1\nset.lt.T p0, r0, r2\n@p0 bra as_it_is\nmin.T r3, r3, r0\nas_it_is:"};

/* What blocks do: reductions, shared memory, loads of one lane near one another. */
static const char blocks_text[] =
    ".program p\n.block 64\n.buffer a T in\n.buffer b T in\n.buffer c T in\n.buffer y T out\n.shared part T 64\n"
    "and.u64 r9, lane, #0xfff0\nldg.T r0, [a + r9]\nldg.T r1, [a + r9 + #1]\nldg.T r2, [a + r9 + #2]\n"
    "ldg.T r3, [a + r9 + #3]\nldg.T r4, [b + lane]\nldg.T r5, [c + lane]\nmax.T r0, r0, r1\nmax.T r2, r2, r3\n"
    "max.T r0, r0, r2\nmin.T r0, r0, r4\nsts.T [part + blane], r0\nbar.sync\nxor.u32 r6, blane, #37\n"
    "lds.T r7, [part + r6]\nmax.T r7, r7, r5\nreduce.max.T r8, r7\nmin.T r7, r7, r8\nreduce.min.T r8, r7\n"
    "max.T r7, r7, r8\nstg.T [y + lane], r7\nexit\n";

/* Of four neighbours, as f32: greatest, least, and the least of three. Their bits are mixed into 16. */
static const char words_text[] =
    ".program p\n.block 64\n.buffer a T in\n.buffer b T in\n.buffer c T in\n.buffer y T out\n"
    "mad.u32 r9, r253, #64, blane\nand.u32 r9, r9, #16383\nmul.u32 r9, r9, #4\nldg.T r0, [b + r9]\n"
    "ldg.T r1, [b + r9 + #1]\nldg.T r2, [b + r9 + #2]\nldg.T r3, [b + r9 + #3]\ncvt.f32.T r0, r0\ncvt.f32.T r1, r1\n"
    "cvt.f32.T r2, r2\ncvt.f32.T r3, r3\nmax.f32 r4, r3, r1\nmax.f32 r5, r2, r0\nmax.f32 r4, r5, r4\n"
    "min.f32 r5, r3, r1\nmin.f32 r5, r5, r2\nmin.f32 r5, r5, r0\nmin.f32 r6, r0, r1\nmin.f32 r6, r6, r2\n"
    "bitcast.u32.f32 r4, r4\nbitcast.u32.f32 r5, r5\nbitcast.u32.f32 r6, r6\nmad.u32 r4, r4, #2654435761, r5\n"
    "mad.u32 r4, r4, #2654435761, r6\nmul.u32 r4, r4, #2654435761\nshr.u32 r4, r4, #16\ncvt.u16.u32 r4, r4\n"
    "bitcast.T.u16 r4, r4\nstg.T [y + lane], r4\nexit\n";

static uint16_t all[VALUES], first[VALUES], second[VALUES], expected[VALUES], got[VALUES];

static void write_text(const char *template, const char *type, char *text) {
  size_t used = 0;
  for (; *template != '\0' && used + 8 < MOST_TEXT; template++) {
    if (*template != 'T') text[used++] = *template;
    else used += (size_t)snprintf(text + used, MOST_TEXT - used, "%s", type);
  }
  text[used] = '\0';
}

static void write_program(const char *body, const char *type, char *text) {
  char template[MOST_TEXT];
  int stores = strstr(body, "stg") != NULL;
  snprintf(template, sizeof template,
           ".program p\n.buffer a T in\n.buffer b T in\n.buffer c T in\n.buffer y T out\nldg.T r0, [a + lane]\n"
           "ldg.T r1, [b + lane]\nldg.T r2, [c + lane]\n%s\n%s",
           body, stores ? "" : "stg.T [y + lane], r3\nexit\n");
  write_text(template, type, text);
}

static void run(const char *text, uint16_t *answer) {
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *a = buffer_of(sizeof all, all), *b = buffer_of(sizeof first, first), *c = buffer_of(sizeof second, second);
  hg_buffer *y = buffer_of(sizeof got, NULL);
  hg_binding bindings[] = {{.name = "a", .buffer = a}, {.name = "b", .buffer = b}, {.name = "c", .buffer = c},
                           {.name = "y", .buffer = y}};
  hg_launch_desc desc = {.size = sizeof desc, .lanes = VALUES, .bindings = bindings, .binding_count = COUNT(bindings)};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, answer, sizeof got), HG_OK);
  hg_buffer *buffers[] = {a, b, c, y};
  for (size_t i = 0; i < COUNT(buffers); i++) hg_buffer_release(buffers[i]);
  hg_kernel_release(kernel);
}

static void run_in(const char *engine, hg_backend_id backend, const char *text, uint16_t *answer) {
  setenv("HOLOGRAM_CPU_ENGINE", engine, 1);
  hg_executor_desc desc = {.backend = backend};
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  run(text, answer);
  hg_executor_release(executor);
}

static void check(const char *text) {
  if (!in_shard()) return;
  static const char *const engines[] = {"tile", "native"};
  size_t count = test_backend() == HG_BACKEND_CPU ? COUNT(engines) : 1;
  run_in("interp", HG_BACKEND_CPU, text, expected);
  for (size_t e = 0; e < count; e++) {
    unsigned differ = 0;
    run_in(engines[e], test_backend(), text, got);
    for (unsigned i = 0; i < VALUES; i++) {
      if (got[i] == expected[i] || ++differ > SHOWN) continue;
      printf("%s, %04x %04x %04x: %04x, expected %04x\n", engines[e], i, first[i], second[i], got[i], expected[i]);
    }
    if (differ > 0) printf("%s", text);
    CHECK_EQ_U64(differ, 0);
  }
}

/* Every pair of special values comes with many others. */
static void mix_partners(void) {
  for (unsigned i = 0; i < VALUES; i++) {
    first[i] = special[i % COUNT(special)];
    second[i] = special[i / COUNT(special) % COUNT(special)];
  }
}

int main(void) {
  char text[MOST_TEXT];
  for (unsigned i = 0; i < VALUES; i++) all[i] = (uint16_t)i;
  for (size_t t = 0; t < COUNT(types); t++) {
    for (size_t s = 0; s < COUNT(special); s++) {
      for (unsigned i = 0; i < VALUES; i++) first[i] = second[i] = special[s];
      for (size_t i = 0; i < 2; i++) {
        write_program(bodies[i], types[t], text);
        check(text);
      }
    }
    mix_partners();
    for (size_t i = 0; i < COUNT(bodies); i++) {
      write_program(bodies[i], types[t], text);
      check(text);
    }
    write_text(blocks_text, types[t], text);
    check(text);
    write_text(words_text, types[t], text);
    check(text);
  }
  return check_report();
}
