/* files.h - folders and files, for the kernel cache: which of them others may have written. One implementation a
 * system: files_posix.c, files_windows.c. Paths are UTF-8 on Windows. None of these functions sets the last error: to
 * the cache a failure means "not cached".
 *
 * A folder is opened once, then looked at, and files are reached from there by their names alone, through no link: so
 * what was looked at is what is used, whatever somebody who may rename a folder above makes of the path meanwhile. */
#ifndef HG_BASE_FILES_H
#define HG_BASE_FILES_H

#include "base/memory.h"
#include "base/os.h"

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* Makes a folder, and those above it, that only the user may enter. 1 if it is there afterwards. */
int hg_directory_create(const char *path);

/* For a folder that does not exist: 0 where hg_directory_create is sure to fail, because its nearest existing ancestor
 * is no folder or not writable for this user. Creates nothing. */
int hg_directory_can_be_made(const char *path);

typedef enum hg_folder_state {
  HG_FOLDER_PRIVATE,    /* of this user or the superuser; others may not write to it, or only those of its group, where
                           nobody may remove the files of others (sticky). Windows: any folder */
  HG_FOLDER_SHARED,     /* another user's, or reached by another user's link, or others may write to it */
  HG_FOLDER_ABSENT,
  HG_FOLDER_OTHER,      /* something else has that name */
  HG_FOLDER_UNREADABLE
} hg_folder_state;

typedef struct hg_folder {
  hg_folder_state state;
  int handle;       /* -1: not open. One that is shared may be; PRIVATE always is */
  const char *path; /* lives as long as the struct */
} hg_folder;

/* Opens a folder and looks at it. Close it in any case. */
hg_folder_state hg_folder_open(const char *path, hg_folder *folder);
void hg_folder_close(hg_folder *folder);

typedef struct hg_file_info {
  const char *name; /* without the folder; valid during the visit */
  int is_refused;   /* see HG_READ_REFUSED */
  uint64_t byte_count;
  int64_t modified_ns; /* since 1970 */
} hg_file_info;

/* Visits all that a folder has, in no order, until `visit` returns 0. Returns 0 if the folder cannot be read. */
int hg_folder_list(const hg_folder *folder, int (*visit)(void *user, const hg_file_info *file), void *user);

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef enum hg_read_result {
  HG_READ_OK,
  HG_READ_FAILED, /* absent, not readable, or larger than the limit */
  HG_READ_NO_MEMORY,
  HG_READ_REFUSED /* no regular file but a link, a pipe, a device, a folder; or one that others may have written:
                     another user's, writable for others, or of several names, of which others may have made one.
                     Windows: no regular file */
} hg_read_result;

/* Reads a whole file of a folder, of at most `byte_limit` bytes; hg_release `*bytes`. */
hg_read_result hg_folder_read(const hg_folder *folder, const hg_allocator *allocator, const char *name,
                              uint64_t byte_limit, uint8_t **bytes, size_t *byte_count);
/* Writes a new file, which must not exist yet and which only the user may read, and renames it to `name`: others see
 * what was there before or all of the new bytes, never a part. 1 if done; otherwise nothing is left behind. */
int hg_folder_write(const hg_folder *folder, const char *temporary, const char *name, const void *bytes,
                    size_t byte_count);
int hg_folder_touch(const hg_folder *folder, const char *name);  /* sets the modification time to now; 1 if done */
int hg_folder_remove(const hg_folder *folder, const char *name); /* 1 if done */

/* The same for files by their paths, wherever these lead; nothing is refused but what is no regular file, and others
 * may read a new one as the process's mask has it. */
hg_read_result hg_file_read(const hg_allocator *allocator, const char *path, uint64_t byte_limit, uint8_t **bytes,
                            size_t *byte_count);
int hg_file_write(const char *temporary, const char *path, const void *bytes, size_t byte_count);
int hg_file_remove(const char *path);

/* The same in parts, in their order. */
typedef struct hg_file {
  intptr_t handle;
  uint64_t byte_count; /* of one that is read */
} hg_file;

hg_read_result hg_file_open(const char *path, hg_file *file);
int hg_file_next(const hg_file *file, uint8_t *bytes, size_t byte_count); /* 1: all of them are there */
void hg_file_close(const hg_file *file);

int hg_is_separator(char c); /* between folders and names */

/* A new file, which may do what the one at `path` may, whose place it takes when it is finished. A link, a pipe or a
 * device is opened and written itself, as the system's rules for it are: then `temporary` becomes empty (Windows: a
 * link is replaced). 1: then hg_file_finish it. */
int hg_file_create(char *temporary, const char *path, hg_file *file);
int hg_file_put(const hg_file *file, const void *bytes, size_t byte_count);
/* Closes the file, and renames it if all was put, else removes it. 1 if it is there. */
int hg_file_finish(const hg_file *file, int is_good, const char *temporary, const char *path);

/* Appends to a file in a folder that everybody may write to: a new one, or one that hg_folder_read would not refuse. 1
 * if done. Nothing on Windows, which has no such folder. */
int hg_file_append(const char *path, const char *text);

#endif
