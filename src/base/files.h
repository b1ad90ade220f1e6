/* files.h - folders and files, for the kernel cache: which of them others may have written. One implementation for each
 * system: files_posix.c, files_windows.c. Paths are UTF-8 on Windows. None of these functions sets the last error: to
 * the cache a failure means "not cached".
 *
 * A folder is opened once, then checked, and files are reached from it by their names alone, through no link. So what
 * was checked is what is used, even if somebody who may rename a folder above changes what the path leads to. */
#ifndef HG_BASE_FILES_H
#define HG_BASE_FILES_H

#include "base/memory.h"
#include "base/os.h"

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* Makes a folder, and missing ones above it, that only the user may enter. 1 if it exists afterwards. */
int hg_directory_create(const char *path);

/* For a folder that does not exist: 0 if hg_directory_create is sure to fail, because its nearest existing ancestor is
 * no folder or not writable for this user. Creates nothing. */
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

/* Visits all entries of a folder, in no particular order, until `visit` returns 0. Returns 0 if the folder cannot be
 * read. */
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
 * the old or the new file, never a part. 1 if done; otherwise nothing is left behind. */
int hg_folder_write(const hg_folder *folder, const char *temporary, const char *name, const void *bytes,
                    size_t byte_count);
int hg_folder_touch(const hg_folder *folder, const char *name);  /* sets the modification time to now; 1 if done */
int hg_folder_remove(const hg_folder *folder, const char *name); /* 1 if done */

/* The same for files by path, wherever it leads; refuses only what is no regular file, and others may read a new file
 * as the process's umask allows. */
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
int hg_file_next(const hg_file *file, uint8_t *bytes, size_t byte_count); /* 1: all have been written */
void hg_file_close(const hg_file *file);

int hg_is_separator(char c); /* between folders and names */

/* Begins a new file with the permissions of the one at `path`, which it replaces when it is finished. A link, a pipe or
 * a device is opened and written directly, as the system does: then `temporary` becomes empty (Windows: a link is
 * replaced). 1: call hg_file_finish afterwards. */
int hg_file_create(char *temporary, const char *path, hg_file *file);
int hg_file_put(const hg_file *file, const void *bytes, size_t byte_count);
/* Closes the file, and renames it if everything was written, else removes it. 1 if it exists. */
int hg_file_finish(const hg_file *file, int is_good, const char *temporary, const char *path);

/* Appends to a file in a folder that everybody may write to: a new one, or one that hg_folder_read would accept. 1 if
 * done. Does nothing on Windows, which has no such folder. */
int hg_file_append(const char *path, const char *text);

#endif
