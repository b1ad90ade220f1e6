/* contract_native.c - contractions for which a backend has a native kernel. The step's program has that kernel's
 * parameters and computes nothing. */
#include "ops/write/contract_tiles.h"

#include "atlas/tables.h"

#include <stdio.h>

enum { SLOT_A, SLOT_B, SLOT_C, SLOT_BIAS }; /* symbols of hg_contraction, counted from its `first` */
#define NO_STORAGE UINT32_MAX

static uint64_t bytes_of(int64_t elements, uint8_t type) { return (uint64_t)elements * atlas_bytes((atlas_type)type); }

static uint8_t numerics_of(const contract *c) {
  const ops_node *node = ops_at(c->group->computation, c->node);
  return ops_numerics_for((atlas_type)c->a.type, node->numerics | c->group->plan->target.numerics);
}

/* Everything except where C lies. */
static void describe(const contract *c, hg_contraction *out) {
  memset(out, 0, sizeof *out); /* with padding, since kernels are found again by these bytes */
  uint8_t numerics = c->group->plan->for_gpu ? numerics_of(c) : 0;
  out->is_fast = (numerics & HG_NUMERICS_FAST) != 0;
  out->is_tf32 = (numerics & HG_NUMERICS_TF32) != 0;
  out->a_type = c->a.type, out->b_type = c->b.type, out->type = c->type;
  out->batch = c->batch, out->m = c->m, out->n = c->n, out->k = c->k;
  const hg_axis *a[3] = {&c->a.batch_axis, &c->a.axis, &c->a.k_axis};
  const hg_axis *b[3] = {&c->b.batch_axis, &c->b.k_axis, &c->b.axis};
  for (int i = 0; i < 3; i++) {
    out->a_stride[i] = a[i]->stride[0], out->b_stride[i] = b[i]->stride[0];
    if (a[i]->count > 1) out->a_axis[i] = *a[i];
    if (b[i]->count > 1) out->b_axis[i] = *b[i];
  }
  out->first[SLOT_A] = bytes_of(c->a.constant, c->a.type);
  out->first[SLOT_B] = bytes_of(c->b.constant, c->b.type);
}

/* 1 if a result can hold values of this type, so that the epilogue is computed in place. Not over an input, whose old
 * elements the epilogue may read. */
static int can_hold(const contract *c, const contract_results *results, uint8_t type, uint32_t i) {
  uint32_t storage = c->group->storage_of[c->group->results[i] - 1] - 1;
  return ops_at(c->group->computation, c->group->results[i])->type == type &&
         !ops_is_over_input(c->group->plan, storage) && ops_contract_is_dense(c, &results->places[i]);
}

/* What the kernel computes, and whether that is the final result as it is stored. */
typedef struct native_contraction {
  hg_contraction what;
  contract_reach reach;
  int is_result;
  uint32_t storages[4]; /* by slot */
} native_contraction;

/* C is the result as it is stored; or an epilogue follows, and C lies in one of the results or in a temporary. */
static void place_result(const contract *c, const contract_results *results, native_contraction *o) {
  const ops_group *group = c->group;
  hg_contraction *out = &o->what;
  uint32_t *storage = &o->storages[SLOT_C];
  value_id result = group->results[0];
  o->is_result = group->result_count == 1 && results->roots[0] == o->reach.term;
  for (uint32_t i = c->terms.space.rank; i < c->terms.variable_count; i++)
    if (results->places[0].factor[i] != 0) o->is_result = 0; /* an axis of it has no stride */
  if (o->is_result) {
    const ops_form *form = &results->places[0];
    out->type = ops_at(c->group->computation, result)->type;
    for (int i = 0; i < 3; i++) out->c_stride[i] = form->factor[i];
    out->first[SLOT_C] = bytes_of(form->constant, out->type);
    *storage = group->storage_of[result - 1] - 1;
    return;
  }
  out->type = o->reach.term == results->bound ? c->sum_type : o->reach.type;
  out->first[SLOT_C] = 0;
  out->c_stride[0] = (int64_t)(c->m * c->n), out->c_stride[1] = (int64_t)c->n, out->c_stride[2] = 1;
  *storage = NO_STORAGE;
  for (uint32_t i = 0; i < group->result_count && *storage == NO_STORAGE; i++)
    if (can_hold(c, results, out->type, i)) *storage = group->storage_of[group->results[i] - 1] - 1;
}

/* The longest of the possible epilogues that the backend has a kernel for; UINT64_MAX: it has none. */
static uint64_t find_kernel(const contract *c, const contract_results *results, native_contraction *o,
                            const char **why) {
  const ops_target *target = &c->group->plan->target;
  contract_reach stages[CONTRACT_MOST_STAGES];
  uint64_t bytes = UINT64_MAX;
  describe(c, &o->what);
  for (uint32_t i = ops_contract_reach(c, results, o->what.is_fast, stages); i-- > 0 && bytes == UINT64_MAX;) {
    o->reach = stages[i];
    o->what.epilogue = stages[i].epilogue;
    o->storages[SLOT_BIAS] = (stages[i].epilogue & HG_WITH_BIAS) != 0 ? stages[i].bias_storage : NO_STORAGE;
    place_result(c, results, o);
    o->what.first[SLOT_BIAS] = bytes_of(stages[i].bias_first, o->what.type);
    int takes_bias = stages[i].bias_type == o->what.type && o->storages[SLOT_BIAS] != o->storages[SLOT_C];
    if (o->storages[SLOT_BIAS] == NO_STORAGE || takes_bias)
      bytes = target->contract_scratch(target->device, &o->what, why);
  }
  return bytes;
}

/* The slots have the order that hg_compile_input defines; `scratch` NO_STORAGE: none is needed. */
static hg_status write_program(const contract *c, const native_contraction *o, uint32_t scratch, ops_step *step) {
  const hg_contraction *what = &o->what;
  const struct {
    const char *name;
    uint32_t storage;
    uint8_t type, access;
  } slots[] = {{"a", o->storages[SLOT_A], what->a_type, ATLAS_IN},
               {"b", o->storages[SLOT_B], what->b_type, ATLAS_IN},
               {"c", o->storages[SLOT_C], what->type, ATLAS_OUT},
               {"scratch", scratch, ATLAS_u8, ATLAS_INOUT},
               {"bias", o->storages[SLOT_BIAS], what->type, ATLAS_IN}};
  atlas_builder *builder = NULL;
  HG_TRY(ops_begin_program(c->group->plan, "contraction", &builder));
  for (uint32_t i = 0; i < sizeof slots / sizeof *slots; i++) {
    if (slots[i].storage == NO_STORAGE) continue;
    uint16_t slot =
        atlas_builder_buffer(builder, slots[i].name, (atlas_type)slots[i].type, (atlas_access)slots[i].access);
    step->bindings[step->binding_count++] = (ops_binding){.slot = slot, .storage = slots[i].storage};
  }
  atlas_emit(builder, ATLAS_OP_exit, ATLAS_NONE, 0);
  return ops_finish_program(c->group->plan, builder, step);
}

static hg_status write_step(const contract *c, const native_contraction *o, uint32_t scratch, ops_step *step) {
  const hg_allocator *allocator = &c->group->plan->allocator;
  step->contraction = hg_allocate(allocator, 1, sizeof o->what);
  if (step->contraction == NULL) return hg_fail_memory("a launch", sizeof o->what);
  memcpy(step->contraction, &o->what, sizeof o->what);
  hg_status status = write_program(c, o, scratch, step);
  if (status == HG_OK) return HG_OK;
  hg_release(allocator, step->contraction);
  step->contraction = NULL;
  return status;
}

static void say_fast(const native_contraction *o, ops_step *step) {
  uint8_t epilogue = o->what.epilogue;
  const char *bias = (epilogue & HG_WITH_BIAS) != 0 ? " with the bias" : "";
  const char *join = (epilogue & HG_WITH_BIAS) != 0 ? " and" : " with";
  const char *name = (epilogue & HG_WITH_RELU) != 0 ? " relu" : (epilogue & HG_WITH_GELU_TANH) != 0 ? " gelu_tanh" : "";
  step->is_fast = 1;
  snprintf(step->note, sizeof step->note,
           "by the vendor's library%s%s%s%s, not bit-exact: fast numerics were asked for", bias,
           name[0] != '\0' ? join : "", name, o->what.is_tf32 ? ", of TF32" : "");
}

hg_status ops_contract_native(contract *c, const contract_results *results, ops_step *step, int *is_done) {
  ops_plan *plan = c->group->plan;
  native_contraction o = {.storages = {c->a.storage, c->b.storage}};
  const char *why = "this backend has canonical kernels alone";
  uint32_t scratch = NO_STORAGE;
  uint64_t bytes = plan->target.contract_scratch != NULL ? find_kernel(c, results, &o, &why) : UINT64_MAX;
  *is_done = bytes != UINT64_MAX;
  if (numerics_of(c) != 0 && (!*is_done || !o.what.is_fast))
    snprintf(step->note, sizeof step->note, "bit-exact: fast numerics were asked for, but %s", why);
  if (!*is_done) return HG_OK;
  c->parts = 1;
  if (o.reach.term != results->bound) {
    c->reached = o.reach.term;
    c->type = c->sum_type = o.what.type;
  }
  c->partial = o.storages[SLOT_C];
  if (c->partial == NO_STORAGE) HG_TRY(ops_contract_partials(c));
  o.storages[SLOT_C] = c->partial;
  if (bytes > 0) HG_TRY(ops_add_temporary(plan, ATLAS_u8, bytes, &scratch));
  HG_TRY(write_step(c, &o, scratch, step));
  step->lanes = 1;
  step->kind = "contract";
  step->operations = 2 * c->batch * c->m * c->n * c->k;
  if (o.what.is_fast) say_fast(&o, step);
  return o.is_result ? HG_OK : ops_contract_fold(c);
}
