/* metal.c - Apple's GPUs as a backend: the table of its functions. */
#include "backend/metal/metal_kernel.h"

extern const hg_backend hg_backend_metal; /* also declared by src/runtime/backends.c, from the table */
const hg_backend hg_backend_metal = {
    .name = "metal",
    .emit_targets = hg_metal_emit_targets,
    .query = hg_metal_query,
    .open = hg_metal_open,
    .close = hg_metal_close,
    .allocate = hg_metal_allocate,
    .free = hg_metal_free,
    .memory = hg_metal_memory,
    .keep = hg_metal_keep,
    .trim = hg_metal_trim,
    .adopt = hg_metal_adopt,
    .copy_in = hg_metal_copy_in,
    .copy_out = hg_metal_copy_out,
    .copy_within = hg_metal_copy_within,
    .memory_is_host = 1,
    .fill = hg_metal_fill,
    .map = hg_metal_map,
    .unmap = hg_metal_unmap,
    .compile = hg_metal_compile,
    .prepare = hg_metal_prepare,
    .check_final = hg_metal_check_ready,
    .describe = hg_metal_describe,
    .release = hg_metal_release,
    .launch = hg_metal_launch,
    .streams = &hg_metal_streams,
};
