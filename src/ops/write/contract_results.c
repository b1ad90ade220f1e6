/* contract_results.c - the results that are computed from a contraction in the same launch, and where they are
 * stored. */
#include "ops/write/contract_tiles.h"

/* The factor of a dimension with one element is ignored. */
int ops_contract_is_dense(const contract *c, const ops_form *form) {
  const int64_t wanted[3] = {(int64_t)(c->m * c->n), (int64_t)c->n, 1};
  if (form->constant != 0) return 0;
  for (uint32_t i = 0; i < c->terms.variable_count; i++) {
    if (i < c->terms.space.rank && c->terms.space.size[i] == 1) continue;
    if (form->factor[i] != (i < 3 ? wanted[i] : 0)) return 0;
  }
  return 1;
}

hg_status ops_contract_results(contract *c, contract_results *results) {
  const ops_group *group = c->group;
  const ops_shape *shape = &ops_at(group->computation, c->node)->shape;
  ops_form identity[5], index[HG_MAX_RANK];
  memset(results, 0, sizeof *results);
  ops_identity(&c->terms.space, identity);
  if (group->result_count > OPS_MAX_BINDINGS) return hg_fail(HG_UNSUPPORTED, "a launch with so many results");
  for (uint32_t i = 0; i < group->result_count; i++) {
    const ops_shape *own = &ops_at(group->computation, group->results[i])->shape;
    uint32_t storage = group->storage_of[group->results[i] - 1] - 1;
    memset(index, 0, sizeof index);
    if (ops_count(own) != ops_count(shape)) return hg_fail(HG_UNSUPPORTED, "a result of another size");
    HG_TRY(ops_reshaped(&c->terms, own, shape, identity, index));
    HG_TRY(ops_term_of(&c->terms, group->results[i], index, &results->roots[i]));
    results->places[i] = ops_address((const ops_storage *)group->plan->storages.data + storage, index);
    ops_rejoin(&c->terms, &results->places[i]);
  }
  for (uint32_t id = 1; id <= c->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&c->terms, id);
    if (term->kind != TERM_BOUND) continue;
    if (results->bound != 0 || !ops_contract_is_dense(c, &term->form))
      return hg_fail(HG_UNSUPPORTED, "what follows a contraction reads it at another place");
    results->bound = id;
  }
  return results->bound != 0 ? HG_OK : hg_fail(HG_UNSUPPORTED, "results without the contraction");
}

void ops_contract_put(contract *c, const contract_results *results, uint16_t sum) {
  ops_code *code = &c->code;
  uint16_t value = sum;
  if (c->type != c->sum_type) {
    value = ops_register(code);
    atlas_emit2(code->builder, ATLAS_OP_cvt, (atlas_type)c->type, (atlas_type)c->sum_type, atlas_reg(value),
                atlas_reg(sum));
  }
  code->registers[results->bound] = value;
  ops_store_results(code, results->roots, results->places);
  code->registers[results->bound] = OPS_NO_REGISTER;
}

atlas_type ops_contract_index_type(const contract *c) {
  if (ops_look_at_storages(c->group->plan)->has_large) return ATLAS_i64;
  for (uint32_t id = 1; id <= c->terms.terms.count; id++) {
    const ops_form *form = &ops_term_at(&c->terms, id)->form;
    if (form->constant < 0) return ATLAS_i64;
    for (uint32_t i = 0; i < c->terms.variable_count; i++)
      if (form->factor[i] < 0) return ATLAS_i64;
  }
  for (uint32_t i = c->terms.space.rank; i < c->terms.variable_count; i++) {
    if (c->terms.derived[i].of.constant < 0) return ATLAS_i64;
    for (uint32_t j = 0; j < c->terms.variable_count; j++)
      if (c->terms.derived[i].of.factor[j] < 0) return ATLAS_i64;
  }
  return c->batch * c->m * c->n < UINT64_C(1) << 31 ? ATLAS_u32 : ATLAS_i64;
}

hg_status ops_contract_begin(contract *c, ops_step *step, const char *name, contract_results *results) {
  HG_TRY(ops_contract_results(c, results));
  HG_TRY(ops_code_begin(&c->code, &c->terms, step, name));
  if (c->parts > 1) c->code.partials[c->code.partial_count++] = c->partial;
  c->code.index_type = ops_contract_index_type(c);
  return HG_OK;
}
