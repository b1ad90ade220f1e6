/* targets.h - devices for plans: `plain` can do nothing at once, `rich` all of it. Include backend/gpu/gpu.h first. */
#ifndef HG_TEST_TARGETS_H
#define HG_TEST_TARGETS_H

static const hg_gpu_target plain = {.vector_bytes = 16, .warp_lanes = 32, .declared_shared = 48 << 10},
                           rich = {.vector_bytes = 16,
                                   .warp_lanes = 32,
                                   .declared_shared = 48 << 10,
                                   .sub_blocks = 8,
                                   .registers = 65536,
                                   .registers_all = 32,
                                   .registers_most = 40,
                                   .positive_nan = 1,
                                   .pairs_f16 = 1,
                                   .pairs_bf16 = 1,
                                   .bounds = 1,
                                   .can_prefetch_l2 = 1};

#endif
