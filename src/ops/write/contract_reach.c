/* contract_reach.c - how much of the epilogue of a contraction a fast kernel computes in the same launch: a bias added
 * to each row, relu or gelu_tanh, and the rounding to 16 bits before or after these, as long as nothing else reads the
 * value before. The kernel rounds once, at the end. */
#include "ops/write/contract_tiles.h"

/* The only term that reads it, once; 0: there are several, or it is a result itself. */
static term_id only_reader(const contract *c, const contract_results *results, term_id of) {
  term_id reader = 0;
  for (uint32_t i = 0; i < c->group->result_count; i++)
    if (results->roots[i] == of) return 0;
  for (uint32_t id = 1; id <= c->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&c->terms, id);
    for (uint32_t i = 0; i < term->input_count; i++) {
      if (term->input[i] != of) continue;
      if (reader != 0) return 0;
      reader = id;
    }
  }
  return reader;
}

static int is_rounding(const contract *c, const ops_term *term) {
  return term->kind == TERM_POINTWISE && term->op == ATLAS_OP_cvt && c->type == ATLAS_f32 && c->a.type != ATLAS_f32 &&
         term->type == c->a.type;
}

/* 1 if element n of what is loaded belongs to column n of the result. */
static int is_row(const contract *c, const ops_term *term) {
  if (term->kind != TERM_LOAD || c->batch != 1) return 0;
  for (uint32_t i = 0; i < c->terms.variable_count; i++) {
    if (i < c->terms.space.rank && c->terms.space.size[i] == 1) continue;
    if (term->form.factor[i] != (i == AT_N)) return 0;
  }
  return 1;
}

/* A 16-bit bias that is widened where it is read. */
static const ops_term *bias_as_it_lies(const contract *c, term_id id) {
  const ops_term *term = ops_term_at(&c->terms, id);
  int is_widened = term->kind == TERM_POINTWISE && term->op == ATLAS_OP_cvt && term->type == ATLAS_f32;
  return is_widened ? ops_term_at(&c->terms, term->input[0]) : term;
}

/* The next stage after the last one, in `next`; 0: there is none. */
static int follow(const contract *c, const contract_results *results, const contract_reach *last,
                  contract_reach *next) {
  term_id reader = only_reader(c, results, last->term);
  if (reader == 0) return 0;
  const ops_term *term = ops_term_at(&c->terms, reader);
  *next = *last;
  next->term = reader;
  next->type = term->type;
  if (is_rounding(c, term)) return last->type == ATLAS_f32;
  if (term->kind != TERM_POINTWISE || term->type != last->type || !atlas_is_float((atlas_type)term->type)) return 0;
  if (term->op == ATLAS_OP_add && last->epilogue == 0) {
    const ops_term *bias = bias_as_it_lies(c, term->input[term->input[0] == last->term]);
    next->epilogue = HG_WITH_BIAS;
    next->bias_type = bias->type;
    next->bias_storage = bias->storage;
    next->bias_first = bias->form.constant;
    return is_row(c, bias) && (bias->type == term->type || bias->type == c->a.type);
  }
  if ((last->epilogue & (HG_WITH_RELU | HG_WITH_GELU_TANH)) != 0) return 0;
  next->epilogue |= term->op == ATLAS_OP_relu ? HG_WITH_RELU : HG_WITH_GELU_TANH;
  return term->op == ATLAS_OP_relu || term->op == ATLAS_OP_gelu_tanh;
}

uint32_t ops_contract_reach(const contract *c, const contract_results *results, int is_fast,
                            contract_reach stages[CONTRACT_MOST_STAGES]) {
  uint32_t count = 1;
  stages[0] = (contract_reach){.term = results->bound, .type = c->type};
  while (is_fast && count < CONTRACT_MOST_STAGES && follow(c, results, &stages[count - 1], &stages[count])) count++;
  return count;
}
