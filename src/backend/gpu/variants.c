/* variants.c - a program compiled for a GPU: its variants, and which of them a launch runs. */
#include "backend/gpu/variants.h"

#include "code_version.h" /* made by the build from the sources: tools/digest.py */
#include "compiler/canon/canon.h"

#include <string.h>

hg_status hg_gpu_kernel_open(const hg_allocator *allocator, size_t bytes, const atlas_program *program,
                             const uint8_t *hash, void **out) {
  hg_gpu_kernel *kernel = hg_allocate(allocator, 1, bytes);
  if (kernel == NULL) return hg_fail_memory("a kernel", bytes);
  if (hg_mutex_init(&kernel->mutex) != 0) {
    hg_release(allocator, kernel);
    return hg_fail(HG_OUT_OF_MEMORY, "could not make a mutex for a kernel");
  }
  kernel->program = program;
  memcpy(kernel->hash, hash, sizeof kernel->hash);
  *out = kernel;
  return HG_OK;
}

void hg_gpu_kernel_close(const hg_allocator *allocator, hg_gpu_kernel *kernel) {
  hg_mutex_destroy(&kernel->mutex);
  hg_release(allocator, kernel->numbers.insn_of);
  hg_release(allocator, kernel);
}

hg_gpu_variant hg_gpu_variant_of(uint32_t number) {
  return (hg_gpu_variant){.flags = number & ~(uint32_t)HG_GPU_LARGER_BLOCKS,
                          .threads = number & HG_GPU_LARGER_BLOCKS ? ATLAS_MAX_BLOCK_LANES : GPU_USUAL_BLOCK};
}

uint32_t hg_gpu_usual_variant(const atlas_launch *launch) {
  uint32_t lanes = launch->block[0] * (launch->lanes != 0 ? 1 : launch->block[1] * launch->block[2]);
  return lanes > GPU_USUAL_BLOCK ? HG_GPU_LARGER_BLOCKS : 0;
}

hg_status hg_gpu_check_shared(const atlas_program *program, const hg_gpu_info *info, uint32_t shared_bytes) {
  if (info->shared_bytes <= shared_bytes) return HG_OK;
  return hg_fail(HG_UNSUPPORTED, "program '%s' needs %u bytes of shared memory for a block of %u lanes, with what its "
                 "collectives exchange; this GPU gives a block %u", program->name, (unsigned)info->shared_bytes,
                 (unsigned)info->max_threads, (unsigned)shared_bytes);
}

static hg_status make_variant(hg_gpu_kernel *kernel, uint32_t variant, hg_gpu_make *make, void *device) {
  ssa_unit unit;
  hg_status status = hg_canonicalise(kernel->program, NULL, &unit);
  if (status == HG_OK) status = make(device, kernel, &unit, variant);
  ir_ssa_release(&unit);
  return status;
}

hg_status hg_gpu_make_variants(hg_gpu_kernel *kernel, uint32_t variants, hg_gpu_make *make, void *device) {
  for (uint32_t variant = 0; variant < HG_GPU_VARIANTS; variant++)
    if (variants >> variant & 1 && atomic_load(&kernel->entry[variant]) == NULL)
      HG_TRY(make_variant(kernel, variant, make, device));
  return HG_OK;
}

/* The table variant does not have what others lack. */
hg_status hg_gpu_pack_variant(hg_gpu_kernel *kernel, uint32_t variant, const atlas_launch *launch,
                              const hg_gpu_places *places, void *block, hg_gpu_launch *shape,
                              const hg_gpu_info **entry) {
  for (;;) {
    HG_TRY(hg_gpu_entry_of(kernel, variant, entry));
    uint32_t lacks = hg_gpu_pack(kernel->program, *entry, launch, places, block, shape);
    if (lacks == 0) return HG_OK;
    if ((lacks & ~variant) == 0)
      return hg_fail(HG_DEVICE, "no form of the kernel can run this launch (%u)", (unsigned)lacks);
    variant = (variant & ~(uint32_t)HG_GPU_LUT) | lacks;
  }
}

void hg_gpu_describe_fault(const hg_gpu_kernel *kernel, const atlas_launch *launch, const hg_gpu_fault *record,
                           hg_fault *fault) {
  hg_gpu_fault own = *record;
  if (own.instruction < kernel->numbers.count) own.instruction = kernel->numbers.insn_of[own.instruction];
  hg_gpu_fault_read(kernel->program, launch, &own, fault);
}

void hg_gpu_complete_key(const hg_gpu_kernel *kernel, uint32_t variant, hg_gpu_key *k) {
  k->special.variant = variant;
  k->key = (hg_cache_key){.target = k->target,
                          .driver = k->driver,
                          .compiler_version = CODE_VERSION,
                          .specialisation = &k->special,
                          .specialisation_bytes = sizeof k->special};
  memcpy(k->key.program, kernel->hash, sizeof kernel->hash);
}
