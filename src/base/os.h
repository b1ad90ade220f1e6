/* os.h - everything the core needs from the operating system beyond ISO C11. Implemented once a system: os_posix.c,
 * os_windows.c. */
#ifndef HG_BASE_OS_H
#define HG_BASE_OS_H

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

#endif
