/* test_devices.c - several devices and memory of others: which device, imports, copies between executors. On a double
 * of libcuda with two GPUs; on a real driver what needs no double. */
#define _GNU_SOURCE
#include "fake_gpu.h"

#include "backend/cuda/driver.h"
#include "runtime/runtime.h"

#include <pthread.h>

static int is_double, gpu_count;

static void check_clean(void) {
  if (is_double) CHECK_CLEAN();
}

static hg_status open_device(hg_backend_id backend, uint32_t number, hg_executor **executor) {
  hg_executor_desc desc = {.backend = backend, .device = number};
  return hg_executor_create(&desc, executor);
}

/* ---- which device ------------------------------------------------------------------------------------------------ */

static void test_numbers(void) {
  hg_executor *executor = NULL;
  hg_executor_info info = {0};
  CHECK_EQ_U64(open_device(HG_BACKEND_CUDA, 1, &executor), HG_OK);
  CHECK_EQ_U64(hg_executor_query(executor, &info), HG_OK);
  CHECK_STR(info.device_name, "Fake GPU 1 (compute capability 9.0, driver for CUDA 13.0)");
  hg_executor_release(executor);
  CHECK_EQ_U64(open_device(HG_BACKEND_CUDA, 2, &executor), HG_UNSUPPORTED);
  CHECK_STR(hg_last_error(),
            "the cuda backend is not available: there is no GPU 2: the driver shows 2, numbered from 0");
  CHECK_EQ_U64(open_device(HG_BACKEND_CPU, 1, &executor), HG_UNSUPPORTED);
  CHECK_STR(hg_last_error(), "the cpu backend is not available: the CPU is one device, number 0; there is no number 1");
  CHECK_EQ_U64(open_device(HG_BACKEND_AUTO, 2, &executor), HG_UNSUPPORTED);
  CHECK(executor == NULL);
  check_clean();
}

/* ---- imports ----------------------------------------------------------------------------------------------------- */

enum { LANES = 5000 };

static const char double_text[] =
    ".program double\n"
    ".buffer x u32 inout\n"
    "    ldg.u32 r0, [x + lane]\n"
    "    add.u32 r0, r0, r0\n"
    "    stg.u32 [x + lane], r0\n"
    "    exit\n";

static hg_status launch_double(hg_executor *executor, hg_buffer *x, uint64_t lanes) {
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, double_text, sizeof double_text - 1, NULL, &program), HG_OK);
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_OK);
  hg_binding binding = {.name = "x", .buffer = x};
  hg_launch_desc desc = {.lanes = lanes, .bindings = &binding, .binding_count = 1};
  hg_status status = hg_launch(kernel, &desc, NULL);
  hg_kernel_release(kernel);
  atlas_program_release(program);
  return status;
}

static void test_import_host(void) {
  static uint32_t memory[LANES + 2];
  hg_executor *executor = NULL;
  hg_buffer *x = NULL, *view = NULL;
  void *mapped = NULL;
  uint32_t value = 0;
  for (uint32_t i = 0; i < LANES + 2; i++) memory[i] = i + 1;
  CHECK_EQ_U64(open_device(HG_BACKEND_CPU, 0, &executor), HG_OK);
  CHECK_EQ_U64(hg_buffer_import(executor, memory + 1, 4 * LANES, &x), HG_OK); /* not at a multiple of 64 */
  CHECK_EQ_U64(hg_buffer_size(x), 4 * LANES);
  CHECK_EQ_U64(launch_double(executor, x, LANES), HG_OK);
  CHECK(memory[0] == 1 && memory[LANES + 1] == LANES + 2);
  for (uint32_t i = 1; i <= LANES; i++) CHECK_EQ_U64(memory[i], 2 * (i + 1));
  CHECK_EQ_U64(hg_buffer_import(executor, (uint8_t *)memory + 2, 4 * LANES, &view), HG_OK);
  CHECK_EQ_U64(launch_double(executor, view, LANES), HG_BINDING); /* no place for a u32 */
  char sentence[160];
  snprintf(sentence, sizeof sentence, "the range for 'x' starts at address 0x%llx; it must be a multiple of 4 (u32)",
           (unsigned long long)(uintptr_t)memory + 2);
  CHECK_STR(hg_last_error(), sentence);
  hg_buffer_release(view);
  CHECK_EQ_U64(hg_buffer_map(x, &mapped), HG_OK);
  CHECK(mapped == memory + 1);
  CHECK_EQ_U64(hg_buffer_unmap(x), HG_OK);
  CHECK_EQ_U64(hg_buffer_view(x, 8, 8, &view), HG_OK);
  hg_buffer_release(x);
  memory[3] = 77;
  CHECK_EQ_U64(hg_buffer_read(view, 0, &value, 4), HG_OK);
  CHECK_EQ_U64(value, 77);
  CHECK_EQ_U64(hg_buffer_read(view, 8, &value, 1), HG_OUT_OF_RANGE);
  hg_buffer_release(view);
  CHECK_EQ_U64(memory[4], 10); /* still there */
  CHECK_EQ_U64(hg_buffer_import(executor, memory, 0, &x), HG_OK);
  hg_buffer_release(x);
  CHECK_EQ_U64(hg_buffer_import(executor, NULL, 4, &x), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_buffer_import(executor, memory, UINT64_MAX - 5, &x), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_buffer_import(NULL, memory, 4, &x), HG_INVALID_ARGUMENT);
  hg_executor_release(executor);
}

/* Another library of this process: memory of its own in a GPU's primary context. */
typedef struct other_library {
  cuda_driver driver;
  void *context;
  int device;
} other_library;

static void enter_other(other_library *other, int device) {
  void *library = hg_library_open("libcuda.so.1", "");
#define SYMBOL(name, parameters) hg_library_find(library, #name, &other->driver.name);
#define SYMBOL_OPTIONAL SYMBOL
#include "backend/cuda/symbols.def"
#undef SYMBOL_OPTIONAL
#undef SYMBOL
  other->device = device;
  CHECK_EQ_U64(other->driver.cuInit(0), 0);
  CHECK_EQ_U64(other->driver.cuDevicePrimaryCtxRetain(&other->context, device), 0);
  CHECK_EQ_U64(other->driver.cuCtxPushCurrent_v2(other->context), 0);
}

static void leave_other(other_library *other) {
  void *popped = NULL;
  CHECK_EQ_U64(other->driver.cuCtxPopCurrent_v2(&popped), 0);
  CHECK_EQ_U64(other->driver.cuDevicePrimaryCtxRelease_v2(other->device), 0);
}

static void *at(cuda_address address) { return (void *)(uintptr_t)address; }

#define CHECK_IMPORT(memory, byte_count, sentence)                                                   \
  do {                                                                                               \
    CHECK_EQ_U64(hg_buffer_import(executor, memory, byte_count, &x), HG_INVALID_ARGUMENT);           \
    CHECK_STR(hg_last_error(), sentence);                                                            \
    CHECK(x == NULL);                                                                                \
  } while (0)

static void refuse_import_from(hg_executor *executor, int device) {
  hg_buffer *x = NULL;
  other_library second;
  cuda_address elsewhere = 0;
  enter_other(&second, device);
  CHECK_EQ_U64(second.driver.cuMemAlloc_v2(&elsewhere, 64), 0);
  CHECK_IMPORT(at(elsewhere), 64, "the memory to import is of GPU 1, and this executor's is GPU 0");
  CHECK_EQ_U64(second.driver.cuMemFree_v2(elsewhere), 0);
  leave_other(&second);
}

static void refuse_imports(hg_executor *executor, other_library *other, cuda_address memory) {
  static uint32_t host[4];
  hg_buffer *x = NULL;
  void *pinned = NULL;
  CHECK_IMPORT(host, sizeof host, "the memory to import is not known to the CUDA driver");
  if (is_double) /* on a GPU somebody else's memory may begin there */
    CHECK_IMPORT(at(memory), 4 * (LANES + 3), "only the first 20008 bytes of the memory to import are the GPU's");
  CHECK_EQ_U64(other->driver.cuMemHostAlloc(&pinned, 64, 0), 0);
  CHECK_IMPORT(pinned, 64, "the memory to import is the host's, not the GPU's");
  CHECK_EQ_U64(other->driver.cuMemFreeHost(pinned), 0);
  if (gpu_count > 1) refuse_import_from(executor, 1);
}

static void test_import_gpu(void) {
  static uint32_t numbers[LANES];
  other_library other;
  cuda_address memory = 0;
  hg_executor *executor = NULL;
  hg_buffer *x = NULL, *whole = NULL;
  void *mapped = NULL;
  uint32_t ends[2] = {0, 0};
  for (uint32_t i = 0; i < LANES; i++) numbers[i] = 3 * i;
  enter_other(&other, 0);
  CHECK_EQ_U64(other.driver.cuMemAlloc_v2(&memory, 4 * (LANES + 2)), 0);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_buffer_import(executor, at(memory), 4 * (LANES + 2), &whole), HG_OK);
  CHECK_EQ_U64(hg_buffer_fill(whole, 0, 4 * (LANES + 2), "\1\2\3\4", 4), HG_OK);
  CHECK_EQ_U64(hg_buffer_import(executor, at(memory + 4), 4 * LANES, &x), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(x, 0, numbers, sizeof numbers), HG_OK);
  CHECK_EQ_U64(launch_double(executor, x, LANES), HG_OK);
  CHECK_EQ_U64(launch_double(executor, x, LANES + 1), HG_FAULT); /* one lane too many, and not behind the buffer */
  CHECK_EQ_U64(hg_buffer_read(whole, 4, numbers, sizeof numbers), HG_OK);
  for (uint32_t i = 0; i < LANES; i++) CHECK_EQ_U64(numbers[i], 12 * i);
  CHECK_EQ_U64(hg_buffer_read(whole, 0, &ends[0], 4), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(whole, 4 * (LANES + 1), &ends[1], 4), HG_OK);
  CHECK(ends[0] == 0x04030201 && ends[1] == 0x04030201);
  CHECK_EQ_U64(hg_buffer_map(x, &mapped), HG_UNSUPPORTED);
  CHECK_STR(hg_last_error(), "imported memory of a GPU cannot be mapped; it is read and written by copies");
  hg_buffer_release(x);
  hg_buffer_release(whole);
  x = NULL;
  refuse_imports(executor, &other, memory);
  hg_executor_release(executor);
  CHECK_EQ_U64(other.driver.cuMemFree_v2(memory), 0); /* still its owner's */
  leave_other(&other);
  check_clean();
}

/* Memory of others that begins exactly where a buffer of ours ends, here in what its allocation was rounded up by. */
static void test_import_next_to_ours(void) {
  hg_executor *executor = NULL;
  hg_buffer *own = NULL, *end = NULL, *next = NULL;
  void *mapped = NULL;
  set("FAKECUDA_POOLS", "0");
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 64, &own), HG_OK);
  CHECK_EQ_U64(hg_buffer_import(executor, own->storage->address + 64, 64, &next), HG_OK);
  CHECK_EQ_U64(hg_buffer_map(next, &mapped), HG_UNSUPPORTED);
  CHECK(mapped == NULL);
  CHECK_EQ_U64(hg_buffer_unmap(next), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_buffer_view(own, 64, 0, &end), HG_OK); /* no bytes at the same address, but ours */
  CHECK_EQ_U64(hg_buffer_map(end, &mapped), HG_OK);
  CHECK_EQ_U64(hg_buffer_fill(next, 0, 64, "\1", 1), HG_OK);
  CHECK_EQ_U64(hg_buffer_map(next, &mapped), HG_UNSUPPORTED);
  hg_buffer_release(next);
  CHECK_EQ_U64(hg_buffer_unmap(end), HG_OK);
  CHECK_EQ_U64(hg_buffer_import(executor, own->storage->address, 64, &next), HG_OK); /* ours, and yet imported */
  CHECK_EQ_U64(hg_buffer_map(next, &mapped), HG_UNSUPPORTED);
  hg_buffer_release(next);
  hg_buffer_release(end);
  hg_buffer_release(own);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 0, &own), HG_OK);
  CHECK_EQ_U64(hg_buffer_map(own, &mapped), HG_OK);
  CHECK_EQ_U64(hg_buffer_unmap(own), HG_OK);
  hg_buffer_release(own);
  hg_executor_release(executor);
  set("FAKECUDA_POOLS", NULL);
  CHECK_CLEAN();
}

typedef struct counter {
  long allocations, fail_at, live;
} counter;

static void *counted_allocate(void *user, size_t size) {
  counter *c = user;
  if (c->allocations++ == c->fail_at) return NULL;
  void *memory = malloc(size);
  c->live += memory != NULL;
  return memory;
}

static void counted_release(void *user, void *memory) {
  counter *c = user;
  c->live--;
  free(memory);
}

static void test_import_without_memory(void) {
  static uint64_t memory[8];
  counter c = {.fail_at = -1};
  hg_allocator allocator = {
      .size = sizeof allocator, .user = &c, .allocate = counted_allocate, .release = counted_release};
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU, .allocator = &allocator};
  hg_executor *executor = NULL;
  hg_buffer *x = NULL;
  hg_status status = HG_OUT_OF_MEMORY;
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  long before = c.live;
  for (long n = 0; n < 10 && status != HG_OK; n++) {
    c.fail_at = c.allocations + n;
    status = hg_buffer_import(executor, memory, sizeof memory, &x);
    if (status == HG_OK) break;
    CHECK_EQ_U64(status, HG_OUT_OF_MEMORY);
    CHECK(x == NULL && c.live <= before + 1); /* the table of handles may have grown */
  }
  CHECK_EQ_U64(status, HG_OK);
  hg_buffer_release(x);
  hg_executor_release(executor);
  CHECK_EQ_U64(c.live, 0);
}

/* ---- copies between executors ------------------------------------------------------------------------------------ */

enum { EXECUTORS = 4, COPY_BYTES = 3 << 20 }; /* two of GPU 0, one of GPU 1 if there is one, the CPU */

static void open_executors(hg_executor *executors[EXECUTORS], hg_buffer *buffers[EXECUTORS]) {
  const uint32_t number[EXECUTORS] = {0, 0, gpu_count > 1, 0};
  for (int i = 0; i < EXECUTORS; i++) {
    CHECK_EQ_U64(open_device(i < 3 ? HG_BACKEND_CUDA : HG_BACKEND_CPU, number[i], &executors[i]), HG_OK);
    CHECK_EQ_U64(hg_buffer_create(executors[i], NULL, COPY_BYTES, &buffers[i]), HG_OK);
  }
}

static void close_executors(hg_executor *executors[EXECUTORS], hg_buffer *buffers[EXECUTORS]) {
  for (int i = 0; i < EXECUTORS; i++) {
    hg_buffer_release(buffers[i]);
    hg_executor_release(executors[i]);
  }
  check_clean();
}

static void test_copies(void) {
  static uint8_t bytes[COPY_BYTES], back[COPY_BYTES];
  hg_executor *executors[EXECUTORS];
  hg_buffer *buffers[EXECUTORS];
  open_executors(executors, buffers);
  for (int from = 0; from < EXECUTORS; from++)
    for (int to = 0; to < EXECUTORS; to++) {
      uint64_t size = COPY_BYTES - 100, from_offset = (uint64_t)from * 7, to_offset = 93 - (uint64_t)to * 5;
      for (size_t i = 0; i < COPY_BYTES; i++) bytes[i] = (uint8_t)(i * 31 + i / 251 + (size_t)(from * 16 + to));
      if (from == to) continue;
      uint8_t zero = 0;
      void *mapped = NULL;
      CHECK_EQ_U64(hg_buffer_write(buffers[from], 0, bytes, COPY_BYTES), HG_OK);
      CHECK_EQ_U64(hg_buffer_fill(buffers[to], 0, COPY_BYTES, &zero, 1), HG_OK);
      CHECK_EQ_U64(hg_buffer_map(buffers[from], &mapped), HG_OK); /* what the host writes there counts */
      ((uint8_t *)mapped)[from_offset + 5] = bytes[from_offset + 5] = 99;
      CHECK_EQ_U64(hg_buffer_copy(buffers[to], to_offset, buffers[from], from_offset, size), HG_OK);
      CHECK_EQ_U64(hg_buffer_unmap(buffers[from]), HG_OK);
      CHECK_EQ_U64(hg_buffer_fill(buffers[from], 0, COPY_BYTES, &zero, 1), HG_OK); /* it may change again */
      CHECK_EQ_U64(hg_buffer_read(buffers[to], 0, back, COPY_BYTES), HG_OK);
      CHECK(memcmp(back + to_offset, bytes + from_offset, size) == 0);
      CHECK(back[to_offset - 1] == 0 && back[to_offset + size] == 0);
    }
  CHECK_EQ_U64(hg_buffer_copy(buffers[0], 1, buffers[2], 0, COPY_BYTES), HG_OUT_OF_RANGE);
  close_executors(executors, buffers);
}

static void test_mapped_destination(void) {
  hg_executor *executors[EXECUTORS];
  hg_buffer *buffers[EXECUTORS];
  open_executors(executors, buffers);
  for (int to = 0; to < 3; to += 2) { /* from the other GPU */
    uint8_t value = (uint8_t)(40 + to);
    void *mapped = NULL;
    CHECK_EQ_U64(hg_buffer_map(buffers[to], &mapped), HG_OK);
    CHECK_EQ_U64(hg_buffer_write(buffers[2 - to], 8, &value, 1), HG_OK);
    CHECK_EQ_U64(hg_buffer_copy(buffers[to], 3, buffers[2 - to], 8, 1), HG_OK);
    CHECK_EQ_U64(((uint8_t *)mapped)[3], value);
    CHECK_EQ_U64(hg_buffer_unmap(buffers[to]), HG_OK);
  }
  close_executors(executors, buffers);
}

typedef struct crossing {
  hg_buffer *to, *from;
} crossing;

static void *copy_often(void *user) {
  const crossing *c = user;
  for (int i = 0; i < 300; i++)
    if (hg_buffer_copy(c->to, 0, c->from, 4096, 4096) != HG_OK) return user;
  return NULL;
}

/* Both ways at the same time. */
static void test_crossing(void) {
  hg_executor *executors[EXECUTORS];
  hg_buffer *buffers[EXECUTORS];
  open_executors(executors, buffers);
  crossing crossings[4] = {{buffers[0], buffers[2]}, {buffers[2], buffers[0]}, {buffers[3], buffers[2]},
                           {buffers[2], buffers[3]}};
  pthread_t threads[4];
  void *failed = NULL;
  for (int i = 0; i < 4; i++) CHECK_EQ_U64(pthread_create(&threads[i], NULL, copy_often, &crossings[i]), 0);
  for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], &failed) == 0 && failed == NULL);
  close_executors(executors, buffers);
}

static void test_failing_copies(void) {
  hg_executor *executors[EXECUTORS];
  hg_buffer *buffers[EXECUTORS];
  open_executors(executors, buffers);
  set("FAKECUDA_FAIL", "cuMemcpyPeerAsync:1=1");
  CHECK_EQ_U64(hg_buffer_copy(buffers[2], 0, buffers[0], 0, 64), HG_DEVICE);
  CHECK_STR(hg_last_error(),
            "could not copy from another GPU: the driver refused an argument (CUDA_ERROR_INVALID_VALUE, 1)");
  set("FAKECUDA_FAIL", "cuDeviceCanAccessPeer:0=801"); /* then through the host */
  CHECK_EQ_U64(hg_buffer_copy(buffers[0], 0, buffers[2], 0, 64), HG_OK);
  set("FAKECUDA_FAIL", "cuCtxEnablePeerAccess:0=704 cuMemPoolSetAccess:0=801"); /* done before; not to be had */
  CHECK_EQ_U64(hg_buffer_copy(buffers[1], 0, buffers[2], 0, 64), HG_OK);
  set("FAKECUDA_FAIL", NULL);
  close_executors(executors, buffers);
}

/* What ruins a GPU's context ruins it for all that share it, and for nobody else. */
static void test_ruin(void) {
  hg_executor *first = NULL, *second = NULL, *elsewhere = NULL, *fresh = NULL;
  hg_buffer *x = NULL, *y = NULL, *z = NULL;
  uint32_t value = 7;
  CHECK_EQ_U64(open_device(HG_BACKEND_CUDA, 0, &first), HG_OK);
  CHECK_EQ_U64(open_device(HG_BACKEND_CUDA, 0, &second), HG_OK);
  CHECK_EQ_U64(open_device(HG_BACKEND_CUDA, 1, &elsewhere), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(first, NULL, 64, &x), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(second, NULL, 64, &y), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(elsewhere, NULL, 64, &z), HG_OK);
  set("FAKECUDA_FAIL", "cuEventSynchronize:1=719");
  CHECK_EQ_U64(hg_buffer_read(x, 0, &value, 4), HG_DEVICE);
  set("FAKECUDA_FAIL", NULL);
  CHECK_EQ_U64(hg_buffer_read(y, 0, &value, 4), HG_DEVICE);
  CHECK_EQ_U64(hg_buffer_write(z, 0, &value, 4), HG_OK);
  CHECK_EQ_U64(launch_double(elsewhere, z, 1), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(z, 0, &value, 4), HG_OK);
  CHECK_EQ_U64(value, 14);
  hg_buffer_release(x);
  hg_executor_release(first);
  CHECK_EQ_U64(hg_buffer_read(y, 0, &value, 4), HG_DEVICE); /* the other one still holds the context */
  CHECK(strstr(hg_last_error(), "; release all executors of this GPU, then make a new one, or a new process") != NULL);
  hg_buffer_release(y);
  hg_executor_release(second);
  CHECK_EQ_U64(open_device(HG_BACKEND_CUDA, 0, &fresh), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(fresh, NULL, 64, &x), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(x, 0, &value, 4), HG_OK);
  CHECK_EQ_U64(launch_double(fresh, x, 1), HG_OK);
  hg_buffer_release(x);
  hg_buffer_release(z);
  hg_executor_release(fresh);
  hg_executor_release(elsewhere);
  check_clean();
}

/* A kernel for which there is no memory is loaded again when what is kept for later has been given back. */
static void test_full_of_kept(void) {
  hg_executor *executor = NULL;
  hg_buffer *x = NULL;
  CHECK_EQ_U64(open_device(HG_BACKEND_CUDA, 0, &executor), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 64, &x), HG_OK);
  (void)gpu.refusals();
  set("FAKECUDA_FAIL", "cuModuleLoadData:1=2");
  CHECK_EQ_U64(launch_double(executor, x, 16), HG_OK);
  CHECK_EQ_U64(gpu.refusals(), 1);
  set("FAKECUDA_FAIL", NULL);
  hg_buffer_release(x);
  hg_executor_release(executor);
  check_clean();
}

static int count_gpus(void) {
  cuda_driver driver;
  int count = 0;
  if (hg_cuda_driver_load(&driver) != HG_OK) return 0;
  return driver.cuDeviceGetCount(&count) == CUDA_OK ? count : 0;
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  set("HOLOGRAM_CACHE_DIR", "/dev/null/none");
  is_double = find_fake_gpu();
  set("FAKECUDA_DEVICES", "2");
  gpu_count = count_gpus();
  if (gpu_count == 0) {
    printf("there is no GPU, and no double of libcuda (LD_LIBRARY_PATH)\n");
    CHECK(0);
    return check_report();
  }
  if (is_double) test_numbers();
  test_import_host();
  test_import_gpu();
  if (is_double) test_import_next_to_ours();
  test_import_without_memory();
  test_copies();
  test_mapped_destination();
  test_crossing();
  if (is_double) test_failing_copies();
  if (is_double) test_ruin();
  if (is_double) test_full_of_kept();
  return check_report();
}
