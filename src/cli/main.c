/* main.c - the `hologram` command: picks the subcommand. */
#include "cli/cli.h"

#include "hologram/hologram.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct subcommand {
  const char *name;
  int (*run)(int argc, char **argv);
} subcommand;

/* To add a subcommand: a row here, its function, its page in usage.c. */
static const subcommand subcommands[] = {
    {"run", cmd_run},     {"check", cmd_check}, {"asm", cmd_asm},   {"dis", cmd_dis},   {"canon", cmd_canon},
    {"hash", cmd_hash},   {"equal", cmd_equal}, {"emit", cmd_emit}, {"cache", cmd_cache},
    {"info", cmd_info},   {"circuit", cmd_circuit},
};
enum { SUBCOMMAND_COUNT = sizeof subcommands / sizeof subcommands[0] };

int cli_fail(int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("hologram: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  return code;
}

int cli_usage_error(const char *command, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("hologram: ", stderr);
  vfprintf(stderr, format, arguments);
  fprintf(stderr, " (see hologram %s%s--help)\n", command != NULL ? command : "", command != NULL ? " " : "");
  va_end(arguments);
  return CLI_USAGE;
}

int cli_is_help(const char *argument) { return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0; }

int cli_is_option(const char *argument) { return argument[0] == '-' && argument[1] != '\0'; }

int cli_parse_u64(const char *text, uint64_t *value) {
  unsigned base = 10;
  uint64_t result = 0;
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text += 2;
  }
  if (*text == '\0') return 0;
  for (; *text != '\0'; text++) {
    const char *digits = "0123456789abcdef";
    char c = *text >= 'A' && *text <= 'F' ? (char)(*text - 'A' + 'a') : *text;
    const char *found = strchr(digits, c);
    if (found == NULL || (unsigned)(found - digits) >= base) return 0;
    unsigned digit = (unsigned)(found - digits);
    if (result > (UINT64_MAX - digit) / base) return 0;
    result = result * base + digit;
  }
  *value = result;
  return 1;
}

void cli_json_string(FILE *file, const char *text) {
  if (text == NULL) {
    fputs("null", file);
    return;
  }
  fputc('"', file);
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') fprintf(file, "\\%c", c);
    else if (c < 0x20 || c == 0x7f) fprintf(file, "\\u%04x", c);
    else fputc(c, file);
  }
  fputc('"', file);
}

/* `hologram help [COMMAND]` */
static int help(int argc, char **argv) {
  const char *topic = argc > 2 ? argv[2] : NULL;
  if (cli_print_help(stdout, topic)) return CLI_OK;
  return cli_usage_error(NULL, "there is no command '%s'", topic);
}

static int dispatch(int argc, char **argv) {
  const char *name = argv[1];
  if (cli_is_help(name) || strcmp(name, "help") == 0) return help(argc, argv);
  if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
    printf("hologram %s\n", hg_version());
    return CLI_OK;
  }
  for (size_t i = 0; i < SUBCOMMAND_COUNT; i++)
    if (strcmp(subcommands[i].name, name) == 0) return subcommands[i].run(argc - 1, argv + 1);
  return cli_usage_error(NULL, "there is no command '%s'", name);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    cli_print_help(stderr, NULL);
    return CLI_USAGE;
  }
  int code = dispatch(argc, argv);
  if ((fflush(stdout) != 0 || ferror(stdout)) && code == CLI_OK) /* a full disk may show only now */
    return cli_fail(CLI_BAD_INPUT, "cannot write to the standard output");
  return code;
}
