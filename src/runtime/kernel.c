/* kernel.c - a program made ready for an executor: what a launch needs to know about it is found out once. */
#include "runtime/runtime.h"

#include "atlas/program.h"

#include <string.h>

/* [x + lane]: each lane its own element. */
static int is_element_form(const atlas_operand *address) {
  return address->mode == ATLAS_ADDRESS_INDEXED && address->reg == ATLAS_REG_LANE && address->bits == 0;
}

static void scan_addresses(hg_kernel *kernel) {
  const atlas_program *program = kernel->program;
  memset(kernel->only_elements, 1, sizeof kernel->only_elements);
  for (size_t i = 0; i < program->insns.count; i++) {
    const atlas_insn *insn = atlas_insn_at(program, i);
    if (insn->op == ATLAS_OP_res_accum) kernel->uses_resonance = 1;
    for (size_t k = 0; k < insn->operand_count && k < ATLAS_MAX_OPERANDS; k++) {
      const atlas_operand *operand = &insn->operand[k];
      if (operand->kind != ATLAS_OPERAND_MEM) continue;
      if (operand->mode == ATLAS_ADDRESS_PHI) kernel->uses_boundary = 1;
      else if (!is_element_form(operand)) kernel->only_elements[operand->symbol] = 0;
    }
  }
  for (size_t s = 0; s < program->symbols.count; s++)
    if (atlas_symbol_at(program, s)->kind != ATLAS_SYMBOL_BUFFER) kernel->only_elements[s] = 0;
}

hg_status hg_kernel_create(hg_executor *executor, atlas_program *program, hg_kernel **out) {
  if (executor == NULL || program == NULL || out == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_kernel_create: an argument is NULL");
  *out = NULL;
  if (atlas_program_is_library(program))
    return hg_fail(HG_VERIFY, "program '%s' is a library of functions (.entry) and cannot be launched", program->name);
  hg_kernel *kernel = hg_allocate(&executor->allocator, 1, sizeof *kernel);
  if (kernel == NULL) return hg_fail_memory("a kernel", sizeof *kernel);
  atomic_init(&kernel->references, 1);
  kernel->executor = hg_executor_retain(executor);
  kernel->program = atlas_program_retain(program);
  scan_addresses(kernel);
  *out = kernel;
  return HG_OK;
}

hg_kernel *hg_kernel_retain(hg_kernel *kernel) {
  if (kernel != NULL) hg_reference(&kernel->references);
  return kernel;
}

void hg_kernel_release(hg_kernel *kernel) {
  if (kernel == NULL || !hg_unreference(&kernel->references)) return;
  hg_executor *executor = kernel->executor;
  atlas_program_release(kernel->program);
  hg_release(&executor->allocator, kernel);
  hg_executor_release(executor);
}
