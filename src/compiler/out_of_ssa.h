/* out_of_ssa.h - from the canonical form back to a program that can be written as text.
 *
 *   recall     accesses that the form knows of and has no more are made up  recall.c
 *   edges      every move of a phi gets an edge of its own to stand on       edges.c
 *   schedule   pure values get a block                                       schedule.c
 *   repeat     loads of what nothing writes stand where they are used,
 *              if control would not be uniform otherwise                    repeat.c
 *   operands   what an instruction takes from registers only gets one        operands.c
 *   pressure   each block computes in an order that keeps few values alive   pressure.c
 *   registers  values get registers, as few as are alive at once             registers.c
 *   program    instructions, moves, labels                                   out_of_ssa.c
 *
 * Nothing here is part of a program's identity: whatever these do, the program's canonical form must be the one it came
 * from. That is so because each phi becomes moves into one register of its own while it lives, from which SSA
 * construction finds the same phis; because values are only moved and repeated; and because effects change places only
 * where canon_order.c would sort them the same. The result depends on the canonical unit and the names alone, so that
 * equal programs with equal names become equal texts. */
#ifndef HG_COMPILER_OUT_OF_SSA_H
#define HG_COMPILER_OUT_OF_SSA_H

#include "atlas/program.h"
#include "ir/ssa_order.h"

/* A verified program, in memory of `allocator`, with this canonical unit, which is used up. HG_UNSUPPORTED where the
 * ISA's registers do not suffice; HG_OUT_OF_MEMORY. */
hg_status hg_out_of_ssa(const hg_allocator *allocator, const atlas_program *program, ssa_unit *unit,
                        atlas_program **out);

/* ---- the stages -------------------------------------------------------------------------------------------------- */

/* After it each buffer that the form says to be reached otherwise than as [x + lane] is so reached. HG_UNSUPPORTED
 * where it cannot be. */
hg_status hg_recall_accesses(const atlas_program *program, ssa_unit *unit);

/* After it a block that leads to phis leads nowhere else. Where instructions ask for uniform control, edges that belong
 * together meet before they meet the others, as they do in structured code: the move of a value that they all bring is
 * then not under the control of the branches between them. */
hg_status hg_prepare_edges(ssa_unit *unit);

/* On a scheduled unit: a load of what nothing writes, and what is computed from it, once more in each block that uses
 * it. */
hg_status hg_repeat_loads(const atlas_program *program, ssa_unit *unit, const ssa_order *order);

/* On a scheduled unit: a value of its own before each use, in the same block, for constants and scalars where the text
 * takes a register. `recompute`: for comparisons too, so that their predicates live no longer than from there. */
hg_status hg_fill_operands(const atlas_program *program, ssa_unit *unit, const ssa_order *order, int recompute);

/* Reorders the lists of a scheduled unit: what only asks moves down to its first use, past what cannot change it. */
hg_status hg_lower_pressure(const atlas_program *program, ssa_unit *unit, const ssa_order *order);

enum { HG_GENERAL, HG_PREDICATE, HG_REGISTER_CLASSES };

typedef struct hg_registers {
  uint32_t *of;     /* per value: its register; SSA_NONE where it has none */
  hg_array *live;   /* per block: the values that are alive where it begins, phis of its own apart (uint32_t) */
  uint32_t blocks;
  uint32_t needed[HG_REGISTER_CLASSES]; /* how many registers are in use */
} hg_registers;

static inline int hg_class_of(const ssa_insn *insn) {
  return insn->type == SSA_PREDICATE ? HG_PREDICATE : HG_GENERAL;
}

/* As many registers as it takes. HG_OUT_OF_MEMORY; release it whatever the result. */
hg_status hg_assign_registers(const ssa_unit *unit, const ssa_order *order, hg_registers *registers);
void hg_registers_release(const ssa_unit *unit, hg_registers *registers);

/* 1 if the instruction gives a value. */
int hg_gives_value(const ssa_insn *insn);

#endif
