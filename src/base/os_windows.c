/* os_windows.c - os.h on Windows. */
#define WIN32_LEAN_AND_MEAN
#include "base/os.h"

#include <assert.h>
#include <stdio.h>
#include <windows.h>

static_assert(sizeof(SRWLOCK) <= sizeof(hg_mutex), "hg_mutex is too small for SRWLOCK");

static SRWLOCK *native(hg_mutex *mutex) { return (SRWLOCK *)(void *)&mutex->storage; }

int hg_mutex_init(hg_mutex *mutex) {
  InitializeSRWLock(native(mutex));
  return 0;
}
void hg_mutex_destroy(hg_mutex *mutex) { (void)mutex; }
void hg_mutex_lock(hg_mutex *mutex) { AcquireSRWLockExclusive(native(mutex)); }
void hg_mutex_unlock(hg_mutex *mutex) { ReleaseSRWLockExclusive(native(mutex)); }

uint64_t hg_time_ns(void) {
  LARGE_INTEGER ticks, frequency;
  QueryPerformanceCounter(&ticks);
  QueryPerformanceFrequency(&frequency);
  uint64_t seconds = (uint64_t)(ticks.QuadPart / frequency.QuadPart);
  uint64_t rest = (uint64_t)(ticks.QuadPart % frequency.QuadPart);
  return seconds * 1000000000u + rest * 1000000000u / (uint64_t)frequency.QuadPart;
}

uint32_t hg_hardware_threads(void) {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwNumberOfProcessors > 0 ? info.dwNumberOfProcessors : 1;
}

uint64_t hg_physical_memory(void) {
  MEMORYSTATUSEX status = {.dwLength = sizeof status};
  return GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : 0;
}

void hg_cpu_name(char *name, size_t name_bytes) {
  DWORD length = (DWORD)name_bytes;
  if (RegGetValueA(HKEY_LOCAL_MACHINE, "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", "ProcessorNameString",
                   RRF_RT_REG_SZ, NULL, name, &length) != ERROR_SUCCESS)
    snprintf(name, name_bytes, "CPU");
}
