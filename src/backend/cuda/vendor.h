/* vendor.h - contractions by the vendor's library, cuBLASLt, for callers that allow other bits than the canonical ones
 * (hg_contraction.is_fast). The library is loaded for the first such contraction; if there is none, or it refuses, the
 * exact kernel runs. */
#ifndef HG_CUDA_VENDOR_H
#define HG_CUDA_VENDOR_H

#include "backend/cuda/device.h"

#define CUDA_VENDOR_ENGINE "cublaslt"

/* A contraction prepared for the library. */
typedef struct cuda_product cuda_product;

/* hg_backend.contract_scratch. */
uint64_t hg_cuda_contract_scratch(void *device, const hg_contraction *contraction, const char **why);
hg_status hg_cuda_product_open_within(cuda_device *d, const hg_contraction *contraction, cuda_product **out);
void hg_cuda_product_close(cuda_device *d, cuda_product *product);
/* On a stream of the driver, which may be capturing. */
hg_status hg_cuda_product_run_within(cuda_device *d, const cuda_product *product, const atlas_launch *launch,
                                     void *stream);

#endif
