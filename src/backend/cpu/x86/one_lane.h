/* one_lane.h - shared by the files of code that runs one lane after the other: lane_value.c, lane_arith.c,
 * lane_memory.c, one_lane.c. */
#ifndef HG_X86_ONE_LANE_H
#define HG_X86_ONE_LANE_H

#include "backend/cpu/x86/x86_arith.h"

static inline int x86_is_wide(uint8_t type) { return type != SSA_PREDICATE && atlas_bytes((atlas_type)type) == 8; }
static inline int x86_is_signed(uint8_t type) { return atlas_kind((atlas_type)type) == ATLAS_KIND_SINT; }
static inline int x86_is_integer(uint8_t type) {
  return type != SSA_PREDICATE && type != ATLAS_bool && atlas_is_integer((atlas_type)type);
}
static inline int x86_is_real(uint8_t type) { return type == ATLAS_f32 || type == ATLAS_f64; }

/* ---- lane_value.c ------------------------------------------------------------------------------------------------ */

extern const uint8_t hg_x86_lane_registers[X86_LANE_REGISTERS]; /* the general registers with values */
/* The general register, or 8 bytes of the frame, that a value has. */
x86_rm hg_x86_lane_place(const x86_emit *e, const native_location *location);
/* 1 if a value is in a general register, or in memory, where instructions find it. */
int hg_x86_lane_operand(const x86_emit *e, uint32_t r, x86_rm *rm);
/* 1 if a value is a constant that an instruction of 64 or 32 bits can hold. */
int hg_x86_lane_immediate(const x86_emit *e, uint32_t r, int w, int32_t *immediate);
/* 1 if a value is in a vector register. */
int hg_x86_lane_vector(const x86_emit *e, uint32_t r, unsigned *reg);
void hg_x86_lane_read(x86_emit *e, unsigned to, uint32_t r); /* into a general register */
/* A general register with the value: its own, or `scratch`. */
unsigned hg_x86_lane_register(x86_emit *e, uint32_t r, unsigned scratch);
/* The general register of the result, or rax; rax too if it is that of source `s`, which is read after the result is
 * begun. */
unsigned hg_x86_lane_result(const x86_emit *e, uint32_t s);
void hg_x86_lane_set(x86_emit *e, unsigned from); /* the result is in general register `from` */
/* Extends the lowest bits of a register to a narrow integer's 32. */
void hg_x86_lane_extend(x86_emit *e, uint8_t type, unsigned reg);
x86_rm hg_x86_lane_predicate(x86_emit *e, uint32_t r); /* a register, which may be rax, or memory */
void hg_x86_lane_test(x86_emit *e, uint32_t r);        /* the zero flag: a predicate is false */
/* The result is a predicate: whether a condition holds. */
void hg_x86_lane_condition(x86_emit *e, x86_condition condition);

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* A way out of a loop: the label that code inside jumps to, and the instruction that it leads to. */
typedef struct x86_lane_exit {
  uint32_t label, target;
} x86_lane_exit;

enum { X86_LANE_EXITS = 8 };

/* A loop that goes on while a counter, which grows by one each round, is below a bound. */
struct x86_lane_loop {
  uint32_t first, back;    /* its head, and the jump back to it */
  uint32_t counter, bound; /* registers, of u32 */
  uint32_t grows;          /* the instruction that writes the counter, behind all ways out */
  uint32_t exit_count;
  x86_lane_exit exits[X86_LANE_EXITS + 1];
};
typedef struct x86_lane_loop x86_lane_loop;

/* The only instruction that writes a register between two places; NULL: there are none or several. */
const vector_insn *hg_x86_lane_writer(const x86_emit *e, uint32_t reg, uint32_t first, uint32_t last);
int hg_x86_lane_is_same(const x86_emit *e, const x86_lane_loop *loop, uint32_t reg); /* 1: nothing in it writes it */
/* For an access in `uncounted` by the counter, or by it and what stays the same: jumps to `out` unless it is in bounds
 * in all rounds. Those accesses need no comparison there. */
void hg_x86_lane_guard(x86_emit *e, uint32_t out);

/* ---- the others -------------------------------------------------------------------------------------------------- */

int hg_x86_lane_arithmetic(x86_emit *e); /* 1 if it has written the instruction */
/* Writes the current comparison; the condition of the flags under which it holds. */
x86_condition hg_x86_lane_compare(x86_emit *e);
/* The selections behind the current comparison, if its result is for them alone; and writes it with them. */
uint32_t hg_x86_lane_selections(const x86_emit *e);
void hg_x86_lane_select_by_flags(x86_emit *e, uint32_t count);
int hg_x86_lane_access(x86_emit *e); /* 1 if it has written the load or store */
void hg_x86_lane_clear_local(x86_emit *e);

#endif
