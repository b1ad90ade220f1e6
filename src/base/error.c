/* error.c - statuses and the thread-local last error. */
#include "base/error.h"

#include <stdio.h>

enum { MESSAGE_BYTES = 1024 };

/* One of the few mutable globals the design allows: it is per thread and holds no resource. */
static _Thread_local struct {
  hg_status status;
  uint32_t line, column;
  size_t message;              /* where the message begins in the sentence, after the place */
  int64_t instruction, offset; /* plus 1, so that zeroed memory means "not known" */
  int64_t number;
  uint64_t length;
  uint32_t axis, has_number;
  char source[HG_LINE_BYTES];
  char sentence[MESSAGE_BYTES];
} last;

const char *hg_status_name(hg_status status) {
  switch (status) {
#define HG_STATUS(code, id, sentence) \
  case HG_##id: return "HG_" #id;
#include "hologram/status.def"
#undef HG_STATUS
  }
  return "unknown status";
}

const char *hg_status_sentence(hg_status status) {
  switch (status) {
#define HG_STATUS(code, id, sentence) \
  case HG_##id: return sentence;
#include "hologram/status.def"
#undef HG_STATUS
  }
  return "unknown status";
}

const char *hg_last_error(void) { return last.sentence; }

void hg_error_read(hg_error_info *info) {
  *info = (hg_error_info){.status = last.status,
                          .line = last.line,
                          .column = last.column,
                          .source = last.source,
                          .message = last.sentence + last.message,
                          .instruction = last.instruction - 1,
                          .offset = last.offset - 1,
                          .number = last.number,
                          .length = last.length,
                          .axis = last.axis,
                          .has_number = last.has_number};
}

/* ---- failing ----------------------------------------------------------------------------------------------------- */

const char *hg_clip(const char *text, size_t length, char *copy, size_t copy_bytes) {
  static const char dots[] = "...";
  size_t kept = length < copy_bytes ? length : copy_bytes - sizeof dots;
  memcpy(copy, text, kept);
  memcpy(copy + kept, dots, length < copy_bytes ? 0 : sizeof dots - 1);
  copy[length < copy_bytes ? kept : copy_bytes - 1] = '\0';
  return copy;
}

/* "blur.atlas:12:19: "; returns its length. */
static size_t print_place(const hg_place *place, char *text, size_t text_bytes) {
  size_t used = 0;
  if (place->source == NULL) return 0;
  used += (size_t)snprintf(text, text_bytes, "%s:", HG_LINE(place->source));
  if (place->line != 0) used += (size_t)snprintf(text + used, text_bytes - used, "%u:", (unsigned)place->line);
  if (place->column != 0) used += (size_t)snprintf(text + used, text_bytes - used, "%u:", (unsigned)place->column);
  text[used++] = ' ';
  return used;
}

hg_status hg_fail_at_v(hg_status status, const hg_place *place, const char *format, va_list arguments) {
  const char *source = place->source != NULL ? place->source : "";
  char sentence[MESSAGE_BYTES]; /* not written in place: an argument may be the last error itself */
  size_t start = print_place(place, sentence, sizeof sentence), room = sizeof sentence - start;
  int length = vsnprintf(sentence + start, room, format, arguments);
  if (length < 0) sentence[start] = '\0';
  /* Truncated: pass the full size, so that hg_clip adds its ellipsis. */
  hg_clip(sentence, length >= (int)room ? sizeof sentence : strlen(sentence), last.sentence, sizeof last.sentence);
  hg_clip(source, strlen(source), last.source, sizeof last.source);
  last.status = status;
  last.line = place->line;
  last.column = place->column;
  last.message = start;
  last.instruction = place->instruction + 1;
  last.offset = 0;
  last.number = 0;
  last.length = 0;
  last.axis = last.has_number = 0;
  return status;
}

hg_status hg_fail_at(hg_status status, const hg_place *place, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hg_fail_at_v(status, place, format, arguments);
  va_end(arguments);
  return status;
}

hg_status hg_fail(hg_status status, const char *format, ...) {
  static const hg_place nowhere = {.instruction = -1};
  va_list arguments;
  va_start(arguments, format);
  hg_fail_at_v(status, &nowhere, format, arguments);
  va_end(arguments);
  return status;
}

void hg_error_has_offset(uint64_t offset) { last.offset = (int64_t)offset + 1; }

void hg_error_has_index(int64_t number, uint32_t axis, uint64_t length) {
  last.number = number;
  last.axis = axis;
  last.length = length;
  last.has_number = 1;
}

hg_status hg_fail_memory(const char *what, uint64_t byte_count) {
  return hg_fail(HG_OUT_OF_MEMORY, "could not allocate %llu bytes for %s", (unsigned long long)byte_count, what);
}
