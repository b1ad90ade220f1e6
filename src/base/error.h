/* error.h - how every layer reports failure: a status and one sentence, kept per thread. */
#ifndef HG_BASE_ERROR_H
#define HG_BASE_ERROR_H

#include "hologram/base.h"

#include <stdarg.h>

/* Sets this thread's last error and returns `status`, so that a failing function can end in `return hg_fail(...)`. */
hg_status hg_fail(hg_status status, const char *format, ...) HG_PRINTF(2, 3);
hg_status hg_fail_v(hg_status status, const char *format, va_list arguments) HG_PRINTF(2, 0);

/* HG_OUT_OF_MEMORY with a sentence that says what the memory was for. */
hg_status hg_fail_memory(const char *what, uint64_t byte_count);

/* Return early with the first failure. */
#define HG_TRY(expression)                              \
  do {                                                  \
    hg_status hg_try_status = (expression);             \
    if (hg_try_status != HG_OK) return hg_try_status;   \
  } while (0)

#endif
