/* contract.c - decides how a contraction is computed: which tiles, how many parts of K, in one step or two. */
#include "ops/write/contract_tiles.h"
#include "ops/graph/ops_tuning.h"

#include "atlas/tables.h"

/* ---- the group --------------------------------------------------------------------------------------------------- */

static hg_status find_contraction(contract *c) {
  const ops_group *group = c->group;
  for (uint32_t i = 0; i < group->node_count; i++) {
    const ops_node *node = ops_at(group->computation, group->nodes[i]);
    if (node->kind == OPS_REDUCE || (node->kind == OPS_CONTRACT && c->node != 0))
      return hg_fail(HG_UNSUPPORTED, "a launch with two contractions or reductions");
    if (node->kind == OPS_CONTRACT) c->node = group->nodes[i];
  }
  return c->node != 0 ? HG_OK : hg_fail(HG_UNSUPPORTED, "a launch without a contraction");
}

static uint8_t sum_type_of(uint8_t type) {
  if (type == ATLAS_f16 || type == ATLAS_bf16) return ATLAS_f32;
  if (type == ATLAS_i8 || type == ATLAS_i16) return ATLAS_i32;
  if (type == ATLAS_u8 || type == ATLAS_u16) return ATLAS_u32;
  return type;
}

/* The input at (batch, outer, k) must be an element of a storage, and each axis a list of axes with strides. */
static hg_status find_side(contract *c, value_id value, uint32_t outer, const ops_form index[3], contract_side *side) {
  HG_TRY(ops_term_of(&c->terms, value, index, &side->term));
  const ops_term *term = ops_term_at(&c->terms, side->term);
  if (term->kind != TERM_LOAD) return hg_fail(HG_UNSUPPORTED, "a contraction of what is not in memory");
  *side = (contract_side){.term = side->term, .storage = term->storage, .type = term->type, .outer = outer,
                          .constant = term->form.constant};
  if (!ops_contract_axis(&c->terms, &term->form, AT_BATCH, &side->batch_axis) ||
      !ops_contract_axis(&c->terms, &term->form, outer, &side->axis) ||
      !ops_contract_axis(&c->terms, &term->form, AT_K, &side->k_axis))
    return hg_fail(HG_UNSUPPORTED, "a contraction of what has no strides");
  side->batch_stride = side->batch_axis.stride[0];
  side->stride = side->axis.stride[0];
  side->k_stride = side->k_axis.stride[0];
  return HG_OK;
}

static hg_status begin(contract *c) {
  const hg_computation *computation = c->group->computation;
  const ops_node *node = ops_at(computation, c->node);
  const ops_shape *a = &ops_at(computation, node->input[0])->shape;
  c->type = node->type;
  c->sum_type = sum_type_of(node->type);
  c->batch = node->shape.size[0], c->m = node->shape.size[1], c->n = node->shape.size[2], c->k = a->size[2];
  uint64_t sizes[5] = {c->batch, c->m, c->n, c->k, 1};
  for (int i = 0; i < 4; i++)
    if (sizes[i] == 0) return hg_fail(HG_UNSUPPORTED, "a contraction of nothing");
  c->terms.space.rank = c->terms.variable_count = 5;
  memcpy(c->terms.space.size, sizes, sizeof sizes);
  ops_form of[5], index[3];
  ops_identity(&c->terms.space, of);
  index[0] = of[AT_BATCH], index[1] = of[AT_M], index[2] = of[AT_K];
  HG_TRY(find_side(c, node->input[0], AT_M, index, &c->a));
  index[1] = of[AT_K], index[2] = of[AT_N];
  return find_side(c, node->input[1], AT_N, index, &c->b);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static uint64_t parts_of(uint64_t count, uint64_t part) { return (count + part - 1) / part; }

static uint64_t blocks_of(const contract *c) {
  return c->batch * parts_of(c->m, contract_tile_m(c)) * parts_of(c->n, contract_tile_n(c));
}

/* 1: there is so little work that smaller tiles and parts of K pay. */
static int is_too_little(const contract *c, uint64_t parts) {
  return blocks_of(c) * parts * contract_lanes(c) < OPS_MANY_LANES / 2;
}

static hg_status choose(contract *c) {
  uint64_t chains = parts_of(c->k, CONTRACT_CHAIN), most = OPS_CONTRACT_MOST_PARTS * OPS_CONTRACT_MOST_PARTS;
  if (most > chains) most = chains;
  int is_wide = atlas_bytes((atlas_type)c->sum_type) == 8; /* 128 x 128 of these do not fit the registers */
  c->warps_m = 2, c->warps_n = 4;
  c->rows = c->columns = is_wide ? 4 : 8;
  if (c->m <= OPS_SIDE_OF_HALF_TILE) c->rows = 4;
  if (c->n <= OPS_SIDE_OF_HALF_TILE) c->columns = 4;
  if (is_too_little(c, most)) c->rows = 4;
  if (is_too_little(c, most)) c->columns = 4;
  if (c->m <= OPS_SIDE_OF_WARP_TILE || c->n <= OPS_SIDE_OF_WARP_TILE || is_too_little(c, most)) {
    c->rows = c->columns = 4;
    c->warps_m = 1, c->warps_n = 2;
  }
  c->parts = c->part_chains = 1;
  while (c->part_chains < chains) c->part_chains *= 2;
  while (c->part_chains > 1) {
    uint64_t parts = parts_of(chains, c->part_chains / 2);
    if (blocks_of(c) * parts * contract_lanes(c) > OPS_MANY_LANES || parts > most) break;
    c->part_chains /= 2;
  }
  c->parts = parts_of(chains, c->part_chains);
  c->tiles_m = parts_of(c->m, contract_tile_m(c)), c->tiles_n = parts_of(c->n, contract_tile_n(c));
  return blocks_of(c) * c->parts <= INT32_MAX ? HG_OK
                                              : hg_fail(HG_UNSUPPORTED, "a contraction of more than 2^31 tiles");
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static hg_status write_contract(contract *c) {
  ops_step *step = ops_new_step(c->group->plan);
  if (step == NULL) return HG_OUT_OF_MEMORY;
  HG_TRY(find_contraction(c));
  HG_TRY(begin(c));
  contract_results results; /* refuses what is not possible before anything is made */
  HG_TRY(ops_contract_results(c, &results));
  int is_done = 0;
  HG_TRY(ops_contract_native(c, &results, step, &is_done));
  if (is_done) return HG_OK;
  int is_thin = ops_contract_is_matvec(c);
  if (is_thin) c->part_chains = 1, c->parts = parts_of(c->k, CONTRACT_CHAIN);
  else HG_TRY(choose(c));
  if (c->parts > 1) HG_TRY(ops_contract_partials(c));
  c->terms.space.size[AT_PART] = c->parts;
  HG_TRY(is_thin ? ops_contract_matvec(c, step) : ops_contract_tiles(c, step));
  step->kind = "contract";
  step->operations = 2 * c->batch * c->m * c->n * c->k;
  if (c->parts == 1) return HG_OK;
  while (c->parts > OPS_CONTRACT_MOST_PARTS) HG_TRY(ops_contract_fold_groups(c));
  return ops_contract_fold(c);
}

hg_status ops_write_contract(const ops_group *group) {
  contract c;
  memset(&c, 0, sizeof c);
  c.group = group;
  ops_terms_begin(&c.terms, group, &(ops_shape){.rank = 0});
  hg_status status = write_contract(&c);
  ops_terms_release(&c.terms);
  return status;
}
