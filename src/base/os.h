/* os.h - everything the core needs from the operating system beyond ISO C11. Implemented once a system: os_posix.c,
 * os_windows.c. */
#ifndef HG_BASE_OS_H
#define HG_BASE_OS_H

#include "base/memory.h"

#include <stddef.h>
#include <stdint.h>

typedef struct hg_mutex {
  union { /* room for pthread_mutex_t or SRWLOCK, so that no system header leaks into the core */
    void *pointers[8];
    uint64_t words[8];
  } storage;
} hg_mutex;

int hg_mutex_init(hg_mutex *mutex); /* 0 on success */
void hg_mutex_destroy(hg_mutex *mutex);
void hg_mutex_lock(hg_mutex *mutex);
void hg_mutex_unlock(hg_mutex *mutex);

uint64_t hg_time_ns(void);                         /* monotonic */
uint32_t hg_hardware_threads(void);                /* that this process may run on; at least 1 */
uint64_t hg_physical_memory(void);                 /* bytes; 0 if not known */
void hg_cpu_name(char *name, size_t name_bytes);   /* "AMD EPYC"; "CPU" if not known */

/* ---- environment and files --------------------------------------------------------------------------------------- */

/* What the kernel cache needs. Paths are UTF-8 on Windows; "/" separates folders everywhere. None of these functions
 * sets the last error, because to the cache no failure is one. */
enum { HG_PATH_BYTES = 4096 }; /* room for any path, with its NUL */

uint64_t hg_process_id(void);

/* Copies an environment variable. 1 if it is set and not empty; otherwise, or where it does not fit, `value` is "" and
 * the result 0. */
int hg_environment(const char *name, char *value, size_t value_bytes);

/* Where this user's caches go, followed by the application's name; 0 where there is no such place. */
int hg_user_cache_folder(const char *application, char *path, size_t path_bytes);

/* Makes a folder, and those above it, that only the user may enter. 1 if it is there afterwards. */
int hg_directory_create(const char *path);

/* What may be read from a folder without fear of other users. */
typedef enum hg_directory_state {
  HG_DIRECTORY_PRIVATE, /* a folder of this user or of the system's, which not everybody may write to */
  HG_DIRECTORY_ABSENT,
  HG_DIRECTORY_OPEN /* another user's, or everybody may write to it */
} hg_directory_state;
hg_directory_state hg_directory_check(const char *path);

typedef struct hg_file_info {
  const char *name; /* without the folder; valid during the visit */
  uint64_t byte_count;
  int64_t modified_ns; /* since 1970 */
} hg_file_info;

/* Visits every regular file of a folder, in no order, until `visit` returns 0. Returns 0 if the folder cannot be
 * read. */
int hg_directory_list(const char *path, int (*visit)(void *user, const hg_file_info *file), void *user);

typedef enum hg_read_result {
  HG_READ_OK,
  HG_READ_FAILED, /* absent, not a regular file, not readable, or larger than the limit */
  HG_READ_NO_MEMORY
} hg_read_result;

/* Reads a whole file of at most `byte_limit` bytes; hg_release `*bytes`. */
hg_read_result hg_file_read(const hg_allocator *allocator, const char *path, uint64_t byte_limit, uint8_t **bytes,
                            size_t *byte_count);

/* Writes a new file, which must not exist yet and which only the user may read, and renames it to `path`: others see
 * what was at `path` before or all of the new bytes, never a part. 1 if done; otherwise nothing is left behind. */
int hg_file_write(const char *temporary, const char *path, const void *bytes, size_t byte_count);

int hg_file_touch(const char *path);  /* sets the modification time to now; 1 if done */
int hg_file_remove(const char *path); /* 1 if done */

#endif
