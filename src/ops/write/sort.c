/* sort.c - sorts rows, stably: short ones with a network of comparisons, longer ones by the digits of their keys. */
#include "ops/write/sort.h"

static uint32_t bits_for(uint64_t count) {
  uint32_t bits = 0;
  while (UINT64_C(1) << bits < count) bits++;
  return bits;
}

hg_status ops_write_sort(const ops_group *group) {
  sort s = ops_sort_of(group);
  s.is_reversed = s.node->bits != 0;
  uint32_t row_bits = bits_for(s.size);
  if (row_bits <= OPS_SORT_NETWORK_BITS) return ops_write_sort_network(&s, row_bits);
  return s.size <= OPS_SORT_BLOCK_ROUNDS * SORT_DIGITS ? ops_write_sort_block(&s) : ops_write_radix(&s);
}
