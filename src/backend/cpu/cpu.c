/* cpu.c - the CPU as a backend: memory is the allocator's, launches run on the reference machine. */
#include "backend/backend.h"

#include "base/error.h"
#include "base/os.h"

#include <string.h>

typedef struct cpu_device {
  hg_allocator allocator;
} cpu_device;

static hg_status cpu_query(hg_device_info *info) {
  *info = (hg_device_info){.engine = "reference",
                           .compute_units = hg_hardware_threads(),
                           .max_shared_bytes = ATLAS_MAX_SHARED_BYTES,
                           .memory_bytes = hg_physical_memory()};
  hg_cpu_name(info->name, sizeof info->name);
  return HG_OK;
}

static hg_status cpu_open(const hg_allocator *allocator, void **device) {
  cpu_device *cpu = hg_allocate(allocator, 1, sizeof *cpu);
  if (cpu == NULL) return hg_fail_memory("the CPU device", sizeof *cpu);
  cpu->allocator = *allocator;
  *device = cpu;
  return HG_OK;
}

static void cpu_close(void *device) {
  hg_allocator allocator = ((cpu_device *)device)->allocator;
  hg_release(&allocator, device);
}

/* The allocator promises no alignment beyond C's own, so an allocation is enlarged, moved up to the alignment, and
 * remembers in front of itself where it began. */
static hg_status cpu_allocate(void *device, uint64_t byte_count, uint32_t alignment, uint8_t **address) {
  cpu_device *cpu = device;
  uint64_t extra = alignment + sizeof(uint8_t *);
  if (byte_count > SIZE_MAX / 2 - extra) return hg_fail_memory("a buffer", byte_count);
  uint8_t *block = cpu->allocator.allocate(cpu->allocator.user, (size_t)(byte_count + extra));
  if (block == NULL) return hg_fail_memory("a buffer", byte_count);
  uintptr_t first = (uintptr_t)(block + sizeof block);
  size_t padding = (size_t)(-first & (alignment - 1));
  uint8_t *aligned = block + sizeof block + padding;
  memcpy(aligned - sizeof block, &block, sizeof block);
  *address = aligned;
  return HG_OK;
}

static void cpu_free(void *device, uint8_t *address) {
  cpu_device *cpu = device;
  void *block;
  memcpy(&block, address - sizeof block, sizeof block);
  hg_release(&cpu->allocator, block);
}

static hg_status cpu_copy_in(void *device, uint8_t *destination, const void *source, uint64_t byte_count) {
  (void)device;
  memmove(destination, source, (size_t)byte_count); /* move: the source may be mapped memory of the same buffer */
  return HG_OK;
}

static hg_status cpu_copy_out(void *device, void *destination, const uint8_t *source, uint64_t byte_count) {
  (void)device;
  memmove(destination, source, (size_t)byte_count);
  return HG_OK;
}

static hg_status cpu_copy_within(void *device, uint8_t *destination, const uint8_t *source, uint64_t byte_count) {
  (void)device;
  memmove(destination, source, (size_t)byte_count);
  return HG_OK;
}

static hg_status cpu_fill(void *device, uint8_t *destination, uint64_t byte_count, const void *pattern,
                          size_t pattern_size) {
  (void)device;
  size_t total = (size_t)byte_count;
  if (total == 0) return HG_OK;
  memcpy(destination, pattern, pattern_size);
  for (size_t done = pattern_size; done < total;) { /* double what is there already */
    size_t chunk = done < total - done ? done : total - done;
    memcpy(destination + done, destination, chunk);
    done += chunk;
  }
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

static hg_status cpu_launch(void *device, const atlas_program *program, atlas_launch *launch) {
  cpu_device *cpu = device;
  return atlas_interpret(&cpu->allocator, program, launch);
}

extern const hg_backend hg_backend_cpu; /* declared again by src/runtime/backends.c, from the table */
const hg_backend hg_backend_cpu = {
    .name = "cpu",
    .query = cpu_query,
    .open = cpu_open,
    .close = cpu_close,
    .allocate = cpu_allocate,
    .free = cpu_free,
    .copy_in = cpu_copy_in,
    .copy_out = cpu_copy_out,
    .copy_within = cpu_copy_within,
    .fill = cpu_fill,
    .map = cpu_map,
    .unmap = cpu_unmap,
    .launch = cpu_launch,
};
