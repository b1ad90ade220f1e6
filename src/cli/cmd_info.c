/* cmd_info.c - `hologram info`: what this machine offers, or what it makes of a program. */
#include "cli/cli.h"

#include "hologram/hologram.h"

#include <inttypes.h>
#include <string.h>

/* ---- the machine ------------------------------------------------------------------------------------------------- */

enum { SETTINGS_BYTES = 1024 };

/* Keeps log messages about an executor's settings; its message about the executor itself contains only what is printed
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

/* ---- a program's kernel ------------------------------------------------------------------------------------------ */

static const char *name_of_kind(uint8_t kind) {
  switch (kind) {
  case ATLAS_SYMBOL_BUFFER: return "buffer";
  case ATLAS_SYMBOL_SCALAR: return "scalar";
  case ATLAS_SYMBOL_TABLE: return "table";
  default: return "pool";
  }
}

static const char *name_of_access(uint8_t access) {
  return access == ATLAS_IN ? "in" : access == ATLAS_OUT ? "out" : access == ATLAS_INOUT ? "inout" : NULL;
}

static void print_hash(const uint8_t hash[ATLAS_HASH_BYTES]) {
  for (int i = 0; i < ATLAS_HASH_BYTES; i++) printf("%02x", hash[i]);
}

static void parameter_text(const hg_parameter_info *p, int is_first) {
  const char *access = name_of_access(p->access);
  printf("%-10s %s: %s", is_first ? "parameters" : "", p->name, name_of_kind(p->kind));
  if (p->kind == ATLAS_SYMBOL_TABLE) printf(" of %" PRIu32, p->entry_count);
  else if (p->kind != ATLAS_SYMBOL_POOL) printf(" %s", atlas_type_name((atlas_type)p->type));
  if (access != NULL && p->kind != ATLAS_SYMBOL_POOL) printf(" %s", access);
  printf("%s\n", p->is_required || p->kind == ATLAS_SYMBOL_TABLE ? "" : ", bound by default");
}

static void kernel_text(hg_kernel *kernel, const hg_kernel_info *info) {
  hg_parameter_info parameter = {0};
  printf("program    %s\nhash       ", info->name);
  print_hash(info->hash);
  printf("\nbackend    %s\nengine     %s\n", info->backend, info->engine);
  if (info->why[0] != '\0') printf("why        %s\n", info->why);
  else if (info->notes[0] != '\0') printf("notes      %s\n", info->notes);
  const uint32_t *block = info->block[0] != 0 ? info->block : info->default_block;
  if (block[0] == 0) printf("block      any\n");
  else
    printf("block      %" PRIu32 " x %" PRIu32 " x %" PRIu32 "%s\n", block[0], block[1], block[2],
           info->block[0] != 0 ? "" : " by default");
  if (info->registers != 0) printf("registers  %" PRIu32 "\n", info->registers);
  if (info->local_bytes != 0) printf("spilled    %" PRIu32 " bytes\n", info->local_bytes);
  printf("shared     %" PRIu32 " bytes\n", info->shared_bytes);
  for (uint32_t i = 0; hg_kernel_parameter(kernel, i, &parameter) == HG_OK; i++) parameter_text(&parameter, i == 0);
}

static void parameter_json(const hg_parameter_info *p, int is_first) {
  printf("%s{\"name\":\"%s\",\"slot\":%" PRIu32 ",\"kind\":\"%s\",\"type\":\"%s\",\"access\":",
         is_first ? "" : ",", p->name, p->slot, name_of_kind(p->kind), atlas_type_name((atlas_type)p->type));
  cli_json_string(stdout, name_of_access(p->access));
  printf(",\"required\":%s,\"entries\":%" PRIu32 ",\"alignment\":%" PRIu32 "}", p->is_required ? "true" : "false",
         p->entry_count, p->alignment);
}

static void kernel_json(hg_kernel *kernel, const hg_kernel_info *info) {
  hg_parameter_info parameter = {0};
  printf("{\"program\":\"%s\",\"hash\":\"", info->name);
  print_hash(info->hash);
  printf("\",\"backend\":\"%s\",\"engine\":\"%s\",\"why\":", info->backend, info->engine);
  cli_json_string(stdout, info->why[0] != '\0' ? info->why : NULL);
  printf(",\"notes\":");
  cli_json_string(stdout, info->notes);
  printf(",\"block\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "],\"default_block\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]",
         info->block[0], info->block[1], info->block[2], info->default_block[0], info->default_block[1],
         info->default_block[2]);
  printf(",\"registers\":%" PRIu32 ",\"local_bytes\":%" PRIu32
         ",\"shared_bytes\":%" PRIu32 ",\"parameters\":[",
         info->registers, info->local_bytes, info->shared_bytes);
  for (uint32_t i = 0; hg_kernel_parameter(kernel, i, &parameter) == HG_OK; i++) parameter_json(&parameter, i == 0);
  printf("]}\n");
}

static int show_kernel(hg_executor *executor, const char *path, int json) {
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  hg_kernel_info info = {.size = sizeof info};
  hg_status status = HG_OK;
  char why[1200];
  if (cli_load_program(path, &program, &status, why, sizeof why) != 0) return cli_fail(CLI_BAD_INPUT, "%s", why);
  status = hg_kernel_create(executor, program, &kernel);
  if (status == HG_OK) status = hg_kernel_query(kernel, &info);
  int code = status == HG_OK ? CLI_OK : cli_fail(CLI_BAD_INPUT, "%s: %s", path, hg_last_error());
  if (code == CLI_OK && json) kernel_json(kernel, &info);
  else if (code == CLI_OK) kernel_text(kernel, &info);
  hg_kernel_release(kernel);
  atlas_program_release(program);
  return code;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int show_machine(hg_executor *executor, const char *settings, int json) {
  hg_executor_info info = {0};
  if (hg_executor_query(executor, &info) != HG_OK) return cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  if (json) info_json(&info, settings);
  else info_text(&info, settings);
  return CLI_OK;
}

int cmd_info(int argc, char **argv) {
  int json = 0;
  const char *path = NULL;
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return cli_print_help(stdout, "info") ? CLI_OK : CLI_USAGE;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--json") == 0) json = 1;
    else if (cli_is_option(argv[i])) return cli_usage_error("info", "there is no option '%s'", argv[i]);
    else if (path != NULL)
      return cli_usage_error("info", "one program at a time: '%s' comes after '%s'", argv[i], path);
    else path = argv[i];
  }
  hg_executor *executor = NULL;
  char settings[SETTINGS_BYTES] = "";
  hg_executor_desc desc = {.log = note_settings, .log_user = settings};
  if (hg_executor_create(&desc, &executor) != HG_OK) return cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  int code = path != NULL ? show_kernel(executor, path, json) : show_machine(executor, settings, json);
  hg_executor_release(executor);
  return code;
}
