/* disassemble.c - runs objdump on a temporary file; hexadecimal where that fails for whatever reason. */
#if !defined(_WIN32)
#  define _POSIX_C_SOURCE 200809L /* mkstemp, popen */
#endif
#include "disassemble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if !defined(_WIN32)
#  include <unistd.h>
#endif

static void list_bytes(FILE *out, const uint8_t *code, size_t byte_count) {
  for (size_t i = 0; i < byte_count; i++) {
    if (i % 16 == 0) fprintf(out, "%s%6zx: ", i > 0 ? "\n" : "", i);
    fprintf(out, " %02x", (unsigned)code[i]);
  }
  fprintf(out, "\n");
}

#if !defined(_WIN32)
/* 1 when something was listed. objdump's first lines name the file; the code's begin with blanks and an address. */
static int run_objdump(const char *command, FILE *out) {
  char line[512];
  int found = 0;
  FILE *output = popen(command, "r");
  if (output == NULL) return 0;
  while (fgets(line, sizeof line, output) != NULL)
    if (line[0] == ' ') {
      fputs(line, out);
      found = 1;
    }
  pclose(output);
  return found;
}

static int try_objdump(FILE *out, const char *machine, const uint8_t *code, size_t byte_count) {
  static const char *const programs[] = {"objdump", "aarch64-linux-gnu-objdump", "x86_64-linux-gnu-objdump"};
  char path[] = "/tmp/hologram-XXXXXX", command[200];
  int file = mkstemp(path), done = 0;
  if (file < 0) return 0;
  int written = write(file, code, byte_count) == (ssize_t)byte_count;
  for (size_t i = 0; written && !done && i < sizeof programs / sizeof *programs; i++) {
    snprintf(command, sizeof command, "%s -D -b binary -m %s -M %s %s 2>/dev/null", programs[i], machine,
             machine[0] == 'i' ? "intel" : "no-aliases", path);
    done = run_objdump(command, out);
  }
  close(file);
  unlink(path);
  return done;
}
#endif

void cli_disassemble(FILE *out, const char *machine, const uint8_t *code, size_t byte_count) {
#if !defined(_WIN32)
  if (try_objdump(out, machine, code, byte_count)) return;
#else
  (void)machine;
#endif
  list_bytes(out, code, byte_count);
}
