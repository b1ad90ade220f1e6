/* os_windows.c - os.h on Windows. */
#define WIN32_LEAN_AND_MEAN
#include "base/os.h"

#include "base/utf16.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

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

void hg_sleep(uint64_t nanoseconds) { Sleep((DWORD)((nanoseconds + 999999) / 1000000)); }

uint32_t hg_hardware_threads(void) {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwNumberOfProcessors > 0 ? info.dwNumberOfProcessors : 1;
}

uint64_t hg_last_level_cache(void) { return 0; }

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

/* ---- shared libraries -------------------------------------------------------------------------------------------- */

void *hg_library_open(const char *name, const char *windows_name) {
  (void)name;
  return LoadLibraryExA(windows_name, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
}

void *hg_library_open_file(const char *path) {
  WCHAR wide[HG_PATH_BYTES];
  if (!hg_widen(path, wide, HG_PATH_BYTES)) return NULL;
  return LoadLibraryExW(wide, NULL, LOAD_WITH_ALTERED_SEARCH_PATH); /* what it needs may lie beside it */
}

void hg_library_find(void *library, const char *function_name, void *function) {
  FARPROC address = GetProcAddress(library, function_name);
  memcpy(function, &address, sizeof address);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { STACK_BYTES = 1 << 20 };

static DWORD WINAPI run_thread(void *thread) {
  hg_thread *self = thread;
  self->run(self->user);
  return 0;
}

int hg_thread_start(hg_thread *thread, void (*run)(void *user), void *user) {
  *thread = (hg_thread){.run = run, .user = user};
  thread->storage.pointer =
      CreateThread(NULL, STACK_BYTES, run_thread, thread, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
  return thread->storage.pointer == NULL;
}

void hg_thread_join(hg_thread *thread) {
  WaitForSingleObject(thread->storage.pointer, INFINITE);
  CloseHandle(thread->storage.pointer);
}

uint32_t hg_current_cpu(void) { return HG_NO_CPU; }
void hg_leave_cpu(uint32_t cpu) { (void)cpu; }
int hg_thread_keep_off(hg_thread *thread, uint32_t cpu) { return (void)thread, (void)cpu, 0; }
void hg_allow_cpu(uint32_t cpu) { (void)cpu; }

/* One condition variable for all words: WaitOnAddress would need a further library. */
static SRWLOCK sleepers_lock = SRWLOCK_INIT;
static CONDITION_VARIABLE sleepers = CONDITION_VARIABLE_INIT;

void hg_wait(atomic_uint *word, uint32_t value) {
  AcquireSRWLockExclusive(&sleepers_lock);
  if (atomic_load(word) == value) SleepConditionVariableSRW(&sleepers, &sleepers_lock, INFINITE, 0);
  ReleaseSRWLockExclusive(&sleepers_lock);
}

void hg_wake(atomic_uint *word) {
  (void)word;
  AcquireSRWLockExclusive(&sleepers_lock);
  WakeAllConditionVariable(&sleepers);
  ReleaseSRWLockExclusive(&sleepers_lock);
}

/* Windows forks no processes, and ends all other threads before it tells a library that the process exits. Threads
 * cannot be joined while it unloads one, so the library stays loaded from now on. */
int hg_on_fork_and_exit(void (*in_child)(void), void (*at_exit)(void)) {
  HMODULE self;
  (void)in_child;
  (void)at_exit;
  return !GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                             (LPCWSTR)(const void *)&sleepers_lock, &self);
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

/* Large pages need a privilege here, so these are small ones. */
int hg_pages_map(uint64_t byte_count, hg_pages *pages) {
  uint64_t mapped_bytes = byte_count + HG_HUGE_PAGE_BYTES;
  if (mapped_bytes > SIZE_MAX / 2) return 0;
  uint8_t *mapping = VirtualAlloc(NULL, (size_t)mapped_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (mapping == NULL) return 0;
  uint8_t *first = mapping + (-(uintptr_t)mapping & (HG_HUGE_PAGE_BYTES - 1));
  *pages = (hg_pages){first, byte_count, mapping, mapped_bytes};
  return 1;
}

void hg_pages_unmap(const hg_pages *pages) { VirtualFree(pages->mapping, 0, MEM_RELEASE); }

/* ---- environment ------------------------------------------------------------------------------------------------- */

uint64_t hg_process_id(void) { return GetCurrentProcessId(); }

int hg_environment(const char *name, char *value, size_t value_bytes) {
  WCHAR wide_name[128], wide[HG_PATH_BYTES];
  value[0] = '\0';
  if (!hg_widen(name, wide_name, 128)) return 0;
  DWORD length = GetEnvironmentVariableW(wide_name, wide, HG_PATH_BYTES);
  if (length == 0 || length >= HG_PATH_BYTES) return 0;
  if (hg_narrow(wide, value, (int)value_bytes)) return 1;
  value[0] = '\0';
  return 0;
}

int hg_environment_is_set(const char *name) {
  WCHAR wide_name[128];
  return hg_widen(name, wide_name, 128) && GetEnvironmentVariableW(wide_name, NULL, 0) > 1; /* counts the NUL */
}

int hg_environment_trusted(const char *name, char *value, size_t value_bytes) {
  return hg_environment(name, value, value_bytes); /* no program has its owner's rights here */
}

int hg_user_cache_folder(const char *application, char *path, size_t path_bytes) {
  char base[HG_PATH_BYTES];
  if (!hg_environment("LOCALAPPDATA", base, sizeof base)) return 0;
  int length = snprintf(path, path_bytes, "%s\\%s\\cache", base, application);
  return length > 0 && (size_t)length < path_bytes;
}
