/* cli.h - what the subcommands of `hologram` share. The command uses the public headers only, and the
 * shared library. */
#ifndef HG_CLI_H
#define HG_CLI_H

#include "hologram/atlas.h"
#include "hologram/base.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes. */
enum { CLI_OK = 0, CLI_BAD_INPUT = 1, CLI_USAGE = 2, CLI_FAULT = 3 };

/* Subcommands: argv[0] is the subcommand's name. Each returns an exit code. */
int cmd_run(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_asm(int argc, char **argv);
int cmd_dis(int argc, char **argv);
int cmd_canon(int argc, char **argv);
int cmd_hash(int argc, char **argv);
int cmd_equal(int argc, char **argv);
int cmd_emit(int argc, char **argv);
int cmd_cache(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_circuit(int argc, char **argv);

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* "hologram: ..." on stderr; returns the code, so that a failing function can end in `return cli_fail(...)`. */
int cli_fail(int code, const char *format, ...) HG_PRINTF(2, 3);
/* The same for a wrong command line: adds where help is. */
int cli_usage_error(const char *command, const char *format, ...) HG_PRINTF(2, 3);
/* The manual page of a subcommand, or of the whole command for NULL. 0 where there is none. */
int cli_print_help(FILE *file, const char *command);

enum { CLI_PAGE_PIECES = 3 };
typedef struct cli_page {
  const char *command;               /* NULL: the whole command */
  const char *text[CLI_PAGE_PIECES]; /* in pieces: a C compiler need not take more than 4095 characters in one */
} cli_page;
const cli_page *cli_help_page(size_t index); /* in the order in which --help lists them; NULL past the last */
int cli_is_help(const char *argument); /* --help, -h */
/* -x, --x; not "-", which is the standard input where a program is read. */
int cli_is_option(const char *argument);

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* The whole text as a number, decimal or 0x hexadecimal; 0 if it is none or too large. */
int cli_parse_u64(const char *text, uint64_t *value);

/* A JSON string with its quotes; null for NULL. */
void cli_json_string(FILE *file, const char *text);

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef struct cli_bytes {
  uint8_t *data; /* free() it */
  size_t count, capacity;
} cli_bytes;

/* A path in UTF-8, as the library takes it: on Windows arguments are in the code page of the system. In `utf8`, or
 * itself. */
enum { CLI_PATH_BYTES = 4096 };
const char *cli_path(const char *path, char utf8[CLI_PATH_BYTES]);
/* Writes a file; one that is new is removed again where that fails. 0, or -1 with the reason. */
int cli_write_file(const char *path, const void *bytes, size_t byte_count, char *why, size_t why_bytes);

/* Reads a file of what a program may take at most; "-" is the standard input. 0, or -1 with the reason. */
int cli_read_file(const char *path, cli_bytes *bytes, char *why, size_t why_bytes);

/* Reads a program in either form; "-" is the standard input. 0, or -1 with the reason, which names the file, and the
 * cause in *status. */
int cli_load_program(const char *path, atlas_program **out, hg_status *status, char *why, size_t why_bytes);

#endif
