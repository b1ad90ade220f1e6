/* insn.h - what an instruction reads and writes, derived from its form: one place for the verifier and every analysis.
 */
#ifndef HG_ATLAS_INSN_H
#define HG_ATLAS_INSN_H

#include "atlas/program.h"

enum { ATLAS_ANY_INTEGER = 0xfe }; /* expected type of an index register */

/* The register of a REG operand or a [symbol + rN] address. Text and binary files name r0 to r255; programs of the
 * library's own (atlas_builder_has_many) go on at r256, and have the high byte in reg2. */
enum { ATLAS_MOST_REGISTERS = 0xff00 };
static inline uint16_t atlas_register_of(const atlas_operand *operand) {
  return (uint16_t)(operand->reg | operand->reg2 << 8);
}
static inline int atlas_is_special(uint32_t reg) { return reg >= ATLAS_GENERAL_REGISTERS && reg <= ATLAS_REG_LANE; }

typedef struct atlas_use {
  uint8_t predicate; /* 1: p<reg>, 0: r<reg> (specials included) */
  uint8_t type;      /* the atlas_type it must hold, or ATLAS_ANY_INTEGER; ATLAS_NONE for predicates */
  uint16_t reg;
} atlas_use;

typedef struct atlas_effects {
  atlas_use use[8];
  uint8_t use_count;
  uint8_t defines;        /* 0 nothing, 1 a register, 2 a predicate */
  uint8_t def_type;       /* atlas_type of the register; ATLAS_NONE for predicates */
  uint16_t def_reg;
} atlas_effects;

/* The instruction must have passed the shape checks of the verifier. */
void atlas_effects_of(const atlas_insn *insn, atlas_effects *effects);

/* The operand that is an address, or NULL. */
const atlas_operand *atlas_address_of(const atlas_insn *insn);

/* The symbol its address names, or NULL ([phi ...], or no address). */
const atlas_symbol *atlas_memory_of(const atlas_program *program, const atlas_insn *insn);

/* 1 if the constants of a [phi class, page, byte] address are a class, a page and a byte that exist. */
int atlas_phi_exists(const atlas_operand *address);

/* How many arguments a function instruction takes: 1 or 2. */
uint32_t atlas_argument_count(const atlas_op_info *info);

#endif
