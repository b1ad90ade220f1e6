/* make_factor.c - rows of the kind factor: matrices on the last two axes, of f32 or f64 (f16 and bf16 as f32). */
#include "ops/graph/compute.h"

enum { MOST_ROWS = 16384 /* numbers of a matrix are told by u32 */ };

static atlas_type type_of(const hg_computation *c, value_id value) { return (atlas_type)ops_at(c, value)->type; }

static value_id widened(hg_computation *c, value_id value) {
  return ops_cast(c, value, type_of(c, value) == ATLAS_f64 ? ATLAS_f64 : ATLAS_f32);
}

static int check_matrix(const ops_request *request, const char *name, value_id value, int is_square) {
  const ops_shape *shape = &ops_at(request->c, value)->shape;
  const uint64_t *size = shape->rank < 2 ? NULL : &shape->size[shape->rank - 2];
  if (size == NULL || (is_square && size[0] != size[1]))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s is %s; it takes %smatrices: [..., %s]", name,
                      OPS_TEXT(request->c, value), is_square ? "square " : "", is_square ? "n, n" : "m, n"),
           0;
  if (size[0] <= MOST_ROWS && size[1] <= MOST_ROWS) return 1;
  return ops_refuse(request, HG_UNSUPPORTED, "%s is %s: matrices have at most %d rows and columns", name,
                    OPS_TEXT(request->c, value), MOST_ROWS),
         0;
}

/* Rows and columns of the result for those of the matrix. */
static void set_sizes(uint16_t op, uint64_t *size) {
  uint64_t m = size[0], n = size[1];
  switch (op) {
    case HG_OP_lu: size[1] = n + 1; break;
    case HG_OP_qr_packed: size[0] = m + n, size[1] = m < n ? m : n; break;
    case HG_OP_qr_complete: size[0] = m + n, size[1] = m; break;
    case HG_OP_eigh_packed: size[0] = n + 1; break;
    case HG_OP_tridiagonal: size[0] = n + 3; break;
    case HG_OP_bidiagonal: size[0] = 2 * n + 4; break;
    case HG_OP_qr_reflections:
    case HG_OP_svd_rotated: size[0] = m + n + 1; break;
    default: break;
  }
}

static value_id add(const ops_request *request, const value_id *inputs, uint32_t count, const ops_shape *shape) {
  hg_computation *c = request->c;
  atlas_type type = type_of(c, inputs[0]);
  ops_node node = {.kind = OPS_FACTOR, .type = (uint8_t)type, .input_count = (uint8_t)count, .bits = request->row->op,
                   .shape = *shape};
  node.reduce = request->row->op == HG_OP_lower_solve && request->arguments[0].integers[0] != 0;
  uint64_t elements = ops_count(shape);
  for (uint32_t i = 0; i < count; i++) {
    node.input[i] = inputs[i];
    if (ops_count(&ops_at(c, inputs[i])->shape) == 0) elements = 0;
  }
  return elements == 0 ? ops_full(c, type, 0, shape) : ops_add(c, &node);
}

static value_id factor(const ops_request *request) {
  hg_computation *c = request->c;
  uint16_t op = request->row->op;
  atlas_type type = type_of(c, request->inputs[0]);
  value_id x = widened(c, request->inputs[0]);
  int is_square = op == HG_OP_cholesky_lower || op == HG_OP_eigh_packed || op == HG_OP_tridiagonal ||
                  op == HG_OP_bidiagonal;
  if (x == 0 || !check_matrix(request, "x", x, is_square)) return 0;
  ops_shape shape = ops_at(c, x)->shape;
  uint64_t *size = &shape.size[shape.rank - 2];
  if ((op == HG_OP_svd_rotated || op == HG_OP_qr_reflections) && size[0] < size[1])
    return ops_refuse(request, HG_INVALID_ARGUMENT, "x is %s; it takes matrices with at least as many rows as columns",
                      OPS_TEXT(c, x));
  set_sizes(op, size);
  return ops_cast(c, add(request, &x, 1, &shape), type);
}

/* The last two sizes behind those of `batch`. */
static value_id with_batch(hg_computation *c, value_id value, const ops_shape *batch) {
  const ops_shape *own = &ops_at(c, value)->shape;
  ops_shape shape = *batch;
  for (uint32_t i = 2; i > 0; i--) shape.size[shape.rank++] = own->size[own->rank - i];
  return ops_broadcast(c, value, &shape);
}

static value_id lower_solve(const ops_request *request) {
  hg_computation *c = request->c;
  value_id both[2] = {request->inputs[0], request->inputs[1]};
  if (!ops_agree_types(request, both, 2) || !check_matrix(request, "a", both[0], 1) ||
      !check_matrix(request, "b", both[1], 0))
    return 0;
  atlas_type type = type_of(c, both[0]);
  ops_shape a = ops_at(c, both[0])->shape, b = ops_at(c, both[1])->shape, batch;
  uint64_t rows = b.size[b.rank - 2], columns = b.size[b.rank - 1];
  if (a.size[a.rank - 1] != rows)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s and %s: b has to have as many rows as a", OPS_TEXT(c, both[0]),
                      OPS_TEXT(c, both[1]));
  a.rank -= 2, b.rank -= 2;
  if (!ops_broadcast_shapes(&a, &b, &batch))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s and %s: what stands before the matrices does not broadcast",
                      OPS_TEXT(c, both[0]), OPS_TEXT(c, both[1]));
  for (uint32_t i = 0; i < 2; i++)
    if ((both[i] = with_batch(c, widened(c, both[i]), &batch)) == 0) return 0;
  batch.size[batch.rank++] = rows;
  batch.size[batch.rank++] = columns;
  return ops_cast(c, add(request, both, 2, &batch), type);
}

value_id ops_make_factor(const ops_request *request) {
  return request->row->op == HG_OP_lower_solve ? lower_solve(request) : factor(request);
}
