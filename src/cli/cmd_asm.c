/* cmd_asm.c - `hologram check`, `asm`, `dis` and `info`. */
#include "cli/cli.h"

#include "hologram/hologram.h"

#include <inttypes.h>
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
    else if (argv[i][0] == '-') return cli_usage_error("check", "there is no option '%s'", argv[i]);
    else files++;
  }
  if (files == 0) return cli_usage_error("check", "which program? hologram check PROGRAM...");
  for (int i = 1; i < argc; i++) {
    atlas_program *program = NULL;
    hg_status status = HG_OK;
    char why[MESSAGE_BYTES];
    if (argv[i][0] == '-') continue;
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
    } else if (argv[i][0] == '-') {
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
  else if (output != NULL && cli_write_file(output, data, length, NULL, 0, why, sizeof why) != 0)
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

/* ---- info -------------------------------------------------------------------------------------------------------- */

enum { SETTINGS_BYTES = 1024 };

/* What the log says of an executor's settings; its message about the executor itself has nothing that is not shown
 * anyway. */
static void note_settings(void *user, hg_log_level level, const char *message) {
  char *settings = user;
  size_t used = strlen(settings);
  (void)level;
  if (strncmp(message, "executor on ", 12) == 0) return;
  snprintf(settings + used, SETTINGS_BYTES - used, "%s%s", used > 0 ? "; " : "", message);
}

static void info_text(const hg_executor_info *info, const char *settings) {
  hg_backend_info row = {0};
  printf("hologram %s\n", hg_version());
  printf("versions   ISA %d, numerics %d, binary form %d\n", ATLAS_ISA_VERSION, ATLAS_NUMERICS_VERSION,
         ATLAS_BINARY_VERSION);
  for (size_t i = 0; hg_backend_query(i, &row) == HG_OK; i++)
    printf("%-10s %s: %s\n", i == 0 ? "backends" : "", row.name, row.reason);
  printf("selection  %s\n", info->selection);
  printf("device     %s\n", info->device_name);
  printf("engine     %s\n", info->engine);
  printf("units      %" PRIu32 "\n", info->compute_units);
  printf("memory     %" PRIu64 " MiB\n", info->memory_bytes >> 20);
  printf("limits     %" PRIu32 " lanes and %" PRIu32 " bytes of shared memory a block\n", info->max_block_lanes,
         info->max_shared_bytes);
  if (settings[0] != '\0') printf("settings   %s\n", settings);
}

static void info_json(const hg_executor_info *info, const char *settings) {
  hg_backend_info row = {0};
  printf("{\"version\":\"%s\",\"isa_version\":%d,\"numerics_version\":%d,\"binary_version\":%d,\"backends\":[",
         hg_version(), ATLAS_ISA_VERSION, ATLAS_NUMERICS_VERSION, ATLAS_BINARY_VERSION);
  for (size_t i = 0; hg_backend_query(i, &row) == HG_OK; i++) {
    printf("%s{\"name\":\"%s\",\"available\":%s,\"reason\":", i > 0 ? "," : "", row.name,
           row.available ? "true" : "false");
    cli_json_string(stdout, row.reason);
    printf("}");
  }
  printf("],\"backend\":\"%s\",\"selection\":", info->backend_name);
  cli_json_string(stdout, info->selection);
  printf(",\"device\":");
  cli_json_string(stdout, info->device_name);
  printf(",\"engine\":\"%s\",\"compute_units\":%" PRIu32 ",\"memory_bytes\":%" PRIu64 ",\"max_block_lanes\":%" PRIu32
         ",\"max_shared_bytes\":%" PRIu32 ",\"settings\":",
         info->engine, info->compute_units, info->memory_bytes, info->max_block_lanes, info->max_shared_bytes);
  cli_json_string(stdout, settings[0] != '\0' ? settings : NULL);
  printf("}\n");
}

int cmd_info(int argc, char **argv) {
  int json = 0;
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return cli_print_help(stdout, "info") ? CLI_OK : CLI_USAGE;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--json") != 0) return cli_usage_error("info", "there is no option '%s'", argv[i]);
    json = 1;
  }
  hg_executor *executor = NULL;
  hg_executor_info info = {0};
  char settings[SETTINGS_BYTES] = "";
  hg_executor_desc desc = {.log = note_settings, .log_user = settings};
  if (hg_executor_create(&desc, &executor) != HG_OK || hg_executor_query(executor, &info) != HG_OK)
    return cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  if (json) info_json(&info, settings);
  else info_text(&info, settings);
  hg_executor_release(executor);
  return CLI_OK;
}
