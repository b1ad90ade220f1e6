/* cmd_canon.c - `hologram canon`, `hash` and `equal`: what a program is, however it was written. */
#include "cli/cli.h"

#include <string.h>

enum { MESSAGE_BYTES = 1200 };

/* Any failure is a sentence on stderr and NULL. */
static atlas_program *load(const char *path) {
  atlas_program *program = NULL;
  hg_status status = HG_OK;
  char why[MESSAGE_BYTES];
  if (cli_load_program(path, &program, &status, why, sizeof why) != 0) cli_fail(CLI_BAD_INPUT, "%s", why);
  return program;
}

static int wants_help(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return 1;
  return 0;
}

/* ---- hash -------------------------------------------------------------------------------------------------------- */

static int print_hash(const char *path, const atlas_program *program) {
  uint8_t digest[ATLAS_HASH_BYTES];
  if (atlas_program_hash(program, digest) != HG_OK) return cli_fail(CLI_BAD_INPUT, "%s: %s", path, hg_last_error());
  for (int i = 0; i < ATLAS_HASH_BYTES; i++) printf("%02x", digest[i]);
  printf("  %s\n", path);
  return CLI_OK;
}

int cmd_hash(int argc, char **argv) {
  int code = CLI_OK;
  if (wants_help(argc, argv)) return cli_print_help(stdout, "hash") ? CLI_OK : CLI_USAGE;
  if (argc < 2) return cli_usage_error("hash", "which program? hologram hash PROGRAM...");
  for (int i = 1; i < argc; i++)
    if (cli_is_option(argv[i])) return cli_usage_error("hash", "there is no option '%s'", argv[i]);
  for (int i = 1; i < argc; i++) {
    atlas_program *program = load(argv[i]);
    if (program == NULL || print_hash(argv[i], program) != CLI_OK) code = CLI_BAD_INPUT;
    atlas_program_release(program);
  }
  return code;
}

/* ---- canon ------------------------------------------------------------------------------------------------------- */

static int print_canonical(const char *path) {
  char *text = NULL;
  size_t length = 0;
  atlas_program *program = load(path), *canonical = NULL;
  if (program == NULL) return CLI_BAD_INPUT;
  int code = CLI_OK;
  if (atlas_canonicalise(NULL, program, &canonical) != HG_OK || atlas_print(NULL, canonical, &text, &length) != HG_OK)
    code = cli_fail(CLI_BAD_INPUT, "%s: %s", path, hg_last_error());
  else if (fwrite(text, 1, length, stdout) != length)
    code = cli_fail(CLI_BAD_INPUT, "cannot write to the standard output");
  atlas_memory_release(NULL, text);
  atlas_program_release(canonical);
  atlas_program_release(program);
  return code;
}

int cmd_canon(int argc, char **argv) {
  if (wants_help(argc, argv)) return cli_print_help(stdout, "canon") ? CLI_OK : CLI_USAGE;
  if (argc == 2 && !cli_is_option(argv[1])) return print_canonical(argv[1]);
  return cli_usage_error("canon", "one program: hologram canon PROGRAM");
}

/* ---- equal ------------------------------------------------------------------------------------------------------- */

static size_t line_length(const char *text) { return strcspn(text, "\n"); }

/* Prints the first lines in which the canonical texts differ. */
static void print_parting(const char *path_a, const char *a, const char *path_b, const char *b) {
  unsigned long line = 1;
  while (*a != '\0' && line_length(a) == line_length(b) && memcmp(a, b, line_length(a)) == 0) {
    a += line_length(a) + (a[line_length(a)] == '\n');
    b += line_length(b) + (b[line_length(b)] == '\n');
    line++;
  }
  printf("different: the canonical forms part at line %lu\n", line);
  printf("  %s: %.*s\n", path_a, (int)line_length(a), *a != '\0' ? a : "");
  printf("  %s: %.*s\n", path_b, (int)line_length(b), *b != '\0' ? b : "");
}

static int compare(const char *paths[2], const atlas_program *programs[2]) {
  uint8_t digests[2][ATLAS_HASH_BYTES];
  char *texts[2] = {NULL, NULL};
  size_t length = 0;
  int code = CLI_OK;
  for (int i = 0; i < 2 && code == CLI_OK; i++)
    if (atlas_program_hash(programs[i], digests[i]) != HG_OK ||
        atlas_print_canonical(NULL, programs[i], &texts[i], &length) != HG_OK)
      code = cli_fail(CLI_USAGE, "%s: %s", paths[i], hg_last_error());
  if (code == CLI_OK && memcmp(digests[0], digests[1], ATLAS_HASH_BYTES) != 0) {
    print_parting(paths[0], texts[0], paths[1], texts[1]);
    code = CLI_BAD_INPUT;
  } else if (code == CLI_OK) {
    printf("equal\n");
  }
  for (int i = 0; i < 2; i++) atlas_memory_release(NULL, texts[i]);
  return code;
}

int cmd_equal(int argc, char **argv) {
  if (wants_help(argc, argv)) return cli_print_help(stdout, "equal") ? CLI_OK : CLI_USAGE;
  if (argc != 3 || cli_is_option(argv[1]) || cli_is_option(argv[2]))
    return cli_usage_error("equal", "two programs: hologram equal A B");
  const char *paths[2] = {argv[1], argv[2]};
  atlas_program *programs[2] = {load(argv[1]), load(argv[2])};
  int code = CLI_USAGE; /* like cmp and diff: 2 is trouble, 1 is a difference */
  if (programs[0] != NULL && programs[1] != NULL)
    code = compare(paths, (const atlas_program *[2]){programs[0], programs[1]});
  atlas_program_release(programs[0]);
  atlas_program_release(programs[1]);
  return code;
}
