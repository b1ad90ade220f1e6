/* numbers.c - the numbers of instructions in a kernel. The kernel cache stores kernels by the program's hash, so a
 * kernel uses the numbers of the canonical form, which all programs with that hash share. Each program has a table from
 * these numbers to its own instructions. */
#include "backend/gpu/gpu.h"

#include "base/error.h"
#include "compiler/canon/canon.h"

hg_status hg_gpu_number(const hg_allocator *allocator, ssa_unit *unit, hg_gpu_numbers *numbers) {
  size_t values = unit->insns.count, count = values + unit->blocks.count;
  uint32_t *table = hg_allocate(allocator, count, sizeof *table);
  if (table == NULL) return hg_fail_memory("a kernel's table of instructions", count * sizeof *table);
  for (size_t i = 0; i < count; i++) {
    uint32_t *insn = i < values ? &ssa_insn_at(unit, (uint32_t)i)->insn
                                : &ssa_block_at(unit, (uint32_t)(i - values))->insn;
    table[i] = *insn;
    if (*insn != SSA_NONE) *insn = (uint32_t)i;
  }
  hg_name_loops(unit);
  if (numbers->insn_of == NULL) *numbers = (hg_gpu_numbers){table, (uint32_t)count};
  else hg_release(allocator, table); /* made from another variant's unit, and equal */
  return HG_OK;
}
