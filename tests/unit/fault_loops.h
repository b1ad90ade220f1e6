/* fault_loops.h - loops that access memory in each round, one for each way that accesses are compiled. The scalar
 * `first` is added to all indices but lanes' own numbers: with a great one each access of each round faults. */
#ifndef HG_TESTS_FAULT_LOOPS_H
#define HG_TESTS_FAULT_LOOPS_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { FAULT_LOOP_ELEMENTS = 8192, FAULT_LOOP_TEXT_BYTES = 1024 }; /* more than are accessed with `first` 2 */

typedef struct fault_loop {
  const char *name;
  const char *type;        /* of the elements */
  const char *index;       /* type of `first`, and of indices */
  const char *symbols;
  const char *body;        /* r3: lane + first + round; r4: round + first; r5: a number below 1024, and first; r6: one
                              below 8, and first; p1: some lanes; r1: a sum, which is stored in the end */
  int is_by_lane;          /* 1: it faults where x is short */
} fault_loop;

/* What several lanes store to one element is the same: no order of lanes is promised. */
#define SEVEN "movi.T r2, #7.0\n"
#define OWN "xor.u32 r7, r9, #5\nadd.u32 r7, r7, first\n" /* r7: an element of the lane's own */
#define OPEN ".scalar rounds u32\n" /* how often: straight-line code of blocks keeps the loop */
#define BARRIER "bar.sync\n"
#define SHARED                                                                                                      \
  "xor.u32 r7, r252, #5\nadd.u32 r7, r7, first\nlds.T r2, [s + r7]\nadd.T r1, r1, r2\n" BARRIER "sts.T [s + r7], r1\n" \
  BARRIER
#define LOAD(address) "ldg.T r2, [" address "]\nadd.T r1, r1, r2\n"
static const fault_loop fault_loops[] = {
    {"loads of neighbours", "f32", "u32", "", LOAD("x + r3"), 0},
    {"loads of neighbours, displaced", "f32", "i32", "", LOAD("x + r3 + #3"), 0},
    {"loads of neighbours, f64 by i64", "f64", "i64", "", LOAD("x + r3 + #-2"), 0},
    {"loads of neighbours, some lanes", "f32", "u64", "", "@!p1 bra skip\n" LOAD("x + r3") "skip:\n", 0},
    {"loads of one element", "f32", "u32", "", LOAD("x + r4"), 0},
    {"loads of one element, some lanes", "f64", "u32", "", "@!p1 bra skip\n" LOAD("x + r4") "skip:\n", 0},
    {"gathers", "f32", "u32", "", LOAD("x + r5"), 0},
    {"gathers of f64 by u64", "f64", "u64", "", LOAD("x + r5 + #1"), 0},
    {"gathers of u16", "u16", "i32", "",
     "ldg.T r2, [x + r5]\ncvt.u32.T r7, r2\ncvt.u32.T r8, r1\nadd.u32 r7, r7, r8\n"
     "cvt.T.u32 r1, r7\n",
     0},
    {"gathers, some lanes", "f32", "i64", "", "@!p1 bra skip\n" LOAD("x + r5") "skip:\n", 0},
    {"loads by the lane's number", "f32", "u32", "", "stg.T [y + lane], r1\n" LOAD("x + lane"), 1},
    {"stores by the lane's number", "f64", "u32", "", "stg.T [x + lane], r1\nadd.T r1, r1, r1\n", 1},
    {"stores to neighbours", "f32", "u32", "", SEVEN "stg.T [x + r3], r2\n", 0},
    {"stores to neighbours, some lanes", "f64", "u32", "", SEVEN "@!p1 bra skip\nstg.T [x + r3], r2\nskip:\n", 0},
    {"stores to one element", "f32", "u32", "", SEVEN "stg.T [x + r4], r2\n", 0},
    {"scatters", "f32", "u32", "", SEVEN "stg.T [x + r5], r2\n", 0},
    {"scatters of f64", "f64", "i64", "", SEVEN "stg.T [x + r5 + #-1], r2\n", 0},
    {"scatters of u8", "u8", "u32", "", "movi.u32 r7, #7\ncvt.T.u32 r2, r7\nstg.T [x + r5], r2\n", 0},
    {"updates", "u32", "u32", "", "atom.add.T _, [x + r5], #1\n", 0},
    {"updates of neighbours", "u32", "u32", "", "atom.add.T _, [x + r3], #1\n", 0},
    {"updates of one element", "u32", "u32", "", "atom.add.T _, [x + r4], #1\n", 0},
    {"updates with their old values", "u64", "u32", "", OWN "atom.max.T r2, [x + r7], r1\nadd.T r1, r1, r2\n", 0},
    {"updates with their old values, u32", "u32", "u32", "", OWN "atom.add.T r2, [x + r7], #3\nadd.T r1, r1, r2\n", 0},
    {"shared memory", "f32", "u32", ".shared s f32 1032\n",
     "xor.u32 r7, r252, #5\nadd.u32 r7, r7, first\nlds.T r2, [s + r7]\nadd.T r1, r1, r2\nsts.T [s + r7], r1\n", 0},
    {"local arrays", "f32", "u32", ".local l f32 10\n", "ldl.T r2, [l + r6]\nadd.T r1, r1, r2\nstl.T [l + r6], r1\n",
     0},
    {"a row of local arrays", "f32", "u32", ".local l f32 32\n",
     "and.u32 r7, r0, #15\nadd.u32 r7, r7, first\nldl.T r2, [l + r7]\nadd.T r1, r1, r2\nstl.T [l + r7], r1\n", 0},
    {"loads of neighbours, barriers", "f32", "u32", "", LOAD("x + r3") BARRIER, 0},
    {"gathers, barriers", "f32", "u32", "", LOAD("x + r5") BARRIER, 0},
    {"shared memory, barriers", "f32", "u32", ".shared s f32 1032\n", SHARED, 0},
    {"loads of neighbours in blocks", "f32", "u32", OPEN, LOAD("x + r3") BARRIER, 0},
    {"loads of one element in blocks", "f32", "u32", OPEN, LOAD("x + r4") BARRIER, 0},
    {"gathers in blocks", "f32", "u32", OPEN, LOAD("x + r5") BARRIER, 0},
    {"gathers of f64 by i64 in blocks", "f64", "i64", OPEN, LOAD("x + r5 + #1") BARRIER, 0},
    {"stores to neighbours in blocks", "f32", "u32", OPEN, SEVEN "stg.T [x + r3], r2\n" BARRIER, 0},
    {"scatters in blocks", "f32", "u32", OPEN, SEVEN "stg.T [x + r5], r2\n" BARRIER, 0},
    {"updates in blocks", "u32", "u32", OPEN, "atom.add.T _, [x + r5], #1\n" BARRIER, 0},
    {"shared memory in blocks", "f32", "u32", OPEN ".shared s f32 1032\n", SHARED, 0},
};
#undef OPEN
#undef BARRIER
#undef SHARED
#undef LOAD
#undef SEVEN
#undef OWN

static inline int fault_loop_is_open(const fault_loop *f) { return strstr(f->symbols, "rounds") != NULL; }

/* C3 in these texts makes r3, a u32, an index. */
static inline size_t fault_loop_letter(const fault_loop *f, char letter, char reg, char *to, size_t room) {
  if (letter == 'T') return (size_t)snprintf(to, room, "%s", f->type);
  if (letter == 'I') return (size_t)snprintf(to, room, "%s", f->index);
  if (f->index[0] == 'u' && f->index[1] == '3') return (size_t)snprintf(to, room, "mov.u32 r%c, r%c", reg, reg);
  return (size_t)snprintf(to, room, "cvt.%s.u32 r%c, r%c", f->index, reg, reg);
}

static inline void fault_loop_text(const fault_loop *f, unsigned rounds, char text[FAULT_LOOP_TEXT_BYTES]) {
  static const char begin[] = ".program fault_loop\n.buffer x T inout\n.buffer y T inout\n.scalar first I\n";
  char bound[16] = "rounds";
  static const char top[] =
      "movi.u32 r0, #0\ncvt.u32.u64 r9, lane\nand.u32 r10, r9, #3\nset.ne.u32 p1, r10, #1\nldg.T r1, [y + lane]\n"
      "loop:\nadd.u32 r3, r9, r0\nC3\nadd.I r3, r3, first\nmov.u32 r4, r0\nC4\nadd.I r4, r4, first\n"
      "mul.u32 r5, r9, #40503\nadd.u32 r5, r5, r0\nand.u32 r5, r5, #1023\nC5\nadd.I r5, r5, first\n"
      "and.u32 r6, r9, #7\nC6\nadd.I r6, r6, first\n";
  const char *parts[] = {begin, f->symbols, top, f->body};
  size_t size = 0;
  for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++)
    for (const char *c = parts[p]; *c != '\0' && size < FAULT_LOOP_TEXT_BYTES - 1; c++) {
      if (*c != 'T' && *c != 'I' && *c != 'C') text[size++] = *c;
      else size += fault_loop_letter(f, *c, c[1], text + size, FAULT_LOOP_TEXT_BYTES - size);
      c += *c == 'C';
    }
  if (!fault_loop_is_open(f)) snprintf(bound, sizeof bound, "#%u", rounds);
  snprintf(text + size, FAULT_LOOP_TEXT_BYTES - size,
           "add.u32 r0, r0, #1\nset.lt.u32 p0, r0, %s\n@p0 bra loop\nstg.%s [y + lane], r1\nexit\n", bound, f->type);
}

#endif
