/* inside.c - for `hologram emit` and `hologram cache`: the stages of a program on its way to a device, and the kernel
 * cache on disk. Neither needs an executor. */
#include "runtime/runtime.h"

#include "atlas/program.h"
#include "base/kernel_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- emit -------------------------------------------------------------------------------------------------------- */

/* Target number `index` of all backends together; NULL past the last. */
static const hg_emit_target *target_at(size_t index) {
  const hg_backend_row *row;
  for (size_t b = 0; (row = hg_backend_at(b)) != NULL; b++) {
    const hg_emit_target *target = row->backend != NULL ? row->backend->emit_targets : NULL;
    for (; target != NULL && target->name != NULL; target++)
      if (index-- == 0) return target;
  }
  return NULL;
}

hg_status hg_emit_target_query(size_t index, hg_emit_target_info *info) {
  if (info == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_emit_target_query: info is NULL");
  HG_TRY(HG_CHECK_RESULT(hg_emit_target_info, info));
  const hg_emit_target *target = target_at(index);
  if (target == NULL) return hg_fail(HG_NOT_FOUND, "there is no target number %zu", index);
  hg_emit_target_info result = {.name = target->name, .machine = target->machine,
                                .least_capability = target->least_capability,
                                .most_capability = target->most_capability};
  return HG_WRITE(hg_emit_target_info, info, &result);
}

static hg_status no_target(const char *name) {
  char names[256] = "";
  const hg_emit_target *target;
  for (size_t i = 0; (target = target_at(i)) != NULL; i++) {
    size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", target->name);
  }
  return hg_fail(HG_NOT_FOUND, "there is no target '%s': %s", name, names);
}

static hg_status check_capability(const hg_emit_target *target, uint32_t *capability) {
  uint32_t least = target->least_capability, most = target->most_capability;
  if (*capability == 0 || most == 0) *capability = least;
  if (*capability >= least && *capability <= most) return HG_OK;
  return hg_fail(HG_INVALID_ARGUMENT,
                 "hg_emit: capability is 10 * major + minor of a GPU, from %" PRIu32 " to %" PRIu32
                 ", or 0: the oldest; not %" PRIu32, least, most, *capability);
}

hg_status hg_emit(const hg_allocator *allocator, const atlas_program *program, const char *target_name,
                  uint32_t capability, void **bytes, size_t *byte_count) {
  if (program == NULL || target_name == NULL || bytes == NULL || byte_count == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_emit: an argument is NULL");
  *bytes = NULL;
  *byte_count = 0;
  if (atlas_program_is_library(program))
    return hg_fail(HG_INVALID_ARGUMENT, "program '%s' is a library of functions (.entry)", program->name);
  const hg_emit_target *target = target_at(0);
  for (size_t i = 1; target != NULL && strcmp(target->name, target_name) != 0; i++) target = target_at(i);
  if (target == NULL) return no_target(target_name);
  HG_TRY(check_capability(target, &capability));
  hg_allocator resolved;
  hg_array made = {.element_size = 1};
  HG_TRY(hg_allocator_resolve(allocator, &resolved));
  hg_status status = target->emit(target, &resolved, program, capability, &made);
  if (status != HG_OK) {
    hg_array_release(&resolved, &made);
    return status;
  }
  *bytes = made.data;
  *byte_count = made.count;
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
  HG_TRY(HG_CHECK_RESULT(hg_cache_info, info));
  HG_TRY(open_cache(&disk));
  hg_cache_info result = {.problem = hg_disk_cache_problem(&disk),
                          .byte_cap = disk.byte_cap,
                          .remark = disk.remark};
  _Static_assert(sizeof result.folder == sizeof disk.folder, "a path is as long everywhere");
  memcpy(result.folder, disk.folder, sizeof disk.folder);
  return HG_WRITE(hg_cache_info, info, &result);
}

/* Newest first. */
static int compare_files(const void *a, const void *b) {
  const hg_disk_file *x = a, *y = b;
  if (x->modified_ns != y->modified_ns) return x->modified_ns < y->modified_ns ? 1 : -1;
  return strcmp(x->name, y->name);
}

static hg_cache_state state_of(hg_disk_result result) {
  switch (result) {
  case HG_DISK_HIT: return HG_CACHE_OK;
  case HG_DISK_DAMAGED: return HG_CACHE_DAMAGED;
  case HG_DISK_REFUSED: return HG_CACHE_REFUSED;
  case HG_DISK_MISS: break;
  }
  return HG_CACHE_UNREADABLE;
}

static void visit_file(const hg_disk_cache *disk, const hg_disk_file *file, int read,
                    void (*visit)(void *user, const hg_cache_file *file), void *user) {
  hg_disk_entry entry = {.target = ""};
  hg_cache_file out = {.size = sizeof out, .name = file->name, .byte_count = file->byte_count,
                       .used_ns = file->modified_ns, .target = entry.target, .driver = entry.driver};
  out.state = file->is_entry ? HG_CACHE_OK : HG_CACHE_NO_ENTRY;
  if (read && file->is_entry) {
    out.state = state_of(hg_disk_cache_examine(disk, file->name, &entry));
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
    visit_file(&disk, (const hg_disk_file *)files.data + i, read, visit, user);
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
