/* fuzz_circuit.c - any text is refused with a sentence, or is a circuit whose canonical form is its own canonical form,
 * has the same hash and, where it has an inverse, is nothing together with it. What it becomes verifies. */
#include "fuzz.h"

#include "hologram/circuit.h"

static hg_circuit *parsed(const char *text, size_t length) {
  hg_circuit *circuit = NULL;
  PROMISE(hg_circuit_parse(NULL, text, length, "fuzz.circuit", &circuit) == HG_OK && circuit != NULL);
  return circuit;
}

static void check_same(const hg_circuit *a, const hg_circuit *b) {
  uint8_t hashes[2][HG_CIRCUIT_HASH_BYTES];
  char *texts[2] = {NULL, NULL};
  hg_circuit_hash(a, hashes[0]);
  hg_circuit_hash(b, hashes[1]);
  PROMISE(memcmp(hashes[0], hashes[1], sizeof hashes[0]) == 0);
  PROMISE(hg_circuit_canonical(NULL, a, &texts[0], NULL) == HG_OK);
  PROMISE(hg_circuit_canonical(NULL, b, &texts[1], NULL) == HG_OK);
  PROMISE(strcmp(texts[0], texts[1]) == 0);
  for (int i = 0; i < 2; i++) atlas_memory_release(NULL, texts[i]);
}

/* The inverse, and then the circuit. */
static void check_inverse(const hg_circuit *circuit, const hg_circuit *inverse) {
  char *texts[2] = {NULL, NULL}, *joined;
  size_t lengths[2];
  PROMISE(hg_circuit_canonical(NULL, circuit, &texts[0], &lengths[0]) == HG_OK);
  PROMISE(hg_circuit_canonical(NULL, inverse, &texts[1], &lengths[1]) == HG_OK);
  joined = malloc(lengths[0] + lengths[1] + 4);
  PROMISE(joined != NULL && (lengths[0] > 0) == (lengths[1] > 0));
  size_t length = (size_t)sprintf(joined, "%s%s%s", texts[0], lengths[0] > 0 ? " . " : "", texts[1]);
  hg_circuit *nothing = parsed(joined, length);
  hg_circuit_report report = {.size = sizeof report};
  PROMISE(hg_circuit_query(nothing, &report) == HG_OK && report.changed == 0 && report.canonical_steps == 0);
  hg_circuit_release(nothing);
  free(joined);
  for (int i = 0; i < 2; i++) atlas_memory_release(NULL, texts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hg_circuit *circuit = NULL, *inverse = NULL;
  atlas_program *program = NULL;
  char *text = NULL;
  size_t length = 0;
  if (hg_circuit_parse(NULL, (const char *)data, size, "fuzz.circuit", &circuit) != HG_OK) {
    PROMISE(circuit == NULL && hg_last_error()[0] != '\0');
    return 0;
  }
  hg_circuit_report report = {.size = sizeof report};
  PROMISE(hg_circuit_query(circuit, &report) == HG_OK);
  if (report.steps > 10000) return hg_circuit_release(circuit), 0; /* doubled again and again: too slow to print */
  PROMISE(hg_circuit_canonical(NULL, circuit, &text, &length) == HG_OK && text[length] == '\0');
  hg_circuit *again = parsed(text, length);
  check_same(circuit, again);
  if (hg_circuit_inverse(circuit, &inverse) == HG_OK) check_inverse(circuit, inverse);
  else PROMISE(inverse == NULL && hg_last_error()[0] != '\0');
  hg_status status = hg_circuit_compile(NULL, circuit, &program);
  PROMISE(status == HG_OK || status == HG_UNSUPPORTED);
  atlas_program_release(program);
  atlas_memory_release(NULL, text);
  hg_circuit_release(inverse);
  hg_circuit_release(again);
  hg_circuit_release(circuit);
  return 0;
}
