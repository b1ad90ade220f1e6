/* contract_pack.h - panels of a contraction's factor, whose axes may be lists of axes (hg_axis). */
#ifndef HG_CONTRACT_PACK_H
#define HG_CONTRACT_PACK_H

#include "backend/backend.h"
#include "backend/cpu/contract/contract_kernels.h"

/* The elements of A, whose lanes are rows, or of B, whose lanes are columns. */
typedef struct contract_factor {
  const uint8_t *from;
  uint8_t type;
  const hg_axis *batch, *lane, *k;
  int64_t batch_stride, lane_stride, k_stride;
} contract_factor;

static inline contract_factor contract_factor_a(const hg_contraction *c) {
  return (contract_factor){c->a, c->a_type, &c->a_axis[0], &c->a_axis[1], &c->a_axis[2],
                           c->a_stride[0], c->a_stride[1], c->a_stride[2]};
}
static inline contract_factor contract_factor_b(const hg_contraction *c) {
  return (contract_factor){c->b, c->b_type, &c->b_axis[0], &c->b_axis[2], &c->b_axis[1],
                           c->b_stride[0], c->b_stride[2], c->b_stride[1]};
}

/* 1: an axis of a factor is a list. */
int hg_contract_has_lists(const hg_contraction *c);

/* The part of a panel that is packed at a time: `used` lanes of `width` from `first` on, `count` k from `from_k` on. */
typedef struct contract_part {
  uint64_t item, first, from_k, count;
  uint32_t used, width;
} contract_part;

/* Packs it by a kernel's function; `size`: bytes of a sum. */
void hg_contract_pack(contract_pack *pack, uint32_t size, const contract_factor *factor, const contract_part *part,
                      uint8_t *to);

#endif
