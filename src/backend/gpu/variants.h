/* variants.h - a program compiled for a GPU: its variants, each of which is made when a launch first needs it. What a
 * backend loads is its own: an entry, whose first member is an hg_gpu_info. */
#ifndef HG_GPU_VARIANTS_H
#define HG_GPU_VARIANTS_H

#include "backend/backend.h"
#include "backend/gpu/gpu.h"
#include "backend/gpu/gpu_tuning.h"
#include "base/error.h"
#include "base/kernel_cache.h"
#include "base/os.h"

#include <stdatomic.h>

/* A variant's number: flags of hg_gpu_variant, and HG_GPU_LARGER_BLOCKS for blocks of more than GPU_USUAL_BLOCK lanes,
 * which is the block of linear launches. */
enum { HG_GPU_VARIANTS = 16 };

typedef struct hg_gpu_kernel {
  const atlas_program *program; /* outlives the kernel */
  uint8_t hash[ATLAS_HASH_BYTES];
  hg_gpu_numbers numbers;
  _Atomic(hg_gpu_info *) entry[HG_GPU_VARIANTS]; /* by variant; NULL: not needed yet */
  atomic_uint wanted; /* a set of variants that hg_gpu_make_wanted shall make */
  hg_mutex mutex;     /* serialises those who make them */
} hg_gpu_kernel;

/* `bytes`: of a backend's struct that begins with an hg_gpu_kernel. */
hg_status hg_gpu_kernel_open(const hg_allocator *allocator, size_t bytes, const atlas_program *program,
                             const uint8_t *hash, void **out);
void hg_gpu_kernel_close(const hg_allocator *allocator, hg_gpu_kernel *kernel); /* after its entries */

/* The entry of that variant. If it is not compiled yet: HG_UNPREPARED, and the variant is wanted. */
static inline hg_status hg_gpu_entry_of(hg_gpu_kernel *kernel, uint32_t variant, const hg_gpu_info **out) {
  *out = atomic_load_explicit(&kernel->entry[variant], memory_order_acquire);
  if (*out != NULL) return HG_OK;
  atomic_fetch_or(&kernel->wanted, 1u << variant);
  return HG_UNPREPARED;
}

hg_gpu_variant hg_gpu_variant_of(uint32_t number);
uint32_t hg_gpu_usual_variant(const atlas_launch *launch);

/* Fails if a block of the variant needs more shared memory than the device gives it. That includes what collectives
 * exchange, which is more in the variant for larger blocks. */
hg_status hg_gpu_check_shared(const atlas_program *program, const hg_gpu_info *info, uint32_t shared_bytes);

/* Makes an entry of the variant from the canonical unit, which it may modify, and publishes it. Other threads may
 * launch meanwhile. */
typedef hg_status hg_gpu_make(void *device, hg_gpu_kernel *kernel, ssa_unit *unit, uint32_t variant);
/* Makes those variants of the set that there are none of yet. */
hg_status hg_gpu_make_variants(hg_gpu_kernel *kernel, uint32_t variants, hg_gpu_make *make, void *device);

/* Packs a launch for the first variant of the kernel that can run it: that one, or with what it lacks. */
hg_status hg_gpu_pack_variant(hg_gpu_kernel *kernel, uint32_t variant, const atlas_launch *launch,
                              const hg_gpu_places *places, void *block, hg_gpu_launch *shape,
                              const hg_gpu_info **entry);

/* Translates a fault record into the program's terms. */
void hg_gpu_describe_fault(const hg_gpu_kernel *kernel, const atlas_launch *launch, const hg_gpu_fault *record,
                           hg_fault *fault);

/* ---- in the kernel cache ----------------------------------------------------------------------------------------- */

typedef struct hg_gpu_specialisation {
  char name[ATLAS_MAX_NAME + 16]; /* of the kernel in its text: no part of the program's hash */
  uint32_t variant;
} hg_gpu_specialisation;

/* The key refers to the other members. */
typedef struct hg_gpu_key {
  hg_cache_key key;
  char target[160], driver[128];
  hg_gpu_specialisation special;
} hg_gpu_key;

/* Completes a key whose target, driver and name are given. */
void hg_gpu_complete_key(const hg_gpu_kernel *kernel, uint32_t variant, hg_gpu_key *k);

#endif
