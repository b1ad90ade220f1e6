/* cpu_emit.c - what the CPU engines run, as text, and machine code for any processor that has an emitter. */
#include "backend/cpu/cpu_emit.h"

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/native/native.h"
#include "backend/cpu/targets.h"
#include "base/error.h"
#include "compiler/canon/canon.h"

/* target->own: a native_target; NULL for the vector program itself. */
static hg_status emit(const hg_emit_target *target, const hg_allocator *allocator, const atlas_program *program,
                      uint32_t capability, hg_array *bytes) {
  ssa_unit unit;
  hg_vector vector = {.allocator = *allocator};
  (void)capability;
  ir_ssa_init(&unit, allocator);
  hg_status status = hg_canonicalise(program, NULL, &unit);
  if (status == HG_OK) status = hg_cpu_vectorise(program, &unit, NULL, &vector);
  const native_target *own = target->own;
  if (status == HG_OK && own != NULL && own->lanes == 1) {
    hg_vector_release(&vector);
    status = hg_vectorise_lane(program, &unit, &vector);
  }
  if (status == HG_OK && own == NULL) status = hg_vector_print(program, &vector, bytes);
  else if (status == HG_OK) {
    uint8_t *code = NULL;
    status = hg_native_emit(allocator, own, program, &vector, &code, &bytes->count);
    bytes->data = code;
  }
  hg_vector_release(&vector);
  ir_ssa_release(&unit);
  return status;
}

const hg_emit_target hg_cpu_emit_targets[] = {
    {.name = "vector", .emit = emit},
    {.name = "x86-avx512", .machine = "i386:x86-64", .own = &hg_native_avx512, .emit = emit},
    {.name = "x86-avx2", .machine = "i386:x86-64", .own = &hg_native_avx2, .emit = emit},
    {.name = "x86-64", .machine = "i386:x86-64", .own = &hg_native_x86_lanes, .emit = emit},
    {.name = "arm64", .machine = "aarch64", .own = &hg_native_neon, .emit = emit},
    {.name = NULL}};
