/* library.c - MSL to C++: a pass over the text takes attributes away, finds the kernels and turns threadgroup arrays
 * into memory that the simulation gives. clang.c does the rest. */
#define _GNU_SOURCE
#include "sim.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char sim_functions[]; /* fibres.c */

enum { MOST_KERNELS = 64 };

typedef struct text {
  char *bytes;
  size_t count, room;
} text;

static void put_bytes(text *t, const char *bytes, size_t count) {
  if (t->count + count + 1 > t->room) {
    t->room = 2 * (t->count + count + 1);
    t->bytes = realloc(t->bytes, t->room);
    if (t->bytes == NULL) sim_die("no memory for a kernel");
  }
  memcpy(t->bytes + t->count, bytes, count);
  t->bytes[t->count += count] = '\0';
}

static void put(text *t, const char *format, ...) {
  char *line = NULL;
  va_list list;
  va_start(list, format);
  int count = vasprintf(&line, format, list);
  va_end(list);
  if (count < 0) sim_die("no memory for a kernel");
  put_bytes(t, line, (size_t)count);
  free(line);
}

/* ---- translation ------------------------------------------------------------------------------------------------- */

typedef struct translator {
  uint64_t hash; /* of the text */
  text out, thunks;
  sim_kernel kernels[MOST_KERNELS];
  size_t kernel_count;
  const char *wrong;
} translator;

static int is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static const char *skip_space(const char *p) {
  while (isspace((unsigned char)*p)) p++;
  return p;
}

/* Kernels of several libraries may become one object: see clang.c. */
#define THUNK "msl_thunk_%016llx_%s"

/* One parameter, `type name [[attribute]]`: its argument in the thunk. */
static void put_argument(translator *t, sim_kernel *k, const char *attribute, const char *type, size_t type_length) {
  static const char *const names[] = {"thread_index_in_threadgroup", "threadgroup_position_in_grid",
                                      "thread_position_in_grid", "threads_per_threadgroup"};
  unsigned index = 0;
  if (sscanf(attribute, "buffer(%u)", &index) == 1) {
    if (index >= SIM_MOST_ARGUMENTS)
      t->wrong = "'buffer' attribute parameter is out of bounds: must be between 0 and 30";
    else k->uses[index] = 1;
    put(&t->thunks, "*(%.*s *)buffers[%u]", (int)type_length, type, index);
    return;
  }
  for (size_t i = 0; i < 4; i++)
    if (strncmp(attribute, names[i], strlen(names[i])) == 0) {
      put(&t->thunks, "place->%s", names[i]);
      return;
    }
  t->wrong = "a kernel's parameter has an attribute that is not known";
}

/* From "kernel" to the parenthesis that closes the parameters. */
static const char *translate_head(translator *t, const char *p) {
  if (t->kernel_count == MOST_KERNELS) sim_die("a library of more than %d kernels", MOST_KERNELS);
  sim_kernel *k = &t->kernels[t->kernel_count++];
  *k = (sim_kernel){.has_barriers = 0};
  const char *name = skip_space(p + 6);
  if (strncmp(name, "void ", 5) != 0) {
    t->wrong = "a kernel that does not give void";
    return p + 6;
  }
  name = skip_space(name + 5);
  const char *end = name;
  while (is_word(*end)) end++;
  snprintf(k->name, sizeof k->name, "%.*s", (int)(end - name), name);
  put(&t->out, "kernel void %s(", k->name);
  put(&t->thunks,
      "extern \"C\" __attribute__((visibility(\"default\"))) void " THUNK "(void *const *buffers, const msl_place "
      "*place) {\n  %s(",
      (unsigned long long)t->hash, k->name, k->name);
  int first = 1;
  for (p = skip_space(end) + 1; t->wrong == NULL; first = 0) {
    p = skip_space(p);
    const char *open = strstr(p, "[["), *stop = strpbrk(p, ",)");
    if (open == NULL || stop == NULL || stop < open) {
      t->wrong = "a parameter of a kernel has no attribute";
      break;
    }
    const char *close = strstr(open, "]]"), *last = open;
    while (isspace((unsigned char)last[-1])) last--;
    const char *word = last;
    while (is_word(word[-1])) word--;
    while (word[-1] == '&' || isspace((unsigned char)word[-1])) word--;
    put(&t->out, "%s%.*s", first ? "" : ", ", (int)(open - p), p);
    if (!first) put(&t->thunks, ", ");
    put_argument(t, k, skip_space(open + 2), p, (size_t)(word - p));
    p = skip_space(close + 2);
    if (*p++ == ')') break;
  }
  put(&t->out, ")");
  put(&t->thunks, ");\n}\n");
  return p;
}

/* threadgroup T name[count]; at the start of a statement. 0: it is something else. */
static const char *translate_array(translator *t, const char *p) {
  char type[32], name[64];
  unsigned long count = 0;
  int length = 0;
  if (sscanf(p, "threadgroup %31[a-z_0-9] %63[A-Za-z0-9_][%lu];%n", type, name, &count, &length) != 3 || length == 0)
    return NULL;
  put(&t->out, "threadgroup %s *%s = (threadgroup %s *)msl_runtime->threadgroup_memory(%lu * sizeof(%s));", type, name,
      type, count, type);
  return p + length;
}

static const char *translate_word(translator *t, const char *p, int at_start) {
  const char *end = p, *next = NULL;
  while (is_word(*end)) end++;
  size_t length = (size_t)(end - p);
  sim_kernel *k = t->kernel_count > 0 ? &t->kernels[t->kernel_count - 1] : NULL;
  if (at_start && length == 6 && strncmp(p, "kernel", 6) == 0) return translate_head(t, p);
  if (at_start && k != NULL && length == 11 && strncmp(p, "threadgroup", 11) == 0) next = translate_array(t, p);
  if (next != NULL) return next;
  if (k != NULL && length == 19 && strncmp(p, "threadgroup_barrier", 19) == 0) k->has_barriers = 1;
  if (k != NULL && length >= 12 && strncmp(p, "simd_shuffle", 12) == 0) k->has_barriers = 1;
  if (k != NULL && length == 11 && strncmp(p, "simd_ballot", 11) == 0) k->has_barriers = 1;
  put_bytes(&t->out, p, length);
  return end;
}

static void translate(translator *t, const char *p) {
  int at_start = 1, may_end = 0, has_pragma = 0;
  while (*p != '\0' && t->wrong == NULL) {
    if (p[0] == '/' && p[1] == '/') {
      may_end |= strncmp(p, "// lanes may end before others", 30) == 0;
      p += strcspn(p, "\n");
    } else if (*p == '#') {
      size_t length = strcspn(p, "\n");
      if (strncmp(p, "#pragma METAL fp contract(off)", 30) == 0) has_pragma = 1;
      else put_bytes(&t->out, p, length);
      p += length;
    } else if (is_word(*p)) {
      size_t kernels = t->kernel_count;
      p = translate_word(t, p, at_start);
      at_start = 0;
      if (t->kernel_count > kernels) t->kernels[kernels].may_end = may_end;
      if (t->kernel_count > kernels) may_end = 0;
    } else {
      if (*p == ';' || *p == '{' || *p == '}') at_start = 1;
      else if (!isspace((unsigned char)*p)) at_start = 0;
      put_bytes(&t->out, p++, 1);
    }
  }
  if (!has_pragma && t->wrong == NULL)
    t->wrong = "the library has no '#pragma METAL fp contract(off)': products and sums may be fused";
  put(&t->out, "\n");
  put(&t->thunks, "\n");
}

/* ---- libraries --------------------------------------------------------------------------------------------------- */

static void library_dealloc(void *o) {
  sim_library *l = o;
  if (l->code != NULL) dlclose(l->code);
  free(l->kernels);
}

static void function_dealloc(void *o) { sim_release(((sim_function *)o)->library); }
static const sim_method function_methods[] = {{NULL, NULL, NULL}};
static const sim_class function_class = {NULL, "MTLFunction", function_methods};

static void *function_named(sim_library *l, sim_selector s, void *name) {
  (void)s;
  if (sim_fails(SIM_NO_OBJECT)) return NULL;
  for (size_t i = 0; i < l->kernel_count; i++)
    if (strcmp(l->kernels[i].name, sim_text(name)) == 0) {
      sim_function *f = sim_make(&function_class, sizeof *f, function_dealloc);
      f->library = sim_retain(l);
      f->kernel = &l->kernels[i];
      return f;
    }
  return NULL;
}

static const sim_method library_methods[] = {{"newFunctionWithName:", (void *)function_named, "@@:@"},
                                             {NULL, NULL, NULL}};
static const sim_class library_class = {NULL, "MTLLibrary", library_methods};

static void dump(const char *given) {
  static unsigned number;
  char path[600];
  if (getenv("SIMMETAL_DUMP") == NULL) return;
  snprintf(path, sizeof path, "%s/%d-%u.metal", getenv("SIMMETAL_DUMP"), (int)getpid(),
           __atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST));
  FILE *file = fopen(path, "w");
  if (file == NULL || fputs(given, file) < 0 || fclose(file) != 0) sim_die("%s cannot be written", path);
}

static void find_kernels(sim_library *l, const translator *t) {
  l->kernel_count = t->kernel_count;
  l->kernels = calloc(t->kernel_count + 1, sizeof *l->kernels);
  if (l->kernels == NULL) sim_die("no memory for a library");
  memcpy(l->kernels, t->kernels, t->kernel_count * sizeof *l->kernels);
  if (l->code == NULL) return; /* these do nothing */
  *(const void **)dlsym(l->code, "msl_runtime") = sim_functions;
  for (size_t i = 0; i < t->kernel_count; i++) {
    char name[160];
    snprintf(name, sizeof name, THUNK, (unsigned long long)t->hash, t->kernels[i].name);
    *(void **)&l->kernels[i].run = dlsym(l->code, name);
    if (l->kernels[i].run == NULL) sim_die("there is no %s", name);
  }
}

sim_library *sim_compile(const char *given, void **error) {
  translator *t = calloc(1, sizeof *t);
  sim_library *l = NULL;
  if (t == NULL) sim_die("no memory for a library");
  t->hash = sim_hash(SIM_HASH_OF_NOTHING, given);
  dump(given);
  translate(t, given);
  void *code = NULL, *made = NULL;
  if (t->wrong != NULL) made = sim_error(3, "program_source: error: %s", t->wrong);
  else code = sim_machine_code(&(sim_source){t->out.bytes, t->thunks.bytes}, &made);
  if (error != NULL) *error = made;
  if (made == NULL) {
    l = sim_make(&library_class, sizeof *l, library_dealloc);
    l->code = code;
    l->hash = t->hash;
    find_kernels(l, t);
  }
  free(t->out.bytes);
  free(t->thunks.bytes);
  free(t);
  return l;
}
