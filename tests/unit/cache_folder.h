/* cache_folder.h - what the tests of the kernel cache share: a folder of their own, the environment, sample kernels.
 * Whoever includes it defines _GNU_SOURCE first, for setenv. */
#ifndef HG_TESTS_CACHE_FOLDER_H
#define HG_TESTS_CACHE_FOLDER_H

#include "check.h"
#include "base/kernel_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#  include <direct.h>
#else
#  include <unistd.h>
#endif

enum { FOLDER_BYTES = 512, SAMPLE_MOST = 6000 };

#ifdef _WIN32
static inline void set_variable(const char *name, const char *value) { _putenv_s(name, value != NULL ? value : ""); }
static inline void remove_folder(const char *path) { _rmdir(path); } /* remove() is for files there */
#else
static inline void set_variable(const char *name, const char *value) {
  if (value != NULL) setenv(name, value, 1);
  else unsetenv(name);
}
static inline void remove_folder(const char *path) { rmdir(path); }
#endif

static inline int list_folder(const char *path, int (*visit)(void *user, const hg_file_info *file), void *user) {
  hg_folder folder;
  hg_folder_open(path, &folder);
  int is_listed = hg_folder_list(&folder, visit, user);
  hg_folder_close(&folder);
  return is_listed;
}

static inline int remove_visited(void *user, const hg_file_info *file) {
  char path[HG_PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", (const char *)user, file->name);
  return hg_file_remove(path);
}
static inline void empty_folder(char *folder) { list_folder(folder, remove_visited, folder); }

static inline int count_visited(void *user, const hg_file_info *file) {
  (void)file;
  ++*(size_t *)user;
  return 1;
}
static inline size_t count_files(const char *folder) {
  size_t count = 0;
  list_folder(folder, count_visited, &count);
  return count;
}

/* A new, empty folder as HOLOGRAM_CACHE_DIR, and nothing else set; delete_folder removes it again. */
static inline void make_folder(char folder[FOLDER_BYTES], const char *what) {
  char temporary[FOLDER_BYTES / 2];
  if (!hg_environment("TMPDIR", temporary, sizeof temporary) && !hg_environment("TEMP", temporary, sizeof temporary))
    snprintf(temporary, sizeof temporary, "%s", "/tmp");
  snprintf(folder, FOLDER_BYTES, "%s/hologram-test-%llx-%s", temporary, (unsigned long long)hg_process_id(), what);
  hg_directory_create(folder);
  empty_folder(folder);
  set_variable("HOLOGRAM_CACHE", NULL);
  set_variable("HOLOGRAM_CACHE_SIZE", NULL);
  set_variable("HOLOGRAM_CACHE_DIR", folder);
}

static inline void delete_folder(char folder[FOLDER_BYTES]) {
  empty_folder(folder);
  remove_folder(folder);
}

static inline void hash_of(const uint8_t *bytes, size_t count, uint8_t digest[HG_SHA256_BYTES]) {
  hg_sha256 hash;
  hg_sha256_begin(&hash);
  hg_sha256_add(&hash, bytes, count);
  hg_sha256_end(&hash, digest);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static inline uint8_t *find_bytes(uint8_t *bytes, size_t count, const char *what) {
  for (size_t i = 0; i + strlen(what) <= count; i++)
    if (memcmp(bytes + i, what, strlen(what)) == 0) return bytes + i;
  CHECK(0);
  return bytes;
}

/* Changes a file of the cache, gives its new size, and may give it a right digest. */
typedef size_t damage_function(uint8_t *file, size_t count);

typedef struct damaging {
  const char *folder;
  damage_function *damage;
} damaging;

static inline int damage_visited(void *user, const hg_file_info *info) {
  const damaging *d = (const damaging *)user;
  char path[HG_PATH_BYTES];
  hg_allocator allocator;
  uint8_t *bytes = NULL;
  size_t count = 0;
  hg_allocator_resolve(NULL, &allocator);
  snprintf(path, sizeof path, "%s/%s", d->folder, info->name);
  CHECK_EQ_U64(hg_file_read(&allocator, path, 1 << 20, &bytes, &count), HG_READ_OK);
  count = d->damage(bytes, count);
  FILE *file = fopen(path, "wb");
  CHECK(file != NULL && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
  hg_release(&allocator, bytes);
  return 1;
}

static inline void damage_files(const char *folder, damage_function *damage) {
  damaging d = {folder, damage};
  CHECK(list_folder(folder, damage_visited, &d));
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* Kernel `number`: its key and its payload, which can be told from every other kernel's. */
typedef struct sample {
  hg_cache_key key;
  char target[16];
  uint8_t specialisation[4];
  uint8_t payload[SAMPLE_MOST];
  size_t byte_count;
} sample;

static inline void make_sample(sample *s, uint32_t number, size_t byte_count) {
  memset(&s->key, 0, sizeof s->key);
  for (unsigned i = 0; i < HG_SHA256_BYTES; i++) s->key.program[i] = (uint8_t)((number >> 2) * 7 + i);
  snprintf(s->target, sizeof s->target, "sm_%u", (unsigned)(number & 3)); /* keys that differ in little */
  for (unsigned i = 0; i < 4; i++) s->specialisation[i] = (uint8_t)(number >> (8 * i));
  s->key.target = s->target;
  s->key.driver = "driver 1";
  s->key.compiler_version = 3;
  s->key.specialisation = s->specialisation;
  s->key.specialisation_bytes = sizeof s->specialisation;
  s->byte_count = byte_count < SAMPLE_MOST ? byte_count : SAMPLE_MOST;
  uint32_t state = number * 2654435761u + 12345;
  for (size_t i = 0; i < s->byte_count; i++) {
    state = state * 1664525 + 1013904223;
    s->payload[i] = (uint8_t)(state >> 24);
  }
}

static inline int is_sample(const hg_payload *payload, const sample *s) {
  return payload != NULL && payload->byte_count == s->byte_count &&
         (s->byte_count == 0 || memcmp(payload->bytes, s->payload, s->byte_count) == 0);
}

/* ---- caches ------------------------------------------------------------------------------------------------------ */

static inline hg_kernel_cache *open_cache(void) {
  hg_allocator allocator;
  hg_allocator_resolve(NULL, &allocator);
  return hg_kernel_cache_create(&allocator, 0, NULL, NULL);
}

static inline void put(hg_kernel_cache *cache, const sample *s) {
  hg_kernel_cache_put(cache, &s->key, s->payload, s->byte_count);
}

/* Whether a cache finds the sample; never anything else. */
static inline int in_cache(hg_kernel_cache *cache, const sample *s) {
  hg_payload *payload = hg_kernel_cache_get(cache, &s->key);
  CHECK(payload == NULL || is_sample(payload, s));
  int found = payload != NULL;
  hg_payload_release(payload);
  return found;
}

/* The same for a cache of its own, which has nothing in memory yet. */
static inline int on_disk(const sample *s) {
  hg_kernel_cache *cache = open_cache();
  int found = in_cache(cache, s);
  hg_kernel_cache_release(cache);
  return found;
}

#endif
