/* identity.c - the public functions about the canonical form: a program's hash, the canonical program, the SSA form. */
#include "base/error.h"
#include "base/sha256.h"
#include "compiler/canon/canon.h"
#include "compiler/canon/out_of_ssa.h"
#include "compiler/canon/ssa_print.h"

static hg_status refuse_library(const atlas_program *program) {
  if (!atlas_program_is_library(program)) return HG_OK;
  return hg_fail(HG_INVALID_ARGUMENT, "'%s' is a library of functions; only programs have a canonical form",
                 program->name);
}

hg_status hg_canon_hash(const atlas_program *program, const ssa_unit *unit, uint8_t digest[ATLAS_HASH_BYTES]) {
  hg_array bytes = {.element_size = 1};
  hg_status status = hg_canon_bytes(program, unit, &bytes);
  if (status == HG_OK) {
    hg_sha256 hash;
    hg_sha256_begin(&hash);
    hg_sha256_add(&hash, bytes.data, bytes.count);
    hg_sha256_end(&hash, digest);
  }
  hg_array_release(&unit->allocator, &bytes);
  return status;
}

hg_status atlas_program_hash(const atlas_program *program, uint8_t digest[ATLAS_HASH_BYTES]) {
  ssa_unit unit;
  if (program == NULL || digest == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "atlas_program_hash needs a program and a place for its hash");
  HG_TRY(refuse_library(program));
  hg_status status = hg_canonicalise(program, NULL, &unit);
  if (status == HG_OK) status = hg_canon_hash(program, &unit, digest);
  ir_ssa_release(&unit);
  return status;
}

hg_status atlas_canonicalise(const hg_allocator *allocator, const atlas_program *program, atlas_program **out) {
  ssa_unit unit;
  hg_allocator resolved;
  if (program == NULL || out == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "atlas_canonicalise needs a program and an `out`");
  *out = NULL;
  HG_TRY(hg_allocator_resolve(allocator, &resolved));
  HG_TRY(refuse_library(program));
  hg_status status = hg_canonicalise(program, NULL, &unit);
  if (status == HG_OK) status = hg_out_of_ssa(&resolved, program, &unit, out);
  ir_ssa_release(&unit);
  return status;
}

/* Text in the caller's memory, with a NUL behind it. */
static hg_status hand_over(const hg_allocator *allocator, const hg_array *from, char **text, size_t *length) {
  hg_allocator resolved;
  HG_TRY(hg_allocator_resolve(allocator, &resolved));
  char *copy = hg_allocate(&resolved, (uint64_t)from->count + 1, 1);
  if (copy == NULL) return hg_fail_memory("a text", (uint64_t)from->count + 1);
  for (size_t i = 0; i < from->count; i++) copy[i] = ((const char *)from->data)[i];
  *text = copy;
  if (length != NULL) *length = from->count;
  return HG_OK;
}

static hg_status print_unit(const char *caller, const hg_allocator *allocator, const atlas_program *program, int names,
                            char **text, size_t *length) {
  ssa_unit unit;
  hg_array printed = {.element_size = 1};
  if (program == NULL || text == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "%s needs a program and a place for its text", caller);
  *text = NULL;
  HG_TRY(refuse_library(program));
  hg_status status = hg_canonicalise(program, NULL, &unit);
  if (status == HG_OK) status = hg_ssa_print(program, &unit, names, &printed);
  if (status == HG_OK) status = hand_over(allocator, &printed, text, length);
  hg_array_release(&unit.allocator, &printed);
  ir_ssa_release(&unit);
  return status;
}

hg_status atlas_print_canonical(const hg_allocator *allocator, const atlas_program *program, char **text,
                                size_t *length) {
  return print_unit("atlas_print_canonical", allocator, program, 0, text, length);
}

hg_status atlas_print_ssa(const hg_allocator *allocator, const atlas_program *program, char **text, size_t *length) {
  return print_unit("atlas_print_ssa", allocator, program, 1, text, length);
}
