/* abi.c - structs of callers compiled against another version, and the version of this library. */
#include "base/abi.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { LARGEST_STRUCT = 65536 }; /* larger than any struct of any version: a size above it was not initialised */

#define STRUCT(type, last) _Static_assert(offsetof(type, size) == 0, #type " begins with its size");
#define ELEMENT(type, last)
#include "base/version1.def"
#undef STRUCT
#undef ELEMENT

/* ---- version ----------------------------------------------------------------------------------------------------- */

#define TEXT(x) #x
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)
static const char version[] = VERSION(HG_VERSION_MAJOR, HG_VERSION_MINOR, HG_VERSION_PATCH);

const char *hg_version(void) { return version; }
uint32_t hg_version_number(void) { return HG_VERSION_NUMBER; }

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static hg_status check_size(const char *what, size_t given, size_t version_1) {
  if (given >= version_1 && given <= LARGEST_STRUCT) return HG_OK;
  return hg_fail(HG_INVALID_ARGUMENT, "%s is %zu; it is 0 or what sizeof says, at least %zu", what, given, version_1);
}

static hg_status size_of(const char *name, const void *callers, size_t version_1, size_t *size) {
  size_t given = *(const size_t *)callers;
  char what[64];
  *size = given != 0 ? given : version_1;
  if (*size >= version_1 && *size <= LARGEST_STRUCT) return HG_OK;
  snprintf(what, sizeof what, "%s.size", name);
  return check_size(what, given, version_1);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Copies the fields that both versions have. Those that only the caller's has must be zero. */
static hg_status read_known(const char *name, void *own, size_t own_size, const uint8_t *callers, size_t size) {
  size_t known = size < own_size ? size : own_size;
  memcpy(own, callers, known);
  memset((uint8_t *)own + known, 0, own_size - known);
  for (size_t i = known; i < size; i++)
    if (callers[i] != 0)
      return hg_fail(HG_INVALID_ARGUMENT,
                     "%s has %zu bytes, of which byte %zu asks for something that only a newer library knows; this is "
                     "%s, which knows %zu bytes",
                     name, size, i, version, own_size);
  return HG_OK;
}

hg_status hg_read_struct(const char *name, void *own, size_t own_size, size_t version_1, const void *callers) {
  size_t size = 0;
  if (callers == NULL) {
    memset(own, 0, own_size);
  } else {
    HG_TRY(size_of(name, callers, version_1, &size));
    HG_TRY(read_known(name, own, own_size, callers, size));
  }
  *(size_t *)own = own_size;
  return HG_OK;
}

hg_status hg_check_stride(const char *field, size_t given, size_t version_1) {
  return check_size(field, given, version_1);
}

hg_status hg_read_element(const char *name, void *own, size_t own_size, const void *array, size_t stride,
                          size_t index) {
  return read_known(name, own, own_size, (const uint8_t *)array + index * stride, stride);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

hg_status hg_check_result(const char *name, size_t version_1, const void *callers) {
  size_t size;
  return size_of(name, callers, version_1, &size);
}

hg_status hg_write_struct(const char *name, void *callers, size_t version_1, const void *result, size_t result_size) {
  size_t size = 0;
  HG_TRY(size_of(name, callers, version_1, &size));
  size_t known = size < result_size ? size : result_size;
  uint8_t *to = callers;
  memcpy(to + sizeof size, (const uint8_t *)result + sizeof size, known - sizeof size);
  memset(to + known, 0, size - known);
  return HG_OK;
}
