/* inside.c - what `hologram emit` and `hologram cache` show: what the compiler makes of a program, and the kernel cache
 * on disk. No executor is needed for either. */
#include "runtime/runtime.h"

#include "backend/cpu/native/native.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/ptx/emit_ptx.h"
#include "base/kernel_cache.h"
#include "compiler/canon.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- emit -------------------------------------------------------------------------------------------------------- */

enum {
  LINEAR_BLOCK_LANES = 256, /* of a program that does not ask for blocks */
  NEWEST_CAPABILITY = 999
};

typedef struct emission {
  const atlas_program *program;
  const native_target *machine;
  uint32_t capability;
  hg_allocator allocator;
  hg_array bytes;
} emission;

static hg_status emit_ptx(emission *e) {
  hg_ptx_info info;
  char name[ATLAS_MAX_NAME + 4];
  if (e->capability != 0 && (e->capability < CUDA_MIN_CAPABILITY || e->capability > NEWEST_CAPABILITY))
    return hg_fail(HG_INVALID_ARGUMENT,
                   "hg_emit: capability is 10 * major + minor of a GPU, from %d to %d, or 0: the oldest; not %" PRIu32,
                   CUDA_MIN_CAPABILITY, NEWEST_CAPABILITY, e->capability);
  snprintf(name, sizeof name, "hg_%s", e->program->name);
  hg_ptx_options options = {.capability = e->capability, .threads = LINEAR_BLOCK_LANES, .name = name};
  HG_TRY(hg_ptx_compile(&e->allocator, e->program, &options, &e->bytes, &info));
  e->bytes.count--; /* a NUL */
  return HG_OK;
}

static hg_status emit_from(emission *e, ssa_unit *unit, hg_vector *vector) {
  HG_TRY(hg_canonicalise(e->program, NULL, unit));
  HG_TRY(hg_expand_unplaced(unit, NULL));
  HG_TRY(hg_optimise(e->program, unit, NULL));
  HG_TRY(hg_vectorise(e->program, unit, vector));
  if (e->machine == NULL) return hg_vector_print(e->program, vector, &e->bytes);
  uint8_t *code = NULL;
  HG_TRY(hg_native_emit(&e->allocator, e->machine, e->program, vector, &code, &e->bytes.count));
  e->bytes.data = code;
  return HG_OK;
}

static hg_status emit_vector(emission *e) {
  ssa_unit unit;
  hg_vector vector = {.allocator = e->allocator};
  ir_ssa_init(&unit, &e->allocator);
  hg_status status = emit_from(e, &unit, &vector);
  hg_vector_release(&vector);
  ir_ssa_release(&unit);
  return status;
}

static const struct {
  const char *name;
  const native_target *machine;
  hg_status (*emit)(emission *e);
} targets[] = {{"ptx", NULL, emit_ptx},
               {"vector", NULL, emit_vector},
               {"x86-avx512", &hg_native_avx512, emit_vector},
               {"x86-avx2", &hg_native_avx2, emit_vector},
               {"arm64", &hg_native_neon, emit_vector}};

hg_status hg_emit(const hg_allocator *allocator, const atlas_program *program, const char *target,
                  uint32_t capability, void **bytes, size_t *byte_count) {
  if (program == NULL || target == NULL || bytes == NULL || byte_count == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_emit: an argument is NULL");
  *bytes = NULL;
  *byte_count = 0;
  if (atlas_program_is_library(program))
    return hg_fail(HG_INVALID_ARGUMENT, "program '%s' is a library of functions (.entry)", program->name);
  size_t t = 0;
  while (t < sizeof targets / sizeof *targets && strcmp(targets[t].name, target) != 0) t++;
  if (t == sizeof targets / sizeof *targets)
    return hg_fail(HG_NOT_FOUND, "there is no target '%s': ptx, vector, x86-avx512, x86-avx2, arm64", target);
  emission e = {.program = program, .machine = targets[t].machine, .capability = capability, .bytes.element_size = 1};
  HG_TRY(hg_allocator_resolve(allocator, &e.allocator));
  hg_status status = targets[t].emit(&e);
  if (status != HG_OK) {
    hg_array_release(&e.allocator, &e.bytes);
    return status;
  }
  *bytes = e.bytes.data;
  *byte_count = e.bytes.count;
  return HG_OK;
}

/* ---- the kernel cache on disk ------------------------------------------------------------------------------------ */

static hg_status open_cache(hg_disk_cache *disk) {
  hg_allocator allocator;
  HG_TRY(hg_allocator_resolve(NULL, &allocator));
  hg_disk_cache_open(&allocator, disk);
  return HG_OK;
}

hg_status hg_cache_query(hg_cache_info *info) {
  hg_disk_cache disk;
  if (info == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_cache_query: info is NULL");
  HG_TRY(hg_check_size("hg_cache_info", info->size, sizeof *info));
  HG_TRY(open_cache(&disk));
  hg_cache_info result = {.size = info->size,
                          .problem = hg_disk_cache_problem(&disk),
                          .byte_cap = disk.byte_cap,
                          .remark = disk.remark};
  _Static_assert(sizeof result.folder == sizeof disk.folder, "a path is as long everywhere");
  memcpy(result.folder, disk.folder, sizeof disk.folder);
  hg_copy_result(info, &result, sizeof result);
  return HG_OK;
}

/* Newest first. */
static int compare_files(const void *a, const void *b) {
  const hg_disk_file *x = a, *y = b;
  if (x->modified_ns != y->modified_ns) return x->modified_ns < y->modified_ns ? 1 : -1;
  return strcmp(x->name, y->name);
}

static void look_at(const hg_disk_cache *disk, const hg_disk_file *file, int read,
                    void (*visit)(void *user, const hg_cache_file *file), void *user) {
  hg_disk_entry entry = {.target = ""};
  hg_cache_file out = {.size = sizeof out, .name = file->name, .byte_count = file->byte_count,
                       .used_ns = file->modified_ns, .target = entry.target, .driver = entry.driver};
  out.state = file->is_entry ? HG_CACHE_OK : HG_CACHE_NO_ENTRY;
  if (read && file->is_entry) {
    hg_disk_result result = hg_disk_cache_examine(disk, file->name, &entry);
    if (result != HG_DISK_HIT) out.state = result == HG_DISK_DAMAGED ? HG_CACHE_DAMAGED : HG_CACHE_UNREADABLE;
    memcpy(out.program, entry.program, sizeof out.program);
    out.compiler_version = entry.compiler_version;
    out.specialisation_bytes = entry.specialisation_bytes;
    out.payload_bytes = entry.payload_bytes;
  }
  visit(user, &out);
}

hg_status hg_cache_visit(int read, void (*visit)(void *user, const hg_cache_file *file), void *user) {
  hg_disk_cache disk;
  hg_array files = {.element_size = sizeof(hg_disk_file)};
  if (visit == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_cache_visit: visit is NULL");
  HG_TRY(open_cache(&disk));
  int is_complete = hg_disk_cache_list(&disk, &files);
  if (is_complete && files.count > 0) qsort(files.data, files.count, sizeof(hg_disk_file), compare_files);
  for (size_t i = 0; is_complete && i < files.count; i++)
    look_at(&disk, (const hg_disk_file *)files.data + i, read, visit, user);
  uint64_t bytes = files.count * sizeof(hg_disk_file);
  hg_array_release(&disk.allocator, &files);
  return is_complete ? HG_OK : hg_fail_memory("the list of the kernel cache", bytes);
}

hg_status hg_cache_remove(const char *name) {
  hg_disk_cache disk;
  if (name == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_cache_remove: name is NULL");
  HG_TRY(open_cache(&disk));
  if (disk.folder[0] == '\0' || !hg_disk_cache_remove(&disk, name))
    return hg_fail(HG_NOT_FOUND, "no file '%s' of the kernel cache could be removed", name);
  return HG_OK;
}
