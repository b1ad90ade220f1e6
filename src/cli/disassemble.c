/* disassemble.c - runs objdump on a temporary file; hexadecimal where that fails for whatever reason. */
#if !defined(_WIN32)
#  define _POSIX_C_SOURCE 200809L /* mkstemp, popen */
#endif
#include "disassemble.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if !defined(_WIN32)
#  include <unistd.h>
#endif

static hg_status append(const hg_allocator *allocator, hg_array *text, const char *words, size_t length) {
  return hg_array_append(allocator, text, words, length) != NULL ? HG_OK : hg_fail_memory("a listing", length);
}

static hg_status list_bytes(const hg_allocator *allocator, const uint8_t *code, size_t byte_count, hg_array *text) {
  for (size_t i = 0; i < byte_count; i++) {
    char words[32];
    int length = i % 16 == 0 ? snprintf(words, sizeof words, "%s%6zx:  %02x", i > 0 ? "\n" : "", i, (unsigned)code[i])
                             : snprintf(words, sizeof words, " %02x", (unsigned)code[i]);
    HG_TRY(append(allocator, text, words, (size_t)length));
  }
  return append(allocator, text, "\n", 1);
}

#if !defined(_WIN32)
/* 1 when the listing is there. objdump's first lines name the file; the code's begin with blanks and an address. */
static int run_objdump(const char *command, const hg_allocator *allocator, hg_array *text, hg_status *status) {
  char line[512];
  int found = 0;
  FILE *output = popen(command, "r");
  if (output == NULL) return 0;
  while (fgets(line, sizeof line, output) != NULL && *status == HG_OK)
    if (line[0] == ' ') {
      *status = append(allocator, text, line, strlen(line));
      found = 1;
    }
  return pclose(output) == 0 && found;
}

static int try_objdump(const hg_allocator *allocator, const char *machine, const uint8_t *code, size_t byte_count,
                       hg_array *text, hg_status *status) {
  static const char *const programs[] = {"objdump", "aarch64-linux-gnu-objdump", "x86_64-linux-gnu-objdump"};
  char path[] = "/tmp/hologram-XXXXXX", command[200];
  int file = mkstemp(path), done = 0;
  if (file < 0) return 0;
  int written = write(file, code, byte_count) == (ssize_t)byte_count;
  for (size_t i = 0; written && !done && *status == HG_OK && i < sizeof programs / sizeof *programs; i++) {
    size_t before = text->count;
    snprintf(command, sizeof command, "%s -D -b binary -m %s -M %s %s 2>/dev/null", programs[i], machine,
             machine[0] == 'i' ? "intel" : "no-aliases", path);
    done = run_objdump(command, allocator, text, status);
    if (!done) text->count = before;
  }
  close(file);
  unlink(path);
  return done;
}
#endif

hg_status cli_disassemble(const hg_allocator *allocator, const char *machine, const uint8_t *code, size_t byte_count,
                          hg_array *text) {
  hg_status status = HG_OK;
#if !defined(_WIN32)
  if (try_objdump(allocator, machine, code, byte_count, text, &status)) return status;
#else
  (void)machine;
#endif
  return status == HG_OK ? list_bytes(allocator, code, byte_count, text) : status;
}
