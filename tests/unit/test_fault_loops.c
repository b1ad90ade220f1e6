/* test_fault_loops.c - loops in which no access, some, or each is out of bounds, in launches of one group and of many:
 * memory and the fault that is reported are those of the interpreter. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"
#include "fault_loops.h"

enum { ROUNDS = 3, MOST_LANES = 700, ELEMENT_BYTES = 8 };

static uint8_t type_of(const char *name) {
  static const struct {
    const char *name;
    uint8_t type;
  } types[] = {{"u32", ATLAS_u32}, {"i32", ATLAS_i32}, {"u64", ATLAS_u64}, {"i64", ATLAS_i64}};
  for (size_t i = 0; i < COUNT(types); i++)
    if (strcmp(types[i].name, name) == 0) return types[i].type;
  return ATLAS_u8;
}

static void check(const fault_loop *loop, uint64_t first, uint64_t lanes, uint64_t x_bytes, const uint32_t *block) {
  static uint8_t data[MOST_LANES * ELEMENT_BYTES];
  char text[FAULT_LOOP_TEXT_BYTES];
  fault_loop_text(loop, ROUNDS, text);
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 2654435761u >> 13 & 0x3f); /* no NaN, no infinity */
  const beside_buffer buffers[] = {
      {.name = "x", .contents = data, .size = sizeof data, .byte_count = x_bytes, .is_result = 1},
      {.name = "y", .contents = data, .size = sizeof data, .is_result = 1}};
  const hg_scalar scalars[] = {{.name = "first", .type = type_of(loop->index), .bits = first},
                               {.name = "rounds", .type = ATLAS_u32, .bits = ROUNDS}};
  hg_launch_desc desc = {.lanes = lanes, .scalars = scalars, .scalar_count = fault_loop_is_open(loop) ? 2 : 1};
  if (block != NULL) {
    desc.lanes = 0;
    for (int d = 0; d < 3; d++) desc.block[d] = block[d], desc.grid[d] = d < 2 ? 2 : 1;
  }
  if (!check_beside(text, &desc, buffers, COUNT(buffers)))
    printf("  %s, first %lld, %u lanes of %u, x of %u bytes\n", loop->name, (long long)first, (unsigned)lanes,
           block != NULL ? block[0] : 0, (unsigned)x_bytes);
}

/* Numbers of the middle: some lanes are out of bounds, at the buffer's end and at its beginning. */
static void check_loop(const fault_loop *loop) {
  static const int64_t firsts[] = {0,          5,         -3,           -40, 60, 333, 1 << 30, INT32_MAX - 20,
                                   -(1 << 20), INT64_MIN, INT64_MAX - 9};
  static const uint64_t lanes[] = {1, 9, 64, 130, MOST_LANES};
  static const uint64_t bytes[] = {40, 1024, 2800};
  static const uint32_t blocks[][3] = {{16, 8, 1}, {7, 3, 2}, {100, 1, 1}};
  int is_64 = loop->index[1] == '6';
  for (size_t f = 0; f < COUNT(firsts); f++)
    for (size_t l = 0; l < COUNT(lanes); l++) {
      uint64_t first = is_64 ? (uint64_t)firsts[f] : (uint32_t)firsts[f];
      check(loop, first, lanes[l], bytes[(f + l) % COUNT(bytes)], NULL);
      if (l < COUNT(blocks)) check(loop, first, 0, bytes[(f + l) % COUNT(bytes)], blocks[l]);
    }
}

int main(void) {
  open_both();
  for (size_t i = 0; i < COUNT(fault_loops); i++) check_loop(&fault_loops[i]);
  close_both();
  return check_report();
}
