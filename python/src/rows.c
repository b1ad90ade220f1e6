/* rows.c - the rows of operations.def for Python: names of inputs and arguments, signatures and docstrings. */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_BYTES = 2000 };

row hgpy_rows[HGPY_ROW_COUNT];

hg_op hgpy_row_op(uint32_t number) { return hgpy_rows[number].op; }
const char *hgpy_row_name(uint32_t number) { return hgpy_rows[number].name; }
const char *hgpy_row_text(uint32_t number) { return hgpy_rows[number].text; }

int hgpy_row_find(const char *name) {
  for (int i = 0; i < HGPY_ROW_COUNT; i++)
    if (strcmp(hgpy_rows[i].name, name) == 0) return i;
  return -1;
}

PyObject *hgpy_row_inputs(PyObject *module, PyObject *name) {
  (void)module;
  const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  int number = text != NULL ? hgpy_row_find(text) : -1;
  if (number < 0) return PyErr_Format(PyExc_AttributeError, "no operation of the table is %R", name);
  const row *r = &hgpy_rows[number];
  PyObject *inputs = PyTuple_New(r->input_count);
  for (uint32_t i = 0; inputs != NULL && i < r->input_count; i++) {
    PyObject *input = Py_BuildValue("(si)", r->inputs[i].name, (int)r->kinds[i]);
    if (input == NULL || PyTuple_SetItem(inputs, (Py_ssize_t)i, input) < 0) Py_CLEAR(inputs);
  }
  return inputs;
}

/* ---- reading a row ----------------------------------------------------------------------------------------------- */

static const char *copy_word(const char *at, char *to) {
  size_t length = 0;
  while (*at == ' ' || *at == ',') at++;
  while ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') || *at == '_') {
    if (length + 1 < NAME_BYTES) to[length++] = *at;
    at++;
  }
  to[length] = '\0';
  return at;
}

static void read_inputs(row *r, const char *at) {
  while (*at != '\0' && r->input_count < MOST_INPUTS) {
    input_spec *input = &r->inputs[r->input_count];
    at = copy_word(at, input->name);
    if (input->name[0] == '\0') return;
    if (*at == '?') input->is_optional = true, at++;
    if (strncmp(at, "...", 3) == 0) r->is_variadic = true, at += 3;
    r->input_count++;
  }
}

/* The table's name in the words of the array API standard, if it has one. */
static const char *python_name(const row *r, const char *name) {
  static const char *const pairs[][2] = {
      {"axes", "axis"}, {"keep", "keepdims"}, {"type", "dtype"}, {"ddof", "correction"}};
  if (strcmp(r->name, "permute") == 0) return name;
  if (strcmp(r->name, "clip") == 0) return strcmp(name, "low") == 0 ? "min" : "max";
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    if (strcmp(pairs[i][0], name) == 0) return pairs[i][1];
  return name;
}

static void read_arguments(row *r, const char *at) {
  while (*at != '\0' && r->argument_count < HGPY_MOST_ARGUMENTS) {
    argument_spec *argument = &r->arguments[r->argument_count];
    at = copy_word(at, argument->name);
    if (argument->name[0] == '\0' || *at != '=') return;
    const char *first = ++at;
    for (int depth = 0; *at != '\0' && (depth > 0 || *at != ','); at++) depth += (*at == '[') - (*at == ']');
    argument->preset = (uint8_t)hgpy_preset_of(first, (size_t)(at - first));
    argument->choices = first;
    const char *name = python_name(r, argument->name);
    if (name != argument->name) snprintf(argument->name, NAME_BYTES, "%s", name);
    if (strcmp(name, "bounds") == 0) r->bounds = (uint8_t)(r->argument_count + 1);
    r->argument_count++;
  }
}

/* The part of "bool; any" that each input has: inputs of one part share a type. */
static void read_kinds(row *r, const char *types) {
  uint8_t kind = 0, last = 0;
  for (const char *at = types; *at != '\0'; at++) last = (uint8_t)(last + (*at == ';'));
  for (uint32_t i = 0; i < r->input_count; i++) {
    kind = (uint8_t)(i < last ? i : last);
    r->kinds[i] = kind;
    /* equal parts count as one */
    for (uint32_t k = 0; k < i; k++) {
      const char *a = types, *b = types;
      for (uint32_t skip = r->kinds[k]; skip > 0; skip--) a = strchr(a, ';') + 1;
      for (uint32_t skip = kind; skip > 0; skip--) b = strchr(b, ';') + 1;
      while (*a == ' ') a++;
      while (*b == ' ') b++;
      size_t length = strcspn(a, ";");
      if (length == strcspn(b, ";") && memcmp(a, b, length) == 0) r->kinds[i] = r->kinds[k];
    }
  }
}

bool hgpy_is_reduction(const row *r) {
  return r->argument_count > 1 && strcmp(r->arguments[0].name, "axis") == 0 &&
         strcmp(r->arguments[r->argument_count - 1].name, "keepdims") == 0;
}

bool hgpy_has_type(const row *r) {
  static const char *const others[] = {"any",           "all",       "argmin",   "argmax",
                                       "count_nonzero", "nanargmin", "nanargmax"};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (strcmp(r->name, others[i]) == 0) return false;
  return true;
}

/* ---- docstrings -------------------------------------------------------------------------------------------------- */

static size_t add_text(char *text, size_t used, const char *format, const char *a, const char *b) {
  if (used >= TEXT_BYTES) return used;
  return used + (size_t)snprintf(text + used, TEXT_BYTES - used, format, a, b);
}

static const struct {
  const char *call, *result;
} examples[HGPY_ROW_COUNT] = {
#define EXAMPLE(id, call, result) [HGPY_ROW_##id] = {call, result},
#include "examples.def"
#undef EXAMPLE
};

/* Memory that lives as long as the process, because a PyMethodDef points to it. */
static char *write_text(const row *r, const hg_op_info *info, bool is_method) {
  char text[TEXT_BYTES], value[64];
  size_t used = add_text(text, 0, "%s(%s", r->name, "");
  const char *comma = "";
  for (uint32_t i = 0; i < r->input_count; i++, comma = ", ") {
    if (is_method && i == 0) used = add_text(text, used, "%s%s", "", "$self, /");
    else if (r->is_variadic) used = add_text(text, used, "%s*%s", comma, r->inputs[i].name);
    else used = add_text(text, used, r->inputs[i].is_optional ? "%s%s=None" : "%s%s", comma, r->inputs[i].name);
  }
  for (uint32_t i = 0; i < r->argument_count; i++, comma = ", ") {
    used = add_text(text, used, "%s%s", comma, r->arguments[i].name);
    used = add_text(text, used, "=%s%s", hgpy_argument_default(&r->arguments[i], value, sizeof value), "");
  }
  if (hgpy_is_reduction(r))
    used = add_text(text, used, ", *, %sout=None%s", hgpy_has_type(r) ? "dtype=None, " : "", "");
  used = add_text(text, used, ")\n--\n\n%s.%s", info->meaning, "");
  if (info->formula[0] != '\0' && strcmp(info->kind, "formula") == 0)
    used = add_text(text, used, "\n\nFormula: %s%s",
                    strlen(info->formula) < 500 ? info->formula : "docs/operations.md", "");
  if (info->types[0] != '\0') used = add_text(text, used, "\n\nTypes: %s.%s", info->types, "");
  if (strcmp(info->gradient, "none") == 0) used = add_text(text, used, "\nIt has no gradient.%s%s", "", "");
  const char *call = examples[r - hgpy_rows].call;
  if (call != NULL) add_text(text, used, "\n\nExample:\n\n    %s    # %s", call, examples[r - hgpy_rows].result);
  size_t size = strlen(text) + 1;
  char *kept = malloc(size);
  return kept != NULL ? memcpy(kept, text, size) : NULL;
}

int hgpy_operations_prepare(void) {
  for (uint32_t i = 0; i < HGPY_ROW_COUNT; i++) {
    bool is_round = i == HGPY_ROW_round; /* it takes decimals here, like round_to */
    hg_op_info info = {.size = sizeof info};
    row *r = &hgpy_rows[i];
    if (hg_op_query(is_round ? (uint32_t)HGPY_ROW_round_to : i, &info) != HG_OK) return -1;
    if (r->name != NULL) continue;
    r->op = info.op;
    r->name = is_round ? "round" : info.name;
    read_inputs(r, info.inputs);
    read_arguments(r, info.arguments);
    read_kinds(r, info.types);
    r->text = write_text(r, &info, false);
    r->method_text = r->input_count > 0 ? write_text(r, &info, true) : NULL;
  }
  return 0;
}
