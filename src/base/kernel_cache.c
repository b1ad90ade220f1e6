/* kernel_cache.c - compiled kernels in memory: a hash table with a list from the most to the least recently used, in
 * front of the disk cache. */
#include "base/kernel_cache.h"
#include "base/base_tuning.h"

#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct entry {
  uint8_t digest[HG_SHA256_BYTES]; /* stands for the key: no two keys with one SHA-256 are known */
  hg_payload *payload;
  struct entry *next; /* in its bucket */
  struct entry *newer, *older;
} entry;

struct hg_kernel_cache {
  hg_allocator allocator;
  hg_log_callback log;
  void *log_user;
  atomic_flag has_warned;  /* that nothing can be stored on disk: logged once */
  atomic_flag has_refused; /* to take kernels from there: the same */
  hg_mutex mutex;   /* guards all of the following but `disk` */
  entry **buckets;
  size_t bucket_count; /* a power of two */
  entry *newest, *oldest;
  uint64_t cap;
  hg_kernel_cache_counts counts;
  hg_disk_cache disk;
};

enum { FIRST_BUCKETS = 64 };

/* ---- the table --------------------------------------------------------------------------------------------------- */

static entry **bucket_of(const hg_kernel_cache *cache, const uint8_t *digest) {
  return &cache->buckets[hg_load_le(digest, 8) & (cache->bucket_count - 1)];
}

/* The link to the entry with this digest: *result is NULL if there is none. */
static entry **find_locked(const hg_kernel_cache *cache, const uint8_t *digest) {
  entry **link = bucket_of(cache, digest);
  while (*link != NULL && memcmp((*link)->digest, digest, HG_SHA256_BYTES) != 0) link = &(*link)->next;
  return link;
}

static void unlink_use_locked(hg_kernel_cache *cache, entry *e) {
  *(e->newer != NULL ? &e->newer->older : &cache->newest) = e->older;
  *(e->older != NULL ? &e->older->newer : &cache->oldest) = e->newer;
}

static void link_newest_locked(hg_kernel_cache *cache, entry *e) {
  e->newer = NULL;
  e->older = cache->newest;
  *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = e;
  cache->newest = e;
}

static uint64_t cost(const entry *e) { return sizeof *e + e->payload->byte_count; }

static void drop_locked(hg_kernel_cache *cache, entry **link) {
  entry *e = *link;
  *link = e->next;
  unlink_use_locked(cache, e);
  cache->counts.bytes -= cost(e);
  cache->counts.entries--;
  hg_payload_release(e->payload);
  hg_release(&cache->allocator, e);
}

/* Twice the buckets once there are as many entries. Without memory for them the chains just grow. */
static void grow_locked(hg_kernel_cache *cache) {
  if (cache->counts.entries < cache->bucket_count) return;
  size_t old_count = cache->bucket_count;
  entry **old = cache->buckets, **larger = hg_allocate(&cache->allocator, (uint64_t)old_count * 2, sizeof(entry *));
  if (larger == NULL) return;
  cache->buckets = larger;
  cache->bucket_count = old_count * 2;
  for (size_t i = 0; i < old_count; i++) {
    for (entry *e = old[i], *next; e != NULL; e = next) {
      next = e->next;
      entry **bucket = bucket_of(cache, e->digest);
      e->next = *bucket;
      *bucket = e;
    }
  }
  hg_release(&cache->allocator, old);
}

/* Takes a reference of its own, if there is room and memory for the entry. */
static void insert_locked(hg_kernel_cache *cache, const uint8_t *digest, hg_payload *payload) {
  entry **link = find_locked(cache, digest);
  if (*link != NULL) drop_locked(cache, link);
  if (payload->byte_count > cache->cap || payload->byte_count + sizeof(entry) > cache->cap) return;
  entry *e = hg_allocate(&cache->allocator, 1, sizeof *e);
  if (e == NULL) return;
  memcpy(e->digest, digest, sizeof e->digest);
  e->payload = hg_payload_retain(payload);
  grow_locked(cache);
  entry **bucket = bucket_of(cache, digest);
  e->next = *bucket;
  *bucket = e;
  link_newest_locked(cache, e);
  cache->counts.entries++;
  cache->counts.bytes += cost(e);
  while (cache->counts.bytes > cache->cap) drop_locked(cache, find_locked(cache, cache->oldest->digest));
}

/* The payload with a reference for the caller, now the most recently used; NULL if it is not in memory. */
static hg_payload *find_and_retain_locked(hg_kernel_cache *cache, const uint8_t *digest) {
  entry *e = *find_locked(cache, digest);
  if (e == NULL) return NULL;
  unlink_use_locked(cache, e);
  link_newest_locked(cache, e);
  cache->counts.memory_hits++;
  return hg_payload_retain(e->payload);
}

/* ---- both levels ------------------------------------------------------------------------------------------------- */

static void HG_PRINTF(3, 4) log_message(hg_kernel_cache *cache, hg_log_level level, const char *format, ...) {
  if (cache->log == NULL) return;
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (length >= 0) cache->log(cache->log_user, level, message);
}

hg_kernel_cache *hg_kernel_cache_create(const hg_allocator *allocator, uint64_t memory_cap, hg_log_callback log,
                                        void *log_user) {
  hg_kernel_cache *cache = hg_allocate(allocator, 1, sizeof *cache);
  if (cache == NULL) return NULL;
  cache->allocator = *allocator;
  cache->log = log;
  cache->log_user = log_user;
  cache->cap = memory_cap > 0 ? memory_cap : HG_KERNEL_CACHE_MEMORY_CAP;
  atomic_flag_clear(&cache->has_warned);
  atomic_flag_clear(&cache->has_refused);
  cache->bucket_count = FIRST_BUCKETS;
  cache->buckets = hg_allocate(allocator, FIRST_BUCKETS, sizeof(entry *));
  if (cache->buckets == NULL || hg_mutex_init(&cache->mutex) != 0) {
    hg_release(allocator, cache->buckets);
    hg_release(allocator, cache);
    return NULL;
  }
  hg_disk_cache_open(allocator, &cache->disk);
  if (cache->disk.absence != NULL) log_message(cache, HG_LOG_INFO, "kernel cache on disk: %s", cache->disk.absence);
  if (cache->disk.remark != NULL) log_message(cache, HG_LOG_INFO, "kernel cache on disk: %s", cache->disk.remark);
  return cache;
}

void hg_kernel_cache_release(hg_kernel_cache *cache) {
  if (cache == NULL) return;
  hg_allocator allocator = cache->allocator;
  while (cache->oldest != NULL) drop_locked(cache, find_locked(cache, cache->oldest->digest));
  hg_mutex_destroy(&cache->mutex);
  hg_release(&allocator, cache->buckets);
  hg_release(&allocator, cache);
}

static void warn_of_refusal(hg_kernel_cache *cache) {
  if (atomic_flag_test_and_set(&cache->has_refused)) return;
  const char *problem = hg_disk_cache_problem(&cache->disk);
  if (problem == NULL)
    problem = "an entry is a link, no regular file, or one that others may have written (see hologram cache ls)";
  log_message(cache, HG_LOG_WARNING, "the kernel cache on disk is not trusted: %s (%s)", problem, cache->disk.folder);
}

/* The disk is read without the lock: of two threads that load the same entry, the later one replaces it by an equal. */
hg_payload *hg_kernel_cache_get(hg_kernel_cache *cache, const hg_cache_key *key) {
  uint8_t digest[HG_SHA256_BYTES];
  if (cache == NULL || !hg_cache_key_digest(key, digest)) return NULL;
  hg_mutex_lock(&cache->mutex);
  hg_payload *payload = find_and_retain_locked(cache, digest);
  hg_mutex_unlock(&cache->mutex);
  if (payload != NULL) return payload;
  hg_disk_result result = hg_disk_cache_load(&cache->disk, key, digest, &payload);
  hg_mutex_lock(&cache->mutex);
  if (result == HG_DISK_HIT) {
    cache->counts.disk_hits++;
    insert_locked(cache, digest, payload);
  } else {
    cache->counts.misses++;
  }
  hg_mutex_unlock(&cache->mutex);
  if (result == HG_DISK_DAMAGED)
    log_message(cache, HG_LOG_WARNING, "ignored a damaged kernel in %s", cache->disk.folder);
  if (result == HG_DISK_REFUSED) warn_of_refusal(cache);
  return payload;
}

void hg_kernel_cache_put(hg_kernel_cache *cache, const hg_cache_key *key, const void *bytes, size_t byte_count) {
  uint8_t digest[HG_SHA256_BYTES];
  if (cache == NULL || !hg_cache_key_digest(key, digest)) return;
  hg_payload *payload = hg_payload_create(&cache->allocator, bytes, byte_count);
  if (payload != NULL) {
    hg_mutex_lock(&cache->mutex);
    insert_locked(cache, digest, payload);
    hg_mutex_unlock(&cache->mutex);
    hg_payload_release(payload);
  }
  if (cache->disk.folder[0] == '\0' || hg_disk_cache_store(&cache->disk, key, digest, bytes, byte_count)) return;
  if (atomic_flag_test_and_set(&cache->has_warned)) return;
  const char *problem = hg_disk_cache_problem(&cache->disk);
  log_message(cache, HG_LOG_INFO, "a kernel is kept in memory only: %s (%s)",
       problem != NULL ? problem : "it could not be stored", cache->disk.folder);
}

int hg_kernel_cache_scratch(hg_kernel_cache *cache, const hg_cache_key *key, char path[HG_PATH_BYTES]) {
  uint8_t digest[HG_SHA256_BYTES];
  return cache != NULL && hg_cache_key_digest(key, digest) && hg_disk_cache_scratch(&cache->disk, digest, path);
}

hg_kernel_cache_counts hg_kernel_cache_count(hg_kernel_cache *cache) {
  hg_kernel_cache_counts counts = {0};
  if (cache == NULL) return counts;
  hg_mutex_lock(&cache->mutex);
  counts = cache->counts;
  hg_mutex_unlock(&cache->mutex);
  return counts;
}
