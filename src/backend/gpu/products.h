/* products.h - the multiply-adds of a tile, as order.c needs them. */
#ifndef HG_GPU_PRODUCTS_H
#define HG_GPU_PRODUCTS_H

#include "backend/gpu/plan_passes.h"

typedef struct gpu_product {
  uint32_t node, depth; /* for the orderer: the node; the longest chain of nodes that must come before it */
  uint64_t place[2];    /* the places of its factors, the lesser first */
  uint8_t is_in_tile;
} gpu_product;

/* 1 if the instruction multiplies two values and adds a third; the places of its factors are filled in. */
int hg_gpu_is_product(const gpu_plan *g, uint32_t value, gpu_product *product);

/* Moves the multiply-adds of tiles to the front, in the order in which they should run; returns how many there are. */
uint32_t hg_gpu_order_products(gpu_product *list, uint32_t count);

#endif
