/* backends.c - the table of backends, and what is known about each before an executor exists. */
#include "runtime/runtime.h"

#include <stdio.h>
#include <string.h>

#define BACKEND(ID, name) extern const hg_backend hg_backend_##name;
#define BACKEND_ABSENT(ID, name, why)
#include "runtime/backends.def"
#undef BACKEND
#undef BACKEND_ABSENT

static const hg_backend_row rows[] = {
#define BACKEND(ID, name) {HG_BACKEND_##ID, #name, &hg_backend_##name, NULL},
#define BACKEND_ABSENT(ID, name, why) {HG_BACKEND_##ID, #name, NULL, why},
#include "runtime/backends.def"
#undef BACKEND
#undef BACKEND_ABSENT
};

const hg_backend_row *hg_backend_at(size_t index) { return index < sizeof rows / sizeof rows[0] ? &rows[index] : NULL; }

hg_status hg_backend_query(size_t index, hg_backend_info *info) {
  if (info == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_backend_query: info is NULL");
  HG_TRY(HG_CHECK_RESULT(hg_backend_info, info));
  const hg_backend_row *row = hg_backend_at(index);
  if (row == NULL) return hg_fail(HG_NOT_FOUND, "there is no backend number %zu", index);
  hg_backend_info result = {.id = row->id, .name = row->name};
  hg_device_info device;
  hg_device_choice first = {.engine = ""};
  if (row->backend == NULL) {
    snprintf(result.reason, sizeof result.reason, "%s", row->absent);
  } else if (row->backend->query(&first, &device) == HG_OK) {
    result.available = 1;
    snprintf(result.reason, sizeof result.reason, "%s", device.name);
  } else {
    hg_clip(hg_last_error(), strlen(hg_last_error()), result.reason, sizeof result.reason);
  }
  return HG_WRITE(hg_backend_info, info, &result);
}

hg_status hg_backend_by_name(const char *name, hg_backend_id *id) {
  char names[128] = "auto";
  const hg_backend_row *row;
  if (name == NULL || id == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_backend_by_name: an argument is NULL");
  *id = HG_BACKEND_AUTO;
  if (strcmp(name, names) == 0) return HG_OK;
  for (size_t i = 0; (row = hg_backend_at(i)) != NULL; i++) {
    size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, ", %s", row->name);
    *id = row->id;
    if (strcmp(name, row->name) == 0) return HG_OK;
  }
  *id = HG_BACKEND_AUTO;
  return hg_fail(HG_NOT_FOUND, "there is no backend '%s': %s", name, names);
}

hg_status hg_check_range(const char *what, uint64_t size, uint64_t offset, uint64_t byte_count) {
  if (offset <= size && byte_count <= size - offset) return HG_OK;
  return hg_fail(HG_OUT_OF_RANGE, "%llu bytes at offset %llu do not lie in %s of %llu bytes",
                 (unsigned long long)byte_count, (unsigned long long)offset, what, (unsigned long long)size);
}
