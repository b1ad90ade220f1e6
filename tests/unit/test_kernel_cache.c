/* test_kernel_cache.c - the kernel cache as its callers see it: what is kept is found again, keys are told apart,
 * memory has a cap and may run out at any time, and threads share it (run it under ThreadSanitizer too). */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "cache_folder.h"
#include "check.h"
#include "counted.h"

#if !defined(_WIN32)
#  include <pthread.h>
#endif

static hg_allocator plain;

/* ---- hits and misses --------------------------------------------------------------------------------------------- */

static void test_hit_and_miss(void) {
  char folder[FOLDER_BYTES];
  sample s, empty;
  make_folder(folder, "hit");
  make_sample(&s, 1, 1000);
  make_sample(&empty, 2, 0);
  hg_kernel_cache *cache = open_cache();
  CHECK(!in_cache(cache, &s));
  CHECK_EQ_U64(count_files(folder), 0);
  put(cache, &s);
  put(cache, &empty);
  CHECK_EQ_U64(count_files(folder), 2);
  CHECK(in_cache(cache, &s));
  CHECK(in_cache(cache, &empty));
  hg_kernel_cache_counts counts = hg_kernel_cache_count(cache);
  CHECK_EQ_U64(counts.memory_hits, 2);
  CHECK_EQ_U64(counts.disk_hits, 0);
  CHECK_EQ_U64(counts.misses, 1);
  CHECK_EQ_U64(counts.entries, 2);
  CHECK(counts.bytes >= 1000);
  hg_kernel_cache *other = open_cache();
  CHECK(in_cache(other, &s));
  CHECK(in_cache(other, &s));
  counts = hg_kernel_cache_count(other);
  CHECK_EQ_U64(counts.memory_hits, 1);
  CHECK_EQ_U64(counts.disk_hits, 1);
  hg_payload *kept = hg_kernel_cache_get(other, &s.key);
  hg_kernel_cache_release(other);
  CHECK(is_sample(kept, &s)); /* a payload may outlive its cache */
  CHECK_EQ_U64((uintptr_t)kept->bytes % 16, 0);
  CHECK(hg_payload_retain(kept) == kept);
  hg_payload_release(kept);
  hg_payload_release(kept);
  hg_payload_release(NULL);
  s.payload[0] ^= 1; /* the later payload replaces the earlier one on both levels */
  put(cache, &s);
  CHECK(in_cache(cache, &s));
  CHECK_EQ_U64(hg_kernel_cache_count(cache).entries, 2);
  CHECK(on_disk(&s));
  hg_kernel_cache_release(cache);
  delete_folder(folder);
}

static void test_no_cache(void) {
  sample s;
  make_sample(&s, 1, 10);
  put(NULL, &s);
  CHECK(hg_kernel_cache_get(NULL, &s.key) == NULL);
  CHECK_EQ_U64(hg_kernel_cache_count(NULL).entries, 0);
  hg_kernel_cache_release(NULL);
}

/* Each field alone makes another key; bytes that move from one field to the next do too. */
static void test_keys_that_differ_in_one_field(void) {
  enum { KEYS = 12 };
  char folder[FOLDER_BYTES];
  make_folder(folder, "keys");
  hg_cache_key keys[KEYS];
  for (int i = 0; i < KEYS; i++)
    keys[i] = (hg_cache_key){.target = "ab", .driver = "cd", .compiler_version = 1, .specialisation = "ef",
                             .specialisation_bytes = 2};
  keys[1].program[0] = 1;
  keys[2].program[31] = 1;
  keys[3].target = "ac";
  keys[4].target = "abc", keys[4].driver = "d";
  keys[5].target = NULL, keys[5].driver = "abcd";
  keys[6].driver = "cde", keys[6].specialisation = "f", keys[6].specialisation_bytes = 1;
  keys[7].compiler_version = 2;
  keys[8].compiler_version = 0x01000001;
  keys[9].specialisation = "eg";
  keys[10].specialisation_bytes = 1;
  keys[11].specialisation = NULL;
  for (int round = 0; round < 2; round++) { /* memory, then disk alone */
    hg_kernel_cache *cache = open_cache();
    for (int i = 0; i < KEYS; i++) {
      char text[32];
      snprintf(text, sizeof text, "kernel %d", i);
      if (round == 0) CHECK(hg_kernel_cache_get(cache, &keys[i]) == NULL);
      if (round == 0) hg_kernel_cache_put(cache, &keys[i], text, strlen(text) + 1);
    }
    for (int i = 0; i < KEYS; i++) {
      char text[32];
      snprintf(text, sizeof text, "kernel %d", i);
      hg_payload *payload = hg_kernel_cache_get(cache, &keys[i]);
      CHECK(payload != NULL && payload->byte_count == strlen(text) + 1);
      if (payload != NULL) CHECK_STR((const char *)payload->bytes, text);
      hg_payload_release(payload);
    }
    hg_kernel_cache_release(cache);
  }
  CHECK_EQ_U64(count_files(folder), KEYS);
  delete_folder(folder);
}

static void test_key_too_large(void) {
  char folder[FOLDER_BYTES];
  make_folder(folder, "large-key");
  hg_cache_key key = {.specialisation = "", .specialisation_bytes = SIZE_MAX};
  hg_kernel_cache *cache = open_cache();
  hg_kernel_cache_put(cache, &key, "x", 1);
  CHECK(hg_kernel_cache_get(cache, &key) == NULL);
  hg_kernel_cache_release(cache);
  CHECK_EQ_U64(count_files(folder), 0);
  delete_folder(folder);
}

static void test_memory_eviction(void) {
  enum { COUNT = 300 };
  static sample samples[COUNT];
  set_variable("HOLOGRAM_CACHE", "0");
  hg_kernel_cache *cache = hg_kernel_cache_create(&plain, 100000, NULL, NULL);
  for (uint32_t i = 0; i < COUNT; i++) {
    make_sample(&samples[i], i, 800);
    put(cache, &samples[i]);
    CHECK(in_cache(cache, &samples[0])); /* always used, so always kept */
    CHECK(hg_kernel_cache_count(cache).bytes <= 100000);
  }
  uint64_t entries = hg_kernel_cache_count(cache).entries;
  CHECK(entries > 90 && entries < 125);
  for (uint32_t i = 1; i < COUNT; i++) {
    hg_kernel_cache_counts before = hg_kernel_cache_count(cache);
    CHECK_EQ_U64(in_cache(cache, &samples[i]), i > COUNT - entries);
    CHECK_EQ_U64(hg_kernel_cache_count(cache).entries, before.entries);
  }
  hg_kernel_cache_release(cache);
  cache = hg_kernel_cache_create(&plain, 500, NULL, NULL); /* one that never fits */
  put(cache, &samples[0]);
  CHECK(!in_cache(cache, &samples[0]));
  hg_kernel_cache_release(cache);
  set_variable("HOLOGRAM_CACHE", NULL);
}

/* Many more than there are buckets at first. */
static void test_memory_growth(void) {
  set_variable("HOLOGRAM_CACHE", "0");
  hg_kernel_cache *cache = open_cache();
  static sample s;
  for (uint32_t i = 0; i < 3000; i++) {
    make_sample(&s, i, i % 50);
    put(cache, &s);
  }
  for (uint32_t i = 0; i < 3000; i++) {
    make_sample(&s, i, i % 50);
    CHECK(in_cache(cache, &s));
  }
  CHECK_EQ_U64(hg_kernel_cache_count(cache).entries, 3000);
  hg_kernel_cache_release(cache);
  set_variable("HOLOGRAM_CACHE", NULL);
}

#if !defined(_WIN32)

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 400, KERNELS = 24 };

typedef struct worker {
  pthread_t thread;
  hg_kernel_cache *cache;
  uint32_t number;
  int wrong;
} worker;

static void *work(void *argument) {
  worker *w = argument;
  sample s;
  uint32_t state = w->number + 1;
  for (int i = 0; i < ROUNDS; i++) {
    state = state * 1664525 + 1013904223;
    uint32_t kernel = (state >> 16) % KERNELS;
    make_sample(&s, kernel, 300 + kernel);
    hg_payload *payload = hg_kernel_cache_get(w->cache, &s.key);
    if (payload == NULL) hg_kernel_cache_put(w->cache, &s.key, s.payload, s.byte_count);
    else w->wrong += !is_sample(payload, &s);
    hg_payload_release(payload);
  }
  return NULL;
}

static void test_threads(void) {
  char folder[FOLDER_BYTES];
  worker workers[THREADS];
  make_folder(folder, "threads");
  set_variable("HOLOGRAM_CACHE_SIZE", "6000"); /* both levels evict all the time */
  hg_kernel_cache *cache = hg_kernel_cache_create(&plain, 4000, NULL, NULL);
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i] = (worker){.cache = cache, .number = i};
    CHECK_EQ_U64(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    CHECK_EQ_U64(pthread_join(workers[i].thread, NULL), 0);
    CHECK_EQ_U64(workers[i].wrong, 0);
  }
  hg_kernel_cache_counts counts = hg_kernel_cache_count(cache);
  CHECK_EQ_U64(counts.memory_hits + counts.disk_hits + counts.misses, THREADS * ROUNDS);
  CHECK(counts.memory_hits > 0 && counts.disk_hits > 0 && counts.misses > 0 && counts.bytes <= 4000);
  hg_kernel_cache_release(cache);
  delete_folder(folder);
}
#endif

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Puts and gets kernels twice, with a new cache the second time; returns how many gets found theirs. With enough memory
 * that is every one that was not evicted; without, nothing wrong. */
static int use_all(const hg_allocator *allocator, uint32_t count, uint64_t memory_cap) {
  static sample s;
  int found = 0;
  for (int round = 0; round < 2; round++) {
    hg_kernel_cache *cache = hg_kernel_cache_create(allocator, memory_cap, NULL, NULL);
    for (uint32_t i = 0; i < count; i++) {
      make_sample(&s, i, i % 100);
      if (round == 0) put(cache, &s);
      hg_payload *payload = hg_kernel_cache_get(cache, &s.key);
      CHECK(payload == NULL || is_sample(payload, &s));
      found += payload != NULL;
      hg_payload_release(payload);
    }
    hg_kernel_cache_release(cache);
  }
  return found;
}

static void fail_in_turn(char *folder, uint32_t count, uint64_t memory_cap, int expected) {
  counter c = {.fail_at = -1};
  hg_allocator allocator = counting(&c);
  empty_folder(folder);
  CHECK_EQ_U64(use_all(&allocator, count, memory_cap), expected);
  CHECK_EQ_U64(c.live, 0);
  long total = c.allocations;
  for (long fail_at = 0; fail_at < total; fail_at++) {
    for (int rest = 0; rest < 2; rest++) {
      empty_folder(folder);
      c = (counter){.fail_at = fail_at, .fail_rest = rest};
      use_all(&allocator, count, memory_cap);
      CHECK(c.allocations > fail_at);
      CHECK_EQ_U64(c.live, 0);
    }
  }
}

static void test_allocation_failures(void) {
  char folder[FOLDER_BYTES];
  make_folder(folder, "allocations");
  set_variable("HOLOGRAM_CACHE_SIZE", "1300");
  fail_in_turn(folder, 12, 1000, 12 + 10); /* both levels, both evictions */
  set_variable("HOLOGRAM_CACHE", "0");
  fail_in_turn(folder, 150, 0, 150); /* the table grows */
  CHECK_EQ_U64(count_files(folder), 0);
  delete_folder(folder);
}

int main(void) {
  hg_allocator_resolve(NULL, &plain);
  test_hit_and_miss();
  test_no_cache();
  test_keys_that_differ_in_one_field();
  test_key_too_large();
  test_memory_eviction();
  test_memory_growth();
#if !defined(_WIN32)
  test_threads();
#endif
  test_allocation_failures();
  return check_report();
}
