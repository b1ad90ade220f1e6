/* make_contract.c - rows of the kind contract: each becomes [batch, m, k] x [batch, k, n] in order C. f16 and bf16 are
 * summed in f32, i8 in i32. */
#include "ops/graph/compute.h"

/* The matrix with its last two axes exchanged. */
static value_id transposed(hg_computation *c, value_id value) {
  uint32_t axes[HG_MAX_RANK], rank = ops_at(c, value)->shape.rank;
  for (uint32_t i = 0; i < rank; i++) axes[i] = i + 2 == rank ? rank - 1 : i + 1 == rank ? rank - 2 : i;
  return ops_permute(c, value, axes);
}

/* A vector as a matrix of one row or column. */
static value_id as_matrix(hg_computation *c, value_id value, int is_column) {
  uint64_t count = ops_at(c, value)->shape.size[0];
  ops_shape shape = {.rank = 2, .size = {is_column ? count : 1, is_column ? 1 : count}};
  return ops_reshape(c, value, &shape);
}

/* [..., rows, columns] as [batch, rows, columns]. */
static value_id with_one_batch(hg_computation *c, value_id value, const ops_shape *batch) {
  const ops_shape *own = &ops_at(c, value)->shape;
  uint64_t rows = own->size[own->rank - 2], columns = own->size[own->rank - 1];
  ops_shape wide = *batch, flat = {.rank = 3, .size = {ops_count(batch), rows, columns}};
  wide.size[wide.rank++] = rows;
  wide.size[wide.rank++] = columns;
  if (batch->rank == 0) return ops_broadcast(c, value, &flat);
  return ops_reshape(c, ops_broadcast(c, value, &wide), &flat);
}

/* Stacks the rows of all batches if b is the same for all of them. */
static value_id contract_rows(const ops_request *request, const ops_product *p) {
  hg_computation *c = request->c;
  ops_shape shape = ops_at(c, p->a)->shape, one = {.rank = 0};
  uint64_t k = shape.size[shape.rank - 1];
  uint64_t n = ops_at(c, p->b)->shape.size[1], rows = 1;
  for (uint32_t i = 0; i + 1 < shape.rank; i++) rows *= shape.size[i];
  ops_shape flat = {.rank = 3, .size = {1, rows, k}};
  value_id a = shape.rank == 2 ? ops_broadcast(c, p->a, &flat) : ops_reshape(c, p->a, &flat);
  value_id result = ops_product_of(c, p, a, with_one_batch(c, p->b, &one));
  shape.size[shape.rank - 1] = n;
  return ops_reshape(c, result, &shape);
}

static value_id contract_batches(const ops_request *request, const ops_product *p) {
  hg_computation *c = request->c;
  ops_shape a = ops_at(c, p->a)->shape, b = ops_at(c, p->b)->shape, batch;
  uint64_t m = a.size[a.rank - 2], n = b.size[b.rank - 1];
  a.rank -= 2, b.rank -= 2;
  if (!ops_broadcast_shapes(&a, &b, &batch))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s and %s: what stands before the matrices does not broadcast",
                      OPS_TEXT(c, p->a), OPS_TEXT(c, p->b));
  value_id result = ops_product_of(c, p, with_one_batch(c, p->a, &batch), with_one_batch(c, p->b, &batch));
  batch.size[batch.rank++] = m;
  batch.size[batch.rank++] = n;
  return ops_reshape(c, result, &batch);
}

static value_id multiply(const ops_request *request, ops_product *p) {
  hg_computation *c = request->c;
  if (p->a == 0 || p->b == 0) return 0;
  ops_shape a = ops_at(c, p->a)->shape, b = ops_at(c, p->b)->shape;
  uint64_t left = a.size[a.rank - 1], right = b.size[b.rank - 2];
  if (left != right)
    return ops_refuse(request, HG_INVALID_ARGUMENT,
                      "%s and %s: the last axis of the left one has %llu elements, the one that it meets %llu",
                      OPS_TEXT(c, p->a), OPS_TEXT(c, p->b), (unsigned long long)left, (unsigned long long)right);
  return b.rank == 2 ? contract_rows(request, p) : contract_batches(request, p);
}

static value_id matmul(const ops_request *request, int flip_a, int flip_b) {
  hg_computation *c = request->c;
  ops_product p = {.a = request->inputs[0], .b = request->inputs[1]};
  uint32_t rank_a = ops_at(c, p.a)->shape.rank, rank_b = ops_at(c, p.b)->shape.rank;
  if (rank_a == 0 || rank_b == 0)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s and %s: it takes vectors and matrices", OPS_TEXT(c, p.a),
                      OPS_TEXT(c, p.b));
  if (!ops_settle_product(request, &p)) return 0;
  if (rank_a == 1) p.a = as_matrix(c, p.a, 0);
  else if (flip_a) p.a = transposed(c, p.a);
  if (rank_b == 1) p.b = as_matrix(c, p.b, 1);
  else if (flip_b) p.b = transposed(c, p.b);
  value_id result = multiply(request, &p);
  if (result == 0) return 0;
  ops_shape shape = ops_at(c, result)->shape;
  if (rank_a == 1) { /* drops the axes that were added to vectors */
    for (uint32_t i = shape.rank - 2; i + 1 < shape.rank; i++) shape.size[i] = shape.size[i + 1];
    shape.rank--;
  }
  shape.rank -= rank_b == 1;
  return ops_reshape(c, result, &shape);
}

/* Products of matrices and vectors, both with any number of leading axes. */
static value_id matvec(const ops_request *request) {
  hg_computation *c = request->c;
  ops_product p = {.a = request->inputs[0], .b = request->inputs[1]};
  ops_shape shape = ops_at(c, p.b)->shape;
  if (shape.rank == 0 || shape.rank == HG_MAX_RANK || ops_at(c, p.a)->shape.rank < 2)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s and %s: it takes matrices and vectors", OPS_TEXT(c, p.a),
                      OPS_TEXT(c, p.b));
  if (!ops_settle_product(request, &p)) return 0;
  shape.size[shape.rank++] = 1;
  p.b = ops_reshape(c, p.b, &shape);
  value_id result = multiply(request, &p);
  if (result == 0) return 0;
  shape = ops_at(c, result)->shape;
  shape.rank--;
  return ops_reshape(c, result, &shape);
}

static value_id dot(const ops_request *request) {
  hg_computation *c = request->c;
  if (ops_at(c, request->inputs[0])->shape.rank == 1 && ops_at(c, request->inputs[1])->shape.rank == 1)
    return matmul(request, 0, 0);
  return ops_refuse(request, HG_INVALID_ARGUMENT, "%s and %s: it takes two vectors", OPS_TEXT(c, request->inputs[0]),
                    OPS_TEXT(c, request->inputs[1]));
}

value_id ops_make_contract(const ops_request *request) {
  switch (request->row->op) {
    case HG_OP_dot: return dot(request);
    case HG_OP_matvec: return matvec(request);
    case HG_OP_convolution:
    case HG_OP_convolution_back:
    case HG_OP_convolution_weights: return ops_make_convolution(request);
    default:
      return matmul(request, request->arguments[0].integers[0] != 0, request->arguments[1].integers[0] != 0);
  }
}
