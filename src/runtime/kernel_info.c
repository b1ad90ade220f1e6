/* kernel_info.c - queries of a kernel and of its parameters. */
#include "runtime/runtime.h"

#include "atlas/program.h"
#include "base/abi.h"

#include <string.h>

static int is_parameter(const atlas_symbol *symbol) {
  return symbol->kind != ATLAS_SYMBOL_SHARED && symbol->kind != ATLAS_SYMBOL_LOCAL &&
         symbol->kind != ATLAS_SYMBOL_CONST;
}

/* The symbol of parameter `index`; the number of symbols if there is none. */
static size_t symbol_of(const atlas_program *program, size_t index) {
  size_t s = 0;
  for (; s < program->symbols.count; s++)
    if (is_parameter(atlas_symbol_at(program, s)) && index-- == 0) break;
  return s;
}

static uint32_t count_parameters(const atlas_program *program) {
  uint32_t count = 0;
  for (size_t s = 0; s < program->symbols.count; s++) count += (uint32_t)is_parameter(atlas_symbol_at(program, s));
  return count;
}

hg_status hg_kernel_query(hg_kernel *kernel, hg_kernel_info *info) {
  if (kernel == NULL || info == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_kernel_query: an argument is NULL");
  HG_TRY(hg_kernel_ready(kernel));
  hg_executor *executor = kernel->executor;
  hg_kernel_facts facts = {0};
  hg_lock(executor);
  hg_status status = executor->backend->describe(executor->device, kernel->compiled.kernel, &facts);
  hg_unlock(executor);
  if (status != HG_OK) return status;
  const char *why = facts.why != NULL ? facts.why : kernel->compiled.why;
  const char *notes = kernel->compiled.notes != NULL ? kernel->compiled.notes : why;
  hg_kernel_info result = {.name = kernel->program->name,
                           .backend = executor->row->name,
                           .engine = kernel->compiled.engine,
                           .why = why != NULL ? why : "",
                           .parameter_count = count_parameters(kernel->program),
                           .registers = facts.registers,
                           .local_bytes = facts.local_bytes,
                           .shared_bytes = facts.shared_bytes,
                           .notes = notes != NULL ? notes : ""};
  memcpy(result.hash, kernel->needs->hash, sizeof result.hash);
  memcpy(result.block, kernel->program->block, sizeof result.block);
  memcpy(result.default_block, kernel->program->default_block, sizeof result.default_block);
  return HG_WRITE(hg_kernel_info, info, &result);
}

hg_status hg_kernel_parameter(hg_kernel *kernel, size_t index, hg_parameter_info *info) {
  if (kernel == NULL || info == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_kernel_parameter: an argument is NULL");
  HG_TRY(hg_kernel_ready(kernel));
  const atlas_program *program = kernel->program;
  size_t slot = symbol_of(program, index);
  if (slot == program->symbols.count)
    return hg_fail(HG_NOT_FOUND, "program '%s' has %u parameters; there is no number %zu", program->name,
                   (unsigned)count_parameters(program), index);
  const atlas_symbol *symbol = atlas_symbol_at(program, slot);
  hg_parameter_info result = {.name = symbol->name,
                              .slot = (uint32_t)slot,
                              .kind = symbol->kind,
                              .type = symbol->type,
                              .access = symbol->kind != ATLAS_SYMBOL_SCALAR ? symbol->access : 0,
                              .is_required = kernel->needs->parameters[slot].is_required && symbol->handle == 0,
                              .entry_count = symbol->kind == ATLAS_SYMBOL_TABLE ? symbol->count : 0,
                              .alignment = kernel->needs->parameters[slot].alignment};
  return HG_WRITE(hg_parameter_info, info, &result);
}
