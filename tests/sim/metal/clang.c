/* clang.c - from C++ to machine code by clang++, with the metal_stdlib of this folder. What it made is kept in a folder
 * under the hash of what it saw.
 *
 * Half of the time that one kernel takes is clang's start and the prelude. So kernels that are known ahead are compiled
 * together (metal_sim_defer): what all texts begin with once, and then each one's rest in a namespace of its own. The
 * object has the names of all of them in the folder. If it does not compile, nobody is told: each of its kernels is
 * then compiled alone where it is wanted, and has its own error. One in two of such objects is not optimised, which
 * takes a quarter of the time. */
#define _GNU_SOURCE
#include "sim.h"

#include "metal_sim_version.h" /* made by the build */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

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

static const char runtime[] = "const msl_functions *msl_runtime;\n"; /* metal_stdlib declares it */

static int run_clang(const char *source, const char *target, const char *log, int is_quick) {
  const char *words[FLAG_COUNT + 12] = {"clang++", "-x", "c++"};
  size_t count = 3;
  for (size_t i = 0; i < FLAG_COUNT; i++) words[count++] = flags[i];
  if (is_quick) words[count++] = "-O0";
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

static void *read_log(const char *path) {
  char log[3000];
  FILE *file = fopen(path, "r");
  size_t count = file != NULL ? fread(log, 1, sizeof log - 1, file) : 0;
  if (file != NULL) fclose(file);
  log[count] = '\0';
  return sim_error(3, "%s", count > 0 ? log : "clang++ could not be started");
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

enum { PATH_BYTES = 640 };

uint64_t sim_hash(uint64_t hash, const char *bytes) {
  for (; *bytes != '\0'; bytes++) hash = (hash ^ (unsigned char)*bytes) * 0x100000001b3u;
  return hash;
}

/* Of what clang sees. */
static void path_of(const sim_source *s, char path[PATH_BYTES]) {
  const char *folder = getenv("SIMMETAL_CACHE");
  char own[64];
  snprintf(own, sizeof own, "/tmp/hologram-metal-sim.%u", (unsigned)getuid());
  if (folder == NULL) folder = own;
  mkdir(folder, 0700);
  uint64_t hash = sim_hash(sim_hash(sim_hash(SIM_HASH_OF_NOTHING, s->body), s->thunks), SIM_VERSION);
  for (size_t i = 0; i < FLAG_COUNT; i++) hash = sim_hash(hash, flags[i]);
  if (getenv("SIMMETAL_FLUSH") != NULL) hash = sim_hash(hash, "after");
  snprintf(path, PATH_BYTES, "%.500s/%016llx.so", folder, (unsigned long long)hash);
}

/* A file beside `path` that nobody else has. */
static void own_path(const char *path, const char *ending, char own[PATH_BYTES]) {
  static unsigned number;
  snprintf(own, PATH_BYTES, "%.560s.%d.%u.%s", path, (int)getpid(), __atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST),
           ending);
}

/* The sources, of which `shared` bytes are the same at the beginning of each and stand once. */
static void write_sources(const char *path, const sim_source *sources, size_t count, size_t shared) {
  FILE *file = fopen(path, "w");
  if (file == NULL) sim_die("%s cannot be written", path);
  fprintf(file, "%.*s%s", (int)shared, sources[0].body, runtime);
  for (size_t i = 0; i < count; i++)
    fprintf(file, "namespace msl_%zu {\n%s%s}\n", i, sources[i].body + shared, sources[i].thunks);
  if (fclose(file) != 0) sim_die("%s cannot be written", path);
}

/* Compiles them together and gives the object all their paths; several processes may make one at once. */
static int make(const sim_source *sources, size_t count, size_t shared, void **error) {
  char path[PATH_BYTES], source[PATH_BYTES], made[PATH_BYTES], log[PATH_BYTES];
  path_of(&sources[0], path);
  own_path(path, "cpp", source);
  own_path(path, "so", made);
  own_path(path, "log", log);
  write_sources(source, sources, count, shared);
  int failed = run_clang(source, made, log, count > 1 && sim_hash(SIM_HASH_OF_NOTHING, sources[0].body) % 2 == 0);
  if (failed && error != NULL) *error = read_log(log);
  for (size_t i = 0; i < count && !failed; i++) {
    path_of(&sources[i], path);
    if (link(made, path) != 0 && errno != EEXIST) sim_die("%s cannot be made", path);
  }
  unlink(source);
  unlink(log);
  unlink(made);
  return !failed;
}

static int is_there(const sim_source *s) {
  char path[PATH_BYTES];
  path_of(s, path);
  return access(path, R_OK) == 0;
}

/* ---- kernels that are known ahead -------------------------------------------------------------------------------- */

enum { MOST_DEFERRED = 256 };
static sim_source deferred[MOST_DEFERRED]; /* of which none is there yet, and no two are the same */
static size_t deferred_count;
static int is_deferring;

static char *copy_of(const char *text) {
  char *copy = strdup(text);
  if (copy == NULL) sim_die("no memory for a kernel");
  return copy;
}

static void defer(const sim_source *s) {
  int is_known = deferred_count == MOST_DEFERRED || is_there(s);
  for (size_t i = 0; i < deferred_count; i++)
    is_known |= strcmp(deferred[i].body, s->body) == 0 && strcmp(deferred[i].thunks, s->thunks) == 0;
  if (!is_known) deferred[deferred_count++] = (sim_source){copy_of(s->body), copy_of(s->thunks)};
}

/* What all of them begin with, in whole definitions: they end with a brace at the beginning of a line. */
static size_t shared_bytes(void) {
  const char *first = deferred[0].body;
  size_t same = strlen(first);
  for (size_t i = 1; i < deferred_count; i++) {
    size_t k = 0;
    while (k < same && deferred[i].body[k] == first[k]) k++;
    same = k;
  }
  while (same > 0 && !(same >= 3 && memcmp(first + same - 3, "\n}\n", 3) == 0)) same--;
  return same;
}

void metal_sim_defer(int on) {
  is_deferring = on;
  if (on) return;
  if (deferred_count > 1) (void)make(deferred, deferred_count, shared_bytes(), NULL);
  while (deferred_count > 0) {
    free(deferred[--deferred_count].body);
    free(deferred[deferred_count].thunks);
  }
}

/* ---- one kernel -------------------------------------------------------------------------------------------------- */

void *sim_machine_code(const sim_source *s, void **error) {
  char path[PATH_BYTES];
  *error = NULL;
  if (is_deferring) {
    defer(s);
    return NULL;
  }
  if (!is_there(s) && !make(s, 1, strlen(s->body), error)) return NULL;
  path_of(s, path);
  void *code = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (code == NULL) sim_die("%s", dlerror());
  return code;
}
