/* contract_tiles.h - contractions as programs: what the writers of tiles and of the folds of partial sums share. */
#ifndef HG_OPS_CONTRACT_TILES_H
#define HG_OPS_CONTRACT_TILES_H

#include "ops/write/expression.h"
#include "ops/graph/ops_tuning.h"

enum { CONTRACT_CHAIN = 256 }; /* products of one chain of fused multiply-adds */

/* Coordinates of the space: of the result, then what products are summed over, then the part of K. */
enum { AT_BATCH, AT_M, AT_N, AT_K, AT_PART };

/* An input in memory: element (batch, outer, k), where outer is m for A and n for B. */
typedef struct contract_side {
  term_id term;
  uint32_t storage;
  uint8_t type;
  uint32_t outer; /* AT_M or AT_N */
  int64_t constant, batch_stride, stride, k_stride; /* strides: of an axis' fastest part */
  hg_axis batch_axis, axis, k_axis;                 /* one part at least */
} contract_side;

/* 1 if each axis has one stride. */
static inline int contract_is_plain(const contract_side *side) {
  return side->batch_axis.count == 1 && side->axis.count == 1 && side->k_axis.count == 1;
}

typedef struct contract {
  const ops_group *group;
  ops_terms terms;
  ops_code code;
  value_id node;
  uint8_t type, sum_type; /* of the node; of the sums */
  uint64_t batch, m, n, k;
  contract_side a, b;
  /* How it is cut. */
  uint32_t warps_m, warps_n;   /* of a block */
  uint32_t rows, columns;      /* of a lane: 4 or 8 */
  uint64_t tiles_m, tiles_n;
  uint64_t part_chains, parts; /* K is split into parts of that many chains, a power of two */
  uint32_t partial;            /* the storage of the parts' sums, if parts > 1 */
  term_id reached; /* what a native kernel has left in `partial`, of type sum_type; 0: the parts' sums */
} contract;

static inline uint32_t contract_lanes(const contract *c) { return 32 * c->warps_m * c->warps_n; }
static inline uint32_t contract_tile_m(const contract *c) { return 8 * c->rows * c->warps_m; }
static inline uint32_t contract_tile_n(const contract *c) { return 4 * c->columns * c->warps_n; }
/* 1 if tiles of N fit a grid's x, those of M its y, matrices and parts its z. */
static inline int contract_fits_grid(const contract *c) {
  enum { MOST = 65535 }; /* of blocks along y and z */
  return c->tiles_m <= MOST && c->batch * c->parts <= MOST;
}

/* The parts of the axis that a coordinate of the space is, to an address; 0: there are none, or too many. */
int ops_contract_axis(const ops_terms *t, const ops_form *form, uint32_t coordinate, hg_axis *axis);

/* The group's results as terms of the space, and where they are stored; the contraction's value is *bound.
 * HG_UNSUPPORTED if a result reads another element of the contraction than its own. */
typedef struct contract_results {
  term_id roots[OPS_MAX_BINDINGS], bound;
  ops_form places[OPS_MAX_BINDINGS];
} contract_results;

/* Writes the tiled program: with the results, or with the partial sums if there are parts. */
hg_status ops_contract_tiles(contract *c, ops_step *step);
/* The same for the product of a matrix and a vector, whose parts are chains. */
int ops_contract_is_matvec(const contract *c);
hg_status ops_contract_matvec(contract *c, ops_step *step);
/* What a kernel may compute: the contraction up to this term, the only reader of everything before it. */
typedef struct contract_reach {
  term_id term;
  uint8_t type, epilogue; /* the term's type; HG_WITH_... */
  uint8_t bias_type;      /* a kernel takes a bias of its result's type only: of 16 bits behind the rounding */
  uint32_t bias_storage;
  int64_t bias_first;     /* the first element of the bias */
} contract_reach;

enum { CONTRACT_MOST_STAGES = 4 };

/* Finds the stages that a fast kernel may compute, each with more of the epilogue than the one before; the first is the
 * contraction alone, and the only one unless is_fast. Returns how many there are. */
uint32_t ops_contract_reach(const contract *c, const contract_results *results, int is_fast,
                            contract_reach stages[CONTRACT_MOST_STAGES]);
/* Uses a native kernel for the result itself or, if an epilogue remains, for a temporary that a second step reads.
 * *is_done 0: there is none. */
hg_status ops_contract_native(contract *c, const contract_results *results, ops_step *step, int *is_done);
/* Adds a temporary for [parts, batch, m, n] sums. */
hg_status ops_contract_partials(contract *c);
/* Folds groups of parts into one part each, as long as there are more than the last step can fold. */
hg_status ops_contract_fold_groups(contract *c);
/* Folds the parts and computes the group's results from them. */
hg_status ops_contract_fold(contract *c);

/* The type for element numbers: 32 bits if all fit. */
atlas_type ops_contract_index_type(const contract *c);

/* 1 if element (batch, m, n) of the result lies at its number in C order. */
int ops_contract_is_dense(const contract *c, const ops_form *form);
/* Fills in *results. */
hg_status ops_contract_results(contract *c, contract_results *results);
/* That, and begins the code of a step that computes the contraction, or parts of it. */
hg_status ops_contract_begin(contract *c, ops_step *step, const char *name, contract_results *results);
/* Computes and stores the results; `sum` is the contraction's value at the current coordinates. */
void ops_contract_put(contract *c, const contract_results *results, uint16_t sum);

#endif
