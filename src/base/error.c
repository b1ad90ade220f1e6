/* error.c - statuses and the thread-local last error. */
#include "base/error.h"

#include <stdio.h>

enum { MESSAGE_BYTES = 1024 };

/* One of the few mutable globals the design allows: it is per thread and holds no resource. */
static _Thread_local char last_error[MESSAGE_BYTES];

const char *hg_status_name(hg_status status) {
  switch (status) {
#define STATUS(code, id, sentence) \
  case HG_##id: return "HG_" #id;
#include "hologram/status.def"
#undef STATUS
  }
  return "unknown status";
}

const char *hg_status_sentence(hg_status status) {
  switch (status) {
#define STATUS(code, id, sentence) \
  case HG_##id: return sentence;
#include "hologram/status.def"
#undef STATUS
  }
  return "unknown status";
}

const char *hg_last_error(void) { return last_error; }

hg_status hg_fail_v(hg_status status, const char *format, va_list arguments) {
  char message[MESSAGE_BYTES]; /* apart: an argument may be the last error itself */
  int length = vsnprintf(message, sizeof message, format, arguments);
  if (length < 0) message[0] = '\0';
  /* What did not fit is missing already: all but its last place, which says so. */
  hg_clip(message, length >= (int)sizeof message ? sizeof message : strlen(message), last_error, sizeof last_error);
  return status;
}

const char *hg_clip(const char *text, size_t length, char *copy, size_t copy_bytes) {
  static const char dots[] = "...";
  size_t kept = length < copy_bytes ? length : copy_bytes - sizeof dots;
  memcpy(copy, text, kept);
  memcpy(copy + kept, dots, length < copy_bytes ? 0 : sizeof dots - 1);
  copy[length < copy_bytes ? kept : copy_bytes - 1] = '\0';
  return copy;
}

hg_status hg_fail(hg_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hg_fail_v(status, format, arguments);
  va_end(arguments);
  return status;
}

hg_status hg_fail_memory(const char *what, uint64_t byte_count) {
  return hg_fail(HG_OUT_OF_MEMORY, "could not allocate %llu bytes for %s", (unsigned long long)byte_count, what);
}
