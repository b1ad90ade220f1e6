/* kernel_cache.h - a cache of compiled kernels: in memory for one executor, on disk for all processes of this user.
 *
 * To the cache a kernel is a payload of opaque bytes. Whatever goes wrong (no home, a read-only or full disk, a damaged
 * file, no memory) means "not cached" and nothing else: no function here sets the last error, and all of them accept
 * NULL as a cache that keeps nothing. Every function may be called from several threads at once. */
#ifndef HG_BASE_KERNEL_CACHE_H
#define HG_BASE_KERNEL_CACHE_H

#include "base/files.h"
#include "base/memory.h"
#include "base/sha256.h"

#include <stdatomic.h>

/* ---- keys and payloads ------------------------------------------------------------------------------------------- */

/* Everything that a compiled kernel depends on. Two keys are equal if all fields are. */
typedef struct hg_cache_key {
  uint8_t program[HG_SHA256_BYTES]; /* of the canonical bytes */
  const char *target;               /* what it is compiled for: "sm_90"; NULL is "" */
  const char *driver;               /* what will load it: "cuda 12.4"; NULL is "" */
  uint32_t compiler_version;
  const void *specialisation;       /* what else was known when it was compiled; NULL if nothing */
  size_t specialisation_bytes;
} hg_cache_key;

/* Immutable, so readers need no lock. It may outlive the cache. */
typedef struct hg_payload {
  atomic_uint references;
  hg_allocator allocator;
  size_t byte_count;
  uint8_t *bytes; /* aligned for any object of C */
} hg_payload;

/* A copy of the bytes; NULL when out of memory. */
hg_payload *hg_payload_create(const hg_allocator *allocator, const void *bytes, size_t byte_count);
hg_payload *hg_payload_retain(hg_payload *payload);
void hg_payload_release(hg_payload *payload); /* NULL is accepted */

/* ---- both levels ------------------------------------------------------------------------------------------------- */

typedef struct hg_kernel_cache hg_kernel_cache;

/* A cache in memory in front of the disk cache that the environment names. Where more than `memory_cap` bytes (0: the
 * default above) would be held, the least recently used payloads are evicted. `log` may be NULL; it is called without a
 * lock held. NULL when out of memory. */
hg_kernel_cache *hg_kernel_cache_create(const hg_allocator *allocator, uint64_t memory_cap, hg_log_callback log,
                                        void *log_user);
void hg_kernel_cache_release(hg_kernel_cache *cache);

/* The payload of a key, for the caller to release; NULL: not cached. */
hg_payload *hg_kernel_cache_get(hg_kernel_cache *cache, const hg_cache_key *key);

/* Stores a copy of a payload; it replaces an earlier one with the same key. */
void hg_kernel_cache_put(hg_kernel_cache *cache, const hg_cache_key *key, const void *bytes, size_t byte_count);

typedef struct hg_kernel_cache_counts {
  uint64_t memory_hits, disk_hits, misses; /* of hg_kernel_cache_get */
  uint64_t entries, bytes;                 /* held in memory now; bytes with what holding an entry costs */
} hg_kernel_cache_counts;

hg_kernel_cache_counts hg_kernel_cache_count(hg_kernel_cache *cache);

/* A path for a temporary file in the cache's folder, for interfaces that take only files: the name is unique, and a
 * file left behind is removed like those of the cache. 0 if nothing is kept on disk. */
int hg_kernel_cache_scratch(hg_kernel_cache *cache, const hg_cache_key *key, char path[HG_PATH_BYTES]);

/* ---- the disk level ---------------------------------------------------------------------------------------------- */

/* One file an entry, named by the SHA-256 of its key: little-endian
 *
 *      0  "HGKERNEL"
 *      8  u32 version of this form, u32 bytes of key, u64 bytes of payload
 *     24  key: program (32), u32 compiler version, u32 bytes of target, of driver, of specialisation, and those three
 *         payload
 *         SHA-256 of everything before
 *
 * A new file is written beside its name and renamed to it, so that a reader sees a whole file or none. A file that does
 * not check out in every byte is removed, never used. The modification time is the time of the last use.
 *
 * The digest shows damage, not intent: it has no key. That an entry is this user's is known from the folder and the
 * file alone, which nobody else may write to. */
enum { HG_DISK_CACHE_VERSION = 1 };
#define HG_DISK_CACHE_CAP (UINT64_C(256) << 20)

typedef struct hg_disk_cache {
  hg_allocator allocator;
  char folder[HG_PATH_BYTES]; /* HOLOGRAM_CACHE_DIR, else the user's cache folder; "": none */
  const char *absence;        /* why there is none; NULL: there is one */
  const char *remark;         /* which setting is ignored; NULL: none */
  uint64_t byte_cap;          /* HOLOGRAM_CACHE_SIZE */
  _Atomic int64_t budget;     /* bytes this process may write before it measures the folder again */
} hg_disk_cache;

/* Reads the environment. Touches no file: the folder is made by the first store. */
void hg_disk_cache_open(const hg_allocator *allocator, hg_disk_cache *disk);

/* Why the disk cache is not used, as a sentence; NULL if it is. */
const char *hg_disk_cache_problem(const hg_disk_cache *disk);

typedef enum hg_disk_result {
  HG_DISK_HIT,
  HG_DISK_MISS,    /* also: no memory, or not readable */
  HG_DISK_DAMAGED, /* hg_disk_cache_load has removed it */
  HG_DISK_REFUSED  /* others may have written it (base/files.h), or may write to the folder */
} hg_disk_result;

/* `digest` is that of the key: hg_cache_key_digest. */
hg_disk_result hg_disk_cache_load(hg_disk_cache *disk, const hg_cache_key *key, const uint8_t *digest,
                                  hg_payload **out);
int hg_disk_cache_store(hg_disk_cache *disk, const hg_cache_key *key, const uint8_t *digest, const void *bytes,
                        size_t byte_count); /* 1 if stored */

/* A name in the folder, which is there, for a file that is not an entry; 0 where the folder may not be used. */
int hg_disk_cache_scratch(const hg_disk_cache *disk, const uint8_t *digest, char path[HG_PATH_BYTES]);

/* SHA-256 of a key; 0 for a key too large to keep anything under. */
int hg_cache_key_digest(const hg_cache_key *key, uint8_t digest[HG_SHA256_BYTES]);

/* A file of the cache. */
enum { HG_CACHE_NAME_BYTES = 128 };
typedef struct hg_disk_file {
  char name[HG_CACHE_NAME_BYTES];
  int is_entry; /* 0: still being written, or left behind by a process that ended meanwhile */
  int is_refused;
  uint64_t byte_count;
  int64_t modified_ns;
} hg_disk_file;

/* Appends every file of the cache to an array of hg_disk_file; files of others in the folder do not count. 0 when out
 * of memory. */
int hg_disk_cache_list(const hg_disk_cache *disk, hg_array *files);

/* The key in an entry's file; bytes of its texts that are not printable ASCII are '?'. */
typedef struct hg_disk_entry {
  uint8_t program[HG_SHA256_BYTES];
  char target[64], driver[64]; /* as much as fits */
  uint32_t compiler_version;
  uint64_t specialisation_bytes, payload_bytes;
} hg_disk_entry;

hg_disk_result hg_disk_cache_examine(const hg_disk_cache *disk, const char *name, hg_disk_entry *entry);
int hg_disk_cache_remove(const hg_disk_cache *disk, const char *name); /* 1 if removed */

#endif
