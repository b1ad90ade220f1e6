/* exchange.h - the state of an exchange (reductions or scans of a block) while it is printed. */
#ifndef HG_PTX_EXCHANGE_H
#define HG_PTX_EXCHANGE_H

#include "backend/cuda/ptx/ptx.h"

typedef struct ptx_exchange {
  ptx *p;
  const gpu_exchange *x;
  ptx_name own[GPU_MAX_EXCHANGE];     /* by the exchange's numbers */
  ptx_name in_warp;                   /* lane in its warp */
  ptx_name row[GPU_FOLD_LANES], raw;  /* of a fold, or windows; row 0 as it was read */
  ptx_name place, folded;             /* of FOLDERS: the address of this lane's slot in the first row; the number, in a
                                         register, of the value that its warp folds */
  uint32_t place_bytes;               /* of such a value; */
  uint32_t folders;                   /* how many values FOLDERS fold if a warp may fold several; else 0 */
  uint32_t got;                       /* how many results are in registers */
  ptx_name folders_again, folders_end, careful, others, joined; /* labels */
  hg_array *out;                      /* where the common case is written */
} ptx_exchange;

static inline const ssa_insn *exchange_insn(const ptx_exchange *c, uint32_t i) {
  return ptx_insn(c->p, c->x->value[i]);
}
static inline uint8_t exchange_type(const ptx_exchange *c, uint32_t i) { return exchange_insn(c, i)->type; }

/* ---- exchange.c -------------------------------------------------------------------------------------------------- */

ptx_name hg_ptx_shared_at(ptx *p, uint32_t offset);
/* The address of a lane's slot in the place of value number i. */
ptx_name hg_ptx_place_at(const ptx_exchange *c, uint32_t i, ptx_name lane);
/* The same at any offset. */
ptx_name hg_ptx_slot_at(ptx *p, uint8_t type, uint32_t offset, ptx_name lane);
void hg_ptx_store_slot(ptx *p, const char *guard, uint8_t type, ptx_name address, int offset, ptx_name value);
void hg_ptx_load_slot(ptx *p, const char *guard, uint8_t type, ptx_name d, ptx_name address, int offset);
uint16_t hg_ptx_combining_op(const ptx_exchange *c, uint32_t i);
ptx_name hg_ptx_combined(ptx *p, uint16_t op, uint8_t type, ptx_name a, ptx_name b); /* in a new register */

/* ---- careful.c --------------------------------------------------------------------------------------------------- */

/* Prints a step of the careful path: value number i of the exchange. */
void hg_ptx_careful_step(ptx_exchange *c, const gpu_step *step, uint32_t i);

#endif
