/* test_updates.c - atomic operations whose lanes have consecutive elements, in buffers and in shared memory: of blocks
 * of any size, under masks, with displacements, beyond the end, and of several workers at once. They leave the memory
 * and the fault of the reference machine. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

enum { ELEMENTS = 512, ROOM = 2048 };

typedef struct shape {
  const char *op, *index, *mask, *type;
  int displacement, is_shared;
  uint32_t block, blocks;
} shape;

typedef struct outcome {
  uint32_t memory[ELEMENTS];
  hg_fault fault;
  hg_status status;
} outcome;

static void write_program(const shape *s, char *text) {
  int used =
      snprintf(text, ROOM, ".program p\n.block %u\n.buffer x %s inout\n.scalar first u32\n%s%s%s", s->block, s->type,
               s->is_shared ? ".shared s " : "", s->is_shared ? s->type : "", s->is_shared ? " 512\n" : "");
  const char *name = s->is_shared ? "s" : "x";
  used += snprintf(text + used, (size_t)(ROOM - used),
                   "cvt.u32.u64 r1, lane\nmul.u32 r1, r1, #2654435761\ncvt.%s.u32 r1, r1\n%s\n%s\n", s->type, s->index,
                   s->mask);
  used += snprintf(text + used, (size_t)(ROOM - used), "atom.%s.%s _, [%s + r0 + #%d], r1\nout:\n", s->op, s->type,
                   name, s->displacement);
  if (s->is_shared)
    used += snprintf(text + used, (size_t)(ROOM - used),
                     "bar.sync\nlds.%s r2, [s + blane]\natom.add.%s _, [x + blane], r2\n"
                     "lds.%s r2, [s + blane + #200]\natom.xor.%s _, [x + blane], r2\n",
                     s->type, s->type, s->type, s->type);
  snprintf(text + used, (size_t)(ROOM - used), "exit\n");
}

static outcome run(const shape *s, const char *text, uint64_t extent, uint32_t first) {
  static uint32_t words[ELEMENTS];
  outcome o = {.status = HG_OK};
  for (uint32_t i = 0; i < ELEMENTS; i++) words[i] = i * 40503u;
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *x = buffer_of(sizeof words, words);
  hg_binding bindings[] = {{.name = "x", .buffer = x, .byte_count = extent * (s->type[1] == '6' ? 8 : 4)}};
  hg_scalar scalars[] = {{.name = "first", .type = ATLAS_u32, .bits = first}};
  hg_launch_desc desc = {.grid = {s->blocks, 1, 1}, .bindings = bindings, .binding_count = 1, .scalars = scalars,
                         .scalar_count = 1};
  hg_launch_report report = {0};
  o.status = hg_launch(kernel, &desc, &report);
  o.fault = report.fault;
  CHECK_EQ_U64(hg_buffer_read(x, 0, o.memory, sizeof o.memory), HG_OK);
  hg_buffer_release(x);
  hg_kernel_release(kernel);
  return o;
}

static void check(const shape *s, const char *text, uint64_t extent, uint32_t first) {
  executor = reference;
  outcome expected = run(s, text, extent, first);
  executor = tested;
  outcome got = run(s, text, extent, first);
  CHECK_EQ_U64(got.status, expected.status);
  check_same_fault(&got.fault, &expected.fault);
  CHECK_EQ_U64(memcmp(got.memory, expected.memory, sizeof got.memory), 0);
}

static void check_shape(const shape *s) {
  static const uint64_t extents[] = {1, 16, 17, 40, 63, 64, 100, 255, 256};
  char text[ROOM];
  write_program(s, text);
  check(s, text, 256, 0);
  check(s, text, 256, 7);
  check(s, text, 256, UINT32_MAX - 20);
  for (size_t k = 0; k < COUNT(extents) && !s->is_shared; k++) check(s, text, extents[k], 3);
}

int main(void) {
  static const char *const ops[] = {"add", "and", "or", "xor"}, *const types[] = {"u32", "i32", "u64"};
  static const char *const indices[] = {"mov.u32 r0, blane", "add.u32 r0, blane, first",
                                        "cvt.u32.u64 r0, lane\nrem.u32 r0, r0, #64\nadd.u32 r0, r0, first"};
  static const char *const masks[] = {"", "and.u32 r9, blane, #5\nset.eq.u32 p0, r9, #1\n@p0 bra out",
                                      "set.ge.u32 p0, blane, #37\n@p0 bra out"};
  static const uint32_t blocks[][2] = {{64, 1}, {96, 3}, {128, 40}, {17, 2}, {5, 400}};
  static const int displacements[] = {0, 9, -4};
  set("HOLOGRAM_NUM_THREADS", "3");
  open_both();
  for (uint32_t k = 0; k < 4 * 3 * 3 * 3 * 5; k += 5) { /* a fifth of them all, of each several */
    const shape s = {.op = ops[k % 4],
                     .type = types[k / 4 % 3],
                     .index = indices[k / 12 % 3],
                     .mask = masks[k / 36 % 3],
                     .displacement = displacements[(k + k / 4) % 3],
                     .is_shared = (k / 12 + k) % 5 == 0,
                     .block = blocks[k / 108][0],
                     .blocks = blocks[k / 108][1]};
    check_shape(&s);
  }
  close_both();
  return check_report();
}
