/* library.c - MSL to machine code: a pass over the text takes attributes away, finds the kernels and turns threadgroup
 * arrays into memory that the simulation gives; clang++ does the rest, with the metal_stdlib of this folder. What it
 * made is kept in a folder under the hash of the text. */
#define _GNU_SOURCE
#include "sim.h"

#include "metal_sim_version.h" /* made by the build */

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
extern const char sim_functions[]; /* fibres.c */

enum { MOST_KERNELS = 64, MOST_PARAMETERS = 8 };

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
      "extern \"C\" __attribute__((visibility(\"default\"))) void msl_thunk_%s(void *const *buffers, const msl_place "
      "*place) {\n  %s(",
      k->name, k->name);
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
  if (sscanf(p, "threadgroup %31[a-z_] %63[A-Za-z0-9_][%lu];%n", type, name, &count, &length) != 3 || length == 0)
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
  put(&t->out, "\nextern \"C\" const msl_functions *msl_runtime;\nconst msl_functions *msl_runtime;\n%s",
      t->thunks.bytes != NULL ? t->thunks.bytes : "");
}

/* ---- clang ------------------------------------------------------------------------------------------------------- */

static const char *const flags[] = {"-std=c++14",
                                    "-O1",
                                    "-fPIC",
                                    "-shared",
                                    "-fvisibility=hidden",
                                    "-fno-exceptions",
                                    "-fno-rtti",
                                    "-nostdinc++",
                                    "-nostdlib",
                                    "-mfma",
                                    "-fno-math-errno",
                                    "-ffp-contract=off",
                                    "-fno-strict-aliasing",
                                    "-fno-stack-protector",
                                    "-Wno-unused-function",
                                    "-Wno-everything"};
enum { FLAG_COUNT = sizeof flags / sizeof flags[0] };

static int run_clang(const char *source, const char *target, const char *log) {
  const char *words[FLAG_COUNT + 12] = {"clang++", "-x", "c++"};
  size_t count = 3;
  for (size_t i = 0; i < FLAG_COUNT; i++) words[count++] = flags[i];
  if (getenv("SIMMETAL_FLUSH") != NULL) words[count++] = "-DMSL_FLUSH_AFTER";
  words[count++] = "-I" SIM_INCLUDE;
  words[count++] = source;
  words[count++] = "-o";
  words[count++] = target;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  int status = 0, failed = posix_spawnp(&child, words[0], &actions, NULL, (char *const *)(uintptr_t)words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static uint64_t hash_more(uint64_t hash, const char *bytes) {
  for (; *bytes != '\0'; bytes++) hash = (hash ^ (unsigned char)*bytes) * 0x100000001b3u;
  return hash;
}

static void *read_log(const char *path) {
  char log[3000];
  FILE *file = fopen(path, "r");
  size_t count = file != NULL ? fread(log, 1, sizeof log - 1, file) : 0;
  if (file != NULL) fclose(file);
  log[count] = '\0';
  return sim_error(3, "%s", count > 0 ? log : "clang++ could not be started");
}

static void write_file(const char *path, const char *bytes) {
  FILE *file = fopen(path, "w");
  if (file == NULL || fputs(bytes, file) < 0 || fclose(file) != 0) sim_die("%s cannot be written", path);
}

/* Under the hash of what clang sees; several processes may make it at once. */
static void *compiled(const char *source, void **error) {
  const char *folder = getenv("SIMMETAL_CACHE");
  char own[64], base[600], path[640], made[640], log[640], cpp[640];
  snprintf(own, sizeof own, "/tmp/hologram-metal-sim.%u", (unsigned)getuid());
  if (folder == NULL) folder = own;
  mkdir(folder, 0700);
  uint64_t hash = hash_more(hash_more(0xcbf29ce484222325u, source), SIM_VERSION);
  for (size_t i = 0; i < FLAG_COUNT; i++) hash = hash_more(hash, flags[i]);
  if (getenv("SIMMETAL_FLUSH") != NULL) hash = hash_more(hash, "after");
  snprintf(base, sizeof base, "%s/%016llx", folder, (unsigned long long)hash);
  snprintf(path, sizeof path, "%s.so", base);
  if (access(path, R_OK) != 0) {
    static unsigned number;
    unsigned n = __atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST);
    snprintf(cpp, sizeof cpp, "%s.%d.%u.cpp", base, (int)getpid(), n);
    snprintf(made, sizeof made, "%s.%d.%u.so", base, (int)getpid(), n);
    snprintf(log, sizeof log, "%s.%d.%u.log", base, (int)getpid(), n);
    write_file(cpp, source);
    int failed = run_clang(cpp, made, log);
    *error = failed ? read_log(log) : NULL;
    unlink(cpp);
    unlink(log);
    if (failed) return NULL;
    if (rename(made, path) != 0) sim_die("%s cannot be renamed", made);
  }
  void *code = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (code == NULL) sim_die("%s", dlerror());
  return code;
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
  write_file(path, given);
}

sim_library *sim_compile(const char *given, void **error) {
  translator *t = calloc(1, sizeof *t);
  sim_library *l = NULL;
  if (t == NULL) sim_die("no memory for a library");
  dump(given);
  translate(t, given);
  void *code = NULL, *made = NULL;
  if (t->wrong != NULL) made = sim_error(3, "program_source: error: %s", t->wrong);
  else code = compiled(t->out.bytes, &made);
  if (error != NULL) *error = made;
  if (code != NULL) {
    l = sim_make(&library_class, sizeof *l, library_dealloc);
    l->code = code;
    l->hash = hash_more(0xcbf29ce484222325u, given);
    l->kernel_count = t->kernel_count;
    l->kernels = calloc(t->kernel_count + 1, sizeof *l->kernels);
    *(const void **)dlsym(code, "msl_runtime") = sim_functions;
    for (size_t i = 0; i < t->kernel_count; i++) {
      char name[160];
      l->kernels[i] = t->kernels[i];
      snprintf(name, sizeof name, "msl_thunk_%s", t->kernels[i].name);
      *(void **)&l->kernels[i].run = dlsym(code, name);
      if (l->kernels[i].run == NULL) sim_die("there is no %s", name);
    }
  }
  free(t->out.bytes);
  free(t->thunks.bytes);
  free(t);
  return l;
}
