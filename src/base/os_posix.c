/* os_posix.c - os.h on Linux, macOS and other POSIX systems. */
#define _GNU_SOURCE
#include "base/os.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
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
