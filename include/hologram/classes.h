/* classes.h - what programs over the 96 classes of bytes need beside hologram.h: the classes themselves, and the state
 * that an executor keeps for such programs: resonance counters, the phase and the boundary pool. The instructions are
 * in docs/isa.md. */
#ifndef HOLOGRAM_CLASSES_H
#define HOLOGRAM_CLASSES_H

#include "hologram/hologram.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the classes of bytes ------------------------------------------------------------------------------------------
 * class(byte) = 24*h2 + 8*d + l over a byte's bits b7..b0: h2 = 2*b7 + b6; d = 0, 1, 2 for (b4,b5) equal, (1,0), (0,1);
 * l = 4*b3 + 2*b2 + b1. */
#define ATLAS_CLASS_COUNT 96
#define ATLAS_CLASS_PAGES 48
#define ATLAS_CLASS_PAGE_BYTES 256
#define ATLAS_BOUNDARY_POOL_BYTES 1179648
#define ATLAS_PHASE_COUNT 768

HG_API uint32_t atlas_class_of_byte(uint8_t byte);
HG_API uint8_t atlas_class_byte(uint32_t class_index);                          /* its canonical byte; class below 96 */
HG_API uint32_t atlas_class_mirror(uint32_t class_index);
HG_API int atlas_class_is_unity(uint32_t class_index);
HG_API uint32_t atlas_class_neighbour_count(uint32_t class_index);
HG_API int32_t atlas_class_neighbour(uint32_t class_index, uint32_t number);    /* -1 past the count or for no class */
HG_API int64_t atlas_boundary_offset(uint32_t class_index, uint32_t page, uint32_t byte); /* -1 out of range */

/* ---- what an executor keeps -------------------------------------------------------------------------------------- */

/* Resonance counters, one a class; the first copies them out. */
HG_API hg_status hg_executor_resonance(hg_executor *executor, int64_t counters[ATLAS_CLASS_COUNT]);
HG_API hg_status hg_executor_resonance_reset(hg_executor *executor);
HG_API hg_status hg_executor_phase(hg_executor *executor, uint32_t *phase);        /* 0..767 */
HG_API hg_status hg_executor_set_phase(hg_executor *executor, uint32_t phase);     /* below 768 */
HG_API hg_status hg_boundary_write(hg_executor *executor, uint64_t offset, const void *source, uint64_t byte_count);
HG_API hg_status hg_boundary_read(hg_executor *executor, uint64_t offset, void *destination, uint64_t byte_count);
/* Any range of the pool as a buffer (a view): bind it like any other. It is not ordered with what programs do to the
 * pool itself. */
HG_API hg_status hg_boundary_buffer(hg_executor *executor, uint64_t offset, uint64_t byte_count, hg_buffer **out);

#ifdef __cplusplus
}
#endif
#endif
