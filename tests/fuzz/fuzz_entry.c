/* fuzz_entry.c - whatever the numbers of a kernel cache's file say, a launch of the kernel in it does not lead the host
 * astray. On the doubles of libcuda and of Metal: each input changes one of the entries that they have made, puts the
 * digest right, and launches that kernel in all its forms. What results, a launch may not be able to say: only that the
 * host reads and writes where it may is judged, by the sanitizers.
 *
 * An input: the entry's number, a set of flags, then changes of three bytes each: where, from hg_gpu_info on
 * (little-endian), and what. The machine code is left as it is: who writes that has the GPU, and here the GPU is this
 * process. */
#define _GNU_SOURCE
#include "backend/gpu/gpu.h"
#include "base/kernel_cache.h"
#include "fuzz.h"

#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { MOST_ENTRIES = 32, WORDS = 1024, LANES = 512, CUTS = 1, KEEPS_DIGEST = 2, IS_WHOLE = 4 };

typedef struct entry {
  hg_backend_id backend;
  char name[HG_CACHE_NAME_BYTES];
  uint8_t *bytes; /* of the whole file */
  size_t count, info, head; /* where what a launch must know begins, and where the machine code or text does */
} entry;

static entry entries[MOST_ENTRIES];
static size_t entry_count;
static char folder[2][64]; /* of each backend */
static const hg_backend_id backends[2] = {HG_BACKEND_CUDA, HG_BACKEND_METAL};
static hg_allocator plain;

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static const char *const texts[] = {
    ".program lanes\n.scalar a u32\n.scalar n u32\n.buffer x u32 in\n.buffer y u32 inout\nldg.u32 r0, [x + lane]\n"
    "ldg.u32 r1, [y + lane]\nmul.u32 r0, r0, a\ndiv.u32 r1, r1, n\nadd.u32 r0, r0, r1\nstg.u32 [y + lane], r0\nexit\n",
    ".program blocks\n.block 64\n.scalar a u32\n.scalar n u32\n.buffer x u32 in\n.buffer y u32 inout\n"
    ".shared tile u32 64\nldg.u32 r0, [x + lane]\nsts.u32 [tile + blane], r0\nbar.sync\nmul.u32 r0, r0, a\n"
    "div.u32 r0, r0, n\nreduce.add.u32 r3, r0\nmovi.u32 r4, #1\nres.accum.i64 r4, #1\nphase.adv.u32 #3\n"
    "stg.u32 [y + lane], r3\nexit\n"};
enum { TEXTS = sizeof texts / sizeof *texts };

static void launch(hg_kernel *kernel, hg_buffer *x, hg_buffer *y, uint64_t lanes, uint32_t block) {
  const hg_binding bindings[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}};
  const hg_scalar scalars[] = {{.name = "a", .type = ATLAS_u32, .bits = 3},
                               {.name = "n", .type = ATLAS_u32, .bits = 7}};
  hg_launch_desc desc = {.bindings = bindings, .binding_count = 2, .scalars = scalars, .scalar_count = 2};
  if (block == 0) desc.lanes = lanes;
  for (int d = 0; d < 3 && block != 0; d++) desc.grid[d] = desc.block[d] = 1;
  if (block != 0) {
    desc.grid[0] = (uint32_t)(lanes / block);
    desc.block[0] = block;
  }
  (void)hg_launch(kernel, &desc, NULL);
}

/* In the usual form, in that for shorter buffers, and in larger blocks. */
static void run_text(hg_executor *executor, const char *text) {
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  hg_buffer *x = NULL, *y = NULL;
  PROMISE(atlas_parse(NULL, text, strlen(text), "fuzz", &program) == HG_OK);
  int is_made = hg_kernel_create(executor, program, &kernel) == HG_OK &&
                hg_buffer_create(executor, NULL, WORDS * sizeof(uint32_t), &x) == HG_OK &&
                hg_buffer_create(executor, NULL, WORDS * sizeof(uint32_t), &y) == HG_OK;
  if (is_made) {
    launch(kernel, x, y, LANES, 0);
    launch(kernel, x, y, WORDS + 4, 0);
    launch(kernel, x, y, WORDS, 512);
  }
  hg_buffer_release(x);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
  atlas_program_release(program);
}

/* 0: this backend is not there. */
static int run_backend(size_t b, size_t first, size_t behind) {
  hg_executor *executor = NULL;
  const hg_executor_desc desc = {.size = sizeof desc, .backend = backends[b]};
  setenv("HOLOGRAM_CACHE_DIR", folder[b], 1);
  if (hg_executor_create(&desc, &executor) != HG_OK) return 0;
  for (size_t i = first; i < behind; i++) run_text(executor, texts[i]);
  hg_executor_release(executor);
  return 1;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static size_t text_of[MOST_ENTRIES];

static void keep_file(size_t b, size_t text, const char *name) {
  hg_folder from;
  entry *e = &entries[entry_count];
  for (size_t i = 0; i < entry_count; i++)
    if (entries[i].backend == backends[b] && strcmp(entries[i].name, name) == 0) return;
  PROMISE(entry_count < MOST_ENTRIES && hg_folder_open(folder[b], &from) == HG_FOLDER_PRIVATE);
  PROMISE(hg_folder_read(&from, &plain, name, 1 << 24, &e->bytes, &e->count) == HG_READ_OK);
  hg_folder_close(&from);
  e->backend = backends[b];
  snprintf(e->name, sizeof e->name, "%s", name);
  e->info = 24 + (e->bytes[12] | (size_t)e->bytes[13] << 8);
  e->head = e->info + sizeof(hg_gpu_info) + (b == 1 ? sizeof(uint64_t) : 0); /* Metal: the length of its text */
  PROMISE(e->head < e->count);
  text_of[entry_count++] = text;
}

static void keep_files(size_t b, size_t text) {
  hg_disk_cache disk;
  hg_array files = {.element_size = sizeof(hg_disk_file)};
  hg_disk_cache_open(&plain, &disk);
  PROMISE(hg_disk_cache_list(&disk, &files));
  for (size_t i = 0; i < files.count; i++) keep_file(b, text, ((const hg_disk_file *)files.data + i)->name);
  hg_array_release(&plain, &files);
}

static void put_file(size_t b, const char *name, const uint8_t *bytes, size_t count) {
  hg_folder to;
  PROMISE(hg_folder_open(folder[b], &to) == HG_FOLDER_PRIVATE && hg_folder_write(&to, "new", name, bytes, count));
  hg_folder_close(&to);
}

static int delete_file(void *user, const hg_file_info *file) {
  hg_folder_remove((const hg_folder *)user, file->name);
  return 1;
}

/* With the forms of kernels that only changed entries ask for. */
static void delete_folders(void) {
  for (size_t b = 0; b < 2; b++) {
    hg_folder of;
    hg_folder_open(folder[b], &of);
    hg_folder_list(&of, delete_file, &of);
    hg_folder_close(&of);
    rmdir(folder[b]);
  }
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  hg_allocator_resolve(NULL, &plain);
  setenv("HOLOGRAM_QUICK", "0", 1);
  unsetenv("HOLOGRAM_CACHE");
  for (size_t b = 0; b < 2; b++) {
    snprintf(folder[b], sizeof folder[b], "/tmp/hologram-fuzz-XXXXXX");
    PROMISE(mkdtemp(folder[b]) != NULL);
    for (size_t i = 0; i < TEXTS && run_backend(b, i, i + 1); i++) keep_files(b, i);
  }
  atexit(delete_folders);
  PROMISE(entry_count > 0); /* LD_LIBRARY_PATH: see tools/dev/fuzz.sh */
  return 0;
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

/* The changed file (malloc), whose size is *count. */
static uint8_t *changed(const entry *e, uint8_t flags, const uint8_t *data, size_t size, size_t *count) {
  int is_whole = (flags & IS_WHOLE) != 0;
  *count = is_whole ? size : e->count;
  uint8_t *file = malloc(*count > 0 ? *count : 1);
  PROMISE(file != NULL);
  if (*count > 0) memcpy(file, is_whole ? data : e->bytes, *count);
  for (size_t i = 0; !is_whole && i + 3 <= size; i += 3)
    file[(e->info + (data[i] | (size_t)data[i + 1] << 8)) % e->head] = data[i + 2];
  if (flags & CUTS && size >= 2) *count = (data[0] | (size_t)data[1] << 8) % (*count + 1);
  if (flags & KEEPS_DIGEST || *count < HG_SHA256_BYTES) return file;
  hg_sha256 hash;
  hg_sha256_begin(&hash);
  hg_sha256_add(&hash, file, *count - HG_SHA256_BYTES);
  hg_sha256_end(&hash, file + *count - HG_SHA256_BYTES);
  return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  size_t number = data[0] % entry_count, count = 0;
  const entry *e = &entries[number];
  size_t b = e->backend == backends[1];
  hg_disk_cache disk;
  hg_disk_entry shown;
  uint8_t *file = changed(e, data[1], data + 2, size - 2, &count);
  put_file(b, e->name, file, count);
  setenv("HOLOGRAM_CACHE_DIR", folder[b], 1);
  hg_disk_cache_open(&plain, &disk);
  (void)hg_disk_cache_examine(&disk, e->name, &shown);
  PROMISE(run_backend(b, text_of[number], text_of[number] + 1));
  put_file(b, e->name, e->bytes, e->count);
  free(file);
  return 0;
}
