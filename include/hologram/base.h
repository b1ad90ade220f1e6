/* base.h - what every part of the Hologram API shares: export macro, status, last error, allocator, log.
 *
 * Conventions of the whole API
 *   - A function that can fail returns hg_status; hg_last_error() then gives a sentence of this thread's last failure.
 *   - Descriptors are structs that are valid zero-initialised; their first field is `size` (sizeof the struct, or 0 for
 *     version 1 of it), so that they can grow.
 *   - Handles are opaque; NULL is accepted by every release function.
 *   - The library never prints, exits or aborts. */
#ifndef HOLOGRAM_BASE_H
#define HOLOGRAM_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(HG_SHARED)
#  ifdef HG_BUILD
#    define HG_API __declspec(dllexport)
#  else
#    define HG_API __declspec(dllimport)
#  endif
#elif defined(__GNUC__) && !defined(_WIN32)
#  define HG_API __attribute__((visibility("default")))
#else
#  define HG_API
#endif

#if defined(__MINGW32__) && !defined(__clang__)
#  define HG_PRINTF(format_index, first_argument) __attribute__((format(gnu_printf, format_index, first_argument)))
#elif defined(__GNUC__)
#  define HG_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#else
#  define HG_PRINTF(format_index, first_argument)
#endif

typedef enum hg_status {
#define STATUS(code, id, sentence) HG_##id = code,
#include "hologram/status.def"
#undef STATUS
} hg_status;

/* "HG_OK", "HG_OUT_OF_MEMORY", ...; "unknown status" for any other number. Never NULL. */
HG_API const char *hg_status_name(hg_status status);

/* The sentence of status.def. Never NULL. */
HG_API const char *hg_status_sentence(hg_status status);

/* What went wrong in this thread's last failing call, and what to do about it: one sentence, possibly with a source
 * position ("blur.atlas:12:19: ..."). To be read after a call that failed and before the next one: a call that
 * succeeds may change it, too, where one of the ways it tried failed. Empty at first. Never NULL. */
HG_API const char *hg_last_error(void);

/* Memory for the library's own objects. `allocate` returns `size` bytes aligned for any object of C, or NULL;
 * `release` gets what `allocate` returned, never NULL. Both may be called from any thread that calls the library, by
 * several at a time, and, where there are streams or hg_kernel_create_async, from threads of the library's own. */
typedef struct hg_allocator {
  size_t size;
  void *user;
  void *(*allocate)(void *user, size_t size);
  void (*release)(void *user, void *memory);
} hg_allocator;

typedef enum hg_log_level { HG_LOG_ERROR = 1, HG_LOG_WARNING = 2, HG_LOG_INFO = 3, HG_LOG_DEBUG = 4 } hg_log_level;

/* Receives one message (no newline) on the thread that caused it. */
typedef void (*hg_log_callback)(void *user, hg_log_level level, const char *message);

#ifdef __cplusplus
}
#endif
#endif
