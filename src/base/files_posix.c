/* files_posix.c - files.h on Linux, macOS and other POSIX systems. */
#define _GNU_SOURCE
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static int is_directory(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int hg_directory_create(const char *path) {
  char part[HG_PATH_BYTES];
  size_t length = strlen(path);
  if (length == 0 || length >= sizeof part) return 0;
  if (is_directory(path)) return 1;
  memcpy(part, path, length + 1);
  for (size_t i = 1; i <= length; i++) {
    if (path[i] != '/' && path[i] != '\0') continue;
    part[i] = '\0';
    if (mkdir(part, S_IRWXU) != 0 && !is_directory(part)) return 0; /* another process may have been first */
    part[i] = path[i];
  }
  return 1;
}

static int is_writable_directory(const char *path) {
  return is_directory(path) && faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
}

int hg_directory_can_be_made(const char *path) {
  char part[HG_PATH_BYTES];
  struct stat info;
  size_t length = strlen(path);
  if (length == 0 || length >= sizeof part) return 0;
  memcpy(part, path, length + 1);
  for (size_t i = length; i > 0; i--) {
    if (path[i] != '/' && path[i] != '\0') continue;
    part[i] = '\0';
    if (lstat(part, &info) == 0) return is_writable_directory(part); /* a dangling link counts as existing */
    if (errno == ENAMETOOLONG) return 0;
  }
  return is_writable_directory(path[0] == '/' ? "/" : ".");
}

/* 1 if it belongs to this user or the superuser, who can do anything with this process anyway. */
static int is_own(const struct stat *info) { return info->st_uid == geteuid() || info->st_uid == 0; }

static int is_private(const struct stat *info) {
  if (!is_own(info) || (info->st_mode & S_IWOTH) != 0) return 0;
  return (info->st_mode & S_IWGRP) == 0 || (info->st_mode & S_ISVTX) != 0;
}

/* The user may have put the folder elsewhere and a link in its place. Nobody else may say where it is. */
static int is_link_of_others(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISLNK(info.st_mode) && !is_own(&info);
}

/* Why a path does not open. */
static hg_folder_state state_of_closed(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0) return HG_FOLDER_ABSENT;
  return S_ISDIR(info.st_mode) ? HG_FOLDER_UNREADABLE : HG_FOLDER_OTHER;
}

static hg_folder_state open_folder(const char *path, int *handle) {
  struct stat info;
  *handle = -1;
  if (is_link_of_others(path)) return HG_FOLDER_SHARED;
  *handle = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (*handle < 0) return state_of_closed(path);
  if (fstat(*handle, &info) != 0) return HG_FOLDER_SHARED;
  return is_private(&info) ? HG_FOLDER_PRIVATE : HG_FOLDER_SHARED;
}

hg_folder_state hg_folder_open(const char *path, hg_folder *folder) {
  folder->path = path;
  folder->state = open_folder(path, &folder->handle);
  return folder->state;
}

void hg_folder_close(hg_folder *folder) {
  if (folder->handle >= 0) close(folder->handle);
  folder->handle = -1;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static int64_t modified_ns(const struct stat *info) {
#ifdef __APPLE__
  const struct timespec *time = &info->st_mtimespec;
#else
  const struct timespec *time = &info->st_mtim;
#endif
  return (int64_t)time->tv_sec * 1000000000 + (int64_t)time->tv_nsec;
}

/* A second name may be one that others gave to a file of this user's whose bytes they chose. */
static int is_own_file(const struct stat *info) {
  return S_ISREG(info->st_mode) && is_own(info) && info->st_nlink <= 1 && (info->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static DIR *open_list(const hg_folder *folder) {
  int handle = openat(folder->handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = handle >= 0 ? fdopendir(handle) : NULL;
  if (list == NULL && handle >= 0) close(handle);
  return list;
}

int hg_folder_list(const hg_folder *folder, int (*visit)(void *user, const hg_file_info *file), void *user) {
  DIR *list = folder->handle >= 0 ? open_list(folder) : NULL;
  if (list == NULL) return 0;
  const struct dirent *entry;
  while ((entry = readdir(list)) != NULL) {
    struct stat info;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (fstatat(folder->handle, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    hg_file_info file = {entry->d_name, !is_own_file(&info), (uint64_t)info.st_size, modified_ns(&info)};
    if (!visit(user, &file)) break;
  }
  closedir(list);
  return 1;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Reads until `capacity` bytes or the end; -1 on failure. */
static ssize_t read_all(int file, uint8_t *bytes, size_t capacity) {
  size_t count = 0;
  while (count < capacity) {
    ssize_t got = read(file, bytes + count, capacity - count);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    count += (size_t)got;
  }
  return (ssize_t)count;
}

static hg_read_result read_whole(int file, const hg_allocator *allocator, uint64_t byte_count, uint8_t **bytes,
                                 size_t *count) {
  *bytes = hg_allocate(allocator, byte_count, 1);
  if (*bytes == NULL) return HG_READ_NO_MEMORY;
  ssize_t got = read_all(file, *bytes, (size_t)byte_count);
  *count = got > 0 ? (size_t)got : 0;
  if (got >= 0) return HG_READ_OK;
  hg_release(allocator, *bytes);
  *bytes = NULL;
  return HG_READ_FAILED;
}

/* Opened without waiting for the other end of a pipe of that name. */
enum { READING = O_RDONLY | O_CLOEXEC | O_NONBLOCK };

/* Closes the file. */
static hg_read_result read_open(int file, int only_own, const hg_allocator *allocator, uint64_t byte_limit,
                                uint8_t **bytes, size_t *byte_count) {
  struct stat info;
  hg_read_result result = HG_READ_FAILED;
  if (fstat(file, &info) == 0) {
    if (only_own ? !is_own_file(&info) : !S_ISREG(info.st_mode)) result = HG_READ_REFUSED;
    else if ((uint64_t)info.st_size <= byte_limit)
      result = read_whole(file, allocator, (uint64_t)info.st_size, bytes, byte_count);
  }
  close(file);
  return result;
}

hg_read_result hg_folder_read(const hg_folder *folder, const hg_allocator *allocator, const char *name,
                              uint64_t byte_limit, uint8_t **bytes, size_t *byte_count) {
  struct stat info;
  *bytes = NULL;
  *byte_count = 0;
  if (folder->handle < 0) return HG_READ_FAILED;
  int file = openat(folder->handle, name, READING | O_NOFOLLOW);
  if (file >= 0) return read_open(file, 1, allocator, byte_limit, bytes, byte_count);
  if (fstatat(folder->handle, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return HG_READ_FAILED;
  return is_own_file(&info) ? HG_READ_FAILED : HG_READ_REFUSED; /* a link, a socket, ... */
}

hg_read_result hg_file_read(const hg_allocator *allocator, const char *path, uint64_t byte_limit, uint8_t **bytes,
                            size_t *byte_count) {
  *bytes = NULL;
  *byte_count = 0;
  int file = open(path, READING);
  return file >= 0 ? read_open(file, 0, allocator, byte_limit, bytes, byte_count) : HG_READ_FAILED;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int write_all(int file, const uint8_t *bytes, size_t byte_count) {
  while (byte_count > 0) {
    ssize_t put = write(file, bytes, byte_count);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return 0;
    bytes += put;
    byte_count -= (size_t)put;
  }
  return 1;
}

/* The time is set explicitly, because the file system's own clock may stand still for milliseconds: uses in quick
 * succession would have the same time. */
static void time_now(struct timespec times[2]) {
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[1] = times[0];
}

enum { MODE_OF_OTHERS = 0666 /* what the process's mask leaves of it */, ACCESS_OF_ALL = 0777 };

static int create_at(int folder, mode_t mode, const char *temporary) {
  return openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
}

static int finish_at(int folder, int file, int ok, const char *temporary, const char *name) {
  struct timespec times[2];
  time_now(times);
  (void)futimens(file, times); /* where it cannot be set, the file system's will do */
  ok &= close(file) == 0; /* some file systems report a full disk only here */
  if (ok && renameat(folder, temporary, folder, name) == 0) return 1;
  unlinkat(folder, temporary, 0);
  return 0;
}

static int write_at(int folder, mode_t mode, const char *temporary, const char *name, const void *bytes,
                    size_t byte_count) {
  int file = create_at(folder, mode, temporary);
  return file >= 0 && finish_at(folder, file, write_all(file, bytes, byte_count), temporary, name);
}

int hg_folder_write(const hg_folder *folder, const char *temporary, const char *name, const void *bytes,
                    size_t byte_count) {
  return folder->handle >= 0 && write_at(folder->handle, S_IRUSR | S_IWUSR, temporary, name, bytes, byte_count);
}

int hg_file_write(const char *temporary, const char *path, const void *bytes, size_t byte_count) {
  return write_at(AT_FDCWD, MODE_OF_OTHERS, temporary, path, bytes, byte_count);
}

int hg_folder_touch(const hg_folder *folder, const char *name) {
  struct timespec times[2];
  time_now(times);
  return folder->handle >= 0 && utimensat(folder->handle, name, times, AT_SYMLINK_NOFOLLOW) == 0;
}

int hg_folder_remove(const hg_folder *folder, const char *name) {
  return folder->handle >= 0 && unlinkat(folder->handle, name, 0) == 0;
}

int hg_file_remove(const char *path) { return unlink(path) == 0; }

/* ---- parts ------------------------------------------------------------------------------------------------------- */

hg_read_result hg_file_open(const char *path, hg_file *file) {
  struct stat info;
  int handle = open(path, READING);
  if (handle < 0) return HG_READ_FAILED;
  *file = (hg_file){.handle = handle};
  hg_read_result result = fstat(handle, &info) != 0 ? HG_READ_FAILED : S_ISREG(info.st_mode) ? HG_READ_OK
                                                                                           : HG_READ_REFUSED;
  if (result == HG_READ_OK) file->byte_count = (uint64_t)info.st_size;
  else close(handle);
  return result;
}

int hg_file_next(const hg_file *file, uint8_t *bytes, size_t byte_count) {
  return read_all((int)file->handle, bytes, byte_count) == (ssize_t)byte_count;
}

void hg_file_close(const hg_file *file) { close((int)file->handle); }

int hg_is_separator(char c) { return c == '/'; }

/* The new file may do what the old one may; to its group nothing where that is another one. */
static int keep_access(int handle, const struct stat *old) {
  struct stat own;
  mode_t mode = old->st_mode & ACCESS_OF_ALL;
  if (fstat(handle, &own) != 0) return 0;
  int is_same = own.st_uid == old->st_uid && own.st_gid == old->st_gid;
  if (!is_same && fchown(handle, old->st_uid, old->st_gid) != 0) mode &= ~(mode_t)S_IRWXG;
  return fchmod(handle, mode) == 0;
}

int hg_file_create(char *temporary, const char *path, hg_file *file) {
  struct stat old;
  int is_there = lstat(path, &old) == 0, is_itself = is_there && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode);
  if (is_itself) temporary[0] = '\0';
  int handle = is_itself ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, MODE_OF_OTHERS)
                         : create_at(AT_FDCWD, is_there ? S_IRUSR | S_IWUSR : MODE_OF_OTHERS, temporary);
  *file = (hg_file){.handle = handle};
  if (handle < 0 || is_itself || !is_there || keep_access(handle, &old)) return handle >= 0;
  close(handle);
  unlink(temporary);
  return 0;
}

int hg_file_put(const hg_file *file, const void *bytes, size_t byte_count) {
  return write_all((int)file->handle, bytes, byte_count);
}

int hg_file_finish(const hg_file *file, int is_good, const char *temporary, const char *path) {
  if (temporary[0] == '\0') return (close((int)file->handle) == 0) & is_good;
  return finish_at(AT_FDCWD, (int)file->handle, is_good, temporary, path);
}

/* ---- appending --------------------------------------------------------------------------------------------------- */

int hg_file_append(const char *path, const char *text) {
  struct stat info;
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return 0;
  int ok = fstat(file, &info) == 0 && is_own_file(&info) &&
           write_all(file, (const uint8_t *)text, strlen(text));
  return (close(file) == 0) & ok;
}
