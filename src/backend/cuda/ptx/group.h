/* group.h - an access group while it is printed (group.c, group_loop.c). */
#ifndef HG_PTX_GROUP_H
#define HG_PTX_GROUP_H

#include "backend/cuda/ptx/ptx.h"

enum { PTX_MOST_ROOMS = 4 }; /* runs whose room is in registers at a time */

typedef struct ptx_group {
  const gpu_access_group *plan;
  ptx_name base[GPU_MAX_RUNS];    /* where its memory begins */
  ptx_name extent[GPU_MAX_RUNS];
  ptx_name address[GPU_MAX_RUNS]; /* of the element that the index names */
  ptx_name word[GPU_MAX_GROUP];   /* what a wide access loads or stores; by the first of a word's elements */
} ptx_group;

static inline uint32_t ptx_index_of(const ptx *p, const ptx_group *g, uint32_t r) {
  return gpu_index_of(p->plan, g->plan, &g->plan->run[r]);
}

/* Prints the neighbours that begin with a value as one access. */
void hg_ptx_access_together(ptx *p, ptx_group *g, const gpu_access_run *run, uint32_t first, const char *space,
                            ptx_name at);

/* 1 if the accesses can be done one by one in a loop, and are numerous enough for one. */
int hg_ptx_may_loop(const ptx *p, const ptx_group *g);
void hg_ptx_group_loop(ptx *p, ptx_group *g);

#endif
