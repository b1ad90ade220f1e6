/* products.c - the order of the multiply-adds of a tile, each one of some factors times each one of others: sum[i][j]
 * += a[i] * b[j] row by row, every second row backwards, so that each shares a factor with the one before it.
 *
 * A multiprocessor reads an operand from registers, which have few ports, or keeps it from the instruction before. With
 * a tile's multiply-adds in arbitrary order, every fourth one waited for a port (H200), and the assembler, which
 * chooses registers by which values meet, had to put some in memory.
 *
 * Multiply-adds of one depth do not depend on each other, so they may be done depth by depth. Those that share a factor
 * form a row. */
#include "backend/gpu/products.h"
#include "backend/gpu/gpu_tuning.h"

#include "compiler/analysis/effects.h"

#include <stdlib.h>

enum {
  MOST_LAYER = 1024, /* of one depth: each one is compared with every other */
  GROUP_BITS = 8     /* more than a gpu_access_group has values */
};

/* Elements that are neighbours in memory are neighbours here; those loaded by one access lie in adjacent registers. */
static uint64_t place_of(const gpu_plan *g, uint32_t value) {
  uint32_t number = g->group_of[value], at = 0;
  if (number == 0) return UINT64_MAX - UINT32_MAX + value;
  const gpu_access_group *group = gpu_group_at(g, number - 1);
  while (at < group->count && group->value[at] != value) at++;
  return (uint64_t)number << GROUP_BITS | at;
}

int hg_gpu_is_product(const gpu_plan *g, uint32_t value, gpu_product *product) {
  const ssa_insn *insn = gpu_insn(g, value);
  switch (insn->op) {
  case ATLAS_OP_fma:
  case ATLAS_OP_mad:
  case ATLAS_OP_dot4_ss:
  case ATLAS_OP_dot4_uu:
  case ATLAS_OP_dot4_us: break;
  default: return 0;
  }
  for (uint32_t i = 0; i < 2; i++) {
    if (hg_is_leaf(gpu_insn(g, gpu_arg(g, value, i)))) return 0;
    product->place[i] = place_of(g, gpu_arg(g, value, i));
  }
  if (product->place[1] < product->place[0]) {
    uint64_t first = product->place[1];
    product->place[1] = product->place[0];
    product->place[0] = first;
  }
  return product->place[0] != product->place[1];
}

static int compare(const void *left, const void *right) {
  const gpu_product *a = left, *b = right;
  if (a->depth != b->depth) return a->depth < b->depth ? -1 : 1;
  for (int i = 0; i < 2; i++)
    if (a->place[i] != b->place[i]) return a->place[i] < b->place[i] ? -1 : 1;
  return a->node < b->node ? -1 : a->node > b->node;
}

static int has(const gpu_product *p, uint64_t factor) { return p->place[0] == factor || p->place[1] == factor; }

static int is_shared(const gpu_product *layer, uint32_t count, uint64_t factor) {
  uint32_t uses = 0;
  for (uint32_t i = 0; i < count && uses < GPU_LEAST_SHARED_FACTORS; i++) uses += (uint32_t)has(&layer[i], factor);
  return uses == GPU_LEAST_SHARED_FACTORS;
}

/* Moves those whose factors are both shared to the front, and returns how many there are. */
static uint32_t keep_shared(gpu_product *layer, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    layer[i].is_in_tile = (uint8_t)(is_shared(layer, count, layer[i].place[0]) &&
                                    is_shared(layer, count, layer[i].place[1]));
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++)
    if (layer[i].is_in_tile) layer[kept++] = layer[i];
  return kept;
}

static void swap(gpu_product *a, gpu_product *b) {
  gpu_product c = *a;
  *a = *b;
  *b = c;
}

/* The index of the product with this factor whose other factor is smallest, or greatest; `count`: there is none. */
static uint32_t find_next(const gpu_product *list, uint32_t count, uint64_t factor, int greatest) {
  uint32_t best = count;
  uint64_t best_other = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!has(&list[i], factor)) continue;
    uint64_t other = list[i].place[list[i].place[0] == factor];
    if (best != count && (other > best_other) != (greatest != 0)) continue;
    best = i;
    best_other = other;
  }
  return best;
}

/* Row by row, every second one backwards. */
static void walk(gpu_product *list, uint32_t count) {
  uint64_t row = count > 0 ? list[0].place[1] : 0, column = 0;
  int backwards = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t rest = count - i, at = find_next(list + i, rest, row, backwards);
    if (at == rest && i > 0) { /* the row is done: the next row begins in the last column */
      at = find_next(list + i, rest, column, 0);
      if (at == rest) at = 0;
      backwards = !backwards;
      row = list[i + at].place[list[i + at].place[0] == column];
    }
    column = list[i + at].place[list[i + at].place[0] == row];
    swap(&list[i], &list[i + at]);
  }
}

uint32_t hg_gpu_order_products(gpu_product *list, uint32_t count) {
  uint32_t kept = 0;
  if (count > 1) qsort(list, count, sizeof *list, compare);
  for (uint32_t first = 0, next; first < count; first = next) {
    for (next = first + 1; next < count && list[next].depth == list[first].depth;) next++;
    uint32_t of_layer = next - first > MOST_LAYER ? 0 : keep_shared(list + first, next - first);
    walk(list + first, of_layer);
    for (uint32_t i = 0; i < of_layer; i++) list[kept++] = list[first + i];
  }
  return kept;
}
