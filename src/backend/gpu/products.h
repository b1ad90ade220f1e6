/* products.h - the multiply-adds of a tile, for those who order a block (order.c). */
#ifndef HG_GPU_PRODUCTS_H
#define HG_GPU_PRODUCTS_H

#include "backend/gpu/plan_passes.h"

typedef struct gpu_product {
  uint32_t node, depth; /* the orderer's: what it is; how many must come before it, one after the other */
  uint64_t place[2];    /* of its factors, the lesser first: equal where these are equal */
  uint8_t is_in_tile;
} gpu_product;

/* 1 if the instruction multiplies two values and adds a third; their places are filled in. */
int hg_gpu_is_product(const gpu_plan *g, uint32_t value, gpu_product *product);

/* Puts those of tiles in front, in the order in which they should be done; returns how many they are. */
uint32_t hg_gpu_order_products(gpu_product *list, uint32_t count);

#endif
