/* os_posix.c - os.h on Linux, macOS and other POSIX systems. */
#define _GNU_SOURCE
#include "base/os.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#  include <sched.h>
#endif
#ifdef __APPLE__
#  include <sys/sysctl.h>
#endif

static_assert(sizeof(pthread_mutex_t) <= sizeof(hg_mutex), "hg_mutex is too small for pthread_mutex_t");

static pthread_mutex_t *native(hg_mutex *mutex) { return (pthread_mutex_t *)(void *)&mutex->storage; }

int hg_mutex_init(hg_mutex *mutex) { return pthread_mutex_init(native(mutex), NULL); }
void hg_mutex_destroy(hg_mutex *mutex) { pthread_mutex_destroy(native(mutex)); }
void hg_mutex_lock(hg_mutex *mutex) { pthread_mutex_lock(native(mutex)); }
void hg_mutex_unlock(hg_mutex *mutex) { pthread_mutex_unlock(native(mutex)); }

uint64_t hg_time_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint32_t hg_hardware_threads(void) {
#ifdef __linux__
  cpu_set_t set; /* the affinity mask, so that a container's or taskset's limit counts */
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    int count = CPU_COUNT(&set);
    if (count > 0) return (uint32_t)count;
  }
#endif
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint32_t)online : 1;
}

uint64_t hg_physical_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
}

void hg_cpu_name(char *name, size_t name_bytes) {
  snprintf(name, name_bytes, "CPU");
#if defined(__APPLE__)
  size_t length = name_bytes;
  if (sysctlbyname("machdep.cpu.brand_string", name, &length, NULL, 0) != 0) snprintf(name, name_bytes, "CPU");
#elif defined(__linux__)
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (file == NULL) return;
  char line[256];
  while (fgets(line, sizeof line, file) != NULL) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
    char *first = colon + 1 + strspn(colon + 1, " \t");
    first[strcspn(first, "\n")] = '\0';
    if (first[0] != '\0') snprintf(name, name_bytes, "%s", first);
    break;
  }
  fclose(file);
#endif
}

/* ---- environment and folders ------------------------------------------------------------------------------------- */

uint64_t hg_process_id(void) { return (uint64_t)getpid(); }

int hg_environment(const char *name, char *value, size_t value_bytes) {
  const char *found = getenv(name);
  size_t length = found != NULL ? strlen(found) : 0;
  if (length >= value_bytes) length = 0;
  if (length > 0) memcpy(value, found, length);
  value[length] = '\0';
  return length > 0;
}

/* The XDG base directory specification: a relative XDG_CACHE_HOME counts as not set. */
int hg_user_cache_folder(const char *application, char *path, size_t path_bytes) {
  char base[HG_PATH_BYTES];
  const char *below = "";
  if (!hg_environment("XDG_CACHE_HOME", base, sizeof base) || base[0] != '/') {
    if (!hg_environment("HOME", base, sizeof base)) return 0;
    below = "/.cache";
  }
  int length = snprintf(path, path_bytes, "%s%s/%s", base, below, application);
  return length > 0 && (size_t)length < path_bytes;
}

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

hg_directory_state hg_directory_check(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return HG_DIRECTORY_ABSENT;
  if ((info.st_uid != geteuid() && info.st_uid != 0) || (info.st_mode & S_IWOTH) != 0) return HG_DIRECTORY_OPEN;
  return HG_DIRECTORY_PRIVATE;
}

static int64_t modified_ns(const struct stat *info) {
#ifdef __APPLE__
  const struct timespec *time = &info->st_mtimespec;
#else
  const struct timespec *time = &info->st_mtim;
#endif
  return (int64_t)time->tv_sec * 1000000000 + (int64_t)time->tv_nsec;
}

int hg_directory_list(const char *path, int (*visit)(void *user, const hg_file_info *file), void *user) {
  DIR *directory = opendir(path);
  if (directory == NULL) return 0;
  const struct dirent *entry;
  while ((entry = readdir(directory)) != NULL) {
    struct stat info;
    if (fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) continue;
    hg_file_info file = {entry->d_name, (uint64_t)info.st_size, modified_ns(&info)};
    if (!visit(user, &file)) break;
  }
  closedir(directory);
  return 1;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

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

hg_read_result hg_file_read(const hg_allocator *allocator, const char *path, uint64_t byte_limit, uint8_t **bytes,
                            size_t *byte_count) {
  *bytes = NULL;
  *byte_count = 0;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe of that name must not block */
  if (file < 0) return HG_READ_FAILED;
  struct stat info;
  hg_read_result result = HG_READ_FAILED;
  if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size <= byte_limit) {
    *bytes = hg_allocate(allocator, (uint64_t)info.st_size, 1);
    ssize_t count = *bytes != NULL ? read_all(file, *bytes, (size_t)info.st_size) : 0;
    *byte_count = count > 0 ? (size_t)count : 0;
    result = *bytes == NULL ? HG_READ_NO_MEMORY : count < 0 ? HG_READ_FAILED : HG_READ_OK;
  }
  close(file);
  if (result == HG_READ_OK) return HG_READ_OK;
  hg_release(allocator, *bytes);
  *bytes = NULL;
  return result;
}

/* The time is given rather than left to the file system, whose own clock may stand still for milliseconds: uses in
 * quick succession would look like one. */
static void time_now(struct timespec times[2]) {
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[1] = times[0];
}

int hg_file_write(const char *temporary, const char *path, const void *bytes, size_t byte_count) {
  int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return 0;
  struct timespec times[2];
  time_now(times);
  int ok = write_all(file, bytes, byte_count);
  (void)futimens(file, times); /* where it cannot be set, the file system's will do */
  ok &= close(file) == 0; /* some file systems report a full disk only here */
  if (ok && rename(temporary, path) == 0) return 1;
  unlink(temporary);
  return 0;
}

int hg_file_touch(const char *path) {
  struct timespec times[2];
  time_now(times);
  return utimensat(AT_FDCWD, path, times, 0) == 0;
}

int hg_file_remove(const char *path) { return unlink(path) == 0; }
