/* stubs.c - makers that are still to come. */
#include "ops/compute.h"
static value_id none(const ops_request *r) { return ops_refuse(r, HG_UNSUPPORTED, "not yet"); }
value_id ops_make_contract(const ops_request *r) { return none(r); }
value_id ops_make_gather(const ops_request *r) { return none(r); }
value_id ops_make_random(const ops_request *r) { return none(r); }
value_id ops_make_join(const ops_request *r) { return none(r); }
value_id ops_make_create(const ops_request *r) { return none(r); }
uint32_t ops_make_formula(const ops_request *r, value_id *results) { return results[0] = none(r); }
