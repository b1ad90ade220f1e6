/* make_product.c - what products of all shapes share: the types of their factors, of their sums and of the result. */
#include "ops/graph/compute.h"

static atlas_type type_of(const hg_computation *c, value_id value) { return (atlas_type)ops_at(c, value)->type; }
static int is_narrow(atlas_type type) { return type == ATLAS_f16 || type == ATLAS_bf16; }

int ops_settle_product(const ops_request *request, ops_product *p) {
  hg_computation *c = request->c;
  value_id a = ops_before_widening(c, p->a), b = ops_before_widening(c, p->b), both[2] = {p->a, p->b};
  int were_widened = a != p->a || b != p->b;
  if (type_of(c, a) == type_of(c, b) && is_narrow(type_of(c, a))) {
    p->a = a, p->b = b, p->type = ATLAS_f32;
    p->result = were_widened ? ATLAS_f32 : type_of(c, a);
    return 1;
  }
  if (!ops_agree_types(request, both, 2)) return 0;
  p->a = both[0], p->b = both[1];
  p->type = type_of(c, p->a) == ATLAS_i8 ? ATLAS_i32 : is_narrow(type_of(c, p->a)) ? ATLAS_f32 : type_of(c, p->a);
  p->result = is_narrow(type_of(c, p->a)) ? type_of(c, p->a) : p->type;
  return 1;
}

value_id ops_product_of(hg_computation *c, const ops_product *p, value_id a, value_id b) {
  if (a == 0 || b == 0) return 0;
  const ops_shape *left = &ops_at(c, a)->shape, *right = &ops_at(c, b)->shape;
  ops_shape shape = {.rank = 3, .size = {left->size[0], left->size[1], right->size[2]}};
  if (left->size[2] == 0 || ops_count(&shape) == 0) return ops_full(c, p->result, 0, &shape);
  return ops_cast(c, ops_contract(c, a, b, p->type), p->result);
}
