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
