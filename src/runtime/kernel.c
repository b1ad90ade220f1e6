/* kernel.c - a program made ready for an executor: what a launch needs to know about it is found out once. */
#include "runtime/runtime.h"

#include "atlas/program.h"
#include "compiler/canon.h"

enum { TABLE_ENTRY_ALIGNMENT = 8, POOL_ALIGNMENT = 16 };

static hg_parameter parameter_of(const atlas_symbol *symbol, int is_only_elements) {
  uint8_t bytes = (uint8_t)atlas_bytes((atlas_type)symbol->type);
  switch (symbol->kind) {
  case ATLAS_SYMBOL_BUFFER:
    return (hg_parameter){.is_memory = 1, .is_required = 1, .is_written = symbol->access != ATLAS_IN,
                          .alignment = bytes, .element_bytes = is_only_elements ? bytes : 0};
  case ATLAS_SYMBOL_TABLE:
    return (hg_parameter){.is_memory = 1, .is_table = 1, .is_written = symbol->access != ATLAS_IN,
                          .alignment = TABLE_ENTRY_ALIGNMENT};
  case ATLAS_SYMBOL_POOL:
    return (hg_parameter){.is_memory = 1, .is_required = 1, .is_written = 1, .alignment = POOL_ALIGNMENT};
  default: return (hg_parameter){.is_required = symbol->kind == ATLAS_SYMBOL_SCALAR};
  }
}

/* Of the canonical program: what is dead in the text does not count. */
static void note_needs(hg_kernel *kernel, const ssa_unit *unit) {
  const atlas_program *program = kernel->program;
  for (size_t s = 0; s < program->symbols.count; s++) {
    kernel->parameters[s] = parameter_of(atlas_symbol_at(program, s), !(unit->other_forms[s / 64] >> s % 64 & 1));
    kernel->has_tables |= kernel->parameters[s].is_table;
  }
  for (uint32_t b = 0; b < unit->blocks.count; b++)
    for (uint32_t e = ssa_block_at(unit, b)->first_effect; e != SSA_NONE; e = ssa_insn_at(unit, e)->next) {
      const ssa_insn *insn = ssa_insn_at(unit, e);
      int is_access =
          (atlas_op_lookup(insn->op)->flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != 0;
      if (insn->op == ATLAS_OP_res_accum) kernel->uses_resonance = 1;
      if (insn->op == ATLAS_OP_phase_adv) kernel->advances_phase = 1;
      if (is_access && insn->mode == ATLAS_ADDRESS_PHI) kernel->uses_boundary = 1;
    }
}

static hg_status compile(hg_kernel *kernel) {
  hg_executor *executor = kernel->executor;
  ssa_unit unit;
  hg_compile_input input = {.program = kernel->program, .unit = &unit};
  hg_status status = hg_canonicalise(kernel->program, NULL, &unit);
  if (status == HG_OK) {
    note_needs(kernel, &unit);
    status = hg_canon_hash(kernel->program, &unit, input.hash);
  }
  if (status == HG_OK) {
    hg_lock(executor);
    status = executor->backend->compile(executor->device, &input, &kernel->compiled);
    hg_unlock(executor);
  }
  ir_ssa_release(&unit);
  return status;
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
  hg_status status = compile(kernel);
  if (status == HG_OK) *out = kernel;
  else hg_kernel_release(kernel);
  return status;
}

hg_kernel *hg_kernel_retain(hg_kernel *kernel) {
  if (kernel != NULL) hg_reference(&kernel->references);
  return kernel;
}

void hg_kernel_destroy(hg_kernel *kernel) {
  hg_executor *executor = kernel->executor;
  if (kernel->compiled.kernel != NULL) {
    hg_lock(executor);
    executor->backend->release(executor->device, kernel->compiled.kernel);
    hg_unlock(executor);
  }
  atlas_program_release(kernel->program);
  hg_release(&executor->allocator, kernel);
  hg_executor_release(executor);
}

void hg_kernel_release(hg_kernel *kernel) {
  if (kernel != NULL && hg_unreference(&kernel->references)) hg_kernel_destroy(kernel);
}
