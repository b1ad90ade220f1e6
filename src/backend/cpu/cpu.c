/* cpu.c - the CPU as a backend: memory is cpu_memory.c's, kernels are cpu_kernel.c's. */
#include "backend/backend.h"

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/cpu_memory.h"
#include "base/error.h"
#include "base/os.h"
#include "base/threads.h"

#include <string.h>

typedef struct cpu_device {
  hg_cpu_memory memory;
  hg_cpu_compiler compiler;
} cpu_device;

static hg_status check_number(uint32_t number) {
  if (number == 0) return HG_OK;
  return hg_fail(HG_UNSUPPORTED, "the CPU is one device, number 0; there is no number %u", (unsigned)number);
}

static hg_status cpu_query(uint32_t number, hg_device_info *info) {
  hg_cpu_compiler compiler;
  static const hg_allocator none = {0};
  HG_TRY(check_number(number));
  HG_TRY(hg_cpu_compiler_open(&compiler, &none)); /* allocates nothing */
  *info = (hg_device_info){.engine = hg_cpu_compiler_engine(&compiler),
                           .compute_units = hg_thread_limit(),
                           .max_shared_bytes = ATLAS_MAX_SHARED_BYTES,
                           .memory_bytes = hg_physical_memory(),
                           .remark = hg_thread_remark()};
  if (info->remark == NULL) info->remark = hg_stream_remark();
  hg_cpu_name(info->name, sizeof info->name);
  return HG_OK;
}

static hg_status cpu_open(const hg_allocator *allocator, uint32_t number, void **device) {
  HG_TRY(check_number(number));
  cpu_device *cpu = hg_allocate(allocator, 1, sizeof *cpu);
  if (cpu == NULL) return hg_fail_memory("the CPU device", sizeof *cpu);
  hg_status status = hg_cpu_compiler_open(&cpu->compiler, allocator);
  if (status != HG_OK) {
    hg_release(allocator, cpu);
    return status;
  }
  hg_cpu_memory_open(&cpu->memory, allocator);
  cpu->compiler.stream_bytes = cpu->memory.stream_bytes;
  *device = cpu;
  return HG_OK;
}

static void cpu_close(void *device) {
  cpu_device *cpu = device;
  hg_allocator allocator = cpu->memory.allocator;
  hg_cpu_compiler_close(&cpu->compiler);
  hg_cpu_memory_close(&cpu->memory);
  hg_release(&allocator, cpu);
}

static hg_status cpu_allocate(void *device, uint64_t byte_count, uint32_t alignment, int zeroed, uint8_t **address) {
  cpu_device *cpu = device;
  return hg_cpu_allocate(&cpu->memory, byte_count, alignment, zeroed, address);
}

static void cpu_free(void *device, uint8_t *address) {
  cpu_device *cpu = device;
  hg_cpu_free(&cpu->memory, address);
}

/* Nobody can say whose memory it is. */
static hg_status cpu_adopt(void *device, const uint8_t *memory, uint64_t byte_count) {
  (void)device;
  (void)memory;
  (void)byte_count;
  return HG_OK;
}

static hg_status cpu_copy_in(void *device, uint8_t *destination, const void *source, uint64_t byte_count) {
  cpu_device *cpu = device;
  hg_cpu_copy(&cpu->memory, destination, source, byte_count);
  return HG_OK;
}

static hg_status cpu_copy_out(void *device, void *destination, const uint8_t *source, uint64_t byte_count) {
  cpu_device *cpu = device;
  hg_cpu_copy(&cpu->memory, destination, source, byte_count);
  return HG_OK;
}

static hg_status cpu_copy_within(void *device, uint8_t *destination, const uint8_t *source, uint64_t byte_count) {
  cpu_device *cpu = device;
  hg_cpu_copy(&cpu->memory, destination, source, byte_count);
  return HG_OK;
}

static hg_status cpu_fill(void *device, uint8_t *destination, uint64_t byte_count, const void *pattern,
                          size_t pattern_size) {
  cpu_device *cpu = device;
  uint8_t repeated[sizeof(uint64_t)];
  uint64_t bits = 0;
  for (size_t i = 0; i < sizeof repeated; i++) repeated[i] = ((const uint8_t *)pattern)[i % pattern_size];
  memcpy(&bits, repeated, sizeof bits);
  hg_cpu_fill(&cpu->memory, destination, byte_count, bits);
  return HG_OK;
}

static hg_status cpu_map(void *device, uint8_t *address, uint64_t byte_count, void **memory) {
  (void)device;
  (void)byte_count;
  *memory = address;
  return HG_OK;
}

static hg_status cpu_unmap(void *device, uint8_t *address, uint64_t byte_count) {
  (void)device;
  (void)address;
  (void)byte_count;
  return HG_OK;
}

static hg_status cpu_compile(void *device, hg_compile_input *input, hg_compiled *out) {
  cpu_device *cpu = device;
  hg_cpu_kernel *kernel = NULL;
  HG_TRY(hg_cpu_kernel_create(&cpu->compiler, input, &kernel));
  *out = (hg_compiled){kernel, hg_cpu_kernel_engine(kernel)};
  return HG_OK;
}

static void cpu_release(void *device, void *kernel) {
  (void)device;
  hg_cpu_kernel_release(kernel);
}

static hg_status cpu_launch(void *device, void *kernel, atlas_launch *launch) {
  (void)device;
  return hg_cpu_kernel_launch(kernel, launch);
}

extern const hg_backend hg_backend_cpu; /* declared again by src/runtime/backends.c, from the table */
const hg_backend hg_backend_cpu = {
    .name = "cpu",
    .query = cpu_query,
    .open = cpu_open,
    .close = cpu_close,
    .allocate = cpu_allocate,
    .free = cpu_free,
    .adopt = cpu_adopt,
    .copy_in = cpu_copy_in,
    .copy_out = cpu_copy_out,
    .copy_within = cpu_copy_within,
    .memory_is_host = 1,
    .fill = cpu_fill,
    .map = cpu_map,
    .unmap = cpu_unmap,
    .compile = cpu_compile,
    .release = cpu_release,
    .launch = cpu_launch,
};
