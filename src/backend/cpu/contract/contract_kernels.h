/* contract_kernels.h - the inner loops of contractions, compiled once for each instruction set (contract_kernels.c).
 *
 * A panel is `width` rows of A, or columns of B, side by side: element k of lane i is panel[k * width + i]. A kernel
 * multiplies a panel of A, or as many rows of A in place, by a panel of B over one chunk of K, in increasing k, each
 * product fused with its addition. */
#ifndef HG_CONTRACT_KERNELS_H
#define HG_CONTRACT_KERNELS_H

#include "backend/cpu/engine/kernels.h"

#include <stddef.h>
#include <stdint.h>

/* The type of sums. Integers wrap, so all integers of up to 32 bits share one. */
typedef enum contract_sum { CONTRACT_F32, CONTRACT_F64, CONTRACT_I32, CONTRACT_I64, CONTRACT_SUMS } contract_sum;

/* The destination of a chunk's sums, after adding the levels in `merge`: the elements of level l are at levels + l *
 * level_pitch, as a tile of `columns` columns. */
typedef struct contract_tile {
  int64_t a_row_bytes, a_k_bytes; /* strides of A; in a panel: an element, a row of it */
  int64_t b_k_bytes;              /* from row to row of B, whose columns lie side by side */
  void *out;
  size_t pitch; /* elements from row to row of `out` */
  const void *levels;
  size_t level_pitch; /* elements */
  uint64_t merge;     /* bits: the levels to add, lowest first */
  int is_last;        /* 1: the sum is complete, so a NaN becomes the canonical one */
  size_t columns;     /* of the panel of B that exist, or of a strip and its levels */
} contract_tile;

typedef void contract_micro(size_t count, const void *a, const void *b, const contract_tile *tile);

enum { CONTRACT_MICROS = 5, CONTRACT_STRIPS = 4, CONTRACT_MAX_COLUMNS = 32 };

/* The kernels for a type of sum: micro[1][i] for panels of A of rows[i] rows, in ascending order, and panels of B of
 * `columns` columns; micro[0][i] for the first vector of such a panel. */
typedef struct contract_loops {
  uint32_t count; /* length of micro; 0: this instruction set has no fused multiply-add */
  uint32_t rows[CONTRACT_MICROS];
  uint32_t columns;
  contract_micro *micro[2][CONTRACT_MICROS];
  int masks;      /* 1: kernels read and write only the columns of their panel that exist */
  uint32_t lanes; /* of a vector; a strip has as many columns at least */
  uint32_t strip_rows[CONTRACT_STRIPS]; /* in ascending order; strip[i] is for as many rows of A in place */
  contract_micro *strip[CONTRACT_STRIPS];
} contract_loops;

/* Lanes with one stride, from `lane` on; the first one's elements are displaced by `at`. */
typedef struct contract_run {
  uint32_t lane, count;
  int64_t at;
} contract_run;

/* Elements of a matrix: the k-th of lane i is from + (i * lane_stride + k * k_stride) elements of `type`. With runs:
 * from + at + (i - lane) * lane_stride + places[k], for a lane i of a run. */
typedef struct contract_source {
  const uint8_t *from;
  int64_t lane_stride, k_stride;
  uint8_t type; /* atlas_type */
  uint32_t run_count;
  const contract_run *runs; /* NULL: none */
  const int64_t *places;
} contract_source;

/* Makes a panel of `width` lanes with `count` elements each; the first `used` lanes exist, the others are 0. */
typedef void contract_pack(void *panel, uint32_t width, uint32_t used, size_t count, const contract_source *source);

/* A matrix whose rows lie along K times a vector. */
typedef struct contract_matvec {
  const uint8_t *a, *x; /* of the sum's type; x dense */
  int64_t row_bytes;
  uint64_t rows, k;
  int by_chunks; /* a group's chunks side by side, rather than groups */
} contract_matvec;

typedef struct contract_matvec_loops {
  uint32_t group, groups; /* rows of a group; 0: there is none. A matrix has as many rows at least */
  /* Results `first` to first + rows, at most one group by chunks and else `groups`, to `out`. */
  void (*rows)(const contract_matvec *t, uint64_t first, uint32_t rows, void *out);
  void (*row)(const contract_matvec *t, uint64_t row, void *out); /* of one row, whose chunks are side by side */
} contract_matvec_loops;

typedef struct contract_kernels {
  contract_loops loops[CONTRACT_SUMS];
  contract_pack *pack[CONTRACT_SUMS];
  /* Stores a tile of sums as elements of `type`, rounded once or wrapped. Strides are in elements. */
  void (*finish[CONTRACT_SUMS])(const void *tile, size_t pitch, uint32_t rows, uint32_t columns, uint8_t *to,
                                int64_t row_stride, int64_t column_stride, uint8_t type);
  contract_matvec_loops matvec[CONTRACT_SUMS];
} contract_kernels;

extern const contract_kernels hg_contract_baseline, hg_contract_avx2, hg_contract_avx512;

#endif
