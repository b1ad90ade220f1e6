/* tensors.c - tensors from C in a few lines: made, computed with, saved, loaded; and work that is cancelled. tensors
 * FOLDER leaves y.npy, for numpy.load, and both.safetensors there. */
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

/* A loop that would take minutes, and what the library says of its lines. */
static const char loop[] =
    ".program walk\n"
    ".buffer next u32 inout\n"
    "    movi.u32 r0, #4000000000\n"
    "    cvt.u32.u64 r1, lane\n"
    "again:\n"
    "    ldg.u32 r1, [next + r1]\n" /* each lane goes a way of its own */
    "    loop r0, again\n"
    "    stg.u32 [next + lane], r1\n"
    "    exit\n";

/* Another thread may call hg_cancel as well, for what this one waits for. */
static void cancel(hg_executor *executor, hg_buffer *next) {
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  hg_kernel_info info = {.size = sizeof info};
  hg_stream *stream = NULL;
  check(atlas_parse(NULL, loop, strlen(loop), "walk", &program));
  check(hg_kernel_create(executor, program, &kernel));
  atlas_program_release(program);
  check(hg_kernel_query(kernel, &info));
  printf("walk: %s\n", info.notes);
  check(hg_stream_create(executor, NULL, &stream));
  hg_binding binding = {.name = "next", .buffer = next};
  hg_launch_desc launch = {.size = sizeof launch, .lanes = COLUMNS, .bindings = &binding, .binding_count = 1,
                           .stream = stream};
  check(hg_launch(kernel, &launch, NULL));
  check(hg_cancel(executor));
  hg_status status = hg_stream_wait(stream, NULL);
  printf("walk: %s, %s\n", hg_status_name(status), hg_last_error());
  if (status != HG_CANCELLED) exit(1);
  hg_stream_release(stream);
  hg_kernel_release(kernel);
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

  hg_tensor next;
  check(hg_tensor_create(executor, ATLAS_u32, 1, (uint64_t[]){COLUMNS}, &next)); /* zeros */
  cancel(executor, next.buffer);
  hg_buffer_release(next.buffer);
  check(hg_apply(HG_OP_softmax, &y, 1, NULL, 0, &both[1], 1, NULL));

  hg_tensors_release(loaded);
  hg_buffer_release(y.buffer);
  for (int i = 0; i < 2; i++) hg_buffer_release(both[i].buffer);
  hg_executor_release(executor);
  return 0;
}
