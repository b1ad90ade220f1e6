/* cuda.c - NVIDIA GPUs as a backend: the table of its functions. */
#include "backend/cuda/cuda_emit.h"
#include "backend/cuda/kernel.h"
#include "backend/cuda/vendor.h"

extern const hg_backend hg_backend_cuda; /* also declared by src/runtime/backends.c, from the table */
const hg_backend hg_backend_cuda = {
    .name = "cuda",
    .emit_targets = hg_cuda_emit_targets,
    .query = hg_cuda_query,
    .open = hg_cuda_open,
    .close = hg_cuda_close,
    .allocate = hg_cuda_allocate,
    .free = hg_cuda_free,
    .memory = hg_cuda_memory,
    .keep = hg_cuda_keep,
    .trim = hg_cuda_trim,
    .adopt = hg_cuda_adopt,
    .copy_in = hg_cuda_copy_in,
    .copy_out = hg_cuda_copy_out,
    .copy_within = hg_cuda_copy_within,
    .copy_from = hg_cuda_copy_from,
    .fill = hg_cuda_fill,
    .map = hg_cuda_map_memory,
    .unmap = hg_cuda_unmap_memory,
    .compile = hg_cuda_compile,
    .prepare = hg_cuda_prepare,
    .check_final = hg_cuda_check_final,
    .describe = hg_cuda_describe,
    .release = hg_cuda_release,
    .launch = hg_cuda_launch,
    .contract_scratch = hg_cuda_contract_scratch,
    .streams = &hg_cuda_streams,
};
