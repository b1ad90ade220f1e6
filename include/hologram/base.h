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
/* Of these headers, as hg_version_number has it of the library. */
#define HG_VERSION_NUMBER (HG_VERSION_MAJOR * 1000000 + HG_VERSION_MINOR * 1000 + HG_VERSION_PATCH)

HG_API const char *hg_version(void);     /* of the library that runs: "0.1.0" */
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
 * position ("blur.atlas:12:19: ..."). To be read after a call that failed and before the next one: a call that
 * succeeds may change it, too, where one of the ways it tried failed. Empty at first. Never NULL. */
HG_API const char *hg_last_error(void);

/* The same as data. Strings live as long as hg_last_error's. */
typedef struct hg_error_info {
  size_t size;
  hg_status status;     /* HG_OK: nothing has failed yet */
  uint32_t line;        /* of the program's text, from 1; 0: it is about no line in particular */
  uint32_t column;      /* in bytes, from 1; 0: about the whole line */
  const char *source;   /* what stands for the text in the sentence: "blur.atlas"; "": nothing */
  const char *message;  /* the sentence without "blur.atlas:12:19: " */
  int64_t instruction;  /* of HG_VERIFY: its index in the program; -1: about none in particular */
  int64_t offset;       /* of HG_FORMAT: how many bytes of the binary form were read until then; -1: not known */
  int64_t number;       /* of HG_FAULT by an operation's index out of range, where has_number: that index */
  uint64_t length;      /* likewise: how many elements the axis has */
  uint32_t axis;        /* likewise */
  uint32_t has_number;  /* see hg_fault */
} hg_error_info;
/* Fill info->size first, or leave it 0. To be called when hg_last_error would be. */
HG_API hg_status hg_last_error_info(hg_error_info *info);

/* Memory for the library's own objects. `allocate` returns `size` bytes aligned for any object of C, or NULL;
 * `release` gets what `allocate` returned, never NULL. Both may be called from any thread that calls the library, by
 * several at a time, and, where there are streams, hg_kernel_create_async or hg_compile, from threads of the library's
 * own. */
typedef struct hg_allocator {
  size_t size;
  void *user;
  void *(*allocate)(void *user, size_t size);
  void (*release)(void *user, void *memory);
} hg_allocator;

typedef enum hg_log_level { HG_LOG_ERROR = 1, HG_LOG_WARNING = 2, HG_LOG_INFO = 3, HG_LOG_DEBUG = 4 } hg_log_level;

/* Receives one message (no newline) on the thread that caused it, for a kernel that compiles in the background on the
 * library's. Several threads may be in it at once. */
typedef void (*hg_log_callback)(void *user, hg_log_level level, const char *message);

/* Whether a call that takes long is to go on: 0, or anything else to end it. Asked about every ten milliseconds on the
 * thread that made the call, by hg_compile between launches that it plans and compiles; by hg_run between those it
 * gives; and by whatever waits until a stream has room for one launch more. It may use the library. A call that it ends
 * is HG_CANCELLED: what it had given to a stream goes on, the rest is never done. */
typedef int (*hg_ask_callback)(void *user);

#ifdef __cplusplus
}
#endif
#endif
