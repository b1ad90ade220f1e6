/* test_tensor_files.c - files of tensors: each allocation of saving and loading fails once, and nothing is lost or left
 * behind; memory holds the elements once. What files may say is in tests/ops/test_tensor_files.py. */
#define _GNU_SOURCE /* setenv */
#include "cache_folder.h"
#include "each_allocation.h"

#include "hologram/ops.h"

enum { ROWS = 700, COLUMNS = 1100, SIZE = ROWS * COLUMNS }; /* 3 MB: several parts */

static float numbers[SIZE], found[SIZE];
static char folder[FOLDER_BYTES];

typedef struct stage {
  hg_tensor tensors[2]; /* a matrix, and its transpose without a copy */
} stage;

static void prepare(void *state) {
  stage *s = state;
  const uint64_t shape[2] = {ROWS, COLUMNS};
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_f32, 2, shape, &s->tensors[0]), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(s->tensors[0].buffer, 0, numbers, sizeof numbers), HG_OK);
  s->tensors[1] = s->tensors[0];
  for (int d = 0; d < 2; d++) {
    s->tensors[1].shape[d] = s->tensors[0].shape[1 - d];
    s->tensors[1].stride[d] = s->tensors[0].stride[1 - d];
  }
}

static const char *path_of(const char *name) {
  static char path[FOLDER_BYTES + 32];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void check_loaded(const hg_tensor *tensor, int is_transposed) {
  CHECK_EQ_U64(tensor->type, ATLAS_f32);
  CHECK_EQ_U64(tensor->shape[0], is_transposed ? COLUMNS : ROWS);
  CHECK_EQ_U64(hg_buffer_size(tensor->buffer), sizeof found);
  CHECK_EQ_U64(hg_buffer_read(tensor->buffer, 0, found, sizeof found), HG_OK);
  int is_same = 1;
  for (size_t i = 0; i < SIZE; i++) is_same &= found[i] == numbers[is_transposed ? i % ROWS * COLUMNS + i / ROWS : i];
  CHECK(is_same);
}

static hg_status act_on_one(void *state, const hg_allocator *allocator) {
  stage *s = state;
  (void)allocator;
  hg_tensor loaded;
  hg_status status = hg_tensor_save(&s->tensors[1], path_of("one.npy"));
  if (status == HG_OK) status = hg_tensor_load(executor, path_of("one.npy"), &loaded);
  if (status != HG_OK) return status;
  check_loaded(&loaded, 1);
  hg_buffer_release(loaded.buffer);
  return HG_OK;
}

static hg_status act_on_many(void *state, const hg_allocator *allocator) {
  static const char *const names[] = {"as it is", "transposed"};
  static const char *const texts[] = {"key", "a \"text\"", "other key", ""};
  stage *s = state;
  (void)allocator;
  hg_tensors *loaded = NULL;
  hg_status status = hg_tensors_save_texts(names, s->tensors, 2, texts, 2, path_of("many.safetensors"));
  if (status == HG_OK) status = hg_tensors_load(executor, path_of("many.safetensors"), &loaded);
  if (status != HG_OK) return status;
  CHECK_EQ_U64(hg_tensors_count(loaded), 2);
  for (size_t i = 0; i < 2; i++)
    check_loaded(hg_tensors_at(loaded, i), strcmp(hg_tensors_name(loaded, i), names[1]) == 0);
  for (size_t i = 0; i < 4; i++) CHECK(strcmp(hg_tensors_text(loaded, i), texts[i]) == 0);
  CHECK(hg_tensors_text(loaded, 4) == NULL);
  hg_tensors_release(loaded);
  return HG_OK;
}

static void check(void *state, hg_status status) {
  (void)state;
  (void)status;
  CHECK(count_files(folder) <= 1); /* no temporary one */
}

static void end(void *state) { hg_buffer_release(((stage *)state)->tensors[0].buffer); }

static void test_failures(void) {
  static const attempt attempts[] = {{.prepare = prepare, .act = act_on_one, .check = check, .end = end},
                                     {.prepare = prepare, .act = act_on_many, .check = check, .end = end}};
  static stage s;
  for (size_t k = 0; k < COUNT(attempts); k++) {
    CHECK(each_allocation_fails(&attempts[k], &s) >= 6);
    empty_folder(folder);
  }
}

/* ---- how much memory --------------------------------------------------------------------------------------------- */

typedef struct meter {
  size_t now, most;
} meter;

enum { HEAD = 16 }; /* in front of each piece: its size */

static void *metered_allocate(void *user, size_t size) {
  meter *m = user;
  char *memory = malloc(size + HEAD);
  if (memory == NULL) return NULL;
  memcpy(memory, &size, sizeof size);
  m->now += size;
  if (m->now > m->most) m->most = m->now;
  return memory + HEAD;
}

static void metered_release(void *user, void *memory) {
  meter *m = user;
  size_t size;
  memcpy(&size, (char *)memory - HEAD, sizeof size);
  m->now -= size;
  free((char *)memory - HEAD);
}

/* More than what there is before, beside the buffers of what is loaded: less than half of the elements. */
static void check_room(const meter *m, size_t before, size_t buffers) {
  if (!check_note(m->most - before < buffers + sizeof numbers / 2))
    printf("%zu bytes at most, with %zu before and %zu for buffers\n", m->most, before, buffers);
}

static void test_room(void) {
  static const char *const names[] = {"one", "other"};
  meter m = {0};
  const hg_allocator allocator = {
      .size = sizeof allocator, .user = &m, .allocate = metered_allocate, .release = metered_release};
  stage s;
  hg_tensor loaded;
  hg_tensors *many = NULL;
  CHECK_EQ_U64(open_test_executor(&allocator, &executor), HG_OK);
  prepare(&s);
  s.tensors[1] = s.tensors[0];
  size_t before = m.now;
  m.most = m.now;
  CHECK_EQ_U64(hg_tensor_save(&s.tensors[0], path_of("room.npy")), HG_OK);
  CHECK_EQ_U64(hg_tensors_save(names, s.tensors, 2, path_of("room.safetensors")), HG_OK);
  check_room(&m, before, 0);
  CHECK_EQ_U64(hg_tensor_load(executor, path_of("room.npy"), &loaded), HG_OK);
  check_room(&m, before, sizeof numbers);
  hg_buffer_release(loaded.buffer);
  CHECK_EQ_U64(hg_tensors_load(executor, path_of("room.safetensors"), &many), HG_OK);
  check_room(&m, before, 2 * sizeof numbers);
  hg_tensors_release(many);
  end(&s);
  hg_executor_release(executor);
}

int main(void) {
  make_folder(folder, "tensor-files");
  set_variable("HOLOGRAM_NUM_THREADS", "1"); /* so that allocations have one order */
  for (size_t i = 0; i < SIZE; i++) numbers[i] = (float)(i * 7919 % 65537);
  test_failures();
  test_room();
  delete_folder(folder);
  return check_report();
}
