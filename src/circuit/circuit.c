/* circuit.c - the public side of circuits. */
#include "circuit/parts.h"

#include "base/abi.h"
#include "base/sha256.h"

#include <string.h>

static hg_status new_circuit(const hg_allocator *allocator, hg_circuit **out) {
  hg_circuit *circuit = *out = hg_allocate(allocator, 1, sizeof *circuit);
  if (circuit == NULL) return hg_fail_memory("a circuit", sizeof *circuit);
  circuit->allocator = *allocator;
  atomic_init(&circuit->references, 1);
  circuit->steps.element_size = circuit->canonical.element_size = sizeof(circuit_step);
  circuit->form.terms.element_size = sizeof(circuit_term);
  return HG_OK;
}

hg_circuit *hg_circuit_retain(hg_circuit *circuit) {
  if (circuit != NULL) atomic_fetch_add_explicit(&circuit->references, 1, memory_order_relaxed);
  return circuit;
}

void hg_circuit_release(hg_circuit *circuit) {
  if (circuit == NULL || atomic_fetch_sub_explicit(&circuit->references, 1, memory_order_acq_rel) != 1) return;
  hg_allocator allocator = circuit->allocator;
  hg_array_release(&allocator, &circuit->steps);
  hg_array_release(&allocator, &circuit->canonical);
  hg_array_release(&allocator, &circuit->form.terms);
  hg_release(&allocator, circuit);
}

/* What follows from the form. */
static hg_status derive(hg_circuit *circuit) {
  static const char version[] = "hologram circuit 1\n";
  hg_array text = {.element_size = 1};
  HG_TRY(hg_circuit_schedule(&circuit->allocator, &circuit->form, &circuit->canonical, &circuit->temporaries));
  HG_TRY(hg_circuit_write_program(&circuit->allocator, &circuit->form, &circuit->layout, NULL));
  hg_status status = hg_circuit_print_terms(&circuit->allocator, &circuit->form, &text);
  hg_sha256 hash;
  hg_sha256_begin(&hash);
  hg_sha256_add(&hash, version, sizeof version - 1);
  if (status == HG_OK) hg_sha256_add(&hash, text.data, text.count - 1);
  hg_sha256_end(&hash, circuit->hash);
  hg_array_release(&circuit->allocator, &text);
  return status;
}

/* Gives a circuit whose form is there to the caller, complete; releases it after a failure. */
static hg_status finish(hg_circuit *circuit, hg_status status, hg_circuit **out) {
  if (status == HG_OK) status = derive(circuit);
  if (status == HG_OK) *out = circuit;
  else hg_circuit_release(circuit);
  return status;
}

hg_status hg_circuit_parse(const hg_allocator *allocator, const char *text, size_t length, const char *source_name,
                           hg_circuit **out) {
  hg_allocator resolved;
  hg_circuit *circuit;
  if (out == NULL || (text == NULL && length > 0))
    return hg_fail(HG_INVALID_ARGUMENT, "hg_circuit_parse: an argument is NULL");
  *out = NULL;
  HG_TRY(hg_allocator_resolve(allocator, &resolved));
  HG_TRY(new_circuit(&resolved, &circuit));
  circuit_text read = {.allocator = &circuit->allocator, .source = source_name != NULL ? source_name : "circuit",
                       .text = text, .length = length, .nodes = {.element_size = sizeof(circuit_node)}};
  hg_status status = hg_circuit_read(&read);
  if (status == HG_OK) status = hg_circuit_expand(&read, &circuit->steps, circuit->laws);
  if (status == HG_OK) status = hg_circuit_terms_of(&read, &circuit->steps, &circuit->form, circuit->laws);
  hg_array_release(&circuit->allocator, &read.nodes);
  return finish(circuit, status, out);
}

/* A class's final content comes from one class, and from no other's: 0 and a sentence if not. */
static hg_status invert(const circuit_form *form, circuit_form *inverse) {
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) inverse->final[c] = (circuit_content){CIRCUIT_NONE, 0};
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) {
    circuit_content f = form->final[c];
    if (f.value >= CIRCUIT_CLASSES)
      return hg_fail(HG_UNSUPPORTED, "the circuit has no inverse: c%02u ends as the result of an operation; only mark, "
                     "swap, and copies that lose nothing can be undone", (unsigned)c);
    inverse->final[f.value] = (circuit_content){c, f.mask};
  }
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++)
    if (inverse->final[c].value == CIRCUIT_NONE)
      return hg_fail(HG_UNSUPPORTED, "the circuit has no inverse: the content of c%02u is lost", (unsigned)c);
  return HG_OK;
}

hg_status hg_circuit_inverse(const hg_circuit *circuit, hg_circuit **out) {
  hg_circuit *inverse;
  uint32_t temporaries;
  if (circuit == NULL || out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_circuit_inverse: an argument is NULL");
  *out = NULL;
  HG_TRY(new_circuit(&circuit->allocator, &inverse));
  hg_status status = invert(&circuit->form, &inverse->form);
  if (status == HG_OK) /* nobody wrote it: as its canonical form has it */
    status = hg_circuit_schedule(&inverse->allocator, &inverse->form, &inverse->steps, &temporaries);
  return finish(inverse, status, out);
}

typedef enum text_kind { CANONICAL, TERMS, STEPS } text_kind;

static hg_status print(text_kind kind, const hg_allocator *allocator, const hg_circuit *circuit, char **text,
                       size_t *length) {
  hg_allocator own;
  hg_array printed = {.element_size = 1};
  if (circuit == NULL || text == NULL) return hg_fail(HG_INVALID_ARGUMENT, "a circuit's text: an argument is NULL");
  *text = NULL;
  HG_TRY(hg_allocator_resolve(allocator, &own));
  const hg_array *steps = kind == STEPS ? &circuit->steps : &circuit->canonical;
  hg_status status = kind == TERMS ? hg_circuit_print_terms(&own, &circuit->form, &printed)
                                   : hg_circuit_print_steps(&own, steps, &printed);
  if (status != HG_OK) return hg_array_release(&own, &printed), status;
  *text = printed.data;
  if (length != NULL) *length = printed.count - 1;
  return HG_OK;
}

hg_status hg_circuit_canonical(const hg_allocator *allocator, const hg_circuit *circuit, char **text, size_t *length) {
  return print(CANONICAL, allocator, circuit, text, length);
}
hg_status hg_circuit_terms(const hg_allocator *allocator, const hg_circuit *circuit, char **text, size_t *length) {
  return print(TERMS, allocator, circuit, text, length);
}
hg_status hg_circuit_steps(const hg_allocator *allocator, const hg_circuit *circuit, char **text, size_t *length) {
  return print(STEPS, allocator, circuit, text, length);
}

void hg_circuit_hash(const hg_circuit *circuit, uint8_t digest[HG_CIRCUIT_HASH_BYTES]) {
  memcpy(digest, circuit->hash, HG_CIRCUIT_HASH_BYTES);
}

hg_status hg_circuit_query(const hg_circuit *circuit, hg_circuit_report *report) {
  if (circuit == NULL || report == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_circuit_query: an argument is NULL");
  hg_circuit_report own = {.size = sizeof own, .steps = circuit->steps.count, .temporaries = circuit->temporaries,
                           .canonical_steps = circuit->canonical.count, .operations = circuit->form.terms.count,
                           .components = circuit->layout.components, .lanes = circuit->layout.lanes};
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) own.changed += !circuit_keeps(&circuit->form, c);
  return HG_WRITE(hg_circuit_report, report, &own);
}

hg_status hg_circuit_law_query(const hg_circuit *circuit, size_t index, hg_circuit_law *law) {
  static const char *const texts[][2] = {
#define LAW(id, name, statement) {name, statement},
#include "circuit/laws.def"
#undef LAW
  };
  if (circuit == NULL || law == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_circuit_law_query: an argument is NULL");
  if (index >= LAW_COUNT) return hg_fail(HG_NOT_FOUND, "there are %d laws of circuits", LAW_COUNT);
  const hg_circuit_law own = {.size = sizeof own, .name = texts[index][0], .statement = texts[index][1],
                              .count = circuit->laws[index]};
  return HG_WRITE(hg_circuit_law, law, &own);
}

hg_status hg_circuit_compile(const hg_allocator *allocator, const hg_circuit *circuit, atlas_program **out) {
  hg_allocator own;
  circuit_layout layout;
  if (circuit == NULL || out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_circuit_compile: an argument is NULL");
  *out = NULL;
  HG_TRY(hg_allocator_resolve(allocator, &own));
  return hg_circuit_write_program(&own, &circuit->form, &layout, out);
}

/* A byte is read first, because that waits for what streams do to the pool. */
static hg_status launch(hg_kernel *kernel, hg_executor *executor, uint32_t lanes, hg_launch_report *report) {
  uint8_t byte;
  hg_binding binding = {.name = "pool"};
  HG_TRY(hg_boundary_read(executor, 0, &byte, sizeof byte));
  HG_TRY(hg_boundary_buffer(executor, 0, ATLAS_BOUNDARY_POOL_BYTES, &binding.buffer));
  const hg_launch_desc desc = {.size = sizeof desc, .lanes = lanes, .bindings = &binding, .binding_count = 1,
                               .binding_size = sizeof binding};
  hg_status status = hg_launch(kernel, &desc, report);
  hg_buffer_release(binding.buffer);
  return status;
}

hg_status hg_circuit_run(const hg_circuit *circuit, hg_executor *executor, hg_launch_report *report) {
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  if (circuit == NULL || executor == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_circuit_run: an argument is NULL");
  HG_TRY(hg_circuit_compile(&circuit->allocator, circuit, &program));
  hg_status status = hg_kernel_create(executor, program, &kernel);
  if (status == HG_OK) status = launch(kernel, executor, circuit->layout.lanes, report);
  hg_kernel_release(kernel);
  atlas_program_release(program);
  return status;
}
