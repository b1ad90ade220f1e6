/* cmd_emit.c - `hologram emit`: what the compiler makes of a program. Of the library's inside it uses the emitters. */
#include "cli/cli.h"

#include "backend/cpu/native.h"
#include "backend/cuda/emit_ptx.h"
#include "base/error.h"
#include "base/memory.h"
#include "compiler/canon.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"
#include "disassemble.h"

#include <string.h>

enum { MESSAGE_BYTES = 1200, OLDEST_CAPABILITY = 75, LINEAR_BLOCK_LANES = 256 };

typedef struct emit_options {
  const char *input, *target;
  uint64_t capability;
} emit_options;

typedef hg_status (*printer)(const emit_options *options, const atlas_program *program, char **text, size_t *length);

static hg_status print_ssa(const emit_options *options, const atlas_program *program, char **text, size_t *length) {
  (void)options;
  return atlas_print_ssa(NULL, program, text, length);
}

static hg_status print_ptx(const emit_options *options, const atlas_program *program, char **text, size_t *length) {
  hg_allocator allocator;
  hg_array bytes = {.element_size = 1};
  hg_ptx_info info;
  char name[ATLAS_MAX_NAME + 4];
  snprintf(name, sizeof name, "hg_%s", atlas_program_name(program));
  hg_ptx_options ptx = {.capability = (uint32_t)options->capability, .threads = LINEAR_BLOCK_LANES, .name = name};
  hg_status status = hg_allocator_resolve(NULL, &allocator);
  if (status == HG_OK) status = hg_ptx_compile(&allocator, program, &ptx, &bytes, &info);
  if (status != HG_OK) {
    hg_array_release(&allocator, &bytes);
    return status;
  }
  *text = bytes.data;
  *length = bytes.count - 1;
  return HG_OK;
}

/* ---- what the CPU runs ------------------------------------------------------------------------------------------- */

static const struct {
  const char *name, *machine; /* as objdump calls it */
  const native_target *target;
} machines[] = {{"x86-avx512", "i386:x86-64", &hg_native_avx512},
                {"x86-avx2", "i386:x86-64", &hg_native_avx2},
                {"arm64", "aarch64", &hg_native_neon}};

static hg_status print_code(const hg_allocator *allocator, const char *target, const atlas_program *program,
                            const hg_vector *vector, hg_array *text) {
  size_t m = 0, byte_count = 0;
  uint8_t *code = NULL;
  while (strcmp(machines[m].name, target) != 0) m++;
  HG_TRY(hg_native_emit(allocator, machines[m].target, program, vector, &code, &byte_count));
  hg_status status = cli_disassemble(allocator, machines[m].machine, code, byte_count, text);
  hg_release(allocator, code);
  return status;
}

static hg_status make_vector(const atlas_program *program, ssa_unit *unit, hg_vector *vector) {
  HG_TRY(hg_canonicalise(program, NULL, unit));
  HG_TRY(hg_expand_unplaced(unit, NULL));
  HG_TRY(hg_optimise(program, unit, NULL));
  return hg_vectorise(program, unit, vector);
}

static hg_status print_cpu(const emit_options *options, const atlas_program *program, char **text, size_t *length) {
  hg_allocator allocator;
  hg_array bytes = {.element_size = 1};
  ssa_unit unit;
  hg_vector vector = {0};
  HG_TRY(hg_allocator_resolve(NULL, &allocator));
  ir_ssa_init(&unit, &allocator);
  vector.allocator = allocator;
  hg_status status = make_vector(program, &unit, &vector);
  if (status == HG_OK)
    status = strcmp(options->target, "vector") == 0
                 ? hg_vector_print(program, &vector, &bytes)
                 : print_code(&allocator, options->target, program, &vector, &bytes);
  hg_vector_release(&vector);
  ir_ssa_release(&unit);
  if (status != HG_OK) {
    hg_array_release(&allocator, &bytes);
    return status;
  }
  *text = bytes.data;
  *length = bytes.count;
  return HG_OK;
}

static printer find_target(const char *name) {
  static const struct {
    const char *name;
    printer print;
  } targets[] = {{"ssa", print_ssa},         {"ptx", print_ptx},      {"vector", print_cpu},
                 {"x86-avx512", print_cpu}, {"x86-avx2", print_cpu}, {"arm64", print_cpu}};
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    if (strcmp(name, targets[i].name) == 0) return targets[i].print;
  return NULL;
}

static int emit(const emit_options *options, printer print) {
  atlas_program *program = NULL;
  char *text = NULL, why[MESSAGE_BYTES];
  size_t length = 0;
  hg_status status = HG_OK;
  int code = CLI_OK;
  if (cli_load_program(options->input, &program, &status, why, sizeof why) != 0)
    return cli_fail(CLI_BAD_INPUT, "%s", why);
  if (print(options, program, &text, &length) != HG_OK)
    code = cli_fail(CLI_BAD_INPUT, "%s: %s", options->input, hg_last_error());
  else if (fwrite(text, 1, length, stdout) != length)
    code = cli_fail(CLI_BAD_INPUT, "cannot write to the standard output");
  atlas_memory_release(NULL, text);
  atlas_program_release(program);
  return code;
}

/* 0, or the exit code of a wrong command line. */
static int parse_options(int argc, char **argv, emit_options *o) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--target") == 0 && i + 1 < argc) o->target = argv[++i];
    else if (strcmp(argv[i], "--capability") == 0 && i + 1 < argc) {
      if (!cli_parse_u64(argv[++i], &o->capability) || o->capability < OLDEST_CAPABILITY || o->capability > 999)
        return cli_usage_error("emit", "--capability is a number from %d on, such as 90 for 9.0, not '%s'",
                               OLDEST_CAPABILITY, argv[i]);
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
  printer print = find_target(o.target);
  if (print == NULL) return cli_usage_error("emit", "there is no target '%s'; this version has: ssa, ptx, vector, "
                                                "x86-avx512, x86-avx2, arm64", o.target);
  return emit(&o, print);
}
