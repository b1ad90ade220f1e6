/* contract_fold.c - the second step of a contraction whose K was split: a lane has an element of the result, folds its
 * parts by the aligned binary tree and computes what follows. */
#include "ops/write/contract_tiles.h"
#include "ops/graph/ops_tuning.h"
#include "ops/write/fold.h"

hg_status ops_contract_partials(contract *c) {
  return ops_add_temporary(c->group->plan, c->sum_type, c->parts * c->batch * c->m * c->n, &c->partial);
}

/* The parts' sums from `first` on, `count` of them, which are in registers: the left half is the greatest power of two
 * that leaves something for the right one. */
static uint16_t fold(contract *c, const uint16_t *parts, uint64_t count) {
  if (count == 1) return parts[0];
  uint64_t left = 1;
  while (2 * left < count) left *= 2;
  uint16_t a = fold(c, parts, left), b = fold(c, parts + left, count - left);
  atlas_emit(c->code.builder, ATLAS_OP_add, (atlas_type)c->sum_type, 3, atlas_reg(a), atlas_reg(a), atlas_reg(b));
  return a;
}

/* Coordinates of the result from the lane's number, which is left in a register of its own. */
static uint16_t begin_places(contract *c) {
  ops_code *code = &c->code;
  atlas_type type = code->index_type;
  uint16_t lane = ops_register(code), rest = ops_register(code), n = ops_register(code), m = ops_register(code);
  atlas_emit2(code->builder, ATLAS_OP_cvt, type, ATLAS_u64, atlas_reg(lane), atlas_reg(ATLAS_REG_LANE));
  atlas_emit(code->builder, ATLAS_OP_rem, type, 3, atlas_reg(n), atlas_reg(lane), ops_scalar_of(code, type, c->n));
  atlas_emit(code->builder, ATLAS_OP_div, type, 3, atlas_reg(rest), atlas_reg(lane), ops_scalar_of(code, type, c->n));
  atlas_emit(code->builder, ATLAS_OP_rem, type, 3, atlas_reg(m), atlas_reg(rest), ops_scalar_of(code, type, c->m));
  atlas_emit(code->builder, ATLAS_OP_div, type, 3, atlas_reg(rest), atlas_reg(rest), ops_scalar_of(code, type, c->m));
  code->variable[AT_BATCH] = rest;
  code->variable[AT_M] = m;
  code->variable[AT_N] = n;
  return lane;
}

/* ---- more parts than a lane has registers for ------------------------------------------------------------------- */

/* Parts that there are not are -0, which changes no sum. */
static uint16_t load_part(contract *c, uint32_t from, uint16_t at, uint16_t number, uint64_t parts) {
  ops_code *code = &c->code;
  uint16_t value = ops_register(code);
  atlas_type type = code->index_type;
  int may_be_absent = parts % OPS_CONTRACT_MOST_PARTS != 0;
  uint64_t last = parts * c->batch * c->m * c->n - 1;
  atlas_operand place = atlas_reg(at);
  if (may_be_absent) {
    atlas_emit(code->builder, ATLAS_OP_set_lt, type, 3, atlas_pred(0), atlas_reg(number),
               ops_scalar_of(code, type, parts));
    atlas_emit(code->builder, ATLAS_OP_min, type, 3, place, place, ops_scalar_of(code, type, last));
    atlas_emit(code->builder, ATLAS_OP_add, type, 3, atlas_reg(number), atlas_reg(number), atlas_int_const(type, 1));
  }
  atlas_emit(code->builder, ATLAS_OP_ldg, (atlas_type)c->sum_type, 2, atlas_reg(value),
             atlas_mem_reg(ops_buffer_of(code, from), at, 0));
  if (may_be_absent)
    atlas_emit(code->builder, ATLAS_OP_sel, (atlas_type)c->sum_type, 4, atlas_reg(value), atlas_pred(0),
               atlas_reg(value), atlas_bits(ops_fold_of(code, OPS_SUM, (atlas_type)c->sum_type).identity));
  return value;
}

/* A lane folds an aligned power of two of them; what comes of it is a part of the next step. */
static void write_groups(contract *c, uint32_t from, uint64_t parts) {
  ops_code *code = &c->code;
  atlas_type type = code->index_type;
  uint64_t size = c->batch * c->m * c->n;
  uint16_t lane = ops_register(code), at = ops_register(code), number = ops_register(code);
  uint16_t values[OPS_CONTRACT_MOST_PARTS];
  atlas_emit2(code->builder, ATLAS_OP_cvt, type, ATLAS_u64, atlas_reg(lane), atlas_reg(ATLAS_REG_LANE));
  atlas_emit(code->builder, ATLAS_OP_div, type, 3, atlas_reg(number), atlas_reg(lane), ops_scalar_of(code, type, size));
  atlas_emit(code->builder, ATLAS_OP_mul, type, 3, atlas_reg(number), atlas_reg(number),
             atlas_int_const(type, OPS_CONTRACT_MOST_PARTS));
  atlas_emit(code->builder, ATLAS_OP_rem, type, 3, atlas_reg(at), atlas_reg(lane), ops_scalar_of(code, type, size));
  atlas_emit(code->builder, ATLAS_OP_mad, type, 4, atlas_reg(at), atlas_reg(number), ops_scalar_of(code, type, size),
             atlas_reg(at));
  for (uint32_t i = 0; i < OPS_CONTRACT_MOST_PARTS; i++) {
    values[i] = load_part(c, from, at, number, parts);
    atlas_emit(code->builder, ATLAS_OP_add, type, 3, atlas_reg(at), atlas_reg(at), ops_scalar_of(code, type, size));
  }
  uint16_t sum = fold(c, values, OPS_CONTRACT_MOST_PARTS);
  atlas_emit(code->builder, ATLAS_OP_stg, (atlas_type)c->sum_type, 2,
             atlas_mem_reg(ops_buffer_of(code, c->partial), lane, 0), atlas_reg(sum));
}

hg_status ops_contract_fold_groups(contract *c) {
  ops_step *step = ops_new_step(c->group->plan);
  if (step == NULL) return HG_OUT_OF_MEMORY;
  uint32_t from = c->partial;
  uint64_t parts = c->parts;
  c->parts = (parts + OPS_CONTRACT_MOST_PARTS - 1) / OPS_CONTRACT_MOST_PARTS;
  c->terms.space.size[AT_PART] = c->parts;
  ops_form form = {.constant = 0};
  term_id partial; /* nobody's: by it the storage is known to be read */
  form.factor[AT_PART] = (int64_t)(c->batch * c->m * c->n);
  HG_TRY(ops_load_of(&c->terms, from, (atlas_type)c->sum_type, &form, &partial));
  HG_TRY(ops_contract_partials(c));
  HG_TRY(ops_code_begin(&c->code, &c->terms, step, "contract_groups"));
  c->code.partials[c->code.partial_count++] = c->partial;
  c->code.index_type = ops_contract_index_type(c);
  write_groups(c, from, parts);
  step->lanes = c->parts * c->batch * c->m * c->n;
  step->kind = "contract parts";
  return ops_code_end(&c->code);
}

/* ---- the last step ----------------------------------------------------------------------------------------------- */

static void write_program(contract *c, const contract_results *results) {
  ops_code *code = &c->code;
  ops_form lane = {.factor = {[AT_BATCH] = (int64_t)(c->m * c->n), [AT_M] = (int64_t)c->n, [AT_N] = 1}};
  uint16_t slot = ops_buffer_of(code, c->partial), parts[OPS_CONTRACT_MOST_PARTS] = {0}, at = begin_places(c);
  for (uint64_t i = 0; i < c->parts; i++) {
    parts[i] = ops_register(code);
    atlas_emit(code->builder, ATLAS_OP_ldg, (atlas_type)c->sum_type, 2, atlas_reg(parts[i]),
               i == 0 ? atlas_mem_lane(slot, 0) : atlas_mem_reg(slot, at, 0));
    if (i + 1 < c->parts)
      atlas_emit(code->builder, ATLAS_OP_add, code->index_type, 3, atlas_reg(at), atlas_reg(at),
                 ops_scalar_of(code, code->index_type, c->batch * c->m * c->n));
  }
  uint16_t sum = fold(c, parts, c->parts);
  for (uint64_t i = 0; i < c->parts; i++)
    if (parts[i] != sum) ops_register_free(code, parts[i]);
  code->lane_form = &lane;
  ops_contract_put(c, results, sum);
  code->lane_form = NULL;
}

hg_status ops_contract_fold(contract *c) {
  ops_step *step = ops_new_step(c->group->plan);
  if (step == NULL) return HG_OUT_OF_MEMORY;
  contract_results results;
  ops_form form = {.constant = 0};
  term_id partial;
  form.factor[AT_PART] = (int64_t)(c->batch * c->m * c->n);
  HG_TRY(ops_load_of(&c->terms, c->partial, (atlas_type)c->sum_type, &form, &partial));
  HG_TRY(ops_contract_results(c, &results));
  if (c->reached != 0) { /* it is loaded, so what it is made of is not computed again */
    results.bound = c->reached;
    ops_term_at(&c->terms, c->reached)->kind = TERM_BOUND;
    ops_term_at(&c->terms, c->reached)->input_count = 0;
  }
  HG_TRY(ops_code_begin(&c->code, &c->terms, step, "contract_parts"));
  c->code.index_type = ops_contract_index_type(c);
  write_program(c, &results);
  step->lanes = c->batch * c->m * c->n;
  step->kind = "contract parts";
  return ops_code_end(&c->code);
}
