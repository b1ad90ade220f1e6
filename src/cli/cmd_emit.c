/* cmd_emit.c - `hologram emit`: what the compiler makes of a program. */
#include "cli/cli.h"

#include "disassemble.h"
#include "hologram/hologram.h"

#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 1200, NAMES_BYTES = 256 };

typedef struct emit_options {
  const char *input, *target, *capability_text;
  uint64_t capability; /* 0: the target's least */
} emit_options;

static const char SSA[] = "ssa"; /* the only target that is no backend's */

/* 0 if there is no such target. */
static int find_target(const char *name, hg_emit_target_info *info) {
  *info = (hg_emit_target_info){.size = sizeof *info, .name = SSA};
  if (strcmp(name, SSA) == 0) return 1;
  for (size_t i = 0; hg_emit_target_query(i, info) == HG_OK; i++)
    if (strcmp(name, info->name) == 0) return 1;
  return 0;
}

static const char *target_names(char *names, size_t size, const char *between) {
  hg_emit_target_info info = {.size = sizeof info};
  snprintf(names, size, "%s", SSA);
  for (size_t i = 0; hg_emit_target_query(i, &info) == HG_OK; i++) {
    size_t used = strlen(names);
    snprintf(names + used, size - used, "%s%s", between, info.name);
  }
  return names;
}

static hg_status make(const emit_options *options, const atlas_program *program, void **bytes, size_t *byte_count) {
  char *text = NULL;
  if (strcmp(options->target, SSA) != 0)
    return hg_emit(NULL, program, options->target, (uint32_t)options->capability, bytes, byte_count);
  hg_status status = atlas_print_ssa(NULL, program, &text, byte_count);
  *bytes = text;
  return status;
}

static int emit(const emit_options *options, const char *machine) {
  atlas_program *program = NULL;
  void *bytes = NULL;
  char why[MESSAGE_BYTES];
  size_t byte_count = 0;
  hg_status status = HG_OK;
  if (cli_load_program(options->input, &program, &status, why, sizeof why) != 0)
    return cli_fail(CLI_BAD_INPUT, "%s", why);
  int code = CLI_OK;
  if (make(options, program, &bytes, &byte_count) != HG_OK)
    code = cli_fail(CLI_BAD_INPUT, "%s: %s", options->input, hg_last_error());
  else if (machine != NULL) cli_disassemble(stdout, machine, bytes, byte_count);
  else fwrite(bytes, 1, byte_count, stdout);
  atlas_memory_release(NULL, bytes);
  atlas_program_release(program);
  return code;
}

/* 0, or the exit code of a wrong command line. */
static int parse_options(int argc, char **argv, emit_options *o) {
  char names[NAMES_BYTES];
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--target") == 0 && i + 1 < argc) o->target = argv[++i];
    else if (strcmp(argv[i], "--capability") == 0 && i + 1 < argc) {
      o->capability_text = argv[++i];
    } else if (cli_is_option(argv[i])) {
      return cli_usage_error("emit", "there is no option '%s', or its value is missing", argv[i]);
    } else if (o->input != NULL) {
      return cli_usage_error("emit", "one program at a time: '%s' comes after '%s'", argv[i], o->input);
    } else {
      o->input = argv[i];
    }
  }
  if (o->input == NULL || o->target == NULL)
    return cli_usage_error("emit", "hologram emit --target %s PROGRAM", target_names(names, sizeof names, "|"));
  return CLI_OK;
}

/* Targets that have but one take any number. */
static int parse_capability(emit_options *o, const hg_emit_target_info *target) {
  if (o->capability_text == NULL) return CLI_OK;
  int is_number = cli_parse_u64(o->capability_text, &o->capability);
  if (is_number && target->most_capability == 0) return CLI_OK;
  if (is_number && o->capability >= target->least_capability && o->capability <= target->most_capability) return CLI_OK;
  return cli_usage_error("emit", "--capability is a number from %u to %u, such as 90 for 9.0, not '%s'",
                         (unsigned)target->least_capability, (unsigned)target->most_capability, o->capability_text);
}

int cmd_emit(int argc, char **argv) {
  emit_options o = {.capability = 0};
  hg_emit_target_info target;
  char names[NAMES_BYTES];
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return cli_print_help(stdout, "emit") ? CLI_OK : CLI_USAGE;
  int code = parse_options(argc, argv, &o);
  if (code != CLI_OK) return code;
  if (!find_target(o.target, &target))
    return cli_usage_error("emit", "there is no target '%s'; this version has: %s", o.target,
                           target_names(names, sizeof names, ", "));
  code = parse_capability(&o, &target);
  return code == CLI_OK ? emit(&o, target.machine) : code;
}
