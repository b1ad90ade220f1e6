/* os_windows.c - os.h on Windows. */
#define WIN32_LEAN_AND_MEAN
#include "base/os.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
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

/* ---- paths ------------------------------------------------------------------------------------------------------- */

/* UTF-8 to UTF-16 and back; 0 where the text does not fit. */
static int widen(const char *text, WCHAR *wide, int capacity) {
  return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, capacity) > 0;
}
static int narrow(const WCHAR *wide, char *text, int capacity) {
  return WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, text, capacity, NULL, NULL) > 0;
}

/* ---- shared libraries -------------------------------------------------------------------------------------------- */

void *hg_library_open(const char *name, const char *windows_name) {
  (void)name;
  return LoadLibraryExA(windows_name, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
}

void *hg_library_open_file(const char *path) {
  WCHAR wide[HG_PATH_BYTES];
  if (!widen(path, wide, HG_PATH_BYTES)) return NULL;
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

/* ---- environment and folders ------------------------------------------------------------------------------------- */

uint64_t hg_process_id(void) { return GetCurrentProcessId(); }

int hg_environment(const char *name, char *value, size_t value_bytes) {
  WCHAR wide_name[128], wide[HG_PATH_BYTES];
  value[0] = '\0';
  if (!widen(name, wide_name, 128)) return 0;
  DWORD length = GetEnvironmentVariableW(wide_name, wide, HG_PATH_BYTES);
  if (length == 0 || length >= HG_PATH_BYTES) return 0;
  if (narrow(wide, value, (int)value_bytes)) return 1;
  value[0] = '\0';
  return 0;
}

int hg_environment_is_set(const char *name) {
  WCHAR wide_name[128];
  return widen(name, wide_name, 128) && GetEnvironmentVariableW(wide_name, NULL, 0) > 1; /* counts the NUL */
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

static int is_directory(const WCHAR *path) {
  DWORD attributes = GetFileAttributesW(path);
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

/* A new folder inherits its access rights; folders below %LOCALAPPDATA% are private to the user. */
int hg_directory_create(const char *path) {
  WCHAR wide[HG_PATH_BYTES];
  if (path[0] == '\0' || !widen(path, wide, HG_PATH_BYTES)) return 0;
  if (is_directory(wide)) return 1;
  for (size_t i = 1;; i++) {
    WCHAR c = wide[i];
    if (c != L'/' && c != L'\\' && c != L'\0') continue;
    wide[i] = L'\0';
    int made = CreateDirectoryW(wide, NULL) || is_directory(wide); /* another process may have been first */
    wide[i] = c;
    if (c == L'\0') return made; /* above it, a drive or a share cannot be made, and need not be */
  }
}

hg_directory_state hg_directory_check(const char *path) {
  WCHAR wide[HG_PATH_BYTES];
  if (!widen(path, wide, HG_PATH_BYTES) || GetFileAttributesW(wide) == INVALID_FILE_ATTRIBUTES)
    return HG_DIRECTORY_ABSENT;
  return is_directory(wide) ? HG_DIRECTORY_PRIVATE : HG_DIRECTORY_OTHER;
}

int hg_directory_can_be_made(const char *path) {
  WCHAR wide[HG_PATH_BYTES];
  if (path[0] == '\0' || !widen(path, wide, HG_PATH_BYTES)) return 0;
  for (size_t i = wcslen(wide); i-- > 1;) {
    if (wide[i] != L'/' && wide[i] != L'\\') continue;
    wide[i] = L'\0';
    if (GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES) return is_directory(wide);
  }
  return 1;
}

/* FILETIME counts 100 ns since 1601. */
static int64_t unix_ns(FILETIME time) {
  uint64_t ticks = (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
  return ((int64_t)ticks - INT64_C(116444736000000000)) * 100;
}

int hg_directory_list(const char *path, int (*visit)(void *user, const hg_file_info *file), void *user) {
  char pattern[HG_PATH_BYTES], name[3 * MAX_PATH + 1];
  WCHAR wide[HG_PATH_BYTES];
  WIN32_FIND_DATAW found;
  int length = snprintf(pattern, sizeof pattern, "%s/*", path);
  if (length < 0 || length >= HG_PATH_BYTES || !widen(pattern, wide, HG_PATH_BYTES)) return 0;
  HANDLE search = FindFirstFileW(wide, &found);
  if (search == INVALID_HANDLE_VALUE) return 0;
  do {
    if ((found.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT)) != 0) continue;
    if (!narrow(found.cFileName, name, (int)sizeof name)) continue;
    uint64_t byte_count = (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow;
    hg_file_info file = {name, byte_count, unix_ns(found.ftLastWriteTime)};
    if (!visit(user, &file)) break;
  } while (FindNextFileW(search, &found));
  FindClose(search);
  return 1;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static HANDLE open_file(const char *path, DWORD access, DWORD disposition) {
  WCHAR wide[HG_PATH_BYTES];
  if (!widen(path, wide, HG_PATH_BYTES)) return INVALID_HANDLE_VALUE;
  return CreateFileW(wide, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, disposition,
                     FILE_ATTRIBUTE_NORMAL, NULL);
}

/* Reads until `capacity` bytes or the end; 0 on failure. A piece is at most 1 GiB, because a DWORD counts it. */
static int read_all(HANDLE file, uint8_t *bytes, size_t capacity, size_t *count) {
  for (*count = 0; *count < capacity;) {
    size_t wanted = capacity - *count;
    DWORD got = 0;
    if (!ReadFile(file, bytes + *count, wanted < 1u << 30 ? (DWORD)wanted : 1u << 30, &got, NULL)) return 0;
    if (got == 0) break;
    *count += got;
  }
  return 1;
}

static int write_all(HANDLE file, const uint8_t *bytes, size_t byte_count) {
  while (byte_count > 0) {
    DWORD put = 0;
    if (!WriteFile(file, bytes, byte_count < 1u << 30 ? (DWORD)byte_count : 1u << 30, &put, NULL) || put == 0) return 0;
    bytes += put;
    byte_count -= put;
  }
  return 1;
}

hg_read_result hg_file_read(const hg_allocator *allocator, const char *path, uint64_t byte_limit, uint8_t **bytes,
                            size_t *byte_count) {
  *bytes = NULL;
  *byte_count = 0;
  HANDLE file = open_file(path, GENERIC_READ, OPEN_EXISTING);
  if (file == INVALID_HANDLE_VALUE) return HG_READ_FAILED;
  LARGE_INTEGER size;
  hg_read_result result = HG_READ_FAILED;
  if (GetFileType(file) == FILE_TYPE_DISK && GetFileSizeEx(file, &size) && (uint64_t)size.QuadPart <= byte_limit) {
    *bytes = hg_allocate(allocator, (uint64_t)size.QuadPart, 1);
    if (*bytes == NULL) result = HG_READ_NO_MEMORY;
    else if (read_all(file, *bytes, (size_t)size.QuadPart, byte_count)) result = HG_READ_OK;
  }
  CloseHandle(file);
  if (result == HG_READ_OK) return HG_READ_OK;
  hg_release(allocator, *bytes);
  *bytes = NULL;
  *byte_count = 0;
  return result;
}

int hg_file_write(const char *temporary, const char *path, const void *bytes, size_t byte_count) {
  WCHAR from[HG_PATH_BYTES], to[HG_PATH_BYTES];
  if (!widen(temporary, from, HG_PATH_BYTES) || !widen(path, to, HG_PATH_BYTES)) return 0;
  HANDLE file = open_file(temporary, GENERIC_WRITE, CREATE_NEW);
  if (file == INVALID_HANDLE_VALUE) return 0;
  int ok = write_all(file, bytes, byte_count);
  ok &= CloseHandle(file) != 0;
  if (ok && MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING)) return 1; /* fails while another process reads `path` */
  DeleteFileW(from);
  return 0;
}

int hg_file_touch(const char *path) {
  HANDLE file = open_file(path, FILE_WRITE_ATTRIBUTES, OPEN_EXISTING);
  if (file == INVALID_HANDLE_VALUE) return 0;
  FILETIME now;
  GetSystemTimeAsFileTime(&now);
  int ok = SetFileTime(file, NULL, NULL, &now) != 0;
  CloseHandle(file);
  return ok;
}

int hg_file_remove(const char *path) {
  WCHAR wide[HG_PATH_BYTES];
  return widen(path, wide, HG_PATH_BYTES) && DeleteFileW(wide);
}
