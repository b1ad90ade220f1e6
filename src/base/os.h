/* os.h - everything the core needs from the operating system beyond ISO C11. One implementation a system: os_posix.c,
 * os_windows.c. */
#ifndef HG_BASE_OS_H
#define HG_BASE_OS_H

#include "base/memory.h"

#include <stdatomic.h>
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
uint64_t hg_physical_memory(void);                 /* bytes that this process may use; 0 if not known */
uint64_t hg_last_level_cache(void);                /* bytes; 0 if not known */
void hg_cpu_name(char *name, size_t name_bytes);   /* "AMD EPYC"; "CPU" if not known */

/* ---- shared libraries -------------------------------------------------------------------------------------------- */

/* Loads a library that the system knows by `name` (Linux, macOS) or `windows_name`; NULL if it cannot be loaded. On
 * Windows only the system's own folder is searched. The library stays loaded until the process ends, since a driver may
 * have started threads that run its code. */
void *hg_library_open(const char *name, const char *windows_name);
/* Loads the library at a path, which is UTF-8 on Windows, likewise. */
void *hg_library_open_file(const char *path);
/* Writes the address of a function to *function, a function pointer of any type; NULL where there is none. */
void hg_library_find(void *library, const char *function_name, void *function);

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* A thread; the struct must not move in memory until the thread is joined. */
typedef struct hg_thread {
  void (*run)(void *user);
  void *user;
  union { /* room for pthread_t or HANDLE */
    void *pointer;
    uint64_t word;
  } storage;
} hg_thread;

/* 0 on success. The thread takes no signals and has a stack of 1 MiB. */
int hg_thread_start(hg_thread *thread, void (*run)(void *user), void *user);
void hg_thread_join(hg_thread *thread);

/* A futex: sleeps while *word is `value`; may also return spuriously. hg_wake wakes all threads that sleep on `word`,
 * after it was changed. */
void hg_wait(atomic_uint *word, uint32_t value);
void hg_wake(atomic_uint *word);

/* Sleeps; a signal may end it early. */
void hg_sleep(uint64_t nanoseconds);

/* The CPU that runs this thread now; HG_NO_CPU where the system does not say. hg_leave_cpu moves this thread to another
 * CPU, if it may run on one. */
#define HG_NO_CPU UINT32_MAX
uint32_t hg_current_cpu(void);
void hg_leave_cpu(uint32_t cpu);
/* Removes a CPU from the affinity mask of a sleeping thread, until that thread calls hg_allow_cpu. 1: done; 0: the
 * thread may run on this CPU only, or never could, or the system has no affinity masks. */
int hg_thread_keep_off(hg_thread *thread, uint32_t cpu);
void hg_allow_cpu(uint32_t cpu);

/* Registers `in_child`, called in every process that is forked off from now on, and `at_exit`, called when this process
 * exits or unloads the library. 0 on success; with another result one of the two may not be registered. */
int hg_on_fork_and_exit(void (*in_child)(void), void (*at_exit)(void));

/* For loops that wait for another thread. */
static inline void hg_spin_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  __asm__ volatile("isb" : : : "memory"); /* `yield` does nothing on most cores */
#endif
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

enum { HG_HUGE_PAGE_BYTES = 2 << 20 };

/* Memory mapped from the system. */
typedef struct hg_pages {
  uint8_t *first;      /* a multiple of HG_HUGE_PAGE_BYTES */
  uint64_t byte_count; /* from there on */
  void *mapping;       /* what the system gave, and how much of it: `first` may lie within */
  uint64_t mapped_bytes;
} hg_pages;

/* byte_count bytes that read as zero, in huge pages where the system has them. 0 where there is no such memory. */
int hg_pages_map(uint64_t byte_count, hg_pages *pages);
void hg_pages_unmap(const hg_pages *pages);

/* ---- environment ------------------------------------------------------------------------------------------------- */

enum { HG_PATH_BYTES = 4096 }; /* room for any path, with its NUL; "/" separates folders everywhere */

uint64_t hg_process_id(void);

/* Copies an environment variable. 1 if it is set and not empty; otherwise, or where it does not fit, `value` is "" and
 * the result 0. */
int hg_environment(const char *name, char *value, size_t value_bytes);
/* 1 if a variable is set and not empty, however long: where hg_environment returned 0, it did not fit. */
int hg_environment_is_set(const char *name);
/* hg_environment for a variable that makes the process run code: it counts as not set where the process has more rights
 * than the user who started it (set-user-ID). */
int hg_environment_trusted(const char *name, char *value, size_t value_bytes);

/* The folder for this user's caches, followed by the application's name; 0 where there is none, or where the process
 * has more rights than the user who started it. */
int hg_user_cache_folder(const char *application, char *path, size_t path_bytes);

#endif
