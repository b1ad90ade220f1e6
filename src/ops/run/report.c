/* report.c - describes an executable as text or JSON: which operations became which launch, bytes, temporaries, and
 * what was not fused. */
#include "ops/run/executable.h"

#include "ops/graph/table.h"

/* ---- the operations of each step --------------------------------------------------------------------------------- */

/* hg_executable.operations: for each step of the plan its operations in order, each as "name" or "3 x name" with a NUL
 * behind it, and an empty one at the end. */

static const char *const reduce_names[] = {"sum", "prod", "min", "max", "argmin", "argmax"};

/* The name of a node without a call. "": it does no work. */
static const char *name_of_node(const ops_node *node) {
  if (node->kind == OPS_POINTWISE) {
    const atlas_op_info *info = atlas_op_lookup((atlas_op)node->op);
    return info != NULL ? info->mnemonic : "pointwise";
  }
  if (node->kind == OPS_REDUCE) return reduce_names[node->reduce];
  return ops_kind_of(node)->name;
}

/* By node: 1 + the call that it was made for. A formula's call comes after the calls that the formula consists of. */
static uint32_t *calls_of_nodes(const hg_allocator *allocator, const hg_computation *c) {
  uint32_t *of = hg_allocate(allocator, c->nodes.count, sizeof *of);
  const ops_call *calls = c->calls.data;
  for (uint32_t k = 0; of != NULL && k < c->calls.count; k++)
    for (uint32_t i = calls[k].first_node; i < calls[k].end_node && i < c->nodes.count; i++) of[i] = k + 1;
  return of;
}

static int note_name(hg_executable *e, const char *name, uint32_t count) {
  const hg_allocator *allocator = &e->executor->allocator;
  char text[16];
  size_t length = count > 1 ? (size_t)snprintf(text, sizeof text, "%u x ", (unsigned)count) : 0;
  return hg_array_append(allocator, &e->operations, text, length) != NULL &&
         hg_array_append(allocator, &e->operations, name, strlen(name) + 1) != NULL;
}

/* Merges neighbours with the same name. */
static int note_step(hg_executable *e, const hg_computation *c, const ops_step *step, const uint32_t *call_of) {
  const value_id *values = e->plan.values.data; /* NULL: a plan that only copies has none */
  const char *last = "";
  uint32_t count = 0, last_call = 0;
  for (uint32_t i = 0; i < step->value_count; i++) {
    value_id value = values[step->first_value + i];
    uint32_t call = call_of[value - 1];
    const char *name = name_of_node(ops_at(c, value));
    if (call != 0 && call == last_call) continue;
    last_call = call;
    if (call != 0) {
      const ops_row *row = ops_row_of(((const ops_call *)c->calls.data)[call - 1].op);
      if (row != NULL) name = row->name;
    }
    if (name[0] == '\0') continue;
    if (count > 0 && strcmp(name, last) != 0) {
      if (!note_name(e, last, count)) return 0;
      count = 0;
    }
    last = name;
    count++;
  }
  if (count > 0 && !note_name(e, last, count)) return 0;
  return hg_array_append(&e->executor->allocator, &e->operations, NULL, 1) != NULL;
}

hg_status ops_note_operations(hg_executable *e, const hg_computation *computation) {
  e->operations.element_size = 1;
  ops_step *steps = e->plan.steps.data;
  uint32_t *call_of = calls_of_nodes(&e->executor->allocator, computation);
  int ok = call_of != NULL;
  for (uint32_t s = 0; s < e->plan.steps.count && ok; s++) {
    steps[s].first_name = (uint32_t)e->operations.count;
    ok = note_step(e, computation, &steps[s], call_of);
  }
  hg_release(&e->executor->allocator, call_of);
  return ok ? HG_OK : hg_fail_memory("the report of an executable", e->operations.count);
}

/* The first name of a step; "": there is none. Each is followed by the next. */
static const char *first_name(const hg_executable *e, uint32_t step) {
  return (const char *)e->operations.data + ((const ops_step *)e->plan.steps.data)[step].first_name;
}

void ops_operations_of(const hg_executable *e, uint32_t step, char *text, size_t text_bytes) {
  const char *name = first_name(e, step);
  size_t used = 0;
  text[0] = '\0';
  for (size_t length; name[0] != '\0'; name += length + 1) {
    length = strlen(name);
    if (used + length + sizeof ", , ..." > text_bytes) {
      snprintf(text + used, text_bytes - used, ", ...");
      return;
    }
    if (used > 0) memcpy(text + used, ", ", 2), used += 2;
    memcpy(text + used, name, length + 1);
    used += length;
  }
  if (used == 0) snprintf(text, text_bytes, "a copy");
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

typedef struct writer {
  const hg_allocator *allocator;
  hg_array text; /* char */
  int is_whole;
} writer;

HG_PRINTF(2, 3) static void print(writer *w, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (w->is_whole) w->is_whole = hg_array_print(w->allocator, &w->text, format, arguments);
  va_end(arguments);
}

static void print_word(writer *w, const char *text) {
  print(w, "\"");
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\') print(w, "\\");
    if ((unsigned char)*text < 0x20) print(w, "\\u%04x", (unsigned)(unsigned char)*text);
    else print(w, "%c", *text);
  }
  print(w, "\"");
}

static uint64_t lanes_of(const ops_launch *launch) {
  if (launch->lanes != 0) return launch->lanes;
  uint64_t lanes = 1;
  for (int d = 0; d < 3; d++)
    lanes *= (uint64_t)(launch->grid[d] != 0 ? launch->grid[d] : 1) * (launch->block[d] != 0 ? launch->block[d] : 1);
  return lanes;
}

typedef struct totals {
  uint64_t bytes_read, bytes_written, operations;
} totals;

static totals add_up(const hg_executable *e) {
  totals t = {0, 0, 0};
  const ops_step *steps = e->plan.steps.data;
  for (uint32_t i = 0; i < e->launch_count; i++) {
    t.bytes_read += steps[e->launches[i].step].bytes_read;
    t.bytes_written += steps[e->launches[i].step].bytes_written;
    t.operations += steps[e->launches[i].step].operations;
  }
  return t;
}

/* The numerics that were used, whatever was requested. */
static const char *numerics(const hg_executable *e) {
  for (uint32_t s = 0; s < e->plan.steps.count; s++)
    if (((const ops_step *)e->plan.steps.data)[s].is_fast) return "fast";
  return "canonical";
}

static void write_text(writer *w, const hg_executable *e) {
  const ops_step *steps = e->plan.steps.data;
  totals t = add_up(e);
  print(w,
        "%u inputs, %u outputs: %u launches on %s, %llu bytes read, %llu written, %llu of temporaries, %s numerics%s\n",
        (unsigned)e->input_count, (unsigned)e->output_count, (unsigned)e->launch_count, e->executor->row->name,
        (unsigned long long)t.bytes_read, (unsigned long long)t.bytes_written, (unsigned long long)e->workspace_bytes,
        numerics(e), e->flags & HG_NO_FUSION ? ", not fused" : "");
  for (uint32_t s = 0, next = 0; s < e->plan.steps.count; s++) {
    int is_run = next < e->launch_count && e->launches[next].step == s;
    const ops_launch *launch = is_run ? &e->launches[next++] : NULL;
    char names[400];
    ops_operations_of(e, s, names, sizeof names);
    if (launch == NULL) {
      print(w, "  %u. nothing to run: %s\n", (unsigned)s + 1, names);
      continue;
    }
    print(w, "  %u. %s, %llu lanes (%s): %s\n", (unsigned)s + 1, steps[s].kind != NULL ? steps[s].kind : "program",
          (unsigned long long)lanes_of(launch), launch->kernel->compiled.engine, names);
    print(w, "     %llu bytes read, %llu written\n", (unsigned long long)steps[s].bytes_read,
          (unsigned long long)steps[s].bytes_written);
    if (steps[s].note[0] != '\0') print(w, "     %s\n", steps[s].note);
  }
}

static void write_json(writer *w, const hg_executable *e) {
  const ops_step *steps = e->plan.steps.data;
  totals t = add_up(e);
  print(w, "{\"backend\": \"%s\", \"inputs\": %u, \"outputs\": %u, ", e->executor->row->name, (unsigned)e->input_count,
        (unsigned)e->output_count);
  print(w, "\"numerics\": \"%s\", \"fused\": %s, \"bytes_read\": %llu, \"bytes_written\": %llu, \"operations\": %llu, ",
        numerics(e), e->flags & HG_NO_FUSION ? "false" : "true", (unsigned long long)t.bytes_read,
        (unsigned long long)t.bytes_written, (unsigned long long)t.operations);
  print(w, "\"temporary_bytes\": %llu, \"launches\": [", (unsigned long long)e->workspace_bytes);
  for (uint32_t i = 0; i < e->launch_count; i++) {
    const ops_launch *launch = &e->launches[i];
    const ops_step *step = &steps[launch->step];
    print(w, "%s\n  {\"kind\": ", i > 0 ? "," : "");
    print_word(w, step->kind != NULL ? step->kind : "program");
    print(w, ", \"lanes\": %llu, \"engine\": ", (unsigned long long)lanes_of(launch));
    print_word(w, launch->kernel->compiled.engine);
    print(w, ", \"hash\": \"");
    for (int k = 0; k < ATLAS_HASH_BYTES; k++) print(w, "%02x", (unsigned)launch->kernel->needs->hash[k]);
    print(w, "\", \"bytes_read\": %llu, \"bytes_written\": %llu, \"operations\": [",
          (unsigned long long)step->bytes_read, (unsigned long long)step->bytes_written);
    const char *name = first_name(e, launch->step);
    for (int is_first = 1; name[0] != '\0'; name += strlen(name) + 1, is_first = 0) {
      if (!is_first) print(w, ", ");
      print_word(w, name);
    }
    print(w, "], \"note\": ");
    print_word(w, step->note);
    print(w, "}");
  }
  print(w, "]}\n");
}

hg_status hg_executable_report(hg_executable *executable, const hg_allocator *allocator, int json, char **text,
                               size_t *length) {
  hg_allocator own;
  if (text != NULL) *text = NULL;
  if (executable == NULL || text == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_executable_report: an argument is NULL");
  HG_TRY(hg_allocator_resolve(allocator, &own));
  writer w = {.allocator = &own, .text = {.element_size = 1}, .is_whole = 1};
  if (json) write_json(&w, executable);
  else write_text(&w, executable);
  size_t bytes = w.text.count;
  if (w.is_whole) w.is_whole = hg_array_append(&own, &w.text, NULL, 1) != NULL;
  if (!w.is_whole) {
    hg_array_release(&own, &w.text);
    return hg_fail_memory("the report of an executable", bytes);
  }
  if (length != NULL) *length = bytes;
  *text = w.text.data;
  return HG_OK;
}
