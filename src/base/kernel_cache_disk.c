/* kernel_cache_disk.c - compiled kernels on disk: keys, the form of a file, and the folder with its size cap. */
#include "base/kernel_cache.h"

#include "base/bytes.h"
#include "base/settings.h"

#include <stdio.h>
#include <string.h>

static const char magic[8] = {'H', 'G', 'K', 'E', 'R', 'N', 'E', 'L'};
static const char entry_suffix[] = ".kernel", temporary_suffix[] = ".tmp";

enum {
  HEAD_BYTES = 24,
  KEY_HEAD_BYTES = HG_SHA256_BYTES + 16,
  MAX_KEY_PART_BYTES = 1 << 24, /* bytes of a text or specialisation: far above any in use */
  NAME_HEX = HG_SHA256_HEX - 1,
};

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* The bytes of a key in the order of the file, as parts that need not be copied together. */
typedef struct key_bytes {
  uint8_t head[KEY_HEAD_BYTES];
  struct {
    const void *bytes;
    size_t count;
  } parts[3]; /* after the head */
  size_t count; /* of all */
} key_bytes;

static int key_open(const hg_cache_key *key, key_bytes *out) {
  const char *texts[2] = {key->target != NULL ? key->target : "", key->driver != NULL ? key->driver : ""};
  for (int i = 0; i < 2; i++) {
    out->parts[i].bytes = texts[i];
    out->parts[i].count = strlen(texts[i]);
  }
  out->parts[2].bytes = key->specialisation;
  out->parts[2].count = key->specialisation != NULL ? key->specialisation_bytes : 0;
  memcpy(out->head, key->program, HG_SHA256_BYTES);
  hg_store_le(out->head + HG_SHA256_BYTES, 4, key->compiler_version);
  out->count = KEY_HEAD_BYTES;
  for (unsigned i = 0; i < 3; i++) {
    if (out->parts[i].count > MAX_KEY_PART_BYTES) return 0;
    hg_store_le(out->head + HG_SHA256_BYTES + 4 + 4 * i, 4, out->parts[i].count);
    out->count += out->parts[i].count;
  }
  return 1;
}

static void key_hash(const key_bytes *key, uint8_t digest[HG_SHA256_BYTES]) {
  hg_sha256 hash;
  hg_sha256_begin(&hash);
  hg_sha256_add(&hash, key->head, sizeof key->head);
  for (int i = 0; i < 3; i++) hg_sha256_add(&hash, key->parts[i].bytes, key->parts[i].count);
  hg_sha256_end(&hash, digest);
}

static void key_write(const key_bytes *key, uint8_t *out) {
  memcpy(out, key->head, sizeof key->head);
  out += sizeof key->head;
  for (int i = 0; i < 3; i++) {
    if (key->parts[i].count > 0) memcpy(out, key->parts[i].bytes, key->parts[i].count);
    out += key->parts[i].count;
  }
}

static int key_is(const key_bytes *key, const uint8_t *bytes, size_t count) {
  if (count != key->count || memcmp(bytes, key->head, sizeof key->head) != 0) return 0;
  bytes += sizeof key->head;
  for (int i = 0; i < 3; i++) {
    if (key->parts[i].count > 0 && memcmp(bytes, key->parts[i].bytes, key->parts[i].count) != 0) return 0;
    bytes += key->parts[i].count;
  }
  return 1;
}

int hg_cache_key_digest(const hg_cache_key *key, uint8_t digest[HG_SHA256_BYTES]) {
  key_bytes bytes;
  if (!key_open(key, &bytes)) return 0;
  key_hash(&bytes, digest);
  return 1;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void hash_bytes(const void *bytes, size_t count, uint8_t digest[HG_SHA256_BYTES]) {
  hg_sha256 hash;
  hg_sha256_begin(&hash);
  hg_sha256_add(&hash, bytes, count);
  hg_sha256_end(&hash, digest);
}

/* Bytes of a file, or 0 where they overflow. */
static uint64_t file_bytes(uint64_t key_count, uint64_t payload_count) {
  uint64_t others = HEAD_BYTES + key_count + HG_SHA256_BYTES;
  return others < SIZE_MAX / 2 && payload_count <= SIZE_MAX / 2 - others ? others + payload_count : 0;
}

/* The whole file of an entry, for the caller to release. */
static uint8_t *file_make(const hg_allocator *allocator, const key_bytes *key, const void *payload,
                          size_t payload_count, size_t *count) {
  *count = (size_t)file_bytes(key->count, payload_count);
  uint8_t *file = hg_allocate(allocator, *count, 1);
  if (file == NULL) return NULL;
  memcpy(file, magic, sizeof magic);
  hg_store_le(file + 8, 4, HG_DISK_CACHE_VERSION);
  hg_store_le(file + 12, 4, key->count);
  hg_store_le(file + 16, 8, payload_count);
  key_write(key, file + HEAD_BYTES);
  if (payload_count > 0) memcpy(file + HEAD_BYTES + key->count, payload, payload_count);
  hash_bytes(file, *count - HG_SHA256_BYTES, file + *count - HG_SHA256_BYTES);
  return file;
}

typedef struct file_view {
  const uint8_t *key, *payload;
  size_t key_count, payload_count;
} file_view;

/* Lengths before the digest, so that nothing outside of the file is read. */
static int file_check(const uint8_t *file, size_t count, file_view *view) {
  uint8_t digest[HG_SHA256_BYTES];
  if (count < HEAD_BYTES + KEY_HEAD_BYTES + HG_SHA256_BYTES || memcmp(file, magic, sizeof magic) != 0) return 0;
  if (hg_load_le(file + 8, 4) != HG_DISK_CACHE_VERSION) return 0;
  uint64_t key_count = hg_load_le(file + 12, 4), payload_count = hg_load_le(file + 16, 8), texts = 0;
  if (file_bytes(key_count, payload_count) != count) return 0;
  for (unsigned i = 0; i < 3; i++) texts += hg_load_le(file + HEAD_BYTES + HG_SHA256_BYTES + 4 + 4 * i, 4);
  if (key_count != KEY_HEAD_BYTES + texts) return 0;
  hash_bytes(file, count - HG_SHA256_BYTES, digest);
  if (memcmp(digest, file + count - HG_SHA256_BYTES, sizeof digest) != 0) return 0;
  *view = (file_view){.key = file + HEAD_BYTES,
                      .payload = file + HEAD_BYTES + key_count,
                      .key_count = (size_t)key_count,
                      .payload_count = (size_t)payload_count};
  return 1;
}

/* 1: the name of an entry; 0: of a file being written; -1: not a file of the cache. */
static int name_kind(const char *name) {
  size_t length = strlen(name), suffix = sizeof temporary_suffix - 1;
  if (length >= HG_CACHE_NAME_BYTES || strspn(name, "0123456789abcdef") != NAME_HEX) return -1;
  if (strcmp(name + NAME_HEX, entry_suffix) == 0) return 1;
  return name[NAME_HEX] == '.' && strcmp(name + length - suffix, temporary_suffix) == 0 ? 0 : -1;
}

static int join(const hg_disk_cache *disk, const char *name, char path[HG_PATH_BYTES]) {
  int length = snprintf(path, HG_PATH_BYTES, "%s/%s", disk->folder, name);
  return length > 0 && length < HG_PATH_BYTES;
}

static void entry_name(const uint8_t *digest, char name[HG_CACHE_NAME_BYTES]) {
  hg_sha256_hex(digest, name);
  memcpy(name + NAME_HEX, entry_suffix, sizeof entry_suffix);
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* The folder that the environment names, with room for a name below it; returns why there is none. One that is too long
 * is not replaced by the default: `cache clear` would empty a folder that the user did not name. */
static const char *find_folder(char folder[HG_PATH_BYTES]) {
  enum { FOLDER_BYTES = HG_PATH_BYTES - HG_CACHE_NAME_BYTES };
  char text[32];
  if (hg_environment("HOLOGRAM_CACHE", text, sizeof text) && strcmp(text, "0") == 0)
    return "HOLOGRAM_CACHE=0 turns it off";
  if (hg_environment_trusted("HOLOGRAM_CACHE_DIR", folder, FOLDER_BYTES)) return NULL;
  if (hg_environment("HOLOGRAM_CACHE_DIR", folder, FOLDER_BYTES))
    return "the process has more rights than the user who set HOLOGRAM_CACHE_DIR";
  if (hg_environment_is_set("HOLOGRAM_CACHE_DIR")) return "HOLOGRAM_CACHE_DIR is too long";
  if (hg_user_cache_folder("hologram", folder, FOLDER_BYTES)) return NULL;
  return "the environment names no folder for it: HOLOGRAM_CACHE_DIR is not set, and the home is not set or too long";
}

/* A link as the last folder is looked at by the name without a slash behind it. */
static void cut_slashes(char *folder) {
  for (size_t length = strlen(folder); length > 1 && folder[length - 1] == '/'; length--) folder[length - 1] = '\0';
}

void hg_disk_cache_open(const hg_allocator *allocator, hg_disk_cache *disk) {
  disk->allocator = *allocator;
  disk->byte_cap = HG_DISK_CACHE_CAP;
  atomic_init(&disk->budget, 0); /* the first store looks at the folder's size */
  disk->absence = find_folder(disk->folder);
  if (disk->absence != NULL) disk->folder[0] = '\0';
  cut_slashes(disk->folder);
  disk->remark = hg_setting_number("HOLOGRAM_CACHE_SIZE", 0, UINT64_MAX, &disk->byte_cap) == HG_SETTING_BAD
                     ? "HOLOGRAM_CACHE_SIZE is not a number of bytes and is ignored"
                     : NULL;
}

const char *hg_disk_cache_problem(const hg_disk_cache *disk) {
  if (disk->absence != NULL) return disk->absence;
  hg_folder folder;
  hg_folder_state state = hg_folder_open(disk->folder, &folder);
  hg_folder_close(&folder);
  switch (state) {
  case HG_FOLDER_SHARED:
    return "its folder belongs to another user or others may write to it, so that kernels in it are not safe to run";
  case HG_FOLDER_OTHER: return "its path is not a folder";
  case HG_FOLDER_UNREADABLE: return "its folder cannot be read";
  case HG_FOLDER_ABSENT: return hg_directory_can_be_made(disk->folder) ? NULL : "its folder cannot be made";
  case HG_FOLDER_PRIVATE: break;
  }
  return NULL;
}

/* For what runs kernels: a folder that is there and that others may not write to. Close it in any case. */
static hg_folder_state open_folder(const hg_disk_cache *disk, hg_folder *folder) {
  *folder = (hg_folder){.state = HG_FOLDER_ABSENT, .handle = -1, .path = disk->folder};
  if (disk->folder[0] != '\0') hg_folder_open(disk->folder, folder);
  return folder->state;
}

typedef struct listing {
  const hg_allocator *allocator;
  hg_array *files;
  int complete;
} listing;

static int list_file(void *user, const hg_file_info *file) {
  listing *l = user;
  int kind = name_kind(file->name);
  if (kind < 0) return 1;
  hg_disk_file *out = hg_array_append(l->allocator, l->files, NULL, 1);
  if (out == NULL) return l->complete = 0;
  memcpy(out->name, file->name, strlen(file->name) + 1);
  out->is_entry = kind;
  out->is_refused = file->is_refused;
  out->byte_count = file->byte_count;
  out->modified_ns = file->modified_ns;
  return 1;
}

int hg_disk_cache_list(const hg_disk_cache *disk, hg_array *files) {
  listing l = {&disk->allocator, files, 1};
  hg_folder folder;
  open_folder(disk, &folder);
  hg_folder_list(&folder, list_file, &l);
  hg_folder_close(&folder);
  return l.complete;
}

int hg_disk_cache_remove(const hg_disk_cache *disk, const char *name) {
  hg_folder folder;
  open_folder(disk, &folder);
  int removed = name_kind(name) >= 0 && hg_folder_remove(&folder, name);
  hg_folder_close(&folder);
  return removed;
}

/* ---- eviction ---------------------------------------------------------------------------------------------------- */

static int used_before(const hg_disk_file *a, const hg_disk_file *b) {
  if (a->modified_ns != b->modified_ns) return a->modified_ns < b->modified_ns;
  return strcmp(a->name, b->name) < 0;
}

/* Heap with the least recently used file on top; qsort may allocate. */
static void sift_down(hg_disk_file *heap, size_t root, size_t count) {
  for (size_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && used_before(&heap[child + 1], &heap[child])) child++;
    if (!used_before(&heap[child], &heap[root])) return;
    hg_disk_file swapped = heap[root];
    heap[root] = heap[child];
    heap[child] = swapped;
  }
}

/* Evictions go down to this, below the cap, so that the next stores need none. */
static uint64_t evicted_cap(const hg_disk_cache *disk) { return disk->byte_cap - disk->byte_cap / 8; }

/* Removes the least recently used files while there are more than `target` bytes; returns how many bytes are left. A
 * file that another process has removed meanwhile counts as gone too. */
static uint64_t evict(const hg_disk_cache *disk, hg_disk_file *files, size_t count, uint64_t total, uint64_t target) {
  for (size_t i = count / 2; i-- > 0;) sift_down(files, i, count);
  while (total > target && count > 0) {
    hg_disk_cache_remove(disk, files[0].name);
    total -= files[0].byte_count;
    files[0] = files[--count];
    sift_down(files, 0, count);
  }
  return total;
}

/* Files that a process left half written: an hour older than the newest file. Only times of files are compared, because
 * this machine's clock need not be theirs. What is refused is not the cache's, and neither counts nor goes. */
static void remove_leftovers(const hg_disk_cache *disk, hg_disk_file *files, size_t *count) {
  const int64_t hour_ns = INT64_C(3600) * 1000000000;
  int64_t newest = INT64_MIN;
  size_t kept = 0;
  for (size_t i = 0; i < *count; i++)
    if (!files[i].is_refused && files[i].modified_ns > newest) newest = files[i].modified_ns;
  for (size_t i = 0; i < *count; i++) {
    if (files[i].is_refused) continue;
    int leftover = !files[i].is_entry && files[i].modified_ns < newest - hour_ns;
    if (!leftover || !hg_disk_cache_remove(disk, files[i].name)) files[kept++] = files[i];
  }
  *count = kept;
}

/* Lists the folder only now and then: when what this process has written since the last time may have filled it, or is
 * a sixteenth of the cap, so that several processes together exceed the cap by little. */
static void keep_below_cap(hg_disk_cache *disk, uint64_t written) {
  if (atomic_fetch_sub(&disk->budget, (int64_t)written) >= (int64_t)written) return;
  hg_array files = {.element_size = sizeof(hg_disk_file)};
  if (hg_disk_cache_list(disk, &files)) {
    hg_disk_file *first = files.data;
    uint64_t total = 0, most = disk->byte_cap / 16;
    remove_leftovers(disk, first, &files.count);
    for (size_t i = 0; i < files.count; i++) total += first[i].byte_count;
    if (total > disk->byte_cap) total = evict(disk, first, files.count, total, evicted_cap(disk));
    uint64_t room = disk->byte_cap > total ? disk->byte_cap - total : 0;
    atomic_store(&disk->budget, (int64_t)(room < most ? room : most));
  }
  hg_array_release(&disk->allocator, &files);
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static hg_disk_result load_from(hg_disk_cache *disk, const hg_folder *folder, const hg_cache_key *key,
                                const uint8_t *digest, hg_payload **out) {
  char name[HG_CACHE_NAME_BYTES];
  key_bytes wanted;
  uint8_t *file = NULL;
  size_t count = 0;
  file_view view;
  if (!key_open(key, &wanted)) return HG_DISK_MISS;
  entry_name(digest, name);
  hg_read_result read = hg_folder_read(folder, &disk->allocator, name, disk->byte_cap, &file, &count);
  if (read != HG_READ_OK) return read == HG_READ_REFUSED ? HG_DISK_REFUSED : HG_DISK_MISS;
  hg_disk_result result = HG_DISK_MISS;
  if (!file_check(file, count, &view) || !key_is(&wanted, view.key, view.key_count)) {
    hg_folder_remove(folder, name); /* it may just have been replaced by a good one: no harm but compiling once more */
    result = HG_DISK_DAMAGED;
  } else if ((*out = hg_payload_create(&disk->allocator, view.payload, view.payload_count)) != NULL) {
    hg_folder_touch(folder, name);
    result = HG_DISK_HIT;
  }
  hg_release(&disk->allocator, file);
  return result;
}

hg_disk_result hg_disk_cache_load(hg_disk_cache *disk, const hg_cache_key *key, const uint8_t *digest,
                                  hg_payload **out) {
  hg_folder folder;
  *out = NULL;
  hg_folder_state state = open_folder(disk, &folder);
  hg_disk_result result = state == HG_FOLDER_PRIVATE  ? load_from(disk, &folder, key, digest, out)
                          : state == HG_FOLDER_SHARED ? HG_DISK_REFUSED
                                                      : HG_DISK_MISS;
  hg_folder_close(&folder);
  return result;
}

/* The entry's name with a suffix that is unique among writers: process, time, and the address of a variable of this
 * thread. Should two be equal after all, creating the second file fails. */
static void temporary_name(const uint8_t *digest, char name[HG_CACHE_NAME_BYTES]) {
  char hex[HG_SHA256_HEX];
  hg_sha256_hex(digest, hex);
  uint64_t thread = (uint64_t)(uintptr_t)hex ^ hg_time_ns();
  snprintf(name, HG_CACHE_NAME_BYTES, "%s.%llx-%llx%s", hex, (unsigned long long)hg_process_id(),
           (unsigned long long)thread, temporary_suffix);
}

/* The folder, made if need be; 1 if kernels may be put there. Close it in any case. */
static int make_folder(const hg_disk_cache *disk, hg_folder *folder) {
  if (open_folder(disk, folder) == HG_FOLDER_ABSENT && disk->folder[0] != '\0' && hg_directory_create(disk->folder))
    open_folder(disk, folder);
  return folder->state == HG_FOLDER_PRIVATE;
}

int hg_disk_cache_scratch(const hg_disk_cache *disk, const uint8_t *digest, char path[HG_PATH_BYTES]) {
  char name[HG_CACHE_NAME_BYTES];
  hg_folder folder;
  int is_there = make_folder(disk, &folder);
  hg_folder_close(&folder);
  temporary_name(digest, name);
  return is_there && join(disk, name, path);
}

static int store_in(const hg_disk_cache *disk, const hg_folder *folder, const key_bytes *key, const uint8_t *digest,
                    const void *bytes, size_t byte_count) {
  char name[HG_CACHE_NAME_BYTES], temporary[HG_CACHE_NAME_BYTES];
  size_t count;
  uint8_t *file = file_make(&disk->allocator, key, bytes, byte_count, &count);
  if (file == NULL) return 0;
  entry_name(digest, name);
  temporary_name(digest, temporary);
  int stored = hg_folder_write(folder, temporary, name, file, count);
  hg_release(&disk->allocator, file);
  return stored;
}

int hg_disk_cache_store(hg_disk_cache *disk, const hg_cache_key *key, const uint8_t *digest, const void *bytes,
                        size_t byte_count) {
  key_bytes wanted;
  hg_folder folder;
  if (!key_open(key, &wanted)) return 0;
  uint64_t total = file_bytes(wanted.count, byte_count);
  if (total == 0 || total > evicted_cap(disk)) return 0; /* it would be evicted at once */
  int stored = make_folder(disk, &folder) && store_in(disk, &folder, &wanted, digest, bytes, byte_count);
  hg_folder_close(&folder);
  if (stored) keep_below_cap(disk, total);
  return stored;
}

/* ---- what an entry says of itself -------------------------------------------------------------------------------- */

static const uint8_t *copy_text(const uint8_t *bytes, uint64_t count, char text[64]) {
  size_t used = count < 63 ? (size_t)count : 63;
  for (size_t i = 0; i < used; i++) text[i] = bytes[i] >= 0x20 && bytes[i] < 0x7f ? (char)bytes[i] : '?';
  text[used] = '\0';
  return bytes + count;
}

static void describe(const file_view *view, hg_disk_entry *entry) {
  const uint8_t *numbers = view->key + HG_SHA256_BYTES, *texts = view->key + KEY_HEAD_BYTES;
  memcpy(entry->program, view->key, HG_SHA256_BYTES);
  entry->compiler_version = (uint32_t)hg_load_le(numbers, 4);
  texts = copy_text(texts, hg_load_le(numbers + 4, 4), entry->target);
  copy_text(texts, hg_load_le(numbers + 8, 4), entry->driver);
  entry->specialisation_bytes = hg_load_le(numbers + 12, 4);
  entry->payload_bytes = view->payload_count;
}

hg_disk_result hg_disk_cache_examine(const hg_disk_cache *disk, const char *name, hg_disk_entry *entry) {
  char hex[HG_SHA256_HEX];
  uint8_t digest[HG_SHA256_BYTES], *file = NULL;
  size_t count = 0;
  file_view view;
  hg_folder folder;
  memset(entry, 0, sizeof *entry);
  if (name_kind(name) != 1) return HG_DISK_MISS;
  open_folder(disk, &folder);
  hg_read_result read = hg_folder_read(&folder, &disk->allocator, name, SIZE_MAX / 2, &file, &count);
  hg_folder_close(&folder);
  if (read != HG_READ_OK) return read == HG_READ_REFUSED ? HG_DISK_REFUSED : HG_DISK_MISS;
  hg_disk_result result = HG_DISK_DAMAGED;
  if (file_check(file, count, &view)) {
    hash_bytes(view.key, view.key_count, digest);
    hg_sha256_hex(digest, hex);
    if (memcmp(hex, name, NAME_HEX) == 0) {
      describe(&view, entry);
      result = HG_DISK_HIT;
    }
  }
  hg_release(&disk->allocator, file);
  return result;
}
