/* contract_fold.c - the second step of a contraction whose K was split into parts: each lane has an element of the
 * result, folds its parts by the aligned binary tree and computes the epilogue. */
#include "ops/write/contract_tiles.h"
#include "ops/graph/ops_tuning.h"
#include "ops/write/fold.h"

hg_status ops_contract_partials(contract *c) {
  return ops_add_temporary(c->group->plan, c->sum_type, c->parts * c->batch * c->m * c->n, &c->partial);
}

/* Reads the parts of an element of the result one after another. */
typedef struct part_reader {
  contract *c;
  ops_fold fold;
  uint16_t slot, at;    /* the storage with the parts; the position in it of the next part */
  uint16_t number;      /* the part's number, which may lie behind the last; OPS_NO_REGISTER: never */
  uint32_t count;       /* how many have been read */
  int is_lane;          /* 1: the first part lies at the lane's number */
  uint64_t size, parts; /* the elements of a part; the number of parts */
} part_reader;

static part_reader begin_parts(contract *c, uint32_t from, uint32_t count) {
  return (part_reader){.c = c, .fold = ops_fold_of(&c->code, OPS_SUM, (atlas_type)c->sum_type), .count = count,
                       .slot = ops_buffer_of(&c->code, from), .at = ops_register(&c->code),
                       .number = OPS_NO_REGISTER, .size = c->batch * c->m * c->n};
}

/* Absent parts are -0, which does not change a sum. */
static uint16_t next_part(void *context, uint32_t i) {
  part_reader *p = context;
  ops_code *code = &p->c->code;
  atlas_type type = code->index_type;
  uint16_t value = ops_register(code);
  atlas_operand at = atlas_reg(p->at), number = atlas_reg(p->number);
  if (p->number != OPS_NO_REGISTER) {
    atlas_emit(code->builder, ATLAS_OP_set_lt, type, 3, atlas_pred(0), number, ops_scalar_of(code, type, p->parts));
    atlas_emit(code->builder, ATLAS_OP_min, type, 3, at, at, ops_scalar_of(code, type, p->parts * p->size - 1));
    atlas_emit(code->builder, ATLAS_OP_add, type, 3, number, number, atlas_int_const(type, 1));
  }
  atlas_emit(code->builder, ATLAS_OP_ldg, (atlas_type)p->fold.type, 2, atlas_reg(value),
             p->is_lane && i == 0 ? atlas_mem_lane(p->slot, 0) : atlas_mem_reg(p->slot, p->at, 0));
  if (i + 1 < p->count) atlas_emit(code->builder, ATLAS_OP_add, type, 3, at, at, ops_scalar_of(code, type, p->size));
  return p->number != OPS_NO_REGISTER ? ops_fold_where(&p->fold, 0, value) : value;
}

/* ---- more parts than a lane folds ------------------------------------------------------------------------------- */

/* A lane folds an aligned power of two of the parts; the result is a part for the next step. */
static void write_groups(contract *c, uint32_t from, uint64_t parts) {
  ops_code *code = &c->code;
  atlas_type type = code->index_type;
  atlas_operand size = ops_scalar_of(code, type, c->batch * c->m * c->n);
  uint16_t lane = ops_lane_index(code), number = ops_register(code);
  part_reader p = begin_parts(c, from, OPS_CONTRACT_MOST_PARTS);
  atlas_operand at = atlas_reg(p.at);
  if (parts % OPS_CONTRACT_MOST_PARTS != 0) p.number = number, p.parts = parts;
  atlas_emit(code->builder, ATLAS_OP_div, type, 3, atlas_reg(number), atlas_reg(lane), size);
  atlas_emit(code->builder, ATLAS_OP_mul, type, 3, atlas_reg(number), atlas_reg(number),
             atlas_int_const(type, OPS_CONTRACT_MOST_PARTS));
  atlas_emit(code->builder, ATLAS_OP_rem, type, 3, at, atlas_reg(lane), size);
  atlas_emit(code->builder, ATLAS_OP_mad, type, 4, at, atlas_reg(number), size, at);
  uint16_t sum = ops_fold_aligned(&p.fold, 0, p.count, next_part, &p);
  atlas_emit(code->builder, ATLAS_OP_stg, (atlas_type)c->sum_type, 2,
             atlas_mem_reg(ops_buffer_of(code, c->partial), lane, 0), atlas_reg(sum));
}

hg_status ops_contract_fold_groups(contract *c) {
  uint32_t from = c->partial;
  uint64_t parts = c->parts;
  c->parts = (parts + OPS_CONTRACT_MOST_PARTS - 1) / OPS_CONTRACT_MOST_PARTS;
  c->terms.space.size[AT_PART] = c->parts;
  HG_TRY(ops_reads(&c->terms, from));
  HG_TRY(ops_contract_partials(c));
  HG_TRY(ops_code_begin_step(&c->code, &c->terms, "contract_groups", "contract parts"));
  c->code.partials[c->code.partial_count++] = c->partial;
  c->code.index_type = ops_contract_index_type(c);
  c->code.step->lanes = c->parts * c->batch * c->m * c->n;
  write_groups(c, from, parts);
  return ops_code_end(&c->code);
}

/* ---- the last step ----------------------------------------------------------------------------------------------- */

static void write_program(contract *c, const contract_results *results) {
  ops_code *code = &c->code;
  ops_form lane = {.factor = {[AT_BATCH] = (int64_t)(c->m * c->n), [AT_M] = (int64_t)c->n, [AT_N] = 1}};
  part_reader p = begin_parts(c, c->partial, (uint32_t)c->parts);
  p.is_lane = 1;
  atlas_emit2(code->builder, ATLAS_OP_cvt, code->index_type, ATLAS_u64, atlas_reg(p.at), atlas_reg(ATLAS_REG_LANE));
  ops_split_range(code, p.at, AT_BATCH, AT_N + 1);
  uint16_t sum = ops_fold_aligned(&p.fold, 0, p.count, next_part, &p);
  code->lane_form = &lane;
  ops_contract_put(c, results, sum);
  code->lane_form = NULL;
}

hg_status ops_contract_fold(contract *c) {
  contract_results results;
  HG_TRY(ops_reads(&c->terms, c->partial));
  HG_TRY(ops_contract_results(c, &results));
  if (c->reached != 0) { /* it is loaded, so its inputs are not computed again */
    results.bound = c->reached;
    ops_term_at(&c->terms, c->reached)->kind = TERM_BOUND;
    ops_term_at(&c->terms, c->reached)->input_count = 0;
  }
  HG_TRY(ops_code_begin_step(&c->code, &c->terms, "contract_parts", "contract parts"));
  c->code.index_type = ops_contract_index_type(c);
  c->code.step->lanes = c->batch * c->m * c->n;
  write_program(c, &results);
  return ops_code_end(&c->code);
}
