/* native.c - kernels of machine code: made from a vector program, and released. */
#include "backend/cpu/native/native_kernel.h"

#include "base/error.h"

#include <string.h>

/* ---- [x + lane] -------------------------------------------------------------------------------------------------- */

static hg_status note_lane_access(hg_native *native, const vector_insn *insn, int may_stream) {
  native_lane_access *known = native->lane_accesses.data;
  native_lane_access now = {insn->symbol, (uint8_t)may_stream, (int64_t)insn->bits};
  for (size_t i = 0; i < native->lane_accesses.count; i++) {
    if (known[i].symbol != now.symbol || known[i].displacement != now.displacement) continue;
    known[i].may_stream |= now.may_stream;
    return HG_OK;
  }
  if (hg_array_append(&native->allocator, &native->lane_accesses, &now, 1) == NULL)
    return hg_fail_memory("machine code", sizeof now);
  return HG_OK;
}

/* A program of more instructions than that a byte stored is compute-bound: how it stores does not matter, unless all
 * launches are to store past the caches. */
enum { STREAM_INSNS_A_BYTE = 12 };

/* Notes the accesses [x + lane + d], and how many bytes a lane stores by them: large launches write past the caches. */
static hg_status note_accesses(hg_native *native) {
  for (uint32_t i = 0; i < native->vector->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(native->vector, i);
    if (!(insn->flags & VECTOR_LANE)) continue;
    uint32_t bytes = atlas_bytes((atlas_type)insn->type);
    int is_store = (atlas_op_flags(insn->op) & ATLAS_STORE) != 0;
    int may_stream = is_store && bytes >= 4 && insn->mask == VECTOR_ALL;
    HG_TRY(note_lane_access(native, insn, may_stream));
    native->moved_bytes += bytes;
    if (may_stream) native->stored_bytes += bytes;
  }
  uint64_t most = (uint64_t)native->stored_bytes * (native->stream_bytes > 0 ? STREAM_INSNS_A_BYTE : UINT32_MAX);
  int is_busy = native->vector->insns.count > most;
  native->streams = !is_busy && !native->vector->loses_lanes && native->steps.count == 1;
  return HG_OK;
}

/* Measured on the benchmark's programs: a vector instruction takes about that long, masked ones that seldom run
 * included; trip counts are seldom known. */
enum { VECTOR_INSN_PS = 100, LOOP_TRIPS = 16 };

static uint32_t estimate_lane_ps(const hg_vector *v, const native_target *target) {
  uint64_t insns = v->insns.count;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (vector_is_jump(insn->op) && insn->target < i) insns += (uint64_t)LOOP_TRIPS * (i - insn->target);
  }
  uint64_t ps = insns * VECTOR_INSN_PS / target->lanes;
  return ps < INT32_MAX ? (uint32_t)ps : INT32_MAX;
}

/* ---- making kernels ---------------------------------------------------------------------------------------------- */

static void release_build(native_build *b) {
  hg_release(&b->allocator, b->locations);
  hg_release(&b->allocator, b->code);
  hg_array_release(&b->allocator, &b->steps);
  hg_array_release(&b->allocator, &b->known);
}

/* Registers for code that is no instruction of the program. */
static hg_status add_temporaries(native_build *b, hg_vector *own) {
  static const uint8_t types[] = {ATLAS_f32, ATLAS_u32, ATLAS_i32};
  b->temporaries = (uint32_t)own->regs.count;
  for (size_t k = 0; k < 2 * sizeof types; k++) {
    const vector_reg reg = {.type = types[k / 2], .kind = VECTOR_VARIES, .first = VECTOR_NONE};
    if (hg_array_append(&own->allocator, &own->regs, &reg, 1) == NULL)
      return hg_fail_memory("machine code", sizeof reg);
  }
  return HG_OK;
}

/* Cuts the program into regions, if it has more than one, and gives each registers of its own. */
static hg_status cut_into_regions(native_build *b, hg_vector *own) {
  const hg_vector *given = b->vector;
  hg_vector unrolled = {.allocator = b->allocator}, added = unrolled, hoisted = unrolled;
  hg_status status = hg_native_unroll(b->vector, &unrolled);
  if (unrolled.insns.count > 0) b->vector = &unrolled;
  if (status == HG_OK) status = hg_native_sums(b->vector, &added);
  if (status == HG_OK) status = hg_native_hoist(&added, &hoisted);
  b->vector = &hoisted;
  int has_regions = hoisted.has_block_ops;
  if (status == HG_OK && has_regions) status = hg_native_find_steps(b);
  if (status == HG_OK && has_regions) status = hg_native_split(b->vector, &b->steps, &b->allocator, own);
  if (status == HG_OK && has_regions) status = hg_native_chains(own, b->target->vector_count);
  hg_vector_release(&unrolled);
  hg_vector_release(&added);
  hg_vector_release(&hoisted);
  b->vector = has_regions ? own : given;
  return status == HG_OK && has_regions ? add_temporaries(b, own) : status;
}

/* Plans and writes; the caller owns what is in `b` and `own`, whatever the result. */
static hg_status build_code(native_build *b, hg_native *native, hg_vector *own) {
  if (b->vector->has_block_ops || b->vector->sees_blocks) HG_TRY(cut_into_regions(b, own));
  if (native != NULL) native->vector = b->vector;
  HG_TRY(hg_native_plan(b));
  if (native != NULL) {
    native->steps = b->steps; /* lent */
    HG_TRY(note_accesses(native));
    b->streams = native->streams;
  }
  return b->target->emit(b);
}

static native_build init_build(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                          const hg_vector *vector) {
  return (native_build){.allocator = *allocator, .target = target, .program = program, .vector = vector,
                        .steps.element_size = sizeof(native_step), .known.element_size = sizeof(uint64_t)};
}

static int has_loops(const native_build *b) {
  for (size_t k = 0; k < b->steps.count; k++) {
    const native_step *step = (const native_step *)b->steps.data + k;
    for (uint32_t i = step->first; i < step->end && step->kind == NATIVE_REGION; i++) {
      uint16_t op = vector_insn_at(b->vector, i)->op;
      if (vector_is_jump(op) && vector_insn_at(b->vector, i)->target <= i) return 1;
    }
  }
  return 0;
}

static int sees_lanes(const hg_vector *v) {
  for (uint32_t r = 0; r < v->regs.count; r++) {
    const vector_reg *reg = vector_reg_at(v, r);
    if (reg->kind == VECTOR_SPECIAL && reg->bits == ATLAS_REG_LANE && reg->first != VECTOR_NONE) return 1;
  }
  return 0;
}

static hg_status place_code(hg_native *native, native_build *b) {
  HG_TRY(hg_code_place(native->pages, b->code, b->code_bytes, &native->chunk, &native->code));
  native->code_bytes = b->code_bytes;
  native->locations = b->locations;
  native->steps = b->steps;
  native->copies = b->copies;
  native->lane_ps = estimate_lane_ps(native->vector, native->target);
  native->block_entry = b->block_entry;
  native->full_entry = b->full_entry;
  native->full_lanes = b->full_lanes;
  native->coordinate_offset = b->coordinate_offset;
  native->keeps_coordinates = b->keeps_coordinates;
  native->runs_blocks = b->target->runs_blocks && b->steps.count > 1;
  native->has_loops = (uint8_t)has_loops(b);
  native->sees_lanes = (uint8_t)sees_lanes(b->vector);
  native->row_bytes = b->row_bytes;
  native->local_bytes = b->local_bytes;
  native->local_lanes = b->local_lanes;
  native->alive_offset = b->alive_offset;
  b->locations = NULL;
  b->steps = (hg_array){.element_size = sizeof(native_step)};
  hg_code_announce(native->code, native->code_bytes, native->program->name);
  return HG_OK;
}

/* Plans and writes the code for whole blocks that `whole` is; `own`: what it becomes, which is the caller's whatever
 * the result. */
static hg_status emit_whole(native_build *b, const hg_vector *whole, hg_vector *own) {
  hg_vector bounded = {.allocator = b->allocator};
  hg_status status = hg_native_bounds(b, whole, &bounded);
  if (status == HG_OK) status = hg_native_order(b, &bounded);
  if (status == HG_OK) status = hg_native_indices(b->program, &bounded, own);
  hg_vector_release(&bounded);
  HG_TRY(status);
  for (b->first_part = 0; b->first_part < own->insns.count; b->first_part++) {
    const vector_insn *insn = vector_insn_at(own, b->first_part);
    if (insn->op == VECTOR_LABEL || vector_is_jump(insn->op)) break;
  }
  HG_TRY(hg_native_plan(b));
  return b->target->emit(b);
}

/* Code of `vector` for blocks that have all their lanes; HG_UNSUPPORTED where the program does not allow it. `plain`:
 * for build_stack. The caller owns what is in `b`, `plain` and `own`, whatever the result. */
static hg_status build_wide(native_build *b, const hg_vector *vector, hg_vector *plain, hg_vector *own) {
  const uint32_t *block = native_block(b->program), lanes = b->target->lanes;
  if (!vector->has_block_ops || !b->target->runs_blocks) return HG_UNSUPPORTED;
  if (hg_cpu_local_bytes(b->program, vector) > 0) return HG_UNSUPPORTED;
  b->vector = own;
  b->slices = block[0] * block[1] * block[2] / lanes;
  hg_status status = HG_UNSUPPORTED;
  for (int may = 1, has = 1; status == HG_UNSUPPORTED && has && own->insns.count == 0; may = 0) {
    hg_vector_release(plain);
    b->known.count = 0;
    has = may;
    HG_TRY(hg_native_wide(b->program, vector, b->target, &has, plain, &b->known));
    if (plain->insns.count > 0) status = emit_whole(b, plain, own);
  }
  return status;
}

/* The same for several blocks at once, from what build_wide has left in `single` and `plain`. */
static hg_status build_stack(native_build *b, const native_build *single, const hg_vector *plain, hg_vector *own,
                             native_stack_shape *shape) {
  hg_vector stacked = {.allocator = b->allocator};
  b->vector = own;
  b->slices = single->slices;
  hg_status status = hg_native_stack(b, plain, &stacked, shape);
  if (status == HG_OK && shape->x * shape->y == 1) status = HG_UNSUPPORTED;
  if (status == HG_OK && hg_array_append(&b->allocator, &b->known, single->known.data, single->known.count) == NULL)
    status = hg_fail_memory("machine code", single->known.count * sizeof(uint64_t));
  if (status == HG_OK) status = emit_whole(b, &stacked, own);
  hg_vector_release(&stacked);
  return status;
}

/* A kernel of code for whole blocks. */
static hg_native *new_whole(const hg_native *native) {
  const hg_allocator *allocator = &native->allocator;
  hg_native *whole = hg_allocate(allocator, 1, sizeof *whole);
  if (whole == NULL) return NULL;
  *whole = (hg_native){.allocator = *allocator, .target = native->target, .kernels = native->kernels,
                       .pages = native->pages, .program = native->program, .vector = &whole->own, .shape = {1, 1},
                       .lane_accesses.element_size = sizeof(native_lane_access), .own.allocator = *allocator,
                       .divided.allocator = *allocator};
  return whole;
}

static hg_status place_whole(hg_native *whole, native_build *b) {
  HG_TRY(place_code(whole, b));
  whole->slices = b->slices;
  whole->runs_on = b->runs_on;
  whole->full_lanes = b->slices * whole->target->lanes;
  return HG_OK;
}

static hg_status make_stack(hg_native *native, const native_build *single, const hg_vector *plain) {
  hg_native *stack = new_whole(native);
  if (stack == NULL) return hg_fail_memory("a kernel", sizeof *stack);
  native_build b = init_build(&native->allocator, native->target, native->program, single->vector);
  hg_status status = build_stack(&b, single, plain, &stack->own, &stack->shape);
  if (status == HG_OK) status = place_whole(stack, &b);
  release_build(&b);
  if (status == HG_OK) native->stack = stack;
  else hg_native_release(stack);
  return status == HG_UNSUPPORTED ? HG_OK : status;
}

/* 1 if blocks may leave straight-line code to other code for what is in their data. */
static int leaves_often(const hg_vector *whole) {
  for (uint32_t i = 0; i < whole->insns.count; i++)
    if (vector_insn_at(whole, i)->op == NATIVE_RARE) return 1;
  return 0;
}

static hg_status make_wide(hg_native *native, const hg_vector *vector) {
  hg_native *wide = new_whole(native);
  if (wide == NULL) return hg_fail_memory("a kernel", sizeof *wide);
  native_build b = init_build(&native->allocator, native->target, native->program, vector);
  hg_vector plain = {.allocator = native->allocator};
  hg_status status = build_wide(&b, vector, &plain, &wide->own);
  if (status == HG_OK) status = make_stack(native, &b, &plain);
  if (status == HG_OK) status = place_whole(wide, &b);
  hg_vector_release(&plain);
  release_build(&b);
  if (status == HG_OK) native->wide = wide;
  else hg_native_release(wide);
  return status == HG_UNSUPPORTED ? HG_OK : status;
}

/* *vector = what it becomes with NATIVE_QUOTIENTs, in `divided`, if it has any. The caller releases that. */
static hg_status find_quotients(const native_target *target, const hg_allocator *allocator, const hg_vector **vector,
                                hg_vector *divided) {
  hg_vector given = **vector;
  if (!target->has_quotients) return HG_OK;
  given.allocator = *allocator;
  hg_status status = hg_native_quotients(&given, divided);
  if (status == HG_OK && divided->insns.count > 0) *vector = divided;
  return status;
}

hg_status hg_native_compile(hg_code_pages *pages, const native_target *target, const cpu_kernels *kernels,
                            uint64_t stream_bytes, const atlas_program *program, const hg_vector *vector,
                            hg_native **out) {
  const hg_allocator *allocator = &pages->allocator;
  hg_native *native = hg_allocate(allocator, 1, sizeof *native);
  if (native == NULL) return hg_fail_memory("a kernel", sizeof *native);
  *native = (hg_native){.allocator = *allocator, .target = target, .kernels = kernels, .program = program,
                        .lane_accesses.element_size = sizeof(native_lane_access)};
  native->pages = pages;
  native->stream_bytes = stream_bytes;
  native->own.allocator = native->divided.allocator = *allocator;
  hg_status status = find_quotients(target, allocator, &vector, &native->divided);
  native->vector = vector;
  native_build b = init_build(allocator, target, program, vector);
  if (status == HG_OK) status = make_wide(native, vector);
  b.has_wide = native->wide != NULL && !leaves_often(native->wide->vector);
  if (status == HG_OK) status = build_code(&b, native, &native->own);
  native->steps = (hg_array){.element_size = sizeof(native_step)};
  if (status == HG_OK) status = place_code(native, &b);
  release_build(&b);
  if (status == HG_OK) *out = native;
  else hg_native_release(native);
  return status;
}

const char *hg_native_engine(const hg_native *native) { return native->target->engine; }

void hg_native_release(hg_native *native) {
  if (native == NULL) return;
  hg_allocator allocator = native->allocator;
  hg_native_release(native->wide);
  hg_native_release(native->stack);
  hg_code_remove(native->pages, native->chunk);
  hg_release(&allocator, native->locations);
  hg_vector_release(&native->own);
  hg_vector_release(&native->divided);
  hg_array_release(&allocator, &native->steps);
  hg_array_release(&allocator, &native->lane_accesses);
  hg_release(&allocator, native);
}

/* ---- making code to look at -------------------------------------------------------------------------------------- */

static hg_status show(const native_visitor *visitor, const char *version, const native_build *b) {
  return visitor->visit(visitor->context, version, b);
}

static hg_status show_several(const native_build *single, const hg_vector *plain, const native_visitor *visitor) {
  hg_vector own = {.allocator = single->allocator};
  native_stack_shape shape = {0};
  native_build b = init_build(&single->allocator, single->target, single->program, single->vector);
  hg_status status = build_stack(&b, single, plain, &own, &shape);
  if (status == HG_OK) status = show(visitor, "several", &b);
  release_build(&b);
  hg_vector_release(&own);
  return status == HG_UNSUPPORTED ? HG_OK : status;
}

/* The code for blocks that have all their lanes, if there is any: *has. `several`: and for several such blocks. */
static hg_status show_whole(native_build *b, int several, const native_visitor *visitor, int *has, int *leaves) {
  hg_vector plain = {.allocator = b->allocator}, own = plain;
  const hg_vector *vector = b->vector;
  hg_status status = build_wide(b, vector, &plain, &own);
  *has = status == HG_OK;
  *leaves = leaves_often(&own);
  if (status == HG_OK) status = show(visitor, "whole", b);
  if (status == HG_OK && several) status = show_several(b, &plain, visitor);
  b->vector = vector;
  hg_vector_release(&plain);
  hg_vector_release(&own);
  return status == HG_UNSUPPORTED ? HG_OK : status;
}

static hg_status show_steps(native_build *b, const native_visitor *visitor) {
  hg_vector own = {.allocator = b->allocator};
  const hg_vector *vector = b->vector;
  hg_status status = build_code(b, NULL, &own);
  if (status == HG_OK) status = show(visitor, "steps", b);
  b->vector = vector;
  hg_vector_release(&own);
  return status;
}

static hg_status show_versions(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                               const hg_vector *vector, int several, const native_visitor *visitor) {
  hg_vector divided = {.allocator = *allocator};
  int has_whole = 0, leaves = 0;
  hg_status status = find_quotients(target, allocator, &vector, &divided);
  native_build whole = init_build(allocator, target, program, vector), b = whole;
  if (status == HG_OK) status = show_whole(&whole, several, visitor, &has_whole, &leaves);
  b.has_wide = has_whole && !leaves;
  if (status == HG_OK) status = show_steps(&b, visitor);
  release_build(&whole);
  release_build(&b);
  hg_vector_release(&divided);
  return status;
}

hg_status hg_native_versions(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                             const hg_vector *vector, const native_visitor *visitor) {
  return show_versions(allocator, target, program, vector, 1, visitor);
}

/* What has been built, followed by what is there already. */
static hg_status put_before(void *context, const char *version, const native_build *b) {
  hg_array *code = context;
  (void)version;
  uint8_t *both = hg_allocate(&b->allocator, b->code_bytes + code->count, 1);
  if (both == NULL) return hg_fail_memory("machine code", b->code_bytes + code->count);
  memcpy(both, b->code, b->code_bytes);
  if (code->count > 0) memcpy(both + b->code_bytes, code->data, code->count);
  hg_release(&b->allocator, code->data);
  code->data = both;
  code->count += b->code_bytes;
  return HG_OK;
}

hg_status hg_native_emit(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                         const hg_vector *vector, uint8_t **code, size_t *byte_count) {
  hg_array bytes = {.element_size = 1};
  const native_visitor collector = {put_before, &bytes};
  hg_status status = show_versions(allocator, target, program, vector, 0, &collector);
  if (status != HG_OK) {
    hg_release(allocator, bytes.data);
    bytes = (hg_array){.element_size = 1};
  }
  *code = bytes.data;
  *byte_count = bytes.count;
  return status;
}
