/* files.c - whole files in and out, programs in either form. */
#include "cli/cli.h"

#ifdef _WIN32
#  include <fcntl.h>
#  include <io.h>
#  include <windows.h>
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *reason(int error) { return error != 0 ? strerror(error) : "unknown error"; }

enum { MAX_PROGRAM_MIB = 256 }; /* 256 bytes for each of the most instructions that a program may have */

/* Doubles the room; 0 when out of memory. */
static int grow(cli_bytes *bytes) {
  if (bytes->capacity > SIZE_MAX / 4) return 0;
  size_t larger = bytes->capacity == 0 ? 65536 : bytes->capacity * 2;
  uint8_t *data = realloc(bytes->data, larger);
  if (data == NULL) return 0;
  bytes->data = data;
  bytes->capacity = larger;
  return 1;
}

static FILE *open_to_read(const char *path, char *why, size_t why_bytes) {
  errno = 0;
  FILE *file = fopen(path, "rb");
  if (file == NULL) snprintf(why, why_bytes, "cannot open: %s", reason(errno));
  return file;
}

/* Reads rather than asking for the size first: that also works for pipes, and memory grows only with bytes that are
 * really there. */
static int read_up_to(FILE *file, uint64_t count, cli_bytes *out, char *why, size_t why_bytes) {
  while (out->count < count) {
    if (out->count == out->capacity && !grow(out)) {
      snprintf(why, why_bytes, "out of memory after %zu bytes", out->count);
      return -1;
    }
    size_t room = out->capacity - out->count, wanted = count - out->count < room ? (size_t)(count - out->count) : room;
    errno = 0;
    size_t got = fread(out->data + out->count, 1, wanted, file);
    out->count += got;
    if (got > 0) continue;
    if (!ferror(file)) return 0;
    snprintf(why, why_bytes, "cannot read: %s", reason(errno));
    return -1;
  }
  return 0;
}

#ifdef _WIN32
const char *cli_path(const char *path, char utf8[CLI_PATH_BYTES]) {
  WCHAR wide[CLI_PATH_BYTES];
  int is_known = MultiByteToWideChar(CP_ACP, MB_ERR_INVALID_CHARS, path, -1, wide, CLI_PATH_BYTES) > 0 &&
                 WideCharToMultiByte(CP_UTF8, 0, wide, -1, utf8, CLI_PATH_BYTES, NULL, NULL) > 0;
  return is_known ? utf8 : path;
}
#else
const char *cli_path(const char *path, char utf8[CLI_PATH_BYTES]) { return (void)utf8, path; }
#endif

/* *made: the file is new, and ours to remove. What was there before may be a device or a link. */
static FILE *open_to_write(const char *path, int *made) {
  FILE *file = fopen(path, "wbx");
  *made = file != NULL;
  errno = 0;
  return file != NULL ? file : fopen(path, "wb");
}

int cli_write_file(const char *path, const void *bytes, size_t byte_count, char *why, size_t why_bytes) {
  int made = 0;
  FILE *file = open_to_write(path, &made);
  if (file == NULL) {
    snprintf(why, why_bytes, "cannot write: %s", reason(errno));
    return -1;
  }
  int ok = byte_count == 0 || fwrite(bytes, 1, byte_count, file) == byte_count;
  int error = errno;
  if (fclose(file) != 0 && ok) { /* a full disk may show only now */
    ok = 0;
    error = errno;
  }
  if (ok) return 0;
  snprintf(why, why_bytes, "cannot write: %s", reason(error));
  if (made) remove(path);
  return -1;
}

/* The binary form begins with a magic that holds a byte no text has. */
static int looks_binary(const cli_bytes *bytes) {
  for (size_t i = 0; i < bytes->count && i < 8; i++) {
    uint8_t c = bytes->data[i];
    if (c == 0 || c >= 0x7f || (c < 0x20 && c != '\t' && c != '\r' && c != '\n')) return 1;
  }
  return 0;
}

/* Byte for byte: Windows would take a binary form for text. */
static FILE *standard_input(void) {
#ifdef _WIN32
  _setmode(_fileno(stdin), _O_BINARY);
#endif
  return stdin;
}

int cli_read_file(const char *path, cli_bytes *bytes, char *why, size_t why_bytes) {
  const uint64_t most = (uint64_t)MAX_PROGRAM_MIB << 20;
  FILE *file = strcmp(path, "-") == 0 ? standard_input() : open_to_read(path, why, why_bytes);
  if (file == NULL) return -1;
  int result = read_up_to(file, most + 1, bytes, why, why_bytes);
  if (file != stdin) fclose(file);
  if (result != 0 || bytes->count <= most) return result;
  snprintf(why, why_bytes, "the file is larger than the %d MiB that a program may take", MAX_PROGRAM_MIB);
  return -1;
}

int cli_load_program(const char *path, atlas_program **out, hg_status *status, char *why, size_t why_bytes) {
  cli_bytes bytes = {0};
  char reason_text[512];
  *out = NULL;
  if (cli_read_file(path, &bytes, reason_text, sizeof reason_text) != 0) {
    free(bytes.data);
    *status = HG_IO;
    snprintf(why, why_bytes, "%s: %s", path, reason_text);
    return -1;
  }
  int binary = looks_binary(&bytes);
  if (binary) *status = atlas_decode(NULL, bytes.data, bytes.count, out);
  else *status = atlas_parse(NULL, (const char *)bytes.data, bytes.count, path, out);
  free(bytes.data);
  if (*status == HG_OK) return 0;
  /* Messages about text begin with the file's name already. */
  size_t length = strlen(path);
  if (strncmp(hg_last_error(), path, length) == 0 && hg_last_error()[length] == ':')
    snprintf(why, why_bytes, "%s", hg_last_error());
  else snprintf(why, why_bytes, "%s: %s", path, hg_last_error());
  return -1;
}
