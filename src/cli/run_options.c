/* run_options.c - the command line of `hologram run`. */
#include "cli/run.h"

#include <stdlib.h>
#include <string.h>

typedef struct option_row {
  const char *name;
  run_option option;
  const char *value; /* what it takes; NULL: nothing */
} option_row;

static const option_row rows[] = {
    {"--buffer", RUN_BUFFER, "NAME=FILE.npy"}, {"--out", RUN_OUT, "NAME=FILE.npy"},
    {"--scalar", RUN_SCALAR, "NAME=VALUE"},    {"--table", RUN_TABLE, "NAME:ENTRY=FILE.npy"},
    {"--pool", RUN_POOL, "NAME=BYTES"},        {"--size", RUN_SIZE, "NAME=COUNT"},
    {"--lanes", RUN_LANES, "N"},               {"--grid", RUN_GRID, "X[,Y[,Z]]"},
    {"--block", RUN_BLOCK, "X[,Y[,Z]]"},       {"--backend", RUN_BACKEND, "a backend, or auto"},
    {"--engine", RUN_ENGINE, "an engine"},     {"--step-limit", RUN_STEP_LIMIT, "N"},
    {"--repeat", RUN_REPEAT, "N"},             {"--time", RUN_TIME, NULL},
    {"--json", RUN_JSON, NULL},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

/* NAME=VALUE or NAME:ENTRY=VALUE. */
static int parse_item(const option_row *row, const char *text, run_item *item) {
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text || equals[1] == '\0')
    return cli_usage_error("run", "%s takes %s, not '%s'", row->name, row->value, text);
  size_t length = (size_t)(equals - text);
  const char *colon = memchr(text, ':', length);
  if (colon != NULL) {
    char number[24] = "";
    uint64_t entry = 0;
    size_t digits = (size_t)(equals - colon - 1);
    if (digits < sizeof number) memcpy(number, colon + 1, digits);
    if (digits >= sizeof number || !cli_parse_u64(number, &entry) || entry > UINT32_MAX)
      return cli_usage_error("run", "%s '%s': what follows ':' must be the number of a table's entry", row->name, text);
    item->has_entry = 1;
    item->entry = (uint32_t)entry;
    length = (size_t)(colon - text);
  } else if (row->option == RUN_TABLE) {
    return cli_usage_error("run", "--table takes NAME:ENTRY=FILE.npy, not '%s'", text);
  }
  if (length > ATLAS_MAX_NAME)
    return cli_usage_error("run", "%s: a name has at most %d characters", row->name, ATLAS_MAX_NAME);
  memcpy(item->name, text, length);
  item->name[length] = '\0';
  item->option = row->option;
  item->value = equals + 1;
  return CLI_OK;
}

/* X, X,Y or X,Y,Z; every size at least 1. */
static int parse_sizes(const option_row *row, const char *text, uint32_t sizes[3]) {
  const char *next = text;
  for (int d = 0; d < 3; d++) sizes[d] = 1;
  for (int d = 0; d < 3; d++) {
    char number[24] = "";
    uint64_t value = 0;
    size_t length = strcspn(next, ",");
    if (length < sizeof number) memcpy(number, next, length);
    if (length >= sizeof number || !cli_parse_u64(number, &value) || value == 0 || value > UINT32_MAX) break;
    sizes[d] = (uint32_t)value;
    next += length;
    if (*next == '\0') return CLI_OK;
    next++;
  }
  return cli_usage_error("run", "%s takes up to three positive numbers X[,Y[,Z]], not '%s'", row->name, text);
}

static int parse_backend(const char *text, hg_backend_id *backend) {
  if (hg_backend_by_name(text, backend) == HG_OK) return CLI_OK;
  return cli_usage_error("run", "--backend: %s", hg_last_error());
}

static int parse_number(const option_row *row, const char *text, uint64_t *value) {
  if (cli_parse_u64(text, value)) return CLI_OK;
  return cli_usage_error("run", "%s takes a number, not '%s'", row->name, text);
}

static int parse_option(const option_row *row, const char *value, run_options *options) {
  switch (row->option) {
  case RUN_BUFFER:
  case RUN_OUT:
  case RUN_SCALAR:
  case RUN_TABLE:
  case RUN_POOL:
  case RUN_SIZE: return parse_item(row, value, &options->items[options->item_count++]);
  case RUN_LANES: options->has_lanes = 1; return parse_number(row, value, &options->lanes);
  case RUN_GRID: return parse_sizes(row, value, options->grid);
  case RUN_BLOCK: return parse_sizes(row, value, options->block);
  case RUN_BACKEND: return parse_backend(value, &options->backend);
  case RUN_STEP_LIMIT:
    if (parse_number(row, value, &options->step_limit) != CLI_OK) return CLI_USAGE;
    if (options->step_limit == 0) return cli_usage_error("run", "--step-limit must be at least 1");
    return CLI_OK;
  case RUN_ENGINE:
    options->engine = value;
    if (value[0] == '\0') return cli_usage_error("run", "--engine needs a name");
    return CLI_OK;
  case RUN_REPEAT:
    if (parse_number(row, value, &options->repeat) != CLI_OK) return CLI_USAGE;
    if (options->repeat == 0 || options->repeat > RUN_MOST_REPEATS)
      return cli_usage_error("run", "--repeat takes a number from 1 to %d, not '%s'", RUN_MOST_REPEATS, value);
    return CLI_OK;
  case RUN_TIME: options->time = 1; return CLI_OK;
  case RUN_JSON: options->json = 1; return CLI_OK;
  }
  return CLI_USAGE;
}

static int check_together(const run_options *options) {
  if (options->program == NULL) return cli_usage_error("run", "which program? hologram run PROGRAM [OPTIONS]");
  if (options->has_lanes && (options->grid[0] != 0 || options->block[0] != 0))
    return cli_usage_error("run", "--lanes excludes --grid and --block");
  if (options->block[0] != 0 && options->grid[0] == 0) return cli_usage_error("run", "--block needs --grid");
  return CLI_OK;
}

int run_parse_options(int argc, char **argv, run_options *options) {
  memset(options, 0, sizeof *options);
  options->items = calloc((size_t)argc, sizeof *options->items);
  if (options->items == NULL) return cli_fail(CLI_BAD_INPUT, "out of memory");
  for (int i = 1; i < argc; i++) {
    const char *argument = argv[i];
    if (!cli_is_option(argument)) {
      if (options->program != NULL)
        return cli_usage_error("run", "one program at a time: '%s' comes after '%s'", argument, options->program);
      options->program = argument;
      continue;
    }
    size_t length = strcspn(argument, "="), r = 0;
    while (r < ROW_COUNT && (strlen(rows[r].name) != length || memcmp(rows[r].name, argument, length) != 0)) r++;
    if (r == ROW_COUNT) return cli_usage_error("run", "there is no option '%.*s'", (int)length, argument);
    const char *value = argument[length] == '=' ? argument + length + 1 : NULL;
    if (rows[r].value == NULL && value != NULL) return cli_usage_error("run", "%s takes no value", rows[r].name);
    if (rows[r].value != NULL && value == NULL) {
      if (i + 1 >= argc) return cli_usage_error("run", "%s needs %s", rows[r].name, rows[r].value);
      value = argv[++i];
    }
    if (parse_option(&rows[r], value, options) != CLI_OK) return CLI_USAGE;
  }
  return check_together(options);
}
