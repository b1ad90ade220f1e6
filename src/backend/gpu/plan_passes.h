/* plan_passes.h - what the passes of the plan (build.c) provide to each other. */
#ifndef HG_GPU_PLAN_PASSES_H
#define HG_GPU_PLAN_PASSES_H

#include "backend/gpu/plan.h"

hg_status hg_gpu_unroll(gpu_plan *g);
void hg_gpu_find_uses(gpu_plan *g);
void hg_gpu_find_loops(gpu_plan *g); /* also bounds the steps that a lane takes */
/* The length in instructions from the entry to an exit. `length`: scratch, a number for each block. */
uint32_t hg_gpu_shortest_path(const gpu_plan *g, uint32_t *length);
void hg_gpu_lay_out_parameters(gpu_plan *g);
/* Lays out the parameters in the argument block; is_divisor: by symbol, whether a scalar is a divisor. */
void hg_gpu_list_parameters(const atlas_program *program, const uint8_t *is_divisor, hg_gpu_info *info);
/* The lanes of the largest block, except for vector-only kernels, which have GPU_VECTOR_THREADS. */
uint32_t hg_gpu_most_threads(const atlas_program *program, const hg_gpu_variant *variant);
/* Sets what follows from max_threads, lanes_per_thread, shared_bytes and is_lut. */
void hg_gpu_set_tile(hg_gpu_info *info);
void hg_gpu_set_dynamic(hg_gpu_info *info, uint32_t declared_shared);
/* Decides is_transposed and info.sub_blocks. `room`: a number for each value. */
void hg_gpu_transpose_warps(gpu_plan *g, uint32_t *room);
/* An estimate of the register pressure of a body without loops. `last_use`: scratch, a number for each value. */
uint32_t hg_gpu_register_pressure(const gpu_plan *g, uint32_t *last_use);
void hg_gpu_lay_out_shared(gpu_plan *g);
void hg_gpu_lay_out_local(gpu_plan *g);
/* Also gives exchanges their places in shared memory, behind everything else. */
hg_status hg_gpu_find_exchanges(gpu_plan *g);
/* How many adjacent ranks, from this one on, are done at once (ranks.c). */
uint32_t hg_gpu_ranks_at(const gpu_plan *g, uint32_t value);
/* The same for them: counts of a rank's warps, behind all else. */
void hg_gpu_lay_out_ranks(gpu_plan *g);
hg_status hg_gpu_find_nans(gpu_plan *g); /* also which NaN bits are observable */
/* `instructions`, here and below: the length of the shortest path. */
void hg_gpu_plan_vectors(gpu_plan *g, uint32_t instructions);
hg_status hg_gpu_list_vectors(gpu_plan *g, uint32_t *uses, uint32_t *user);
/* The vector load of which `value` is an element, or a widened or clamped element; NULL: there is none. */
const gpu_vector *hg_gpu_element_of(const gpu_plan *g, uint32_t value);
void hg_gpu_plan_thread_tiles(gpu_plan *g, uint32_t instructions, uint32_t *room);
/* The number of lanes from which the program's table variant is faster; 0: there is no such variant. */
uint64_t hg_gpu_lut_lanes(const gpu_plan *g, uint32_t instructions);
/* 1 if the access may be part of a group. */
int hg_gpu_may_group(const gpu_plan *g, uint32_t value);
/* Fills in the rest of a group whose `in_order`, `count` and `is_store` are given; run_of: the run of each access,
 * numbered as they appear. 0: the group is not worth it. */
int hg_gpu_complete_group(const gpu_plan *g, gpu_access_group *group, const uint8_t *run_of);
/* Finds the groups of GPU_OUTSIDE and orders each block's instructions so that groups stand together and few registers
 * are needed. */
hg_status hg_gpu_find_groups(gpu_plan *g);
hg_status hg_gpu_order(gpu_plan *g);
hg_status hg_gpu_find_extremes(gpu_plan *g);
hg_status hg_gpu_hoist_checks(gpu_plan *g); /* after groups are complete */
void hg_gpu_plan_l2_prefetch(gpu_plan *g);   /* after groups are complete */
hg_status hg_gpu_coalesce_phis(gpu_plan *g); /* after all blocks are ordered */
void hg_gpu_find_late(gpu_plan *g);       /* after phis are coalesced */
hg_status hg_gpu_add_step(const gpu_plan *g, hg_array *steps, gpu_step step);
/* Adds steps whose number is the value. */
hg_status hg_gpu_add_steps(const gpu_plan *g, hg_array *steps, uint32_t value, const uint8_t *ops, size_t count);
#define GPU_ADD(g, steps, value, ...) \
  hg_gpu_add_steps(g, steps, value, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
hg_status hg_gpu_collective(const gpu_plan *g, uint32_t number, hg_array *steps);
hg_status hg_gpu_list_version_steps(gpu_plan *g, gpu_version_kind kind);
hg_status hg_gpu_list_kernel_steps(gpu_plan *g);

#endif
