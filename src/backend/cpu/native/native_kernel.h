/* native_kernel.h - a kernel of machine code, for the files that make and run it. */
#ifndef HG_NATIVE_KERNEL_H
#define HG_NATIVE_KERNEL_H

#include "backend/cpu/native/native.h"

enum { NATIVE_MOST_STEPS = INT32_MAX }; /* so that 32 bits can count them */

/* An access [x + lane + displacement] that is not proven to be in bounds. These accesses decide which lanes need no
 * checks. */
typedef struct native_lane_access {
  uint16_t symbol;
  uint8_t may_stream; /* 1: a store that may bypass the caches, for which it needs full vectors at addresses of their
                         size */
  int64_t displacement;
} native_lane_access;

struct hg_native {
  hg_allocator allocator;
  const native_target *target;
  const cpu_kernels *kernels;
  const atlas_program *program;
  const hg_vector *vector;
  hg_vector divided;      /* see native_made */
  hg_vector own;          /* owns `vector`, unless that is the given program */
  struct hg_native *straight; /* the version for blocks that have all their lanes; NULL: none */
  struct hg_native *stack;/* the version for several of those at once; NULL: none */
  struct hg_native *rows; /* the version for launches of lanes in rows; NULL: none */
  uint32_t row_length;    /* of that version: the parameter with the length of a row; else VECTOR_NONE */
  native_location *locations;
  hg_array steps;         /* native_step */
  hg_array lane_accesses; /* native_lane_access, each once */
  uint32_t copies, row_bytes, alive_offset;
  uint32_t slices;                   /* of code for whole blocks: vectors in a block */
  native_stack_shape shape;          /* the size of the stack */
  uint32_t local_bytes, local_lanes; /* see native_build */
  uint32_t lane_ps;       /* as in cpu_body */
  uint32_t block_entry, full_entry, full_lanes, coordinate_offset; /* see native_build */
  uint8_t keeps_coordinates;
  uint8_t runs_on;        /* see native_build */
  uint8_t runs_blocks;    /* 1: it has a block_entry */
  uint8_t has_loops;      /* 1: a region contains a loop */
  uint8_t calls_in_loops; /* as native_build.calls_in_loops */
  uint8_t sees_lanes;     /* 1: the global numbers of lanes matter, not only their numbers in the tile */
  uint8_t streams;
  uint32_t stored_bytes;  /* bytes a lane moves by stores that may bypass the caches */
  uint32_t moved_bytes;   /* bytes a lane moves by loads and stores of its elements */
  uint64_t stream_bytes;  /* launches that move so many bytes or more bypass the caches */
  char *notes;            /* hg_compiled.notes; NULL: "" */
  hg_code_pages *pages;
  hg_code_mapping *mapping; /* one of `pages`; NULL: none yet */
  uint8_t *code;          /* executable */
  size_t code_bytes;
};

/* A constant, a scalar parameter or a special register that is the same in all lanes. */
uint64_t hg_native_parameter(const native_context *context, const vector_reg *reg);

/* STEPs that machine code may take before it calls hg_native_help again, if each lane has at least `left`. */
static inline uint64_t hg_native_steps_given(uint64_t left) {
  return left < NATIVE_MOST_STEPS ? left : NATIVE_MOST_STEPS;
}

#endif
