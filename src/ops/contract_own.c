/* contract_own.c - contractions that a backend has a kernel of its own for. The step's program has the parameters of
 * that and computes nothing. */
#include "ops/contract_tiles.h"

#include "atlas/tables.h"

#include <stdio.h>

enum { SLOT_A, SLOT_B, SLOT_C, SLOT_SCRATCH };

static uint64_t bytes_of(int64_t elements, uint8_t type) { return (uint64_t)elements * atlas_bytes((atlas_type)type); }

/* All but where C lies. */
static void describe(const contract *c, hg_contraction *out) {
  memset(out, 0, sizeof *out); /* padding, too: kernels are found again by its bytes */
  out->is_fast = c->group->plan->target.is_fast && c->group->plan->for_gpu;
  out->a_type = c->a.type, out->b_type = c->b.type, out->type = c->type;
  out->batch = c->batch, out->m = c->m, out->n = c->n, out->k = c->k;
  const int64_t a[3] = {c->a.batch_stride, c->a.stride, c->a.k_stride};
  const int64_t b[3] = {c->b.batch_stride, c->b.k_stride, c->b.stride};
  memcpy(out->a_stride, a, sizeof a);
  memcpy(out->b_stride, b, sizeof b);
  out->first[SLOT_A] = bytes_of(c->a.constant, c->a.type);
  out->first[SLOT_B] = bytes_of(c->b.constant, c->b.type);
}

/* Whether what is stored is the contraction, rounded once to its operands' 16-bit type: a fast kernel does that. */
static int is_rounded(const contract *c, const contract_results *results) {
  const ops_term *term = ops_term_at(&c->terms, results->roots[0]);
  return term->kind == TERM_POINTWISE && term->op == ATLAS_OP_cvt && term->input[0] == results->bound &&
         c->type == ATLAS_f32 && term->type == c->a.type && term->type != c->type;
}

/* A result that sums can lie in: what follows is then computed in place. Not over an input, whose old elements may be
 * read by what follows. */
static int can_hold_sums(const contract *c, const contract_results *results, uint32_t i) {
  uint32_t storage = c->group->storage_of[c->group->results[i] - 1] - 1;
  return ops_at(c->group->computation, c->group->results[i])->type == c->sum_type &&
         !ops_is_over_input(c->group->plan, storage) && ops_contract_is_dense(c, &results->places[i]);
}

#define A_TEMPORARY UINT32_MAX

/* C is the result as it is stored; 0: something follows, so sums lie in one of the results, or a temporary. */
static int place_result(const contract *c, const contract_results *results, hg_contraction *out, uint32_t *storage) {
  const ops_group *group = c->group;
  value_id result = group->results[0];
  if (group->result_count == 1 &&
      (results->roots[0] == results->bound || (out->is_fast && is_rounded(c, results)))) {
    const ops_form *form = &results->places[0];
    out->type = ops_at(c->group->computation, result)->type;
    for (int i = 0; i < 3; i++) out->c_stride[i] = form->factor[i];
    out->first[SLOT_C] = bytes_of(form->constant, out->type);
    *storage = group->storage_of[result - 1] - 1;
    return 1;
  }
  out->type = c->sum_type;
  out->c_stride[0] = (int64_t)(c->m * c->n), out->c_stride[1] = (int64_t)c->n, out->c_stride[2] = 1;
  *storage = A_TEMPORARY;
  for (uint32_t i = 0; i < group->result_count && *storage == A_TEMPORARY; i++)
    if (can_hold_sums(c, results, i)) *storage = group->storage_of[group->results[i] - 1] - 1;
  return 0;
}

static hg_status write_program(const contract *c, const hg_contraction *what, const uint32_t storages[4],
                               uint32_t count, ops_step *step) {
  static const char *const names[4] = {"a", "b", "c", "scratch"};
  static const atlas_access access[4] = {ATLAS_IN, ATLAS_IN, ATLAS_OUT, ATLAS_INOUT};
  const uint8_t types[4] = {what->a_type, what->b_type, what->type, ATLAS_u8};
  atlas_builder *builder = NULL;
  HG_TRY(atlas_builder_create(&c->group->plan->allocator, "contraction", &builder));
  for (uint32_t i = 0; i < count; i++) {
    uint16_t slot = atlas_builder_buffer(builder, names[i], (atlas_type)types[i], access[i]);
    step->bindings[step->binding_count++] = (ops_binding){.slot = slot, .storage = storages[i]};
  }
  atlas_emit(builder, ATLAS_OP_exit, ATLAS_NONE, 0);
  return ops_finish_program(c->group->plan, builder, step);
}

hg_status ops_contract_own(contract *c, const contract_results *results, ops_step *steps, int *is_done) {
  ops_plan *plan = c->group->plan;
  hg_contraction what;
  uint32_t storages[4] = {c->a.storage, c->b.storage, 0, 0};
  *is_done = 0;
  if (plan->target.contract_scratch == NULL) return HG_OK;
  describe(c, &what);
  int is_result = place_result(c, results, &what, &c->partial);
  uint64_t bytes = plan->target.contract_scratch(plan->target.device, &what);
  if (bytes == UINT64_MAX) return HG_OK;
  c->parts = 1;
  if (c->partial == A_TEMPORARY) HG_TRY(ops_contract_partials(c));
  storages[SLOT_C] = c->partial;
  if (bytes > 0) HG_TRY(ops_add_temporary(plan, ATLAS_u8, bytes, &storages[SLOT_SCRATCH]));
  ops_step *step = &steps[0];
  step->contraction = hg_allocate(&plan->allocator, 1, sizeof what);
  if (step->contraction == NULL) return hg_fail_memory("a launch", sizeof what);
  memcpy(step->contraction, &what, sizeof what);
  hg_status status = write_program(c, &what, storages, bytes > 0 ? 4 : 3, step);
  if (status != HG_OK) {
    hg_release(&plan->allocator, step->contraction);
    step->contraction = NULL;
    return status;
  }
  step->lanes = 1;
  step->kind = "contract";
  step->operations = 2 * c->batch * c->m * c->n * c->k;
  *is_done = 1;
  step->is_fast = what.is_fast;
  if (what.is_fast)
    snprintf(step->note, sizeof step->note, "by the vendor's library, not bit-exact: fast numerics were asked for");
  return is_result ? HG_OK : ops_contract_fold(c, &steps[1]);
}
