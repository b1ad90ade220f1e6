/* neon_memory.h - an access to memory, for memory.c and faults.c. */
#ifndef HG_ARM64_NEON_MEMORY_H
#define HG_ARM64_NEON_MEMORY_H

#include "backend/cpu/arm64/emit_neon.h"

enum { NEON_SLOTS = 4 }; /* x register: the slots of one element of a local array */

typedef struct neon_access {
  unsigned base;        /* general register with the address */
  uint8_t type, log;    /* log2 of the element's bytes */
  uint8_t is_store, is_atomic, is_local;
  uint8_t is_checked;
  uint32_t index;       /* register; VECTOR_NONE */
  uint32_t value;       /* of a store or atomic; else VECTOR_NONE */
  uint32_t compared;    /* of cas */
  int64_t displacement; /* elements */
} neon_access;

/* 1 if the current instruction is an access that can be written here. */
int hg_neon_describe_access(const neon_emit *e, neon_access *m);
void hg_neon_find_base(neon_emit *e, neon_access *m);
void hg_neon_load_extent(neon_emit *e); /* x2 = the extent of the accessed array */
/* x `bits` gets 16 bits a lane: all ones for the lanes of the mask */
void hg_neon_mask_to_general(neon_emit *e, unsigned bits, unsigned mask);
void hg_neon_normalise_bool(neon_emit *e, const neon_access *m, unsigned reg);

#endif
