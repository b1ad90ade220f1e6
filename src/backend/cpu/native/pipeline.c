/* pipeline.c - the driver of machine code: which versions a program has, and how each is made. */
#include "backend/cpu/native/pipeline.h"
#include "backend/cpu/native/vector_passes.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "base/error.h"

/* ---- passes ------------------------------------------------------------------------------------------------------ */

typedef enum stage { STAGE_GIVEN, STAGE_REGIONS, STAGE_ROWS, STAGE_RUN, STAGE_BLOCK, STAGE_STACK, STAGE_PLACED } stage;
typedef enum ranges { RANGES_NONE, RANGES_LOSES, RANGES_LIVE, RANGES_MAKES } ranges;

static const struct {
  const char *name;
  hg_status (*run)(native_build *b, hg_vector *v, uint32_t *fired);
  stage stage;
  ranges ranges;
} passes[NATIVE_PASSES] = {
#define PASS(id, stage, ranges, purpose) {#id, hg_native_pass_##id, STAGE_##stage, RANGES_##ranges},
#include "backend/cpu/native/passes.def"
#undef PASS
};

static hg_status run_stage(native_build *b, stage which, hg_vector *v) {
  b->vector = v;
  for (int k = 0; k < NATIVE_PASSES; k++) {
    if (passes[k].stage != which) continue;
    HG_TRY(passes[k].run(b, v, &b->fired[k]));
#ifdef HG_CHECK_PASSES
    HG_TRY(hg_native_check(b, v, passes[k].ranges >= RANGES_LIVE));
#endif
    const native_visitor *visitor = b->visitor;
    if (visitor == NULL || visitor->after == NULL) continue;
    HG_TRY(visitor->after(visitor->context, b, v, passes[k].name, passes[k].ranges >= RANGES_LIVE));
  }
  return HG_OK;
}

static hg_status copy_program(const native_build *b, const hg_vector *from, hg_vector *to) {
  hg_vector_release(to);
  *to = *from;
  to->allocator = b->allocator;
  to->insns = (hg_array){.element_size = sizeof(vector_insn)};
  to->regs = (hg_array){.element_size = sizeof(vector_reg)};
  if (hg_array_append(&b->allocator, &to->insns, from->insns.data, from->insns.count) != NULL &&
      hg_array_append(&b->allocator, &to->regs, from->regs.data, from->regs.count) != NULL)
    return HG_OK;
  return hg_fail_memory("machine code", from->insns.count * sizeof(vector_insn));
}

/* ---- whole blocks ------------------------------------------------------------------------------------------------ */

static hg_status emit_block(native_build *b) {
  for (b->first_part = 0; b->first_part < b->vector->insns.count; b->first_part++) {
    const vector_insn *insn = vector_insn_at(b->vector, b->first_part);
    if (insn->op == VECTOR_LABEL || vector_is_jump(insn->op)) break;
  }
  HG_TRY(hg_native_plan(b));
  return b->target->emit(b);
}

/* `plain`: the program before stage PLACED; `own`: the program after it. */
static hg_status write_block(native_build *b, const hg_vector *vector, hg_vector *plain, hg_vector *own) {
  b->known.count = 0;
  HG_TRY(copy_program(b, vector, plain));
  HG_TRY(run_stage(b, STAGE_BLOCK, plain));
  HG_TRY(copy_program(b, plain, own));
  return run_stage(b, STAGE_PLACED, own);
}

/* Makes the version for whole blocks; without NATIVE_TAILs if they make it impossible. */
static hg_status make_block(native_build *b, const hg_vector *vector, hg_vector *plain, hg_vector *own) {
  const uint32_t *block = native_block(b->program);
  hg_status status = HG_UNSUPPORTED;
  if (!hg_native_may_be_straight(b, vector)) return status;
  b->slices = block[0] * block[1] * block[2] / b->target->lanes;
  int had_tails = 1;
  for (b->has_tails = 1; had_tails && status == HG_UNSUPPORTED; b->has_tails = 0) {
    status = write_block(b, vector, plain, own);
    had_tails = b->has_tails;
  }
  return status == HG_OK ? emit_block(b) : status;
}

/* Makes the version for stacks, from `plain` of make_block. */
static hg_status make_stack(native_build *b, const native_build *single, const hg_vector *plain, hg_vector *own) {
  b->slices = single->slices;
  HG_TRY(copy_program(b, plain, own));
  if (hg_array_append(&b->allocator, &b->known, single->known.data, single->known.count) == NULL)
    return hg_fail_memory("machine code", single->known.count * sizeof(uint64_t));
  HG_TRY(run_stage(b, STAGE_STACK, own));
  HG_TRY(run_stage(b, STAGE_PLACED, own));
  return emit_block(b);
}

/* HG_UNSUPPORTED is no failure here: a program need not have these versions. */
static hg_status make_blocks(native_made *made, const hg_vector *vector) {
  native_build *block = &made->b[NATIVE_FOR_BLOCK], *stack = &made->b[NATIVE_FOR_STACK];
  hg_vector plain = {.allocator = block->allocator};
  hg_status status = make_block(block, vector, &plain, &made->own[NATIVE_FOR_BLOCK]);
  if (status == HG_OK) status = make_stack(stack, block, &plain, &made->own[NATIVE_FOR_STACK]);
  hg_vector_release(&plain);
  return status;
}

/* ---- all launches ------------------------------------------------------------------------------------------------ */

/* 1 if the data may make blocks leave straight-line code for other code. */
static int leaves_often(const hg_vector *whole) {
  for (uint32_t i = 0; i < whole->insns.count; i++)
    if (vector_insn_at(whole, i)->op == NATIVE_BAIL_IF) return 1;
  return 0;
}

/* Large launches store past the caches, except those of compute-bound programs, unless all launches are to do so. */
static void choose_streams(native_build *b, int may_stream, uint64_t stream_bytes) {
  for (uint32_t i = 0; i < b->vector->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(b->vector, i);
    if (!(insn->flags & VECTOR_LANE)) continue;
    b->moved_bytes += atlas_bytes((atlas_type)insn->type);
    if (hg_native_may_pass_caches(insn)) b->stored_bytes += atlas_bytes((atlas_type)insn->type);
  }
  uint64_t most = (uint64_t)b->stored_bytes * (stream_bytes > 0 ? CPU_STREAM_INSNS_A_BYTE : UINT32_MAX);
  int is_busy = b->vector->insns.count > most;
  b->streams = may_stream && !is_busy && !b->vector->loses_lanes && b->steps.count == 1;
}

/* A program of one region. */
static hg_status make_region(native_build *b, hg_vector *own) {
  if (!b->target->has_invariants || !hg_native_has_invariants(b->vector)) return HG_OK;
  HG_TRY(copy_program(b, b->vector, own));
  return run_stage(b, STAGE_RUN, own);
}

/* The version for launches of lanes in rows. HG_UNSUPPORTED is no failure: a program need not have it. */
static hg_status make_rows(native_made *made, int may_stream, uint64_t stream_bytes) {
  const hg_vector *vector = made->b[NATIVE_FOR_ALL].vector;
  native_build *b = &made->b[NATIVE_FOR_ROWS];
  hg_vector *own = &made->own[NATIVE_FOR_ROWS];
  if (!b->target->has_invariants || !hg_native_divides_lanes(vector)) return HG_OK;
  HG_TRY(copy_program(b, vector, own));
  hg_status status = run_stage(b, STAGE_ROWS, own);
  if (status != HG_OK) return status == HG_UNSUPPORTED ? HG_OK : status;
  if (hg_native_has_invariants(own)) HG_TRY(run_stage(b, STAGE_RUN, own));
  HG_TRY(hg_native_plan(b));
  choose_streams(b, may_stream, stream_bytes);
  return b->target->emit(b);
}

static hg_status make_regions(native_build *b, hg_vector *own) {
  const hg_vector *given = b->vector;
  if (!given->has_block_ops && !given->sees_blocks) return make_region(b, own);
  HG_TRY(copy_program(b, given, own));
  hg_status status = run_stage(b, STAGE_REGIONS, own);
  if (status != HG_UNSUPPORTED) return status;
  hg_vector_release(own);
  b->vector = given;
  return HG_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static hg_status find_quotients(native_build *b, const hg_vector **vector, hg_vector *divided) {
  if (!b->target->has_quotients || !hg_native_has_divisions(*vector)) return HG_OK;
  HG_TRY(copy_program(b, *vector, divided));
  *vector = divided;
  return run_stage(b, STAGE_GIVEN, divided);
}

hg_status hg_native_make(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                         const hg_vector *vector, int may_stream, uint64_t stream_bytes, const native_visitor *visitor,
                         native_made *made) {
  native_build *all = &made->b[NATIVE_FOR_ALL];
  made->divided = (hg_vector){.allocator = *allocator};
  for (int k = 0; k < NATIVE_VERSIONS; k++) {
    made->own[k] = made->divided;
    made->b[k] = (native_build){.allocator = *allocator, .target = target, .program = program, .shape = {1, 1},
                                .visitor = visitor, .steps.element_size = sizeof(native_step),
                                .known.element_size = sizeof(uint64_t)};
  }
  HG_TRY(find_quotients(all, &vector, &made->divided));
  hg_status status = make_blocks(made, vector);
  if (status != HG_OK && status != HG_UNSUPPORTED) return status;
  all->vector = vector;
  status = make_rows(made, may_stream, stream_bytes);
  if (status != HG_OK && status != HG_UNSUPPORTED) return status;
  all->has_straight = made->b[NATIVE_FOR_BLOCK].code != NULL && !leaves_often(&made->own[NATIVE_FOR_BLOCK]);
  HG_TRY(make_regions(all, &made->own[NATIVE_FOR_ALL]));
  HG_TRY(hg_native_plan(all));
  choose_streams(all, may_stream, stream_bytes);
  return target->emit(all);
}

void hg_native_made_release(native_made *made) {
  for (int k = 0; k < NATIVE_VERSIONS; k++) {
    native_build *b = &made->b[k];
    hg_release(&b->allocator, b->locations);
    hg_release(&b->allocator, b->code);
    hg_array_release(&b->allocator, &b->steps);
    hg_array_release(&b->allocator, &b->known);
    hg_vector_release(&made->own[k]);
  }
  hg_vector_release(&made->divided);
}
