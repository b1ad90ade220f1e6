/* error.h - how every layer reports failure: a status and one sentence, kept per thread. */
#ifndef HG_BASE_ERROR_H
#define HG_BASE_ERROR_H

#include "hologram/base.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* A function on no path that has to be fast: compilers move the code around its calls out of the way. */
#if defined(__GNUC__)
#  define HG_RARE __attribute__((cold))
#else
#  define HG_RARE
#endif

/* Sets this thread's last error and returns `status`, so that a failing function can end in `return hg_fail(...)`. */
HG_RARE hg_status hg_fail(hg_status status, const char *format, ...) HG_PRINTF(2, 3);

/* The place of an error in a program; a field that is not known is NULL, 0 or -1. */
typedef struct hg_place {
  const char *source;
  uint32_t line, column;
  int64_t instruction;
} hg_place;

/* hg_fail with "source:line:column: " before the sentence, as far as it is known; hg_error_read gives the place as
 * data. */
HG_RARE hg_status hg_fail_at(hg_status status, const hg_place *place, const char *format, ...) HG_PRINTF(3, 4);
HG_RARE hg_status hg_fail_at_v(hg_status status, const hg_place *place, const char *format, va_list arguments)
    HG_PRINTF(3, 0);
/* Adds the byte offset in a binary form at which the last error was found. */
void hg_error_has_offset(uint64_t offset);

/* Adds the index out of range that the last error is about. */
void hg_error_has_index(int64_t number, uint32_t axis, uint64_t length);

/* The last error as data. */
void hg_error_read(hg_error_info *info);

/* HG_OUT_OF_MEMORY with a sentence that says what the memory was for. */
HG_RARE hg_status hg_fail_memory(const char *what, uint64_t byte_count);

/* Copies as much of a text as fits; a text that is cut ends in "...". */
const char *hg_clip(const char *text, size_t length, char *copy, size_t copy_bytes);

/* A word from a caller, for %s in a message: cut to HG_WORD_BYTES. */
#define HG_WORD(text, length) hg_clip(text, length, (char[HG_WORD_BYTES]){0}, HG_WORD_BYTES)
/* A path or another line of text: cut to HG_LINE_BYTES. */
#define HG_LINE(text) hg_clip(text, strlen(text), (char[HG_LINE_BYTES]){0}, HG_LINE_BYTES)
enum { HG_WORD_BYTES = 84, HG_LINE_BYTES = 204 };

/* Return early with the first failure. */
#define HG_TRY(expression)                              \
  do {                                                  \
    hg_status hg_try_status = (expression);             \
    if (hg_try_status != HG_OK) return hg_try_status;   \
  } while (0)

#endif
