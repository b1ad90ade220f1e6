/* kernels.h - loops over rows, compiled once for each instruction set (kernels.c) and chosen at run time. */
#ifndef HG_ENGINE_KERNELS_H
#define HG_ENGINE_KERNELS_H

#include "vector/vector.h"

#include <stddef.h>
#include <stdint.h>

enum { KERNEL_CHUNK = 64 }; /* lanes; the same as CPU_CHUNK */

/* steps: bit k is 1 if source k is a row, 0 if it is a short row, one value repeated. d may be a source's row if their
 * elements have one size. */
typedef void cpu_kernel(void *d, const void *a, const void *b, const void *c, unsigned steps, size_t chunks);

/* Positions of a chunk: at[i] = index[i] + displacement, as elements of an array of `extent` elements (never 0), for
 * the lanes of the mask (NULL: all). Other lanes get the position of one of them, or 0 if there is none. Returns 0 if a
 * position is out of bounds; then all lanes have their sum, or a value of at least 2^63 if the sum does not fit 63
 * bits. */
typedef int cpu_positions(uint64_t at[KERNEL_CHUNK], const void *index, int64_t displacement, uint64_t extent,
                          const uint8_t *mask);
/* d[i] = base[at[i]] for a chunk */
typedef void cpu_gather(void *d, const void *base, const uint64_t at[KERNEL_CHUNK]);
/* base[at[i]] = s[i] for i < count, in that order, for the lanes of the mask (NULL: all) */
typedef void cpu_scatter(void *base, const uint64_t at[KERNEL_CHUNK], const void *s, const uint8_t *mask, size_t count);
/* base[i] = s[i] for i < count, for the lanes of the mask */
typedef void cpu_store(void *base, const void *s, const uint8_t *mask, size_t count);
/* Combines the `count` elements of `row` as the ISA folds a block; the result is row[0]. The row is overwritten. */
typedef void cpu_fold(void *row, size_t count);
/* d[i] = the scan of row up to i, in the ISA's order. Overwrites both rows, which have room for 8 bytes an element.
 * Returns the row that holds the result. */
typedef void *cpu_scan(void *row, void *other, size_t count);

enum {
#define KERNEL(shape, op, type) KERNEL_##op##_##type,
#define KERNEL_W(shape, op, bits) KERNEL_##op##_u##bits, KERNEL_##op##_i##bits = KERNEL_##op##_u##bits,
#define KERNEL_B(shape, op, bits) KERNEL_##op##_##bits,
#define KERNEL_P(shape, op) KERNEL_##op,
#define CONVERT(to, from) KERNEL_cvt_##to##_##from,
#define CONVERT_W(bits, from) KERNEL_cvt_w##bits##_##from,
  KERNEL_NONE = 0,
#include "backend/cpu/engine/kernels.def"
  KERNEL_COUNT
#undef KERNEL
#undef KERNEL_W
#undef KERNEL_B
#undef KERNEL_P
#undef CONVERT
#undef CONVERT_W
};

typedef struct cpu_kernels {
  const char *name;                      /* "avx512" */
  cpu_kernel *row[KERNEL_COUNT];
  cpu_positions *positions[9];           /* by atlas_type of the index: i8..u64 */
  cpu_gather *gather[4];                 /* by binary logarithm of the element size */
  cpu_scatter *scatter[4];
  cpu_store *store[4];
  cpu_fold *fold[4][ATLAS_TYPE_COUNT];   /* add, mul, min, max */
  cpu_scan *scan[ATLAS_TYPE_COUNT];
  void (*iota32)(uint32_t *d, uint32_t first, size_t chunks); /* first, first + 1, ... */
  void (*iota64)(uint64_t *d, uint64_t first, size_t chunks);
  int (*any)(const uint8_t *a, const uint8_t *b, size_t count); /* 1 if a[i] & b[i] for some i < count; b may be NULL */
  /* Copies the mask to d without the lanes that have no steps left, and takes a step from each other lane. 1 if a lane
   * had none. */
  int (*step)(uint8_t *d, const uint8_t *mask, uint64_t *steps, size_t chunks);
} cpu_kernels;

/* The kernel of an instruction, or KERNEL_NONE. `type` is the operand type for set.* */
uint32_t hg_kernel_of(const vector_insn *insn);
uint32_t hg_kernel_convert(uint8_t to, uint8_t from);

/* The variants: see hg_cpu_kernels. */
extern const cpu_kernels hg_kernels_baseline, hg_kernels_avx2, hg_kernels_avx512;

#endif
