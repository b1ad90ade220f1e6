/* plan_computation.h - cuts a computation into launches: see plan.c. */
#ifndef HG_OPS_PLAN_COMPUTATION_H
#define HG_OPS_PLAN_COMPUTATION_H

#include "ops/write/launch_plan.h"

hg_status ops_plan_computation(const hg_allocator *allocator, const hg_computation *computation, uint32_t flags,
                               const ops_target *target, ops_plan *plan);

#endif
