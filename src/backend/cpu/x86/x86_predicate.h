/* x86_predicate.h - predicates as operands (predicate.c) and as results (mask.c). */
#ifndef HG_X86_PREDICATE_H
#define HG_X86_PREDICATE_H

#include "backend/cpu/x86/emit_x86.h"

static inline int x86_is_evex(const x86_emit *e) { return e->width == 2; }

static inline uint32_t x86_all_lanes_register(const x86_emit *e) { return (uint32_t)e->b->vector->regs.count; }

x86_rm hg_x86_mask_row(const x86_emit *e, uint32_t offset, uint32_t copy);
void hg_x86_load_mask_row(x86_emit *e, uint32_t offset, uint32_t copy, unsigned to);
unsigned hg_x86_constant_predicate(x86_emit *e, uint64_t bits, unsigned scratch);
unsigned hg_x86_fetch_predicate(x86_emit *e, const native_location *location, uint32_t copy, unsigned scratch);
unsigned hg_x86_and_existing_lanes(x86_emit *e, unsigned reg, unsigned scratch);
unsigned hg_x86_existing_lanes(x86_emit *e, unsigned scratch);

#endif
