/* tensors.c - tensors from C in a few lines: made, computed with, saved, loaded, cancelled. tensors FOLDER leaves
 * y.npy, for numpy.load, and both.safetensors there. */
#include <hologram/ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, COLUMNS = 256 };

static void check(hg_status status) {
  if (status == HG_OK) return;
  fprintf(stderr, "%s: %s\n", hg_status_name(status), hg_last_error());
  exit(1);
}

static const char *in(const char *folder, const char *name, char path[4096]) {
  snprintf(path, 4096, "%s/%s", folder, name);
  return path;
}

int main(int argc, char **argv) {
  static float numbers[ROWS * COLUMNS], again[ROWS * COLUMNS];
  const char *folder = argc > 1 ? argv[1] : ".", *names[] = {"x", "y"};
  char path[4096];
  uint64_t shape[] = {ROWS, COLUMNS};
  hg_executor *executor = NULL;
  hg_executor_desc desc = {.size = sizeof desc, .backend = HG_BACKEND_CPU, .threads = 2};
  check(hg_executor_create(&desc, &executor));

  hg_tensor both[2], y;
  for (int i = 0; i < 2; i++) check(hg_tensor_create(executor, ATLAS_f32, 2, shape, &both[i]));
  for (int i = 0; i < ROWS * COLUMNS; i++) numbers[i] = (float)(i % 97) / 16;
  check(hg_buffer_write(both[0].buffer, 0, numbers, sizeof numbers));
  check(hg_apply(HG_OP_softmax, &both[0], 1, NULL, 0, &both[1], 1, NULL));

  check(hg_tensor_save(&both[1], in(folder, "y.npy", path)));
  check(hg_tensor_load(executor, path, &y));
  check(hg_buffer_read(both[1].buffer, 0, numbers, sizeof numbers));
  check(hg_buffer_read(y.buffer, 0, again, sizeof again));
  if (memcmp(numbers, again, sizeof numbers) != 0) return 1;

  hg_tensors *loaded = NULL;
  check(hg_tensors_save(names, both, 2, in(folder, "both.safetensors", path)));
  check(hg_tensors_load(executor, path, &loaded));
  for (size_t i = 0; i < hg_tensors_count(loaded); i++)
    printf("%s: %s, rank %u\n", hg_tensors_name(loaded, i), atlas_type_name((atlas_type)hg_tensors_at(loaded, i)->type),
           (unsigned)hg_tensors_at(loaded, i)->rank);

  check(hg_cancel(executor)); /* what another thread calls to end what this one waits for; nothing is under way here */
  check(hg_apply(HG_OP_softmax, &y, 1, NULL, 0, &both[1], 1, NULL));

  hg_tensors_release(loaded);
  hg_buffer_release(y.buffer);
  for (int i = 0; i < 2; i++) hg_buffer_release(both[i].buffer);
  hg_executor_release(executor);
  return 0;
}
