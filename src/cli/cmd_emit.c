/* cmd_emit.c - `hologram emit`: what the compiler makes of a program. */
#include "cli/cli.h"

#include "disassemble.h"
#include "hologram/hologram.h"

#include <string.h>

enum { MESSAGE_BYTES = 1200 };
enum { OLDEST_CAPABILITY = 75, NEWEST_CAPABILITY = 999 }; /* as hg_emit takes them */

typedef struct emit_options {
  const char *input, *target;
  uint64_t capability;
} emit_options;

/* Those that are machine code, and what objdump calls their machine. */
static const struct {
  const char *name, *machine;
} targets[] = {{"ssa", NULL},
               {"ptx", NULL},
               {"vector", NULL},
               {"x86-avx512", "i386:x86-64"},
               {"x86-avx2", "i386:x86-64"},
               {"arm64", "aarch64"}};
enum { TARGETS = sizeof targets / sizeof *targets };

static int find_target(const char *name) {
  int t = 0;
  while (t < TARGETS && strcmp(name, targets[t].name) != 0) t++;
  return t;
}

static hg_status make(const emit_options *options, const atlas_program *program, void **bytes, size_t *byte_count) {
  char *text = NULL;
  if (strcmp(options->target, "ssa") != 0)
    return hg_emit(NULL, program, options->target, (uint32_t)options->capability, bytes, byte_count);
  hg_status status = atlas_print_ssa(NULL, program, &text, byte_count);
  *bytes = text;
  return status;
}

static int emit(const emit_options *options) {
  atlas_program *program = NULL;
  void *bytes = NULL;
  char why[MESSAGE_BYTES];
  size_t byte_count = 0;
  hg_status status = HG_OK;
  const char *machine = targets[find_target(options->target)].machine;
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
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--target") == 0 && i + 1 < argc) o->target = argv[++i];
    else if (strcmp(argv[i], "--capability") == 0 && i + 1 < argc) {
      if (!cli_parse_u64(argv[++i], &o->capability) || o->capability < OLDEST_CAPABILITY ||
          o->capability > NEWEST_CAPABILITY)
        return cli_usage_error("emit", "--capability is a number from %d to %d, such as 90 for 9.0, not '%s'",
                               OLDEST_CAPABILITY, NEWEST_CAPABILITY, argv[i]);
    } else if (argv[i][0] == '-') {
      return cli_usage_error("emit", "there is no option '%s', or its value is missing", argv[i]);
    } else if (o->input != NULL) {
      return cli_usage_error("emit", "one program at a time: '%s' comes after '%s'", argv[i], o->input);
    } else {
      o->input = argv[i];
    }
  }
  if (o->input == NULL || o->target == NULL)
    return cli_usage_error("emit", "hologram emit --target ssa|ptx|vector|x86-avx512|x86-avx2|arm64 PROGRAM");
  return CLI_OK;
}

int cmd_emit(int argc, char **argv) {
  emit_options o = {.capability = OLDEST_CAPABILITY};
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return cli_print_help(stdout, "emit") ? CLI_OK : CLI_USAGE;
  int code = parse_options(argc, argv, &o);
  if (code != CLI_OK) return code;
  if (find_target(o.target) == TARGETS)
    return cli_usage_error("emit", "there is no target '%s'; this version has: ssa, ptx, vector, x86-avx512, x86-avx2, "
                                   "arm64", o.target);
  return emit(&o);
}
