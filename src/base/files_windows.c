/* files_windows.c - files.h on Windows. Who owns a folder or may write to it is not looked at: one below
 * %LOCALAPPDATA% is the user's alone, and another one is what the user has set. Links are not followed. */
#define WIN32_LEAN_AND_MEAN
#include "base/files.h"

#include "base/utf16.h"

#include <stdio.h>
#include <string.h>

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static int is_directory(const WCHAR *path) {
  DWORD attributes = GetFileAttributesW(path);
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

/* A new folder inherits its access rights; folders below %LOCALAPPDATA% are private to the user. */
int hg_directory_create(const char *path) {
  WCHAR wide[HG_PATH_BYTES];
  if (path[0] == '\0' || !hg_widen(path, wide, HG_PATH_BYTES)) return 0;
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

int hg_directory_can_be_made(const char *path) {
  WCHAR wide[HG_PATH_BYTES];
  if (path[0] == '\0' || !hg_widen(path, wide, HG_PATH_BYTES)) return 0;
  for (size_t i = wcslen(wide); i-- > 1;) {
    if (wide[i] != L'/' && wide[i] != L'\\') continue;
    wide[i] = L'\0';
    if (GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES) return is_directory(wide);
  }
  return 1;
}

static hg_folder_state state_of(const char *path) {
  WCHAR wide[HG_PATH_BYTES];
  if (!hg_widen(path, wide, HG_PATH_BYTES) || GetFileAttributesW(wide) == INVALID_FILE_ATTRIBUTES)
    return HG_FOLDER_ABSENT;
  return is_directory(wide) ? HG_FOLDER_PRIVATE : HG_FOLDER_OTHER;
}

/* No handle: files are reached by the folder's path and their names. */
hg_folder_state hg_folder_open(const char *path, hg_folder *folder) {
  *folder = (hg_folder){.state = state_of(path), .handle = -1, .path = path};
  return folder->state;
}

void hg_folder_close(hg_folder *folder) { folder->handle = -1; }

static int join(const hg_folder *folder, const char *name, char path[HG_PATH_BYTES]) {
  int length = snprintf(path, HG_PATH_BYTES, "%s/%s", folder->path, name);
  return folder->state == HG_FOLDER_PRIVATE && length > 0 && length < HG_PATH_BYTES;
}

/* FILETIME counts 100 ns since 1601. */
static int64_t unix_ns(FILETIME time) {
  uint64_t ticks = (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
  return ((int64_t)ticks - INT64_C(116444736000000000)) * 100;
}

static int is_no_file(DWORD attributes) {
  return (attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT)) != 0;
}

int hg_folder_list(const hg_folder *folder, int (*visit)(void *user, const hg_file_info *file), void *user) {
  char pattern[HG_PATH_BYTES], name[3 * MAX_PATH + 1];
  WCHAR wide[HG_PATH_BYTES];
  WIN32_FIND_DATAW found;
  if (!join(folder, "*", pattern) || !hg_widen(pattern, wide, HG_PATH_BYTES)) return 0;
  HANDLE search = FindFirstFileW(wide, &found);
  if (search == INVALID_HANDLE_VALUE) return 0;
  do {
    if (!hg_narrow(found.cFileName, name, (int)sizeof name)) continue;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
    uint64_t byte_count = (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow;
    hg_file_info file = {name, is_no_file(found.dwFileAttributes), byte_count, unix_ns(found.ftLastWriteTime)};
    if (!visit(user, &file)) break;
  } while (FindNextFileW(search, &found));
  FindClose(search);
  return 1;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* A link itself, not what it leads to. */
static HANDLE open_file(const char *path, DWORD access, DWORD disposition) {
  WCHAR wide[HG_PATH_BYTES];
  if (!hg_widen(path, wide, HG_PATH_BYTES)) return INVALID_HANDLE_VALUE;
  return CreateFileW(wide, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, disposition,
                     FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
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

static hg_read_result measure(HANDLE file, uint64_t *byte_count) {
  BY_HANDLE_FILE_INFORMATION info;
  if (GetFileType(file) != FILE_TYPE_DISK) return HG_READ_REFUSED;
  if (!GetFileInformationByHandle(file, &info)) return HG_READ_FAILED;
  *byte_count = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
  return is_no_file(info.dwFileAttributes) ? HG_READ_REFUSED : HG_READ_OK;
}

static hg_read_result read_open(HANDLE file, const hg_allocator *allocator, uint64_t byte_limit, uint8_t **bytes,
                                size_t *byte_count) {
  uint64_t size = 0;
  hg_read_result result = measure(file, &size);
  if (result != HG_READ_OK) return result;
  if (size > byte_limit) return HG_READ_FAILED;
  *bytes = hg_allocate(allocator, size, 1);
  if (*bytes == NULL) return HG_READ_NO_MEMORY;
  return read_all(file, *bytes, (size_t)size, byte_count) ? HG_READ_OK : HG_READ_FAILED;
}

hg_read_result hg_file_read(const hg_allocator *allocator, const char *path, uint64_t byte_limit, uint8_t **bytes,
                            size_t *byte_count) {
  *bytes = NULL;
  *byte_count = 0;
  HANDLE file = open_file(path, GENERIC_READ, OPEN_EXISTING);
  if (file == INVALID_HANDLE_VALUE) return HG_READ_FAILED;
  hg_read_result result = read_open(file, allocator, byte_limit, bytes, byte_count);
  CloseHandle(file);
  if (result == HG_READ_OK) return HG_READ_OK;
  hg_release(allocator, *bytes);
  *bytes = NULL;
  *byte_count = 0;
  return result;
}

hg_read_result hg_folder_read(const hg_folder *folder, const hg_allocator *allocator, const char *name,
                              uint64_t byte_limit, uint8_t **bytes, size_t *byte_count) {
  char path[HG_PATH_BYTES];
  *bytes = NULL;
  *byte_count = 0;
  return join(folder, name, path) ? hg_file_read(allocator, path, byte_limit, bytes, byte_count) : HG_READ_FAILED;
}

hg_read_result hg_file_open(const char *path, hg_file *file) {
  HANDLE handle = open_file(path, GENERIC_READ, OPEN_EXISTING);
  if (handle == INVALID_HANDLE_VALUE) return HG_READ_FAILED;
  *file = (hg_file){.handle = (intptr_t)handle};
  hg_read_result result = measure(handle, &file->byte_count);
  if (result != HG_READ_OK) CloseHandle(handle);
  return result;
}

int hg_file_next(const hg_file *file, uint8_t *bytes, size_t byte_count) {
  size_t count = 0;
  return read_all((HANDLE)file->handle, bytes, byte_count, &count) && count == byte_count;
}

void hg_file_close(const hg_file *file) { CloseHandle((HANDLE)file->handle); }

int hg_is_separator(char c) { return c == '/' || c == '\\' || c == ':'; }

int hg_file_create(char *temporary, const char *path, hg_file *file) {
  (void)path;
  HANDLE handle = open_file(temporary, GENERIC_WRITE, CREATE_NEW);
  *file = (hg_file){.handle = (intptr_t)handle};
  return handle != INVALID_HANDLE_VALUE;
}

int hg_file_put(const hg_file *file, const void *bytes, size_t byte_count) {
  return write_all((HANDLE)file->handle, bytes, byte_count);
}

int hg_file_finish(const hg_file *file, int is_good, const char *temporary, const char *path) {
  WCHAR from[HG_PATH_BYTES], to[HG_PATH_BYTES];
  int ok = (CloseHandle((HANDLE)file->handle) != 0) & is_good;
  if (!hg_widen(temporary, from, HG_PATH_BYTES)) return 0;
  ok &= hg_widen(path, to, HG_PATH_BYTES);
  if (ok && MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING)) return 1; /* fails while another process reads it */
  DeleteFileW(from);
  return 0;
}

int hg_file_write(const char *temporary, const char *path, const void *bytes, size_t byte_count) {
  hg_file file = {.handle = (intptr_t)open_file(temporary, GENERIC_WRITE, CREATE_NEW)};
  return (HANDLE)file.handle != INVALID_HANDLE_VALUE &&
         hg_file_finish(&file, hg_file_put(&file, bytes, byte_count), temporary, path);
}

int hg_folder_write(const hg_folder *folder, const char *temporary, const char *name, const void *bytes,
                    size_t byte_count) {
  char from[HG_PATH_BYTES], to[HG_PATH_BYTES];
  return join(folder, temporary, from) && join(folder, name, to) && hg_file_write(from, to, bytes, byte_count);
}

int hg_folder_touch(const hg_folder *folder, const char *name) {
  char path[HG_PATH_BYTES];
  HANDLE file = join(folder, name, path) ? open_file(path, FILE_WRITE_ATTRIBUTES, OPEN_EXISTING) : INVALID_HANDLE_VALUE;
  if (file == INVALID_HANDLE_VALUE) return 0;
  FILETIME now;
  GetSystemTimeAsFileTime(&now);
  int ok = SetFileTime(file, NULL, NULL, &now) != 0;
  CloseHandle(file);
  return ok;
}

int hg_file_remove(const char *path) {
  WCHAR wide[HG_PATH_BYTES];
  return hg_widen(path, wide, HG_PATH_BYTES) && DeleteFileW(wide);
}

int hg_folder_remove(const hg_folder *folder, const char *name) {
  char path[HG_PATH_BYTES];
  return join(folder, name, path) && hg_file_remove(path);
}

int hg_file_append(const char *path, const char *text) { return (void)path, (void)text, 0; }
