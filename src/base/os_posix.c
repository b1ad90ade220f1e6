/* os_posix.c - os.h on Linux, macOS and other POSIX systems. */
#define _GNU_SOURCE
#include "base/os.h"

#include <assert.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#  include "base/cgroup.h"
#  include <linux/futex.h>
#  include <sched.h>
#  include <sys/syscall.h>
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

void hg_sleep(uint64_t nanoseconds) {
  struct timespec time = {.tv_sec = (time_t)(nanoseconds / 1000000000u), .tv_nsec = (long)(nanoseconds % 1000000000u)};
  (void)nanosleep(&time, NULL);
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

static uint32_t cpus_of_process(void) {
#ifdef __linux__
  cpu_set_t set; /* the affinity mask, so that taskset's limit counts; a larger machine than it has room for: below */
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    int count = CPU_COUNT(&set);
    if (count > 0) return (uint32_t)count;
  }
#endif
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint32_t)online : 1;
}

uint32_t hg_hardware_threads(void) {
  uint32_t count = cpus_of_process();
#ifdef __linux__
  uint64_t quota = hg_cgroup_threads("/proc/self/cgroup", "/sys/fs/cgroup");
  if (quota < count) count = quota > 0 ? (uint32_t)quota : 1;
#endif
  return count;
}

uint64_t hg_physical_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  uint64_t byte_count = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
#ifdef __linux__
  uint64_t limit = hg_cgroup_memory("/proc/self/cgroup", "/sys/fs/cgroup");
  if (limit < byte_count) byte_count = limit;
#endif
  return byte_count;
}

#ifdef __linux__
/* From the kernel, which knows which cores share a cache; C libraries may add up the caches of a socket. Caches are
 * numbered in ascending levels. */
uint64_t hg_last_level_cache(void) {
  for (int index = 4; index >= 0; index--) {
    char path[80];
    unsigned long long kilobytes = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    FILE *file = fopen(path, "r");
    if (file == NULL) continue;
    int found = fscanf(file, "%lluK", &kilobytes) == 1;
    fclose(file);
    if (found) return (uint64_t)kilobytes << 10;
  }
  return 0;
}
#elif defined(__APPLE__)
uint64_t hg_last_level_cache(void) {
  static const char *const names[] = {"hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    uint64_t byte_count = 0;
    size_t length = sizeof byte_count;
    if (sysctlbyname(names[i], &byte_count, &length, NULL, 0) == 0 && byte_count > 0) return byte_count;
  }
  return 0;
}
#else
uint64_t hg_last_level_cache(void) { return 0; }
#endif

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

/* ---- shared libraries -------------------------------------------------------------------------------------------- */

void *hg_library_open_file(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

void *hg_library_open(const char *name, const char *windows_name) {
  (void)windows_name;
  return hg_library_open_file(name);
}

/* POSIX, not C, says that the address of a function fits a void *: so its bytes are copied. */
void hg_library_find(void *library, const char *function_name, void *function) {
  void *address = dlsym(library, function_name);
  memcpy(function, &address, sizeof address);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { STACK_BYTES = 1 << 20 };
static_assert(sizeof(pthread_t) <= sizeof((hg_thread){0}.storage), "hg_thread is too small for pthread_t");

static void *run_thread(void *thread) {
  hg_thread *self = thread;
#ifdef __linux__
  pthread_setname_np(pthread_self(), "hologram");
#endif
  self->run(self->user);
  return NULL;
}

/* Signals are blocked in the creator first: a new thread inherits its mask. */
int hg_thread_start(hg_thread *thread, void (*run)(void *user), void *user) {
  pthread_attr_t attributes;
  pthread_t handle;
  sigset_t all, callers;
  *thread = (hg_thread){.run = run, .user = user};
  if (pthread_attr_init(&attributes) != 0) return 1;
  sigfillset(&all);
  int failed =
      pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0 || pthread_sigmask(SIG_SETMASK, &all, &callers) != 0;
  if (!failed) {
    failed = pthread_create(&handle, &attributes, run_thread, thread) != 0;
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
  }
  pthread_attr_destroy(&attributes);
  if (!failed) memcpy(&thread->storage, &handle, sizeof handle);
  return failed;
}

void hg_thread_join(hg_thread *thread) {
  pthread_t handle;
  memcpy(&handle, &thread->storage, sizeof handle);
  pthread_join(handle, NULL);
}

#ifdef __linux__
uint32_t hg_current_cpu(void) {
  int cpu = sched_getcpu();
  return cpu >= 0 ? (uint32_t)cpu : HG_NO_CPU;
}

void hg_leave_cpu(uint32_t cpu) {
  cpu_set_t allowed, others;
  if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  others = allowed;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
    (void)sched_setaffinity(0, sizeof allowed, &allowed); /* has moved; may be moved again */
}

int hg_thread_keep_off(hg_thread *thread, uint32_t cpu) {
  pthread_t handle;
  cpu_set_t allowed;
  memcpy(&handle, &thread->storage, sizeof handle);
  if (cpu >= CPU_SETSIZE || pthread_getaffinity_np(handle, sizeof allowed, &allowed) != 0) return 0;
  if (!CPU_ISSET(cpu, &allowed) || CPU_COUNT(&allowed) == 1) return 0;
  CPU_CLR(cpu, &allowed);
  return pthread_setaffinity_np(handle, sizeof allowed, &allowed) == 0;
}

void hg_allow_cpu(uint32_t cpu) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_SET(cpu, &allowed);
  (void)sched_setaffinity(0, sizeof allowed, &allowed);
}

void hg_wait(atomic_uint *word, uint32_t value) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0); }
void hg_wake(atomic_uint *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }
#else
uint32_t hg_current_cpu(void) { return HG_NO_CPU; }
void hg_leave_cpu(uint32_t cpu) { (void)cpu; }
int hg_thread_keep_off(hg_thread *thread, uint32_t cpu) { return (void)thread, (void)cpu, 0; }
void hg_allow_cpu(uint32_t cpu) { (void)cpu; }

/* One condition variable for all words. A child of fork has no sleeping threads, and a mutex that nobody would unlock.
 */
static pthread_mutex_t sleepers_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sleepers = PTHREAD_COND_INITIALIZER;

void hg_wait(atomic_uint *word, uint32_t value) {
  pthread_mutex_lock(&sleepers_mutex);
  if (atomic_load(word) == value) pthread_cond_wait(&sleepers, &sleepers_mutex);
  pthread_mutex_unlock(&sleepers_mutex);
}

void hg_wake(atomic_uint *word) {
  (void)word;
  pthread_mutex_lock(&sleepers_mutex);
  pthread_cond_broadcast(&sleepers);
  pthread_mutex_unlock(&sleepers_mutex);
}

static void forget_sleepers(void) {
  sleepers_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  sleepers = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}
#endif

int hg_on_fork_and_exit(void (*in_child)(void), void (*at_exit)(void)) {
#ifndef __linux__
  if (pthread_atfork(NULL, NULL, forget_sleepers) != 0) return 1;
#endif
  return pthread_atfork(NULL, NULL, in_child) != 0 || atexit(at_exit) != 0;
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

static uint8_t *map_pages(uint64_t byte_count) {
  if (byte_count > SIZE_MAX / 2) return NULL;
  void *memory = mmap(NULL, (size_t)byte_count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory != MAP_FAILED ? memory : NULL;
}

/* Newer kernels align large mappings by themselves; elsewhere a second, larger mapping contains an aligned range. Pages
 * that are never touched take no memory. */
int hg_pages_map(uint64_t byte_count, hg_pages *pages) {
  uint64_t mapped_bytes = byte_count;
  uint8_t *mapping = map_pages(mapped_bytes);
  if (mapping != NULL && (uintptr_t)mapping % HG_HUGE_PAGE_BYTES != 0) {
    munmap(mapping, (size_t)mapped_bytes);
    mapped_bytes += HG_HUGE_PAGE_BYTES;
    mapping = map_pages(mapped_bytes);
  }
  if (mapping == NULL) return 0;
  uint8_t *first = mapping + (-(uintptr_t)mapping & (HG_HUGE_PAGE_BYTES - 1));
#ifdef MADV_HUGEPAGE
  (void)madvise(first, (size_t)byte_count, MADV_HUGEPAGE); /* small pages will do, slower */
#endif
  *pages = (hg_pages){first, byte_count, mapping, mapped_bytes};
  return 1;
}

void hg_pages_unmap(const hg_pages *pages) { munmap(pages->mapping, (size_t)pages->mapped_bytes); }

/* ---- environment ------------------------------------------------------------------------------------------------- */

/* A cache of the process id, because a system call would be a fair part of the time of a launch; 0: not known, as after
 * a fork. As with the worker threads, one of the few mutable globals the design allows. */
static _Atomic uint64_t own_process;
static atomic_int forks_are_noticed;

static void forget_process(void) { atomic_store(&own_process, 0); }

uint64_t hg_process_id(void) {
  uint64_t known = atomic_load_explicit(&own_process, memory_order_relaxed);
  if (known != 0) return known;
  uint64_t id = (uint64_t)getpid();
  if (!atomic_load(&forks_are_noticed) && pthread_atfork(NULL, NULL, forget_process) == 0)
    atomic_store(&forks_are_noticed, 1); /* two threads that register at once both reset it in a child */
  if (atomic_load(&forks_are_noticed)) atomic_store(&own_process, id);
  return id;
}

static int copy_value(const char *found, char *value, size_t value_bytes) {
  size_t length = found != NULL ? strlen(found) : 0;
  if (length >= value_bytes) length = 0;
  if (length > 0) memcpy(value, found, length);
  value[length] = '\0';
  return length > 0;
}

int hg_environment(const char *name, char *value, size_t value_bytes) {
  return copy_value(getenv(name), value, value_bytes);
}

int hg_environment_is_set(const char *name) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0';
}

int hg_environment_trusted(const char *name, char *value, size_t value_bytes) {
#ifdef __linux__
  return copy_value(secure_getenv(name), value, value_bytes);
#else
  return copy_value(issetugid() ? NULL : getenv(name), value, value_bytes);
#endif
}

/* The XDG base directory specification: a relative XDG_CACHE_HOME counts as not set. */
int hg_user_cache_folder(const char *application, char *path, size_t path_bytes) {
  char base[HG_PATH_BYTES];
  const char *below = "";
  int given = hg_environment_trusted("XDG_CACHE_HOME", base, sizeof base);
  if (!given && hg_environment_is_set("XDG_CACHE_HOME")) return 0; /* too long: not replaced by the default */
  if (!given || base[0] != '/') {
    if (!hg_environment_trusted("HOME", base, sizeof base)) return 0;
    below = "/.cache";
  }
  int length = snprintf(path, path_bytes, "%s%s/%s", base, below, application);
  return length > 0 && (size_t)length < path_bytes;
}
