/* x86_memory.h - an access to memory and its vectors: shared by access.c, memory.c, gather.c, lanes.c and faults.c. */
#ifndef HG_X86_MEMORY_H
#define HG_X86_MEMORY_H

#include "backend/cpu/x86/emit_x86.h"

/* Displacements are at most NATIVE_GREATEST_DISPLACEMENT, so that no sum overflows. */
typedef struct x86_access {
  x86_rm extent, limit;    /* of the symbol, in the context; limit: as native_place */
  uint8_t type, log_bytes, bytes;
  uint8_t is_store, is_local;
  uint16_t update;         /* an atomic operation that a load and a store may perform; 0: none */
  uint32_t index;          /* register; VECTOR_NONE */
  uint32_t value;          /* of a store */
  int64_t displacement;    /* elements */
  int32_t offset;          /* displacement in bytes; in a local array the displacement counts rows, and this is set for
                              each copy */
} x86_access;

static inline int x86_is_checked(const x86_emit *e) {
  return !(e->insn->flags & VECTOR_IN_BOUNDS) && !(e->insn->symbol & SSA_LIBRARY);
}

/* AVX2 has no masked access to elements below 32 bits. */
static inline int x86_can_mask(const x86_emit *e, const x86_access *m) { return e->width == 2 || m->bytes >= 4; }

static inline int x86_mask_scratch(const x86_emit *e) { return e->width == 2 ? 1 : (int)hg_x86_scratch(e, 1); }

/* Consecutive elements of a copy's lanes; `mask`: a mask register, or -1. */
void hg_x86_load_run(x86_emit *e, const x86_access *m, x86_rm at, uint32_t copy, int mask);
void hg_x86_store_run(x86_emit *e, const x86_access *m, x86_rm at, uint32_t copy, int mask);
/* Either, or the access's atomic operation on them, which no other worker sees. */
void hg_x86_access_run(x86_emit *e, const x86_access *m, x86_rm at, uint32_t copy, int mask);
/* An access by an index that counts up with the lanes: 1 if one comparison does for the lanes of a group, and it is
 * written. */
int hg_x86_group_access(x86_emit *e, const x86_access *m);
/* Such accesses of copies `first` to `end`, each with comparisons of its own. */
void hg_x86_access_vectors(x86_emit *e, const x86_access *m, uint32_t first, uint32_t end);
/* Stores several copies from `copy` on at once, with all lanes; the number of copies, 0: none. */
uint32_t hg_x86_store_packed(x86_emit *e, const x86_access *m, x86_rm at, uint32_t copy);
/* One element for all lanes. */
void hg_x86_broadcast_element(x86_emit *e, const x86_access *m, x86_rm at, unsigned to);
/* Jumps to `out` unless index to index + `more` are in bounds. */
void hg_x86_check_number(x86_emit *e, const x86_access *m, unsigned index, uint32_t more, unsigned scratch,
                         uint32_t out);

/* bounds.c: which lanes of a copy are out of bounds. */
typedef struct x86_bound {
  uint32_t index;          /* register of the program with the index */
  int64_t added;           /* added to the index before it is compared */
  uint8_t limit;           /* general register: what the sum has to be below */
  uint8_t low_bits;        /* not 0: a mask of bits that have to be 0 in the index as well (lanes of a pool) */
} x86_bound;
typedef enum x86_order { X86_IS_BELOW = 1, X86_IS_NOT_BELOW = 5 } x86_order; /* the predicates of AVX-512 comparisons */
/* General register `to` = the limit less `less`, which is not negative. 1 if something was subtracted: then the flags
 * tell whether the result is above 0. */
int hg_x86_load_limit(x86_emit *e, unsigned to, x86_rm limit, int32_t less);
/* k0 or k2 = the lanes for which the order holds, ignoring low_bits. Changes k0, k2, scratch 1 and 3. */
void hg_x86_compare_evex(x86_emit *e, const x86_bound *b, uint32_t copy, unsigned to, x86_order order);
/* AVX2: the sign bits of scratch 2 = the lanes out of bounds. Changes all scratch registers and the limit. */
void hg_x86_compare_vex(x86_emit *e, const x86_bound *b, uint32_t copy);

/* The 32-bit indices of a copy; for 64-bit indices their low halves, side by side. The result may be scratch 1; changes
 * scratch 2. */
unsigned hg_x86_short_index(x86_emit *e, uint32_t index, uint32_t copy);

/* Local arrays: the distance in elements of the copy's lanes, with these indices, from index 0 of its first lane. In
 * scratch 1. */
unsigned hg_x86_local_index(x86_emit *e, uint32_t index, uint32_t copy);
/* The register with the address of element 0 of the group's first lane. */
unsigned hg_x86_local_base(x86_emit *e, unsigned log_bytes);
/* The offset from there to the element of a copy's first lane. */
static inline int32_t x86_local_element(const x86_emit *e, int64_t index, uint32_t copy) {
  return (int32_t)(index * e->b->local_lanes + hg_x86_first_lane(e, copy));
}

/* 1 for an atomic operation that one instruction performs on memory. */
static inline int x86_is_alu_update(uint16_t op) {
  return op == ATLAS_OP_atom_add || op == ATLAS_OP_atom_and || op == ATLAS_OP_atom_or || op == ATLAS_OP_atom_xor;
}

/* rax = the index of the first lane of a copy, as 64 bits. */
void hg_x86_first_index(x86_emit *e, uint32_t index, uint32_t copy);
void hg_x86_first_bits(x86_emit *e, uint32_t index, uint32_t copy); /* the same, 32 bits zero-extended */

/* 1 if a register still has the value that it had at an instruction. */
int hg_x86_is_kept(const x86_emit *e, const vector_insn *since, uint32_t reg);
void hg_x86_add_displacement(x86_emit *e, const x86_access *m, uint32_t slow); /* to rax */

/* The uniform register u of an index blane + u; VECTOR_NONE: the index is none. */
uint32_t hg_x86_added_to_tile_lane(const x86_emit *e, uint32_t index);
/* prefetch.c: for the current access [x + blane + u] of a block: notes rax, which is u, for prefetches elsewhere;
 * prefetches what the next block accesses in place of what is at `at`. */
void hg_x86_note_block_index(x86_emit *e, uint32_t u);
void hg_x86_prefetch_next_block(x86_emit *e, const x86_access *m, x86_rm at);

/* 1 if the current instruction is an access of memory.c, or an atomic one of its kind. */
int hg_x86_describe_access(x86_emit *e, x86_access *m);
/* The span of the current load by an index sum, computed by `made`; NULL: the load needs a comparison of its own. */
const x86_span *hg_x86_span_of(const x86_emit *e, const vector_insn *made);
/* 1 if hg_x86_prefetch_next_round has something to do. */
int hg_x86_grows_unevenly(const x86_emit *e, uint32_t index);
/* The counterpart in the next round of the current load is prefetched between copies (copies.c). */
void hg_x86_prefetch_later(x86_emit *e);
/* Prefetches what the next round loads; `base`: the address that rax, the index of lane 0, counts from; `index`: the
 * register that holds what a round adds. */
void hg_x86_prefetch_next_round(x86_emit *e, const x86_access *m, unsigned base, uint32_t index);

static inline int x86_can_scatter(const x86_emit *e, const x86_access *m) { return e->width == 2 && m->bytes >= 4; }
/* gather.c: a load, or a store that a scatter can do, with an index for each lane; all are in bounds. */
void hg_x86_gather_lanes(x86_emit *e, const x86_access *m, uint32_t copy);

/* local.c: 1 if it has written an access to a local array. */
int hg_x86_local(x86_emit *e, const x86_access *m);
/* 1 if it has written a load whose lanes follow a pattern. */
int hg_x86_load_permute(x86_emit *e, const x86_access *m);
/* 1 if it has written an access with an index of its own for each lane. */
int hg_x86_gather(x86_emit *e, const x86_access *m);

#endif
