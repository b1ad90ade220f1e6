/* saxpy.c - the first program of README.md, built against an installed Hologram: exit status 0 if the answer is right.
 */
#include <hologram/hologram.h>

#include <stdio.h>
#include <string.h>

static const char text[] = ".program saxpy\n"
                           ".buffer x f32 in\n"
                           ".buffer y f32 inout\n"
                           ".scalar a f32\n"
                           "  ldg.f32 r0, [x + lane]\n"
                           "  ldg.f32 r1, [y + lane]\n"
                           "  mov.f32 r2, a\n"
                           "  fma.f32 r3, r2, r0, r1\n"
                           "  stg.f32 [y + lane], r3\n"
                           "  exit\n";

enum { COUNT = 1000 };

static hg_status run(float *x, float *y, float a) {
  hg_executor *executor = NULL;
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  hg_buffer *buffers[2] = {NULL, NULL};
  hg_scalar scalar = {.name = "a", .type = ATLAS_f32, .bits = atlas_f32_const(a).bits};

  hg_status status = hg_executor_create(NULL, &executor);
  if (status == HG_OK) status = atlas_parse(NULL, text, strlen(text), "saxpy.atlas", &program);
  if (status == HG_OK) status = hg_kernel_create(executor, program, &kernel);
  for (int i = 0; i < 2 && status == HG_OK; i++) {
    status = hg_buffer_create(executor, NULL, COUNT * sizeof(float), &buffers[i]);
    if (status == HG_OK) status = hg_buffer_write(buffers[i], 0, i == 0 ? x : y, COUNT * sizeof(float));
  }
  if (status == HG_OK) {
    hg_binding bindings[] = {{.name = "x", .buffer = buffers[0]}, {.name = "y", .buffer = buffers[1]}};
    hg_launch_desc launch = {
        .lanes = COUNT, .bindings = bindings, .binding_count = 2, .scalars = &scalar, .scalar_count = 1};
    status = hg_launch(kernel, &launch, NULL);
  }
  if (status == HG_OK) status = hg_buffer_read(buffers[1], 0, y, COUNT * sizeof(float));

  hg_buffer_release(buffers[0]);
  hg_buffer_release(buffers[1]);
  hg_kernel_release(kernel);
  atlas_program_release(program);
  hg_executor_release(executor);
  return status;
}

int main(void) {
  static float x[COUNT], y[COUNT];
  for (int i = 0; i < COUNT; i++) {
    x[i] = (float)i;
    y[i] = 1;
  }
  if (run(x, y, 2) != HG_OK) {
    fprintf(stderr, "%s\n", hg_last_error());
    return 1;
  }
  for (int i = 0; i < COUNT; i++)
    if (y[i] != 2 * (float)i + 1) return 1;
  printf("hologram %s: %d lanes, y = 2 * x + 1\n", hg_version(), COUNT);
  return 0;
}
