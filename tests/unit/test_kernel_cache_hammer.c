/* test_kernel_cache_hammer.c - eight processes get, put and evict in one cache folder while another one damages its
 * files: never a wrong kernel, never a crash. HOLOGRAM_HAMMER_SECONDS says for how long (2). */
#define _GNU_SOURCE
#include "cache_folder.h"
#include "check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 8, KERNELS = 40, ENOUGH_HITS = 100, ENOUGH_DAMAGED = 10 };

/* What all processes count together, in memory that they share. */
typedef struct tally {
  atomic_ulong gets, hits, wrong, damaged, sabotages;
  atomic_int stop;
} tally;

static uint32_t next_random(uint32_t *state, uint32_t below) {
  *state = *state * 1664525 + 1013904223;
  return (*state >> 8) % below;
}

static void note_damage(void *user, hg_log_level level, const char *message) {
  if (level == HG_LOG_WARNING && strncmp(message, "ignored a damaged kernel", 24) == 0)
    atomic_fetch_add(&((tally *)user)->damaged, 1);
}

/* A kernel's size depends on its number alone, so that all processes agree on its payload. */
static void one_use(hg_kernel_cache *cache, tally *shared, uint32_t *random) {
  static sample s;
  uint32_t kernel = next_random(random, KERNELS);
  make_sample(&s, kernel, kernel * kernel * 3);
  if (next_random(random, 3) == 0) hg_kernel_cache_put(cache, &s.key, s.payload, s.byte_count);
  hg_payload *payload = hg_kernel_cache_get(cache, &s.key);
  atomic_fetch_add(&shared->gets, 1);
  if (payload != NULL) {
    atomic_fetch_add(&shared->hits, 1);
    if (!is_sample(payload, &s)) atomic_fetch_add(&shared->wrong, 1);
  } else {
    hg_kernel_cache_put(cache, &s.key, s.payload, s.byte_count);
  }
  hg_payload_release(payload);
}

/* A new cache every few uses, with little memory: what is read comes from the disk. */
static void hammer(tally *shared, uint32_t number) {
  hg_allocator plain;
  uint32_t random = number * 7919 + 1;
  hg_allocator_resolve(NULL, &plain);
  while (!atomic_load(&shared->stop)) {
    hg_kernel_cache *cache = hg_kernel_cache_create(&plain, 5000, note_damage, shared);
    for (int i = 0; i < 20; i++) one_use(cache, shared, &random);
    hg_kernel_cache_release(cache);
  }
}

/* ---- the saboteur ------------------------------------------------------------------------------------------------ */

typedef struct names {
  char name[2][HG_CACHE_NAME_BYTES]; /* two of the folder's, chosen at random */
  uint32_t seen, *random;
} names;

static int choose_name(void *user, const hg_file_info *file) {
  names *n = user;
  n->seen++;
  for (int i = 0; i < 2; i++) {
    if (next_random(n->random, n->seen) == 0) snprintf(n->name[i], HG_CACHE_NAME_BYTES, "%s", file->name);
  }
  return 1;
}

/* The whole of one entry in place of another, by renaming or byte by byte. */
static void swap_in(const char *from, const char *to, int by_rename) {
  uint8_t bytes[SAMPLE_MOST + 256];
  int source = open(from, O_RDONLY);
  if (source < 0) return;
  ssize_t count = read(source, bytes, sizeof bytes);
  close(source);
  char temporary[HG_PATH_BYTES];
  snprintf(temporary, sizeof temporary, "%s.swap", to);
  if (by_rename && count > 0) hg_file_write(temporary, to, bytes, (size_t)count);
  int target = by_rename || count <= 0 ? -1 : open(to, O_WRONLY);
  if (target < 0) return;
  if (pwrite(target, bytes, (size_t)count, 0) != count)
    atomic_thread_fence(memory_order_relaxed); /* as bad is as good */
  close(target);
}

static void sabotage(char *folder, uint32_t *random) {
  names n = {.random = random};
  char path[HG_PATH_BYTES], other[HG_PATH_BYTES];
  list_folder(folder, choose_name, &n);
  if (n.seen == 0) return;
  snprintf(path, sizeof path, "%s/%s", folder, n.name[0]);
  snprintf(other, sizeof other, "%s/%s", folder, n.name[1]);
  struct stat info;
  int kind = (int)next_random(random, 8), file = open(path, O_RDWR);
  if (file < 0) return;
  uint32_t size = fstat(file, &info) == 0 && info.st_size > 0 ? (uint32_t)info.st_size : 1;
  off_t place = (off_t)next_random(random, size);
  uint8_t byte = 0;
  int done = 1;
  if (kind == 0) done = ftruncate(file, place) == 0;
  else if (kind == 1) done = ftruncate(file, (off_t)size + 1 + place) == 0;
  else if (kind == 2) swap_in(other, path, 0);
  else if (kind == 3) swap_in(other, path, 1);
  else if (kind == 4) done = unlink(path) == 0;
  else if (pread(file, &byte, 1, place) == 1) {
    byte ^= (uint8_t)(1 << next_random(random, 8));
    done = pwrite(file, &byte, 1, place) == 1;
  }
  close(file);
  (void)done; /* another process may have been quicker */
}

static int has_seen_enough(tally *shared) {
  return atomic_load(&shared->hits) > ENOUGH_HITS && atomic_load(&shared->damaged) > ENOUGH_DAMAGED;
}

/* For some seconds; on a busy machine until enough has happened, at most a minute longer. */
static void damage_for(tally *shared, char *folder, uint64_t seconds) {
  uint32_t random = 99;
  uint64_t end = hg_time_ns() + seconds * 1000000000u, last = end + UINT64_C(60000000000);
  for (uint64_t now = 0; now < end || (now < last && !has_seen_enough(shared)); now = hg_time_ns()) {
    sabotage(folder, &random);
    atomic_fetch_add(&shared->sabotages, 1);
    if (next_random(&random, 500) == 0) empty_folder(folder); /* `hologram cache clear` */
    usleep(200);
  }
}

int main(void) {
  char folder[FOLDER_BYTES], seconds[16];
  pid_t children[PROCESSES];
  make_folder(folder, "hammer");
  set_variable("HOLOGRAM_CACHE_SIZE", "60000"); /* of about 70,000: evictions all the time */
  tally *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  if (shared == MAP_FAILED) return check_report();
  for (uint32_t i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    CHECK(children[i] >= 0);
    if (children[i] != 0) continue;
    hammer(shared, i);
    exit(0); /* with the sanitizers' last look */
  }
  if (!hg_environment("HOLOGRAM_HAMMER_SECONDS", seconds, sizeof seconds)) snprintf(seconds, sizeof seconds, "2");
  damage_for(shared, folder, (uint64_t)strtoul(seconds, NULL, 10));
  atomic_store(&shared->stop, 1);
  for (int i = 0; i < PROCESSES; i++) {
    int status = -1;
    CHECK(waitpid(children[i], &status, 0) == children[i]);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  printf("%lu gets, %lu hits, %lu damaged files found, %lu attempts to damage one\n", atomic_load(&shared->gets),
         atomic_load(&shared->hits), atomic_load(&shared->damaged), atomic_load(&shared->sabotages));
  CHECK_EQ_U64(atomic_load(&shared->wrong), 0);
  CHECK(atomic_load(&shared->hits) > ENOUGH_HITS);
  CHECK(atomic_load(&shared->damaged) > ENOUGH_DAMAGED);
  munmap(shared, sizeof *shared);
  delete_folder(folder);
  return check_report();
}
