/* test_kernel_cache_disk.c - the kernel cache's files: one that is not right in every bit is never used, and nothing
 * that is wrong with the disk or the environment is an error. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "cache_folder.h"
#include "check.h"

#if !defined(_WIN32)
#  include <fcntl.h>
#  include <signal.h>
#  include <sys/resource.h>
#  include <sys/stat.h>
#  include <sys/wait.h>
#  include <unistd.h>
#endif

static hg_allocator plain;

static void put_on_disk(const sample *s) {
  hg_kernel_cache *cache = open_cache();
  put(cache, s);
  hg_kernel_cache_release(cache);
}

static void path_of(const char *folder, const sample *s, char path[HG_PATH_BYTES]) {
  uint8_t digest[HG_SHA256_BYTES];
  char hex[HG_SHA256_HEX];
  CHECK(hg_cache_key_digest(&s->key, digest));
  hg_sha256_hex(digest, hex);
  CHECK(snprintf(path, HG_PATH_BYTES, "%s/%s.kernel", folder, hex) < HG_PATH_BYTES);
}

static int exists(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file != NULL) fclose(file);
  return file != NULL;
}

static hg_folder_state state_of(const char *path) {
  hg_folder folder;
  hg_folder_state state = hg_folder_open(path, &folder);
  hg_folder_close(&folder);
  return state;
}

static void write_bytes(const char *path, const void *bytes, size_t count) {
  FILE *file = fopen(path, "wb");
  CHECK(file != NULL && fwrite(bytes, 1, count, file) == count);
  if (file != NULL) CHECK(fclose(file) == 0);
}

/* ---- damaged files ----------------------------------------------------------------------------------------------- */

/* Writes a damaged file in the sample's place: it must not be used, and must be gone afterwards. */
static void check_damaged(const sample *s, const char *path, const uint8_t *bytes, size_t count) {
  write_bytes(path, bytes, count);
  CHECK(!on_disk(s));
  CHECK(!exists(path));
}

static void test_damaged(void) {
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES], other_path[HG_PATH_BYTES];
  sample s, other;
  uint8_t *file = NULL, *other_file = NULL, damaged[512];
  size_t count = 0, other_count = 0;
  make_folder(folder, "damaged");
  make_sample(&s, 5, 60);
  make_sample(&other, 6, 60);
  put_on_disk(&s);
  put_on_disk(&other);
  path_of(folder, &s, path);
  path_of(folder, &other, other_path);
  CHECK_EQ_U64(hg_file_read(&plain, path, 511, &file, &count), HG_READ_OK);
  CHECK_EQ_U64(hg_file_read(&plain, other_path, 511, &other_file, &other_count), HG_READ_OK);
  CHECK_EQ_U64(count, 24 + 48 + 4 + 8 + 4 + 60 + 32);
  for (size_t i = 0; i < count; i++) {
    for (int bit = 0; bit <= 8; bit++) { /* each bit alone, and the whole byte */
      memcpy(damaged, file, count);
      damaged[i] ^= (uint8_t)(bit < 8 ? 1 << bit : 0xff);
      check_damaged(&s, path, damaged, count);
    }
  }
  for (size_t i = 0; i < count; i++) check_damaged(&s, path, file, i);
  memcpy(damaged, file, count);
  memset(damaged + count, 0, sizeof damaged - count);
  for (size_t i = count + 1; i < sizeof damaged; i += 37) check_damaged(&s, path, damaged, i);
  memset(damaged, 0, sizeof damaged);
  check_damaged(&s, path, damaged, count);
  check_damaged(&s, path, other_file, other_count); /* sound, but another key's */
  write_bytes(path, file, count);
  CHECK(on_disk(&s));
  CHECK(on_disk(&other));
  hg_release(&plain, file);
  hg_release(&plain, other_file);
  delete_folder(folder);
}

/* Under the name that its key asks for, a file that has the right digest and wrong numbers: it must not lead a reader
 * of it astray either. */
static void check_examined(const char *folder, const uint8_t *file, size_t count) {
  char name[HG_SHA256_HEX + 8], path[HG_PATH_BYTES];
  uint8_t digest[HG_SHA256_BYTES];
  hg_disk_cache disk;
  hg_disk_entry entry;
  hash_of(file + 24, count - 24 - 10 - 32, digest);
  hg_sha256_hex(digest, name);
  memcpy(name + 64, ".kernel", 8);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  write_bytes(path, file, count);
  hg_disk_cache_open(&plain, &disk);
  CHECK_EQ_U64(hg_disk_cache_examine(&disk, name, &entry), HG_DISK_DAMAGED);
  CHECK(hg_disk_cache_remove(&disk, name));
}

/* Wrong numbers under a right digest, as another version might write them. */
static void test_wrong_numbers(void) {
  static const struct {
    size_t offset;
    unsigned byte_count;
    uint64_t value;
  } cases[] = {
      {8, 4, 0},  {8, 4, 2},  {12, 4, 0},  {12, 4, 63},  {12, 4, 65},  {12, 4, UINT32_MAX},
      {16, 8, 0}, {16, 8, 9}, {16, 8, 11}, {16, 8, UINT64_MAX}, {16, 8, UINT64_MAX - 23}, {60, 4, 0},
      {60, 4, 5}, {60, 4, UINT32_MAX}, {64, 4, 9}, {64, 4, UINT32_MAX - 3}, {68, 4, 3}, {68, 4, UINT32_MAX},
  };
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES];
  sample s;
  uint8_t *file = NULL;
  size_t count = 0;
  make_folder(folder, "numbers");
  make_sample(&s, 7, 10);
  put_on_disk(&s);
  path_of(folder, &s, path);
  CHECK_EQ_U64(hg_file_read(&plain, path, 1000, &file, &count), HG_READ_OK);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint8_t damaged[512];
    memcpy(damaged, file, count);
    for (unsigned k = 0; k < cases[i].byte_count; k++)
      damaged[cases[i].offset + k] = (uint8_t)(cases[i].value >> 8 * k);
    hash_of(damaged, count - 32, damaged + count - 32);
    check_damaged(&s, path, damaged, count);
    check_examined(folder, damaged, count);
  }
  hg_release(&plain, file);
  delete_folder(folder);
}

static void test_examine(void) {
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES];
  sample s;
  hg_disk_cache disk;
  hg_disk_entry entry;
  hg_array files = {.element_size = sizeof(hg_disk_file)};
  make_folder(folder, "examine");
  make_sample(&s, 9, 77);
  s.key.driver = "bell \a\n";
  put_on_disk(&s);
  snprintf(path, sizeof path, "%s/notes.kernel", folder);
  write_bytes(path, "mine", 4); /* not the cache's */
  hg_disk_cache_open(&plain, &disk);
  CHECK(hg_disk_cache_problem(&disk) == NULL && disk.remark == NULL);
  CHECK_STR(disk.folder, folder);
  CHECK(hg_disk_cache_list(&disk, &files));
  CHECK_EQ_U64(files.count, 1);
  hg_disk_file *file = files.data;
  CHECK(file->is_entry && file->byte_count == 24 + 48 + 4 + 7 + 4 + 77 + 32 && file->modified_ns > 0);
  CHECK_EQ_U64(hg_disk_cache_examine(&disk, file->name, &entry), HG_DISK_HIT);
  CHECK(memcmp(entry.program, s.key.program, 32) == 0);
  CHECK_STR(entry.target, "sm_1");
  CHECK_STR(entry.driver, "bell ??");
  CHECK_EQ_U64(entry.compiler_version, 3);
  CHECK_EQ_U64(entry.specialisation_bytes, 4);
  CHECK_EQ_U64(entry.payload_bytes, 77);
  CHECK_EQ_U64(hg_disk_cache_examine(&disk, "notes.kernel", &entry), HG_DISK_MISS);
  CHECK(!hg_disk_cache_remove(&disk, "notes.kernel") && !hg_disk_cache_remove(&disk, "../x"));
  CHECK(hg_disk_cache_remove(&disk, file->name));
  CHECK_EQ_U64(hg_disk_cache_examine(&disk, file->name, &entry), HG_DISK_MISS);
  CHECK_EQ_U64(count_files(folder), 1);
  hg_array_release(&plain, &files);
  delete_folder(folder);
}

/* ---- the environment --------------------------------------------------------------------------------------------- */

static void check_open(const char *folder, const char *words, uint64_t byte_cap) {
  hg_disk_cache disk;
  hg_disk_cache_open(&plain, &disk);
  CHECK_STR(disk.folder, folder);
  CHECK((disk.absence != NULL) == (folder[0] == '\0'));
  CHECK_STR(disk.absence != NULL ? disk.absence : disk.remark != NULL ? disk.remark : "", words);
  CHECK_EQ_U64(disk.byte_cap, byte_cap);
}

static void count_message(void *user, hg_log_level level, const char *message) {
  CHECK(level >= HG_LOG_WARNING && message[0] != '\0');
  ++*(int *)user;
}

static void test_environment(void) {
  static const char absent[] =
      "the environment names no folder for it: HOLOGRAM_CACHE_DIR is not set, and the home is not set or too long";
  const char *home[] = {"HOLOGRAM_CACHE", "HOLOGRAM_CACHE_DIR", "HOLOGRAM_CACHE_SIZE", "XDG_CACHE_HOME", "HOME",
                        "LOCALAPPDATA"};
  char saved[6][HG_PATH_BYTES], long_path[5001];
  int messages = 0;
  sample s;
  for (int i = 0; i < 6; i++) hg_environment(home[i], saved[i], HG_PATH_BYTES);
  for (int i = 0; i < 6; i++) set_variable(home[i], NULL);
  for (int i = 0; i < 5000; i++) long_path[i] = i % 200 == 0 ? '/' : 'x';
  long_path[5000] = '\0';
  check_open("", absent, HG_DISK_CACHE_CAP);
  make_sample(&s, 1, 100); /* without a home: in memory all the same, and one message */
  hg_kernel_cache *cache = hg_kernel_cache_create(&plain, 0, count_message, &messages);
  put(cache, &s);
  CHECK(in_cache(cache, &s));
  hg_kernel_cache_release(cache);
  CHECK_EQ_U64(messages, 1);
#if !defined(_WIN32)
  set_variable("HOME", "/home/me");
  check_open("/home/me/.cache/hologram", "", HG_DISK_CACHE_CAP);
  set_variable("XDG_CACHE_HOME", "/caches");
  check_open("/caches/hologram", "", HG_DISK_CACHE_CAP);
  set_variable("XDG_CACHE_HOME", "caches"); /* relative: not valid, says the specification */
  check_open("/home/me/.cache/hologram", "", HG_DISK_CACHE_CAP);
  set_variable("XDG_CACHE_HOME", long_path); /* then the home is not taken either */
  check_open("", absent, HG_DISK_CACHE_CAP);
  set_variable("XDG_CACHE_HOME", "caches");
#endif
  set_variable("HOLOGRAM_CACHE_DIR", long_path); /* of two lengths: more than a path, and no room for a file below it */
  check_open("", "HOLOGRAM_CACHE_DIR is too long", HG_DISK_CACHE_CAP);
  long_path[HG_PATH_BYTES - HG_CACHE_NAME_BYTES] = '\0';
  set_variable("HOLOGRAM_CACHE_DIR", long_path);
  check_open("", "HOLOGRAM_CACHE_DIR is too long", HG_DISK_CACHE_CAP);
  long_path[HG_PATH_BYTES - HG_CACHE_NAME_BYTES - 1] = '\0';
  set_variable("HOLOGRAM_CACHE_DIR", long_path);
  check_open(long_path, "", HG_DISK_CACHE_CAP);
  set_variable("HOLOGRAM_CACHE_DIR", "here");
  set_variable("HOLOGRAM_CACHE_SIZE", "12345");
  check_open("here", "", 12345);
  const char *wrong[] = {"1M", "-1", "12345678901234567890123", "0x10", " 1"};
  for (int i = 0; i < 5; i++) {
    set_variable("HOLOGRAM_CACHE_SIZE", wrong[i]);
    check_open("here", "HOLOGRAM_CACHE_SIZE is not a number of bytes and is ignored", HG_DISK_CACHE_CAP);
  }
  set_variable("HOLOGRAM_CACHE", "1");
  check_open("here", "HOLOGRAM_CACHE_SIZE is not a number of bytes and is ignored", HG_DISK_CACHE_CAP);
  set_variable("HOLOGRAM_CACHE", "0");
  check_open("", "HOLOGRAM_CACHE=0 turns it off", HG_DISK_CACHE_CAP);
  for (int i = 0; i < 6; i++) set_variable(home[i], saved[i][0] != '\0' ? saved[i] : NULL);
}

/* What is wrong with the folder that is set; "": nothing. */
static void check_problem(const char *expected) {
  hg_disk_cache disk;
  hg_disk_cache_open(&plain, &disk);
  const char *problem = hg_disk_cache_problem(&disk);
  CHECK_STR(problem != NULL ? problem : "", expected);
}

/* A folder that is made on demand with all above it; then one that is a file, and one below a file. */
static void test_folders(void) {
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES], below[HG_PATH_BYTES];
  sample s;
  int messages = 0;
  make_folder(folder, "folders");
  make_sample(&s, 3, 200);
  snprintf(path, sizeof path, "%s/a", folder);
  snprintf(below, sizeof below, "%s/a/b", folder);
  set_variable("HOLOGRAM_CACHE_DIR", below);
  CHECK(!on_disk(&s));
  check_problem("");
  CHECK_EQ_U64(state_of(path), HG_FOLDER_ABSENT); /* looking makes nothing */
  put_on_disk(&s);
  CHECK_EQ_U64(state_of(below), HG_FOLDER_PRIVATE);
  CHECK(on_disk(&s));
#if !defined(_WIN32)
  struct stat info;
  CHECK(stat(below, &info) == 0 && (info.st_mode & 0777) == 0700);
  CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0700);
  char file[HG_PATH_BYTES];
  path_of(below, &s, file);
  CHECK(stat(file, &info) == 0 && (info.st_mode & 0777) == 0600);
#endif
  empty_folder(below);
  remove_folder(below);
  put_on_disk(&s); /* removed and made again */
  CHECK(on_disk(&s));
  empty_folder(below);
  remove_folder(below);
  remove_folder(path);
  write_bytes(path, "file", 4);
  for (int i = 0; i < 2; i++) {
    set_variable("HOLOGRAM_CACHE_DIR", i == 0 ? path : below);
    check_problem(i == 0 ? "its path is not a folder" : "its folder cannot be made");
    hg_kernel_cache *cache = hg_kernel_cache_create(&plain, 0, count_message, &messages);
    put(cache, &s);
    put(cache, &s);
    CHECK(in_cache(cache, &s));
    CHECK(!on_disk(&s));
    hg_kernel_cache_release(cache);
    CHECK_EQ_U64(messages, i + 1);
  }
  CHECK_EQ_U64(count_files(folder), 1);
  delete_folder(folder);
}

#if !defined(_WIN32)

/* ---- disks that do not want to ----------------------------------------------------------------------------------- */

/* Runs a test in a process of its own, because it changes what that process may do. Its checks count here. */
static void in_child(void (*test)(void)) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    check_failed = 0;
    test();
    fflush(stdout);
    _exit(check_failed > 0);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Permissions do not bind the superuser, so that it becomes nobody. */
static void test_read_only(void) {
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES];
  sample s, other;
  if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
    printf("skipped: read-only folder: running as the superuser, who cannot be bound here\n");
    return;
  }
  make_folder(folder, "read-only");
  make_sample(&s, 1, 100);
  make_sample(&other, 2, 100);
  put_on_disk(&s);
  CHECK(chmod(folder, 0500) == 0);
  CHECK(on_disk(&s)); /* reading goes on */
  put_on_disk(&other);
  CHECK(!on_disk(&other));
  path_of(folder, &s, path);
  write_bytes(path, "damaged", 7);
  CHECK(!on_disk(&s)); /* cannot be removed, is not used */
  CHECK(exists(path));
  CHECK(chmod(path, 0) == 0);
  CHECK(!on_disk(&s));
  CHECK(chmod(folder, 0) == 0);
  CHECK(!on_disk(&s));
  put_on_disk(&s);
  CHECK(chmod(folder, 0700) == 0);
  CHECK_EQ_U64(count_files(folder), 1);
  delete_folder(folder);
}

/* No file may grow beyond 300 bytes: what a full disk does in the middle of an entry. */
static void test_full(void) {
  char folder[FOLDER_BYTES];
  sample s;
  struct rlimit limit = {300, 300};
  make_folder(folder, "full");
  make_sample(&s, 1, 1000);
  signal(SIGXFSZ, SIG_IGN);
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  hg_kernel_cache *cache = open_cache();
  put(cache, &s);
  CHECK(in_cache(cache, &s));
  CHECK_EQ_U64(count_files(folder), 0); /* no part of it is left */
  CHECK(!on_disk(&s));
  make_sample(&s, 1, 100);
  put(cache, &s);
  CHECK(on_disk(&s));
  hg_kernel_cache_release(cache);
  delete_folder(folder);
}

/* What is no regular file is left alone, and is replaced where it can be. */
static void test_odd_files(void) {
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES];
  sample s;
  make_folder(folder, "odd");
  make_sample(&s, 1, 100);
  path_of(folder, &s, path);
  CHECK(mkfifo(path, 0600) == 0);
  CHECK(!on_disk(&s)); /* and does not wait for a writer */
  put_on_disk(&s);
  CHECK(on_disk(&s));
  CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
  CHECK(!on_disk(&s));
  put_on_disk(&s);
  CHECK(!on_disk(&s));
  CHECK(rmdir(path) == 0 && symlink("nowhere", path) == 0);
  CHECK(!on_disk(&s));
  put_on_disk(&s);
  CHECK(on_disk(&s));
  CHECK_EQ_U64(count_files(folder), 1);
  delete_folder(folder);
}

/* Folders that are not there and cannot be, for reasons other than a file above them. */
static void test_impossible_folders(void) {
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES], name[301];
  make_folder(folder, "impossible");
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  snprintf(path, sizeof path, "%s/%s", folder, name);
  set_variable("HOLOGRAM_CACHE_DIR", path);
  check_problem("its folder cannot be made");
  snprintf(path, sizeof path, "%s/link", folder);
  CHECK(symlink("nowhere", path) == 0);
  set_variable("HOLOGRAM_CACHE_DIR", path);
  check_problem("its folder cannot be made");
  CHECK(unlink(path) == 0);
  check_problem("");
  set_variable("HOLOGRAM_CACHE_DIR", "nowhere"); /* below the current folder */
  check_problem("");
  CHECK(chmod(folder, 0500) == 0);
  set_variable("HOLOGRAM_CACHE_DIR", path);
  if (geteuid() != 0) check_problem("its folder cannot be made");
  CHECK(chmod(folder, 0700) == 0);
  delete_folder(folder);
}

/* A folder that everybody may write to could hold anybody's machine code. */
static void test_open_folder(void) {
  char folder[FOLDER_BYTES];
  sample s;
  hg_disk_cache disk;
  make_folder(folder, "open");
  make_sample(&s, 1, 100);
  put_on_disk(&s);
  hg_disk_cache_open(&plain, &disk);
  CHECK(hg_disk_cache_problem(&disk) == NULL);
  CHECK(chmod(folder, 01777) == 0);
  CHECK(hg_disk_cache_problem(&disk) != NULL);
  CHECK(!on_disk(&s));
  make_sample(&s, 2, 100);
  put_on_disk(&s);
  CHECK_EQ_U64(count_files(folder), 1);
  if (geteuid() == 0) { /* another user's */
    CHECK(chmod(folder, 0700) == 0 && chown(folder, 65534, 65534) == 0);
    CHECK(!on_disk(&s));
  }
  delete_folder(folder);
}

/* ---- what others may have written -------------------------------------------------------------------------------- */

/* Looks for a sample twice in a cache of its own: refused, and said once. */
static void check_refused(const sample *s) {
  int messages = 0;
  hg_kernel_cache *cache = hg_kernel_cache_create(&plain, 0, count_message, &messages);
  for (int i = 0; i < 2; i++) CHECK(!in_cache(cache, s));
  hg_kernel_cache_release(cache);
  CHECK_EQ_U64(messages, 1);
}

static void test_modes(void) {
  static const struct {
    mode_t mode;
    int is_private;
  } rows[] = {{0700, 1}, {0755, 1}, {0770, 0}, {0775, 0}, {01770, 1}, {01775, 1}, {0777, 0}, {01777, 0}, {0702, 0}};
  char folder[FOLDER_BYTES];
  sample s;
  make_folder(folder, "modes");
  make_sample(&s, 1, 100);
  put_on_disk(&s);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    CHECK(chmod(folder, rows[i].mode) == 0);
    CHECK_EQ_U64(state_of(folder), rows[i].is_private ? HG_FOLDER_PRIVATE : HG_FOLDER_SHARED);
    if (rows[i].is_private) CHECK(on_disk(&s));
    else check_refused(&s);
  }
  CHECK(chmod(folder, 0700) == 0);
  delete_folder(folder);
}

/* A sound entry, but in a file that others may have made: never taken, and replaced by the next store. */
static void test_foreign_files(void) {
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES], other[HG_PATH_BYTES];
  sample s;
  make_folder(folder, "foreign");
  make_sample(&s, 1, 100);
  path_of(folder, &s, path);
  snprintf(other, sizeof other, "%s/elsewhere", folder);
  enum { LINK, SECOND_NAME, GROUP, OTHERS, OWNER, KINDS };
  for (int kind = 0; kind < KINDS; kind++) {
    if (kind == OWNER && geteuid() != 0) continue; /* only the superuser can give a file away */
    put_on_disk(&s);
    CHECK(on_disk(&s));
    if (kind == LINK) CHECK(rename(path, other) == 0 && symlink(other, path) == 0);
    if (kind == SECOND_NAME) CHECK(link(path, other) == 0);
    if (kind == GROUP) CHECK(chmod(path, 0660) == 0);
    if (kind == OTHERS) CHECK(chmod(path, 0606) == 0);
    if (kind == OWNER) CHECK(chown(path, 65534, 65534) == 0);
    check_refused(&s);
    put_on_disk(&s);
    CHECK(on_disk(&s));
    unlink(other);
  }
  delete_folder(folder);
}

/* `cache ls` shows them, and the cap neither counts nor removes them. */
static void test_listed(void) {
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES];
  sample s;
  hg_disk_cache disk;
  hg_disk_entry entry;
  hg_array files = {.element_size = sizeof(hg_disk_file)};
  make_folder(folder, "listed");
  make_sample(&s, 1, 100);
  path_of(folder, &s, path);
  CHECK(symlink("/etc/passwd", path) == 0);
  hg_disk_cache_open(&plain, &disk);
  CHECK(hg_disk_cache_list(&disk, &files) && files.count == 1);
  const hg_disk_file *file = files.data;
  CHECK(file->is_entry && file->is_refused);
  CHECK_EQ_U64(hg_disk_cache_examine(&disk, file->name, &entry), HG_DISK_REFUSED);
  make_sample(&s, 2, 100);
  put_on_disk(&s); /* the first store looks at the folder */
  CHECK_EQ_U64(count_files(folder), 2);
  CHECK(hg_disk_cache_remove(&disk, file->name) && exists("/etc/passwd"));
  hg_array_release(&plain, &files);
  delete_folder(folder);
}

/* The folder's own name may be a link of the user's, but nobody else's. */
static void test_folder_links(void) {
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES], inside[HG_PATH_BYTES];
  sample s;
  make_folder(folder, "links");
  make_sample(&s, 1, 100);
  snprintf(inside, sizeof inside, "%s/inside", folder);
  snprintf(path, sizeof path, "%s/link", folder);
  CHECK(mkdir(inside, 0700) == 0 && symlink(inside, path) == 0);
  snprintf(path, sizeof path, "%s/link///", folder);
  set_variable("HOLOGRAM_CACHE_DIR", path);
  put_on_disk(&s);
  CHECK(on_disk(&s));
  CHECK_EQ_U64(count_files(inside), 1);
  snprintf(path, sizeof path, "%s/link", folder);
  if (geteuid() == 0) {
    CHECK(lchown(path, 65534, 65534) == 0);
    CHECK_EQ_U64(state_of(path), HG_FOLDER_SHARED);
    check_refused(&s);
    check_problem("its folder belongs to another user or others may write to it, so that kernels in it are not safe to "
                  "run");
  }
  empty_folder(inside);
  remove_folder(inside);
  delete_folder(folder);
}

/* What was opened is used, whatever its path leads to afterwards. */
static void test_renamed(void) {
  char folder[FOLDER_BYTES], inside[HG_PATH_BYTES], moved[HG_PATH_BYTES];
  hg_folder open;
  uint8_t *bytes = NULL;
  size_t count = 0;
  make_folder(folder, "renamed");
  snprintf(inside, sizeof inside, "%s/inside", folder);
  snprintf(moved, sizeof moved, "%s/moved", folder);
  CHECK(mkdir(inside, 0700) == 0);
  CHECK_EQ_U64(hg_folder_open(inside, &open), HG_FOLDER_PRIVATE);
  CHECK(rename(inside, moved) == 0 && mkdir(inside, 0700) == 0);
  CHECK(hg_folder_write(&open, "new", "name", "bytes", 5));
  CHECK_EQ_U64(hg_folder_read(&open, &plain, "name", 5, &bytes, &count), HG_READ_OK);
  CHECK(count == 5 && memcmp(bytes, "bytes", 5) == 0);
  CHECK(count_files(inside) == 0 && count_files(moved) == 1);
  CHECK(hg_folder_remove(&open, "name"));
  hg_folder_close(&open);
  hg_release(&plain, bytes);
  remove_folder(inside);
  remove_folder(moved);
  delete_folder(folder);
}

/* As the perf map is written, in a folder that is everybody's. */
static void test_append(void) {
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES], victim[HG_PATH_BYTES];
  uint8_t *bytes = NULL;
  size_t count = 0;
  make_folder(folder, "append");
  snprintf(path, sizeof path, "%s/map", folder);
  snprintf(victim, sizeof victim, "%s/victim", folder);
  CHECK(hg_file_append(path, "one ") && hg_file_append(path, "two"));
  CHECK_EQ_U64(hg_file_read(&plain, path, 100, &bytes, &count), HG_READ_OK);
  CHECK(count == 7 && memcmp(bytes, "one two", 7) == 0);
  hg_release(&plain, bytes);
  write_bytes(victim, "mine", 4);
  CHECK(unlink(path) == 0 && symlink(victim, path) == 0 && !hg_file_append(path, "x"));
  CHECK(unlink(path) == 0 && symlink("not there", path) == 0 && !hg_file_append(path, "x"));
  CHECK(unlink(path) == 0 && link(victim, path) == 0 && !hg_file_append(path, "x"));
  CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0 && !hg_file_append(path, "x")); /* and does not wait */
  CHECK(chmod(victim, 0666) == 0 && !hg_file_append(victim, "x"));
  CHECK_EQ_U64(hg_file_read(&plain, victim, 100, &bytes, &count), HG_READ_OK);
  CHECK_EQ_U64(count, 4);
  hg_release(&plain, bytes);
  delete_folder(folder);
}

/* ---- the cap on disk --------------------------------------------------------------------------------------------- */

static void set_time(const char *path, time_t seconds) {
  struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
  CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* Twenty entries of one tenth of the cap each: the ones used last stay. */
static void test_disk_eviction(void) {
  enum { COUNT = 20, EACH = 1000 };
  static sample samples[COUNT];
  char folder[FOLDER_BYTES], path[HG_PATH_BYTES], leftover[HG_PATH_BYTES], fresh[HG_PATH_BYTES];
  make_folder(folder, "evict");
  set_variable("HOLOGRAM_CACHE_SIZE", "10000");
  for (uint32_t i = 0; i < COUNT; i++) make_sample(&samples[i], i, EACH - 24 - 48 - 4 - 8 - 4 - 32);
  path_of(folder, &samples[19], leftover); /* files being written: long ago, and now */
  snprintf(leftover + strlen(leftover) - 7, 32, ".1-2.tmp");
  snprintf(fresh, sizeof fresh, "%s", leftover);
  fresh[strlen(fresh) - 5] = '3';
  write_bytes(leftover, "", 0);
  write_bytes(fresh, "", 0);
  set_time(leftover, 900000);
  put_on_disk(&samples[0]);
  CHECK(!exists(leftover)); /* with room for more */
  CHECK(exists(fresh) && hg_file_remove(fresh));
  for (uint32_t i = 0; i < 10; i++) {
    put_on_disk(&samples[i]);
    path_of(folder, &samples[i], path);
    set_time(path, 1000000 + (i * 7 % 10) * 60); /* used in the order 0 3 6 9 2 5 8 1 4 7 */
  }
  CHECK_EQ_U64(count_files(folder), 10);
  path_of(folder, &samples[0], path);
  CHECK(on_disk(&samples[0])); /* a hit makes it the newest */
  struct stat info;
  CHECK(stat(path, &info) == 0 && info.st_mtime > 1700000000);
  set_time(path, 1000000 + 100 * 60);
  put_on_disk(&samples[10]); /* 11000 bytes: down to 8750, so that three go */
  CHECK_EQ_U64(count_files(folder), 8);
  static const uint8_t gone[11] = {[3] = 1, [6] = 1, [9] = 1};
  for (int i = 0; i < 11; i++) {
    path_of(folder, &samples[i], path);
    CHECK_EQ_U64(exists(path), !gone[i]);
  }
  hg_kernel_cache *cache = open_cache(); /* one process alone is never above the cap */
  for (int i = 0; i < 3 * COUNT; i++) {
    put(cache, &samples[i % COUNT]);
    CHECK(count_files(folder) <= 10);
    path_of(folder, &samples[i % COUNT], path);
    CHECK(exists(path));
  }
  hg_kernel_cache_release(cache);
  CHECK(count_files(folder) >= 7);
  set_variable("HOLOGRAM_CACHE_SIZE", "1100"); /* an entry that hardly fits is not stored, */
  empty_folder(folder);
  put_on_disk(&samples[0]);
  CHECK_EQ_U64(count_files(folder), 0);
  set_variable("HOLOGRAM_CACHE_SIZE", "0"); /* nor is any without room */
  put_on_disk(&samples[0]);
  CHECK_EQ_U64(count_files(folder), 0);
  delete_folder(folder);
}
#endif

int main(void) {
  hg_allocator_resolve(NULL, &plain);
#if !defined(_WIN32)
  umask(022); /* files that these tests write themselves are the user's alone */
#endif
  test_damaged();
  test_wrong_numbers();
  test_examine();
  test_environment();
  test_folders();
#if !defined(_WIN32)
  in_child(test_read_only);
  in_child(test_full);
  test_odd_files();
  test_impossible_folders();
  test_open_folder();
  test_modes();
  test_foreign_files();
  test_listed();
  test_folder_links();
  test_renamed();
  test_append();
  test_disk_eviction();
#endif
  return check_report();
}
