/* out_of_ssa.h - from the canonical form back to a program that can be written as text.
 *
 *   recall         accesses that the form remembers but no longer contains are added  recall.c
 *   edges          critical edges into phis are split                                 edges.c
 *   schedule       pure values get a block                                            schedule.c
 *   rematerialise  loads of read-only memory are repeated where they are used,
 *                  if control would not be uniform otherwise                          rematerialise.c
 *   operands       operands that must be registers are materialised                   operands.c
 *   pressure       each block is reordered for low register pressure                  pressure.c
 *   registers      values get registers, as few as are live at once                   registers.c
 *   program        instructions, moves, labels                                        out_of_ssa.c
 *
 * Nothing here is part of a program's identity: whatever the stages do, the canonical form of the text must be the one
 * it was made from. That is so because all moves of a phi write one register, which is its own throughout its live
 * range, so that SSA construction finds the same phis; because values are only moved and repeated; and because effects
 * are reordered only where canon_order.c sorts them the same again. The result depends on the canonical unit and the
 * names alone, so that equal programs with equal names become equal texts. */
#ifndef HG_COMPILER_OUT_OF_SSA_H
#define HG_COMPILER_OUT_OF_SSA_H

#include "atlas/program.h"
#include "ir/ssa_order.h"

/* Makes a verified program, in memory of `allocator`, whose canonical form is this unit; the unit is modified and of no
 * further use. HG_UNSUPPORTED where the ISA's registers do not suffice; HG_OUT_OF_MEMORY. */
hg_status hg_out_of_ssa(const hg_allocator *allocator, const atlas_program *program, ssa_unit *unit,
                        atlas_program **out);

/* ---- the stages -------------------------------------------------------------------------------------------------- */

/* Adds an access to each buffer that the canonical form remembers as accessed otherwise than as [x + lane], but has no
 * such access left. HG_UNSUPPORTED where none can be added. */
hg_status hg_recall_accesses(const atlas_program *program, ssa_unit *unit);

/* Splits critical edges: after it a block whose successor has phis has no other successor. Where instructions need
 * uniform control, it also restores the inner joins of structured code: edges that leave one construct are merged
 * before the outer join, so that a move of the value that all of them bring is not controlled by the branches within.
 */
hg_status hg_split_edges(ssa_unit *unit);

/* On a scheduled unit: loads of read-only memory, and what is computed from them, are repeated in each block that uses
 * them. */
hg_status hg_rematerialise_loads(const atlas_program *program, ssa_unit *unit, const ssa_order *order);

/* On a scheduled unit: constants and scalars are put into a register right before each use that takes a register only.
 * `recompute`: comparisons are repeated there too, so that the live ranges of predicates are short. */
hg_status hg_materialise_operands(const atlas_program *program, ssa_unit *unit, const ssa_order *order, int recompute);

/* Reorders the blocks of a scheduled unit: what has no side effects sinks to its first use, past what cannot change it.
 */
hg_status hg_lower_pressure(const atlas_program *program, ssa_unit *unit, const ssa_order *order);

enum { HG_GENERAL, HG_PREDICATE, HG_REGISTER_CLASSES };

typedef struct hg_registers {
  uint32_t *of;      /* per value: its register; SSA_NONE where it has none */
  hg_array *live_in; /* per block: its live-in values, without its own phis (uint32_t) */
  uint32_t blocks;
  uint32_t needed[HG_REGISTER_CLASSES]; /* how many registers are in use */
} hg_registers;

static inline int hg_class_of(const ssa_insn *insn) {
  return insn->type == SSA_PREDICATE ? HG_PREDICATE : HG_GENERAL;
}

/* Takes as many registers as are needed, however many the ISA has. HG_OUT_OF_MEMORY; release it whatever the result. */
hg_status hg_assign_registers(const ssa_unit *unit, const ssa_order *order, hg_registers *registers);
void hg_registers_release(const ssa_unit *unit, hg_registers *registers);

#endif
