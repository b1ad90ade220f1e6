/* cmd_circuit.c - `hologram circuit`: the canonical form of a circuit over the 96 classes, what it means, and a run. */
#include "cli/cli.h"

#include "hologram/circuit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 1200 };

typedef struct circuit_options {
  const char *file, *text, *input, *output, *engine;
  hg_backend_id backend;
  int canonical, explain, run, json;
} circuit_options;

/* ---- options ----------------------------------------------------------------------------------------------------- */

static int parse_options(int argc, char **argv, circuit_options *o) {
  const struct {
    const char *name;
    int *flag;
    const char **value;
  } rows[] = {{"--canonical", &o->canonical, NULL}, {"--explain", &o->explain, NULL}, {"--run", &o->run, NULL},
              {"--json", &o->json, NULL},           {"-e", NULL, &o->text},           {"--in", NULL, &o->input},
              {"--out", NULL, &o->output},          {"--engine", NULL, &o->engine},   {"--backend", NULL, NULL}};
  const char *backend = NULL;
  for (int i = 1; i < argc; i++) {
    size_t r = 0;
    if (!cli_is_option(argv[i])) {
      if (o->file != NULL)
        return cli_usage_error("circuit", "one circuit at a time: '%s' comes after '%s'", argv[i], o->file);
      o->file = argv[i];
      continue;
    }
    while (r < sizeof rows / sizeof rows[0] && strcmp(rows[r].name, argv[i]) != 0) r++;
    if (r == sizeof rows / sizeof rows[0]) return cli_usage_error("circuit", "there is no option '%s'", argv[i]);
    if (rows[r].flag != NULL) {
      *rows[r].flag = 1;
      continue;
    }
    if (i + 1 == argc) return cli_usage_error("circuit", "%s needs a value", argv[i]);
    *(rows[r].value != NULL ? rows[r].value : &backend) = argv[i + 1];
    i++;
  }
  if ((o->file == NULL) == (o->text == NULL))
    return cli_usage_error("circuit", "which circuit? hologram circuit FILE, or hologram circuit -e TEXT");
  if (o->canonical + o->explain + o->run > 1)
    return cli_usage_error("circuit", "one of --canonical, --explain and --run");
  if (!o->run && (o->input != NULL || o->output != NULL || o->engine != NULL || backend != NULL))
    return cli_usage_error("circuit", "--in, --out, --backend and --engine need --run");
  if (backend != NULL && hg_backend_by_name(backend, &o->backend) != HG_OK)
    return cli_usage_error("circuit", "--backend: %s", hg_last_error());
  return CLI_OK;
}

/* ---- reading and running ----------------------------------------------------------------------------------------- */

static hg_circuit *load(const circuit_options *o) {
  cli_bytes bytes = {0};
  char why[MESSAGE_BYTES];
  hg_circuit *circuit = NULL;
  hg_status status = HG_IO;
  if (o->text != NULL) status = hg_circuit_parse(NULL, o->text, strlen(o->text), "TEXT", &circuit);
  else if (cli_read_file(o->file, &bytes, why, sizeof why) != 0) cli_fail(CLI_BAD_INPUT, "%s: %s", o->file, why);
  else status = hg_circuit_parse(NULL, (const char *)bytes.data, bytes.count, o->file, &circuit);
  if (status != HG_OK && status != HG_IO) cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  free(bytes.data);
  return circuit;
}

/* The pool's first contents: those of the file, and zeros behind them. */
static int fill_pool(const circuit_options *o, hg_executor *executor) {
  cli_bytes bytes = {0};
  char why[MESSAGE_BYTES];
  if (o->input == NULL) return CLI_OK;
  int code = CLI_OK;
  if (cli_read_file(o->input, &bytes, why, sizeof why) != 0) code = cli_fail(CLI_BAD_INPUT, "%s: %s", o->input, why);
  else if (bytes.count > ATLAS_BOUNDARY_POOL_BYTES)
    code = cli_fail(CLI_BAD_INPUT, "%s: %zu bytes are more than the %d of the boundary pool", o->input, bytes.count,
                    ATLAS_BOUNDARY_POOL_BYTES);
  else if (hg_boundary_write(executor, 0, bytes.data, bytes.count) != HG_OK)
    code = cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  free(bytes.data);
  return code;
}

static int save_pool(const circuit_options *o, hg_executor *executor) {
  char why[MESSAGE_BYTES];
  if (o->output == NULL) return CLI_OK;
  uint8_t *bytes = malloc(ATLAS_BOUNDARY_POOL_BYTES);
  int code = CLI_OK;
  if (bytes == NULL) code = cli_fail(CLI_BAD_INPUT, "out of memory");
  else if (hg_boundary_read(executor, 0, bytes, ATLAS_BOUNDARY_POOL_BYTES) != HG_OK)
    code = cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  else if (cli_write_file(o->output, bytes, ATLAS_BOUNDARY_POOL_BYTES, why, sizeof why) != 0)
    code = cli_fail(CLI_BAD_INPUT, "%s: %s", o->output, why);
  free(bytes);
  return code;
}

static int run(const circuit_options *o, const hg_circuit *circuit, hg_launch_report *report) {
  const hg_executor_desc desc = {.size = sizeof desc, .backend = o->backend, .engine = o->engine};
  hg_executor *executor = NULL;
  if (hg_executor_create(&desc, &executor) != HG_OK) return cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  int code = fill_pool(o, executor);
  if (code == CLI_OK && hg_circuit_run(circuit, executor, report) != HG_OK)
    code = cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  if (code == CLI_OK) code = save_pool(o, executor);
  hg_executor_release(executor);
  return code;
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static void print_hash(const hg_circuit *circuit) {
  uint8_t digest[HG_CIRCUIT_HASH_BYTES];
  hg_circuit_hash(circuit, digest);
  for (int i = 0; i < HG_CIRCUIT_HASH_BYTES; i++) printf("%02x", digest[i]);
}

/* The terms, what the circuit is in numbers, and the laws that applied. */
static void explain(const hg_circuit *circuit, const char *terms) {
  hg_circuit_report r = {.size = sizeof r};
  hg_circuit_law law = {.size = sizeof law};
  (void)hg_circuit_query(circuit, &r);
  printf("%s\nhash: ", terms);
  print_hash(circuit);
  printf("\n%" PRIu64 " steps as written, %" PRIu64 " in canonical form; %" PRIu32 " classes change; %" PRIu64
         " operations; %" PRIu32 " temporaries; %" PRIu32 " components, %" PRIu32 " lanes\n",
         r.steps, r.canonical_steps, r.changed, r.operations, r.temporaries, r.components, r.lanes);
  for (size_t i = 0; hg_circuit_law_query(circuit, i, &law) == HG_OK; i++)
    if (law.count > 0) printf("%6" PRIu64 "  %s: %s\n", law.count, law.name, law.statement);
}

static void print_terms_json(char *terms) {
  const char *separator = "";
  for (char *line = terms; *line != '\0';) { /* lines "name = term" */
    char *end = strchr(line, '\n'), *equals = strstr(line, " = ");
    *end = *equals = '\0';
    printf("%s\"%s\":\"%s\"", separator, line, equals + 3);
    separator = ",";
    line = end + 1;
  }
}

static void print_json(const hg_circuit *circuit, const char *canonical, char *terms, const hg_launch_report *ran) {
  hg_circuit_report r = {.size = sizeof r};
  hg_circuit_law law = {.size = sizeof law};
  const char *separator = "";
  (void)hg_circuit_query(circuit, &r);
  printf("{\"canonical\":\"%s\",\"hash\":\"", canonical);
  print_hash(circuit);
  printf("\",\"terms\":{");
  print_terms_json(terms);
  printf("},\"steps\":%" PRIu64 ",\"canonical_steps\":%" PRIu64 ",\"operations\":%" PRIu64 ",\"changed\":%" PRIu32
         ",\"temporaries\":%" PRIu32 ",\"components\":%" PRIu32 ",\"lanes\":%" PRIu32 ",\"laws\":{",
         r.steps, r.canonical_steps, r.operations, r.changed, r.temporaries, r.components, r.lanes);
  for (size_t i = 0; hg_circuit_law_query(circuit, i, &law) == HG_OK; i++) {
    if (law.count == 0) continue;
    printf("%s\"%s\":%" PRIu64, separator, law.name, law.count);
    separator = ",";
  }
  printf("},\"run\":");
  if (ran == NULL) printf("null");
  else
    printf("{\"backend\":\"%s\",\"engine\":\"%s\",\"lanes\":%" PRIu64 ",\"nanoseconds\":%" PRIu64 "}", ran->backend,
           ran->engine, ran->lanes, ran->nanoseconds);
  printf("}\n");
}

static void print_run(const hg_launch_report *r) {
  uint64_t microseconds = (r->nanoseconds + 500) / 1000;
  printf("%" PRIu64 ".%03" PRIu64 " ms for %" PRIu64 " lanes on %s (%s engine)\n", microseconds / 1000,
         microseconds % 1000, r->lanes, r->backend, r->engine);
}

static int print_all(const circuit_options *o, const hg_circuit *circuit, const hg_launch_report *ran) {
  char *canonical = NULL, *terms = NULL;
  int code = CLI_OK;
  if (hg_circuit_canonical(NULL, circuit, &canonical, NULL) != HG_OK ||
      hg_circuit_terms(NULL, circuit, &terms, NULL) != HG_OK)
    code = cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  else if (o->json) print_json(circuit, canonical, terms, ran);
  else if (o->explain) explain(circuit, terms);
  else if (o->run) print_run(ran);
  else printf("%s\n", canonical);
  atlas_memory_release(NULL, canonical);
  atlas_memory_release(NULL, terms);
  return code;
}

int cmd_circuit(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return cli_print_help(stdout, "circuit") ? CLI_OK : CLI_USAGE;
  circuit_options options = {.file = NULL};
  hg_launch_report report = {.size = sizeof report};
  int code = parse_options(argc, argv, &options);
  if (code != CLI_OK) return code;
  hg_circuit *circuit = load(&options);
  if (circuit == NULL) return CLI_BAD_INPUT;
  if (options.run) code = run(&options, circuit, &report);
  if (code == CLI_OK) code = print_all(&options, circuit, options.run ? &report : NULL);
  hg_circuit_release(circuit);
  return code;
}
