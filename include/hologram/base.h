/* base.h - what every part of the Hologram API shares: export macro, status, last error, allocator, log.
 *
 * Conventions of the whole API
 *   - A function that can fail returns hg_status; hg_last_error() then gives a sentence of this thread's last failure.
 *   - Descriptors are structs that are valid zero-initialised.
 *   - Handles are opaque; NULL is accepted by every release function.
 *   - The library never prints, exits or aborts.
 *
 * Programs and libraries of different versions: what was compiled against version 1 of these headers runs on every
 * later library, and what was compiled against later headers on an older library, if it asks for nothing new.
 *   - Structs that may grow begin with `size`: sizeof the struct as the caller's header has it. 0 is the size of
 *     version 1, whatever the library's. New fields come at the end, and zero there asks for nothing.
 *   - A struct that the library reads may be larger than the library's if all that the library does not know is zero;
 *     else HG_INVALID_ARGUMENT.
 *   - Of a struct that the library fills in, no byte beyond `size` is touched, and what the library does not know is
 *     set to zero. To see the fields of a later version, set `size`.
 *   - Structs in arrays and in other structs have no `size`: hg_binding and hg_scalar, whose descriptor says how far
 *     one is from the next, and hg_fault. New fields come out of their `reserved` room, which is zero, so that an array
 *     of them is right without any size in programs that are compiled anew.
 *   - Enums get new values; a value once given stays what it is.
 *   - atlas_operand, atlas_insn, atlas_symbol and atlas_label never change: what is new about an instruction or a
 *     symbol will be asked of a function. */
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

#define HG_VERSION_MAJOR 0
#define HG_VERSION_MINOR 1
#define HG_VERSION_PATCH 0
/* The version of these headers; hg_version_number returns that of the library. */
#define HG_VERSION_NUMBER (HG_VERSION_MAJOR * 1000000 + HG_VERSION_MINOR * 1000 + HG_VERSION_PATCH)

HG_API const char *hg_version(void);     /* of the running library: "0.1.0" */
HG_API uint32_t hg_version_number(void); /* major * 1000000 + minor * 1000 + patch: 1000 */

typedef enum hg_status {
#define HG_STATUS(code, id, sentence) HG_##id = code,
#include "hologram/status.def"
#undef HG_STATUS
} hg_status;

/* "HG_OK", "HG_OUT_OF_MEMORY", ...; "unknown status" for any other number. Never NULL. */
HG_API const char *hg_status_name(hg_status status);

/* The sentence of status.def. Never NULL. */
HG_API const char *hg_status_sentence(hg_status status);

/* What went wrong in this thread's last failing call, and what to do about it: one sentence, possibly with a source
 * position ("blur.atlas:12:19: ..."). Read it after a failed call and before the next one: even a successful call may
 * change it, if one of the ways that it tried failed. Empty at first. Never NULL. */
HG_API const char *hg_last_error(void);

/* The same as data. Strings live as long as hg_last_error's. */
typedef struct hg_error_info {
  size_t size;
  hg_status status;     /* HG_OK: nothing has failed yet */
  uint32_t line;        /* of the program's text, from 1; 0: no particular line */
  uint32_t column;      /* in bytes, from 1; 0: the whole line */
  const char *source;   /* the name of the text in the sentence: "blur.atlas"; "": none */
  const char *message;  /* the sentence without "blur.atlas:12:19: " */
  int64_t instruction;  /* of HG_VERIFY: the instruction's index; -1: none in particular */
  int64_t offset;       /* of HG_FORMAT: how many bytes of the binary form had been read; -1: unknown */
  int64_t number;       /* of HG_FAULT by an operation's index out of range, if has_number: that index */
  uint64_t length;      /* if has_number: the size of the axis */
  uint32_t axis;        /* if has_number */
  uint32_t has_number;  /* see hg_fault */
} hg_error_info;
/* Fill info->size first, or leave it 0. Call it when you would call hg_last_error. */
HG_API hg_status hg_last_error_info(hg_error_info *info);

/* Memory for the library's own objects. `allocate` returns `size` bytes aligned for any C object, or NULL; `release`
 * gets what `allocate` returned, never NULL. Any thread that calls the library may call both, several at a time, and so
 * may threads of the library if there are streams, hg_kernel_create_async or hg_compile. */
typedef struct hg_allocator {
  size_t size;
  void *user;
  void *(*allocate)(void *user, size_t size);
  void (*release)(void *user, void *memory);
} hg_allocator;

typedef enum hg_log_level { HG_LOG_ERROR = 1, HG_LOG_WARNING = 2, HG_LOG_INFO = 3, HG_LOG_DEBUG = 4 } hg_log_level;

/* Receives one message (no newline) on the thread that caused it; for a kernel that compiles in the background, on a
 * thread of the library. Several threads may call it at once. */
typedef void (*hg_log_callback)(void *user, hg_log_level level, const char *message);

/* Asks whether a long call shall go on: 0 if so; anything else ends it. Called about every ten milliseconds on the
 * thread that made the call: by hg_compile between launches that it plans and compiles, by hg_run between launches, and
 * by whatever waits until a stream has room for a launch. It may use the library. A call that it ends returns
 * HG_CANCELLED: work that it has given to a stream continues, the rest is never done. */
typedef int (*hg_ask_callback)(void *user);

#ifdef __cplusplus
}
#endif
#endif
