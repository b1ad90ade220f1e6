/* test_groups.c - loads of one lane that lie near one another, which the CUDA backend does together: at every
 * alignment, with displacements of either sign and indices of every type, inside the buffer, across its ends and
 * beyond, they give the bits and the faults of the interpreter. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

#include <stdlib.h>

enum { LANES = 70, MOST_LOADS = 36, BYTES = 4096, SHOWN = 3 };

typedef struct trial {
  const char *type, *index_type;
  int scale, first;        /* index = lane * scale + first, or the lane */
  int by_lane;
  int displacement[MOST_LOADS], count;
  uint64_t offset, extent; /* of the buffer, in elements of the type */
} trial;

static uint8_t bytes[BYTES];

/* y[lane] = a mixture of what is loaded. Faulting loads are 0. `by_lane`: beside an access of another kind, so that
 * those of neighbouring lanes lie in vectors but where the buffer ends. */
static void write_text(const trial *t, char *text, size_t room) {
  size_t used = (size_t)snprintf(text, room,
                                 ".program p\n.buffer a %s in\n.buffer y u64 out\ncvt.%s.u64 r0, lane\n"
                                 "mul.%s r0, r0, #%d\n%s.%s r0, r0, #%d\nmovi.u64 r1, #1\n",
                                 t->type, t->index_type, t->index_type, t->scale, t->first < 0 ? "sub" : "add",
                                 t->index_type, abs(t->first));
  if (t->by_lane)
    used += (size_t)snprintf(text + used, room - used,
                             "and.%s r0, r0, #7\nldg.%s r3, [a + r0]\ncvt.u64.%s r1, r3\n", t->index_type, t->type,
                             t->type);
  for (int i = 0; i < t->count; i++)
    used += (size_t)snprintf(text + used, room - used, "ldg.%s r%d, [a + %s + #%d]\n", t->type, 10 + i,
                             t->by_lane ? "lane" : "r0", t->displacement[i]);
  const char *bits = strcmp(t->type, "f16") == 0 ? "u16" : t->type;
  for (int i = 0; i < t->count; i++)
    used += (size_t)snprintf(text + used, room - used,
                             "bitcast.%s.%s r2, r%d\ncvt.u64.%s r2, r2\nmul.u64 r1, r1, #1099511628211\n"
                             "xor.u64 r1, r1, r2\n",
                             bits, t->type, 10 + i, bits);
  snprintf(text + used, room - used, "stg.u64 [y + lane], r1\nexit\n");
}

static void check(const trial *t) {
  static char text[8192];
  uint64_t size = strtoul(t->type + 1, NULL, 10) / 8;
  write_text(t, text, sizeof text);
  const beside_buffer buffers[] = {{.name = "a", .contents = bytes, .size = BYTES, .offset = t->offset * size,
                                    .byte_count = t->extent * size},
                                   {.name = "y", .size = LANES * sizeof(uint64_t), .is_result = 1}};
  const hg_launch_desc desc = {.lanes = LANES};
  if (!check_beside(text, &desc, buffers, COUNT(buffers))) printf("%s", text);
}

int main(void) {
  static const char *const types[] = {"u8", "i8", "u16", "i16", "f16", "u32", "u64"};
  static const char *const indices[] = {"u32", "i32", "u64", "i64"};
  static const int starts[] = {0, 1, -3, -20};
  open_both();
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 167 + (i >> 8));
  for (size_t type = 0; type < COUNT(types); type++)
    for (size_t index = 0; index < COUNT(indices); index++)
      for (size_t start = 0; start < COUNT(starts); start++) {
        trial t = {.type = types[type], .index_type = indices[index], .scale = 4, .first = starts[start]};
        t.extent = 300;
        t.offset = (start + index) % 3; /* now and then no multiple of 16 bytes */
        t.count = 9;
        static const int row[] = {0, 1, 2, 3, 8, 9, 10, 11, 5};
        for (int i = 0; i < t.count; i++) t.displacement[i] = row[i];
        check(&t);
        t.extent = 200; /* some lanes across the end, some behind it */
        check(&t);
        for (int i = 0; i < t.count; i++) t.displacement[i] = 7 - 2 * i; /* no neighbours, of either sign */
        check(&t);
        for (int i = 0; i < t.count; i++) t.displacement[i] = i - 4;
        t.first = 4;
        check(&t);
        for (t.count = 32; t.count <= MOST_LOADS; t.count += 4) { /* as many as are done together, and more */
          for (int i = 0; i < t.count; i++) t.displacement[i] = i * 7 % t.count;
          check(&t);
        }
        t.by_lane = 1;
        t.count = MOST_LOADS;
        for (t.extent = LANES - 9; t.extent <= LANES + MOST_LOADS; t.extent += 44) check(&t);
        t.count = 9;
        for (int i = 0; i < t.count; i++) t.displacement[i] = row[i];
        for (t.extent = LANES - 9; t.extent <= LANES + 11; t.extent += 5) check(&t);
      }
  close_both();
  return check_report();
}
