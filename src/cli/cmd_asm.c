/* cmd_asm.c - `hologram check`, `asm` and `dis`. */
#include "cli/cli.h"

#include <string.h>

enum { MESSAGE_BYTES = 1200 };

/* ---- check ------------------------------------------------------------------------------------------------------- */

static void describe(const char *path, const atlas_program *program) {
  size_t insns = 0, symbols = 0;
  atlas_program_insns(program, &insns);
  atlas_program_symbols(program, &symbols);
  printf("%s: ok: %s '%s', %zu instruction%s, %zu symbol%s\n", path,
         atlas_program_is_library(program) ? "library" : "program", atlas_program_name(program), insns,
         insns == 1 ? "" : "s", symbols, symbols == 1 ? "" : "s");
}

int cmd_check(int argc, char **argv) {
  int code = CLI_OK, files = 0, quiet = 0;
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return cli_print_help(stdout, "check") ? CLI_OK : CLI_USAGE;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-q") == 0 || strcmp(argv[i], "--quiet") == 0) quiet = 1;
    else if (cli_is_option(argv[i])) return cli_usage_error("check", "there is no option '%s'", argv[i]);
    else files++;
  }
  if (files == 0) return cli_usage_error("check", "which program? hologram check PROGRAM...");
  for (int i = 1; i < argc; i++) {
    atlas_program *program = NULL;
    hg_status status = HG_OK;
    char why[MESSAGE_BYTES];
    if (cli_is_option(argv[i])) continue;
    if (cli_load_program(argv[i], &program, &status, why, sizeof why) != 0) code = cli_fail(CLI_BAD_INPUT, "%s", why);
    else if (!quiet) describe(argv[i], program);
    atlas_program_release(program);
  }
  return code;
}

/* ---- asm and dis ------------------------------------------------------------------------------------------------- */

/* PROGRAM [-o FILE] */
static int parse_convert(const char *command, int argc, char **argv, const char **input, const char **output) {
  *input = *output = NULL;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0) {
      if (i + 1 >= argc) return cli_usage_error(command, "%s needs a file name", argv[i]);
      if (*output != NULL) return cli_usage_error(command, "%s is given twice", argv[i]);
      *output = argv[++i];
    } else if (cli_is_option(argv[i])) {
      return cli_usage_error(command, "there is no option '%s'", argv[i]);
    } else if (*input != NULL) {
      return cli_usage_error(command, "one program at a time: '%s' comes after '%s'", argv[i], *input);
    } else {
      *input = argv[i];
    }
  }
  if (*input == NULL) return cli_usage_error(command, "which program? hologram %s PROGRAM -o FILE", command);
  return CLI_OK;
}

/* Writes either form of the program at `input` to `output`; NULL: the standard output. */
static int convert(const char *input, const char *output, int to_text) {
  atlas_program *program = NULL;
  hg_status status = HG_OK;
  char why[MESSAGE_BYTES];
  if (cli_load_program(input, &program, &status, why, sizeof why) != 0) return cli_fail(CLI_BAD_INPUT, "%s", why);
  char *text = NULL;
  void *bytes = NULL;
  size_t length = 0;
  if (to_text) status = atlas_print(NULL, program, &text, &length);
  else status = atlas_encode(NULL, program, &bytes, &length);
  const void *data = to_text ? (void *)text : bytes;
  int code = CLI_OK;
  if (status != HG_OK) code = cli_fail(CLI_BAD_INPUT, "%s: %s", input, hg_last_error());
  else if (output != NULL && cli_write_file(output, data, length, why, sizeof why) != 0)
    code = cli_fail(CLI_BAD_INPUT, "%s: %s", output, why);
  else if (output == NULL && fwrite(data, 1, length, stdout) != length)
    code = cli_fail(CLI_BAD_INPUT, "cannot write to the standard output");
  atlas_memory_release(NULL, text);
  atlas_memory_release(NULL, bytes);
  atlas_program_release(program);
  return code;
}

int cmd_asm(int argc, char **argv) {
  const char *input, *output;
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return cli_print_help(stdout, "asm") ? CLI_OK : CLI_USAGE;
  int code = parse_convert("asm", argc, argv, &input, &output);
  if (code != CLI_OK) return code;
  if (output == NULL) return cli_usage_error("asm", "where to? the binary form needs -o FILE");
  return convert(input, output, 0);
}

int cmd_dis(int argc, char **argv) {
  const char *input, *output;
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return cli_print_help(stdout, "dis") ? CLI_OK : CLI_USAGE;
  int code = parse_convert("dis", argc, argv, &input, &output);
  return code != CLI_OK ? code : convert(input, output, 1);
}
