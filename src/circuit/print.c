/* print.c - steps and terms as text. */
#include "circuit/parts.h"

#include <stdio.h>
#include <string.h>

/* Appends to a text whose allocations may fail: *has_memory. */
HG_PRINTF(4, 5)
static void put(const hg_allocator *allocator, hg_array *text, int *has_memory, const char *format, ...) {
  if (!*has_memory) return;
  va_list arguments;
  va_start(arguments, format);
  *has_memory = hg_array_print(allocator, text, format, arguments);
  va_end(arguments);
}

static hg_status end_text(const hg_allocator *allocator, hg_array *text, int has_memory) {
  if (has_memory && hg_array_append(allocator, text, "", 1) != NULL) return HG_OK;
  return hg_fail_memory("the text of a circuit", text->count + 1);
}

circuit_name hg_circuit_place_name(uint32_t place) {
  circuit_name name;
  if (place < CIRCUIT_CLASSES) snprintf(name.text, sizeof name.text, "c%02u", (unsigned)place);
  else snprintf(name.text, sizeof name.text, "t%u", (unsigned)(place - CIRCUIT_CLASSES));
  return name;
}

hg_status hg_circuit_print_steps(const hg_allocator *allocator, const hg_array *steps, hg_array *text) {
  int has_memory = 1;
  for (size_t i = steps->count; i-- > 0;) { /* the first stands last */
    const circuit_step *s = (const circuit_step *)steps->data + i;
    circuit_name name[3] = {{""}, {""}, {""}};
    for (int k = 0; k < circuit_place_count(s); k++) name[k] = hg_circuit_place_name(s->place[k]);
    const char *a = name[0].text, *b = name[1].text, *c = name[2].text, *rest = i > 0 ? " . " : "";
    int is_default = s->operation == CIRCUIT_ADD || s->operation == CIRCUIT_SUB;
    if (s->generator == CIRCUIT_MARK) put(allocator, text, &has_memory, "mark@%s%s", a, rest);
    else if (s->generator == CIRCUIT_COPY) put(allocator, text, &has_memory, "copy@%s->%s%s", a, b, rest);
    else if (s->generator == CIRCUIT_SWAP) put(allocator, text, &has_memory, "swap@%s<->%s%s", a, b, rest);
    else
      put(allocator, text, &has_memory, "%s%s%s@%s[%s,%s]%s", s->generator == CIRCUIT_MERGE ? "merge" : "split",
          is_default ? "" : ":", is_default ? "" : hg_circuit_operations[s->operation].name, a, b, c, rest);
  }
  return end_text(allocator, text, has_memory);
}

static circuit_name content_name(circuit_content content, const uint32_t *number) {
  circuit_name name;
  int is_class = content.value < CIRCUIT_CLASSES;
  unsigned shown = is_class ? content.value : number[content.value - CIRCUIT_CLASSES];
  if (content.mask == 0) snprintf(name.text, sizeof name.text, is_class ? "c%02u" : "v%u", shown);
  else snprintf(name.text, sizeof name.text, is_class ? "c%02u^0x%02x" : "v%u^0x%02x", shown, (unsigned)content.mask);
  return name;
}

/* Numbers the terms that get a line of their own: those that more needs than one class, as they are. */
static void number_terms(const circuit_form *form, uint32_t *number) {
  uint32_t next = 0;
  for (size_t i = 0; i < form->terms.count; i++) number[i] = 0;
  for (uint32_t i = 0; i < form->terms.count; i++) {
    const circuit_content operands[] = {circuit_term_at(form, i)->x, circuit_term_at(form, i)->y};
    for (int k = 0; k < 2; k++)
      if (operands[k].value >= CIRCUIT_CLASSES) number[operands[k].value - CIRCUIT_CLASSES] = 2;
  }
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) {
    circuit_content f = form->final[c];
    if (f.value >= CIRCUIT_CLASSES) number[f.value - CIRCUIT_CLASSES] += f.mask != 0 ? 2 : 1;
  }
  for (size_t i = 0; i < form->terms.count; i++) number[i] = number[i] > 1 ? next++ : CIRCUIT_NONE;
}

hg_status hg_circuit_print_terms(const hg_allocator *allocator, const circuit_form *form, hg_array *text) {
  int has_memory = 1;
  uint32_t terms = (uint32_t)form->terms.count, *number = hg_allocate(allocator, terms, sizeof *number);
  if (number == NULL) return hg_fail_memory("the text of a circuit", terms * sizeof *number);
  number_terms(form, number);
  for (uint32_t line = 0; line < terms + CIRCUIT_CLASSES; line++) { /* terms, then classes */
    int is_term = line < terms;
    const circuit_content left = {is_term ? CIRCUIT_CLASSES + line : line - terms, 0};
    const circuit_content right = is_term ? left : form->final[left.value];
    int has_number = right.value < CIRCUIT_CLASSES || number[right.value - CIRCUIT_CLASSES] != CIRCUIT_NONE;
    if (is_term ? !has_number : circuit_keeps(form, left.value)) continue;
    put(allocator, text, &has_memory, "%s = ", content_name(left, number).text);
    if (is_term || !has_number) {
      const circuit_term *t = circuit_term_at(form, right.value - CIRCUIT_CLASSES);
      put(allocator, text, &has_memory, "%s(%s, %s)\n", hg_circuit_operations[t->operation].name,
          content_name(t->x, number).text, content_name(t->y, number).text);
    } else {
      put(allocator, text, &has_memory, "%s\n", content_name(right, number).text);
    }
  }
  hg_release(allocator, number);
  return end_text(allocator, text, has_memory);
}
